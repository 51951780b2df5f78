"""WhichRun: the record's numbers, verdicts that follow from them, and answers that stay closed."""

from statistics import mean

import pytest
from browsing import disagreements

from ppo_lessons.notebook import recorded
from ppo_lessons.widgets import WhichRun
from ppo_lessons.widgets.messages import WORDS
from ppo_lessons.widgets.which_run import (
    CLOSED,
    DIGITS,
    HEALTHY,
    ITERATIONS,
    RUNS,
    VERDICTS,
    panels_of,
    runs,
    verdict,
)

STUDY = recorded("rlhf")
BEFORE = mean(start["reference"]["success"] for start in STUDY["starts"].values())


def test_what_is_shown_is_on_record():
    for letter, (name, seed, *_) in RUNS.items():
        shown = WhichRun(run=letter, look=6)
        assert shown.iteration == 10
        for metric in DIGITS:
            curves = [STUDY["runs"][n][s]["curves"] for n, s in (HEALTHY, (name, seed))]
            assert [curve["iteration"][5] for curve in curves] == [10, 10]
            pair = [curve[metric][5] or 0.0 for curve in curves]
            assert shown.pairs()[metric] == pytest.approx(pair, abs=1e-4)


def test_each_run_has_the_looks_that_are_drawn():
    for name, seed, *_ in RUNS.values():
        looks = STUDY["runs"][name][seed]["curves"]["iteration"][: len(ITERATIONS)]
        assert tuple(looks) == ITERATIONS


@pytest.mark.parametrize("letter", RUNS)
def test_the_verdict_follows_from_the_answers_on_all_three_seeds(letter):
    name, _, said, _ = RUNS[letter]
    for run in STUDY["runs"][name].values():
        assert verdict(panels_of(run), BEFORE) == said


def test_every_verdict_is_given_and_has_words():
    assert {said for _, _, said, _ in RUNS.values()} == set(VERDICTS)
    assert all(WORDS["en"]["which_run"][f"verdict_{each}"] for each in VERDICTS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"success": [0.4, 0.6, 0.1]}, "hacked"),
        ({"success": [0.4, 0.6, 0.1], "fraction_outside": [0.6] * 4}, "too_far"),
        ({"success": [0.4, 0.6, 0.7]}, "healthy"),
        ({"success": [0.4, 0.2, 0.5]}, "held_back"),
    ],
)
def test_a_verdict_by_hand(change, said):
    assert verdict({"fraction_outside": [0.1] * 4} | change, 0.4) == said


def values(letter, metric):
    return runs()[letter][metric]


def test_the_framed_dial_parts_a_run_from_the_healthy_ones():
    sound = [letter for letter, each in RUNS.items() if each[2] == "healthy"] + ["healthy"]
    for letter, (_, _, _, panel) in RUNS.items():
        if panel == "kl_reference":
            assert values(letter, panel)[-1] > 5 * max(max(values(each, panel)) for each in sound)
        elif panel == "fraction_outside":
            assert min(values(letter, panel)[:4]) > 5 * max(values(e, panel)[1] for e in sound)
        elif panel == "score":
            assert values(letter, panel)[-1] < 0.5 * min(values(each, panel)[-1] for each in sound)


def test_the_dials_of_the_squeeze_look_as_well_in_the_hacked_run_as_in_healthy_ones():
    assert max(values("a", "fraction_outside")) <= 1.1 * max(values("healthy", "fraction_outside"))
    assert values("a", "ev_monte_carlo")[-1] > values("f", "ev_monte_carlo")[-1]
    assert values("a", "score")[-1] > 2 * values("healthy", "score")[-1]
    assert values("a", CLOSED)[-1] < 0.01 < 0.7 < values("healthy", CLOSED)[-1]


def test_the_sentence_names_setting_verdict_and_numbers():
    shown = WhichRun.at("a", look=13)
    assert repr(shown) == (
        "Run A (no price on distance): the judge is being hacked. The dial that tells most is KL "
        "to reference (nats): 18.67 at iteration 24, and 1.45 in the healthy run. Of 100 held-out "
        "answers 0 are right, there 80."
    )


@pytest.mark.messages
def test_a_run_that_is_none_is_refused():
    with pytest.raises(ValueError, match="run is 'h'; expected one of a, b, c"):
        WhichRun(run="h")


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"), [("[look - 1]", "[look]"), ("study.runs[run]]", "study.runs.a]")]
)
def test_a_wrong_number_in_the_script_is_found(browser, right, wrong):
    shown = [WhichRun.at(letter, look=7) for letter in RUNS]
    script = shown[0]._esm
    head, body = script.split("export function compute", 1)
    assert right in body
    changed = head + "export function compute" + body.replace(right, wrong, 1)
    assert disagreements(browser, shown, script=changed)


def test_the_answers_are_closed_until_somebody_has_said_what_is_the_matter(visit):
    drawn = ".ppo svg path.ppo-new:visible"
    with visit(WhichRun()) as seen:
        assert "hacked" not in seen.status()
        assert "closed until you have said it" in seen.page.locator("svg.ppo-wide").text_content()
        closed = seen.page.locator("svg.ppo-wide path.ppo-new[visibility=hidden]").count()
        assert closed == 1
        seen.page.locator("select").select_option("healthy")
        seen.button("Reveal").click()
        assert seen.status() == repr(WhichRun.at("a", look=7))
        text = seen.page.locator("main").inner_text()
        assert "You said: nothing, it learns. The verdict: the judge is being hacked." in text
        assert "Right so far: 0 of 1." in text
        assert seen.page.locator("svg.ppo-wide path.ppo-new[visibility=hidden]").count() == 0
        assert seen.page.locator(drawn).count() >= 1


def test_another_run_is_closed_again_and_is_counted_once(visit):
    with visit(WhichRun(), state="a") as seen:
        seen.button("F").click()
        for _ in range(2):
            assert (
                "closed until you have said it" in seen.page.locator("svg.ppo-wide").text_content()
            )
            seen.page.locator("select").select_option("healthy")
            seen.button("Reveal").click()
            assert seen.status() == repr(WhichRun.at("f"))
            assert "Right so far: 1 of 1." in seen.page.locator("main").inner_text()
            seen.button("F").click()
