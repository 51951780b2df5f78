"""Run a study: in processes of one thread each, kept by content, gone on with where it was left."""

import multiprocessing
import os
import pickle
import queue
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.ablations.chunks import (
    Chunk,
    Stopped,
    Tell,
    code_digest,
    cut_study,
    points_of,
    run_chunk,
    setting_key,
)
from ppo_lessons.ablations.study import Run, Study, StudyResult, as_row, digest, read_json
from ppo_lessons.runs import versions, write_json
from ppo_lessons.training_loop.train import deferred_interrupt, one_thread

MOST_WORKERS = 2  # more only if asked for: the learner's machine has other things to do
SECONDS_TO_SAVE = 120.0  # how long a worker may take to finish its iteration and save


def run_study(
    study: Study,
    *,
    cache: str | Path | None = None,
    workers: int | None = None,
    device: str | torch.device = "cpu",
    progress: bool = True,
) -> StudyResult:
    """Train every setting with every seed; what has been run before is read and not run again.

    Ctrl-C, or a process that is killed, loses at most the last few seconds: call it again, and it
    goes on from there. A run is kept under a name made of everything it depends on, so another
    setting, seed or version of a function is another run.

    Args:
        study: the table.
        cache: folder of finished and half-finished runs; `default_cache()` if None.
        workers: processes, each with one torch thread; the number of cores, at most 2, if None.
        device: where the tensors live; on an accelerator there is one process.
        progress: show a bar with the time that is left.

    Returns:
        The study with all its runs.

    Raises:
        ValueError: if workers is below 1, or a setting cannot be trained.
        KeyboardInterrupt: after Ctrl-C, once everything is saved.
    """
    folder = default_cache() if cache is None else Path(cache)
    workers = check_workers(workers, device)
    store = Store(study, folder)
    all_there = store.num_found == study.num_runs
    missing = [] if all_there else [store.missing(chunk) for chunk in cut_study(study)]
    chunks = [chunk for chunk in missing if chunk.runs]
    with Bar(study, store.num_found, show=progress) as bar:
        if len(chunks) > 1 and workers > 1 and can_share(study):
            run_in_processes(chunks, store, min(workers, len(chunks)), bar)
        elif chunks:
            run_here(chunks, store, device, bar)
    return store.result()


def default_cache() -> Path:
    """The folder in which runs are kept: `$PPO_LESSONS_CACHE`, or one in the user's cache."""
    named = os.environ.get("PPO_LESSONS_CACHE")
    if named:
        return Path(named) / "studies"
    homes = {
        "win32": os.environ.get("LOCALAPPDATA"),
        "darwin": str(Path.home() / "Library" / "Caches"),
    }
    home = homes.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "ppo-lessons" / "studies"


def check_workers(workers: int | None, device: str | torch.device) -> int:
    """How many processes there will be.

    Raises:
        ValueError: if fewer than 1 were asked for.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; expected at least 1. Choose workers=2.")
    if torch.device(device).type != "cpu":
        return 1
    return workers or min(MOST_WORKERS, os.cpu_count() or 1)


class Store:
    """The runs of a study that are on disk.

    Attributes:
        num_found: how many there were at the start.

    Args:
        study: the table.
        folder: where runs are kept; other studies may use it too.
    """

    def __init__(self, study: Study, folder: Path):
        self.study = study
        self.folder = folder
        self._keys = [setting_key(study, setting) for setting in study.settings]
        self._runs: dict[tuple[int, int], Run] = {}
        self._all = [(index, s) for index in range(len(study.settings)) for s in study.seeds]
        self.read(self._all)
        self.num_found = len(self._runs)

    def missing(self, chunk: Chunk) -> Chunk:
        """Those runs of a chunk that are not there."""
        left = tuple(run for run in chunk.runs if run not in self._runs)
        return Chunk(left, chunk.batched)

    def unfinished(self, chunk: Chunk) -> Path:
        """Where a chunk is kept while it is under way."""
        runs = [[self._keys[index], seed] for index, seed in chunk.runs]
        return self.folder / "unfinished" / f"{digest(runs)}.pt"

    def keep(self, chunk: Chunk, runs: list[Run]) -> None:
        """Write the runs of a chunk, each whole or not at all; then it is no longer half done."""
        for (index, seed), run in zip(chunk.runs, runs, strict=True):
            path = self._path(index, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, asdict(run))
        self.unfinished(chunk).unlink(missing_ok=True)
        self.read(chunk.runs)

    def read(self, runs: Iterable[tuple[int, int]]) -> None:
        """Look which runs are on disk; a damaged file is as good as none."""
        for index, seed in runs:
            path = self._path(index, seed)
            if not path.exists():
                continue
            # under the name that its setting has here
            named = {"setting": self.study.settings[index].name}
            with suppress(ValueError, TypeError):
                self._runs[index, seed] = Run(**{**read_json(path), **named})

    def result(self) -> StudyResult:
        """The study with its runs, in the order of the table."""
        study = self.study
        return StudyResult(
            name=study.name,
            question=study.question,
            expectation=study.expectation,
            task=study.task,
            time_limit=study.time_limit,
            env_steps=points_of(study),
            rows=[as_row(setting) for setting in study.settings],
            runs=[self._runs[pair] for pair in self._all],
            code=code_digest(),
            machines=[{**versions(), "cores": os.cpu_count()}],
        )

    def _path(self, index: int, seed: int) -> Path:
        key = digest([self._keys[index], seed])
        return self.folder / key[:2] / f"{key}.json"


class Bar:
    """A progress bar over environment steps, with the time that is left."""

    def __init__(self, study: Study, num_found: int, *, show: bool):
        from tqdm import tqdm

        # a notebook is no terminal, and shows the bar all the same
        visible = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._bar = tqdm(
            total=study.num_runs * study.total_steps,
            initial=num_found * study.total_steps,
            desc=study.name,
            unit=" steps",
            unit_scale=True,
            dynamic_ncols=True,
            disable=not (show and visible),
            leave=False,
        )

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def add(self, steps: int) -> None:
        """Count finished environment steps."""
        self._bar.update(steps)


def run_here(chunks: list[Chunk], store: Store, device: str | torch.device, bar: Bar) -> None:
    """Run the chunks one after the other, in this process."""
    with one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:

        def tell(steps: int) -> bool:
            bar.add(steps)
            return interrupted.is_set()

        try:
            for chunk in chunks:
                run_and_keep(store, chunk, device=device, tell=tell)
        except Stopped:
            raise KeyboardInterrupt("stopped; call it again to go on") from None


# --- several processes ---------------------------------------------------------------------


def can_share(study: Study) -> bool:
    """Whether other processes can have the study: forked ones do, others must unpack it."""
    if start_method() == "fork":
        return True
    try:
        pickle.dumps(study)
    except Exception:  # functions of a notebook, lambdas: pickle raises many kinds
        return False
    return True


def start_method() -> str:
    """How processes are started: forked on Linux, so that functions of a notebook come along."""
    return "fork" if sys.platform == "linux" else "spawn"


def run_in_processes(chunks: list[Chunk], store: Store, workers: int, bar: Bar) -> None:
    """Let processes of one thread take chunk after chunk; each finished chunk is kept at once.

    Raises:
        ValueError: what a worker raised, or that one has died.
    """
    context: Any = multiprocessing.get_context(start_method())
    todo, messages, stop = context.Queue(), context.Queue(), context.Event()
    for index in range(len(chunks)):
        todo.put(index)
    given = (store, chunks, todo, messages, stop, os.getpid())
    processes = [context.Process(target=work, args=given, daemon=True) for _ in range(workers)]
    with ended(processes, stop):
        with warnings.catch_warnings():  # Python 3.12 warns of forks: these use one thread each
            warnings.simplefilter("ignore", DeprecationWarning)
            for process in processes:
                process.start()
        left = len(chunks)
        while left:
            try:
                kind, value = messages.get(timeout=1.0)
            except queue.Empty:
                check_processes(processes)
                continue
            if kind == "error":
                raise value
            if kind == "steps":
                bar.add(value)
            else:
                store.read(chunks[value].runs)
                left -= 1


def work(
    store: Store, chunks: list[Chunk], todo: Any, messages: Any, stop: Any, parent: int
) -> None:
    """Take chunks until none is left, and keep each; the body of one process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    torch.set_num_threads(1)

    def tell(steps: int) -> bool:
        messages.put(("steps", steps))
        return stop.is_set() or os.getppid() != parent  # nobody is left to work for

    try:
        while True:
            try:
                index = todo.get(timeout=0.2)
            except queue.Empty:
                return
            with torch.enable_grad():
                run_and_keep(store, chunks[index], device="cpu", tell=tell)
            messages.put(("chunk", index))
    except Stopped:
        messages.cancel_join_thread()  # nobody may be left to read them
    except Exception as error:
        messages.put(("error", ValueError(f"{type(error).__name__}: {error}")))


def run_and_keep(store: Store, chunk: Chunk, *, device: str | torch.device, tell: Tell) -> None:
    """Run one chunk from where it was left, and keep its runs."""
    partial = store.unfinished(chunk)
    runs = run_chunk(store.study, chunk, partial=partial, device=device, tell=tell)
    store.keep(chunk, runs)


def check_processes(processes: list[Any]) -> None:
    """Require that no process has died.

    Raises:
        ValueError: otherwise; what it had finished is kept.
    """
    for process in processes:
        if process.exitcode not in (None, 0):
            raise ValueError(
                f"a worker process ended with status {process.exitcode}; expected it to finish its "
                "runs. Finished runs are kept: call it again to go on, with workers=1 if memory "
                "is short."
            )


@contextmanager
def ended(processes: list[Any], stop: Any) -> Iterator[None]:
    """Whatever happens, let the processes save and end."""
    try:
        yield
    except BaseException:
        stop.set()
        raise
    finally:
        until = time.monotonic() + SECONDS_TO_SAVE
        for process in processes:
            if process.pid is not None:
                process.join(timeout=max(0.0, until - time.monotonic()))
                if process.is_alive():
                    process.terminate()
