"""Lesson 07. Where does an episode end?

    δ_t = r_t + γ·(1 − terminated_t)·V(s_{t+1}) − V(s_t)        terminated cuts the bootstrap
    Â_t = δ_t + γλ·(1 − ended_t)·Â_{t+1}                        ended cuts the recursion

Collect: the policy acts, and what happened is written down. Score: the critic says what it
expected. Two flags tell the ends apart, and the state that a step reached is kept as it was before
any reset, so that nothing after a reset can leak into what came before it.

Read in this order: collect (a rollout is filled), score (the critic looks at it), ends (what goes
wrong where an episode ends, and what is learned then).
"""

from ppo_lessons.rollout.collect import check_step, collect_rollout, empty_rollout, start_carry
from ppo_lessons.rollout.ends import (
    ENDINGS,
    fit_table,
    flags_merged,
    next_value_after_the_reset,
    nothing_after_the_last_row,
    truncated_ignored,
    truncated_ignored_after_the_reset,
)
from ppo_lessons.rollout.score import flatten, score_values

__all__ = [
    "ENDINGS",
    "check_step",
    "collect_rollout",
    "empty_rollout",
    "fit_table",
    "flags_merged",
    "flatten",
    "next_value_after_the_reset",
    "nothing_after_the_last_row",
    "score_values",
    "start_carry",
    "truncated_ignored",
    "truncated_ignored_after_the_reset",
]
