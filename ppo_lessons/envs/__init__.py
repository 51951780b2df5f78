"""Environments: the protocol, gymnasium's behind it, and probes of known value."""

from ppo_lessons.envs.gym import GymEnvs, make_envs
from ppo_lessons.envs.probes import PROBES, Probe
from ppo_lessons.envs.protocol import Envs, EnvStep

__all__ = ["PROBES", "EnvStep", "Envs", "GymEnvs", "Probe", "make_envs"]
