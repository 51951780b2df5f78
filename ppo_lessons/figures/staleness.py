"""Pictures of old rollouts: who waits for whom, what is left of the data, runs by age, alarms."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from ppo_lessons.figures.style import (
    BETTER,
    GOAL,
    NEW_POLICY,
    OLD_POLICY,
    SECOND,
    WORSE,
    figure,
    label_line,
    style,
)

Curve = Sequence[float]
LOOKS = {
    "nothing": (WORSE, "-", "o"),
    "ratio": (SECOND, "--", "s"),
    "clip": (BETTER, "-", "^"),
    "decoupled": (NEW_POLICY, ":", "D"),
}
NAMES = {"nothing": "no correction", "clip": "ratio and clip", "decoupled": "decoupled weights"}


def timeline(used: Sequence[tuple[int, int]], *, title: str) -> Figure:
    """Draw two lanes: which version drew a batch, and which version learned from it.

    Args:
        used: version of the generator and version of the trainer, for each batch in its order.
        title: what one sees.

    Returns:
        One panel over updates.
    """
    with style():
        picture = figure(9, 2.6)
        axes = picture.subplots()
        for drawn_by, learned_by in used:
            axes.annotate(
                "", (learned_by, 0.12), xytext=(drawn_by, 0.88),
                arrowprops={"arrowstyle": "->", "color": OLD_POLICY},
            )  # fmt: skip
        for lane, colour, place in ((0, OLD_POLICY, 1.0), (1, NEW_POLICY, 0.0)):
            for version in sorted({pair[lane] for pair in used}):
                axes.annotate(
                    str(version), (version, place), ha="center", va="center", color="white",
                    fontsize=9, bbox={"boxstyle": "round", "facecolor": colour, "linewidth": 0},
                )  # fmt: skip
        last = max(learned_by for _, learned_by in used)
        axes.set(
            yticks=[0, 1], yticklabels=["trainer", "generator"], ylim=(-0.25, 1.25),
            xlim=(-0.6, last + 0.6), xlabel="updates", title=title,
        )  # fmt: skip
        axes.grid(visible=False)
        return picture


def caps(
    largest_weights: Curve, means: Curve, deviations: Curve, *, truth: float, uncorrected: float
) -> Figure:
    """Draw what a cap on the weights does to the mean, and to the noise of one sample.

    Args:
        largest_weights: C, ascending.
        means: what the weighted samples say on average, at each C.
        deviations: standard deviation of one weighted sample.
        truth: the mean under the new policy.
        uncorrected: the mean under the old one.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.1)
        left, right = picture.subplots(1, 2)
        left.semilogx(largest_weights, means, "o-", base=2, color=NEW_POLICY, markersize=5)
        for level, words, dash in ((truth, "new policy", "--"), (uncorrected, "old policy", ":")):
            left.axhline(level, color=OLD_POLICY, linestyle=dash, linewidth=1.2)
            left.annotate(
                words, (0.98, level), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                fontsize=9, color=OLD_POLICY, xytext=(0, 2), textcoords="offset points",
            )  # fmt: skip
        left.set(title="A cap leans to the old policy", ylabel="mean of weight × reward")
        left.set_ylim(0, truth * 1.2)
        right.semilogx(largest_weights, deviations, "s-", base=2, color=WORSE, markersize=5)
        right.set(title="and takes noise away", ylabel="its standard deviation")
        right.set_ylim(0, max(deviations) * 1.1)
        for axes in (left, right):
            axes.set_xlabel("largest weight C")
            axes.set_xticks(largest_weights, [f"{cap:g}" for cap in largest_weights])
        return picture


def shares(lengths: Sequence[int], by_token: Curve, by_answer: Curve) -> Figure:
    """Draw which share of the data is left, by the level at which it is weighed.

    Args:
        lengths: of the answers, ascending (tokens).
        by_token: share of the tokens.
        by_answer: share of whole answers.

    Returns:
        One panel.
    """
    with style():
        picture = figure(7, 3.1)
        axes = picture.subplots()
        axes.plot(lengths, by_token, "-", color=BETTER)
        axes.plot(lengths, by_answer, "--", color=WORSE)
        label_line(axes, lengths[-1], by_token[-1], "token by token", BETTER)
        label_line(axes, lengths[-1], by_answer[-1], "whole answers", WORSE)
        axes.set(
            title="The ratio of an answer is a product", xlabel="tokens of an answer",
            ylabel="effective share", ylim=(-0.05, 1.05), xlim=(0, lengths[-1] * 1.3),
        )  # fmt: skip
        return picture


def by_age(panels: Mapping[str, Mapping[str, tuple[Curve, Sequence[Curve]]]]) -> Figure:
    """Draw held-out success over answers, a panel for each age, every seed thin, the mean thick.

    Args:
        panels: title → correction → answers drawn so far, and success of each seed.

    Returns:
        As many panels as titles.
    """
    with style():
        picture = figure(9, 3.3)
        columns = picture.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, lines) in zip(columns, panels.items(), strict=True):
            for name, (steps, seeds) in lines.items():
                colour, dash, marker = LOOKS[name]
                thousands = [step / 1000 for step in steps]
                for seen in seeds:
                    axes.plot(thousands, seen, dash, color=colour, linewidth=0.7, alpha=0.5)
                mean = [sum(each) / len(seeds) for each in zip(*seeds, strict=True)]
                axes.plot(
                    thousands,
                    mean,
                    dash,
                    color=colour,
                    marker=marker,
                    markersize=3.5,
                    label=NAMES.get(name, name),
                )
            axes.set(title=title, xlabel="thousand answers", ylim=(0, 1))
        columns[0].set_ylabel("right answers (share)")
        most = max(columns, key=lambda axes: len(axes.get_lines()))
        picture.legend(*most.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return picture


def alarms(rows: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw what the clip says of runs, beside what became of them.

    Args:
        rows: kind of run → for each seed, mean share outside of the clip, success at the end.

    Returns:
        One panel.
    """
    dots = zip((BETTER, NEW_POLICY, SECOND, WORSE, GOAL), ("o", "s", "^", "X", "D"), strict=True)
    with style():
        picture = figure(7, 3.3)
        axes = picture.subplots()
        for (name, seeds), (colour, marker) in zip(rows.items(), dots, strict=False):
            outside, success = zip(*seeds, strict=True)
            axes.plot(outside, success, marker, color=colour, markersize=7, label=name)
        axes.set(
            title="The clip sees age, and not the task", xlabel="share outside of the clip (mean)",
            ylabel="right answers at the end (share)", ylim=(-0.04, 1.0),
        )  # fmt: skip
        axes.set_xlim(left=-0.01)
        picture.legend(loc="outside right upper")
        return picture
