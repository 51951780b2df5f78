"""Which part did they replace? Four answers to one prompt, and five places of the board to fill.

The scores, the five parts, the ratio of the tokens and the guess are traits. Lengths are fixed: 3,
30, 3 and 30 tokens.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
import traitlets
from torch import Tensor

from ppo_lessons.clip import clipped_surrogate
from ppo_lessons.figures.part_swap import part_swap_figure
from ppo_lessons.variants import (
    MODES,
    asymmetric_surrogate,
    board,
    cispo_objective,
    dr_grpo_advantages,
    group_advantages,
    group_spreads,
    rloo_advantages,
    token_weights,
)
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Number, Numbers, OneOf

LENGTHS = (3, 30, 3, 30)  # tokens
MAX_LENGTH = 40  # tokens that an answer may have
ADDED_SPREAD = 1e-4  # of `group_advantages`
BASELINES = ("none", "mean", "others")
SPREADS = ("kept", "divided")
PRICES = ("reward", "loss", "none")
RATIOS = tuple(tenths / 10 for tenths in range(5, 21))  # of every token, π / π_old
CLIPS = ("token", "wide", "answer", "limited", "none")
SHORT, LONG = 2, 3  # the answers that are compared
NOTHING = 1e-9  # a push below this one is none
SCORES = (1.0, 1.0, 0.5, 0.0)  # answer 3 is half right
# how `board` names the parts -> how they are called here
NAMED = {
    "none": "none",
    "mean of the group": "mean",
    "mean of the others": "others",
}
SCALED = {"none": "kept", "spread of the group": "divided"}
EDGES = "good: silent above 1.2; bad: silent below 0.8"
CLIPPED = {
    ("of the token", EDGES): "token",
    ("of the token", EDGES.replace("1.2", "1.28")): "wide",
    ("of the response", EDGES): "answer",
    ("of the token", "good: limited to 1.2; bad: no edge"): "limited",
    ("–", "–"): "none",
}


@cache
def methods() -> dict[str, str]:
    """Ask the board which methods have which five parts.

    Returns:
        "baseline/spread/mode/kl/clip" → the name of the method that draws anew and has them.
    """
    return {
        "/".join(
            (
                NAMED[row.baseline], SCALED[row.scale], row.aggregation, row.kl,
                CLIPPED[row.ratio, row.clip],
            )
        ): row.name
        for row in board()
        if row.baseline in NAMED and row.scale in SCALED
    }  # fmt: skip


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


def token_slopes(clip: str, ratio: float, advantages: Tensor) -> Tensor:
    """Differentiate the objective of one token by its log-probability.

    Args:
        clip: one of `CLIPS`.
        ratio: π / π_old of the token, and of all others of its answer.
        advantages: Â of its answer, one for each.

    Returns:
        How hard it is pushed before it is weighed.
    """
    if clip == "none":
        return advantages
    log_ratios = torch.full_like(advantages, ratio).log().requires_grad_()
    ratios = torch.full_like(advantages, ratio) * (log_ratios - log_ratios.detach()).exp()
    objectives: dict[str, Callable[[], Tensor]] = {
        "token": partial(clipped_surrogate, ratios, advantages, clip_epsilon=0.2),
        "wide": partial(asymmetric_surrogate, ratios, advantages, clip_low=0.2, clip_high=0.28),
        # where all tokens of an answer have one ratio, so has the answer
        "answer": partial(clipped_surrogate, ratios, advantages, clip_epsilon=0.2),
        "limited": partial(
            cispo_objective, log_ratios, torch.zeros_like(advantages), advantages, clip_high=0.2
        ),
    }
    return torch.autograd.grad(objectives[clip]().sum(), log_ratios)[0]


def _start(**changes: Any) -> dict[str, Any]:
    state = {
        "scores": list(SCORES), "baseline": "mean", "spread": "divided", "mode": "sequence_mean",
        "kl": "loss", "clip": "token", "ratio": 1.0, "guess": None, "revealed": True,
    }  # fmt: skip
    return state | changes


def _half_right(**changes: Any) -> dict[str, Any]:
    return _start(scores=[1.0, 1.0, 0.0, 0.0], **changes)


class PartSwap(TeachingWidget):
    """Show what five exchanged parts do to four answers, and let their scores be dragged.

        w = PartSwap(keep_as="variants.short_over_long")
        w.advantages, w.weights, w.pushes, w.factor, w.method

    Args:
        scores: of four answers of 3, 30, 3 and 30 tokens, from 0 to 1.
        baseline: "none", "mean" of the group or mean of the "others".
        spread: "kept" or "divided" by the spread of the group.
        mode: how a token is weighed, one of `MODES`.
        kl: where the distance from the reference is charged: "reward", "loss" or "none".
        clip: of the "token", "wide" above, of the "answer", "limited" weight, or "none": no ratio.
        ratio: π / π_old of every token, one of `RATIOS`.
        guess: how many times as hard a token of answer 3 is pushed as one of answer 4, as the
            reader said; None while there is no guess.
        revealed: whether the pushes are drawn.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "part_swap"
    STATE = ("scores", "baseline", "spread", "mode", "kl", "clip", "ratio", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "grpo": _half_right(),
        "past_the_edge": _half_right(ratio=1.3),
        "dr_grpo": _half_right(spread="kept", mode="constant", kl="none"),
        "rloo": _half_right(
            baseline="others", spread="kept", mode="sequence_sum", kl="reward", clip="none"
        ),
        "cispo": _half_right(mode="token_mean", kl="none", clip="limited", ratio=1.5),
        "no_baseline": _half_right(
            baseline="none", spread="kept", mode="token_mean", kl="none", clip="none"
        ),
        "equal": _start(scores=[1.0] * 4),
    }
    DRAGS = (Drag("grpo", ".ppo-handle", 0.05, 0.95, along="y", index=2, values=10),)
    GUESS_UNIT = "times"
    PARTS = ("grid_slider", "part_swap_panels", "part_swap")

    scores = Numbers(SCORES, low=0, high=1, step=0.1)
    baseline = Choice("mean", options=BASELINES)
    spread = Choice("divided", options=SPREADS)
    mode = Choice("sequence_mean", options=MODES)
    kl = Choice("loss", options=PRICES)
    clip = Choice("token", options=CLIPS)
    ratio = OneOf(1.0, options=RATIOS)
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
        """How hard one token of each answer is pushed: its weight times the slope of its term."""
        advantages = torch.tensor(self.advantages, dtype=torch.float64)
        slopes = token_slopes(self.clip, self.ratio, advantages).tolist()
        return [w * slope for w, slope in zip(self.weights, slopes, strict=True)]

    @property
    def factor(self) -> float | None:
        """How many times as hard a token of answer 3 is pushed as one of 4; None if one is 0."""
        short, long = self.pushes[SHORT], self.pushes[LONG]
        return short / long if min(abs(short), abs(long)) > NOTHING else None

    @property
    def method(self) -> str:
        """Name of the method that has these five parts; "" if none has."""
        parts = self.baseline, self.spread, self.mode, self.kl, self.clip
        return methods().get("/".join(parts), "")

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
            ratio=written(self.ratio, 1),
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
