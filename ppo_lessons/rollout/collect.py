"""Collect: the policy acts, and what happened is written down."""

import torch
from jaxtyping import Shaped
from torch import Generator, Tensor

from ppo_lessons.envs.protocol import Envs, EnvStep
from ppo_lessons.networks import Policy
from ppo_lessons.shapes import check_bool, check_same_shape
from ppo_lessons.types import Carry, Rollout


def start_carry(envs: Envs, *, seed: int) -> Carry:
    """Reset the environments and begin to count.

    Args:
        envs: the environments.
        seed: the same seed gives the same episodes.

    Returns:
        What the first rollout starts from.
    """
    return Carry(
        observations=envs.reset(seed),
        episode_returns=torch.zeros(envs.num_envs, dtype=torch.float32, device=envs.device),
        episode_lengths=torch.zeros(envs.num_envs, dtype=torch.int64, device=envs.device),
    )


def empty_rollout(
    observations: Shaped[Tensor, " N *observation"],
    actions: Shaped[Tensor, " N *action"],
    *,
    num_steps: int,
) -> Rollout:
    """Allocate a rollout once, so that collecting fills it instead of growing lists.

    Observations and actions keep the dtype in which they come: a board of true and false takes one
    byte a square.

    Args:
        observations: one per environment, for N, shape, dtype and device.
        actions: one per environment, for shape and dtype.
        num_steps: T, at least 1 (steps).

    Returns:
        A rollout whose contents mean nothing yet.

    Raises:
        ValueError: if T is below 1.
    """
    if num_steps < 1:
        raise ValueError(f"num_steps is {num_steps}; expected at least 1. Choose num_steps=64.")
    rows = (num_steps, len(observations))

    def allocate(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(*rows, *shape, dtype=dtype, device=observations.device)

    return Rollout(
        observations=allocate(*observations.shape[1:], dtype=observations.dtype),
        next_observations=allocate(*observations.shape[1:], dtype=observations.dtype),
        actions=allocate(*actions.shape[1:], dtype=actions.dtype),
        rewards=allocate(),
        terminated=allocate(dtype=torch.bool),
        truncated=allocate(dtype=torch.bool),
        log_probs_old=allocate(),
        valid=allocate(dtype=torch.bool),
        episode_returns=allocate(),
        episode_lengths=allocate(dtype=torch.int64),
    )


@torch.no_grad()
def collect_rollout(
    envs: Envs,
    policy: Policy,
    carry: Carry,
    *,
    num_steps: int,
    generator: Generator,
    out: Rollout | None = None,
) -> tuple[Rollout, Carry]:
    """Let the policy act for T steps in N environments and write down what happened.

    Args:
        envs: the environments; they start new episodes by themselves.
        policy: has `sample(observations, generator) -> actions, log_probs`.
        carry: where the last rollout ended, or `start_carry(envs, seed=...)`.
        num_steps: T, at least 1 (steps).
        generator: the only source of randomness.
        out: a rollout to overwrite, to save memory; a new one if left out.

    Returns:
        The rollout, and what the next one starts from.

    Raises:
        ValueError: if T is below 1, or `out` has another number of steps.
    """
    if out is not None and len(out.rewards) != num_steps:
        raise ValueError(
            f"out holds {len(out.rewards)} steps; expected num_steps={num_steps}. Leave out= away, "
            "or pass the rollout of an earlier call with the same num_steps."
        )
    rollout = out
    observations = carry.observations
    returns, lengths = carry.episode_returns, carry.episode_lengths
    for t in range(num_steps):
        actions, log_probs = policy.sample(observations, generator)
        if rollout is None:
            rollout = empty_rollout(observations, actions, num_steps=num_steps)
        step = envs.step(actions)
        if t == 0:
            check_step(step, envs)
        returns = returns + step.paid * step.valid
        lengths = lengths + step.valid
        rollout.write(
            t,
            observations=observations,
            next_observations=step.next_observations,
            actions=actions,
            rewards=step.rewards,
            terminated=step.terminated,
            truncated=step.truncated,
            log_probs_old=log_probs,
            valid=step.valid,
            episode_returns=returns,
            episode_lengths=lengths,
        )
        running = ~(step.terminated | step.truncated)
        returns, lengths = returns * running, lengths * running
        observations = step.observations
    if rollout is None:
        raise ValueError(f"num_steps is {num_steps}; expected at least 1. Choose num_steps=64.")
    return rollout, Carry(observations, returns, lengths)


def check_step(step: EnvStep, envs: Envs) -> None:
    """Require of the first step what holds for all: flags are bool, and everything is [N].

    Args:
        step: what the environments gave back.
        envs: the environments, for N.

    Raises:
        TypeError: if a flag is not bool.
        ValueError: if a shape is not that of N environments.
    """
    expected = torch.empty(envs.num_envs)
    flags = {name: getattr(step, name) for name in ("terminated", "truncated", "valid")}
    check_bool(**flags)
    check_same_shape(num_envs=expected, rewards=step.rewards, **flags)
    check_same_shape(observations=step.observations, next_observations=step.next_observations)
