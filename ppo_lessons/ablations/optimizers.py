"""One optimiser step for R replicas: each gradient is shortened by itself, each step has its size.

g[r] ← g[r]·min(1, longest[r] / |g[r]|),      then Adam, number by number

What the loss of a replica leaves out has no gradient, which is not a gradient of 0: momentum and
weight decay do not move it either.
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from ppo_lessons.ablations.slots import Rows, identity
from ppo_lessons.training_loop import Parts, PPOConfig

# Each number moves by its own gradient alone, so replicas do not meet in there.
KNOWN = (Adam, AdamW, SGD, RMSprop)


class ReplicaOptimizer:
    """The optimisers of R replicas, over stacked networks.

    Neighbours with the same optimiser and step size share one; it moves their rows of the stacked
    parameters, in place.

    Args:
        networks: stacked.
        configs: of each replica, for step sizes and the longest gradient.
        parts: of each replica, for the optimiser.

    Raises:
        ValueError: if an optimiser mixes the numbers that it moves.
    """

    def __init__(self, networks: nn.Module, configs: Sequence[PPOConfig], parts: Sequence[Parts]):
        self.parameters = list(networks.parameters())
        self._segments: list[tuple[Optimizer, slice, PPOConfig]] = []
        self._views: list[list[nn.Parameter]] = []
        for rows in neighbours(configs, parts):
            config = configs[rows.start]
            own = deepcopy(networks)
            for view, shared in zip(own.parameters(), self.parameters, strict=True):
                view.data = shared.data[rows]  # the same memory
            made = parts[rows.start].call("optimizer", own, learning_rate=config.learning_rate)
            check_optimizer(made)
            self._segments.append((made, rows, config))
            self._views.append(list(own.parameters()))
        longest = [config.max_grad_norm for config in configs]
        first = self.parameters[0]
        self._longest = torch.tensor(longest, dtype=first.dtype, device=first.device)

    def set_learning_rates(self, iteration: int) -> None:
        """Set the step sizes of an iteration, counted from 0."""
        for optimizer, _, config in self._segments:
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate_at(iteration)

    def step(
        self, losses: Float[Tensor, " R"], left_out: Sequence[tuple[int, Rows]] = ()
    ) -> Float[Tensor, " R"]:
        """Take one step with each replica, along a gradient that is at most so long.

        Args:
            losses: one for each replica. They are added, not averaged: then each gradient is that
                of its own loss.
            left_out: what `without_gradient` found: these numbers stay as they are.

        Returns:
            The length of each replica's gradient before it was shortened.
        """
        gradients = torch.autograd.grad(
            losses.sum(), self.parameters, allow_unused=True, materialize_grads=True
        )
        lengths = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients])
        lengths = lengths.norm(dim=0)
        # as in torch's clip_grad_norm_
        factors = (self._longest / (lengths + 1e-6)).clamp(max=1)
        for gradient in gradients:
            gradient.mul_(factors.view(-1, *[1] * (gradient.ndim - 1)))
        resting = [(self.parameters[place].detach(), rows) for place, rows in left_out]
        before = [numbers[rows].clone() for numbers, rows in resting]
        for (optimizer, rows, _), views in zip(self._segments, self._views, strict=True):
            for view, gradient in zip(views, gradients, strict=True):
                view.grad = gradient[rows].contiguous()  # the fused Adam reads memory in order
            optimizer.step()
        for (numbers, rows), as_it_was in zip(resting, before, strict=True):
            numbers[rows] = as_it_was
        return lengths

    @torch.no_grad()
    def silence(self, broken: Sequence[int]) -> None:
        """Set all numbers of some replicas to 0, so that they run on without harm."""
        for parameter in self.parameters:
            parameter[list(broken)] = 0
        for optimizer, _, _ in self._segments:
            for kept in optimizer.state.values():
                for number in kept.values():
                    if isinstance(number, Tensor):
                        number.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def state_dict(self) -> list[dict[str, Any]]:
        """What each optimiser keeps beside the parameters."""
        return [optimizer.state_dict() for optimizer, _, _ in self._segments]

    def load_state_dict(self, saved: Sequence[dict[str, Any]]) -> None:
        """Go on where `state_dict` was taken."""
        for (optimizer, _, _), state in zip(self._segments, saved, strict=True):
            optimizer.load_state_dict(deepcopy(state))


def without_gradient(
    losses: Sequence[tuple[Rows, Tensor]], parameters: Sequence[nn.Parameter]
) -> list[tuple[int, Rows]]:
    """Find the parameters that the losses of some replicas leave out.

    Args:
        losses: groups of replicas, and the losses of each group.
        parameters: of the stacked networks.

    Returns:
        The place of a parameter among `parameters`, and the replicas whose loss does not depend
        on it.
    """
    found = []
    for rows, loss in losses:
        reached = reached_from(loss)
        found += [(place, rows) for place, p in enumerate(parameters) if id(p) not in reached]
    return found


def reached_from(loss: Tensor) -> set[int]:
    """Walk the graph that a tensor was computed by, and give the ids of its parameters."""
    seen, ahead = set(), [loss.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            ahead += [function for function, _ in node.next_functions]
    return {id(node.variable) for node in seen if hasattr(node, "variable")}


def neighbours(configs: Sequence[PPOConfig], parts: Sequence[Parts]) -> list[slice]:
    """Cut the replicas where optimiser or step size change."""
    keys = [
        (identity(own.optimizer), config.learning_rate, config.final_learning_rate)
        for config, own in zip(configs, parts, strict=True)
    ]
    changes = [index for index in range(1, len(keys)) if keys[index] != keys[index - 1]]
    cuts = [0, *changes, len(keys)]
    return [slice(low, high) for low, high in pairwise(cuts)]


def check_optimizer(optimizer: Any) -> None:
    """Require an optimiser that moves each number by its own gradient.

    Raises:
        ValueError: otherwise.
    """
    if type(optimizer) not in KNOWN:
        raise ValueError(
            f"Parts.optimizer makes {type(optimizer).__name__}; expected one of "
            f"{', '.join(kind.__name__ for kind in KNOWN)}, which move each number by its own "
            "gradient. Train such a setting alone."
        )
