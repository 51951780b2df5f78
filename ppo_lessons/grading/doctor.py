"""Does the sandbox hold on this machine? Probes run inside it and try to get out.

They go the way of a student's answers, through `run_jobs`: what holds here holds there.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ppo_lessons.grading.run import InfrastructureError, Job, Ran, run_jobs
from ppo_lessons.grading.sandbox import (
    MIB,
    Isolation,
    IsolationMissing,
    Limits,
    choose,
    probes,
)
from ppo_lessons.grading.types import CellOutcome, Manifest, Question, Transplanted

PACKAGE = Path(__file__).resolve().parents[1]
# the probes must not take long, and the machine may be small
OWN_LIMITS = Limits(cell=15.0, resident=400 * MIB, disk=32 * MIB)


@dataclass(frozen=True)
class Probe:
    """One attempt.

    Args:
        name: what was tried.
        holds: whether the sandbox held.
        detail: what happened.
    """

    name: str
    holds: bool
    detail: str


def examine(isolation: Isolation, limits: Limits | None = None) -> list[Probe]:
    """Run every probe inside a sandbox.

    Args:
        isolation: the sandbox.
        limits: what the probes may use; less than students, so that it does not take long.

    Raises:
        InfrastructureError: if no kernel runs in it.
    """
    limits = limits or OWN_LIMITS
    with tempfile.TemporaryDirectory(prefix="ppo-doctor-") as name, targets(Path(name)) as known:
        quiet = attempts(known, limits)
        jobs = [
            job(known.build, [*quiet.values()]),
            job(known.build, [f"probes.hold_memory({limits.resident})"]),
            job(known.build, ["while True: pass"]),
            job(known.build, ["print('x' * 30_000_000) or []"]),
        ]
        jobs = [replace(each, secret=(known.secret.parent,)) for each in jobs]
        short = replace(limits, cell=2.0)
        first, *others = run_jobs(jobs[:2], isolation=isolation, limits=limits)
        others += run_jobs(jobs[2:], isolation=isolation, limits=short)
        answers = [answers_of(each) for each in (first, *others)]
        found = [judged(name, each) for name, each in zip(quiet, answers[0], strict=True)]
        memory, loop, output = (each[0] for each in answers[1:])
        return [
            *found,
            Probe("memory of all processes", "too much memory" in memory.said, memory.said),
            Probe("an endless loop", loop.state == "failed", ended(others[1])),
            Probe("30 MB of output", told(output) == [], "cut" if told(output) == [] else "kept"),
            Probe("nothing is left running", not left_running(), "looked for a process left over"),
        ]


@dataclass(frozen=True)
class Targets:
    """What the probes try to reach."""

    build: Path
    secret: Path
    open_folder: Path
    port: int
    abstract: str
    path: str


@contextlib.contextmanager
def targets(folder: Path) -> Iterator[Targets]:
    """Make what is to be reached: listeners, a secret that all may read, an open folder."""
    folder.chmod(0o755)
    build, secret, open_folder = folder / "build", folder / "secret" / "text", folder / "open"
    for each in (build / "ppo_lessons", secret.parent, open_folder):
        each.mkdir(parents=True)
    open_folder.chmod(0o777)
    secret.write_text(secrets.token_hex(8))
    (build / "ppo_lessons" / "__init__.py").touch()
    shutil.copy(probes.__file__, build / "ppo_lessons" / "probes.py")
    with contextlib.ExitStack() as stack:
        listeners = [
            stack.enter_context(socket.socket(kind, socket.SOCK_STREAM))
            for kind in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        ]
        path, abstract = str(folder / "socket"), "ppo-doctor-" + secrets.token_hex(4)
        for each, address in zip(listeners, (("127.0.0.1", 0), "\0" + abstract, path), strict=True):
            each.bind(address)
            each.listen()
        Path(path).chmod(0o777)
        port = listeners[0].getsockname()[1]
        yield Targets(build, secret, open_folder, port, abstract, path)


def attempts(known: Targets, limits: Limits) -> dict[str, str]:
    """List the calls of probes that leave the kernel alive, by what they try."""
    course = [PACKAGE / "clip.py", PACKAGE.parent / "solutions", PACKAGE.parent / "tests"]
    hide = [str(known.secret), *map(str, course)]
    folders = [str(known.open_folder), str(PACKAGE), str(known.build)]
    most = limits.processes
    return {
        "network": f"probes.network({known.port}, {known.abstract!r}, {known.path!r})",
        "writing outside": f"probes.write_outside({folders!r})",
        "reading the reference": f"probes.read_secrets({hide!r})",
        "other processes": f"probes.processes({os.getpid()})",
        "privileges": "probes.privileges()",
        "environment": "probes.environment()",
        "memory that nobody counts": "probes.system_calls()",
        "many processes": f"probes.forks({most})",
        "a full disk": f"probes.disk({limits.disk})",
        "memory of one process": f"probes.address_space({limits.memory})",
        "lifting limits": "probes.limits_lifted()",
        "outliving the kernel": "probes.leave_children()",
    }


def job(build: Path, calls: Sequence[str]) -> Job:
    """Make a job whose answers are what some expressions give."""
    cells = [code("setup", "import json\nfrom ppo_lessons import probes")]
    questions = []
    for number, call in enumerate(calls):
        source = call if call.startswith("while") else f"got{number} = {call}"
        cells.append(code(f"a{number}", source))
        cells.append(code(f"t{number}", f"print(json.dumps(got{number}))"))
        name = f"probe.p{number}"
        questions.append(
            Question(
                id=name, name=name, title=name, answer=f"a{number}", tell=f"t{number}", checks=()
            )
        )
    manifest = Manifest(
        assignment="doctor", title="doctor", seed=0, parts={"main": ""}, questions=tuple(questions)
    )
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    return Job(
        student="doctor",
        manifest=manifest,
        transplanted=Transplanted(parts={"main": notebook}),
        build=build,
    )


def code(cell: str, source: str) -> dict[str, Any]:
    """Make a code cell that was not run."""
    return {
        **{"cell_type": "code", "id": cell, "metadata": {}, "source": source},
        **{"outputs": [], "execution_count": None},
    }


def answers_of(result: Ran | InfrastructureError) -> list[CellOutcome]:
    """Give for each probe what it told, or how it failed.

    Raises:
        InfrastructureError: if no kernel ran.
    """
    if isinstance(result, InfrastructureError):
        raise result
    cells: Mapping[str, CellOutcome] = result.cells["main"]
    numbers = range(sum(cell.startswith("a") for cell in cells))
    return [
        cells[f"t{number}"] if cells[f"a{number}"].state == "passed" else cells[f"a{number}"]
        for number in numbers
    ]


def told(outcome: CellOutcome) -> list[str] | None:
    """Read what a probe managed to do; None if that can't be told."""
    try:
        return json.loads(outcome.said)
    except ValueError:
        return None


def judged(name: str, outcome: CellOutcome) -> Probe:
    """Judge a probe: it holds if it came to its end and managed nothing."""
    got = told(outcome)
    if got is None:
        return Probe(name, False, outcome.said.strip().split("\n")[-1] or "no answer")
    return Probe(name, not got, "; ".join(got) or "refused")


def ended(result: Ran | InfrastructureError) -> str:
    """Say what a run notes of its kernels."""
    return "; ".join(result.notes) if isinstance(result, Ran) else str(result)


def left_running() -> bool:
    """Whether the process is still there that wanted to outlive the kernel."""
    over = time.monotonic() + 2
    while time.monotonic() < over:
        if not any("123.456" in line for line in command_lines()):
            return False
        time.sleep(0.05)
    return True


def command_lines() -> Iterator[str]:
    """Give the command lines of all processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text("utf-8", "replace")


def doctor(name: str = "auto") -> int:
    """Print what holds.

    Returns:
        The exit status: 0 if all holds, 1 if anything got through, 2 if there is no sandbox.
    """
    try:
        isolation = choose(name)
        if not isolation.contains:
            print(f"isolation {isolation.name} keeps nothing apart: there is nothing to probe.")
            return 1
        found = examine(isolation)
    except (IsolationMissing, InfrastructureError) as error:
        print(f"Nothing can be graded here: {error}")
        return 2
    for each in found:
        print(f"{'holds ' if each.holds else 'BROKEN'}  {each.name}: {each.detail}")
    through = [each.name for each in found if not each.holds]
    if through:
        print(f"\nDO NOT GRADE HERE with --isolation {isolation.name}.")
        print(f"Got through: {', '.join(through)}.")
        return 1
    print(f"\nAll {len(found)} attempts were stopped by {isolation.name}.")
    return 0
