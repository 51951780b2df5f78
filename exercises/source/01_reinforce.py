# %% [markdown]
# # 01 Exercises: REINFORCE
#
# You write what [lesson 01](../notebooks/01_reinforce.ipynb) is made of: the log-probability of an
# action, what followed it, and the loss that joins the two. Each answer is checked as soon as you run
# the cell below it: you see the smallest input on which it differs, and the name of the mistake if it
# is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the log-probability of an action | 2 of 5 | 5 of 5 | 8 |
# | 2. what came after | 3 of 5 | 5 of 5 | 12 |
# | 3. a loss that is no loss | 1 of 5 | 5 of 5 | 5 |
# | 4. seven numbers by hand | 3 of 5 | 4 of 5 | 15 |
# | 5. a loss with a bug | 2 of 5 | 4 of 5 | 8 |
# | 6. one gradient per episode (for experts) | 4 of 5 | 3 of 5 | 20 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 01`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# ## 1. The log-probability of an action
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# A policy network gives one **logit** per action: any number. The softmax turns the logits of a row
# into probabilities, e^z / Σ e^z. Write the natural logarithm of the probability of the action that
# was taken.
#
# - `logits` has shape `[B, A]`: B samples, A actions. The gradient flows through them.
# - `actions` has shape `[B]`, integers from 0 on.
# - The result has shape `[B]`: one number per row, for the action of that row.
# - Logits may be as large as 1000, whose exponential is infinite in a float, and an action may be as
#   rare as e⁻¹⁰⁰⁰, which a float holds as 0. The result must be right all the same.
#
# Try the logits 0 and ln 3 on paper first: which two probabilities are they? (The log-probability of the
# second action is −0.288.)

# %%
# answer: reinforce.log_prob
import torch


def log_prob(logits, actions):
    """Give the log-probability of each action that was taken."""
    ### BEGIN SOLUTION: a log-softmax over the actions, then the one that was taken
    table = torch.log_softmax(logits, dim=-1)
    return table.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    ### END SOLUTION


# %%
# hint("reinforce.log_prob")
check.log_prob(log_prob)

# %% [markdown]
# ## 2. What came after
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# An action deserves credit for what came after it, and none for what came before. Write the
# **rewards-to-go**: for each step the sum of its own reward and of all later ones of its episode, where
# a reward k steps later counts γᵏ.
#
# - `rewards` and `ended` have shape `[T, N]`: T steps of N environments, time first. Each column is a
#   world of its own.
# - `ended` is boolean. True at index t says that step t was the last of its episode: its reward still
#   counts, and the next row belongs to another episode.
# - All episodes are complete: the last row of `ended` is True everywhere.
# - `gamma` is γ, between 0 and 1.
# - The result has shape `[T, N]`. Leave the inputs as they are.
#
# An example: an episode with the rewards 4, 2 at γ = 0.5 gives 5, 2. Work one out yourself: rewards 1, 4,
# −2, then a new episode with 2, 6. (Exercise 4 asks for these numbers.)

# %%
# answer: reinforce.rewards_to_go
import torch


def rewards_to_go(rewards, ended, *, gamma):
    """Sum what came after each action, until its episode ended."""
    ### BEGIN SOLUTION: backwards through time
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * following * ~ended[t]
        returns[t] = following
    return returns
    ### END SOLUTION


# %%
# hint("reinforce.rewards_to_go")
check.rewards_to_go(rewards_to_go)

# %% [markdown]
# ## 3. A loss that is no loss
#
# *Difficulty 1 of 5, importance 5 of 5, 5 minutes.*
#
# Write the number whose gradient is REINFORCE's: minus the mean of log-probability times weight. Its
# value says nothing about how good the policy is; only its gradient has a meaning.
#
# - `log_probs` are the log-probabilities of the actions that were taken. The gradient flows through
#   them.
# - `weights` says how far each action is pushed: here a return, later an advantage. They are constants:
#   no gradient may flow into them, whatever computed them.
# - Both have the same shape, whatever it is; the mean goes over every sample. What comes back is a tensor
#   without dimensions that has a gradient (not a float).
#
# At the end of this page you train with it.

# %%
# answer: reinforce.reinforce_loss
import torch


def reinforce_loss(log_probs, weights):
    """Give the number whose gradient, with its sign turned, pushes good actions up."""
    ### BEGIN SOLUTION: one product, one mean, one sign
    return -(log_probs * weights.detach()).mean()
    ### END SOLUTION


# %%
# hint("reinforce.reinforce_loss")
check.reinforce_loss(reinforce_loss)

# %% [markdown]
# ## 4. Seven numbers by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program. γ is 0.5 in all of it; numbers may be off by 0.001.
#
# **Four sums.** One environment, five steps. Give the rewards-to-go of the steps 0 to 3.
#
# | step | 0 | 1 | 2 | 3 | 4 |
# | --- | ---: | ---: | ---: | ---: | ---: |
# | reward | 1 | 4 | −2 | 2 | 6 |
# | ended | no | no | yes | no | yes |
# | case | a | b | c | d | |
#
# **Two slopes and an update.** A game has at most two steps, and both look alike, so the policy has one parameter: a
# logit z, which gives the probability p = 1 / (1 + e⁻ᶻ) of *pushing*. To *leave* ends the game with 0.
# The first push pays 1 and leads to the second step; a push there pays −1.6 and ends the game. Let z be
# 0, where p = ½ and dp/dz = ¼. Give two slopes, and what programs follow in their place:
#
# - **e**: by how much the **discounted J**, the mean of Σ γᵗ·r_t over episodes, grows per unit of z;
# - **f**: the same for the **undiscounted J**, the mean of Σ r_t;
# - **g**: the **usual update** itself (not how it changes): the mean over episodes of Σ ∂log π(a_t)/∂z ·
#   G_t, where G_t is the reward-to-go with γ = 0.5. It forgets the γᵗ in front of the later step.
#
# Before you compute: have e and g the same sign?

# %%
# answer: reinforce.seven_numbers
### BEGIN SOLUTION stub: seven_numbers = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
seven_numbers = {"a": 2.5, "b": 3, "c": -2, "d": 5, "e": 0.05, "f": -0.15, "g": -0.05}
### END SOLUTION

# %%
# hint("reinforce.seven_numbers")
check.seven_numbers(seven_numbers)

# %% [markdown]
# ## 5. A loss with a bug
#
# *Difficulty 2 of 5, importance 4 of 5, 8 minutes.*
#
# Here is the whole way from logits and rewards to the loss. It runs, the loss is finite, and the agent
# even learns: slowly, and it never becomes sure of anything. Mend it. One line is wrong, the rest is
# right.
#
# - `logits` has shape `[T, N, A]`; `actions`, `rewards` and `ended` have shape `[T, N]`.
# - `Categorical` is torch's distribution over actions. It takes either `probs`, probabilities, or
#   `logits`.
#
# To see it at work: one step, logits 4 and 0, action 0. By hand its probability is 1 / (1 + e⁻⁴) = 0.98.
# What does the given line make of it?

# %%
# answer: reinforce.mended_reinforce
import torch
from torch.distributions import Categorical


def mended_reinforce(logits, actions, rewards, ended, *, gamma):
    """Give the loss of REINFORCE on whole episodes; one line is wrong."""
    weights, following = [], torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        following = rewards[t] + gamma * following * ~ended[t]
        weights.insert(0, following)
    weights = torch.stack(weights).detach()
    ### BEGIN SOLUTION stub: policy = Categorical(logits=logits.softmax(dim=-1))
    policy = Categorical(logits=logits)
    ### END SOLUTION
    return -(policy.log_prob(actions) * weights).mean()


# %%
# hint("reinforce.mended_reinforce")
check.mended_reinforce(mended_reinforce)

# %% [markdown]
# ## 6. One gradient per episode (for experts)
#
# *Difficulty 4 of 5, importance 3 of 5, 20 minutes.*
#
# The gradient that you follow is a mean over episodes. How far can you trust it? To say so, you need the
# estimate that each single episode gives. The policy is a table: `logits[k, a]` is the logit of action a
# at observation k, and the probabilities of a row are its softmax. Write, for each episode, the gradient
# of Σ_t log π(a_t | o_t) · w_t with respect to the table.
#
# - `logits` has shape `[K, A]`: K observations, A actions.
# - `observations` and `actions` have shape `[T, N]`, integers: what each of N episodes saw and did.
# - `weights`, `[T, N]`, is how far each step pushes.
# - `valid`, `[T, N]`, is False on the rows after an episode's end. Episodes have different lengths; a
#   row that is not valid is no step, and its weight may be any finite number.
# - The result has shape `[N, K, A]`: a sum over the steps, one table per episode.
#
# With autograd it is a loop over episodes; by hand it is one line of maths. Either passes.

# %%
# answer: reinforce.episode_gradients
import torch
from torch.nn import functional


def episode_gradients(logits, observations, actions, weights, valid):
    """Give the policy gradient that each episode estimates."""
    ### BEGIN SOLUTION: score times weight, added to the row of the observation
    scores = functional.one_hot(actions, logits.shape[1]) - logits.softmax(-1)[observations]
    rows = functional.one_hot(observations, logits.shape[0]).to(logits.dtype)
    return torch.einsum("tn,tnk,tna->nka", weights * valid, rows, scores)
    ### END SOLUTION


# %%
# hint("reinforce.episode_gradients")
check.episode_gradients(episode_gradients)

# %% [markdown]
# ## Train with your own loss
#
# Once exercise 3 passes, put your function into the training loop. The loop gives it one thing more, the
# log-probabilities that were written down when the batch was drawn; REINFORCE does not look at them. And
# since a batch is right for one step, it goes over each batch once (`num_epochs=1`, in a few smaller
# pieces). The task is CartPole: a cart must keep a pole upright, and the return counts the steps until
# the pole falls. The cell runs for a few seconds.


# %% tags=["nbval-ignore-output"]
def policy_loss(log_probs, log_probs_old, advantages):
    return reinforce_loss(log_probs, advantages)


config = PPOConfig(total_steps=16_384, num_epochs=1, learning_rate=0.01)
history = train(config, parts=Parts(policy_loss=policy_loss))
first, last = history["episode_return"][0], history["episode_return"][-1]

# %%
assert last > 2 * first, "no progress: does exercise 3 pass?"
print("your loss trains: CartPole's pole stands more than twice as long")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="reinforce")

# %% [markdown]
# The solutions are in `solutions/01_reinforce.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("reinforce.episode_gradients")
