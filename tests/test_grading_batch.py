"""A batch: whatever happens in between, each student has one verdict, and the right one.

The sandbox is replaced by a function that reads the points from the answer's own text; how real
notebooks are run, and attacked, is in `test_grading_run.py` and `test_grading_attacks.py`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ppo_lessons.grading import batch as module
from ppo_lessons.grading.batch import Batch, collect, grade
from ppo_lessons.grading.manifest import ClassReference
from ppo_lessons.grading.report import gradebook
from ppo_lessons.grading.run import InfrastructureError, Job, Ran
from ppo_lessons.grading.types import (
    Cell,
    CellOutcome,
    CheckCell,
    Manifest,
    Question,
    Rejected,
    Submission,
    Transplanted,
)

QUESTION = Question(
    id="clip.clipped_surrogate",
    name="clipped_surrogate",
    title="The clipped surrogate",
    answer="answer",
    checks=(
        CheckCell(cell="seen", title="seen", points=2, hidden=False),
        CheckCell(cell="hidden", title="edges", points=8, hidden=True),
    ),
)
ENVIRONMENT = {"python": "3", "torch": "2"}
MANIFEST = Manifest(
    assignment="04_clip",
    title="Clip",
    seed=1,
    parts={"main": ""},
    environment=ENVIRONMENT,
    questions=(QUESTION,),
)


@dataclass
class World:
    """What the stages around the batch do here.

    Args:
        files: answer by student; a word with points, as "10", "2" or "0".
        fails: how often the machine fails on an answer.
        breaks: answers with which a whole chunk is lost, once each.
        ran: answers that were run, in order; that of the reference is not among them.
        right: the answer in the reference.
    """

    files: dict[str, str]
    fails: Counter = field(default_factory=Counter)
    breaks: set = field(default_factory=set)
    ran: list = field(default_factory=list)
    manifest: Manifest = MANIFEST
    personal: bool = False
    right: str = "10 of the reference"

    def read_submissions(self, paths, *, assignment, question_ids, roster):
        assert (assignment, question_ids) == ("04_clip", [QUESTION.id])
        rows = [
            Rejected(student=name, reason="no JSON", source=f"{name}.ipynb")
            if text == "broken"
            else Submission(
                student=name,
                source=f"{name}.ipynb",
                sha256=text,
                cells=(Cell(kind="code", source=text),),
                notes=("read",),
            )
            for name, text in self.files.items()
        ]
        missing = [name for name in roster or {} if name not in self.files]
        return rows + [Rejected(student=name, reason="", missing=True) for name in missing]

    def reference(self, answer: str = "") -> dict:
        """The notebook with an answer in it, by default the right one."""
        sources = {"answer": answer or self.right, "seen": f"ask({self.manifest.seed})"}
        cells = [
            {"cell_type": "code", "id": id, "source": source}
            for id, source in {**sources, "hidden": ""}.items()
        ]
        return {"main": {"cells": cells}}

    def transplant(self, submission, manifest, reference):
        parts = self.reference(submission.cells[0].source)
        return Transplanted(parts=parts, notes=("transplanted",))

    def run_jobs(self, jobs, *, isolation, limits, stop):
        texts = [job.transplanted.parts["main"]["cells"][0]["source"] for job in jobs]
        for text in texts:
            if text in self.breaks:
                self.breaks.remove(text)
                raise OSError("no space left")
        return [self.run_one(job, text) for job, text in zip(jobs, texts, strict=True)]

    def run_one(self, job: Job, text: str):
        assert job.build.joinpath("ppo_lessons/clip.py").read_text() == "raise ImportError"
        self.ran += [text] if job.student != "the reference" else []
        if self.fails[text] > 0:
            self.fails[text] -= 1
            return InfrastructureError("no kernel")
        points = int(re.findall(r"\d+", text)[0])
        states = {"answer": True, "seen": points >= 2, "hidden": points == 10}
        cells = {
            id: CellOutcome(state="passed" if passed else "failed") for id, passed in states.items()
        }
        return Ran(cells={"main": cells}, seconds=len(self.ran), timed_out="slow" in text)


class Sandbox:
    name = "sandbox"


@pytest.fixture
def world(monkeypatch):
    """Ten students, each with an answer of its own; one that cannot be read."""
    world = World({f"s{n}": f"{(0, 2, 10)[n % 3]} #{n}" for n in range(9)} | {"s9": "broken"})

    def student_build(manifest, folder):
        (folder / "ppo_lessons").mkdir()
        (folder / "ppo_lessons/clip.py").write_text("raise ImportError")

    def read_class(folder):
        own = {name: name for name in world.files if name != "s0"} if world.personal else {}
        return ClassReference(assignment="04_clip", personal=world.personal, students=own)

    changes = {
        "choose": lambda name: Sandbox(),
        "environment_now": lambda: ENVIRONMENT,
        "read_class": read_class,
        "read_reference": lambda folder, student="": (world.manifest, world.reference()),
        "read_roster": lambda path: {"s0": "Zero", "s99": "Absent"},
        "read_submissions": world.read_submissions,
        "run_jobs": world.run_jobs,
        "student_build": student_build,
        "transplant": world.transplant,
    }
    for name, function in changes.items():
        monkeypatch.setattr(module, name, function)
    return world


def a_batch(out: Path, **changed) -> Batch:
    start = Batch(submissions=[out / "files"], reference=out / "reference", out=out, workers=1)
    return replace(start, **changed)


def table(results) -> str:
    """Give the gradebook without the seconds."""
    return re.sub(r",[^,]*$", "", gradebook(results), flags=re.MULTILINE)


def points(results) -> dict[str, float]:
    return {result.student: result.points for result in results}


EXPECTED = {f"s{n}": (0, 2, 10)[n % 3] for n in range(9)} | {"s9": 0}


def test_each_student_has_one_verdict_with_all_that_the_gradebook_needs(world, tmp_path):
    results = grade(a_batch(tmp_path))
    assert points(results) == EXPECTED
    assert [result.status for result in results] == ["graded"] * 9 + ["rejected"]
    first = results[0]
    assert first.notes == ("read", "transplanted")
    assert (first.isolation, first.seed, first.source) == ("sandbox", 1, "s0.ipynb")
    assert all(re.fullmatch("[0-9a-f]{64}", each.key) for each in results[:9])
    assert collect([tmp_path]) == results


def test_workers_chunks_and_shards_change_nothing(world, tmp_path):
    reference = table(grade(a_batch(tmp_path / "a")))
    for number, (workers, chunk) in enumerate(((2, 1), (2, 3), (4, 100), (1, 2))):
        made = grade(a_batch(tmp_path / f"b{number}", workers=workers, chunk=chunk))
        assert table(made) == reference
    for n in (3, 20):
        folders = [tmp_path / f"{n}-{i}" for i in range(n)]
        for i, folder in enumerate(folders):
            grade(a_batch(folder, shard=(i + 1, n)))
        assert table(collect(folders)) == reference
        shared = tmp_path / f"{n}-shared"
        for i in range(n):
            grade(a_batch(shared, shard=(i + 1, n)))
        assert table(collect([shared])) == reference


def test_a_second_run_runs_nothing_and_gives_the_same(world, tmp_path):
    first = grade(a_batch(tmp_path))
    world.ran.clear()
    assert grade(a_batch(tmp_path)) == first
    assert world.ran == []
    grade(a_batch(tmp_path, again=True))
    assert len(world.ran) == 9


def test_a_run_that_was_killed_goes_on_where_it_stood(world, tmp_path):
    reference = table(grade(a_batch(tmp_path / "whole")))
    seen = []

    def fifth_is_the_last(result):
        seen.append(result)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade(a_batch(tmp_path / "killed", chunk=1), on_result=fifth_is_the_last)
    states = Counter(each.status for each in collect([tmp_path / "killed"]))
    assert states == {"graded": 4, "rejected": 1, "infrastructure-error": 5}
    world.ran.clear()
    assert table(grade(a_batch(tmp_path / "killed"))) == reference
    assert len(world.ran) == 5


def test_a_run_that_is_stopped_ends_what_still_runs(world, tmp_path, monkeypatch):
    told = []

    def run_jobs(jobs, *, stop, **more):
        if jobs[0].student != "s0":
            return world.run_jobs(jobs, stop=stop, **more)
        told.append(stop.wait(20))
        return [InfrastructureError("stopped")]

    def first_is_the_last(result):
        if result.status == "graded":
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_jobs", run_jobs)
    with pytest.raises(KeyboardInterrupt):
        grade(a_batch(tmp_path, workers=2, chunk=1), on_result=first_is_the_last)
    assert told == [True]


def test_only_a_new_answer_is_run_again_and_a_new_reference_runs_all(world, tmp_path):
    grade(a_batch(tmp_path))
    world.ran.clear()
    world.files["s0"] = "10 late"
    assert points(grade(a_batch(tmp_path)))["s0"] == 10
    assert world.ran == ["10 late"]
    world.manifest = replace(MANIFEST, seed=2)
    grade(a_batch(tmp_path))
    assert len(world.ran) == 10


def test_equal_answers_are_run_once_and_each_student_has_the_verdict(world, tmp_path):
    world.files = {"a": "10", "b": "10", "c": "2"}
    results = grade(a_batch(tmp_path))
    assert points(results) == {"a": 10, "b": 10, "c": 2}
    assert sorted(world.ran) == ["10", "2"]
    assert results[0].key == results[1].key != results[2].key


def test_a_damaged_file_of_the_cache_is_made_again(world, tmp_path):
    first = grade(a_batch(tmp_path))
    (tmp_path / "cache" / f"{first[0].key}.json").write_text("{")
    world.ran.clear()
    assert points(grade(a_batch(tmp_path))) == EXPECTED
    assert len(world.ran) == 1


def test_another_environment_than_that_of_the_reference_is_refused(world, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "environment_now", lambda: {"python": "3", "torch": "2.1"})
    with pytest.raises(ValueError, match=r"torch 2.1 \(baked with 2\)"):
        grade(a_batch(tmp_path))


@pytest.mark.parametrize("right", ["2", "10 slow"])
def test_nobody_is_graded_where_the_reference_itself_would_lose_points(world, tmp_path, right):
    world.right = right
    with pytest.raises(ValueError, match=r"Bake it again|edges"):
        grade(a_batch(tmp_path))
    assert world.ran == []
    world.right = "10"
    world.fails["10"] = 3
    with pytest.raises(ValueError, match="no kernel; expected 10 points"):
        grade(a_batch(tmp_path))


def test_who_handed_in_nothing_has_a_row(world, tmp_path):
    results = grade(a_batch(tmp_path, roster=tmp_path / "roster.csv"))
    row = next(result for result in results if result.student == "s99")
    assert (row.status, row.points, row.max_points) == ("missing", 0, 10)


def test_a_student_without_a_personal_reference_is_rejected(world, tmp_path):
    world.personal = True
    results = grade(a_batch(tmp_path))
    assert results[0].status == "rejected"
    assert "roster" in results[0].reason
    assert points(results) == EXPECTED  # s0 has no points in any case


# --- failures of the machine ---------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_a_failure_of_the_machine_is_tried_again(world, tmp_path, times):
    reference = table(grade(a_batch(tmp_path / "a")))
    world.fails[world.files["s2"]] = times
    assert table(grade(a_batch(tmp_path / "b"))) == reference


def test_a_failure_that_stays_is_listed_and_is_no_verdict(world, tmp_path):
    world.fails[world.files["s2"]] = 3
    results = grade(a_batch(tmp_path))
    assert (results[2].status, results[2].reason) == ("infrastructure-error", "no kernel")
    assert points(results) == EXPECTED | {"s2": 0}
    world.ran.clear()
    assert points(grade(a_batch(tmp_path))) == EXPECTED
    assert world.ran == [world.files["s2"]]


def test_a_submission_that_breaks_its_chunk_costs_its_neighbours_nothing(world, tmp_path):
    world.breaks = {world.files["s4"]}
    assert points(grade(a_batch(tmp_path))) == EXPECTED


@pytest.mark.parametrize("turn", [1, 2])
def test_a_file_that_is_read_in_two_ways_is_read_again_and_costs_no_points(
    world, tmp_path, monkeypatch, turn
):
    turns = []

    def transplant(submission, manifest, reference):
        turns.append(submission.student)
        empty = submission.student == "s2" and turns.count("s2") == turn
        parts = world.reference("0 was found" if empty else submission.cells[0].source)
        return Transplanted(parts=parts, notes=("transplanted",))

    monkeypatch.setattr("ppo_lessons.grading.batch.transplant", transplant)
    results = grade(a_batch(tmp_path))
    if turn == 1:  # its key was already wrong
        assert (results[2].status, results[2].points) == ("infrastructure-error", 0)
        assert "read twice" in results[2].reason
        results = grade(a_batch(tmp_path))
    assert points(results) == EXPECTED


def test_the_chunk_of_a_failure_is_not_run_again(world, tmp_path):
    world.fails[world.files["s2"]] = 1
    grade(a_batch(tmp_path))
    assert Counter(world.ran)[world.files["s2"]] == 2
    assert len(world.ran) == 10


# --- shards put together -------------------------------------------------------------------


def test_a_shard_that_has_not_run_is_no_verdict_for_its_students(world, tmp_path):
    grade(a_batch(tmp_path, shard=(1, 2)))
    results = collect([tmp_path])
    assert points(results[::2]) == points(grade(a_batch(tmp_path / "x"))[::2])
    assert {result.status for result in results[1::2]} == {"infrastructure-error"}


def test_a_result_of_older_answers_or_of_a_student_who_left_does_not_count(world, tmp_path):
    grade(a_batch(tmp_path))
    world.files["s2"] = "0 late"
    del world.files["s3"]
    (tmp_path / "batch.json").unlink()
    grade(a_batch(tmp_path, shard=(2, 20)))  # another student's shard
    results = {result.student: result for result in collect([tmp_path])}
    assert results["s2"].status == "infrastructure-error"
    assert "s3" not in results
    assert results["s4"].status == "graded"


@pytest.mark.parametrize("roster", [None, Path("roster.csv")])
def test_a_run_with_the_late_files_only_turns_nobody_into_a_missing_one(world, tmp_path, roster):
    grade(a_batch(tmp_path, roster=roster))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    files, world.files = world.files, {"s9": "10 late"}
    with pytest.raises(ValueError, match="no file now of 9 students of the last run"):
        grade(a_batch(tmp_path, roster=roster))
    assert {path: path.read_bytes() for path in before} == before
    world.files = files | {"s9": "10 late"}
    assert points(grade(a_batch(tmp_path))) == EXPECTED | {"s9": 10}
    world.files = files | {"s0": "broken"}  # a file is there
    assert grade(a_batch(tmp_path))[0].status == "rejected"


def test_shards_of_different_batches_are_refused(world, tmp_path):
    grade(a_batch(tmp_path / "a", shard=(1, 2)))
    world.files["s2"] = "0"
    grade(a_batch(tmp_path / "b", shard=(2, 2)))
    with pytest.raises(ValueError, match="different batches"):
        collect([tmp_path / "a", tmp_path / "b"])


def test_two_verdicts_on_one_student_are_refused(world, tmp_path, monkeypatch):
    grade(a_batch(tmp_path / "a"))
    world.fails[world.files["s2"]] = 3
    grade(a_batch(tmp_path / "b"))  # a failure gives way to the verdict, from either side
    for folders in (["a", "b"], ["b", "a"]):
        assert points(collect([tmp_path / name for name in folders])) == EXPECTED
    monkeypatch.setattr(World, "run_one", every_cell_failed)
    grade(a_batch(tmp_path / "c"))
    with pytest.raises(ValueError, match="disagree about s1"):
        collect([tmp_path / "a", tmp_path / "c"])


def every_cell_failed(world, job, text, run_one=World.run_one) -> Ran:
    if job.student == "the reference":
        return run_one(world, job, text)
    failed = CellOutcome(state="failed")
    return Ran(cells={"main": dict.fromkeys(("answer", "seen", "hidden"), failed)})


@pytest.mark.messages
@pytest.mark.parametrize("text", ["", "{}", '{"version": 0}', '{"version": 1, "students": [3]}'])
def test_a_folder_without_a_run_is_refused(tmp_path, text):
    (tmp_path / "batch.json").write_text(text)
    with pytest.raises(ValueError, match="Grade first"):
        collect([tmp_path])


@pytest.mark.messages
@pytest.mark.parametrize(
    "wrong", [{"shard": (0, 2)}, {"shard": (3, 2)}, {"workers": 0}, {"chunk": 0}]
)
def test_a_batch_that_makes_no_sense_is_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="expected"):
        a_batch(tmp_path, **wrong)
