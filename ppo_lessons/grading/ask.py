"""What does a check cell run? It prints what an answer gives, and knows nothing of what it should.

```
ask("clip.clipped_surrogate", globals().get("clipped_surrogate"))  # the public cases
ask("clip.clipped_surrogate", globals().get("clipped_surrogate"), stage="edges", seed=48151)
ask_hashed("clip.gradient_signs", globals().get("gradient_signs"))  # predictions
tell("clip.clipped_surrogate", globals().get("clipped_surrogate"))  # which mistake it is
```

Numbers are rounded to a grid whose steps are about 0.005 of their size, and 0.005 for small
ones. Inputs are drawn until everything within the tolerance of the course's own check is rounded
alike: no grader may be stricter than what its students were told. The grid is shifted a little, so
that numbers of few digits, as 0.0625, lie on no edge of it.
"""

import contextlib
import json
import logging
import math
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ppo_lessons.checks.compare import TOLERANCE
from ppo_lessons.checks.exercises import (
    Case,
    CheckResult,
    FunctionExercise,
    HashedExercise,
    NumbersExercise,
    Outcome,
    data_of,
)
from ppo_lessons.checks.guard import Interrupted, OutOfTime, limited, silent, state_kept
from ppo_lessons.checks.hashed import GRID, by_letter, hash_of, number_of, places
from ppo_lessons.checks.judge import call, judge, load_optimizers, names_seen_by
from ppo_lessons.checks.words import ERRORS
from ppo_lessons.grading.fresh import fresh_cases, stages_of
from ppo_lessons.grading.items.questions import asked

SECONDS = 5.0  # for all cases of a cell together; the public check allows as much
# The steps of the grid, as 0.005, 0.01, 0.02, 0.05, and up to which number each is used: the
# limits are no round numbers, so that 10 and 9.99999 are shown alike.
STEPS = [(first * 10.0**power, max(-power, 0)) for power in range(-3, 10) for first in (1, 2, 5)][
    2:
]
LIMITS = [293.7 * step for step, _ in STEPS]
SHIFT = 0.29  # of a step
OWN_GRID = 10  # tolerances, for predictions that have no public hash
MOST = 1000  # numbers of a line; right answers give fewer
TRIES = 2000


# --- what a cell calls ---------------------------------------------------------------------


def ask(id: str, answer: Any, *, stage: str | None = None, seed: int | None = None) -> None:
    """Print what a function gives, one line for each case.

    Args:
        id: `lesson.exercise`, of a function.
        answer: whatever the notebook holds under its name; may be None.
        stage: one of `stages_of`; the public cases are asked all at once if it is None.
        seed: of the hidden inputs; the public cases if it is None.

    Raises:
        ValueError: if there is no such exercise or stage, or it asks for predictions.
    """
    exercise = asked(id)
    if not isinstance(exercise, FunctionExercise):
        raise ValueError(f"{id} asks for predictions; use ask_hashed")
    cases = cases_of(exercise, stage=stage, seed=seed)
    outcomes = outcomes_of(exercise, answer, cases)
    show(numbered(map(text_of, outcomes, shifts_of(exercise, cases))))


def ask_hashed(id: str, answer: Any, *, letter: str | None = None) -> None:
    """Print predictions, one line for each letter; those within the tolerance print alike.

    Args:
        id: `lesson.exercise`, of predictions.
        answer: whatever the notebook holds under its name; may be None.
        letter: of one question; all are printed if it is None.

    Raises:
        ValueError: if there is no such exercise, or it asks for a function.
    """
    exercise = asked(id)
    if not isinstance(exercise, HashedExercise):
        raise ValueError(f"{id} asks for a function; use ask")
    lines = predictions_of(exercise, answer)
    show(lines if letter is None else [lines[list(exercise.questions).index(letter)]])


def tell(id: str, answer: Any) -> None:
    """Print one line of JSON: the usual mistake, its stage, and what was raised; null if nothing.

    Args:
        id: `lesson.exercise`.
        answer: whatever the notebook holds under its name; may be None.

    Raises:
        ValueError: if there is no such exercise.
    """
    exercise = asked(id)
    with quiet():
        result = judge(exercise, answer)
    words = {"mistake": result.mistake, "stage": result.stage, "error": error_in(result)}
    show([json.dumps(words)])


def error_in(result: CheckResult) -> str | None:
    """Find what was raised in the words of a check."""
    rows = dict(result.rows)
    if result.mistake == "raises":
        return rows["mistake"].partition(". ")[2]
    return rows.get("got") if result.mistake in ERRORS.values() else None


def show(lines: Sequence[str]) -> None:
    """Print lines in one piece."""
    print("\n".join(lines))


def cases_of(
    exercise: FunctionExercise, *, stage: str | None = None, seed: int | None = None
) -> tuple[Case, ...]:
    """List the cases that `ask` asks.

    Args:
        exercise: whose.
        stage: one of `stages_of`; all if it is None.
        seed: of the hidden inputs; the public cases if it is None.

    Raises:
        ValueError: if there is no such stage.
    """
    if seed is None:
        cases = tuple(case for case in exercise.cases if stage in (None, case.stage))
        if not cases:
            raise ValueError(f"{exercise.id} has no stage {stage!r}")
        return cases
    stages = stages_of(exercise) if stage is None else (stage,)
    return tuple(case for each in stages for case in fresh_cases(exercise, stage=each, seed=seed))


# --- functions -----------------------------------------------------------------------------


def lines_of(exercise: FunctionExercise, answer: Any, cases: Sequence[Case]) -> list[str]:
    """Give what `ask` prints.

    Args:
        exercise: how the answer is called and read.
        answer: anything.
        cases: those of `cases_of`, or others, such as those of a personal question.

    Returns:
        One line for each case: its number; the shape and the values; the gradients by argument,
        where they are compared. What was raised is `raises`, and a blank is `no answer`.
    """
    return numbered(map(text_of, outcomes_of(exercise, answer, cases)))


def numbered(lines: Iterable[str]) -> list[str]:
    """Write a number before each line."""
    return [f"{number} {line}" for number, line in enumerate(lines, 1)]


def outcomes_of(exercise: FunctionExercise, answer: Any, cases: Sequence[Case]) -> list[Outcome]:
    """Call an answer in some cases; nothing that it does comes through but its numbers."""
    if not callable(answer):
        return [Outcome(problem="not_written")] * len(cases)
    outcomes: list[Outcome] = []
    with state_kept(names_seen_by(answer)), quiet():
        load_optimizers(answer)
        load_optimizers(exercise.through)
        try:
            with limited(SECONDS):
                for case in cases:
                    outcomes.append(call(answer, exercise, case))
        except OutOfTime:
            pass
        except Interrupted:
            raise KeyboardInterrupt from None
    return outcomes + [Outcome(problem="too_slow")] * (len(cases) - len(outcomes))


def text_of(outcome: Outcome, shift: float = SHIFT) -> str:
    """Write an outcome; a gradient of zero is none."""
    if outcome.problem:
        return {"not_written": "no answer", "too_slow": "out of time"}.get(
            outcome.problem, "raises"
        )
    parts = [f"{outcome.shape} {row_text(outcome.values, shift)}"]
    for name, row in outcome.gradients.items():
        text = row_text(row or (), shift)
        parts.append(f"{name}: {'none' if set(text.split()) <= {NOTHING} else text}")
    return " | ".join(parts)


def row_text(numbers: Sequence[float], shift: float) -> str:
    """Write some numbers."""
    words = [number_text(number, shift) for number in numbers[:MOST]]
    return " ".join(words) + (" …" if len(numbers) > MOST else "")


def step_of(number: float) -> tuple[float, int]:
    """Give the step of the grid at a number, and how many decimals its multiples have."""
    place = bisect_right(LIMITS, abs(number))
    return STEPS[min(place, len(STEPS) - 1)]


def number_text(number: float, shift: float = SHIFT) -> str:
    """Round a number to a grid that is a little shifted."""
    number = float(number)
    if not abs(number) < LIMITS[-1]:  # also not a number
        return f"{number:.2e}"
    step, decimals = step_of(number)
    return f"{math.floor(number / step + shift + 0.5) * step + 0.0:.{decimals}f}"


NOTHING = number_text(0.0)


def shifts_of(exercise: FunctionExercise, cases: Sequence[Case]) -> list[float]:
    """Give the shift of the grid for each case.

    Hidden inputs are drawn until no value lies near an edge. Public ones cannot be: their grid
    lies where the public expected values are far from its edges.
    """
    data = data_of(exercise.lesson).get(exercise.numbers_of or exercise.id, {"cases": ()})
    pairs = zip(exercise.cases, data["cases"], strict=False)
    rows = {id(case): numbers_in(entry["expected"]) for case, entry in pairs}
    return [best_shift(rows.get(id(case), ())) for case in cases]


def numbers_in(entry: Mapping[str, Any]) -> list[float]:
    """List all numbers of an expected outcome."""
    rows = [entry.get("values", ()), *(row or () for row in entry.get("gradients", {}).values())]
    return [float(number) for row in rows for number in row]


def best_shift(numbers: Sequence[float]) -> float:
    """Choose where the grid lies: as usual, or where a number keeps off its edges best."""
    shifts = [SHIFT, *(place / 50 - 0.49 for place in range(50))]

    def room(shift: float) -> float:
        places = [x / step_of(x)[0] + shift for x in numbers if math.isfinite(x)]
        return min((abs(place % 1 - 0.5) for place in places), default=0.5)

    return SHIFT if room(SHIFT) > 0.1 else max(shifts, key=room)


# --- which seeds are good ------------------------------------------------------------------


def margin_ok(
    exercise: FunctionExercise, answer: Any, *, stage: str | None = None, seed: int | None = None
) -> bool:
    """Whether a right answer prints the same text on any machine, and in float32.

    Args:
        exercise: what is asked.
        answer: a right one.
        stage: as for `ask`.
        seed: as for `ask`; try another one if this gives False.

    Raises:
        ValueError: if the answer fails in a case, so that no seed can be good.
    """
    return cases_ok(exercise, answer, cases_of(exercise, stage=stage, seed=seed))


def cases_ok(exercise: FunctionExercise, answer: Any, cases: Sequence[Case]) -> bool:
    """Do the same as `margin_ok` for cases of one's own.

    Raises:
        ValueError: if the answer fails in a case.
    """
    pairs = zip(cases, shifts_of(exercise, cases), strict=True)
    # the last cases have most numbers, so that a bad seed is soon found out
    return all(case_ok(exercise, answer, case, shift) for case, shift in [*pairs][::-1])


def case_ok(exercise: FunctionExercise, answer: Any, case: Case, shift: float) -> bool:
    """Whether a right answer prints one text for one case."""
    (outcome,) = outcomes_of(exercise, answer, [case])
    if outcome.problem:
        words = f"{outcome.problem} {outcome.detail}"
        raise ValueError(f"{exercise.id}: a right answer fails in {case.name!r}: {words}")
    rows = [outcome.values, *(row or () for row in outcome.gradients.values())]
    if not all(far_from_edges(number, shift) for row in rows for number in row):
        return False
    dtype = torch.float64 if case.dtype == torch.float32 else torch.float32
    (other,) = outcomes_of(exercise, answer, [replace(case, dtype=dtype)])
    return bool(other.problem) or text_of(outcome, shift) == text_of(other, shift)


def good_seed(
    exercise: FunctionExercise, answer: Any, *, stage: str, start: int, tries: int = TRIES
) -> int:
    """Find the first seed from a number on that `margin_ok` accepts.

    Args:
        exercise: what is asked.
        answer: a right one.
        stage: one of `stages_of`.
        start: the first to try.
        tries: how many to try.

    Raises:
        ValueError: if the answer fails, or none of them is good.
    """
    for seed in range(start, start + tries):
        if margin_ok(exercise, answer, stage=stage, seed=seed):
            return seed
    raise ValueError(f"{exercise.id}, {stage}: no seed in {tries} from {start} keeps off the edges")


def far_from_edges(number: float, shift: float) -> bool:
    """Whether a number that is a little larger or smaller is shown alike."""
    if not math.isfinite(number):
        return True
    nearby = TOLERANCE * max(1.0, abs(number))
    return number_text(number - nearby, shift) == number_text(number + nearby, shift)


# --- predictions ---------------------------------------------------------------------------


def predictions_of(exercise: HashedExercise, answer: Any) -> list[str]:
    """Give what `ask_hashed` prints.

    A number within the tolerance of the right one, as its public hash tells, is shown as the right
    one; any other as it is.
    """
    letters = list(exercise.questions)
    with state_kept(), quiet():
        try:
            given = by_letter(answer, letters) or {}
        except BaseException:  # it may be anything
            given = {}
        return [f"{letter} {prediction_text(exercise, letter, given)}" for letter in letters]


def prediction_text(exercise: HashedExercise, letter: str, given: dict[str, Any]) -> str:
    """Write one prediction."""
    if given.get(letter) is None:
        return "no answer"
    try:
        number = number_of(given[letter])
    except BaseException:
        return "no number"
    if not isinstance(exercise, NumbersExercise):
        return f"{(number > 0) - (number < 0):+d}"
    near = places(exercise, number)
    data = data_of(exercise.lesson).get(exercise.id)
    if data is None:  # a personal question: its constants keep the right number off the edges
        step = OWN_GRID * exercise.tolerance
        return str(math.floor(number / step + 0.5)) if math.isfinite(number) else str(number)
    stored = data["expected"][letter]
    right = [place for place in near if hash_of(exercise.id, letter, place) == stored]
    place = (right or near)[0]
    return place if isinstance(place, str) else f"{place * exercise.tolerance / GRID:.10g}"


# --- nothing else is shown -----------------------------------------------------------------


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide all that a learner's code shows: prints, warnings, logs, rich output and figures."""
    before = logging.root.manager.disable
    logging.disable(sys.maxsize)
    try:
        with silent(), displays_hidden(), figures_closed():
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def displays_hidden() -> Iterator[None]:
    """Take what is displayed in a notebook, and keep nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        yield
        return
    from IPython.core.displaypub import DisplayPublisher

    class Nowhere(DisplayPublisher):
        def publish(self, *given: Any, **named: Any) -> None:
            pass

        def clear_output(self, wait: bool = False) -> None:
            pass

    publisher, shell.display_pub = shell.display_pub, Nowhere()
    try:
        yield
    finally:
        shell.display_pub = publisher


@contextlib.contextmanager
def figures_closed() -> Iterator[None]:
    """Close the figures that are opened inside; a notebook would show them after the cell."""
    before = open_figures()
    try:
        yield
    finally:
        for number in open_figures() - before:
            sys.modules["matplotlib.pyplot"].close(number)


def open_figures() -> set[int]:
    """List the open figures, without importing what draws them."""
    plotting = sys.modules.get("matplotlib.pyplot")
    return set(plotting.get_fignums()) if plotting else set()
