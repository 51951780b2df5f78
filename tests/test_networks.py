"""Networks: initial weights, the policy's distribution, and randomness from one place only."""

import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from mistakes import under_test
from torch import nn
from torch.distributions import Categorical, Independent, Normal
from torch.testing import assert_close

from ppo_lessons.activations import Tanh
from ppo_lessons.networks import (
    CategoricalPolicy,
    Critic,
    GaussianPolicy,
    Networks,
    Policy,
    gaussian_entropies,
    gaussian_log_probs,
    linear,
    make_networks,
    mlp,
    pick,
    pixel_networks,
)

# Claims take these as fixtures, so that they can be tried on mistakes as well.
right_log_probs = under_test(gaussian_log_probs)
right_entropies = under_test(gaussian_entropies)
right_policy = under_test(GaussianPolicy)


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
    assert [type(layer) for layer in network] == [nn.Linear, Tanh, nn.Linear]
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


# --- Actions that are real numbers ---------------------------------------------------------------

LOG_STDS = torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64)


def real(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


class Means(nn.Module):
    """The mean is the first dimensions of the observation, times a weight."""

    def __init__(self, num_dimensions: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.num_dimensions = num_dimensions

    def forward(self, observations):
        return self.weight * observations[..., : self.num_dimensions]


def test_a_standard_normal_at_its_mean_has_the_density_of_every_table(gaussian_log_probs):
    # 1/√(2π) = 0.3989 in one dimension, its square in two
    for dimensions in (1, 2):
        zero = torch.zeros(1, dimensions, dtype=torch.float64)
        density = gaussian_log_probs(zero, zero, zero[0]).exp()
        assert density.tolist() == pytest.approx([0.3989422804014327**dimensions], rel=1e-12)


def test_gaussian_log_probs_are_those_of_torch(gaussian_log_probs):
    actions, means = real(5, 7, 3), real(5, 7, 3, seed=1)
    theirs = Independent(Normal(means, LOG_STDS.exp()), 1).log_prob(actions)
    log_probs = gaussian_log_probs(actions, means, LOG_STDS)
    assert log_probs.shape == (5, 7)
    assert_close(log_probs, theirs, rtol=1e-12, atol=1e-12)


def test_gradients_of_the_log_density_are_those_by_hand(gaussian_log_probs):
    # with z = (a − μ)/σ:   ∂/∂μ = z/σ,   ∂/∂log σ = z² − 1
    actions, means = real(4, 3), real(4, 3, seed=1).requires_grad_()
    log_stds = LOG_STDS.clone().requires_grad_()
    gaussian_log_probs(actions, means, log_stds).sum().backward()
    scores = (actions - means.detach()) / LOG_STDS.exp()
    assert means.grad is not None, "the means learn"
    assert_close(means.grad, scores / LOG_STDS.exp())
    assert_close(log_stds.grad, (scores**2 - 1).sum(0))


def test_a_density_adds_up_to_one(gaussian_log_probs):
    places = torch.linspace(-9, 9, 2001, dtype=torch.float64).unsqueeze(-1)
    for log_std in (-0.5, 0.0, 0.4):
        log_stds = torch.tensor([log_std], dtype=torch.float64)
        densities = gaussian_log_probs(places, torch.zeros_like(places), log_stds).exp()
        assert (densities.sum() * 18 / 2000).item() == pytest.approx(1, abs=1e-6)


def test_gaussian_entropies_are_those_of_torch(gaussian_entropies):
    theirs = Independent(Normal(torch.zeros_like(LOG_STDS), LOG_STDS.exp()), 1).entropy()
    entropy = gaussian_entropies(LOG_STDS)
    assert entropy.shape == ()
    assert_close(entropy, theirs)


def test_the_entropy_is_the_mean_of_what_was_drawn(gaussian_entropies):
    # −log π has the variance A/2, whatever σ is: four standard errors of 100 000 draws are 0.016
    actions = LOG_STDS.exp() * real(100_000, 3)
    surprise = -Independent(Normal(torch.zeros(3).double(), LOG_STDS.exp()), 1).log_prob(actions)
    assert gaussian_entropies(LOG_STDS).item() == pytest.approx(surprise.mean().item(), abs=0.016)


def test_draws_have_the_mean_and_the_spread_they_should_have(GaussianPolicy):
    # 40 000 draws of σ = e^0.5 = 1.65: four standard errors of the mean are 0.033, of σ 0.023
    policy = GaussianPolicy(Means(2), 2, log_std=0.5)
    observations = torch.tensor([3.0, -1.0]).expand(40_000, 2)
    actions, _ = policy.sample(observations, generator(3))
    assert_close(actions.mean(0).detach(), torch.tensor([3.0, -1.0]), rtol=0, atol=0.033)
    assert_close(actions.std(0).detach(), torch.full((2,), math.exp(0.5)), rtol=0, atol=0.024)


def test_dimensions_and_rows_are_drawn_independently(GaussianPolicy):
    # the correlation of 10 000 independent pairs is within 4/√10 000 of 0
    policy = GaussianPolicy(Means(2), 2)
    actions, _ = policy.sample(torch.zeros(10_000, 3, 2), generator(4))
    pairs = torch.corrcoef(actions.detach().flatten(1).T) - torch.eye(6)
    assert pairs.abs().max() < 0.04
    assert actions.flatten().unique().numel() > 50_000


def test_the_log_probs_that_come_with_actions_are_those_of_evaluating_them(GaussianPolicy):
    policy, observations = GaussianPolicy(Means(2), 2), torch.randn(64, 2, generator=generator(1))
    actions, log_probs = policy.sample(observations, generator())
    assert actions.shape == (64, 2)
    assert log_probs.shape == (64,)
    assert torch.equal(log_probs, policy.evaluate(observations, actions)[0])
    theirs = Independent(Normal(observations, torch.ones(2)), 1).log_prob(actions)
    assert_close(log_probs, theirs)
    assert actions.abs().max() > 1, "draws are kept as they are, however far out"


def test_the_greedy_action_is_the_mean(GaussianPolicy):
    policy, observations = GaussianPolicy(Means(2), 2), torch.randn(8, 5, generator=generator(1))
    assert torch.equal(policy.greedy(observations), observations[:, :2])


def test_every_state_has_an_entropy_of_its_own(GaussianPolicy):
    policy, observations = GaussianPolicy(Means(2), 2), torch.zeros(4, 3, 2)
    log_probs, entropies = policy.evaluate(observations, torch.zeros(4, 3, 2))
    assert log_probs.shape == entropies.shape == (4, 3)
    assert_close(entropies.detach(), torch.full((4, 3), math.log(2 * math.pi * math.e)))


def test_mean_and_spread_are_learned(GaussianPolicy):
    policy = GaussianPolicy(Means(2), 2)
    observations = torch.randn(8, 2, generator=generator(1))
    log_probs, entropies = policy.evaluate(observations, torch.ones(8, 2))
    (log_probs.sum() + entropies.sum()).backward()
    for parameter in policy.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().min() > 0


def test_the_network_is_chosen_by_the_action_space():
    made = [
        make_networks((4,), space, hidden_sizes=(8,), generator=generator()).policy
        for space in (3, Discrete(3), Box(-1, 1, (3,)), Box(-np.inf, np.inf, (3,)))
    ]
    kinds = [CategoricalPolicy, CategoricalPolicy, GaussianPolicy, GaussianPolicy]
    assert [type(policy) for policy in made] == kinds
    assert all(isinstance(policy, Policy) for policy in made)
    for policy in made:
        assert torch.equal(policy.body[0].weight, made[0].body[0].weight)
        assert policy.body[-1].out_features == 3
    assert made[2].log_stds.tolist() == [0, 0, 0]


@pytest.mark.messages
@pytest.mark.parametrize(
    "space",
    [MultiDiscrete([2, 2]), Dict({"a": Discrete(2)}), Box(-1, 1, (2, 2)), Discrete(2, start=1)],
)
def test_an_action_space_without_a_policy_is_refused(space):
    with pytest.raises(ValueError, match="expected Discrete") as raised:
        make_networks((4,), space, hidden_sizes=(8,), generator=generator())
    assert str(raised.value) == (
        f"the action space is {space}; expected Discrete actions counted from 0, or real numbers "
        "in a Box with one axis. Wrap the environment so that its actions are of such a kind, or "
        "pass a function of your own as Parts(networks=...)."
    )


@pytest.mark.messages
def test_actions_that_would_broadcast_are_refused():
    column, row, log_stds = torch.zeros(4, 1), torch.zeros(4), torch.zeros(1)
    with pytest.raises(ValueError, match=r"actions has shape \(4,\); expected \(4, 1\) like means"):
        gaussian_log_probs(row, column, log_stds)
    with pytest.raises(
        ValueError, match=r"log_stds has shape \(1,\); expected \(3,\), one for each"
    ):
        gaussian_log_probs(torch.zeros(4, 3), torch.zeros(4, 3), log_stds)


# --- Boards --------------------------------------------------------------------------------------


def boards(*batch: int, shape=(6, 5, 2)) -> torch.Tensor:
    return torch.rand(*batch, *shape, generator=generator(2)) < 0.5


@pytest.mark.parametrize("batch", [(), (5,), (4, 3)])
@pytest.mark.parametrize("space", [Discrete(3), Box(-1, 1, (2,))])
def test_boards_give_one_action_and_one_value_each(batch, space):
    networks = pixel_networks((6, 5, 2), space, hidden_sizes=(8,), generator=generator())
    actions, log_probs = networks.policy.sample(boards(*batch), generator())
    assert actions.shape == (*batch, *space.shape)
    assert log_probs.shape == networks.critic(boards(*batch)).shape == batch
    assert torch.equal(networks.policy.evaluate(boards(*batch), actions)[0], log_probs)


def test_each_filter_sees_three_by_three_cells_of_all_channels():
    """A board with one set cell: what the filters give is their weight at that cell, cut at 0."""
    networks = pixel_networks((6, 5, 2), 3, hidden_sizes=(8,), generator=generator())
    view = networks.policy.body[0]
    board = torch.zeros(6, 5, 2, dtype=torch.bool)
    board[3, 2, 1] = True
    seen = view(board).reshape(16, 4, 3)
    for row in range(4):
        for column in range(3):
            up, left = 3 - row, 2 - column  # where the cell lies in the window
            inside = 0 <= up < 3 and 0 <= left < 3
            expected = view.filters.weight[:, 1, up, left].relu() if inside else torch.zeros(16)
            assert_close(seen[:, row, column], expected)


def test_networks_for_boards_draw_from_the_given_generator_only():
    before = torch.get_rng_state()
    one, other = (
        pixel_networks((6, 5, 2), 3, hidden_sizes=(8,), generator=generator()) for _ in range(2)
    )
    assert torch.equal(before, torch.get_rng_state())
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.messages
@pytest.mark.parametrize("shape", [(4,), (2, 5, 3), (8, 8)])
def test_what_is_no_board_is_refused(shape):
    with pytest.raises(ValueError, match="expected \\(rows, columns, channels\\) with at least 3"):
        pixel_networks(shape, 3, hidden_sizes=(8,), generator=generator())
