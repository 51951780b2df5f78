"""Classic mistakes around advantages without a critic, aggregation, sequence ratios and DPO."""

import torch
from torch.nn.functional import logsigmoid

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def together(scores, groups):
    return (groups[:, None] == groups[None, :]).to(scores.dtype)


def mean_of_group(scores, groups):
    same = together(scores, groups)
    return same @ scores / same.sum(1)


def deviation(scores, groups, less=1):
    same = together(scores, groups)
    centred = scores - mean_of_group(scores, groups)
    return (same @ centred**2 / (same.sum(1) - less)).sqrt()


def spread_out(advantages, mask):
    return torch.where(mask, advantages[:, None], 0)


def to_go(rewards, mask, gamma):
    rewards = torch.where(mask, rewards, 0)
    rows = []
    for row in rewards.unbind(0):
        following, reversed_row = torch.zeros_like(row[0]), []
        for reward in row.flip(0):
            following = reward + gamma * following
            reversed_row.append(following)
        rows.append(torch.stack(reversed_row[::-1]))
    return torch.where(mask, torch.stack(rows), 0)


def whitened(values, mask):
    chosen = values[mask]
    return torch.where(mask, (values - chosen.mean()) / (chosen.std(unbiased=False) + 1e-8), 0)


# --- Advantages ----------------------------------------------------------------------------------


@breaks("group_advantages")
def spread_divided_by_n(scores, groups, *, added_spread=1e-4):
    """Divides by n in the deviation: small groups get larger advantages."""
    centred = scores - mean_of_group(scores, groups)
    return centred / (deviation(scores, groups, less=0) + added_spread)


@breaks("group_advantages")
def spread_of_the_whole_batch(scores, groups, *, added_spread=1e-4):
    """Divides by one deviation for all groups."""
    return (scores - mean_of_group(scores, groups)) / (scores.std() + added_spread)


@breaks("group_advantages")
def nothing_added_to_the_spread(scores, groups, *, added_spread=1e-4):
    """Divides by the deviation alone: a group of equal scores becomes NaN."""
    return (scores - mean_of_group(scores, groups)) / deviation(scores, groups)


@breaks("group_advantages")
def groups_taken_as_they_stand(scores, groups, *, added_spread=1e-4):
    """Cuts the batch into rows instead of looking at the groups: a shuffled batch is mixed up."""
    rows = torch.arange(len(scores)) * len(groups.unique()) // len(scores)
    centred = scores - mean_of_group(scores, rows)
    return centred / (deviation(scores, rows) + added_spread)


@breaks("group_advantages")
def divided_by_the_variance(scores, groups, *, added_spread=1e-4):
    """Forgets the square root."""
    centred = scores - mean_of_group(scores, groups)
    return centred / (deviation(scores, groups) ** 2 + added_spread)


@breaks("group_advantages")
def compared_with_the_first_only(scores, groups, *, added_spread=1e-4):
    """Takes the group's first score for its mean."""
    first = torch.stack([scores[groups == group][0] for group in groups])
    return (scores - first) / (deviation(scores, groups) + added_spread)


@breaks("dr_grpo_advantages")
def spread_still_there(scores, groups):
    """Divides by the deviation, which Dr. GRPO leaves out."""
    return (scores - mean_of_group(scores, groups)) / (deviation(scores, groups) + 1e-4)


@breaks("dr_grpo_advantages")
def mean_of_all_prompts(scores, groups):
    """Subtracts one mean for all: easy prompts are praised for being easy."""
    return scores - scores.mean()


@breaks("dr_grpo_advantages")
def sign_of_the_comparison_turned(scores, groups):
    """Subtracts the score from the mean."""
    return mean_of_group(scores, groups) - scores


@breaks("dr_grpo_advantages")
def median_for_mean(scores, groups):
    """Compares with the median: the advantages of a group do not add up to 0."""
    middle = torch.stack([scores[groups == group].median() for group in groups])
    return scores - middle


@breaks("rloo_advantages")
def own_score_in_the_baseline(scores, groups):
    """Subtracts the mean of the group, its own score included."""
    return scores - mean_of_group(scores, groups)


@breaks("rloo_advantages")
def others_divided_by_the_group_size(scores, groups):
    """Adds up the others and divides by G, not by G − 1."""
    same = together(scores, groups)
    return scores - (same @ scores - scores) / same.sum(1)


@breaks("rloo_advantages")
def factor_upside_down(scores, groups):
    """Multiplies by (G − 1) / G where G / (G − 1) belongs."""
    size = together(scores, groups).sum(1)
    return (scores - mean_of_group(scores, groups)) * (size - 1) / size


@breaks("rloo_advantages")
def all_others_of_the_batch(scores, groups):
    """Leaves one out of the batch, not of the group."""
    return scores - (scores.sum() - scores) / (len(scores) - 1)


@breaks("reinforce_pp_advantages")
def normalised_in_each_response(rewards, mask, *, gamma):
    """Normalises each response by itself: a good and a bad one look alike."""
    rows = [
        whitened(row[None], counted[None])
        for row, counted in zip(to_go(rewards, mask, gamma), mask, strict=True)
    ]
    return torch.cat(rows)


@breaks("reinforce_pp_advantages")
def padding_in_the_mean(rewards, mask, *, gamma):
    """Averages over padding too: the longest response sets the scale."""
    returns = to_go(rewards, mask, gamma)
    normal = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-8)
    return torch.where(mask, normal, 0)


@breaks("reinforce_pp_advantages")
def reward_of_the_token_alone(rewards, mask, *, gamma):
    """Takes the token's own reward: only the last one hears of the score."""
    return whitened(torch.where(mask, rewards, 0), mask)


@breaks("reinforce_pp_advantages")
def discount_forgotten(rewards, mask, *, gamma):
    """Adds rewards up without γ."""
    return whitened(to_go(rewards, mask, 1.0), mask)


@breaks("reinforce_pp_advantages")
def mean_not_subtracted(rewards, mask, *, gamma):
    """Divides by the spread and keeps the mean: there is no baseline."""
    returns = to_go(rewards, mask, gamma)
    return torch.where(mask, returns / (returns[mask].std(unbiased=False) + 1e-8), 0)


@breaks("reinforce_pp_advantages")
def padding_left_as_it_is(rewards, mask, *, gamma):
    """Leaves what the shift by the mean puts into padding."""
    returns = to_go(rewards, mask, gamma)
    chosen = returns[mask]
    return (returns - chosen.mean()) / (chosen.std(unbiased=False) + 1e-8)


@breaks("reinforce_pp_baseline_advantages")
def group_mean_left_out(scores, groups, mask):
    """Normalises over the batch and subtracts no group mean: REINFORCE++ without its baseline."""
    return whitened(spread_out(scores, mask), mask)


@breaks("reinforce_pp_baseline_advantages")
def spread_of_each_group(scores, groups, mask):
    """Divides by the spread of the group: that is GRPO."""
    centred = scores - mean_of_group(scores, groups)
    return spread_out(centred / (deviation(scores, groups) + 1e-4), mask)


@breaks("reinforce_pp_baseline_advantages")
def each_response_counted_once(scores, groups, mask):
    """Takes mean and spread over responses, though the loss is one over tokens."""
    centred = scores - mean_of_group(scores, groups)
    normal = (centred - centred.mean()) / (centred.std(unbiased=False) + 1e-8)
    return spread_out(normal, mask)


@breaks("reinforce_pp_baseline_advantages")
def shifted_padding(scores, groups, mask):
    """Shifts padding by the mean along with the tokens."""
    tokens = spread_out(scores - mean_of_group(scores, groups), mask)
    chosen = tokens[mask]
    return (tokens - chosen.mean()) / (chosen.std(unbiased=False) + 1e-8)


@breaks("token_rewards_to_go")
def from_the_start_on(rewards, mask, *, gamma):
    """Adds up what came before the token."""
    return torch.where(mask, torch.where(mask, rewards, 0).cumsum(1), 0)


@breaks("token_rewards_to_go")
def no_discount_per_token(rewards, mask, *, gamma):
    """Leaves γ out."""
    return to_go(rewards, mask, 1.0)


@breaks("token_rewards_to_go")
def padding_earns_too(rewards, mask, *, gamma):
    """Counts what stands in padding."""
    return torch.where(mask, to_go(rewards, torch.ones_like(mask), gamma), 0)


@breaks("token_rewards_to_go")
def cut_at_a_gap(rewards, mask, *, gamma):
    """Begins anew after another speaker's token: what was said before it hears no score."""
    columns, following = [], torch.zeros_like(rewards[:, 0])
    for reward, counted in zip(rewards.flip(1).T, mask.flip(1).T, strict=True):
        following = torch.where(counted, reward + gamma * following, 0)
        columns.append(following)
    return torch.stack(columns[::-1], dim=1)


# --- Clips ---------------------------------------------------------------------------------------


def clipped(ratios, advantages, low, high):
    advantages = advantages.detach()
    return torch.minimum(ratios * advantages, ratios.clamp(1 - low, 1 + high) * advantages)


@breaks("asymmetric_surrogate")
def edges_swapped(ratios, advantages, *, clip_low, clip_high):
    """Uses the lower edge above and the upper one below."""
    return clipped(ratios, advantages, clip_high, clip_low)


@breaks("asymmetric_surrogate")
def one_edge_for_both(ratios, advantages, *, clip_low, clip_high):
    """Uses the lower edge on both sides."""
    return clipped(ratios, advantages, clip_low, clip_low)


@breaks("asymmetric_surrogate")
def no_minimum(ratios, advantages, *, clip_low, clip_high):
    """Clips without the minimum: a good action that became rare is not brought back."""
    return ratios.clamp(1 - clip_low, 1 + clip_high) * advantages.detach()


@breaks("asymmetric_surrogate")
def advantages_that_learn(ratios, advantages, *, clip_low, clip_high):
    """Lets the gradient into the advantages."""
    bounded = ratios.clamp(1 - clip_low, 1 + clip_high)
    return torch.minimum(ratios * advantages, bounded * advantages)


@breaks("dual_clipped_surrogate")
def no_limit_on_the_punishment(ratios, advantages, *, clip_epsilon, most_punished):
    """Is the usual clip: a bad action that became likely is punished without limit."""
    return clipped(ratios, advantages, clip_epsilon, clip_epsilon)


@breaks("dual_clipped_surrogate")
def limit_on_good_actions_too(ratios, advantages, *, clip_epsilon, most_punished):
    """Takes the maximum with c·Â for every sign: good actions are paid c."""
    surrogate = clipped(ratios, advantages, clip_epsilon, clip_epsilon)
    return torch.maximum(surrogate, most_punished * advantages.detach())


@breaks("dual_clipped_surrogate")
def minimum_for_maximum(ratios, advantages, *, clip_epsilon, most_punished):
    """Punishes every bad action as if its ratio were at least c."""
    surrogate = clipped(ratios, advantages, clip_epsilon, clip_epsilon)
    limited = torch.minimum(surrogate, most_punished * advantages.detach())
    return torch.where(advantages < 0, limited, surrogate)


@breaks("cispo_objective")
def gradient_through_the_weight(log_probs, log_probs_old, advantages, *, clip_high):
    """Lets the gradient into the weight, too."""
    weights = (log_probs - log_probs_old.detach()).exp().clamp(max=1 + clip_high)
    return weights * advantages.detach() * log_probs


@breaks("cispo_objective")
def ratio_itself_is_cut(log_probs, log_probs_old, advantages, *, clip_high):
    """Cuts the ratio and differentiates it: beyond the edge there is no gradient."""
    ratios = (log_probs - log_probs_old.detach()).exp().clamp(max=1 + clip_high)
    return ratios * advantages.detach()


@breaks("cispo_objective")
def weight_left_out(log_probs, log_probs_old, advantages, *, clip_high):
    """Forgets who drew the tokens."""
    return advantages.detach() * log_probs


@breaks("cispo_objective")
def weight_never_cut(log_probs, log_probs_old, advantages, *, clip_high):
    """Lets one token weigh as much as its ratio says."""
    weights = (log_probs - log_probs_old).exp().detach()
    return weights * advantages.detach() * log_probs


# --- Sequence ratios -----------------------------------------------------------------------------


@breaks("sequence_ratios")
def not_divided_by_the_length(log_probs, log_probs_old, mask):
    """Takes the ratio of whole responses: long ones leave every interval at once."""
    return torch.where(mask, log_probs - log_probs_old, 0).sum(1).exp()


@breaks("sequence_ratios")
def mean_of_the_ratios(log_probs, log_probs_old, mask):
    """Averages the ratios of the tokens, not their logarithms."""
    ratios = torch.where(mask, (log_probs - log_probs_old).exp(), 0)
    return ratios.sum(1) / mask.sum(1).clamp(min=1)


@breaks("sequence_ratios")
def divided_by_the_padded_width(log_probs, log_probs_old, mask):
    """Counts padding in the length: short responses look as if nothing had moved."""
    return torch.where(mask, log_probs - log_probs_old, 0).mean(1).exp()


@breaks("sequence_ratios")
def mask_as_a_number(log_probs, log_probs_old, mask):
    """Multiplies by the mask: NaN in padding spreads."""
    return (((log_probs - log_probs_old) * mask).sum(1) / mask.sum(1).clamp(min=1)).exp()


def response_loss(ratios, advantages, mask, clip_epsilon):
    mean = torch.where(mask, advantages, 0).sum(1) / mask.sum(1).clamp(min=1)
    return clipped(ratios, mean, clip_epsilon, clip_epsilon)


@breaks("sequence_surrogate_loss")
def tokens_clipped_one_by_one(log_probs, log_probs_old, advantages, *, clip_epsilon, mask):
    """Clips each token's ratio: that is GRPO."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    terms = clipped(ratios, advantages, clip_epsilon, clip_epsilon)
    return -(torch.where(mask, terms, 0).sum(1) / mask.sum(1).clamp(min=1)).mean()


@breaks("sequence_surrogate_loss")
def responses_added_up(log_probs, log_probs_old, advantages, *, clip_epsilon, mask):
    """Adds responses up: twice the batch is twice the step."""
    ratios = sequence_ratio(log_probs, log_probs_old.detach(), mask)
    return -response_loss(ratios, advantages, mask, clip_epsilon).sum()


@breaks("sequence_surrogate_loss")
def product_of_the_ratios(log_probs, log_probs_old, advantages, *, clip_epsilon, mask):
    """Uses the ratio of the whole response, not per token."""
    ratios = not_divided_by_the_length(log_probs, log_probs_old.detach(), mask)
    return -response_loss(ratios, advantages, mask, clip_epsilon).mean()


@breaks("sequence_surrogate_loss")
def objective_for_loss(log_probs, log_probs_old, advantages, *, clip_epsilon, mask):
    """Has its sign turned."""
    ratios = sequence_ratio(log_probs, log_probs_old.detach(), mask)
    return response_loss(ratios, advantages, mask, clip_epsilon).mean()


def sequence_ratio(log_probs, log_probs_old, mask):
    return (torch.where(mask, log_probs - log_probs_old, 0).sum(1) / mask.sum(1).clamp(min=1)).exp()


# --- The weight of a token -----------------------------------------------------------------------


def weights_of(mask, mode, max_length):
    counted = mask.to(torch.get_default_dtype())
    return {
        "token_mean": lambda: counted / mask.sum(),
        "sequence_mean": lambda: counted / mask.sum(1, keepdim=True).clamp(min=1) / len(mask),
        "sequence_sum": lambda: counted / len(mask),
        "constant": lambda: counted / (len(mask) * max_length),
    }[mode]()


@breaks("token_weights")
def padding_counted(mask, *, mode, max_length=None, dtype=None):
    """Divides by the number of places, padding included."""
    if mode == "token_mean":
        return mask.to(torch.get_default_dtype()) / mask.numel()
    return weights_of(mask, mode, max_length)


@breaks("token_weights")
def mean_of_means_everywhere(mask, *, mode, max_length=None, dtype=None):
    """Averages within responses first, whatever was asked: the switch does nothing."""
    return weights_of(mask, "sequence_mean", max_length)


@breaks("token_weights")
def responses_not_counted(mask, *, mode, max_length=None, dtype=None):
    """Forgets to divide by the number of responses in the constant mode: the step grows with it."""
    if mode == "constant":
        return mask.to(torch.get_default_dtype()) / max_length
    return weights_of(mask, mode, max_length)


@breaks("token_weights")
def longest_of_the_batch_for_the_longest_allowed(mask, *, mode, max_length=None, dtype=None):
    """Divides by the longest response of this batch: the constant is none."""
    return weights_of(mask, mode, int(mask.sum(1).max()))


@breaks("aggregate")
def plain_mean(terms, mask, *, mode, max_length=None):
    """Averages over all places: padding dilutes."""
    return torch.where(mask, terms, 0).mean()


@breaks("aggregate")
def junk_multiplied(terms, mask, *, mode, max_length=None):
    """Multiplies padding by 0: NaN stays NaN."""
    return (terms * weights_of(mask, mode, max_length)).sum()


@breaks("aggregate")
def switch_after_the_sum(terms, mask, *, mode, max_length=None):
    """Averages within responses first, and applies the mode to what is left of it: no effect."""
    means = torch.where(mask, terms, 0).sum(1) / mask.sum(1).clamp(min=1)
    return means.mean()


@breaks("token_surrogate_loss")
def split_changes_the_gradient(
    log_probs, log_probs_old, advantages, *, clip_epsilon, mask, mode, max_length=None
):
    """Averages over two halves of the batch by themselves, then over the halves."""
    halves = [slice(0, len(mask) // 2), slice(len(mask) // 2, None)]
    losses = []
    for half in halves:
        ratios = (log_probs[half] - log_probs_old[half].detach()).exp()
        terms = clipped(ratios, advantages[half], clip_epsilon, clip_epsilon)
        weights = weights_of(mask[half], mode, max_length).to(terms.dtype)
        losses.append(-torch.where(mask[half], terms * weights, 0).sum())
    return torch.stack(losses).mean()


@breaks("token_surrogate_loss")
def gradient_of_the_old_policy(
    log_probs, log_probs_old, advantages, *, clip_epsilon, mask, mode, max_length=None
):
    """Lets the gradient through the old log-probabilities: it cancels to 0."""
    ratios = (log_probs - log_probs_old).exp()
    terms = clipped(ratios, advantages, clip_epsilon, clip_epsilon)
    weights = weights_of(mask, mode, max_length).to(terms.dtype)
    return -torch.where(mask, terms * weights, 0).sum()


@breaks("token_surrogate_loss")
def clip_forgotten(
    log_probs, log_probs_old, advantages, *, clip_epsilon, mask, mode, max_length=None
):
    """Leaves the clip out."""
    terms = (log_probs - log_probs_old.detach()).exp() * advantages.detach()
    weights = weights_of(mask, mode, max_length).to(terms.dtype)
    return -torch.where(mask, terms * weights, 0).sum()


@breaks("kl_loss")
def reference_that_learns(
    log_probs, log_probs_reference, mask, *, estimator, mode, max_length=None
):
    """Lets the gradient into the reference."""
    terms = kl_term(log_probs - log_probs_reference, estimator)
    return (torch.where(mask, terms, 0) * weights_of(mask, mode, max_length)).sum()


@breaks("kl_loss")
def the_other_way_round(log_probs, log_probs_reference, mask, *, estimator, mode, max_length=None):
    """Subtracts the policy from the reference: k3 is then that of the other samples."""
    terms = kl_term(log_probs_reference.detach() - log_probs, estimator)
    return (torch.where(mask, terms, 0) * weights_of(mask, mode, max_length)).sum()


@breaks("kl_loss")
def always_k3(log_probs, log_probs_reference, mask, *, estimator, mode, max_length=None):
    """Takes k3 whatever was asked for."""
    terms = kl_term(log_probs - log_probs_reference.detach(), "k3")
    return (torch.where(mask, terms, 0) * weights_of(mask, mode, max_length)).sum()


def kl_term(difference, estimator):
    return {
        "k1": difference,
        "k2": difference**2 / 2,
        "k3": (-difference).exp() - 1 + difference,
    }[estimator]


# --- Sampling ------------------------------------------------------------------------------------


@breaks("informative_groups")
def only_all_wrong_left_out(scores, groups):
    """Leaves out groups with mean 0: those that are always right stay."""
    return mean_of_group(scores, groups) != 0


@breaks("informative_groups")
def kept_and_left_out_swapped(scores, groups):
    """Keeps the groups that teach nothing."""
    return deviation(scores, groups) == 0


@breaks("informative_groups")
def compared_with_other_prompts(scores, groups):
    """Looks whether the score differs from any other of the batch."""
    return (scores[:, None] != scores[None, :]).any(1)


@breaks("overlong_penalty")
def a_cliff(lengths, *, max_length, margin):
    """Takes 1 at the longest length, and nothing before it."""
    return -(lengths >= max_length).to(torch.get_default_dtype())


@breaks("overlong_penalty")
def penalty_without_end(lengths, *, max_length, margin):
    """Goes on below −1 beyond the longest length."""
    return -((lengths - (max_length - margin)) / margin).clamp(min=0)


@breaks("overlong_penalty")
def a_reward_for_length(lengths, *, max_length, margin):
    """Has its sign turned."""
    return ((lengths - (max_length - margin)) / margin).clamp(0, 1)


@breaks("overlong_penalty")
def slope_from_the_start(lengths, *, max_length, margin):
    """Takes something for each token."""
    return -(lengths / max_length).clamp(0, 1)


@breaks("best_of_n")
def best_of_the_batch(scores, groups):
    """Gives every group the best response of all."""
    return scores.argmax().expand(len(groups.unique()))


@breaks("best_of_n")
def worst_of_n(scores, groups):
    """Picks the lowest score."""
    return torch.stack(
        [torch.where(groups == g, scores, torch.inf).argmin() for g in groups.unique()]
    )


@breaks("best_of_n")
def number_within_the_group(scores, groups):
    """Counts within the group: the index points at another group's response."""
    return torch.stack([scores[groups == g].argmax() for g in groups.unique()])


@breaks("best_of_n_policy")
def probabilities_to_the_power_of_n(policy, scores, *, num_draws):
    """Sharpens the policy: the scores have no say."""
    return policy**num_draws / (policy**num_draws).sum()


@breaks("best_of_n_policy")
def best_is_the_lowest(policy, scores, *, num_draws):
    """Sorts the scores downwards."""
    order = scores.argsort(descending=True)
    up_to = policy[order].cumsum(0)
    kept = torch.empty_like(policy)
    kept[order] = up_to**num_draws - (up_to - policy[order]) ** num_draws
    return kept


@breaks("best_of_n_policy")
def drawn_at_least_once(policy, scores, *, num_draws):
    """Gives the probability that an outcome is among the draws: the sum is no 1."""
    return 1 - (1 - policy) ** num_draws


@breaks("accepted")
def only_above(scores, *, at_least):
    """Leaves out what reaches the bar without passing it."""
    return scores > at_least


@breaks("accepted")
def better_than_the_mean(scores, *, at_least):
    """Keeps what is better than the batch's mean."""
    return scores > scores.mean()


# --- DPO -----------------------------------------------------------------------------------------


@breaks("dpo_loss")
def reference_left_out(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Compares log-probabilities alone: what the reference preferred already counts as learned."""
    return -logsigmoid(beta * (chosen - rejected)).mean()


@breaks("dpo_loss")
def rejected_preferred(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Has the pair swapped."""
    margin = (chosen - chosen_reference.detach()) - (rejected - rejected_reference.detach())
    return -logsigmoid(-beta * margin).mean()


@breaks("dpo_loss")
def beta_outside(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Multiplies the loss by β instead of the margin."""
    margin = (chosen - chosen_reference.detach()) - (rejected - rejected_reference.detach())
    return -beta * logsigmoid(margin).mean()


@breaks("dpo_loss")
def reference_in_the_gradient(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Lets the reference learn."""
    margin = (chosen - chosen_reference) - (rejected - rejected_reference)
    return -logsigmoid(beta * margin).mean()


@breaks("dpo_loss")
def references_crossed(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Subtracts each response's reference from the other response."""
    margin = (chosen - rejected_reference.detach()) - (rejected - chosen_reference.detach())
    return -logsigmoid(beta * margin).mean()


@breaks("dpo_loss")
def pairs_added_up(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Sums over pairs."""
    margin = (chosen - chosen_reference.detach()) - (rejected - rejected_reference.detach())
    return -logsigmoid(beta * margin).sum()


@breaks("dpo_loss")
def two_losses_for_one(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Pulls each response by itself: not only the margin counts."""
    up = beta * (chosen - chosen_reference.detach())
    down = beta * (rejected - rejected_reference.detach())
    return -(logsigmoid(up) + logsigmoid(-down)).mean() / 2


def summed(log_probs, mask):
    return torch.where(mask, log_probs, 0).sum(1)


def preference(chosen, rejected, chosen_reference, rejected_reference, beta):
    margin = (chosen - chosen_reference.detach()) - (rejected - rejected_reference.detach())
    return -logsigmoid(beta * margin).mean()


@breaks("token_dpo_loss")
def only_the_chosen_is_masked(
    chosen, rejected, chosen_reference, rejected_reference, *, beta, chosen_mask, rejected_mask
):
    """Adds up all places of the rejected response, padding included."""
    return preference(
        summed(chosen, chosen_mask),
        rejected.sum(1),
        summed(chosen_reference, chosen_mask),
        rejected_reference.sum(1),
        beta,
    )


@breaks("token_dpo_loss")
def one_mask_for_both(
    chosen, rejected, chosen_reference, rejected_reference, *, beta, chosen_mask, rejected_mask
):
    """Cuts the rejected response where the chosen one ends."""
    return preference(
        summed(chosen, chosen_mask),
        summed(rejected, chosen_mask),
        summed(chosen_reference, chosen_mask),
        summed(rejected_reference, chosen_mask),
        beta,
    )


@breaks("token_dpo_loss")
def averaged_over_tokens(
    chosen, rejected, chosen_reference, rejected_reference, *, beta, chosen_mask, rejected_mask
):
    """Averages over tokens: that is no probability of a response."""
    better, worse = chosen_mask.sum(1), rejected_mask.sum(1)
    return preference(
        summed(chosen, chosen_mask) / better,
        summed(rejected, rejected_mask) / worse,
        summed(chosen_reference, chosen_mask) / better,
        summed(rejected_reference, rejected_mask) / worse,
        beta,
    )


@breaks("sequence_log_probs")
def mean_over_tokens(log_probs, mask):
    """Averages: long responses look as likely as short ones."""
    return summed(log_probs, mask) / mask.sum(1).clamp(min=1)


@breaks("sequence_log_probs")
def padding_added(log_probs, mask):
    """Adds padding, too."""
    return log_probs.sum(1)


@breaks("sequence_log_probs")
def end_left_out(log_probs, mask):
    """Leaves the last token out: that the response ends is part of it."""
    return summed(log_probs, mask & torch.roll(mask, -1, dims=1))


@breaks("implicit_rewards")
def without_beta(log_probs, log_probs_reference, *, beta):
    """Forgets the price: nats are no reward."""
    return log_probs - log_probs_reference


@breaks("implicit_rewards")
def divided_by_beta(log_probs, log_probs_reference, *, beta):
    """Divides by β, as in the exponent of the optimum."""
    return (log_probs - log_probs_reference) / beta


@breaks("make_pairs")
def pairs_across_prompts(scores, groups):
    """Pairs the best of the batch with the worst of the batch, whatever they answer."""
    ranked = scores.argsort(descending=True, stable=True)
    better, worse = ranked[: len(ranked) // 2], ranked.flip(0)[: len(ranked) // 2]
    apart = scores[better] > scores[worse]
    return better[apart], worse[apart]


def pairs_by_group(scores, groups, keep):
    chosen, rejected = [], []
    for group in groups.unique():
        members = (groups == group).nonzero().squeeze(-1)
        ranked = members[scores[members].argsort(descending=True, stable=True)]
        better, worse = ranked[: len(ranked) // 2], ranked.flip(0)[: len(ranked) // 2]
        apart = keep(scores[better], scores[worse])
        chosen.append(better[apart])
        rejected.append(worse[apart])
    return torch.cat(chosen), torch.cat(rejected)


@breaks("make_pairs")
def ties_make_pairs(scores, groups):
    """Pairs equal scores: a preference made from nothing."""
    return pairs_by_group(scores, groups, lambda better, worse: better >= worse)


@breaks("make_pairs")
def worse_one_chosen(scores, groups):
    """Gives the pair in the wrong order."""
    return pairs_by_group(scores, groups, lambda better, worse: better > worse)[::-1]


@breaks("make_pairs")
def best_used_again_and_again(scores, groups):
    """Pairs the best response with every worse one: it counts many times."""
    chosen, rejected = [], []
    for group in groups.unique():
        members = (groups == group).nonzero().squeeze(-1)
        best = members[scores[members].argmax()]
        worse = members[scores[members] < scores[best]]
        chosen.append(best.expand(len(worse)))
        rejected.append(worse)
    return torch.cat(chosen), torch.cat(rejected)
