"""Static twin of the widget ThroughputLedger: least times by stage, and steps a second over N."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    figure,
    style,
)

# For each limit: its mark, and its line.
LOOKS = (("^", "-", INK), ("D", "--", OLD_POLICY), ("o", "-", NEW_POLICY))


def throughput_ledger_figure(
    micros: Sequence[Sequence[float]],
    curve: Sequence[Sequence[float]],
    *,
    all_num_envs: Sequence[int],
    num_envs: int,
    stages: Sequence[str],
    limits: Sequence[str],
    machine: str,
) -> Figure:
    """Draw the least time of each stage by limit, and what each limit allows over N.

    Args:
        micros: least µs for each environment step, one row for each stage: arithmetic, memory,
            launches.
        curve: steps a second that each limit allows, one row for each N.
        all_num_envs: N of the rows of `curve`.
        num_envs: N now.
        stages: names of the rows of `micros`.
        limits: names of the three limits.
        machine: in words.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        for row, times in enumerate(micros):
            left.axhline(row, color=SHADE, linewidth=12, zorder=0)
            for place, (mark, _, color) in enumerate(LOOKS):
                label = limits[place] if row == 0 else None
                open_mark = mark == "D"  # it lies over the triangle, and lets it be seen
                left.plot(
                    times[place], row, mark, color=color, label=label,
                    markerfacecolor="none" if open_mark else color,
                    markeredgecolor=color if open_mark else "white",
                    markersize=11 if open_mark else 7, markeredgewidth=1.5 if open_mark else 1,
                )  # fmt: skip
        left.set(xscale="log", xlim=(1e-5, 1e4), xlabel="µs for each environment step")
        left.set_yticks(range(len(stages)), stages)
        left.set_ylim(len(stages) - 0.4, -1.3)
        left.legend(loc="upper right", fontsize=8, ncols=3, columnspacing=1, handletextpad=0.2)
        left.set_title(f"Limits of {machine}")
        table = np.array(curve)
        for place, (_, line, color) in enumerate(LOOKS):
            right.plot(all_num_envs, table[:, place], line, color=color, label=limits[place])
        right.plot(all_num_envs, table.min(axis=1), color=GOAL, linewidth=5, alpha=0.15)
        right.axvline(num_envs, color=GOAL, linestyle=":", label="N now")
        right.set(xscale="log", yscale="log", ylim=(1e2, 1e10), xlabel="copies N")
        right.set_ylabel("environment steps a second")
        right.set_title("What each limit allows")
        box: Any = {"frameon": True, "framealpha": 1, "edgecolor": "none"}  # over the dotted line
        right.legend(loc="upper left", fontsize=8, ncols=2, **box)
        return picture
