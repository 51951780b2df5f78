"""Mistakes around exact gradients, pairs of policies, and moments of estimates."""

from dataclasses import replace

import torch

from mistakes import new_catalogue
from ppo_lessons.mdp import advantages, softmax_policy, state_visits
from ppo_lessons.mdp import gae_moments as right_moments

MISTAKES, breaks = new_catalogue()


def feature_rows(mdp, parameters, features):
    """What each state sees of every action: φ(s, a)."""
    if features is None:
        K, A = parameters.shape
        features = torch.eye(K * A, dtype=torch.float64).reshape(K, A, K * A)
    return features[mdp.observation_of]


@breaks("score_table")
def mean_not_subtracted(mdp, parameters, *, features=None):
    """Takes the slope of the logit for that of log π: the sum over all actions is forgotten."""
    return feature_rows(mdp, parameters, features)


@breaks("score_table")
def plain_mean_subtracted(mdp, parameters, *, features=None):
    """Subtracts the mean over actions as if all were equally likely."""
    seen = feature_rows(mdp, parameters, features)
    return seen - seen.mean(1, keepdim=True)


@breaks("score_table")
def slope_of_the_probability(mdp, parameters, *, features=None):
    """Is ∇π, not ∇log π: rare actions get a small score."""
    policy = softmax_policy(mdp, parameters, features=features).unsqueeze(-1)
    seen = feature_rows(mdp, parameters, features)
    return policy * (seen - (policy * seen).sum(1, keepdim=True))


def scores_of(mdp, parameters, trajectories, features):
    policy = softmax_policy(mdp, parameters, features=features).unsqueeze(-1)
    seen = feature_rows(mdp, parameters, features)
    table = seen - (policy * seen).sum(1, keepdim=True)
    return table[trajectories.states, trajectories.actions]


@breaks("gradient_estimates")
def padding_counted(mdp, parameters, trajectories, weights, *, features=None):
    """Counts the rows after the end, as if state 0 had been visited there."""
    scores = scores_of(mdp, parameters, trajectories, features)
    return (scores * weights.unsqueeze(-1)).sum(0)


@breaks("gradient_estimates")
def averaged_over_steps(mdp, parameters, trajectories, weights, *, features=None):
    """Divides by the length of the episode: short episodes count more."""
    scores = scores_of(mdp, parameters, trajectories, features)
    weights = torch.where(trajectories.valid, weights, 0.0).unsqueeze(-1)
    return (scores * weights).sum(0) / trajectories.valid.sum(0).unsqueeze(-1)


@breaks("mean_and_covariance")
def probabilities_forgotten(probabilities, estimates):
    """Counts every listed episode once, however rare it is."""
    return estimates.mean(0), torch.cov(estimates.T, correction=0)


@breaks("mean_and_covariance")
def second_moment_for_covariance(probabilities, estimates):
    """Does not subtract the mean before it squares."""
    weighted = probabilities.unsqueeze(-1) * estimates
    return weighted.sum(0), weighted.T @ estimates


@breaks("performance_difference")
def old_visits(mdp, policy, policy_old, *, gamma):
    """Takes the states of the old policy: that is the surrogate, not the truth."""
    weights = state_visits(mdp, policy_old, gamma=gamma).unsqueeze(-1) * policy
    return (weights * advantages(mdp, policy_old, gamma=gamma)).sum((-2, -1))


@breaks("performance_difference")
def judged_by_itself(mdp, policy, policy_old, *, gamma):
    """Takes the new policy's own advantages: their mean is 0 in every state."""
    weights = state_visits(mdp, policy, gamma=gamma).unsqueeze(-1) * policy
    return (weights * advantages(mdp, policy, gamma=gamma)).sum((-2, -1))


@breaks("performance_difference")
def old_less_new(mdp, policy, policy_old, *, gamma):
    """Has the sign turned: what the old policy would gain."""
    weights = state_visits(mdp, policy_old, gamma=gamma).unsqueeze(-1) * policy_old
    return (weights * advantages(mdp, policy, gamma=gamma)).sum((-2, -1))


@breaks("performance_difference")
def compared_with_the_first_of_the_batch(mdp, policy, policy_old, *, gamma):
    """Visits the states of the batch's first policy with all of them."""
    first = policy if policy.ndim == 2 else policy[0]
    weights = state_visits(mdp, first, gamma=gamma).unsqueeze(-1) * policy
    return (weights * advantages(mdp, policy_old, gamma=gamma)).sum((-2, -1))


def rows_kl(p, q):
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum(-1)


@breaks("state_kl")
def turned_around(policy_old, policy):
    """Is KL(π ‖ π_old): the new policy weights the sum."""
    return rows_kl(policy, policy_old)


@breaks("state_kl")
def averaged_over_actions(policy_old, policy):
    """Divides by the number of actions."""
    return rows_kl(policy_old, policy) / policy.shape[-1]


@breaks("state_kl")
def second_order_only(policy_old, policy):
    """Takes ½·χ², which agrees with the KL for small steps only."""
    return 0.5 * ((policy - policy_old) ** 2 / policy_old).sum(-1)


@breaks("mean_kl")
def visits_of_the_new_policy(mdp, policy, policy_old, *, gamma):
    """Weights by where the new policy goes."""
    weights = state_visits(mdp, policy, gamma=gamma)
    return (weights * rows_kl(policy_old, policy)).sum(-1) / weights.sum(-1)


@breaks("mean_kl")
def visits_not_normalised(mdp, policy, policy_old, *, gamma):
    """Sums over the steps of an episode instead of averaging over them."""
    weights = state_visits(mdp, policy_old, gamma=gamma)
    return (weights * rows_kl(policy_old, policy)).sum(-1)


@breaks("mean_kl")
def all_states_alike(mdp, policy, policy_old, *, gamma):
    """Counts a state that is never visited like any other."""
    return rows_kl(policy_old, policy).mean(-1)


def weighted_scores(mdp, parameters, features, weights):
    policy = softmax_policy(mdp, parameters, features=features).unsqueeze(-1)
    seen = feature_rows(mdp, parameters, features)
    scores = seen - (policy * seen).sum(1, keepdim=True)
    return torch.einsum("sa,sap,saq->pq", weights, scores, scores)


@breaks("fisher_matrix")
def visits_summed(mdp, parameters, *, gamma, features=None):
    """Is the sum over an episode: the visits are not normalised."""
    policy = softmax_policy(mdp, parameters, features=features)
    weights = state_visits(mdp, policy, gamma=gamma).unsqueeze(-1) * policy
    return weighted_scores(mdp, parameters, features, weights)


@breaks("fisher_matrix")
def actions_all_alike(mdp, parameters, *, gamma, features=None):
    """Averages over actions as if all were equally likely."""
    policy = softmax_policy(mdp, parameters, features=features)
    visits = state_visits(mdp, policy, gamma=gamma).unsqueeze(-1)
    weights = (visits / visits.sum()).expand_as(policy) / policy.shape[-1]
    return weighted_scores(mdp, parameters, features, weights)


@breaks("fisher_matrix")
def weighted_by_advantages(mdp, parameters, *, gamma, features=None):
    """Lets the rewards in: curvature of the surrogate, not of the policy."""
    policy = softmax_policy(mdp, parameters, features=features)
    visits = state_visits(mdp, policy, gamma=gamma).unsqueeze(-1)
    weights = visits / visits.sum() * policy * advantages(mdp, policy, gamma=gamma)
    return weighted_scores(mdp, parameters, features, weights)


@breaks("gae_moments")
def lambda_forgotten(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Lets errors fade by γ alone: λ is always 1."""
    return right_moments(mdp, parameters, critic, gamma=gamma, gae_lambda=1.0, features=features)


@breaks("gae_moments")
def critic_ignored(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Is the same for every critic."""
    return right_moments(
        mdp, parameters, 0 * critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )


@breaks("gae_moments")
def critic_of_the_end_counted(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Bootstraps at the end as well, from the state that the episode ended in."""
    ends = 1 - mdp.transitions.sum(-1)
    paid = replace(mdp, rewards=mdp.rewards + gamma * ends * critic.unsqueeze(-1))
    return right_moments(
        paid, parameters, critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )


@breaks("gae_moments")
def second_moment_as_variance(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Does not subtract the squared mean from the mean square."""
    right = right_moments(
        mdp, parameters, critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )
    mean = right.gradient_mean
    return replace(
        right,
        gradient_covariance=right.gradient_covariance + torch.outer(mean, mean),
        advantage_variance=right.advantage_variance + right.advantage_mean**2,
    )


@breaks("gae_moments")
def variances_only(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Leaves out how the parameters' slopes vary together: a diagonal is no covariance."""
    right = right_moments(
        mdp, parameters, critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )
    return replace(right, gradient_covariance=right.gradient_covariance.diag().diag())


@breaks("gae_moments")
def steps_taken_as_independent(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Adds up the variance of each step as if steps of one episode did not depend on each other."""
    right = right_moments(
        mdp, parameters, critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )
    policy = softmax_policy(mdp, parameters, features=features)
    weights = state_visits(mdp, policy, gamma=1.0).unsqueeze(-1) * policy
    squares = weights * (right.advantage_variance + right.advantage_mean**2)
    covariance = weighted_scores(mdp, parameters, features, squares)
    return replace(right, gradient_covariance=covariance)


@breaks("gae_moments")
def discounted_visits(mdp, parameters, critic, *, gamma, gae_lambda, features=None):
    """Weights step t by γᵗ: the mean is that of the discounted J, not of the usual update."""
    right = right_moments(
        mdp, parameters, critic, gamma=gamma, gae_lambda=gae_lambda, features=features
    )
    policy = softmax_policy(mdp, parameters, features=features).unsqueeze(-1)
    seen = feature_rows(mdp, parameters, features)
    scores = seen - (policy * seen).sum(1, keepdim=True)
    visits = state_visits(mdp, policy.squeeze(-1), gamma=gamma)[:, None, None]
    weighted = visits * policy * scores * right.advantage_mean.unsqueeze(-1)
    return replace(right, gradient_mean=weighted.sum((0, 1)))


@breaks("mean_squared_error")
def number_forgotten(moments, target, *, num_trajectories):
    """Is the error of a single episode, however many there are."""
    miss = moments.gradient_mean - target.flatten()
    return miss @ miss + moments.gradient_covariance.trace()


@breaks("mean_squared_error")
def bias_averaged_away(moments, target, *, num_trajectories):
    """Divides the bias by the number of episodes too: no number of them removes it."""
    miss = moments.gradient_mean - target.flatten()
    return (miss @ miss + moments.gradient_covariance.trace()) / num_trajectories


@breaks("mean_squared_error")
def bias_not_squared(moments, target, *, num_trajectories):
    """Adds the length of the bias to a variance."""
    miss = moments.gradient_mean - target.flatten()
    return miss.norm() + moments.gradient_covariance.trace() / num_trajectories
