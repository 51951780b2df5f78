"""The studies of lesson 11 with few seeds and few steps: what the notebook shows within minutes.

    python -m benchmarks.short_studies

The same tables as `benchmarks.ablations`, with 16 seeds and 12,288 steps, about five minutes on two
cores. It records `short_studies.json` in `ppo_lessons/recorded`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.record import RECORDED, write_result
from ppo_lessons.ablations import Study, run_study
from ppo_lessons.ablations.studies import MAP, PARTS, SPARSE, settings_of
from ppo_lessons.ablations.study import one_run_a_line
from ppo_lessons.training_loop import PPOConfig

CONFIG = PPOConfig(
    env="CartPole", num_envs=16, num_steps=64, learning_rate=5e-3, total_steps=12_288,
)  # fmt: skip
POINTS = 12  # of a learning curve
KEPT = ("fraction_zero_gradient", "entropy")  # metrics that the lesson reads


def short(study: Study, seeds: Sequence[int], **changes: Any) -> Study:
    """Give each setting the short budget, and keep what the study is about."""
    settings = [
        replace(
            setting,
            config=replace(
                CONFIG,
                learning_rate=changes.get("learning_rate", setting.config.learning_rate),
                num_epochs=setting.config.num_epochs,
                entropy_coef=setting.config.entropy_coef,
            ),
        )
        for setting in study.settings
    ]
    return replace(study, settings=settings, seeds=seeds, num_points=POINTS)


def studies(seeds: Sequence[int]) -> list[Study]:
    """One change in each row; the map; no reward to be found."""
    rows = list(settings_of(CONFIG).values())
    return [
        replace(PARTS, settings=rows, seeds=seeds, num_points=POINTS),
        short(MAP, seeds),
        short(SPARSE, seeds, learning_rate=CONFIG.learning_rate),
    ]


def main() -> None:
    """Train all of them and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    found = {}
    for study in studies(range(1, arguments.seeds + 1)):
        found[study.name] = run_study(study, workers=arguments.workers).as_dict()
        print(study.name, flush=True)
    for study in found.values():
        for run in study["runs"]:
            run["returns"] = [each and round(each, 1) for each in run["returns"]]
            run["metrics"] = {name: run["metrics"][name] for name in KEPT}
    command = " ".join(["python -m benchmarks.short_studies", *sys.argv[1:]])
    path = write_result("short_studies", command, {"studies": found}, folder=RECORDED)
    path.write_text(compact(json.loads(path.read_text("utf-8"))), encoding="utf-8")
    print(path)


def compact(content: dict[str, Any]) -> str:
    """Write a recording with each run on one line."""
    head = json.dumps({name: part for name, part in content.items() if name != "studies"}, indent=1)
    tables = (
        f"{json.dumps(name)}: {one_run_a_line(study)}" for name, study in content["studies"].items()
    )
    return head[:-2] + ',\n "studies": {\n' + ",\n".join(tables) + "\n}\n}\n"


if __name__ == "__main__":
    main()
