"""Pictures of the variants: the board, what stands in for the critic, weights, clips, the study."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
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

Curve = Sequence[float]
COLOURS = (NEW_POLICY, BETTER, WORSE, SECOND, OLD_POLICY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)))
MARKS = ("o", "s", "^", "D", "v")


def board_table(rows: Mapping[str, Sequence[str]], places: Sequence[str]) -> Figure:
    """Draw what each method does in each place; what differs from the first one is marked.

    Args:
        rows: method → what stands in each place; the first is the one compared with.
        places: names of the columns.

    Returns:
        A table; a cell that differs is shaded, bold and has a dot.
    """
    names, first = list(rows), next(iter(rows.values()))
    with style():
        picture = figure(12, 0.62 * len(rows) + 0.9)
        axes = picture.subplots()
        axes.set(xlim=(-0.95, len(places)), ylim=(len(rows), -0.8))
        axes.axis("off")
        for column, place in enumerate(places):
            axes.text(column + 0.05, -0.4, place, fontsize=10, fontweight="bold", va="center")
        for line, name in enumerate(names):
            axes.axhline(line, color=SHADE, linewidth=0.8)
            axes.text(
                -0.95, line + 0.5, fill(name, 14), va="center", fontsize=9.5, fontweight="bold"
            )
            for column, (cell, before) in enumerate(zip(rows[name], first, strict=True)):
                new = cell != before
                if new:
                    axes.fill_between(
                        [column, column + 0.97], line + 0.06, line + 0.94, color=SHADE, linewidth=0
                    )
                axes.text(
                    column + 0.05, line + 0.5, fill(f"• {cell}" if new else cell, 19),
                    va="center", fontsize=8.5, color=INK if new else OLD_POLICY,
                    fontweight="bold" if new else "normal", linespacing=1.0,
                )  # fmt: skip
        return picture


def advantage_bars(panels: Mapping[str, Mapping[str, tuple[float, float]]]) -> Figure:
    """Draw what a right and a wrong answer are worth, by method, for several groups.

    Args:
        panels: title of a group → method → Â of a right and of a wrong answer.

    Returns:
        One panel for each group, with the same limits.
    """
    with style():
        picture = figure(9, 3.2)
        for axes, (title, methods) in zip(
            picture.subplots(1, len(panels), sharey=True, squeeze=False)[0],
            panels.items(),
            strict=True,
        ):
            places = np.arange(len(methods))
            right, wrong = zip(*methods.values(), strict=True)
            axes.bar(places - 0.2, right, 0.38, color=BETTER, label="right answer")
            axes.bar(places + 0.2, wrong, 0.38, color=WORSE, hatch="//", label="wrong answer")
            axes.axhline(0, color=INK, linewidth=0.8)
            axes.set_xticks(places, list(methods), fontsize=9)
            axes.set(title=title, ylim=(-2.8, 2.8))
        picture.axes[0].set_ylabel("advantage")
        picture.axes[0].legend(loc="lower left", fontsize=9)
        return picture


def mean_gradients(shares: Curve, methods: Mapping[str, Curve]) -> Figure:
    """Draw how large the mean gradient is beside the true one, over the share of right answers.

    Args:
        shares: p of the prompt, ascending.
        methods: method → mean gradient / true gradient at each p.

    Returns:
        One panel.
    """
    with style():
        picture = figure(7, 3.2)
        axes = picture.subplots()
        for (name, factors), colour, dash in zip(methods.items(), COLOURS, DASHES, strict=False):
            axes.plot(shares, factors, linestyle=dash, color=colour)
            label_line(axes, shares[-1], factors[-1], name, colour)
        axes.set(
            title="Dividing by the spread favours easy and hard prompts",
            xlabel="p, share of right answers to the prompt",
            ylabel="mean gradient / true gradient",
            xlim=(0, 1.28),
        )
        axes.set_ylim(bottom=0)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        return picture


def silent_groups(
    shares: Curve, chances: Mapping[str, Curve], runs: Mapping[str, tuple[Curve, Sequence[Curve]]]
) -> Figure:
    """Draw which share of groups has equal scores: by formula, and in recorded runs.

    Args:
        shares: p of the prompt, ascending.
        chances: group size in words → probability of equal scores at each p.
        runs: method → answers drawn, and the share in each run.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2, sharey=True)
        for (name, chance), colour, dash in zip(chances.items(), COLOURS, DASHES, strict=False):
            left.plot(shares, chance, linestyle=dash, color=colour, label=name)
        left.legend(loc="upper center", fontsize=9)
        left.set(
            title="A sure prompt teaches nothing",
            xlabel="p, share of right answers to the prompt",
            ylabel="groups with equal scores (share)",
            ylim=(-0.02, 1.02),
        )
        for (name, (drawn, curves)), colour, mark in zip(
            runs.items(), COLOURS, MARKS, strict=False
        ):
            for number, curve in enumerate(curves):
                right.plot(
                    drawn, curve, f"{mark}-", color=colour, markersize=4, alpha=0.75,
                    linewidth=1.2, label=name if number == 0 else None,
                )  # fmt: skip
        right.legend(loc="lower right", fontsize=9)
        right.set(title="In training they become many", xlabel="answers drawn", xlim=(0, None))
        return picture


def token_weights(modes: Mapping[str, tuple[float, float]], lengths: tuple[int, int]) -> Figure:
    """Draw what one token of a short and of a long answer weighs, by mode.

    Args:
        modes: mode → weight of a token of the short and of the long answer.
        lengths: tokens of the two.

    Returns:
        One panel with a logarithmic axis.
    """
    places = np.arange(len(modes))
    with style():
        picture = figure(8, 3.0)
        axes = picture.subplots()
        for shift, number, colour, hatch in ((-0.2, 0, NEW_POLICY, ""), (0.2, 1, WORSE, "//")):
            weights = [pair[number] for pair in modes.values()]
            name = f"in the answer of {lengths[number]} tokens"
            bars = axes.bar(places + shift, weights, 0.38, color=colour, hatch=hatch, label=name)
            axes.bar_label(bars, [f"{weight:.3g}" for weight in weights], fontsize=9, padding=2)
        axes.set_yscale("log")
        axes.set_xticks(places, list(modes))
        axes.set(
            title="Only the mean of means treats the two unlike",
            ylabel="weight of one token",
            ylim=(0.01, 3),
        )
        axes.legend(loc="upper left", fontsize=9)
        return picture


def pushes(ratios: Curve, good: Mapping[str, Curve], bad: Mapping[str, Curve]) -> Figure:
    """Draw how strongly one token is pushed, over its ratio, by the clip of several methods.

    Args:
        ratios: ascending.
        good: method → push at each ratio, at advantage 1.
        bad: method → push at each ratio, at advantage −1.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.3)
        left, right = picture.subplots(1, 2)
        for axes, methods, title in (
            (left, good, "A good token: when does the push end?"),
            (right, bad, "A bad one"),
        ):
            for (name, pushed), colour, dash in zip(methods.items(), COLOURS, DASHES, strict=False):
                axes.plot(ratios, pushed, linestyle=dash, color=colour, label=name)
            axes.axvline(1, color=OLD_POLICY, linewidth=0.8)
            axes.axhline(0, color=INK, linewidth=0.8)
            axes.set(title=title, xlabel="ratio π / π_old")
        left.set_ylabel("push on log π")
        left.legend(loc="upper right", fontsize=9)
        right.legend(loc="lower left", fontsize=9)
        return picture


def two_ways(
    betas: Curve, needed: Curve, runs: Mapping[str, Sequence[tuple[Curve, Curve]]]
) -> Figure:
    """Draw how far DPO must go at each β, and how far it went.

    Args:
        betas: ascending.
        needed: difference of log-ratios at which the loss is 0.1 (nats).
        runs: setting → for each run log-ratio of the chosen and of the rejected, by epoch.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2)
        left.loglog(betas, needed, "-", color=NEW_POLICY)
        left.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
        left.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
        left.minorticks_off()
        left.set(
            title="The smaller β, the farther the goal",
            xlabel="β (reward per nat)",
            ylabel="distance at loss 0.1 (nats)",
        )
        for (name, curves), dash, mark in zip(runs.items(), ("-", "--"), ("o", "s"), strict=False):
            for number, (chosen, rejected) in enumerate(curves):
                epochs = range(1, len(chosen) + 1)
                for what, curve, colour in (
                    ("chosen", chosen, BETTER), ("rejected", rejected, WORSE)
                ):  # fmt: skip
                    right.plot(
                        epochs, curve, linestyle=dash, marker=mark, color=colour, markersize=4,
                        label=f"{what}, {name}" if number == 0 else None,
                    )  # fmt: skip
        right.axhline(0, color=GOAL, linewidth=0.8)
        right.legend(loc="lower left", fontsize=8)
        right.set_xticks([1, 2, 3, 4])
        right.set(
            title="At a small β both sink",
            xlabel="epoch",
            ylabel="log π − log π_ref (nats)",
        )
        return picture


def equal_samples(
    online: Mapping[str, tuple[Curve, Sequence[Curve]]],
    offline: Mapping[str, Curve],
    *,
    before: Curve,
) -> Figure:
    """Draw success over answers drawn, every run, and where methods without new draws end.

    Args:
        online: method → answers drawn, and success in each run.
        offline: method → success at the end of each run.
        before: success of each reference.

    Returns:
        Two panels with one axis.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2, sharey=True, width_ratios=(1.6, 1))
        for (name, (drawn, curves)), colour, dash, mark in zip(
            online.items(), COLOURS, DASHES, MARKS, strict=False
        ):
            for number, curve in enumerate(curves):
                left.plot(
                    drawn, curve, linestyle=dash, marker=mark, color=colour, markersize=4,
                    linewidth=1.2, alpha=0.8, label=name if number == 0 else None,
                )  # fmt: skip
        left.legend(loc="center right", fontsize=9, bbox_to_anchor=(1, 0.6))
        left.set(
            title="Four methods that draw anew",
            xlabel="answers drawn",
            ylabel="right answers (share)",
            xlim=(0, None),
            ylim=(0, 1.02),
        )
        for place, (numbers, colour, mark) in enumerate(
            zip(offline.values(), (SECOND, WORSE, BETTER, NEW_POLICY), MARKS, strict=False)
        ):
            right.plot([place] * len(numbers), numbers, mark, color=colour, markersize=6)
        right.set_xticks(range(len(offline)), [fill(name, 12) for name in offline], fontsize=9)
        right.set(title="Draws made once", xlim=(-0.5, len(offline) - 0.5))
        for axes in (left, right):
            axes.axhline(np.mean(before), color=OLD_POLICY, linestyle=":", linewidth=1.4)
        left.annotate(
            "reference", (0, np.mean(before)), xytext=(4, 4), textcoords="offset points",
            color=OLD_POLICY, fontsize=9,
        )  # fmt: skip
        return picture


def by_seed(panels: Mapping[str, Mapping[str, Curve]], *, ylabel: str) -> Figure:
    """Draw how each method ended in each design, a line through the runs of one seed.

    Args:
        panels: design → method → one number for each seed, seeds in the same order.
        ylabel: what the numbers are.

    Returns:
        A panel for each design, with one axis.
    """
    with style():
        picture = figure(9, 3.2)
        for axes, (design, methods) in zip(
            picture.subplots(1, len(panels), sharey=True), panels.items(), strict=True
        ):
            places = range(len(methods))
            for numbers in zip(*methods.values(), strict=True):
                axes.plot(places, numbers, "-", color=OLD_POLICY, linewidth=0.8, alpha=0.6)
            for place, numbers, colour, mark in zip(
                places, methods.values(), COLOURS, MARKS, strict=False
            ):
                axes.plot([place] * len(numbers), numbers, mark, color=colour, markersize=6)
            axes.set_xticks(places, list(methods), fontsize=9)
            axes.set(title=design, xlim=(-0.4, len(methods) - 0.6), ylim=(0, 1.02))
        picture.axes[0].set_ylabel(ylabel)
        return picture
