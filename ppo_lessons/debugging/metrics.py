"""Which metric shows which bug? Runs with a bug beside runs without, quarter by quarter."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

Curves = Mapping[str, Sequence[int | float | None]]  # metric -> one number per iteration

QUARTERS = 4
MOST = 99.0  # a distance is cut here
LEAST_WIDTH = 0.1  # of an interval, as a share of its numbers: healthy runs may agree by chance
HIDDEN = ("env_steps", "iteration", "seconds", "learning_rate", "num_epochs")


def metric_table(
    runs: Mapping[str, Curves], *, healthy: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Say how far each metric of each run lies outside of what healthy runs show.

    Each run is cut into four quarters, and a quarter is its median. The healthy runs span an
    interval in each quarter. The distance of a run is how far it lies outside, in widths of that
    interval (at least a tenth of its numbers), and the largest of its quarters counts: 0 is inside,
    above 1 is plainly outside.

    Args:
        runs: curves by name.
        healthy: names of at least two runs without a bug.

    Returns:
        For each other run and metric the distance, at most 99 (widths of the healthy interval); a
        metric is left out where a quarter is without numbers in a healthy run.

    Raises:
        ValueError: if there are fewer than two healthy runs, or one is not among the runs.
    """
    healthy = tuple(healthy)
    if len(healthy) < 2 or not set(healthy) <= set(runs):
        raise ValueError(
            f"healthy is {healthy} and the runs are {', '.join(runs)}; expected at least two of "
            "them, since one run spans no interval. Give the names of runs without a bug."
        )
    metrics = [metric for metric in runs[healthy[0]] if metric not in HIDDEN]
    usual = {metric: [quarters(runs[name][metric]) for name in healthy] for metric in metrics}
    return {
        name: {
            metric: distance
            for metric in metrics
            if (distance := farthest(quarters(curves[metric]), usual[metric])) is not None
        }
        for name, curves in runs.items()
        if name not in healthy
    }


def quarters(curve: Sequence[int | float | None]) -> list[float | None]:
    """Give the median of each quarter, or None where it has no numbers."""
    edges = [round(len(curve) * part / QUARTERS) for part in range(QUARTERS + 1)]
    parts = [
        [number for number in curve[low:high] if number is not None]
        for low, high in pairwise(edges)
    ]
    return [median(part) if part else None for part in parts]


def farthest(
    own: Sequence[int | float | None], usual: Sequence[Sequence[int | float | None]]
) -> float | None:
    """Give the largest distance over the quarters that all runs have; None if there is none."""
    distances = [
        outside(number, others)
        for number, *others in zip(own, *usual, strict=True)
        if number is not None and None not in others
    ]
    return max(distances, default=None)


def outside(number: float, others: Sequence[int | float | None]) -> float:
    """Give how far a number is from an interval, in widths of it."""
    known = [other for other in others if other is not None]
    low, high = min(known), max(known)
    gap = max(low - number, number - high, 0.0)
    width = max(high - low, LEAST_WIDTH * max(abs(low), abs(high)))
    if gap == 0:
        return 0.0
    return MOST if width == 0 else min(MOST, gap / width)
