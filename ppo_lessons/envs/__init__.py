"""Environments: the protocol, gymnasium's behind it, and small ones of known value."""

from ppo_lessons.envs.gym import GymEnvs, make_envs
from ppo_lessons.envs.lighthouse import Lighthouse
from ppo_lessons.envs.probes import PROBES, Probe
from ppo_lessons.envs.protocol import Envs, EnvStep

__all__ = ["PROBES", "EnvStep", "Envs", "GymEnvs", "Lighthouse", "Probe", "make_envs"]
