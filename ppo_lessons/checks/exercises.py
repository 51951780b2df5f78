"""What is an exercise, a case and a result?

An exercise lists its cases in the order in which they are tried: the smallest first. What a right
answer gives in each of them, and what the usual mistakes give, is data: `data/<lesson>.json`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DATA = Path(__file__).resolve().parent / "data"
CALLABLE, SHAPE = "callable", "type and shape"
SMALLEST, QUADRANTS, EDGES = "smallest case", "quadrants", "edges"
GRADIENTS, SEEDED = "gradients", "seeded cases"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of the learner's function.

    Args:
        stage: which stage it belongs to.
        name: what it is about, in words.
        inputs: nested lists of numbers by argument, given in order.
        options: numbers given by keyword.
        gradients: whether the gradients are compared too.
        dtype: of the inputs.
    """

    stage: str
    name: str
    inputs: Mapping[str, Any]
    options: Mapping[str, float]
    gradients: bool = False
    dtype: torch.dtype = torch.float64

    def tensors(self) -> dict[str, Tensor]:
        """Make fresh inputs; they carry gradients where gradients are compared."""
        return {
            name: torch.tensor(value, dtype=self.dtype, device="cpu", requires_grad=self.gradients)
            for name, value in self.inputs.items()
        }


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What an answer must satisfy.

    Args:
        id: `lesson.exercise`.
        hints: three, each saying more; the last is a line of maths.
        mistakes: one or two sentences for each mistake that is recognised, by its name.
    """

    id: str
    hints: tuple[str, str, str]
    mistakes: Mapping[str, str]

    @property
    def lesson(self) -> str:
        """Name of the lesson."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """Name of the exercise, and of what the learner writes."""
        return self.id.partition(".")[2]


@dataclass(frozen=True, kw_only=True)
class FunctionExercise(Exercise):
    """An exercise whose answer is a function.

    Args:
        cases: what it is called with, in the order of the stages.
        gives: "same shape", "scalar" or "two numbers".
        learns: arguments that the gradient must reach; it must reach no other.
        numbers_of: the id of the exercise with the same cases and mistakes, if there is one.
    """

    cases: tuple[Case, ...]
    gives: str
    learns: tuple[str, ...] = ()
    numbers_of: str = ""

    @property
    def expects(self) -> str:
        """What comes back, in words."""
        return {
            "same shape": "a torch.Tensor of the shape of its inputs",
            "scalar": "one number as a torch.Tensor of shape ()",
            "two numbers": "two numbers, as in `return first, second`",
        }[self.gives]


@dataclass(frozen=True, kw_only=True)
class SignsExercise(Exercise):
    """An exercise whose answer is a sign for each of some questions.

    Args:
        questions: by their letter: the question, and what to look at if the answer is wrong.
    """

    questions: Mapping[str, tuple[str, str]]


@cache
def data_of(lesson: str) -> dict[str, Any]:
    """Read the expected values and the fingerprints of mistakes of one lesson."""
    return json.loads((DATA / f"{lesson}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What the check says about an answer.

    Args:
        exercise: `lesson.exercise`.
        passed: whether every stage passed.
        stage: the first stage that failed; None if none did.
        mistake: the name of the mistake, if it was recognised.
        rows: what is shown, as pairs of a heading and words.
        inputs: what the answer was called with in the case that failed.
    """

    exercise: str
    passed: bool
    stage: str | None = None
    mistake: str | None = None
    rows: tuple[tuple[str, str], ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """The first line."""
        if self.passed:
            return f"✔ {self.exercise}: passed"
        if self.mistake == "not_written":
            return f"· {self.exercise}: not written yet"
        return f"✘ {self.exercise}: not yet (stage: {self.stage})"

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {head:<9} {words}" for head, words in self.rows)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{escape(head)}</th>'
            f'<td style="text-align:left">{escape(words)}</td></tr>'
            for head, words in self.rows
        )
        table = f"<table>{rows}</table>" if rows else ""
        return f"<div><strong>{escape(self.verdict)}</strong>{table}</div>"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a function gave in one case.

    Args:
        problem: the general mistake that kept it from giving numbers.
        detail: what fills the sentence of that mistake.
        shape: of the result.
        values: of the result, flat.
        gradients: of its sum, flat, by argument; None where no gradient arrives.
    """

    problem: str | None = None
    detail: str = ""
    shape: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    gradients: Mapping[str, tuple[float, ...] | None] = field(default_factory=dict)
