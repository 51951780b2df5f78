"""Score: what stands in for the critic.

Each response is one draw, with one score. Several responses to the same prompt are a **group**,
and the others of its group are what a response can be compared with.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ppo_lessons.gae import normalize_advantages
from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_positive,
    check_same_shape,
    check_unit_interval,
)


def group_means(scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Give each response the mean score of its group, itself included.

    Args:
        scores: what each response earned (reward).
        groups: responses to the same prompt bear the same number; any order, any sizes.

    Returns:
        The mean of its group, for each response (reward).

    Raises:
        ValueError: if the shapes differ or a score is not finite.
        TypeError: if scores are not floating-point.
    """
    check_same_shape(scores=scores, groups=groups)
    check_floating(scores=scores)
    check_finite(scores=scores)
    together = same_group(groups).to(scores.dtype)
    return together @ scores / together.sum(1)


def group_spreads(scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Give each response the standard deviation of the scores of its group, by n − 1.

    Args:
        scores: what each response earned (reward).
        groups: responses to the same prompt bear the same number; at least two each.

    Returns:
        The spread of its group, for each response (reward); 0 where all scores are equal.

    Raises:
        ValueError: if the shapes differ, a score is not finite or a group has one response.
        TypeError: if scores are not floating-point.
    """
    check_group_sizes(groups)
    centred = centred_in_group(scores, groups)
    together = same_group(groups).to(scores.dtype)
    return (together @ centred**2 / (together.sum(1) - 1)).sqrt()


def dr_grpo_advantages(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Compare each response with its group: GRPO without the standard deviation.

        Â_i = r_i − mean of the group

    A mean that contains r_i itself shrinks the result by (G − 1) / G, in a group of G; the
    direction of the mean gradient stays.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number; at least two each.

    Returns:
        Â of each response (reward); 0 where all scores of a group are equal.

    Raises:
        ValueError: if the shapes differ, a score is not finite or a group has one response.
        TypeError: if scores are not floating-point.

    Source: Liu et al. 2025 (Dr. GRPO).
    """
    check_group_sizes(groups)
    return centred_in_group(scores, groups)


def group_advantages(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"], *, added_spread: float = 1e-4
) -> Float[Tensor, " B"]:
    """Compare each response with its group, in units of the group's spread (GRPO).

        Â_i = (r_i − mean of the group) / (standard deviation of the group + added_spread)

    For scores 0 and 1 the deviation is about √(p·(1 − p)): prompts that nearly always, or nearly
    never, succeed count for more than those that succeed half of the time.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number; at least two each.
        added_spread: above 0 (reward); 10⁻⁴ in TRL, 10⁻⁶ in verl.

    Returns:
        Â of each response (no unit); 0, and not NaN, where all scores of a group are equal.

    Raises:
        ValueError: if the shapes differ, a score is not finite, a group has one response or
            added_spread is not above 0.
        TypeError: if scores are not floating-point.

    Source: Shao et al. 2024 (DeepSeekMath); deviation by n − 1, as libraries compute it.
    """
    check_positive(added_spread=added_spread)
    centred = dr_grpo_advantages(scores, groups)
    return centred / (group_spreads(scores, groups) + added_spread)


def rloo_advantages(scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Compare each response with the others of its group (REINFORCE leave-one-out).

        Â_i = r_i − mean of r_j over j ≠ i   =   G / (G − 1) · (r_i − mean of the group)

    The baseline does not contain r_i, so it leaves the mean of the gradient where it is.

    Args:
        scores: r, what each response earned (reward); with a KL penalty in the reward, after it.
        groups: responses to the same prompt bear the same number; at least two each.

    Returns:
        Â of each response (reward).

    Raises:
        ValueError: if the shapes differ, a score is not finite or a group has one response.
        TypeError: if scores are not floating-point.

    Source: Kool et al. 2019; Ahmadian et al. 2024 (RLOO).
    """
    centred = dr_grpo_advantages(scores, groups)
    size = same_group(groups).sum(1).to(scores.dtype)
    return centred * size / (size - 1)


def reinforce_pp_advantages(
    rewards: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], *, gamma: float
) -> Float[Tensor, "B T"]:
    """Take what was earned from each token on, normalised over the whole batch (REINFORCE++).

        R_t = Σ_k γ^k·r_{t+k};   Â = (R − mean of R) / (standard deviation of R + 10⁻⁸)

    Mean and deviation are those of all tokens of all responses: the one baseline is a number, the
    same for every prompt. No groups are needed.

    Args:
        rewards: r_t of each token, a KL penalty included (reward).
        mask: true at the tokens that the policy chose.
        gamma: discount per token, in [0, 1].

    Returns:
        Â of each token (no unit); 0 where the mask is false.

    Raises:
        ValueError: if the shapes differ or γ leaves [0, 1].
        TypeError: if a dtype is wrong.

    Source: Hu 2025 (REINFORCE++). Libraries divide by n − 1 in the deviation; here, as in
        `normalize_advantages`, it is n.
    """
    check_same_shape(rewards=rewards, mask=mask)
    check_floating(rewards=rewards)
    check_unit_interval(gamma=gamma)
    rewards_to_go = token_rewards_to_go(rewards, mask, gamma=gamma)
    return normalize_advantages(rewards_to_go, mask=mask).masked_fill(~mask, 0)


def reinforce_pp_baseline_advantages(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Compare each response with its group, in units of the spread of the whole batch.

        Â = (r_i − mean of the group), then mean 0 and standard deviation 1 over all tokens

    The group gives the baseline; the scale is one number for the batch, so no prompt counts for
    more because its scores are nearly equal.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number; at least two each.
        mask: true at the tokens that the policy chose; long responses weigh more in the mean.

    Returns:
        Â of each token (no unit); 0 where the mask is false.

    Raises:
        ValueError: if the shapes differ, a score is not finite or a group has one response.
        TypeError: if a dtype is wrong.

    Source: Hu 2025 (REINFORCE++), there the form "w/ baseline".
    """
    advantages = for_every_token(dr_grpo_advantages(scores, groups), mask)
    return normalize_advantages(advantages, mask=mask).masked_fill(~mask, 0)


def for_every_token(
    advantages: Float[Tensor, " B"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Give each token of a response the advantage of the response.

    Args:
        advantages: Â of each response.
        mask: true at the tokens that the policy chose.

    Returns:
        Â of each token; 0 where the mask is false.

    Raises:
        ValueError: if there are not as many advantages as rows of the mask.
        TypeError: if the mask is not boolean.
    """
    check_bool(mask=mask)
    check_rows(mask, advantages=advantages)
    return advantages[:, None].expand(mask.shape).masked_fill(~mask, 0)


def token_rewards_to_go(
    rewards: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], *, gamma: float
) -> Float[Tensor, "B T"]:
    """Add up what was earned from each token to the end of its response.

        R_t = r_t + γ·R_{t+1}

    Args:
        rewards: r_t of each token (reward).
        mask: true at the tokens that the policy chose; what stands elsewhere counts as 0.
        gamma: discount per token, in [0, 1].

    Returns:
        R_t (discounted reward); 0 where the mask is false.

    Raises:
        ValueError: if the shapes differ, or γ is outside of [0, 1].
        TypeError: if the mask is not boolean, or rewards are whole numbers.
    """
    check_same_shape(rewards=rewards, mask=mask)
    check_bool(mask=mask)
    check_floating(rewards=rewards)
    check_unit_interval(gamma=gamma)
    columns = list(rewards.masked_fill(~mask, 0).unbind(1))
    for t in reversed(range(len(columns) - 1)):  # backwards: R_t needs R_{t+1}
        # a token that another speaker wrote, between two of ours, is no step: nothing is discounted
        kept = torch.where(mask[:, t], gamma, 1.0).to(rewards.dtype)
        columns[t] = columns[t] + kept * columns[t + 1]
    return torch.stack(columns, dim=1).masked_fill(~mask, 0)


# --- groups --------------------------------------------------------------------------------------


def same_group(groups: Int[Tensor, " B"]) -> Bool[Tensor, "B B"]:
    """Say which pairs of responses answer the same prompt."""
    return groups[:, None] == groups[None, :]


def centred_in_group(scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]) -> Tensor:
    """Subtract the mean of the group, and once more what rounding left of it."""
    centred = scores - group_means(scores, groups)
    return centred - group_means(centred, groups)


def check_group_sizes(groups: Int[Tensor, " B"]) -> None:
    """Require two responses or more in each group: one alone has nothing to be compared with.

    Raises:
        ValueError: with the first group that has only one.
    """
    sizes = same_group(groups).sum(1)
    if (sizes < 2).any():
        alone = int(groups[sizes < 2][0])
        raise ValueError(
            f"group {alone} has one response; expected at least two, since its only comparison "
            "would be with itself. Draw more responses for each prompt, or use "
            "reinforce_pp_advantages, which needs no groups."
        )


def check_rows(mask: Tensor, **tensors: Tensor) -> None:
    """Require one number per response.

    Raises:
        ValueError: if there are more or fewer.
    """
    for name, tensor in tensors.items():
        if tensor.shape != mask.shape[:1]:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; expected {tuple(mask.shape[:1])}, one "
                f"number for each row of a mask of shape {tuple(mask.shape)}."
            )
