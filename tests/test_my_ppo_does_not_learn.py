"""The page to print keeps its promise: each line leads to a lesson and to a test that exists."""

import re
from pathlib import Path

import pytest

from ppo_lessons.debugging import BUGS, QUESTIONS
from ppo_lessons.lessons import LESSONS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "my_ppo_does_not_learn.md"
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/test_\w+\.py)\)")
READ = re.compile(r"\[(?:(\d\d) )?([^\]]+)\]\(([^)]+)\)")


def lines(text: str) -> list[list[str]]:
    """The cells of each row of each table, without the heads."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if row[-1] not in ("test to copy", "---")]


def wrong(row: list[str]) -> str:
    """What a row lacks, in words; "" if nothing."""
    if len(row) != 4 or not all(row):
        return f"four cells expected: {row}"
    found = TEST.fullmatch(row[3])
    if found is None or f"\ndef {found[1]}(" not in (ROOT / found[2]).read_text("utf-8"):
        return f"no such test: {row[3]}"
    read = READ.fullmatch(row[2])
    if read is None:
        return f"nothing to read: {row[2]}"
    if read[1] is None:
        return "" if (PAGE.parent / read[3]).is_file() else f"no such page: {read[3]}"
    lesson = LESSONS[int(read[1])]
    right = lesson.title == read[2] and read[3] == f"../notebooks/{lesson.stem}.ipynb"
    return "" if right and lesson.notebook else f"no such lesson: {row[2]}"


ROWS = lines(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_line_leads_to_a_lesson_and_to_a_test(row):
    assert wrong(row) == ""


def test_a_line_that_leads_nowhere_is_found():
    good = ROWS[0]
    lesson = "[08 The training loop](../notebooks/08_training_loop.ipynb)"
    assert wrong([*good[:2], lesson, good[3]]) == ""
    for bad in (
        good[:3],
        [*good[:3], "[`test_gone`](../tests/test_gae.py)"],
        [*good[:2], lesson.replace("08 ", "09 "), good[3]],
        [*good[:2], "[audit](gone.md)", good[3]],
    ):
        assert wrong(bad) != ""


def test_every_probe_has_its_line_in_their_order():
    asked = [row[0].strip("`") for row in ROWS if row[0].strip("`") in QUESTIONS]
    assert asked == list(QUESTIONS)


def test_the_test_of_each_bug_of_the_zoo_is_on_the_page():
    tests = {bug.test.partition("::")[2] for bug in BUGS.values()}
    assert tests <= {found[1] for row in ROWS if (found := TEST.search(row[3]))}
