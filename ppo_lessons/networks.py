"""Policy and critic: two small networks, initialised from a generator that is passed in."""

from collections.abc import Sequence
from itertools import pairwise
from math import e, log, pi, sqrt
from typing import Any, Protocol, cast, runtime_checkable

import torch
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn
from torch.nn.utils import skip_init

from ppo_lessons.activations import Tanh
from ppo_lessons.shapes import check_same_shape

HIDDEN_GAIN = sqrt(2)
POLICY_GAIN = 0.01  # logits or means near 0: the first policy hardly depends on the state
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
        layers += [linear(before, after, gain=HIDDEN_GAIN, generator=generator), Tanh()]
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

    def all_log_probs(self, observations: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch A"]:
        """Log π(a | s) of every action (nats)."""
        return self.body(observations).log_softmax(dim=-1)

    def sample(
        self, observations: Shaped[Tensor, "..."], generator: Generator
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
        observations: Shaped[Tensor, "..."],
        actions: Int[Tensor, "*batch"],
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Give log π(a | s) of the actions, and the policy's entropy in each state (nats)."""
        log_probs = self.all_log_probs(observations)
        probabilities = log_probs.exp()
        # an action that is ruled out (logit −∞) adds 0, and 0·∞ would be NaN
        entropies = -(probabilities * log_probs.masked_fill(probabilities == 0, 0)).sum(dim=-1)
        return pick(log_probs, actions), entropies

    def greedy(self, observations: Shaped[Tensor, "..."]) -> Int[Tensor, "*batch"]:
        """The most likely action in each state."""
        return self.all_log_probs(observations).argmax(dim=-1)


def gaussian_log_probs(
    actions: Float[Tensor, "*batch A"],
    means: Float[Tensor, "*batch A"],
    log_stds: Float[Tensor, " A"],
) -> Float[Tensor, "*batch"]:
    """Give the log-density of actions whose A dimensions are drawn independently.

        log π(a | s) = Σ_j [ −½·((a_j − μ_j) / σ_j)² − log σ_j − ½·log 2π ]

    A density may exceed 1, so this number may be positive.

    Args:
        actions: a, as they were drawn (unit of the action).
        means: μ(s) (unit of the action).
        log_stds: log σ, the same in all states.

    Returns:
        One number for each action, summed over its dimensions (nats).

    Raises:
        ValueError: if actions and means differ in shape, or log_stds has not A entries.
    """
    check_same_shape(means=means, actions=actions)
    check_log_stds(log_stds, means)
    distances = (actions - means) * (-log_stds).exp()
    per_dimension = -0.5 * distances.square() - log_stds - 0.5 * log(2 * pi)
    return per_dimension.sum(dim=-1)


def gaussian_entropies(log_stds: Float[Tensor, " A"]) -> Float[Tensor, ""]:
    """Give the entropy of a Gaussian with independent dimensions.

        H = Σ_j [ log σ_j + ½·log 2πe ]

    The means do not enter. Below σ = 1/√(2πe) = 0.242 a dimension's entropy is negative.

    Args:
        log_stds: log σ of each dimension.

    Returns:
        The entropy (nats).
    """
    return (log_stds + 0.5 * log(2 * pi * e)).sum()


def check_log_stds(log_stds: Tensor, means: Tensor) -> None:
    """Require one log σ for each dimension of an action.

    Raises:
        ValueError: otherwise.
    """
    if log_stds.shape != means.shape[-1:]:
        raise ValueError(
            f"log_stds has shape {tuple(log_stds.shape)}; expected {tuple(means.shape[-1:])}, one "
            f"for each dimension of means of shape {tuple(means.shape)}. Give one number per "
            "dimension of an action."
        )


class GaussianPolicy(nn.Module):
    """A policy over A real numbers: independent Gaussians around the means that a network gives.

    The standard deviations σ are the same in all states; their logarithms are parameters.

    Args:
        body: observations [..., *observation] → means [..., A].
        num_dimensions: A.
        log_std: log σ at the start, in each dimension.
    """

    def __init__(self, body: nn.Module, num_dimensions: int, *, log_std: int | float = 0.0):
        super().__init__()
        self.body = body
        self.log_stds = nn.Parameter(torch.full((num_dimensions,), float(log_std)))

    def means(self, observations: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch A"]:
        """μ(s), the most likely action in each state."""
        return self.body(observations)

    def sample(
        self, observations: Shaped[Tensor, "..."], generator: Generator
    ) -> tuple[Float[Tensor, "*batch A"], Float[Tensor, "*batch"]]:
        """Draw an action in each state: a = μ + σ·z with z standard normal.

        Args:
            observations: s.
            generator: the only source of randomness.

        Returns:
            The actions, and log π(a | s) of each (nats).
        """
        means = self.means(observations)
        noise = torch.empty_like(means).normal_(generator=generator)
        actions = means + self.log_stds.exp() * noise
        return actions, gaussian_log_probs(actions, means, self.log_stds)

    def evaluate(
        self, observations: Shaped[Tensor, "..."], actions: Float[Tensor, "*batch A"]
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Give log π(a | s) of the actions, and the policy's entropy in each state (nats)."""
        log_probs = gaussian_log_probs(actions, self.means(observations), self.log_stds)
        return log_probs, gaussian_entropies(self.log_stds).expand_as(log_probs)

    def greedy(self, observations: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch A"]:
        """The most likely action in each state: the mean."""
        return self.means(observations)


class Critic(nn.Module):
    """V(s): one number per state.

    Args:
        body: observations [..., *observation] → [..., 1].
    """

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, observations: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
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


def num_outputs(action_space: int | Space[Any]) -> int:
    """How many numbers a policy's network gives: a logit per action, or a mean per dimension.

    Raises:
        ValueError: if there is no policy for the action space.
    """
    if isinstance(action_space, int):
        return action_space
    if isinstance(action_space, Discrete) and action_space.start == 0:
        return int(action_space.n)
    if isinstance(action_space, Box) and len(action_space.shape) == 1:
        return action_space.shape[0]
    raise ValueError(
        f"the action space is {action_space}; expected Discrete actions counted from 0, or real "
        "numbers in a Box with one axis. Wrap the environment so that its actions are of such a "
        "kind, or pass a function of your own as Parts(networks=...)."
    )


def policy_for(action_space: int | Space[Any], body: nn.Module) -> nn.Module:
    """Put the distribution that an action space needs on a network's outputs."""
    if isinstance(action_space, Box):
        return GaussianPolicy(body, num_outputs(action_space))
    return CategoricalPolicy(body)


def make_networks(
    observation_shape: Sequence[int],
    action_space: int | Space[Any],
    *,
    hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:
    """Make a policy and a critic that share nothing.

    Args:
        observation_shape: shape of one observation; one axis.
        action_space: `Discrete`, or the number of its actions, for a `CategoricalPolicy`; a `Box`
            with one axis for a `GaussianPolicy`.
        hidden_sizes: widths of the hidden layers of each.
        generator: the only source of randomness.

    Returns:
        Both networks, on the CPU.

    Raises:
        ValueError: if an observation has more than one axis, or the action space is of another
            kind.
    """
    if len(observation_shape) != 1:
        raise ValueError(
            f"one observation has shape {tuple(observation_shape)}; expected one axis. Wrap the "
            "environment with gymnasium.wrappers.FlattenObservation, or pass a function of your "
            "own as Parts(networks=...); for boards and pictures there is networks.pixel_networks."
        )
    inputs, outputs = observation_shape[0], num_outputs(action_space)
    policy = mlp(inputs, hidden_sizes, outputs, output_gain=POLICY_GAIN, generator=generator)
    critic = mlp(inputs, hidden_sizes, 1, output_gain=CRITIC_GAIN, generator=generator)
    return Networks(policy_for(action_space, policy), Critic(critic))


NUM_FILTERS, FILTER = 16, 3  # filters of 3 × 3 cells


class Board(nn.Module):
    """Look at small boards through 16 filters of 3 × 3 cells: [..., H, W, C] → [..., features].

    Args:
        board_shape: (H, W, C), rows, columns, channels; at least 3 rows and columns.
        generator: the only source of randomness.
    """

    def __init__(self, board_shape: Sequence[int], *, generator: Generator):
        super().__init__()
        height, width, channels = board_shape
        self.filters = cast(
            nn.Conv2d, skip_init(nn.Conv2d, channels, NUM_FILTERS, FILTER, dtype=torch.float32)
        )
        nn.init.orthogonal_(self.filters.weight, HIDDEN_GAIN, generator=generator)
        nn.init.zeros_(cast(Tensor, self.filters.bias))
        self.num_features = NUM_FILTERS * (height - FILTER + 1) * (width - FILTER + 1)

    def forward(
        self, boards: Shaped[Tensor, "*batch H W C"]
    ) -> Float[Tensor, "*batch num_features"]:
        """Filter, and cut what is negative."""
        rows = boards.reshape(-1, *boards.shape[-3:]).to(self.filters.weight.dtype)
        seen = self.filters(rows.movedim(-1, -3)).relu()
        return seen.reshape(*boards.shape[:-3], self.num_features)


def pixel_networks(
    observation_shape: Sequence[int],
    action_space: int | Space[Any],
    *,
    hidden_sizes: Sequence[int],
    generator: Generator,
) -> Networks:
    """Make a policy and a critic that look at boards; they share nothing.

    Args:
        observation_shape: (H, W, C) of one board, bool or real: rows, columns, channels.
        action_space: as for `make_networks`.
        hidden_sizes: widths of the layers between the filters and the outputs.
        generator: the only source of randomness.

    Returns:
        Both networks, on the CPU.

    Raises:
        ValueError: if an observation is no board, or the action space is of another kind.
    """
    if len(observation_shape) != 3 or min(observation_shape[:2]) < FILTER:
        raise ValueError(
            f"one observation has shape {tuple(observation_shape)}; expected (rows, columns, "
            f"channels) with at least {FILTER} rows and columns. Choose make_networks for "
            "observations with one axis."
        )

    def body(outputs: int, gain: float) -> nn.Sequential:
        board = Board(observation_shape, generator=generator)
        head = mlp(board.num_features, hidden_sizes, outputs, output_gain=gain, generator=generator)
        return nn.Sequential(board, head)

    policy = body(num_outputs(action_space), POLICY_GAIN)
    return Networks(policy_for(action_space, policy), Critic(body(1, CRITIC_GAIN)))
