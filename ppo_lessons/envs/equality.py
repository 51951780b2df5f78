"""Does a batched task agree with gymnasium's environment? One step at a time, from the same state.

Whole episodes cannot be compared: a rounding error in the last digit doubles many times before a
pole falls. So each step begins from the batched task's state, on both sides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Generator, Tensor

from ppo_lessons.envs.batched import BatchedEnvs, State, Task


@dataclass(frozen=True)
class Differences:
    """How far two environments were apart.

    Args:
        steps: how many single steps were compared.
        observations: largest difference of what was observed.
        rewards: largest difference of a reward.
        flags: steps with another `terminated`.
    """

    steps: int
    observations: float
    rewards: float
    flags: int


def compare_steps(
    task: Task,
    env: gymnasium.Env[Any, Any],
    put: Callable[[Any, dict[str, Any]], None],
    seen: Callable[[Any], np.ndarray],
    *,
    steps: int,
    num_envs: int = 64,
    seed: int = 0,
) -> Differences:
    """Play at random and compare each step with gymnasium's, from the same state.

    Args:
        task: the batched task.
        env: gymnasium's environment, unwrapped: no time limit around it.
        put: `put(env, state)` sets its state to that of one copy, a dict of numbers.
        seen: `seen(env)` gives what is observed of its state, in float64.
        steps: single steps to compare, at least.
        num_envs: copies of the task that are played.
        seed: of the states and the actions.

    Returns:
        The largest differences.
    """
    env.reset(seed=seed)
    batched = BatchedEnvs(task, num_envs, dtype=torch.float64)
    batched.reset(seed)
    generator = Generator().manual_seed(seed)
    count, observations, rewards, flags = 0, 0.0, 0.0, 0
    while count < steps:
        before = {name: tensor.clone() for name, tensor in batched.state_dict()["state"].items()}
        actions = random_actions(task, num_envs, generator)
        # the rules themselves: `BatchedEnvs` would cut the actions first
        state, earned, terminated = task.advance(before, actions, generator=generator)
        observed = task.observe(state).double()
        batched.step(actions)
        for n in range(num_envs):
            put(env, one_of(before, n))
            action = actions[n].item() if actions.ndim == 1 else actions[n].numpy()
            _, reward, final, _, _ = env.step(action)
            apart = np.abs(observed[n].numpy() - seen(env)).max()
            observations = max(observations, float(apart))
            rewards = max(rewards, abs(earned[n].item() - float(reward)))
            flags += bool(final) != bool(terminated[n])
        count += num_envs
    return Differences(count, observations, rewards, flags)


def one_of(state: State, n: int) -> dict[str, Any]:
    """Take one copy out of a state, as numbers, or arrays where an entry has more axes."""
    return {
        name: tensor[n].item() if tensor.ndim == 1 else tensor[n].numpy()
        for name, tensor in state.items()
    }


def random_actions(task: Task, num_envs: int, generator: Generator) -> Tensor:
    """Draw actions; real ones up to half beyond their limits, where they are cut."""
    space = task.action_space
    if isinstance(space, Discrete):
        return torch.randint(int(space.n), (num_envs,), generator=generator)
    shape = (num_envs, *space.shape)  # pyright: ignore[reportOptionalIterable]
    high = torch.as_tensor(np.asarray(space.high), dtype=torch.float64)  # type: ignore[attr-defined]
    return 1.5 * high * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
