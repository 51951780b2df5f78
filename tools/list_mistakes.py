"""Print what becomes of named mistakes, as markdown tables.

    python tools/list_mistakes.py                   exercises: how many are refused, and named
    python tools/list_mistakes.py --claims [gae]    functions: which claim refuses which mistake

The first judges every answer of `tests/answers/`, right ones and wrong ones, with the checks of
all lessons. The second runs the claims of `tests/test_<lesson>.py` on `tests/mistakes/`.
"""

import argparse
import importlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from ppo_lessons.checks.desk import all_exercises  # noqa: E402  after the path: a script
from ppo_lessons.checks.exercises import Exercise  # noqa: E402
from ppo_lessons.checks.judge import judge  # noqa: E402

HEAD = (
    "| lesson | exercises | named mistakes | wrong answers | refused | by their name "
    "| right answers | of these refused |\n|---|" + "---:|" * 7
)


@dataclass
class Count:
    """What became of the answers to some exercises.

    Args:
        exercises: how many.
        names: of mistakes; those that two exercises share count once.
        wrong: answers, some mistakes being spelt in several ways.
        refused: of the wrong ones.
        named: of the wrong ones, each by its own name.
        right: answers.
        hurt: right answers that were refused.
    """

    exercises: int = 0
    names: int = 0
    wrong: int = 0
    refused: int = 0
    named: int = 0
    right: int = 0
    hurt: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def row(self, title: str) -> str:
        """Write one row of the table."""
        share = (f"{100 * part / max(self.wrong, 1):.1f} %" for part in (self.refused, self.named))
        cells = (title, self.exercises, self.names, self.wrong, *share, self.right, self.hurt)
        return f"| {' | '.join(map(str, cells))} |"


def count_exercise(exercise: Exercise) -> Count:
    """Judge every answer to one exercise."""
    answers = importlib.import_module("answers")
    wrong = answers.wrong_answers(exercise.lesson)[exercise.name]
    right = answers.right_answers(exercise.lesson)[exercise.name]
    verdicts = [(name.partition("#")[0], judge(exercise, each)) for name, each in wrong.items()]
    shared = getattr(exercise, "numbers_of", "")
    return Count(
        exercises=1,
        names=0 if shared else len({name for name, _ in verdicts}),
        wrong=len(verdicts),
        refused=sum(not result.passed for _, result in verdicts),
        named=sum(result.mistake == name for name, result in verdicts),
        right=len(right),
        hurt=sum(not judge(exercise, each).passed for each in right.values()),
    )


def print_checks() -> int:
    """Print the table of the exercises; 0 if no wrong answer passes and no right one fails."""
    by_lesson: dict[str, Count] = {}
    for exercise in all_exercises().values():
        count = by_lesson.get(exercise.lesson, Count())
        by_lesson[exercise.lesson] = count + count_exercise(exercise)
    total = sum(by_lesson.values(), Count())
    print("\n".join([HEAD, *(count.row(lesson) for lesson, count in by_lesson.items())]))
    print(total.row("all"))
    return 0 if total.refused == total.wrong and not total.hurt else 1


def claim_rows(lesson: str) -> list[str]:
    """The rows of one lesson; the number behind the first refusing claim counts the others."""
    battery: Any = importlib.import_module("mistakes")
    tests = importlib.import_module(f"test_{lesson}")
    lines = []
    for mistake in battery.mistakes_of(lesson):
        first, *others = [name.removeprefix("test_") for name in battery.refusals(mistake, tests)]
        more = f" and {len(others)} more" if others else ""
        lines.append(
            f"| `{mistake.name}` | `{lesson}.{mistake.breaks}` | {mistake.sentence} "
            f"| {first.replace('_', ' ')}{more} |"
        )
    return lines


def print_claims(lessons: Sequence[str]) -> int:
    """Print who refuses what, for some lessons."""
    print("| mistake | breaks | what goes wrong | refused by |\n|---|---|---|---|")
    for lesson in lessons:
        print("\n".join(claim_rows(lesson)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the program's name; by default those of the process.

    Returns:
        0 if all went well, else 1.
    """
    known = importlib.import_module("mistakes").LESSONS
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--claims", nargs="*", metavar="LESSON", help=f"of {', '.join(known)}")
    lessons = parser.parse_args(arguments).claims
    if lessons is None:
        return print_checks()
    if unknown := set(lessons) - set(known):
        parser.error(f"no mistakes of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    warnings.filterwarnings("ignore", message=".*degrees of freedom")
    return print_claims(lessons or known)


if __name__ == "__main__":
    sys.exit(main())
