"""Learn PPO: the small tested package behind the notebooks.

Importing it loads no heavy library. The helpers of the notebooks are found here and loaded at
their first use: `setup, budget, show, show_source, Watch, recorded, predict, compare, quiz, claim,
check, hint, reveal`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ppo_lessons.lessons import (
    LESSONS,
    ROUTES,
    Lesson,
    Route,
    find_lesson,
    lesson_table,
    route_table,
)

if TYPE_CHECKING:
    from ppo_lessons.claims import claim
    from ppo_lessons.notebook import Watch, budget, recorded, setup, show, show_source
    from ppo_lessons.progress import compare, predict, quiz

    # those of `checks`, which stands above the lessons and is imported only when it is asked for
    check: Any
    hint: Any
    reveal: Any

__version__ = "0.1.0"

__all__ = [
    "LESSONS",
    "ROUTES",
    "Lesson",
    "Route",
    "Watch",
    "budget",
    "check",
    "claim",
    "compare",
    "find_lesson",
    "hint",
    "lesson_table",
    "predict",
    "quiz",
    "recorded",
    "reveal",
    "route_table",
    "setup",
    "show",
    "show_source",
]

_HOME = {
    "Watch": "notebook",
    "budget": "notebook",
    "recorded": "notebook",
    "setup": "notebook",
    "show": "notebook",
    "show_source": "notebook",
    "claim": "claims",
    "check": "checks",
    "hint": "checks",
    "reveal": "checks",
    "compare": "progress",
    "predict": "progress",
    "quiz": "progress",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
