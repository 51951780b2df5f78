# %% [markdown]
# # 14 Exercises: RLHF
#
# You write what stands between a judge and the update: the loss that makes the judge, a reward for each token, the
# advantages, the distance from the reference and its price. The lesson is [lesson 14](../notebooks/14_rlhf.ipynb).
# Each answer is checked as soon as you run the cell below it: you see the smallest input on which it differs, and the
# name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. a judge from comparisons | 2 of 5 | 4 of 5 | 8 |
# | 2. one reward per token | 3 of 5 | 5 of 5 | 12 |
# | 3. advantages of tokens | 3 of 5 | 5 of 5 | 12 |
# | 4. how far whole answers are | 2 of 5 | 4 of 5 | 8 |
# | 5. a price that adapts | 2 of 5 | 3 of 5 | 8 |
# | 6. scoring with a bug | 3 of 5 | 5 of 5 | 10 |
# | 7. eight numbers by hand | 2 of 5 | 4 of 5 | 12 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 14`, typed in a terminal in the folder of the course, checks
# all seven. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. A judge from comparisons
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# A rater preferred one of two answers, again and again. The judge gives each answer a score, and says that the first is
# preferred with probability σ(score of the first − score of the second). Write the loss that teaches it: the mean of
# minus the logarithm of the probability of what the rater did.
#
# - `chosen` and `rejected` have shape `[B]`: the scores of the preferred answers and of the others.
# - The result is one number. Gradients reach both.
#
# A judge is sure and wrong: it gives the preferred answer a score that is 1,200 lower. How large is the loss? (It is
# finite.)

# %%
# answer: rlhf.preference_loss
from torch.nn import functional


def preference_loss(chosen, rejected):
    """Give the loss of a judge that learns from preferences."""
    ### BEGIN SOLUTION: sigmoid and logarithm in one step
    return -functional.logsigmoid(chosen - rejected).mean()
    ### END SOLUTION


# %%
# hint("rlhf.preference_loss")
check.preference_loss(preference_loss)

# %% [markdown]
# ## 2. One reward per token
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# The judge has given each answer one score. Pay the tokens: each that the policy chose pays the price β for its
# distance log π − log π_ref, and the last of them gets the score on top.
#
# - `scores` has shape `[B]`; `log_probs` and `log_probs_reference` have shape `[B, T]`.
# - `mask` is boolean, `[B, T]`: True at tokens that the policy chose, at least one in each row. It may have gaps, where a
#   tool or a user speaks.
# - `beta` is β. The result has shape `[B, T]`. Where the mask is False it is 0, whatever stands there.
#
# A row of the mask is `1 1 0 1 0`. At which place is the score paid?

# %%
# answer: rlhf.token_rewards
import torch


def token_rewards(scores, log_probs, log_probs_reference, mask, *, beta):
    """Pay each token its price, and the last one the score."""
    ### BEGIN SOLUTION: the price everywhere, the score once
    rewards = (-beta * (log_probs - log_probs_reference)).masked_fill(~mask, 0)
    last = (mask * torch.arange(mask.shape[1])).argmax(dim=1)
    return rewards.scatter_add(1, last.unsqueeze(1), scores.unsqueeze(1))
    ### END SOLUTION


# %%
# hint("rlhf.token_rewards")
check.token_rewards(token_rewards)

# %% [markdown]
# ## 3. Advantages of tokens
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# GAE along each answer: a token is a step, and nothing comes after the last one.
#
# - `rewards` and `values` have shape `[B, T]`; V stands before its token is chosen.
# - `mask` is boolean, `[B, T]`. Here answers begin in column 0 and have no gaps; behind them is padding.
# - `gamma` and `gae_lambda` are γ and λ.
# - The result has shape `[B, T]`. In the padding it is 0, whatever stands there.
#
# An answer has two tokens, and in the padding behind it the critic says 5. What is V after the second token?

# %%
# answer: rlhf.token_advantages
import torch


def token_advantages(rewards, values, mask, *, gamma, gae_lambda):
    """Run GAE along each answer."""
    ### BEGIN SOLUTION: zeros in the padding, then backwards
    rewards, values = (numbers.masked_fill(~mask, 0) for numbers in (rewards, values))
    advantages = torch.zeros_like(rewards)
    following, next_value = torch.zeros_like(rewards[:, 0]), torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        error = rewards[:, t] + gamma * next_value - values[:, t]
        following = error + gamma * gae_lambda * following
        advantages[:, t], next_value = following, values[:, t]
    return advantages
    ### END SOLUTION


# %%
# hint("rlhf.token_advantages")
check.token_advantages(token_advantages)

# %% [markdown]
# ## 4. How far whole answers are
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# The policy drew some answers. Estimate KL(π ‖ π_ref) of whole answers, in two ways: with k1 = d, and with
# k3 = e⁻ᵈ − 1 + d, where d = log π − log π_ref of a token.
#
# - `log_probs`, `log_probs_reference` and the boolean `mask` have shape `[B, T]`.
# - Give back two numbers: k1 first, then k3. Each is added up over the tokens of an answer and then averaged over answers.
#
# Two answers of 1 and 3 tokens, each token with d = 0.2. How far are whole answers on average, by k1?

# %%
# answer: rlhf.kl_of_answers
import torch


def kl_of_answers(log_probs, log_probs_reference, mask):
    """Give the KL of whole answers from the reference, by k1 and by k3."""
    ### BEGIN SOLUTION: the tokens that count, each twice
    distance = (log_probs - log_probs_reference)[mask]
    k3 = torch.expm1(-distance) + distance
    return distance.sum().item() / len(mask), k3.sum().item() / len(mask)
    ### END SOLUTION


# %%
# hint("rlhf.kl_of_answers")
check.kl_of_answers(kl_of_answers)

# %% [markdown]
# ## 5. A price that adapts
#
# *Difficulty 2 of 5, importance 3 of 5, 8 minutes.*
#
# You wish for a distance, and a controller finds the price. Its error is KL / target − 1, cut to the range from −0.2 to 0.2.
# After `kl_horizon` answers the price is to have moved by the share that the error says; after fewer answers by as much
# less.
#
# - All are Python numbers: `beta`, the measured `kl` (an estimate, so it may be below 0), `target_kl`, `num_samples`
#   answers since the last change, `kl_horizon`.
# - Give back the next β.
#
# The KL is twice the target, and as many answers as the horizon were drawn. By how much does the price rise?

# %%
# answer: rlhf.next_price


def next_price(beta, kl, *, target_kl, num_samples, kl_horizon):
    """Move the price towards the one that keeps the wanted distance."""
    ### BEGIN SOLUTION: cut the error, then take a share of it
    error = max(-0.2, min(0.2, kl / target_kl - 1))
    return beta * (1 + error * num_samples / kl_horizon)
    ### END SOLUTION


# %%
# hint("rlhf.next_price")
check.next_price(next_price)

# %% [markdown]
# ## 6. Scoring with a bug
#
# *Difficulty 3 of 5, importance 5 of 5, 10 minutes.*
#
# The whole stage score, from the judge's scores to what the squeeze gets: whitened advantages (mean 0, spread 1 over all
# tokens that count) and the critic's targets, Â + V. The policy that is trained with this learns, though slowly, and the
# critic's explained variance stays low. Find out why, and mend it.
#
# - `scores` has shape `[B]`, all others `[B, T]`; answers begin in column 0 and have no gaps. γ is 1.
# - Give back advantages and returns, both `[B, T]` and 0 in the padding.
#
# All scores and values twice as large, and the price as well: what should become of the advantages, and what of the
# returns?

# %%
# answer: rlhf.mended_scoring
import torch


def mended_scoring(scores, log_probs, log_probs_reference, values, mask, *, beta, gae_lambda):
    """Give whitened advantages, and what the critic is to learn."""
    values = values.masked_fill(~mask, 0)
    rewards = (-beta * (log_probs - log_probs_reference)).masked_fill(~mask, 0)
    rewards[torch.arange(len(scores)), mask.sum(dim=1) - 1] += scores
    plain = torch.zeros_like(rewards)
    following, next_value = torch.zeros_like(scores), torch.zeros_like(scores)
    for t in reversed(range(mask.shape[1])):
        following = rewards[:, t] + next_value - values[:, t] + gae_lambda * following
        plain[:, t], next_value = following, values[:, t]
    mean, spread = plain[mask].mean(), plain[mask].std()
    advantages = ((plain - mean) / (spread + 1e-8)).masked_fill(~mask, 0)
    ### BEGIN SOLUTION stub: returns = advantages + values
    returns = plain + values
    ### END SOLUTION
    return advantages, returns


# %%
# hint("rlhf.mended_scoring")
check.mended_scoring(mended_scoring)

# %% [markdown]
# ## 7. Eight numbers by hand
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# Nothing to program; a pocket calculator helps. Numbers may be off by 0.002.
#
# **Three tokens.** Their log-probabilities are −0.2, −0.5 and −0.1 under the policy, and −0.4, −2.5 and −0.1 under the
# reference. The score is 2, β is 0.5, and the critic says V = 0.5 before each token. γ is 1.
#
# - **a**: the reward of the second token;
# - **b**: the sum of the three rewards;
# - **c**: the advantage of the first token, with λ = 1;
# - **d**: the advantage of the first token, with λ = 0.
#
# **Two answers.** A judge scores them 3 and 1.
#
# - **e**: With which probability does a rater prefer the first, as this judge says?
#
# Of two other answers, the reference gives the first with probability 0.8 and the second with 0.2. The rewards are 0 and 1,
# and β is 0.5.
#
# - **f**: What is the probability of the second under the best policy?
#
# **A controller.** β is 0.2, the target 4 nats, the KL 6 nats. 80 answers were drawn, and the horizon is 160.
#
# - **g**: What is the next β?
#
# **Memory.** Each of the four models has 7 billion weights. A weight that learns takes 16 bytes, one that is asked takes 2.
#
# - **h**: How many GB (10⁹ bytes) do weights, gradients and optimiser of all four take?

# %%
# answer: rlhf.rewards_by_hand
### BEGIN SOLUTION stub: rewards_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
answers = (-1.0, 0.9, 0.4, -0.1, 0.8808, 0.6488, 0.22, 252)
rewards_by_hand = dict(zip("abcdefgh", answers, strict=True))
### END SOLUTION

# %%
# hint("rlhf.rewards_by_hand")
check.rewards_by_hand(rewards_by_hand)

# %% [markdown]
# ## Play with your own judge
#
# Once exercise 1 passes, let it teach a judge. Four answers are worth 2, 0.5, 0 and −1 to a rater who is not strict. You see
# 20,000 of the comparisons, and no worth. Which scores explain them?

# %%
worth = torch.tensor([2.0, 0.5, 0.0, -1.0])
generator = torch.Generator().manual_seed(4)
first, second = torch.randint(4, (2, 20_000), generator=generator)
prefers = torch.rand(20_000, generator=generator) < (worth[first] - worth[second]).sigmoid()
won, lost = torch.where(prefers, first, second), torch.where(prefers, second, first)

# %%
scores = torch.zeros(4, requires_grad=True)
for _ in range(200):
    loss = preference_loss(scores[won], scores[lost])
    (slope,) = torch.autograd.grad(loss, scores)
    scores = (scores - 4 * slope).detach().requires_grad_()

# %% [markdown]
# Only differences can be learned, so compare both from their means:

# %%
off = (scores - scores.mean()) - (worth - worth.mean())
assert off.abs().max() < 0.15, "far from what the rater feels: does exercise 1 pass?"
print("every score is within 0.15 of what the answer is worth to the rater")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="rlhf")

# %% [markdown]
# The solutions are in `solutions/14_rlhf.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("rlhf.rewards_by_hand")
