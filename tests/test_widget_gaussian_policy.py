"""GaussianPolicy: its numbers by hand and by counting, its three marks, the page."""

import math
import random
import statistics

import pytest
import torch
from browsing import disagreements
from torch.distributions import Normal, kl_divergence

from ppo_lessons.widgets import GaussianPolicy
from ppo_lessons.widgets.gaussian_policy import CLIP_EPSILON, LIMIT, ratio_inside

LOW, HIGH = math.log(1 - CLIP_EPSILON), math.log(1 + CLIP_EPSILON)


def random_states(count, *, seed=1):
    """Widgets on the grid that a hand reaches."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        state = {
            "mean_old": chance.randint(-40, 40) / 20,
            "log_std_old": chance.randint(-30, 10) / 20,
            "mean": chance.randint(-40, 40) / 20,
            "log_std": chance.randint(-30, 10) / 20,
            "action": chance.randint(-70, 70) / 20,
        }
        if chance.random() < 0.3:  # a straight line instead of a parabola
            state["log_std"] = state["log_std_old"]
        found.append(GaussianPolicy(**state, revealed=True))
    return found


def normals(shown):
    """Old and new policy, as torch has them."""
    pairs = ((shown.mean_old, shown.log_std_old), (shown.mean, shown.log_std))
    made = (torch.tensor([mean, math.exp(s)], dtype=torch.float64) for mean, s in pairs)
    return [Normal(mean, deviation) for mean, deviation in made]


# --- by hand ---------------------------------------------------------------------------------


def test_the_first_state_by_hand():
    shown = GaussianPolicy.at("mean_moved")  # μ from 0 to 0.5, both σ 1, action 1
    assert shown.log_prob_old == pytest.approx(-0.5 - 0.5 * math.log(2 * math.pi))
    assert shown.log_prob == pytest.approx(-0.125 - 0.5 * math.log(2 * math.pi))
    assert shown.ratio == pytest.approx(math.exp(0.375))
    assert shown.kl == pytest.approx(0.125)
    ((low, high),) = shown.inside  # the log-ratio is 0.5·a − 0.125
    assert (low, high) == pytest.approx(((LOW + 0.125) / 0.5, (HIGH + 0.125) / 0.5))
    normal = statistics.NormalDist()
    assert shown.share_inside == pytest.approx(normal.cdf(high) - normal.cdf(low))
    assert f"{shown.answer:.1f}" == "30.8"


def test_the_same_step_is_twenty_times_farther_for_a_narrow_policy():
    near, far = GaussianPolicy.at("small_step"), GaussianPolicy.at("narrow")
    assert near.mean - near.mean_old == far.mean - far.mean_old == 0.2
    assert near.kl == pytest.approx(0.02)
    assert far.kl == pytest.approx(0.02 * math.exp(3))  # 1/σ² with σ = e^−1.5
    assert far.share_inside < 0.25 * near.share_inside


def test_nothing_moved_and_every_ratio_is_one():
    shown = GaussianPolicy.at("same_policy")
    assert (shown.ratio, abs(shown.kl), shown.share_inside) == (1.0, 0.0, 1.0)
    assert shown.inside == [(-math.inf, math.inf)]
    assert "every action" in repr(shown)


def test_another_spread_gives_two_intervals_or_none():
    assert len(GaussianPolicy.at("sigma_shrunk").inside) == 2
    assert len(GaussianPolicy.at("sigma_grown").inside) == 2
    slightly = GaussianPolicy(log_std=0.05, mean=0.0)
    assert len(slightly.inside) == 1  # the middle is inside, too
    assert ratio_inside(-0.1, 0.1, old=(0.0, 0.0), new=(0.0, 1.5))[0][1] < 0
    assert ratio_inside(1.6, 1.7, old=(0.0, 0.0), new=(0.0, -1.5)) == []
    assert ratio_inside(0.1, 0.2, old=(0.0, 0.0), new=(0.0, 0.0)) == []


def test_beyond_the_limits_other_actions_are_sent_as_the_same():
    shown = GaussianPolicy.at("beyond")
    assert shown.beyond == pytest.approx(0.5, abs=1e-4)  # its mean lies on the limit
    other = GaussianPolicy.at("beyond", action=2.5)
    assert min(shown.action, other.action) > LIMIT
    assert shown.ratio > 1.2 * other.ratio


# --- against torch, and by counting ----------------------------------------------------------


@pytest.mark.parametrize("shown", random_states(30), ids=range(30))
def test_kl_ratio_and_what_is_cut_agree_with_torch(shown):
    old, new = normals(shown)
    assert shown.kl == pytest.approx(float(kl_divergence(old, new)), rel=1e-9, abs=1e-12)
    action = torch.tensor(shown.action, dtype=torch.float64)
    log_ratio = float(new.log_prob(action) - old.log_prob(action))
    assert math.log(shown.ratio) == pytest.approx(log_ratio, rel=1e-9, abs=1e-9)
    for beyond, policy in ((shown.beyond, new), (shown.beyond_old, old)):
        low, high = (policy.cdf(torch.tensor(end)) for end in (-LIMIT, LIMIT))
        assert beyond == pytest.approx(float(low + 1 - high), abs=1e-6)


@pytest.mark.parametrize("shown", random_states(30, seed=2), ids=range(30))
def test_the_intervals_are_those_actions_whose_ratio_lies_inside(shown):
    old, new = normals(shown)
    places = old.icdf((torch.arange(4000, dtype=torch.float64) + 0.5) / 4000)
    log_ratios = new.log_prob(places) - old.log_prob(places)
    counted = (log_ratios >= LOW) & (log_ratios <= HIGH)
    told = torch.zeros_like(counted)
    for low, high in shown.inside:
        told |= (places >= low) & (places <= high)
    assert (counted != told).sum() == 0
    assert shown.share_inside == pytest.approx(float(counted.double().mean()), abs=2e-3)


# --- in a browser ----------------------------------------------------------------------------


def test_page_and_python_agree_wherever_a_hand_gets(browser):
    assert disagreements(browser, random_states(80, seed=3)) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.exp(-2 * now.log_std)) / 2 - 0.5", "Math.exp(-2 * old.log_std)) / 2 - 0.5"),
        (") ** 2 - log_std - 0.5", ") ** 2 - 0.5"),
        ("* Math.SQRT2", "* 2"),
        ("Math.sqrt((low - lowest) / q2)", "Math.sqrt((high - lowest) / q2)"),
        ("below(to, old) - below(from, old)", "below(to, now) - below(from, now)"),
        ("(2 * x * x) / (2 * n + 1)", "(2 * x * x) / (2 * n + 3)"),
        ("below(-LIMIT, policy) + 1", "1"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    widgets = [*random_states(10, seed=4), *map(GaussianPolicy.at, list(GaussianPolicy.STATES)[1:])]
    assert right in widgets[0]._esm
    assert disagreements(browser, widgets, script=widgets[0]._esm.replace(right, wrong))


def test_keys_move_mean_and_spread_by_one_step_each(visit):
    with visit(GaussianPolicy(), state="mean_moved") as seen:
        handles = seen.page.locator(".ppo-new-policy .ppo-handle")
        handles.nth(0).focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(GaussianPolicy.at("mean_moved", mean=0.55))
        seen.page.keyboard.press("ArrowLeft")
        seen.page.keyboard.press("ArrowUp")  # to the mark of σ, which stands farther right
        assert seen.focused() == "σ of the new policy"
        for key, log_std in (("ArrowRight", 0.05), ("ArrowLeft", 0.0), ("ArrowLeft", -0.05)):
            seen.page.keyboard.press(key)
            assert seen.status() == repr(GaussianPolicy.at("mean_moved", log_std=log_std)), key


def test_every_log_std_is_reached_by_keys(visit):
    with visit(GaussianPolicy(), state="mean_moved") as seen:
        seen.page.locator(".ppo-new-policy .ppo-handle").nth(1).focus()
        for key, end in (("ArrowLeft", -1.5), ("ArrowRight", 0.5)):
            for _ in range(45):
                seen.page.keyboard.press(key)
            assert seen.values(".ppo-new-policy .ppo-handle")[1] == end
        for _ in range(40):
            seen.page.keyboard.press("ArrowLeft")
        assert seen.values(".ppo-new-policy .ppo-handle")[1] == -1.5  # forty steps of 0.05


def test_the_action_is_taken_hold_of_where_it_lies_over_the_mean(visit):
    with visit(GaussianPolicy(action=0.5), state="") as seen:
        page = seen.page
        box = page.locator(".ppo-action .ppo-hit").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 120, box["y"])
        page.mouse.up()
        (moved,) = seen.values(".ppo-action .ppo-handle")
        assert moved > 1
        assert seen.values(".ppo-new-policy .ppo-handle")[0] == 0.5


def test_a_mark_that_is_dragged_away_stays_in_its_range(visit):
    with visit(GaussianPolicy(), state="mean_moved") as seen:
        page = seen.page
        for number, end in ((0, -2), (1, 0.5)):
            box = page.locator(".ppo-new-policy .ppo-hit").nth(number).bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.mouse.down()
            page.mouse.move(box["x"] + (900 if number else -900), box["y"])
            page.mouse.up()
            assert seen.values(".ppo-new-policy .ppo-handle")[number] == end


def test_ratios_are_not_drawn_before_the_guess(visit):
    hidden = "nodes => nodes.filter((n) => n.getAttribute('visibility') === 'hidden').length"
    with visit(GaussianPolicy()) as seen:
        drawn = ".ppo-panels svg :is(path, text)"
        before = seen.page.eval_on_selector_all(drawn, hidden)
        seen.page.locator(".ppo-guess input").first.fill("80")
        seen.button("Reveal").click()
        assert before >= 6
        assert seen.page.eval_on_selector_all(drawn, hidden) == 0
        text = seen.page.locator("main").inner_text()
        assert "You said 80; it is 30.8 of 100." in text
