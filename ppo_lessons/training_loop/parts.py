"""The loop's slots: a variant or a mistake is another function in one of them, never a flag."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.optim import Adam, Optimizer

from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.critic import value_loss
from ppo_lessons.gae import compute_gae, normalize_advantages
from ppo_lessons.networks import make_networks
from ppo_lessons.rollout import collect_rollout, score_values


def make_optimizer(networks: nn.Module, *, learning_rate: float) -> Optimizer:
    """Make the Adam that PPO implementations use: its epsilon is 10⁻⁵, not torch's 10⁻⁸.

    Args:
        networks: whose parameters are trained.
        learning_rate: step size of the first iteration.

    Returns:
        The optimiser.
    """
    return Adam(networks.parameters(), lr=learning_rate, eps=1e-5, fused=True)


def shuffled_minibatches(
    num_rows: int, num_minibatches: int, *, generator: Generator
) -> Iterator[Int[Tensor, " M"]]:
    """Deal all rows into minibatches, in a new order each time; every row comes exactly once.

    Args:
        num_rows: B.
        num_minibatches: from 1 to B; their sizes differ by at most one row.
        generator: the only source of randomness.

    Returns:
        The indices of each minibatch.
    """
    order = torch.randperm(num_rows, generator=generator, device=generator.device)
    return iter(order.tensor_split(num_minibatches))


def ppo_loss(
    policy_loss: Float[Tensor, ""],
    value_loss: Float[Tensor, ""],
    entropy: Float[Tensor, ""],
    *,
    value_coef: float,
    entropy_coef: float,
) -> Float[Tensor, ""]:
    """Add the three up into the one number that is minimised.

        loss = policy_loss + c1·value_loss − c2·entropy

    Args:
        policy_loss: minimised.
        value_loss: minimised (discounted reward, squared).
        entropy: mean entropy of the policy (nats); more of it is rewarded.
        value_coef: c1 (1 / reward).
        entropy_coef: c2 (reward / nat).

    Returns:
        The loss.

    Source: Schulman et al. 2017 (PPO), eq. 9, with its sign turned; there the value loss is the
    whole squared error, ours is half of it.
    """
    return policy_loss + value_coef * value_loss - entropy_coef * entropy


def clipped_gradient_step(
    loss: Float[Tensor, ""], networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Float[Tensor, ""]:
    """Take one optimiser step along a gradient that is at most so long.

    Args:
        loss: what is minimised.
        networks: whose gradients are measured and shortened together.
        optimizer: takes the step.
        max_grad_norm: longest gradient that is applied as it is.

    Returns:
        The gradient's norm before it was shortened.
    """
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


def use_all_epochs(kl_k1: float) -> bool:
    """Never end the squeeze stage early."""
    return False


@dataclass(frozen=True)
class Parts:
    """The functions that the loop is made of; each may be replaced by one with the same arguments.

    Positional arguments are given in the order below. Arguments after the bar are given by name,
    and only to functions that name them, so a loss of your own need not know about masks.

    Attributes:
        networks: (observation_shape, action_space | hidden_sizes, generator) → Networks.
        optimizer: (networks | learning_rate) → Optimizer.
        collect: (envs, policy, carry | num_steps, generator, out) → rollout, carry.
        score: (critic, rollout) → values, next_values.
        advantages: (rewards, values, next_values, terminated, truncated | gamma, gae_lambda) → Â.
        minibatches: (num_rows, num_minibatches | generator) → iterator of row indices.
        normalize: (advantages | mask) → Â as the policy loss sees it.
        policy_loss: (log_probs, log_probs_old, advantages | clip_epsilon, mask) → scalar.
        value_loss: (values, returns | values_old, clip_epsilon, mask) → scalar.
        total_loss: (policy_loss, value_loss, entropy | value_coef, entropy_coef) → scalar.
        gradient_step: (loss, networks, optimizer | max_grad_norm) → gradient norm.
        stop_epochs: (kl_k1) → true to leave the remaining epochs out; asked after each epoch with
            that epoch's mean kl_k1 (nats).

    Raises:
        TypeError: if a function cannot be called with what its slot offers.
    """

    networks: Callable[..., Any] = make_networks
    optimizer: Callable[..., Any] = make_optimizer
    collect: Callable[..., Any] = collect_rollout
    score: Callable[..., Any] = score_values
    advantages: Callable[..., Any] = compute_gae
    minibatches: Callable[..., Any] = shuffled_minibatches
    normalize: Callable[..., Any] = normalize_advantages
    policy_loss: Callable[..., Any] = clipped_surrogate_loss
    value_loss: Callable[..., Any] = value_loss
    total_loss: Callable[..., Any] = ppo_loss
    gradient_step: Callable[..., Any] = clipped_gradient_step
    stop_epochs: Callable[..., Any] = use_all_epochs

    def __post_init__(self) -> None:
        """Check that each function fits its slot, before any training time is spent."""
        for slot in fields(self):
            check_fits(slot.name, getattr(self, slot.name))
        given = {
            slot.name: given_keywords(slot.name, getattr(self, slot.name)) for slot in fields(self)
        }
        object.__setattr__(self, "_given", given)  # looked up once; a frozen class has no other way

    def call(self, slot: str, *positional: Any, **offered: Any) -> Any:
        """Call the function in a slot with the keywords that it names."""
        given = {name: value for name, value in offered.items() if self.names(slot, name)}
        return getattr(self, slot)(*positional, **given)

    def names(self, slot: str, keyword: str) -> bool:
        """Say whether the function in a slot takes a keyword."""
        return keyword in self.__dict__["_given"][slot]


# What each slot offers: the names of its positional arguments, and of its keywords.
OFFERED: dict[str, tuple[str, str]] = {
    "networks": ("observation_shape action_space", "hidden_sizes generator"),
    "optimizer": ("networks", "learning_rate"),
    "collect": ("envs policy carry", "num_steps generator out"),
    "score": ("critic rollout", ""),
    "advantages": ("rewards values next_values terminated truncated", "gamma gae_lambda"),
    "minibatches": ("num_rows num_minibatches", "generator"),
    "normalize": ("advantages", "mask"),
    "policy_loss": ("log_probs log_probs_old advantages", "clip_epsilon mask"),
    "value_loss": ("values returns", "values_old clip_epsilon mask"),
    "total_loss": ("policy_loss value_loss entropy", "value_coef entropy_coef"),
    "gradient_step": ("loss networks optimizer", "max_grad_norm"),
    "stop_epochs": ("kl_k1", ""),
}


def check_fits(slot: str, function: Any) -> None:
    """Require that a function can be called as its slot will call it.

    Raises:
        TypeError: with the slot, the function, what it asks for and what the slot offers.
    """
    positional, keywords = (names.split() for names in OFFERED[slot])
    offer = f"({', '.join(positional)}{' | ' if keywords else ''}{', '.join(keywords)})"
    if not callable(function):
        raise TypeError(
            f"Parts.{slot} is {function!r}; expected a function of {offer}. Pass the function "
            "itself, without calling it."
        )
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in callables hide theirs; the call itself will tell
        return
    try:
        signature.bind(*positional, **dict.fromkeys(given_keywords(slot, function)))
    except TypeError as error:
        label = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"Parts.{slot} is {label}{signature}, which does not fit ({error}); expected "
            f"a function of {offer}, where those after the bar are optional. Rename or add its "
            "arguments."
        ) from None


def given_keywords(slot: str, function: Any) -> frozenset[str]:
    """Which of a slot's keywords a function is given: those that it names, or all with `**`.

    What a `functools.partial` has fixed stays fixed: it is not offered again.
    """
    offered = frozenset(OFFERED[slot][1].split())
    fixed = frozenset(function.keywords) if isinstance(function, partial) else frozenset()
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return offered - fixed
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return offered - fixed
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {parameter.name for parameter in parameters if parameter.kind in by_name}
    return (offered & named) - fixed
