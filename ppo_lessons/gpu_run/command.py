"""`python -m ppo_lessons.gpu_run`: a run on one device, or on several with torchrun.

python -m ppo_lessons.gpu_run --task Breakout --device cuda --graphs
torchrun --nproc-per-node 2 -m ppo_lessons.gpu_run --task CartPole --device cuda
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ppo_lessons.envs import TASKS
from ppo_lessons.gpu_run.device import DEFAULTS, train_on_device
from ppo_lessons.gpu_run.job import Keeper, train_ranks
from ppo_lessons.gpu_run.ranks import RankLost, Ranks, joined
from ppo_lessons.runs import (
    SECONDS_BETWEEN_CHECKPOINTS,
    RunFolder,
    holds_run,
    new_run_folder,
    remove_if_empty,
)
from ppo_lessons.training_loop import (
    PPOConfig,
    TrainState,
    config_of,
    read_checkpoint,
    write_checkpoint,
)
from ppo_lessons.types import History

PROGRAM = "python -m ppo_lessons.gpu_run"
SECONDS_BETWEEN_LINES = 2.0


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes:
        config: every number of the run.
        task: its rules.
        device: where it trains.
        graphs: whether whole iterations are replayed.
        normalize: whether observations and rewards are scaled.
        folder: where it is written down.
        saved: the checkpoint to go on from, or None.
    """

    config: PPOConfig
    task: str
    device: str
    graphs: bool
    normalize: bool
    folder: Path
    saved: Path | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says; the run's folder stays whatever happens.

    Args:
        arguments: the command line without the program's name; that of the process if left out.

    Returns:
        The exit status: 0 if all went well, 130 after Ctrl-C, 2 if the input was wrong, 3 if
        another rank is gone.
    """
    settings = None
    try:
        settings = parse(sys.argv[1:] if arguments is None else arguments)
        with joined(settings.device) as ranks:
            return run(settings, ranks)
    except RankLost as error:
        rank = os.environ.get("RANK", "0")
        print(f"rank {rank}: {error}; the job ends. {how_to_go_on(settings)}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(3)  # taking leave of ranks that are gone could wait for ever
    except (ValueError, TypeError, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def run(settings: Settings, ranks: Ranks) -> int:
    """Train, and say how it went; only rank 0 writes and speaks."""
    config, leads = settings.config, ranks.rank == 0
    check_together(settings, ranks)
    kind = RunFolder if ranks.world_size == 1 else JobFolder
    folder: Any = kind(settings.folder, config, f"gpu_run {settings.task}")
    lines = Lines(config)
    if leads:
        settings.folder.mkdir(parents=True, exist_ok=True)
        where = f"{ranks.world_size} × {settings.device}" if ranks.world_size > 1 else ranks.device
        print(f"{settings.task}, seed {config.seed}, on {where} → {settings.folder}")
        print(f"{config.num_iterations} iterations of {config.batch_size:,} steps", flush=True)

    try:
        if ranks.world_size == 1:
            history = alone(settings, folder, lines)
        else:
            history = together(settings, ranks, folder, lines)
    finally:
        if leads:
            remove_if_empty(settings.folder)
    if leads:
        say_how_it_went(settings, history)
    return 130 if history.stopped == "interrupted" else 0


def alone(settings: Settings, folder: RunFolder, lines: "Lines") -> History:
    """Train in one process."""

    def on_iteration(state: TrainState) -> None:
        folder.on_iteration(state)
        lines.show(state)

    history = train_on_device(
        settings.config, settings.task, device=settings.device, graphs=settings.graphs,
        normalize=settings.normalize, on_iteration=on_iteration, resume=settings.saved,
    )  # fmt: skip
    folder.finish()
    return history


def together(settings: Settings, ranks: Ranks, folder: "JobFolder", lines: "Lines") -> History:
    """Train on several ranks; the folder is rank 0's."""

    def on_iteration(state: TrainState) -> None:
        folder.on_iteration(state)
        lines.show(state)

    return train_ranks(
        settings.config, settings.task, ranks, on_iteration=on_iteration,
        keeper=Keeper(folder.due, folder.save), resume=settings.saved,
    )  # fmt: skip


class JobFolder(RunFolder):
    """The folder of a job: rank 0 adds the rows, and checkpoints come from all ranks together."""

    def __init__(self, path: Path, config: PPOConfig, preset: str):
        super().__init__(path, config, preset)
        self._saved_at = math.inf  # never by itself
        self._begun_at = time.monotonic()

    def due(self) -> bool:
        """Whether the last checkpoint is some seconds old."""
        return time.monotonic() - self._begun_at > SECONDS_BETWEEN_CHECKPOINTS

    def save(self, checkpoint: Mapping[str, Any], state: TrainState) -> None:
        """Write what all ranks gave."""
        write_checkpoint(checkpoint, self.checkpoint_path)
        self._begun_at, self.saved_iteration = time.monotonic(), state.iteration


def check_together(settings: Settings, ranks: Ranks) -> None:
    """Require settings that several ranks can share.

    Raises:
        ValueError: with the setting to leave out.
    """
    if ranks.world_size == 1:
        return
    for name, why in (
        ("graphs", "a graph with messages between GPUs has not been tried"),
        ("normalize", "each rank would scale by statistics of its own"),
    ):
        if getattr(settings, name):
            raise ValueError(
                f"--{name} is on for {ranks.world_size} ranks, and {why}; expected it off. Leave "
                f"--{name} out, or train in one process."
            )


def say_how_it_went(settings: Settings, history: History) -> None:
    """Print the last line of a run."""
    if history.stopped == "interrupted":
        print(f"stopped. {how_to_go_on(settings)}")
        return
    last = history["episode_return"][-1] if history.rows else None
    if last is None:
        print("no episode has ended yet, so there is no return")
    else:
        print(f"mean return of the last 100 episodes: {last:.1f}")


def how_to_go_on(settings: Settings | None) -> str:
    """Say where the last checkpoint is, if there is one."""
    if settings is None or settings.folder == Path("runs"):
        return "Rank 0 has named the folder of the last checkpoint."
    file = settings.folder / "checkpoint.pt"
    if not file.is_file():
        return "No checkpoint was written yet: start anew."
    return f"The last checkpoint is {file}; go on with --checkpoint {settings.folder} --resume."


class Lines:
    """A line of progress every few seconds.

    Args:
        config: of the whole job.
    """

    def __init__(self, config: PPOConfig):
        self.config = config
        self.at, self.steps = time.monotonic(), None

    def show(self, state: TrainState) -> None:
        """Print the newest row, unless the last line is younger than two seconds."""
        row, now = state.history.rows[-1], time.monotonic()
        if self.steps is None:  # the first iteration of this process, resumed or not
            self.steps = row["env_steps"] - self.config.batch_size
            if state.resumed:
                print(f"note: {state.resumed}")
        last = row["env_steps"] == self.config.num_iterations * self.config.batch_size
        if now - self.at < SECONDS_BETWEEN_LINES and not last:
            return
        reward = "—" if row["episode_return"] is None else f"{row['episode_return']:.1f}"
        speed = (row["env_steps"] - self.steps) / (now - self.at)
        print(
            f"{row['env_steps']:>13,} steps   return {reward}   kl_k3 {row['kl_k3']:.4f}   "
            f"{speed:,.0f} steps/s",
            flush=True,
        )
        self.at, self.steps = now, row["env_steps"]


def parse(rest: Sequence[str]) -> Settings:
    """Turn the command line into settings, checked.

    The task or the resumed run gives the defaults, so it is looked for first.

    Raises:
        ValueError: if there is nothing to go on from, or a folder holds another run.
    """
    import tyro

    @dataclass(frozen=True)
    class Run:
        """Train PPO on a device, environments and all."""

        config: tyro.conf.OmitArgPrefixes[PPOConfig]
        task: Literal[*TASKS]  # type: ignore[valid-type]
        """The rules of the environment."""
        device: str = "cpu"
        """cpu, cuda, cuda:1 or mps."""
        graphs: bool = False
        """Replay whole iterations as CUDA graphs."""
        normalize: bool = False
        """Scale observations and rewards to about unit size."""
        checkpoint: Path | None = None
        """Folder of the run; a new one under runs/ if left out."""
        resume: bool = False
        """Go on from the checkpoint in that folder; its settings are then the defaults."""

    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--task", choices=list(TASKS), default="CartPole")
    first.add_argument("--checkpoint", type=Path)
    first.add_argument("--resume", action="store_true")
    early, _ = first.parse_known_args(rest)
    task, config, saved, normalize = early.task, DEFAULTS[early.task], None, False
    if early.resume:
        if early.checkpoint is None:
            raise ValueError(
                "--resume is given without --checkpoint; expected the folder of the run to go on "
                "with. Say --checkpoint DIR --resume."
            )
        saved = early.checkpoint / "checkpoint.pt"
        kept = read_checkpoint(saved)
        config, normalize = config_of(kept), "seen" in (kept["envs"] or {})
        task = config.env
    default = Run(config=config, task=task, normalize=normalize)
    given = tyro.cli(Run, prog=PROGRAM, args=list(rest), default=default)
    config = replace(given.config, env=given.task)
    return Settings(
        config, given.task, given.device, given.graphs, given.normalize,
        folder=run_path(given.checkpoint, config, resumed=given.resume), saved=saved,
    )  # fmt: skip


def run_path(folder: Path | None, config: PPOConfig, *, resumed: bool) -> Path:
    """Choose the run's folder; never one that holds another run. Only rank 0 makes one.

    Raises:
        ValueError: if the folder holds another run.
    """
    if folder is None:
        leads = os.environ.get("RANK", "0") == "0"
        return new_run_folder(config, Path("runs")) if leads else Path("runs")
    if holds_run(folder) and not resumed:
        raise ValueError(
            f"{folder} already holds a run; expected a new folder. Choose another --checkpoint, "
            f"or go on with that run: --checkpoint {folder} --resume."
        )
    return folder
