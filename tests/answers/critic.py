"""Answers to the exercises of lesson 05."""

import math
import statistics

import numpy as np
import torch
from mistakes import mistakes_of
from torch.distributions import Categorical
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import critic

EXERCISES = (
    "optimal_baseline",
    "leave_one_out_baseline",
    "value_loss",
    "mended_value_loss",
    "clipped_value_loss",
    "explained_variance",
    "eight_numbers",
    "actor_critic_gradients",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

for name in (
    "optimal_baseline",
    "leave_one_out_baseline",
    "value_loss",
    "clipped_value_loss",
    "explained_variance",
):
    RIGHT[name]["package"] = getattr(critic, name)
# These break what the exercises leave out: masks, shapes that differ, returns that do not vary.
LEFT_OUT = (
    "column_against_row",
    "masked_targets_in_the_backward_pass",
    "zero_where_nothing_varies",
    "constant_returns_answered",
)
for mistake in mistakes_of("critic"):
    if mistake.breaks in EXERCISES and mistake.name not in LEFT_OUT:
        WRONG[mistake.breaks][mistake.name] = mistake.function


# --- the baseline with the least noise -----------------------------------------------------


@passes("optimal_baseline")
def two_sums(probabilities, scores, returns):
    squares = (scores**2).sum(dim=1)
    return (probabilities * squares * returns).sum() / (probabilities * squares).sum()


@passes("optimal_baseline")
def normalised_weights(probabilities, scores, returns):
    weights = probabilities * scores.norm(dim=-1) ** 2
    weights = weights / weights.sum()
    return torch.dot(weights, returns)


@passes("optimal_baseline")
def draw_by_draw(probabilities, scores, returns):
    above = below = 0.0
    rows = zip(probabilities.tolist(), scores.tolist(), returns.tolist(), strict=True)
    for chance, score, earned in rows:
        weight = chance * sum(each**2 for each in score)
        above, below = above + weight * earned, below + weight
    return above / below


@passes("optimal_baseline")
def weighted_average(probabilities, scores, returns):
    p, s, R = (each.double().numpy() for each in (probabilities, scores, returns))
    return np.average(R, weights=p * np.einsum("np,np->n", s, s))


@passes("optimal_baseline")
def over_parameters_too(probabilities, scores, returns):
    weights = probabilities.float()[:, None] * scores.float() ** 2
    return (weights * returns.float().unsqueeze(1)).sum() / weights.sum()


def weighted(weights_of):
    """A weighted mean of the returns, with weights of probabilities [N] and scores [N, P]."""

    def function(probabilities, scores, returns):
        weights = weights_of(probabilities, scores)
        return (weights * returns).sum() / weights.sum()

    return function


def long(scores):
    return scores.square().sum(-1)


@breaks("optimal_baseline")
def returns_without_weights(probabilities, scores, returns):
    return returns.mean()


@breaks("optimal_baseline")
def one_for_each_parameter(probabilities, scores, returns):
    weights = probabilities[:, None] * scores**2
    return (weights * returns[:, None]).sum(0) / weights.sum(0)


def _mean_over_the_parameters(probabilities, scores, returns):
    return one_for_each_parameter(probabilities, scores, returns).mean()


@breaks("optimal_baseline")
def upside_down(probabilities, scores, returns):
    weights = probabilities * long(scores)
    return weights.sum() / (weights * returns).sum()


@breaks("optimal_baseline")
def score_times_return(probabilities, scores, returns):
    lengths = scores.norm(dim=-1)
    return (probabilities * lengths * returns).sum() / (probabilities * lengths**2).sum()


@breaks("optimal_baseline")
def largest_return(probabilities, scores, returns):
    return returns[(probabilities * long(scores)).argmax()]


@breaks("optimal_baseline")
def length_of_the_parameters(probabilities, scores, returns):
    weights = probabilities * long(scores).sum()
    return (weights * returns).sum()


def _signed_slope(probabilities, scores, returns):
    one = scores.sum(-1)
    return (probabilities * one * returns).sum() / (probabilities * one**2).sum()


WRONG["optimal_baseline"] |= {
    "one_for_each_parameter#averaged": _mean_over_the_parameters,
    "score_times_return#signed": _signed_slope,
    "entries_added_before_squaring": weighted(
        lambda chances, scores: chances * scores.sum(-1) ** 2
    ),
    "short_scores_count_more": weighted(lambda chances, scores: chances / long(scores)),
    "probabilities_squared": weighted(lambda chances, scores: chances**2 * long(scores)),
    "score_not_squared#entries": weighted(lambda chances, scores: chances * scores.abs().sum(-1)),
}


# --- the mean of the others ----------------------------------------------------------------


@passes("leave_one_out_baseline")
def sum_minus_itself(returns):
    return (returns.sum(dim=1, keepdim=True) - returns) / (returns.size(1) - 1)


@passes("leave_one_out_baseline")
def from_the_mean(returns):
    k = returns.shape[-1]
    return (k * returns.mean(-1, keepdim=True) - returns) / (k - 1)


@passes("leave_one_out_baseline")
def one_left_out_at_a_time(returns):
    k = returns.shape[1]
    found = [returns[:, [j for j in range(k) if j != i]].mean(1) for i in range(k)]
    return torch.stack(found, dim=1)


@passes("leave_one_out_baseline")
def matrix_of_others(returns):
    k = returns.shape[-1]
    others = (torch.ones(k, k) - torch.eye(k)) / (k - 1)
    return returns.float() @ others


@passes("leave_one_out_baseline")
def row_by_row(returns):
    rows = returns.tolist()
    found = [[(sum(row) - each) / (len(row) - 1) for each in row] for row in rows]
    return torch.tensor(found, dtype=returns.dtype)


def others_of(returns):
    return torch.stack(
        [torch.cat([row[:i], row[i + 1 :]]) for row in returns for i in range(len(row))]
    )


WRONG["leave_one_out_baseline"] |= {
    "itself_counted_and_not_counted": lambda returns: (
        returns.sum(-1, keepdim=True) / (returns.shape[-1] - 1)
    ).expand_as(returns),
    "itself_included#of_all": lambda returns: returns.mean().expand_as(returns),
    "one_for_the_row": lambda returns: returns.mean(-1),
    "one_for_the_row#axis_kept": lambda returns: returns.mean(-1, keepdim=True),
    "subtracted_already": lambda returns: returns - sum_minus_itself(returns),
    "subtracted_already#mean_of_all": lambda returns: returns - returns.mean(-1, keepdim=True),
    "over_the_questions": lambda returns: (
        (returns.sum(0, keepdim=True) - returns) / (len(returns) - 1)
    ),
    "over_the_questions#and_itself": lambda returns: returns.mean(0, keepdim=True).expand_as(
        returns
    ),
    "median_of_the_others": lambda returns: torch.quantile(others_of(returns), 0.5, dim=-1).view_as(
        returns
    ),
    "best_of_the_others": lambda returns: others_of(returns).amax(-1).view_as(returns),
    "next_draw_only": lambda returns: returns.roll(-1, -1),
    "next_draw_only#previous": lambda returns: returns.roll(1, -1),
    "sum_of_the_others": lambda returns: returns.sum(-1, keepdim=True) - returns,
    "earlier_draws_only": lambda returns: (
        (returns.cumsum(-1) - returns)
        / torch.arange(returns.shape[-1], dtype=returns.dtype).clamp(min=1)
    ),
    "weighted_by_the_others": lambda returns: (
        (returns - returns.mean(-1, keepdim=True)) / (returns.std(-1, keepdim=True) + 1e-8)
    ),
}


# --- the value loss ------------------------------------------------------------------------


@passes("value_loss")
def half_mean_square(values, returns):
    return 0.5 * ((returns.detach() - values) ** 2).mean()


@passes("value_loss")
def by_torch(values, returns):
    return functional.mse_loss(values, returns.detach()) / 2


@passes("value_loss")
def value_loss_in_a_loop(values, returns):
    total = 0.0
    for value, target in zip(values.flatten(), returns.flatten().tolist(), strict=True):
        total = total + (value - target) ** 2
    return total / (2 * values.numel())


@passes("value_loss")
def length_of_the_errors(values, returns, mask=None):
    errors = (values - returns.detach()).float().flatten()
    return torch.dot(errors, errors) / errors.numel() / 2


@passes("value_loss")
def without_gradient_first(values, returns):
    with torch.no_grad():
        targets = returns.clone()
    return torch.mean(torch.square(values.reshape(-1) - targets.reshape(-1))) * 0.5


def errors_to(reduced):
    def loss(values, returns):
        return reduced(values - returns.detach())

    return loss


@breaks("value_loss")
def column_against_row(values, returns):
    return ((values.reshape(-1, 1) - returns.detach().reshape(1, -1)) ** 2).mean() / 2


@breaks("value_loss")
def targets_learn_instead(values, returns):
    return ((values.detach() - returns) ** 2).mean() / 2


@breaks("value_loss")
def relative_error(values, returns):
    targets = returns.detach()
    return (((values - targets) / (targets.abs() + 1e-8)) ** 2).mean() / 2


def _relative_to_both(values, returns):
    targets = returns.detach()
    return (((values - targets) / targets) ** 2).mean() / 2


@breaks("value_loss")
def returns_normalised(values, returns):
    targets = returns.detach()
    # .std() warns where 0 is divided by 0
    deviation = (targets - targets.mean()).square().mean().sqrt()
    return ((values - (targets - targets.mean()) / (deviation + 1e-8)) ** 2).mean() / 2


WRONG["value_loss"] |= {
    "relative_error#nothing_added": _relative_to_both,
    "summed_over_the_batch": errors_to(lambda errors: (errors**2).sum() / 2),
    "summed_over_the_batch#and_no_half": errors_to(lambda errors: (errors**2).sum()),
    "absolute_error": errors_to(lambda errors: errors.abs().mean()),
    "absolute_error#halved": errors_to(lambda errors: errors.abs().mean() / 2),
    "huber": errors_to(lambda errors: functional.smooth_l1_loss(errors, torch.zeros_like(errors))),
    "root_of_the_mean": errors_to(lambda errors: (errors**2).mean().sqrt()),
    "root_of_the_mean#halved": errors_to(lambda errors: (errors**2).mean().sqrt() / 2),
    "mean_error_squared": errors_to(lambda errors: errors.mean() ** 2 / 2),
    "spread_of_the_errors": errors_to(lambda errors: errors.var(correction=0) / 2),
    "not_squared": errors_to(lambda errors: errors.mean()),
    "not_squared#halved": errors_to(lambda errors: errors.mean() / 2),
    "not_averaged": errors_to(lambda errors: errors**2 / 2),
    "sign_turned": errors_to(lambda errors: -(errors**2).mean() / 2),
    "halved_twice": errors_to(lambda errors: (errors**2).mean() / 4),
    "averaged_over_one_axis": errors_to(lambda errors: (errors**2).mean(-1) / 2),
    "averaged_over_one_axis#first": errors_to(lambda errors: (errors**2).mean(0) / 2),
}


# --- the mended loss -----------------------------------------------------------------------


@passes("mended_value_loss")
def as_given_but_mended(observations, weights, returns):
    values = observations @ weights
    errors = values.squeeze(-1) - returns.detach()
    return (errors**2).mean() / 2


@passes("mended_value_loss")
def returns_as_a_column(observations, weights, returns):
    errors = observations @ weights - returns.detach().unsqueeze(-1)
    return errors.square().mean() / 2


@passes("mended_value_loss")
def weights_as_a_row(observations, weights, returns):
    values = observations @ weights[:, 0]
    return functional.mse_loss(values, returns.detach()) / 2


@passes("mended_value_loss")
def diagonal_of_the_table(observations, weights, returns):
    values = observations @ weights
    return ((values - returns.detach()).diagonal() ** 2).mean() / 2


@passes("mended_value_loss")
def turned_values(observations, weights, returns):
    values = (observations @ weights).T
    return ((values - returns.detach()) ** 2).mean() / 2


@passes("mended_value_loss")
def sample_by_sample_in_float32(observations, weights, returns):
    total = torch.zeros(())
    for row, target in zip(observations.float(), returns.tolist(), strict=True):
        total = total + (row @ weights.float()[:, 0] - target) ** 2
    return total / len(returns) / 2


def given_but(errors_of, reduced=lambda errors: (errors**2).mean() / 2):
    """The loss as it is given, with one line replaced; the values are a column."""

    def loss(observations, weights, returns):
        return reduced(errors_of(observations @ weights, returns.detach()))

    return loss


def matched(values, returns):
    return values[:, 0] - returns


def _targets_attached(observations, weights, returns):
    return (((observations @ weights)[:, 0] - returns) ** 2).mean() / 2


WRONG["mended_value_loss"] |= {
    "column_against_row": given_but(lambda values, returns: values - returns),
    "values_averaged_first": given_but(lambda values, returns: values.mean() - returns),
    "returns_averaged_first": given_but(lambda values, returns: values - returns.mean()),
    "first_return_for_all": given_but(lambda values, returns: values - returns[0]),
    "first_value_for_all": given_but(lambda values, returns: values[0] - returns),
    "returns_sorted": given_but(
        lambda values, returns: values[:, 0].sort().values - returns.sort().values
    ),
    "returns_sorted#alone": given_but(lambda values, returns: values[:, 0] - returns.sort().values),
    "returns_turned_round": given_but(lambda values, returns: values[:, 0] - returns.flip(0)),
    "gradient_through_the_targets": _targets_attached,
    "critic_cut_off": given_but(lambda values, returns: matched(values.detach(), returns)),
    "summed_over_the_table": given_but(lambda values, returns: (values - returns).sum(1)),
    "summed_over_the_table#columns": given_but(lambda values, returns: (values - returns).sum(0)),
    "half_forgotten": given_but(matched, lambda errors: (errors**2).mean()),
    "summed_over_the_batch": given_but(matched, lambda errors: (errors**2).sum() / 2),
    "errors_added_up": given_but(matched, lambda errors: errors.mean() ** 2 / 2),
    "errors_added_up#sum": given_but(matched, lambda errors: errors.sum() ** 2 / 2),
    "absolute_error": given_but(matched, lambda errors: errors.abs().mean() / 2),
}


# --- the clipped value loss ----------------------------------------------------------------


def two_errors(values, returns, old, epsilon):
    moved = old.detach() + (values - old.detach()).clamp(-epsilon, epsilon)
    return (values - returns.detach()) ** 2, (moved - returns.detach()) ** 2


@passes("clipped_value_loss")
def larger_of_two(values, returns, *, values_old, clip_epsilon):
    plain, clipped = two_errors(values, returns, values_old, clip_epsilon)
    return 0.5 * torch.max(plain, clipped).mean()


@passes("clipped_value_loss")
def clamped_between_two_tensors(values, returns, *, values_old, clip_epsilon):
    old, targets = values_old.detach(), returns.detach()
    moved = torch.clamp(values, old - clip_epsilon, old + clip_epsilon)
    errors = torch.stack([values - targets, moved - targets]) ** 2
    return errors.amax(dim=0).mean() / 2


@passes("clipped_value_loss")
def chosen_by_distance(values, returns, values_old, clip_epsilon):
    old, targets = values_old.detach(), returns.detach()
    moved = torch.min(torch.max(values, old - clip_epsilon), old + clip_epsilon)
    farther = (moved - targets).abs() > (values - targets).abs()
    return ((torch.where(farther, moved, values) - targets) ** 2).mean() / 2


@passes("clipped_value_loss")
def clipped_sample_by_sample(values, returns, *, values_old, clip_epsilon, mask=None):
    total = values.new_zeros(())
    rows = (values.flatten(), returns.flatten().tolist(), values_old.flatten().tolist())
    for value, target, old in zip(*rows, strict=True):
        moved = old + min(max(value - old, -clip_epsilon), clip_epsilon)
        total = total + max((value - target) ** 2, (moved - target) ** 2)
    return total / values.numel() / 2


@passes("clipped_value_loss")
def clipped_in_float32(values, returns, *, values_old, clip_epsilon):
    old, targets = values_old.detach().float(), returns.detach().float()
    change = values.float() - old
    moved = old + change.clip(-clip_epsilon, clip_epsilon)
    return torch.maximum((old + change - targets) ** 2, (moved - targets) ** 2).mean().div(2)


def clipped(errors_of, reduced=lambda errors: errors.mean() / 2):
    """Right but for what is handed over: errors of values, targets, old values and ε."""

    def loss(values, returns, *, values_old, clip_epsilon):
        constants = returns.detach(), values_old.detach(), clip_epsilon
        return reduced(errors_of(values, *constants))

    return loss


def against(moved_of):
    """The larger of the plain error and that of another moved value."""

    def errors(values, targets, old, epsilon):
        moved = moved_of(values, targets, old, epsilon)
        return torch.maximum((values - targets) ** 2, (moved - targets) ** 2)

    return clipped(errors)


def right_errors(values, targets, old, epsilon):
    return torch.maximum(*two_errors(values, targets, old, epsilon))


def _old_attached(values, returns, *, values_old, clip_epsilon):
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    targets = returns.detach()
    return torch.maximum((values - targets) ** 2, (moved - targets) ** 2).mean() / 2


def _returns_attached(values, returns, *, values_old, clip_epsilon):
    old = values_old.detach()
    moved = old + (values - old).clamp(-clip_epsilon, clip_epsilon)
    return torch.maximum((values - returns) ** 2, (moved - returns) ** 2).mean() / 2


def _clipped_columns(values, returns, *, values_old, clip_epsilon):
    old, targets = values_old.detach().reshape(-1, 1), returns.detach().reshape(1, -1)
    column = values.reshape(-1, 1)
    moved = old + (column - old).clamp(-clip_epsilon, clip_epsilon)
    return torch.maximum((column - targets) ** 2, (moved - targets) ** 2).mean() / 2


def _means_compared(values, returns, *, values_old, clip_epsilon):
    plain, moved = two_errors(values, returns, values_old, clip_epsilon)
    return torch.maximum(plain.mean(), moved.mean()) / 2


def _smaller_with_constants(values, targets, old, epsilon):
    return torch.minimum(*two_errors(values, targets, old, epsilon))


WRONG["clipped_value_loss"] |= {
    "minimum_for_maximum#careful": clipped(_smaller_with_constants),
    "clip_as_a_ratio#careful": against(
        lambda values, targets, old, epsilon: old * (values / old).clamp(1 - epsilon, 1 + epsilon)
    ),
    "old_values_with_gradient": _old_attached,
    "gradient_through_the_returns": _returns_attached,
    "half_forgotten": clipped(right_errors, torch.mean),
    "summed_over_the_batch": clipped(right_errors, lambda errors: errors.sum() / 2),
    "no_clip": clipped(lambda values, targets, old, epsilon: (values - targets) ** 2),
    "clipped_around_the_return": clipped(
        lambda values, targets, old, epsilon: (values - targets).clamp(-epsilon, epsilon) ** 2
    ),
    "clipped_around_zero": against(
        lambda values, targets, old, epsilon: values.clamp(-epsilon, epsilon)
    ),
    "clipped_around_zero#added": against(
        lambda values, targets, old, epsilon: old + values.clamp(-epsilon, epsilon)
    ),
    "returns_clipped": clipped(
        lambda values, targets, old, epsilon: torch.maximum(
            (values - targets) ** 2,
            (values - (old + (targets - old).clamp(-epsilon, epsilon))) ** 2,
        )
    ),
    "errors_clipped": clipped(
        lambda values, targets, old, epsilon: ((values - targets) ** 2).clamp(max=epsilon)
    ),
    "epsilon_ignored": against(
        lambda values, targets, old, epsilon: old + (values - old).clamp(-0.2, 0.2)
    ),
    "old_value_for_the_clipped": against(lambda values, targets, old, epsilon: old),
    "means_compared": _means_compared,
    "move_taken_for_the_value": against(
        lambda values, targets, old, epsilon: (values - old).clamp(-epsilon, epsilon)
    ),
    "half_of_the_gradient": against(
        lambda values, targets, old, epsilon: old + (values.detach() - old).clamp(-epsilon, epsilon)
    ),
    "one_sided": against(
        lambda values, targets, old, epsilon: old + (values - old).clamp(max=epsilon)
    ),
    "one_sided#below": against(
        lambda values, targets, old, epsilon: old + (values - old).clamp(min=-epsilon)
    ),
    "errors_added": clipped(
        lambda values, targets, old, epsilon: sum(two_errors(values, targets, old, epsilon))
    ),
    "errors_added#averaged": clipped(
        lambda values, targets, old, epsilon: sum(two_errors(values, targets, old, epsilon)) / 2
    ),
    "sign_turned": clipped(right_errors, lambda errors: -errors.mean() / 2),
    "column_against_row": _clipped_columns,
}


# --- explained variance --------------------------------------------------------------------


@passes("explained_variance")
def two_variances(values, returns):
    return 1 - (returns - values).var(unbiased=False) / returns.var(unbiased=False)


@passes("explained_variance")
def both_with_one_less(values, returns):
    return 1 - torch.var(returns - values) / torch.var(returns)


@passes("explained_variance")
def with_numpy(values, returns):
    V, R = values.numpy(), returns.numpy()
    return 1 - np.var(R - V) / np.var(R)


@passes("explained_variance")
def with_statistics(values, returns):
    earned = returns.flatten().tolist()
    errors = (values - returns).flatten().tolist()
    return 1 - statistics.pvariance(errors) / statistics.pvariance(earned)


@passes("explained_variance")
def sums_of_squares(values, returns):
    errors = (returns - values).float()
    missed = ((errors - errors.mean()) ** 2).sum()
    there = ((returns.float() - returns.float().mean()) ** 2).sum()
    return (there - missed) / there


@passes("explained_variance")
def tiny_number_below(values, returns):
    spread = returns.var(unbiased=False)
    return 1 - (returns - values).var(unbiased=False) / (spread + 1e-8)


def variance(numbers):
    return numbers.var(correction=0)


@breaks("explained_variance")
def correlation(values, returns):
    joint = ((values - values.mean()) * (returns - returns.mean())).mean()
    return joint / (variance(values) * variance(returns)).sqrt()


@breaks("explained_variance")
def column_by_column(values, returns):
    shares = 1 - (returns - values).var(0, correction=0) / returns.var(0, correction=0)
    return shares.mean()


def _along_the_last(values, returns):
    shares = 1 - (returns - values).var(-1, correction=0) / returns.var(-1, correction=0)
    return shares.mean()


WRONG["explained_variance"] |= {
    "deviations_for_variances": lambda values, returns: (
        1 - (variance(returns - values) / variance(returns)).sqrt()
    ),
    "counts_differ": lambda values, returns: 1 - (returns - values).var() / variance(returns),
    "counts_differ#other": lambda values, returns: 1 - variance(returns - values) / returns.var(),
    "means_of_squares": lambda values, returns: (
        1 - ((returns - values) ** 2).mean() / (returns**2).mean()
    ),
    "never_below_zero": lambda values, returns: two_variances(values, returns).clamp(min=0),
    "column_by_column#rows": _along_the_last,
    "column_against_row": lambda values, returns: (
        1 - variance(returns.reshape(1, -1) - values.reshape(-1, 1)) / variance(returns)
    ),
    "percent": lambda values, returns: 100 * two_variances(values, returns),
    "absolute_errors": lambda values, returns: (
        1 - (returns - values).abs().mean() / (returns - returns.mean()).abs().mean()
    ),
    "upside_down": lambda values, returns: 1 - variance(returns) / variance(returns - values),
    "sums_not_differences": lambda values, returns: (
        1 - variance(returns + values) / variance(returns)
    ),
}


# --- eight numbers -------------------------------------------------------------------------

ANSWERS = {"a": 2.0, "b": 0.75, "c": 3.0, "d": 0.75, "e": 4.0, "f": 0.0, "g": 0.5, "h": 0.95}
RIGHT["eight_numbers"] = {"numbers": ANSWERS}
WRONG["eight_numbers"] = {
    "pays_averaged": ANSWERS | {"a": 3.0, "d": 0.1875},
    "slope_to_the_probability": ANSWERS | {"b": 4.0, "g": 8 / 3},
    "good_lever_only": ANSWERS | {"b": 0.9375, "g": 0.625},
    "score_of_one": ANSWERS | {"b": 1.25, "g": 5 / 6},
    "square_of_the_mean_forgotten": ANSWERS | {"c": 3.5625, "d": 1.3125, "f": 0.5625},
    "deviation_for_the_variance": ANSWERS | {"c": 3**0.5, "d": 0.75**0.5},
    "chances_forgotten": ANSWERS | {"c": 4.0, "d": 1.0},
    "value_taken_for_the_optimum": ANSWERS | {"e": 2.0, "f": 0.75},
    "score_not_squared": ANSWERS | {"e": 3.0, "f": 0.1875},
    "probabilities_forgotten": ANSWERS | {"e": 4.6, "f": 0.0675},
    "not_divided_by_the_scores": ANSWERS | {"e": 0.75, "f": 1.98046875},
    "own_mean_is_harmless": ANSWERS | {"g": 0.75},
    "own_part_only": ANSWERS | {"g": 0.25},
    "one_draw_more": ANSWERS | {"g": 0.5625},
    "mean_not_removed": ANSWERS | {"h": 0.9},
    "share_that_was_missed": ANSWERS | {"h": 0.05},
    "deviations_for_variances": ANSWERS | {"h": 1 - 0.05**0.5},
    "spreads_compared": ANSWERS | {"h": 0.65},
}


# --- both gradients ------------------------------------------------------------------------


@passes("actor_critic_gradients")
def by_hand(logits, values, actions, returns, *, value_coef):
    errors = values - returns
    scores = functional.one_hot(actions, logits.shape[1]) - logits.softmax(-1)
    return scores * errors[:, None] / len(values), value_coef * errors / len(values)


@passes("actor_critic_gradients")
def by_autograd(logits, values, actions, returns, *, value_coef):
    logits, values = (each.detach().clone().requires_grad_() for each in (logits, values))
    log_probs = Categorical(logits=logits).log_prob(actions)
    policy_loss = -(log_probs * (returns - values).detach()).mean()
    loss = policy_loss + value_coef * ((values - returns) ** 2).mean() / 2
    return torch.autograd.grad(loss, (logits, values))


@passes("actor_critic_gradients")
def two_backward_calls(logits, values, actions, returns, value_coef):
    logits = logits.clone().requires_grad_()
    taken = logits.log_softmax(-1)[torch.arange(len(actions)), actions]
    (-(taken * (returns - values)).mean()).backward()
    values = values.clone().requires_grad_()
    (value_coef * functional.mse_loss(values, returns) / 2).backward()
    return logits.grad, values.grad


@passes("actor_critic_gradients")
def both_sample_by_sample(logits, values, actions, returns, *, value_coef):
    B = len(values)
    to_logits, to_values = logits.softmax(-1), torch.zeros(B)
    for i in range(B):
        surprise = (returns[i] - values[i]).item()
        to_logits[i, actions[i]] -= 1
        to_logits[i] *= surprise / B
        to_values[i] = -value_coef * surprise / B
    return [to_logits, to_values]


@passes("actor_critic_gradients")
def both_in_float32(logits, values, actions, returns, *, value_coef):
    advantages = (returns - values).float()
    eye = torch.eye(logits.shape[-1])
    to_logits = (torch.softmax(logits.float(), -1) - eye[actions]) * advantages.unsqueeze(-1)
    return to_logits / advantages.numel(), -value_coef * advantages / advantages.numel()


def both(weights=None, score=None, policy=None, logits=None, values=None, leak=False):
    """Right but for what is handed over; `logits` and `values` change what comes back."""

    def function(given, critic, actions, returns, *, value_coef):
        B = len(critic)
        table = given.softmax(-1) if policy is None else policy(given)
        chosen = functional.one_hot(actions, given.shape[1]).to(given.dtype)
        scores = chosen - table if score is None else score(chosen, table)
        pushes = returns - critic if weights is None else weights(returns, critic)
        to_logits = -scores * pushes[:, None] / B
        to_values = value_coef * (critic - returns) / B
        if leak:
            to_values = to_values + (given.log_softmax(-1) * chosen).sum(-1) / B
        if logits is not None:
            to_logits = logits(to_logits, B, value_coef)
        return to_logits, to_values if values is None else values(to_values, B, value_coef)

    return function


@breaks("actor_critic_gradients")
def order_exchanged(logits, values, actions, returns, *, value_coef):
    return by_hand(logits, values, actions, returns, value_coef=value_coef)[::-1]


@breaks("actor_critic_gradients")
def first_action(logits, values, actions, returns, *, value_coef):
    return by_hand(logits, values, actions * 0, returns, value_coef=value_coef)


def _exponentials(logits):
    return logits.exp() / logits.exp().sum(-1, keepdim=True)


def _centred(returns, values):
    return returns - values - (returns - values).mean()


def _normalised(returns, values):
    centred = _centred(returns, values)
    return centred / (centred.square().mean().sqrt() + 1e-8)


WRONG["actor_critic_gradients"] |= {
    "critic_pulled_by_the_policy_loss": both(leak=True),
    "critic_cut_off": both(values=lambda each, B, value_coef: torch.zeros_like(each)),
    "returns_for_the_advantage": both(weights=lambda returns, values: returns),
    "uphill": both(logits=lambda each, B, value_coef: -each),
    "critic_uphill": both(values=lambda each, B, value_coef: -each),
    "not_divided_by_the_batch": both(
        logits=lambda each, B, value_coef: B * each, values=lambda each, B, value_coef: B * each
    ),
    "not_divided_by_the_batch#logits": both(logits=lambda each, B, value_coef: B * each),
    "not_divided_by_the_batch#values": both(values=lambda each, B, value_coef: B * each),
    "half_forgotten": both(values=lambda each, B, value_coef: 2 * each),
    "coefficient_forgotten": both(values=lambda each, B, value_coef: each / value_coef),
    "coefficient_on_both": both(logits=lambda each, B, value_coef: value_coef * each),
    "coefficient_on_the_policy": both(
        logits=lambda each, B, value_coef: value_coef * each,
        values=lambda each, B, value_coef: each / value_coef,
    ),
    "expectation_not_subtracted": both(score=lambda chosen, policy: chosen),
    "taken_action_only": both(score=lambda chosen, policy: chosen * (1 - policy)),
    "probability_not_its_logarithm": both(
        score=lambda chosen, policy: (chosen - policy) * (chosen * policy).sum(-1, keepdim=True)
    ),
    "advantages_normalised": both(weights=_normalised),
    "advantages_centred": both(weights=_centred),
    "softmax_over_the_batch": both(policy=lambda logits: logits.softmax(0)),
    "exponential_overflows": both(policy=_exponentials),
}


# --- slow definitions ----------------------------------------------------------------------


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def slow_baseline(probabilities, scores, returns):
    """Find the lowest point of the noise: a parabola through three of its points."""

    def noise(b):
        return sum(
            chance * sum((each * (earned - b)) ** 2 for each in score)
            for chance, score, earned in zip(probabilities, scores, returns, strict=True)
        )

    below, middle, above = noise(-1.0), noise(0.0), noise(1.0)
    return (below - above) / (2 * (below - 2 * middle + above))


def slow_others(returns):
    return [[statistics.fmean(row[:i] + row[i + 1 :]) for i in range(len(row))] for row in returns]


def slow_loss(values, returns):
    pairs = list(zip(flat(values), flat(returns), strict=True))
    return sum((value - target) ** 2 for value, target in pairs) / len(pairs) / 2


def slow_whole(observations, weights, returns):
    column = flat(weights)
    values = [sum(a * b for a, b in zip(row, column, strict=True)) for row in observations]
    return slow_loss(values, returns)


def slow_clipped(values, returns, *, values_old, clip_epsilon):
    total, rows = 0.0, list(zip(flat(values), flat(returns), flat(values_old), strict=True))
    for value, target, old in rows:
        moved = min(max(value, old - clip_epsilon), old + clip_epsilon)
        total += max(abs(value - target), abs(moved - target)) ** 2
    return total / len(rows) / 2


def slow_grade(values, returns):
    errors = [a - b for a, b in zip(flat(returns), flat(values), strict=True)]
    return 1 - statistics.pvariance(errors) / statistics.pvariance(flat(returns))


def slow_gradients(logits, values, actions, returns, *, value_coef):
    """Differences of the two losses; the advantage stays what it was."""
    B, step = len(values), 1e-5

    def policy_loss(table):
        total = 0.0
        for row, value, action, earned in zip(table, values, actions, returns, strict=True):
            top = max(row)
            log_sum = top + math.log(sum(math.exp(each - top) for each in row))
            total -= (row[action] - log_sum) * (earned - value) / B
        return total

    def moved(table, i, j, change):
        return [
            [each + change * ((i, j) == (m, n)) for n, each in enumerate(row)]
            for m, row in enumerate(table)
        ]

    to_logits = [
        [
            (policy_loss(moved(logits, i, j, step)) - policy_loss(moved(logits, i, j, -step)))
            / (2 * step)
            for j in range(len(row))
        ]
        for i, row in enumerate(logits)
    ]
    to_values = [
        value_coef * ((value + step - earned) ** 2 - (value - step - earned) ** 2) / (4 * step * B)
        for value, earned in zip(values, returns, strict=True)
    ]
    return [to_logits, to_values]


ORACLES = {
    "optimal_baseline": slow_baseline,
    "leave_one_out_baseline": slow_others,
    "value_loss": slow_loss,
    "mended_value_loss": slow_whole,
    "clipped_value_loss": slow_clipped,
    "explained_variance": slow_grade,
    "actor_critic_gradients": slow_gradients,
}
