"""How much memory a run needs, before it is asked for."""

import torch

from ppo_lessons.training_loop import PPOConfig


def memory_needed(
    config: PPOConfig,
    observation_shape: tuple[int, ...],
    dtype: torch.dtype,
    *,
    action_size: int = 0,
) -> dict[str, int]:
    """Give the bytes of a run by what they hold: "rollout", "batch", "squeeze", "score", "total".

    Args:
        config: T, N, M and the widths of the layers.
        observation_shape: of one observation.
        dtype: of observations, torch.bool for boards.
        action_size: numbers in a real action; 0 for counted ones.
    """
    raise NotImplementedError


def check_memory(needed: int, free: int, config: PPOConfig) -> None:
    """Require that a run fits.

    Raises:
        ValueError: with how much is needed, how much is free, and which setting to lower.
    """
    raise NotImplementedError
