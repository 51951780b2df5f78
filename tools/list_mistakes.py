"""Print every named mistake as a markdown table: what it breaks, what goes wrong, who refuses it.

    python tools/list_mistakes.py [LESSON ...]

The last column comes from running the claims of `tests/test_<lesson>.py` on the mistake.
"""

import argparse
import importlib
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"


def rows(lesson: str) -> list[str]:
    """The rows of one lesson; the number behind the first refusing claim counts the others."""
    battery = importlib.import_module("mistakes")
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


def main() -> None:
    """Print the table of some lessons, or of all that the battery knows."""
    sys.path[:0] = [str(TESTS.parent), str(TESTS)]
    known = importlib.import_module("mistakes").LESSONS
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help=f"of {', '.join(known)}")
    lessons = parser.parse_args().lessons or known
    if unknown := set(lessons) - set(known):
        parser.error(f"no mistakes of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    warnings.filterwarnings("ignore", message=".*degrees of freedom")
    print("| mistake | breaks | what goes wrong | refused by |\n|---|---|---|---|")
    for lesson in lessons:
        print("\n".join(rows(lesson)))


if __name__ == "__main__":
    main()
