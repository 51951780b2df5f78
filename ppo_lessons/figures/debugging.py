"""Pictures of lesson 12: a run that does not learn, tables of bugs, the zoo beside healthy runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style

Series = Sequence[float | None]  # None: could not be computed
Run = Mapping[str, Series]
BAND = "#D5D5D5"
PATIENCE = 5  # iterations in a row outside the band
LOGARITHMIC = ("kl_k3", "value_loss", "gradient_norm")  # they differ by factors, not by sums
FLOOR = 1e-6  # smaller numbers are drawn as this one
SILENT_SHARE = "silent share of those outside"
TWO_FRACTIONS = ("fraction_zero_gradient", "fraction_outside")
FEWEST_OUTSIDE = 0.01
UNITS = {
    "episode_return": "return (reward per episode)",
    "value_loss": "value loss (squared reward)",
    "ev_lambda": "ev_lambda",
    "entropy": "entropy (nats)",
    "kl_k3": "kl_k3 (nats)",
    "policy_loss": "policy loss",
    "gradient_norm": "gradient_norm",
    "fraction_outside": "fraction_outside",
    "fraction_zero_gradient": "fraction_zero_gradient",
    "ev_monte_carlo": "ev_monte_carlo",
}


def numbers_of(series: Series) -> np.ndarray:
    """Make an array; what could not be computed is not a number."""
    return np.array([np.nan if each is None else each for each in series], dtype=float)


def scaled(run: Run, metric: str) -> np.ndarray:
    """Give a metric as it is compared: numbers that differ by factors as their logarithm.

    One is no metric of a run, but two: of the samples outside the interval, the share that is
    silent. Where hardly any is outside it says nothing.
    """
    if metric == SILENT_SHARE:
        silent, outside = (numbers_of(run[name]) for name in TWO_FRACTIONS)
        return np.divide(
            silent, outside, out=np.full_like(silent, np.nan), where=outside > FEWEST_OUTSIDE
        )
    line = numbers_of(run[metric])
    return np.log10(np.maximum(line, FLOOR)) if metric in LOGARITHMIC else line


def opening(healthy: Run, sick: Run) -> Figure:
    """Draw a run that does not learn beside a healthy one, as somebody first sees it.

    Args:
        healthy: metrics over the iterations: `episode_return`, `ev_lambda`.
        sick: the same of the other run.

    Returns:
        Two panels over the iterations.
    """
    looks: Any = (
        (healthy, {"color": OLD_POLICY, "linestyle": "--", "label": "healthy"}),
        (sick, {"color": WORSE, "label": "this one"}),
    )
    titles = {"episode_return": "The return stays at the floor", "ev_lambda": "Something learns"}
    with style():
        picture = figure(9, 2.9)
        panels = picture.subplots(1, 2)
        for axes, (metric, title) in zip(panels, titles.items(), strict=True):
            for run, look in looks:
                line = numbers_of(run[metric])
                axes.plot(np.arange(1, len(line) + 1), line, **look)
            axes.set(title=title, ylabel=UNITS[metric], xlabel="iteration")
        panels[0].set_ylim(0, None)
        panels[1].set_ylim(-0.6, 1.05)
        panels[0].legend(fontsize=9, loc="upper left")
        return picture


def marked_table(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[str, Mapping[str, str]],
    *,
    title: str,
    column_labels: Mapping[str, str] | None = None,
    row_labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a table of who is found by what: a filled cell with its word, or an empty one.

    Args:
        rows: in order, from above.
        columns: in order.
        cells: for each row and column what to write; "" leaves the cell empty.
        title: what one sees.
        column_labels: for people; the names themselves if left out.
        row_labels: the same for the rows.

    Returns:
        One panel.
    """
    names, heads = row_labels or {}, column_labels or {}
    with style():
        picture = figure(9, 1.3 + 0.235 * len(rows))
        axes = picture.subplots()
        for y, row in enumerate(rows):
            for x, column in enumerate(columns):
                word = cells[row][column]
                box = Rectangle(
                    (x - 0.46, y - 0.42), 0.92, 0.84, linewidth=0.8,
                    facecolor=WORSE if word else "white", edgecolor=WORSE if word else "#CCCCCC",
                    alpha=0.9,
                )  # fmt: skip
                axes.add_patch(box)
                axes.text(x, y, word, ha="center", va="center", fontsize=8.5, color="black")
        axes.set(xlim=(-0.55, len(columns) - 0.45), ylim=(len(rows) - 0.45, -0.55))
        axes.set_yticks(range(len(rows)), [names.get(row, row) for row in rows], fontsize=9)
        labels = [heads.get(column, column).replace(" ", "\n") for column in columns]
        axes.set_xticks(range(len(columns)), labels, fontsize=8.5)
        axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title(title, pad=10)
        return picture


def band_of(healthy: Sequence[Run], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Give the range of healthy runs, widened by its own width on both sides.

    Args:
        healthy: runs that differ in their seed.
        metric: which number.

    Returns:
        Lower and upper edge over the iterations, as `scaled`; not a number where no run has one.
    """
    rows = np.stack([scaled(run, metric) for run in healthy])
    known = ~np.isnan(rows).all(axis=0)
    low, high = np.full(rows.shape[1], np.nan), np.full(rows.shape[1], np.nan)
    low[known], high[known] = np.nanmin(rows[:, known], 0), np.nanmax(rows[:, known], 0)
    return low - (high - low), high + (high - low)


def first_outside(
    run: Run, healthy: Sequence[Run], metric: str, *, patience: int = PATIENCE
) -> int | None:
    """Find the iteration, from 1, at which a run leaves the band of healthy ones.

    Args:
        run: the run in question.
        healthy: the runs beside it.
        metric: which number.
        patience: how many iterations in a row it must be outside.

    Returns:
        The first iteration of the first such stretch; None if there is none.
    """
    low, high = band_of(healthy, metric)
    line = scaled(run, metric)
    out = (line < low) | (line > high)
    starts = (t for t in range(len(out) - patience + 1) if out[t : t + patience].all())
    found = next(starts, None)
    return None if found is None else found + 1


def zoo(
    runs: Mapping[str, Run],
    healthy: Sequence[Run],
    shown: Mapping[str, str],
    titles: Mapping[str, str],
) -> Figure:
    """Draw each bug's run beside the healthy ones, in the metric that betrays it.

    Args:
        runs: metrics over the iterations, by the name of the bug.
        healthy: runs without a bug.
        shown: for each bug a metric, "" if none betrays it: then the return is drawn.
        titles: of the bugs, for people.

    Returns:
        One small panel for each bug.
    """
    with style():
        rows = -(-(len(shown) + 1) // 4)
        picture = figure(9, 1.72 * rows)
        panels = list(picture.subplots(rows, 4).flat)
        for axes, (name, metric) in zip(panels, shown.items(), strict=False):
            _beside(axes, runs[name], healthy, metric or "episode_return")
            words = UNITS.get(metric, metric).split(" (")[0] if metric else "return: no metric"
            axes.set_title(f"{titles[name]}\n{words}", fontsize=7.8, fontweight="normal")
        for axes in panels[len(shown) :]:
            axes.axis("off")
        key = panels[len(shown)]
        key.plot([], [], color=WORSE, label="with the bug")
        key.fill_between([], [], color=BAND, label="healthy seeds,\nwidened")
        key.legend(loc="center", fontsize=8.5)
        return picture


def _beside(axes: Axes, run: Run, healthy: Sequence[Run], metric: str) -> None:
    low, high = band_of(healthy, metric)
    line = scaled(run, metric)
    iterations = np.arange(1, len(line) + 1)
    if metric in LOGARITHMIC:
        low, high, line = (10.0**each for each in (low, high, line))
        axes.set_yscale("log")
        axes.set_ylim(0.3 * FLOOR if metric == "kl_k3" else 3e-4, 30 if metric == "kl_k3" else 3e2)
    elif metric.startswith("ev_"):
        axes.set_ylim(-1.5, 1.3)
    axes.fill_between(iterations, low, high, color=BAND, linewidth=0)
    axes.plot(iterations, line, color=WORSE, linewidth=1.4)
    axes.tick_params(labelsize=7)
    axes.set_xticks((1, 24, 48))


def still_learning(
    last: Mapping[str, float], titles: Mapping[str, str], *, healthy: Sequence[float]
) -> Figure:
    """Draw where each bug's run ended, beside the range of the healthy ones.

    Args:
        last: the return at the end, by the name of the bug.
        titles: of the bugs, for people.
        healthy: the returns at the end of healthy runs.

    Returns:
        One panel; the best at the top.
    """
    order = sorted(last, key=lambda name: last[name])
    with style():
        picture = figure(9, 0.9 + 0.225 * len(order))
        axes = picture.subplots()
        axes.axvspan(min(healthy), max(healthy), color=BAND, label="healthy seeds")
        axes.axvline(400, color=GOAL, linestyle=":", linewidth=1)
        for y, name in enumerate(order):
            learns = last[name] >= 400
            axes.plot([0, last[name]], [y, y], color=INK, linewidth=0.6, alpha=0.4)
            axes.plot(
                last[name], y, "o" if learns else "X", markersize=7,
                color=NEW_POLICY if learns else WORSE,
            )  # fmt: skip
        axes.set_yticks(range(len(order)), [titles[name] for name in order], fontsize=9)
        axes.set(xlim=(0, 515), xlabel="return at the end (reward per episode)")
        axes.set_title("A circle: it learned, and nobody looks for a bug")
        axes.legend(loc="lower right", fontsize=9)
        return picture
