"""Presets against the numbers that others published."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.optim import Adam

from ppo_lessons.activations import Tanh
from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.envs import Probe, make_envs
from ppo_lessons.networks import make_networks
from ppo_lessons.training_loop import PRESETS, Parts, PPOConfig, train

# theirs: CleanRL, cleanrl/ppo.py, class Args of github.com/vwxyzjn/cleanrl; copied by hand.
CLEANRL = {
    "env_id": "CartPole-v1",
    "seed": 1,
    "total_timesteps": 500_000,
    "learning_rate": 2.5e-4,
    "num_envs": 4,
    "num_steps": 128,
    "anneal_lr": True,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "num_minibatches": 4,
    "update_epochs": 4,
    "norm_adv": True,
    "clip_coef": 0.2,
    "clip_vloss": True,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "target_kl": None,
}
OURS = {
    "env": "env_id",
    "total_steps": "total_timesteps",
    "num_epochs": "update_epochs",
    "clip_epsilon": "clip_coef",
    "entropy_coef": "ent_coef",
    "value_coef": "vf_coef",
}


def test_classic_has_the_published_numbers():
    config = dataclasses.asdict(PRESETS["classic"].config)
    assert config.pop("hidden_sizes") == (64, 64)
    assert config.pop("final_learning_rate") == 0.0  # anneal_lr
    assert config == {name: CLEANRL[OURS.get(name, name)] for name in config}


def test_classic_has_the_published_sizes():
    # There: batch_size = 4·128 = 512, minibatch_size = 512 // 4 = 128, 500000 // 512 = 976.
    config = PRESETS["classic"].config
    assert config.batch_size == 512
    assert config.batch_size // config.num_minibatches == 128
    assert config.num_iterations == 976


def test_classic_falls_to_the_learning_rate_that_was_published():
    # There, with iterations counted from 1: frac = 1 − (iteration − 1) / num_iterations.
    config = PRESETS["classic"].config
    for iteration in (1, 2, 500, 976):
        expected = (1.0 - (iteration - 1.0) / 976) * 2.5e-4
        assert config.learning_rate_at(iteration - 1) == pytest.approx(expected)


def test_classic_clips_its_value_loss_and_changes_nothing_else():
    assert PRESETS["classic"].parts == Parts(value_loss=clipped_value_loss)


def test_the_networks_and_the_optimizer_are_those_that_were_published():
    # There: layer_init(Linear, std = sqrt(2)), heads 0.01 and 1, Tanh, 64 wide; Adam(eps = 1e-5).
    networks = make_networks((4,), 2, hidden_sizes=(64, 64), generator=torch.Generator())
    for body, outputs, gain in ((networks.policy.body, 2, 0.01), (networks.critic.body, 1, 1.0)):
        assert [type(layer) for layer in body] == [
            nn.Linear, Tanh, nn.Linear, Tanh, nn.Linear
        ]  # fmt: skip
        assert [layer.weight.shape for layer in body[::2]] == [(64, 4), (64, 64), (outputs, 64)]
        largest = torch.linalg.matrix_norm(body[-1].weight, ord=2)
        assert largest.item() == pytest.approx(gain, rel=1e-5)
    optimizer = PRESETS["classic"].parts.call("optimizer", networks, learning_rate=2.5e-4)
    assert isinstance(optimizer, Adam)
    assert optimizer.defaults["eps"] == 1e-5
    assert optimizer.defaults["betas"] == (0.9, 0.999)
    assert optimizer.defaults["weight_decay"] == 0


def test_quick_is_the_default():
    assert PRESETS["quick"] == (PPOConfig(), Parts())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_runs(name):
    config, parts = PRESETS[name]
    short = dataclasses.replace(config, total_steps=2 * config.batch_size, num_epochs=1)
    history = train(short, parts=parts)
    assert len(history) == 2
    assert history["env_steps"][-1] == short.total_steps


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_its_environment(name):
    config, parts = PRESETS[name]
    shape = (3,) if name == "pendulum" else (4,)
    assert make_envs(config.env, 1).single_observation_space.shape == shape
    assert parts.names("policy_loss", "mask")
    assert parts.names("value_loss", "mask")


@pytest.mark.full
@pytest.mark.parametrize("name", ["quick", "classic"])  # a probe counts its actions
def test_a_preset_learns_to_tell_actions_apart(name):
    config, parts = PRESETS[name]
    short = dataclasses.replace(config, total_steps=100 * config.batch_size)
    networks = train(short, envs=Probe("both", config.num_envs), parts=parts).networks
    assert networks.policy.greedy(torch.tensor([[-1.0], [1.0]])).tolist() == [0, 1]
