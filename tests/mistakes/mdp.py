"""Mistakes around exact gradients, pairs of policies, and moments of estimates."""

import torch

from mistakes import new_catalogue
from ppo_lessons.mdp import advantages, softmax_policy, state_visits

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
