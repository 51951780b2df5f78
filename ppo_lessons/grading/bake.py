"""What are answers held to? A reference, baked on the machine that grades.

    bake("04_clip", Path("../reference"), seed=48151)

A reference notebook holds the solutions, cells that ask them, and as stored outputs what they
print. It lies outside of the project, readable by its owner only:

    reference/class.json                     assignment, whether it is personal, folder by student
    reference/common/manifest.json           what may run and what gives points
    reference/common/main.ipynb              setup, answers, check cells, hidden ones last
    reference/common/<question>.ipynb        a question that builds on others, with their solutions
    reference/students/<student>/...         the same, if it is personal
"""

import ast
import contextlib
import hashlib
import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ppo_lessons.checks.exercises import FunctionExercise, HashedExercise
from ppo_lessons.grading.ask import margin_ok
from ppo_lessons.grading.build import (
    ROOT,
    Assignment,
    Task,
    check_students,
    code_cell,
    lesson_of,
    notebook_of,
    notebook_text,
    read_assignment,
    with_items,
)
from ppo_lessons.grading.fresh import stages_of
from ppo_lessons.grading.items.deal import personal_items, read_secret
from ppo_lessons.grading.manifest import (
    CLASS,
    COMMON,
    ClassReference,
    environment_now,
    read_class,
    write_class,
    write_reference,
)
from ppo_lessons.grading.sources import BuildError
from ppo_lessons.grading.student_build import forbidden
from ppo_lessons.grading.types import MAIN, CheckCell, Manifest, Question

POINTS, VISIBLE = 10.0, 2.0
TRIES = 5000  # most stages need ten, the one with most numbers some hundreds
# Short names with a line below in front: a student may well have an `ask` of their own.
SETUP = (
    "# what the checks below call\n"
    "from ppo_lessons.grading.ask import ask as _ask\n"
    "from ppo_lessons.grading.ask import ask_hashed as _ask_hashed\n"
    "from ppo_lessons.grading.ask import tell as _tell"
)
SETUP_ID = "grading-setup"
IGNORED = ("nbval-ignore-output",)


# --- one question --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A check cell, and what it printed for the solution.

    Args:
        check: id, title, points.
        source: of the cell.
        printed: the oracle.
    """

    check: CheckCell
    source: str
    printed: str


@dataclass(frozen=True, kw_only=True)
class Baked:
    """A question with its checks.

    Args:
        task: as its author wrote it.
        question: what the manifest says of it.
        asked: its check cells, in the order of `question.checks`.
    """

    task: Task
    question: Question
    asked: tuple[Asking, ...]


def bake_task(
    task: Task, *, given: Mapping[str, Task], assignment: str, seed: int, student: str = ""
) -> Baked:
    """Run a solution on public and hidden inputs, and keep what it prints.

    Args:
        task: the question.
        given: all questions of the assignment by id, for those that this one builds on.
        assignment: stem of the exercise.
        seed: of the class's hidden inputs.
        student: whose question it is, if it is personal.

    Returns:
        The question with its checks. A stage that the blank passes too gives no points, and is
        left out.

    Raises:
        BuildError: if the solution fails, the blank passes, or a check cell breaks a rule.
    """
    names = run_answer(task, [given[id] for id in task.builds_on], solution=True)
    blank = run_answer(task, [given[id] for id in task.builds_on], solution=False)
    asked = [
        (each, printed)
        for each in askings(task, names, base=f"{seed}/{assignment}/{student}")
        if (printed := run_check(each.source, names)) != run_check(each.source, blank)
    ]
    checks = with_points([each.check for each, _ in asked], task)
    baked = tuple(
        Asking(check=check, source=each.source, printed=printed)
        for check, (each, printed) in zip(checks, asked, strict=True)
    )
    if problems := [words for each in baked for words in lint(each, task)]:
        raise BuildError("\n  ".join([f"{task.exercise.id} cannot be baked:", *problems]))
    name = task.exercise.name
    question = Question(
        id=task.exercise.id,
        name=name,
        title=task.title,
        answer=task.answer.id,
        part=name if task.builds_on else MAIN,
        builds_on=task.builds_on,
        tell=None if task.personal else f"tell-{name}",
        checks=tuple(checks),
    )
    return Baked(task=task, question=question, asked=baked)


def run_answer(task: Task, before: Sequence[Task], *, solution: bool) -> dict[str, Any]:
    """Execute the setup, what the question builds on, and its answer cell.

    Args:
        task: the question.
        before: the questions that it builds on.
        solution: whether the solution is executed, or the blank.

    Returns:
        The names of that notebook.

    Raises:
        BuildError: if the solution fails.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    sources = [SETUP, *(each.solution for each in before)]
    for source in [*sources, task.solution if solution else task.blank]:
        try:
            execute(source, names, task.exercise.id)
        except Exception as error:
            if solution:
                words = f"{type(error).__name__}: {error}"
                raise BuildError(f"{task.exercise.id}: the solution fails ({words})") from error
    return names


def execute(source: str, names: dict[str, Any], label: str) -> str:
    """Run a cell of the course's own, and give what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, f"<{label}>", "exec"), names)
    return printed.getvalue()


def run_check(source: str, names: dict[str, Any]) -> str:
    """Run a check cell, and give what it prints."""
    return execute(source, names, "check")


def askings(task: Task, names: Mapping[str, Any], *, base: str) -> Iterable[Asking]:
    """List the check cells of a question, the visible one first; their points are still open.

    Args:
        task: the question.
        names: what its solution defined.
        base: what makes the seeds those of this class.

    Raises:
        BuildError: if no seed of a stage keeps its values away from the edges of rounding.
    """
    exercise, name = task.exercise, task.exercise.name
    call = f'"{exercise.id}", globals().get("{name}")'
    if isinstance(exercise, HashedExercise):
        for letter, (words, _) in exercise.questions.items():
            source = f'_ask_hashed({call}, letter="{letter}")'
            yield asking(f"check-{name}-{letter}", f"{letter}: {words}", source, hidden=False)
        return
    assert isinstance(exercise, FunctionExercise)
    if not task.personal:
        yield asking(f"check-{name}", "the cases that you can see", f"_ask({call})", hidden=False)
    for number, stage in enumerate(stages_of(exercise), 1):
        seed = seed_with_margin(exercise, names.get(name), stage, base=base)
        source = f'_ask({call}, stage="{stage}", seed={seed})'
        yield asking(f"hidden-{name}-{number}", f"{stage}, other inputs", source, hidden=True)


def asking(cell: str, title: str, source: str, *, hidden: bool) -> Asking:
    """Make a check cell that has not been run."""
    check = CheckCell(cell=cell[:64], title=title, points=0.0, hidden=hidden)
    return Asking(check=check, source=f"# {title}\n{source}", printed="")


def seed_with_margin(exercise: FunctionExercise, answer: Any, stage: str, *, base: str) -> int:
    """Draw a seed until right answers print one text on every machine.

    Raises:
        BuildError: if none does.
    """
    for attempt in range(TRIES):
        words = f"{base}/{exercise.id}/{stage}/{attempt}"
        seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:6]) % 900_000_000
        try:
            if margin_ok(exercise, answer, stage=stage, seed=100_000_000 + seed):
                return 100_000_000 + seed
        except ValueError as error:
            raise BuildError(f"{exercise.id}: {error}") from error
    raise BuildError(
        f"{exercise.id}: no seed in {TRIES} keeps the values of stage {stage!r} off the edges of "
        "rounding. Fewer or smaller numbers in its cases help."
    )


def with_points(checks: Sequence[CheckCell], task: Task) -> list[CheckCell]:
    """Share out the points: a fifth for what can be seen, the rest over what cannot.

    Raises:
        BuildError: if the blank passes every check, or all hidden ones.
    """
    hidden = [check for check in checks if check.hidden]
    seen = [check for check in checks if not check.hidden]
    needs_hidden = isinstance(task.exercise, FunctionExercise)
    if not checks or (needs_hidden and not hidden) or (not task.personal and not seen):
        raise BuildError(f"{task.exercise.id}: the blank passes; a check must tell it from answers")
    for_seen = VISIBLE if hidden and seen else 0.0 if hidden else POINTS
    shares = iter(
        [
            *shared(for_seen, len(seen)),
            *shared(POINTS - for_seen, len(hidden)),
        ]
    )
    return [replace(check, points=next(shares)) for check in (*seen, *hidden)]


def shared(points: float, count: int) -> list[float]:
    """Share points out in hundredths, so that they add up."""
    if not count:
        return []
    low, left = divmod(round(100 * points), count)
    return [(low + (i >= count - left)) / 100 for i in range(count)]


# --- rules for check cells -----------------------------------------------------------------

CALLED = ("_ask", "_ask_hashed")
NUMBER = re.compile(r"-?\d+\.\d{2,}|\d{5,}")


def lint(asked: Asking, task: Task) -> list[str]:
    """Say which rules a check cell breaks.

    It is a comment and one call with constants; it holds nothing of what it prints, and its title
    names no input.

    Args:
        asked: the cell.
        task: its question.

    Returns:
        One sentence per problem.
    """
    cell, problems = asked.check.cell, []
    lines = [line for line in asked.source.splitlines() if line.strip()]
    code = [line for line in lines if not line.lstrip().startswith("#")]
    if len(code) != 1 or len(lines) > 2:
        problems.append(f"{cell} has {len(code)} lines of code; expected a comment and one line")
    problems += [f"{cell}: {words}" for words in call_problems(asked.source)]
    numbers = set(NUMBER.findall(asked.printed))
    if held := sorted(number for number in numbers if number in asked.source):
        problems.append(f"{cell} holds what it is to print: {', '.join(held)}")
    if not asked.printed.strip():
        problems.append(f"{cell} prints nothing, so nothing is compared")
    if asked.check.hidden:
        problems += [f"{cell}: {words}" for words in title_problems(asked.check.title, task)]
        if "seed=" not in asked.source:
            problems.append(f"{cell} is hidden and has no seed; it would ask the public cases")
    return problems


def call_problems(source: str) -> list[str]:
    """Say what else than one call of `_ask` a cell does."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        return [f"is no Python: {error.msg}"]
    if (
        len(body) != 1
        or not isinstance(body[0], ast.Expr)
        or not isinstance(body[0].value, ast.Call)
    ):
        return ["does something else than to ask; an assert or a comparison gives the answer away"]
    call = body[0].value
    if not isinstance(call.func, ast.Name) or call.func.id not in CALLED:
        return [f"calls {ast.unparse(call.func)}; expected one of {', '.join(CALLED)}"]
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    others = [value for value in values if not isinstance(value, ast.Constant)]
    if any(not re.fullmatch(r"globals\(\)\.get\('\w+'\)", ast.unparse(each)) for each in others):
        return ["passes more than constants and the answer"]
    return []


def title_problems(title: str, task: Task) -> list[str]:
    """Say how the title of a hidden check gives an input away."""
    if re.search(r"[1-9]|\d[\d.]", title):
        return [f"its title {title!r} holds a number"]
    cases = task.exercise.cases if isinstance(task.exercise, FunctionExercise) else ()
    stages = {case.stage for case in cases}
    named = [case.name for case in cases if case.name in title and case.name not in stages]
    return [f"its title {title!r} names the case {named[0]!r}"] if named else []


# --- notebooks -----------------------------------------------------------------------------


def compose_parts(
    baked: Sequence[Baked], given: Mapping[str, Task], *, assignment: str
) -> dict[str, dict[str, Any]]:
    """Put the notebooks of a reference together.

    Args:
        baked: the questions.
        given: all questions by id.
        assignment: stem of the exercise.

    Returns:
        Notebooks by part: setup, what the questions build on, answers, then what tells mistakes
        and visible checks, hidden checks last.
    """
    parts = dict.fromkeys([MAIN, *(each.question.part for each in baked)])
    return {
        part: compose_part(
            [each for each in baked if each.question.part == part], given, part, assignment
        )
        for part in parts
    }


def compose_part(
    baked: Sequence[Baked], given: Mapping[str, Task], part: str, assignment: str
) -> dict[str, Any]:
    """Put one notebook together."""
    needed = dict.fromkeys(id for each in baked for id in each.question.builds_on)
    cells = [code_cell(SETUP_ID, SETUP)]
    cells += [code_cell(f"given-{given[id].exercise.name}", given[id].solution) for id in needed]
    cells += [
        code_cell(each.question.answer, each.task.solution, {"answer": each.question.id})
        for each in baked
    ]
    number = 0
    for hidden in (False, True):
        for each in baked:
            if not hidden and each.question.tell:
                call = f'"{each.question.id}", globals().get("{each.question.name}")'
                number += 1
                cells.append(
                    code_cell(each.question.tell, f"_tell({call})", tags=IGNORED, number=number)
                )
            for one in each.asked:
                if one.check.hidden == hidden:
                    number += 1
                    cells.append(
                        code_cell(one.check.cell, one.source, number=number, printed=one.printed)
                    )
    return notebook_of(cells, {"assignment": assignment, "part": part})


def rehearse(part: Mapping[str, Any]) -> list[str]:
    """Run a reference notebook from top to bottom, in this process, and compare what it prints.

    Args:
        part: the notebook.

    Returns:
        Ids of the cells that print something else than what is stored.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong = []
    for cell in part["cells"]:
        printed = execute(cell["source"], names, cell["id"])
        stored = "".join(output["text"] for output in cell["outputs"])
        if cell["execution_count"] and "tags" not in cell["metadata"] and printed != stored:
            wrong.append(cell["id"])
    return wrong


# --- references ----------------------------------------------------------------------------


def bake(
    stem: str,
    reference_dir: Path,
    seed: int,
    roster: Iterable[str] | None = None,
    secret: Path | bytes | None = None,
    *,
    root: Path = ROOT,
    on_student: Callable[[str], None] | None = None,
) -> Path:
    """Write the reference of an assignment: solutions, and what they print on hidden inputs.

    Args:
        stem: of the exercise, as `04_clip`.
        reference_dir: an empty or missing folder outside of the project, or an older reference of
            the same assignment, which is replaced.
        seed: of the hidden inputs; the same seed gives the same reference on the same machine.
        roster: ids of students, if the assignment was handed out with personal questions.
        secret: the one that `build_assignment` was given.
        root: the project's root.
        on_student: called after each student's reference is made.

    Returns:
        The folder.

    Raises:
        ValueError: if the folder lies inside the project or holds something else, there is no such
            exercise, or a solution breaks a rule for check cells.
    """
    place = check_place(Path(reference_dir), stem, root=root)
    assignment = read_assignment(stem, root=root)
    students = [] if roster is None else check_students(roster)
    key = read_secret(secret) if students else b""
    tasks = {task.exercise.id: task for task in assignment.tasks}
    common = [bake_task(task, given=tasks, assignment=stem, seed=seed) for task in assignment.tasks]
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as made:
        about = ClassReference(
            assignment=stem,
            personal=bool(students),
            students={student: f"students/{student}" for student in students},
        )
        whole = Path(made) / "reference"
        whole.mkdir(mode=0o700)
        if not students:
            write_one(whole / COMMON, assignment, common, seed=seed)
        for number, student in enumerate(students):
            own = with_items(assignment, personal_items(stem, student, key))
            more = [
                bake_task(task, given=tasks, assignment=stem, seed=seed, student=student)
                for task in own.tasks
                if task.personal
            ]
            write_one(
                whole / about.students[student],
                own,
                [*common, *more],
                seed=seed,
                student=student,
                try_it=number == 0,
            )
            if on_student:
                on_student(student)
        write_class(whole, about)
        if place.exists():
            shutil.rmtree(place)
        whole.rename(place)
    return place


def write_one(
    folder: Path,
    assignment: Assignment,
    baked: Sequence[Baked],
    *,
    seed: int,
    student: str = "",
    try_it: bool = True,
) -> None:
    """Write one manifest and its notebooks.

    Raises:
        BuildError: if a notebook, run as a whole, prints something else than its questions did.
    """
    given = {task.exercise.id: task for task in assignment.tasks}
    parts = compose_parts(baked, given, assignment=assignment.stem)
    if try_it and (wrong := [id for part in parts.values() for id in rehearse(part)]):
        raise BuildError(
            f"{assignment.stem}: in one notebook with the other solutions these cells print "
            f"something else: {', '.join(wrong)}. Do two answers share a helper's name?"
        )
    texts = {part: notebook_text(notebook) for part, notebook in parts.items()}
    manifest = Manifest(
        assignment=assignment.stem,
        title=assignment.title,
        student=student,
        seed=seed,
        forbid=forbidden(lesson_of(assignment.stem)),
        parts={
            part: hashlib.sha256(text.encode("utf-8")).hexdigest() for part, text in texts.items()
        },
        environment=environment_now(),
        questions=tuple(each.question for each in baked),
    )
    write_reference(folder, manifest, texts)


def check_place(reference_dir: Path, stem: str, *, root: Path = ROOT) -> Path:
    """Refuse a folder inside the project, where students' copies come from, or with other things.

    Args:
        reference_dir: where the reference is to lie.
        stem: of the assignment.
        root: the project's root.

    Returns:
        The folder, resolved.

    Raises:
        ValueError: if it is refused.
    """
    place = reference_dir.resolve()
    for inside in (root.resolve(), ROOT):
        if place.is_relative_to(inside) or inside.is_relative_to(place):
            raise ValueError(
                f"the reference may not lie in {place}: it holds the solutions, and the project "
                f"is {inside}. Give a folder outside."
            )
    if place.exists() and not place.is_dir():
        raise ValueError(f"{place} is a file; expected a folder, or nothing.")
    if place.is_dir() and any(place.iterdir()):
        older = read_class(place).assignment if (place / CLASS).exists() else "no reference"
        if older != stem:
            raise ValueError(
                f"{place} holds {older}; expected an empty folder or a reference of {stem}. Give "
                "another folder."
            )
    return place
