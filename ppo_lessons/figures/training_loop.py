"""Pictures of the loop: its four stages, one squeeze from inside, runs, and the pole itself."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from ppo_lessons.figures.style import (
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
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
