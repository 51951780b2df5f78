"""TrustRegion: its steps by hand and by search, its ball, and what a hand does to it."""

import itertools
import math
import random
import re

import pytest
import torch
from browsing import disagreements

from ppo_lessons.widgets import TrustRegion, trust_region_map
from ppo_lessons.widgets.trust_region_map import (
    CLIP_EPSILON,
    PRICES,
    RADII,
    SITUATIONS,
    ball_edge,
    best_in_ball,
    ground,
    natural_step,
    penalty_step,
    plain_step,
)


def kl_by_hand(old, new):
    return sum(p * math.log(p / q) for p, q in zip(old, new, strict=True))


def all_policies(step):
    """Every policy whose probabilities are multiples of one over `step`."""
    for b, c in itertools.product(range(1, step), repeat=2):
        if b + c < step:
            yield [(step - b - c) / step, b / step, c / step]


# --- the steps -------------------------------------------------------------------------------


def test_the_plain_step_by_hand():
    here = ground("middle")
    old, over = here.policy_old.tolist(), [-0.77, 0.23, 1.23]  # rewards 0, 1, 2 minus 0.77
    assert here.advantages.tolist() == pytest.approx(over, abs=1e-12)
    weights = [p * math.exp(2 * p * advantage) for p, advantage in zip(old, over, strict=True)]
    by_hand = [weight / sum(weights) for weight in weights]
    assert plain_step(here, learning_rate=2.0).tolist() == pytest.approx(by_hand, rel=1e-12)
    assert TrustRegion().kl_plain == pytest.approx(kl_by_hand(old, by_hand), rel=1e-12)
    assert f"{TrustRegion().answer:.1f}" == "3.0"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_quadratic_kl_of_the_natural_step_is_delta(situation):
    here = ground(situation)
    new, old = natural_step(here, max_kl=0.05), here.policy_old
    moved = new.log() - old.log()  # logits, up to a shift
    moved = moved - old @ moved
    assert float(0.5 * old @ moved**2) == pytest.approx(0.05, rel=1e-9)
    ratios = moved / (here.advantages - old @ here.advantages)
    torch.testing.assert_close(ratios, ratios[:1].expand(3), rtol=1e-6, atol=0)  # along F⁺·∇L


def test_near_a_side_the_natural_step_goes_farther_than_its_model_says():
    far = {name: TrustRegion(situation=name).kl_natural / 0.05 for name in SITUATIONS}
    assert 1 < far["middle"] < 1.05
    assert 1.4 < far["corner"] < 1.6
    assert 3.4 < far["unseen"] < 3.6


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("beta", [0.5, 2.0, 20.0])
def test_no_policy_has_more_than_the_penalty_step(situation, beta):
    here = ground(situation)
    old, advantages = here.policy_old.tolist(), here.advantages.tolist()

    def worth(policy):
        surrogate = sum(p * advantage for p, advantage in zip(policy, advantages, strict=True))
        return surrogate - beta * kl_by_hand(old, policy)

    best = penalty_step(here, beta=beta)
    assert float(best.sum()) == pytest.approx(1, abs=1e-12)
    assert worth(best.tolist()) >= max(map(worth, all_policies(60))) - 1e-12
    other = (here.policy_old.log() + here.advantages / beta).softmax(0)  # KL the other way round
    assert worth(other.tolist()) < worth(best.tolist())


def test_one_price_buys_another_distance_at_each_old_policy():
    found = [ground(name).kl(penalty_step(ground(name), beta=2.0)) for name in SITUATIONS]
    assert max(found) > 30 * min(found)


def test_at_one_learning_rate_the_corner_step_is_thirty_times_nearer():
    middle, corner = TrustRegion.at("middle"), TrustRegion.at("same_rate")
    assert middle.learning_rate == corner.learning_rate
    assert middle.kl_plain > 30 * corner.kl_plain


def test_in_the_corner_a_shorter_plain_step_goes_farther_and_gains_less_for_it():
    shown = TrustRegion.at("fast")

    def length(policy):
        moved = policy.log() - shown.policy_old.log()
        return float((moved - moved.mean()).norm())

    assert length(shown.plain) < length(shown.natural)
    assert shown.kl_plain > 2 * shown.kl_natural
    numbers = shown.numbers()
    _, best = best_in_ball(ground("corner"), max_kl=shown.kl_plain)
    assert ground("corner").gain(best) > 1.3 * numbers["gain_plain"]


# --- the ball --------------------------------------------------------------------------------


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("max_kl", RADII[3:])
def test_the_edge_of_the_ball_has_its_kl_and_goes_around_the_old_policy(situation, max_kl):
    here = ground(situation)
    edge = ball_edge(here, max_kl=max_kl)
    policies = [[a, b, 1 - a - b] for a, b in edge]
    inner = [policy for policy in policies if min(policy) > 0.005]
    assert len(inner) > 20
    for policy in inner:  # corners are stored with 4 digits, which matter where one is rare
        assert kl_by_hand(here.policy_old.tolist(), policy) == pytest.approx(max_kl, rel=0.05)
    turns = [math.atan2(b - here.policy_old[1], a - here.policy_old[0]) for a, b in edge]
    assert max(turns) - min(turns) > 6


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_best_point_of_the_ball_is_a_penalty_step(situation):
    here = ground(situation)
    beta, best = best_in_ball(here, max_kl=0.05)
    assert here.kl(best) == pytest.approx(0.05, rel=1e-6)
    inside = [
        torch.tensor(policy, dtype=torch.float64)
        for policy in all_policies(80)
        if kl_by_hand(here.policy_old.tolist(), policy) <= 0.05
    ]
    assert inside
    assert here.gain(best) >= max(map(here.gain, inside))
    shown = TrustRegion(situation=situation)
    assert shown.edge_beta == pytest.approx(beta, abs=1e-4)


def test_the_front_is_passed_by_no_step():
    for situation in SITUATIONS:
        here = ground(situation)
        for rate in (0.5, 2.0, 5.0):
            end = plain_step(here, learning_rate=rate)
            if here.kl(end) > 1e-3:
                _, best = best_in_ball(here, max_kl=here.kl(end))
                assert here.gain(end) <= here.gain(best) + 1e-6


# --- the clip --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moved", "ended"),
    [
        ([0.34, 0.36, 0.30], [True, True, True]),
        ([0.47, 0.29, 0.24], [False, False, False]),
        ([0.60, 0.20, 0.20], [False, False, False]),  # outside, and every action pushes back
        ([0.30, 0.60, 0.10], [True, True, False]),
    ],
)
def test_where_the_incentive_has_ended_by_hand(moved, ended):
    # ends: a, worse, below 0.8 · 0.47 = 0.376; b and c, better, above 1.2 · 0.29 and 1.2 · 0.24
    shown = TrustRegion(view="clip", moved=moved)
    assert shown.incentive_ended == ended


def test_ended_for_all_says_nothing_about_the_ball():
    near, far = TrustRegion.at("clip"), TrustRegion(view="clip", moved=[0.05, 0.4, 0.55])
    assert all(near.incentive_ended)
    assert all(far.incentive_ended)  # such a policy is not kept from anywhere
    assert near.kl_moved < near.max_kl < 10 * near.max_kl < far.kl_moved


def test_the_clip_cannot_see_an_action_that_was_not_drawn():
    shown = TrustRegion.at("unseen")
    assert shown.incentive_ended == [False, False, None]
    assert shown.ratios[:2].tolist() == pytest.approx([0.4 / 0.495] * 2)
    by_hand = 0.99 * math.log(0.495 / 0.4) + 0.01 * math.log(0.01 / 0.2)
    assert shown.kl_moved == pytest.approx(by_hand, rel=1e-12)
    assert "a 0.808, pushes, b 0.808, pushes, c not drawn" in repr(shown)
    assert f"{shown.kl_moved:.2f}" == "0.18"


def test_no_hundredth_lies_where_rounding_decides():
    for situation in SITUATIONS:
        here = ground(situation)
        for p, sampled in zip(here.policy_old.tolist(), here.sampled, strict=True):
            for edge in ((1 - CLIP_EPSILON) * p, (1 + CLIP_EPSILON) * p):
                away = abs(edge * 100 - round(edge * 100))
                assert not sampled or away > 0.1


# --- state -----------------------------------------------------------------------------------


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"moved": [0.5, 0.5]}, "expected three probabilities of at least 0.001 that sum to 1"),
        ({"moved": [0.5, 0.5, 0.5]}, "moved has the sum 1.5; expected three"),
        ({"moved": [1.0, 0.0, 0.0]}, "expected three probabilities of at least 0.001"),
        ({"moved": [0.5, math.nan, 0.5]}, "expected three probabilities"),
        ({"max_kl": 0.03}, "max_kl is 0.03; expected one of 0.001, 0.002, 0.005"),
        ({"beta": True}, "beta is True; expected one of 0.5, 0.7, 1, 1.5"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        TrustRegion(**state)


def test_tensors_and_whole_numbers_are_taken():
    moved = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    shown = TrustRegion(moved=moved, beta=2, learning_rate=torch.tensor(5.0))
    assert (shown.moved, shown.beta, shown.learning_rate) == ([0.5, 0.25, 0.25], 2.0, 5.0)


# --- in a browser ----------------------------------------------------------------------------


def moved_about(count):
    """Policies on the hundredths that a hand reaches, revealed."""
    chance, widgets = random.Random(1), []
    for _ in range(count):
        second = chance.randint(1, 97)
        third = chance.randint(1, 98 - second)
        moved = [(100 - second - third) / 100, second / 100, third / 100]
        situation = chance.choice(SITUATIONS)
        state = {"view": "clip", "situation": situation, "moved": moved, "revealed": True}
        widgets.append(TrustRegion(**state, max_kl=chance.choice(RADII)))
    return widgets


def test_page_and_python_agree_on_every_policy_that_a_hand_reaches(browser):
    assert disagreements(browser, moved_about(60)) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("p * (Math.log(p) - Math.log(policy[a]))", "policy[a] * (Math.log(policy[a] / p))"),
        ("Math.sqrt((2 * radius) / variance)", "Math.sqrt(radius / variance)"),
        ("old.map((p, a) => rate * p * over[a])", "old.map((p, a) => rate * over[a])"),
        ("ratio > 1 + epsilon : ratio < 1 - epsilon", "ratio > 1 + epsilon : ratio > 1 + epsilon"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    widgets = [*moved_about(10), *map(TrustRegion.at, list(TrustRegion.STATES)[1:])]
    assert right in widgets[0]._esm
    assert disagreements(browser, widgets)[:1] == []
    assert disagreements(browser, widgets, script=widgets[0]._esm.replace(right, wrong))


def said(moved):
    return repr(TrustRegion.at("clip", moved=moved))


def test_the_keys_move_the_policy_by_hundredths(visit):
    with visit(TrustRegion(), state="clip") as seen:
        seen.page.locator(".ppo-handle").focus()
        for key, moved in (
            ("ArrowRight", [0.33, 0.37, 0.3]),
            ("ArrowLeft", [0.34, 0.36, 0.3]),
            ("Shift+ArrowUp", [0.29, 0.31, 0.4]),
            ("Shift+ArrowDown", [0.34, 0.36, 0.3]),
        ):
            seen.page.keyboard.press(key)
            assert seen.status() == said(moved), key


def test_c_rises_and_falls_by_hundredths_taken_from_a_or_b(visit):
    with visit(TrustRegion(), state="clip") as seen:
        seen.page.locator(".ppo-handle").focus()
        keys = ["ArrowUp"] * 3 + ["ArrowDown"] * 3
        for key, share in zip(keys, (31, 32, 33, 32, 31, 30), strict=True):
            seen.page.keyboard.press(key)
            a, b, c = (float(each) for each in re.findall(r"0\.\d+", seen.texts()[0]))
            assert c == pytest.approx(share / 100)
            assert a + b + c == pytest.approx(1)


def test_a_policy_is_dragged_in_both_directions_and_stays_in_the_triangle(visit):
    with visit(TrustRegion(), state="clip") as seen:
        page = seen.page
        box = page.locator(".ppo-handle .ppo-hit").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y - 60)
        up = seen.texts()[0]
        assert up != "a 0.34, b 0.36, c 0.30"
        page.mouse.move(x + 900, y + 900)
        page.mouse.up()
        assert seen.texts()[0] == "a 0.01, b 0.98, c 0.01"


def test_the_plain_step_is_not_drawn_before_the_guess(visit):
    hidden = "nodes => nodes.filter((n) => n.getAttribute('visibility') === 'hidden').length"
    with visit(TrustRegion()) as seen:
        marks = ".ppo-panels .ppo-mark"
        assert seen.page.eval_on_selector_all(marks, hidden) == 2
        seen.page.locator(".ppo-guess input").first.fill("1.5")
        seen.button("Reveal").click()
        assert seen.page.eval_on_selector_all(marks, hidden) == 0
        text = seen.page.locator("main").inner_text()
        assert "You said 1.5; the plain step goes 3.0 times δ." in text
        assert seen.page.locator(".ppo-panels text:visible", has_text="your guess").count() == 1


def test_each_price_of_the_slider_is_one_that_python_computed():
    for beta in PRICES:
        assert TrustRegion(beta=beta).numbers()["penalty"] == pytest.approx(
            trust_region_map.grids()["by"]["middle"]["penalty"][PRICES.index(beta)], abs=1e-15
        )
