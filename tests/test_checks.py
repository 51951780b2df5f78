"""What every exercise of every lesson promises, and the numbers behind it.

Right answers pass in any style, wrong ones are refused by their name, nothing that a learner can
look at shows a solution. How the checks do it is in `test_checks_engine.py`.
"""

import ast
import copy
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
import pytest
import torch
from answers import LESSONS, oracles, right_answers, wrong_answers
from answers.kernel import fresh_kernel  # noqa: F401  a fixture

from ppo_lessons.checks import (
    CheckResult,
    check,
    desk,
    exercises,
    find_exercise,
    hint,
    reveal,
    run,
)
from ppo_lessons.checks.exercises import (
    FunctionExercise,
    HashedExercise,
    Made,
    SignsExercise,
    leaves,
)
from ppo_lessons.checks.judge import judge
from ppo_lessons.lessons import find_lesson
from tools import build_checks, list_mistakes

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = list(desk.all_exercises().values())
FUNCTIONS = [each for each in EXERCISES if isinstance(each, FunctionExercise)]
HASHED = [each for each in EXERCISES if isinstance(each, HashedExercise)]
SECONDS = 1.0  # of the processor; a check takes some ten milliseconds
MATHS = re.compile("[·ρ∂Σ∇γδλ√²∝≈−=]")
CODE = re.compile(r"torch|clamp|\*\*|\.sum\(|\.mean\(|\.exp\(|lambda|\[:")

pytestmark = pytest.mark.usefixtures("fresh_kernel")


@pytest.fixture(scope="module", autouse=True)
def optimizers_loaded():
    """The first optimiser imports for seconds, which belong to no answer."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.0)


def answers(kind):
    """Every answer of a kind, with the exercise that it answers."""
    found = [
        (exercise, name, answer)
        for exercise in EXERCISES
        for name, answer in kind(exercise.lesson)[exercise.name].items()
    ]
    ids = [f"{exercise.id}-{name}" for exercise, name, _ in found]
    return pytest.mark.parametrize(("exercise", "name", "answer"), found, ids=ids)


each_lesson = pytest.mark.parametrize("lesson", LESSONS)
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
each_function = pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda each: each.id)
each_hashed = pytest.mark.parametrize("exercise", HASHED, ids=lambda each: each.id)


def of_lesson(lesson):
    return [each for each in EXERCISES if each.lesson == lesson]


def entries_of(exercise):
    """The data of an exercise, or of the one whose numbers it shares."""
    return exercises.data_of(exercise.lesson)[exercise.numbers_of or exercise.id]["cases"]


# --- right and wrong answers ---------------------------------------------------------------


@answers(right_answers)
def test_a_right_answer_in_any_style_passes(exercise, name, answer):
    start = time.process_time()
    result = judge(exercise, answer)
    assert result.passed, result
    assert time.process_time() - start < SECONDS


@answers(wrong_answers)
def test_a_named_mistake_is_refused_by_its_name(exercise, name, answer):
    start = time.process_time()
    result = judge(exercise, answer)
    assert not result.passed
    assert result.mistake == name.partition("#")[0], result
    assert time.process_time() - start < SECONDS


@each_lesson
def test_a_lesson_has_four_exercises(lesson):
    assert len(of_lesson(lesson)) >= 4


@each_exercise
def test_an_exercise_knows_eight_mistakes_and_three_styles(exercise):
    names = {name.partition("#")[0] for name in wrong_answers(exercise.lesson)[exercise.name]}
    assert len(names) >= 8
    if isinstance(exercise, FunctionExercise):
        assert len(right_answers(exercise.lesson)[exercise.name]) >= 3


def test_a_name_belongs_to_one_exercise():
    twice = [name for name, count in Counter(e.name for e in EXERCISES).items() if count > 1]
    assert not twice, "check.<name> must know which one is meant"


@each_exercise
def test_each_mistake_is_explained_in_few_words(exercise):
    for name, sentence in exercise.mistakes.items():
        assert sentence.endswith((".", "?")), name
        assert 30 < len(sentence) < 300, name


@each_function
def test_a_right_answer_that_fails_in_one_case_gets_no_name_of_a_usual_mistake(exercise):
    right_one = next(iter(right_answers(exercise.lesson)[exercise.name].values()))
    calls = []

    def fails_once(*tensors, **options):
        calls.append(1)
        if len(calls) == min(7, len(exercise.cases)):
            raise ValueError("once")
        return right_one(*tensors, **options)

    assert judge(exercise, fails_once).mistake == "raises"


@each_function
def test_a_case_is_the_same_whoever_was_judged_before(exercise):
    """Inputs are made anew: a wrong answer in between changes nothing."""
    wrong = next(iter(wrong_answers(exercise.lesson)[exercise.name].values()))
    before = repr(judge(exercise, wrong))
    for answer in right_answers(exercise.lesson)[exercise.name].values():
        assert judge(exercise, answer).passed
    assert repr(judge(exercise, wrong)) == before


@pytest.mark.full
def test_the_text_is_the_same_in_every_process():
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/tests']\n"
        "from answers import LESSONS, wrong_answers\n"
        "from ppo_lessons import check\n"
        "for lesson in LESSONS:\n"
        "    for name, answers in wrong_answers(lesson).items():\n"
        "        for answer in [*list(answers.values())[:8], object()]:\n"
        "            print(check(f'{lesson}.{name}', answer))\n"
    )
    command = [sys.executable, "-c", code, str(ROOT)]
    first, second = (
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "ATEN_CPU_CAPABILITY": capability},
        ).stdout
        for seed, capability in (("1", "default"), ("2", ""))
    )
    assert first == second
    assert "0x" not in first


# --- where the numbers come from -----------------------------------------------------------


def plain(arguments):
    """Arguments for a slow definition: lists and numbers, and what is made."""
    return {
        name: value.make() if isinstance(value, Made) else copy.deepcopy(value)
        for name, value in arguments.items()
    }


def slow_numbers(exercise, inputs, options):
    """What the slow definition gives, one row of numbers for each result."""
    oracle = oracles(exercise.lesson)[exercise.name]
    returned = oracle(*plain(inputs).values(), **plain(options))
    results = returned if exercise.gives == "several" else [returned]
    return [[float(leaf) for leaf in leaves(result)] for result in results]


def slow_pull(exercise, inputs, options):
    """The number whose gradient is compared; see `FunctionExercise.pull`."""
    weighted = exercise.gives in ("tensor", "several")
    rows = slow_numbers(exercise, inputs, options)
    return sum(
        number * (place if weighted else 1) for row in rows for place, number in enumerate(row, 1)
    )


def nudged(value, place, step):
    """Nested lists with one number moved."""
    flat = leaves(value)
    flat[place] += step

    def rebuilt(part):
        return [rebuilt(each) for each in part] if isinstance(part, list) else next(numbers)

    numbers = iter(flat)
    return rebuilt(value)


def slow_slopes(exercise, case, name):
    """The gradient to one input, by differences."""
    inputs, step = dict(case.inputs), 1e-5
    slopes = []
    for place in range(len(leaves(inputs[name]))):
        above, below = (
            slow_pull(
                exercise,
                {**inputs, name: nudged(inputs[name], place, side * step)},
                case.options,
            )
            for side in (1, -1)
        )
        slopes.append((above - below) / (2 * step))
    return slopes


@each_function
def test_expected_values_agree_with_a_slow_definition(exercise):
    for case, entry in zip(exercise.cases, entries_of(exercise), strict=True):
        rows = slow_numbers(exercise, case.inputs, case.options)
        values = [number for row in rows for number in row]
        stored = list(map(float, entry["expected"]["values"]))
        assert stored == pytest.approx(values, rel=2e-5, abs=2e-5), case.name


@each_function
def test_expected_gradients_agree_with_differences_of_a_slow_definition(exercise):
    cases = [pair for pair in zip(exercise.cases, entries_of(exercise), strict=True)]
    cases = [pair for pair in cases if pair[0].gradients]
    assert bool(cases) == bool(exercise.learns), "a case compares gradients if something learns"
    for case, entry in cases:
        for name in exercise.learns:
            found = entry["expected"]["gradients"][name]
            slopes = slow_slopes(exercise, case, name)
            assert found == pytest.approx(slopes, rel=5e-5, abs=5e-5), case.name


@each_function
def test_no_gradient_reaches_a_constant(exercise):
    for entry in entries_of(exercise):
        for name, row in entry["expected"].get("gradients", {}).items():
            assert name in exercise.learns or row is None


@each_lesson
def test_the_data_is_current(lesson):
    assert build_checks.difference(lesson) == ""


# --- nothing shows a solution --------------------------------------------------------------


def test_the_checks_import_no_right_answer():
    for path in (ROOT / "ppo_lessons/checks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("ppo_lessons."):
                    assert name.split(".")[1] in {"checks", "progress", "lessons"}, path.name


@each_hashed
def test_the_data_of_predictions_holds_hashes_alone(exercise):
    entry = exercises.data_of(exercise.lesson)[exercise.id]
    rows = [entry["expected"], *entry["mistakes"].values()]
    assert all(row.keys() == exercise.questions.keys() for row in rows)
    hashes = [each for row in rows for each in row.values()]
    assert all(re.fullmatch("[0-9a-f]{12}", each) for each in hashes)


@each_hashed
def test_a_wrong_prediction_is_not_answered_with_the_right_one(exercise):
    right = next(iter(right_answers(exercise.lesson)[exercise.name].values()))
    for name, wrong in wrong_answers(exercise.lesson)[exercise.name].items():
        result = judge(exercise, wrong)
        words = dict(result.rows)
        letter = words["input"].split()[1].rstrip(":")
        assert right[letter] != wrong[letter], name
        if not isinstance(exercise, SignsExercise):
            told = [float(each) for each in re.findall(r"\d+\.?\d*", words["mistake"])]
            assert abs(right[letter]) not in [each for each in told if each > 2], name


def cells_of(lesson, folder):
    return run.answer_cells(ROOT / folder / f"{find_lesson(lesson).stem}.ipynb")


def verdicts(cells):
    names: dict = {}
    found = {}
    for id, source in cells.items():
        exec(source, names)
        found[id] = judge(find_exercise(id), names[find_exercise(id).name])
    return found


@each_lesson
def test_every_exercise_has_an_answer_cell_in_blank_and_solution(lesson):
    ids = {each.id for each in of_lesson(lesson)}
    assert set(cells_of(lesson, "exercises")) == set(cells_of(lesson, "solutions")) == ids


@each_lesson
def test_the_solutions_pass(lesson):
    for result in verdicts(cells_of(lesson, "solutions")).values():
        assert result.passed, result


@each_lesson
def test_a_blank_is_not_written_yet_and_a_bug_that_is_given_is_named(lesson):
    for id, result in verdicts(cells_of(lesson, "exercises")).items():
        given = getattr(find_exercise(id), "starts_with", "")
        assert result.mistake == (given or "not_written"), result
        assert given or repr(result).startswith(f"· {id}: not written yet\n")


@each_lesson
def test_an_answer_cell_holds_all_that_it_needs(lesson):
    for id, source in cells_of(lesson, "solutions").items():
        names: dict = {}
        exec(source, names)
        assert judge(find_exercise(id), names[find_exercise(id).name]).passed, id


@each_lesson
def test_the_blank_shows_no_line_of_the_solution(lesson):
    for id, source in cells_of(lesson, "solutions").items():
        given = cells_of(lesson, "exercises")[id]
        written = [line.strip() for line in source.splitlines() if line not in given.splitlines()]
        assert written, id
        assert not [line for line in written if line in given], id


@each_lesson
def test_difficulty_importance_and_minutes_stand_on_each_exercise(lesson):
    path = ROOT / f"exercises/{find_lesson(lesson).stem}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    line = re.compile(r"^\*Difficulty (\d) of 5, importance (\d) of 5, (\d+) minutes\.\*$", re.M)
    row = re.compile(r"^\| \d\. .* \| (\d) of 5 \| (\d) of 5 \| (\d+) \|$", re.M)
    assert line.findall(text) == row.findall(text)
    assert len(line.findall(text)) == len(of_lesson(lesson))
    assert f"[lesson {path.stem[:2]}](../notebooks/{path.stem}.ipynb)" in text


@each_lesson
def test_each_exercise_offers_its_check_and_its_hints(lesson):
    path = ROOT / f"exercises/{find_lesson(lesson).stem}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for exercise in of_lesson(lesson):
        cell = f'# hint("{exercise.id}")\ncheck.{exercise.name}({exercise.name})'
        assert cells.count(cell) == 1, exercise.id


# --- hints and solutions -------------------------------------------------------------------


@each_exercise
def test_hints_come_one_at_a_time_and_the_last_stays(exercise):
    texts = [repr(hint(exercise.id)) for _ in range(4)]
    assert [text[:11] for text in texts] == [f"hint {n} of 3" for n in (1, 2, 3, 3)]
    assert texts[2] == texts[3]


@each_exercise
def test_the_last_hint_is_maths_and_no_code(exercise):
    assert MATHS.search(exercise.hints[-1])
    assert not CODE.search("".join(exercise.hints))


@each_exercise
def test_the_solution_is_revealed_after_an_attempt(exercise):
    assert "Try first" in repr(reveal(exercise.id))
    check(exercise.id, None)
    assert "Try first" in repr(reveal(exercise.id)), "a blank is no attempt"
    check(exercise.id, 3)
    stem = find_lesson(exercise.lesson).stem
    assert f"solutions/{stem}.ipynb, in the cell that begins with # answer: {exercise.id}" in repr(
        reveal(exercise.id)
    )


# --- all lessons together ------------------------------------------------------------------


def test_all_lessons_know_two_hundred_mistakes():
    names = [
        (exercise.id, name.partition("#")[0])
        for exercise in EXERCISES
        if not getattr(exercise, "numbers_of", "")
        for name in wrong_answers(exercise.lesson)[exercise.name]
    ]
    assert len(set(names)) >= 200


def test_the_table_of_mistakes_says_what_becomes_of_each(capsys, monkeypatch):
    some = {each.id: each for each in EXERCISES[:2]}
    monkeypatch.setattr(list_mistakes, "all_exercises", lambda: some)
    assert list_mistakes.main([]) == 0
    *_, total = capsys.readouterr().out.splitlines()
    _, title, count, _, wrong, refused, named, _, hurt, _ = map(str.strip, total.split("|"))
    assert (title, count, refused, named, hurt) == ("all", "2", "100.0 %", "100.0 %", "0")
    assert int(wrong) >= 16


def test_the_table_of_mistakes_ends_with_1_if_a_wrong_answer_passes(capsys, monkeypatch):
    exercise = EXERCISES[0]
    monkeypatch.setattr(list_mistakes, "all_exercises", lambda: {exercise.id: exercise})
    passed = CheckResult(exercise=exercise.id, passed=True)
    monkeypatch.setattr(list_mistakes, "judge", lambda exercise, answer: passed)
    assert list_mistakes.main([]) == 1
    assert "| 0.0 % | 0.0 % |" in capsys.readouterr().out
