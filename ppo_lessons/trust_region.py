"""Lesson 03. How far may I trust the surrogate?

    maximise L(θ)   such that   mean KL(π_old ‖ π_θ) ≤ δ        a fence  (TRPO)
    maximise L(θ) − β·mean KL(π_old ‖ π_θ)                      a price  (PPO's penalty)
    J ≥ J_old + L − C·max KL(π_old ‖ π_θ)                       a promise (TRPO's theorem)

The surrogate L is right where the data came from, and wrong further away. "Further" is measured in
behaviour, by the KL, and not in parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ppo_lessons.importance import approximate_kl, surrogate_loss
from ppo_lessons.mdp import MDP, advantages, expected_return, state_kl, state_visits
from ppo_lessons.shapes import check_finite, check_positive, check_same_shape


def natural_gradient_step(
    gradient: Float[Tensor, " P"], fisher: Float[Tensor, "P P"], *, max_kl: float
) -> Float[Tensor, " P"]:
    """Find the step that climbs most for its KL, as long as the KL allows.

        d = F⁺·g,    step = d·√(2·δ / dᵀ·F·d),    so that ½·stepᵀ·F·step = δ

    Near θ_old the mean KL is the quadratic form ½·dᵀ·F·d, and L is linear, g·d: the step is the
    best of this simplified problem. F⁺ is the pseudo-inverse, since F has no inverse: adding the
    same number to all logits of a state changes nothing, so F is 0 in that direction, and so is g.

    TRPO never builds F: it solves F·d = g with conjugate gradients, from products F·v. Here P is
    small, and the solve exact.

    Args:
        gradient: g, the slope of L (or of J) at θ_old (discounted reward).
        fisher: F, symmetric and at least 0: the curvature of the mean KL at θ_old (nats).
        max_kl: δ, above 0 (nats).

    Returns:
        The step, to be added to θ_old; zeros if the gradient is zero.

    Raises:
        ValueError: if the shapes do not fit, a number is not finite or δ is not above 0.

    Source: Kakade 2001 (natural policy gradient); Schulman et al. 2015 (TRPO), appendix C.
    """
    check_positive(max_kl=max_kl)
    check_finite(gradient=gradient, fisher=fisher)
    P = len(gradient)
    if fisher.shape != (P, P):
        raise ValueError(
            f"fisher has shape {tuple(fisher.shape)}; expected {(P, P)} for a gradient of {P} "
            "numbers. Flatten the gradient in the order of the matrix."
        )
    # rounding turns the eigenvalue 0 into about 1e-17; its inverse must not count
    rounding = 100 * P * torch.finfo(fisher.dtype).eps
    direction = torch.linalg.pinv(fisher, rtol=rounding, hermitian=True) @ gradient
    steepness = gradient @ direction  # = dᵀ·F·d
    if steepness <= 0:
        return torch.zeros_like(gradient)
    return (2 * max_kl / steepness).sqrt() * direction


def backtracking_line_search(
    parameters: Float[Tensor, "*shape"],
    step: Float[Tensor, "*shape"],
    *,
    improvement: Callable[[Tensor], Tensor],
    kl: Callable[[Tensor], Tensor],
    max_kl: float,
    shrink: float,
    max_tries: int,
) -> Float[Tensor, "*shape"]:
    """Shorten a step until it keeps what the simplified problem promised.

        θ = θ_old + shrinkᵏ·step,   k = 0, 1, ...   until   L(θ) > L(θ_old)  and  KL(θ) ≤ δ

    A quadratic KL and a linear L are true near θ_old only; the step may be too long for that.

    Args:
        parameters: θ_old.
        step: the full step, of the same shape.
        improvement: L(θ) − L(θ_old) as a function of θ (discounted reward).
        kl: KL(π_old ‖ π_θ) as a function of θ (nats).
        max_kl: δ, above 0 (nats).
        shrink: factor from one try to the next, between 0 and 1.
        max_tries: how many steps are tried, at least 1.

    Returns:
        The parameters of the first try that passes; θ_old if none does.

    Raises:
        ValueError: if the shapes differ or a number is out of range.

    Source: Schulman et al. 2015 (TRPO), appendix C. Implementations also demand a share of the
    improvement that the gradient promised; we ask for any.
    """
    check_same_shape(parameters=parameters, step=step)
    check_positive(max_kl=max_kl)
    if not (0 < shrink < 1 and max_tries >= 1):
        raise ValueError(
            f"shrink is {shrink} and max_tries is {max_tries}; expected a number between 0 and 1, "
            "and at least 1. Choose 0.5 and 10, for instance."
        )
    for k in range(max_tries):
        tried = parameters + shrink**k * step
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


def penalty_loss(
    log_probs: Float[Tensor, "*batch"],
    log_probs_old: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    beta: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Turn the surrogate with a price on distance into a loss.

        loss = −mean( ratio·Â ) + β·mean( ratio − 1 − log ratio )

    The second mean is the estimator k3 of KL(π_old ‖ π). Its gradient is that of the KL, on
    average over samples of π_old: mean( (ratio − 1)·∇log π ). That of k1 is, too, but there the
    single terms −∇log π do not vanish at ratio 1, so k1 adds noise where nothing has moved. The
    gradient of k2 is another vector.

    As a part of the loop: `Parts(policy_loss=partial(penalty_loss, beta=3.0))`.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_old: log π_old(a | s) (nats); a constant, and π_old drew the actions.
        advantages: Â (discounted reward, or normalised); constants.
        beta: β, the price, above 0 (unit of Â per nat).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or β is not above 0.

    Source: Schulman et al. 2017 (PPO), eq. 8, with its sign turned; there the KL is exact.
    """
    check_positive(beta=beta)
    loss = surrogate_loss(log_probs, log_probs_old, advantages, mask=mask)
    kl_k3 = approximate_kl(log_probs, log_probs_old.detach(), estimator="k3", mask=mask)
    return loss + beta * kl_k3


def adapt_beta(beta: float, kl: float, *, target_kl: float) -> float:
    """Raise the price after a step that went too far, lower it after one that stayed too near.

        KL > 1.5·target: 2·β        KL < target / 1.5: β / 2        else: β

    Args:
        beta: β of the last iteration, above 0.
        kl: KL(π_old ‖ π) that it ended with (nats); estimated, it may be below 0.
        target_kl: the KL that is wanted, above 0 (nats).

    Returns:
        β of the next iteration.

    Raises:
        ValueError: if β or the target is not above 0.

    Source: Schulman et al. 2017 (PPO), section 4. There: 1.5 and 2 are chosen by feel, and the
    method is not sensitive to them.
    """
    check_positive(beta=beta, target_kl=target_kl)
    if kl > 1.5 * target_kl:
        return 2 * beta
    if kl < target_kl / 1.5:
        return beta / 2
    return beta


@dataclass
class AdaptivePenalty:
    """A penalty whose price follows the KL: β is changed once per iteration, by `adapt_beta`.

        penalty = AdaptivePenalty(beta=1.0, target_kl=0.01)
        train(config, parts=Parts(policy_loss=penalty), on_iteration=penalty.after_iteration)

    The one function of this lesson that remembers something: make a new one for each run.

    Args:
        beta: β of the first iteration, above 0; then that of the running one.
        target_kl: the KL per iteration that is wanted, above 0 (nats).
    """

    beta: float
    target_kl: float

    def __call__(
        self,
        log_probs: Float[Tensor, "*batch"],
        log_probs_old: Float[Tensor, "*batch"],
        advantages: Float[Tensor, "*batch"],
        *,
        mask: Bool[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, ""]:
        """Give `penalty_loss` at the price of this iteration."""
        return penalty_loss(log_probs, log_probs_old, advantages, beta=self.beta, mask=mask)

    def after_iteration(self, state: Any) -> None:
        """Set the price of the next iteration.

        Args:
            state: a `TrainState`; its `stats.kl_k3` of the last epoch says how far the policy went.
        """
        kl = state.stats.kl_k3[-1].mean().item()
        self.beta = adapt_beta(self.beta, kl, target_kl=self.target_kl)


def stop_on_kl(kl_k1: float, *, max_kl: float) -> bool:
    """Say whether the epoch that is over went too far, so that the remaining ones are left out.

        stop if kl_k1 > δ

    As a part of the loop: `Parts(stop_epochs=partial(stop_on_kl, max_kl=0.02))`. It shortens no
    step and takes none back: the epoch that went too far counts.

    Args:
        kl_k1: mean of −log ratio over the epoch (nats); an estimate, so it may be below 0.
        max_kl: δ, above 0 (nats).

    Returns:
        Whether to stop.

    Raises:
        ValueError: if δ is not above 0.
    """
    check_positive(max_kl=max_kl)
    return kl_k1 > max_kl


def trpo_penalty(mdp: MDP, policy_old: Float64[Tensor, "S A"], *, gamma: float) -> float:
    """Give C, the price of distance at which the improvement is guaranteed.

        C = 4·ε·γ / (1 − γ)²,    ε = max |A_old(s, a)|

    Args:
        mdp: the model.
        policy_old: π_old(a|s), rows sum to 1.
        gamma: discount per step, in [0, 1).

    Returns:
        C (discounted reward per nat).

    Raises:
        ValueError: if gamma is 1: the guarantee has no finite price there.

    Source: Schulman et al. 2015 (TRPO), theorem 1.
    """
    if gamma == 1:
        raise ValueError("gamma is 1; expected a number in [0, 1). Choose gamma below 1.")
    epsilon = advantages(mdp, policy_old, gamma=gamma).abs().max().item()
    return 4 * epsilon * gamma / (1 - gamma) ** 2


def trpo_lower_bound(
    mdp: MDP,
    policy: Float64[Tensor, "*batch S A"],
    policy_old: Float64[Tensor, "S A"],
    *,
    gamma: float,
) -> Float64[Tensor, "*batch"]:
    """Give the return that the new policy is guaranteed to have at least.

        J ≥ J_old + L − C·max_s KL(π_old(·|s) ‖ π(·|s))
        L = Σ_s d_old(s)·Σ_a π(a|s)·A_old(s, a)

    The maximum is over all states, also those that are hardly ever visited. No sample can tell
    it; with a model it is one line.

    Args:
        mdp: the model.
        policy: π(a|s), rows sum to 1; leading axes are a batch of policies.
        policy_old: π_old(a|s).
        gamma: discount per step, in [0, 1).

    Returns:
        The bound (discounted reward); minus infinity if π never takes an action that π_old takes.

    Raises:
        ValueError: if gamma is 1.

    Source: Schulman et al. 2015 (TRPO), theorem 1.
    """
    price = trpo_penalty(mdp, policy_old, gamma=gamma)
    weights = state_visits(mdp, policy_old, gamma=gamma).unsqueeze(-1)
    surrogate = (weights * policy * advantages(mdp, policy_old, gamma=gamma)).sum((-2, -1))
    distance = state_kl(policy_old, policy).amax(-1)
    return expected_return(mdp, policy_old, gamma=gamma) + surrogate - price * distance
