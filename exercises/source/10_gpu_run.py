# %% [markdown]
# # 10 Exercises: the whole thing, fast
#
# You write what makes a run fast and keeps it right: a step that serves all copies at once, the arithmetic
# of one environment step, a gradient and statistics for several processes, a recurrence in a few passes. The
# lesson is [lesson 10](../notebooks/10_gpu_run.ipynb). None of it needs a GPU: what runs there is what you
# write here. Each answer is checked as soon as you run the cell below it: you see the smallest input on which
# it differs, and the name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. a step that starts anew | 2 of 5 | 5 of 5 | 12 |
# | 2. the arithmetic of a step | 3 of 5 | 4 of 5 | 12 |
# | 3. statistics of all, from those of each | 3 of 5 | 3 of 5 | 12 |
# | 4. one gradient for all | 2 of 5 | 5 of 5 | 8 |
# | 5. a scan with a bug | 4 of 5 | 3 of 5 | 12 |
# | 6. a ledger by hand | 3 of 5 | 4 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 10`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.envs.classic import CartPole

setup()

# %% [markdown]
# ## 1. A step that starts anew
#
# *Difficulty 2 of 5, importance 5 of 5, 12 minutes.*
#
# N copies of a task have made a step. Some of them are at the end of an episode. Finish the step for all
# copies at once, without asking any of them: start anew where an episode ended, and keep what it had reached.
#
# - `reached` has shape `[N, D]`: what each copy observed after the step.
# - `fresh` has the same shape: what it would observe at the start of a new episode.
# - `terminated` is boolean, `[N]`: the task of this copy ended.
# - `elapsed` has shape `[N]`, whole numbers: steps that each episode had made *before* this one.
# - `time_limit` is the number of steps after which an episode is truncated. A step may be both terminated
#   and truncated.
# - Give back four tensors: `observations`, on which the next actions are chosen; `next_observations`, what
#   the step reached, before any reset; `truncated`, `[N]`; and `elapsed` as the next step needs it.
#
# Two copies, a limit of 10 steps. The first has made 9 steps before this one, the second 4 and now it
# terminated. What are the two clocks afterwards?

# %%
# answer: gpu_run.autoreset
import torch


def autoreset(reached, fresh, terminated, elapsed, *, time_limit):
    """Start anew where an episode ended, and keep what it had reached."""
    ### BEGIN SOLUTION: count, decide, choose row by row
    elapsed = elapsed + 1
    truncated = elapsed >= time_limit
    ended = terminated | truncated
    observations = torch.where(ended.unsqueeze(-1), fresh, reached)
    return observations, reached, truncated, elapsed.masked_fill(ended, 0)
    ### END SOLUTION


# %%
# hint("gpu_run.autoreset")
check.autoreset(autoreset)

# %% [markdown]
# ## 2. The arithmetic of a step
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# How many floating-point operations does PPO spend on one environment step? Count those of the matrix
# products. All else is small beside them, and biases are left out.
#
# - `policy_sizes` and `critic_sizes` are lists: the widths of a network's layers from the inputs to the
#   outputs. `[4, 64, 64, 2]` has three layers.
# - `num_epochs` is K.
# - A multiplication is one operation, and so is an addition. A layer from m to n numbers makes m·n of each.
# - Backwards a layer makes two products, each as dear as the one forwards: one for the slope of its weights,
#   one for the slope of its inputs. The first layer makes only the first, since nobody asks for the slope of an
#   observation.
# - Collecting asks the policy once. Scoring asks the critic twice, about the state and about the one that the
#   step reached. In the squeeze, both go forwards and backwards, once in each epoch.
#
# Guess before you count: for two networks of 256 by 256 and K = 10, is it nearer to a hundred thousand, ten
# million, or a thousand million?

# %%
# answer: gpu_run.flops_per_env_step
from itertools import pairwise


def flops_per_env_step(policy_sizes, critic_sizes, *, num_epochs):
    """Give the floating-point operations of one environment step."""

    ### BEGIN SOLUTION: one network forwards, one backwards, then who is asked when
    def forwards(sizes):
        return sum(2 * m * n for m, n in pairwise(sizes))

    def backwards(sizes):
        return 2 * forwards(sizes) - 2 * sizes[0] * sizes[1]

    once = forwards(policy_sizes) + 2 * forwards(critic_sizes)
    both = (policy_sizes, critic_sizes)
    return once + num_epochs * sum(forwards(sizes) + backwards(sizes) for sizes in both)
    ### END SOLUTION


# %%
# hint("gpu_run.flops_per_env_step")
check.flops_per_env_step(flops_per_env_step)

# %% [markdown]
# ## 3. Statistics of all, from those of each
#
# *Difficulty 3 of 5, importance 3 of 5, 12 minutes.*
#
# Several processes train one policy, each with copies of its own. They are the **ranks** of the run. The
# advantages of a minibatch are normalised, and the mean and the deviation must be those of all ranks together.
# Samples are too many to send around. Three numbers of each rank are enough: how many samples it has, their
# mean, and the sum of their squared deviations from that mean.
#
# - `moments` has shape `[ranks, 3]`: count, mean, sum of squared deviations of each rank. A rank may have no
#   sample; then all three are 0.
# - The result has shape `[3]`: the same three numbers of all samples together.
#
# Two ranks with four samples each. In the first all are 1, in the second all are 3. Neither has any spread.
# And together?

# %%
# answer: gpu_run.combine_moments
import torch


def combine_moments(moments):
    """Give count, mean and sum of squared deviations of all samples together."""
    ### BEGIN SOLUTION: what lies within the ranks, and what lies between them
    counts, means, within = moments.unbind(-1)
    count = counts.sum()
    mean = (counts * means).sum() / count
    return torch.stack([count, mean, (within + counts * (means - mean) ** 2).sum()])
    ### END SOLUTION


# %%
# hint("gpu_run.combine_moments")
check.combine_moments(combine_moments)

# %% [markdown]
# ## 4. One gradient for all
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Each rank has computed the gradient of its own minibatch, and laid it out flat as one row. All ranks must
# now take the same step, or their policies drift apart. Which gradient does the optimiser of each rank get? It
# is to be the one that a single process would apply that held the minibatches of all.
#
# - `gradients` has shape `[ranks, P]`, a row for each rank. All minibatches have the same size.
# - `max_grad_norm` is the longest gradient that is applied as it is; a longer one is shortened to it.
# - The result has shape `[P]`.
#
# Two gradients are long and nearly cancel. Is anything to be shortened?

# %%
# answer: gpu_run.averaged_gradient
import torch


def averaged_gradient(gradients, *, max_grad_norm):
    """Give the gradient that every rank applies."""
    ### BEGIN SOLUTION: average, then shorten
    mean = gradients.mean(dim=0)
    return mean * (max_grad_norm / mean.norm()).clamp(max=1.0)
    ### END SOLUTION


# %%
# hint("gpu_run.averaged_gradient")
check.averaged_gradient(averaged_gradient)

# %% [markdown]
# ## 5. A scan with a bug
#
# *Difficulty 4 of 5, importance 3 of 5, 12 minutes.*
#
# GAE walks backwards: each row needs the one behind it. On a GPU, 128 rows are 128 small steps, one after the
# other. A **scan** needs 7. In the first pass each row is joined with its neighbour, so `sums[t]` holds two
# rows; in the second with what begins two rows further on, so it holds four, and so on. `weights[t]` says how much of what
# lies behind such a stretch counts.
#
# - `td_errors` has shape `[T, N]`.
# - `decays` has the same shape: γλ, and 0 where an episode ended.
# - The result is `advantages[t] = td_errors[t] + decays[t]·advantages[t+1]`, and nothing behind the last row.
#
# One line is wrong. As long as no episode ends, nobody notices.

# %%
# answer: gpu_run.mended_scan
import torch


def mended_scan(td_errors, decays):
    """Add up what follows, in about log₂ T passes; one line is wrong."""
    sums, weights, distance = td_errors, decays, 1
    while distance < len(td_errors):
        nothing = torch.zeros_like(sums[:distance])
        later_sums = torch.cat([sums[distance:], nothing])
        later_weights = torch.cat([weights[distance:], nothing])
        sums = sums + weights * later_sums
        ### BEGIN SOLUTION stub: weights = weights * weights
        weights = weights * later_weights
        ### END SOLUTION
        distance = 2 * distance
    return sums


# %%
# hint("gpu_run.mended_scan")
check.mended_scan(mended_scan)

# %% [markdown]
# ## 6. A ledger by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program. Numbers may be off by 0.002. A megabyte, MB, is a million bytes.
#
# **Memory.** 256 copies of Breakout make 64 steps each. The rollout keeps all observations and all next
# observations. A board is 10 × 10 × 4 cells.
#
# - **a**: How many MB do these boards take as `bool`, one byte for each cell?
# - **b**: And as `float32`?
#
# **Limits.** A core does 48 thousand million floating-point operations a second at best. One environment step
# of a run costs 240 thousand of them.
#
# - **c**: How many *thousand* steps a second can it do at most?
#
# Another machine has a GPU. An iteration of 4,096 copies and 32 steps asks it for 4,096 launches.
#
# - **d**: Each launch costs 5 µs, one after the other. How many *million* steps a second are possible at most?
# - **e**: A graph holds all of them, and each of its nodes costs 1.25 µs. How many *million* now?
#
# **What a fast environment buys.** An environment alone makes a million steps a second, 1 µs each. Learning
# from a step takes 9 µs, on the same core.
#
# - **f**: How many *thousand* steps a second does the whole make?
# - **g**: Somebody writes an environment that takes no time at all. How many times as fast does the whole get?
#
# **Two GPUs.** An iteration takes 20 ms on one. With a second GPU there are twice as many copies, each GPU has
# as many as the one had, and each of the 16 optimiser steps of an iteration waits 0.25 ms until the gradients
# are averaged.
#
# - **h**: How many times as many steps a second do the two make together?

# %%
# answer: gpu_run.ledger_by_hand
### BEGIN SOLUTION stub: ledger_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
answers = (13.107, 52.429, 200, 6.4, 25.6, 100, 10 / 9, 5 / 3)
ledger_by_hand = dict(zip("abcdefgh", answers, strict=True))
### END SOLUTION

# %%
# hint("gpu_run.ledger_by_hand")
check.ledger_by_hand(ledger_by_hand)

# %% [markdown]
# ## Play with your own reset
#
# Once exercise 1 passes, let it run 64 copies of CartPole for 300 steps, with a limit of 50. The package's own
# environments run beside yours, from the same seed and with the same actions. They must agree to the last bit.

# %%
task, actions = CartPole(), torch.Generator().manual_seed(3)
task.time_limit = 50
envs = BatchedEnvs(task, 64)
envs.reset(seed=5)
state, elapsed, alike = envs.state_dict()["state"], torch.zeros(64, dtype=torch.int64), True

# %%
for _ in range(300):
    pushes = torch.randint(2, (64,), generator=actions)
    reached, _, terminated = task.advance(state, pushes, generator=actions)
    step, state = envs.step(pushes), envs.state_dict()["state"]
    seen, fresh = task.observe(reached), task.observe(state)
    mine = autoreset(seen, fresh, terminated, elapsed, time_limit=50)
    elapsed = mine[3]
    alike &= torch.equal(mine[0], step.observations) and torch.equal(mine[2], step.truncated)

# %%
assert alike, "some row differs: does exercise 1 pass?"
print("300 steps of 64 copies: yours and the package's agree")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="gpu_run")

# %% [markdown]
# The solutions are in `solutions/10_gpu_run.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("gpu_run.ledger_by_hand")
