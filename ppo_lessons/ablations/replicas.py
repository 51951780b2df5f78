"""R learners at once: one batched run with a leading replica axis (seeds × settings)."""

from collections.abc import Sequence

import torch

from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.envs.batched import Task
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.types import History


def run_replicas(
    configs: Sequence[PPOConfig],
    *,
    task: Task,
    parts: Parts | Sequence[Parts] = Parts(),  # noqa: B008  (frozen)
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> list[History]:
    """Train R learners in one batched run; each has its own networks, environments, generators.

    Args:
        configs: of each replica, with its seed. Numbers may differ; num_envs, num_steps, num_epochs,
            num_minibatches, hidden_sizes and total_steps must be the same.
        task: the rules of the environments.
        parts: one for all, or one for each.
        device: where everything lives.
        dtype: of the states of the environments.

    Returns:
        For each replica what `train(config, envs=BatchedEnvs(task, num_envs), parts=parts)` gives.
    """
    each = [parts] * len(configs) if isinstance(parts, Parts) else list(parts)
    return [
        train(
            config,
            envs=BatchedEnvs(task, config.num_envs, device=device, dtype=dtype),
            parts=own,
        )
        for config, own in zip(configs, each, strict=True)
    ]
