# %% [markdown]
# # 15 Exercises: which part did they replace?
#
# You write what stands in for the critic in GRPO and in RLOO, mend a mean over tokens, write the loss of DPO, and say of a
# method that nobody has named what it replaces. The lesson is [lesson 15](../notebooks/15_variants.ipynb). Each answer
# is checked as soon as you run the cell below it: you see the smallest input on which it differs, and the name of the
# mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. compared in a group | 2 of 5 | 5 of 5 | 10 |
# | 2. compared with the others | 2 of 5 | 4 of 5 | 8 |
# | 3. a mean with a bug | 2 of 5 | 5 of 5 | 8 |
# | 4. the loss of DPO | 3 of 5 | 5 of 5 | 12 |
# | 5. a method that nobody has named | 3 of 5 | 5 of 5 | 12 |
# | 6. variants by hand | 2 of 5 | 4 of 5 | 12 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 15`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup, variants  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. Compared in a group
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# GRPO compares the score of each answer with the mean of its group, in units of the group's spread:
# Â = (score − mean) / (spread + `added_spread`).
#
# - `scores` is `[B]`; `groups` is `[B]`, whole numbers: answers to the same prompt bear the same number. They stand in any
#   order, and groups may be of different sizes, of at least two answers.
# - The spread is the standard deviation with n − 1 in the denominator.
# - Give back one advantage for each answer, in the order given.
#
# All answers of a group have score 1. Which advantage must they get?

# %%
# answer: variants.compared_in_group
import torch


def compared_in_group(scores, groups, *, added_spread):
    """Compare each answer with its group, in units of its spread."""
    ### BEGIN SOLUTION: one group after the other
    advantages = torch.zeros_like(scores)
    for group in groups.unique():
        own = scores[groups == group]
        advantages[groups == group] = (own - own.mean()) / (own.std() + added_spread)
    return advantages
    ### END SOLUTION


# %%
# hint("variants.compared_in_group")
check.compared_in_group(compared_in_group)

# %% [markdown]
# ## 2. Compared with the others
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# RLOO compares the score of each answer with the mean of the *others* of its group.
#
# - `scores` and `groups` as before.
# - Give back one advantage for each answer, in the order given.
#
# Two answers have the scores 1 and 0. What are their advantages?

# %%
# answer: variants.compared_with_others
import torch


def compared_with_others(scores, groups):
    """Compare each answer with the others of its group."""
    ### BEGIN SOLUTION: the sum of the others is the sum less the own score
    same = (groups[:, None] == groups[None, :]).to(scores.dtype)
    others = same @ scores - scores
    return scores - others / (same.sum(1) - 1)
    ### END SOLUTION


# %%
# hint("variants.compared_with_others")
check.compared_with_others(compared_with_others)

# %% [markdown]
# ## 3. A mean with a bug
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# The loss of a batch is to be the mean over its tokens, each token alike. With the function below answers grow longer and
# longer while they stay wrong. Find out why, and mend it.
#
# - `terms` is `[B, T]`, one term of the loss for each place; `mask` is boolean, `[B, T]`: which places are tokens.
# - What stands elsewhere must have no effect, whatever it is.
# - Give back one number; the gradient reaches `terms`.
#
# One answer has one token, another has three. What does each of the four weigh?

# %%
# answer: variants.mended_mean


def mended_mean(terms, mask):
    """Give the mean over all tokens of a batch."""
    kept = terms.masked_fill(~mask, 0)
    ### BEGIN SOLUTION stub: return (kept.sum(dim=1) / mask.sum(dim=1)).mean()
    return kept.sum() / mask.sum()
    ### END SOLUTION


# %%
# hint("variants.mended_mean")
check.mended_mean(mended_mean)

# %% [markdown]
# ## 4. The loss of DPO
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# Take the loss of lesson 14, −mean log σ(score of the chosen − score of the rejected), and put β·(log π − log π_ref) where a
# score stood.
#
# - `chosen` and `rejected` are `[B]`: log π of whole answers, in nats. The gradient reaches both.
# - `chosen_reference` and `rejected_reference` are `[B]`: log π_ref of the same answers. They are constants: no gradient
#   reaches them.
# - `beta` is β. Give back one number.
#
# What is the loss where π is still π_ref? And is it finite for a pair that is 800 nats the wrong way?

# %%
# answer: variants.policy_preference_loss
from torch.nn.functional import logsigmoid


def policy_preference_loss(chosen, rejected, chosen_reference, rejected_reference, *, beta):
    """Make chosen answers likelier than rejected ones, relative to the reference."""
    ### BEGIN SOLUTION: the difference of two implied rewards
    up = chosen - chosen_reference.detach()
    down = rejected - rejected_reference.detach()
    return -logsigmoid(beta * (up - down)).mean()
    ### END SOLUTION


# %%
# hint("variants.policy_preference_loss")
check.policy_preference_loss(policy_preference_loss)

# %% [markdown]
# ## 5. A method that nobody has named
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# You find this in a repository, without a word about it:
#
# ```python
# def advantages_of(scores, groups):
#     same = groups[:, None] == groups[None, :]
#     others = same.float().fill_diagonal_(0)
#     expected = others @ scores / others.sum(1)
#     return (scores - expected) / (scores.std() + 1e-6)
#
#
# def loss_of(log_probs, log_probs_old, advantages, mask):
#     ratios = (log_probs - log_probs_old).exp()
#     terms = torch.minimum(ratios * advantages, ratios.clamp(max=1.3) * advantages)
#     return -(terms * mask).sum() / (len(mask) * 512)
# ```
#
# Which part did they replace? Answer with numbers.
#
# - **a**: the baseline. 1 critic, 2 mean of the group, 3 mean of the others of the group, 4 mean of the batch, 5 none.
# - **b**: the scale. 1 spread of the group, 2 spread of the batch, 3 none.
# - **c**: the weight of a token. 1 mean over tokens, 2 mean of means, 3 summed within an answer, 4 divided by a constant length.
# - **d**: the ratio. 1 of the token, 2 of the answer, 3 none.
# - **e**: above which ratio does a good token push no more? 0 if there is no such edge.
# - **f**: below which ratio does a bad token push no more? 0 if there is no such edge.
# - **g**: where is the KL charged? 1 in the reward, 2 in the loss, 3 nowhere in this code.

# %%
# answer: variants.unseen_method
### BEGIN SOLUTION stub: unseen_method = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
unseen_method = {"a": 3, "b": 2, "c": 4, "d": 1, "e": 1.3, "f": 0, "g": 3}
### END SOLUTION

# %%
# hint("variants.unseen_method")
check.unseen_method(unseen_method)

# %% [markdown]
# ## 6. Variants by hand
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# Numbers, to three digits. No code is needed.
#
# - **a**: Two of four answers are right (score 1), two are wrong (0). GRPO's advantage of a right one, with nothing added to
#   the spread?
# - **b**: RLOO's advantage of a wrong one in the same group?
# - **c**: A prompt is answered rightly with probability 0.8. Which share of groups of *three* has equal scores?
# - **d**: A batch has two answers, of 2 and 6 tokens. What does a token of the long one weigh in the mean over tokens?
# - **e**: And in the mean of means?
# - **f**: DPO at β = 0.4, one pair, π is still π_ref. The slope of the loss by log π of the chosen answer?
# - **g**: At β = 0.2, by how many nats must the two log-ratios differ such that the implied rewards prefer the chosen answer
#   with probability 0.9?
# - **h**: A token has ratio 2.5 and advantage −2. Its objective with a dual clip, ε = 0.2 and c = 3?

# %%
# answer: variants.variants_by_hand
### BEGIN SOLUTION stub: variants_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
answers = (0.866, -0.6667, 0.52, 0.125, 0.0833, -0.2, 10.986, -5)
variants_by_hand = dict(zip("abcdefgh", answers, strict=True))
### END SOLUTION

# %%
# hint("variants.variants_by_hand")
check.variants_by_hand(variants_by_hand)

# %% [markdown]
# ## Play with your own method
#
# Once exercises 2 and 3 pass, ask the board what a method made of your two functions replaces. It has never heard of it:


# %%
def own_loss(log_probs, log_probs_old, advantages, *, mask):
    return -mended_mean((log_probs - log_probs_old.detach()).exp() * advantages.detach(), mask)


own = variants.Method(
    "yours",
    "fresh",
    8,
    variants.from_scores(compared_with_others),
    "none",
    variants.unchanged,
    own_loss,
)
print(variants.describe(own))

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="variants")

# %% [markdown]
# The solutions are in `solutions/15_variants.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("variants.variants_by_hand")
