"""What is bootstrapped where an episode ends? Six steps, and six ways in which programs do it.

The critic says 1 + the steps since the reset, and the rollout begins in the middle of an episode.
So the kinds of the ends decide what it says, and the ways decide what they do with it.
"""

from itertools import pairwise
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from ppo_lessons.figures.end_kinds import end_kinds_figure
from ppo_lessons.rollout import ENDINGS
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choice, Choices, Number

ENDS = ("continue", "terminated", "truncated")
# The ways of lesson 07, in its order, by names that an address can hold.
WAYS = dict(
    zip(
        (
            "two_masks", "flags_merged", "truncated_ignored", "ignored_after_reset",
            "value_after_reset", "nothing_after_last",
        ),
        ENDINGS,
        strict=True,
    )
)  # fmt: skip
AFTER_RESET = ("ignored_after_reset", "value_after_reset")
IGNORED = ("truncated_ignored", "ignored_after_reset")
REWARDS = (1.0, 1.0, 1.0, 1.0, 3.0, 1.0)
KINDS = ("continue", "truncated", "continue", "continue", "terminated", "continue")
FIRST_VALUE = 5.0  # the rollout begins at the fifth step of an episode
Column = Float64[Tensor, "T 1"]
Flags = Bool[Tensor, "T 1"]
ROUNDING = 1e-9


def _start(**changed: Any) -> dict[str, Any]:
    return {
        "ends": list(KINDS),
        "way": "two_masks",
        "gamma": 0.9,
        "gae_lambda": 0.8,
        "guess": None,
        "revealed": True,
    } | changed


class EndKinds(TeachingWidget):
    """Show what six ways to handle ends make of one rollout, and ask which one is at work.

        w = EndKinds(keep_as="rollout.which_way")
        ENDINGS[w.way_name](*w.facts(), gamma=w.gamma, gae_lambda=w.gae_lambda)

    Args:
        ends: for each of the six steps "continue", "terminated" or "truncated".
        way: one of `WAYS`; "two_masks" is right.
        gamma: γ, from 0 to 1.
        gae_lambda: λ, from 0 to 1.
        guess: the way, as the reader said; None while there is no guess.
        revealed: whether the picture shows which way it is.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "end_kinds"
    STATE = ("ends", "way", "gamma", "gae_lambda", "guess", "revealed")
    STATES = {"guess": _start(way="value_after_reset", revealed=False)} | {
        way: _start(way=way) for way in WAYS
    }
    PARTS = ("episode_ends", "end_kinds")
    DRAGS: ClassVar = (Drag("truncated_ignored", "input[type=range]", 0.02, 0.98, index=1),)

    ends = Choices(KINDS, options=ENDS)
    way = Choice("value_after_reset", options=tuple(WAYS))
    gamma = Number(0.9, low=0, high=1, step=0.01)
    gae_lambda = Number(0.8, low=0, high=1, step=0.01)
    guess = Choice(None, options=tuple(WAYS))

    @property
    def way_name(self) -> str:
        """The key of this way in `ENDINGS`."""
        return WAYS[self.way]

    @property
    def values(self) -> list[float]:
        """V(s_t) of each row: 1 + the steps since the reset."""
        found = [FIRST_VALUE]
        for end in self.ends[:-1]:
            found.append(found[-1] + 1 if end == "continue" else 1.0)
        return found

    @property
    def next_values(self) -> list[float]:
        """V of the state that each step reached, before any reset."""
        return [value + 1 for value in self.values]

    def facts(self) -> tuple[Column, Column, Column, Flags, Flags]:
        """Give rewards, values, next values, terminated, truncated, as `compute_gae` takes them."""
        rewards, values, next_values = (
            torch.tensor(each, dtype=torch.float64).unsqueeze(1)
            for each in (REWARDS, self.values, self.next_values)
        )
        terminated, truncated = (
            torch.tensor([end == kind for end in self.ends]).unsqueeze(1) for kind in ENDS[1:]
        )
        return rewards, values, next_values, terminated, truncated

    def _advantages(self, name: str, gae_lambda: float) -> list[float]:
        found = ENDINGS[name](*self.facts(), gamma=self.gamma, gae_lambda=gae_lambda)
        return found.flatten().tolist()

    @property
    def advantages(self) -> list[float]:
        """Â of each row, as this way computes it."""
        return self._advantages(self.way_name, self.gae_lambda)

    @property
    def right(self) -> list[float]:
        """Â of each row with two masks."""
        return self._advantages("two masks", self.gae_lambda)

    @property
    def answer(self) -> str:
        """What the guess is compared with."""
        return self.way

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        last = len(self.ends) - 1
        following = [after for _, after in pairwise(self.values)]
        asked = self.next_values
        if self.way in AFTER_RESET:
            asked = [*following, asked[-1]]
        stops = {"terminated"} if self.way in IGNORED else {"terminated", "truncated"}
        over = {"terminated", "truncated"} if self.way == "flags_merged" else {"terminated"}
        unseen = last if self.way == "nothing_after_last" else None
        return {
            "values": self.values,
            "asked": asked,
            "counted": [end not in over and t != unseen for t, end in enumerate(self.ends)],
            "goes": [end not in stops and t < last for t, end in enumerate(self.ends)],
            "td_errors": self._advantages(self.way_name, 0.0),
            "advantages": self.advantages,
            "right": self.right,
            "wrong": [
                abs(one - other) > ROUNDING
                for one, other in zip(self.advantages, self.right, strict=True)
            ],
        }

    def sentence(self) -> str:
        """Say which way it is, what it gives, and where that is wrong."""
        found = self.numbers()
        rows = [
            self._say("wrong_row", row=t, right=written(self.right[t], 3))
            for t, wrong in enumerate(found["wrong"])
            if wrong
        ]
        verdict = self._say("wrong", rows=", ".join(rows)) if rows else self._say("all_right")
        return self._say(
            "sentence",
            way=self._say(f"way_{self.way}"),
            belief=self._say(f"belief_{self.way}"),
            advantages=", ".join(written(each, 3) for each in self.advantages),
            verdict=verdict,
        )

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        found = self.numbers()
        names = ("state", "end", "future", "goes", "error", "advantage", "right")
        return end_kinds_figure(
            REWARDS,
            self.values,
            self.next_values,
            ends=[None if end == "continue" else self._say(f"end_{end}") for end in self.ends],
            asked=found["asked"],
            counted=found["counted"],
            goes=found["goes"],
            td_errors=found["td_errors"],
            advantages=self.advantages,
            right=self.right,
            gamma=self.gamma,
            title=f"{self._say(f'way_{self.way}')}: {self._say(f'belief_{self.way}')}",
            names=[self._say(f"line_{name}") for name in names],
        )
