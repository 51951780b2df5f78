"""Lesson 06. How much do I trust the critic?

    δ_t = r_t + γ·(1 − terminated_t)·V(s_{t+1}) − V(s_t)
    Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1},     ended = terminated or truncated

λ = 0 believes the critic after one step; λ = 1 waits for everything that happened.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ppo_lessons.critic import td_errors
from ppo_lessons.shapes import check_bool, check_same_shape, check_unit_interval, masked_mean


def compute_gae(
    rewards: Float[Tensor, "T N"],
    values: Float[Tensor, "T N"],
    next_values: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "T N"]:
    """Estimate how much better each action was than the critic expected.

        δ_t = r_t + γ·(1 − terminated_t)·V(s_{t+1}) − V(s_t)
        Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1},   ended = terminated or truncated

    Termination removes the future. Truncation only hides it: the critic's estimate of what would
    have come stays in δ_t, but the sum must not reach into the next episode.

    Args:
        rewards: r_t, earned by a_t (reward).
        values: V(s_t) (discounted reward).
        next_values: V of the state reached by step t, before any reset (discounted reward).
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        gamma: discount per step, in [0, 1].
        gae_lambda: λ, in [0, 1]; how far to look before believing the critic.

    Returns:
        Â_t (discounted reward).

    Raises:
        ValueError: if shapes differ, a number is not finite, or γ or λ leaves [0, 1].
        TypeError: if a dtype is wrong.

    Source: Schulman et al. 2016 (GAE), eq. 16; the two masks follow Pardo et al. 2018.
    """
    errors = td_errors(rewards, values, next_values, terminated, gamma=gamma)
    kept = trace_factors(errors, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda)
    advantages, kept = list(errors.unbind()), kept.unbind()
    for t in reversed(range(len(advantages) - 1)):  # backwards: Â_t needs Â_{t+1}
        # δ_t + kept_t·Â_{t+1}, in one operation
        advantages[t] = torch.addcmul(advantages[t], kept[t], advantages[t + 1])
    return torch.stack(advantages)


def trace_factors(
    errors: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "T N"]:
    """Say how much of what follows each step is kept in its advantage.

        kept_t = γλ·(1 − ended_t),   ended = terminated or truncated

    Args:
        errors: δ_t, for the dtype.
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        gamma: discount per step, in [0, 1].
        gae_lambda: λ, in [0, 1].

    Returns:
        kept_t, in [0, 1].

    Raises:
        ValueError: if shapes differ, or λ leaves [0, 1].
        TypeError: if a flag is not boolean.
    """
    check_same_shape(rewards=errors, truncated=truncated)
    check_bool(truncated=truncated)
    check_unit_interval(gae_lambda=gae_lambda)
    # in the dtype of the errors: a number times a mask would be float32, whatever they are
    return torch.full_like(errors, gamma * gae_lambda).masked_fill(terminated | truncated, 0)


def gae_by_the_book(
    rewards: Float[Tensor, "T N"],
    values: Float[Tensor, "T N"],
    next_values: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "T N"]:
    """Give what `compute_gae` gives, as the two formulas read, one row after the other.

        δ_t = r_t + γ·(1 − terminated_t)·V(s_{t+1}) − V(s_t)
        Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1},   ended = terminated or truncated

    A row costs ten small operations instead of one.

    Args:
        rewards: this and all others as for `compute_gae`; here nothing is checked.
        values: V(s_t).
        next_values: V of the state reached by step t.
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        gamma: discount per step.
        gae_lambda: λ.

    Returns:
        Â_t (discounted reward).
    """
    advantages, following = torch.empty_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        error = rewards[t] + gamma * next_values[t].masked_fill(terminated[t], 0) - values[t]
        ended = terminated[t] | truncated[t]
        following = error + gamma * gae_lambda * following.masked_fill(ended, 0)
        advantages[t] = following
    return advantages


def gae_by_scan(
    rewards: Float[Tensor, "T N"],
    values: Float[Tensor, "T N"],
    next_values: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "T N"]:
    """Give what `compute_gae` gives in about log₂ T passes over all rows: a recurrence is a scan.

        Â_t = (δ_t + k_t·δ_{t+1}) + (k_t·k_{t+1})·Â_{t+2},   k_t = γλ·(1 − ended_t)

    Two steps together look like one step, so each pass doubles how far a row sees. It does more
    arithmetic than the loop and has fewer operations: it pays on an accelerator, and for few long
    rollouts (T = 2048, N = 8) on a CPU.

    Args:
        rewards: this and all others as for `compute_gae`, and so are the errors.
        values: V(s_t).
        next_values: V of the state reached by step t.
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        gamma: discount per step, in [0, 1].
        gae_lambda: λ, in [0, 1].

    Returns:
        Â_t (discounted reward).

    Source: Hillis and Steele 1986, "Data parallel algorithms".
    """
    sums = td_errors(rewards, values, next_values, terminated, gamma=gamma)
    kept = trace_factors(sums, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda)
    reach = 1  # how many TD errors are in each sum already
    while reach < len(sums):
        later = torch.addcmul(sums[:-reach], kept[:-reach], sums[reach:])
        sums = torch.cat([later, sums[-reach:]])  # the last rows have seen all there is
        kept = torch.cat([kept[:-reach] * kept[reach:], kept[-reach:]])
        reach *= 2
    return sums


def bootstrapped_returns(
    rewards: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    next_values: Float[Tensor, "T N"],
    *,
    gamma: float,
) -> Float[Tensor, "T N"]:
    """Sum the rewards up to the end of the episode or of the rollout, and let V stand for the rest.

        G_t = r_t + γ·(1 − terminated_t)·( V(s_{t+1}) if truncated_t or t is last, else G_{t+1} )

    It is what λ = 1 means: `compute_gae(gae_lambda=1) + values`.

    Args:
        rewards: r_t, earned by a_t (reward).
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        next_values: V of the state reached by step t, before any reset (discounted reward).
        gamma: discount per step, in [0, 1].

    Returns:
        G_t (discounted reward).

    Raises:
        ValueError: if shapes differ, a number is not finite, or gamma leaves [0, 1].
        TypeError: if a dtype is wrong.
    """
    check_same_shape(rewards=rewards, truncated=truncated)
    check_bool(truncated=truncated)
    nothing = torch.zeros_like(rewards)
    one_step = td_errors(rewards, nothing, next_values, terminated, gamma=gamma)
    ended = terminated | truncated
    returns = one_step.clone()
    for t in reversed(range(len(rewards) - 1)):  # backwards: G_t needs G_{t+1}
        returns[t] = torch.where(ended[t], one_step[t], rewards[t] + gamma * returns[t + 1])
    return returns


def normalize_advantages(
    advantages: Float[Tensor, "*batch"], *, mask: Bool[Tensor, "*batch"] | None = None
) -> Float[Tensor, "*batch"]:
    """Shift advantages to mean 0 and scale them to standard deviation 1.

        Â ← (Â − mean) / (std + 10⁻⁸)

    The gradient's size then no longer depends on the reward's scale. Signs may change: what was
    better than expected can become worse than the average of its minibatch. The standard deviation
    is the population's, so one sample gives 0 and not NaN.

    Args:
        advantages: Â (discounted reward).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The normalised advantages (no unit).

    Raises:
        ValueError: if the shapes differ.
    """
    centred = advantages - masked_mean(advantages, mask)
    centred = centred - masked_mean(centred, mask)  # what rounding left of it, for equal Â
    return centred / (masked_mean(centred**2, mask).sqrt() + 1e-8)
