"""Environments: the protocol, gymnasium's behind it, batched ones, small ones of known value."""

from ppo_lessons.envs.batched import BatchedEnvs, Task
from ppo_lessons.envs.gym import GymEnvs, make_envs
from ppo_lessons.envs.lighthouse import Lighthouse
from ppo_lessons.envs.probes import PROBES, Probe
from ppo_lessons.envs.protocol import Envs, EnvStep
from ppo_lessons.envs.vector import as_vector_env

__all__ = [
    "PROBES",
    "BatchedEnvs",
    "EnvStep",
    "Envs",
    "GymEnvs",
    "Lighthouse",
    "Probe",
    "Task",
    "as_vector_env",
    "make_envs",
]
