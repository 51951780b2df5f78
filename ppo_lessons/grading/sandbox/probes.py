"""Attempts to get out of the sandbox, to be run inside it; `doctor` copies this file there.

Each function gives what it managed to do, as a list of words; an empty list is what one hopes for.
Only the standard library is used. A probe that gets through must do no harm: it asks for what would
be refused, and leaves nothing behind.
"""

import ctypes
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CLONE_NEWUSER, PTRACE_SEIZE = 0x10000000, 0x4206  # the latter stops nobody
MIB = 2**20


def network(port: int, abstract: str, path: str) -> list[str]:
    """Reach somebody who listens on this machine, or see a way out of it.

    Args:
        port: where somebody listens on the loopback address.
        abstract: name of a Unix socket without a file.
        path: of a Unix socket with one.
    """
    got = []
    targets: list[tuple[int, str | tuple[str, int]]] = [(socket.AF_INET, ("127.0.0.1", port))]
    targets += [(socket.AF_UNIX, "\0" + abstract), (socket.AF_UNIX, path)]
    for kind, address in targets:
        with socket.socket(kind, socket.SOCK_STREAM) as made:
            made.settimeout(2)
            try:
                made.connect(address)
                got.append(f"reached {address!r}")
            except OSError:
                pass
    others = {name for _, name in socket.if_nameindex()} - {"lo"}
    return got + [f"sees the interface {name}" for name in sorted(others)]


def write_outside(folders: Sequence[str]) -> list[str]:
    """Write a file into each of some folders of the host, or into the system's."""
    got = []
    system = ["/", "/dev", "/etc", "/usr", "/usr/lib", "/home", "/root", "/var", "/var/tmp", "/run"]
    for folder in [*folders, *system, sys.prefix, sys.base_prefix, str(Path(os.__file__).parent)]:
        try:
            path = Path(folder, "written-by-a-student")
            path.write_text("x")
            got.append(f"wrote into {folder}")
            path.unlink()
        except OSError:
            pass
    return got


def read_secrets(paths: Sequence[str]) -> list[str]:
    """Read what only the grader may know; also by way of other processes."""
    got = []
    for path in paths:
        for spelling in (path, *(f"/proc/{process}/root{path}" for process in ("1", "self"))):
            if Path(spelling).exists():
                got.append(f"sees {spelling}")
    return got


def processes(outsider: int) -> list[str]:
    """See or end a process that is not the kernel's.

    Args:
        outsider: number of a process outside.
    """
    got = []
    numbers = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    if len(numbers) > 8:
        got.append(f"sees {len(numbers)} processes")
    try:
        os.kill(outsider, 0)
        got.append(f"may send signals to process {outsider}")
    except OSError:
        pass
    return got


def privileges() -> list[str]:
    """Get rights that the kernel was not given."""
    got = []
    if os.geteuid() == 0:
        got.append("is root")
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("CapEff", "CapPrm", "CapBnd", "CapAmb") and int(value, 16):
            got.append(f"has rights ({name} {value.strip()})")
        if name == "NoNewPrivs" and value.strip() != "1":
            got.append("could get rights from a program")
    libc = ctypes.CDLL(None, use_errno=True)
    attempts = {
        "makes namespaces of its own": lambda: libc.unshare(CLONE_NEWUSER) == 0,
        "traces process 1": lambda: libc.ptrace(PTRACE_SEIZE, 1, None, None) == 0,
        # there is no such file system: whoever may mount hears that, all others are refused
        "mounts file systems": lambda: (
            libc.mount(b"none", b"/tmp", b"no-such-type", 0, None) != 0
            and ctypes.get_errno() == errno.ENODEV
        ),
    }
    return got + [name for name, attempt in attempts.items() if in_a_child(attempt)]


def in_a_child(attempt: Callable[[], bool]) -> bool:
    """Try something in a process that ends at once, and all that it got with it."""
    child = os.fork()
    if child == 0:
        worked = 0
        try:
            worked = int(attempt())
        finally:
            os._exit(worked)
    return os.waitpid(child, 0)[1] != 0


def environment() -> list[str]:
    """Find a variable of the one who grades."""
    known = {
        *("HOME", "USER", "LOGNAME", "PATH", "PWD", "LANG", "LC_CTYPE", "TZ", "TMPDIR"),
        *("MPLBACKEND", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"),
        *("PYDEVD_DISABLE_FILE_VALIDATION", "PYDEVD_USE_FRAME_EVAL", "CLICOLOR", "FORCE_COLOR"),
        *("CLICOLOR_FORCE", "PAGER", "GIT_PAGER", "TERM", "JPY_PARENT_PID", "SHLVL", "_"),
    }
    return [
        f"sees the variable {name}"
        for name in sorted(os.environ)
        if name not in known and not name.endswith("_NUM_THREADS")
    ]


def system_calls() -> list[str]:
    """Hold memory that belongs to no process."""
    got = []
    try:
        os.close(os.memfd_create("x"))
        got.append("makes files in memory that nobody counts")
    except (OSError, AttributeError):
        pass
    libc = ctypes.CDLL(None)
    segment = libc.shmget(0, 4096, 0o1600)
    if segment >= 0:
        libc.shmctl(segment, 0, None)  # removes it
        got.append("makes shared memory that nobody counts")
    return got


def forks(most: int) -> list[str]:
    """Start more processes than allowed.

    Args:
        most: how many are allowed.
    """
    children = []
    try:
        while len(children) < most + 20:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return [f"had {len(children)} processes at once"] if len(children) > most else []


def disk(most: int) -> list[str]:
    """Fill the folders that can be written to.

    Args:
        most: bytes that each may take.
    """
    got = []
    for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
        held, paths = 0, []
        try:
            while held <= most + 8 * MIB:
                paths.append(Path(folder, f"full-{len(paths)}"))
                paths[-1].write_bytes(bytes(8 * MIB))
                held += 8 * MIB
            got.append(f"wrote {held // MIB} MiB into {folder}")
        except OSError:
            pass
        for path in paths:
            path.unlink(missing_ok=True)
    return got


def address_space(most: int) -> list[str]:
    """Ask for more memory than one process may have.

    Args:
        most: bytes that are allowed.
    """
    try:
        bytearray(most)
    except MemoryError:
        return []
    return [f"got {most // MIB} MiB in one piece"]


def limits_lifted() -> list[str]:
    """Lift a limit."""
    got = []
    for name in ("AS", "FSIZE", "NOFILE", "CORE"):
        kind = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(kind)[1]
        try:
            resource.setrlimit(kind, (most, resource.RLIM_INFINITY))
            got.append(f"lifted {name}")
        except (OSError, ValueError):
            pass
    return got


def hold_memory(most: int) -> list[str]:
    """Hold more memory than all processes together may, by several of them.

    Args:
        most: bytes that are allowed.
    """
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            held = b"x" * (most // 3)
            time.sleep(20)
            os._exit(len(held) % 2)
        children.append(child)
    time.sleep(6)
    for child in children:
        os.kill(child, signal.SIGKILL)
    return [f"held more than {most // MIB} MiB"]


def leave_children() -> list[str]:
    """Start a process that wants to outlive the kernel."""
    subprocess.Popen(["sleep", "123.456"], start_new_session=True)
    return []
