"""Classic mistakes around the trust region: the natural step, the penalty, the bound."""

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def inverse(fisher):
    return torch.linalg.pinv(fisher, rtol=1e-12, hermitian=True)


def scaled(direction, fisher, max_kl):
    return (2 * max_kl / (direction @ fisher @ direction)).sqrt() * direction


def averaged(terms, mask):
    return terms.mean() if mask is None else terms[mask].mean()


# --- The natural step ----------------------------------------------------------------------------


@breaks("natural_gradient_step")
def plain_direction(gradient, fisher, *, max_kl):
    """Keeps the plain gradient's direction, and takes from F the length only."""
    return scaled(gradient, fisher, max_kl)


@breaks("natural_gradient_step")
def multiplied_by_fisher(gradient, fisher, *, max_kl):
    """Multiplies by F where it should divide."""
    return scaled(fisher @ gradient, fisher, max_kl)


@breaks("natural_gradient_step")
def diagonal_only(gradient, fisher, *, max_kl):
    """Divides by the diagonal of F: parameters that act together are taken for independent."""
    return scaled(gradient / fisher.diagonal().clamp(min=1e-12), fisher, max_kl)


@breaks("natural_gradient_step")
def heavily_damped(gradient, fisher, *, max_kl):
    """Adds so much to the diagonal of F, to be able to invert it, that the direction changes."""
    return scaled(torch.linalg.solve(fisher + 0.1 * torch.eye(len(gradient)), gradient), fisher,
                  max_kl)  # fmt: skip


@breaks("natural_gradient_step")
def half_forgotten(gradient, fisher, *, max_kl):
    """Forgets the half of the quadratic form: the KL comes out half as large as allowed."""
    return scaled(inverse(fisher) @ gradient, fisher, max_kl / 2)


@breaks("natural_gradient_step")
def root_forgotten(gradient, fisher, *, max_kl):
    """Scales by the squared length: the step depends on the scale of the reward."""
    direction = inverse(fisher) @ gradient
    return 2 * max_kl / (direction @ gradient).clamp(min=1e-300) * direction


@breaks("natural_gradient_step")
def length_in_parameters(gradient, fisher, *, max_kl):
    """Measures the step in parameters, not in behaviour."""
    direction = inverse(fisher) @ gradient
    return (2 * max_kl) ** 0.5 * direction / direction.norm().clamp(min=1e-300)


@breaks("natural_gradient_step")
def not_scaled(gradient, fisher, *, max_kl):
    """Takes F⁺·g as it is, of whatever length."""
    return inverse(fisher) @ gradient


@breaks("natural_gradient_step")
def downhill(gradient, fisher, *, max_kl):
    """Goes down, as if the gradient were that of a loss."""
    direction = inverse(fisher) @ gradient
    return -((2 * max_kl / (direction @ gradient).clamp(min=1e-300)).sqrt()) * direction


@breaks("natural_gradient_step")
def zero_over_zero(gradient, fisher, *, max_kl):
    """Divides by the length of a step that is zero."""
    return scaled(inverse(fisher) @ gradient, fisher, max_kl)


# --- The line search -----------------------------------------------------------------------------


@breaks("backtracking_line_search")
def looks_at_the_kl_only(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Takes a step that stays near and makes things worse."""
    tries = (parameters + shrink**k * step for k in range(max_tries))
    return next((tried for tried in tries if kl(tried) <= max_kl), parameters)


@breaks("backtracking_line_search")
def looks_at_the_improvement_only(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Takes a step that improves the surrogate and leaves the region."""
    tries = (parameters + shrink**k * step for k in range(max_tries))
    return next((tried for tried in tries if improvement(tried) > 0), parameters)


@breaks("backtracking_line_search")
def one_of_the_two_is_enough(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Says or where it should say and."""
    tries = (parameters + shrink**k * step for k in range(max_tries))
    good = (tried for tried in tries if improvement(tried) > 0 or kl(tried) <= max_kl)
    return next(good, parameters)


@breaks("backtracking_line_search")
def last_try_taken(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Takes the last try although it did not pass either."""
    tried = parameters
    for k in range(max_tries):
        tried = parameters + shrink**k * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            break
    return tried


@breaks("backtracking_line_search")
def goes_on_from_the_last_try(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Adds each shorter step to the one before, and so goes further and further."""
    tried = parameters
    for k in range(max_tries):
        tried = tried + shrink**k * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


@breaks("backtracking_line_search")
def full_step_never_tried(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Shrinks before the first try."""
    for k in range(1, max_tries + 1):
        tried = parameters + shrink**k * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


@breaks("backtracking_line_search")
def no_gain_is_enough(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Accepts a step that gains nothing."""
    tries = (parameters + shrink**k * step for k in range(max_tries))
    good = (tried for tried in tries if improvement(tried) >= 0 and kl(tried) <= max_kl)
    return next(good, parameters)


@breaks("backtracking_line_search")
def shrinks_evenly(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Takes the same amount off at each try, and tries no short step."""
    for k in range(max_tries):
        tried = parameters + (1 - k * (1 - shrink) / max_tries) * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


# --- The penalty ---------------------------------------------------------------------------------


@breaks("penalty_loss")
def distance_rewarded(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Has the sign of the penalty turned: it pays for distance."""
    log_ratios = log_probs - log_probs_old.detach()
    terms = log_ratios.exp() * advantages.detach() + beta * (log_ratios.expm1() - log_ratios)
    return -averaged(terms, mask)


@breaks("penalty_loss")
def objective_called_a_loss(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Gives the objective, and is then minimised."""
    log_ratios = log_probs - log_probs_old.detach()
    terms = log_ratios.exp() * advantages.detach() - beta * (log_ratios.expm1() - log_ratios)
    return averaged(terms, mask)


@breaks("penalty_loss")
def squared_log_ratio(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Takes k2, half the squared log ratio: its gradient is not that of the KL."""
    log_ratios = log_probs - log_probs_old.detach()
    return averaged(beta * log_ratios**2 / 2 - log_ratios.exp() * advantages.detach(), mask)


@breaks("penalty_loss")
def single_log_ratio(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Takes k1, the log ratio: right on average, and pushes each sample where nothing has moved."""
    log_ratios = log_probs - log_probs_old.detach()
    return averaged(-beta * log_ratios - log_ratios.exp() * advantages.detach(), mask)


@breaks("penalty_loss")
def other_direction(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Takes k3 with the two policies exchanged, on samples of the old one."""
    log_ratios = log_probs - log_probs_old.detach()
    penalty = (-log_ratios).expm1() + log_ratios
    return averaged(beta * penalty - log_ratios.exp() * advantages.detach(), mask)


@breaks("penalty_loss")
def penalty_without_gradient(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Computes the penalty without gradient: the loss is right, and nothing holds the policy."""
    log_ratios = log_probs - log_probs_old.detach()
    penalty = (log_ratios.expm1() - log_ratios).detach()
    return averaged(beta * penalty - log_ratios.exp() * advantages.detach(), mask)


@breaks("penalty_loss")
def old_policy_with_gradient(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Lets the gradient through the old log-probabilities too: the two cancel to 0."""
    log_ratios = log_probs - log_probs_old
    penalty = log_ratios.expm1() - log_ratios
    return averaged(beta * penalty - log_ratios.exp() * advantages.detach(), mask)


@breaks("penalty_loss")
def critic_trained_through_the_penalty_loss(
    log_probs, log_probs_old, advantages, *, beta, mask=None
):
    """Forgets that advantages are constants."""
    log_ratios = log_probs - log_probs_old.detach()
    return averaged(beta * (log_ratios.expm1() - log_ratios) - log_ratios.exp() * advantages, mask)


@breaks("penalty_loss")
def sum_over_the_batch(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Sums: the step size grows with the batch."""
    log_ratios = log_probs - log_probs_old.detach()
    terms = beta * (log_ratios.expm1() - log_ratios) - log_ratios.exp() * advantages.detach()
    return (terms if mask is None else terms[mask]).sum()


@breaks("penalty_loss")
def padding_in_the_penalty(log_probs, log_probs_old, advantages, *, beta, mask=None):
    """Masks the surrogate and forgets the penalty."""
    log_ratios = log_probs - log_probs_old.detach()
    surrogate = averaged(log_ratios.exp() * advantages.detach(), mask)
    return beta * (log_ratios.expm1() - log_ratios).mean() - surrogate


# --- The price that follows the KL, and the rule that stops --------------------------------------


@breaks("adapt_beta")
def cheaper_after_a_large_step(beta, kl, *, target_kl):
    """Lowers the price when the policy went too far: the next step goes further still."""
    if kl > 1.5 * target_kl:
        return beta / 2
    return 2 * beta if kl < target_kl / 1.5 else beta


@breaks("adapt_beta")
def no_rest(beta, kl, *, target_kl):
    """Changes the price at every iteration, also when the KL is as wanted."""
    return 2 * beta if kl > target_kl else beta / 2


@breaks("adapt_beta")
def numbers_exchanged(beta, kl, *, target_kl):
    """Exchanges the tolerance 1.5 and the factor 2."""
    if kl > 2 * target_kl:
        return 1.5 * beta
    return beta / 1.5 if kl < target_kl / 2 else beta


@breaks("adapt_beta")
def only_upwards(beta, kl, *, target_kl):
    """Never lowers the price again."""
    return 2 * beta if kl > 1.5 * target_kl else beta


@breaks("adapt_beta")
def target_in_proportion(beta, kl, *, target_kl):
    """Sets the price in proportion to the KL: one noisy estimate changes it tenfold."""
    return beta * max(kl, 0.0) / target_kl


@breaks("stop_on_kl")
def stops_when_near(kl_k1, *, max_kl):
    """Stops while the policy is still near."""
    return kl_k1 < max_kl


@breaks("stop_on_kl")
def noise_below_zero_stops(kl_k1, *, max_kl):
    """Takes the absolute value: an estimate below 0 is noise, and no distance."""
    return abs(kl_k1) > max_kl


@breaks("stop_on_kl")
def stops_at_the_limit(kl_k1, *, max_kl):
    """Stops at the limit, and not beyond it."""
    return kl_k1 >= max_kl


# --- The promise ---------------------------------------------------------------------------------


def tables(mdp, policy_old, gamma):
    """Values, advantages and visits of the old policy."""
    moves = torch.einsum("sa,sat->st", policy_old, mdp.transitions)
    matrix = torch.eye(len(moves), dtype=torch.float64) - gamma * moves
    values = torch.linalg.solve(matrix, (policy_old * mdp.rewards).sum(-1))
    advantages = mdp.rewards + gamma * mdp.transitions @ values - values.unsqueeze(-1)
    return values, advantages, torch.linalg.solve(matrix.T, mdp.initial)


def distances(first, second):
    return torch.where(first > 0, first * (first.log() - second.log()), 0.0).sum(-1)


def bound(mdp, policy, policy_old, gamma, *, price=4.0, distance=None, sign=1.0):
    values, advantages, visits = tables(mdp, policy_old, gamma)
    surrogate = (visits.unsqueeze(-1) * policy * advantages).sum((-2, -1))
    price = price * advantages.abs().max() * gamma / (1 - gamma) ** 2
    if distance is None:
        distance = distances(policy_old, policy).amax(-1)
    return mdp.initial @ values + sign * surrogate - price * distance


@breaks("trpo_penalty")
def two_for_four(mdp, policy_old, *, gamma):
    """Takes 2 where the theorem has 4."""
    _, advantages, _ = tables(mdp, policy_old, gamma)
    return (2 * advantages.abs().max() * gamma / (1 - gamma) ** 2).item()


@breaks("trpo_penalty")
def horizon_not_squared(mdp, policy_old, *, gamma):
    """Forgets the square of 1 − γ: the error grows with the horizon twice."""
    _, advantages, _ = tables(mdp, policy_old, gamma)
    return (4 * advantages.abs().max() * gamma / (1 - gamma)).item()


@breaks("trpo_penalty")
def discount_forgotten(mdp, policy_old, *, gamma):
    """Forgets the γ above the line: at γ = 0 there is no other state, and nothing to pay."""
    _, advantages, _ = tables(mdp, policy_old, gamma)
    return (4 * advantages.abs().max() / (1 - gamma) ** 2).item()


@breaks("trpo_penalty")
def good_advantages_only(mdp, policy_old, *, gamma):
    """Takes the largest advantage, not the largest absolute one."""
    _, advantages, _ = tables(mdp, policy_old, gamma)
    return (4 * advantages.max() * gamma / (1 - gamma) ** 2).item()


@breaks("trpo_penalty")
def mean_advantage(mdp, policy_old, *, gamma):
    """Averages the absolute advantages over what the policy does."""
    _, advantages, visits = tables(mdp, policy_old, gamma)
    weights = (visits / visits.sum()).unsqueeze(-1) * policy_old
    return (4 * (weights * advantages.abs()).sum() * gamma / (1 - gamma) ** 2).item()


@breaks("trpo_lower_bound")
def mean_for_the_maximum(mdp, policy, policy_old, *, gamma):
    """Averages the KL over the states that the old policy visits."""
    _, _, visits = tables(mdp, policy_old, gamma)
    distance = (visits / visits.sum() * distances(policy_old, policy)).sum(-1)
    return bound(mdp, policy, policy_old, gamma, distance=distance)


@breaks("trpo_lower_bound")
def kl_the_other_way(mdp, policy, policy_old, *, gamma):
    """Takes KL(π ‖ π_old)."""
    distance = distances(policy, policy_old.expand_as(policy)).amax(-1)
    return bound(mdp, policy, policy_old, gamma, distance=distance)


@breaks("trpo_lower_bound")
def nothing_subtracted(mdp, policy, policy_old, *, gamma):
    """Takes the surrogate itself for a bound."""
    return bound(mdp, policy, policy_old, gamma, price=0.0)


@breaks("trpo_lower_bound")
def a_tenth_of_the_price(mdp, policy, policy_old, *, gamma):
    """Takes a tenth of C, since C is so large."""
    return bound(mdp, policy, policy_old, gamma, price=0.4)


@breaks("trpo_lower_bound")
def distance_added(mdp, policy, policy_old, *, gamma):
    """Adds the penalty."""
    return bound(mdp, policy, policy_old, gamma, price=-4.0)


@breaks("trpo_lower_bound")
def surrogate_subtracted(mdp, policy, policy_old, *, gamma):
    """Turns the sign of L."""
    return bound(mdp, policy, policy_old, gamma, sign=-1.0)


@breaks("trpo_lower_bound")
def gain_without_the_old_return(mdp, policy, policy_old, *, gamma):
    """Bounds the gain, and calls it the return."""
    values, _, _ = tables(mdp, policy_old, gamma)
    return bound(mdp, policy, policy_old, gamma) - mdp.initial @ values
