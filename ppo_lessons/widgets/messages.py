"""Find the words of a widget: `words/<name>.py` holds them, one table per language.

Both sides read them: Python formats `{name}` with `str.format`, the script with its `say`. A new
language is a new table with the same keys; a test holds them equal.
"""

from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ppo_lessons.widgets import words

Words = dict[str, str]


def _collect() -> dict[str, dict[str, Words]]:
    """Gather the tables: by language, then by widget."""
    collected: dict[str, dict[str, Words]] = {}
    for module in iter_modules(words.__path__):
        tables = import_module(f"{words.__name__}.{module.name}").WORDS
        for language, table in tables.items():
            collected.setdefault(language, {})[module.name] = table
    return collected


WORDS = _collect()


def words_of(name: str) -> dict[str, Words]:
    """Give what one widget's script needs: its words in each language.

    Args:
        name: of the widget, as in "clip_region".

    Returns:
        The words by language and key; where a widget has a word of its own, it stands.
    """
    return {language: {**table["base"], **table[name]} for language, table in WORDS.items()}


def say(name: str, key: str, *, language: str = "en", **values: Any) -> str:
    """Fill one sentence.

    Args:
        name: of the widget, or "html".
        key: of the sentence.
        language: one of the tables.
        values: what stands in braces, as text or numbers.

    Returns:
        The sentence.
    """
    return WORDS[language][name][key].format(**values)


def written(value: int | float, digits: int) -> str:
    """Write a number for reading, to the letter as the script's `written` does.

    Args:
        value: finite.
        digits: after the point.

    Returns:
        Halves rounded away from 0, as JavaScript's `toFixed`; a true minus; no minus before 0.
    """
    exact = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{abs(exact) if exact == 0 else exact:.{digits}f}".replace("-", "−")
