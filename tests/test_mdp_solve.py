"""Exact MDPs against numbers worked by hand, sums over paths and over time, and identities.

Algebra in float64 on fewer than ten states keeps 1e-12; a looser tolerance states its reason.
"""

import dataclasses
import math

import oracles_mdp as oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ppo_lessons.mdp import (
    MAX_TRAJECTORIES,
    MDP,
    action_values,
    advantages,
    bandit,
    enumerate_trajectories,
    expected_return,
    expected_surrogate,
    fork,
    policy_gradient,
    random_walk,
    sample_trajectories,
    softmax_policy,
    state_values,
    state_visits,
    two_state,
    two_step_sign_flip,
    unroll,
    usual_update,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}
GAMMAS = st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0])
SEEDS = st.integers(0, 10_000)
examples = settings(max_examples=25, deadline=None, derandomize=True)


def float64(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def uniform(mdp: MDP):
    return softmax_policy(mdp, zeros(mdp))


def zeros(mdp: MDP):
    return torch.zeros(mdp.num_observations, mdp.rewards.shape[1], dtype=torch.float64)


def finite_mdp(seed: int) -> MDP:
    return oracles.random_mdp(seed, num_states=5, num_actions=2, num_observations=3, finite=True)


def loop() -> MDP:
    """One state that pays 1 for ever."""
    return MDP("loop", float64([[1]]), float64([1]), float64(1), torch.arange(1))


def endless_mdp(seed: int) -> MDP:
    """May visit states for ever, though every step ends it with probability 0.1 or more."""
    return oracles.random_mdp(seed, num_states=6, num_actions=3, num_observations=4, finite=False)


# --- Worked by hand ------------------------------------------------------------------------------


def test_two_state_values_match_the_hand():
    # Uniform policy: a step earns (0 − 1)/2 = −0.5 in the valley, (2 + 0)/2 = 1 on the hill, and
    # changes place with probability 1/2 · 1/2 = 0.25. Backwards from the last step, gamma 1:
    #   t = 2: −0.5, 1
    #   t = 1: −0.5 + 0.75·(−0.5) + 0.25·1 = −0.625;    1 + 0.75·1 + 0.25·(−0.5) = 1.625
    #   t = 0: −0.5 + 0.75·(−0.625) + 0.25·1.625 = −0.5625; 1 + 0.75·1.625 + 0.25·(−0.625) = 2.0625
    mdp = two_state()
    expected = float64(-0.5625, 2.0625, -0.625, 1.625, -0.5, 1.0)
    assert_close(state_values(mdp, uniform(mdp), gamma=1.0), expected, **EXACT)
    # gamma 0.5, t = 1: −0.5 + (−0.125)/2 = −0.5625;      1 + 0.625/2 = 1.3125
    # t = 0: −0.5 + (0.75·(−0.5625) + 0.25·1.3125)/2 = −0.546875
    #        1 + (0.75·1.3125 + 0.25·(−0.5625))/2 = 1.421875
    expected = float64(-0.546875, 1.421875, -0.5625, 1.3125, -0.5, 1.0)
    assert_close(state_values(mdp, uniform(mdp), gamma=0.5), expected, **EXACT)
    # The start is the valley at t = 0.
    assert_close(expected_return(mdp, uniform(mdp), gamma=1.0).item(), -0.5625, **EXACT)
    assert_close(expected_return(mdp, uniform(mdp), gamma=0.5).item(), -0.546875, **EXACT)


def test_two_state_action_values_and_advantages_match_the_hand():
    # Valley at t = 0, gamma 1: stay 0 − 0.625; move −1 + (−0.625 + 1.625)/2 = −0.5.
    # V = −0.5625 lies halfway, so the advantages are −0.0625 and +0.0625.
    mdp = two_state()
    values = action_values(mdp, uniform(mdp), gamma=1.0)
    assert_close(values[0], float64(-0.625, -0.5), **EXACT)
    assert_close(advantages(mdp, uniform(mdp), gamma=1.0)[0], float64(-0.0625, 0.0625), **EXACT)


def test_two_state_visits_match_the_hand():
    # P(valley, hill): t = 0 (1, 0); t = 1 (0.75, 0.25); t = 2 0.75² + 0.25² = 0.625, and 0.375.
    mdp = two_state()
    expected = float64(1, 0, 0.75, 0.25, 0.625, 0.375)
    assert_close(state_visits(mdp, uniform(mdp), gamma=1.0), expected, **EXACT)
    weights = float64(1, 1, 0.5, 0.5, 0.25, 0.25)  # gamma 0.5
    assert_close(state_visits(mdp, uniform(mdp), gamma=0.5), expected * weights, **EXACT)


def test_two_state_three_vectors_match_the_hand():
    # Component of the logit of "move": 1/4 · Σ_t weight_t · P(s_t = s) · (Q(s, move) − Q(s, stay)).
    # Differences of Q at t = 0, 1, 2:   valley                hill (not reached at t = 0)
    #   gamma 1                          0.125, −0.25, −1            −2.75, −2
    #   gamma 0.5                        −0.53125, −0.625, −1        −2.375, −2
    mdp = two_state()
    undiscounted = [
        (0.125 + 0.75 * -0.25 + 0.625 * -1) / 4,  # −0.171875
        (0.25 * -2.75 + 0.375 * -2) / 4,  # −0.359375
    ]
    discounted = [
        (-0.53125 + 0.5 * 0.75 * -0.625 + 0.25 * 0.625 * -1) / 4,  # −0.23046875
        (0.5 * 0.25 * -2.375 + 0.25 * 0.375 * -2) / 4,  # −0.12109375
    ]
    usual = [
        (-0.53125 + 0.75 * -0.625 + 0.625 * -1) / 4,  # −0.40625
        (0.25 * -2.375 + 0.375 * -2) / 4,  # −0.3359375
    ]
    found = [
        policy_gradient(mdp, zeros(mdp), gamma=1.0),
        policy_gradient(mdp, zeros(mdp), gamma=0.5),
        usual_update(mdp, zeros(mdp), gamma=0.5),
    ]
    for vector, expected in zip(found, [undiscounted, discounted, usual], strict=True):
        assert_close(vector[:, 1], float64(*expected), **EXACT)
        assert_close(vector[:, 0], -vector[:, 1], **EXACT)  # a common shift changes nothing


def test_usual_update_can_point_against_the_gradient():
    mdp = two_step_sign_flip()
    gradient = policy_gradient(mdp, zeros(mdp), gamma=0.5)
    update = usual_update(mdp, zeros(mdp), gamma=0.5)
    assert_close(gradient, float64([-0.0625, 0.0625]), **EXACT)
    assert_close(update, float64([0.125, -0.125]), **EXACT)
    assert (gradient * update).sum() < 0
    # J = p·1 + 0.5·p·(−1.5) = p/4: a step along the update lowers it, along the gradient lifts it.
    before = expected_return(mdp, uniform(mdp), gamma=0.5)
    assert_close(before.item(), 0.125, **EXACT)
    assert expected_return(mdp, softmax_policy(mdp, update), gamma=0.5) < before
    assert expected_return(mdp, softmax_policy(mdp, gradient), gamma=0.5) > before


def test_sign_does_not_flip_with_a_smaller_cost_or_without_discounting():
    mild = dataclasses.replace(two_step_sign_flip(), rewards=float64([0, 1], [0, -0.9]))
    for mdp, gamma in [(mild, 0.5), (two_step_sign_flip(), 1.0)]:
        gradient = policy_gradient(mdp, zeros(mdp), gamma=gamma)
        assert (gradient * usual_update(mdp, zeros(mdp), gamma=gamma)).sum() > 0


def test_bandit_gradient_matches_the_hand():
    # π = (1/6, 2/6, 3/6), rewards (6, 0, 2): J = 1 + 1 = 2; ∂J/∂z_a = π_a·(r_a − J).
    mdp = bandit([6.0, 0.0, 2.0])
    logits = float64([0.0, math.log(2), math.log(3)])
    assert_close(expected_return(mdp, softmax_policy(mdp, logits), gamma=0.7).item(), 2.0, **EXACT)
    expected = float64([4 / 6, -2 * 2 / 6, 0])
    assert_close(policy_gradient(mdp, logits, gamma=0.7), expected, **EXACT)
    assert_close(usual_update(mdp, logits, gamma=0.7), expected, **EXACT)  # one step: γ⁰ = 1


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 0.9])
def test_uniform_walk_has_the_known_values(noise):
    mdp = random_walk(7, noise=noise)
    expected = torch.arange(1, 9, dtype=torch.float64) / 8
    assert_close(state_values(mdp, uniform(mdp), gamma=1.0), expected, **EXACT)
    assert_close(expected_return(mdp, uniform(mdp), gamma=1.0).item(), 0.5, **EXACT)


@pytest.mark.parametrize(("right", "noise"), [(0.6, 0.0), (0.9, 0.2), (0.3, 0.1), (0.8, 0.5)])
def test_leaning_walk_is_the_gamblers_ruin(right, noise):
    mdp = random_walk(6, noise=noise)
    policy = float64([1 - right, right]).expand(7, 2)
    moved_right = right * (1 - noise) + (1 - right) * noise
    expected = oracles.gamblers_ruin(6, round(moved_right, 12))
    assert_close(state_values(mdp, policy, gamma=1.0), float64(*expected), **EXACT)
    wrong = oracles.gamblers_ruin(6, moved_right + 0.01)  # negative control
    assert not torch.allclose(state_values(mdp, policy, gamma=1.0), float64(*wrong), atol=1e-3)


def test_uniform_walk_has_the_known_length():
    # A fair walk from place i of n lasts (i + 1)·(n − i) moves; with probability (i + 1)/(n + 1)
    # one more at the goal. n = 7, i = 3: 4·4 + 1/2.
    mdp = random_walk(7, noise=0.3)
    assert_close(state_visits(mdp, uniform(mdp), gamma=1.0).sum().item(), 16.5, **EXACT)


# --- Sums over paths and over time ---------------------------------------------------------------


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_solves_agree_with_all_paths(seed, gamma):
    mdp = finite_mdp(seed)
    logits = oracles.random_logits(mdp, seed + 1)
    policy, rows = softmax_policy(mdp, logits), oracles.softmax_rows(mdp, logits)
    values = oracles.state_values_by_paths(mdp, rows, gamma)
    by_action = oracles.action_values_by_paths(mdp, rows, gamma)
    total = oracles.expected_return_by_paths(mdp, rows, gamma)
    visits = oracles.state_visits_by_paths(mdp, rows, gamma)
    assert_close(state_values(mdp, policy, gamma=gamma), values, **EXACT)
    assert_close(action_values(mdp, policy, gamma=gamma), by_action, **EXACT)
    assert_close(advantages(mdp, policy, gamma=gamma), by_action - values[:, None], **EXACT)
    assert_close(expected_return(mdp, policy, gamma=gamma).item(), total, **EXACT)
    assert_close(state_visits(mdp, policy, gamma=gamma), visits, **EXACT)


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_gradients_agree_with_the_score_function_over_all_paths(seed, gamma):
    mdp = finite_mdp(seed)
    logits = oracles.random_logits(mdp, seed + 1)
    gradient = oracles.score_update_by_paths(mdp, logits, gamma=gamma, weight_gamma=gamma)
    update = oracles.score_update_by_paths(mdp, logits, gamma=gamma, weight_gamma=1.0)
    assert_close(policy_gradient(mdp, logits, gamma=gamma), gradient, **EXACT)
    assert_close(usual_update(mdp, logits, gamma=gamma), update, **EXACT)
    if gamma < 0.95:  # negative control: the weight γᵗ is what tells the two apart
        assert (gradient - update).abs().max() > 1e-6


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_solves_agree_with_sums_over_time(seed, gamma):
    mdp = endless_mdp(seed)
    policy = softmax_policy(mdp, oracles.random_logits(mdp, seed + 1))
    # every step survives with at most 0.9, and 0.9^400 = 5e-19
    values, visits = oracles.series(mdp, policy, gamma, num_steps=400)
    assert_close(state_values(mdp, policy, gamma=gamma), values, **EXACT)
    assert_close(state_visits(mdp, policy, gamma=gamma), visits, **EXACT)


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_gradient_agrees_with_finite_differences(seed, gamma):
    mdp = endless_mdp(seed)
    logits = oracles.random_logits(mdp, seed + 1)

    def total(logits):
        policy = float64(*oracles.softmax_rows(mdp, logits))
        return mdp.initial @ oracles.series(mdp, policy, gamma, num_steps=400)[0]

    slopes = oracles.finite_differences(total, logits).reshape(logits.shape)
    # rounding 1e-16 · |J| / 1e-5 and third derivatives · 1e-10 stay below 1e-8
    assert_close(policy_gradient(mdp, logits, gamma=gamma), slopes, rtol=1e-7, atol=1e-8)


def test_usual_update_is_the_gradient_of_nothing():
    # Second derivatives of a function commute. At logits 0 of two_state the mixed derivatives of
    # the usual update differ: no function has it as its gradient (Nota & Thomas 2020).
    mdp = two_state()

    def asymmetry(vector):
        jacobian = oracles.finite_differences(vector, zeros(mdp))
        return (jacobian - jacobian.T).abs().max().item()

    assert asymmetry(lambda logits: usual_update(mdp, logits, gamma=0.5)) > 0.08
    # Negative controls, at the precision of finite differences.
    assert asymmetry(lambda logits: policy_gradient(mdp, logits, gamma=0.5)) < 1e-9
    assert asymmetry(lambda logits: usual_update(mdp, logits, gamma=1.0)) < 1e-9


# --- Identities ----------------------------------------------------------------------------------


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_identities_of_the_bellman_equation(seed, gamma):
    mdp = endless_mdp(seed)
    policy = softmax_policy(mdp, oracles.random_logits(mdp, seed + 1))
    values = state_values(mdp, policy, gamma=gamma)
    visits = state_visits(mdp, policy, gamma=gamma)
    total = expected_return(mdp, policy, gamma=gamma)
    assert_close(
        (policy * advantages(mdp, policy, gamma=gamma)).sum(-1), float64(*[0] * 6), **EXACT
    )
    assert_close((policy * action_values(mdp, policy, gamma=gamma)).sum(-1), values, **EXACT)
    assert_close(total, mdp.initial @ values, **EXACT)
    assert_close(total, (visits[:, None] * policy * mdp.rewards).sum(), **EXACT)
    # a constant reward of 1 counts steps: V = Σ_t γᵗ·P(alive), so J is the sum of all visits
    counting = dataclasses.replace(mdp, rewards=torch.ones_like(mdp.rewards))
    assert_close(expected_return(counting, policy, gamma=gamma), visits.sum(), **EXACT)


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_performance_difference_identity(seed, gamma):
    # J(new) − J(old) = Σ d_new · π_new · A_old (Kakade & Langford 2002)
    mdp = endless_mdp(seed)
    old = softmax_policy(mdp, oracles.random_logits(mdp, seed + 1))
    new = softmax_policy(mdp, oracles.random_logits(mdp, seed + 2))
    gain = expected_return(mdp, new, gamma=gamma) - expected_return(mdp, old, gamma=gamma)
    better = advantages(mdp, old, gamma=gamma)
    visits_new = state_visits(mdp, new, gamma=gamma)[:, None]
    assert_close((visits_new * new * better).sum(), gain, **EXACT)


@pytest.mark.parametrize("perturbed", ["old visits", "old policy", "new advantages"])
def test_perturbed_performance_difference_fails(perturbed):
    gamma, errors = 0.9, []
    for seed in range(20):
        mdp = endless_mdp(seed)
        old = softmax_policy(mdp, oracles.random_logits(mdp, seed + 1))
        new = softmax_policy(mdp, oracles.random_logits(mdp, seed + 2))
        gain = expected_return(mdp, new, gamma=gamma) - expected_return(mdp, old, gamma=gamma)
        visits = state_visits(mdp, old if perturbed == "old visits" else new, gamma=gamma)[:, None]
        policy = old if perturbed == "old policy" else new
        judge = new if perturbed == "new advantages" else old
        wrong = (visits * policy * advantages(mdp, judge, gamma=gamma)).sum()
        errors.append(abs(wrong - gain).item())
    assert min(errors) > 1e-4


def test_shared_observations_add_their_gradients():
    # chain rule: one logit that two states read has the sum of the two states' slopes
    shared = two_state()
    clocked = dataclasses.replace(shared, observation_of=torch.arange(6))
    logits = oracles.random_logits(shared, seed=3)
    per_state = policy_gradient(clocked, logits.repeat(3, 1), gamma=0.9)
    expected = per_state.reshape(3, 2, 2).sum(0)
    assert_close(policy_gradient(shared, logits, gamma=0.9), expected, **EXACT)
    policy = softmax_policy(shared, logits)
    assert torch.equal(policy[0], policy[2])
    assert not torch.equal(policy[0], policy[1])


def test_unrolling_cuts_the_sum_over_time():
    mdp = endless_mdp(7)
    logits = oracles.random_logits(mdp, seed=8)
    policy = softmax_policy(mdp, logits)
    for horizon in (1, 2, 9):
        finite = unroll(mdp, horizon)
        values, visits = oracles.series(mdp, policy, 0.9, num_steps=horizon)
        here = softmax_policy(finite, logits)
        assert_close(state_values(finite, here, gamma=0.9)[:6], values, **EXACT)
        by_time = state_visits(finite, here, gamma=0.9).reshape(horizon, 6)
        assert_close(by_time.sum(0), visits, **EXACT)
    assert finite.name == "random, 9 steps"


def test_batch_of_policies_is_solved_at_once():
    mdp = endless_mdp(11)
    many = torch.stack([oracles.random_logits(mdp, seed) for seed in range(6)]).reshape(2, 3, 4, 3)
    for function in (policy_gradient, usual_update):
        one_by_one = torch.stack([function(mdp, one, gamma=0.9) for one in many.flatten(0, 1)])
        assert_close(function(mdp, many, gamma=0.9).flatten(0, 1), one_by_one, **EXACT)
    policies = softmax_policy(mdp, many)
    for function in (state_values, action_values, advantages, state_visits, expected_return):
        one_by_one = torch.stack([function(mdp, one, gamma=1.0) for one in policies.flatten(0, 1)])
        assert_close(function(mdp, policies, gamma=1.0).flatten(0, 1), one_by_one, **EXACT)


def test_gradients_leave_the_logits_alone():
    mdp = two_state()
    plain = zeros(mdp)
    policy_gradient(mdp, plain, gamma=0.9)
    usual_update(mdp, plain, gamma=0.9)
    assert not plain.requires_grad
    logits = oracles.random_logits(mdp, seed=1).requires_grad_()
    before = logits.detach().clone()
    with torch.no_grad():  # the caller's mode does not matter
        for vector in (policy_gradient, usual_update):
            assert not vector(mdp, logits, gamma=0.9).requires_grad
    assert torch.equal(logits.detach(), before)
    assert logits.grad is None


# --- Trajectories --------------------------------------------------------------------------------


def as_paths(trajectories):
    """The columns of Trajectories as (probability, path), without their padding."""
    paths = []
    for n, probability in enumerate(trajectories.probabilities.tolist()):
        length = int(trajectories.valid[:, n].sum())
        rows = [trajectories.states, trajectories.actions, trajectories.rewards]
        columns = [row[:length, n].tolist() for row in rows]
        paths.append((probability, list(zip(*columns, strict=True))))
    return paths


@pytest.mark.parametrize("seed", range(5))
def test_enumeration_lists_the_same_paths_as_the_recursion(seed):
    mdp = finite_mdp(seed)
    logits = oracles.random_logits(mdp, seed + 1)
    found = as_paths(enumerate_trajectories(mdp, softmax_policy(mdp, logits)))
    expected = oracles.all_paths(mdp, oracles.softmax_rows(mdp, logits))

    def chances(paths):  # two paths may differ only in where they end: add them up
        table = {}
        for probability, path in paths:
            table[tuple(path)] = table.get(tuple(path), 0.0) + probability
        return table

    found, expected = chances(found), chances(expected)
    assert found.keys() == expected.keys()
    for path, probability in expected.items():
        assert found[path] == pytest.approx(probability, rel=1e-12)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)


def test_two_state_has_eighteen_trajectories():
    # per step: stay leads to one state, move to two; the last step ends: 3 · 3 · 2
    mdp = two_state()
    listed = enumerate_trajectories(mdp, uniform(mdp))
    assert listed.states.shape == (3, 18)
    # move and succeed, stay on the hill twice: probability 1/4 · 1/2 · 1/2, return −1 + 2 + 2
    best = listed.rewards.sum(0).argmax()
    assert listed.actions[:, best].tolist() == [1, 0, 0]
    assert listed.states[:, best].tolist() == [0, 3, 5]
    assert listed.rewards[:, best].tolist() == [-1, 2, 2]
    assert listed.probabilities[best].item() == 1 / 16


def test_padding_after_the_end_is_blank():
    mdp = finite_mdp(2)
    listed = enumerate_trajectories(mdp, uniform(mdp))
    T = len(listed.states)
    lengths = listed.valid.sum(0)
    assert lengths.min() < lengths.max() == T
    steps = torch.arange(T)[:, None]
    assert torch.equal(listed.valid, steps < lengths)
    assert torch.equal(listed.terminated, steps >= lengths - 1)
    for table in (listed.states, listed.actions, listed.rewards, listed.next_states):
        assert (table[~listed.valid] == 0).all()
    goes_on = ~listed.terminated[:-1]
    assert torch.equal(listed.next_states[:-1][goes_on], listed.states[1:][goes_on])
    assert (listed.next_states[listed.terminated] == 0).all()


def test_rounding_in_a_row_does_not_end_an_episode():
    row = float64(0, 0.5, 0.25, 0.25 - 2**-53)
    assert row.sum() < 1  # by the smallest step that float64 knows there
    transitions = torch.zeros(4, 1, 4, dtype=torch.float64)
    transitions[0, 0] = row
    mdp = MDP(
        "rounded", transitions, float64([0], [0], [0], [0]), float64(1, 0, 0, 0), torch.arange(4)
    )
    listed = enumerate_trajectories(mdp, uniform(mdp))
    assert listed.valid.all()
    assert listed.states[1].tolist() == [1, 2, 3]


def test_order_of_trajectories_does_not_depend_on_the_policy():
    mdp = unroll(random_walk(3, noise=0.25), horizon=4)
    never_left = float64([0, 1]).expand(16, 2)  # zero probabilities stay in the list
    first = enumerate_trajectories(mdp, uniform(mdp))
    second = enumerate_trajectories(mdp, never_left)
    assert torch.equal(first.states, second.states)
    assert torch.equal(first.actions, second.actions)
    # importance sampling is exact: Σ p_old · (p_new/p_old) · return = J(new)
    ratios = second.probabilities / first.probabilities
    mean = (first.probabilities * ratios * first.rewards.sum(0)).sum()
    assert_close(mean, expected_return(mdp, never_left, gamma=1.0), **EXACT)


def test_probabilities_carry_the_gradient():
    mdp = two_state()
    logits = oracles.random_logits(mdp, seed=5).requires_grad_()
    listed = enumerate_trajectories(mdp, softmax_policy(mdp, logits))
    total = (listed.probabilities * listed.rewards.sum(0)).sum()
    by_list = torch.autograd.grad(total, logits)[0]
    assert_close(policy_gradient(mdp, logits.detach(), gamma=1.0), by_list, **EXACT)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sampled_returns_agree_with_the_exact_one(seed):
    mdp = random_walk(5, noise=0.2)
    policy = float64([0.3, 0.7]).expand(6, 2)
    generator = torch.Generator().manual_seed(seed)
    drawn = sample_trajectories(mdp, policy, num_trajectories=4000, generator=generator)
    returns = (drawn.rewards * 0.95 ** torch.arange(len(drawn.rewards))[:, None]).sum(0)
    values, visits = oracles.series(mdp, policy, 0.95, num_steps=2000)
    error = returns.std() / math.sqrt(4000)
    assert abs((drawn.probabilities * returns).sum() - values[2]) < 4 * error
    # negative control: the value one place to the left is far outside
    assert abs(returns.mean() - values[1]) > 8 * error
    counts = torch.stack([((drawn.states == s) & drawn.valid).sum(0) for s in range(6)]).double()
    exact = oracles.series(mdp, policy, 1.0, num_steps=2000)[1]
    assert ((counts.mean(1) - exact).abs() < 4 * counts.std(1) / math.sqrt(4000)).all()
    assert visits.sum() < exact.sum()


def test_sampled_steps_follow_the_tables():
    mdp = finite_mdp(4)
    generator = torch.Generator().manual_seed(0)
    drawn = sample_trajectories(mdp, uniform(mdp), num_trajectories=200, generator=generator)
    for _, path in as_paths(drawn):
        assert oracles.is_connected(path, mdp.transitions)
        assert all(reward == mdp.rewards[s, a] for s, a, reward in path)
    assert drawn.terminated[-1].all()
    assert_close(drawn.probabilities.sum().item(), 1.0, **EXACT)


def test_sampling_uses_only_its_generator():
    mdp = two_state()
    state = torch.get_rng_state()
    draws = [
        sample_trajectories(
            mdp, uniform(mdp), num_trajectories=50, generator=torch.Generator().manual_seed(seed)
        )
        for seed in (3, 3, 4)
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(draws[0].actions, draws[1].actions)
    assert not torch.equal(draws[0].actions, draws[2].actions)


# --- Errors --------------------------------------------------------------------------------------


def refused(action, error=ValueError) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("field", "table", "message"),
    [
        (
            "transitions",
            torch.zeros(2, 2, 3, dtype=torch.float64),
            "transitions has shape (2, 2, 3); expected (2, 2, 2). Give one entry for each state "
            "(or observation) and action of the MDP.",
        ),
        (
            "transitions",
            torch.full((2, 2, 2), 0.75, dtype=torch.float64),
            "transitions has the row [0.75, 0.75] at index (0, 0); expected probabilities with "
            "sum at most 1. Normalise the row, or start from softmax_policy.",
        ),
        (
            "initial",
            float64(0.5, 0.25),
            "initial has the row [0.5, 0.25] at index (); expected probabilities with sum 1. "
            "Normalise the row, or start from softmax_policy.",
        ),
        (
            "initial",
            float64(1.5, -0.5),
            "initial has the row [1.5, -0.5] at index (); expected probabilities with sum 1. "
            "Normalise the row, or start from softmax_policy.",
        ),
        (
            "observation_of",
            torch.tensor([0, -1]),
            "observation_of holds -1; expected 0 or more. Number observations from 0.",
        ),
    ],
)
def test_tables_that_are_no_mdp_are_refused(field, table, message):
    assert refused(lambda: dataclasses.replace(two_step_sign_flip(), **{field: table})) == message


@pytest.mark.messages
def test_other_dtypes_are_refused():
    rewards = torch.zeros(2, 2)
    expected = (
        "rewards has dtype torch.float32; expected torch.float64. "
        "Convert it with rewards.to(torch.float64)."
    )
    mdp = two_step_sign_flip()
    assert refused(lambda: dataclasses.replace(mdp, rewards=rewards), TypeError) == expected
    expected = expected.replace("rewards", "logits")
    assert refused(lambda: softmax_policy(mdp, torch.zeros(1, 2)), TypeError) == expected


@pytest.mark.messages
def test_infinite_rewards_are_refused():
    rewards = float64([0, 1], [0, math.inf])
    message = refused(lambda: dataclasses.replace(two_step_sign_flip(), rewards=rewards))
    assert message.startswith("rewards holds inf at index (1, 1); expected finite numbers.")


@pytest.mark.messages
def test_logits_with_a_row_per_state_are_refused():
    message = refused(lambda: softmax_policy(two_state(), torch.zeros(6, 2, dtype=torch.float64)))
    assert message == (
        "logits has shape (6, 2); expected (2, 2). Give one entry for each state (or observation) "
        "and action of the MDP."
    )


@pytest.mark.messages
def test_logits_in_place_of_probabilities_are_refused():
    mdp = two_step_sign_flip()
    message = refused(lambda: state_values(mdp, float64([0.5, 0.5], [0.0, 2.0]), gamma=0.9))
    assert message == (
        "policy has the row [0.0, 2.0] at index (1,); expected probabilities with sum 1. "
        "Normalise the row, or start from softmax_policy."
    )


@pytest.mark.messages
def test_gamma_outside_the_unit_interval_is_refused():
    mdp = two_state()
    message = refused(lambda: expected_return(mdp, uniform(mdp), gamma=1.01))
    assert message.startswith("gamma is 1.01; expected a number in [0, 1].")


@pytest.mark.messages
def test_episodes_that_never_end_are_refused_at_gamma_one():
    endless, policy = loop(), float64([1])
    assert_close(expected_return(endless, policy, gamma=0.9).item(), 10.0, **EXACT)  # 1/(1 − 0.9)
    expected = (
        "in loop the policy never ends the episode from state 0; expected that every state can "
        "end at gamma 1. Choose gamma below 1, or unroll."
    )
    generator = torch.Generator()
    assert refused(lambda: expected_return(endless, policy, gamma=1.0)) == expected
    assert refused(lambda: usual_update(endless, float64([0]), gamma=0.9)) == expected
    draw = {"num_trajectories": 1, "generator": generator}
    assert refused(lambda: sample_trajectories(endless, policy, **draw)) == expected


@pytest.mark.messages
def test_endless_or_too_many_trajectories_are_refused():
    walk = random_walk(3, noise=0.1)
    long = unroll(random_walk(9, noise=0.1), horizon=15)
    for mdp, name in [(walk, "random walk"), (long, "random walk, 15 steps"), (loop(), "loop")]:
        message = refused(lambda mdp=mdp: enumerate_trajectories(mdp, uniform(mdp)))
        assert message == (
            f"{name} has endless or more than {MAX_TRAJECTORIES} trajectories; expected few and "
            "finite ones. Call unroll with a short horizon, or sample_trajectories."
        )


@pytest.mark.messages
def test_counts_below_one_are_refused():
    assert refused(lambda: unroll(bandit([1.0]), 0)) == (
        "horizon is 0; expected 1 or more. Choose horizon above 0."
    )
    assert refused(lambda: random_walk(0, noise=0.0)) == (
        "num_states is 0; expected 1 or more. Choose num_states above 0."
    )
    assert refused(lambda: random_walk(3, noise=1.5)).startswith("noise is 1.5; expected")


# --- Surrogates ------------------------------------------------------------------------

FORK_OLD = float64([0.9, 0.1], [0.5, 0.5])
FORK_NEW = float64([0.88, 0.12], [0.59, 0.41])


def times(ratios, estimates):
    return ratios * estimates


def test_the_fork_by_hand():
    # Old: the room is worth 0.5·20 = 10, the door 0.1·10 = 1. A(go) = 9, A(stay) = -1, ±10 inside.
    assert_close(state_values(fork(), FORK_OLD, gamma=1.0), float64(1, 10), **EXACT)
    assert_close(advantages(fork(), FORK_OLD, gamma=1.0), float64([-1, 9], [-10, 10]), **EXACT)
    # New: 0.12·0.41·20 = 0.984, so J falls by 0.016.
    assert expected_return(fork(), FORK_NEW, gamma=1.0).item() == pytest.approx(0.984, rel=1e-12)
    # L = (0.12·9 - 0.88·1) + 0.1·(0.41·10 - 0.59·10) = 0.2 - 0.18
    found = expected_surrogate(fork(), FORK_NEW, FORK_OLD, times, gamma=1.0)
    assert found.item() == pytest.approx(0.02, rel=1e-9)  # rel: a difference of near numbers


@pytest.mark.parametrize("seed", range(5))
def test_the_surrogate_touches_j_at_the_old_policy(seed):
    mdp = finite_mdp(seed)
    old = uniform(mdp)
    assert expected_surrogate(mdp, old, old, times, gamma=0.9).item() == pytest.approx(0, abs=1e-12)
    # same slope there: L and J of a policy a little way off differ in second order only
    other = softmax_policy(mdp, oracles.random_logits(mdp, seed))
    gaps = []
    for share in (1e-3, 1e-4):
        near = (1 - share) * old + share * other
        rise = expected_return(mdp, near, gamma=0.9) - expected_return(mdp, old, gamma=0.9)
        gaps.append((expected_surrogate(mdp, near, old, times, gamma=0.9) - rise).abs().item())
    assert gaps[1] <= gaps[0] / 50 + 1e-12


def test_an_action_that_the_old_policy_never_takes_has_no_weight():
    mdp, old, new = bandit([1.0, 2.0]), float64([1, 0]), float64([0.5, 0.5])
    # only action 0 counts: 1·(0.5·0), since V = 1 under the old policy and so A = 0
    assert expected_surrogate(mdp, new, old, times, gamma=1.0).item() == 0
