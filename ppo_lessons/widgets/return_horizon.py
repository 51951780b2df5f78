"""How far does the discount let you see? Twelve rewards of one episode, and what counts of them.

The rewards, γ and the step from which they are seen are traits. A reward k steps later counts γᵏ.
"""

from typing import Any

import torch

from ppo_lessons.figures.return_horizon import return_horizon_figure
from ppo_lessons.reinforce import rewards_to_go
from ppo_lessons.widgets.base import Drag, TeachingWidget
from ppo_lessons.widgets.messages import say, written
from ppo_lessons.widgets.traits import Number, Numbers, Whole

LARGEST_REWARD = 2.0
# Eleven steps cost 0.1 each, the last one pays 2: worth it in sum, and not at γ = 0.9.
LATE = (-0.1,) * 11 + (2.0,)
NUM_STEPS = len(LATE)
LARGEST_RETURN = NUM_STEPS * LARGEST_REWARD


def _start(**changes: Any) -> dict[str, Any]:
    state = {"rewards": list(LATE), "gamma": 0.9, "step": 0, "guess": None, "revealed": True}
    return state | changes


class ReturnHorizon(TeachingWidget):
    """Show what counts of the rewards of one episode, and let them be dragged.

        w = ReturnHorizon(keep_as="reinforce.first_return")
        w.rewards, w.gamma, w.rewards_to_go[0]

    Args:
        rewards: of twelve steps, from −2 to 2; the episode ends after the last.
        gamma: γ, from 0 to 1.
        step: from which step the rewards are seen.
        guess: G_0, as the reader said; None while there is no guess.
        revealed: whether the picture shows what counts.
        keep_as: the id under which the guess is kept as a prediction; "" keeps nothing.
    """

    NAME = "return_horizon"
    STATE = ("rewards", "gamma", "step", "guess", "revealed")
    STATES = {  # noqa: RUF012  (the base class says ClassVar)
        "guess": _start(revealed=False),
        "late_reward": _start(),
        "nearer": _start(step=6),
        "patient": _start(gamma=0.99),
        "short_sighted": _start(gamma=0.5),
        "undiscounted": _start(gamma=1.0),
        "constant": _start(rewards=[1.0] * NUM_STEPS),
    }
    DRAGS = (Drag("late_reward", ".ppo-handle", 0.05, 0.95, along="y", index=5, values=36),)

    rewards = Numbers(LATE, low=-LARGEST_REWARD, high=LARGEST_REWARD, step=0.1)
    gamma = Number(0.9, low=0, high=1, step=0.01)
    step = Whole(0, low=0, high=NUM_STEPS - 1)
    guess = Number(None, low=-LARGEST_RETURN, high=LARGEST_RETURN)

    @property
    def rewards_to_go(self) -> list[float]:
        """G_t of each step."""
        rewards = torch.tensor(self.rewards, dtype=torch.float64).unsqueeze(1)
        ended = torch.arange(NUM_STEPS).unsqueeze(1) == NUM_STEPS - 1
        return rewards_to_go(rewards, ended, gamma=self.gamma).flatten().tolist()

    @property
    def weights(self) -> list[float]:
        """What each step counts, seen from the chosen one: γᵏ, and 0 for what is past."""
        return [self.gamma ** (t - self.step) if t >= self.step else 0.0 for t in range(NUM_STEPS)]

    @property
    def horizon(self) -> float | None:
        """1 / (1 − γ), the sum of all weights of an endless episode; None if it has no end."""
        return 1 / (1 - self.gamma) if self.gamma < 1 else None

    @property
    def answer(self) -> float:
        """What the guess is compared with."""
        return self.rewards_to_go[0]

    def numbers(self) -> dict[str, Any]:
        """Compute what the script computes, too."""
        return {
            "rewards_to_go": self.rewards_to_go,
            "weights": self.weights,
            "horizon": self.horizon,
            "total": sum(self.rewards),
        }

    def sentence(self) -> str:
        """Say what the picture shows."""
        returns = self.rewards_to_go
        horizon = (
            say(self.NAME, "endless", language=self.language)
            if self.horizon is None
            else say(self.NAME, "steps", language=self.language, horizon=written(self.horizon, 1))
        )
        return say(
            self.NAME,
            "sentence" if self.step else "sentence_first",
            language=self.language,
            gamma=written(self.gamma, 2),
            horizon=horizon,
            step=self.step,
            weight=written(self.weights[-1], 3),
            value=written(returns[self.step], 4),
            first=written(returns[0], 4),
            total=written(sum(self.rewards), 4),
        )

    def figure(self) -> Any:
        """Draw the static twin; it reveals, since nobody can guess at a picture."""
        return return_horizon_figure(
            self.rewards,
            self.weights,
            self.rewards_to_go,
            step=self.step,
            horizon=self.horizon,
            title=say(self.NAME, "picture_title", language=self.language, step=self.step),
        )
