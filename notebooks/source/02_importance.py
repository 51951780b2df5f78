# %% [markdown]
# # Importance sampling
#
# **May I reuse old data?**
#
# REINFORCE plays a batch of episodes, takes one step from it, and throws it away. Its push is a mean over
# the actions that the policy draws *as it is now*, and after one step it is another policy. That is the
# first of its two wounds, and where data are dear it is the worse one: a robot wears out, and a language
# model that is trained often spends most of the time on writing answers.
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
from ppo_lessons.figures.reinforce import stair
from ppo_lessons.importance import (
    approximate_kl,
    effective_sample_size,
    importance_ratios,
    surrogate_loss,
)
from ppo_lessons.reinforce import reinforce_loss
from ppo_lessons.widgets import RatioFromLogits

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
# In lesson 01 you used a batch of two levers again and again, and the policy came to rest at 0.75. There
# all rewards were positive. Subtract their mean, as one should, and nothing holds it any more.
#
# Three levers, 0, 1 and 2, pay 1, 2 and −2. The policy pulls them with probability 0.8, 0.1 and 0.1, so J
# = 0.8. Draw ten times, and let the ten come out exactly as they should: eight times lever 0, once lever
# 1, once lever 2. So luck plays no part here. Each advantage is what the lever pays, minus 0.8.

# %%
pays = torch.tensor([1.0, 2.0, -2.0], dtype=torch.float64)
old = torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64)
drawn = torch.tensor([0] * 8 + [1] + [2])
advantages = (pays - (old * pays).sum())[drawn]

# %% [markdown]
# One step of REINFORCE from these ten draws is right. Now take 400 steps, all from the same ten draws,
# as if each time they were fresh. The policy becomes nearly sure of one lever. Which: 0, 1 or 2?

# %%
predict("importance.ends_on", None)

# %% [markdown]
# `take_steps` takes them one by one and gives back the policy after each:


# %%
def take_steps(loss, num_steps=400):
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
without = take_steps(as_it_stands)
compare("importance.ends_on", without[-1].argmax())

# %% [markdown]
# Lever 0, which pays 1. Lever 1 pays twice as much, and its advantage is six times as large.

# %%
claim(
    "importance.as_it_stands",
    "400 steps on one batch end with more than 99 % on lever 0; lever 1 has the largest advantage.",
    without[-1][0] > 0.99 and drawn[advantages.argmax()] == 1,
    control=("They end on the lever with the largest advantage.", without[-1].argmax() == 1),
)

# %% [markdown]
# Why? Add up who pushes. Lever 0 is in the batch eight times with advantage 0.2, lever 1 once with 1.2,
# lever 2 once with −2.8. So lever 0 is pushed with 1.6 and lever 1 with 1.2, *at every step*. At the
# first step that is as it should be: eight of ten is how often the policy draws lever 0. As the policy
# changes, the counts should change with it, and in the batch they do not. Reuse takes *often drawn* for
# *good*. You can see it in the logarithm of π(0) / π(1), the **log-odds**: each step adds (1.6 − 1.2) /
# 10 to it.
#
# (Why does it not come to rest, as in lesson 01? The score is 1 at the drawn lever, minus π. Here the π
# is multiplied by 1.6 + 1.2 − 2.8 = 0 and drops out, so the push is the same wherever the policy is. With
# positive rewards it does not drop out.)

# %%
odds = (without[:, 0] / without[:, 1]).log().diff()

# %%
claim(
    "importance.same_push",
    "Each of the 400 steps adds the same 0.04 to the log-odds of lever 0 against lever 1.",
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
# Try it on ten draws: six heads, which pay 10, and four tails, which pay 5, as a policy with 0.6 and 0.4
# would draw them. The new policy takes heads with probability 0.99. By hand, it earns
# 0.99 · 10 + 0.01 · 5 = 9.95.

# %%
coin_old, coin_new = (torch.tensor([p, 1 - p], dtype=torch.float64) for p in (0.6, 0.99))
coin_drawn = torch.tensor([0] * 6 + [1] * 4)
coin_pays = torch.tensor([10.0, 5.0], dtype=torch.float64)
earned = coin_pays[coin_drawn]
weights = importance_ratios(coin_new.log()[coin_drawn], coin_old.log()[coin_drawn])

# %% [markdown]
# Each head counts 0.99 / 0.6 = 1.65, each tail counts 0.01 / 0.4 = 0.025. What does the mean say, without the
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
corrected = take_steps(surrogate_loss)
names = [
    "lever 0: drawn 8 times, pays 1",
    "lever 1: drawn once, pays 2",
    "lever 2: drawn once, pays −2",
]

# %%
show(
    figures.reuse(without.numpy(), corrected.numpy(), names=names),
    alt="Probabilities of three levers over 400 steps. Without a ratio lever 0 rises to 1. With the "
    "ratio lever 0 rises for a few steps, then falls, and lever 1 rises to 1.",
)

# %% [markdown]
# The first step is the same in both: where nothing has moved, the ratio is 1, and its gradient is that
# of log π. Then the left policy is pushed as before, for ever. On the right each draw is
# counted as often as the policy of that moment would draw it.

# %%
claim(
    "importance.with_ratio",
    "The first step is the same, and with the ratio the policy ends with more than 99 % on lever 1.",
    torch.allclose(without[1], corrected[1], rtol=1e-12) and corrected[-1][1] > 0.99,
    control=("The tenth step is the same, too.", torch.allclose(without[10], corrected[10])),
)

# %% [markdown]
# ## What is a weighted sample worth?
#
# Two properties of ratios help to see trouble. First, **under the old policy their mean is 1**: put f = 1
# into the equation. If the mean ratio of a batch is far below 1, something is missing in the batch; if it
# is far above, a rare draw came up that weighs much. Second, ratios spread. The wider they spread, the
# more the mean hangs on a few draws. For heads and tails:

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
predict("importance.worth", None)

# %%
compare("importance.worth", effective_sample_size(weights))

# %% [markdown]
# Nearly all the weight lies on the six. On the right of the picture: what is left of a batch when the new
# policy takes heads with another probability. In a large batch the mean weight is 1, so each draw is
# worth 1 / (mean of w²), and that is 1 / Σ (π_new² / π_old).

# %%
chances = torch.linspace(0, 1, 201, dtype=torch.float64)
shares = 1 / (chances**2 / 0.6 + (1 - chances) ** 2 / 0.4)
sides = ("heads", "tails")

# %%
show(
    figures.reweighting(
        coin_old.tolist(), coin_new.tolist(), chances.numpy(), shares.numpy(), names=sides
    ),
    alt="Left: bars of two actions, 0.6 to 0.99 with ratio 1.65 and 0.4 to 0.01 with ratio 0.025. "
    "Right: the effective sample size is 100 % at 0.6 and falls to both sides, to 61 % at 0.99.",
)

# %% [markdown]
# It can be worse. Turn the two policies round: the data come from the one that is sure of heads, and the
# other one wants tails four times in ten. A hundred draws hold about one tail, and it weighs 40.

# %%
there, back = 1 / (coin_new**2 / coin_old).sum(), 1 / (coin_old**2 / coin_new).sum()

# %%
claim(
    "importance.way_back",
    "From 0.6 to 0.99 the effective sample size is 61 % of a batch, and from 0.99 to 0.6 it is 6 %.",
    math.isclose(there, 0.612, abs_tol=5e-4) and math.isclose(back, 0.061, abs_tol=5e-4),
    control=("The way back costs as much.", math.isclose(back, 0.612, abs_tol=0.1)),
)

# %% [markdown]
# Reuse is dear when the new policy wants what the old one rarely did.
#
# But take this number for a warning light, not for a count. It is a rule of thumb (Kish 1965, Kong 1992)
# for averages of things that have nothing to do with the weights. Pay has to do with them: heads pay
# more, and weigh more. So ask again, for the pay: how many draws of the new policy itself would tell its
# mean pay as exactly as the ten weighted ones? First for the pay as it stands, then with 9.95 subtracted
# from each pay:

# %%
ratio = coin_new / coin_old
fresh = (coin_new * (coin_pays - 9.95) ** 2).sum()  # variance of one draw of the new policy
raw, centred = (
    (coin_old * (ratio * (coin_pays - base)) ** 2).sum() - (9.95 - base) ** 2 for base in (0, 9.95)
)
print(f"as it stands {10 * fresh / raw:.2f}, with 9.95 subtracted {10 * fresh / centred:.0f}")

# %% [markdown]
# From almost nothing to 242, for the same weights. It pays to subtract what is expected before you weight:
# L does, since it averages advantages.
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
print(f"once in a thousand:    weighted mean {seeing[0]:.2f}, mean ratio {seeing[1]:.2f}")
print(f"effective sample size of a thousand such draws: {1000 * seeing[2]:.1f}")

# %% [markdown]
# Of the 4.9, the third action earns 4. They are missing for ever: no number of draws brings them back.
# The mean ratio of 0.6 gives it away. One time in a thousand is enough for the mean to be right, and by
# far not enough for it to be useful: it hangs on the few draws that weigh 400.

# %%
claim(
    "importance.support",
    "A policy that never takes an action shows 0.9 instead of 4.9; one time in a thousand is enough.",
    math.isclose(blind[0], 0.9, rel_tol=1e-12) and math.isclose(seeing[0], 4.9, rel_tol=1e-12),
    control=("One time in a thousand leaves half of the draws, too.", seeing[2] > 0.5),
)

# %% [markdown]
# Enough for the mean: of a thousand draws the effective sample size is six.

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
only_heads = approximate_kl(log_probs[:6], log_probs_old[:6], estimator="k1")
only_heads_k3 = approximate_kl(log_probs[:6], log_probs_old[:6], estimator="k3")

# %% [markdown]
# The ten draws hold heads and tails as often as the old policy draws them, so both estimates are exact.
# Leave the four tails out, as an unlucky batch would:

# %%
claim(
    "importance.kl",
    "Ten draws give the KL, 1.175 nats, by k1 and by k3, and without the tails k1 says −0.50, k3 0.15.",
    math.isclose(k1, exact_kl, rel_tol=1e-9)
    and math.isclose(k3, exact_kl, rel_tol=1e-9)
    and math.isclose(only_heads, -0.501, abs_tol=1e-3)
    and math.isclose(only_heads_k3, 0.149, abs_tol=1e-3),
    control=("A KL is not negative, and neither is k1.", only_heads >= 0),
)

# %% [markdown]
# Here k1 is negative and k3 is not, and both are far from the truth: no estimator sees what is not in the
# batch. You use the KL in lesson 03, to say how far a policy may go.
#
# ## Try it with your hands
#
# Four actions, a to d, and two policies made of logits. Only the logit of b went up, by 1; the other three
# are what they were. How many of the four ratios differ from 1? Guess, then reveal.

# %%
moved = RatioFromLogits(keep_as="importance.moved")
moved

# %% [markdown]
# All four. The softmax divides by the sum of all exponentials, that sum grew, and so the other three
# probabilities shrank by one factor, 0.67. A push on one action is a push on all. Raise all four logits by
# the same amount, and nothing moves. Whatever you have dragged, the numbers are the package's:

# %%
new_four, old_four = (
    torch.tensor(each).log_softmax(-1) for each in (moved.logits, moved.logits_old)
)
ratios = importance_ratios(new_four, old_four)
share = 1 / (old_four.exp() * ratios**2).sum()
print(f"ratio {ratios[moved.chosen]:.3f}, widget {moved.ratios[moved.chosen]:.3f}")
print(f"share {share:.3f}, widget {moved.effective_share:.3f}")

# %% [markdown]
# The share is the effective sample size of a large batch, divided by the number of its draws.
#
# ## Whole episodes: one weight for all
#
# An episode is many actions. Its probability is a product: of what the environment did and of what
# the policy chose. In the quotient of two policies the environment's part cancels, and what remains is
# **the product of the ratios** of all steps. Weight each episode by it, and every mean is right on average:
# of actions, states, returns. It sounds perfect.
#
# The smallest such thing: an episode of 200 flips. The old policy takes heads with probability 0.5, the
# new one with 0.6. An episode with k heads weighs 1.2 to the power of k, times 0.8 to the power of
# 200 − k. The mean weight is 1: a product of independent factors, each with mean 1. What does the *typical*
# episode weigh, the one with 100 heads?

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
# A sixtieth. Half of all episodes have 100 heads or fewer, and weigh that or less. So a few must weigh enormously, to bring the
# mean back to 1.

# %%
mean_weight = (drawn_by_old * episode_weights).sum()
share = 1 / (drawn_by_old * episode_weights**2).sum()

# %%
claim(
    "importance.trajectories",
    "The mean weight is 1, the median 0.017, and 10,000 episodes are worth 4.",
    math.isclose(mean_weight, 1, rel_tol=1e-9)
    and math.isclose(episode_weights[100], 0.0169, abs_tol=5e-5)
    and math.isclose(10_000 * share, 3.92, abs_tol=0.01),
    control=("10,000 single flips are worth 4 as well.", 10_000 / 1.04 < 5),
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
    "83 % of all batches of 64 hold no episode with 120 heads or more; their mean weight is 0.47.",
    math.isclose(none_rare, 0.833, abs_tol=1e-3)
    and math.isclose(mean_without, 0.471, abs_tol=1e-3)
    and drawn_by_new[120:].sum() > 0.5,
    control=("The mean weight of such batches is 1.", math.isclose(mean_without, 1, abs_tol=0.1)),
)

# %% [markdown]
# Each single flip is harmless: its ratio is 1.2 or 0.8, and a batch of flips is worth 96 %. But each step
# multiplies the mean of the squared weight by 1.04, and 1.04 to the power of 200 is 2,551. **This is why
# one works with one ratio for each step, as PPO does (and TRPO, in lesson 03), and does not multiply them
# along an episode.**
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
# Add up the comments, each with its γᵗ. Every V comes twice, with opposite signs, and cancels. The first
# one stays, since nobody comes before it, and the last one is that of the end, which is 0. So the sum is
# the return minus V_old(s₀). Now take the mean over the episodes of the new policy. The return becomes
# J_new, and V_old(s₀) becomes J_old, since both policies start alike. A comment on action a in state s is,
# averaged over what the world does next, Q_old(s, a) − V_old(s), which is the advantage. And a sum over
# times is a sum over states, if each state counts as often as it is visited. So
#
# $$J_{\text{new}} - J_{\text{old}} = \sum_s d_{\text{new}}(s) \sum_a \pi_{\text{new}}(a \mid s)\,
# A_{\text{old}}(s, a)$$
#
# Here **d(s)**, the **state visits**, is how often an episode comes to s, where a visit after t steps
# counts γᵗ: Σ_t γᵗ · P(s_t = s). This is the **performance-difference identity** (Kakade and Langford,
# 2002). It holds for any two policies, however far apart. Try it on a hundred random environments of five
# states and three actions:


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
def both_gaps(seed):
    place, logits = random_place(seed)
    old, new = policies = mdp.softmax_policy(place, logits)
    before, after = mdp.expected_return(place, policies, gamma=0.9)
    exact = mdp.performance_difference(place, new, old, gamma=0.9)
    with_old_visits = mdp.expected_surrogate(place, new, old, torch.mul, gamma=0.9)
    return abs(after - before - exact), abs(after - before - with_old_visits)


# %% [markdown]
# Each step ends the episode with probability 0.1. Both sides of the identity are solved, not sampled;
# then once more with the visits of the old policy in place of d_new.

# %%
gaps, gaps_with_old_visits = zip(*map(both_gaps, range(100)), strict=True)
claim(
    "importance.identity",
    "In 100 random environments the identity gives the change of J to 12 digits.",
    max(gaps) < 1e-12,
    control=("So it does with the visits of the old policy.", max(gaps_with_old_visits) < 0.01),
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
# At the old policy L is 0: it is a promised *gain*, in reward per episode. (`surrogate_loss` takes a mean
# over draws: that estimates L divided by the length of an episode. The direction is the same.) All else in
# L is exact. You can see that in the valley and the hill of lesson 01, where an episode lasts three steps:
#
# ```
#              --- move: -1 -->
#    valley                        hill
#    stay: 0   <-- move:  0 ---    stay: +2
#
#    a move works half of the time; if it fails you stay where you are, and earn the same
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
by_step = mdp.advantages(hill, toss, gamma=1.0)[paths.states, paths.actions] * paths.valid
ratios = torch.where(paths.valid, (more / toss)[paths.states, paths.actions], 1.0)

# %%
one_each = (paths.probabilities * (ratios * by_step).sum(0)).sum()
products = (paths.probabilities * (ratios.cumprod(0) * by_step).sum(0)).sum()
gained = mdp.performance_difference(hill, more, toss, gamma=1.0)
print(f"J gains {gained:.3f}; products say {products:.3f}, one ratio per step {one_each:.3f}")

# %% [markdown]
# The product repairs the visits as well, and pays for it in variance. One ratio per step is the surrogate.
# Here it promises too little; it may as well promise too much.

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
# Near the old policy the two agree in value and in slope. Away from it, the gap grows with the square of
# the distance.


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
    "In this game, half the step leaves a quarter of the gap between L and J.",
    3.8 < shrinks < 4.2,
    control=("Half the step leaves half of the gap.", 1.8 < shrinks < 2.2),
)

# %% [markdown]
# So the gradient of L is that of J. With γ below 1, too? (If you left out the three vectors of lesson 01,
# go on at "L rises, J falls".) It depends on how you count visits. In J a state after t steps counts γᵗ.
# Code that averages over a batch counts each visit once. Take the two steps of lesson 01 that look alike,
# where action 1 pays 1 first and costs 1.5 later, with γ = 0.5:


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
# PPO inherits that, like nearly all code of its kind. In the small worlds of this lesson γ is 1 from here
# on, and the difference is gone.
#
# ## L rises, J falls
#
# Now a small world in which L is exact and J falls all the same. **The trap:** action 1 pays at the gate
# and ruins in the pit. The policy cannot tell the two places apart; in both it takes action 1 with the
# same probability p.
#
# ```
# (gate) --- 1: +1 --> (pit) --- 1: -3 --> end
#    |                    |
#    +-- 0: 0 --> end     +-- 0: 0 --> end
# ```
#
# The old policy has p = 0.1, so V is 0.1 · (−3) = −0.3 in the pit and 0.1 · (1 − 0.3) = 0.07 at the gate. Now
# put a new p into L. At the gate the new policy is better than V by p · (1 − 0.3) − 0.07, and in the pit by
# p · (−3) + 0.3. Every episode comes to the gate, and one of ten of the *old* policy to the pit:
#
# $$L = (0.7\,p - 0.07) + 0.1\cdot(0.3 - 3\,p) = 0.4\cdot(p - 0.1)$$
#
# A straight line uphill. Climb it all the way, to p = 1: L promises a gain of 0.36, exactly, with no noise
# at all. By how much does J change?

# %%
predict("importance.trap", None, unit="reward")

# %% [markdown]
# An episode earns 1 with probability p, and then loses 3 with probability p, so J = p − 3p². The package
# solves it:

# %%
trap = mdp.surrogate_trap()
careful = torch.tensor([[0.9, 0.1]] * 2, dtype=torch.float64)
reckless = torch.tensor([[0.0, 1.0]] * 2, dtype=torch.float64)
change = mdp.performance_difference(trap, reckless, careful, gamma=1.0)
compare("importance.trap", change, unit="reward")

# %%
promised = mdp.expected_surrogate(trap, reckless, careful, torch.mul, gamma=1.0)
no_gate = trap.transitions.clone()
no_gate[0, :, 1] = 1  # whatever you do, you come to the pit
same_visits = mdp.MDP("no gate", no_gate, trap.rewards, trap.initial, trap.observation_of)

# %% [markdown]
# (The second world has the same rewards, but every episode comes to the pit. There the visits are right.)

# %%
claim(
    "importance.rises_and_falls",
    "From p = 0.1 to p = 1 the exact L promises +0.36, and J falls by 2.07.",
    math.isclose(promised, 0.36, rel_tol=1e-9) and math.isclose(change, -2.07, rel_tol=1e-9),
    control=(
        "L promises a gain, too, where every episode comes to the pit, whatever it does at the gate.",
        mdp.expected_surrogate(same_visits, reckless, careful, torch.mul, gamma=1.0) > 0,
    ),
)

# %% [markdown]
# L counts the pit as often as the old policy went there, a tenth of the time. The new one goes there always.
# The ratio of one action does not know that.
#
# Is it the visits alone, then? Not quite: it takes *two* things. Give gate and pit logits of their own,
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
def ends(num_looks, world_of=lambda place: place):
    for seed in range(300):
        place, logits = random_place(seed, num_looks)
        place = world_of(place)
        steps = list(climb(place, logits[0]))
        yield gains_of(place, [steps[0], steps[-1]])[1].item()


def deaf(place):  # where you go does not depend on what you do
    moves = place.transitions.mean(1, keepdim=True).expand(-1, 3, -1)
    return mdp.MDP("deaf", moves, place.rewards, place.initial, place.observation_of)


# %% [markdown]
# Once with logits for each of the five states, once with one row of logits for all, and that once more in
# worlds where all policies visit alike:

# %%
alone, shared, shared_deaf = list(ends(5)), list(ends(1)), list(ends(1, deaf))
falls = [sum(gain < -1e-9 for gain in each) for each in (alone, shared, shared_deaf)]
print(f"J falls in {falls[0]} and in {falls[1]} of 300, at worst by {-min(shared):.1f}")
claim(
    "importance.shared",
    "With logits for each state J falls in none of 300, and with shared ones in more than 10.",
    falls[0] == 0 and falls[1] > 10,
    control=(
        "Shared logits are enough: it falls where all policies visit alike, too.",
        falls[2] > 0,
    ),
)

# %% [markdown]
# One place in twenty, and it is not a matter of bad luck in the data: L was exact. A network shares its
# parameters among all states.
#
# ## And through noise
#
# Exact advantages are a luxury. Estimate them from a few draws, and even logits of its own do not
# protect a policy. Lever 0 pays 1. Lever 1 is a gamble: +4 or −4, with equal chances, 0 on average. The
# policy pulls each half of the time, so J = 0.5. A batch holds four draws of each. The gamble wins 0 to 4
# times in it: five kinds of batches. Climb the L of each. In what share of all batches, in percent, does J
# end lower?

# %%
predict("importance.lost", None)

# %%
wins = torch.arange(5, dtype=torch.float64)
batch_chances = heads(0.5, num_flips=4)
means = torch.stack([torch.ones(5).double(), 2 * wins - 4], dim=-1)  # what each lever paid

# %% [markdown]
# From 0.5 and 0.5 the L of a batch is the new policy's mean of what was paid, minus the old one's:


# %%
def climb_batches(num_steps):
    logits = torch.zeros(5, 2, dtype=torch.float64)
    for _ in range(num_steps):
        logits.requires_grad_()
        promised = (logits.softmax(-1) * means).sum(-1) - means.mean(-1)
        logits = (logits + torch.autograd.grad(promised.sum(), logits)[0]).detach()
    return promised.detach(), logits.softmax(-1)[:, 0] - 0.5  # J is the probability of lever 0


# %%
batch_promises, true_gains = climb_batches(400)
lost = (batch_chances * (true_gains < 0)).sum()
compare("importance.lost", 100 * lost)

# %% [markdown]
# All kinds of batches, with their chances:

# %%
show(
    figures.lucky(range(5), batch_chances.tolist(), batch_promises.tolist(), true_gains.tolist()),
    alt="Five kinds of batches by wins of the gamble. In all of them L promises a gain. With 0, 1 or 2 "
    "wins J gains 0.5; with 3 or 4 wins, 31 % of all batches, J loses 0.5.",
)

# %%
claim(
    "importance.noise",
    "Every batch promises a gain, and in 31 % of them J falls.",
    bool((batch_promises > 0.4).all()) and math.isclose(lost, 5 / 16, rel_tol=1e-9),
    control=(
        "After a single step, near the old policy, it falls in fewer than 20 %.",
        (batch_chances * (climb_batches(1)[1] < 0)).sum() < 0.2,
    ),
)

# %% [markdown]
# Three wins of four, and the batch swears that the gamble is better. Its *first* step goes the wrong way, so
# it is no help to stop early: you lose less, and gain less. In the trap it was the far steps that did
# harm; here the whole batch does. What helps is other luck: a **fresh batch** after each step.


# %%
def climb_fresh(num_steps, num_runs=1000):
    logits = torch.zeros(num_runs, 2, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for _ in range(num_steps):
        wins = (torch.rand(num_runs, 4, generator=generator) < 0.5).sum(-1)
        means = torch.stack([torch.ones(num_runs).double(), 2.0 * wins - 4], dim=-1)
        logits.requires_grad_()
        promised = (logits.softmax(-1) * means).sum()
        logits = (logits + torch.autograd.grad(promised, logits)[0]).detach()
    return logits.softmax(-1)[:, 0] - 0.5


# %%
claim(
    "importance.fresh",
    "After 100 steps, each on a fresh batch of eight draws, J is lower in fewer than 2 % of 1,000 runs.",
    (climb_fresh(100) < 0).double().mean() < 0.02,
    control=(
        "So it is after 100 steps on one batch.",
        (batch_chances * (climb_batches(100)[1] < 0)).sum() < 0.02,
    ),
)

# %% [markdown]
# That is the trade of this lesson: reuse saves samples, and believes one batch the longer. So L needs two
# things: *do not go far* from the policy that collected the data, and *do not stay long* with one batch.
#
# ## How old may data be?
#
# Learning from draws of the policy itself is called **on-policy**, learning from another policy's
# **off-policy**. PPO is usually called on-policy. Strictly it is so for its first step on a batch only;
# after that the batch is a few steps old. (That makes "PPO is on-policy" one of the
# [half truths](../docs/half_truths.md).)
#
# Other methods (DQN and SAC are the best known) keep the last million moves in a **replay buffer**, however
# old. Why not do so here? The ratio corrects for actions of any age, after all. But L needs two more things
# from the batch: its states and *its advantages*. Ask in the valley whether it is good to climb.


# %%
def advantages_of_climbing(stays_on_hill):
    habits = torch.tensor([[0.5, 0.5], [stays_on_hill, 1 - stays_on_hill]], dtype=torch.float64)
    policy = mdp.softmax_policy(hill, habits.log())
    return mdp.advantages(hill, policy, gamma=1.0)[0::2, 1]  # with 3, 2 and 1 steps left


# %%
stayer, leaver = advantages_of_climbing(0.9), advantages_of_climbing(0.1)
print(f"stays on the hill 9 times of 10:  {stayer[0]:+.2f}")
print(f"leaves it 9 times of 10:          {leaver[0]:+.2f}")

# %% [markdown]
# The same action in the same place, under two policies.

# %%
claim(
    "importance.advantage_of_whom",
    "Climbing has a positive advantage for a policy that stays, and a negative one for one that leaves.",
    stayer[0] > 0.4 and leaver[0] < -0.2,
    control=("So it has in the last step.", stayer[2] > 0 and leaver[2] < 0),
)

# %% [markdown]
# Whether climbing is good depends on what you do at the top. An advantage is a statement about a policy.
# When that policy is gone, the statement may be false, and the ratio of this one action does not make it
# true. (The product of the later ratios would, at the price that you have seen.) A replay buffer works for
# methods that ask something else of it: *what did this action lead to?* A reward and a next state stay
# true, whoever chose the action.
#
# Measure it. Let a policy learn for 40 updates, each a step of length 0.3 along the exact gradient, from the
# coin toss on. Build the gradient of L at the last policy from the exact states and advantages of an
# earlier one, with the right ratios, and compare it with the gradient of J.

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
def log_in_place_of_ratio(ratios, advantages):
    return ratios.log() * advantages


def cosine_and_length(objective):
    slopes = torch.stack([slope_from(age, objective).flatten() for age in range(41)])
    lengths = slopes.norm(dim=-1) / true_slope.norm()
    return slopes @ true_slope.flatten() / true_slope.norm() ** 2 / lengths, lengths


# %% [markdown]
# The second objective has the gradient of REINFORCE's loss: no ratio.

# %%
with_ratio, without_ratio = cosine_and_length(torch.mul), cosine_and_length(log_in_place_of_ratio)
show(
    figures.staleness(np.arange(41), torch.stack(with_ratio), torch.stack(without_ratio)),
    alt="Left: the cosine with the true gradient stays near 1 for 20 updates, then falls, with the ratio to "
    "−0.5 and without it to 0.1. Right: with the ratio the gradient is too short, without it too long.",
)

# %% [markdown]
# For some twenty updates both point the right way, and the ratio keeps the length nearer to the truth. From
# thirty on neither can be used, and the right ratios do not help: what is wrong then are the states and the
# advantages.

# %%
miss = [(slope_from(10, kind) - true_slope).norm() for kind in (torch.mul, log_in_place_of_ratio)]
miss_with, miss_without = (each / true_slope.norm() for each in miss)
claim(
    "importance.staleness",
    "With right ratios, data ten updates old err by less than 15 %, and data 40 old point downhill.",
    miss_with < 0.15 and with_ratio[0][40] < -0.3,
    control=("Without a ratio, data ten updates old err by less than 15 %.", miss_without < 0.15),
)

# %% [markdown]
# So PPO keeps one batch, uses it for a few passes, each called an **epoch**, and throws it away.
#
# | | PPO's batch | a replay buffer |
# |---|---|---|
# | collected by | the policy as it was before the first of these steps | all policies for a long time |
# | used | a few epochs, then thrown away | until it is overwritten |
# | asked | which actions were better than that policy's average | what followed an action |
# | ratio | needed | not needed: what followed an action does not ask who chose it |
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
calm = take_steps(recomputed)

# %%
claim(
    "importance.recomputed",
    "With old log-probabilities computed anew at each step, the policy ends on lever 0 again.",
    torch.allclose(calm, without, atol=1e-9),
    control=("It ends where the ratio led it.", torch.allclose(calm[-1], corrected[-1], atol=0.1)),
)

# %% [markdown]
# A ratio upside down, old over new, is loud: the first step goes the wrong way.


# %%
def upside_down(log_probs, log_probs_old, advantages):
    return surrogate_loss(-log_probs, -log_probs_old, advantages)


# %%
first_move = take_steps(upside_down, num_steps=1)[1] - old
claim(
    "importance.upside_down",
    "With old over new, the first step makes lever 2, the worst, more likely.",
    first_move[2] > 0.01,
    control=("With new over old it does so as well.", corrected[1][2] > old[2]),
)

# %% [markdown]
# ## Exercises
#
# [Seven exercises](../exercises/02_importance.ipynb) wait for you: the ratio, what a batch is still worth, the
# surrogate, three estimates of one distance, four draws by hand, a loop with a bug, and one for experts.
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
# What does the ratio buy in a real run? CartPole again, 16 seeds, 98,304 moves each. First every batch is used
# again as it stands, then with the ratio. This was run once and recorded. Curves show the return while
# training, the dots at the right 50 more episodes in which each policy takes its likeliest action.
#
# Do not compare this with the 8 of 10 of lesson 01: much else differs. There one update took a batch of 32
# whole episodes. Here it is the loop of lesson 08: a batch is 2,048 moves, eight passes over it make 32
# steps of the parameters, a critic says what to expect, and the learning rate was chosen for the loop with
# the clip of lesson 04. The two panels differ in the ratio alone.

# %%
study = recorded("stairs")
stairs = {name: study["runs"][name] for name in ("reuse without ratio", "ratio")}
curves = {
    name: [(run["env_steps"], run["episode_return"]) for run in runs]
    for name, runs in stairs.items()
}
finals = {name: [run["final_greedy"] for run in runs] for name, runs in stairs.items()}

# %%
show(
    stair(curves, finals, goal=475),
    alt="Learning curves of 16 seeds on two stairs, with final returns as dots. Without a ratio most "
    "fall back to the floor and no dot is above 120. With the ratio they scatter, and 8 dots are above 475.",
)

# %% [markdown]
# A seed has solved CartPole if its dot is at 475 or above.

# %%
solved = {name: sum(value >= 475 for value in values) for name, values in finals.items()}
last = [run["episode_return"][-1] for run in stairs["ratio"] if run["final_greedy"] >= 475]

# %%
claim(
    "importance.stair",
    "Of 16 seeds, reuse as it stands ends with none solved, and reuse with the ratio with 8.",
    solved == {"reuse without ratio": 0, "ratio": 8},
    control=(
        "Most of these 8 also earn 400 in training, where actions are drawn.",
        sum(each >= 400 for each in last) > 4,
    ),
)

# %% [markdown]
# (Drawn actions err now and then, the likeliest ones do not.) Half of the seeds is better than none, and not
# good enough. Look at the right panel: many seeds rise and then fall. Nothing in L says when to stop
# believing it. With a limit, in the same loop, all 16 are solved: that is lesson 04. And whether reuse pays
# at all depends on what a sample costs; lesson 08 has the whole staircase.
#
# ## What you have now
#
# - Old draws serve a new policy if each counts π_new / π_old, computed from logarithms.
# - The ratio spreads as policies part: watch the effective sample size. Over whole episodes it is
#   hopeless, so PPO takes one ratio per step.
# - J_new − J_old is exactly d_new, π_new and A_old. L puts d_old in place of d_new: equal in value and
#   gradient at the old policy, wrong by the square of the distance away from it.
# - L can rise while J falls: through shared parameters, if you go far, and through noise, if you stay long.
#
# Next: how far may you trust L? [Lesson 03](03_trust_region.ipynb) draws a ball around the old policy and
# stays inside. It costs much, and [lesson 04](04_clip.ipynb), the clip, does something cheaper.
