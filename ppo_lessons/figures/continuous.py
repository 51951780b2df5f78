"""Pictures of real-valued actions: bell curves, ratios of a small step, cuts, heaps, Pendulum."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    style,
)

LOOKS = ((OLD_POLICY, "-"), (NEW_POLICY, "--"), (WORSE, "-."))


def bells(actions: np.ndarray, densities: Mapping[str, np.ndarray]) -> Figure:
    """Draw the density of some policies over the action.

    Args:
        actions: places, ascending (unit of the action).
        densities: for each label, the density there (1 / unit of the action).

    Returns:
        One panel; a dotted line marks density 1.
    """
    with style():
        picture = figure(8, 3)
        axes = picture.subplots()
        for (label, values), (color, dash) in zip(densities.items(), LOOKS, strict=False):
            axes.plot(actions, values, color=color, linestyle=dash, label=label)
        axes.axhline(1, color=GOAL, linestyle=":", linewidth=1)
        axes.set(
            title="The narrower the curve, the higher: its area is 1",
            xlabel="action (newton metres)",
            ylabel="density (per newton metre)",
            ylim=(0, None),
        )
        axes.legend(fontsize=9)
        return picture


def small_step(
    actions: Mapping[float, np.ndarray],
    ratios: Mapping[float, np.ndarray],
    *,
    step: float,
    clip_epsilon: float,
) -> Figure:
    """Draw the ratio of every action after one and the same step of the mean, for some σ.

    Args:
        actions: for each σ, places from 3 σ below the old mean to 3 σ above it.
        ratios: for each σ, π / π_old there.
        step: how far the mean moved (unit of the action).
        clip_epsilon: ε, half the width of the shaded interval.

    Returns:
        One panel for each σ; what is inside the interval is drawn thick.
    """
    with style():
        picture = figure(9, 3.2)
        panels = picture.subplots(1, len(actions), sharey=True, squeeze=False)[0]
        for axes, (std, places) in zip(panels, actions.items(), strict=True):
            inside = np.abs(ratios[std] - 1) <= clip_epsilon
            axes.axhspan(1 - clip_epsilon, 1 + clip_epsilon, color=SHADE)
            axes.plot(places, ratios[std], color=WORSE, linestyle=":", linewidth=1.8)
            axes.plot(
                places, np.where(inside, ratios[std], np.nan), color=NEW_POLICY, linewidth=3.2
            )
            axes.axhline(1, color=INK, linewidth=0.6)
            axes.set(title=f"σ = {std:g}", xlabel="action", yscale="log", ylim=(0.02, 50))
        panels[0].set_ylabel(f"ratio, after a step of {step:g}")
        panels[0].set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        panels[-1].annotate(
            f"1 ± {clip_epsilon:g}", (0.04, 1 + clip_epsilon), xytext=(0, 3),
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=9,
        )  # fmt: skip
        panels[0].minorticks_off()
        return picture


def sent_and_stored(
    actions: np.ndarray,
    density: np.ndarray,
    score: np.ndarray,
    cut_score: np.ndarray,
    *,
    limit: float,
) -> Figure:
    """Draw what lies beyond the limit, and the push of an action as drawn and as sent.

    Args:
        actions: places, ascending (unit of the action).
        density: of the policy there (1 / unit of the action).
        score: slope of log π by the mean, of the action drawn there (1 / unit of the action).
        cut_score: the same of that action after it was cut.
        limit: the largest action that the environment takes.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2)
        beyond = actions >= limit
        left.plot(actions, density, color=OLD_POLICY)
        left.fill_between(
            actions[beyond], density[beyond], color=WORSE, alpha=0.35, hatch="//", edgecolor=WORSE
        )
        left.axvline(limit, color=GOAL, linestyle="--", linewidth=1)
        left.annotate(
            "all of this\nis sent as 2", (2.5, 0.2), xytext=(6, 10), textcoords="offset points",
            fontsize=9, color=WORSE,
        )  # fmt: skip
        left.set(
            title="What the policy draws", xlabel="action drawn", ylabel="density", ylim=(0, None)
        )
        right.axhline(0, color=INK, linewidth=0.6)
        right.axvline(limit, color=GOAL, linestyle="--", linewidth=1)
        right.plot(actions, score, color=NEW_POLICY, label="as drawn")
        right.plot(actions, cut_score, color=WORSE, linestyle="--", linewidth=2.4, label="as sent")
        right.set(title="Its push on the mean", xlabel="action drawn", ylabel="score of the mean")
        right.legend(fontsize=9, loc="upper left")
        return picture


def squashed(actions: np.ndarray, densities: Mapping[str, np.ndarray]) -> Figure:
    """Draw the density of tanh(u) for some spreads of u.

    Args:
        actions: places strictly between −1 and 1.
        densities: for each label, the density there.

    Returns:
        One panel.
    """
    with style():
        picture = figure(8, 3)
        axes = picture.subplots()
        for (label, values), (color, dash) in zip(densities.items(), LOOKS, strict=False):
            axes.plot(actions, values, color=color, linestyle=dash, label=label)
        axes.set(
            title="Squashed: a wide policy heaps its actions at the edges",
            xlabel="action, tanh(u)",
            ylabel="density",
            xlim=(-1, 1),
            ylim=(0, 3),
        )
        axes.legend(fontsize=9, loc="upper center")
        return picture


def episodes(paid: Mapping[str, np.ndarray]) -> Figure:
    """Draw what each step of some episodes paid.

    Args:
        paid: for each label, rewards [steps, episodes].

    Returns:
        One panel for each label: episodes thin, their median thick.
    """
    with style():
        picture = figure(9, 3)
        panels = picture.subplots(1, len(paid), sharey=True, squeeze=False)[0]
        for axes, (label, rewards), color in zip(
            panels, paid.items(), (OLD_POLICY, NEW_POLICY), strict=False
        ):
            axes.plot(rewards, color=color, linewidth=0.6, alpha=0.5)
            axes.plot(np.median(rewards, axis=1), color=color, linewidth=2.6)
            axes.set(title=label, xlabel="step of the episode", ylim=(-17, 0.5))
        panels[0].set_ylabel("reward of the step")
        return picture


def variants(study: Mapping[str, Any], names: Mapping[str, str]) -> Figure:
    """Draw the learning curves of some variants on Pendulum.

    Args:
        study: what was recorded: for each variant a list of runs.
        names: for each variant its title.

    Returns:
        One panel per variant: seeds thin, their median thick, final greedy returns as dots.
    """
    looks = (NEW_POLICY, WORSE, SECOND, BETTER, OLD_POLICY)
    with style():
        picture = figure(9.5, 3.2)
        panels = picture.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axes, (name, title), color in zip(panels, names.items(), looks, strict=False):
            runs: Sequence[Mapping[str, Any]] = study["runs"][name]
            thousands = np.array(runs[0]["env_steps"]) / 1000
            curves = np.array([run["episode_return"] for run in runs], dtype=float)
            axes.plot(thousands, curves.T, color=color, linewidth=0.7, alpha=0.6)
            axes.plot(thousands, np.median(curves, axis=0), color=color, linewidth=2.4)
            finals = [run["final_greedy"] for run in runs]
            beside = thousands[-1] * np.linspace(1.04, 1.16, len(finals))  # none hides another
            axes.plot(beside, finals, "o", color=color, markersize=4)
            axes.axhline(study["solved_at"], color=GOAL, linestyle="--", linewidth=1)
            solved = sum(value >= study["solved_at"] for value in finals)
            axes.set(title=f"{title}\n{solved} of {len(finals)} solve it", ylim=(-1450, 0))
            axes.title.set_fontsize(9)
        picture.supxlabel("thousand environment steps", fontsize=10)
        panels[0].set_ylabel("return (reward)")
        return picture
