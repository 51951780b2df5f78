"""Static twin of the widget WhichRun: five dials of a run beside a healthy one, and the answers."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style

Run = Mapping[str, Sequence[float]]
LIMITS = {
    "score": (-1, 3.5),
    "kl_reference": (0.01, 100),
    "length": (0, 10.5),
    "fraction_outside": (0, 1),
    "ev_monte_carlo": (-0.5, 1),
    "success": (0, 1),
}


def which_run_figure(
    healthy: Run,
    run: Run,
    *,
    look: int,
    iterations: Sequence[int],
    names: Mapping[str, str],
    betrayed_by: str,
    title: str,
) -> Figure:
    """Draw a run and a healthy one in six panels, and frame the dial that tells most.

    Args:
        healthy: numbers at each look.
        run: the same of the other run.
        look: at which both are marked, from 1.
        iterations: of the looks.
        names: of the six panels, for people, in order.
        betrayed_by: the panel that is framed; none if it is empty.
        title: of the picture.

    Returns:
        Two rows of three panels.
    """
    with style():
        picture = figure(9, 4.7)
        panels = picture.subplots(2, 3, sharex=True)
        for axes, (metric, name) in zip(panels.flat, names.items(), strict=True):
            _panel(axes, (healthy[metric], run[metric]), metric, look, iterations)
            axes.set_title(name, fontsize=9)
            if metric == betrayed_by:
                axes.set_title(f"{name}: here", fontsize=9, color=WORSE)
                for spine in axes.spines.values():
                    spine.set(visible=True, color=WORSE, linewidth=2.5)
        for axes in panels[1]:
            axes.set_xlabel("iteration")
        panels[0, 0].legend(fontsize=8)
        picture.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return picture


def _panel(
    axes: Axes,
    both: tuple[Sequence[float], Sequence[float]],
    metric: str,
    look: int,
    iterations: Sequence[int],
) -> None:
    low, high = LIMITS[metric]
    if metric == "kl_reference":
        axes.set_yscale("log")
    for numbers, colour, dash, name in (
        (both[0], OLD_POLICY, "--", "healthy"),
        (both[1], NEW_POLICY, "-", "this run"),
    ):
        shown = np.clip(np.array(numbers, dtype=float), low, high)
        axes.plot(iterations, shown, linewidth=1.5, color=colour, linestyle=dash, label=name)
        axes.plot(iterations[look - 1], shown[look - 1], "o", ms=4, color=colour)
    axes.axvline(iterations[look - 1], color=INK, linewidth=1, linestyle=":")
    axes.set_ylim(low, high)
