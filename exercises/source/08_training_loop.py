# %% [markdown]
# # 08 Exercises: the training loop
#
# You write what holds the parts together: how a batch is dealt, what is minimised, one step of the
# optimiser, and when to stop. The lesson is [lesson 08](../notebooks/08_training_loop.ipynb). At the
# end your own functions, those of the earlier lessons with them, train an agent. Each answer is checked as
# soon as you run the cell below it: you see the smallest input on which it differs, and the name of the
# mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. deal the batch | 2 of 5 | 4 of 5 | 10 |
# | 2. one number to minimise | 1 of 5 | 4 of 5 | 4 |
# | 3. one step of the optimiser | 2 of 5 | 5 of 5 | 10 |
# | 4. when to stop | 1 of 5 | 3 of 5 | 4 |
# | 5. a squeeze with a bug | 3 of 5 | 5 of 5 | 10 |
# | 6. the numbers of a run | 3 of 5 | 4 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 08`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import time

from ppo_lessons import Watch, check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.checks.own import own_functions
from ppo_lessons.envs import make_envs
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, train

setup()

# %% [markdown]
# ## 1. Deal the batch
#
# *Difficulty 2 of 5, importance 4 of 5, 10 minutes.*
#
# In each epoch all rows of the batch are dealt into minibatches, in a new random order. Write what deals
# them: the indices of each minibatch.
#
# - `num_rows` is B. The rows have the numbers from 0 to B − 1, and each comes exactly once.
# - `num_minibatches` is how many minibatches there are, from 1 to B. Where B does not divide, sizes
#   differ by at most one.
# - `generator` is the only source of randomness. The next call with the same generator gives another
#   order; a generator with the same seed gives the same.
# - What comes back is something to loop over, such as a list, that gives one-dimensional tensors of
#   integers.
#
# Ten rows in four minibatches: which sizes are right?

# %%
# answer: training_loop.shuffled_minibatches
import torch


def shuffled_minibatches(num_rows, num_minibatches, *, generator):
    """Deal all rows into minibatches, in a new order each time."""
    ### BEGIN SOLUTION: a random order, cut into pieces
    order = torch.randperm(num_rows, generator=generator)
    return order.tensor_split(num_minibatches)
    ### END SOLUTION


# %%
# hint("training_loop.shuffled_minibatches")
check.shuffled_minibatches(shuffled_minibatches)

# %% [markdown]
# ## 2. One number to minimise
#
# *Difficulty 1 of 5, importance 4 of 5, 4 minutes.*
#
# The optimiser takes one number. Add the three up into it.
#
# - `policy_loss` and `value_loss` are losses already; the half of the value loss is in it.
# - `entropy` says how undecided the policy is, in nats. You want more of it: an undecided policy keeps
#   trying things.
# - `value_coef` and `entropy_coef` are their weights, at least 0. The policy's loss has weight 1.
#
# All three are tensors without dimensions. Gradients flow into each.


# %%
# answer: training_loop.ppo_loss
def ppo_loss(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    """Add up what is minimised."""
    ### BEGIN SOLUTION: two are losses, one is a bonus
    return policy_loss + value_coef * value_loss - entropy_coef * entropy
    ### END SOLUTION


# %%
# hint("training_loop.ppo_loss")
check.ppo_loss(ppo_loss)

# %% [markdown]
# ## 3. One step of the optimiser
#
# *Difficulty 2 of 5, importance 5 of 5, 10 minutes.*
#
# Take one step along the gradient of the loss. A gradient that is longer than `max_grad_norm` is shortened
# to it, so that one odd minibatch cannot throw the networks far away; a shorter one stays as it is.
#
# - `loss` is a tensor without dimensions, with a gradient.
# - `networks` is a torch module. Its length of gradient is that of all its parameters together.
# - `optimizer` holds these parameters; its `step()` goes by their `.grad`.
# - Gradients may be left over from before the call. They must not count.
# - What comes back is the length of the gradient *before* it was shortened, a tensor without dimensions.
#
# Four lines, and their order is the whole exercise. Which of them needs the result of which?

# %%
# answer: training_loop.clipped_gradient_step
import torch


def clipped_gradient_step(loss, networks, optimizer, *, max_grad_norm):
    """Take one optimiser step along a gradient that is at most so long."""
    ### BEGIN SOLUTION: clear, backward, shorten, step
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm
    ### END SOLUTION


# %%
# hint("training_loop.clipped_gradient_step")
check.clipped_gradient_step(clipped_gradient_step)

# %% [markdown]
# ## 4. When to stop
#
# *Difficulty 1 of 5, importance 3 of 5, 4 minutes.*
#
# The clip is no wall. So many programs add a fence: after each epoch they estimate how far the policy has
# gone, and leave the remaining epochs out if it is too far. Write the rule.
#
# - `kl_k1` is the mean of −log ratio over the epoch, a Python number, in nats.
# - `max_kl` is the limit, in nats. Exactly at the limit the epochs go on. Leave its default as it stands.
# - What comes back is True to stop, else False.
#
# Can the estimate be below 0, and what does it mean then?


# %%
# answer: training_loop.stop_epochs
def stop_epochs(kl_k1, *, max_kl=0.03):
    """Say whether the policy has gone too far for a further epoch."""
    ### BEGIN SOLUTION: one comparison
    return kl_k1 > max_kl
    ### END SOLUTION


# %%
# hint("training_loop.stop_epochs")
check.stop_epochs(stop_epochs)

# %% [markdown]
# ## 5. A squeeze with a bug
#
# *Difficulty 3 of 5, importance 5 of 5, 10 minutes.*
#
# One batch, several epochs, two minibatches in each, for a policy with one row of logits. The first epoch
# is right. From the second on the clip does not do its work: after ten epochs the policy may be far outside
# 1 ± ε, and no ratio says so. Mend it. One line is wrong, the rest is right.
#
# - `logits` has shape `[A]`: where the steps start.
# - `actions`, `log_probs_old` and `advantages` have shape `[B]`: the batch, as it was written down by the
#   policy that drew it.
# - What comes back are the logits after all epochs.
#
# To see it at work, print the ratios on the first minibatch of each epoch.

# %%
# answer: training_loop.mended_epochs
import torch


def mended_epochs(
    logits, actions, log_probs_old, advantages, *, num_epochs, clip_epsilon, learning_rate
):
    """Use one batch for several epochs; one line is wrong."""
    logits = logits.detach().clone().requires_grad_()
    for _ in range(num_epochs):
        ### BEGIN SOLUTION stub: log_probs_old = logits.detach().log_softmax(-1)[actions]
        # nothing is renewed here: the old log-probabilities stay as they were written down
        ### END SOLUTION
        for rows in torch.arange(len(actions)).tensor_split(2):
            log_probs = logits.log_softmax(-1)[actions[rows]]
            ratios = (log_probs - log_probs_old[rows]).exp()
            clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
            terms = torch.minimum(ratios * advantages[rows], clipped * advantages[rows])
            (gradient,) = torch.autograd.grad(-terms.mean(), logits)
            logits = (logits - learning_rate * gradient).detach().requires_grad_()
    return logits.detach()


# %%
# hint("training_loop.mended_epochs")
check.mended_epochs(mended_epochs)

# %% [markdown]
# ## 6. The numbers of a run
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program; a pocket calculator helps. A run has 16 environments, 128 steps of each per rollout, 10
# epochs, 8 minibatches and a budget of 1,000,000 environment steps. An incomplete last iteration is left
# out.
#
# - **a**: how many samples has one iteration?
# - **b**: how many iterations has the run?
# - **c**: how many environment steps does it take?
# - **d**: how many steps of the optimiser does it take?
# - **e**: how often is one sample used before it is thrown away?
# - **f**: on how many minibatches of the whole run are all ratios exactly 1?
# - **g**: an environment step (of one environment) costs 2 ms, a step of the optimiser 10 ms, and all else
#   nothing. Which share of the time is spent on collecting, from 0 to 1?
# - **h**: with K = 2 epochs the task is solved after 61,440 environment steps, with K = 10 after 20,480. At
#   which price of an environment step, in ms, are the two equally fast? (A step of the optimiser costs 10 ms.)
#
# Numbers may be off by 0.002.

# %%
# answer: training_loop.numbers_of_a_run
### BEGIN SOLUTION stub: numbers_of_a_run = dict.fromkeys("abcdefgh")  # put your eight numbers in
numbers_of_a_run = {"a": 2048, "b": 488, "c": 999_424, "d": 39_040}
numbers_of_a_run |= {"e": 10, "f": 488, "g": 0.8366, "h": 0.0781}
### END SOLUTION

# %%
# hint("training_loop.numbers_of_a_run")
check.numbers_of_a_run(numbers_of_a_run)

# %% [markdown]
# ## Train with your own functions
#
# Eight slots of the loop have an exercise in this course: four on this page, the policy's loss in 04, the
# critic's in 05, and GAE and its normalising in 06. What you have written, on this page or in
# `my_work/answers/`, is judged once more and used. Where an answer is missing, the table says so, and the
# package's function takes its place.

# %% tags=["nbval-ignore-output"]
own = own_functions(globals())
own

# %% [markdown]
# CartPole counts as solved at a mean return of 475. You have 120 s. The line shows how it goes; a run with
# the package's functions takes ten seconds or so.

# %% tags=["nbval-ignore-output"]
watch, end = Watch(), time.monotonic() + 120


def watch_until_late(state):
    watch(state)
    return time.monotonic() > end


history = train(PPOConfig(), parts=Parts(**own.functions), on_iteration=watch_until_late)

# %% [markdown]
# The test: 100 whole episodes, in which the policy draws its actions, as it did in training.

# %%
tests = make_envs("CartPole-v1", num_envs=100)
mean_return = evaluate(history.networks.policy, tests, seed=100, greedy=False).mean().item()
assert history.stopped == "finished", "120 s were not enough: is there a slow loop in GAE?"
assert mean_return >= 475, f"the pole fell after {mean_return:.0f} steps on average"
print("CartPole is solved, with every function of yours that passes its check")

# %% [markdown]
# Is a slot still the package's? Its exercise is in the table. Write it, come back, and run the last three
# cells again. When all eight are yours, what is left of the package is the networks, the environments and
# the order in which your functions are called.
#
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="training_loop")

# %% [markdown]
# The solutions are in `solutions/08_training_loop.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("training_loop.mended_epochs")
