"""Static twin of the widget GradientAgreement: two directions, and how agreement grows.

Arrays in, a figure out. Directions come in tenths of a degree, None where there is none.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, SHADE, figure, style


def gradient_agreement_figure(
    angles: Sequence[int | None],
    exact: int,
    *,
    pair: int,
    batch_sizes: Sequence[int],
    cosine: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    others: Mapping[str, Sequence[float]],
    name: str,
    num_episodes: int,
    target: float,
) -> Figure:
    """Draw one pair of batches on a compass, and the expected cosine over the batch size.

    Args:
        angles: directions of batches, two by two, in tenths of a degree.
        exact: direction of the gradient itself.
        pair: which two are drawn as arrows, from 0.
        batch_sizes: episodes in a batch.
        cosine: mean cosine between two batches of each size.
        low: 10 of 100 pairs lie below.
        high: 10 of 100 pairs lie above.
        others: the same curve of other estimators, by name.
        name: of this estimator.
        num_episodes: the batch size of the compass.
        target: the cosine that is asked for.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.8)
        left, right = picture.subplots(1, 2, width_ratios=(1, 1.35))
        _compass(left, angles, exact, pair)
        left.set_title(f"1 and 2: two batches of {num_episodes}")
        _curves(right, batch_sizes, cosine, low, high, others, name)
        here = list(batch_sizes).index(num_episodes)
        right.plot(num_episodes, cosine[here], "s", ms=12, mfc="none", mec=INK, mew=1.8)
        right.axhline(target, color=GOAL, linestyle=":", linewidth=1.2)
        right.set(title="More episodes, more agreement", xlabel="episodes in each batch")
        right.set(ylabel="mean cosine between two batches", ylim=(-1.05, 1.05))
        return picture


def _compass(axes: Axes, angles: Sequence[int | None], exact: int, pair: int) -> None:
    """Draw directions only: the cosine does not know lengths."""
    turn = np.linspace(0, 2 * np.pi, 181)
    axes.plot(np.cos(turn), np.sin(turn), color=OLD_POLICY, linewidth=1)
    rim = np.deg2rad([angle / 10 for angle in angles if angle is not None])
    ends = np.array([1.04, 1.12])
    axes.plot(np.outer(ends, np.cos(rim)), np.outer(ends, np.sin(rim)), color=OLD_POLICY, lw=1)
    x, y = _point(exact)
    axes.plot([0, x], [0, y], color=GOAL, linewidth=1, linestyle=":")
    axes.plot(1.05 * x, 1.05 * y, "*", color=GOAL, ms=12, label="gradient of J, exact")
    for number, (angle, dash, length) in enumerate(
        zip(angles[2 * pair : 2 * pair + 2], ("-", "--"), (1.0, 0.72), strict=True), start=1
    ):
        x, y = _point(angle) if angle is not None else (0.0, 0.0)
        axes.plot([0, length * x], [0, length * y], dash, color=NEW_POLICY)
        fill, ink = (NEW_POLICY, "white") if number == 1 else ("white", INK)
        axes.plot(length * x, length * y, "o", ms=13, mfc=fill, mec=NEW_POLICY, mew=1.8)
        place = (length * x, length * y)
        axes.annotate(str(number), place, color=ink, ha="center", va="center", fontsize=9)
    axes.plot([], [], "|", color=OLD_POLICY, label="more batches")
    axes.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.3, 1.3), ylim=(-1.75, 1.2))
    axes.text(0, -1.22, "stay in the valley →", fontsize=9, ha="center", va="center")
    axes.text(-1.28, 0, "stay on the hill →", fontsize=9, rotation=90, ha="center", va="center")
    axes.axhline(0, color=SHADE, linewidth=1, zorder=0)
    axes.axvline(0, ymin=0.22, color=SHADE, linewidth=1, zorder=0)
    axes.spines[:].set_visible(False)
    axes.legend(loc="lower center", fontsize=8, ncols=2)


def _point(angle: int) -> tuple[float, float]:
    turn = np.deg2rad(angle / 10)
    return float(np.cos(turn)), float(np.sin(turn))


def _curves(
    axes: Axes,
    batch_sizes: Sequence[int],
    cosine: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    others: Mapping[str, Sequence[float]],
    name: str,
) -> None:
    axes.fill_between(batch_sizes, low, high, color=SHADE, label="middle 80 of 100 pairs", zorder=0)
    for (other, values), dash in zip(others.items(), ("--", "-."), strict=False):
        axes.plot(batch_sizes, values, dash, color=OLD_POLICY, linewidth=1.2, label=other)
    axes.plot(batch_sizes, cosine, "o-", ms=3.5, color=NEW_POLICY, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 4, 16, 64, 256], labels=["1", "4", "16", "64", "256"])
    axes.legend(loc="lower right", fontsize=8)
