"""The runs of CleanRL's `ppo.py`: the file itself, unmodified, as if from the command line.

Its SyncVectorEnv is watched: at the first step of each iteration the clock is read, or the test is
played with the file's own `agent`. For the race it also resets within the same step, as the
gymnasium did for which the file was written; under today's default it learns from the rows in which
an environment only resets itself. What only feeds the file's log is left out there.
"""

import hashlib
import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Tensor

from ppo_lessons.bench.clock import Clock, Race

torch.set_num_threads(1)
NUM_ENVS, NUM_STEPS = 4, 128  # its defaults, said once more on its command line


class Over(Exception):
    """The test is passed, or the steps are used up: the file need not go on."""


def speed(*, path: str, iterations: int) -> dict[str, Any]:
    """Train with the file's own settings: 4 × 128, 4 epochs, 4 minibatches.

    Args:
        path: of the file.
        iterations: how many are run; the first does not count.

    Returns:
        Steps and seconds.
    """
    clock = Clock()

    def on_iteration(env_steps: int, names: dict[str, Any]) -> None:
        clock.mark(env_steps)

    # One more than is measured: the clock is read where an iteration begins.
    run(path, iterations + 1, seed=1, on_iteration=on_iteration)
    return {**clock.speed(), "versions": versions(path)}


def solve(*, path: str, seed: int, total_steps: int) -> dict[str, Any]:
    """Train with the file's own settings until the test is passed.

    Args:
        path: of the file.
        seed: of the run.
        total_steps: where to give up.

    Returns:
        Steps and seconds until then.
    """
    race = Race()

    def on_iteration(env_steps: int, names: dict[str, Any]) -> None:
        agent = names["agent"]

        def greedy(observations: Tensor) -> Tensor:
            return agent.actor(observations).argmax(-1)

        if race.passed(env_steps, greedy) or env_steps >= total_steps:
            raise Over

    with suppress(Over):  # the step size falls over 976 iterations, as the file's default says
        run(path, 976, seed=seed, on_iteration=on_iteration, autoreset_mode=AutoresetMode.SAME_STEP)
    return {**race.reading(), "versions": versions(path)}


def run(
    path: str,
    iterations: int,
    *,
    seed: int,
    on_iteration: Callable[[int, dict[str, Any]], None],
    autoreset_mode: AutoresetMode | None = None,
) -> None:
    """Run the file as a program, and call on_iteration where one of its iterations begins.

    Args:
        path: of the file.
        iterations: how many it is to run.
        seed: of the run.
        on_iteration: is given the environment steps so far, and the file's global names.
        autoreset_mode: of its environments; gymnasium's default if left out.
    """

    class Watched(SyncVectorEnv):
        calls = 0

        def __init__(self, makers: Any, **settings: Any):
            if autoreset_mode is not None:
                settings["autoreset_mode"] = autoreset_mode
            super().__init__(makers, **settings)

        def step(self, actions: Any) -> Any:
            if self.calls % NUM_STEPS == 0:
                on_iteration(self.calls * self.num_envs, sys._getframe(1).f_globals)
            self.calls += 1
            *what_happened, about = super().step(actions)
            if autoreset_mode is not None:
                about = {}  # its form has changed since, and only the log reads it
            return *what_happened, about

    gymnasium.vector.SyncVectorEnv = Watched
    sys.argv = [
        path, "--no-cuda", "--no-track", "--no-capture-video", "--seed", str(seed),
        "--num-envs", str(NUM_ENVS), "--num-steps", str(NUM_STEPS),
        "--update-epochs", "4", "--num-minibatches", "4",
        "--total-timesteps", str(NUM_ENVS * NUM_STEPS * iterations),
    ]  # fmt: skip
    runpy.run_path(path, run_name="__main__")


def versions(path: str) -> dict[str, str]:
    """What the file is: it has no version, so its first digits of SHA-256."""
    return {"cleanrl/ppo.py": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}
