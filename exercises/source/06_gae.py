# %% [markdown]
# # 06 Exercises: advantages (GAE)
#
# You write what [lesson 06](../notebooks/06_gae.ipynb) is made of: how much one step surprised the critic,
# how surprises are added up, and what the critic and the policy each make of the sum. Each answer is
# checked as soon as you run the cell below it: you see the smallest input on which it differs, and the
# name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. one step's surprise | 1 of 5 | 5 of 5 | 6 |
# | 2. all the surprises that follow | 3 of 5 | 5 of 5 | 15 |
# | 3. in one unit | 2 of 5 | 4 of 5 | 8 |
# | 4. what the critic should have said | 2 of 5 | 5 of 5 | 8 |
# | 5. nine numbers by hand | 3 of 5 | 4 of 5 | 12 |
# | 6. a sum with a bug | 2 of 5 | 4 of 5 | 6 |
# | 7. sooner or later (for experts) | 4 of 5 | 3 of 5 | 20 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 06`, typed in a terminal in the folder of the course, checks
# all seven. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# All tables have the shape `[T, N]`: T steps of N environments, time first. Each column is a world of its
# own, in which one game follows the other. What stands at index t describes step t.
#
# ## 1. One step's surprise
#
# *Difficulty 1 of 5, importance 5 of 5, 6 minutes.*
#
# Before each step the critic says what it expects. After the step there is a reward, and what the critic
# expects from there on. Write the **TD error** of each step: by how much things turned out better than
# expected.
#
# - `rewards` is what the steps earned.
# - `values` is V of the state in which the action was chosen.
# - `next_values` is V of the state that the step reached. It is given for every row, so you need not look
#   for it in another row.
# - `terminated` is boolean. True says that the step ended the game: nothing comes after it. What stands
#   in `next_values` there means nothing.
# - `gamma` is γ, between 0 and 1.
#
# Leave the inputs as they are. Try one on paper first: reward 3, V 2 before, V 4 after, γ = 0.5. And if
# the same step ends the game?

# %%
# answer: gae.td_errors
import torch


def td_errors(rewards, values, next_values, terminated, *, gamma):
    """Say how much better each step went than the critic expected."""
    ### BEGIN SOLUTION: what came and what may still come, minus what was expected
    future = next_values.masked_fill(terminated, 0.0)
    return rewards + gamma * future - values
    ### END SOLUTION


# %%
# hint("gae.td_errors")
check.td_errors(td_errors)

# %% [markdown]
# ## 2. All the surprises that follow
#
# *Difficulty 3 of 5, importance 5 of 5, 15 minutes.*
#
# A step is credited with its own TD error and with those that follow in the same game. Each of these
# weighs γλ times as much as the one before it. Write **GAE**.
#
# - The first four arguments are those of exercise 1.
# - `truncated` is boolean. True says that we stopped watching after this step. The game would have gone
#   on, and `next_values` says what the critic expects of it, so that counts. But the next row belongs to
#   another game, as it does behind a terminated step: the sum must not run into it.
# - A step may be both. Then the game is over, whoever watches.
# - The last row need not end anything. There `next_values` stands for all that comes.
# - `gae_lambda` is λ, between 0 and 1.
#
# You know both ends: λ = 0 gives the TD errors. λ = 1 gives, for games that were played to their end,
# the rewards-to-go minus V. This function has the arguments that the training loop hands to whatever
# computes advantages; at the end of this page it trains.

# %%
# answer: gae.compute_gae
import torch


def compute_gae(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Add up the TD errors that follow each step, until its game or the watching ends."""
    ### BEGIN SOLUTION: backwards through time; two flags for two jobs
    errors = rewards + gamma * next_values.masked_fill(terminated, 0.0) - values
    ended = terminated | truncated
    advantages = torch.zeros_like(errors)
    following = torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        following = errors[t] + gamma * gae_lambda * following.masked_fill(ended[t], 0.0)
        advantages[t] = following
    return advantages
    ### END SOLUTION


# %%
# hint("gae.compute_gae")
check.compute_gae(compute_gae)

# %% [markdown]
# ## 3. In one unit
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# In one game a good action earns 0.1, in another 1000. So that the step of the optimiser does not depend
# on it, the policy sees advantages that are **normalised**: shifted to mean 0, scaled to standard
# deviation 1.
#
# - `advantages` may have any shape. All entries belong together.
# - `mask`, if it is given, is boolean and has the same shape. Mean and deviation are those of the entries
#   where it is True. What does not count is shifted and scaled with the same two numbers; nobody will
#   look at it.
# - The deviation is that of the entries as they are: the mean square is divided by their number n,
#   not by n − 1.
# - One entry alone, or entries that are all equal, become 0. Add 10⁻⁸ to the deviation, so that you never
#   divide by 0.
#
# Leave the inputs as they are: the critic needs the raw advantages (exercise 4).

# %%
# answer: gae.normalize_advantages
import torch


def normalize_advantages(advantages, *, mask=None):
    """Shift advantages to mean 0 and scale them to deviation 1."""
    ### BEGIN SOLUTION: mean and deviation of what counts
    kept = advantages if mask is None else advantages[mask]
    centred = advantages - kept.mean()
    deviation = (kept - kept.mean()).square().mean().sqrt()
    return centred / (deviation + 1e-8)
    ### END SOLUTION


# %%
# hint("gae.normalize_advantages")
check.normalize_advantages(normalize_advantages)

# %% [markdown]
# ## 4. What the critic should have said
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# When a rollout had been collected, the critic said `values_old`, and GAE found by how much it was wrong:
# `advantages`, raw, as they came out of exercise 2. The sum of the two is what the critic should have
# said, its target. Then the optimiser takes several steps on the same rollout. At each of them the critic
# says something new, `values`, and the target stays where it is.
#
# Write the loss: half of the mean squared distance of `values` from the targets.
#
# - All three have the same shape, whatever it is. The mean goes over all entries.
# - The gradient flows through `values` alone. The other two are constants, whatever computed them.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
#
# Two states, V 100 in both, then and now, advantages 5 and 3. What should the critic have said? And
# what would it be told if the advantages were normalised first?

# %%
# answer: gae.value_loss_from_advantages
import torch


def value_loss_from_advantages(values, values_old, advantages):
    """Give half of the mean squared distance of the critic from its targets."""
    ### BEGIN SOLUTION: targets from raw advantages and the values of then
    returns = (advantages + values_old).detach()
    return (values - returns).square().mean() / 2
    ### END SOLUTION


# %%
# hint("gae.value_loss_from_advantages")
check.value_loss_from_advantages(value_loss_from_advantages)

# %% [markdown]
# ## 5. Nine numbers by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# Nothing to program. One environment, four steps, γ = 0.5. The first game ends with row 2. A second one
# begins in row 3, and there the rollout stops; nobody said that the game is over. Numbers may be off by
# 0.001.
#
# | row | V before | reward | V after | the game is over |
# | --- | ---: | ---: | ---: | :---: |
# | 0 | 6 | 1 | 8 | no |
# | 1 | 8 | 1 | 12 | no |
# | 2 | 12 | 20 | | yes |
# | 3 | 6 | 2 | 10 | no |
#
# Give the advantages:
#
# | | λ = 0 | λ = 0.5 | λ = 1 |
# | --- | :---: | :---: | :---: |
# | row 0 | a | b | c |
# | row 1 | d | e | f |
# | row 2 | | g | |
# | row 3 | | h | |
#
# And **i**: what should the critic have said in row 0, if λ is 0.5?
#
# Before you compute: can the same action be pushed down at one λ and up at another?

# %%
# answer: gae.nine_numbers
### BEGIN SOLUTION stub: nine_numbers = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None, "i": None}
nine_numbers = {"a": -1, "b": -0.75, "c": 0.5, "d": -1, "e": 1, "f": 3, "g": 8, "h": 1, "i": 5.25}
### END SOLUTION

# %%
# hint("gae.nine_numbers")
check.nine_numbers(nine_numbers)

# %% [markdown]
# ## 6. A sum with a bug
#
# *Difficulty 2 of 5, importance 4 of 5, 6 minutes.*
#
# The same function as in exercise 2, written as the definition says: for each step a sum over what
# follows. At γ = 0.99 its numbers look right. One line is wrong, the rest is right. Mend it.
#
# Do not stare at it. Call it with numbers for which you know what must come out.

# %%
# answer: gae.mended_gae
import torch


def mended_gae(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Add up the TD errors that follow each step; one line is wrong."""
    errors = rewards + gamma * next_values.masked_fill(terminated, 0.0) - values
    advantages = torch.zeros_like(errors)
    for t in range(len(errors)):
        reached = torch.ones_like(errors[0])  # 1 as long as the game of step t goes on
        for later in range(t, len(errors)):
            ### BEGIN SOLUTION stub: weight = gamma * gae_lambda ** (later - t)
            weight = (gamma * gae_lambda) ** (later - t)
            ### END SOLUTION
            advantages[t] += weight * reached * errors[later]
            reached = reached.masked_fill(terminated[later] | truncated[later], 0.0)
    return advantages


# %%
# hint("gae.mended_gae")
check.mended_gae(mended_gae)

# %% [markdown]
# ## 7. Sooner or later (for experts)
#
# *Difficulty 4 of 5, importance 3 of 5, 20 minutes.*
#
# GAE is a sum of TD errors. The lesson came to it from another side: take n real rewards, let the critic
# speak for the rest, and mix the **n-step returns** with the weights (1 − λ)·λⁿ⁻¹. Write this mixture, the
# **λ-return** of each step.
#
# - The arguments mean what they meant in exercise 2. One is missing: `values`. No return needs V of the
#   state that it starts from.
# - No return reaches beyond the end of its game, a truncation, or the last row. The longest one takes
#   all the weight that is left.
# - Where the game is over, nothing stands for the rest. Behind a truncation and behind the last row
#   the critic speaks.
#
# You may form all returns and mix them, or find a recursion, or find your own way to use exercise 2.
# Whatever is right passes. If you like, check then that your result minus `values` is your GAE.

# %%
# answer: gae.lambda_returns
import torch


def lambda_returns(rewards, next_values, terminated, truncated, *, gamma, gae_lambda):
    """Mix the returns that wait for one step, two steps, and so on."""
    ### BEGIN SOLUTION: after each step, believe the critic with weight 1 − λ or wait on
    returns = torch.zeros_like(rewards)
    following = next_values[-1]  # behind the last row only the critic can speak
    for t in reversed(range(len(rewards))):
        waiting = torch.where(truncated[t], next_values[t], following)
        ahead = (1 - gae_lambda) * next_values[t] + gae_lambda * waiting
        following = rewards[t] + gamma * ahead.masked_fill(terminated[t], 0.0)
        returns[t] = following
    return returns
    ### END SOLUTION


# %%
# hint("gae.lambda_returns")
check.lambda_returns(lambda_returns)

# %% [markdown]
# ## Train with your own advantages
#
# Once exercises 2 and 3 pass, put both functions into the training loop. The task is CartPole: a cart
# must keep a pole upright, and the return counts the steps until the pole falls. The cell runs for a
# few seconds.

# %% tags=["nbval-ignore-output"]
config = PPOConfig(total_steps=16_384)
parts = Parts(advantages=compute_gae, normalize=normalize_advantages)
history = train(config, parts=parts)
first, last = history["episode_return"][0], history["episode_return"][-1]

# %%
assert last > 2 * first, "no progress: do exercises 2 and 3 pass?"
print("your advantages train: CartPole's pole stands more than twice as long")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="gae")

# %% [markdown]
# The solutions are in `solutions/06_gae.ipynb`. Each is one way among several; yours need not look like
# it. `reveal` says where, after you have tried.

# %%
reveal("gae.lambda_returns")
