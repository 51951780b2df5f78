"""The studies of the course by name: `ppo-lessons study run parts`.

Their expectations were written down before any of them ran.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from types import MappingProxyType
from typing import Any

import torch
from torch import Generator, Tensor, nn

from ppo_lessons.ablations.study import Setting, Study
from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.networks import CRITIC_GAIN, POLICY_GAIN, Networks, make_networks
from ppo_lessons.rollout import flags_merged
from ppo_lessons.training_loop import Parts, PPOConfig
from ppo_lessons.trust_region import AdaptivePenalty, penalty_loss

# 8 environments, so that 64 steps each make a batch of 512; 8 epochs are heavy reuse.
BASE = PPOConfig(
    total_steps=40_960, num_envs=8, num_steps=64, num_epochs=8, num_minibatches=4,
    learning_rate=2e-3, hidden_sizes=(32, 32),
)  # fmt: skip
SEEDS = range(1, 65)
FEWER_SEEDS = range(1, 17)
LEARNING_RATES, EPOCHS = (5e-4, 2e-3, 8e-3), (1, 4, 16)


# --- parts that only a study needs ---------------------------------------------------------


def as_they_are(advantages: Tensor) -> Tensor:
    """Do not normalise."""
    return advantages


def decided_start(
    observation_shape: Sequence[int], action_space: Any, *, hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:  # fmt: skip
    """Start with a last layer of the policy as large as the critic's, not 100 times smaller."""
    networks = make_networks(
        observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    with torch.no_grad():
        networks.policy.body[-1].weight.mul_(CRITIC_GAIN / POLICY_GAIN)
    return networks


def uniform_start(
    observation_shape: Sequence[int], action_space: Any, *, hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:  # fmt: skip
    """Start as PyTorch's layers do: weights and biases uniform within ±1/√inputs."""
    networks = make_networks(
        observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    for layer in networks.modules():
        if isinstance(layer, nn.Linear):
            widest = 1 / sqrt(layer.in_features)
            nn.init.uniform_(layer.weight, -widest, widest, generator=generator)
            nn.init.uniform_(layer.bias, -widest, widest, generator=generator)
    return networks


# --- the tables ----------------------------------------------------------------------------


def settings_of(base: PPOConfig) -> dict[str, Setting]:
    """Every setting of the course by its name; the first is the usual one.

    The eleven rows of table 1 of the PPO paper (Schulman et al. 2017) come first.
    """

    def setting(name: str, parts: Parts = Parts(), **numbers: Any) -> Setting:  # noqa: B008
        return Setting(name, replace(base, **numbers), parts)

    def penalty(loss: Callable[..., Any]) -> Parts:
        return Parts(policy_loss=loss)

    table = [
        setting("clip 0.2"),
        setting("clip 0.1", clip_epsilon=0.1),
        setting("clip 0.3", clip_epsilon=0.3),
        setting("no clip", Parts(policy_loss=surrogate_loss)),
        *(
            setting(f"adaptive penalty {kl}", penalty(AdaptivePenalty(1.0, kl)))
            for kl in (0.003, 0.01, 0.03)
        ),
        *(
            setting(f"fixed penalty {beta}", penalty(partial(penalty_loss, beta=beta)))
            for beta in (0.3, 1.0, 3.0, 10.0)
        ),
        setting("lambda 0", gae_lambda=0.0),
        setting("lambda 1", gae_lambda=1.0),
        setting("advantages not normalised", Parts(normalize=as_they_are)),
        setting("value clipping", Parts(value_loss=clipped_value_loss)),
        setting("entropy bonus 0.01", entropy_coef=0.01),
        setting("no annealing", final_learning_rate=1.0),
        setting("decided start", Parts(networks=decided_start)),
        setting("uniform start", Parts(networks=uniform_start)),
        setting("flags merged", Parts(advantages=flags_merged)),
    ]
    return {entry.name: entry for entry in table}


PARTS = Study(
    name="parts",
    question="Which parts of PPO matter on CartPole, with 8 epochs on each batch?",
    expectation=(
        "Without a clip the return is lower than with clip 0.2, intervals apart. Among clip 0.1, "
        "0.2 and 0.3, between value clipping and none, with and without a small entropy bonus, "
        "and between merged flags and two masks, the intervals overlap. Lambda 0 is lower."
    ),
    settings=list(settings_of(BASE).values()),
    seeds=SEEDS,
    num_points=20,
)

ON_ACROBOT = (
    *("clip 0.2", "no clip", "adaptive penalty 0.01", "lambda 0", "lambda 1"),
    *("advantages not normalised", "value clipping", "entropy bonus 0.01"),
)
PARTS_ACROBOT = Study(
    name="parts_acrobot",
    question="Do the same parts matter on Acrobot?",
    expectation=(
        "Without a clip the return is lower here, too, intervals apart. Value clipping hurts more "
        "than on CartPole, since the clip range has the unit of the reward and values reach -100. "
        "Lambda 0 is lowest: the goal is far away."
    ),
    settings=[settings_of(replace(BASE, total_steps=61_440))[name] for name in ON_ACROBOT],
    seeds=SEEDS,
    task="Acrobot",
    num_points=20,
)

MAP = Study(
    name="map",
    question="Where in the plane of learning rate and epochs does the clip matter?",
    expectation=(
        "At one epoch, and at the lowest learning rate, clip and no clip cannot be told apart. At "
        "learning rate 0.002 with 16 epochs, and at 0.008 from 4 epochs on, no clip is lower."
    ),
    settings=[
        Setting(
            f"{name}, learning rate {learning_rate}, {epochs} epochs",
            replace(BASE, learning_rate=learning_rate, num_epochs=epochs),
            parts,
        )
        for epochs in EPOCHS
        for learning_rate in LEARNING_RATES
        for name, parts in (("clip", Parts()), ("no clip", Parts(policy_loss=surrogate_loss)))
    ],
    seeds=FEWER_SEEDS,
    num_points=20,
)

SPARSE = Study(
    name="sparse",
    question="Does PPO find a goal that no random walk reaches, if entropy is rewarded?",
    expectation="No: all returns stay at -200, with an entropy bonus of 0, 0.01 or 0.1.",
    settings=[
        Setting(f"entropy bonus {coefficient}", replace(BASE, entropy_coef=coefficient))
        for coefficient in (0.0, 0.01, 0.1)
    ],
    seeds=FEWER_SEEDS,
    task="MountainCar",
    num_points=20,
)

STUDIES: Mapping[str, Study] = MappingProxyType(
    {study.name: study for study in (MAP, SPARSE, PARTS, PARTS_ACROBOT)}
)
