"""Static twins of the widget ClipRegion: its samples, its two steps out of the box, its blind spot.

Arrays in, a figure out. What a sample does is given, so that nothing is decided twice.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    WORSE,
    figure,
    style,
)

TITLES = {1: "Better than expected: flat to the right", -1: "Worse than expected: flat to the left"}


def clip_region_figure(
    ratios: Sequence[float],
    objectives: Sequence[float],
    pushes: Sequence[bool],
    *,
    clip_epsilon: float,
    largest_ratio: float,
) -> Figure:
    """Draw both signs of the advantage, and for each sample whether it still pushes.

    Args:
        ratios: π / π_old of each sample.
        objectives: its clipped objective for an advantage of 1 or −1; the sign tells the panel.
        pushes: whether its gradient is not zero.
        clip_epsilon: half-width of the band.
        largest_ratio: where the horizontal axis ends.

    Returns:
        Two panels: circles push, triangles outside the band push back, crosses have no gradient.
    """
    samples = np.array([ratios, objectives], dtype=float)
    pushing = np.array(pushes, dtype=bool)
    outside = np.abs(samples[0] - 1) > clip_epsilon
    with style():
        picture = figure(9, 3.6)
        for axes, sign in zip(picture.subplots(1, 2), (1, -1), strict=True):
            chosen = np.sign(samples[1]) == sign
            _curves(axes, sign, clip_epsilon, largest_ratio)
            color = BETTER if sign > 0 else WORSE
            inside, back = chosen & pushing & ~outside, chosen & pushing & outside
            axes.plot(*samples[:, inside], "o", color=color, mec=INK, label="pushes")
            towards = ">" if sign > 0 else "<"
            axes.plot(
                *samples[:, back], towards, ms=8, color=color, mec=INK, label="outside, pushes back"
            )
            axes.plot(*samples[:, chosen & ~pushing], "x", color=INK, mew=2.2, label="no gradient")
            axes.set(title=TITLES[sign], xlabel="ratio π / π_old")
            axes.set_ylabel("L_clip / |advantage|")
            axes.legend(loc="upper left" if sign > 0 else "lower left", fontsize=8)
        return picture


def _curves(axes: Axes, sign: int, clip_epsilon: float, largest_ratio: float) -> None:
    """Draw the band, the objective and the line without a clip."""
    low, high = 1 - clip_epsilon, 1 + clip_epsilon
    edges = [0, high, largest_ratio] if sign > 0 else [0, low, largest_ratio]
    flat = [0, high, high] if sign > 0 else [-low, -low, -largest_ratio]
    color = BETTER if sign > 0 else WORSE
    axes.axvspan(low, high, color=SHADE, zorder=0, label=f"1 ± {clip_epsilon:.2f}")
    axes.plot(
        [0, largest_ratio], [0, sign * largest_ratio], "--", color=OLD_POLICY, label="ratio·Â"
    )
    axes.plot(edges, flat, color=color, label="L_clip")
    axes.set_xlim(0, largest_ratio)
    axes.set_ylim(*sorted((0, sign * largest_ratio)))


def path_figure(
    ratios: Sequence[float], pushes: Sequence[bool], *, clip_epsilon: float, step: int, title: str
) -> Figure:
    """Draw a ratio after each optimiser step, and where its gradient ended.

    Args:
        ratios: one more than there are steps; the first is 1.
        pushes: whether the gradient at that ratio is not zero.
        clip_epsilon: half-width of the band.
        step: the step that is marked.
        title: what one sees.

    Returns:
        One panel.
    """
    path, pushing, steps = np.array(ratios), np.array(pushes, dtype=bool), np.arange(len(ratios))
    with style():
        picture = figure(9, 3.2)
        axes = picture.subplots()
        axes.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE, label="1 ± ε", zorder=0)
        axes.plot(steps, path, color=NEW_POLICY, linewidth=1)
        axes.plot(steps[pushing], path[pushing], "o", color=NEW_POLICY, mec=INK, label="pushes")
        axes.plot(steps[~pushing], path[~pushing], "x", color=INK, mew=1.8, label="no gradient")
        axes.plot(step, path[step], "s", ms=13, mfc="none", mec=INK, label=f"step {step}")
        axes.set(title=title, xlabel="optimiser steps", ylabel="ratio π / π_old")
        axes.legend(loc="center right", fontsize=8)
        return picture


def unsampled_figure(
    rare: Sequence[float], kl: Sequence[float], fractions: Sequence[float], *, step: int, title: str
) -> Figure:
    """Draw how the divergence grows with an action that the batch does not hold.

    Args:
        rare: probability of that action, along the way.
        kl: KL(π_old ‖ π), exact (nats).
        fractions: fraction_outside of the sampled actions.
        step: the place that is marked.
        title: what one sees.

    Returns:
        One panel.
    """
    with style():
        picture = figure(9, 3.2)
        axes = picture.subplots()
        axes.plot(rare, kl, "-", color=NEW_POLICY, label="KL(π_old ‖ π), in nats")
        axes.plot(rare, fractions, "--", color=OLD_POLICY, label="fraction_outside of the batch")
        axes.plot(rare[step], kl[step], "s", ms=13, mfc="none", mec=INK)
        axes.set(title=title, xlabel="probability of the action that was not drawn")
        axes.set_ylabel("KL (nats), fraction")
        axes.legend(loc="upper left", fontsize=8)
        return picture
