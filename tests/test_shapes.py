"""Every check says what was given, what was expected, what to do; masked entries count for nothing.

The messages are compared word for word: other tests, exercises and readers rely on them.
"""

import re

import pytest
import torch
from mistakes import under_test
from oracles import flags, float64, gradient
from torch.testing import assert_close

from ppo_lessons import shapes
from ppo_lessons.critic import known_returns, td_errors
from ppo_lessons.gae import compute_gae
from ppo_lessons.reinforce import rewards_to_go
from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_has_steps,
    check_positive,
    check_same_shape,
    check_tensor,
    check_unit_interval,
    stop_masked,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}
NAN, INFINITY = float("nan"), float("inf")

masked_mean = under_test(shapes.masked_mean)


def message(error: type[Exception], function, *given, **named) -> str:
    with pytest.raises(error) as caught:
        function(*given, **named)
    return str(caught.value)


# --- The wording ---------------------------------------------------------------------------------


@pytest.mark.messages
def test_another_shape_is_named_with_the_shape_that_was_expected():
    assert message(
        ValueError, check_same_shape, rewards=torch.zeros(4, 2), values=torch.zeros(3, 2)
    ) == (
        "values has shape (3, 2); expected (4, 2) like rewards. "
        "Reshape values so that both describe the same samples."
    )


@pytest.mark.messages
def test_shapes_that_would_broadcast_are_refused():
    assert message(
        ValueError, check_same_shape, values=torch.zeros(5, 1), returns=torch.zeros(5)
    ) == (
        "returns has shape (5,); expected (5, 1) like values. "
        "Reshape returns so that both describe the same samples."
    )


@pytest.mark.messages
def test_a_list_is_no_tensor():
    sentence = (
        "rewards is a list; expected a torch.Tensor. Convert it with torch.as_tensor(rewards)."
    )
    assert message(TypeError, check_tensor, "rewards", [1.0]) == sentence
    assert message(TypeError, check_same_shape, rewards=[1.0], values=torch.zeros(1)) == sentence


@pytest.mark.messages
def test_whole_numbers_are_refused_where_fractions_are_needed():
    assert message(TypeError, check_floating, rewards=torch.zeros(2, dtype=torch.int64)) == (
        "rewards has dtype torch.int64; expected a floating-point dtype. "
        "Convert it with rewards.float()."
    )


@pytest.mark.messages
def test_flags_that_are_numbers_are_refused():
    assert message(TypeError, check_bool, terminated=torch.zeros(2)) == (
        "terminated has dtype torch.float32; expected torch.bool. "
        "Convert it with terminated.bool()."
    )


@pytest.mark.messages
def test_the_first_number_that_is_not_finite_is_named_with_its_place():
    rewards = torch.zeros(3, 2)
    rewards[1, 1], rewards[2, 0] = NAN, INFINITY
    assert message(ValueError, check_finite, rewards=rewards) == (
        "rewards holds nan at index (1, 1); expected finite numbers. "
        "Look at what produced rewards at that place."
    )
    assert "holds -inf at index ()" in message(
        ValueError, check_finite, rewards=torch.tensor(-INFINITY)
    )


@pytest.mark.messages
@pytest.mark.parametrize("number", [-0.1, 1.01, NAN, INFINITY])
def test_a_discount_outside_the_unit_interval_is_refused(number):
    assert message(ValueError, check_unit_interval, gamma=number) == (
        f"gamma is {number}; expected a number in [0, 1]. Choose gamma in that range."
    )


@pytest.mark.messages
@pytest.mark.parametrize("number", [0.0, -0.2, NAN, INFINITY])
def test_a_clip_of_no_width_is_refused(number):
    assert message(ValueError, check_positive, clip_epsilon=number) == (
        f"clip_epsilon is {number}; expected a finite number above 0. Choose clip_epsilon above 0."
    )


def test_what_is_right_passes_in_silence():
    check_same_shape(rewards=torch.zeros(2), values=torch.ones(2), mask=None)
    check_floating(rewards=torch.zeros(2), values=torch.zeros(2, dtype=torch.float64), mask=None)
    check_bool(mask=flags(0, 1), terminated=None)
    check_finite(rewards=torch.zeros(0), values=torch.ones(2, 2))
    check_unit_interval(gamma=0.0, gae_lambda=1.0)
    check_positive(clip_epsilon=1e-9)


# --- The mean over what counts -------------------------------------------------------------------


def test_a_mean_without_a_mask_is_the_mean(masked_mean):
    assert_close(masked_mean(float64(1, 2, 6)), float64(3)[0], **EXACT)


def test_the_mean_divides_by_what_counts(masked_mean):
    mean = masked_mean(float64(1, 2, 6, 100), flags(1, 0, 1, 0))
    assert_close(mean, float64(3.5)[0], **EXACT)


def test_nan_behind_the_mask_has_no_effect(masked_mean):
    mean = masked_mean(float64(1, NAN, 6, INFINITY), flags(1, 0, 1, 0))
    assert_close(mean, float64(3.5)[0], **EXACT)


def test_the_mean_of_nothing_is_zero(masked_mean):
    assert masked_mean(float64(1, 2), flags(0, 0)).item() == 0


def test_the_gradient_of_the_mean_goes_to_what_counts(masked_mean):
    values = float64(1, NAN, 6).requires_grad_()
    slope = gradient(masked_mean(values, flags(1, 0, 1)), values)
    assert_close(slope, float64(0.5, 0, 0.5), **EXACT)


@pytest.mark.messages
def test_a_mask_of_another_shape_or_dtype_is_refused():
    for function in (shapes.masked_mean, stop_masked):
        assert message(ValueError, function, torch.zeros(4, 2), flags(1, 1, 1, 1)) == (
            "mask has shape (4,); expected (4, 2) like values. "
            "Reshape mask so that both describe the same samples."
        )
        assert message(TypeError, function, torch.zeros(2), torch.ones(2)) == (
            "mask has dtype torch.float32; expected torch.bool. Convert it with mask.bool()."
        )


# --- No gradient behind the mask -----------------------------------------------------------------


def test_stopping_the_masked_entries_keeps_every_number():
    values = float64(1, -2, INFINITY)
    assert_close(stop_masked(values, flags(1, 0, 0)), values, **EXACT)
    assert stop_masked(values, None) is values


def test_no_gradient_reaches_a_masked_entry_even_from_infinity(masked_mean):
    values = float64(1, 1000).requires_grad_()
    mask = flags(1, 0)
    # e^1000 is infinite in float64, and so is its slope; 0 · infinity would be NaN
    loss = masked_mean(stop_masked(values, mask).exp(), mask)
    assert_close(gradient(loss, values), float64(torch.e, 0), **EXACT)
    assert gradient(masked_mean(values.exp(), mask), values)[1].isnan(), "no need for stop_masked"


@pytest.mark.messages
@pytest.mark.parametrize("shape", [(0, 2), (0,)])
def test_no_steps_at_all_are_refused(shape):
    with pytest.raises(
        ValueError,
        match=re.escape(f"rewards has shape {shape}; expected at least one time step along the "),
    ):
        check_has_steps(rewards=torch.zeros(shape))


@pytest.mark.messages
@pytest.mark.parametrize("name", ["rewards_to_go", "td_errors", "compute_gae", "known_returns"])
def test_every_function_over_time_refuses_an_empty_rollout(name):
    rewards, ends = torch.zeros(0, 2), torch.zeros(0, 2, dtype=torch.bool)
    calls = {
        "rewards_to_go": lambda: rewards_to_go(rewards, ends, gamma=0.9),
        "td_errors": lambda: td_errors(rewards, rewards, rewards, ends, gamma=0.9),
        "compute_gae": lambda: compute_gae(
            rewards, rewards, rewards, ends, ends, gamma=0.9, gae_lambda=0.9
        ),
        "known_returns": lambda: known_returns(rewards, ends, ends, gamma=0.9),
    }
    with pytest.raises(ValueError, match="expected at least one time step"):
        calls[name]()
