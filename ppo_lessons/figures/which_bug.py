"""Static twin of the widget WhichBug: six metrics of a run beside the healthy one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style

Run = Mapping[str, Sequence[float]]
LOGARITHMIC = {"kl_k3": (1e-6, 10), "value_loss": (1e-3, 100)}
LIMITS = {
    "episode_return": (0, 510),
    "silent_share": (0, 1),
    "entropy": (0, 0.72),
    "ev_lambda": (-0.5, 1),
}


def which_bug_figure(
    healthy: Run,
    run: Run,
    *,
    iteration: int,
    names: Mapping[str, str],
    betrayed_by: str,
    title: str,
    lines: tuple[str, str],
) -> Figure:
    """Draw a run with a bug and the healthy run in six panels, and frame the one that betrays it.

    Args:
        healthy: metrics over the iterations.
        run: the same of the other run.
        iteration: at which both are marked, from 1.
        names: of the six panels, for people, in order.
        betrayed_by: the panel that is framed; none if it is empty.
        title: of the picture.
        lines: the line as it should be, and as it is.

    Returns:
        Two rows of three panels.
    """
    with style():
        picture = figure(9, 4.7)
        panels = picture.subplots(2, 3, sharex=True)
        for axes, (metric, name) in zip(panels.flat, names.items(), strict=True):
            _panel(axes, healthy[metric], run[metric], metric, iteration)
            axes.set_title(name, fontsize=9)
            if metric == betrayed_by:
                axes.set_title(f"{name}: it shows here", fontsize=9, color=WORSE)
                for spine in axes.spines.values():
                    spine.set(visible=True, color=WORSE, linewidth=2.5)
        for axes in panels[1]:
            axes.set_xlabel("iteration")
        panels[0, 0].legend(fontsize=8)
        picture.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        right, wrong = lines
        words = f"should be: {right or '(no such line)'}\n            is: {wrong}"
        picture.supxlabel(words, x=0.01, ha="left", fontsize=8, family="DejaVu Sans Mono")
        return picture


def _panel(
    axes: Axes, healthy: Sequence[float], run: Sequence[float], metric: str, iteration: int
) -> None:
    looks: Any = (
        (healthy, {"color": OLD_POLICY, "linestyle": "--", "label": "healthy"}),
        (run, {"color": NEW_POLICY, "label": "this run"}),
    )
    low, high = LOGARITHMIC.get(metric) or LIMITS[metric]
    if metric in LOGARITHMIC:
        axes.set_yscale("log")
    for numbers, look in looks:
        shown = np.clip(np.array(numbers, dtype=float), low, high)
        axes.plot(np.arange(1, len(shown) + 1), shown, linewidth=1.5, **look)
        axes.plot(iteration, shown[iteration - 1], "o", ms=4, color=look["color"])
    axes.axvline(iteration, color=INK, linewidth=1, linestyle=":")
    axes.set_ylim(low, high)
