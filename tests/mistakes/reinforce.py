"""Classic mistakes around the return and the REINFORCE loss."""

from dataclasses import replace

import torch

from mistakes import new_catalogue
from ppo_lessons import reinforce

MISTAKES, breaks = new_catalogue()


def accumulate(rewards, gamma, stopped):
    """The backward sum with stops of one's own."""
    returns, following = torch.empty_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * following.masked_fill(stopped[t], 0)
        returns[t] = following
    return returns


def refuse_running(ended):
    if not ended[-1].all():
        raise ValueError("an episode still runs at the last row")


@breaks("rewards_to_go")
def full_return(rewards, ended, *, gamma):
    """Gives every step its episode's whole return: rewards from before the action count too."""
    refuse_running(ended)
    returns = accumulate(rewards, gamma, ended)
    for t in range(1, len(rewards)):
        returns[t] = torch.where(ended[t - 1], returns[t], returns[t - 1])
    return returns


@breaks("rewards_to_go")
def rewards_so_far(rewards, ended, *, gamma):
    """Sums what came before the action instead of what came after it."""
    refuse_running(ended)
    returns = rewards.clone()
    for t in range(1, len(rewards)):
        returns[t] = rewards[t] + gamma * returns[t - 1].masked_fill(ended[t - 1], 0)
    return returns


@breaks("rewards_to_go")
def not_reset_at_an_end(rewards, ended, *, gamma):
    """Lets the sum run on into the next episode."""
    refuse_running(ended)
    return accumulate(rewards, gamma, torch.zeros_like(ended))


@breaks("rewards_to_go")
def discount_off_by_one(rewards, ended, *, gamma):
    """Discounts the reward that an action earns at once: γᵏ⁺¹ where γᵏ belongs."""
    refuse_running(ended)
    return gamma * accumulate(rewards, gamma, ended)


@breaks("rewards_to_go")
def discounted_from_the_start(rewards, ended, *, gamma):
    """Weights by γᵗ from the episode's start, so late actions hardly count."""
    refuse_running(ended)
    age = torch.zeros_like(rewards)
    for t in range(1, len(rewards)):
        age[t] = (age[t - 1] + 1) * ~ended[t - 1]
    return gamma**age * accumulate(rewards, gamma, ended)


@breaks("rewards_to_go")
def flag_late_by_one(rewards, ended, *, gamma):
    """Reads the flag of the row before: the first reward of the next episode leaks in."""
    refuse_running(ended)
    late = torch.cat([torch.zeros_like(ended[:1]), ended[:-1]])
    return accumulate(rewards, gamma, late)


@breaks("rewards_to_go")
def running_episodes_accepted(rewards, ended, *, gamma):
    """Sums what it has of an episode that still runs, as if nothing more would come."""
    return accumulate(rewards, gamma, ended)


@breaks("reinforce_loss")
def sign_turned(log_probs, weights):
    """Is an objective called a loss: minimising it makes good actions rare."""
    return (log_probs * weights.detach()).mean()


@breaks("reinforce_loss")
def sum_over_the_batch(log_probs, weights):
    """Sums: the step size grows with the batch."""
    return -(log_probs * weights.detach()).sum()


@breaks("reinforce_loss")
def gradient_through_the_weights(log_probs, weights):
    """Lets the gradient into the weights, so whatever computed them is trained as well."""
    return -(log_probs * weights).mean()


@breaks("reinforce_loss")
def probabilities_for_logarithms(log_probs, weights):
    """Pushes π and not log π: rare actions, however good, get almost no push."""
    return -(log_probs.exp() * weights.detach()).mean()


@breaks("reinforce_loss")
def squared(log_probs, weights):
    """Treats the loss as an error to be brought to 0; its sign is lost."""
    return ((log_probs * weights.detach()).mean()) ** 2


@breaks("reinforce_loss")
def means_multiplied(log_probs, weights):
    """Averages before multiplying: no action knows its own weight any more."""
    return -log_probs.mean() * weights.detach().mean()


def until(envs, policy, generator, max_steps, *, stop):
    """Play until `stop` says so; with the flags as they came, and no padding."""
    whole = reinforce.play_episodes(envs, policy, generator=generator, max_steps=max_steps)
    rows = int(stop(whole.valid.sum(0)))
    names = whole.__dataclass_fields__
    return whole.__class__(**{name: getattr(whole, name)[:rows] for name in names})


@breaks("play_episodes")
def stops_with_the_first(envs, policy, *, generator, max_steps=100_000):
    """Stops when the first episode ends: long ones are cut, so only short ones count."""
    return until(envs, policy, generator, max_steps, stop=torch.min)


@breaks("play_episodes")
def padding_counts_as_steps(envs, policy, *, generator, max_steps=100_000):
    """Calls every row a step: the loss learns from what came after the end."""
    episodes = reinforce.play_episodes(envs, policy, generator=generator, max_steps=max_steps)
    return replace(episodes, valid=torch.ones_like(episodes.valid))


@breaks("play_episodes")
def padding_still_runs(envs, policy, *, generator, max_steps=100_000):
    """Leaves the flags of padded rows open, so returns run on after the end."""
    episodes = reinforce.play_episodes(envs, policy, generator=generator, max_steps=max_steps)
    return replace(episodes, terminated=episodes.terminated & episodes.valid)


@breaks("play_episodes")
def ends_merged(envs, policy, *, generator, max_steps=100_000):
    """Calls a time limit the end of the task."""
    episodes = reinforce.play_episodes(envs, policy, generator=generator, max_steps=max_steps)
    return replace(
        episodes, terminated=episodes.ended, truncated=torch.zeros_like(episodes.truncated)
    )


@breaks("play_episodes")
def next_observations_stored(envs, policy, *, generator, max_steps=100_000):
    """Stores what the action led to in place of what it was chosen on."""
    episodes = reinforce.play_episodes(envs, policy, generator=generator, max_steps=max_steps)
    return replace(episodes, observations=episodes.next_observations)
