"""One run in a process of its own, on one thread and one core; its peak memory is its own."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
CHILD = FOLDER / "child.py"
ROOT = FOLDER.parents[1]  # of the package that is measured
TIME_LIMIT = 900.0  # seconds of a run
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


class Missing(Exception):
    """Something that a run needs is not installed; its text is the name of the module."""


class Failed(Exception):
    """A run broke off; its text says how."""


@dataclass(frozen=True)
class Run:
    """What is run.

    Attributes:
        module: of this folder, without its ending.
        function: in it.
        options: its keywords.
        python: that runs it; the one that runs this if left out. Another one gets nothing of ours.
        gpu: whether it may see a GPU; then it is not pinned, since the driver has threads too.
    """

    module: str
    function: str
    options: dict[str, Any] = field(default_factory=dict)
    python: str = ""
    gpu: bool = False


def measure(run: Run) -> dict[str, Any]:
    """Start a process for a run, and wait for what it says.

    Args:
        run: what is run.

    Returns:
        Steps, seconds, peak memory and the core; with `versions` of what was run.

    Raises:
        Missing: if a module is not installed.
        Failed: if it broke off, or took longer than a quarter of an hour.
    """
    asked = {
        "module": str(FOLDER / f"{run.module}.py"),
        "function": run.function,
        "options": run.options,
        "core": None if run.gpu else core(),
        "root": None if run.python else str(ROOT),
    }
    command = [run.python or sys.executable, str(CHILD), json.dumps(asked)]
    with tempfile.TemporaryDirectory(prefix="ppo-bench-") as folder:
        # what a peer leaves behind, a log or a video, goes with the folder
        variables = environment(run.gpu) | {"TMPDIR": folder}
        text, errors, status = wait_for(command, folder, variables)
    if status != 0:
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        raise Failed(f"{run.module}.{run.function} ended with status {status}: {last}")
    reading = json.loads(text.splitlines()[-1])
    if "missing" in reading:
        raise Missing(reading["missing"])
    return reading


def wait_for(command: list[str], folder: str, variables: dict[str, str]) -> tuple[str, str, int]:
    """Run a command to its end; leave no process behind, whatever happens.

    Ctrl-C reaches this process alone, and this process ends the other.

    Raises:
        Failed: if it takes too long, or cannot be started.
    """
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise Failed(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        text, errors = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise Failed(f"it took longer than {TIME_LIMIT:.0f} s") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return text, errors, process.returncode


def environment(gpu: bool) -> dict[str, str]:
    """Variables of a run: one thread everywhere, and no GPU unless it is about one."""
    hidden = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
    # A path for imports is meant for this Python, and a run may be another one's.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**own, **ONE_THREAD, **hidden}


def core() -> int | None:
    """The core that all runs share in turn: the last one, since the first serves interrupts."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return max(os.sched_getaffinity(0))
