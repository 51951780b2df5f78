"""What do a run's metrics say is wrong, by which number, and where to read on?

names   what a metric is called elsewhere
events  TensorBoard's files
intake  from whatever a run left behind to one table
rules   which numbers are known from which bug
report  what is said
"""

from typing import Any

from ppo_lessons.diagnose.intake import Run, read_run
from ppo_lessons.diagnose.names import CLEANRL, SB3
from ppo_lessons.diagnose.report import Finding
from ppo_lessons.diagnose.rules import findings

__all__ = ["CLEANRL", "SB3", "Finding", "Run", "diagnose", "read_run"]


def diagnose(source: Any, *, clip_epsilon: int | float | None = None) -> list[Finding]:
    """Say what looks wrong in the metrics of a run.

    Args:
        source: a `History`, its rows, a dictionary with one list per metric, or a path: a run
            folder or checkpoint of ours, event files of TensorBoard (names of ours, of
            Stable-Baselines3 or of CleanRL) or their folder, `progress.csv`, `.jsonl`, `.json`.
        clip_epsilon: ε of the run; taken from the run itself where it says it, else 0.2.

    Returns:
        The findings, alarms first; empty if nothing looks wrong. That is no proof: some bugs leave
        no trace in these numbers.

    Raises:
        ValueError: if there is no run, too little of it, or none of the metrics.
        TypeError: if it is of another kind.
    """
    run = source if isinstance(source, Run) else read_run(source)
    if clip_epsilon is not None:
        run = Run(run.table, float(clip_epsilon), run.passed_over)
    return sorted(findings(run), key=lambda finding: not finding.alarm)
