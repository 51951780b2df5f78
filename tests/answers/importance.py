"""Answers to the exercises of lesson 02."""

import math

import torch
from mistakes import mistakes_of
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import importance

EXERCISES = (
    "importance_ratios",
    "effective_sample_size",
    "surrogate_loss",
    "approximate_kl",
    "four_draws",
    "mended_squeeze",
    "trajectory_weights",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

# Mistakes of the module that learners make, too; others break what the exercises leave out.
SHARED = {
    "quotient_of_probabilities": "importance_ratios",
    "inverse_ratio": "importance_ratios",
    "old_log_probs_recomputed": "importance_ratios",
    "logarithm_kept": "importance_ratios",
    "old_log_probs_not_used_as_given": "importance_ratios",
    "share_instead_of_samples": "effective_sample_size",
    "squares_not_summed": "effective_sample_size",
    "samples_with_weight": "effective_sample_size",
    "squares_overflow": "effective_sample_size",
    "log_prob_in_place_of_the_ratio": "surrogate_loss",
    "surrogate_called_a_loss": "surrogate_loss",
    "old_policy_not_detached": "surrogate_loss",
    "log_ratio_as_weight": "surrogate_loss",
    "ratio_as_a_constant_weight": "surrogate_loss",
    "advantages_not_detached": "surrogate_loss",
    "weights_made_to_sum_to_one": "surrogate_loss",
    "summed_over_the_batch": "surrogate_loss",
    "direction_swapped": "approximate_kl",
    "k3_sign_turned": "approximate_kl",
    "k3_without_minus_one": "approximate_kl",
    "k1_sign_turned": "approximate_kl",
    "k2_without_the_half": "approximate_kl",
    "k1_made_positive": "approximate_kl",
}
for mistake in mistakes_of("importance"):
    if SHARED.get(mistake.name) == mistake.breaks:
        WRONG[mistake.breaks][mistake.name] = mistake.function
for name in ("importance_ratios", "effective_sample_size", "surrogate_loss", "approximate_kl"):
    RIGHT[name]["package"] = getattr(importance, name)


# --- ratios --------------------------------------------------------------------------------


@passes("importance_ratios")
def difference_first(log_probs, log_probs_old):
    return torch.exp(log_probs - log_probs_old)


@passes("importance_ratios")
def old_ones_detached(log_probs, log_probs_old):
    return (log_probs - log_probs_old.detach()).exp()


@passes("importance_ratios")
def one_by_one(log_probs, log_probs_old):
    pairs = zip(log_probs.flatten(), log_probs_old.flatten(), strict=True)
    return torch.stack([torch.exp(new - old) for new, old in pairs]).reshape(log_probs.shape)


@passes("importance_ratios")
def by_expm1_in_float32(log_probs, log_probs_old):
    return torch.expm1((log_probs - log_probs_old).float()) + 1


@passes("importance_ratios")
def power_of_e(log_probs, log_probs_old):
    return torch.pow(torch.tensor(math.e, dtype=torch.float64), log_probs - log_probs_old)


def guarded(divide):
    def ratios(log_probs, log_probs_old):
        return divide(log_probs.exp(), log_probs_old.exp())

    return ratios


WRONG["importance_ratios"] |= {
    "quotient_of_probabilities#added": guarded(lambda new, old: new / (old + 1e-8)),
    "quotient_of_probabilities#clamped": guarded(lambda new, old: new / old.clamp(min=1e-8)),
    "quotient_of_probabilities#nan_as_zero": guarded(lambda new, old: torch.nan_to_num(new / old)),
    "quotient_of_probabilities#both": guarded(lambda new, old: (new + 1e-8) / (old + 1e-8)),
}


@breaks("importance_ratios")
def quotient_of_the_logarithms(log_probs, log_probs_old):
    return log_probs / log_probs_old


def _exponential_of_the_quotient(log_probs, log_probs_old):
    return (log_probs / log_probs_old).exp()


WRONG["importance_ratios"]["quotient_of_the_logarithms#exp"] = _exponential_of_the_quotient


@breaks("importance_ratios")
def logarithms_added(log_probs, log_probs_old):
    return (log_probs + log_probs_old).exp()


@breaks("importance_ratios")
def one_plus_the_log_ratio(log_probs, log_probs_old):
    return 1 + log_probs - log_probs_old


@breaks("importance_ratios")
def old_policy_forgotten(log_probs, log_probs_old):
    return log_probs.exp()


@breaks("importance_ratios")
def difference_of_probabilities(log_probs, log_probs_old):
    return log_probs.exp() - log_probs_old.exp()


@breaks("importance_ratios")
def ratios_normalised(log_probs, log_probs_old):
    ratios = (log_probs - log_probs_old).exp()
    return ratios / ratios.mean()


@breaks("importance_ratios")
def ratio_clipped(log_probs, log_probs_old):
    return (log_probs - log_probs_old).exp().clamp(0.8, 1.2)


def _cut_off_at(low, high):
    def ratios(log_probs, log_probs_old):
        return (log_probs - log_probs_old).exp().clamp(low, high)

    return ratios


WRONG["importance_ratios"]["ratio_clipped#at_ten"] = _cut_off_at(None, 10.0)


@breaks("importance_ratios")
def averaged(log_probs, log_probs_old):
    return (log_probs - log_probs_old).exp().mean()


@breaks("importance_ratios")
def whole_batch_as_one_episode(log_probs, log_probs_old):
    return (log_probs - log_probs_old).sum().exp()


@breaks("importance_ratios")
def never_below_one(log_probs, log_probs_old):
    return (log_probs - log_probs_old).abs().exp()


@breaks("importance_ratios")
def minus_one(log_probs, log_probs_old):
    return (log_probs - log_probs_old).exp() - 1


@breaks("importance_ratios")
def power_of_ten(log_probs, log_probs_old):
    return 10 ** (log_probs - log_probs_old)


# --- effective sample size -----------------------------------------------------------------


@passes("effective_sample_size")
def shares_squared(weights):
    shares = weights / weights.sum()
    return 1 / (shares**2).sum()


@passes("effective_sample_size")
def in_plain_python(weights):
    found = weights.tolist()
    top = max(found)
    found = [each / top for each in found]
    return sum(found) ** 2 / sum(each**2 for each in found)


@passes("effective_sample_size")
def in_logarithms(weights):
    logs = weights.log()
    return (2 * logs.logsumexp(0) - (2 * logs).logsumexp(0)).exp()


@passes("effective_sample_size")
def by_the_variance(weights):
    scaled = weights.double() / weights.double().mean()
    return len(weights) / (1 + scaled.var(unbiased=False))


@passes("effective_sample_size")
def with_dot_products(weights):
    scaled = weights / weights.max()
    return torch.sum(scaled).square() / torch.dot(scaled, scaled)


def scaled(function):
    """A formula that is applied to weights without a scale."""
    return lambda weights: function(weights / weights.max())


def smallest_spread(weights):
    return weights.numel() / (1 + weights.var(unbiased=False))


WRONG["effective_sample_size"] |= {
    "upside_down": scaled(lambda weights: (weights**2).sum() / weights.sum() ** 2),
    "sum_over_the_largest": lambda weights: weights.sum() / weights.max(),
    "perplexity": lambda weights: torch.distributions.Categorical(probs=weights).entropy().exp(),
    "number_of_samples": lambda weights: len(weights),
    "not_squared_above": lambda weights: weights.sum() / (weights**2).sum(),
    "mean_taken_for_one": smallest_spread,
    "sum_of_the_weights": lambda weights: weights.sum(),
    "square_root_taken": scaled(lambda weights: (weights.sum() ** 2 / (weights**2).sum()).sqrt()),
    "deviation_for_the_variance": lambda weights: (
        len(weights) / (1 + weights.std(unbiased=False) / weights.mean())
    ),
    "sample_variance": lambda weights: (
        len(weights) / (1 + ((weights / weights.mean() - 1) ** 2).sum() / (len(weights) - 1))
    ),
    "weights_taken_for_logarithms": lambda weights: (
        weights.exp().sum() ** 2 / (2 * weights).exp().sum()
    ),
}


# --- the surrogate's loss ------------------------------------------------------------------


@passes("surrogate_loss")
def mean_of_the_negatives(log_probs, log_probs_old, advantages):
    ratios = torch.exp(log_probs - log_probs_old.detach())
    return torch.mean(-ratios * advantages.detach())


@passes("surrogate_loss")
def loss_in_a_loop(log_probs, log_probs_old, advantages):
    total = 0.0
    rows = zip(log_probs.flatten(), log_probs_old.flatten(), advantages.flatten(), strict=True)
    for new, old, advantage in rows:
        total = total - torch.exp(new - old.item()) * advantage.item()
    return total / log_probs.numel()


@passes("surrogate_loss")
def loss_in_float32(log_probs, log_probs_old, advantages, *, mask=None):
    old, pushes = log_probs_old.detach().float(), advantages.detach().float()
    return -((log_probs.float() - old).exp() * pushes).sum() / pushes.numel()


@passes("surrogate_loss")
def slope_and_value_apart(log_probs, log_probs_old, advantages, **ignored):
    weights = ((log_probs - log_probs_old).exp() * advantages).detach()
    return -(weights * (log_probs - log_probs.detach() + 1)).mean()


def surrogate(ratios=None, advantages=lambda each: each, reduce=torch.mean):
    """The loss, with one part replaced."""

    def loss(log_probs, log_probs_old, given):
        made = (ratios or importance.importance_ratios)(log_probs, log_probs_old.detach())
        return -reduce(made * advantages(given.detach()))

    return loss


def normalise(added):
    def change(advantages):
        centred = advantages - advantages.mean()
        # .std() warns where 0 is divided by 0
        deviation = (centred.square().sum() / (advantages.numel() - 1)).sqrt()
        return centred / (deviation + added)

    return change


def not_zero(log_probs, log_probs_old, advantages):
    terms = importance.importance_ratios(log_probs, log_probs_old.detach()) * advantages.detach()
    return -terms.sum() / (advantages != 0).sum()


def clipped_surrogate(log_probs, log_probs_old, advantages):
    ratios = importance.importance_ratios(log_probs, log_probs_old.detach())
    advantages = advantages.detach()
    return -torch.min(ratios * advantages, ratios.clamp(0.8, 1.2) * advantages).mean()


def two_means(log_probs, log_probs_old, advantages):
    ratios = importance.importance_ratios(log_probs, log_probs_old.detach())
    return -ratios.mean() * advantages.detach().mean()


WRONG["surrogate_loss"] |= {
    "ratio_upside_down": surrogate(lambda new, old: (old - new).exp()),
    "probabilities_divided": surrogate(lambda new, old: new.exp() / old.exp()),
    "probabilities_divided#guarded": surrogate(lambda new, old: new.exp() / (old.exp() + 1e-8)),
    "quotient_of_the_logarithms": surrogate(lambda new, old: new / old),
    "one_plus_the_log_ratio": surrogate(lambda new, old: 1 + new - old),
    "old_policy_forgotten": surrogate(lambda new, old: new.exp()),
    "old_log_probs_recomputed": surrogate(lambda new, old: (new - new.detach()).exp()),
    "old_policy_on_both_sides": surrogate(lambda new, old: (new - old).exp().detach()),
    "not_averaged": surrogate(reduce=lambda each: each),
    "means_multiplied": two_means,
    "one_ratio_for_the_batch": surrogate(lambda new, old: (new - old).sum().exp()),
    "advantages_normalised": surrogate(advantages=normalise(1e-8)),
    "advantages_normalised#nothing_added": surrogate(advantages=normalise(0.0)),
    "absolute_advantages": surrogate(advantages=torch.abs),
    "ratio_clipped": surrogate(lambda new, old: (new - old).exp().clamp(0.8, 1.2)),
    "ratio_clipped#at_ten": surrogate(lambda new, old: (new - old).exp().clamp(max=10.0)),
    "ratio_clipped#with_a_minimum": clipped_surrogate,
    "zero_advantages_left_out": not_zero,
    "last_axis_only": surrogate(reduce=lambda each: each.mean(-1)),
    "ratio_minus_one": surrogate(lambda new, old: (new - old).expm1()),
}


# --- three estimators ----------------------------------------------------------------------


@passes("approximate_kl")
def branch_by_branch(log_probs, log_probs_old, *, estimator):
    log_ratios = log_probs - log_probs_old
    if estimator == "k1":
        return (log_probs_old - log_probs).mean()
    if estimator == "k2":
        return 0.5 * log_ratios.pow(2).mean()
    return (log_ratios.exp() - 1 - log_ratios).mean()


@passes("approximate_kl")
def looked_up_in_float32(log_probs, log_probs_old, estimator):
    log_ratios = (log_probs - log_probs_old).float()
    terms = {
        "k1": -log_ratios,
        "k2": log_ratios * log_ratios / 2,
        "k3": torch.expm1(log_ratios) - log_ratios,
    }
    return terms[estimator].sum() / terms[estimator].numel()


@passes("approximate_kl")
def number_by_number(log_probs, log_probs_old, *, estimator, mask=None):
    total = 0.0
    for new, old in zip(
        log_probs.flatten().tolist(), log_probs_old.flatten().tolist(), strict=True
    ):
        gap = new - old
        total += {"k1": -gap, "k2": gap**2 / 2, "k3": math.exp(gap) - 1 - gap}[estimator]
    return torch.tensor(total / log_probs.numel())


def terms_of(log_ratios):
    return {
        "k1": -log_ratios,
        "k2": log_ratios**2 / 2,
        "k3": log_ratios.expm1() - log_ratios,
    }


def estimated(change=None, chosen=lambda estimator: estimator, reduce=torch.mean, of=None):
    """The estimators, with one part replaced; `change` gives terms that replace others."""

    def function(log_probs, log_probs_old, *, estimator):
        gap = (of or torch.sub)(log_probs, log_probs_old)
        terms = terms_of(gap) | (change(gap, log_probs_old) if change else {})
        return reduce(terms[chosen(estimator)])

    return function


def squared_mean(log_probs, log_probs_old, *, estimator):
    if estimator == "k2":
        return (log_probs - log_probs_old).mean() ** 2 / 2
    return branch_by_branch(log_probs, log_probs_old, estimator=estimator)


WRONG["approximate_kl"] |= {
    "summed": estimated(reduce=torch.sum),
    "not_averaged": estimated(reduce=lambda each: each),
    "square_of_the_mean": squared_mean,
    "k2_from_the_ratio": estimated(lambda gap, old: {"k2": gap.expm1() ** 2 / 2}),
    "always_k1": estimated(chosen=lambda estimator: "k1"),
    "always_k3": estimated(chosen=lambda estimator: "k3"),
    "k1_and_k3_exchanged": estimated(chosen={"k1": "k3", "k2": "k2", "k3": "k1"}.__getitem__),
    "k3_without_the_logarithm": estimated(lambda gap, old: {"k3": gap.expm1()}),
    "weighted_by_the_ratio": estimated(lambda gap, old: {"k1": gap.exp() * gap}),
    "weighted_by_the_probability": estimated(
        lambda gap, old: {name: old.exp() * term for name, term in terms_of(gap).items()}
    ),
    "weighted_by_the_probability#kl_div": lambda log_probs, log_probs_old, *, estimator: (
        functional.kl_div(log_probs, log_probs_old, log_target=True, reduction="none").mean()
    ),
    "probabilities_divided": estimated(of=lambda new, old: (new.exp() / old.exp()).log()),
    "probabilities_divided#guarded": estimated(
        of=lambda new, old: (new.exp() / (old.exp() + 1e-8)).log()
    ),
    "in_bits": estimated(reduce=lambda each: each.mean() / math.log(2)),
    "absolute_difference": estimated(lambda gap, old: {"k2": gap.abs() / 2}),
}


# --- four draws ----------------------------------------------------------------------------


def draws(**changed):
    right = {"a": 0.5, "b": 25 / 7, "c": -1.75, "d": -0.1308, "e": 0.1192, "f": 1.6875, "g": 0.1438}
    return {**right, **changed}


RIGHT["four_draws"] = {"numbers": draws()}
WRONG["four_draws"] = {
    "ratio_upside_down": draws(a=2, b=3, c=-1 / 3, d=0.1308, e=0.1308, f=0.5926, g=0.1308),
    "ratio_upside_down#first": draws(a=2),
    "difference_of_probabilities": draws(a=-0.125),
    "share_for_samples": draws(b=25 / 28),
    "sum_over_the_largest": draws(b=10 / 3),
    "objective_for_the_loss": draws(c=1.75),
    "ratio_forgotten": draws(c=-1),
    "divided_by_the_weights": draws(c=-1.4),
    "summed": draws(c=-7, d=-0.5233, e=0.4767),
    "k1_made_positive": draws(d=0.1308),
    "k3_without_minus_one": draws(e=1.1192),
    "k3_sign_turned": draws(e=0.3808),
    "k2_for_k3": draws(e=0.1217),
    "ratios_added": draws(f=5),
    "mean_of_the_ratios": draws(f=1.25),
    "log_weight_kept": draws(f=0.5232),
    "other_direction": draws(g=0.1308),
    "estimate_for_the_divergence": draws(g=0.1192),
    "in_bits": draws(d=-0.1887, e=0.1720, g=0.2075),
}


# --- a squeeze with a bug ------------------------------------------------------------------


def squeezed(loss_of, *, sign=-1.0, steps=lambda num_steps: num_steps):
    """The loop as it is given, with the loss replaced: `loss_of(new, old, advantages, logits)`."""

    def function(logits, actions, advantages, *, num_steps, learning_rate):
        start = logits.detach()
        now = start.clone().requires_grad_()
        for _ in range(steps(num_steps)):
            old = start.log_softmax(-1)[actions]
            new = now.log_softmax(-1)[actions]
            objective = loss_of(new, old, advantages.detach(), (now, start, actions))
            (gradient,) = torch.autograd.grad(sign * objective, now)
            now = (now - learning_rate * gradient).detach().requires_grad_()
        return now.detach()

    return function


def ratio_objective(ratios):
    return squeezed(lambda new, old, advantages, tables: (ratios(new, old) * advantages).mean())


@passes("mended_squeeze")
def as_given_but_mended(logits, actions, advantages, *, num_steps, learning_rate):
    log_probs_old = logits.detach().log_softmax(-1)[actions]
    logits = logits.detach().clone().requires_grad_()
    for _ in range(num_steps):
        log_probs = logits.log_softmax(-1)[actions]
        ratios = (log_probs - log_probs_old).exp()
        loss = -(ratios * advantages).mean()
        (gradient,) = torch.autograd.grad(loss, logits)
        logits = (logits - learning_rate * gradient).detach().requires_grad_()
    return logits.detach()


@passes("mended_squeeze")
def with_an_optimizer(logits, actions, advantages, *, num_steps, learning_rate):
    leaf = torch.nn.Parameter(logits.detach().clone())
    optimizer = torch.optim.SGD([leaf], lr=learning_rate)
    log_probs_old = leaf.log_softmax(-1)[actions].detach()
    for _ in range(num_steps):
        optimizer.zero_grad()
        log_probs = torch.log_softmax(leaf, dim=-1)[actions]
        importance.surrogate_loss(log_probs, log_probs_old, advantages).backward()
        optimizer.step()
    return leaf.detach()


@passes("mended_squeeze")
def gradient_by_hand(logits, actions, advantages, *, num_steps, learning_rate):
    old = logits.softmax(-1)
    now = logits.clone()
    for _ in range(num_steps):
        policy = now.softmax(-1)
        push = torch.zeros_like(now)
        for action, advantage in zip(actions.tolist(), advantages, strict=True):
            score = -policy
            score = score.index_add(0, torch.tensor([action]), torch.ones(1, dtype=now.dtype))
            push += policy[action] / old[action] * advantage * score
        now = now + learning_rate * push / len(actions)
    return now


@passes("mended_squeeze")
def probabilities_are_fine_here(logits, actions, advantages, *, num_steps, learning_rate):
    old, now = logits.softmax(0)[actions], logits
    for _ in range(num_steps):
        now = now.detach().requires_grad_()
        objective = (now.softmax(0)[actions] / old * advantages).mean()
        objective.backward()
        now = now + learning_rate * now.grad
    return now


def one_step_behind(logits, actions, advantages, *, num_steps, learning_rate):
    now = logits.detach().clone().requires_grad_()
    old = now.detach().log_softmax(-1)[actions]
    for _ in range(num_steps):
        new = now.log_softmax(-1)[actions]
        (gradient,) = torch.autograd.grad(-((new - old).exp() * advantages).mean(), now)
        old = new.detach()
        now = (now - learning_rate * gradient).detach().requires_grad_()
    return now.detach()


def attached_old(new, old, advantages, tables):
    logits, _, actions = tables
    return ((new - logits.log_softmax(-1)[actions]).exp() * advantages).mean()


def raw_logits(new, old, advantages, tables):
    logits, start, actions = tables
    return ((logits[actions] - start[actions]).exp() * advantages).mean()


def normalised_ratios(new, old, advantages, tables):
    ratios = (new - old).exp()
    return (ratios * advantages).mean() / ratios.mean()


WRONG["mended_squeeze"] |= {
    "old_policy_recomputed": ratio_objective(lambda new, old: (new - new.detach()).exp()),
    "ratio_upside_down": ratio_objective(lambda new, old: (old - new).exp()),
    "one_step_behind": one_step_behind,
    "both_follow_the_parameters": squeezed(attached_old),
    "ratio_without_gradient": ratio_objective(lambda new, old: (new - old).exp().detach()),
    "old_policy_forgotten": ratio_objective(lambda new, old: new.exp()),
    "quotient_of_the_logarithms": ratio_objective(lambda new, old: new / old),
    "ratio_clipped": ratio_objective(lambda new, old: (new - old).exp().clamp(0.8, 1.2)),
    "climbs_down": squeezed(
        lambda new, old, advantages, tables: ((new - old).exp() * advantages).mean(), sign=1.0
    ),
    "summed": squeezed(lambda new, old, advantages, tables: ((new - old).exp() * advantages).sum()),
    "one_step_only": squeezed(
        lambda new, old, advantages, tables: ((new - old).exp() * advantages).mean(),
        steps=lambda num_steps: min(num_steps, 1),
    ),
    "ratios_normalised": squeezed(normalised_ratios),
    "uniform_old_policy": squeezed(
        lambda new, old, advantages, tables: (new.exp() * len(tables[0]) * advantages).mean()
    ),
    "logits_for_logarithms": squeezed(raw_logits),
    "means_multiplied": squeezed(
        lambda new, old, advantages, tables: (new - old).exp().mean() * advantages.mean()
    ),
    "averaged_old_policy": ratio_objective(lambda new, old: (new - old.mean()).exp()),
}


# --- weights of whole episodes -------------------------------------------------------------


@passes("trajectory_weights")
def running_sum(log_probs, log_probs_old, ended):
    weights, total = [], torch.zeros_like(log_probs[0])
    for t in range(len(log_probs)):
        total = total + log_probs[t] - log_probs_old[t]
        weights.append(total.exp())
        total = total * ~ended[t]
    return torch.stack(weights)


@passes("trajectory_weights")
def sums_minus_what_came_before(log_probs, log_probs_old, ended):
    totals = (log_probs - log_probs_old).cumsum(0)
    starts, before = torch.zeros_like(totals), torch.zeros_like(totals[0])
    for t in range(len(totals)):
        starts[t] = before
        before = torch.where(ended[t], totals[t], before)
    return (totals - starts).exp()


@passes("trajectory_weights")
def column_by_column(log_probs, log_probs_old, ended):
    columns = []
    for new, old, flags in zip(log_probs.T, log_probs_old.T, ended.T, strict=True):
        total, found = 0.0, []
        for gap, flag in zip((new - old).tolist(), flags.tolist(), strict=True):
            total += gap
            found.append(math.exp(total))
            total = 0.0 if flag else total
        columns.append(found)
    return torch.tensor(columns).T


@passes("trajectory_weights")
def every_pair_of_steps(log_probs, log_probs_old, ended):
    number = ended.long().cumsum(0) - ended.long()
    time = torch.arange(len(ended))
    counts = (time[:, None] >= time[None, :])[..., None] & (number[:, None] == number[None, :])
    gaps = (log_probs - log_probs_old).float()
    return (counts.float() * gaps[None]).sum(1).exp()


def running(gaps, ended, *, late=False):
    """The sum of the logarithms; the wrong ones below change one thing."""
    sums, total = torch.zeros_like(gaps), torch.zeros_like(gaps[0])
    for t in range(len(gaps)):
        total = total + gaps[t]
        sums[t] = total
        total = total * ~ended[t]
    return sums


def weighed(before=lambda gaps, ended: gaps, flags=lambda ended: ended, after=torch.exp):
    def function(log_probs, log_probs_old, ended):
        gaps = before(log_probs - log_probs_old, ended)
        return after(running(gaps, flags(ended)))

    return function


def shifted(ended, by):
    blank = torch.zeros_like(ended[:1])
    return torch.cat([ended[1:], blank] if by < 0 else [blank, ended[:-1]])


def whole_episodes(log_probs, log_probs_old, ended):
    sums = running(log_probs - log_probs_old, ended)
    for t in reversed(range(len(sums) - 1)):
        sums[t] = torch.where(ended[t], sums[t], sums[t + 1])
    return sums.exp()


def to_the_end(log_probs, log_probs_old, ended):
    gaps, total = log_probs - log_probs_old, torch.zeros_like(log_probs[0])
    sums = torch.zeros_like(gaps)
    for t in reversed(range(len(gaps))):
        total = gaps[t] + total * ~ended[t]
        sums[t] = total
    return sums.exp()


def multiplied(log_probs, log_probs_old, ended):
    weights, weight = [], torch.ones_like(log_probs[0])
    for t in range(len(log_probs)):
        weight = weight * (log_probs[t] - log_probs_old[t]).exp()
        weights.append(weight)
        weight = torch.where(ended[t], 1.0, weight)
    return torch.stack(weights)


def multiplied_with_a_guard(log_probs, log_probs_old, ended):
    weights, weight = [], torch.ones_like(log_probs[0])
    for t in range(len(log_probs)):
        weight = weight * log_probs[t].exp() / (log_probs_old[t].exp() + 1e-8)
        weights.append(weight)
        weight = torch.where(ended[t], 1.0, weight)
    return torch.stack(weights)


def multiplied_probabilities(log_probs, log_probs_old, ended):
    new, old = running(log_probs, ended).exp(), running(log_probs_old, ended).exp()
    return new / old


def added_ratios(log_probs, log_probs_old, ended):
    return running((log_probs - log_probs_old).exp(), ended)


def steps_so_far(ended):
    return running(torch.ones(ended.shape, dtype=torch.float64), ended)


def root_of_as_many(log_probs, log_probs_old, ended):
    sums = running(log_probs - log_probs_old, ended)
    return (sums / steps_so_far(ended).to(sums.dtype)).exp()


def without_the_own_step(log_probs, log_probs_old, ended):
    gaps = log_probs - log_probs_old
    return (running(gaps, ended) - gaps).exp()


def over_the_environments(log_probs, log_probs_old, ended):
    return (log_probs - log_probs_old).cumsum(1).exp()


def mean_of_one(log_probs, log_probs_old, ended):
    weights = running(log_probs - log_probs_old, ended).exp()
    return weights / weights.mean(1, keepdim=True)


WRONG["trajectory_weights"] |= {
    "not_reset_at_an_end": weighed(flags=torch.zeros_like),
    "reset_one_row_early": weighed(flags=lambda ended: shifted(ended, -1)),
    "reset_one_row_late": weighed(flags=lambda ended: shifted(ended, 1)),
    "single_ratios": lambda log_probs, log_probs_old, ended: (log_probs - log_probs_old).exp(),
    "own_step_left_out": without_the_own_step,
    "ratios_added": added_ratios,
    "weight_of_the_whole_episode": whole_episodes,
    "from_the_end": to_the_end,
    "product_underflows": multiplied,
    "product_underflows#guarded": multiplied_with_a_guard,
    "product_underflows#probabilities": multiplied_probabilities,
    "geometric_mean": root_of_as_many,
    "logarithm_kept": weighed(after=lambda sums: sums),
    "upside_down": weighed(before=lambda gaps, ended: -gaps),
    "multiplied_over_the_environments": over_the_environments,
    "environments_end_together": weighed(
        flags=lambda ended: ended.any(1, keepdim=True).expand_as(ended)
    ),
    "weights_normalised": mean_of_one,
    "new_policy_alone": lambda log_probs, log_probs_old, ended: running(log_probs, ended).exp(),
    "clipped_at_one": weighed(before=lambda gaps, ended: gaps.clamp(max=0)),
    "first_episode_only": weighed(
        before=lambda gaps, ended: gaps * ((ended.long().cumsum(0) - ended.long()) == 0)
    ),
}


# --- slow definitions ----------------------------------------------------------------------


def each(function, *rows):
    """Apply a rule to each place of nested lists of one shape."""
    if isinstance(rows[0], list):
        return [each(function, *row) for row in zip(*rows, strict=True)]
    return function(*rows)


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def slow_ratios(log_probs, log_probs_old):
    return each(lambda new, old: math.exp(new - old), log_probs, log_probs_old)


def slow_sample_size(weights):
    shares = [weight / sum(weights) for weight in weights]
    return 1 / sum(share**2 for share in shares)


def slow_loss(log_probs, log_probs_old, advantages):
    ratios = flat(slow_ratios(log_probs, log_probs_old))
    products = [a * b for a, b in zip(ratios, flat(advantages), strict=True)]
    return -sum(products) / len(products)


def slow_kl(log_probs, log_probs_old, *, estimator):
    gaps = flat(each(lambda new, old: new - old, log_probs, log_probs_old))
    rule = {
        "k1": lambda gap: -gap,
        "k2": lambda gap: gap * gap / 2,
        "k3": lambda gap: math.exp(gap) - 1 - gap,
    }[estimator]
    return sum(map(rule, gaps)) / len(gaps)


def slow_softmax(logits):
    weights = [math.exp(each - max(logits)) for each in logits]
    return [weight / sum(weights) for weight in weights]


def slow_squeeze(logits, actions, advantages, *, num_steps, learning_rate):
    old, now = slow_softmax(logits), list(logits)
    for _ in range(num_steps):
        policy = slow_softmax(now)
        push = [0.0] * len(now)
        for action, advantage in zip(actions, advantages, strict=True):
            for b in range(len(now)):
                slope = policy[action] * ((action == b) - policy[b])  # of π(action)
                push[b] += advantage * slope / old[action] / len(actions)
        now = [z + learning_rate * p for z, p in zip(now, push, strict=True)]
    return now


def slow_weights(log_probs, log_probs_old, ended):
    found = []
    for t in range(len(ended)):
        row = []
        for n in range(len(ended[0])):
            start = max([k + 1 for k in range(t) if ended[k][n]], default=0)
            steps = range(start, t + 1)
            row.append(math.exp(sum(log_probs[k][n] - log_probs_old[k][n] for k in steps)))
        found.append(row)
    return found


ORACLES = {
    "importance_ratios": slow_ratios,
    "effective_sample_size": slow_sample_size,
    "surrogate_loss": slow_loss,
    "approximate_kl": slow_kl,
    "mended_squeeze": slow_squeeze,
    "trajectory_weights": slow_weights,
}
