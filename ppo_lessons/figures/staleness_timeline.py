"""Static twin of the widget StalenessTimeline: three policies in time, and recorded runs by age."""

from collections.abc import Mapping, Sequence
from math import log2
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.staleness import LOOKS, NAMES
from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, figure, style

GENERATOR, TRAINER = 1.0, 0.0  # heights of the lanes


def staleness_timeline_figure(
    drawn: Sequence[int],
    *,
    updates: int,
    versions: tuple[int, int, int],
    waiting: int,
    spans: Sequence[tuple[str, int, int]],
    shares: Mapping[str, Mapping[int, Sequence[float]]],
    chosen: tuple[str, int],
) -> Figure:
    """Draw two lanes with the three policies of one update, and beside them what runs came to.

    Args:
        drawn: the version that drew each batch, in its order.
        updates: updates for each batch.
        versions: of μ, π_prox and π.
        waiting: batches in the buffer.
        spans: what the loss compares: words, first and last version.
        shares: correction → age (batches) → right answers at the end of each seed (share).
        chosen: correction and age that are shown.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9.5, 3.9)
        left, right = picture.subplots(1, 2, width_ratios=(1.35, 1))
        _lanes(left, drawn, updates, versions[1] // updates, waiting)
        _policies(left, *versions)
        for row, (words, low, high) in enumerate(spans):
            height = -0.55 - 0.42 * row
            look = "--" if len(spans) == 2 and row == 0 else "-"
            colour = OLD_POLICY if look == "--" else NEW_POLICY
            left.plot([low, high], [height] * 2, look, color=colour, marker="|", markersize=8)
            left.text(0, height - 0.09, words, fontsize=8.5, va="top")
        _ends(right, shares, *chosen)
        return picture


def _lanes(axes: Axes, drawn: Sequence[int], updates: int, batch: int, waiting: int) -> None:
    for place, drawn_by in enumerate(drawn[: batch + waiting + 1]):
        colour, look, width = (OLD_POLICY, "-", 0.6) if place < batch else (INK, ":", 1.0)
        if place == batch:
            look, width = "-", 2.6
        axes.plot(
            [drawn_by, place * updates], [GENERATOR, TRAINER], look, color=colour, linewidth=width
        )
    last = len(drawn) * updates
    for lane, colour in ((GENERATOR, OLD_POLICY), (TRAINER, NEW_POLICY)):
        axes.plot([0, last], [lane, lane], color=colour, linewidth=1.2)
    axes.set(
        yticks=[TRAINER, GENERATOR], yticklabels=["trainer", "generator"], ylim=(-1.35, 1.4),
        xlim=(-0.03 * last, 1.04 * last), title="Who drew, where it began, who learns",
        xlabel="version: updates that the policy has seen",
        xticks=range(0, last, 5 * updates),
    )  # fmt: skip
    axes.grid(visible=False)


def _policies(axes: Axes, behaviour: int, proximal: int, now: int) -> None:
    marks = (
        (behaviour, GENERATOR, "o", "white", OLD_POLICY, f"μ v{behaviour}", (0, 9), "center"),
        (proximal, TRAINER, "D", "white", INK, f"π_prox v{proximal}", (-6, -15), "right"),
        (now, TRAINER, "o", NEW_POLICY, NEW_POLICY, f"π v{now}", (6, -15), "left"),
    )
    for version, lane, marker, face, edge, words, offset, side in marks:
        axes.plot(
            [version], [lane], marker, markersize=5 if marker == "o" and lane == TRAINER else 10,
            markerfacecolor=face, markeredgecolor=edge, zorder=3,
        )  # fmt: skip
        axes.annotate(
            words, (version, lane), xytext=offset, textcoords="offset points", ha=side,
            fontsize=9, weight="bold", annotation_clip=False,
        )  # fmt: skip


def _ends(
    axes: Axes, shares: Mapping[str, Mapping[int, Sequence[float]]], correction: str, age: int
) -> None:
    ages = sorted({each for cells in shares.values() for each in cells})
    for name, cells in shares.items():
        colour, look, marker = LOOKS[name]
        run_at = sorted(cells)
        places = [log2(1 + each) for each in run_at]
        for place, each in zip(places, run_at, strict=True):
            seeds = [100 * share for share in cells[each]]
            axes.plot([place] * len(seeds), seeds, marker, color=colour, markersize=3, alpha=0.6)
        axes.plot(
            places, [100 * median(cells[each]) for each in run_at], look, color=colour,
            marker=marker, markersize=6, linewidth=3 if name == correction else 1.2,
            label=NAMES.get(name, name),
        )  # fmt: skip
    axes.axvline(log2(1 + age), color=GOAL, linestyle=":", linewidth=1.2)
    axes.set_xticks([log2(1 + each) for each in ages], [str(each) for each in ages])
    axes.set(
        ylim=(-3, 103), xlim=(-0.35, 4.5), xlabel="age (batches)", ylabel="right answers of 100",
        title="Recorded runs: right at the end",
    )  # fmt: skip
    axes.legend(fontsize=8, loc="lower left")
