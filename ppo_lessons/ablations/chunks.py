"""The work of a study, cut into batches of replicas that can be stopped and gone on with."""

import ast
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ppo_lessons.ablations.networks import signature, why_not_stacked
from ppo_lessons.ablations.replicas import (
    NOT_FINITE,
    SHARED,
    Replicas,
    own_copy,
    remembered,
    why_not_batched,
)
from ppo_lessons.ablations.study import (
    LAST_SHARE,
    Run,
    Setting,
    Study,
    as_row,
    digest,
    make_task,
    with_seed,
)
from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.training_loop import TrainState, train
from ppo_lessons.training_loop.checkpoint import write_checkpoint
from ppo_lessons.types import History

MOST_REPLICAS = 64  # more at once are no faster, and need more memory
SECONDS_BETWEEN_CHECKPOINTS = 5.0
# The modules that decide what a run computes.
CODE = (
    *("activations", "clip", "critic", "gae", "importance", "networks", "shapes", "trust_region"),
    *("envs/batched", "envs/classic", "rollout/collect", "rollout/score", "training_loop/parts"),
    *("training_loop/train", "training_loop/update", "ablations/envs", "ablations/networks"),
    *("ablations/optimizers", "ablations/replicas", "ablations/slots"),
)
Finished = Sequence[tuple[float, int]]  # per iteration: sum of the returns, number of episodes
Tell = Callable[[int], bool]  # is told of finished steps; says whether to stop


@dataclass(frozen=True)
class Chunk:
    """Some runs of a study that are done at once.

    Attributes:
        runs: index of the setting, and seed.
        batched: whether they fit into one batch; else each is trained alone.
    """

    runs: tuple[tuple[int, int], ...]
    batched: bool


@cache
def code_digest() -> str:
    """Sixteen letters that change with the code that computes a run, not with its comments."""
    root = Path(__file__).resolve().parents[1]
    texts = [(root / f"{name}.py").read_text(encoding="utf-8") for name in CODE]
    return digest([without_words(text) for text in texts])


def without_words(text: str) -> str:
    """Python code without comments, docstrings and the way it is laid out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del body[0]
    return ast.unparse(tree)


def setting_key(study: Study, setting: Setting) -> str:
    """A text that changes with everything that the runs of a setting depend on but their seed."""
    row = {name: value for name, value in as_row(setting).items() if name != "name"}
    return digest([study.task, study.time_limit, study.num_points, row, code_digest()])


# --- cutting -------------------------------------------------------------------------------


def cut_study(study: Study) -> list[Chunk]:
    """Cut a study into chunks; the dearest come first, so that processes end together.

    Settings with the same shapes run together. The cut depends on nothing but the study, so that a
    run that was broken off finds its chunk again.
    """
    shapes: dict[Any, list[int]] = {}
    alone: list[Chunk] = []
    for index, setting in enumerate(study.settings):
        shape = shape_of(study, setting)
        if shape is None:
            alone += [Chunk(((index, seed),), batched=False) for seed in study.seeds]
        else:
            shapes.setdefault(shape, []).append(index)
    chunks = list(alone)
    for members in shapes.values():
        runs = [(index, seed) for index in members for seed in study.seeds]
        count = math.ceil(len(runs) / MOST_REPLICAS)
        count += count % 2 if len(runs) >= 16 else 0  # as much for each of two processes
        size = math.ceil(len(runs) / count)
        cuts = range(0, len(runs), size)
        chunks += [Chunk(tuple(runs[low : low + size]), batched=True) for low in cuts]
    return sorted(chunks, key=lambda chunk: -cost(study, chunk))


def cost(study: Study, chunk: Chunk) -> int:
    """How long a chunk takes, compared with others."""
    epochs = study.settings[chunk.runs[0][0]].config.num_epochs
    return len(chunk.runs) * (1 + epochs) * (1 if chunk.batched else 5)


def shape_of(study: Study, setting: Setting) -> Any:
    """What settings must have in common to run in one batch; None if this one has no batch."""
    config, task = setting.config, make_task(study.task, study.time_limit)
    if why_not_batched(setting.parts) is not None:
        return None
    networks = setting.parts.call(
        "networks", task.observation_space.shape, task.action_space,
        hidden_sizes=config.hidden_sizes, generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    if why_not_stacked(networks) is not None:
        return None
    return tuple(getattr(config, name) for name in SHARED), signature(networks)


# --- running -------------------------------------------------------------------------------


class Stopped(Exception):
    """A chunk was left before it was done; what it had reached is kept."""


def run_chunk(
    study: Study, chunk: Chunk, *, partial: Path, device: str | torch.device, tell: Tell
) -> list[Run]:
    """Run a chunk, from where it was left if it was.

    Args:
        study: the whole study.
        chunk: which of its runs.
        partial: file for what is half done.
        device: where the tensors live.
        tell: told of finished environment steps after each iteration; returns true to stop.

    Returns:
        The runs.

    Raises:
        Stopped: if `tell` says so.
    """
    if not chunk.batched:
        return [run_alone(study, *run, device=device, tell=tell) for run in chunk.runs]
    configs = [with_seed(study.settings[index], seed) for index, seed in chunk.runs]
    parts = [study.settings[index].parts for index, _ in chunk.runs]
    task = make_task(study.task, study.time_limit)
    replicas = Replicas(configs, task=task, parts=parts, device=device)
    load_partial(replicas, partial)
    steps = len(configs) * replicas.config.batch_size
    stop, saved_at = tell(replicas.iteration * steps), time.monotonic()
    while not replicas.finished:
        if stop or time.monotonic() - saved_at > SECONDS_BETWEEN_CHECKPOINTS:
            write_checkpoint(replicas.state_dict(), partial)
            saved_at = time.monotonic()
        if stop:
            raise Stopped
        replicas.iterate()
        stop = tell(steps)
    histories = replicas.histories()
    pairs = zip(chunk.runs, histories, replicas.learners, strict=True)
    runs = [boiled_down(study, *run, history, learner.returns) for run, history, learner in pairs]
    return runs


def load_partial(replicas: Replicas, path: Path) -> None:
    """Go on from a file, if there is one; a damaged one is as good as none."""
    if not path.exists():
        return
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # a damaged file may raise anything while it is taken apart
        path.unlink(missing_ok=True)
        return
    replicas.load_state_dict(saved)


def run_alone(
    study: Study, index: int, seed: int, *, device: str | torch.device, tell: Tell
) -> Run:
    """Train one run as `train` does, for a setting that fits into no batch."""
    setting = study.settings[index]
    config, parts = with_seed(setting, seed), own_copy(setting.parts)
    envs = BatchedEnvs(make_task(study.task, study.time_limit), config.num_envs, device=device)
    finished: list[tuple[float, int]] = []
    history = History(config, None)

    def on_iteration(state: TrainState) -> bool:
        nonlocal history
        history = state.history
        assert state.rollout is not None
        returns = state.rollout.episode_returns[state.rollout.ended & state.rollout.valid]
        finished.append((returns.sum().item(), len(returns)))
        for slot in remembered(parts):
            getattr(parts, slot).after_iteration(state)
        return tell(config.batch_size)

    try:
        history = train(config, envs=envs, parts=parts, on_iteration=on_iteration)
    except ValueError as error:
        if NOT_FINITE not in str(error) or not history.rows:
            raise
        history.stopped = NOT_FINITE
    if history.stopped in ("on_iteration", "interrupted"):
        raise Stopped
    return boiled_down(study, index, seed, history, finished)


# --- what is kept --------------------------------------------------------------------------

METRICS = (
    *("kl_k1", "kl_k3", "fraction_outside", "fraction_zero_gradient", "max_ratio_deviation"),
    *("entropy", "policy_loss", "value_loss", "gradient_norm", "ev_lambda", "ev_monte_carlo"),
)


def points_of(study: Study) -> list[int]:
    """Where the points of a learning curve lie (environment steps)."""
    return [study.total_steps * (i + 1) // study.num_points for i in range(study.num_points)]


def boiled_down(study: Study, index: int, seed: int, history: History, finished: Finished) -> Run:
    """Boil a run down to what a study keeps of it.

    Args:
        study: for the points of the curve.
        index: of the setting.
        seed: of the run.
        history: its rows.
        finished: per iteration the sum of the returns of the episodes that ended, their number.
    """
    setting = study.settings[index]
    B, points = setting.config.batch_size, points_of(study)
    ends = [(i + 1) * B for i in range(len(finished))]
    returns, place, before = [], 0, None
    for point in points:
        upto = sum(end <= point for end in ends)
        before = mean_of(finished[place:upto], before)
        returns.append(before)
        place = upto
    late = [pair for end, pair in zip(ends, finished, strict=True) if end > late_from(study)]
    broken = history.stopped == NOT_FINITE
    return Run(
        setting=setting.name,
        seed=seed,
        score=rounded(mean_of(late, before)),
        returns=[rounded(value) for value in returns],
        metrics={name: rounded(mean_of_column(history, name)) for name in METRICS},
        broke_at=len(history) * B if broken else None,
    )


def late_from(study: Study) -> float:
    """From where on the score is taken (environment steps)."""
    return (1 - LAST_SHARE) * study.total_steps


def mean_of(finished: Finished, otherwise: float | None) -> float | None:
    """The mean return of the episodes of some iterations, or something else if none ended."""
    count = sum(number for _, number in finished)
    return sum(total for total, _ in finished) / count if count else otherwise


def mean_of_column(history: History, name: str) -> float | None:
    """The mean of a metric over the iterations that have one."""
    values = [row[name] for row in history.rows if row[name] is not None]
    return sum(values) / len(values) if values else None


def rounded(value: float | None) -> float | None:
    """Five digits: more would be noise, and fill the file."""
    return None if value is None else float(f"{value:.5g}")
