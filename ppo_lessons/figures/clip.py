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
    label_line,
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
            axes.set(title=title, xlabel="ratio", ylabel=f"objective (advantage {sign:+d})")
            axes.axvline(1, color=INK, linewidth=0.6)
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
        picture = figure(9, 2.9)
        panels = picture.subplots(1, len(ratios), squeeze=False)[0]
        for axes, (name, values) in zip(panels, ratios.items(), strict=True):
            numbers = np.array(values)
            steps = np.arange(len(numbers))
            alive = np.concatenate([numbers[:-1] <= 1 + clip_epsilon, [False]])
            axes.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE)
            axes.plot(steps, numbers, color=NEW_POLICY, linewidth=1)
            axes.plot(steps[alive], numbers[alive], "o", color=NEW_POLICY, markersize=5)
            axes.plot(steps[~alive], numbers[~alive], "x", color=WORSE, markersize=6)
            axes.axhline(1 + clip_epsilon, color=GOAL, linestyle="--", linewidth=1)
            axes.set(title=name, xlabel="step", ylabel="ratio", ylim=(0.75, None))
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
            words = f"ratio {after / before:.3g}" + ("" if is_drawn else "\nnobody saw it")
            axes.annotate(
                words, (place, max(before, after)), xytext=(0, 4), textcoords="offset points",
                ha="center", fontsize=9, color=INK if is_drawn else WORSE,
            )  # fmt: skip
        axes.set(
            title="Two ratios shrink a little; the third is not in the batch",
            ylabel="probability",
            ylim=(0, 0.7),
        )
        axes.set_xticks(places, [f"action {place}" for place in places])
        axes.legend(fontsize=9, loc="upper right")
        return picture


def stair(runs: Mapping[str, Sequence[Sequence[float]]], steps: Sequence[float]) -> Figure:
    """Draw the learning curves of some variants over many seeds.

    Args:
        runs: for each variant, the episode returns of each seed, at the same steps.
        steps: environment steps at the end of each iteration.

    Returns:
        One panel per variant: seeds thin, their median thick.
    """
    looks = (OLD_POLICY, WORSE, NEW_POLICY)
    with style():
        picture = figure(9, 3)
        panels = picture.subplots(1, len(runs), sharey=True, squeeze=False)[0]
        middle = np.zeros(len(steps))
        for axes, (name, curves), color in zip(panels, runs.items(), looks, strict=False):
            table = np.array(curves, dtype=float)
            axes.plot(steps, table.T, color=color, linewidth=0.7, alpha=0.5)
            middle = np.nanmedian(table, axis=0)
            axes.plot(steps, middle, color=color, linewidth=2.6)
            axes.set(title=name, xlabel="environment steps", ylim=(0, 530))
        panels[0].set_ylabel("mean return of 100 episodes")
        label_line(panels[-1], steps[-1], middle[-1], "median", looks[len(runs) - 1])
        return picture
