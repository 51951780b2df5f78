"""How often does the gate stop a healthy run, and when does it stop a hacked one?

    python -m benchmarks.evidence

The runs of `python -m benchmarks.rlhf` were recorded with their true success. Each is replayed 250
times under a gate that sees the score, the share of answers without an end, and labels of a judge
who errs. Nothing is trained. The result lies in `benchmarks/results/evidence.json`.
"""

import statistics
from typing import Any

from torch import Generator

from benchmarks.record import write_result
from ppo_lessons.evidence import Count, Decision, GateConfig, RecordedRun, replay, wilson
from ppo_lessons.notebook import recorded

COMMAND = "python -m benchmarks.evidence"
REPLAYS = 250
BASELINE_LABELS = 256
HACKED = ("beta 0", "beta 0, clip 0.05")
HEALTHY = ("beta 0.3", "beta 1", "beta 0.3, no clip")
# name -> what the gate knows
GATES = {
    "64 labels of accuracy 0.85, with the limit": GateConfig(),
    "64 labels of accuracy 0.85, labels alone": GateConfig(limits={}),
    "16 labels of accuracy 0.85, labels alone": GateConfig(num_labels=16, limits={}),
    "256 labels of accuracy 0.85, labels alone": GateConfig(num_labels=256, limits={}),
    "64 labels of accuracy 0.7, labels alone": GateConfig(accuracy=0.7, limits={}),
}


def as_recorded(
    curves: dict[str, list[Any]], start: dict[str, float], success: str = "success"
) -> RecordedRun:
    """Give a recorded run in the form that `replay` reads, with one of its two successes."""
    return RecordedRun(
        iterations=curves["iteration"],
        scores=curves["score"],
        successes=curves[success],
        metrics={"no_eos": curves["no_eos"]},
        baseline_score=start["score"],
        baseline_success=start[success],
    )


def replays(run: RecordedRun, config: GateConfig) -> list[Decision | None]:
    """Let the gate watch one run again and again."""
    generator = Generator().manual_seed(1)
    return [
        replay(run, config, baseline_labels=BASELINE_LABELS, generator=generator)
        for _ in range(REPLAYS)
    ]


def summary(runs: list[RecordedRun], decisions: list[list[Decision | None]]) -> dict[str, Any]:
    """Say how many replays were stopped, when, and what was kept."""
    stopped = [each for found in decisions for each in found if each is not None]
    total = sum(map(len, decisions))
    low, high = wilson(Count(len(stopped), total), confidence=0.95)
    kept = [
        success
        for run, found in zip(runs, decisions, strict=True)
        for success in kept_success(run, found)
    ]
    steps = sorted(each.iteration for each in stopped)
    return {
        "stopped": len(stopped),
        "replays": total,
        "share_95": [round(low, 4), round(high, 4)],
        "median_iteration": statistics.median(steps) if steps else None,
        "last_iteration": steps[-1] if steps else None,
        "mean_success_kept": mean_of(kept),
        "mean_success_at_the_end": round(statistics.fmean(run.successes[-1] for run in runs), 3),
        "mean_success_before": round(statistics.fmean(run.baseline_success for run in runs), 3),
    }


def kept_success(run: RecordedRun, decisions: list[Decision | None]) -> list[float]:
    """Give the true success of what each replay that was stopped rolled back to."""
    truth = {0: run.baseline_success, **dict(zip(run.iterations, run.successes, strict=True))}
    return [truth[each.best] for each in decisions if each is not None]


def of_one(run: RecordedRun, greedy: RecordedRun, decisions: list[Decision | None]) -> dict:
    """Say of one run when its replays were stopped, and what was kept: at τ = 1, and greedily."""
    steps = [each.iteration for each in decisions if each is not None]
    return {
        "stopped": len(steps),
        "by_iteration_16": sum(step <= 16 for step in steps),
        "median_iteration": statistics.median(steps) if steps else None,
        "mean_success_kept": mean_of(kept_success(run, decisions)),
        "mean_greedy_success_kept": mean_of(kept_success(greedy, decisions)),
    }


def mean_of(numbers: list[float]) -> float | None:
    """Give the mean with three digits; None of no numbers."""
    return round(statistics.fmean(numbers), 3) if numbers else None


def main() -> None:
    """Replay everything and write JSON."""
    study = recorded("rlhf")
    content: dict[str, Any] = {
        "replays_of_each_run": REPLAYS,
        "labels_of_the_unmodified_model": BASELINE_LABELS,
        "runs": {"hacked": HACKED, "healthy": HEALTHY},
        "gates": {},
    }
    kinds = {"hacked": HACKED, "healthy": HEALTHY}
    for name, config in GATES.items():
        content["gates"][name] = {}
        for kind, names in kinds.items():
            runs, greedy = (
                {
                    f"{each}/{seed}": as_recorded(
                        run["curves"], study["starts"][seed]["reference"], success
                    )
                    for each in names
                    for seed, run in study["runs"][each].items()
                }
                for success in ("success", "greedy_success")
            )
            found = {run: replays(seen, config) for run, seen in runs.items()}
            told = summary([*runs.values()], [*found.values()])
            print(name, kind, told, flush=True)
            by_run = {run: of_one(runs[run], greedy[run], found[run]) for run in runs}
            content["gates"][name][kind] = {**told, "by_run": by_run}
    print(write_result("evidence", COMMAND, content))


if __name__ == "__main__":
    main()
