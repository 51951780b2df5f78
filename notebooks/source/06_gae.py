# %% [markdown]
# # Advantages (GAE)
#
# **How much do I trust the critic?**
#
# In chess you can give up a pawn on purpose. Right after the move you look worse. Ten moves later
# you win. Was the sacrifice a good move? Two judges can tell you. One is the **critic**, who looks
# at the board after one move and says what to expect now; no later luck fools it, and it may be
# wrong. The other is the result. It is a fact, and it is full of the luck of all the moves in
# between.
#
# Between them lies one number, λ (lambda). Here you find out what it weighs, what it costs, and
# which of the critic's errors cost anything. The answer to the last is not what most people expect.
#
# The words that you need: **V**(s) is the return to expect from state s on, and a critic is a guess
# of it, learned by regression in [lesson 05](05_critic.ipynb). The **advantage** A(s, a) says how
# much better action a is than what the policy does there on average; an estimate of it is written
# Â. The policy gradient is the mean of Σ ∇log π · Â: a good action is pushed up, a bad one down.
# The **reward-to-go** G is the sum of what was earned from a step on, where a reward k steps later
# counts γᵏ. The **bias** of an estimate is the distance of its mean from the truth, its
# **variance** says how far single estimates scatter.

# %% tags=["nbval-ignore-output"]
import math

import numpy as np
import torch

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons import mdp as exact
from ppo_lessons.critic import td_errors
from ppo_lessons.figures import gae as figures
from ppo_lessons.figures.staircase import staircase
from ppo_lessons.gae import compute_gae, normalize_advantages
from ppo_lessons.reinforce import rewards_to_go
from ppo_lessons.widgets import GaeScan, LambdaTradeoff

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("gae.review_baseline")

# %%
quiz("gae.review_surrogate")

# %% [markdown]
# The third is on the critic:

# %%
quiz("gae.review_critic")

# %% [markdown]
# ## Three moves
#
# A game of three moves. It pays nothing until the end, and then 8. Before each move you ask the
# critic what it expects of the rest of the game: first 4, then 2, then 6. Move 0 was the sacrifice.
# γ is 1.
#
# | move | critic before it | reward | critic after it |
# | --- | ---: | ---: | ---: |
# | 0 | 4 | 0 | 2 |
# | 1 | 2 | 0 | 6 |
# | 2 | 6 | 8 | 0, the game is over |
#
# By how much did a move surprise the critic? It expected V(s) before. After the move you have the
# reward, and what the critic expects from there on. The difference is the **TD error** of the move
# (temporal difference: the critic at one time against the critic at the next):
#
# $$\delta_t = r_t + \gamma\,V(s_{t+1}) - V(s_t)$$
#
# For move 0: δ = 0 + 2 − 4 = −2. Where the task has ended, V(s_{t+1}) counts 0; `terminated` marks that
# step. In the code tables have one row per step and one column per game, here a single one.


# %%
def table(*numbers):
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(-1)


# %%
rewards = table(0, 0, 8)
values, next_values = table(4, 2, 6), table(2, 6, 0)
terminated = torch.tensor([[False], [False], [True]])

# %% [markdown]
# The package's function, and a picture of what the critic expects of the whole game while it goes
# on:

# %%
errors = td_errors(rewards, values, next_values, terminated, gamma=1.0)
print("TD errors", errors.flatten().tolist())

# %%
show(
    figures.surprises([4, 2, 6, 8]),
    alt="A staircase of what the critic expects of the whole game: 4 before move 0, 2 before move 1, 6 before "
    "move 2, 8 at the end. Arrows mark the surprises: minus 2, plus 4, plus 2.",
)

# %% [markdown]
# So here are the two judges. The critic, asked right after the sacrifice, says **−2**: things got
# worse. The result says 8 where 4 was expected: **+4**. The first trusts the critic after one move;
# the second waits for what really comes. In the picture: the first arrow alone, or all three
# together.
#
# To compromise, listen to each surprise half as much as to the one before it. What does this judge
# say about move 0? Write your guess in place of `None`.

# %%
predict("gae.halfway", None)

# %% [markdown]
# The package has a function for it, which you read in a moment. It takes the table of the game, γ
# and λ. (`truncated` is for lesson 07; here it is False everywhere.)


# %%
def advantages_at(gae_lambda, **changed):
    game = {"rewards": rewards, "values": values, "next_values": next_values}
    game |= {"terminated": terminated, "truncated": torch.zeros_like(terminated)}
    return compute_gae(**game | changed, gamma=1.0, gae_lambda=gae_lambda).flatten()


# %%
compare("gae.halfway", advantages_at(0.5)[0])

# %% [markdown]
# By hand: −2 + ½·4 + ¼·2 = 0.5. It is not the middle between −2 and +4, which would be 1. This is
# generalised advantage estimation, **GAE** (Schulman et al., 2016), and the ½ was λ.

# %%
claim(
    "gae.by_hand",
    "The advantages of the three moves are (−2, 4, 2) at λ = 0, (0.5, 5, 2) at 0.5, (4, 6, 2) at 1.",
    [advantages_at(x).tolist() for x in (0.0, 0.5, 1.0)] == [[-2, 4, 2], [0.5, 5, 2], [4, 6, 2]],
    control=(
        "At λ = 0.5 they are the average of those at 0 and at 1.",
        torch.allclose(advantages_at(0.5), (advantages_at(0.0) + advantages_at(1.0)) / 2),
    ),
)

# %% [markdown]
# Move by move, for every λ:

# %%
lambdas = torch.linspace(0, 1, 101, dtype=torch.float64)
lines = torch.stack([advantages_at(x) for x in lambdas.tolist()])
show(
    figures.verdicts(lambdas.numpy(), lines.numpy()),
    alt="Advantages of the three moves over lambda. Move 0 rises from minus 2 to 4 and crosses zero at "
    "0.41, move 1 rises from 4 to 6, move 2 stays at 2.",
)

# %% [markdown]
# Not only the size of a push hangs on λ, but its *sign*. Below 0.41 the sacrifice is made rarer,
# above it is made more frequent.
#
# ## Sooner or later
#
# Where does "half as much as the one before" come from? You can wait one move, and then ask the
# critic; or two; or three. The **n-step return** takes n real rewards, and lets the critic speak
# for the rest:
#
# $$G^{(n)}_t = r_t + \gamma\,r_{t+1} + \dots + \gamma^{n-1} r_{t+n-1} + \gamma^n\,V(s_{t+n})$$
#
# To let the critic's guess stand for what is still to come is called to **bootstrap**. For move 0
# the three are 2, 6 and 8. In the functions below `values` has one entry more than `rewards`, for
# where the last step led.


# %%
def n_step_return(rewards, values, n, gamma):
    earned = sum(gamma**k * rewards[k] for k in range(n))
    return earned + gamma**n * values[n]


# %%
moves, expected = [0.0, 0.0, 8.0], [4.0, 2.0, 6.0, 0.0]
print([n_step_return(moves, expected, n, gamma=1.0) for n in (1, 2, 3)])

# %% [markdown]
# Which n is right? Take them all, and give them weights that sum to 1. The **λ-return** weighs the
# n-step return with (1 − λ)·λⁿ⁻¹. At λ = 0.5 that is ½ for one step, ¼ for two, ⅛ for three, and so
# on. The game is over after three, so all longer ones would be the same 8; the last takes all the
# weight that is left, λ² = ¼.


# %%
def lambda_return(rewards, values, gamma, gae_lambda):
    last = len(rewards)
    weights = [(1 - gae_lambda) * gae_lambda ** (n - 1) for n in range(1, last)]
    weights.append(gae_lambda ** (last - 1))
    assert abs(sum(weights) - 1) < 1e-12
    returns = [n_step_return(rewards, values, n, gamma) for n in range(1, last + 1)]
    return sum(weight * each for weight, each in zip(weights, returns, strict=True))


# %% [markdown]
# ½·2 + ¼·6 + ¼·8 = 4.5. Minus the 4 that the critic expected, that is 0.5: the number of the judge
# who halves.

# %%
claim(
    "gae.mixture",
    "The λ-return of move 0 at λ = 0.5 is 4.5, which is its advantage plus what the critic expected.",
    lambda_return(moves, expected, 1.0, 0.5) == 4.5 == advantages_at(0.5)[0].item() + 4,
    control=(
        "The plain average of the three n-step returns is.",
        abs(sum(n_step_return(moves, expected, n, 1.0) for n in (1, 2, 3)) / 3 - 4.5) < 0.1,
    ),
)

# %% [markdown]
# Why is this mixture, minus V(s_t), the sum of the judge who halves? Look at an n-step return minus
# V(s_t). Two steps are enough to see it:
#
# $$r_0 + \gamma\,r_1 + \gamma^2 V(s_2) - V(s_0) = \underbrace{r_0 + \gamma V(s_1) - V(s_0)}_{\delta_0}
# + \gamma\,\underbrace{(r_1 + \gamma V(s_2) - V(s_1))}_{\delta_1}$$
#
# V(s₁) comes in once and goes out once. So an n-step return minus V is a sum of n TD errors, each
# with its γˡ. And how often does δ_{t+l} occur in the mixture? In all n-step returns with n > l.
# Their weights (1 − λ)·(λˡ + λˡ⁺¹ + …) add up to λˡ. (Where the game ends, the last return takes the
# weight that is left, and the sum is λˡ as before.) So its weight is γˡ·λˡ:
#
# $$\hat{A}_t = \sum_{l \ge 0} (\gamma\lambda)^l\,\delta_{t+l} = \delta_t + \gamma\lambda\,\hat{A}_{t+1}$$
#
# The right half is how it is computed: one pass from the last step to the first. That is all of the
# package's function. `trace_factors` gives γλ for each step, and 0 where an episode ended;
# `torch.addcmul(a, b, c)` is a + b·c in one operation:

# %%
show_source(compute_gae)

# %% [markdown]
# Going backwards, each step collects what came later. Now look at it from the side of a single TD
# error. It counts fully for its own step, times γλ for the step before, times (γλ)² for the one
# before that. This fading mark that it leaves on the past is called its **trace**. Where an episode
# ends the trace is cut, since what comes then belongs to another game.
#
# The three ways of computing it, on a random game of twelve steps that is cut off unfinished, at γ
# = 0.9 and λ = 0.8. First a sum with weights of your choice, and the game:


# %%
def weighted_sum(errors, weight_of):
    return sum(weight_of(later) * error for later, error in enumerate(errors))


# %%
generator = torch.Generator().manual_seed(0)
earned = torch.randn(12, 1, generator=generator, dtype=torch.float64)
seen = torch.randn(13, 1, generator=generator, dtype=torch.float64)
no_end = torch.zeros(12, 1, dtype=torch.bool)
before, after = seen[:-1], seen[1:]

# %% [markdown]
# Then the recursion, the sum of TD errors and the mixture, and one more sum, in which the first TD
# error has faded already:

# %%
recursion = compute_gae(earned, before, after, no_end, no_end, gamma=0.9, gae_lambda=0.8)
surprises = td_errors(earned, before, after, no_end, gamma=0.9)
double_sum, mixture, faded = torch.zeros(3, 12, 1, dtype=torch.float64)
for t in range(12):
    double_sum[t] = weighted_sum(surprises[t:], lambda later: (0.9 * 0.8) ** later)
    faded[t] = weighted_sum(surprises[t:], lambda later: (0.9 * 0.8) ** (later + 1))
    mixture[t] = lambda_return(earned[t:], seen[t:], 0.9, 0.8) - seen[t]

# %%
claim(
    "gae.three_ways",
    "The recursion, the sum of TD errors and the mixture of n-step returns agree to 12 digits.",
    (double_sum - recursion).abs().max() < 1e-12 and (mixture - recursion).abs().max() < 1e-12,
    control=(
        "So does the sum whose weights begin with γλ.",
        (faded - recursion).abs().max() < 1e-2,
    ),
)

# %% [markdown]
# How far does a trace reach? PPO programs often take γ = 0.99 and λ = 0.95. Then a TD error counts
# 0.94 for the step before its own, and about 0.5 for the step 11 back. All weights together make
# 1 / (1 − γλ).

# %%
weights = 0.9405 ** torch.arange(1000, dtype=torch.float64)
claim(
    "gae.reach",
    "At γ = 0.99 and λ = 0.95 all weights sum to 16.8, and the step twelve back gets less than half.",
    abs(weights.sum() - 16.807) < 1e-3 and weights[11] > 0.5 > weights[12],
    control=("They sum to 20, which is 1 / (1 − λ).", abs(weights.sum() - 20) < 1),
)

# %% [markdown]
# So an action is judged by what happens in the next dozen or two steps, and by the critic for the
# rest.
#
# ## The two ends of the scale
#
# λ = 0 leaves one TD error: believe the critic after a single step. λ = 1 lets all V in between
# cancel; what is left is G − V(s), the reward-to-go minus a baseline, as you had it in lesson 05.
# Test it on a random game that is played to its end:

# %%
finished = no_end.clone()
finished[-1] = True
game = (earned, before, after, finished, no_end)
shortest, longest = (compute_gae(*game, gamma=0.9, gae_lambda=x) for x in (0.0, 1.0))
surprise = td_errors(earned, before, after, finished, gamma=0.9)
long_view = rewards_to_go(earned, finished, gamma=0.9) - before
unfinished = compute_gae(earned, before, after, no_end, no_end, gamma=0.9, gae_lambda=1.0)

# %%
claim(
    "gae.two_ends",
    "λ = 0 gives the TD error, and λ = 1 gives the reward-to-go minus V, to 12 digits.",
    torch.equal(shortest, surprise) and (longest - long_view).abs().max() < 1e-12,
    control=(
        "λ = 1 gives the reward-to-go minus V as well if the game is cut off unfinished.",
        (unfinished - long_view).abs().max() < 1e-2,
    ),
)

# %% [markdown]
# "At λ = 1 the critic has no say." Two conditions hide in that sentence. The first: **the game must
# have been played to its end.** Programs collect a fixed number of steps and stop wherever they
# are. Stop the game of three moves after two. Of the whole game, λ = 1 said +4 about the sacrifice.
# What does it say now?

# %%
predict("gae.cut", None)

# %%
cut = {"rewards": rewards[:2], "values": values[:2], "next_values": next_values[:2]}
cut |= {"terminated": no_end[:2], "truncated": no_end[:2]}
compare("gae.cut", advantages_at(1.0, **cut)[0])

# %% [markdown]
# 0 + 0 + 6 − 4 = 2. The 6 is what the critic expected when you stopped: it stands for everything that
# was not seen, at λ = 1 as well.

# %%
claim(
    "gae.cut",
    "Stopped after two moves, λ = 1 says +2 about the sacrifice and no longer +4.",
    advantages_at(1.0)[0] == 4 and advantages_at(1.0, **cut)[0] == 2,
    control=(
        "At λ = 0 stopping changes what is said about it, too.",
        advantages_at(0.0, **cut)[0] != advantages_at(0.0)[0],
    ),
)

# %% [markdown]
# The second condition is on what you want. γ is a knob of its own, and no λ undoes what γ does. That
# comes below, when there is something exact to compare with.
#
# ## A walk that can be solved
#
# Seven places in a row. Each move goes one place left or right, by a coin. Whoever falls off on the
# left gets nothing. The goal on the right counts as an eighth place: there any move earns 1 and ends
# the game. You start in the middle.
#
# ```
# end <-- (0) <--> (1) <--> (2) <--> (3, start) <--> (4) <--> (5) <--> (6) --> (goal: +1) --> end
# ```
#
# The whole world is known here, so V can be computed: from place 0 the walk gets to the goal one
# time in eight, from place 1 two times in eight, and so on. And so can whatever GAE does:
# `gae_moments` gives the mean and the variance of Â for each state and action, and of the gradient
# that one episode estimates, Σ ∇log π · Â. Nothing is sampled.

# %%
walk = exact.random_walk(7, noise=0.0)
coin = torch.zeros(8, 2, dtype=torch.float64)  # logits: a row for each place and the goal
policy = exact.softmax_policy(walk, coin)
truth = exact.state_values(walk, policy, gamma=1.0)
print("V times 8:", [round(8 * value) for value in truth.tolist()])


# %%
def moments(critic, gae_lambda):
    return exact.gae_moments(walk, coin, critic, gamma=1.0, gae_lambda=gae_lambda)


# %% [markdown]
# Is that what `compute_gae` does on real episodes? Draw 5,000, weigh their steps by GAE with a critic
# that says half of the truth, and compare their mean with the mean that `gae_moments` gives for this critic,
# in standard errors. (The true gradient is another vector: the control compares with that one.)

# %%
episodes = exact.sample_trajectories(walk, policy, num_trajectories=5000, generator=generator)
half = truth / 2
ends, nowhere = episodes.terminated, torch.zeros_like(episodes.terminated)
critic_before, critic_after = half[episodes.states], half[episodes.next_states]
scored = compute_gae(
    episodes.rewards, critic_before, critic_after, ends, nowhere, gamma=1.0, gae_lambda=0.9
)

# %% [markdown]
# How far is the mean gradient from a target? Take its worst entry, in standard errors:


# %%
def off(weights, target):
    estimates = exact.gradient_estimates(walk, coin, episodes, weights)
    mean, covariance = exact.mean_and_covariance(episodes.probabilities, estimates)
    standard_errors = (covariance.diagonal() / 5000).sqrt().clamp(min=1e-9)
    return ((mean - target).abs() / standard_errors).max()


# %%
gradient = exact.policy_gradient(walk, coin, gamma=1.0).flatten()
claim(
    "gae.sampled",
    "All numbers of the sampled gradient are within 5 standard errors of the exact mean at λ = 0.9.",
    off(scored, moments(half, 0.9).gradient_mean) < 5,
    control=(
        "They are within 5 standard errors of the true gradient, too.",
        off(scored, gradient) < 5,
    ),
)

# %% [markdown]
# The control says that this critic leads astray. By how much, and at which λ, is the question.
#
# ## If the critic were right
#
# First a critic that knows V exactly. Then, whatever λ is, the mean of Â is the advantage. Why? δ_t
# = r + γV(s_{t+1}) − V(s_t) has the mean A(s, a). And every later TD error has mean zero, since V(s_t) is the
# mean of r + γV(s_{t+1}) under the policy. Weights on zeros change nothing.

# %%
gains = exact.advantages(walk, policy, gamma=1.0)


def astray(critic):
    means = [moments(critic, x).advantage_mean for x in (0.0, 0.5, 0.95, 1.0)]
    return max((mean - gains).abs().max() for mean in means)


# %%
average = (policy * moments(truth, 0.95).advantage_mean).sum(-1)
claim(
    "gae.perfect_critic",
    "With V exact, Â has the mean A(s, a) at every λ, and 0 over the policy's actions.",
    astray(truth) < 1e-12 and average.abs().max() < 1e-12,
    control=("So it is with half of V.", astray(half) < 1e-2),
)

# %% [markdown]
# So with a perfect critic there is no bias, and λ decides about noise alone. Each further term adds
# its own luck to Â. And to the gradient? That is the changed sentence below, and it fails. (You come
# back to it later.)

# %%
exactly = [moments(truth, x) for x in (0.0, 0.5, 0.9, 1.0)]
of_one = torch.stack([one.advantage_variance for one in exactly])
of_gradient = torch.stack([one.gradient_covariance.trace() for one in exactly])

# %%
claim(
    "gae.perfect_noise",
    "With V exact, the variance of Â given state and action never falls as λ grows, and in places it rises.",
    (of_one.diff(dim=0) > -1e-12).all() and (of_one.diff(dim=0).amax((1, 2)) > 1e-3).all(),
    control=(
        "The variance of the gradient never falls, either.",
        (of_gradient.diff() > -1e-12).all(),
    ),
)

# %% [markdown]
# ## A critic that is half right
#
# Now the critic that says half of V, everywhere. You play ten episodes and average their gradients.
# How far from the true gradient will that be? The squared error has two parts, which you know from
# γ in lesson 01:
#
# squared error = bias² + variance / n
#
# for n episodes. (The variance of a vector is that of its entries, added up.) At λ = 0 you believe
# a critic that is wrong by half, at λ = 1 you take all the luck of the walk. Which λ gives the
# least error?

# %%
predict("gae.best_lambda", None)

# %% [markdown]
# Bias and variance, for 101 values of λ:


# %%
def sweep(critic, lambdas=lambdas):
    each = [moments(critic, x) for x in lambdas.tolist()]
    bias = torch.stack([(one.gradient_mean - gradient).norm() for one in each])
    variance = torch.stack([one.gradient_covariance.trace() for one in each])
    return bias, variance


# %%
bias, variance = sweep(half)
best = {n: lambdas[(bias**2 + variance / n).argmin()].item() for n in (1, 10, 1000)}
compare("gae.best_lambda", best[10])

# %% [markdown]
# All this is about the gradient. There is something that most texts leave out: the bias of the
# *advantage*. How far is the mean of Â from A(s, a)? (Root mean square over the states and actions
# that the policy meets.)

# %%
visits = exact.state_visits(walk, policy, gamma=1.0)
share = visits.unsqueeze(-1) * policy / visits.sum()


def advantage_bias(critic, gae_lambda):
    wrong_by = moments(critic, gae_lambda).advantage_mean - gains
    return (share * wrong_by**2).sum().sqrt()


# %%
of_advantage = torch.stack([advantage_bias(half, x) for x in lambdas.tolist()])
print(f"at λ = 0: gradient off by {bias[0]:.3f}, advantage off by {of_advantage[0]:.3f}")

# %% [markdown]
# At λ = 1 the gradient is off by 0. And the advantage?

# %%
predict("gae.bias_at_one", None)

# %%
compare("gae.bias_at_one", of_advantage[-1])

# %% [markdown]
# In one picture, the error of the gradient on the left and both biases on the right:

# %%
show(
    figures.two_biases(
        *(each.numpy() for each in (lambdas, bias, variance, of_advantage)), episodes=(1, 10, 1000)
    ),
    alt="Left: squared error of the gradient over lambda for 1, 10 and 1,000 episodes; the lowest points lie "
    "at 0.57, 0.87 and 1. Right: the bias of the gradient falls from 0.29 to 0, the bias of the advantage "
    "rises from 0.11 to 0.28.",
)

# %% [markdown]
# On the left: one episode is so noisy that some bias is a good bargain. The more episodes, the less
# noise is left in their mean, and the less bias you should pay to reduce it.

# %%
claim(
    "gae.more_episodes",
    "The best λ grows with the batch: below 0.7 for one episode, above 0.8 for 10, above 0.98 for 1,000.",
    best[1] < 0.7 and 0.8 < best[10] < 0.95 and best[1000] > 0.98,
    control=("λ = 1, without bias, is best for 10 episodes as well.", best[10] > 0.99),
)

# %% [markdown]
# ## Two biases, two directions
#
# On the right is the surprise. At λ = 1 the gradient has no bias at all, and the advantages are as
# wrong as they ever get: each is off by the critic's whole error.

# %%
at_one = moments(half, 1.0)
claim(
    "gae.two_biases",
    "At λ = 1 the gradient's bias is 0 to 12 digits; each advantage is off by minus the critic's error.",
    (at_one.gradient_mean - gradient).norm() < 1e-12
    and (at_one.advantage_mean - gains + (half - truth).unsqueeze(-1)).abs().max() < 1e-12,
    control=(
        "As λ goes from 0 to 1 the advantage's bias falls, too.",
        of_advantage[-1] < of_advantage[0],
    ),
)

# %% [markdown]
# How can wrong advantages make a right gradient? Look at where the critic speaks. In every n-step
# return minus V(s_t) it speaks twice:
#
# $$\underbrace{r_t + \dots + \gamma^{n-1} r_{t+n-1}}_{\text{facts}} \;+\;
# \underbrace{\gamma^n\,V(s_{t+n})}_{\text{forecast}} \;-\; \underbrace{V(s_t)}_{\text{baseline}}$$
#
# - The **baseline** V(s_t) is about the state *before* the action. If it is wrong, it is wrong by
#   the same number for every action. Such a number times the score has mean zero. It cancels.
# - The **forecast** V(s_{t+n}) is about a state *after* the action. Which state that is, depends on
#   the action; so does the error, as a rule. Then it does not cancel.
#
# λ decides how much the forecasts weigh. At λ = 1 there are none, and the baseline's error is all
# that is left: large in each advantage, nothing in the gradient. **As a baseline the critic costs
# no bias, however wrong it is. As a forecast it does.**
#
# The control takes the word "state" out of it: errors of the same size as before, but in one action
# with the opposite sign. With λ = 1 the gradient's bias is the mean of score times error:

# %%
scores = exact.score_table(walk, coin)


def pushed_astray(error):
    weight = visits.unsqueeze(-1) * policy * error
    return (weight.unsqueeze(-1) * scores).sum((0, 1)).norm()


of_state = (half - truth).unsqueeze(-1).expand(8, 2)
of_action = of_state * torch.tensor([1.0, -1.0], dtype=torch.float64)

# %%
claim(
    "gae.cancels",
    "An error that depends on the state alone cancels in the gradient.",
    pushed_astray(of_state) < 1e-12,
    control=(
        "An error of the same size that depends on the action cancels, too.",
        pushed_astray(of_action) < 0.1,
    ),
)

# %% [markdown]
# Now the second condition from above. With γ = 0.9 and λ = 1 the critic has no say, so the mean is
# what lesson 01 called the usual update: the reward-to-go, discounted, as the weight. It is not the
# gradient of the sum of rewards that you wanted. λ = 1 frees you from the critic, not from γ.

# %%
discounted = exact.gae_moments(walk, coin, half, gamma=0.9, gae_lambda=1.0).gradient_mean
usual = exact.usual_update(walk, coin, gamma=0.9).flatten()
claim(
    "gae.discounted",
    "At γ = 0.9 and λ = 1 the mean is the usual update for that γ, to 12 digits, with half of V as critic.",
    (discounted - usual).norm() < 1e-12,
    control=(
        "It is the gradient of the undiscounted J.",
        (discounted - gradient).norm() < 0.1 * gradient.norm(),
    ),
)

# %% [markdown]
# ## A sentence that is half true
#
# "With growing λ, bias falls and variance rises." You will read it everywhere, and it stands on the
# course's list of [half truths](../docs/half_truths.md). Of the advantage's bias it is false: you saw
# it rise. Of the gradient it is a rule of thumb, and each half of it has exceptions.
#
# **Variance.** Take a critic that is right on average, but inconsistent: 0.3 too high in one place,
# 0.3 too low in the next, in turns. At λ = 0 all you hear is this critic contradicting itself from
# step to step. A larger λ averages that out, and the variance *falls*, before the luck of the walk
# makes it rise.

# %%
turns = torch.tensor([0.3, -0.3] * 4, dtype=torch.float64)
curves = {"half of V": variance, "V exactly": sweep(truth)[1]}
curves["V ± 0.3, in turns"] = sweep(truth + turns)[1]
show(
    figures.variances(lambdas.numpy(), {name: line.numpy() for name, line in curves.items()}),
    alt="Variance of the gradient over lambda for three critics. All rise steeply near 1. With the inconsistent "
    "critic it is highest at 0 and lowest at 0.85; with V exact it is lowest at 0.71.",
)

# %%
uneven = curves["V ± 0.3, in turns"]
claim(
    "gae.not_monotone",
    "With the inconsistent critic the variance is larger at λ = 0 than at 1, and smallest in between.",
    uneven[0] > 1.2 * uneven[-1] and uneven.min() < 0.6 * uneven[-1],
    control=(
        "With growing λ the variance never falls.",
        (uneven.diff() >= 0).all(),
    ),
)

# %% [markdown]
# And the bias of its advantages falls with λ, where that of half of V rose. For them there is no
# rule at all:

# %%
uneven_bias = [advantage_bias(truth + turns, x) for x in (0.0, 1.0)]
claim(
    "gae.no_rule",
    "From λ = 0 to 1 the advantage's bias more than doubles with half of V, and falls with the other.",
    of_advantage[-1] > 2 * of_advantage[0] and uneven_bias[1] < 0.6 * uneven_bias[0],
    control=("It rises with both critics.", uneven_bias[1] > uneven_bias[0]),
)

# %% [markdown]
# And a perfect critic? The noise of each Â does rise with λ. But a gradient adds up the steps of an
# episode, and the errors of one step may undo those of another. With V exact its noise is least at
# λ = 0.71. So "the critic is perfect, take λ = 0" is no theorem, either.
#
# **Bias.** A critic that is 0.3 too high *everywhere*. As a baseline that is harmless. As a
# forecast, too, as long as every action leads to a forecast. But in place 0, next to the left end,
# one action leads to an end, which counts 0, and the other to a state that is praised by 0.3 too much.

# %%
too_high = sweep(truth + 0.3, lambdas[[0, 50, 90, 100]])[0]
print(f"bias at λ = 0: {too_high[0]:.3f}")

# %% [markdown]
# At λ = 1 it is 0. What is it at λ = 0.9?

# %%
predict("gae.too_high", None)

# %%
compare("gae.too_high", too_high[2], digits=3)
print("λ       0.0    0.5    0.9    1.0")
print("bias  ", "  ".join(f"{number:.3f}" for number in too_high.tolist()))

# %% [markdown]
# It rises first, and falls to 0 only near the end of the scale. At λ = 0 an action is judged by the next
# state alone, and only in place 0 does it decide whether that is an end. With a larger λ later forecasts
# count. Then every place has an action that leads nearer to an end, and all of them are pushed astray:

# %%
claim(
    "gae.bias_may_rise",
    "With a critic 0.3 too high, the gradient's bias is larger at λ = 0.9 than at 0; at 1 it is 0.",
    too_high[2] > 1.2 * too_high[0] and too_high[3] < 1e-12,
    control=("From λ = 0 to 0.9 it falls, as it does with half of V.", too_high[2] < too_high[0]),
)

# %% [markdown]
# Is it the end that makes the difference? Take a ring of four places, where *every* step ends the
# game with probability 0.1, whatever you do. Place 0 pays 1 per step. Let the critic be 1 too high
# everywhere. At λ = 0 the forecast is then 0.9·1 too high, since the game goes on nine times out of
# ten, and the baseline is 1 too high: −0.1 in all, for every action.

# %%
ring, coins = exact.ergodic(4, ending=0.1), torch.zeros(4, 2, dtype=torch.float64)
around = exact.softmax_policy(ring, coins)
one_more = exact.state_values(ring, around, gamma=1.0) + 1
right = exact.policy_gradient(ring, coins, gamma=1.0).flatten()
on_ring = {
    x: exact.gae_moments(ring, coins, one_more, gamma=1.0, gae_lambda=x) for x in (0.0, 0.5, 1.0)
}
wrong_by = [on_ring[x].advantage_mean - exact.advantages(ring, around, gamma=1.0) for x in on_ring]

# %%
claim(
    "gae.constant_error",
    "On the ring a critic 1 too high shifts all advantages, by −0.1 at λ = 0 and −1 at 1, and no gradient.",
    (wrong_by[0] + 0.1).abs().max() < 1e-12
    and (wrong_by[2] + 1).abs().max() < 1e-12
    and all((on_ring[x].gradient_mean - right).norm() < 1e-12 for x in on_ring),
    control=("On the walk a constant error leaves the gradient alone, too.", too_high[0] < 1e-3),
)

# %% [markdown]
# What is certain, then?
#
# | certain | usual, but it depends on the critic |
# | --- | --- |
# | λ = 1, γ = 1, whole episodes: the gradient has no bias | a larger λ: less bias of the gradient |
# | V exact, γ = 1: no bias at any λ | a larger λ: more variance, most of all near 1 |
# | V exact: the noise of each Â never falls as λ grows | |
#
# (All this holds for a critic that was not fitted to the episodes that it scores. Where it was, a part of the
# gradient is missing at λ = 1, too: lesson 05.)
#
# ## Which λ, then?
#
# The answer to the question at the top, for the walk: let the critic say 0 %, 10 %, … too little,
# and look for the best λ.

# %%
shortfalls, grid = torch.linspace(0, 1, 11), torch.linspace(0, 1, 51, dtype=torch.float64)
swept = [sweep((1 - error) * truth, grid) for error in shortfalls.tolist()]
best_at = {
    n: np.array([grid[(b**2 + v / n).argmin()].item() for b, v in swept])
    for n in (1, 10, 100, 1000)
}

# %%
show(
    figures.best_lambdas(shortfalls.numpy(), {n: best_at[n] for n in (10, 100, 1000)}),
    alt="The best lambda over the error of the critic, for 10, 100 and 1,000 episodes. All start at "
    "0.7 and rise with the error, to 0.92 for 10 episodes and to nearly 1 for more.",
)

# %% [markdown]
# The worse the critic, the longer you should wait before believing it; and the more episodes you
# average, the less you need its help. (At the left edge all lines meet. An exact critic brings no bias,
# so there is only noise to choose by, and its lowest point is the same for any number of episodes.)

# %%
claim(
    "gae.worse_critic",
    "With 10 episodes the best λ rises from about 0.7 for the exact critic to above 0.9 for a useless one.",
    best_at[10][0] < 0.75 < 0.9 < best_at[10][-1] and (np.diff(best_at[10]) >= 0).all(),
    control=("With a single episode it never falls, either.", (np.diff(best_at[1]) >= 0).all()),
)

# %% [markdown]
# (With one episode noise counts most, and a critic that says less also makes less noise.) Nobody
# knows these curves for a real task. But the optimum is flat on one side, and steep on the other:

# %%
error = bias**2 + variance / 10
near = error[(lambdas > 0.795) & (lambdas < 0.925)]
claim(
    "gae.flat",
    "With half of V and 10 episodes, λ from 0.8 to 0.92 costs at most 10 % more than the best.",
    near.max() < 1.1 * error.min(),
    control=("So does λ = 0.95.", error[95] < 1.1 * error.min()),
)

# %% [markdown]
# You need not meet it exactly, and too small is the better side to miss it on. PPO programs often take
# 0.95; so does this package, by default. Here that costs a third more than the best. On a real task
# you do not know. A batch of 2,048 steps may hold two episodes or a hundred, and critics differ.
#
# ### Try it with your hands
#
# First, the bargain. Drag λ, choose γ, the size and the shape of the critic's error, and the number
# of episodes. On the left is what λ weighs, in the middle bias², variance / n and their sum, on the
# right the two biases. Where is the best λ for a critic that is too high by a constant? For which
# number of episodes is it below 0.1? (Where no widget can run, you see a picture.)

# %%
bargain = LambdaTradeoff(keep_as="gae.best_lambda_here")
bargain

# %% [markdown]
# Its numbers are those of this page. Check the bias, wherever you have moved it:

# %%
at = exact.gae_moments(
    walk, coin, bargain.critic, gamma=bargain.gamma, gae_lambda=round(bargain.gae_lambda, 2)
)
shown = bargain.numbers()
assert math.isclose((at.gradient_mean - gradient).norm() ** 2, shown["bias_squared"], abs_tol=1e-6)
print("the widget and gae_moments agree")

# %% [markdown]
# Then the recursion, on six rows. It runs backwards, from row 5 to row 0. Drag a reward or a value,
# press a step to change how it ended, and see where the sum passes and where it is cut.
# (`truncated` you meet in lesson 07: the sum is cut, but the value behind the step still counts.)

# %%
scan = GaeScan(keep_as="gae.row_zero")
scan

# %% [markdown]
# Row 0 again, as a sum: its TD errors up to the first row from which the sum does not go on.

# %%
reach = scan.goes.index(False) + 1
row_zero = weighted_sum(
    scan.td_errors[:reach], lambda later: (scan.gamma * scan.gae_lambda) ** later
)
assert math.isclose(row_zero, scan.advantages[0], abs_tol=1e-9)
print("the widget and the sum agree")

# %% [markdown]
# ## What breaks it
#
# **The missing parenthesis.** (γλ)ˡ is copied as γλˡ, in articles and in code. At γ = 0.99 and λ =
# 0.95 you do not notice it by eye:

# %%
steps = torch.arange(4, dtype=torch.float64)
print("(γλ)ˡ ", "  ".join(f"{weight:.4f}" for weight in ((0.99 * 0.95) ** steps).tolist()))
print("γλˡ   ", "  ".join(f"{weight:.4f}" for weight in (0.99 * 0.95**steps).tolist()))

# %% [markdown]
# But you know what must come out at λ = 0. A test at an end of the scale finds what no plot shows.

# %%
at_zero = torch.zeros_like(surprises)
for t in range(12):
    at_zero[t] = weighted_sum(surprises[t:], lambda later: 0.9 * 0.0**later)

# %%
claim(
    "gae.parenthesis",
    "Without the parenthesis λ = 0 gives γ·δ, and not the TD error.",
    torch.allclose(at_zero, 0.9 * surprises, rtol=1e-12)
    and not torch.allclose(at_zero, surprises, rtol=1e-2),
    control=("At λ = 0 the parenthesis makes no difference.", torch.allclose(at_zero, surprises)),
)

# %% [markdown]
# **A trace that is not cut.** Behind the game of three moves stands the next one in the same
# column. If the mark of the end is missing, that game's luck flows into this one. (The third next
# value is 4: what the critic expects at the start of the second game.) Alter the second game's last
# reward, and see which advantages of the first one move:

# %%
double = {"rewards": table(0, 0, 8, 0, 0, 8), "values": table(4, 2, 6, 4, 2, 6)}
double["next_values"] = table(2, 6, 4, 2, 6, 0)
double["terminated"] = torch.tensor([[False], [False], [True]] * 2)
luckier = double | {"rewards": table(0, 0, 8, 0, 0, 100)}


def leak(**marks):
    nothing = {"truncated": torch.zeros(6, 1, dtype=torch.bool)} | marks
    return (advantages_at(0.95, **luckier | nothing) - advantages_at(0.95, **double | nothing))[:3]


# %%
claim(
    "gae.trace_is_cut",
    "What happens in the second game moves no advantage of the first.",
    (leak() == 0).all(),
    control=(
        "So it is if the end of the first game is not marked.",
        (leak(terminated=torch.zeros(6, 1, dtype=torch.bool)) == 0).all(),
    ),
)

# %% [markdown]
# There is more to say about ends: what if you stopped watching, but the game would have gone on?
# Lesson 07 is about nothing else.
#
# **Normalised too early.** The critic needs a target, and GAE provides it: advantage + V is the
# λ-return, what the critic should have said. Programs also *normalise* advantages for the policy,
# to mean 0 and deviation 1:

# %%
show_source(normalize_advantages)

# %% [markdown]
# Build the targets first, then normalise. In the other order the target is V plus a number around
# 0, and the critic is taught to say what it says already. Two states, V = 100 in both, advantages 5
# and 3:

# %%
raw, said = torch.tensor([5.0, 3.0], dtype=torch.float64), 100.0
targets, too_early = raw + said, normalize_advantages(raw) + said
print("targets            ", targets.tolist())
print("normalised first   ", [round(number) for number in too_early.tolist()])

# %%
claim(
    "gae.order",
    "The targets are 105 and 103; normalised first, they are 101 and 99.",
    targets.tolist() == [105, 103] and (too_early - torch.tensor([101, 99])).abs().max() < 1e-6,
    control=(
        "The order does not matter, since normalising keeps the mean.",
        torch.allclose(targets.mean(), too_early.mean()),
    ),
)

# %% [markdown]
# **Normalised in small groups.** It is common to normalise within each minibatch, the handful of
# samples of one optimiser step. Two actions were both better than expected, by 5 and by 4, and they
# make up a minibatch of their own. What does the 4 become?

# %%
predict("gae.sign_flip", None)

# %%
pair = normalize_advantages(torch.tensor([5.0, 4.0], dtype=torch.float64))
trio = normalize_advantages(torch.tensor([5.0, 4.0, -9.0], dtype=torch.float64))
compare("gae.sign_flip", pair[1])

# %% [markdown]
# A good action is pushed *down*, for its company. With a weak sample beside the two, neither is.

# %%
claim(
    "gae.sign_flip",
    "Advantages 5 and 4, normalised on their own, become +1 and −1.",
    (pair - torch.tensor([1.0, -1.0])).abs().max() < 1e-6,
    control=("With −9 beside them the 4 is turned, too.", trio[1] < 0),
)

# %% [markdown]
# (The package's deviation divides the sum of squares by n. torch's own `std` divides it by n − 1; then
# the two become +0.71 and −0.71, and a single sample becomes the NaN of lesson 05.)
#
# In a large minibatch the mean is no luck. It is what the critic misses on average, and near λ = 1
# that can be more than any true advantage. To take it off is one more baseline, and a help where the
# critic lags behind.

# %%
lagging, knowing = ((share * moments(each, 0.95).advantage_mean).sum() for each in (half, truth))
claim(
    "gae.mean_advantage",
    "With half of V and λ = 0.95 the mean of Â is 0.156; no true advantage is larger than 0.125.",
    abs(lagging - 0.156) < 1e-3 and abs(gains.abs().max() - 0.125) < 1e-9,
    control=("So it is with V exact.", abs(knowing - 0.156) < 1e-3),
)

# %% [markdown]
# ## Exercises
#
# [Seven exercises](../exercises/06_gae.ipynb) wait for you: write the TD errors and GAE, normalise
# advantages, build the critic's targets, predict nine numbers by hand, find a mistake in a function
# that looks right, and, for experts, mix the n-step returns. Each check tells you which mistake it is.
# What passes is kept in `my_work/answers/`. (One of them has rows that are `truncated`. The rule beside
# the second widget is enough for it; lesson 07 has the reasons.)
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("gae.long_view")

# %%
quiz("gae.which_error")

# %% [markdown]
# On bias and on batches:

# %%
quiz("gae.advantage_bias")

# %%
quiz("gae.ten_times")

# %% [markdown]
# And on the critic's targets:

# %%
quiz("gae.targets")

# %% [markdown]
# ## The stair
#
# On this stair the reward-to-go minus V becomes GAE. With it the collection changes, since GAE does not
# need whole episodes: 32 copies of Acrobot play 64 steps each, and the critic says the rest. It is an answer
# to the second wound of lesson 01, noise; the first one, data that are thrown away, stays as it was. The
# same sixteen seeds, tuned alike, run once and recorded:

# %%
study = recorded("staircase")
print(study["command"])
show(
    staircase(study, upto="+ GAE"),
    alt="Three stairs with a dot per seed, and three names that wait. Return at the end: REINFORCE mostly at "
    "−500, the baseline with a third there and the others near −90, GAE with no seed below −350.",
)

# %%
lost = {
    name: sum(run["final_return"] < -400 for run in runs)
    for name, runs in list(study["runs"].items())[:3]
}
print(lost)
claim(
    "gae.stair",
    "With GAE no seed of sixteen is lost, that is, ends below −400; before, at least five were.",
    lost["+ GAE"] == 0 and lost["+ baseline"] >= 5,
    control=("GAE loses as many as the baseline.", lost["+ GAE"] >= lost["+ baseline"]),
)

# %% [markdown]
# How much of that is GAE? This study cannot say, since more changed with it. The collection did. While no
# episode gets there, the same data now make 64 steps of the optimiser, and made 33 before. And behind the
# limit of 500 steps the first two stairs count 0, where GAE asks the critic: lesson 07 is on that.
#
# ## What you have now
#
# - A TD error is one step's surprise. GAE adds up the surprises that follow, each with one more
#   factor γλ; that is a mixture of n-step returns, minus V.
# - λ = 0 is the TD error, λ = 1 is the reward-to-go minus V, if the episode was played to its end.
# - The critic speaks twice. As a baseline its errors cancel, as a forecast they do not. So at λ = 1,
#   γ = 1 and on whole episodes the gradient is unbiased while the advantages are as wrong as the critic.
# - The worse the critic and the larger the batch, the larger the best λ: that, and "bias falls,
#   variance rises", are rules of thumb about the gradient. Certain is what the table says.
# - The critic's targets are *raw* advantages plus V. Normalise afterwards.
#
# Next: all of this took for granted that you know where an episode ends. Lesson 07 shows in how
# many ways that goes wrong. The whole loop is in [08 The training loop](08_training_loop.ipynb).
