"""gymnasium's vector environments behind the `Envs` protocol, each autoreset mode handled."""

import difflib
import importlib
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from jaxtyping import Float, Shaped
from torch import Tensor

from ppo_lessons.envs.actions import check_action_space, check_action_values, check_actions
from ppo_lessons.envs.protocol import EnvStep, check_numbers

# The state of these is one small array, a step counter and a generator.
RESTORABLE = (CartPoleEnv, AcrobotEnv, MountainCarEnv, Continuous_MountainCarEnv, PendulumEnv)
# These wrappers keep nothing but what `save_env` writes down; any other one may.
KNOWN_WRAPPERS = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


def make_envs(env: str, num_envs: int) -> "GymEnvs":
    """Make N copies of a gymnasium environment that reset themselves within the same step.

    Args:
        env: the id under which gymnasium knows the environment, like "CartPole-v1"; with
            "module:" before it, that module is imported first.
        num_envs: N, at least 1.

    Returns:
        The environments, not yet reset.

    Raises:
        ValueError: if gymnasium does not know the id, N is below 1, or the spaces are not
            supported.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs is {num_envs}; expected at least 1. Choose num_envs=8.")
    module, _, name = env.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        spec = gymnasium.spec(name)
    except ImportError as error:
        raise ValueError(
            f"env is {env!r}, and {module} cannot be imported ({error}); expected a module that "
            "registers the environment. Install it, or correct the name."
        ) from error
    except gymnasium.error.Error as error:
        close = difflib.get_close_matches(name, gymnasium.registry, n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(close)}?" if close else "List them: gymnasium.registry."
        raise ValueError(
            f"env is {env!r}; expected an id that gymnasium knows ({error}). {hint}"
        ) from error
    makers = [lambda: gymnasium.make(spec, disable_env_checker=True)] * num_envs
    try:
        envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        raise ValueError(
            f"env is {env!r}, which needs something that is not installed ({error}); expected an "
            "environment that can be made here. Install what is missing, or choose another."
        ) from error
    return GymEnvs(envs)


class GymEnvs:
    """A gymnasium vector environment as `Envs`.

    The three autoreset modes differ in what `step` returns when an episode ends:

    - SAME_STEP: the first observation of the next episode, and the last one in `info["final_obs"]`.
    - NEXT_STEP: the last observation; the following step ignores its action and resets. That row
      is no step of the task, so it is marked invalid.
    - DISABLED: the last observation; the environment waits, and this class resets it.

    Args:
        envs: the vector environment; observations must be a `Box`, actions `Discrete` or real
            numbers in a `Box`. Those that lie outside their box are cut to it before they are sent.

    Raises:
        ValueError: if a space is not supported.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]):
        check_spaces(envs)
        self.envs = envs
        self.num_envs = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.device = torch.device("cpu")
        self.name = envs.spec.id if envs.spec else type(envs).__name__
        self.autoreset_mode = AutoresetMode(envs.metadata["autoreset_mode"])
        # Under NEXT_STEP: where the next call to step will reset instead of stepping.
        self._resets_next = np.zeros(self.num_envs, dtype=bool)
        self._begins = True

    def reset(self, seed: int) -> Float[Tensor, " N *observation"]:
        """Start every environment afresh, each with a seed of its own derived from `seed`.

        gymnasium's own rule (seed, seed + 1, ...) would share most episodes between runs with
        neighbouring seeds.
        """
        self._resets_next[:] = False
        self._begins = True
        if isinstance(self.envs.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            seeds = np.random.SeedSequence(seed).generate_state(self.num_envs).tolist()
            observations, _ = self.envs.reset(seed=seeds)
        else:
            observations, _ = self.envs.reset(seed=seed)
        started = as_observations(observations)
        check_numbers(self.name, observations=started)
        return started

    def step(self, actions: Shaped[Tensor, " N *action"]) -> EnvStep:
        """Take one action in each environment.

        Raises:
            ValueError: if the actions do not fit the action space, or a reward or an observation
                is not finite.
        """
        observations, rewards, terminated, truncated, infos = self.envs.step(self._sent(actions))
        ended = terminated | truncated
        reached = as_observations(observations)
        valid = ~self._resets_next
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            self._resets_next = ended.copy()
        next_observations = reached
        if ended.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            next_observations = reached.clone()
            for index in np.flatnonzero(ended):
                next_observations[index] = as_observations(infos["final_obs"][index])
        if ended.any() and self.autoreset_mode is AutoresetMode.DISABLED:
            observations, _ = self.envs.reset(options={"reset_mask": ended.copy()})
            reached = as_observations(observations)
        earned = torch.tensor(rewards, dtype=torch.float32)
        check_numbers(self.name, rewards=earned, observations=next_observations)
        if reached is not next_observations:
            check_numbers(self.name, observations=reached)
        return EnvStep(
            observations=reached,
            next_observations=next_observations,
            rewards=earned,
            terminated=torch.tensor(terminated, dtype=torch.bool),
            truncated=torch.tensor(truncated, dtype=torch.bool),
            valid=torch.tensor(valid),
        )

    def state_dict(self) -> dict[str, Any] | None:
        """Save classic-control environments exactly; None for all others."""
        if not self._restorable():
            return None
        return {"envs": [save_env(env) for env in self._members()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: if the state is that of another number or kind of environments.
        """
        saved = [one["kind"] for one in state.get("envs", [])]
        expected = [kind_of(env) for env in self._members()]
        if not self._restorable() or saved != expected:
            raise ValueError(
                f"the saved state is that of {describe(saved)}; expected that of "
                f"{describe(expected)}. Make the same environments as in the saved run."
            )
        self.reset(seed=0)  # so that the wrappers know an episode is running
        for env, one in zip(self._members(), state["envs"], strict=True):
            load_env(env, one)

    def _sent(self, actions: Shaped[Tensor, " N *action"]) -> np.ndarray:
        """What gymnasium is given: real actions are cut to the box, in the box's own dtype."""
        space = self.single_action_space
        check_actions(actions, space, self.num_envs)
        real = isinstance(space, Box)
        # counted actions once: no policy's number of actions grows while it plays
        if real or self._begins:
            check_action_values(actions, space)
        self._begins = False
        if not real:
            return actions.numpy()
        return np.clip(actions.numpy().astype(space.dtype), space.low, space.high)

    def _members(self) -> list[gymnasium.Env[Any, Any]]:
        return list(self.envs.envs) if isinstance(self.envs, SyncVectorEnv) else []

    def _restorable(self) -> bool:
        members = self._members()
        return (
            bool(members)
            and self.autoreset_mode is AutoresetMode.SAME_STEP
            and all(type(env.unwrapped) in RESTORABLE for env in members)
            and all(isinstance(one, KNOWN_WRAPPERS) for env in members for one in layers(env)[:-1])
        )


def check_spaces(envs: VectorEnv[Any, Any, Any]) -> None:
    """Require observations in a `Box`, and actions that are counted or real numbers.

    Raises:
        ValueError: otherwise, with the space that was found.
    """
    observations, actions = envs.single_observation_space, envs.single_action_space
    if not isinstance(observations, Box):
        raise ValueError(
            f"the observation space is {observations}; expected a Box. Wrap the environment, "
            "for instance with gymnasium.wrappers.FlattenObservation."
        )
    check_action_space(actions)


def as_observations(observations: Any) -> Float[Tensor, "..."]:
    """Copy observations into float32; a copy, since gymnasium may reuse its arrays."""
    return torch.tensor(np.asarray(observations), dtype=torch.float32)


def save_env(env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """One classic-control environment as plain numbers."""
    core: Any = env.unwrapped
    generator = core.np_random.bit_generator.state
    return {
        "kind": kind_of(env),
        "state": [float(number) for number in core.state],
        "dtype": np.asarray(core.state).dtype.name,  # float32 arithmetic goes on as float32
        "steps_beyond_terminated": getattr(core, "steps_beyond_terminated", None),
        "elapsed_steps": [
            layer._elapsed_steps for layer in layers(env) if isinstance(layer, TimeLimit)
        ],
        # As text: these two are integers of 128 bits.
        "generator": {name: str(number) for name, number in generator["state"].items()},
        "has_uint32": generator["has_uint32"],
        "uinteger": generator["uinteger"],
    }


def load_env(env: gymnasium.Env[Any, Any], saved: dict[str, Any]) -> None:
    """Undo `save_env`."""
    core: Any = env.unwrapped
    core.state = np.array(saved["state"], dtype=saved["dtype"])
    if hasattr(core, "steps_beyond_terminated"):
        core.steps_beyond_terminated = saved["steps_beyond_terminated"]
    limits = [layer for layer in layers(env) if isinstance(layer, TimeLimit)]
    for layer, elapsed in zip(limits, saved["elapsed_steps"], strict=True):
        layer._elapsed_steps = elapsed
    generator = core.np_random.bit_generator.state
    generator["state"] = {name: int(text) for name, text in saved["generator"].items()}
    generator["has_uint32"] = saved["has_uint32"]
    generator["uinteger"] = saved["uinteger"]
    core.np_random.bit_generator.state = generator


def kind_of(env: gymnasium.Env[Any, Any]) -> str:
    """The name of the environment inside its wrappers."""
    return type(env.unwrapped).__name__


def describe(kinds: list[str]) -> str:
    """How many environments, and of which kinds."""
    return f"{len(kinds)} environments ({', '.join(sorted(set(kinds))) or 'none'})"


def layers(env: gymnasium.Env[Any, Any]) -> list[gymnasium.Env[Any, Any]]:
    """The environment and the wrappers around it, outermost first."""
    found = [env]
    while isinstance(found[-1], gymnasium.Wrapper):
        found.append(found[-1].env)
    return found
