"""Figures of lesson 11: runs that differ, intervals, a table of settings, a map, a valley."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

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

Interval = Sequence[float]
# For each verdict: colour, mark, how it is written.
LOOKS = {
    "above": (BETTER, "^", "above"),
    "below": (WORSE, "v", "below"),
    "inconclusive": (OLD_POLICY, "o", "inconclusive"),
    "base": (GOAL, "s", "the base"),
}
PALE = LinearSegmentedColormap.from_list("paper to blue", ["white", NEW_POLICY])


def runs_of_one_setting(env_steps: ArrayLike, returns: ArrayLike) -> Figure:
    """Draw the learning curve of each seed, the best and the worst one thick.

    Args:
        env_steps: of the points, [I] (environment steps).
        returns: mean return there, [seeds, I] (reward); NaN where nothing ended yet.
    """
    steps, curves = np.asarray(env_steps), np.asarray(returns)
    late = np.nanmean(curves[:, -max(1, curves.shape[1] // 10) :], axis=1)
    order = late.argsort()
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2, width_ratios=[3, 2])
        for curve in curves:
            left.plot(steps, curve, color=OLD_POLICY, linewidth=0.9, alpha=0.7)
        for place, color, line, name in (
            (order[-1], BETTER, "-", "best seed"),
            (order[0], WORSE, "--", "worst seed"),
        ):
            left.plot(steps, curves[place], line, color=color, linewidth=2.6)
            label_line(left, steps[-1], curves[place, -1], name, color)
        left.set(xlabel="environment steps", ylabel="mean return (reward)", ylim=(0, None))
        left.margins(x=0)
        left.set_xlim(steps[0], steps[-1] * 1.18)
        left.set_title(f"One setting, {len(curves)} seeds")
        right.plot(range(1, len(late) + 1), late[order], "o", color=NEW_POLICY)
        right.axhline(late.mean(), color=GOAL, linestyle=":", linewidth=1.4)
        right.annotate(
            "their mean", (0.04, late.mean()), (0, 4), textcoords="offset points",
            xycoords=("axes fraction", "data"), fontsize=9,
        )  # fmt: skip
        right.xaxis.get_major_locator().set_params(integer=True)
        right.set(xlabel="seeds, from worst to best", ylabel="score (reward)", ylim=(0, None))
        right.set_title("Which of them is in the paper?")
        return picture


def three_middles(
    scores: Mapping[str, ArrayLike], middles: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw sets of scores with their mean, interquartile mean and median.

    Args:
        scores: by name of the set, one number for each run (reward).
        middles: by the same name: mean, interquartile mean, median (reward).
    """
    marks = (("D", "mean", WORSE), ("o", "interquartile mean", NEW_POLICY), ("|", "median", GOAL))
    with style():
        picture = figure(9, 0.8 + 0.75 * len(scores))
        axes = picture.subplots()
        for row, (name, runs) in enumerate(scores.items()):
            runs = np.sort(np.asarray(runs))
            cut = len(runs) // 4
            kept = runs[cut : len(runs) - cut]
            axes.plot([kept[0], kept[-1]], [row, row], color=SHADE, linewidth=16, zorder=0,
                      solid_capstyle="butt")  # fmt: skip
            axes.plot(runs, [row] * len(runs), "o", color=OLD_POLICY, markersize=5, alpha=0.8)
            for (mark, label, color), value in zip(marks, middles[name], strict=True):
                axes.plot(
                    value, row + 0.32, mark, color=color, markersize=11 if mark == "|" else 8,
                    markeredgewidth=2.5 if mark == "|" else 1, label=label if row == 0 else None,
                    markerfacecolor="none" if mark == "D" else color,
                )  # fmt: skip
        axes.set_yticks(range(len(scores)), list(scores))
        axes.set_ylim(len(scores) - 0.4, -0.55)
        axes.set(xlim=(0, 520), xlabel="score of a run (reward); grey: the middle half")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=9)
        axes.set_title("One bad run moves the mean, and not the middle half")
        return picture


def coverage(
    counts: Sequence[int], shares: Mapping[str, Sequence[float]], *, promised: float
) -> Figure:
    """Draw how often an interval contains what it is about, over the number of seeds.

    Args:
        counts: numbers of seeds.
        shares: by name of the statistic, the share of studies whose interval holds the truth.
        promised: the confidence.
    """
    with style():
        picture = figure(7, 3.4)
        axes = picture.subplots()
        looks = ((NEW_POLICY, "o", "-"), (WORSE, "D", "--"))
        for (name, line), (color, mark, dash) in zip(shares.items(), looks, strict=False):
            axes.plot(counts, line, dash, marker=mark, color=color, label=name)
        axes.axhline(promised, color=GOAL, linestyle=":", label="promised")
        axes.set(xscale="log", xlabel="seeds", ylabel="share of intervals that hold the truth")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_ylim(0.4, 1.02)
        axes.legend(loc="lower right", fontsize=9)
        axes.set_title("With three seeds an interval promises too much")
        return picture


def comparison(
    rows: Sequence[tuple[str, ArrayLike, float, Interval, str]], *, title: str, unit: str = "reward"
) -> Figure:
    """Draw settings below each other: all runs, the middle, its interval, and the verdict.

    Args:
        rows: name, scores of the runs, their interquartile mean, its (low, high), and the verdict
            against the base: "above", "below", "inconclusive", or "base".
        title: what is to be seen.
        unit: of the scores.
    """
    with style():
        picture = figure(9, 1.0 + 0.36 * len(rows))
        axes = picture.subplots()
        _judged(axes, rows)
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.set_xlabel(
            f"score ({unit}); number and mark: interquartile mean; bar: its 95 % interval; |: a run"
        )
        axes.set_title(title)
        return picture


def two_tasks(
    tables: Mapping[str, Sequence[tuple[str, ArrayLike, float, Interval, str]]], *, title: str
) -> Figure:
    """Draw the same settings on two tasks, each table with its own verdicts.

    Args:
        tables: by name of the task, rows as in `comparison`, with the same settings.
        title: what is to be seen.
    """
    with style():
        names = [row[0] for row in next(iter(tables.values()))]
        picture = figure(9.6, 1.4 + 0.36 * len(names))
        for axes, (task, rows) in zip(picture.subplots(1, 2, sharey=True), tables.items(),
                                      strict=True):  # fmt: skip
            _judged(axes, rows)
            axes.set_yticks(range(len(names)), names)
            axes.set_xlabel("score (reward); bar: 95 % interval; |: a run")
            axes.set_title(task, fontweight="normal")
        picture.suptitle(title, fontsize=12, fontweight="bold")
        return picture


def _judged(axes: Axes, rows: Sequence[tuple[str, ArrayLike, float, Interval, str]]) -> None:
    """Draw runs, middle, interval and verdict of each row; the base is shaded."""
    widest = max(len(f"{row[2]:.0f}") for row in rows)
    for place, (_, runs, middle, (low, high), verdict) in enumerate(rows):
        color, mark, words = LOOKS[verdict]
        if verdict == "base":
            axes.axvspan(low, high, color=SHADE, zorder=0)
        runs = np.asarray(runs)
        axes.plot(runs, [place + 0.2] * len(runs), "|", color=OLD_POLICY, alpha=0.55, markersize=5)
        axes.plot([low, high], [place - 0.1] * 2, color=color, linewidth=4, solid_capstyle="butt")
        axes.plot(middle, place - 0.1, mark, color=color, markersize=7, markeredgecolor="white")
        number = f"{middle:.0f}".replace("-", "−").rjust(widest, "\u2007")  # as wide as a digit
        axes.annotate(f"{number}  {words}", (1.01, place), xycoords=("axes fraction", "data"),
                      color=color, fontsize=9, va="center")  # fmt: skip
    axes.set_ylim(len(rows) - 0.4, -0.6)


def profiles(thresholds: ArrayLike, shares: Mapping[str, ArrayLike], *, title: str) -> Figure:
    """Draw the share of runs that end above each threshold.

    Args:
        thresholds: [levels] (reward).
        shares: by name of the setting, [levels].
        title: what is to be seen.
    """
    looks = ((NEW_POLICY, "-"), (WORSE, "--"), (GOAL, ":"), (SECOND, "-."))
    with style():
        picture = figure(7, 3.4)
        axes = picture.subplots()
        for (name, line), (color, dash) in zip(shares.items(), looks, strict=False):
            axes.plot(thresholds, line, dash, color=color, label=name, drawstyle="steps-post")
        axes.set(xlabel="threshold τ (reward)", ylabel="share of runs above τ", ylim=(0, 1.03))
        axes.legend(loc="lower left", fontsize=9)
        axes.set_title(title)
        return picture


def clip_map(
    learning_rates: Sequence[float],
    epochs: Sequence[int],
    with_clip: ArrayLike,
    without: ArrayLike,
    verdicts: Sequence[Sequence[str]],
    *,
    unit: str = "reward",
) -> Figure:
    """Draw, for each learning rate and K, what is reached with the clip, without it, and a verdict.

    Args:
        learning_rates: of the columns.
        epochs: K of the rows.
        with_clip: interquartile means, [epochs, learning_rates] (reward).
        without: the same without the clip.
        verdicts: of the clip against no clip, [epochs][learning_rates].
        unit: of the scores.
    """
    tables = [np.asarray(with_clip), np.asarray(without)]
    low, high = min(table.min() for table in tables), max(table.max() for table in tables)
    with style():
        picture = figure(9.6, 3.5)
        panels = picture.subplots(1, 3, sharey=True)
        for axes, table, title in zip(panels, tables, ("With the clip", "Without"), strict=False):
            axes.imshow(table, cmap=PALE, vmin=low, vmax=high, aspect="auto", origin="lower")
            for place in np.ndindex(table.shape):
                dark = table[place] > low + 0.6 * (high - low)
                axes.text(
                    place[1], place[0], f"{table[place]:.0f}", ha="center", va="center",
                    color="white" if dark else INK, fontsize=9,
                )  # fmt: skip
            axes.set_title(f"{title} (IQM, {unit})")
        last = panels[2]
        last.imshow(
            np.zeros(tables[0].shape), cmap=PALE, vmin=0, vmax=1, aspect="auto", origin="lower"
        )
        for row, words in enumerate(verdicts):
            for column, verdict in enumerate(words):
                color, mark, _ = LOOKS[verdict]
                hollow = verdict == "inconclusive"
                last.plot(column, row, mark, color=color, markersize=6 if hollow else 13,
                          markerfacecolor="none" if hollow else color)  # fmt: skip
        last.set_title("▲ the clip is above, ○ open", fontsize=10)
        for axes in panels:
            axes.grid(False)
            axes.set_xticks(range(len(learning_rates)), [_short(rate) for rate in learning_rates])
            axes.set_yticks(range(len(epochs)), [str(count) for count in epochs])
            axes.set_xlabel("learning rate")
        panels[0].set_ylabel("epochs K")
        return picture


def _short(rate: float) -> str:
    return f"{rate:g}".replace("0.000", ".000").replace("0.00", ".00").replace("0.0", ".0")


def papers_table(
    rows: Sequence[tuple[str, ArrayLike, float, Interval, str]],
    published: Sequence[float],
    *,
    runs_then: int,
) -> Figure:
    """Draw a published table without intervals beside ours with intervals.

    Args:
        rows: ours, as in `comparison`.
        published: the score that was published for each row.
        runs_then: runs behind each published number.
    """
    with style():
        picture = figure(9.6, 1.2 + 0.34 * len(rows))
        left, right = picture.subplots(1, 2, sharey=True)
        for place, then in enumerate(published):
            left.plot(then, place, "s", color=OLD_POLICY, markersize=8)
            number = f"{then:.2f}".replace("-", "−")
            left.annotate(number, (then, place), (8, 0), textcoords="offset points", va="center",
                          fontsize=9)  # fmt: skip
        left.set_yticks(range(len(rows)), [row[0] for row in rows])
        left.set(
            xlabel="average normalised score, 7 tasks", xlim=(-0.6, 1.15), xticks=[-0.5, 0, 0.5, 1]
        )
        left.set_title(f"The paper: {runs_then} runs, no interval")
        _judged(right, rows)
        right.set_xlabel("score on CartPole (reward), 95 % interval")
        right.set_title(f"Ours: {len(np.asarray(rows[0][1]))} runs each")
        return picture


def valley(
    tracks: Mapping[str, ArrayLike], held: Sequence[int], shares: Sequence[float], *, flag: float
) -> Figure:
    """Draw a car in a valley: places over time, and how often chance reaches the flag.

    Args:
        tracks: by name, places over the steps of one episode.
        held: how many steps one random action is held.
        shares: of episodes that reach the flag, for each of `held`.
        flag: its place.
    """
    looks = ((OLD_POLICY, "-"), (NEW_POLICY, "--"), (BETTER, "-."))
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        for (name, places), (color, dash) in zip(tracks.items(), looks, strict=False):
            left.plot(places, dash, color=color, label=name)
        left.axhline(flag, color=GOAL, linestyle=":")
        left.annotate("flag", (0, flag), (2, -11), textcoords="offset points", fontsize=9)
        left.set(
            xlabel="step", ylabel="place of the car", ylim=(-1.25, 1.55), yticks=[-1, -0.5, 0, 0.5]
        )
        left.legend(loc="upper left", fontsize=8.5, ncols=1)
        left.set_title("One episode each")
        right.bar(range(len(held)), [100 * share for share in shares], color=NEW_POLICY)
        for place, share in enumerate(shares):
            right.annotate(f"{100 * share:.0f}", (place, 100 * share), (0, 3),
                           textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
        right.set_xticks(range(len(held)), [str(count) for count in held])
        right.set(xlabel="steps that a random action is held", ylabel="episodes at the flag (%)")
        right.set_title("Less entropy, more exploration")
        right.margins(y=0.15)
        return picture


def reader_study(
    env_steps: ArrayLike,
    curves: Mapping[str, ArrayLike],
    rows: Sequence[tuple[str, ArrayLike, float, Interval, str]],
) -> Figure:
    """Draw two settings: every seed thin and the median thick, and their intervals.

    Args:
        env_steps: of the points, [I] (environment steps).
        curves: by name, [seeds, I] (reward); NaN where nothing ended yet.
        rows: as in `comparison`.
    """
    looks = ((NEW_POLICY, "-"), (WORSE, "--"))
    with style():
        picture = figure(9, 3.5)
        left, right = picture.subplots(1, 2, width_ratios=[3, 2])
        for (name, table), (color, dash) in zip(curves.items(), looks, strict=False):
            table = np.asarray(table)
            for curve in table:
                left.plot(env_steps, curve, color=color, linewidth=0.6, alpha=0.25)
            begun = np.isfinite(table).any(axis=0)  # before the first end there is no return
            middle = np.nanmedian(table[:, begun], axis=0)
            left.plot(
                np.asarray(env_steps)[begun], middle, dash, color=color, linewidth=3, label=name
            )
        left.set(xlabel="environment steps", ylabel="mean return (reward)", ylim=(0, None))
        left.legend(loc="upper left", fontsize=9)
        left.set_title("Every seed, and the median")
        _intervals(right, rows)
        return picture


def _intervals(
    axes: Axes, rows: Sequence[tuple[str, ArrayLike, float, Interval, str]], **text: Any
) -> None:
    for place, (_, runs, middle, (low, high), verdict) in enumerate(rows):
        color, mark, words = LOOKS[verdict]
        runs = np.asarray(runs)
        across = place - 0.28 + 0.4 * (np.arange(len(runs)) + 0.5) / len(runs)
        axes.plot(across, runs, "o", color=OLD_POLICY, markersize=3.5, alpha=0.7)
        axes.plot([place + 0.25] * 2, [low, high], color=color, linewidth=7, solid_capstyle="butt")
        axes.plot(place + 0.25, middle, mark, color="white", markersize=4)
        axes.annotate(words, (place, 0.02), xycoords=("data", "axes fraction"), ha="center",
                      color=color, fontsize=9, **text)  # fmt: skip
    axes.set_xticks(range(len(rows)), [row[0] for row in rows])
    axes.set(xlim=(-0.5, len(rows) - 0.4), ylabel="score (reward)", ylim=(0, None))
    axes.set_title("Scores and intervals")
