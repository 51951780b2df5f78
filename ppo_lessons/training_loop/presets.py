"""Named starting points: a config, and the parts that go with it."""

from typing import NamedTuple

from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.training_loop.config import PPOConfig
from ppo_lessons.training_loop.parts import Parts


class Preset(NamedTuple):
    """A config and the parts that go with it."""

    config: PPOConfig
    parts: Parts


PRESETS: dict[str, Preset] = {
    # Many environments, many epochs: few steps and little time on one CPU core.
    "quick": Preset(PPOConfig(), Parts()),
    # The published hyper-parameters of CleanRL's ppo.py. Two things differ on purpose: a truncated
    # episode keeps its bootstrap here, and normalisation uses the population's deviation.
    "classic": Preset(
        PPOConfig(
            total_steps=500_000,
            num_envs=4,
            num_steps=128,
            num_epochs=4,
            num_minibatches=4,
            learning_rate=2.5e-4,
            final_learning_rate=0.0,
            gamma=0.99,
            gae_lambda=0.95,
            clip_epsilon=0.2,
            value_coef=0.5,
            entropy_coef=0.01,
            max_grad_norm=0.5,
            hidden_sizes=(64, 64),
        ),
        Parts(value_loss=clipped_value_loss),
    ),
    # CartPole as one tensor program: `train(config, envs=BatchedEnvs(CartPole(), 64))`. Twice the
    # environments of "quick" and half its epochs: more steps, each of them cheaper.
    "batched": Preset(
        PPOConfig(
            num_envs=64,
            num_steps=32,
            num_epochs=4,
            num_minibatches=8,
            learning_rate=2.5e-3,
        ),
        Parts(),
    ),
    # Pendulum, an action of one real number (lesson 09). Train it in `NormalizedEnvs` with the same
    # gamma: `train(config, envs=NormalizedEnvs(BatchedEnvs(Pendulum(), 16), gamma=config.gamma))`.
    "pendulum": Preset(
        PPOConfig(
            env="Pendulum-v1",
            total_steps=122_880,
            num_envs=16,
            num_steps=128,
            num_epochs=10,
            num_minibatches=8,
            learning_rate=1e-3,
            gamma=0.95,
        ),
        Parts(),
    ),
}
