"""Answers to the exercises of lesson 16."""

from math import exp, log

import torch

from answers import new_catalogue
from ppo_lessons import staleness

EXERCISES = (
    "capped_weights",
    "decoupled_loss",
    "effective_shares",
    "mended_stale_loss",
    "stale_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

# --- a weight with a cap --------------------------------------------------------------------

RIGHT["capped_weights"]["package_weights"] = staleness.truncated_weights


@passes("capped_weights")
def cut_in_log_space(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    difference = log_probs_proximal - log_probs_behaviour
    return torch.exp(torch.clamp(difference, max=log(largest_weight)))


@passes("capped_weights")
def one_by_one(log_probs_proximal, log_probs_behaviour, largest_weight):
    found = [
        min(exp(new - old), largest_weight)
        for new, old in zip(
            log_probs_proximal.flatten().tolist(),
            log_probs_behaviour.flatten().tolist(),
            strict=True,
        )
    ]
    return torch.tensor(found, dtype=log_probs_proximal.dtype).reshape(log_probs_proximal.shape)


def weighed(cut=lambda w, c: w.clamp(max=c), *, quotient=lambda new, old: (new - old).exp()):
    """Right but for one thing."""

    def function(log_probs_proximal, log_probs_behaviour, *, largest_weight):
        return cut(quotient(log_probs_proximal, log_probs_behaviour), largest_weight)

    return function


WRONG["capped_weights"] |= {
    "never_capped": weighed(lambda w, c: w),
    "turned_over": weighed(quotient=lambda new, old: (old - new).exp()),
    "thrown_away_beyond_the_cap": weighed(lambda w, c: torch.where(w > c, 0, w)),
    "cut_below_too": weighed(lambda w, c: w.clamp(1 / c).clamp(max=c)),
    "clipped_around_one": weighed(lambda w, c: w.clamp(2 - c, c)),
    "logarithm_capped": lambda log_probs_proximal, log_probs_behaviour, *, largest_weight: (
        (log_probs_proximal - log_probs_behaviour).clamp(max=largest_weight).exp()
    ),
    "exponential_missing": weighed(quotient=lambda new, old: new - old),
    "cap_always_two": weighed(lambda w, c: w.clamp(max=2.0)),
    "cap_on_the_probability": weighed(lambda w, c: w.clamp(max=1 + c)),
    "scaled_to_mean_one": weighed(lambda w, c: w.clamp(max=c) / w.clamp(max=c).mean()),
    "quotient_of_probabilities": weighed(quotient=lambda new, old: new.exp() / old.exp()),
}

# --- the decoupled loss ---------------------------------------------------------------------


@passes("decoupled_loss")
def package_loss(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, *, clip_epsilon, largest_weight
):
    return staleness.decoupled_loss(
        log_probs,
        log_probs_proximal,
        log_probs_behaviour,
        advantages,
        clip_epsilon=clip_epsilon,
        largest_weight=largest_weight,
    )


@passes("decoupled_loss")
def weight_inside_the_minimum(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, *, clip_epsilon, largest_weight
):
    with torch.no_grad():
        weights = torch.exp(log_probs_proximal - log_probs_behaviour)
        weighed_advantages = torch.clamp(weights, max=largest_weight) * advantages
    ratios = torch.exp(log_probs - log_probs_proximal.detach())
    clipped = torch.clamp(ratios, 1 - clip_epsilon, 1 + clip_epsilon)
    return -torch.min(ratios * weighed_advantages, clipped * weighed_advantages).mean()


@passes("decoupled_loss")
def larger_of_two_losses(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, clip_epsilon, largest_weight
):
    proximal = log_probs_proximal.data
    cap = torch.full_like(proximal, largest_weight)
    weights = torch.minimum((proximal - log_probs_behaviour.data).exp(), cap)
    gains, ratios = weights * advantages.data, (log_probs - proximal).exp()
    low, high = 1 - clip_epsilon, 1 + clip_epsilon
    losses = torch.maximum(-gains * ratios, -gains * ratios.clamp(low, high))
    return losses.sum() / losses.numel()


def stale_loss(
    *,
    centre=lambda proximal, behaviour: proximal.detach(),
    weight=lambda proximal, behaviour, c: (proximal - behaviour).detach().exp().clamp(max=c),
    objective=lambda x, a, e, w, c: w * torch.minimum(x * a, x.clamp(1 - e, 1 + e) * a),
    mean=lambda terms, weights: -terms.mean(),
    advantages_of=lambda advantages: advantages.detach(),
):
    """Right but for one thing."""

    def function(
        log_probs,
        log_probs_proximal,
        log_probs_behaviour,
        advantages,
        *,
        clip_epsilon,
        largest_weight,
    ):
        ratios = (log_probs - centre(log_probs_proximal, log_probs_behaviour)).exp()
        weights = weight(log_probs_proximal, log_probs_behaviour, largest_weight)
        terms = objective(ratios, advantages_of(advantages), clip_epsilon, weights, largest_weight)
        return mean(terms, weights)

    return function


def behaviour_of(proximal, behaviour):
    return behaviour.detach()


def quotient(proximal, behaviour):
    return (proximal - behaviour).detach().exp()


WRONG["decoupled_loss"] |= {
    "clip_around_the_behaviour": stale_loss(
        centre=behaviour_of, weight=lambda p, b, c: torch.ones_like(p)
    ),
    "weight_left_out": stale_loss(weight=lambda p, b, c: torch.ones_like(p)),
    "corrected_twice": stale_loss(centre=behaviour_of),
    "weight_turned_over": stale_loss(weight=lambda p, b, c: quotient(b, p).clamp(max=c)),
    "weight_never_capped": stale_loss(weight=lambda p, b, c: quotient(p, b)),
    "thrown_away_beyond_the_cap": stale_loss(
        weight=lambda p, b, c: torch.where(quotient(p, b) > c, 0, quotient(p, b))
    ),
    "minimum_left_out": stale_loss(objective=lambda x, a, e, w, c: w * x.clamp(1 - e, 1 + e) * a),
    "nothing_clipped": stale_loss(objective=lambda x, a, e, w, c: w * x * a),
    "product_capped": stale_loss(
        weight=lambda p, b, c: quotient(p, b),
        objective=lambda x, a, e, w, c: torch.minimum(
            (w * x).clamp(max=c) * a, (w * x.clamp(1 - e, 1 + e)).clamp(max=c) * a
        ),
    ),
    "weights_that_learn": stale_loss(
        weight=lambda p, b, c: (p - b).exp().clamp(max=c),
    ),
    "gradient_into_the_proximal_policy": stale_loss(centre=lambda proximal, behaviour: proximal),
    "critic_trained_through_the_policy_loss": stale_loss(advantages_of=lambda a: a),
    "objective_called_a_loss": stale_loss(mean=lambda terms, weights: terms.mean()),
    "sum_over_the_batch": stale_loss(mean=lambda terms, weights: -terms.sum()),
    "divided_by_the_weights": stale_loss(mean=lambda terms, weights: -terms.sum() / weights.sum()),
}
RIGHT["mended_stale_loss"] |= RIGHT["decoupled_loss"]
WRONG["mended_stale_loss"] |= WRONG["decoupled_loss"]

# --- what is left of the data -----------------------------------------------------------------


@passes("effective_shares")
def package_shares(log_ratios, mask):
    return tuple(
        staleness.effective_share(log_ratios, mask, level=level) for level in ("token", "response")
    )


@passes("effective_shares")
def by_log_sum_exp(log_ratios, mask):
    found = []
    for logs in (log_ratios[mask], (log_ratios * mask).sum(dim=1)):
        above, below = 2 * logs.logsumexp(0), (2 * logs).logsumexp(0)
        found.append((above - below).exp().item() / len(logs))
    return found


@passes("effective_shares")
def answer_by_answer(log_ratios, mask):
    tokens, answers = [], []
    for row, counts in zip(log_ratios.tolist(), mask.tolist(), strict=True):
        chosen = [x for x, count in zip(row, counts, strict=True) if count]
        tokens += chosen
        answers.append(sum(chosen))
    found = []
    for logs in (tokens, answers):
        weights = [exp(x - max(logs)) for x in logs]
        found.append(sum(weights) ** 2 / sum(w * w for w in weights) / len(weights))
    return torch.tensor(found)


def share(logs):
    weights = (logs - logs.max()).exp()
    return weights.sum() ** 2 / (weights**2).sum() / len(weights)


def shares_of(
    share=share,
    *,
    tokens=lambda logs, mask: logs[mask],
    answers=lambda logs, mask: logs.masked_fill(~mask, 0).sum(1),
    given=lambda token, answer: (token, answer),
):
    """Right but for one thing."""

    def function(log_ratios, mask):
        return given(share(tokens(log_ratios, mask)), share(answers(log_ratios, mask)))

    return function


def mean_of_tokens(logs, mask):
    return logs.masked_fill(~mask, 0).sum(1) / mask.sum(1)


def root_of_the_sum(logs):
    weights = (logs - logs.max()).exp()
    return weights.sum() / (weights**2).sum() / len(weights)


WRONG["effective_shares"] |= {
    "mean_for_product": shares_of(answers=mean_of_tokens),
    "padding_counted": shares_of(
        tokens=lambda logs, mask: logs.flatten(), answers=lambda logs, mask: logs.sum(1)
    ),
    "padding_in_the_answers": shares_of(answers=lambda logs, mask: logs.sum(1)),
    "size_for_share": shares_of(lambda logs: share(logs) * len(logs)),
    "share_of_tokens_twice": shares_of(answers=lambda logs, mask: logs[mask]),
    "results_exchanged": shares_of(given=lambda token, answer: (answer, token)),
    "ratios_added": shares_of(
        answers=lambda logs, mask: logs.masked_fill(~mask, -torch.inf).logsumexp(1)
    ),
    "logarithms_as_weights": shares_of(lambda logs: logs.sum() ** 2 / (logs**2).sum() / len(logs)),
    "first_token_only": shares_of(answers=lambda logs, mask: logs[:, 0]),
    "sum_not_squared": shares_of(root_of_the_sum),
    "out_of_log_space": shares_of(
        lambda logs: logs.exp().sum() ** 2 / (logs.exp() ** 2).sum() / len(logs)
    ),
    "mean_weight_taken_for_one": shares_of(lambda logs: 1 / (2 * logs).exp().mean()),
}

# --- by hand ------------------------------------------------------------------------------------

SOLVED = {"a": 2.0, "b": 0.25, "c": exp(2), "d": 0.75, "e": 3.6, "f": 2.6, "g": 5.0}
RIGHT["stale_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
WRONG["stale_by_hand"] = {
    "never_capped": SOLVED | {"a": 3.0},
    "thrown_away": SOLVED | {"a": 0.0},
    "raised_to_one_over_c": SOLVED | {"b": 0.5},
    "turned_over": SOLVED | {"b": 4.0},
    "sum_of_logarithms": SOLVED | {"c": 2.0},
    "mean_token": SOLVED | {"c": exp(0.02)},
    "size_for_share": SOLVED | {"d": 3.0},
    "sum_not_squared": SOLVED | {"d": 0.125},
    "weight_left_out": SOLVED | {"e": 2.4},
    "corrected_twice": SOLVED | {"e": 3.9},
    "clip_around_the_behaviour": SOLVED | {"e": 2.6},
    "nothing_clipped": SOLVED | {"f": 3.6},
    "room_for_age": SOLVED | {"g": 6.0},
    "newest_first": SOLVED | {"g": 0.0},
}

# --- slow definitions ---------------------------------------------------------------------------


def slow_weights(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    if isinstance(log_probs_proximal, list):
        pairs = zip(log_probs_proximal, log_probs_behaviour, strict=True)
        return [slow_weights(new, old, largest_weight=largest_weight) for new, old in pairs]
    weight = exp(log_probs_proximal - log_probs_behaviour)
    return weight if weight < largest_weight else largest_weight


def slow_stale_loss(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, *, clip_epsilon, largest_weight
):
    total = 0.0
    columns = (log_probs, log_probs_proximal, log_probs_behaviour, advantages)
    for new, start, old, advantage in zip(*columns, strict=True):
        ratio = exp(new - start)
        # a good action is paid up to 1 + ε, a bad one is punished down to 1 − ε
        edge = min(ratio, 1 + clip_epsilon) if advantage > 0 else max(ratio, 1 - clip_epsilon)
        total += min(exp(start - old), largest_weight) * edge * advantage
    return -total / len(log_probs)


def slow_shares(log_ratios, mask):
    tokens, answers = [], []
    for row, counts in zip(log_ratios, mask, strict=True):
        chosen = [x for x, count in zip(row, counts, strict=True) if count]
        tokens, answers = [*tokens, *chosen], [*answers, sum(chosen)]
    found = []
    for logs in (tokens, answers):
        # pairs: (Σ w)² / Σ w², each weight relative to another
        ones = [1 / sum(exp(other - one) for other in logs) for one in logs]
        found.append(1 / sum(each**2 for each in ones) / len(logs))
    return found


ORACLES = {
    "capped_weights": slow_weights,
    "decoupled_loss": slow_stale_loss,
    "effective_shares": slow_shares,
    "mended_stale_loss": slow_stale_loss,
}
