"""The staircase: one part more on each stair, seen from the lesson that has reached it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, figure, style

LATER = "#BBBBBB"


def staircase(study: Mapping[str, Any], *, upto: str) -> Figure:
    """Draw all seeds of every stair up to one: how well it ends, how soon it is solved.

    Args:
        study: `recorded("staircase")`.
        upto: name of the stair that the lesson has reached; the later ones keep their names only.

    Returns:
        Three panels with one row per stair: return at the end, environment steps and CPU seconds
        until solved. A dot is a seed, a bar the (upper) median of all seeds; those that never got
        there count as infinite, so where half of them did not there is no bar.

    Raises:
        ValueError: if there is no such stair.
    """
    names = list(study["runs"])
    if upto not in names:
        raise ValueError(f"upto is {upto!r}; expected one of {', '.join(names)}. Choose a stair.")
    reached = names[: names.index(upto) + 1]
    with style():
        picture = figure(9.4, 0.9 + 0.5 * len(names))
        panels = picture.subplots(1, 3, sharey=True, width_ratios=[1.15, 1, 1])
        for row, name in enumerate(names):
            if name in reached:
                color = NEW_POLICY if name == upto else OLD_POLICY
                runs = study["runs"][name]
                final = [run["final_return"] for run in runs]
                _dots(panels[0], row, final, color)
                _solved(panels[1], row, [run["steps_to_solve"] for run in runs], color, 1e3)
                _solved(panels[2], row, [run["cpu_seconds_to_solve"] for run in runs], color, 1.0)
        panels[0].axvline(study["solved_at"], color=GOAL, linewidth=1, linestyle="--")
        panels[0].set(title="Return at the end", xlabel=f"reward per episode, {study['env']}")
        panels[1].set(title="Steps until solved", xlabel="thousand environment steps")
        panels[2].set(title="Time until solved", xlabel="CPU seconds")
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        for label, name in zip(panels[0].get_yticklabels(), names, strict=True):
            label.set_color(INK if name in reached else LATER)
            label.set_fontweight("bold" if name == upto else "normal")
        for axes in panels[1:]:
            axes.set_xlim(left=0)
        return picture


def _dots(axes: Axes, row: int, numbers: Sequence[float], color: str) -> None:
    """One row of dots, spread a little so that equal ones stay apart, and their median.

    Infinite numbers count in the median, and are not drawn.
    """
    known = [number for number in numbers if np.isfinite(number)]
    spread = row + np.linspace(-0.22, 0.22, len(known))
    axes.plot(known, spread, "o", color=color, markersize=4, alpha=0.8)
    middle = float(np.sort(numbers)[len(numbers) // 2])
    if np.isfinite(middle):
        axes.plot([middle, middle], [row - 0.34, row + 0.34], color=color, linewidth=3)


def _solved(axes: Axes, row: int, numbers: Sequence[float | None], color: str, unit: float) -> None:
    """Dots of the seeds that were solved, and beside the panel how many of all those are."""
    _dots(axes, row, [np.inf if each is None else each / unit for each in numbers], color)
    count = sum(number is not None for number in numbers)
    axes.annotate(
        f"{count} of {len(numbers)}", (1.02, row), xycoords=axes.get_yaxis_transform(),
        ha="left", va="center", fontsize=9, color=color,
    )  # fmt: skip
