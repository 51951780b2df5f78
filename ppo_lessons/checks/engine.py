"""How is an answer judged? Stage by stage, on inputs and numbers that are data.

An exercise lists its cases in the order in which they are tried: the smallest first. The first
case that fails is reported, and all of them together are compared with what the usual mistakes
give on the same inputs: so the mistake can be named.
"""

import hashlib
import inspect
import json
import math
import numbers
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.guard import (
    Interrupted,
    OutOfTime,
    limited,
    names_kept,
    silent,
    state_kept,
)

SECONDS = 5.0
TOLERANCE = 1e-4  # an answer may compute in float32; mistakes differ by more than ten times this
DATA = Path(__file__).resolve().parent / "data"
CALLABLE, SHAPE = "callable", "type and shape"
SMALLEST, QUADRANTS, EDGES = "smallest case", "quadrants", "edges"
GRADIENTS, SEEDED = "gradients", "seeded cases"
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

# What can go wrong with any answer: {} is filled in.
GENERAL = {
    "not_written": "Replace the line that raises NotImplementedError, or the None, by your "
    "answer. Run that cell, then the check again.",
    "not_a_function": "The check wants the function itself, by its name and without brackets; it "
    "got {}.",
    "wrong_signature": "It cannot be called as the task says: {}. Keep the line with `def` as it "
    "stood.",
    "raises": "It stopped with {}",
    "too_slow": "It took longer than {} s. Is there a loop that never ends?",
    "returns_nothing": "It returns None. Is the `return` missing?",
    "wrong_type": "It returns {}; expected {}.",
    "wrong_dtype": "It returns a tensor of {}; expected floating-point numbers.",
    "wrong_shape": "The result must be {}.",
    "changes_its_inputs": "It changed {} in place. The caller still needs those numbers: work on "
    "a copy, or use the version of the operation without the underscore.",
    "gradient_lost": "The numbers are right, and no gradient reaches {}: somewhere the result was "
    "cut off from its inputs (.item(), .detach(), torch.tensor(...), numpy, no_grad).",
    "gradient_into_constants": "The numbers are right, and a gradient flows into {}: constants, "
    "as the task says. Detach each of them.",
    "python_choice": "Python's `if`, `and`, `min` and `max` want one yes or no, and a tensor holds "
    "many. Use torch.where, `&`, torch.minimum, torch.maximum.",
    "mean_of_booleans": "A mean needs floating-point numbers, and these are yes and no. Write "
    ".float() first.",
    "name_missing": "{} An answer cell holds all that it needs, imports included.",
    "gives_nan": "It gives NaN: 0/0, ∞ − ∞ or the logarithm of a negative number.",
}


# What torch and Python say -> the general mistake behind it.
ERRORS = {
    re.compile("is ambiguous"): "python_choice",
    re.compile("could not infer output dtype"): "mean_of_booleans",
    re.compile("^NameError: name '.*' is not defined"): "name_missing",
    re.compile(r"Can't call numpy\(\)"): "gradient_lost",
}


# --- exercises -----------------------------------------------------------------------------


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


# --- results -------------------------------------------------------------------------------


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


# --- calling the answer --------------------------------------------------------------------


def call(function: Callable[..., Any], exercise: FunctionExercise, case: Case) -> Outcome:
    """Call a function with fresh inputs and read what it gives; only `OutOfTime` comes through."""
    try:
        with torch.inference_mode(False), torch.enable_grad():
            inputs = case.tensors()
            before = {name: tensor.detach().clone() for name, tensor in inputs.items()}
            with names_kept():
                returned = function(*inputs.values(), **case.options)
            for name, tensor in before.items():
                if not unchanged(inputs[name], tensor):
                    return Outcome(problem="changes_its_inputs", detail=name)
            return read(returned, inputs, exercise, case)
    except (OutOfTime, Interrupted):
        raise
    except BaseException as error:
        if is_blank(error):
            return Outcome(problem="not_written")
        words = describe(error, function)
        names = [name for pattern, name in ERRORS.items() if pattern.search(words)]
        return Outcome(problem=names[0] if names else "raises", detail=words)


def is_blank(error: BaseException) -> bool:
    """Whether the line that the blank exercise holds was reached."""
    words = [str(word) for word in error.args]
    return isinstance(error, NotImplementedError) and (not words or words[0].startswith("exercise"))


def unchanged(now: Tensor, before: Tensor) -> bool:
    """Whether an input still is what it was."""
    alike = (now.shape, now.dtype) == (before.shape, before.dtype)
    return alike and torch.equal(now.detach(), before)


def read(
    returned: Any, inputs: Mapping[str, Tensor], exercise: FunctionExercise, case: Case
) -> Outcome:
    """Turn what came back into numbers."""
    if returned is None:
        return Outcome(problem="returns_nothing")
    two = exercise.gives == "two numbers"
    result = pair(returned) if two else returned
    if not isinstance(result, Tensor) or (two and result is returned):
        return Outcome(problem="wrong_type", detail=kind_of(returned))
    if not result.is_floating_point():
        return Outcome(problem="wrong_dtype", detail=str(result.dtype))
    plain = result.detach().to("cpu", torch.float64)
    values = tuple(plain.flatten().tolist())
    if not case.gradients:
        return Outcome(shape=tuple(plain.shape), values=values)
    if not result.requires_grad:
        gradients = dict.fromkeys(inputs)
    else:
        found = torch.autograd.grad(result.sum(), list(inputs.values()), allow_unused=True)
        gradients = {
            name: None if gradient is None else tuple(gradient.flatten().tolist())
            for name, gradient in zip(inputs, found, strict=True)
        }
    return Outcome(shape=tuple(plain.shape), values=values, gradients=gradients)


def pair(returned: Any) -> Any:
    """Two numbers of whatever kind as one tensor; anything else as it is."""
    many = isinstance(returned, (tuple, list)) or (isinstance(returned, Tensor) and returned.ndim)
    if not many or len(returned) != 2:
        return returned
    both = []
    for each in returned:
        number = each.item() if hasattr(each, "item") and numel(each) == 1 else each
        if not isinstance(number, numbers.Real):
            return returned
        both.append(float(number))
    return torch.tensor(both, dtype=torch.float64)


def numel(value: Any) -> int:
    """How many numbers an array or a tensor holds."""
    return math.prod(getattr(value, "shape", (0,)))


def kind_of(value: Any) -> str:
    """Name a type with its article."""
    if type(value) in (Tensor, torch.nn.Parameter):
        return f"a tensor of shape {tuple(value.shape)}"
    name = "numpy array" if type(value).__name__ == "ndarray" else type(value).__name__
    article = "an" if name[:1].lower() in tuple("aeiou") else "a"
    length = f" of {len(value)}" if type(value) in (tuple, list) else ""
    if length and value and type(value[0]) in (Tensor, tuple, list):
        length += f", the first of them {kind_of(value[0])}"
    return "None" if value is None else f"{article} {name}{length}"


def describe(error: BaseException, function: Callable[..., Any]) -> str:
    """Say what was raised and where in the answer, the same in every run."""
    try:
        first = (ADDRESS.sub("", str(error)).strip().splitlines() or [""])[0][:200]
        file = inspect.unwrap(function).__code__.co_filename
        frames = traceback.extract_tb(error.__traceback__, limit=100)
        lines = [frame.line for frame in frames if frame.filename == file and frame.line]
    except BaseException:  # even the message may be code of the learner's
        first, lines = "", []
    if isinstance(error, RecursionError):
        first = "it calls itself without end"
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    return f"{text} The line: {lines[-1]}" if lines else text


# --- comparing -----------------------------------------------------------------------------


def close(one: float, other: float) -> bool:
    """Whether two numbers agree; NaN agrees with NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= TOLERANCE * max(1.0, abs(other))


def all_close(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two rows of numbers agree."""
    return len(some) == len(others) and all(map(close, some, others))


def same_gradient(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    """Whether two gradients agree; none at all is zero."""
    filled = [0.0] * len(one or other or ())
    return all_close(one or filled, other or filled)


def agree(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same, gradients included."""
    if one.problem or other.problem:
        return one.problem == other.problem
    return same_values(one, other) and not wrong_gradients(one, other)


def same_values(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes have the same numbers in the same shape."""
    return one.shape == other.shape and all_close(one.values, other.values)


def wrong_gradients(one: Outcome, other: Outcome) -> list[str]:
    """Name the arguments whose gradients differ."""
    return [
        name
        for name in other.gradients
        if not same_gradient(one.gradients.get(name), other.gradients[name])
    ]


def from_data(entry: Mapping[str, Any]) -> Outcome:
    """Read an outcome as `tools/build_checks.py` writes it."""
    if "problem" in entry:
        return Outcome(problem=entry["problem"])
    gradients = {
        name: None if row is None else tuple(map(float, row))
        for name, row in entry.get("gradients", {}).items()
    }
    return Outcome(
        shape=tuple(entry["shape"]), values=tuple(map(float, entry["values"])), gradients=gradients
    )


# --- naming the mistake --------------------------------------------------------------------


def name_mistake(
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    entries: Sequence[Mapping[str, Any]],
    *,
    turned: bool = False,
) -> str | None:
    """Find the mistake that gives the same as the answer.

    Args:
        outcomes: what the answer gave, case by case; may end early.
        expected: what a right answer gives.
        entries: the data of the cases, with what each mistake gives where it differs.
        turned: whether the answer is first multiplied by −1.

    Returns:
        The mistake that agrees in every case (`name#1` and `name#2` are one mistake); else one
        that has all the same numbers and other gradients, or that agrees in at least four of five
        cases where one of the two is wrong; else None.
    """
    names = sorted({name for entry in entries for name in entry["mistakes"]})
    best, best_score = None, 0.8
    outcomes = list(map(negative, outcomes)) if turned else outcomes
    for name in names:
        theirs = [
            from_data(entry["mistakes"][name]) if name in entry["mistakes"] else right
            for entry, right in zip(entries, expected, strict=True)
        ]
        if turned and all(map(same_values, map(negative, theirs), expected)):
            continue  # the mistake is the sign itself
        score = likeness(outcomes, theirs, expected)
        if score > best_score:
            best, best_score = name.partition("#")[0], score
    return best


def negative(outcome: Outcome) -> Outcome:
    """Turn the sign of values and gradients."""
    gradients = {
        name: None if row is None else tuple(-value for value in row)
        for name, row in outcome.gradients.items()
    }
    values = tuple(-value for value in outcome.values)
    return replace(outcome, values=values, gradients=gradients)


def likeness(
    outcomes: Sequence[Outcome], theirs: Sequence[Outcome], expected: Sequence[Outcome]
) -> float:
    """Score how much an answer resembles a mistake: 2 when nothing tells them apart."""
    triples = list(zip(outcomes, theirs, expected, strict=False))
    if all(agree(mine, other) for mine, other, _ in triples):
        return 2.0
    off = [t for t in triples if not agree(t[1], t[2]) or not agree(t[0], t[2])]
    first = next((t for t in off if not agree(t[0], t[2])), None)
    if first is None or first[0].problem or not same_values(first[0], first[1]):
        return 0.0
    numbers_only = [triple for triple in triples if not triple[0].problem]
    same = all(same_values(mine, other) for mine, other, _ in numbers_only)
    if same and not all(same_values(other, right) for _, other, right in numbers_only):
        return 1.5
    if not agree(first[0], first[1]):
        return 0.0
    return sum(agree(mine, other) for mine, other, _ in off) / len(off)


# --- the stages ----------------------------------------------------------------------------


def judge(exercise: Exercise, answer: Any) -> CheckResult:
    """Judge an answer; nothing that it does comes through, and global state stays as it was.

    Args:
        exercise: what to hold it to.
        answer: the learner's function, or their data.

    Returns:
        The verdict.
    """
    if isinstance(exercise, SignsExercise):
        with state_kept(), silent():
            return judge_signs(exercise, answer)
    assert isinstance(exercise, FunctionExercise)
    data = data_of(exercise.lesson)[exercise.numbers_of or exercise.id]
    with state_kept(names_seen_by(answer)), silent():
        run = Run(exercise, answer, data)
        try:
            with limited(SECONDS):
                return run.result()
        except OutOfTime:
            return run.out_of_time()
        except Interrupted:
            raise KeyboardInterrupt from None


def names_seen_by(answer: Any) -> dict[str, Any]:
    """Give the globals of a function, or nothing."""
    return answer.__globals__ if type(answer) is FunctionType else {}


class Run:
    """One walk through the stages of an exercise.

    Args:
        exercise: what is asked.
        answer: what was given.
        data: expected values and fingerprints of this exercise.
    """

    def __init__(self, exercise: FunctionExercise, answer: Any, data: Mapping[str, Any]):
        self.exercise, self.answer = exercise, answer
        self.entries = data["cases"]
        self.expected = [from_data(entry["expected"]) for entry in self.entries]
        self.case = exercise.cases[0]
        self.found: CheckResult | None = None

    def result(self) -> CheckResult:
        """Walk until a case fails."""
        if refused := self.not_callable():
            return refused
        outcomes: list[Outcome] = []
        for case, right in zip(self.exercise.cases, self.expected, strict=True):
            self.case = case
            outcomes.append(call(self.answer, self.exercise, case))
            if not agree(outcomes[-1], right):
                return self.explain(outcomes)
        return CheckResult(exercise=self.exercise.id, passed=True)

    def not_callable(self) -> CheckResult | None:
        """Refuse what cannot be called as the task says."""
        if self.answer is None:
            return self.failed(self.case, Outcome(problem="not_written"), stage=CALLABLE)
        if not callable(self.answer):
            problem = Outcome(problem="not_a_function", detail=kind_of(self.answer))
            return self.failed(self.case, problem, stage=CALLABLE)
        try:
            inspect.signature(self.answer).bind(*self.case.inputs, **self.case.options)
        except TypeError as error:
            problem = Outcome(problem="wrong_signature", detail=str(error))
            return self.failed(self.case, problem, stage=CALLABLE)
        except BaseException:  # some callables have no signature to look at; the call will tell
            return None
        return None

    def explain(self, outcomes: list[Outcome]) -> CheckResult:
        """Report the case that failed, and look through the others for the mistake's name."""
        case, outcome, right = self.case, outcomes[-1], self.expected[len(outcomes) - 1]
        self.found = self.failed(case, outcome, right=right)
        if outcome.problem not in (None, "raises", "wrong_type"):
            return self.found
        mistake, turned = self.look_further(outcomes)
        return self.failed(case, outcome, right=right, mistake=mistake, turned=turned)

    def out_of_time(self) -> CheckResult:
        """Report the failure that was found before the time was over, or that it is over."""
        too_slow = Outcome(problem="too_slow", detail=f"{SECONDS:g}")
        return self.found or self.failed(self.case, too_slow)

    def look_further(self, outcomes: list[Outcome]) -> tuple[str | None, bool]:
        """Call the answer in the cases that are left: the mistake, and whether a sign was turned.

        An answer that is slow is not waited for.
        """
        failed = len(outcomes) - 1
        for case in self.exercise.cases[len(outcomes) :]:
            outcomes.append(call(self.answer, self.exercise, case))
        mistake = name_mistake(outcomes, self.expected, self.entries)
        right_so_far = same_values(outcomes[failed], self.expected[failed])
        if mistake or right_so_far or self.exercise.gives == "two numbers":
            return mistake, False
        turned = name_mistake(outcomes, self.expected, self.entries, turned=True)
        return turned, turned is not None

    def failed(
        self,
        case: Case,
        outcome: Outcome,
        *,
        right: Outcome | None = None,
        mistake: str | None = None,
        stage: str | None = None,
        turned: bool = False,
    ) -> CheckResult:
        """Put a failure into words."""
        rows: list[tuple[str, str]] = []
        if outcome.problem:
            mistake = mistake or outcome.problem
            stage = stage or (SHAPE if outcome.problem in _ABOUT_TYPES else case.stage)
            if stage != CALLABLE and outcome.problem != "not_written":
                rows.append(("case", case.name))
                rows.append(("input", call_text(case.inputs, case.options)))
        elif right is not None:
            rows.append(("case", case.name))
            if outcome.shape != right.shape:
                stage, mistake = SHAPE, mistake or "wrong_shape"
            rows += difference(self.exercise, case, outcome, right)
            mistake = mistake or general_name(self.exercise, outcome, right)
        if outcome.problem in ERRORS.values():
            rows.append(("got", outcome.detail))
        elif outcome.problem and mistake != outcome.problem:
            rows.append(("got", general_sentence(self.exercise, outcome.problem, outcome.detail)))
        rows += self.mistake_rows(mistake, outcome)
        if turned:
            rows.append(("also", "the sign is turned."))
        return CheckResult(
            exercise=self.exercise.id,
            passed=False,
            stage=stage or case.stage,
            mistake=mistake,
            rows=tuple(rows),
            inputs={**case.tensors(), **case.options},
        )

    def mistake_rows(self, mistake: str | None, outcome: Outcome) -> list[tuple[str, str]]:
        """Name the mistake, if it has a name."""
        if mistake is None:
            words = "none of the usual ones. Compute this case by hand and compare."
            return [("mistake", words)]
        if mistake == "not_written":
            return [("next", GENERAL[mistake])]
        if mistake in self.exercise.mistakes:
            return [("mistake", f"{mistake}. {self.exercise.mistakes[mistake]}")]
        detail = outcome.detail or " and ".join(
            name
            for name in outcome.gradients
            if outcome.gradients[name] and name not in self.exercise.learns
        )
        words = general_sentence(self.exercise, mistake, detail)
        return [("mistake", f"{mistake}. {words}")]


_ABOUT_TYPES = {"returns_nothing", "wrong_type", "wrong_dtype"}


def general_sentence(exercise: FunctionExercise, problem: str, detail: str) -> str:
    """Fill the sentence of a general mistake."""
    if problem == "wrong_type":
        return GENERAL[problem].format(detail, exercise.expects)
    if problem == "wrong_shape":
        return GENERAL[problem].format(exercise.expects)
    if problem == "gradient_lost":
        return GENERAL[problem].format(" or ".join(exercise.learns))
    return GENERAL[problem].format(detail)


def general_name(exercise: FunctionExercise, outcome: Outcome, right: Outcome) -> str | None:
    """Recognise a mistake that any function can make."""
    if any(math.isnan(value) for value in outcome.values):
        return "gives_nan"
    lost = [name for name in exercise.learns if outcome.gradients.get(name) is None]
    if right.gradients and len(lost) == len(exercise.learns) and same_values(outcome, right):
        return "gradient_lost"
    if right.gradients and same_values(outcome, right) and leaks(exercise, outcome, right):
        return "gradient_into_constants"
    return None


def leaks(exercise: FunctionExercise, outcome: Outcome, right: Outcome) -> list[str]:
    """List the constants that a gradient reaches."""
    return [name for name in wrong_gradients(outcome, right) if name not in exercise.learns]


# --- a difference in words -----------------------------------------------------------------


def number_text(value: float) -> str:
    """Write a number shortly; a negative zero is a zero."""
    return f"{value + 0.0:.6g}" if math.isfinite(value) else str(value)


def list_text(values: Any) -> str:
    """Write nested lists of numbers as Python would read them."""
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(list_text, values)) + "]"
    return number_text(float(values))


def call_text(inputs: Mapping[str, Any], options: Mapping[str, float]) -> str:
    """Write the arguments of a call; long ones are cut."""
    texts = [f"{name} {text}" for name, text in ((n, list_text(v)) for n, v in inputs.items())]
    texts += [f"{name} {number_text(value)}" for name, value in options.items()]
    return ", ".join(text if len(text) < 120 else f"{text[:110]} ..." for text in texts)


def difference(
    exercise: FunctionExercise, case: Case, outcome: Outcome, right: Outcome
) -> list[tuple[str, str]]:
    """Show the smallest input that tells the two apart, expected against got."""
    if outcome.shape != right.shape:
        return [
            ("input", call_text(case.inputs, case.options)),
            ("expected", f"shape {right.shape}"),
            ("got", f"shape {outcome.shape}"),
        ]
    if not all_close(outcome.values, right.values):
        return [*show_values(exercise, case, outcome.values, right.values, "")]
    name = wrong_gradients(outcome, right)[0]
    size = len(flat(case.inputs[name]))
    got, wanted = (each.gradients.get(name) or (0.0,) * size for each in (outcome, right))
    return show_values(exercise, case, got, wanted, f"gradient to {name} ")


def show_values(
    exercise: FunctionExercise,
    case: Case,
    got: Sequence[float],
    wanted: Sequence[float],
    prefix: str,
) -> list[tuple[str, str]]:
    """Show one element where elements are independent, else the whole call."""
    inputs = {name: flat(value) for name, value in case.inputs.items()}
    if exercise.gives == "same shape":
        place = next(i for i, pair in enumerate(zip(got, wanted, strict=True)) if not close(*pair))
        inputs = {name: [values[place]] for name, values in inputs.items()}
        got, wanted = [got[place]], [wanted[place]]
    single = len(wanted) == 1
    expected, found = (list_text(row[0] if single else row) for row in (wanted, got))
    return [
        ("input", call_text(inputs, case.options)),
        ("expected", prefix + expected),
        ("got", prefix + found),
    ]


def flat(value: Any) -> list[float]:
    """Flatten nested lists of numbers."""
    if isinstance(value, (list, tuple)):
        return [number for each in value for number in flat(each)]
    return [float(value)]


# --- signs ---------------------------------------------------------------------------------

_WORDS = {
    "+": 1, "plus": 1, "positive": 1, "up": 1, "+1": 1, "1": 1,
    "-": -1, "−": -1, "minus": -1, "negative": -1, "down": -1, "-1": -1, "−1": -1,
    "0": 0, "zero": 0, "none": 0, "": None,
}  # fmt: skip


def sign_of(value: Any) -> int | None:
    """Read a sign: a number, or one of the words for it.

    Raises:
        ValueError: if it is none.
    """
    if value is None:
        return None
    if isinstance(value, str):
        key = value.strip().lower()
        if key in _WORDS:
            return _WORDS[key]
    elif not isinstance(value, bool):
        number = float(value)
        if not math.isnan(number):
            return (number > 0) - (number < 0)
    raise ValueError(f"{value!r} is no sign")


def sign_hash(id: str, letter: str, sign: int) -> str:
    """Hash one answer, so that the data shows none."""
    return hashlib.sha256(f"{id}/{letter}/{sign}".encode()).hexdigest()[:12]


def judge_signs(exercise: SignsExercise, answer: Any) -> CheckResult:
    """Compare signs with the hashes of the right ones."""

    def failed(stage: str, mistake: str | None, *rows: tuple[str, str]) -> CheckResult:
        return CheckResult(
            exercise=exercise.id, passed=False, stage=stage, mistake=mistake, rows=rows
        )

    letters = list(exercise.questions)
    try:
        given = by_letter(answer, letters)
    except BaseException:
        words = f"expected a dict with the keys {', '.join(letters)}; got {kind_of(answer)}"
        return failed(SHAPE, "wrong_type", ("mistake", f"wrong_type. {words}."))
    if given is None or all(value is None for value in given.values()):
        return failed(CALLABLE, "not_written", ("next", GENERAL["not_written"]))
    signs: dict[str, int] = {}
    for letter in letters:
        try:
            sign = sign_of(given[letter])
        except BaseException:
            sign = None
        if sign is None:
            words = f"case {letter} holds {kind_of(given[letter])}; expected 1, 0 or -1."
            return failed(SHAPE, "wrong_type", ("mistake", f"wrong_type. {words}"))
        signs[letter] = sign
    return compare_signs(exercise, signs)


def by_letter(answer: Any, letters: Sequence[str]) -> dict[str, Any] | None:
    """Read a dict, or a row of answers in order.

    Raises:
        ValueError: if it is neither, or answers are missing.
    """
    if answer is None:
        return None
    if isinstance(answer, Mapping):
        given = {str(key).strip().lower(): value for key, value in answer.items()}
    else:
        given = dict(zip(letters, answer, strict=True))
    if set(given) != set(letters):
        raise ValueError("other keys")
    return given


def compare_signs(exercise: SignsExercise, signs: Mapping[str, int]) -> CheckResult:
    """Report the first wrong sign without giving the right one away."""
    data = data_of(exercise.lesson)[exercise.id]
    hashes = {letter: sign_hash(exercise.id, letter, sign) for letter, sign in signs.items()}
    wrong = [letter for letter in signs if hashes[letter] != data["expected"][letter]]
    if not wrong:
        return CheckResult(exercise=exercise.id, passed=True)
    mistake = nearest(hashes, data, wrong[0])
    question, look = exercise.questions[wrong[0]]
    words = exercise.mistakes[mistake] if mistake else look
    named = f"{mistake}. {words}" if mistake else f"none of the usual ones. {words}"
    return CheckResult(
        exercise=exercise.id,
        passed=False,
        stage="signs",
        mistake=mistake,
        rows=(
            ("input", f"case {wrong[0]}: {question}"),
            ("got", f"{signs[wrong[0]]:+d}; another sign is expected".replace("+0", "0")),
            ("right", f"{len(signs) - len(wrong)} of {len(signs)}"),
            ("mistake", named),
        ),
    )


def nearest(hashes: Mapping[str, str], data: Mapping[str, Any], first: str) -> str | None:
    """Find the mistake that answers alike, in all cases or in all but one."""
    best, best_count = None, len(hashes) - 2
    for name in sorted(data["mistakes"]):
        theirs = data["mistakes"][name]
        count = sum(hashes[letter] == theirs[letter] for letter in hashes)
        if count > best_count and hashes[first] == theirs[first]:
            best, best_count = name, count
    return best


def names_of(exercises: Iterable[Exercise]) -> list[str]:
    """List ids."""
    return [exercise.id for exercise in exercises]
