"""StalenessTimeline: versions and pushes by hand, whichever runs are recorded, what hands do."""

import json
from math import exp
from statistics import median

import pytest
from browsing import disagreements, random_widgets

from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import StalenessTimeline
from ppo_lessons.widgets.staleness_timeline import (
    BATCHES,
    CORRECTIONS,
    MOST_ROOM,
    UPDATES,
    recording,
    versions_met,
)


def chance(version):
    """How often a version says the bad word: one half, and 0.1 less of a logit each update."""
    return 1 / (1 + exp(0.1 * version))


# --- where in time ---------------------------------------------------------------------------


def test_the_first_picture_was_counted_by_hand():
    shown = StalenessTimeline()
    assert (shown.behaviour, shown.proximal, shown.now) == (6, 10, 10)
    assert shown.waiting == [7, 8, 9, 10]
    assert shown.drawn[:7] == [0, 0, 0, 0, 0, 1, 2]
    assert repr(shown).startswith(
        "Room for 5, updates for each batch: 1. Version 6 drew (μ), the update began at version "
        "10 (π_prox), version 10 learns (π). Versions in the weight π_prox / μ: 4, in the clip's "
        "ratio: 0. At this age "
    )


def test_room_moves_the_behaviour_and_updates_for_each_batch_move_the_current_policy():
    near, far = (StalenessTimeline(capacity=c, updates=4, version=82) for c in (1, 17))
    assert (near.behaviour, near.proximal, near.now) == (80, 80, 82)
    assert (far.behaviour, far.proximal, far.now) == (16, 80, 82)
    begun = StalenessTimeline(capacity=17, updates=4, version=80)
    assert (begun.behaviour, begun.proximal, begun.now) == (16, 80, 80)


@pytest.mark.parametrize("updates", UPDATES)
@pytest.mark.parametrize("capacity", [1, 2, 5, MOST_ROOM])
def test_a_batch_is_as_many_batches_old_as_others_wait(capacity, updates):
    drawn, waiting = versions_met(capacity, updates)
    for batch in range(BATCHES):
        age = batch * updates - drawn[batch]
        assert age == updates * min(batch, capacity - 1)
        assert len(waiting[batch]) == capacity - 1
        known = drawn[batch + 1 : batch + capacity]
        assert waiting[batch][: len(known)] == known


def test_the_timeline_ends_with_its_last_batch():
    assert StalenessTimeline(version=83).now == 20
    assert StalenessTimeline(version=83, updates=4).now == 83


# --- the bad word ----------------------------------------------------------------------------


def test_the_push_of_each_loss_was_worked_by_hand():
    at = {name: StalenessTimeline(correction=name) for name in CORRECTIONS}
    rest, ratio = 1 - chance(10), chance(10) / chance(6)
    assert ratio == pytest.approx(0.759, abs=1e-3)  # below 1 − ε from the first step on
    wanted = {"nothing": rest, "ratio": ratio * rest, "clip": 0, "decoupled": ratio * rest}
    for name, push in wanted.items():
        assert at[name].push == pytest.approx(push, abs=1e-12)
        assert at[name].weight == pytest.approx(ratio, abs=1e-12)


def test_within_a_batch_the_clip_around_the_proximal_policy_ends_the_push():
    third, fourth = (StalenessTimeline(updates=4, version=version).push for version in (42, 43))
    assert fourth == 0 < third
    assert chance(43) / chance(40) < 0.8 < chance(42) / chance(40)


# --- what was recorded -----------------------------------------------------------------------


def runs_of(updates, correction, age):
    name = {1: "one update", 4: "four updates"}[updates]
    key = f"{name}/{correction}/{age}/"
    return [run for at, run in sorted(recorded("staleness")["runs"].items()) if at.startswith(key)]


def test_every_recorded_run_is_shown_and_no_other():
    shown = {
        (int(at.split("/")[0]), at.split("/")[1], int(age)): cell
        for at, cells in recording().items()
        for age, cell in cells.items()
    }
    assert sum(len(cell[0]) for cell in shown.values()) == len(recorded("staleness")["runs"])
    for where, (shares, outside) in shown.items():
        assert shares == [run["final"]["success"] for run in runs_of(*where)]
        assert len(outside) == len(shares)
    assert {where[0] for where in shown} <= set(UPDATES)
    assert {where[1] for where in shown} <= set(CORRECTIONS)
    assert len(json.dumps(recording())) < 200_000


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_the_answer_is_the_middle_seed_of_the_run_at_that_age(correction):
    shown = StalenessTimeline(correction=correction)
    runs = runs_of(1, correction, 4)
    assert shown.recorded_age == 4
    assert abs(shown.answer - 100 * median(run["final"]["success"] for run in runs)) <= 0.5
    outside = (sum(run["fraction_outside"]) / len(run["fraction_outside"]) for run in runs)
    assert shown.outside == pytest.approx(100 * median(outside))


def table(**cells):
    return {f"1/{name}": cell for name, cell in cells.items()}


def test_the_nearest_age_that_was_run_answers_and_the_younger_of_two():
    shown = StalenessTimeline(correction="clip")
    shown.recording = table(clip={"3": [[0.5], [0.1]], "5": [[0.25, 0.75, 1.0], [0.1] * 3]})
    assert (shown.recorded_age, shown.answer) == (3, 50)
    assert "At the nearest age that was run, 3, 50 of 100" in repr(shown)
    assert "(one seed)" in repr(shown)
    shown.capacity = 6
    assert (shown.recorded_age, shown.answer) == (5, 75)
    assert "At this age 75 of 100" in repr(shown)


def test_a_loss_that_was_not_run_says_so_on_both_sides(browser):
    empty, two = StalenessTimeline(revealed=True), StalenessTimeline(revealed=True)
    empty.recording = table(clip={"16": [[0.5], [0.1]]})
    two.recording = table(decoupled={"2": [[0.5, 0.6], [0.1, 0.3]]})
    assert empty.answer is None is empty.fresh
    assert "No run with this loss was recorded." in repr(empty)
    assert two.answer == 55
    assert disagreements(browser, [empty, two, *random_widgets("staleness_timeline", 6)]) == []
    assert empty.figure().axes


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("index - capacity + 1", "index - capacity"),
        ("const proximal = batch * updates", "const proximal = now"),
        ("ratio < 1 - CLIP_EPSILON", "ratio > 1 + CLIP_EPSILON"),
        ("decoupled: weight * clipped", "decoupled: clipped"),
        ("far(a) - far(b) || a - b", "b - a"),
        ("100 * middle(found[1])", "100 * found[1][0]"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [*random_widgets("staleness_timeline", 6), StalenessTimeline(revealed=True)]
    assert right in shown[0]._esm
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def drawn_policies(seen):
    return seen.page.locator(".ppo-panels svg").first.locator(".ppo-halo").all_text_contents()


def test_a_drag_of_the_room_moves_only_the_policy_that_drew(visit):
    with visit(StalenessTimeline(), state="reuse") as seen:
        assert drawn_policies(seen) == ["μ v40", "π_prox v40", "π v43"]
        seen.page.get_by_role("slider", name="room in the buffer").fill("5")
        assert drawn_policies(seen) == ["μ v24", "π_prox v40", "π v43"]
        seen.page.get_by_role("slider", name="updates so far").fill("41")
        assert drawn_policies(seen) == ["μ v24", "π_prox v40", "π v41"]
        wanted = StalenessTimeline.at("reuse", capacity=5, version=41)
        assert seen.status() == repr(wanted)
        seen.page.get_by_role("group", name="updates for each batch").get_by_role(
            "button", name="1"
        ).click()
        assert drawn_policies(seen) == ["μ v16", "π_prox v20", "π v20"]


def test_nothing_is_told_before_the_guess(visit):
    with visit(StalenessTimeline()) as seen:
        assert "State your guess, then reveal." in seen.status()
        assert seen.page.get_by_text("hidden until you have guessed").is_visible()
        assert "Decoupled weights, 4 batches old" in seen.page.locator("main").inner_text()
        seen.page.get_by_role("spinbutton").fill("90")
        seen.button("Reveal").click()
        answer = StalenessTimeline().answer
        assert seen.page.get_by_text(f"You said 90; it is {answer}.").is_visible()
        assert seen.status() == repr(StalenessTimeline(revealed=True))
