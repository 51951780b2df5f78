"""What does every notebook need at its first cell, and how does it show things?

`setup` checks the environment, `budget` picks a run's size, `show` displays a figure with a
sentence that stands for it, `show_source` shows the package's own code instead of a copy, `Watch`
shows a run while it trains, `recorded` reads a study that was run once.
"""

import base64
import importlib.metadata
import inspect
import io
import json
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")

DISTRIBUTION = "ppo-lessons"
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


# --- setup ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the environment.

    Args:
        what: the finding, with what was found and what was expected.
        command: one command to try.
    """

    what: str
    command: str


@dataclass(frozen=True)
class SetupReport:
    """The result of looking at the environment: one line if it is fine, else a table.

    Args:
        summary: Python, torch, device and threads, in words.
        problems: what is wrong; empty if nothing is.
    """

    summary: str
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        if not self.problems:
            return f"✔ ready: {self.summary}"
        lines = [f"✘ not ready ({len(self.problems)} to fix): {self.summary}"]
        for problem in self.problems:
            lines += [f"  - {problem.what}", f"    try: {problem.command}"]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html()}

    def _html(self) -> str:
        if not self.problems:
            return _line("success", "#137333", f"✔ ready: {self.summary}")
        rows = "".join(
            f"<tr><td>{escape(problem.what)}</td><td><code>{escape(problem.command)}</code></td></tr>"
            for problem in self.problems
        )
        head = _line("error", "#b3261e", f"✘ not ready: {self.summary}")
        return f"{head}<table><tr><th>what is wrong</th><th>try</th></tr>{rows}</table>"


def _line(role: str, color: str, text: str) -> str:
    """One coloured line; the page's theme says which shade, so that it is readable in the dark."""
    return f'<div style="color: var(--jp-{role}-color1, {color})">{escape(text)}</div>'


def setup() -> None:
    """Prepare the kernel and say whether the environment is fine.

    Sets one torch thread: on the small networks of this course more threads only wait for each
    other. Shows one green line, or a table of what is wrong with one command to try per row.
    """
    _display(inspect_setup())


def inspect_setup() -> SetupReport:
    """Check Python, versions, interpreter and device; set one torch thread.

    Returns:
        The report that `setup` shows.
    """
    problems = [
        *python_problems(sys.version_info[:3]),
        *requirement_problems(),
        *interpreter_problems(Path(sys.prefix), course_environments()),
    ]
    words, torch_problems = _prepare_torch()
    summary = f"Python {platform.python_version()}, {words}"
    return SetupReport(summary, tuple([*problems, *torch_problems]))


def python_problems(version: tuple[int, ...]) -> list[Problem]:
    """Compare a Python version with the one that the package asks for.

    Args:
        version: major, minor, micro.

    Returns:
        At most one problem.
    """
    specifiers = _distribution_metadata().get("Requires-Python", "")
    text = ".".join(str(part) for part in version)
    if not specifiers or _specifier_allows(specifiers, text):
        return []
    what = f"this is Python {text}; expected {specifiers}"
    return [Problem(what, "python3 course   # it looks for a Python that fits")]


def requirement_problems(requirements: Iterable[str] | None = None) -> list[Problem]:
    """Compare the installed versions with the package's requirements.

    Args:
        requirements: lines as in pyproject.toml; by default those of the installed package.

    Returns:
        One problem for each requirement that is missing or has another version.
    """
    if requirements is None:
        try:
            requirements = importlib.metadata.requires(DISTRIBUTION) or []
        except importlib.metadata.PackageNotFoundError:
            what = f"{DISTRIBUTION} is not installed for this interpreter"
            return [Problem(what, "python -m pip install -e .   # in the course's folder")]
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return [
            Problem("packaging is missing: versions not checked", "python -m pip install packaging")
        ]
    found = (_requirement_problem(Requirement(line)) for line in requirements)
    return [problem for problem in found if problem is not None]


def _requirement_problem(requirement: Any) -> Problem | None:
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    wanted = f"{requirement.name}{requirement.specifier}"
    command = f'python -m pip install "{wanted}"'
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return Problem(f"{requirement.name} is missing; expected {wanted}", command)
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return Problem(f"{requirement.name} is {version}; expected {wanted}", command)


def course_environments() -> list[Path]:
    """Find the virtual environments that the course's launcher made.

    Returns:
        `.venv` beside the package, and beside or inside `$PPO_LESSONS_HOME`, where the launcher
        left its mark there.
    """
    homes = [Path(__file__).resolve().parent.parent]
    if os.environ.get("PPO_LESSONS_HOME"):
        work = Path(os.environ["PPO_LESSONS_HOME"]).resolve()
        homes += [work, work.parent]
    found = dict.fromkeys(home / ".venv" for home in homes)
    return [path for path in found if (path / ".made-by-course").is_file()]


def interpreter_problems(prefix: Path, environments: Iterable[Path]) -> list[Problem]:
    """Say whether another interpreter runs although the course has its own.

    Args:
        prefix: `sys.prefix` of the running interpreter.
        environments: virtual environments of the course.

    Returns:
        At most one problem; none when the course has no environment of its own, since then
        any environment that holds the package is as good.
    """
    environments = list(environments)
    here = prefix.resolve()
    if not environments or any(here.is_relative_to(each.resolve()) for each in environments):
        return []
    what = "this kernel's interpreter is not the course's: packages may differ"
    return [Problem(what, "./course   # or: Kernel > Change Kernel, and pick the course's")]


def _prepare_torch() -> tuple[str, list[Problem]]:
    """Set one thread; describe torch and its device."""
    try:
        import torch
    except ImportError as error:
        what = f"torch does not import: {type(error).__name__}"
        return "no torch", [Problem(what, "python -m pip install torch")]
    torch.set_num_threads(1)
    device = _device_words(torch)
    return f"torch {torch.__version__} on {device}, one torch thread", []


def _device_words(torch: Any) -> str:
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name(0)})"
    if torch.backends.mps.is_available():
        return "cpu (mps is available)"
    return "cpu"


def _distribution_metadata() -> Any:
    try:
        return importlib.metadata.metadata(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return {}


def _specifier_allows(specifiers: str, version: str) -> bool:
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:  # requirement_problems reports that
        return True
    return SpecifierSet(specifiers).contains(version, prereleases=True)


# --- budgets -------------------------------------------------------------------------------


def budget(full: T, fast: T) -> T:
    """Pick the size of a run: full for readers, fast for the tests.

    Args:
        full: what the committed outputs are made with.
        fast: used when the variable PPO_LESSONS_FAST is set to 1, true, yes or on.

    Returns:
        One of the two.

    Raises:
        TypeError: if the two have different types.
        ValueError: if a number is not positive, fast exceeds full, or the variable holds
            another word.
    """
    if type(full) is not type(fast):
        raise TypeError(
            f"budget got full={full!r} and fast={fast!r}, of different types; give two of a kind"
        )
    if isinstance(full, (int, float)) and isinstance(fast, (int, float)) and not 0 < fast <= full:
        raise ValueError(f"budget got full={full!r}, fast={fast!r}; expected 0 < fast <= full")
    word = os.environ.get("PPO_LESSONS_FAST", "").strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError(
            f"PPO_LESSONS_FAST is {word!r}; expected 1 or 0: set it to 1 for fast budgets, "
            "or unset it"
        )
    return fast if word in TRUE_WORDS else full


def recorded(name: str) -> dict[str, Any]:
    """Read a study that was run once, over more seeds than a notebook has time for.

    Args:
        name: of a file in `ppo_lessons/recorded`, without its ending.

    Returns:
        Its contents; `command` makes it again, `date` and `machine` say when and where it was made.

    Raises:
        ValueError: if there is no such study, with those that there are.
    """
    folder = Path(__file__).parent / "recorded"
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.json")))
        raise ValueError(f"there is no recorded study {name!r}; expected one of: {known}")
    return json.loads(path.read_text(encoding="utf-8"))


# --- showing -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Source code that a notebook renders with highlighting.

    Args:
        code: the text of the code.
    """

    code: str

    def __repr__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.code}\n```"


def show_source(function: Callable[..., Any] | type) -> Source:
    """Show the code that runs, so that no notebook holds a copy of it.

    Args:
        function: a function or class of `ppo_lessons`.

    Returns:
        Its source; end the cell with it.

    Raises:
        TypeError: if it is no function or class.
        ValueError: if it is not the package's own, or its source cannot be found.
    """
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        raise TypeError(
            f"show_source got {type(function).__name__}; expected a function or a class, "
            "given without calling it: show_source(compute_gae)"
        )
    module = function.__module__
    if module.partition(".")[0] != __name__.partition(".")[0]:
        raise ValueError(
            f"show_source got {function.__qualname__} of {module}; expected code of ppo_lessons"
        )
    try:
        code = inspect.getsource(function)
    except OSError as error:
        raise ValueError(f"no source found for {function.__qualname__}: {error}") from error
    return Source(textwrap.dedent(code).rstrip())


@runtime_checkable
class SupportsSavefig(Protocol):
    """What `show` needs of a figure; a matplotlib `Figure` has it."""

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Write the figure to a file."""
        ...


def show(figure: SupportsSavefig, *, alt: str) -> None:
    """Display a figure as PNG, with the sentence that says what is to be seen on it.

    The sentence is the alternative text of the picture, and the text that the tests compare:
    keep numbers that depend on machine or budget out of it.

    Args:
        figure: a matplotlib `Figure`.
        alt: at least four words on what the picture shows, as for somebody who cannot see it.

    Raises:
        TypeError: if the first argument is no figure.
        ValueError: if the sentence is missing or too short.
    """
    if not isinstance(figure, SupportsSavefig):
        raise TypeError(f"show got {type(figure).__name__}; expected a matplotlib Figure")
    sentence = " ".join(alt.split())
    if len(sentence.split()) < 4:
        raise ValueError(
            f"alt is {alt!r}; expected a sentence of at least four words that says what the "
            "picture shows"
        )
    buffer = io.BytesIO()
    # Software=None: matplotlib would write its version into the file.
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    _close(figure)
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    _display_bundle(
        {"image/png": png, "text/plain": sentence}, metadata={"image/png": {"alt": sentence}}
    )


class Pace:
    """Say when a run that is watched is to be drawn again, and how fast it goes.

    Args:
        seconds: shortest time between two drawings.
        clock: gives the time in seconds.
    """

    def __init__(
        self, *, seconds: float = 0.1, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.seconds, self.clock = seconds, clock
        self.steps_per_second = 0.0
        self._rows: Any = None

    def due(self, state: Any) -> bool:
        """Whether it is time; the first and the last iteration of a run always are.

        Args:
            state: a `TrainState` at the end of an iteration.
        """
        now = self.clock()
        row = state.history.rows[-1]
        last = state.iteration >= state.config.num_iterations
        if state.history.rows is not self._rows:  # another run
            self._rows = state.history.rows
            self._began, self._first_step = now - row["seconds"], row["env_steps"]
            self._first_step -= state.config.batch_size
        elif now - self._drawn < self.seconds and not last:
            return False
        self._drawn = now
        self.steps_per_second = (row["env_steps"] - self._first_step) / max(now - self._began, 1e-9)
        return True


class Watch:
    """Show a run while it trains, in one line that moves: `train(config, on_iteration=Watch())`.

    The line is drawn at most ten times a second, so that watching costs nothing.

    Args:
        seconds: shortest time between two drawings.
    """

    def __init__(self, *, seconds: float = 0.1):
        self._pace = Pace(seconds=seconds)
        self._handle: Any = None

    def __call__(self, state: Any) -> None:
        """Draw the newest row of a run, a `TrainState`, if it is time."""
        if self._pace.due(state):
            self._draw(line_of(state, speed=self._pace.steps_per_second))

    def _draw(self, line: str) -> None:
        if not _in_notebook():
            print(line)
            self._handle = line
            return
        from IPython.display import display

        bundle = {
            "text/plain": line,
            "text/html": f'<pre style="font-family: monospace">{escape(line)}</pre>',
        }
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def line_of(state: Any, *, speed: float) -> str:
    """Say in one line where a `TrainState` stands, at so many environment steps per second."""
    total = state.config.num_iterations * state.config.batch_size
    return progress_line(state.history.rows[-1], total=total, speed=speed)


def progress_line(row: Mapping[str, Any], *, total: int, speed: float) -> str:
    """Say in one line where a run stands.

    Args:
        row: the newest row of its history.
        total: environment steps of the whole run.
        speed: environment steps per second so far.

    Returns:
        A bar, the share that is done, return, KL, speed and the time left.
    """
    share = row["env_steps"] / total
    full = round(24 * share)
    reward = "—" if row["episode_return"] is None else f"{row['episode_return']:.0f}"
    left = (total - row["env_steps"]) / max(speed, 1e-9)
    return (
        f"{'█' * full}{'░' * (24 - full)} {share:4.0%}   return {reward:>4}   "
        f"kl_k3 {row['kl_k3']:.4f}   {speed:,.0f} steps/s   {left:.0f} s left"
    )


def _close(figure: Any) -> None:
    """Keep the inline backend from drawing a second copy at the end of the cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _display(thing: object) -> None:
    if not _in_notebook():
        print(thing)
        return
    from IPython.display import display

    display(thing)


def _display_bundle(data: dict[str, str], *, metadata: dict[str, Any]) -> None:
    if not _in_notebook():
        print(data["text/plain"])
        return
    from IPython.display import display

    display(data, raw=True, metadata=metadata)
