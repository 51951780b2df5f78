"""N copies of a task as one tensor program, on any device: `BatchedEnvs(CartPole(), 1024)`.

A `Task` is three pure functions: how an episode starts, what an action does, what is seen. All
copies go through them at once, and no copy waits for another. What ends is started anew within the
same step, and what it had reached is kept.

To write a task of your own, write these three functions with tensors of N rows, and `torch.where`
for every `if`. If gymnasium has the task too, `ppo_lessons.envs.equality.compare_steps` tells
whether the two agree.
"""

from typing import Any, Protocol, runtime_checkable

import torch
from gymnasium import Space
from jaxtyping import Bool, Float, Shaped
from torch import Generator, Tensor

from ppo_lessons.envs.actions import box_limits, check_action_values, check_actions, cut
from ppo_lessons.envs.protocol import EnvStep, check_numbers

State = dict[str, Tensor]  # each entry has N rows


@runtime_checkable
class Task(Protocol):
    """The rules of an environment, for N copies at once.

    Attributes:
        observation_space: of one copy.
        action_space: of one copy.
        time_limit: steps after which an episode is cut (truncated).
    """

    observation_space: Space[Any]
    action_space: Space[Any]
    time_limit: int

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Draw N first states on the generator's device."""
        ...

    def advance(
        self, state: State, actions: Shaped[Tensor, " N *action"], *, generator: Generator
    ) -> tuple[State, Float[Tensor, " N"], Bool[Tensor, " N"]]:
        """Give the state that is reached, what the step earned, and whether it is final."""
        ...

    def observe(self, state: State) -> Shaped[Tensor, " N *observation"]:
        """Give what is seen of a state."""
        ...


class BatchedEnvs:
    """N copies of a task that step together and start anew within the same step.

    Real actions that lie outside the task's box are cut to it.

    Attributes:
        checks_values: whether each step looks at the numbers that go in and come out: on the CPU
            only, since an accelerator would have to be waited for.

    Args:
        task: the rules.
        num_envs: N, at least 1.
        device: where states live; "cuda" if a GPU is to do the work.
        dtype: of states and of observations that are real numbers.

    Raises:
        ValueError: if N is below 1, or the device is not there or does not know the dtype.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int,
        *,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1. Choose num_envs=64.")
        self.task = task
        self.num_envs = num_envs
        self.device = checked_device(device)
        self.dtype = checked_dtype(dtype, self.device)
        self.checks_values = self.device.type == "cpu"
        self.single_observation_space = task.observation_space
        self.single_action_space = task.action_space
        self._limits = box_limits(task.action_space, self.device)
        self._begins = True
        self._generator = Generator(self.device)
        self._state: State = {}
        self._elapsed = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self._valid = torch.ones(num_envs, dtype=torch.bool, device=self.device)

    def reset(self, seed: int) -> Shaped[Tensor, " N *observation"]:
        """Start every copy afresh; the same seed gives the same episodes on the same device."""
        self._begins = True
        self._generator.manual_seed(seed)
        self._state = self._fresh()
        self._elapsed = torch.zeros_like(self._elapsed)
        return self.task.observe(self._state)

    def step(self, actions: Shaped[Tensor, " N *action"]) -> EnvStep:
        """Take one action in each copy.

        Raises:
            ValueError: before the first reset; if the actions do not fit the action space; on the
                CPU, if an action, a reward or an observation is not finite.
        """
        if not self._state:
            raise ValueError("there is no state yet; expected reset(seed) before the first step.")
        check_actions(actions, self.single_action_space, self.num_envs)
        # counted actions once: no policy's number of actions grows while it plays
        if self.checks_values and (self._limits is not None or self._begins):
            check_action_values(actions, self.single_action_space)
        self._begins = False
        state, rewards, terminated = self.task.advance(
            self._state, cut(actions, self._limits), generator=self._generator
        )
        elapsed = self._elapsed + 1
        truncated = elapsed >= self.task.time_limit
        reached = self.task.observe(state)
        if self.checks_values:
            check_numbers(type(self.task).__name__, rewards=rewards, observations=reached)
        ended = terminated | truncated
        observations = reached
        # An accelerator would have to be waited for before it could be asked.
        if not self.checks_values or ended.any():
            state = where(ended, self._fresh(), state)
            elapsed = elapsed.masked_fill(ended, 0)
            observations = self.task.observe(state)
        self._state, self._elapsed = state, elapsed
        return EnvStep(observations, reached, rewards, terminated, truncated, self._valid)

    def state_dict(self) -> dict[str, Any]:
        """Save states, clocks and the generator."""
        return {
            "task": type(self.task).__name__,
            "num_envs": self.num_envs,
            "state": {name: tensor.clone() for name, tensor in self._state.items()},
            "elapsed": self._elapsed.clone(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: if the state is that of another task or another number of copies.
        """
        saved = state.get("task"), state.get("num_envs")
        own = type(self.task).__name__, self.num_envs
        if saved != own:
            raise ValueError(
                f"the saved state is that of {saved[1]} copies of {saved[0]}; expected that of "
                f"{own[1]} copies of {own[0]}. Make the same environments as in the saved run."
            )
        self._state = {name: tensor.to(self.device) for name, tensor in state["state"].items()}
        self._elapsed = state["elapsed"].to(self.device)
        self._generator.set_state(state["generator"].cpu())

    def _fresh(self) -> State:
        return self.task.start(self.num_envs, generator=self._generator, dtype=self.dtype)


def where(choice: Bool[Tensor, " N"], one: State, other: State) -> State:
    """Choose whole rows: those of `one` where the choice is true, else those of `other`."""
    return {
        name: torch.where(choice.reshape(-1, *[1] * (one[name].ndim - 1)), one[name], other[name])
        for name in one
    }


def uniform(
    num_envs: int,
    low: int | float,
    high: int | float,
    *,
    size: int,
    generator: Generator,
    dtype: torch.dtype,
) -> Float[Tensor, "size N"]:
    """Draw `size` numbers for each of N copies, between low and high, one row for each number."""
    drawn = torch.rand(size, num_envs, generator=generator, dtype=dtype, device=generator.device)
    return low + (high - low) * drawn


def checked_device(device: str | torch.device) -> torch.device:
    """Give a device that is there.

    Raises:
        ValueError: if it is unknown or not there.
    """
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device is {device!r}, which cannot be used here ({reason}); expected a device that "
            "torch finds. Choose 'cpu', or 'cuda' where torch.cuda.is_available()."
        ) from None
    return found


def checked_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Give a dtype that the device has.

    Raises:
        ValueError: for float64 on Apple's GPUs.
    """
    if device.type == "mps" and dtype == torch.float64:
        raise ValueError(
            "dtype is torch.float64 on device 'mps', which has no such numbers; expected "
            "torch.float32. Leave dtype away, or choose device='cpu'."
        )
    return dtype
