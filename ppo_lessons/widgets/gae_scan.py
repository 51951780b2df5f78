"""How is GAE computed backwards? Six rows of one rollout, scanned from the last to the first.

Rewards, values and the ends are traits. What the critic says of a state that is the start of no row
(behind an end, behind the last row) stands in `reached`.
"""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from ppo_lessons.critic import td_errors
from ppo_lessons.figures.gae_scan import gae_scan_figure
from ppo_lessons.gae import compute_gae
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Choices, Number, Numbers, Whole

ENDS = ("continue", "terminated", "truncated")
NUM_ROWS = 6
LARGEST = 8.0
LARGEST_ADVANTAGE = 60.0  # six TD errors of at most 8 + 8 − 0 fade, and do not add up to more
# The critic says 1 + the steps since the reset, and the rollout begins in the middle of an episode.
REWARDS = (1.0, 1.0, 1.0, 1.0, 3.0, 1.0)
VALUES = (5.0, 6.0, 1.0, 2.0, 3.0, 1.0)
REACHED = (6.0, 7.0, 2.0, 3.0, 4.0, 2.0)
KINDS = ("continue", "truncated", "continue", "continue", "terminated", "continue")
Column = Float64[Tensor, "T 1"]
Flags = Bool[Tensor, "T 1"]


def _start(**changed: Any) -> dict[str, Any]:
    return {
        "rewards": list(REWARDS),
        "values": list(VALUES),
        "reached": list(REACHED),
        "ends": list(KINDS),
        "gamma": 0.9,
        "gae_lambda": 0.8,
        "step": NUM_ROWS,
        "guess": None,
        "revealed": True,
    } | changed


def _surprise(**changed: Any) -> dict[str, Any]:
    """Nothing is expected and nothing comes, up to the last step, which pays 4 and ends it."""
    nothing = [0.0] * NUM_ROWS
    facts = {"rewards": [*nothing[1:], 4.0], "values": nothing, "reached": nothing}
    return _start(**facts, ends=["continue"] * 5 + ["terminated"], **changed)


class GaeScan(TeachingWidget):
    """Show GAE as it is computed, from the last row to the first, and let the facts be dragged.

        w = GaeScan(keep_as="gae.row_zero")
        compute_gae(*w.facts(), gamma=w.gamma, gae_lambda=w.gae_lambda)[0]

    Args:
        rewards: of six steps, from −2 to 8.
        values: V(s_t) of the six rows, from 0 to 8.
        reached: V of the state that each step reached; used only where no row shows that state,
            so behind an end and behind the last row.
        ends: for each step "continue", "terminated" or "truncated".
        gamma: γ, from 0 to 1.
        gae_lambda: λ, from 0 to 1.
        step: how many rows the scan has done, from the last on.
        guess: advantage of row 0, as the reader said; None while there is no guess.
        revealed: whether row 0 is shown once the scan is there.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "gae_scan"
    STATE = (
        "rewards", "values", "reached", "ends", "gamma", "gae_lambda", "step", "guess", "revealed",
    )  # fmt: skip
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "worked_case": _start(),
        "at_the_limit": _start(step=NUM_ROWS - 1),
        "terminated": _start(ends=["continue", "terminated", *KINDS[2:]]),
        "one_surprise": _surprise(),
        "lambda_zero": _surprise(gae_lambda=0.0),
        "lambda_one": _surprise(gae_lambda=1.0),
    }
    PARTS = ("episode_ends", "gae_scan")
    DRAGS: ClassVar = (
        Drag("worked_case", ".ppo-handle", 0.05, 0.95, along="y", index=2, values=19),
    )

    rewards = Numbers(REWARDS, low=-2, high=LARGEST, step=0.5)
    values = Numbers(VALUES, low=0, high=LARGEST, step=0.5)
    reached = Numbers(REACHED, low=0, high=LARGEST, step=0.5)
    ends = Choices(KINDS, options=ENDS)
    gamma = Number(0.9, low=0, high=1, step=0.01)
    gae_lambda = Number(0.8, low=0, high=1, step=0.01)
    step = Whole(NUM_ROWS, low=0, high=NUM_ROWS)
    guess = Number(None, low=-LARGEST_ADVANTAGE, high=LARGEST_ADVANTAGE)

    @property
    def goes(self) -> list[bool]:
        """Whether the sum goes on from each row into the next."""
        return [end == "continue" and t < NUM_ROWS - 1 for t, end in enumerate(self.ends)]

    @property
    def next_values(self) -> list[float]:
        """V of the state that each step reached, before any reset."""
        return [self.values[t + 1] if goes else self.reached[t] for t, goes in enumerate(self.goes)]

    def facts(self) -> tuple[Column, Column, Column, Flags, Flags]:
        """Give rewards, values, next values, terminated, truncated, as `compute_gae` takes them."""
        numbers = (self.rewards, self.values, self.next_values)
        rewards, values, next_values = (
            torch.tensor(each, dtype=torch.float64).unsqueeze(1) for each in numbers
        )
        terminated, truncated = (
            torch.tensor([end == kind for end in self.ends]).unsqueeze(1) for kind in ENDS[1:]
        )
        return rewards, values, next_values, terminated, truncated

    @property
    def advantages(self) -> list[float]:
        """Â of each row."""
        settings = {"gamma": self.gamma, "gae_lambda": self.gae_lambda}
        return compute_gae(*self.facts(), **settings).flatten().tolist()

    @property
    def td_errors(self) -> list[float]:
        """δ of each row."""
        return td_errors(*self.facts()[:4], gamma=self.gamma).flatten().tolist()

    @property
    def answer(self) -> float:
        """What the guess is compared with: Â of row 0."""
        return self.advantages[0]

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "td_errors": self.td_errors,
            "advantages": self.advantages,
            "next_values": self.next_values,
            "counted": [end != "terminated" for end in self.ends],
            "goes": self.goes,
        }

    def sentence(self) -> str:
        """Say what the scan did last."""
        t = NUM_ROWS - self.step
        if self.step == 0:
            return self._say(
                "sentence_none", gamma=written(self.gamma, 2), weight=written(self.gae_lambda, 2)
            )
        error, advantage = self.td_errors[t], self.advantages[t]
        first = self._say(
            "td_over" if self.ends[t] == "terminated" else "td_future",
            row=t,
            reward=written(self.rewards[t], 1),
            value=written(self.values[t], 1),
            gamma=written(self.gamma, 2),
            future=written(self.next_values[t], 1),
            error=written(error, 3),
        )
        if self.goes[t]:
            second = self._say(
                "sum_goes",
                row=t,
                next=t + 1,
                error=_signed(error),
                carried=written(self.gamma * self.gae_lambda, 3),
                following=_signed(self.advantages[t + 1]),
                advantage=written(advantage, 3),
            )
        else:
            end = "last" if self.ends[t] == "continue" else self.ends[t]
            why = self._say(f"why_{end}")
            second = self._say("sum_cut", row=t, why=why, advantage=written(advantage, 3))
        return f"{first} {second}"

    def _say(self, key: str, **values: Any) -> str:
        return say(self.NAME, key, language=self.language, **values)

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return gae_scan_figure(
            self.rewards,
            self.values,
            [None if goes else v for goes, v in zip(self.goes, self.reached, strict=True)],
            ends=[self._say(f"end_{end}") for end in self.ends],
            counted=self.numbers()["counted"],
            goes=self.goes,
            td_errors=self.td_errors,
            advantages=self.advantages,
            step=self.step,
            names=[
                self._say(f"line_{name}")
                for name in ("end", "counted", "goes", "error", "advantage")
            ],
        )


def _signed(value: float) -> str:
    """Write a number that stands behind a sign."""
    return f"({written(value, 3)})" if value < 0 else written(value, 3)
