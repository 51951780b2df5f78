"""Pictures of ends: a limit taken for a death, five rows, three modes, a cut, what is learned."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    WORSE,
    figure,
    style,
)

HEIGHTS = ("foot", "stairs", "lamp")
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # keeps words readable on a pattern


def limit(apart: np.ndarray, merged: np.ndarray, heights: Sequence[int]) -> Figure:
    """Draw the advantages of one episode that a time limit cut, under two ways to read it.

    Args:
        apart: Â of each step with two masks (discounted reward).
        merged: Â of each step with the flags merged (discounted reward).
        heights: where each step started: 0, 1 or 2.

    Returns:
        One panel; the limit stands after the last step.
    """
    rows = np.arange(len(apart))
    with style():
        picture = figure(7.5, 3.3)
        axes = picture.subplots()
        axes.axvspan(rows[-1] + 0.5, rows[-1] + 1.6, color=SHADE)
        axes.axvline(rows[-1] + 0.5, color=GOAL, linewidth=1.6)
        axes.text(rows[-1] + 0.58, -8.6, "the limit:\nnobody\nwatches", fontsize=9)
        axes.plot(rows, apart, color=NEW_POLICY, marker="o")
        axes.plot(rows, merged, color=WORSE, linestyle="--", marker="x", markersize=7)
        axes.text(0, 0.35, "two masks: 0 everywhere", color=NEW_POLICY, fontsize=9)
        axes.text(2.1, -5.9, "flags merged", color=WORSE, fontsize=9, ha="right")
        axes.set(
            title="Read as an end, the limit turns six good steps into bad ones",
            xlabel="row, and where its step began",
            ylabel="advantage (discounted reward)",
            xlim=(-0.4, rows[-1] + 1.6),
            ylim=(-9.8, 1.4),
        )
        axes.set_xticks(rows, [f"{t}\n{HEIGHTS[height]}" for t, height in enumerate(heights)])
        return picture


def worked_case(
    values: Sequence[float], next_values: Sequence[float], truncated: Sequence[bool]
) -> Figure:
    """Draw the worked case as a line of states, and where the cut step may look for its future.

    Args:
        values: V of the state in which each row's action was chosen (discounted reward).
        next_values: V of the state that each row's step reached (discounted reward).
        truncated: whether a row's step was cut by the limit.

    Returns:
        One panel: boxes are states, arrows are steps; after a cut the line begins anew.
    """
    with style():
        picture = figure(9, 3.0)
        axes = picture.subplots()
        axes.axis("off")
        place = 0.0
        for t, (value, following, is_cut) in enumerate(
            zip(values, next_values, truncated, strict=True)
        ):
            _state(axes, place, value, NEW_POLICY)
            axes.text(place, -0.5, f"row {t}", ha="center", va="top", fontsize=9)
            _step(axes, place, place + 1.5)
            if is_cut:
                _state(axes, place + 1.5, following, BETTER, dashed=True)
                _below(axes, place + 1.5, "reached, then\nreset: no row")
                _limit_and_looks(axes, place, following, values[t + 1])
            elif t == len(values) - 1:
                _state(axes, place + 1.5, following, BETTER, dashed=True)
                _below(axes, place + 1.5, "reached, starts\nthe next rollout")
            place += 2.8 if is_cut else 1.5
        axes.set(xlim=(-0.6, place + 0.7), ylim=(-1.15, 1.75))
        axes.set_title("Four rows, six states. What does row 1 count for its future?")
        return picture


def _below(axes: Axes, place: float, words: str) -> None:
    axes.text(place, -0.5, words, ha="center", va="top", fontsize=9)


def _limit_and_looks(axes: Axes, place: float, reached: float, restarted: float) -> None:
    """The limit behind a state, and the two arcs to what may be taken for the next value."""
    axes.plot([place + 2.15] * 2, [-1.05, 0.62], color=GOAL, linewidth=1.6)
    axes.text(place + 2.2, -1.02, "time limit", fontsize=9)
    for end, bend, color, dash, words in (
        (place + 1.42, 0.38, BETTER, "-", f"right: {reached:g}"),
        (place + 2.8, 0.52, WORSE, "--", f"after the reset: {restarted:g}"),
    ):
        axes.add_patch(
            FancyArrowPatch(
                (place + 0.04, 0.36), (end, 0.36), arrowstyle="-|>", mutation_scale=12, color=color,
                linestyle=dash, connectionstyle=f"arc3,rad={-bend}", linewidth=1.4,
            )
        )  # fmt: skip
        middle = (place + end) / 2 + (0.34 if dash == "-" else 0.0)  # out of the other arc's way
        top = 0.4 + 0.6 * bend * (end - place)  # of the arc, at this size of the picture
        axes.text(middle, top, words, ha="center", va="bottom", fontsize=9, color=color)


def _state(axes: Axes, place: float, value: float, color: str, dashed: bool = False) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (place - 0.36, -0.3), 0.72, 0.6, boxstyle="round,pad=0.04,rounding_size=0.12",
            facecolor="white", edgecolor=color, linewidth=1.8, linestyle="--" if dashed else "-",
        )
    )  # fmt: skip
    axes.text(place, 0, f"V = {value:g}", ha="center", va="center", fontsize=10)


def _step(axes: Axes, start: float, end: float) -> None:
    axes.add_patch(
        FancyArrowPatch(
            (start + 0.42, 0), (end - 0.42, 0), arrowstyle="-|>", mutation_scale=12, color=INK
        )
    )
    axes.text((start + end) / 2, 0.14, "+1", ha="center", fontsize=9)


def autoreset(calls: Mapping[str, Sequence[Mapping[str, float | None]]]) -> Figure:
    """Draw what each call to `step` gives back around an end, in each autoreset mode.

    Args:
        calls: for each mode, one mapping per call: `observation`, the height that came back;
            `final`, the height in `final_obs`, or None; `episode`, 0 or 1, whose step it was; and
            `step`, 0 where the call was no step of a task. A call that was refused is missing.

    Returns:
        One row of boxes per mode.
    """
    most = max(len(line) for line in calls.values())
    with style():
        picture = figure(9, 0.7 + 1.15 * len(calls))
        axes = picture.subplots()
        axes.axis("off")
        for number, (mode, line) in enumerate(calls.items()):
            bottom = -1.5 * number
            axes.text(-0.25, bottom + 0.4, mode, ha="right", va="center", fontweight="bold")
            for place, call in enumerate(line):
                _call(axes, 1.5 * place, bottom, call)
            for place in range(len(line), most):
                words = "refused:\nreset it first" if place == len(line) else ""
                axes.text(1.5 * place + 0.6, bottom + 0.4, words, ha="center", va="center",
                          fontsize=9, color=WORSE)  # fmt: skip
        for place in range(most):
            axes.text(1.5 * place + 0.6, 1.1, f"call {place + 1}", ha="center", fontsize=9)
        axes.set(xlim=(-2.2, 1.5 * most), ylim=(-1.5 * len(calls) + 1.35, 1.5))
        axes.set_title("The third call ends the episode; where is its last observation?")
        return picture


def _call(axes: Axes, left: float, bottom: float, call: Mapping[str, float | None]) -> None:
    color, dash = ((NEW_POLICY, "-"), (BETTER, "--"))[int(call["episode"] or 0)]
    junk = not call["step"]
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom), 1.2, 0.8, boxstyle="round,pad=0.04,rounding_size=0.1",
            facecolor=SHADE if junk else "white", edgecolor=OLD_POLICY if junk else color,
            linestyle=":" if junk else dash, linewidth=1.8, hatch="///" if junk else None,
        )
    )  # fmt: skip
    words = HEIGHTS[int(call["observation"] or 0)]
    lift = 0.16 if junk or call["final"] is not None else 0.0
    axes.text(left + 0.6, bottom + 0.4 + lift, words, ha="center", va="center", bbox=BOX)
    if call["final"] is not None:
        below = f"final_obs: {HEIGHTS[int(call['final'])]}"
        axes.text(left + 0.6, bottom + 0.2, below, ha="center", va="center", fontsize=8,
                  color=NEW_POLICY, bbox=BOX)  # fmt: skip
    if junk:
        axes.text(left + 0.6, bottom + 0.2, "no step", ha="center", va="center", fontsize=8,
                  bbox=BOX)  # fmt: skip


def cut(whole: np.ndarray, pieces: Sequence[np.ndarray]) -> Figure:
    """Draw the advantages of one long episode, collected at once and in pieces.

    Args:
        whole: Â of each step of one long rollout (discounted reward).
        pieces: Â of the same steps, collected in shorter rollouts.

    Returns:
        One panel; dashed lines stand where a rollout ends.
    """
    with style():
        picture = figure(7.5, 3.2)
        axes = picture.subplots()
        axes.plot(np.arange(len(whole)), whole, color=OLD_POLICY, marker="o", markersize=7,
                  fillstyle="none", label="one rollout")  # fmt: skip
        start = 0
        for number, piece in enumerate(pieces):
            rows = np.arange(start, start + len(piece))
            label = "two rollouts" if number == 0 else None
            axes.plot(rows, piece, color=NEW_POLICY, linestyle="--", marker="x", label=label)
            start += len(piece)
            if start <= len(whole):  # the end of the last is a cut as well
                axes.axvline(start - 0.5, color=GOAL, linestyle=":", linewidth=1.4)
                axes.annotate("cut", (start - 0.5, axes.get_ylim()[1]), xytext=(4, -4),
                              textcoords="offset points", fontsize=9, va="top")  # fmt: skip
        axes.set(
            title="A cut shortens the sums before it, and changes none after it",
            xlabel="row",
            ylabel="advantage (discounted reward)",
        )
        axes.set_xticks(np.arange(0, len(whole), 2))
        axes.legend(fontsize=9, loc="lower left")
        return picture


def learned(
    lamp: Mapping[str, float], foot: Mapping[str, float], *, lamp_true: float, foot_true: float,
    offer: float,
) -> Figure:  # fmt: skip
    """Draw what a critic learns of the lamp and of the foot, for each way to handle ends.

    Args:
        lamp: for each way, the learned value of the lamp (discounted reward).
        foot: for each way, the learned value of climbing (discounted reward).
        lamp_true: what the lamp is worth.
        foot_true: what climbing is worth.
        offer: what the keeper is paid for not climbing (reward).

    Returns:
        Two panels of bars; the solid line is the truth, the dashed one the offer.
    """
    with style():
        picture = figure(9, 0.5 * len(lamp) + 1.1)
        left, right = picture.subplots(1, 2, sharey=True)
        places = np.arange(len(lamp))
        for axes, values, truth in ((left, lamp, lamp_true), (right, foot, foot_true)):
            for place, value in zip(places, values.values(), strict=True):
                good = abs(value - truth) < 0.005
                axes.barh(
                    place, value, 0.62, color=BETTER if good else WORSE,
                    hatch=None if good else "//", edgecolor="white",
                )  # fmt: skip
                axes.text(0.25, place, f"{value:.2f}", va="center", fontsize=9, bbox=BOX)
            axes.axvline(truth, color=GOAL, linewidth=1.4)
            axes.set(xlabel="learned value (discounted reward)", xlim=(0, 11.2))
        left.set_title(f"The lamp: {lamp_true:g} is true")
        right.set_title(f"Climbing: {foot_true:g} is true")
        right.axvline(offer, color=INK, linestyle="--", linewidth=1.4)
        right.text(offer - 0.1, -0.78, f"the offer: {offer:g}", fontsize=9, ha="right")
        left.set_yticks(places, list(lamp))
        left.set_ylim(len(lamp) - 0.4, -1.1)
        return picture


def stair(climbs: Mapping[str, Sequence[Sequence[float]]], steps: Sequence[int]) -> Figure:
    """Draw how often the keeper climbs while PPO learns, for each way to handle ends.

    Args:
        climbs: for each way, π(climb | foot) of each seed, at the same steps.
        steps: environment steps.

    Returns:
        One panel per way: seeds thin, their median thick.
    """
    columns = 4
    with style():
        picture = figure(9, 4.4)
        panels = picture.subplots(2, columns, sharex=True, sharey=True).ravel()
        thousands = np.array(steps) / 1000
        for axes, (name, runs) in zip(panels, climbs.items(), strict=False):
            table = np.array(runs)
            good = bool((table[:, -1] > 0.5).all())
            color, dash = (BETTER, "-") if good else (WORSE, "--")
            axes.plot(thousands, table.T, color=color, linewidth=0.7, alpha=0.5)
            axes.plot(thousands, np.median(table, axis=0), color=color, linestyle=dash,
                      linewidth=2.6)  # fmt: skip
            count = int((table[:, -1] > 0.5).sum())
            axes.set_title(f"{_two_lines(name)}\n{count} of {len(table)} climb", fontsize=9)
            axes.set_ylim(-0.04, 1.04)
        for axes in panels[len(climbs) :]:
            axes.axis("off")
            axes.text(0.1, 0.6, "thin: a seed\nthick: the median\nof all seeds", fontsize=9,
                      transform=axes.transAxes, va="center")  # fmt: skip
        for axes in panels[len(climbs) - columns : columns]:  # nothing stands below these
            axes.tick_params(labelbottom=True)
        picture.supxlabel("thousand environment steps", fontsize=10)
        picture.supylabel("probability of climbing", fontsize=10)
        return picture


def _two_lines(name: str) -> str:
    first, comma, second = name.partition(", ")
    return f"{first},\n{second}" if comma else f"\n{name}"
