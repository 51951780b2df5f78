"""From one score per answer to one reward per token, with a price on every step away.

r_t = −β·(log π_old − log π_ref)_t  +  score on the last token
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ppo_lessons.importance import Estimator
from ppo_lessons.rlhf.checks import check_answers, check_at_least_zero
from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_positive,
    check_same_shape,
)


def bradley_terry_loss(
    chosen: Float[Tensor, " B"], rejected: Float[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Turn preferences into a loss: the chosen answer should score higher than the rejected one.

        loss = −mean( log σ(chosen − rejected) ),    σ(x) = 1 / (1 + e⁻ˣ)

    σ(difference) is the model's probability that a rater prefers the first of two answers. Only
    differences count: the same number added to all scores changes nothing, so a score has no zero
    of its own.

    Args:
        chosen: scores of the preferred answers, with gradient.
        rejected: scores of the others, row by row of the same prompts.

    Returns:
        The loss, to be minimised (nats); log 2 when the scores are equal.

    Raises:
        ValueError: if the shapes differ, there is no pair, or a score is not finite.
        TypeError: if a tensor is not floating-point.

    Source: Bradley and Terry 1952; as a loss of reward models, Christiano et al. 2017.
    """
    check_same_shape(chosen=chosen, rejected=rejected)
    check_floating(chosen=chosen, rejected=rejected)
    if chosen.numel() == 0:
        raise ValueError("chosen is empty; expected at least one pair. Draw some pairs first.")
    check_finite(chosen=chosen, rejected=rejected)
    return -functional.logsigmoid(chosen - rejected).mean()


def kl_terms(
    log_probs: Float[Tensor, "*batch"],
    log_probs_reference: Float[Tensor, "*batch"],
    *,
    estimator: Estimator,
) -> Float[Tensor, "*batch"]:
    """Say, token by token, how far the policy is from its reference.

        d = log π − log π_ref        k1 = d        k2 = d² / 2        k3 = e⁻ᵈ − 1 + d

    On tokens that π drew, the mean of k1 and that of k3 is KL(π ‖ π_ref). k1 may be negative on a
    token, and on a whole batch; k3 never is. As losses they are three different things: the mean
    gradient of k1 is 0, that of k2 is the gradient of KL(π ‖ π_ref), and that of k3 is the gradient
    of KL(π_ref ‖ π).

    Args:
        log_probs: log π of the tokens drawn by π (nats).
        log_probs_reference: log π_ref of the same tokens (nats).
        estimator: "k1", "k2" or "k3".

    Returns:
        One number per token (nats), with gradient.

    Raises:
        ValueError: if the shapes differ or the estimator is unknown.
        TypeError: if a tensor is not floating-point.

    Source: Schulman 2020, "Approximating KL divergence".
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference)
    check_floating(log_probs=log_probs, log_probs_reference=log_probs_reference)
    distance = log_probs - log_probs_reference
    if estimator == "k1":
        return distance
    if estimator == "k2":
        return distance**2 / 2
    if estimator == "k3":
        # expm1: near 0 the difference of two float32 numbers would be noise
        return torch.expm1(-distance) + distance
    raise ValueError(f"estimator is {estimator!r}; expected 'k1', 'k2' or 'k3'. Choose one.")


def answer_kl(
    log_probs: Float[Tensor, "B T"],
    log_probs_reference: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    estimator: Estimator,
) -> Float[Tensor, " B"]:
    """Add the terms of `kl_terms` up over the tokens of each answer.

    Their mean over answers is the KL of whole answers, `kl_reference`. A mean over tokens is
    smaller by the mean length: a target of 6 nats means nothing until it is said which.

    Args:
        log_probs: log π of the tokens drawn by π (nats).
        log_probs_reference: log π_ref of the same tokens (nats).
        mask: true at the tokens that the policy chose.
        estimator: "k1", "k2" or "k3".

    Returns:
        One number per answer (nats).

    Raises:
        ValueError: if the shapes differ or the estimator is unknown.
        TypeError: if mask is not boolean.
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference, mask=mask)
    check_bool(mask=mask)
    terms = kl_terms(log_probs, log_probs_reference, estimator=estimator)
    return terms.masked_fill(~mask, 0).sum(dim=1)


def token_rewards(
    scores: Float[Tensor, " B"],
    log_probs: Float[Tensor, "B T"],
    log_probs_reference: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    beta: int | float,
    reward_limit: int | float | None = None,
) -> Float[Tensor, "B T"]:
    """Pay each token: the score of the answer at its last one, minus the price of every step away.

        r_t = −β·(log π_old(y_t) − log π_ref(y_t)) + [t is last]·clip(score, −limit, limit)

    The terms of an answer add up to score − β·Σ k1. They are numbers without a gradient, computed
    once with the policy that drew the tokens, so the KL reaches earlier tokens through the returns.

    Args:
        scores: one number per answer, of a reward model or a verifier (reward).
        log_probs: log π_old of the tokens, written down while sampling (nats).
        log_probs_reference: log π_ref of the same tokens (nats).
        mask: true at the tokens that the policy chose, its end-of-answer token included.
        beta: β, the price, at least 0 (reward per nat).
        reward_limit: scores beyond ±limit are cut to it, above 0 (reward); None leaves them.

    Returns:
        r_t (reward), 0 where the mask is false, whatever stands there.

    Raises:
        ValueError: if shapes differ, an answer has no token, or a number is out of range.
        TypeError: if mask is not boolean.

    Source: Ziegler et al. 2019, "Fine-tuning language models from human preferences"; the limit
    follows its published code.
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference, mask=mask)
    check_floating(scores=scores)
    check_finite(scores=scores)
    check_at_least_zero(beta=beta)
    if scores.shape != mask.shape[:1]:
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}; expected {tuple(mask.shape[:1])}, one score "
            "for each answer. Reduce a score per token to one per answer first."
        )
    if reward_limit is not None:
        check_positive(reward_limit=float(reward_limit))
        scores = scores.clamp(-reward_limit, reward_limit)
    last = last_tokens(mask)
    price = beta * kl_terms(log_probs, log_probs_reference, estimator="k1")
    rewards = (-price).detach().masked_fill(~mask, 0)
    paid = scores.detach().to(rewards.dtype).unsqueeze(1)
    return rewards.scatter_add(1, last.unsqueeze(1), paid)


def last_tokens(mask: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
    """Find the last token of each answer that the policy chose.

    Args:
        mask: true at the tokens that the policy chose.

    Returns:
        Its index, from 0 to T − 1.

    Raises:
        ValueError: if an answer has no token.
        TypeError: if mask is not boolean.
    """
    check_answers(mask)
    places = torch.arange(mask.shape[1], device=mask.device)
    return (mask * places).argmax(dim=1)
