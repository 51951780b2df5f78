"""Static twin of the widget SeedCount: runs that were drawn, and intervals over their number."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, NEW_POLICY, WORSE, figure, style

COLORS, MARKS = (NEW_POLICY, WORSE), ("o", "D")
MOST = 500  # the largest return of CartPole


def bar(side: int) -> Any:
    """Give the look of an interval: a thick bar, or a thin one with ends."""
    look = ({"linewidth": 5, "solid_capstyle": "butt"}, {"linewidth": 1.6, "marker": "_"})[side]
    return {"color": COLORS[side], **look}


def seed_count_figure(
    scores: Sequence[Sequence[float]],
    middles: Sequence[float],
    curves: Sequence[Sequence[Sequence[float]]],
    *,
    all_num_seeds: Sequence[int],
    num_seeds: int,
    names: Sequence[str],
    verdict: str,
) -> Figure:
    """Draw the runs of two settings, and their intervals over the number of seeds.

    Args:
        scores: of the runs that were drawn, for each of two settings (reward).
        middles: interquartile mean of each (reward).
        curves: for each setting, low and high for each number of seeds (reward).
        all_num_seeds: the numbers of seeds of `curves`.
        num_seeds: how many seeds there are now.
        names: of the two settings.
        verdict: in words.

    Returns:
        Two panels.
    """
    now = list(all_num_seeds).index(num_seeds)
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        for side, (runs, middle) in enumerate(zip(scores, middles, strict=True)):
            color, mark = COLORS[side], MARKS[side]
            face = color if side == 0 else "none"
            places = [side - 0.3 + 0.6 * (place + 0.5) / len(runs) for place in range(len(runs))]
            left.plot(
                places, runs, mark, color=color, markerfacecolor=face, markersize=4.5, alpha=0.8
            )
            low, high = curves[side][now]
            left.plot([side + 0.42] * 2, [low, high], **bar(side))
            left.plot(side + 0.42, middle, mark, color=GOAL, markersize=8, markerfacecolor="white")
            for place, (low, high) in enumerate(curves[side]):
                at = place + (-0.12, 0.12)[side]
                label = names[side] if place == 0 else None
                right.plot([at, at], [low, high], label=label, **bar(side))
        left.set_xticks([0, 1], names)
        left.set(xlim=(-0.5, 1.6), ylim=(0, MOST * 1.04), ylabel="score (reward)")
        left.set_title(f"{num_seeds} runs of each: {verdict}")
        right.axvline(now, color=GOAL, linestyle=":", label="seeds now", zorder=0)
        right.set_xticks(range(len(all_num_seeds)), [str(count) for count in all_num_seeds])
        right.set(ylim=(0, MOST * 1.04), xlabel="seeds of each", ylabel="95 % interval of the IQM")
        right.set_title("Intervals shrink as seeds are added")
        right.legend(loc="upper right", fontsize=8, frameon=True, framealpha=1, edgecolor="none")
        return picture
