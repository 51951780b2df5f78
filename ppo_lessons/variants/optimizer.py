"""The optimiser of the token runs: Adam with a shorter memory, and short first steps."""

from typing import Any

from torch import nn
from torch.optim import Adam, Optimizer

from ppo_lessons.shapes import check_positive
from ppo_lessons.variants.sampling import check_at_least_one


def warm_adam(networks: nn.Module, *, learning_rate: float, warmup_steps: int = 20) -> Optimizer:
    """Make an Adam for token runs, for the slot `optimizer` of `Parts`.

        step size of optimiser step k = learning_rate · min(1, k / warmup_steps)

    Adam's first step moves every parameter by about the whole step size, however small its
    gradient is: there is no history yet to divide by. On a trained language model that step alone
    may cost nats. β₂ = 0.95 in place of 0.999 forgets the large gradients of the start in 20 steps
    and not in 1000.

    Args:
        networks: whose parameters are trained.
        learning_rate: step size after the warm-up, above 0.
        warmup_steps: optimiser steps until it is reached, at least 1; 1 is no warm-up.

    Returns:
        The optimiser, with β = (0.9, 0.95).

    Raises:
        ValueError: if a number is not above 0.
    """
    check_positive(learning_rate=learning_rate)
    check_at_least_one(warmup_steps=warmup_steps)
    optimizer = Adam(networks.parameters(), lr=learning_rate, betas=(0.9, 0.95), eps=1e-5)
    taken = 0

    def shorten(optimizer: Optimizer, *_: Any) -> None:
        nonlocal taken
        taken += 1
        for group in optimizer.param_groups:
            # read at the first step, since the loop may still give the critic a rate of its own
            whole = group.setdefault("whole_step", group["lr"])
            group["lr"] = whole * min(1.0, taken / warmup_steps)

    optimizer.register_step_pre_hook(shorten)
    return optimizer
