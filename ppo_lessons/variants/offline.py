"""Learn from responses that were drawn once: DPO from pairs, fine-tuning on accepted ones.

No rollout, no ratio, no clip: the four stages shrink to one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn.utils import clip_grad_norm_

from ppo_lessons.tokens import LanguageModel, Prompts, Responses, score_responses
from ppo_lessons.variants.losses import aggregate
from ppo_lessons.variants.optimizer import warm_adam
from ppo_lessons.variants.preference import dpo_loss, sequence_log_probs
from ppo_lessons.variants.sampling import check_at_least_one

Rows = list[dict[str, float]]


def train_dpo(
    policy: LanguageModel,
    reference: LanguageModel,
    prompts: Prompts,
    chosen: Responses,
    rejected: Responses,
    *,
    beta: float,
    learning_rate: float,
    num_epochs: int,
    minibatch_size: int,
    generator: Generator,
) -> Rows:
    """Fit a policy to pairs, in place.

    Args:
        policy: starts as a copy of the reference.
        reference: π_ref; not changed.
        prompts: one for each pair.
        chosen: the better response of each pair.
        rejected: the worse one.
        beta: β, above 0 (reward per nat).
        learning_rate: Adam's step size, above 0.
        num_epochs: passes over the pairs.
        minibatch_size: pairs of one optimiser step.
        generator: shuffles the pairs.

    Returns:
        One row per epoch: `loss`, `accuracy` (share of pairs with a positive margin),
        `chosen_log_ratio` and `rejected_log_ratio` (nats per response, log π − log π_ref).

    Raises:
        ValueError: if there is no pair, or a number is not above 0.
    """
    with torch.no_grad():
        references = [of_responses(reference, prompts, drawn) for drawn in (chosen, rejected)]

    def loss_of(rows: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        better, worse = (
            of_responses(policy, prompts.rows(rows), drawn.rows(rows))
            for drawn in (chosen, rejected)
        )
        loss = dpo_loss(better, worse, references[0][rows], references[1][rows], beta=beta)
        moved = better.detach() - references[0][rows], worse.detach() - references[1][rows]
        return loss, {
            "accuracy": (moved[0] > moved[1]).to(loss.dtype).mean(),
            "chosen_log_ratio": moved[0].mean(),
            "rejected_log_ratio": moved[1].mean(),
        }

    return fit(
        policy, loss_of, len(chosen), learning_rate=learning_rate, num_epochs=num_epochs,
        minibatch_size=minibatch_size, generator=generator,
    )  # fmt: skip


def train_accepted(
    policy: LanguageModel,
    prompts: Prompts,
    responses: Responses,
    *,
    learning_rate: float,
    num_epochs: int,
    minibatch_size: int,
    generator: Generator,
) -> Rows:
    """Imitate responses that were found good (rejection-sampling fine-tuning), in place.

        loss = −mean over tokens of log π

    Args:
        policy: what is trained.
        prompts: one for each response.
        responses: those that were accepted.
        learning_rate: Adam's step size, above 0.
        num_epochs: passes over the responses.
        minibatch_size: responses of one optimiser step.
        generator: shuffles them.

    Returns:
        One row per epoch: `loss` (nats per token).

    Raises:
        ValueError: if there is no response, not one prompt for each, or a number is not above 0.
    """
    if len(responses) and len(prompts) != len(responses):
        raise ValueError(
            f"there are {len(responses)} responses to {len(prompts)} prompts; expected as many. "
            "Take the same rows of both: prompts.rows(kept), responses.rows(kept)."
        )

    def loss_of(rows: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        drawn = responses.rows(rows)
        log_probs, _ = score_responses(policy, prompts.rows(rows), drawn.tokens, drawn.mask)
        return -aggregate(log_probs, drawn.mask, mode="token_mean"), {}

    return fit(
        policy, loss_of, len(responses), learning_rate=learning_rate, num_epochs=num_epochs,
        minibatch_size=minibatch_size, generator=generator,
    )  # fmt: skip


def of_responses(
    model: LanguageModel, prompts: Prompts, responses: Responses
) -> Float[Tensor, " B"]:
    """Give log π of whole responses (nats)."""
    log_probs, _ = score_responses(model, prompts, responses.tokens, responses.mask)
    return sequence_log_probs(log_probs, responses.mask)


def fit(
    policy: LanguageModel,
    loss_of: Callable[[Int[Tensor, " M"]], tuple[Tensor, dict[str, Tensor]]],
    num_rows: int,
    *,
    learning_rate: float,
    num_epochs: int,
    minibatch_size: int,
    generator: Generator,
) -> Rows:
    """Take one step of `warm_adam` on each minibatch, several times over all rows.

    Args:
        policy: what is trained.
        loss_of: row indices → loss, and what else is worth knowing.
        num_rows: how many there are.
        learning_rate: above 0.
        num_epochs: at least 1.
        minibatch_size: at least 1.
        generator: shuffles the rows.

    Returns:
        The mean of loss and measures over each epoch.

    Raises:
        ValueError: if there is no row, or a number is not above 0.
    """
    check_at_least_one(num_rows=num_rows, num_epochs=num_epochs, minibatch_size=minibatch_size)
    optimizer = warm_adam(policy, learning_rate=learning_rate)
    epochs: Rows = []
    for _ in range(num_epochs):
        steps: list[dict[str, Any]] = []
        for rows in shuffled(num_rows, minibatch_size, generator):
            loss, measured = loss_of(rows)
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            steps.append({"loss": loss.detach(), **measured})
        epochs.append(
            {name: torch.stack([step[name] for step in steps]).mean().item() for name in steps[0]}
        )
    return epochs


def shuffled(num_rows: int, size: int, generator: Generator) -> Iterator[Int[Tensor, " M"]]:
    """Deal row indices into minibatches of at most `size`."""
    return iter(torch.randperm(num_rows, generator=generator).split(size))
