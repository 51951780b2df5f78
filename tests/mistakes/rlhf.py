"""Classic mistakes around rewards per token, their advantages, and the price of distance."""

import torch
from torch.nn import functional

from mistakes import new_catalogue
from ppo_lessons.gae import compute_gae
from ppo_lessons.rlhf.memory import Transformer

MISTAKES, breaks = new_catalogue()


# --- preferences ---------------------------------------------------------------------------------


@breaks("bradley_terry_loss")
def pair_swapped(chosen, rejected):
    """Teaches that the rejected answer is the better one."""
    return -functional.logsigmoid(rejected - chosen).mean()


@breaks("bradley_terry_loss")
def loss_added_up(chosen, rejected):
    """Adds the pairs up instead of averaging: the step grows with the batch."""
    return -functional.logsigmoid(chosen - rejected).sum()


@breaks("bradley_terry_loss")
def logarithm_of_a_sigmoid(chosen, rejected):
    """Takes the logarithm of a sigmoid that underflows: infinite for a pair far the wrong way."""
    return -(chosen - rejected).sigmoid().log().mean()


@breaks("bradley_terry_loss")
def scores_squared_apart(chosen, rejected):
    """Pulls the scores towards 1 and 0, although only their difference was ever judged."""
    return ((chosen - 1) ** 2 + rejected**2).mean()


@breaks("bradley_terry_loss")
def margin_only(chosen, rejected):
    """Widens the difference without end: a pair that is settled pushes like any other."""
    return -(chosen - rejected).mean()


# --- distance from the reference -----------------------------------------------------------------


def distance_terms(distance, estimator):
    terms = {"k1": distance, "k2": distance**2 / 2, "k3": torch.expm1(-distance) + distance}
    return terms[estimator]


@breaks("kl_terms")
def reference_minus_policy(log_probs, log_probs_reference, *, estimator):
    """Turns the difference round: a KL whose samples would have to come from the reference."""
    return distance_terms(log_probs_reference - log_probs, estimator)


@breaks("kl_terms")
def k2_without_its_half(log_probs, log_probs_reference, *, estimator):
    """Leaves the ½ of k2 out."""
    distance = log_probs - log_probs_reference
    return distance**2 if estimator == "k2" else distance_terms(distance, estimator)


@breaks("kl_terms")
def k3_with_the_ratio_upside_down(log_probs, log_probs_reference, *, estimator):
    """Puts π / π_ref into k3, where π_ref / π belongs: no estimate of this KL at all."""
    distance = log_probs - log_probs_reference
    return torch.expm1(distance) - distance if estimator == "k3" else distance_terms(
        distance, estimator
    )  # fmt: skip


@breaks("kl_terms")
def absolute_value_of_k1(log_probs, log_probs_reference, *, estimator):
    """Takes |d| for k1: never negative, and no longer an estimate of the KL."""
    distance = log_probs - log_probs_reference
    return distance.abs() if estimator == "k1" else distance_terms(distance, estimator)


@breaks("kl_terms")
def k2_with_the_gradient_of_k1(log_probs, log_probs_reference, *, estimator):
    """Detaches one factor of k2, so that its gradient is another vector."""
    distance = log_probs - log_probs_reference
    if estimator == "k2":
        return distance.detach() ** 2 / 2 + distance - distance.detach()
    return distance_terms(distance, estimator)


@breaks("answer_kl")
def mean_over_tokens(log_probs, log_probs_reference, mask, *, estimator):
    """Averages over the tokens of an answer: smaller than the KL of answers by their length."""
    terms = distance_terms(log_probs - log_probs_reference, estimator).masked_fill(~mask, 0)
    return terms.sum(dim=1) / mask.sum(dim=1)


@breaks("answer_kl")
def padding_counted(log_probs, log_probs_reference, mask, *, estimator):
    """Adds what stands in padding, too."""
    return distance_terms(log_probs - log_probs_reference, estimator).sum(dim=1)


# --- one reward per token ------------------------------------------------------------------------


def price(log_probs, log_probs_reference, mask, beta):
    return (-beta * (log_probs - log_probs_reference)).detach().masked_fill(~mask, 0)


def limited(scores, reward_limit):
    return scores if reward_limit is None else scores.clamp(-reward_limit, reward_limit)


def paid_at(rewards, scores, places):
    return rewards.scatter_add(1, places.unsqueeze(1), scores.to(rewards.dtype).unsqueeze(1))


def last_places(mask):
    return (mask * torch.arange(mask.shape[1])).argmax(dim=1)


@breaks("token_rewards")
def score_on_the_first_pad(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Pays the score one place after the last token, where no mask will ever look."""
    rewards = price(log_probs, log_probs_reference, mask, beta)
    places = (last_places(mask) + 1).clamp(max=mask.shape[1] - 1)
    return paid_at(rewards, limited(scores, reward_limit), places)


@breaks("token_rewards")
def score_in_the_last_column(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Pays the score in column T − 1, wherever the answer ended."""
    rewards = price(log_probs, log_probs_reference, mask, beta)
    places = torch.full((len(mask),), mask.shape[1] - 1)
    return paid_at(rewards, limited(scores, reward_limit), places)


@breaks("token_rewards")
def score_where_the_mask_counts_to(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Takes the number of tokens for the place of the last one: wrong where the mask has a gap."""
    rewards = price(log_probs, log_probs_reference, mask, beta)
    return paid_at(rewards, limited(scores, reward_limit), mask.sum(dim=1) - 1)


@breaks("token_rewards")
def distance_rewarded(scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None):
    """Turns the sign of the KL: every step away from the reference is paid for."""
    rewards = -price(log_probs, log_probs_reference, mask, beta)
    return paid_at(rewards, limited(scores, reward_limit), last_places(mask))


@breaks("token_rewards")
def distance_priced_in_padding(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Prices what stands in padding as if the policy had chosen it."""
    rewards = (-beta * (log_probs - log_probs_reference)).detach()
    return paid_at(rewards, limited(scores, reward_limit), last_places(mask))


@breaks("token_rewards")
def whole_distance_on_the_last_token(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Prices the whole answer at its last token: the sum is right, who pays is not."""
    whole = price(log_probs, log_probs_reference, mask, beta).sum(dim=1)
    places = last_places(mask)
    return paid_at(
        torch.zeros_like(log_probs).detach(), limited(scores, reward_limit) + whole, places
    )


@breaks("token_rewards")
def limit_on_the_sum(scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None):
    """Cuts score and price together, so that a large distance becomes free beyond the limit."""
    rewards = price(log_probs, log_probs_reference, mask, beta)
    return limited(paid_at(rewards, scores, last_places(mask)), reward_limit)


@breaks("token_rewards")
def score_on_every_token(scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None):
    """Pays the score for each token: a longer answer earns it more often."""
    rewards = price(log_probs, log_probs_reference, mask, beta)
    return rewards + limited(scores, reward_limit).unsqueeze(1) * mask


@breaks("token_rewards")
def gradient_through_the_price(
    scores, log_probs, log_probs_reference, mask, *, beta, reward_limit=None
):
    """Lets the gradient flow through the reward, where its mean teaches nothing."""
    rewards = (-beta * (log_probs - log_probs_reference)).masked_fill(~mask, 0)
    return paid_at(rewards, limited(scores, reward_limit), last_places(mask))


@breaks("last_tokens")
def one_too_far(mask):
    """Gives the place after the last token."""
    return last_places(mask) + 1


@breaks("last_tokens")
def tokens_counted(mask):
    """Counts tokens, and so misses the last one where the mask has a gap."""
    return mask.sum(dim=1) - 1


# --- advantages of tokens ------------------------------------------------------------------------


def flat_gae(rewards, values, next_values, terminated, gamma, gae_lambda):
    truncated = torch.zeros_like(terminated)
    return compute_gae(
        rewards.T, values.T, next_values.T, terminated.T, truncated.T,
        gamma=gamma, gae_lambda=gae_lambda,
    ).T  # fmt: skip


def shifted(values):
    return torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], dim=1)


def is_last(mask):
    return torch.arange(mask.shape[1]) == last_places(mask).unsqueeze(1)


@breaks("token_gae")
def value_after_the_end(rewards, values, mask, *, gamma, gae_lambda):
    """Bootstraps the last token with whatever the critic says in padding."""
    rewards, values = rewards.nan_to_num(9.0), values.nan_to_num(9.0)
    terminated = torch.zeros_like(mask)
    found = flat_gae(
        rewards.masked_fill(~mask, 0), values, shifted(values), terminated, gamma, gae_lambda
    )
    return found.masked_fill(~mask, 0)


@breaks("token_gae")
def mask_one_short(rewards, values, mask, *, gamma, gae_lambda):
    """Leaves the end-of-answer token out: nobody learns to stop, and the score is lost."""
    mask = mask & ~is_last(mask)
    rewards, values = rewards.masked_fill(~mask, 0), values.masked_fill(~mask, 0)
    found = flat_gae(rewards, values, shifted(values), ~mask, gamma, gae_lambda)
    return found.masked_fill(~mask, 0)


@breaks("token_gae")
def junk_left_in_padding(rewards, values, mask, *, gamma, gae_lambda):
    """Computes advantages of padding, and leaves them there."""
    rewards, values = rewards.nan_to_num(9.0), values.nan_to_num(9.0)
    return flat_gae(rewards, values, shifted(values), is_last(mask), gamma, gae_lambda)


@breaks("token_gae")
def words_of_others_are_steps(rewards, values, mask, *, gamma, gae_lambda):
    """Counts tokens that the policy did not choose as steps of its own."""
    after = torch.arange(mask.shape[1]) > last_places(mask).unsqueeze(1)
    rewards, values = rewards.masked_fill(after, 0), values.masked_fill(after, 0)
    rewards = rewards.masked_fill(~mask, 0).nan_to_num(0)
    found = flat_gae(
        rewards,
        values.nan_to_num(0),
        shifted(values.nan_to_num(0)),
        is_last(mask),
        gamma,
        gae_lambda,
    )
    return found.masked_fill(~mask, 0)


@breaks("token_gae")
def answers_taken_for_time(rewards, values, mask, *, gamma, gae_lambda):
    """Forgets to put time first: the recursion runs from answer to answer."""
    rewards, values = rewards.masked_fill(~mask, 0), values.masked_fill(~mask, 0)
    found = compute_gae(
        rewards, values, shifted(values), is_last(mask), torch.zeros_like(mask),
        gamma=gamma, gae_lambda=gae_lambda,
    )  # fmt: skip
    return found.masked_fill(~mask, 0)


@breaks("token_gae")
def discount_of_lambda_only(rewards, values, mask, *, gamma, gae_lambda):
    """Leaves γ out of the trace."""
    rewards, values = rewards.masked_fill(~mask, 0), values.masked_fill(~mask, 0)
    errors = rewards + gamma * shifted(values).masked_fill(is_last(mask), 0) - values
    found, following = torch.zeros_like(errors), torch.zeros_like(errors[:, 0])
    for t in reversed(range(mask.shape[1])):
        following = torch.where(mask[:, t], errors[:, t] + gae_lambda * following, following)
        found[:, t] = following
    return found.masked_fill(~mask, 0)


def right_gae(rewards, values, mask, gamma, gae_lambda):
    rewards, values = rewards.masked_fill(~mask, 0), values.masked_fill(~mask, 0)
    return flat_gae(rewards, values, shifted(values), is_last(mask), gamma, gae_lambda).masked_fill(
        ~mask, 0
    )


def whitened(numbers, mask):
    chosen = numbers[mask]
    return ((numbers - chosen.mean()) / (chosen.std() + 1e-8)).masked_fill(~mask, 0)


@breaks("critic_advantages")
def returns_of_whitened_advantages(rewards, values, mask, groups, *, gamma, gae_lambda):
    """Adds V to advantages that were whitened already: the critic chases targets without a unit."""
    advantages = whitened(right_gae(rewards, values, mask, gamma, gae_lambda), mask)
    return advantages, (advantages + values).masked_fill(~mask, 0)


@breaks("critic_advantages")
def returns_without_the_value(rewards, values, mask, groups, *, gamma, gae_lambda):
    """Gives the critic the advantages themselves as targets."""
    advantages = right_gae(rewards, values, mask, gamma, gae_lambda)
    return advantages, advantages


@breaks("critic_advantages")
def value_in_padding_is_a_target(rewards, values, mask, groups, *, gamma, gae_lambda):
    """Leaves the critic's own words in padding as targets."""
    advantages = right_gae(rewards, values, mask, gamma, gae_lambda)
    return advantages, advantages + values


@breaks("critic_advantages")
def whitened_too_early(rewards, values, mask, groups, *, gamma, gae_lambda):
    """Hands over whitened advantages, which the update would whiten once more."""
    advantages = right_gae(rewards, values, mask, gamma, gae_lambda)
    return whitened(advantages, mask), (advantages + values).masked_fill(~mask, 0)


# --- the price -----------------------------------------------------------------------------------


@breaks("adaptive_beta")
def error_not_limited(beta, kl, *, target_kl, num_samples, kl_horizon):
    """Takes the error as it is: one wild batch throws β anywhere."""
    return beta * (1 + (kl / target_kl - 1) * num_samples / kl_horizon)


@breaks("adaptive_beta")
def price_moved_the_wrong_way(beta, kl, *, target_kl, num_samples, kl_horizon):
    """Lowers the price when the policy is too far away."""
    error = min(max(kl / target_kl - 1, -0.2), 0.2)
    return beta * (1 - error * num_samples / kl_horizon)


@breaks("adaptive_beta")
def difference_not_relative(beta, kl, *, target_kl, num_samples, kl_horizon):
    """Takes KL − target instead of KL / target − 1, so the target's size changes the speed."""
    error = min(max(kl - target_kl, -0.2), 0.2)
    return beta * (1 + error * num_samples / kl_horizon)


@breaks("adaptive_beta")
def samples_forgotten(beta, kl, *, target_kl, num_samples, kl_horizon):
    """Moves by the same share for every batch, however many answers it has."""
    error = min(max(kl / target_kl - 1, -0.2), 0.2)
    return beta * (1 + error / kl_horizon)


# --- the optimum ---------------------------------------------------------------------------------


@breaks("tilted_log_probs")
def reward_times_beta(log_probs_reference, rewards, *, beta):
    """Multiplies the reward by β: a higher price would then bring the policy farther away."""
    return (log_probs_reference + rewards * beta).log_softmax(dim=-1)


@breaks("tilted_log_probs")
def reference_left_out(log_probs_reference, rewards, *, beta):
    """Gives the softmax of the rewards, as an entropy bonus would; the reference is gone."""
    return (rewards / beta).log_softmax(dim=-1)


@breaks("tilted_log_probs")
def not_normalised(log_probs_reference, rewards, *, beta):
    """Leaves Z out: the probabilities do not add up to 1."""
    return log_probs_reference + rewards / beta


@breaks("tilted_log_probs")
def tilted_away(log_probs_reference, rewards, *, beta):
    """Tilts towards small rewards."""
    return (log_probs_reference - rewards / beta).log_softmax(dim=-1)


@breaks("tilted_log_probs")
def everything_divided(log_probs_reference, rewards, *, beta):
    """Divides the reference's logarithm by β as well, as if β were a temperature of both."""
    return ((log_probs_reference + rewards) / beta).log_softmax(dim=-1)


@breaks("regularized_return")
def distance_added(log_probs, log_probs_reference, rewards, *, beta):
    """Adds the price where it is subtracted."""
    probabilities = log_probs.exp()
    distance = torch.where(probabilities > 0, log_probs - log_probs_reference, 0)
    return (probabilities * (rewards + beta * distance)).sum(dim=-1)


@breaks("regularized_return")
def distance_the_other_way(log_probs, log_probs_reference, rewards, *, beta):
    """Prices KL(π_ref ‖ π), which is another number and another optimum."""
    distance = log_probs_reference.exp() * (log_probs_reference - log_probs)
    return (log_probs.exp() * rewards).sum(dim=-1) - beta * distance.sum(dim=-1)


@breaks("regularized_return")
def zero_times_minus_infinity(log_probs, log_probs_reference, rewards, *, beta):
    """Multiplies a probability of 0 by a logarithm of −∞: NaN for a policy that never says it."""
    return (log_probs.exp() * (rewards - beta * (log_probs - log_probs_reference))).sum(dim=-1)


# --- memory --------------------------------------------------------------------------------------


@breaks("num_weights")
def every_head_has_its_keys(shape, *, scalar_head=False):
    """Gives each head keys and values of its own, where several share them."""
    return counted(shape, scalar_head, key_heads=shape.heads)


@breaks("num_weights")
def gate_forgotten(shape, *, scalar_head=False):
    """Counts two matrices of the MLP where there are three."""
    return counted(shape, scalar_head, gated=False)


@breaks("num_weights")
def tied_output_counted_twice(shape, *, scalar_head=False):
    """Counts the output layer although it is the embedding."""
    return counted(shape, scalar_head, tied=False)


@breaks("num_weights")
def biases_forgotten(shape, *, scalar_head=False):
    """Counts matrices only."""
    return counted(shape, scalar_head, biases="none")


@breaks("num_weights")
def head_of_a_critic_kept(shape, *, scalar_head=False):
    """Counts the output layer over all words for a model that gives one number."""
    return counted(shape, False)


def counted(shape: Transformer, scalar_head: bool, **changed):
    """Count weights in another order than the package: matrix by matrix."""
    fields = {**vars(shape), **changed}
    d, size = fields["width"], fields["head_width"] or fields["width"] // fields["heads"]
    queries, keys = fields["heads"] * size, fields["key_heads"] * size
    inner, vocabulary = fields["mlp_width"], fields["vocabulary"]
    block = [d * queries, d * keys, d * keys, queries * d, d * inner, inner * d]
    block += [d * inner] if fields["gated"] else []
    block += [fields["norm_vectors"] * d] * 2
    block += [queries, keys, keys] if fields["biases"] in ("qkv", "all") else []
    if fields["biases"] == "all":
        block += [d, inner, d]
    outside = [vocabulary * d, fields["positions"] * d, fields["norm_vectors"] * d]
    if scalar_head:
        outside += [d, 1]
    else:
        outside += [] if fields["tied"] else [vocabulary * d]
        outside += [vocabulary] if fields["biases"] == "all" else []
    return fields["layers"] * sum(block) + sum(outside)


@breaks("cache_bytes")
def keys_without_values(shape, *, num_answers, num_tokens, bytes_each=2):
    """Counts the keys and forgets the values."""
    return shape.layers * shape.key_width * num_tokens * num_answers * bytes_each


@breaks("cache_bytes")
def cache_of_every_head(shape, *, num_answers, num_tokens, bytes_each=2):
    """Stores keys and values of every head, where several share them."""
    return 2 * shape.layers * shape.width * num_tokens * num_answers * bytes_each
