# %% [markdown]
# # 02 Exercises: importance sampling
#
# You write the factor that lets you use old data, what is left of a batch once it is applied, and how
# far the policy has moved meanwhile. The lesson is [lesson 02](../notebooks/02_importance.ipynb). Each
# answer is checked as soon as you run the cell below it: you see the smallest input on which it
# differs, and the name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the importance ratio | 1 of 5 | 5 of 5 | 4 |
# | 2. what a batch is still worth | 2 of 5 | 3 of 5 | 8 |
# | 3. the surrogate as a loss | 2 of 5 | 5 of 5 | 8 |
# | 4. three estimates of one distance | 2 of 5 | 4 of 5 | 10 |
# | 5. four draws by hand | 3 of 5 | 4 of 5 | 15 |
# | 6. a loop with a bug | 3 of 5 | 5 of 5 | 10 |
# | 7. one weight for a whole episode (for experts) | 4 of 5 | 2 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 02`, typed in a terminal in the folder of the course, checks
# all seven. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# ## 1. The importance ratio
#
# *Difficulty 1 of 5, importance 5 of 5, 4 minutes.*
#
# Write how much more likely each action is now than when it was drawn: its probability under the new
# policy over that under the old one. You are given logarithms.
#
# - `log_probs` are the log-probabilities now. The gradient flows through them.
# - `log_probs_old` were written down while sampling. Whether you detach them here is up to you.
# - Both have the same shape, whatever it is. The result has it too: 1 where nothing has moved.
# - Probabilities may be as small as e⁻⁸⁰⁰, which a float holds as 0. The ratio must still be right.

# %%
# answer: importance.importance_ratios
import torch


def importance_ratios(log_probs, log_probs_old):
    """Say how much more likely each action is now than when it was drawn."""
    ### BEGIN SOLUTION: from logarithms to a ratio
    return (log_probs - log_probs_old).exp()
    ### END SOLUTION


# %%
# hint("importance.importance_ratios")
check.importance_ratios(importance_ratios)

# %% [markdown]
# ## 2. What a batch is still worth
#
# *Difficulty 2 of 5, importance 3 of 5, 8 minutes.*
#
# Write the **effective sample size**: how many draws with equal weights would be worth as much as these
# with their weights? It is the square of the sum, over the sum of the squares.
#
# - `weights` has shape `[B]`. No weight is negative, and not all are 0.
# - The result is one number, from 1 to B: a Python number or a tensor, as you like.
# - Weights may be as large as 10³⁰ or as small as 10⁻³⁰, in float32, where the square of neither exists.
#   A factor that all weights share has no influence on the result: use that.
#
# What must come out for four equal weights, whatever their size?

# %%
# answer: importance.effective_sample_size
import torch


def effective_sample_size(weights):
    """Say how many equally weighted samples the weighted ones are worth."""
    ### BEGIN SOLUTION: scale, then square
    scaled = weights / weights.max()
    return scaled.sum() ** 2 / (scaled**2).sum()
    ### END SOLUTION


# %%
# hint("importance.effective_sample_size")
check.effective_sample_size(effective_sample_size)

# %% [markdown]
# ## 3. The surrogate as a loss
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Put the ratio into the loss. The **surrogate** is the mean of ratio times advantage, and it is to be
# maximised; you write the loss, which is minimised.
#
# - `log_probs` are the log-probabilities of the actions now. The gradient flows through them.
# - `log_probs_old` were written down while sampling. They are constants, and so are the
#   `advantages`: no gradient may flow into either.
# - All three have the same shape, whatever it is; the mean goes over every sample.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
# - The advantages are taken as they are. (The training loop has **normalised** them before: their mean is
#   subtracted, and their spread divided out.)
#
# This function has the signature that the training loop asks for: at the end of this page you train
# with it. Write it without calling your answer to exercise 1, so that it can stand alone.

# %%
# answer: importance.surrogate_loss
import torch


def surrogate_loss(log_probs, log_probs_old, advantages):
    """Turn the surrogate into a loss."""
    ### BEGIN SOLUTION: ratio, product, mean, sign
    ratios = (log_probs - log_probs_old.detach()).exp()
    return -(ratios * advantages.detach()).mean()
    ### END SOLUTION


# %%
# hint("importance.surrogate_loss")
check.surrogate_loss(surrogate_loss)

# %% [markdown]
# ## 4. Three estimates of one distance
#
# *Difficulty 2 of 5, importance 4 of 5, 10 minutes.*
#
# How far has the policy moved from the one that drew the batch? KL(π_old ‖ π) answers in nats, and three
# estimates of it are in use. With ρ for the ratio, new over old:
#
# - `"k1"`: the mean of −log ρ. Right on average; in a batch it may be negative.
# - `"k2"`: half the mean of (log ρ)². Never negative, and a little off on average.
# - `"k3"`: the mean of ρ − 1 − log ρ. Right on average, and never negative.
#
# Write one function for all three. `estimator` says which one is wanted; `log_probs` and
# `log_probs_old` have the same shape, whatever it is. What comes back is a tensor without dimensions.

# %%
# answer: importance.approximate_kl
import torch


def approximate_kl(log_probs, log_probs_old, *, estimator):
    """Estimate KL(old, new) from actions that the old policy drew."""
    ### BEGIN SOLUTION: k1, k2, k3
    log_ratios = log_probs - log_probs_old
    if estimator == "k1":
        return -log_ratios.mean()
    if estimator == "k2":
        return (log_ratios**2).mean() / 2
    return (log_ratios.exp() - 1 - log_ratios).mean()
    ### END SOLUTION


# %%
# hint("importance.approximate_kl")
check.approximate_kl(approximate_kl)

# %% [markdown]
# ## 5. Four draws by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program; a pocket calculator helps (ln 1.5 = 0.4055, ln 2 = 0.6931). Numbers may be off by
# 0.0005. A policy has three actions:
#
# | action | A | B | C |
# | --- | ---: | ---: | ---: |
# | old probability | 0.5 | 0.25 | 0.25 |
# | new probability | 0.75 | 0.125 | 0.125 |
#
# The old policy has drawn four times:
#
# | draw | 1 | 2 | 3 | 4 |
# | --- | ---: | ---: | ---: | ---: |
# | action | A | B | A | A |
# | advantage | 2 | −1 | 1 | 2 |
#
# - **a**: the importance ratio of draw 2;
# - **b**: the effective sample size of the four ratios, in samples;
# - **c**: the surrogate loss;
# - **d**: the estimate k1;
# - **e**: the estimate k3;
# - **f**: the weight of the four together, if they were the four steps of one episode;
# - **g**: KL(π_old ‖ π) itself, from the two policies and no draw.
#
# Before you compute: which of d and e can be negative?

# %%
# answer: importance.four_draws
### BEGIN SOLUTION stub: four_draws = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
four_draws = {"a": 0.5, "b": 25 / 7, "c": -1.75, "d": -0.131, "e": 0.1192, "f": 1.6875, "g": 0.1438}
### END SOLUTION

# %%
# hint("importance.four_draws")
check.four_draws(four_draws)

# %% [markdown]
# ## 6. A loop with a bug
#
# *Difficulty 3 of 5, importance 5 of 5, 10 minutes.*
#
# Several steps on one batch: plain gradient steps on the surrogate, for a policy with one row of logits.
# The loop runs, and the first step is right. From the second on it does what the ratio should
# prevent: it takes *often drawn* for *good*. Mend it. One line is wrong, the rest is right.
#
# - `logits` has shape `[A]`: the policy that drew the batch, and where the steps start.
# - `actions` and `advantages` have shape `[B]`.
# - What comes back are the logits after `num_steps` steps.
#
# To see it at work, print the ratios at the second step. What should they be, once the policy has moved?

# %%
# answer: importance.mended_squeeze
import torch


def mended_squeeze(logits, actions, advantages, *, num_steps, learning_rate):
    """Take several steps on one batch; one line is wrong."""
    log_probs_old = logits.detach().log_softmax(-1)[actions]
    logits = logits.detach().clone().requires_grad_()
    for _ in range(num_steps):
        log_probs = logits.log_softmax(-1)[actions]
        ### BEGIN SOLUTION stub: ratios = (log_probs - log_probs.detach()).exp()
        ratios = (log_probs - log_probs_old).exp()
        ### END SOLUTION
        loss = -(ratios * advantages).mean()
        (gradient,) = torch.autograd.grad(loss, logits)
        logits = (logits - learning_rate * gradient).detach().requires_grad_()
    return logits.detach()


# %%
# hint("importance.mended_squeeze")
check.mended_squeeze(mended_squeeze)

# %% [markdown]
# ## 7. One weight for a whole episode (for experts)
#
# *Difficulty 4 of 5, importance 2 of 5, 15 minutes.*
#
# What the environment does cancels in the ratio of two episodes' probabilities, and what is left is the
# product of the ratios of all steps. Write it for each step: the product of the ratios from the start of
# its episode up to the step, its own ratio included. At the last step that is the weight of the whole
# episode.
#
# - `log_probs`, `log_probs_old` and `ended` have shape `[T, N]`: T steps of N environments, time first.
# - `ended` is boolean. True at index t says that step t was the last of its episode; the row after it
#   begins a new one, with a new product. An episode may still run at the last row.
# - The result has shape `[T, N]`.
# - A single ratio may be as small as e⁻⁸⁰⁰, and a later one as large as e⁸⁰⁰. Their product is 1, and the
#   second weight must come out as 1.

# %%
# answer: importance.trajectory_weights
import torch


def trajectory_weights(log_probs, log_probs_old, ended):
    """Multiply the ratios of each episode up to each step."""
    ### BEGIN SOLUTION: add logarithms, start anew after an end
    weights, total = [], torch.zeros_like(log_probs[0])
    for t in range(len(log_probs)):
        total = total + log_probs[t] - log_probs_old[t]
        weights.append(total.exp())
        total = torch.where(ended[t], 0.0, total)
    return torch.stack(weights)
    ### END SOLUTION


# %%
# hint("importance.trajectory_weights")
check.trajectory_weights(trajectory_weights)

# %% [markdown]
# ## Train with your own loss
#
# Once exercise 3 passes, put your function into the training loop. Eight epochs reuse each batch, and
# nothing but your ratio minds that the policy has moved. The task is CartPole: a cart must keep a pole
# upright, and the return counts the steps until the pole falls. The cell runs for a few seconds.

# %% tags=["nbval-ignore-output"]
parts = Parts(policy_loss=surrogate_loss)
history = train(PPOConfig(total_steps=16_384), parts=parts)
first, last = history["episode_return"][0], history["episode_return"][-1]

# %%
assert last > 2 * first, "no progress: does exercise 3 pass?"
print("your loss trains: CartPole's pole stands more than twice as long")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="importance")

# %% [markdown]
# The solutions are in `solutions/02_importance.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("importance.trajectory_weights")
