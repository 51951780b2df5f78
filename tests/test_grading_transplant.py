import ast
import copy
import gc
import json
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbval.plugin import find_comment_markers

from ppo_lessons.grading.cell_text import (
    may_be_parsed,
    needs_of,
    parse_code,
    units_of,
    without_magics,
    without_marks,
)
from ppo_lessons.grading.parse import parse_notebook
from ppo_lessons.grading.transplant import transplant
from ppo_lessons.grading.types import Cell, CheckCell, Manifest, Question, Submission

ROOT = Path(__file__).resolve().parents[1]
# Three questions by hand; `area` builds on `double`, so it is checked in a notebook of its own.
NAMES = ("double", "signs", "area")
SOLUTIONS = {
    "double": "def double(x):\n    return 2 * x",
    "signs": 'signs = {"a": 1, "b": -1}',
    "area": "def area(x):\n    return double(x) ** 2",
}
REPLACED = "a solution that must be gone"


def question(name, part="main", builds_on=()):
    check = CheckCell(cell=f"check-{name}", title=name, points=10, hidden=True)
    return Question(
        id=f"toy.{name}",
        name=name,
        title=name,
        answer=f"answer-{name}",
        part=part,
        builds_on=builds_on,
        tell=f"tell-{name}",
        checks=(check,),
    )


QUESTIONS = (question("double"), question("signs"), question("area", "area", ("toy.double",)))
MANIFEST = Manifest(
    assignment="04_toy", title="Toys", seed=1, parts={"main": "", "area": ""}, questions=QUESTIONS
)


def code(id, source, outputs=()):
    return {
        "cell_type": "code",
        "id": id,
        "source": source,
        "metadata": {"tags": ["kept"]},
        "execution_count": 1 if outputs else None,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": t} for t in outputs],
    }


def notebook(names, before=()):
    cells = [code("setup", "from ppo_lessons.grading.ask import ask as _ask"), *before]
    cells += [code(f"answer-{name}", f'"""{REPLACED}"""\n{SOLUTIONS[name]}') for name in names]
    cells += [code(f"tell-{name}", f'_tell("{name}")') for name in names]
    cells += [code(f"check-{name}", f'_ask(globals().get("{name}"))', ["1.0\n"]) for name in names]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


REFERENCE = {
    "main": notebook(["double", "signs"]),
    "area": notebook(["area"], before=[code("given-double", SOLUTIONS["double"])]),
}


def cell(source, kind="code", id="", marker=""):
    return Cell(kind=kind, source=source, id=id, marker=marker)


def answer(name, source=None, **about):
    return cell(f"# answer: toy.{name}\n{source or SOLUTIONS[name]}", **about)


def planted(*cells):
    submission = Submission(student="ada", source="a.ipynb", sha256="", cells=cells)
    return transplant(submission, MANIFEST, REFERENCE)


def source_of(result, name, part="main"):
    (found,) = [c for c in result.parts[part]["cells"] if c["id"] == f"answer-{name}"]
    return found["source"]


def run(result, part="main"):
    """Run setup and answers as a kernel would: a cell that fails does not stop the others."""
    space = {"__name__": "__main__"}
    for each in result.parts[part]["cells"]:
        if each["id"].startswith(("answer", "given")):
            try:
                exec(compile(each["source"], each["id"], "exec", dont_inherit=True), space)
            except Exception as error:
                space.setdefault("errors", []).append(error)
    return space


HONEST = tuple(answer(name) for name in NAMES)


# --- what changes and what does not --------------------------------------------------------


def test_only_answer_cells_change_and_they_are_un_run():
    before = copy.deepcopy(REFERENCE)
    result = planted(*HONEST)
    assert before == REFERENCE
    assert result.absent == () == result.notes
    for part, wanted in REFERENCE.items():
        for old, new in zip(wanted["cells"], result.parts[part]["cells"], strict=True):
            if old["id"].startswith("answer"):
                assert REPLACED not in new["source"]
                assert (new["execution_count"], new["outputs"]) == (None, [])
                assert new | {"source": ""} == old | {"source": ""}
            else:
                assert new == old
        nbformat.validate(result.parts[part])


def test_an_honest_student_gets_their_own_functions():
    result = planted(answer("double", "def double(x):\n    return x + x"), *HONEST[1:])
    space = run(result)
    assert (space["double"](4), space["signs"]) == (8, {"a": 1, "b": -1})
    assert run(result, "area")["area"](3) == 36


@pytest.mark.parametrize("missing", NAMES)
def test_an_answer_that_is_not_there_raises_and_is_not_the_solution(missing):
    result = planted(*(answer(name) for name in NAMES if name != missing))
    assert result.absent == (f"toy.{missing}",)
    assert any(f"toy.{missing}" in note for note in result.notes)
    space = run(result, "area" if missing == "area" else "main")
    assert missing not in space
    assert isinstance(space["errors"][0], NotImplementedError)


def test_an_empty_submission_leaves_no_solution_behind():
    result = planted()
    assert result.absent == tuple(f"toy.{name}" for name in NAMES)
    assert REPLACED not in json.dumps(dict(result.parts))


@pytest.mark.parametrize("harm", ["no cell", "two cells", "no part", "no code"])
def test_a_reference_that_does_not_fit_is_an_error(harm):
    reference = copy.deepcopy(REFERENCE)
    cells = reference["main"]["cells"]
    if harm == "no cell":
        del cells[1]
    elif harm == "two cells":
        cells.append(cells[1])
    elif harm == "no code":
        cells[1]["cell_type"] = "markdown"
    else:
        del reference["main"]
    submission = Submission(student="ada", source="", sha256="", cells=HONEST)
    with pytest.raises(ValueError, match=r"Bake it again"):
        transplant(submission, MANIFEST, reference)


# --- how answers are found -----------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "#answer: toy.double",
        "# Answer:toy.double",
        "##  ANSWER :  toy.double  -- keep this line",
        "# answer: Toy.Double",
        "import math\n\n# answer: toy.double.",
    ],
)
def test_the_line_of_an_answer_may_be_spelled_freely(line):
    result = planted(cell(f"{line}\n{SOLUTIONS['double']}"), *HONEST[1:])
    assert result.absent == ()
    assert result.notes == ()
    assert run(result)["double"](1) == 2


@pytest.mark.parametrize(
    ("about", "way"),
    [
        ({"marker": "toy.double"}, "metadata"),
        ({"id": "answer-double"}, "cell's id"),
        ({}, "what it defines"),
    ],
)
def test_an_answer_without_its_line_is_found_in_other_ways(about, way):
    result = planted(cell(SOLUTIONS["double"], **about), *HONEST[1:])
    assert run(result)["double"](1) == 2
    assert any(way in note and "toy.double" in note for note in result.notes)


def test_data_without_its_line_is_found_too():
    assert run(planted(HONEST[0], cell(SOLUTIONS["signs"]), HONEST[2]))["signs"]["b"] == -1


def test_cells_may_stand_in_any_order():
    for order in (HONEST[::-1], (HONEST[1], HONEST[2], HONEST[0])):
        result = planted(*order)
        assert run(result)["double"](5) == 10
        assert run(result, "area")["area"](1) == 4


def test_the_last_of_several_counts_with_a_note():
    result = planted(answer("double", "def double(x):\n    return 0"), *HONEST)
    assert run(result)["double"](1) == 2
    assert any("2 answer cells" in note for note in result.notes)


@pytest.mark.parametrize(
    "blank",
    [
        'def double(x):\n    raise NotImplementedError("exercise 4.1: twice")',
        "",
        "double = None",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_blank_copy_does_not_win(blank, first):
    copies = [answer("double", blank or "# nothing yet"), HONEST[0]]
    result = planted(*(copies if first else copies[::-1]), *HONEST[1:])
    assert run(result)["double"](1) == 2


def test_a_blank_row_of_predictions_does_not_win():
    result = planted(*HONEST, answer("signs", 'signs = {"a": None, "b": None}'))
    assert run(result)["signs"]["a"] == 1


def test_who_wrote_beside_the_blank_cell_is_found():
    blank = answer("double", 'def double(x):\n    raise NotImplementedError("exercise 4.1")')
    result = planted(blank, cell(SOLUTIONS["double"]), *HONEST[1:])
    assert run(result)["double"](1) == 2
    assert any("its own cell is blank" in note for note in result.notes)


def test_a_marked_cell_wins_over_an_unmarked_one():
    result = planted(*HONEST, cell("def double(x):\n    return 'an experiment'"))
    assert run(result)["double"](1) == 2


def test_only_blank_cells_are_still_taken():
    blank = 'def double(x):\n    raise NotImplementedError("exercise 4.1")'
    result = planted(answer("double", blank), *HONEST[1:])
    assert "exercise 4.1" in source_of(result, "double")
    assert result.absent == ()


def test_an_id_that_was_reused_for_another_answer_does_not_confuse():
    # the cell of `double` was overwritten by the answer to `signs`, both lines are gone
    result = planted(
        cell(SOLUTIONS["signs"], id="answer-double"), cell(SOLUTIONS["double"], id="x"), HONEST[2]
    )
    space = run(result)
    assert (space["double"](1), space["signs"]["a"]) == (2, 1)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("fence", ["", "```python\n"])
def test_an_answer_that_had_become_text_is_recovered(kind, fence):
    source = f"# answer: toy.double\n{SOLUTIONS['double']}"
    toggled = cell(f"Mine:\n\n{fence}{source}\n```" if fence else source, kind=kind)
    result = planted(toggled, *HONEST[1:])
    assert run(result)["double"](1) == 2
    assert any(f"had become {kind}" in note for note in result.notes)


def test_text_that_quotes_an_answer_loses_against_code():
    quote = cell("# answer: toy.double\nhere I had x + x", kind="markdown")
    assert run(planted(*HONEST, quote))["double"](1) == 2


def test_merged_cells_are_cut():
    merged = cell("import math\n" + "\n\n".join(each.source for each in HONEST))
    result = planted(merged)
    assert result.absent == ()
    assert run(result)["signs"]["a"] == 1
    assert run(result, "area")["area"](1) == 4
    assert "def area" not in source_of(result, "double")


def test_one_cell_without_lines_answers_everything_it_defines():
    result = planted(cell("\n\n".join(SOLUTIONS.values())))
    assert result.absent == ()
    assert run(result)["double"](1) == 2
    assert run(result, "area")["area"](1) == 4


def test_one_cell_with_one_line_answers_everything_it_defines():
    result = planted(answer("double", "\n\n".join(SOLUTIONS.values())))
    assert result.absent == ()
    assert run(result)["signs"]["a"] == 1
    assert run(result, "area")["area"](1) == 4
    assert any("another question" in note for note in result.notes)


def test_an_error_of_ours_costs_one_student_and_not_the_class(monkeypatch):
    def failing(*_):
        raise RuntimeError

    monkeypatch.setattr("ppo_lessons.grading.transplant.clean_texts", failing)
    result = planted(*HONEST)
    assert result.absent == tuple(f"toy.{name}" for name in NAMES)
    assert "RuntimeError" in result.notes[0]


def test_a_line_that_names_no_question_is_said():
    result = planted(cell(f"# answer: toy.dubble\n{SOLUTIONS['double']}"), *HONEST[1:])
    assert any("toy.dubble" in note for note in result.notes)
    assert run(result)["double"](1) == 2


# --- what travels along --------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
def test_a_helper_comes_along_wherever_it_stands(after):
    helper = cell("import math\nHALF = 0.5\n\ndef twice(x):\n    return math.floor(x / HALF)")
    own = answer("double", "def double(x):\n    return twice(x)")
    result = planted(*((own, helper) if after else (helper, own)), *HONEST[1:])
    assert run(result)["double"](3) == 6
    assert any("comes along" in note and "twice" in note for note in result.notes)


def test_a_helper_comes_along_into_the_notebook_of_its_question():
    own = answer("area", "def area(x):\n    return square(double(x))")
    result = planted(cell("square = lambda x: x * x"), *HONEST[:2], own)
    assert run(result, "area")["area"](3) == 36


def test_a_helper_from_another_answers_cell_comes_along():
    first = answer(
        "double", "def twice(x):\n    return 2 * x\n\ndef double(x):\n    return twice(x)"
    )
    result = planted(first, HONEST[1], answer("area", "def area(x):\n    return twice(x) ** 2"))
    assert run(result, "area")["area"](3) == 36


def test_the_reference_answers_a_builds_on_question_and_not_the_student():
    wrong = answer("double", "def double(x):\n    return 'wrong'")
    result = planted(wrong, *HONEST[1:])
    assert "wrong" not in json.dumps(result.parts["area"])
    assert run(result, "area")["area"](1) == 4


def test_experiments_stay_behind():
    scratch = [
        cell("from ppo_lessons.training_loop import train\nhistory = train(1)"),
        cell("x = 1 / 0"),
        cell("print(double(3))\ninput()"),
        cell("while True:\n    x = 3"),
        cell("def helper():\n    raise SystemExit\nhelper()"),
        cell('check.double(double)\nassert double(2) == 4, "no progress"'),
    ]
    result = planted(*scratch, HONEST[0], *scratch, *HONEST[1:], *scratch)
    plain = planted(*HONEST)
    assert result.parts == plain.parts


def test_a_table_that_is_filled_step_by_step_comes_along():
    table = cell(
        "table = {}\nfor n in range(9):\n    table[n] = 2 * n\nother = []\nother.append(1)"
    )
    more = cell("table[9] = 18")
    own = answer("double", "def double(x):\n    return table[x]")
    result = planted(table, own, more, *HONEST[1:])
    assert run(result)["double"](9) == 18
    assert "other" not in source_of(result, "double")


def test_what_a_guarded_import_gives_comes_along():
    helper = cell(
        "try:\n    import nothing_of_this_name as m\nexcept ImportError:\n    import math as m"
    )
    result = planted(
        helper, answer("double", "def double(x):\n    return m.floor(2 * x)"), *HONEST[1:]
    )
    assert run(result)["double"](2) == 4


def test_names_from_a_star_come_along():
    own = answer("double", "def double(x):\n    return floor(2 * x)")
    assert run(planted(cell("from math import *"), own, *HONEST[1:]))["double"](2) == 4


def test_the_last_meaning_before_an_answer_is_taken():
    cells = [cell("K = 1"), cell("K = 2"), answer("double", "def double(x):\n    return K * x")]
    assert run(planted(*cells, cell("K = 3"), *HONEST[1:]))["double"](1) == 2


def test_a_future_import_stays_first():
    helper = cell("from __future__ import annotations\nTWO = 2")
    own = answer("double", "def double(x: Unknown) -> Unknown:\n    return TWO * x")
    assert run(planted(helper, own, *HONEST[1:]))["double"](2) == 4
    own = answer(
        "double",
        "from __future__ import annotations\n\ndef double(x: Unknown):\n    return TWO * x",
    )
    assert run(planted(helper, own, *HONEST[1:]))["double"](2) == 4


def test_an_answer_that_is_no_python_fails_alone():
    result = planted(answer("double", "def double(x)\n    return 2"), *HONEST[1:])
    space = run(result)
    assert isinstance(space["errors"][0], SyntaxError)
    assert space["signs"]["a"] == 1


def test_what_one_unit_needs_comes_too():
    helpers = [
        cell("def a(x):\n    return b(x)"),
        cell("def b(x):\n    return C * x"),
        cell("C = 2"),
    ]
    own = answer("double", "def double(x):\n    return a(x)")
    assert run(planted(*helpers, own, *HONEST[1:]))["double"](4) == 8


# --- one name for two things ---------------------------------------------------------------


def test_two_answers_may_use_one_name_for_different_things():
    first = answer(
        "double", "def helper(x):\n    return 2 * x\n\ndef double(x):\n    return helper(x)"
    )
    other = answer("signs", "def helper():\n    return 1\n\nsigns = {'a': helper(), 'b': -1}")
    result = planted(first, other, HONEST[2])
    assert run(result)["double"](4) == 8
    assert run(result)["signs"]["a"] == 1
    assert any("helper" in note and "its own" in note for note in result.notes)


def test_a_private_copy_of_another_answer_does_not_replace_it():
    other = answer("signs", "def double(x):\n    return 0\n\nsigns = {'a': 1, 'b': double(1) - 1}")
    result = planted(HONEST[0], other, HONEST[2])
    assert run(result)["double"](4) == 8
    assert run(result)["signs"]["b"] == -1


def test_names_that_nobody_looks_up_later_need_no_namespace():
    uses = "\n\ndef area_of(x):\n    return math.pi * x"
    first = answer("double", "x = 1\nimport math\n" + SOLUTIONS["double"] + uses)
    again = "import math; math.floor(2)\nimport math, json\nmath.nothing = 3\n"
    other = answer("signs", "x = 2\n" + again + SOLUTIONS["signs"] + uses)
    result = planted(first, other, HONEST[2])
    assert "_answer_space" not in json.dumps(dict(result.parts))


@pytest.mark.parametrize("name", ["_ask", "globals", "_tell"])
def test_an_answer_that_uses_a_name_of_the_checks_keeps_it_for_itself(name):
    own = answer(
        "double", f"def {name}(*_):\n    return 2\n\ndef double(x):\n    return {name}() * x"
    )
    result = planted(own, *HONEST[1:])
    space = run(result)
    assert space["double"](4) == 8
    assert name not in space


def test_an_error_in_a_namespace_of_its_own_shows_its_line():
    own = answer("double", "def globals():\n    return 1\n\ndef double(x):\n    return x / 0")
    space = run(planted(own, *HONEST[1:]))
    with pytest.raises(ZeroDivisionError) as caught:
        space["double"](1)
    assert "return x / 0" in "".join(traceback.format_exception(caught.value))


# --- what must not reach nbval or Python ---------------------------------------------------

MARKS = (
    "# NBVAL_SKIP",
    "   ###  NBVAL_IGNORE_OUTPUT  ",
    "#NBVAL_RAISES_EXCEPTION",
    "#PYTEST_VALIDATE_IGNORE_OUTPUT",
    "# nothing\u2028# NBVAL_SKIP",
    "# nothing\x85#NBVAL_CHECK_OUTPUT",
    "x = '\x85# NBVAL_SKIP\x85'",
)


@pytest.mark.parametrize("mark", MARKS)
def test_marks_for_nbval_do_nothing(mark):
    assert list(find_comment_markers(mark)), "nbval no longer obeys this: drop it from the test"
    result = planted(answer("double", f"{mark}\n{SOLUTIONS['double']}"), *HONEST[1:])
    assert not list(find_comment_markers(source_of(result, "double")))
    assert run(result)["double"](1) == 2


@given(st.text(st.sampled_from("#NBVAL_SKIP \n\r\t\x0b\x0c\x1c\x85\u2028"), max_size=40))
def test_no_text_keeps_a_mark(text):
    for source in (text, f"{text}# NBVAL_SKIP{text}", f"#{text}PYTEST_VALIDATE_IGNORE_OUTPUT"):
        assert not list(find_comment_markers(without_marks(source)))


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "%%time",
        "!pip install torch",
        "?double",
        "double?",
        "%timeit double(1)",
    ],
)
def test_magics_become_comments(line):
    result = planted(cell(f"{line}\n# answer: toy.double\n{SOLUTIONS['double']}"), *HONEST[1:])
    assert run(result)["double"](1) == 2
    assert any("%, ! or ?" in note for note in result.notes)


def test_a_magic_inside_a_block_becomes_a_statement():
    text, changed = without_magics("if True:\n    %time f()\nx = 1")
    assert changed
    assert parse_code(text)


@pytest.mark.parametrize(
    "source",
    ["x = (7\n% 4)", "def f(:\n%time", 's = """\n%time\n"""', "a = 1\n", "%%bash\nls; echo a b"],
)
def test_python_with_percent_signs_and_broken_code_stay_as_they_are(source):
    assert without_magics(source) == (source, False)


def test_a_check_that_was_merged_into_an_answer_is_left_out():
    source = f"{SOLUTIONS['double']}\n\n# hint('toy.double')\ncheck.double(\n    double\n)\nsetup()"
    result = planted(answer("double", source), *HONEST[1:])
    space = run(result)
    assert "errors" not in space
    assert space["double"](1) == 2


def test_a_function_of_ones_own_that_is_called_check_is_called():
    source = "seen = []\n\ndef check(x):\n    seen.append(x)\n\ncheck(3)\n" + SOLUTIONS["double"]
    assert run(planted(answer("double", source), *HONEST[1:]))["seen"] == [3]


# --- the course's own notebooks ------------------------------------------------------------


def course_manifest(stem, solution):
    """A reference as baking makes it, from the solutions of a lesson."""
    lesson = stem[3:]
    answers = [c for c in solution["cells"] if c["source"].startswith("# answer: ")]
    questions = []
    for each in answers:
        id = each["source"].splitlines()[0].removeprefix("# answer: ")
        name = id.partition(".")[2]
        assert id.startswith(lesson)
        questions.append(
            Question(id=id, name=name, title=name, answer=f"ref-{name}", checks=(
                CheckCell(cell=f"check-{name}", title=name, points=10, hidden=False),
            ))
        )  # fmt: skip
    cells = [code(q.answer, REPLACED) for q in questions]
    cells += [code(f"check-{q.name}", f'_ask(globals().get("{q.name}"))') for q in questions]
    reference = {"main": notebook([]) | {"cells": cells}}
    manifest = Manifest(
        assignment=stem, title=stem, seed=0, parts={"main": ""}, questions=tuple(questions)
    )
    return manifest, reference


@pytest.mark.parametrize("path", sorted((ROOT / "solutions").glob("*.ipynb")), ids=lambda p: p.stem)
def test_solutions_of_the_course_are_transplanted_whole(path):
    solution = json.loads(path.read_text("utf-8"))
    for each in solution["cells"]:
        each["source"] = "".join(each["source"])
    manifest, reference = course_manifest(path.stem, solution)
    wanted = [c["source"] for c in solution["cells"] if c["source"].startswith("# answer: ")]
    parsed = parse_notebook(path.read_bytes())
    for cells in (
        parsed.cells,
        tuple(Cell(kind=c.kind, source=c.source) for c in parsed.cells),
        parsed.cells[::-1],
    ):
        submission = Submission(student="ada", source="", sha256="", cells=cells)
        result = transplant(submission, manifest, reference)
        assert result.absent == ()
        # Nothing of the course's other cells comes along: no training, no imports of solutions.
        assert [c["source"] for c in result.parts["main"]["cells"]][: len(wanted)] == wanted
        assert result.notes == ()


# --- hostile input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import " + "a." * 30_000 + "a",
        "import " + "a . \\\n" * 10_000 + "a",
        "x = 1\n" * 20_000,
    ],
)
def test_what_would_fill_memory_is_not_parsed(source):
    # 200 000 chained names take 40 GB in Python's own parser
    assert not may_be_parsed(source)
    assert parse_code(source) is None
    assert units_of(source) == []
    result = planted(answer("double", source), cell(source), *HONEST[1:])
    assert run(planted(*HONEST, cell(source)))["double"](1) == 2
    assert result.absent == ()


@pytest.mark.parametrize(
    "source",
    ["-" * 19_000 + "1", "(" * 19_000, "a" + ".b" * 90, "not " * 4_700 + "1", "a" + "()" * 9_000,
     "lambda:" * 2_700 + "1", "1" + "+1" * 9_000, "if x:\n pass\n" + "elif x:\n pass\n" * 300,
     "x" + "=x" * 9_000, "x=1;" * 1_500, "x\0y", "\ufeffx = 1"],
)  # fmt: skip
def test_deep_and_long_code_is_read_or_refused(source):
    needs_of(source)
    result = planted(answer("double", source), answer("signs", source), cell(source), HONEST[2])
    assert json.dumps(dict(result.parts))


class Open:
    """Two file descriptors that only the garbage collector closes: others may run meanwhile."""

    def __init__(self):
        self.itself, self.ends = self, os.pipe()

    def __del__(self):
        for end in self.ends:
            os.close(end)


def trees_in_threads(read):
    """Let three threads read code while garbage is collected; give the kinds of errors."""
    source = "\n".join(f"def f{n}(x):\n    return [x + {n} for x in (1, 2)]" for n in range(200))

    def read_some(_):
        errors = set()
        for _ in range(25):
            [Open() for _ in range(5)]
            try:
                read(source)
            except SystemError as error:
                errors.add(str(error).partition(" (")[0])
        return errors

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(100, 2, 2)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            return set().union(*pool.map(read_some, range(3)))
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)


def test_threads_read_code_without_disturbing_each_other():
    assert trees_in_threads(parse_code) == set()


@pytest.mark.full
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="seen with Python 3.11")
def test_without_a_lock_threads_would_disturb_each_other():
    assert trees_in_threads(ast.parse) == {"AST constructor recursion depth mismatch"}


FRAGMENTS = st.sampled_from(
    [
        "# answer: toy.double\n", "# answer: toy.signs", "# answer: toy.area\n", "\n", "    ",
        "def double(x):\n    return x\n", "signs = {}\n", "area = lambda x: double(helper(x))\n",
        "def helper(x):\n    return x\n", "helper = 3\n", "import math\n", "from math import *\n",
        "from __future__ import annotations\n", "%%time\n", "!ls\n", "```\n", "# NBVAL_SKIP\n",
        "check.double(double)\n", "x += 1\n", "table[0] = 1\n", "global x\n", "return 3\n", "'''",
        "await x\n", "match x:\n case 1: pass\n", "@helper\n", "class A:\n  double = 1\n", "(", ")",
        "\u2028", "globals()\n", "_ask = 1\n", "del double\n", "\\", "\0",
        "raise NotImplementedError('exercise 4.1')\n",
    ]
)  # fmt: skip
SOURCES = st.one_of(st.lists(FRAGMENTS, max_size=12).map("".join), st.text(max_size=60))
CELLS = st.builds(
    cell,
    SOURCES,
    kind=st.sampled_from(["code", "code", "markdown", "raw"]),
    id=st.sampled_from(["", "answer-double", "answer-signs", "x"]),
    marker=st.sampled_from(["", "toy.area", "toy.double", "none"]),
)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CELLS, max_size=7))
def test_whatever_a_student_sends_only_answer_cells_change(cells):
    result = planted(*cells)
    for part, wanted in REFERENCE.items():
        for old, new in zip(wanted["cells"], result.parts[part]["cells"], strict=True):
            if not old["id"].startswith("answer"):
                assert new == old
                continue
            assert REPLACED not in new["source"]
            assert not list(find_comment_markers(new["source"]))
            assert new["outputs"] == []
            assert {**new, "source": ""} == {**old, "source": ""}
    assert all(note == note.splitlines()[0] for note in result.notes)
    given_up = [q for q in QUESTIONS if q.id in result.absent]
    for q in given_up:
        assert "raise NotImplementedError" in source_of(result, q.name, q.part)


@settings(deadline=None, max_examples=50)
@given(st.lists(CELLS, max_size=5))
def test_junk_beside_honest_answers_costs_nothing(cells):
    # Junk has no lines of answers of its own here, which would rightly be later attempts.
    junk = [each for each in cells if "answer" not in each.source]
    result = planted(*HONEST[:1], *junk, *HONEST[1:])
    assert result.absent == ()
    assert run(result)["double"](21) == 42
    assert run(result)["signs"] == {"a": 1, "b": -1}
    assert run(result, "area")["area"](3) == 36


@given(SOURCES)
def test_units_cover_what_they_were_cut_from(source):
    tree = parse_code(source)
    units = units_of(source)
    assert bool(units) == bool(tree and tree.body)
    if tree:
        lines = [unit.line for unit in units]
        assert lines == sorted(set(lines))
        again = ast.parse("\n".join(unit.text for unit in units))
        assert len(again.body) == len(tree.body)
