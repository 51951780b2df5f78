"""Networks: initial weights, the policy's distribution, and randomness from one place only."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Categorical
from torch.testing import assert_close

from ppo_lessons.networks import (
    CategoricalPolicy,
    Critic,
    Networks,
    Policy,
    linear,
    make_networks,
    mlp,
    pick,
)


def generator(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def small(seed: int = 0, num_actions: int = 3) -> Networks:
    return make_networks((4,), num_actions, hidden_sizes=(16, 16), generator=generator(seed))


class Logits(nn.Module):
    """Gives the same logits in every state."""

    def __init__(self, *logits: float):
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, observations):
        return self.logits.expand(*observations.shape[:-1], -1)


def layers_of(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


# --- Initial weights -----------------------------------------------------------------------------


@pytest.mark.parametrize(("inputs", "outputs"), [(4, 16), (16, 4), (8, 8)])
def test_initial_weights_are_orthogonal_times_the_gain(inputs, outputs):
    weight = linear(inputs, outputs, gain=3.0, generator=generator()).weight.double()
    short = weight.T @ weight if outputs >= inputs else weight @ weight.T
    # float32 QR: about 1e-7 per entry, times the gain squared.
    assert_close(short, 9 * torch.eye(len(short)).double(), rtol=0, atol=1e-5)


def test_each_layer_has_its_own_gain():
    networks = small()
    gains = [
        torch.linalg.matrix_norm(layer.weight, ord=2).item()
        for layer in [*layers_of(networks.policy), *layers_of(networks.critic)]
    ]
    root = math.sqrt(2)
    assert gains == pytest.approx([root, root, 0.01, root, root, 1.0], rel=1e-5)


def test_biases_are_zero():
    assert all(not layer.bias.any() for layer in layers_of(small()))


def test_the_first_policy_is_nearly_uniform():
    # Hidden activations are below 1 in size and the last gain is 0.01: logits stay below
    # 0.01·sqrt(16), so no probability is off by more than 4 percent.
    observations = torch.randn(100, 4, generator=generator(1))
    probabilities = small().policy.all_log_probs(observations).exp()
    assert (probabilities - 1 / 3).abs().max() < 0.04 / 3 * 2


def test_the_same_seed_gives_the_same_weights():
    same = zip(small(3).state_dict().values(), small(3).state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)
    assert not torch.equal(layers_of(small(3))[0].weight, layers_of(small(4))[0].weight)


def test_policy_and_critic_share_nothing():
    networks = small()
    policy = {id(parameter) for parameter in networks.policy.parameters()}
    assert policy.isdisjoint(id(parameter) for parameter in networks.critic.parameters())
    assert not torch.equal(
        layers_of(networks.policy)[0].weight, layers_of(networks.critic)[0].weight
    )


def test_tanh_stands_between_layers_and_nothing_after_the_last():
    network = mlp(2, (3,), 1, output_gain=1.0, generator=generator())
    assert [type(layer) for layer in network] == [nn.Linear, nn.Tanh, nn.Linear]
    first, last = layers_of(network)
    x = torch.randn(5, 2, generator=generator(1))
    expected = torch.tanh(x @ first.weight.T) @ last.weight.T
    assert_close(network(x), expected)


def test_no_hidden_layer_is_a_linear_map():
    network = mlp(2, (), 3, output_gain=1.0, generator=generator())
    assert [layer.weight.shape for layer in layers_of(network)] == [(3, 2)]


def test_the_global_random_state_is_left_alone():
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002 (the global state is what is tested)
    networks = small()
    networks.policy.sample(torch.zeros(50, 4), generator())
    networks.policy.evaluate(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64))
    assert torch.equal(torch.get_rng_state(), before_torch)
    after_numpy = np.random.get_state()  # noqa: NPY002 (same)
    assert np.array_equal(before_numpy[1], after_numpy[1])
    assert before_numpy[2] == after_numpy[2]


@pytest.mark.messages
def test_an_observation_with_two_axes_is_refused():
    with pytest.raises(ValueError, match="expected one axis") as raised:
        make_networks((84, 84), 2, hidden_sizes=(8,), generator=generator())
    assert str(raised.value) == (
        "one observation has shape (84, 84); expected one axis. Wrap the environment with "
        "gymnasium.wrappers.FlattenObservation, or pass a function of your own as "
        "Parts(networks=...); for boards and pictures there is networks.pixel_networks."
    )


# --- Policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("logits", [(0.0, 1.0, -2.0, 0.5), (3.0, 0.0), (0.0, 0.0, 0.0)])
def test_actions_are_drawn_as_often_as_their_probabilities_say(logits):
    count = 40_000
    policy = CategoricalPolicy(Logits(*logits))
    actions, _ = policy.sample(torch.zeros(count, 1), generator(7))
    weights = [math.exp(logit) for logit in logits]
    for action, weight in enumerate(weights):
        probability = weight / sum(weights)
        error = math.sqrt(probability * (1 - probability) / count)
        frequency = (actions == action).double().mean().item()
        assert abs(frequency - probability) < 4 * error


def test_draws_in_different_states_are_independent():
    # Two fair coins agree in half of the draws; four standard errors of 10 000 throws are 0.02.
    actions, _ = CategoricalPolicy(Logits(0.0, 0.0)).sample(torch.zeros(10_000, 2, 1), generator(5))
    assert (actions[:, 0] == actions[:, 1]).double().mean().item() == pytest.approx(0.5, abs=0.02)


def test_log_probs_and_entropies_are_those_of_torch():
    networks = small(num_actions=5)
    for layer in layers_of(networks.policy):
        layer.weight.data *= 5  # away from uniform
    observations = torch.randn(7, 3, 4, generator=generator(2))
    actions = torch.randint(5, (7, 3), generator=generator(3))
    theirs = Categorical(logits=networks.policy.body(observations))
    log_probs, entropies = networks.policy.evaluate(observations, actions)
    assert_close(log_probs, theirs.log_prob(actions))
    assert_close(entropies, theirs.entropy())


def test_sampling_gives_the_log_probs_of_evaluating():
    networks, observations = small(), torch.randn(32, 4, generator=generator(2))
    actions, log_probs = networks.policy.sample(observations, generator())
    assert torch.equal(log_probs, networks.policy.evaluate(observations, actions)[0])
    assert actions.dtype == torch.int64
    assert actions.shape == log_probs.shape == (32,)


def test_the_same_generator_draws_the_same_actions():
    networks, observations = small(), torch.zeros(64, 4)
    first, second = (networks.policy.sample(observations, generator(9))[0] for _ in range(2))
    other, _ = networks.policy.sample(observations, generator(10))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_far_apart_logits_leave_no_doubt():
    # A softmax taken twice would give 0.731.
    policy = CategoricalPolicy(Logits(50.0, -50.0))
    log_probs, entropies = policy.evaluate(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))
    assert log_probs.exp().item() > 0.99
    assert 0 <= entropies.item() < 1e-6


def test_the_greedy_action_is_the_most_likely_one():
    assert CategoricalPolicy(Logits(0.0, 2.0, 1.0)).greedy(torch.zeros(3, 1)).tolist() == [1, 1, 1]


def test_logits_shifted_by_a_constant_are_the_same_policy():
    one, other = CategoricalPolicy(Logits(1.0, 2.0)), CategoricalPolicy(Logits(101.0, 102.0))
    observations = torch.zeros(1, 1)
    assert_close(
        one.all_log_probs(observations), other.all_log_probs(observations), rtol=1e-5, atol=1e-5
    )


def test_pick_takes_the_entry_that_the_action_names():
    table = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    assert_close(pick(table, torch.tensor([2, 0])), torch.tensor([0.3, 0.4]))


def test_a_categorical_policy_is_a_policy():
    assert isinstance(small().policy, Policy)


# --- Critic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(5,), (5, 3), ()])
def test_the_critic_gives_one_number_per_state(batch):
    values = small().critic(torch.zeros(*batch, 4))
    assert values.shape == batch


def test_a_batch_of_one_keeps_its_axis():
    assert Critic(nn.Linear(4, 1))(torch.zeros(1, 4)).shape == (1,)


def test_an_action_that_is_ruled_out_adds_nothing_to_the_entropy():
    logits = torch.tensor([0.0, 0.0, -torch.inf]).requires_grad_()
    policy = CategoricalPolicy(Always(logits))
    log_probs, entropies = policy.evaluate(torch.zeros(1, 1), torch.tensor([0]))
    assert entropies.item() == pytest.approx(math.log(2), rel=1e-6)
    (entropies.sum() + log_probs.sum()).backward()
    assert torch.isfinite(logits.grad[:2]).all()


class Always(nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, observations):
        return self.logits.expand(len(observations), -1)
