"""What did the reader expect, answer and pass?

`predict` keeps a guess, `compare` puts it beside the measurement, `quiz` asks. Each returns a
small object whose text is the same in every run: what an earlier session left in the store
never shows in a notebook. Only `summary` reads it.

The store is `$PPO_LESSONS_HOME/progress.json`. Without that variable everything stays in memory
and is gone with the kernel.
"""

import contextlib
import json
import math
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

from ppo_lessons.lessons import LESSONS
from ppo_lessons.quizzes import Quiz, all_quizzes, check_id

SCHEMA_VERSION = 1
SECTIONS = ("predictions", "quizzes", "checks")
WIDTH = 79  # columns; longer sentences are wrapped


@runtime_checkable
class SupportsItem(Protocol):
    """A tensor or an array that holds one number."""

    def item(self) -> Any:
        """Return that number."""
        ...


Number = float | int
Value = Number | bool | str
Entries = dict[str, dict[str, Any]]

# What happened in this kernel, by section and id.
_session: Entries = {section: {} for section in SECTIONS}


# --- results -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A prediction that was kept.

    Args:
        id: `lesson.item`.
        value: the guess; None while there is none.
        unit: what the number counts.
    """

    id: str
    value: Value | None
    unit: str = ""

    def __repr__(self) -> str:
        if self.value is None:
            return f"{self.id}: no guess yet. Replace None by yours and run the cell again."
        return f"kept: {self.id} = {_with_unit(_plain(self.value), self.unit)}"


@dataclass(frozen=True)
class Comparison:
    """A prediction beside the measured value.

    Args:
        id: `lesson.item`.
        predicted: the guess; None if there was none.
        measured: what came out.
        unit: what both count.
        digits: significant digits shown.
    """

    id: str
    predicted: Value | None
    measured: Value
    unit: str = ""
    digits: int = 3

    def __repr__(self) -> str:
        measured = _with_unit(self._show(self.measured), self.unit)
        if self.predicted is None:
            return f"{self.id}: measured {measured}; you made no prediction."
        predicted = _with_unit(self._show(self.predicted), self.unit)
        lines = (f"{self.id}: you said {predicted}, measured {measured}.", self.gap())
        return "\n".join(_wrapped(line) for line in lines)

    def gap(self) -> str:
        """Describe in a sentence how the measurement differs from the prediction."""
        said, seen = self.predicted, self.measured
        if isinstance(said, str) and _is_number(seen):
            return _no_number(said)
        if not (_is_number(said) and _is_number(seen)):
            return "The two agree." if said == seen else "The two differ."
        if self._show(said) == self._show(seen):
            return f"The two agree to {self.digits} digits."
        distance = abs(seen - said)
        if not math.isfinite(distance):
            return "The two differ."
        words = f"The measurement is {'higher' if seen > said else 'lower'} by "
        ratio = _ratio_words(said, seen)
        return f"{words}{self._show(distance)}{f': {ratio}' if ratio else ''}."

    def _show(self, value: Value) -> str:
        return significant(value, digits=self.digits) if _is_number(value) else _plain(value)


@dataclass(frozen=True)
class Question:
    """A quiz that waits for an answer.

    Args:
        quiz: the question and its options.
    """

    quiz: Quiz

    def __repr__(self) -> str:
        options = [f"  {letter}) {text}" for letter, (text, _, _) in self.quiz.options.items()]
        call = f'Answer with quiz("{self.quiz.id}", "{next(iter(self.quiz.options))}"), or another.'
        return "\n".join([self.quiz.question, *options, call])

    def _repr_markdown_(self) -> str:
        options = [f"- **{letter})** {text}" for letter, (text, _, _) in self.quiz.options.items()]
        letter = next(iter(self.quiz.options))
        call = f'Answer with `quiz("{self.quiz.id}", "{letter}")`, or another letter.'
        return "\n".join([f"**{self.quiz.question}**", "", *options, "", call])


@dataclass(frozen=True)
class Answer:
    """The answer to a quiz, with the explanation of the option chosen.

    Args:
        quiz: the question and its options.
        letter: the option chosen.
    """

    quiz: Quiz
    letter: str

    @property
    def right(self) -> bool:
        """Whether it is the right option."""
        return self.quiz.options[self.letter][2]

    def _words(self) -> tuple[str, str, str]:
        text, explanation, right = self.quiz.options[self.letter]
        return ("✔ right" if right else "✘ not yet"), text, explanation

    def __repr__(self) -> str:
        verdict, text, explanation = self._words()
        return f"{verdict}: {self.letter}) {text}\n{explanation}"

    def _repr_markdown_(self) -> str:
        verdict, text, explanation = self._words()
        return f"**{verdict}**: {self.letter}) {text}\n\n{explanation}"


@dataclass(frozen=True)
class Summary:
    """How far the reader is, by lesson.

    Args:
        rows: for each lesson with entries: name, predictions made, quizzes answered right,
            quizzes in the lesson, checks passed.
    """

    rows: tuple[tuple[str, int, int, int, int], ...]

    def __repr__(self) -> str:
        if not self.rows:
            return "nothing kept yet"
        return "\n".join(
            f"{name}: {predictions} predictions, {right} of {total} quizzes right, "
            f"{checks} checks passed"
            for name, predictions, right, total, checks in self.rows
        )

    def _repr_markdown_(self) -> str:
        if not self.rows:
            return repr(self)
        lines = ["| lesson | predictions | quizzes right | checks passed |"]
        lines.append("| --- | ---: | ---: | ---: |")
        for name, predictions, right, total, checks in self.rows:
            lines.append(f"| {name} | {predictions} | {right} of {total} | {checks} |")
        return "\n".join(lines)


@dataclass(frozen=True)
class Forgotten:
    """An id whose entries are gone.

    Args:
        id: `lesson.item`.
    """

    id: str

    def __repr__(self) -> str:
        return f"forgotten: {self.id}"


# --- what notebooks call -------------------------------------------------------------------


def predict(id: str, value: Value | SupportsItem | None, *, unit: str = "") -> Kept:
    """Keep the reader's guess before the measurement is made.

    Args:
        id: `lesson.item`, as in "clip.ratio".
        value: a number up to 1.8e308, a tensor of one, a word or True/False; None while there
            is no guess.
        unit: what the number counts, as in "steps".

    Returns:
        What was kept; end the cell with it.

    Raises:
        ValueError: if the id names no lesson, or the number is too large.
        TypeError: if the value is of another type.
    """
    kept = Kept(check_id(id), None if value is None else _as_value(value), unit)
    _session["predictions"][id] = {"value": kept.value, "unit": unit}
    if kept.value is not None:
        _write("predictions", id, {"value": kept.value, "unit": unit})
    return kept


def compare(
    id: str, measured: Value | SupportsItem, *, unit: str = "", digits: int = 3
) -> Comparison:
    """Put the reader's guess beside the measurement, without judging.

    A guess counts in the kernel in which it was made. One that an earlier session left in the
    store is never used: after a restart, run the cell with the guess again.

    Args:
        id: the id given to `predict`.
        measured: a number, a tensor of one, a word or True/False.
        unit: what the number counts; by default the unit given to `predict`.
        digits: significant digits shown, at most 4.

    Returns:
        The two and their gap in words; end the cell with it.

    Raises:
        ValueError: if the id names no lesson, digits leaves 1 to 4, or the number is too large.
        TypeError: if the measurement is of another type.
    """
    if not 1 <= digits <= 4:
        raise ValueError(f"digits is {digits}; expected 1 to 4")
    check_id(id)
    entry = _session["predictions"].get(id, {})
    unit = unit or entry.get("unit", "")
    return Comparison(id, entry.get("value"), _as_value(measured), unit, digits)


def quiz(id: str, answer: str | None = None) -> Question | Answer:
    """Ask a question, or judge the answer to it.

    Args:
        id: the quiz, as in "clip.upper_edge".
        answer: the letter of an option; None to see the question.

    Returns:
        The question with its options, or the verdict and why; end the cell with it.

    Raises:
        ValueError: if there is no such quiz or no such option.
    """
    quizzes = all_quizzes()
    if id not in quizzes:
        lesson = check_id(id).partition(".")[0]
        known = [known for known in quizzes if known.startswith(f"{lesson}.")]
        raise ValueError(f"no quiz {id!r}; the quizzes of {lesson} are {known}")
    if answer is None:
        return Question(quizzes[id])
    return answer_quiz(quizzes[id], answer)


def answer_quiz(item: Quiz, answer: str) -> Answer:
    """Judge an answer and keep it.

    Args:
        item: the quiz.
        answer: the letter of an option, in either case.

    Returns:
        The verdict and why.

    Raises:
        ValueError: if there is no such option.
    """
    letter = answer.strip().lower() if isinstance(answer, str) else answer
    if letter not in item.options:
        raise ValueError(
            f"quiz {item.id} got the answer {answer!r}; expected one of {', '.join(item.options)}"
        )
    result = Answer(item, letter)
    entry = {"answer": letter, "right": result.right}
    _session["quizzes"][item.id] = entry
    _write("quizzes", item.id, entry)
    return result


def pass_check(id: str) -> None:
    """Keep that an exercise's check passed.

    Args:
        id: `lesson.exercise`.

    Raises:
        ValueError: if the id names no lesson.
    """
    _session["checks"][check_id(id)] = {"passed": True}
    _write("checks", id, {"passed": True})


def reset(id: str) -> Forgotten:
    """Forget the prediction, the answer and the passed check under an id.

    Args:
        id: `lesson.item`.

    Returns:
        The id.

    Raises:
        ValueError: if the id names no lesson.
    """
    check_id(id)

    def forget(entries: Entries) -> None:
        for section in SECTIONS:
            entries[section].pop(id, None)

    forget(_session)
    _change(forget)
    return Forgotten(id)


def summary() -> Summary:
    """Count what was predicted, answered and passed, by lesson.

    Its text depends on the store: a notebook that shows it marks the cell NBVAL_IGNORE_OUTPUT.

    Returns:
        The counts, in the order of the lessons; lessons without entries are left out.
    """
    stored, quizzes = _read(), all_quizzes()
    entries = {section: {**stored[section], **_session[section]} for section in SECTIONS}

    def count(lesson: str, section: str, key: str) -> int:
        items = entries[section].items()
        prefix = f"{lesson}."
        # a guess of 0 or False is a guess; a quiz or check counts once it is right
        mine = [entry[key] for id, entry in items if id.startswith(prefix)]
        return sum(value is not None if key == "value" else value is True for value in mine)

    rows = []
    for lesson in (each.name for each in LESSONS):
        total = sum(item.lesson == lesson for item in quizzes.values())
        predictions = count(lesson, "predictions", "value")
        right, checks = count(lesson, "quizzes", "right"), count(lesson, "checks", "passed")
        if any(id.startswith(f"{lesson}.") for section in entries.values() for id in section):
            rows.append((lesson, predictions, right, total, checks))
    return Summary(tuple(rows))


# --- numbers in words ----------------------------------------------------------------------


def significant(value: Number, *, digits: int) -> str:
    """Write a number with so many significant digits; up to 1e15 its whole part stays whole.

    Args:
        value: the number.
        digits: significant digits, at least 1.

    Returns:
        Text such as "0.808", "466", "1234" or "1.2e-07".
    """
    if abs(value) < 1e15 and isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        exponent = math.floor(math.log10(abs(value))) if value else 0
        text = f"{value:.{max(0, digits - 1 - exponent)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    return f"{value:.{digits - 1}e}"


def _ratio_words(said: Number, seen: Number) -> str:
    """Name the factor when it is at least two; signs and zeros have none."""
    if (said > 0) != (seen > 0) or 0 in (said, seen):
        return ""
    small, large = sorted((abs(said), abs(seen)))
    try:
        factor = large / small
    except OverflowError:  # two whole numbers
        return ""
    if factor < 2 or math.isinf(factor):
        return ""
    number = significant(factor, digits=2)
    if abs(seen) > abs(said):
        return f"it is {number} times your guess"
    return f"your guess is {number} times as large"


def _no_number(said: str) -> str:
    """Explain why a word has no gap to a number."""
    try:
        float(said)
    except ValueError:
        return "Your guess is no number, so nothing is compared."
    return "Your guess is a text, so nothing is compared. Write it without quotation marks."


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, WIDTH, break_long_words=False, break_on_hyphens=False)


def _plain(value: Value) -> str:
    if _is_number(value):
        return str(value) if abs(value) < 1e15 else significant(value, digits=3)
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")  # half a character


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def _is_number(value: Any) -> TypeGuard[Number]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_value(value: Any) -> Value:
    """Turn a tensor or array scalar into a number; refuse what the store cannot hold."""
    if not isinstance(value, (bool, int, float, str)) and isinstance(value, SupportsItem):
        value = value.item()
    # Subclasses such as numpy.float64 are turned into the plain type: their repr differs.
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return _checked_size(kind(value))
    raise TypeError(
        f"got a {type(value).__name__}; expected a number, a word, True or False (None: no guess)"
    )


def _checked_size(value: Value) -> Value:
    """Refuse a whole number that no float can hold: it could be neither compared nor stored."""
    try:
        if not isinstance(value, str):
            float(value)
    except OverflowError:
        raise ValueError("got a number too large to compare; expected at most 1.8e308") from None
    return value


# --- the store -----------------------------------------------------------------------------


def store_path() -> Path | None:
    """Say where entries are kept.

    Returns:
        The file, or None when PPO_LESSONS_HOME is not set.
    """
    home = os.environ.get("PPO_LESSONS_HOME")
    return Path(home) / "progress.json" if home else None


def _empty() -> Entries:
    return {section: {} for section in SECTIONS}


def _read() -> Entries:
    path = store_path()
    if path is None or not path.exists():
        return _empty()
    try:
        with _locked(path):
            return _load(path)
    except OSError as error:
        print(f"{path.name} cannot be read ({error.strerror})")
        return _empty()


def _write(section: str, id: str, entry: dict[str, Any]) -> None:
    def insert(entries: Entries) -> None:
        entries[section][id] = entry

    _change(insert)


def _change(edit: Callable[[Entries], None]) -> None:
    """Read, edit and replace the file under a lock, so that two kernels lose nothing."""
    path = store_path()
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            entries = _load(path)
            edit(entries)
            _replace(path, json.dumps({"version": SCHEMA_VERSION, **entries}, indent=1))
    except OSError as error:
        print(f"progress is kept in memory only: {path.name} cannot be written ({error.strerror})")


def _load(path: Path) -> Entries:
    """Read the file; move it aside, never delete it, when it is damaged or of another schema."""
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _empty()
    except ValueError as error:
        aside = _free_name(path)
        path.replace(aside)
        print(f"{path.name} could not be read ({error}); moved to {aside.name}, starting afresh")
        return _empty()


def _parse(text: str) -> Entries:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at line {error.lineno}") from error
    except RecursionError:
        raise ValueError("no JSON that could be ours: it is nested too deeply") from None
    if not isinstance(data, dict) or data.get("version") != SCHEMA_VERSION:
        raise ValueError(f"no schema version {SCHEMA_VERSION}")
    keys = {"predictions": "value", "quizzes": "right", "checks": "passed"}
    for section, key in keys.items():
        entries = data.get(section)
        if not isinstance(entries, dict) or not all(_has(each, key) for each in entries.values()):
            raise ValueError(f"section {section} is malformed")
    return {section: data[section] for section in SECTIONS}


def _has(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and key in entry


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    return aside


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, no path
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside the store; where there can be no lock, go on without."""
    try:
        file = path.with_name(f".{path.stem}.lock").open("a+b")
    except OSError:  # a folder that is only read
        yield
        return
    with file:
        unlock = _lock(file)
        try:
            yield
        finally:
            unlock()


def _lock(file: Any) -> Callable[[], None]:
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        return lambda: None
    return lambda: fcntl.flock(file, fcntl.LOCK_UN)


def _lock_windows(file: Any) -> Callable[[], None]:
    import msvcrt

    def lock(mode: int) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), mode, 1)  # pyright: ignore[reportAttributeAccessIssue]

    try:
        lock(msvcrt.LK_LOCK)  # pyright: ignore[reportAttributeAccessIssue]
    except OSError:
        return lambda: None
    return lambda: lock(msvcrt.LK_UNLCK)  # pyright: ignore[reportAttributeAccessIssue]
