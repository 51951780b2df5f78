"""EndKinds: the five rows of the worked case, any ends by slow rules, and what a hand does."""

import itertools

import pytest
from browsing import disagreements, random_widgets

from ppo_lessons.rollout import ENDINGS
from ppo_lessons.widgets import EndKinds
from ppo_lessons.widgets.end_kinds import KINDS, REWARDS, WAYS
from ppo_lessons.widgets.messages import WORDS

FIVE_ROWS = {
    "two_masks": (2.336, 1.300),
    "flags_merged": (-2.200, -5.000),
    "truncated_ignored": (3.904, 3.477),
    "ignored_after_reset": (0.016, -1.923),
    "value_after_reset": (-1.552, -4.100),
}


def test_the_five_rows_of_the_worked_case():
    for way, (first, second) in FIVE_ROWS.items():
        shown = EndKinds.at(way)
        assert [round(each, 3) for each in shown.advantages[:4]] == [first, second, 3.024, 1.700]
        assert shown.advantages[4:] == pytest.approx([0, 1.8], abs=1e-12)
    assert EndKinds.at("nothing_after_last").advantages[5] == pytest.approx(0, abs=1e-12)


def test_every_way_bears_the_name_that_the_lesson_gives_it():
    assert list(WAYS.values()) == list(ENDINGS)
    for way, name in WAYS.items():
        assert WORDS["en"]["end_kinds"][f"way_{way}"] == name


def test_the_critic_counts_the_steps_since_the_reset():
    assert EndKinds().values == [5, 6, 1, 2, 3, 1]
    assert EndKinds(ends=["continue"] * 6).values == [5, 6, 7, 8, 9, 10]
    assert EndKinds(ends=["terminated"] * 6).values == [5, 1, 1, 1, 1, 1]


def by_rule(shown):
    """Each way, written down once more: (value counted behind row t, does the sum go on?)."""
    values, last = shown.values, 5
    total, found = 0.0, []
    for t in reversed(range(6)):
        end = shown.ends[t]
        behind = values[t] + 1
        if "after_reset" in shown.way and t < last:
            behind = values[t + 1]
        lost = (
            end == "terminated"
            or (shown.way == "flags_merged" and end != "continue")
            or (shown.way == "nothing_after_last" and t == last)
        )
        ignores = shown.way in ("truncated_ignored", "ignored_after_reset")
        stops = end == "terminated" or (end == "truncated" and not ignores)
        error = REWARDS[t] + shown.gamma * (0 if lost else behind) - values[t]
        total = error + (0 if stops else shown.gamma * shown.gae_lambda * total)
        found.append(total)
    return found[::-1]


def test_each_way_is_that_rule_for_any_ends():
    for shown in random_widgets("end_kinds", 80, seed=4):
        assert shown.advantages == pytest.approx(by_rule(shown), abs=1e-12)


def test_numbers_say_what_the_way_looked_at():
    for shown in random_widgets("end_kinds", 40, seed=6):
        found = shown.numbers()
        for t, error in enumerate(found["td_errors"]):
            future = shown.gamma * found["asked"][t] * found["counted"][t]
            assert error == pytest.approx(REWARDS[t] + future - found["values"][t], abs=1e-12)
            following = found["advantages"][t + 1] if found["goes"][t] else 0
            carried = shown.gamma * shown.gae_lambda * following
            assert found["advantages"][t] == pytest.approx(error + carried, abs=1e-12)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(WAYS, 2)))
def test_the_first_picture_tells_any_two_ways_apart(one, other):
    assert EndKinds(way=one).advantages != EndKinds(way=other).advantages


def test_without_a_limit_all_are_right_but_the_one_that_ends_the_world():
    ends = ["continue", "terminated", "continue", "continue", "terminated", "continue"]
    right = {way for way in WAYS if not any(EndKinds(ends=ends, way=way).numbers()["wrong"])}
    assert right == set(WAYS) - {"nothing_after_last"}


def test_the_sentence_names_the_wrong_rows():
    assert repr(EndKinds.at("flags_merged")) == (
        "The program: flags merged; what a limit hid counts 0. Advantages −2.200, −5.000, 3.024, "
        "1.700, 0.000, 1.800. Wrong: row 0 (right 2.336), row 1 (right 1.300)."
    )
    assert repr(EndKinds.at("two_masks")).endswith("All are right.")


def test_the_reader_recomputes_the_advantages_with_the_lesson_s_function():
    shown = EndKinds()
    way = ENDINGS[shown.way_name]
    found = way(*shown.facts(), gamma=shown.gamma, gae_lambda=shown.gae_lambda)
    assert found.flatten().tolist() == shown.advantages
    assert pytest.approx(shown.advantages[1]) == 1 + 0.9 * 1 - 6  # by hand


@pytest.mark.messages
def test_a_way_that_is_none_is_refused():
    with pytest.raises(ValueError, match="way is 'done'; expected one of two_masks, flags_merged"):
        EndKinds(way="done")


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("t < last ? values[t + 1] : value + 1", "t <= last ? value + 1 : 0"),
        ('way === "flags_merged" && end', 'way === "flags" && end'),
        ('end === "truncated" && IGNORED', 'end === "terminated" && IGNORED'),
        ('way === "nothing_after_last" && t', 'way === "nothing" && t'),
        ('end === "continue" ? values.at(-1) + 1 : 1', "values.at(-1) + 1"),
    ],
)
def test_a_wrong_rule_in_the_script_is_found(browser, right, wrong):
    shown = [EndKinds.at(way) for way in WAYS]
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_the_program_is_hidden_and_can_be_probed(visit):
    with visit(EndKinds()) as seen:
        svg = seen.page.locator(".ppo-panels svg")
        assert "−4.100" in svg.text_content()
        assert "1.300" not in svg.text_content()  # what is right is no help before the guess
        assert seen.page.locator(".ppo-mark:visible").count() == 0
        assert seen.button("flags merged").is_hidden()
        seen.page.get_by_role("slider", name="Step of row 1").click()  # goes on
        ends = ["continue", "continue", *KINDS[2:]]
        advantages = EndKinds(ends=ends).advantages
        assert f"{advantages[0]:.3f}" in svg.text_content()
        seen.page.locator("select").select_option("flags_merged")
        seen.button("Reveal").click()
        assert seen.status() == repr(EndKinds(ends=ends))
        said = "You said: flags merged. It is: trace cut, next value after the reset."
        assert said in seen.page.locator("main").inner_text()


def test_another_program_is_another_and_stays_hidden(visit):
    with visit(EndKinds()) as seen:
        for _ in range(5):
            before = seen.status()
            seen.button("Another program").click()
            assert seen.status() != before  # the first picture tells all six apart
            assert seen.button("two masks").is_hidden()


def test_keys_change_an_end_and_buttons_the_way(visit):
    with visit(EndKinds(), state="two_masks") as seen:
        seen.page.locator(".ppo-handle").first.focus()
        seen.page.keyboard.press("ArrowUp")
        seen.page.keyboard.press("ArrowRight")
        seen.page.keyboard.press(" ")
        ends = ["terminated", "continue", *KINDS[2:]]
        assert seen.status() == repr(EndKinds(ends=ends, way="two_masks"))
        seen.button("truncated ignored").click()
        assert seen.status() == repr(EndKinds(ends=ends, way="truncated_ignored"))


def test_what_is_wrong_bears_a_cross_and_a_leak_is_dashed(visit):
    with visit(EndKinds(), state="ignored_after_reset") as seen:
        texts = seen.page.locator(".ppo-panels svg text").all_text_contents()
        assert [text for text in texts if "✕" in text] == ["0.90·1 ✕", "0.016 ✕", "−1.923 ✕"]
        dashes = "nodes => nodes.map((node) => node.style.strokeDasharray).filter(Boolean)"
        assert len(seen.page.eval_on_selector_all(".ppo-panels .ppo-new", dashes)) == 1
        seen.open("two_masks")
        assert "✕" not in seen.page.locator(".ppo-panels svg").text_content()
        assert seen.page.eval_on_selector_all(".ppo-panels .ppo-new", dashes) == []
