"""Pictures of the loop: its four stages, one squeeze from inside, runs, and the pole itself."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

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

Series = Sequence[float | None]  # None: could not be computed

STAGES = (
    ("collect", "the policy acts,\nwhat happened is kept", "→ Rollout [T, N]"),
    ("score", "the critic says what it\nexpected, GAE compares", "→ Batch [B]"),
    ("squeeze", "K epochs of minibatches,\nratios and the clip", "→ new weights"),
    ("renew", "the new policy takes over,\nthe data is thrown away", "→ π_old = π"),
)


def four_stages() -> Figure:
    """Draw the loop as four boxes in a ring."""
    with style():
        picture = figure(9, 2.4)
        axes = picture.subplots()
        axes.set(xlim=(-0.1, 11.9), ylim=(-0.95, 2.1))
        axes.axis("off")
        for index, (name, words, result) in enumerate(STAGES):
            left = 3.1 * index
            axes.add_patch(
                FancyBboxPatch(
                    (left, 0.1), 2.4, 1.9, boxstyle="round,pad=0.05,rounding_size=0.15",
                    facecolor="white", edgecolor=NEW_POLICY, linewidth=1.8,
                )
            )  # fmt: skip
            axes.text(left + 1.2, 1.65, name, ha="center", fontsize=12, fontweight="bold")
            axes.text(left + 1.2, 1.08, words, ha="center", va="center", fontsize=8.6)
            axes.text(left + 1.2, 0.34, result, ha="center", color=NEW_POLICY, fontsize=9)
            if index + 1 < len(STAGES):
                _arrow(axes, (left + 2.48, 1.05), (left + 3.04, 1.05))
        _arrow(axes, (10.5, 0.0), (1.2, 0.0), curve=-0.09)
        axes.text(5.85, -0.62, "again, with the new policy", ha="center", va="top", fontsize=9.5)
        return picture


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], curve: float = 0.0
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=14, color=INK, linewidth=1.2,
            connectionstyle=f"arc3,rad={curve}",
        )
    )  # fmt: skip


def one_squeeze(
    max_ratio_deviation: np.ndarray,
    kl_k3: np.ndarray,
    fraction_outside: np.ndarray,
    fraction_zero_gradient: np.ndarray,
) -> Figure:
    """Draw one squeeze from inside: every minibatch of every epoch, in order.

    Args:
        max_ratio_deviation: largest |ratio − 1|, [K, M].
        kl_k3: estimate of KL(π_old ‖ π), [K, M] (nats).
        fraction_outside: share of samples outside 1 ± ε, [K, M].
        fraction_zero_gradient: share of samples that no longer push, [K, M].

    Returns:
        Three panels over the minibatches.
    """
    epochs, minibatches = kl_k3.shape
    steps = np.arange(1, epochs * minibatches + 1)
    with style():
        picture = figure(9, 2.9)
        left, middle, right = picture.subplots(1, 3)
        left.plot(steps, max_ratio_deviation.ravel(), color=NEW_POLICY, marker="o", markersize=3)
        left.set(title="The ratios leave 1", ylabel="largest |ratio − 1|")
        middle.plot(steps, kl_k3.ravel(), color=NEW_POLICY, marker="o", markersize=3)
        middle.set(title="The policy moves", ylabel="kl_k3 (nats)")
        right.plot(steps, fraction_outside.ravel(), color=OLD_POLICY, linestyle="--")
        right.plot(steps, fraction_zero_gradient.ravel(), color=NEW_POLICY)
        right.set(title="Some samples fall silent", ylabel="share of the minibatch")
        right.set_ylim(0, None)
        label_line(right, steps[-1], fraction_outside.ravel()[-1], "outside", OLD_POLICY)
        label_line(right, steps[-1], fraction_zero_gradient.ravel()[-1], "silent", NEW_POLICY)
        for axes in (left, middle, right):
            axes.set_xlabel(f"minibatch ({minibatches} per epoch)")
            for border in range(minibatches, epochs * minibatches, minibatches):
                axes.axvline(border + 0.5, color=INK, linewidth=0.4, alpha=0.35)
        return picture


def life(
    ratios: np.ndarray, turns: np.ndarray, silent: np.ndarray, *, num_epochs: int, epsilon: float
) -> Figure:
    """Draw the life of one sample: its ratio before every step, and what happened at its turns.

    Args:
        ratios: before each optimiser step, [steps].
        turns: the steps at which the sample was in the minibatch, [K].
        silent: whether its gradient was zero then, [K].
        num_epochs: K.
        epsilon: ε.

    Returns:
        One panel over the optimiser steps.
    """
    steps = np.arange(1, len(ratios) + 1)
    per_epoch = len(ratios) // num_epochs
    with style():
        picture = figure(9, 3.4)
        axes = picture.subplots()
        axes.axhspan(1 - epsilon, 1 + epsilon, color=SHADE, zorder=0)
        axes.plot(steps, ratios, color=OLD_POLICY, linewidth=1.2, zorder=1)
        looks = ((~silent, "o", NEW_POLICY, "its turn, it pushes"),)
        looks += ((silent, "X", WORSE, "its turn, it is silent"),)
        for chosen, marker, color, label in looks:
            at = turns[chosen]
            axes.plot(at + 1, ratios[at], marker, color=color, markersize=8, label=label, zorder=2)
        for border in range(per_epoch, len(ratios), per_epoch):
            axes.axvline(border + 0.5, color=INK, linewidth=0.4, alpha=0.35)
        low, high = min(ratios.min(), 1 - epsilon) - 0.06, max(ratios.max(), 1 + epsilon) + 0.06
        axes.set_ylim(low, high)
        axes.annotate(
            f"1 ± {epsilon:g}", (1, 1 + epsilon), xycoords=("axes fraction", "data"),
            xytext=(-4, -4), textcoords="offset points", ha="right", va="top", fontsize=9,
        )  # fmt: skip
        axes.legend(loc="upper center", ncols=2, fontsize=9)
        axes.set(
            title="It moves at every step, though it has one turn in four",
            xlabel=f"step of the optimiser ({per_epoch} per epoch)",
            ylabel="ratio of this sample",
        )
        return picture


def scored_again(frozen: np.ndarray, anew: np.ndarray) -> Figure:
    """Draw advantages before a squeeze against those that the critic gives after it.

    Args:
        frozen: Â of each sample, computed once, [B] (discounted reward).
        anew: Â of the same samples after the critic has learned, [B] (discounted reward).

    Returns:
        One panel.
    """
    with style():
        picture = figure(5.2, 4)
        axes = picture.subplots()
        low = min(frozen.min(), anew.min())
        high = max(frozen.max(), anew.max())
        axes.plot([low, high], [low, high], color=INK, linewidth=0.8, linestyle="--")
        axes.annotate(
            "the same", (low, low), xytext=(30, 4), textcoords="offset points", fontsize=9
        )
        axes.plot(frozen, anew, ".", color=NEW_POLICY, markersize=3, alpha=0.35)
        axes.set(
            title="Lower nearly everywhere, the bad ones most",
            xlabel="advantage, frozen (discounted reward)",
            ylabel="advantage, computed anew (discounted reward)",
        )
        return picture


def price(study: Mapping[str, Any], prices: np.ndarray) -> Figure:
    """Draw what K epochs cost in samples, in time, and in both at a price of a step.

    Args:
        study: `recorded("price")`; a seed that was never solved counts with the steps it used.
        prices: of an environment step, above 0, rising (ms).

    Returns:
        Three panels: steps until solved and CPU seconds until solved for each K, and for each
        price the time in all, the shortest one marked.
    """
    epochs, steps, seconds, collect = price_table(study)
    places = np.arange(len(epochs))
    with style():
        picture = figure(9, 3.5)
        left, middle, right = picture.subplots(1, 3, width_ratios=[1, 1, 1.25])
        for place, number in zip(places, epochs, strict=True):
            runs = study["runs"][str(number)]
            known = np.array([run["env_steps"] or study["most_steps"] for run in runs])
            spread = place + np.linspace(-0.2, 0.2, len(known))
            left.plot(spread, known / 1e3, "o", color=OLD_POLICY, markersize=3.5, alpha=0.8)
        left.hlines(steps / 1e3, places - 0.32, places + 0.32, color=NEW_POLICY, linewidth=3)
        left.set(title="Fewer samples", ylabel="thousand environment steps", ylim=(0, None))
        middle.bar(places, collect, 0.62, color=OLD_POLICY, label="collect")
        middle.bar(
            places, seconds - collect, 0.62, bottom=collect, color="white", edgecolor=NEW_POLICY,
            hatch="///", label="score and squeeze",
        )  # fmt: skip
        middle.set(title="More work", ylabel="CPU seconds until solved")
        middle.set_ylim(0, 1.3 * seconds.max())
        middle.legend(fontsize=8, loc="upper left")
        for axes in (left, middle):
            axes.set_xticks(places, [str(number) for number in epochs])
            axes.set_xlabel("epochs per rollout, K")
        _totals(right, epochs, seconds[:, None] + steps[:, None] * prices / 1e3, prices)
        return picture


def price_table(study: Mapping[str, Any]) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    """Take the medians over the seeds of the study of prices.

    Args:
        study: `recorded("price")`.

    Returns:
        For each K: K, environment steps, CPU seconds in all, CPU seconds of the collect stage.
    """
    rows = []
    for number, runs in study["runs"].items():
        steps = [run["env_steps"] or study["most_steps"] for run in runs]
        times = [[run[name] for run in runs] for name in ("cpu_seconds", "collect_seconds")]
        rows.append((int(number), *(float(np.median(each)) for each in (steps, *times))))
    table = np.array(rows)
    return [int(number) for number in table[:, 0]], table[:, 1], table[:, 2], table[:, 3]


def _totals(axes: Axes, epochs: Sequence[int], totals: np.ndarray, prices: np.ndarray) -> None:
    """Draw time in all over the price, relative to the shortest; a strip names the winner."""
    best = totals.min(axis=0)
    winner = totals.argmin(axis=0)
    looks = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)))
    colors = (OLD_POLICY, SECOND, BETTER, WORSE, NEW_POLICY)
    for row, dash, color in zip(totals, looks, colors, strict=False):
        axes.plot(prices, row / best, color=color, linestyle=dash)
    top, place = 1.05 * (totals / best).max(), 0.0
    for row in np.argsort(totals[:, -1]):  # from below, so that close labels move apart
        place = max(totals[row, -1] / best[-1], place + 0.045 * top)
        label_line(axes, prices[-1], place, f"K = {epochs[row]}", colors[row])
    starts = [0, *(np.flatnonzero(np.diff(winner)) + 1), len(prices)]
    for begin, end in pairwise(starts):
        middle = math.sqrt(prices[begin] * prices[end - 1])
        axes.text(middle, 0.9, f"K = {epochs[winner[begin]]}", ha="center", fontsize=8)
        if begin:
            axes.axvline(float(prices[begin]), color=INK, linewidth=0.5, linestyle=":")
    axes.set(
        title="The best K moves", xscale="log", xlabel="price of a step (ms)",
        ylabel="time, relative to the best K",
    )  # fmt: skip
    axes.set_ylim(0.8, top)


def two_stairs(runs: Mapping[str, tuple[Series, Series]], *, goal: float) -> Figure:
    """Draw the training returns of a few stairs, one line each.

    Args:
        runs: environment steps and episode returns by the name of the stair.
        goal: the return that counts as solved (reward).

    Returns:
        One panel.
    """
    looks = ((WORSE, "--"), (NEW_POLICY, "-"))
    with style():
        picture = figure(7, 3)
        axes = picture.subplots()
        for (name, (steps, returns)), (color, dash) in zip(runs.items(), looks, strict=False):
            axes.plot(_gaps(steps), _gaps(returns), color=color, linestyle=dash)
            label_line(axes, steps[-1] or 0, returns[-1] or 0, name, color)
        axes.axhline(goal, color=GOAL, linestyle="--", linewidth=1)
        axes.set(
            title="Two stairs, one seed each, live",
            xlabel="environment steps",
            ylabel="mean return of 100 episodes (reward)",
            ylim=(0, 530),
        )
        return picture


def many_epochs(curves: Mapping[str, Series]) -> Figure:
    """Draw how far the policy drifts as one batch is used again and again.

    Args:
        curves: for each policy loss, the mean kl_k3 of every epoch (nats).

    Returns:
        One panel; the KL axis is logarithmic.
    """
    looks = ((NEW_POLICY, "-"), (WORSE, "--"), (OLD_POLICY, ":"))
    with style():
        picture = figure(7, 3.4)
        axes = picture.subplots()
        for (name, values), (color, dash) in zip(curves.items(), looks, strict=False):
            epochs = np.arange(1, len(values) + 1)
            numbers = np.maximum(np.array(values, dtype=float), 1e-6)
            axes.plot(epochs, numbers, color=color, linestyle=dash)
            label_line(axes, epochs[-1], numbers[-1], name, color)
        axes.set(
            title="One batch, used again: only the clip stops asking for more",
            xlabel="epoch",
            ylabel="kl_k3 (nats)",
            yscale="log",
        )
        return picture


DIAGNOSTICS = (
    ("episode_return", "Return", "reward per episode"),
    ("kl_k3", "Step of the policy", "kl_k3 (nats)"),
    ("fraction", "Clip", "share of samples"),
    ("entropy", "Entropy", "nats"),
    ("value_loss", "Error of the critic", "value loss (reward²)"),
    ("ev", "Explained variance", "share explained"),
)
PAIRS = {
    "fraction": (("fraction_outside", "outside"), ("fraction_zero_gradient", "silent")),
    "ev": (("ev_lambda", "own targets"), ("ev_monte_carlo", "what came")),
}


def diagnostics(steps: Series, metrics: Mapping[str, Series]) -> Figure:
    """Draw the six panels that tell how a run is doing.

    Args:
        steps: environment steps at the end of each iteration.
        metrics: each metric over the iterations; None where it could not be computed.

    Returns:
        Six panels over the environment steps.
    """
    with style():
        picture = figure(9, 5)
        for axes, (name, title, unit) in zip(
            picture.subplots(2, 3, sharex=True).flat, DIAGNOSTICS, strict=True
        ):
            looks = ((OLD_POLICY, "--"), (NEW_POLICY, "-"))
            lines = PAIRS.get(name, ((name, ""),))
            for (metric, label), (color, dash) in zip(lines, looks[-len(lines) :], strict=True):
                look = {"marker": "."} if metric == "ev_monte_carlo" else {}
                dash = "" if look else dash  # few rows tell, so points and no line
                numbers = np.maximum(_gaps(metrics[metric]), -1.0 if name == "ev" else -np.inf)
                axes.plot(steps, numbers, color=color, linestyle=dash, label=label, **look)
            axes.set(title=title, ylabel=unit)
            if len(lines) > 1:
                axes.legend(fontsize=8, loc="upper right", ncols=2)
                if name == "ev":
                    axes.set_ylim(-1.1, 1.6)
                    axes.set_yticks([-1, 0, 1], ["−1 or less", "0", "1"])
                else:
                    axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
            if name == "value_loss":
                axes.set_yscale("log")
        picture.supxlabel("environment steps", fontsize=10)
        return picture


def seeds(runs: Sequence[tuple[Series, Series]], *, goal: float) -> Figure:
    """Draw every seed thin and their median thick.

    Args:
        runs: environment steps and episode returns of each run; a run that was stopped may be
            shorter, and the median ends with the shortest.
        goal: the return that counts as solved (reward).

    Returns:
        One panel.
    """
    with style():
        picture = figure(7, 3.4)
        axes = picture.subplots()
        for steps, returns in runs:
            axes.plot(_gaps(steps), _gaps(returns), color=NEW_POLICY, linewidth=0.8, alpha=0.5)
        shortest = min(len(returns) for _, returns in runs)
        table = np.array([_gaps(returns[:shortest]) for _, returns in runs])
        middle = np.median(table, axis=0)
        axes.plot(_gaps(runs[0][0][:shortest]), middle, color=NEW_POLICY, linewidth=2.6)
        axes.axhline(goal, color=GOAL, linestyle="--", linewidth=1)
        axes.annotate(
            f"solved: {goal:g}", (0, goal), xytext=(4, 4), textcoords="offset points", fontsize=9
        )
        axes.set(
            title=f"{len(runs)} seeds: each thin, their median thick",
            xlabel="environment steps",
            ylabel="mean return of 100 episodes (reward)",
            ylim=(0, 530),
        )
        return picture


def _gaps(values: Series) -> np.ndarray:
    """Numbers for a line, with holes where there were none."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def poles(strips: Mapping[str, np.ndarray], *, at: Sequence[int]) -> Figure:
    """Draw CartPole as a strip of frames, one row per policy.

    Args:
        strips: for each label, the observations of one episode, [steps, 4].
        at: the step of each frame.

    Returns:
        One row per policy; after the fall the frames are empty.
    """
    with style():
        picture = figure(9, 1.25 * len(strips))
        table = picture.subplots(len(strips), len(at), squeeze=False)
        for row, (label, observations) in zip(table, strips.items(), strict=True):
            row[0].set_ylabel(label, fontsize=9)
            for axes, t in zip(row, at, strict=True):
                _frame(axes, observations[t] if t < len(observations) else None, t)
        return picture


def _frame(axes: Axes, observation: np.ndarray | None, t: int) -> None:
    """Draw one moment: the track, the cart and the pole."""
    axes.set(xlim=(-2.45, 2.45), ylim=(-0.1, 2.15), xticks=[], yticks=[], aspect="equal")
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"step {t}", fontsize=9, fontweight="normal", loc="center")
    axes.plot([-2.4, 2.4], [0, 0], color=INK, linewidth=0.8)
    if observation is None:
        axes.text(0, 1, "fallen", ha="center", color=WORSE, fontsize=11)
        return
    place, angle = float(observation[0]), float(observation[2])
    axes.add_patch(Rectangle((place - 0.35, 0), 0.7, 0.35, facecolor=INK))
    tip = (place + 1.6 * math.sin(angle), 0.35 + 1.6 * math.cos(angle))
    wide = (0.07 * math.cos(angle), -0.07 * math.sin(angle))
    foot = (place, 0.35)
    corners = [
        (foot[0] - wide[0], foot[1] - wide[1]),
        (foot[0] + wide[0], foot[1] + wide[1]),
        (tip[0] + wide[0], tip[1] + wide[1]),
        (tip[0] - wide[0], tip[1] - wide[1]),
    ]
    axes.add_patch(Polygon(corners, facecolor=NEW_POLICY))
