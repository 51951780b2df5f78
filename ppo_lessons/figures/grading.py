"""Pictures of a class: how the points are spread, and which checks were passed by few."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ppo_lessons.figures.style import GOAL, NEW_POLICY, figure, style

BINS = 10
# The same colours, lighter, where the page around is dark.
DARK_INK, DARK_PAPER, DARK_BAR = "#E6E6E6", "#1B1D21", "#56B4E9"
DARK: Any = {
    "axes.edgecolor": DARK_INK,
    "axes.facecolor": DARK_PAPER,
    "axes.labelcolor": DARK_INK,
    "axes.titlecolor": DARK_INK,
    "figure.facecolor": DARK_PAPER,
    "savefig.facecolor": DARK_PAPER,
    "text.color": DARK_INK,
    "xtick.color": DARK_INK,
    "ytick.color": DARK_INK,
}


@contextmanager
def look(dark: bool) -> Iterator[tuple[str, str]]:
    """Draw for light or dark surroundings; gives the colours of bars and of marks."""
    with style(), mpl.rc_context(DARK if dark else {}):
        yield (DARK_BAR, DARK_INK) if dark else (NEW_POLICY, GOAL)


def points_figure(
    points: Sequence[float], max_points: int | float, *, dark: bool = False
) -> Figure:
    """Draw how many students have how many points, in ten bins.

    Args:
        points: of each student that was graded; at least one.
        max_points: what the assignment can give.
        dark: whether the page around is dark.

    Returns:
        One panel.
    """
    middle = float(np.median(points))
    edges = np.linspace(0, max_points, BINS + 1)
    # The last bin holds its upper edge too: full points belong to somebody.
    counts, _ = np.histogram(np.clip(points, 0, max_points), bins=edges)
    with look(dark) as (bar, mark):
        picture = figure(8, 3.2)
        axes = picture.subplots()
        drawn = axes.bar(edges[:-1], counts, np.diff(edges) * 0.92, align="edge", color=bar)
        labels = [str(count) if count else "" for count in counts]
        paper = {"facecolor": picture.get_facecolor(), "edgecolor": "none", "pad": 1.0}
        for text in axes.bar_label(drawn, labels, padding=3, fontsize=9):
            text.set(bbox=paper if text.get_text() else None, zorder=5)  # in front of the median
        axes.axvline(middle, color=mark, linestyle="--", linewidth=1.4, label="median")
        beside = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.3}
        axes.legend(**beside, frameon=False, fontsize=9)  # above the bars, it hides none
        who = f"Half of the {len(points)} graded have"
        if len(points) == 1:
            who = "The one that was graded has"
        more = "" if len(points) == 1 else " or more"
        axes.set_title(f"{who} {middle:g} of {max_points:g} points{more}")
        axes.set(xlabel="points", ylabel="students", xlim=(0, max_points))
        axes.set_xticks(edges, [f"{edge:g}" for edge in edges])
        axes.set_ylim(0, max(counts) * 1.15)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=False, axis="x")
        return picture


def checks_figure(titles: Sequence[str], shares: Sequence[float], *, dark: bool = False) -> Figure:
    """Draw the share of students that passed each check.

    Args:
        titles: of the checks, hardest first; at least one.
        shares: in [0, 1].
        dark: whether the page around is dark.

    Returns:
        One panel.
    """
    names = [fill(title, 52) for title in titles]
    lines = sum(name.count("\n") + 1 for name in names)
    with look(dark) as (bar, _):
        picture = figure(8, 1.2 + 0.2 * lines + 0.12 * len(names))
        axes = picture.subplots()
        places = np.arange(len(names))
        drawn = axes.barh(places, [100 * share for share in shares], 0.62, color=bar)
        axes.bar_label(drawn, [f"{100 * share:.0f} %" for share in shares], padding=3, fontsize=9)
        axes.set_yticks(places, names, fontsize=9)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set(xlim=(0, 112), xlabel="share of the graded students, in %")
        axes.set_xticks(range(0, 101, 20))
        axes.set_title("Passed by the fewest")
        axes.grid(visible=False, axis="y")
        return picture
