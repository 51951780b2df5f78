"""What goes wrong where an episode ends, and what is learned then.

Each wrong way is one of fact: `compute_gae` is right, and is told something that is not so. Each
has the arguments of `compute_gae`, so that it fits the slot `advantages` of the training loop.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from ppo_lessons.gae import compute_gae
from ppo_lessons.rollout.score import score_values
from ppo_lessons.types import Rollout

Rows = Float[Tensor, "T N"]
Flags = Bool[Tensor, "T N"]


def flags_merged(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Take a time limit for the end of the task: what it hides counts 0."""
    return compute_gae(rewards, values, next_values, terminated | truncated, truncated, **settings)


def truncated_ignored(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Let the sum run through a time limit, into the next episode."""
    return compute_gae(
        rewards, values, next_values, terminated, torch.zeros_like(truncated), **settings
    )


def next_value_after_the_reset(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Take the value of the next row everywhere: after an end that is the next episode's start."""
    return compute_gae(
        rewards, values, _next_row(values, next_values), terminated, truncated, **settings
    )


def truncated_ignored_after_the_reset(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Do not look at `truncated` at all: value and sum both come from the next episode."""
    return truncated_ignored(
        rewards, values, _next_row(values, next_values), terminated, truncated, **settings
    )


def nothing_after_the_last_row(
    rewards: Rows, values: Rows, next_values: Rows, terminated: Flags, truncated: Flags,
    **settings: float,
) -> Rows:  # fmt: skip
    """Take the end of the rollout for the end of the task."""
    return compute_gae(
        rewards, values, _without_last(next_values), terminated, truncated, **settings
    )


def _next_row(values: Rows, next_values: Rows) -> Rows:
    return torch.cat([values[1:], next_values[-1:]])


def _without_last(next_values: Rows) -> Rows:
    return torch.cat([next_values[:-1], torch.zeros_like(next_values[-1:])])


# The right way first, then the wrong ones, each under the name that the lesson gives it.
ENDINGS: Mapping[str, Callable[..., Rows]] = MappingProxyType(
    {
        "two masks": compute_gae,
        "flags merged": flags_merged,
        "truncated ignored": truncated_ignored,
        "truncated ignored, next value after the reset": truncated_ignored_after_the_reset,
        "trace cut, next value after the reset": next_value_after_the_reset,
        "nothing after the last row": nothing_after_the_last_row,
    }
)


def fit_table(
    rollout: Rollout,
    entry_of: Int64[Tensor, " S"],
    *,
    advantages_of: Callable[..., Rows] = compute_gae,
    gamma: float,
    gae_lambda: float,
    num_rounds: int,
) -> Float64[Tensor, "R K"]:
    """Learn one value per entry of a table, by scoring the same rollout again and again.

        V(k) ← mean of  Â_t + V(s_t)  over the valid rows whose state has entry k

    It is what a critic does in training, without its noise: the table starts at 0, each round is
    scored with the table of the round before, and the regression is solved at once.

    Args:
        rollout: its observations are one number each, from 0 to S − 1.
        entry_of: for each observation, the entry of the table in which its value stands. States
            with the same entry look the same to this critic.
        advantages_of: how ends are handled; one of `ENDINGS`, or your own.
        gamma: discount per step, in [0, 1].
        gae_lambda: λ, in [0, 1].
        num_rounds: R, times that the rollout is scored.

    Returns:
        The table after each round (discounted reward); 0 for an entry that no valid row has.

    Raises:
        ValueError: if num_rounds is below 1, or an observation is no single number.
    """
    if num_rounds < 1:
        raise ValueError(f"num_rounds is {num_rounds}; expected at least 1. Choose num_rounds=100.")
    if rollout.observations.shape[2:] != (1,):
        raise ValueError(
            f"an observation has shape {tuple(rollout.observations.shape[2:])}; expected (1,), "
            "the number of a state. Number the states of your environment."
        )
    critic = _Table(entry_of)
    entries = entry_of[rollout.observations[..., 0].long()][rollout.valid]
    counts = entries.bincount(minlength=len(critic.table)).clamp(min=1)
    history = []
    for _ in range(num_rounds):
        values, next_values = score_values(critic, rollout)
        advantages = advantages_of(
            rollout.rewards.double(), values, next_values, rollout.terminated, rollout.truncated,
            gamma=gamma, gae_lambda=gae_lambda,
        )  # fmt: skip
        returns = (advantages + values)[rollout.valid]
        critic.table = torch.zeros_like(critic.table).index_add(0, entries, returns) / counts
        history.append(critic.table)
    return torch.stack(history)


class _Table(nn.Module):
    """A critic that looks its values up."""

    def __init__(self, entry_of: Int64[Tensor, " S"]):
        super().__init__()
        self.entry_of = entry_of
        self.table = torch.zeros(int(entry_of.max()) + 1, dtype=torch.float64)

    def forward(self, observations: Float[Tensor, "*batch 1"]) -> Float64[Tensor, "*batch"]:
        return self.table[self.entry_of[observations[..., 0].long()]]
