"""Where does the code of students run? In a kernel that an `Isolation` starts.

The kernel is untrusted, whoever starts it is trusted. All that passes between them are four
sockets, inherited as open files: the kernel needs no folder of the host that it could write to.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

KIB, MIB, GIB = 2**10, 2**20, 2**30
NAMES = ("auto", "bwrap", "none")
INSIDE = Path(__file__).with_name("inside.py")


class IsolationMissing(RuntimeError):
    """There is no sandbox here; the message says what to install or to spell out."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the code of one student may use.

    Args:
        cell: seconds that a cell may take; waiting for a busy processor is not counted.
        notebook: seconds that all cells after the first answer may take together.
        start: seconds for the kernel's start, and for the cells before the first answer.
        wall: seconds without any news after which the trusted process is ended; more than eight
            times `start`, which a busy processor may stretch so much.
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
    wall: float = 500.0
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
        scratch: an empty folder of the host; a kernel without sandbox lives there.
        forbid: modules that must not be importable, as in `Manifest.forbid`.
        secret: folders that must not be visible; a sandbox that would show one refuses.
    """

    build: Path
    scratch: Path
    forbid: tuple[str, ...] = ()
    secret: tuple[Path, ...] = ()


class Isolation(Protocol):
    """A way to keep the code of students apart.

    Args:
        name: as it stands in results.
        contains: whether it really does; it then also counts processes, and ends with us.
    """

    name: str
    contains: bool

    def available(self) -> str | None:
        """Say why it can't be used here; None if it can."""
        ...

    def command(self, places: Places, limits: Limits) -> list[str]:
        """Give the command that starts `INSIDE`; open files and standard input are inherited.

        Raises:
            ValueError: if something secret would be visible.
        """
        ...

    def modules(self, places: Places) -> list[str]:
        """List the folders, as the kernel sees them, in which modules are looked for first."""
        ...


def choose(name: str = "auto") -> Isolation:
    """Find the sandbox of that name.

    Args:
        name: "auto" takes the strongest that works here and never "none".

    Raises:
        IsolationMissing: if it does not work here.
        ValueError: if there is none of that name.
    """
    from ppo_lessons.grading.sandbox.bwrap import Bubblewrap
    from ppo_lessons.grading.sandbox.none import NoIsolation

    kinds = {"auto": Bubblewrap, "bwrap": Bubblewrap, "none": NoIsolation}
    if name not in kinds:
        raise ValueError(f"there is no isolation {name!r}; expected one of {', '.join(NAMES)}")
    isolation = kinds[name]()
    reason = isolation.available()
    if reason is None:
        return isolation
    advice = (
        " Grade on Linux (WSL 2 and a virtual machine are Linux too). "
        "Or trust these students with all that you can read and write: --isolation none"
        if name == "auto"
        else ""
    )
    raise IsolationMissing(f"no sandbox: {reason}.{advice}")


def kernel_environment(home: str) -> dict[str, str]:
    """Give all environment variables that a kernel has.

    Args:
        home: its home, as it sees it.
    """
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {
        "HOME": home,
        "USER": "student",
        "LOGNAME": "student",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/tmp",
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        **dict.fromkeys(threads, "1"),
    }
