"""How often does `diagnose` name a bug, and how often does it cry wolf? On seeds it never saw.

    python -m benchmarks.diagnose

Its thresholds were set on seeds 1 to 4. Here every bug of the zoo trains on CartPole with seeds 11
and 12, and a right loop on four tasks with seeds 11 to 15. What is in the result already is not
made again; `--seconds` ends a call early, and the next one goes on.

One number was set later: that some rules need 25 iterations. It came from the beginnings of these
right runs, whose whole length had raised no alarm before.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, write_result
from ppo_lessons.ablations import run_replicas
from ppo_lessons.debugging import BUGS, ZOO_CONFIG
from ppo_lessons.diagnose import diagnose
from ppo_lessons.envs import TASKS, BatchedEnvs, Envs, NormalizedEnvs
from ppo_lessons.training_loop import PRESETS, Parts, PPOConfig, train
from ppo_lessons.types import History

BUG_SEEDS = range(11, 13)
HEALTHY_SEEDS = range(11, 16)
# task -> settings of a right loop
HEALTHY: dict[str, PPOConfig] = {
    "CartPole": ZOO_CONFIG,
    "Acrobot": replace(ZOO_CONFIG, total_steps=150_000),
    "Pendulum": PRESETS["pendulum"].config,
    "MountainCar": ZOO_CONFIG,
}

RIGHT = Parts()
# Slots whose replacement has no batched form.
LONE = ("networks", "collect", "total_loss", "gradient_step")


def environments(task: str, config: PPOConfig) -> Envs:
    """N copies of a task; Pendulum's are normalised, as its preset wants it."""
    envs = BatchedEnvs(TASKS[task](), config.num_envs)
    return NormalizedEnvs(envs, gamma=config.gamma) if task == "Pendulum" else envs


Unit = tuple[str, str, int]  # task, bug or "", seed


def train_all(units: Sequence[Unit]) -> list[History]:
    """Train once for each: side by side where the loop has a batched form, else in turn."""
    task = units[0][0]
    configs = [replace(ZOO_CONFIG if bug else HEALTHY[task], seed=seed) for _, bug, seed in units]
    parts = [BUGS[bug].parts if bug else RIGHT for _, bug, _ in units]
    if all(is_batched(*unit) for unit in units):
        return run_replicas(configs, task=TASKS[task](), parts=parts)
    pairs = zip(configs, parts, strict=True)
    return [train(config, envs=environments(task, config), parts=own) for config, own in pairs]


def is_batched(task: str, bug: str, seed: int) -> bool:
    """Whether a run can stand beside others in one batch."""
    return task != "Pendulum" and not (bug and BUGS[bug].slot in LONE)


def plan() -> Iterator[list[Unit]]:
    """What is to be run, a batch at a time; the first seed of everything comes first."""
    for task in HEALTHY:
        if task != "Pendulum":
            yield [(task, "", seed) for seed in HEALTHY_SEEDS]
    for bug_seed, seed in zip_longest(BUG_SEEDS, HEALTHY_SEEDS):
        if bug_seed is not None:
            bugs: list[Unit] = [("CartPole", bug, bug_seed) for bug in BUGS]
            yield [unit for unit in bugs if is_batched(*unit)]
            yield from ([unit] for unit in bugs if not is_batched(*unit))
        yield [("Pendulum", "", seed)]


def summary(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Count: a bug is named if the first finding bears its name on most seeds."""
    named: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    alarms = healthy = 0
    for key, run in found.items():
        _, bug, _ = key.split("/")
        if bug == "healthy":
            healthy += 1
            alarms += bool(run["alarms"])
        else:
            runs[bug] += 1
            named[bug] += run["alarms"][:1] == [bug]
    return {
        "bugs": len(runs),
        "bugs_named_on_most_seeds": sum(2 * named[bug] > runs[bug] for bug in runs),
        "bugs_named_on_all_seeds": sum(named[bug] == runs[bug] for bug in runs),
        "runs_with_a_bug": sum(runs.values()),
        "runs_named": sum(named.values()),
        "healthy_runs": healthy,
        "false_alarms": alarms,
        "named": {bug: f"{named[bug]} of {runs[bug]}" for bug in BUGS if runs[bug]},
    }


def main() -> None:
    """Run what is not there, and count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--rows", type=Path, help="folder that keeps the metrics of each run")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    path = RESULTS / "diagnose.json"
    found: dict[str, dict[str, Any]] = {}
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))["runs"]
    for units in plan():
        keys = [f"{task}/{bug or 'healthy'}/{seed}" for task, bug, seed in units]
        if found.keys() >= set(keys) or time.monotonic() > until:
            continue
        for key, history in zip(keys, train_all(units), strict=True):
            findings = diagnose(history)
            found[key] = {
                "alarms": [finding.name for finding in findings if finding.alarm],
                "remarks": [finding.name for finding in findings if not finding.alarm],
                "last_return": history["episode_return"][-1],
            }
            print(key, found[key], flush=True)
            if options.rows:
                kept = options.rows / f"{key.replace('/', '-')}.json"
                kept.write_text(json.dumps(history.rows), encoding="utf-8")
        content = {"summary": summary(found), "runs": found}
        write_result("diagnose", "python -m benchmarks.diagnose", content)
    print(json.dumps(summary(found), indent=2))


if __name__ == "__main__":
    main()
