"""`ppo-lessons bench`: run everything in turn, keep what was measured, print the tables."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppo_lessons.bench.measure import Failed, Missing, Run, measure
from ppo_lessons.bench.results import ROUNDS, Results, busy, rate
from ppo_lessons.bench.sections import PEERS, SEEDS, Contender, Places, Section, sections
from ppo_lessons.bench.table import tables, written

PROGRAM = f"{os.environ.get('PPO_LESSONS_CALL', 'ppo-lessons')} bench"
NAMES = ("train", "solve", "replicas", "envs", "gae", "gpu")
Measure = Callable[[Run], dict[str, Any]]


def main(rest: Sequence[str], *, measure: Measure = measure) -> int:
    """Measure what the command line says.

    Args:
        rest: the command line behind `bench`.
        measure: carries a run out; tests pass one that is not real.

    Returns:
        0 if all went well, 1 if a run broke off, 130 after Ctrl-C.

    Raises:
        ValueError: if a path or a number is not what was expected.
    """
    given = parse(rest)
    places = find_places(given)
    chosen = [each for each in sections(places) if wanted(each, given)]
    results = Results(
        free_path(given.out), command=command(given), quick=given.quick, rounds=given.rounds
    )
    results.write()  # a place that cannot be written to is noticed now, not in ten minutes
    warn(results)
    failed, interrupted = False, False
    try:
        for section in chosen:
            failed |= run_section(section, results, places=places, measure=measure)
    except KeyboardInterrupt:
        interrupted = True
    results.finish(complete=not interrupted)
    print()
    print(tables(results.content()))
    print(f"{'stopped; what was measured is' if interrupted else 'written'} in {results.path}")
    return 130 if interrupted else int(failed)


def parse(rest: Sequence[str]) -> argparse.Namespace:
    """Read the command line, and check what needs no file.

    Raises:
        ValueError: if there are no rounds.
    """
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Ours and its peers in turn, each run in a process of its own on one pinned "
        "thread; prints ratios and writes them as JSON. All of it takes about ten minutes.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short round in under a minute, to see it work"
    )
    parser.add_argument(
        "--rounds", type=int, default=None, help=f"how often each runs ({ROUNDS}; races: {SEEDS})"
    )
    parser.add_argument("--cleanrl", type=Path, help="CleanRL's ppo.py, or its repository")
    parser.add_argument("--purejaxrl", type=Path, help="the repository of PureJaxRL")
    parser.add_argument("--python", type=Path, help="the Python that PureJaxRL is installed for")
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="SECTION", help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--out", type=Path, help="the JSON, overwritten; a new bench.json if left out"
    )
    given = parser.parse_args(list(rest))
    if given.rounds is None:
        given.rounds = 1 if given.quick else ROUNDS
    if given.rounds < 1:
        raise ValueError(
            f"--rounds is {given.rounds}; expected at least 1. Choose --rounds {ROUNDS}."
        )
    return given


def wanted(section: Section, given: argparse.Namespace) -> bool:
    """Whether a section is asked for; a quick run of all leaves races and what is not here out."""
    if given.only:
        return section.name in given.only
    return not (given.quick and section.race)


def find_places(given: argparse.Namespace) -> Places:
    """Find the files of peers that are given by path.

    Raises:
        ValueError: if a file is not there, with what was looked for.
    """
    if (given.purejaxrl is None) != (given.python is None):
        missing = "--python" if given.python is None else "--purejaxrl"
        raise ValueError(
            f"{missing} is missing; expected both, since PureJaxRL runs in an environment of its "
            "own. Give --purejaxrl PATH --python ITS_PYTHON."
        )
    return Places(
        cleanrl=find("--cleanrl", given.cleanrl, ("", "ppo.py", "cleanrl/ppo.py")),
        purejaxrl=find_package(given.purejaxrl),
        python=find("--python", given.python, ("", "bin/python", "Scripts/python.exe")),
    )


def find(option: str, given: Path | None, inside: Sequence[str]) -> Path | None:
    """Find the first of some files below a given path.

    Raises:
        ValueError: if none is there.
    """
    if given is None:
        return None
    for name in inside:
        path = Path(os.path.abspath(given / name))  # noqa: PTH100  (a link to Python must stay one)
        if path.is_file():
            return path
    named = [name for name in inside if name]
    raise ValueError(
        f"{option} is {given}, which is no file; expected a file, or a folder with "
        f"{' or '.join(named)}. Correct the path."
    )


def find_package(given: Path | None) -> Path | None:
    """Find the folder that holds `purejaxrl/ppo.py`; the package itself or its ppo.py will do too.

    Raises:
        ValueError: if it is not there.
    """
    if given is None:
        return None
    for folder in (given, given.parent, given.parent.parent):
        if (folder / "purejaxrl" / "ppo.py").is_file():
            return folder.resolve()
    raise ValueError(
        f"--purejaxrl is {given}; expected a folder that holds purejaxrl/ppo.py. Give the path of "
        "its repository."
    )


def free_path(given: Path | None) -> Path:
    """Where the JSON goes; without a wish no file is overwritten.

    Raises:
        ValueError: if the folder is not there.
    """
    if given is None:
        from ppo_lessons.runs import unused

        return unused(Path("bench.json"))
    if given.is_dir() or not given.absolute().parent.is_dir():
        raise ValueError(
            f"--out is {given}; expected a file in a folder that exists. Make the folder, or name "
            "a file."
        )
    return given


def command(given: argparse.Namespace) -> str:
    """What makes the result again, with words for paths: they are nobody's business."""
    words = ["ppo-lessons bench", *(["--quick"] if given.quick else [])]
    words += [f"--rounds {given.rounds}"]
    words += ["--cleanrl PATH"] if given.cleanrl else []
    words += ["--purejaxrl PATH --python PATH"] if given.purejaxrl else []
    words += [f"--only {' '.join(given.only)}"] if given.only else []
    return " ".join(words)


def warn(results: Results) -> None:
    """Say at the start what will make the numbers worth less."""
    if results.quick:
        print("a quick run: long enough to see it work, too short to quote")
    if reason := busy(results.machine):
        print(f"warning: {reason}; ratios of a busy machine are not to be quoted", file=sys.stderr)


def run_section(section: Section, results: Results, *, places: Places, measure: Measure) -> bool:
    """Let the contenders of a section take turns.

    Args:
        section: what is measured.
        results: where readings go.
        places: of the peers.
        measure: carries a run out.

    Returns:
        Whether a run broke off.
    """
    results.begin(section)
    if section.gpu and not gpu_there():
        results.leave_out(section, "GPU", "no GPU here")
        return False
    contenders = list(in_the_race(section, results, places=places))
    rounds = (
        (1 if results.quick else max(SEEDS, results.rounds)) if section.race else results.rounds
    )
    failed = False
    for number in range(1, rounds + 1):
        for contender in list(contenders):
            try:
                reading = measure(turn(contender, number, quick=results.quick))
            except Missing as error:
                _, how = PEERS.get(contender.peer, ("", "install it"))
                results.leave_out(section, contender.name, f"{error} is not installed: {how}")
                contenders.remove(contender)
            except Failed as error:
                results.leave_out(section, contender.name, f"broke off in round {number}: {error}")
                contenders.remove(contender)
                failed = True
            else:
                print(progress(section, contender, reading, f"{number}/{rounds}"), flush=True)
                results.add(section, contender.name, reading)
    return failed


def in_the_race(section: Section, results: Results, *, places: Places) -> Sequence[Contender]:
    """Those that can be tried; the others are left out with a reason."""
    found = []
    for contender in section.contenders:
        if not places.has(contender.peer):
            results.leave_out(section, contender.name, f"not given: {PEERS[contender.peer][1]}")
        elif not results.quick or contender.quick is not None or section.race:
            found.append(contender)
    return found


def turn(contender: Contender, number: int, *, quick: bool) -> Run:
    """The run of one round."""
    options = contender.run.options | ((contender.quick or {}) if quick else {})
    options |= {"seed": number} if contender.seeded else {}
    return replace(contender.run, options=options)


def progress(section: Section, contender: Contender, reading: dict[str, Any], turn: str) -> str:
    """One line while it runs."""
    if section.race:
        result = "not solved" if not reading["solved"] else f"{reading[section.clock]:.2f}"
        result += f" {section.unit}, {reading['env_steps']:,} steps"
    else:
        result = f"{written(rate(section, reading))} {section.unit}"
    return f"{section.name:5} {turn:>4}  {contender.name:30} {result}"


def gpu_there() -> bool:
    """Whether torch finds a GPU of NVIDIA's."""
    import torch

    return torch.cuda.is_available()
