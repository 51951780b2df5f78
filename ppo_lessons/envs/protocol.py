"""What the loop needs of an environment: N copies that step together and reset themselves."""

import math
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
        unscaled_rewards: what the task itself paid, where `rewards` are scaled; else None.
    """

    observations: Shaped[Tensor, " N *observation"]
    next_observations: Shaped[Tensor, " N *observation"]
    rewards: Float[Tensor, " N"]
    terminated: Bool[Tensor, " N"]
    truncated: Bool[Tensor, " N"]
    valid: Bool[Tensor, " N"]
    unscaled_rewards: Float[Tensor, " N"] | None = None

    @property
    def paid(self) -> Float[Tensor, " N"]:
        """What the task itself paid (reward): what an episode's return adds up."""
        return self.rewards if self.unscaled_rewards is None else self.unscaled_rewards


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


def check_numbers(step_of: str, *, rewards: Tensor | None = None, observations: Tensor) -> None:
    """Require finite rewards and observations, on the CPU.

    Args:
        step_of: the name of the environments.
        rewards: of one step, or None after a reset.
        observations: of N environments.

    Raises:
        ValueError: with the first environment that gave NaN or an infinite number.
    """
    for tensor, gave in ((rewards, "the reward"), (observations, "an observation with")):
        # A sum of finite numbers is finite: one look, and a closer one only if it is not.
        if tensor is None or math.isfinite(tensor.sum().item()) or tensor.isfinite().all():
            continue
        place = tuple((~tensor.isfinite()).nonzero()[0].tolist())
        kind = "reward function" if tensor is rewards else "observation"
        raise ValueError(
            f"environment {place[0]} of {step_of} gave {gave} {tensor[place].item()}; expected "
            f"finite numbers. Look at the environment's {kind} for that step."
        )
