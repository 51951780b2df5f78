"""A judge that is learned from preferences, and that can be fooled.

    a rater          likes right answers, and "!" a little:  u = 3·right + 0.7·number of "!"
    pairs            two answers of the reference; the rater prefers one with probability σ(u₁ − u₂)
    the model        score = Σ over the answer's tokens of one number each

The sum is the flaw. On answers like those it was trained on it is as good as another head; where
answers grow longer than any it saw, it goes on adding.
"""

import hashlib
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.optim import Adam

from ppo_lessons.rlhf.checks import check_whole
from ppo_lessons.rlhf.rewards import bradley_terry_loss
from ppo_lessons.shapes import check_positive
from ppo_lessons.tokens.cache import cached
from ppo_lessons.tokens.generate import Responses, generate, join
from ppo_lessons.tokens.language import BANG, RESPONSE_LENGTH, Prompts, draw_prompts, is_correct
from ppo_lessons.tokens.model import LanguageModel, TokenCritic

# What decides how a reward model comes out, beside its config and the reference's weights.
CODE = (
    *("ppo_lessons.tokens.generate", "ppo_lessons.tokens.language", "ppo_lessons.tokens.model"),
    *("ppo_lessons.rlhf.rewards", "ppo_lessons.rlhf.reward_model"),
)


@dataclass(frozen=True, kw_only=True)
class RewardModelConfig:
    """How preferences are drawn, and how the model learns them.

    Attributes:
        num_pairs: pairs of answers that are judged.
        num_steps: optimiser steps.
        batch_size: pairs of one step.
        learning_rate: Adam's highest, after num_warmup steps; then down to 0 along a cosine.
        num_warmup: steps on which the rate rises.
        right: u of a right answer (nats of preference).
        bang: u of one "!" (nats of preference).
        num_samples: answers of the reference on which the score is set to mean 0 and spread 1.
    """

    num_pairs: int = 8000
    num_steps: int = 300
    batch_size: int = 64
    learning_rate: float = 1e-3
    num_warmup: int = 20
    right: float = 3.0
    bang: float = 0.7
    num_samples: int = 1024

    def __post_init__(self) -> None:
        """Require numbers above 0 where nothing could be learned without.

        Raises:
            ValueError: otherwise.
        """
        names = ("num_pairs", "num_steps", "batch_size", "num_samples")
        check_whole(**{name: getattr(self, name) for name in names})
        check_positive(learning_rate=float(self.learning_rate))
        for name in ("right", "bang"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(
                    f"{name} is {getattr(self, name)}; expected a finite number. Choose {name} so."
                )
        if self.num_samples < 2:
            raise ValueError("num_samples is 1; expected at least 2, or scores have no spread.")

    def learning_rate_at(self, step: int) -> float:
        """Adam's step size at a step, counted from 0."""
        rise = min(1.0, (step + 1) / max(1, self.num_warmup))
        return self.learning_rate * rise * (0.5 + 0.5 * math.cos(math.pi * step / self.num_steps))


@dataclass(frozen=True)
class Pairs:
    """Answers to the same prompts, the preferred one and the other."""

    prompts: Prompts
    chosen: Responses
    rejected: Responses

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.prompts)


def count_bangs(responses: Responses) -> Float[Tensor, " B"]:
    """Count the "!" of each answer."""
    return ((responses.tokens == BANG) & responses.mask).sum(dim=1).float()


def rater_utility(
    prompts: Prompts, responses: Responses, config: RewardModelConfig
) -> Float[Tensor, " B"]:
    """Say how much the synthetic rater likes each answer.

        u = right·[the answer is correct] + bang·(number of "!")

    Args:
        prompts: what was asked.
        responses: the answers.
        config: the two weights.

    Returns:
        u (nats of preference).
    """
    right = is_correct(prompts, responses.tokens, responses.mask).float()
    return config.right * right + config.bang * count_bangs(responses)


def draw_pairs(
    reference: LanguageModel, config: RewardModelConfig, *, generator: Generator
) -> Pairs:
    """Let the reference answer each prompt twice, and the rater prefer one.

        P(first preferred) = σ(u₁ − u₂)

    Args:
        reference: draws the answers.
        config: how many pairs, and what the rater likes.
        generator: the only source of randomness.

    Returns:
        The pairs; prompts are of the training split.
    """
    prompts = draw_prompts(config.num_pairs, generator=generator)
    first, second = (
        generate(
            reference, prompts, max_new_tokens=RESPONSE_LENGTH, temperature=1, generator=generator
        )
        for _ in range(2)
    )
    difference = rater_utility(prompts, first, config) - rater_utility(prompts, second, config)
    drawn = torch.rand(len(prompts), generator=generator, device=difference.device)
    first_wins = (drawn < difference.sigmoid()).unsqueeze(1)

    def pick(condition: Tensor) -> Responses:
        return Responses(
            torch.where(condition, first.tokens, second.tokens),
            torch.where(condition, first.mask, second.mask),
            torch.where(condition, first.log_probs, second.log_probs),
        )

    return Pairs(prompts, pick(first_wins), pick(~first_wins))


class RewardModel(nn.Module):
    """Scores answers: a copy of a language model with one number per token, added up.

        score = (Σ_t mask_t·s_t − mean) / spread,    s_t read at token t itself

    Args:
        model: whose weights are copied; it is left alone. The new head is 0.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, model: LanguageModel):
        super().__init__()
        self.body = TokenCritic(model)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("spread", torch.ones(()))

    def token_scores(self, prompts: Prompts, responses: Responses) -> Float[Tensor, "B T"]:
        """Give what each token adds to the raw score, 0 in padding."""
        tokens, mask = join(prompts, responses.tokens, responses.mask)
        at_tokens = self.body(tokens, mask)[:, prompts.tokens.shape[1] :]
        return at_tokens.masked_fill(~responses.mask, 0)

    def forward(self, prompts: Prompts, responses: Responses) -> Float[Tensor, " B"]:
        """Give one score per answer, in spreads of the reference's answers above their mean."""
        return (self.token_scores(prompts, responses).sum(dim=1) - self.mean) / self.spread

    @torch.no_grad()
    def normalize_on(self, prompts: Prompts, responses: Responses) -> None:
        """Set mean and spread so that these answers score 0 on average, with spread 1.

        Only differences of scores were learned; this fixes zero and unit, so that one β means the
        same for every reward model.
        """
        raw = self.token_scores(prompts, responses).sum(dim=1)
        self.mean.copy_(raw.mean())
        self.spread.copy_(raw.std(correction=0).clamp(min=1e-6))


def train_reward_model(
    reference: LanguageModel, config: RewardModelConfig, *, seed: int
) -> RewardModel:
    """Draw preferences, fit the Bradley-Terry model to them, and normalise its scores.

    Args:
        reference: draws the answers, and lends its weights.
        config: how.
        seed: of pairs, minibatches and samples.

    Returns:
        The model, on the reference's device; its weights no longer take gradients.
    """
    device = reference.head.weight.device
    generator = Generator(device).manual_seed(seed)
    pairs = draw_pairs(reference, config, generator=generator)
    model = RewardModel(reference)
    optimizer = Adam(model.parameters(), lr=config.learning_rate, fused=True)
    with torch.enable_grad():
        for step in range(config.num_steps):
            optimizer.param_groups[0]["lr"] = config.learning_rate_at(step)
            rows = torch.randint(
                len(pairs), (config.batch_size,), generator=generator, device=device
            )
            prompts = pairs.prompts.rows(rows)
            loss = bradley_terry_loss(
                model(prompts, pairs.chosen.rows(rows)), model(prompts, pairs.rejected.rows(rows))
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    prompts = draw_prompts(config.num_samples, generator=generator)
    model.normalize_on(
        prompts,
        generate(
            reference, prompts, max_new_tokens=RESPONSE_LENGTH, temperature=1, generator=generator
        ),
    )
    return model.requires_grad_(False)


def cached_reward_model(
    reference: LanguageModel,
    config: RewardModelConfig | None = None,
    *,
    seed: int = 0,
) -> RewardModel:
    """Give the reward model of a reference, trained here or once before.

    The hash covers the reference's weights, so another reference gets another model.

    Args:
        reference: draws the answers, and lends its weights.
        config: how; the defaults if left out.
        seed: of pairs, minibatches and samples.

    Returns:
        The model.
    """
    chosen, model = config or RewardModelConfig(), RewardModel(reference)
    kept = cached(
        "reward_model",
        {"config": vars(chosen), "seed": seed, "reference": weights_digest(reference)},
        lambda: train_reward_model(reference, chosen, seed=seed).state_dict(),
        depends_on=CODE,
        like=model.state_dict(),
    )
    model.load_state_dict(dict(kept))
    return model.to(reference.head.weight.device).requires_grad_(False)


def weights_digest(model: nn.Module) -> str:
    """Hash all weights of a model.

    Args:
        model: any.

    Returns:
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
