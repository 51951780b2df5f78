"""Lesson 10. The whole thing, fast.

    seconds ≥ max( FLOPs / FLOPs a second,  bytes / bytes a second,  launches · seconds a launch )

One loop, on one device: environments, networks and optimiser live there, and nothing asks the
device for a value until an iteration is over. What is left is launches: a CUDA graph plays a whole
iteration with one. Several devices share the environments and average their gradients.

Read in this order: accounting (where every microsecond goes), memory, graphs (one iteration as one
function), device (the loop), ranks (several of them), job (their checkpoints).
"""

from ppo_lessons.gpu_run.accounting import (
    Cost,
    Entry,
    Limits,
    StageCost,
    count_launches,
    iteration_cost,
    ledger,
    limits,
    time_stages,
)
from ppo_lessons.gpu_run.device import DEFAULTS, start_on_device, train_on_device
from ppo_lessons.gpu_run.graphs import Iteration, captured
from ppo_lessons.gpu_run.memory import check_memory, memory_needed
from ppo_lessons.gpu_run.ranks import (
    Ranks,
    combine_moments,
    normalize_over_ranks,
    one_process,
    rank_parts,
    reduced_gradient_step,
)

__all__ = [
    "DEFAULTS",
    "Cost",
    "Entry",
    "Iteration",
    "Limits",
    "Ranks",
    "StageCost",
    "captured",
    "check_memory",
    "combine_moments",
    "count_launches",
    "iteration_cost",
    "ledger",
    "limits",
    "memory_needed",
    "normalize_over_ranks",
    "one_process",
    "rank_parts",
    "reduced_gradient_step",
    "start_on_device",
    "time_stages",
    "train_on_device",
]
