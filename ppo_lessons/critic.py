"""Lesson 05. Who tells me what to expect?

    Â = what came − what was expected,   and V(s) is what was expected

A critic learns V by regression on returns. Subtracting it leaves the mean of the policy gradient
where it was and usually takes noise out of it. V is not the number that takes out the most.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_has_steps,
    check_positive,
    check_same_shape,
    check_unit_interval,
    masked_mean,
    stop_masked,
)


def optimal_baseline(
    probabilities: Float[Tensor, " N"], scores: Float[Tensor, "N P"], returns: Float[Tensor, " N"]
) -> Float[Tensor, ""]:
    """Give the one number that, subtracted from all returns, leaves the least noise.

        b* = E[ |∇log π|²·R ] / E[ |∇log π|² ]

    It minimises the variance of ∇log π·(R − b), summed over the parameters. It is a mean of the
    returns, in which a draw counts by the square of its score; the value V counts all draws alike.

    Args:
        probabilities: of the draws; 1/N each for a sample.
        scores: ∇log π of each draw (nats per unit of parameter).
        returns: what followed it (discounted reward).

    Returns:
        b* (discounted reward).

    Raises:
        ValueError: if there is not one row for each draw, or no draw has a score: then no baseline
            is better than another.

    Source: Greensmith, Bartlett & Baxter 2004, "Variance reduction techniques for gradient
    estimates in reinforcement learning".
    """
    check_same_shape(probabilities=probabilities, returns=returns)
    if scores.ndim != 2 or len(scores) != len(returns):
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}; expected ({len(returns)}, P), one row of P "
            "derivatives for each return. Flatten the parameters into one axis."
        )
    weights = probabilities * scores.square().sum(-1)
    if not weights.sum() > 0:
        raise ValueError(
            "all scores are zero; expected at least one draw that pushes the policy. A policy "
            "that is certain has nothing to learn from its draws."
        )
    return (weights * returns).sum() / weights.sum()


def leave_one_out_baseline(returns: Float[Tensor, "*batch k"]) -> Float[Tensor, "*batch k"]:
    """Give each draw the mean return of the other draws of its row.

        b_i = Σ_{j ≠ i} R_j / (k − 1)

    The others know nothing of draw i, so the mean of the gradient stays what it was. The mean of
    all k contains R_i itself, and shrinks the gradient by the factor (k − 1)/k.

    Args:
        returns: of k independent draws along the last axis (discounted reward).

    Returns:
        b_i (discounted reward).

    Raises:
        ValueError: if there are fewer than two draws.

    Source: Kool, van Hoof & Welling 2019, "Buy 4 REINFORCE samples, get a baseline for free!"
    """
    if returns.ndim == 0 or returns.shape[-1] < 2:
        raise ValueError(
            f"returns has shape {tuple(returns.shape)}; expected at least two draws along the last "
            "axis. One draw has no others: draw more, or learn a critic."
        )
    return (returns.sum(-1, keepdim=True) - returns) / (returns.shape[-1] - 1)


def td_errors(
    rewards: Float[Tensor, "T N"],
    values: Float[Tensor, "T N"],
    next_values: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    *,
    gamma: float,
) -> Float[Tensor, "T N"]:
    """Say how much better each step went than the critic expected.

        δ_t = r_t + γ·(1 − terminated_t)·V(s_{t+1}) − V(s_t)

    Args:
        rewards: r_t, earned by a_t (reward).
        values: V(s_t) (discounted reward).
        next_values: V of the state reached by step t, before any reset (discounted reward).
        terminated: the step reached a final state, whose value is 0.
        gamma: discount per step, in [0, 1].

    Returns:
        δ_t (discounted reward).

    Raises:
        ValueError: if shapes differ, a number is not finite, or gamma leaves [0, 1].
        TypeError: if a dtype is wrong.

    Source: Schulman et al. 2016 (GAE), section 3, there δ^V_t; the flag follows Pardo et al. 2018.
    """
    check_same_shape(rewards=rewards, values=values, next_values=next_values, terminated=terminated)
    check_has_steps(rewards=rewards)
    check_floating(rewards=rewards, values=values, next_values=next_values)
    check_bool(terminated=terminated)
    check_unit_interval(gamma=gamma)
    # masked_fill, not a product: what stands behind a final state may be anything, even NaN
    next_values = next_values.masked_fill(terminated, 0)
    check_finite(rewards=rewards, values=values, next_values=next_values)
    return rewards + gamma * next_values - values


def value_loss(
    values: Float[Tensor, "*batch"],
    returns: Float[Tensor, "*batch"],
    *,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Give half the mean squared error of the critic.

        loss = mean( (V(s) − return)² ) / 2

    Args:
        values: V(s), with gradient (discounted reward).
        returns: the targets (discounted reward); constants.
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised (discounted reward, squared).

    Raises:
        ValueError: if the shapes differ: (N, 1) against (N,) would broadcast to (N, N).
    """
    check_same_shape(values=values, returns=returns)
    return masked_mean((stop_masked(values, mask) - returns.detach()) ** 2, mask) / 2


def clipped_value_loss(
    values: Float[Tensor, "*batch"],
    returns: Float[Tensor, "*batch"],
    *,
    values_old: Float[Tensor, "*batch"],
    clip_epsilon: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Give the value loss that stops paying once V has moved by ε from where it was.

        moved = V_old + clip(V − V_old, −ε, ε)
        loss  = mean( max( (V − return)², (moved − return)² ) ) / 2

    It is not in the PPO paper; implementations brought it in. ε carries the unit of the reward,
    so its effect changes with the reward's scale.

    Args:
        values: V(s), with gradient (discounted reward).
        returns: the targets (discounted reward); constants.
        values_old: V(s) when the rollout was scored (discounted reward); constants.
        clip_epsilon: ε, above 0 (discounted reward).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised; never below `value_loss`.

    Raises:
        ValueError: if the shapes differ or ε is not above 0.

    Source: Engstrom et al. 2020, section 3, on value function clipping.
    """
    check_same_shape(values=values, returns=returns, values_old=values_old)
    check_positive(clip_epsilon=clip_epsilon)
    values, returns, values_old = stop_masked(values, mask), returns.detach(), values_old.detach()
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    errors = torch.maximum((values - returns) ** 2, (moved - returns) ** 2)
    return masked_mean(errors, mask) / 2


def explained_variance(
    values: Float[Tensor, "*batch"], returns: Float[Tensor, "*batch"]
) -> Float[Tensor, ""]:
    """Say which share of the returns' spread the critic accounts for.

        EV = 1 − Var(return − V) / Var(return)

    1 is perfect up to a constant, 0 is a constant guess, below 0 is worse than that. Against
    targets that were built from V itself it can be near 1 for a useless critic.

    Args:
        values: V(s) (discounted reward).
        returns: what is to be explained (discounted reward).

    Returns:
        A number of at most 1; NaN if there are no returns or they do not vary (then there is
        nothing to explain).

    Raises:
        ValueError: if the shapes differ.
    """
    check_same_shape(values=values, returns=returns)
    if returns.numel() == 0:
        return returns.new_tensor(torch.nan)
    varies = returns.max() > returns.min()  # the variance of equal numbers may be 1e-17, not 0
    share = 1 - (returns - values).var(correction=0) / returns.var(correction=0)
    return torch.where(varies, share, torch.nan)


def known_returns(
    rewards: Float[Tensor, "T N"],
    terminated: Bool[Tensor, "T N"],
    truncated: Bool[Tensor, "T N"],
    *,
    gamma: float,
) -> tuple[Float[Tensor, "T N"], Bool[Tensor, "T N"]]:
    """Sum the rewards of the episodes whose final state lies inside the rollout.

        G_t = r_t + γ·(1 − terminated_t)·G_{t+1}

    These are the only returns in which no critic had a hand. A rollout shows the short episodes
    whole and cuts the long ones, so they are no fair sample of all returns.

    Args:
        rewards: r_t, earned by a_t (reward).
        terminated: the step reached a final state.
        truncated: we stopped watching after this step.
        gamma: discount per step, in [0, 1].

    Returns:
        G_t (discounted reward; 0 where it is not known), and where it is known.

    Raises:
        ValueError: if shapes differ, a reward is not finite, or gamma leaves [0, 1].
        TypeError: if a dtype is wrong.
    """
    check_same_shape(rewards=rewards, terminated=terminated, truncated=truncated)
    check_has_steps(rewards=rewards)
    check_floating(rewards=rewards)
    check_bool(terminated=terminated, truncated=truncated)
    check_finite(rewards=rewards)
    check_unit_interval(gamma=gamma)
    kept = torch.full_like(rewards, gamma).masked_fill(terminated, 0).unbind()
    returns, known, cut = list(rewards.unbind()), list(terminated.unbind()), truncated.unbind()
    for t in reversed(range(len(rewards) - 1)):  # backwards: G_t needs G_{t+1}
        returns[t] = torch.addcmul(returns[t], kept[t], returns[t + 1])  # r_t + kept_t·G_{t+1}
        known[t] = known[t] | (known[t + 1] & ~cut[t])
    reaches_end = torch.stack(known)
    return torch.stack(returns).masked_fill(~reaches_end, 0), reaches_end
