"""Two numbers that any run can be asked for, and that a right loop cannot leave."""

from math import e

import torch
from jaxtyping import Float
from torch import Tensor

from ppo_lessons.shapes import check_same_shape


def mean_ratio_surprise(
    kl_k1: Float[Tensor, " I"], kl_k3: Float[Tensor, " I"], *, batch_size: int | float
) -> Float[Tensor, ""]:
    """Say how far the mean ratio is from 1, measured by what so many samples allow.

        z = √( mean over iterations of (kl_k3 − kl_k1)² / (2·kl_k3 / B) )

    kl_k3 − kl_k1 is the mean of ratio − 1. Over actions that the old policy drew it is 0 on
    average, and the ratio of one sample spreads by about √(2·KL). So z is about 1 on a right loop,
    on any task and at any learning rate. It is far larger where the stored log-probabilities are
    not those of the stored actions, and about √M where one minibatch of M is dealt M times.

    Args:
        kl_k1: mean of −log ratio in each iteration (nats).
        kl_k3: mean of ratio − 1 − log ratio in each iteration, above 0 (nats).
        batch_size: B, the number of samples behind each mean.

    Returns:
        z, in standard errors.

    Raises:
        ValueError: if the shapes differ, there is no iteration, a kl_k3 is not above 0, or B is
            below 1.
    """
    check_same_shape(kl_k1=kl_k1, kl_k3=kl_k3)
    if not len(kl_k3) or not bool((kl_k3 > 0).all()) or batch_size < 1:
        raise ValueError(
            f"kl_k3 has {len(kl_k3)} numbers, the smallest is "
            f"{kl_k3.min().item() if len(kl_k3) else 'none'}, and batch_size is {batch_size}; "
            "expected at least one number, all above 0, and at least one sample. Leave out "
            "iterations in which the policy did not move."
        )
    return ((kl_k3 - kl_k1).square() / (2 * kl_k3 / batch_size)).mean().sqrt()


def lowest_entropy_of_two_softmaxes(num_actions: int) -> float:
    """Give the entropy below which a policy cannot fall whose probabilities are softmaxed again.

        p = e / (e + A − 1),   H = −p·log p − (A − 1)·q·log q,   q = 1 / (e + A − 1)

    The surest input of the second softmax is 1 for one action and 0 for all others.

    Args:
        num_actions: A, at least 2.

    Returns:
        H (nats).

    Raises:
        ValueError: if A is below 2.
    """
    if num_actions < 2:
        raise ValueError(f"num_actions is {num_actions}; expected at least 2. Give all actions.")
    probabilities = torch.ones(num_actions, dtype=torch.float64)
    probabilities[0] = e
    probabilities /= probabilities.sum()
    return -(probabilities * probabilities.log()).sum().item()
