"""What the loop needs of an environment: N copies that step together and reset themselves."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from gymnasium import Space
from jaxtyping import Bool, Float, Shaped
from torch import Tensor


class EnvStep(NamedTuple):
    """What one step of N environments gives back.

    Attributes:
        observations: on which the next actions are to be chosen (after a reset where one happened).
        next_observations: the states that the step reached, before any reset.
        rewards: what the step earned (reward).
        terminated: a final state was reached.
        truncated: the episode was cut by a limit outside the task.
        valid: false where this was no real step.
    """

    observations: Shaped[Tensor, " N *observation"]
    next_observations: Shaped[Tensor, " N *observation"]
    rewards: Float[Tensor, " N"]
    terminated: Bool[Tensor, " N"]
    truncated: Bool[Tensor, " N"]
    valid: Bool[Tensor, " N"]


@runtime_checkable
class Envs(Protocol):
    """N environments that step together and start a new episode by themselves.

    Attributes:
        num_envs: N.
        single_observation_space: the space of one environment's observation.
        single_action_space: the space of one environment's action.
        device: where observations and flags live.
    """

    num_envs: int
    single_observation_space: Space[Any]
    single_action_space: Space[Any]
    device: torch.device

    def reset(self, seed: int) -> Shaped[Tensor, " N *observation"]:
        """Start every environment afresh; the same seed gives the same episodes."""
        ...

    def step(self, actions: Shaped[Tensor, " N *action"]) -> EnvStep:
        """Take one action in each environment."""
        ...

    def state_dict(self) -> dict[str, Any] | None:
        """All that is needed to go on exactly here, or None if that cannot be saved."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        ...
