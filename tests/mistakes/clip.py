"""Classic mistakes around the clipped surrogate."""

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def objective(ratios, advantages, clip_epsilon):
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


def averaged(terms, mask):
    return terms.mean() if mask is None else terms[mask].mean()


@breaks("clipped_surrogate")
def clamp_without_minimum(ratios, advantages, *, clip_epsilon):
    """Clips and leaves out the minimum: no gradient either where the ratio must come back."""
    return ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages.detach()


@breaks("clipped_surrogate")
def maximum_for_bad_actions(ratios, advantages, *, clip_epsilon):
    """Takes the maximum where Â < 0 (an inverted clip): pushes only where it should stop."""
    advantages = advantages.detach()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    return torch.where(
        advantages >= 0, torch.minimum(plain, clipped), torch.maximum(plain, clipped)
    )


@breaks("clipped_surrogate")
def sign_turned(ratios, advantages, *, clip_epsilon):
    """Gives a loss where an objective is asked for."""
    return -objective(ratios, advantages.detach(), clip_epsilon)


@breaks("clipped_surrogate")
def clip_on_the_log_ratio(ratios, advantages, *, clip_epsilon):
    """Clips log ratio to ±ε: the edges are e^−ε and e^ε, not 1 − ε and 1 + ε."""
    advantages = advantages.detach()
    clipped = ratios.log().clamp(-clip_epsilon, clip_epsilon).exp()
    return torch.minimum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def one_sided_clip(ratios, advantages, *, clip_epsilon):
    """Clips above only: a bad action is pushed down without end."""
    advantages = advantages.detach()
    return torch.minimum(ratios * advantages, ratios.clamp(max=1 + clip_epsilon) * advantages)


@breaks("clipped_surrogate")
def gradient_through_the_advantages(ratios, advantages, *, clip_epsilon):
    """Trains the critic, through Â, to make actions look good."""
    return objective(ratios, advantages, clip_epsilon)


@breaks("clipped_surrogate")
def clip_around_zero(ratios, advantages, *, clip_epsilon):
    """Clips the ratio itself to ±ε, as if no change were 0."""
    advantages = advantages.detach()
    return torch.minimum(
        ratios * advantages, ratios.clamp(-clip_epsilon, clip_epsilon) * advantages
    )


@breaks("clipped_surrogate")
def outside_thrown_away(ratios, advantages, *, clip_epsilon):
    """Drops every sample outside the interval, and with it the pull back."""
    inside = (ratios - 1).abs() <= clip_epsilon
    return torch.where(inside, ratios * advantages.detach(), 0)


@breaks("clipped_surrogate_loss")
def objective_called_a_loss(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Has its sign turned: a step down makes good actions rare."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    return averaged(objective(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("clipped_surrogate_loss")
def old_log_probs_with_gradient(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Lets the gradient through the old log-probabilities too: the two cancel to 0."""
    ratios = (log_probs - log_probs_old).exp()
    return -averaged(objective(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("clipped_surrogate_loss")
def ratio_of_a_tensor_with_itself(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Divides the policy by itself: ratio 1, gradient 0, for ever."""
    ratios = (log_probs - log_probs).exp()
    return -averaged(objective(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("clipped_surrogate_loss")
def sum_over_the_batch(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Sums: the step size grows with the batch."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    terms = objective(ratios, advantages.detach(), clip_epsilon)
    return -(terms if mask is None else terms[mask]).sum()


@breaks("clipped_surrogate_loss")
def critic_trained_through_the_policy_loss(
    log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None
):
    """Forgets that advantages are constants."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    return -averaged(objective(ratios, advantages, clip_epsilon), mask)


@breaks("clipped_surrogate_loss")
def mask_as_a_factor(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Multiplies by the mask: a NaN that should not count makes the loss NaN."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    terms = objective(ratios, advantages.detach(), clip_epsilon)
    return -terms.mean() if mask is None else -(terms * mask).sum() / mask.sum().clamp(min=1)


@breaks("clipped_surrogate_loss")
def masked_entries_in_the_backward_pass(
    log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None
):
    """Masks after the exponential: the loss is right, its gradient is 0·infinity."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    terms = objective(ratios, advantages.detach(), clip_epsilon)
    if mask is None:
        return -terms.mean()
    return -terms.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)


@breaks("clipped_surrogate_loss")
def divided_by_all_entries(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Divides by the padding as well, so a batch with more of it takes smaller steps."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    terms = objective(ratios, advantages.detach(), clip_epsilon)
    return -terms.mean() if mask is None else -terms[mask].sum() / mask.numel()


@breaks("clip_fractions")
def outside_reported_twice(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Takes every sample outside for one without gradient, also those that are pulled back."""
    outside = ((log_probs - log_probs_old).exp() - 1).abs() > clip_epsilon
    fraction = averaged(outside.to(log_probs.dtype), mask)
    return fraction, fraction


@breaks("clip_fractions")
def log_ratio_for_the_ratio(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Compares log ratio with ε: the lower edge comes too early, the upper one too late."""
    log_ratios = log_probs - log_probs_old
    above, below = log_ratios > clip_epsilon, log_ratios < -clip_epsilon
    silent = (above & (advantages > 0)) | (below & (advantages < 0))
    return tuple(averaged(share.to(log_probs.dtype), mask) for share in (above | below, silent))


@breaks("clip_fractions")
def sides_swapped(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Counts the samples that are pulled back as those without gradient."""
    ratios = (log_probs - log_probs_old).exp()
    above, below = ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon
    silent = (above & (advantages < 0)) | (below & (advantages > 0))
    return tuple(averaged(share.to(log_probs.dtype), mask) for share in (above | below, silent))


@breaks("clip_fractions")
def above_only(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Forgets the lower edge."""
    above = (log_probs - log_probs_old).exp() > 1 + clip_epsilon
    shares = (above, above & (advantages > 0))
    return tuple(averaged(share.to(log_probs.dtype), mask) for share in shares)


@breaks("clip_fractions")
def padding_counted(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    """Counts masked samples."""
    ratios = (log_probs - log_probs_old).exp()
    above, below = ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon
    silent = (above & (advantages > 0)) | (below & (advantages < 0))
    return tuple(share.to(log_probs.dtype).mean() for share in (above | below, silent))
