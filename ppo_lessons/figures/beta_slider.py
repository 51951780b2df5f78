"""Static twin of the widget BetaSlider: four metrics of three runs over the iterations."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from ppo_lessons.figures.style import NEW_POLICY, figure, style

LOOKS = ("-", "--", ":")


def beta_slider_figure(
    iterations: Sequence[int],
    curves: Mapping[str, Sequence[Sequence[float]]],
    *,
    log: Sequence[str],
    title: str,
    xlabel: str,
) -> Figure:
    """Draw some metrics, one above the other, with a line for each seed.

    Args:
        iterations: of the points.
        curves: by the name of the metric, unit included; one for each of three seeds.
        log: names of those on a logarithmic axis.
        title: what one sees.
        xlabel: below the last.

    Returns:
        One strip for each metric.
    """
    with style():
        picture = figure(7, 6.4)
        strips: Any = picture.subplots(len(curves), 1, sharex=True)
        for axes, (name, rows) in zip(strips, curves.items(), strict=True):
            for seed, (row, look) in enumerate(zip(rows, LOOKS, strict=True)):
                axes.plot(iterations, row, color=NEW_POLICY, linestyle=look, label=f"seed {seed}")
            if name in log:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=min(0, *(min(row) for row in rows)))
            axes.set_title(name, fontsize=9)
        strips[0].legend(fontsize=8, loc="best")
        strips[-1].set_xlabel(xlabel)
        picture.suptitle(title)
        return picture
