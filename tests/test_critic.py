"""The critic's errors and losses by hand, by cases and by forward sums.

Algebra in float64 keeps 1e-12.
"""

import itertools
import math

import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import column, examples, flags, float64, gradient
from torch.testing import assert_close

from ppo_lessons import critic

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN, INFINITY = float("nan"), float("inf")
GAMMAS = st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0])
SEEDS, SIZES, WIDTHS = st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 3)

optimal_baseline = under_test(critic.optimal_baseline)
leave_one_out_baseline = under_test(critic.leave_one_out_baseline)
td_errors = under_test(critic.td_errors)
value_loss = under_test(critic.value_loss)
clipped_value_loss = under_test(critic.clipped_value_loss)
explained_variance = under_test(critic.explained_variance)
known_returns = under_test(critic.known_returns)


def flag_column(*steps: int):
    return flags(*steps).unsqueeze(-1)


# --- Baselines -----------------------------------------------------------------------------------


def noise_left(baseline, chances, scores, returns):
    """Variance of score·(return − baseline), by its definition."""
    estimates = [[s * (g - baseline) for s in row] for row, g in zip(scores, returns, strict=True)]
    total = 0.0
    for numbers in zip(*estimates, strict=True):
        middle = sum(p * x for p, x in zip(chances, numbers, strict=True))
        total += sum(p * (x - middle) ** 2 for p, x in zip(chances, numbers, strict=True))
    return total


def test_the_baseline_of_two_levers_takes_all_noise(optimal_baseline):
    # pays 1 and 10, chances .9 and .1, scores −.1 and .9 in one logit:
    # (.9·.01·1 + .1·.81·10) / (.9·.01 + .1·.81) = .819 / .09 = 9.1
    chances, scores, pays = float64(0.9, 0.1), column(-0.1, 0.9), float64(1, 10)
    best = optimal_baseline(chances, scores, pays)
    assert_close(best, float64(9.1)[0], **EXACT)
    tables = (chances.tolist(), scores.tolist(), pays.tolist())
    left = [noise_left(baseline, *tables) for baseline in (0.0, 1.9, best.item(), -20.0)]
    # without: .1·(.9·10)² + .9·.1² − .81² = 7.4529, and so on
    assert left == pytest.approx([7.4529, 4.6656, 0, 76.2129], abs=1e-12)


@examples
@given(seed=SEEDS, size=st.integers(2, 6), num_parameters=st.integers(1, 4))
def test_no_other_baseline_leaves_less_noise(seed, size, num_parameters, optimal_baseline):
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(size, num_parameters + 2, generator=generator, dtype=torch.float64)
    chances, returns = numbers[:, 0].softmax(0), numbers[:, 1]
    # a score has mean zero under the policy
    scores = numbers[:, 2:] - chances @ numbers[:, 2:]
    tables = (chances.tolist(), scores.tolist(), returns.tolist())
    best = optimal_baseline(chances, scores, returns).item()
    least = noise_left(best, *tables)
    for step in (-1.0, -0.01, 0.01, 1.0):
        assert noise_left(best + step, *tables) > least


@pytest.mark.messages
def test_bad_input_to_the_optimal_baseline_is_refused(optimal_baseline):
    chances, scores = float64(0.5, 0.5), column(1, -1)
    with pytest.raises(ValueError, match=r"returns has shape \(3,\); expected \(2,\)"):
        optimal_baseline(chances, scores, float64(1, 2, 3))
    with pytest.raises(ValueError, match=r"scores has shape \(2,\); expected \(2, P\)"):
        optimal_baseline(chances, scores.squeeze(-1), chances)
    with pytest.raises(ValueError, match="all scores are zero"):
        optimal_baseline(chances, 0 * scores, chances)


def test_each_draw_is_compared_with_the_others(leave_one_out_baseline):
    # the others of 1 are 2 and 6, of 2 are 1 and 6, of 6 are 1 and 2
    assert_close(leave_one_out_baseline(float64(1, 2, 6)), float64(4, 3.5, 1.5), **EXACT)
    two_rows = torch.stack([float64(1, 2, 6), float64(0, 0, 9)])
    expected = torch.stack([float64(4, 3.5, 1.5), float64(4.5, 4.5, 0)])
    assert_close(leave_one_out_baseline(two_rows), expected, **EXACT)


def test_leaving_oneself_out_keeps_the_mean_of_the_gradient(leave_one_out_baseline):
    # a lever pays 1 with chance .3, else 0: ∇J = .3·.7 = .21. All batches of three, listed.
    total, chance = 0.0, {0.0: 0.7, 1.0: 0.3}
    for batch in itertools.product(chance, repeat=3):
        rewards = float64(*batch)
        weights = rewards - leave_one_out_baseline(rewards)
        estimate = ((rewards - 0.3) * weights).mean().item()  # the score is action − .3
        total += math.prod(chance[reward] for reward in batch) * estimate
    assert total == pytest.approx(0.21, abs=1e-12)


def test_against_the_others_is_against_the_mean_but_longer(leave_one_out_baseline):
    returns = float64(1, 2, 6, -4)
    weights = returns - leave_one_out_baseline(returns)
    assert_close(weights, 4 / 3 * (returns - returns.mean()), **EXACT)


@pytest.mark.messages
def test_one_draw_has_no_others(leave_one_out_baseline):
    with pytest.raises(ValueError, match=r"returns has shape \(3, 1\); expected at least two"):
        leave_one_out_baseline(torch.ones(3, 1))


# --- TD errors -----------------------------------------------------------------------------------


def test_td_errors_match_the_hand(td_errors):
    # 1 + 0.9·6 − 5 = 1.4;  2 + 0 − 3 = −1 behind a final state
    errors = td_errors(column(1, 2), column(5, 3), column(6, 8), flag_column(0, 1), gamma=0.9)
    assert_close(errors, column(1.4, -1), **EXACT)


def test_a_critic_that_is_right_has_no_td_error(td_errors):
    # reward 1 for ever at gamma .99 is worth 1 / (1 − .99) = 100
    hundred = column(100, 100)
    errors = td_errors(column(1, 1), hundred, hundred, flag_column(0, 0), gamma=0.99)
    # 1 + 99 − 100: rounding of 99 leaves 1e-14
    assert_close(errors, column(0, 0), rtol=0, atol=1e-12)


def test_nothing_behind_a_final_state_counts_not_even_nan(td_errors):
    for junk in (NAN, INFINITY, 1e9):
        errors = td_errors(column(2), column(3), column(junk), flag_column(1), gamma=0.9)
        assert_close(errors, column(-1), **EXACT)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=GAMMAS)
def test_td_errors_are_the_case_distinction(seed, num_steps, num_envs, gamma, td_errors):
    rollout = oracles.draw_rollout(seed, num_steps, num_envs)
    del rollout["truncated"]  # a truncated step keeps its future
    expected = oracles.td_errors(**rollout, gamma=gamma)
    assert_close(td_errors(**rollout, gamma=gamma), expected, **EXACT)


@pytest.mark.messages
def test_bad_input_to_td_errors_is_refused(td_errors):
    ones, alive = torch.ones(2, 1), flag_column(0, 0)
    with pytest.raises(ValueError, match=r"next_values has shape \(1, 1\); expected \(2, 1\)"):
        td_errors(ones, ones, ones[:1], alive, gamma=0.9)
    with pytest.raises(ValueError, match=r"terminated has shape \(2,\); expected \(2, 1\)"):
        td_errors(ones, ones, ones, flags(0, 0), gamma=0.9)
    with pytest.raises(TypeError, match=r"terminated has dtype torch.float32; expected torch.bool"):
        td_errors(ones, ones, ones, ones, gamma=0.9)
    with pytest.raises(TypeError, match=r"values has dtype torch.int64"):
        td_errors(ones, ones.long(), ones, alive, gamma=0.9)
    with pytest.raises(TypeError, match=r"rewards is a list; expected a torch.Tensor"):
        td_errors([1.0, 1.0], ones, ones, alive, gamma=0.9)
    with pytest.raises(ValueError, match=r"gamma is -0.1; expected a number in \[0, 1\]"):
        td_errors(ones, ones, ones, alive, gamma=-0.1)
    for name in ("rewards", "values", "next_values"):
        named = {"rewards": ones, "values": ones, "next_values": ones, "terminated": alive}
        named[name] = torch.tensor([[1.0], [NAN]])
        with pytest.raises(ValueError, match=rf"^{name} holds nan at index \(1, 0\)"):
            td_errors(**named, gamma=0.9)


# --- Value losses --------------------------------------------------------------------------------


def test_the_value_loss_is_half_the_mean_square(value_loss):
    # ((1 − 4)² + (2 − 0)²) / 2 / 2 = 13/4, slopes (1 − 4)/2 and (2 − 0)/2
    values = float64(1, 2).requires_grad_()
    loss = value_loss(values, float64(4, 0))
    assert_close(loss, float64(3.25)[0], **EXACT)
    assert_close(gradient(loss, values), float64(-1.5, 1), **EXACT)


def test_a_column_against_a_row_is_refused(value_loss):
    # Broadcast to (N, N) the loss of a perfect critic is not 0, and every value is pulled to the
    # mean. The package says so in a ValueError, the annotations in a TypeError.
    targets = float64(1, 2, 3)
    with pytest.raises((ValueError, TypeError)):
        value_loss(targets.unsqueeze(1), targets)


def test_broadcasting_would_punish_a_perfect_critic():
    # What the refusal above saves from: prediction equals target, the loss is Var and not 0.
    targets = float64(1, 2, 3)
    broadcast = ((targets.unsqueeze(1) - targets) ** 2).mean() / 2
    assert_close(broadcast, targets.var(correction=0), **EXACT)


def test_the_targets_are_constants(value_loss):
    values, returns = float64(1, 2).requires_grad_(), float64(4, 0).requires_grad_()
    assert gradient(value_loss(values, returns), returns).count_nonzero() == 0


def test_masked_targets_change_neither_loss_nor_gradient(value_loss):
    for junk in (NAN, INFINITY, 1e9):
        values = float64(1, 2, 5).requires_grad_()
        loss = value_loss(values, float64(4, 0, junk), mask=flags(1, 1, 0))
        assert_close(loss, float64(3.25)[0], **EXACT)
        assert_close(gradient(loss, values), float64(-1.5, 1, 0), **EXACT)


@pytest.mark.messages
def test_bad_input_to_the_value_losses_is_refused(value_loss, clipped_value_loss):
    row, tall = torch.zeros(3), torch.zeros(3, 1)
    with pytest.raises(ValueError, match=r"returns has shape \(3, 1\); expected \(3,\)"):
        value_loss(row, tall)
    with pytest.raises(ValueError, match=r"values_old has shape \(3, 1\); expected \(3,\)"):
        clipped_value_loss(row, row, values_old=tall, clip_epsilon=0.2)
    with pytest.raises(ValueError, match=r"mask has shape \(2,\); expected \(3,\)"):
        value_loss(row, row, mask=flags(1, 0))
    with pytest.raises(ValueError, match="clip_epsilon is 0"):
        clipped_value_loss(row, row, values_old=row, clip_epsilon=0)


def test_the_clipped_loss_takes_the_larger_error(clipped_value_loss):
    # V_old = 5, V = 1, return 10, ε = .2: (1 − 10)² = 81 against (4.8 − 10)² = 27.04. The value
    # went the wrong way, so it must be pulled back: half of 81, slope 1 − 10.
    values = float64(1).requires_grad_()
    loss = clipped_value_loss(values, float64(10), values_old=float64(5), clip_epsilon=0.2)
    assert_close(loss, float64(40.5)[0], **EXACT)
    assert_close(gradient(loss, values), float64(-9), **EXACT)


def test_a_value_that_moved_far_enough_gets_no_gradient(clipped_value_loss):
    # V_old = 5, V = 7, return 10: the move of .2 is all that pays, (5.2 − 10)² / 2 = 11.52
    values = float64(7).requires_grad_()
    loss = clipped_value_loss(values, float64(10), values_old=float64(5), clip_epsilon=0.2)
    assert_close(loss, float64(11.52)[0], **EXACT)
    assert_close(gradient(loss, values), float64(0), **EXACT)


def test_shifting_all_values_leaves_the_clipped_loss(clipped_value_loss):
    values, returns, values_old = float64(1, 4), float64(2, 9), float64(1.1, 3)
    losses = [
        clipped_value_loss(
            values + shift, returns + shift, values_old=values_old + shift, clip_epsilon=0.2
        )
        for shift in (0.0, 100.0)
    ]
    # numbers near 100 are known to 1e-14, their squared differences to about 1e-13
    assert_close(losses[0], losses[1], rtol=1e-11, atol=0)


def test_targets_and_old_values_are_constants(clipped_value_loss):
    values, returns, values_old = (
        float64(*numbers).requires_grad_() for numbers in ((1, 7), (10, 10), (5, 5))
    )
    loss = clipped_value_loss(values, returns, values_old=values_old, clip_epsilon=0.2)
    slope_returns, slope_old = torch.autograd.grad(loss, (returns, values_old), allow_unused=True)
    assert slope_returns is None
    assert slope_old is None


def test_masked_values_change_neither_clipped_loss_nor_gradient(clipped_value_loss):
    for junk in (NAN, INFINITY, 1e9):
        values = float64(1, 3).requires_grad_()
        loss = clipped_value_loss(
            values,
            float64(10, junk),
            values_old=float64(5, 3),
            clip_epsilon=0.2,
            mask=flags(1, 0),
        )
        assert_close(loss, float64(40.5)[0], **EXACT)
        assert_close(gradient(loss, values), float64(-9, 0), **EXACT)


@examples
@given(seed=SEEDS, clip_epsilon=st.sampled_from([0.05, 0.2, 1.0]))
def test_the_clipped_loss_is_the_case_distinction_and_never_below_the_plain_one(
    seed, clip_epsilon, clipped_value_loss
):
    generator = torch.Generator().manual_seed(seed)
    values, returns, values_old = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    loss = clipped_value_loss(values, returns, values_old=values_old, clip_epsilon=clip_epsilon)
    lists = (values.tolist(), returns.tolist(), values_old.tolist())
    expected = oracles.clipped_value_loss(*lists, clip_epsilon)
    assert_close(loss, float64(expected)[0], **EXACT)
    assert loss >= ((values - returns) ** 2).mean() / 2 - 1e-12


# --- Explained variance --------------------------------------------------------------------------


def test_a_perfect_critic_explains_everything(explained_variance):
    returns = float64(1, 2, 6)
    assert_close(explained_variance(returns, returns), float64(1)[0], **EXACT)


def test_a_constant_critic_explains_nothing(explained_variance):
    assert_close(explained_variance(float64(7, 7, 7), float64(1, 2, 6)), float64(0)[0], **EXACT)


def test_a_constant_error_costs_nothing(explained_variance):
    values, returns = float64(1, 2, 5), float64(1, 2, 6)
    plain, shifted = (explained_variance(values + shift, returns) for shift in (0.0, -50.0))
    assert_close(plain, shifted, rtol=1e-11, atol=0)  # numbers near 50 lose two digits
    assert plain > 0.9


def test_a_wrong_scale_costs(explained_variance):
    # V = 2·return misses by the return itself: 1 − Var / Var = 0; V = −return: 1 − 4 = −3
    returns = float64(1, 2, 6)
    assert_close(explained_variance(2 * returns, returns), float64(0)[0], **EXACT)
    assert_close(explained_variance(-returns, returns), float64(-3)[0], **EXACT)


def test_returns_that_do_not_vary_leave_nothing_to_explain(explained_variance):
    # 0.1 is no binary fraction: the variance of equal numbers may come out as 1e-17 instead of 0
    for constant in (0.0, 0.1, 1e4 / 3):
        for dtype in (torch.float32, torch.float64):
            returns = torch.full((7,), constant, dtype=dtype)
            values = torch.arange(7, dtype=dtype)
            assert explained_variance(values, returns).isnan()


def test_no_returns_leave_nothing_to_explain(explained_variance):
    nothing = torch.zeros(0, dtype=torch.float64)
    assert explained_variance(nothing, nothing).isnan()


@examples
@given(seed=SEEDS, size=st.integers(2, 9))
def test_explained_variance_is_one_minus_the_share_that_was_missed(seed, size, explained_variance):
    generator = torch.Generator().manual_seed(seed)
    values, returns = torch.randn(2, size, generator=generator, dtype=torch.float64)
    expected = oracles.explained_variance(values.tolist(), returns.tolist())
    # two returns that happen to be close make the quotient large: rtol of its own size
    assert_close(explained_variance(values, returns), float64(expected)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.messages
def test_values_of_another_shape_explain_nothing(explained_variance):
    with pytest.raises(ValueError, match=r"returns has shape \(3,\); expected \(3, 1\)"):
        explained_variance(torch.zeros(3, 1), torch.zeros(3))


# --- Known returns -------------------------------------------------------------------------------


def test_only_episodes_whose_end_was_seen_are_known(known_returns):
    # cut after step 1; terminated at 3, so 4 + 8/2 = 8 and 8; steps 4 and 5 still run
    returns, known = known_returns(
        column(1, 2, 4, 8, 16, 32),
        flag_column(0, 0, 0, 1, 0, 0),
        flag_column(0, 1, 0, 0, 0, 0),
        gamma=0.5,
    )
    assert known.flatten().tolist() == [False, False, True, True, False, False]
    assert_close(returns, column(0, 0, 8, 8, 0, 0), **EXACT)


def test_a_step_both_terminated_and_truncated_is_known(known_returns):
    returns, known = known_returns(column(3, 5), flag_column(0, 1), flag_column(0, 1), gamma=1.0)
    assert known.all()
    assert_close(returns, column(8, 5), **EXACT)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=GAMMAS)
def test_known_returns_are_the_forward_sums(seed, num_steps, num_envs, gamma, known_returns):
    rollout = oracles.draw_rollout(seed, num_steps, num_envs)
    facts = (rollout["rewards"], rollout["terminated"], rollout["truncated"])
    returns, known = known_returns(*facts, gamma=gamma)
    expected, expected_known = oracles.known_returns(*facts, gamma)
    assert torch.equal(known, expected_known)
    assert_close(returns, expected, **EXACT)


@pytest.mark.messages
def test_bad_input_to_known_returns_is_refused(known_returns):
    rewards, no = torch.ones(2, 1), flag_column(0, 0)
    with pytest.raises(ValueError, match=r"truncated has shape \(2,\); expected \(2, 1\)"):
        known_returns(rewards, no, flags(0, 0), gamma=0.9)
    with pytest.raises(TypeError, match=r"truncated has dtype torch.float32"):
        known_returns(rewards, no, no.float(), gamma=0.9)
    with pytest.raises(ValueError, match=r"rewards holds inf at index \(0, 0\)"):
        known_returns(rewards * math.inf, no, no, gamma=0.9)
    with pytest.raises(ValueError, match=r"gamma is nan"):
        known_returns(rewards, no, no, gamma=NAN)
