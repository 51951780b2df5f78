"""Static twin of the widget RatioFromLogits: logits, probabilities and ratios of two policies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, figure, style


def ratio_from_logits_figure(
    logits_old: Sequence[float],
    logits: Sequence[float],
    probabilities_old: Sequence[float],
    probabilities: Sequence[float],
    ratios: Sequence[float],
    *,
    actions: str,
    title: str,
) -> Figure:
    """Draw the logits of two policies, and beside them the probabilities with their ratios.

    Args:
        logits_old: of the policy that drew the data.
        logits: of the policy as it is now.
        probabilities_old: of each action under the old policy.
        probabilities: of each action under the new policy.
        ratios: new over old probability.
        actions: a letter for each action.
        title: what one sees on the right.

    Returns:
        Two panels; the old policy is dashed, the new one filled.
    """
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        _pairs(left, logits_old, logits, actions)
        left.axhline(0, color=INK, linewidth=0.8)
        left.set(title="Logits", ylabel="logit", ylim=(-3.2, 3.2))
        _pairs(right, probabilities_old, probabilities, actions)
        tops = np.maximum(probabilities_old, probabilities)
        for place, (top, ratio) in enumerate(zip(tops, ratios, strict=True)):
            right.annotate(
                f"ratio {ratio:.2f}", (place, top), xytext=(0, 4), textcoords="offset points",
                ha="center", color=INK, fontsize=9,
            )  # fmt: skip
        right.set(title=title, ylabel="probability", ylim=(0, 1.1 * max(tops) + 0.1))
        right.legend(loc="upper right", fontsize=8)
        return picture


def _pairs(axes: Axes, old: Sequence[float], new: Sequence[float], actions: str) -> None:
    """Two bars for each action, side by side."""
    places = np.arange(len(actions))
    outline: Any = {"facecolor": "none", "edgecolor": OLD_POLICY, "linestyle": "--"}
    axes.bar(places - 0.2, old, width=0.36, label="old policy", **outline)
    axes.bar(places + 0.2, new, width=0.36, color=NEW_POLICY, label="new policy")
    for shift, heights in ((-0.2, old), (0.2, new)):  # a bar of height 0 is seen, too
        axes.hlines(heights, places + shift - 0.18, places + shift + 0.18, color=INK, linewidth=2)
    axes.set_xticks(places, list(actions))
    axes.set_xlabel("action")
