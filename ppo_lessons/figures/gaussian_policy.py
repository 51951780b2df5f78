"""Static twin of the widget GaussianPolicy: two bell curves, and the ratio of every action.

Numbers in, a figure out. The actions whose ratio lies inside the clip interval are given.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, SHADE, WORSE, figure, style

REACH = 4.0  # both panels show actions from −4 to 4
TOP_RATIO = 2.5


def gaussian_policy_figure(
    *,
    old: tuple[float, float],
    new: tuple[float, float],
    action: float,
    ratio: float,
    inside: Sequence[tuple[float, float]],
    share_inside: float,
    kl: float,
    limit: float,
    clip_epsilon: float,
) -> Figure:
    """Draw two Gaussian policies, and beside them the ratio of every action.

    Args:
        old: mean and log σ of the policy that drew the data.
        new: mean and log σ of the policy as it is now.
        action: the action that is looked at.
        ratio: new over old density there.
        inside: intervals of actions whose ratio lies inside the band; ends may be infinite.
        share_inside: share of the old policy's draws that lies in them.
        kl: KL(π_old ‖ π) in nats.
        limit: the environment cuts actions beyond ± this.
        clip_epsilon: half-width of the band around ratio 1.

    Returns:
        Two panels: the old policy dashed, the new one solid; on the left the old draws with a ratio
        inside are shaded and the new draws that are cut hatched.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        places = np.linspace(-REACH, REACH, 801)
        _densities(left, places, old, new, action, limit)
        shown = np.zeros(len(places), dtype=bool)
        for start, end in inside:
            shown |= (places >= start) & (places <= end)
        name = f"ratio inside: {100 * share_inside:.1f} of 100 old draws"
        left.fill_between(
            places, _density(places, *old), where=shown.tolist(), color=SHADE, zorder=0, label=name
        )
        left.set_ylim(0, 1.75 * max(_density(np.array([m]), m, s)[0] for m, s in (old, new)))
        left.legend(loc="upper left", fontsize=8)
        _ratios(right, places, old, new, clip_epsilon)
        marked: Any = {"color": INK, "marker": "o", "mfc": NEW_POLICY, "ms": 8, "zorder": 4}
        right.plot([action], [min(ratio, TOP_RATIO)], clip_on=False, **marked)
        text = f"{ratio:.3f}" if ratio < 1000 else "over 1000"
        near = np.array([action - 0.01, action + 0.01])
        rising = np.diff(np.log(_density(near, *new)) - np.log(_density(near, *old)))[0] > 0
        side = 8 if action < -2.4 or (action < 2.2 and rising == (ratio > TOP_RATIO)) else -8
        right.annotate(
            f"↑ {text}" if ratio > TOP_RATIO else text,
            (action, min(ratio, TOP_RATIO - 0.12)),
            xytext=(side, 4),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            fontsize=9,
        )
        for start, end in inside:
            ends = [max(start, -REACH), min(end, REACH)]
            if ends[0] < ends[1]:
                right.plot(ends, [0, 0], color=INK, linewidth=6, solid_capstyle="butt")
        right.set_title(f"Ratio of every action; KL {kl:.3f} nats")
        return picture


def _density(places: np.ndarray, mean: float, log_std: float) -> np.ndarray:
    return np.exp(-0.5 * ((places - mean) / np.exp(log_std)) ** 2 - log_std) / np.sqrt(2 * np.pi)


def _densities(
    axes: Axes,
    places: np.ndarray,
    old: tuple[float, float],
    new: tuple[float, float],
    action: float,
    limit: float,
) -> None:
    axes.plot(places, _density(places, *old), "--", color=OLD_POLICY, label="old policy")
    axes.plot(places, _density(places, *new), color=NEW_POLICY, label="new policy")
    axes.fill_between(
        places, _density(places, *new), where=(abs(places) > limit).tolist(), facecolor="none",
        edgecolor=WORSE, hatch="|||", linewidth=0, label=f"new draws cut at ±{limit:g}",
    )  # fmt: skip
    for side in (-limit, limit):
        axes.axvline(side, ymax=0.58, color=INK, linewidth=1, linestyle=":")
    at = np.array([action])
    heights = [_density(at, *policy)[0] for policy in (old, new)]
    axes.vlines(action, 0, max(heights), color=INK, linewidth=1)
    axes.plot([action], heights[:1], "o", color=OLD_POLICY, ms=5)
    axes.plot([action], heights[1:], "o", color=NEW_POLICY, ms=5)
    axes.set(xlabel="action", ylabel="density", xlim=(-REACH, REACH), title="Two policies")


def _ratios(
    axes: Axes,
    places: np.ndarray,
    old: tuple[float, float],
    new: tuple[float, float],
    clip_epsilon: float,
) -> None:
    logs = [-0.5 * ((places - mean) / np.exp(s)) ** 2 - s for mean, s in (old, new)]
    ratios = np.exp(np.minimum(logs[1] - logs[0], 5.0))
    axes.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE, zorder=0)
    axes.axhline(1, color=OLD_POLICY, linewidth=1)
    axes.plot(places, ratios, color=NEW_POLICY)
    axes.set(xlabel="action", ylabel="ratio π / π_old", xlim=(-REACH, REACH), ylim=(0, TOP_RATIO))
