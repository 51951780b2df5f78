"""Gaussians against their definition, by differences and by sums over a fine grid.

Algebra in float64 keeps 1e-12; what is integrated on a grid keeps 1e-9.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples, float64, gradient
from torch.testing import assert_close

from ppo_lessons import continuous

EXACT = {"rtol": 1e-12, "atol": 1e-12}
SEEDS = st.integers(0, 10_000)
INFINITY = float("inf")

gaussian_scores = under_test(continuous.gaussian_scores)
gaussian_kl = under_test(continuous.gaussian_kl)
log_tanh_slopes = under_test(continuous.log_tanh_slopes)
squashed_log_probs = under_test(continuous.squashed_log_probs)
capped_surrogate_loss = under_test(continuous.capped_surrogate_loss)


def row(*numbers):
    """One action, one row of dimensions."""
    return float64(*numbers).unsqueeze(0)


def density(a, mean, std):
    """Of one Gaussian, from the definition."""
    return math.exp(-((a - mean) ** 2) / (2 * std**2)) / math.sqrt(2 * math.pi * std**2)


def grid(mean, std):
    """Places from 12 σ below the mean to 12 σ above, the middle of cells of 0.001 σ, and a cell."""
    cells = torch.arange(-12_000, 12_000, dtype=torch.float64) + 0.5
    return (mean + 0.001 * std * cells).unsqueeze(-1), 0.001 * std


def weights(places, mean, std):
    """The density of a Gaussian on a grid."""
    return (-((places - mean) ** 2) / (2 * std**2)).exp() / math.sqrt(2 * math.pi * std**2)


# --- scores --------------------------------------------------------------------------------------


def test_the_score_is_the_slope_of_the_log_density(gaussian_scores):
    a, mean, log_std, step = 0.7, -0.4, -0.9, 1e-6

    def at(mean, log_std):
        return math.log(density(a, mean, math.exp(log_std)))

    by_mean = (at(mean + step, log_std) - at(mean - step, log_std)) / (2 * step)
    by_log_std = (at(mean, log_std + step) - at(mean, log_std - step)) / (2 * step)
    measured = gaussian_scores(row(a), row(mean), float64(log_std))
    # central differences with a step of 1e-6 keep about 9 digits
    assert_close(measured[0], row(by_mean), rtol=1e-7, atol=1e-7)
    assert_close(measured[1], row(by_log_std), rtol=1e-7, atol=1e-7)


def test_two_dimensions_have_scores_of_their_own(gaussian_scores):
    # (1 − 0) / 1 = 1 and (−3 − 1) / 4 = −1;  1² − 1 = 0 and (−2)² − 1 = 3
    by_means, by_log_stds = gaussian_scores(row(1, -3), row(0, 1), float64(0, math.log(2)))
    assert_close(by_means, row(1, -1), **EXACT)
    assert_close(by_log_stds, row(0, 3), **EXACT)


def test_scores_average_to_zero_and_grow_as_sigma_shrinks(gaussian_scores):
    for std in (1.0, 0.1):
        places, cell = grid(0.5, std)
        means = torch.full_like(places, 0.5)
        scores = gaussian_scores(places, means, float64(math.log(std)))
        chances = weights(places, 0.5, std) * cell
        for score, square in zip(scores, (1 / std**2, 2.0), strict=True):
            assert (chances * score).sum().item() == pytest.approx(0, abs=1e-9)
            assert (chances * score**2).sum().item() == pytest.approx(square, rel=1e-6)


# --- distance ------------------------------------------------------------------------------------


def test_equal_policies_are_no_distance_apart(gaussian_kl):
    means, log_stds = row(0.3, -2), float64(0.5, -1)
    assert_close(gaussian_kl(means, log_stds, means, log_stds), float64(0), **EXACT)


def test_a_step_of_the_mean_costs_half_its_square_in_sigmas(gaussian_kl):
    # a step of 0.1 at σ = 0.1 is one σ: half a nat; in two dimensions twice that
    log_stds = float64(math.log(0.1), math.log(0.1))
    kl = gaussian_kl(row(0.1, 0.1), log_stds, row(0, 0), log_stds)
    assert_close(kl, float64(1), **EXACT)


def test_the_closed_form_is_the_integral(gaussian_kl):
    for mean, std, mean_old, std_old in ((0.5, 0.6, -0.2, 1.3), (0.0, 2.0, 1.0, 0.5)):
        places, cell = grid(mean_old, std_old)
        old = weights(places, mean_old, std_old)
        difference = (
            -((places - mean_old) ** 2) / (2 * std_old**2)
            + (places - mean) ** 2 / (2 * std**2)
            + math.log(std / std_old)
        )
        expected = (old * difference).sum() * cell
        kl = gaussian_kl(
            row(mean), float64(math.log(std)), row(mean_old), float64(math.log(std_old))
        )
        assert kl.item() == pytest.approx(expected.item(), rel=1e-6)


@examples
@given(seed=SEEDS)
def test_the_distance_is_a_sum_over_dimensions_and_never_negative(seed, gaussian_kl):
    generator = torch.Generator().manual_seed(seed)
    means, means_old = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    log_stds, log_stds_old = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    kl = gaussian_kl(means, log_stds, means_old, log_stds_old)
    each = [
        gaussian_kl(means[:, i : i + 1], log_stds[i : i + 1], means_old[:, i : i + 1],
                    log_stds_old[i : i + 1])
        for i in range(3)
    ]  # fmt: skip
    assert kl.shape == (5,)
    assert_close(kl, sum(each[1:], each[0]), **EXACT)
    assert (kl >= -1e-12).all()


# --- squashing -----------------------------------------------------------------------------------


def test_the_slope_of_tanh_by_differences(log_tanh_slopes):
    step = 1e-6
    for u in (-2.0, 0.0, 0.5, 3.0):
        slope = (math.tanh(u + step) - math.tanh(u - step)) / (2 * step)
        assert log_tanh_slopes(float64(u)).item() == pytest.approx(math.log(slope), abs=1e-7)


def test_far_out_the_slope_is_right_to_the_last_digits(log_tanh_slopes):
    # 1 − tanh²u = 4·e^(−2u) / (1 + e^(−2u))², so its logarithm tends to log 4 − 2u
    for u in (9.0, 30.0, 300.0):
        expected = math.log(4) - 2 * u - 2 * math.log1p(math.exp(-2 * u))
        for sign in (1, -1):
            assert_close(log_tanh_slopes(float64(sign * u)), float64(expected), **EXACT)


def test_far_out_the_slope_has_a_gradient(log_tanh_slopes):
    u = float64(30.0, -30.0).requires_grad_()
    assert_close(gradient(log_tanh_slopes(u).sum(), u), float64(-2, 2), **EXACT)


def test_the_squashed_density_integrates_to_one(squashed_log_probs):
    # the sum over cells of a = tanh(u), whose widths are those of tanh itself
    for mean, std in ((0.3, 0.5), (-1.0, 1.5)):
        places, cell = grid(mean, std)
        widths = (places + cell / 2).tanh() - (places - cell / 2).tanh()
        inside = places.abs().squeeze(-1) < 15  # beyond, a width has lost its digits
        log_probs = squashed_log_probs(
            places, torch.full_like(places, mean), float64(math.log(std))
        )
        total = (log_probs.exp() * widths.squeeze(-1))[inside].sum()
        # a midpoint rule over cells of 0.001 σ
        assert total.item() == pytest.approx(1, abs=1e-5)


def test_the_squashed_density_is_the_slope_of_its_share(squashed_log_probs):
    # P(tanh u < a) = Φ((atanh a − μ) / σ); its slope by a is the density
    from statistics import NormalDist

    mean, std, a, step = 0.4, 0.8, 0.6, 1e-6
    below = NormalDist(mean, std).cdf
    slope = (below(math.atanh(a + step)) - below(math.atanh(a - step))) / (2 * step)
    log_probs = squashed_log_probs(row(math.atanh(a)), row(mean), float64(math.log(std)))
    assert log_probs.item() == pytest.approx(math.log(slope), abs=1e-6)


def test_squashed_dimensions_add_up(squashed_log_probs):
    drawn, means, log_stds = row(0.5, -1.5, 2), row(0, 1, -1), float64(0.2, -0.3, 0)
    each = [
        squashed_log_probs(drawn[:, i : i + 1], means[:, i : i + 1], log_stds[i : i + 1])
        for i in range(3)
    ]
    together = squashed_log_probs(drawn, means, log_stds)
    assert_close(together, sum(each[1:], each[0]), **EXACT)


def test_the_correction_cancels_in_a_ratio(squashed_log_probs):
    drawn, log_stds = row(0.5, 25.0), float64(0.2, -0.3)
    # what is left are two Gaussians of equal σ, whose log-ratio is worked by hand:
    # σ = e^0.2: (0.5² − 0.4²) / (2·e^0.4);  σ = e^−0.3: (5² − 4²) / (2·e^−0.6)
    expected = 0.09 / (2 * math.exp(0.4)) + 9 / (2 * math.exp(-0.6))
    new = squashed_log_probs(drawn, row(0.1, 21), log_stds)
    old = squashed_log_probs(drawn, row(0, 20), log_stds)
    assert (new - old).item() == pytest.approx(expected, rel=1e-12)


# --- the cap -------------------------------------------------------------------------------------


def slopes(loss, log_ratios, advantages, dtype=torch.float64, **more):
    log_probs = torch.tensor(log_ratios, dtype=dtype, requires_grad=True)
    value = loss(
        log_probs, torch.zeros_like(log_probs), torch.tensor(advantages, dtype=dtype),
        clip_epsilon=0.2, max_log_ratio=20.0, **more,
    )  # fmt: skip
    return value.item(), gradient(value, log_probs).tolist()


def test_an_overflowing_ratio_leaves_loss_and_slope_finite(capped_surrogate_loss):
    value, slope = slopes(capped_surrogate_loss, [90.0, 0.0], [1.0, 1.0], torch.float32)
    assert value == pytest.approx(-(1.2 + 1) / 2)
    assert slope == pytest.approx([0, -0.5])


def test_below_the_cap_it_is_the_plain_loss(capped_surrogate_loss):
    # slopes of −mean(min(…)): −ratio·Â / 4 where the sample pushes, else 0
    e = math.exp
    value, slope = slopes(capped_surrogate_loss, [-30.0, 3.0, 3.0, 0.1], [1.0, 1.0, -1.0, 2.0])
    assert value == pytest.approx(-(e(-30) + 1.2 - e(3) + 2 * e(0.1)) / 4, rel=1e-12)
    assert slope == pytest.approx([-e(-30) / 4, 0, e(3) / 4, -2 * e(0.1) / 4], rel=1e-12)


def test_beyond_the_cap_a_bad_action_is_silent(capped_surrogate_loss):
    value, slope = slopes(capped_surrogate_loss, [30.0, 0.0], [-1.0, 1.0])
    assert value == pytest.approx((math.exp(20) - 1) / 2, rel=1e-12)
    assert slope == pytest.approx([0, -0.5], rel=1e-12)


def test_what_is_masked_may_be_anything(capped_surrogate_loss):
    mask = torch.tensor([False, True])
    value, slope = slopes(capped_surrogate_loss, [INFINITY, 0.0], [1.0, 1.0], mask=mask)
    assert (value, slope) == (-1.0, [0.0, -1.0])


@pytest.mark.messages
def test_bad_input_is_refused(gaussian_scores, gaussian_kl, capped_surrogate_loss):
    with pytest.raises(ValueError, match=r"log_stds has shape \(1,\); expected \(2,\)"):
        gaussian_scores(row(1, 2), row(1, 2), float64(0))
    with pytest.raises(ValueError, match=r"means_old has shape \(1, 1\); expected \(1, 2\)"):
        gaussian_kl(row(1, 2), float64(0, 0), row(1), float64(0, 0))
    one = float64(1)
    with pytest.raises(ValueError, match="max_log_ratio is 0"):
        capped_surrogate_loss(one, one, one, clip_epsilon=0.2, max_log_ratio=0.0)
