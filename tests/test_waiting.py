"""Between the first step of a rollout and its row of metrics, nothing waits for the device.

An accelerator is forced upon the CPU: the branches that only it takes are taken here, under a mode
that refuses every operation which would make the host wait.
"""

import importlib
from dataclasses import replace

import pytest
import torch
from test_training_loop import TINY, generator, small_networks
from torch.testing import assert_close
from waiting import NoWaiting, Waits

from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.envs import CartPole
from ppo_lessons.envs.batched import BatchedEnvs
from ppo_lessons.gae import compute_gae, gae_by_scan
from ppo_lessons.networks import make_networks
from ppo_lessons.rollout import collect_rollout, score_values, start_carry
from ppo_lessons.training_loop import Parts, make_optimizer, score, squeeze, update


@pytest.fixture
def accelerator(monkeypatch):
    """Take the branches of a device whose values are not at hand."""
    for module in ("shapes", "rollout.score", "training_loop.update"):
        found = importlib.import_module(f"ppo_lessons.{module}")
        monkeypatch.setattr(found, "at_hand", lambda tensor: False)


def cart_poles(num_envs: int = TINY.num_envs) -> BatchedEnvs:
    envs = BatchedEnvs(CartPole(time_limit=6), num_envs)  # ends fall inside a rollout
    envs.checks_values = False
    return envs


def collected() -> tuple:
    networks = make_networks((4,), 2, hidden_sizes=(8,), generator=generator())
    envs = cart_poles()
    rollout, _ = collect_rollout(
        envs, networks.policy, start_carry(envs, seed=1), num_steps=8, generator=generator()
    )
    return networks, rollout


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x.tolist(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.masked_select(x > 0),
        lambda x: x.index_put_((x > 0,), torch.zeros(())),
        lambda x: torch.equal(x, x),
        lambda x: x.numpy(),
    ],
)
def test_the_mode_refuses_what_waits(ask):
    numbers = torch.ones(3)
    ask(numbers)
    with pytest.raises(Waits), NoWaiting():
        ask(numbers)


def test_the_mode_lets_pass_what_does_not_wait():
    numbers = torch.randn(3, generator=generator())
    with NoWaiting():
        torch.where(numbers > 0, numbers, 0).masked_fill(numbers < 0, 1)[torch.tensor([2, 0])].sum()


def test_collecting_does_not_wait(accelerator):
    networks, envs = small_networks(4), cart_poles()
    carry = start_carry(envs, seed=1)
    with NoWaiting():
        rollout, _ = collect_rollout(
            envs, networks.policy, carry, num_steps=8, generator=generator()
        )
    assert rollout.truncated.any()  # the ends were met on the way


@pytest.mark.parametrize("advantages", [compute_gae, gae_by_scan])
def test_scoring_does_not_wait(accelerator, advantages):
    networks, rollout = collected()
    with NoWaiting():
        score(rollout, networks, TINY, Parts(advantages=advantages))


def test_both_ways_of_scoring_agree(monkeypatch):
    networks, rollout = collected()
    few = score_values(networks.critic, rollout)
    module = importlib.import_module("ppo_lessons.rollout.score")
    monkeypatch.setattr(module, "at_hand", lambda tensor: False)
    all_states = score_values(networks.critic, rollout)
    assert_close(few, all_states)
    shifted = replace(rollout, next_observations=rollout.next_observations + 1)
    assert not torch.allclose(score_values(networks.critic, shifted)[1], few[1])


@pytest.mark.parametrize("parts", [Parts(), Parts(value_loss=clipped_value_loss)])
@pytest.mark.parametrize("stage", [update, squeeze])
def test_squeezing_does_not_wait(accelerator, stage, parts):
    networks, rollout = collected()
    batch = score(rollout, networks, TINY, parts)
    optimizer = make_optimizer(networks, learning_rate=1e-2)
    with NoWaiting():
        stats = stage(networks, optimizer, batch, TINY, parts=parts, generator=generator())
    assert stats.kl_k1.shape == (TINY.num_epochs, TINY.num_minibatches)


def test_a_rule_that_stops_early_waits_once_an_epoch():
    networks, rollout = collected()
    batch = score(rollout, networks, TINY, Parts())
    optimizer = make_optimizer(networks, learning_rate=1e-2)
    parts = Parts(stop_epochs=lambda kl_k1: False)
    with pytest.raises(Waits), NoWaiting():
        squeeze(networks, optimizer, batch, TINY, parts=parts, generator=generator())


def test_rows_that_are_no_steps_teach_nothing_on_an_accelerator_either(accelerator):
    learned = []
    for wrong_by in (0.0, 1e3):
        networks, rollout = collected()
        rollout.valid[2:4] = False
        batch = score(rollout, networks, TINY, Parts())
        wrong = wrong_by * ~rollout.valid.flatten()
        batch = replace(batch, returns=batch.returns + wrong, advantages=batch.advantages + wrong)
        optimizer = make_optimizer(networks, learning_rate=1e-2)
        update(networks, optimizer, batch, TINY, parts=Parts(), generator=generator())
        learned.append(torch.cat([each.detach().flatten() for each in networks.parameters()]))
    assert torch.equal(*learned)
