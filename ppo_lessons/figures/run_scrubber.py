"""Static twin of the widget RunScrubber: two runs as curves, and their maps at one iteration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, figure, style

BLUES = LinearSegmentedColormap.from_list("blues", ["white", NEW_POLICY])
STRIPS = {
    "episode_return": "return (reward per episode)",
    "kl_k3": "KL of one iteration, kl_k3 (nats)",
    "fraction_outside": "share of ratios outside 1 ± ε",
    "entropy": "entropy (nats)",
}
MAPS = {"policy": "push right (%)", "values": "value V"}
LEAST_KL = 1e-4


def run_scrubber_figure(
    runs: Mapping[str, Mapping[str, Sequence[Any]]],
    *,
    iteration: int,
    angles: Sequence[float],
    velocities: Sequence[float],
    limit: float,
) -> Figure:
    """Draw two runs over their iterations, and what policy and critic say after one of them.

    Args:
        runs: by name; the metrics of `STRIPS` over the iterations, and the maps of `MAPS`, each a
            text of whole numbers, row by row.
        iteration: after which the maps are drawn, from 1.
        angles: of the pole (rad), one for each column of a map.
        velocities: of the angle (rad/s), one for each row.
        limit: the KL that is marked (nats).

    Returns:
        Four strips on the left, the first run dashed and grey; two by two maps on the right.
    """
    with style():
        picture = figure(10, 5.6)
        halves: Any = picture.subfigures(1, 2, width_ratios=(1.1, 1))
        left, right = halves
        strips = left.subplots(4, 1, sharex=True)
        for axes, (metric, title) in zip(strips, STRIPS.items(), strict=True):
            _strip(axes, {name: run[metric] for name, run in runs.items()}, iteration)
            axes.set_title(title, fontsize=9)
        strips[0].legend(fontsize=8, loc="upper left")
        strips[1].set_yscale("log")
        strips[1].axhline(limit, color=GOAL, linestyle=":", linewidth=1)
        strips[-1].set(xlabel="iteration")
        grid = right.subplots(2, 2, sharex=True, sharey=True)
        for row, (name_of_map, title) in zip(grid, MAPS.items(), strict=True):
            for axes, (name, run) in zip(row, runs.items(), strict=True):
                _map(axes, run[name_of_map][iteration - 1], angles, velocities)
                axes.set_title(f"{name}\n{title}", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("angle of the pole (rad)", fontsize=9)
        for axes in grid[:, 0]:
            axes.set_ylabel("its velocity (rad/s)", fontsize=9)
        return picture


def _strip(axes: Axes, curves: Mapping[str, Sequence[float]], iteration: int) -> None:
    looks: Any = ({"color": OLD_POLICY, "linestyle": "--"}, {"color": NEW_POLICY})
    for (name, numbers), look in zip(curves.items(), looks, strict=True):
        shown = np.maximum(np.array(numbers, dtype=float), LEAST_KL)
        axes.plot(np.arange(1, len(shown) + 1), shown, label=name, **look)
        axes.plot(iteration, shown[iteration - 1], "o", ms=4, color=look["color"])
    axes.axvline(iteration, color=INK, linewidth=1, linestyle=":")


def _map(axes: Axes, text: str, angles: Sequence[float], velocities: Sequence[float]) -> None:
    numbers = np.array(text.split(), dtype=float).reshape(len(velocities), len(angles))
    axes.pcolormesh(angles, velocities, numbers, cmap=BLUES, vmin=0, vmax=100, shading="nearest")
    middle = len(velocities) // 2
    for column in (1, len(angles) // 2, len(angles) - 2):
        number = numbers[middle, column]
        axes.text(
            angles[column], velocities[middle], f"{number:.0f}".replace("-", "−"),
            color="white" if number > 60 else INK, ha="center", va="center", fontsize=8,
        )  # fmt: skip
    axes.grid(visible=False)
