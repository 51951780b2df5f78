"""LifeOfATransition: the record against the identities it must obey, and what the hand steps."""

import json
import math

import pytest
from browsing import disagreements

from benchmarks.squeeze import lives as live_again
from ppo_lessons.widgets import LifeOfATransition
from ppo_lessons.widgets.life_of_a_transition import SAMPLES, STAGES, lives

RECORDED = lives()
WEIGHT = RECORDED["gamma"] * RECORDED["gae_lambda"]


@pytest.fixture(params=SAMPLES)
def name(request):
    return request.param


def slow_errors(record, gamma):
    """TD errors by their definition; nothing follows the step that ends an episode."""
    found = []
    for later, reward in enumerate(record["rewards"]):
        ends = record["terminated"] and later == len(record["rewards"]) - 1
        following = 0.0 if ends else gamma * record["next_values"][later]
        found.append(reward + following - record["values"][later])
    return found


def check_life(record, weight, gamma, *, digits):
    """What the loop wrote down agrees with itself, whatever the processor."""
    errors = slow_errors(record, gamma)
    total = math.fsum(weight**later * error for later, error in enumerate(errors))
    assert record["advantage"] == pytest.approx(total, abs=digits)
    assert record["return"] == pytest.approx(total + record["values"][0], abs=digits)
    assert record["next_values"][:-1] == record["values"][1:]
    assert record["rewards"] == [1.0] * len(errors)  # CartPole pays for each step
    assert len(record["visits"]) == 8
    assert record["log_prob_old"] < 0


# --- the record ------------------------------------------------------------------------------


def test_the_record_agrees_with_itself(name):
    check_life(RECORDED["samples"][name], WEIGHT, RECORDED["gamma"], digits=1e-4)


def test_each_sample_shows_what_it_is_named_for():
    shown = {name: LifeOfATransition(sample=name) for name in SAMPLES}
    assert shown["good"].advantage > 0
    assert all(shown["good"].pushes)
    assert shown["bad"].advantage < 0
    assert shown["bad"].ratios[-1] < 0.9
    assert shown["clipped"].pushes == [True] * 3 + [False] * 4 + [True]
    assert shown["clipped"].advantage > shown["good"].advantage
    assert shown["last"].record["terminated"]
    assert len(shown["last"].td_errors) == 1


def test_the_first_visit_of_a_sample_is_near_ratio_one(name):
    # it is used in the first epoch, at most three steps after the batch was collected
    assert LifeOfATransition(sample=name).ratios[0] == pytest.approx(1, abs=0.05)


def test_where_the_pole_fell_it_had_left_its_limit():
    record = RECORDED["samples"]["last"]
    assert abs(record["observation"][2]) < 0.2095 < abs(record["next_observation"][2])
    others = [RECORDED["samples"][name] for name in SAMPLES if name != "last"]
    assert all(abs(each["next_observation"][2]) < 0.2095 for each in others)


def test_a_life_that_is_lived_again_obeys_the_same_identities():
    again = live_again()
    assert set(again["samples"]) == set(SAMPLES)
    for record in again["samples"].values():
        check_life(record, WEIGHT, again["gamma"], digits=1e-3)
    last = again["samples"]["last"]
    assert last["terminated"]
    assert last["advantage"] == pytest.approx(1 - last["values"][0], abs=1e-4)


def test_the_record_is_small():
    assert len(json.dumps(RECORDED)) < 200_000


# --- what is computed from it ----------------------------------------------------------------


def test_td_errors_and_advantage_are_those_of_their_definitions(name):
    shown = LifeOfATransition(sample=name)
    errors = slow_errors(shown.record, RECORDED["gamma"])
    assert shown.td_errors == pytest.approx(errors, abs=1e-12)
    assert shown.weighted == pytest.approx([WEIGHT**k * each for k, each in enumerate(errors)])
    assert sum(shown.weighted) == pytest.approx(shown.advantage, abs=1e-10)
    assert shown.target - shown.record["values"][0] == pytest.approx(shown.advantage)


def test_a_sample_is_silent_beyond_the_edge_that_its_advantage_asks_for(name):
    shown = LifeOfATransition(sample=name)
    for push, ratio, visit in zip(shown.pushes, shown.ratios, shown.record["visits"], strict=True):
        change = visit["log_prob"] - shown.record["log_prob_old"]
        assert ratio == pytest.approx(math.exp(change))
        up = visit["normalized_advantage"] > 0
        assert push == (ratio <= 1.2 if up else ratio >= 0.8)
    assert shown.answer == sum(shown.pushes)


def test_each_stage_has_a_sentence_of_its_own(name):
    told = [repr(LifeOfATransition(sample=name, stage=stage)) for stage in STAGES]
    assert [text.split(":")[0].split(",")[0].lower() for text in told] == list(STAGES)
    said = repr(LifeOfATransition(sample=name, stage="score"))
    assert ("nothing follows" in said) == (name == "last")


def test_the_sentence_of_the_default():
    assert repr(LifeOfATransition()) == (
        "Squeeze, epoch 8 of 8: ratio 1.19, normalised advantage 3.44: pushes up. So far it has "
        "pushed in 4 of 8."
    )


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"sample": "mine"}, "sample is 'mine'; expected one of good, bad, clipped, last"),
        ({"stage": "train"}, "stage is 'train'; expected one of collect, score, squeeze, renew"),
        ({"epoch": 0}, "epoch is 0; expected a whole number from 1 to 8"),
    ],
)
def test_a_state_that_was_not_recorded_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        LifeOfATransition(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("terminated && later === last ? 0", "later === last ? 0"),
        ("gamma * gae_lambda * advantage", "gae_lambda * advantage"),
        ("> 1 + clip_epsilon && normalized_advantage > 0", "> 1 && normalized_advantage > 0"),
        ("Math.exp(log_prob - log_prob_old)", "Math.exp(log_prob_old - log_prob)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [LifeOfATransition(sample=name, revealed=True) for name in SAMPLES]
    script = shown[0]._esm
    assert right in script
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=script.replace(right, wrong))


def card(seen):
    return seen.page.locator(".ppo-panels svg").first.locator("text:visible").all_text_contents()


def test_the_card_fills_stage_by_stage(visit):
    with visit(LifeOfATransition(), state="collect") as seen:
        filled = []
        for stage in STAGES:
            group = seen.page.get_by_role("group", name="stage")
            group.get_by_role("button", name=stage, exact=True).click()
            assert seen.status() == repr(LifeOfATransition(stage=stage))
            filled.append(card(seen).count("…"))
        assert filled == [3, 2, 1, 0]


def test_squeeze_is_not_told_before_the_guess(visit):
    marks = ".ppo-panels svg:nth-child(2) .ppo-mark:visible"
    with visit(LifeOfATransition()) as seen:
        assert seen.page.locator(marks).count() == 0
        assert card(seen).count("…") == 2
        assert seen.page.get_by_role("slider", name="epoch").is_hidden()
        seen.page.get_by_role("spinbutton").fill("8")
        seen.button("Reveal").click()
        assert seen.page.get_by_text("You said 8; it pushes in 4 of 8 epochs.").is_visible()
        assert seen.page.locator(marks).count() == 8


def test_an_epoch_is_scrubbed_and_its_mark_says_whether_it_pushes(visit):
    kinds = "nodes => nodes.map((node) => node.dataset.kind)"
    marks = ".ppo-panels svg:nth-child(2) .ppo-mark:visible"
    with visit(LifeOfATransition(), state="squeeze") as seen:
        seen.page.get_by_role("slider", name="epoch").focus()
        seen.page.keyboard.press("Home")
        assert seen.status() == repr(LifeOfATransition(epoch=1))
        for _ in range(4):
            seen.page.keyboard.press("ArrowRight")
        wanted = ["push"] * 3 + ["silent"] * 2
        assert seen.page.eval_on_selector_all(marks, kinds) == wanted
        seen.button("worse").click()
        assert seen.status() == repr(LifeOfATransition(sample="bad", epoch=5))
