"""What is an exercise, a case and a result?

An exercise lists its cases in the order in which they are tried: the smallest first. What a right
answer gives in each of them, and what the usual mistakes give, is data: `data/<lesson>.json`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch import Tensor

DATA = Path(__file__).resolve().parent / "data"
CALLABLE, SHAPE = "callable", "type and shape"
SMALLEST, QUADRANTS, EDGES = "smallest case", "quadrants", "edges"
GRADIENTS, SEEDED = "gradients", "seeded cases"


# --- what a function is called with --------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Made:
    """An argument that is no tensor, made anew for each call.

    Args:
        words: how it is shown.
        make: what makes it.
    """

    words: str
    make: Callable[[], Any]


def seeded(seed: int) -> Made:
    """Give a generator of random numbers with a seed."""
    return Made(
        words=f"a generator with seed {seed}", make=lambda: torch.Generator().manual_seed(seed)
    )


def tables(words: str, **values: Any) -> Made:
    """Give an object with tensors as attributes, such as the tables of an MDP.

    Args:
        words: how it is shown.
        **values: nested lists, which become float64, int64 or bool; anything else stays.
    """

    def make() -> SimpleNamespace:
        made = {
            name: to_tensor(value, torch.float64, only=torch.int64 if whole(value) else None)
            if isinstance(value, list)
            else value
            for name, value in values.items()
        }
        return SimpleNamespace(**made)

    return Made(words=words, make=make)


def leaves(value: Any) -> list[Any]:
    """List the numbers of nested lists."""
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def whole(value: Any) -> bool:
    """Whether nested lists hold whole numbers only."""
    return all(type(leaf) is int for leaf in leaves(value))


def to_tensor(
    value: Any, dtype: torch.dtype, *, only: torch.dtype | None = None, gradient: bool = False
) -> Tensor:
    """Make a tensor of nested lists: yes and no become booleans, numbers are of `only` or `dtype`.

    Args:
        value: nested lists, or one number.
        dtype: of floating-point numbers.
        only: another dtype for this one.
        gradient: whether it carries a gradient, if it is floating-point.
    """
    every = leaves(value)
    if every and all(type(leaf) is bool for leaf in every):
        only = torch.bool
    made = torch.tensor(value, dtype=only or dtype, device="cpu")
    return made.requires_grad_(gradient and made.is_floating_point())


def draw(random: Random, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    """Draw nested lists of numbers with two digits."""
    if not shape:
        return round(random.uniform(low, high), 2)
    return [draw(random, *shape[1:], low=low, high=high) for _ in range(shape[0])]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of the learner's function.

    Args:
        stage: which stage it belongs to.
        name: what it is about, in words.
        inputs: by argument, given in order: nested lists of numbers or of True and False, and
            single numbers, become tensors; `Made`, text and None do not.
        options: given by keyword: lists become tensors, `Made` is made, all else stays.
        integers: arguments whose tensors hold integers.
        constants: arguments that carry no gradient, whether the answer would cut it or not.
        gradients: whether the gradients are compared too.
        dtype: of the inputs that are floating-point.
    """

    stage: str
    name: str
    inputs: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    integers: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    gradients: bool = False
    dtype: torch.dtype = torch.float64

    def arguments(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Make fresh inputs and options; they carry gradients where gradients are compared."""
        inputs = {name: self.made(name, value, number=True) for name, value in self.inputs.items()}
        options = {name: self.made(name, value) for name, value in self.options.items()}
        return inputs, options

    def made(self, name: str, value: Any, *, number: bool = False) -> Any:
        """Make one argument; a single number becomes a tensor if it is an input."""
        if isinstance(value, Made):
            return value.make()
        if isinstance(value, list) or (number and isinstance(value, (int, float))):
            only = torch.int64 if name in self.integers else None
            gradient = self.gradients and name not in self.constants
            return to_tensor(value, self.dtype, only=only, gradient=gradient)
        return value


# --- exercises -----------------------------------------------------------------------------


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


Gives = Literal["same shape", "one per row", "scalar", "tensor", "number", "two numbers", "several"]
EXPECTS = {
    "same shape": "a torch.Tensor of the shape of its inputs",
    "one per row": "a torch.Tensor with one number for each row of its inputs",
    "scalar": "one number as a torch.Tensor of shape ()",
    "tensor": "a torch.Tensor",
    "number": "one number",
    "two numbers": "two numbers, as in `return first, second`",
}
KINDS = {
    "floating-point numbers": lambda dtype: dtype.is_floating_point,
    "integers": lambda dtype: dtype in (torch.int64, torch.int32, torch.int16, torch.uint8),
    "yes or no": lambda dtype: dtype == torch.bool,
}


@dataclass(frozen=True, kw_only=True)
class FunctionExercise(Exercise):
    """An exercise whose answer is a function.

    Args:
        cases: what it is called with, in the order of the stages.
        gives: what comes back. "same shape": each element depends on the same place of the inputs;
            "one per row": on the same row; "scalar", "tensor": one tensor; "number",
            "two numbers": Python numbers or tensors; "several": a tuple, as `parts` names it.
        parts: names of what comes back, if it is several; tensors, or numbers for shape ().
        returns: what comes back in words, instead of the usual ones.
        kind: of the numbers that come back.
        learns: arguments that the gradient must reach; it must reach no other.
        numbers_of: the id of the exercise with the same cases and mistakes, if there is one.
        starts_with: the mistake in the function that the blank gives, where a bug is to be found.
        through: how the answer is called, if not directly: `through(answer, *inputs, **options)`
            gives what is read. For answers that give an iterator or change an object.
    """

    cases: tuple[Case, ...]
    gives: Gives
    parts: tuple[str, ...] = ()
    returns: str = ""
    kind: str = "floating-point numbers"
    learns: tuple[str, ...] = ()
    numbers_of: str = ""
    starts_with: str = ""
    through: Callable[..., Any] | None = None

    @property
    def expects(self) -> str:
        """What comes back, in words."""
        if self.returns:
            return self.returns
        if self.gives == "several":
            return f"{len(self.parts)} results, as in `return {', '.join(self.parts)}`"
        return EXPECTS[self.gives]

    def pull(self, result: Tensor) -> Tensor:
        """Make the one number whose gradient is compared.

        The sum, where elements are independent. Elsewhere a sum may be constant (that of
        probabilities is), so results are weighted 1, 2, 3, ...
        """
        if self.gives in ("tensor", "several"):
            weights = torch.arange(1, result.numel() + 1, dtype=result.dtype)
            return (result.flatten() * weights).sum()
        return result.sum()


@dataclass(frozen=True, kw_only=True)
class HashedExercise(Exercise):
    """An exercise whose answer is one prediction for each of some questions.

    The data holds hashes of the right ones, and no number.

    Args:
        questions: by their letter: the question, and what to look at if the answer is wrong.
    """

    questions: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class SignsExercise(HashedExercise):
    """An exercise whose answer is a sign for each of some questions."""


@dataclass(frozen=True, kw_only=True)
class NumbersExercise(HashedExercise):
    """An exercise whose answer is a number for each of some questions.

    Args:
        tolerance: how far a number may be from the right one.
    """

    tolerance: float


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
        shape: of the result; the shapes of all, if there are several.
        values: of the result, flat.
        gradients: of what `pull` makes of it, flat, by argument; None where none arrives.
    """

    problem: str | None = None
    detail: str = ""
    shape: tuple[Any, ...] = ()
    values: tuple[float, ...] = ()
    gradients: Mapping[str, tuple[float, ...] | None] = field(default_factory=dict)
