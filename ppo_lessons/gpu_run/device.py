"""The loop on one device."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.envs.batched import Task
from ppo_lessons.training_loop import Parts, PPOConfig, TrainState
from ppo_lessons.types import History

# For each name in `ppo_lessons.envs.TASKS`, settings for a device.
DEFAULTS: dict[str, PPOConfig] = {}


def train_on_device(
    config: PPOConfig,
    task: Task | str,
    *,
    device: str | torch.device = "cpu",
    graphs: bool = False,
    parts: Parts = Parts(),  # noqa: B008  (frozen)
    on_iteration: Callable[[TrainState], object] | None = None,
    resume: str | Path | Mapping[str, Any] | None = None,
) -> History:
    """Train on one device, environments and all; `graphs` replays whole iterations (CUDA).

    Ctrl-C, on_iteration and checkpoints work as in `train`; either resumes the other's.

    Args:
        config: every number of the run.
        task: the rules, or their name in `ppo_lessons.envs.TASKS`.
        device: "cpu", "cuda", "cuda:1", "mps".
        graphs: one launch an iteration on CUDA; on the CPU the same function runs eagerly.
        parts: the functions that fill the loop's slots; boards get `pixel_networks` by themselves.
        on_iteration: called with the `TrainState` after each iteration; returns true to stop.
        resume: a checkpoint, or its path.

    Raises:
        ValueError: if the device is not there or has too little memory, sizes do not fit, or
            numbers stop being finite.
    """
    raise NotImplementedError


def start_on_device(
    config: PPOConfig,
    task: Task | str,
    *,
    device: str | torch.device = "cpu",
    parts: Parts = Parts(),  # noqa: B008  (frozen)
    resume: str | Path | Mapping[str, Any] | None = None,
) -> tuple[TrainState, Parts]:
    """Make what `captured` and `time_stages` take: the run, and the parts that fit the device."""
    raise NotImplementedError
