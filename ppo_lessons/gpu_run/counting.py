"""What a piece of code asks of a device: operations, bytes and floating-point operations, counted.

PyTorch shows each operation to a mode before it runs. On an accelerator each one that is no view is
launched, and costs some microseconds however little it does.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from ppo_lessons.training_loop import Parts, TrainState, score, squeeze

STAGES = ("collect", "score", "squeeze")
aten = torch.ops.aten
# They move no numbers on the device: memory is set aside, or the host asks for a value.
FREE = {
    aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided,
    aten.lift_fresh, aten._local_scalar_dense, aten.is_nonzero,
}  # fmt: skip
ONLY_WRITE = {aten.copy_, aten.fill_, aten.zero_, aten.exponential_, aten.normal_, aten.random_}
PICK = {aten.index, aten.gather, aten.index_select}  # they read what they give back, not all


@dataclass(frozen=True)
class Counted:
    """What was counted.

    Attributes:
        launches: operations that are no views.
        bytes: read and written, if each reads its inputs and writes its outputs once.
        flops: of matrix products and convolutions; a multiply-add counts as two.
        by_name: how often each operation was launched.
    """

    launches: int
    bytes: int
    flops: int
    by_name: Counter[str]


class Launches(TorchDispatchMode):
    """Count operations and bytes while the mode is on."""

    def __init__(self):
        super().__init__()
        self.by_name: Counter[str] = Counter()
        self.bytes = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        """Let the operation run, and write it down."""
        given = kwargs or {}
        result = function(*args, **given)
        packet = function.overloadpacket
        if packet not in FREE and not is_view(function):
            self.by_name[str(packet)] += 1
            inputs = size((args[1:] if packet in ONLY_WRITE else args, given))
            written = size(result)
            if packet in PICK:
                inputs = min(inputs, written + size(args[1:]))
            self.bytes += inputs + written
        return result


def is_view(function: Any) -> bool:
    """Whether an operation gives another look at the same memory: nothing is launched for it."""
    aliases = [given.alias_info for given in function._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def size(things: Any) -> int:
    """Bytes of all tensors in a structure."""
    return sum(
        leaf.numel() * leaf.itemsize for leaf in tree_leaves(things) if isinstance(leaf, Tensor)
    )


def counted(function: Callable[[], Any]) -> Counted:
    """Run a function once and count what it asks for.

    Args:
        function: takes nothing.

    Returns:
        The counts; the function's own result is lost.
    """
    flops = FlopCounterMode(display=False)
    with flops, Launches() as seen:
        function()
    return Counted(seen.by_name.total(), seen.bytes, flops.get_total_flops(), seen.by_name)


def stage_functions(state: TrainState, parts: Parts) -> dict[str, Callable[[], None]]:
    """Give the stages of an iteration as functions, to be called in this order.

    Args:
        state: the run; they move it on, without a row.
        parts: the functions that fill the loop's slots.
    """
    config = state.config

    def collect() -> None:
        state.rollout, state.carry = parts.call(
            "collect", state.envs, state.networks.policy, state.carry,
            num_steps=config.num_steps, generator=state.generator, out=state.rollout,
        )  # fmt: skip

    def look() -> None:
        assert state.rollout is not None
        batch = score(state.rollout, state.networks, config, parts)
        state.batch = replace(batch, valid=None)  # batched environments make real steps only

    def learn() -> None:
        assert state.batch is not None
        state.stats = squeeze(
            state.networks, state.optimizer, state.batch, config,
            parts=parts, generator=state.generator,
        )  # fmt: skip

    return dict(zip(STAGES, (collect, look, learn), strict=True))


def count_stages(state: TrainState, parts: Parts) -> dict[str, Counted]:
    """Count each stage over one real iteration; the state moves on by it, without a row."""
    return {name: counted(stage) for name, stage in stage_functions(state, parts).items()}


def count_launches(state: TrainState, parts: Parts) -> dict[str, int]:
    """Count the operations that an accelerator is asked for, by stage, over one real iteration.

    Each is at least one kernel. On the CPU some checks of values are among them.

    Args:
        state: the run; moved on by one iteration, without a row.
        parts: the functions that fill the loop's slots.

    Returns:
        {"collect": ..., "score": ..., "squeeze": ...} (launches).
    """
    return {name: count.launches for name, count in count_stages(state, parts).items()}
