"""From whatever a run left behind to one table: rows, in the order of the iterations."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from ppo_lessons.diagnose.events import read_scalars
from ppo_lessons.diagnose.names import MEANINGS

Number = float | None
# One of these is written once per iteration; other metrics are sorted in by their steps.
ANCHORS = ("value_loss", "policy_loss", "kl_k3", "entropy", "ev_lambda")
FEWEST = 10  # iterations under which nothing can be said


@dataclass(frozen=True)
class Run:
    """The metrics of one run.

    Attributes:
        table: for each metric one number per iteration, or None where there was none.
        clip_epsilon: ε, if the run says it.
        passed_over: names that mean nothing here.
    """

    table: Mapping[str, Sequence[Number]]
    clip_epsilon: float | None = None
    passed_over: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of iterations."""
        return max((len(numbers) for numbers in self.table.values()), default=0)


def read_run(source: Any) -> Run:
    """Read a run.

    Args:
        source: rows, as a `History`, a list of dictionaries or a dictionary of lists; or a path: a
            run folder or checkpoint of `ppo-lessons train`, `.jsonl` or `.json` with rows, an
            event file of TensorBoard or the folder that holds it, a `progress.csv`.

    Returns:
        The metrics under our names.

    Raises:
        ValueError: if there is nothing to read, or too little.
        TypeError: if it is of another kind.
    """
    at = Path(source) if isinstance(source, (str, Path)) else None
    run = from_memory(source) if at is None else read_path(at)
    if run.passed_over and not set(run.table) & {*ANCHORS, "episode_return"}:
        raise ValueError(
            f"the run has none of the metrics {', '.join(ANCHORS)}, episode_return; expected some. "
            f"It has: {', '.join([*run.table, *run.passed_over][:12]) or 'nothing'}. Write them "
            "under our names, or those of Stable-Baselines3 or CleanRL."
        )
    if len(run) < FEWEST:
        raise ValueError(
            f"the run has {len(run)} iterations; expected at least {FEWEST}, since a diagnosis "
            "looks at how numbers change. Train for longer, or write metrics more often."
        )
    return run


def from_memory(source: Any) -> Run:
    """Read rows that are at hand."""
    config = getattr(source, "config", None)
    rows = getattr(source, "rows", source)
    if isinstance(rows, Mapping):
        columns = {
            name: column
            for name, column in rows.items()
            if isinstance(column, Sequence) and not isinstance(column, str)
        }
        if not columns:
            raise ValueError(
                f"a dictionary with {', '.join(map(str, list(rows)[:8])) or 'nothing'} holds no "
                "lists; expected one list of numbers per metric. Give a run's rows."
            )
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            short = min(lengths, key=lambda name: lengths[name])
            raise ValueError(
                f"the metrics have different lengths: {short} has {lengths[short]}, others up to "
                f"{max(lengths.values())}; expected one number per iteration. Fill with None."
            )
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes)):
        raise TypeError(
            f"the run is a {type(source).__name__}; expected a History, a list of rows, a "
            "dictionary of lists, or a path. Give one of these."
        )
    return from_rows(rows, clip_epsilon=getattr(config, "clip_epsilon", None))


def from_rows(rows: Sequence[Any], *, clip_epsilon: float | None = None) -> Run:
    """Turn rows, one per iteration, into a table.

    Raises:
        TypeError: if a row is no dictionary.
    """
    known: dict[str, None] = {}
    passed_over: dict[str, None] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"row {index} is a {type(row).__name__}; expected a dictionary of metrics. Give "
                "the rows of a History."
            )
        for name in row:
            (known if name in MEANINGS else passed_over)[str(name)] = None
    table: dict[str, list[Number]] = {}
    for name in known:
        meaning = MEANINGS[name]
        column = [scaled(row.get(name), meaning.factor, name, i) for i, row in enumerate(rows)]
        if any(number is not None for number in column):
            table[meaning.metric] = column
    clips = [number for number in table.pop("clip_epsilon", []) if number]
    return Run(table, clip_epsilon or (clips[-1] if clips else None), tuple(passed_over))


def scaled(value: Any, factor: float, name: str, index: int) -> Number:
    """Give a number in our unit, or None where there is none.

    Raises:
        TypeError: if it is no number.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    item = getattr(value, "item", None)  # a tensor or an array with one number
    value = item() if callable(item) else value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{name} in row {index} is no number; expected numbers or None. Give plain metrics."
        )
    return float(value) * factor


# --- files ---------------------------------------------------------------------------------


def read_path(path: Path) -> Run:
    """Read a file or a folder.

    Raises:
        ValueError: if it does not exist, or is nothing that can be read.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist; expected a run. Give its folder or its metrics.")
    if path.is_dir():
        return read_folder(path)
    if "tfevents" in path.name:
        return from_scalars([path])
    readers = {".jsonl": read_lines, ".json": read_json, ".csv": read_csv, ".pt": read_saved}
    if path.suffix not in readers:
        raise ValueError(
            f"{path} has the ending {path.suffix or 'none'}; expected .jsonl, .json, .csv, .pt or "
            "an event file of TensorBoard. Give the folder of the run."
        )
    return readers[path.suffix](path)


def read_folder(path: Path) -> Run:
    """Read the one run that a folder holds.

    Raises:
        ValueError: if it holds none, or several.
    """
    for name, reader in (("metrics.jsonl", read_lines), ("checkpoint.pt", read_saved)):
        if (path / name).is_file():
            return reader(path / name)
    folders = sorted({file.parent for file in path.rglob("*tfevents*") if file.is_file()})
    tables = sorted({file.parent for file in path.rglob("progress.csv")})
    runs = sorted({*folders, *tables, *(file.parent for file in path.rglob("metrics.jsonl"))})
    if len(runs) > 1:
        some = ", ".join(str(run.relative_to(path)) for run in runs[:4])
        raise ValueError(
            f"{path} holds {len(runs)} runs ({some}{', ...' if len(runs) > 4 else ''}); expected "
            "one. Give the folder of one of them."
        )
    if folders:
        return from_scalars(sorted(folders[0].glob("*tfevents*")))
    if tables:
        return read_csv(tables[0] / "progress.csv")
    if runs:
        return read_lines(runs[0] / "metrics.jsonl")
    raise ValueError(
        f"{path} holds no run; expected metrics.jsonl, event files of TensorBoard or a "
        "progress.csv. Give the folder into which a run was written."
    )


def read_lines(path: Path) -> Run:
    """Read one JSON object per line; a last line that is cut off is left out."""
    rows = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if number == len(lines):  # a run may be under way
                break
            raise ValueError(
                f"line {number} of {path} is no JSON ({error}); expected one object per line. "
                "Give the metrics.jsonl of a run."
            ) from None
    return from_rows(rows, clip_epsilon=clip_beside(path))


def clip_beside(path: Path) -> float | None:
    """Look ε up in the settings of the run, if they stand beside its metrics."""
    try:
        epsilon = json.loads((path.parent / "config.json").read_text("utf-8"))["clip_epsilon"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(epsilon) if isinstance(epsilon, Real) else None


def read_json(path: Path) -> Run:
    """Read rows, or one list per metric; what holds them may be called `rows` or `metrics`.

    Raises:
        ValueError: if it is no JSON, or holds no run.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); expected the rows of a run.") from None
    if isinstance(content, Mapping):
        for key in ("rows", "metrics"):
            content = content.get(key, content) if isinstance(content, Mapping) else content
    if isinstance(content, Mapping) and isinstance(content.get("runs"), Mapping):
        raise ValueError(
            f"{path} holds several runs; expected one. Read it in Python, and give one of them: "
            "diagnose(content['runs'][name])."
        )
    if not isinstance(content, (Mapping, list)):
        raise ValueError(
            f"{path} holds a {type(content).__name__}; expected the rows of a run, or one list per "
            "metric."
        )
    return from_memory(content)


def read_csv(path: Path) -> Run:
    """Read a table with a header, such as the progress.csv of Stable-Baselines3."""
    with path.open(encoding="utf-8", newline="") as file:
        return from_rows(list(csv.DictReader(file)))


def read_saved(path: Path) -> Run:
    """Read the rows of a checkpoint."""
    from ppo_lessons.training_loop import config_of, read_checkpoint

    saved = read_checkpoint(path)
    return from_rows(saved["rows"], clip_epsilon=config_of(saved).clip_epsilon)


# --- scalars with steps --------------------------------------------------------------------


def from_scalars(paths: Iterable[Path]) -> Run:
    """Put the scalars of event files into rows: one per step at which losses were written.

    What was written in between, such as the return of each episode, is averaged.
    """
    tags: dict[str, dict[int, list[float]]] = {}
    for path in paths:
        for tag, points in read_scalars(path).items():
            for step, number in points:
                tags.setdefault(tag, {}).setdefault(step, []).append(number)
    known = {tag: steps for tag, steps in tags.items() if tag in MEANINGS}
    names = {MEANINGS[tag].metric: tag for tag in known}
    anchor = next((names[metric] for metric in ANCHORS if metric in names), None)
    if anchor is None:
        anchor = max(known, key=lambda tag: len(known[tag]), default=None)
    edges = sorted(known[anchor]) if anchor else []
    columns = {tag: binned(steps, edges) for tag, steps in known.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    run = from_rows(rows)
    others = tuple(tag for tag in tags if tag not in known)
    return Run(run.table, run.clip_epsilon, others)


def binned(steps: Mapping[int, Sequence[float]], edges: Sequence[int]) -> list[Number]:
    """Average what was written up to each edge and after the one before it."""
    ordered, place, column = sorted(steps), 0, []
    for edge in edges:
        numbers: list[float] = []
        while place < len(ordered) and ordered[place] <= edge:
            numbers += steps[ordered[place]]
            place += 1
        column.append(sum(numbers) / len(numbers) if numbers else None)
    return column
