"""Ways to write down what did not happen, and to value what was not reached."""

from dataclasses import replace

import numpy as np
import torch

from mistakes import new_catalogue
from ppo_lessons.envs import GymEnvs, Lighthouse, make_envs
from ppo_lessons.rollout import collect_rollout, fit_table

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


@breaks("collect_rollout")
def flags_in_the_row_after(envs, policy, carry, *, num_steps, generator, out=None):
    """Writes each flag beside the observation that follows it: one row too late."""
    rollout, carry = collect_rollout(
        envs, policy, carry, num_steps=num_steps, generator=generator, out=out
    )
    late = {name: getattr(rollout, name).roll(1, dims=0) for name in ("terminated", "truncated")}
    for flags in late.values():
        flags[0] = False
    return replace(rollout, **late), carry


@breaks("collect_rollout")
def rollouts_start_afresh(envs, policy, carry, *, num_steps, generator, out=None):
    """Resets at the start of each rollout: an episode longer than a rollout is never seen whole."""
    carry = replace(carry, observations=envs.reset(0))
    return collect_rollout(envs, policy, carry, num_steps=num_steps, generator=generator, out=out)


@breaks("score_values")
@torch.no_grad()
def next_values_of_the_state_before(critic, rollout):
    """At an end, takes the state in which the last action was chosen for the one it led to."""
    values = critic(rollout.observations)
    next_values = critic(rollout.next_observations)
    next_values[rollout.ended] = values[rollout.ended]
    return values, next_values


@breaks("fit_table")
def advantages_for_returns(rollout, entry_of, *, num_rounds, **settings):
    """Regresses on the advantages: forgets to add the values back."""
    table = fit_table(rollout, entry_of, num_rounds=1, **settings)
    return torch.cat([table, torch.zeros(num_rounds - 1, table.shape[1]).double()])


@breaks("fit_table")
def rows_of_the_reset_are_learned(rollout, entry_of, **settings):
    """Learns the row in which a NEXT_STEP environment only reset itself."""
    everything = replace(rollout, valid=torch.ones_like(rollout.valid))
    return fit_table(everything, entry_of, **settings)


@breaks("fit_table")
def one_value_for_all(rollout, entry_of, **settings):
    """Does not look at the state."""
    table = fit_table(rollout, torch.zeros_like(entry_of), **settings)
    return table.expand(-1, int(entry_of.max()) + 1)


@breaks("fit_table")
def ends_always_right(rollout, entry_of, *, advantages_of=None, **settings):
    """Does not use the function that it is given."""
    return fit_table(rollout, entry_of, **settings)


@breaks("fit_table")
def lambda_left_out(rollout, entry_of, *, gae_lambda, **settings):
    """Believes the table after every single step."""
    return fit_table(rollout, entry_of, gae_lambda=0.0, **settings)


@breaks("Lighthouse")
class OfferOnEveryFloor(Lighthouse):
    """Lets the keeper take the offer at the lamp as well."""

    def step(self, action):
        if action == 1:
            return self._observe(), self.offer, True, False, {}
        return super().step(action)


@breaks("Lighthouse")
class LampGoesOut(Lighthouse):
    """Ends by itself: then the lamp is not worth 1 / (1 − γ)."""

    def __init__(self, offer=7.0):
        super().__init__(offer)
        self.lit = 0

    def reset(self, *, seed=None, options=None):
        self.lit = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, terminated, truncated, extra = super().step(action)
        self.lit += int(reward)
        return observation, reward, terminated or self.lit == 6, truncated, extra
