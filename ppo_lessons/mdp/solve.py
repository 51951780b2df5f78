"""Values, visits and the expected return: one linear solve each."""

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.model import MDP
from ppo_lessons.mdp.tables import ROUNDING, check_rows, check_table
from ppo_lessons.shapes import check_unit_interval


def state_values(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S"]:
    """V(s) = E[Σ_k γᵏ·r_{t+k} | s_t = s], solved from V = R_π + γ·P_π·V.

    Args:
        mdp: the model.
        policy: π(a|s), rows sum to 1; leading axes are a batch of policies.
        gamma: discount per step, in [0, 1].

    Returns:
        V, in units of discounted reward.

    Raises:
        ValueError: if the shape does not fit, a row of the policy is no distribution, or gamma is
            1 and from some state the policy never ends the episode.

    Source: Sutton & Barto 2018, eq. 3.14.
    """
    earned = (policy * mdp.rewards).sum(-1, keepdim=True)
    return torch.linalg.solve(bellman_matrix(mdp, policy, gamma), earned).squeeze(-1)


def action_values(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S A"]:
    """Q(s, a) = R(s, a) + γ·Σ_s' P(s'|s, a)·V(s'): do a now, follow the policy afterwards."""
    values = state_values(mdp, policy, gamma=gamma)
    return mdp.rewards + gamma * torch.einsum("sat,...t->...sa", mdp.transitions, values)


def advantages(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S A"]:
    """A(s, a) = Q(s, a) − V(s): how much better a is than what the policy does on average."""
    values = action_values(mdp, policy, gamma=gamma)
    return values - (policy * values).sum(-1, keepdim=True)  # V = Σ_a π·Q


def state_visits(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S"]:
    """d(s) = Σ_t γᵗ·P(s_t = s), solved from d = initial + γ·d·P_π.

    At gamma 1 these are visits per episode. It is no distribution: the sum is the (discounted)
    length of an episode. Arguments and errors are those of `state_values`.
    """
    matrix = bellman_matrix(mdp, policy, gamma)
    return torch.linalg.solve(matrix, mdp.initial.unsqueeze(0), left=False).squeeze(-2)


def expected_return(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch"]:
    """J = E[Σ_t γᵗ·r_t] = Σ_s initial(s)·V(s); at gamma 1 the undiscounted J."""
    return (mdp.initial * state_values(mdp, policy, gamma=gamma)).sum(-1)


def bellman_matrix(mdp: MDP, policy: Tensor, gamma: float) -> Tensor:
    """I − γ·P_π, the matrix of every solve, refused where no finite answer exists."""
    check_unit_interval(gamma=gamma)
    check_table("policy", policy, torch.float64, (*policy.shape[:-2], *mdp.rewards.shape))
    check_rows("policy", policy, at_least=1.0)
    moves = torch.einsum("...sa,sat->...st", policy, mdp.transitions)
    S = len(mdp.initial)
    if gamma == 1:
        # an episode that can end from everywhere can do so within S steps
        alive = torch.linalg.matrix_power(moves.detach(), S).sum(-1).reshape(-1, S).amax(0)
        if alive.max() > 1 - ROUNDING:
            raise ValueError(
                f"in {mdp.name} the policy never ends the episode from state {int(alive.argmax())}"
                "; expected that every state can end at gamma 1. Choose gamma below 1, or unroll."
            )
    return torch.eye(S, dtype=torch.float64) - gamma * moves
