"""The first two stages: answers are drawn, then rated by reward, reference and critic.

collect   the policy answers prompts                     Answers [B, T]
score     r_t, values, advantages, returns               Batch [B], its columns [B, T]
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from ppo_lessons.rlhf.advantages import critic_advantages
from ppo_lessons.rlhf.checks import check_answers
from ppo_lessons.rlhf.config import RLHFConfig
from ppo_lessons.rlhf.models import AnsweringPolicy, pack
from ppo_lessons.rlhf.rewards import token_rewards
from ppo_lessons.shapes import check_finite, check_same_shape
from ppo_lessons.tokens.generate import Responses
from ppo_lessons.tokens.language import Prompts, draw_prompts
from ppo_lessons.types import Batch

Reward = Callable[[Prompts, Responses], Tensor]
"""(prompts, responses) → one score per answer: a reward model or a verifier."""


@dataclass(frozen=True)
class Answers:
    """What one collect gave: prompts, answers, and which belong together.

    Attributes:
        prompts: each repeated once per answer.
        responses: the answers, with log π_old of each token.
        groups: the number of the prompt that each answer belongs to.
    """

    prompts: Prompts
    responses: Responses
    groups: Int[Tensor, " B"]

    @property
    def observations(self) -> Int[Tensor, "B 2 L"]:
        """Prompts and answers, packed for policy and critic."""
        return pack(self.prompts, self.responses)


@dataclass(frozen=True)
class Scored:
    """What the other three models said of the answers.

    Attributes:
        scores: of each answer, as the reward function gave it (reward).
        log_probs_reference: log π_ref of each token (nats).
        rewards: r_t, the price of distance included (reward).
        batch: what the squeeze stage learns from.
    """

    scores: Float[Tensor, " B"]
    log_probs_reference: Float[Tensor, "B T"]
    rewards: Float[Tensor, "B T"]
    batch: Batch


def collect(
    policy: AnsweringPolicy,
    config: RLHFConfig,
    *,
    draw: Callable[..., Prompts] = draw_prompts,
    generator: Generator,
) -> Answers:
    """Draw prompts, and let the policy answer each of them G times.

    Args:
        policy: answers.
        config: how many prompts, answers and tokens.
        draw: where prompts come from.
        generator: the only source of randomness.

    Returns:
        Prompts, answers and groups.
    """
    prompts = draw(config.num_prompts, generator=generator)
    numbers = torch.arange(len(prompts.tokens), device=prompts.tokens.device)
    prompts, groups = (
        prompts.repeated(config.group_size),
        numbers.repeat_interleave(config.group_size),
    )
    responses = policy.respond(prompts, max_new_tokens=config.max_new_tokens, generator=generator)
    return Answers(prompts, responses, groups)


@torch.no_grad()
def score(
    answers: Answers,
    config: RLHFConfig,
    *,
    beta: int | float,
    reference: AnsweringPolicy,
    reward: Reward,
    critic: nn.Module | None,
    advantages: Callable[..., Any] = critic_advantages,
) -> Scored:
    """Ask reward, reference and critic once, and lay everything out for the update.

    Args:
        answers: what the policy said.
        config: γ, λ and the limit of the reward.
        beta: β of this iteration (reward per nat).
        reference: gives log π_ref.
        reward: gives one score per answer.
        critic: packed observations to V before each token, or None.
        advantages: the estimator.

    Returns:
        Scores, log π_ref, rewards per token, and the batch.

    Raises:
        ValueError: if what a function gives back does not fit, or is not finite where it counts.
    """
    responses, observations = answers.responses, answers.observations
    mask = responses.mask
    check_answers(mask)
    scores = reward(answers.prompts, responses)
    check_finite(scores=scores)
    log_probs_reference, _ = reference.evaluate(observations, responses.tokens)
    rewards = token_rewards(
        scores.float(), responses.log_probs, log_probs_reference, mask,
        beta=beta, reward_limit=config.reward_limit,
    )  # fmt: skip
    values = None if critic is None else critic(observations)
    found = call_offered(
        advantages, rewards, values, mask, answers.groups,
        gamma=config.gamma, gae_lambda=config.gae_lambda,
    )  # fmt: skip
    estimated, returns = check_estimate(found, mask, critic is not None)
    nothing = torch.zeros_like(rewards)
    batch = Batch(
        observations=observations,
        actions=responses.tokens,
        log_probs_old=responses.log_probs,
        values_old=nothing if values is None else values,
        advantages=estimated,
        returns=nothing if returns is None else returns,
        valid=mask,
    )
    return Scored(scores, log_probs_reference, rewards, batch)


def check_estimate(
    found: Any, mask: Bool[Tensor, "B T"], has_critic: bool
) -> tuple[Tensor, Tensor | None]:
    """Require advantages, and returns where there is a critic, of the mask's shape.

    Raises:
        TypeError: if the estimator gave no pair.
        ValueError: if a shape differs, a number that counts is not finite, or returns are missing.
    """
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(
            f"advantages gave back a {type(found).__name__}; expected two tensors, advantages and "
            "returns. Return both; returns may be None where there is no critic."
        )
    estimated, returns = found
    check_same_shape(mask=mask, advantages=estimated, returns=returns)
    if has_critic and returns is None:
        raise ValueError(
            "advantages gave back None as returns; expected the critic's targets, since there is "
            "a critic. Return advantages + values, or train with critic=None."
        )
    check_finite(advantages=estimated.masked_fill(~mask, 0))
    return estimated, returns


def call_offered(function: Callable[..., Any], *positional: Any, **offered: Any) -> Any:
    """Call a function with those keywords that it names, as `Parts` does."""
    parameters = inspect.signature(function).parameters.values()
    fixed = function.keywords if isinstance(function, partial) else {}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        named = {p.name for p in parameters}
        offered = {name: value for name, value in offered.items() if name in named}
    return function(
        *positional, **{name: value for name, value in offered.items() if name not in fixed}
    )
