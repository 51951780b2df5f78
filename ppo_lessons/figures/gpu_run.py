"""Pictures of a fast run: what a call costs, where the time goes, a game of Breakout."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from ppo_lessons.figures.style import (
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SECOND,
    SHADE,
    WORSE,
    figure,
    label_line,
    style,
)

# Each limit has a colour and a mark of its own, the square so large that a triangle lies within.
LIMITS = {
    "launches": (NEW_POLICY, "o", 8),
    "memory": (SECOND, "s", 12),
    "arithmetic": (WORSE, "^", 7),
}
BINDS = {
    "launches": "launches bind",
    "memory": "memory binds",
    "arithmetic": "arithmetic binds",
}


# --- what a call costs ---------------------------------------------------------------------


def call_cost(num_envs: Sequence[int], seconds: Sequence[float]) -> Figure:
    """Draw what one step of N copies costs: the call, and what that makes a second.

    Args:
        num_envs: N, ascending.
        seconds: of one call that steps all N.

    Returns:
        Two panels over N, both with logarithmic axes.
    """
    copies, cost = np.array(num_envs, dtype=float), np.array(seconds, dtype=float)
    with style():
        picture = figure(9, 3.3)
        left, right = picture.subplots(1, 2)
        left.loglog(copies, cost[0] * copies / copies[0] * 1e6, "--", color=OLD_POLICY)
        left.loglog(copies, cost * 1e6, "o-", color=NEW_POLICY, markersize=4)
        left.set(title="A call hardly notices the copies", ylabel="time of a call (µs)")
        left.set_ylim(cost.min() * 1e6 / 2, cost.max() * 1e6 * 30)
        left.annotate(
            "one call for each", (0.30, 0.86), xycoords="axes fraction", color=OLD_POLICY,
            fontsize=9, ha="right",
        )  # fmt: skip
        right.loglog(copies, copies / cost, "o-", color=NEW_POLICY, markersize=4)
        right.set(title="So steps get cheap", ylabel="environment steps a second")
        for axes in (left, right):
            axes.set_xlabel("copies N in one call")
        return picture


# --- where the time goes -------------------------------------------------------------------


def ledger(entries: Sequence[Any], *, copies: int, num_steps: int) -> Figure:
    """Draw for each stage the least time that each limit allows, and what was measured.

    Args:
        entries: with `stage`, `seconds`, the limits `arithmetic`, `memory`, `launches`, and `binds`
            of the last one, which is named in the title.
        copies: N.
        num_steps: T; N·T environment steps make an iteration.

    Returns:
        One panel with a row for each stage and a logarithmic time axis.
    """
    env_steps = copies * num_steps
    with style():
        picture = figure(9, 0.62 * len(entries) + 1.3)
        axes = picture.subplots()
        for row, entry in enumerate(entries):
            axes.axhline(row, color=SHADE, linewidth=14, zorder=0)
            for name, (color, mark, size) in LIMITS.items():
                time = getattr(entry, name) / env_steps * 1e6
                axes.plot(
                    time, row, mark, color=color, markersize=size, markeredgecolor="white",
                    label=name if row == 0 else None,
                )  # fmt: skip
            if entry.seconds is not None:
                time = entry.seconds / env_steps * 1e6
                axes.plot(
                    [time, time], [row - 0.36, row + 0.36], color=INK, linewidth=3,
                    label="measured" if row == 0 else None,
                )  # fmt: skip
        axes.set(xscale="log", xlabel="µs for each environment step")
        axes.set_yticks(range(len(entries)), [entry.stage for entry in entries])
        axes.set_ylim(len(entries) - 0.45, -0.55)
        axes.set_title(f"{copies:,} copies: {BINDS[entries[-1].binds]}")
        axes.legend(
            fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="least time by",
            title_fontsize=9, alignment="left",
        )  # fmt: skip
        return picture


def environments(study: Mapping[str, Any]) -> Figure:
    """Draw steps, iterations and CPU seconds until CartPole was solved, over the copies.

    Args:
        study: the recorded study `environments`.

    Returns:
        Three panels: a dot for each seed, a line through the medians.
    """
    copies = np.array([int(name) for name in study["runs"]])
    looks = (
        ("env_steps", "Many more steps", "environment steps until solved"),
        ("iterations", "as many iterations", "iterations until solved"),
        ("cpu_seconds", "and more time", "CPU seconds until solved"),
    )
    with style():
        picture = figure(9, 3.1)
        for axes, (key, title, label) in zip(picture.subplots(1, 3), looks, strict=True):
            table = np.array([[run[key] for run in runs] for runs in study["runs"].values()])
            axes.loglog(copies, table, "o", color=OLD_POLICY, markersize=4, alpha=0.7)
            axes.loglog(copies, np.median(table, axis=1), "-", color=NEW_POLICY, linewidth=2.6)
            axes.set(title=title, xlabel="copies N", ylabel=label)
            axes.set_xticks(copies, [str(number) for number in copies])
            axes.minorticks_off()
            if key == "iterations":
                axes.set_ylim(1, 1000)
            if key == "cpu_seconds":
                seconds = [each for each in (1, 2, 5, 10, 20, 50, 100) if each <= 2 * table.max()]
                axes.set_yticks(seconds, [str(each) for each in seconds])
        return picture


# --- Breakout ------------------------------------------------------------------------------


def learning(study: Mapping[str, Any]) -> Figure:
    """Draw what the agents earned on Breakout's small board, over minutes and over steps.

    Args:
        study: the recorded study `breakout`.

    Returns:
        Two panels: every seed, the networks named at the ends of their lines.
    """
    kinds = (("flat", NEW_POLICY, "-"), ("filters", SECOND, "--"))
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2, sharey=True)
        for kind, color, line in kinds:
            runs: list[Any] = study[kind]["runs"] if kind in study else []
            for number, run in enumerate(runs):
                returns = [point["sampled"] for point in run["points"]]
                minutes = [point["cpu_seconds"] / 60 for point in run["points"]]
                steps = [point["env_steps"] / 1e6 for point in run["points"]]
                for axes, over in ((left, minutes), (right, steps)):
                    label = kind if number == 0 else None
                    axes.plot(over, returns, line, color=color, linewidth=1.5, label=label)
        for axes in (left, right):
            axes.axhline(study["random_return"], color=GOAL, linestyle=":", linewidth=1.2)
            axes.set_ylim(0, None)
        label_line(right, 0, study["random_return"] + 2, "at random", GOAL)
        left.set(title="In minutes of one core", xlabel="CPU minutes of training")
        left.set_ylabel("return (bricks)")
        right.set(title="In steps", xlabel="million environment steps")
        left.legend(fontsize=9, loc="upper left")
        return picture


def game(boards: np.ndarray, *, at: Sequence[int]) -> Figure:
    """Draw some boards of a game of Breakout, and how many bricks were gone by then.

    Args:
        boards: bool, [steps, 10, 10, 4]: paddle, ball, where the ball came from, bricks.
        at: which steps.

    Returns:
        One board for each step.
    """
    struck = bricks_struck(boards)
    with style():
        picture = figure(9, 2.45)
        for axes, step in zip(picture.subplots(1, len(at)), at, strict=True):
            _board(axes, boards[step])
            axes.set_title(f"step {step}", fontsize=9, loc="center")
            axes.set_xlabel(f"{struck[step]} bricks", fontsize=9)
        return picture


def _board(axes: Axes, board: np.ndarray) -> None:
    size = len(board)
    axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal", xticks=[], yticks=[])
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set(visible=True, color=INK)
    for row, column in np.argwhere(board[..., 3]):
        axes.add_patch(Rectangle((column + 0.06, row + 0.12), 0.88, 0.76, facecolor=WORSE))
    for row, column in np.argwhere(board[..., 0]):
        axes.add_patch(Rectangle((column, row + 0.25), 1, 0.5, facecolor=NEW_POLICY))
    balls, trails = np.argwhere(board[..., 1]), np.argwhere(board[..., 2])
    for row, column in trails:
        axes.add_patch(Circle((column + 0.5, row + 0.5), 0.2, facecolor="white", edgecolor=INK))
    for (row, column), (old_row, old_column) in zip(balls, trails, strict=True):
        axes.plot([old_column + 0.5, column + 0.5], [old_row + 0.5, row + 0.5], color=INK, lw=0.8)
        axes.add_patch(Circle((column + 0.5, row + 0.5), 0.34, facecolor=INK))


def bricks_struck(boards: np.ndarray) -> np.ndarray:
    """Count the bricks that were gone by each step; a new wall brings none back.

    Args:
        boards: bool, [steps, 10, 10, 4].

    Returns:
        [steps], from 0.
    """
    left = boards[..., 3].reshape(len(boards), -1).sum(axis=1).astype(int)
    return np.concatenate([[0], np.maximum(left[:-1] - left[1:], 0).cumsum()])


def pack_boards(boards: np.ndarray) -> str:
    """Write boards as text, one bit for each cell.

    Args:
        boards: bool, [steps, 10, 10, 4].

    Returns:
        Their bits, compressed, in base 64.
    """
    return base64.b64encode(zlib.compress(np.packbits(boards).tobytes(), 9)).decode("ascii")


def unpack_boards(text: str) -> np.ndarray:
    """Read what `pack_boards` wrote.

    Args:
        text: the bits.

    Returns:
        bool, [steps, 10, 10, 4].
    """
    packed = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return np.unpackbits(packed).astype(bool).reshape(-1, 10, 10, 4)
