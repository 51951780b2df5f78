"""Static twin of the widget ValueFit: what a critic says against its target, and the errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ppo_lessons.figures.style import GOAL, INK, NEW_POLICY, OLD_POLICY, figure, style

FARTHEST = (-15, 30)
ERRORS = np.arange(-21, 22, 2)


def value_fit_figure(
    values: Sequence[float], targets: Sequence[float], *, target: str, grade: str
) -> Figure:
    """Draw a scatter of values and targets, and a histogram of the errors.

    Args:
        values: what the critic says of each sample (reward).
        targets: what it is held against (reward).
        target: its name.
        grade: what is said of the errors.

    Returns:
        Two panels; what lies beyond them is drawn at their edges.
    """
    said, held = np.array(values), np.array(targets)
    with style():
        picture = figure(9, 3.8)
        left, right = picture.subplots(1, 2)
        left.plot(FARTHEST, FARTHEST, "--", color=OLD_POLICY, label="a perfect critic")
        places = np.clip(said, *FARTHEST), np.clip(held, *FARTHEST)
        left.plot(*places, "o", ms=4, mfc="none", mec=NEW_POLICY, mew=1, alpha=0.8)
        left.set(title=f"Held against {target}", xlim=FARTHEST, ylim=FARTHEST)
        left.set(xlabel="what the critic says (reward)", ylabel="target (reward)")
        box: Any = {"frameon": True, "framealpha": 0.9, "edgecolor": "none", "fontsize": 8}
        left.legend(loc="upper left", **box)
        inside = ERRORS[0] + 0.01, ERRORS[-1] - 0.01
        errors = np.clip(held - said, *inside)
        right.hist(errors, ERRORS, color=NEW_POLICY, rwidth=0.8, label="errors of this critic")
        constant = np.clip(held - held.mean(), *inside)
        right.hist(
            constant, ERRORS, histtype="step", color=OLD_POLICY, linestyle="--", linewidth=1.6,
            label="errors of the best constant",
        )  # fmt: skip
        right.axvline(0, color=INK, linewidth=0.8)
        right.axvline(
            np.clip((held - said).mean(), *inside), color=GOAL, linestyle=":", label="mean error"
        )
        right.set(
            title=grade[0].upper() + grade[1:], xlabel="target − what the critic says (reward)"
        )
        right.set(ylabel="samples", xlim=(ERRORS[0], ERRORS[-1]), ylim=(0, 100))
        right.legend(loc="upper left", **box)
        return picture
