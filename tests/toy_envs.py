"""Environments whose every step is written down beforehand, so that tests know what must come."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn

from ppo_lessons.envs import EnvStep, GymEnvs

MODES = (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)


class Line(NamedTuple):
    """One step of a script: what it earns, and how it ends."""

    reward: float
    terminated: bool = False
    truncated: bool = False


def episode(*rewards: float, end: str) -> list[Line]:
    """An episode with these rewards that ends as `end` says: "terminated" or "truncated"."""
    last = Line(rewards[-1], terminated=end == "terminated", truncated=end == "truncated")
    return [*(Line(reward) for reward in rewards[:-1]), last]


# Two scripts of unequal lengths; a script is repeated when its episodes are used up.
SCRIPTS = (
    [episode(1.0, 2.0, 3.0, end="terminated"), episode(4.0, 5.0, end="truncated")],
    [episode(-1.0, end="truncated"), episode(7.0, 8.0, 9.0, 10.0, end="terminated")],
)


class ScriptedEnv(gymnasium.Env[np.ndarray, np.int64]):
    """Plays a script. An observation is (episode, step), so that no two are equal.

    Args:
        script: episodes, each a list of lines.
        action_bonus: added to the reward when the action is 1.
    """

    def __init__(self, script: list[list[Line]], action_bonus: float = 0.0):
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Discrete(2)
        self.script = script
        self.action_bonus = action_bonus
        self.episode = -1
        self.step_index = 0

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.episode = 0 if seed is not None else self.episode + 1
        self.step_index = 0
        return self._observe(), {}

    def step(self, action: np.int64):
        line = self.script[self.episode % len(self.script)][self.step_index]
        self.step_index += 1
        reward = line.reward + self.action_bonus * float(action)
        return self._observe(), reward, line.terminated, line.truncated, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.episode, self.step_index], dtype=np.float32)


class EndlessReward(gymnasium.Env[np.ndarray, np.int64]):
    """Every step earns 1 for ever; we stop watching after `limit` steps. V = 1 / (1 − gamma)."""

    def __init__(self, limit: int):
        self.observation_space = Box(-1, 1, (1,), np.float32)
        self.action_space = Discrete(2)
        self.limit = limit
        self.elapsed = 0

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.elapsed = 0
        return np.ones(1, dtype=np.float32), {}

    def step(self, action: np.int64):
        self.elapsed += 1
        return np.ones(1, dtype=np.float32), 1.0, False, self.elapsed == self.limit, {}


class BrokenReward(EndlessReward):
    """Gives a reward that is no number at step `limit`."""

    def step(self, action: np.int64):
        observation, reward, terminated, _, extra = super().step(action)
        return (
            observation,
            np.nan if self.elapsed == self.limit else reward,
            terminated,
            False,
            extra,
        )


class Spaces(gymnasium.Env[Any, Any]):
    """Has two spaces and does nothing."""

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]):
        self.observation_space = observation_space
        self.action_space = action_space


def vector(*makers: Any, mode: AutoresetMode = AutoresetMode.SAME_STEP, copy: bool = True):
    """Real gymnasium vector environments behind the protocol."""
    return GymEnvs(SyncVectorEnv(list(makers), autoreset_mode=mode, copy=copy))


def scripted(
    *scripts: list[list[Line]],
    mode: AutoresetMode = AutoresetMode.SAME_STEP,
    action_bonus: float = 0.0,
) -> GymEnvs:
    """One scripted environment per script; observations are views that will be overwritten."""
    makers = [lambda script=script: ScriptedEnv(script, action_bonus) for script in scripts]
    return vector(*makers, mode=mode, copy=False)


def endless(num_envs: int, limit: int) -> GymEnvs:
    """N endless tasks, cut after `limit` steps each."""
    return vector(*[lambda: EndlessReward(limit)] * num_envs)


def same_step(one: EnvStep, other: EnvStep) -> bool:
    """Whether two steps gave the same, bit by bit."""
    return all(
        a is b if a is None or b is None else torch.equal(a, b)
        for a, b in zip(one, other, strict=True)
    )


class FixedPolicy:
    """Chooses by a rule, and gives each action a log-probability that can be recognised."""

    def __init__(self, rule):
        self.rule = rule

    def sample(self, observations, generator):
        actions = self.rule(observations)
        return actions, self.evaluate(observations, actions)[0]

    def evaluate(self, observations, actions):
        log_probs = -0.5 - observations.float().mean(dim=-1) / 100
        return log_probs, torch.zeros_like(log_probs)

    def greedy(self, observations):
        return self.rule(observations)


def by_parity(observations):
    """Action 1 on odd steps."""
    return observations[..., 1].long() % 2


class Coordinate(nn.Module):
    """A critic that can be read: V = weights · observation."""

    def __init__(self, *weights: float):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights))

    def forward(self, observations):
        return observations @ self.weights
