"""The package that graded answers find: what is asked is not there, what the checks need is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ppo_lessons.grading.bake import bake
from ppo_lessons.grading.build import read_assignment
from ppo_lessons.grading.items.deal import personal_items
from ppo_lessons.grading.manifest import read_reference
from ppo_lessons.grading.student_build import ALSO, FOREIGN, forbidden, student_build
from ppo_lessons.grading.types import MAIN, Manifest
from ppo_lessons.lessons import LESSONS

ROOT = Path(__file__).resolve().parent.parent
SECRET = b"thirty-two bytes that nobody has"
STEMS = sorted(path.stem for path in (ROOT / "exercises/source").glob("*.py"))
OFTEN = ("06_gae",)  # the others run in full

# Runs the cells of a notebook as a kernel would, and prints what each has printed.
PLAY = """
import contextlib, io, json, sys
names = {"__name__": "__main__"}
printed = {}
for cell in json.load(sys.stdin):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(cell["source"], cell["id"], "exec"), names)
    printed[cell["id"]] = told.getvalue()
import ppo_lessons
json.dump([ppo_lessons.__file__, printed], sys.stdout)
"""

# Tries every function of the build on every question with as many arguments.
SCAN = """
import importlib, inspect, json, pkgutil, sys, warnings
import ppo_lessons
from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.exercises import FunctionExercise
from ppo_lessons.checks.compare import agree, from_data
from ppo_lessons.checks.exercises import data_of
from ppo_lessons.checks.guard import silent, state_kept
from ppo_lessons.checks.judge import call
warnings.simplefilter("ignore")
lesson = sys.argv[1]
found, missing, modules = [], [], 0
functions = {}
nothing = lambda name: None
for module in pkgutil.walk_packages(ppo_lessons.__path__, "ppo_lessons.", onerror=nothing):
    try:
        names = vars(importlib.import_module(module.name))
    except ImportError as error:
        missing.append(module.name)
        continue
    modules += 1
    functions |= {id(each): each for each in names.values() if inspect.isfunction(each)
                  and str(each.__module__).startswith("ppo_lessons")}
for exercise in all_exercises().values():
    if exercise.lesson != lesson or not isinstance(exercise, FunctionExercise):
        continue
    case = exercise.cases[0]
    entries = data_of(lesson)[exercise.numbers_of or exercise.id]["cases"]
    for function in functions.values():
        try:
            inspect.signature(function).bind(*case.inputs, **case.options)
        except TypeError:
            continue
        pairs = zip(exercise.cases, entries)
        with state_kept(), silent():
            same = all(
                agree(call(function, exercise, c), from_data(e["expected"])) for c, e in pairs
            )
        if same:
            found.append(f"{function.__module__}.{function.__name__} answers {exercise.id}")
json.dump([modules, sorted(missing), sorted(found)], sys.stdout)
"""


def manifest_of(stem: str) -> Manifest:
    lesson = stem[3:]
    return Manifest(
        assignment=stem, title="", seed=1, forbid=forbidden(lesson), parts={}, questions=()
    )


def run_python(build: Path, code: str, *words: str, given: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(build.parent), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code, *words],
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        cwd=build.parent,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """Student builds, made once for each lesson."""
    made: dict[str, Path] = {}

    def get(stem: str) -> Path:
        if stem not in made:
            made[stem] = student_build(manifest_of(stem), tmp_path_factory.mktemp(stem))
        return made[stem]

    return get


def often(stems: list[str]) -> list[Any]:
    return [stem if stem in OFTEN else pytest.param(stem, marks=pytest.mark.full) for stem in stems]


# --- what is not there ---------------------------------------------------------------------


@pytest.mark.parametrize("stem", STEMS)
def test_the_lesson_all_later_ones_and_the_loop_are_forbidden(stem):
    number = int(stem[:2])
    later = {f"ppo_lessons.{each.name}" for each in LESSONS[number:] if each.module}
    gone = {"training_loop", *ALSO.get(stem[3:], ())}
    kept = [each for each in LESSONS[:number] if each.name not in gone]
    earlier = {f"ppo_lessons.{each.name}" for each in kept if each.module}
    names = set(forbidden(stem[3:]))
    assert later | {"ppo_lessons.training_loop"} <= names
    assert not earlier & names
    assert set(FOREIGN) <= names


def test_what_deals_and_solves_personal_questions_is_forbidden():
    names = forbidden("clip")
    for module in ("build", "bake", "items.clip", "items.deal", "items.draw", "run", "transplant"):
        assert f"ppo_lessons.grading.{module}" in names
    for module in ("ask", "fresh", "types", "items", "items.questions"):
        assert f"ppo_lessons.grading.{module}" not in names


@pytest.mark.parametrize("stem", STEMS)
def test_no_solution_stands_in_the_build(stem, builds):
    text = "\n".join(path.read_text() for path in sorted(builds(stem).rglob("*.py")))
    squeezed = re.sub(r"\s+", "", text)
    for task in read_assignment(stem).tasks:
        body = re.sub(r"\s+", "", task.answer.source.partition("BEGIN SOLUTION")[2])
        body = body.partition("###ENDSOLUTION")[0][-80:]
        assert len(body) < 40 or body not in squeezed, task.exercise.id
    assert "own_function(" not in text.replace('own_function"', "")


def test_a_forbidden_module_says_why_it_is_missing(builds):
    code = """
for name in ("clip", "gae", "training_loop", "grading.bake", "mdp.zoo", "widgets.html"):
    try:
        __import__(f"ppo_lessons.{name}")
    except ImportError as error:
        print(name, "|", error)
"""
    told = run_python(builds("01_reinforce"), code).splitlines()
    assert len(told) == 6
    assert told[0] == (
        "clip | ppo_lessons.clip is not there while lesson 01 is graded: write what you need "
        "yourself"
    )
    assert "ppo_lessons.mdp is not there" in told[4]


def test_the_build_is_plain_files_and_is_replaced_as_a_whole(tmp_path):
    manifest = manifest_of("04_clip")
    first = student_build(manifest, tmp_path)
    (first / "left_over.py").touch()
    assert student_build(manifest, tmp_path) == first == tmp_path / "ppo_lessons"
    assert not (first / "left_over.py").exists()
    assert not any(path.is_symlink() for path in first.rglob("*"))
    assert not list(first.rglob("__pycache__"))
    assert sum(path.stat().st_size for path in first.rglob("*") if path.is_file()) < 4_000_000


@pytest.mark.parametrize("stem", often(STEMS))
def test_no_function_of_the_build_answers_a_question(stem, builds):
    modules, missing, found = json.loads(run_python(builds(stem), SCAN, stem[3:]))
    assert modules > 20
    assert f"ppo_lessons.{stem[3:]}" in missing
    assert found == []


def test_the_scan_finds_an_answer_that_was_left(tmp_path):
    manifest = manifest_of("04_clip")
    left = tuple(name for name in manifest.forbid if name != "ppo_lessons.clip")
    build = student_build(Manifest(**{**vars(manifest), "forbid": left}), tmp_path)
    _, _, found = json.loads(run_python(build, SCAN, "clip"))
    assert "ppo_lessons.clip.clipped_surrogate answers clip.clipped_surrogate" in found


# --- what is there -------------------------------------------------------------------------


@pytest.mark.parametrize("stem", often(STEMS))
def test_solutions_print_in_the_build_what_was_baked(stem, builds, tmp_path):
    place = bake(stem, tmp_path / "reference", 11, roster=["ada"], secret=SECRET)
    manifest, parts = read_reference(place, "ada")
    cells = parts[MAIN]["cells"]
    file, printed = json.loads(run_python(builds(stem), PLAY, given=json.dumps(cells)))
    assert file == str(builds(stem) / "__init__.py")
    checks = {check.cell for question in manifest.questions for check in question.checks}
    wrong = [
        cell["id"]
        for cell in cells
        if cell["id"] in checks and printed[cell["id"]] != cell["outputs"][0]["text"]
    ]
    assert wrong == []
    told = [json.loads(printed[q.tell])["mistake"] for q in manifest.questions if q.tell]
    assert told == [None] * len(told)


def test_a_student_can_run_the_first_cell_of_the_blank(builds):
    code = "from ppo_lessons import check, hint, setup\nsetup()\nprint(check.__class__.__name__)"
    assert run_python(builds("04_clip"), code).splitlines()[-1] == "Check"


def test_answers_of_an_earlier_lesson_may_be_used(builds):
    code = "from ppo_lessons.importance import importance_ratios\nprint(importance_ratios.__name__)"
    assert run_python(builds("04_clip"), code).strip() == "importance_ratios"


def test_personal_constants_cannot_be_derived_in_the_build(builds):
    item, _ = personal_items("04_clip", "ada", SECRET)
    assert item.constants
    code = """
try:
    from ppo_lessons.grading.items.deal import personal_items
except ImportError:
    print("missing")
from ppo_lessons.grading.items.questions import asked
print(asked("clip.own_function").id)
"""
    assert run_python(builds("04_clip"), code).split() == ["missing", "clip.own_function"]
