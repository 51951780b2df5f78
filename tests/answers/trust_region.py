"""Answers to the exercises of lesson 03."""

import math

import numpy as np
import torch
from mistakes import mistakes_of
from torch.distributions import Categorical, kl_divergence
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import mdp, trust_region

EXERCISES = (
    "state_kl",
    "natural_gradient_step",
    "penalty_loss",
    "adapt_beta",
    "fence_and_price",
    "mended_line_search",
    "fisher_vector_product",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

RIGHT["state_kl"]["package"] = mdp.state_kl
RIGHT["mended_line_search"]["package"] = trust_region.backtracking_line_search
for name in ("natural_gradient_step", "penalty_loss", "adapt_beta"):
    RIGHT[name]["package"] = getattr(trust_region, name)
# All mistakes of the module but the one about masks; others break what no exercise asks for.
HOMES = {"backtracking_line_search": "mended_line_search"} | {each: each for each in EXERCISES}
for mistake in mistakes_of("trust_region"):
    if mistake.breaks in HOMES and mistake.name != "padding_in_the_penalty":
        WRONG[HOMES[mistake.breaks]][mistake.name] = mistake.function


# --- the KL of two policies ----------------------------------------------------------------


@passes("state_kl")
def chosen_where_it_counts(policy_old, policy):
    counts = policy_old > 0
    terms = policy_old * (policy_old.log() - policy.log())
    return torch.where(counts, terms, torch.zeros_like(terms)).sum(-1)


@passes("state_kl")
def without_what_is_no_number(policy_old, policy):
    return (policy_old * (policy_old / policy).log()).nansum(dim=1)


@passes("state_kl")
def by_the_distributions(policy_old, policy):
    return kl_divergence(Categorical(probs=policy_old), Categorical(probs=policy))


@passes("state_kl")
def cross_entropy_minus_entropy(policy_old, policy):
    entropies = torch.special.entr(policy_old).sum(-1)
    return -torch.special.xlogy(policy_old, policy).sum(-1) - entropies


@passes("state_kl")
def state_by_state(policy_old, policy):
    found = []
    for old, new in zip(policy_old.tolist(), policy.tolist(), strict=True):
        total = 0.0
        for p, q in zip(old, new, strict=True):
            if p > 0:
                total += p * math.log(p / q) if q > 0 else math.inf
        found.append(total)
    return torch.tensor(found)


@passes("state_kl")
def masked_and_indexed(policy_old, policy):
    terms = torch.zeros_like(policy)
    taken = policy_old != 0
    terms[taken] = policy_old[taken] * torch.log(policy_old[taken] / policy[taken])
    return terms.sum(dim=-1)


def exact_kl(first, second):
    return (torch.xlogy(first, first) - torch.xlogy(first, second)).sum(-1)


@breaks("state_kl")
def order_exchanged(policy_old, policy):
    return exact_kl(policy, policy_old)


@breaks("state_kl")
def weighted_by_the_new_policy(policy_old, policy):
    return -exact_kl(policy, policy_old)


@breaks("state_kl")
def not_weighted(policy_old, policy):
    return (policy_old.log() - policy.log()).sum(-1)


WRONG["state_kl"]["not_weighted#averaged"] = lambda old, new: (old.log() - new.log()).mean(-1)


@breaks("state_kl")
def sign_turned(policy_old, policy):
    return -exact_kl(policy_old, policy)


@breaks("state_kl")
def averaged_over_the_actions(policy_old, policy):
    return exact_kl(policy_old, policy) / policy.shape[-1]


@breaks("state_kl")
def summed_over_the_states(policy_old, policy):
    return (torch.xlogy(policy_old, policy_old) - torch.xlogy(policy_old, policy)).sum(0)


@breaks("state_kl")
def averaged_over_the_states(policy_old, policy):
    return exact_kl(policy_old, policy).mean()


WRONG["state_kl"]["averaged_over_the_states#summed"] = lambda old, new: exact_kl(old, new).sum()


@breaks("state_kl")
def both_orders_averaged(policy_old, policy):
    return (exact_kl(policy_old, policy) + exact_kl(policy, policy_old)) / 2


@breaks("state_kl")
def in_bits(policy_old, policy):
    return exact_kl(policy_old, policy) / math.log(2)


@breaks("state_kl")
def cross_entropy(policy_old, policy):
    return -torch.xlogy(policy_old, policy).sum(-1)


@breaks("state_kl")
def zero_times_infinity(policy_old, policy):
    return (policy_old * (policy_old.log() - policy.log())).sum(-1)


WRONG["state_kl"] |= {
    "zero_times_infinity#kl_div": lambda old, new: functional.kl_div(
        new.log(), old, reduction="none"
    ).sum(-1),
}


def guarded(guard):
    def function(policy_old, policy):
        return guard(policy_old, policy).sum(-1)

    return function


WRONG["state_kl"] |= {
    "infinity_hidden": guarded(lambda old, new: old * ((old + 1e-8) / (new + 1e-8)).log()),
    "infinity_hidden#smaller": guarded(
        lambda old, new: old * ((old + 1e-10).log() - (new + 1e-10).log())
    ),
    "infinity_hidden#replaced": guarded(lambda old, new: torch.nan_to_num(old * (old / new).log())),
    "infinity_hidden#to_zero": guarded(
        lambda old, new: torch.nan_to_num(old * (old / new).log(), posinf=0.0)
    ),
}


@breaks("state_kl")
def half_the_squares(policy_old, policy):
    return ((policy - policy_old) ** 2 / policy_old).sum(-1) / 2


@breaks("state_kl")
def absolute_difference(policy_old, policy):
    return (policy - policy_old).abs().sum(-1)


WRONG["state_kl"]["absolute_difference#halved"] = lambda old, new: (new - old).abs().sum(-1) / 2


@breaks("state_kl")
def difference_of_entropies(policy_old, policy):
    return (torch.xlogy(policy_old, policy_old) - torch.xlogy(policy, policy)).sum(-1)


@breaks("state_kl")
def softmax_of_probabilities(policy_old, policy):
    return exact_kl(policy_old.softmax(-1), policy.softmax(-1))


WRONG["state_kl"]["softmax_of_probabilities#as_logits"] = lambda old, new: (
    old * (old.log_softmax(-1) - new.log_softmax(-1))
).sum(-1)


@breaks("state_kl")
def probability_for_the_logarithm(policy_old, policy):
    return functional.kl_div(policy, policy_old, reduction="none").sum(-1)


@breaks("state_kl")
def one_action_only(policy_old, policy):
    return (torch.xlogy(policy_old, policy_old) - torch.xlogy(policy_old, policy))[:, 0]


@breaks("state_kl")
def squared_log_ratio(policy_old, policy):
    return (policy_old * (policy_old / policy).log() ** 2).sum(-1) / 2


# --- the natural step ----------------------------------------------------------------------


@passes("natural_gradient_step")
def solved(gradient, fisher, *, max_kl):
    if not gradient.any():
        return torch.zeros_like(gradient)
    direction = torch.linalg.solve(fisher, gradient)
    return direction * torch.sqrt(2 * max_kl / (direction @ fisher @ direction))


@passes("natural_gradient_step")
def by_the_inverse(gradient, fisher, max_kl):
    direction = torch.inverse(fisher) @ gradient
    steepness = torch.dot(gradient, direction)
    factor = 0.0 if steepness == 0 else math.sqrt(2 * max_kl / steepness)
    return factor * direction


@passes("natural_gradient_step")
def with_numpy(gradient, fisher, *, max_kl):
    g, F = gradient.numpy(), fisher.numpy()
    direction = np.linalg.solve(F, g)
    curvature = direction @ F @ direction
    if curvature > 0:
        direction = direction * np.sqrt(2 * max_kl / curvature)
    return torch.from_numpy(direction)


@passes("natural_gradient_step")
def by_cholesky_in_float32(gradient, fisher, *, max_kl):
    factor = torch.linalg.cholesky(fisher.float())
    whitened = torch.linalg.solve_triangular(factor, gradient.float()[:, None], upper=False)
    length = whitened.norm().clamp(min=1e-30)
    whitened = whitened / length * (2 * max_kl) ** 0.5
    return torch.linalg.solve_triangular(factor.T, whitened, upper=True)[:, 0]


@passes("natural_gradient_step")
def by_conjugate_gradients(gradient, fisher, *, max_kl):
    direction, rest = torch.zeros_like(gradient), gradient.clone()
    if rest.norm() == 0:
        return direction
    towards = rest.clone()
    for _ in range(10 * len(gradient)):
        product = fisher @ towards
        length = rest @ rest / (towards @ product)
        direction = direction + length * towards
        left = rest - length * product
        if left.norm() < 1e-6 * gradient.norm():
            break
        towards, rest = left + (left @ left) / (rest @ rest) * towards, left
    return direction / (direction @ fisher @ direction / (2 * max_kl)).sqrt()


@passes("natural_gradient_step")
def tiny_number_in_the_denominator(gradient, fisher, *, max_kl):
    direction = torch.linalg.pinv(fisher) @ gradient
    return (2 * max_kl / (direction @ gradient + 1e-30)) ** 0.5 * direction


def solve(gradient, fisher):
    return torch.linalg.solve(fisher, gradient)


def nothing_of_zero(function):
    """A mistake that knows about a gradient of zero."""

    def step(gradient, fisher, *, max_kl):
        if not gradient.any():
            return torch.zeros_like(gradient)
        return function(gradient, fisher, max_kl)

    return step


def stretched(direction, curvature, max_kl):
    return (2 * max_kl / curvature) ** 0.5 * direction


WRONG["natural_gradient_step"] |= {
    "plain_direction#careful": nothing_of_zero(
        lambda g, F, max_kl: stretched(g, g @ F @ g, max_kl)
    ),
    "plain_direction#with_the_right_length": nothing_of_zero(
        lambda g, F, max_kl: stretched(g, g @ solve(g, F), max_kl)
    ),
    "multiplied_by_fisher#careful": nothing_of_zero(
        lambda g, F, max_kl: stretched(F @ g, F @ g @ F @ F @ g, max_kl)
    ),
    "half_forgotten#careful": nothing_of_zero(
        lambda g, F, max_kl: stretched(solve(g, F), g @ solve(g, F), max_kl / 2)
    ),
    "heavily_damped#a_little": nothing_of_zero(
        lambda g, F, max_kl: stretched(
            solve(g, F + 0.01 * torch.eye(len(g), dtype=g.dtype)),
            solve(g, F + 0.01 * torch.eye(len(g), dtype=g.dtype)) @ g,
            max_kl,
        )
    ),
    "entries_inverted": nothing_of_zero(
        lambda g, F, max_kl: stretched(g @ (1 / F), (g @ (1 / F)) @ F @ (g @ (1 / F)), max_kl)
    ),
    "two_outside_the_root": nothing_of_zero(
        lambda g, F, max_kl: 2 * (max_kl / (g @ solve(g, F))) ** 0.5 * solve(g, F)
    ),
    "radius_as_a_learning_rate": lambda g, F, *, max_kl: max_kl * solve(g, F),
    "length_upside_down": lambda g, F, *, max_kl: (
        (g @ solve(g, F) / (2 * max_kl)) ** 0.5 * solve(g, F)
    ),
    "length_of_the_gradient": nothing_of_zero(
        lambda g, F, max_kl: stretched(solve(g, F), g @ F @ g, max_kl)
    ),
    "length_of_the_gradient#plain": nothing_of_zero(
        lambda g, F, max_kl: stretched(solve(g, F), g @ g, max_kl)
    ),
    "radius_squared": nothing_of_zero(
        lambda g, F, max_kl: stretched(solve(g, F), g @ solve(g, F), max_kl**2)
    ),
    "root_forgotten#careful": nothing_of_zero(
        lambda g, F, max_kl: max_kl / (g @ solve(g, F)) * solve(g, F)
    ),
}


# --- the penalty ---------------------------------------------------------------------------


@passes("penalty_loss")
def two_means(log_probs, log_probs_old, advantages, *, beta):
    log_ratios = log_probs - log_probs_old.detach()
    surrogate = (log_ratios.exp() * advantages.detach()).mean()
    return beta * (log_ratios.exp() - 1 - log_ratios).mean() - surrogate


@passes("penalty_loss")
def one_mean(log_probs, log_probs_old, advantages, beta):
    log_ratios = log_probs - log_probs_old.detach()
    terms = log_ratios.exp() * advantages.detach() - beta * (log_ratios.expm1() - log_ratios)
    return -terms.mean()


@passes("penalty_loss")
def sample_by_sample(log_probs, log_probs_old, advantages, *, beta):
    total = 0.0
    rows = zip(
        log_probs.flatten(),
        log_probs_old.flatten().tolist(),
        advantages.flatten().tolist(),
        strict=True,
    )
    for new, old, advantage in rows:
        ratio = torch.exp(new - old)
        total = total - ratio * advantage + beta * (ratio - 1 - (new - old))
    return total / log_probs.numel()


@passes("penalty_loss")
def penalty_in_float32(log_probs, log_probs_old, advantages, *, beta, mask=None):
    old, weights = log_probs_old.detach().float(), advantages.detach().float()
    change = log_probs.float() - old
    ratios = change.exp()
    return (-ratios * weights).mean() + beta * torch.mean(ratios - change - 1)


@passes("penalty_loss")
def ratio_gathered(log_probs, log_probs_old, advantages, *, beta):
    log_ratios = log_probs - log_probs_old.data
    per_ratio = (beta - advantages.data) * log_ratios.exp()
    return (per_ratio - beta * (1 + log_ratios)).sum() / log_ratios.numel()


def priced(distance=None, surrogate=None, combine=None, ratio=None):
    """Right but for what is handed over; parts are functions of the change and the advantages."""

    def loss(log_probs, log_probs_old, advantages, *, beta):
        weights = advantages.detach()
        change = (ratio or torch.sub)(log_probs, log_probs_old.detach())
        first = (surrogate or (lambda change, weights: change.exp() * weights))(change, weights)
        second = (distance or (lambda change, weights: change.expm1() - change))(change, weights)
        together = combine or (lambda first, second, beta: beta * second - first)
        return together(first, second, beta).mean()

    return loss


@breaks("penalty_loss")
def not_averaged(log_probs, log_probs_old, advantages, *, beta):
    change = log_probs - log_probs_old.detach()
    return beta * (change.expm1() - change) - change.exp() * advantages.detach()


@breaks("penalty_loss")
def log_prob_in_place_of_the_ratio(log_probs, log_probs_old, advantages, *, beta):
    change = log_probs - log_probs_old.detach()
    return (beta * (change.expm1() - change) - log_probs * advantages.detach()).mean()


@breaks("penalty_loss")
def distance_of_the_mean(log_probs, log_probs_old, advantages, *, beta):
    change = log_probs - log_probs_old.detach()
    middle = change.mean()
    return beta * (middle.expm1() - middle) - (change.exp() * advantages.detach()).mean()


@breaks("penalty_loss")
def quotient_of_probabilities(log_probs, log_probs_old, advantages, *, beta):
    ratios = log_probs.exp() / log_probs_old.detach().exp()
    return (beta * (ratios - 1 - ratios.log()) - ratios * advantages.detach()).mean()


def _only_the_ratio_divided(log_probs, log_probs_old, advantages, *, beta):
    ratios = log_probs.exp() / (log_probs_old.detach().exp() + 1e-8)
    change = log_probs - log_probs_old.detach()
    return (beta * (ratios - 1 - change) - ratios * advantages.detach()).mean()


def _quotient_guarded(log_probs, log_probs_old, advantages, *, beta):
    ratios = (log_probs.exp() + 1e-8) / (log_probs_old.detach().exp() + 1e-8)
    return (beta * (ratios - 1 - ratios.log()) - ratios * advantages.detach()).mean()


WRONG["penalty_loss"] |= {
    "quotient_of_probabilities#guarded": _quotient_guarded,
    "quotient_of_probabilities#ratio_only": _only_the_ratio_divided,
    "price_on_everything": priced(combine=lambda first, second, beta: beta * (second - first)),
    "price_on_the_surrogate": priced(combine=lambda first, second, beta: second - beta * first),
    "price_forgotten": priced(combine=lambda first, second, beta: second - first),
    "penalty_forgotten": priced(combine=lambda first, second, beta: -first),
    "divided_by_the_price": priced(combine=lambda first, second, beta: second / beta - first),
    "one_not_subtracted": priced(distance=lambda change, weights: change.exp() - change),
    "log_ratio_not_subtracted": priced(distance=lambda change, weights: change.expm1()),
    "penalty_times_the_advantage": priced(
        distance=lambda change, weights: (change.expm1() - change) * weights
    ),
    "ratio_upside_down": priced(ratio=lambda new, old: old - new),
    "surrogate_ratio_upside_down": priced(
        surrogate=lambda change, weights: (-change).exp() * weights
    ),
    "squared_change": priced(distance=lambda change, weights: change.expm1() ** 2 / 2),
    "squared_log_ratio#without_the_half": priced(distance=lambda change, weights: change**2),
    "absolute_log_ratio": priced(distance=lambda change, weights: change.abs()),
    "single_log_ratio#turned": priced(distance=lambda change, weights: change),
    "clip_added": priced(
        surrogate=lambda change, weights: torch.minimum(
            change.exp() * weights, change.exp().clamp(0.8, 1.2) * weights
        )
    ),
}


# --- the price that follows the KL ---------------------------------------------------------


@passes("adapt_beta")
def three_branches(beta, kl, *, target_kl):
    if kl > target_kl * 1.5:
        beta *= 2
    elif kl < target_kl / 1.5:
        beta /= 2
    return beta


@passes("adapt_beta")
def by_a_factor(beta, kl, target_kl):
    factor = 2.0 if kl / target_kl > 1.5 else 0.5 if 1.5 * kl < target_kl else 1.0
    return factor * beta


@passes("adapt_beta")
def as_a_tensor(beta, kl, *, target_kl):
    beta, kl = torch.tensor(beta, dtype=torch.float64), torch.tensor(kl, dtype=torch.float64)
    beta = torch.where(kl > 1.5 * target_kl, beta * 2, beta)
    return torch.where(kl < target_kl / 1.5, beta / 2, beta)


@passes("adapt_beta")
def by_counting_edges(beta, kl, *, target_kl):
    edges_passed = (kl > 1.5 * target_kl) - (kl < target_kl / 1.5)
    return beta * 2.0**edges_passed


def rule(upper=1.5, lower=1 / 1.5, up=2.0, down=0.5):
    def function(beta, kl, *, target_kl):
        if kl > upper * target_kl:
            return up * beta
        return down * beta if kl < lower * target_kl else beta

    return function


@breaks("adapt_beta")
def estimate_made_positive(beta, kl, *, target_kl):
    return rule()(beta, abs(kl), target_kl=target_kl)


@breaks("adapt_beta")
def estimate_below_zero_ignored(beta, kl, *, target_kl):
    return beta if kl < 0 else rule()(beta, kl, target_kl=target_kl)


@breaks("adapt_beta")
def edges_count_as_outside(beta, kl, *, target_kl):
    if kl >= 1.5 * target_kl:
        return 2 * beta
    return beta / 2 if kl <= target_kl / 1.5 else beta


@breaks("adapt_beta")
def target_forgotten(beta, kl, *, target_kl):
    return rule()(beta, kl, target_kl=1.0)


@breaks("adapt_beta")
def target_squared(beta, kl, *, target_kl):
    return rule()(beta, kl, target_kl=target_kl**2)


@breaks("adapt_beta")
def added_instead_of_multiplied(beta, kl, *, target_kl):
    if kl > 1.5 * target_kl:
        return beta + 2
    return beta - 2 if kl < target_kl / 1.5 else beta


@breaks("adapt_beta")
def price_cut_off(beta, kl, *, target_kl):
    return min(max(rule()(beta, kl, target_kl=target_kl), 0.01), 100.0)


@breaks("adapt_beta")
def price_forgotten(beta, kl, *, target_kl):
    return rule()(1.0, kl, target_kl=target_kl)


WRONG["adapt_beta"] |= {
    "only_downwards": rule(up=1.0),
    "lower_edge_at_half": rule(lower=0.5),
    "lower_edge_at_the_target": rule(lower=1.0),
    "upper_edge_at_the_target": rule(upper=1.0),
    "multiplied_by_one_and_a_half": rule(up=1.5, down=1 / 1.5),
    "price_cut_off#at_one": lambda beta, kl, *, target_kl: max(
        1.0, rule()(beta, kl, target_kl=target_kl)
    ),
    "target_in_proportion#as_it_is": lambda beta, kl, *, target_kl: beta * kl / target_kl,
}


# --- seven numbers -------------------------------------------------------------------------

DISTANCES = (math.log(1.25), 0.8 * math.log(1.6) + 0.2 * math.log(0.4))
REST = {"c": 0.16, "d": 0.5, "e": 20.0, "f": 2880.0, "g": 144.0}


def numbers(distances=DISTANCES, **changed):
    return dict(zip("ab", distances, strict=True)) | REST | changed


UNWEIGHTED = math.log(0.5 / 0.8) + math.log(0.5 / 0.2)
RIGHT["fence_and_price"] = {"numbers": numbers()}
WRONG["fence_and_price"] = {
    "orders_exchanged": numbers(DISTANCES[::-1]),
    "not_weighted": numbers((UNWEIGHTED, -UNWEIGHTED)),
    "not_weighted#averaged": numbers((UNWEIGHTED / 2, -UNWEIGHTED / 2)),
    "in_bits": numbers([each / math.log(2) for each in DISTANCES]),
    "ratio_turned": numbers([-each for each in DISTANCES]),
    "same_in_both_orders": numbers(DISTANCES[:1] * 2),
    "same_in_both_orders#new": numbers(DISTANCES[1:] * 2),
    "chance_for_the_curvature": numbers(c=0.2),
    "chance_for_the_curvature#other": numbers(c=0.8),
    "rare_part_only": numbers(c=0.128),
    "slope_not_squared": numbers(c=0.32),
    "half_forgotten": numbers(d=0.125**0.5),
    "root_forgotten": numbers(d=0.25),
    "length_in_parameters": numbers(d=0.2),
    "plain_step": numbers(d=1.6),
    "plain_step#divided": numbers(d=10.0),
    "halved_price": numbers(e=10.0),
    "halved_price#doubled": numbers(e=40.0),
    "price_upside_down": numbers(e=0.05),
    "slope_forgotten": numbers(e=12.5),
    "two_for_four": numbers(f=1440.0, g=72.0),
    "horizon_not_squared": numbers(f=288.0, g=14.4),
    "discount_forgotten": numbers(f=3200.0, g=160.0),
    "mean_advantage": numbers(f=1152.0, g=57.6),
    "mean_advantage#unweighted": numbers(f=1800.0, g=90.0),
    "pay_for_the_advantage": numbers(f=3600.0, g=180.0),
    "bad_arm_taken": numbers(f=720.0, g=36.0),
    "root_of_the_prices": numbers(g=12.0),
    "quotient_upside_down": numbers(g=1 / 144),
}


# --- the line search -----------------------------------------------------------------------


@passes("mended_line_search")
def as_given_but_mended(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    for k in range(max_tries):
        tried = parameters + shrink**k * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


@passes("mended_line_search")
def shortened_as_it_goes(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    tries = 0
    while tries < max_tries:
        tried = parameters + step
        if kl(tried) <= max_kl and improvement(tried) > 0:
            return tried
        step = shrink * step
        tries += 1
    return parameters.clone()


@passes("mended_line_search")
def first_of_a_list(parameters, step, improvement, kl, max_kl, shrink, max_tries):
    tries = [parameters + step * shrink**k for k in range(max_tries)]
    good = [each for each in tries if improvement(each).item() > 0 and kl(each).item() <= max_kl]
    return good[0] if good else parameters


@passes("mended_line_search")
def search_that_calls_itself(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    if max_tries == 0:
        return parameters
    tried = parameters + step
    if improvement(tried) > 0 and kl(tried) <= max_kl:
        return tried
    return search_that_calls_itself(
        parameters,
        step * shrink,
        improvement=improvement,
        kl=kl,
        max_kl=max_kl,
        shrink=shrink,
        max_tries=max_tries - 1,
    )


@passes("mended_line_search")
def with_an_else(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    tried, factor = parameters.clone(), 1.0
    for _ in range(max_tries):
        tried = torch.add(parameters, step, alpha=factor)
        if improvement(tried) <= 0 or kl(tried) > max_kl:
            factor *= shrink
            continue
        break
    else:
        tried = parameters
    return tried


def search(tries_of, good=None, after=None):
    """Right but for what is handed over."""

    def function(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
        for tried in tries_of(parameters, step, shrink, max_tries):
            passes_both = (good or (lambda gain, kl, limit: gain > 0 and kl <= limit))(
                improvement(tried), kl(tried), max_kl
            )
            if passes_both:
                return tried if after is None else after(parameters, tried)
        return parameters if after is None else after(parameters, parameters)

    return function


def powers(parameters, step, shrink, max_tries):
    return [parameters + shrink**k * step for k in range(max_tries)]


@breaks("mended_line_search")
def best_try_taken(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    tries = [each for each in powers(parameters, step, shrink, max_tries) if kl(each) <= max_kl]
    best = max(tries, key=improvement, default=parameters)
    return best if improvement(best) > 0 else parameters


@breaks("mended_line_search")
def kl_of_the_step(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    for k in range(max_tries):
        tried = parameters + shrink**k * step
        if improvement(tried) > 0 and kl(shrink**k * step) <= max_kl:
            return tried
    return parameters


WRONG["mended_line_search"] |= {
    "limit_excluded": search(powers, lambda gain, kl, limit: gain > 0 and kl < limit),
    "step_returned": search(powers, after=lambda parameters, tried: tried - parameters),
    "downhill": search(
        lambda parameters, step, shrink, tries: powers(parameters, -step, shrink, tries)
    ),
    "one_try_too_many": search(
        lambda parameters, step, shrink, tries: powers(parameters, step, shrink, tries + 1)
    ),
    "one_try_too_few": search(
        lambda parameters, step, shrink, tries: powers(parameters, step, shrink, tries - 1)
    ),
    "shrinks_twice": search(
        lambda parameters, step, shrink, tries: [
            parameters + shrink ** (k * (k + 1) / 2) * step for k in range(tries)
        ]
    ),
    "never_shrinks": search(
        lambda parameters, step, shrink, tries: [parameters + step for k in range(tries)]
    ),
    "factor_instead_of_the_power": search(
        lambda parameters, step, shrink, tries: [
            parameters + shrink * k * step for k in range(tries)
        ]
    ),
}


# --- F times v -----------------------------------------------------------------------------


@passes("fisher_vector_product")
def by_hand(logits, state_visits, vector):
    policy = logits.softmax(-1)
    centred = vector - (policy * vector).sum(-1, keepdim=True)
    shares = state_visits / state_visits.sum()
    return shares[:, None] * policy * centred


@passes("fisher_vector_product")
def by_two_backward_passes(logits, state_visits, vector):
    at = logits.detach().clone().requires_grad_()
    shares = state_visits / state_visits.sum()
    log_old = logits.detach().log_softmax(-1)
    kl = (shares * (log_old.exp() * (log_old - at.log_softmax(-1))).sum(-1)).sum()
    (slope,) = torch.autograd.grad(kl, at, create_graph=True)
    return torch.autograd.grad((slope * vector).sum(), at)[0]


@passes("fisher_vector_product")
def with_the_whole_matrix(logits, state_visits, vector):
    S, A = logits.shape
    fisher = torch.zeros(S * A, S * A, dtype=logits.dtype)
    policy = torch.softmax(logits, dim=1)
    for s in range(S):
        for a in range(A):
            score = torch.zeros(S, A, dtype=logits.dtype)
            score[s] = -policy[s]
            score[s, a] += 1
            weight = state_visits[s] / state_visits.sum() * policy[s, a]
            fisher += weight * torch.outer(score.flatten(), score.flatten())
    return (fisher @ vector.flatten()).view(S, A)


@passes("fisher_vector_product")
def mean_of_scores_in_float32(logits, state_visits, vector):
    policy = logits.float().softmax(-1)
    scores = torch.eye(logits.shape[1]) - policy[:, None]  # state, action, logit
    along = torch.einsum("sab,sb->sa", scores, vector.float())
    shares = state_visits.float() / state_visits.float().sum()
    return torch.einsum("s,sa,sa,sab->sb", shares, policy, along, scores)


def product(shares=None, policy=None, centred=None, weights=None, after=None):
    """Right but for what is handed over."""

    def function(logits, state_visits, vector):
        chances = logits.softmax(-1) if policy is None else policy(logits)
        mean = (chances * vector).sum(-1, keepdim=True)
        moved = vector - mean if centred is None else centred(chances, vector)
        visits = (shares or (lambda each: each / each.sum()))(state_visits).unsqueeze(-1)
        found = visits * (chances if weights is None else weights(chances)) * moved
        return found if after is None else after(found, vector)

    return function


@breaks("fisher_vector_product")
def curvature_of_the_objective(logits, state_visits, vector):
    policy = logits.softmax(-1)
    shares = (state_visits / state_visits.sum()).unsqueeze(-1)
    scores = functional.one_hot(policy.argmax(-1), logits.shape[1]) - policy
    return shares * scores * (scores * vector).sum(-1, keepdim=True)


def _exponentials(logits):
    return logits.exp() / logits.exp().sum(-1, keepdim=True)


WRONG["fisher_vector_product"] |= {
    "mean_not_subtracted": product(centred=lambda policy, vector: vector),
    "plain_mean_subtracted": product(
        centred=lambda policy, vector: vector - vector.mean(-1, keepdim=True)
    ),
    "mean_over_all_states": product(
        centred=lambda policy, vector: vector - (policy * vector).sum()
    ),
    "mean_over_all_states#averaged": product(
        centred=lambda policy, vector: vector - (policy * vector).sum(-1).mean()
    ),
    "visits_not_normalised": product(shares=lambda visits: visits),
    "visits_forgotten": product(shares=torch.ones_like),
    "states_equally_weighted": product(shares=lambda visits: torch.ones_like(visits) / len(visits)),
    "visits_squared": product(shares=lambda visits: (visits / visits.sum()) ** 2),
    "not_weighted_by_the_policy": product(weights=torch.ones_like),
    "policy_squared": product(weights=torch.square),
    "first_derivative": product(after=lambda found, vector: torch.zeros_like(found)),
    "summed_over_the_states": product(after=lambda found, vector: found.sum(0)),
    "softmax_over_the_states": product(policy=lambda logits: logits.softmax(0)),
    "logits_as_probabilities": product(policy=lambda logits: logits),
    "sign_turned": product(after=lambda found, vector: -found),
    "one_number_for_the_curvature": product(after=lambda found, vector: (found * vector).sum()),
    "one_number_for_the_curvature#spread_out": product(
        after=lambda found, vector: (found * vector).sum().expand_as(found)
    ),
    "one_number_for_the_curvature#not_summed": product(after=lambda found, vector: found * vector),
    "fisher_of_the_probabilities": product(
        centred=lambda policy, vector: vector, weights=torch.reciprocal
    ),
    "exponential_overflows": product(policy=_exponentials),
    "half_of_the_curvature": product(after=lambda found, vector: found / 2),
}


# --- slow definitions ----------------------------------------------------------------------


def slow_kl(policy_old, policy):
    found = []
    for old, new in zip(policy_old, policy, strict=True):
        terms = [
            0.0 if p == 0 else math.inf if q == 0 else p * math.log(p / q)
            for p, q in zip(old, new, strict=True)
        ]
        found.append(sum(terms))
    return found


def slow_solution(matrix, right):
    """Solve a system by elimination."""
    rows = [[*row, number] for row, number in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [each / rows[i][i] for each in rows[i]]
        for j in range(size):
            if j != i:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def slow_step(gradient, fisher, *, max_kl):
    if not any(gradient):
        return gradient
    direction = slow_solution(fisher, gradient)
    half_form = sum(
        direction[i] * fisher[i][j] * direction[j] / 2
        for i in range(len(gradient))
        for j in range(len(gradient))
    )
    return [each * math.sqrt(max_kl / half_form) for each in direction]


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def slow_loss(log_probs, log_probs_old, advantages, *, beta):
    rows = list(zip(flat(log_probs), flat(log_probs_old), flat(advantages), strict=True))
    terms = [
        -math.exp(new - old) * advantage + beta * (math.exp(new - old) - 1 - (new - old))
        for new, old, advantage in rows
    ]
    return sum(terms) / len(terms)


def slow_beta(*, beta, kl, target_kl):
    if 2 * kl > 3 * target_kl:
        return beta * 2
    return beta / 2 if 3 * kl < 2 * target_kl else beta


def slow_search(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    factor = 1.0
    for _ in range(max_tries):
        tried = [a + factor * b for a, b in zip(parameters, step, strict=True)]
        at = torch.tensor(tried, dtype=torch.float64)
        if improvement(at) > 0 and kl(at) <= max_kl:
            return tried
        factor *= shrink
    return parameters


def slow_product(logits, state_visits, vector):
    found = []
    for row, visits, along in zip(logits, state_visits, vector, strict=True):
        weights = [math.exp(each - max(row)) for each in row]
        policy = [each / sum(weights) for each in weights]
        entries = []
        for i in range(len(row)):
            entry = 0.0
            for j, chance in enumerate(policy):  # the action that is taken
                scores = [(j == k) - policy[k] for k in range(len(row))]
                entry += chance * scores[i] * sum(a * b for a, b in zip(scores, along, strict=True))
            entries.append(visits / sum(state_visits) * entry)
        found.append(entries)
    return found


ORACLES = {
    "state_kl": slow_kl,
    "natural_gradient_step": slow_step,
    "penalty_loss": slow_loss,
    "adapt_beta": slow_beta,
    "mended_line_search": slow_search,
    "fisher_vector_product": slow_product,
}
