"""Which part did they replace? Four answers to one prompt; baseline, spread and weight to choose.

The scores, the three parts and the guess are traits. Lengths are fixed: 3, 30, 3 and 30 tokens.
"""

from functools import cache
from typing import Any

import torch
import traitlets
from torch import Tensor

from ppo_lessons.figures.part_swap import part_swap_figure
from ppo_lessons.variants import (
    MODES,
    board,
    dr_grpo_advantages,
    group_advantages,
    group_spreads,
    rloo_advantages,
    token_weights,
)
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number, Numbers

LENGTHS = (3, 30, 3, 30)  # tokens
MAX_LENGTH = 40  # tokens that an answer may have
ADDED_SPREAD = 1e-4  # of `group_advantages`
BASELINES = ("none", "mean", "others")
SPREADS = ("kept", "divided")
SHORT, LONG = 2, 3  # the answers that are compared
NOTHING = 1e-9  # a push below this one is none
SCORES = (1.0, 1.0, 0.5, 0.0)  # answer 3 is half right
RIGHT_OR_WRONG = [1.0, 1.0, 0.0, 0.0]
# how `board` names the parts -> how they are called here
NAMED = {
    "none": "none",
    "mean of the group": "mean",
    "mean of the others": "others",
}
SCALED = {"none": "kept", "spread of the group": "divided"}


@cache
def methods() -> dict[str, str]:
    """Ask the board which methods have which three parts.

    Returns:
        "baseline/spread/mode" → names of methods that draw anew, joined by commas.
    """
    found: dict[str, str] = {}
    for row in board():
        if row.baseline in NAMED and row.scale in SCALED:
            key = f"{NAMED[row.baseline]}/{SCALED[row.scale]}/{row.aggregation}"
            found[key] = ", ".join(filter(None, [found.get(key, ""), row.name]))
    return found


def advantages_of(scores: Tensor, baseline: str, spread: str) -> Tensor:
    """Compare four answers to one prompt.

    Args:
        scores: of the answers (reward).
        baseline: one of `BASELINES`.
        spread: one of `SPREADS`.

    Returns:
        Â of each answer.
    """
    groups = torch.zeros(len(scores), dtype=torch.int64)
    if (baseline, spread) == ("mean", "divided"):
        return group_advantages(scores, groups, added_spread=ADDED_SPREAD)
    compared = {
        "none": lambda: scores,
        "mean": lambda: dr_grpo_advantages(scores, groups),
        "others": lambda: rloo_advantages(scores, groups),
    }[baseline]()
    if spread == "divided":
        compared = compared / (group_spreads(scores, groups) + ADDED_SPREAD)
    return compared


def _start(**changes: Any) -> dict[str, Any]:
    state = {
        "scores": list(SCORES), "baseline": "mean", "spread": "divided", "mode": "sequence_mean",
        "guess": None, "revealed": True,
    }  # fmt: skip
    return state | changes


class PartSwap(TeachingWidget):
    """Show what three exchanged parts do to four answers, and let their scores be dragged.

        w = PartSwap(keep_as="variants.short_over_long")
        w.advantages, w.weights, w.pushes, w.factor, w.method

    Args:
        scores: of four answers of 3, 30, 3 and 30 tokens, from 0 to 1.
        baseline: "none", "mean" of the group or mean of the "others".
        spread: "kept" or "divided" by the spread of the group.
        mode: how a token is weighed, one of `MODES`.
        guess: how many times as hard a token of answer 3 is pushed as one of answer 4, as the
            reader said; None while there is no guess.
        revealed: whether the pushes are drawn.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "part_swap"
    STATE = ("scores", "baseline", "spread", "mode", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "grpo": _start(scores=RIGHT_OR_WRONG),
        "dr_grpo": _start(scores=RIGHT_OR_WRONG, spread="kept", mode="constant"),
        "rloo": _start(
            scores=RIGHT_OR_WRONG, baseline="others", spread="kept", mode="sequence_sum"
        ),
        "dapo": _start(scores=RIGHT_OR_WRONG, mode="token_mean"),
        "no_baseline": _start(
            scores=RIGHT_OR_WRONG, baseline="none", spread="kept", mode="token_mean"
        ),
        "rare": _start(scores=[1.0, 0.0, 0.0, 0.0]),
        "equal": _start(scores=[1.0] * 4),
    }
    DRAGS = (Drag("grpo", ".ppo-handle", 0.05, 0.95, along="y", index=2, values=10),)
    GUESS_UNIT = "times"

    scores = Numbers(SCORES, low=0, high=1, step=0.1)
    baseline = Choice("mean", options=BASELINES)
    spread = Choice("divided", options=SPREADS)
    mode = Choice("sequence_mean", options=MODES)
    guess = Number(None, low=-1000, high=1000)
    study = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any):
        super().__init__(**state)
        self.study = {"lengths": list(LENGTHS), "longest": MAX_LENGTH, "methods": methods()}

    @property
    def advantages(self) -> list[float]:
        """Â of each answer."""
        scores = torch.tensor(self.scores, dtype=torch.float64)
        return advantages_of(scores, self.baseline, self.spread).tolist()

    @property
    def weights(self) -> list[float]:
        """What one token of each answer weighs in the loss."""
        mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
        weights = token_weights(mask, mode=self.mode, max_length=MAX_LENGTH, dtype=torch.float64)
        return weights[:, 0].tolist()

    @property
    def pushes(self) -> list[float]:
        """How hard one token of each answer is pushed at ratio 1: its weight times Â."""
        return [w * each for w, each in zip(self.weights, self.advantages, strict=True)]

    @property
    def factor(self) -> float | None:
        """How many times as hard a token of answer 3 is pushed as one of 4; None if one is 0."""
        short, long = self.pushes[SHORT], self.pushes[LONG]
        return short / long if min(abs(short), abs(long)) > NOTHING else None

    @property
    def method(self) -> str:
        """Names of the methods that have these three parts; "" if none has."""
        return methods().get(f"{self.baseline}/{self.spread}/{self.mode}", "")

    @property
    def answer(self) -> float:
        """What the guess is compared with; 0 where one of the two is not pushed."""
        return self.factor or 0.0

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "advantages": self.advantages,
            "weights": self.weights,
            "pushes": self.pushes,
            "factor": self.factor,
            "method": self.method,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        name = self.method
        return self._say(
            "sentence" if self.factor is not None else "sentence_still",
            whose=self._say("whose", method=name) if name else self._say("nobody"),
            factor=written(self.answer, 2),
            short=written(self.pushes[SHORT], 4),
            long=written(self.pushes[LONG], 4),
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        name = self.method
        return part_swap_figure(
            self.scores,
            self.advantages,
            self.pushes,
            names=[self._say(f"answer_{n}") for n in range(4)],
            title=self._say("whose", method=name) if name else self._say("nobody"),
        )
