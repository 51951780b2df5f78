"""Lesson 02. May I reuse old data?

    E_old[ π(a | s) / π_old(a | s) · f(a) ] = E_π[ f(a) ]

A ratio corrects for actions that the new policy would choose more or less often. It does not
correct for the states that it would visit: that is all by which the surrogate differs from J.
"""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor

from ppo_lessons.shapes import (
    check_finite,
    check_floating,
    check_same_shape,
    masked_mean,
    stop_masked,
)

Estimator = Literal["k1", "k2", "k3"]


def importance_ratios(
    log_probs: Float[Tensor, "*batch"], log_probs_old: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """Say how much more likely each action is now than when it was drawn.

        ratio = π(a | s) / π_old(a | s) = exp(log π − log π_old)

    Computed from logarithms: the quotient of two probabilities that are too small for their dtype
    would be 0 / 0.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s), written down while sampling (nats). A loss detaches it;
            here gradients flow through both.

    Returns:
        The ratios, of the same shape (1 where nothing changed).

    Raises:
        ValueError: if the shapes differ.
        TypeError: if a tensor is not floating-point.

    Source: Schulman et al. 2017 (PPO), section 3, there r_t(θ).
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old)
    check_floating(log_probs=log_probs, log_probs_old=log_probs_old)
    return (log_probs - log_probs_old).exp()


def surrogate_loss(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Turn the surrogate, which stands in for J near the old policy, into a loss.

        loss = −mean( π(a | s) / π_old(a | s) · Â )

    Where nothing has moved its gradient is that of `reinforce_loss`. Nothing in it says how far
    it may be trusted.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s), written down while sampling (nats); a constant.
        advantages: Â of the old policy (discounted reward, or normalised); constants.
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ.
        TypeError: if a tensor is not floating-point.

    Source: Schulman et al. 2017 (PPO), eq. 6, with its sign turned.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    check_floating(advantages=advantages)
    ratios = importance_ratios(stop_masked(log_probs, mask), log_probs_old.detach())
    return -masked_mean(ratios * advantages.detach(), mask)


def effective_sample_size(weights: Float[Tensor, " B"]) -> Float[Tensor, ""]:
    """Say how many equally weighted samples the weighted ones are worth.

        ESS = (Σ w)² / Σ w²

    Args:
        weights: importance weights, at least 0, not all 0.

    Returns:
        A number in [1, B]; B when all weights are equal (samples).

    Raises:
        ValueError: if a weight is negative or not finite, or all are 0.

    Source: Kong 1992.
    """
    check_floating(weights=weights)
    check_finite(weights=weights)
    if weights.numel() == 0 or weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            "weights holds no positive number or a negative one; expected importance weights, at "
            "least 0 and not all 0. Pass ratios, not their logarithms."
        )
    scaled = weights / weights.max()  # the result is the same, and squares cannot overflow
    return scaled.sum() ** 2 / (scaled**2).sum()


def approximate_kl(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    *,
    estimator: Estimator,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Estimate KL(π_old ‖ π) from actions that π_old drew.

        k1 = mean( −log ratio )              unbiased; single terms, and the mean, may be negative
        k2 = mean( (log ratio)² / 2 )        biased, never negative
        k3 = mean( ratio − 1 − log ratio )   unbiased, never negative

    Args:
        log_probs: log π(a | s) (nats).
        log_probs_old: log π_old(a | s) (nats); the actions are samples of this policy.
        estimator: "k1", "k2" or "k3".
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The estimate (nats).

    Raises:
        ValueError: if the shapes differ or the estimator is unknown.

    Source: Schulman 2020, "Approximating KL divergence" (there the samples come from q).
    """
    log_probs = stop_masked(log_probs, mask)
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old)
    check_floating(log_probs=log_probs, log_probs_old=log_probs_old)
    log_ratios = log_probs - log_probs_old
    if estimator == "k1":
        return -masked_mean(log_ratios, mask)
    if estimator == "k2":
        return masked_mean(log_ratios**2, mask) / 2
    if estimator == "k3":
        # expm1: near 0 the difference of two float32 numbers would be noise, and may be negative
        return masked_mean(log_ratios.expm1() - log_ratios, mask)
    raise ValueError(f"estimator is {estimator!r}; expected 'k1', 'k2' or 'k3'. Choose one.")
