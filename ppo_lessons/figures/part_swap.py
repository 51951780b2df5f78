"""Static twin of the widget PartSwap: scores with advantages, and what one token is pushed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, figure, style


def part_swap_figure(
    scores: Sequence[float],
    advantages: Sequence[float],
    pushes: Sequence[float],
    *,
    names: Sequence[str],
    title: str,
) -> Figure:
    """Draw four answers: what they earned and their advantage; beside it the push of one token.

    Args:
        scores: of the answers (reward).
        advantages: Â of each.
        pushes: of one token of each.
        names: of the answers, for people.
        title: of the picture.

    Returns:
        Two panels; in the right one the largest push has length 1.
    """
    places = np.arange(len(scores))
    largest = max(map(abs, pushes)) or 1.0
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        outline: Any = {"facecolor": "none", "edgecolor": OLD_POLICY, "linestyle": "--"}
        left.bar(places, scores, width=0.8, label="score", **outline)
        left.bar(places, advantages, width=0.5, color=NEW_POLICY, label="advantage Â")
        left.set(title="Scores, and the advantage Â", ylabel="reward, Â", ylim=(-2, 2))
        for place, advantage in zip(places, advantages, strict=True):
            left.annotate(
                f"{advantage:.2f}".replace("-", "−"), (place, -1.9), ha="center", fontsize=8,
            )  # fmt: skip
        left.legend(loc="upper right", fontsize=8)
        right.bar(places, np.array(pushes) / largest, width=0.5, color=NEW_POLICY, hatch="//")
        right.set(title="Push of one token", ylabel="of the largest", ylim=(-1.1, 1.1))
        for axes in (left, right):
            axes.set_xticks(places, names, fontsize=8)
            axes.axhline(0, color=INK, linewidth=0.8)
        picture.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return picture
