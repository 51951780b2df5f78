"""Pictures of RLHF: rewards per token, a run that is hacked, the price, the optimum, the memory."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
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
    label_line,
    style,
)

Curve = Sequence[float]
Curves = Mapping[str, Curve]
GIGABYTE = 1e9


def token_bars(words: Sequence[str], rewards: Curve, advantages: Curve, *, title: str) -> Figure:
    """Draw what each token of an answer is paid, and what GAE makes of it.

    Args:
        words: the tokens.
        rewards: r_t (reward).
        advantages: Â_t (reward).
        title: what one sees.

    Returns:
        One panel with two bars for each token.
    """
    places = np.arange(len(words))
    with style():
        picture = figure(8, 2.8)
        axes = picture.subplots()
        axes.bar(places - 0.2, rewards, 0.38, color=OLD_POLICY, label="reward", hatch="//")
        axes.bar(places + 0.2, advantages, 0.38, color=NEW_POLICY, label="advantage")
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(places, words)
        axes.set(title=title, xlabel="token", ylabel="reward")
        axes.legend(loc="upper left", fontsize=9)
        return picture


def score_by_bangs(by_seed: Mapping[str, Curve]) -> Figure:
    """Draw the mean score of right answers over the number of "!" behind them.

    Args:
        by_seed: seed → scores for 0, 1, ... "!" (raw reward).

    Returns:
        One panel, a line for each seed.
    """
    marks = ("o", "s", "^")
    with style():
        picture = figure(6, 2.9)
        axes = picture.subplots()
        for (seed, scores), mark in zip(by_seed.items(), marks, strict=False):
            axes.plot(scores, f"{mark}-", color=NEW_POLICY, alpha=0.8, markersize=5)
            label_line(axes, len(scores) - 1, scores[-1], f"seed {seed}", NEW_POLICY)
        axes.set(
            title="The judge likes every further “!”",
            xlabel="“!” behind a right answer",
            ylabel="score (raw)",
            xlim=(-0.2, 4.8),
        )
        axes.set_xticks(range(5))
        return picture


def life_of_a_run(runs: Sequence[Curves], *, before: float, title: str) -> Figure:
    """Draw what a run says of itself and what becomes of the task, a line for each seed.

    Args:
        runs: curves of each seed: iteration, score, success, kl_reference, fraction_outside.
        before: success of the reference.
        title: of the whole.

    Returns:
        Four panels over iterations.
    """
    panels = (
        ("score", "score (spreads)", NEW_POLICY, "-"),
        ("success", "right answers (share)", WORSE, "-"),
        ("kl_reference", "KL from the reference (nats)", SECOND, "--"),
        ("fraction_outside", "outside of the clip (share)", OLD_POLICY, "-."),
    )
    with style():
        picture = figure(9, 4.6)
        _panels(picture.subplots(2, 2, sharex=True).flat, panels, runs)
        _reference_line(picture.axes[1], before)
        for axes in picture.axes[2:]:
            axes.set_xlabel("iteration")
        picture.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return picture


def controller(runs: Sequence[Curves], *, target: float, before: float) -> Figure:
    """Draw what a controller does with the price, and what comes of it, a line for each seed.

    Args:
        runs: curves of each seed: iteration, beta, kl_reference, success.
        target: the KL that it aims at (nats).
        before: success of the reference.

    Returns:
        Three panels over iterations.
    """
    panels = (
        ("beta", "price β (reward per nat)", NEW_POLICY, "-."),
        ("kl_reference", "KL from the reference (nats)", SECOND, "--"),
        ("success", "right answers (share)", BETTER, "-"),
    )
    with style():
        picture = figure(9, 2.9)
        _panels(picture.subplots(1, 3), panels, runs)
        price, distance, success = picture.axes
        for axes in picture.axes:
            axes.set_xlabel("iteration")
        price.set_ylim(top=1.15 * max(max(curves["beta"]) for curves in runs))
        distance.axhline(target, color=GOAL, linestyle=":", linewidth=1.2)
        distance.annotate(
            "target", (20, target), xytext=(0, -11), textcoords="offset points", color=GOAL,
            ha="center", fontsize=9,
        )  # fmt: skip
        _reference_line(success, before)
        success.set_ylim(top=1)
        picture.suptitle(
            "The controller is slower than the policy", x=0.01, ha="left", fontsize=11,
            fontweight="bold",
        )  # fmt: skip
        return picture


def _panels(
    axes: Iterable[Axes], panels: Sequence[tuple[str, str, str, str]], runs: Sequence[Curves]
) -> None:
    """Draw one metric a panel over iterations, a line for each run: metric, name, colour, dash."""
    for panel, (metric, name, colour, dash) in zip(axes, panels, strict=True):
        for curves in runs:
            panel.plot(curves["iteration"], curves[metric], dash, color=colour, linewidth=1.4)
        panel.set_title(name, fontsize=10)
        panel.set_ylim(bottom=0)


def _reference_line(axes: Axes, before: float) -> None:
    """Draw the success of the reference across a panel, its name at the right, below."""
    axes.axhline(before, color=OLD_POLICY, linestyle="--", linewidth=1.2)
    axes.annotate(
        "reference", (1, before), xycoords=("axes fraction", "data"), xytext=(-2, -11),
        textcoords="offset points", color=OLD_POLICY, ha="right", fontsize=9,
    )  # fmt: skip


def price(
    betas: Curve, success: Sequence[Curve], distance: Sequence[Curve], *, before: float
) -> Figure:
    """Draw where runs end over the price β: success and distance.

    Args:
        betas: ascending; 0 is drawn at the left edge.
        success: for each β, of each seed.
        distance: for each β, KL from the reference of each seed (nats).
        before: success of the reference.

    Returns:
        Two panels over β.
    """
    places = np.arange(len(betas))
    with style():
        picture = figure(9, 3.2)
        left, right = picture.subplots(1, 2)
        for axes, table, colour in ((left, success, BETTER), (right, distance, SECOND)):
            for place, numbers in zip(places, table, strict=True):
                axes.plot([place] * len(numbers), numbers, "o", color=colour, alpha=0.6)
            axes.plot(places, [np.median(numbers) for numbers in table], "-", color=colour)
            axes.set_xticks(places, [f"{beta:g}" for beta in betas])
            axes.set_xlabel("price β (reward per nat)")
        _reference_line(left, before)
        left.set(title="Too cheap and too dear", ylabel="right answers (share)", ylim=(-0.03, 1))
        right.set(title="What the price holds back", ylabel="KL from the reference (nats)")
        right.set_yscale("log")
        return picture


def tilted(
    names: Sequence[str], reference: Curve, best: Curve, learned: Curve, *, title: str
) -> Figure:
    """Draw the probabilities of some answers: reference, formula, and what PPO came to.

    Args:
        names: of the answers.
        reference: π_ref.
        best: π*.
        learned: π after training.
        title: what one sees.

    Returns:
        One panel with three marks for each answer.
    """
    places = np.arange(len(names))
    with style():
        picture = figure(9, 3.0)
        axes = picture.subplots()
        axes.bar(places, best, 0.6, color=SHADE, edgecolor=GOAL, label="formula π*")
        axes.plot(places, reference, "_", color=OLD_POLICY, markersize=20, markeredgewidth=2.5,
                  label="reference")  # fmt: skip
        axes.plot(places, learned, "o", color=NEW_POLICY, markersize=6, label="PPO")
        axes.set_xticks(places, names)
        axes.set(title=title, xlabel="answer", ylabel="probability")
        axes.legend(fontsize=9)
        return picture


def ends_by_setting(rows: Sequence[tuple[str, Curve]], *, before: float, title: str) -> Figure:
    """Draw where runs of several settings end, a dot for each seed.

    Args:
        rows: name of the setting, success of each seed; drawn from the top.
        before: success of the reference.
        title: what one sees.

    Returns:
        One panel.
    """
    with style():
        picture = figure(8, 0.42 * len(rows) + 1.2)
        axes = picture.subplots()
        for place, (name, numbers) in enumerate(rows):
            good = np.median(numbers) > before
            axes.plot(
                numbers, [place] * len(numbers), "o" if good else "X",
                color=BETTER if good else WORSE, markersize=8, alpha=0.8,
            )  # fmt: skip
            axes.annotate(
                name, (0, place), xycoords=("axes fraction", "data"), xytext=(-8, 0),
                textcoords="offset points", ha="right", va="center", fontsize=10,
            )  # fmt: skip
        axes.axvline(before, color=OLD_POLICY, linestyle="--", linewidth=1.2)
        axes.annotate(
            "reference", (before, -0.45), xytext=(3, 0), textcoords="offset points",
            color=OLD_POLICY, fontsize=9, va="bottom",
        )  # fmt: skip
        axes.set(
            yticks=[], xlim=(-0.03, 1), ylim=(len(rows) - 0.5, -0.9),
            xlabel="right answers at the end (share)",
            title=title,
        )  # fmt: skip
        return picture


def memory(ledgers: Mapping[str, Sequence[Mapping[str, float]]], *, parts: Sequence[str]) -> Figure:
    """Draw the memory of the four models, stacked by what it is for, relative to the whole.

    Args:
        ledgers: size → one row for each model, part → bytes; each row has "model".
        parts: drawn from the left.

    Returns:
        One panel for each size.
    """
    looks = {
        "weights": (NEW_POLICY, ""),
        "gradients": (SECOND, "//"),
        "optimizer": (WORSE, ".."),
        "activations": (OLD_POLICY, "xx"),
        "cache": (BETTER, "\\\\"),
    }
    with style():
        picture = figure(9, 2.9)
        panels = picture.subplots(1, len(ledgers), sharey=True, squeeze=False)[0]
        for axes, (size, rows) in zip(panels, ledgers.items(), strict=True):
            for place, entry in enumerate(rows):
                start = 0.0
                for part in parts:
                    colour, hatch = looks[part]
                    wide = entry[part] / GIGABYTE
                    axes.barh(
                        place, wide, left=start, color=colour, hatch=hatch, edgecolor="white",
                        linewidth=0.4, label=part if place == 0 else None,
                    )  # fmt: skip
                    start += wide
            axes.set_yticks(range(len(rows)), [str(entry["model"]) for entry in rows])
            axes.set_title(size)
            axes.set_xlabel("GB")
        panels[0].invert_yaxis()
        panels[-1].legend(fontsize=8, loc="lower right")
        return picture
