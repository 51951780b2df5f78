"""Gradients of a softmax policy: exact, without sampling."""

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.model import MDP, check_parameters, softmax_policy
from ppo_lessons.mdp.solve import advantages, expected_return, state_visits


def policy_gradient(
    mdp: MDP,
    parameters: Float64[Tensor, "*parameters"],
    *,
    gamma: float,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "*parameters"]:
    """∇J of the softmax policy, by autograd through the solve; at gamma 1 of the undiscounted J.

    It equals Σ_s d_γ(s)·Σ_a ∇π(a|s)·A_γ(s, a), a theorem that is not used here. Parameters and
    features are those of `softmax_policy`; what comes back has the shape of the parameters.
    """
    with torch.enable_grad():
        parameters = parameters.detach().requires_grad_()
        policy = softmax_policy(mdp, parameters, features=features)
        total = expected_return(mdp, policy, gamma=gamma).sum()
    return torch.autograd.grad(total, parameters)[0]


def usual_update(
    mdp: MDP,
    parameters: Float64[Tensor, "*parameters"],
    *,
    gamma: float,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "*parameters"]:
    """Σ_s d_1(s)·Σ_a ∇π(a|s)·A_γ(s, a): what policy-gradient code follows on average.

    Advantages are discounted, visits are not: the weight γᵗ is forgotten. Below gamma 1 this is
    the gradient neither of the discounted nor of the undiscounted J, and it may point the other
    way (`two_step_sign_flip`). At every gamma the episode must end from every state.

    Source: Nota & Thomas 2020, "Is the policy gradient a gradient?"
    """
    with torch.enable_grad():
        parameters = parameters.detach().requires_grad_()
        policy = softmax_policy(mdp, parameters, features=features)
        weights = state_visits(mdp, policy.detach(), gamma=1.0).unsqueeze(-1)
        total = (weights * policy * advantages(mdp, policy.detach(), gamma=gamma)).sum()
    return torch.autograd.grad(total, parameters)[0]


def score_table(
    mdp: MDP,
    parameters: Float64[Tensor, "..."],
    *,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "S A P"]:
    """∇log π(a|s) = φ(s, a) − Σ_b π(b|s)·φ(s, b), the score of every action in every state.

    Without features φ(k, a) is 1 at the logit of a in row k and 0 elsewhere, and P = K·A is the
    flattened table of logits: in the row of s the score is [a = b] − π(b|s).

    Args:
        mdp: the model.
        parameters: of one policy, logits [K, A] or θ [F], as in `softmax_policy`.
        features: φ(k, a), as in `softmax_policy`.

    Returns:
        One vector of P derivatives, in nats per unit of parameter, for each state and action.
        Under π its mean is 0 in every state.

    Raises:
        TypeError: if a dtype is not float64.
        ValueError: if a shape does not fit the MDP, or the parameters are a batch.
    """
    check_parameters(mdp, parameters, features)
    policy = softmax_policy(mdp, parameters, features=features).unsqueeze(-1)
    if features is None:
        K, A = parameters.shape
        features = torch.eye(K * A, dtype=torch.float64).reshape(K, A, K * A)
    seen = features[mdp.observation_of]
    return seen - (policy * seen).sum(1, keepdim=True)


def fisher_matrix(
    mdp: MDP,
    parameters: Float64[Tensor, "..."],
    *,
    gamma: float,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "P P"]:
    """F = Σ_s d(s)·Σ_a π(a|s)·∇log π(a|s)·∇log π(a|s)ᵀ / Σ_s d(s), with d the discounted visits.

    F is the covariance of the scores, and the curvature of `mean_kl` at the policy itself: a
    small step x moves it by KL ≈ ½·xᵀ·F·x. With logits F is singular: a shift common to a row
    changes no probability. Use `torch.linalg.pinv`, or add a little of the identity.

    Args:
        mdp: the model.
        parameters: of one policy, as in `score_table`.
        gamma: discount of the visits, in [0, 1].
        features: as in `score_table`.

    Returns:
        A symmetric matrix, in nats per squared unit of parameter.

    Raises:
        TypeError: if a dtype is not float64.
        ValueError: as `score_table` and `state_visits`.

    Source: Kakade 2001, "A natural policy gradient".
    """
    scores = score_table(mdp, parameters, features=features)
    policy = softmax_policy(mdp, parameters, features=features)
    visits = state_visits(mdp, policy, gamma=gamma)
    weights = (visits / visits.sum()).unsqueeze(-1) * policy
    return torch.einsum("sa,sap,saq->pq", weights, scores, scores)
