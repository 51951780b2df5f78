# %% [markdown]
# # 09 Exercises: continuous actions
#
# An action that is a row of real numbers needs a density instead of a probability. You write its logarithm, its
# slopes by hand, and the correction for actions that are squashed. Then you mend a step that stores the wrong
# action, and write the two kinds of scaling that a continuous task needs. The lesson is
# [lesson 09](../notebooks/09_continuous.ipynb). Each answer is checked as soon as you run the
# cell below it: you see the smallest input on which it differs, and the name of the mistake if it is one of
# the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the log-probability of an action | 2 of 5 | 5 of 5 | 10 |
# | 2. its slopes by hand | 3 of 5 | 4 of 5 | 12 |
# | 3. squashed actions | 4 of 5 | 3 of 5 | 15 |
# | 4. sent and stored | 2 of 5 | 5 of 5 | 8 |
# | 5. moments of two groups | 3 of 5 | 4 of 5 | 15 |
# | 6. scaled rewards | 3 of 5 | 3 of 5 | 12 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 09`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. The log-probability of an action
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# A Gaussian policy draws each of the A dimensions of an action on its own: dimension j has the mean μ_j and the
# deviation σ_j. Write the logarithm of the density of whole actions.
#
# - `actions` has shape `[B, A]`: B actions, as they were drawn. No gradient flows into them.
# - `means` has shape `[B, A]`: what the network gave in each of B states.
# - `log_stds` has shape `[A]`: log σ_j, the same in all states. It is a parameter of the policy, so the gradient
#   flows through it and through the means.
# - The result has shape `[B]`: one number for each action.
# - Densities may be as small as e⁻¹⁸⁰⁰, which a float holds as 0. The result must still be right.
#
# Before you write: how large is it at the mean if σ = 1? And may it be positive?

# %%
# answer: continuous.gaussian_log_probs
import math

import torch


def gaussian_log_probs(actions, means, log_stds):
    """Give log π of each action, summed over its dimensions."""
    ### BEGIN SOLUTION: three terms for each dimension, then their sum
    distances = (actions - means) / log_stds.exp()
    each = -0.5 * distances**2 - log_stds - 0.5 * math.log(2 * math.pi)
    return each.sum(dim=-1)
    ### END SOLUTION


# %%
# hint("continuous.gaussian_log_probs")
check.gaussian_log_probs(gaussian_log_probs)

# %% [markdown]
# ## 2. Its slopes by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# The score of an action, ∇log π, says how its log-probability answers to the parameters. Here the parameters are the
# mean and log σ of each dimension. Write both slopes by hand, without a backward pass.
#
# - The inputs are those of exercise 1.
# - The result is a tuple of two tensors, both `[B, A]`: for each action and each dimension the slope by its mean,
#   and the slope by its log σ. (All actions share one log σ; take the slope of each action's own log-probability.)
#
# For which actions does a policy want to become wider? And how large can each of the two slopes get?

# %%
# answer: continuous.gaussian_scores
import torch


def gaussian_scores(actions, means, log_stds):
    """Give the slopes of log π by the means and by log σ."""
    ### BEGIN SOLUTION: (by_means, by_log_stds)
    stds = torch.exp(log_stds)
    distances = (actions - means) / stds
    return distances / stds, distances.square() - 1
    ### END SOLUTION


# %%
# hint("continuous.gaussian_scores")
check.gaussian_scores(gaussian_scores)

# %% [markdown]
# ## 3. Squashed actions
#
# *Difficulty 4 of 5, importance 3 of 5, 15 minutes.*
#
# Some policies draw u from a Gaussian and act with a = tanh(u), so that every action lies between −1 and 1. Write the
# log-probability of a.
#
# - `drawn` has shape `[B, A]`: u, before the tanh. No gradient flows into it.
# - `means` `[B, A]` and `log_stds` `[A]` belong to the Gaussian that u came from.
# - The result has shape `[B]`: log of the density of a = tanh(u), summed over the dimensions. It must be right for
#   u = 30 too, where the tanh is 1 in a float.
#
# The tanh presses the draws together. Where it presses them hardest, does the density of the action become larger or
# smaller?

# %%
# answer: continuous.squashed_log_probs
import math

import torch
from torch.nn.functional import softplus


def squashed_log_probs(drawn, means, log_stds):
    """Give log of the density of tanh(drawn), summed over the dimensions."""
    ### BEGIN SOLUTION: the Gaussian's, minus log of the slope of tanh
    distances = (drawn - means) / log_stds.exp()
    plain = -0.5 * distances**2 - log_stds - 0.5 * math.log(2 * math.pi)
    slopes = 2 * (math.log(2) - drawn - softplus(-2 * drawn))
    return (plain - slopes).sum(dim=-1)
    ### END SOLUTION


# %%
# hint("continuous.squashed_log_probs")
check.squashed_log_probs(squashed_log_probs)

# %% [markdown]
# ## 4. Sent and stored
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# A motor takes a torque from −2 to 2; the policy draws from a Gaussian, which has no limits. So what is sent is
# cut. This function draws, cuts, and says what the rollout stores. It runs, and training goes wrong: actions at
# the limits pull the mean back. Mend it. One line is wrong, the rest is right.
#
# - `means` has shape `[B, A]`, `log_stds` `[A]`, and `noise` `[B, A]` was drawn from a Gaussian with mean 0 and
#   deviation 1.
# - `low` and `high` are the limits, two numbers, the same for each dimension.
# - The result is a tuple: `sent` `[B, A]` for the environment, `stored` `[B, A]` for the rollout, and
#   `log_probs_old` `[B]`, log π of what is stored.
#
# Which density has an action of exactly 2, if the policy wanted 3.5?

# %%
# answer: continuous.mended_actions
import math

import torch


def mended_actions(means, log_stds, noise, *, low, high):
    """Draw actions: what is sent, what is stored, and its log-probability."""
    stds = log_stds.exp()
    actions = means + stds * noise
    sent = actions.clamp(low, high)
    ### BEGIN SOLUTION stub: stored = sent
    stored = actions
    ### END SOLUTION
    distances = (stored - means) / stds
    log_probs_old = -0.5 * distances**2 - log_stds - 0.5 * math.log(2 * math.pi)
    return sent, stored, log_probs_old.sum(dim=-1)


# %%
# hint("continuous.mended_actions")
check.mended_actions(mended_actions)

# %% [markdown]
# ## 5. Moments of two groups
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# A network learns better if each of its inputs has mean 0 and deviation 1. The mean and the deviation of the
# observations are not known before training, so they are counted while it runs, without keeping the observations.
# Three numbers for each feature are enough: how many there were, their mean, and `m2`, the sum of the squared
# distances from the mean. Write how they change when a batch of observations arrives.
#
# - `count` is a tensor without dimensions; 0 before the first batch. `mean` and `m2` have shape `[F]`: F features.
# - `observations` has shape `[B, F]`: B new ones, at least one.
# - The result is a tuple: the new `count` (a number or a tensor), `mean` `[F]` and `m2` `[F]`, as if all observations had
#   been seen at once. The inputs stay as they are.
#
# Try it on paper: one observation before, 2; one more, 6. What are count, mean and m2 of both? (Chan, Golub and LeVeque
# gave the general rule in 1979.)

# %%
# answer: continuous.merge_moments
import torch


def merge_moments(count, mean, m2, observations):
    """Give count, mean and sum of squares of the old and the new observations together."""
    ### BEGIN SOLUTION: each group's squares, and how far the groups are apart
    size = observations.shape[0]
    batch_mean = observations.mean(dim=0)
    batch_m2 = ((observations - batch_mean) ** 2).sum(dim=0)
    apart, total = batch_mean - mean, count + size
    together = m2 + batch_m2 + apart**2 * count * size / total
    return total, mean + apart * size / total, together
    ### END SOLUTION


# %%
# hint("continuous.merge_moments")
check.merge_moments(merge_moments)

# %% [markdown]
# ## 6. Scaled rewards
#
# *Difficulty 3 of 5, importance 3 of 5, 12 minutes.*
#
# Pendulum pays −16 in its worst step, another task 0.01. A critic learns both at one learning rate only if their returns
# have about the same spread. So rewards are divided by the spread of a **running return**: what an episode has
# earned so far, older rewards discounted.
#
# - `rewards` has shape `[T, N]`: T steps of N environments. `ended`, `[T, N]`, is True at the last step of an episode.
#   Every environment begins a new episode at the first row.
# - The running return of a step is its reward, plus `gamma` times the running return of the step before, if that step
#   belongs to the same episode.
# - The spread is the standard deviation of all T·N running returns together (divided by T·N, not by one less).
# - The result has shape `[T, N]`: the rewards, each divided by this spread. Nothing is subtracted from them.
#
# Why is nothing subtracted? Think of a task that pays 1 for each step that the pole stands, and take the mean away.

# %%
# answer: continuous.scaled_rewards
import torch


def scaled_rewards(rewards, ended, *, gamma):
    """Divide the rewards by the spread of the running returns."""
    ### BEGIN SOLUTION: walk forward, cut at ends, divide once
    returns = []
    before = torch.zeros_like(rewards[0])
    for reward, end in zip(rewards, ended, strict=True):
        returns.append(reward + gamma * before)
        before = returns[-1] * ~end
    return rewards / torch.stack(returns).std(correction=0)
    ### END SOLUTION


# %%
# hint("continuous.scaled_rewards")
check.scaled_rewards(scaled_rewards)

# %% [markdown]
# ## Learn with your own slopes
#
# Once exercise 2 passes, your slopes are enough to learn from. There is one state, and an action a earns −(a − 1.5)². Each
# step draws 64 actions, subtracts the mean reward, and moves the mean and log σ along the mean of score × advantage. No
# network, no backward pass.

# %% tags=["nbval-ignore-output"]
generator = torch.Generator().manual_seed(9)
mean, log_std = torch.zeros(1), torch.zeros(1)
for _ in range(400):
    noise = torch.randn(64, 1, generator=generator)
    actions = mean + log_std.exp() * noise
    rewards = -((actions - 1.5) ** 2)
    scores = gaussian_scores(actions, mean.expand(64, 1), log_std)
    by_mean, by_log_std = ((each * (rewards - rewards.mean())).mean(0) for each in scores)
    mean, log_std = mean + 0.05 * by_mean, log_std + 0.05 * by_log_std

# %%
assert abs(mean - 1.5) < 0.2, "the mean did not arrive: does exercise 2 pass?"
assert log_std < -1, "the policy did not become narrow: does exercise 2 pass?"
print("your slopes learn: the mean is at the best action, and the policy has become narrow")

# %% [markdown]
# The policy became narrow since, near the best action, every distance costs. What would a narrow policy do if the best
# action moved now? That is what the widget of the lesson lets you try.
#
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="continuous")

# %% [markdown]
# The solutions are in `solutions/09_continuous.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("continuous.squashed_log_probs")
