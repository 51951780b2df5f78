"""Two policies: what the surrogate promises, what is true, and how far apart they are."""

from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.model import MDP
from ppo_lessons.mdp.solve import advantages, state_visits
from ppo_lessons.mdp.tables import check_rows


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


def state_kl(
    policy_old: Float64[Tensor, "*#batch S A"], policy: Float64[Tensor, "*batch S A"]
) -> Float64[Tensor, "*batch S"]:
    """KL(π_old ‖ π)(s) = Σ_a π_old(a|s)·(log π_old(a|s) − log π(a|s)), in every state.

    The old policy stands first and weights the sum. An action that it never takes counts 0; one
    that it takes and the new policy never does makes the divergence infinite.

    Args:
        policy_old: π_old, rows sum to 1.
        policy: the new π; leading axes are a batch of policies.

    Returns:
        KL in nats, 0 where both rows are the same.

    Raises:
        ValueError: if a row is no distribution, or states and actions differ in number.
    """
    if policy_old.shape[-2:] != policy.shape[-2:]:
        raise ValueError(
            f"policy_old has shape {tuple(policy_old.shape)}; expected {tuple(policy.shape)} like "
            "policy. Give both for the states and actions of one MDP."
        )
    check_rows("policy_old", policy_old, at_least=1.0)
    check_rows("policy", policy, at_least=1.0)
    return (torch.xlogy(policy_old, policy_old) - torch.xlogy(policy_old, policy)).sum(-1)


def mean_kl(
    mdp: MDP,
    policy: Float64[Tensor, "*batch S A"],
    policy_old: Float64[Tensor, "*#batch S A"],
    *,
    gamma: float,
) -> Float64[Tensor, "*batch"]:
    """Σ_s d_old(s)·KL(π_old ‖ π)(s) / Σ_s d_old(s): the mean over the states of the old policy.

    Args:
        mdp: the model.
        policy: the new π; leading axes are a batch of policies.
        policy_old: whose visits weight the states.
        gamma: discount of the visits, in [0, 1]; at 1 every step of an episode counts the same.

    Returns:
        Mean KL in nats.

    Raises:
        ValueError: as `state_kl` and `state_visits`.
    """
    weights = state_visits(mdp, policy_old, gamma=gamma)
    divergences = torch.where(weights > 0, state_kl(policy_old, policy), 0.0)
    return (weights * divergences).sum(-1) / weights.sum(-1)
