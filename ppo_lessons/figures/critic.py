"""Pictures of the critic: noise over the baseline, clouds of returns, a clip, two grades."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SECOND,
    WORSE,
    figure,
    label_line,
    style,
)


def noise_over_baseline(
    baselines: np.ndarray,
    variances: Mapping[str, np.ndarray],
    marks: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Draw the variance of a push against the baseline, policy by policy.

    Args:
        baselines: b, ascending (reward).
        variances: for each policy, in words, the variance at every b.
        marks: for each policy, baselines with a name, such as V.

    Returns:
        One panel per policy, with the same axes.
    """
    looks = {"none": ("o", OLD_POLICY), "V": ("s", WORSE), "least": ("*", BETTER)}
    with style():
        picture = figure(9, 3.3)
        panels = picture.subplots(1, len(variances), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, numbers) in zip(panels, variances.items(), strict=True):
            axes.plot(baselines, numbers, color=NEW_POLICY)
            for mark, place in marks[name].items():
                shape, color = looks[mark]
                height, nearby = np.interp([place, place + 0.1], baselines, numbers)
                axes.plot(place, height, shape, color=color, markersize=8 + 5 * (shape == "*"))
                falls = nearby < height  # the label stands on the side where the curve is lower
                side, shift = ("left", (9, 7)) if falls else ("right", (-9, 7))
                if mark == "least":
                    side, shift = "center", (0, -18)
                axes.annotate(
                    f"{mark}: {height:.2f}", (place, height), xytext=shift, ha=side,
                    textcoords="offset points", fontsize=9, color=color,
                )  # fmt: skip
            axes.set(title=name, xlabel="baseline that is subtracted (reward)")
        panels[0].set(ylabel="variance of one push", ylim=(-2.5, None))
        panels[0].set_yticks([tick for tick in panels[0].get_yticks() if tick >= 0])
        return picture


def noise_left(variances: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw how much noise each weight leaves, in several games.

    Args:
        variances: for each game, in words, the variance of one episode's gradient by weight.

    Returns:
        One panel of bars per game, with the same axis.
    """
    looks = ((OLD_POLICY, ""), (NEW_POLICY, "//"), (BETTER, ".."))
    with style():
        picture = figure(9, 2.5)
        panels = picture.subplots(1, len(variances), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (game, bars) in zip(panels, variances.items(), strict=True):
            for row, ((_, number), (color, hatch)) in enumerate(
                zip(bars.items(), looks, strict=False)
            ):
                axes.barh(row, number, 0.62, color=color, hatch=hatch, edgecolor="white")
                axes.annotate(
                    f"{number:.2f}", (number, row), xytext=(4, 0), textcoords="offset points",
                    va="center", fontsize=9,
                )  # fmt: skip
            axes.set_title(game, fontsize=10)
            axes.set_yticks(range(len(bars)), list(bars))
            axes.grid(visible=False, axis="y")
        panels[0].set(ylim=(len(next(iter(variances.values()))) - 0.5, -0.5))
        panels[0].set_xlim(0, 1.18 * max(max(bars.values()) for bars in variances.values()))
        picture.supxlabel("variance of one episode's gradient", fontsize=10)
        return picture


def clouds(
    names: Sequence[str],
    returns: Sequence[Mapping[float, float]],
    truth: Sequence[float],
    learned: Sequence[float],
) -> Figure:
    """Draw what may follow each state, the mean of that, and what a critic has made of a sample.

    Args:
        names: of the states.
        returns: for each state, the probability of every return that may follow.
        truth: V of each state.
        learned: what the critic says.

    Returns:
        One panel; the area of a dot is the probability of that return.
    """
    with style():
        picture = figure(9, 3.6)
        axes = picture.subplots()
        for place, cloud in enumerate(returns):
            sizes = [900 * chance for chance in cloud.values()]
            axes.scatter([place] * len(cloud), list(cloud), s=sizes, color=OLD_POLICY, alpha=0.35)
        places = np.arange(len(names))
        axes.hlines(
            truth, places - 0.3, places + 0.3, color=GOAL, linewidth=1.6, label="exact V, the mean"
        )
        axes.plot(
            places, learned, "D", color=NEW_POLICY, markersize=7, linestyle="none",
            label="the critic, after 20 episodes",
        )  # fmt: skip
        axes.set(
            title="A critic aims at the middle of a cloud that it sees dot by dot",
            ylabel="reward-to-go (reward)",
            xlim=(-0.6, len(names) - 0.4),
        )
        axes.set_xticks(places, list(names))
        axes.grid(visible=False, axis="x")
        axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
        return picture


def pulled_together(values: np.ndarray, targets: Sequence[float]) -> Figure:
    """Draw the values of some samples while a wrong loss trains them.

    Args:
        values: [steps, samples], the first row before training (reward).
        targets: the return of each sample (reward).

    Returns:
        One panel, a line per sample, with its target at the right.
    """
    with style():
        picture = figure(7, 3)
        axes = picture.subplots()
        steps = np.arange(len(values))
        for curve, target, dash in zip(values.T, targets, ("-", "--", "-.", ":"), strict=False):
            axes.plot(steps, curve, color=WORSE, linestyle=dash)
            axes.plot(steps[-1], target, "o", color=BETTER, markersize=7)
            label_line(axes, steps[-1], target, f"  its return {target:g}", BETTER)
        axes.set_xticks(steps[:: max(1, len(steps) // 5)])
        axes.set(
            title="Four values start out right, and all end at the mean",
            xlabel="step",
            ylabel="value (reward)",
        )
        return picture


def clipped_errors(
    values: np.ndarray,
    errors: Mapping[str, np.ndarray],
    *,
    value_old: float,
    target: float,
) -> Figure:
    """Draw the plain, the clipped and a wrongly clipped squared error against the new value.

    Args:
        values: V, ascending (reward).
        errors: for each rule, half the squared error at every V; at most three.
        value_old: V when the batch was scored (reward).
        target: the return (reward).

    Returns:
        One panel; where a line is flat, its rule has nothing to say.
    """
    looks = ((OLD_POLICY, "--", 1.6), (NEW_POLICY, "-", 2.6), (WORSE, ":", 2.6))
    with style():
        picture = figure(7.5, 3.4)
        axes = picture.subplots()
        for order, ((name, numbers), (color, dash, width)) in enumerate(
            zip(errors.items(), looks, strict=False)
        ):
            axes.plot(
                values, numbers, color=color, linestyle=dash, linewidth=width, label=name,
                zorder=5 - order,
            )  # fmt: skip
        for place, name in ((value_old, "V_old"), (target, "return")):
            axes.axvline(place, color=GOAL, linewidth=0.9, linestyle="-.")
            axes.annotate(
                name, (place, 1), xycoords=("data", "axes fraction"), xytext=(4, -10),
                textcoords="offset points", fontsize=9,
            )  # fmt: skip
        axes.set(
            title="Flat a little past V_old, up to the return and beyond",
            xlabel="value after some steps (reward)",
            ylabel="half the squared error",
            ylim=(0, None),
        )
        axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
        return picture


def against(panels: Mapping[str, tuple[np.ndarray, np.ndarray]], *, target: str) -> Figure:
    """Draw returns against the values that were to predict them.

    Args:
        panels: for each title, the values and what they are held against (reward).
        target: name of the latter.

    Returns:
        One panel each; on the dashed line value and target are equal.
    """
    with style():
        picture = figure(9, 3 if len(panels) > 2 else 3.6)
        axes_of = picture.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
        everything = np.concatenate([np.concatenate(pair) for pair in panels.values()])
        ends = [float(everything.min()), float(everything.max())]
        for axes, (title, (values, returns)) in zip(axes_of, panels.items(), strict=True):
            axes.plot(
                values, returns, "o", color=SECOND, markersize=4, alpha=0.5, markeredgewidth=0
            )
            axes.plot(ends, ends, color=INK, linestyle="--", linewidth=1)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("value (reward)")
        axes_of[0].set_ylabel(f"{target} (reward)")
        return picture
