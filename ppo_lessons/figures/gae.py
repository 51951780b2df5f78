"""Pictures of GAE: surprises of one game, λ as a judge, what λ costs, and where it is best."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SECOND,
    WORSE,
    figure,
    label_line,
    style,
)

LOOKS = ((WORSE, "-"), (NEW_POLICY, "-."), (BETTER, "--"), (SECOND, (0, (5, 1, 1, 1, 1, 1))))


def surprises(forecasts: Sequence[float]) -> Figure:
    """Draw what is expected of a whole game, move by move, and by how much each move changes it.

    Args:
        forecasts: reward so far plus the critic's value, before the first move and after each;
            the last one is the return itself (reward).

    Returns:
        One panel; each step of the line is the TD error of a move at γ = 1.
    """
    numbers = np.asarray(forecasts, dtype=float)
    last = len(numbers) - 1
    with style():
        picture = figure(8, 3.4)
        axes = picture.subplots()
        edges = np.arange(last + 2) - 0.5
        axes.stairs(numbers, edges, baseline=None, color=OLD_POLICY, linewidth=2.4)
        for move in range(last):
            before, after = numbers[move], numbers[move + 1]
            up = after > before
            color = BETTER if up else WORSE
            axes.annotate(
                "", (move + 0.5, after), xytext=(move + 0.5, before),
                arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2.6,
                            "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
            words = f"move {move}: {after - before:+g}".replace("-", "−")
            axes.annotate(
                words, (move + 0.5, (before + after) / 2),
                xytext=(8 if up else -8, 0), textcoords="offset points", color=color,
                ha="left" if up else "right", va="center", fontsize=10,
            )  # fmt: skip
        places = [f"before\nmove {move}" for move in range(last)]
        axes.set_xticks(range(last + 1), [*places, "at the\nend"])
        axes.set(
            title="Each move surprises the critic: what it expects of the whole game",
            ylabel="expected return (reward)",
            ylim=(0, 1.15 * numbers.max()),
            xlim=(edges[0], edges[-1] + 0.1),
        )
        for place, number in enumerate(numbers):
            axes.text(place, number + 0.25, f"{number:g}", ha="center", fontsize=10, color=INK)
        return picture


def verdicts(lambdas: np.ndarray, advantages: np.ndarray) -> Figure:
    """Draw the advantage of every move of one game against λ.

    Args:
        lambdas: λ, ascending.
        advantages: GAE, one row for each λ and one column for each move (reward).

    Returns:
        One panel; a dot where a line crosses 0, that is, where the verdict turns.
    """
    with style():
        picture = figure(8, 3.4)
        axes = picture.subplots()
        axes.axhline(0, color=INK, linewidth=0.8)
        for move, (color, dash) in zip(range(advantages.shape[1]), LOOKS, strict=False):
            line = advantages[:, move]
            axes.plot(lambdas, line, color=color, linestyle=dash)
            label_line(axes, lambdas[-1], line[-1], f"move {move}", color)
            turns = np.flatnonzero(np.diff(np.sign(line)))
            for place in turns:
                share = line[place] / (line[place] - line[place + 1])
                zero = lambdas[place] + share * (lambdas[place + 1] - lambdas[place])
                axes.plot(zero, 0, "o", color=color, markersize=8)
                axes.annotate(
                    f"the verdict turns\nat λ = {zero:.2f}", (zero, 0), xytext=(10, -30),
                    textcoords="offset points", color=color, fontsize=9,
                )  # fmt: skip
        axes.set(
            title="Was the sacrifice, move 0, a good one? It depends on λ",
            xlabel="λ: 0 asks the critic after one move, 1 waits for the end",
            ylabel="advantage (reward)",
            xlim=(0, 1),
        )
        return picture


def two_biases(
    lambdas: np.ndarray,
    bias: np.ndarray,
    variance: np.ndarray,
    advantage_bias: np.ndarray,
    *,
    episodes: Sequence[int],
) -> Figure:
    """Draw the error of the gradient against λ, and beside it both biases.

    Args:
        lambdas: λ, ascending.
        bias: length of the gradient's bias, at each λ (reward).
        variance: trace of the covariance of one episode's gradient (reward²).
        advantage_bias: root mean square of the advantage's bias (reward).
        episodes: sizes of the batches; one line each.

    Returns:
        Two panels; on the left a dot is the lowest point of its line.
    """
    with style():
        picture = figure(9.5, 3.7)
        left, right = picture.subplots(1, 2, width_ratios=[1.25, 1])
        for count, (color, dash) in zip(episodes, LOOKS, strict=False):
            error = bias**2 + variance / count
            best = int(error.argmin())
            left.plot(lambdas, error, color=color, linestyle=dash)
            left.plot(lambdas[best], error[best], "o", color=color, markersize=8, clip_on=False)
            word = "episode" if count == 1 else "episodes"
            label_line(left, lambdas[-1], error[-1], f" {count:,} {word}", color)
        left.plot(lambdas, np.maximum(bias**2, 1e-9), color=OLD_POLICY, linestyle=":", zorder=5)
        late = 9 * len(lambdas) // 10
        left.annotate(
            "bias² alone", (lambdas[late], bias[late] ** 2), xytext=(-95, -12), fontsize=9,
            textcoords="offset points", color=OLD_POLICY,
            arrowprops={"arrowstyle": "-", "color": OLD_POLICY},
        )  # fmt: skip
        floor = 0.5 * float((bias**2 + variance / max(episodes)).min())
        left.set(
            title="More episodes: a larger λ pays",
            xlabel="λ",
            ylabel="squared error of the gradient",
            yscale="log",
            xlim=(0, 1),
            ylim=(floor, None),
        )
        right.plot(lambdas, bias, color=NEW_POLICY)
        right.plot(lambdas, advantage_bias, color=WORSE, linestyle="--")
        label_line(right, lambdas[-1], bias[-1], " gradient", NEW_POLICY)
        label_line(right, lambdas[-1], advantage_bias[-1], " advantage", WORSE)
        right.set(
            title="One bias falls, one rises",
            xlabel="λ",
            ylabel="size of the bias (reward)",
            xlim=(0, 1),
            ylim=(0, None),
        )
        return picture


def variances(lambdas: np.ndarray, curves: Mapping[str, np.ndarray]) -> Figure:
    """Draw the noise of one episode's gradient against λ, for several critics.

    Args:
        lambdas: λ, ascending.
        curves: for each critic, in words, the trace of the covariance at each λ (reward²).

    Returns:
        One panel; a dot is the lowest point of its line.
    """
    with style():
        picture = figure(8, 3.5)
        axes = picture.subplots()
        for (name, line), (color, dash) in zip(curves.items(), LOOKS, strict=False):
            lowest = int(line.argmin())
            axes.plot(lambdas, line, color=color, linestyle=dash, label=name)
            axes.plot(lambdas[lowest], line[lowest], "o", color=color, markersize=8)
        axes.set(
            title="More λ is not always more noise",
            xlabel="λ",
            ylabel="variance of one episode's gradient",
            xlim=(0, 1),
            ylim=(0, None),
        )
        axes.legend(fontsize=9, loc="upper center", title="the critic", title_fontsize=9)
        return picture


def best_lambdas(errors: np.ndarray, best: Mapping[int, np.ndarray]) -> Figure:
    """Draw which λ gives the least error, against how wrong the critic is.

    Args:
        errors: how far the critic falls short, as a share of the true value.
        best: for each number of episodes, the best λ at each error.

    Returns:
        One panel.
    """
    with style():
        picture = figure(8, 3.4)
        axes = picture.subplots()
        for (count, line), (color, dash) in zip(best.items(), LOOKS, strict=False):
            word = "episode" if count == 1 else "episodes"
            axes.plot(100 * errors, line, color=color, linestyle=dash, label=f"{count:,} {word}")
        axes.axhline(1, color=GOAL, linewidth=0.6)
        axes.set(
            title="The worse the critic and the larger the batch, the larger the best λ",
            xlabel="how much too little the critic says (%)",
            ylabel="best λ",
            xlim=(0, 100),
            ylim=(0.6, 1.02),
        )
        axes.legend(fontsize=9, loc="lower right")
        return picture
