"""How good is a policy? Whole episodes, without learning."""

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor

from ppo_lessons.envs import Envs
from ppo_lessons.networks import Policy


@torch.no_grad()
def evaluate(
    policy: Policy,
    envs: Envs,
    *,
    seed: int,
    greedy: bool = True,
    max_steps: int = 100_000,
) -> Float[Tensor, " N"]:
    """Play one whole episode in each environment.

    One episode each, not the first N to finish: those would be the short ones.

    Args:
        policy: has `greedy(observations)` and `sample(observations, generator)`.
        envs: N environments; they are reset. A policy that learned in `NormalizedEnvs` is tested
            in `envs.frozen(others)`, so that it sees what it has learned to read.
        seed: of the episodes and, unless greedy, of the actions.
        greedy: take the most likely action; otherwise draw one as in training.
        max_steps: give up after so many (steps).

    Returns:
        The undiscounted return of each episode, in the task's own unit (reward).

    Raises:
        ValueError: if an episode has not ended after max_steps.
    """
    generator = Generator(envs.device).manual_seed(seed)
    observations = envs.reset(seed)
    returns = torch.zeros(envs.num_envs, device=envs.device)
    playing = torch.ones(envs.num_envs, dtype=torch.bool, device=envs.device)
    for _ in range(max_steps):
        step = envs.step(choose(policy, observations, greedy=greedy, generator=generator))
        returns += step.paid * playing
        playing &= ~(step.terminated | step.truncated)
        observations = step.observations
        if not playing.any():
            return returns
    raise ValueError(
        f"{int(playing.sum())} of {envs.num_envs} episodes had not ended after max_steps="
        f"{max_steps}; expected episodes that end. Give the environment a time limit."
    )


@torch.no_grad()
def record_episode(
    policy: Policy, envs: Envs, *, seed: int, greedy: bool = True, max_steps: int = 100_000
) -> Shaped[Tensor, " steps *observation"]:
    """Play one episode in the first environment and keep what was observed.

    Args:
        policy: as for `evaluate`.
        envs: the environments; they are reset.
        seed: of the episode and, unless greedy, of the actions.
        greedy: take the most likely action; otherwise draw one as in training.
        max_steps: stop looking after so many (steps).

    Returns:
        The observations on which the actions were chosen, in order.
    """
    generator = Generator(envs.device).manual_seed(seed)
    observations, seen = envs.reset(seed), []
    for _ in range(max_steps):
        seen.append(observations[0])
        step = envs.step(choose(policy, observations, greedy=greedy, generator=generator))
        if step.terminated[0] or step.truncated[0]:
            break
        observations = step.observations
    return torch.stack(seen)


def choose(
    policy: Policy, observations: Tensor, *, greedy: bool, generator: Generator
) -> Shaped[Tensor, " N *action"]:
    """The most likely actions, or drawn ones."""
    if greedy:
        return policy.greedy(observations)
    return policy.sample(observations, generator)[0]
