"""The loop: what one update does to the networks, what a run gives back, and how it ends."""

import math
import signal
import sys
import threading
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from mistakes import claims_about, mistakes_of, refuses, under_test
from mistakes.training_loop import MISTAKES
from torch import nn
from torch.optim import SGD
from torch.testing import assert_close
from toy_envs import MODES, SCRIPTS, Coordinate, FixedPolicy, by_parity, endless, episode, scripted

from ppo_lessons.clip import clip_fractions, clipped_surrogate_loss
from ppo_lessons.envs import PROBES, BatchedEnvs, Probe, make_envs
from ppo_lessons.envs.classic import Pendulum
from ppo_lessons.gae import compute_gae, normalize_advantages
from ppo_lessons.importance import approximate_kl, importance_ratios
from ppo_lessons.networks import Networks, make_networks
from ppo_lessons.rollout import collect_rollout, start_carry
from ppo_lessons.training_loop import (
    Parts,
    PPOConfig,
    clipped_gradient_step,
    evaluate,
    make_optimizer,
    minibatch_loss,
    ppo_loss,
    score,
    shuffled_minibatches,
    train,
    update,
)
from ppo_lessons.training_loop.update import measure
from ppo_lessons.types import Batch, UpdateStats

# Claims take these as fixtures, so that they can be tried on mistakes as well.
right_update = under_test(update)
right_gae = under_test(compute_gae)
right_normalize = under_test(normalize_advantages)
right_total_loss = under_test(ppo_loss)
right_policy_loss = under_test(clipped_surrogate_loss)
right_gradient_step = under_test(clipped_gradient_step)
right_minibatches = under_test(shuffled_minibatches)
right_networks = under_test(make_networks)

# Learning tests run on one seed, and on two more with --full.
SEEDS = [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]

TINY = PPOConfig(
    total_steps=32 * 5,
    num_envs=4,
    num_steps=8,
    num_epochs=3,
    num_minibatches=4,
    learning_rate=1e-2,
    hidden_sizes=(8,),
    gamma=0.9,
)


def generator(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def small_networks(inputs: int = 1) -> Networks:
    return make_networks((inputs,), 2, hidden_sizes=(8,), generator=generator(3))


def scored_batch(config: PPOConfig = TINY, parts: Parts | None = None) -> tuple[Networks, Batch]:
    """Networks, and a batch that they collected and scored in a probe."""
    networks, envs = small_networks(), Probe("both", config.num_envs)
    rollout, _ = collect_rollout(
        envs,
        networks.policy,
        start_carry(envs, seed=1),
        num_steps=config.num_steps,
        generator=generator(),
    )
    return networks, score(rollout, networks, config, parts or Parts())


def squeeze(update, config: PPOConfig = TINY, **parts) -> tuple[Networks, Batch, UpdateStats]:
    networks, batch = scored_batch(config)
    optimizer = make_optimizer(networks, learning_rate=config.learning_rate)
    stats = update(networks, optimizer, batch, config, parts=Parts(**parts), generator=generator(5))
    return networks, batch, stats


def weights_of(networks: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(networks.parameters()).detach().clone()


def spy(function, seen: list):
    """The same function, with its arguments written down."""

    def listening(*positional):
        seen.append([tensor.detach().clone() for tensor in positional])
        return function(*positional)

    return listening


# --- Squeeze: frozen data, and a ratio that starts at 1 ------------------------------------------


def test_the_ratio_is_one_on_the_first_minibatch_and_on_no_other(update):
    _, _, stats = squeeze(update)
    deviations = stats.max_ratio_deviation.flatten()
    assert deviations[0] == 0
    assert (deviations[1:] > 0).all()
    one_step_per_epoch = squeeze(update, replace(TINY, num_minibatches=1))[2]
    assert (one_step_per_epoch.max_ratio_deviation[1:] > 0).all()


def test_targets_stay_as_they_were_scored(update):
    seen = []
    config = replace(TINY, num_minibatches=1)
    _, batch, _ = squeeze(update, config, value_loss=spy(half_squares, seen))
    assert len(seen) == config.num_epochs
    for _, targets in seen:
        assert torch.equal(targets.sort().values, batch.returns.sort().values)


def test_advantages_stay_as_they_were_scored(update):
    seen = []
    config = replace(TINY, num_minibatches=1)
    _, batch, _ = squeeze(update, config, normalize=spy(lambda advantages: advantages, seen))
    assert len(seen) == config.num_epochs
    for (advantages,) in seen:
        assert torch.equal(advantages.sort().values, batch.advantages.sort().values)


def half_squares(values, returns):
    return ((values - returns) ** 2).mean() / 2


def test_an_update_changes_the_networks_and_not_the_batch():
    networks, batch = scored_batch()
    before = {f.name: getattr(batch, f.name).clone() for f in fields(Batch)}
    weights = weights_of(networks)
    optimizer = make_optimizer(networks, learning_rate=1e-2)
    update(networks, optimizer, batch, TINY, parts=Parts(), generator=generator())
    assert all(torch.equal(before[name], getattr(batch, name)) for name in before)
    assert not torch.equal(weights, weights_of(networks))


def test_returns_are_advantages_plus_values_before_any_normalising(compute_gae):
    # Every episode of this probe is one step long, so what came back is the reward itself.
    config, envs = TINY, Probe("both", 4)
    networks = small_networks()
    rollout, _ = collect_rollout(
        envs, networks.policy, start_carry(envs, seed=1), num_steps=8, generator=generator()
    )
    batch = score(rollout, networks, config, Parts(advantages=compute_gae))
    assert_close(batch.returns, rollout.rewards.flatten())


def test_one_sample_normalizes_to_a_finite_number(normalize_advantages):
    assert torch.isfinite(normalize_advantages(torch.tensor([3.0]))).all()


# --- Minibatches ---------------------------------------------------------------------------------


def test_the_minibatches_of_an_epoch_are_a_partition(shuffled_minibatches):
    source = generator()
    for num_rows, num_minibatches in [(32, 4), (10, 3), (7, 7), (5, 1)]:
        dealt = list(shuffled_minibatches(num_rows, num_minibatches, generator=source))
        assert len(dealt) == num_minibatches
        assert sorted(torch.cat(dealt).tolist()) == list(range(num_rows))
        sizes = [len(indices) for indices in dealt]
        assert max(sizes) - min(sizes) <= 1


def test_every_epoch_deals_anew(shuffled_minibatches):
    source = generator()
    first, second = (torch.cat(list(shuffled_minibatches(64, 4, generator=source))) for _ in "12")
    assert not torch.equal(first, second)
    assert not torch.equal(first, torch.arange(64))


def test_every_row_is_learned_from_once_in_each_epoch():
    seen = []
    _, batch, _ = squeeze(update, value_loss=spy(half_squares, seen))
    assert len(seen) == TINY.num_epochs * TINY.num_minibatches
    for epoch in range(TINY.num_epochs):
        here = seen[epoch * TINY.num_minibatches : (epoch + 1) * TINY.num_minibatches]
        targets = torch.cat([targets for _, targets in here])
        assert torch.equal(targets.sort().values, batch.returns.sort().values)


# --- Losses --------------------------------------------------------------------------------------


def twice(batch: Batch) -> Batch:
    return batch.rows(torch.arange(len(batch)).repeat(2))


def test_repeating_the_batch_leaves_its_loss_unchanged(clipped_surrogate_loss):
    networks, batch = scored_batch()
    moved = small_networks()
    moved.policy.body[-1].bias.data += torch.tensor([0.1, -0.1])  # so that ratios are not 1
    parts = Parts(policy_loss=clipped_surrogate_loss)
    once, measured = minibatch_loss(moved, batch, TINY, parts)
    again, measured_again = minibatch_loss(moved, twice(batch), TINY, parts)
    assert_close(once, again)
    assert_close(measured, measured_again)
    assert not torch.equal(weights_of(moved), weights_of(networks))


def test_a_step_makes_a_good_action_more_likely(clipped_surrogate_loss):
    networks, batch = scored_batch()
    batch = replace(batch, advantages=torch.where(batch.actions == 1, 1.0, -1.0))
    step_on(networks, batch, policy_loss=clipped_surrogate_loss)
    after, _ = networks.policy.evaluate(batch.observations, torch.ones_like(batch.actions))
    # The first policy is within 0.01 of uniform in every state.
    assert after.exp().mean() > 0.55


def test_a_step_on_the_entropy_alone_raises_it(ppo_loss):
    networks, batch = scored_batch()
    networks.policy.body[-1].bias.data += torch.tensor([1.0, -1.0])
    before = networks.policy.evaluate(batch.observations, batch.actions)[1].mean()

    def nothing(log_probs, log_probs_old, advantages):
        return 0 * log_probs.sum()

    config = replace(TINY, entropy_coef=1.0, value_coef=0.0)
    step_on(networks, batch, config, policy_loss=nothing, total_loss=ppo_loss)
    after = networks.policy.evaluate(batch.observations, batch.actions)[1].mean()
    assert after > before + 0.01


def test_a_step_brings_the_critic_nearer_to_the_returns(ppo_loss):
    networks, batch = scored_batch()
    before = (networks.critic(batch.observations) - batch.returns).square().mean()
    step_on(networks, batch, total_loss=ppo_loss)
    after = (networks.critic(batch.observations) - batch.returns).square().mean()
    assert after < before


def step_on(networks: Networks, batch: Batch, config: PPOConfig = TINY, **parts) -> None:
    """Ten full-batch steps of plain gradient descent; the ratio stays inside the clip."""
    one = replace(config, num_epochs=10, num_minibatches=1)
    parts = {"normalize": lambda advantages: advantages, **parts}
    optimizer = SGD(networks.parameters(), lr=0.1)
    update(networks, optimizer, batch, one, parts=Parts(**parts), generator=generator())


def test_the_loss_is_the_three_terms_by_hand(ppo_loss):
    terms = torch.tensor(0.3), torch.tensor(2.0), torch.tensor(0.6)
    loss = ppo_loss(*terms, value_coef=0.5, entropy_coef=0.1)
    assert loss.item() == pytest.approx(0.3 + 0.5 * 2.0 - 0.1 * 0.6)


def test_what_is_measured_is_measured_before_the_step():
    networks, batch = scored_batch()
    config = replace(TINY, num_epochs=1, num_minibatches=1)
    _, entropies = networks.policy.evaluate(batch.observations, batch.actions)
    expected_value_loss = half_squares(networks.critic(batch.observations), batch.returns)
    optimizer = make_optimizer(networks, learning_rate=1e-2)
    stats = update(networks, optimizer, batch, config, parts=Parts(), generator=generator())
    assert_close(stats.entropy[0, 0], entropies.mean().detach())
    assert_close(stats.value_loss[0, 0], expected_value_loss.detach())
    assert stats.kl_k1.item() == stats.kl_k3.item() == 0
    assert stats.fraction_outside.item() == stats.fraction_zero_gradient.item() == 0
    # Ratios of 1 and advantages of mean 0: the loss is 0 and its gradient is not.
    assert stats.policy_loss.abs().item() < 1e-6
    assert stats.gradient_norm.item() > 0


@pytest.mark.parametrize("mask", [None, torch.arange(300) % 3 > 0])
def test_measures_are_those_of_the_lessons_functions(mask):
    old, moved, advantages = torch.randn(3, 300, generator=generator()).unbind()
    log_probs_old, log_probs = old - 3, old - 3 + 0.2 * moved
    if mask is not None:
        log_probs = log_probs.masked_fill(~mask, math.nan)
    given = log_probs, log_probs_old
    outside, silent = clip_fractions(*given, advantages, clip_epsilon=0.2, mask=mask)
    kept = slice(None) if mask is None else mask
    expected = {
        "kl_k1": approximate_kl(*given, estimator="k1", mask=mask),
        "kl_k3": approximate_kl(*given, estimator="k3", mask=mask),
        "fraction_outside": outside,
        "fraction_zero_gradient": silent,
        "max_ratio_deviation": (importance_ratios(*given)[kept] - 1).abs().max(),
    }
    assert 0.05 < silent < outside < 0.5, "the cases must be there"
    assert_close(measure(*given, advantages, 0.2, mask), expected)


# --- One gradient step ---------------------------------------------------------------------------


class Weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))


def test_a_long_gradient_is_shortened_and_a_short_one_is_not(clipped_gradient_step):
    for limit, expected in [(0.5, [-0.3, -0.4]), (10.0, [-3.0, -4.0])]:
        one = Weight()
        loss = (one.weight * torch.tensor([3.0, 4.0])).sum()  # gradient (3, 4), length 5
        optimizer = SGD(one.parameters(), lr=1.0)
        norm = clipped_gradient_step(loss, one, optimizer, max_grad_norm=limit)
        assert norm.item() == pytest.approx(5.0)
        assert_close(one.weight.detach(), torch.tensor(expected))


def test_a_step_forgets_the_gradient_of_the_step_before(clipped_gradient_step):
    one = Weight()
    optimizer = SGD(one.parameters(), lr=1.0)
    for _ in range(3):
        loss = (one.weight * torch.tensor([3.0, 4.0])).sum()
        norm = clipped_gradient_step(loss, one, optimizer, max_grad_norm=100.0)
        assert norm.item() == pytest.approx(5.0)
    assert_close(one.weight.detach(), torch.tensor([-9.0, -12.0]))


def test_policy_and_critic_are_shortened_together():
    networks, batch = scored_batch()
    config = replace(TINY, num_epochs=1, num_minibatches=1, max_grad_norm=1e-3)
    optimizer = SGD(networks.parameters(), lr=1.0)
    before = weights_of(networks)
    update(networks, optimizer, batch, config, parts=Parts(), generator=generator())
    assert (weights_of(networks) - before).norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_a_policy_can_be_certain(make_networks):
    networks = make_networks((1,), 2, hidden_sizes=(8,), generator=generator())
    networks.policy.body[-1].bias.data.copy_(torch.tensor([50.0, -50.0]))
    action = torch.zeros(1, dtype=torch.int64)
    log_probs, _ = networks.policy.evaluate(torch.zeros(1, 1), action)
    assert log_probs.exp().item() > 0.99


# --- The named mistakes --------------------------------------------------------------------------

CAUGHT_BY = {
    "old_log_probs_recomputed": test_the_ratio_is_one_on_the_first_minibatch_and_on_no_other,
    "returns_follow_the_critic": test_targets_stay_as_they_were_scored,
    "advantages_against_the_new_critic": test_advantages_stay_as_they_were_scored,
    "normalized_before_the_returns": (
        test_returns_are_advantages_plus_values_before_any_normalising
    ),
    "deviation_of_one_sample": test_one_sample_normalizes_to_a_finite_number,
    "entropy_sign": test_a_step_on_the_entropy_alone_raises_it,
    "value_loss_left_out": test_a_step_brings_the_critic_nearer_to_the_returns,
    "loss_sign": test_a_step_makes_a_good_action_more_likely,
    "sum_instead_of_mean": test_repeating_the_batch_leaves_its_loss_unchanged,
    "clipped_before_backward": test_a_long_gradient_is_shortened_and_a_short_one_is_not,
    "gradients_never_cleared": test_a_step_forgets_the_gradient_of_the_step_before,
    "with_replacement": test_the_minibatches_of_an_epoch_are_a_partition,
    "remainder_dropped": test_the_minibatches_of_an_epoch_are_a_partition,
    "never_shuffled": test_every_epoch_deals_anew,
    "double_softmax": test_a_policy_can_be_certain,
}


@pytest.mark.parametrize("mistake", mistakes_of("training_loop"), ids=lambda mistake: mistake.name)
def test_mistake_is_caught(mistake):
    assert refuses(CAUGHT_BY[mistake.name], mistake.breaks, mistake.function)


@pytest.mark.parametrize("target", sorted({m.breaks for m in mistakes_of("training_loop")}))
def test_each_claim_refuses_a_mistake(target):
    functions = [m.function for m in mistakes_of("training_loop") if m.breaks == target]
    for name, claim in claims_about(target, sys.modules[__name__]).items():
        assert any(refuses(claim, target, function) for function in functions), name


@pytest.mark.parametrize(
    ("slot", "name"),
    [
        ("advantages", "normalized_before_the_returns"),
        ("normalize", "deviation_of_one_sample"),
        ("total_loss", "entropy_sign"),
        ("policy_loss", "loss_sign"),
        ("gradient_step", "gradients_never_cleared"),
        ("minibatches", "with_replacement"),
        ("networks", "double_softmax"),
    ],
)
def test_a_mistake_fits_its_slot_and_runs(slot, name):
    history = train(TINY, envs=Probe("both", 4), parts=Parts(**{slot: MISTAKES[name]}))
    assert len(history) == TINY.num_iterations


# --- Stopping epochs and steps -------------------------------------------------------------------


def test_stopping_leaves_the_remaining_epochs_out():
    asked = []

    def after_two(kl_k1):
        asked.append(kl_k1)
        return len(asked) == 2

    _, _, stats = squeeze(update, replace(TINY, num_epochs=9), stop_epochs=after_two)
    assert stats.kl_k1.shape == (2, TINY.num_minibatches)
    assert asked == pytest.approx(stats.kl_k1.mean(dim=1).tolist())


def test_a_run_writes_down_how_many_epochs_there_were():
    history = train(TINY, envs=Probe("both", 4), parts=Parts(stop_epochs=lambda kl_k1: True))
    assert history["num_epochs"] == [1] * TINY.num_iterations
    assert train(TINY, envs=Probe("both", 4))["num_epochs"] == [3] * TINY.num_iterations


@pytest.mark.parametrize(("total_steps", "expected"), [(32, 1), (63, 1), (64, 2), (1000, 31)])
def test_the_last_incomplete_iteration_is_left_out(total_steps, expected):
    assert replace(TINY, total_steps=total_steps).num_iterations == expected


@pytest.mark.parametrize(
    ("final", "expected"), [(0.0, [1.0, 0.75, 0.5, 0.25]), (0.2, [1.0, 0.8, 0.6, 0.4])]
)
def test_the_learning_rate_falls_linearly(final, expected):
    config = replace(TINY, total_steps=128, learning_rate=1.0, final_learning_rate=final)
    used = []
    history = train(
        config,
        envs=Probe("constant_reward", 4),
        on_iteration=lambda state: used.append(state.optimizer.param_groups[0]["lr"]),
    )
    assert history["learning_rate"] == pytest.approx(expected)
    assert used == pytest.approx(expected)


# --- A whole run ---------------------------------------------------------------------------------

LEARNER = PPOConfig(
    total_steps=64 * 40,
    num_envs=8,
    num_steps=8,
    num_epochs=4,
    num_minibatches=2,
    learning_rate=2e-2,
    hidden_sizes=(16,),
    gamma=0.9,
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_learned(name, seed):
    # 40 iterations; over seeds 1 to 3 the largest error of a value was below 0.01, and the smallest
    # probability of a best action above 0.99. The bounds leave room for another processor.
    networks = train(replace(LEARNER, seed=seed), envs=Probe(name, 8)).networks
    rule = PROBES[name]
    for place, value in rule.values.items():
        observation = torch.tensor([[place]])
        assert networks.critic(observation).item() == pytest.approx(value(0.9), abs=0.05)
        if place in rule.actions:
            action = torch.tensor([rule.actions[place]])
            assert networks.policy.evaluate(observation, action)[0].exp().item() > 0.95
            assert networks.policy.greedy(observation).item() == rule.actions[place]


def test_the_same_seed_gives_the_same_run():
    first, second = (train(TINY, envs=Probe("both", 4)) for _ in range(2))
    assert torch.equal(weights_of(first.networks), weights_of(second.networks))
    assert without_clock(first) == without_clock(second)
    other = train(replace(TINY, seed=2), envs=Probe("both", 4))
    assert not torch.equal(weights_of(first.networks), weights_of(other.networks))


def without_clock(history) -> list[dict]:
    return [{key: row[key] for key in row if key != "seconds"} for row in history]


def test_training_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    train(replace(TINY, total_steps=64))
    assert torch.equal(torch.get_rng_state(), before)


def test_environments_are_made_from_the_config():
    seen = []
    config = replace(TINY, env="Acrobot-v1", total_steps=32)
    train(config, on_iteration=lambda state: seen.append(state.envs.single_observation_space.shape))
    assert seen == [(6,)]


def test_rows_count_steps_and_episodes():
    # Episodes of 3 and 2 steps that earn 6 and 9, and of 1 and 4 steps that earn −1 and 34.
    config = replace(TINY, num_envs=2, num_steps=5, total_steps=20, num_minibatches=1)
    history = train(config, envs=scripted(*SCRIPTS))
    assert history["iteration"] == [1, 2]
    assert history["env_steps"] == [10, 20]
    assert history["num_episodes"] == [4, 4]
    assert history["episode_return"] == [12.0, 12.0]


def test_the_shown_return_is_that_of_the_last_hundred_episodes():
    # 150 episodes of one step; the n-th earns n, so the last hundred earn 51 … 150.
    script = [episode(float(n), end="terminated") for n in range(1, 151)]
    config = replace(TINY, num_envs=1, num_steps=50, total_steps=150)
    history = train(config, envs=scripted(script))
    assert history["episode_return"] == [25.5, 50.5, 100.5]


def test_what_cannot_be_known_is_none():
    history = train(replace(TINY, num_steps=4, total_steps=16), envs=endless(4, limit=100))
    assert history["episode_return"] == [None]
    assert history["ev_monte_carlo"] == [None]
    assert history["num_episodes"] == [0]


def test_explained_variance_is_measured_against_what_came_and_against_the_target():
    # The reward is the observation, ±1, and every episode is one step: both targets are the
    # reward. Without a step the critic V = 0.5·observation explains 1 − 0.25 of it.
    def networks(shape, action_space, *, generator):
        made = make_networks(shape, action_space, hidden_sizes=(4,), generator=generator)
        made.critic = Coordinate(0.5)
        return made

    config = replace(TINY, total_steps=32)
    history = train(config, envs=Probe("reward_by_observation", 4), parts=Parts(networks=networks))
    assert history["ev_lambda"] == pytest.approx([0.75])
    assert history["ev_monte_carlo"] == pytest.approx([0.75])


@pytest.mark.messages
@pytest.mark.parametrize("envs", [make_envs("Pendulum-v1", 4), BatchedEnvs(Pendulum(), 4)])
def test_networks_whose_policy_does_not_fit_are_refused_at_the_first_step(envs):
    def two_actions(observation_shape, action_space, *, hidden_sizes, generator):
        return make_networks(observation_shape, 2, hidden_sizes=hidden_sizes, generator=generator)

    with pytest.raises(ValueError, match=r"expected \(4, 1\) and real numbers") as raised:
        train(TINY, envs=envs, parts=Parts(networks=two_actions))
    assert str(raised.value).endswith("Parts(networks=...).")


def test_networks_are_told_the_action_space():
    told = []

    def networks(observation_shape, action_space, *, generator):
        told.append((observation_shape, action_space))
        return make_networks(
            observation_shape, action_space, hidden_sizes=(4,), generator=generator
        )

    for envs in (Probe("both", 4), BatchedEnvs(Pendulum(), 4)):
        train(replace(TINY, total_steps=32), envs=envs, parts=Parts(networks=networks))
        assert told.pop() == (envs.single_observation_space.shape, envs.single_action_space)


@pytest.mark.parametrize(
    "make", [lambda: make_envs("Pendulum-v1", 4), lambda: BatchedEnvs(Pendulum(), 4)]
)
def test_actions_are_kept_as_they_were_drawn_and_rated(make):
    """The environment cuts a torque to ±2; the rollout holds the draw that log_probs_old rates."""
    kept = []
    train(replace(TINY, total_steps=32 * 3), envs=make(), on_iteration=kept.append)
    state = kept[-1]
    rollout, policy = state.rollout, state.networks.policy
    assert rollout.actions.shape == (8, 4, 1)
    assert rollout.actions.abs().max() > 2
    assert policy.log_stds.grad is not None
    first = []

    def look(state):
        first.append((state.rollout, state.stats))
        return True

    train(TINY, envs=make(), on_iteration=look)
    assert first[0][1].max_ratio_deviation[0, 0] < 1e-5  # float32 sums in another order


@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_trains(mode):
    config = replace(TINY, num_envs=2, num_steps=16, total_steps=32 * 3)
    history = train(config, envs=scripted(*SCRIPTS, mode=mode))
    assert all(math.isfinite(row["policy_loss"]) for row in history)
    assert history.stopped == "finished"


@pytest.mark.messages
def test_an_unknown_metric_is_refused():
    history = train(replace(TINY, total_steps=32), envs=Probe("both", 4))
    with pytest.raises(
        KeyError, match="no metric 'approximate_kl'; there are: entropy, "
    ) as raised:
        _ = history["approximate_kl"]
    assert "kl_k1, kl_k3" in str(raised.value)


@pytest.mark.messages
def test_another_number_of_environments_is_refused():
    with pytest.raises(ValueError, match="envs holds") as raised:
        train(TINY, envs=Probe("both", 3))
    assert str(raised.value) == (
        "envs holds 3 environments; expected config.num_envs = 4. Make as many environments as "
        "the config says."
    )


# --- The contract: one part swapped, the loop unchanged ------------------------------------------


def merged_flags(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """A wrong estimate: what was cut is treated as over."""
    return learner_gae(
        rewards, values, next_values, terminated | truncated, truncated, gamma, gae_lambda
    )


def learner_gae(rewards, values, next_values, terminated, truncated, gamma, gae_lambda):
    """The way a learner writes it: plain loops, no checks, hyper-parameters in any position."""
    num_steps, num_envs = rewards.shape
    advantages = torch.zeros(num_steps, num_envs)
    for n in range(num_envs):
        following = 0.0
        for t in range(num_steps - 1, -1, -1):
            bootstrap = 0.0 if terminated[t, n] else next_values[t, n]
            error = rewards[t, n] + gamma * bootstrap - values[t, n]
            if terminated[t, n] or truncated[t, n]:
                following = 0.0
            following = error + gamma * gae_lambda * following
            advantages[t, n] = following
    return advantages


ENDLESS = PPOConfig(
    total_steps=80 * 25,
    num_envs=4,
    num_steps=20,
    num_epochs=4,
    num_minibatches=2,
    learning_rate=3e-2,
    hidden_sizes=(16,),
    gamma=0.9,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_part_is_used_and_its_effect_is_seen(seed):
    # Reward 1 for ever, gamma 0.9: V = 1 / (1 − 0.9) = 10. Watched for 5 steps at a time, and the
    # cut taken for an end, an episode is worth 1 to 4.1, and the critic cannot tell where it is.
    config, where = replace(ENDLESS, seed=seed), torch.ones(1, 1)
    right = train(config, envs=endless(4, limit=5)).networks.critic(where)
    wrong = train(config, envs=endless(4, limit=5), parts=Parts(advantages=merged_flags))
    assert right.item() == pytest.approx(10.0, abs=0.5)
    assert 1.0 < wrong.networks.critic(where).item() < 4.1


def test_without_truncation_the_wrong_part_gives_the_same_run():
    # Which is why the mistake is so common: where every end is a real one, nobody sees it.
    right = train(TINY, envs=Probe("two_step_discount", 4), parts=Parts(advantages=learner_gae))
    wrong = train(TINY, envs=Probe("two_step_discount", 4), parts=Parts(advantages=merged_flags))
    assert torch.equal(weights_of(right.networks), weights_of(wrong.networks))


@pytest.mark.parametrize(
    "make", [lambda: Probe("both", 4), lambda: endless(4, 5), lambda: make_envs("CartPole-v1", 4)]
)
def test_a_learners_function_gives_the_run_of_the_packages(make):
    package = train(TINY, envs=make())
    learner = train(TINY, envs=make(), parts=Parts(advantages=learner_gae))
    # The same operations in the same order: equal to the last bit where this was written, and the
    # tolerance leaves room for a processor that fuses a product and a sum.
    assert_close(weights_of(package.networks), weights_of(learner.networks), rtol=0, atol=1e-6)
    assert package["episode_return"] == learner["episode_return"]


def test_a_loss_of_ones_own_needs_no_mask():
    calls = []

    def kl_penalty(log_probs, log_probs_old, advantages):
        calls.append(len(log_probs))
        log_ratios = log_probs - log_probs_old
        gain = log_ratios.exp() * advantages - 3 * (log_ratios.exp() - 1 - log_ratios)
        return -gain.mean()

    history = train(LEARNER, envs=Probe("both", 8), parts=Parts(policy_loss=kl_penalty))
    assert calls == [32] * (40 * 4 * 2)
    best = history.networks.policy.greedy(torch.tensor([[-1.0], [1.0]]))
    assert best.tolist() == [0, 1]
    clipped = train(LEARNER, envs=Probe("both", 8))
    assert not torch.equal(weights_of(history.networks), weights_of(clipped.networks))


def test_rows_that_are_no_steps_are_left_out_even_for_a_loss_without_a_mask():
    seen = []

    def blind(values, returns):
        seen.append(len(values))
        return ((values - returns) ** 2).mean()

    config = replace(TINY, num_envs=2, num_steps=8, total_steps=16, num_minibatches=1)
    train(config, envs=scripted(*SCRIPTS, mode="NextStep"), parts=Parts(value_loss=blind))
    # 8 rows each: 3 + reset + 2 + reset + 1, and 1 + reset + 4 + reset + 1.
    assert set(seen) == {12}


@pytest.mark.messages
def test_a_batch_without_a_real_step_is_refused():
    networks, batch = scored_batch()
    optimizer = make_optimizer(networks, learning_rate=1e-3)
    empty = replace(batch, valid=torch.zeros_like(batch.valid))
    with pytest.raises(ValueError, match="none of 32 rows is a real step; expected some"):
        update(networks, optimizer, empty, TINY, parts=Parts(), generator=generator())


@pytest.mark.messages
def test_one_sample_per_minibatch_is_refused_where_samples_are_normalized():
    config = replace(TINY, num_minibatches=TINY.batch_size)
    with pytest.raises(ValueError, match="expected at least two samples per minibatch"):
        train(config, envs=Probe("both", 4))
    keep = Parts(normalize=lambda advantages: advantages)
    assert len(train(config, envs=Probe("both", 4), parts=keep)) == config.num_iterations


@pytest.mark.messages
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"policy_loss": lambda new, old, advantages: 0.0}, "Parts.policy_loss gave a float"),
        ({"value_loss": lambda values, returns: values}, "Parts.value_loss gave a Tensor of shape"),
        (
            {"gradient_step": lambda loss, networks, optimizer: None},
            "Parts.gradient_step gave a No",
        ),
        ({"total_loss": lambda policy, value, entropy: 1}, "Parts.total_loss gave a int"),
    ],
)
def test_a_part_that_gives_back_no_number_is_named(parts, words):
    with pytest.raises(TypeError, match=words):
        train(TINY, envs=Probe("both", 4), parts=Parts(**parts))


@pytest.mark.messages
def test_numbers_that_stop_being_finite_end_the_run_with_a_reason():
    with pytest.raises(
        ValueError, match="iteration 1 left gradients or weights that are not finite"
    ):
        train(
            TINY,
            envs=Probe("both", 4),
            parts=Parts(policy_loss=lambda new, old, advantages: new.sum() * torch.nan),
        )


@pytest.mark.messages
def test_environments_of_another_kind_are_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"envs is a str; expected .* Wrap .*: GymEnvs\(envs\)"):
        train(TINY, envs="CartPole-v1")


@pytest.mark.messages
def test_training_turns_gradients_on_and_refuses_inference_mode():
    with torch.no_grad():
        assert len(train(TINY, envs=Probe("both", 4))) == TINY.num_iterations
        assert not torch.is_grad_enabled()
    with torch.inference_mode(), pytest.raises(ValueError, match=r"torch\.inference_mode is on"):
        train(TINY, envs=Probe("both", 4))


def test_another_default_dtype_changes_nothing():
    before = train(TINY, envs=Probe("both", 4))
    torch.set_default_dtype(torch.float64)
    try:
        after = train(TINY, envs=Probe("both", 4))
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(weights_of(before.networks), weights_of(after.networks))


def test_on_iteration_may_stop_the_run():
    history = train(TINY, envs=Probe("both", 4), on_iteration=lambda state: state.iteration == 2)
    assert len(history) == 2
    assert history.stopped == "on_iteration"
    assert repr(history) == "History of 2 iterations (on_iteration)"


@pytest.mark.parametrize("yes", [True, np.bool_(True), torch.tensor(True)])
def test_any_truth_stops_the_run(yes):
    history = train(TINY, envs=Probe("both", 4), on_iteration=lambda state: yes)
    assert (len(history), history.stopped) == (1, "on_iteration")


@pytest.mark.parametrize("no", [False, None, np.bool_(False), torch.tensor(False)])
def test_what_is_not_true_lets_the_run_go_on(no):
    history = train(TINY, envs=Probe("both", 4), on_iteration=lambda state: no)
    assert (len(history), history.stopped) == (TINY.num_iterations, "finished")


@pytest.mark.messages
def test_what_is_no_truth_is_refused():
    with pytest.raises(TypeError, match="on_iteration returned 1; expected true to stop"):
        train(TINY, envs=Probe("both", 4), on_iteration=lambda state: state.iteration)


def test_on_iteration_is_given_the_state_of_that_iteration():
    seen = []

    def look(state):
        assert state.history.rows[-1]["iteration"] == state.iteration
        assert len(state.batch) == state.config.batch_size == state.rollout.rewards.numel()
        assert state.stats.kl_k1.shape == (3, 4)
        assert state.whole
        seen.append(state.env_steps)

    train(TINY, envs=Probe("both", 4), on_iteration=look)
    assert seen == [32, 64, 96, 128, 160]


@pytest.mark.messages
def test_advantages_of_another_shape_are_refused():
    def flat(rewards, values, next_values, terminated, truncated):
        return rewards.flatten()

    with pytest.raises(ValueError, match=r"advantages has shape \(32,\); expected \(8, 4\)"):
        train(TINY, envs=Probe("both", 4), parts=Parts(advantages=flat))


# --- Interruptions and threads -------------------------------------------------------------------


def test_an_interrupt_ends_the_run_after_the_iteration():
    before = signal.getsignal(signal.SIGINT)

    def press(state):
        if state.iteration == 2:
            signal.raise_signal(signal.SIGINT)

    history = train(TINY, envs=Probe("both", 4), on_iteration=press)
    assert history.stopped == "interrupted"
    assert len(history) == 2
    assert torch.isfinite(history.networks.critic(torch.zeros(1, 1))).all()
    assert signal.getsignal(signal.SIGINT) is before


class Pressing(Probe):
    """Presses Ctrl-C, so many times, in its 20th step; iterations have 8 steps."""

    def __init__(self, times: int):
        super().__init__("both", 4)
        self.times, self.steps = times, 0

    def step(self, actions):
        self.steps += 1
        if self.steps == 20:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return super().step(actions)


def test_an_interrupt_within_an_iteration_lets_it_end_whole():
    history = train(TINY, envs=Pressing(1))
    assert history.stopped == "interrupted"
    assert len(history) == 3


def test_a_second_interrupt_ends_the_run_at_once():
    before = signal.getsignal(signal.SIGINT)
    history = train(TINY, envs=Pressing(2))
    assert history.stopped == "interrupted"
    assert len(history) == 2
    assert torch.isfinite(weights_of(history.networks)).all()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_raised_by_an_environment_keeps_what_was_learned():
    class Stopping(Pressing):
        def step(self, actions):
            if self.steps == 19:
                raise KeyboardInterrupt
            return super().step(actions)

    history = train(TINY, envs=Stopping(0))
    two = train(replace(TINY), envs=Probe("both", 4), on_iteration=lambda s: s.iteration == 2)
    assert history.stopped == "interrupted"
    assert torch.equal(weights_of(history.networks), weights_of(two.networks))


def test_the_interrupt_handler_is_restored_after_an_error():
    before = signal.getsignal(signal.SIGINT)

    def fail(state):
        raise RuntimeError("of the test")

    with pytest.raises(RuntimeError, match="of the test"):
        train(TINY, envs=Probe("both", 4), on_iteration=fail)
    assert signal.getsignal(signal.SIGINT) is before


def test_training_works_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(train(TINY, envs=Probe("both", 4))))
    thread.start()
    thread.join()
    assert found[0].stopped == "finished"


def test_torch_runs_on_one_thread_meanwhile():
    before = torch.get_num_threads()
    seen = []
    try:
        torch.set_num_threads(2)
        train(
            replace(TINY, total_steps=32),
            envs=Probe("both", 4),
            on_iteration=lambda state: seen.append(torch.get_num_threads()),
        )
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# --- Evaluate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_each_environment_plays_one_whole_episode(mode):
    # The first episodes earn 1 + 2 + 3 and −1; the second environment goes on meanwhile.
    returns = evaluate(FixedPolicy(by_parity), scripted(*SCRIPTS, mode=mode), seed=0)
    assert returns.tolist() == [6.0, -1.0]


def test_a_greedy_policy_is_evaluated_by_its_most_likely_action():
    policy = small_networks().policy
    policy.body[-1].bias.data.copy_(torch.tensor([0.0, 0.1]))  # action 1, in 52 of 100 cases
    assert evaluate(policy, Probe("reward_by_action", 50), seed=0).tolist() == [1.0] * 50
    drawn = evaluate(policy, Probe("reward_by_action", 50), seed=0, greedy=False)
    assert set(drawn.tolist()) == {-1.0, 1.0}


def test_evaluating_twice_gives_the_same_returns():
    policy = make_networks((4,), 2, hidden_sizes=(8,), generator=generator()).policy
    first, second, other = (
        evaluate(policy, make_envs("CartPole-v1", 5), seed=seed, greedy=False) for seed in (3, 3, 4)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.messages
def test_an_episode_that_does_not_end_is_refused():
    envs = scripted([episode(*[1.0] * 3, end="terminated")], [episode(*[1.0] * 9, end="truncated")])
    with pytest.raises(ValueError, match="max_steps") as raised:
        evaluate(FixedPolicy(by_parity), envs, seed=0, max_steps=5)
    assert str(raised.value) == (
        "1 of 2 episodes had not ended after max_steps=5; expected episodes that end. Give the "
        "environment a time limit."
    )
