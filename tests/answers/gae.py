"""Answers to the exercises of lesson 06."""

import math

import torch
from mistakes import mistakes_of
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import critic, gae

EXERCISES = (
    "td_errors",
    "compute_gae",
    "normalize_advantages",
    "value_loss_from_advantages",
    "nine_numbers",
    "mended_gae",
    "lambda_returns",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

# Mistakes of the module that learners make, too. Others pass on the numbers of an exercise, or are
# refused by a rule that holds for all of them, such as inputs that are changed.
LEFT_OUT = {
    "inputs_changed_in_place",
    "mask_as_a_factor",
    "weights_in_single_precision",
    "normalised_in_place",
    "sample_deviation",  # below, without a warning of torch
}
for mistake in mistakes_of("gae"):
    if mistake.breaks in EXERCISES and mistake.name not in LEFT_OUT:
        WRONG[mistake.breaks][mistake.name] = mistake.function


def late(happened):
    """The flags of the row before."""
    return torch.cat([torch.zeros_like(happened[:1]), happened[:-1]])


def early(happened):
    """The flags of the row behind, as where a flag is stored beside the next observation."""
    return torch.cat([happened[1:], torch.zeros_like(happened[:1])])


def everywhere(happened):
    """A flag of one environment taken for all."""
    return happened.any(1, keepdim=True).expand_as(happened)


def never(happened):
    return torch.zeros_like(happened)


# --- TD errors -----------------------------------------------------------------------------

RIGHT["td_errors"]["package"] = critic.td_errors


@passes("td_errors")
def with_a_filled_mask(rewards, values, next_values, terminated, *, gamma):
    return rewards + gamma * next_values.masked_fill(terminated, 0.0) - values


@passes("td_errors")
def times_one_minus_the_flag(rewards, values, next_values, terminated, gamma=0.99):
    going_on = 1.0 - terminated.float()
    return rewards + gamma * going_on * next_values - values


@passes("td_errors")
def number_by_number(rewards, values, next_values, terminated, *, gamma):
    errors = torch.zeros_like(rewards)
    for t in range(rewards.shape[0]):
        for n in range(rewards.shape[1]):
            future = 0.0 if terminated[t, n] else gamma * next_values[t, n]
            errors[t, n] = rewards[t, n] + future - values[t, n]
    return errors


@passes("td_errors")
def by_index_on_a_copy(rewards, values, next_values, terminated, *, gamma):
    future = next_values.clone().float()
    future[terminated] = 0
    return (rewards - values).float().add_(future, alpha=gamma)


@passes("td_errors")
def of_lists(rewards, values, next_values, terminated, *, gamma):
    tables = (each.tolist() for each in (rewards, values, next_values, terminated))
    return torch.tensor(
        [
            [
                earned + (0 if end else gamma * after) - before
                for earned, before, after, end in zip(*row, strict=True)
            ]
            for row in zip(*tables, strict=True)
        ]
    )


@passes("td_errors")
def target_minus_guess(rewards, values, next_values, terminated, *, gamma):
    target = torch.where(terminated, rewards, rewards + gamma * next_values)
    return target - values


def error(rewards, values, next_values, terminated, *, gamma):
    """Right; the wrong ones below change what is handed over."""
    return rewards + gamma * next_values.masked_fill(terminated, 0) - values


@breaks("td_errors")
def value_counted_behind_the_end(rewards, values, next_values, terminated, *, gamma):
    return rewards + gamma * next_values - values


@breaks("td_errors")
def reward_lost_at_the_end(rewards, values, next_values, terminated, *, gamma):
    return (rewards + gamma * next_values) * ~terminated - values


@breaks("td_errors")
def own_value_lost_at_the_end(rewards, values, next_values, terminated, *, gamma):
    return rewards + (gamma * next_values - values) * ~terminated


@breaks("td_errors")
def zero_at_the_end(rewards, values, next_values, terminated, *, gamma):
    return (rewards + gamma * next_values - values) * ~terminated


@breaks("td_errors")
def flag_turned(rewards, values, next_values, terminated, *, gamma):
    return rewards + gamma * next_values * terminated - values


@breaks("td_errors")
def gamma_left_out(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, next_values, terminated, gamma=1.0)


@breaks("td_errors")
def gamma_on_both_values(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, gamma * values, next_values, terminated, gamma=gamma)


@breaks("td_errors")
def gamma_on_the_reward(rewards, values, next_values, terminated, *, gamma):
    return gamma * (rewards + next_values * ~terminated) - values


@breaks("td_errors")
def values_swapped(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, next_values, values, terminated, gamma=gamma)


@breaks("td_errors")
def sign_turned(rewards, values, next_values, terminated, *, gamma):
    return -error(rewards, values, next_values, terminated, gamma=gamma)


@breaks("td_errors")
def value_not_subtracted(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, 0 * values, next_values, terminated, gamma=gamma)


@breaks("td_errors")
def reward_left_out(rewards, values, next_values, terminated, *, gamma):
    return error(0 * rewards, values, next_values, terminated, gamma=gamma)


@breaks("td_errors")
def future_left_out(rewards, values, next_values, terminated, *, gamma):
    return rewards - values


@breaks("td_errors")
def next_row_for_the_next_value(rewards, values, next_values, terminated, *, gamma):
    following = torch.cat([values[1:], torch.zeros_like(values[:1])])
    return error(rewards, values, following, terminated, gamma=gamma)


def _rolled(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, values.roll(-1, 0), terminated, gamma=gamma)


def _next_row_but_for_the_last(rewards, values, next_values, terminated, *, gamma):
    following = torch.cat([values[1:], next_values[-1:]])
    return error(rewards, values, following, terminated, gamma=gamma)


WRONG["td_errors"]["next_row_for_the_next_value#rolled"] = _rolled
WRONG["td_errors"]["next_row_for_the_next_value#but_for_the_last"] = _next_row_but_for_the_last


@breaks("td_errors")
def flag_late_by_one(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, next_values, late(terminated), gamma=gamma)


@breaks("td_errors")
def flag_early_by_one(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, next_values, early(terminated), gamma=gamma)


@breaks("td_errors")
def squared(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, next_values, terminated, gamma=gamma) ** 2


@breaks("td_errors")
def environments_end_together(rewards, values, next_values, terminated, *, gamma):
    return error(rewards, values, next_values, everywhere(terminated), gamma=gamma)


# --- GAE -----------------------------------------------------------------------------------

RIGHT["compute_gae"]["package"] = gae.compute_gae


@passes("compute_gae", "mended_gae")
def backwards_in_one_pass(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    advantages, following = torch.zeros_like(rewards), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        surprise = rewards[t] + gamma * next_values[t] * ~terminated[t] - values[t]
        following = surprise + gamma * gae_lambda * ~(terminated[t] | truncated[t]) * following
        advantages[t] = following
    return advantages


@passes("compute_gae", "mended_gae")
def as_a_double_sum(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    advantages = torch.zeros_like(errors)
    for t in range(len(errors)):
        running = torch.ones_like(errors[0])
        for later in range(t, len(errors)):
            advantages[t] += (gamma * gae_lambda) ** (later - t) * running * errors[later]
            running = running * ~(terminated | truncated)[later]
    return advantages


@passes("compute_gae", "mended_gae")
def with_factors_taken_apart(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    episode = late(terminated | truncated).long().cumsum(0)
    time = torch.arange(len(rewards))
    steps = time[None, :] - time[:, None]
    weights = torch.where(steps < 0, 0.0, gamma**steps * gae_lambda ** steps.clamp(min=0))
    same = episode[:, None] == episode[None, :]
    return torch.einsum("tk,tkn,kn->tn", weights.to(errors), same.to(errors), errors)


@passes("compute_gae", "mended_gae")
def column_by_column(rewards, values, next_values, terminated, truncated, gamma, gae_lambda):
    columns = []
    for n in range(rewards.shape[1]):
        total, found = 0.0, []
        for t in reversed(range(rewards.shape[0])):
            if terminated[t, n]:
                total = rewards[t, n].item() - values[t, n].item()
            else:
                total = 0.0 if truncated[t, n] else gamma * gae_lambda * total
                total += (rewards[t, n] + gamma * next_values[t, n] - values[t, n]).item()
            found.insert(0, total)
        columns.append(found)
    return torch.tensor(columns).T


@passes("compute_gae", "mended_gae")
def as_a_return_minus_v(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    following, found = next_values[-1], []
    for t in reversed(range(len(rewards))):
        stops = terminated[t] | truncated[t]
        waited = torch.where(stops, next_values[t], following)
        ahead = (1 - gae_lambda) * next_values[t] + gae_lambda * waited
        following = rewards[t] + gamma * ahead.masked_fill(terminated[t], 0)
        found.insert(0, following)
    return torch.stack(found) - values


@passes("compute_gae", "mended_gae")
def in_float32(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    tables = [each.float() for each in (rewards, values, next_values)]
    errors = error(*tables, terminated, gamma=gamma)
    kept = 1 - (terminated | truncated).float()
    for t in range(len(errors) - 2, -1, -1):
        errors[t] += gamma * gae_lambda * kept[t] * errors[t + 1]
    return errors


def accumulate(errors, weight, stopped):
    """The backward sum with a weight of one's own, and stops of one's own."""
    advantages, following = torch.zeros_like(errors), torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        following = errors[t] + weight * following.masked_fill(stopped[t], 0)
        advantages[t] = following
    return advantages


def estimate(errors_of=error, weight_of=lambda gamma, gae_lambda: gamma * gae_lambda, **changed):
    """GAE that is right but for what is handed over."""

    def function(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
        ended = terminated | truncated
        tables = changed.get("tables", lambda *each: each)(rewards, values, next_values)
        stopped = changed.get("stopped", lambda each: each)
        future = changed.get("future", lambda terminated, truncated: terminated)
        errors = errors_of(*tables, future(terminated, truncated), gamma=gamma)
        found = accumulate(errors, weight_of(gamma, gae_lambda), stopped(ended))
        return changed.get("after", lambda found, *_: found)(found, values, ended, gae_lambda)

    return function


def _next_error_only(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    following = torch.cat([errors[1:], torch.zeros_like(errors[:1])])
    return errors + gamma * gae_lambda * following.masked_fill(terminated | truncated, 0)


def _early_with_the_next_row(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    following = torch.cat([values[1:], next_values[-1:]])
    errors = error(rewards, values, following, early(terminated), gamma=gamma)
    return accumulate(errors, gamma * gae_lambda, early(terminated))


def _early_and_merged(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    following = torch.cat([values[1:], next_values[-1:]])
    ended = early(terminated | truncated)
    return accumulate(
        error(rewards, values, following, ended, gamma=gamma), gamma * gae_lambda, ended
    )


def _forwards(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    stopped = late(terminated | truncated)
    return accumulate(errors.flip(0), gamma * gae_lambda, stopped.flip(0)).flip(0)


def _forwards_with_its_own_flag(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    stopped = terminated | truncated
    return accumulate(errors.flip(0), gamma * gae_lambda, stopped.flip(0)).flip(0)


def _parenthesis_missing_after_the_first(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    errors = error(rewards, values, next_values, terminated, gamma=gamma)
    ended = terminated | truncated
    later = accumulate(errors, gae_lambda, ended) - errors
    return errors + gamma * later


def normalised(correction):
    def after(found, *_):
        centred = found - found.mean()
        # .std() warns where 0 is divided by 0
        deviation = (centred.square().sum() / max(found.numel() - correction, 0)).sqrt()
        return centred / (deviation + 1e-8)

    return after


WRONG["compute_gae"] |= {
    "values_added": estimate(after=lambda found, values, *_: found + values),
    "td_error_alone": estimate(weight_of=lambda gamma, gae_lambda: 0.0),
    "lambda_left_out": estimate(weight_of=lambda gamma, gae_lambda: gamma),
    "gamma_left_out_of_the_trace": estimate(weight_of=lambda gamma, gae_lambda: gae_lambda),
    "gamma_left_out_of_the_error": estimate(lambda *tables, gamma: error(*tables, gamma=1.0)),
    "lambda_turned": estimate(weight_of=lambda gamma, gae_lambda: gamma * (1 - gae_lambda)),
    "one_minus_lambda_in_front": estimate(
        after=lambda found, values, ended, gae_lambda: (1 - gae_lambda) * found
    ),
    "environments_end_together": estimate(
        stopped=everywhere, future=lambda terminated, truncated: everywhere(terminated)
    ),
    "environments_end_together#in_the_sum": estimate(stopped=everywhere),
    "ends_give_zero": estimate(after=lambda found, values, ended, _: found.masked_fill(ended, 0)),
    "sign_turned": estimate(after=lambda found, *_: -found),
    "value_not_subtracted": estimate(
        tables=lambda earned, before, after: (earned, 0 * before, after)
    ),
    "next_error_only": _next_error_only,
    "forwards_in_time": _forwards,
    "forwards_in_time#own_flag": _forwards_with_its_own_flag,
    "missing_parenthesis#after_the_first": _parenthesis_missing_after_the_first,
    "flags_late_by_one#in_the_sum": estimate(stopped=late),
    "flags_late_by_one#next_values_given": estimate(
        stopped=late, future=lambda terminated, truncated: late(terminated)
    ),
    "flags_early_by_one": estimate(
        stopped=early, future=lambda terminated, truncated: early(terminated)
    ),
    "flags_early_by_one#next_row": _early_with_the_next_row,
    "flags_early_by_one#merged": _early_and_merged,
    "flags_merged#in_the_error_alone": estimate(
        future=lambda terminated, truncated: terminated | truncated, stopped=never
    ),
    "whitened_inside#sample": estimate(after=normalised(1)),
}

# --- normalising ---------------------------------------------------------------------------

RIGHT["normalize_advantages"]["package"] = gae.normalize_advantages


@passes("normalize_advantages")
def of_the_kept_ones(advantages, *, mask=None):
    kept = advantages if mask is None else advantages[mask]
    return (advantages - kept.mean()) / (kept.std(correction=0) + 1e-8)


@passes("normalize_advantages")
def unbiased_turned_off(advantages, mask=None):
    kept = advantages.flatten() if mask is None else torch.masked_select(advantages, mask)
    variance, mean = torch.var_mean(kept, unbiased=False)
    return (advantages - mean) / (variance.sqrt() + 1e-5)


@passes("normalize_advantages")
def with_weights(advantages, *, mask=None):
    weights = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    mean = (weights * advantages).sum() / weights.sum()
    variance = (weights * (advantages - mean) ** 2).sum() / weights.sum()
    return (advantages - mean) / (variance + 1e-12).sqrt()


@passes("normalize_advantages")
def by_hand_in_python(advantages, *, mask=None):
    kept = (advantages if mask is None else advantages[mask]).flatten().tolist()
    mean = sum(kept) / len(kept)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in kept) / len(kept))
    return (advantages - mean) / (deviation or 1.0)


@passes("normalize_advantages")
def on_a_copy_in_place(advantages, *, mask=None):
    found = advantages.clone().float()
    counts = torch.ones_like(found).bool() if mask is None else mask
    found -= found[counts].mean()
    found /= found[counts].square().mean().sqrt() + 1e-8
    return found


def kept_of(advantages, mask):
    return advantages.flatten() if mask is None else advantages[mask]


def spread_of(kept, *, centre=None, correction=0):
    """Of a sample; written out, since .std() warns where 0 is divided by 0."""
    centred = kept - (kept.mean() if centre is None else centre)
    return (centred.square().sum() / (kept.numel() - correction)).sqrt()


def scaled(scale):
    """Shifted rightly, and divided by something else."""

    def function(advantages, *, mask=None):
        kept = kept_of(advantages, mask)
        return (advantages - kept.mean()) / scale(kept)

    return function


@breaks("normalize_advantages")
def sample_deviation(advantages, *, mask=None):
    kept = kept_of(advantages, mask)
    return (advantages - kept.mean()) / (spread_of(kept, correction=1) + 1e-8)


@breaks("normalize_advantages")
def padding_in_the_deviation(advantages, *, mask=None):
    mean = kept_of(advantages, mask).mean()
    return (advantages - mean) / (spread_of(advantages.flatten()) + 1e-8)


@breaks("normalize_advantages")
def padding_taken_for_zeros(advantages, *, mask=None):
    filled = advantages if mask is None else advantages * mask
    return (advantages - filled.mean()) / (spread_of(filled.flatten()) + 1e-8)


@breaks("normalize_advantages")
def each_column_on_its_own(advantages, *, mask=None):
    if advantages.ndim < 2:
        return of_the_kept_ones(advantages, mask=mask)
    weights = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    counts = weights.sum(0).clamp(min=1)
    mean = (weights * advantages).sum(0) / counts
    variance = (weights * (advantages - mean) ** 2).sum(0) / counts
    return (advantages - mean) / (variance.sqrt() + 1e-8)


@breaks("normalize_advantages")
def mask_turned(advantages, *, mask=None):
    kept = kept_of(advantages, None if mask is None else ~mask)
    return (advantages - kept.mean()) / (spread_of(kept) + 1e-8)


@breaks("normalize_advantages")
def left_out_of_the_result(advantages, *, mask=None):
    kept = advantages if mask is None else advantages[mask]
    return of_the_kept_ones(kept)


@breaks("normalize_advantages")
def set_to_zero(advantages, *, mask=None):
    found = of_the_kept_ones(advantages, mask=mask)
    return found if mask is None else found * mask


@breaks("normalize_advantages")
def sign_lost(advantages, *, mask=None):
    return of_the_kept_ones(advantages, mask=mask).abs()


@breaks("normalize_advantages")
def squeezed_between_0_and_1(advantages, *, mask=None):
    kept = kept_of(advantages, mask)
    return (advantages - kept.min()) / (kept.max() - kept.min() + 1e-8)


@breaks("normalize_advantages")
def largest_becomes_one(advantages, *, mask=None):
    return advantages / (kept_of(advantages, mask).abs().max() + 1e-8)


def _each_row_on_its_own(advantages, *, mask=None):
    if advantages.ndim < 2:
        return of_the_kept_ones(advantages, mask=mask)
    return each_column_on_its_own(advantages.T, mask=None if mask is None else mask.T).T


def _sample_deviation_unless_alone(advantages, *, mask=None):
    kept = kept_of(advantages, mask)
    if kept.numel() < 2:
        return torch.zeros_like(advantages) if mask is None else advantages - kept
    return (advantages - kept.mean()) / (spread_of(kept, correction=1) + 1e-8)


def _usual_line(advantages, *, mask=None):
    centred = advantages - advantages.mean()
    return centred / (spread_of(advantages.flatten(), correction=1) + 1e-8)


WRONG["normalize_advantages"] |= {
    "sample_deviation#mask_ignored": _usual_line,
    "centred_only": scaled(lambda kept: 1.0),
    "nothing_added": scaled(spread_of),
    "one_added": scaled(lambda kept: spread_of(kept) + 1),
    "mean_size_for_deviation": scaled(lambda kept: (kept - kept.mean()).abs().mean() + 1e-8),
    "deviation_before_the_shift": scaled(lambda kept: spread_of(kept, centre=0) + 1e-8),
    "each_column_on_its_own#rows": _each_row_on_its_own,
    "sample_deviation#unless_alone": _sample_deviation_unless_alone,
    "largest_becomes_one#centred": scaled(lambda kept: (kept - kept.mean()).abs().max() + 1e-8),
}

# --- the loss of the critic ----------------------------------------------------------------


@passes("value_loss_from_advantages")
def package(values, values_old, advantages):
    return critic.value_loss(values, advantages + values_old)


@passes("value_loss_from_advantages")
def mean_of_squares(values, values_old, advantages):
    returns = (advantages + values_old).detach()
    return 0.5 * (values - returns).pow(2).mean()


@passes("value_loss_from_advantages")
def with_mse_loss(values, values_old, advantages):
    with torch.no_grad():
        returns = values_old.clone()
        returns += advantages
    return functional.mse_loss(values, returns) / 2


@passes("value_loss_from_advantages")
def in_a_loop(values, values_old, advantages):
    total = 0.0
    rows = (each.flatten() for each in (values, values_old.detach(), advantages.detach()))
    for new, old, surprise in zip(*rows, strict=True):
        total = total + (old + surprise - new) ** 2 / 2
    return total / values.numel()


@passes("value_loss_from_advantages")
def missed_by(values, values_old, advantages, mask=None):
    missed = advantages.data.float() - (values.float() - values_old.data.float())
    return torch.dot(missed.flatten(), missed.flatten()) / (2 * missed.nelement())


def regression(returns_of=None, loss_of=None):
    """The loss with other targets, or another distance from them."""

    def function(values, values_old, advantages):
        old, raw = values_old.detach(), advantages.detach()
        returns = old + raw if returns_of is None else returns_of(values, old, raw)
        missed = values - returns
        return (missed.square().mean() / 2) if loss_of is None else loss_of(missed)

    return function


def normal(raw, correction=0):
    centred = raw - raw.mean()
    return centred / ((centred.square().sum() / (raw.numel() - correction)).sqrt() + 1e-8)


def normal_if_several(raw):
    return normal(raw, 1) if raw.numel() > 1 else raw


def clipped_change(bound):
    def function(values, values_old, advantages):
        old, returns = values_old.detach(), (values_old + advantages).detach()
        moved = old + (values - old).clamp(-bound, bound)
        return torch.maximum((values - returns) ** 2, (moved - returns) ** 2).mean() / 2

    return function


@breaks("value_loss_from_advantages")
def gradient_into_the_targets(values, values_old, advantages):
    return (values - values_old - advantages).square().mean() / 2


def _into_the_advantages(values, values_old, advantages):
    return (values - values_old.detach() - advantages).square().mean() / 2


def _into_the_values_of_then(values, values_old, advantages):
    return (values - values_old - advantages.detach()).square().mean() / 2


WRONG["value_loss_from_advantages"] |= {
    "gradient_into_the_targets#advantages": _into_the_advantages,
    "gradient_into_the_targets#old_values": _into_the_values_of_then,
    "normalised_first": regression(lambda values, old, raw: old + normal(raw)),
    "normalised_first#sample": regression(lambda values, old, raw: old + normal(raw, 1)),
    "normalised_first#if_several": regression(
        lambda values, old, raw: old + normal_if_several(raw)
    ),
    "advantages_for_returns": regression(lambda values, old, raw: raw),
    "target_moves_with_the_critic": regression(lambda values, old, raw: values.detach() + raw),
    "target_moves_with_the_critic#not_detached": regression(lambda values, old, raw: values + raw),
    "old_values_for_targets": regression(lambda values, old, raw: old),
    "advantages_subtracted": regression(lambda values, old, raw: old - raw),
    "half_forgotten": regression(loss_of=lambda missed: missed.square().mean()),
    "summed": regression(loss_of=lambda missed: missed.square().sum() / 2),
    "summed#without_the_half": regression(loss_of=lambda missed: missed.square().sum()),
    "not_averaged": regression(loss_of=lambda missed: missed.square() / 2),
    "not_averaged#without_the_half": regression(loss_of=torch.square),
    "errors_averaged_first": regression(loss_of=lambda missed: missed.mean() ** 2 / 2),
    "absolute_errors": regression(loss_of=lambda missed: missed.abs().mean()),
    "absolute_errors#halved": regression(loss_of=lambda missed: missed.abs().mean() / 2),
    "objective_for_a_loss": regression(loss_of=lambda missed: -missed.square().mean() / 2),
    "root_taken": regression(loss_of=lambda missed: missed.square().mean().sqrt()),
    "change_clipped": clipped_change(0.2),
    "centred": regression(loss_of=lambda missed: (missed - missed.mean()).square().mean() / 2),
    "last_axis_only": regression(loss_of=lambda missed: missed.square().mean(-1) / 2),
    "large_errors_tamed": regression(
        loss_of=lambda missed: functional.huber_loss(missed, torch.zeros_like(missed))
    ),
}

# --- nine numbers --------------------------------------------------------------------------

REWARDS, VALUES, REACHED = (1.0, 1.0, 20.0, 2.0), (6.0, 8.0, 12.0, 6.0), (8.0, 12.0, 0.0, 10.0)


def nine(
    *,
    weight=lambda gamma, gae_lambda: gamma * gae_lambda,
    factor=1.0,
    stops=(2,),
    reached=REACHED,
    gamma=0.5,
    trace_gamma=0.5,
    values=VALUES,
):
    """The nine numbers by the recursion, with one thing changed."""

    def advantages(gae_lambda):
        found, following = [], 0.0
        for t in (3, 2, 1, 0):
            surprise = REWARDS[t] + gamma * reached[t] - values[t]
            carried = 0.0 if t in stops else weight(trace_gamma, gae_lambda) * following
            following = surprise + carried
            found.insert(0, factor * following)
        return found

    table = [advantages(number) for number in (0.0, 0.5, 1.0)]
    numbers = [row[0] for row in table] + [row[1] for row in table] + table[1][2:]
    return dict(zip("abcdefghi", [*numbers, table[1][0] + VALUES[0]], strict=True))


def with_target(number):
    return nine() | {"i": number}


RETURNS = [5, 5.25, 6.5, 7, 9, 11, 20, 7, 5.25]
RIGHT["nine_numbers"] = {"numbers": nine()}
WRONG["nine_numbers"] = {
    "missing_parenthesis": nine(weight=lambda gamma, gae_lambda: gae_lambda, factor=0.5),
    "trace_not_reset": nine(stops=()),
    "value_counted_behind_the_end": nine(reached=(8, 12, 6, 10)),
    "no_bootstrap_at_the_last_row": nine(reached=(8, 12, 0, 0)),
    "gamma_left_out_of_the_trace": nine(trace_gamma=1.0),
    "lambda_left_out": nine(weight=lambda gamma, gae_lambda: gamma),
    "gamma_left_out_of_the_error": nine(gamma=1.0),
    "gamma_left_out": nine(gamma=1.0, trace_gamma=1.0),
    "ends_swapped": nine(weight=lambda gamma, gae_lambda: gamma * (1 - gae_lambda)),
    "average_of_the_ends": nine() | {"b": -0.25, "e": 1, "i": 5.75},
    "next_error_only": nine() | {"b": -1.25, "c": -1.5, "i": 4.75},
    "value_not_subtracted": nine(values=(0, 0, 0, 0)),
    "return_for_the_advantage": dict(zip("abcdefghi", RETURNS, strict=True)),
    "end_gives_zero": nine() | {"g": 0},
    "advantage_for_the_target": with_target(-0.75),
    "value_subtracted_from_the_target": with_target(-6.75),
    "one_step_target": with_target(5),
    "target_without_the_critic": with_target(6.5),
    "plain_sum_of_rewards": with_target(22),
}

# --- a sum with a bug ----------------------------------------------------------------------

WRONG["mended_gae"] = WRONG["compute_gae"]

# --- the mixture of n-step returns ---------------------------------------------------------


@passes("lambda_returns")
def as_a_recursion(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
    found, following = torch.zeros_like(rewards), next_values[-1]
    for t in reversed(range(len(rewards))):
        ahead = torch.where(truncated[t], next_values[t], following)
        ahead = (1 - gae_lambda) * next_values[t] + gae_lambda * ahead
        following = rewards[t] + gamma * ahead.masked_fill(terminated[t], 0)
        found[t] = following
    return found


@passes("lambda_returns")
def gae_with_any_values(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
    ended = terminated | truncated
    begins = late(ended)
    begins[0] = True
    values = torch.cat([torch.zeros_like(next_values[:1]), next_values[:-1]])
    values = values.masked_fill(begins, 123.0)  # cancels, whatever it is
    given = (rewards, values, next_values, terminated, truncated)
    return gae.compute_gae(*given, gamma=gamma, gae_lambda=gae_lambda) + values


def lengths_of(stopped, t):
    """How many steps the returns from step t on may have."""
    count = 0
    for k in range(t, len(stopped)):
        count += 1
        if stopped[k]:
            break
    return range(1, count + 1)


def weight_of(n, longest, gae_lambda):
    rest = gae_lambda ** (n - 1)
    return rest if n == longest else (1 - gae_lambda) * rest


def mixed(
    weights=weight_of,
    stopped=lambda terminated, truncated: terminated | truncated,
    future=lambda terminated, truncated: terminated,
    **changed,
):
    """All n-step returns, weighed; the wrong ones below change one thing."""
    on_rewards = changed.get("on_rewards", lambda gamma, k: gamma**k)
    on_value = changed.get("on_value", lambda gamma, n: gamma**n)
    after = changed.get("after", lambda table: table)
    left_out = changed.get("left_out", 0)

    def function(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
        found = torch.zeros_like(rewards)
        stops, over = stopped(terminated, truncated), future(terminated, truncated)
        reached = after(next_values)
        for env in range(rewards.shape[1]):
            for t in range(rewards.shape[0]):
                lengths = lengths_of(stops[:, env].tolist(), t)
                for n in lengths:
                    last = t + n - 1
                    value = 0.0 if over[last, env] else reached[last, env]
                    earned = sum(
                        on_rewards(gamma, k) * rewards[t + k, env] for k in range(n - left_out)
                    )
                    number = earned + on_value(gamma, n) * value
                    found[t, env] += weights(n, lengths[-1], gae_lambda) * number
        return found

    return function


def _nothing_last(next_values):
    return torch.cat([next_values[:-1], torch.zeros_like(next_values[-1:])])


def _discounted_sum(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
    return gae.compute_gae(
        rewards, 0 * rewards, next_values, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda
    )


RIGHT["lambda_returns"]["as_a_mixture"] = mixed()
RIGHT["lambda_returns"]["rest_taken_from_one"] = mixed(
    lambda n, longest, gae_lambda: (
        1 - sum((1 - gae_lambda) * gae_lambda ** (k - 1) for k in range(1, n))
        if n == longest
        else (1 - gae_lambda) * gae_lambda ** (n - 1)
    )
)
WRONG["lambda_returns"] = {
    "gae_without_values": _discounted_sum,
    "lambda_turned": mixed(lambda n, longest, x: weight_of(n, longest, 1 - x)),
    "weights_do_not_sum_to_one": mixed(lambda n, longest, x: (1 - x) * x ** (n - 1)),
    "all_lengths_alike": mixed(lambda n, longest, x: 1 / longest),
    "weights_shifted_by_one": mixed(lambda n, longest, x: (1 - x) * x**n),
    "weights_shifted_by_one#rest_to_the_last": mixed(
        lambda n, longest, x: (
            1 - sum((1 - x) * x**k for k in range(1, n)) if n == longest else (1 - x) * x**n
        )
    ),
    "value_discounted_too_little": mixed(on_value=lambda gamma, n: gamma ** (n - 1)),
    "value_not_discounted": mixed(on_value=lambda gamma, n: 1.0),
    "rewards_not_discounted": mixed(on_rewards=lambda gamma, k: 1.0),
    "flags_merged": mixed(future=lambda terminated, truncated: terminated | truncated),
    "truncated_ignored": mixed(stopped=lambda terminated, truncated: terminated),
    "trace_not_reset": mixed(stopped=lambda terminated, truncated: never(terminated)),
    "value_counted_behind_the_end": mixed(future=lambda terminated, truncated: never(terminated)),
    "nothing_behind_the_last_row": mixed(after=_nothing_last),
    "longest_return_only": mixed(lambda n, longest, x: float(n == longest)),
    "one_step_return_only": mixed(lambda n, longest, x: float(n == 1)),
    "truncation_wins_over_termination": mixed(
        future=lambda terminated, truncated: terminated & ~truncated
    ),
    "flags_late_by_one": mixed(
        stopped=lambda terminated, truncated: late(terminated | truncated),
        future=lambda terminated, truncated: late(terminated),
    ),
    "environments_end_together": mixed(
        stopped=lambda terminated, truncated: everywhere(terminated | truncated),
        future=lambda terminated, truncated: everywhere(terminated),
    ),
    "weights_of_td_errors": mixed(lambda n, longest, x: x ** (n - 1)),
    "last_reward_left_out": mixed(left_out=1),
}


# --- slow definitions ----------------------------------------------------------------------


def slow_error(reward, value, next_value, terminated, gamma):
    return reward + (0.0 if terminated else gamma * next_value) - value


def slow_errors(rewards, values, next_values, terminated, *, gamma):
    return [
        [slow_error(*numbers, gamma) for numbers in zip(*row, strict=True)]
        for row in zip(rewards, values, next_values, terminated, strict=True)
    ]


def slow_gae(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """(1 − λ)·Σ_n λ^{n−1}·(n-step return − V), the longest with what is left."""
    found = slow_mixture(
        rewards, next_values, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda
    )
    return [[a - b for a, b in zip(*row, strict=True)] for row in zip(found, values, strict=True)]


def slow_mixture(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
    found = [[0.0] * len(rewards[0]) for _ in rewards]
    for n in range(len(rewards[0])):
        for t in range(len(rewards)):
            earned, weight = 0.0, 1.0
            for k in range(t, len(rewards)):
                earned += gamma ** (k - t) * rewards[k][n]
                behind = 0.0 if terminated[k][n] else gamma ** (k - t + 1) * next_values[k][n]
                last = terminated[k][n] or truncated[k][n] or k == len(rewards) - 1
                share = weight if last else weight * (1 - gae_lambda)
                found[t][n] += share * (earned + behind)
                weight -= share
                if last:
                    break
    return found


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def like(rows, numbers):
    if isinstance(rows, list):
        return [like(row, numbers) for row in rows]
    return next(numbers)


def slow_normalize(advantages, *, mask=None):
    every = flat(advantages)
    counts = [True] * len(every) if mask is None else flat(mask)
    kept = [number for number, count in zip(every, counts, strict=True) if count]
    mean = math.fsum(kept) / len(kept)
    deviation = math.sqrt(math.fsum((number - mean) ** 2 for number in kept) / len(kept))
    return like(advantages, iter([(number - mean) / (deviation + 1e-8) for number in every]))


def slow_value_loss(values, values_old, advantages):
    rows = (flat(each) for each in (values, values_old, advantages))
    squares = [(v - (old + surprise)) ** 2 for v, old, surprise in zip(*rows, strict=True)]
    return sum(squares) / len(squares) / 2


ORACLES = {
    "td_errors": slow_errors,
    "compute_gae": slow_gae,
    "normalize_advantages": slow_normalize,
    "value_loss_from_advantages": slow_value_loss,
    "mended_gae": slow_gae,
    "lambda_returns": slow_mixture,
}
