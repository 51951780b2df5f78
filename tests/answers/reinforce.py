"""Answers to the exercises of lesson 01."""

import math

import torch
from mistakes import mistakes_of
from torch.distributions import Categorical
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import reinforce

EXERCISES = (
    "log_prob",
    "rewards_to_go",
    "reinforce_loss",
    "seven_numbers",
    "mended_reinforce",
    "episode_gradients",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)

# Mistakes of the module that learners make, too; others break what the exercises leave out.
SHARED = {
    "full_return": "rewards_to_go",
    "rewards_so_far": "rewards_to_go",
    "not_reset_at_an_end": "rewards_to_go",
    "discount_off_by_one": "rewards_to_go",
    "discounted_from_the_start": "rewards_to_go",
    "flag_late_by_one": "rewards_to_go",
    "sign_turned": "reinforce_loss",
    "sum_over_the_batch": "reinforce_loss",
    "gradient_through_the_weights": "reinforce_loss",
    "probabilities_for_logarithms": "reinforce_loss",
    "squared": "reinforce_loss",
    "means_multiplied": "reinforce_loss",
}
for mistake in mistakes_of("reinforce"):
    if SHARED.get(mistake.name) == mistake.breaks:
        WRONG[mistake.breaks][mistake.name] = mistake.function


# --- log-probabilities of actions ----------------------------------------------------------


@passes("log_prob")
def gathered(logits, actions):
    return logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


@passes("log_prob")
def indexed(logits, actions):
    logs = torch.log_softmax(logits, dim=1)
    return logs[torch.arange(len(actions)), actions]


@passes("log_prob")
def by_the_distribution(logits, actions):
    return Categorical(logits=logits).log_prob(actions)


@passes("log_prob")
def logit_minus_logsumexp(logits, actions):
    taken = logits[range(len(actions)), actions]
    return taken - torch.logsumexp(logits, dim=-1)


@passes("log_prob")
def one_hot_product(logits, actions):
    chosen = functional.one_hot(actions, logits.shape[-1]).to(logits.dtype)
    return (logits.log_softmax(-1) * chosen).sum(-1)


@passes("log_prob")
def row_by_row(logits, actions):
    found = []
    for row, action in zip(logits, actions.tolist(), strict=True):
        shifted = row - row.max().detach()
        found.append(shifted[action] - shifted.exp().sum().log())
    return torch.stack(found)


@passes("log_prob")
def minus_the_cross_entropy(logits, actions):
    return -functional.cross_entropy(logits, actions, reduction="none")


@passes("log_prob")
def in_float32(logits, actions):
    return functional.log_softmax(logits.float(), -1).gather(1, actions[:, None])[:, 0]


@passes("log_prob")
def diagonal(logits, actions):
    return logits.log_softmax(-1)[:, actions].diagonal()


@breaks("log_prob")
def probability_without_the_logarithm(logits, actions):
    return logits.softmax(-1).gather(-1, actions[:, None]).squeeze(-1)


@breaks("log_prob")
def softmax_twice(logits, actions):
    return gathered(logits.softmax(-1), actions)


@breaks("log_prob")
def logit_itself(logits, actions):
    return logits_of(logits, actions)


@breaks("log_prob")
def exponential_overflows(logits, actions):
    weights = logits.exp()
    return (weights / weights.sum(-1, keepdim=True)).log().gather(-1, actions[:, None]).squeeze(-1)


def _overflow_in_the_sum(logits, actions):
    return logit_itself(logits, actions) - logits.exp().sum(-1).log()


WRONG["log_prob"]["exponential_overflows#sum"] = _overflow_in_the_sum


def _sigmoids(logits, actions):
    return functional.logsigmoid(logits_of(logits, actions))


def logits_of(logits, actions):
    return logits.gather(-1, actions[:, None]).squeeze(-1)


def _clamped_by_torch(logits, actions):
    return Categorical(probs=logits.softmax(-1)).log_prob(actions)


WRONG["log_prob"]["sigmoid_per_action"] = _sigmoids
WRONG["log_prob"]["logarithm_of_zero#clamped_by_torch"] = _clamped_by_torch


def rare_actions(floor):
    def function(logits, actions):
        return floor(logits.softmax(-1)).log().gather(-1, actions[:, None]).squeeze(-1)

    return function


WRONG["log_prob"] |= {
    "logarithm_of_zero": rare_actions(lambda each: each),
    "logarithm_of_zero#added": rare_actions(lambda each: each + 1e-8),
    "logarithm_of_zero#smaller": rare_actions(lambda each: each + 1e-10),
}


@breaks("log_prob")
def softmax_over_the_rows(logits, actions):
    return logits.log_softmax(0).gather(-1, actions[:, None]).squeeze(-1)


@breaks("log_prob")
def all_actions_returned(logits, actions):
    return logits.log_softmax(-1)


@breaks("log_prob")
def axis_kept(logits, actions):
    return logits.log_softmax(-1).gather(-1, actions[:, None])


@breaks("log_prob")
def likeliest_action(logits, actions):
    return logits.log_softmax(-1).max(-1).values


@breaks("log_prob")
def every_row_with_every_action(logits, actions):
    return logits.log_softmax(-1)[:, actions]


@breaks("log_prob")
def averaged_over_the_rows(logits, actions):
    return gathered(logits, actions).mean()


@breaks("log_prob")
def summed_over_the_rows(logits, actions):
    return gathered(logits, actions).sum()


@breaks("log_prob")
def cross_entropy_kept(logits, actions):
    return functional.cross_entropy(logits, actions, reduction="none")


@breaks("log_prob")
def action_off_by_one(logits, actions):
    return gathered(logits, (actions - 1) % logits.shape[-1])


@breaks("log_prob")
def logarithm_to_base_two(logits, actions):
    return gathered(logits, actions) / math.log(2)


@breaks("log_prob")
def divided_by_the_sum_of_logits(logits, actions):
    return (logits / logits.sum(-1, keepdim=True)).log().gather(-1, actions[:, None]).squeeze(-1)


@breaks("log_prob")
def taken_against_not_taken(logits, actions):
    taken = functional.one_hot(actions, logits.shape[-1]).bool()
    others = logits.masked_fill(taken, -math.inf).logsumexp(-1)
    return logit_itself(logits, actions) - others


# --- rewards to go -------------------------------------------------------------------------

RIGHT["rewards_to_go"]["package"] = reinforce.rewards_to_go


@passes("rewards_to_go")
def backwards(rewards, ended, *, gamma):
    returns = rewards.clone()
    for t in range(len(rewards) - 2, -1, -1):
        returns[t] += gamma * torch.where(ended[t], 0.0, returns[t + 1])
    return returns


@passes("rewards_to_go")
def column_by_column(rewards, ended, gamma):
    columns = []
    for earned, flags in zip(rewards.T.tolist(), ended.T.tolist(), strict=True):
        following, found = 0.0, []
        for reward, flag in zip(reversed(earned), reversed(flags), strict=True):
            following = reward + gamma * (0.0 if flag else following)
            found.append(following)
        columns.append(found[::-1])
    return torch.tensor(columns).T


@passes("rewards_to_go")
def every_pair_of_steps(rewards, ended, *, gamma):
    episode = ended.long().cumsum(0) - ended.long()
    time = torch.arange(len(rewards))
    later = time[None, :] - time[:, None]
    powers = torch.where(later >= 0, float(gamma) ** later.clamp(min=0), 0.0).to(rewards.dtype)
    same = episode[:, None] == episode[None, :]
    return torch.einsum("tk,tkn,kn->tn", powers, same.to(rewards.dtype), rewards)


@passes("rewards_to_go")
def forwards_from_each_step(rewards, ended, *, gamma):
    T, N = rewards.shape
    returns = torch.zeros(T, N, dtype=rewards.dtype)
    for n in range(N):
        for t in range(T):
            factor = 1.0
            for k in range(t, T):
                returns[t, n] += factor * rewards[k, n]
                if ended[k, n]:
                    break
                factor *= gamma
    return returns


@passes("rewards_to_go")
def inserted_at_the_front(rewards, ended, *, gamma):
    following, found = torch.zeros(rewards.shape[1]), []
    for reward, going in zip(rewards.flip(0), (~ended).flip(0).float(), strict=True):
        following = reward + gamma * going * following
        found.insert(0, following)
    return torch.stack(found)


@passes("rewards_to_go")
def float32_in_place(rewards, ended, *, gamma):
    returns = torch.zeros_like(rewards, dtype=torch.float32)
    following = torch.zeros(rewards.shape[1:])
    for t in reversed(range(rewards.shape[0])):
        following = following * (1 - ended[t].float())
        following = rewards[t].float() + gamma * following
        returns[t] = following
    return returns


def accumulate(rewards, stopped, gamma):
    """Right but for what is handed over; the wrong ones below change one thing."""
    returns, following = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * following * ~stopped[t]
        returns[t] = following
    return returns


@breaks("rewards_to_go")
def flag_early_by_one(rewards, ended, *, gamma):
    return accumulate(rewards, torch.cat([ended[1:], torch.ones_like(ended[:1])]), gamma)


@breaks("rewards_to_go")
def gamma_ignored(rewards, ended, *, gamma):
    return accumulate(rewards, ended, 1.0)


def _plain_cumulative_sum(rewards, ended, *, gamma):
    return rewards.flip(0).cumsum(0).flip(0)


def _forwards(rewards, ended, *, gamma):
    returns, total = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in range(len(rewards)):
        total = rewards[t] + gamma * total * ~ended[t]
        returns[t] = total
    return returns


WRONG["rewards_to_go"]["gamma_ignored#and_ends"] = _plain_cumulative_sum
WRONG["rewards_to_go"]["rewards_so_far#flag_of_the_own_row"] = _forwards


@breaks("rewards_to_go")
def gamma_not_compounded(rewards, ended, *, gamma):
    later = accumulate(rewards, ended, 1.0) - rewards
    return rewards + gamma * later


@breaks("rewards_to_go")
def own_reward_left_out(rewards, ended, *, gamma):
    return accumulate(rewards, ended, gamma) - rewards


def _left_out_and_not_discounted(rewards, ended, *, gamma):
    returns, following = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        returns[t] = following * ~ended[t]
        following = rewards[t] + gamma * returns[t]
    return returns


WRONG["rewards_to_go"]["own_reward_left_out#from_the_next"] = _left_out_and_not_discounted


@breaks("rewards_to_go")
def last_reward_lost(rewards, ended, *, gamma):
    return accumulate(rewards * ~ended, ended, gamma)


@breaks("rewards_to_go")
def environments_mixed(rewards, ended, *, gamma):
    returns = accumulate(rewards, ended, gamma)
    return returns.sum(1, keepdim=True).expand_as(returns)


@breaks("rewards_to_go")
def next_reward_only(rewards, ended, *, gamma):
    following = torch.cat([rewards[1:], torch.zeros_like(rewards[:1])])
    return rewards + gamma * following * ~ended


@breaks("rewards_to_go")
def returns_centred(rewards, ended, *, gamma):
    returns = accumulate(rewards, ended, gamma)
    return returns - returns.mean()


def normalised(unbiased, added):
    def function(rewards, ended, *, gamma):
        returns = accumulate(rewards, ended, gamma)
        centred = returns - returns.mean()
        # .std() warns where 0 is divided by 0
        deviation = (centred.square().sum() / (returns.numel() - unbiased)).sqrt()
        return centred / (deviation + added)

    return function


WRONG["rewards_to_go"] |= {
    "returns_normalised": normalised(True, 1e-8),
    "returns_normalised#population": normalised(False, 1e-8),
    "returns_normalised#nothing_added": normalised(True, 0.0),
}


@breaks("rewards_to_go")
def time_left_reversed(rewards, ended, *, gamma):
    return accumulate(rewards, ended, gamma).flip(0)


@breaks("rewards_to_go")
def averaged_over_the_steps(rewards, ended, *, gamma):
    return accumulate(rewards, ended, gamma) / accumulate(torch.ones_like(rewards), ended, 1.0)


@breaks("rewards_to_go")
def first_end_stops_everything(rewards, ended, *, gamma):
    over = (ended.long().cumsum(0) - ended.long()) > 0
    return accumulate(rewards * ~over, ended, gamma)


@breaks("rewards_to_go")
def environments_end_together(rewards, ended, *, gamma):
    return accumulate(rewards, ended.any(1, keepdim=True).expand_as(ended), gamma)


@breaks("rewards_to_go")
def gamma_squared(rewards, ended, *, gamma):
    return accumulate(rewards, ended, gamma**2)


# --- the loss ------------------------------------------------------------------------------

RIGHT["reinforce_loss"]["package"] = reinforce.reinforce_loss


@passes("reinforce_loss")
def mean_of_the_negatives(log_probs, weights):
    return torch.mean(-log_probs * weights.detach())


@passes("reinforce_loss")
def dot_product(log_probs, weights):
    return -torch.dot(log_probs.flatten(), weights.detach().flatten()) / log_probs.numel()


@passes("reinforce_loss")
def loss_in_a_loop(log_probs, weights):
    total = 0.0
    for new, weight in zip(log_probs.flatten(), weights.flatten().tolist(), strict=True):
        total = total - new * weight
    return total / weights.numel()


@passes("reinforce_loss")
def loss_in_float32(log_probs, weights, mask=None):
    with torch.no_grad():
        pushes = weights.clone().float()
    return log_probs.float().mul(pushes).mean().neg()


@passes("reinforce_loss")
def sum_divided(log_probs, weights):
    return -(weights.data * log_probs).sum() / log_probs.nelement()


def weighted(change):
    """A loss that is right but for its weights."""

    def loss(log_probs, weights):
        return -(log_probs * change(weights.detach())).mean()

    return loss


def normalise(added, unbiased):
    def change(weights):
        centred = weights - weights.mean()
        deviation = (centred.square().sum() / (weights.numel() - unbiased)).sqrt()
        return centred / (deviation + added)

    return change


WRONG["reinforce_loss"] |= {
    "weights_ignored": weighted(torch.ones_like),
    "absolute_weights": weighted(torch.abs),
    "bad_actions_ignored": weighted(torch.relu),
    "sign_of_the_weights": weighted(torch.sign),
    "weights_centred": weighted(lambda weights: weights - weights.mean()),
    "weights_normalised": weighted(normalise(1e-8, True)),
    "weights_normalised#population": weighted(normalise(1e-8, False)),
    "weights_normalised#nothing_added": weighted(normalise(0.0, True)),
    "weights_normalised#if_several": weighted(
        lambda each: normalise(1e-8, True)(each) if each.numel() > 1 else each
    ),
}


@breaks("reinforce_loss")
def not_averaged(log_probs, weights):
    return -log_probs * weights.detach()


@breaks("reinforce_loss")
def divided_by_the_weights(log_probs, weights):
    weights = weights.detach()
    return -(log_probs * weights).sum() / weights.sum()


@breaks("reinforce_loss")
def zero_weights_left_out(log_probs, weights):
    weights = weights.detach()
    return -(log_probs * weights).sum() / (weights != 0).sum()


@breaks("reinforce_loss")
def value_of_the_surrogate(log_probs, weights):
    return -((log_probs - log_probs.detach()).exp() * weights.detach()).mean()


@breaks("reinforce_loss")
def log_prob_detached_too(log_probs, weights):
    return -(log_probs.detach() * weights.detach()).mean()


@breaks("reinforce_loss")
def last_axis_only(log_probs, weights):
    return -(log_probs * weights.detach()).mean(-1)


@breaks("reinforce_loss")
def difference_squared(log_probs, weights):
    return (log_probs - weights.detach()).square().mean()


@breaks("reinforce_loss")
def logarithm_taken_again(log_probs, weights):
    return -(log_probs.log() * weights.detach()).mean()


# --- seven numbers -------------------------------------------------------------------------


def episode_sums(stopped=(0, 0, 1, 0, 1), gamma=0.5):
    sums, following = [], 0.0
    rewards = (1.0, 4.0, -2.0, 2.0, 6.0)
    for reward, flag in zip(reversed(rewards), reversed(stopped), strict=True):
        following = reward + gamma * (0.0 if flag else following)
        sums.append(following)
    return sums[:0:-1]


SUMS, SLOPES = episode_sums(), (0.05, -0.15, -0.05)


def seven(sums=SUMS, slopes=SLOPES):
    return dict(zip("abcdefg", [*sums, *slopes], strict=True))


RIGHT["seven_numbers"] = {"numbers": seven()}
WRONG["seven_numbers"] = {
    "full_return": seven([2.5, 2.5, 2.5, 5]),
    "rewards_so_far": seven([1, 4.5, 0.25, 2]),
    "not_reset_at_an_end": seven(episode_sums((0, 0, 0, 0, 1))),
    "not_discounted": seven(episode_sums(gamma=1)),
    "discount_off_by_one": seven([1.25, 1.5, -1, 2.5]),
    "own_reward_left_out": seven([1.5, -1, 0, 3]),
    "discounted_from_the_start": seven([2.5, 1.5, -0.5, 5]),
    "gamma_not_compounded": seven([2, 3, -2, 5]),
    "last_reward_lost": seven([3, 4, 0, 2]),
    "flag_late_by_one": seven(episode_sums((0, 0, 0, 1, 0))),
    "usual_for_the_discounted": seven(slopes=(-0.05, -0.15, -0.05)),
    "gamma_in_front_too": seven(slopes=(0.05, -0.15, 0.05)),
    "usual_for_the_undiscounted": seven(slopes=(0.05, -0.05, -0.05)),
    "undiscounted_for_the_usual": seven(slopes=(0.05, -0.15, -0.15)),
    "slope_to_the_probability": seven(slopes=(0.2, -0.6, -0.2)),
    "one_p_held_constant": seven(slopes=(0.15, 0.05, 0.15)),
    "value_for_the_slope": seven(slopes=(0.3, 0.1, 0.1)),
    "second_step_forgotten": seven(slopes=(0.25, 0.25, 0.25)),
}


# --- a whole loss with a bug ---------------------------------------------------------------


def whole_loss(policy_of, *, returns=None, sign=-1.0, reduce=torch.mean):
    """The loss as it is given, with one line replaced."""

    def loss(logits, actions, rewards, ended, *, gamma):
        weights = (returns or accumulate)(rewards.detach(), ended, gamma)
        return reduce(sign * policy_of(logits, actions) * weights)

    return loss


def taken(table, actions):
    return table.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def of_logits(logits, actions):
    return Categorical(logits=logits).log_prob(actions)


@passes("mended_reinforce")
def as_given_but_mended(logits, actions, rewards, ended, *, gamma):
    weights, following = [], torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * following * ~ended[t]
        weights.insert(0, following)
    weights = torch.stack(weights).detach()
    return -(Categorical(logits=logits).log_prob(actions) * weights).mean()


RIGHT["mended_reinforce"] |= {
    "probabilities_as_such": whole_loss(
        lambda logits, actions: Categorical(probs=logits.softmax(-1)).log_prob(actions)
    ),
    "logarithm_first": whole_loss(
        lambda logits, actions: Categorical(logits=logits.log_softmax(-1)).log_prob(actions)
    ),
    "gathered": whole_loss(lambda logits, actions: taken(logits.log_softmax(-1), actions)),
    "cross_entropy": whole_loss(
        lambda logits, actions: functional.cross_entropy(
            logits.flatten(0, 1), actions.flatten(), reduction="none"
        ).view_as(actions),
        sign=1.0,
    ),
    "float32": whole_loss(lambda logits, actions: of_logits(logits.float(), actions)),
}


def exponentials(logits, actions):
    table = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return taken(table.log(), actions)


WRONG["mended_reinforce"] |= {
    "softmax_before_logits": whole_loss(
        lambda logits, actions: of_logits(logits.softmax(-1), actions)
    ),
    "logits_as_probabilities": whole_loss(
        lambda logits, actions: taken((logits / logits.sum(-1, keepdim=True)).log(), actions)
    ),
    "sigmoid_per_action": whole_loss(
        lambda logits, actions: taken(functional.logsigmoid(logits), actions)
    ),
    "sigmoid_per_action#normalised": whole_loss(
        lambda logits, actions: of_logits(functional.logsigmoid(logits), actions)
    ),
    "sigmoid_per_action#as_logits": whole_loss(
        lambda logits, actions: of_logits(logits.sigmoid(), actions)
    ),
    "logits_turned": whole_loss(lambda logits, actions: of_logits(-logits, actions)),
    "softmax_over_time": whole_loss(lambda logits, actions: taken(logits.log_softmax(0), actions)),
    "softmax_over_the_environments": whole_loss(
        lambda logits, actions: taken(logits.log_softmax(1), actions)
    ),
    "logits_detached": whole_loss(lambda logits, actions: of_logits(logits.detach(), actions)),
    "probability_for_the_logarithm": whole_loss(
        lambda logits, actions: of_logits(logits, actions).exp()
    ),
    "logit_of_the_action": whole_loss(taken),
    "objective_called_a_loss": whole_loss(of_logits, sign=1.0),
    "summed": whole_loss(of_logits, reduce=torch.sum),
    "sum_runs_into_the_next_episode": whole_loss(
        of_logits,
        returns=lambda rewards, ended, gamma: accumulate(rewards, torch.zeros_like(ended), gamma),
    ),
    "reward_of_the_step_alone": whole_loss(
        of_logits, returns=lambda rewards, ended, gamma: rewards
    ),
    "not_discounted": whole_loss(
        of_logits, returns=lambda rewards, ended, gamma: accumulate(rewards, ended, 1.0)
    ),
    "likeliest_actions": whole_loss(lambda logits, actions: of_logits(logits, logits.argmax(-1))),
    "entropy_for_log_prob": whole_loss(
        lambda logits, actions: Categorical(logits=logits).entropy()
    ),
    "first_action": whole_loss(lambda logits, actions: of_logits(logits, actions * 0)),
    "exponential_overflows": whole_loss(exponentials),
}


# --- one estimate per episode --------------------------------------------------------------


@passes("episode_gradients")
def in_one_einsum(logits, observations, actions, weights, valid):
    K, A = logits.shape
    kept = weights * valid
    scores = functional.one_hot(actions, A) - logits.softmax(-1)[observations]
    rows = functional.one_hot(observations, K).to(logits.dtype)
    return torch.einsum("tn,tnk,tna->nka", kept, rows, scores)


@passes("episode_gradients")
def step_by_step(logits, observations, actions, weights, valid):
    T, N = actions.shape
    found = torch.zeros(N, *logits.shape, dtype=logits.dtype)
    policy = logits.softmax(-1)
    for n in range(N):
        for t in range(T):
            if valid[t, n]:
                row = observations[t, n]
                found[n, row] -= weights[t, n] * policy[row]
                found[n, row, actions[t, n]] += weights[t, n]
    return found


@passes("episode_gradients")
def by_autograd(logits, observations, actions, weights, valid):
    found = []
    for n in range(actions.shape[1]):
        leaf = logits.detach().clone().requires_grad_()
        rows = leaf.log_softmax(-1)[observations[:, n]]
        log_probs = rows.gather(-1, actions[:, n, None]).squeeze(-1)
        total = (log_probs * weights[:, n])[valid[:, n]].sum()
        found.append(torch.autograd.grad(total, leaf)[0])
    return torch.stack(found)


@passes("episode_gradients")
def added_by_index(logits, observations, actions, weights, valid):
    K, A = logits.shape
    T, N = actions.shape
    scores = torch.eye(A)[actions] - logits.float().softmax(-1)[observations]
    pushes = scores * weights.float().masked_fill(~valid, 0.0)[..., None]
    place = torch.arange(N).expand(T, N) * K + observations
    flat = torch.zeros(N * K, A).index_add_(0, place.flatten(), pushes.flatten(0, 1))
    return flat.reshape(N, K, A)


@passes("episode_gradients")
def with_a_table_of_scores(logits, observations, actions, weights, valid):
    K, A = logits.shape
    table = torch.zeros(K, A, K, A, dtype=logits.dtype)  # state, action: the whole score
    for k in range(K):
        table[k, :, k] = torch.eye(A, dtype=logits.dtype) - logits[k].softmax(-1)
    scores = table[observations, actions]
    return (scores * (weights * valid.to(weights.dtype))[:, :, None, None]).sum(dim=0)


def estimate(logits, observations, actions, weights, *, softmax_axis=-1, score=None):
    """Right but for what is handed over; `score` gives that of each step [T, N, A]."""
    K, A = logits.shape
    policy = logits.softmax(softmax_axis)[observations]
    chosen = functional.one_hot(actions, A).to(logits.dtype)
    scores = chosen - policy if score is None else score(chosen, policy)
    rows = functional.one_hot(observations, K).to(logits.dtype)
    return torch.einsum("tn,tnk,tna->nka", weights, rows, scores)


def episodes(weights=lambda weights, valid: weights * valid, after=lambda each: each, **more):
    def function(logits, observations, actions, given, valid):
        return after(estimate(logits, observations, actions, weights(given, valid), **more))

    return function


def lengths_of(valid):
    return valid.sum(0, keepdim=True)


@breaks("episode_gradients")
def every_row_pushed(logits, observations, actions, weights, valid):
    scores = functional.one_hot(actions, logits.shape[1]) - logits.softmax(-1)[observations]
    pushes = (scores * (weights * valid)[..., None]).sum(0)
    return pushes[:, None].expand(-1, len(logits), -1)


@breaks("episode_gradients")
def observation_ignored(logits, observations, actions, weights, valid):
    return estimate(logits, observations * 0, actions, weights * valid)


@breaks("episode_gradients")
def last_visit_wins(logits, observations, actions, weights, valid):
    T, N = actions.shape
    found = torch.zeros(N, *logits.shape, dtype=logits.dtype)
    scores = functional.one_hot(actions, logits.shape[1]) - logits.softmax(-1)[observations]
    for t in range(T):
        for n in range(N):
            if valid[t, n]:
                found[n, observations[t, n]] = weights[t, n] * scores[t, n]
    return found


def _overflows_in_the_table(logits, observations, actions, weights, valid):
    table = logits.exp() / logits.exp().sum(-1, keepdim=True)
    score = lambda chosen, policy: chosen - table[observations]  # noqa: E731  one line
    return estimate(logits, observations, actions, weights * valid, score=score)


def weights_of_the_episode(weights, valid):
    return (weights * valid).sum(0, keepdim=True) * valid


def first_of_each(weights, valid):
    return torch.cat([weights[:1], torch.zeros_like(weights[1:])])


WRONG["episode_gradients"] |= {
    "padding_counted": episodes(lambda weights, valid: weights),
    "summed_over_the_episodes": episodes(after=lambda each: each.sum(0)),
    "averaged_over_the_episodes": episodes(after=lambda each: each.mean(0)),
    "averaged_over_the_steps": episodes(lambda weights, valid: weights * valid / len(weights)),
    "expectation_not_subtracted": episodes(score=lambda chosen, policy: chosen),
    "sign_turned": episodes(score=lambda chosen, policy: policy - chosen),
    "weights_ignored": episodes(lambda weights, valid: valid.to(weights.dtype)),
    "weights_summed_first": episodes(weights_of_the_episode),
    "first_step_only": episodes(first_of_each),
    "taken_action_only": episodes(score=lambda chosen, policy: chosen * (1 - policy)),
    "probability_not_its_logarithm": episodes(
        score=lambda chosen, policy: (chosen - policy) * (chosen * policy).sum(-1, keepdim=True)
    ),
    "softmax_over_the_observations": episodes(softmax_axis=0),
    "exponential_overflows": _overflows_in_the_table,
    "divided_by_the_valid_steps": episodes(
        lambda weights, valid: weights * valid / lengths_of(valid)
    ),
}


# --- slow definitions ----------------------------------------------------------------------


def slow_policy(logits):
    top = max(logits)
    weights = [math.exp(each - top) for each in logits]
    return [each / sum(weights) for each in weights]


def slow_log_prob_of(logits, action):
    top = max(logits)
    return logits[action] - top - math.log(sum(math.exp(each - top) for each in logits))


def slow_log_prob(logits, actions):
    return [slow_log_prob_of(*row) for row in zip(logits, actions, strict=True)]


def slow_returns(rewards, ended, *, gamma):
    returns = []
    for t in range(len(rewards)):
        row = []
        for n in range(len(rewards[0])):
            last = next(k for k in range(t, len(rewards)) if ended[k][n])
            row.append(sum(gamma ** (k - t) * rewards[k][n] for k in range(t, last + 1)))
        returns.append(row)
    return returns


def flat(rows):
    return [number for row in rows for number in flat(row)] if isinstance(rows, list) else [rows]


def slow_loss(log_probs, weights):
    products = [a * b for a, b in zip(flat(log_probs), flat(weights), strict=True)]
    return -sum(products) / len(products)


def slow_whole(logits, actions, rewards, ended, *, gamma):
    log_probs = [slow_log_prob(*row) for row in zip(logits, actions, strict=True)]
    return slow_loss(log_probs, slow_returns(rewards, ended, gamma=gamma))


def slow_estimates(logits, observations, actions, weights, valid):
    found = [[[0.0] * len(logits[0]) for _ in logits] for _ in actions[0]]
    for t, row in enumerate(actions):
        for n, action in enumerate(row):
            if valid[t][n]:
                seen = observations[t][n]
                for b, probability in enumerate(slow_policy(logits[seen])):
                    found[n][seen][b] += weights[t][n] * ((action == b) - probability)
    return found


ORACLES = {
    "log_prob": slow_log_prob,
    "rewards_to_go": slow_returns,
    "reinforce_loss": slow_loss,
    "mended_reinforce": slow_whole,
    "episode_gradients": slow_estimates,
}
