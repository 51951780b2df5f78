"""DPO: no reward model, no critic, no draws. What remains is a comparison of four numbers.

    max over π of  E_π[r] − β·KL(π ‖ π_ref)      has the solution     π* = π_ref·exp(r / β) / Z
    turned round:  r = β·log(π* / π_ref) + β·log Z

Z depends on the prompt alone. In the difference of two responses to the same prompt it cancels, so
the Bradley-Terry loss of a reward model becomes a loss of the policy itself. π* is
`tilted_log_probs` of lesson 14.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_floating,
    check_positive,
    check_same_shape,
    stop_masked,
)


def implicit_rewards(
    log_probs: Float[Tensor, "*batch"],
    log_probs_reference: Float[Tensor, "*batch"],
    *,
    beta: float,
) -> Float[Tensor, "*batch"]:
    """Read from a policy the reward for which it would be the optimum, up to a constant.

        β·(log π − log π_ref)   =   r − β·log Z

    Args:
        log_probs: log π of whole responses (nats).
        log_probs_reference: log π_ref of the same responses (nats).
        beta: β, above 0 (reward per nat).

    Returns:
        The reward of each response, less a number that only its prompt decides (reward).

    Raises:
        ValueError: if the shapes differ or β is not above 0.

    Source: Rafailov et al. 2023 (DPO).
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference)
    check_positive(beta=beta)
    return beta * (log_probs - log_probs_reference)


def sequence_log_probs(
    log_probs: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Add up the log-probabilities of a response: its own, given the prompt.

        log π(y | x) = Σ_t log π(y_t | x, y_<t)

    Args:
        log_probs: log π of each token (nats).
        mask: true at the tokens of the response, the end included; prompt and padding are false.

    Returns:
        One number per response (nats); 0 for an empty one.

    Raises:
        ValueError: if the shapes differ.
        TypeError: if the mask is not boolean.
    """
    check_same_shape(log_probs=log_probs, mask=mask)
    check_bool(mask=mask)
    return stop_masked(log_probs, mask).masked_fill(~mask, 0).sum(1)


def dpo_loss(
    chosen: Float[Tensor, " B"],
    rejected: Float[Tensor, " B"],
    chosen_reference: Float[Tensor, " B"],
    rejected_reference: Float[Tensor, " B"],
    *,
    beta: float,
) -> Float[Tensor, ""]:
    """Make the chosen response likelier than the rejected one, relative to the reference.

        margin = β·( (log π − log π_ref)(chosen) − (log π − log π_ref)(rejected) )
        loss = −mean log σ(margin)

    log 2 at the start. Only the margin counts: the chosen response may become less likely, as long
    as the rejected one falls faster.

    Args:
        chosen: log π of the better responses, summed over their tokens, with gradient (nats).
        rejected: the same of the worse responses.
        chosen_reference: log π_ref of the better responses (nats); constants.
        rejected_reference: log π_ref of the worse responses (nats); constants.
        beta: β, above 0 (reward per nat).

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ, there is no pair or β is not above 0.

    Source: Rafailov et al. 2023 (DPO), eq. 7.
    """
    check_same_shape(
        chosen=chosen,
        rejected=rejected,
        chosen_reference=chosen_reference,
        rejected_reference=rejected_reference,
    )
    if chosen.numel() == 0:
        raise ValueError("chosen is empty; expected at least one pair. Make some pairs first.")
    better = implicit_rewards(chosen, chosen_reference.detach(), beta=beta)
    worse = implicit_rewards(rejected, rejected_reference.detach(), beta=beta)
    return -logsigmoid(better - worse).mean()


def token_dpo_loss(
    chosen: Float[Tensor, "B T"],
    rejected: Float[Tensor, "B T"],
    chosen_reference: Float[Tensor, "B T"],
    rejected_reference: Float[Tensor, "B T"],
    *,
    beta: float,
    chosen_mask: Bool[Tensor, "B T"],
    rejected_mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Compute `dpo_loss` from the log-probabilities of tokens.

    Each response has a mask of its own, since the two are of different lengths. Their tokens are
    added up, not averaged: the derivation speaks of probabilities of whole responses.

    Args:
        chosen: log π of the tokens of the better responses, with gradient (nats).
        rejected: the same of the worse responses.
        chosen_reference: log π_ref of the better responses' tokens (nats); constants.
        rejected_reference: log π_ref of the worse responses' tokens (nats); constants.
        beta: β, above 0 (reward per nat).
        chosen_mask: true at the tokens of the better responses, the end included.
        rejected_mask: the same of the worse responses.

    Returns:
        The loss, to be minimised.

    Raises:
        ValueError: if the shapes differ or β is not above 0.
        TypeError: if a mask is not boolean.

    Source: Rafailov et al. 2023 (DPO), eq. 7.
    """
    return dpo_loss(
        sequence_log_probs(chosen, chosen_mask),
        sequence_log_probs(rejected, rejected_mask),
        sequence_log_probs(chosen_reference, chosen_mask),
        sequence_log_probs(rejected_reference, rejected_mask),
        beta=beta,
    )


def make_pairs(
    scores: Float[Tensor, " B"], groups: Int[Tensor, " B"]
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Pair the best response of each group with its worst, then the second with the second worst.

    A response is used once at most. Equal scores make no pair: there is nothing to prefer.

    Args:
        scores: r, what each response earned (reward).
        groups: responses to the same prompt bear the same number.

    Returns:
        Indices of the chosen responses, and of the rejected ones beside them.

    Raises:
        ValueError: if the shapes differ or a score is not finite.
        TypeError: if scores are not floating-point.
    """
    check_same_shape(scores=scores, groups=groups)
    check_floating(scores=scores)
    check_finite(scores=scores)
    chosen, rejected = [], []
    for group in groups.unique().tolist():
        members = (groups == group).nonzero().squeeze(-1)
        ranked = members[scores[members].argsort(descending=True, stable=True)]
        half = len(ranked) // 2
        better, worse = ranked[:half], ranked.flip(0)[:half]
        apart = scores[better] > scores[worse]
        chosen.append(better[apart])
        rejected.append(worse[apart])
    empty = torch.zeros(0, dtype=torch.long)
    return torch.cat([empty, *chosen]), torch.cat([empty, *rejected])
