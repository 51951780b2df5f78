"""How sure is a count? Intervals for shares, and two models on the same prompts.

Wilson: the p with |k/n − p| ≤ z·√(p(1−p)/n)          McNemar: of the prompts on which two
models differ, how lopsided is the split if a coin had decided?
"""

from math import comb, sqrt
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from ppo_lessons.ablations.statistics import Interval
from ppo_lessons.shapes import check_same_shape, check_tensor


class Count(NamedTuple):
    """So many of so many.

    Attributes:
        hits: how many had it (from 0 to total).
        total: how many were looked at, at least 1.
    """

    hits: int
    total: int

    @property
    def share(self) -> float:
        """The hits as a share of all."""
        return self.hits / self.total


class Comparison(NamedTuple):
    """Two models on the same prompts.

    Attributes:
        gained: prompts that only the candidate solves.
        lost: prompts that only the baseline solves.
        total: all prompts.
        p_value: McNemar's exact p: how often a fair coin splits `gained + lost` so unevenly.
        difference: interval of the candidate's success less the baseline's.
    """

    gained: int
    lost: int
    total: int
    p_value: float
    difference: Interval


def z_of(confidence: float) -> float:
    """Give the number of standard errors on each side that hold a share of a normal's draws.

    Args:
        confidence: that share, in (0, 1).

    Returns:
        z, 1.96 for 0.95.

    Raises:
        ValueError: if confidence is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence is {confidence}; expected a number between 0 and 1. 0.95 is usual."
        )
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)


def check_count(count: Count) -> None:
    """Require 0 ≤ hits ≤ total and at least one.

    Raises:
        ValueError: with what was given.
    """
    if count.total < 1 or not 0 <= count.hits <= count.total:
        raise ValueError(
            f"{count.hits} of {count.total} was given; expected at least one, and hits from 0 to "
            "that number. Count again."
        )


def wilson(count: Count, *, confidence: float) -> Interval:
    """Give the shares that a count does not contradict.

        (k + z²/2 ± z·√(k(n − k)/n + z²/4)) / (n + z²)

    It never leaves [0, 1], and 0 of n does not make 0 certain: its upper end is z²/(n + z²).

    Args:
        count: k hits among n.
        confidence: how often such intervals hold the true share, in (0, 1).

    Returns:
        Lower and upper end.

    Raises:
        ValueError: if the count is impossible, or confidence is not between 0 and 1.

    Source: Wilson 1927 (probable inference, the law of succession, and statistical inference).
    """
    check_count(count)
    k, n, z = count.hits, count.total, z_of(confidence)
    half = z * sqrt(k * (n - k) / n + z * z / 4)
    middle = k + z * z / 2
    return Interval(
        max(0.0, (middle - half) / (n + z * z)), min(1.0, (middle + half) / (n + z * z))
    )


def mcnemar(gained: int, lost: int) -> float:
    """Give the exact p-value of a split, if for each differing prompt a fair coin had decided.

        p = min(1, 2·P(X ≤ min(gained, lost))),   X ~ Binomial(gained + lost, ½)

    Prompts that both solve, or neither, say nothing about which is better, and do not count.

    Args:
        gained: prompts that only the candidate solves, at least 0.
        lost: prompts that only the baseline solves, at least 0.

    Returns:
        A number in (0, 1]; 1 where they differ nowhere.

    Raises:
        ValueError: if a number is negative.

    Source: McNemar 1947, in its exact form, the sign test on the discordant pairs.
    """
    if gained < 0 or lost < 0:
        raise ValueError(
            f"gained is {gained}, lost is {lost}; expected numbers of at least 0. Count prompts."
        )
    flips = gained + lost
    tail = sum(comb(flips, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2**flips)


def compare_on_same_prompts(
    baseline_right: Bool[Tensor, " prompts"],
    candidate_right: Bool[Tensor, " prompts"],
    *,
    confidence: float,
) -> Comparison:
    """Compare two models, prompt by prompt.

        difference = (gained − lost) / n ± z·√(gained + lost − (gained − lost)²/n) / n

    The prompts are the same, so what makes a prompt hard for both cancels. The order of the prompts
    is of no matter, as long as it is the same in both.

    Args:
        baseline_right: whether the unmodified model solves each prompt.
        candidate_right: whether the trained one does, in the same order.
        confidence: of the interval, in (0, 1).

    Returns:
        The prompts gained and lost, McNemar's p and the interval of the difference.

    Raises:
        TypeError: if one of them is no tensor of booleans.
        ValueError: if their shapes differ, or there is no prompt.
    """
    for name, right in (("baseline_right", baseline_right), ("candidate_right", candidate_right)):
        check_right(name, right)
    check_same_shape(baseline_right=baseline_right, candidate_right=candidate_right)
    gained = int((candidate_right & ~baseline_right).sum())
    lost = int((baseline_right & ~candidate_right).sum())
    total = len(baseline_right)
    mean = (gained - lost) / total
    half = z_of(confidence) * sqrt(gained + lost - (gained - lost) ** 2 / total) / total
    return Comparison(
        gained, lost, total, mcnemar(gained, lost), Interval(mean - half, mean + half)
    )


def check_right(name: str, right: Tensor) -> None:
    """Require one boolean for each of at least one prompt.

    Raises:
        TypeError: if it is no tensor of booleans.
        ValueError: if it has another number of axes than one, or is empty.
    """
    check_tensor(name, right)
    if right.dtype != torch.bool:
        raise TypeError(
            f"{name} has dtype {right.dtype}; expected torch.bool. Say for each prompt whether it "
            "is solved: is_correct(...)."
        )
    if right.ndim != 1 or len(right) == 0:
        raise ValueError(
            f"{name} has shape {tuple(right.shape)}; expected one entry for each prompt, and at "
            "least one prompt. Flatten it, or draw prompts."
        )


def count_right(right: Bool[Tensor, " prompts"]) -> Count:
    """Count the prompts that are solved.

    Args:
        right: whether each prompt is.

    Returns:
        So many of so many.

    Raises:
        TypeError: if it is no tensor of booleans.
        ValueError: if there is no prompt.
    """
    check_right("right", right)
    return Count(int(right.sum()), len(right))


def pass_at_k(num_right: int, num_samples: int, k: int) -> float:
    """Estimate the probability that at least one of k answers is right, from n ≥ k answers.

        pass@k = 1 − C(n − c, k) / C(n, k)

    The share of k draws without replacement that contain a right one: unbiased, unlike
    1 − (1 − c/n)^k, which is too low.

    Args:
        num_right: c, right ones among the n answers to a prompt.
        num_samples: n, at least k.
        k: answers that one may give, at least 1.

    Returns:
        A probability.

    Raises:
        ValueError: if 1 ≤ k ≤ n and 0 ≤ c ≤ n do not hold.

    Source: Chen et al. 2021 (Evaluating Large Language Models Trained on Code), eq. 1.
    """
    if not (1 <= k <= num_samples and 0 <= num_right <= num_samples):
        raise ValueError(
            f"num_right is {num_right}, num_samples {num_samples}, k {k}; expected 0 ≤ num_right ≤ "
            "num_samples and 1 ≤ k ≤ num_samples. Draw at least k answers to each prompt."
        )
    return 1.0 - comb(num_samples - num_right, k) / comb(num_samples, k)


def mean_pass_at_k(right: Bool[Tensor, "prompts samples"], k: int) -> float:
    """Average pass@k over prompts.

    Args:
        right: whether each of the answers to each prompt is right.
        k: answers that one may give, from 1 to the number of answers.

    Returns:
        A probability.

    Raises:
        TypeError: if `right` is no tensor of booleans.
        ValueError: if it is not [prompts, samples], or has fewer than k answers.
    """
    check_tensor("right", right)
    if right.dtype != torch.bool or right.ndim != 2 or len(right) == 0:
        raise ValueError(
            f"right is {right.dtype} of shape {tuple(right.shape)}; expected booleans [prompts, "
            "samples]. Draw several answers to each prompt, and verify each."
        )
    num_samples = right.shape[1]
    found = [pass_at_k(int(row.sum()), num_samples, k) for row in right]
    return sum(found) / len(found)
