"""Environments: the protocol, gymnasium's behind it, batched ones, small ones of known value."""

from collections.abc import Callable

from ppo_lessons.envs.batched import BatchedEnvs, Task
from ppo_lessons.envs.breakout import Breakout
from ppo_lessons.envs.classic import (
    Acrobot,
    CartPole,
    MountainCar,
    MountainCarContinuous,
    Pendulum,
)
from ppo_lessons.envs.gym import GymEnvs, make_envs
from ppo_lessons.envs.lighthouse import Lighthouse
from ppo_lessons.envs.normalized import NormalizedEnvs, RunningMoments
from ppo_lessons.envs.probes import PROBES, Probe
from ppo_lessons.envs.protocol import Envs, EnvStep
from ppo_lessons.envs.vector import as_vector_env

# Batched tasks by name: `BatchedEnvs(TASKS["CartPole"](), 64)`.
TASKS: dict[str, Callable[[], Task]] = {
    "CartPole": CartPole,
    "Acrobot": Acrobot,
    "MountainCar": MountainCar,
    "Pendulum": Pendulum,
    "MountainCarContinuous": MountainCarContinuous,
    "Breakout": Breakout,
}

__all__ = [
    "PROBES",
    "TASKS",
    "BatchedEnvs",
    "EnvStep",
    "Envs",
    "GymEnvs",
    "Lighthouse",
    "NormalizedEnvs",
    "Probe",
    "RunningMoments",
    "Task",
    "as_vector_env",
    "make_envs",
]
