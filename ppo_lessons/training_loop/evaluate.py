"""How good is a policy? Whole episodes, without learning."""

import torch
from jaxtyping import Float
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
        envs: N environments; they are reset.
        seed: of the episodes and, unless greedy, of the actions.
        greedy: take the most likely action; otherwise draw one as in training.
        max_steps: give up after so many (steps).

    Returns:
        The undiscounted return of each episode (reward).

    Raises:
        ValueError: if an episode has not ended after max_steps.
    """
    generator = Generator(envs.device).manual_seed(seed)
    observations = envs.reset(seed)
    returns = torch.zeros(envs.num_envs, device=envs.device)
    playing = torch.ones(envs.num_envs, dtype=torch.bool, device=envs.device)
    for _ in range(max_steps):
        if greedy:
            actions = policy.greedy(observations)
        else:
            actions, _ = policy.sample(observations, generator)
        step = envs.step(actions)
        returns += step.rewards * playing
        playing &= ~(step.terminated | step.truncated)
        observations = step.observations
        if not playing.any():
            return returns
    raise ValueError(
        f"{int(playing.sum())} of {envs.num_envs} episodes had not ended after max_steps="
        f"{max_steps}; expected episodes that end. Give the environment a time limit."
    )
