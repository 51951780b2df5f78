"""Answers to the exercises of lesson 09."""

import math
import statistics

import numpy as np
import torch
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import continuous, networks
from ppo_lessons.envs.normalized import Moments, add_rows

EXERCISES = (
    "gaussian_log_probs",
    "gaussian_scores",
    "squashed_log_probs",
    "mended_actions",
    "merge_moments",
    "scaled_rewards",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

RIGHT["gaussian_log_probs"]["package"] = networks.gaussian_log_probs
RIGHT["gaussian_scores"]["package"] = continuous.gaussian_scores
RIGHT["squashed_log_probs"]["package"] = continuous.squashed_log_probs

LOG_2PI = math.log(2 * math.pi)


# --- the log-probability of an action ------------------------------------------------------


@passes("gaussian_log_probs")
def by_torch(actions, means, log_stds):
    return Normal(means, log_stds.exp()).log_prob(actions).sum(dim=-1)


@passes("gaussian_log_probs")
def by_torch_independent(actions, means, log_stds):
    normal = Normal(means, log_stds.exp().expand_as(means))
    return Independent(normal, 1).log_prob(actions)


@passes("gaussian_log_probs")
def constants_taken_out(actions, means, log_stds):
    squares = (((actions - means) * torch.exp(-log_stds)) ** 2).sum(1)
    return -0.5 * squares - log_stds.sum() - 0.5 * log_stds.numel() * math.log(2 * math.pi)


@passes("gaussian_log_probs")
def row_by_row(actions, means, log_stds):
    rows = []
    for action, mean in zip(actions, means, strict=True):
        total = 0.0
        for a, mu, log_std in zip(action, mean, log_stds, strict=True):
            variance = torch.exp(2 * log_std)
            total = total - (a - mu) ** 2 / (2 * variance) - torch.log(2 * math.pi * variance) / 2
        rows.append(total)
    return torch.stack(rows)


@passes("gaussian_log_probs")
def in_float32(actions, means, log_stds):
    z = (actions.float() - means.float()) / log_stds.float().exp()
    return torch.sum(-z.square() / 2 - log_stds.float() - 0.9189385, -1)


def log_prob_of(term):
    """Sum a term for each dimension, made of the distance and log σ."""

    def function(actions, means, log_stds):
        return term(actions - means, log_stds).sum(-1)

    return function


def terms(actions, means, log_stds):
    """What a right answer adds up."""
    z = (actions - means) / log_stds.exp()
    return -0.5 * z**2 - log_stds - 0.5 * LOG_2PI


def summed_otherwise(reduced):
    def function(actions, means, log_stds):
        return reduced(terms(actions, means, log_stds))

    return function


def _scale_log_std(actions, means, log_stds):
    return Normal(means, log_stds, validate_args=False).log_prob(actions).sum(-1)


def _scale_log_std_validated(actions, means, log_stds):
    return Normal(means, log_stds, validate_args=True).log_prob(actions).sum(-1)


def _by_cdf(actions, means, log_stds):
    return Normal(means, log_stds.exp()).cdf(actions).sum(-1)


def _log_cdf(actions, means, log_stds):
    return Normal(means, log_stds.exp()).cdf(actions).log().sum(-1)


WRONG["gaussian_log_probs"] |= {
    "not_summed": terms,
    "averaged_over_the_dimensions": summed_otherwise(lambda each: each.mean(-1)),
    "summed_over_the_batch": summed_otherwise(lambda each: each.sum(0)),
    "everything_summed": summed_otherwise(lambda each: each.sum()),
    "everything_summed#averaged": summed_otherwise(lambda each: each.mean()),
    "log_std_forgotten": log_prob_of(lambda d, s: -0.5 * (d / s.exp()) ** 2 - 0.5 * LOG_2PI),
    "log_std_forgotten#and_constant": log_prob_of(lambda d, s: -0.5 * (d / s.exp()) ** 2),
    "log_std_added": log_prob_of(lambda d, s: -0.5 * (d / s.exp()) ** 2 + s - 0.5 * LOG_2PI),
    "half_of_the_log_std": log_prob_of(
        lambda d, s: -0.5 * (d / s.exp()) ** 2 - s / 2 - 0.5 * LOG_2PI
    ),
    "constant_forgotten": log_prob_of(lambda d, s: -0.5 * (d / s.exp()) ** 2 - s),
    "constant_once_for_all": lambda actions, means, log_stds: (
        constant_forgotten(actions, means, log_stds) - 0.5 * LOG_2PI
    ),
    "constant_not_halved": log_prob_of(lambda d, s: -0.5 * (d / s.exp()) ** 2 - s - LOG_2PI),
    "constant_not_halved#pi_alone": log_prob_of(
        lambda d, s: -0.5 * (d / s.exp()) ** 2 - s - 0.5 * math.log(math.pi)
    ),
    "deviation_not_squared": log_prob_of(lambda d, s: -(d**2) / (2 * s.exp()) - s - 0.5 * LOG_2PI),
    "variance_for_the_deviation": log_prob_of(
        lambda d, s: -(d**2) / (2 * s.exp()) - s / 2 - 0.5 * LOG_2PI
    ),
    "log_std_for_the_deviation": _scale_log_std,
    "log_std_for_the_deviation#validated": _scale_log_std_validated,
    "deviation_multiplied": log_prob_of(lambda d, s: -0.5 * (d * s.exp()) ** 2 - s - 0.5 * LOG_2PI),
    "half_forgotten": log_prob_of(lambda d, s: -((d / s.exp()) ** 2) - s - 0.5 * LOG_2PI),
    "distance_not_squared": log_prob_of(lambda d, s: -0.5 * d.abs() / s.exp() - s - 0.5 * LOG_2PI),
    "sign_of_the_square": log_prob_of(lambda d, s: 0.5 * (d / s.exp()) ** 2 - s - 0.5 * LOG_2PI),
    "sign_turned": summed_otherwise(lambda each: -each.sum(-1)),
    "density_itself": summed_otherwise(lambda each: each.sum(-1).exp()),
    "density_itself#summed": summed_otherwise(lambda each: each.exp().sum(-1)),
    "densities_multiplied": summed_otherwise(lambda each: each.exp().prod(-1).log()),
    "densities_multiplied#small_number_added": summed_otherwise(
        lambda each: (each.exp().prod(-1) + 1e-8).log()
    ),
    "probability_below": _by_cdf,
    "probability_below#logarithm": _log_cdf,
    "means_cut_off": lambda actions, means, log_stds: terms(actions, means.detach(), log_stds).sum(
        -1
    ),
    "spread_cut_off": lambda actions, means, log_stds: terms(actions, means, log_stds.detach()).sum(
        -1
    ),
}
constant_forgotten = WRONG["gaussian_log_probs"]["constant_forgotten"]


# --- its slopes ----------------------------------------------------------------------------


@passes("gaussian_scores")
def by_hand(actions, means, log_stds):
    stds = log_stds.exp()
    z = (actions - means) / stds
    return z / stds, z**2 - 1


@passes("gaussian_scores")
def by_variance(actions, means, log_stds):
    variances = torch.exp(2 * log_stds)
    distances = actions - means
    return distances / variances, (distances**2 - variances) / variances


@passes("gaussian_scores")
def by_autograd(actions, means, log_stds):
    means = means.clone().requires_grad_()
    spreads = log_stds.expand_as(means).clone().requires_grad_()
    total = Normal(means, spreads.exp()).log_prob(actions).sum()
    return torch.autograd.grad(total, (means, spreads))


@passes("gaussian_scores")
def one_number_at_a_time(actions, means, log_stds):
    first, second = torch.zeros_like(actions), torch.zeros_like(actions)
    for b in range(actions.shape[0]):
        for j in range(actions.shape[1]):
            sigma = math.exp(log_stds[j].item())
            distance = (actions[b, j] - means[b, j]).item()
            first[b, j] = distance / sigma**2
            second[b, j] = distance**2 / sigma**2 - 1
    return [first, second]


@passes("gaussian_scores")
def first_through_the_second(actions, means, log_stds):
    by_means = (actions.float() - means.float()) * torch.exp(-2 * log_stds.float())
    return by_means, by_means * (actions - means).float() - 1


def scores_of(first=None, second=None):
    """Slopes of distance and σ, each replaced by something."""
    first = first or (lambda d, s: d / s**2)
    second = second or (lambda d, s: (d / s) ** 2 - 1)

    def function(actions, means, log_stds):
        distances, stds = actions - means, log_stds.exp().expand_as(means)
        return first(distances, stds), second(distances, stds)

    return function


def scores_then(changed):
    def function(actions, means, log_stds):
        return changed(*by_hand(actions, means, log_stds))

    return function


WRONG["gaussian_scores"] |= {
    "divided_by_the_deviation_once": scores_of(lambda d, s: d / s),
    "not_divided": scores_of(lambda d, s: d),
    "multiplied_by_the_variance": scores_of(lambda d, s: d * s**2),
    "by_the_deviation": scores_of(None, lambda d, s: ((d / s) ** 2 - 1) / s),
    "by_the_variance": scores_of(None, lambda d, s: ((d / s) ** 2 - 1) / (2 * s**2)),
    "by_the_log_variance": scores_of(None, lambda d, s: ((d / s) ** 2 - 1) / 2),
    "minus_one_forgotten": scores_of(None, lambda d, s: (d / s) ** 2),
    "one_added": scores_of(None, lambda d, s: (d / s) ** 2 + 1),
    "distance_not_squared": scores_of(None, lambda d, s: d / s - 1),
    "distance_not_squared#size": scores_of(None, lambda d, s: (d / s).abs() - 1),
    "distance_not_scaled": scores_of(None, lambda d, s: d**2 - 1),
    "distance_not_scaled#once": scores_of(None, lambda d, s: d**2 / s - 1),
    "half_the_square": scores_of(None, lambda d, s: (d / s) ** 2 / 2 - 1),
    "sign_of_the_first": scores_of(lambda d, s: -d / s**2),
    "signs_turned": scores_then(lambda first, second: (-first, -second)),
    "order_of_the_two": scores_then(lambda first, second: (second, first)),
    "summed_over_the_dimensions": scores_then(
        lambda first, second: (first.sum(-1), second.sum(-1))
    ),
    "summed_over_the_dimensions#first_alone": scores_then(
        lambda first, second: (first.sum(-1), second)
    ),
    "summed_over_the_batch": scores_then(lambda first, second: (first, second.sum(0))),
    "summed_over_the_batch#both": scores_then(lambda first, second: (first.sum(0), second.sum(0))),
    "averaged_over_the_batch": scores_then(
        lambda first, second: (first / len(first), second / len(second))
    ),
    "averaged_over_the_batch#second_as_one": scores_then(
        lambda first, second: (first / len(first), second.mean(0))
    ),
    "log_std_for_the_deviation": lambda actions, means, log_stds: (
        (actions - means) / log_stds**2,
        ((actions - means) / log_stds) ** 2 - 1,
    ),
    "variance_for_the_deviation": lambda actions, means, log_stds: (
        (actions - means) / log_stds.exp(),
        (actions - means) ** 2 / log_stds.exp() - 1,
    ),
}


# --- squashed ------------------------------------------------------------------------------


@passes("squashed_log_probs")
def softplus(drawn, means, log_stds):
    plain = Normal(means, log_stds.exp()).log_prob(drawn)
    slopes = 2 * (math.log(2) - drawn - functional.softplus(-2 * drawn))
    return (plain - slopes).sum(-1)


@passes("squashed_log_probs")
def by_the_size_of_the_draw(drawn, means, log_stds):
    size = drawn.abs()
    slopes = 2 * math.log(2) - 2 * size - 2 * torch.log1p(torch.exp(-2 * size))
    return networks.gaussian_log_probs(drawn, means, log_stds) - slopes.sum(dim=-1)


@passes("squashed_log_probs")
def two_logsigmoids(drawn, means, log_stds):
    # 1 − tanh² u = 4·s(2u)·s(−2u) with the sigmoid s
    slopes = math.log(4) + functional.logsigmoid(2 * drawn) + functional.logsigmoid(-2 * drawn)
    return torch.sum(terms(drawn, means, log_stds) - slopes, dim=1)


@passes("squashed_log_probs")
def minus_two_log_cosh(drawn, means, log_stds):
    log_cosh = torch.logaddexp(drawn, -drawn) - math.log(2)
    return (terms(drawn, means, log_stds) + 2 * log_cosh).sum(-1)


@passes("squashed_log_probs")
def torch_s_own_correction(drawn, means, log_stds):
    transform = TanhTransform()
    slopes = transform.log_abs_det_jacobian(drawn, torch.tanh(drawn))
    return (Normal(means, log_stds.exp()).log_prob(drawn) - slopes).sum(-1)


@passes("squashed_log_probs")
def squashed_in_float32(drawn, means, log_stds):
    drawn, means, log_stds = drawn.float(), means.float(), log_stds.float()
    return softplus(drawn, means, log_stds)


def slope(drawn):
    """log(1 − tanh² u), right far out."""
    return 2 * (math.log(2) - drawn - functional.softplus(-2 * drawn))


def corrected(correction):
    """Subtract another correction, made of the draws, in each dimension."""

    def function(drawn, means, log_stds):
        return (terms(drawn, means, log_stds) - correction(drawn)).sum(-1)

    return function


def put_together(combined):
    """Combine the two terms [B, A] in another way."""

    def function(drawn, means, log_stds):
        return combined(terms(drawn, means, log_stds), slope(drawn))

    return function


def _tanh_in_the_density(drawn, means, log_stds):
    return (terms(drawn.tanh(), means, log_stds) - slope(drawn)).sum(-1)


def _inverse_taken(drawn, means, log_stds):
    inner = torch.atanh(drawn)
    return (terms(inner, means, log_stds) - torch.log(1 - drawn**2)).sum(-1)


def _had_back(drawn, means, log_stds):
    squashed = TransformedDistribution(Normal(means, log_stds.exp()), TanhTransform())
    return squashed.log_prob(torch.tanh(drawn)).sum(-1)


def _had_back_and_clamped(drawn, means, log_stds):
    actions = torch.tanh(drawn).clamp(-1 + 1e-6, 1 - 1e-6)
    return (terms(torch.atanh(actions), means, log_stds) - torch.log(1 - actions**2)).sum(-1)


WRONG["squashed_log_probs"] |= {
    "draw_had_back_from_the_action": _had_back,
    "draw_had_back_from_the_action#clamped": _had_back_and_clamped,
    "correction_forgotten": corrected(lambda u: 0 * u),
    "correction_added": corrected(lambda u: -slope(u)),
    "naive_logarithm": corrected(lambda u: torch.log(1 - u.tanh() ** 2)),
    "naive_logarithm#cosh": corrected(lambda u: -2 * torch.log((u.float().cosh() ** 4).sqrt())),
    "small_number_added": corrected(lambda u: torch.log(1 - u.tanh() ** 2 + 1e-6)),
    "small_number_added#smaller": corrected(lambda u: torch.log(1 - u.tanh() ** 2 + 1e-8)),
    "small_number_added#clamped": corrected(lambda u: torch.log((1 - u.tanh() ** 2).clamp(1e-6))),
    "small_number_added#action_clamped": corrected(
        lambda u: torch.log(1 - u.tanh().clamp(-1 + 1e-6, 1 - 1e-6) ** 2)
    ),
    "correction_averaged": put_together(lambda plain, steep: plain.sum(-1) - steep.mean(-1)),
    "correction_of_the_first_dimension": put_together(
        lambda plain, steep: plain.sum(-1) - steep[:, 0]
    ),
    "correction_not_summed": put_together(lambda plain, steep: plain.sum(-1, keepdim=True) - steep),
    "not_summed": put_together(lambda plain, steep: plain - steep),
    "averaged_over_the_dimensions": put_together(lambda plain, steep: (plain - steep).mean(-1)),
    "squashed_action_in_the_density": _tanh_in_the_density,
    "square_forgotten": corrected(lambda u: torch.log(1 - u.tanh())),
    "slope_not_its_logarithm": corrected(lambda u: 1 - u.tanh() ** 2),
    "correction_halved": corrected(lambda u: slope(u) / 2),
    "log_2_forgotten": corrected(lambda u: slope(u) - 2 * math.log(2)),
    "softplus_of_the_other_sign": corrected(
        lambda u: 2 * (math.log(2) - u - functional.softplus(2 * u))
    ),
    "correction_at_the_mean": lambda drawn, means, log_stds: (
        terms(drawn, means, log_stds) - slope(means.detach())
    ).sum(-1),
    "correction_at_the_mean#with_a_gradient": lambda drawn, means, log_stds: (
        terms(drawn, means, log_stds) - slope(means)
    ).sum(-1),
    "inverse_taken": _inverse_taken,
    "log_std_forgotten": lambda drawn, means, log_stds: (
        terms(drawn, means, log_stds) + log_stds - slope(drawn)
    ).sum(-1),
    "constant_forgotten": corrected(lambda u: slope(u) - 0.5 * LOG_2PI),
}


# --- sent and stored -----------------------------------------------------------------------


@passes("mended_actions")
def as_given_but_mended(means, log_stds, noise, *, low, high):
    stds = log_stds.exp()
    stored = means + stds * noise
    distances = (stored - means) / stds
    log_probs_old = (-0.5 * distances**2 - log_stds - 0.5 * LOG_2PI).sum(-1)
    return stored.clamp(low, high), stored, log_probs_old


@passes("mended_actions")
def from_the_noise(means, log_stds, noise, *, low, high):
    actions = means + log_stds.exp() * noise
    log_probs = -0.5 * noise.square().sum(-1) - log_stds.sum() - 0.5 * LOG_2PI * len(log_stds)
    return torch.clip(actions, low, high), actions, log_probs


@passes("mended_actions")
def minimum_and_maximum(means, log_stds, noise, low, high):
    normal = Normal(means, log_stds.exp())
    actions = normal.loc + normal.scale * noise
    sent = torch.minimum(torch.maximum(actions, torch.tensor(low)), torch.tensor(high))
    return [sent, actions, normal.log_prob(actions).sum(-1)]


@passes("mended_actions")
def cut_in_place_on_a_copy(means, log_stds, noise, *, low, high):
    actions = torch.addcmul(means.float(), log_stds.float().exp().expand_as(means), noise.float())
    sent = actions.clone()
    sent[sent > high] = high
    sent[sent < low] = low
    return sent, actions, by_torch(actions, means.float(), log_stds.float())


def three(sent=None, stored=None, log_prob=None):
    """The three results, each replaced by something; all get the draw and the cut draw."""

    def function(means, log_stds, noise, *, low, high):
        actions = means + log_stds.exp() * noise
        cut = actions.clamp(low, high)
        return (
            sent(actions, low, high) if sent else cut,
            stored(actions, cut) if stored else actions,
            terms(log_prob(actions, cut) if log_prob else actions, means, log_stds).sum(-1),
        )

    return function


def other_draw(drawn):
    """The draw is made in another way; what follows is right."""

    def function(means, log_stds, noise, *, low, high):
        actions = drawn(means, log_stds, noise, low, high)
        return actions.clamp(low, high), actions, terms(actions, means, log_stds).sum(-1)

    return function


def other_log_prob(reduced):
    def function(means, log_stds, noise, *, low, high):
        actions = means + log_stds.exp() * noise
        found = reduced(terms(actions, means, log_stds), log_stds)
        return actions.clamp(low, high), actions, found

    return function


def _mirrored(actions, low, high):
    back = torch.where(actions > high, 2 * high - actions, actions)
    return torch.where(back < low, 2 * low - back, back)


def _mean_cut(means, log_stds, noise, *, low, high):
    return as_given_but_mended(means.clamp(low, high), log_stds, noise, low=low, high=high)


def _mass_beyond(means, log_stds, noise, *, low, high):
    normal = Normal(means, log_stds.exp())
    actions = means + log_stds.exp() * noise
    found = normal.log_prob(actions)
    above = torch.log(1 - normal.cdf(torch.tensor(high, dtype=means.dtype)))
    below = torch.log(normal.cdf(torch.tensor(low, dtype=means.dtype)))
    found = torch.where(actions >= high, above, torch.where(actions <= low, below, found))
    return actions.clamp(low, high), actions, found.sum(-1)


def _mass_and_the_cut_action(means, log_stds, noise, *, low, high):
    sent, _, found = _mass_beyond(means, log_stds, noise, low=low, high=high)
    return sent, sent, found


WRONG["mended_actions"] |= {
    "cut_action_stored": three(None, lambda drawn, cut: cut, lambda drawn, cut: cut),
    "cut_stored_with_the_log_prob_of_the_drawn": three(None, lambda drawn, cut: cut),
    "drawn_stored_with_the_log_prob_of_the_cut": three(None, None, lambda drawn, cut: cut),
    "uncut_action_sent": three(lambda drawn, low, high: drawn),
    "upper_limit_only": three(lambda drawn, low, high: drawn.clamp(max=high)),
    "lower_limit_only": three(lambda drawn, low, high: drawn.clamp(min=low)),
    "symmetric_limits_assumed": three(lambda drawn, low, high: drawn.clamp(-high, high)),
    "mean_cut": _mean_cut,
    "noise_cut": other_draw(lambda m, s, noise, low, high: m + s.exp() * noise.clamp(low, high)),
    "noise_cut#at_one": other_draw(lambda m, s, noise, low, high: m + s.exp() * noise.clamp(-1, 1)),
    "squashed": three(
        lambda drawn, low, high: low + (high - low) * (drawn.tanh() + 1) / 2
    ),
    "squashed#limit_times_tanh": three(lambda drawn, low, high: high * drawn.tanh()),
    "mirrored_at_the_limit": three(_mirrored),
    "noise_not_scaled": other_draw(lambda m, s, noise, low, high: m + noise),
    "noise_times_log_std": other_draw(lambda m, s, noise, low, high: m + s * noise),
    "noise_times_variance": other_draw(lambda m, s, noise, low, high: m + (2 * s).exp() * noise),
    "log_std_forgotten": other_log_prob(lambda each, log_stds: (each + log_stds).sum(-1)),
    "log_prob_not_summed": other_log_prob(lambda each, log_stds: each),
    "log_prob_not_summed#averaged": other_log_prob(lambda each, log_stds: each.mean(-1)),
    "mass_beyond_the_limit": _mass_beyond,
    "mass_beyond_the_limit#cut_stored": _mass_and_the_cut_action,
}  # fmt: skip


# --- moments -------------------------------------------------------------------------------


@passes("merge_moments")
def as_the_environments_do(count, mean, m2, observations):
    both = add_rows(Moments(count, mean, m2), observations)
    return both.count, both.mean, both.m2


@passes("merge_moments")
def by_chan(count, mean, m2, observations):
    n = len(observations)
    batch_mean = observations.mean(0)
    batch_m2 = ((observations - batch_mean) ** 2).sum(0)
    d, total = batch_mean - mean, count + n
    return total, mean + d * n / total, m2 + batch_m2 + d**2 * count * n / total


@passes("merge_moments")
def by_welford(count, mean, m2, observations):
    for row in observations:
        count = count + 1
        before = row - mean
        mean = mean + before / count
        m2 = m2 + before * (row - mean)
    return count, mean, m2


@passes("merge_moments")
def by_moving_both_groups(count, mean, m2, observations):
    n = observations.shape[0]
    common = (count * mean + observations.sum(0)) / (count + n)
    old = m2 + count * (mean - common) ** 2
    return count + n, common, old + (observations - common).square().sum(dim=0)


@passes("merge_moments")
def around_the_old_mean_then_moved(count, mean, m2, observations):
    n, from_old = observations.shape[0], observations - mean
    moved = from_old.sum(0) / (count + n)
    m2 = m2 + (from_old**2).sum(0) - (count + n) * moved**2
    return float(count) + n, mean + moved, m2


@passes("merge_moments")
def with_variances(count, mean, m2, observations):
    n = float(observations.shape[0])
    batch_mean = observations.mean(dim=0)
    batch_variance = observations.var(dim=0, correction=0)
    share = n / (count + n)
    m2 = m2 + n * batch_variance + (batch_mean - mean) ** 2 * count * share
    return count + n, (1 - share) * mean + share * batch_mean, m2


@passes("merge_moments")
def in_numpy(count, mean, m2, observations):
    rows, mean, m2 = (each.double().numpy() for each in (observations, mean, m2))
    n, total = len(rows), count.item() + len(rows)
    d = rows.mean(0) - mean
    found = m2 + n * rows.var(0) + d * d * count.item() * n / total
    return total, torch.from_numpy(mean + d * n / total), torch.from_numpy(found)


def merged(mean=None, m2=None, count=None):
    """The three, each replaced; functions get n, n of before, both means and both m2."""

    def function(n_old, mean_old, m2_old, observations):
        n, new = len(observations), observations.mean(0)
        squares = ((observations - new) ** 2).sum(0)
        total = n_old + n
        common = mean_old + (new - mean_old) * n / total
        d = new - mean_old
        return (
            count(n_old, n, observations) if count else total,
            mean(n_old, n, mean_old, new) if mean else common,
            m2(n_old, n, d, m2_old, squares) if m2 else m2_old + squares + d**2 * n_old * n / total,
        )

    return function


def _mean_updated_first(count, mean, m2, observations):
    n, new = len(observations), observations.mean(0)
    squares = ((observations - new) ** 2).sum(0)
    mean = mean + (new - mean) * n / (count + n)
    return count + n, mean, m2 + squares + (new - mean) ** 2 * count * n / (count + n)


def _around_the_new_mean(count, mean, m2, observations):
    n = len(observations)
    common = mean + (observations.mean(0) - mean) * n / (count + n)
    return count + n, common, m2 + ((observations - common) ** 2).sum(0)


def _features_mixed(count, mean, m2, observations):
    n, new = len(observations), observations.mean()
    squares = ((observations - new) ** 2).sum() / observations.shape[1]
    d = new - mean
    return count + n, mean + d * n / (count + n), m2 + squares + d**2 * count * n / (count + n)


def _forgetting(count, mean, m2, observations):
    new = observations.mean(0)
    squares = ((observations - new) ** 2).sum(0)
    return count + len(observations), 0.99 * mean + 0.01 * new, 0.99 * m2 + 0.01 * squares


def _batch_alone(count, mean, m2, observations):
    new = observations.mean(0)
    return float(len(observations)), new, ((observations - new) ** 2).sum(0)


def _counted_as_one(count, mean, m2, observations):
    new = observations.mean(0)
    d = new - mean
    squares = ((observations - new) ** 2).sum(0)
    return count + 1, mean + d / (count + 1), m2 + squares + d**2 * count / (count + 1)


def _sample_variance(n_old, n, d, m2, squares):
    # .var() warns where 0 is divided by 0
    return m2 + n * squares / max(n - 1, 1) + d**2 * n_old * n / (n_old + n)


WRONG["merge_moments"] |= {
    "distance_of_the_means_forgotten": merged(m2=lambda n_old, n, d, m2, new: m2 + new),
    "distance_not_squared": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d * n_old * n / (n_old + n)
    ),
    "distance_not_squared#size": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d.abs() * n_old * n / (n_old + n)
    ),
    "distance_with_the_wrong_weight": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2 * n / (n_old + n)
    ),
    "distance_with_the_wrong_weight#product": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2 * n_old * n
    ),
    "distance_with_the_wrong_weight#none": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2
    ),
    "distance_with_the_wrong_weight#squared_total": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2 * n_old * n / (n_old + n) ** 2
    ),
    "distance_with_the_old_count": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2 * n_old
    ),
    "mean_updated_first": _mean_updated_first,
    "squares_around_the_old_mean": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new + d**2 * n
    ),
    "squares_around_the_new_mean_only": _around_the_new_mean,
    "sample_variance_of_the_batch": merged(m2=_sample_variance),
    "variance_for_the_sum": merged(
        m2=lambda n_old, n, d, m2, new: m2 + new / n + d**2 * n_old * n / (n_old + n)
    ),
    "variance_returned": merged(
        m2=lambda n_old, n, d, m2, new: (
            (m2 + new + d**2 * n_old * n / (n_old + n)) / (n_old + n)
        )
    ),
    "mean_of_the_two_means": merged(mean=lambda n_old, n, old, new: (old + new) / 2),
    "weights_swapped": merged(
        mean=lambda n_old, n, old, new: old + (new - old) * n_old / (n_old + n)
    ),
    "batch_alone": _batch_alone,
    "mean_kept": merged(mean=lambda n_old, n, old, new: old.clone()),
    "counted_as_one": _counted_as_one,
    "counted_as_one#count_alone": merged(count=lambda n_old, n, rows: n_old + 1),
    "features_mixed": _features_mixed,
    "forgetting_average": _forgetting,
    "entries_counted": merged(count=lambda n_old, n, rows: n_old + rows.numel()),
}  # fmt: skip


# --- rewards -------------------------------------------------------------------------------


def running(rewards, ended, gamma):
    """The running return of each step, [T, N]."""
    before, rows = torch.zeros_like(rewards[0]), []
    for reward, end in zip(rewards, ended, strict=True):
        rows.append(reward + gamma * before)
        before = torch.where(end, 0.0, rows[-1])
    return torch.stack(rows)


def deviation(values):
    # .std() warns where 0 is divided by 0
    return (values - values.mean()).square().mean().sqrt()


@passes("scaled_rewards")
def forward_in_time(rewards, ended, *, gamma):
    returns, before = [], torch.zeros(rewards.shape[1], dtype=rewards.dtype)
    for t in range(rewards.shape[0]):
        before = rewards[t] + gamma * before
        returns.append(before)
        before = before * (~ended[t])
    return rewards / torch.stack(returns).std(correction=0)


@passes("scaled_rewards")
def mean_square_minus_squared_mean(rewards, ended, *, gamma):
    returns = running(rewards, ended, gamma)
    return rewards / (returns.square().mean() - returns.mean() ** 2).sqrt()


@passes("scaled_rewards")
def environment_by_environment(rewards, ended, gamma):
    found = []
    for column, ends in zip(rewards.T.tolist(), ended.T.tolist(), strict=True):
        total = 0.0
        for reward, end in zip(column, ends, strict=True):
            total = reward + gamma * total
            found.append(total)
            total = 0.0 if end else total
    return rewards / statistics.pstdev(found)


@passes("scaled_rewards")
def table_filled_in_float32(rewards, ended, *, gamma):
    rewards = rewards.float()
    returns = rewards.clone()
    for t in range(1, len(rewards)):
        returns[t] += gamma * returns[t - 1] * (1 - ended[t - 1].float())
    return rewards / returns.var(correction=0).sqrt()


@passes("scaled_rewards")
def small_number_for_safety(rewards, ended, *, gamma):
    table, ends = rewards.double().numpy(), ended.numpy()
    returns, before = np.zeros_like(table), np.zeros(table.shape[1])
    for t, row in enumerate(table):
        returns[t] = before = row + gamma * before
        before = np.where(ends[t], 0.0, before)
    return torch.from_numpy(table / np.sqrt(returns.var() + 1e-8))


def over(spread_of):
    """Divide by another spread of the running returns."""

    def function(rewards, ended, *, gamma):
        return rewards / spread_of(running(rewards, ended, gamma))

    return function


def summed(returns_of):
    """Take the spread of other returns."""

    def function(rewards, ended, *, gamma):
        return rewards / deviation(returns_of(rewards, ended, gamma))

    return function


def from_all(combined):
    def function(rewards, ended, *, gamma):
        return combined(rewards, running(rewards, ended, gamma))

    return function


def _early(rewards, ended, gamma):
    before, rows = torch.zeros_like(rewards[0]), []
    for reward, end in zip(rewards, ended, strict=True):
        before = reward + gamma * torch.where(end, 0.0, before)
        rows.append(before)
    return torch.stack(rows)


def _zero_at_the_end(rewards, ended, gamma):
    before, rows = torch.zeros_like(rewards[0]), []
    for reward, end in zip(rewards, ended, strict=True):
        before = torch.where(end, 0.0, reward + gamma * before)
        rows.append(before)
    return torch.stack(rows)


def _on_the_reward(rewards, ended, gamma):
    before, rows = torch.zeros_like(rewards[0]), []
    for reward, end in zip(rewards, ended, strict=True):
        rows.append(before + gamma * reward)
        before = torch.where(end, 0.0, rows[-1])
    return torch.stack(rows)


def _ahead(rewards, ended, gamma):
    following, rows = torch.zeros_like(rewards[0]), []
    for reward, end in zip(rewards.flip(0), ended.flip(0), strict=True):
        following = reward + gamma * torch.where(end, 0.0, following)
        rows.append(following)
    return torch.stack(rows[::-1])


def _across(rewards, ended, gamma):
    return running(rewards.T, ended.T, gamma).T


def _so_far(rewards, ended, *, gamma):
    returns = running(rewards, ended, gamma)
    spreads = [deviation(returns[: t + 1]) for t in range(len(returns))]
    return rewards / (torch.stack(spreads).unsqueeze(1) + 1e-8)


WRONG["scaled_rewards"] |= {
    "spread_so_far": _so_far,
    "mean_of_the_returns_removed": from_all(
        lambda rewards, returns: (rewards - returns.mean()) / deviation(returns)
    ),
    "mean_of_the_rewards_removed": from_all(
        lambda rewards, returns: (rewards - rewards.mean()) / deviation(returns)
    ),
    "spread_of_the_rewards": summed(lambda rewards, ended, gamma: rewards),
    "spread_of_the_rewards#and_mean": from_all(
        lambda rewards, returns: (rewards - rewards.mean()) / deviation(rewards)
    ),
    "variance_for_the_deviation": over(lambda returns: deviation(returns) ** 2),
    "ends_ignored": summed(
        lambda rewards, ended, gamma: running(rewards, torch.zeros_like(ended), gamma)
    ),
    "reset_one_step_early": summed(_early),
    "reset_one_step_early#set_to_zero": summed(_zero_at_the_end),
    "gamma_forgotten": summed(lambda rewards, ended, gamma: running(rewards, ended, 1.0)),
    "gamma_on_the_reward": summed(_on_the_reward),
    "looks_ahead": summed(_ahead),
    "sample_deviation": over(
        lambda returns: deviation(returns) * math.sqrt(returns.numel() / (returns.numel() - 1))
    ),
    "each_environment_alone": over(
        lambda returns: (returns - returns.mean(0)).square().mean(0).sqrt()
    ),
    "each_step_alone": over(
        lambda returns: (returns - returns.mean(1, True)).square().mean(1, True).sqrt()
    ),
    "environments_mixed": summed(_across),
    "returns_scaled": from_all(lambda rewards, returns: returns / deviation(returns)),
    "multiplied": from_all(lambda rewards, returns: rewards * deviation(returns)),
    "root_mean_square": over(lambda returns: returns.square().mean().sqrt()),
    "largest_return": over(lambda returns: returns.abs().max()),
}


# --- slow definitions ----------------------------------------------------------------------


def log_density(a, mean, log_std):
    sigma = math.exp(log_std)
    return -((a - mean) ** 2) / (2 * sigma * sigma) - math.log(sigma * math.sqrt(2 * math.pi))


def log_probs_slowly(actions, means, log_stds):
    return [
        math.fsum(map(log_density, action, mean, log_stds))
        for action, mean in zip(actions, means, strict=True)
    ]


def scores_slowly(actions, means, log_stds):
    """By differences of the density's logarithm."""
    step = 1e-4
    both = ([], [])
    for action, mean in zip(actions, means, strict=True):
        rows = ([], [])
        for a, mu, s in zip(action, mean, log_stds, strict=True):
            up, down = (log_density(a, mu + side * step, s) for side in (1, -1))
            rows[0].append((up - down) / (2 * step))
            up, down = (log_density(a, mu, s + side * step) for side in (1, -1))
            rows[1].append((up - down) / (2 * step))
        for table, row in zip(both, rows, strict=True):
            table.append(row)
    return both


def squashed_slowly(drawn, means, log_stds):
    """The Gaussian's logarithm minus that of the slope, 1/cosh² written without a difference."""

    def log_slope(u):
        return math.log(4) - 2 * abs(u) - 2 * math.log(1 + math.exp(-2 * abs(u)))

    plain = log_probs_slowly(drawn, means, log_stds)
    return [each - math.fsum(map(log_slope, row)) for each, row in zip(plain, drawn, strict=True)]


def actions_slowly(means, log_stds, noise, *, low, high):
    drawn = [
        [mu + math.exp(s) * e for mu, s, e in zip(mean, log_stds, row, strict=True)]
        for mean, row in zip(means, noise, strict=True)
    ]
    sent = [[max(low, min(high, a)) for a in action] for action in drawn]
    return sent, drawn, log_probs_slowly(drawn, means, log_stds)


def moments_slowly(count, mean, m2, observations):
    """Stand-ins with the same moments, and the observations: then from the definition."""
    n = int(count)
    means, squares = [], []
    for feature, (mu, total) in enumerate(zip(mean, m2, strict=True)):
        away = math.sqrt(total / 2)
        past = [mu - away, mu + away] + [mu] * (n - 2) if n > 1 else [mu] * n
        values = past + [row[feature] for row in observations]
        means.append(statistics.fmean(values))
        squares.append(math.fsum((value - means[-1]) ** 2 for value in values))
    return n + len(observations), means, squares


def scaled_slowly(rewards, ended, *, gamma):
    """Each running return as a sum over the steps of its episode so far."""
    returns = []
    for n in range(len(rewards[0])):
        for t in range(len(rewards)):
            start = max((k + 1 for k in range(t) if ended[k][n]), default=0)
            returns.append(sum(gamma ** (t - k) * rewards[k][n] for k in range(start, t + 1)))
    spread = statistics.pstdev(returns)
    return [[reward / spread for reward in row] for row in rewards]


ORACLES = {
    "gaussian_log_probs": log_probs_slowly,
    "gaussian_scores": scores_slowly,
    "squashed_log_probs": squashed_slowly,
    "mended_actions": actions_slowly,
    "merge_moments": moments_slowly,
    "scaled_rewards": scaled_slowly,
}
