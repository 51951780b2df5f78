"""Bubblewrap: Linux namespaces, for root and for ordinary users alike.

What the kernel sees is put together here, and nothing else is there: the system's libraries and
the interpreter, read only; the student's build of the package; three small folders in memory. It
has no network, sees no other process, and has no rights with which it could get any.

An ordinary user's kernel runs as that user behind a mask. Root's would be root behind a mask, and
a limit on the number of processes does not bind root. So for root there are two sandboxes: the
outer one shows what the inner one needs, in between somebody without rights is put on, and the
inner one is the one that an ordinary user gets.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ppo_lessons.grading.sandbox import INSIDE, Limits, Places, kernel_environment

HOME, COURSE, SCRIPT = "/student", "/course", "/kernel.py"
MASK = "1000"  # who a kernel believes to be
FREE_USERS = (62000, 3000)  # first and how many: those that systemd, too, takes for a while
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts")
PACKAGE = Path(__file__).resolve().parents[2]
OLDEST = (0, 8)  # earlier ones cannot forbid namespaces of the kernel's own


class Bubblewrap:
    """A sandbox of Linux namespaces; needs the program `bwrap`."""

    name = "bwrap"
    contains = True

    def available(self) -> str | None:
        """Say what is missing; None if a sandbox can be made here."""
        return reason_against(os.geteuid())

    def command(self, places: Places, limits: Limits) -> list[str]:
        """Start Python in the sandbox.

        Raises:
            ValueError: if something secret would be visible.
        """
        shown = visible_folders()
        refuse_secrets(shown, places.secret)
        build = places.build / "ppo_lessons"
        inner = [
            *NAMESPACES,
            *environment(),
            *in_memory("/tmp", limits.disk),  # first: Python itself may lie below it
            *mounts(shown),
            *("--ro-bind", str(build), f"{COURSE}/ppo_lessons", "--ro-bind", str(INSIDE), SCRIPT),
            *hidden(shown, build, places.forbid),
            *("--proc", "/proc", "--dev", "/dev"),
            *in_memory("/dev/shm", limits.disk),
            *("--remount-ro", "/dev"),
            *in_memory(HOME, limits.disk),
            *("--remount-ro", "/", "--chdir", HOME),
            *("--", sys.executable, "-s", "-P", SCRIPT),
        ]
        return [*for_somebody_else([*shown, build, INSIDE]), *inner] if is_root() else inner

    def modules(self, places: Places) -> list[str]:
        """Give the student's build, as the kernel sees it."""
        return [COURSE]


# `--new-session`: no way back to our terminal; `--disable-userns`: no sandbox within the sandbox
NAMESPACES = (
    *("bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net"),
    *("--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--uid", MASK, "--gid", MASK),
    *("--hostname", "grader", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)


def is_root() -> bool:
    """Whether it is root who grades."""
    return os.geteuid() == 0


def environment() -> list[str]:
    """Replace all variables."""
    return ["--clearenv"] + [
        word for pair in kernel_environment(HOME).items() for word in ("--setenv", *pair)
    ]


def visible_folders() -> list[Path]:
    """List what is shown, read only: the system's libraries and Python's; parents come first."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    python |= {os.path.realpath(each) for each in python}
    python |= {each for each in sys.path if each.endswith(("site-packages", "dist-packages"))}
    found = [Path(each) for each in (*SYSTEM, *SETTINGS) if os.path.lexists(each)]
    for folder in sorted(Path(each) for each in python):
        if folder.is_dir() and not any(is_below(folder, each) for each in found):
            found.append(folder)
    return found


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or folder in path.parents


def refuse_secrets(shown: Sequence[Path], secret: Iterable[Path]) -> None:
    """Make sure that nothing secret is among what is shown.

    Raises:
        ValueError: if something is.
    """
    # the package itself is secret, too; where it is installed, the student's build lies over it
    covered = {site / "ppo_lessons" for site in module_folders(shown)}
    hide = [Path(each).resolve() for each in secret]
    hide += [] if PACKAGE in {each.resolve() for each in covered} else [PACKAGE]
    for path in hide:
        for folder in shown:
            if is_below(path, folder.resolve()):
                raise ValueError(
                    f"{path} would be visible to students, since the kernel sees {folder}; "
                    "expected a folder outside of Python and the system. Move it."
                )


def module_folders(shown: Sequence[Path]) -> list[Path]:
    """List the folders among what is shown in which Python finds installed packages."""
    sites = {Path(each) for each in sys.path if Path(each).is_dir()}
    return sorted(each for each in sites if any(is_below(each, folder) for folder in shown))


def hidden(shown: Sequence[Path], build: Path, forbid: Iterable[str]) -> list[str]:
    """Cover installed packages: this one with the student's build, others with nothing."""
    words: list[str] = []
    names = sorted({each.partition(".")[0] for each in forbid} - {"ppo_lessons"})
    for site in module_folders(shown):
        if (site / "ppo_lessons").is_dir():
            words += ["--ro-bind", str(build), str(site / "ppo_lessons")]
        for path in (site / name for name in names):
            if path.is_dir():
                words += ["--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path)]
            if path.with_suffix(".py").is_file():
                words += ["--ro-bind", "/dev/null", str(path.with_suffix(".py"))]
    return words


def mounts(shown: Iterable[Path]) -> list[str]:
    """Show files and folders where they are; what lies above them is made anew, and open to all."""
    words: list[str] = []
    made: set[Path] = set()
    for path in shown:
        for parent in reversed(path.parents[:-1]):
            if parent not in made:
                words += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        if path.is_symlink() and path.parent == Path("/"):
            words += ["--symlink", str(path.readlink()), str(path)]
        else:
            words += ["--ro-bind", str(path), str(path)]
            made.add(path)
    return words


def in_memory(folder: str, size: int) -> list[str]:
    """Make an empty folder that can hold so many bytes."""
    return ["--perms", "1777", "--size", str(size), "--tmpfs", folder]


def for_somebody_else(shown: Iterable[Path]) -> list[str]:
    """As root: show what the sandbox is made of to a user without rights, and become that user.

    The user differs between processes that grade side by side. What belongs to another user is not
    ended by a signal when its parent dies; the end of a process namespace does not ask whose it is.
    """
    first, many = FREE_USERS
    user = str(first + os.getpid() % many)
    return [
        *("bwrap", "--die-with-parent", "--unshare-pid", "--perms", "1777", "--dir", "/tmp"),
        *(*mounts(shown), "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--"),
        *("setpriv", "--reuid", user, "--regid", user, "--clear-groups"),
        *("--inh-caps=-all", "--bounding-set=-all"),
    ]


@functools.cache
def reason_against(user: int) -> str | None:
    """Say why no sandbox can be made by a user."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap exists on Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    if user == 0 and shutil.which("setpriv") is None:
        return "setpriv is not installed, and root needs it (apt-get install util-linux)"
    said = subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout
    version = tuple(int(digits) for digits in re.findall(r"\d+", said)[:2])
    if version < OLDEST:
        return f"{said.strip()} is too old; expected 0.8 or later"
    system = mounts(each for each in visible_folders() if str(each) in SYSTEM)
    trial = [*NAMESPACES, *system, "--proc", "/proc", "--dev", "/dev", "--", "true"]
    if user == 0:
        shown = [each for each in visible_folders() if str(each) in SYSTEM]
        trial = [*for_somebody_else(shown), *trial]
    result = subprocess.run(trial, capture_output=True, text=True)
    if result.returncode:
        return (
            f"bubblewrap cannot make a sandbox here: {result.stderr.strip()[-300:]} "
            "(does this system, or the container around it, forbid user namespaces?)"
        )
    return None
