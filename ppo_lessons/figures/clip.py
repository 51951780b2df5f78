"""Pictures of the clip: its two curves, three ways past it, an action it cannot see, its stair."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    WORSE,
    figure,
    style,
)


def objective(
    ratios: np.ndarray, good: np.ndarray, bad: np.ndarray, *, clip_epsilon: float
) -> Figure:
    """Draw the clipped objective against the ratio, for a good and for a bad action.

    Args:
        ratios: π / π_old, ascending.
        good: the objective there at advantage +1.
        bad: the objective there at advantage −1.
        clip_epsilon: ε, half the width of the shaded interval.

    Returns:
        Two panels; the dashed line is the surrogate without the clip.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2)
        for axes, values, sign, color, title in (
            (left, good, 1, BETTER, "Better than expected: flat on the right"),
            (right, bad, -1, WORSE, "Worse than expected: flat on the left"),
        ):
            axes.axvspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE)
            axes.plot(ratios, sign * ratios, color=OLD_POLICY, linestyle="--", linewidth=1.2)
            axes.plot(ratios, values, color=color, linewidth=2.6)
            ends = sorted((0.1 * sign, 2.0 * sign))  # as high in both panels: slopes compare
            axes.set(title=title, xlabel="ratio", ylim=ends)
            axes.set_ylabel(f"objective (advantage {'+1' if sign > 0 else '−1'})")
            axes.axvline(1, color=INK, linewidth=0.6)
            axes.set_xticks([0.4, 0.6, 1 - clip_epsilon, 1, 1 + clip_epsilon, 1.4, 1.6, 1.8])
        _note(left, "no clip", (1.5, 1.5), (-46, 4), OLD_POLICY)
        _note(right, "no clip", (0.5, -0.5), (8, 4), OLD_POLICY)
        return picture


def _note(
    axes: Axes, text: str, place: tuple[float, float], shift: tuple[int, int], color: str
) -> None:
    axes.annotate(text, place, xytext=shift, textcoords="offset points", color=color, fontsize=9)


def ways_out(ratios: Mapping[str, Sequence[float]], *, clip_epsilon: float) -> Figure:
    """Draw three ratios that leave the interval, each in its own way.

    Args:
        ratios: for each way, the ratio after every step, the start included.
        clip_epsilon: ε; the dashed line is at 1 + ε.

    Returns:
        One panel per way.
    """
    with style():
        picture = figure(9, 3.6)
        panels = picture.subplots(1, len(ratios), sharey=True, squeeze=False)[0]
        highest = max(max(values) for values in ratios.values())
        for axes, (name, values) in zip(panels, ratios.items(), strict=True):
            numbers = np.array(values)
            steps = np.arange(len(numbers))
            alive = numbers <= 1 + clip_epsilon
            axes.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE)
            axes.plot(steps, numbers, color=NEW_POLICY, linewidth=1)
            some = steps % max(1, len(steps) // 20) == 0  # marks on every step would be a rope
            few = alive | (steps < 6) | some
            dots, crosses = alive & few, ~alive & few
            axes.plot(steps[dots], numbers[dots], "o", color=NEW_POLICY, label="pushes")
            axes.plot(steps[crosses], numbers[crosses], "x", color=WORSE, label="silent")
            axes.axhline(1 + clip_epsilon, color=GOAL, linestyle="--", linewidth=1)
            axes.set(title=name, xlabel="step", ylim=(0.75, 1.05 * highest))
            axes.set_yticks([1, 1 + clip_epsilon, 1.5, 2, 2.5])
        panels[0].set_ylabel("ratio")
        panels[0].legend(fontsize=9, loc="center right")
        return picture


def unseen(old: Sequence[float], new: Sequence[float], *, drawn: Sequence[bool]) -> Figure:
    """Draw the probabilities of all actions before and after, and which were in the batch.

    Args:
        old: π_old of each action.
        new: π of each action.
        drawn: whether the batch holds the action.

    Returns:
        One panel of bars.
    """
    with style():
        picture = figure(7, 3)
        axes = picture.subplots()
        places = np.arange(len(old))
        axes.bar(places - 0.2, old, 0.38, color=OLD_POLICY, label="when it was drawn")
        axes.bar(
            places + 0.2, new, 0.38, color=NEW_POLICY, hatch="//", edgecolor="white", label="now"
        )
        for place, before, after, is_drawn in zip(places, old, new, drawn, strict=True):
            words = f"{before:g} → {after:g}\nratio {after / before:.3g}"
            axes.annotate(
                words, (place, max(before, after)), xytext=(0, 4), textcoords="offset points",
                ha="center", fontsize=9, color=INK if is_drawn else WORSE,
            )  # fmt: skip
        axes.set(
            title="Two ratios shrink a little; the third is not in the batch",
            ylabel="probability",
            ylim=(0, 0.7),
        )
        axes.set_xticks(
            places,
            [
                f"action {place + 1}" + ("" if seen else "\nnot drawn")
                for place, seen in enumerate(drawn)
            ],
        )
        axes.legend(fontsize=9, loc="upper right")
        return picture


def stair(
    runs: Mapping[str, Sequence[Sequence[float]]],
    finals: Mapping[str, Sequence[float]],
    steps: Sequence[float],
    *,
    goal: float,
) -> Figure:
    """Draw the learning curves of some variants over many seeds.

    Args:
        runs: for each variant, the episode returns of each seed, at the same steps.
        finals: for each variant, the final return of each seed.
        steps: environment steps at the end of each iteration.
        goal: the return that counts as solved (reward).

    Returns:
        One panel per variant: seeds thin, their median thick, the final returns as dots.
    """
    looks = (OLD_POLICY, WORSE, NEW_POLICY)
    with style():
        picture = figure(9, 3.4)
        panels = picture.subplots(1, len(runs), sharey=True, squeeze=False)[0]
        thousands = np.array(steps, dtype=float) / 1000
        for axes, (name, curves), color in zip(panels, runs.items(), looks, strict=False):
            table = np.array(curves, dtype=float)
            axes.plot(thousands, table.T, color=color, linewidth=0.7, alpha=0.5)
            axes.plot(thousands, np.nanmedian(table, axis=0), color=color, linewidth=2.6)
            ends = np.full(len(finals[name]), thousands[-1] * 1.06)
            axes.plot(ends, finals[name], "o", color=color, markersize=5, alpha=0.6)
            axes.axhline(goal, color=GOAL, linestyle="--", linewidth=1)
            solved = sum(value >= goal for value in finals[name])
            axes.set(
                title=f"{name}: {solved} of {len(finals[name])}",
                xlabel="thousand environment steps",
                ylim=(0, 530),
            )
        panels[0].set_ylabel("return (reward)")
        return picture
