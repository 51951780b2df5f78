"""Join the result files of one study from several machines: a class pools its seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppo_lessons.ablations.study import StudyResult

# What must be the same, and how a sentence calls it.
SAME = {
    "name": "name",
    "question": "question",
    "expectation": "expectation",
    "task": "task",
    "time_limit": "time limit",
    "env_steps": "points of the curves",
    "code": "version of the course's code",
}


def merge_studies(files: Sequence[str | Path | StudyResult]) -> StudyResult:
    """Pool the runs of one study that several machines have run, each with seeds of its own.

    Args:
        files: paths of JSON files, or results.

    Returns:
        One result with the runs of all; the machines stand in it, too.

    Raises:
        ValueError: if there is nothing to merge, a run stands in two files, or anything that the
            study says differs between them.
    """
    if not files:
        raise ValueError("there is no file to merge; expected at least one. Give their paths.")
    labels = [given.name if isinstance(given, StudyResult) else str(given) for given in files]
    results = [
        given if isinstance(given, StudyResult) else StudyResult.from_json(given) for given in files
    ]
    first = results[0]
    for label, result in zip(labels[1:], results[1:], strict=True):
        check_same_study(labels[0], first, label, result)
    check_no_run_twice(labels, results)
    return replace(
        first,
        runs=[run for result in results for run in result.runs],
        machines=[machine for result in results for machine in result.machines],
    )


def check_same_study(label: str, first: StudyResult, other: str, second: StudyResult) -> None:
    """Require that two files hold the same study, whatever their seeds.

    Raises:
        ValueError: with what differs.
    """
    for name, words in SAME.items():
        one, two = getattr(first, name), getattr(second, name)
        if one != two:
            refuse(
                f"{other} has the {words} {in_a_sentence(two)}, {label} has {in_a_sentence(one)}"
            )
    if first.settings != second.settings:
        refuse(
            f"{other} has the settings {', '.join(second.settings)}; {label} has "
            f"{', '.join(first.settings)}"
        )
    for one, two in zip(first.rows, second.rows, strict=True):
        for part in ("config", "parts"):
            changed = differences(one[part], two[part])
            if changed:
                refuse(f"the setting {one['name']!r} differs: {other} has {changed}")


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """Say which entries of the second differ from the first."""
    names = [name for name in {**one, **two} if one.get(name) != two.get(name)]
    return ", ".join(
        f"{n} = {in_a_sentence(two.get(n))} instead of {in_a_sentence(one.get(n))}" for n in names
    )


def in_a_sentence(value: Any) -> str:
    """A value, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def refuse(reason: str) -> None:
    """Say why two files are not joined.

    Raises:
        ValueError: always.
    """
    raise ValueError(
        f"{reason}; expected one study on all machines. Run the same study with the same version "
        "of the course, and merge those files."
    )


def check_no_run_twice(labels: Sequence[str], results: Sequence[StudyResult]) -> None:
    """Require that no setting has the same seed twice: the same draw must not count twice.

    Raises:
        ValueError: with the first such run and the two files.
    """
    met: dict[tuple[str, int], str] = {}
    for label, result in zip(labels, results, strict=True):
        for run in result.runs:
            where = met.get((run.setting, run.seed))
            if where is not None:
                raise ValueError(
                    f"{run.setting!r} with seed {run.seed} stands in {where} and in {label}; "
                    "expected every run once, since the same draw would count twice. Give each "
                    "machine seeds of its own: --seeds 1-16, --seeds 17-32."
                )
            met[run.setting, run.seed] = label
