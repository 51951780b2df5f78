"""Who is in the class? A CSV file with the columns `id` and `name`."""

from pathlib import Path


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
    raise NotImplementedError
