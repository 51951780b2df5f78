"""Static twin of the widget LifeOfATransition: the card of a sample, and what one stage does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, SHADE, figure, style


def life_of_a_transition_figure(
    stage: str,
    rows: Sequence[tuple[str, str]],
    *,
    numbers: Mapping[str, Any],
    epoch: int,
    action: str,
    clip_epsilon: float,
) -> Figure:
    """Draw what is written down of one sample, and the picture of one stage.

    Args:
        stage: "collect", "score", "squeeze" or "renew".
        rows: name of each stage, and what it has written down.
        numbers: TD errors, their weighted form, ratios, pushes, probability before and after.
        epoch: of the squeeze stage, from 1.
        action: "left" or "right".
        clip_epsilon: ε.

    Returns:
        Two panels.
    """
    with style():
        picture = figure(9, 3.4)
        left, right = picture.subplots(1, 2)
        _card(left, rows, stage)
        if stage == "score":
            _errors(right, numbers)
        elif stage == "squeeze":
            _ratios(right, numbers["ratios"][:epoch], numbers["pushes"], clip_epsilon)
        else:
            _actions(right, numbers, action, renewed=stage == "renew")
        return picture


def _card(axes: Axes, rows: Sequence[tuple[str, str]], stage: str) -> None:
    axes.set(title="What is written down of one sample", xlim=(0, 1), ylim=(len(rows), 0))
    for number, (name, fact) in enumerate(rows):
        if name == stage:
            axes.add_patch(Rectangle((0, number + 0.08), 1, 0.84, facecolor=SHADE))
        axes.text(0.02, number + 0.5, name, va="center", weight="bold", fontsize=10)
        axes.text(0.22, number + 0.5, fact, va="center", fontsize=10)
    axes.axis("off")


def _actions(axes: Axes, numbers: Mapping[str, Any], action: str, *, renewed: bool) -> None:
    places = {"left": 0, "right": 1}
    for name, place in places.items():
        chosen = name == action
        before, after = (
            numbers[when] if chosen else 1 - numbers[when] for when in ("before", "after")
        )
        outline: Any = {"facecolor": "none", "edgecolor": OLD_POLICY, "linestyle": "--"}
        axes.bar(place, before, width=0.7, label="under π_old" if chosen else None, **outline)
        fill: Any = {"facecolor": NEW_POLICY if chosen else "white", "edgecolor": NEW_POLICY}
        name = "chosen action" if chosen else None
        axes.bar(place, after if renewed else before, width=0.45, label=name, **fill)
        text = f"{before:.2f} → {after:.2f}" if renewed else f"{before:.2f}"
        axes.text(place, max(before, after) + 0.03, text, ha="center")
    axes.set_xticks(list(places.values()), labels=list(places))
    axes.set(ylim=(0, 1.1), xlabel="action", ylabel="probability")
    axes.set(title="Probability before and after" if renewed else "Probability of each action")
    axes.legend(loc="upper left", fontsize=8)


def _errors(axes: Axes, numbers: Mapping[str, Any]) -> None:
    later = np.arange(len(numbers["td_errors"]))
    outline: Any = {"facecolor": "none", "edgecolor": OLD_POLICY, "linestyle": "--"}
    axes.bar(later, numbers["td_errors"], width=0.8, label="TD error", **outline)
    axes.bar(later, numbers["weighted"], width=0.5, color=NEW_POLICY, label="(γλ)ˡ·TD error")
    axes.axhline(0, color=INK, linewidth=0.8)
    title = f"Â = {numbers['advantage']:.2f}: sum of the full bars".replace("-", "−")
    axes.set(title=title, xlabel="steps later", ylabel="TD error (reward)")
    axes.set(xlim=(-0.7, 15.7), ylim=(-5, 5))
    axes.legend(loc="lower right", fontsize=8)


def _ratios(
    axes: Axes, ratios: Sequence[float], pushes: Sequence[bool], clip_epsilon: float
) -> None:
    epochs = np.arange(1, len(ratios) + 1)
    axes.plot(epochs, ratios, color=NEW_POLICY)
    for mark, name, wanted in (("o", "pushes", True), ("x", "silent: no gradient", False)):
        some = [index for index, push in enumerate(pushes[: len(ratios)]) if push == wanted]
        look: Any = {"ms": 8, "mec": INK, "mew": 1 if wanted else 2.4, "mfc": NEW_POLICY}
        places = epochs[some], np.array(ratios)[some]
        axes.plot(*places, mark, linestyle="", label=name, **look)
    for edge in (1 - clip_epsilon, 1 + clip_epsilon):
        axes.axhline(edge, color=INK, linewidth=1)
    axes.axhline(1, color=OLD_POLICY, linewidth=0.8, linestyle=":")
    axes.set(title="Ratio each time it is used", xlabel="epoch", ylabel="ratio π / π_old")
    axes.set(xlim=(0.5, 8.5), ylim=(0.6, 1.6))
    axes.legend(loc="upper left", fontsize=8)
