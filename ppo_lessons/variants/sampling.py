"""Collect: which responses are drawn, kept or thrown away, before anything is learned."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ppo_lessons.shapes import check_finite, check_floating, check_same_shape
from ppo_lessons.variants.advantages import same_group


def informative_groups(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]
) -> Bool[Tensor, " B"]:
    """Say which responses are in a group whose scores differ (DAPO's dynamic sampling).

    A group with equal scores has advantage 0 throughout: it was paid for and teaches nothing. DAPO
    leaves such groups out and draws others until the batch is full, so the samples that it drew,
    not those that it kept, are its price.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number.

    Returns:
        True for each response whose group has two different scores.

    Raises:
        ValueError: if the shapes differ or a score is not finite.
        TypeError: if scores are not floating-point.

    Source: Yu et al. 2025 (DAPO).
    """
    check_same_shape(scores=scores, groups=groups)
    check_floating(scores=scores)
    check_finite(scores=scores)
    differs = scores[:, None] != scores[None, :]
    return (differs & same_group(groups)).any(1)


def overlong_penalty(
    lengths: Int[Tensor, " B"], *, max_length: int, margin: int
) -> Float[Tensor, " B"]:
    """Take up to 1 off the score of responses that come near the longest length (DAPO).

        0                                    up to max_length − margin
        (max_length − margin − length) / margin      in the last `margin` tokens
        −1                                   at max_length and beyond

    A slope in place of a cliff: a response that was cut off may have been right so far.

    Args:
        lengths: tokens of each response.
        max_length: the longest response allowed (tokens).
        margin: over how many tokens the penalty grows, from 1 to max_length.

    Returns:
        What to add to each score, in [−1, 0] (reward).

    Raises:
        ValueError: if margin is not in 1 … max_length.

    Source: Yu et al. 2025 (DAPO), "soft overlong punishment".
    """
    if not 1 <= margin <= max_length:
        raise ValueError(
            f"margin is {margin}; expected 1 to max_length = {max_length} tokens. Choose it there."
        )
    beyond = (lengths - (max_length - margin)).to(torch.get_default_dtype())
    return -(beyond / margin).clamp(0, 1)


def best_of_n(scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]) -> Int[Tensor, " G"]:
    """Pick the response with the highest score of each group; the first of equals.

    Nothing is trained. It is the baseline that any training has to beat at the same number of
    samples, and it shows what a scorer finds good.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number.

    Returns:
        One index for each group, in the order of the groups' numbers.

    Raises:
        ValueError: if the shapes differ or a score is not finite.
        TypeError: if scores are not floating-point.

    Source: Stiennon et al. 2020, where best-of-n is called rejection sampling.
    """
    check_same_shape(scores=scores, groups=groups)
    check_floating(scores=scores)
    check_finite(scores=scores)
    best = [
        torch.where(groups == group, scores, -math.inf).argmax()
        for group in groups.unique().tolist()
    ]
    return torch.stack(best)


def best_of_n_policy(
    policy: Float[Tensor, " A"], scores: Float[Tensor, " A"], *, num_draws: int
) -> Float[Tensor, " A"]:
    """Give the exact distribution of the best of n draws, where all outcomes can be listed.

        P(best is a) = F(a)ⁿ − F(before a)ⁿ,   F = summed probability in the order of the scores

    Args:
        policy: probability of each outcome; sums to 1.
        scores: r of each outcome, no two equal (reward).
        num_draws: n, at least 1.

    Returns:
        Probability of each outcome to be the one that is kept.

    Raises:
        ValueError: if the shapes differ, policy is no distribution, two scores are equal or n is
            below 1.
    """
    check_same_shape(policy=policy, scores=scores)
    if (policy < 0).any() or not abs(policy.sum().item() - 1) <= 1e-4:
        raise ValueError(
            f"policy adds up to {policy.sum().item():.4f}; expected probabilities of at least 0 "
            "that add up to 1. Normalise them first."
        )
    if num_draws < 1 or len(scores.unique()) < len(scores):
        raise ValueError(
            f"num_draws is {num_draws} and {len(scores.unique())} of {len(scores)} scores are "
            "different; expected at least one draw and no equal scores. Break ties first."
        )
    order = scores.argsort()
    up_to = policy[order].cumsum(0)
    before = up_to - policy[order]
    kept = torch.empty_like(policy)
    kept[order] = up_to**num_draws - before.clamp(min=0) ** num_draws
    return kept


def best_of_n_kl(num_draws: int) -> float:
    """Bound how far best-of-n moves from the policy that it draws from.

        KL(best of n ‖ policy) ≤ log n − (n − 1) / n

    Equality holds in the limit of outcomes that are each improbable; a policy with few likely
    outcomes stays below.

    Args:
        num_draws: n, at least 1.

    Returns:
        The bound (nats).

    Raises:
        ValueError: if n is below 1.

    Source: Stiennon et al. 2020 give the formula; Beirami et al. 2024 show that it is a bound.
    """
    check_at_least_one(num_draws=num_draws)
    return math.log(num_draws) - (num_draws - 1) / num_draws


def accepted(scores: Float[Tensor, " B"], *, at_least: float) -> Bool[Tensor, " B"]:
    """Say which responses rejection-sampling fine-tuning imitates: those whose score is enough.

        loss = −mean over accepted tokens of log π   =   REINFORCE, with reward 0 or 1, no baseline

    What is rejected is not pushed down. It falls only because probabilities sum to 1.

    Args:
        scores: r, what each response earned (reward).
        at_least: the lowest score that is imitated (reward).

    Returns:
        True for each response that is kept.

    Raises:
        ValueError: if a score is not finite.
        TypeError: if scores are not floating-point.
    """
    check_floating(scores=scores)
    check_finite(scores=scores)
    return scores >= at_least


def check_at_least_one(**counts: int) -> None:
    """Require whole numbers from 1 on.

    Raises:
        ValueError: with the first that is smaller.
    """
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} is {count}; expected at least 1. Choose a larger {name}.")
