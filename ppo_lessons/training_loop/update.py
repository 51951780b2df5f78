"""Squeeze: K epochs of small steps over one batch, and everything that is measured on the way."""

from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from ppo_lessons.gae import normalize_advantages
from ppo_lessons.shapes import at_hand, check_same_shape, masked_mean
from ppo_lessons.training_loop.config import PPOConfig
from ppo_lessons.training_loop.parts import Parts, ppo_loss, use_all_epochs
from ppo_lessons.types import Batch, UpdateStats


def update(
    networks: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    config: PPOConfig,
    *,
    parts: Parts,
    generator: Generator,
) -> UpdateStats:
    """Learn from one batch: look at it, then `squeeze` it.

    On an accelerator the values are not looked at, since that would wait for it: rows that are no
    steps stay in the batch, and the mask keeps them out of the losses.

    Args:
        networks: has `policy` and `critic`; changed in place.
        optimizer: over their parameters; its state moves on.
        batch: what was collected and scored.
        config: K, M, ε and the coefficients.
        parts: the functions that fill the loop's slots.
        generator: shuffles the rows.

    Returns:
        What was measured, by epoch and minibatch.

    Raises:
        ValueError: if no row is a real step, a minibatch would hold one sample only, or some tokens
            of a row must not be learned from and a loss in `parts` takes no mask.
        TypeError: if a part gives back something else than its slot expects.
    """
    batch = real_rows(batch)
    check_masks(batch, parts)
    check_minibatch_size(len(batch), config.num_minibatches, parts)
    return squeeze(networks, optimizer, batch, config, parts=parts, generator=generator)


def squeeze(
    networks: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    config: PPOConfig,
    *,
    parts: Parts,
    generator: Generator,
) -> UpdateStats:
    """Go K times over a batch, each time over all rows in M minibatches, one step on each.

    Advantages, returns and the old log-probabilities stay as they are; only the networks move.
    Nothing in here asks the device for a value, except `Parts.stop_epochs` where one is given.

    Args:
        networks: has `policy` and `critic`; changed in place.
        optimizer: over their parameters; its state moves on.
        batch: what was collected and scored, as `update` lets it through.
        config: K, M, ε and the coefficients.
        parts: the functions that fill the loop's slots.
        generator: shuffles the rows.

    Returns:
        What was measured, by epoch and minibatch.

    Raises:
        ValueError: if there is no minibatch.
        TypeError: if a part gives back something else than its slot expects.
    """
    num_minibatches = min(config.num_minibatches, len(batch))
    epochs: list[dict[str, Tensor]] = []
    for _ in range(config.num_epochs):
        steps = []
        shuffled = parts.call("minibatches", len(batch), num_minibatches, generator=generator)
        for indices in shuffled:
            minibatch = batch.rows(indices)
            loss, measured = minibatch_loss(networks, minibatch, config, parts)
            norm = parts.call(
                "gradient_step", loss, networks, optimizer, max_grad_norm=config.max_grad_norm
            )
            measured["gradient_norm"] = scalar("gradient_step", norm).detach()
            steps.append(measured)
        if not steps:
            raise ValueError("Parts.minibatches gave none; expected the indices of each minibatch.")
        epochs.append({name: torch.stack([step[name] for step in steps]) for name in steps[0]})
        if parts.stop_epochs is use_all_epochs:
            continue
        if parts.stop_epochs(epochs[-1]["kl_k1"].mean().item()):
            break
    return UpdateStats(
        **{name: torch.stack([epoch[name] for epoch in epochs]) for name in epochs[0]}
    )


def minibatch_loss(
    networks: Any, minibatch: Batch, config: PPOConfig, parts: Parts
) -> tuple[Tensor, dict[str, Tensor]]:
    """Give the loss of one minibatch, and what is worth knowing about it.

    Args:
        networks: has `policy` and `critic`.
        minibatch: some rows of the batch.
        config: ε and the coefficients.
        parts: the functions that fill the loop's slots.

    Returns:
        The loss, with gradient, and the measures of `UpdateStats` except the gradient's norm.
    """
    epsilon, mask = config.clip_epsilon, minibatch.valid
    log_probs, entropies = networks.policy.evaluate(minibatch.observations, minibatch.actions)
    values = networks.critic(minibatch.observations)
    advantages = parts.call("normalize", minibatch.advantages, mask=mask)
    check_same_shape(advantages=minibatch.advantages, normalized=advantages)
    policy_loss = parts.call(
        "policy_loss", log_probs, minibatch.log_probs_old, advantages,
        clip_epsilon=epsilon, mask=mask,
    )  # fmt: skip
    value_loss = parts.call(
        "value_loss", values, minibatch.returns,
        values_old=minibatch.values_old, clip_epsilon=epsilon, mask=mask,
    )  # fmt: skip
    entropy = masked_mean(entropies, mask)
    if config.entropy_coef == 0 and parts.total_loss is ppo_loss:
        entropy = entropy.detach()  # at weight 0 there is nothing to send back through it
    loss = parts.call(
        "total_loss", policy_loss, value_loss, entropy,
        value_coef=config.value_coef, entropy_coef=config.entropy_coef,
    )  # fmt: skip
    losses = {"policy_loss": policy_loss, "value_loss": value_loss, "total_loss": loss}
    for slot, value in losses.items():
        scalar(slot, value)
    with torch.no_grad():
        measured = measure(log_probs, minibatch.log_probs_old, advantages, epsilon, mask)
    measured |= {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
    return loss, {name: value.detach() for name, value in measured.items()}


def measure(
    log_probs: Tensor,
    log_probs_old: Tensor,
    advantages: Tensor,
    epsilon: float,
    mask: Tensor | None,
) -> dict[str, Tensor]:
    """How far the policy has moved on these samples, and what the clip does there.

    The numbers are those of `approximate_kl` and `clip_fractions`; here a ratio is computed once.
    """
    log_ratios = log_probs - log_probs_old
    excess = log_ratios.expm1()  # ratio − 1
    deviations = excess.abs()
    outside = (deviations > epsilon).to(excess.dtype)
    silent = outside * (excess * advantages > 0)  # moved as far as its advantage asks for
    if mask is not None:
        deviations = deviations.masked_fill(~mask, 0)
    return {
        "kl_k1": -masked_mean(log_ratios, mask),
        "kl_k3": masked_mean(excess - log_ratios, mask),
        "fraction_outside": masked_mean(outside, mask),
        "fraction_zero_gradient": masked_mean(silent, mask),
        "max_ratio_deviation": deviations.max(),
    }


def scalar(slot: str, value: Any) -> Tensor:
    """Require that a part gave back one number as a tensor.

    Raises:
        TypeError: otherwise, with the slot and what it gave.
    """
    if not isinstance(value, Tensor) or value.ndim != 0:
        shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
        raise TypeError(
            f"Parts.{slot} gave a {type(value).__name__}{shape}; expected a tensor with one "
            "number. Take the mean over the samples, and return a tensor."
        )
    return value


def real_rows(batch: Batch) -> Batch:
    """Leave out the rows that are no real steps; where all that is left is real, no mask is needed.

    Raises:
        ValueError: if none is left.
    """
    if batch.valid is None or not at_hand(batch.valid):
        return batch
    if batch.valid.all():
        return replace(batch, valid=None)
    keep = batch.valid.flatten(1).any(dim=1) if batch.valid.ndim > 1 else batch.valid
    if not keep.any():
        raise ValueError(
            f"none of {len(batch)} rows is a real step; expected some. Collect more steps at once: "
            "choose a larger num_steps."
        )
    kept = batch.rows(keep.nonzero().squeeze(-1))
    return replace(kept, valid=None) if batch.valid.ndim == 1 else kept


def check_minibatch_size(num_rows: int, num_minibatches: int, parts: Parts) -> None:
    """Require two samples per minibatch where they are normalised: one alone would become 0.

    Raises:
        ValueError: if there is one sample per minibatch, so that the policy would never learn.
    """
    num_minibatches = min(num_minibatches, num_rows)
    if num_rows // num_minibatches < 2 and parts.normalize is normalize_advantages:
        raise ValueError(
            f"num_minibatches is {num_minibatches} for {num_rows} samples; expected at least two "
            "samples per minibatch, since the advantage of one alone is normalised to 0 and would "
            "teach nothing. Choose fewer minibatches, or another Parts(normalize=...)."
        )


def check_masks(batch: Batch, parts: Parts) -> None:
    """Require losses that take a mask where some rows must not be learned from.

    Raises:
        ValueError: with the slot whose function takes none.
    """
    blind = [slot for slot in ("policy_loss", "value_loss") if not parts.names(slot, "mask")]
    # On a device this waits once, and only for a loss without a mask.
    if blind and batch.valid is not None and not batch.valid.all():
        raise ValueError(
            f"{int((~batch.valid).sum())} of {len(batch)} rows are no real steps, and Parts."
            f"{blind[0]} takes no mask; expected a function that leaves them out. Give it an "
            "argument mask=None, or make the environments with AutoresetMode.SAME_STEP."
        )
