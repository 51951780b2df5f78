"""Tanh for wide batches on a CPU: the same function by way of a sigmoid, with its own backward.

    tanh(x) = 2·σ(2x) − 1,     d tanh(x) / dx = 1 − tanh(x)²

A profile of the training loop shows why this page exists: of all operations of a small network
PyTorch's tanh is the dearest on a CPU, dearer than the matrix products between which it stands.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function

# Whole vectors of the processor: then a row gives the same bits in a batch of any size, and the
# ratio of a policy to itself stays exactly 1.
WHOLE_VECTORS = 32
ONE = torch.ones(())  # a number of Python would be turned into a tensor at every call


def tanh_by_sigmoid(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Give 2·σ(2x) − 1, writing each step over the one before it; no gradient."""
    y = (x + x).sigmoid_()
    return y.add_(y).sub_(ONE)


class TanhBySigmoid(Function):
    """`tanh_by_sigmoid`, and on the way back 1 − y², from the y that was given out."""

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Compute y and keep it."""
        y = tanh_by_sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Give gradient·(1 − y²)."""
        (y,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(gradients[0], y)


class Tanh(nn.Tanh):
    """Tanh as a layer, in place of the one of PyTorch: a third of its time.

        tanh(x) = 2·σ(2x) − 1

    On a CPU, in float32, it is at most 2·10⁻⁷ away from tanh: two units in the last place of
    numbers near 1. For |x| below 10⁻⁷ it may give 0. In float64, on an accelerator, and for rows
    that are no whole vectors it is PyTorch's own tanh.
    """

    def forward(self, input: Float[Tensor, "..."]) -> Float[Tensor, "..."]:  # theirs: torch
        """Give tanh(x)."""
        x = input
        whole = x.ndim > 0 and x.shape[-1] % WHOLE_VECTORS == 0
        if not whole or x.dtype != torch.float32 or x.device.type != "cpu":
            return x.tanh()
        if not (x.requires_grad and torch.is_grad_enabled()):
            return tanh_by_sigmoid(x)  # a Function costs more than a small tanh
        return TanhBySigmoid.apply(x)  # type: ignore[return-value]
