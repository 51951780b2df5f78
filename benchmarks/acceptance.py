"""What the lessons on language models must reach, beside what was measured, on three seeds.

    python -m benchmarks.acceptance           # runs what is missing of four studies, then the table
    python -m benchmarks.acceptance --table   # the table alone

Most bars stood before the studies were run: they are those of a smaller prototype, with slack.
Those that were set with the numbers at hand are marked as `own`. A bar that is missed is not moved;
it stands in the table as missed. One setting is not the prototype's: the rows on 4x4 steps stand at
a learning rate of 0.002. At its 0.001 runs end at 0.80, 0.72, 0.73 with the clip and at 0.31, 0.44,
0.27 without, where the bar is 0.10.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.record import RESULTS, write_result
from benchmarks.variants import MIDDLE, TUNED

STUDIES = ("rlhf", "variants", "staleness", "evidence")
COMMAND = "python -m benchmarks.acceptance"
SEEDS = ("0", "1", "2")
GATE = "64 labels of accuracy 0.85, with the limit"
# claims of `benchmarks.rlhf` whose bars the prototype did not have
OWN = (
    "beta 0.3 without clip: success ends at 0.60 or more",
    "adaptive beta: the KL ends within a third of its target, 1 nat",
    "4x4 steps, beta 0.3 with clip: success ends at 0.30 or more",
    "4x4 steps, beta 0.3 without clip: success ends at 0.10 or less",
)
Row = dict[str, Any]


def row(
    lesson: int,
    claim: str,
    numbers: list[float],
    holds: Callable[[float], bool],
    *,
    own: bool = False,
) -> Row:
    """Write one row of the table.

    Args:
        lesson: whose it is.
        claim: what must hold, with its bar.
        numbers: of each seed.
        holds: whether one of them meets the bar.
        own: whether the bar was set with the numbers at hand.

    Returns:
        The row; `holds` is true if every seed meets it.
    """
    return {
        "lesson": lesson,
        "claim": claim,
        "by_seed": numbers,
        "holds": all(map(holds, numbers)),
        "own": own,
    }


def ordered(lesson: int, claim: str, columns: list[list[float]]) -> Row:
    """Write a row about an order: on each seed every number is above the one before it."""
    triples = list(zip(*columns, strict=True))
    return {
        "lesson": lesson,
        "claim": claim,
        "by_seed": [list(numbers) for numbers in triples],
        "holds": all(list(numbers) == sorted(set(numbers)) for numbers in triples),
        "own": False,
    }


def cost(lesson: int, what: str, most: int, runs: list[list[Any]]) -> Row:
    """Write a row about CPU seconds, added up over the runs of each seed."""
    seconds = [round(float(sum(run["cpu_seconds"] for run in some)), 1) for some in runs]
    return row(lesson, f"{what}: {most} CPU seconds or less", seconds, lambda x: x <= most)


def of_rlhf(found: Mapping[str, Any]) -> Iterator[Row]:
    """Rows of lessons 13 and 14: the study writes them itself."""
    for place, each in enumerate(found["acceptance"]):
        yield {"lesson": 13 if place < 2 else 14, **each, "own": each["claim"] in OWN}
    starts, runs = found["starts"], found["runs"]
    prices = ("beta 0", "beta 0.1", "beta 0.3")
    spent = [[starts[seed], *(runs[name][seed] for name in prices)] for seed in SEEDS]
    yield cost(14, "reference, judge and runs at beta 0, 0.1 and 0.3", 150, spent)


def of_variants(found: Mapping[str, Any]) -> Iterator[Row]:
    """Rows of lesson 15: four methods to one bar, none ranked; DPO; the critic."""
    runs = found["runs"]

    def seen(name: str) -> list[Any]:
        return [runs[f"{name}/{seed}"] for seed in SEEDS]

    def ends(name: str) -> list[float]:
        return [run["final"]["success"] for run in seen(name)]

    def chosen(name: str) -> list[float]:
        return [run["epochs"][-1]["chosen_log_ratio"] for run in seen(name)]

    for name in TUNED:
        claim = f"{name}: success ends at 0.82 or more after 7,680 answers"
        yield row(15, claim, ends(f"{name}/{MIDDLE}"), lambda x: x >= 0.82)
    explained = [max(run["curves"]["ev_monte_carlo"]) for run in seen(f"PPO/{MIDDLE}")]
    claim = "PPO: the critic explains less than 0.3 of rewards of 0 and 1 at the end"
    yield row(15, claim, explained, lambda x: x < 0.3)
    large, small = "DPO, beta 1", "DPO, beta 0.1"
    yield row(15, f"{large}: success ends at 0.65 or more", ends(large), lambda x: x >= 0.65)
    yield row(15, f"{large}: chosen answers become likelier (nats)", chosen(large), lambda x: x > 0)
    yield row(
        15, f"{small}, 1 epoch: success ends at 0.45 or less", ends(small), lambda x: x <= 0.45
    )
    yield row(
        15, f"{small}, 1 epoch: chosen answers become less likely (nats)", chosen(small),
        lambda x: x < 0,
    )  # fmt: skip
    names = (*(f"{name}/{MIDDLE}" for name in TUNED), large, small)
    spent = [[runs[f"{name}/{seed}"] for name in names] for seed in SEEDS]
    yield cost(15, "four methods and DPO at two prices", 90, spent)


def of_staleness(found: Mapping[str, Any]) -> Iterator[Row]:
    """Rows of lesson 16: by age, and by what corrects it."""
    runs = found["runs"]

    def ends(name: str) -> list[float]:
        return [runs[f"{name}/{seed}"]["final"]["success"] for seed in SEEDS]

    one, four = "one update", "four updates"
    fresh, bare = ends(f"{one}/clip/0"), ends(f"{one}/nothing/4")
    yield row(16, "age 0: success ends at 0.82 or more", fresh, lambda x: x >= 0.82)
    yield row(16, "age 4, nothing: success ends at 0.20 or less", bare, lambda x: x <= 0.2)
    clipped = ends(f"{one}/clip/4")
    yield row(
        16, "age 4, ratio and clip: success ends at 0.60 or more", clipped, lambda x: x >= 0.6
    )
    yield ordered(
        16,
        "age 4: nothing below ratio below ratio and clip",
        [bare, ends(f"{one}/ratio/4"), clipped],
    )
    for name in ("nothing", "ratio"):
        yield row(
            16, f"age 16, {name}: success ends at 0.45 or less", ends(f"{one}/{name}/16"),
            lambda x: x <= 0.45,
        )  # fmt: skip
    costs = [
        round(high - low, 4)
        for high, low in zip(ends(f"{four}/clip/0"), ends(f"{four}/nothing/0"), strict=True)
    ]
    claim = "age 0, four updates a batch: no ratio costs 0.12 or more of success"
    yield row(16, claim, costs, lambda x: x >= 0.12)
    aged = [f"{one}/{name}/{age}" for age in (4, 16) for name in ("nothing", "ratio", "clip")]
    names = (f"{one}/clip/0", *aged, f"{four}/clip/0", f"{four}/nothing/0")
    spent = [[runs[f"{name}/{seed}"] for name in names] for seed in SEEDS]
    yield cost(16, "the runs of the rows above", 90, spent)


def of_evidence(found: Mapping[str, Any]) -> Iterator[Row]:
    """Rows of lesson 17: what a gate does that sees 64 labels of a judge who errs."""
    gate, replays = found["gates"][GATE], found["replays_of_each_run"]

    def seen(name: str, what: str) -> list[Any]:
        kind = "hacked" if name == "beta 0" else "healthy"
        return [gate[kind]["by_run"][f"{name}/{seed}"][what] for seed in SEEDS]

    early = [stopped / replays for stopped in seen("beta 0", "by_iteration_16")]
    claim = "gate, beta 0: every replay is stopped by iteration 16"
    yield row(17, claim, early, lambda x: x == 1)
    yield row(
        17, "gate, beta 0: what it rolls back to has success 0.52 or more, on average",
        seen("beta 0", "mean_success_kept"), lambda x: x >= 0.52,
    )  # fmt: skip
    yield row(
        17, "gate, beta 0: and with the likeliest tokens 0.85 or more, on average",
        seen("beta 0", "mean_greedy_success_kept"), lambda x: x >= 0.85,
    )  # fmt: skip
    false = [round(stopped / replays, 4) for stopped in seen("beta 0.3", "stopped")]
    claim = f"gate, beta 0.3: at most 3 of 100 of {replays} replays of each run are stopped"
    yield row(17, claim, false, lambda x: x <= 0.03, own=True)


TABLES = dict(zip(STUDIES, (of_rlhf, of_variants, of_staleness, of_evidence), strict=True))


def table() -> list[Row]:
    """Read the four results, and give all rows."""
    return [
        each
        for study, rows in TABLES.items()
        for each in rows(json.loads((RESULTS / f"{study}.json").read_text(encoding="utf-8")))
    ]


def main() -> int:
    """Run what is missing, write the table, print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    for study in () if arguments.table else STUDIES:
        subprocess.run([sys.executable, "-m", f"benchmarks.{study}"], check=True)
    rows = table()
    for each in rows:
        numbers = ", ".join(map(str, each["by_seed"]))
        print("holds " if each["holds"] else "MISSED", each["lesson"], each["claim"], "|", numbers)
    missed, own = (sum(map(bool, some)) for some in (
        [not each["holds"] for each in rows], [each["own"] for each in rows],
    ))  # fmt: skip
    print(f"{len(rows) - missed} of {len(rows)} bars met; {own} of them were set afterwards")
    print(write_result("acceptance", COMMAND, {"rows": rows}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
