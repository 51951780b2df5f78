"""Lesson 04. What does one line buy?

    L = E[ min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â ) ]

Once an action has moved as far as ε in the direction its advantage asks for, the objective stops
paying for more. It is not pulled back from there, and nothing is forbidden.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ppo_lessons.importance import importance_ratios
from ppo_lessons.shapes import check_positive, check_same_shape, masked_mean, stop_masked


def clipped_surrogate(
    ratios: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
) -> Float[Tensor, "*batch"]:
    """Give the clipped surrogate objective of each sample.

        min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â )

    The minimum matters as much as the clip: it keeps the gradient where the ratio has moved the
    wrong way, so that it can come back.

    Args:
        ratios: π / π_old of each action, with gradient.
        advantages: Â (discounted reward, or normalised); constants.
        clip_epsilon: ε, above 0 (as a change of the ratio).

    Returns:
        The objective per sample, to be maximised; never above ratio·Â.

    Raises:
        ValueError: if the shapes differ or ε is not above 0.

    Source: Schulman et al. 2017 (PPO), eq. 7.
    """
    check_same_shape(ratios=ratios, advantages=advantages)
    check_positive(clip_epsilon=clip_epsilon)
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


def clipped_surrogate_loss(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Turn the clipped surrogate into a loss.

        loss = −mean( min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â ) )

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s) (nats); a constant.
        advantages: Â (discounted reward, or normalised); constants.
        clip_epsilon: ε, above 0 (as a change of the ratio).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or ε is not above 0.

    Source: Schulman et al. 2017 (PPO), eq. 7, with its sign turned.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    ratios = importance_ratios(stop_masked(log_probs, mask), log_probs_old.detach())
    return -masked_mean(clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon), mask)


def clip_fractions(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Say how many samples left the interval, and how many of them no longer push.

        outside        |ratio − 1| > ε
        zero gradient  ratio > 1 + ε with Â > 0,   or   ratio < 1 − ε with Â < 0

    The two differ: outside on the other side, the gradient is alive and pulls back.

    Args:
        log_probs: log π(a | s) (nats).
        log_probs_old: log π_old(a | s) (nats).
        advantages: Â; only the sign matters.
        clip_epsilon: ε, above 0 (as a change of the ratio).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        fraction_outside and fraction_zero_gradient, each in [0, 1].

    Raises:
        ValueError: if the shapes differ or ε is not above 0.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    check_positive(clip_epsilon=clip_epsilon)
    ratios = importance_ratios(log_probs, log_probs_old)
    above, below = ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon
    silent = (above & (advantages > 0)) | (below & (advantages < 0))
    return (
        masked_mean((above | below).to(ratios.dtype), mask),
        masked_mean(silent.to(ratios.dtype), mask),
    )
