"""The loop of a rank, and the checkpoint of a whole job."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.envs.batched import Task
from ppo_lessons.gpu_run.device import resume_here, start_on_device
from ppo_lessons.gpu_run.ranks import (
    Ranks,
    gathered,
    gathered_objects,
    rank_parts,
    rank_seed,
    send_weights,
    summed,
)
from ppo_lessons.training_loop import Parts, PPOConfig, TrainState, iterate, read_checkpoint
from ppo_lessons.training_loop.checkpoint import check_same_run
from ppo_lessons.training_loop.train import one_thread, wants_to_stop
from ppo_lessons.types import Carry, History

SUMS = ("env_steps", "num_episodes")
OF_A_RANK = ("envs", "carry", "generator", "recent_returns")


@dataclass(frozen=True)
class Keeper:
    """Where the checkpoints of a job go; rank 0 asks it.

    Attributes:
        due: whether one should be written after this iteration.
        save: writes it.
    """

    due: Callable[[], bool]
    save: Callable[[Mapping[str, Any], TrainState], None]


def train_ranks(
    config: PPOConfig,
    task: Task | str,
    ranks: Ranks,
    *,
    parts: Parts = Parts(),  # noqa: B008  (frozen)
    on_iteration: Callable[[TrainState], object] | None = None,
    keeper: Keeper | None = None,
    resume: str | Path | Mapping[str, Any] | None = None,
) -> History:
    """Train one policy on several ranks; call it on each of them.

    Ctrl-C ends the job after the iteration that is under way.

    Args:
        config: of the whole job; num_envs is shared out over the ranks.
        task: the rules, or their name.
        ranks: this process among its fellows.
        parts: the functions that fill the loop's slots.
        on_iteration: called on rank 0 after each iteration; returns true to stop.
        keeper: where rank 0 puts checkpoints.
        resume: a checkpoint of a job, or its path. With as many ranks as then the job goes on bit
            by bit; with another number new episodes begin, and `state.resumed` says so.

    Returns:
        Rows over all ranks (the same on each), and the trained networks.

    Raises:
        ValueError: as `train_on_device`, or if the environments cannot be shared out.
        RankLost: if another rank does not answer any more.
    """
    own, parts = ranks.share(config), rank_parts(parts)
    with one_thread(), torch.enable_grad(), patient_interrupt() as interrupted:
        state, parts = start_on_device(own, task, device=ranks.device, parts=parts)
        if resume is not None:
            resume_job(state, config, read_checkpoint(resume), ranks)
        send_weights(state.networks)
        while state.iteration < own.num_iterations:
            iterate(state, parts)
            state.history.rows[-1] = row_of_all(state.history.rows[-1], ranks)
            answer = on_iteration(state) if ranks.rank == 0 and on_iteration else None
            wants = [wants_to_stop(answer), interrupted.is_set(), False]
            if ranks.rank == 0 and keeper is not None:
                wants[2] = keeper.due()
            stop, interrupt, save = any_rank(wants, ranks)
            over = stop or interrupt or state.iteration == own.num_iterations
            if save or over:
                keep(state, config, ranks, keeper)
            if over and state.iteration < own.num_iterations:
                state.history.stopped = "on_iteration" if stop else "interrupted"
                break
    return state.history


def any_rank(wants: list[bool], ranks: Ranks) -> list[bool]:
    """Whether any rank wants it: all must do the same, or some would wait for ever."""
    numbers = summed(torch.tensor(wants, dtype=torch.float32, device=ranks.device))
    return [number > 0 for number in numbers.tolist()]


def row_of_all(row: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """Give the row of the job: steps and episodes are added, the rest is a mean over the ranks.

    A metric that some ranks could not compute is the mean over the others.
    """
    known = [0.0 if value is None else float(value) for value in row.values()]
    counts = [0.0 if value is None else 1.0 for value in row.values()]
    dtype = torch.float32 if ranks.device.startswith("mps") else torch.float64
    numbers = gathered(torch.tensor([*known, *counts], dtype=dtype, device=ranks.device))
    total, there = numbers.sum(dim=0).chunk(2)
    whole: dict[str, Any] = {}
    for name, added, count in zip(row, total.tolist(), there.tolist(), strict=True):
        mean = added / count if count else None
        kind = type(row[name])
        whole[name] = int(added) if name in SUMS else int(mean) if kind is int and mean else mean
    return whole


def keep(state: TrainState, config: PPOConfig, ranks: Ranks, keeper: Keeper | None) -> None:
    """Gather what all ranks hold, and let rank 0 write it."""
    everyone = gathered_objects(part_of_rank(state))
    if everyone is not None and keeper is not None:
        keeper.save(job_checkpoint(state, config, everyone), state)


def part_of_rank(state: TrainState) -> dict[str, Any]:
    """What differs between ranks: environments, running episodes, generator, recent returns."""
    own = {
        "envs": state.envs.state_dict(),
        "carry": {part.name: getattr(state.carry, part.name) for part in fields(Carry)},
        "generator": state.generator.get_state(),
        "recent_returns": list(state.recent_returns),
    }
    return on_cpu(own)


def on_cpu(thing: Any) -> Any:
    """The same with every tensor on the CPU: what travels between ranks belongs to none."""
    if isinstance(thing, Tensor):
        return thing.cpu()
    if isinstance(thing, dict):
        return {name: on_cpu(part) for name, part in thing.items()}
    return thing


def job_checkpoint(
    state: TrainState, config: PPOConfig, everyone: list[dict[str, Any]]
) -> dict[str, Any]:
    """Give a checkpoint like that of `train`, with what each rank needs under "ranks".

    `train` itself goes on from it with new episodes, since no single process holds them all.
    """
    settings = {**asdict(config), "hidden_sizes": list(config.hidden_sizes)}
    return {**state.checkpoint(), "config": settings, "envs": None, "ranks": everyone}


def resume_job(
    state: TrainState, config: PPOConfig, saved: Mapping[str, Any], ranks: Ranks
) -> None:
    """Put this rank where the checkpoint of its job was taken.

    Raises:
        ValueError: if the checkpoint is that of other settings.
    """
    check_same_run(config, saved)
    everyone = saved.get("ranks") or [saved]
    same = len(everyone) == ranks.world_size
    own = everyone[ranks.rank] if same else {"envs": None, "recent_returns": []}
    settings = {**asdict(state.config), "hidden_sizes": list(state.config.hidden_sizes)}
    resume_here(state, {**saved, **own, "config": settings})
    if not same:
        # the saved generator is that of another rank
        state.generator.manual_seed(rank_seed(state.config.seed + state.iteration, 1))
        state.resumed = (
            f"the checkpoint is that of {len(everyone)} ranks and this job has "
            f"{ranks.world_size}, so new episodes begin here"
        )


@contextmanager
def patient_interrupt() -> Iterator[threading.Event]:
    """Turn Ctrl-C and torchrun's request to end into an event, so that all ranks stop together.

    torchrun sends a signal again to ranks that have had it from the terminal: it must not break
    into an iteration. Only the main thread receives signals.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
