"""What may be concluded from a few runs? Means that outliers cannot move, and intervals.

    IQM = mean of the middle half of the scores,   interval = quantiles of the IQM of runs redrawn

One run is one draw. Two settings are compared by what their runs would be if all of them were run
again, and a comparison may end with "inconclusive".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ppo_lessons.shapes import check_finite, check_floating, check_tensor

Scores = Float[Tensor, "..."] | Sequence[Tensor]
Statistic = Callable[[Tensor], Tensor]
Ends = tuple[int | float, int | float]
Verdict = Literal["above", "below", "inconclusive"]


class Interval(NamedTuple):
    """Where a number lies, as far as the runs can tell.

    Attributes:
        low: its lower end (unit of the scores).
        high: its upper end (unit of the scores).
    """

    low: float
    high: float


def interquartile_mean(scores: Float[Tensor, "*batch runs"]) -> Float[Tensor, "*batch"]:
    """Average the middle half of the scores.

        IQM = mean of the sorted scores without the n//4 lowest and the n//4 highest of n

    Fewer than four runs have no quarter to leave out, and their plain mean comes back. Several
    tasks are laid side by side first, with scores in a common unit.

    Args:
        scores: one number for each run, along the last axis.

    Returns:
        The mean of the middle half, in the unit of the scores.

    Raises:
        TypeError: if `scores` is no floating-point tensor.
        ValueError: if there is no run, or a score is not finite.

    Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical
        Precipice"; with the rounding of their library `rliable`.
    """
    _check_runs(scores=scores)
    left_out = scores.shape[-1] // 4
    middle = scores.sort(dim=-1).values[..., left_out : scores.shape[-1] - left_out]
    return middle.mean(dim=-1)


def stratified_bootstrap(
    scores: Scores,
    statistic: Statistic,
    *,
    resamples: int,
    confidence: float,
    generator: Generator,
) -> Interval:
    """Give the interval in which a statistic falls when the runs are drawn again, task by task.

        runs* = for each task, as many of its runs as there are, drawn with replacement
        interval = the quantiles (1 − confidence)/2 and (1 + confidence)/2 of statistic(runs*)

    It is honest with many runs. With three it is too narrow: three runs have not seen their own
    outliers.

    Args:
        scores: [seeds] of one task, [tasks, seeds], or a list with the [seeds] of each task. Tasks
            are pooled, so their scores must have a common unit.
        statistic: gives a number for each row of [resamples, runs], as `interquartile_mean` does.
        resamples: how often all runs are drawn again.
        confidence: share of the redrawn statistics that the interval holds, in (0, 1).
        generator: where the randomness comes from.

    Returns:
        The two quantiles (unit of the statistic).

    Raises:
        TypeError: if the scores are no floating-point tensors.
        ValueError: if a task has no run, a score is not finite, or a setting is out of range.

    Source: Agarwal et al. 2021, section 4: the percentile bootstrap, stratified by task.
    """
    tasks = _by_task(scores)
    _check_settings(resamples, confidence)
    return _quantiles(statistic(_redrawn(tasks, resamples, generator)), confidence)


def bootstrap_difference(
    first: Scores,
    second: Scores,
    statistic: Statistic,
    *,
    resamples: int,
    confidence: float,
    generator: Generator,
) -> Interval:
    """Give the interval of statistic(first) − statistic(second) when both are run again.

    Two intervals may touch while the one of the difference leaves out 0: both ends of a pair
    seldom happen together. Where 0 lies inside, the runs do not tell which is better.

    Args:
        first: scores as in `stratified_bootstrap`.
        second: scores of the other setting; it may have another number of runs.
        statistic: gives a number for each row of [resamples, runs].
        resamples: how often all runs are drawn again.
        confidence: share of the differences that the interval holds, in (0, 1).
        generator: where the randomness comes from.

    Returns:
        The two quantiles of the difference (unit of the statistic).

    Raises:
        TypeError: if the scores are no floating-point tensors.
        ValueError: if a task has no run, a score is not finite, or a setting is out of range.
    """
    tasks, others = _by_task(first), _by_task(second)
    _check_settings(resamples, confidence)
    found = statistic(_redrawn(tasks, resamples, generator))
    return _quantiles(found - statistic(_redrawn(others, resamples, generator)), confidence)


def probability_of_improvement(first: Scores, second: Scores) -> float:
    """Give the probability that a run of the first setting beats a run of the second.

        P = mean over tasks, and over all pairs of runs, of 1[x > y] + ½·1[x = y]

    It says how often, and not by how much: 1 may be a tiny and sure gain.

    Args:
        first: scores as in `stratified_bootstrap`.
        second: scores of the other setting on the same tasks; seeds may be more or fewer.

    Returns:
        A number in [0, 1]; 1/2 for a setting against itself.

    Raises:
        TypeError: if the scores are no floating-point tensors.
        ValueError: if a task has no run, or the numbers of tasks differ.

    Source: Agarwal et al. 2021, section 4; the Mann-Whitney U of each task divided by its pairs.
    """
    tasks, others = _by_task(first), _by_task(second)
    if len(tasks) != len(others):
        raise ValueError(
            f"first has {len(tasks)} tasks, second has {len(others)}; expected the same tasks in "
            "both. Leave out the tasks that only one of them ran."
        )
    shares = []
    for x, y in zip(tasks, others, strict=True):
        gaps = x.unsqueeze(1) - y
        shares.append(((gaps > 0).double() + 0.5 * (gaps == 0)).mean())
    return torch.stack(shares).mean().item()


def performance_profile(
    scores: Scores, thresholds: Float[Tensor, " levels"]
) -> Float[Tensor, " levels"]:
    """Give the share of runs that end above each threshold.

        profile(τ) = mean over tasks of the share of runs with score > τ

    Args:
        scores: scores as in `stratified_bootstrap`.
        thresholds: τ (unit of the scores).

    Returns:
        Shares in [0, 1], falling as τ rises.

    Raises:
        TypeError: if scores or thresholds are no floating-point tensors.
        ValueError: if a task has no run, or a score is not finite.

    Source: Agarwal et al. 2021, section 4; Dolan and Moré 2002 for the idea.
    """
    check_floating(thresholds=thresholds)
    shares = [
        (task > thresholds.unsqueeze(-1)).to(thresholds.dtype).mean(dim=-1)
        for task in _by_task(scores)
    ]
    return torch.stack(shares).mean(dim=0)


def apart(first: Ends, second: Ends) -> Verdict:
    """Say whether one interval lies wholly on one side of another.

    Args:
        first: (low, high) of one setting.
        second: (low, high) of the other, in the same unit.

    Returns:
        "above" if all of the first lies over all of the second, "below" if under it, else
        "inconclusive", also where they touch.

    Raises:
        ValueError: if an interval ends before it begins.
    """
    for name, (low, high) in (("first", first), ("second", second)):
        if not low <= high:
            raise ValueError(
                f"{name} is ({low}, {high}); expected low ≤ high. Give the lower end first."
            )
    if first[0] > second[1]:
        return "above"
    if first[1] < second[0]:
        return "below"
    return "inconclusive"


class Judged(NamedTuple):
    """A row of a study's table.

    Attributes:
        name: of the setting.
        scores: of its runs.
        middle: their interquartile mean (unit of the scores).
        interval: where that lies, as far as the runs can tell.
        verdict: "base", or where the interval lies against the base's.
    """

    name: str
    scores: Tensor
    middle: float
    interval: Interval
    verdict: str


def judge_settings(
    scores: Mapping[str, Float[Tensor, " seeds"]],
    *,
    base: str,
    resamples: int,
    confidence: float,
    generator: Generator,
) -> list[Judged]:
    """Give each setting of a table its interval, and its verdict against the base.

    Args:
        scores: of the runs of each setting, by its name.
        base: name of the setting that the others are compared with.
        resamples: how often all runs are drawn again.
        confidence: of each interval, in (0, 1).
        generator: where the randomness comes from.

    Returns:
        A row for each setting, in the same order.

    Raises:
        TypeError: if the scores are no floating-point tensors.
        ValueError: if there is no such base, a setting has no run, a score is not finite, or a
            number is out of range.
    """
    if base not in scores:
        raise ValueError(
            f"there is no setting {base!r}; expected one of {', '.join(scores)}. Choose one."
        )
    intervals = {
        name: stratified_bootstrap(
            runs,
            interquartile_mean,
            resamples=resamples,
            confidence=confidence,
            generator=generator,
        )
        for name, runs in scores.items()
    }
    return [
        Judged(
            name,
            runs,
            interquartile_mean(runs).item(),
            intervals[name],
            "base" if name == base else apart(intervals[name], intervals[base]),
        )
        for name, runs in scores.items()
    ]


def _by_task(scores: Scores) -> list[Tensor]:
    """Give the runs of each task, checked."""
    if isinstance(scores, Tensor):
        if scores.ndim not in (1, 2):
            raise ValueError(
                f"scores has shape {tuple(scores.shape)}; expected [seeds] or [tasks, seeds]. "
                "Reshape it, or give a list with the seeds of each task."
            )
        tasks = list(scores) if scores.ndim == 2 else [scores]
    else:
        tasks = list(scores)
    if not tasks:
        raise ValueError("scores is empty; expected at least one task. Run some seeds first.")
    for place, task in enumerate(tasks):
        name = "scores" if isinstance(scores, Tensor) else f"scores[{place}]"
        _check_runs(**{name: task})
        if task.ndim != 1:
            raise ValueError(
                f"{name} has shape {tuple(task.shape)}; expected [seeds], one number for each "
                "run of the task. Flatten it."
            )
    return tasks


def _check_runs(**scores: Tensor) -> None:
    for name, tensor in scores.items():
        check_tensor(name, tensor)
        check_floating(**{name: tensor})
        if tensor.ndim == 0 or tensor.shape[-1] == 0:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; expected at least one run along the "
                "last axis. Run some seeds first."
            )
        check_finite(**{name: tensor})


def _check_settings(resamples: int, confidence: float) -> None:
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1. 2000 is usual.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence is {confidence}; expected a number between 0 and 1. 0.95 is usual."
        )


def _redrawn(tasks: list[Tensor], resamples: int, generator: Generator) -> Tensor:
    """Draw the runs of each task anew, [resamples, runs of all tasks]."""
    drawn = [
        task[torch.randint(len(task), (resamples, len(task)), generator=generator)]
        for task in tasks
    ]
    return torch.cat(drawn, dim=-1)


def _quantiles(found: Tensor, confidence: float) -> Interval:
    tail = (1.0 - confidence) / 2.0
    ends = torch.tensor([tail, 1.0 - tail], dtype=found.dtype, device=found.device)
    low, high = torch.quantile(found, ends).tolist()
    return Interval(low, high)
