"""Pictures of lesson 13: which place scores which token, who speaks, ratios of eight programs."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, SHADE, WORSE, figure, style

LOWEST, HIGHEST = 1 / 8, 8.0  # of the ratios that are drawn; what lies beyond stands at the edge
FEWEST = 1e-3  # the least share of tokens that a bar shows


def shift(prompt: Sequence[str], response: Sequence[str]) -> Figure:
    """Draw which place's logits score which token.

    Args:
        prompt: texts of its tokens, padding included.
        response: texts of its tokens, padding included.

    Returns:
        One panel: tokens in boxes, the policy's own blue, prompt and padding grey and dashed; an
        arrow from each place that scores to what it scores.
    """
    start, texts = len(prompt), [*prompt, *response]
    with style():
        picture = figure(9, 2.3)
        axes = picture.subplots()
        axes.axis("off")
        axes.set(xlim=(-0.6, len(texts) - 0.4), ylim=(-1.1, 1.5))
        axes.set_title("Each token is scored one place before it")
        for column, text in enumerate(texts):
            _box(axes, column, 0, text, own=column >= start and text != "<pad>")
            axes.text(column, -0.75, str(column), ha="center", va="center", fontsize=8.5)
        axes.text(start - 1.2, 1.1, "logits of a place …", fontsize=9, va="center", ha="right")
        for column in range(start, len(texts)):
            scores = texts[column] != "<pad>"
            arrow = {"arrowstyle": "->", "color": NEW_POLICY if scores else OLD_POLICY, "lw": 1.6}
            bend = {"connectionstyle": "arc3,rad=-0.55", "linestyle": "-" if scores else ":"}
            axes.annotate("", (column, 0.45), xytext=(column - 1, 0.45), arrowprops=arrow | bend)
        axes.text(start - 0.9, 1.1, "… score the next token", fontsize=9, va="center")
        axes.axvline(start - 0.5, ymin=0.05, ymax=0.72, color=INK, linestyle=":", linewidth=1.6)
        return picture


def turns(texts: Sequence[str], speakers: Sequence[str], actions: Sequence[bool]) -> Figure:
    """Draw a conversation token by token, and which tokens are actions.

    Args:
        texts: of all tokens, without padding.
        speakers: who wrote each.
        actions: whether the policy chose it.

    Returns:
        One panel.
    """
    with style():
        picture = figure(9, 1.9)
        axes = picture.subplots()
        axes.axis("off")
        axes.set(xlim=(-1.5, len(texts) - 0.4), ylim=(-1.3, 1.1))
        axes.set_title("Only what the assistant wrote are actions")
        starts = [0, *(t for t in range(1, len(texts)) if speakers[t] != speakers[t - 1])]
        for first in starts:
            axes.text(first - 0.42, 0.75, speakers[first], fontsize=9.5, weight="bold")
        axes.text(-1.4, -0.85, "action?", fontsize=9, va="center")
        for column, (text, action) in enumerate(zip(texts, actions, strict=True)):
            _box(axes, column, 0, text, own=action)
            axes.text(column, -0.85, str(int(action)), ha="center", va="center", fontsize=10,
                      weight="bold" if action else "normal")  # fmt: skip
        return picture


def _box(axes: Axes, column: float, line: float, text: str, *, own: bool) -> None:
    edge, dash, face = (NEW_POLICY, "-", "white") if own else (OLD_POLICY, "--", SHADE)
    axes.add_patch(
        FancyBboxPatch(
            (column - 0.4, line - 0.38), 0.8, 0.76,
            boxstyle="round,pad=0.02,rounding_size=0.12",
            facecolor=face, edgecolor=edge, linestyle=dash, linewidth=1.5,
        )
    )  # fmt: skip
    size = 10 if len(text) < 4 else 8
    axes.text(column, line, text, ha="center", va="center", fontsize=size)


def ratio_histograms(ratios: Mapping[str, np.ndarray]) -> Figure:
    """Draw the ratios of several programs before any update.

    Args:
        ratios: of each program's actions, by its name.

    Returns:
        A panel for each; both axes are logarithmic, and a ratio beyond the edge stands at it.
    """
    edges = np.geomspace(LOWEST, HIGHEST, 42)  # an odd number of bins: 1 lies in the middle of one
    with style():
        picture = figure(9, 4.2)
        panels = picture.subplots(2, -(-len(ratios) // 2), sharex=True, sharey=True)
        for axes, (name, numbers) in zip(panels.flat, ratios.items(), strict=False):
            inside = np.clip(numbers, 1.001 * LOWEST, 0.999 * HIGHEST)
            shares = np.histogram(inside, edges)[0] / len(inside)
            off = np.abs(np.log(edges[:-1] * edges[1:]) / 2) > 1e-6
            for some, color, hatch in ((~off, NEW_POLICY, ""), (off, WORSE, "////")):
                axes.bar(
                    edges[:-1][some], shares[some], np.diff(edges)[some], align="edge",
                    color="white" if hatch else color, edgecolor=color, hatch=hatch, linewidth=0.8,
                )  # fmt: skip
            axes.set(xscale="log", yscale="log", ylim=(FEWEST, 1.6), xlim=(LOWEST, HIGHEST))
            axes.set_title(name.replace("_", " ").replace("eos", "EOS"), fontsize=9.5)
            axes.set_xticks([0.25, 1, 4], ["0.25", "1", "4"])
            axes.minorticks_off()
        for axes in panels[-1]:
            axes.set_xlabel("ratio")
        for axes in panels[:, 0]:
            axes.set_ylabel("share of tokens")
        return picture
