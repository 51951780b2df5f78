"""Ways to misjudge, or to misdraw, an action that is a row of real numbers."""

from math import e, log, pi

import torch

from mistakes import new_catalogue
from ppo_lessons.networks import GaussianPolicy, gaussian_entropies, gaussian_log_probs

MISTAKES, breaks = new_catalogue()


def per_dimension(actions, means, log_stds):
    scores = (actions - means) / log_stds.exp()
    return -0.5 * scores**2 - log_stds - 0.5 * log(2 * pi)


@breaks("gaussian_log_probs")
def dimensions_not_summed(actions, means, log_stds):
    """Gives a log-probability for each dimension: each gets a ratio, and a clip, of its own."""
    return per_dimension(actions, means, log_stds)


@breaks("gaussian_log_probs")
def dimensions_averaged(actions, means, log_stds):
    """Averages over the dimensions: the ratio is the A-th root of the true one."""
    return per_dimension(actions, means, log_stds).mean(dim=-1)


@breaks("gaussian_log_probs")
def summed_over_the_batch_too(actions, means, log_stds):
    """Sums over everything: one ratio for the whole batch."""
    return per_dimension(actions, means, log_stds).sum()


@breaks("gaussian_log_probs")
def constant_left_out(actions, means, log_stds):
    """Leaves out ½·log 2π: ratios are right, the density and every KL to another family are not."""
    return gaussian_log_probs(actions, means, log_stds) + 0.5 * log(2 * pi) * len(log_stds)


@breaks("gaussian_log_probs")
def constant_once(actions, means, log_stds):
    """Subtracts ½·log 2π once instead of once for each dimension."""
    return gaussian_log_probs(actions, means, log_stds) + 0.5 * log(2 * pi) * (len(log_stds) - 1)


@breaks("gaussian_log_probs")
def log_std_left_out(actions, means, log_stds):
    """Leaves out log σ: the widest policy rates every action best, and σ grows without end."""
    return gaussian_log_probs(actions, means, log_stds) + log_stds.sum()


@breaks("gaussian_log_probs")
def variance_for_deviation(actions, means, log_stds):
    """Divides the squared distance by σ instead of σ²."""
    distances = (actions - means).square() / log_stds.exp()
    return (-0.5 * distances - log_stds - 0.5 * log(2 * pi)).sum(dim=-1)


@breaks("gaussian_log_probs")
def log_std_taken_for_std(actions, means, log_stds):
    """Takes log σ for σ."""
    distances = (actions - means) / (log_stds + 1e-8)
    return (-0.5 * distances**2 - log_stds - 0.5 * log(2 * pi)).sum(dim=-1)


@breaks("gaussian_log_probs")
def means_without_gradient(actions, means, log_stds):
    """Detaches the means: only the spread is learned."""
    return gaussian_log_probs(actions, means.detach(), log_stds)


@breaks("gaussian_entropies")
def entropy_without_e(log_stds):
    """Uses ½·log 2π, the constant of the density, for ½·log 2πe: half a nat is missing, A times."""
    return (log_stds + 0.5 * log(2 * pi)).sum()


@breaks("gaussian_entropies")
def entropy_averaged(log_stds):
    """Averages over the dimensions, while the log-probability is a sum."""
    return (log_stds + 0.5 * log(2 * pi * e)).mean()


@breaks("gaussian_entropies")
def entropy_of_the_std(log_stds):
    """Adds σ where log σ belongs."""
    return (log_stds.exp() + 0.5 * log(2 * pi * e)).sum()


def policy_with(**methods):
    """A maker of Gaussian policies with other methods."""

    def make(body, num_dimensions, *, log_std=0.0):
        policy = GaussianPolicy(body, num_dimensions, log_std=log_std)
        for name, method in methods.items():
            setattr(policy, name, lambda *given, method=method: method(policy, *given))
        return policy

    return make


def drawn(policy, observations, generator, spread, shape=None):
    means = policy.means(observations)
    noise = torch.empty(shape or means.shape).normal_(generator=generator)
    actions = means + spread * noise
    return actions, gaussian_log_probs(actions, means, policy.log_stds)


@breaks("GaussianPolicy")
def noise_times_log_std(body, num_dimensions, *, log_std=0.0):
    """Draws with log σ in place of σ: at the start, where log σ = 0, nothing is ever tried."""

    def sample(policy, observations, generator):
        return drawn(policy, observations, generator, policy.log_stds)

    return policy_with(sample=sample)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def noise_times_variance(body, num_dimensions, *, log_std=0.0):
    """Draws with σ² in place of σ."""

    def sample(policy, observations, generator):
        return drawn(policy, observations, generator, (2 * policy.log_stds).exp())

    return policy_with(sample=sample)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def one_draw_for_all_dimensions(body, num_dimensions, *, log_std=0.0):
    """Draws one number for an action and spreads it over its dimensions: they move together."""

    def sample(policy, observations, generator):
        shape = (*observations.shape[:-1], 1)
        return drawn(policy, observations, generator, policy.log_stds.exp(), shape)

    return policy_with(sample=sample)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def one_draw_for_all_rows(body, num_dimensions, *, log_std=0.0):
    """Draws one action's noise and adds it in every environment: N copies explore as one."""

    def sample(policy, observations, generator):
        shape = (num_dimensions,)
        return drawn(policy, observations, generator, policy.log_stds.exp(), shape)

    return policy_with(sample=sample)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def rates_the_cut_action(body, num_dimensions, *, log_std=0.0):
    """Cuts the action to ±1 before it rates it: the rollout holds an action that was not drawn."""

    def sample(policy, observations, generator):
        actions, _ = GaussianPolicy.sample(policy, observations, generator)
        actions = actions.clamp(-1, 1)
        return actions, policy.evaluate(observations, actions)[0]

    return policy_with(sample=sample)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def greedy_draws(body, num_dimensions, *, log_std=0.0):
    """Draws where the most likely action was asked for."""

    def greedy(policy, observations):
        return GaussianPolicy.sample(policy, observations, torch.Generator().manual_seed(0))[0]

    return policy_with(greedy=greedy)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def one_entropy_for_all_states(body, num_dimensions, *, log_std=0.0):
    """Gives one entropy, without the axes of the batch: it broadcasts in every product."""

    def evaluate(policy, observations, actions):
        log_probs, _ = GaussianPolicy.evaluate(policy, observations, actions)
        return log_probs, gaussian_entropies(policy.log_stds)

    return policy_with(evaluate=evaluate)(body, num_dimensions, log_std=log_std)


@breaks("GaussianPolicy")
def spread_never_learned(body, num_dimensions, *, log_std=0.0):
    """Detaches log σ: the policy never becomes surer, nor less sure."""

    def evaluate(policy, observations, actions):
        log_stds = policy.log_stds.detach()
        log_probs = gaussian_log_probs(actions, policy.means(observations), log_stds)
        return log_probs, gaussian_entropies(log_stds).expand_as(log_probs)

    return policy_with(evaluate=evaluate)(body, num_dimensions, log_std=log_std)
