"""Answers to the exercises of lesson 14."""

import math

import torch
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import rlhf

EXERCISES = (
    "preference_loss",
    "token_rewards",
    "token_advantages",
    "kl_of_answers",
    "next_price",
    "mended_scoring",
    "rewards_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
RIGHT["preference_loss"]["package"] = rlhf.bradley_terry_loss
RIGHT["token_rewards"]["package"] = rlhf.token_rewards
RIGHT["token_advantages"]["package"] = rlhf.token_gae

# --- preferences ---------------------------------------------------------------------------


@passes("preference_loss")
def as_softplus(chosen, rejected):
    return functional.softplus(rejected - chosen).mean()


@passes("preference_loss")
def as_cross_entropy(chosen, rejected):
    logits = torch.stack([rejected, chosen], dim=1)
    return functional.cross_entropy(logits, torch.ones(len(chosen), dtype=torch.int64))


@passes("preference_loss")
def as_binary_cross_entropy(chosen, rejected, weight=None):
    difference = chosen - rejected
    return functional.binary_cross_entropy_with_logits(difference, torch.ones_like(difference))


@passes("preference_loss")
def pair_by_pair(chosen, rejected):
    total = chosen.new_zeros(())
    for better, worse in zip(chosen, rejected, strict=True):
        total = total + torch.logaddexp(better, worse) - better
    return total / chosen.numel()


def preferred(of_difference, *, result=torch.mean):
    """The mean of a function of the difference."""
    return lambda chosen, rejected: result(of_difference(chosen - rejected))


def each_alone(chosen, rejected):
    return (functional.softplus(-chosen) + functional.softplus(rejected)).mean()


WRONG["preference_loss"] |= {
    "pair_swapped": preferred(functional.softplus),
    "agreement_given": preferred(functional.logsigmoid),
    "loss_added_up": preferred(lambda gap: functional.softplus(-gap), result=torch.sum),
    "logarithm_of_a_sigmoid": preferred(lambda gap: -gap.sigmoid().log()),
    "probability_given": preferred(torch.sigmoid),
    "probability_of_the_other": preferred(lambda gap: (-gap).sigmoid()),
    "margin_only": preferred(lambda gap: -gap),
    "silent_beyond_one": preferred(lambda gap: (1 - gap).relu()),
    "each_score_alone": each_alone,
    "pulled_to_one_and_zero": lambda chosen, rejected: ((chosen - 1) ** 2 + rejected**2).mean(),
    "mean_before_the_logarithm": preferred(lambda gap: functional.softplus(-gap.mean())),
    "rejected_held_still": lambda chosen, rejected: functional.softplus(
        rejected.detach() - chosen
    ).mean(),
}

# --- one reward per token ------------------------------------------------------------------


@passes("token_rewards")
def row_by_row(scores, log_probs, log_probs_reference, mask, *, beta):
    rewards = torch.zeros_like(log_probs)
    for row in range(len(scores)):
        places = mask[row].nonzero().flatten().tolist()
        for t in places:
            rewards[row, t] = -beta * (log_probs[row, t] - log_probs_reference[row, t])
        rewards[row, places[-1]] += scores[row]
    return rewards


@passes("token_rewards")
def by_what_follows(scores, log_probs, log_probs_reference, mask, *, beta):
    following = mask.flip(1).cumsum(1).flip(1)
    is_last = mask & (following == 1)
    gap = torch.where(mask, log_probs_reference - log_probs, torch.zeros_like(log_probs))
    return beta * gap + is_last * scores[:, None]


@passes("token_rewards")
def written_in_place(scores, log_probs, log_probs_reference, mask, beta=0.1):
    places = torch.arange(mask.shape[1]).expand(mask.shape)
    last = places.masked_fill(~mask, -1).max(dim=1).values
    rewards = beta * (log_probs_reference - log_probs)
    rewards[~mask] = 0.0
    rewards[torch.arange(len(scores)), last] += scores
    return rewards


def last_place(mask):
    return (mask * torch.arange(mask.shape[1])).argmax(dim=1)


def gap_of(new, reference, mask):
    return (new - reference).masked_fill(~mask, 0)


def paid(
    *,
    gap=gap_of,
    price=lambda beta: beta,
    places=last_place,
    scores=lambda scores, beta: scores,
    before=lambda rewards, places: rewards,
):
    """Right but for one thing."""

    def function(given, log_probs, log_probs_reference, mask, *, beta):
        rewards = -price(beta) * gap(log_probs, log_probs_reference, mask)
        at = places(mask).unsqueeze(1)
        return before(rewards, at).scatter_add(1, at, scores(given, beta).unsqueeze(1))

    return function


def whole_gap_at_the_end(new, reference, mask):
    gaps = gap_of(new, reference, mask)
    is_last = torch.arange(mask.shape[1]) == last_place(mask)[:, None]
    return gaps.sum(dim=1, keepdim=True) * is_last


def score_on_every_token(scores, log_probs, log_probs_reference, mask, *, beta):
    return -beta * gap_of(log_probs, log_probs_reference, mask) + scores[:, None] * mask


def gap_over_length(new, reference, mask):
    return gap_of(new, reference, mask) / mask.sum(dim=1, keepdim=True)


WRONG["token_rewards"] |= {
    "score_on_the_first_pad": paid(
        places=lambda mask: (last_place(mask) + 1).clamp(max=mask.shape[1] - 1)
    ),
    "score_in_the_last_column": paid(
        places=lambda mask: torch.full((len(mask),), mask.shape[1] - 1)
    ),
    "score_where_the_mask_counts_to": paid(places=lambda mask: mask.sum(dim=1) - 1),
    "score_on_the_first_token": paid(places=lambda mask: mask.long().argmax(dim=1)),
    "score_on_every_token": score_on_every_token,
    "score_replaces_the_price": paid(before=lambda rewards, at: rewards.scatter(1, at, 0.0)),
    "distance_rewarded": paid(price=lambda beta: -beta),
    "distance_priced_in_padding": paid(
        gap=lambda new, reference, mask: (new - reference).nan_to_num(1.0)
    ),
    "multiplied_by_the_mask": paid(gap=lambda new, reference, mask: (new - reference) * mask),
    "whole_distance_on_the_last_token": paid(gap=whole_gap_at_the_end),
    "beta_forgotten": paid(price=lambda beta: 1.0),
    "beta_on_the_score": paid(scores=lambda scores, beta: beta * scores),
    "never_paid_back": paid(gap=lambda *given: gap_of(*given).clamp(min=0)),
    "probabilities_compared": paid(
        gap=lambda new, reference, mask: gap_of(new.exp(), reference.exp(), mask)
    ),
    "averaged_over_the_answer": paid(gap=gap_over_length),
}

# --- advantages of tokens ------------------------------------------------------------------


@passes("token_advantages")
def backwards_with_a_mask(rewards, values, mask, *, gamma, gae_lambda):
    found = torch.zeros_like(rewards)
    carried, ahead = rewards.new_zeros(len(rewards)), rewards.new_zeros(len(rewards))
    for t in range(rewards.shape[1] - 1, -1, -1):
        here = rewards[:, t] + gamma * ahead - values[:, t] + gamma * gae_lambda * carried
        carried = torch.where(mask[:, t], here, torch.zeros_like(here))
        ahead = torch.where(mask[:, t], values[:, t], torch.zeros_like(here))
        found[:, t] = carried
    return found


@passes("token_advantages")
def answer_by_answer(rewards, values, mask, gamma=1.0, gae_lambda=0.95):
    found = torch.zeros_like(rewards)
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        paid, v = rewards[row, :length].tolist(), [*values[row, :length].tolist(), 0.0]
        following = 0.0
        for t in reversed(range(length)):
            following = paid[t] + gamma * v[t + 1] - v[t] + gamma * gae_lambda * following
            found[row, t] = following
    return found


@passes("token_advantages")
def by_a_matrix_of_weights(rewards, values, mask, *, gamma, gae_lambda):
    errors = error_of(rewards, values, mask, gamma)
    places = torch.arange(mask.shape[1])
    apart = places[:, None] - places
    weights = torch.where(apart >= 0, (gamma * gae_lambda) ** apart.clamp(min=0), 0.0)
    return (errors @ weights.to(errors.dtype)).masked_fill(~mask, 0)


def shifted(values):
    return functional.pad(values, (0, 1))[:, 1:]


def error_of(rewards, values, mask, gamma):
    kept = values.masked_fill(~mask, 0)
    return rewards.masked_fill(~mask, 0) + gamma * shifted(kept) - kept


def summed_back(errors, weight):
    found = torch.zeros_like(errors)
    following = torch.zeros_like(errors[:, 0])
    for t in reversed(range(errors.shape[1])):
        following = errors[:, t] + weight * following
        found[:, t] = following
    return found


def advantages_with(
    *,
    clean=lambda rewards, values, mask: (rewards, values, mask),
    errors=error_of,
    weight=lambda gamma, gae_lambda: gamma * gae_lambda,
    back=summed_back,
    result=lambda found, values, mask: found.masked_fill(~mask, 0),
):
    """Right but for one thing."""

    def function(rewards, values, mask, *, gamma, gae_lambda):
        rewards, values, mask = clean(rewards, values, mask)
        found = back(errors(rewards, values, mask, gamma), weight(gamma, gae_lambda))
        return result(found, values.masked_fill(~mask, 0), mask)

    return function


def last_left_out(rewards, values, mask):
    is_last = torch.arange(mask.shape[1]) == mask.sum(dim=1, keepdim=True) - 1
    return rewards, values, mask & ~is_last


def bootstrapped(rewards, values, mask, gamma):
    finite = values.nan_to_num(7.0, 7.0, -7.0)
    errors = rewards.masked_fill(~mask, 0) + gamma * shifted(finite) - finite
    return errors.masked_fill(~mask, 0)


def junk_left(rewards, values, mask, *, gamma, gae_lambda):
    found = backwards_with_a_mask(rewards, values, mask, gamma=gamma, gae_lambda=gae_lambda)
    return torch.where(mask, found, -values.nan_to_num(7.0, 7.0, -7.0))


def times_mask(rewards, values, mask, gamma):
    rewards, values = rewards * mask, values * mask
    return rewards + gamma * shifted(values) - values


def whitened(found, values, mask):
    counted = found[mask]
    spread = counted.std(correction=0) + 1e-8
    return ((found - counted.mean()) / spread).masked_fill(~mask, 0)


def whole_answer(rewards, values, mask, *, gamma, gae_lambda):
    rewards, values = rewards.masked_fill(~mask, 0), values.masked_fill(~mask, 0)
    return (rewards.sum(dim=1, keepdim=True) - values).masked_fill(~mask, 0)


WRONG["token_advantages"] |= {
    "value_after_the_end": advantages_with(errors=bootstrapped),
    "mask_one_short": advantages_with(clean=last_left_out),
    "junk_left_in_padding": junk_left,
    "multiplied_by_the_mask": advantages_with(
        errors=times_mask, result=lambda found, values, mask: found
    ),
    "answers_taken_for_time": advantages_with(
        back=lambda errors, weight: summed_back(errors.T, weight).T
    ),
    "forwards": advantages_with(
        back=lambda errors, weight: summed_back(errors.flip(1), weight).flip(1)
    ),
    "gamma_left_out_of_the_trace": advantages_with(weight=lambda gamma, gae_lambda: gae_lambda),
    "lambda_left_out_of_the_trace": advantages_with(weight=lambda gamma, gae_lambda: gamma),
    "one_step_only": advantages_with(weight=lambda gamma, gae_lambda: 0.0),
    "returns_given": advantages_with(
        result=lambda found, values, mask: (found + values).masked_fill(~mask, 0)
    ),
    "value_not_taken_away": advantages_with(
        errors=lambda rewards, values, mask, gamma: (
            error_of(rewards, values, mask, gamma) + values.masked_fill(~mask, 0)
        )
    ),
    "next_value_left_out": advantages_with(
        errors=lambda rewards, values, mask, gamma: error_of(rewards, values, mask, 0.0)
    ),
    "whitened": advantages_with(result=whitened),
    "score_for_all": whole_answer,
}

# --- how far whole answers are -------------------------------------------------------------


@passes("kl_of_answers")
def packages_terms(log_probs, log_probs_reference, mask):
    return tuple(
        rlhf.answer_kl(log_probs, log_probs_reference, mask, estimator=estimator).mean()
        for estimator in ("k1", "k3")
    )


@passes("kl_of_answers")
def with_a_filled_table(log_probs, log_probs_reference, mask):
    d = (log_probs - log_probs_reference).masked_fill(~mask, 0)
    return d.sum(dim=1).mean().item(), (torch.exp(-d) - 1 + d).sum(dim=1).mean().item()


@passes("kl_of_answers")
def token_by_token(log_probs, log_probs_reference, mask):
    k1 = k3 = 0.0
    for row in range(len(mask)):
        for t in range(mask.shape[1]):
            if mask[row, t]:
                d = float(log_probs[row, t] - log_probs_reference[row, t])
                k1 += d
                k3 += math.exp(-d) - 1 + d
    return [k1 / len(mask), k3 / len(mask)]


@passes("kl_of_answers")
def as_one_tensor(log_probs, log_probs_reference, mask):
    d = torch.where(mask, log_probs - log_probs_reference, 0.0)
    ratio = (-d).exp()
    return torch.stack([d.sum(), (ratio - ratio.log() - 1).sum()]) / mask.shape[0]


def kl_pair(
    *,
    k1=lambda d: d,
    k3=lambda d: torch.expm1(-d) + d,
    gap=gap_of,
    reduced=lambda terms, mask: terms.sum().item() / len(mask),
    given=lambda one, three: (one, three),
):
    """Right but for one thing."""

    def function(log_probs, log_probs_reference, mask):
        d = gap(log_probs, log_probs_reference, mask)
        terms = [estimate(d).masked_fill(~mask, 0) for estimate in (k1, k3)]
        return given(*(reduced(each, mask) for each in terms))

    return function


def over_rows(terms, mask):
    return (terms.sum(dim=1) / mask.sum(dim=1)).mean().item()


def whole_k3(log_probs, log_probs_reference, mask):
    d = gap_of(log_probs, log_probs_reference, mask).sum(dim=1)
    return d.mean().item(), (torch.expm1(-d) + d).mean().item()


def padding_added(log_probs, log_probs_reference, mask):
    d = (log_probs - log_probs_reference).nan_to_num(1.0, 9.0, -9.0).clamp(-9, 9)
    return d.sum().item() / len(mask), (torch.expm1(-d) + d).sum().item() / len(mask)


def both_times_mask(log_probs, log_probs_reference, mask):
    d = (log_probs - log_probs_reference) * mask
    return d.sum().item() / len(mask), (torch.expm1(-d) + d).sum().item() / len(mask)


WRONG["kl_of_answers"] |= {
    "mean_over_tokens": kl_pair(reduced=lambda terms, mask: terms.sum().item() / int(mask.sum())),
    "mean_of_row_means": kl_pair(reduced=over_rows),
    "added_over_answers": kl_pair(reduced=lambda terms, mask: terms.sum().item()),
    "padding_counted": padding_added,
    "multiplied_by_the_mask": both_times_mask,
    "reference_minus_policy": kl_pair(gap=lambda *given: -gap_of(*given)),
    "ratio_upside_down": kl_pair(k3=lambda d: torch.expm1(d) - d),
    "k3_of_the_whole_answer": whole_k3,
    "half_a_square": kl_pair(k3=lambda d: d**2 / 2),
    "never_negative": kl_pair(k1=torch.abs),
    "results_exchanged": kl_pair(given=lambda one, three: (three, one)),
    "one_not_taken_away": kl_pair(k3=lambda d: (-d).exp() + d),
    "distance_left_out_of_k3": kl_pair(k3=lambda d: torch.expm1(-d)),
}  # fmt: skip

# --- an adaptive price ---------------------------------------------------------------------


@passes("next_price")
def package_price(beta, kl, *, target_kl, num_samples, kl_horizon):
    return rlhf.adaptive_beta(
        beta, kl, target_kl=target_kl, num_samples=num_samples, kl_horizon=kl_horizon
    )


@passes("next_price")
def with_ifs(beta, kl, target_kl, num_samples, kl_horizon):
    error = (kl - target_kl) / target_kl
    if error > 0.2:
        error = 0.2
    elif error < -0.2:
        error = -0.2
    beta += beta * error * num_samples / kl_horizon
    return beta


@passes("next_price")
def with_a_clamp(beta, kl, *, target_kl, num_samples, kl_horizon):
    quotient = torch.tensor(kl / target_kl).clamp(0.8, 1.2)
    share = num_samples / kl_horizon
    return beta * (1 - share) + beta * share * quotient


def moved(
    *,
    error=lambda kl, target: kl / target - 1,
    limit=lambda error: min(max(error, -0.2), 0.2),
    step=lambda error, samples, horizon: error * samples / horizon,
    result=lambda beta, step: beta * (1 + step),
):
    """Right but for one thing."""

    def function(beta, kl, *, target_kl, num_samples, kl_horizon):
        return result(beta, step(limit(error(kl, target_kl)), num_samples, kl_horizon))

    return function


def doubled(beta, kl, *, target_kl, num_samples, kl_horizon):
    return 2 * beta if kl > 1.5 * target_kl else beta / 2 if kl < target_kl / 1.5 else beta


WRONG["next_price"] |= {
    "error_not_limited": moved(limit=lambda error: error),
    "limited_above_only": moved(limit=lambda error: min(error, 0.2)),
    "limited_below_only": moved(limit=lambda error: max(error, -0.2)),
    "step_limited": moved(
        limit=lambda error: error,
        step=lambda error, samples, horizon: min(max(error * samples / horizon, -0.2), 0.2),
    ),
    "moved_the_wrong_way": moved(result=lambda beta, step: beta * (1 - step)),
    "difference_not_relative": moved(error=lambda kl, target: kl - target),
    "target_over_kl": moved(error=lambda kl, target: target / kl - 1 if kl else math.inf),
    "samples_forgotten": moved(step=lambda error, samples, horizon: error / horizon),
    "horizon_forgotten": moved(step=lambda error, samples, horizon: error * samples),
    "horizon_over_samples": moved(step=lambda error, samples, horizon: error * horizon / samples),
    "added": moved(result=lambda beta, step: beta + step),
    "factor_given": moved(result=lambda beta, step: 1 + step),
    "doubled_or_halved": doubled,
}

# --- scoring with a bug --------------------------------------------------------------------


def priced(scores, log_probs, log_probs_reference, mask, beta):
    return paid()(scores, log_probs, log_probs_reference, mask, beta=beta)


@passes("mended_scoring")
def returns_before_whitening(
    scores, log_probs, log_probs_reference, values, mask, *, beta, gae_lambda
):
    rewards = priced(scores, log_probs, log_probs_reference, mask, beta)
    advantages = summed_back(error_of(rewards, values, mask, 1.0), gae_lambda).masked_fill(~mask, 0)
    returns = advantages + values.masked_fill(~mask, 0)
    counted = advantages[mask]
    advantages = (advantages - counted.mean()) / (counted.std() + 1e-8)
    return advantages.masked_fill(~mask, 0), returns


@passes("mended_scoring")
def with_the_package(scores, log_probs, log_probs_reference, values, mask, *, beta, gae_lambda):
    rewards = rlhf.token_rewards(scores, log_probs, log_probs_reference, mask, beta=beta)
    groups = torch.arange(len(scores))
    plain, returns = rlhf.critic_advantages(
        rewards, values, mask, groups, gamma=1.0, gae_lambda=gae_lambda
    )
    variance, mean = torch.var_mean(plain[mask])
    return torch.where(mask, (plain - mean) * torch.rsqrt(variance + 1e-8), 0.0), returns


@passes("mended_scoring")
def returns_by_their_own_recursion(
    scores, log_probs, log_probs_reference, values, mask, beta=0.1, gae_lambda=0.95
):
    rewards = priced(scores, log_probs, log_probs_reference, mask, beta)
    values = values.masked_fill(~mask, 0)
    returns = torch.zeros_like(values)
    ahead, next_value = torch.zeros_like(scores), torch.zeros_like(scores)
    for t in reversed(range(mask.shape[1])):
        mixed = (1 - gae_lambda) * next_value + gae_lambda * ahead
        ahead = torch.where(mask[:, t], rewards[:, t] + mixed, torch.zeros_like(scores))
        next_value = values[:, t]
        returns[:, t] = ahead
    plain = returns - values
    counted = plain[mask]
    white = torch.zeros_like(plain)
    white[mask] = (counted - counted.mean()) / counted.std()
    return [white, returns]


def white(plain, mask):
    counted = plain[mask]
    return ((plain - counted.mean()) / (counted.std() + 1e-8)).masked_fill(~mask, 0)


def scoring(
    *,
    price=lambda beta: beta,
    whiten=white,
    returns=lambda plain, advantages, values, rewards, mask: plain + values,
    kept=lambda values, mask: values.masked_fill(~mask, 0),
):
    """Right but for one thing."""

    def function(scores, log_probs, log_probs_reference, values, mask, *, beta, gae_lambda):
        rewards = priced(scores, log_probs, log_probs_reference, mask, price(beta))
        plain = summed_back(error_of(rewards, values, mask, 1.0), gae_lambda).masked_fill(~mask, 0)
        advantages = whiten(plain, mask)
        return advantages, returns(plain, advantages, kept(values, mask), rewards, mask)

    return function


def white_with_padding(plain, mask):
    return ((plain - plain.mean()) / (plain.std() + 1e-8)).masked_fill(~mask, 0)


def white_without_a_mask(plain, mask):
    counted = plain[mask]
    return (plain - counted.mean()) / (counted.std() + 1e-8)


WRONG["mended_scoring"] |= {
    "returns_of_whitened_advantages": scoring(
        returns=lambda plain, advantages, values, rewards, mask: advantages + values
    ),
    "returns_without_the_value": scoring(
        returns=lambda plain, advantages, values, rewards, mask: plain
    ),
    "value_taken_away_twice": scoring(
        returns=lambda plain, advantages, values, rewards, mask: plain - values
    ),
    "returns_whitened": scoring(
        returns=lambda plain, advantages, values, rewards, mask: white(plain + values, mask)
    ),
    "returns_are_sums_of_rewards": scoring(
        returns=lambda plain, advantages, values, rewards, mask: summed_back(rewards, 1.0)
    ),
    "not_whitened": scoring(whiten=lambda plain, mask: plain),
    "only_centred": scoring(
        whiten=lambda plain, mask: (plain - plain[mask].mean()).masked_fill(~mask, 0)
    ),
    "divided_by_the_variance": scoring(
        whiten=lambda plain, mask: white(plain, mask) / plain[mask].std()
    ),
    "whitened_with_the_padding": scoring(whiten=white_with_padding),
    "mean_left_in_the_padding": scoring(whiten=white_without_a_mask),
    "value_in_padding_is_a_target": scoring(kept=lambda values, mask: values),
    "price_forgotten": scoring(price=lambda beta: 0.0),
}

# --- by hand -------------------------------------------------------------------------------

TILTED = 0.2 * math.exp(1 / 0.5)
SOLVED = {
    "a": -0.5 * (-0.5 + 2.5),
    "b": 2 - 0.5 * 2.2,
    "c": 2 - 0.5 * 2.2 - 0.5,
    "d": -0.5 * 0.2 + 0.5 - 0.5,
    "e": 1 / (1 + math.exp(-2)),
    "f": TILTED / (0.8 + TILTED),
    "g": 0.2 * (1 + 0.2 * 80 / 160),
    "h": 7.0 * (2 * 16 + 2 * 2),
}
RIGHT["rewards_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {letter: round(number, 3) for letter, number in SOLVED.items()},
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["rewards_by_hand"] = {
    "distance_rewarded": SOLVED | {"a": 1.0, "b": 3.1},
    "beta_forgotten": SOLVED | {"a": -2.0, "b": -0.2},
    "score_left_out": SOLVED | {"b": -1.1},
    "price_left_out": SOLVED | {"b": 2.0},
    "value_added": SOLVED | {"c": 1.4},
    "only_the_score": SOLVED | {"c": 1.5},
    "next_value_left_out": SOLVED | {"d": -0.6},
    "last_token_looked_at": SOLVED | {"d": 0.4},
    "share_of_scores": SOLVED | {"e": 0.75},
    "other_one": SOLVED | {"e": 1 - SOLVED["e"]},
    "reference_left_out": SOLVED | {"f": 1 / (1 + math.exp(-2))},
    "reward_times_beta": SOLVED
    | {"f": 0.2 * math.exp(0.5) / (0.8 + 0.2 * math.exp(0.5))},
    "not_normalised": SOLVED | {"f": TILTED},
    "error_not_limited": SOLVED | {"g": 0.25},
    "samples_forgotten": SOLVED | {"g": 0.24},
    "lowered": SOLVED | {"g": 0.18},
    "all_four_learn": SOLVED | {"h": 7.0 * 64},
    "copy_forgotten": SOLVED | {"h": 7.0 * (2 * 4 + 2 * 2)},
}  # fmt: skip

# --- slow definitions ----------------------------------------------------------------------


def slow_preference(chosen, rejected):
    total = 0.0
    for better, worse in zip(chosen, rejected, strict=True):
        gap = better - worse
        # −log of the share that the preferred answer has of both weights
        total += math.log1p(math.exp(-abs(gap))) + max(0.0, -gap)
    return total / len(chosen)


def slow_rewards(scores, log_probs, log_probs_reference, mask, *, beta):
    found = []
    for score, new, reference, real in zip(
        scores, log_probs, log_probs_reference, mask, strict=True
    ):
        row = [0.0] * len(real)
        for t, counts in enumerate(real):
            if counts:
                row[t] = beta * (reference[t] - new[t])
                if not any(real[t + 1 :]):
                    row[t] += score
        found.append(row)
    return found


def slow_advantages(rewards, values, mask, *, gamma, gae_lambda):
    found = []
    for paid, v, real in zip(rewards, values, mask, strict=True):
        length = sum(real)
        row = [0.0] * len(real)
        for t in range(length):
            for k in range(t, length):
                ahead = v[k + 1] if k + 1 < length else 0.0
                row[t] += (gamma * gae_lambda) ** (k - t) * (paid[k] + gamma * ahead - v[k])
        found.append(row)
    return found


def slow_kl(log_probs, log_probs_reference, mask):
    gaps = [
        a - b
        for new, reference, real in zip(log_probs, log_probs_reference, mask, strict=True)
        for a, b, counts in zip(new, reference, real, strict=True)
        if counts
    ]
    ratios = [math.exp(-gap) for gap in gaps]
    third = [ratio - 1 - math.log(ratio) for ratio in ratios]
    return [math.fsum(gaps) / len(mask), math.fsum(third) / len(mask)]


def slow_price(*, beta, kl, target_kl, num_samples, kl_horizon):
    share = sorted((0.8, kl / target_kl, 1.2))[1]
    return beta + beta * (share - 1) * num_samples / kl_horizon


def slow_scoring(scores, log_probs, log_probs_reference, values, mask, *, beta, gae_lambda):
    rewards = slow_rewards(scores, log_probs, log_probs_reference, mask, beta=beta)
    plain = slow_advantages(rewards, values, mask, gamma=1.0, gae_lambda=gae_lambda)
    rows = [list(zip(*row, strict=True)) for row in zip(plain, values, mask, strict=True)]
    counted = [a for row in rows for a, _, real in row if real]
    mean = math.fsum(counted) / len(counted)
    spread = math.sqrt(math.fsum((a - mean) ** 2 for a in counted) / (len(counted) - 1))
    return (
        [[(a - mean) / spread if real else 0.0 for a, _, real in row] for row in rows],
        [[a + v if real else 0.0 for a, v, real in row] for row in rows],
    )


ORACLES = {
    "preference_loss": slow_preference,
    "token_rewards": slow_rewards,
    "token_advantages": slow_advantages,
    "kl_of_answers": slow_kl,
    "next_price": slow_price,
    "mended_scoring": slow_scoring,
}
