"""Lesson 11. Which parts matter?

A study is a table of settings, the same seeds and budget for each, and what was expected before it
ran. One run tells a story; many runs tell a difference, with an interval.

The modules in the order in which they are best read: statistics, study, networks, envs, slots,
optimizers, replicas, chunks, run, merge.
"""

from ppo_lessons.ablations.merge import merge_studies
from ppo_lessons.ablations.replicas import run_replicas
from ppo_lessons.ablations.run import run_study
from ppo_lessons.ablations.statistics import (
    Interval,
    Judged,
    apart,
    bootstrap_difference,
    interquartile_mean,
    judge_settings,
    performance_profile,
    probability_of_improvement,
    stratified_bootstrap,
)
from ppo_lessons.ablations.study import SCORE, Run, Setting, Study, StudyResult

__all__ = [
    "SCORE",
    "Interval",
    "Judged",
    "Run",
    "Setting",
    "Study",
    "StudyResult",
    "apart",
    "bootstrap_difference",
    "interquartile_mean",
    "judge_settings",
    "merge_studies",
    "performance_profile",
    "probability_of_improvement",
    "run_replicas",
    "run_study",
    "stratified_bootstrap",
]
