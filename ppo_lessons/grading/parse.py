"""What stands in a notebook file? Only texts, ids and our own marks are taken.

A student's file may have been saved by any editor, or made to do harm: whatever has the wrong
type is left out and said, and outputs, tags and all other metadata are never looked at.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ppo_lessons.grading.types import Cell

MAX_CELLS = 2_000
MAX_CODE = 100_000  # characters of a code cell
MAX_TEXT = 20_000  # characters kept of any other cell; pictures may be pasted into them
MAX_CODE_IN_ALL = 200_000
MAX_BRACKETS = 1_000_000  # each may become an object of a hundred bytes
KINDS: Mapping[str, Literal["code", "markdown", "raw"]] = {
    "code": "code",
    "markdown": "markdown",
    "heading": "markdown",
    "html": "markdown",
    "raw": "raw",
    "plaintext": "raw",
}
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# A line that names an answer: with more or fewer spaces, and in other capitals, it still counts.
MARKER = re.compile(r"^[ \t]*#+[ \t]*answer[ \t]*:[ \t]*([A-Za-z_][\w.]*)", re.I | re.M)
# Halves of a pair, and controls that no Python source and no report can hold.
UNSPEAKABLE = re.compile("[\ud800-\udfff\0-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")


class UnreadableError(ValueError):
    """A file that is no notebook, with the reason in words."""


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What was taken from a notebook.

    Args:
        cells: in order.
        assignment: for which it was built, by its own metadata.
        student: whose personal copy it is, by its own metadata.
        built_from: the source it was built from, by its own metadata.
        notes: what had to be mended.
    """

    cells: tuple[Cell, ...]
    assignment: str = ""
    student: str = ""
    built_from: str = ""
    notes: tuple[str, ...] = ()


def parse_notebook(data: bytes) -> Parsed:
    """Read the bytes of a notebook.

    Args:
        data: of a file; anything.

    Returns:
        Its texts.

    Raises:
        UnreadableError: if it is no notebook, or one that could do harm.
    """
    notebook = loaded(decoded(data))
    if not isinstance(notebook, dict):
        raise UnreadableError("is JSON, but no notebook")
    notes: list[str] = []
    if "worksheets" in notebook and "cells" not in notebook:
        notes.append("the notebook has the old format nbformat 3; its cells were read all the same")
    cells = cells_of(notebook)
    if len(cells) > MAX_CELLS:
        raise UnreadableError(f"has {len(cells)} cells; at most {MAX_CELLS} are read")
    kept = tuple(read_cells(cells, notes))
    if not kept:
        raise UnreadableError("is a notebook without cells")
    if sum(len(cell.source) for cell in kept if cell.kind == "code") > MAX_CODE_IN_ALL:
        raise UnreadableError(f"holds more than {MAX_CODE_IN_ALL} characters of code")
    ours = mapping(mapping(notebook.get("metadata")).get("ppo_lessons"))
    return Parsed(
        cells=kept,
        assignment=short(ours.get("assignment")),
        student=short(ours.get("student")),
        built_from=short(ours.get("source")),
        notes=tuple(notes),
    )


# --- from bytes to JSON --------------------------------------------------------------------


def decoded(data: bytes) -> str:
    """Turn bytes into text, by the byte-order mark or by what JSON must begin with."""
    if not data.strip(b" \t\r\n\0"):
        raise UnreadableError("is empty")
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"is no {encoding.upper()} text (byte {error.start}): save it once more in Jupyter"
        ) from None


def loaded(text: str) -> Any:
    """Read JSON that may be hostile."""
    start = text.lstrip("\ufeff \t\r\n")
    refuse_other_files(start)
    try:
        return json.loads(start)
    except json.JSONDecodeError as error:
        raise UnreadableError(words_for(error, start)) from None
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except ValueError:
        raise UnreadableError("is no JSON: it holds a number with thousands of digits") from None


def refuse_other_files(text: str) -> None:
    """Say what a file is that was taken for a notebook, and refuse one that would fill memory."""
    if text.startswith("<") and not text.startswith("<<"):
        raise UnreadableError("is a web page: download the notebook itself (File, Download)")
    if text.startswith("version https://git-lfs"):
        raise UnreadableError("is a pointer of Git LFS, not the notebook itself")
    if text.count("{") + text.count("[") > MAX_BRACKETS:
        raise UnreadableError("holds too much: clear the outputs, save it and hand it in again")


def words_for(error: json.JSONDecodeError, text: str) -> str:
    """Say where a text stops being JSON."""
    if re.search(r"^<{7} |^>{7} ", text, re.MULTILINE):
        return "holds marks of a merge that was not finished"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "breaks off in the middle: download or save it again"
    return f"is no JSON: {error.msg} in line {error.lineno}"


def mapping(value: Any) -> Mapping[str, Any]:
    """Give a JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def short(value: Any) -> str:
    """Give a text that can stand in one line, or nothing."""
    good = isinstance(value, str) and len(value) <= 200 and value.isprintable()
    return value if good else ""


def cells_of(notebook: Mapping[str, Any]) -> list[Any]:
    """Give the list of cells, wherever a format keeps it."""
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):
        sheets = map(mapping, notebook["worksheets"][:MAX_CELLS])
        lists = [sheet.get("cells") for sheet in sheets]
        cells = [cell for each in lists if isinstance(each, list) for cell in each]
    if cells is None:
        raise UnreadableError("is JSON, but no notebook: it has no cells")
    if not isinstance(cells, list):
        raise UnreadableError("is damaged: its cells are no list")
    return cells


# --- cells ---------------------------------------------------------------------------------


def read_cells(cells: list[Any], notes: list[str]) -> Iterator[Cell]:
    """Yield the cells that can be understood; a note says what was left out or mended."""
    lost, mended, large = [], [], []
    for number, raw in enumerate(cells, start=1):
        about = mapping(raw)
        kind, source = kind_of(about), source_of(about)
        if kind is None or source is None:
            lost.append(number)
            continue
        clean = UNSPEAKABLE.sub("\ufffd", source)
        if clean != source:
            mended.append(number)
        if kind == "code" and len(clean) > MAX_CODE:
            large.append(number)
            continue
        metadata = mapping(about.get("metadata"))
        yield Cell(
            kind=kind,
            source=clean if kind == "code" else clean[:MAX_TEXT],
            id=id_of(about.get("id")) or id_of(metadata.get("id")),
            marker=short(mapping(metadata.get("ppo_lessons")).get("answer")),
        )
    for numbers, words in (
        (lost, "damaged and left out"),
        (mended, "mended where characters were no text"),
        (large, f"left out, for more than {MAX_CODE} characters"),
    ):
        if numbers:
            notes.append(f"{listed(numbers)}: {words}")


def listed(numbers: list[int]) -> str:
    """Name cells by their position in the file, from 1."""
    some = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"cell{'s' if len(numbers) > 1 else ''} {some}"


def kind_of(cell: Mapping[str, Any]) -> Literal["code", "markdown", "raw"] | None:
    """Give the kind of a cell; one that has outputs is code, whatever it calls itself."""
    kind = cell.get("cell_type")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    return "code" if "outputs" in cell or "execution_count" in cell else None


def source_of(cell: Mapping[str, Any]) -> str | None:
    """Give the text of a cell with plain line ends; None if it is no text."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        if not all(isinstance(line, str) for line in source):
            return None
        # Some tools leave out the line ends that the format asks for.
        ends = any(line.endswith(("\n", "\r")) for line in source[:-1])
        source = ("" if ends else "\n").join(source)
    if source is None:
        return ""
    if not isinstance(source, str):
        return None
    return source.replace("\r\n", "\n").replace("\r", "\n")


def id_of(value: Any) -> str:
    """Give a cell id as the format allows it, or nothing."""
    return value if isinstance(value, str) and CELL_ID.fullmatch(value) else ""


def marked(source: str) -> list[str]:
    """List the exercises that a cell's text names as those it answers."""
    return [match.group(1).rstrip(".").lower() for match in MARKER.finditer(source)]
