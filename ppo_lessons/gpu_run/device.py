"""The loop on one device: the same stages, the same rows, the same checkpoints as `train`."""

import difflib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.envs import TASKS, BatchedEnvs, Envs
from ppo_lessons.envs.batched import Task, checked_device
from ppo_lessons.envs.normalized import NormalizedEnvs
from ppo_lessons.gpu_run.graphs import captured
from ppo_lessons.gpu_run.memory import check_memory, free_memory, out_of_memory
from ppo_lessons.gpu_run.optimizer import place_optimizer
from ppo_lessons.gpu_run.ranks import rank_seed
from ppo_lessons.networks import make_networks, pixel_networks
from ppo_lessons.rollout import start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, TrainState, iterate, read_checkpoint
from ppo_lessons.training_loop.train import (
    deferred_interrupt,
    one_thread,
    restore,
    start,
    wants_to_stop,
)
from ppo_lessons.types import Carry, History

# For each name in `ppo_lessons.envs.TASKS`, where to begin on a device. Tried on a CPU: CartPole's
# reached 500 (100 greedy episodes) within 1.6 M steps on 4 of 4 seeds, Acrobot's -80 within 1.9 M
# on the one that was run. The others are not tuned.
DEFAULTS: dict[str, PPOConfig] = {
    "CartPole": PPOConfig(
        env="CartPole", total_steps=15_000_000, num_envs=4096, num_steps=16, num_epochs=4,
        num_minibatches=8, learning_rate=2e-3, gamma=0.98, gae_lambda=0.9,
    ),
    "Acrobot": PPOConfig(
        env="Acrobot", total_steps=20_000_000, num_envs=4096, num_steps=16, num_epochs=4,
        num_minibatches=8, learning_rate=2e-3,
    ),
    "MountainCar": PPOConfig(
        env="MountainCar", total_steps=10_000_000, num_envs=4096, num_steps=32, num_epochs=4,
        num_minibatches=4, learning_rate=2.5e-3,
    ),
    "Pendulum": PPOConfig(
        env="Pendulum", total_steps=30_000_000, num_envs=4096, num_steps=32, num_epochs=4,
        num_minibatches=8, learning_rate=1e-3, gamma=0.95,
    ),
    "MountainCarContinuous": PPOConfig(
        env="MountainCarContinuous", total_steps=10_000_000, num_envs=4096, num_steps=32,
        num_epochs=4, num_minibatches=4, learning_rate=1e-3,
    ),
    "Breakout": PPOConfig(
        env="Breakout", total_steps=100_000_000, num_envs=4096, num_steps=32, num_epochs=4,
        num_minibatches=8, learning_rate=2.5e-3, entropy_coef=0.01,
    ),
}  # fmt: skip


def train_on_device(
    config: PPOConfig,
    task: Task | str,
    *,
    device: str | torch.device = "cpu",
    graphs: bool = False,
    normalize: bool = False,
    parts: Parts = Parts(),  # noqa: B008  (frozen, so one instance may serve all calls)
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
        normalize: scale observations and rewards (`NormalizedEnvs`).
        parts: the functions that fill the loop's slots; boards get `pixel_networks` by themselves.
        on_iteration: called with the `TrainState` after each iteration; returns true to stop.
        resume: a checkpoint, or its path.

    Returns:
        One row of metrics per iteration, and the trained networks.

    Raises:
        ValueError: if the device is not there or has too little memory, sizes do not fit, or
            numbers stop being finite.
    """
    place = checked_device(device)
    check_graphs(place, graphs)
    with current(place), one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:
        state, parts = start_on_device(
            config, task, device=place, normalize=normalize, parts=parts, resume=resume
        )
        once = captured(state, parts) if graphs else (lambda: iterate(state, parts))

        def go_on() -> str:
            while state.iteration < config.num_iterations:
                once()
                if on_iteration is not None and wants_to_stop(on_iteration(state)):
                    return "on_iteration"
                if interrupted.is_set() and state.iteration < config.num_iterations:
                    return "interrupted"
            return "finished"

        try:
            state.history.stopped = go_on()
        except KeyboardInterrupt:  # the second one: it breaks into an iteration
            state.history.stopped = "interrupted"
        except torch.OutOfMemoryError as error:
            raise out_of_memory(error, config) from error
    return state.history


def start_on_device(
    config: PPOConfig,
    task: Task | str,
    *,
    device: str | torch.device = "cpu",
    normalize: bool = False,
    parts: Parts = Parts(),  # noqa: B008  (frozen)
    resume: str | Path | Mapping[str, Any] | None = None,
) -> tuple[TrainState, Parts]:
    """Make what `captured` and `time_stages` take: the run, and the parts that fit the device.

    Args:
        config: every number of the run.
        task: the rules, or their name in `ppo_lessons.envs.TASKS`.
        device: where everything lives.
        normalize: scale observations and rewards.
        parts: the functions that fill the loop's slots.
        resume: a checkpoint, or its path.

    Returns:
        The run before its first iteration (or where the checkpoint was taken), and the parts.

    Raises:
        ValueError: as `train_on_device`.
    """
    envs = device_envs(config, task, device=device, normalize=normalize)
    parts = fitted(parts, envs)
    check_fits(config, envs)
    try:
        state = start(config, envs, parts)
        if resume is not None:
            resume_here(state, read_checkpoint(resume))
    except torch.OutOfMemoryError as error:
        raise out_of_memory(error, config) from error
    return state, parts


def device_envs(
    config: PPOConfig, task: Task | str, *, device: str | torch.device, normalize: bool
) -> Envs:
    """Make the environments of a run.

    Raises:
        ValueError: if the device or the name of the task is unknown.
    """
    envs = BatchedEnvs(named(task), config.num_envs, device=checked_device(device))
    return NormalizedEnvs(envs, gamma=config.gamma) if normalize else envs


def named(task: Task | str) -> Task:
    """Give the rules of a name.

    Raises:
        ValueError: if there is no task of that name, with those that there are.
    """
    if not isinstance(task, str):
        return task
    if task not in TASKS:
        close = difflib.get_close_matches(task, TASKS, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "Choose one of them, or pass a Task."
        raise ValueError(f"task is {task!r}; expected one of {', '.join(TASKS)}. {hint}")
    return TASKS[task]()


def fitted(parts: Parts, envs: Envs) -> Parts:
    """Choose the networks for boards, where nobody has chosen others."""
    boards = len(envs.single_observation_space.shape or ()) == 3
    if boards and parts.networks is make_networks:
        return replace(parts, networks=pixel_networks)
    return parts


def check_fits(config: PPOConfig, envs: Envs) -> None:
    """Require that the device has the memory that the run needs.

    Raises:
        ValueError: with how much that is, and which setting to lower.
    """
    space = envs.single_observation_space
    dtype = torch.bool if space.dtype == bool else torch.float32
    check_memory(
        config, space.shape or (), dtype, free_memory(envs.device),
        action_size=prod(envs.single_action_space.shape or (0,)),
    )  # fmt: skip


def check_graphs(device: torch.device, graphs: bool) -> None:
    """Require a device that has graphs; the CPU runs the same function without one.

    Raises:
        ValueError: on another accelerator than CUDA.
    """
    if graphs and device.type not in ("cuda", "cpu"):
        raise ValueError(
            f"graphs is true on device {str(device)!r}; expected 'cuda', since CUDA graphs are "
            "NVIDIA's. Leave graphs out."
        )


def current(device: torch.device) -> AbstractContextManager[Any]:
    """Make a GPU the current one meanwhile: a graph is captured on that."""
    chosen = device.type == "cuda" and device.index is not None
    return torch.cuda.device(device) if chosen else nullcontext()


def resume_here(state: TrainState, saved: Mapping[str, Any]) -> None:
    """Put a fresh run where a checkpoint was taken, wherever that was.

    Random numbers of a GPU do not go on on a CPU: then new episodes begin, and `state.resumed` says
    so. Networks, optimiser, rows and the statistics of `NormalizedEnvs` go on anyhow.

    Raises:
        ValueError: if the checkpoint is that of other settings, networks or environments.
    """
    drawn = state.generator.get_state()
    elsewhere = len(saved["generator"]) != len(drawn)
    restore(state, {**saved, "envs": None, "generator": drawn} if elsewhere else saved)
    if elsewhere:
        seed = state.config.seed + state.iteration
        if isinstance(state.envs, NormalizedEnvs) and saved["envs"] is not None:
            state.envs.load_state_dict({**saved["envs"], "envs": None})
        state.carry = start_carry(state.envs, seed=seed)
        state.generator.manual_seed(rank_seed(seed, 1))
        state.resumed = "the checkpoint is that of another device, so new episodes begin here"
    carry = vars(state.carry)
    state.carry = Carry(**{name: part.to(state.envs.device) for name, part in carry.items()})
    place_optimizer(state.optimizer)
