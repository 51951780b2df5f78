"""Score: the critic says what it expected, and time is laid out flat."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ppo_lessons.shapes import at_hand, check_same_shape
from ppo_lessons.types import Batch, Rollout


@torch.no_grad()
def score_values(
    critic: nn.Module, rollout: Rollout
) -> tuple[Float[Tensor, "T N"], Float[Tensor, "T N"]]:
    """Ask the critic what it expected, at each state and at the state that followed.

        next_values[t] = values[t + 1], except where row t + 1 is another episode or does not
        exist: there V of the state that step t really reached

    Args:
        critic: observations [..., *observation] → V [...].
        rollout: what happened.

    Returns:
        values and next_values (discounted reward).

    Raises:
        ValueError: if the critic gives back another shape than [T, N].
    """
    values = critic(rollout.observations)
    check_same_shape(rewards=rollout.rewards, values=values)
    next_values = values.roll(-1, dims=0)
    elsewhere = rollout.ended
    elsewhere[-1] = True
    if at_hand(values):
        next_values[elsewhere] = critic(rollout.next_observations[elsewhere])
    else:  # which rows these are would have to be asked, so the critic sees all
        next_values = torch.where(elsewhere, critic(rollout.next_observations), next_values)
    return values, next_values


def flatten(
    rollout: Rollout, values: Float[Tensor, "T N"], advantages: Float[Tensor, "T N"]
) -> Batch:
    """Lay time and environments out as one axis, once order no longer matters.

        returns = Â + V

    Args:
        rollout: what happened.
        values: V(s_t) (discounted reward).
        advantages: Â_t, not normalised (discounted reward).

    Returns:
        A batch of B = T·N rows.

    Raises:
        ValueError: if values or advantages do not have the rollout's shape.
    """
    check_same_shape(rewards=rollout.rewards, values=values, advantages=advantages)
    return Batch(
        observations=rollout.observations.flatten(0, 1),  # [T, N, ...] → [T·N, ...]
        actions=rollout.actions.flatten(0, 1),
        log_probs_old=rollout.log_probs_old.flatten(),
        values_old=values.flatten(),
        advantages=advantages.flatten(),
        returns=(advantages + values).flatten(),
        valid=rollout.valid.flatten(),
    )
