"""Write the data of the checks, and say whether it is current.

    python tools/build_checks.py build [clip ...]
    python tools/build_checks.py check [clip ...]
    python tools/build_checks.py time [clip ...]

The data holds what a right answer gives in every case of an exercise, and what each named wrong
answer gives where that differs. The right answer is the first of `tests/answers/<lesson>.py`, the
package's own function where there is one; the wrong ones stand in the same file. The checks
import neither, so nothing that a learner can look at shows a solution.

`build` refuses what a learner would suffer from: a wrong answer that passes, two mistakes that no
case tells apart, a mistake without words. `time` prints how long a check takes.
"""

import argparse
import importlib
import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch  # noqa: E402  after the path: this file runs as a script

from ppo_lessons.checks import compare, exercises  # noqa: E402
from ppo_lessons.checks.desk import all_exercises  # noqa: E402
from ppo_lessons.checks.exercises import (  # noqa: E402
    Exercise,
    FunctionExercise,
    HashedExercise,
    Outcome,
)
from ppo_lessons.checks.hashed import hash_of, matches, places  # noqa: E402
from ppo_lessons.checks.judge import call, judge  # noqa: E402

ANSWERS = importlib.import_module("answers")
DIGITS = 6  # significant ones
APART = 10 * compare.TOLERANCE


class DataError(Exception):
    """Answers or words that do not fit together."""


def data_for(lesson: str) -> dict[str, Any]:
    """Compute the data of one lesson.

    Args:
        lesson: its name.

    Returns:
        One entry per exercise, ready for JSON.

    Raises:
        DataError: if a mistake passes, has no words, or cannot be told from another.
    """
    right, wrong = ANSWERS.right_answers(lesson), ANSWERS.wrong_answers(lesson)
    of_lesson = [each for each in all_exercises().values() if each.lesson == lesson]
    if names := {each.name for each in of_lesson} ^ set(right):
        raise DataError(f"{lesson}: {sorted(names)} has answers or an exercise, not both")
    return {
        each.id: exercise_data(each, next(iter(right[each.name].values())), wrong[each.name])
        for each in of_lesson
        if not shared_with(each, wrong)
    }


def shared_with(exercise: Exercise, wrong: Mapping[str, Any]) -> str:
    """Give the id of the exercise whose numbers this one uses; its mistakes must be the same."""
    other = getattr(exercise, "numbers_of", "")
    if other and wrong[exercise.name] != wrong[other.partition(".")[2]]:
        raise DataError(f"{exercise.id}: its mistakes are not those of {other}")
    return other


def exercise_data(exercise: Exercise, right: Any, wrong: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the data of one exercise."""
    if names := set(exercise.mistakes) ^ {name.partition("#")[0] for name in wrong}:
        raise DataError(f"{exercise.id}: {sorted(names)} has words or an answer, not both")
    if isinstance(exercise, HashedExercise):
        return hashed_data(exercise, right, wrong)
    assert isinstance(exercise, FunctionExercise)
    expected = outcomes_of(exercise, right)
    for case, outcome in zip(exercise.cases, expected, strict=True):
        if outcome.problem:
            words = f"{outcome.problem} {outcome.detail}"
            raise DataError(f"{exercise.id}: a right answer fails in {case.name!r}: {words}")
    theirs = {name: outcomes_of(exercise, function) for name, function in wrong.items()}
    if doubled := alike({"a right answer": expected, **theirs}):
        raise DataError(f"{exercise.id}: no case tells {doubled[0]} from {doubled[1]}; add one")
    cases = []
    for number, case in enumerate(exercise.cases):
        entry = {"stage": case.stage, "name": case.name, "expected": as_data(expected[number])}
        entry["mistakes"] = {
            name: as_data(rows[number])
            for name, rows in sorted(theirs.items())
            if not compare.agree(rows[number], expected[number])
        }
        cases.append(entry)
    return {"cases": cases}


def outcomes_of(exercise: FunctionExercise, function: Any) -> list[Outcome]:
    """Call a function in every case."""
    return [call(function, exercise, case) for case in exercise.cases]


def alike(rows: Mapping[str, Sequence[Outcome]]) -> tuple[str, str] | None:
    """Find two answers that agree everywhere."""
    names = list(rows)
    for number, one in enumerate(names):
        for other in names[:number]:
            pairs = zip(rows[one], rows[other], strict=True)
            if not any(apart(mine, theirs) for mine, theirs in pairs):
                return one, other
    return None


def apart(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes differ by ten times the tolerance."""
    if one.problem or other.problem or one.shape != other.shape:
        return not compare.agree(one, other)
    rows = [(one.values, other.values)]
    for name in one.gradients:
        size = len(one.gradients[name] or other.gradients[name] or ())
        zero = (0.0,) * size
        rows.append((one.gradients[name] or zero, other.gradients[name] or zero))
    return any(differ(a, b) for left, right in rows for a, b in zip(left, right, strict=True))


def differ(one: float, other: float) -> bool:
    """Whether two numbers differ by ten times the tolerance."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) != math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one != other
    return one != other and abs(one - other) > APART * max(1.0, abs(one), abs(other))


def as_data(outcome: Outcome) -> dict[str, Any]:
    """Write an outcome for JSON."""
    if outcome.problem:
        return {"problem": outcome.problem}
    shape = [list(size) if isinstance(size, tuple) else size for size in outcome.shape]
    entry: dict[str, Any] = {"shape": shape, "values": rounded(outcome.values)}
    if outcome.gradients:
        entry["gradients"] = {name: rounded(row) for name, row in outcome.gradients.items()}
    return entry


def rounded(values: Sequence[float] | None) -> list[Any] | None:
    """Keep some digits; JSON has no word for NaN and infinity, so these are text."""
    if values is None:
        return None
    return [
        float(f"{value:.{DIGITS}g}") + 0.0 if math.isfinite(value) else str(value)
        for value in values
    ]


def hashed_data(exercise: HashedExercise, right: Any, wrong: Mapping[str, Any]) -> dict[str, Any]:
    """Hash predictions, so that the data shows none."""
    answers = {"a right answer": right, **wrong}

    def hashes(answer: Mapping[str, float]) -> dict[str, str]:
        return {
            letter: hash_of(exercise.id, letter, places(exercise, number)[0])
            for letter, number in answer.items()
        }

    rows = {name: hashes(answer) for name, answer in answers.items()}
    names = list(answers)
    for number, one in enumerate(names):
        for other in names[:number]:
            near = (
                matches(exercise, letter, answers[one][letter], rows[other][letter], reach=3)
                for letter in exercise.questions
            )
            if all(near):
                raise DataError(f"{exercise.id}: {one} and {other} are the same")
    expected = rows.pop("a right answer")
    return {"expected": expected, "mistakes": dict(sorted(rows.items()))}


# --- build, check, time --------------------------------------------------------------------


def path_of(lesson: str) -> Path:
    """Where the data of a lesson lies."""
    return exercises.DATA / f"{lesson}.json"


def write(value: Any, indent: str = "") -> str:
    """Write JSON that a diff can show: one line per case and mistake."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(flat) + len(indent) <= 98:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {write(each, inner)}" for key, each in value.items()]
        brackets = "{}"
    else:
        if not any(isinstance(each, (dict, list)) for each in value):
            return flat
        lines, brackets = [write(each, inner) for each in value], "[]"
    body = ",\n".join(inner + line for line in lines)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}"


def build(lesson: str) -> str:
    """Write the data of one lesson; say what happened."""
    text = write(data_for(lesson)) + "\n"
    path = path_of(lesson)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return f"{path.name}: unchanged"
    if path.exists() and not difference(lesson):
        return f"{path.name}: kept; it differs in the last digits only"
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".json.tmp")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return f"{path.name}: written, {len(text) // 1024} kB"


def difference(lesson: str) -> str:
    """Say where stored and computed data differ; nothing if they do not."""
    path = path_of(lesson)
    if not path.exists():
        return f"{path.name} does not exist"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return f"{path.name} is no JSON: {error}"
    place = first_difference(stored, data_for(lesson))
    return f"{path.name} is not current at {place}" if place else ""


def first_difference(stored: Any, fresh: Any, place: str = "") -> str:
    """Name the first place where two pieces of JSON differ; the last digit may."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if list(stored) != list(fresh):
            return f"{place}: other entries"
        found = (first_difference(stored[key], fresh[key], f"{place}/{key}") for key in stored)
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{place}: another length"
        pairs = enumerate(zip(stored, fresh, strict=True))
        found = (first_difference(a, b, f"{place}/{number}") for number, (a, b) in pairs)
    elif isinstance(stored, float) and isinstance(fresh, float):
        return "" if math.isclose(stored, fresh, rel_tol=1e-5, abs_tol=1e-6) else place or "/"
    else:
        return "" if stored == fresh else place or "/"
    return next((each for each in found if each), "")


def timings(lesson: str) -> list[str]:
    """Time every answer, right and wrong; one line per exercise, the median of all last."""
    lines, every = [], []
    for exercise in all_exercises().values():
        if exercise.lesson != lesson:
            continue
        name, seconds = exercise.name, []
        right, wrong = ANSWERS.right_answers(lesson)[name], ANSWERS.wrong_answers(lesson)[name]
        for answer in [*right.values(), *wrong.values()]:
            start = time.perf_counter()
            judge(exercise, answer)
            seconds.append(time.perf_counter() - start)
        every += seconds
        lines.append(line_of(exercise.id, seconds))
    return [*lines, line_of(f"all of {lesson}", every)]


def line_of(name: str, seconds: Sequence[float]) -> str:
    """Write one row of the table of times."""
    middle, longest = 1000 * statistics.median(seconds), 1000 * max(seconds)
    return f"{name:<32} {len(seconds):>4} checks   median {middle:6.1f} ms   max {longest:6.1f} ms"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the program's name; by default those of the process.

    Returns:
        0 if all went well, else 1.
    """
    parser = argparse.ArgumentParser(description="Write the data of the checks, or compare it.")
    parser.add_argument("verb", choices=("build", "check", "time"))
    parser.add_argument("lessons", nargs="*", metavar="name", help="which; all by default")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    failed = False
    for lesson in options.lessons or ANSWERS.LESSONS:
        try:
            lines, ok = run_verb(options.verb, lesson)
        except DataError as error:
            lines, ok = [f"✘ {error}"], False
        print("\n".join(lines))
        failed = failed or not ok
    return 1 if failed else 0


def run_verb(verb: str, lesson: str) -> tuple[list[str], bool]:
    """Do one thing for one lesson: what to print, and whether it went well."""
    if verb == "build":
        return [build(lesson)], True
    if verb == "time":
        return timings(lesson), True
    problem = difference(lesson)
    if problem:
        return [f"✘ {problem}", f"  run: python tools/build_checks.py build {lesson}"], False
    return [f"✔ the checks of {lesson} are current"], True


if __name__ == "__main__":
    sys.exit(main())
