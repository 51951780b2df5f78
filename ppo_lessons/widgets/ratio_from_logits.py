"""One logit moves: which ratios move? Four actions, an old policy and a new one.

The logits of both are traits. Everything else follows: probabilities, ratios, their mean under the
old policy, KL, and how many samples the weighted ones are worth.
"""

from typing import Any

import torch
from torch import Tensor

from ppo_lessons.figures.ratio_from_logits import ratio_from_logits_figure
from ppo_lessons.importance import importance_ratios
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Numbers, Whole

ACTIONS = "abcd"
LARGEST_LOGIT = 3.0
OLD = (1.0, 0.5, 0.0, -1.0)
UNCHANGED = 1e-9  # two logits that moved alike give a ratio of 1 up to rounding


def _start(**changes: Any) -> dict[str, Any]:
    state = {"logits_old": list(OLD), "logits": [1.0, 1.5, 0.0, -1.0], "chosen": 1}
    return state | {"guess": None, "revealed": True} | changes


class RatioFromLogits(TeachingWidget):
    """Show how the logits of two policies make the ratio of each action.

        w = RatioFromLogits(keep_as="importance.moved")
        w.ratios, w.kl, w.effective_share

    Args:
        logits_old: of the policy that drew the data, four numbers from −3 to 3.
        logits: of the policy as it is now.
        chosen: the action that the sentence is about, 0 to 3.
        guess: how many ratios differ from 1, as the reader said; None while there is no guess.
        revealed: whether the picture shows the new probabilities and the ratios.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "ratio_from_logits"
    STATE = ("logits_old", "logits", "chosen", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "one_logit": _start(),
        "shift": _start(logits=[2.0, 1.5, 1.0, 0.0]),
        "small_step": _start(logits=[1.0, 0.75, 0.0, -1.0]),
        "rare": _start(logits_old=[1.0, 1.0, 1.0, -3.0], logits=[1.0, 1.0, 1.0, 1.0], chosen=3),
        "opposite": _start(logits=[-1.0, 0.0, 0.5, 1.0], chosen=3),
    }
    DRAGS = (Drag("one_logit", ".ppo-new-logits .ppo-handle", 0.1, 0.9, along="y", index=1),)
    GUESS_UNIT = "of 4"

    logits_old = Numbers(OLD, low=-LARGEST_LOGIT, high=LARGEST_LOGIT, step=0.05)
    logits = Numbers(STATES["guess"]["logits"], low=-LARGEST_LOGIT, high=LARGEST_LOGIT, step=0.05)
    chosen = Whole(1, low=0, high=len(ACTIONS) - 1)
    guess = Whole(None, low=0, high=len(ACTIONS))

    def _log_probs(self) -> tuple[Tensor, Tensor]:
        """Give log π and log π_old of each action."""
        both = torch.tensor([self.logits, self.logits_old], dtype=torch.float64).log_softmax(-1)
        return both[0], both[1]

    @property
    def probabilities(self) -> list[float]:
        """π of each action."""
        return self._log_probs()[0].exp().tolist()

    @property
    def probabilities_old(self) -> list[float]:
        """π_old of each action."""
        return self._log_probs()[1].exp().tolist()

    @property
    def ratios(self) -> list[float]:
        """π / π_old of each action."""
        return importance_ratios(*self._log_probs()).tolist()

    @property
    def mean_ratio(self) -> float:
        """Σ π_old · ratio: 1, whatever the policies."""
        log_probs, log_probs_old = self._log_probs()
        return float((log_probs_old.exp() * importance_ratios(log_probs, log_probs_old)).sum())

    @property
    def kl(self) -> float:
        """KL(π_old ‖ π), exact (nats)."""
        log_probs, log_probs_old = self._log_probs()
        return float((log_probs_old.exp() * (log_probs_old - log_probs)).sum())

    @property
    def effective_share(self) -> float:
        """Effective sample size of a large batch of π_old, as a share of the batch.

        (E ratio)² / E ratio², expectations under π_old, and E ratio is 1.
        """
        log_probs, log_probs_old = self._log_probs()
        squares = importance_ratios(log_probs, log_probs_old) ** 2
        return float(1 / (log_probs_old.exp() * squares).sum())

    @property
    def moved(self) -> int:
        """How many ratios differ from 1."""
        return sum(abs(ratio - 1) > UNCHANGED for ratio in self.ratios)

    @property
    def answer(self) -> int:
        """What the guess is compared with."""
        return self.moved

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "probabilities": self.probabilities,
            "probabilities_old": self.probabilities_old,
            "ratios": self.ratios,
            "mean_ratio": self.mean_ratio,
            "kl": self.kl,
            "effective_share": self.effective_share,
            "moved": self.moved,
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        return say(
            self.NAME,
            "sentence",
            language=self.language,
            action=ACTIONS[self.chosen],
            old=written(self.probabilities_old[self.chosen], 3),
            new=written(self.probabilities[self.chosen], 3),
            ratio=written(self.ratios[self.chosen], 3),
            moved=self.moved,
            mean=written(self.mean_ratio, 3),
            kl=written(self.kl, 3),
            worth=written(100 * self.effective_share, 1),
        )

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return ratio_from_logits_figure(
            self.logits_old,
            self.logits,
            self.probabilities_old,
            self.probabilities,
            self.ratios,
            actions=ACTIONS,
            title=say(self.NAME, "picture_title", language=self.language),
        )
