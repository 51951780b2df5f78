"""A run as plain numbers: written whole or not at all, read without running any code of its own."""

import os
import zipfile
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.training_loop.config import PPOConfig
from ppo_lessons.types import Carry

FORMAT = "ppo-lessons checkpoint 1"
KEYS = {
    *("config", "networks", "optimizer_kind", "optimizer", "generator", "envs", "carry", "rows"),
    "recent_returns",
}


def as_checkpoint(state: Any) -> dict[str, Any]:
    """Everything that a run needs to go on exactly here, as tensors, numbers and text.

    Args:
        state: the `TrainState` at the end of an iteration.

    Returns:
        A dictionary that `write_checkpoint` writes and `train(resume=...)` takes.
    """
    checkpoint = {
        "format": FORMAT,
        "config": {**asdict(state.config), "hidden_sizes": list(state.config.hidden_sizes)},
        "networks": state.networks.state_dict(),
        "optimizer_kind": type(state.optimizer).__name__,
        "optimizer": state.optimizer.state_dict(),
        "generator": state.generator.get_state(),
        "envs": state.envs.state_dict(),
        "carry": {part.name: getattr(state.carry, part.name) for part in fields(Carry)},
        "rows": state.history.rows,
        "recent_returns": list(state.recent_returns),
    }
    return deepcopy(checkpoint)  # the run goes on, and writes into these tensors


def write_checkpoint(checkpoint: Mapping[str, Any], path: str | Path) -> None:
    """Write a checkpoint so that a crash leaves either the old file or the new one.

    Args:
        checkpoint: what `TrainState.checkpoint` gave.
        path: where it goes.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            torch.save(dict(checkpoint), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_checkpoint(source: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Read a checkpoint; one that is damaged or foreign is refused and left where it is.

    Args:
        source: a path, or what `TrainState.checkpoint` gave.

    Returns:
        The checkpoint.

    Raises:
        ValueError: if there is no such file, or it is no checkpoint of ours.
    """
    if isinstance(source, Mapping):
        saved, label = source, "resume"
    else:
        saved, label = _load(Path(source)), str(source)
    if not isinstance(saved, Mapping) or saved.get("format") != FORMAT or not saved.keys() >= KEYS:
        raise ValueError(
            f"{label} is no checkpoint of ppo-lessons; expected a file that `ppo-lessons train` "
            "wrote. It was left as it is. Give the path of a checkpoint.pt, or start anew "
            "without it."
        )
    return saved


def _load(path: Path) -> Any:
    if not path.exists():
        raise ValueError(
            f"{path} does not exist; expected a checkpoint. Give the path of a checkpoint.pt."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch itself does not compare the checksums
        if damaged is not None:
            raise zipfile.BadZipFile(f"{damaged} is damaged")
        return torch.load(path, weights_only=True, map_location="cpu")  # also where no GPU is
    except Exception as error:  # a damaged file may raise anything while it is taken apart
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({reason}); expected a whole file that "
            "`ppo-lessons train` wrote. It was left as it is. Give another checkpoint, or start "
            "anew without it."
        ) from None


def config_of(saved: Mapping[str, Any]) -> PPOConfig:
    """The settings of the run that a checkpoint was taken from."""
    return PPOConfig(**{**saved["config"], "hidden_sizes": tuple(saved["config"]["hidden_sizes"])})


def check_same_run(config: PPOConfig, saved: Mapping[str, Any]) -> None:
    """Require the settings of the saved run; only total_steps may differ, to go on for longer.

    Raises:
        ValueError: with every setting that differs.
    """
    before = asdict(config_of(saved))
    now = asdict(config)
    changed = [
        f"{name} is {now[name]!r} (saved: {before[name]!r})"
        for name in now
        if name != "total_steps" and now[name] != before[name]
    ]
    if changed:
        raise ValueError(
            f"the checkpoint is that of other settings: {'; '.join(changed)}; expected the same, "
            "except total_steps. Resume with the saved settings, or start anew."
        )
