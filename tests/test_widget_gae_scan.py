"""GaeScan: advantages by hand and by a double loop, and what a hand does to facts and ends."""

import pytest
import torch
from browsing import disagreements, random_widgets

from ppo_lessons.gae import compute_gae
from ppo_lessons.widgets import GaeScan
from ppo_lessons.widgets.gae_scan import NUM_ROWS


def double_loop(shown):
    """Each advantage as a sum over all later rows, up to the end of the row's episode."""
    found = []
    for start in range(NUM_ROWS):
        total, weight = 0.0, 1.0
        for t in range(start, NUM_ROWS):
            known = shown.ends[t] == "continue" and t < NUM_ROWS - 1
            future = shown.values[t + 1] if known else shown.reached[t]
            alive = shown.ends[t] != "terminated"
            total += weight * (shown.rewards[t] + shown.gamma * future * alive - shown.values[t])
            weight *= shown.gamma * shown.gae_lambda
            if shown.ends[t] != "continue":
                break
        found.append(total)
    return found


def test_the_first_picture_is_the_worked_case_of_the_course():
    shown = GaeScan.at("worked_case")
    assert shown.advantages[:4] == pytest.approx([2.336, 1.300, 3.024, 1.700], abs=1e-12)
    assert shown.advantages[4:] == pytest.approx([0, 1.8], abs=1e-12)
    assert repr(shown) == (
        "Row 0: δ = 1.0 + 0.90·6.0 − 5.0 = 1.400. Â_0 = 1.400 + 0.720·1.300 = 2.336, with "
        "γλ = 0.720."
    )
    assert repr(GaeScan.at("at_the_limit")) == (
        "Row 1: δ = 1.0 + 0.90·7.0 − 6.0 = 1.300. Â_1 = δ = 1.300: the next row is another episode."
    )


def test_the_same_row_terminated_loses_its_future():
    shown = GaeScan.at("terminated")
    assert shown.advantages[:2] == pytest.approx([-2.2, -5.0], abs=1e-12)
    assert shown.advantages[2:] == pytest.approx([3.024, 1.7, 0, 1.8], abs=1e-12)


@pytest.mark.parametrize(("state", "base"), [("one_surprise", 0.72), ("lambda_one", 0.9)])
def test_one_surprise_fades_by_the_same_factor_per_row(state, base):
    shown = GaeScan.at(state)
    assert shown.td_errors == [0.0] * 5 + [4.0]
    assert shown.advantages == pytest.approx([4 * base**k for k in range(5, -1, -1)])
    assert GaeScan.at("lambda_zero").advantages == [0.0] * 5 + [4.0]


def test_advantages_are_those_of_a_double_loop_for_any_facts_and_ends():
    kinds = set()
    for shown in random_widgets("gae_scan", 60, seed=5):
        assert shown.advantages == pytest.approx(double_loop(shown), abs=1e-12)
        kinds |= set(shown.ends)
    assert len(kinds) == 3


def test_nothing_after_an_end_changes_what_was_before():
    shown = GaeScan()
    before = shown.advantages[:2]
    shown.rewards = [*shown.rewards[:2], 8.0, 8.0, 8.0, 8.0]
    shown.values = [*shown.values[:2], 7.0, 7.0, 7.0, 7.0]
    assert shown.advantages[:2] == before


def test_the_value_behind_a_step_counts_only_where_no_row_shows_it():
    shown = GaeScan(reached=[8.0] * 6)
    assert shown.next_values == [6, 8, 2, 3, 8, 8]
    terminated = GaeScan(reached=[*shown.reached[:4], 0.0, 8.0])
    assert terminated.advantages == shown.advantages  # behind row 4 nothing counts


def test_the_reader_recomputes_the_advantage_of_row_zero():
    shown = GaeScan()
    settings = {"gamma": shown.gamma, "gae_lambda": shown.gae_lambda}
    facts = shown.facts()
    assert compute_gae(*facts, **settings)[0].item() == pytest.approx(shown.answer)
    assert [each.shape for each in facts] == [torch.Size([6, 1])] * 5


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"ends": ["done"] * 6}, "ends holds 'done'; expected some of continue, terminated"),
        ({"ends": ["continue"]}, "expected a list of 6 words"),
        ({"values": [-1.0] * 6}, "values holds -1.0; expected numbers from 0 to 8.0"),
        ({"step": 7}, "step is 7; expected a whole number from 0 to 6"),
    ],
)
def test_a_state_that_cannot_be_drawn_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        GaeScan(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('counted = ends.map((end) => end !== "terminated")', "counted = goes"),
        ("goes[t] ? gamma * weight : 0", "counted[t] ? gamma * weight : 0"),
        ("goes[t] ? values[t + 1] : reached[t]", "t < last ? values[t + 1] : reached[t]"),
        ("reward + gamma * (counted[t] ? next[t] : 0)", "reward + (counted[t] ? next[t] : 0)"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = [GaeScan.at("worked_case")]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def lines(seen):
    """The numbers in the strip: TD errors, then advantages."""
    texts = seen.page.locator(".ppo-panels svg").nth(1).locator("text").all_text_contents()
    return texts[5:11], texts[11:17]


def test_the_scan_fills_row_by_row_from_the_last_and_hides_row_zero(visit):
    with visit(GaeScan(step=0)) as seen:
        slider = seen.page.get_by_role("slider", name="rows done")
        slider.focus()
        for step in range(1, 7):
            seen.page.keyboard.press("ArrowRight")
            errors, advantages = lines(seen)
            filled = [text not in ("·", "?") for text in advantages]
            assert filled == [t >= max(6 - step, 1) for t in range(6)]
            assert filled == [text != "·" for text in errors]
        assert lines(seen)[1][0] == "?"
        assert "2.336" not in seen.page.locator("main").inner_text()
        seen.button("Reveal").click()
        assert lines(seen)[1] == ["2.336", "1.300", "3.024", "1.700", "0.000", "1.800"]


def test_play_runs_to_row_zero(visit):
    with visit(GaeScan(), state="worked_case", reduced_motion="reduce") as seen:
        seen.page.get_by_role("slider", name="rows done").fill("0")
        assert lines(seen)[1] == ["·"] * 6
        seen.button("Play").click()
        assert seen.status() == repr(GaeScan(step=6))


def test_an_end_is_changed_by_a_press_and_by_keys(visit):
    with visit(GaeScan(), state="worked_case") as seen:
        marks = seen.page.get_by_role("slider", name="Step of row")
        assert marks.count() == 6
        marks.nth(1).click()  # truncated, then goes on
        ends = ["continue", "continue", "continue", "continue", "terminated", "continue"]
        assert seen.status() == repr(GaeScan(step=6, ends=ends))
        seen.page.keyboard.press("Enter")
        seen.page.keyboard.press("ArrowRight")
        seen.page.keyboard.press("ArrowDown")
        ends[1:3] = ["terminated", "truncated"]
        assert seen.status() == repr(GaeScan(step=6, ends=ends))
        assert marks.nth(2).get_attribute("aria-valuetext") == "truncated"
        assert seen.focused() == "Step of row 2"


def test_a_press_is_one_change_and_dragging_on_changes_no_more(visit):
    with visit(GaeScan(), state="worked_case") as seen:
        box = seen.page.get_by_role("slider", name="Step of row 0").bounding_box()
        seen.page.mouse.move(box["x"] + 20, box["y"] + 10)
        seen.page.mouse.down()
        for down in range(0, 80, 10):
            seen.page.mouse.move(box["x"] + 20, box["y"] + 10 + down)
        seen.page.mouse.up()
        assert seen.page.get_by_role("slider", name="Step of row 0").get_attribute(
            "aria-valuetext"
        ) == ("terminated")


def test_a_value_behind_an_end_can_be_dragged_and_no_other(visit):
    from benchmarks.widgets import move

    with visit(GaeScan(), state="worked_case") as seen:
        names = seen.page.eval_on_selector_all(
            ".ppo-handle", "nodes => nodes.map((node) => node.getAttribute('aria-label'))"
        )
        behind = [name for name in names if name.startswith("V behind")]
        assert behind == ["V behind row 1", "V behind row 4", "V behind row 5"]
        move(seen.page, ".ppo-handle", [0.6, 0.5], along="y", index=names.index(behind[0]))
        assert seen.status() == repr(GaeScan(step=6, reached=[6.0, 3.0, 2.0, 3.0, 4.0, 2.0]))
