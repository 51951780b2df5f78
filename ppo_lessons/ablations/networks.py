"""R networks of one shape as one: every parameter gets a leading replica axis.

    y[r] = x[r]·W[r]ᵀ + b[r]        one batched product for all replicas

Nothing is shared between replicas, so the gradient of the sum of their losses is, for each, the
gradient of its own.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn

from ppo_lessons.networks import (
    CategoricalPolicy,
    Critic,
    GaussianPolicy,
    Networks,
    gaussian_entropies,
    gaussian_log_probs,
    pick,
)

# They act on each number alone, so a replica axis changes nothing.
ELEMENTWISE = (nn.Tanh, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.GELU, nn.Sigmoid, nn.Identity)


class ReplicaLinear(nn.Module):
    """R linear layers: [R, B, inputs] → [R, B, outputs].

    Args:
        weight: Wᵀ of each replica: the gradient of a batched product then lies in memory as the
            parameter does.
        bias: b of each replica.
    """

    def __init__(self, weight: Float[Tensor, "R inputs outputs"], bias: Float[Tensor, "R outputs"]):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias)

    def forward(self, x: Float[Tensor, "R B inputs"]) -> Float[Tensor, "R B outputs"]:
        """Give x·Wᵀ + b, replica by replica."""
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight)


class ReplicaCategorical(CategoricalPolicy):
    """R policies over A actions, each with a generator of its own."""

    def sample_each(
        self, observations: Shaped[Tensor, "R N *observation"], generators: Sequence[Generator]
    ) -> tuple[Int[Tensor, "R N"], Float[Tensor, "R N"]]:
        """Draw an action in each state, as `CategoricalPolicy.sample` does for one replica."""
        log_probs = self.all_log_probs(observations)
        clocks = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
        for row, generator in zip(clocks.unbind(), generators, strict=True):
            row.exponential_(generator=generator)
        actions = (log_probs - clocks.log_()).argmax(dim=-1)
        return actions, pick(log_probs, actions)


class ReplicaGaussian(GaussianPolicy):
    """R Gaussian policies, each with spreads and a generator of its own.

    Args:
        body: observations [R, B, inputs] → means [R, B, A].
        log_stds: log σ of each replica.
    """

    def __init__(self, body: nn.Module, log_stds: Float[Tensor, "R A"]):
        super().__init__(body, log_stds.shape[-1])
        self.log_stds = nn.Parameter(log_stds)

    def sample_each(
        self, observations: Shaped[Tensor, "R N *observation"], generators: Sequence[Generator]
    ) -> tuple[Float[Tensor, "R N A"], Float[Tensor, "R N"]]:
        """Draw an action in each state, as `GaussianPolicy.sample` does for one replica."""
        means = self.means(observations)
        noise = torch.empty_like(means, memory_format=torch.contiguous_format)
        for row, generator in zip(noise.unbind(), generators, strict=True):
            row.normal_(generator=generator)
        actions = means + self.log_stds.exp().unsqueeze(1) * noise
        return actions, torch.vmap(gaussian_log_probs)(actions, means, self.log_stds)

    def evaluate(
        self, observations: Shaped[Tensor, "..."], actions: Float[Tensor, "R B A"]
    ) -> tuple[Float[Tensor, "R B"], Float[Tensor, "R B"]]:
        """Give log π(a | s) of the actions, and each policy's entropy in each state (nats)."""
        means = self.means(observations)
        log_probs = torch.vmap(gaussian_log_probs)(actions, means, self.log_stds)
        entropies = torch.vmap(gaussian_entropies)(self.log_stds)
        return log_probs, entropies.unsqueeze(1).expand_as(log_probs)


def signature(networks: nn.Module) -> tuple[Any, ...]:
    """What must be equal for networks to be stacked: kinds of layers, names and shapes."""
    kinds = tuple((name, type(module).__qualname__) for name, module in networks.named_modules())
    shapes = tuple((name, tuple(p.shape), str(p.dtype)) for name, p in networks.named_parameters())
    return kinds, shapes


def why_not_stacked(networks: nn.Module) -> str | None:
    """Say which module has no batched form, or None if all have one."""
    known = (Networks, CategoricalPolicy, GaussianPolicy, Critic, nn.Sequential, nn.Linear)
    for name, module in networks.named_modules():
        plain = type(module) in known or isinstance(module, ELEMENTWISE)
        if not plain or (isinstance(module, nn.Linear) and module.bias is None):
            return f"{name or 'the whole'} is a {type(module).__name__}"
    return None


def stack_networks(each: Sequence[nn.Module]) -> Networks:
    """Make one `Networks` of R, in which every parameter has a leading replica axis.

    Layers that policy and critic share stay shared.

    Args:
        each: the networks of the replicas; they keep their parameters.

    Returns:
        The stacked networks: observations [R, B, *observation] in, [R, B] out.

    Raises:
        ValueError: if the networks are not alike, or a layer has no batched form.
    """
    kinds = {signature(networks) for networks in each}
    if len(kinds) != 1:
        raise ValueError(
            f"the replicas have {len(kinds)} kinds of networks; expected one: the same layers, "
            "shapes and dtype. Run settings with other networks in a study of their own."
        )
    reason = why_not_stacked(each[0])
    if reason is not None:
        raise ValueError(
            f"these networks have no batched form: {reason}; expected linear layers with bias and "
            "functions of single numbers between them. Train such a setting alone."
        )
    return _stacked(list(each), {})


def _stacked(modules: list[Any], made: dict[int, nn.Module]) -> Any:
    """Stack modules of one kind; `made` remembers those that are met twice."""
    first = modules[0]
    if id(first) not in made:
        made[id(first)] = _made(modules, first, made)
    return made[id(first)]


def _made(modules: list[Any], first: Any, made: dict[int, nn.Module]) -> nn.Module:
    def part(name: str) -> Any:
        return _stacked([getattr(module, name) for module in modules], made)

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(module, name).detach() for module in modules])

    if isinstance(first, nn.Sequential):
        layers = zip(*modules, strict=True)
        return nn.Sequential(*(_stacked(list(same), made) for same in layers))
    makers: dict[type, Callable[[], nn.Module]] = {
        Networks: lambda: Networks(part("policy"), part("critic")),
        CategoricalPolicy: lambda: ReplicaCategorical(part("body")),
        GaussianPolicy: lambda: ReplicaGaussian(part("body"), stack("log_stds")),
        Critic: lambda: Critic(part("body")),
        nn.Linear: lambda: ReplicaLinear(stack("weight").mT.contiguous(), stack("bias")),
    }
    return makers[type(first)]() if type(first) in makers else first  # no parameters


@torch.no_grad()
def unstack_networks(stacked: nn.Module, each: Sequence[nn.Module]) -> None:
    """Copy the parameters of the stacked networks back into the networks of the replicas.

    Args:
        stacked: as `stack_networks` made it.
        each: the networks it was made of; changed in place.
    """
    for index, networks in enumerate(each):
        pairs = zip(networks.parameters(), stacked.parameters(), strict=True)
        for own, shared in pairs:
            own.copy_(
                shared[index].T if own.ndim == 2 else shared[index]
            )  # `ReplicaLinear` holds Wᵀ
