"""Ways to turn a right loss into a wrong step."""

from dataclasses import fields, replace

import torch
from torch import nn

from mistakes import new_catalogue
from ppo_lessons.clip import clipped_surrogate
from ppo_lessons.gae import compute_gae
from ppo_lessons.networks import CategoricalPolicy, make_networks
from ppo_lessons.training_loop import update
from ppo_lessons.types import UpdateStats

MISTAKES, breaks = new_catalogue()


def epoch_by_epoch(change, networks, optimizer, batch, config, *, parts, generator):
    """K updates of one epoch, each on a batch that was changed by what the networks now say."""
    seen = []
    for _ in range(config.num_epochs):
        with torch.no_grad():
            batch = change(networks, batch)
        one = replace(config, num_epochs=1)
        seen.append(update(networks, optimizer, batch, one, parts=parts, generator=generator))
    return UpdateStats(
        **{f.name: torch.cat([getattr(part, f.name) for part in seen]) for f in fields(UpdateStats)}
    )


@breaks("update")
def old_log_probs_recomputed(networks, optimizer, batch, config, *, parts, generator):
    """Asks the new policy for the old log-probabilities: the ratio is 1 and the clip asleep."""

    def change(networks, batch):
        log_probs, _ = networks.policy.evaluate(batch.observations, batch.actions)
        return replace(batch, log_probs_old=log_probs)

    return epoch_by_epoch(
        change, networks, optimizer, batch, config, parts=parts, generator=generator
    )


@breaks("update")
def returns_follow_the_critic(networks, optimizer, batch, config, *, parts, generator):
    """Adds the new critic's values to the advantages: the target runs away from the critic."""

    def change(networks, batch):
        return replace(batch, returns=batch.advantages + networks.critic(batch.observations))

    return epoch_by_epoch(
        change, networks, optimizer, batch, config, parts=parts, generator=generator
    )


@breaks("update")
def advantages_against_the_new_critic(networks, optimizer, batch, config, *, parts, generator):
    """Takes the new critic's values from returns that were built with the old critic's."""

    def change(networks, batch):
        return replace(batch, advantages=batch.returns - networks.critic(batch.observations))

    return epoch_by_epoch(
        change, networks, optimizer, batch, config, parts=parts, generator=generator
    )


@breaks("compute_gae")
def normalized_before_the_returns(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Normalises first, so that Â + V is no return and the critic learns its own guess."""
    advantages = compute_gae(
        rewards, values, next_values, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda
    )
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


@breaks("normalize_advantages")
def deviation_of_one_sample(advantages, *, mask=None):
    """Divides by n − 1: a minibatch of one row is 0 / 0, and every weight becomes NaN."""
    centred = advantages - advantages.mean()
    variance = centred.square().sum() / (len(advantages) - 1)
    return centred / (variance.sqrt() + 1e-8)


@breaks("ppo_loss")
def entropy_sign(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    """Punishes entropy, since the bonus is added to what is minimised."""
    return policy_loss + value_coef * value_loss + entropy_coef * entropy


@breaks("ppo_loss")
def value_loss_left_out(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    """Never trains the critic."""
    return policy_loss - entropy_coef * entropy


@breaks("clipped_surrogate_loss")
def loss_sign(log_probs, log_probs_old, advantages, *, clip_epsilon):
    """Minimises the objective: good actions become rare."""
    ratios = (log_probs - log_probs_old).exp()
    return clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def sum_instead_of_mean(log_probs, log_probs_old, advantages, *, clip_epsilon):
    """Sums over the samples: the step grows with the size of the minibatch."""
    ratios = (log_probs - log_probs_old).exp()
    return -clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).sum()


@breaks("clipped_gradient_step")
def clipped_before_backward(loss, networks, optimizer, *, max_grad_norm):
    """Shortens the gradient that is not there yet, then steps along the whole one."""
    optimizer.zero_grad()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    loss.backward()
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def gradients_never_cleared(loss, networks, optimizer, *, max_grad_norm):
    """Adds every gradient to the one before it."""
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


@breaks("shuffled_minibatches")
def with_replacement(num_rows, num_minibatches, *, generator):
    """Draws rows instead of dealing them: about a third is never seen in an epoch."""
    size = num_rows // num_minibatches
    return iter(
        torch.randint(num_rows, (size,), generator=generator) for _ in range(num_minibatches)
    )


@breaks("shuffled_minibatches")
def remainder_dropped(num_rows, num_minibatches, *, generator):
    """Cuts equal parts and forgets the rows that are left over."""
    size = num_rows // num_minibatches
    order = torch.randperm(num_rows, generator=generator)
    return iter(order[: size * num_minibatches].split(size))


@breaks("shuffled_minibatches")
def never_shuffled(num_rows, num_minibatches, *, generator):
    """Deals the rows in the order of time, so that each minibatch is one stretch of it."""
    return iter(torch.arange(num_rows).tensor_split(num_minibatches))


class _Certain(CategoricalPolicy):
    def all_log_probs(self, observations):
        return self.body(observations).softmax(dim=-1).log_softmax(dim=-1)


@breaks("make_networks")
def double_softmax(observation_shape, action_space, *, hidden_sizes, generator):
    """Hands probabilities over as logits: of two actions none can be likelier than 0.731."""
    networks = make_networks(
        observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    networks.policy = _Certain(networks.policy.body)
    return networks
