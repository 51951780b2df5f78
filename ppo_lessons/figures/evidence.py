"""Pictures of evidence: a run that is hacked, intervals, the best of many, what a gate does."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    NEW_POLICY,
    OLD_POLICY,
    SHADE,
    WORSE,
    figure,
    label_line,
    style,
)

Curve = Sequence[float]


def hacked_run(curves: Mapping[str, Curve], *, baseline: float) -> Figure:
    """Draw what a run reports of itself, and what became of the task.

    Args:
        curves: of one run: iteration, score, success, fraction_outside, ev_lambda.
        baseline: success of the unmodified model.

    Returns:
        Three panels over iterations.
    """
    steps = curves["iteration"]
    with style():
        picture = figure(9, 3.1)
        left, middle, right = picture.subplots(1, 3)
        left.plot(steps, curves["score"], "o-", color=NEW_POLICY, markersize=3)
        left.set(title="The score rises", ylabel="score (spreads of the reference)")
        middle.plot(steps, curves["fraction_outside"], "o-", color=NEW_POLICY, markersize=3)
        middle.plot(steps, curves["ev_lambda"], "s--", color=OLD_POLICY, markersize=3)
        middle.set(title="The squeeze looks well", ylim=(-0.05, 1.05), ylabel="share")
        middle.annotate(
            "explained variance", (0.97, 0.3), xycoords="axes fraction", color=OLD_POLICY,
            ha="right", fontsize=9,
        )  # fmt: skip
        middle.annotate(
            "outside of the clip", (0.97, 0.13), xycoords="axes fraction", color=NEW_POLICY,
            ha="right", fontsize=9,
        )  # fmt: skip
        right.plot(steps, curves["success"], "o-", color=WORSE, markersize=3)
        right.axhline(baseline, color=OLD_POLICY, linestyle="--", linewidth=1.2)
        right.set(title="The task is lost", ylim=(-0.02, 1.0), ylabel="right answers (share)")
        right.annotate(
            "unmodified model", (0.97, baseline + 0.03), xycoords=("axes fraction", "data"),
            color=OLD_POLICY, ha="right", fontsize=9,
        )  # fmt: skip
        for axes in (left, middle, right):
            axes.set_xlabel("iteration")
        return picture


def intervals(
    rows: Sequence[tuple[str, float, tuple[float, float]]], *, unit: str, title: str
) -> Figure:
    """Draw shares with their intervals, one row for each.

    Args:
        rows: name, share, lower and upper end; drawn from the top.
        unit: of the axis.
        title: what one sees.

    Returns:
        One panel.
    """
    with style():
        picture = figure(8, 0.42 * len(rows) + 1.2)
        axes = picture.subplots()
        for place, (name, share, (low, high)) in enumerate(rows):
            axes.plot([low, high], [place, place], color=NEW_POLICY, linewidth=3)
            axes.plot(share, place, "o", color=GOAL, markersize=5)
            axes.annotate(
                name, (0, place), xycoords=("axes fraction", "data"), xytext=(-6, 0),
                textcoords="offset points", ha="right", va="center", fontsize=10,
            )  # fmt: skip
        axes.set(yticks=[], xlabel=unit, title=title, ylim=(len(rows) - 0.5, -0.5))
        return picture


def best_of_many(evaluations: Curve, believed: Curve, fresh: Curve, *, truth: float) -> Figure:
    """Draw what the best of n noisy evaluations claims, and what fresh labels say of it.

    Args:
        evaluations: n, ascending.
        believed: mean of the largest of n estimates.
        fresh: mean of a new estimate of the one that was chosen.
        truth: success of every one of them.

    Returns:
        One panel.
    """
    with style():
        picture = figure(7, 3.2)
        axes = picture.subplots()
        axes.plot(evaluations, believed, "o-", color=WORSE, markersize=5)
        axes.plot(evaluations, fresh, "s-", color=NEW_POLICY, markersize=5)
        axes.axhline(truth, color=OLD_POLICY, linestyle="--")
        last = evaluations[-1]
        label_line(axes, last, believed[-1], "labels that chose it", WORSE)
        label_line(axes, last, fresh[-1] + 0.012, "fresh labels", NEW_POLICY)
        label_line(axes, last, truth - 0.012, "truth", OLD_POLICY)
        axes.set(
            title="The best of many is not that good",
            xlabel="evaluations, of which the best is kept",
            ylabel="judged success (share)",
            xlim=(0, last * 1.35),
            ylim=(truth - 0.05, max(believed) + 0.05),
        )
        return picture


def stops(
    curves: Mapping[str, tuple[Curve, Curve]], stopped: Mapping[str, Sequence[int | None]]
) -> Figure:
    """Draw runs with their true success, and where a gate stopped each replay.

    Args:
        curves: by run: iterations, true success.
        stopped: by run: iteration at which each replay was stopped, None where it was not.

    Returns:
        One panel for each run.
    """
    with style():
        picture = figure(9, 3.2)
        panels = picture.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for axes, (name, (steps, success)) in zip(panels, curves.items(), strict=True):
            found = [each for each in stopped[name] if each is not None]
            share = len(found) / len(stopped[name])
            counts = {step: found.count(step) / len(stopped[name]) for step in sorted(set(found))}
            axes.bar(
                list(counts), list(counts.values()), width=1.4, color=SHADE, edgecolor=OLD_POLICY
            )
            axes.plot(steps, success, "o-", markersize=3, color=WORSE if share > 0.5 else BETTER)
            axes.set(title=f"{name}: {share:.0%} stopped", xlabel="iteration", ylim=(0, 1))
        panels[0].set_ylabel("share of right answers (line)\nshare of replays stopped here (bars)")
        return picture


def labels_needed(
    num_labels: Sequence[int], by_accuracy: Mapping[float, Sequence[float]]
) -> Figure:
    """Draw how the standard error falls with labels, for judges of several accuracies.

    Args:
        num_labels: ascending.
        by_accuracy: accuracy of the judge → standard error at each number of labels.

    Returns:
        One panel with logarithmic axes.
    """
    dashes = ("-", "--", "-.", ":")
    colours = (BETTER, NEW_POLICY, OLD_POLICY, WORSE)
    with style():
        picture = figure(7, 3.2)
        axes = picture.subplots()
        for (accuracy, errors), dash, colour in zip(
            by_accuracy.items(), dashes, colours, strict=False
        ):
            axes.loglog(num_labels, errors, dash, color=colour)
            label_line(axes, num_labels[-1], errors[-1], f"accuracy {accuracy:g}", colour)
        axes.set(
            title="A judge who errs costs labels",
            xlabel="labels",
            ylabel="standard error of success",
            xlim=(num_labels[0], num_labels[-1] * 4),
        )
        axes.set_xticks(num_labels, [str(number) for number in num_labels])
        axes.set_xticks([], minor=True)
        axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
        axes.set_yticks([], minor=True)
        ends = np.array([errors for errors in by_accuracy.values()])
        axes.set_ylim(ends.min() * 0.8, ends.max() * 1.25)
        return picture
