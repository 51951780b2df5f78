"""Classic mistakes around ratios and the divergence estimated from them."""

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def averaged(terms, mask):
    return terms.mean() if mask is None else terms[mask].mean()


def estimate(log_ratios, estimator, mask):
    """The three estimators from log-ratios, so that a mistake differs in one place."""
    terms = {
        "k1": -log_ratios,
        "k2": log_ratios**2 / 2,
        "k3": log_ratios.exp() - 1 - log_ratios,
    }
    return averaged(terms[estimator], mask)


@breaks("importance_ratios")
def quotient_of_probabilities(log_probs, log_probs_old):
    """Divides probabilities: for rare actions that is 0 / 0."""
    return log_probs.exp() / log_probs_old.exp()


@breaks("importance_ratios")
def inverse_ratio(log_probs, log_probs_old):
    """Has the old policy on top."""
    return (log_probs_old - log_probs).exp()


@breaks("importance_ratios")
def old_log_probs_recomputed(log_probs, log_probs_old):
    """Takes the present policy for the old one: every ratio is 1 and no clip ever acts."""
    return (log_probs - log_probs.detach()).exp()


@breaks("importance_ratios")
def logarithm_kept(log_probs, log_probs_old):
    """Forgets the exponential: no change gives 0 instead of 1."""
    return log_probs - log_probs_old


@breaks("importance_ratios")
def without_gradient(log_probs, log_probs_old):
    """Cuts the gradient, as a tensor that went through numpy does: nothing is learned."""
    return (log_probs - log_probs_old).detach().exp()


@breaks("importance_ratios")
def old_log_probs_not_used_as_given(log_probs, log_probs_old):
    """Averages the old log-probabilities over the batch: single ratios lose their meaning."""
    return (log_probs - log_probs_old.mean()).exp()


@breaks("surrogate_loss")
def log_prob_in_place_of_the_ratio(log_probs, log_probs_old, advantages, *, mask=None):
    """Uses the batch again as if the policy had not moved: what was drawn often wins."""
    return -averaged(log_probs * advantages.detach(), mask)


@breaks("surrogate_loss")
def surrogate_called_a_loss(log_probs, log_probs_old, advantages, *, mask=None):
    """Forgets the minus: descent then climbs down."""
    return averaged((log_probs - log_probs_old.detach()).exp() * advantages.detach(), mask)


@breaks("surrogate_loss")
def old_policy_not_detached(log_probs, log_probs_old, advantages, *, mask=None):
    """Lets the gradient into the old policy, where it takes back what the new one gets."""
    return -averaged((log_probs - log_probs_old).exp() * advantages.detach(), mask)


@breaks("surrogate_loss")
def log_ratio_as_weight(log_probs, log_probs_old, advantages, *, mask=None):
    """Multiplies by the logarithm of the ratio: the same slope at the start, never another."""
    return -averaged((log_probs - log_probs_old.detach()) * advantages.detach(), mask)


@breaks("surrogate_loss")
def ratio_as_a_constant_weight(log_probs, log_probs_old, advantages, *, mask=None):
    """Weights log π by a ratio without gradient: the slope is right, the value is not."""
    ratios = (log_probs - log_probs_old).detach().exp()
    return -averaged(ratios * log_probs * advantages.detach(), mask)


@breaks("surrogate_loss")
def advantages_not_detached(log_probs, log_probs_old, advantages, *, mask=None):
    """Trains the critic, through Â, to make actions look good."""
    return -averaged((log_probs - log_probs_old.detach()).exp() * advantages, mask)


@breaks("surrogate_loss")
def weights_made_to_sum_to_one(log_probs, log_probs_old, advantages, *, mask=None):
    """Divides by the mean ratio: another estimator, and another gradient."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    return -averaged(ratios * advantages.detach(), mask) / averaged(ratios, mask)


@breaks("surrogate_loss")
def summed_over_the_batch(log_probs, log_probs_old, advantages, *, mask=None):
    """Sums: twice the batch, twice the step."""
    terms = (log_probs - log_probs_old.detach()).exp() * advantages.detach()
    return -(terms.sum() if mask is None else terms[mask].sum())


@breaks("surrogate_loss")
def padding_counted(log_probs, log_probs_old, advantages, *, mask=None):
    """Counts padding as samples."""
    return -((log_probs - log_probs_old.detach()).exp() * advantages.detach()).mean()


@breaks("approximate_kl")
def direction_swapped(log_probs, log_probs_old, *, estimator, mask=None):
    """Estimates KL(π ‖ π_old) from samples of π_old, which estimate no such thing."""
    return estimate(log_probs_old - log_probs, estimator, mask)


@breaks("approximate_kl")
def k3_sign_turned(log_probs, log_probs_old, *, estimator, mask=None):
    """Adds the log-ratio in k3: it may be negative, and the early stop never comes."""
    if estimator == "k3":
        log_ratios = log_probs - log_probs_old
        return averaged(log_ratios.exp() - 1 + log_ratios, mask)
    return estimate(log_probs - log_probs_old, estimator, mask)


@breaks("approximate_kl")
def k3_without_minus_one(log_probs, log_probs_old, *, estimator, mask=None):
    """Forgets the −1 of k3: equal policies seem one nat apart."""
    constant = 1 if estimator == "k3" else 0
    return estimate(log_probs - log_probs_old, estimator, mask) + constant


@breaks("approximate_kl")
def k1_sign_turned(log_probs, log_probs_old, *, estimator, mask=None):
    """Averages log π − log π_old: the number falls as the policies part."""
    if estimator == "k1":
        return averaged(log_probs - log_probs_old, mask)
    return estimate(log_probs - log_probs_old, estimator, mask)


@breaks("approximate_kl")
def k2_without_the_half(log_probs, log_probs_old, *, estimator, mask=None):
    """Is twice the divergence for small steps."""
    factor = 2 if estimator == "k2" else 1
    return factor * estimate(log_probs - log_probs_old, estimator, mask)


@breaks("approximate_kl")
def k1_made_positive(log_probs, log_probs_old, *, estimator, mask=None):
    """Takes absolute values in k1: never negative, and far too large."""
    if estimator == "k1":
        return averaged((log_probs - log_probs_old).abs(), mask)
    return estimate(log_probs - log_probs_old, estimator, mask)


@breaks("approximate_kl")
def mask_ignored(log_probs, log_probs_old, *, estimator, mask=None):
    """Counts padding as samples."""
    return estimate(log_probs - log_probs_old, estimator, None)


@breaks("effective_sample_size")
def share_instead_of_samples(weights):
    """Divides by the number of samples: a fraction where a number of samples is asked for."""
    return weights.sum() ** 2 / (weights**2).sum() / len(weights)


@breaks("effective_sample_size")
def squares_not_summed(weights):
    """Squares the sum in the denominator as well: the answer is always 1."""
    return weights.sum() ** 2 / weights.sum() ** 2


@breaks("effective_sample_size")
def samples_with_weight(weights):
    """Counts the weights that are not 0, however small."""
    return (weights > 0).sum().to(weights.dtype)


@breaks("effective_sample_size")
def squares_overflow(weights):
    """Squares before scaling: large weights give infinity over infinity."""
    return weights.sum() ** 2 / (weights**2).sum()


@breaks("effective_sample_size")
def negative_weights_accepted(weights):
    """Takes logarithms of ratios for weights and answers all the same."""
    scaled = weights / weights.abs().max().clamp(min=torch.finfo(weights.dtype).tiny)
    return scaled.sum() ** 2 / (scaled**2).sum()
