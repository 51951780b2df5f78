"""How long the stages take, and what the machine could do at best."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ppo_lessons.envs.batched import checked_device
from ppo_lessons.gpu_run.counting import STAGES, stage_functions
from ppo_lessons.runs import processor
from ppo_lessons.shapes import check_positive
from ppo_lessons.training_loop import Parts, TrainState


@dataclass(frozen=True)
class Limits:
    """What a machine can do at best.

    Attributes:
        flops_per_second: of a large matrix product in float32.
        bytes_per_second: of a large copy, read and write together.
        seconds_per_launch: of one operation on 8 numbers, in a row of many.
        device: the processor's name.
    """

    flops_per_second: float
    bytes_per_second: float
    seconds_per_launch: float
    device: str = ""


def time_stages(state: TrainState, parts: Parts, repeats: int) -> dict[str, float]:
    """Measure the stages of an iteration, one by one.

    Args:
        state: the run; moved on by `repeats` iterations and one to warm up, without rows.
        parts: the functions that fill the loop's slots.
        repeats: how many iterations are measured, at least 1.

    Returns:
        The median of each: {"collect": ..., "score": ..., "squeeze": ...} (seconds).

    Raises:
        ValueError: if repeats is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; expected at least 1. Choose repeats=5.")
    stages = stage_functions(state, parts)
    seconds: dict[str, list[float]] = {name: [] for name in STAGES}
    for repeat in range(repeats + 1):
        for name, stage in stages.items():
            taken = time_of(stage, state.envs.device)
            if repeat > 0:
                seconds[name].append(taken)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def time_of(function: Callable[[], object], device: torch.device) -> float:
    """Time a function from a device that has nothing to do to a device that has done it all."""
    wait_for(device)
    began = time.perf_counter()
    function()
    wait_for(device)
    return time.perf_counter() - began


def wait_for(device: torch.device) -> None:
    """Wait until a device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def limits(device: str | torch.device = "cpu", *, seconds: int | float = 1.0) -> Limits:
    """Measure what a machine can do: one product, one copy, one tiny operation, again and again.

    The CPU is measured as torch is set, so on one thread inside the course.

    Args:
        device: which one.
        seconds: about how long it may take.

    Returns:
        The best of what was seen: other work on the machine can only make it slower.

    Raises:
        ValueError: if the device is not there, or seconds is not above 0.
    """
    check_positive(seconds=seconds)
    place = checked_device(device)
    width, length = (1024, 2**24) if place.type == "cpu" else (8192, 2**28)
    left, right = (torch.full((width, width), 0.5, device=place) for _ in range(2))
    product = torch.empty_like(left)
    source = torch.zeros(length, device=place)
    target = torch.zeros(length, device=place)
    tiny = torch.zeros(8, device=place)
    many = 1000

    def launch() -> None:
        for _ in range(many):
            tiny.add_(1)

    def best(function: Callable[[], object]) -> float:
        time_of(function, place)
        until, least = time.perf_counter() + seconds / 3, float("inf")
        while least == float("inf") or time.perf_counter() < until:
            least = min(least, time_of(function, place))
        return least

    with torch.inference_mode(False), torch.no_grad():
        return Limits(
            flops_per_second=2 * width**3 / best(lambda: torch.mm(left, right, out=product)),
            bytes_per_second=2 * length * 4 / best(lambda: target.copy_(source)),
            seconds_per_launch=best(launch) / many,
            device=device_name(place),
        )


def device_name(device: torch.device) -> str:
    """The name of a processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
