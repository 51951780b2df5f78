"""Where do right answers stay? As small files that a later lesson imports and trains with.

A passed check writes the learner's function to `$PPO_LESSONS_HOME/answers/<lesson>.<exercise>.py`,
together with the imports, constants and helpers that it needs. Without that variable nothing is
written.
"""

import ast
import builtins
import contextlib
import importlib.util
import inspect
import os
import symtable
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

PLAIN = (bool, int, float, str, type(None))


def answer_path(id: str) -> Path | None:
    """Say where the answer to an exercise is kept.

    Args:
        id: `lesson.exercise`.

    Returns:
        The file, or None when PPO_LESSONS_HOME is not set.
    """
    home = os.environ.get("PPO_LESSONS_HOME")
    return Path(home) / "answers" / f"{id}.py" if home else None


def keep_answer(id: str, answer: Any) -> None:
    """Write an answer to its file; an older one is put aside as `<exercise>.old-N.py`.

    Data, and functions whose source cannot be found, are not kept.

    Args:
        id: `lesson.exercise`.
        answer: what passed the check.
    """
    path = answer_path(id)
    if path is None or type(answer) is not FunctionType:
        return
    try:
        text = f"# answer: {id}\n{whole_source(answer, name=id.partition('.')[2])}"
        ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return
    try:
        replace(path, text)
    except OSError as error:
        print(f"the answer is not kept: {path.name} cannot be written ({error.strerror})")


def load_answer(id: str) -> Callable[..., Any] | None:
    """Import the answer to an exercise.

    Args:
        id: `lesson.exercise`.

    Returns:
        The learner's function; None if none is kept.
    """
    path = answer_path(id)
    if path is None or not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(f"answer_{id.replace('.', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, id.partition(".")[2])


def replace(path: Path, text: str) -> None:
    """Write a file in one step, and keep the one that it replaces if that differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        if path.read_text(encoding="utf-8", errors="replace") == text:
            return
        number = 1
        while (aside := path.with_name(f"{path.stem}.old-{number}.py")).exists():
            number += 1
        path.replace(aside)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".answer-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


# --- the source, with what it needs --------------------------------------------------------


def whole_source(function: Callable[..., Any], *, name: str) -> str:
    """Write a function together with the imports, constants and helpers that it uses.

    Args:
        function: of a notebook or a file.
        name: what the function is called in the file.

    Returns:
        The text of a module.

    Raises:
        OSError: if the source cannot be found.
    """
    lines: dict[str, None] = {}  # in order, each once
    sources: dict[str, str] = {}
    collect_source(function, lines, sources, set())
    rename = [] if function.__name__ == name else [f"\n{name} = {function.__name__}"]
    return "\n".join([*lines, *(f"\n\n{text.rstrip()}" for text in sources.values()), *rename, ""])


def collect_source(
    function: Callable[..., Any], lines: dict[str, None], sources: dict[str, str], seen: set[str]
) -> None:
    """Gather one function and what it needs; helpers come before those who call them."""
    seen.add(function.__name__)
    text = textwrap.dedent(inspect.getsource(function))
    for needed in free_names(text):
        value = function.__globals__.get(needed)
        if needed in seen or needed not in function.__globals__:
            continue
        if inspect.isfunction(value) and value.__globals__ is function.__globals__:
            collect_source(value, lines, sources, seen)
        else:
            lines[line_for(needed, value)] = None
    sources[function.__name__] = text


def line_for(name: str, value: Any) -> str:
    """Write the line that gives a name its value.

    Raises:
        ValueError: if no line can, as for a tensor.
    """
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
    if isinstance(value, PLAIN):
        return f"{name} = {value!r}"
    home, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(home, str) and home != "__main__" and own and "." not in own:
        return f"from {home} import {own}" + ("" if own == name else f" as {name}")
    raise ValueError(f"{name} is a {type(value).__name__}; only its value could be kept")


def free_names(text: str) -> Iterator[str]:
    """Yield the names that a piece of source looks up outside itself."""
    tables = [symtable.symtable(text, "<answer>", "exec")]
    seen: set[str] = set(vars(builtins))
    while tables:
        table = tables.pop(0)
        tables += table.get_children()
        for symbol in table.get_symbols():
            outside = symbol.is_global() or table.get_type() == "module"
            if outside and symbol.is_referenced() and symbol.get_name() not in seen:
                seen.add(symbol.get_name())
                yield symbol.get_name()
