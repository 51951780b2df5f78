"""Lesson 12. Why does mine not learn?

A silent bug raises no error. It shows in a number of the run, or on a probe whose answer is known
before training, or in the tensors of one rollout (`ppo_lessons.audit`), or nowhere but in a test.

Read in this order: zoo (the wrong functions), bugs (what is known of each), instruments (two
numbers that a right loop cannot leave), metrics (which metric shows which bug), probing (which
probe fails for which bug).
"""

from ppo_lessons.debugging.bugs import BUGS, ZOO_CONFIG, Bug, Trace
from ppo_lessons.debugging.instruments import (
    lowest_entropy_of_two_softmaxes,
    mean_ratio_surprise,
)
from ppo_lessons.debugging.metrics import metric_table
from ppo_lessons.debugging.probing import (
    PROBE_CONFIG,
    QUESTIONS,
    EndlessProbe,
    Question,
    probe_passes,
    probe_table,
)

__all__ = [
    "BUGS",
    "PROBE_CONFIG",
    "QUESTIONS",
    "ZOO_CONFIG",
    "Bug",
    "EndlessProbe",
    "Question",
    "Trace",
    "lowest_entropy_of_two_softmaxes",
    "mean_ratio_surprise",
    "metric_table",
    "probe_passes",
    "probe_table",
]
