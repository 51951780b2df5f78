"""The runs of Stable-Baselines3, of the extra `bench`."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.bench.clock import Clock, Race

torch.set_num_threads(1)


def speed(*, num_envs: int, num_steps: int, iterations: int) -> dict[str, Any]:
    """Train with what our preset `classic` says, but for N and T.

    Args:
        num_envs: N.
        num_steps: T.
        iterations: how many are run; the first does not count.

    Returns:
        Steps and seconds.
    """
    clock = Clock()
    model = make(
        num_envs,
        n_steps=num_steps,
        batch_size=num_envs * num_steps // 4,
        n_epochs=4,
        learning_rate=lambda left: 2.5e-4 * left,
        clip_range=0.2,
        clip_range_vf=0.2,
        ent_coef=0.01,
        gamma=0.99,
        gae_lambda=0.95,
        seed=1,
    )

    def on_rollout(model: Any) -> bool:
        clock.mark(model.num_timesteps)
        return False

    model.learn(num_envs * num_steps * iterations, callback=watching(on_rollout))
    clock.mark(model.num_timesteps)
    return {**clock.speed(), "versions": versions()}


def solve(*, seed: int, total_steps: int) -> dict[str, Any]:
    """Train with the settings that RL Zoo tuned for CartPole-v1, until the test is passed.

    Args:
        seed: of the run.
        total_steps: where to give up; RL Zoo trains for 100,000.

    Returns:
        Steps and seconds until then.
    """
    model = make(
        8,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        ent_coef=0.0,
        gamma=0.98,
        gae_lambda=0.8,
        seed=seed,
    )
    race = Race()

    def greedy(observations: Tensor) -> Tensor:
        return torch.as_tensor(model.predict(observations.numpy(), deterministic=True)[0])

    def on_rollout(model: Any) -> bool:
        return race.passed(model.num_timesteps, greedy)

    model.learn(total_steps, callback=watching(on_rollout))
    return {**race.reading(), "versions": versions()}


def make(num_envs: int, **settings: Any) -> Any:
    """Make PPO on N environments of gymnasium, on the CPU."""
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.env_util import (  # pyright: ignore[reportMissingImports]
        make_vec_env,
    )

    envs = make_vec_env("CartPole-v1", n_envs=num_envs, seed=settings["seed"])
    return PPO("MlpPolicy", envs, vf_coef=0.5, max_grad_norm=0.5, device="cpu", **settings)


def watching(on_rollout: Callable[[Any], bool]) -> Any:
    """Give a callback that asks at the start of each rollout whether to stop."""
    from stable_baselines3.common.callbacks import (  # pyright: ignore[reportMissingImports]
        BaseCallback,
    )

    class Watching(BaseCallback):
        stop = False

        def _on_rollout_start(self) -> None:
            self.stop = on_rollout(self.model)

        def _on_step(self) -> bool:  # their way to stop: say no after a step
            return not self.stop

    return Watching()


def versions() -> dict[str, str]:
    """Version of the library."""
    return {"stable-baselines3": version("stable-baselines3")}
