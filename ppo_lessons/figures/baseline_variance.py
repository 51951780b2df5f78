"""Static twin of the widget BaselineVariance: what one pull pushes, and how much that varies."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, SECOND, figure, style

LOOKS = (("--", OLD_POLICY), ("-", NEW_POLICY), (":", SECOND))
HIGHEST_PUSH = 10


def baseline_variance_figure(
    baselines: Sequence[float],
    pushes: Sequence[Sequence[float]],
    variances: Sequence[float],
    *,
    paid: Sequence[float],
    mean: float,
    baseline: float,
    variance: float,
    marks: Mapping[str, tuple[float, float]],
    tallest: int | float,
    names: Sequence[str],
) -> Figure:
    """Draw the push of each lever and their variance, both over the baseline.

    Args:
        baselines: places on the horizontal axis (reward).
        pushes: for each of them, the push of each lever (reward per unit of the logit).
        variances: for each of them, the variance of a push (reward²).
        paid: what each lever pays (reward).
        mean: mean push.
        baseline: the chosen one.
        variance: with it.
        marks: by name, a baseline and the variance that it leaves.
        tallest: end of the axis of variances; what lies above is marked at the edge.
        names: of the levers.

    Returns:
        Two panels.
    """
    b, table = np.array(baselines), np.array(pushes)
    with style():
        picture = figure(9, 3.8)
        left, right = picture.subplots(1, 2)
        left.axhline(0, color=INK, linewidth=0.8)
        for lever, (dash, color) in zip(range(table.shape[1]), LOOKS, strict=False):
            left.plot(b, table[:, lever], dash, color=color, label=names[lever])
            left.plot(paid[lever], 0, "o", ms=12, mfc="white", mec=color, mew=1.8)
            left.annotate(str(lever), (paid[lever], 0), ha="center", va="center", fontsize=9)
        left.axhline(mean, color=INK, linewidth=2.4, alpha=0.8, label=f"mean push {mean:.2f}")
        nearest = table[np.abs(b - baseline).argmin()]
        left.plot([baseline] * len(nearest), nearest, "o", ms=5, color=INK)
        left.set(title="What one pull pushes", ylabel="score·(pay − b)")
        left.set(ylim=(-HIGHEST_PUSH, HIGHEST_PUSH))
        left.legend(loc="lower left", fontsize=8, frameon=True, framealpha=0.9, edgecolor="none")
        right.plot(b, variances, color=NEW_POLICY)
        for (name, (place, _)), dash in zip(marks.items(), ("-.", ":"), strict=False):
            right.axvline(place, color=INK, linewidth=1.2, linestyle=dash, label=name)
        right.set(title=f"Variance at b = {baseline:.1f}: {variance:.2f}".replace("-", "−"))
        right.set(ylabel="variance (reward²)", ylim=(-0.04 * tallest, tallest))
        shown = min(variance, 0.96 * tallest)
        mark = "D" if variance <= tallest else "^"
        right.plot(
            baseline, shown, mark, ms=10, mfc="white", mec=GOAL, mew=1.8, label="your b", zorder=5
        )
        right.legend(loc="lower left", fontsize=8, frameon=True, framealpha=0.9, edgecolor="none")
        for axes in (left, right):
            axes.axvline(baseline, color=OLD_POLICY, linewidth=1, zorder=0)
            axes.set(xlabel="baseline b (reward)", xlim=(1.1 * b[0], 1.1 * b[-1]))
        return picture
