# %% [markdown]
# # Importance sampling
#
# **May I reuse old data?**
#
# REINFORCE plays some episodes, takes one step from this **batch** of data, and throws the batch away.
# Its push is a mean over the actions that the policy draws *as it is now*, and after one step it is
# another policy. That is the first of its two wounds, and where data are dear it is the worse one: a game
# takes its time, a robot wears out, and a language model spends most of a training run on writing answers.
#
# So you want to use a batch twice, or thirty times. Here you find out what goes wrong, which single
# factor mends it, and what that factor leaves out.
#
# The words from [lesson 01](01_reinforce.ipynb): a **policy** π gives each action a probability, from
# **logits**. The **return** is the sum of rewards, discounted by **γ**; **J** is its mean. **V**(s) is
# the return to expect from a state s on, **Q**(s, a) the one after doing a first, and the **advantage**
# A(s, a) = Q − V says how much better a is than what the policy does on average.

# %% tags=["nbval-ignore-output"]
import math

import numpy as np
import torch

from ppo_lessons import claim, compare, mdp, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.figures import importance as figures
from ppo_lessons.figures.clip import stair
from ppo_lessons.importance import (
    approximate_kl,
    effective_sample_size,
    importance_ratios,
    surrogate_loss,
)
from ppo_lessons.reinforce import reinforce_loss

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("importance.review_loss")

# %%
quiz("importance.review_constant")

# %% [markdown]
# The third is where this lesson starts:

# %%
quiz("importance.review_wound")

# %% [markdown]
# ## Use it again as it stands
#
# Three arms pay 1, 2 and −2. The policy pulls them with probability 0.8, 0.1 and 0.1, so J = 0.8.
# Draw ten times, and let the ten come out exactly as they should: eight times the first arm, once the
# second, once the third. So luck plays no part here. Each advantage is what the arm pays, minus 0.8.

# %%
pays = torch.tensor([1.0, 2.0, -2.0], dtype=torch.float64)
old = torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64)
drawn = torch.tensor([0] * 8 + [1] + [2])
advantages = (pays - (old * pays).sum())[drawn]

# %% [markdown]
# One step of REINFORCE from these ten draws is right. Now take 400 steps, all from the same ten draws,
# as if each time they were fresh. The policy becomes nearly sure of one arm. Which?

# %%
predict("importance.ends_on", None, unit="(number of the arm)")

# %% [markdown]
# `squeeze` takes the steps and gives back the policy after each:


# %%
def squeeze(loss, num_steps=400):
    logits, policies = old.log(), [old]
    for _ in range(num_steps):
        logits.requires_grad_()
        log_probs = logits.log_softmax(-1)
        value = loss(log_probs[drawn], old.log()[drawn], advantages)
        logits = (logits - torch.autograd.grad(value, logits)[0]).detach()
        policies.append(logits.softmax(-1))
    return torch.stack(policies)


# %% [markdown]
# REINFORCE's loss knows nothing of the old log-probabilities, so it leaves them aside:


# %%
def as_it_stands(log_probs, log_probs_old, advantages):
    return reinforce_loss(log_probs, advantages)


# %%
without = squeeze(as_it_stands)
compare("importance.ends_on", without[-1].argmax() + 1, unit="(number of the arm)")

# %% [markdown]
# The first arm, which pays 1. The second pays twice as much, and its advantage is six times as large.

# %%
claim(
    "importance.as_it_stands",
    "400 steps on one batch end with 99 % on arm 1, and arm 2 has the highest advantage.",
    without[-1][0] > 0.99 and pays.argmax() == 1,
    control=("They end on the arm with the highest advantage.", without[-1].argmax() == 1),
)

# %% [markdown]
# Why? Add up who pushes. Arm 1 is in the batch eight times with advantage 0.2, arm 2 once with 1.2.
# So arm 1 is pushed with 1.6 and arm 2 with 1.2, *at every step*. At the first step that is as it should
# be: eight of ten is how often the policy draws arm 1. As the policy changes, the counts should change
# with it, and in the batch they do not. Reuse takes *often drawn* for *good*. You can see it in the
# logarithm of π(arm 1) / π(arm 2), the **log-odds**: each step adds (1.6 − 1.2) / 10 to it.

# %%
odds = (without[:, 0] / without[:, 1]).log().diff()

# %%
claim(
    "importance.same_push",
    "Each of the 400 steps adds the same 0.04 to the log-odds of arm 1 against arm 2.",
    torch.allclose(odds, torch.full_like(odds, 0.04), rtol=1e-9),
    control=("The last step adds less than the first.", odds[-1] < 0.9 * odds[0]),
)

# %% [markdown]
# ## The factor that is missing
#
# You want a mean over the new policy. You have draws of the old one. Multiply and divide:
#
# $$\mathbb{E}_{\text{new}}[f(a)] = \sum_a \pi_{\text{new}}(a)\, f(a)
# = \sum_a \pi_{\text{old}}(a)\,\frac{\pi_{\text{new}}(a)}{\pi_{\text{old}}(a)}\, f(a)
# = \mathbb{E}_{\text{old}}\left[\text{ratio}\cdot f(a)\right]$$
#
# The factor π_new / π_old is the **importance ratio**: how much more likely the action is now than when
# it was drawn. Weighting draws by it is called **importance sampling**. An action that is now twice as
# likely counts twice.
#
# Try it on ten draws: six of action A, which pays 10, and four of B, which pays 5, as a policy with
# 0.6 and 0.4 would draw them. The new policy takes A with probability 0.99. By hand, it earns
# 0.99 · 10 + 0.01 · 5 = 9.95.

# %%
coin_old, coin_new = (torch.tensor([p, 1 - p], dtype=torch.float64) for p in (0.6, 0.99))
coin_drawn = torch.tensor([0] * 6 + [1] * 4)
earned = torch.tensor([10.0, 5.0], dtype=torch.float64)[coin_drawn]
weights = importance_ratios(coin_new.log()[coin_drawn], coin_old.log()[coin_drawn])

# %% [markdown]
# Each A counts 0.99 / 0.6 = 1.65, each B counts 0.01 / 0.4 = 0.025. What does the mean say, without the
# weights and with them?

# %%
print(f"plain mean     {earned.mean():.2f}")
print(f"weighted mean  {(weights * earned).mean():.2f}")

# %% [markdown]
# The plain mean is what the *old* policy earns. The weighted one is right:

# %%
claim(
    "importance.reweighting",
    "Weighted by the ratio, ten draws of the old policy give the 9.95 that the new one earns.",
    math.isclose((weights * earned).mean(), 9.95, rel_tol=1e-12),
    control=(
        "Weighted by old over new, they do.",
        math.isclose((earned / weights).mean(), 9.95, rel_tol=1e-2),
    ),
)

# %% [markdown]
# Now put the factor into the loss. Instead of log π times advantage, average *ratio times advantage*.
# What you then climb is called the **surrogate**, since it stands in for J, and it has the letter
# **L**. The loss is its negative:

# %%
show_source(surrogate_loss)

# %% [markdown]
# The same 400 steps, from the same ten draws:

# %%
corrected = squeeze(surrogate_loss)
names = ["arm 1: drawn 8 times, pays 1", "arm 2: drawn once, pays 2", "arm 3: pays -2"]

# %%
show(
    figures.reuse(without.numpy(), corrected.numpy(), names=names),
    alt="Probabilities of three arms over 400 steps. Without a ratio arm 1 rises to 1. With the "
    "ratio arm 1 rises for a few steps, then falls, and arm 2 rises to 1.",
)

# %% [markdown]
# The first step is the same in both: where nothing has moved, the ratio is 1, and its gradient is that
# of log π. Then the left policy is pushed as before, for ever. On the right each draw is
# counted as often as the policy of that moment would draw it.

# %%
claim(
    "importance.with_ratio",
    "The first step is the same, and with the ratio the policy ends with 99 % on arm 2.",
    torch.allclose(without[1], corrected[1], rtol=1e-12) and corrected[-1][1] > 0.99,
    control=("The tenth step is the same, too.", torch.allclose(without[10], corrected[10])),
)

# %% [markdown]
# ## What is a weighted sample worth?
#
# Two properties of ratios help to see trouble. First, **under the old policy their mean is 1**: put
# f = 1 into the equation. So a batch whose mean ratio is far from 1 says that something is missing in
# it. Second, they spread. The wider they spread, the more the mean hangs on a few draws.

# %%
claim(
    "importance.mean_one",
    "Over draws of the old policy the ratio has mean 1 and variance 0.634.",
    math.isclose(weights.mean(), 1, rel_tol=1e-12)
    and math.isclose(weights.var(correction=0), 0.63375, rel_tol=1e-9),
    control=(
        "Over draws of the new policy the ratio has mean 1.",
        math.isclose((coin_new * coin_new / coin_old).sum(), 1, rel_tol=0.1),
    ),
)

# %% [markdown]
# The **effective sample size** turns the spread into a number that you can picture: how many draws
# with equal weights would be as good?
#
# $$\text{ESS} = \frac{\left(\sum_i w_i\right)^2}{\sum_i w_i^2}$$
#
# Six draws weigh 1.65 here, four weigh 0.025. How many draws are the ten worth?

# %%
predict("importance.worth", None, unit="of 10 draws")

# %%
compare("importance.worth", effective_sample_size(weights), unit="of 10 draws")

# %% [markdown]
# Nearly all the weight lies on the six. On the right of the picture: what is left of a batch when the
# new policy takes A with another probability.

# %%
chances = torch.linspace(0, 1, 201, dtype=torch.float64)
worth = 1 / (chances**2 / 0.6 + (1 - chances) ** 2 / 0.4)

# %%
show(
    figures.reweighting(coin_old.tolist(), coin_new.tolist(), chances.numpy(), worth.numpy()),
    alt="Left: bars of two actions, 0.6 to 0.99 with ratio 1.65 and 0.4 to 0.01 with ratio 0.025. "
    "Right: the effective sample size is 100 % at 0.6 and falls to both sides, to 61 % at 0.99.",
)

# %% [markdown]
# It can be worse. Turn the two policies round: the data come from the one that is sure of A, and the
# other one wants B four times in ten. A hundred draws hold about one B, and it weighs 40.

# %%
there, back = 1 / (coin_new**2 / coin_old).sum(), 1 / (coin_old**2 / coin_new).sum()

# %%
claim(
    "importance.way_back",
    "From 0.6 to 0.99 a batch is worth 61 % of its draws, and from 0.99 to 0.6 it is worth 6 %.",
    math.isclose(there, 0.612, abs_tol=5e-4) and math.isclose(back, 0.061, abs_tol=5e-4),
    control=("The way back costs as much.", math.isclose(back, 0.612, abs_tol=0.1)),
)

# %% [markdown]
# Reuse is dear when the new policy wants what the old one rarely did.
#
# ## Never divide probabilities
#
# Look at how the package computes a ratio: from logarithms.

# %%
show_source(importance_ratios)

# %% [markdown]
# An answer of 200 words, each with a probability of about 1/e, has the log-probability −200. As a
# probability that is 0 in float32, and 0 / 0 is not a number.

# %%
log_prob, log_prob_old = torch.tensor([-200.0]), torch.tensor([-200.1])
ratio = importance_ratios(log_prob, log_prob_old)
quotient = log_prob.exp() / log_prob_old.exp()

# %%
claim(
    "importance.log_space",
    "From log-probabilities −200 and −200.1 the ratio is 1.105.",
    abs(ratio - math.exp(0.1)) < 1e-4,
    control=("The quotient of the two probabilities is 1.105.", abs(quotient - 1.105) < 0.1),
)

# %% [markdown]
# ## What the old policy never does
#
# "Multiply and divide" has one condition: do not divide by 0. Three actions pay 1, 2 and 10, and the
# old policy never takes the third. The new one does, in four cases of ten.

# %%
wanted = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
never = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
rarely = torch.tensor([0.5, 0.499, 0.001], dtype=torch.float64)
three_pay = torch.tensor([1.0, 2.0, 10.0], dtype=torch.float64)

# %% [markdown]
# The new policy earns 0.3 + 0.6 + 4 = 4.9. A policy's draws can show only what it tries. What they say,
# on average: the weighted mean, the mean ratio, and what a draw is worth.


# %%
def seen_from(policy):
    tried = policy > 0
    chances, weights = policy[tried], wanted[tried] / policy[tried]
    weighted_mean = (chances * weights * three_pay[tried]).sum()
    return weighted_mean, (chances * weights).sum(), 1 / (chances * weights**2).sum()


# %% [markdown]
# From a policy that never takes the third action, and from one that takes it one time in a thousand:

# %%
blind, seeing = seen_from(never), seen_from(rarely)
print(f"never taken:           weighted mean {blind[0]:.2f}, mean ratio {blind[1]:.2f}")
print(f"one time in thousand:  weighted mean {seeing[0]:.2f}, mean ratio {seeing[1]:.2f}")

# %% [markdown]
# The four that are missing are missing for ever: no number of draws brings them back. The mean ratio
# of 0.6 gives it away. One time in a thousand is enough for the mean to be right, and by far not
# enough for it to be useful: it hangs on the few draws that weigh 400.

# %%
claim(
    "importance.support",
    "Data of a policy that never takes an action give 0.9 instead of 4.9.",
    math.isclose(blind[0], 0.9, rel_tol=1e-12) and math.isclose(blind[1], 0.6, rel_tol=1e-12),
    control=(
        "So they do when it takes it one time in a thousand.",
        math.isclose(seeing[0], 0.9, rel_tol=1e-2),
    ),
)

# %% [markdown]
# And what the second is worth:

# %%
claim(
    "importance.rarely",
    "If it is taken one time in a thousand the mean is right, and a batch is worth 0.6 %.",
    math.isclose(seeing[0], 4.9, rel_tol=1e-12) and 0.006 < seeing[2] < 0.0065,
    control=("If the mean is right, a batch is worth half of its draws.", seeing[2] > 0.5),
)

# %% [markdown]
# ## How far apart are two policies?
#
# Ratios answer that as well. The mean of −log ratio over draws of the old policy is the **KL divergence**
# from the old policy to the new one, KL(π_old ‖ π_new). It is measured in **nats**, and it is 0 only if
# the two agree in all that the old one does. Training logs show an estimate from the batch. Two are
# common:
#
# - `kl_k1`, the mean of −log ratio. Right on average; in a small batch it may be negative.
# - `kl_k3`, the mean of ratio − 1 − log ratio. Right on average, since ratio − 1 has mean 0, and never
#   negative.

# %%
log_probs, log_probs_old = coin_new.log()[coin_drawn], coin_old.log()[coin_drawn]
exact_kl = (coin_old * (coin_old / coin_new).log()).sum()
k1, k3 = (approximate_kl(log_probs, log_probs_old, estimator=name) for name in ("k1", "k3"))
only_a = approximate_kl(log_probs[:6], log_probs_old[:6], estimator="k1")
only_a_k3 = approximate_kl(log_probs[:6], log_probs_old[:6], estimator="k3")

# %% [markdown]
# The ten draws hold A and B as often as the old policy draws them, so both estimates are exact. Leave
# the four B out, as an unlucky batch would:

# %%
claim(
    "importance.kl",
    "Ten draws give the KL, 1.175 nats, by k1 and by k3, and without the B k1 says −0.50 and k3 0.15.",
    math.isclose(k1, exact_kl, rel_tol=1e-9)
    and math.isclose(k3, exact_kl, rel_tol=1e-9)
    and math.isclose(only_a, -0.501, abs_tol=1e-3)
    and math.isclose(only_a_k3, 0.149, abs_tol=1e-3),
    control=("A KL is not negative, and neither is k1.", only_a >= 0),
)

# %% [markdown]
# You will use it in lesson 03, as the fence around the old policy.
#
# ## Whole episodes: one weight for all
#
# An episode is many actions. Its probability is a product: of what the environment did and of what
# the policy chose. In the quotient of two policies the environment's part cancels, and what remains is
# **the product of the ratios** of all steps. Weight each episode by it, and every mean is exact: actions,
# states, returns. It sounds perfect.
#
# The smallest such thing: an episode of 200 flips. The old policy takes heads with probability 0.5, the
# new one with 0.6. An episode with k heads weighs 1.2 to the power of k, times 0.8 to the power of
# 200 − k. The mean weight is 1, you know that. What does the *typical* episode weigh, the one with 100
# heads?

# %%
predict("importance.typical", None)

# %% [markdown]
# Nothing needs to be drawn: the number of heads has 201 possible values with known probabilities.


# %%
def heads(chance, num_flips=200):
    counts = torch.arange(num_flips + 1, dtype=torch.float64)
    coin = torch.distributions.Binomial(num_flips, torch.tensor(chance, dtype=torch.float64))
    return coin.log_prob(counts).exp()


# %% [markdown]
# The two policies, and the weight of an episode for each number of heads:

# %%
counts = torch.arange(201, dtype=torch.float64)
drawn_by_old, drawn_by_new = heads(0.5), heads(0.6)
episode_weights = (counts * math.log(1.2) + (200 - counts) * math.log(0.8)).exp()

# %%
compare("importance.typical", episode_weights[100], digits=2)

# %% [markdown]
# A sixtieth. Half of all episodes weigh that or less. So a few must weigh enormously, to bring the
# mean back to 1.

# %%
mean_weight = (drawn_by_old * episode_weights).sum()
worth = 1 / (drawn_by_old * episode_weights**2).sum()

# %%
claim(
    "importance.trajectories",
    "The mean weight is 1, the median 0.017, and 10,000 episodes are worth 4.",
    math.isclose(mean_weight, 1, rel_tol=1e-9)
    and math.isclose(episode_weights[100], 0.0169, abs_tol=5e-5)
    and math.isclose(10_000 * worth, 3.92, abs_tol=0.01),
    control=("If the mean weight is 1, the median is above 0.1.", episode_weights[100] > 0.1),
)

# %% [markdown]
# Where is the weight? Half of it lies on episodes with 120 heads or more.

# %%
flips = torch.arange(2, 201, 2, dtype=torch.float64)
over_length = [values.numpy() for values in (flips, 0.96 ** (flips / 2), 1.04**-flips)]
over_heads = [values.numpy() for values in (counts, drawn_by_old, drawn_by_new)]

# %%
show(
    figures.long_products(*over_length, *over_heads, rare=120),
    alt="Left, over the length of an episode on a logarithmic axis: the mean weight stays 1, the "
    "median falls to 0.017, the effective share to 0.0004. Right: the old policy draws around 100 "
    "heads, the weight lies around 120.",
)

# %% [markdown]
# So a batch of 64 episodes most likely holds none of those that carry half of the weight. And then its
# mean weight is not 1 at all.

# %%
rare = drawn_by_old[120:].sum()
none_rare = (1 - rare) ** 64
mean_without = drawn_by_new[:120].sum() / drawn_by_old[:120].sum()

# %%
claim(
    "importance.missed",
    "83 % of all batches of 64 hold no episode with 120 heads, and their mean weight is 0.47.",
    math.isclose(none_rare, 0.833, abs_tol=1e-3)
    and math.isclose(mean_without, 0.471, abs_tol=1e-3)
    and drawn_by_new[120:].sum() > 0.5,
    control=("The mean weight of such batches is 1.", math.isclose(mean_without, 1, abs_tol=0.1)),
)

# %% [markdown]
# Each single flip is harmless: its ratio is 1.2 or 0.8, and a batch of flips is worth 96 %. But the mean
# square grows by 1.04 with each step, and 1.04 to the power of 200 is 2,551. **This is why PPO gives
# each step a ratio of its own, and never multiplies them along an episode.**
#
# What does that cost? The product corrected everything. One ratio corrects one action. Something must
# remain uncorrected, and you can compute it exactly.
#
# ## What J gains, exactly
#
# Let the *new* policy play an episode, and let the *old* policy's V comment on each step: by how much
# was it better than expected?
#
# $$r_t + \gamma V_{\text{old}}(s_{t+1}) - V_{\text{old}}(s_t)$$
#
# Add up the comments, each with its γᵗ. Every V comes twice, with opposite signs, and cancels. Only the
# first stays, since nobody comes before it: the sum is the return minus V_old(s₀). Now take the
# mean over the episodes of the new policy. The return becomes J_new, and V_old(s₀) becomes
# J_old, since both policies start alike. And a comment on action a in state s is, on
# average, Q_old(s, a) − V_old(s), which is the advantage. So
#
# $$J_{\text{new}} - J_{\text{old}} = \sum_s d_{\text{new}}(s) \sum_a \pi_{\text{new}}(a \mid s)\,
# A_{\text{old}}(s, a)$$
#
# Here **d(s)**, the **state visits**, is how often an episode comes to s, where a visit after t steps
# counts γᵗ. This is the **performance-difference identity**. It holds for any two policies, however far
# apart. Try it on a hundred random environments of five states and three actions:


# %%
def random_place(seed, num_looks=5):
    generator = torch.Generator().manual_seed(seed)
    moves = torch.rand(5, 3, 5, generator=generator, dtype=torch.float64) ** 3
    moves = 0.9 * moves / moves.sum(-1, keepdim=True)
    rewards = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    start = torch.full((5,), 0.2, dtype=torch.float64)
    place = mdp.MDP("random", moves, rewards, start, torch.arange(5) % num_looks)
    return place, torch.randn(2, num_looks, 3, generator=generator, dtype=torch.float64)


# %%
def gap_of_identity(seed, whose):
    place, logits = random_place(seed)
    old, new = policies = mdp.softmax_policy(place, logits)
    earned_old, earned_new = mdp.expected_return(place, policies, gamma=0.9)
    first, second = (new, old) if whose == "old" else (old, new)
    return abs(
        earned_new - earned_old - mdp.performance_difference(place, first, second, gamma=0.9)
    )


# %% [markdown]
# Each step ends the episode with probability 0.1. Both sides of the identity are solved, not sampled;
# then once more with the advantages of the new policy and the visits of the old one.

# %%
gaps = [gap_of_identity(seed, whose="old") for seed in range(100)]
swapped = [gap_of_identity(seed, whose="new") for seed in range(100)]

# %%
claim(
    "importance.identity",
    "In 100 random environments the identity gives the change of J to 12 digits.",
    max(gaps) < 1e-12,
    control=("So it does with old and new exchanged.", max(swapped) < 1e-3),
)

# %% [markdown]
# ## The one approximation
#
# In the identity, π_new is no problem: write it as π_old · ratio. A_old is a matter of the old policy.
# But d_new counts the states that the *new* policy visits, and your batch holds those of the old one. So
# put d_old in its place, and you have the surrogate:
#
# $$L = \sum_s d_{\text{old}}(s) \sum_a \pi_{\text{old}}(a \mid s)\;\text{ratio}\cdot A_{\text{old}}(s, a)
# \qquad\text{instead of}\qquad J_{\text{new}} - J_{\text{old}}$$
#
# At the old policy L is 0: it is a promised *gain*. (The mean over a batch, as in `surrogate_loss`, is
# this divided by the length of an episode. The direction is the same.) All else in it is exact. You can
# see that in a small world, a valley and a hill. Every move works half of the time, and an episode lasts
# three steps.
#
# ```
#              --- move: -1 -->
# stay: +0 (valley)        (hill) stay: +2
#              <-- move: +0 ---
# ```

# %%
hill = mdp.two_state()
logits_old = torch.zeros(2, 2, dtype=torch.float64)
toss = mdp.softmax_policy(hill, logits_old)
more = mdp.softmax_policy(hill, torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64))

# %% [markdown]
# The old policy tosses a coin everywhere. The new one prefers to climb, and to stay on the hill. All
# episodes can be listed, so compute what each way of weighting says: one ratio per step, and the
# product of all ratios *up to that step*.

# %%
paths = mdp.enumerate_trajectories(hill, toss)
better = mdp.advantages(hill, toss, gamma=1.0)[paths.states, paths.actions] * paths.valid
ratios = torch.where(paths.valid, (more / toss)[paths.states, paths.actions], 1.0)

# %%
one_each = (paths.probabilities * (ratios * better).sum(0)).sum()
products = (paths.probabilities * (ratios.cumprod(0) * better).sum(0)).sum()
gained = mdp.performance_difference(hill, more, toss, gamma=1.0)

# %% [markdown]
# The product repairs the visits as well, and pays for it in variance. One ratio per step is the
# surrogate.

# %%
promised = mdp.expected_surrogate(hill, more, toss, torch.mul, gamma=1.0)

# %%
claim(
    "importance.one_or_all",
    "Products of ratios give the change of J, and one ratio per step gives L.",
    math.isclose(products, gained, rel_tol=1e-9) and math.isclose(one_each, promised, rel_tol=1e-9),
    control=(
        "One ratio per step gives the change of J within 5 %.",
        math.isclose(one_each, gained, rel_tol=0.05),
    ),
)

# %% [markdown]
# How large is the error? Start at the old policy and walk in the direction of its gradient, in steps
# of all sizes.

# %%
uphill = mdp.policy_gradient(hill, logits_old, gamma=1.0)
sizes = torch.logspace(-1.5, 0.9, 21, dtype=torch.float64)

# %% [markdown]
# At each stop, the true gain, the promised one, and the distance:

# %%
walked = [mdp.softmax_policy(hill, logits_old + size * uphill) for size in sizes]
gains = [mdp.performance_difference(hill, new, toss, gamma=1.0) for new in walked]
promises = [mdp.expected_surrogate(hill, new, toss, torch.mul, gamma=1.0) for new in walked]
distances = [(new - toss).abs().max() for new in walked]

# %%
show(
    figures.surrogate_error(*(np.array(values) for values in (distances, gains, promises))),
    alt="Left: what J gains and what L promises leave 0 together, and L promises more and more too "
    "much. Right, with logarithmic axes: the gap follows the square of the distance.",
)

# %% [markdown]
# Near the old policy the two agree so well that even their gradients are equal. Away from it, the gap
# grows with the square of the distance.


# %%
def gap(size):
    new = mdp.softmax_policy(hill, logits_old + size * uphill)
    promised = mdp.expected_surrogate(hill, new, toss, torch.mul, gamma=1.0)
    return abs(promised - mdp.performance_difference(hill, new, toss, gamma=1.0))


# %% [markdown]
# Compare a step with one half as long:

# %%
shrinks = gap(0.2) / gap(0.1)
claim(
    "importance.second_order",
    "Half the step leaves a quarter of the gap between L and J.",
    3.8 < shrinks < 4.2,
    control=("Half the step leaves half of the gap.", 1.8 < shrinks < 2.2),
)

# %% [markdown]
# The gradients, then. One caveat from lesson 01 comes with them. In J a state after t steps counts γᵗ.
# Code that averages over a batch counts each visit once. Take the two steps of lesson 01 that look
# alike, where action 1 pays 1 first and costs 1.5 later, with γ = 0.5:


# %%
def slope_of_surrogate(place, logits, visit_gamma, gamma):
    logits = logits.clone().requires_grad_()
    policy = mdp.softmax_policy(place, logits)
    old = policy.detach()
    visits = mdp.state_visits(place, old, gamma=visit_gamma).unsqueeze(-1)
    weights = visits * mdp.advantages(place, old, gamma=gamma)
    return torch.autograd.grad((weights * policy).sum(), logits)[0]


# %%
flip, even = mdp.two_step_sign_flip(), torch.zeros(1, 2, dtype=torch.float64)
with_gamma = slope_of_surrogate(flip, even, visit_gamma=0.5, gamma=0.5)
as_code_counts = slope_of_surrogate(flip, even, visit_gamma=1.0, gamma=0.5)
slope_of_j = mdp.policy_gradient(flip, even, gamma=0.5)

# %% [markdown]
# J is solved exactly, and its gradient comes from automatic differentiation of that solution.

# %%
claim(
    "importance.first_order",
    "At the old policy the gradient of L is that of J if each visit counts γ to the power of t.",
    torch.allclose(with_gamma, slope_of_j, atol=1e-12),
    control=(
        "So it is if each visit counts 1.",
        torch.allclose(as_code_counts, slope_of_j, atol=0.1),
    ),
)

# %% [markdown]
# With each visit counted once, it is the *usual update* of lesson 01, which here points the other way.
# PPO inherits that, like nearly all code of its kind. From here on γ is 1, and the difference is gone.
#
# ## L rises, J falls
#
# Now for a place where the one approximation is all that matters. **The trap:** action 1 pays in A and
# ruins in B. The policy cannot tell A from B; it has one probability p for both.
#
# ```
# (A) --- 1: +1 --> (B) --- 1: -3 --> end
#  |                 |
#  +-- 0: +0 --> end +-- 0: +0 --> end
# ```
#
# The old policy has p = 0.1. It comes to B in one episode of ten, so its data hardly ever show B. Climb
# L all the way, to p = 1. L is computed exactly, with no noise at all, and it promises a gain of 0.36.
# By how much does J change?

# %%
predict("importance.trap", None, unit="reward")

# %% [markdown]
# J needs no solver here: an episode earns 1 with probability p, and then loses 3 with probability p.

# %%
trap = mdp.surrogate_trap()
careful = torch.tensor([[0.9, 0.1]] * 2, dtype=torch.float64)
reckless = torch.tensor([[0.0, 1.0]] * 2, dtype=torch.float64)
change = mdp.performance_difference(trap, reckless, careful, gamma=1.0)
compare("importance.trap", change, unit="reward")

# %%
promised = mdp.expected_surrogate(trap, reckless, careful, torch.mul, gamma=1.0)
claim(
    "importance.rises_and_falls",
    "From p = 0.1 to p = 1 the exact L promises +0.36, and J falls by 2.07.",
    math.isclose(promised, 0.36, rel_tol=1e-9) and math.isclose(change, -2.07, rel_tol=1e-9),
    control=("If L is exact and rises, J does not fall.", change >= 0),
)

# %% [markdown]
# L counts B as often as the old policy went there, a tenth of the time. The new one goes there always.
# No ratio knows that.
#
# Is it the approximation alone, then? Not quite: it takes *two* things. Give A and B a logit of their own,
# leave all else as it is, and climb L again, step by step.


# %%
def climb(place, logits, num_steps=40):
    old = mdp.softmax_policy(place, logits)
    visits = mdp.state_visits(place, old, gamma=1.0).unsqueeze(-1)
    weights = visits * mdp.advantages(place, old, gamma=1.0)
    for _ in range(num_steps):
        logits = logits.detach().requires_grad_()
        promised = (weights * mdp.softmax_policy(place, logits)).sum()
        yield logits.detach(), promised.item()
        logits = logits + torch.autograd.grad(promised, logits)[0]


# %% [markdown]
# What J has gained after each of these steps:


# %%
def gains_of(place, steps):
    reached = torch.stack([mdp.softmax_policy(place, logits) for logits, _ in steps])
    earned = mdp.expected_return(place, reached, gamma=1.0)
    return earned - earned[0]


# %%
told_apart = mdp.MDP("told apart", trap.transitions, trap.rewards, trap.initial, torch.arange(2))
steps = list(climb(told_apart, careful.log(), num_steps=60))
climbed = [gains_of(told_apart, steps).numpy(), np.array([promised for _, promised in steps])]

# %% [markdown]
# Beside it, the trap itself, for every p:

# %%
p = np.linspace(0, 1, 101)
show(
    figures.trap(p, p * (1 - 3 * p) - 0.07, 0.4 * (p - 0.1), *climbed, start=0.1),
    alt="Left: with one probability for both places L rises in a straight line and J falls to −2. "
    "Right: with a probability for each place, L and J rise together.",
)

# %% [markdown]
# With logits of its own, each place improves by itself: in each state the new actions are, by the old
# advantages, better on average than the old ones. Then no term of the identity is negative, *however
# often* its state is visited, and J cannot fall. When two states share parameters, L may buy a gain in one
# with a loss in the other, and it is the visits that say whether the deal is good.
#
# Try both on 300 random environments: 40 steps uphill on L, and see whether J ends lower.


# %%
def count_falls(num_looks):
    falls = 0
    for seed in range(300):
        place, logits = random_place(seed, num_looks)
        steps = list(climb(place, logits[0]))
        falls += bool(gains_of(place, [steps[0], steps[-1]])[1] < -1e-9)
    return falls


# %% [markdown]
# Once with logits for each of the five states, once with one row of logits for all:

# %%
falls_alone, falls_shared = count_falls(num_looks=5), count_falls(num_looks=1)
claim(
    "importance.shared",
    "With logits for each state J falls in 0 of 300; with shared ones it does in some.",
    falls_alone == 0 and falls_shared > 0,
    control=("With shared ones it falls in none, either.", falls_shared == 0),
)

# %% [markdown]
# It is rare, and it is not a matter of bad luck in the data: L was exact. A network shares its weights
# among all states.
#
# ## And through noise
#
# Exact advantages are a luxury. Estimate them from a few draws, and even logits of its own do not
# protect a policy. One arm pays 1. The other is a gamble: +4 or −4, with equal chances, 0 on average.
# The policy takes each half of the time, so J = 0.5. A batch holds four draws of each. The gamble wins 0 to
# 4 times in it: five kinds of batches. Take each, climb its L, and ask what J has become.

# %%
wins = torch.arange(5, dtype=torch.float64)
batch_chances = heads(0.5, num_flips=4)
gamble = 2 * wins - 4  # mean pay in the batch: +4 for a win, -4 for a loss, four draws
means = torch.stack([torch.ones_like(wins), gamble], dim=-1)
estimated = means - means.mean(-1, keepdim=True)

# %% [markdown]
# With both actions at 0.5, the L of a batch is the new policy's mean of the estimated advantages:

# %%
logits, batch_surrogate = torch.zeros(5, 2, dtype=torch.float64), torch.zeros(5)
for _ in range(400):
    logits.requires_grad_()
    batch_surrogate = (logits.softmax(-1) * estimated).sum(-1)
    logits = (logits + torch.autograd.grad(batch_surrogate.sum(), logits)[0]).detach()
true_gain = logits.softmax(-1)[:, 0] - 0.5  # the sure arm pays 1, the gamble 0

# %%
show(
    figures.lucky(range(5), batch_chances.tolist(), batch_surrogate.tolist(), true_gain.tolist()),
    alt="Five kinds of batches by wins of the gamble. In all of them L promises a gain. With 0, 1 or 2 "
    "wins J gains 0.5; with 3 or 4 wins, 31 % of all batches, J loses 0.5.",
)

# %% [markdown]
# Three wins of four, and the batch swears that the gamble is better. Every further step on it believes
# that more firmly.

# %%
lost = (batch_chances * (true_gain < 0)).sum()

# %%
claim(
    "importance.noise",
    "Every batch promises a gain, and in 31 % of them J falls.",
    bool((batch_surrogate > 0.4).all()) and math.isclose(lost, 5 / 16, rel_tol=1e-9),
    control=("If the L of a batch rises, J rises.", not (true_gain < 0).any()),
)

# %% [markdown]
# More draws help. With 64 of each, the gamble must win more than 40 times to look better than the sure arm:

# %%
seldom = heads(0.5, num_flips=64)[41:].sum()

# %%
claim(
    "importance.more_draws",
    "With 64 draws of each, J falls in fewer than 2 % of the batches.",
    seldom < 0.02,
    control=("It falls in none of them.", seldom < 1e-3),
)

# %% [markdown]
# Stopping early helps as well. Trap and gamble teach the same thing: *trust L only near the policy that
# collected the data.*
#
# ## How old may data be?
#
# Learning from draws of the policy itself is called **on-policy**, learning from another policy's
# **off-policy**. PPO is usually called on-policy. Strictly it is so for its first step on a batch only;
# after that the batch is old, by at most one iteration.
#
# Other methods, such as DQN or SAC, keep the last million steps in a **replay buffer**, however old.
# Why not do so here? The ratio corrects for actions of any age, after all. But L needs two more things
# from the batch: its states and *its advantages*. Ask in the valley whether it is good to climb.


# %%
def advantage_of_climbing(stays_on_hill):
    habits = torch.tensor([[0.5, 0.5], [stays_on_hill, 1 - stays_on_hill]], dtype=torch.float64)
    policy = mdp.softmax_policy(hill, habits.log())
    return mdp.advantages(hill, policy, gamma=1.0)[0, 1].item()


# %%
stayer, leaver = advantage_of_climbing(0.9), advantage_of_climbing(0.1)
print(f"stays on the hill 9 times of 10:  {stayer:+.2f}")
print(f"leaves it 9 times of 10:          {leaver:+.2f}")

# %% [markdown]
# The same action in the same place, under two policies.

# %%
claim(
    "importance.advantage_of_whom",
    "Climbing has a positive advantage for a policy that stays, and a negative one for one that leaves.",
    stayer > 0.4 and leaver < -0.2,
    control=("The advantage of an action has the same sign for all policies.", stayer * leaver > 0),
)

# %% [markdown]
# Whether climbing is good depends on what you do at the top. An advantage is a statement about a policy.
# When that policy is gone, the statement may be false, and no ratio makes it true. A replay buffer works
# for methods that ask something else of it: *what did this action lead to?* A reward and a next
# state stay true, whoever chose the action.
#
# Measure it. Let a policy learn for 40 steps, from the coin toss on. Build the gradient of L at the last
# policy from the exact states and advantages of an earlier one, with the right ratios, and compare it
# with the gradient of J.

# %%
history = [torch.zeros(2, 2, dtype=torch.float64)]
for _ in range(40):
    history.append(history[-1] + 0.3 * mdp.policy_gradient(hill, history[-1], gamma=1.0))
true_slope = mdp.policy_gradient(hill, history[-1], gamma=1.0)

# %% [markdown]
# The gradient at the last policy, from data of a given age:


# %%
def slope_from(age, objective):
    old = mdp.softmax_policy(hill, history[-1 - age])
    logits = history[-1].clone().requires_grad_()
    new = mdp.softmax_policy(hill, logits)
    value = mdp.expected_surrogate(hill, new, old, objective, gamma=1.0)
    return torch.autograd.grad(value, logits)[0]


# %%
def errors(objective):
    slopes = [slope_from(age, objective) for age in range(41)]
    return np.array([((slope - true_slope).norm() / true_slope.norm()).item() for slope in slopes])


def log_in_place_of_ratio(ratios, advantages):
    return ratios.log() * advantages


# %% [markdown]
# The second objective has the gradient of REINFORCE's loss: no ratio.

# %%
with_ratio, without_ratio = errors(torch.mul), errors(log_in_place_of_ratio)
show(
    figures.staleness(np.arange(41), with_ratio, without_ratio),
    alt="The error of the gradient grows with the age of the data, from 0 to 140 % at 40 updates. "
    "Without the ratio it is 53 % after 10 updates, where it is 12 % with it.",
)

# %% [markdown]
# The ratio buys time. One update old, the error is below 1 % with it and 4 % without. Forty updates old,
# the gradient points downhill on J, and the ratios are still right.

# %%
uphill_part = (slope_from(40, torch.mul) * true_slope).sum()

# %%
claim(
    "importance.staleness",
    "With right ratios, data one update old err by less than 1 %, and data 40 old point downhill.",
    with_ratio[1] < 0.01 < 0.03 < without_ratio[1] and bool(uphill_part < 0),
    control=("With right ratios, data 40 updates old err by less than 50 %.", with_ratio[40] < 0.5),
)

# %% [markdown]
# So PPO keeps one batch, uses it for a few passes, each called an **epoch**, and throws it away.
#
# | | PPO's batch | a replay buffer |
# |---|---|---|
# | collected by | the policy of this iteration's start | all policies for a long time |
# | used | a few epochs, then thrown away | until it is overwritten |
# | asked | which actions were better than that policy's average | what followed an action |
# | ratio | needed | not needed for one step ahead |
#
# ## What breaks it
#
# The commonest mistake is silent. `log_probs_old` must be written down *while sampling*. Somebody computes
# it again at each step, from the network as it is now, because it "is the same":


# %%
def recomputed(log_probs, log_probs_old, advantages):
    return surrogate_loss(log_probs, log_probs.detach(), advantages)


# %% [markdown]
# Then every ratio is 1, all looks calm, and you are back at the beginning.

# %%
calm = squeeze(recomputed)

# %%
claim(
    "importance.recomputed",
    "With old log-probabilities computed anew at each step, the policy ends on arm 1 again.",
    torch.allclose(calm, without, atol=1e-9),
    control=("It ends where the ratio led it.", torch.allclose(calm[-1], corrected[-1], atol=0.1)),
)

# %% [markdown]
# A ratio upside down, old over new, is loud: the first step goes the wrong way.


# %%
def upside_down(log_probs, log_probs_old, advantages):
    return surrogate_loss(-log_probs, -log_probs_old, advantages)


# %%
first_move = squeeze(upside_down, num_steps=1)[1] - old
claim(
    "importance.upside_down",
    "With old over new, the first step makes arm 3, the worst, more likely.",
    first_move[2] > 0.01,
    control=("With new over old it does so as well.", corrected[1][2] > old[2]),
)

# %% [markdown]
# ## Exercises
#
# They ask you to write the ratio, its effective sample size, the surrogate and an estimate of the
# distance between two policies, to predict some numbers, and to find a mistake in a loss that looks right.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("importance.weight")

# %%
quiz("importance.mean_ratio")

# %% [markdown]
# On long episodes and on states:

# %%
quiz("importance.long")

# %%
quiz("importance.states")

# %% [markdown]
# And on age:

# %%
quiz("importance.buffer")

# %% [markdown]
# ## The stair
#
# What does the ratio buy in a real run? CartPole, where 500 is the most that an episode can earn, 16 seeds,
# and eight epochs on each batch. First the batch is used again as it stands, then with the ratio. This was
# run once and recorded. Curves show the return while training, the dots at the right 50 more episodes
# in which each policy takes its likeliest action.

# %%
study = recorded("stairs")
stairs = {name: study["runs"][name] for name in ("reuse without ratio", "ratio")}
curves = {name: [run["episode_return"] for run in runs] for name, runs in stairs.items()}
finals = {name: [run["final_greedy"] for run in runs] for name, runs in stairs.items()}

# %%
show(
    stair(curves, finals, stairs["ratio"][0]["env_steps"], goal=475),
    alt="Learning curves of 16 seeds on two stairs, with final returns as dots. Without a ratio most "
    "fall back to the floor and no dot is above 120. With the ratio they scatter, and 8 dots are above 475.",
)

# %% [markdown]
# A seed has solved CartPole if its dot is at 475 or above.

# %%
solved = {name: sum(value >= 475 for value in values) for name, values in finals.items()}

# %%
claim(
    "importance.stair",
    "Of 16 seeds, reuse as it stands ends with none solved, and reuse with the ratio with 8.",
    solved == {"reuse without ratio": 0, "ratio": 8},
    control=("The ratio is enough for all 16.", solved["ratio"] == 16),
)

# %% [markdown]
# Half of the seeds is a great deal more than none, and not good enough. Look at the right panel: many
# seeds rise and then fall. Nothing in L says when to stop believing it.
#
# ## What you have now
#
# - Old draws serve a new policy if each counts π_new / π_old, computed from logarithms.
# - The ratio spreads as policies part: watch the effective sample size. Over whole episodes it is
#   hopeless, so PPO takes one ratio per step.
# - J_new − J_old is exactly d_new, π_new and A_old. L puts d_old in place of d_new: equal in value and
#   gradient at the old policy, wrong by the square of the distance away from it.
# - L can rise while J falls: through shared parameters, and through noise.
#
# Next: how far may you trust L? Lesson 03 draws a region around the old policy and stays inside. It
# costs much, and lesson 04, [the clip](04_clip.ipynb), does something cheaper.
