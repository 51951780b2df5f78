"""Learn PPO: the small tested package behind the notebooks.

Importing it loads no heavy library. The helpers of the notebooks are found here and loaded at
their first use: `setup, budget, show, show_source,
Watch, predict, compare, quiz`.
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
    from ppo_lessons.notebook import Watch, budget, setup, show, show_source
    from ppo_lessons.progress import compare, predict, quiz

__version__ = "0.1.0"

__all__ = [
    "LESSONS",
    "ROUTES",
    "Lesson",
    "Route",
    "Watch",
    "budget",
    "compare",
    "find_lesson",
    "lesson_table",
    "predict",
    "quiz",
    "route_table",
    "setup",
    "show",
    "show_source",
]

_HOME = {
    "Watch": "notebook",
    "budget": "notebook",
    "setup": "notebook",
    "show": "notebook",
    "show_source": "notebook",
    "compare": "progress",
    "predict": "progress",
    "quiz": "progress",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
