"""What lies in the folders and zip files that were handed in? Nothing is unpacked to the disk.

Every file becomes an `Upload`: its bytes, or the reason why it was not read. Links, devices, zip
bombs and names with path tricks are never followed; what operating systems and editors leave
behind is passed over.
"""

import io
import os
import re
import stat
import time
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MAX_BYTES = 10 * 2**20  # of one notebook, and of a zip file inside another one
MAX_MEMBERS = 1_000  # of a student's zip file
MAX_CLASS_MEMBERS = 100_000  # of a whole class's
MAX_UNPACKED = 64 * 2**20  # bytes read from one student's zip file
MAX_UNPACKED_IN_ALL = 2**29  # bytes read from one zip file that was given, if it is small
MAX_RATIO = 200  # of unpacked to packed bytes, beyond the first megabyte
MAX_ZIPS = 2  # zip files inside the one that was given
MAX_FOLDERS = 30
NOTEBOOK = re.compile(r"\.ipynb(?:\.(?:txt|json))?$|\.json$", re.IGNORECASE)
PASSED_OVER = re.compile(
    r"\.(?!\.$).*|__MACOSX|__pycache__|node_modules|site-packages|thumbs\.db|desktop\.ini|~\$.*|.*~"
    r"|.*:zone\.identifier|venv|icon\r",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One file that somebody handed in.

    Args:
        place: names on the way to it, the file's own last; a zip file counts as a folder.
        around: names above all files, from far to near; they say little.
        shown: where it is, for the teacher; names inside zip files after `!`.
        modified: when it was changed, in seconds, if that is known.
        data: its bytes, if it may be a notebook.
        problem: why it was not read; empty if it was.
        readable: whether it may be a notebook, or the folder or zip file of one.
    """

    place: tuple[str, ...]
    around: tuple[str, ...] = ()
    shown: str
    modified: float | None = None
    data: bytes = b""
    problem: str = ""
    readable: bool = True


@dataclass(frozen=True)
class _Spot:
    """Where the walk stands."""

    place: tuple[str, ...]
    around: tuple[str, ...]
    shown: str
    zips: int = 0

    def inside(self, names: Sequence[str], mark: str = "/") -> "_Spot":
        shown = f"{self.shown}{mark}{'/'.join(names)}"
        return _Spot((*self.place, *names), self.around, shown, self.zips)

    def unread(self, problem: str, *, readable: bool = True) -> Upload:
        return Upload(
            place=self.place,
            around=self.around,
            shown=self.shown,
            problem=problem,
            readable=readable,
        )

    def read(self, data: bytes, modified: float | None) -> Upload:
        return Upload(
            place=self.place,
            around=self.around,
            shown=self.shown,
            modified=modified,
            data=data,
        )


def find_uploads(paths: Sequence[Path]) -> Iterator[Upload]:
    """Walk through everything that was given.

    Args:
        paths: notebooks, folders and zip files.

    Yields:
        Each file, also those that cannot be notebooks, in the order of their names.

    Raises:
        FileNotFoundError: if one of `paths` does not exist.
    """
    given = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  links are kept
    for path, spelled in zip(given, paths, strict=True):
        if not os.path.lexists(path):
            raise FileNotFoundError(f"{spelled} does not exist: name files, folders or zip files")
    given = list(dict.fromkeys(given))
    if len(given) == 1:
        path = given[0]
        whole = path.is_dir() or path.suffix.lower() == ".zip"
        place, around = ((), (path.name,)) if whole else ((path.name,), (path.parent.name,))
        yield from _path(path, _Spot(place, around, plain(path.name)))
    elif given:
        base = Path(os.path.commonpath([path.parent for path in given]))
        for path in given:
            names = tuple(map(plain, path.relative_to(base).parts))
            yield from _path(path, _Spot(names, (plain(base.name),), "/".join(names)))


def plain(name: str) -> str:
    """Spell a name so that it can be printed: no stray bytes, no controls, accents in one way."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = unicodedata.normalize("NFC", text)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)[:255]


# --- on the disk ---------------------------------------------------------------------------


def _path(path: Path, spot: _Spot) -> Iterator[Upload]:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield spot.unread("is a link, which is not followed: hand in the file itself")
        elif stat.S_ISDIR(mode):
            yield from _folder(path, spot)
        elif not stat.S_ISREG(mode):
            yield spot.unread("is no ordinary file")
        elif is_zip_name(path.name):
            yield from _zip_on_disk(path, spot)
        else:
            yield from _file(path, spot)
    except (OSError, ValueError) as error:
        yield spot.unread(f"cannot be read ({getattr(error, 'strerror', None) or error})")


def _folder(path: Path, spot: _Spot) -> Iterator[Upload]:
    if len(spot.place) > MAX_FOLDERS:
        yield spot.unread(f"lies below more than {MAX_FOLDERS} folders")
        return
    for name in sorted(os.listdir(path)):  # noqa: PTH208  names may not be text
        if not PASSED_OVER.fullmatch(name):
            yield from _path(path / name, spot.inside([plain(name)]))


def _file(path: Path, spot: _Spot) -> Iterator[Upload]:
    if not NOTEBOOK.search(path.name):
        yield spot.unread(f"is no notebook: {spot.place[-1]}", readable=False)
        return
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123  flags
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            yield spot.unread("is no ordinary file")
            return
        data = file.read(MAX_BYTES + 1)
    yield from _content(data, about.st_mtime, spot)


def _zip_on_disk(path: Path, spot: _Spot) -> Iterator[Upload]:
    size = path.stat().st_size
    with path.open("rb") as file:
        source = io.BytesIO(file.read(MAX_BYTES)) if size <= MAX_BYTES else file
        yield from _zip(source, spot, _Budget(max(MAX_UNPACKED_IN_ALL, 20 * size)))


# --- inside zip files ----------------------------------------------------------------------


def is_zip_name(name: str) -> bool:
    """Whether a file calls itself a zip file."""
    return name.lower().endswith(".zip")


class _Budget:
    """Bytes that may still be unpacked, here and in the zip file around."""

    def __init__(self, left: int, around: "_Budget | None" = None):
        self.left, self.around = left, around

    def allows(self, size: int) -> bool:
        return size <= self.left and (self.around is None or self.around.allows(size))

    def take(self, size: int) -> None:
        self.left -= size
        if self.around is not None:
            self.around.take(size)


def _content(
    data: bytes, modified: float | None, spot: _Spot, budget: _Budget | None = None
) -> Iterator[Upload]:
    """Give the bytes of a notebook, or look into a zip file, whatever its name says."""
    if len(data) > MAX_BYTES:
        yield spot.unread(too_large())
    elif data.startswith(b"PK\x03\x04") or is_zip_name(spot.place[-1]):
        if spot.zips >= MAX_ZIPS:
            yield spot.unread("is a zip file inside zip files: hand in the notebook itself")
        elif data.count(b"PK\x01\x02") > 4 * MAX_MEMBERS:
            yield spot.unread(f"is a zip file with more than {MAX_MEMBERS} files")
        else:
            inner = _Spot(spot.place, spot.around, spot.shown, spot.zips + 1)
            yield from _zip(io.BytesIO(data), inner, _Budget(MAX_UNPACKED, budget))
    else:
        yield spot.read(data, modified)


def too_large() -> str:
    """Say what to do about a file with outputs that fill it."""
    return (
        f"is larger than {MAX_BYTES // 2**20} MB: clear the outputs (Edit, Clear Outputs of All "
        "Cells), save it and hand it in again"
    )


def _zip(source: IO[bytes], spot: _Spot, budget: _Budget) -> Iterator[Upload]:
    limit = MAX_MEMBERS if spot.zips else MAX_CLASS_MEMBERS
    try:
        with zipfile.ZipFile(source) as archive:
            members = sorted(archive.infolist(), key=lambda member: member.filename)
            if len(members) > limit:
                yield spot.unread(f"is a zip file with more than {limit} files")
                return
            found = False
            for member in members:
                for upload in _member(archive, member, spot, budget):
                    found = True
                    yield upload
            if not found:
                yield spot.unread("is an empty zip file")
    except Exception as error:  # the bytes are hostile: whatever they raise is a reason
        yield spot.unread(f"is a damaged zip file ({problem_of(error)})")


def problem_of(error: BaseException) -> str:
    """Give the words of an error, cut, or its name."""
    return plain(str(error))[:120] or type(error).__name__


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, spot: _Spot, budget: _Budget
) -> Iterator[Upload]:
    """Read one file of a zip file, if it may be a notebook or a zip file with some."""
    name = member_name(member).replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or name.endswith("/") or any(map(PASSED_OVER.fullmatch, parts)):
        return
    tricks = name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name)
    here = spot.inside([plain(part) for part in parts if part != ".."], mark="!")
    if tricks or len(parts) > MAX_FOLDERS:
        yield here.unread("has a name that leads out of its zip file, so it is not opened")
    elif not (NOTEBOOK.search(parts[-1]) or is_zip_name(parts[-1])):
        yield here.unread(f"is no notebook: {here.place[-1]}", readable=False)
    elif problem := member_problem(member):
        yield here.unread(problem)
    elif not budget.allows(member.file_size):
        yield here.unread("is one of more files than one zip file may unpack to")
    else:
        try:
            with archive.open(member) as file:
                data = file.read(MAX_BYTES + 1)
        except Exception as error:  # as above
            yield here.unread(f"is damaged inside its zip file ({problem_of(error)})")
            return
        budget.take(len(data))
        yield from _content(data, time_of(member), here, budget)


def member_problem(member: zipfile.ZipInfo) -> str:
    """Say why a file of a zip file must not be unpacked; empty if it may.

    Args:
        member: the entry; what it says about its size is not believed later on.

    Returns:
        The reason, or nothing.
    """
    kind = stat.S_IFMT(member.external_attr >> 16)
    size, packed = member.file_size, max(member.compress_size, 1)
    if kind not in (0, stat.S_IFREG) and member.create_system == 3:
        return "is a link or a device inside a zip file, which is not followed"
    if member.flag_bits & 0x1:
        return "is locked with a password: make the zip file without one"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way: make an ordinary zip file"
    if size > MAX_BYTES:
        return too_large()
    if size > 2**20 and size / packed > MAX_RATIO:
        return f"unpacks to {size // packed} times its size, as zip bombs do: not opened"
    return ""


def member_name(member: zipfile.ZipInfo) -> str:
    """Give a file's name; macOS writes UTF-8 without saying so."""
    name = member.filename
    if not member.flag_bits & 0x800:
        try:
            return name.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return name


def time_of(member: zipfile.ZipInfo) -> float | None:
    """Give the time of a file in a zip file; none if it is the beginning of time."""
    try:
        if member.date_time[:3] <= (1980, 1, 1):
            return None
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError, TypeError):
        return None
