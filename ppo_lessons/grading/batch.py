"""How are three hundred submissions graded? In chunks, in several workers, each result at once.

    out/batch.json                who belongs to the batch, and the key of each one's verdict
    out/cache/<key>.json          verdicts by answers, reference and environment: nobody's yet
    out/results/<student>.json    a verdict with its student; a file is complete or not there

A run that is killed goes on where it stood, and what did not change is not run again. A failure of
the machine is tried again, alone, and then listed; it is never zero points.
"""

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from ppo_lessons.grading.intake import read_submissions
from ppo_lessons.grading.manifest import (
    environment_now,
    read_class,
    read_reference,
    reference_sha256,
)
from ppo_lessons.grading.results import (
    from_text,
    read_results,
    to_text,
    write_result,
    write_whole,
)
from ppo_lessons.grading.roster import read_roster
from ppo_lessons.grading.run import InfrastructureError, Job, Ran, prefix_of, run_jobs
from ppo_lessons.grading.sandbox import Isolation, Limits, choose
from ppo_lessons.grading.student_build import student_build
from ppo_lessons.grading.transplant import transplant
from ppo_lessons.grading.types import Manifest, Rejected, Result, Submission, Transplanted
from ppo_lessons.grading.verdict import excerpt, judge_submission

VERSION = 1  # raise it when equal keys would no longer give equal verdicts
TRIES = 2  # more of them for a submission on which the machine failed
MAX_REASON = 600  # characters
ROOT = Path(__file__).resolve().parents[2]
NEVER_SHOWN = ("solutions", "exercises", "tests")  # folders of the project that hold answers


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What one run grades, and how.

    Args:
        submissions: files, folders, zip files.
        reference: the folder that `bake` wrote.
        out: where results go.
        roster: csv with the columns id and name.
        workers: how many pytest processes run side by side.
        chunk: how many submissions one of them gets.
        shard: `(i, n)`, this run grades each n-th student from the i-th on; counted from 1.
        isolation: name of the sandbox, or `auto`.
        again: whether verdicts that are there already are made anew.
        limits: what the code of one student may use.
    """

    submissions: Sequence[Path]
    reference: Path
    out: Path
    roster: Path | None = None
    workers: int = 2
    chunk: int = 10
    shard: tuple[int, int] = (1, 1)
    isolation: str = "auto"
    again: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self):
        i, n = self.shard
        if not 1 <= i <= n:
            raise ValueError(f"shard is {i}/{n}; expected 1/n to n/n. Count shards from 1.")
        for name in ("workers", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 1 or more.")


class References:
    """The references of a class, each read once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.of_class = read_class(folder)

    @cached_property
    def first(self) -> tuple[Manifest, dict[str, dict[str, Any]]]:
        """The common one, or that of the first student: all have the same questions."""
        return read_reference(self.folder, next(iter(self.of_class.students), ""))

    def of(self, student: str) -> tuple[Manifest, dict[str, dict[str, Any]]]:
        """The one that a student is graded by.

        Raises:
            ValueError: if there is none for this student.
        """
        return read_reference(self.folder, student) if self.of_class.personal else self.first


@dataclass(frozen=True)
class Task:
    """One student's row, and the key of the verdict; none for what could not be read."""

    row: Submission | Rejected
    key: str = ""


# --- what there is to grade ----------------------------------------------------------------


def read_rows(batch: Batch, references: References) -> list[Submission | Rejected]:
    """Read all submissions, ordered by student; a shard reads them all too."""
    manifest, _ = references.first
    here = environment_now()
    if dict(manifest.environment) != here:
        other = [
            f"{name} {here.get(name, 'absent')} (baked with {manifest.environment.get(name)})"
            for name in {**here, **manifest.environment}
            if here.get(name) != manifest.environment.get(name)
        ]
        raise ValueError(
            f"the reference was baked in another environment: {', '.join(other)}; expected the "
            "same one, since numbers may print otherwise. Bake it again here."
        )
    rows = read_submissions(
        batch.submissions,
        assignment=references.of_class.assignment,
        question_ids=[question.id for question in manifest.questions],
        roster=None if batch.roster is None else read_roster(batch.roster),
    )
    return sorted((known(row, references) for row in rows), key=lambda row: row.student)


def known(row: Submission | Rejected, references: References) -> Submission | Rejected:
    """Reject a student without a personal reference, and say whose copy was handed in."""
    students = references.of_class.students
    if isinstance(row, Rejected) or not references.of_class.personal:
        return row
    if row.student in students:
        if row.built_for == row.student or row.built_for not in students:
            return row
        words = f"this copy was made for {row.built_for}: its personal questions are not yours"
        return replace(row, notes=(*row.notes, words))
    return Rejected(
        student=row.student,
        name=row.name,
        source=row.source,
        sha256=row.sha256,
        reason="There is no personal reference for this id. Is it in the roster that was baked?",
    )


class Session:
    """One run: what does not change while it lasts.

    Args:
        batch: what, and how.
        isolation: the sandbox.
        build: folder of the package as students have it.
        references: of the class.
        on_result: called with each result that is on the disk.
    """

    def __init__(
        self,
        batch: Batch,
        isolation: Isolation,
        build: Path,
        references: References,
        on_result: Callable[[Result], None],
    ):
        self.batch, self.isolation, self.build = batch, isolation, build
        self.references, self.on_result = references, on_result
        self.stop = threading.Event()
        self.environment = digest(environment_now())
        self.surroundings = {
            "version": VERSION,
            "environment": self.environment,
            "build": tree_sha256(build),
            "isolation": isolation.name,
            "limits": asdict(batch.limits),
        }
        hidden = [batch.reference, batch.out, *batch.submissions, *filter(None, [batch.roster])]
        hidden += [ROOT / name for name in NEVER_SHOWN]
        self.secret = tuple(path.resolve() for path in hidden if path.exists())

    def prepare(self, row: Submission) -> tuple[Manifest, Transplanted]:
        """Put the answers of a student into the reference."""
        manifest, notebooks = self.references.of(row.student)
        return manifest, transplant(row, manifest, notebooks)

    def task(self, row: Submission | Rejected) -> Task:
        """Find the key of a row."""
        return Task(row) if isinstance(row, Rejected) else Task(row, self.key(*self.prepare(row)))

    def key(self, manifest: Manifest, transplanted: Transplanted) -> str:
        """Hash all that a verdict depends on."""
        answers = {"parts": transplanted.parts, "absent": transplanted.absent}
        reference = {"reference": reference_sha256(manifest)}
        return digest({**self.surroundings, **answers, **reference})

    def prove(self) -> None:
        """Grade the reference's own answers: where they lose points, honest students would too.

        Raises:
            ValueError: if they do not get all points here.
        """
        manifest, notebooks = self.references.first
        transplanted = Transplanted(parts=notebooks)
        key = self.key(manifest, transplanted)
        job = self.job("the reference", manifest, transplanted)
        result = self.cached(key)
        for _ in range(1 + TRIES):
            if result is None or result.status == "infrastructure-error":
                result = self.verdict(job, self.run_jobs([job])[0])
        assert result is not None
        if result.status != "graded" or result.points < result.max_points:
            lost = [
                f"{question.title} ({check.title})"
                for question in result.questions
                for check in question.checks
                if not check.passed
            ]
            raise ValueError(
                f"the reference's own answers do not get all points here: "
                f"{result.reason or few(lost)}; expected {result.max_points:g} points. Bake "
                "it again on this machine, and look at what `grade doctor` says."
            )
        self.keep(key, result)

    def job(self, student: str, manifest: Manifest, transplanted: Transplanted) -> Job:
        """Make what is handed to the trusted process."""
        return Job(
            student=student,
            manifest=manifest,
            transplanted=transplanted,
            build=self.build,
            secret=self.secret,
        )

    def run(self, tasks: Sequence[Task]) -> list[Result]:
        """Grade a chunk in one trusted process; called in threads, so it writes nothing."""
        jobs: list[Job] = []
        same: list[bool] = []
        for task in tasks:
            if isinstance(task.row, Submission):
                prepared = self.prepare(task.row)
                jobs.append(self.job(task.row.student, *prepared))
                same.append(self.key(*prepared) == task.key)
        ran = self.run_jobs(jobs)
        twice = InfrastructureError("the file was read twice and not in the same way; grade again")
        return [
            self.verdict(job, each if ok else twice)
            for job, each, ok in zip(jobs, ran, same, strict=True)
        ]

    def run_jobs(self, jobs: Sequence[Job]) -> Sequence[Ran | InfrastructureError]:
        """Run notebooks; no student pays for an error of the grader itself."""
        limits = self.batch.limits
        try:
            return run_jobs(jobs, isolation=self.isolation, limits=limits, stop=self.stop)
        except Exception as error:
            return [InfrastructureError(f"{type(error).__name__}: {error}")] * len(jobs)

    def verdict(self, job: Job, ran: Ran | InfrastructureError) -> Result:
        """Turn what became of a job into points that are nobody's yet."""
        if isinstance(ran, InfrastructureError):
            return Result(
                student="",
                assignment=job.manifest.assignment,
                status="infrastructure-error",
                reason=" ".join(excerpt(str(ran)).split())[:MAX_REASON],
                max_points=round(job.manifest.points, 4),
                seed=job.manifest.seed,
            )
        result = judge_submission(
            job.manifest, job.transplanted, ran.cells, timed_out=ran.timed_out
        )
        return replace(result, notes=ran.notes, seconds=round(ran.seconds, 1))

    # --- what is kept ----------------------------------------------------------------------

    def cached(self, key: str) -> Result | None:
        """Find the verdict on the same answers; a damaged file counts as none."""
        if self.batch.again:
            return None
        try:
            return from_text(self.cache_file(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def cache_file(self, key: str) -> Path:
        """Say where a verdict is kept."""
        return self.batch.out / "cache" / f"{key}.json"

    def keep(self, key: str, result: Result) -> None:
        """Write a verdict down, so that no later run has to find it again."""
        if result.status != "infrastructure-error":
            write_whole(self.cache_file(key), to_text(result))

    def finish(self, task: Task, result: Result) -> Result:
        """Give a verdict its student, and write it down."""
        result = self.dressed(task, result)
        write_result(self.batch.out / "results", result)
        self.on_result(result)
        return result

    def dressed(self, task: Task, result: Result) -> Result:
        """Give a verdict its student."""
        row = task.row
        common = {"student": row.student, "name": row.name, "source": row.source}
        if isinstance(row, Rejected):
            return replace(result, **common, submission_sha256=row.sha256)
        manifest, transplanted = self.prepare(row)
        return replace(
            result,
            **common,
            submission_sha256=row.sha256,
            notes=(*row.notes, *transplanted.notes, *result.notes),
            reference_sha256=reference_sha256(manifest),
            environment=self.environment[:12],
            isolation=self.isolation.name,
            key=task.key,
        )

    def refused(self, row: Rejected) -> Result:
        """Turn what could not be read into a row of the gradebook."""
        manifest, _ = self.references.first
        return Result(
            student="",
            assignment=manifest.assignment,
            status="missing" if row.missing else "rejected",
            reason=row.reason,
            max_points=round(manifest.points, 4),
            seed=manifest.seed,
        )


# --- the run -------------------------------------------------------------------------------


def grade(
    batch: Batch,
    *,
    on_plan: Callable[[int], None] = lambda count: None,
    on_result: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Grade all that this shard holds; each result is written as soon as it is known.

    Args:
        batch: what, and how.
        on_plan: called with the number of students of this shard.
        on_result: called after each result is on the disk, from the calling thread.

    Returns:
        The results of this shard, ordered by student.

    Raises:
        ValueError: if reference, roster or submissions cannot be used, if files of an earlier run
            are gone, or if the reference's own answers do not get all points on this machine.
        IsolationMissing: if there is no sandbox here.
    """
    isolation = choose(batch.isolation)
    references = References(batch.reference)
    rows = read_rows(batch, references)
    with tempfile.TemporaryDirectory(prefix=prefix_of(os.getpid())) as place:
        student_build(references.first[0], Path(place))
        session = Session(batch, isolation, Path(place), references, on_result)
        session.prove()
        tasks = [session.task(row) for row in rows]
        refuse_lost(batch.out, tasks)
        write_plan(batch.out, references.first[0], tasks)
        i, n = batch.shard
        mine = tasks[i - 1 :: n]
        on_plan(len(mine))
        return sorted(finished(session, mine), key=lambda result: result.student)


def finished(session: Session, tasks: Iterable[Task]) -> Iterator[Result]:
    """Give the result of each task: what is known already first."""
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        if isinstance(task.row, Rejected):
            yield session.finish(task, session.refused(task.row))
        elif result := session.cached(task.key):
            yield session.finish(task, result)
        else:
            waiting.setdefault(task.key, []).append(task)
    # Equal keys, equal verdicts: the same answers are run once.
    for task, result in graded(session, [each[0] for each in waiting.values()]):
        session.keep(task.key, result)
        for each in waiting[task.key]:
            yield session.finish(each, result)


def graded(session: Session, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """Run tasks in chunks; those on which the machine failed once more, each alone."""
    failed = []
    for task, result in pooled(session, tasks, session.batch.chunk):
        if result.status == "infrastructure-error":
            failed.append((task, result))
        else:
            yield task, result
    for number in range(TRIES):
        again, failed = failed, []
        for task, result in pooled(session, [task for task, _ in again], 1):
            if result.status == "infrastructure-error" and number < TRIES - 1:
                failed.append((task, result))
            else:
                yield task, result


def pooled(session: Session, tasks: Sequence[Task], size: int) -> Iterator[tuple[Task, Result]]:
    """Run chunks side by side; what is ready comes at once, in whatever order.

    When this ends early, by Ctrl-C or an error, the processes end with it.
    """
    pool = ThreadPoolExecutor(session.batch.workers)
    chunks: dict[Future[list[Result]], Sequence[Task]] = {}
    for start in range(0, len(tasks), size):
        chunk = tasks[start : start + size]
        chunks[pool.submit(session.run, chunk)] = chunk
    open_ones = set(chunks)
    try:
        while open_ones:
            ready, _ = wait(open_ones, return_when=FIRST_COMPLETED)
            for future in ready:
                open_ones.remove(future)
                yield from zip(chunks[future], future.result(), strict=True)
    finally:
        if open_ones:
            session.stop.set()
        pool.shutdown(cancel_futures=True)


# --- who belongs to the batch --------------------------------------------------------------


def write_plan(out: Path, manifest: Manifest, tasks: Sequence[Task]) -> None:
    """Write down whose results there must be, so that none can be missing unnoticed."""
    students = [
        {"student": task.row.student, "name": task.row.name, "key": task.key} for task in tasks
    ]
    plan = {
        "version": VERSION,
        "assignment": manifest.assignment,
        "max_points": round(manifest.points, 4),
        "students": students,
    }
    write_whole(out / "batch.json", json.dumps(plan, indent=1) + "\n")


def refuse_lost(out: Path, tasks: Sequence[Task]) -> None:
    """Keep a run with the late files only from turning all others into missing ones.

    Raises:
        ValueError: if a student handed in before, and now nothing is there.
    """
    if not (out / "batch.json").exists():
        return
    here = {
        task.row.student
        for task in tasks
        if isinstance(task.row, Submission) or not task.row.missing
    }
    before = [each["student"] for each in read_plan(out)["students"] if each["key"]]
    lost = [student for student in before if student not in here]
    if lost:
        whose = "1 student" if len(lost) == 1 else f"{len(lost)} students"
        raise ValueError(
            f"no file now of {whose} of the last run ({few(lost)}); expected all "
            f"files of the class each time. Give them all, what did not change is not run again; "
            f"or delete {out / 'batch.json'} if they are to go."
        )


def read_plan(out: Path) -> dict[str, Any]:
    """Read whose results there must be.

    Raises:
        ValueError: if no run was started with this folder.
    """
    try:
        plan = json.loads((out / "batch.json").read_text(encoding="utf-8"))
        if plan["version"] != VERSION:
            raise ValueError("another version wrote it")
        {(each["student"], each["name"], each["key"]) for each in plan["students"]}
        return plan
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{out} holds no run ({error}); expected the folder that was given as --out. Grade "
            "first."
        ) from None


def collect(folders: Sequence[Path]) -> list[Result]:
    """Read the results of all shards, and say which are not there yet.

    Args:
        folders: what was given as `out` to each run; one, if the shards share it.

    Returns:
        A result for each student of the batch, ordered; `infrastructure-error` where none was
        written, or where it belongs to older answers or to another reference.

    Raises:
        ValueError: if the folders do not belong to the same batch.
    """
    plans = [read_plan(folder) for folder in folders]
    for folder, plan in zip(folders, plans, strict=True):
        if plan != plans[0]:
            raise ValueError(
                f"{folders[0]} and {folder} belong to different batches; expected the shards of "
                "one. Run each with the same submissions, roster and reference."
            )
    wanted = {each["student"]: each for each in plans[0]["students"]}
    found: dict[str, Result] = {}
    for result in read_results(folder / "results" for folder in folders):
        if is_current(result, wanted):
            found[result.student] = one_of(found.get(result.student, result), result)
    return [found.get(name) or no_result(plans[0], wanted[name]) for name in sorted(wanted)]


def one_of(first: Result, second: Result) -> Result:
    """Choose between two results of a student, where folders overlap.

    Raises:
        ValueError: if they are two verdicts.
    """
    if first.status == "infrastructure-error" or replace(first, seconds=0) == replace(
        second, seconds=0
    ):
        return second
    if second.status == "infrastructure-error":
        return first
    raise ValueError(
        f"two folders disagree about {first.student}; expected one verdict for each student. "
        "Delete the one that you do not trust, or grade this student --again."
    )


def is_current(result: Result, wanted: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a result belongs to the batch as it is now."""
    return result.student in wanted and wanted[result.student]["key"] == result.key


def no_result(plan: Mapping[str, Any], student: Mapping[str, str]) -> Result:
    """Stand for a result that is not there."""
    return Result(
        student=student["student"],
        name=student["name"],
        assignment=plan["assignment"],
        status="infrastructure-error",
        reason="There is no result yet: the run that holds it has not ended.",
        max_points=plan["max_points"],
    )


def few(names: Sequence[str]) -> str:
    """List names, and only count them from the fourth on."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


# --- hashes --------------------------------------------------------------------------------


def digest(plain: Any) -> str:
    """Hash plain data."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True)
    return sha256(text.encode("ascii")).hexdigest()


def tree_sha256(folder: Path) -> str:
    """Hash the files of a folder, names and bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return digest(
        {
            path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
            for path in files
        }
    )
