# %% [markdown]
# # 04 Exercises: the clip
#
# You write the line that [lesson 04](../notebooks/04_clip.ipynb) is about, and five things around it. Each answer is checked as
# soon as you run the cell below it: you see the smallest input on which it differs, and the name
# of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the clipped surrogate | 2 of 5 | 5 of 5 | 10 |
# | 2. the loss that PPO minimises | 2 of 5 | 5 of 5 | 10 |
# | 3. two fractions | 2 of 5 | 3 of 5 | 8 |
# | 4. six signs | 2 of 5 | 5 of 5 | 8 |
# | 5. a loss with a bug | 3 of 5 | 4 of 5 | 10 |
# | 6. two edges and a floor (for experts) | 4 of 5 | 2 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 04`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# ## 1. The clipped surrogate
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# Write the clipped surrogate objective. It gives one number for each sample, to be maximised.
#
# - `ratios` says how much more likely each action is now than when it was drawn.
# - `advantages` says how much better each action was than expected. They are constants: no
#   gradient may flow into them.
# - `clip_epsilon` is half the width of the interval around ratio 1 beyond which you stop paying.
# - `ratios` and `advantages` have the same shape, whatever it is. The result has it too.
#
# Try a good action (advantage +1) and a bad one (advantage −1) on paper before you write, each
# at the ratios 0.5 and 1.5.

# %%
# answer: clip.clipped_surrogate
import torch


def clipped_surrogate(ratios, advantages, *, clip_epsilon):
    """Give the clipped surrogate objective of each sample."""
    ### BEGIN SOLUTION: the smaller of two terms
    advantages = advantages.detach()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    return torch.minimum(plain, clipped)
    ### END SOLUTION


# %%
# hint("clip.clipped_surrogate")
check.clipped_surrogate(clipped_surrogate)

# %% [markdown]
# ## 2. The loss that PPO minimises
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# Write the loss from what a batch holds. It is one number, to be minimised: the mean over all
# samples, with the sign turned.
#
# - `log_probs` are the log-probabilities of the actions now. The gradient flows through them.
# - `log_probs_old` were written down while sampling. They are constants, and so are the
#   `advantages`.
# - All three have the same shape, whatever it is; the mean goes over every sample, clipped or not.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
# - Probabilities may be as small as e⁻⁸⁰⁰, which a float holds as 0. The loss must still be right,
#   so take the difference of the logarithms first.
# - The advantages are taken as they are. (The training loop has **normalised** them before: their
#   mean is subtracted, and their spread divided out.)
#
# This function has the signature that the training loop asks for: at the end of this page you
# train with it. Write it without calling your answer to exercise 1, so that it can stand alone.

# %%
# answer: clip.clipped_surrogate_loss
import torch


def clipped_surrogate_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    """Turn the clipped surrogate into a loss."""
    ### BEGIN SOLUTION: ratio, objective, mean, sign
    ratios = (log_probs - log_probs_old.detach()).exp()
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return -torch.minimum(ratios * advantages, clipped * advantages).mean()
    ### END SOLUTION


# %%
# hint("clip.clipped_surrogate_loss")
check.clipped_surrogate_loss(clipped_surrogate_loss)

# %% [markdown]
# ## 3. Two fractions
#
# *Difficulty 2 of 5, importance 3 of 5, 8 minutes.*
#
# Logs of PPO show a "clip fraction". There are two of them, and they are often confused:
#
# - `fraction_outside`: the share of samples whose ratio lies strictly outside the interval from
#   1 − ε to 1 + ε, above or below;
# - `fraction_zero_gradient`: the share of samples whose gradient the clip has taken away.
#
# Write a function that returns both as a tuple, in this order. Each is a share of all samples, from
# 0 to 1; Python numbers or tensors, as you like. The three inputs have the same shape, whatever it
# is. A sample whose advantage is 0 has no gradient that the clip could take: in the second number
# it is not one of those that are counted, and it is still one of all samples.

# %%
# answer: clip.clip_fractions
import torch


def clip_fractions(log_probs, log_probs_old, advantages, *, clip_epsilon):
    """Say how many samples left the interval, and how many of them no longer push."""
    ### BEGIN SOLUTION: fraction_outside, fraction_zero_gradient
    ratios = torch.exp(log_probs - log_probs_old)
    above, below = ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon
    silent = (above & (advantages > 0)) | (below & (advantages < 0))
    return (above | below).float().mean(), silent.float().mean()
    ### END SOLUTION


# %%
# hint("clip.clip_fractions")
check.clip_fractions(clip_fractions)

# %% [markdown]
# ## 4. Six signs
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Nothing to program. ε is 0.2. In each case, does the objective rise (`1`), stay (`0`) or fall
# (`-1`) when the ratio grows a little? In other words: which sign has the derivative of the
# clipped surrogate objective with respect to the ratio?
#
# | case | ratio | advantage |
# | :---: | ---: | ---: |
# | a | 1.1 | +1 |
# | b | 1.3 | +1 |
# | c | 0.7 | +1 |
# | d | 1.3 | −1 |
# | e | 0.7 | −1 |
# | f | 0.9 | −1 |
#
# Write numbers, without quotation marks. The dict is given; a list of the six in the order from a
# to f is accepted too.

# %%
# answer: clip.gradient_signs
### BEGIN SOLUTION stub: gradient_signs = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None}
gradient_signs = {"a": 1, "b": 0, "c": 1, "d": -1, "e": 0, "f": -1}
### END SOLUTION

# %%
# hint("clip.gradient_signs")
check.gradient_signs(gradient_signs)

# %% [markdown]
# ## 5. A loss with a bug
#
# *Difficulty 3 of 5, importance 4 of 5, 10 minutes.*
#
# You met this bug in the lesson; here it sits inside a whole loss. Mend it. One line is wrong, the
# rest is right.
#
# To see it at work, give the loss one sample with ratio 1.5 and advantage −1, and look at the
# gradient.

# %%
# answer: clip.mended_loss
import torch


def mended_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    """Turn the clipped surrogate into a loss; one line is wrong."""
    advantages = advantages.detach()
    ratios = (log_probs - log_probs_old.detach()).exp()
    plain = ratios * advantages
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon) * advantages
    ### BEGIN SOLUTION stub: objective = torch.where(advantages >= 0, torch.min(plain, clipped), torch.max(plain, clipped))
    objective = torch.min(plain, clipped)
    ### END SOLUTION
    return -objective.mean()


# %%
# hint("clip.mended_loss")
check.mended_loss(mended_loss)

# %% [markdown]
# ## 6. Two edges and a floor (for experts)
#
# *Difficulty 4 of 5, importance 2 of 5, 15 minutes.*
#
# Two changes to the clip are in use for language models, whose actions are **tokens**, pieces of
# words.
#
# - **Asymmetric edges** (DAPO, Yu et al. 2025): the interval goes from 1 − `epsilon_low` to
#   1 + `epsilon_high`. A wider upper side lets rare good tokens grow.
# - **A floor** (dual clip, Ye et al. 2020): a bad action whose ratio is large has an objective far
#   below zero. For **negative** advantages only, the objective never falls below `bound` times the
#   advantage. Beyond the bound the sample has no gradient.
#
# `bound` is a ratio above 1. Usually it lies far above 1 + `epsilon_high`, but it may lie below: good
# actions never feel it.
#
# Write the objective with both changes, one number per sample: first the clipped minimum, then the
# floor. Advantages are constants, and `ratios` and `advantages` have the same shape, whatever it is.

# %%
# answer: clip.asymmetric_dual_clip
import torch


def asymmetric_dual_clip(ratios, advantages, *, epsilon_low, epsilon_high, bound):
    """Give the clipped surrogate with two widths, and a floor under bad actions."""
    ### BEGIN SOLUTION: clip, minimum, floor
    advantages = advantages.detach()
    clipped = ratios.clamp(1 - epsilon_low, 1 + epsilon_high)
    objective = torch.minimum(ratios * advantages, clipped * advantages)
    floored = torch.maximum(objective, bound * advantages)
    return torch.where(advantages < 0, floored, objective)
    ### END SOLUTION


# %%
# hint("clip.asymmetric_dual_clip")
check.asymmetric_dual_clip(asymmetric_dual_clip)

# %% [markdown]
# ## Train with your own loss
#
# Once exercise 2 passes, put your function into the training loop. Everything else is the
# package's; the line that decides how far each action is pushed is yours. The task is CartPole: a
# cart must keep a pole upright, and the return counts the steps until the pole falls. The cell runs
# for a few seconds.

# %% tags=["nbval-ignore-output"]
parts = Parts(policy_loss=clipped_surrogate_loss)
history = train(PPOConfig(total_steps=16_384), parts=parts)
first, last = history["episode_return"][0], history["episode_return"][-1]

# %%
assert last > 2 * first, "no progress: does exercise 2 pass?"
print("your loss trains: CartPole's pole stands more than twice as long")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="clip")

# %% [markdown]
# The solutions are in `solutions/04_clip.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("clip.asymmetric_dual_clip")
