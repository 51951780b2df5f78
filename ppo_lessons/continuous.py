"""Lesson 09. What if actions are real numbers?

    log π(a | s) = Σ_j [ −½·((a_j − μ_j) / σ_j)² − log σ_j − ½·log 2π ]

The policy gives a density instead of probabilities; its logarithm goes into the same ratio, the
same clip, the same loop. What is new: the score grows without bound as σ shrinks, so one and the
same step of the mean is worth more nats, and an action may lie where the motor cannot follow.

The Gaussian itself, `gaussian_log_probs` and `gaussian_entropies`, is in `ppo_lessons.networks`,
since the networks draw from it.
"""

from math import log

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus

from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.networks import check_log_stds, gaussian_log_probs
from ppo_lessons.shapes import check_positive, check_same_shape


def gaussian_scores(
    actions: Float[Tensor, "*batch A"],
    means: Float[Tensor, "*batch A"],
    log_stds: Float[Tensor, " A"],
) -> tuple[Float[Tensor, "*batch A"], Float[Tensor, "*batch A"]]:
    """Give the slopes of log π(a | s) by the means and by log σ.

        ∂ log π / ∂μ = (a − μ) / σ²,     ∂ log π / ∂log σ = ((a − μ) / σ)² − 1

    Averaged over the policy's own draws both are 0. The mean square of the first is 1/σ², without
    bound; that of the second is 2, whatever σ is.

    Args:
        actions: a, as they were drawn (unit of the action).
        means: μ(s) (unit of the action).
        log_stds: log σ, the same in all states.

    Returns:
        The slopes by each mean (nats per unit of the action) and by each log σ (nats).

    Raises:
        ValueError: if actions and means differ in shape, or log_stds has not A entries.

    Source: Williams 1992 (REINFORCE) for Gaussian units, there by σ itself.
    """
    check_same_shape(means=means, actions=actions)
    check_log_stds(log_stds, means)
    distances = (actions - means) * (-log_stds).exp()
    return distances * (-log_stds).exp(), distances.square() - 1


def gaussian_kl(
    means: Float[Tensor, "*batch A"],
    log_stds: Float[Tensor, " A"],
    means_old: Float[Tensor, "*batch A"],
    log_stds_old: Float[Tensor, " A"],
) -> Float[Tensor, "*batch"]:
    """Give KL(π_old ‖ π) of Gaussians in closed form.

        KL = Σ_j [ log(σ_j / σ_old) + (σ_old² + (μ_j − μ_old)²) / (2·σ_j²) − ½ ]

    At equal σ it is half the squared distance of the means, measured in σ.

    Args:
        means: μ(s) of the new policy (unit of the action).
        log_stds: log σ of the new policy.
        means_old: μ_old(s) (unit of the action).
        log_stds_old: log σ_old.

    Returns:
        One number for each state, summed over the dimensions (nats), never below 0.

    Raises:
        ValueError: if the means differ in shape, or a log σ has not A entries.
    """
    check_same_shape(means=means, means_old=means_old)
    check_log_stds(log_stds, means)
    check_log_stds(log_stds_old, means)
    narrowing = log_stds_old - log_stds
    moved = ((means - means_old) * (-log_stds).exp()).square()
    return (0.5 * ((2 * narrowing).exp() + moved - 1) - narrowing).sum(dim=-1)


def log_tanh_slopes(drawn: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Give the logarithm of the slope of tanh, right also where tanh is 1 in a float.

        log(1 − tanh²u) = 2·( log 2 − u − log(1 + e^(−2u)) )

    Args:
        drawn: u, before the tanh.

    Returns:
        One number for each u (nats), never above 0.
    """
    return 2 * (log(2) - drawn - softplus(-2 * drawn))


def squashed_log_probs(
    drawn: Float[Tensor, "*batch A"],
    means: Float[Tensor, "*batch A"],
    log_stds: Float[Tensor, " A"],
) -> Float[Tensor, "*batch"]:
    """Give the log-density of actions a = tanh(u), where u comes from a Gaussian.

        log π(a | s) = log N(u; μ, σ) − Σ_j log(1 − tanh²u_j)

    It takes u, and no a: where tanh is 1 in a float, u cannot be had back from a. The correction
    does not depend on the policy, so it cancels in every ratio.

    Args:
        drawn: u, before the tanh.
        means: μ(s) of the Gaussian that u came from.
        log_stds: log σ of that Gaussian.

    Returns:
        One number for each action, summed over its dimensions (nats).

    Raises:
        ValueError: if drawn and means differ in shape, or log_stds has not A entries.

    Source: Haarnoja et al. 2018 (soft actor-critic), appendix on enforcing action bounds.
    """
    return gaussian_log_probs(drawn, means, log_stds) - log_tanh_slopes(drawn).sum(dim=-1)


def capped_surrogate_loss(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
    max_log_ratio: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Turn the clipped surrogate into a loss that no overflow can make NaN.

        loss = clipped_surrogate_loss( min(log π, log π_old + max_log_ratio), log π_old, Â )

    Above 88 the exponential of a float32 is infinite, and the slope of a sample that the clip has
    silenced is 0·∞. Below the cap it is `clipped_surrogate_loss`. Beyond it a sample is silent, a
    bad action too, which the plain loss would push back with all the force of its ratio.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s) (nats); a constant.
        advantages: Â (discounted reward, or normalised); constants.
        clip_epsilon: ε, above 0 (as a change of the ratio).
        max_log_ratio: the largest log-ratio that is taken at its word, above 0 (nats).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ, or ε or the cap is not above 0.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    check_positive(max_log_ratio=max_log_ratio)
    # the same loss, of a log-probability that is not believed beyond the cap
    capped = torch.minimum(log_probs, log_probs_old.detach() + max_log_ratio)
    return clipped_surrogate_loss(
        capped, log_probs_old, advantages, clip_epsilon=clip_epsilon, mask=mask
    )
