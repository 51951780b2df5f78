"""Static twin of the widget GaeScan: facts above, what the backward scan makes of them below."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, SHADE, figure, style


def gae_scan_figure(
    rewards: Sequence[float],
    values: Sequence[float],
    behind: Sequence[float | None],
    *,
    ends: Sequence[str],
    counted: Sequence[bool],
    goes: Sequence[bool],
    td_errors: Sequence[float],
    advantages: Sequence[float],
    step: int,
    names: Sequence[str],
) -> Figure:
    """Draw the rows of a rollout and the scan from the last to the first.

    Args:
        rewards: r of each row.
        values: V(s) of each row (discounted reward).
        behind: V of the state that a step reached, None where the next row shows it.
        ends: how each step ended, in words.
        counted: whether the value behind each step counts.
        goes: whether the sum goes on from each row into the next.
        td_errors: δ of each row (discounted reward).
        advantages: Â of each row (discounted reward).
        step: rows that the scan has passed; the others stay empty.
        names: of the five lines below.

    Returns:
        Two panels over one axis of rows.
    """
    rows = range(len(rewards))
    with style():
        picture = figure(10, 4.4)
        above, below = picture.subplots(2, 1, height_ratios=(1, 1.1))
        box: Any = {"width": 0.22}
        above.bar([t - 0.27 for t in rows], rewards, color=NEW_POLICY, label="reward r", **box)
        above.bar(
            rows, values, facecolor="white", edgecolor=NEW_POLICY, label="V(s) of the row", **box
        )
        shown = [(t, value) for t, value in enumerate(behind) if value is not None]
        above.bar(
            [t + 0.27 for t, _ in shown], [value for _, value in shown], facecolor="none",
            edgecolor=OLD_POLICY, linestyle="--", label="V behind it", **box,
        )  # fmt: skip
        above.axhline(0, color=INK, linewidth=0.8)
        above.set(title="GAE runs from the last row to the first", ylabel="reward, value")
        above.set(xlim=(-1.5, len(rewards) - 0.5), ylim=(min(-0.5, *rewards), 8.5))
        above.set_xticks(rows, [f"row {t}" for t in rows])
        above.legend(loc="center left", fontsize=8)

        below.axis("off")
        below.set(xlim=(-1.5, len(rewards) - 0.5), ylim=(4.6, -0.6))
        for line, name in enumerate(names):
            below.text(-1.45, line, name, va="center", fontsize=10)
        first = len(rewards) - step
        if step:
            below.axvspan(first - 0.48, first + 0.48, color=SHADE, zorder=0)
        for t in rows:
            edge = {"continue": "none"}.get(ends[t], INK)
            below.text(t, 0, ends[t], ha="center", va="center", bbox={"fc": "none", "ec": edge,
                       "boxstyle": "round", "lw": 0.8}, fontsize=9)  # fmt: skip
            _lamp(below, t, 1, counted[t])
            if t < len(rewards) - 1:
                _lamp(below, t, 2, goes[t])
            scanned = t >= first
            below.text(t, 3, _number(td_errors[t], scanned), ha="center", va="center")
            below.text(
                t, 4, _number(advantages[t], scanned), ha="center", va="center", fontweight="bold"
            )
            if scanned and t < len(rewards) - 1:
                _flow(below, t, goes[t])
        return picture


def _number(value: float, scanned: bool) -> str:
    return f"{value + 0.0:.3f}".replace("-", "−") if scanned else "·"


def _lamp(axes: Axes, t: int, line: int, lit: bool) -> None:
    fill = NEW_POLICY if lit else "white"
    axes.plot(t, line, "o", ms=11, mfc=fill, mec=INK, mew=1.2)
    if not lit:
        axes.plot(t, line, marker="x", ms=8, color=INK, mew=1.6)


def _flow(axes: Axes, t: int, goes: bool) -> None:
    if goes:
        axes.annotate(
            "", (t + 0.28, 4), xytext=(t + 0.72, 4),
            arrowprops={"arrowstyle": "->", "color": NEW_POLICY, "lw": 1.8},
        )  # fmt: skip
    else:
        axes.plot([t + 0.5, t + 0.5], [3.65, 4.35], color=INK, linewidth=3)
