"""The runs of this course."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.ablations import run_replicas
from ppo_lessons.ablations.replicas import Replicas
from ppo_lessons.bench.clock import Clock, Race, repeated
from ppo_lessons.envs import BatchedEnvs, make_envs
from ppo_lessons.envs.classic import CartPole
from ppo_lessons.training_loop import PRESETS, TrainState, train

torch.set_num_threads(1)


def speed(*, num_envs: int, num_steps: int, iterations: int, batched: bool) -> dict[str, Any]:
    """Train with the settings of the preset `classic`, but for N and T.

    Args:
        num_envs: N.
        num_steps: T.
        iterations: how many are run; the first does not count.
        batched: in batched environments, else in gymnasium's.

    Returns:
        Steps and seconds.
    """
    config, parts = PRESETS["classic"]
    config = replace(
        config,
        num_envs=num_envs,
        num_steps=num_steps,
        total_steps=num_envs * num_steps * iterations,
    )
    envs = BatchedEnvs(CartPole(), num_envs) if batched else make_envs(config.env, num_envs)
    clock = Clock()
    train(config, envs=envs, parts=parts, on_iteration=lambda state: clock.mark(state.env_steps))
    return clock.speed()


def replicas(
    *, num_replicas: int, num_envs: int, num_steps: int, iterations: int
) -> dict[str, Any]:
    """Train R learners in one batched run, each with the settings that `speed` has.

    Args:
        num_replicas: R.
        num_envs: N of each.
        num_steps: T.
        iterations: how many are run; the first does not count.

    Returns:
        Steps of all of them, and seconds.
    """
    config, parts = PRESETS["classic"]
    total_steps = num_envs * num_steps * iterations
    config = replace(config, num_envs=num_envs, num_steps=num_steps, total_steps=total_steps)
    configs = [replace(config, seed=seed) for seed in range(num_replicas)]
    clock = Clock()

    def on_iteration(running: Replicas) -> None:
        clock.mark(running.iteration * num_replicas * config.batch_size)

    run_replicas(configs, task=CartPole(), parts=parts, on_iteration=on_iteration)
    return clock.speed()


def solve(
    *, preset: str, batched: bool, seed: int, total_steps: int, **settings: Any
) -> dict[str, Any]:
    """Train until the test is passed.

    Args:
        preset: one of `PRESETS`.
        batched: in batched environments, else in gymnasium's.
        seed: of the run.
        total_steps: where to give up.
        settings: fields of the config in which it differs from the preset.

    Returns:
        Steps and seconds until then.
    """
    config, parts = PRESETS[preset]
    config = replace(config, seed=seed, total_steps=total_steps, **settings)
    envs = BatchedEnvs(CartPole(), config.num_envs) if batched else None
    race = Race()

    def on_iteration(state: TrainState) -> bool:
        return race.passed(state.env_steps, state.networks.policy.greedy)

    train(config, envs=envs, parts=parts, on_iteration=on_iteration)
    return race.reading()


@torch.inference_mode()
def envs(*, num_envs: int, seconds: float) -> dict[str, Any]:
    """Step N copies of CartPole as tensors, with random actions that were drawn before."""
    batched = BatchedEnvs(CartPole(), num_envs)
    batched.reset(1)
    actions = cycle(drawn(num_envs))
    return repeated(lambda: batched.step(next(actions)), seconds=seconds, env_steps=num_envs)


def gym_envs(*, num_envs: int, kind: str, seconds: float) -> dict[str, Any]:
    """Step gymnasium's CartPole with the same actions.

    Args:
        num_envs: N.
        kind: "sync", a Python loop over N, or "vector_entry_point", arrays of N rows.
        seconds: how long (CPU seconds).

    Returns:
        Steps and seconds.
    """
    import gymnasium

    made = gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode=kind)
    made.reset(seed=1)
    actions = cycle([each.numpy() for each in drawn(num_envs)])
    return repeated(lambda: made.step(next(actions)), seconds=seconds, env_steps=num_envs)


def drawn(num_envs: int) -> list[Tensor]:
    """Draw the actions of 64 steps."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(2, (num_envs,), generator=generator) for _ in range(64)]


def gae(*, function: str, num_steps: int, num_envs: int, seconds: float) -> dict[str, Any]:
    """Compute advantages again and again, with ends in every twentieth row or so.

    Args:
        function: of `ppo_lessons.gae`.
        num_steps: T.
        num_envs: N.
        seconds: how long (CPU seconds).

    Returns:
        Environment steps whose advantages were computed, and seconds.
    """
    import ppo_lessons.gae as lesson

    compute = getattr(lesson, function)
    generator = torch.Generator().manual_seed(1)
    rewards, values, next_values = torch.randn(3, num_steps, num_envs, generator=generator)
    terminated, truncated = torch.rand(2, num_steps, num_envs, generator=generator) < 0.05
    return repeated(
        lambda: compute(
            rewards, values, next_values, terminated, truncated, gamma=0.99, gae_lambda=0.95
        ),
        seconds=seconds,
        env_steps=num_steps * num_envs,
    )


def on_device(
    *, device: str, graphs: bool, num_envs: int, num_steps: int, iterations: int
) -> dict[str, Any]:
    """Train with `train_on_device`, with the settings of the preset `classic` but for N and T.

    Args:
        device: "cpu" or "cuda".
        graphs: replay each iteration as a CUDA graph.
        num_envs: N.
        num_steps: T.
        iterations: how many are run; the first does not count.

    Returns:
        Steps and seconds, and the most memory that torch held on the GPU (MiB).
    """
    from ppo_lessons.gpu_run import train_on_device

    config, parts = PRESETS["classic"]
    config = replace(
        config,
        num_envs=num_envs,
        num_steps=num_steps,
        total_steps=num_envs * num_steps * iterations,
    )
    clock = Clock()

    def on_iteration(state: TrainState) -> None:
        if device == "cuda":
            torch.cuda.synchronize()  # the clock must not stop before the device does
        clock.mark(state.env_steps)

    train_on_device(
        config, CartPole(), device=device, graphs=graphs, parts=parts, on_iteration=on_iteration
    )
    held = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else None
    return {**clock.speed(), "gpu_peak_mib": held}
