# %% [markdown]
# # 17 Exercises: may it ship?
#
# You write what a release stands on: an interval for a share, a fair count of several tries, what a judge who errs
# says about the truth, a comparison on the same prompts, and the rule by which a gate stops a run. The lesson is
# [lesson 17](../notebooks/17_evidence.ipynb). Each answer is checked as soon as you run the cell below it: you see
# the smallest input on which it differs, and the name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. what a count says | 3 of 5 | 5 of 5 | 10 |
# | 2. one of k tries | 3 of 5 | 3 of 5 | 10 |
# | 3. a judge who errs | 3 of 5 | 4 of 5 | 12 |
# | 4. the same prompts | 3 of 5 | 5 of 5 | 12 |
# | 5. a gate with a bug | 3 of 5 | 4 of 5 | 10 |
# | 6. evidence by hand | 2 of 5 | 4 of 5 | 12 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 17`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. What a count says
#
# *Difficulty 3 of 5, importance 5 of 5, 10 minutes.*
#
# Some answers were verified. Which true shares does this count not contradict? Give Wilson's interval: all p with
# |k/n − p| ≤ z·√(p(1 − p)/n).
#
# - `right` is boolean, `[n]`: whether each answer is right. n is at least 1.
# - `z` is the number of standard errors on each side.
# - Give back two numbers: the lower end and the upper end.
#
# None of four answers is right, and z is 2. Is one right answer in three still possible?

# %%
# answer: evidence.share_interval
from math import sqrt


def share_interval(right, *, z):
    """Give the shares that a count does not contradict."""
    ### BEGIN SOLUTION: the two roots of a quadratic equation
    k, n = int(right.sum()), len(right)
    half = z * sqrt(k * (n - k) / n + z**2 / 4)
    return (k + z**2 / 2 - half) / (n + z**2), (k + z**2 / 2 + half) / (n + z**2)
    ### END SOLUTION


# %%
# hint("evidence.share_interval")
check.share_interval(share_interval)

# %% [markdown]
# ## 2. One of k tries
#
# *Difficulty 3 of 5, importance 3 of 5, 10 minutes.*
#
# A model gave n answers to each prompt. Somebody who may ask k times is content if one of the k answers is right. How
# often are they, on average over prompts, and over all ways to take k of the n answers?
#
# - `right` is boolean, `[prompts, n]`.
# - `k` is a whole number from 1 to n.
# - Give back one number.
#
# One of four answers is right, and you may ask twice. There are six pairs. How many of them hold the right one?

# %%
# answer: evidence.one_of_k
from math import comb


def one_of_k(right, *, k):
    """Give the probability that one of k answers is right, averaged over prompts."""
    ### BEGIN SOLUTION: ways to draw wrong ones only
    n = right.shape[1]
    found = [1 - comb(n - int(row.sum()), k) / comb(n, k) for row in right]
    return sum(found) / len(found)
    ### END SOLUTION


# %%
# hint("evidence.one_of_k")
check.one_of_k(one_of_k)

# %% [markdown]
# ## 3. A judge who errs
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# A judge of accuracy a labels n answers of a model. With probability a a label is correct, for right and for wrong answers
# alike. What is the success of the model, and how uncertain is that?
#
# - `labels` is boolean, `[n]`: what the judge calls right; k of them.
# - `accuracy` is a, above 0.5.
# - Give back two numbers. First the success: such that it is right on average, so it may lie outside of 0 to 1. Then its
#   standard error: for the noise of the labels take √(q(1 − q)/n) with q = (k + 1)/(n + 2), so that labels which all
#   agree do not claim to be certain.
#
# At a = 0.9 and no right answer at all, which share does the judge call right? The success that you compute from that
# share must be 0.

# %%
# answer: evidence.judged_success
from math import sqrt


def judged_success(labels, *, accuracy):
    """Give the success behind a judge's labels, and its standard error."""
    ### BEGIN SOLUTION: turn the judge's errors back, and stretch the noise as much
    k, n = int(labels.sum()), len(labels)
    stretch = 1 / (2 * accuracy - 1)
    q = (k + 1) / (n + 2)
    return stretch * (k / n - (1 - accuracy)), stretch * sqrt(q * (1 - q) / n)
    ### END SOLUTION


# %%
# hint("evidence.judged_success")
check.judged_success(judged_success)

# %% [markdown]
# ## 4. The same prompts
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# Two models answered the same n prompts. How much more often is the candidate right?
#
# - `baseline_right` and `candidate_right` are boolean, `[n]`, in the same order.
# - `z` is the number of standard errors on each side.
# - Give back two numbers, lower and upper end of candidate minus baseline: the mean of the n differences, plus and minus z
#   times its standard error. For the standard error take the variance with n in the denominator, not n − 1.
#
# Both models are right on prompts 1 to 50 and wrong on 51 to 100. How wide is the interval?

# %%
# answer: evidence.paired_interval
from math import sqrt


def paired_interval(baseline_right, candidate_right, *, z):
    """Give the interval of the difference on the same prompts."""
    ### BEGIN SOLUTION: one difference for each prompt
    differences = candidate_right.double() - baseline_right.double()
    mean = differences.mean().item()
    half = z * sqrt(((differences - mean) ** 2).mean().item() / len(differences))
    return mean - half, mean + half
    ### END SOLUTION


# %%
# hint("evidence.paired_interval")
check.paired_interval(paired_interval)

# %% [markdown]
# ## 5. A gate with a bug
#
# *Difficulty 3 of 5, importance 4 of 5, 10 minutes.*
#
# A gate compares the checkpoint at hand with the best one so far. Both were labelled by a judge who errs. It stops the
# run if the loss exceeds what noise makes, z standard errors *of the difference*:
#
# excess = (success of the best − success now) − z · (standard error of that difference)
#
# Above 0 it stops. The function below stops too many healthy runs. Find out why, and mend it.
#
# - `best_labels` is boolean, `[m]`, and `labels` is boolean, `[n]`: what the judge says of each.
# - `accuracy` and `z` as before.
#
# The best checkpoint has 4 labels. Is the loss as sure as if it had 400?

# %%
# answer: evidence.mended_excess
from math import sqrt


def mended_excess(best_labels, labels, *, accuracy, z):
    """Give by how much a loss exceeds the noise."""
    stretch = 1 / (2 * accuracy - 1)

    def success(given):
        return stretch * (given.double().mean().item() - (1 - accuracy))

    def error(given):
        q = (int(given.sum()) + 1) / (len(given) + 2)
        return stretch * sqrt(q * (1 - q) / len(given))

    ### BEGIN SOLUTION stub: noise = error(labels)
    noise = sqrt(error(best_labels) ** 2 + error(labels) ** 2)
    ### END SOLUTION
    return success(best_labels) - success(labels) - z * noise


# %%
# hint("evidence.mended_excess")
check.mended_excess(mended_excess)

# %% [markdown]
# ## 6. Evidence by hand
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# Numbers, to three digits. No code is needed.
#
# - **a**: None of 16 answers is wrong in a certain way. What is the upper end of Wilson's interval for z = 2?
# - **b**: A judge of accuracy 0.9 labels a model of success 0.3. Which share does it call right?
# - **c**: It calls a share of 0.58 of another model's answers right. What is that model's success?
# - **d**: A judge of accuracy 0.75 takes how many times as many labels as one who is never wrong, for the same standard
#   error of the success? (The noise of its labels is as large as the other's.)
# - **e**: A candidate gains 5 prompts and loses none. McNemar's exact p-value?
# - **f**: Two of five answers are right. pass@2?
# - **g**: On 200 prompts a candidate gains 14 and loses 4. How many prompts that both models solve must be *added* so that
#   the difference becomes ten times smaller?

# %%
# answer: evidence.evidence_by_hand
### BEGIN SOLUTION stub: evidence_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
answers = (4 / 20, 0.34, 0.6, 4, 2 / 32, 0.7, 1800)
evidence_by_hand = dict(zip("abcdefg", answers, strict=True))
### END SOLUTION

# %%
# hint("evidence.evidence_by_hand")
check.evidence_by_hand(evidence_by_hand)

# %% [markdown]
# ## Play with your own gate
#
# Once exercise 5 passes, let it watch a model that does not change: 65 of 100 answers are right, and a judge of accuracy
# 0.85 gives 64 labels. How often does your rule call the second look a loss, although there is none?

# %%
called = 0.65 * 0.85 + 0.35 * 0.15
draw = torch.Generator().manual_seed(2)
pairs = torch.rand(500, 2, 64, generator=draw) < called
alarms = sum(mended_excess(*pair, accuracy=0.85, z=2.0) > 0 for pair in pairs)
assert 0 < alarms < 30, "too many or none at all: does exercise 5 pass?"
print("500 pairs of looks at a model that does not change: an alarm now and then")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="evidence")

# %% [markdown]
# The solutions are in `solutions/17_evidence.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("evidence.evidence_by_hand")
