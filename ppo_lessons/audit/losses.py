"""What stands behind the rollout: normalised advantages, ratios, losses, their sum."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from ppo_lessons.audit.explain import Prediction
from ppo_lessons.importance import importance_ratios
from ppo_lessons.shapes import masked_mean


@dataclass(frozen=True)
class Target:
    """returns = advantages + values."""

    advantages: Tensor
    values: Tensor
    next_values: Tensor | None
    new_values: Tensor | None
    rounding: float
    sign: float = 1.0
    known: Tensor | None = None

    def predict(self) -> Prediction:
        """Â + V of each row."""
        terms = self.advantages.abs() + self.values.abs()
        return Prediction(
            self.advantages + self.sign * self.values, self.rounding * terms, self.known
        )


@dataclass(frozen=True)
class Norm:
    """(Â − mean) / (deviation + epsilon), with mean and deviation of a pool.

    Attributes:
        advantages: Â of the samples.
        pool: from which mean and deviation come; a table [K, B/K] has one of each per row.
        batch: Â of the whole batch, where the samples are some of its rows.
        table: Â as [T, N], where the samples are the whole batch.
    """

    advantages: Tensor
    pool: Tensor
    rounding: float
    batch: Tensor | None = None
    table: Tensor | None = None
    mask: Tensor | None = None
    correction: int = 0
    epsilon: float = 1e-8
    centred: bool = True
    power: float = 0.5
    axis: int | None = None

    def predict(self) -> Prediction:
        """The normalised Â of each sample."""
        if self.axis is not None and self.table is not None:
            numbers = self.normalise(self.table, self.table, self.axis).flatten()
        else:
            numbers = self.normalise(self.advantages, self.pool, None)
        size = 1 + numbers.abs() + self.pool.mean().abs() / (self.pool.std(correction=0) + 1e-12)
        known = None if self.mask is None else self.mask
        return Prediction(numbers, self.rounding * size, known)

    def normalise(self, advantages: Tensor, pool: Tensor, axis: int | None) -> Tensor:
        """Shift and scale by what the pool says."""
        axes = tuple(range(pool.ndim)) if axis is None else (axis,)
        mean = pool.mean(dim=axes, keepdim=axis is not None)
        variance = pool.var(dim=axes, keepdim=axis is not None, correction=self.correction)
        spread = variance**self.power + self.epsilon
        return (advantages - mean * self.centred) / spread


How = Literal[
    "pairs",
    "pairs turned",
    "exp",
    "difference",
    "quotient",
    "one",
    "new",
    "clipped",
    "parts",
    "averaged",
]


@dataclass(frozen=True)
class Ratio:
    """exp(log π − log π_old), summed over the dimensions of an action first.

    Attributes:
        log_probs: log π, [B].
        log_probs_old: log π_old, [B].
        differences: log π − log π_old of each dimension, [B, A]; None if only sums were given.
    """

    log_probs: Tensor
    log_probs_old: Tensor
    rounding: float
    differences: Tensor | None = None
    how: How = "exp"
    clip_epsilon: float = 1.0

    def predict(self) -> Prediction:
        """The ratio of each sample."""
        digits = self.rounding * (1 + self.log_probs.abs() + self.log_probs_old.abs())
        numbers = self.numbers()
        digits = digits.unsqueeze(-1) if numbers.ndim > digits.ndim else digits
        return Prediction(numbers, digits * (0.1 + numbers.abs()))

    def numbers(self) -> Tensor:
        """The ratios, or what was taken for them."""
        new, old, epsilon = self.log_probs, self.log_probs_old, self.clip_epsilon
        parts = new - old if self.differences is None else self.differences
        ways: dict[str, Callable[[], Tensor]] = {
            "exp": lambda: importance_ratios(new, old),
            "clipped": lambda: importance_ratios(new, old).clamp(1 - epsilon, 1 + epsilon),
            "difference": lambda: new - old,
            "quotient": lambda: new / old,
            "one": lambda: torch.ones_like(new),
            "new": lambda: new.exp(),
            "parts": lambda: parts.exp(),
            "averaged": lambda: parts.mean(-1).exp(),
            "pairs": lambda: (new.unsqueeze(-1) - old).exp(),
            "pairs turned": lambda: (new - old.unsqueeze(-1)).exp(),
        }
        return ways[self.how]()  # only the one that is asked for: pairs are many


def share_of(mask: Tensor | None) -> float:
    """The share of rows that are steps."""
    return 1.0 if mask is None else float(mask.double().mean())


Combine = Literal["min", "max", "clipped", "plain", "inverted", "inside", "dual", "means"]


@dataclass(frozen=True)
class Surrogate:
    """−mean( min( ratio·Â, clip(ratio, low, high)·Â ) ).

    Attributes:
        ratios: π / π_old.
        advantages: Â as the loss sees it.
        low: lower edge of the clip.
        high: upper edge.
        clip_epsilon: ε.
        log_probs: log π; None if not given.
        differences: log π − log π_old of each dimension of an action; None if not given.
        raw: Â before it was normalised; None if not given.
        half: Â beside the clipped ratios, where they are others than beside the plain ones.
        returns: the critic's targets; None if not given.
        table: shape (T, N) of the batch; None for a minibatch.
        crossed: every ratio meets every Â.
        centre: beside the plain ratios stands the mean of Â.
        mask: false for rows that are no steps.
        diluted: what counts is divided by the number of all rows.
    """

    ratios: Tensor
    advantages: Tensor
    low: float
    high: float
    clip_epsilon: float
    rounding: float
    log_probs: Tensor | None = None
    differences: Tensor | None = None
    raw: Tensor | None = None
    half: Tensor | None = None
    returns: Tensor | None = None
    table: torch.Size | None = None
    combine: Combine = "min"
    centre: bool = False
    sign: float = -1.0
    summed: bool = False
    per_sample: bool = False
    crossed: bool = False
    mask: Tensor | None = None
    diluted: bool = False

    def predict(self) -> Prediction:
        """The loss, as one number or one for each sample."""
        if self.crossed:
            return self.predict_crossed()
        beside = self.advantages if self.half is None else self.half
        plain, clipped = self.ratios * self.advantages, self.clipped * beside
        return self.reduced(self.combined(plain, clipped), plain.abs() + self.advantages.abs())

    @property
    def clipped(self) -> Tensor:
        """The ratios inside the edges."""
        return self.ratios.clamp(self.low, self.high)

    def combined(self, plain: Tensor, clipped: Tensor) -> Tensor:
        """What a sample is worth."""
        good = self.advantages >= 0
        smaller = torch.minimum(plain, clipped)
        match self.combine:
            case "max":
                return torch.maximum(plain, clipped)
            case "clipped":
                return clipped
            case "plain":
                return plain
            case "inverted":
                return torch.where(good, smaller, torch.maximum(plain, clipped))
            case "inside":
                return plain.masked_fill(self.ratios != self.clipped, 0)
            case "means":
                return self.smaller_mean(plain, clipped)
            case "dual":
                return torch.where(good, smaller, torch.maximum(smaller, 3 * self.advantages))
        return smaller

    def smaller_mean(self, plain: Tensor, clipped: Tensor) -> Tensor:
        """The smaller of two means, for every sample."""
        plain = self.ratios * masked_mean(self.advantages) if self.centre else plain
        return torch.minimum(plain.mean(), clipped.mean()).expand(plain.shape)

    def reduced(self, worth: Tensor, terms: Tensor) -> Prediction:
        """The mean, the sum, or the samples."""
        if self.per_sample:
            return Prediction(self.sign * worth, self.rounding * terms, self.mask)
        factor = float(worth.numel() if self.mask is None else self.mask.sum())
        factor = factor if self.summed else 1.0
        factor = factor * share_of(self.mask) if self.diluted else factor
        mean, size = masked_mean(worth, self.mask), masked_mean(terms, self.mask)
        return Prediction(self.sign * factor * mean, self.rounding * factor * size)

    def predict_crossed(self) -> Prediction:
        """The mean over all pairs of a ratio and an Â, without the table of pairs."""
        up, down = self.advantages.clamp(min=0).mean(), self.advantages.clamp(max=0).mean()
        small = torch.minimum(self.ratios, self.clipped).mean()
        large = torch.maximum(self.ratios, self.clipped).mean()
        first, second = (small, large) if self.combine == "min" else (large, small)
        number = self.sign * (up * first + down * second)
        return Prediction(number, self.rounding * self.ratios.mean() * self.advantages.abs().mean())


LARGEST_CROSS = 512  # samples of which all pairs are looked at one by one
Square = Literal["plain", "max", "min", "moved", "factor", "uncentred", "before"]


@dataclass(frozen=True)
class Squares:
    """factor·mean( (V − target)² ), where V may be held near V_old.

    `clipped` says that it is meant to be held there.
    """

    new_values: Tensor
    targets: Tensor
    rounding: float
    values: Tensor | None = None
    advantages: Tensor | None = None
    rewards: Tensor | None = None
    clip_epsilon: float | None = None
    clipped: bool = False
    value_coef: float | None = None
    table: torch.Size | None = None
    mask: Tensor | None = None
    square: Square = "plain"
    factor: float = 0.5
    power: float = 2.0
    summed: bool = False
    crossed: Literal["", "values", "targets"] = ""
    root: bool = False
    per_sample: bool = False
    diluted: bool = False

    def predict(self) -> Prediction:
        """The loss, as one number or one for each sample."""
        if self.crossed:
            return self.predict_crossed()
        errors = self.errors()
        size = (self.new_values.abs() + self.targets.abs()) * errors.abs() ** 0.5 + errors.abs()
        if self.per_sample:
            return Prediction(self.factor * errors, self.rounding * size, self.mask)
        count = float(errors.numel() if self.mask is None else self.mask.sum())
        factor = self.factor * (count if self.summed else 1.0)
        factor = factor * share_of(self.mask) if self.diluted else factor
        mean, terms = masked_mean(errors, self.mask), masked_mean(size, self.mask)
        number = mean.abs() ** 0.5 if self.root else mean
        return Prediction(factor * number, self.rounding * abs(factor) * (terms + number.abs()))

    def errors(self) -> Tensor:
        """The error of each sample, raised to its power."""
        plain = self.raised(self.new_values - self.targets)
        if self.square == "plain" or self.values is None or self.clip_epsilon is None:
            return plain
        step = self.new_values - self.values
        low, high = -self.clip_epsilon, self.clip_epsilon
        moved = {
            "factor": self.values * (self.new_values / self.values).clamp(1 + low, 1 + high),
            "uncentred": step.clamp(low, high),
        }.get(self.square, self.values + step.clamp(low, high))
        if self.square == "before":
            return self.raised(torch.maximum(self.new_values, moved) - self.targets)
        held = self.raised(moved - self.targets)
        if self.square == "min":
            return torch.minimum(plain, held)
        return held if self.square == "moved" else torch.maximum(plain, held)

    def raised(self, errors: Tensor) -> Tensor:
        """The error's square, the error itself, its size, or Huber's mixture (power 1.5)."""
        if self.power == 1.5:
            return torch.where(errors.abs() < 1, errors**2 / 2, errors.abs() - 0.5)
        return errors.abs() if self.power == 0 else errors**self.power

    def predict_crossed(self) -> Prediction:
        """The mean over all pairs of a value and a target: (B, 1) against (B,)."""
        if self.square != "plain" and len(self.targets) <= LARGEST_CROSS:
            plain = replace(self, crossed="", mask=None)
            if self.crossed == "values":
                return replace(plain, new_values=self.new_values[:, None]).predict()
            return replace(plain, targets=self.targets[:, None]).predict()
        spread = self.new_values.var(correction=0) + self.targets.var(correction=0)
        number = spread + (self.new_values.mean() - self.targets.mean()) ** 2
        scale = self.new_values.square().mean() + self.targets.square().mean()
        return Prediction(self.factor * number, self.rounding * scale)


@dataclass(frozen=True)
class Mean:
    """The mean of entropies."""

    entropies: Tensor
    rounding: float
    mask: Tensor | None = None
    factor: float = 1.0

    def predict(self) -> Prediction:
        """The mean over the samples that count."""
        size = masked_mean(self.entropies.abs(), self.mask) * abs(self.factor)
        return Prediction(
            self.factor * masked_mean(self.entropies, self.mask), self.rounding * size
        )


@dataclass(frozen=True)
class Total:
    """policy_loss + c₁·value_loss − c₂·entropy, with a weight for each."""

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    rounding: float
    policy: float
    value: float
    bonus: float
    value_coef: float
    entropy_coef: float
    value_loss_holds_coef: bool = False

    def predict(self) -> Prediction:
        """The weighted sum."""
        terms = torch.stack(
            [
                self.policy * self.policy_loss,
                self.value * self.value_loss,
                self.bonus * self.entropy,
            ]
        )
        return Prediction(terms.sum(), self.rounding * terms.abs().sum())
