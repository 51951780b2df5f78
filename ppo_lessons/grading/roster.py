"""Who is in the class? A CSV file with the columns `id` and `name`."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

MAX_BYTES = 4_000_000
MAX_LENGTH = 80  # characters of an id
DELIMITERS = ",;\t|"
# Letters, digits and _ . @ + - with spaces inside; no dot in front, none at the end.
SAFE = re.compile(r"[\w@+-](?:[\w.@+ -]*[\w@+-])?")
# What Windows keeps for itself, with or without an ending.
DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


class RosterError(ValueError):
    """A roster that cannot be used, with what to do about it."""


def read_roster(path: Path) -> dict[str, str]:
    """Read the class list.

    Args:
        path: a CSV file whose first line names the columns; `id` must be there, `name` should be,
            others are ignored. Commas, semicolons, tabs and bars separate; UTF-8 with or without
            a byte-order mark, UTF-16 and the encoding of older spreadsheets are understood.

    Returns:
        Name by id, in the file's order; every id can stand in a file's name.

    Raises:
        RosterError: if the file or a row cannot be used.
    """
    lines = text_of(path).splitlines()
    skipped = 0
    if lines and re.fullmatch(r"\"?sep=.\"?", lines[0].strip(), re.IGNORECASE):
        lines, skipped = lines[1:], 1  # what spreadsheets write to name their delimiter
    header = lines[0] if lines else ""
    delimiter = next((each for each in DELIMITERS if "id" in columns(header, each)), None)
    if delimiter is None:
        raise RosterError(
            f"{path.name}: the first line is {header[:80]!r}; expected names of columns with "
            "`id` among them, as in `id,name`"
        )
    names = columns(header, delimiter)
    at_id, at_name = names.index("id"), names.index("name") if "name" in names else None
    roster: dict[str, str] = {}
    for number, row in rows(path.name, lines[1:], delimiter, first=skipped + 2):
        id, name = cell(row, at_id), cell(row, at_name)
        if not id:
            raise RosterError(f"{path.name}, line {number}: no id for {name!r}; add it")
        if id in roster:
            raise RosterError(f"{path.name}, line {number}: the id {id!r} is there twice")
        roster[id] = name
    if not roster:
        raise RosterError(f"{path.name} names no student; expected one line for each")
    check_ids(roster, where=path.name)
    return roster


def check_ids(roster: Mapping[str, str], *, where: str = "the roster") -> None:
    """Refuse ids that cannot name files of their own.

    Args:
        roster: name by id.
        where: what the error speaks of.

    Raises:
        RosterError: if an id cannot stand in a file's name, or two differ by their case alone.
    """
    seen: dict[str, str] = {}
    for id in roster:
        if not is_safe(id):
            raise RosterError(
                f"{where}: the id {id!r} cannot stand in a file's name; use at most {MAX_LENGTH} "
                "letters, digits and _ . @ + -"
            )
        if (twin := seen.setdefault(folded(id), id)) != id:
            raise RosterError(
                f"{where}: the ids {twin!r} and {id!r} differ by capitals only; some file "
                "systems take them for one. Rename one of them"
            )


def is_safe(id: str) -> bool:
    """Whether an id can stand in a file's name, on every system."""
    good = len(id) <= MAX_LENGTH and SAFE.fullmatch(id) is not None
    return good and not DEVICES.fullmatch(id) and id.isprintable()


def folded(text: str) -> str:
    """Spell a text so that capitals and ways to write an accent no longer matter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def text_of(path: Path) -> str:
    """Read a file of few bytes in the encoding that it seems to have."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RosterError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise RosterError(f"{path.name} has more than {MAX_BYTES} bytes: is it the roster?")
    encodings = ["utf-16"] if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return unicodedata.normalize("NFC", text)
    raise RosterError(f"{path.name} is no text; export the class list as CSV in UTF-8")


def columns(header: str, delimiter: str) -> list[str]:
    """Give the names of the columns as one delimiter cuts them."""
    row = next(csv.reader([header], delimiter=delimiter), [])
    return [name.strip().casefold() for name in row]


def rows(
    where: str, lines: Iterable[str], delimiter: str, *, first: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that hold something, with the numbers of their lines."""
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield first + reader.line_num - 1, row
    except csv.Error as error:
        number = first + reader.line_num - 1
        raise RosterError(f"{where}, line {number} is no CSV: {error}") from None


def cell(row: list[str], column: int | None) -> str:
    """Give a field without space around it; a short row ends in empty ones."""
    return " ".join(row[column].split()) if column is not None and column < len(row) else ""
