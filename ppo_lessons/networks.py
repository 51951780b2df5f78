"""Policy and critic: two small networks, initialised from a generator that is passed in."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn
from torch.nn.utils import skip_init

HIDDEN_GAIN = sqrt(2)
POLICY_GAIN = 0.01  # logits near 0: the first policy is nearly uniform
CRITIC_GAIN = 1.0


def linear(inputs: int, outputs: int, *, gain: float, generator: Generator) -> nn.Linear:
    """Make a linear layer with orthogonal weights and zero bias.

    Args:
        inputs: number of input features.
        outputs: number of output features.
        gain: factor on the orthogonal weights.
        generator: the only source of randomness; torch's global one is left alone.

    Returns:
        The layer, on the CPU.

    Source: Saxe et al. 2014 (orthogonal initialisation).
    """
    layer = cast(nn.Linear, skip_init(nn.Linear, inputs, outputs, dtype=torch.float32))
    nn.init.orthogonal_(layer.weight, gain, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(
    inputs: int,
    hidden_sizes: Sequence[int],
    outputs: int,
    *,
    output_gain: float,
    generator: Generator,
) -> nn.Sequential:
    """Make a multi-layer perceptron with tanh between its layers.

    Args:
        inputs: number of input features.
        hidden_sizes: width of each hidden layer.
        outputs: number of outputs; no function follows the last layer.
        output_gain: factor on the last layer's orthogonal weights.
        generator: the only source of randomness.

    Returns:
        The network, on the CPU.
    """
    layers: list[nn.Module] = []
    for before, after in pairwise([inputs, *hidden_sizes]):
        layers += [linear(before, after, gain=HIDDEN_GAIN, generator=generator), nn.Tanh()]
    last = hidden_sizes[-1] if hidden_sizes else inputs
    return nn.Sequential(*layers, linear(last, outputs, gain=output_gain, generator=generator))


@runtime_checkable
class Policy(Protocol):
    """What the loop needs of a policy: draw actions, rate actions, choose the most likely one."""

    def sample(self, observations: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw actions; give them and log π(a | s) of each (nats)."""
        ...

    def evaluate(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Give log π(a | s) of the actions and the entropy in each state (nats)."""
        ...

    def greedy(self, observations: Tensor) -> Tensor:
        """The most likely action in each state."""
        ...


class CategoricalPolicy(nn.Module):
    """A policy over A actions: softmax of the logits that a network gives.

    Args:
        body: observations [..., *observation] → logits [..., A].
    """

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def all_log_probs(
        self, observations: Shaped[Tensor, "*batch features"]
    ) -> Float[Tensor, "*batch A"]:
        """Log π(a | s) of every action (nats)."""
        return self.body(observations).log_softmax(dim=-1)

    def sample(
        self, observations: Shaped[Tensor, "*batch features"], generator: Generator
    ) -> tuple[Int[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Draw an action in each state.

        Args:
            observations: s.
            generator: the only source of randomness.

        Returns:
            The actions, and log π(a | s) of each (nats).
        """
        log_probs = self.all_log_probs(observations)
        # A race of exponential clocks with rates π: each action wins with its own probability.
        clocks = torch.empty_like(log_probs).exponential_(generator=generator)
        actions = (log_probs - clocks.log()).argmax(dim=-1)
        return actions, pick(log_probs, actions)

    def evaluate(
        self,
        observations: Shaped[Tensor, "*batch features"],
        actions: Int[Tensor, "*batch"],
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Give log π(a | s) of the actions, and the policy's entropy in each state (nats)."""
        log_probs = self.all_log_probs(observations)
        probabilities = log_probs.exp()
        # an action that is ruled out (logit −∞) adds 0, and 0·∞ would be NaN
        entropies = -(probabilities * log_probs.masked_fill(probabilities == 0, 0)).sum(dim=-1)
        return pick(log_probs, actions), entropies

    def greedy(self, observations: Shaped[Tensor, "*batch features"]) -> Int[Tensor, "*batch"]:
        """The most likely action in each state."""
        return self.all_log_probs(observations).argmax(dim=-1)


class Critic(nn.Module):
    """V(s): one number per state.

    Args:
        body: observations [..., *observation] → [..., 1].
    """

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, observations: Shaped[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        """V(s) (discounted reward), with the last axis taken away: [..., 1] would broadcast."""
        return self.body(observations).squeeze(-1)


class Networks(nn.Module):
    """The two networks that are trained together, under one roof for optimiser and checkpoint."""

    policy: Any  # a module that is a Policy
    critic: Any  # a module: observations → V

    def __init__(self, policy: nn.Module, critic: nn.Module):
        super().__init__()
        self.policy = policy
        self.critic = critic


def pick(
    log_probs: Float[Tensor, "*batch A"], actions: Int[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """Take the entry of the last axis that each action names."""
    return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def make_networks(
    observation_shape: Sequence[int],
    num_actions: int,
    *,
    hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:
    """Make a policy and a critic that share nothing.

    Args:
        observation_shape: shape of one observation; one axis.
        num_actions: A, at least 2 for there to be a choice.
        hidden_sizes: widths of the hidden layers of each.
        generator: the only source of randomness.

    Returns:
        Both networks, on the CPU.

    Raises:
        ValueError: if an observation has more than one axis.
    """
    if len(observation_shape) != 1:
        raise ValueError(
            f"one observation has shape {tuple(observation_shape)}; expected one axis. Wrap the "
            "environment with gymnasium.wrappers.FlattenObservation, or pass a function of your "
            "own as Parts(networks=...)."
        )
    inputs = observation_shape[0]
    policy = mlp(inputs, hidden_sizes, num_actions, output_gain=POLICY_GAIN, generator=generator)
    critic = mlp(inputs, hidden_sizes, 1, output_gain=CRITIC_GAIN, generator=generator)
    return Networks(CategoricalPolicy(policy), Critic(critic))
