"""Answers to the exercises of lesson 12."""

import math
import statistics

import numpy as np
import torch
from torch import nn

from answers import new_catalogue
from ppo_lessons.gae import compute_gae
from ppo_lessons.shapes import masked_mean

EXERCISES = (
    "probe_values",
    "first_alarm",
    "update_agreement",
    "diagnoses",
    "mended_iteration",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)


# --- the values of a probe -----------------------------------------------------------------

GAMMA, PAYS, LIMIT = 0.5, (0.0, 2.0, 1.0), 4
ends_with = PAYS[2]
middle = PAYS[1] + GAMMA * ends_with
start = PAYS[0] + GAMMA * middle
SOLVED = {
    "a": middle,
    "b": start,
    "c": 1 / (1 - GAMMA),
    "d": 1 / (1 - GAMMA * (LIMIT - 1) / LIMIT),
    "e": sum(PAYS),
    "f": PAYS[2] + GAMMA * (PAYS[0] + GAMMA * PAYS[1]),
    "g": 0.8 - 0.2,
    "h": (start + middle + ends_with) / 3,
}
RIGHT["probe_values"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {**SOLVED, "h": 1.583},
    "a_tensor": torch.tensor(list(SOLVED.values())),
}
WRONG["probe_values"] = {
    "own_reward_discounted": SOLVED | {"a": GAMMA * middle, "b": GAMMA**2 * middle},
    "not_discounted": SOLVED | {"a": PAYS[1] + PAYS[2], "b": sum(PAYS)},
    "next_reward_only": SOLVED | {"b": GAMMA * PAYS[1]},
    "limit_is_the_end": SOLVED | {"c": sum(GAMMA**k for k in range(LIMIT))},
    "rewards_counted": SOLVED | {"c": LIMIT},
    "last_night_only": SOLVED | {"d": 1.0},
    "averaged_over_the_clock": SOLVED
    | {"d": statistics.mean(sum(GAMMA**k for k in range(left)) for left in (1, 2, 3, 4))},
    "one_more_step": SOLVED | {"d": 1 / (1 - GAMMA * LIMIT / (LIMIT + 1))},
    "still_discounted": SOLVED | {"e": start},
    "first_row_earns_nothing": SOLVED | {"f": GAMMA * (PAYS[0] + GAMMA * PAYS[1])},
    "moved_the_other_way": SOLVED | {"f": PAYS[1] + GAMMA * (PAYS[2] + GAMMA * PAYS[0])},
    "likeliest_action_alone": SOLVED | {"g": 1.0},
    "bad_action_counts_nothing": SOLVED | {"g": 0.8},
    "mean_of_the_rewards": SOLVED | {"h": statistics.mean(PAYS)},
    "value_of_the_start": SOLVED | {"h": start},
}


# --- the first alarm -----------------------------------------------------------------------


@passes("first_alarm")
def counted_on(metric, healthy, *, patience):
    low, high = healthy.min(0).values, healthy.max(0).values
    outside, length = (metric < low) | (metric > high), 0
    for iteration, out in enumerate(outside.tolist()):
        length = length + 1 if out else 0
        if length == patience:
            return iteration - patience + 1
    return -1


@passes("first_alarm")
def by_windows(metric, healthy, *, patience):
    outside = (metric < healthy.amin(0)) | (metric > healthy.amax(0))
    if len(outside) < patience:
        return -1
    whole = outside.unfold(0, patience, 1).all(-1).nonzero().flatten()
    return whole[0] if len(whole) else torch.tensor(-1)


@passes("first_alarm")
def in_numpy(metric, healthy, patience):
    rows, seeds = metric.numpy(), healthy.numpy()
    outside = np.logical_or((rows < seeds).all(0), (rows > seeds).all(0))
    starts = [t for t in range(len(rows) - patience + 1) if outside[t : t + patience].all()]
    return min(starts, default=-1)


@passes("first_alarm")
def as_a_word(metric, healthy, *, patience=3):
    word = "".join(
        "x" if not min(column) <= each <= max(column) else "."
        for each, column in zip(metric.tolist(), healthy.T.tolist(), strict=True)
    )
    return float(word.find("x" * patience))


def alarm(
    *,
    edges=lambda seeds: (seeds.amin(0), seeds.amax(0)),
    outside=lambda rows, low, high: (rows < low) | (rows > high),
    length=lambda patience: patience,
    running=lambda before, out: before + 1 if out else 0,
    answer=lambda reached, patience: reached - patience + 1,
    never=-1,
):
    """The rule, with one part replaced."""

    def find(metric, healthy, *, patience):
        low, high = edges(healthy)
        count = 0
        for iteration, out in enumerate(outside(metric, low, high).tolist()):
            count = running(count, out)
            if count >= length(patience):
                return answer(iteration, length(patience))
        return never(metric) if callable(never) else never

    return find


def two_deviations(seeds):
    middle, spread = seeds.mean(0), seeds.std(0, correction=0)
    return middle - 2 * spread, middle + 2 * spread


WRONG["first_alarm"] |= {
    "one_is_enough": alarm(length=lambda patience: 1),
    "low_side_only": alarm(outside=lambda rows, low, high: rows < low),
    "high_side_only": alarm(outside=lambda rows, low, high: rows > high),
    "edges_of_the_whole_run": alarm(edges=lambda seeds: (seeds.min(), seeds.max())),
    "two_deviations": alarm(edges=two_deviations),
    "distance_from_the_mean": alarm(edges=lambda seeds: (seeds.mean(0), seeds.mean(0))),
    "first_seed_only": alarm(edges=lambda seeds: (seeds[0], seeds[0])),
    "not_in_a_row": alarm(
        running=lambda before, out: before + out, answer=lambda reached, patience: reached
    ),
    "end_of_the_stretch": alarm(answer=lambda reached, patience: reached),
    "one_iteration_fewer": alarm(length=lambda patience: max(patience - 1, 1)),
    "one_iteration_more": alarm(length=lambda patience: patience + 1),
    "edge_counts_as_outside": alarm(outside=lambda rows, low, high: (rows <= low) | (rows >= high)),
    "counted_from_one": alarm(answer=lambda reached, patience: reached - patience + 2, never=-1),
    "zero_for_never": alarm(never=0),
    "length_for_never": alarm(never=len),
    "inside_for_outside": alarm(outside=lambda rows, low, high: (rows >= low) & (rows <= high)),
}


# --- agreement -----------------------------------------------------------------------------


@passes("update_agreement")
def with_a_mask(log_probs, log_probs_old, advantages, valid):
    moves, wishes = log_probs - log_probs_old, advantages
    moves = moves - masked_mean(moves, valid)
    wishes = wishes - masked_mean(wishes, valid)
    together = masked_mean(moves * wishes, valid)
    size = (masked_mean(moves**2, valid) * masked_mean(wishes**2, valid)).sqrt()
    return torch.where(size > 1e-12, together / size.clamp(min=1e-12), 0.0)


@passes("update_agreement")
def with_corrcoef(log_probs, log_probs_old, advantages, valid):
    pair = torch.stack([(log_probs - log_probs_old)[valid], advantages[valid]])
    return torch.corrcoef(pair)[0, 1].nan_to_num(0.0) if pair.shape[1] > 1 else pair.new_zeros(())


@passes("update_agreement")
def of_unit_vectors(log_probs, log_probs_old, advantages, valid):
    def unit(row):
        row = row[valid].double()
        row = row - row.mean()
        return row / row.norm() if row.norm() > 1e-9 else row * 0

    return unit(log_probs - log_probs_old) @ unit(advantages)


@passes("update_agreement")
def in_float32(log_probs, log_probs_old, advantages, valid):
    move = (log_probs - log_probs_old)[valid].float()
    wish = advantages[valid].float()
    spread = move.std(correction=0) * wish.std(correction=0)
    if spread < 1e-6:
        return torch.tensor(0.0)
    return ((move - move.mean()) * (wish - wish.mean())).mean() / spread


@passes("update_agreement")
def by_a_loop(log_probs, log_probs_old, advantages, valid):
    rows = [
        (new - old, wish)
        for new, old, wish, real in zip(
            *(each.tolist() for each in (log_probs, log_probs_old, advantages, valid)), strict=True
        )
        if real
    ]
    try:
        return torch.tensor(statistics.correlation(*zip(*rows, strict=True)))
    except statistics.StatisticsError:
        return torch.tensor(0.0)


def centred(row):
    return row - row.mean()


def correlation(moves, wishes):
    moves, wishes = centred(moves), centred(wishes)
    size = moves.norm() * wishes.norm()
    return (moves * wishes).sum() / size if size > 1e-9 else size * 0


def agreement(measure=correlation, move=lambda new, old: new - old, keep=None):
    """The metric, with one part replaced."""

    def find(log_probs, log_probs_old, advantages, valid):
        rows = valid if keep is None else keep(valid)
        return measure(move(log_probs, log_probs_old)[rows], advantages[rows])

    return find


def still(moves, wishes):
    """Whether one of the two does not vary."""
    return bool(centred(moves).norm() * centred(wishes).norm() < 1e-9)


def unless_still(measure):
    return lambda moves, wishes: moves.sum() * 0 if still(moves, wishes) else measure(moves, wishes)


def ranks(row):
    return row.argsort().argsort().to(row.dtype)


def rows_zeroed(log_probs, log_probs_old, advantages, valid):
    return correlation((log_probs - log_probs_old) * valid, advantages * valid)


WRONG["update_agreement"] |= {
    "old_minus_new": agreement(move=lambda new, old: old - new),
    "not_divided": agreement(lambda moves, wishes: (centred(moves) * centred(wishes)).mean()),
    "not_centred": agreement(
        unless_still(lambda moves, wishes: moves @ wishes / (moves.norm() * wishes.norm()))
    ),
    "slope_for_correlation": agreement(
        unless_still(lambda moves, wishes: centred(moves) @ wishes / centred(wishes).square().sum())
    ),
    "ratios_compared": agreement(move=lambda new, old: (new - old).exp()),
    "probabilities_compared": agreement(move=lambda new, old: new.exp() - old.exp()),
    "new_policy_alone": agreement(move=lambda new, old: new),
    "valid_ignored": agreement(keep=lambda valid: torch.ones_like(valid)),
    "mask_turned": agreement(keep=lambda valid: ~valid if (~valid).any() else valid),
    "rows_zeroed": rows_zeroed,
    "nan_when_still": agreement(
        lambda moves, wishes: (
            (centred(moves) * centred(wishes)).sum()
            / (centred(moves).norm() * centred(wishes).norm())
        )
    ),
    "one_when_still": agreement(
        lambda moves, wishes: (
            moves.sum() * 0 + 1 if still(moves, wishes) else correlation(moves, wishes)
        )
    ),
    "share_of_equal_signs": agreement(
        unless_still(lambda moves, wishes: (moves.sign() == wishes.sign()).double().mean())
    ),
    "squared": agreement(lambda moves, wishes: correlation(moves, wishes) ** 2),
    "absolute_value": agreement(lambda moves, wishes: correlation(moves, wishes).abs()),
    "ranks_compared": agreement(
        unless_still(lambda moves, wishes: correlation(ranks(moves), ranks(wishes)))
    ),
    "two_kinds_of_spread": agreement(
        unless_still(
            lambda moves, wishes: (
                (centred(moves) * centred(wishes)).mean() / (moves.std() * wishes.std())
            )
        )
    ),
}


# --- eight runs ----------------------------------------------------------------------------

# Nine causes, and "nothing is wrong", in the order in which the task lists them.
CAUSES = (
    *("healthy", "steps_too_long", "old_on_the_graph", "old_and_new_swapped"),
    *("clip_on_the_wrong_side", "probabilities_as_logits", "values_broadcast"),
    *("critic_not_trained", "normalized_too_early", "gradients_cut_to_nothing"),
)
RUNS = {
    "a": "normalized_too_early",
    "b": "old_on_the_graph",
    "c": "values_broadcast",
    "d": "healthy",
    "e": "probabilities_as_logits",
    "f": "gradients_cut_to_nothing",
    "g": "old_and_new_swapped",
    "h": "critic_not_trained",
}


def causes(**changed):
    """The number of the cause of each run."""
    return {letter: CAUSES.index(cause) + 1 for letter, cause in (RUNS | changed).items()}


RIGHT["diagnoses"] = {
    "by_letter": causes(),
    "a_list": list(causes().values()),
    "capital_letters": {letter.upper(): number for letter, number in causes().items()},
    "a_tensor": torch.tensor(list(causes().values())),
}
WRONG["diagnoses"] = {
    "return_looked_at_alone": causes(a="healthy"),
    "critic_that_learns_called_untrained": causes(a="critic_not_trained"),
    "both_networks_called_still": causes(b="gradients_cut_to_nothing"),
    "policy_called_still_alone": causes(f="old_on_the_graph"),
    "mean_taken_for_nothing": causes(c="critic_not_trained"),
    "nothing_taken_for_the_mean": causes(h="values_broadcast"),
    "units_of_the_loss_mistaken": causes(h="normalized_too_early"),
    "healthy_run_accused": causes(d="steps_too_long"),
    "healthy_critic_accused": causes(d="values_broadcast"),
    "floor_of_the_entropy_missed": causes(e="healthy"),
    "critic_accused_of_the_entropy": causes(e="normalized_too_early"),
    "certainty_taken_for_long_steps": causes(g="steps_too_long"),
    "clip_accused": causes(g="clip_on_the_wrong_side"),
}


# --- an iteration with a bug ---------------------------------------------------------------


def clipped(ratios, advantages, epsilon):
    return torch.minimum(ratios * advantages, ratios.clamp(1 - epsilon, 1 + epsilon) * advantages)


def iteration(
    *,
    targets=lambda score: score["advantages"] + score["values"],
    target_now=None,
    policy_advantages="normalized",
    cut_bootstrap=lambda terminated, truncated: terminated,
    cut_trace=lambda terminated, truncated: terminated | truncated,
    objective=clipped,
    old=lambda score, now: score["log_probs_old"],
    sign=-1,
    half=0.5,
    correction=0,
    score_anew=False,
    no_last=False,
):
    """One iteration with tables, with one part replaced."""

    def run(
        logits, critic, states, next_states, actions, rewards, terminated, truncated,
        *, gamma, gae_lambda, clip_epsilon, num_epochs, learning_rate,
    ):  # fmt: skip
        def score(critic):
            values, next_values = critic[states], critic[next_states].clone()
            if no_last:
                next_values[-1] = 0
            bootstrap = next_values * ~cut_bootstrap(terminated, truncated)
            errors = rewards + gamma * bootstrap - values
            advantages, later = torch.zeros_like(errors), 0.0
            for t in reversed(range(len(errors))):
                goes_on = 1.0 - float(cut_trace(terminated, truncated)[t])
                later = errors[t] + gamma * gae_lambda * goes_on * later
                advantages[t] = later
            spread = advantages.std(correction=correction) if len(errors) > 1 else 0.0
            normalized = (advantages - advantages.mean()) / (spread + 1e-8)
            return {"advantages": advantages, "values": values, "normalized": normalized}

        logits, critic = logits.detach().clone(), critic.detach().clone()
        found = score(critic)
        found["log_probs_old"] = logits.log_softmax(-1)[states, actions]
        found["rewards"] = rewards
        for _ in range(num_epochs):
            if score_anew:
                found |= score(critic.detach())
            logits, critic = (each.detach().requires_grad_() for each in (logits, critic))
            log_probs = logits.log_softmax(-1)[states, actions]
            ratios = (log_probs - old(found, log_probs.detach())).exp()
            policy_loss = sign * objective(ratios, found[policy_advantages], clip_epsilon).mean()
            now = (
                targets(found) if target_now is None else target_now(found, critic.detach()[states])
            )
            value_loss = half * ((critic[states] - now) ** 2).mean()
            slopes = torch.autograd.grad(policy_loss + value_loss, (logits, critic))
            logits, critic = logits - learning_rate * slopes[0], critic - learning_rate * slopes[1]
        return logits.detach(), critic.detach()

    return run


RIGHT["mended_iteration"]["one_word_changed"] = iteration()


@passes("mended_iteration")
def with_the_package(
    logits, critic, states, next_states, actions, rewards, terminated, truncated,
    *, gamma, gae_lambda, clip_epsilon, num_epochs, learning_rate,
):  # fmt: skip
    column = [each[:, None] for each in (rewards, critic[states], critic[next_states])]
    flags = terminated[:, None], truncated[:, None]
    advantages = compute_gae(*column, *flags, gamma=gamma, gae_lambda=gae_lambda)[:, 0]
    returns = advantages + critic[states]
    normalized = centred(advantages) / (advantages.std(correction=0) + 1e-8)
    weights = [nn.Parameter(each.detach().clone()) for each in (logits, critic)]
    optimizer = torch.optim.SGD(weights, lr=learning_rate)
    old = logits.log_softmax(-1)[states, actions].detach()
    for _ in range(num_epochs):
        optimizer.zero_grad()
        ratios = (weights[0].log_softmax(-1)[states, actions] - old).exp()
        errors = weights[1][states] - returns
        (errors.square().mean() / 2 - clipped(ratios, normalized, clip_epsilon).mean()).backward()
        optimizer.step()
    return weights[0].detach(), weights[1].detach()


@passes("mended_iteration")
def gradients_by_hand(
    logits, critic, states, next_states, actions, rewards, terminated, truncated,
    gamma, gae_lambda, clip_epsilon, num_epochs, learning_rate,
):  # fmt: skip
    values = critic[states]
    errors = rewards + gamma * critic[next_states].masked_fill(terminated, 0) - values
    weights = gamma * gae_lambda * (~(terminated | truncated)).to(errors.dtype)
    advantages = errors.clone()
    for t in range(len(errors) - 2, -1, -1):
        advantages[t] += weights[t] * advantages[t + 1]
    returns, count = advantages + values, len(errors)
    normalized = centred(advantages) / (advantages.std(correction=0) + 1e-8)
    logits, critic = logits.detach().clone(), critic.detach().clone()
    old = logits.softmax(-1)[states, actions]
    for _ in range(num_epochs):
        policy = logits.softmax(-1)
        ratios = policy[states, actions] / old
        silent = torch.where(normalized > 0, ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon)
        push = (ratios * normalized * ~silent / count).unsqueeze(-1)
        chosen = nn.functional.one_hot(actions, logits.shape[1]).to(logits.dtype)
        pull = (critic[states] - returns) / count
        logits = logits.index_add(0, states, learning_rate * push * (chosen - policy[states]))
        critic = critic.index_add(0, states, -learning_rate * pull)
    return logits, critic


def no_minimum(ratios, advantages, epsilon):
    return ratios.clamp(1 - epsilon, 1 + epsilon) * advantages


def no_clip(ratios, advantages, epsilon):
    return ratios * advantages


WRONG["mended_iteration"] |= {
    "returns_from_normalized_advantages": iteration(
        targets=lambda score: score["normalized"] + score["values"]
    ),
    "advantages_for_returns": iteration(targets=lambda score: score["advantages"]),
    "rewards_for_returns": iteration(targets=lambda score: score["rewards"]),
    "advantages_not_normalized": iteration(policy_advantages="advantages"),
    "neither_normalized_nor_mended": iteration(
        policy_advantages="advantages",
        targets=lambda score: score["normalized"] + score["values"],
    ),
    "target_follows_the_critic": iteration(
        target_now=lambda score, values: score["advantages"] + values
    ),
    "flags_merged": iteration(cut_bootstrap=lambda terminated, truncated: terminated | truncated),
    "truncated_ignored": iteration(cut_trace=lambda terminated, truncated: terminated),
    "no_bootstrap_at_the_cut": iteration(no_last=True),
    "old_policy_renewed": iteration(old=lambda score, now: now),
    "climbs_down": iteration(sign=1),
    "whole_square": iteration(half=1.0),
    "minimum_forgotten": iteration(objective=no_minimum),
    "clip_forgotten": iteration(objective=no_clip),
    "sample_deviation": iteration(correction=1),
    "scored_anew_each_epoch": iteration(score_anew=True),
}


# --- slow definitions ----------------------------------------------------------------------


def slow_alarm(metric, healthy, *, patience):
    for first in range(len(metric) - patience + 1):
        stretch = range(first, first + patience)
        if all(
            all(metric[t] < row[t] for row in healthy) or all(metric[t] > row[t] for row in healthy)
            for t in stretch
        ):
            return first
    return -1


def slow_agreement(log_probs, log_probs_old, advantages, valid):
    rows = zip(log_probs, log_probs_old, advantages, valid, strict=True)
    pairs = [(new - old, wish) for new, old, wish, real in rows if real]
    size = len(pairs)
    means = [sum(pair[side] for pair in pairs) / size for side in (0, 1)]
    spreads = [math.sqrt(sum((pair[side] - means[side]) ** 2 for pair in pairs)) for side in (0, 1)]
    if spreads[0] * spreads[1] < 1e-9:
        return 0.0
    return sum((a - means[0]) * (b - means[1]) for a, b in pairs) / (spreads[0] * spreads[1])


def slow_advantages(errors, terminated, truncated, decay):
    found = []
    for first in range(len(errors)):  # the double sum
        total = 0.0
        for t in range(first, len(errors)):
            total += decay ** (t - first) * errors[t]
            if terminated[t] or truncated[t]:
                break
        found.append(total)
    return found


def slow_policy(table):
    totals = [sum(math.exp(each) for each in row) for row in table]
    return [[math.exp(z) / total for z in row] for row, total in zip(table, totals, strict=True)]


def slow_iteration(
    logits, critic, states, next_states, actions, rewards, terminated, truncated,
    *, gamma, gae_lambda, clip_epsilon, num_epochs, learning_rate,
):  # fmt: skip
    count = len(states)
    facts = zip(rewards, terminated, states, next_states, strict=True)
    errors = [
        reward + (0 if over else gamma * critic[after]) - critic[before]
        for reward, over, before, after in facts
    ]
    advantages = slow_advantages(errors, terminated, truncated, gamma * gae_lambda)
    targets = [a + critic[s] for a, s in zip(advantages, states, strict=True)]
    middle, spread = statistics.fmean(advantages), statistics.pstdev(advantages)
    normalized = [(each - middle) / (spread + 1e-8) for each in advantages]
    first = slow_policy(logits)
    logits, critic = [list(row) for row in logits], list(critic)
    for _ in range(num_epochs):
        policy, before = slow_policy(logits), list(critic)
        for s, a, wish, target in zip(states, actions, normalized, targets, strict=True):
            critic[s] -= learning_rate * (before[s] - target) / count
            ratio = policy[s][a] / first[s][a]
            silent = ratio > 1 + clip_epsilon if wish > 0 else ratio < 1 - clip_epsilon
            push = 0.0 if silent else learning_rate * ratio * wish / count
            for other, chance in enumerate(policy[s]):
                logits[s][other] += push * ((other == a) - chance)
    return logits, critic


ORACLES = {
    "first_alarm": slow_alarm,
    "update_agreement": slow_agreement,
    "mended_iteration": slow_iteration,
}
