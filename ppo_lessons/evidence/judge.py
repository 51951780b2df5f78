"""A judge who errs: what a few of its labels say about the true success, and how far off it is.

    q = p·a + (1 − p)·(1 − a)      so      p̂ = (q̂ − (1 − a)) / (2a − 1)

A judge of accuracy a calls a share q right where p is. Its errors are undone on average; they cost
labels, for the standard error grows by 1/(2a − 1).
"""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Bool
from torch import Generator, Tensor

from ppo_lessons.ablations.statistics import Interval
from ppo_lessons.evidence.counting import Count, check_count, check_right, wilson
from ppo_lessons.shapes import check_same_shape


@dataclass(frozen=True)
class Estimate:
    """What labels say about the true success.

    Attributes:
        success: p̂; it may lie outside [0, 1], since cutting it would bias the mean.
        standard_error: of p̂.
    """

    success: float
    standard_error: float


@dataclass(frozen=True)
class Calibration:
    """How a judge agrees with a verifier.

    Attributes:
        accuracy: share of labels on which they agree.
        sensitivity: of the right answers, the share that the judge calls right; None if there was
            no right one.
        specificity: of the wrong ones, the share that it calls wrong; None if there was none.
        accuracy_interval: Wilson's, 95 %.
    """

    accuracy: float
    sensitivity: float | None
    specificity: float | None
    accuracy_interval: Interval


def check_accuracy(accuracy: float) -> None:
    """Require a judge who knows more than a coin.

    Raises:
        ValueError: if accuracy is not in (0.5, 1].
    """
    if not 0.5 < accuracy <= 1.0:
        raise ValueError(
            f"accuracy is {accuracy}; expected more than 0.5, at most 1. A judge of 0.5 knows "
            "nothing; measure yours against a verifier with `calibrate`."
        )


def judge_labels(
    right: Bool[Tensor, " answers"], *, accuracy: float, generator: Generator
) -> Bool[Tensor, " answers"]:
    """Label answers as a judge would who errs now and then, on right and wrong ones alike.

    Args:
        right: what the verifier says, which the judge cannot see.
        accuracy: probability that a label is correct, in (0.5, 1].
        generator: the only source of randomness.

    Returns:
        A label for each answer.

    Raises:
        TypeError: if `right` is no tensor of booleans.
        ValueError: if there is no answer, or accuracy is out of range.
    """
    check_right("right", right)
    check_accuracy(accuracy)
    errs = torch.rand(len(right), generator=generator, device=right.device) >= accuracy
    return right ^ errs


def estimate_success(labels: Count, *, accuracy: float) -> Estimate:
    """Undo a judge's errors on average.

        p̂ = (q̂ − (1 − a)) / (2a − 1)          se = √(q̃(1 − q̃) / n) / (2a − 1)

    q̃ = (k + 1) / (n + 2): with q̂ itself, n labels that all agree would claim a standard error of 0.

    Args:
        labels: how many of the labels say "right" (k of n).
        accuracy: a, of the judge, in (0.5, 1].

    Returns:
        The success and its standard error.

    Raises:
        ValueError: if the count is impossible or accuracy is out of range.

    Source: Rogan and Gladen 1978 (estimating prevalence from the results of a screening test), for
        a test that errs alike in both directions.
    """
    check_count(labels)
    check_accuracy(accuracy)
    slope = 2 * accuracy - 1
    softened = (labels.hits + 1) / (labels.total + 2)
    return Estimate(
        success=(labels.share - (1 - accuracy)) / slope,
        standard_error=sqrt(softened * (1 - softened) / labels.total) / slope,
    )


def draw_count(success: float, *, num_labels: int, accuracy: float, generator: Generator) -> Count:
    """Draw what a judge would say of n fresh answers of a model whose true success is known.

    Args:
        success: p, in [0, 1].
        num_labels: n, at least 1.
        accuracy: a, of the judge, in (0.5, 1].
        generator: the only source of randomness.

    Returns:
        How many of the n labels say "right".

    Raises:
        ValueError: if a number is out of range.
    """
    check_accuracy(accuracy)
    if not 0.0 <= success <= 1.0 or num_labels < 1:
        raise ValueError(
            f"success is {success}, num_labels {num_labels}; expected a share and at least one "
            "label. Give the true success of a model."
        )
    said = success * accuracy + (1 - success) * (1 - accuracy)
    return Count(int((torch.rand(num_labels, generator=generator) < said).sum()), num_labels)


def calibrate(labels: Bool[Tensor, " answers"], right: Bool[Tensor, " answers"]) -> Calibration:
    """Hold a judge against a verifier on the same answers.

    Args:
        labels: what the judge says.
        right: what the verifier says.

    Returns:
        How often they agree: over all, on right answers, on wrong ones.

    Raises:
        TypeError: if one of them is no tensor of booleans.
        ValueError: if their shapes differ, or there is no answer.
    """
    check_right("labels", labels)
    check_right("right", right)
    check_same_shape(labels=labels, right=right)

    def share(agreed: Tensor) -> float | None:
        return agreed.double().mean().item() if len(agreed) else None

    agreed = Count(int((labels == right).sum()), len(right))
    return Calibration(
        accuracy=agreed.share,
        sensitivity=share(labels[right]),
        specificity=share(~labels[~right]),
        accuracy_interval=wilson(agreed, confidence=0.95),
    )
