"""`ppo-lessons diagnose RUN`: what looks wrong in a run, from a shell."""

import argparse
import textwrap
from collections.abc import Sequence

from ppo_lessons.diagnose import diagnose, read_run

NOTHING = (
    "Nothing looks wrong in these numbers. Some bugs leave no trace in them: rewards one step "
    "late, truncation not looked at. Run the probes and the tests, or audit the tensors of one "
    "rollout."
)


def main(rest: Sequence[str], program: str = "ppo-lessons") -> int:
    """Diagnose one run and print what was found.

    Args:
        rest: the command line behind `diagnose`.
        program: what the reader typed before it.

    Returns:
        0 if nothing looks wrong, 1 if something does.

    Raises:
        ValueError: if the run cannot be used, with what to do.
    """
    parser = argparse.ArgumentParser(
        prog=f"{program} diagnose",
        description="Say what looks wrong in the metrics of a run, by which number, where to read.",
    )
    parser.add_argument(
        "run", help="run folder, metrics, checkpoint, TensorBoard log, progress.csv"
    )
    parser.add_argument("--clip", type=float, help="ε, where the run does not say it (0.2)")
    options = parser.parse_args(list(rest))
    run = read_run(options.run)
    found = diagnose(run, clip_epsilon=options.clip)
    print(f"{len(run)} iterations; read: {', '.join(run.table)}.", end="\n\n")
    for finding in found:
        print(finding, end="\n\n")
    alarms = sum(finding.alarm for finding in found)
    closing = {0: NOTHING, 1: "One thing looks wrong."}.get(alarms, f"{alarms} things look wrong.")
    print(textwrap.fill(closing, 92))
    return 1 if alarms else 0
