"""A row of metrics from a device: computed there, fetched at once."""

from dataclasses import fields
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ppo_lessons.critic import known_returns
from ppo_lessons.training_loop import PPOConfig
from ppo_lessons.types import Batch, Rollout, UpdateStats

MEASURES = tuple(part.name for part in fields(UpdateStats))
NAMES = (*MEASURES, "ev_lambda", "ev_monte_carlo", "rewards_finite", "weights_finite")


@torch.no_grad()
def summary(
    rollout: Rollout, batch: Batch, stats: UpdateStats, networks: nn.Module, config: PPOConfig
) -> Float[Tensor, " numbers"]:
    """Give the numbers of `NAMES` as one tensor, without asking for any of them.

    The two flags are 1 if rewards and observations, or gradients and weights, are finite.
    """
    measures = [getattr(stats, name)[-1].mean() for name in MEASURES]
    returns, known = known_returns(
        rollout.rewards, rollout.terminated, rollout.truncated, gamma=config.gamma
    )
    values = batch.values_old
    explained = [
        explained_share(values, batch.returns, torch.ones_like(values, dtype=torch.bool)),
        explained_share(values, returns.flatten(), known.flatten()),
    ]
    facts = torch.isfinite(rollout.rewards).all()
    if rollout.observations.is_floating_point():
        facts = facts & torch.isfinite(rollout.observations).all()
    size = nn.utils.get_total_norm(list(networks.parameters()))
    weights = torch.isfinite(size) & torch.isfinite(stats.gradient_norm).all()
    numbers = [*measures, *explained, facts, weights]
    return torch.stack([number.to(torch.float32) for number in numbers])


def explained_share(
    values: Float[Tensor, " B"], returns: Float[Tensor, " B"], counts: Bool[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Give `explained_variance` over the samples that count, without picking them out.

    NaN if none counts, or their returns do not vary.
    """
    number = counts.sum().clamp(min=1)

    def variance(samples: Float[Tensor, " B"]) -> Float[Tensor, ""]:
        mean = samples.masked_fill(~counts, 0).sum() / number
        return (samples - mean).masked_fill(~counts, 0).square().sum() / number

    most = returns.masked_fill(~counts, -torch.inf).max()
    least = returns.masked_fill(~counts, torch.inf).min()
    share = 1 - variance(returns - values) / variance(returns)
    return torch.where(most > least, share, torch.nan)


def as_row(numbers: list[float]) -> dict[str, float | None]:
    """Name the fetched numbers; what could not be computed is None."""
    return {
        name: None if number != number else number
        for name, number in zip(NAMES, numbers, strict=True)
    }


def check_row(row: dict[str, Any], iteration: int) -> None:
    """Require that environments, gradients and weights gave finite numbers, and take the flags out.

    Raises:
        ValueError: with the iteration and what to look at.
    """
    if not row.pop("rewards_finite"):
        raise ValueError(
            f"iteration {iteration} met rewards or observations that are not finite; expected "
            "finite numbers. Look at Task.advance and Task.observe; on the CPU the step that "
            "gave them is named."
        )
    if not row.pop("weights_finite"):
        raise ValueError(
            f"iteration {iteration} left gradients or weights that are not finite; expected "
            "finite numbers. Lower learning_rate, or look at what the losses and advantages in "
            "Parts give back."
        )
