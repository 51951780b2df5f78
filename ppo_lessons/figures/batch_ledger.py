"""Static twin of the widget BatchLedger: uses of each sample, and how far the ratios spread."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, SHADE, figure, style


def batch_ledger_figure(
    visits: Sequence[int],
    latest: Sequence[bool],
    ratios: Sequence[Sequence[float]],
    *,
    num_envs: int,
    num_epochs: int,
    made: int,
    clip_epsilon: float,
) -> Figure:
    """Draw the grid of samples with the uses of each, and the spread of the ratios.

    Args:
        visits: uses of each sample so far, time first.
        latest: whether it was in the latest minibatch.
        ratios: before the first step and after each, lowest, first tenth, last tenth, highest.
        num_envs: N.
        num_epochs: K.
        made: optimiser steps that have been made.
        clip_epsilon: ε.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        _grid(left, np.array(visits).reshape(-1, num_envs).T, latest, num_epochs)
        spread = np.array(ratios)
        steps = np.arange(len(spread))
        lowest, low, high, highest = spread.T
        right.fill_between(steps, lowest, highest, color=SHADE)
        for line, name in ((lowest, "lowest and highest"), (highest, None)):
            right.plot(steps, line, "--", color=OLD_POLICY, linewidth=1.2, label=name)
        for line, name in ((low, "80 of 100 between"), (high, None)):
            right.plot(steps, line, color=NEW_POLICY, label=name)
        for edge in (1 - clip_epsilon, 1 + clip_epsilon):
            right.axhline(edge, color=INK, linewidth=0.8, linestyle="-.")
        right.axvline(made, color=GOAL, linestyle=":", label="now")
        right.set_xticks(steps[:: max((len(spread) - 1) // num_epochs, 1)])
        right.set(title="Ratios of the whole batch", xlabel="optimiser steps", ylabel="ratio")
        right.set(ylim=(0.5, 1.5))
        right.legend(loc="lower left", fontsize=8, ncols=3)
        return picture


def _grid(axes: Axes, table: np.ndarray, latest: Sequence[bool], num_epochs: int) -> None:
    """Draw a cell for each sample: its shade and its digit say the same."""
    num_envs, num_steps = table.shape
    for n in range(num_envs):
        for t in range(num_steps):
            uses = table[n, t]
            face = (NEW_POLICY, 0.06 + 0.44 * uses / num_epochs)
            axes.add_patch(Rectangle((t - 0.46, n - 0.46), 0.92, 0.92, facecolor=face, lw=0))
            if latest[t * num_envs + n]:
                box = (t - 0.42, n - 0.42), 0.84, 0.84
                axes.add_patch(Rectangle(*box, facecolor="none", edgecolor=INK, lw=1.6))
            axes.text(t, n, str(uses), ha="center", va="center", fontsize=8, color=INK)
    axes.grid(visible=False)
    axes.set(xlim=(-0.6, num_steps - 0.4), ylim=(num_envs - 0.4, -0.6))
    axes.set_yticks(range(num_envs))
    axes.set_xticks(range(0, num_steps, 2))
    axes.set(title="Uses of each sample (framed: latest)", xlabel="step t")
    axes.set(ylabel="environment")
