"""How is an answer judged? Stage by stage: the first case that fails is reported.

All cases together are then compared with what the usual mistakes give on the same inputs, so that
the mistake can be named.
"""

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.compare import agree, constant_factor, from_data, name_mistake, same_values
from ppo_lessons.checks.exercises import (
    CALLABLE,
    KINDS,
    SHAPE,
    Case,
    CheckResult,
    Exercise,
    FunctionExercise,
    HashedExercise,
    Outcome,
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
from ppo_lessons.checks.hashed import judge_hashed
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
    if isinstance(exercise, HashedExercise):
        with state_kept(), silent():
            return judge_hashed(exercise, answer)
    assert isinstance(exercise, FunctionExercise)
    data = data_of(exercise.lesson)[exercise.numbers_of or exercise.id]
    load_optimizers(answer)
    load_optimizers(exercise.through)
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


def load_optimizers(answer: Any) -> None:
    """Let torch import what its first optimiser needs: seconds that are not the learner's."""
    if type(answer) is not FunctionType:
        return
    codes, names = [answer.__code__], set()
    while codes:
        code = codes.pop()
        names |= {*code.co_names}
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    values = [dict.get(answer.__globals__, name) for name in names]
    homes = [value.__module__ for value in values if type(value) is type]
    if "optim" in names or any(home.startswith("torch.optim") for home in homes):
        torch.optim.SGD([torch.zeros(1, device="cpu", requires_grad=True)], lr=0.0)


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
            inputs={name: value for given in case.arguments() for name, value in given.items()},
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
            inputs, options = case.arguments()
            given = tensors_in({**inputs, **options})
            before = {name: tensor.detach().clone() for name, tensor in given.items()}
            wishes = {name: tensor.requires_grad for name, tensor in given.items()}
            with names_kept():
                if exercise.through:
                    returned = exercise.through(function, *inputs.values(), **options)
                else:
                    returned = function(*inputs.values(), **options)
            for name, tensor in before.items():
                if not unchanged(given[name], tensor, wishes[name]):
                    return Outcome(problem="changes_its_inputs", detail=name)
            return read(returned, given, exercise, case)
    except (OutOfTime, Interrupted):
        raise
    except BaseException as error:
        if is_blank(error):
            return Outcome(problem="not_written")
        words = describe(error, function)
        names = [name for pattern, name in ERRORS.items() if pattern.search(words)]
        return Outcome(problem=names[0] if names else "raises", detail=words)


def tensors_in(arguments: Mapping[str, Any]) -> dict[str, Tensor]:
    """List the tensors among arguments, and those that are attributes of tables, by name."""
    found: dict[str, Tensor] = {}
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, SimpleNamespace):
            found |= {f"{name}.{key}": each for key, each in tensors_in(vars(value)).items()}
    return found


def is_blank(error: BaseException) -> bool:
    """Whether the line that the blank exercise holds was reached."""
    words = [str(word) for word in error.args]
    return isinstance(error, NotImplementedError) and (not words or words[0].startswith("exercise"))


def unchanged(now: Tensor, before: Tensor, with_gradient: bool) -> bool:
    """Whether an input still is what it was, its wish for a gradient included."""
    alike = (now.shape, now.dtype, now.requires_grad) == (before.shape, before.dtype, with_gradient)
    return alike and torch.equal(now.detach(), before)


def read(
    returned: Any, given: Mapping[str, Tensor], exercise: FunctionExercise, case: Case
) -> Outcome:
    """Turn what came back into numbers."""
    if returned is None:
        return Outcome(problem="returns_nothing")
    results = results_in(returned, exercise)
    if results is None:
        return Outcome(problem="wrong_type", detail=kind_of(returned))
    for result in results:
        if not KINDS[exercise.kind](result.dtype):
            return Outcome(problem="wrong_dtype", detail=str(result.dtype))
    plain = [result.detach().to("cpu", torch.float64) for result in results]
    shapes = tuple(tuple(each.shape) for each in plain)
    outcome = Outcome(
        shape=shapes if exercise.gives == "several" else shapes[0],
        values=tuple(number for each in plain for number in each.flatten().tolist()),
    )
    if not case.gradients:
        return outcome
    learning = {name: tensor for name, tensor in given.items() if tensor.requires_grad}
    return replace(outcome, gradients=gradients_of(results, learning, exercise))


def gradients_of(
    results: Sequence[Tensor], learning: Mapping[str, Tensor], exercise: FunctionExercise
) -> dict[str, tuple[float, ...] | None]:
    """Ask which way each argument pulls the results; None where none arrives."""
    living = [result for result in results if result.requires_grad]
    if not living:
        return dict.fromkeys(learning)
    pulled = torch.stack([exercise.pull(result) for result in living]).sum()
    found = torch.autograd.grad(pulled, list(learning.values()), allow_unused=True)
    return {
        name: None if gradient is None else tuple(gradient.flatten().tolist())
        for name, gradient in zip(learning, found, strict=True)
    }


def results_in(returned: Any, exercise: FunctionExercise) -> list[Tensor] | None:
    """List the tensors that came back; None if it is not what the exercise asks for."""
    if exercise.gives == "two numbers":
        both = pair(returned)
        return None if both is None else [both]
    if exercise.gives == "number":
        made = as_tensors([returned], exercise.kind) or []
        return [each.reshape(()).double() for each in made if each.numel() == 1] or None
    if exercise.gives != "several":
        return [returned] if isinstance(returned, Tensor) else None
    if not isinstance(returned, (tuple, list)) or len(returned) != len(exercise.parts):
        return None
    return as_tensors(returned, exercise.kind)


def as_tensors(values: Sequence[Any], kind: str) -> list[Tensor] | None:
    """Make tensors of Python's numbers; None if something is neither a number nor a tensor."""
    made: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            made.append(value)
        elif isinstance(value, numbers.Real):
            floating = kind == "floating-point numbers"
            number = float(value) if floating else value
            dtype = torch.float64 if floating else None
            made.append(torch.tensor(number, dtype=dtype, device="cpu"))
        else:
            return None
    return made


def pair(returned: Any) -> Tensor | None:
    """Two numbers of whatever kind as one tensor."""
    many = isinstance(returned, (tuple, list)) or (isinstance(returned, Tensor) and returned.ndim)
    if not many or len(returned) != 2:
        return None
    both = []
    for each in returned:
        number = each.item() if hasattr(each, "item") and numel(each) == 1 else each
        if not isinstance(number, numbers.Real):
            return None
        both.append(float(number))
    return torch.tensor(both, dtype=torch.float64, device="cpu")


def numel(value: Any) -> int:
    """How many numbers an array or a tensor holds."""
    return math.prod(getattr(value, "shape", (0,)))
