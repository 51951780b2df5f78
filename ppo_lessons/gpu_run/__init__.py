"""Lesson 10. The whole thing, fast.

    seconds ≥ max( FLOPs / FLOPs a second,  bytes / bytes a second,  launches · seconds a launch )

One loop, on one device: environments, networks and optimiser live there, and nothing asks the
device for a value until an iteration is over. What is left is launches: a CUDA graph plays a whole
iteration with one. Several devices share the environments and average their gradients.

Read in this order: counting, timing, accounting (where every microsecond goes), memory, graphs
(one iteration as one function; pinned and rows belong to it), device (the loop), ranks (several of
them), job (their loop and checkpoints), command.
"""

from ppo_lessons.gpu_run.accounting import Cost, Entry, StageCost, iteration_cost, ledger
from ppo_lessons.gpu_run.counting import Counted, count_launches, count_stages, counted
from ppo_lessons.gpu_run.device import DEFAULTS, start_on_device, train_on_device
from ppo_lessons.gpu_run.graphs import Iteration, captured
from ppo_lessons.gpu_run.job import Keeper, train_ranks
from ppo_lessons.gpu_run.memory import check_memory, memory_needed
from ppo_lessons.gpu_run.ranks import (
    RankLost,
    Ranks,
    combine_moments,
    joined,
    normalize_over_ranks,
    one_process,
    rank_parts,
    rank_seed,
    reduced_gradient_step,
)
from ppo_lessons.gpu_run.timing import Limits, limits, time_stages

__all__ = [
    "DEFAULTS",
    "Cost",
    "Counted",
    "Entry",
    "Iteration",
    "Keeper",
    "Limits",
    "RankLost",
    "Ranks",
    "StageCost",
    "captured",
    "check_memory",
    "combine_moments",
    "count_launches",
    "count_stages",
    "counted",
    "iteration_cost",
    "joined",
    "ledger",
    "limits",
    "memory_needed",
    "normalize_over_ranks",
    "one_process",
    "rank_parts",
    "rank_seed",
    "reduced_gradient_step",
    "start_on_device",
    "time_stages",
    "train_on_device",
    "train_ranks",
]
