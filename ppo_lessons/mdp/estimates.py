"""Gradient estimates of listed or drawn episodes, their mean and their covariance."""

import torch
from jaxtyping import Float64
from torch import Tensor

from ppo_lessons.mdp.gradients import score_table
from ppo_lessons.mdp.model import MDP
from ppo_lessons.mdp.trajectories import Trajectories
from ppo_lessons.shapes import check_same_shape


def gradient_estimates(
    mdp: MDP,
    parameters: Float64[Tensor, "..."],
    trajectories: Trajectories,
    weights: Float64[Tensor, "T N"],
    *,
    features: Float64[Tensor, "K A F"] | None = None,
) -> Float64[Tensor, "N P"]:
    """Σ_t ∇log π(a_t|s_t)·w_t, one estimate of the gradient from each episode.

    Args:
        mdp: the model.
        parameters: of the policy whose score is taken, as in `score_table`.
        trajectories: listed or drawn episodes.
        weights: w_t, what each step's score is multiplied with: a return, a reward-to-go, an
            advantage, in units of reward. Rows that are not valid do not count.
        features: as in `score_table`.

    Raises:
        ValueError: if weights have another shape than the steps, or as `score_table`.
    """
    check_same_shape(weights=weights, states=trajectories.states)
    scores = score_table(mdp, parameters, features=features)
    weights = torch.where(trajectories.valid, weights, 0.0).unsqueeze(-1)
    steps = zip(trajectories.states, trajectories.actions, weights, strict=True)
    # one step of all episodes at a time: the table [T, N, P] may not fit the memory
    return sum((scores[s, a] * w for s, a, w in steps), torch.zeros(()).double())


def mean_and_covariance(
    probabilities: Float64[Tensor, " N"], estimates: Float64[Tensor, "N P"]
) -> tuple[Float64[Tensor, " P"], Float64[Tensor, "P P"]]:
    """Σ_n p_n·g_n and Σ_n p_n·(g_n − mean)·(g_n − mean)ᵀ: moments of one episode's estimate.

    The mean of n independent episodes has the same mean and this covariance divided by n. With
    probabilities 1/N of drawn episodes the sum is divided by N, not by N − 1.

    Args:
        probabilities: of the episodes, as in `Trajectories`.
        estimates: one vector for each.

    Raises:
        ValueError: if there is not one estimate for each probability, or they do not sum to 1.
    """
    if len(estimates) != len(probabilities):
        raise ValueError(
            f"estimates has {len(estimates)} rows; expected {len(probabilities)}, one for each of "
            "probabilities. Take both from the same trajectories."
        )
    total = float(probabilities.sum())
    if not abs(total - 1) <= 1e-9:
        raise ValueError(
            f"probabilities sum to {total}; expected 1. Give those of all trajectories."
        )
    mean = probabilities @ estimates
    centred = estimates - mean
    return mean, (probabilities[:, None] * centred).T @ centred
