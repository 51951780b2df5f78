"""Slow definitions, in plain Python numbers, that the fast functions are compared with.

Nothing here calls the package. Tensors are turned into nested lists first, so that neither
broadcasting nor autograd can make oracle and function agree by the same accident.
"""

import math

import torch
from hypothesis import Phase, settings
from torch import Tensor

# Cases are small as drawn, and the battery of mistakes fails on purpose: shrinking its failures
# would take most of the time.
examples = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
)


def float64(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def flags(*steps: int) -> Tensor:
    return torch.tensor(steps, dtype=torch.bool)


def column(*numbers: float) -> Tensor:
    """One environment: the numbers go down in time."""
    return float64(*numbers).unsqueeze(-1)


def draw_rollout(seed: int, num_steps: int, num_envs: int) -> dict[str, Tensor]:
    """Draw rewards, values and flags as a rollout would have them.

    `next_values[t]` is `values[t + 1]` inside an episode. At an end, and at the last row, it is a
    number of its own: the critic's answer to an observation that is in no row. A step may be
    terminated and truncated at once.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (num_steps, num_envs)

    def normal() -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def coin() -> Tensor:
        return torch.rand(shape, generator=generator) < 0.25

    rewards, values, next_values = normal(), normal(), normal()
    terminated, truncated = coin(), coin()
    inside = ~(terminated | truncated)[:-1]
    next_values[:-1] = torch.where(inside, values[1:], next_values[:-1])
    return {
        "rewards": rewards,
        "values": values,
        "next_values": next_values,
        "terminated": terminated,
        "truncated": truncated,
    }


def by_column(function, *tables: Tensor) -> Tensor:
    """Apply a function of one environment's lists to each environment."""
    columns = zip(*(table.T.tolist() for table in tables), strict=True)
    return torch.tensor([function(*lists) for lists in columns], dtype=torch.float64).T


# --- Returns -------------------------------------------------------------------------------------


def end_of_episode(ended: list[bool], t: int) -> int:
    """The step, from t on, at which the episode ends, or the last one."""
    return next((k for k in range(t, len(ended)) if ended[k]), len(ended) - 1)


def rewards_to_go(rewards: Tensor, ended: Tensor, gamma: float) -> Tensor:
    """Σ_{k=t}^{end} γ^{k−t}·r_k, term by term."""

    def of_one(rewards, ended):
        return [
            math.fsum(gamma ** (k - t) * rewards[k] for k in range(t, end_of_episode(ended, t) + 1))
            for t in range(len(rewards))
        ]

    return by_column(of_one, rewards, ended)


def n_step_return(rewards, next_values, terminated, t: int, steps: int, gamma: float) -> float:
    """Σ_{k<n} γᵏ·r_{t+k} + γⁿ·V(s_{t+n}); the last term is missing if that step terminated."""
    last = t + steps - 1
    total = math.fsum(gamma**k * rewards[t + k] for k in range(steps))
    return total if terminated[last] else total + gamma**steps * next_values[last]


def bootstrapped_returns(rewards, next_values, terminated, truncated, gamma: float) -> Tensor:
    """The longest n-step return that stays in the episode and in the rollout."""

    def of_one(rewards, next_values, terminated, truncated):
        ended = [a or b for a, b in zip(terminated, truncated, strict=True)]
        return [
            n_step_return(
                rewards, next_values, terminated, t, end_of_episode(ended, t) - t + 1, gamma
            )
            for t in range(len(rewards))
        ]

    return by_column(of_one, rewards, next_values, terminated, truncated)


def known_returns(rewards, terminated, truncated, gamma: float) -> tuple[Tensor, Tensor]:
    """Look forward from each step: known if the first end ahead is a termination."""
    ended = terminated | truncated

    def is_known(terminated, ended):
        return [terminated[end_of_episode(ended, t)] for t in range(len(ended))]

    known = by_column(is_known, terminated, ended).bool()
    return rewards_to_go(rewards, ended, gamma).where(known, 0), known


# --- Advantages ----------------------------------------------------------------------------------


def td_errors(rewards, values, next_values, terminated, gamma: float) -> Tensor:
    def of_one(rewards, values, next_values, terminated):
        return [
            rewards[t] + (0 if terminated[t] else gamma * next_values[t]) - values[t]
            for t in range(len(rewards))
        ]

    return by_column(of_one, rewards, values, next_values, terminated)


def gae_by_definition(
    rewards, values, next_values, terminated, truncated, *, gamma: float, gae_lambda: float
) -> Tensor:
    """Σ_l (γλ)ˡ·δ_{t+l} with two masks: a terminated step has no future, any end stops the sum."""
    errors = td_errors(rewards, values, next_values, terminated, gamma)

    def of_one(errors, ended):
        return [
            math.fsum(
                (gamma * gae_lambda) ** (k - t) * errors[k]
                for k in range(t, end_of_episode(ended, t) + 1)
            )
            for t in range(len(errors))
        ]

    return by_column(of_one, errors, terminated | truncated)


def gae_as_mixture(
    rewards, values, next_values, terminated, truncated, *, gamma: float, gae_lambda: float
) -> Tensor:
    """(1 − λ)·Σ_n λ^{n−1}·(n-step return − V), where the longest return takes all that is left."""

    def of_one(rewards, values, next_values, terminated, truncated):
        ended = [a or b for a, b in zip(terminated, truncated, strict=True)]
        advantages = []
        for t in range(len(rewards)):
            longest = end_of_episode(ended, t) - t + 1
            weights = [(1 - gae_lambda) * gae_lambda ** (n - 1) for n in range(1, longest)]
            weights.append(gae_lambda ** (longest - 1))
            advantages.append(
                math.fsum(
                    weight
                    * (n_step_return(rewards, next_values, terminated, t, n, gamma) - values[t])
                    for n, weight in enumerate(weights, start=1)
                )
            )
        return advantages

    return by_column(of_one, rewards, values, next_values, terminated, truncated)


# --- Ratios and the clip -------------------------------------------------------------------------


def categorical_kl(first: list[float], second: list[float]) -> float:
    """KL(first ‖ second) = Σ_a first(a)·log(first(a) / second(a)), over every action (nats)."""
    return math.fsum(p * math.log(p / q) for p, q in zip(first, second, strict=True) if p > 0)


def samples_of(counts: list[int], *policies: list[float]) -> list[Tensor]:
    """Log-probabilities of a sample in which action a stands counts[a] times.

    With counts in proportion to a policy, the sample's mean *is* the expectation under it.
    """
    drawn = [action for action, count in enumerate(counts) for _ in range(count)]
    return [float64(*(math.log(policy[action]) for action in drawn)) for policy in policies]


def surrogate(ratio: float, advantage: float, clip_epsilon: float) -> float:
    """The clipped surrogate by cases: the objective stops rising beyond the edge that pays."""
    if advantage > 0 and ratio > 1 + clip_epsilon:
        return (1 + clip_epsilon) * advantage
    if advantage < 0 and ratio < 1 - clip_epsilon:
        return (1 - clip_epsilon) * advantage
    return ratio * advantage


def surrogate_slope(ratio: float, advantage: float, clip_epsilon: float) -> float:
    """Its derivative by the ratio, away from the edges."""
    if advantage > 0 and ratio > 1 + clip_epsilon:
        return 0.0
    if advantage < 0 and ratio < 1 - clip_epsilon:
        return 0.0
    return advantage


# --- Regression ----------------------------------------------------------------------------------


def mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def variance(numbers: list[float]) -> float:
    return mean([(number - mean(numbers)) ** 2 for number in numbers])


def explained_variance(values: list[float], returns: list[float]) -> float:
    missed = [target - value for value, target in zip(values, returns, strict=True)]
    return 1 - variance(missed) / variance(returns)


def clipped_value_loss(values, returns, values_old, clip_epsilon: float) -> float:
    """Half the mean of the larger of two squared errors, by cases."""
    losses = []
    for value, target, old in zip(values, returns, values_old, strict=True):
        moved = min(max(value, old - clip_epsilon), old + clip_epsilon)
        losses.append(max((value - target) ** 2, (moved - target) ** 2))
    return mean(losses) / 2


def gradient(loss: Tensor, parameters: Tensor) -> Tensor:
    """The gradient, or zeros where none flows."""
    if not loss.requires_grad:
        return torch.zeros_like(parameters)
    (slope,) = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.zeros_like(parameters) if slope is None else slope
