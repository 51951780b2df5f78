"""RunScrubber: what was recorded, the iteration that is asked for, and what a hand does."""

import json

import pytest
from browsing import disagreements

from benchmarks import runs as recording
from benchmarks.widgets import move, play, summary
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import RunScrubber
from ppo_lessons.widgets.run_scrubber import NUM_ITERATIONS, first_above

SLIDER = "input[type=range]"
STUDY = recorded("runs")


# --- the recorded runs -----------------------------------------------------------------------


@pytest.mark.parametrize("name", recording.RUNS)
def test_a_run_is_whole_and_small(name):
    run = STUDY["runs"][name]
    assert set(run) == {*recording.METRICS, "policy", "values"}
    assert all(len(series) == NUM_ITERATIONS for series in run.values())
    assert run["env_steps"] == [2048 * at for at in range(1, NUM_ITERATIONS + 1)]
    assert len(json.dumps(run)) <= 200_000
    cells = len(STUDY["angles"]) * len(STUDY["velocities"])
    for text in (*run["policy"], *run["values"]):
        assert len([int(number) for number in text.split()]) == cells
    assert all(0 <= int(number) <= 100 for text in run["policy"] for number in text.split())
    for inside, outside in zip(run["fraction_zero_gradient"], run["fraction_outside"], strict=True):
        assert 0 <= inside <= outside <= 1


@pytest.mark.full
def test_the_script_records_what_is_stored():
    again = recording.record("seed_1", iterations=2)
    for metric in recording.METRICS:
        stored = STUDY["runs"]["seed_1"][metric][:2]
        # Another processor rounds otherwise, and two iterations are too short to drift apart.
        assert again[metric] == pytest.approx(stored, rel=0.02, abs=1e-3), metric


def test_the_maps_ask_about_the_poles_that_they_name():
    states = recording.grid()
    assert states.shape == (9, 11, 4)
    assert states[0, 0].tolist() == pytest.approx([0, 0, -0.2, -2])
    assert states[8, 0].tolist() == pytest.approx([0, 0, -0.2, 2])
    assert states[0, 10].tolist() == pytest.approx([0, 0, 0.2, -2])


def test_the_trained_policies_push_to_where_the_pole_falls():
    for name in ("seed_1", "seed_2"):
        policy = [int(number) for number in STUDY["runs"][name]["policy"][-1].split()]
        assert policy[0] < 20  # it leans to the left and falls to the left
        assert policy[-1] > 80
        first = [int(number) for number in STUDY["runs"][name]["policy"][0].split()]
        assert max(first) - min(first) < max(policy) - min(policy)


# --- what the widget says of them ------------------------------------------------------------


def test_the_first_iteration_above_a_limit():
    assert first_above([0.01, 0.06, 0.2], 0.05) == 2
    assert first_above([0.05], 0.05) == 0
    assert first_above([], 0.05) == 0


def test_the_jump_comes_before_the_return_falls():
    """The story that the default picture tells."""
    run, reference = STUDY["runs"]["large_rate"], STUDY["runs"]["seed_1"]
    shown = RunScrubber()
    assert shown.answer == 10
    assert run["kl_k3"][9] > 0.05 >= max(run["kl_k3"][:9])
    highest = 1 + max(range(30), key=run["episode_return"].__getitem__)
    assert highest == shown.iteration == 15
    assert run["episode_return"][14] > reference["episode_return"][14]  # ahead, and already lost
    assert run["episode_return"][24] < 0.5 * run["episode_return"][14]
    assert run["entropy"][9] < 0.2 * run["entropy"][0]


def test_with_the_clip_no_iteration_jumps_and_without_it_the_first_one_does():
    assert RunScrubber(other="no_clip").answer == 1
    assert RunScrubber(other="seed_2").answer == 0
    assert max(STUDY["runs"]["seed_1"]["kl_k3"]) < 0.05


def test_a_pair_is_that_of_the_iteration():
    shown = RunScrubber(other="no_clip", iteration=38)
    assert shown.pair("episode_return") == [
        STUDY["runs"]["seed_1"]["episode_return"][37],
        STUDY["runs"]["no_clip"]["episode_return"][37],
    ]


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"iteration": 0}, "iteration is 0; expected a whole number from 1 to 48"),
        ({"other": "seed_1"}, "other is 'seed_1'; expected one of large_rate, no_clip, seed_2"),
        ({"guess": 49}, "guess is 49; expected a whole number from 0 to 48"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        RunScrubber(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("[iteration - 1])", "[iteration % 48])"), ("number > limit) + 1", "number > limit)")],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    script = RunScrubber._esm
    assert right in script
    shown = [RunScrubber.at("fallen")]
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=script.replace(right, wrong))


def test_scrubbing_through_all_iterations_is_fast(visit):
    with visit(RunScrubber(), state="ahead") as seen:
        play(seen.page, RunScrubber.DRAGS[0])  # the first events compile the script
        seen.page.reload()
        drawn = play(seen.page, RunScrubber.DRAGS[0])
        # A busy machine adds some; benchmarks/widgets.py holds the median to 5 ms.
        assert summary([ms for ms, _ in drawn])["p95_ms"] <= 50


def test_the_keys_go_from_the_first_iteration_to_the_last(visit):
    with visit(RunScrubber(), state="ahead") as seen:
        seen.page.locator(SLIDER).focus()
        for key, iteration in (("End", 48), ("ArrowLeft", 47), ("Home", 1), ("ArrowRight", 2)):
            seen.page.keyboard.press(key)
            assert seen.status() == repr(RunScrubber(iteration=iteration))


def test_a_hand_in_the_curves_moves_the_iteration(visit):
    with visit(RunScrubber(), state="ahead") as seen:
        box = seen.page.locator("main svg").first.bounding_box()
        y = box["y"] + box["height"] / 3
        seen.page.mouse.move(box["x"] + box["width"] / 2, y)
        seen.page.mouse.down()
        assert seen.page.locator(SLIDER).input_value() not in ("15", "48")
        seen.page.mouse.move(box["x"] + box["width"], y)
        seen.page.mouse.up()
        assert seen.page.locator(SLIDER).input_value() == "48"
        seen.page.mouse.move(box["x"], y)  # let go: it stays
        assert seen.page.locator(SLIDER).input_value() == "48"


def test_kl_is_not_shown_before_the_guess(visit):
    text = "Array.from(document.querySelectorAll('main svg text'), (n) => n.textContent).join('|')"
    with visit(RunScrubber()) as seen:
        assert "○ ? ● ?" in seen.page.evaluate(text)
        assert "kl_k3" not in seen.status()
        seen.page.get_by_role("spinbutton").fill("18")
        seen.page.keyboard.press("Enter")
        assert "○ ? ● ?" not in seen.page.evaluate(text)
        assert seen.page.get_by_text("You said 18; it is iteration 10.").is_visible()
        seen.button("seed 2").click()
        assert seen.page.get_by_text("You said 18; it never is, so the answer is 0.").is_visible()


def test_the_maps_change_with_the_iteration_and_the_cells_with_their_number(visit):
    opacity = (
        "Array.from(document.querySelectorAll('main svg:nth-child(2) rect[fill-opacity]'),"
        " (node) => Number(node.getAttribute('fill-opacity')))"
    )
    with visit(RunScrubber(), state="ahead") as seen:
        shown = seen.page.evaluate(opacity)
        assert len(shown) == 4 * 99
        policy = STUDY["runs"]["seed_1"]["policy"][14].split()
        assert shown[:99] == pytest.approx([int(number) / 100 for number in policy])
        move(seen.page, SLIDER, [0.9])
        assert seen.page.evaluate(opacity) != shown
