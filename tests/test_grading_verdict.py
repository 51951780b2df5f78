"""What outcomes come to: only a clean pass gives points, and what is unclear gives none."""

import json
from dataclasses import replace

import pytest

from ppo_lessons.checks.words import GENERAL
from ppo_lessons.grading.types import CellOutcome, CheckCell, Manifest, Question, Transplanted
from ppo_lessons.grading.verdict import (
    WITHOUT_DETAIL,
    excerpt,
    is_untouched,
    judge_submission,
    sentence_of,
)

PASSED = CellOutcome(state="passed")


def question(name: str, *, part: str = "main", builds_on: tuple[str, ...] = ()) -> Question:
    return Question(
        id=f"clip.{name}",
        name=name,
        title=f"The {name}",
        answer=f"answer-{name}",
        part=part,
        builds_on=builds_on,
        tell=f"tell-{name}",
        checks=(
            CheckCell(cell=f"visible-{name}", title="as in the notebook", points=2, hidden=False),
            CheckCell(cell=f"hidden-{name}", title="an episode end", points=8, hidden=True),
        ),
    )


ONE, TWO = question("clipped_surrogate"), question("clip_fractions", part="two", builds_on=("a.b",))
MANIFEST = Manifest(
    assignment="04_clip", title="Clip", seed=7, parts={"main": "", "two": ""}, questions=(ONE, TWO)
)


def notebook(each: Question) -> dict:
    names = ["setup", each.answer, each.tell, *(check.cell for check in each.checks)]
    cells = [{"cell_type": "code", "id": name, "source": ""} for name in names]
    return {"cells": [{"cell_type": "markdown", "id": "title", "source": ""}, *cells]}


TRANSPLANTED = Transplanted(parts={"main": notebook(ONE), "two": notebook(TWO)})


def outcomes(**changed: CellOutcome) -> dict[str, dict[str, CellOutcome]]:
    """All passed, but for those named; an underscore stands for a hyphen at the first place."""
    found = {}
    for part, each in TRANSPLANTED.parts.items():
        ids = [cell["id"] for cell in each["cells"] if cell["cell_type"] == "code"]
        found[part] = dict.fromkeys(ids, PASSED)
    for name, outcome in changed.items():
        cell = name.replace("_", "-", 1)
        for cells in found.values():
            if cell in cells:
                cells[cell] = outcome
    return found


def points(**changed: CellOutcome) -> float:
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes(**changed))
    assert result.status == "graded"
    return result.points


def test_all_that_passes_gives_all_points():
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes())
    assert (result.status, result.points, result.max_points) == ("graded", 20, 20)
    assert [each.points for each in result.questions] == [10, 10]


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_a_check_that_did_not_pass_costs_exactly_its_points(state):
    outcome = CellOutcome(state=state)
    assert points(hidden_clipped_surrogate=outcome) == 12
    assert points(visible_clipped_surrogate=outcome) == 18
    assert points(tell_clipped_surrogate=outcome, answer_clip_fractions=outcome) == 20


def test_a_notebook_that_was_stopped_keeps_what_had_passed_and_says_so():
    late = CellOutcome(state="absent")
    found = outcomes(hidden_clip_fractions=late)
    result = judge_submission(MANIFEST, TRANSPLANTED, found)
    assert (result.status, result.points) == ("timeout", 12)
    assert "stopped before its end" in result.reason
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes(), timed_out=True)
    assert (result.status, result.points) == ("timeout", 20)


def without(found, part, cell):
    return {**found, part: {k: v for k, v in found[part].items() if k != cell}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "notebooks that ran"),
        ({"main": outcomes()["main"]}, "notebooks that ran"),
        ({**outcomes(), "three": {}}, "notebooks that ran"),
        (without(outcomes(), "main", "hidden-clipped_surrogate"), "cells that ran"),
        (without(outcomes(), "two", "setup"), "cells that ran"),
        ({**outcomes(), "main": {**outcomes()["main"], "forged": PASSED}}, "cells that ran"),
        (outcomes(setup=CellOutcome(state="failed")), "grader's own"),
    ],
)
def test_other_cells_than_those_of_the_reference_are_no_verdict(found, words):
    result = judge_submission(MANIFEST, TRANSPLANTED, found)
    assert (result.status, result.points, result.questions) == ("infrastructure-error", 0, ())
    assert words in result.reason


def test_a_notebook_that_lacks_or_doubles_a_check_cell_is_no_verdict():
    for cells in (
        notebook(ONE)["cells"][:-1],
        [*notebook(ONE)["cells"], notebook(ONE)["cells"][2]],
    ):
        parts = {"main": {"cells": cells}, "two": notebook(TWO)}
        ids = {cell["id"] for cell in cells if cell["cell_type"] == "code"}
        found = {**outcomes(), "main": dict.fromkeys(ids, PASSED)}
        result = judge_submission(MANIFEST, Transplanted(parts=parts), found)
        assert result.status == "infrastructure-error"
        assert "each once" in result.reason


# --- the mistake ---------------------------------------------------------------------------


def mistake(said: str, **changed: CellOutcome) -> str:
    told = {"tell_clipped_surrogate": CellOutcome(state="passed", said=said)}
    missed = {"hidden_clipped_surrogate": CellOutcome(state="failed")}
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes(**{**missed, **told, **changed}))
    return result.questions[0].mistake


def told(name: object) -> str:
    return json.dumps({"mistake": name, "stage": "edges"})


def test_a_mistake_that_the_course_knows_is_named():
    assert mistake(told("clamp_without_minimum")) == "clamp_without_minimum"
    assert mistake(told("raises") + "\n") == "raises"


@pytest.mark.parametrize(
    "said",
    [
        *("", "no JSON", "[]", "3", "null", "{}", "[" * 5000),
        *(told(None), told(3), told(["raises"]), told({}), told("<script>"), told("")),
        told("counts_every_sample_outside"),  # no mistake of this exercise
        told("raises") + " " + told("raises"),
    ],
)
def test_whatever_else_the_kernel_says_names_no_mistake(said):
    assert mistake(said) == ""


def test_no_mistake_is_named_for_an_answer_that_passes_or_is_absent():
    said = told("raises")
    assert mistake(said, hidden_clipped_surrogate=PASSED) == ""
    assert mistake("", tell_clipped_surrogate=CellOutcome(state="failed", said=said)) == ""
    gone = replace(TRANSPLANTED, absent=(ONE.id,))
    cells = outcomes(
        tell_clipped_surrogate=CellOutcome(state="passed", said=said),
        hidden_clipped_surrogate=CellOutcome(state="failed"),
    )
    first = judge_submission(MANIFEST, gone, cells).questions[0]
    assert (first.mistake, first.notes) == ("", ("No cell of yours was found for it.",))


def test_an_answer_that_stopped_is_not_called_unwritten():
    said = told("not_written")
    assert mistake(said) == "not_written"
    stopped = CellOutcome(state="failed", said="SyntaxError")
    assert mistake(said, answer_clipped_surrogate=stopped) == ""
    assert mistake(told("raises"), answer_clipped_surrogate=stopped) == "raises"


BLANK = """# answer: clip.own_function
import torch


def own_function(ratios, advantages):
    \"\"\"Give the objective.\"\"\"
    raise NotImplementedError("exercise 4.7: with your constants")
"""
ASSIGNED = 'own_numbers = {"a": None, "b": None}'


@pytest.mark.parametrize(
    ("source", "name", "untouched"),
    [
        (BLANK, "own_function", True),
        (ASSIGNED, "own_numbers", True),
        ("own_numbers = None", "own_numbers", True),
        (ASSIGNED.replace("None", "0.5", 1), "own_numbers", False),
        ("own_numbers = {}", "own_numbers", False),
        (BLANK, "own_numbers", False),
        (BLANK.replace("    raise", "    return ratios\n    # raise"), "own_function", False),
        (BLANK.replace("    raise", "    return ratios\n    raise"), "own_function", False),
        (BLANK.replace("exercise 4.7", "I do not know"), "own_function", False),
        (BLANK + "\nown_function = max", "own_function", False),
        ("def own_function(:", "own_function", False),
        ("own_numbers = " + "[" * 9000, "own_numbers", False),
    ],
)
def test_an_answer_is_untouched_only_if_its_text_says_so(source, name, untouched):
    assert is_untouched(source, name) == untouched


def test_a_personal_question_left_blank_is_called_so_and_one_that_is_wrong_is_not():
    own = replace(question("own_numbers"), tell=None)
    manifest = replace(MANIFEST, parts={"main": ""}, questions=(own,))
    ids = ["setup", own.answer, *(check.cell for check in own.checks)]
    failed = dict.fromkeys([check.cell for check in own.checks], CellOutcome(state="failed"))
    found = {"main": {**dict.fromkeys(ids, PASSED), **failed}}

    def mistake_of(source: str) -> str:
        cells = [{"cell_type": "code", "id": id, "source": source} for id in ids]
        given = Transplanted(parts={"main": {"cells": cells}})
        return judge_submission(manifest, given, found).questions[0].mistake

    assert mistake_of(ASSIGNED) == "not_written"
    assert mistake_of(ASSIGNED.replace("None", "0.5")) == ""


def test_no_sentence_of_a_general_mistake_waits_for_a_detail():
    assert {name for name, sentence in GENERAL.items() if "{" in sentence} == set(WITHOUT_DETAIL)
    for name in GENERAL:
        assert sentence_of("clip.clipped_surrogate", name)
        assert "{" not in sentence_of("clip.clipped_surrogate", name)
    assert sentence_of("clip.no_such_exercise", "clamp_without_minimum") == ""


def test_a_question_that_builds_on_others_says_so():
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes())
    assert result.questions[0].notes == ()
    assert "a.b" in result.questions[1].notes[0]


# --- the student's own error ---------------------------------------------------------------


def test_the_error_of_an_answer_cell_is_kept_and_that_of_a_hidden_check_is_not():
    failed = CellOutcome(state="failed", said="\x1b[31mNameError\x1b[0m: x\u202e\x00\n")
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes(answer_clip_fractions=failed))
    assert result.questions[1].error == "NameError: x"
    result = judge_submission(MANIFEST, TRANSPLANTED, outcomes(hidden_clip_fractions=failed))
    assert result.questions[1].error == ""


def test_an_excerpt_has_at_most_30_lines_of_200_characters_and_ends_as_the_error_does():
    lines = excerpt("\n".join(f"{n} " + "x" * 500 for n in range(10_000))).splitlines()
    assert len(lines) == 30
    assert max(map(len, lines)) == 200
    assert lines[0].startswith("0 ")
    assert lines[-1].startswith("9999 ")


def test_an_excerpt_of_endless_text_takes_no_time():
    assert excerpt("\x1b[" * 50_000_000)[:1] == ""
    assert len(excerpt("y" * 100_000_000)) <= 401
