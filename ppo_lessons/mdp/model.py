"""States, actions, and what they lead to; the policy and its parameters."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from ppo_lessons.mdp.tables import check_count, check_rows, check_table
from ppo_lessons.shapes import check_finite


@dataclass(frozen=True, eq=False)
class MDP:
    """States, actions, and what they lead to.

    A row of `transitions` may sum to less than 1: the missing mass ends the episode. The reward
    is fixed by state and action; a random reward is a random state that the policy cannot see,
    because it shares its observation with another.

    Args:
        name: for titles and errors.
        transitions: P(s'|s, a), the probability of each next state.
        rewards: R(s, a), in units of reward.
        initial: P(s_0 = s).
        observation_of: what the policy sees in s, that is, the row of its logits. States with the
            same number share parameters; `torch.arange(S)` gives every state its own.

    Raises:
        TypeError: if a tensor has another dtype.
        ValueError: if a tensor has another shape, or a row is no probability.
    """

    name: str
    transitions: Float64[Tensor, "S A S"]
    rewards: Float64[Tensor, "S A"]
    initial: Float64[Tensor, " S"]
    observation_of: Int64[Tensor, " S"]

    def __post_init__(self) -> None:
        S, A = self.initial.numel(), self.rewards.shape[-1] if self.rewards.ndim else 0
        check_table("transitions", self.transitions, torch.float64, (S, A, S))
        check_table("rewards", self.rewards, torch.float64, (S, A))
        check_table("initial", self.initial, torch.float64, (S,))
        check_table("observation_of", self.observation_of, torch.int64, (S,))
        check_finite(rewards=self.rewards)
        check_rows("transitions", self.transitions, at_least=0.0)
        check_rows("initial", self.initial, at_least=1.0)
        if (lowest := int(self.observation_of.min())) < 0:
            raise ValueError(
                f"observation_of holds {lowest}; expected 0 or more. Number observations from 0."
            )

    @property
    def num_observations(self) -> int:
        """Rows that the logits need: K in the shapes below."""
        return int(self.observation_of.max()) + 1


def unroll(mdp: MDP, horizon: int) -> MDP:
    """Make time part of the state, so that an episode ends after `horizon` steps at the latest.

    State t·S + s is s at time t. The policy still sees only s: its parameters are shared over
    time. (For a policy with a clock, replace `observation_of` by `torch.arange(S * horizon)`.)

    Raises:
        ValueError: if horizon is below 1.
    """
    check_count("horizon", horizon)
    S, A = mdp.rewards.shape
    transitions = torch.zeros(horizon, S, A, horizon, S, dtype=torch.float64)
    for t in range(horizon - 1):
        transitions[t, :, :, t + 1] = mdp.transitions
    initial = torch.zeros(horizon * S, dtype=torch.float64)
    initial[:S] = mdp.initial
    return MDP(
        name=f"{mdp.name}, {horizon} steps",
        transitions=transitions.reshape(horizon * S, A, horizon * S),
        rewards=mdp.rewards.repeat(horizon, 1),
        initial=initial,
        observation_of=mdp.observation_of.repeat(horizon),
    )


def softmax_policy(
    mdp: MDP,
    parameters: Float64[Tensor, "..."],
    *,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "*batch S A"]:
    """π(a|s) = exp(z_a) / Σ_b exp(z_b), where z is the row of logits of what s looks like.

    With features φ the logits are z_a = φ(k, a)·θ, so that observations share parameters.

    Args:
        mdp: the model.
        parameters: without features the logits [*batch, K, A] themselves, zeros are the uniform
            policy; with features θ [*batch, F]. Leading axes are a batch of policies.
        features: φ(k, a) of what the policy sees and does, no unit.

    Returns:
        π, one row for each state.

    Raises:
        TypeError: if a dtype is not float64.
        ValueError: if a shape does not fit the MDP.
    """
    axes = 2 if features is None else 1
    check_parameters(mdp, parameters, features, batch=parameters.shape[:-axes])
    logits = parameters
    if features is not None:
        logits = (features * parameters[..., None, None, :]).sum(-1)
    return logits.softmax(-1)[..., mdp.observation_of, :]


def check_parameters(
    mdp: MDP, parameters: Tensor, features: Tensor | None, *, batch: tuple[int, ...] = ()
) -> None:
    """Require logits [*batch, K, A], or features [K, A, F] and parameters [*batch, F]."""
    K, A = mdp.num_observations, mdp.rewards.shape[1]
    if features is None:
        check_table("logits", parameters, torch.float64, (*batch, K, A))
        return
    F = features.shape[-1] if features.ndim else 0
    check_table("features", features, torch.float64, (K, A, F))
    advice = "Give one number for each feature, as in features[k, a, f]."
    check_table("parameters", parameters, torch.float64, (*batch, F), advice)
