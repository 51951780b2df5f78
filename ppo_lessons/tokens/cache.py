"""Checkpoints by the hash of their configuration, in the user's cache directory.

    $PPO_LESSONS_CACHE, or the system's own place for what can be made again
    <name>-<hash>.pt

The hash covers name, configuration and the code it depends on. A file that cannot be read is made
again; where nothing can be written, work goes on without a cache.
"""

import ast
import hashlib
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FORMAT = 1  # of the files
TOGGLE = "PPO_LESSONS_CACHE"


def cache_directory() -> Path | None:
    """Say where checkpoints are kept.

    Returns:
        `$PPO_LESSONS_CACHE`, else the user's cache directory of the system; None if the variable
        is set and empty, so that nothing is kept.
    """
    if TOGGLE in os.environ:
        return Path(os.environ[TOGGLE]) if os.environ[TOGGLE] else None
    try:
        return _system_cache() / "ppo-lessons"
    except RuntimeError:  # no home
        return None


def _system_cache() -> Path:
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cached(
    name: str,
    config: Any,
    make: Callable[[], Mapping[str, Any]],
    *,
    depends_on: Sequence[str] = (),
    like: Mapping[str, Tensor] | None = None,
) -> Mapping[str, Any]:
    """Give what `make` makes; from the cache, if the same was made before.

    Args:
        name: first part of the file's name.
        config: a dataclass, or what JSON can hold: everything that decides what comes out.
        make: makes it; tensors, numbers and text in dictionaries, such as a `state_dict`.
        depends_on: names of modules whose code decides it too: it is made anew when one changes.
        like: a `state_dict` with the names and shapes that are wanted; a file that holds something
            else is made again, like one that cannot be read.

    Returns:
        What was made, its tensors on the CPU.

    Raises:
        TypeError: if config holds what cannot be written as JSON.
    """
    folder = cache_directory()
    if folder is None:
        return make()
    path = folder / f"{name}-{cache_key(name, config, depends_on)}.pt"
    found = _read(path)
    if found is not None and like is not None and not _alike(found, like):
        print(f"{path.name} holds something else; it is made again", file=sys.stderr)
        found = None
    if found is not None:
        return found
    made = make()
    _write(path, made)
    return made


def cache_key(name: str, config: Any, depends_on: Sequence[str] = ()) -> str:
    """Hash all that decides what is made.

    Args:
        name: of the kind of thing.
        config: a dataclass, or what JSON can hold.
        depends_on: names of modules whose code counts; their docstrings and comments do not.

    Returns:
        Sixteen hexadecimal digits, the same on every machine with this Python.

    Raises:
        TypeError: if config holds what cannot be written as JSON.
        ValueError: if there is no such module.
    """
    sources = [_code(module) for module in depends_on]
    described = [FORMAT, name, _plain(config), sources]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def _code(module: str) -> str:
    """What a module does, as text: comments and docstrings change nothing, so they do not count."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"depends_on names {module!r}; expected a module with a source file.")
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _plain(config: Any) -> Any:
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else config


def _read(path: Path) -> Mapping[str, Any] | None:
    """Read a file; say so and give None if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:  # torch itself does not compare the checksums
                raise zipfile.BadZipFile
        return torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        return None
    except Exception:  # a damaged file may raise anything while it is taken apart
        print(f"{path.name} cannot be read; it is made again", file=sys.stderr)
        return None


def _alike(found: Any, like: Mapping[str, Tensor]) -> bool:
    """Whether two dictionaries hold tensors of the same names and shapes."""
    return (
        isinstance(found, Mapping)
        and found.keys() == like.keys()
        and all(getattr(found[name], "shape", None) == like[name].shape for name in like)
    )


def _write(path: Path, made: Mapping[str, Any]) -> None:
    """Write whole or not at all; a crash or a second writer leaves one of the two files."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    except OSError as error:
        print(f"nothing is kept in the cache ({error.strerror})", file=sys.stderr)
        return
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(dict(made), file)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
    except OSError as error:
        print(f"nothing is kept in the cache ({error.strerror})", file=sys.stderr)
    finally:
        Path(partial).unlink(missing_ok=True)
