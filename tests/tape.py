"""What a CUDA graph does, on the CPU: operations are written down once and played again.

A graph knows no Python. It repeats the operations that it saw, on the memory that it saw. `Tape`
does the same with PyTorch's operations, so whatever an iteration keeps in Python (a learning rate
as a number, a state in a new tensor) stays behind when the tape is played, and a test sees it.
"""

from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from waiting import INDEXED, NEEDS_A_VALUE, SIZE_DEPENDS_ON_VALUES, Waits

aten = torch.ops.aten


class Tape(TorchDispatchMode):
    """Stand in for `torch.cuda.CUDAGraph`: record under `recording`, then `replay`."""

    def __init__(self):
        super().__init__()
        self.operations = []
        self.generators = []

    def register_generator_state(self, generator):
        self.generators.append(generator._cdata)  # Python's object is made anew at each call

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = function.overloadpacket
        if packet in NEEDS_A_VALUE | SIZE_DEPENDS_ON_VALUES or is_copied_from_python(packet, args):
            raise Waits(f"{function} cannot be captured")
        for given in tree_leaves((args, kwargs)):
            if isinstance(given, torch.Generator) and given._cdata not in self.generators:
                raise Waits(f"{function} draws from a generator that is not registered")
        result = function(*args, **kwargs)
        self.operations.append((function, args, kwargs, result))
        return result

    @torch.no_grad()
    def replay(self):
        for function, args, kwargs, result in self.operations:
            again = function(*args, **kwargs)
            read = {memory(tensor) for tensor in tensors((args, kwargs))}
            for fixed, new in zip(tensors(result), tensors(again), strict=True):
                if memory(fixed) not in read:  # neither a view nor written in place
                    fixed.copy_(new)


def is_copied_from_python(packet, args):
    """Numbers of Python that a device would have to be sent; filling with a single one is none."""
    if packet is aten.lift_fresh:
        return args[0].ndim > 0
    return packet in INDEXED and len(args) > 2 and args[2].ndim == 0


def tensors(things):
    return [leaf for leaf in tree_leaves(things) if isinstance(leaf, Tensor)]


def memory(tensor):
    return tensor.untyped_storage().data_ptr()


@contextmanager
def recording(tape, held):
    """Write down what runs inside, and leave the numbers as they were: a capture runs nothing.

    Args:
        tape: where to write.
        held: gives the tensors and generators that the recorded code changes.
    """
    before = [(thing, saved(thing)) for thing in held()]
    with tape:
        yield
    for thing, value in before:
        if isinstance(thing, torch.Generator):
            thing.set_state(value)
        else:
            thing.data.copy_(value)


def saved(thing):
    return thing.get_state() if isinstance(thing, torch.Generator) else thing.detach().clone()
