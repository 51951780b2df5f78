"""A mode that refuses whatever would wait for a device, so that a CPU can tell where that happens.

On an accelerator these operations stand still until the device has caught up: the host needs a
value, or the size of a result depends on one.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
NEEDS_A_VALUE = {aten._local_scalar_dense, aten.is_nonzero, aten.equal, aten.item}
SIZE_DEPENDS_ON_VALUES = {aten.nonzero, aten.masked_select, aten.unique_dim, aten._unique2}
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
TO_THE_HOST = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.cpu, torch.Tensor.__array__}


class Waits(AssertionError):
    """Something asked for a value."""


class NoWaiting(TorchDispatchMode):
    """Refuse operations that need a value; those that would hide it as well."""

    def __enter__(self):
        self._methods = _NoMethods()
        self._methods.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._methods.__exit__(*error)

    def __torch_dispatch__(self, function: Any, types, args=(), kwargs=None):  # theirs: torch
        packet = function.overloadpacket
        if packet in NEEDS_A_VALUE | SIZE_DEPENDS_ON_VALUES:
            raise Waits(f"{function} waits for the device")
        if packet in INDEXED and any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]
        ):
            raise Waits(f"{function} with booleans waits for the device")
        return function(*args, **(kwargs or {}))


class _NoMethods(TorchFunctionMode):
    def __torch_function__(self, function: Any, types, args=(), kwargs=None):  # theirs: torch
        if function in TO_THE_HOST:
            raise Waits(f"{function.__name__} waits for the device")
        return function(*args, **(kwargs or {}))
