"""A tiny assignment, made by hand: two questions, a build of three lines, texts by mental sums."""

from pathlib import Path

from ppo_lessons.grading.run import InfrastructureError, Job, Ran
from ppo_lessons.grading.types import CheckCell, Manifest, Question, Transplanted

DOUBLE = "def double(x):\n    return 2 * x"
TRIPLE = "def triple(x):\n    return 3 * x"
PRINTED = {
    "v-double": "2.0\n4.0\n",
    "v-triple": "3.0\n6.0\n",
    "h-double": "15.0\n-18.0\n",
    "h-triple": "22.5\n-27.0\n",
}
TOY = """
def ask(answer, *inputs):
    for x in inputs:
        try:
            print(round(float(answer(x)), 4))
        except Exception:
            print("raises")


def tell(answer):
    print('{"mistake": "%s"}' % getattr(answer, "__name__", None))
"""


def make_build(folder: Path) -> Path:
    """Write the package that the kernel finds."""
    (folder / "ppo_lessons").mkdir(parents=True)
    (folder / "ppo_lessons" / "__init__.py").write_text("")
    (folder / "ppo_lessons" / "toy.py").write_text(TOY)
    return folder


def code(cell: str, source: str, printed: str | None = None) -> dict:
    """Make a code cell; one that was run if it printed something."""
    stream = {"output_type": "stream", "name": "stdout", "text": printed}
    return {
        **{"cell_type": "code", "id": cell, "metadata": {}, "source": source},
        "outputs": [] if printed is None else [stream],
        "execution_count": None if printed is None else 1,
    }


def question(name: str) -> Question:
    """Make a question: 2 points for what is visible, 8 for what is hidden."""
    return Question(
        id=f"toy.{name}",
        name=name,
        title=name,
        answer=f"a-{name}",
        tell=f"t-{name}",
        checks=(
            CheckCell(cell=f"v-{name}", title="small numbers", points=2, hidden=False),
            CheckCell(cell=f"h-{name}", title="other numbers", points=8, hidden=True),
        ),
    )


QUESTIONS = (question("double"), question("triple"))


def notebook(double: str = DOUBLE, triple: str = TRIPLE, printed: dict | None = None) -> dict:
    """Make the reference notebook with a student's answers in it."""
    texts = PRINTED | (printed or {})
    cells = [
        {"cell_type": "markdown", "id": "words", "metadata": {}, "source": "# Toy"},
        code("setup", "from ppo_lessons.toy import ask, tell"),
        code("a-double", double),
        code("a-triple", triple),
    ]
    for stage, call in (
        ("t", "tell(globals().get({!r}))"),
        ("v", "ask(globals().get({!r}), 1, 2)"),
        ("h", "ask(globals().get({!r}), 7.5, -9)"),
    ):
        for name in ("double", "triple"):
            cells.append(code(f"{stage}-{name}", call.format(name), texts.get(f"{stage}-{name}")))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def job(build: Path, *, forbid=(), parts: dict | None = None, **answers) -> Job:
    """Make a job of one student."""
    parts = parts or {"main": notebook(**answers)}
    manifest = Manifest(
        assignment="toy",
        title="Toy",
        seed=1,
        parts=dict.fromkeys(parts, ""),
        questions=QUESTIONS,
        forbid=forbid,
    )
    return Job(
        student="someone",
        manifest=manifest,
        transplanted=Transplanted(parts=parts),
        build=build,
    )


def points(result: Ran | InfrastructureError) -> float:
    """Add up what the checks give; an error is raised."""
    if isinstance(result, InfrastructureError):
        raise result
    cells = result.cells["main"]
    checks = [check for each in QUESTIONS for check in each.checks]
    return sum(check.points for check in checks if cells[check.cell].state == "passed")
