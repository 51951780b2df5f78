"""Static twin of the widget EndKinds: one rollout with its ends, and what one way makes of it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style

ROUNDING = 1e-9


def end_kinds_figure(
    rewards: Sequence[float],
    values: Sequence[float],
    next_values: Sequence[float],
    *,
    ends: Sequence[str | None],
    asked: Sequence[float],
    counted: Sequence[bool],
    goes: Sequence[bool],
    td_errors: Sequence[float],
    advantages: Sequence[float],
    right: Sequence[float],
    gamma: float,
    title: str,
    names: Sequence[str],
) -> Figure:
    """Draw states, steps and ends, and below them what is counted and what comes out.

    Args:
        rewards: of each step (reward).
        values: V of the state in which each step began (discounted reward).
        next_values: V of the state that each step reached (discounted reward).
        ends: how each step ended, in words; None where the episode went on.
        asked: the value that this way takes for the next one (discounted reward).
        counted: whether it counts.
        goes: whether this way's sum goes on into the next row.
        td_errors: δ, as this way computes it (discounted reward).
        advantages: Â, as this way computes it (discounted reward).
        right: Â with two masks (discounted reward).
        gamma: γ.
        title: which way it is.
        names: of the seven lines.

    Returns:
        One panel; a cross marks a number that is wrong.
    """
    last = len(rewards) - 1
    with style():
        picture = figure(10, 3.9)
        axes = picture.subplots()
        axes.axis("off")
        axes.set(xlim=(-1.35, last + 0.6), ylim=(6.6, -0.9))
        axes.set_title(title)
        for line, name in enumerate(names):
            axes.text(-1.32, line, name, va="center", fontsize=10)
        for t, reward in enumerate(rewards):
            end = ends[t]
            axes.text(t, -0.72, f"row {t}", ha="center", va="center", fontsize=9)
            _state(axes, t - 0.34, values[t])
            far = t + (0.16 if end or t == last else 0.5)
            axes.annotate(
                "", (far, 0), xytext=(t - 0.19, 0), arrowprops={"arrowstyle": "->", "color": INK}
            )
            axes.text(t - 0.02, -0.24, f"+{reward:g}", ha="center", va="center", fontsize=9)
            if end or t == last:
                _state(axes, t + 0.3, next_values[t], dashed=True)
            if end:
                axes.plot([t + 0.5, t + 0.5], [-0.6, 1.4], ":", color=INK, linewidth=1.6)
            axes.text(t, 1, end or "→", ha="center", va="center", fontsize=9,
                      fontweight="bold" if end else "normal")  # fmt: skip
            true = rewards[t] + (0 if end == "terminated" else gamma * next_values[t]) - values[t]
            future = f"{gamma:.2f}·{asked[t]:g}" if counted[t] else "0"
            _cell(axes, t, 2, future, wrong=abs(td_errors[t] - true) > ROUNDING)
            axes.text(t, 4, _number(td_errors[t]), ha="center", va="center")
            wrong = abs(advantages[t] - right[t]) > ROUNDING
            _cell(axes, t, 5, _number(advantages[t]), wrong=wrong, bold=True)
            axes.text(t, 6, _number(right[t]), ha="center", va="center")
            if t < last:
                _lamp(axes, t, goes[t])
                _flow(axes, t, goes[t], leaks=goes[t] and end is not None)
        return picture


def _state(axes: Axes, place: float, value: float, dashed: bool = False) -> None:
    edge, dash = (OLD_POLICY, "--") if dashed else (NEW_POLICY, "-")
    axes.add_patch(
        FancyBboxPatch(
            (place - 0.1, -0.26), 0.2, 0.52, boxstyle="round,pad=0.02,rounding_size=0.05",
            facecolor="white", edgecolor=edge, linestyle=dash, linewidth=1.6,
        )
    )  # fmt: skip
    axes.text(place, 0, f"{value:g}", ha="center", va="center", fontsize=10)


def _number(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")


def _cell(axes: Axes, t: int, line: int, text: str, *, wrong: bool, bold: bool = False) -> None:
    axes.text(
        t, line, f"{text} ✕" if wrong else text, ha="center", va="center",
        color=WORSE if wrong else INK, fontweight="bold" if wrong or bold else "normal",
    )  # fmt: skip


def _lamp(axes: Axes, t: int, lit: bool) -> None:
    axes.plot(t, 3, "o", ms=11, mfc=NEW_POLICY if lit else "white", mec=INK, mew=1.2)
    if not lit:
        axes.plot(t, 3, marker="x", ms=8, color=INK, mew=1.6)


def _flow(axes: Axes, t: int, goes: bool, *, leaks: bool) -> None:
    if not goes:
        axes.plot([t + 0.5, t + 0.5], [4.7, 5.3], color=INK, linewidth=3)
        return
    arrow = {"arrowstyle": "->", "lw": 1.8, "color": WORSE if leaks else NEW_POLICY}
    axes.annotate(
        "", (t + 0.36, 5), xytext=(t + 0.66, 5),
        arrowprops=arrow | {"linestyle": "--" if leaks else "-"},
    )  # fmt: skip
