"""What does it cost to grade a class? CPU seconds and wall time for fifty submissions.

    python -m benchmarks.grading

The fifty are different on the bytes, so that none is found in the cache. The second class has
five hostile members, of whom two have to be waited for. CPU seconds are those of the whole machine,
so let nothing else run: a kernel in a namespace of its own is missing in what its parent is told.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import write_result
from ppo_lessons.grading.bake import bake
from ppo_lessons.grading.batch import Batch, grade

ROOT = Path(__file__).resolve().parent.parent
STEM, SEED, COUNT = "04_clip", 1, 50
HOSTILE = ("endless", "ends_the_process", "prints_60_MB", "memory", "endless_inside")


def hand_in(folder: Path, count: int, hostile: Sequence[str]) -> None:
    """Write a class's submissions: solutions that differ in a comment, and some hostile ones."""
    sys.path.insert(0, str(ROOT / "tests"))
    from submissions import OF  # pyright: ignore[reportMissingImports]

    folder.mkdir()
    for number in range(count - len(hostile)):
        mark = rb"import torch  # number %d" % number
        content = re.sub(rb"import torch(?=\\n)", mark, OF["solved"].make())
        (folder / f"s{number:03d}.ipynb").write_bytes(content)
    for name in hostile:
        OF[name].write(folder)


def cpu_seconds() -> float:
    """CPU seconds that all processes of this machine have used since it was started."""
    words = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()
    user, nice, system = (int(word) for word in words[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def timed(batch: Batch) -> dict[str, Any]:
    """Grade a class, and say what it took."""
    load, began, used = os.getloadavg()[0], time.perf_counter(), cpu_seconds()
    results = grade(batch)
    wall, cpu = time.perf_counter() - began, cpu_seconds() - used
    return {
        "submissions": len(results),
        "workers": batch.workers,
        "chunk": batch.chunk,
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "cpu_s_each": round(cpu / len(results), 2),
        "submissions_per_hour": round(3600 * len(results) / wall),
        "statuses": {
            status: sum(each.status == status for each in results)
            for status in sorted({each.status for each in results})
        },
        "full_points": sum(each.points == each.max_points for each in results),
        "load_before": round(load, 2),
        "load_after": round(os.getloadavg()[0], 2),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Grade two classes, and write what it took."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=COUNT, help="submissions in each class")
    options.add_argument("--dry", action="store_true", help="write nothing")
    given = options.parse_args(arguments)
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="ppo-benchmark-") as name:
        place = Path(name)
        began, used = time.perf_counter(), cpu_seconds()
        reference = bake(STEM, place / "reference", SEED)
        rows["bake"] = {
            "wall_s": round(time.perf_counter() - began, 1),
            "cpu_s": round(cpu_seconds() - used, 1),
        }
        hand_in(place / "honest", given.count, ())
        hand_in(place / "mixed", given.count, HOSTILE)
        for label, folder, workers in (
            ("honest, 1 worker", "honest", 1),
            ("honest, 2 workers", "honest", 2),
            ("five hostile, 2 workers", "mixed", 2),
        ):
            rows[label] = timed(
                Batch(
                    submissions=[place / folder],
                    reference=reference,
                    out=place / label,
                    workers=workers,
                )
            )
            print(label, rows[label], flush=True)
    if not given.dry:
        print(write_result("grading", "python -m benchmarks.grading", {"grading": rows}))


if __name__ == "__main__":
    main()
