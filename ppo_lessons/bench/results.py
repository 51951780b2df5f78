"""From readings to medians, ratios and the JSON that is kept.

{"kind", "schema", "date", "command", "commit", "quick", "rounds", "complete", "quotable",
 "machine": {..., "load_before", "load_after"}, "peers": {name: version or how to get it},
 "sections": {name: {"title", "unit", "notes", "readings", "medians", "ratios", "not_measured"}}}
"""

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ppo_lessons.bench.measure import ROOT, core
from ppo_lessons.bench.sections import Comparison, Section

SCHEMA = 1
ROUNDS = 3  # fewer are not quoted
QUIET = 0.5  # load for each core above which a warning is given
Reading = dict[str, Any]


class Results:
    """What was measured so far, and where it is kept.

    Args:
        path: of the JSON; it is whole after each reading.
        command: what makes it again, without paths.
        quick: whether runs are too short to be quoted.
        rounds: how often each contender is to run.
    """

    def __init__(self, path: Path, *, command: str, quick: bool, rounds: int):
        self.path = path
        self.quick = quick
        self.rounds = rounds
        self.complete = False
        self.sections: dict[str, Section] = {}
        self.readings: dict[str, dict[str, list[Reading]]] = {}
        self.not_measured: dict[str, dict[str, str]] = {}
        self.peers: dict[str, str] = {}
        self.command = command
        self.began = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        self.machine: dict[str, Any] = machine()

    def begin(self, section: Section) -> None:
        """Make room for a section."""
        self.sections[section.name] = section
        self.readings[section.name] = {}
        self.not_measured[section.name] = {}

    def add(self, section: Section, contender: str, reading: Reading) -> None:
        """Take a reading, and write everything down."""
        self.peers |= reading.pop("versions", {})
        self.readings[section.name].setdefault(contender, []).append(reading)
        self.write()

    def leave_out(self, section: Section, contender: str, reason: str) -> None:
        """Say why a contender was not measured."""
        self.not_measured[section.name][contender] = reason
        self.write()

    def finish(self, *, complete: bool) -> None:
        """Write the last state."""
        self.complete = complete
        self.machine["load_after"] = load()
        self.write()

    def write(self) -> None:
        """Write the JSON, whole or not at all."""
        from ppo_lessons.runs import write_json

        write_json(self.path, self.content())

    def content(self) -> dict[str, Any]:
        """All of it, as it is kept."""
        return {
            "kind": "ppo-lessons bench",
            "schema": SCHEMA,
            "date": self.began,
            "command": self.command,
            "commit": self.machine["commit"],
            "quick": self.quick,
            "rounds": self.rounds,
            "complete": self.complete,
            "not_to_be_quoted_because": self.doubts(),
            "machine": {name: value for name, value in self.machine.items() if name != "commit"},
            "peers": self.peers,
            "sections": {name: self.summary(section) for name, section in self.sections.items()},
        }

    def summary(self, section: Section) -> dict[str, Any]:
        """One section as it is kept."""
        readings = self.readings[section.name]
        return {
            "title": section.title,
            "unit": section.unit,
            "notes": list(section.notes),
            "medians": {name: medians(section, rows) for name, rows in readings.items()},
            "ratios": [
                row for each in section.comparisons if (row := ratio(section, each, readings))
            ],
            "not_measured": self.not_measured[section.name],
            "readings": readings,
        }

    def doubts(self) -> list[str]:
        """Why nobody should quote these numbers; empty if one may."""
        found = []
        if self.quick:
            found.append("--quick runs are too short")
        if not self.quick and self.rounds < ROUNDS:
            found.append(f"{self.rounds} rounds are fewer than {ROUNDS}")
        if not self.complete:
            found.append("the run was not finished")
        if warning := busy(self.machine):
            found.append(warning)
        return found


def machine() -> dict[str, Any]:
    """What runs here: processor, versions, load, commit."""
    from ppo_lessons.runs import versions

    return {
        **versions(),
        "cores": os.cpu_count(),
        "pinned_to_core": core(),
        "threads": 1,
        "load_before": load(),
        "load_after": None,
        "commit": commit(),
    }


def load() -> int | float | None:
    """Mean number of processes that wanted to run in the last minute; None where nobody counts."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def busy(about: dict[str, Any]) -> str:
    """Say so if the machine had other work when the run began."""
    before, cores = about["load_before"], about["cores"] or 1
    if before is None or before <= QUIET * cores:
        return ""
    return f"the load was {before} on {cores} cores before it began"


def commit() -> str | None:
    """The commit that is measured, with "+" if the package differs from it; None without git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "ppo_lessons")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def rate(section: Section, reading: Reading) -> int | float:
    """Environment steps per second of the section's clock."""
    return reading["env_steps"] / reading[section.clock]


def medians(section: Section, rows: Sequence[Reading]) -> dict[str, Any]:
    """Medians over rounds, with the extremes of what counts.

    Args:
        section: which seconds count, and whether it is a race.
        rows: readings of one contender.

    Returns:
        Of a race: seconds, steps, and how many seeds solved it; else the rate. And memory.
    """
    if section.race:
        solved = [row for row in rows if row["solved"]]
        of = [row[section.clock] for row in solved]
        steps = [row["env_steps"] for row in solved]
        found: dict[str, Any] = {
            "solved": len(solved),
            "seeds": len(rows),
            "env_steps": statistics.median(steps) if steps else None,
        }
    else:
        of, found = [rate(section, row) for row in rows], {}
    peaks = [row["peak_mib"] for row in rows if row["peak_mib"] is not None]
    return {
        "median": number(statistics.median(of)) if of else None,
        "lowest": number(min(of)) if of else None,
        "highest": number(max(of)) if of else None,
        **found,
        "peak_mib": round(statistics.median(peaks), 1) if peaks else None,
    }


def number(value: int | float) -> int | float:
    """Whole from 100 on, else three digits."""
    return round(value) if value >= 100 else float(f"{value:.3g}")


def ratio(
    section: Section, comparison: Comparison, readings: dict[str, list[Reading]]
) -> dict[str, Any] | None:
    """Compare ours with the best of the peers.

    Speed and memory are compared round by round, so that a machine that slows down hurts both; of
    the ratios of all rounds the median is given. Races are compared by the medians over seeds.

    Args:
        section: which seconds count.
        comparison: what is compared.
        readings: of each contender, by round.

    Returns:
        The row, or None while one side was not measured.
    """
    ours = readings.get(comparison.ours, [])
    peers = [readings[name] for name in comparison.peers if readings.get(name)]
    if not ours or not peers:
        return None
    if comparison.quantity == "seconds":
        found = race_ratio(section, ours, peers)
    elif comparison.quantity == "memory":
        found = [
            row["peak_mib"] / min(peer["peak_mib"] for peer in turn)
            for row, *turn in zip(ours, *peers, strict=False)
            if row["peak_mib"] is not None
        ]
    else:
        found = [
            rate(section, row) / max(rate(section, peer) for peer in turn)
            for row, *turn in zip(ours, *peers, strict=False)
        ]
    if not found:
        return None
    median = statistics.median(found)
    return {
        "name": comparison.name,
        "quantity": comparison.quantity,
        "median": float(f"{median:.3g}"),
        "lowest": float(f"{min(found):.3g}"),
        "highest": float(f"{max(found):.3g}"),
        "target": comparison.target,
        "floor": comparison.floor,
        "reached": reached(comparison, median),
    }


def race_ratio(
    section: Section, ours: Sequence[Reading], peers: Sequence[Sequence[Reading]]
) -> list[int | float]:
    """How many times sooner the median seed of ours is there than that of the best peer."""
    if not all_solved(ours):
        return []
    best = [
        statistics.median(row[section.clock] for row in rows) for rows in peers if all_solved(rows)
    ]
    own = statistics.median(row[section.clock] for row in ours)
    return [min(best) / own] if best else []


def all_solved(rows: Sequence[Reading]) -> bool:
    """Whether each of some runs, at least one, got there."""
    return bool(rows) and all(row["solved"] for row in rows)


def reached(comparison: Comparison, median: int | float) -> str | None:
    """Say what a ratio reaches: "target", "floor" or "below the floor"; None without a goal."""
    if comparison.target is None or comparison.floor is None:
        return None
    sign = -1 if comparison.quantity == "memory" else 1  # of memory, less is better
    if sign * median >= sign * comparison.target:
        return "target"
    return "floor" if sign * median >= sign * comparison.floor else "below the floor"
