"""Classic mistakes around generalised advantage estimation: mostly, where an episode ends."""

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def recursion(errors, weight, stopped):
    """The backward sum with a weight of one's own, and stops of one's own."""
    advantages, following = torch.empty_like(errors), torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        following = errors[t] + weight * following.masked_fill(stopped[t], 0)
        advantages[t] = following
    return advantages


def after_the_reset(values, next_values):
    """V of the next row, which after an end is the first state of another episode."""
    return torch.cat([values[1:], next_values[-1:]])


@breaks("compute_gae")
def flags_merged(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Treats truncation as termination: the future of a cut episode is worth 0."""
    ended = terminated | truncated
    errors = rewards + gamma * next_values.masked_fill(ended, 0) - values
    return recursion(errors, gamma * gae_lambda, ended)


@breaks("compute_gae")
def truncated_ignored(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Has the right next values, but the sum runs on into the next episode."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    return recursion(errors, gamma * gae_lambda, terminated)


@breaks("compute_gae")
def truncated_ignored_after_the_reset(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Sums on into the next episode, whose first state it takes for the last one of this."""
    following = after_the_reset(values, next_values)
    errors = rewards + gamma * following.masked_fill(terminated, 0) - values
    return recursion(errors, gamma * gae_lambda, terminated)


@breaks("compute_gae")
def next_value_after_the_reset(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Stops the sum at a truncation, but asks the critic about the next episode's first state."""
    following = after_the_reset(values, next_values)
    errors = rewards + gamma * following.masked_fill(terminated, 0) - values
    return recursion(errors, gamma * gae_lambda, terminated | truncated)


@breaks("compute_gae")
def flags_late_by_one(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Reads the flags of the row before: the end acts one step after it happened."""

    def late(happened):
        return torch.cat([torch.zeros_like(happened[:1]), happened[:-1]])

    following = after_the_reset(values, next_values)
    errors = rewards + gamma * following.masked_fill(late(terminated), 0) - values
    return recursion(errors, gamma * gae_lambda, late(terminated | truncated))


@breaks("compute_gae")
def trace_not_reset(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Has every TD error right and lets the sum run through every end."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    return recursion(errors, gamma * gae_lambda, torch.zeros_like(terminated))


@breaks("compute_gae")
def missing_parenthesis(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Weights δ_{t+l} by γ·λˡ instead of (γλ)ˡ: at λ = 0 it gives γ·δ."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    return gamma * recursion(errors, gae_lambda, terminated | truncated)


@breaks("compute_gae")
def no_bootstrap_at_the_last_row(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Takes the end of the rollout for the end of the world."""
    known = torch.cat([next_values[:-1], torch.zeros_like(next_values[-1:])])
    errors = rewards + gamma * known.masked_fill(terminated, 0) - values
    return recursion(errors, gamma * gae_lambda, terminated | truncated)


@breaks("compute_gae")
def bootstrap_kept_at_termination(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Stops the sum at a final state but counts a future behind it."""
    errors = rewards + gamma * next_values - values
    return recursion(errors, gamma * gae_lambda, terminated | truncated)


@breaks("compute_gae")
def inputs_changed_in_place(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Builds the TD errors inside `rewards`: right once, wrong when called again."""
    rewards += gamma * next_values.masked_fill(terminated, 0)
    rewards -= values
    return recursion(rewards, gamma * gae_lambda, terminated | truncated)


@breaks("compute_gae")
def mask_as_a_factor(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Multiplies by the flag: a NaN behind a final state survives, since 0·NaN is NaN."""
    errors = rewards + gamma * next_values * ~terminated - values
    return recursion(errors, gamma * gae_lambda, terminated | truncated)


@breaks("compute_gae")
def weights_in_single_precision(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Multiplies a number by a mask, which is float32: float64 rewards lose half their digits."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    carried = gamma * gae_lambda * ~(terminated | truncated)
    advantages = errors.clone()
    for t in reversed(range(len(errors) - 1)):
        advantages[t] += carried[t] * advantages[t + 1]
    return advantages


@breaks("compute_gae")
def flattened_too_early(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Runs through [T, N] as one long column: each environment hears of its neighbour's future."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    ended = (terminated | truncated).reshape(-1, 1)
    return recursion(errors.reshape(-1, 1), gamma * gae_lambda, ended).reshape(errors.shape)


@breaks("compute_gae")
def whitened_inside(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Normalises before anyone could add the values back: the critic's targets lose their unit."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0) - values
    advantages = recursion(errors, gamma * gae_lambda, terminated | truncated)
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)


@breaks("compute_gae")
def truncation_wins_over_termination(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    """Bootstraps where a step was both terminated and truncated."""
    errors = rewards + gamma * next_values.masked_fill(terminated & ~truncated, 0) - values
    return recursion(errors, gamma * gae_lambda, terminated | truncated)


@breaks("bootstrapped_returns")
def returns_end_at_truncation(rewards, terminated, truncated, next_values, *, gamma):
    """Lets nothing stand for what a truncation hid."""
    ended = terminated | truncated
    returns = rewards.clone()
    returns[-1] += gamma * next_values[-1].masked_fill(ended[-1], 0)
    for t in reversed(range(len(rewards) - 1)):
        returns[t] += gamma * returns[t + 1].masked_fill(ended[t], 0)
    return returns


@breaks("bootstrapped_returns")
def returns_run_through_truncation(rewards, terminated, truncated, next_values, *, gamma):
    """Sums on into the next episode."""
    returns = rewards.clone()
    returns[-1] += gamma * next_values[-1].masked_fill(terminated[-1], 0)
    for t in reversed(range(len(rewards) - 1)):
        returns[t] += gamma * returns[t + 1].masked_fill(terminated[t], 0)
    return returns


@breaks("bootstrapped_returns")
def returns_end_at_the_last_row(rewards, terminated, truncated, next_values, *, gamma):
    """Lets nothing stand for what comes after the rollout."""
    known = torch.cat([next_values[:-1], torch.zeros_like(next_values[-1:])])
    return recursion(
        rewards + gamma * known.masked_fill(~truncated | terminated, 0),
        gamma,
        terminated | truncated,
    )


@breaks("bootstrapped_returns")
def one_step_targets(rewards, terminated, truncated, next_values, *, gamma):
    """Believes the critic after every single step."""
    return rewards + gamma * next_values.masked_fill(terminated, 0)


@breaks("bootstrapped_returns")
def returns_changed_in_place(rewards, terminated, truncated, next_values, *, gamma):
    """Adds up inside `rewards`: whoever reads the rewards next reads returns."""
    ended = terminated | truncated
    for t in reversed(range(len(rewards))):
        last = t == len(rewards) - 1
        later = next_values[t] if last else torch.where(ended[t], next_values[t], rewards[t + 1])
        rewards[t] += gamma * later.masked_fill(terminated[t], 0)
    return rewards


@breaks("normalize_advantages")
def sample_deviation(advantages, *, mask=None):
    """Divides by B − 1 inside the deviation: one sample gives NaN, and every weight with it."""
    kept = advantages if mask is None else advantages[mask]
    return (advantages - kept.mean()) / (kept.std() + 1e-8)


@breaks("normalize_advantages")
def normalised_in_place(advantages, *, mask=None):
    """Changes its argument: returns = advantages + values, built afterwards, are wrong."""
    kept = advantages if mask is None else advantages[mask]
    mean, spread = kept.mean(), kept.std(correction=0)
    return advantages.sub_(mean).div_(spread + 1e-8)


@breaks("normalize_advantages")
def scaled_but_not_centred(advantages, *, mask=None):
    """Divides only: where all advantages are positive, every action is pushed up."""
    kept = advantages if mask is None else advantages[mask]
    return advantages / (kept.std(correction=0) + 1e-8)


@breaks("normalize_advantages")
def variance_for_deviation(advantages, *, mask=None):
    """Divides by the variance: the result has the unit 1 / reward."""
    kept = advantages if mask is None else advantages[mask]
    return (advantages - kept.mean()) / (kept.var(correction=0) + 1e-8)


@breaks("normalize_advantages")
def padding_in_the_mean(advantages, *, mask=None):
    """Lets padding pull the mean and the deviation."""
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
