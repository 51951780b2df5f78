"""WhichBug: the record's numbers, lines that are in the zoo, and a bug that stays hidden."""

import inspect
from statistics import median

import pytest
from browsing import disagreements

from ppo_lessons.debugging import BUGS, lowest_entropy_of_two_softmaxes, zoo
from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import WhichBug
from ppo_lessons.widgets.messages import WORDS
from ppo_lessons.widgets.which_bug import DIAGNOSES, DIGITS, LINES, OTHERS, RUNS, runs

STUDY = recorded("debugging")["runs"]


def test_what_is_shown_is_on_record():
    for letter, (bug, _) in RUNS.items():
        shown = WhichBug(run=letter, iteration=20)
        for metric in set(DIGITS) - {"silent_share"}:
            pair = [STUDY[name][metric][19] or 0.0 for name in ("healthy", bug)]
            assert list(shown.pairs()[metric]) == pair
        silent, outside = (
            STUDY[bug][name][19] for name in ("fraction_zero_gradient", "fraction_outside")
        )
        share = silent / outside if outside > 0.01 else 0.0
        assert shown.pairs()["silent_share"][1] == pytest.approx(share, abs=1e-3)


def test_every_bug_is_in_the_zoo_and_its_line_is_in_its_source():
    text = inspect.getsource(zoo)
    for bug, _ in RUNS.values():
        right, wrong = LINES[bug]
        assert wrong in text
        assert right != wrong
        assert bug in BUGS
    assert set(OTHERS) - {"nothing"} <= set(BUGS)


def test_no_diagnosis_is_offered_twice_and_each_has_words():
    assert len(set(DIAGNOSES)) == len(DIAGNOSES) == len(RUNS) + len(OTHERS)
    words = WORDS["en"]["which_bug"]
    assert all(words[f"bug_{bug}"] for bug in DIAGNOSES)
    assert all(words[f"what_{bug}"] for bug, _ in RUNS.values())


def last(letter, metric):
    return runs()[letter][metric][10:40]


def test_each_run_is_betrayed_by_the_panel_that_is_framed():
    assert median(runs()["a"]["kl_k3"][:18]) > 5 * max(runs()["healthy"]["kl_k3"])
    assert max(last("b", "kl_k3")) < 1e-6
    assert max(map(abs, last("c", "ev_lambda"))) < 0.05 < max(last("healthy", "ev_lambda"))
    floor = lowest_entropy_of_two_softmaxes(2)
    assert min(last("d", "entropy")) > floor > min(last("healthy", "entropy"))
    assert max(runs()["e"]["silent_share"][3:10]) < 1 / 3
    assert min(runs()["healthy"]["silent_share"][3:10]) > 1 / 3
    assert all(0.4 < number < 0.6 for number in last("f", "value_loss"))


def test_late_rewards_show_in_no_panel_since_all_pay_the_same():
    assert RUNS["g"] == ("rewards_shifted", "")
    assert runs()["g"] == runs()["healthy"]
    assert "It shows in no panel" in repr(WhichBug.at("g"))


def test_the_sentence_names_bug_panel_and_numbers():
    shown = WhichBug.at("f", iteration=1)
    one, two = shown.pairs()["value_loss"]
    assert repr(shown) == (
        "Run F: returns of normalised advantages; the critic learns numbers of size 1, so its "
        "loss stays near one half. It shows in value loss: at iteration 1 "
        f"{two:.2f}, and {one:.2f} in the healthy run."
    )


@pytest.mark.messages
def test_a_run_that_is_none_is_refused():
    with pytest.raises(ValueError, match="run is 'h'; expected one of a, b, c"):
        WhichBug(run="h")


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"), [("[iteration - 1]", "[iteration]"), ("study.runs[run]]", "study.runs.a]")]
)
def test_a_wrong_number_in_the_script_is_found(browser, right, wrong):
    shown = [WhichBug.at(letter, iteration=7) for letter in RUNS]
    script = shown[0]._esm
    head, body = script.split("export function compute", 1)
    assert right in body
    changed = head + "export function compute" + body.replace(right, wrong, 1)
    assert disagreements(browser, shown, script=changed)


def test_the_bug_is_hidden_until_somebody_has_said_what_it_is(visit):
    with visit(WhichBug()) as seen:
        assert seen.page.locator("pre").is_hidden()
        assert "learning rate" not in seen.status()
        seen.page.locator("select").select_option("entropy_punished")
        seen.button("Reveal").click()
        assert seen.status() == repr(WhichBug.at("a"))
        text = seen.page.locator("main").inner_text()
        assert 'group["lr"] *= 30' in text
        assert "You said: the entropy has the wrong sign. It is: learning rate × 30." in text
        assert "Right so far: 0 of 1." in text


def test_another_run_is_hidden_again_and_is_counted_once(visit):
    with visit(WhichBug(), state="a") as seen:
        seen.button("F").click()
        assert seen.page.locator("pre").is_hidden()
        for _ in range(2):
            seen.page.locator("select").select_option("normalized_too_early")
            seen.button("Reveal").click()
            assert seen.status() == repr(WhichBug.at("f"))
            assert "Right so far: 1 of 1." in seen.page.locator("main").inner_text()
            seen.button("F").click()
