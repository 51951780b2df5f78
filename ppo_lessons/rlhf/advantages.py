"""Advantages of tokens: the recursion of lesson 06, over the tokens of an answer."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ppo_lessons.gae import compute_gae
from ppo_lessons.rlhf.checks import check_answers
from ppo_lessons.shapes import check_same_shape


def token_gae(
    rewards: Float[Tensor, "B T"],
    values: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "B T"]:
    """Run `compute_gae` along each answer: one token is one step, and the last one terminates.

        δ_t = r_t + γ·V(s_{t+1}) − V(s_t),    V = 0 after the last token
        Â_t = δ_t + γλ·Â_{t+1}

    Only tokens that the policy chose are steps. Where the mask has a gap, as around the words of a
    user in the middle, the step leads over it to the policy's own next token.

    Args:
        rewards: r_t, as `token_rewards` gives them (reward).
        values: V(s_t), before token t is chosen (discounted reward).
        mask: true at the tokens that the policy chose.
        gamma: discount per token, in [0, 1]; 1 is usual.
        gae_lambda: λ, in [0, 1].

    Returns:
        Â_t (discounted reward), 0 where the mask is false, whatever stands there.

    Raises:
        ValueError: if shapes differ, an answer has no token, a number that counts is not finite, or
            γ or λ leaves [0, 1].
        TypeError: if a dtype is wrong.

    Source: Schulman et al. 2016 (GAE), eq. 16, with one episode per answer.
    """
    check_same_shape(rewards=rewards, values=values, mask=mask)
    check_answers(mask)
    # own tokens to the front, in their order; compute_gae wants time first
    order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
    rewards, values = (
        numbers.masked_fill(~mask, 0).gather(1, order).T for numbers in (rewards, values)
    )
    steps = torch.arange(len(rewards), device=mask.device).unsqueeze(1)
    terminated = steps == mask.sum(dim=1) - 1
    next_values = torch.cat([values[1:], torch.zeros_like(values[:1])])
    advantages = compute_gae(
        rewards, values, next_values, terminated, torch.zeros_like(terminated),
        gamma=gamma, gae_lambda=gae_lambda,
    )  # fmt: skip
    return torch.zeros_like(advantages.T).scatter(1, order, advantages.T).masked_fill(~mask, 0)


def critic_advantages(
    rewards: Float[Tensor, "B T"],
    values: Float[Tensor, "B T"] | None,
    mask: Bool[Tensor, "B T"],
    groups: Int[Tensor, " B"],
    *,
    gamma: float,
    gae_lambda: float,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Estimate advantages with a critic: what `train_tokens` does unless told otherwise.

        Â = token_gae(r, V),    returns = Â + V     before anybody normalises Â

    Args:
        rewards: r_t (reward).
        values: V(s_t) (discounted reward).
        mask: true at the tokens that the policy chose.
        groups: which prompt each answer belongs to; not used here.
        gamma: discount per token, in [0, 1].
        gae_lambda: λ, in [0, 1].

    Returns:
        Advantages and the critic's targets (discounted reward), both 0 where the mask is false.

    Raises:
        ValueError: if there is no critic, or as `token_gae`.
    """
    if values is None:
        raise ValueError(
            "values is None, since train_tokens was given critic=None; expected a critic. Give "
            "one, or an advantage function that needs none."
        )
    advantages = token_gae(rewards, values, mask, gamma=gamma, gae_lambda=gae_lambda)
    return advantages, (advantages + values).masked_fill(~mask, 0)
