"""Ratios and divergences against sums over every action.

Samples are not drawn: an action stands in the sample as often as the old policy would choose it, so
that a sample mean *is* an expectation, and algebra in float64 keeps 1e-12.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import categorical_kl, examples, flags, float64, gradient, samples_of
from torch.testing import assert_close

from ppo_lessons import importance

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN = float("nan")
OLD, NEW = [0.5, 0.3, 0.2], [0.2, 0.4, 0.4]
COUNTS = [5, 3, 2]  # ten samples of OLD
SEEDS = st.integers(0, 10_000)

importance_ratios = under_test(importance.importance_ratios)
approximate_kl = under_test(importance.approximate_kl)
effective_sample_size = under_test(importance.effective_sample_size)
surrogate_loss = under_test(importance.surrogate_loss)


def sample_of_old():
    """Log-probabilities, new and old, of ten actions in proportion to OLD."""
    return samples_of(COUNTS, NEW, OLD)


def draw_policy(seed: int, size: int = 4) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator, dtype=torch.float64).softmax(0).tolist()


# --- Ratios --------------------------------------------------------------------------------------


def test_the_ratio_is_new_over_old(importance_ratios):
    # 0.8 / 0.2 = 4 and 0.2 / 0.8 = 1/4
    ratios = importance_ratios(float64(0.8, 0.2).log(), float64(0.2, 0.8).log())
    assert_close(ratios, float64(4, 0.25), **EXACT)


def test_probabilities_too_small_for_their_dtype_keep_their_ratio(
    importance_ratios,
):
    # e^−200 is 0 in float32, and 0 / 0 is NaN; the ratio is e^0.1 = 1.10517
    ratios = importance_ratios(torch.tensor([-200.0]), torch.tensor([-200.1]))
    # −200 and −200.1 are known to 1.5e-5 in float32, and so is their difference
    assert_close(ratios, torch.tensor([math.exp(0.1)]), rtol=2e-5, atol=0)


def test_the_mean_ratio_under_the_old_policy_is_one(importance_ratios):
    assert_close(importance_ratios(*sample_of_old()).mean(), float64(1)[0], **EXACT)


def test_a_ratio_turns_an_expectation_under_old_into_one_under_new(
    importance_ratios,
):
    pays = [1.0, -2.0, 5.0]
    earned = float64(*(pays[a] for a, count in enumerate(COUNTS) for _ in range(count)))
    expected = sum(p * pay for p, pay in zip(NEW, pays, strict=True))
    weighted = (importance_ratios(*sample_of_old()) * earned).mean()
    assert_close(weighted, float64(expected)[0], **EXACT)


def test_a_policy_that_did_not_change_has_ratio_one_and_a_gradient(
    importance_ratios,
):
    log_probs = float64(-0.1, -3).requires_grad_()
    ratios = importance_ratios(log_probs, log_probs.detach())
    assert_close(ratios, float64(1, 1), **EXACT)
    assert_close(gradient(ratios.sum(), log_probs), float64(1, 1), **EXACT)


@pytest.mark.messages
def test_bad_log_probs_are_refused(importance_ratios):
    with pytest.raises(ValueError, match=r"log_probs_old has shape \(3, 1\); expected \(3,\)"):
        importance_ratios(torch.zeros(3), torch.zeros(3, 1))
    with pytest.raises(TypeError, match=r"log_probs_old has dtype torch.int64"):
        importance_ratios(torch.zeros(3), torch.zeros(3, dtype=torch.int64))


# --- The surrogate -------------------------------------------------------------------------------

PAYS = [1.0, -2.0, 5.0]


def earned_of_old():
    """What each of the ten actions of `sample_of_old` pays."""
    return float64(*(PAYS[a] for a, count in enumerate(COUNTS) for _ in range(count)))


def test_the_surrogate_of_all_actions_is_what_the_new_policy_earns_with_its_sign_turned(
    surrogate_loss,
):
    # .2·1 − .4·2 + .4·5 = 1.4 under the new policy; the old one earns .5 − .6 + 1 = .9
    loss = surrogate_loss(*sample_of_old(), earned_of_old())
    assert_close(loss, float64(-1.4)[0], **EXACT)


def test_where_nothing_moved_the_slope_is_that_of_the_log_probs(surrogate_loss):
    log_probs, advantages = float64(-0.1, -0.7, -4).requires_grad_(), float64(2, -4, 1)
    loss = surrogate_loss(log_probs, log_probs.detach(), advantages)
    assert_close(loss, float64(1 / 3)[0], **EXACT)  # −(2 − 4 + 1) / 3
    assert_close(gradient(loss, log_probs), -advantages / 3, **EXACT)


def test_elsewhere_the_slope_is_multiplied_by_the_ratio(surrogate_loss):
    log_probs = float64(0.8, 0.2).log().requires_grad_()
    loss = surrogate_loss(log_probs, float64(0.2, 0.8).log(), float64(1, 1))
    assert_close(gradient(loss, log_probs), float64(-4 / 2, -0.25 / 2), **EXACT)


def test_old_log_probs_on_the_graph_are_constants_to_the_surrogate(surrogate_loss):
    log_probs = float64(-1, -2).requires_grad_()
    loss = surrogate_loss(log_probs, log_probs, float64(2, -4))
    assert_close(gradient(loss, log_probs), float64(-1, 2), **EXACT)


def test_no_gradient_of_the_surrogate_flows_into_the_advantages(surrogate_loss):
    log_probs, advantages = float64(-1, -2).requires_grad_(), float64(2, -4).requires_grad_()
    surrogate_loss(log_probs, float64(-1, -1), advantages).backward()
    assert log_probs.grad is not None
    assert advantages.grad is None


def test_the_surrogate_of_a_batch_twice_over_is_the_same(surrogate_loss):
    log_probs, log_probs_old = sample_of_old()
    advantages = earned_of_old()
    once = surrogate_loss(log_probs, log_probs_old, advantages)
    twice = surrogate_loss(log_probs.repeat(2), log_probs_old.repeat(2), advantages.repeat(2))
    assert_close(twice, once, **EXACT)


def test_masked_samples_change_neither_surrogate_nor_slope(surrogate_loss):
    plain = [float64(-1, -2), float64(-1.5, -1), float64(2, -4)]
    plain[0].requires_grad_()
    expected = surrogate_loss(*plain)
    slope = gradient(expected, plain[0])
    for junk_old, junk_advantage in ((NAN, NAN), (-1e4, 1.0), (0.0, 1e9)):
        log_probs = float64(-1, -2, -1).requires_grad_()
        loss = surrogate_loss(
            log_probs, float64(-1.5, -1, junk_old), float64(2, -4, junk_advantage),
            mask=flags(1, 1, 0),
        )  # fmt: skip
        assert_close(loss, expected, **EXACT)
        assert_close(gradient(loss, log_probs), torch.cat([slope, float64(0)]), **EXACT)


@pytest.mark.messages
def test_bad_input_to_the_surrogate_is_refused(surrogate_loss):
    zeros = torch.zeros(3)
    with pytest.raises(ValueError, match=r"advantages has shape \(3, 1\); expected \(3,\)"):
        surrogate_loss(zeros, zeros, zeros.unsqueeze(1))
    with pytest.raises(TypeError, match=r"advantages has dtype torch.int64"):
        surrogate_loss(zeros, zeros, zeros.long())


# --- Divergence ----------------------------------------------------------------------------------


def test_k1_and_k3_are_exact_on_average(approximate_kl):
    exact = float64(categorical_kl(OLD, NEW))[0]
    for estimator in ("k1", "k3"):
        assert_close(approximate_kl(*sample_of_old(), estimator=estimator), exact, **EXACT)


def test_k2_is_half_the_mean_square_and_not_exact(approximate_kl):
    terms = [q * math.log(p / q) ** 2 / 2 for p, q in zip(NEW, OLD, strict=True)]
    kl_k2 = approximate_kl(*sample_of_old(), estimator="k2")
    assert_close(kl_k2, float64(math.fsum(terms))[0], **EXACT)
    assert abs(kl_k2.item() - categorical_kl(OLD, NEW)) > 0.01


def test_the_samples_come_from_the_second_argument(approximate_kl):
    # The two directions differ here, so a function that mixes them up is found out.
    forward, backward = categorical_kl(OLD, NEW), categorical_kl(NEW, OLD)
    assert abs(forward - backward) > 0.02
    assert_close(approximate_kl(*sample_of_old(), estimator="k1"), float64(forward)[0], **EXACT)


@examples
@given(first=SEEDS, second=SEEDS)
def test_k3_is_never_negative_and_k1_may_be(first, second, approximate_kl):
    old, new = draw_policy(first), draw_policy(second + 10_001)
    for action in range(4):  # single samples: all other means follow
        log_probs, log_probs_old = samples_of([int(a == action) for a in range(4)], new, old)
        log_ratio = (log_probs - log_probs_old).item()
        kl_k3 = approximate_kl(log_probs, log_probs_old, estimator="k3").item()
        assert kl_k3 >= 0
        assert kl_k3 == pytest.approx(math.expm1(log_ratio) - log_ratio, rel=1e-9, abs=1e-12)
        kl_k1 = approximate_kl(log_probs, log_probs_old, estimator="k1").item()
        assert kl_k1 == pytest.approx(-log_ratio, rel=1e-12)


def test_equal_policies_have_no_divergence(approximate_kl):
    log_probs = float64(-0.1, -0.7, -4)
    for estimator in ("k1", "k2", "k3"):
        assert approximate_kl(log_probs, log_probs.clone(), estimator=estimator).item() == 0


def test_masked_samples_do_not_count(approximate_kl):
    log_probs, log_probs_old = sample_of_old()
    mask = flags(*(1,) * 10, 0, 0)
    for junk in (NAN, -1e4, 3.0):
        padded = [
            torch.cat([log_probs, float64(0, 0)]),
            torch.cat([log_probs_old, float64(junk, junk)]),
        ]
        for estimator in ("k1", "k2", "k3"):
            expected = approximate_kl(log_probs, log_probs_old, estimator=estimator)
            assert_close(approximate_kl(*padded, estimator=estimator, mask=mask), expected, **EXACT)


def test_no_gradient_of_the_divergence_reaches_a_masked_sample(approximate_kl):
    for estimator in ("k1", "k2", "k3"):
        log_probs = float64(-1, -1).requires_grad_()
        loss = approximate_kl(log_probs, float64(-2, -1e4), estimator=estimator, mask=flags(1, 0))
        slope = gradient(loss, log_probs)
        assert slope[0] != 0
        assert slope[1] == 0


def test_an_action_that_was_never_drawn_hides_what_happened_to_it(approximate_kl):
    # .01 -> .2 is a twentyfold change; a sample without that action shows ratios of .808 only.
    old, new = [0.495, 0.495, 0.01], [0.4, 0.4, 0.2]
    log_probs, log_probs_old = samples_of([1, 1, 0], new, old)
    assert (log_probs - log_probs_old).exp().tolist() == pytest.approx([0.808, 0.808], abs=1e-3)
    assert categorical_kl(old, new) == pytest.approx(0.181, abs=5e-4)
    # k1 on what was seen: log(.495 / .4) = .2131; k3: .8081 − 1 + .2131 = .0212, a ninth of it
    kl_k1, kl_k3 = (
        approximate_kl(log_probs, log_probs_old, estimator=estimator).item()
        for estimator in ("k1", "k3")
    )
    assert kl_k1 == pytest.approx(0.2131, abs=5e-5)
    assert kl_k3 == pytest.approx(0.0212, abs=5e-5)


@pytest.mark.messages
def test_an_unknown_estimator_is_refused(approximate_kl):
    with pytest.raises(ValueError, match="estimator") as caught:
        approximate_kl(torch.zeros(2), torch.zeros(2), estimator="k4")
    assert str(caught.value) == ("estimator is 'k4'; expected 'k1', 'k2' or 'k3'. Choose one.")


# --- Effective sample size -----------------------------------------------------------------------


def test_equal_weights_are_worth_all_samples(effective_sample_size):
    assert_close(effective_sample_size(float64(3, 3, 3, 3)), float64(4)[0], **EXACT)


def test_one_weight_is_worth_one_sample(effective_sample_size):
    assert_close(effective_sample_size(float64(0, 5, 0)), float64(1)[0], **EXACT)


def test_a_policy_that_became_sure_wastes_two_fifths_of_the_samples(
    effective_sample_size,
):
    # π(a) from .6 to .99: weights 1.65 (6 of 10 samples) and .025 (4 of 10), mean 1.
    # Mean square 1.63375, variance .63375; ESS = 10 / 1.63375 = 6.12 of 10.
    log_probs, log_probs_old = samples_of([6, 4], [0.99, 0.01], [0.6, 0.4])
    weights = (log_probs - log_probs_old).exp()
    assert weights.var(correction=0).item() == pytest.approx(0.63375, rel=1e-12)
    assert_close(effective_sample_size(weights), float64(10 / 1.63375)[0], **EXACT)


def test_the_scale_of_the_weights_does_not_matter_even_a_huge_one(
    effective_sample_size,
):
    weights = torch.tensor([1.0, 2.0, 5.0])
    # (1 + 2 + 5)² / (1 + 4 + 25) = 64 / 30; 1e30 squared is no float32
    for scale in (1e-30, 1.0, 1e30):
        assert effective_sample_size(weights * scale).item() == pytest.approx(64 / 30, rel=1e-5)


def test_logarithms_of_ratios_are_no_weights(effective_sample_size):
    with pytest.raises(ValueError, match="Pass ratios, not their logarithms"):
        effective_sample_size(float64(0.2, -0.3))


def test_weights_that_are_no_weights_are_refused(effective_sample_size):
    for weights in (float64(0, 0), float64(-2, -0.1), float64()):
        with pytest.raises(ValueError, match="expected importance weights, at least 0 and not"):
            effective_sample_size(weights)
    with pytest.raises(ValueError, match=r"weights holds inf at index \(1,\)"):
        effective_sample_size(float64(1, math.inf))


def test_k3_is_not_drowned_by_rounding_near_zero():
    old = torch.zeros(512)
    new = old + 1e-4 * torch.randn(512, generator=torch.Generator().manual_seed(0))
    exact = importance.approximate_kl(new.double(), old.double(), estimator="k3")
    found = importance.approximate_kl(new, old, estimator="k3")
    assert found >= 0
    # float32 keeps about seven digits; the difference of ratios would keep none here
    assert found.item() == pytest.approx(exact.item(), rel=1e-3)
