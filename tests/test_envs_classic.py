"""The batched classic tasks: equal to gymnasium's, one step at a time."""

from math import cos, sin

import gymnasium
import numpy as np
import pytest
import torch

from ppo_lessons.envs import BatchedEnvs, as_vector_env
from ppo_lessons.envs.classic import (
    Acrobot,
    CartPole,
    MountainCar,
    MountainCarContinuous,
    Pendulum,
    wrapped,
)
from ppo_lessons.envs.equality import compare_steps


def put_numbers(env, state):
    env.state = np.array(list(state.values()))
    env.steps_beyond_terminated = None


def put_pair(env, state):
    env.state = tuple(state.values())


def all_of_it(env):
    return np.array(env.state, dtype=np.float64)


def angle_and_turning(env):
    angle, turning = env.state
    return np.array([cos(angle), sin(angle), turning])


def both_angles(env):
    first, second, one, two = env.state
    return np.array([cos(first), sin(first), cos(second), sin(second), one, two])


TASKS = {
    "CartPole-v1": (CartPole, put_numbers, all_of_it),
    "Pendulum-v1": (Pendulum, put_numbers, angle_and_turning),
    "Acrobot-v1": (Acrobot, put_numbers, both_angles),
    "MountainCar-v0": (MountainCar, put_pair, all_of_it),
    "MountainCarContinuous-v0": (MountainCarContinuous, put_numbers, all_of_it),
}
# gymnasium keeps this state in float32, so its own rounding is what is left: 2⁻²⁴ of about 1.
ROUNDED = {"MountainCarContinuous-v0": 1e-7}


def differences(name, steps, task=None, seed=0):
    make, put, seen = TASKS[name]
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    return compare_steps(task or make(), env, put, seen, steps=steps, seed=seed)


@pytest.mark.parametrize("name", TASKS)
def test_a_step_from_the_same_state_is_gymnasiums(name):
    found = differences(name, 1600)
    assert found.steps == 1600
    assert found.observations < ROUNDED.get(name, 1e-12)
    assert found.rewards < 1e-12
    assert found.flags == 0


@pytest.mark.full
@pytest.mark.parametrize("name", TASKS)
def test_50_000_steps_are_gymnasiums(name):
    found = differences(name, 50_000, seed=1)
    assert found.observations < ROUNDED.get(name, 1e-12)
    assert found.rewards < 1e-12
    assert found.flags == 0


class LongerPole(CartPole):
    HALF_LENGTH = 0.5001


class OtherThrottle(MountainCarContinuous):
    def earned(self, actions, terminated):
        return super().earned(actions.clamp(-1, 1), terminated)


@pytest.mark.parametrize(
    ("name", "task"), [("CartPole-v1", LongerPole()), ("MountainCarContinuous-v0", OtherThrottle())]
)
def test_a_slightly_wrong_task_is_found(name, task):
    found = differences(name, 640, task)
    assert max(found.observations, found.rewards) > 1e-6


class WiderCartPole(CartPole):
    MOST_ANGLE = 0.21  # instead of 0.2094


def test_a_wrong_limit_is_found_by_the_flags():
    assert differences("CartPole-v1", 6400, WiderCartPole()).flags > 0


@pytest.mark.parametrize("name", TASKS)
def test_spaces_and_time_limits_are_gymnasiums(name):
    env = gymnasium.make(name, disable_env_checker=True)
    task = TASKS[name][0]()
    assert task.time_limit == env.spec.max_episode_steps
    assert type(task.action_space) is type(env.action_space)
    assert task.action_space.shape == env.action_space.shape
    assert np.allclose(task.observation_space.high, env.observation_space.high)
    assert np.allclose(task.observation_space.low, env.observation_space.low)


@pytest.mark.parametrize("name", TASKS)
def test_first_states_are_spread_like_gymnasiums(name):
    """Smallest, largest and mean first observation of 4,000 starts, within sampling error."""
    ours = BatchedEnvs(TASKS[name][0](), 4000).reset(seed=1).numpy()
    env = gymnasium.make(name, disable_env_checker=True)
    theirs = np.stack([env.reset(seed=seed)[0] for seed in range(1000)])
    spread = theirs.max(0) - theirs.min(0) + 1e-9
    for statistic in (np.min, np.max, np.mean):
        assert (np.abs(statistic(ours, axis=0) - statistic(theirs, axis=0)) < 0.06 * spread).all()


def test_angles_are_wrapped_like_gymnasiums():
    angles = torch.tensor([-16.0, -3.2, -3.1, 0.0, 3.1, 3.2, 9.5, 16.0], dtype=torch.float64)
    from gymnasium.envs.classic_control.acrobot import wrap

    by_gymnasium = [wrap(angle, -np.pi, np.pi) for angle in angles.tolist()]
    assert torch.allclose(wrapped(angles), torch.tensor(by_gymnasium, dtype=torch.float64))


def test_the_vector_environment_is_one_that_gymnasium_accepts():
    vector = as_vector_env(BatchedEnvs(CartPole(time_limit=20), 6))
    observations, _ = vector.reset(seed=3)
    assert vector.observation_space.contains(observations)
    ended = 0
    for _ in range(60):
        observations, rewards, terminated, truncated, infos = vector.step(np.ones(6, dtype=int))
        assert rewards.shape == terminated.shape == truncated.shape == (6,)
        over = terminated | truncated
        ended += over.sum()
        if over.any():
            assert (infos["_final_obs"] == over).all()
            for n in np.flatnonzero(over):
                assert not np.allclose(infos["final_obs"][n], observations[n])
    assert ended > 6
    with pytest.raises(ValueError, match="one seed"):
        vector.reset(seed=[1, 2, 3, 4, 5, 6])
