"""What do the outcomes of cells come to? Points, and the name of the mistake; when in doubt, none.

A check gives its points only if its cell ran and its text equals the stored one. The cells that
ran must be the cells of the graded notebooks, no more and no fewer; else nothing is scored, and
the row says so.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ppo_lessons.checks.words import GENERAL
from ppo_lessons.grading.cell_text import parse_code
from ppo_lessons.grading.items.questions import asked
from ppo_lessons.grading.transplant import holds_nothing
from ppo_lessons.grading.types import (
    CellOutcome,
    CheckResult,
    Manifest,
    Question,
    QuestionResult,
    Result,
    Transplanted,
)

Outcomes = Mapping[str, Mapping[str, CellOutcome]]

MAX_LINES, MAX_WIDTH, MAX_TEXT = 30, 200, 100_000  # of a student's traceback
MAX_TOLD = 1000  # characters of a line that names a mistake
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)

# The sentences about any answer, where they would quote it: a grader quotes no hidden input.
WITHOUT_DETAIL = {
    "not_a_function": "The name does not hold a function.",
    "wrong_signature": "It cannot be called as the task says. Keep the line with `def` as it "
    "stood.",
    "raises": "It stops with an error. Run the check of your notebook to see which.",
    "too_slow": "It takes too long. Is there a loop that never ends?",
    "wrong_type": "It returns something else than the task asks for.",
    "wrong_dtype": "Its numbers are of another kind than the task asks for.",
    "wrong_shape": "Its result has another shape than the task asks for.",
    "changes_its_inputs": "It changes an input in place. The caller still needs those numbers.",
    "gradient_lost": "The numbers are right, and no gradient reaches the inputs: somewhere the "
    "result was cut off from them (.item(), .detach(), torch.tensor(...), numpy, no_grad).",
    "gradient_into_constants": "The numbers are right, and a gradient flows into constants, as "
    "the task calls them. Detach each of them.",
    "constant_factor": "Every number is the same number of times the right one.",
    "name_missing": "It uses a name that its cell does not define. An answer cell holds all that "
    "it needs, imports included.",
    "not_exact_enough": "You are near, and not near enough: compute with more digits.",
}


def judge_submission(
    manifest: Manifest,
    transplanted: Transplanted,
    outcomes: Outcomes,
    *,
    timed_out: bool = False,
) -> Result:
    """Turn outcomes into points.

    Args:
        manifest: of the reference.
        transplanted: the notebooks that were run.
        outcomes: by part, then by cell id.
        timed_out: whether a notebook was given up because its time was over.

    Returns:
        A result that carries no student's name yet: `graded`, `timeout`, or
        `infrastructure-error` if the cells are not those that were expected.
    """
    blank = Result(
        student="",
        assignment=manifest.assignment,
        status="infrastructure-error",
        max_points=round(manifest.points, 4),
        seed=manifest.seed,
    )
    problem = next(problems(manifest, transplanted, outcomes), "")
    if problem:
        return replace(blank, reason=problem)
    questions = tuple(
        judge_question(
            question,
            outcomes[question.part],
            question.id in transplanted.absent,
            untouched=is_untouched(source_of(transplanted, question), question.name),
        )
        for question in manifest.questions
    )
    cut = any(each.state == "absent" for cells in outcomes.values() for each in cells.values())
    late = timed_out or cut
    stopped = "Your notebook was stopped before its end; what had passed counts."
    return replace(
        blank,
        status="timeout" if late else "graded",
        reason=stopped if late else "",
        points=round(sum(each.points for each in questions), 4),
        questions=questions,
    )


def problems(manifest: Manifest, transplanted: Transplanted, outcomes: Outcomes) -> Iterator[str]:
    """Say why outcomes cannot be scored: another set of cells, or a set-up that failed."""
    if not set(manifest.parts) == set(transplanted.parts) == set(outcomes):
        yield "the notebooks that ran are not those of the reference"
        return
    for part, notebook in transplanted.parts.items():
        cells = [cell["id"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        wanted = [
            cell for each in manifest.questions if each.part == part for cell in cells_of(each)
        ]
        if len({*cells}) < len(cells) or len({*wanted}) < len(wanted) or {*wanted} - {*cells}:
            yield f"the notebook {part} does not hold the cells of its manifest, each once"
        elif set(outcomes[part]) != set(cells):
            yield f"the cells that ran are not the cells of the notebook {part}"
        elif cells and cells[0] not in wanted and outcomes[part][cells[0]].state != "passed":
            yield f"the first cell of the notebook {part}, which is the grader's own, did not run"


def cells_of(question: Question) -> list[str]:
    """List the cells that a question needs."""
    tell = [question.tell] if question.tell else []
    return [question.answer, *tell, *(check.cell for check in question.checks)]


def judge_question(
    question: Question, cells: Mapping[str, CellOutcome], absent: bool, *, untouched: bool = False
) -> QuestionResult:
    """Turn the outcomes of one question into its points."""
    checks = tuple(
        CheckResult(
            title=check.title,
            hidden=check.hidden,
            passed=cells[check.cell].state == "passed",
            points=check.points if cells[check.cell].state == "passed" else 0.0,
            max_points=check.points,
        )
        for check in question.checks
    )
    answer = cells[question.answer]
    notes = ["No cell of yours was found for it."] if absent else []
    if question.builds_on:
        notes.append(
            f"It was checked with the course's answers to {', '.join(question.builds_on)}."
        )
    error = "" if absent or answer.state == "passed" else excerpt(answer.said)
    told = "" if absent or all(check.passed for check in checks) else mistake_told(question, cells)
    if question.tell is None and untouched and not (absent or any(c.passed for c in checks)):
        told = "not_written"  # a personal question has no cell that would say so
    return QuestionResult(
        id=question.id,
        title=question.title,
        points=round(sum(check.points for check in checks), 4),
        max_points=round(question.points, 4),
        checks=checks,
        mistake="" if error and told == "not_written" else told,  # it was written, and it stopped
        error=error,
        notes=tuple(notes),
    )


def source_of(transplanted: Transplanted, question: Question) -> str:
    """Read the answer cell of a question; empty if there is none."""
    cells = transplanted.parts[question.part]["cells"]
    return "".join(next((c["source"] for c in cells if c.get("id") == question.answer), ""))


def is_untouched(source: str, name: str) -> bool:
    """Whether an answer still is what was handed out, as its text tells.

    Args:
        source: of the answer cell.
        name: that it defines.

    Returns:
        Whether the last definition of the name is a function that returns nothing and ends with
        the line that raises NotImplementedError, or None, or a dict or row of None.
    """
    tree = parse_code(source)
    for statement in reversed(tree.body if tree else ()):
        match statement:
            case ast.FunctionDef(name=found, body=lines) if found == name:
                returns = any(isinstance(each, ast.Return) for each in ast.walk(statement))
                return not returns and is_stub(lines[-1])
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return holds_nothing(value)
    return False


def is_stub(statement: ast.stmt) -> bool:
    """Whether a line is the one that the hand-out has in place of an answer."""
    match statement:
        case ast.Raise(
            exc=ast.Call(func=ast.Name(id="NotImplementedError"), args=[ast.Constant(value=words)])
        ):
            return isinstance(words, str) and words.startswith("exercise")
    return False


def mistake_told(question: Question, cells: Mapping[str, CellOutcome]) -> str:
    """Read the name of the mistake; the kernel is the student's, so only a known one counts."""
    if question.tell is None or cells[question.tell].state != "passed":
        return ""
    said = cells[question.tell].said
    try:
        name = json.loads(said[:MAX_TOLD])["mistake"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return name if isinstance(name, str) and sentence_of(question.id, name) else ""


def sentence_of(question: str, mistake: str) -> str:
    """Say what the course knows about a mistake; empty if it knows no such name.

    Args:
        question: id of the exercise.
        mistake: its name.

    Returns:
        One or two sentences.
    """
    try:
        own = asked(question).mistakes
    except ValueError:
        own = {}
    return own.get(mistake) or WITHOUT_DETAIL.get(mistake) or GENERAL.get(mistake, "")


def excerpt(text: str) -> str:
    """Cut text of a student down to what a page can hold; nothing invisible stays in it.

    Args:
        text: untrusted.

    Returns:
        At most 30 lines of 200 characters.
    """
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{text[-MAX_TEXT // 2 :]}"
    plain = INVISIBLE.sub("", ESCAPES.sub("", text.expandtabs(4)))
    lines = [line.rstrip()[:MAX_WIDTH] for line in plain.strip("\n").split("\n")]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 11], "...", *lines[-10:]]
    return "\n".join(lines)
