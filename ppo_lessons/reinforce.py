"""Lesson 01. How can a return push a probability?

    push = E[ Σ_t ∇log π(a_t | s_t) · G_t ]

Make the actions that were followed by much reward more likely. At γ = 1 the push is the gradient of
J. Below that it is the usual update, which forgets the weight γᵗ of later steps.
"""

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from ppo_lessons.envs import Envs
from ppo_lessons.networks import Policy
from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_has_steps,
    check_same_shape,
    check_unit_interval,
)
from ppo_lessons.types import Rollout


def rewards_to_go(
    rewards: Float[Tensor, "T N"], ended: Bool[Tensor, "T N"], *, gamma: float
) -> Float[Tensor, "T N"]:
    """Sum what came after each action, until its episode ended.

        G_t = Σ_{k ≥ 0} γᵏ·r_{t+k}     up to the end of the episode

    It needs complete episodes: a return that is not known yet cannot be summed.

    Args:
        rewards: r_t, earned by a_t (reward).
        ended: true at the last step of each episode.
        gamma: discount per step, in [0, 1].

    Returns:
        G_t (discounted reward).

    Raises:
        ValueError: if shapes differ, a reward is not finite, gamma leaves [0, 1], or an episode
            still runs at the last row.
        TypeError: if rewards are not floating-point or ended is not boolean.

    Source: Sutton & Barto 2018, eq. 3.8 (their R_{t+1} is our r_t).
    """
    check_same_shape(rewards=rewards, ended=ended)
    check_has_steps(rewards=rewards)
    check_floating(rewards=rewards)
    check_bool(ended=ended)
    check_finite(rewards=rewards)
    check_unit_interval(gamma=gamma)
    running = torch.nonzero(~ended[-1]).flatten().tolist()
    if running:
        raise ValueError(
            f"the episodes in columns {running} still run at the last row; expected complete "
            "episodes, since their returns are not known yet. Cut the rows after each last end, "
            "or use compute_gae, which puts the critic's estimate in place of what is missing."
        )
    returns = torch.empty_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):  # backwards: G_t needs G_{t+1}
        following = rewards[t] + gamma * following * ~ended[t]
        returns[t] = following
    return returns


def reinforce_loss(
    log_probs: Float[Tensor, "*batch"], weights: Float[Tensor, "*batch"]
) -> Float[Tensor, ""]:
    """Give a number whose gradient, with its sign turned, is the push on the policy per step.

        loss = −mean( log π(a | s) · weight )

    Its value says nothing about how good the policy is: only its gradient has a meaning.

    Args:
        log_probs: log π(a | s) of the actions taken, with gradient (nats).
        weights: how much each action is pushed: a return or an advantage (discounted reward). They
            are constants: no gradient flows through them.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ.

    Source: Williams 1992 (REINFORCE).
    """
    check_same_shape(log_probs=log_probs, weights=weights)
    return -(log_probs * weights.detach()).mean()


@torch.no_grad()
def play_episodes(
    envs: Envs, policy: Policy, *, generator: Generator, max_steps: int = 100_000
) -> Rollout:
    """Play one whole episode in each environment and write down what happened.

    One episode each, not the first N to finish: those would be the short ones. The rows go on
    until the longest ends. After its end an episode is padded: `valid` is false, `terminated`
    true, the reward 0, so that `rewards_to_go` may sum the columns as they are.

    Args:
        envs: N environments; they are reset.
        policy: has `sample(observations, generator) -> actions, log_probs`.
        generator: the only source of randomness, of the episodes as well as of the actions.
        max_steps: give up after so many (steps).

    Returns:
        The episodes side by side. On padded rows the observations and actions mean nothing.

    Raises:
        ValueError: if an episode has not ended after max_steps.
    """
    device = envs.device
    seed = torch.randint(2**31, (), generator=generator, device=generator.device)
    observations, rows = envs.reset(int(seed)), []
    running = torch.ones(envs.num_envs, dtype=torch.bool, device=device)
    returns = torch.zeros(envs.num_envs, device=device)
    lengths = torch.zeros(envs.num_envs, dtype=torch.int64, device=device)
    for _ in range(max_steps):
        actions, log_probs = policy.sample(observations, generator)
        step = envs.step(actions)
        valid = running & step.valid
        returns, lengths = returns + step.rewards * valid, lengths + valid
        rows.append(
            {
                "observations": observations,
                "next_observations": step.next_observations,
                "actions": actions,
                "rewards": step.rewards * valid,
                "terminated": step.terminated | ~running,
                "truncated": step.truncated & running,
                "log_probs_old": log_probs,
                "valid": valid,
                "episode_returns": returns,
                "episode_lengths": lengths,
            }
        )
        running = running & ~(step.terminated | step.truncated)
        if not running.any():
            return Rollout(**{name: torch.stack([row[name] for row in rows]) for name in rows[0]})
        observations = step.observations
    raise ValueError(
        f"{int(running.sum())} of {envs.num_envs} episodes had not ended after max_steps="
        f"{max_steps}; expected episodes that end. Give the environment a time limit."
    )
