"""How long does a lesson take from its first cell to its last, and how long the second time?

    python -m benchmarks.lesson_times                  # lessons 13 to 17
    python -m benchmarks.lesson_times 08_training_loop

The first time is with an empty cache: what the lesson trains once and keeps is trained. The result
lies in `benchmarks/results/lesson_times.json`.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from benchmarks.record import write_result

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
COMMAND = "python -m benchmarks.lesson_times"
# lesson -> seconds that it may take on two cores
GOALS = {
    "13_tokens": 60,
    "14_rlhf": 180,
    "15_variants": 180,
    "16_staleness": 90,
    "17_evidence": 90,
}


def seconds_of(stem: str) -> float:
    """Run a lesson in a fresh kernel; one that fails raises."""
    notebook = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4)
    began = time.perf_counter()
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": NOTEBOOKS}}
    ).execute()
    return round(time.perf_counter() - began, 1)


def main(arguments: list[str]) -> None:
    """Measure each lesson twice, the first time with an empty cache."""
    found = {}
    for stem in arguments or GOALS:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["PPO_LESSONS_CACHE"] = empty
            found[stem] = {"first": seconds_of(stem), "again": seconds_of(stem)}
        found[stem] |= {"goal": GOALS.get(stem)}
        print(stem, found[stem], flush=True)
    write_result("lesson_times", COMMAND, {"seconds": found})


if __name__ == "__main__":
    main(sys.argv[1:])
