# %% [markdown]
# # 16 Exercises: what if rollouts are old?
#
# You write what a trainer needs whose data are some versions old: a weight with a cap, the decoupled loss, and the share of
# the data that weighing leaves. The lesson is [lesson 16](../notebooks/16_staleness.ipynb). Each answer is
# checked as soon as you run the cell below it: you see the smallest input on which it differs, and the name of the
# mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. a weight with a cap | 2 of 5 | 4 of 5 | 6 |
# | 2. three policies, one loss | 4 of 5 | 5 of 5 | 15 |
# | 3. what is left of the data | 3 of 5 | 4 of 5 | 12 |
# | 4. a loss with a bug | 3 of 5 | 4 of 5 | 10 |
# | 5. old data by hand | 2 of 5 | 4 of 5 | 12 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 16`, typed in a terminal in the folder of the course, checks
# all five. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. A weight with a cap
#
# *Difficulty 2 of 5, importance 4 of 5, 6 minutes.*
#
# The behaviour policy μ drew some actions. Give each the weight π_prox / μ, but no more than C.
#
# - `log_probs_proximal` and `log_probs_behaviour` have the same shape, whatever it is, and so has the result.
# - `largest_weight` is C.
# - Probabilities may be too small for a float; their quotient need not be.
#
# What weight gets an action that π_prox would never do?

# %%
# answer: staleness.capped_weights
import torch


def capped_weights(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Weigh actions by who drew them."""
    ### BEGIN SOLUTION: quotient in log space, cut above
    return (log_probs_proximal - log_probs_behaviour).exp().clamp(max=largest_weight)
    ### END SOLUTION


# %%
# hint("staleness.capped_weights")
check.capped_weights(capped_weights)

# %% [markdown]
# ## 2. Three policies, one loss
#
# *Difficulty 4 of 5, importance 5 of 5, 15 minutes.*
#
# Now the loss. The ratio π / π_prox is clipped to 1 ± ε as ever. In front of the clipped objective stands the weight
# of exercise 1, which repairs the age of the data.
#
# - `log_probs`, `log_probs_proximal`, `log_probs_behaviour` and `advantages` have the same shape.
# - A gradient reaches `log_probs` alone. All else is constant, the weights too.
# - Give back one number, to be minimised: minus the mean over all samples.
#
# At age 0, π_prox is μ. What should your loss be then?

# %%
# answer: staleness.decoupled_loss
import torch


def decoupled_loss(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, *, clip_epsilon, largest_weight
):
    """Clip around the policy at the start of the update, weigh by who drew the data."""
    ### BEGIN SOLUTION: weight, ratio, clip, minimum, mean
    proximal, advantages = log_probs_proximal.detach(), advantages.detach()
    weights = (proximal - log_probs_behaviour.detach()).exp().clamp(max=largest_weight)
    ratios = (log_probs - proximal).exp()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -(weights * torch.minimum(ratios * advantages, clipped * advantages)).mean()
    ### END SOLUTION


# %%
# hint("staleness.decoupled_loss")
check.decoupled_loss(decoupled_loss)

# %% [markdown]
# ## 3. What is left of the data
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# Some answers were drawn by μ. If n samples have weights w, they are worth (Σw)²/Σw² equally weighted ones, which is the
# share (Σw)²/(n·Σw²) of them.
#
# - `log_ratios` is log π − log μ of each token, `[answers, tokens]`.
# - `mask` is boolean, of the same shape: true at the tokens that the policy chose. Each answer has one at least.
# - Give back two numbers. First the share of the tokens, each with its own ratio. Then the share of the answers, each with
#   the ratio of the whole answer.
# - The ratio of an answer may be larger than any float.
#
# Two answers of one token each have ratios of 1 and 3. Which share is left?

# %%
# answer: staleness.effective_shares
import torch


def effective_shares(log_ratios, mask):
    """Give the effective share of tokens and of whole answers."""

    ### BEGIN SOLUTION: one function for both levels, the largest weight 1
    def share(logs):
        weights = (logs - logs.max()).exp()
        return weights.sum() ** 2 / (len(weights) * (weights**2).sum())

    return share(log_ratios[mask]), share(log_ratios.masked_fill(~mask, 0).sum(1))
    ### END SOLUTION


# %%
# hint("staleness.effective_shares")
check.effective_shares(effective_shares)

# %% [markdown]
# ## 4. A loss with a bug
#
# *Difficulty 3 of 5, importance 4 of 5, 10 minutes.*
#
# The same loss as in exercise 2, by somebody else. One line is wrong: on data that are not fresh, a part of them is
# corrected twice. Mend it.
#
# To see it at work, let π be π_prox, and see which samples have no gradient although nothing has moved yet.

# %%
# answer: staleness.mended_stale_loss
import torch


def mended_stale_loss(
    log_probs, log_probs_proximal, log_probs_behaviour, advantages, *, clip_epsilon, largest_weight
):
    """Clip around the policy at the start of the update, weigh by who drew the data."""
    proximal, behaviour = log_probs_proximal.detach(), log_probs_behaviour.detach()
    advantages = advantages.detach()
    weights = (proximal - behaviour).exp().clamp(max=largest_weight)
    ### BEGIN SOLUTION stub: ratios = (log_probs - behaviour).exp()
    ratios = (log_probs - proximal).exp()
    ### END SOLUTION
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -(weights * torch.minimum(ratios * advantages, clipped * advantages)).mean()


# %%
# hint("staleness.mended_stale_loss")
check.mended_stale_loss(mended_stale_loss)

# %% [markdown]
# ## 5. Old data by hand
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# Numbers, to three digits. No code is needed beyond a pocket calculator.
#
# - **a**: μ took an action with probability 0.2, π_prox takes it with 0.6. Its weight, with C = 2?
# - **b**: The same with 0.4 and 0.1?
# - **c**: At each of 100 tokens, log π − log μ is 0.02. The ratio of the answer?
# - **d**: Four samples have weights 1, 1, 1 and 3. Which share of them is left?
# - **e**: An action had probability 0.2 under μ and 0.3 under π_prox; it has 0.36 under π. Â = 2, ε = 0.3, C = 2. The decoupled
#   objective of this sample?
# - **f**: And the clipped objective of PPO around μ, for the same sample?
# - **g**: A buffer has room for 6 batches. Before each update the generator fills it, and the trainer takes the batch that
#   waits longest. How old is it, in the long run?

# %%
# answer: staleness.stale_by_hand
### BEGIN SOLUTION stub: stale_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
answers = (2, 0.25, 7.389, 0.75, 3.6, 2.6, 5)
stale_by_hand = dict(zip("abcdefg", answers, strict=True))
### END SOLUTION

# %%
# hint("staleness.stale_by_hand")
check.stale_by_hand(stale_by_hand)

# %% [markdown]
# ## Play with your own share
#
# Once exercise 3 passes, let answers become longer. Each token has weight 1.2 or 0.8, both equally often:

# %%
draw = torch.Generator().manual_seed(2)
shares = []
for length in (1, 10, 40):
    said = torch.rand(4000, length, generator=draw) < 0.5
    log_ratios = torch.where(said, 1.2, 0.8).double().log()
    shares.append(float(effective_shares(log_ratios, torch.ones_like(said))[1]))
assert shares[0] > 0.9 > shares[1] > 0.5 > shares[2], "does exercise 3 pass?"
print("the longer the answers, the fewer of them are left")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="staleness")

# %% [markdown]
# The solutions are in `solutions/16_staleness.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("staleness.stale_by_hand")
