"""Squeeze: other clips, other ratios, and the weight of a token in the loss."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ppo_lessons.clip import clipped_surrogate
from ppo_lessons.importance import Estimator, importance_ratios
from ppo_lessons.rlhf import kl_terms
from ppo_lessons.shapes import check_bool, check_positive, check_same_shape, stop_masked

Mode = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]
MODES: tuple[Mode, ...] = ("token_mean", "sequence_mean", "sequence_sum", "constant")


# --- clips ---------------------------------------------------------------------------------------


def asymmetric_surrogate(
    ratios: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_low: float,
    clip_high: float,
) -> Float[Tensor, "*batch"]:
    """Clip with an edge of its own on each side: DAPO leaves more room above than below.

        min( ratio·Â, clip(ratio, 1 − ε_low, 1 + ε_high)·Â )

    A rare token at ε = 0.2 may go from probability 0.01 to 0.012 before the incentive ends; a
    likely one may go from 0.8 to 0.96. A wider upper edge lets rare good tokens grow.

    Args:
        ratios: π / π_old of each action, with gradient.
        advantages: Â; constants.
        clip_low: ε_low, in (0, 1].
        clip_high: ε_high, above 0.

    Returns:
        The objective per sample, to be maximised.

    Raises:
        ValueError: if the shapes differ or an edge is not above 0, or ε_low is above 1.

    Source: Yu et al. 2025 (DAPO), "clip-higher"; there 0.2 and 0.28.
    """
    check_same_shape(ratios=ratios, advantages=advantages)
    check_positive(clip_low=clip_low, clip_high=clip_high)
    if clip_low > 1:
        raise ValueError(
            f"clip_low is {clip_low}; expected at most 1, since no ratio falls below 0. "
            "Choose clip_low in (0, 1]."
        )
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_low, 1 + clip_high)
    return torch.minimum(ratios * advantages, clipped * advantages)


def dual_clipped_surrogate(
    ratios: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
    most_punished: float,
) -> Float[Tensor, "*batch"]:
    """Limit the punishment, too: a bad action that has become likely counts at most c times.

        Â ≥ 0:  min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â )
        Â < 0:  max( the same, c·Â )

    Where a bad action's ratio is above c, its gradient is 0: it is not pulled back any more. That
    is the price for no single sample having a weight without limit.

    Args:
        ratios: π / π_old of each action, with gradient.
        advantages: Â; constants.
        clip_epsilon: ε, above 0 (as a change of the ratio).
        most_punished: c, above 1 + ε (a ratio); verl's default is 3, and it is always on.

    Returns:
        The objective per sample, to be maximised.

    Raises:
        ValueError: if the shapes differ, ε is not above 0, or c is not above 1 + ε.

    Source: Ye et al. 2020 (dual-clip PPO).
    """
    if not most_punished > 1 + clip_epsilon:
        raise ValueError(
            f"most_punished is {most_punished}; expected more than 1 + clip_epsilon = "
            f"{1 + clip_epsilon}: below it, bad actions would never be pulled back."
        )
    surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)
    advantages = advantages.detach()
    limited = torch.maximum(surrogate, most_punished * advantages)
    return torch.where(advantages < 0, limited, surrogate)


def cispo_objective(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_high: float,
) -> Float[Tensor, "*batch"]:
    """Clip the weight, not the gradient (CISPO): every token keeps pushing.

        constant( min(ratio, 1 + ε_high) ) · Â · log π

    Where the clip of PPO is idle this has the same gradient, since ∇ratio = ratio·∇log π. Where
    PPO's clip would silence a token, its weight is cut here instead.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s) (nats); a constant.
        advantages: Â; constants.
        clip_high: ε_high, above 0.

    Returns:
        The objective per sample, to be maximised. Its value means nothing, only its gradient does.

    Raises:
        ValueError: if the shapes differ or ε_high is not above 0.

    Source: MiniMax 2025 (MiniMax-M1).
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    check_positive(clip_high=clip_high)
    weights = importance_ratios(log_probs, log_probs_old).clamp(max=1 + clip_high)
    return weights.detach() * advantages.detach() * log_probs


# --- one ratio for a whole response --------------------------------------------------------------


def sequence_ratios(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, " B"]:
    """Say how much more likely a whole response is now, per token (GSPO).

        ratio_i = exp( mean over the tokens of response i of (log π − log π_old) )

    It is the geometric mean of the ratios of its tokens. Without the division by the length the
    ratio of a long response would leave every interval at once.

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: log π_old of each token (nats).
        mask: true at the tokens that the policy chose.

    Returns:
        One ratio for each response; 1 where it has no token.

    Raises:
        ValueError: if the shapes differ.
        TypeError: if the mask is not boolean.

    Source: Zheng et al. 2025 (GSPO).
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, mask=mask)
    check_bool(mask=mask)
    log_ratios = (stop_masked(log_probs, mask) - log_probs_old).masked_fill(~mask, 0)
    return (log_ratios.sum(1) / mask.sum(1).clamp(min=1)).exp()


def sequence_surrogate_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    clip_epsilon: float,
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Turn the clipped surrogate of whole responses into a loss (GSPO).

        loss = −mean over the responses of min( ratio_i·Â_i, clip(ratio_i, 1 − ε, 1 + ε)·Â_i )

    A response is kept or silenced as a whole; ε is far smaller than for tokens.

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: log π_old of each token (nats); a constant.
        advantages: Â of each token; a response's own is their mean, constants.
        clip_epsilon: ε, above 0 (as a change of the ratio per token).
        mask: true at the tokens that the policy chose; a response without one counts as 0.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or ε is not above 0.
        TypeError: if the mask is not boolean.

    Source: Zheng et al. 2025 (GSPO), with its sign turned.
    """
    check_same_shape(log_probs=log_probs, advantages=advantages)
    ratios = sequence_ratios(log_probs, log_probs_old.detach(), mask)
    length = mask.sum(1).clamp(min=1)
    of_response = advantages.detach().masked_fill(~mask, 0).sum(1) / length
    surrogate = clipped_surrogate(ratios, of_response, clip_epsilon=clip_epsilon)
    answered = mask.any(1)
    return -surrogate.masked_fill(~answered, 0).sum() / answered.sum().clamp(min=1)


# --- the weight of a token -----------------------------------------------------------------------


def token_weights(
    mask: Bool[Tensor, "B T"],
    *,
    mode: Mode,
    max_length: int | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "B T"]:
    """Say how much each token weighs in the loss: that is all by which aggregations differ.

        token_mean     1 / number of tokens of the batch           PPO, DAPO
        sequence_mean  1 / (responses · length of its response)    GRPO as published
        sequence_sum   1 / responses                               RLOO, whole responses as actions
        constant       1 / (responses · longest length allowed)    Dr. GRPO

    A batch that is worked on in pieces keeps its gradient if the weights are those of the whole
    batch, cut like the losses. Weights made anew from each piece change it.

    Args:
        mask: true at the tokens that the policy chose.
        mode: one of `MODES`.
        max_length: the longest response allowed (tokens); needed by "constant" alone.
        dtype: of the weights; torch's default if left out.

    Returns:
        The weights; 0 where the mask is false.

    Raises:
        ValueError: if the mode is unknown, or "constant" has no max_length of at least 1.
        TypeError: if the mask is not boolean.

    Source: the four forms stand in Shao et al. 2024, Yu et al. 2025, Liu et al. 2025 and
        Ahmadian et al. 2024.
    """
    check_bool(mask=mask)
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}; expected one of {', '.join(MODES)}. Choose one.")
    responses = mask.any(1).sum().clamp(min=1)
    counted = mask.to(dtype or torch.get_default_dtype())
    if mode == "token_mean":
        return counted / mask.sum().clamp(min=1)
    if mode == "sequence_mean":
        return counted / mask.sum(1, keepdim=True).clamp(min=1) / responses
    if mode == "sequence_sum":
        return counted / responses
    if max_length is None or max_length < 1:
        raise ValueError(
            f"max_length is {max_length}; expected at least 1 token for the mode 'constant'. Give "
            "the longest length that a response may have."
        )
    return counted / (responses * max_length)


def aggregate(
    terms: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    mode: Mode,
    max_length: int | None = None,
) -> Float[Tensor, ""]:
    """Add the tokens' terms up, each with its weight.

        Σ weight·term,   the weights of `token_weights`

    Args:
        terms: loss or objective of each token; what stands outside the mask has no effect.
        mask: true at the tokens that the policy chose.
        mode: one of `MODES`.
        max_length: the longest response allowed (tokens); needed by "constant" alone.

    Returns:
        One number, in the unit of the terms (times tokens for "sequence_sum").

    Raises:
        ValueError: if the shapes differ, the mode is unknown, or max_length is missing.
        TypeError: if the mask is not boolean.
    """
    check_same_shape(terms=terms, mask=mask)
    weights = token_weights(mask, mode=mode, max_length=max_length, dtype=terms.dtype)
    return (stop_masked(terms, mask).masked_fill(~mask, 0) * weights).sum()


def token_surrogate_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    clip_epsilon: float,
    mask: Bool[Tensor, "B T"],
    mode: Mode,
    max_length: int | None = None,
) -> Float[Tensor, ""]:
    """Turn the clipped surrogate of tokens into a loss, with a chosen weight for each.

    With `functools.partial(token_surrogate_loss, mode=...)` it fills the slot `policy_loss`. The
    mode "token_mean" is `clipped_surrogate_loss`.

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: log π_old of each token (nats); a constant.
        advantages: Â of each token; constants.
        clip_epsilon: ε, above 0 (as a change of the ratio).
        mask: true at the tokens that the policy chose.
        mode: one of `MODES`.
        max_length: the longest response allowed (tokens); needed by "constant" alone.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ, ε is not above 0, or the mode is unknown.
        TypeError: if the mask is not boolean.
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, mask=mask)
    ratios = importance_ratios(stop_masked(log_probs, mask), log_probs_old.detach())
    surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)
    return -aggregate(surrogate, mask, mode=mode, max_length=max_length)


# --- KL in the loss ------------------------------------------------------------------------------


def kl_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_reference: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    estimator: Estimator,
    mode: Mode,
    max_length: int | None = None,
) -> Float[Tensor, ""]:
    """Make the distance from the reference a term of the loss, as published GRPO does.

        loss = Σ weight·k(log π − log π_ref)

    β times this is added to the policy loss; then no KL stands in the reward. An estimator with the
    right value need not have the right gradient, since the draws depend on π and a loss does not
    see that. On tokens that π itself drew: k1 has mean gradient 0 and teaches nothing, k2 has the
    gradient of KL(π ‖ π_ref), and GRPO's k3 that of the other direction, KL(π_ref ‖ π).

    Args:
        log_probs: log π of tokens that π drew, with gradient (nats).
        log_probs_reference: log π_ref of the same tokens (nats); a constant.
        mask: true at the tokens that the policy chose.
        estimator: "k1", "k2" or "k3", those of `kl_terms`.
        mode: one of `MODES`.
        max_length: the longest response allowed (tokens); needed by "constant" alone.

    Returns:
        The loss, to be minimised (nats).

    Raises:
        ValueError: if the shapes differ, or estimator or mode are unknown.
        TypeError: if the mask is not boolean.

    Source: Shao et al. 2024 (DeepSeekMath) for k3; the gradients are our own computation.
    """
    terms = kl_terms(
        stop_masked(log_probs, mask), log_probs_reference.detach(), estimator=estimator
    )
    return aggregate(terms, mask, mode=mode, max_length=max_length)
