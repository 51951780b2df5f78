"""Gradients, pairs of policies and moments of exact MDPs: claims, and the MDPs that have a name.

Algebra in float64 on fewer than ten states keeps 1e-12; a looser tolerance states its reason.
"""

import math

import oracles_mdp as oracles
import pytest
import torch
from mistakes import under_test
from torch.testing import assert_close

from ppo_lessons import mdp as package
from ppo_lessons.mdp import (
    MDP,
    advantages,
    bandit,
    control_variate,
    enumerate_trajectories,
    ergodic,
    expected_return,
    expected_surrogate,
    fork,
    policy_gradient,
    random_walk,
    sample_trajectories,
    softmax_policy,
    state_values,
    state_visits,
    surrogate_trap,
    two_state,
    two_step_sign_flip,
    usual_update,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}

score_table = under_test(package.score_table)
gradient_estimates = under_test(package.gradient_estimates)
mean_and_covariance = under_test(package.mean_and_covariance)
performance_difference = under_test(package.performance_difference)
state_kl = under_test(package.state_kl)
mean_kl = under_test(package.mean_kl)
fisher_matrix = under_test(package.fisher_matrix)
gae_moments = under_test(package.gae_moments)
mean_squared_error = under_test(package.mean_squared_error)


def float64(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def zeros(mdp: MDP):
    return torch.zeros(mdp.num_observations, mdp.rewards.shape[1], dtype=torch.float64)


def uniform(mdp: MDP):
    return softmax_policy(mdp, zeros(mdp))


def endless_mdp(seed: int) -> MDP:
    """May visit states for ever, though every step ends it with probability 0.1 or more."""
    return oracles.random_mdp(seed, num_states=6, num_actions=3, num_observations=4, finite=False)


def finite_mdp(seed: int) -> MDP:
    return oracles.random_mdp(seed, num_states=5, num_actions=2, num_observations=3, finite=True)


def random_features(mdp: MDP, seed: int, num_features: int = 2):
    shape = (mdp.num_observations, mdp.rewards.shape[1], num_features)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def action_one_per_row(mdp: MDP):
    """One parameter for each observation: the logit of action 1."""
    K = mdp.num_observations
    features = torch.zeros(K, 2, K, dtype=torch.float64)
    features[:, 1] = torch.eye(K)
    return features


def times(ratios, estimates):
    return ratios * estimates


# --- Features --------------------------------------------------------------------------


def test_features_are_the_logits_by_hand():
    # z = (0, 2·ln 3 − ln 3): odds 1 : 3
    mdp = bandit([0.0, 0.0])
    features = float64([[0, 0], [2, -1]])
    policy = softmax_policy(mdp, float64(3, 3).log(), features=features)
    assert_close(policy, float64([0.25, 0.75]), **EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_one_feature_per_logit_changes_nothing(seed):
    mdp = endless_mdp(seed)
    logits = oracles.random_logits(mdp, seed)
    features = torch.eye(12, dtype=torch.float64).reshape(4, 3, 12)
    flat = logits.flatten()
    policy = softmax_policy(mdp, flat, features=features)
    assert_close(policy, softmax_policy(mdp, logits), **EXACT)
    for vector in (policy_gradient, usual_update):
        found = vector(mdp, flat, gamma=0.9, features=features)
        assert_close(found, vector(mdp, logits, gamma=0.9).flatten(), **EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_in_features_follow_the_chain_rule(seed):
    mdp, features = endless_mdp(seed), random_features(endless_mdp(seed), seed)
    parameters = torch.randn(2, generator=torch.Generator().manual_seed(seed)).double()
    logits = torch.einsum("kaf,f->ka", features, parameters)
    for vector in (policy_gradient, usual_update):
        found = vector(mdp, parameters, gamma=0.9, features=features)
        expected = torch.einsum("kaf,ka->f", features, vector(mdp, logits, gamma=0.9))
        assert_close(found, expected, **EXACT)


def test_a_batch_of_parameters_is_a_batch_of_policies():
    mdp, features = endless_mdp(3), random_features(endless_mdp(3), 3)
    many = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    policies = softmax_policy(mdp, many, features=features)
    gradients = policy_gradient(mdp, many, gamma=0.9, features=features)
    assert policies.shape == (2, 5, 6, 3)
    one = many[1, 3]
    assert_close(policies[1, 3], softmax_policy(mdp, one, features=features), **EXACT)
    expected = policy_gradient(mdp, one, gamma=0.9, features=features)
    assert_close(gradients[1, 3], expected, **EXACT)


# --- Scores and estimates --------------------------------------------------------------


def test_the_score_is_one_minus_the_probability(score_table):
    mdp = bandit([0.0, 0.0, 0.0])
    logits = float64([1, 2, 5]).log()  # π = 1/8, 2/8, 5/8
    expected = float64([[7, -2, -5], [-1, 6, -5], [-1, -2, 3]]) / 8
    assert_close(score_table(mdp, logits), expected, **EXACT)


def test_the_score_is_the_derivative_of_log_pi(score_table):
    mdp = endless_mdp(1)
    logits = oracles.random_logits(mdp, 2)

    def log_policy(logits):
        return torch.stack([float64(*row) for row in oracles.softmax_rows(mdp, logits)]).log()

    slopes = oracles.finite_differences(log_policy, logits).T.reshape(6, 3, 12)
    # rounding 1e-16/1e-5 and third derivatives · 1e-10
    assert_close(score_table(mdp, logits), slopes, rtol=1e-7, atol=1e-9)


def test_the_score_in_features_is_the_feature_less_its_mean(score_table):
    mdp, features = endless_mdp(1), random_features(endless_mdp(1), 1, num_features=3)
    parameters = float64(0.3, -0.2, 0.5)
    policy = softmax_policy(mdp, parameters, features=features)
    scores = score_table(mdp, parameters, features=features)
    assert scores.shape == (6, 3, 3)
    for s, row in enumerate(policy.tolist()):
        seen = features[mdp.observation_of[s]]
        mean = sum(chance * seen[b] for b, chance in enumerate(row))
        for a in range(3):
            assert_close(scores[s, a], seen[a] - mean, **EXACT)
    assert_close((policy[..., None] * scores).sum(1), torch.zeros(6, 3).double(), **EXACT)


def test_one_episode_gives_the_sum_of_weighted_scores(gradient_estimates):
    mdp = fork()
    listed = enumerate_trajectories(mdp, uniform(mdp))
    weights = torch.zeros(listed.states.shape, dtype=torch.float64)
    weights[0], weights[1] = 2.0, 10.0
    weights[~listed.valid] = float("nan")  # padding never counts
    found = gradient_estimates(mdp, zeros(mdp), listed, weights)
    # uniform: the logit of the action taken has the score +1/2, that of the other −1/2
    by_actions = {
        (tuple(a[v].tolist())): row
        for a, v, row in zip(listed.actions.T, listed.valid.T, found, strict=True)
    }
    assert_close(by_actions[(0,)], float64(1, -1, 0, 0), **EXACT)
    assert_close(by_actions[(1, 0)], float64(-1, 1, 5, -5), **EXACT)
    assert_close(by_actions[(1, 1)], float64(-1, 1, -5, 5), **EXACT)


def test_estimates_average_to_the_gradient(gradient_estimates):
    mdp = two_state()
    logits = oracles.random_logits(mdp, 4)
    listed = enumerate_trajectories(mdp, softmax_policy(mdp, logits))
    full = listed.rewards.sum(0).expand(listed.rewards.shape)
    mean = listed.probabilities @ gradient_estimates(mdp, logits, listed, full)
    assert_close(mean, policy_gradient(mdp, logits, gamma=1.0).flatten(), **EXACT)


def test_moments_of_two_points_match_the_hand(mean_and_covariance):
    # (0, 0) and (4, −8) with chances 3/4 and 1/4: mean (1, −2), variance 16·3/16 = 3
    mean, covariance = mean_and_covariance(float64(0.75, 0.25), float64([0, 0], [4, -8]))
    assert_close(mean, float64(1, -2), **EXACT)
    assert_close(covariance, float64([3, -6], [-6, 12]), **EXACT)


def test_moments_of_equal_chances_divide_by_their_number(mean_and_covariance):
    estimates = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean, covariance = mean_and_covariance(
        torch.full((50,), 1 / 50, dtype=torch.float64), estimates
    )
    assert_close(mean, estimates.mean(0), **EXACT)
    assert_close(covariance, torch.cov(estimates.T, correction=0), **EXACT)


# --- Two policies ----------------------------------------------------------------------


def test_the_performance_difference_of_the_fork_by_hand(performance_difference):
    # A_old(door) = (−1, 9), A_old(room) = (−10, 10); the new policy enters with 0.12, not 0.1:
    # (0.12·9 − 0.88·1) + 0.12·(0.41·10 − 0.59·10) = 0.2 − 0.216
    old, new = float64([0.9, 0.1], [0.5, 0.5]), float64([0.88, 0.12], [0.59, 0.41])
    found = performance_difference(fork(), new, old, gamma=1.0).item()
    assert found == pytest.approx(-0.016, rel=1e-9)  # rel: a difference of near numbers


def test_the_performance_difference_is_what_j_gains(performance_difference):
    for seed in range(200):
        mdp, gamma = endless_mdp(seed), (0.0, 0.5, 0.9, 1.0)[seed % 4]
        old = softmax_policy(mdp, oracles.random_logits(mdp, seed + 1))
        new = softmax_policy(mdp, oracles.random_logits(mdp, seed + 2))
        found = performance_difference(mdp, new, old, gamma=gamma)
        gain = expected_return(mdp, new, gamma=gamma) - expected_return(mdp, old, gamma=gamma)
        assert_close(found, gain, **EXACT)


def test_many_policies_are_compared_with_one(performance_difference):
    mdp = endless_mdp(1)
    old = uniform(mdp)
    many = softmax_policy(mdp, torch.stack([oracles.random_logits(mdp, n) for n in range(3)]))
    found = performance_difference(mdp, many, old, gamma=0.9)
    expected = [performance_difference(mdp, one, old, gamma=0.9) for one in many]
    assert_close(found, torch.stack(expected), **EXACT)


def test_the_kl_by_hand(state_kl):
    old = float64([0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [0.5, 0.5])
    new = float64([0.25, 0.75], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0])
    found = state_kl(old, new)
    # ½·ln 2 + ½·ln ⅔; ln 2, and the action never taken counts 0; 0; a certain action given up
    expected = float64(0.5 * math.log(4 / 3), math.log(2), 0, math.inf)
    assert_close(found, expected, **EXACT)


def test_the_kl_of_a_batch_has_a_row_for_each_policy(state_kl):
    old = float64([0.5, 0.5], [0.2, 0.8])
    many = torch.stack([old, float64([0.25, 0.75], [0.2, 0.8])])
    expected = float64([0, 0], [0.5 * math.log(4 / 3), 0])
    assert_close(state_kl(old, many), expected, **EXACT)


FORK_OLD = float64([0.75, 0.25], [0.5, 0.5])
FORK_NEW = float64([0.5, 0.5], [0.25, 0.75])


def test_the_mean_kl_of_the_fork_by_hand(mean_kl):
    # visits 1 and 0.25, at gamma 0.8 1 and 0.2; KL(door) = ¾·ln 1.5 − ¼·ln 2, KL(room) = ½·ln ⁴⁄₃
    door, room = 0.75 * math.log(1.5) - 0.25 * math.log(2), 0.5 * math.log(4 / 3)
    for gamma, visits in [(1.0, 0.25), (0.8, 0.2)]:
        found = mean_kl(fork(), FORK_NEW, FORK_OLD, gamma=gamma)
        assert_close(found.item(), (door + visits * room) / (1 + visits), **EXACT)


def test_a_state_that_is_never_visited_does_not_count_in_the_mean(mean_kl):
    old, new = float64([1, 0], [0.5, 0.5]), float64([1, 0], [1, 0])
    assert mean_kl(fork(), new, old, gamma=1.0).item() == 0  # in the room it would be infinite


def hessian_of_mean_kl(mdp, parameters, gamma, features):
    old = softmax_policy(mdp, parameters, features=features)

    def distance(moved):
        policy = softmax_policy(mdp, moved, features=features)
        return package.mean_kl(mdp, policy, old, gamma=gamma)

    size = parameters.numel()
    return torch.autograd.functional.hessian(distance, parameters).reshape(size, size)


def test_the_fisher_matrix_is_the_curvature_of_the_mean_kl(fisher_matrix):
    for seed in range(10):
        mdp, gamma = endless_mdp(seed), (0.5, 0.9, 1.0)[seed % 3]
        logits = oracles.random_logits(mdp, seed)
        features = random_features(mdp, seed, num_features=3)
        for parameters, shared in [(logits, None), (logits[0], features)]:
            found = fisher_matrix(mdp, parameters, gamma=gamma, features=shared)
            assert_close(found, hessian_of_mean_kl(mdp, parameters, gamma, shared), **EXACT)


def test_the_fisher_matrix_is_the_covariance_of_the_scores(fisher_matrix):
    # over all steps of all episodes at gamma 1, each counted once
    mdp = finite_mdp(2)
    logits = oracles.random_logits(mdp, 3)
    rows, seen = oracles.softmax_rows(mdp, logits), mdp.observation_of.tolist()
    total, length = torch.zeros(6, 6, dtype=torch.float64), 0.0
    for probability, path in oracles.all_paths(mdp, rows):
        for state, action, _ in path:
            score = torch.zeros(3, 2, dtype=torch.float64)
            score[seen[state]] = -float64(*rows[state])
            score[seen[state], action] += 1
            total += probability * torch.outer(score.flatten(), score.flatten())
            length += probability
    assert_close(fisher_matrix(mdp, logits, gamma=1.0), total / length, **EXACT)


def test_the_fisher_matrix_of_a_coin_by_hand(fisher_matrix):
    # p·(1 − p) = 3/16, whatever the rewards
    logits = float64([0.25, 0.75]).log()
    expected = float64([1, -1], [-1, 1]) * 3 / 16
    assert_close(fisher_matrix(bandit([5.0, 0.0]), logits, gamma=0.9), expected, **EXACT)


# --- Moments of GAE --------------------------------------------------------------------

SETTINGS = [(1.0, 1.0), (0.9, 0.8), (0.5, 0.0), (0.9, 1.0), (1.0, 0.4), (0.0, 0.3)]
LAMBDAS = (0.0, 0.3, 0.9, 1.0)


def random_critic(mdp: MDP, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(mdp.initial), generator=generator, dtype=torch.float64)


def test_the_moments_of_a_coin_by_hand(gae_moments):
    # Arm 1 pays 1, the critic says 1/4: Z = 3/4 or −1/4. In the logit of arm 1 an episode
    # estimates ½·¾ = 3/8 or −½·(−¼) = 1/8: mean 1/4, variance 1/64.
    mdp = bandit([0.0, 1.0])
    found = gae_moments(mdp, zeros(mdp), float64(0.25), gamma=0.9, gae_lambda=0.5)
    assert_close(found.gradient_mean, float64(-0.25, 0.25), **EXACT)
    assert_close(found.gradient_covariance, float64([1, -1], [-1, 1]) / 64, **EXACT)
    assert_close(found.advantage_mean, float64([-0.25, 0.75]), **EXACT)
    assert_close(found.advantage_variance, float64([0, 0]), **EXACT)


def test_the_moments_of_the_fork_by_hand(gae_moments):
    # γ = 1, λ = ½, V̂ = (1, 8). Room: δ = −8 or 12, mean 2, so after "go" Z = 8 − 1 + ½·(−8 or 12)
    # = 3 or 13, mean 8, variance 25; after "stay" Z = −1. In the slopes of "go" and "right":
    #   stay, ½: (½·1, 0);  go wrong, ¼: (½·3, ½·8);  go right, ¼: (½·13, ½·12)
    #   means ¼ + 2 = 2.25 and 2.5;  variances ⅛ + ¼·(2.25 + 42.25) − 2.25² = 6.1875 and
    #   ¼·(16 + 36) − 2.5² = 6.75;  covariance ¼·(1.5·4 + 6.5·6) − 2.25·2.5 = 5.625
    mdp, features = fork(), action_one_per_row(fork())
    start = torch.zeros(2, dtype=torch.float64)
    found = gae_moments(mdp, start, float64(1, 8), gamma=1.0, gae_lambda=0.5, features=features)
    assert_close(found.gradient_mean, float64(2.25, 2.5), **EXACT)
    expected = float64([6.1875, 5.625], [5.625, 6.75])
    assert_close(found.gradient_covariance, expected, **EXACT)
    assert_close(found.advantage_mean, float64([-1, 8], [-8, 12]), **EXACT)
    assert_close(found.advantage_variance, float64([0, 25], [0, 0]), **EXACT)


def test_the_moments_agree_with_all_paths(gae_moments):
    mdps = [two_state(), fork(), two_step_sign_flip(), *[finite_mdp(seed) for seed in range(8)]]
    for seed, mdp in enumerate(mdps):
        logits, critic = oracles.random_logits(mdp, seed + 1), random_critic(mdp, seed)
        gamma, gae_lambda = SETTINGS[seed % 6]
        found = gae_moments(mdp, logits, critic, gamma=gamma, gae_lambda=gae_lambda)
        given = (oracles.softmax_rows(mdp, logits), critic.tolist(), gamma, gae_lambda)
        mean, covariance = oracles.gradient_moments_by_paths(mdp, *given)
        assert_close(found.gradient_mean, mean, **EXACT)
        assert_close(found.gradient_covariance, covariance, **EXACT)
        mean, variance = oracles.advantage_moments_by_paths(mdp, *given)
        assert_close(found.advantage_mean, mean, **EXACT)
        assert_close(found.advantage_variance, variance, **EXACT)


def test_the_moments_in_features_follow_the_chain_rule(gae_moments):
    mdp, features = endless_mdp(5), random_features(endless_mdp(5), 6, num_features=3)
    parameters, critic = float64(0.4, -0.3, 0.2), random_critic(mdp, 7)
    settings = {"gamma": 0.9, "gae_lambda": 0.7}
    found = gae_moments(mdp, parameters, critic, features=features, **settings)
    logits = (features * parameters).sum(-1)
    per_logit = gae_moments(mdp, logits, critic, **settings)
    jacobian = features.flatten(0, 1)  # of the logits: [K·A, F]
    assert_close(found.gradient_mean, per_logit.gradient_mean @ jacobian, **EXACT)
    expected = jacobian.T @ per_logit.gradient_covariance @ jacobian
    assert_close(found.gradient_covariance, expected, **EXACT)
    assert_close(found.advantage_variance, per_logit.advantage_variance, **EXACT)


def sampled_moments(mdp, parameters, critic, features, *, gamma, gae_lambda, seed, number=20_000):
    """GAE along drawn episodes by its recursion, and their gradient estimates."""
    policy = softmax_policy(mdp, parameters, features=features)
    generator = torch.Generator().manual_seed(seed)
    drawn = sample_trajectories(mdp, policy, num_trajectories=number, generator=generator)
    later = critic[drawn.next_states] * ~drawn.terminated
    errors = (drawn.rewards + gamma * later - critic[drawn.states]) * drawn.valid
    weights = errors.clone()
    for t in reversed(range(len(errors) - 1)):
        weights[t] += gamma * gae_lambda * weights[t + 1]
    return (
        drawn,
        weights,
        package.gradient_estimates(mdp, parameters, drawn, weights, features=features),
    )


def in_standard_errors(samples, expected):
    """How far the mean of samples [n, ...] is from what is expected, in standard errors."""
    return ((samples.mean(0) - expected) / samples.std(0) * len(samples) ** 0.5).abs().max()


def test_the_moments_agree_with_sampled_walks(gae_moments):
    mdp = random_walk(5, noise=0.2)
    # the logit of "right" is θ_0 + θ_1·place, that of "left" is 0
    features = torch.zeros(6, 2, 2, dtype=torch.float64)
    features[:, 1] = torch.stack([torch.ones(6), torch.linspace(-1, 1, 6)], dim=1)
    parameters, critic = float64(0.3, 0.4), random_critic(mdp, 3)
    settings = {"gamma": 0.95, "gae_lambda": 0.8}
    exact = gae_moments(mdp, parameters, critic, features=features, **settings)
    drawn, weights, found = sampled_moments(mdp, parameters, critic, features, seed=0, **settings)
    assert in_standard_errors(found, exact.gradient_mean) < 4
    centred = found - exact.gradient_mean
    squares = centred[:, :, None] * centred[:, None, :]
    assert in_standard_errors(squares, exact.gradient_covariance) < 4
    for s, a in [(0, 0), (2, 1), (4, 1), (5, 0)]:
        here = (drawn.states == s) & (drawn.actions == a) & drawn.valid
        first = here & (here.cumsum(0) == 1)  # one step of an episode: the samples are independent
        samples = weights[first]
        if samples.std() > 1e-9:  # some steps know how the episode goes on
            assert in_standard_errors(samples, exact.advantage_mean[s, a]) < 4
            squares = (samples - exact.advantage_mean[s, a]) ** 2
            assert in_standard_errors(squares, exact.advantage_variance[s, a]) < 4
        else:
            assert_close(samples[0], exact.advantage_mean[s, a], **EXACT)


def test_at_lambda_one_the_gradient_is_right_with_every_critic(gae_moments):
    for seed in range(30):
        mdp, gamma = endless_mdp(seed), (0.5, 0.9, 1.0)[seed % 3]
        logits, critic = oracles.random_logits(mdp, seed), 10 * random_critic(mdp, seed)
        found = gae_moments(mdp, logits, critic, gamma=gamma, gae_lambda=1.0)
        expected = usual_update(mdp, logits, gamma=gamma).flatten()
        assert_close(found.gradient_mean, expected, **EXACT)


def test_at_lambda_one_the_advantage_is_off_by_minus_the_error(gae_moments):
    for seed in range(30):
        mdp, gamma = endless_mdp(seed), (0.5, 0.9, 1.0)[seed % 3]
        logits, error = oracles.random_logits(mdp, seed), random_critic(mdp, seed)
        policy = softmax_policy(mdp, logits)
        critic = state_values(mdp, policy, gamma=gamma) + error
        found = gae_moments(mdp, logits, critic, gamma=gamma, gae_lambda=1.0)
        expected = advantages(mdp, policy, gamma=gamma) - error[:, None]
        assert_close(found.advantage_mean, expected, **EXACT)


def test_an_exact_critic_is_right_at_every_lambda(gae_moments):
    for seed in range(30):
        mdp, gamma = endless_mdp(seed), (0.5, 0.9, 1.0)[seed % 3]
        logits = oracles.random_logits(mdp, seed)
        policy = softmax_policy(mdp, logits)
        critic = state_values(mdp, policy, gamma=gamma)
        for gae_lambda in LAMBDAS:
            found = gae_moments(mdp, logits, critic, gamma=gamma, gae_lambda=gae_lambda)
            expected = usual_update(mdp, logits, gamma=gamma).flatten()
            assert_close(found.gradient_mean, expected, **EXACT)
            expected = advantages(mdp, policy, gamma=gamma)
            assert_close(found.advantage_mean, expected, **EXACT)


def bias(mdp, logits, critic, *, gamma, gae_lambda):
    found = package.gae_moments(mdp, logits, critic, gamma=gamma, gae_lambda=gae_lambda)
    return (found.gradient_mean - usual_update(mdp, logits, gamma=gamma).flatten()).abs().max()


def test_below_lambda_one_a_wrong_critic_does_harm():
    # negative control of both claims: neither λ = 1 nor an exact critic
    for seed in range(30):
        mdp = endless_mdp(seed)
        logits = oracles.random_logits(mdp, seed)
        exact = state_values(mdp, softmax_policy(mdp, logits), gamma=0.9)
        for critic in (torch.zeros_like(exact), exact + random_critic(mdp, seed)):
            assert bias(mdp, logits, critic, gamma=0.9, gae_lambda=0.5) > 1e-4
        # exact for another discount: not exact
        other = state_values(mdp, softmax_policy(mdp, logits), gamma=0.5)
        assert bias(mdp, logits, other, gamma=0.9, gae_lambda=0.5) > 1e-4


def test_an_error_that_depends_on_the_action_does_not_cancel():
    # negative control of "every critic": the same estimate, less a guess of Q for the action taken
    for seed in range(5):
        mdp = finite_mdp(seed)
        logits = oracles.random_logits(mdp, seed)
        listed = enumerate_trajectories(mdp, softmax_policy(mdp, logits))
        later = listed.rewards.flip(0).cumsum(0).flip(0)
        right = usual_update(mdp, logits, gamma=1.0).flatten()
        by_state = random_critic(mdp, seed)[listed.states]
        by_action = torch.stack([random_critic(mdp, seed), random_critic(mdp, seed + 1)], 1)
        by_action = by_action[listed.states, listed.actions]
        means = [
            listed.probabilities @ package.gradient_estimates(mdp, logits, listed, later - guess)
            for guess in (by_state, by_action)
        ]
        assert_close(means[0], right, **EXACT)
        assert (means[1] - right).abs().max() > 1e-2


def test_a_constant_error_cancels_where_the_end_is_no_news():
    mdp = ergodic(4, ending=0.1)
    logits = oracles.random_logits(mdp, 1)
    policy = softmax_policy(mdp, logits)
    critic = state_values(mdp, policy, gamma=1.0) + 1
    # biased advantages all the same: −0.1·(1 + 0.9λ + …) = −0.1/(1 − 0.9·λ)
    for gae_lambda in LAMBDAS:
        assert bias(mdp, logits, critic, gamma=1.0, gae_lambda=gae_lambda) < 1e-12
        found = package.gae_moments(mdp, logits, critic, gamma=1.0, gae_lambda=gae_lambda)
        error = found.advantage_mean - advantages(mdp, policy, gamma=1.0)
        expected = torch.full((4, 2), -0.1 / (1 - 0.9 * gae_lambda), dtype=torch.float64)
        assert_close(error, expected, **EXACT)
    # negative control: in the walk an end depends on the action
    walk = random_walk(4, noise=0.1)
    critic = state_values(walk, uniform(walk), gamma=1.0) + 1
    assert bias(walk, zeros(walk), critic, gamma=1.0, gae_lambda=0.5) > 0.01


def test_the_error_of_a_mean_by_hand(mean_squared_error):
    moments = package.Moments(
        float64(1, 2), float64([3, 1], [1, 5]), float64([0, 0]), float64([0, 0])
    )
    # bias (1, 2) − (1, 0), so 0² + 2² = 4; trace 3 + 5 = 8
    for number, expected in [(1, 12.0), (4, 6.0), (8, 5.0)]:
        found = mean_squared_error(moments, float64([1], [0]), num_trajectories=number)
        assert_close(found.item(), expected, **EXACT)


def test_lambda_trades_bias_for_variance_in_the_gradient():
    # MSE over n episodes: with few of them a small λ is best, with many λ = 1
    mdp = random_walk(7, noise=0.0)
    critic = 0.5 * state_values(mdp, uniform(mdp), gamma=1.0)
    target = usual_update(mdp, zeros(mdp), gamma=1.0)

    def best_lambda(number):
        grid = [n / 10 for n in range(11)]
        errors = [
            package.mean_squared_error(
                package.gae_moments(mdp, zeros(mdp), critic, gamma=1.0, gae_lambda=gae_lambda),
                target,
                num_trajectories=number,
            ).item()
            for gae_lambda in grid
        ]
        return grid[errors.index(min(errors))]

    assert best_lambda(1) < best_lambda(10) < best_lambda(10_000)
    assert best_lambda(10_000) == 1.0


# --- MDPs with a name ------------------------------------------------------------------


def trap_policy(p: float):
    return float64([1 - p, p], [1 - p, p])


def test_the_trap_by_hand():
    mdp, old = surrogate_trap(), trap_policy(0.1)
    for p, expected in [(0.1, 0.07), (1 / 6, 1 / 12), (0.5, -0.25), (1.0, -2.0)]:
        found = expected_return(mdp, trap_policy(p), gamma=1.0).item()
        assert found == pytest.approx(expected, rel=1e-12)
    for p in (0.2, 0.5, 1.0):
        found = expected_surrogate(mdp, trap_policy(p), old, times, gamma=1.0).item()
        assert found == pytest.approx(0.4 * (p - 0.1), rel=1e-12)


def surrogate_ascent(mdp, logits, *, features=None, step, num_steps, error=0.0):
    """Climb L from π_old; the slope is written out: Σ_s d_old Σ_a ∇π·(A_old + error)."""
    old = softmax_policy(mdp, logits, features=features)
    weights = state_visits(mdp, old, gamma=0.9)[:, None]
    estimates = advantages(mdp, old, gamma=0.9) + error
    for _ in range(num_steps):
        logits = logits.clone().requires_grad_()
        policy = softmax_policy(mdp, logits, features=features)
        (slope,) = torch.autograd.grad((weights * policy * estimates).sum(), logits)
        logits = (logits + step * slope).detach()
    new = softmax_policy(mdp, logits, features=features)
    promised = (weights * new * estimates).sum() - (weights * old * estimates).sum()
    gain = expected_return(mdp, new, gamma=0.9) - expected_return(mdp, old, gamma=0.9)
    per_state = (new * advantages(mdp, old, gamma=0.9)).sum(-1)
    return promised.item(), gain.item(), per_state


def own_rows(seed: int) -> MDP:
    return oracles.random_mdp(seed, num_states=5, num_actions=3, num_observations=5, finite=False)


STEPS = [(0.1, 1), (1.0, 5), (30.0, 3)]


def test_with_a_row_for_each_state_climbing_the_surrogate_never_lowers_j():
    # Within a state the slope is d·π·(A − mean A): exponents rise where A is above its mean, so
    # the mean of A rises at every step size, and J is the sum of these with d_new >= 0.
    for seed in range(300):
        mdp = own_rows(seed)
        logits = oracles.random_logits(mdp, seed)
        step, num_steps = STEPS[seed % 3]
        promised, gain, per_state = surrogate_ascent(mdp, logits, step=step, num_steps=num_steps)
        assert promised > 0
        assert per_state.min() >= -1e-12
        assert gain >= -1e-12


def test_a_shared_row_lets_the_surrogate_rise_while_j_falls():
    # negative control of the claim before: one row for both states
    logits = float64([0.9, 0.1]).log()
    promised, gain, _ = surrogate_ascent(surrogate_trap(), logits, step=10.0, num_steps=20)
    assert promised > 0.2
    assert gain < -1


def test_noisy_advantages_can_lower_j():
    # the other one: advantages with an error of three times the size of a reward
    falls = 0
    for seed in range(300):
        mdp = own_rows(seed)
        logits = oracles.random_logits(mdp, seed)
        error = 3 * random_features(mdp, seed + 1000, num_features=1)[..., 0]
        promised, gain, _ = surrogate_ascent(mdp, logits, step=1.0, num_steps=5, error=error)
        falls += promised > 0 and gain < -1e-6
    assert falls > 20


def weights_of(listed, *, full: bool):
    later = listed.rewards.flip(0).cumsum(0).flip(0)
    return listed.rewards.sum(0).expand_as(later) if full else later


def test_the_control_variate_by_hand():
    mdp = control_variate()
    features = action_one_per_row(mdp)
    start = torch.zeros(2, dtype=torch.float64)
    listed = enumerate_trajectories(mdp, uniform(mdp))
    assert listed.states.shape == (2, 8)  # X, a_0, a_1
    for full, variance in [(True, 0.1875), (False, 2.4375)]:
        weights = weights_of(listed, full=full)
        found = package.gradient_estimates(mdp, start, listed, weights, features=features)
        mean, covariance = package.mean_and_covariance(listed.probabilities, found)
        assert_close(mean, float64(0, 0.25), **EXACT)
        assert covariance.trace().item() == pytest.approx(variance, rel=1e-12)
        # over all four logits: slopes −g and +g
        found = package.gradient_estimates(mdp, zeros(mdp), listed, weights)
        mean, covariance = package.mean_and_covariance(listed.probabilities, found)
        assert_close(mean, float64(0, 0, -0.25, 0.25), **EXACT)
        assert covariance.trace().item() == pytest.approx(2 * variance, rel=1e-12)


def test_the_ring_by_hand():
    mdp = ergodic(4, ending=0.1)
    assert_close(state_visits(mdp, uniform(mdp), gamma=1.0), float64(*[2.5] * 4), **EXACT)
    assert expected_return(mdp, uniform(mdp), gamma=1.0).item() == pytest.approx(2.5, rel=1e-12)
    # always on: place 0 comes every fourth step, V(0) = 1/(1 − 0.9⁴)
    onward = float64([0, 1]).expand(4, 2)
    expected = float64(1, 0.9**3, 0.9**2, 0.9) / (1 - 0.9**4)
    assert_close(state_values(mdp, onward, gamma=1.0), expected, **EXACT)
    for_ever = ergodic(4, ending=0.0)
    assert_close(state_values(for_ever, onward, gamma=0.9), expected, **EXACT)


# --- Errors ----------------------------------------------------------------------------


def refused(action, error=ValueError) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


@pytest.mark.messages
def test_parameters_that_do_not_fit_the_features_are_refused():
    mdp, features = two_state(), random_features(two_state(), 0, num_features=3)
    start = torch.zeros(2, dtype=torch.float64)
    expected = (
        "parameters has shape (2,); expected (3,). Give one number for each feature, as in "
        "features[k, a, f]."
    )
    assert refused(lambda: softmax_policy(mdp, start, features=features)) == expected
    expected = (
        "features has shape (1, 2, 3); expected (2, 2, 3). Give one entry for each state "
        "(or observation) and action of the MDP."
    )
    assert refused(lambda: softmax_policy(mdp, start, features=features[:1])) == expected
    message = refused(lambda: softmax_policy(mdp, start, features=features.float()), TypeError)
    assert message.startswith("features has dtype torch.float32; expected torch.float64.")


@pytest.mark.messages
def test_a_batch_of_logits_has_no_score_table():
    many = torch.zeros(3, 2, 2, dtype=torch.float64)
    message = refused(lambda: package.score_table(two_state(), many))
    assert message.startswith("logits has shape (3, 2, 2); expected (2, 2).")


@pytest.mark.messages
def test_estimates_need_a_weight_for_each_step():
    mdp = two_state()
    listed = enumerate_trajectories(mdp, uniform(mdp))
    weights = torch.zeros(2, 18, dtype=torch.float64)
    message = refused(lambda: package.gradient_estimates(mdp, zeros(mdp), listed, weights))
    assert message.startswith("states has shape (3, 18); expected (2, 18) like weights.")


@pytest.mark.messages
def test_moments_need_all_probabilities():
    rows = torch.zeros(2, 1, dtype=torch.float64)
    assert refused(lambda: package.mean_and_covariance(float64(0.5, 0.25), rows)) == (
        "probabilities sum to 0.75; expected 1. Give those of all trajectories."
    )
    assert refused(lambda: package.mean_and_covariance(float64(1), rows)) == (
        "estimates has 2 rows; expected 1, one for each of probabilities. Take both from the same "
        "trajectories."
    )


@pytest.mark.messages
def test_a_ring_needs_a_place_and_a_probability():
    assert refused(lambda: ergodic(0, ending=0.1)).startswith("num_states is 0; expected 1")
    assert refused(lambda: ergodic(3, ending=1.1)).startswith("ending is 1.1; expected a number")


@pytest.mark.messages
def test_policies_of_two_mdps_have_no_kl():
    message = refused(lambda: package.state_kl(uniform(fork()), uniform(two_state())))
    assert message == (
        "policy_old has shape (2, 2); expected (6, 2) like policy. Give both for the states and "
        "actions of one MDP."
    )
    message = refused(lambda: package.state_kl(uniform(fork()), zeros(fork())))
    assert message.startswith("policy has the row [0.0, 0.0] at index (0,); expected probabilities")


@pytest.mark.messages
def test_a_critic_of_another_shape_is_refused():
    mdp = two_state()
    settings = {"gamma": 0.9, "gae_lambda": 0.9}
    message = refused(lambda: package.gae_moments(mdp, zeros(mdp), float64(0, 0), **settings))
    assert message == (
        "critic has shape (2,); expected (6,). Give one value for each state, also if the policy "
        "cannot tell two of them apart."
    )
    infinite = float64(0, 0, 0, 0, 0, math.inf)
    message = refused(lambda: package.gae_moments(mdp, zeros(mdp), infinite, **settings))
    assert message.startswith("critic holds inf at index (5,); expected finite numbers.")


@pytest.mark.messages
def test_moments_need_episodes_that_end_and_a_lambda():
    ring, critic = ergodic(3, ending=0.0), torch.zeros(3, dtype=torch.float64)
    settings = {"gamma": 0.9, "gae_lambda": 0.9}
    message = refused(lambda: package.gae_moments(ring, zeros(ring), critic, **settings))
    assert message.startswith("in ergodic the policy never ends the episode from state 0;")
    settings["gae_lambda"] = 1.5
    message = refused(lambda: package.gae_moments(ring, zeros(ring), critic, **settings))
    assert message.startswith("gae_lambda is 1.5; expected a number in [0, 1].")


@pytest.mark.messages
def test_an_error_needs_a_target_and_a_number():
    mdp = bandit([0.0, 1.0])
    moments = package.gae_moments(mdp, zeros(mdp), float64(0), gamma=1.0, gae_lambda=1.0)
    target = torch.zeros(3, dtype=torch.float64)
    message = refused(lambda: package.mean_squared_error(moments, target, num_trajectories=1))
    assert message == (
        "target has shape (3,); expected 2 entries like gradient_mean. Take the gradient in the "
        "same parameters."
    )
    message = refused(lambda: package.mean_squared_error(moments, target, num_trajectories=0))
    assert message.startswith("num_trajectories is 0; expected 1 or more.")
