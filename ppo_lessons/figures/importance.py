"""Pictures of reuse: the same draws again, weights, long products, what a surrogate misses."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    INK,
    NEW_POLICY,
    OLD_POLICY,
    SECOND,
    WORSE,
    figure,
    label_line,
    style,
)

ARM_LOOKS = ((OLD_POLICY, "-"), (BETTER, "--"), (WORSE, ":"))


def reuse(without: np.ndarray, corrected: np.ndarray, *, names: Sequence[str]) -> Figure:
    """Draw where a policy goes when one batch is used many times, without and with the ratio.

    Args:
        without: probability of each arm after every step, the start included, [steps, arms].
        corrected: the same with the ratio.
        names: of the arms, at most three.

    Returns:
        Two panels; steps on a logarithmic axis.
    """
    with style():
        picture = figure(9, 3.3)
        panels = picture.subplots(1, 2, sharey=True)
        titles = ("As it stands: what was drawn often wins", "With the ratio: what pays wins")
        for axes, table, title in zip(panels, (without, corrected), titles, strict=True):
            steps = np.arange(1, len(table) + 1)
            for values, name, (color, dash) in zip(table.T, names, ARM_LOOKS, strict=False):
                axes.plot(steps, values, color=color, linestyle=dash, linewidth=2.4, label=name)
            axes.set(title=title, xlabel="step on the same ten draws", xscale="log")
            axes.set_xticks([2, 11, 101], ["1", "10", "100"])
            axes.minorticks_off()
        panels[0].set(ylabel="probability", ylim=(-0.03, 1.05))
        panels[0].legend(loc="center left", fontsize=9)
        return picture


def reweighting(
    old: Sequence[float], new: Sequence[float], chances: np.ndarray, worth: np.ndarray,
    *, names: Sequence[str],
) -> Figure:  # fmt: skip
    """Draw two policies with the ratio of each action, and what samples are worth afterwards.

    Args:
        old: π_old of each action.
        new: π of each action.
        chances: new probabilities of the first action, ascending.
        worth: effective sample size at each of them, as a share of the samples.
        names: of the actions.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.3)
        left, right = picture.subplots(1, 2)
        places = np.arange(len(old))
        left.bar(places - 0.2, old, 0.38, color=OLD_POLICY, label="old policy")
        left.bar(places + 0.2, new, 0.38, color=NEW_POLICY, hatch="//", edgecolor="white",
                 label="new policy")  # fmt: skip
        for place, before, after in zip(places, old, new, strict=True):
            left.annotate(
                f"ratio {after / before:.3g}", (place + 0.2, after), xytext=(0, 4),
                textcoords="offset points", ha="center", fontsize=9, color=NEW_POLICY,
            )  # fmt: skip
        left.set(title="What each draw counts", ylabel="probability", ylim=(0, 1.2))
        left.set_xticks(places, list(names))
        left.set_yticks([0, 0.5, 1])
        left.legend(fontsize=9, loc="upper right")
        right.plot(chances, 100 * worth, color=NEW_POLICY, linewidth=2.4)
        right.axvline(old[0], color=OLD_POLICY, linestyle="--", linewidth=1.2)
        at = float(np.interp(new[0], chances, 100 * worth))
        right.plot([new[0]], [at], "o", color=INK)
        right.annotate(f"new policy:\n{at:.0f} %", (new[0], at), xytext=(-8, -8), ha="right",
                       va="top", textcoords="offset points", fontsize=9)  # fmt: skip
        right.annotate("old policy", (old[0], 8), xytext=(-62, 0), textcoords="offset points",
                       fontsize=9, color=OLD_POLICY)  # fmt: skip
        right.set(
            title="The farther, the fewer samples are left",
            xlabel=f"new probability of {names[0]}",
            ylabel="effective sample size (%)",
            ylim=(0, 106),
        )
        return picture


def long_products(
    steps: np.ndarray, median: np.ndarray, worth: np.ndarray,
    counts: np.ndarray, old: np.ndarray, new: np.ndarray, *, rare: int,
) -> Figure:  # fmt: skip
    """Draw what becomes of the weight of a whole episode as episodes grow long.

    Args:
        steps: lengths of episodes.
        median: the weight of the typical episode at each length.
        worth: effective sample size at each length, as a share of the episodes.
        counts: how many heads an episode of the greatest length may have.
        old: probability of each count under the old policy.
        new: under the new one.
        rare: the count from which on half of all weight lies.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2)
        left.plot(steps, np.ones_like(steps), color=INK, linewidth=2)
        left.plot(steps, median, color=NEW_POLICY, linestyle="--", linewidth=2.4)
        left.plot(steps, worth, color=WORSE, linestyle=":", linewidth=2.6)
        for values, name, color in (
            (np.ones(1), "mean weight", INK),
            (median, "median weight", NEW_POLICY),
            (worth, "effective share\nof the episodes", WORSE),
        ):
            label_line(left, steps[-1], values[-1], name, color)
        left.set(
            title="The mean stays, the typical weight goes", xlabel="steps of the episode",
            ylabel="weight, or share", yscale="log", xlim=(0, steps[-1] * 1.6), ylim=(1e-4, 3),
        )  # fmt: skip
        left.set_xticks([0, 50, 100, 150, 200])
        left.spines["bottom"].set_bounds(0, steps[-1])
        right.bar(counts, old, 1.0, color=OLD_POLICY, label="old: what is drawn")
        right.step(counts, new, where="mid", color=NEW_POLICY, linewidth=2, label="old × weight")
        right.fill_between(
            counts[rare:], new[rare:], step="mid", facecolor="none", edgecolor=NEW_POLICY,
            hatch="///", linewidth=0,
        )  # fmt: skip
        right.annotate(
            f"half of the weight:\n{rare} heads or more", (rare + 5, 0.03), xytext=(18, 14),
            textcoords="offset points", fontsize=9, color=NEW_POLICY,
            arrowprops={"arrowstyle": "-", "color": NEW_POLICY},
        )  # fmt: skip
        right.set(
            title="The weight lies where little is drawn", xlabel=f"heads in {len(counts) - 1}",
            ylabel="probability", xlim=(70, 165), ylim=(0, 0.085),
        )  # fmt: skip
        right.legend(fontsize=9, loc="upper right")
        return picture


def surrogate_error(distance: np.ndarray, gained: np.ndarray, promised: np.ndarray) -> Figure:
    """Draw what J gains and what the surrogate promises, and the gap between the two.

    Args:
        distance: by how much the probability that changed most has changed, ascending.
        gained: J_new − J_old (reward).
        promised: L (reward).

    Returns:
        Two panels, the second with logarithmic axes.
    """
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        left.plot(distance, gained, color=INK, linewidth=2.4)
        left.plot(distance, promised, color=NEW_POLICY, linestyle="--", linewidth=2.4)
        label_line(left, distance[-1], gained[-1], "J gains", INK)
        label_line(left, distance[-1], promised[-1], "L promises", NEW_POLICY)
        left.set(
            title="They start together and part", xlim=(0, distance[-1] * 1.35), ylabel="reward",
            xlabel="largest change of a probability",
        )  # fmt: skip
        gap = np.abs(gained - promised)
        guide = gap[0] * (distance / distance[0]) ** 2
        right.plot(distance, gap, "o-", color=WORSE, linewidth=2, markersize=4, label="gap")
        right.plot(distance, guide, color=INK, linestyle="--", linewidth=1.2, label="∝ distance²")
        right.legend(fontsize=9, loc="upper left")
        right.set(
            title="Half the distance, a quarter of the gap", xscale="log", yscale="log",
            xlabel="largest change of a probability", ylabel="gap between L and J (reward)",
        )  # fmt: skip
        return picture


def trap(
    chances: np.ndarray, gained: np.ndarray, promised: np.ndarray,
    climbed_gained: np.ndarray, climbed_promised: np.ndarray, *, start: float,
) -> Figure:  # fmt: skip
    """Draw a surrogate that rises while J falls, and the same places with logits of their own.

    Args:
        chances: probability of action 1 in both places, ascending.
        gained: J minus J at the start, there (reward).
        promised: L there (reward).
        climbed_gained: what J has gained after each step of climbing L, each place by itself.
        climbed_promised: L after each of these steps.
        start: the old policy's probability of action 1.

    Returns:
        Two panels of the same height.
    """
    with style():
        picture = figure(9, 3.6)
        left, right = picture.subplots(1, 2, sharey=True)
        left.plot(chances, gained, color=INK, linewidth=2.4)
        left.plot(chances, promised, color=NEW_POLICY, linestyle="--", linewidth=2.4)
        left.axvline(start, color=OLD_POLICY, linewidth=1.2, linestyle=":")
        left.annotate("old policy", (start, -1.9), xytext=(5, 0), textcoords="offset points",
                      fontsize=9, color=OLD_POLICY)  # fmt: skip
        _name(left, "J gains", (chances[-1], gained[-1]), (-52, 4), INK)
        _name(left, "L promises", (chances[-1], promised[-1]), (-64, 6), NEW_POLICY)
        left.set(
            title="One probability for two places", ylabel="reward",
            xlabel="probability p of action 1 in both", ylim=(-2.2, 1.15),
        )  # fmt: skip
        steps = np.arange(len(climbed_gained))
        right.plot(steps, climbed_gained, color=INK, linewidth=2.4)
        right.plot(steps, climbed_promised, color=NEW_POLICY, linestyle="--", linewidth=2.4)
        _name(right, "J gains", (steps[-1], climbed_gained[-1]), (-50, 6), INK)
        _name(right, "L promises", (steps[-1], climbed_promised[-1]), (-68, -15), NEW_POLICY)
        right.set(title="Each place has its own: both rise", xlabel="steps uphill on L")
        for axes in (left, right):
            axes.axhline(0, color=INK, linewidth=0.6)
        return picture


def lucky(
    wins: Sequence[int], chances: Sequence[float],
    promised: Sequence[float], gained: Sequence[float],
) -> Figure:  # fmt: skip
    """Draw, for each luck of a batch, what its surrogate promised and what J gained.

    Args:
        wins: how often the gamble paid in the batch.
        chances: the probability of each.
        promised: the batch's own L after climbing it (reward).
        gained: J_new − J_old (reward).

    Returns:
        One panel of paired bars.
    """
    with style():
        picture = figure(8, 3.5)
        axes = picture.subplots()
        places = np.arange(len(wins))
        axes.bar(places - 0.2, promised, 0.38, color=NEW_POLICY, hatch="//", edgecolor="white",
                 label="L of the batch promises")  # fmt: skip
        for sign, color, name in ((1, BETTER, "J gains"), (-1, WORSE, "J loses")):
            part = np.where(np.sign(gained) == sign, gained, 0.0)
            axes.bar(places + 0.2, part, 0.38, color=color, label=name)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(
            places,
            [f"{win} of {len(wins) - 1}\n{chance:.0%} of batches"
             for win, chance in zip(wins, chances, strict=True)],
        )  # fmt: skip
        axes.set(
            title="Every batch promises a gain; three in ten end with a loss",
            xlabel="wins of the gamble in the batch", ylabel="reward", ylim=(-1, 3.1),
        )  # fmt: skip
        axes.legend(fontsize=9, loc="upper right")
        return picture


def staleness(ages: np.ndarray, corrected: np.ndarray, without: np.ndarray) -> Figure:
    """Draw what becomes of a gradient when the data it is made of are older.

    Args:
        ages: updates since the data were collected.
        corrected: of the surrogate's gradient at each age, its cosine with the gradient of J, and
            its length divided by that of the gradient of J.
        without: the same without the ratio.

    Returns:
        Two panels: direction and length.
    """
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        for axes, aligned, other in zip((left, right), corrected, without, strict=True):
            axes.plot(ages, aligned, color=NEW_POLICY, linewidth=2.4)
            axes.plot(ages, other, color=SECOND, linestyle="--", linewidth=2.4)
            label_line(axes, ages[-1], aligned[-1], "with ratio", NEW_POLICY)
            label_line(axes, ages[-1], other[-1], "without", SECOND)
            axes.set(xlabel="updates since the data were collected", xlim=(0, ages[-1] * 1.3))
            axes.set_xticks(np.arange(0, ages[-1] + 1, 10))
            axes.spines["bottom"].set_bounds(0, ages[-1])
        left.axhline(0, color=INK, linewidth=0.8)
        left.set(title="Old data lose the direction", ylabel="cosine with the gradient of J",
                 ylim=(-1.05, 1.1))  # fmt: skip
        right.axhline(1, color=INK, linewidth=0.8)
        right.set(title="and the length", ylabel="length / true length", ylim=(0, None))
        return picture


def _name(
    axes: Axes, text: str, place: tuple[float, float], shift: tuple[int, int], color: str
) -> None:
    axes.annotate(text, place, xytext=shift, textcoords="offset points", color=color, fontsize=9)
