"""Named wrong answers, and the battery of claims that must refuse each of them.

A test that takes one function as its fixture is a *claim* about that function:

    compute_gae = under_test(gae.compute_gae)

    def test_truncation_keeps_the_bootstrap(compute_gae): ...

pytest runs it on the package's function; the battery runs the same lines on each mistake. A mistake
has the signature of what it breaks, and its docstring says in one line what goes wrong. Tests of
messages are no claims: mistakes do not check their arguments.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest

LESSONS = (
    "shapes",
    "networks",
    "mdp",
    "reinforce",
    "importance",
    "trust_region",
    "clip",
    "critic",
    "gae",
    "continuous",
    "gpu_run",
    "tokens",
    "variants",
    "staleness",
    "debugging",
    "ablations",
    "ablations_statistics",
    "evidence",
    "rlhf",
)

Function = Callable[..., Any]


class Mistake(NamedTuple):
    """A wrong answer: its name, what it stands in for, what goes wrong, and the function."""

    name: str
    breaks: str
    sentence: str
    function: Function


def new_catalogue() -> tuple[dict[str, Function], Callable[[str], Callable[[Function], Function]]]:
    """Give an empty dictionary of mistakes and the decorator that fills it."""
    catalogue: dict[str, Function] = {}

    def breaks(target: str) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            function.breaks = target  # pyright: ignore[reportFunctionMemberAccess]
            catalogue[function.__name__] = function
            return function

        return register

    return catalogue, breaks


def mistakes_of(lesson: str) -> list[Mistake]:
    catalogue = importlib.import_module(f"mistakes.{lesson}").MISTAKES
    return [
        Mistake(name, function.breaks, inspect.getdoc(function) or "", function)
        for name, function in catalogue.items()
    ]


def under_test(function: Function) -> Any:
    """Make the package's function a fixture that bears its name."""
    return pytest.fixture(scope="module", name=function.__name__)(lambda: function)


def claims_about(target: str, tests: ModuleType) -> dict[str, Function]:
    """The claims of a module about `target`, cheap ones first (hypothesis runs many cases)."""
    found = {
        name: function
        for name, function in vars(tests).items()
        if name.startswith("test_")
        and list(inspect.signature(function).parameters) == [target]
        and "messages" not in {mark.name for mark in getattr(function, "pytestmark", [])}
    }
    return dict(sorted(found.items(), key=lambda pair: hasattr(pair[1], "hypothesis")))


def refuses(claim: Function, target: str, implementation: Function) -> bool:
    """Whether a claim fails; any error that is no failed assertion is the claim's own bug."""
    try:
        claim(**{target: implementation})
    except (AssertionError, pytest.fail.Exception):
        return True
    return False


def refusals(mistake: Mistake, tests: ModuleType) -> Iterator[str]:
    """The claims that refuse a mistake, one after the other."""
    for name, claim in claims_about(mistake.breaks, tests).items():
        if refuses(claim, mistake.breaks, mistake.function):
            yield name
