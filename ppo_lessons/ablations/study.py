"""A study as a table: settings × seeds, one budget, and what was expected before it ran."""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.envs import TASKS
from ppo_lessons.envs.batched import Task
from ppo_lessons.training_loop import Parts, PPOConfig
from ppo_lessons.training_loop.config import LARGEST_SEED

FORMAT = "ppo-lessons study 1"
SCORE = "mean return of the episodes that ended in the last tenth of the steps (reward)"
LAST_SHARE = 0.1  # of the steps, over which the score is taken
NOT_COMPARED = ("env", "seed")  # the study's task and seeds stand in their place


@dataclass(frozen=True)
class Setting:
    """One row of a study's table.

    Attributes:
        name: how the table and the pictures call it.
        config: every number; `env` and `seed` are those of the study.
        parts: the functions that fill the loop's slots. One that remembers something
            (`AdaptivePenalty`) is copied for each run.
    """

    name: str
    config: PPOConfig
    parts: Parts = Parts()  # noqa: RUF009  (frozen, so one instance may serve all)

    def __post_init__(self) -> None:
        """Check the types.

        Raises:
            TypeError: with the field, what was given, and what was expected.
            ValueError: if the name is empty.
        """
        for name, kind in (("name", str), ("config", PPOConfig), ("parts", Parts)):
            check_type(f"{name} of a setting", getattr(self, name), kind)
        if not self.name.strip():
            raise ValueError("the name of a setting is empty; expected a few words. Name it.")


@dataclass(frozen=True)
class Study:
    """A question, what is expected as an answer, and the runs that will give one.

    All settings have the same budget of environment steps, and the same seeds.

    Attributes:
        name: a word, also that of its file.
        question: what the study is to answer.
        expectation: the answer that was expected before it ran.
        settings: the rows of the table; their names differ.
        seeds: one run of each setting for each of them.
        task: a name in `TASKS`.
        time_limit: steps after which an episode is cut; that of the task if None.
        num_points: points of a learning curve, at least 10.
    """

    name: str
    question: str
    expectation: str
    settings: Sequence[Setting]
    seeds: Sequence[int]
    task: str = "CartPole"
    time_limit: int | None = None
    num_points: int = 50

    def __post_init__(self) -> None:
        """Check that the table can be run, before any training time is spent.

        Raises:
            ValueError: with what was given, what was expected and what to do.
            TypeError: with the field of another type.
        """
        object.__setattr__(self, "settings", tuple(self.settings))
        object.__setattr__(self, "seeds", tuple(self.seeds))
        for name in ("name", "question", "expectation"):
            check_type(f"{name} of a study", getattr(self, name), str)
            if not getattr(self, name).strip():
                raise ValueError(
                    f"the {name} of the study is empty; expected a sentence, written down before "
                    f"the study runs. Give {name}=..."
                )
        if not self.settings:
            raise ValueError(
                "the study has no settings; expected at least one. Give Setting(...)s."
            )
        for setting in self.settings:
            check_type("a setting", setting, Setting)
        check_seeds(self.seeds)
        names = [setting.name for setting in self.settings]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two settings are called {twice[0]!r}; expected different names. Rename one."
            )
        budgets = {setting.name: setting.config.total_steps for setting in self.settings}
        if len(set(budgets.values())) > 1:
            raise ValueError(
                f"total_steps differ: {budgets}; expected one budget for all settings, since more "
                "steps would win whatever the setting is. Give all the same total_steps."
            )
        if self.num_points < 10:
            raise ValueError(
                f"num_points is {self.num_points}; expected at least 10, so that the last tenth of "
                "the steps is a point of its own. Choose num_points=50."
            )
        make_task(self.task, self.time_limit)

    @property
    def total_steps(self) -> int:
        """The budget of each run (environment steps)."""
        return self.settings[0].config.total_steps

    @property
    def num_runs(self) -> int:
        """Settings times seeds."""
        return len(self.settings) * len(self.seeds)


def make_task(name: str, time_limit: int | None = None) -> Task:
    """Make a task by its name.

    Args:
        name: a name in `TASKS`.
        time_limit: steps after which an episode is cut; the task's own if None.

    Raises:
        ValueError: if there is no such task, or the limit is below 1.
    """
    if name not in TASKS:
        raise ValueError(
            f"there is no task {name!r}; expected one of {', '.join(TASKS)}. Choose one of them."
        )
    make: Callable[..., Task] = TASKS[name]
    if time_limit is None:
        return make()
    if not isinstance(time_limit, int) or isinstance(time_limit, bool) or time_limit < 1:
        raise ValueError(
            f"time_limit is {time_limit!r}; expected whole steps, at least 1, or None for the "
            "task's own. Choose time_limit=100."
        )
    return make(time_limit=time_limit)


def check_type(name: str, value: object, kind: type) -> None:
    """Require a type.

    Raises:
        TypeError: otherwise.
    """
    if not isinstance(value, kind):
        raise TypeError(
            f"the {name} is {value!r}, a {type(value).__name__}; expected {kind.__name__}. Give "
            f"a {kind.__name__}."
        )


def check_seeds(seeds: Sequence[int]) -> None:
    """Require at least one seed, none twice, each as `PPOConfig.seed` wants it.

    Raises:
        ValueError: otherwise.
        TypeError: if one is no int.
    """
    if not seeds:
        raise ValueError("the study has no seeds; expected at least one. Give seeds=range(16).")
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise TypeError(
                f"seeds holds {seed!r}, a {type(seed).__name__}; expected int. Give "
                "seeds=range(16)."
            )
        if not 0 <= seed <= LARGEST_SEED:
            raise ValueError(
                f"seeds holds {seed}; expected numbers from 0 to 2⁶³ − 1. Give seeds=range(16)."
            )
    if len(set(seeds)) < len(seeds):
        raise ValueError(
            "a seed stands twice in seeds; expected different ones: the same run twice is one run. "
            "Give seeds=range(16)."
        )


# --- what a setting is, as text ------------------------------------------------------------


def describe(function: Any) -> dict[str, Any]:
    """Say which function stands in a slot, so that two machines can tell whether theirs agree.

    Args:
        function: of `Parts`; also a partial, or an instance of a dataclass.

    Returns:
        Its name, a digest of its source, and the numbers that it was given.
    """
    if isinstance(function, partial):
        inner = describe(function.func)
        given = {str(index): plain(value) for index, value in enumerate(function.args)}
        given |= {name: plain(value) for name, value in function.keywords.items()}
        return {**inner, "given": {**inner.get("given", {}), **given}}
    kind = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    module = getattr(kind, "__module__", "?")
    described: dict[str, Any] = {
        "function": f"{module}.{getattr(kind, '__qualname__', repr(kind))}",
        "source": digest(source_of(kind)),
    }
    if is_dataclass(function) and not isinstance(function, type):
        described["given"] = {f.name: plain(getattr(function, f.name)) for f in fields(function)}
    elif inspect.isfunction(function) and function.__closure__:
        cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
        described["given"] = {name: plain(cell.cell_contents) for name, cell in cells}
    return described


def source_of(function: Any) -> str:
    """The source text, or what else tells one function from another."""
    try:
        return inspect.getsource(function).replace("\r\n", "\n")
    except (OSError, TypeError):  # typed into a prompt, or built in
        code = getattr(function, "__code__", None)
        return repr(function) if code is None else repr((code.co_code, code.co_consts))


def plain(value: Any) -> Any:
    """A value as JSON can hold it; functions become their description."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return describe(value)


def digest(content: Any) -> str:
    """Sixteen letters that change with every change of a text, or of what JSON can hold."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def as_row(setting: Setting) -> dict[str, Any]:
    """A setting as JSON: every number, and each slot that does not hold the usual function."""
    config = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(setting.config).items()
        if name not in NOT_COMPARED
    }
    usual = Parts()
    parts = {
        slot.name: describe(getattr(setting.parts, slot.name))
        for slot in fields(Parts)
        if getattr(setting.parts, slot.name) is not getattr(usual, slot.name)
    }
    return {"name": setting.name, "config": config, "parts": parts}


# --- what came out -------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What is kept of one run.

    Attributes:
        setting: name of its row.
        seed: its seed.
        score: `SCORE`; None if no episode has ended at all.
        returns: mean return of the episodes that ended by each point since the one before; where
            none did, the value before; None before the first (reward).
        metrics: means over all iterations of what `train` measures in the last epoch.
        broke_at: environment steps after which its numbers were not finite any more; None if they
            always were. Its score is then the last one it had.
    """

    setting: str
    seed: int
    score: float | None
    returns: Sequence[float | None]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    broke_at: int | None = None


@dataclass(frozen=True)
class StudyResult:
    """A study with its runs, as it is written to JSON.

    Attributes:
        name: of the study.
        question: what it was to answer.
        expectation: what was expected before it ran.
        task: name of the task.
        time_limit: of its episodes (steps); None for the task's own.
        env_steps: where the points of the curves lie (environment steps).
        rows: the settings as JSON, each with `name`, `config` and `parts` (only what is unusual).
        runs: one for each setting and seed that has been run.
        code: digest of the course's code that computed them.
        machines: what they ran on; one entry for each machine.
    """

    name: str
    question: str
    expectation: str
    task: str
    time_limit: int | None
    env_steps: Sequence[int]
    rows: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    code: str = ""
    machines: Sequence[Mapping[str, Any]] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings, in the order of the table."""
        return tuple(row["name"] for row in self.rows)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that every setting has, in order."""
        by_setting = [self._by_seed(name) for name in self.settings]
        return tuple(sorted(set.intersection(*(set(runs) for runs in by_setting))))

    def scores(self, setting: str) -> Float64[Tensor, " seeds"]:
        """Give the score of each seed of one setting, in the order of `seeds`.

        Args:
            setting: its name.

        Returns:
            `SCORE` of each run; NaN where no episode ended (reward).

        Raises:
            ValueError: if there is no such setting.
        """
        return numbers([run.score for run in self.of(setting)])

    def curves(self, setting: str) -> tuple[Float64[Tensor, " I"], Float64[Tensor, "seeds I"]]:
        """Give the learning curves of one setting.

        Args:
            setting: its name.

        Returns:
            env_steps of the points, and the return of each seed there; NaN before the first
            episode has ended (reward).

        Raises:
            ValueError: if there is no such setting.
        """
        steps = torch.tensor(list(self.env_steps), dtype=torch.float64)
        return steps, torch.stack([numbers(run.returns) for run in self.of(setting)])

    def metric(self, setting: str, metric: str) -> Float64[Tensor, " seeds"]:
        """Give one metric of each seed, averaged over all iterations.

        Args:
            setting: its name.
            metric: as in `docs/notation.md`: `kl_k3`, `fraction_zero_gradient`, ...

        Raises:
            ValueError: if there is no such setting or metric.
        """
        runs = self.of(setting)
        known = sorted(runs[0].metrics) if runs else []
        if metric not in known:
            raise ValueError(
                f"there is no metric {metric!r}; expected one of {', '.join(known)}. Choose one."
            )
        return numbers([run.metrics[metric] for run in runs])

    def config(self, setting: str) -> PPOConfig:
        """Give the numbers of one setting."""
        self._by_seed(setting)
        config = next(dict(row["config"]) for row in self.rows if row["name"] == setting)
        return PPOConfig(**{**config, "hidden_sizes": tuple(config["hidden_sizes"])})

    def to_json(self, path: str | Path) -> Path:
        """Write the study, whole or not at all; give the path back."""
        from ppo_lessons.runs import write_text

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, one_run_a_line(self.as_dict()) + "\n")
        return path

    def as_dict(self) -> dict[str, Any]:
        """The study as JSON can hold it."""
        return {
            "format": FORMAT,
            **{f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"},
            "env_steps": list(self.env_steps),
            "rows": [dict(row) for row in self.rows],
            "machines": [dict(machine) for machine in self.machines],
            "score": SCORE,
            "runs": [asdict(run) for run in self.runs],
        }

    @classmethod
    def from_json(cls, source: str | Path | Mapping[str, Any]) -> "StudyResult":
        """Read a study that `to_json` wrote, or an entry of a recorded file.

        Args:
            source: a path, or what such a file holds.

        Raises:
            ValueError: if it is no study of ours.
        """
        saved = source if isinstance(source, Mapping) else read_json(Path(source))
        label = "source" if isinstance(source, Mapping) else str(source)
        names = [f.name for f in fields(cls)]
        if saved.get("format") != FORMAT or not set(names) <= saved.keys():
            raise ValueError(
                f"{label} is no study of ppo-lessons; expected a file that `ppo-lessons study run` "
                "or StudyResult.to_json wrote. Give another file."
            )
        runs = [Run(**run) for run in saved["runs"]]
        return cls(**{**{name: saved[name] for name in names}, "runs": runs})

    def of(self, setting: str) -> list[Run]:
        """Give the runs of one setting, in the order of `seeds`.

        Raises:
            ValueError: if there is no such setting.
        """
        by_seed = self._by_seed(setting)
        return [by_seed[seed] for seed in self.seeds]

    def _by_seed(self, setting: str) -> dict[int, Run]:
        if setting not in self.settings:
            raise ValueError(
                f"there is no setting {setting!r}; expected one of {', '.join(self.settings)}. "
                "Choose one of them."
            )
        return {run.seed: run for run in self.runs if run.setting == setting}


def one_run_a_line(saved: Mapping[str, Any]) -> str:
    """JSON for people to look at, in which each run takes one line and not a page."""
    head = json.dumps({**saved, "runs": []}, indent=1)
    lines = ",\n  ".join(json.dumps(run) for run in saved["runs"])
    return head.replace('"runs": []', f'"runs": [\n  {lines}\n ]')


def numbers(values: Sequence[float | None]) -> Float64[Tensor, " n"]:
    """Numbers as a tensor; None becomes NaN."""
    filled = [torch.nan if value is None else value for value in values]
    return torch.tensor(filled, dtype=torch.float64)


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        ValueError: if it does not exist, is damaged, or holds something else.
    """
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; expected a study. Give its path.") from None
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as JSON ({error}); expected a study. It was left as it is. "
            "Give another file."
        ) from None
    return saved if isinstance(saved, dict) else {}


def with_seed(setting: Setting, seed: int) -> PPOConfig:
    """The config of one run."""
    return replace(setting.config, seed=seed)
