"""Where every microsecond goes: what an iteration must do, against what a machine can do.

    seconds ≥ max( FLOPs / FLOPs a second,  bytes / bytes a second,  launches · seconds a launch )

An environment step is a few dozen numbers; a training step sends it through two networks K times,
forwards and backwards. So a million environment steps a second are no million training steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Generator

from ppo_lessons.envs.batched import Task
from ppo_lessons.gpu_run.counting import STAGES, count_launches, counted, stage_functions
from ppo_lessons.gpu_run.device import start_on_device
from ppo_lessons.gpu_run.timing import Limits
from ppo_lessons.networks import FILTER, NUM_FILTERS
from ppo_lessons.training_loop import Parts, PPOConfig

FLOAT = 4  # bytes
# Numbers read or written for each sample outside of the layers, as PyTorch does it operation by
# operation: an action drawn, flags kept; the recursion of GAE; losses, ratios and their measures.
DRAWN, SCORED, LEARNED = 60, 45, 160
# How often a gradient step touches each weight: forwards, backwards, its gradient's norm, and Adam.
WEIGHTS_TOUCHED = 12
SMALL = 8  # environments of the iteration whose launches are counted


@dataclass(frozen=True)
class StageCost:
    """What one stage of one iteration does.

    Attributes:
        flops: floating-point operations of matrix products and convolutions; a multiply-add counts
            as two.
        bytes: read from and written to memory if every operation reads its inputs and writes its
            outputs once, as PyTorch does without a compiler.
        launches: operations that a device is asked for one by one.
    """

    flops: int
    bytes: int
    launches: int


@dataclass(frozen=True)
class Cost:
    """What one iteration does.

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
class Layer:
    """One layer of a network, for one sample.

    Attributes:
        inputs: numbers that go in.
        outputs: numbers that come out.
        flops: of one pass forwards.
        followed: whether a function of each output follows (tanh, or a cut at 0).
    """

    inputs: int
    outputs: int
    flops: int
    followed: bool = True

    @property
    def forward_bytes(self) -> int:
        """Input read, output written; then the function reads and writes it."""
        return FLOAT * (self.inputs + self.outputs + 2 * self.outputs * self.followed)

    def backward_bytes(self, *, first: bool) -> int:
        """The function's derivative, the gradient of weights and biases, that of the inputs."""
        numbers = 3 * self.outputs * self.followed + self.inputs + 2 * self.outputs
        return FLOAT * (numbers + (0 if first else self.inputs + self.outputs))


def layers(config: PPOConfig, observation_shape: tuple[int, ...], outputs: int) -> list[Layer]:
    """Give the layers of one network, as `make_networks` or `pixel_networks` builds them."""
    found, width = [], prod(observation_shape)
    if len(observation_shape) == 3:
        height, breadth, channels = observation_shape
        places = (height - FILTER + 1) * (breadth - FILTER + 1)
        products = NUM_FILTERS * places * FILTER**2 * channels
        found.append(Layer(width, NUM_FILTERS * places, 2 * products))
        width = NUM_FILTERS * places
    for size in config.hidden_sizes:
        found.append(Layer(width, size, 2 * width * size))
        width = size
    return [*found, Layer(width, outputs, 2 * width * outputs, followed=False)]


def iteration_cost(
    config: PPOConfig,
    observation_size: int,
    num_actions: int,
    task: Task,
    *,
    parts: Parts = Parts(),  # noqa: B008  (frozen)
) -> Cost:
    """Give what one iteration does on an accelerator, without an accelerator.

        collect   T·N passes of the policy forwards, and T steps of the environments
        score     2·T·N passes of the critic forwards: each state, and the one that followed
        squeeze   K·T·N passes of both, forwards and backwards: twice the FLOPs once more, except
                  that nobody asks for the gradient of the observations

    FLOPs and bytes follow from the sizes of the layers; launches are counted over one iteration of
    a few environments, since their number does not depend on N.

    Args:
        config: T, N, K, M and the widths of the hidden layers.
        observation_size: numbers in one observation.
        num_actions: outputs of the policy: actions to choose from, or numbers in a real action.
        task: the rules of the environments.
        parts: the functions that fill the loop's slots.

    Returns:
        The cost of each stage.

    Raises:
        ValueError: if the task shows observations of another size.
    """
    shape = tuple(task.observation_space.shape or ())
    if prod(shape) != observation_size:
        raise ValueError(
            f"observation_size is {observation_size}; expected {prod(shape)}, since the task shows "
            f"observations of shape {shape}. Give the numbers in one observation."
        )
    policy, critic = layers(config, shape, num_actions), layers(config, shape, 1)
    samples, both = config.batch_size, [policy, critic]
    seen = observation_size * task_itemsize(task)
    # Boards of true and false become real numbers before each pass.
    cast = seen + FLOAT * observation_size if len(shape) == 3 else 0
    row = 2 * seen + 31  # of a rollout; of a batch it is not much else
    updates = config.num_epochs * config.num_minibatches
    flops = {
        "collect": sum(layer.flops for layer in policy),
        "score": 2 * sum(layer.flops for layer in critic),
        "squeeze": config.num_epochs
        * sum(3 * sum(each.flops for each in layers_) - layers_[0].flops for layers_ in both),
    }
    bytes_ = {
        "collect": samples * (forward(policy) + cast + 3 * row + FLOAT * DRAWN + task_bytes(task))
        + config.num_steps * weights(policy),
        "score": samples * 2 * (forward(critic) + cast + FLOAT * SCORED // 2) + 2 * weights(critic),
        "squeeze": samples
        * config.num_epochs
        * (sum(forward(each) + backward(each) + cast for each in both) + row + FLOAT * LEARNED)
        + updates * WEIGHTS_TOUCHED * sum(weights(each) for each in both),
    }
    launches = launches_of(config, task, parts)
    return Cost(
        {name: StageCost(samples * flops[name], bytes_[name], launches[name]) for name in STAGES},
        env_steps=samples,
    )


def forward(network: list[Layer]) -> int:
    """Bytes of one pass forwards, for one sample."""
    return sum(layer.forward_bytes for layer in network)


def backward(network: list[Layer]) -> int:
    """Bytes of one pass backwards, for one sample."""
    return sum(layer.backward_bytes(first=layer is network[0]) for layer in network)


def weights(network: list[Layer]) -> int:
    """Bytes of a network's weights and biases; filters are few enough to be left out."""
    return FLOAT * sum(
        (layer.inputs + 1) * layer.outputs
        for layer in network
        if layer.flops == 2 * layer.inputs * layer.outputs
    )


def task_itemsize(task: Task) -> int:
    """Bytes of one number of an observation."""
    return 1 if task.observation_space.dtype == bool else FLOAT


def task_bytes(task: Task) -> int:
    """Bytes that one step of one environment reads and writes, counted."""
    generator = Generator().manual_seed(0)
    state = task.start(SMALL, generator=generator, dtype=torch.float32)
    space = task.action_space
    kind = torch.float32 if space.shape else torch.int64
    actions = torch.zeros(SMALL, *(space.shape or ()), dtype=kind)

    def step() -> None:
        reached, _, _ = task.advance(state, actions, generator=generator)
        task.observe(reached)
        task.start(SMALL, generator=generator, dtype=torch.float32)  # whatever ended begins anew
        task.observe(reached)

    return counted(step).bytes // SMALL


def launches_of(config: PPOConfig, task: Task, parts: Parts) -> dict[str, int]:
    """Count launches over one iteration of a few environments, on the CPU, as a device would."""
    least = -(-2 * config.num_minibatches // config.num_steps)  # two samples a minibatch
    small = replace(
        config, num_envs=max(SMALL, least), total_steps=config.num_steps * max(SMALL, least)
    )
    state, parts = start_on_device(small, task, parts=parts)
    state.envs.checks_values = False  # type: ignore[attr-defined]  # as where they would wait
    for stage in stage_functions(state, parts).values():
        stage()  # once before: the optimiser makes its tensors then
    return count_launches(state, parts)


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


def ledger(cost: Cost, machine: Limits, seconds: Mapping[str, float] | None = None) -> list[Entry]:
    """Lay cost, limits and measurement side by side: one entry a stage, then the iteration.

    The stages follow one another, so the iteration's three times are the sums over the stages.

    Args:
        cost: what an iteration does.
        machine: what the machine can do.
        seconds: what `time_stages` measured; None if nobody did.

    Returns:
        Four entries.
    """
    entries = [
        Entry(
            name,
            seconds[name] if seconds else None,
            stage.flops / machine.flops_per_second,
            stage.bytes / machine.bytes_per_second,
            stage.launches * machine.seconds_per_launch,
        )
        for name, stage in cost.stages.items()
    ]
    names = ("arithmetic", "memory", "launches")
    whole = Entry(
        "iteration",
        sum(seconds[name] for name in cost.stages) if seconds else None,
        *(sum(getattr(each, name) for each in entries) for name in names),
    )
    return [*entries, whole]
