"""The zoo on record: one run for each bug, healthy runs beside them, and which probes fail.

    python -m benchmarks.debugging runs
    python -m benchmarks.debugging probes --seeds 1

What is there already stays, and is not made again; `--seconds` ends a call early, and the next one
goes on. Notebook 12 and its widget show what this recorded, `debugging.json` in
`ppo_lessons/recorded`; `tests/test_debugging.py` holds it.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from benchmarks.record import RECORDED, write_result
from ppo_lessons.debugging import BUGS, PROBE_CONFIG, QUESTIONS, ZOO_CONFIG, probe_passes
from ppo_lessons.envs import TASKS, BatchedEnvs
from ppo_lessons.training_loop import Parts, train

HEALTHY_SEEDS = (1, 2, 3, 4)
METRICS = (
    *("env_steps", "episode_return", "num_episodes", "policy_loss", "value_loss", "entropy"),
    *("kl_k1", "kl_k3", "fraction_outside", "fraction_zero_gradient", "max_ratio_deviation"),
    *("gradient_norm", "ev_lambda", "ev_monte_carlo"),
)
PATH = RECORDED / "debugging.json"


def one_run(bug: str, seed: int) -> dict[str, list[float | None]]:
    """Train once on CartPole, and keep three digits of each metric.

    Args:
        bug: a name of `BUGS`, or "" for the loop as it is.
        seed: of the run.

    Returns:
        One list per metric, over the iterations.
    """
    envs = BatchedEnvs(TASKS["CartPole"](), ZOO_CONFIG.num_envs)
    parts = BUGS[bug].parts if bug else Parts()
    history = train(replace(ZOO_CONFIG, seed=seed), envs=envs, parts=parts)
    return {metric: [short(number) for number in history[metric]] for metric in METRICS}


def short(number: float | None) -> float | None:
    """Keep three significant digits; whole numbers stay as they are."""
    return number if number is None or isinstance(number, int) else float(f"{number:.3g}")


def runs() -> Iterator[tuple[str, str, int]]:
    """Name, bug and seed of each run."""
    for seed in HEALTHY_SEEDS:
        yield ("healthy" if seed == 1 else f"healthy_{seed}"), "", seed
    for bug in BUGS:
        yield bug, bug, 1


def so_far() -> dict[str, Any]:
    """What is on record."""
    if not PATH.is_file():
        return {}
    content = json.loads(PATH.read_text(encoding="utf-8"))
    return {key: content[key] for key in ("runs", "probes", "probe_seeds") if key in content}


def write(content: dict[str, Any]) -> None:
    """Write the record; a list of numbers takes one line."""
    about = {"config": asdict(ZOO_CONFIG), "probe_config": asdict(PROBE_CONFIG)}
    order = ("probe_seeds", "probes", "runs")
    content = {key: content[key] for key in order if key in content}
    command = "python -m benchmarks.debugging runs && python -m benchmarks.debugging probes"
    path = write_result("debugging", command, {**about, **content}, folder=RECORDED)
    text = path.read_text(encoding="utf-8")
    flat = re.sub(r'\[\s+([^\[\]{}"]*?)\s+\]', lambda m: f"[{' '.join(m[1].split())}]", text)
    path.write_text(flat, encoding="utf-8")


def record_runs(content: dict[str, Any], until: float) -> None:
    """Make the runs that are not on record."""
    found = content.setdefault("runs", {})
    for name, bug, seed in runs():
        if name in found or time.monotonic() > until:
            continue
        found[name] = one_run(bug, seed)
        print(f"{name:32}", found[name]["episode_return"][-1], flush=True)
        write(content)


def record_probes(content: dict[str, Any], until: float, *, num_seeds: int) -> None:
    """Ask the probes that are not on record: on which seeds does each fail?"""
    seeds = list(range(1, num_seeds + 1))
    if content.get("probe_seeds") != seeds:  # counts over other seeds cannot stand beside these
        content["probes"], content["probe_seeds"] = {}, seeds
    found = content["probes"]
    for name in ("healthy", *BUGS):
        row = dict(found.get(name, {}))
        for question in QUESTIONS:
            if question in row or time.monotonic() > until:
                continue
            parts = Parts() if name == "healthy" else BUGS[name].parts
            failed = [not probe_passes(question, parts, seed=seed) for seed in seeds]
            row[question] = sum(failed)
        if row and row != found.get(name):
            found[name] = row
            print(f"{name:32}", *row.values(), flush=True)
            write(content)


def main() -> None:
    """Record what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("runs", "probes"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    content, until = so_far(), time.monotonic() + options.seconds
    if options.what == "runs":
        record_runs(content, until)
    else:
        record_probes(content, until, num_seeds=options.seeds)


if __name__ == "__main__":
    main()
