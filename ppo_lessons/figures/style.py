"""How every figure looks: roles have fixed colours, and never a colour alone.

Colours are those of Okabe and Ito, which stay apart for colour-blind readers and in grey. A second
sign goes with each: a dash, a marker, a label at the line.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OLD_POLICY = "#767676"
NEW_POLICY = "#0072B2"
BETTER = "#009E73"  # advantage above 0
WORSE = "#D55E00"  # advantage below 0
SECOND = "#CC79A7"
GOAL = "#000000"
SHADE = "#EDEDED"
INK = "#222222"

SETTINGS: Any = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.facecolor": "white",
    "text.color": INK,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with the course's settings, and leave matplotlib's own as they were."""
    with mpl.rc_context(SETTINGS):
        yield


def figure(width: int | float, height: int | float) -> Figure:
    """Make an empty figure whose labels never overlap.

    Args:
        width: in inches; 9 fills a notebook's column.
        height: in inches.

    Returns:
        The figure; pyplot does not know it, so nothing leaks when a cell runs again.
    """
    return Figure(figsize=(width, height), layout="constrained")


def label_line(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    """Write a line's name at its end, in its own colour, instead of a legend far away."""
    axes.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", color=color, va="center",
        fontsize=9, annotation_clip=False,
    )  # fmt: skip
