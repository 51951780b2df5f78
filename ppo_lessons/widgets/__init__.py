"""What moves under the hand: widgets that a notebook shows and one offline page holds.

    from ppo_lessons.widgets import ClipRegion
    ClipRegion()

Python owns the numbers: each widget computes them with the functions of its lesson. The script
beside it owns the pixels, so the picture follows the hand even while the kernel is busy. The list
of widgets is `registry.HOME`.
"""

from importlib import import_module
from typing import Any

from ppo_lessons.widgets.registry import HOME


def __getattr__(name: str) -> Any:
    if name not in HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*HOME, "find_widget"]


def find_widget(name: str) -> Any:
    """Look a widget's class up by the name of its module.

    Args:
        name: as in `LESSONS`, for instance "clip_region".

    Returns:
        The class.

    Raises:
        ValueError: if there is no such widget.
    """
    for title, module in HOME.items():
        if module == name:
            return getattr(import_module(f"{__name__}.{module}"), title)
    raise ValueError(f"no widget {name!r}; the widgets are {', '.join(HOME.values())}")
