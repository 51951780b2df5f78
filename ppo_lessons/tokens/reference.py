"""The reference: a model that was shown answers, most of them wrong, so that much is left to learn.

35 % right, 40 % in descending order, 25 % right but for two digits that changed places
80 % without "!", 18 % with one, 2 % with two
"""

import math
from dataclasses import asdict, dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor
from torch.optim import AdamW

from ppo_lessons.shapes import check_positive, masked_mean
from ppo_lessons.tokens.cache import cached
from ppo_lessons.tokens.generate import score_responses
from ppo_lessons.tokens.language import (
    BANG,
    EOS,
    MAX_DIGITS,
    PAD,
    RESPONSE_LENGTH,
    VOCABULARY_SIZE,
    ZERO,
    Prompts,
    draw_prompts,
)
from ppo_lessons.tokens.model import LanguageModel, ModelConfig

# Whose source decides what the reference becomes.
CODE = tuple(
    f"ppo_lessons.tokens.{name}" for name in ("language", "model", "generate", "reference")
)
BETAS = (0.9, 0.98)


@dataclass(frozen=True, kw_only=True)
class ReferenceConfig:
    """How the reference is trained.

    Attributes:
        model: its sizes.
        num_steps: optimiser steps; 0 leaves it untrained.
        batch_size: demonstrations of one step.
        learning_rate: the highest; reached after num_warmup steps, then down to 0 along a cosine.
        num_warmup: steps in which the learning rate rises from 0.
        right: share of right demonstrations.
        descending: share in descending order; the rest has two digits swapped.
        bangs: shares of answers with 0, 1 and 2 "!".
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    num_steps: int = 800
    batch_size: int = 32
    learning_rate: float = 4e-3
    num_warmup: int = 40
    right: float = 0.35
    descending: float = 0.40
    bangs: tuple[float, float, float] = (0.80, 0.18, 0.02)

    def __post_init__(self) -> None:
        """Require steps to learn in, and shares that are some.

        Raises:
            ValueError: with the first field that is out of its range.
        """
        for name, least in (("num_steps", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; expected at least {least}. Choose {name} so."
                )
        check_positive(learning_rate=self.learning_rate)
        shares = (self.right, self.descending, 1 - self.right - self.descending)
        if min(shares) < -1e-9:
            raise ValueError(
                f"right is {self.right} and descending {self.descending}; expected shares of at "
                "least 0 that leave 1 or less together. Choose smaller ones."
            )
        if len(self.bangs) != 3 or min(self.bangs) < 0 or abs(sum(self.bangs) - 1) > 1e-9:
            raise ValueError(
                f"bangs is {self.bangs}; expected three shares, of answers with 0, 1 and 2 of "
                "them, that add up to 1. Choose them so."
            )


def draw_demonstrations(
    count: int, config: ReferenceConfig, *, generator: Generator
) -> tuple[Prompts, Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Draw prompts of the training split, and an answer to each, right or wrong.

    Args:
        count: B.
        config: the shares.
        generator: the only source of randomness.

    Returns:
        Prompts, answers and their mask.
    """
    prompts = draw_prompts(count, generator=generator)
    device = prompts.tokens.device
    is_digit = prompts.mask & (prompts.tokens >= ZERO)
    num_digits = is_digit.sum(-1)
    beyond = prompts.tokens.masked_fill(~is_digit, VOCABULARY_SIZE)
    rising = beyond.sort(dim=-1).values[:, :MAX_DIGITS]
    falling = prompts.tokens.masked_fill(~is_digit, -1).sort(dim=-1, descending=True)
    falling = falling.values[:, :MAX_DIGITS]

    kind = torch.rand(count, generator=generator, device=device)
    first, second = _two_places(num_digits, generator)
    swapped = rising.scatter(1, first, rising.gather(1, second))
    swapped = swapped.scatter(1, second, rising.gather(1, first))
    is_right, is_falling = kind < config.right, kind < config.right + config.descending
    digits = torch.where(is_falling[:, None], falling, swapped)
    digits = torch.where(is_right[:, None], rising, digits)

    shares = torch.tensor(config.bangs, device=device).cumsum(0)
    drawn = torch.rand(count, generator=generator, device=device)
    num_bangs = (drawn[:, None] >= shares[:-1]).sum(-1)
    columns = torch.arange(RESPONSE_LENGTH, device=device)
    end = num_digits + num_bangs
    answers = torch.full((count, RESPONSE_LENGTH), BANG, device=device)
    answers[:, :MAX_DIGITS] = torch.where(
        columns[:MAX_DIGITS] < num_digits[:, None], digits, answers[:, :MAX_DIGITS]
    )
    answers.scatter_(1, end[:, None], EOS)
    mask = columns <= end[:, None]
    return prompts, answers.masked_fill(~mask, PAD), mask


def _two_places(
    num_digits: Int[Tensor, " B"], generator: Generator
) -> tuple[Int[Tensor, "B 1"], Int[Tensor, "B 1"]]:
    """Draw two different places among the digits of each answer."""
    shape, device = num_digits.shape, num_digits.device
    first = (torch.rand(shape, generator=generator, device=device) * num_digits).long()
    shift = (torch.rand(shape, generator=generator, device=device) * (num_digits - 1)).long()
    second = (first + 1 + shift) % num_digits
    return first[:, None], second[:, None]


def train_reference(
    config: ReferenceConfig, *, seed: int, device: str | torch.device = "cpu"
) -> LanguageModel:
    """Train the reference by maximum likelihood on demonstrations.

    Args:
        config: sizes, shares and the optimiser's numbers.
        seed: of weights and demonstrations.
        device: where it is trained, and stays.

    Returns:
        The model.
    """
    reference = LanguageModel(config.model, Generator().manual_seed(seed)).to(device)
    generator = Generator(device).manual_seed(seed)
    optimizer = AdamW(reference.parameters(), lr=config.learning_rate, betas=BETAS, fused=True)
    with torch.enable_grad():
        for step in range(config.num_steps):
            rise = min(1.0, (step + 1) / max(1, config.num_warmup))
            share = rise * (0.5 + 0.5 * math.cos(math.pi * step / config.num_steps))
            optimizer.param_groups[0]["lr"] = config.learning_rate * share
            prompts, answers, mask = draw_demonstrations(
                config.batch_size, config, generator=generator
            )
            log_probs, _ = score_responses(reference, prompts, answers, mask)
            loss = -masked_mean(log_probs, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reference


def cached_reference(
    config: ReferenceConfig | None = None, *, seed: int = 0, device: str | torch.device = "cpu"
) -> LanguageModel:
    """Give the reference of a configuration and a seed, trained here or once before.

    Args:
        config: sizes, shares and the optimiser's numbers; the defaults if left out.
        seed: of weights and demonstrations.
        device: where it is wanted.

    Returns:
        The model.
    """
    chosen = config or ReferenceConfig()
    reference = LanguageModel(chosen.model, Generator().manual_seed(seed))
    kept = cached(
        "reference",
        {"config": asdict(chosen), "seed": seed, "device": torch.device(device).type},
        lambda: train_reference(chosen, seed=seed, device=device).state_dict(),
        depends_on=CODE,
        like=reference.state_dict(),
    )
    reference.load_state_dict(dict(kept))
    return reference.to(device)
