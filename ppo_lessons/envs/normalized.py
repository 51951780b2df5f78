"""Observations and rewards of about unit size, whatever the units of the task.

A network learns best from numbers around 1, and one learning rate suits one size of gradients. So
observations are shifted and scaled by the mean and the spread of all that was seen so far; rewards
are divided by the spread of the discounted return. A reward keeps its sign and its zero: taking a
mean away would pay, or charge, for every further step of an episode.

The statistics belong to the policy: it has learned through them. They travel in the checkpoint, and
`frozen` shows other environments through the same ones without moving them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from ppo_lessons.envs.protocol import Envs, EnvStep
from ppo_lessons.shapes import check_positive, check_unit_interval

LEAST_SPREAD = 1e-4  # a spread below this counts as none: dividing by it would enlarge noise


@dataclass(frozen=True)
class Moments:
    """What must be known of rows to give their mean and variance.

    Attributes:
        count: how many rows.
        mean: of the rows.
        m2: sum of the squared distances from the mean.
    """

    count: Float[Tensor, ""]
    mean: Float[Tensor, "*shape"]
    m2: Float[Tensor, "*shape"]


def add_rows(
    moments: Moments, rows: Shaped[Tensor, " B *shape"], valid: Bool[Tensor, " B"] | None = None
) -> Moments:
    """Give the moments of all rows: those seen before, and B new ones.

        mean = mean_a + (mean_b − mean_a)·n_b / n
        m2 = m2_a + m2_b + (mean_b − mean_a)²·n_a·n_b / n,     n = n_a + n_b

    No number is squared before a mean is taken away: the mean of squares less the square of the
    mean loses all digits where the mean is large.

    Args:
        moments: of the rows seen before (a).
        rows: the new ones (b).
        valid: which of them count; all if left out.

    Returns:
        The moments of both together.

    Source: Chan, Golub and LeVeque 1979 (updating formulae for sample variances).
    """
    rows = rows.to(moments.mean.dtype)
    weights = torch.ones_like(rows)
    if valid is not None:
        shown = valid.reshape(-1, *[1] * (rows.ndim - 1))
        rows, weights = rows.masked_fill(~shown, 0), weights * shown
    seen = weights.sum(dim=0)
    mean = rows.sum(dim=0) / seen.clamp(min=1)
    m2 = (weights * (rows - mean).square()).sum(dim=0)
    share = seen / (moments.count + seen).clamp(min=1)
    apart = mean - moments.mean
    return Moments(
        count=moments.count + seen.flatten()[0],
        mean=moments.mean + apart * share,
        m2=moments.m2 + m2 + apart.square() * moments.count * share,
    )


class RunningMoments:
    """Mean and spread of all rows seen so far; they are kept in the same tensors throughout.

    In float64, since many millions of rows add up; in float32 on Apple's GPUs, which have no other.

    Args:
        shape: of one row.
        device: where they live.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device):
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.count = torch.zeros((), dtype=dtype, device=device)
        self.mean = torch.zeros(shape, dtype=dtype, device=device)
        self.m2 = torch.zeros(shape, dtype=dtype, device=device)

    @torch.no_grad()
    def update(
        self, rows: Shaped[Tensor, " B *shape"], valid: Bool[Tensor, " B"] | None = None
    ) -> None:
        """Take B more rows into account; only those that are valid, if that is given."""
        new = add_rows(Moments(**self._named()), rows, valid)
        for name, tensor in self._named().items():
            tensor.copy_(getattr(new, name))

    @property
    def variance(self) -> Float[Tensor, "*shape"]:
        """Mean squared distance from the mean, of all rows; 0 before the first."""
        return self.m2 / self.count.clamp(min=1)

    @property
    def spread(self) -> Float[Tensor, "*shape"]:
        """The standard deviation; 1 where the rows are practically equal."""
        spread = self.variance.sqrt()
        return torch.where(spread > LEAST_SPREAD, spread, 1.0)

    def state_dict(self) -> dict[str, Tensor]:
        """Save the three numbers."""
        return {name: tensor.clone() for name, tensor in self._named().items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: if it was taken of rows of another shape.
        """
        saved, own = tuple(state["mean"].shape), tuple(self.mean.shape)
        if saved != own:
            raise ValueError(
                f"the saved statistics are of rows of shape {saved}; expected {own}. Make the same "
                "environments as in the saved run."
            )
        for name, tensor in self._named().items():
            tensor.copy_(state[name])

    def _named(self) -> dict[str, Tensor]:
        return {"count": self.count, "mean": self.mean, "m2": self.m2}


class NormalizedEnvs:
    """Other environments, with observations and rewards of about unit size.

        observation → (observation − mean) / spread,     reward → reward / spread of Σ_k γᵏ·r_{t−k}

    What an episode really earned stays in `EnvStep.unscaled_rewards`. A reset starts new episodes
    and keeps the statistics: make new `NormalizedEnvs` for a new run.

    Args:
        envs: the environments.
        observations: whether to normalise them.
        rewards: whether to scale them.
        gamma: γ of the discounted return, as in the config.
        limit: what is larger in size is cut to it, after scaling.

    Raises:
        TypeError: if envs are no `Envs`.
        ValueError: if gamma is not in [0, 1], or limit is not above 0.
    """

    def __init__(
        self,
        envs: Envs,
        *,
        observations: bool = True,
        rewards: bool = True,
        gamma: int | float,
        limit: int | float = 10.0,
    ):
        if not isinstance(envs, Envs):
            raise TypeError(
                f"envs is a {type(envs).__name__}; expected environments that step together, "
                "`Envs`. Give BatchedEnvs(CartPole(), 64), or GymEnvs(envs)."
            )
        check_unit_interval(gamma=gamma)
        check_positive(limit=limit)
        self.envs, self.gamma, self.limit = envs, gamma, limit
        self.num_envs, self.device = envs.num_envs, envs.device
        self.single_action_space = envs.single_action_space
        self.single_observation_space = envs.single_observation_space
        shape = envs.single_observation_space.shape or ()
        self._seen = RunningMoments(shape, self.device) if observations else None
        self._earned = RunningMoments((), self.device) if rewards else None
        if observations:
            self.single_observation_space = Box(-limit, limit, shape, np.float32)
        self._returns = torch.zeros(self.num_envs, dtype=torch.float32, device=self.device)
        self._moving = True

    def frozen(self, envs: Envs) -> "NormalizedEnvs":
        """Show other environments through these statistics, without moving them: for tests.

        Args:
            envs: environments of the same kind; their number may differ.

        Raises:
            ValueError: if they observe something of another shape.
        """
        other = NormalizedEnvs(
            envs,
            observations=self._seen is not None,
            rewards=self._earned is not None,
            gamma=self.gamma,
            limit=self.limit,
        )
        mine, theirs = (each.envs.single_observation_space.shape for each in (self, other))
        if mine != theirs or envs.device != self.device:
            raise ValueError(
                f"an observation of these environments has shape {theirs} on {envs.device}; "
                f"expected {mine} on {self.device}, as the statistics have. Make environments of "
                "the same kind as in training, on the same device."
            )
        other._seen, other._earned, other._moving = self._seen, self._earned, False
        return other

    def reset(self, seed: int) -> Shaped[Tensor, " N *observation"]:
        """Start every environment afresh; the statistics stay."""
        self._returns.zero_()
        observations = self.envs.reset(seed)
        self._learn(observations)
        return self._shown(observations)

    def step(self, actions: Shaped[Tensor, " N *action"]) -> EnvStep:
        """Take one action in each environment; what it gives is scaled by all seen up to now."""
        step = self.envs.step(actions)
        self._learn(step.observations)
        return EnvStep(
            observations=self._shown(step.observations),
            next_observations=self._shown(step.next_observations),
            rewards=self._scaled(step),
            terminated=step.terminated,
            truncated=step.truncated,
            valid=step.valid,
            unscaled_rewards=step.paid,
        )

    def state_dict(self) -> dict[str, Any]:
        """Save the statistics, the running returns, and the environments (None if they cannot)."""
        return {
            "envs": self.envs.state_dict(),
            "seen": None if self._seen is None else self._seen.state_dict(),
            "earned": None if self._earned is None else self._earned.state_dict(),
            "returns": self._returns.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken; environments that could not be saved stay as is.

        Raises:
            ValueError: if the state is that of other environments, or other things were scaled.
        """
        own = {"seen": self._seen, "earned": self._earned}
        if any((state.get(name) is None) != (moments is None) for name, moments in own.items()):
            raise ValueError(
                "the saved state has other statistics; expected those of environments made with "
                f"observations={self._seen is not None} and rewards={self._earned is not None}. "
                "Make NormalizedEnvs as in the saved run."
            )
        if state["envs"] is not None:
            self.envs.load_state_dict(state["envs"])
        for name, moments in own.items():
            if moments is not None:
                moments.load_state_dict(state[name])
        self._returns.copy_(state["returns"])

    def _learn(self, observations: Tensor) -> None:
        if self._moving and self._seen is not None:
            self._seen.update(observations)

    def _shown(self, observations: Shaped[Tensor, " N *observation"]) -> Tensor:
        if self._seen is None:
            return observations
        dtype = observations.dtype if observations.is_floating_point() else torch.float32
        centred = observations.to(self._seen.mean.dtype) - self._seen.mean
        return (centred / self._seen.spread).clamp(-self.limit, self.limit).to(dtype)

    def _scaled(self, step: EnvStep) -> Float[Tensor, " N"]:
        if self._earned is None:
            return step.rewards
        returns = self.gamma * self._returns + step.rewards
        if self._moving:
            self._earned.update(returns, step.valid)
        self._returns.copy_(returns.masked_fill(step.terminated | step.truncated, 0))
        scaled = step.rewards / self._earned.spread
        return scaled.clamp(-self.limit, self.limit).to(step.rewards.dtype)
