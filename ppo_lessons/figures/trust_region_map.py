"""Static twins of the widget TrustRegion: all policies of one state as the points of a triangle.

Arrays in, a figure out. Policies are three probabilities; the edge of the ball is given.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    WORSE,
    figure,
    style,
)

HEIGHT = np.sqrt(3) / 2  # of a triangle whose side is 1
MARKERS = (("o", "white"), ("^", NEW_POLICY), ("s", INK))  # plain, natural, penalty
FARTHEST, HIGHEST = 0.25, 0.6  # where the right panel ends
TOP_RATIO = 2.5


def step_map_figure(
    policy_old: Sequence[float],
    ball: Sequence[Sequence[float]],
    steps: Mapping[str, Sequence[float]],
    prices: Sequence[tuple[float, float]],
    front: Sequence[Sequence[float]],
    *,
    max_kl: float,
) -> Figure:
    """Draw where three steps end, and what each gains for its KL.

    Args:
        policy_old: probabilities of a, b and c.
        ball: corners of the edge of the KL ball, probabilities of a and b.
        steps: name and end of the plain, the natural and the penalty step.
        prices: KL (nats) and gain in L (reward) of each step.
        front: KL and largest gain for it, in order.
        max_kl: δ, radius of the ball (nats).

    Returns:
        Two panels; a step beyond the right edge is drawn on it, with its KL in the legend.
    """
    with style():
        picture = figure(9, 3.8)
        left, right = picture.subplots(1, 2, width_ratios=(1, 1.2))
        _triangle(left, policy_old, ball)
        left.set_title("All policies: a point for each")
        right.axvspan(0, max_kl, color=SHADE, zorder=0)
        right.axvline(max_kl, color=INK, linewidth=1)
        right.plot(*np.array([(0, 0), *front]).T, "--", color=OLD_POLICY, label="most L for its KL")
        for (name, policy), (kl, gain), (mark, fill) in zip(
            steps.items(), prices, MARKERS, strict=True
        ):
            look = {"marker": mark, "mfc": fill, "mec": INK, "ms": 9, "ls": "none", "zorder": 3}
            left.plot(*_place(policy), **look)
            right.plot(
                min(kl, FARTHEST), min(gain, HIGHEST), clip_on=False,
                label=f"{name}: {kl:.3f} nats", **look,
            )  # fmt: skip
        right.set(xlim=(0, FARTHEST), ylim=(0, HIGHEST), title="What a step gains for its KL")
        right.set(xlabel="KL(π_old ‖ π), nats", ylabel="gain in L")
        right.annotate("δ", (max_kl, HIGHEST), xytext=(3, -10), textcoords="offset points")
        right.legend(loc="lower right", fontsize=8)
        return picture


def clip_map_figure(
    policy_old: Sequence[float],
    advantages: Sequence[float],
    sampled: Sequence[bool],
    moved: Sequence[float],
    ball: Sequence[Sequence[float]],
    ratios: Sequence[float],
    ended: Sequence[bool | None],
    *,
    max_kl: float,
    clip_epsilon: float,
) -> Figure:
    """Draw the KL ball, where the clip's incentive has ended, and what the clip sees.

    Args:
        policy_old: probabilities of a, b and c.
        advantages: of each; their signs say on which side the incentive ends.
        sampled: whether the batch holds the action.
        moved: the policy that is looked at.
        ball: corners of the edge of the KL ball, probabilities of a and b.
        ratios: moved / policy_old.
        ended: whether the incentive of each action has ended, None where it was not drawn.
        max_kl: δ, radius of the ball (nats).
        clip_epsilon: half-width of the band.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.8)
        left, right = picture.subplots(1, 2, width_ratios=(1, 1.2))
        _triangle(left, policy_old, ball, f"KL ≤ {max_kl:g}")
        _ended_region(left, policy_old, advantages, sampled, clip_epsilon)
        left.plot(
            *_place(moved), "o", ms=9, color=NEW_POLICY, mec=INK, zorder=4, label="new policy"
        )
        left.set_title("Ball and clip")
        left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), fontsize=8, ncols=2)
        right.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE, zorder=0)
        right.axhline(1, color=OLD_POLICY, linewidth=1)
        for place, (ratio, over) in enumerate(zip(ratios, ended, strict=True)):
            look = {"ls": "--", "fc": "none", "ec": OLD_POLICY} if over is None else {}
            right.bar(place, min(ratio, TOP_RATIO), 0.5, **{"color": NEW_POLICY, **look})
            word = {None: "not drawn", True: "ended", False: "pushes"}[over]
            height = min(ratio, TOP_RATIO - 0.25) + 0.05
            right.text(place, height, f"{ratio:.3g}: {word}", ha="center", fontsize=9)
        right.set(xticks=range(3), xticklabels="abc", ylim=(0, TOP_RATIO), ylabel="ratio π / π_old")
        right.set_title("What the clip sees")
        return picture


def _place(policy: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Put a policy into the triangle: a bottom left, b bottom right, c on top."""
    return float(policy[1] + policy[2] / 2), float(HEIGHT * policy[2])


def _triangle(
    axes: Axes, policy_old: Sequence[float], ball: Sequence[Sequence[float]], name: str = ""
) -> None:
    corners = np.array([_place(corner) for corner in np.eye(3)])
    axes.fill(*corners.T, fc="none", ec=OLD_POLICY, linewidth=1)
    for (x, y), action in zip(corners, "abc", strict=True):
        axes.annotate(f"only {action}", (x, y + (0.03 if y else -0.09)), ha="center", fontsize=9)
    edge = np.array([_place((a, b, 1 - a - b)) for a, b in ball])
    axes.fill(*edge.T, fc=SHADE, ec=INK, linewidth=1.2, label=name or None)
    axes.plot(*_place(policy_old), "+", color=GOAL, ms=11, mew=2, zorder=3, label="old policy")
    axes.set(aspect="equal", xlim=(-0.18, 1.18), ylim=(-0.13, 0.98))
    axes.set_axis_off()


def _ended_region(
    axes: Axes,
    policy_old: Sequence[float],
    advantages: Sequence[float],
    sampled: Sequence[bool],
    clip_epsilon: float,
) -> None:
    """Hatch the policies at which no sampled action is pushed any more."""
    corners = [np.array(corner, dtype=float) for corner in np.eye(3)]
    outline = corners
    for action, (p, advantage, there) in enumerate(
        zip(policy_old, advantages, sampled, strict=True)
    ):
        if not there:
            continue
        sign = np.sign(advantage)
        limit = (1 + sign * clip_epsilon) * p
        outline, _ = _cut(outline, action, sign, limit)
        _, whole = _cut(corners, action, sign, limit)
        if len(whole) == 2:
            axes.plot(*np.array([_place(end) for end in whole]).T, "--", color=WORSE, linewidth=1.2)
    if len(outline) > 2:
        places = np.array([_place(point) for point in outline])
        name = "clip: incentive ended for\nevery sampled action"
        axes.fill(*places.T, fc="none", ec=WORSE, hatch="///", linewidth=1.5, label=name)


def _cut(
    outline: Sequence[np.ndarray], action: int, sign: float, limit: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Keep the part of a convex outline beyond a limit; the second list are the new corners."""
    kept, ends = [], []
    for here, following in zip(outline, [*outline[1:], *outline[:1]], strict=True):
        one, two = sign * (here[action] - limit), sign * (following[action] - limit)
        if one >= 0:
            kept.append(here)
        if one * two < 0:
            ends.append(here + one / (one - two) * (following - here))
            kept.append(ends[-1])
    return kept, ends
