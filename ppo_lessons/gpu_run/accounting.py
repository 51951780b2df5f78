"""Where every microsecond goes: what an iteration must do, and what a machine can do.

seconds ≥ max( FLOPs / FLOPs a second,  bytes / bytes a second,  launches · seconds a launch )
"""

from dataclasses import dataclass

import torch

from ppo_lessons.envs.batched import Task
from ppo_lessons.training_loop import Parts, PPOConfig, TrainState

STAGES = ("collect", "score", "squeeze")


@dataclass(frozen=True)
class StageCost:
    """What one stage of one iteration does.

    Attributes:
        flops: floating-point operations of the matrix products; a multiply-add counts as two.
        bytes: read from and written to memory if every operation reads its inputs and writes its
            outputs once, as PyTorch without fusion does.
        launches: operations that a device is asked for one by one.
    """

    flops: int
    bytes: int
    launches: int


@dataclass(frozen=True)
class Cost:
    """What one iteration does, by stage: `cost.stages["squeeze"].flops`.

    Attributes:
        stages: collect, score, squeeze.
        env_steps: of one iteration, T·N (environment steps).
    """

    stages: dict[str, StageCost]
    env_steps: int

    @property
    def flops(self) -> int:
        """Of the whole iteration."""
        return sum(stage.flops for stage in self.stages.values())

    @property
    def bytes(self) -> int:
        """Of the whole iteration."""
        return sum(stage.bytes for stage in self.stages.values())

    @property
    def launches(self) -> int:
        """Of the whole iteration."""
        return sum(stage.launches for stage in self.stages.values())


@dataclass(frozen=True)
class Limits:
    """What a machine can do at best.

    Attributes:
        flops_per_second: of a large matrix product in float32.
        bytes_per_second: of a large copy, read and write together.
        seconds_per_launch: of an operation on a tensor of 8 numbers.
        device: the processor's name.
    """

    flops_per_second: float
    bytes_per_second: float
    seconds_per_launch: float
    device: str = ""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger.

    Attributes:
        stage: "collect", "score", "squeeze" or "iteration".
        seconds: as measured; None if nobody measured it.
        arithmetic: the least time that its floating-point operations need (seconds).
        memory: the least time that its bytes need (seconds).
        launches: the least time that its launches need (seconds).
    """

    stage: str
    seconds: float | None
    arithmetic: float
    memory: float
    launches: float

    @property
    def binds(self) -> str:
        """Which limit is the nearest: "arithmetic", "memory" or "launches"."""
        return max(("arithmetic", "memory", "launches"), key=lambda name: getattr(self, name))

    @property
    def least(self) -> float:
        """The time that the nearest limit allows (seconds)."""
        return max(self.arithmetic, self.memory, self.launches)


def iteration_cost(
    config: PPOConfig,
    observation_size: int,
    num_actions: int,
    task: Task,
    *,
    parts: Parts = Parts(),  # noqa: B008  (frozen)
) -> Cost:
    """Give what one iteration does on an accelerator, by counting, without an accelerator.

    FLOPs and bytes follow from the sizes of the layers; launches from one small iteration.

    Args:
        config: T, N, K, M and the widths of the hidden layers.
        observation_size: numbers in one observation, D.
        num_actions: A; the number of action axes where actions are real numbers.
        task: the rules of the environment, for what a step of it does.
        parts: the functions that fill the loop's slots.
    """
    raise NotImplementedError


def count_launches(state: TrainState, parts: Parts) -> dict[str, int]:
    """Count the operations that an accelerator is asked for, by stage, over one real iteration.

    Views cost nothing and are not counted. The state moves on by one iteration.
    """
    raise NotImplementedError


def time_stages(state: TrainState, parts: Parts, repeats: int) -> dict[str, float]:
    """Measure the stages of an iteration: {"collect": s, "score": s, "squeeze": s}, the medians.

    Args:
        state: the run; moved on by `repeats` iterations (and one to warm up).
        parts: the functions that fill the loop's slots.
        repeats: how many iterations are measured, at least 1.
    """
    raise NotImplementedError


def limits(device: str | torch.device = "cpu", *, seconds: float = 1.0) -> Limits:
    """Measure what a machine can do, on one thread of the CPU or on an accelerator.

    Args:
        device: which one.
        seconds: about how long it may take.
    """
    raise NotImplementedError


def ledger(cost: Cost, machine: Limits, seconds: dict[str, float] | None = None) -> list[Entry]:
    """Lay cost, limits and measurement side by side: one entry a stage, and the whole iteration.

    Args:
        cost: what an iteration does.
        machine: what the machine can do.
        seconds: what `time_stages` measured; None if nobody did.
    """
    raise NotImplementedError
