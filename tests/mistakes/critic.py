"""Classic mistakes around the critic."""

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def averaged(terms, mask):
    return terms.mean() if mask is None else terms[mask].mean()


def weighted_mean(numbers, weights):
    return (weights * numbers).sum() / weights.sum()


@breaks("optimal_baseline")
def value_taken_for_the_optimum(probabilities, scores, returns):
    """Is V, the mean return: right only where all scores are equally long."""
    return weighted_mean(returns, probabilities)


@breaks("optimal_baseline")
def score_not_squared(probabilities, scores, returns):
    """Weights by the length of the score."""
    return weighted_mean(returns, probabilities * scores.norm(dim=-1))


@breaks("optimal_baseline")
def probabilities_forgotten(probabilities, scores, returns):
    """Counts rare draws like frequent ones."""
    return weighted_mean(returns, scores.square().sum(-1))


@breaks("optimal_baseline")
def not_divided_by_the_scores(probabilities, scores, returns):
    """Is E[|score|²·R]: its unit is no reward."""
    return (probabilities * scores.square().sum(-1) * returns).sum()


@breaks("optimal_baseline")
def returns_squared(probabilities, scores, returns):
    """Weights by score times return, as if the noise itself were to be averaged."""
    return weighted_mean(returns, probabilities * (scores.square().sum(-1) * returns.abs()))


@breaks("leave_one_out_baseline")
def itself_included(returns):
    """Is the mean of all: the gradient shrinks by (k − 1)/k."""
    if returns.shape[-1] < 2:
        raise ValueError("one draw")
    return returns.mean(-1, keepdim=True).expand_as(returns)


@breaks("leave_one_out_baseline")
def divided_by_all(returns):
    """Leaves itself out of the sum and not of the count."""
    return (returns.sum(-1, keepdim=True) - returns) / returns.shape[-1]


@breaks("leave_one_out_baseline")
def all_rows_thrown_together(returns):
    """Takes the mean of other rows, too: those belong to another state."""
    return (returns.sum() - returns) / (returns.numel() - 1)


@breaks("leave_one_out_baseline")
def itself_alone(returns):
    """Subtracts each return from itself: nothing is learned."""
    return returns.clone()


@breaks("td_errors")
def bootstrap_kept_at_termination(rewards, values, next_values, terminated, *, gamma):
    """Counts a future after the final state."""
    return rewards + gamma * next_values - values


@breaks("td_errors")
def mask_as_a_factor(rewards, values, next_values, terminated, *, gamma):
    """Multiplies by the flag: a NaN behind a final state survives, since 0·NaN is NaN."""
    return rewards + gamma * next_values * ~terminated - values


@breaks("td_errors")
def mask_inverted(rewards, values, next_values, terminated, *, gamma):
    """Bootstraps only where nothing follows."""
    return rewards + gamma * next_values.masked_fill(~terminated, 0) - values


@breaks("td_errors")
def next_value_not_discounted(rewards, values, next_values, terminated, *, gamma):
    """Forgets γ, so the value of tomorrow counts like the value of today."""
    return rewards + next_values.masked_fill(terminated, 0) - values


@breaks("td_errors")
def sign_turned(rewards, values, next_values, terminated, *, gamma):
    """Says how much worse the step went."""
    return values - rewards - gamma * next_values.masked_fill(terminated, 0)


@breaks("value_loss")
def column_against_row(values, returns, *, mask=None):
    """Lets (N, 1) against (N,) become (N, N): every value is pulled to the mean of all returns."""
    return averaged((values - returns.detach()) ** 2, mask) / 2


@breaks("value_loss")
def gradient_through_the_targets(values, returns, *, mask=None):
    """Moves the targets towards the values."""
    if values.shape != returns.shape:
        raise ValueError("shapes differ")
    return averaged((values - returns) ** 2, mask) / 2


@breaks("value_loss")
def half_forgotten(values, returns, *, mask=None):
    """Is twice the loss, so value_coef means something else than it says."""
    if values.shape != returns.shape:
        raise ValueError("shapes differ")
    return averaged((values - returns.detach()) ** 2, mask)


@breaks("value_loss")
def masked_targets_in_the_backward_pass(values, returns, *, mask=None):
    """Masks after the square: the loss is right, the gradient behind the mask is 0·NaN."""
    if values.shape != returns.shape:
        raise ValueError("shapes differ")
    errors = (values - returns.detach()) ** 2
    if mask is None:
        return errors.mean() / 2
    return errors.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1) / 2


@breaks("clipped_value_loss")
def minimum_for_maximum(values, returns, *, values_old, clip_epsilon, mask=None):
    """Takes the smaller error: a value that strayed from its target is not brought back."""
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    errors = torch.minimum((values - returns) ** 2, (moved - returns) ** 2)
    return averaged(errors, mask) / 2


@breaks("clipped_value_loss")
def clipped_error_only(values, returns, *, values_old, clip_epsilon, mask=None):
    """Leaves out the maximum: outside the interval there is no gradient in any direction."""
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    return averaged((moved - returns.detach()) ** 2, mask) / 2


@breaks("clipped_value_loss")
def clip_as_a_ratio(values, returns, *, values_old, clip_epsilon, mask=None):
    """Clips V / V_old to 1 ± ε, as for the policy: it depends on where zero is."""
    moved = values_old * (values / values_old).clamp(1 - clip_epsilon, 1 + clip_epsilon)
    errors = torch.maximum((values - returns) ** 2, (moved - returns) ** 2)
    return averaged(errors, mask) / 2


@breaks("clipped_value_loss")
def targets_and_old_values_with_gradient(values, returns, *, values_old, clip_epsilon, mask=None):
    """Moves the targets, and the place around which it clips."""
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    errors = torch.maximum((values - returns) ** 2, (moved - returns) ** 2)
    return averaged(errors, mask) / 2


@breaks("explained_variance")
def mean_not_removed(values, returns):
    """Is 1 − MSE / Var: a critic that is off by a constant looks useless."""
    if returns.numel() == 0:
        return returns.new_tensor(torch.nan)
    spread = returns.var(correction=0)
    return torch.where(spread > 0, 1 - ((returns - values) ** 2).mean() / spread, torch.nan)


@breaks("explained_variance")
def share_that_was_missed(values, returns):
    """Forgets 1 − …: 0 is perfect, and a better critic looks worse."""
    return (returns - values).var(correction=0) / returns.var(correction=0)


@breaks("explained_variance")
def zero_where_nothing_varies(values, returns):
    """Says 0 where there was nothing to explain, which reads as a useless critic."""
    if returns.numel() == 0 or returns.max() == returns.min():
        return torch.zeros((), dtype=returns.dtype)
    return 1 - (returns - values).var(correction=0) / returns.var(correction=0)


@breaks("explained_variance")
def divided_by_the_critics_spread(values, returns):
    """Divides by Var(V): a constant critic gives minus infinity instead of 0."""
    return 1 - (returns - values).var(correction=0) / values.var(correction=0)


@breaks("explained_variance")
def share_of_the_critics_spread(values, returns):
    """Is Var(V) / Var(return): noise of the right size explains everything."""
    return values.var(correction=0) / returns.var(correction=0)


@breaks("explained_variance")
def squared_correlation(values, returns):
    """Forgives a wrong scale: twice the right value still gives 1."""
    joint = ((values - values.mean()) * (returns - returns.mean())).mean()
    return joint**2 / (values.var(correction=0) * returns.var(correction=0))


@breaks("explained_variance")
def constant_returns_answered(values, returns):
    """Adds 1e-8 to the spread, and reports 1 or minus a billion where nothing varies."""
    return 1 - (returns - values).var(correction=0) / (returns.var(correction=0) + 1e-8)


def look_back(rewards, terminated, truncated, gamma, known_from):
    """Returns, and where they are known by the rule `known_from`."""
    returns, known = torch.empty_like(rewards), torch.empty_like(terminated)
    following, reaches_end = torch.zeros_like(rewards[0]), known_from["last row"](terminated[0])
    for t in reversed(range(len(rewards))):
        reaches_end = known_from["step"](terminated[t], truncated[t], reaches_end)
        following = rewards[t] + gamma * following * ~(terminated[t] | truncated[t])
        returns[t], known[t] = following, reaches_end
    return returns.masked_fill(~known, 0), known


@breaks("known_returns")
def cut_episodes_counted(rewards, terminated, truncated, *, gamma):
    """Takes the rewards up to a truncation for the whole return."""
    rule = {"last row": torch.zeros_like, "step": lambda ends, cut, later: ends | cut | later}
    return look_back(rewards, terminated, truncated, gamma, rule)


@breaks("known_returns")
def running_episodes_counted(rewards, terminated, truncated, *, gamma):
    """Takes what was seen of an episode that still runs for the whole return."""
    rule = {"last row": torch.ones_like, "step": lambda ends, cut, later: ends | later & ~cut}
    return look_back(rewards, terminated, truncated, gamma, rule)


@breaks("known_returns")
def later_termination_believed(rewards, terminated, truncated, *, gamma):
    """Looks past a truncation: the end it finds belongs to another episode."""
    rule = {"last row": torch.zeros_like, "step": lambda ends, cut, later: ends | later}
    return look_back(rewards, terminated, truncated, gamma, rule)


@breaks("known_returns")
def truncation_wins_over_termination(rewards, terminated, truncated, *, gamma):
    """Does not know the return of an episode that reached its end as the time ran out."""
    rule = {"last row": torch.zeros_like, "step": lambda ends, cut, later: (ends | later) & ~cut}
    return look_back(rewards, terminated, truncated, gamma, rule)


@breaks("known_returns")
def sum_runs_through_ends(rewards, terminated, truncated, *, gamma):
    """Knows which returns are known, but sums on into the next episode."""
    rule = {"last row": torch.zeros_like, "step": lambda ends, cut, later: ends | later & ~cut}
    _, known = look_back(rewards, terminated, truncated, gamma, rule)
    nothing = torch.zeros_like(terminated)
    every = {"last row": torch.ones_like, "step": lambda ends, cut, later: later}
    returns, _ = look_back(rewards, nothing, nothing, gamma, every)
    return returns.masked_fill(~known, 0), known
