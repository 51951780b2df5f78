"""A run on disk: what was asked for, what it ran on, what was measured, and where to go on.

    config.json     the settings and the preset
    versions.json   Python, libraries, processor
    metrics.jsonl   one line per iteration
    checkpoint.pt   everything that `train(resume=...)` needs

Nothing is ever deleted: a folder that holds a run is not used by another, and lines of metrics that
a resumed run will measure anew are kept beside it.
"""

import json
import os
import platform
import time
from dataclasses import asdict
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.training_loop import PPOConfig, TrainState, write_checkpoint

SECONDS_BETWEEN_CHECKPOINTS = 5.0
FILES = ("config.json", "versions.json", "metrics.jsonl", "checkpoint.pt")


class RunFolder:
    """Write a run's files while it trains; pass `on_iteration` to `train`.

    Args:
        path: the folder; made after the first iteration if it does not exist.
        config: the settings.
        preset: name of the preset that the parts come from.
    """

    def __init__(self, path: Path, config: PPOConfig, preset: str):
        self.path = path
        self.config = config
        self.preset = preset
        self.checkpoint_path = path / "checkpoint.pt"
        self.metrics_path = path / "metrics.jsonl"
        self.saved_iteration = 0
        self._state: TrainState | None = None
        self._saved_at = time.monotonic()

    def on_iteration(self, state: TrainState) -> None:
        """Append the newest row; write a checkpoint every few seconds."""
        if self._state is None:  # only now: settings that were refused must leave no trace
            self._begin(state.history.rows[:-1])
        self._state = state
        with self.metrics_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(state.history.rows[-1]) + "\n")
        if time.monotonic() - self._saved_at > SECONDS_BETWEEN_CHECKPOINTS:
            self._save(state)

    def finish(self) -> None:
        """Write the last checkpoint, unless an iteration was broken off."""
        if self._state is not None and self._state.whole:
            self._save(self._state)

    def _save(self, state: TrainState) -> None:
        write_checkpoint(state.checkpoint(), self.checkpoint_path)
        self._saved_at = time.monotonic()
        self.saved_iteration = state.iteration

    def _begin(self, rows: list[dict[str, Any]]) -> None:
        """Write down what is known; make metrics.jsonl hold the rows that the run goes on from."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "config.json", {"preset": self.preset, **asdict(self.config)})
        write_json(self.path / "versions.json", versions())
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        if self.metrics_path.exists():
            if self.metrics_path.read_text(encoding="utf-8") == lines:
                return
            self.metrics_path.rename(unused(self.path / "metrics.before_resume.jsonl"))
        write_text(self.metrics_path, lines)


def new_run_folder(config: PPOConfig, root: Path) -> Path:
    """Make a folder that did not exist, named after environment and seed.

    Args:
        config: the settings.
        root: the folder of all runs.

    Returns:
        The folder; it is empty, and no other run can take it.
    """
    safe = config.env.replace("/", "-").replace(":", "-")
    while True:
        path = unused(root / f"{safe}-seed{config.seed}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:  # another run took the name between the two lines
            continue
        return path


def holds_run(path: Path) -> bool:
    """Whether a folder holds any file of a run."""
    return any((path / name).exists() for name in FILES)


def remove_if_empty(path: Path) -> None:
    """Take an empty folder away, and an empty one above it; settings that fail leave no trace."""
    for folder in (path, path.parent):
        try:
            folder.rmdir()  # refuses unless it is empty
        except OSError:
            return


def unused(path: Path) -> Path:
    """The path itself, or with -2, -3, ... before its suffix if it is taken."""
    for number in count(1):
        name = path.name if number == 1 else f"{path.stem}-{number}{path.suffix}"
        candidate = path.with_name(name)
        if not candidate.exists():
            return candidate
    raise AssertionError("count does not end")


def versions() -> dict[str, Any]:
    """What a run ran on: enough to know why two runs differ.

    Returns:
        Versions of Python and the libraries, the processor, and what torch uses of it.
    """
    names = ("ppo-lessons", "torch", "gymnasium", "numpy")
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in names},
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def processor() -> str:
    """The processor's name, as well as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people to read, whole or not at all."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file so that a crash leaves either the old one or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
