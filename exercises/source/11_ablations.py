# %% [markdown]
# # 11 Exercises: what a few runs may say
#
# You write what turns scores of a few runs into a conclusion: a mean that a wild run cannot move, an interval,
# the probability that one setting beats another, a verdict that may be "inconclusive". The lesson is
# [lesson 11](../notebooks/11_ablations.ipynb). Nothing here trains, so everything is fast. Each answer is
# checked as soon as you run the cell below it: you see the smallest input on which it differs, and the name
# of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the mean of the middle half | 1 of 5 | 4 of 5 | 6 |
# | 2. an interval from redraws | 3 of 5 | 5 of 5 | 12 |
# | 3. how often a run is better | 2 of 5 | 4 of 5 | 8 |
# | 4. verdicts of a table | 2 of 5 | 5 of 5 | 8 |
# | 5. a difference with a bug | 4 of 5 | 4 of 5 | 12 |
# | 6. a study by hand | 3 of 5 | 4 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 11`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, recorded, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. The mean of the middle half
#
# *Difficulty 1 of 5, importance 4 of 5, 6 minutes.*
#
# One setting was run with n seeds. Give the **interquartile mean**: leave out the n // 4 lowest scores and the
# n // 4 highest, and average the rest. `n // 4` is n/4 rounded down.
#
# - `scores` has shape `[n]`, in the order of the seeds.
# - The result is one number, a tensor of shape `()`.
#
# Eight runs: seven between 460 and 500, one at 20. What happens to the mean if the 20 becomes 120? And to the
# interquartile mean?

# %%
# answer: ablations.interquartile_mean
import torch


def interquartile_mean(scores):
    """Average the middle half of the scores."""
    ### BEGIN SOLUTION: sort, count off, average
    left_out = len(scores) // 4
    return scores.sort().values[left_out : len(scores) - left_out].mean()
    ### END SOLUTION


# %%
# hint("ablations.interquartile_mean")
check.interquartile_mean(interquartile_mean)

# %% [markdown]
# ## 2. An interval from redraws
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# A study has n runs. Had it been run again, other runs would have come out. The **bootstrap** lets the runs
# that you have stand for those that you might have had: it draws n of them, with replacement, again and again.
# Each **redraw** has a mean, and the middle of all these means is the interval.
#
# - `scores` has shape `[n]`.
# - `draws` has shape `[resamples, n]`, whole numbers: row i says which runs redraw i holds. Places count from 0.
# - `confidence` is the share of the means that shall lie inside, such as 0.95. What lies outside is cut off in
#   equal parts at both ends.
# - Give back two numbers, `low` and `high`. Use `torch.quantile` as it is: between two means it goes in a
#   straight line.
#
# Two runs, 0 and 8. What are the three means that a redraw can have, and how often does each come out?

# %%
# answer: ablations.redrawn_interval
import torch


def redrawn_interval(scores, draws, *, confidence):
    """Give the interval of the mean."""
    ### BEGIN SOLUTION: one mean for each redraw, two quantiles
    means = scores[draws].mean(dim=1)
    tail = (1 - confidence) / 2
    return torch.quantile(means, tail), torch.quantile(means, 1 - tail)
    ### END SOLUTION


# %%
# hint("ablations.redrawn_interval")
check.redrawn_interval(redrawn_interval)

# %% [markdown]
# ## 3. How often a run is better
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# You will run one of two settings, once. With which probability is a run of the first better than one of the
# second? Let all pairs of runs meet.
#
# - `first` has shape `[n]`, `second` has shape `[m]`.
# - A pair that ties counts half.
# - The result is one number between 0 and 1, a tensor of shape `()`.
#
# What must come out if a setting is compared with itself?

# %%
# answer: ablations.probability_of_improvement
import torch


def probability_of_improvement(first, second):
    """Give the probability that a run of the first beats one of the second."""
    ### BEGIN SOLUTION: all pairs at once
    gaps = first.unsqueeze(1) - second
    return ((gaps > 0).double() + 0.5 * (gaps == 0)).mean()
    ### END SOLUTION


# %%
# hint("ablations.probability_of_improvement")
check.probability_of_improvement(probability_of_improvement)

# %% [markdown]
# ## 4. Verdicts of a table
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# A study has one interval for each setting. Compare each with that of the **base**, and say +1 if all of the
# setting's interval lies above all of the base's, −1 if all of it lies below, and 0 if the two overlap or
# touch: inconclusive.
#
# - `lows` and `highs` have shape `[settings]`.
# - `base` is the place of the base, counted from 0.
# - The result has shape `[settings]`, too.
#
# What does the base get?

# %%
# answer: ablations.verdicts
import torch


def verdicts(lows, highs, *, base):
    """Say of each setting whether it lies above the base, below it, or neither."""
    ### BEGIN SOLUTION: above minus below
    above, below = lows > highs[base], highs < lows[base]
    return above.double() - below.double()
    ### END SOLUTION


# %%
# hint("ablations.verdicts")
check.verdicts(verdicts)

# %% [markdown]
# ## 5. A difference with a bug
#
# *Difficulty 4 of 5, importance 4 of 5, 12 minutes.*
#
# Two intervals that overlap say little, and yet the difference may be clear: both ends of a pair seldom come
# together. So redraw both settings, take the difference of the means, and ask where *it* falls.
#
# - `first` and `second` have shapes `[n]` and `[m]`.
# - `first_draws` and `second_draws` have shapes `[resamples, n]` and `[resamples, m]`.
# - Give back `low` and `high` of first minus second.
#
# One line is wrong. The function then says that a setting differs from itself by exactly 0.

# %%
# answer: ablations.mended_difference
import torch


def mended_difference(first, second, first_draws, second_draws, *, confidence):
    """Give the interval of the difference of two means; one line is wrong."""
    first_means = first[first_draws].mean(dim=1)
    ### BEGIN SOLUTION stub: second_means = second[first_draws % len(second)].mean(dim=1)
    second_means = second[second_draws].mean(dim=1)
    ### END SOLUTION
    gaps = first_means - second_means
    tail = (1 - confidence) / 2
    return torch.quantile(gaps, tail), torch.quantile(gaps, 1 - tail)


# %%
# hint("ablations.mended_difference")
check.mended_difference(mended_difference)

# %% [markdown]
# ## 6. A study by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program. Numbers may be off by 0.002.
#
# **Middles.** Eight runs of CartPole ended at 480, 20, 490, 500, 470, 500, 460, 496.
#
# - **a**: What is their interquartile mean?
# - **b**: What is their mean?
#
# **Pairs.** The first setting scored 300, 200 and 400. The second scored 200 and 250.
#
# - **c**: With which probability does a run of the first beat one of the second?
#
# **Many comparisons.** You compare a base with 20 settings that are in truth all as good as it. Each
# comparison calls them apart with probability 0.05, independently of the others.
#
# - **d**: With which probability is at least one of the 20 called apart?
# - **h**: How many of them are called apart, on average?
#
# **Width.** With 16 seeds an interval is 80 wide.
#
# - **e**: About how many seeds in all does it take until it is 40 wide?
#
# **Redraws.** Three runs are redrawn: three draws, with replacement.
#
# - **f**: With which probability does the redraw hold the same run three times?
#
# **One seed.** One setting is better in truth: one of its runs beats a run of the other with probability 0.7.
# Ties do not happen. You run each three times, compare first with first, second with second, third with third,
# and believe the majority.
#
# - **g**: With which probability do you believe the wrong one?

# %%
# answer: ablations.study_by_hand
### BEGIN SOLUTION stub: study_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
answers = (484, 427, 4.5 / 6, 1 - 0.95**20, 64, 1 / 9, 3 * 0.3**2 * 0.7 + 0.3**3, 1)
study_by_hand = dict(zip("abcdefgh", answers, strict=True))
### END SOLUTION

# %%
# hint("ablations.study_by_hand")
check.study_by_hand(study_by_hand)

# %% [markdown]
# ## Play with your own statistics
#
# Six settings were run on CartPole with 64 seeds each, and recorded. Let your functions judge them: the middle half
# of each, and how often a run of it beats one with clip 0.2.

# %% tags=["nbval-ignore-output"]
scores = {
    name: torch.tensor(runs, dtype=torch.float64)
    for name, runs in recorded("seed_count")["scores"].items()
}
for name, runs in scores.items():
    share = probability_of_improvement(runs, scores["clip 0.2"])
    print(f"{name:<14} {interquartile_mean(runs):6.1f}   beats clip 0.2 with P = {share:.2f}")

# %% [markdown]
# Then an interval for each, and a verdict against the first:

# %% tags=["nbval-ignore-output"]
random = torch.Generator().manual_seed(1)
ends = []
for runs in scores.values():
    places = torch.randint(len(runs), (2000, len(runs)), generator=random)
    ends.append(redrawn_interval(runs, places, confidence=0.95))
lows, highs = (
    torch.stack([torch.as_tensor(end) for end in side]) for side in zip(*ends, strict=True)
)
print(dict(zip(scores, verdicts(lows, highs, base=0).tolist(), strict=True)))

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="ablations")

# %% [markdown]
# The solutions are in `solutions/11_ablations.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("ablations.study_by_hand")
