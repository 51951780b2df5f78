"""Answers to the exercises of lesson 04."""

import math

import numpy as np
import torch
from mistakes import mistakes_of
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import clip

EXERCISES = (
    "clipped_surrogate",
    "clipped_surrogate_loss",
    "clip_fractions",
    "gradient_signs",
    "mended_loss",
    "asymmetric_dual_clip",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

RIGHT["clipped_surrogate"]["package"] = clip.clipped_surrogate
RIGHT["clipped_surrogate_loss"]["package"] = clip.clipped_surrogate_loss
RIGHT["mended_loss"]["package"] = clip.clipped_surrogate_loss
RIGHT["clip_fractions"]["package"] = clip.clip_fractions
# Those about masks break an argument that the exercise leaves out.
ABOUT_MASKS = (
    "mask_as_a_factor",
    "masked_entries_in_the_backward_pass",
    "divided_by_all_entries",
    "padding_counted",
)
for mistake in mistakes_of("clip"):
    if mistake.name not in ABOUT_MASKS:
        WRONG[mistake.breaks][mistake.name] = mistake.function


# --- the clipped surrogate -----------------------------------------------------------------


@passes("clipped_surrogate")
def where_by_sign(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    high = ratios.clamp(max=1 + clip_epsilon) * advantages
    low = ratios.clamp(min=1 - clip_epsilon) * advantages
    return torch.where(advantages > 0, high, low)


@passes("clipped_surrogate")
def clamp_by_sign(ratios, advantages, clip_epsilon):
    inf = torch.full_like(ratios, math.inf)
    top = torch.where(advantages >= 0, torch.full_like(ratios, 1 + clip_epsilon), inf)
    bottom = torch.where(advantages < 0, torch.full_like(ratios, 1 - clip_epsilon), -inf)
    return torch.maximum(torch.minimum(ratios, top), bottom) * advantages.detach()


@passes("clipped_surrogate")
def loop_over_samples(ratios, advantages, *, clip_epsilon):
    terms = []
    for ratio, advantage in zip(ratios.flatten(), advantages.detach().flatten(), strict=True):
        clipped = min(max(ratio, 1 - clip_epsilon), 1 + clip_epsilon)
        terms.append(min(ratio * advantage, clipped * advantage))
    return torch.stack(terms).reshape(ratios.shape)


@passes("clipped_surrogate")
def in_place_on_a_copy(ratios, advantages, *, clip_epsilon):
    kept = ratios.clone()
    too_high = (ratios > 1 + clip_epsilon) & (advantages > 0)
    too_low = (ratios < 1 - clip_epsilon) & (advantages < 0)
    kept[too_high] = 1 + clip_epsilon
    kept[too_low] = 1 - clip_epsilon
    return kept * advantages.detach()


@passes("clipped_surrogate")
def in_float32(ratios, advantages, *, clip_epsilon):
    ratios, advantages = ratios.float(), advantages.detach().float()
    terms = torch.stack([ratios, ratios.clip(1 - clip_epsilon, 1 + clip_epsilon)]) * advantages
    return terms.amin(dim=0)


@passes("clipped_surrogate")
def in_log_space(ratios, advantages, *, clip_epsilon):
    edges = math.log1p(-clip_epsilon), math.log1p(clip_epsilon)
    clipped = ratios.log().clamp(*edges).exp()
    return torch.min(ratios * advantages.detach(), clipped * advantages.detach())


@passes("clipped_surrogate")
def minus_what_is_too_much(ratios, advantages, *, clip_epsilon):
    advantages = advantages.data
    excess = functional.relu(ratios - 1 - clip_epsilon) * advantages.clamp(min=0)
    lack = functional.relu(1 - clip_epsilon - ratios) * (-advantages).clamp(min=0)
    return ratios * advantages - excess - lack


def as_loss(function):
    def loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
        ratios = (log_probs - log_probs_old.detach()).exp()
        return -function(ratios, advantages.detach(), clip_epsilon=clip_epsilon).mean()

    return loss


@passes("clipped_surrogate")
def plain_without_the_excess(ratios, advantages, *, clip_epsilon):
    plain = ratios * advantages.detach()
    clipped = ratios.clip(1 - clip_epsilon, 1 + clip_epsilon) * advantages.detach()
    return plain - functional.relu(plain - clipped)


@passes("clipped_surrogate")
def sorted_terms(ratios, advantages, *, clip_epsilon):
    with torch.no_grad():
        weights = advantages.clone()
    low, high = (torch.tensor(1 + sign * clip_epsilon) for sign in (-1, 1))
    both = torch.stack([ratios, torch.max(torch.min(ratios, high), low)], dim=-1)
    return (both * weights.unsqueeze(-1)).sort(dim=-1).values[..., 0]


@passes("clipped_surrogate")
def flags_as_factors(ratios, advantages, *, clip_epsilon):
    good = (advantages > 0).to(ratios.dtype)
    kept = good * ratios.clamp(max=1 + clip_epsilon)
    kept = kept + (1 - good) * ratios.clamp(min=1 - clip_epsilon)
    return kept * advantages.detach()


@breaks("clipped_surrogate")
def maximum_everywhere(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.maximum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def no_clip(ratios, advantages, *, clip_epsilon):
    return ratios * advantages.detach()


@breaks("clipped_surrogate")
def lower_edge_only(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    return torch.minimum(ratios * advantages, ratios.clamp(min=1 - clip_epsilon) * advantages)


@breaks("clipped_surrogate")
def product_clipped(ratios, advantages, *, clip_epsilon):
    plain = ratios * advantages.detach()
    return torch.minimum(plain, plain.clamp(1 - clip_epsilon, 1 + clip_epsilon))


@breaks("clipped_surrogate")
def epsilon_ignored(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages, clip_epsilon=0.2)


@breaks("clipped_surrogate")
def sign_of_the_advantage_only(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages.sign(), clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate")
def mean_over_the_batch(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate")
def ratio_detached_in_the_clip(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.detach().clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def lower_edge_is_a_quotient(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 / (1 + clip_epsilon), 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def upper_edge_for_both_signs(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    return torch.min(ratios * advantages, (1 + clip_epsilon) * advantages)


@breaks("clipped_surrogate")
def lower_edge_as_a_ceiling(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    good, bad = ratios.clamp(max=1 + clip_epsilon), ratios.clamp(max=1 - clip_epsilon)
    return torch.where(advantages > 0, good, bad) * advantages


@breaks("clipped_surrogate")
def advantage_forgotten(ratios, advantages, *, clip_epsilon):
    return torch.min(ratios, ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon))


@breaks("clipped_surrogate")
def advantage_clipped(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    return torch.min(
        ratios * advantages, ratios * advantages.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    )


@breaks("clipped_surrogate")
def advantages_normalised(ratios, advantages, *, clip_epsilon):
    deviation = advantages.std(unbiased=False)
    advantages = (advantages - advantages.mean()) / (deviation + 1e-8)
    return clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)


def normalised(*, unbiased, epsilon, if_several):
    def function(ratios, advantages, *, clip_epsilon):
        if not if_several or advantages.numel() > 1:
            centred = advantages - advantages.mean()
            # .std() warns where 0 is divided by 0
            deviation = (centred.square().sum() / (advantages.numel() - unbiased)).sqrt()
            advantages = centred / (deviation + epsilon)
        return clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)

    return function


WRONG["clipped_surrogate"] |= {
    f"advantages_normalised#{name}": normalised(
        unbiased=unbiased, epsilon=epsilon, if_several=if_several
    )
    for name, unbiased, epsilon, if_several in (
        ("sample_deviation", True, 1e-8, False),
        ("sample_deviation_if_several", True, 1e-8, True),
        ("if_several", False, 1e-8, True),
        ("nothing_added", False, 0.0, False),
    )
}


@breaks("clipped_surrogate")
def advantages_centred(ratios, advantages, *, clip_epsilon):
    advantages = advantages - advantages.mean()
    return clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate")
def lower_edge_at_epsilon(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def upper_edge_for_good_actions_outside(ratios, advantages, *, clip_epsilon):
    lower = clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)
    outside = (ratios - 1).abs() > clip_epsilon
    edge = (1 + clip_epsilon) * advantages.detach()
    return torch.where(outside & (advantages > 0), edge, lower)


@breaks("clipped_surrogate")
def average_of_the_terms(ratios, advantages, *, clip_epsilon):
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return (ratios + clipped) / 2 * advantages.detach()


@breaks("clipped_surrogate")
def smallest_of_all_samples(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.min(torch.stack([ratios * advantages, clipped * advantages]))


@breaks("clipped_surrogate")
def condition_turned(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    return torch.where(advantages < 0, torch.minimum(plain, clipped), torch.maximum(plain, clipped))


@breaks("clipped_surrogate")
def clip_always_at_the_lower_edge(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 + clip_epsilon, 1 - clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def ratio_minus_one(ratios, advantages, *, clip_epsilon):
    change, advantages = ratios - 1, advantages.detach()
    clipped = change.clamp(-clip_epsilon, clip_epsilon)
    return torch.minimum(change * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def chosen_by_the_ratio(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    return torch.where(ratios >= 1, torch.minimum(plain, clipped), torch.maximum(plain, clipped))


@breaks("clipped_surrogate")
def flat_samples_dropped(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    too_high = (ratios > 1 + clip_epsilon) & (advantages > 0)
    too_low = (ratios < 1 - clip_epsilon) & (advantages < 0)
    return torch.where(too_high | too_low, 0, ratios * advantages)


@breaks("clipped_surrogate")
def half_the_width(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon / 2)


@breaks("clipped_surrogate")
def ratio_taken_for_its_logarithm(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios.exp(), advantages, clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate")
def clipped_term_times_the_ratio(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, ratios * clipped * advantages)


@breaks("clipped_surrogate")
def ratio_detached_in_the_plain_term(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios.detach() * advantages, clipped * advantages)


@breaks("clipped_surrogate")
def absolute_advantage(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages.abs(), clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate")
def bad_actions_ignored(ratios, advantages, *, clip_epsilon):
    return clip.clipped_surrogate(ratios, advantages.relu(), clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate")
def clipped_for_bad_actions(ratios, advantages, *, clip_epsilon):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    lower = torch.minimum(ratios * advantages, clipped)
    return torch.where(advantages >= 0, lower, clipped)


# --- the loss ------------------------------------------------------------------------------


@passes("clipped_surrogate_loss", "mended_loss")
def maximum_of_the_negatives(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = torch.exp(log_probs - log_probs_old.detach())
    advantages = advantages.detach()
    clipped = torch.clamp(ratios, 1 - clip_epsilon, 1 + clip_epsilon)
    return torch.max(-ratios * advantages, -clipped * advantages).mean()


@passes("clipped_surrogate_loss", "mended_loss")
def loss_in_a_loop(log_probs, log_probs_old, advantages, clip_epsilon):
    total = 0.0
    rows = zip(log_probs.flatten(), log_probs_old.flatten(), advantages.flatten(), strict=True)
    for new, old, advantage in rows:
        ratio = torch.exp(new - old.item())
        clipped = ratio.clamp(1 - clip_epsilon, 1 + clip_epsilon)
        total = total - min(ratio * advantage.item(), clipped * advantage.item())
    return total / log_probs.numel()


@passes("clipped_surrogate_loss", "mended_loss")
def loss_with_a_mask_of_live_samples(log_probs, log_probs_old, advantages, *, clip_epsilon):
    with torch.no_grad():
        advantages = advantages.clone()
        ratios = (log_probs - log_probs_old).exp()
        flat = ((ratios > 1 + clip_epsilon) & (advantages > 0)) | (
            (ratios < 1 - clip_epsilon) & (advantages < 0)
        )
        edge = torch.where(advantages > 0, 1 + clip_epsilon, 1 - clip_epsilon)
    live = (log_probs - log_probs_old.detach()).exp()
    return -torch.where(flat, edge.to(live.dtype), live).mul(advantages).mean()


@passes("clipped_surrogate_loss", "mended_loss")
def loss_in_float32(log_probs, log_probs_old, advantages, *, clip_epsilon, mask=None):
    log_ratios = (log_probs - log_probs_old.detach()).float()
    edges = math.log(1 - clip_epsilon), math.log(1 + clip_epsilon)
    terms = torch.stack([log_ratios, log_ratios.clamp(*edges)]).exp() * advantages.detach().float()
    return -terms.min(dim=0).values.mean()


@passes("clipped_surrogate_loss", "mended_loss")
def loss_as_a_sum_divided(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old.clone().detach()).exp()
    signs = advantages.detach().sign()
    capped = signs * torch.minimum(signs * ratios, signs + clip_epsilon)
    return -(capped * advantages.detach()).sum() / advantages.numel()


NOT_RULES = (
    "sign_turned",
    "gradient_through_the_advantages",
    "mean_over_the_batch",
    "smallest_of_all_samples",
)
for name, function in WRONG["clipped_surrogate"].items():
    if name not in NOT_RULES:
        WRONG["clipped_surrogate_loss"][name] = as_loss(function)


def terms_of(log_probs, log_probs_old, advantages, clip_epsilon):
    ratios = (log_probs - log_probs_old.detach()).exp()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return ratios * advantages.detach(), clipped * advantages.detach()


@breaks("clipped_surrogate_loss")
def not_averaged(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return -torch.minimum(*terms_of(log_probs, log_probs_old, advantages, clip_epsilon))


def _smallest_of_all(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return -torch.stack(terms_of(log_probs, log_probs_old, advantages, clip_epsilon)).min()


WRONG["clipped_surrogate_loss"]["smallest_of_all_samples"] = _smallest_of_all


@breaks("clipped_surrogate_loss")
def minimum_of_the_means(log_probs, log_probs_old, advantages, *, clip_epsilon):
    plain, clipped = terms_of(log_probs, log_probs_old, advantages, clip_epsilon)
    return -torch.minimum(plain.mean(), clipped.mean())


@breaks("clipped_surrogate_loss")
def ratio_upside_down(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs_old.detach() - log_probs).exp()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def exponential_missing(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = log_probs - log_probs_old.detach()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def probabilities_divided(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = log_probs.exp() / log_probs_old.detach().exp()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


def _probabilities_guarded(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = log_probs.exp() / (log_probs_old.detach().exp() + 1e-8)
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


WRONG["clipped_surrogate_loss"]["probabilities_divided#guarded"] = _probabilities_guarded


def _nan_as_one(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs.exp() / log_probs_old.detach().exp()).nan_to_num(nan=1.0)
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


WRONG["clipped_surrogate_loss"]["probabilities_divided#nan_as_one"] = _nan_as_one


def mean_of_some(chosen, *, at_least):
    def loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
        plain, clipped = terms_of(log_probs, log_probs_old, advantages, clip_epsilon)
        ratios = (log_probs - log_probs_old).exp().detach()
        kept = chosen(ratios, advantages, plain, clipped, clip_epsilon)
        return -(torch.minimum(plain, clipped) * kept).sum() / kept.sum().clamp(min=at_least)

    return loss


def inside(ratios, advantages, plain, clipped, epsilon):
    return (ratios - 1).abs() <= epsilon


def alive(ratios, advantages, plain, clipped, epsilon):
    return plain <= clipped


def not_zero(ratios, advantages, plain, clipped, epsilon):
    return advantages != 0


WRONG["clipped_surrogate_loss"] |= {
    "mean_over_the_unclipped": mean_of_some(inside, at_least=0),
    "mean_over_the_unclipped#at_least_one": mean_of_some(inside, at_least=1),
    "mean_over_the_unclipped#alive": mean_of_some(alive, at_least=0),
    "mean_over_the_unclipped#alive_at_least_one": mean_of_some(alive, at_least=1),
    "zero_advantages_left_out": mean_of_some(not_zero, at_least=0),
}


@breaks("clipped_surrogate_loss")
def quotient_of_the_logarithms(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = log_probs / log_probs_old.detach()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def ratio_forgotten(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return -(log_probs * advantages.detach()).mean()


@breaks("clipped_surrogate_loss")
def difference_of_probabilities(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = log_probs.exp() - log_probs_old.detach().exp()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def means_multiplied(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old.detach()).exp()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -torch.min(ratios, clipped).mean() * advantages.detach().mean()


@breaks("clipped_surrogate_loss")
def logarithms_added(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs + log_probs_old.detach()).exp()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def one_ratio_for_the_batch(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratio = (log_probs.sum() - log_probs_old.detach().sum()).exp()
    return -clip.clipped_surrogate(ratio, advantages.mean(), clip_epsilon=clip_epsilon)


@breaks("clipped_surrogate_loss")
def one_plus_the_log_ratio(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = 1 + log_probs - log_probs_old.detach()
    return -clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def old_policy_forgotten(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return -clip.clipped_surrogate(log_probs.exp(), advantages, clip_epsilon=clip_epsilon).mean()


@breaks("clipped_surrogate_loss")
def log_prob_times_a_constant_ratio(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old).exp().detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -(clipped * advantages.detach() * log_probs).mean()


@breaks("clipped_surrogate_loss")
def penalty_added(log_probs, log_probs_old, advantages, *, clip_epsilon):
    loss = clip.clipped_surrogate_loss(
        log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon
    )
    return loss + (log_probs_old.detach() - log_probs).mean()


# --- the mended loss -----------------------------------------------------------------------

WRONG["mended_loss"] |= WRONG["clipped_surrogate_loss"]


# --- the two fractions ---------------------------------------------------------------------


def sides(log_probs, log_probs_old, advantages, epsilon):
    ratios = (log_probs - log_probs_old).exp()
    above, below = ratios > 1 + epsilon, ratios < 1 - epsilon
    return above, below, (above & (advantages > 0)) | (below & (advantages < 0))


def shares(*flags):
    return tuple(flag.double().mean() for flag in flags)


@passes("clip_fractions")
def compares_the_two_terms(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old).exp()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    outside = ratios != clipped
    flat = clipped * advantages < ratios * advantages
    return outside.float().mean(), flat.float().mean()


@passes("clip_fractions")
def counts_in_a_loop(log_probs, log_probs_old, advantages, clip_epsilon):
    outside = flat = 0
    rows = [each.flatten().tolist() for each in (log_probs, log_probs_old, advantages)]
    for new, old, advantage in zip(*rows, strict=True):
        ratio = math.exp(new - old)
        if abs(ratio - 1) > clip_epsilon:
            outside += 1
            if (ratio - 1) * advantage > 0:
                flat += 1
    return outside / len(rows[0]), flat / len(rows[0])


@passes("clip_fractions")
def with_numpy(log_probs, log_probs_old, advantages, *, clip_epsilon):
    change = np.expm1((log_probs - log_probs_old).numpy())
    outside = np.abs(change) > clip_epsilon
    flat = outside & (np.sign(change) == np.sign(advantages.numpy()))
    return [outside.mean(), flat.mean()]


@passes("clip_fractions")
def in_logarithms(log_probs, log_probs_old, advantages, *, clip_epsilon):
    log_ratios = log_probs - log_probs_old
    above = log_ratios > math.log(1 + clip_epsilon)
    below = log_ratios < math.log(1 - clip_epsilon)
    pushed = torch.where(advantages > 0, above, below) & (advantages != 0)
    return torch.stack([(above | below).double().mean(), pushed.double().mean()])


@passes("clip_fractions")
def by_autograd(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old).exp().requires_grad_()
    clip.clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon).sum().backward()
    flat = (ratios.grad == 0) & (advantages != 0)
    outside = (ratios.detach() - 1).abs() > clip_epsilon
    return outside.double().mean().item(), flat.double().mean().item()


@breaks("clip_fractions")
def below_only(log_probs, log_probs_old, advantages, *, clip_epsilon):
    _, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(below, below & (advantages < 0))


def _first_above_only(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, _, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above, flat)


def _first_below_only(log_probs, log_probs_old, advantages, *, clip_epsilon):
    _, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(below, flat)


WRONG["clip_fractions"]["above_only#first"] = _first_above_only
WRONG["clip_fractions"]["below_only#first"] = _first_below_only


@breaks("clip_fractions")
def both_complements(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(~(above | below), ~flat)


@breaks("clip_fractions")
def living_gradient_counted(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, ~flat)


def _living_and_not_zero(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, ~flat & (advantages != 0))


WRONG["clip_fractions"]["living_gradient_counted#not_zero"] = _living_and_not_zero


def shares_without_zeros(*, both, at_least):
    def function(log_probs, log_probs_old, advantages, *, clip_epsilon):
        above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
        outside, kept = above | below, advantages != 0
        count = kept.sum().clamp(min=at_least)
        first = (outside & kept).sum() / count if both else outside.double().mean()
        return first, flat.sum() / count

    return function


WRONG["clip_fractions"] |= {
    "zero_advantages_left_out": shares_without_zeros(both=False, at_least=0),
    "zero_advantages_left_out#at_least_one": shares_without_zeros(both=False, at_least=1),
    "zero_advantages_left_out#both": shares_without_zeros(both=True, at_least=0),
    "zero_advantages_left_out#both_at_least_one": shares_without_zeros(both=True, at_least=1),
}


@breaks("clip_fractions")
def counted_instead_of_averaged(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return (above | below).sum(), flat.sum()


@breaks("clip_fractions")
def inside_counted(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(~(above | below), flat)


@breaks("clip_fractions")
def complement_for_the_second(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, ~(above | below))


@breaks("clip_fractions")
def order_of_the_two(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(flat, above | below)


@breaks("clip_fractions")
def zero_advantage_counted(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, (above & (advantages >= 0)) | (below & (advantages <= 0)))


@breaks("clip_fractions")
def share_of_those_outside(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    outside = above | below
    return outside.double().mean(), flat.sum() / outside.sum().clamp(min=1)


def _share_of_those_outside_or_nan(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    outside = above | below
    return outside.double().mean(), flat.sum() / outside.sum()


WRONG["clip_fractions"]["share_of_those_outside#or_nan"] = _share_of_those_outside_or_nan


@breaks("clip_fractions")
def percent(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return tuple(100 * share for share in shares(above | below, flat))


@breaks("clip_fractions")
def ratio_compared_with_epsilon(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs - log_probs_old).exp()
    above, below = ratios > clip_epsilon, ratios < -clip_epsilon
    return shares(above | below, (above & (advantages > 0)) | (below & (advantages < 0)))


@breaks("clip_fractions")
def good_actions_only(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, above & (advantages > 0))


@breaks("clip_fractions")
def outside_and_good(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    outside = above | below
    return shares(outside, outside & (advantages > 0))


@breaks("clip_fractions")
def equal_terms_counted(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    inside = ~(above | below)
    return shares(inside, inside | (advantages == 0))


@breaks("clip_fractions")
def bad_actions_only(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, below & (advantages < 0))


@breaks("clip_fractions")
def outside_and_bad(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    outside = above | below
    return shares(outside, outside & (advantages < 0))


@breaks("clip_fractions")
def whether_instead_of_how_many(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return (above | below).any().double(), flat.any().double()


@breaks("clip_fractions")
def product_compared_with_epsilon(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    change = (log_probs - log_probs_old).exp() - 1
    return shares(above | below, change * advantages > clip_epsilon)


def _zero_goes_below(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, _ = sides(log_probs, log_probs_old, advantages, clip_epsilon)
    return shares(above | below, torch.where(advantages > 0, above, below))


WRONG["clip_fractions"]["zero_advantage_counted#one_side"] = _zero_goes_below


def _quotient(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = (log_probs / log_probs_old).log()
    above, below, flat = sides(ratios, 0 * ratios, advantages, clip_epsilon)
    return shares(above | below, flat)


WRONG["clip_fractions"]["quotient_of_the_logarithms"] = _quotient


def _upside_down(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs_old, log_probs, advantages, clip_epsilon)
    return shares(above | below, flat)


WRONG["clip_fractions"]["ratio_upside_down"] = _upside_down


def _epsilon_ignored(log_probs, log_probs_old, advantages, *, clip_epsilon):
    above, below, flat = sides(log_probs, log_probs_old, advantages, 0.2)
    return shares(above | below, flat)


WRONG["clip_fractions"]["epsilon_ignored"] = _epsilon_ignored

# --- six signs -----------------------------------------------------------------------------

LETTERS = "abcdef"
SIGNS = (1, 0, 1, -1, 0, -1)
RIGHT["gradient_signs"] = {
    "numbers": dict(zip(LETTERS, SIGNS, strict=True)),
    "floats_in_a_list": [float(sign) for sign in SIGNS],
    "a_list": list(SIGNS),
    "capital_letters": dict(zip("ABCDEF", SIGNS, strict=True)),
    "a_tensor": torch.tensor(SIGNS),
    "slopes": (1.0, 0.0, 1.0, -1.0, 0.0, np.float64(-1)),
}
WRONG["gradient_signs"] = {
    name: dict(zip(LETTERS, signs, strict=True))
    for name, signs in {
        "signs_of_the_loss": (-1, 0, -1, 1, 0, 1),
        "outside_is_always_flat": (1, 0, 0, 0, 0, -1),
        "inverted_for_bad_actions": (1, 0, 1, 0, -1, -1),
        "pulled_back": (1, -1, 1, -1, 1, -1),
        "sign_of_the_advantage": (1, 1, 1, -1, -1, -1),
        "good_actions_clipped_only": (1, 0, 1, -1, -1, -1),
        "bad_actions_clipped_only": (1, 1, 1, -1, 0, -1),
        "sides_swapped": (1, 1, 0, 0, -1, -1),
        "direction_of_the_ratio": (1, 1, -1, 1, -1, -1),
        "advantage_times_direction": (1, 1, -1, -1, 1, 1),
        "all_flat": (0, 0, 0, 0, 0, 0),
        "one_for_negative_too": (1, 0, 1, 1, 0, 1),
    }.items()
}

# --- the asymmetric dual clip --------------------------------------------------------------


@passes("asymmetric_dual_clip")
def as_defined(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_high, bound)


def dual(ratios, advantages, low, high, bound):
    """Everything by its definition; the wrong ones below change one thing."""
    plain, clipped = ratios * advantages, ratios.clamp(1 - low, 1 + high) * advantages
    lower = torch.minimum(plain, clipped)
    return torch.where(advantages < 0, torch.maximum(lower, bound * advantages), lower)


@passes("asymmetric_dual_clip")
def interval_by_sign(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    good = ratios.clamp(max=1 + epsilon_high)
    bad = ratios.clamp(1 - epsilon_low, bound)
    return torch.where(advantages > 0, good, bad) * advantages


@passes("asymmetric_dual_clip")
def dual_in_a_loop(ratios, advantages, epsilon_low, epsilon_high, bound):
    terms = []
    for ratio, advantage in zip(ratios.flatten(), advantages.flatten().tolist(), strict=True):
        term = min(ratio * advantage, ratio.clamp(1 - epsilon_low, 1 + epsilon_high) * advantage)
        if advantage < 0:
            term = max(term, ratio * 0 + bound * advantage)
        terms.append(term)
    return torch.stack(terms).reshape(ratios.shape)


@passes("asymmetric_dual_clip")
def dual_in_place_on_a_copy(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    kept, good = ratios.clone(), advantages >= 0
    kept[good & (ratios > 1 + epsilon_high)] = 1 + epsilon_high
    kept[~good & (ratios < 1 - epsilon_low)] = 1 - epsilon_low
    kept[~good & (ratios > bound)] = bound
    return kept * advantages.detach()


@passes("asymmetric_dual_clip")
def dual_in_float32(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach().float()
    logs = ratios.float().log()
    good = logs.clamp(max=math.log(1 + epsilon_high)).exp()
    bad = logs.clamp(math.log(1 - epsilon_low), math.log(bound)).exp()
    return good * advantages.relu() - bad * (-advantages).relu()


@breaks("asymmetric_dual_clip")
def symmetric_low(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_low, bound)


@breaks("asymmetric_dual_clip")
def symmetric_high(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_high, epsilon_high, bound)


@breaks("asymmetric_dual_clip")
def edges_swapped(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_high, epsilon_low, bound)


@breaks("asymmetric_dual_clip")
def bound_missing(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_high, math.inf)


@breaks("asymmetric_dual_clip")
def bound_for_good_actions_too(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high)
    lower = torch.minimum(ratios * advantages, clipped * advantages)
    return torch.maximum(lower, bound * advantages)


@breaks("asymmetric_dual_clip")
def minimum_with_the_bound(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(advantages < 0, torch.minimum(lower, bound * advantages), lower)


@breaks("asymmetric_dual_clip")
def bound_without_the_advantage(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(advantages < 0, lower.clamp(min=-bound), lower)


@breaks("asymmetric_dual_clip")
def upper_edge_at_the_bound(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, bound)
    return torch.minimum(ratios * advantages, clipped * advantages)


def _dual_clamp_without_minimum(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages.detach()


WRONG["asymmetric_dual_clip"]["clamp_without_minimum"] = _dual_clamp_without_minimum


def _dual_maximum(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages
    bad = torch.maximum(torch.maximum(plain, clipped), bound * advantages)
    return torch.where(advantages < 0, bad, torch.minimum(plain, clipped))


WRONG["asymmetric_dual_clip"]["maximum_for_bad_actions"] = _dual_maximum


def _dual_sign_turned(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return -dual(ratios, advantages.detach(), epsilon_low, epsilon_high, bound)


WRONG["asymmetric_dual_clip"]["sign_turned"] = _dual_sign_turned


def _dual_leak(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages, epsilon_low, epsilon_high, bound)


WRONG["asymmetric_dual_clip"]["gradient_through_the_advantages"] = _dual_leak


@breaks("asymmetric_dual_clip")
def bound_added_to_one(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_high, 1 + bound)


@breaks("asymmetric_dual_clip")
def floor_on_the_clipped_term(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages
    lower = torch.minimum(ratios * advantages, clipped)
    return torch.where(advantages < 0, torch.maximum(lower, bound * clipped), lower)


def _dual_plain_for_bad(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, bound)
    floored = torch.maximum(ratios * advantages, bound * advantages)
    return torch.where(advantages < 0, floored, lower)


WRONG["asymmetric_dual_clip"]["plain_for_bad_actions"] = _dual_plain_for_bad


@breaks("asymmetric_dual_clip")
def floor_turned_positive(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(advantages < 0, torch.maximum(lower, -bound * advantages), lower)


@breaks("asymmetric_dual_clip")
def floor_for_good_actions_only(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(advantages > 0, torch.maximum(lower, bound * advantages), lower)


def _dual_clipped_for_bad(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages
    return torch.where(advantages < 0, clipped, torch.minimum(ratios * advantages, clipped))


def _dual_clipped_for_bad_then_floor(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages
    floored = torch.maximum(clipped, bound * advantages)
    return torch.where(advantages < 0, floored, torch.minimum(ratios * advantages, clipped))


WRONG["asymmetric_dual_clip"]["clipped_for_bad_actions"] = _dual_clipped_for_bad
WRONG["asymmetric_dual_clip"]["clipped_for_bad_actions#floor"] = _dual_clipped_for_bad_then_floor


@breaks("asymmetric_dual_clip")
def ratio_capped_at_the_bound(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages, capped = advantages.detach(), ratios.clamp(max=bound)
    clipped = capped.clamp(1 - epsilon_low, 1 + epsilon_high)
    return torch.minimum(capped * advantages, clipped * advantages)


def _capped_in_the_plain_term(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high)
    return torch.minimum(ratios.clamp(max=bound) * advantages, clipped * advantages)


WRONG["asymmetric_dual_clip"]["ratio_capped_at_the_bound#plain"] = _capped_in_the_plain_term


@breaks("asymmetric_dual_clip")
def floor_before_the_clip(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    floored = torch.maximum(ratios * advantages, bound * advantages)
    plain = torch.where(advantages < 0, floored, ratios * advantages)
    return torch.minimum(plain, ratios.clamp(1 - epsilon_low, 1 + epsilon_high) * advantages)


@breaks("asymmetric_dual_clip")
def lower_edge_without_one(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), 1 - epsilon_low, epsilon_high, bound)


@breaks("asymmetric_dual_clip")
def upper_edge_without_one(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_high - 1, bound)


def _dual_upper_for_good_outside(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, bound)
    outside = (ratios < 1 - epsilon_low) | (ratios > 1 + epsilon_high)
    return torch.where(outside & (advantages > 0), (1 + epsilon_high) * advantages, lower)


WRONG["asymmetric_dual_clip"]["upper_edge_for_good_actions_outside"] = _dual_upper_for_good_outside


def _bound_for_both_beyond(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(ratios > bound, bound * advantages, lower)


WRONG["asymmetric_dual_clip"]["bound_for_good_actions_too#beyond"] = _bound_for_both_beyond


@breaks("asymmetric_dual_clip")
def edges_without_one(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), 1 - epsilon_low, epsilon_high - 1, bound)


@breaks("asymmetric_dual_clip")
def floor_at_the_advantage(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    return dual(ratios, advantages.detach(), epsilon_low, epsilon_high, 1)


@breaks("asymmetric_dual_clip")
def bound_as_a_factor(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    advantages = advantages.detach()
    lower = dual(ratios, advantages, epsilon_low, epsilon_high, math.inf)
    return torch.where(advantages < 0, bound * lower, lower)


# --- slow definitions ----------------------------------------------------------------------


def each(function, *rows):
    """Apply a rule to each place of nested lists of one shape."""
    if isinstance(rows[0], list):
        return [each(function, *row) for row in zip(*rows, strict=True)]
    return function(*rows)


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def slow_sample(ratio, advantage, low, high, bound=math.inf):
    """The objective of one sample, branch by branch."""
    if advantage > 0:
        return ratio * advantage if ratio <= high else high * advantage
    if ratio < low:
        return low * advantage
    return bound * advantage if ratio > bound else ratio * advantage


def slow_surrogate(ratios, advantages, *, clip_epsilon):
    edges = 1 - clip_epsilon, 1 + clip_epsilon
    return each(lambda ratio, advantage: slow_sample(ratio, advantage, *edges), ratios, advantages)


def slow_ratios(log_probs, log_probs_old):
    return each(lambda new, old: math.exp(new - old), log_probs, log_probs_old)


def slow_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = slow_ratios(log_probs, log_probs_old)
    terms = flat(slow_surrogate(ratios, advantages, clip_epsilon=clip_epsilon))
    return -sum(terms) / len(terms)


def slow_fractions(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = flat(slow_ratios(log_probs, log_probs_old))
    outside = [not 1 - clip_epsilon <= ratio <= 1 + clip_epsilon for ratio in ratios]
    rows = zip(outside, ratios, flat(advantages), strict=True)
    silent = [out and (ratio - 1) * advantage > 0 for out, ratio, advantage in rows]
    return sum(outside) / len(ratios), sum(silent) / len(ratios)


def slow_dual(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    edges = 1 - epsilon_low, 1 + epsilon_high, bound
    return each(lambda ratio, advantage: slow_sample(ratio, advantage, *edges), ratios, advantages)


ORACLES = {
    "clipped_surrogate": slow_surrogate,
    "clipped_surrogate_loss": slow_loss,
    "clip_fractions": slow_fractions,
    "mended_loss": slow_loss,
    "asymmetric_dual_clip": slow_dual,
}
