"""LambdaTradeoff: its grid against the definition, numbers by hand, and what a hand does to λ."""

import math
from fractions import Fraction

import pytest
import torch
from browsing import disagreements, random_widgets

from ppo_lessons import mdp as exact
from ppo_lessons.widgets import LambdaTradeoff
from ppo_lessons.widgets.lambda_tradeoff import GAMMAS, SHAPES, critic_of, judge

# By hand: from place i the walk gets to the goal i + 1 times in 8; it starts in the middle and is
# at place i so often; at the goal every second time. There one more action changes nothing.
VALUES = [Fraction(i + 1, 8) for i in range(8)]
VISITS = [Fraction(1), *map(Fraction, (2, 3, 4, 3, 2, 1)), Fraction(1, 2)]


def test_every_size_of_the_error_lies_on_the_quadratic_of_the_grid():
    for shown in random_widgets("lambda_tradeoff", 25, seed=2):
        shown.error_size = 0.37 * shown.error_size  # between the sizes that were solved
        critic = critic_of(shown.gamma, shown.error_shape, shown.error_size)
        at = round(100 * shown.gae_lambda)
        solved = judge(shown.gamma, critic, at / 100)
        assert [curve[at] for curve in shown.curves()] == pytest.approx(solved, abs=1e-9)


def test_the_bias_at_lambda_zero_is_that_by_hand():
    # Half of V takes 1/8 from the difference of what the two moves lead to, at each place; the
    # probability of a move is 1/2, and so is the score.
    squares = sum((visits / 4 * Fraction(1, 8)) ** 2 for visits in VISITS[:7])
    shown = LambdaTradeoff(gae_lambda=0.0)
    assert shown.numbers()["bias_squared"] == pytest.approx(float(2 * squares), abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "error"),
    [("share", lambda value: -value / 2), ("constant", lambda _: 0.3), ("turns", lambda _: 0.3)],
)
def test_at_lambda_one_the_gradient_is_right_and_advantages_are_off_by_the_error(shape, error):
    found = LambdaTradeoff(error_shape=shape, gae_lambda=1.0).numbers()
    assert found["gradient_bias"] == 0
    pairs = zip(VISITS, VALUES, strict=True)
    mean = sum(float(visits) * float(error(value)) ** 2 for visits, value in pairs)
    assert found["advantage_bias"] == pytest.approx(math.sqrt(mean / float(sum(VISITS))), abs=1e-9)


def test_the_lesson_s_numbers():
    shown = [LambdaTradeoff(gae_lambda=x) for x in (0.0, 0.5, 0.9, 1.0)]
    numbers = [each.numbers() for each in shown]
    bias = [round(each["gradient_bias"], 3) for each in numbers]
    assert bias == [0.293, 0.270, 0.153, 0.0]
    assert [round(each["variance"], 3) for each in numbers] == [0.156, 0.149, 0.386, 2.141]
    best = [LambdaTradeoff(num_episodes=number).best_lambda for number in (1, 10, 1000)]
    assert best == [0.57, 0.87, 1.0]


def test_the_two_biases_go_opposite_ways_with_half_of_v_and_not_with_turns():
    def ends(shape, name):
        return [LambdaTradeoff(error_shape=shape, gae_lambda=x).numbers()[name] for x in (0.0, 1.0)]

    assert ends("share", "gradient_bias") == sorted(ends("share", "gradient_bias"), reverse=True)
    assert ends("share", "advantage_bias") == sorted(ends("share", "advantage_bias"))
    low, high = ends("turns", "advantage_bias")
    assert low > 1.5 * high


def test_an_exact_critic_has_no_bias_and_yet_lambda_zero_is_not_best():
    shown = LambdaTradeoff(error_size=0.0)
    bias_squared, variance, advantage = shown.curves()
    assert max(bias_squared) < 1e-9
    assert max(advantage) < 1e-9
    assert shown.best_lambda == 0.71
    assert variance[71] < 0.7 * variance[0]


def test_the_states_show_what_their_names_say():
    bias, _, _ = LambdaTradeoff.at("constant").curves()
    assert bias[80] > 1.5 * bias[0] > 0 == bias[100]
    _, variance, _ = LambdaTradeoff.at("turns").curves()
    assert variance[0] > 2 * variance[85] < variance[100]
    bias, _, _ = LambdaTradeoff.at("discounted").curves()
    assert min(bias) == pytest.approx(max(bias), rel=1e-6)  # γ's, whatever λ is
    assert min(bias) > 0.04


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.95, 1.0])
def test_the_weights_of_the_returns_sum_to_one(weight):
    found = LambdaTradeoff(gae_lambda=weight).numbers()
    assert sum(found["return_weights"]) + found["later_weight"] == pytest.approx(1, abs=1e-12)
    assert found["return_weights"][0] == pytest.approx(1 - weight)
    # A TD error k steps later is in all returns of more than k steps.
    for k, trace in enumerate(found["trace_weights"]):
        longer = sum(found["return_weights"][k:]) + found["later_weight"]
        assert trace == pytest.approx(longer, abs=1e-12)


@pytest.mark.parametrize(("given", "shown"), [(0.874, 0.87), (0.876, 0.88), (1.0, 1.0)])
def test_the_nearest_point_is_shown_and_nothing_between(given, shown):
    numbers = LambdaTradeoff(gae_lambda=given).numbers()
    assert numbers == LambdaTradeoff(gae_lambda=shown).numbers()


def test_the_reader_recomputes_the_squared_error():
    shown = LambdaTradeoff(error_shape="turns", error_size=0.35, num_episodes=30, gae_lambda=0.6)
    one = exact.gae_moments(
        shown.mdp, shown.logits, shown.critic, gamma=shown.gamma, gae_lambda=shown.gae_lambda
    )
    gradient = exact.policy_gradient(shown.mdp, shown.logits, gamma=1.0)
    error = exact.mean_squared_error(one, gradient, num_trajectories=shown.num_episodes)
    assert error.item() == pytest.approx(shown.squared_error, abs=1e-9)


def test_the_grid_names_every_shape_and_gamma_and_leaves_the_threads_alone():
    before = torch.get_num_threads()
    grid = LambdaTradeoff().grid
    assert torch.get_num_threads() == before
    assert len(grid) == len(GAMMAS)
    assert all(set(each) == {"exact", *SHAPES} for each in grid)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("linear[at] + size * square[at]", "linear[at] + square[at]"),
        ("value + variance[at] / number", "value + variance[at]"),
        ("(state.gamma * weight) ** k", "state.gamma * weight ** k"),
        ("Math.sqrt(curves[2][at])", "curves[2][at]"),
        ("weight * POINTS + 0.5", "weight * POINTS"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [LambdaTradeoff.at("discounted", error_size=0.3, gae_lambda=0.757)]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_the_pin_is_dragged_and_moved_with_keys(visit):
    from benchmarks.widgets import move

    with visit(LambdaTradeoff(), state="ten_episodes") as seen:
        move(seen.page, ".ppo-handle", [0.7, 0.5])
        assert seen.status() == repr(LambdaTradeoff(gae_lambda=0.5))
        seen.page.locator(".ppo-handle").focus()
        for key in ("ArrowRight", "Shift+ArrowRight", "ArrowLeft"):
            seen.page.keyboard.press(key)
        assert seen.status() == repr(LambdaTradeoff(gae_lambda=0.6))
        assert seen.page.get_by_role("slider", name="λ", exact=True).input_value() == "0.6"


def test_each_control_reaches_the_numbers(visit):
    with visit(LambdaTradeoff(), state="ten_episodes") as seen:
        seen.button("in turns").click()
        seen.button("0.95").click()
        sliders = seen.page.locator("input[type=range]")
        sliders.nth(2).fill("0.2")
        sliders.nth(1).focus()
        seen.page.keyboard.press("End")
        expected = LambdaTradeoff(
            error_shape="turns", gamma=0.95, error_size=0.2, num_episodes=1000
        )
        assert seen.status() == repr(expected)


def test_no_curve_is_seen_before_the_guess_and_then_the_guess_is_drawn(visit):
    seen_curves = ".ppo-panels svg:nth-child(n+2) :is(.ppo-new, .ppo-curve, .ppo-unclipped):visible"
    with visit(LambdaTradeoff()) as seen:
        assert seen.page.locator(seen_curves).count() == 0
        assert seen.page.locator("input[type=range]:visible").count() == 2
        seen.page.get_by_role("spinbutton").fill("0.95")
        seen.button("Reveal").click()
        assert seen.page.locator(seen_curves).count() == 4
        assert seen.page.locator("text=your guess").first.is_visible()
        assert "You said 0.95: squared error 0.0805. The best λ is 0.87: 0.0606." in (
            seen.page.locator("main").inner_text()
        )


def test_the_axes_stand_still_while_lambda_moves(visit):
    ticks = "nodes => nodes.map((node) => node.textContent)"
    with visit(LambdaTradeoff(), state="ten_episodes") as seen:
        before = seen.page.eval_on_selector_all(".ppo-panels text", ticks)
        seen.page.get_by_role("slider", name="λ", exact=True).fill("0.1")
        assert seen.page.eval_on_selector_all(".ppo-panels text", ticks) == before
