# %% [markdown]
# # 07 Exercises: rollouts
#
# You write what [lesson 07](../notebooks/07_rollout.ipynb) is about: what belongs to which episode, and
# what may stand for a future that nobody saw. Each answer is checked as soon as you run the cell below it:
# you see the smallest input on which it differs, and the name of the mistake if it is one of the usual
# ones. Nearly all of them raise no error in a program. That is why they have names.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. where did the step lead? | 2 of 5 | 5 of 5 | 10 |
# | 2. returns with a guess for the rest | 3 of 5 | 5 of 5 | 12 |
# | 3. rows that are no steps | 2 of 5 | 4 of 5 | 8 |
# | 4. eight numbers by hand | 3 of 5 | 5 of 5 | 15 |
# | 5. a bug that hides | 2 of 5 | 5 of 5 | 6 |
# | 6. what an episode has earned (for experts) | 3 of 5 | 3 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 07`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.envs import GymEnvs, Lighthouse
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# All tables have the shape `[T, N]`: T steps of N environments, time first. Each column is a world of its
# own, in which one episode follows the other. What stands at index t describes step t. `terminated` says
# that the step ended the task, `truncated` that we stopped watching after it. A step may be both: then the
# task is over. Leave all inputs as they are.
#
# ## 1. Where did the step lead?
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# A critic has looked at the rollout. It would be a waste to ask it twice about the same state: as long as
# an episode goes on, the state that a step reached is the state of the next row. Where that is not so, it
# was asked once more. Put the table together: V of the state that each step reached.
#
# - `values` is V of the states in which the actions were chosen.
# - `final_values` is V of the state that the step reached, before any reset, wherever the next row is
#   another episode or does not exist: in rows that ended, and in the last row. Everywhere else it is 0,
#   and means nothing.
# - `terminated` and `truncated` are boolean.
#
# Behind a terminated row, too, the table says what the critic thinks of the final state. Whether that
# counts is decided later, by the mask in the TD error.

# %%
# answer: rollout.next_values
import torch


def next_values(values, final_values, terminated, truncated):
    """Give V of the state that each step reached."""
    ### BEGIN SOLUTION: the next row, but for ends and the last row
    elsewhere = terminated | truncated
    elsewhere[-1] = True
    return torch.where(elsewhere, final_values, values.roll(-1, dims=0))
    ### END SOLUTION


# %%
# hint("rollout.next_values")
check.next_values(next_values)

# %% [markdown]
# ## 2. Returns with a guess for the rest
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# In lesson 01 you summed rewards up to the end of an episode, and all episodes were complete. A rollout
# cuts them. Sum the discounted rewards of each row as far as they were seen, and let the critic stand for
# the rest.
#
# - `rewards`, `terminated` and `truncated` are what happened.
# - `next_values` is the table of exercise 1. What stands behind a terminated row must not count.
# - `gamma` is γ, between 0 and 1.
# - Behind a truncated row the critic speaks, and so it does behind the last row, unless that terminated.
#   Everywhere else the next row goes on with the same episode, and what it sums up counts.
#
# One environment, rewards 1, 4, 2, 6, γ = 0.5. Row 1 is truncated, and its `next_values` is 20; that of the
# last row is 7. What comes out for row 0? It is not what comes out if row 1 is terminated.

# %%
# answer: rollout.bootstrapped_returns
import torch


def bootstrapped_returns(rewards, terminated, truncated, next_values, *, gamma):
    """Sum the rewards that were seen, and let V stand for the rest."""
    ### BEGIN SOLUTION: backwards; for each row, what stands for its future
    returns = torch.zeros_like(rewards)
    following = next_values[-1]  # behind the last row the critic speaks
    for t in reversed(range(len(rewards))):
        future = torch.where(truncated[t], next_values[t], following)
        following = rewards[t] + gamma * future.masked_fill(terminated[t], 0.0)
        returns[t] = following
    return returns
    ### END SOLUTION


# %%
# hint("rollout.bootstrapped_returns")
check.bootstrapped_returns(bootstrapped_returns)

# %% [markdown]
# ## 3. Rows that are no steps
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# The environments are in NEXT_STEP, gymnasium's usual mode. The call that ends an episode gives back its
# final observation. The next call resets, ignores its action and pays 0; it still fills a row. Say which
# rows are steps.
#
# - `terminated` and `truncated` are boolean, `[T, N]`. The row of a reset never ends anything.
# - `ended_before` is boolean, `[N]`: whether the last row of the rollout *before* this one ended an
#   episode. You have it from there.
# - The result is boolean, `[T, N]`: True for a row that is a step.

# %%
# answer: rollout.valid_rows
import torch


def valid_rows(terminated, truncated, ended_before):
    """Say which rows are steps, and not the reset of a NEXT_STEP environment."""
    ### BEGIN SOLUTION: a row is a step unless the row before it was an end
    ended = terminated | truncated
    return ~torch.cat([ended_before.unsqueeze(0), ended[:-1]])
    ### END SOLUTION


# %%
# hint("rollout.valid_rows")
check.valid_rows(valid_rows)

# %% [markdown]
# ## 4. Eight numbers by hand
#
# *Difficulty 3 of 5, importance 5 of 5, 15 minutes.*
#
# Nothing to program. Numbers may be off by 0.001.
#
# **Five advantages.** One environment, γ = 0.5, λ = 0.5. You did this with four rows in the lesson; here both
# kinds of ends occur.
#
# | row | V before | reward | V of the state that was reached | the step was | advantage |
# | --- | ---: | ---: | ---: | --- | :---: |
# | 0 | 4 | 3 | 6 | | a |
# | 1 | 6 | 3 | 10 | truncated | b |
# | 2 | 2 | 2 | 8 | | c |
# | 3 | 8 | 5 | | terminated | d |
# | 4 | 2 | 1 | 6 | | e |
#
# **f: rows.** A NEXT_STEP environment whose time limit cuts every episode after four steps fills a rollout
# of 22 rows, beginning with a step. How many of the rows are valid?
#
# **Two values of a lamp.** It burns for ever and pays 1 each night, tonight included. Whoever watches does so
# for five nights, then the rest is truncated. γ = 0.8. The critic sees the lamp and no clock, so it has one
# number for it.
#
# - **g**: What is the lamp worth?
# - **h**: With the flags merged and λ = 0, where does the critic come to rest? The five nights of each
#   episode count alike.
#
# Before you compute: which of f, g and h would change if the time limits were twice as long?

# %%
# answer: rollout.ends_by_hand
### BEGIN SOLUTION stub: ends_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
ends_by_hand = {"a": 2.5, "b": 2, "c": 3.25, "d": -3, "e": 2, "f": 18, "g": 5, "h": 1 / 0.36}
### END SOLUTION

# %%
# hint("rollout.ends_by_hand")
check.ends_by_hand(ends_by_hand)

# %% [markdown]
# ## 5. A bug that hides
#
# *Difficulty 2 of 5, importance 5 of 5, 6 minutes.*
#
# Here is GAE, as somebody wrote it who knows that a time limit is no death. The critic that learns from it
# finds the right value of the burning lamp. With a critic that is right, all its advantages are right on
# average. It passes the tests that come to mind first. One line is wrong. Mend it.
#
# The lesson has three questions that find such a bug without reading the code. Which of them finds this one?

# %%
# answer: rollout.mended_ends
import torch


def mended_ends(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Give the advantages of a rollout in which episodes end; one line is wrong."""
    advantages = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        future = next_values[t].masked_fill(terminated[t], 0.0)
        surprise = rewards[t] + gamma * future - values[t]
        ### BEGIN SOLUTION stub: carried = following.masked_fill(terminated[t], 0.0)
        carried = following.masked_fill(terminated[t] | truncated[t], 0.0)
        ### END SOLUTION
        following = surprise + gamma * gae_lambda * carried
        advantages[t] = following
    return advantages


# %%
# hint("rollout.mended_ends")
check.mended_ends(mended_ends)

# %% [markdown]
# ## 6. What an episode has earned (for experts)
#
# *Difficulty 3 of 5, importance 3 of 5, 15 minutes.*
#
# A learning curve shows the return per episode: rewards as they were paid, without a discount. An episode
# may begin in one rollout and end in the next. So each rollout starts with what the episodes under way have
# earned already, and hands the same on.
#
# - `rewards`, `terminated`, `truncated` and `valid` have shape `[T, N]`. A row that is not valid is no
#   step: whatever its reward says, it does not count.
# - `carried` has shape `[N]`: what the episode under way has earned before the first row; 0 if none was.
# - Give back two tensors: first a table `[T, N]` with what the episode has earned up to and including each
#   row, then what the next rollout needs as its `carried`, `[N]`.
#
# In the row of an end the table shows the whole episode. In the row of a reset it shows 0: the new
# episode has made no step.

# %%
# answer: rollout.episode_returns
import torch


def episode_returns(rewards, terminated, truncated, valid, carried):
    """Sum up what the running episodes have earned, and hand on what the next rollout needs."""
    ### BEGIN SOLUTION: add, write down, reset
    earned = rewards * valid
    running = ~(terminated | truncated)
    table = torch.zeros_like(rewards)
    for t in range(len(rewards)):
        table[t] = carried + earned[t]
        carried = table[t] * running[t]
    return table, carried
    ### END SOLUTION


# %%
# hint("rollout.episode_returns")
check.episode_returns(episode_returns)

# %% [markdown]
# ## Train with your own ends
#
# Once exercise 5 passes, let a keeper learn with your function. Eight lighthouses, a limit of six steps,
# an offer of 7 for whoever does not climb. Climbing is worth 8.1, but only if what the limit hides is
# counted. The cell runs for a few seconds and gives the probability that the keeper climbs.

# %%
limited = [lambda: TimeLimit(Lighthouse(offer=7), 6)] * 8
envs = GymEnvs(SyncVectorEnv(limited, autoreset_mode=AutoresetMode.SAME_STEP))
config = PPOConfig(
    num_envs=8, num_steps=32, total_steps=16_384, num_epochs=4, num_minibatches=2,
    learning_rate=1e-2, gamma=0.9, gae_lambda=0.8, hidden_sizes=(16,),
)  # fmt: skip

# %% tags=["nbval-ignore-output"]
history = train(config, envs=envs, parts=Parts(advantages=mended_ends))
log_prob = history.networks.policy.evaluate(torch.zeros(1, 1), torch.tensor([0]))[0]

# %%
assert log_prob.exp() > 0.9, "the keeper takes the offer: does exercise 5 pass?"
print("your keeper climbs")

# %% [markdown]
# (The bug of exercise 5 lets it climb, too: it hides. Put the flags together, and it takes the offer.)
#
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="rollout")

# %% [markdown]
# The solutions are in `solutions/07_rollout.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("rollout.episode_returns")
