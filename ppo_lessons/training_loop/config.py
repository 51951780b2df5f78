"""The settings of a run: every number in one frozen place, each with its unit and range."""

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class PPOConfig:
    """All numbers of a run. What they switch is not here: a variant is another function in `Parts`.

    The defaults are tuned for CartPole on one CPU core.
    """

    env: str = "CartPole-v1"
    """The id under which gymnasium knows the environment."""
    seed: int = 1
    """Seed of everything random, from 0 to 2⁶³ − 1."""
    total_steps: int = 100_000
    """Environment steps in all; the last incomplete iteration is left out."""
    num_envs: int = 32
    """N, environments side by side, at least 1."""
    num_steps: int = 64
    """T, steps per rollout in each environment, at least 1."""
    num_epochs: int = 8
    """K, passes over each rollout, at least 1."""
    num_minibatches: int = 4
    """M, gradient steps per epoch, from 1 to T·N."""
    learning_rate: float = 2e-3
    """Adam's step size at the start, above 0."""
    final_learning_rate: float = 0.0
    """Adam's step size at the end, as a fraction of the start, in [0, 1]; linear in between."""
    gamma: float = 0.99
    """γ, discount per environment step, in [0, 1]."""
    gae_lambda: float = 0.95
    """λ, how far GAE looks before it believes the critic, in [0, 1]."""
    clip_epsilon: float = 0.2
    """ε, the change of a ratio up to which the objective pays, above 0."""
    value_coef: float = 0.5
    """c1, weight of the value loss, at least 0 (1 / reward)."""
    entropy_coef: float = 0.0
    """c2, weight of the entropy, at least 0 (reward / nat)."""
    max_grad_norm: float = 0.5
    """Longest gradient that is applied as it is, above 0; longer ones are shortened."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of each network, each at least 1."""

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ValueError: with the first field that is out of its range.
            TypeError: with the first field of another type.
        """
        check_types(self)
        check_ranges(self)

    @property
    def batch_size(self) -> int:
        """B = T·N, samples per iteration."""
        return self.num_steps * self.num_envs

    @property
    def num_iterations(self) -> int:
        """Rollouts in all: as many as fit into total_steps."""
        return self.total_steps // self.batch_size

    def learning_rate_at(self, iteration: int) -> float:
        """Adam's step size in an iteration, counted from 0; linear from first to last."""
        left = 1 - iteration / self.num_iterations
        return self.learning_rate * (self.final_learning_rate * (1 - left) + left)


def check_types(config: PPOConfig) -> None:
    """Require an int where an int belongs, a number where a number belongs.

    Raises:
        TypeError: with the field, what was given, and what was expected.
    """
    for field in fields(config):
        value: Any = getattr(config, field.name)
        wanted = field.type
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            continue
        kind = tuple if field.name == "hidden_sizes" else wanted
        if not isinstance(value, kind) or isinstance(value, bool):  # type: ignore[arg-type]
            name = getattr(kind, "__name__", kind)
            raise TypeError(
                f"{field.name} is {value!r}, a {type(value).__name__}; expected {name}. "
                f"Give {field.name} as {name}."
            )
    for size in config.hidden_sizes:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(
                f"hidden_sizes holds {size!r}, a {type(size).__name__}; expected int. "
                "Give hidden_sizes as integers, like (64, 64)."
            )


LARGEST_SEED = 2**63 - 1


def check_ranges(config: PPOConfig) -> None:
    """Require every field in its range.

    Raises:
        ValueError: with the field, what was given, and what was expected.
    """
    at_least = {"seed": 0, "num_envs": 1, "num_steps": 1, "num_epochs": 1, "num_minibatches": 1}
    at_least |= {"value_coef": 0, "entropy_coef": 0}
    for name, low in at_least.items():
        _require(name, getattr(config, name), f"at least {low}", getattr(config, name) >= low)
    for name in ("value_coef", "entropy_coef", "learning_rate", "clip_epsilon"):
        _require(name, getattr(config, name), "finite", math.isfinite(getattr(config, name)))
    _require("seed", config.seed, "at most 2⁶³ − 1", config.seed <= LARGEST_SEED)
    for name in ("learning_rate", "clip_epsilon", "max_grad_norm"):
        _require(name, getattr(config, name), "above 0", getattr(config, name) > 0)
    for name in ("gamma", "gae_lambda", "final_learning_rate"):
        number = getattr(config, name)
        _require(name, number, "in [0, 1]", 0 <= number <= 1)
    sizes = config.hidden_sizes
    _require("hidden_sizes", sizes, "widths of at least 1", all(size >= 1 for size in sizes))
    size = config.batch_size
    _require(
        "num_minibatches", config.num_minibatches, f"at most num_steps·num_envs = {size}",
        config.num_minibatches <= size,
    )  # fmt: skip
    _require(
        "total_steps", config.total_steps, f"at least num_steps·num_envs = {size}",
        config.total_steps >= size,
    )  # fmt: skip


def _require(name: str, value: Any, expected: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}; expected {expected}. Choose {name} in that range.")
