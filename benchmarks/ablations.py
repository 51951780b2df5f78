"""The studies of lesson 11, recorded for its notebook.

    python -m benchmarks.ablations                    all of them; about 25 minutes of one core
    python -m benchmarks.ablations --minutes 4        as far as it gets; go on with the same command
    python -m benchmarks.ablations --only map parts   some of them
    python -m benchmarks.ablations --time             how long eight settings take with 16 seeds and
                                                      50,000 steps each; no run is kept

Finished runs are kept in the cache of the course, so that it can be broken off and gone on with.
`ppo_lessons/recorded/ablations.json` gets each study as soon as all of its runs are there.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.record import RECORDED, write_result
from ppo_lessons.ablations import StudyResult, run_study
from ppo_lessons.ablations.studies import BASE, ON_ACROBOT, PARTS, STUDIES, settings_of
from ppo_lessons.ablations.study import one_run_a_line
from ppo_lessons.runs import versions, write_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies, and record each once it is whole."""
    parser = argparse.ArgumentParser(description="Record the studies of lesson 11.")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--minutes", type=float, help="stop after so many, and keep what is there")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--time", action="store_true", help="time eight settings, record no study")
    options = parser.parse_args(arguments)
    if options.time:
        print(time_eight(options.workers))
        return 0
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


def time_eight(workers: int) -> Path:
    """Time eight settings with 16 seeds and at least 50,000 steps, each run from its start."""
    rows = settings_of(replace(BASE, total_steps=98 * BASE.batch_size))
    study = replace(PARTS, settings=[rows[name] for name in ON_ACROBOT], seeds=range(1, 17))
    with tempfile.TemporaryDirectory() as nothing_yet:
        before, began = sum(os.times()[:4]), time.monotonic()
        run_study(study, cache=nothing_yet, workers=workers)
        seconds, cpu_seconds = time.monotonic() - began, sum(os.times()[:4]) - before
    size = {"settings": len(study.settings), "seeds": len(study.seeds)}
    steps = {"env_steps_each": study.total_steps, "env_steps": study.num_runs * study.total_steps}
    command = f"python -m benchmarks.ablations --time --workers {workers}"
    times = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1)}
    content = {**size, **steps, "workers": workers, **times}
    return write_result("study_time", command, content)


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
