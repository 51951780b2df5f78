"""Where does the code of students run? In a kernel that an `Isolation` starts.

The kernel is untrusted, whoever starts it is trusted. All that passes between them are four
sockets, inherited as open files: the kernel needs no folder of the host that it could write to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

KIB, MIB, GIB = 2**10, 2**20, 2**30
NAMES = ("auto", "bwrap", "none")


class IsolationMissing(RuntimeError):
    """There is no sandbox here; the message says what to install or to spell out."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the code of one student may use.

    Args:
        cell: seconds that a cell may take; waiting for a busy processor is not counted.
        notebook: seconds that all cells after the first answer may take together.
        start: seconds for the kernel's start, and for the cells before the first answer.
        wall: seconds without any news after which the trusted process is ended.
        memory: bytes of address space for each process.
        resident: bytes that all processes of a student may hold together.
        disk: bytes in each of the folders that can be written to; they lie in memory.
        processes: processes and threads at once.
        files: open files of each process.
        output: bytes that are kept of what a cell prints; the rest is cut.
        messages: messages that are kept of what a cell prints; the rest is cut.
        restarts: how many fresh kernels a notebook gets after one died.
        timeouts: cells that may run out of time before the notebook is given up.
    """

    cell: float = 10.0
    notebook: float = 60.0
    start: float = 60.0
    wall: float = 90.0
    memory: int = 8 * GIB
    resident: int = 3 * GIB
    disk: int = 64 * MIB
    processes: int = 64
    files: int = 256
    output: int = MIB
    messages: int = 2000
    restarts: int = 3
    timeouts: int = 2


@dataclass(frozen=True, kw_only=True)
class Places:
    """What the kernel may see besides the interpreter.

    Args:
        build: folder that holds `ppo_lessons` as students have it; read only.
        forbid: top-level packages that must not be importable, as in `Manifest.forbid`.
        secret: folders that must not be visible; a sandbox that would show one refuses.
    """

    build: Path
    forbid: tuple[str, ...] = ()
    secret: tuple[Path, ...] = ()


class Isolation(Protocol):
    """A way to keep the code of students apart."""

    name: str

    def available(self) -> str | None:
        """Say why it can't be used here; None if it can."""
        ...

    def command(self, places: Places, limits: Limits, inside: Sequence[str]) -> list[str]:
        """Give the command that starts `inside` (Python's arguments) in the sandbox.

        Open files are inherited. Standard input carries what the kernel must know.
        """
        ...


def choose(name: str = "auto") -> Isolation:
    """Find the sandbox of that name.

    Args:
        name: "auto" takes the strongest that works here and never "none".

    Raises:
        IsolationMissing: if it does not work here.
        ValueError: if there is none of that name.
    """
    raise NotImplementedError
