"""ValueFit: its critic and grades against slow sums, and what the sliders do to them."""

import math
import statistics
from fractions import Fraction
from functools import cache

import pytest
import torch
from browsing import disagreements

from ppo_lessons.critic import explained_variance, value_loss
from ppo_lessons.widgets import ValueFit
from ppo_lessons.widgets.value_fit import NUM_EPISODES, NUM_STEPS, samples

STAY = Fraction(9, 10)


@cache
def exact_value(place, left):
    """V with so many steps left: the high place pays 2; 9 of 10 steps lead to the same place."""
    if left == 0:
        return Fraction(0)
    other = "high" if place == "low" else "low"
    following = STAY * exact_value(place, left - 1) + (1 - STAY) * exact_value(other, left - 1)
    return (2 if place == "high" else 0) + following


def by_step(name):
    """One of the tables as rows of steps."""
    table = samples()[name]
    return [table[t * NUM_EPISODES : (t + 1) * NUM_EPISODES] for t in range(NUM_STEPS)]


def slow_grade(values, targets):
    errors = [target - value for target, value in zip(targets, values, strict=True)]
    return 1 - statistics.pvariance(errors) / statistics.pvariance(targets)


def slow_loss(values, targets):
    errors = [(target - value) ** 2 for target, value in zip(targets, values, strict=True)]
    return math.fsum(errors) / len(errors) / 2


# --- the samples -----------------------------------------------------------------------------


def test_each_value_is_that_of_the_recursion():
    for t, row in enumerate(by_step("values")):
        known = {place: exact_value(place, NUM_STEPS - t) for place in ("low", "high")}
        assert all(min(abs(each - float(v)) for v in known.values()) < 1e-12 for each in row)
    both = [row for row in by_step("values") if len(set(row)) == 2]
    assert len(both) == NUM_STEPS  # both places are seen at every step


def test_returns_are_the_rewards_that_follow():
    rewards, returns = by_step("rewards"), by_step("returns")
    for n in range(NUM_EPISODES):
        for t in range(NUM_STEPS):
            assert returns[t][n] == pytest.approx(sum(row[n] for row in rewards[t:]))


def test_the_next_value_is_that_of_the_next_row_and_zero_after_the_last():
    for now, following in (("next_values", "values"), ("next_noise", "noise")):
        assert by_step(now)[:-1] == by_step(following)[1:]
        assert by_step(now)[-1] == [0.0] * NUM_EPISODES
    assert by_step("last") == [[0.0] * NUM_EPISODES] * (NUM_STEPS - 1) + [[1.0] * NUM_EPISODES]


def test_noise_belongs_to_the_state_and_is_neither_shift_nor_scale():
    values, noise = samples()["values"], samples()["noise"]
    assert len(set(zip(values, noise, strict=True))) == len(set(values)) == 2 * NUM_STEPS
    assert statistics.fmean(noise) == pytest.approx(0, abs=1e-12)
    assert statistics.pstdev(noise) == pytest.approx(1, abs=1e-12)
    assert statistics.correlation(values, noise) == pytest.approx(0, abs=1e-12)


# --- the grades ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ValueFit.STATES)
def test_grades_and_losses_are_those_of_slow_sums(name):
    shown = ValueFit.at(name)
    assert shown.ev_monte_carlo == pytest.approx(slow_grade(shown.values, shown.returns))
    assert shown.loss_monte_carlo == pytest.approx(slow_loss(shown.values, shown.returns))
    assert shown.ev_own == pytest.approx(slow_grade(shown.values, shown.own_targets), abs=1e-12)
    assert shown.loss_own == pytest.approx(slow_loss(shown.values, shown.own_targets))
    assert shown.mean_error == pytest.approx(statistics.fmean(shown.errors))


def test_own_targets_are_reward_plus_the_next_value_of_the_same_critic():
    shown = ValueFit(shift=2.0, scale=1.5, noise=3.0)
    rewards = [reward for row in by_step("rewards") for reward in row]
    for index, target in enumerate(shown.own_targets):
        last = index + NUM_EPISODES >= len(rewards)
        following = 0.0 if last else shown.values[index + NUM_EPISODES]
        assert target == pytest.approx(rewards[index] + following)


@pytest.mark.parametrize("shift", [-10, -3, 5, 10])
def test_the_grade_forgives_a_shift_and_the_loss_does_not(shift):
    exact, shifted = ValueFit(), ValueFit(shift=shift)
    assert shifted.ev_monte_carlo == pytest.approx(exact.ev_monte_carlo, abs=1e-12)
    more = shift**2 / 2 - shift * exact.mean_error
    assert shifted.loss_monte_carlo - exact.loss_monte_carlo == pytest.approx(more)
    assert shifted.answer == "shift"


@pytest.mark.parametrize("fault", [{"scale": 0.0}, {"scale": 2.0}, {"noise": 3.0}, {"scale": -1}])
def test_the_grade_forgives_nothing_else(fault):
    assert ValueFit(**fault).ev_monte_carlo < ValueFit().ev_monte_carlo - 0.2


def test_a_constant_has_grade_zero_and_what_is_worse_a_lower_one():
    assert ValueFit.at("constant").ev_monte_carlo == pytest.approx(0, abs=1e-12)
    assert ValueFit.at("scaled").ev_monte_carlo < -0.05


def test_its_own_targets_flatter():
    scaled = ValueFit.at("scaled")
    assert scaled.ev_own > 0.6 > 0 > scaled.ev_monte_carlo
    exact = ValueFit()
    assert exact.ev_own > exact.ev_monte_carlo + 0.2  # even the exact V is graded by luck


def test_the_reader_recomputes_the_grade():
    shown = ValueFit(shift=2.0, noise=1.0)
    values, returns = torch.tensor(shown.values), torch.tensor(shown.returns)
    assert explained_variance(values, returns).item() == pytest.approx(shown.ev_monte_carlo, 1e-4)
    assert value_loss(values, returns).item() == pytest.approx(shown.loss_monte_carlo, 1e-4)


def test_the_sentence_of_the_default():
    assert repr(ValueFit()) == (
        "Shift 0.0, scale 1.0, noise 0.0. Against what came the explained variance is 0.51 and the "
        "loss 7.60; against its own targets 0.77 and 2.49. Drawn: what came."
    )


def test_the_same_samples_are_drawn_each_time():
    again = samples.__wrapped__()
    assert again.keys() == samples().keys()
    for name, numbers in samples().items():  # the last digit depends on where arrays lie
        assert again[name] == pytest.approx(numbers, abs=1e-12), name


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"shift": 11}, "shift is 11; expected a number from -10 to 10"),
        ({"noise": -1}, "noise is -1; expected a number from 0 to 6"),
        ({"target": "mine"}, "target is 'mine'; expected one of returns, own"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        ValueFit(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scale * (value - centre)", "scale * value"),
        ("samples.last[index] ? 0 : following[index]", "following[index]"),
        ("(each - mean) ** 2", "each ** 2"),
        ("error ** 2)) / 2", "error ** 2))"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [ValueFit.at("flattered", shift=3.0)]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_the_bars_count_every_sample_and_move_with_the_shift(visit):
    heights = "nodes => nodes.map((node) => Number(node.getAttribute('height')))"
    bars = ".ppo-panels svg:nth-child(2) rect"
    with visit(ValueFit(), state="exact") as seen:
        before = seen.page.eval_on_selector_all(bars, heights)
        slider = seen.page.get_by_role("slider", name="shift")
        slider.fill("4")
        after = seen.page.eval_on_selector_all(bars, heights)
        assert sum(after) == pytest.approx(sum(before), abs=0.1)
        assert after[3:-4] == before[5:-2]  # two bins to the left
        assert seen.status() == repr(ValueFit(shift=4.0))
        seen.page.get_by_role("slider", name="scale").fill("3")
        whole = seen.page.eval_on_selector_all(bars, heights)
        assert sum(whole) == pytest.approx(sum(before), abs=0.1)  # none is lost at the edges


def test_the_target_is_chosen_after_the_guess(visit):
    with visit(ValueFit()) as seen:
        assert seen.button("its own targets").is_hidden()
        assert "0.51" not in seen.page.locator("main").inner_text()
        seen.page.get_by_role("combobox").select_option("scale")
        seen.button("Reveal").click()
        assert seen.page.get_by_text("You said scale; it is the shift").is_visible()
        seen.button("its own targets").click()
        assert seen.status() == repr(ValueFit(target="own"))
        texts = seen.page.locator(".ppo-panels text").all_text_contents()
        assert {"reward + own next V", "explained variance 0.77, loss 2.49"} <= set(texts)
