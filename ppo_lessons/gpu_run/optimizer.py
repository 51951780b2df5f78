"""What an optimiser keeps beside the weights, in the form that a device or a graph needs."""

import torch
from torch import Tensor
from torch.optim import Optimizer


def place_optimizer(optimizer: Optimizer, *, for_a_graph: bool = False) -> None:
    """Make step size and counters what they must be here, wherever the checkpoint was written.

    A graph reads them at fixed places on its device, so the step size is a tensor there; else it is
    a number.
    """
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = for_a_graph
        rate, device = float(group["lr"]), group["params"][0].device
        group["lr"] = torch.tensor(rate, device=device) if for_a_graph else rate
        on_device = for_a_graph or group.get("fused")
        for parameter in group["params"]:
            kept = optimizer.state.get(parameter, {})
            if isinstance(kept.get("step"), Tensor):
                kept["step"] = kept["step"].to(parameter.device if on_device else "cpu")


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the step size; where it is a tensor, in place, since a graph reads it there."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate
