"""The studies of lesson 11, recorded for its notebook.

    python -m benchmarks.ablations                    all of them; about 25 minutes of one core
    python -m benchmarks.ablations --minutes 4        as far as it gets; go on with the same command
    python -m benchmarks.ablations --only map parts   some of them

Finished runs are kept in the cache of the course, so that it can be broken off and gone on with.
`ppo_lessons/recorded/ablations.json` gets each study as soon as all of its runs are there.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import RECORDED
from ppo_lessons.ablations import StudyResult, run_study
from ppo_lessons.ablations.studies import STUDIES
from ppo_lessons.ablations.study import one_run_a_line
from ppo_lessons.runs import versions, write_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies, and record each once it is whole."""
    parser = argparse.ArgumentParser(description="Record the studies of lesson 11.")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--minutes", type=float, help="stop after so many, and keep what is there")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args(arguments)
    if options.minutes is not None:  # what Ctrl-C would do, also in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(60 * options.minutes, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()
    results = {}
    try:
        for name in options.only:
            began = time.monotonic()
            given = {"cache": options.cache, "workers": options.workers}
            results[name] = run_study(STUDIES[name], **given)
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
            if options.only == list(STUDIES):
                record(results)
    except KeyboardInterrupt:
        print("stopped; go on with the same command", file=sys.stderr)
        return 130
    return 0


def record(results: dict[str, StudyResult]) -> Path:
    """Write all studies into one file, each run on one line."""
    head = {
        "date": time.strftime("%Y-%m-%d"),
        "command": "python -m benchmarks.ablations",
        "machine": {**versions(), "cores": os.cpu_count()},
    }
    studies = ",\n".join(
        f"{json.dumps(name)}: {one_run_a_line(result.as_dict())}"
        for name, result in results.items()
    )
    text = json.dumps(head, indent=1)[:-2] + f',\n "studies": {{\n{studies}\n}}\n}}\n'
    json.loads(text)
    path = RECORDED / "ablations.json"
    write_text(path, text)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
