"""GAE on an exact MDP: bias and variance of the advantage and of the gradient, without sampling.

Seen from a step on, three random numbers describe the rest of an episode. With c = γ·λ and a
prime for what they are one step later:

    δ = r + γ·V(s') − V(s)       the TD error; the end is worth 0
    Z = δ + c·Z'                 GAE of this step
    Y = ∇log π(a|s)·Z + Y'       gradient estimate of the rest of the episode

Once s, a and s' are known, only Z' and Y' are random. So the mean of Z, Z², Y, Y·Z and Y·Yᵀ given
s follows from what they are given s': one linear solve each, in this order. That Z appears in every
step before it, and makes them depend on each other, is kept.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.gradients import score_table
from ppo_lessons.mdp.model import MDP, softmax_policy
from ppo_lessons.mdp.solve import bellman_matrix
from ppo_lessons.mdp.tables import check_count, check_table
from ppo_lessons.shapes import check_finite, check_unit_interval


@dataclass(frozen=True, eq=False)
class Moments:
    """What GAE does on average, and how far one episode strays from it.

    Args:
        gradient_mean: E[Σ_t ∇log π(a_t|s_t)·Â_t] over one whole episode.
        gradient_covariance: of the same sum; the mean of n episodes has this divided by n.
        advantage_mean: E[Â_t | s_t = s, a_t = a], in units of discounted reward.
        advantage_variance: of Â_t given s_t and a_t, in the square of that unit.
    """

    gradient_mean: Float64[Tensor, " P"]
    gradient_covariance: Float64[Tensor, "P P"]
    advantage_mean: Float64[Tensor, "S A"]
    advantage_variance: Float64[Tensor, "S A"]


def gae_moments(
    mdp: MDP,
    parameters: Float64[Tensor, "..."],
    critic: Float64[Tensor, " S"],
    *,
    gamma: float,
    gae_lambda: float,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Moments:
    """Mean and variance of GAE, and of the gradient that one whole episode estimates with it.

    Where the critic is exact, or λ is 1, the mean of the gradient is `usual_update`. At λ = 1 the
    mean of the advantage is A(s, a) − error(s) all the same: an error that depends on the state
    alone cancels in the gradient.

    Args:
        mdp: the model; every episode must end.
        parameters: of the policy, logits [K, A] or θ [F], as in `softmax_policy`.
        critic: V̂(s), in units of discounted reward. It may see more than the policy.
        gamma: discount per step, in [0, 1].
        gae_lambda: λ, in [0, 1].
        features: as in `softmax_policy`.

    Returns:
        The four moments; P counts the parameters, logits flattened.

    Raises:
        TypeError: if a dtype is not float64.
        ValueError: if a shape or a number does not fit, or an episode may never end.

    Source: Schulman et al. 2016, "High-dimensional continuous control using generalized advantage
    estimation", for GAE; the recursions for its moments are derived above.
    """
    check_unit_interval(gamma=gamma, gae_lambda=gae_lambda)
    advice = "Give one value for each state, also if the policy cannot tell two of them apart."
    check_table("critic", critic, torch.float64, tuple(mdp.initial.shape), advice)
    check_finite(critic=critic)
    scores = score_table(mdp, parameters, features=features)
    policy = softmax_policy(mdp, parameters, features=features)
    c, moves = gamma * gae_lambda, mdp.transitions
    td = mdp.rewards.unsqueeze(-1) + gamma * critic - critic[:, None, None]  # given s, a, s'
    td_end = mdp.rewards - critic[:, None]
    end = 1 - moves.sum(-1)
    td_moves = moves * td

    def solve(known: Tensor, factor: float) -> Tensor:
        """Solve X(s) = Σ_a π(a|s)·(known(s, a) + factor·E[X(s')])."""
        given = torch.einsum("sa,sap->sp", policy, known)
        return torch.linalg.solve(bellman_matrix(mdp, policy, factor), given)

    def following(chances: Tensor, table: Tensor) -> Tensor:
        return torch.einsum("sat,tp->sap", chances, table)

    # E[Z], then E[Z²] with Z² = δ² + 2c·δ·Z' + c²·Z'²: given s (a column each), and given s and a
    known = (td_moves.sum(-1) + end * td_end).unsqueeze(-1)
    z = solve(known, c)
    first = known + c * following(moves, z)
    known = ((td_moves * td).sum(-1) + end * td_end**2).unsqueeze(-1)
    known = known + 2 * c * following(td_moves, z)
    second = known + c**2 * following(moves, solve(known, c**2))
    # E[Y], then E[Y·Z] with Y·Z = ∇log π·Z² + Y'·(δ + c·Z')
    y = solve(scores * first, 1.0)
    known = following(td_moves, y)
    yz = solve(scores * second + known, c)
    z_later = known + c * following(moves, yz)  # E[Z·Y' | s, a]
    # E[Y·Yᵀ] with Y·Yᵀ = (∇log π·Z + Y')·(∇log π·Z + Y')ᵀ
    cross = scores.unsqueeze(-1) * z_later.unsqueeze(-2)
    squares = scores.unsqueeze(-1) * scores.unsqueeze(-2) * second.unsqueeze(-1)
    yy = solve((squares + cross + cross.mT).flatten(2), 1.0)

    mean = mdp.initial @ y
    square = (mdp.initial @ yy).reshape(len(mean), len(mean))
    variance = (second - first**2).squeeze(-1).clamp(min=0)  # rounding may go below
    return Moments(mean, square - torch.outer(mean, mean), first.squeeze(-1), variance)


def mean_squared_error(
    moments: Moments, target: Float64[Tensor, "..."], *, num_trajectories: int
) -> Float64[Tensor, ""]:
    """|bias|² + tr(covariance)/n: how far the mean of n episodes is from a target, squared.

    Args:
        moments: of one episode's gradient.
        target: the wanted gradient, in the shape of the parameters or flat; for example
            `usual_update` or `policy_gradient`.
        num_trajectories: n, 1 or more.

    Returns:
        E|g − target|², in squared units of reward per unit of parameter.

    Raises:
        ValueError: if the target has another number of entries, or n is below 1.
    """
    check_count("num_trajectories", num_trajectories)
    mean = moments.gradient_mean
    if target.numel() != mean.numel():
        raise ValueError(
            f"target has shape {tuple(target.shape)}; expected {mean.numel()} entries like "
            "gradient_mean. Take the gradient in the same parameters."
        )
    bias = mean - target.flatten()
    return bias @ bias + moments.gradient_covariance.trace() / num_trajectories
