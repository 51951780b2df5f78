# %% [markdown]
# # 05 Exercises: the critic
#
# What may be subtracted, what should be, and how is it learned? You find the baseline with the least noise,
# write the loss of a critic and the grade that it gets, and mend a loss that pulls all values together. The
# lesson is [lesson 05](../notebooks/05_critic.ipynb). Each answer is checked as soon as you run the
# cell below it: you see the smallest input on which it differs, and the name of the mistake if it is one of
# the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the baseline with the least noise | 3 of 5 | 3 of 5 | 10 |
# | 2. the mean of the others | 2 of 5 | 4 of 5 | 8 |
# | 3. the loss of a critic | 1 of 5 | 5 of 5 | 5 |
# | 4. a loss that pulls everything together | 2 of 5 | 5 of 5 | 8 |
# | 5. the clip of the value | 3 of 5 | 2 of 5 | 10 |
# | 6. a grade for critics | 2 of 5 | 4 of 5 | 6 |
# | 7. eight numbers by hand | 3 of 5 | 4 of 5 | 15 |
# | 8. who is pulled by what (for experts) | 4 of 5 | 4 of 5 | 20 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 05`, typed in a terminal in the folder of the course, checks
# all eight. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.envs import make_envs
from ppo_lessons.networks import make_networks
from ppo_lessons.reinforce import play_episodes, rewards_to_go

setup()

# %% [markdown]
# ## 1. The baseline with the least noise
#
# *Difficulty 3 of 5, importance 3 of 5, 10 minutes.*
#
# A draw pushes the parameters by score times (return − b). The mean push does not depend on the number b, and
# its variance does. Write the b that makes the variance smallest, added up over the parameters.
#
# - `probabilities` has shape `[N]`: how likely each of N draws is. They sum to 1.
# - `scores` has shape `[N, P]`: ∇log π of each draw, by P parameters.
# - `returns` has shape `[N]`: what followed each draw.
# - The result is one number: a Python number or a tensor, as you like.
#
# Write the variance down as a function of b first. Which of its terms contain b? And what must come out if
# all returns are equal?

# %%
# answer: critic.optimal_baseline
import torch


def optimal_baseline(probabilities, scores, returns):
    """Give the one number that, subtracted from all returns, leaves the least noise."""
    ### BEGIN SOLUTION: a weighted mean of the returns
    weights = probabilities * torch.sum(scores**2, dim=-1)
    return (weights * returns).sum() / weights.sum()
    ### END SOLUTION


# %%
# hint("critic.optimal_baseline")
check.optimal_baseline(optimal_baseline)

# %% [markdown]
# ## 2. The mean of the others
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# A language model answers each of B questions k times, and each answer gets a return. The mean of the k answers
# is no baseline, since each answer is a part of it. The mean of the *other* answers to the same question is one.
#
# - `returns` has shape `[B, k]`, with k at least 2.
# - The result has shape `[B, k]`: for each answer, the mean return of the other k − 1 in its row.
#
# Returns 0, 3, 6: what are the three baselines? And how is return minus baseline related to return minus the
# mean of all three?

# %%
# answer: critic.leave_one_out_baseline
import torch


def leave_one_out_baseline(returns):
    """Give each draw the mean return of the other draws of its row."""
    ### BEGIN SOLUTION: all minus itself
    others = returns.sum(-1, keepdim=True) - returns
    return others / (returns.shape[-1] - 1)
    ### END SOLUTION


# %%
# hint("critic.leave_one_out_baseline")
check.leave_one_out_baseline(leave_one_out_baseline)

# %% [markdown]
# ## 3. The loss of a critic
#
# *Difficulty 1 of 5, importance 5 of 5, 5 minutes.*
#
# A critic learns by regression on returns. Write its loss: half the mean squared error.
#
# - `values` is what the critic says. The gradient flows through it.
# - `returns` is what followed. They are constants: no gradient may flow into them, whatever computed them.
# - Both have the same shape, whatever it is; the mean goes over every sample.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
#
# Why the half? Write down the slope of the loss by one value.

# %%
# answer: critic.value_loss
import torch


def value_loss(values, returns):
    """Give half the mean squared error of the critic."""
    ### BEGIN SOLUTION: error, square, mean, half
    errors = values - returns.detach()
    return torch.mean(errors**2) / 2
    ### END SOLUTION


# %%
# hint("critic.value_loss")
check.value_loss(value_loss)

# %% [markdown]
# ## 4. A loss that pulls everything together
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Here is a critic with one layer, and its loss. It runs, and the loss falls. But a critic that says exactly what
# followed has a loss above 0, and training leads all its values to one number. Mend it. One line is wrong, the
# rest is right.
#
# - `observations` has shape `[B, F]`: B samples, F features.
# - `weights` has shape `[F, 1]`, as in a linear layer with one output. The gradient flows through them.
# - `returns` has shape `[B]`. They are constants.
#
# To see it at work, give it the observations 1, 2, 3, 4 (one feature), the weight 2, and the returns 2, 4, 6, 8.

# %%
# answer: critic.mended_value_loss
import torch


def mended_value_loss(observations, weights, returns):
    """Give half the mean squared error of a linear critic; one line is wrong."""
    values = torch.matmul(observations, weights)
    targets = returns.detach()
    ### BEGIN SOLUTION stub: errors = values - targets
    errors = values.squeeze(-1) - targets
    ### END SOLUTION
    return (errors**2).mean() / 2


# %%
# hint("critic.mended_value_loss")
check.mended_value_loss(mended_value_loss)

# %% [markdown]
# ## 5. The clip of the value
#
# *Difficulty 3 of 5, importance 2 of 5, 10 minutes.*
#
# Many programs of PPO clip the critic, too. You will meet this loss, so write it once. A value may move by at
# most ε from what the critic said before the training on this batch; what lies beyond counts as if it had
# stopped there. Of the two squared errors, that of the value and that of the stopped value, the **larger** one counts.
# Then comes the mean over all samples, and the half.
#
# - `values` is what the critic says now. The gradient flows through it.
# - `returns` and `values_old`, what the critic said before, are constants.
# - All three have the same shape, whatever it is.
# - `clip_epsilon` is ε, above 0, in the unit of the values.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
#
# V was 5 and the return is 10. The value is now 4, since other samples have dragged it there. With ε = 0.5,
# which of the two errors can bring it back?

# %%
# answer: critic.clipped_value_loss
import torch


def clipped_value_loss(values, returns, *, values_old, clip_epsilon):
    """Give the value loss that stops paying once V has moved by ε."""
    ### BEGIN SOLUTION: the larger of two errors
    returns, values_old = returns.detach(), values_old.detach()
    moved = values_old + (values - values_old).clamp(-clip_epsilon, clip_epsilon)
    errors = torch.maximum((values - returns) ** 2, (moved - returns) ** 2)
    return errors.mean() / 2
    ### END SOLUTION


# %%
# hint("critic.clipped_value_loss")
check.clipped_value_loss(clipped_value_loss)

# %% [markdown]
# ## 6. A grade for critics
#
# *Difficulty 2 of 5, importance 4 of 5, 6 minutes.*
#
# Write the **explained variance**: 1 minus the variance of the errors, return minus value, over the variance of
# the returns.
#
# - `values` and `returns` have the same shape, whatever it is. All samples count together.
# - The returns are not all equal, so there is something to explain.
# - The result is one number of at most 1: a Python number or a tensor, as you like.
#
# Which grade has a critic that always says the same? One that is 100 too high everywhere? One that says twice
# what it should?

# %%
# answer: critic.explained_variance
import torch


def explained_variance(values, returns):
    """Say which share of the returns' spread the critic accounts for."""
    ### BEGIN SOLUTION: two variances
    missed = torch.var(returns - values, correction=0)
    return 1 - missed / torch.var(returns, correction=0)
    ### END SOLUTION


# %%
# hint("critic.explained_variance")
check.explained_variance(explained_variance)

# %% [markdown]
# ## 7. Eight numbers by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program. Numbers may be off by 0.001.
#
# **Two levers.** The policy has one parameter, the logit of lever 1. A push is score times (pay − baseline).
#
# | lever | probability | score | pay |
# | --- | ---: | ---: | ---: |
# | 0 | 0.75 | −0.25 | 1 |
# | 1 | 0.25 | 0.75 | 5 |
#
# - **a**: V, the mean pay;
# - **b**: the mean push;
# - **c**: the variance of the push with no baseline;
# - **d**: the variance with V as baseline;
# - **e**: the baseline with the least variance;
# - **f**: the variance that it leaves;
# - **g**: the mean push if a batch has three draws and the mean of its three pays is subtracted from each;
#   the mean over all batches that may come up.
#
# **A grade.** The returns were 2, 4, 6, 8, and the critic said 3, 5, 6, 8.
#
# - **h**: its explained variance.
#
# Before you compute: has the mean push in g grown, shrunk, or stayed?

# %%
# answer: critic.eight_numbers
### BEGIN SOLUTION stub: eight_numbers = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
eight_numbers = {"a": 2, "b": 0.75, "c": 3, "d": 0.75, "e": 4, "f": 0, "g": 0.5, "h": 0.95}
### END SOLUTION

# %%
# hint("critic.eight_numbers")
check.eight_numbers(eight_numbers)

# %% [markdown]
# ## 8. Who is pulled by what (for experts)
#
# *Difficulty 4 of 5, importance 4 of 5, 20 minutes.*
#
# Policy and critic are trained on one sum of two losses:
#
# - the policy's loss, minus the mean of log π(a|s)·(R − V), in which **R − V is a constant**;
# - `value_coef` times the value loss, half the mean of (V − R)², in which V is no constant.
#
# In a loop one forgotten `detach` lets the first loss pull at the critic, and nothing in a log looks broken.
# So here you return what pulls: the gradient of the sum by the logits, and that by the values. (A gradient as
# autograd gives it, without a minus.)
#
# - `logits` has shape `[B, A]`: B samples, A actions. The softmax of a row gives its probabilities.
# - `values` and `returns` have shape `[B]`, and so has `actions`, integers from 0 on.
# - Give both back as a tuple, in this order: by the logits, of shape `[B, A]`, and by the values, of shape `[B]`.
# - The inputs carry no gradient. With autograd, work on copies that do; by hand it is two lines of maths.
# - Logits may be as large as 1000, whose exponential is infinite in a float.

# %%
# answer: critic.actor_critic_gradients
import torch


def actor_critic_gradients(logits, values, actions, returns, *, value_coef):
    """Say how both losses together pull at the policy and at the critic."""
    ### BEGIN SOLUTION: what is a constant where
    logits, values = logits.clone().requires_grad_(), values.clone().requires_grad_()
    log_probs = logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    advantages = (returns - values).detach()
    loss = -(log_probs * advantages).mean()
    loss = loss + value_coef * ((values - returns) ** 2).mean() / 2
    return torch.autograd.grad(loss, (logits, values))
    ### END SOLUTION


# %%
# hint("critic.actor_critic_gradients")
check.actor_critic_gradients(actor_critic_gradients)

# %% [markdown]
# ## Train a critic with your own loss, and grade it
#
# Once exercises 3 and 6 pass, let your loss train a critic and your grade judge it. The task is CartPole: a
# cart must keep a pole upright, and each step until it falls earns 1. A policy that nobody has trained plays 64
# episodes, and a small network learns to say their rewards-to-go. It is graded on 64 *other* episodes: on its own
# it may have learned the luck by heart. The cells run for a few seconds.


# %%
def played():
    episodes = play_episodes(envs, networks.policy, generator=generator)
    returns = rewards_to_go(episodes.rewards, episodes.ended, gamma=0.99)
    return episodes.observations[episodes.valid], returns[episodes.valid]


generator = torch.Generator().manual_seed(5)
envs = make_envs("CartPole-v1", 64)
networks = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator)
(seen, followed), (fresh, fresh_returns) = played(), played()

# %% [markdown]
# Three hundred steps on all of it:

# %% tags=["nbval-ignore-output"]
before = explained_variance(networks.critic(fresh).detach(), fresh_returns)
optimizer = torch.optim.Adam(networks.critic.parameters(), lr=0.003)
for _ in range(300):
    loss = value_loss(networks.critic(seen), followed)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
after = explained_variance(networks.critic(fresh).detach(), fresh_returns)
assert float(after) > 0.1 > float(before), "nothing learned: do exercises 3 and 6 pass?"
print("your critic explains more than 10 % of what follows; before the training it did not")

# %% [markdown]
# How long an episode lasts is mostly luck, when the policy is a coin, so no critic comes near 1 here. Your two
# losses have the signatures that the training loop asks for, too. In lesson 08 you put them into it:
# `Parts(value_loss=value_loss)`, or `Parts(value_loss=clipped_value_loss)`.

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="critic")

# %% [markdown]
# The solutions are in `solutions/05_critic.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("critic.actor_critic_gradients")
