"""Print what becomes of named mistakes, as markdown tables, or list them for readers.

    python tools/list_mistakes.py                   exercises: how many are refused, and named
    python tools/list_mistakes.py --claims [gae]    functions: which claim refuses which mistake
    python tools/list_mistakes.py build | check     the page `docs/what_can_go_wrong.md`

The first judges every answer of `tests/answers/`, right ones and wrong ones, with the checks of
all lessons. The second runs the claims of `tests/test_<lesson>.py` on `tests/mistakes/`. The third
runs neither: it reads the names and what they say of themselves.
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
from ppo_lessons.lessons import LESSONS, find_lesson  # noqa: E402

PAGE = ROOT / "docs" / "what_can_go_wrong.md"

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


# --- the page for readers ------------------------------------------------------------------

INTRODUCTION = """# What can go wrong in PPO

A wrong PPO seldom crashes. It learns a little less, or a little later, or something else. So the
useful question is not whether the code runs, but which of the usual mistakes it makes, and they
have names.

Below are {mistakes} of them, by the lesson whose functions they break. Each is a function under
[tests/mistakes](../tests/mistakes) that runs and gives a wrong answer, and the tests of the
package have to refuse every one. Read the list of a lesson before you write its functions
yourself; come back when a run of yours does not learn, and look for the function that you
suspect.

The exercises know {names} by name. If your answer gives what one of them gives, the check tells
you which, and what it does; to list those here would spoil the exercises, so they are only
[counted](#in-the-exercises), at the end.

This page is made by `python tools/list_mistakes.py build`.
"""
OTHERS = {
    "ablations_statistics": "Ablations: what may be concluded from a few runs",
    "mdp": "Exact MDPs: what is solved instead of sampled",
    "networks": "Networks: actions that are real numbers",
    "shapes": "In every lesson: means over what counts",
}


def catalogues() -> list[str]:
    """Name the modules of `tests/mistakes`: lessons in their order, then what all of them use."""
    there = {path.stem for path in (ROOT / "tests" / "mistakes").glob("[a-z]*.py")}
    lessons = [lesson.name for lesson in LESSONS if lesson.name in there]
    return lessons + sorted(there - set(lessons))


def home_of(lesson: str, target: str) -> str:
    """Say where the function stands that a mistake breaks, as in "gae.compute_gae".

    Args:
        lesson: name of the catalogue.
        target: name of the function.

    Returns:
        Module and function; the loop's and the rollouts' mistakes break functions of others, too.

    Raises:
        ValueError: if there is no such function.
    """
    home = getattr(importlib.import_module(f"mistakes.{lesson}"), "HOME", lesson)
    for module in (home, "training_loop.parts", "envs"):
        found = getattr(importlib.import_module(f"ppo_lessons.{module}"), target, None)
        if found is not None:
            return f"{found.__module__.split('.')[1]}.{target}"
    raise ValueError(
        f"mistakes of {lesson} break {target}; expected a function of ppo_lessons.{lesson}. "
        "Correct the name after @breaks."
    )


def mistake_rows(lesson: str) -> list[str]:
    """Write one row for each named mistake of a lesson."""
    return [
        f"| `{mistake.name}` | `{home_of(lesson, mistake.breaks)}` "
        f"| {mistake.sentence.replace('|', chr(92) + '|')} |"
        for mistake in importlib.import_module("mistakes").mistakes_of(lesson)
    ]


def known_answers(lesson: str) -> Count:
    """Count exercises and answers of one lesson; nothing is judged."""
    answers = importlib.import_module("answers")
    wrong, right = answers.wrong_answers(lesson), answers.right_answers(lesson)
    exercises = [each for each in all_exercises().values() if each.lesson == lesson]
    own = [each for each in exercises if not getattr(each, "numbers_of", "")]
    return Count(
        exercises=len(exercises),
        names=sum(len({name.partition("#")[0] for name in wrong[each.name]}) for each in own),
        wrong=sum(len(wrong[each.name]) for each in exercises),
        right=sum(len(right[each.name]) for each in exercises),
    )


def page() -> str:
    """Write the page: a table of named mistakes per lesson, then the counts of the exercises."""
    tables = {lesson: mistake_rows(lesson) for lesson in catalogues()}
    counts = {lesson.name: known_answers(lesson.name) for lesson in LESSONS if lesson.checks}
    total = sum(counts.values(), Count())
    mistakes = sum(map(len, tables.values()))
    lines = [INTRODUCTION.format(mistakes=mistakes, names=total.names)]
    for name, rows in tables.items():
        head = "| mistake | breaks | what goes wrong |"
        lines += [f"## {heading(name)}", "", head, "| --- | --- | --- |", *rows, ""]
    lines += [
        "## In the exercises",
        "",
        "Some mistakes are written in several ways, since people do; each has to be refused.",
        "A right answer may be written in several ways, too, and none of them may be.",
        "",
        "| lesson | exercises | named mistakes | wrong answers | right answers |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, count in [*counts.items(), ("", total)]:
        title = exercise_title(name) if name else "all"
        cells = (title, count.exercises, count.names, count.wrong, count.right)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def heading(catalogue: str) -> str:
    """Write the heading of one table: a lesson with its link, or what is no lesson."""
    if catalogue in OTHERS:
        return OTHERS[catalogue]
    lesson = find_lesson(catalogue)
    title = f"{lesson.number:02d} {lesson.title}"
    return f"[{title}](../notebooks/{lesson.stem}.ipynb)" if lesson.notebook else title


def exercise_title(lesson: str) -> str:
    """Name the exercise of a lesson, with a link to it where it can be opened already."""
    found = find_lesson(lesson)
    return f"[{found.stem}](../exercises/{found.stem}.ipynb)" if found.exercise else found.stem


def build_or_check(verb: str) -> int:
    """Write the page, or say whether it is current."""
    text = page()
    if verb == "build":
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not current: python tools/list_mistakes.py build", file=sys.stderr)
        return 1
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
    parser.add_argument("verb", nargs="?", choices=("build", "check"), help="the page in docs/")
    options = parser.parse_args(arguments)
    if options.verb:
        return build_or_check(options.verb)
    lessons = options.claims
    if lessons is None:
        return print_checks()
    if unknown := set(lessons) - set(known):
        parser.error(f"no mistakes of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    warnings.filterwarnings("ignore", message=".*degrees of freedom")
    return print_claims(lessons or known)


if __name__ == "__main__":
    sys.exit(main())
