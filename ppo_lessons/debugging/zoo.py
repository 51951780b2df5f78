"""The zoo: what each bug does, as a function for one slot of the loop.

None of them raises an error, and each of them trains. They stand in the order of the four stages.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from ppo_lessons.clip import clipped_surrogate, clipped_surrogate_loss
from ppo_lessons.envs import Envs
from ppo_lessons.gae import compute_gae, normalize_advantages
from ppo_lessons.importance import importance_ratios
from ppo_lessons.networks import CategoricalPolicy, Networks, Policy, make_networks
from ppo_lessons.rollout import collect_rollout
from ppo_lessons.types import Carry, Rollout

Rows = Float[Tensor, "T N"]
Flags = Bool[Tensor, "T N"]
Samples = Float[Tensor, " B"]
Number = Float[Tensor, ""]


# --- collect -------------------------------------------------------------------------------


def probabilities_as_logits(
    observation_shape, action_space, *, hidden_sizes, generator
) -> Networks:
    """Apply the softmax twice: what the second one takes for logits are probabilities."""
    networks = make_networks(
        observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    networks.policy = _TwiceSoftmaxed(networks.policy.body)
    return networks


class _TwiceSoftmaxed(CategoricalPolicy):
    def all_log_probs(self, observations):
        return self.body(observations).softmax(dim=-1).log_softmax(dim=-1)


def observations_late(
    envs: Envs, policy: Policy, carry: Carry, *, num_steps: int, generator: Generator
) -> tuple[Rollout, Carry]:
    """Write down what was observed after the step, beside the action that was chosen before it."""
    rollout, carry = collect_rollout(envs, policy, carry, num_steps=num_steps, generator=generator)
    return replace(rollout, observations=rollout.next_observations), carry


# --- score ---------------------------------------------------------------------------------


def termination_ignored(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Bootstrap at every end: a task that is over counts as if it went on."""
    nowhere = torch.zeros_like(terminated)
    return compute_gae(rewards, values, next_values, nowhere, terminated | truncated, **settings)


def rewards_shifted(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Pay each action for the step before it."""
    late = rewards.roll(1, dims=0)
    return compute_gae(late, values, next_values, terminated, truncated, **settings)


def normalized_too_early(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Normalise the advantages before the returns are made of them."""
    advantages = compute_gae(rewards, values, next_values, terminated, truncated, **settings)
    return normalize_advantages(advantages)


# --- squeeze -------------------------------------------------------------------------------


def rows_repeated(
    num_rows: int, num_minibatches: int, *, generator: Generator
) -> Iterator[Int[Tensor, " M"]]:
    """Deal one minibatch of an epoch again and again: the other rows are never learned from."""
    order = torch.randperm(num_rows, generator=generator, device=generator.device)
    first = order.tensor_split(num_minibatches)[0]
    return iter([first] * num_minibatches)


def normalized_over_the_wrong_axis(advantages: Samples) -> Samples:
    """Normalise a column along its rows: each sample is compared with itself alone."""
    column = advantages.unsqueeze(-1)
    centred = column - column.mean(dim=-1, keepdim=True)
    return (centred / (column.std(dim=-1, correction=0, keepdim=True) + 1e-8)).squeeze(-1)


def old_recomputed(
    log_probs: Samples, log_probs_old: Samples, advantages: Samples, *, clip_epsilon: float
) -> Number:
    """Ask the policy of this moment for the old log-probabilities: the ratio is always 1."""
    return clipped_surrogate_loss(
        log_probs, log_probs.detach(), advantages, clip_epsilon=clip_epsilon
    )


def old_on_the_graph(
    log_probs: Samples, log_probs_old: Samples, advantages: Samples, *, clip_epsilon: float
) -> Number:
    """Recompute the old log-probabilities and forget to detach them: both slopes cancel."""
    ratios = (log_probs - log_probs.clone()).exp()
    return -clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


def old_and_new_swapped(
    log_probs: Samples, log_probs_old: Samples, advantages: Samples, *, clip_epsilon: float
) -> Number:
    """Divide the old probability by the new one: good actions become rare."""
    ratios = importance_ratios(log_probs_old, log_probs)
    return -clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


def clip_on_the_wrong_side(
    log_probs: Samples, log_probs_old: Samples, advantages: Samples, *, clip_epsilon: float
) -> Number:
    """Take the maximum of the two terms: the clip acts where it should not, and only there."""
    ratios = importance_ratios(log_probs, log_probs_old)
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -torch.maximum(ratios * advantages, clipped * advantages).mean()


def values_broadcast(values: Samples, returns: Samples) -> Number:
    """Compare a column of values with a row of returns: each value learns all returns at once."""
    return (values.unsqueeze(-1) - returns).square().mean() / 2


def critic_not_trained(
    policy_loss: Number, value_loss: Number, entropy: Number, *, entropy_coef: float
) -> Number:
    """Leave the value loss out of the sum."""
    return policy_loss - entropy_coef * entropy


def entropy_punished(
    policy_loss: Number, value_loss: Number, entropy: Number, *, value_coef: float,
    entropy_coef: float,
) -> Number:  # fmt: skip
    """Add the entropy to what is minimised: the policy is paid for being sure."""
    return policy_loss + value_coef * value_loss + entropy_coef * entropy


def steps_too_long(
    loss: Number, networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Number:
    """Step thirty times as far as the learning rate says."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    for group in optimizer.param_groups:
        group["lr"] *= 30
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] /= 30
    return norm


def gradients_never_cleared(
    loss: Number, networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Number:
    """Add every gradient to what is left of all those before it."""
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


def gradients_cut_to_nothing(
    loss: Number, networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Number:
    """Shorten every gradient a million times too much: Adam's ε is larger than what is left."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm * 1e-6)
    optimizer.step()
    return norm
