"""How is an answer judged? Stage by stage: the first case that fails is reported.

All cases together are then compared with what the usual mistakes give on the same inputs, so that
the mistake can be named.
"""

import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.compare import agree, constant_factor, from_data, name_mistake, same_values
from ppo_lessons.checks.exercises import (
    CALLABLE,
    SHAPE,
    Case,
    CheckResult,
    Exercise,
    FunctionExercise,
    Outcome,
    SignsExercise,
    data_of,
)
from ppo_lessons.checks.guard import (
    Interrupted,
    OutOfTime,
    limited,
    names_kept,
    silent,
    state_kept,
)
from ppo_lessons.checks.signs import judge_signs
from ppo_lessons.checks.words import (
    ERRORS,
    GENERAL,
    call_text,
    describe,
    difference,
    general_name,
    general_sentence,
    kind_of,
    number_text,
)

SECONDS = 5.0
_ABOUT_TYPES = {"returns_nothing", "wrong_type", "wrong_dtype"}


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
        factor = None if mistake or outcome.problem else constant_factor(outcomes, self.expected)
        if factor:
            mistake, outcome = "constant_factor", replace(outcome, detail=number_text(factor))
        result = self.failed(case, outcome, right=right, mistake=mistake, turned=turned)
        if result.mistake:
            return result
        count = sum(map(agree, outcomes, self.expected))
        words = f"{count} of {len(self.expected)} cases"
        return replace(result, rows=(*result.rows, ("right", words)))

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
                if not unchanged(inputs[name], tensor, case.gradients):
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


def unchanged(now: Tensor, before: Tensor, with_gradient: bool) -> bool:
    """Whether an input still is what it was, its wish for a gradient included."""
    alike = (now.shape, now.dtype, now.requires_grad) == (before.shape, before.dtype, with_gradient)
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
