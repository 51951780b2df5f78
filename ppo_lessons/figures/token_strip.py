"""Static twin of the widget TokenStrip: a column for each token, a line for each fact."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ppo_lessons.figures.style import INK, NEW_POLICY, OLD_POLICY, WORSE, figure, style


def token_strip_figure(
    prompt: Sequence[str],
    response: Sequence[str],
    *,
    positions: Sequence[int],
    mask: Sequence[bool],
    log_probs_old: Sequence[float],
    log_probs: Sequence[float],
    ratios: Sequence[float],
    rows: Mapping[str, Sequence[float]],
    changed_positions: Sequence[bool],
    changed_mask: Sequence[bool],
    shares: Sequence[float] | None,
    reach: float,
    title: str,
    names: Sequence[str],
    off: float,
) -> Figure:
    """Draw what is written down about each token, and many ratios below.

    Args:
        prompt: texts of its tokens.
        response: texts of its tokens, padding included.
        positions: of all tokens.
        mask: which tokens of the response are taken for actions.
        log_probs_old: written down when they were drawn (nats).
        log_probs: computed again (nats).
        ratios: of the response's tokens.
        rows: further lines, by name; one number for each token of the response.
        changed_positions: where a position is not as it should be.
        changed_mask: where the mask is not.
        shares: of many ratios, in bins of their logarithm; None leaves the panel out.
        reach: of the bins, on both sides of 0.
        title: what one sees.
        names: of the first six lines.
        off: how far a ratio may be from 1.

    Returns:
        One or two panels; a cross marks what is not as it should be.
    """
    lines = [*names, *rows]
    start, total = len(prompt), len(prompt) + len(response)
    with style():
        picture = figure(10, 0.36 * len(lines) + (1.9 if shares else 0.5))
        heights = [0.36 * len(lines), 1.0] if shares else [1.0]
        panels = picture.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        axes = panels[0]
        axes.axis("off")
        axes.set(xlim=(-2.4, total - 0.4), ylim=(len(lines) - 0.4, -0.7), title=title)
        for line, name in enumerate(lines):
            axes.text(-2.35, line, name, va="center", fontsize=9)
        for column, word in enumerate([*prompt, *response]):
            t = column - start
            likely = float(np.exp(log_probs_old[t])) if t >= 0 and word != "<pad>" else 0.0
            _box(axes, column, word, likely=likely, prompt=t < 0)
            _cell(axes, column, 1, str(positions[column]), wrong=changed_positions[column])
            action = t >= 0 and mask[t]
            _cell(axes, column, 2, str(int(action)), wrong=t >= 0 and changed_mask[t])
            if t < 0:
                continue
            numbers = [
                log_probs_old[t],
                log_probs[t],
                ratios[t],
                *(row[t] for row in rows.values()),
            ]
            for line, number in enumerate(numbers, start=3):
                wrong = line == 5 and action and abs(number - 1) > off
                _cell(axes, column, line, _short(number) if action else "·", wrong=wrong)
        axes.plot([start - 0.5] * 2, [-0.6, len(lines) - 0.5], ":", color=INK, linewidth=1.6)
        if shares:
            _histogram(panels[1], shares, reach)
        return picture


def _box(axes: Axes, column: int, word: str, *, likely: float, prompt: bool) -> None:
    edge, dash = (OLD_POLICY, "--") if prompt else (NEW_POLICY, "-")
    axes.add_patch(
        FancyBboxPatch(
            (column - 0.4, -0.36), 0.8, 0.72, boxstyle="round,pad=0.02,rounding_size=0.1",
            facecolor=to_rgba(NEW_POLICY, 0.55 * likely), edgecolor=edge, linestyle=dash,
            linewidth=1.4,
        )
    )  # fmt: skip
    size = 9 if len(word) < 4 else 7.5
    axes.text(column, 0, word, ha="center", va="center", fontsize=size, weight="bold")


def _cell(axes: Axes, column: int, line: int, text: str, *, wrong: bool) -> None:
    axes.text(
        column, line, f"{text}✕" if wrong else text, ha="center", va="center", fontsize=9,
        color=WORSE if wrong else INK, fontweight="bold" if wrong else "normal",
    )  # fmt: skip


def _short(number: float) -> str:
    size = abs(number)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{number + 0.0:.{digits}f}".replace("-", "−")


def _histogram(axes: Axes, shares: Sequence[float], reach: float) -> None:
    logs = np.linspace(-reach, reach, len(shares))
    axes.bar(logs, 100 * np.array(shares), width=0.9 * (logs[1] - logs[0]), color=NEW_POLICY)
    ticks = [0.25, 0.5, 1, 2, 4]
    axes.set_xticks(np.log(ticks), [f"{tick:g}" for tick in ticks])
    axes.set(xlabel="ratio, of 1,000 responses (log scale)", ylabel="% of tokens")
    axes.set_xlim(-1.05 * reach, 1.05 * reach)
