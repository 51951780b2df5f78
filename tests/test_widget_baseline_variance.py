"""BaselineVariance: exact numbers in fractions, and what a hand does to baseline and pays."""

from fractions import Fraction

import pytest
import torch
from browsing import disagreements

from ppo_lessons.mdp import bandit, policy_gradient
from ppo_lessons.widgets import BaselineVariance
from ppo_lessons.widgets.baseline_variance import neat, short


def slow_moments(pays, chance, baseline):
    """Mean and variance of a push, summed over the levers in fractions."""
    chance, others = Fraction(chance), (1 - Fraction(chance)) / (len(pays) - 1)
    drawn = [
        (chance if lever == 1 else others, ((lever == 1) - chance) * (pay - Fraction(baseline)))
        for lever, pay in enumerate(pays)
    ]
    mean = sum(share * push for share, push in drawn)
    return mean, sum(share * push**2 for share, push in drawn) - mean**2


@pytest.mark.parametrize(
    ("baseline", "variance"), [(0, "7.45"), (1.9, "4.67"), (9.1, "0.00"), (-20, "76.21")]
)
def test_the_levers_of_the_lesson(baseline, variance):
    shown = BaselineVariance(pays=[1, 10, 0], chance=0.1, baseline=baseline)
    assert neat(shown.variance) == variance
    assert neat(shown.mean) == "0.81"
    assert (neat(shown.value), neat(shown.best)) == ("1.90", "9.10")


@pytest.mark.parametrize("name", BaselineVariance.STATES)
def test_mean_and_variance_are_those_of_a_sum_in_fractions(name):
    shown = BaselineVariance.at(name)
    for baseline in (-20, -3, 0, 7):
        shown.baseline = baseline
        mean, variance = slow_moments(shown.paid, shown.chance, baseline)
        assert shown.mean == pytest.approx(float(mean), abs=1e-12)
        assert shown.variance == pytest.approx(float(variance), abs=1e-11)


@pytest.mark.parametrize("levers", [2, 3])
def test_the_best_baseline_is_lower_than_all_others(levers):
    shown = BaselineVariance(levers=levers, pays=[1, 10, -8], chance=0.3)
    least = shown.variance_at(shown.best)
    grid = [shown.variance_at(b / 10) for b in range(-200, 201)]
    assert least <= min(grid) < least + 1e-3
    assert (least > 1) == (levers == 3)  # two levers can be silenced by one number, three cannot
    assert shown.variance_at(shown.value) > least + 1


def test_with_two_levers_each_counts_by_the_chance_of_the_other():
    shown = BaselineVariance()
    assert shown.best == pytest.approx(0.75 * 6 + 0.25 * 2)
    assert shown.value == pytest.approx(0.25 * 6 + 0.75 * 2)


def test_after_learning_v_is_worse_than_nothing():
    shown = BaselineVariance.at("learned")
    assert shown.baseline == pytest.approx(shown.value)
    assert shown.variance > 14 * shown.variance_at(0.0)


def test_the_mean_push_is_the_gradient_of_the_mean_pay():
    shown = BaselineVariance.at("three")
    logits = torch.tensor([shown.probabilities], dtype=torch.float64).log()
    gradient = policy_gradient(bandit(shown.paid), logits, gamma=1.0)
    assert shown.mean == pytest.approx(gradient.flatten()[1].item())


def test_the_third_lever_is_left_out_of_two():
    one, two = (BaselineVariance(pays=[2, 6, third]) for third in (4, -20))
    assert one.numbers() == two.numbers()
    assert len(one.probabilities) == len(one.scores) == 2


def test_the_sentence_of_the_default():
    assert repr(BaselineVariance()) == (
        "The levers pay 2, 6; lever 1 is pulled with probability 0.25. With b = 0.0 the variance "
        "of a push is 4.69; V = 3.00 leaves 0.75, b* = 5.00 leaves 0.00. The mean push is 0.75 "
        "whatever b is."
    )


@pytest.mark.parametrize(
    ("value", "text"), [(10, "10"), (-8, "−8"), (0, "0"), (2.5, "2.5"), (0.25, "0.25")]
)
def test_pays_are_written_short(value, text):
    assert short(value) == text


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"levers": 4}, "levers is 4; expected one of 2, 3"),
        ({"chance": 0.0}, "chance is 0.0; expected a number from 0.02 to 0.98"),
        ({"pays": [1, 2]}, "pays holds 2 numbers; expected 3"),
        ({"baseline": 21}, "baseline is 21; expected a number from -20.0 to 20.0"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        BaselineVariance(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(lever === 1 ? 1 : 0) - chance", "chance - (lever === 1 ? 1 : 0)"),
        ("(push - mean) ** 2", "push ** 2"),
        ("(1 - chance) / (levers - 1)", "1 - chance"),
        ("score ** 2", "Math.abs(score)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [BaselineVariance.at("three")]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def place(baseline):
    """Where a baseline stands on the axis, which reaches from −22 to 22."""
    return (baseline + 22) / 44


LINE = "document.querySelectorAll('.ppo-panels svg')[0].querySelector('path.ppo-ink')"


def test_the_mean_stands_still_while_a_hand_moves_b(visit):
    from benchmarks.widgets import move

    with visit(BaselineVariance(), state="none") as seen:
        before = seen.page.evaluate(f"{LINE}.getAttribute('d')")
        drawn = move(seen.page, ".ppo-handle", [0.5, 0.7, place(10)], index=2)
        assert drawn[-1][1] == pytest.approx(10, abs=0.1)
        assert seen.page.evaluate(f"{LINE}.getAttribute('d')") == before
        shown = BaselineVariance.at("none", baseline=seen.values()[2])
        assert seen.status() == repr(shown)


def test_pays_are_dragged_and_moved_with_keys(visit):
    from benchmarks.widgets import move

    with visit(BaselineVariance(), state="none") as seen:
        move(seen.page, ".ppo-handle", [0.7, place(15)], index=1)
        assert seen.values()[:2] == [1, 15]
        move(seen.page, ".ppo-handle", [0.7, place(-10)], index=1)
        assert seen.values()[:2] == [1, -10]
        seen.page.locator(".ppo-handle").nth(1).focus()
        seen.page.keyboard.press("Shift+ArrowRight")
        seen.page.keyboard.press("ArrowRight")
        assert seen.values()[:2] == [1, 1]
        assert seen.status() == repr(BaselineVariance.at("none", pays=[1, 1, -8]))


def test_a_third_lever_joins_and_b_can_be_typed_by_keys(visit):
    with visit(BaselineVariance(), state="best") as seen:
        assert len(seen.values()) == 3
        seen.button("three levers").click()
        assert len(seen.values()) == 4
        seen.page.get_by_role("slider", name="baseline b").first.focus()
        seen.page.keyboard.press("ArrowLeft")
        assert seen.status() == repr(BaselineVariance.at("best", levers=3, baseline=9.0))


def test_the_curve_is_hidden_before_the_guess(visit):
    curve = ".ppo-panels svg:nth-child(2) path.ppo-new"
    with visit(BaselineVariance()) as seen:
        assert seen.page.locator(curve).get_attribute("visibility") == "hidden"
        assert "4.69" not in seen.page.locator("main").inner_text()
        seen.page.get_by_role("spinbutton").fill("3")
        seen.button("Reveal").click()
        assert seen.page.locator(curve).get_attribute("visibility") == "visible"
        assert seen.page.get_by_text("You said 3; it is b* = 5.00, and V is 3.00.").is_visible()


def test_what_leaves_the_panel_stays_at_its_edge_and_its_number_is_said(visit):
    with visit(BaselineVariance(), state="bad") as seen:
        texts = seen.page.locator(".ppo-panels text:visible").all_text_contents()
        assert "variance at b = −20.0: 76.21" in texts
        handle = seen.page.locator(".ppo-handle").nth(2).bounding_box()
        panel = seen.page.locator(".ppo-panels svg").nth(1).bounding_box()
        assert handle["y"] > panel["y"]
