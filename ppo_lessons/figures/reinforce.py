"""Pictures of REINFORCE: pushes, the noise of a batch, γ, a loss that is none, its stair."""

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
    SECOND,
    SHADE,
    WORSE,
    figure,
    label_line,
    style,
)


def pushes(start: float, ends: Mapping[str, float]) -> Figure:
    """Draw where one step takes the probability of the better lever, case by case.

    Args:
        start: probability of the better lever before the step.
        ends: for each case, in words, its probability after the step.

    Returns:
        One arrow per case; those to the right are for the better.
    """
    with style():
        picture = figure(9, 0.55 + 0.62 * len(ends))
        axes = picture.subplots()
        axes.axvline(start, color=OLD_POLICY, linestyle="--", linewidth=1.2)
        for row, (_, end) in enumerate(ends.items()):
            color = BETTER if end > start else WORSE
            axes.annotate(
                "", (end, row), xytext=(start, row),
                arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2.6},
            )  # fmt: skip
            right = end > start
            axes.annotate(
                f"{end:.3f}", (end, row), xytext=(6 if right else -6, 0), fontsize=10,
                textcoords="offset points", va="center", ha="left" if right else "right",
                color=color,
            )  # fmt: skip
        axes.set(
            title="One draw may push the wrong way; the average does not",
            xlabel="probability of the lever that pays 3, after one step",
            xlim=(0, 1),
            ylim=(len(ends) - 0.4, -0.6),
        )
        axes.set_yticks(range(len(ends)), list(ends))
        axes.grid(False)
        return picture


def rare_actions(probabilities: np.ndarray, lengths: np.ndarray, growth: np.ndarray) -> Figure:
    """Draw how hard an action is pushed, and how much it grows, against how rare it is.

    Args:
        probabilities: of the action that was drawn, between 0 and 1.
        lengths: length of its score there.
        growth: its probability after one step, divided by that before.

    Returns:
        Two panels with a logarithmic probability axis.
    """
    with style():
        picture = figure(9, 3)
        left, right = picture.subplots(1, 2)
        left.plot(probabilities, lengths, color=NEW_POLICY)
        left.axhline(np.sqrt(2), color=GOAL, linestyle="--", linewidth=1)
        left.text(0.5, 1.46, "√2", ha="right", fontsize=9)
        left.set(title="The push stays below √2", ylabel="length of the score", ylim=(0, 1.65))
        right.plot(probabilities, growth, color=NEW_POLICY)
        right.axhline(np.e, color=GOAL, linestyle="--", linewidth=1)
        right.set(
            title="The relative change has a limit, too: e",
            ylabel="probability after / before",
            ylim=(0.9, 3),
        )
        for axes in (left, right):
            axes.set(xscale="log", xlabel="probability of the drawn action")
        return picture


def estimates(
    values: Mapping[str, np.ndarray], probabilities: np.ndarray, *, gradient: float
) -> Figure:
    """Draw which estimates one episode can give, and how probable each is.

    Args:
        values: for each weight, one coordinate of the estimate from every episode.
        probabilities: of the episodes.
        gradient: the true value of that coordinate.

    Returns:
        One panel per weight, with the same axes; equal estimates are added up.
    """
    with style():
        picture = figure(9, 3)
        panels = picture.subplots(1, len(values), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, numbers) in zip(panels, values.items(), strict=True):
            places, inverse = np.unique(np.round(numbers, 9), return_inverse=True)
            heights = np.bincount(inverse, weights=probabilities)
            mean = float(probabilities @ numbers)
            spread = float(np.sqrt(probabilities @ (numbers - mean) ** 2))
            axes.axvspan(mean - spread, mean + spread, color=SHADE)
            axes.vlines(places, 0, heights, color=NEW_POLICY, linewidth=3)
            axes.axvline(gradient, color=GOAL, linestyle="--", linewidth=1.2)
            axes.set_title(f"{name}\nmean {mean:.2f}, spread {spread:.2f}", fontsize=10)
        panels[0].set(ylabel="probability", ylim=(0, None))
        picture.supxlabel("estimate from one episode", fontsize=10)
        return picture


def gamma_knob(
    gammas: np.ndarray, squared_bias: np.ndarray, variance: np.ndarray, *, episodes: Sequence[int]
) -> Figure:
    """Draw the error of the usual update against γ, for batches of several sizes.

    Args:
        gammas: γ, ascending.
        squared_bias: squared distance of the mean from the gradient of the undiscounted J.
        variance: trace of the covariance of one episode's estimate, at each γ.
        episodes: sizes of the batches; one line each.

    Returns:
        One panel with a logarithmic axis; the dot is the lowest point of its line.
    """
    looks = ((WORSE, "-"), (NEW_POLICY, "-."), (BETTER, "--"))
    with style():
        picture = figure(7, 3.6)
        axes = picture.subplots()
        for count, (color, dash) in zip(episodes, looks, strict=False):
            error = squared_bias + variance / count
            best = int(error.argmin())
            axes.plot(gammas, error, color=color, linestyle=dash)
            axes.plot(gammas[best], error[best], "o", color=color, markersize=8)
            label_line(axes, gammas[-1], error[-1], f"  {count:,} episodes", color)
        axes.plot(gammas, np.maximum(squared_bias, 1e-9), color=OLD_POLICY, linestyle=":")
        axes.annotate(
            "bias² alone", (gammas[-3], squared_bias[-3]), fontsize=9, xytext=(-14, -14),
            textcoords="offset points", color=OLD_POLICY, ha="right",
            arrowprops={"arrowstyle": "-", "color": OLD_POLICY},
        )  # fmt: skip
        axes.set(
            title="The more episodes, the longer the view that pays",
            xlabel="γ",
            ylabel="squared error of the push (reward²)",
            yscale="log",
            ylim=(0.5 * float((squared_bias + variance / max(episodes)).min()), None),
        )
        return picture


def agreement(cosines: Mapping[str, Sequence[float]], *, title: str) -> Figure:
    """Draw how well two independent batches agree, pair by pair.

    Args:
        cosines: for each way of estimating, the cosine of the two gradients of every pair.
        title: what one sees.

    Returns:
        One row of dots per way, with a bar at the median.
    """
    with style():
        picture = figure(9, 0.75 + 0.55 * len(cosines))
        axes = picture.subplots()
        axes.axvline(0, color=INK, linewidth=0.8)
        for row, numbers in enumerate(cosines.values()):
            heights = row + 0.16 * np.linspace(-1, 1, len(numbers))
            colors = [BETTER if number > 0 else WORSE for number in numbers]
            axes.scatter(numbers, heights, c=colors, s=28, alpha=0.7, linewidths=0)
            axes.plot([np.median(numbers)] * 2, [row - 0.32, row + 0.32], color=INK, linewidth=2.4)
        axes.set(
            title=title,
            xlabel="cosine of two batches' gradients (1: same direction, below 0: opposed)",
            xlim=(-1.05, 1.05),
            ylim=(len(cosines) - 0.4, -0.6),
        )
        axes.set_yticks(range(len(cosines)), list(cosines))
        return picture


def loss_and_return(
    env_steps: Sequence[float], returns: Sequence[float], losses: Sequence[float]
) -> Figure:
    """Draw the return and the loss of one run side by side.

    Args:
        env_steps: environment steps at the end of each update.
        returns: mean return of the episodes of each update (reward).
        losses: value of the loss there (reward).

    Returns:
        Two panels over the environment steps.
    """
    thousands = np.array(env_steps, dtype=float) / 1000
    with style():
        picture = figure(9, 3)
        left, right = picture.subplots(1, 2)
        left.plot(thousands, returns, color=BETTER, marker="o", markersize=4)
        left.set(title="The policy gets better", ylabel="return (reward)")
        right.plot(thousands, losses, color=WORSE, linestyle="--", marker="s", markersize=4)
        right.set(title="The “loss” gets larger", ylabel="value of the loss")
        for axes in (left, right):
            axes.set(xlabel="thousand environment steps", ylim=(0, None))
        return picture


def reuse(curves: Mapping[str, Sequence[float]], *, limit: float) -> Figure:
    """Draw the probability of the better lever, with fresh draws and with old ones used again.

    Args:
        curves: for each way, the probability after every step.
        limit: where the second comes to rest.

    Returns:
        One panel with a logarithmic axis of steps.
    """
    looks = ((NEW_POLICY, "-"), (WORSE, "--"))
    with style():
        picture = figure(7, 3.2)
        axes = picture.subplots()
        for (name, numbers), (color, dash) in zip(curves.items(), looks, strict=False):
            steps = np.arange(1, len(numbers) + 1)
            axes.plot(steps[[0, -1]], [limit, limit], color=GOAL, linestyle=":", linewidth=1)
            axes.plot(steps, numbers, color=color, linestyle=dash)
            label_line(axes, steps[-1], numbers[-1], name, color)
        axes.set(
            title="Old draws lead to a wrong place, and stay there",
            xlabel="step",
            ylabel="probability of the lever that pays 3",
            xscale="log",
            ylim=(0.45, 1.03),
        )
        return picture


def stair(
    runs: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    finals: Mapping[str, Sequence[float]],
    *,
    goal: float,
) -> Figure:
    """Draw the learning curves of some weights over many seeds.

    Args:
        runs: for each weight, the environment steps and the returns of every seed; their steps
            differ, since episodes have the length that they have.
        finals: for each weight, the final return of each seed.
        goal: the return that counts as solved (reward).

    Returns:
        One panel per weight: seeds thin, their median thick, the final returns as dots.
    """
    last = max(steps[-1] for seeds in runs.values() for steps, _ in seeds)
    with style():
        picture = figure(9, 3.4)
        panels = picture.subplots(1, len(runs), sharey=True, squeeze=False)[0]
        for axes, (name, seeds), color in zip(
            panels, runs.items(), (WORSE, NEW_POLICY, SECOND), strict=False
        ):
            _learning_curves(axes, seeds, color)
            end = last / 1000 * 1.06
            axes.plot([end] * len(finals[name]), finals[name], "o", color=color, ms=5, alpha=0.6)
            ticks = np.arange(0, last / 1000, 25)
            axes.set_xticks(
                [*ticks[ticks < end - 15], end],
                [*map("{:.0f}".format, ticks[ticks < end - 15]), "end"],
            )
            axes.axhline(goal, color=GOAL, linestyle="--", linewidth=1)
            solved = sum(value >= goal for value in finals[name])
            axes.set(
                title=f"{name}: {solved} of {len(finals[name])}",
                xlabel="thousand environment steps",
                ylim=(0, 530),
            )
        panels[0].set_ylabel("return (reward)")
        return picture


def _learning_curves(
    axes: Axes, seeds: Sequence[tuple[Sequence[float], Sequence[float]]], color: str
) -> None:
    """Each seed at its own steps; the median where all of them have begun and none has ended."""
    first = max(steps[0] for steps, _ in seeds)
    grid = np.linspace(first, min(steps[-1] for steps, _ in seeds), 200)
    for steps, returns in seeds:
        axes.plot(np.array(steps) / 1000, returns, color=color, linewidth=0.7, alpha=0.5)
    middle = np.median([np.interp(grid, steps, returns) for steps, returns in seeds], axis=0)
    axes.plot(grid / 1000, middle, color=color, linewidth=2.6)
