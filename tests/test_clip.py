"""The clip against if and else, by value and by slope: it is its gradient that matters.

Algebra in float64 keeps 1e-12.
"""

import math
from statistics import NormalDist

import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples, flags, float64, gradient
from torch.testing import assert_close

from ppo_lessons import clip

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN, INFINITY = float("nan"), float("inf")
SEEDS = st.integers(0, 10_000)

clipped_surrogate = under_test(clip.clipped_surrogate)
clipped_surrogate_loss = under_test(clip.clipped_surrogate_loss)
clip_fractions = under_test(clip.clip_fractions)


def draw(seed: int, size: int = 12):
    """Log-ratios of either sign, a third of them far outside, and advantages."""
    generator = torch.Generator().manual_seed(seed)
    log_ratios = 0.3 * torch.randn(size, generator=generator, dtype=torch.float64)
    log_probs_old = -3 * torch.rand(size, generator=generator, dtype=torch.float64)
    advantages = torch.randn(size, generator=generator, dtype=torch.float64)
    return log_probs_old + log_ratios, log_probs_old, advantages


def slopes(function, ratios, advantages, clip_epsilon=0.2):
    ratios = ratios.clone().requires_grad_()
    return gradient(function(ratios, advantages, clip_epsilon=clip_epsilon).sum(), ratios)


# --- The objective of each sample ----------------------------------------------------------------


def test_the_gradient_ends_only_where_the_action_has_moved_far_enough(clipped_surrogate):
    ratios = float64(0.5, 0.9, 1.1, 1.5)
    good, bad = torch.ones_like(ratios), -torch.ones_like(ratios)
    assert_close(slopes(clipped_surrogate, ratios, good), float64(1, 1, 1, 0), **EXACT)
    assert_close(slopes(clipped_surrogate, ratios, bad), float64(0, -1, -1, -1), **EXACT)


def test_the_four_quadrants_match_the_hand(clipped_surrogate):
    # good and too far up: 1.2 · 2;  good and down: 0.5 · 2;  bad and up: 1.5 · (−2);
    # bad and too far down: 0.8 · (−2)
    surrogate = clipped_surrogate(
        float64(1.5, 0.5, 1.5, 0.5), float64(2, 2, -2, -2), clip_epsilon=0.2
    )
    assert_close(surrogate, float64(2.4, 1.0, -3.0, -1.6), **EXACT)


def test_a_fourfold_probability_is_paid_like_one_and_a_fifth(clipped_surrogate):
    # π from .2 to .8: ratio 4, objective 1.2
    surrogate = clipped_surrogate(float64(0.8 / 0.2), float64(1), clip_epsilon=0.2)
    assert_close(surrogate, float64(1.2), **EXACT)


def test_at_the_edges_the_objective_is_continuous_and_the_gradient_still_there(clipped_surrogate):
    step = 1e-9
    for edge, advantage, outwards in ((1.2, 1.0, step), (0.8, -1.0, -step)):
        ratios = float64(edge - outwards, edge, edge + outwards)
        advantages = torch.full_like(ratios, advantage)
        surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=0.2)
        assert_close(surrogate, torch.full_like(ratios, edge * advantage), rtol=0, atol=2 * step)
        assert_close(
            slopes(clipped_surrogate, ratios, advantages), float64(1, 1, 0) * advantage, **EXACT
        )


def test_the_clip_never_promises_more_than_the_plain_surrogate(clipped_surrogate):
    ratios = torch.linspace(0, 3, 61, dtype=torch.float64)
    for advantage in (-2.0, 0.0, 2.0):
        advantages = torch.full_like(ratios, advantage)
        surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=0.2)
        assert (surrogate <= ratios * advantages + 1e-12).all()


def test_the_two_sides_are_mirror_images(clipped_surrogate):
    # turning the sign of Â and mirroring the ratio at 1 mirrors the change of the objective
    moves = torch.linspace(-0.9, 0.9, 19, dtype=torch.float64)
    good, bad = torch.ones_like(moves), -torch.ones_like(moves)
    up = clipped_surrogate(1 + moves, good, clip_epsilon=0.2) - 1
    down = clipped_surrogate(1 - moves, bad, clip_epsilon=0.2) + 1
    assert_close(up, down, **EXACT)


def test_the_advantages_are_constants(clipped_surrogate):
    advantages = float64(1, -1).requires_grad_()
    ratios = float64(1.1, 0.9).requires_grad_()
    total = clipped_surrogate(ratios, advantages, clip_epsilon=0.2).sum()
    assert gradient(total, advantages).count_nonzero() == 0


@examples
@given(seed=SEEDS, clip_epsilon=st.sampled_from([0.05, 0.2, 0.5]))
def test_the_minimum_is_the_case_distinction(seed, clip_epsilon, clipped_surrogate):
    log_probs, log_probs_old, advantages = draw(seed)
    ratios = (log_probs - log_probs_old).exp()
    pairs = list(zip(ratios.tolist(), advantages.tolist(), strict=True))
    values = [oracles.surrogate(*pair, clip_epsilon) for pair in pairs]
    surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)
    assert_close(surrogate, float64(*values), **EXACT)
    expected = [oracles.surrogate_slope(*pair, clip_epsilon) for pair in pairs]
    measured = slopes(clipped_surrogate, ratios, advantages, clip_epsilon)
    assert_close(measured, float64(*expected), **EXACT)


@pytest.mark.messages
def test_bad_input_to_the_surrogate_is_refused(clipped_surrogate):
    with pytest.raises(ValueError, match=r"advantages has shape \(2, 1\); expected \(2,\)"):
        clipped_surrogate(torch.ones(2), torch.ones(2, 1), clip_epsilon=0.2)
    with pytest.raises(ValueError, match="clip_epsilon is 0; expected a finite number above 0"):
        clipped_surrogate(torch.ones(2), torch.ones(2), clip_epsilon=0)


# --- The loss ------------------------------------------------------------------------------------


def test_a_step_down_the_loss_makes_the_good_arm_likelier(clipped_surrogate_loss):
    # Compared with its sign: the squares of loss and objective agree, so squares prove nothing.
    for good, advantages in ((0, float64(1, -1)), (1, float64(-1, 1))):
        logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        log_probs = logits.log_softmax(0)
        loss = clipped_surrogate_loss(log_probs, log_probs.detach(), advantages, clip_epsilon=0.2)
        moved = logits - 0.1 * gradient(loss, logits)
        assert moved.softmax(0)[good] > 0.5


def test_the_loss_is_minus_the_mean_objective(clipped_surrogate_loss):
    # ratios 2, 1/2 with Â 1, 1 and ε = .2: −(1.2 + 0.5)/2 = −0.85
    loss = clipped_surrogate_loss(
        float64(0.4, 0.2).log(), float64(0.2, 0.4).log(), float64(1, 1), clip_epsilon=0.2
    )
    assert_close(loss, float64(-0.85)[0], **EXACT)


def test_a_wide_clip_is_no_clip(clipped_surrogate_loss):
    log_probs, log_probs_old, advantages = draw(1)
    plain = -((log_probs - log_probs_old).exp() * advantages).mean()
    loss = clipped_surrogate_loss(log_probs, log_probs_old, advantages, clip_epsilon=1e6)
    assert_close(loss, plain, **EXACT)


def test_at_the_old_policy_the_gradient_is_the_plain_policy_gradient(clipped_surrogate_loss):
    log_probs = float64(-0.5, -1, -2).requires_grad_()
    loss = clipped_surrogate_loss(
        log_probs, log_probs.detach(), float64(3, -6, 9), clip_epsilon=0.2
    )
    assert_close(gradient(loss, log_probs), float64(-1, 2, -3), **EXACT)


def test_old_log_probs_that_still_hang_on_the_graph_are_constants(clipped_surrogate_loss):
    log_probs = float64(-0.5, -1).requires_grad_()
    loss = clipped_surrogate_loss(log_probs, log_probs, float64(2, -4), clip_epsilon=0.2)
    assert_close(gradient(loss, log_probs), float64(-1, 2), **EXACT)


def test_no_gradient_flows_through_the_advantages(clipped_surrogate_loss):
    log_probs, log_probs_old, advantages = (tensor.requires_grad_() for tensor in draw(2))
    loss = clipped_surrogate_loss(log_probs, log_probs_old, advantages, clip_epsilon=0.2)
    assert gradient(loss, advantages).count_nonzero() == 0


def test_a_batch_twice_over_has_the_same_loss(clipped_surrogate_loss):
    once = clipped_surrogate_loss(*draw(3), clip_epsilon=0.2)
    doubled = (tensor.repeat(2) for tensor in draw(3))
    assert_close(clipped_surrogate_loss(*doubled, clip_epsilon=0.2), once, **EXACT)


def test_masked_samples_change_neither_loss_nor_gradient(clipped_surrogate_loss):
    kept = [tensor.clone() for tensor in draw(4)]
    kept[0].requires_grad_()
    expected = clipped_surrogate_loss(*kept, clip_epsilon=0.2)
    slope = gradient(expected, kept[0])
    mask = flags(*(1,) * 12, 0, 0)
    # NaN, and an old log-probability so low that the ratio is infinite: 0 · infinity is NaN
    for junk_old, junk_advantage in ((NAN, NAN), (-1e4, 1.0), (-1e4, INFINITY), (0.0, 1e9)):
        log_probs = torch.cat([kept[0].detach(), float64(-1, -1)]).requires_grad_()
        log_probs_old = torch.cat([kept[1], float64(junk_old, junk_old)])
        advantages = torch.cat([kept[2], float64(junk_advantage, junk_advantage)])
        loss = clipped_surrogate_loss(
            log_probs, log_probs_old, advantages, clip_epsilon=0.2, mask=mask
        )
        assert_close(loss, expected, **EXACT)
        assert_close(gradient(loss, log_probs), torch.cat([slope, float64(0, 0)]), **EXACT)


@examples
@given(seed=SEEDS, clip_epsilon=st.sampled_from([0.05, 0.2, 0.5]))
def test_float32_agrees_to_five_digits(seed, clip_epsilon, clipped_surrogate_loss):
    log_probs, log_probs_old, advantages = draw(seed)
    ratios = (log_probs - log_probs_old).exp().tolist()
    terms = [
        oracles.surrogate(ratio, advantage, clip_epsilon)
        for ratio, advantage in zip(ratios, advantages.tolist(), strict=True)
    ]
    loss = clipped_surrogate_loss(
        log_probs.float(), log_probs_old.float(), advantages.float(), clip_epsilon=clip_epsilon
    )
    assert_close(loss, torch.tensor(-oracles.mean(terms)), rtol=1e-5, atol=1e-5)


@pytest.mark.messages
def test_bad_input_to_the_loss_is_refused(clipped_surrogate_loss):
    zeros = torch.zeros(3)
    with pytest.raises(ValueError, match=r"log_probs_old has shape \(3, 1\); expected \(3,\)"):
        clipped_surrogate_loss(zeros, zeros.unsqueeze(1), zeros, clip_epsilon=0.2)
    with pytest.raises(ValueError, match=r"advantages has shape \(1,\); expected \(3,\)"):
        clipped_surrogate_loss(zeros, zeros, zeros[:1], clip_epsilon=0.2)
    with pytest.raises(ValueError, match=r"mask has shape \(2,\); expected \(3,\)"):
        clipped_surrogate_loss(zeros, zeros, zeros, clip_epsilon=0.2, mask=flags(1, 1))
    with pytest.raises(TypeError, match=r"mask has dtype torch.float32; expected torch.bool"):
        clipped_surrogate_loss(zeros, zeros, zeros, clip_epsilon=0.2, mask=torch.ones(3))
    with pytest.raises(ValueError, match=r"clip_epsilon is -0.2"):
        clipped_surrogate_loss(zeros, zeros, zeros, clip_epsilon=-0.2)


# --- The two fractions ---------------------------------------------------------------------------


def test_outside_is_not_without_gradient(clip_fractions):
    # 1.3 and 0.7 with Â of either sign: four of six outside, two of them still pulled back
    ratios = float64(1.3, 1.3, 0.7, 0.7, 1.1, 1.0)
    advantages = float64(1, -1, -1, 1, 1, -1)
    outside, silent = clip_fractions(
        ratios.log(), torch.zeros(6, dtype=torch.float64), advantages, clip_epsilon=0.2
    )
    assert_close(outside, float64(4 / 6)[0], **EXACT)
    assert_close(silent, float64(2 / 6)[0], **EXACT)


def test_when_the_sign_of_the_advantage_is_a_coin_half_of_those_outside_are_pulled_back(
    clip_fractions,
):
    # log ratio = .3 z: P(outside) = P(z > log 1.2 / .3) + P(z < log .8 / .3) = .500, half of it
    # without gradient. z stands on a grid of quantiles, so each edge is met within 1 of 2000.
    normal, size = NormalDist(), 2000
    z = float64(*(normal.inv_cdf((i + 0.5) / size) for i in range(size)))
    log_probs = (0.3 * z).repeat(2)
    advantages = torch.cat([torch.ones_like(z), -torch.ones_like(z)])
    outside, silent = clip_fractions(
        log_probs, torch.zeros_like(log_probs), advantages, clip_epsilon=0.2
    )
    exact = 1 - normal.cdf(math.log(1.2) / 0.3) + normal.cdf(math.log(0.8) / 0.3)
    assert exact == pytest.approx(0.500, abs=5e-4)
    assert outside.item() == pytest.approx(exact, abs=1e-3)
    assert silent.item() == pytest.approx(exact / 2, abs=1e-3)


@examples
@given(seed=SEEDS)
def test_without_gradient_means_that_the_slope_of_the_surrogate_is_zero(seed, clip_fractions):
    log_probs, log_probs_old, advantages = draw(seed)
    ratios = (log_probs - log_probs_old).exp().tolist()
    dead = [
        oracles.surrogate_slope(ratio, advantage, 0.2) == 0
        for ratio, advantage in zip(ratios, advantages.tolist(), strict=True)
    ]
    outside, silent = clip_fractions(log_probs, log_probs_old, advantages, clip_epsilon=0.2)
    assert silent.item() == pytest.approx(sum(dead) / 12, rel=1e-12)
    assert outside.item() == pytest.approx(
        sum(abs(ratio - 1) > 0.2 for ratio in ratios) / 12, rel=1e-12
    )
    assert silent <= outside


def test_an_advantage_of_zero_is_not_the_work_of_the_clip(clip_fractions):
    outside, silent = clip_fractions(float64(1, -1), float64(0, 0), float64(0, 0), clip_epsilon=0.2)
    assert (outside.item(), silent.item()) == (1, 0)


def test_masked_samples_are_not_counted(clip_fractions):
    outside, silent = clip_fractions(
        float64(1, 0, NAN, 5, 5), float64(0, 0, 0, 0, 0), float64(1, 1, 1, 1, 1),
        clip_epsilon=0.2, mask=flags(1, 1, 0, 0, 0),
    )  # fmt: skip
    assert (outside.item(), silent.item()) == (0.5, 0.5)


def test_an_action_that_was_never_drawn_leaves_both_fractions_at_zero(clip_fractions):
    # (.495, .495, .01) -> (.4, .4, .2): KL .18, and yet every sampled ratio is .808
    log_probs, log_probs_old = oracles.samples_of([1, 1, 0], [0.4, 0.4, 0.2], [0.495, 0.495, 0.01])
    for sign in (1, -1):
        advantages = float64(sign, sign)
        shares = clip_fractions(log_probs, log_probs_old, advantages, clip_epsilon=0.2)
        assert [share.item() for share in shares] == [0, 0]
    tighter = clip_fractions(log_probs, log_probs_old, float64(1, -1), clip_epsilon=0.19)
    assert [share.item() for share in tighter] == [1, 0.5]


@pytest.mark.messages
def test_bad_input_to_the_fractions_is_refused(clip_fractions):
    zeros = torch.zeros(3)
    with pytest.raises(ValueError, match=r"advantages has shape \(3, 1\); expected \(3,\)"):
        clip_fractions(zeros, zeros, zeros.unsqueeze(1), clip_epsilon=0.2)
    with pytest.raises(ValueError, match="clip_epsilon is inf"):
        clip_fractions(zeros, zeros, zeros, clip_epsilon=INFINITY)
