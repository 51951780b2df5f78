"""Two policies: what the surrogate promises, what is true, and how far apart they are."""

from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.model import MDP
from ppo_lessons.mdp.solve import advantages, state_visits


def expected_surrogate(
    mdp: MDP,
    policy: Float64[Tensor, "S A"],
    policy_old: Float64[Tensor, "S A"],
    objective: Callable[[Tensor, Tensor], Tensor],
    *,
    gamma: float,
) -> Float64[Tensor, ""]:
    """L = Σ_s d_old(s)·Σ_a π_old(a|s)·f(π(a|s) / π_old(a|s), A_old(s, a)): a surrogate, exactly.

    States and advantages are those of the old policy; only the ratios know the new one.

    `policy_old` has collected the data; `objective` is f, of ratios and advantages: their product,
    or `clipped_surrogate`. Actions that the old policy never takes have weight 0.
    """
    weights = state_visits(mdp, policy_old, gamma=gamma).unsqueeze(-1) * policy_old
    advantages_old = advantages(mdp, policy_old, gamma=gamma)
    # an action that the old policy never takes has weight 0, whatever its ratio
    ratios = torch.where(policy_old > 0, policy / policy_old, 1.0)
    return (weights * objective(ratios, advantages_old)).sum()


def performance_difference(
    mdp: MDP,
    policy: Float64[Tensor, "*batch S A"],
    policy_old: Float64[Tensor, "*#batch S A"],
    *,
    gamma: float,
) -> Float64[Tensor, "*batch"]:
    """J_new − J_old = Σ_s d_new(s)·Σ_a π_new(a|s)·A_old(s, a): an identity, not an approximation.

    The states are those that the *new* policy visits. A surrogate puts d_old in their place,
    since the data came from the old policy; nothing else in it is approximate.

    Args:
        mdp: the model.
        policy: the new π(a|s); leading axes are a batch of policies.
        policy_old: whose advantages are taken.
        gamma: discount per step, in [0, 1].

    Returns:
        What J gains, in units of discounted reward.

    Raises:
        ValueError: as `state_values`.

    Source: Kakade & Langford 2002, "Approximately optimal approximate reinforcement learning".
    """
    weights = state_visits(mdp, policy, gamma=gamma).unsqueeze(-1) * policy
    return (weights * advantages(mdp, policy_old, gamma=gamma)).sum((-2, -1))
