"""The methods as data: which function each one puts into which stage.

A method is a row of functions. What the row does is not written down anywhere: `board` finds it out
by asking the functions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.gae import normalize_advantages
from ppo_lessons.importance import importance_ratios
from ppo_lessons.rlhf import critic_advantages
from ppo_lessons.shapes import check_same_shape, stop_masked
from ppo_lessons.tokens import RESPONSE_LENGTH
from ppo_lessons.variants.advantages import (
    dr_grpo_advantages,
    for_every_token,
    group_advantages,
    reinforce_pp_advantages,
    reinforce_pp_baseline_advantages,
    rloo_advantages,
    token_rewards_to_go,
)
from ppo_lessons.variants.losses import (
    aggregate,
    asymmetric_surrogate,
    cispo_objective,
    sequence_surrogate_loss,
    token_surrogate_loss,
)

Advantages = tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]
Slot = Callable[..., Advantages]


# --- Score: functions for the slot `advantages` of `train_tokens` --------------------------------


def from_scores(of_responses: Callable[..., Tensor]) -> Slot:
    """Make a slot of `train_tokens` from a function of scores and groups.

    A response's score is the sum of its rewards, so a KL penalty in the reward is part of it.

    Args:
        of_responses: (scores, groups) → Â of each response, such as `group_advantages`.

    Returns:
        (rewards, values, mask, groups) → Â of each token, and what was earned from it on.
    """

    def slot(
        rewards: Float[Tensor, "B T"],
        values: Float[Tensor, "B T"] | None,
        mask: Bool[Tensor, "B T"],
        groups: Int[Tensor, " B"],
    ) -> Advantages:
        returns = token_rewards_to_go(rewards, mask, gamma=1.0)
        scores = rewards.masked_fill(~mask, 0).sum(1)
        return for_every_token(of_responses(scores, groups), mask), returns

    return slot


def reinforce_pp_slot(
    rewards: Float[Tensor, "B T"],
    values: Float[Tensor, "B T"] | None,
    mask: Bool[Tensor, "B T"],
    groups: Int[Tensor, " B"],
    *,
    gamma: float,
) -> Advantages:
    """Fill the slot `advantages` with REINFORCE++: neither values nor groups are used.

    Args:
        rewards: r_t of each token (reward).
        values: not used.
        mask: true at the tokens that the policy chose.
        groups: not used.
        gamma: discount per token, in [0, 1].

    Returns:
        Â of each token (no unit), and what was earned from it on (discounted reward).
    """
    returns = token_rewards_to_go(rewards, mask, gamma=gamma)
    return reinforce_pp_advantages(rewards, mask, gamma=gamma), returns


def reinforce_pp_baseline_slot(
    rewards: Float[Tensor, "B T"],
    values: Float[Tensor, "B T"] | None,
    mask: Bool[Tensor, "B T"],
    groups: Int[Tensor, " B"],
) -> Advantages:
    """Fill the slot `advantages` with REINFORCE++ and a baseline: values are not used.

    Args:
        rewards: r_t of each token (reward).
        values: not used.
        mask: true at the tokens that the policy chose.
        groups: responses to the same prompt bear the same number.

    Returns:
        Â of each token (no unit), and what was earned from it on (reward).
    """
    scores = rewards.masked_fill(~mask, 0).sum(1)
    returns = token_rewards_to_go(rewards, mask, gamma=1.0)
    return reinforce_pp_baseline_advantages(scores, groups, mask), returns


def scores_themselves(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Take the score for the advantage: no baseline, as in rejection-sampling fine-tuning."""
    return scores


def unchanged(
    advantages: Float[Tensor, "*batch"], *, mask: Bool[Tensor, "*batch"] | None = None
) -> Float[Tensor, "*batch"]:
    """Leave advantages as they are, in the slot `normalize`."""
    return advantages


# --- Squeeze: functions for the slot `policy_loss` -----------------------------------------------


def plain_token_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Push each token by its advantage, whoever drew it: no ratio, no clip.

        loss = −mean over tokens of Â·log π

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: not used, and that is the point.
        advantages: Â of each token; constants.
        mask: true at the tokens that the policy chose.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ.

    Source: Williams 1992 (REINFORCE).
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    terms = stop_masked(log_probs, mask) * advantages.detach()
    return -aggregate(terms, mask, mode="token_mean")


def plain_sequence_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Take a whole response for one action (RLOO as published): no ratio, no clip.

        loss = −mean over responses of Σ_t Â·log π(y_t)

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: not used.
        advantages: Â of each token, the same throughout a response; constants.
        mask: true at the tokens that the policy chose.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ.

    Source: Ahmadian et al. 2024 (RLOO).
    """
    check_same_shape(log_probs=log_probs, log_probs_old=log_probs_old, advantages=advantages)
    terms = stop_masked(log_probs, mask) * advantages.detach()
    return -aggregate(terms, mask, mode="sequence_sum")


def dapo_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    mask: Bool[Tensor, "B T"],
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Float[Tensor, ""]:
    """Turn the surrogate with two edges into a loss, each token weighing the same (DAPO).

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: log π_old of each token (nats); a constant.
        advantages: Â of each token; constants.
        mask: true at the tokens that the policy chose.
        clip_low: ε_low, in (0, 1].
        clip_high: ε_high, above 0.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or an edge is out of range.

    Source: Yu et al. 2025 (DAPO).
    """
    ratios = importance_ratios(stop_masked(log_probs, mask), log_probs_old.detach())
    terms = asymmetric_surrogate(ratios, advantages, clip_low=clip_low, clip_high=clip_high)
    return -aggregate(terms, mask, mode="token_mean")


def cispo_loss(
    log_probs: Float[Tensor, "B T"],
    log_probs_old: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    clip_epsilon: float,
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Turn `cispo_objective` into a loss, each token weighing the same.

    Args:
        log_probs: log π of each token, with gradient (nats).
        log_probs_old: log π_old of each token (nats); a constant.
        advantages: Â of each token; constants.
        clip_epsilon: ε_high, above 0.
        mask: true at the tokens that the policy chose.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or ε is not above 0.
    """
    log_probs = stop_masked(log_probs, mask)
    terms = cispo_objective(log_probs, log_probs_old, advantages, clip_high=clip_epsilon)
    return -aggregate(terms, mask, mode="token_mean")


# --- the rows ------------------------------------------------------------------------------------

MAX_LENGTH = RESPONSE_LENGTH  # tokens: the longest answer in the sorting language


@dataclass(frozen=True)
class Method:
    """One method: what it puts into each stage. None where the stage is not there.

    Attributes:
        name: as people call it.
        collect: where its responses come from.
        group_size: responses to one prompt, in our runs.
        advantages: for the slot of `train_tokens`; None if nothing is scored this way.
        kl: where the distance from the reference is charged, in the published form.
        normalize: for the slot `normalize` of `Parts`.
        policy_loss: for the slot `policy_loss` of `Parts`.
        critic: whether a critic is trained.
    """

    name: str
    collect: Literal["fresh", "fresh, equal groups left out", "once, from the reference"]
    group_size: int
    advantages: Slot | None
    kl: Literal["reward", "loss", "none", "in the loss's form"]
    normalize: Callable[..., Tensor]
    policy_loss: Callable[..., Tensor] | None
    critic: bool = False


METHODS: tuple[Method, ...] = (
    Method(
        "PPO", "fresh", 1, partial(critic_advantages, gamma=1.0, gae_lambda=0.95), "reward",
        normalize_advantages, clipped_surrogate_loss, critic=True,
    ),
    Method(
        "RLOO", "fresh", 8, from_scores(rloo_advantages), "reward", unchanged, plain_sequence_loss
    ),
    Method(
        "GRPO", "fresh", 8, from_scores(group_advantages), "loss", unchanged,
        partial(token_surrogate_loss, mode="sequence_mean"),
    ),
    Method(
        "Dr. GRPO", "fresh", 8, from_scores(dr_grpo_advantages), "none", unchanged,
        partial(token_surrogate_loss, mode="constant", max_length=MAX_LENGTH),
    ),
    Method(
        "DAPO", "fresh, equal groups left out", 8, from_scores(group_advantages), "none", unchanged,
        dapo_loss,
    ),
    Method(
        "REINFORCE++", "fresh", 1, partial(reinforce_pp_slot, gamma=1.0), "reward", unchanged,
        clipped_surrogate_loss,
    ),
    Method(
        "REINFORCE++ baseline", "fresh", 8, reinforce_pp_baseline_slot, "loss", unchanged,
        clipped_surrogate_loss,
    ),
    Method(
        "GSPO", "fresh", 8, from_scores(group_advantages), "none", unchanged,
        sequence_surrogate_loss,
    ),
    Method("CISPO", "fresh", 8, from_scores(group_advantages), "none", unchanged, cispo_loss),
    Method(
        "Rejection sampling", "fresh", 8, from_scores(scores_themselves), "none", unchanged,
        plain_token_loss,
    ),
    Method("DPO", "once, from the reference", 8, None, "in the loss's form", unchanged, None),
)  # fmt: skip


def find_method(name: str) -> Method:
    """Look a method up by its name.

    Args:
        name: as in `METHODS`; upper and lower case are alike.

    Returns:
        The method.

    Raises:
        ValueError: if there is none of that name, with those that there are.
    """
    for method in METHODS:
        if method.name.lower() == name.lower():
            return method
    known = ", ".join(method.name for method in METHODS)
    raise ValueError(f"no method {name!r}; expected one of: {known}. Choose one of them.")
