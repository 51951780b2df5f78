"""What became of the answers: right, long, without an end, far from the reference."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from ppo_lessons.rlhf.config import RLHFConfig
from ppo_lessons.rlhf.models import as_policy
from ppo_lessons.rlhf.rewards import answer_kl
from ppo_lessons.rlhf.stages import Answers, Reward
from ppo_lessons.shapes import check_finite, check_same_shape
from ppo_lessons.tokens.generate import generate_greedy
from ppo_lessons.tokens.language import BANG, EOS, Prompts, is_correct

Verifier = Callable[[Prompts, Tensor, Tensor], Tensor]
"""(prompts, tokens, mask) → whether each answer is right: what the score stands in for."""


def said(answers: Answers, verifier: Verifier | None) -> dict[str, float | None]:
    """Describe answers: how many are right, how long they are, how many do not end."""
    responses = answers.responses
    right = None
    if verifier is not None:
        right = verifier(answers.prompts, responses.tokens, responses.mask).float().mean().item()
    ends = ((responses.tokens == EOS) & responses.mask).any(dim=1)
    bangs = ((responses.tokens == BANG) & responses.mask).sum(dim=1)
    return {
        "success": right,
        "length": responses.mask.sum(dim=1).float().mean().item(),
        "no_eos": 1 - ends.float().mean().item(),
        "bangs": bangs.float().mean().item(),
    }


@torch.no_grad()
def evaluate_answers(
    policy: Any,
    prompts: Prompts,
    *,
    config: RLHFConfig,
    generator: Generator,
    reference: Any = None,
    reward: Reward | None = None,
    verifier: Verifier = is_correct,
) -> dict[str, float]:
    """Ask a policy held-out prompts, once by drawing and once greedily; nothing is learned.

    Args:
        policy: a `LanguageModel` or a `TokenPolicy`.
        prompts: that were never trained on: `draw_prompts(..., split="gate")`.
        config: temperature and the length of answers.
        generator: the only source of randomness.
        reference: for `kl_reference`; left out without it.
        reward: for `score`; left out without it.
        verifier: says what is right.

    Returns:
        success, greedy_success, length, no_eos, bangs, and score and kl_reference where asked for.

    Raises:
        ValueError: if reward or verifier do not say one finite number of each answer.
    """
    acting = as_policy(policy, "policy", temperature=config.temperature)
    responses = acting.respond(prompts, max_new_tokens=config.max_new_tokens, generator=generator)
    answers = Answers(prompts, responses, torch.arange(len(prompts.tokens)))
    found = {name: number for name, number in said(answers, verifier).items() if number is not None}
    greedy = generate_greedy(acting.model, prompts, max_new_tokens=config.max_new_tokens)
    right = verifier(prompts, greedy.tokens, greedy.mask)
    check_same_shape(verified=right, answers=greedy.mask[:, 0])
    found["greedy_success"] = right.float().mean().item()
    if reward is not None:
        scores = reward(prompts, responses)
        check_same_shape(scores=scores, answers=responses.mask[:, 0])
        check_finite(scores=scores)
        found["score"] = scores.mean().item()
    if reference is not None:
        asked = as_policy(reference, "reference", temperature=config.temperature)
        log_probs_reference, _ = asked.evaluate(answers.observations, responses.tokens)
        kl = answer_kl(responses.log_probs, log_probs_reference, responses.mask, estimator="k1")
        found["kl_reference"] = kl.mean().item()
    return found
