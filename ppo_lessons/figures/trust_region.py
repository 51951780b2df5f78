"""Pictures of the trust region: overshoot, way back, KL balls, writings, prices, the promise."""

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

LEVELS = (1, 3, 6, 10, 15)  # of J, in the pictures of the fork


def overshoot(
    chances: np.ndarray,
    gained: np.ndarray,
    promised: np.ndarray,
    *,
    old: float,
    balls: Mapping[float, float],
) -> Figure:
    """Draw what L promises and what J gains, with the edges of some KL balls.

    Args:
        chances: probability of the action, ascending from the old policy's.
        gained: J minus J of the old policy, there (reward).
        promised: L there (reward).
        old: the old policy's probability.
        balls: for each KL (nats), the probability at which it is reached.

    Returns:
        One panel; the smallest ball is shaded.
    """
    with style():
        picture = figure(9, 3.8)
        axes = picture.subplots()
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.axvspan(old, min(balls.values()), color=SHADE)
        axes.plot(chances, promised, color=NEW_POLICY, linestyle="--", linewidth=2.4)
        axes.plot(chances, gained, color=INK, linewidth=2.4)
        label_line(axes, chances[-1], promised[-1], "L promises", NEW_POLICY)
        label_line(axes, chances[-1], gained[-1], "J gains", INK)
        highest = int(np.argmax(gained))
        axes.plot(chances[highest], gained[highest], "o", color=BETTER)
        _note(axes, "best", (chances[highest], gained[highest]), (-10, -18), BETTER)
        top = 1.08 * promised.max()
        for kl, chance in balls.items():
            axes.axvline(chance, color=OLD_POLICY, linestyle=":", linewidth=1.2)
            _note(axes, f"KL {kl:g}", (chance, top), (3, -12), OLD_POLICY)
        axes.set(
            title="L goes on rising, J turns round",
            xlabel="probability of action 1 (the old policy is at the left end)",
            ylabel="reward",
            xlim=(old, chances[-1]),
            ylim=(1.08 * min(gained.min(), -0.02), top),
        )
        return picture


def _note(
    axes: Axes, text: str, place: tuple[float, float], shift: tuple[int, int], color: str
) -> None:
    axes.annotate(
        text, place, xytext=shift, textcoords="offset points", color=color, fontsize=9,
        annotation_clip=False,
    )  # fmt: skip


def recovery(chances: Mapping[float, Sequence[float]]) -> Figure:
    """Draw how the probability of the good action comes back, from several depths.

    Args:
        chances: for each start, the probability after every step.

    Returns:
        One panel with steps on a logarithmic axis.
    """
    looks = ((NEW_POLICY, "-"), (SECOND, "--"), (WORSE, "-."))
    with style():
        picture = figure(9, 3.4)
        axes = picture.subplots()
        for (start, values), (color, line) in zip(chances.items(), looks, strict=False):
            axes.plot(np.arange(1, len(values)), values[1:], color=color, linestyle=line)
            middle = int(np.argmax(np.array(values) >= 0.5))
            axes.plot(middle, values[middle], "o", color=color)
            _note(axes, f"from {start:g}:\n{middle} steps", (middle, values[middle]),
                  (-58, 10), color)  # fmt: skip
        axes.axhline(0.5, color=GOAL, linestyle="--", linewidth=1)
        axes.set(
            title="Ten times rarer, nearly ten times as long",
            xlabel="steps along the exact gradient (logarithmic)",
            ylabel="probability of the good action",
            ylim=(0, 1),
            xscale="log",
        )
        return picture


def balls(
    chances: Sequence[float],
    edges: Sequence[tuple[float, float]],
    logit_edges: Sequence[tuple[float, float]],
    *,
    max_kl: float,
) -> Figure:
    """Draw the same KL ball around several policies, in probability and in logits.

    Args:
        chances: the old policy's probability of an action.
        edges: the lowest and highest probability within the ball.
        logit_edges: the same edges as a change of the logit.
        max_kl: the ball's radius (nats).

    Returns:
        Two panels, one row for each policy.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2, sharey=True)
        rows = np.arange(len(chances))
        for axes, intervals, centres in (
            (left, edges, chances),
            (right, logit_edges, [0.0] * len(chances)),
        ):
            for row, (low, high), centre in zip(rows, intervals, centres, strict=True):
                axes.plot([low, high], [row, row], color=NEW_POLICY, linewidth=6,
                          solid_capstyle="butt")  # fmt: skip
                axes.plot(centre, row, "|", color=INK, markersize=14, markeredgewidth=2)
        left.set(
            title=f"KL ≤ {max_kl:g}: narrow near 0 and 1 ...",
            xlabel="probability",
            xlim=(-0.02, 1.02),
            xticks=(0, 0.25, 0.5, 0.75, 1),
            ylabel="old policy",
            ylim=(-0.6, len(chances) - 0.4),
        )
        left.set_yticks(rows, [f"p = {chance:g}" for chance in chances])
        right.set(
            title="... and wide there in logits",
            xlabel="change of the logit",
            xticks=(-2, -1, 0, 1, 2),
            xlim=(-2.3, 2.3),
        )
        return picture


def writings(
    paths: Mapping[str, Mapping[str, np.ndarray]], grid: np.ndarray, returns: np.ndarray
) -> Figure:
    """Draw the paths of two kinds of step, each for one policy written in several ways.

    Args:
        paths: for each kind of step, for each way of writing, the two probabilities after every
            step, [steps, 2].
        grid: probabilities along either axis.
        returns: J at [second, first] of the grid (reward).

    Returns:
        One panel for each kind of step, with lines of equal J.
    """
    looks = ((NEW_POLICY, "-", "o"), (WORSE, "--", "s"), (BETTER, ":", "^"))
    with style():
        picture = figure(9, 4.3)
        panels = picture.subplots(1, len(paths), sharey=True, squeeze=False)[0]
        for axes, (kind, ways) in zip(panels, paths.items(), strict=True):
            axes.contour(grid, grid, returns, levels=LEVELS, colors=OLD_POLICY, linewidths=0.7)
            sizes = (9.0, 6.5, 4.0)
            for (name, path), (color, line, mark), size in zip(
                ways.items(), looks, sizes, strict=True
            ):
                axes.plot(path[:, 0], path[:, 1], color=color, linestyle=line, marker=mark,
                          markersize=size, markerfacecolor="none", label=name)  # fmt: skip
            axes.plot(*next(iter(ways.values()))[0], "*", color=INK, markersize=13)
            axes.set(title=kind, xlabel="probability of going", xlim=(0, 1), ylim=(0, 1.02))
            axes.set_xticks((0.2, 0.4, 0.6, 0.8))
        ends = np.interp(LEVELS, returns[:, -1], grid)  # where the lines meet the right edge
        for level, end in zip(LEVELS, ends, strict=True):
            label_line(panels[-1], 1, end, f"J = {level:g}", OLD_POLICY)
        panels[0].set_ylabel("probability of being right")
        panels[0].legend(fontsize=9, loc="lower right", frameon=True, edgecolor="none")
        return picture


def prices(needed: Sequence[float], kl_at_fixed: Sequence[float], *, max_kl: float) -> Figure:
    """Draw the price that each step needs, and the KL of each step at the first one's price.

    Args:
        needed: β at which the step has the wanted KL (reward per nat).
        kl_at_fixed: KL of each step at the β of the first (nats).
        max_kl: the wanted KL (nats).

    Returns:
        Two panels over steps.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2)
        steps = np.arange(len(needed))
        left.plot(steps, needed, "o-", color=NEW_POLICY)
        left.set(
            title="The price that keeps the step on the fence",
            xlabel="step",
            ylabel="β (reward per nat)",
            ylim=(0, None),
        )
        right.plot(steps, kl_at_fixed, "s-", color=WORSE)
        right.axhline(max_kl, color=GOAL, linestyle="--", linewidth=1)
        _note(right, "wanted", (steps[3], max_kl), (0, -12), GOAL)
        right.set(
            title="At the first step's price",
            xlabel="step",
            ylabel="KL of the step, by the parabola (nats)",
            ylim=(0, None),
        )
        return picture


def adapting(
    distances: Mapping[str, Sequence[float]], betas: Sequence[float], *, target_kl: float
) -> Figure:
    """Draw the KL of each iteration under a fixed and an adaptive price, and that price.

    Args:
        distances: for each kind of penalty, KL at the end of each iteration (nats).
        betas: the adaptive β of each iteration.
        target_kl: the KL that is wanted (nats).

    Returns:
        Two panels over iterations, with logarithmic axes.
    """
    looks = ((WORSE, "s--"), (NEW_POLICY, "o-"))
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        left.axhspan(target_kl / 1.5, 1.5 * target_kl, color=SHADE)
        left.axhline(target_kl, color=GOAL, linestyle="--", linewidth=1)
        for (name, values), (color, line) in zip(distances.items(), looks, strict=True):
            left.plot(np.arange(1, len(values) + 1), values, line, color=color, label=name)
        left.set(
            title="The fixed price never lets go",
            xlabel="iteration",
            ylabel="KL (nats)",
            yscale="log",
        )
        left.legend(fontsize=9, loc="center right")
        right.plot(np.arange(1, len(betas) + 1), betas, "o-", color=NEW_POLICY)
        right.set(
            title="The adaptive one halves until it fits",
            xlabel="iteration",
            ylabel="β",
            yscale="log",
        )
        return picture


def promise(panels: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> Figure:
    """Draw what J gains, what L promises and what the theorem guarantees, at two scales.

    Args:
        panels: two, a wide one and a narrow one. Each holds the change of the probability,
            ascending from 0, and there: J minus J of the old policy, L, and the lower bound minus
            J of the old policy (reward).

    Returns:
        One panel for each; the narrow one counts in millionths. The best step by J is marked in
        the first, the best by the lower bound in the second.
    """
    titles = ("The best step ...", "... and the one that is guaranteed")
    with style():
        picture = figure(9, 3.6)
        for n, axes in enumerate(picture.subplots(1, 2)):
            scale, unit = ((1, ""), (1e6, "millionths of "))[n]
            steps, gained, promised, guaranteed = (scale * values for values in panels[n])
            axes.axhline(0, color=INK, linewidth=0.6)
            axes.plot(steps, gained, color=INK, linewidth=3, label="J gains")
            axes.plot(steps, promised, color=NEW_POLICY, linestyle="--", label="L promises")
            axes.plot(steps, guaranteed, color=WORSE, linestyle="-.", label="guaranteed")
            curve, color = ((gained, BETTER), (guaranteed, WORSE))[n]
            best = int(np.argmax(curve))
            axes.plot(steps[best], curve[best], "o", color=color)
            top = 1.1 * promised.max()
            axes.set(
                title=titles[n],
                xlabel="change of the probability" + (" (millionths)" if unit else ""),
                ylabel=f"{unit}reward",
                ylim=(-0.3 * top, top),
                xlim=(0, steps[-1]),
            )
            if n == 0:
                axes.legend(fontsize=9, loc="upper left")
        return picture
