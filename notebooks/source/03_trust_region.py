# %% [markdown]
# # Trust region
#
# **How far may I trust the surrogate?**
#
# In [lesson 02](02_importance.ipynb) you climbed the surrogate L all the way. It promised +0.36, and
# J lost 2.07. L was exact, and no ratio was wrong: L counts the states that the old policy visits,
# and the new one went elsewhere. Near the old policy L is right, in value and in slope. So stay near
# it.
#
# That leaves two questions. *How* near? And near *in what*: by which ruler? The method that took both
# seriously is TRPO (trust region policy optimization, Schulman et al. 2015). PPO was made to get the
# same for less, and you see what it is for only if you know the price. So here you take the TRPO step
# with exact numbers, find out what it promises, and what it costs.
#
# The words you need: a **policy** π comes from **logits**, J is its mean return, A(s, a) the
# **advantage**, d(s) how often an episode visits s. The **ratio** is π_new / π_old. The **surrogate**
# L is the gain that old states promise, Σ d_old(s) Σ π_old · ratio · A, in reward per episode. (A batch
# estimates it as the mean of ratio · A, which is L divided by the length of an episode.)
# **KL**(π_old ‖ π_new) is the mean of −log ratio over what the old policy does, in **nats**. One section
# needs a matrix times a vector, and the inverse of a matrix.

# %% tags=["nbval-ignore-output"]
import math
from functools import partial

import numpy as np
import torch
from torch.autograd import grad
from torch.autograd.functional import hessian

from ppo_lessons import claim, compare, mdp, predict, quiz, setup, show, show_source
from ppo_lessons import trust_region as region
from ppo_lessons.figures import trust_region as figures
from ppo_lessons.importance import approximate_kl
from ppo_lessons.networks import make_networks
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.widgets import TrustRegion

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("trust_region.review_surrogate")

# %%
quiz("trust_region.review_logits")

# %% [markdown]
# The third is on distance:

# %%
quiz("trust_region.review_kl")

# %% [markdown]
# ## One step too far
#
# Back to **the trap**. Action 1 pays at the gate and ruins in the pit, and the policy takes it with the
# same probability p in both. The old policy has p = 0.1.
#
# ```
# (gate) --- 1: +1 --> (pit) --- 1: -3 --> end
#    |                    |
#    +-- 0: 0 --> end     +-- 0: 0 --> end
# ```
#
# L is a straight line. At the gate, p is worth 1 − 0.3 = 0.7; in the pit it costs 3, and L counts the pit
# a tenth of the time, as the old policy visits it. Together 0.7 − 0.3: L = 0.4 · (p − 0.1). It says: the
# more of action 1, the better, up to p = 1. Where is J highest?

# %%
predict("trust_region.best_p", None)

# %% [markdown]
# Solve it exactly. `coins` gives each state a policy of two actions, `on_trap` the same to both
# states.


# %%
def coins(chances):
    chances = torch.as_tensor(chances, dtype=torch.float64)
    return torch.stack([1 - chances, chances], dim=-1)


def on_trap(chances):
    return torch.stack([coins(chances), coins(chances)], dim=-2)


# %%
trap, careful = mdp.surrogate_trap(), on_trap(0.1)
line = torch.linspace(0.1, 0.4, 301, dtype=torch.float64)
gained = mdp.performance_difference(trap, on_trap(line), careful, gamma=1.0)
promised = 0.4 * (line - 0.1)
compare("trust_region.best_p", line[gained.argmax()])

# %% [markdown]
# The dotted lines say how far the policy is from the old one, as KL.

# %%
distances = mdp.mean_kl(trap, on_trap(line), careful, gamma=1.0)
edges = {kl: line[(distances >= kl).int().argmax()].item() for kl in (0.01, 0.03, 0.06, 0.1)}

# %%
show(
    figures.overshoot(line.numpy(), gained.numpy(), promised.numpy(), old=0.1, balls=edges),
    alt="L rises in a straight line. J leaves it, is highest at 0.167, and falls below its start at 0.233, "
    "where the KL is 0.06. The region of KL below 0.01 is shaded; there J rises.",
)

# %% [markdown]
# The first part of the way is good. Up to p = 1/6 J rises, at 7/30 all is lost again, and further on
# you pay. By hand: J = p·(1 − 3p), so what J gains is L minus 3·(p − 0.1)². The error of L is a
# square, as lesson 02 found: nothing to speak of for a small step, and all that matters for a large
# one.

# %%
square = (line - 0.1) ** 2
claim(
    "trust_region.square",
    "In the trap J gains L minus 3 times the square of the step in p.",
    torch.allclose(gained, promised - 3 * square, atol=1e-12),
    control=(
        "It gains L minus the square of the step.",
        torch.allclose(gained, promised - square, atol=1e-3),
    ),
)

# %% [markdown]
# ## Why not turn back?
#
# A step too far: so what? Take the next one backwards. With a fixed set of data that would be fine,
# since the data do not care where you are. Here they do. **The policy collects its own next batch.**
#
# Two levers: the good one pays 1, the other 0. A step too far has left the good lever with a low
# probability. From there you follow the exact gradient, with learning rate 1. From 0.1 it takes 8
# steps to get back to one half. How many from 0.001?

# %%
predict("trust_region.way_back", None, unit="steps")

# %%
two_levers = mdp.bandit([0.0, 1.0])


def climb(logits):
    return logits + mdp.policy_gradient(two_levers, logits, gamma=1.0)


def way_back(chance, update, num_steps=600):
    logits = coins([chance]).log()
    for _ in range(num_steps):
        yield logits.softmax(-1)[0, 1].item()
        logits = update(logits)


# %% [markdown]
# `way_back` yields the probability of the good lever after every step. Count those below one half:

# %%
depths = (0.1, 0.01, 0.001)
climbs = {depth: list(way_back(depth, climb)) for depth in depths}
needed_steps = [sum(chance < 0.5 for chance in climbs[depth]) for depth in depths]
compare("trust_region.way_back", needed_steps[-1], unit="steps")

# %% [markdown]
# The slope of J by the logit of the good lever is p·(1 − p), and by the other it is minus that. So where
# p is small, a step multiplies the odds by about 1 + 2p, and takes about 2 off 1/p. From 1/p = 1,000
# that makes 500 steps. You walk on flat ground.

# %%
show(
    figures.recovery(climbs),
    alt="Three curves over steps on a logarithmic axis. From 0.1 the good action is back at one half "
    "after 8 steps, from 0.01 after 56, from 0.001 after 510.",
)

# %%
first_more, second_more = np.diff(needed_steps)
claim(
    "trust_region.dead_action",
    "Back to one half takes 8 steps from 0.1, 56 from 0.01, and 510 from 0.001.",
    needed_steps == [8, 56, 510],
    control=(
        "Ten times rarer costs a fixed number of steps more.",
        bool(second_more < 2 * first_more),
    ),
)

# %% [markdown]
# And that was the exact gradient. Samples are worse: an action that is not drawn cannot be found
# good. At 0.001, most batches of 64 hold no draw of it at all, and such a batch knows of one lever
# only.

# %%
missed_often, missed_seldom = ((1 - chance) ** 64 for chance in (0.001, 0.1))
claim(
    "trust_region.not_drawn",
    "At probability 0.001, 94 % of all batches of 64 do not hold the action.",
    math.isclose(missed_often, 0.938, abs_tol=1e-3),
    control=("At probability 0.1 more than half do not.", missed_seldom > 0.5),
)

# %% [markdown]
# A step too far costs hundreds. So it is worth some effort not to take it.
#
# ## Near in what?
#
# The first ruler that comes to mind is the length of the step in the parameters. Move one logit by 1,
# from p = 0.5, from 0.8 and from 0.99:

# %%
before = torch.tensor([0.5, 0.8, 0.99], dtype=torch.float64)
after = (before.logit() + 1).sigmoid()
middle_kl, side_kl, end_kl = moved_kl = mdp.state_kl(coins(before), coins(after))
for first, second, kl in zip(before, after, moved_kl, strict=True):
    print(f"{first:.2f} -> {second:.3f}   KL {kl:.4f}")

# %% [markdown]
# The same step in parameters is a large change of behaviour in one place and hardly any in the other.
# It takes a ruler that measures behaviour.

# %%
claim(
    "trust_region.not_parameters",
    "By KL the step from 0.5 is more than 30 times as large as the same step from 0.99.",
    middle_kl > 30 * end_kl,
    control=("It is more than 30 times the same step from 0.8, too.", middle_kl > 30 * side_kl),
)

# %% [markdown]
# The difference of probabilities, then? From 0.50 to 0.51, or from 0.01 to 0.02: the same difference, but
# in the second case the action has become twice as frequent. And a policy that went from 0.99 to 1 would
# have given up an action for good. (A softmax never gets there.)

# %%
half, rare, last = mdp.state_kl(coins([0.5, 0.01, 0.99]), coins([0.51, 0.02, 1.0]))
claim(
    "trust_region.not_probabilities",
    "A change of 0.01 is a KL of 0.0002 from 0.5, of 0.0031 from 0.01, and infinite from 0.99 to 1.",
    abs(half - 2e-4) < 1e-5 and abs(rare - 0.0031) < 1e-4 and last.isinf(),
    control=("From 0.5 and from 0.01 it is about the same KL.", rare < 2 * half),
)

# %% [markdown]
# What does the KL measure? Somebody watches the old policy act and wonders: is this the old policy or
# the new one? Each action is evidence for the old one, log(π_old / π_new) on average, and that average
# is the KL. After 100 actions at 0.01 nats it adds up to 1 nat: odds of e to 1. So a small KL says that
# the *old data could be the new policy's own*.
#
# **The order matters.** KL(π_old ‖ π_new) is not KL(π_new ‖ π_old). The old policy stands first, for
# two reasons. The mean is taken over its actions, and those you have. And it grows without limit when
# one of its actions dies; you have seen the way back. The other one hardly notices:

# %%
toss, dying = coins([0.5, 0.5]), coins([0.99, 0.999999])
old_first, new_first = mdp.state_kl(toss, dying), mdp.state_kl(dying, toss)
print("old first ", [f"{kl:.2f}" for kl in old_first])
print("new first ", [f"{kl:.2f}" for kl in new_first])

# %% [markdown]
# From 0.5 to 0.99, then to 0.999999. The first line goes on rising. The second ends at ln 2 = 0.69.

# %%
claim(
    "trust_region.order",
    "With the old policy first the KL rises from 1.6 to 6.2, and exchanged it stays below ln 2.",
    old_first[0] < 1.7 and old_first[1] > 6 and new_first.max() < math.log(2),
    control=("Exchanged, it is about the same.", torch.allclose(old_first, new_first, rtol=0.5)),
)

# %% [markdown]
# It has a blind side: an action that the *new* policy takes often and the old one hardly ever. That
# is what made reuse dear in lesson 02, where the effective sample size told you. Take the pair from
# there, both ways round:


# %%
def share_left(old, new):
    return (1 / (coins(new) ** 2 / coins(old)).sum(-1)).item()


away_kl, back_kl = mdp.state_kl(coins([0.99, 0.6]), coins([0.6, 0.99])).tolist()
away_share, back_share = share_left(0.99, 0.6), share_left(0.6, 0.99)
print(f"0.99 -> 0.60   KL {away_kl:.2f}   a batch is worth {away_share:.0%}")
print(f"0.60 -> 0.99   KL {back_kl:.2f}   a batch is worth {back_share:.0%}")

# %% [markdown]
# A small KL is no promise for the ratios. Watch both.

# %%
claim(
    "trust_region.worth",
    "With a KL of 0.46 a batch is worth 6 % of its draws, and with one of 1.18 it is worth 61 %.",
    np.allclose([away_kl, away_share, back_kl, back_share], [0.46, 0.06, 1.18, 0.61], atol=5e-3),
    control=("Where the KL is below 1, it is worth more than half.", away_share > 0.5),
)

# %% [markdown]
# All policies whose KL is at most δ form the **KL ball** around the old one, also called the **trust
# region**: in it you believe L, outside you do not. Its edge is the **fence**. (A paper calls it a
# *constraint*.) Here is the ball for a coin, around five old policies:

# %%
centres = torch.tensor([0.01, 0.1, 0.5, 0.9, 0.99], dtype=torch.float64)
grid = torch.linspace(-9, 9, 36_001, dtype=torch.float64).sigmoid()
near = [mdp.state_kl(coins([p]), coins(grid).unsqueeze(-2))[:, 0] <= 0.01 for p in centres]
ends = torch.stack([torch.stack([grid[within].min(), grid[within].max()]) for within in near])
changes = ends.logit() - centres.logit().unsqueeze(-1)

# %%
show(
    figures.balls(centres.tolist(), ends.tolist(), changes.tolist(), max_kl=0.01),
    alt="Intervals of KL below 0.01 around five policies. In probability they are wide in the middle and "
    "narrow near 0 and 1; in logits it is the other way round.",
)

# %% [markdown]
# A step of fixed length in the logits would be one width for all rows of the right panel: too bold in
# the middle, or too timid at the ends. The ball knows the difference. Look at the lowest row, though:
# from 0.01 one step may lead down to 0.0016. The ball slows the dying of an action, it does not forbid
# it.
#
# How much can change inside? No probability by more than √(δ/2), by *Pinsker's inequality*. And who
# acts nearly alike visits nearly the same states, which is what L needs.

# %%
widest = (ends - centres.unsqueeze(-1)).abs().max()
claim(
    "trust_region.pinsker",
    "In these balls no probability changes by more than √(0.01 / 2) = 0.071.",
    widest <= math.sqrt(0.01 / 2),
    control=("None changes by more than 0.01.", widest <= 0.01),
)

# %% [markdown]
# ## The best step in the ball
#
# Now for the heart of TRPO: *maximise L inside the ball*. The **fork** has two places to choose in: go
# or stay, then right or wrong. All else pays 0. The old policy goes with 0.2 and is right with 0.2.
#
# ```
# (door) --- go ---> (room) --- right: +20 ---> end
#    |                  |
#    +--- stay ---> end +--- wrong ---> end
# ```
#
# J = 20 · 0.2 · 0.2. When the log-odds of going move by a small x, its probability moves by p(1 − p)·x =
# 0.16x, and J by 20 · 0.2 · 0.16x = 0.64x. The same holds for the log-odds of being right. So the plain
# gradient moves the two log-odds equally far. The best step in the ball does not. How many times as far
# as the log-odds of going does it move those of being right?

# %%
predict("trust_region.room", None, unit="times")

# %% [markdown]
# **By hand.** Call the two changes x and y. For small ones L is a straight line. The KL of one state is
# a parabola, ½·p(1 − p)·x²: it starts flat, since at the old policy it is 0, its lowest value. For the
# mean, count the door once per episode and the room in one of five:
#
# $$L \approx 0.64\,x + 0.64\,y, \qquad
# \text{mean KL} \approx \frac{\tfrac12 \cdot 0.16\,x^2 + 0.2 \cdot \tfrac12 \cdot 0.16\,y^2}{1.2}$$
#
# Put a price β on each nat, and ask where L − β · KL is highest. There both derivatives are 0:
#
# $$0.64 = \beta\,\frac{0.16\,x}{1.2}, \qquad 0.64 = \beta\,\frac{0.2 \cdot 0.16\,y}{1.2}$$
#
# Whatever the price, y = 5x. The room is visited in one episode of five, so a change there costs a
# fifth, and you buy five times as much of it. The price sets the length only: choose it so that the KL
# is δ. (Is that the best step in the *ball*? Yes: a step with more L and no more KL would beat it at
# that price, too.)
#
# **With more numbers** these are the same three lines. Now x is a vector, g holds the slopes, and a
# matrix F the second derivatives of the mean KL:
#
# $$L \approx g \cdot x, \qquad \text{mean KL} \approx \tfrac12\, x^{\mathsf T} F x$$
#
# $$g - \beta F x = 0 \;\Rightarrow\; x = \tfrac1\beta F^{-1} g, \qquad
# \tfrac12\, x^{\mathsf T} F x = \delta \;\Rightarrow\; \beta = \sqrt{g^{\mathsf T} F^{-1} g / 2\delta}$$
#
# F is the **Fisher matrix**: how fast behaviour changes in each direction. The direction F⁻¹g is the
# **natural gradient** (Kakade 2001), and with the length that the fence allows it is TRPO's step.
#
# To get F, nobody has to differentiate twice. Probabilities add up to 1, so their second derivatives
# add up to 0. With ∇²π = π · (∇²log π + ∇log π · ∇log πᵀ) that says: the mean of −∇²log π, which is the
# second derivative of the KL, equals **the mean of ∇log π · ∇log πᵀ**, score times score.

# %%
fork, start = mdp.fork(), coins([0.2, 0.2]).log()
policy_old = mdp.softmax_policy(fork, start)
slope = mdp.policy_gradient(fork, start, gamma=1.0).flatten()
fisher = mdp.fisher_matrix(fork, start, gamma=1.0)
logits = start.flatten()

# %% [markdown]
# `fisher_matrix` takes the mean of score times score, over the four logits. Beside it, the second
# derivatives of the mean KL and of J:


# %%
def policy_at(logits):
    return mdp.softmax_policy(fork, logits.reshape(2, 2))


def kl_at(logits):
    return mdp.mean_kl(fork, policy_at(logits), policy_old, gamma=1.0)


def return_at(logits):
    return mdp.expected_return(fork, policy_at(logits), gamma=1.0)


# %%
claim(
    "trust_region.fisher",
    "The mean of score times score is the matrix of second derivatives of the mean KL.",
    torch.allclose(hessian(kl_at, logits), fisher),
    control=("It is that of J.", torch.allclose(hessian(return_at, logits), fisher, atol=0.1)),
)

# %% [markdown]
# (In one direction for each state F is 0: add the same number to both of its logits, and no probability
# changes. There F has no inverse, and needs none, since g is 0 there, too. The code takes the
# *pseudo-inverse*, which leaves such directions alone. It calls the parameters θ and their number P.)

# %%
show_source(region.natural_gradient_step)

# %%
natural = region.natural_gradient_step(slope, fisher, max_kl=0.01)
door, room = natural.reshape(2, 2)
compare("trust_region.room", room[1] / door[1], unit="times")

# %% [markdown]
# Is it the step that you derived? It must solve g = βFx. (Multiply by x: then g·x = β · 2δ, so β is
# g·x / 2δ.) Beside it the plain gradient, stretched to the same KL:


# %%
def stretched(gradient, fisher, *, max_kl):
    return gradient * (2 * max_kl / (gradient @ fisher @ gradient)).sqrt()


def solves(step):
    return torch.allclose(slope, slope @ step / 0.02 * fisher @ step, atol=1e-9)


# %%
plain = stretched(slope, fisher, max_kl=0.01)
claim(
    "trust_region.derived",
    "The natural step solves g = βFx.",
    solves(natural),
    control=("The plain step with the same KL solves it, with another β.", solves(plain)),
)

# %% [markdown]
# Line and parabola are approximations, and so is "best". Take a thousand random steps, all with a KL of
# 0.01 by the parabola, and judge them by the true L and the true KL:


# %%
def promise_at(logits):
    return mdp.expected_surrogate(fork, policy_at(logits), policy_old, torch.mul, gamma=1.0)


generator = torch.Generator().manual_seed(0)
others = torch.randn(1000, 4, generator=generator, dtype=torch.float64)
reached = [logits + stretched(other, fisher, max_kl=0.01) for other in others]
climbed, kl_there = torch.stack([torch.stack([promise_at(end), kl_at(end)]) for end in reached]).T

# %%
natural_l, full_kl = promise_at(logits + natural), kl_at(logits + natural)
print(f"true L: natural step {natural_l:.3f}, plain step {promise_at(logits + plain):.3f}")
better = climbed > natural_l
claim(
    "trust_region.best_step",
    "Of 1,000 random steps none has more true L than the natural one without more true KL.",
    not (better & (kl_there <= full_kl)).any(),
    control=("None has more true L, whatever its true KL.", not better.any()),
)

# %% [markdown]
# The true KL of the natural step is 0.0113, a little outside of the ball. So TRPO looks before it
# leaps: if the true KL is too large, or L does not rise, it halves the step and looks again. That is
# a **line search**.

# %%
searched = region.backtracking_line_search(
    logits, natural, improvement=promise_at, kl=kl_at, max_kl=0.01, shrink=0.5, max_tries=10
)
searched_kl = kl_at(searched)
print(f"full step      KL {full_kl:.4f}")
print(f"after halving  KL {searched_kl:.4f}")

# %%
claim(
    "trust_region.line_search",
    "The full step leaves the ball of 0.01, and half of it does not.",
    full_kl > 0.01 > searched_kl and torch.allclose(searched, logits + natural / 2),
    control=("The same step backwards leaves it, too.", kl_at(logits - natural) > 0.01),
)

# %% [markdown]
# ## A step that does not care how you write the policy
#
# You may write the same policies in other parameters. Let the logit of going be 5 times a parameter,
# for instance. Nothing about the policies has changed, but a plain gradient thinks it has: 5 times
# the slope, and each step counts 5 times. The natural step divides that out again. Start at (0.2,
# 0.2) and take twelve steps, each with KL 0.01 by the parabola, with three ways of writing:


# %%
def features_of(door, room):
    features = torch.zeros(2, 2, 2, dtype=torch.float64)
    features[0, 1, 0], features[1, 1, 1] = door, room
    return features


# %%
def walk(step_of, features, num_steps=13):
    scales = torch.stack([features[0, 1, 0], features[1, 1, 1]])
    parameters = torch.full((2,), 0.2, dtype=torch.float64).logit() / scales
    for _ in range(num_steps):
        yield mdp.softmax_policy(fork, parameters, features=features)[:, 1]
        slope = mdp.policy_gradient(fork, parameters, gamma=1.0, features=features)
        fisher = mdp.fisher_matrix(fork, parameters, gamma=1.0, features=features)
        parameters = parameters + step_of(slope, fisher, max_kl=0.01)


# %% [markdown]
# A path holds the probabilities of going and of being right after every step. In the picture the star
# is the start, and thin lines have equal J.

# %%
scales = {"as logits": (1, 1), "door × 5": (5, 1), "room × 5": (1, 5)}
ways = {name: features_of(*factors) for name, factors in scales.items()}


def paths_of(step_of):
    return {name: torch.stack([*walk(step_of, features)]) for name, features in ways.items()}


# %%
plain_paths, natural_paths = paths_of(stretched), paths_of(region.natural_gradient_step)
chances = torch.linspace(0, 1, 101, dtype=torch.float64)
show(
    figures.writings(
        {"Plain gradient: three paths": plain_paths, "Natural: one": natural_paths},
        chances.numpy(),
        (20 * chances * chances.unsqueeze(-1)).numpy(),
    ),
    alt="Two panels with the paths of twelve steps from (0.2, 0.2). By the plain gradient the three ways "
    "of writing give three different paths; by the natural gradient all three lie on one another.",
)

# %% [markdown]
# In numbers:


# %%
def spread(paths):
    stacked = torch.stack([*paths.values()])
    return (stacked.amax(0) - stacked.amin(0)).max()


# %%
claim(
    "trust_region.invariant",
    "By the natural step all three ways of writing take the same path.",
    spread(natural_paths) < 1e-8,
    control=("By the plain step they do, too, to within 0.1.", spread(plain_paths) < 0.1),
)

# %% [markdown]
# (For new parameters that are linear in the old ones this is exact. For others it holds as long as
# the steps are small.) In a network nobody chooses how the policies are written; it happens. A step
# that does not depend on it is worth something.
#
# Remember the way back from a dead action: 8, 56, 510 steps. The flat ground was in the parameters,
# not in the policies. Take natural steps, each with the line search:


# %%
def natural_climb(logits):
    slope = mdp.policy_gradient(two_levers, logits, gamma=1.0).flatten()
    fisher = mdp.fisher_matrix(two_levers, logits, gamma=1.0)
    step = region.natural_gradient_step(slope, fisher, max_kl=0.01).reshape(1, 2)
    here, earned = logits.softmax(-1), logits.softmax(-1)[0, 1]
    return region.backtracking_line_search(
        logits,
        step,
        improvement=lambda new: new.softmax(-1)[0, 1] - earned,
        kl=lambda new: mdp.state_kl(here, new.softmax(-1))[0],
        **{"max_kl": 0.01, "shrink": 0.5, "max_tries": 10},
    )


# %%
natural_steps = [sum(chance < 0.5 for chance in way_back(p, natural_climb, 50)) for p in depths]
claim(
    "trust_region.no_flat_ground",
    "Natural steps inside the fence bring the action back in 13, 19 and 20 steps.",
    natural_steps == [13, 19, 20],
    control=(
        "Ten times rarer takes at least five times as many.",
        natural_steps[2] >= 5 * natural_steps[1],
    ),
)

# %% [markdown]
# (Without the search it would be 7, 9 and 8. But from 0.001 the first of them goes to 0.08, with a KL
# of 0.08: far from the old policy the parabola no longer knows where the fence is.)
#
# That was the exact gradient. From samples no step can do it. A batch that does not hold the action
# does not know that it is good, and F⁻¹ does not tell it.
#
# ## A price instead of a fence
#
# A fence is awkward: *stay inside* is no loss that an optimiser could follow. A price is one, and you
# have met it already:
#
# $$L - \beta \cdot \text{mean KL}$$
#
# (Papers call it a *KL penalty*, where the fence is a *KL constraint*.) Its best step is F⁻¹g / β, the
# natural direction again. So each fence has a price that leads to the same place, β = g·x / 2δ:

# %%
price = slope @ natural / (2 * 0.01)
print(f"β = {price:.1f} reward per nat")

# %% [markdown]
# (Here L is a sum over an episode, and the KL a mean over its steps. In a batch both are means over
# steps, and the price of the same fence is lower: divided by the length of an episode.) What does a price
# twice as high do to the KL?

# %%
half_step_kl = kl_at(logits + natural / 2)
claim(
    "trust_region.price",
    "Twice the price halves the step, so it leaves about a quarter of the KL.",
    0.2 < half_step_kl / full_kl < 0.3,
    control=("It leaves about half of the KL.", 0.4 < half_step_kl / full_kl < 0.6),
)

# %% [markdown]
# Then why have a fence at all? Because the price depends on where you are. Walk the natural path once
# more and ask, at each step, which β would have kept it on the fence:


# %%
def needed_price(chances):
    parameters, features = chances.logit(), features_of(1, 1)
    slope = mdp.policy_gradient(fork, parameters, gamma=1.0, features=features)
    fisher = mdp.fisher_matrix(fork, parameters, gamma=1.0, features=features)
    return slope @ region.natural_gradient_step(slope, fisher, max_kl=0.01) / 0.02


# %%
longer = walk(region.natural_gradient_step, features_of(1, 1), num_steps=17)
needed = torch.stack([needed_price(chances) for chances in longer])
kl_at_fixed = 0.01 * (needed / needed[0]) ** 2

# %% [markdown]
# On the right: the KL of each step, by the parabola, if the price stays what it was at the first.

# %%
show(
    figures.prices(needed.tolist(), kl_at_fixed.tolist(), max_kl=0.01),
    alt="Left: the price that keeps each step at KL 0.01 rises from 30 to 89 and falls to 7. Right: at the "
    "first step's price the KL rises to 0.087 and falls almost to 0.",
)

# %% [markdown]
# A price that is right at the start allows nine times the KL in the middle, three times the step, and
# hardly lets the policy move at the end. And it has a unit: reward per nat. Count the rewards in cents,
# and it is wrong by a hundred.

# %%
claim(
    "trust_region.price_moves",
    "On one path the right price varies by more than a factor of 10.",
    needed.max() > 10 * needed.min(),
    control=("It rises all the way, as J does.", (needed.diff() > 0).all()),
)

# %% [markdown]
# **From samples** the price becomes a loss, with an estimate of the KL in it. (Which one? This part may
# be left out at first: go on at *So the package takes k3*.) An optimiser follows the *gradient* of the
# estimate. Lesson 02 had k1 and k3. A third one, k2, is half the mean of (log ratio)²; near the old
# policy its value is nearly right. One term pushes with
#
# - k1: −∇log π. Its mean is the gradient of KL(π_old ‖ π), by definition.
# - k3: (ratio − 1)·∇log π. The mean of ratio · ∇log π is that of ∇log π over the *new* policy's draws,
#   which is 0. So the mean is the same.
# - k2: log ratio · ∇log π. That agrees with k3 only where the ratio is close to 1.
#
# Take ten draws, six, three and one of three actions, as the old policy would draw them:

# %%
kept = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
drawn = torch.tensor([0] * 6 + [1] * 3 + [2])
tilted = kept.log() + torch.tensor([-0.5, 0.5, 1.0], dtype=torch.float64)
true_gradient = tilted.softmax(-1) - kept  # of KL(old ‖ new), by the new logits


def kl_gradient(estimator):
    moving = tilted.clone().requires_grad_()
    log_probs, log_probs_old = moving.log_softmax(-1)[drawn], kept.log()[drawn]
    return grad(approximate_kl(log_probs, log_probs_old, estimator=estimator), moving)[0]


# %%
by_k1, by_k2, by_k3 = (kl_gradient(estimator) for estimator in ("k1", "k2", "k3"))
claim(
    "trust_region.estimators",
    "On average the gradients of k1 and k3 are that of KL(π_old ‖ π).",
    torch.allclose(by_k1, true_gradient) and torch.allclose(by_k3, true_gradient),
    control=("That of k2 is, too.", torch.allclose(by_k2, true_gradient, atol=0.01)),
)

# %% [markdown]
# Between k1 and k3 the single terms decide. Where nothing has moved the ratio is 1, and k3 pushes no
# sample. k1 pushes each of them, and only the mean over many draws is 0: noise for nothing. So the
# package takes k3:

# %%
show_source(region.penalty_loss)

# %% [markdown]
# And which β? The PPO paper lets it follow the KL: after a KL above 1.5 times the target β is doubled,
# after one below the target / 1.5 it is halved. That is `adapt_beta`. Try it on CartPole. The **training loop** (lesson 08) collects a batch, climbs on it for some epochs
# and throws it away; one such turn is an **iteration**. `Parts` hands it your loss, and `on_iteration`
# calls a function after each turn, where `AdaptivePenalty` applies the rule. The loop scales
# advantages to size 1. Begin with a price of 100, which is far too high. One run keeps it, the other
# adapts it to a KL of 0.01.


# %%
def train_with(penalty, after_iteration):
    distances = []

    def write_down(state):
        distances.append(state.stats.kl_k3[-1].mean().item())
        after_iteration(state)

    config = PPOConfig(total_steps=12 * 2048, final_learning_rate=1.0)
    train(config, parts=Parts(policy_loss=penalty), on_iteration=write_down)
    return distances


# %%
fixed_kl = train_with(partial(region.penalty_loss, beta=100.0), lambda state: None)

# %% [markdown]
# And the same with a β that moves:

# %%
adaptive, betas = region.AdaptivePenalty(beta=100.0, target_kl=0.01), []


def adapt(state):
    betas.append(adaptive.beta)
    adaptive.after_iteration(state)


adaptive_kl = train_with(adaptive, adapt)

# %% [markdown]
# The shaded band is where the rule leaves β alone.

# %%
show(
    figures.adapting({"fixed": fixed_kl, "adaptive": adaptive_kl}, betas, target_kl=0.01),
    alt="Left, the KL of twelve iterations: with the fixed price it stays near 0.00001; with the adaptive "
    "one it rises to about 0.01 by the seventh and stays around it. Right: β falls from 100 to about 1.",
)

# %%
claim(
    "trust_region.adaptive",
    "From the seventh iteration on the adaptive run has a KL around 0.01, and a β below 10.",
    0.002 < np.median(adaptive_kl[6:]) < 0.04 and max(betas[6:]) < 10,
    control=("The fixed run has a KL of that size, too.", max(fixed_kl) > 0.002),
)

# %% [markdown]
# (One run of each; other seeds look alike.) It is a thermostat: late by one iteration, and never quite
# still. Do not take it for more. In table 1 of the PPO paper each setting has *one* β, or one target,
# for all seven robot tasks. The scores are averages, where 0 is a random policy and 1 the best result:
#
# | | best setting | score |
# | --- | --- | ---: |
# | neither clip nor price | | −0.39 |
# | fixed price | β = 3 | 0.72 |
# | adaptive price | KL of 0.01 | 0.74 |
# | clip (lesson 04) | ε = 0.2 | 0.82 |
#
# So a price is a great deal better than none, and one that follows the KL is hardly better than one
# fixed price for all seven. Where advantages are scaled to size 1, the unit is gone, and with it half
# of the trouble.
#
# ## The promise
#
# So far the size of the ball was a matter of taste. TRPO's theorem 1 replaces taste by proof. For any
# two policies
#
# $$J_{\text{new}} \;\ge\; J_{\text{old}} + L - C \cdot \max_s \text{KL}(s),
# \qquad C = \frac{4\gamma}{(1-\gamma)^2} \max_{s,a} |A_{\text{old}}(s, a)|$$
#
# (The paper's L contains J_old. It calls this a *lower bound*, and the steps that climb it *monotonic
# improvement*.) The error of L comes from visiting other states. How far the visits can shift depends
# on how different the policies are in the *worst* state; what it costs depends on the largest
# advantage. Both go on for some 1 / (1 − γ) steps, hence the square. If the right-hand side rises above
# J_old, then J rises, for certain.
#
# A price with a guarantee! Put in numbers. In the trap, now with γ = 0.9, the best new policy has p =
# 0.185, a step of 0.085. Climb the guarantee instead of J. How many times shorter is the best step by
# the guarantee?

# %%
predict("trust_region.times_shorter", None, unit="times")


# %%
def measured(changes, gamma=0.9):
    new, first = on_trap(0.1 + changes), mdp.expected_return(trap, careful, gamma=gamma)
    gained = mdp.expected_return(trap, new, gamma=gamma) - first
    guaranteed = region.trpo_lower_bound(trap, new, careful, gamma=gamma) - first
    penalty = region.trpo_penalty(trap, careful, gamma=gamma)
    promised = guaranteed + penalty * mdp.state_kl(careful, new).amax(-1)
    return torch.stack([gained, promised, guaranteed])


# %% [markdown]
# That is what J gains, what L promises, and what is guaranteed; the last two differ by C · max KL. Look
# for the best step of the first and of the last, on a wide and on a narrow grid:


# %%
def times_shorter(wide, narrow, gamma=0.9):
    best, safe = measured(wide, gamma)[0].argmax(), measured(narrow, gamma)[2].argmax()
    return wide[best] / narrow[safe]


wide, narrow = (torch.linspace(0, end, 1501, dtype=torch.float64) for end in (0.15, 1e-4))
compare("trust_region.times_shorter", times_shorter(wide, narrow), unit="times", digits=2)

# %% [markdown]
# Look at the axes: the right panel is the neighbourhood of 0, 1,500 times enlarged.

# %%
panels = [(steps.numpy(), *measured(steps).numpy()) for steps in (wide, narrow)]
show(
    figures.promise(panels),
    alt="Left: J is highest at a step of 0.085; the guaranteed curve falls like a stone from 0. Right, "
    "enlarged: the guaranteed curve rises to a maximum at 43 millionths, far below J and L.",
)

# %%
claim(
    "trust_region.useless",
    "In the trap C is 972, and the best step is 2,000 times as long as the guaranteed one.",
    math.isclose(region.trpo_penalty(trap, careful, gamma=0.9), 972, rel_tol=1e-9)
    and 1900 < times_shorter(wide, narrow) < 2100,
    control=(
        "At γ = 0.5 it is more than 1,000 times as long, too.",
        times_shorter(2 * wide, 100 * narrow, gamma=0.5) > 1000,
    ),
)

# %% [markdown]
# A step of 0.00004 for each batch: thousands of batches for what one good step gains. At γ = 0.99 it
# is a hundred times worse, and at γ = 1 this theorem gives no guarantee at all.
#
# Is the theorem merely careless? (This part may be left out at first: go on at *TRPO's authors*.) First
# see that it holds, in 100 random environments, with a new policy at three distances in each:


# %%
def random_pair(seed, spread):
    generator = torch.Generator().manual_seed(seed)
    moves = torch.rand(4, 2, 4, generator=generator, dtype=torch.float64) ** 3
    rewards, logits, change = torch.randn(3, 4, 2, generator=generator, dtype=torch.float64)
    begin = torch.full((4,), 0.25, dtype=torch.float64)
    moves = 0.9 * moves / moves.sum(-1, keepdim=True)
    place = mdp.MDP("random", moves, rewards, begin, torch.arange(4))
    return place, *mdp.softmax_policy(place, torch.stack([logits, logits + spread * change]))


# %% [markdown]
# `missing` says by how much J falls short of J_old + L, and what share of C that is per nat.


# %%
def missing(place, old, new, gamma):
    promised = mdp.expected_surrogate(place, new, old, torch.mul, gamma=gamma)
    short = promised - mdp.performance_difference(place, new, old, gamma=gamma)
    penalty = region.trpo_penalty(place, old, gamma=gamma)
    return short.item(), (short / (penalty * mdp.state_kl(old, new).max())).item()


# %%
pairs = [random_pair(seed, spread) for seed in range(100) for spread in (0.1, 0.5, 2.0)]
shortfalls, shares = zip(*(missing(*pair, gamma=0.5) for pair in pairs), strict=True)
claim(
    "trust_region.bound_holds",
    "On 300 pairs J never falls below the bound.",
    max(shares) <= 1,
    control=("It never falls below J_old + L.", max(shortfalls) <= 1e-9),
)

# %% [markdown]
# That was at γ = 0.5, and there a thirtieth of C is enough for all of them. Then why not take a
# thirtieth? Because somebody can build a place where that fails. In the **see-saw**, action 0 leads to
# state 0 and action 1 to state 1. Action 1 pays 1 in state 0 and costs 1 in state 1, and action 0 the
# other way round. The old policy tosses a coin, and the new one takes action 1 a little more often,
# everywhere. What it gains in state 0 it pays for in state 1, and it is in state 1 more often than L
# thinks.

# %%
leads_to = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
pays = torch.tensor([[-1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
begins = torch.tensor([1.0, 0.0], dtype=torch.float64)
see_saw = mdp.MDP("see-saw", leads_to, pays, begins, torch.arange(2))

# %%
near_share, far_share = (
    missing(see_saw, coins([0.5, 0.5]), coins([0.51, 0.51]), gamma)[1] for gamma in (0.5, 0.9)
)
print(f"share of C: {near_share:.2f} at γ = 0.5, {far_share:.2f} at γ = 0.9")
claim(
    "trust_region.not_careless",
    "At γ = 0.5 the see-saw needs a quarter of C, and no random pair needs a thirtieth.",
    math.isclose(near_share, 0.25, abs_tol=1e-3) and max(shares) < 1 / 30,
    control=("At γ = 0.9 the see-saw needs a quarter of C, too.", far_share > 0.2),
)

# %% [markdown]
# At γ = 0.9 it needs a twentieth. (A share of (1 − γ)/2 fits both.) So of the two factors 1 / (1 − γ)
# this place uses one. The theorem is not careless, since nobody may take a thirtieth everywhere. It is
# generous where γ is near 1, even in a place that was built to hurt, and it is useless for yours.
#
# TRPO's authors say themselves that steps at the theorem's price would be small. They keep the form of
# the theorem and drop the number: in the algorithm you find a fence in place of the price, δ = 0.01 set
# by hand, and the **mean** KL over the states of the batch in place of the maximum, which would be one
# constraint for every state.
#
# What is left of the promise then? Nothing that could be relied on. Put the old policy at p = 0.16,
# close to the top of J, and go to 0.18.


# %%
def on_both(old, new):
    old, new = on_trap(old), on_trap(new)
    promised = mdp.expected_surrogate(trap, new, old, torch.mul, gamma=1.0)
    return promised, mdp.performance_difference(trap, new, old, gamma=1.0)


# %%
at_the_top, below = on_both(0.16, 0.18), on_both(0.1, 0.12)
fence_kl = mdp.mean_kl(trap, on_trap(0.18), on_trap(0.16), gamma=1.0)
print("L promises {:+.4f}, J gains {:+.4f}".format(*at_the_top))
claim(
    "trust_region.fence_is_no_promise",
    "With a KL of 0.0014 L rises and J falls.",
    fence_kl < 0.0015 and at_the_top[0] > 0 > at_the_top[1],
    control=("From 0.1 to 0.12 it is so, too.", below[0] > 0 > below[1]),
)

# %% [markdown]
# And the mean hides single states. The natural step in the fork had a mean KL of 0.0113. How much was it
# in the room? And in a fork whose old policy nearly always goes, so that the room is seen as often as the
# door?


# %%
def room_to_mean(going):
    logits = coins([going, 0.2]).log()
    slope = mdp.policy_gradient(fork, logits, gamma=1.0).flatten()
    fisher = mdp.fisher_matrix(fork, logits, gamma=1.0)
    step = region.natural_gradient_step(slope, fisher, max_kl=0.01).reshape(2, 2)
    old, new = logits.softmax(-1), (logits + step).softmax(-1)
    return mdp.state_kl(old, new)[1] / mdp.mean_kl(fork, new, old, gamma=1.0)


# %%
claim(
    "trust_region.mean_hides",
    "In the room the KL of the natural step is more than five times the mean.",
    room_to_mean(0.2) > 5,
    control=("So it is if the old policy goes with 0.99.", room_to_mean(0.99) > 5),
)

# %% [markdown]
# So read it soberly. A trust region makes a disaster less likely. It does not make improvement certain.
# (What is said of it instead stands among the [half truths](../docs/half_truths.md).)
#
# ## The cheapest fence: stop
#
# There is a fence that costs nothing. Climb L with an ordinary optimiser, look at the KL after each
# epoch, and stop when it is too large:

# %%
show_source(region.stop_on_kl)

# %% [markdown]
# Two levers, the good one at 0.2, and a limit of 0.02 nats. (With one state L is J − J_old, so the
# gradient of J climbs it. And the KL is exact here; in training `kl_k1` estimates it.) Once with small
# steps, once with large ones:


# %%
def climb_until(max_kl, learning_rate, num_epochs=50):
    begin, logits, epochs, kl = coins([0.2]), coins([0.2]).log(), 0, 0.0
    while epochs < num_epochs and not region.stop_on_kl(kl, max_kl=max_kl):
        logits = logits + learning_rate * mdp.policy_gradient(two_levers, logits, gamma=1.0)
        kl, epochs = mdp.state_kl(begin, logits.softmax(-1)).item(), epochs + 1
    return epochs, kl


# %%
small_epochs, small_kl = climb_until(0.02, learning_rate=0.1)
large_epochs, large_kl = climb_until(0.02, learning_rate=20.0)
print(f"small steps: {small_epochs:2} epochs, KL {small_kl:.3f}")
print(f"large steps: {large_epochs:2} epochs, KL {large_kl:.3f}")

# %% [markdown]
# The rule leaves epochs out. It shortens no step, and it takes none back. With small steps it stops
# close behind the limit. With one large step there is nothing left to stop.

# %%
claim(
    "trust_region.stop",
    "With a limit of 0.02, small steps end below 0.025, and the first large step is beyond 1.",
    small_kl < 0.025 and large_epochs == 1 and large_kl > 1,
    control=(
        "A tenth of the large learning rate is enough to end below 0.025.",
        climb_until(0.02, learning_rate=2.0)[1] < 0.025,
    ),
)

# %% [markdown]
# And it is blunt. It looks at one number for the whole batch: when a few samples have gone too far, it
# ends the work on all of them. A finer tool would silence those few, and let the others go on. Keep
# that wish for the end.
#
# ## What TRPO costs
#
# If the ball is such a good idea, why does not everybody use TRPO? Three reasons.
#
# **The matrix.** F has a row and a column for each parameter. A policy for CartPole, with two layers
# of 64 units, is small:

# %%
generator = torch.Generator().manual_seed(0)
networks = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator)
num_parameters = sum(weights.numel() for weights in networks.policy.parameters())
print(f"{num_parameters:,} parameters, {num_parameters**2:,} numbers in F")

# %% [markdown]
# A language model with 10⁹ parameters would need 10¹⁸ numbers. So, whatever you may read, **TRPO
# never builds F**. It needs only products F·v with single vectors, and such a product is two backward
# passes: differentiate the KL, multiply by v, differentiate again. (From ten or so products the
# *conjugate gradient* method puts F⁻¹g together.) One pass gives 0, since at the old policy the KL is
# at the bottom of its bowl.

# %%
vector = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
moving = logits.clone().requires_grad_()
(once,) = grad(kl_at(moving), moving, create_graph=True)
(twice,) = grad(once @ vector, moving)

# %%
claim(
    "trust_region.product",
    "Two backward passes give F·v without F.",
    torch.allclose(twice, fisher @ vector),
    control=("One pass, times v, gives it.", torch.allclose(once * vector, fisher @ vector)),
)

# %% [markdown]
# That is possible, and it is dear: some twenty backward passes for one step, and a line search on top.
# No ordinary optimiser does it for you.
#
# **Noise in the network.** Dropout switches off random units at each pass. TRPO needs KL = 0 at the
# old policy, and a parabola around it. Let a network with dropout of 0.1 judge the same states twice,
# *without any step in between*:

# %%
states = torch.randn(2048, 4, generator=generator)
inner = torch.randn(4, 64, generator=generator) / 2
outer = torch.randn(64, 2, generator=generator) / 8


# %%
def answer(outer):
    kept = torch.rand(2048, 64, generator=generator) >= 0.1
    return ((states @ inner).tanh() * kept / 0.9 @ outer).log_softmax(-1)


def kl_of_two_passes(outer):
    first, second = answer(outer), answer(outer)
    return (first.exp() * (first - second)).sum(-1).mean()


# %% [markdown]
# It depends on how decided the network is. This one has logits of about 0.5, a fresh one has smaller
# ones. TRPO's fence is 0.01:

# %%
decided, fresh = kl_of_two_passes(outer), kl_of_two_passes(outer / 10)
print(f"KL of two passes: {decided:.3f}, with logits a tenth as large {fresh:.4f}")
claim(
    "trust_region.dropout",
    "With dropout 0.1, two passes of the same network are more than 0.01 nats apart.",
    decided > 0.01,
    control=("With logits a tenth as large they are, too.", fresh > 0.01),
)

# %% [markdown]
# As soon as the policy has learned something, the noise alone uses up the whole fence.
#
# **A shared network.** Policy and critic often share their first layers, and one loss trains both.
# But F knows the policy only. Here is a small network of that kind: 12 shared weights, 8 for the
# policy, 4 for the critic.

# %%
seen = torch.randn(32, 3, generator=generator, dtype=torch.float64)
shared_weights = torch.randn(24, generator=generator, dtype=torch.float64) / 2


# %%
def two_heads(weights):
    shared = (seen @ weights[:12].reshape(3, 4)).tanh()
    return (shared @ weights[12:20].reshape(4, 2)).log_softmax(-1), shared @ weights[20:]


def shared_kl(weights):
    first, second = two_heads(shared_weights)[0].detach(), two_heads(weights)[0]
    return (first.exp() * (first - second)).sum(-1).mean()


# %% [markdown]
# Its objective: prefer action 0 where the first number of the state is positive, and let the critic
# predict three times the second number.


# %%
def aim(weights):
    log_probs, values = two_heads(weights)
    error = ((values - 3 * seen[:, 1]) ** 2).mean()
    return (log_probs[:, 0].exp() * seen[:, 0].sign()).mean() - error / 2


moving = shared_weights.clone().requires_grad_()
(pull,) = grad(aim(moving), moving)
shared_step = region.natural_gradient_step(pull, hessian(shared_kl, shared_weights), max_kl=0.01)

# %% [markdown]
# The critic's own weights do not move the policy, so F is 0 for them. Unlike the logits above they
# have a slope, and F⁻¹ has no answer. The pseudo-inverse leaves them where they are:

# %%
head, trunk = shared_step[20:].abs().max(), shared_step[:12].abs().max()
claim(
    "trust_region.shared",
    "The slope pulls at the critic's head, and the natural step does not move it.",
    pull[20:].abs().max() > 0.1 and head < 1e-9,
    control=("It does not move the shared weights, either.", trunk < 1e-3),
)

# %% [markdown]
# The usual remedy adds a small number to the diagonal of F, called **damping**. Then the critic's head
# moves by its slope divided by that number, and no KL says whether that is too far. So with TRPO the
# critic is a network of its own, with its own optimiser.
#
# The authors of PPO name these three reasons in their introduction: too complicated, no noise in the
# network, no sharing. Remember them: they are the list of wishes for lesson 04. (PPO fulfils one of the
# three by half only. Dropout makes ratios noisy, too; but there is no fence that this noise could use
# up.)
#
# ## Try it with your hands
#
# One state, three actions: a policy is a point in a triangle, and at a corner it is sure of one
# action. Around the old policy lies the KL ball. Three steps start from it: the plain one at a
# learning rate, the natural one at δ, the penalty step at β. The widget asks first how far the
# plain step goes, in multiples of δ. Then move the three numbers, and look at the corner: the same
# learning rate hardly leaves the spot there, and the natural step is longer than its parabola says.
# (The second view, with the clip, is for lesson 04. Where no widget can run, you see a picture.)

# %%
triangle = TrustRegion(keep_as="trust_region.plain_step")
triangle

# %% [markdown]
# Its numbers are the package's. Check one, whatever you have moved:

# %%
three_levers = mdp.bandit(triangle.advantages.tolist())
old_logits = triangle.policy_old.log().unsqueeze(0)
ascent = triangle.learning_rate * mdp.policy_gradient(three_levers, old_logits, gamma=1.0)
there, here = (old_logits + ascent).softmax(-1), old_logits.softmax(-1)
assert abs(mdp.state_kl(here, there).item() - triangle.kl_plain) < 1e-9
print("the widget and the package agree")

# %% [markdown]
# ## Exercises
#
# [Seven exercises](../exercises/03_trust_region.ipynb) wait for you: write the KL of two policies, the
# natural step, the loss with a price and the rule for its price; compute seven numbers, among them how
# little the theorem guarantees; mend a line search; and, for experts, multiply by F without building
# it. Each check tells you which mistake it is.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("trust_region.ruler")

# %%
quiz("trust_region.direction")

# %% [markdown]
# On the price and on the promise:

# %%
quiz("trust_region.beta")

# %%
quiz("trust_region.bound")

# %% [markdown]
# And on the rule that stops:

# %%
quiz("trust_region.early_stop")

# %% [markdown]
# ## The stair
#
# This lesson has none of its own: nothing in it was trained over many seeds. Lesson 02 left you on the
# stair *with the ratio*: 8 of 16 seeds solve CartPole, and many rise and then fall, since nothing in L
# says when to stop believing it. Now you know three things that would. The next stair is that of
# lesson 04.
#
# ## What you have now
#
# - L is trusted near the old policy. A step too far is dear, since the policy collects its own data:
#   the way back from a probability p grows like 1/(2p).
# - Near is measured in behaviour, by KL(π_old ‖ π_new): not in parameters, and not in probabilities.
# - The best step in a small ball is F⁻¹g. It does not depend on how the policy is written. TRPO takes
#   it, with products F·v instead of F, with the mean KL, and with a line search.
# - A price β leads to the same place as a fence, but to another one as soon as the slope changes; so
#   it has to follow the KL, or be tuned.
# - In the trap the theorem guarantees steps that are thousands of times too short. In practice δ is
#   chosen by hand, and the promise is gone.
#
# All you want is that a policy stays near its data: without a matrix, without a price that must be
# tuned, with shared networks and any optimiser, and finer than a rule that ends the work on all samples
# at once. Can one line do it? [Lesson 04](04_clip.ipynb) tries.
