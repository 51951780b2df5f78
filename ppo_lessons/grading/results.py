"""How is a result kept? One file of JSON for each student, written at once or not at all."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ppo_lessons.grading.types import CheckResult, QuestionResult, Result

VERSION = 1
MAX_NAME = 80  # characters of a file's name


def file_name(student: str) -> str:
    """Make a file's name of a student's id; different ids have different names.

    Args:
        student: whatever the roster or the file's name says.

    Returns:
        The name without its ending; it holds neither a slash nor a leading dot.
    """
    name = quote(student, safe=" @+,=").replace(".", "%2E", student.startswith("."))
    if not name or len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}-{sha256(student.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return name


def write_whole(path: Path, text: str, *, synced: bool = True) -> None:
    """Write a file so that it is there complete, or as it was before.

    Args:
        path: the file; its folder is made.
        text: of it.
        synced: whether that holds after a power cut too, which takes some 10 ms.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, place = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        Path(place).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(place).unlink()
        raise


def to_text(result: Result) -> str:
    """Write a result as JSON."""
    fields = {"version": VERSION, **asdict(result)}
    return json.dumps(fields, indent=1, ensure_ascii=True) + "\n"


def from_text(text: str) -> Result:
    """Read a result.

    Raises:
        ValueError: if the text is no result of this version.
    """
    try:
        fields = dict(json.loads(text))
        if fields.pop("version") != VERSION:
            raise ValueError("another version wrote it")
        questions = tuple(question_from(each) for each in fields.pop("questions"))
        return Result(**{**fields, "notes": tuple(fields["notes"])}, questions=questions)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it lacks something: {error}") from None


def question_from(fields: Mapping[str, Any]) -> QuestionResult:
    """Read the result of one question."""
    checks = tuple(CheckResult(**each) for each in fields["checks"])
    return QuestionResult(**{**fields, "checks": checks, "notes": tuple(fields["notes"])})


def write_result(folder: Path, result: Result) -> Path:
    """Write `folder/<student>.json` by an atomic rename.

    Args:
        folder: made if it is missing.
        result: of one student.

    Returns:
        The file.
    """
    path = folder / f"{file_name(result.student)}.json"
    write_whole(path, to_text(result))
    return path


def read_result(path: Path) -> Result:
    """Read one result.

    Args:
        path: a file that `write_result` wrote.

    Returns:
        The result.

    Raises:
        ValueError: if the file is no result of this version.
    """
    try:
        return from_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); expected a result of this version of the grader. "
            "Delete it and grade again: what did not change is not run again."
        ) from None


def read_results(folders: Iterable[Path]) -> list[Result]:
    """Read the results of several runs; a student may have one in each.

    Args:
        folders: each with `<student>.json` files.

    Returns:
        All of them, ordered by folder and file.

    Raises:
        ValueError: if a file is no result of this version.
    """
    paths = [path for folder in folders for path in sorted(folder.glob("[!.]*.json"))]
    return [read_result(path) for path in paths]
