"""The trust region: best step in a fence, a price on distance, the promise of the theorem.

Algebra in float64 keeps 1e-12; solves with a nearly singular matrix keep 1e-9.
"""

import math
from functools import partial
from itertools import product
from types import SimpleNamespace

import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples, flags, float64, gradient
from oracles_mdp import random_logits, random_mdp, series
from torch.testing import assert_close

from ppo_lessons import trust_region
from ppo_lessons.mdp import MDP, fisher_matrix, fork, softmax_policy
from ppo_lessons.training_loop import Parts, PPOConfig, train

EXACT = {"rtol": 1e-12, "atol": 1e-12}
SOLVED = {"rtol": 1e-9, "atol": 1e-9}
NAN, INFINITY = float("nan"), float("inf")
SEEDS = st.integers(0, 10_000)

natural_gradient_step = under_test(trust_region.natural_gradient_step)
backtracking_line_search = under_test(trust_region.backtracking_line_search)
penalty_loss = under_test(trust_region.penalty_loss)
adapt_beta = under_test(trust_region.adapt_beta)
stop_on_kl = under_test(trust_region.stop_on_kl)
trpo_penalty = under_test(trust_region.trpo_penalty)
trpo_lower_bound = under_test(trust_region.trpo_lower_bound)

COIN = float64(0.25, -0.25, -0.25, 0.25).reshape(2, 2)  # F of two logits at p = 1/2


def scores(seed: int, num_parameters: int = 5, rank: int = 3):
    """A gradient and a singular Fisher matrix of given rank, as of a few weighted scores."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(rank, num_parameters, generator=generator, dtype=torch.float64)
    weights = torch.rand(rank, generator=generator, dtype=torch.float64) + 0.2
    slopes = torch.randn(rank, generator=generator, dtype=torch.float64)
    return (weights * slopes) @ table, torch.einsum("r,rp,rq->pq", weights, table, table)


# --- The natural step ----------------------------------------------------------------------------


def test_the_step_of_a_fair_coin_matches_the_hand(natural_gradient_step):
    # The logits part by h with ½·¼·h² = .01, so h = .2828: half of it up, half of it down.
    step = natural_gradient_step(float64(-3, 3), COIN, max_kl=0.01)
    assert_close(step, float64(-math.sqrt(0.02), math.sqrt(0.02)), **EXACT)


@examples
@given(seed=SEEDS, max_kl=st.sampled_from([1e-4, 0.01, 0.5]))
def test_the_quadratic_kl_of_the_step_is_what_was_allowed(seed, max_kl, natural_gradient_step):
    slope, fisher = scores(seed)
    step = natural_gradient_step(slope, fisher, max_kl=max_kl)
    assert (step @ fisher @ step / 2).item() == pytest.approx(max_kl, rel=1e-9)


@examples
@given(seed=SEEDS)
def test_no_other_step_of_the_same_kl_climbs_more(seed, natural_gradient_step):
    slope, fisher = scores(seed)
    step = natural_gradient_step(slope, fisher, max_kl=0.02)
    generator = torch.Generator().manual_seed(seed)
    others = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    sizes = torch.einsum("np,pq,nq->n", others, fisher, others) / 2
    others = others * (0.02 / sizes).sqrt().unsqueeze(-1)
    assert (others @ slope).max() <= slope @ step + 1e-12


@examples
@given(seed=SEEDS)
def test_written_in_other_parameters_it_is_the_same_step(seed, natural_gradient_step):
    # θ = M·ψ turns g into Mᵀ·g and F into Mᵀ·F·M, and the step in θ is M times that in ψ. Where F
    # is 0 the parameters are free: what must agree is F·step, the change of the policy.
    slope, fisher = scores(seed)
    generator = torch.Generator().manual_seed(seed + 1)
    mixing = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    mixing = mixing + 3 * torch.eye(5, dtype=torch.float64)
    here = natural_gradient_step(slope, fisher, max_kl=0.02)
    there = natural_gradient_step(mixing.T @ slope, mixing.T @ fisher @ mixing, max_kl=0.02)
    # conditioning of a random matrix: about 1e3, its square times 1e-16, with room
    assert_close(fisher @ here, fisher @ (mixing @ there), rtol=1e-6, atol=1e-6)


@examples
@given(seed=SEEDS)
def test_the_scale_of_the_reward_does_not_matter(seed, natural_gradient_step):
    slope, fisher = scores(seed)
    once = natural_gradient_step(slope, fisher, max_kl=0.01)
    assert_close(natural_gradient_step(1000 * slope, fisher, max_kl=0.01), once, **SOLVED)


def test_the_step_goes_uphill(natural_gradient_step):
    slope, fisher = scores(7)
    assert slope @ natural_gradient_step(slope, fisher, max_kl=0.01) > 0


def test_a_shift_of_all_logits_is_no_part_of_the_step(natural_gradient_step):
    mdp = fork()
    logits = random_logits(mdp, 3)
    fisher = fisher_matrix(mdp, logits, gamma=1.0)
    step = natural_gradient_step(float64(-1, 1, 2, -2), fisher, max_kl=0.01).reshape(2, 2)
    assert_close(step.sum(-1), float64(0, 0), **SOLVED)
    rare = natural_gradient_step(float64(-1, 1, 1.5, -1.5), COIN.repeat(2, 2), max_kl=0.01)
    assert_close(rare[:2], rare[2:], **SOLVED)


def test_where_nothing_climbs_there_is_no_step(natural_gradient_step):
    step = natural_gradient_step(float64(0, 0), COIN, max_kl=0.01)
    assert_close(step, float64(0, 0), **EXACT)


@pytest.mark.messages
def test_bad_input_to_the_natural_step_is_refused(natural_gradient_step):
    with pytest.raises(ValueError, match=r"fisher has shape \(2, 2\); expected \(3, 3\)"):
        natural_gradient_step(float64(1, 2, 3), COIN, max_kl=0.01)
    with pytest.raises(ValueError, match="max_kl is 0; expected a finite number above 0"):
        natural_gradient_step(float64(1, -1), COIN, max_kl=0)
    with pytest.raises(ValueError, match="gradient holds nan"):
        natural_gradient_step(float64(1, NAN), COIN, max_kl=0.01)


# --- The line search -----------------------------------------------------------------------------
# One parameter from 0, step 1, KL = θ².


def search(backtracking_line_search, improvement, max_kl, *, shrink=0.5, max_tries=10):
    return backtracking_line_search(
        float64(0), float64(1), improvement=improvement, kl=lambda tried: (tried**2).sum(),
        max_kl=max_kl, shrink=shrink, max_tries=max_tries,
    ).item()  # fmt: skip


def test_a_step_that_fits_is_taken_whole(backtracking_line_search):
    assert search(backtracking_line_search, torch.sum, 1.0) == 1


def test_the_step_is_shortened_until_its_kl_fits(backtracking_line_search):
    # 1, .25, .0625: the third fits into .1
    assert search(backtracking_line_search, torch.sum, 0.1) == 0.25
    assert search(backtracking_line_search, torch.sum, 0.3, shrink=0.8) == pytest.approx(0.512)


def test_the_step_is_shortened_until_it_improves(backtracking_line_search):
    # θ·(.3 − θ) is above 0 up to .3
    rises_first = lambda tried: (tried * (0.3 - tried)).sum()  # noqa: E731  (one formula)
    assert search(backtracking_line_search, rises_first, 1.0) == 0.25


def test_where_no_try_passes_nothing_moves(backtracking_line_search):
    assert search(backtracking_line_search, lambda tried: -tried.sum(), 1.0) == 0
    assert search(backtracking_line_search, torch.sum, 0.1, max_tries=2) == 0


def test_as_many_tries_as_were_asked_for(backtracking_line_search):
    assert search(backtracking_line_search, torch.sum, 0.1, max_tries=3) == 0.25


def test_to_gain_nothing_is_no_improvement(backtracking_line_search):
    assert search(backtracking_line_search, lambda tried: 0 * tried.sum(), 1.0) == 0


@pytest.mark.messages
def test_bad_input_to_the_line_search_is_refused(backtracking_line_search):
    with pytest.raises(
        ValueError, match="shrink is 1 and max_tries is 10; expected a number between 0"
    ):
        search(backtracking_line_search, torch.sum, 0.1, shrink=1)
    with pytest.raises(ValueError, match=r"shrink is 0\.5 and max_tries is 0"):
        search(backtracking_line_search, torch.sum, 0.1, max_tries=0)
    with pytest.raises(ValueError, match=r"step has shape \(2,\); expected \(1,\)"):
        backtracking_line_search(
            float64(0), float64(1, 1), improvement=torch.sum, kl=torch.sum,
            max_kl=0.1, shrink=0.5, max_tries=1,
        )  # fmt: skip


# --- The penalty ---------------------------------------------------------------------------------


def draw(seed: int, size: int = 12):
    generator = torch.Generator().manual_seed(seed)
    log_probs_old = -3 * torch.rand(size, generator=generator, dtype=torch.float64)
    moves = 0.3 * torch.randn(size, generator=generator, dtype=torch.float64)
    advantages = torch.randn(size, generator=generator, dtype=torch.float64)
    return log_probs_old + moves, log_probs_old, advantages


def enumerated_loss(logits: list[float], old: list[float], values: list[float], beta: float):
    """−Σ_a π(a)·A(a) + β·KL(π_old ‖ π) over all actions, in plain numbers."""
    total = math.fsum(math.exp(z) for z in logits)
    new = [math.exp(z) / total for z in logits]
    gain = math.fsum(p * value for p, value in zip(new, values, strict=True))
    return beta * oracles.categorical_kl(old, new) - gain


def test_the_gradient_is_that_of_the_exact_penalised_objective(penalty_loss):
    # 6, 3 and 1 of 10 samples: the mean over the sample is the expectation under π_old.
    old, counts, values = [0.6, 0.3, 0.1], [6, 3, 1], [0.5, -2.0, 1.0]
    drawn = torch.tensor([0] * 6 + [1] * 3 + [2])
    for start, beta in product(([0.3, -0.2, 0.8], [-1.0, 1.0, 0.0]), (0.1, 3.0)):
        logits = float64(*start).requires_grad_()
        log_probs = logits.log_softmax(0)[drawn]
        (log_probs_old,) = oracles.samples_of(counts, old)
        loss = penalty_loss(log_probs, log_probs_old, float64(*values)[drawn], beta=beta)
        assert loss.item() == pytest.approx(enumerated_loss(start, old, values, beta), rel=1e-12)
        step = 1e-6  # central differences: error about step² = 1e-12, and 1e-16 / step
        for place, slope in enumerate(gradient(loss, logits).tolist()):
            up, down = (
                [z + sign * step * (k == place) for k, z in enumerate(start)] for sign in (1, -1)
            )
            rise = enumerated_loss(up, old, values, beta) - enumerated_loss(down, old, values, beta)
            assert slope == pytest.approx(rise / (2 * step), abs=1e-8)


def test_where_nothing_has_moved_no_sample_feels_the_penalty(penalty_loss):
    log_probs = float64(-0.5, -1, -2).requires_grad_()
    loss = penalty_loss(log_probs, log_probs.detach(), float64(3, -6, 9), beta=100.0)
    assert_close(gradient(loss, log_probs), float64(-1, 2, -3), **EXACT)


def test_an_action_that_has_moved_is_pulled_back_from_either_side(penalty_loss):
    log_probs = float64(-1, -1).requires_grad_()
    loss = penalty_loss(log_probs, float64(-2, -0.5), float64(0, 0), beta=1.0)
    too_likely, too_rare = gradient(loss, log_probs).tolist()
    assert too_likely > 0 > too_rare


def test_old_log_probs_that_still_hang_on_the_graph_are_constants(penalty_loss):
    log_probs = float64(-0.5, -1).requires_grad_()
    loss = penalty_loss(log_probs, log_probs, float64(2, -4), beta=1.0)
    assert_close(gradient(loss, log_probs), float64(-1, 2), **EXACT)


def test_no_gradient_flows_through_the_advantages(penalty_loss):
    log_probs, log_probs_old, advantages = (tensor.requires_grad_() for tensor in draw(2))
    loss = penalty_loss(log_probs, log_probs_old, advantages, beta=1.0)
    assert gradient(loss, advantages).count_nonzero() == 0


def test_a_batch_twice_over_has_the_same_loss(penalty_loss):
    once = penalty_loss(*draw(3), beta=2.0)
    assert_close(penalty_loss(*(tensor.repeat(2) for tensor in draw(3)), beta=2.0), once, **EXACT)


def test_masked_samples_change_neither_loss_nor_gradient(penalty_loss):
    kept = [tensor.clone() for tensor in draw(4)]
    kept[0].requires_grad_()
    expected = penalty_loss(*kept, beta=2.0)
    slope = gradient(expected, kept[0])
    mask = flags(*(1,) * 12, 0, 0)
    for junk_old, junk_advantage in ((NAN, NAN), (-1e4, 1.0), (0.0, 1e9)):
        log_probs = torch.cat([kept[0].detach(), float64(-1, -1)]).requires_grad_()
        log_probs_old = torch.cat([kept[1], float64(junk_old, junk_old)])
        advantages = torch.cat([kept[2], float64(junk_advantage, junk_advantage)])
        loss = penalty_loss(log_probs, log_probs_old, advantages, beta=2.0, mask=mask)
        assert_close(loss, expected, **EXACT)
        assert_close(gradient(loss, log_probs), torch.cat([slope, float64(0, 0)]), **EXACT)


@pytest.mark.messages
def test_bad_input_to_the_penalty_is_refused(penalty_loss):
    zeros = torch.zeros(3)
    with pytest.raises(ValueError, match=r"log_probs_old has shape \(3, 1\); expected \(3,\)"):
        penalty_loss(zeros, zeros.unsqueeze(1), zeros, beta=1.0)
    with pytest.raises(ValueError, match=r"beta is -1\.0; expected a finite number above 0"):
        penalty_loss(zeros, zeros, zeros, beta=-1.0)


# --- The price that follows the KL ---------------------------------------------------------------


def test_the_price_follows_the_table_of_the_paper(adapt_beta):
    # target 3: the tolerance runs from 3 / 1.5 = 2 to 3 · 1.5 = 4.5, edges included
    measured = [adapt_beta(10.0, kl, target_kl=3.0) for kl in (1.9, 2.0, 3.0, 4.5, 4.6)]
    assert measured == [5.0, 10.0, 10.0, 10.0, 20.0]


def test_the_change_of_price_does_not_grow_with_the_distance(adapt_beta):
    assert adapt_beta(1.0, 1e6, target_kl=0.01) == 2
    assert adapt_beta(1.0, -1e6, target_kl=0.01) == 0.5


@pytest.mark.messages
def test_bad_prices_are_refused(adapt_beta):
    with pytest.raises(ValueError, match="beta is 0"):
        adapt_beta(0.0, 0.1, target_kl=0.01)
    with pytest.raises(ValueError, match=r"target_kl is -0\.01"):
        adapt_beta(1.0, 0.1, target_kl=-0.01)


def test_the_adaptive_penalty_is_the_penalty_at_its_price():
    penalty = trust_region.AdaptivePenalty(beta=2.0, target_kl=0.01)
    mask = flags(*(1,) * 9, 0, 0, 0)
    log_probs, log_probs_old, advantages = draw(5)
    log_ratios = (log_probs - log_probs_old)[mask]
    terms = 2 * (log_ratios.exp() - 1 - log_ratios) - log_ratios.exp() * advantages[mask]
    assert_close(penalty(log_probs, log_probs_old, advantages, mask=mask), terms.mean(), **EXACT)


def test_the_adaptive_penalty_looks_at_the_last_epoch():
    penalty = trust_region.AdaptivePenalty(beta=2.0, target_kl=0.01)
    epochs = float64(0.001, 0.001, 0.0, 0.1).reshape(2, 2)  # last epoch: .05
    penalty.after_iteration(SimpleNamespace(stats=SimpleNamespace(kl_k3=epochs)))
    assert penalty.beta == 4
    penalty.after_iteration(SimpleNamespace(stats=SimpleNamespace(kl_k3=epochs.flip(0))))
    assert penalty.beta == 2


def test_in_the_loop_a_price_that_is_far_too_high_falls_at_every_iteration():
    penalty = trust_region.AdaptivePenalty(beta=1e6, target_kl=0.01)
    config = PPOConfig(num_envs=4, num_steps=32, total_steps=3 * 128, num_epochs=1)
    history = train(config, parts=Parts(policy_loss=penalty), on_iteration=penalty.after_iteration)
    assert len(history) == 3
    assert penalty.beta == 1e6 / 8


# --- The rule that stops -------------------------------------------------------------------------


def test_the_rule_stops_beyond_the_limit_and_not_before(stop_on_kl):
    answers = [stop_on_kl(kl, max_kl=0.02) for kl in (-0.5, 0.0, 0.019, 0.02, 0.021)]
    assert answers == [False, False, False, False, True]


def test_in_the_loop_the_rule_leaves_out_epochs_and_takes_none_back(stop_on_kl):
    config = PPOConfig(num_envs=4, num_steps=32, total_steps=128, num_epochs=6, learning_rate=0.05)
    kls = []

    def watched(kl_k1, *, max_kl):
        kls.append(kl_k1)
        return stop_on_kl(kl_k1, max_kl=max_kl)

    history = train(config, parts=Parts(stop_epochs=partial(watched, max_kl=0.05)))
    assert history.rows[0]["num_epochs"] == len(kls) < 6
    assert kls[-1] > 0.05
    assert max(kls[:-1], default=0) <= 0.05


@pytest.mark.messages
def test_a_limit_of_zero_is_refused(stop_on_kl):
    with pytest.raises(ValueError, match="max_kl is 0"):
        stop_on_kl(0.1, max_kl=0)


# --- The promise ---------------------------------------------------------------------------------


def see_saw() -> MDP:
    """Action a leads to state a. Action 1 pays 1 in state 0 and costs 1 in state 1; 0 reversed.

    At the fair coin V = 0 and A = ±1. What L credits in state 0 is paid for in state 1.
    """
    moves = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    rewards = float64(-1, 1, 1, -1).reshape(2, 2)
    return MDP("see-saw", moves, rewards, float64(1, 0), torch.arange(2))


def coins(*probabilities: float):
    ones = float64(*probabilities)
    return torch.stack([1 - ones, ones], dim=-1)


def test_the_price_of_the_fork_matches_the_hand(trpo_penalty):
    # In the room V = 10 and A = ±10, the largest; C = 4 · 10 · .9 / .1² = 3600.
    assert trpo_penalty(fork(), coins(0.1, 0.5), gamma=0.9) == pytest.approx(3600, rel=1e-9)


def test_a_bad_surprise_counts_as_much_as_a_good_one(trpo_penalty):
    # At .9 the room has A = −18 (wrong) and +2 (right).
    assert trpo_penalty(fork(), coins(0.1, 0.9), gamma=0.5) == pytest.approx(4 * 18 * 0.5 / 0.25)


def test_without_a_future_distance_is_free(trpo_penalty):
    assert trpo_penalty(fork(), coins(0.1, 0.5), gamma=0.0) == 0


@pytest.mark.messages
def test_at_gamma_one_there_is_no_price(trpo_penalty):
    with pytest.raises(ValueError, match=r"gamma is 1; expected a number in \[0, 1\)"):
        trpo_penalty(fork(), coins(0.1, 0.5), gamma=1.0)


def test_the_bound_of_the_see_saw_matches_the_hand(trpo_lower_bound):
    # γ = .5, from 1/2 to .5 + x. C = 4 · 1 · .5 / .25 = 8. Visits: state 0 has 1.5, state 1 has .5.
    # L = (1.5 − .5) · 2x, KL = −½·log(1 − 4x²).
    for x in (0.01, 0.1, 0.3):
        measured = trpo_lower_bound(see_saw(), coins(0.5 + x, 0.5 + x), coins(0.5, 0.5), gamma=0.5)
        assert measured.item() == pytest.approx(2 * x + 4 * math.log1p(-4 * x * x), rel=1e-9)


def test_the_worst_state_counts_however_rarely_it_is_visited(trpo_lower_bound):
    # Only the room moves, .5 to .9: KL = ½·log(.25 / .09) there. J_old + L = .9 · 1 + .9 · .8.
    old, new = coins(0.1, 0.5), coins(0.1, 0.9)
    expected = 0.9 + 0.72 - 3600 * 0.5 * math.log(0.25 / 0.09)
    assert trpo_lower_bound(fork(), new, old, gamma=0.9).item() == pytest.approx(expected, rel=1e-9)


def test_at_the_old_policy_the_bound_is_its_return(trpo_lower_bound):
    old = coins(0.1, 0.5)
    assert trpo_lower_bound(fork(), old, old, gamma=0.9).item() == pytest.approx(0.9, rel=1e-12)


def test_no_new_policy_falls_below_the_bound(trpo_lower_bound):
    for seed, spread in product(range(40), (0.01, 0.3, 2.0)):
        mdp = random_mdp(seed, num_states=3, num_actions=2, num_observations=3, finite=False)
        old = softmax_policy(mdp, random_logits(mdp, seed))
        moved = random_logits(mdp, seed) + spread * random_logits(mdp, seed + 1000)
        new = softmax_policy(mdp, moved)
        values, _ = series(mdp, new, 0.8, 200)  # .8 · .9 per step: 1e-28 after 200
        bound = trpo_lower_bound(mdp, new, old, gamma=0.8)
        assert bound <= (mdp.initial * values).sum() + 1e-12


def test_with_a_tenth_of_the_price_the_see_saw_falls_below(trpo_lower_bound):
    # J = Σ γᵗ·E r_t. With p = .5 + x in both states: r_0 = 2x, later −4x² each: 2x − 4x²·γ/(1 − γ).
    x = 0.01
    bound = trpo_lower_bound(see_saw(), coins(0.5 + x, 0.5 + x), coins(0.5, 0.5), gamma=0.5)
    missing = 2 * x - bound.item()
    assert bound.item() <= 2 * x - 4 * x * x
    assert 2 * x - missing / 10 > 2 * x - 4 * x * x


def test_an_action_that_dies_leaves_no_promise(trpo_lower_bound):
    assert trpo_lower_bound(fork(), coins(0.0, 0.5), coins(0.1, 0.5), gamma=0.9) == -INFINITY


def test_policies_side_by_side_have_their_own_bounds(trpo_lower_bound):
    old, new = coins(0.1, 0.5), coins(0.12, 0.41)
    both = trpo_lower_bound(fork(), torch.stack([old, new]), old, gamma=0.9)
    alone = trpo_lower_bound(fork(), new, old, gamma=0.9)
    assert_close(both, torch.stack([float64(0.9)[0], alone]), **EXACT)
