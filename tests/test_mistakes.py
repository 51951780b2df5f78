"""Each named mistake is refused by a claim, and each claim refuses a mistake: its control.

The claims are the tests of the modules; `tools/list_mistakes.py --claims` prints who refuses what.
"""

import importlib
import inspect
from functools import cache

import pytest
from mistakes import LESSONS, claims_about, mistakes_of, refusals

# Some mistakes take the deviation of one sample or of none; torch warns, and is right.
pytestmark = pytest.mark.filterwarnings("ignore:.*degrees of freedom")

MISTAKES = [(lesson, mistake) for lesson in LESSONS for mistake in mistakes_of(lesson)]
TARGETS = sorted({(lesson, mistake.breaks) for lesson, mistake in MISTAKES})


def module_of(lesson: str):
    return importlib.import_module(f"test_{lesson}")


@cache
def refused_by(lesson: str, name: str) -> tuple[str, ...]:
    (mistake,) = (m for m in mistakes_of(lesson) if m.name == name)
    return tuple(refusals(mistake, module_of(lesson)))


@pytest.mark.parametrize(
    ("lesson", "mistake"), MISTAKES, ids=[f"{lesson}-{m.name}" for lesson, m in MISTAKES]
)
def test_the_mistake_is_refused(lesson, mistake):
    assert refused_by(lesson, mistake.name), f"no claim refuses {mistake.name}"


@pytest.mark.parametrize(("lesson", "target"), TARGETS)
def test_each_claim_refuses_a_mistake(lesson, target):
    refused = {
        claim
        for m in mistakes_of(lesson)
        if m.breaks == target
        for claim in refused_by(lesson, m.name)
    }
    idle = set(claims_about(target, module_of(lesson))) - refused
    assert not idle, f"nothing can fail {sorted(idle)}: name a mistake that does"


@pytest.mark.parametrize(
    ("lesson", "mistake"), MISTAKES, ids=[f"{lesson}-{m.name}" for lesson, m in MISTAKES]
)
def test_the_mistake_can_stand_in_for_what_it_breaks(lesson, mistake):
    home = getattr(importlib.import_module(f"mistakes.{lesson}"), "HOME", lesson)
    right = getattr(importlib.import_module(f"ppo_lessons.{home}"), mistake.breaks)
    wanted, given = (
        [(name, p.kind) for name, p in inspect.signature(function).parameters.items()]
        for function in (right, mistake.function)
    )
    assert given == wanted


@pytest.mark.parametrize(
    ("lesson", "mistake"), MISTAKES, ids=[f"{lesson}-{m.name}" for lesson, m in MISTAKES]
)
def test_the_mistake_says_in_one_line_what_goes_wrong(lesson, mistake):
    assert "\n" not in mistake.sentence
    assert mistake.sentence.endswith(".")
    assert len(mistake.sentence) > 10
