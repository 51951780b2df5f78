"""The verb `grade`: from the blank notebook to the gradebook, and a student's preview."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ppo_lessons import cli
from ppo_lessons.grading import batch
from ppo_lessons.grading import cli as grading
from ppo_lessons.grading.preview import lesson_named_in, preview, read_notebook
from ppo_lessons.grading.sandbox import IsolationMissing
from ppo_lessons.grading.types import Result
from ppo_lessons.lessons import find_lesson

ROOT = Path(__file__).resolve().parent.parent
VERBS = ("preview", "doctor", "build", "bake", "run", "merge", "report")


def answer_cells(notebook: dict) -> dict[str, dict]:
    """Cells by the id of the exercise they answer."""
    found = {}
    for cell in notebook["cells"]:
        if marker := re.match(r"# answer: (\S+)\n", "".join(cell["source"])):
            found[marker[1]] = cell
    return found


def solved() -> dict:
    return json.loads((ROOT / "solutions/04_clip.ipynb").read_text(encoding="utf-8"))


def write(path: Path, notebook: dict) -> Path:
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def rows_of(out: Path) -> dict[str, dict[str, str]]:
    """Read a gradebook: rows by student."""
    text = (out / "gradebook.csv").read_text(encoding="utf-8-sig")
    return {row["student"]: row for row in csv.DictReader(text.splitlines())}


def result(student: str, **changed) -> Result:
    start = {"student": student, "assignment": "04_clip", "status": "graded", "max_points": 10}
    return Result(**{**start, **changed})


# --- the command line ----------------------------------------------------------------------


def test_every_verb_is_in_the_usage_and_says_what_it_does(capsys):
    assert cli.main(["grade"]) == 0
    usage = capsys.readouterr().out
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", usage, re.MULTILINE)
        with pytest.raises(SystemExit) as stopped:
            cli.main(["grade", verb, "--help"])
        assert stopped.value.code == 0
        assert f"grade {verb}" in capsys.readouterr().out


@pytest.mark.messages
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gade"], "expected one of build, bake, run"),
        (["preview", "nowhere.ipynb"], "there is no file nowhere.ipynb"),
        (["report", "."], "holds no run"),
        (["merge", ".", "--out", "."], "holds no run"),
        (["build", "99", "--out", "x"], "99"),
    ],
)
def test_what_is_refused_says_why(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["grade", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.messages
@pytest.mark.parametrize("verb", ["build", "bake", "run", "doctor"])
def test_a_teachers_verb_without_its_tools_says_what_to_install(verb, capsys, monkeypatch):
    monkeypatch.setattr(grading, "find_spec", lambda name: None)
    assert cli.main(["grade", verb]) == 2
    assert "nbval" in (said := capsys.readouterr().err)
    assert "pip install -e '.[course,test]'" in said


@pytest.mark.messages
@pytest.mark.parametrize("verb", ["bake", "run", "doctor"])
def test_grading_needs_linux_and_says_so(verb, capsys, monkeypatch):
    monkeypatch.setattr(grading.platform, "system", lambda: "Windows")
    assert cli.main(["grade", verb]) == 2
    assert "needs Linux" in capsys.readouterr().err


@pytest.mark.messages
def test_a_reference_is_not_replaced_by_one_with_other_hidden_inputs(tmp_path, capsys):
    (tmp_path / "class.json").write_text("{}", encoding="utf-8")
    assert cli.main(["grade", "bake", "04", "--out", str(tmp_path)]) != 0
    assert "holds a reference already" in capsys.readouterr().err
    assert (tmp_path / "class.json").read_text(encoding="utf-8") == "{}"


def test_a_shard_is_two_numbers(capsys):
    assert grading.shard("2/3") == (2, 3)
    for text in ("2", "2/", "/3", "a/b", "-1/3", ""):
        with pytest.raises(grading.argparse.ArgumentTypeError):
            grading.shard(text)


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """`run` grades nobody: it gets these results, and what it asked for is kept."""
    asked, results = [], [result("ada", points=7), result("max", status="missing")]

    def grade(options, *, on_plan, on_result):
        asked.append(options)
        on_plan(len(results))
        for each in results:
            on_result(each)
        return results

    monkeypatch.setattr(batch, "grade", grade)
    monkeypatch.setattr(batch, "collect", lambda folders: results)
    monkeypatch.chdir(tmp_path)
    return asked, results


RUN = ["grade", "run", "a.zip", "b", "--reference", "ref", "--out", "out"]


def test_run_hands_on_what_it_was_given_and_writes_the_reports(graded, capsys):
    asked, _ = graded
    assert cli.main([*RUN, "--workers", "3", "--chunk", "4", "--roster", "r.csv"]) == 0
    options = asked[0]
    assert options.submissions == [Path("a.zip"), Path("b")]
    assert (options.workers, options.chunk, options.shard) == (3, 4, (1, 1))
    assert (options.isolation, options.again) == ("auto", False)
    assert "2 students: 1 graded, 1 nothing handed in" in capsys.readouterr().out
    table = rows_of(Path("out"))
    assert {name: row["points"] for name, row in table.items()} == {"ada": "7", "max": "0"}
    assert Path("out/class.html").is_file()
    assert Path("out/feedback/ada.html").is_file()


def test_a_student_without_a_verdict_makes_the_exit_status_1(graded, capsys):
    _, results = graded
    results.append(result("eve", status="infrastructure-error", reason="no\x1b[2J kernel"))
    assert cli.main(RUN) == 1
    said = capsys.readouterr().out
    assert "no verdict: eve: no?[2J kernel" in said


def test_a_shard_writes_no_gradebook_and_says_how_to_merge(graded, capsys):
    assert cli.main([*RUN, "--shard", "2/3"]) == 0
    said = capsys.readouterr().out
    assert "shard 2 of 3" in said
    assert "merge out (and the others)" in said
    assert not Path("out").exists()


def test_no_sandbox_is_said_loudly(graded, capsys):
    _, results = graded
    results[0] = result("ada", isolation="none")
    assert cli.main([*RUN, "--isolation", "none"]) == 0
    captured = capsys.readouterr()
    assert "no sandbox" in captured.err
    assert "1 of them without a sandbox" in captured.out


@pytest.mark.messages
def test_a_missing_sandbox_is_a_refusal_and_no_traceback(graded, capsys, monkeypatch):
    def grade(options, **_):
        raise IsolationMissing("bwrap is not installed")

    monkeypatch.setattr(batch, "grade", grade)
    assert cli.main(RUN) == 2
    assert "bwrap is not installed" in capsys.readouterr().err


# --- preview -------------------------------------------------------------------------------


def test_a_preview_judges_each_answer_as_the_grader_would(tmp_path, capsys):
    notebook = solved()
    cells = answer_cells(notebook)
    cells["clip.clipped_surrogate_loss"]["source"] = (
        "# answer: clip.clipped_surrogate_loss\n"
        "from ppo_lessons.clip import clipped_surrogate_loss\n"
    )
    cells["clip.clip_fractions"]["source"] = (
        "# answer: clip.clip_fractions\ndef clip_fractions(*inputs, clip_epsilon):\n    return 1, 1"
    )
    notebook["cells"].remove(cells["clip.mended_loss"])
    helper = {"cell_type": "code", "source": "HALF = 0.5", "metadata": {}, "outputs": []}
    place = notebook["cells"].index(cells["clip.asymmetric_dual_clip"])
    notebook["cells"].insert(place, helper)
    cells["clip.asymmetric_dual_clip"]["source"] = (
        "".join(cells["clip.asymmetric_dual_clip"]["source"]) + "\nassert HALF == 0.5"
    )
    path = write(tmp_path / "mine.ipynb", notebook)
    assert cli.main(["grade", "preview", str(path)]) == 1
    lines = capsys.readouterr().out
    for name in ("clipped_surrogate", "gradient_signs", "asymmetric_dual_clip"):
        assert f"✔ clip.{name}: passed" in lines
    assert re.search("✘ clip.clipped_surrogate_loss: .*is not there while lesson 04", lines)
    assert "✘ clip.clip_fractions: not yet" in lines
    assert "✘ clip.mended_loss: no cell has the line" in lines
    assert "3 of 6 pass" in lines
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.ipynb"]


def test_what_the_course_hands_out_is_read_without_a_note(tmp_path):
    reading = read_notebook(ROOT / "solutions/04_clip.ipynb")
    assert reading.lesson == find_lesson("clip")
    assert (reading.notes, reading.absent) == ((), ())
    assert list(reading.answers) == list(answer_cells(solved()))


def test_a_personal_question_is_found_and_left_to_the_grader(tmp_path, monkeypatch):
    notebook = solved()
    notebook["metadata"]["ppo_lessons"] = {"assignment": "04_clip", "student": "ada"}
    source = "# answer: clip.own_numbers\nown_numbers = {}"
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
    notebook["cells"].append(cell)
    reading = read_notebook(write(tmp_path / "04_clip.ipynb", notebook))
    assert "clip.own_numbers" in reading.answers
    assert "clip.own_function" in reading.absent
    monkeypatch.setattr("ppo_lessons.grading.preview.run_answers", lambda *_, **__: iter(()))
    lines = {line.id: line for line in preview(reading)}
    assert lines["clip.own_numbers"].words == "found; only the grader can check it"
    assert not lines["clip.own_function"].passed


def test_a_personal_question_that_was_not_touched_is_not_counted(tmp_path, monkeypatch):
    notebook = solved()
    notebook["metadata"]["ppo_lessons"] = {"assignment": "04_clip", "student": "ada"}
    stub = 'def own_function(ratios):\n    raise NotImplementedError("exercise 4.7: yours")'
    for name, text in (("own_function", stub), ("own_numbers", 'own_numbers = {"a": None}')):
        source = f"# answer: clip.{name}\n{text}"
        cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
        notebook["cells"].append(cell)
    reading = read_notebook(write(tmp_path / "04_clip.ipynb", notebook))
    monkeypatch.setattr("ppo_lessons.grading.preview.run_answers", lambda *_, **__: iter(()))
    assert [str(line) for line in preview(reading)] == [
        "· clip.own_function: not written yet",
        "· clip.own_numbers: not written yet",
    ]


@pytest.mark.messages
def test_a_file_that_the_grader_would_reject_is_refused_with_its_reason(tmp_path):
    path = tmp_path / "04_clip.ipynb"
    path.write_text(json.dumps(solved())[:5000], encoding="utf-8")
    with pytest.raises(ValueError, match=r"the grader would reject .*04_clip\.ipynb: "):
        read_notebook(path)


def test_a_notebook_says_by_its_answers_which_exercise_it_is(tmp_path):
    assert lesson_named_in(write(tmp_path / "09_mine.ipynb", solved())) == "clip"
    blank = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert lesson_named_in(write(tmp_path / "s12_04_clip.ipynb", blank)) == "04"
    with pytest.raises(ValueError, match="does not say which exercise"):
        lesson_named_in(write(tmp_path / "mine2024.ipynb", blank))


# --- the whole way -------------------------------------------------------------------------


@pytest.fixture
def sandbox():
    if shutil.which("bwrap") is None:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail("bwrap is missing, and CI must have it: apt-get install bubblewrap")
        pytest.skip("needs bwrap, which is not installed")


@pytest.mark.usefixtures("sandbox")
def test_from_the_hand_out_to_the_marks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("roster.csv").write_text("id;name\nada;Ada L.\nmax;Max\nzoe;Zoe\n", encoding="utf-8")
    assert cli.main(["grade", "build", "04", "--out", "handout"]) == 0
    assert cli.main(["grade", "bake", "clip", "--out", "reference"]) == 0
    right = answer_cells(solved())
    Path("files").mkdir()
    for student, count in (("ada", 6), ("max", 1)):
        notebook = json.loads(Path("handout/04_clip.ipynb").read_text(encoding="utf-8"))
        for id in list(right)[:count]:
            answer_cells(notebook)[id]["source"] = right[id]["source"]
        write(Path(f"files/{student}_04_clip.ipynb"), notebook)
    launcher = [sys.executable, str(ROOT / "course"), "--here"]
    words = ["grade", "run", "files", "--reference", "reference", "--out", "out"]
    command = [*launcher, *words, "--roster", "roster.csv"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 students: 2 graded, 1 nothing handed in" in ran.stdout
    table = rows_of(Path("out"))
    assert [table[name]["points"] for name in ("ada", "max", "zoe")] == ["60", "10", "0"]
    assert table["ada"]["isolation"] == "bwrap"
    page = Path("out/feedback/max.html").read_text(encoding="utf-8")
    assert "You left this question as it was" in page
    assert cli.main(["grade", "report", "out"]) == 0
    assert rows_of(Path("out")) == table
