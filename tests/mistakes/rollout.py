"""Ways to write down what did not happen, and to value what was not reached."""

from dataclasses import replace

import numpy as np
import torch

from mistakes import new_catalogue
from ppo_lessons.envs import GymEnvs, make_envs
from ppo_lessons.rollout import collect_rollout

MISTAKES, breaks = new_catalogue()


@breaks("collect_rollout")
def stale_observations(envs, policy, carry, *, num_steps, generator, out=None):
    """Keeps views of one array that is overwritten: all rows end equal."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    array = rollout.observations[0].clone()
    kept = []
    for row in rollout.observations:
        array.copy_(row)
        kept.append(array)
    return replace(rollout, observations=torch.stack(kept)), carry


@breaks("collect_rollout")
def next_observations_after_the_reset(envs, policy, carry, *, num_steps, generator, out=None):
    """Where an episode ends, notes the first observation of the next one."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    following = torch.cat([rollout.observations[1:], carry.observations[None]])
    return replace(rollout, next_observations=following), carry


@breaks("collect_rollout")
def rewards_shifted_by_one(envs, policy, carry, *, num_steps, generator, out=None):
    """Books each reward to the action after the one that earned it."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    return replace(rollout, rewards=rollout.rewards.roll(1, dims=0)), carry


@breaks("collect_rollout")
def rows_of_the_reset_are_valid(envs, policy, carry, *, num_steps, generator, out=None):
    """Learns from the rows in which a NEXT_STEP environment only reset itself."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    return replace(rollout, valid=torch.ones_like(rollout.valid)), carry


@breaks("collect_rollout")
def actions_that_were_not_taken(envs, policy, carry, *, num_steps, generator, out=None):
    """Stores the most likely action, while the environment got the drawn one."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    return replace(rollout, actions=policy.greedy(rollout.observations)), carry


@breaks("score_values")
@torch.no_grad()
def next_values_from_the_next_row(critic, rollout):
    """Takes the next row's value even where that row is another episode."""
    values = critic(rollout.observations)
    last = critic(rollout.next_observations[-1])
    return values, torch.cat([values[1:], last[None]])


@breaks("score_values")
@torch.no_grad()
def next_values_never_beyond_the_rollout(critic, rollout):
    """Takes 0 for the value after the last row."""
    values = critic(rollout.observations)
    next_values = critic(rollout.next_observations)
    next_values[-1] = 0
    return values, next_values


class _OneSeed(GymEnvs):
    def reset(self, seed: int):
        observations, _ = self.envs.reset(seed=[seed] * self.num_envs)
        return torch.tensor(np.asarray(observations), dtype=torch.float32)


@breaks("make_envs")
def same_seed_everywhere(env, num_envs):
    """Gives every environment one seed: N copies of the same episodes."""
    return _OneSeed(make_envs(env, num_envs).envs)
