"""ReturnHorizon: returns by hand, and what a hand does to the rewards."""

import math

import pytest
import torch
from browsing import disagreements

from ppo_lessons.widgets import ReturnHorizon
from ppo_lessons.widgets.return_horizon import LATE


def by_definition(rewards, gamma, step):
    return math.fsum(gamma**k * reward for k, reward in enumerate(rewards[step:]))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_each_return_is_the_weighted_sum_of_what_follows(gamma):
    shown = ReturnHorizon(gamma=gamma)
    expected = [by_definition(LATE, gamma, step) for step in range(12)]
    assert shown.rewards_to_go == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_the_first_picture_was_worked_by_hand():
    shown = ReturnHorizon()
    # Eleven costs of 0.1, a geometric sum, and 2 at the end.
    assert shown.answer == pytest.approx(-0.1 * (1 - 0.9**11) / 0.1 + 2 * 0.9**11, rel=1e-12)
    assert shown.answer < 0 < sum(LATE)  # worth it in sum, not with the discount
    assert ReturnHorizon.at("patient").answer > 0
    assert shown.horizon == pytest.approx(10)
    assert repr(shown) == (
        "γ = 0.90, horizon 10.0 steps. Seen from step 0 the last reward counts 0.314. "
        "G_0 = −0.0586; without discount it would be 0.9000."
    )


def test_the_horizon_is_the_sum_of_all_weights_of_an_endless_episode():
    shown = ReturnHorizon.at("constant")
    endless = shown.horizon
    assert shown.answer == pytest.approx(endless * (1 - 0.9**12))  # twelve steps hold 72 % of it
    assert sum(shown.weights) == pytest.approx(shown.answer)
    assert ReturnHorizon(gamma=0.0).horizon == 1
    assert ReturnHorizon(gamma=1.0).horizon is None


def test_what_is_past_counts_nothing():
    shown = ReturnHorizon.at("nearer")
    assert shown.weights[:6] == [0.0] * 6
    assert shown.weights[6:] == pytest.approx([0.9**k for k in range(6)])
    before = shown.rewards_to_go[6]
    shown.rewards = [2.0, *shown.rewards[1:]]
    assert shown.rewards_to_go[6] == before


def test_the_reader_recomputes_the_first_return_in_single_precision():
    shown = ReturnHorizon()
    rewards = torch.tensor(shown.rewards)
    weights = shown.gamma ** torch.arange(12)
    assert (weights * rewards).sum().item() == pytest.approx(shown.rewards_to_go[0], abs=1e-6)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"gamma": 1.1}, "gamma is 1.1; expected a number from 0 to 1"),
        ({"rewards": [1.0]}, "rewards holds 1 numbers; expected 12"),
        ({"rewards": [3.0] * 12}, "rewards holds 3.0; expected numbers from -2.0 to 2.0"),
        ({"step": 12}, "step is 12; expected a whole number from 0 to 11"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        ReturnHorizon(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("rewards[t] + gamma * following", "gamma * (rewards[t] + following)"),
        ("gamma ** (t - step)", "gamma ** t"),
        ("1 / (1 - gamma)", "gamma / (1 - gamma)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    script = ReturnHorizon._esm
    assert right in script
    shown = [ReturnHorizon.at("nearer")]
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=script.replace(right, wrong))


def test_gamma_is_set_with_keys(visit):
    with visit(ReturnHorizon(), state="late_reward") as seen:
        seen.page.get_by_role("slider", name="gamma γ").focus()
        for _ in range(40):
            seen.page.keyboard.press("ArrowLeft")
        assert seen.status() == repr(ReturnHorizon(gamma=0.5))


def test_a_reward_is_dragged_and_moved_with_keys(visit):
    from benchmarks.widgets import move

    with visit(ReturnHorizon(), state="late_reward") as seen:
        drawn = move(seen.page, ".ppo-handle", [0.6, 0.75], along="y", index=3)
        assert drawn[-1][1] == 1.0  # three quarters of the way from −2 to 2
        rewards = [*LATE[:3], 1.0, *LATE[4:]]
        assert seen.status() == repr(ReturnHorizon(rewards=rewards))
        seen.page.locator(".ppo-handle[tabindex='0']").focus()
        for key in ("ArrowUp", "ArrowUp", "ArrowDown", "Shift+ArrowDown"):
            seen.page.keyboard.press(key)
        assert seen.values()[3] == 0.1
        seen.page.keyboard.press("ArrowRight")
        assert seen.focused() == "Reward of step 4"


def test_the_returns_are_not_drawn_before_the_guess(visit):
    heights = "nodes => nodes.map((node) => Number(node.getAttribute('height')))"
    bars = ".ppo-panels svg:nth-child(2) rect"
    with visit(ReturnHorizon()) as seen:
        assert set(seen.page.eval_on_selector_all(bars, heights)) == {0}
        assert "0.0586" not in seen.page.locator("main").inner_text()
        assert "G_0 = ?" in seen.page.locator("main svg").nth(1).text_content()
        seen.page.get_by_role("spinbutton").fill("0.5")
        seen.page.keyboard.press("Enter")
        assert max(seen.page.eval_on_selector_all(bars, heights)) > 100
        assert seen.page.get_by_text("You said 0.5; G_0 is −0.0586.").is_visible()


def test_the_axis_of_returns_stands_still_while_gamma_moves(visit):
    ticks = "nodes => nodes.map((node) => node.textContent)"
    with visit(ReturnHorizon(), state="late_reward") as seen:
        labels = ".ppo-panels svg:nth-child(2) .ppo-axes text"
        before = seen.page.eval_on_selector_all(labels, ticks)
        seen.page.get_by_role("slider", name="gamma γ").fill("0.2")
        assert seen.page.eval_on_selector_all(labels, ticks) == before
