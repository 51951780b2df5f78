# %% [markdown]
# # 12 Exercises: debugging
#
# You work out by hand what a probe must teach, write an alarm that does not cry at every peak and a
# metric that no library has, read eight runs, and mend a loop. The lesson is
# [lesson 12](../notebooks/12_debugging.ipynb). Each answer is checked as soon as you run the cell below it:
# you see the smallest input on which it differs, and the name of the mistake if it is one of the usual
# ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. what a probe must teach | 3 of 5 | 5 of 5 | 15 |
# | 2. when to raise the alarm | 2 of 5 | 4 of 5 | 12 |
# | 3. did it do as it was told? | 2 of 5 | 4 of 5 | 12 |
# | 4. eight runs | 4 of 5 | 5 of 5 | 20 |
# | 5. an iteration with a bug | 4 of 5 | 5 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 12`, typed in a terminal in the folder of the course, checks
# all five. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments

setup()

# %% [markdown]
# ## 1. What a probe must teach
#
# *Difficulty 3 of 5, importance 5 of 5, 15 minutes.*
#
# Nothing to program; paper helps. A probe is worth as much as the numbers that you hold it to, so here are
# some by hand. γ = 0.5 everywhere, and V is the true value for the policy at hand.
#
# **A corridor.** An episode has three steps. At observation 0 a step pays 0, at observation 1 it pays 2, at
# observation 2 it pays 1, and then the task is over. Actions do not matter.
#
# - **a**: V at observation 1.
# - **b**: V at observation 0.
#
# **A room.** There is one observation, each step pays 1, and the world goes on for ever. You watch for 4
# steps, then a time limit cuts the episode and the next one begins.
#
# - **c**: V in the room.
# - **d**: What a critic learns there with λ = 0, if the program takes the time limit for the end of the task.
#   (The target of a step is its reward and γ times what the critic itself says of the next observation; of
#   every four steps one has no next observation.)
#
# **The corridor again, with a bug.**
#
# - **e**: V at observation 0, if γ has been forgotten.
# - **f**: What the critic learns at observation 0, if each row of the rollout holds the reward of the row
#   before it. (Episodes follow one another without a gap. All else is right.)
#
# **Two actions.** An episode is one step; the right action pays 1, the wrong one −1.
#
# - **g**: V of a policy that takes the right action in 80 % of all cases.
#
# **A column against a row.** In the corridor without a bug in its rewards, the value loss compares each value
# with *all* returns of the batch. All three observations are equally frequent.
#
# - **h**: What the critic learns at each of the three observations, if the targets are the true V.
#
# Numbers may be off by 0.002.

# %%
# answer: debugging.probe_values
### BEGIN SOLUTION stub: probe_values = dict.fromkeys("abcdefgh")  # put your eight numbers in
probe_values = {"a": 2.5, "b": 1.25, "c": 2, "d": 1.6, "e": 3, "f": 1.5, "g": 0.6, "h": 1.5833}
### END SOLUTION

# %%
# hint("debugging.probe_values")
check.probe_values(probe_values)

# %% [markdown]
# ## 2. When to raise the alarm
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# Healthy runs differ from each other, and any metric leaves their band now and then. So an alarm waits until
# a run has been outside for several iterations in a row. Write it.
#
# - `metric` has shape `[I]`: one number of each iteration of a run.
# - `healthy` has shape `[S, I]`: the same metric of S healthy runs that differ in their seed.
# - An iteration is *outside* if its number is below those of all healthy runs at that iteration, or above
#   all of them. Equal to one of them is inside.
# - `patience` is a whole number, at least 1: so many iterations in a row must be outside, on whichever side
#   each of them is.
# - What comes back is the index of the iteration, counted from 0, at which the first such stretch *begins*;
#   −1 if there is none.
#
# What happens to the count when one iteration is inside again?


# %%
# answer: debugging.first_alarm
def first_alarm(metric, healthy, *, patience):
    """Give the iteration at which a run leaves the band of the healthy ones for good."""
    ### BEGIN SOLUTION: outside, then counted in a row
    outside = (metric < healthy.amin(0)) | (metric > healthy.amax(0))
    length = 0
    for iteration, out in enumerate(outside.tolist()):
        length = length + 1 if out else 0
        if length == patience:
            return iteration - patience + 1
    return -1
    ### END SOLUTION


# %%
# hint("debugging.first_alarm")
check.first_alarm(first_alarm)

# %% [markdown]
# ## 3. Did it do as it was told?
#
# *Difficulty 2 of 5, importance 4 of 5, 12 minutes.*
#
# An advantage asks for something: make this action likelier, and that one rarer. No metric of a usual library
# says whether the policy did so. Write one: the correlation between what was asked for, Â, and what was
# done, log π − log π_old.
#
# - `log_probs`, `log_probs_old` and `advantages` have shape `[B]`: log π of the actions after the squeeze and
#   before it, and Â.
# - `valid` has shape `[B]`, True and False. A row that is not valid is no step: it counts nowhere.
# - What comes back is a tensor without dimensions, from −1 (it did the opposite) to 1.
# - Where nothing varies, in the one column or the other, give 0: who stands still agrees with nobody.


# %%
# answer: debugging.update_agreement
def update_agreement(log_probs, log_probs_old, advantages, valid):
    """Give the correlation between what was asked for and what was done."""
    ### BEGIN SOLUTION: two centred columns
    moves, wishes = (log_probs - log_probs_old)[valid], advantages[valid]
    moves, wishes = moves - moves.mean(), wishes - wishes.mean()
    size = moves.norm() * wishes.norm()
    return (moves * wishes).sum() / size if size > 1e-9 else size * 0
    ### END SOLUTION


# %%
# hint("debugging.update_agreement")
check.update_agreement(update_agreement)

# %% [markdown]
# ## 4. Eight runs
#
# *Difficulty 4 of 5, importance 5 of 5, 20 minutes.*
#
# CartPole, 48 iterations; each row is one iteration of a run. `outside` and `silent` are
# `fraction_outside` and `fraction_zero_gradient`. The settings are those of the lesson, but for an entropy bonus
# of 0.01 where the lesson has 0.05: the numbers are not those that you saw there. An untrained critic says about
# 0 everywhere. Say of each run what is wrong with it.
#
# | run | iteration | return | kl_k3 | outside | silent | entropy | value loss | ev_lambda | gradient_norm |
# | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
# | **A** | 5 | 38 | 0.0052 | 0.04 | 0.03 | 0.59 | 0.47 | 0.24 | 0.20 |
# | | 20 | 212 | 0.0066 | 0.09 | 0.04 | 0.54 | 0.48 | 0.72 | 0.32 |
# | | 40 | 271 | 0.0005 | 0.00 | 0.00 | 0.51 | 0.50 | 0.79 | 0.25 |
# | **B** | 5 | 23 | 0.0000 | 0.00 | 0.00 | 0.69 | 10.9 | 0.54 | 3.1 |
# | | 20 | 25 | 0.0000 | 0.00 | 0.00 | 0.69 | 12.8 | 0.58 | 3.1 |
# | | 40 | 22 | 0.0000 | 0.00 | 0.00 | 0.69 | 10.6 | 0.65 | 2.1 |
# | **C** | 5 | 35 | 0.0048 | 0.06 | 0.04 | 0.60 | 17.0 | 0.01 | 2.5 |
# | | 20 | 197 | 0.0039 | 0.04 | 0.02 | 0.57 | 54.5 | 0.00 | 1.6 |
# | | 40 | 376 | 0.0028 | 0.00 | 0.00 | 0.58 | 30.0 | 0.00 | 1.7 |
# | **D** | 5 | 40 | 0.0043 | 0.05 | 0.03 | 0.58 | 19.9 | 0.16 | 3.9 |
# | | 20 | 132 | 0.0079 | 0.10 | 0.05 | 0.48 | 8.1 | 0.55 | 11.9 |
# | | 40 | 499 | 0.0041 | 0.04 | 0.02 | 0.46 | 0.007 | −0.01 | 0.27 |
# | **E** | 5 | 37 | 0.0016 | 0.00 | 0.00 | 0.62 | 14.3 | 0.33 | 5.2 |
# | | 20 | 117 | 0.0069 | 0.08 | 0.04 | 0.60 | 38.5 | 0.63 | 13.9 |
# | | 40 | 140 | 0.0009 | 0.00 | 0.00 | 0.61 | 44.6 | 0.57 | 13.2 |
# | **F** | 5 | 23 | 0.0000 | 0.00 | 0.00 | 0.69 | 28.0 | 0.00 | 6.4 |
# | | 20 | 22 | 0.0000 | 0.00 | 0.00 | 0.69 | 28.6 | 0.00 | 6.5 |
# | | 40 | 21 | 0.0000 | 0.00 | 0.00 | 0.69 | 27.9 | 0.00 | 6.4 |
# | **G** | 5 | 11 | 0.0096 | 0.14 | 0.03 | 0.49 | 1.1 | 0.78 | 0.61 |
# | | 20 | 9 | 0.0014 | 0.02 | 0.01 | 0.06 | 0.04 | 0.99 | 0.23 |
# | | 40 | 9 | 0.0023 | 0.01 | 0.01 | 0.04 | 0.03 | 0.99 | 0.16 |
# | **H** | 5 | 37 | 0.0067 | 0.07 | 0.04 | 0.59 | 48.6 | 0.00 | 0.15 |
# | | 20 | 157 | 0.0057 | 0.09 | 0.05 | 0.47 | 51.9 | 0.02 | 0.16 |
# | | 40 | 236 | 0.0021 | 0.01 | 0.00 | 0.51 | 50.3 | −0.02 | 0.14 |
#
# The causes; each run has one, and two causes have no run:
#
# 1. nothing is wrong
# 2. the learning rate is thirty times too large
# 3. the old log-probabilities hang on the graph, so the policy gets no gradient
# 4. old and new are swapped in the ratio
# 5. the maximum is taken instead of the minimum
# 6. the softmax is applied twice
# 7. a column of values is compared with a row of returns
# 8. the critic is not trained
# 9. the returns are made of normalised advantages
# 10. all gradients are shortened to next to nothing, and logged as they were before
#
# Put in the number of the cause.

# %%
# answer: debugging.diagnoses
### BEGIN SOLUTION stub: diagnoses = dict.fromkeys("abcdefgh")  # put in the numbers of eight causes
diagnoses = {"a": 9, "b": 3, "c": 7, "d": 1, "e": 6, "f": 10, "g": 4, "h": 8}
### END SOLUTION

# %%
# hint("debugging.diagnoses")
check.diagnoses(diagnoses)

# %% [markdown]
# ## 5. An iteration with a bug
#
# *Difficulty 4 of 5, importance 5 of 5, 15 minutes.*
#
# One whole iteration of PPO, for one environment, with tables in place of networks. It raises no error. With
# one epoch all its numbers are right. With several, somebody has noticed in the log that the value loss is
# *the same in each epoch*, whatever the critic does, and that the critic ends far from the returns. One line
# is wrong, the rest is right. Mend it.
#
# - `logits` `[S, A]` and `critic` `[S]` are the tables: a row for each state.
# - `states`, `next_states` and `actions` `[T]` are integers; `rewards`, `terminated` and `truncated` are `[T]`,
#   too. `next_states` is what a step reached, before any reset.
# - What comes back are both tables after the squeeze.
#
# Go by the order of suspicion: the lesson says where to look first.

# %%
# answer: debugging.mended_iteration
import torch


def mended_iteration(
    logits, critic, states, next_states, actions, rewards, terminated, truncated,
    *, gamma, gae_lambda, clip_epsilon, num_epochs, learning_rate,
):  # fmt: skip
    """Score and squeeze one rollout with tables; one line is wrong."""
    logits, critic = logits.detach().clone(), critic.detach().clone()
    log_probs_old = logits.log_softmax(-1)[states, actions]
    values = critic[states]
    errors = rewards + gamma * critic[next_states] * ~terminated - values
    advantages, later = torch.zeros_like(errors), 0.0
    for t in reversed(range(len(errors))):
        later = errors[t] + gamma * gae_lambda * ~(terminated | truncated)[t] * later
        advantages[t] = later
    spread = advantages.std(correction=0) + 1e-8
    normalized = (advantages - advantages.mean()) / spread
    for _ in range(num_epochs):
        logits, critic = logits.requires_grad_(), critic.requires_grad_()
        ratios = (logits.log_softmax(-1)[states, actions] - log_probs_old).exp()
        clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
        policy_loss = -torch.minimum(ratios * normalized, clipped * normalized).mean()
        ### BEGIN SOLUTION stub: returns = advantages + critic.detach()[states]
        returns = advantages + values
        ### END SOLUTION
        value_loss = 0.5 * (critic[states] - returns).square().mean()
        slopes = torch.autograd.grad(policy_loss + value_loss, (logits, critic))
        logits = (logits - learning_rate * slopes[0]).detach()
        critic = (critic - learning_rate * slopes[1]).detach()
    return logits.detach(), critic.detach()


# %%
# hint("debugging.mended_iteration")
check.mended_iteration(mended_iteration)

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="debugging")

# %% [markdown]
# The solutions are in `solutions/12_debugging.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("debugging.mended_iteration")
