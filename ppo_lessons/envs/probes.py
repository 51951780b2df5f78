"""Five environments so small that the right answer is known before training.

Each asks one question of a learner, and each needs one part more than the one before. The first
that fails names the part that is broken.

    constant_reward        can the critic learn a number?
    reward_by_observation  ... from the observation?
    two_step_discount      ... backwards through time?
    reward_by_action       can the policy prefer an action?
    both                   ... depending on the observation?
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Int
from torch import Tensor

from ppo_lessons.envs.protocol import EnvStep


@dataclass(frozen=True)
class ProbeRule:
    """How a probe behaves, and what must be learned there.

    Attributes:
        question: what it asks of the learner.
        starts: the observations with which an episode may begin, equally likely.
        length: steps per episode; a step adds 1 to the observation.
        reward: the reward of a step, from observation and action.
        values: V of the best policy at each observation, as a function of gamma.
        actions: the best action at each observation; empty where actions do not matter.
    """

    question: str
    starts: tuple[float, ...]
    length: int
    reward: Callable[[Tensor, Tensor], Tensor]
    values: dict[float, Callable[[float], float]]
    actions: dict[float, int]


def _matches_sign(observations: Tensor, actions: Tensor) -> Tensor:
    return torch.where((observations > 0) == (actions == 1), 1.0, -1.0).to(observations.dtype)


PROBES: dict[str, ProbeRule] = {
    "constant_reward": ProbeRule(
        question="Can the critic learn a number?",
        starts=(0.0,),
        length=1,
        reward=lambda observations, actions: torch.ones_like(observations),
        values={0.0: lambda gamma: 1.0},
        actions={},
    ),
    "reward_by_observation": ProbeRule(
        question="Can the critic tell observations apart?",
        starts=(-1.0, 1.0),
        length=1,
        reward=lambda observations, actions: observations.clone(),
        values={-1.0: lambda gamma: -1.0, 1.0: lambda gamma: 1.0},
        actions={},
    ),
    "two_step_discount": ProbeRule(
        question="Does a later reward reach the step before it, discounted once?",
        starts=(0.0,),
        length=2,
        reward=lambda observations, actions: (observations == 1.0).float(),
        values={0.0: lambda gamma: gamma, 1.0: lambda gamma: 1.0},
        actions={},
    ),
    "reward_by_action": ProbeRule(
        question="Can the policy learn to prefer an action?",
        starts=(0.0,),
        length=1,
        reward=lambda observations, actions: torch.where(actions == 1, 1.0, -1.0).to(
            observations.dtype
        ),
        values={0.0: lambda gamma: 1.0},
        actions={0.0: 1},
    ),
    "both": ProbeRule(
        question="Can the policy choose by what it observes?",
        starts=(-1.0, 1.0),
        length=1,
        reward=_matches_sign,
        values={-1.0: lambda gamma: 1.0, 1.0: lambda gamma: 1.0},
        actions={-1.0: 0, 1.0: 1},
    ),
}


class Probe:
    """N copies of a probe, as `Envs`. Episodes end by termination; resets happen in the same step.

    Args:
        name: one of `PROBES`.
        num_envs: N, at least 1.

    Raises:
        ValueError: if there is no such probe, or N is below 1.
    """

    def __init__(self, name: str, num_envs: int):
        if name not in PROBES:
            raise ValueError(f"name is {name!r}; expected one of {', '.join(PROBES)}. Choose one.")
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1. Choose num_envs=8.")
        self.name = name
        self.rule = PROBES[name]
        self.num_envs = num_envs
        self.single_observation_space = Box(-np.inf, np.inf, (1,), np.float32)
        self.single_action_space = Discrete(2)
        self.device = torch.device("cpu")
        self._generator = torch.Generator()
        self._starts = torch.tensor(self.rule.starts, dtype=torch.float32)
        self._elapsed = torch.zeros(num_envs, dtype=torch.int64)
        self._observations = torch.zeros(num_envs, dtype=torch.float32)

    def reset(self, seed: int) -> Float[Tensor, "N 1"]:
        """Start every copy afresh."""
        self._generator.manual_seed(seed)
        self._elapsed.zero_()
        self._observations = self._draw_starts()
        return self._observations.unsqueeze(-1).clone()

    def step(self, actions: Int[Tensor, " N"]) -> EnvStep:
        """Take one action in each copy."""
        rewards = self.rule.reward(self._observations, actions)
        reached = self._observations + 1
        self._elapsed += 1
        terminated = self._elapsed == self.rule.length
        self._elapsed[terminated] = 0
        self._observations = torch.where(terminated, self._draw_starts(), reached)
        return EnvStep(
            observations=self._observations.unsqueeze(-1).clone(),
            next_observations=reached.unsqueeze(-1),
            rewards=rewards,
            terminated=terminated,
            truncated=torch.zeros_like(terminated),
            valid=torch.ones_like(terminated),
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly here."""
        return {
            "probe": self.name,
            "generator": self._generator.get_state(),
            "elapsed": self._elapsed.clone(),
            "observations": self._observations.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: if the state is that of another probe, or of another number of copies.
        """
        saved = state.get("probe"), len(state.get("elapsed", []))
        if saved != (self.name, self.num_envs):
            raise ValueError(
                f"the saved state is that of {saved[1]} environments ({saved[0]}); expected that "
                f"of {self.num_envs} environments ({self.name}). Make the same environments as in "
                "the saved run."
            )
        self._generator.set_state(state["generator"])
        self._elapsed = state["elapsed"].clone()
        self._observations = state["observations"].clone()

    def _draw_starts(self) -> Float[Tensor, " N"]:
        size = (self.num_envs,)
        return self._starts[torch.randint(len(self._starts), size, generator=self._generator)]
