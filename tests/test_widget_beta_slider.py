"""BetaSlider: the recorded runs, numbers by hand, what a wrong script would show."""

import pytest
from browsing import disagreements, random_widgets

from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import BetaSlider
from ppo_lessons.widgets.beta_slider import BETAS, METRICS


@pytest.mark.parametrize("beta", BETAS)
def test_the_curves_are_those_that_were_recorded(beta):
    runs, shown = recorded("rlhf")["runs"][f"beta {beta:g}"], BetaSlider(beta=beta)
    for name in METRICS:
        assert shown.curves[name] == [runs[seed]["curves"][name] for seed in ("0", "1", "2")]
    (low, middle, high) = sorted(runs[seed]["curves"]["success"][-1] for seed in runs)
    assert low <= middle <= high
    assert abs(shown.answer - 100 * middle) <= 0.5


def test_without_a_price_more_was_right_on_the_way_than_at_the_end():
    free, held = BetaSlider(beta=0.0), BetaSlider(beta=0.3)
    assert free.best > 60 > 5 > free.answer
    assert held.answer > 70
    assert min(free.ends("score")) > max(held.ends("score"))
    assert min(free.ends("kl_reference")) > max(held.ends("kl_reference"))


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"beta": 0.5}, "beta is 0.5; expected one of 0, 0.1"),
        ({"guess": 101}, "guess is 101"),
    ],
)
def test_what_was_not_run_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        BetaSlider(**state)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.floor(100 * share + 0.5)", "Math.floor(100 * share)"),
        ("(a, b) => a - b", "(a, b) => b - b"),
        ("Math.max(...curve)", "curve[0]"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = random_widgets("beta_slider", 20)
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_nothing_is_told_before_the_guess(visit):
    with visit(BetaSlider()) as seen:
        assert "State your guess" in seen.status()
        seen.page.get_by_role("spinbutton").fill("60")
        seen.button("Reveal").click()
        assert seen.page.get_by_text("You said 60; it is 0.").is_visible()
        assert seen.status() == repr(BetaSlider(revealed=True))
