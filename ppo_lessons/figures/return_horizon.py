"""Static twin of the widget ReturnHorizon: what one step sees of the rewards, and every return."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, figure, style


def return_horizon_figure(
    rewards: Sequence[float],
    weights: Sequence[float],
    rewards_to_go: Sequence[float],
    *,
    step: int,
    horizon: float | None,
    title: str,
) -> Figure:
    """Draw the rewards with what counts of them from one step on, and the return of each step.

    Args:
        rewards: r_t of one episode.
        weights: what each counts, seen from the step; 0 before it.
        rewards_to_go: G_t of each step.
        step: from which the rewards are seen.
        horizon: 1 / (1 − γ) in steps; None if there is none.
        title: what one sees.

    Returns:
        Two panels: rewards dashed, what counts of them filled, weights as a line; returns.
    """
    earned, counted = np.array(rewards), np.array(rewards) * np.array(weights)
    steps = np.arange(len(earned))
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        outline: Any = {"facecolor": "none", "edgecolor": OLD_POLICY, "linestyle": "--"}
        left.bar(steps, earned, width=0.8, label="reward", **outline)
        left.bar(steps, counted, width=0.5, color=NEW_POLICY, label="counts γᵏ·reward")
        seen = steps >= step
        gamma = 1.0 if horizon is None else 1 - 1 / horizon
        label = f"weight γᵏ, γ = {gamma:.2f}"
        left.plot(steps[seen], np.array(weights)[seen], ".-", color=INK, lw=1, label=label)
        if horizon is not None and step + horizon <= steps[-1] + 0.6:
            left.axvline(step + horizon, color=GOAL, linestyle=":", label="horizon 1/(1 − γ)")
        left.set(title=title, xlabel="step t", ylabel="reward, weight", ylim=(-2.1, 2.1))
        left.set_xticks(steps)
        box: Any = {"frameon": True, "framealpha": 1, "edgecolor": "none"}  # over the dotted line
        left.legend(loc="lower left", fontsize=8, ncols=2, **box)
        hatches = ["///" if t == step else "" for t in steps]
        right.bar(steps, rewards_to_go, color="white", edgecolor=NEW_POLICY, hatch=hatches)
        right.axhline(0, color=INK, linewidth=0.8)
        left.axhline(0, color=INK, linewidth=0.8)
        value = f"G_{step} = {rewards_to_go[step]:.3f}".replace("-", "−")
        right.annotate(
            value, (0.02, 0.97), xycoords="axes fraction", va="top", color=INK, fontsize=10
        )
        right.set(
            title="Reward-to-go G_t of each step", xlabel="step t", ylabel="discounted reward"
        )
        right.margins(y=0.15)
        right.set_xticks(steps)
        return picture
