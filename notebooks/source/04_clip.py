# %% [markdown]
# # The clip
#
# **What does one line buy?**
#
# You have a batch, drawn by the old policy, and you want to use it more than once. Ratios make that
# legal for a while. But every pass pushes the same good actions again, and nothing in the ratio
# ever says *enough*. Lesson 03 fenced the policy in with a KL ball, at a price. PPO does something
# cheaper, in one line. Here you find out what that line buys, and what it does not.

# %% tags=["nbval-ignore-output"]
import math

import torch

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.clip import clip_fractions, clipped_surrogate, clipped_surrogate_loss
from ppo_lessons.figures import clip as figures
from ppo_lessons.importance import importance_ratios
from ppo_lessons.mdp import expected_return, expected_surrogate, fork
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.widgets import ClipRegion

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("clip.review_push")

# %%
quiz("clip.review_ratio")

# %% [markdown]
# And one on distance:

# %%
quiz("clip.review_kl")

# %% [markdown]
# ## One action
#
# An action had probability 0.2 when it was drawn. It turned out better than expected, with advantage
# 1, and after some passes its probability is 0.8. The plain surrogate, ratio times advantage, now
# counts it with 0.8 / 0.2 = 4.
#
# PPO cuts the ratio off at 1 ± ε, with ε = 0.2. How much does it count the action?

# %%
predict("clip.worth", None)

# %%
old, new = torch.tensor([0.2]).log(), torch.tensor([0.8]).log()
good = torch.ones(1)
ratios = importance_ratios(new, old)
worth = clipped_surrogate(ratios, good, clip_epsilon=0.2)
compare("clip.worth", worth.item())

# %% [markdown]
# A sentence that matters is a **claim**: it is checked, and beside it a changed sentence is checked,
# which has to fail. If either goes the wrong way, the cell stops with an error.

# %%
claim(
    "clip.capped",
    "At ratio 4 and advantage 1 the objective is 1.2.",
    math.isclose(worth.item(), 1.2, rel_tol=1e-6),
    control=(
        "At ratio 4 and advantage 1 the objective is 4.",
        math.isclose(worth.item(), ratios.item(), rel_tol=1e-6),
    ),
)

# %% [markdown]
# The action is worth 1.2 at ratio 4, and it was worth 1.2 at ratio 1.2. So going on from there
# gained nothing. That is the whole idea: *beyond the edge, the objective stops paying.*
#
# Here is the objective for a good action and for a bad one. The interval 1 ± ε is shaded.

# %%
line = torch.linspace(0.3, 1.9, 161)
ones = torch.ones_like(line)
values = [clipped_surrogate(line, sign * ones, clip_epsilon=0.2).numpy() for sign in (1, -1)]
show(
    figures.objective(line.numpy(), *values, clip_epsilon=0.2),
    alt="Two curves over the ratio. For a good action the objective rises with the ratio and is flat "
    "above 1.2. For a bad action it is flat below 0.8 and falls with the ratio from there.",
)

# %% [markdown]
# As an equation, with Â the advantage:
#
# $$L = \mathbb{E}\left[\min\left(\text{ratio}\cdot\hat{A},\;\;
# \text{clip}(\text{ratio},\,1-\varepsilon,\,1+\varepsilon)\cdot\hat{A}\right)\right]$$
#
# And as the code that the training loop runs:

# %%
show_source(clipped_surrogate)

# %% [markdown]
# ## Eight places
#
# An objective moves a policy through its slope. So ask for the slope, at four ratios, for a good and
# for a bad action. Before you run the cell: at how many of the eight is it zero?

# %%
predict("clip.flat_places", None, unit="of 8")

# %% [markdown]
# The slope comes from automatic differentiation, as it does in training:


# %%
def slopes(objective, advantage):
    places = torch.tensor([0.5, 0.9, 1.1, 1.5], dtype=torch.float64, requires_grad=True)
    objective(places, torch.full_like(places, advantage)).sum().backward()
    return [int(slope) for slope in places.grad]


# %%
def clipped(ratios, advantages):
    return clipped_surrogate(ratios, advantages, clip_epsilon=0.2)


good_slopes, bad_slopes = slopes(clipped, 1.0), slopes(clipped, -1.0)
print("ratio          0.5  0.9  1.1  1.5")
print("advantage +1  ", "  ".join(f"{slope:3}" for slope in good_slopes))
print("advantage -1  ", "  ".join(f"{slope:3}" for slope in bad_slopes))

# %% [markdown]
# Count the zeros:

# %%
compare("clip.flat_places", (good_slopes + bad_slopes).count(0), unit="of 8")

# %% [markdown]
# Two of eight. A good action falls silent when it has become *more* likely by ε, a bad one when it
# has become *less* likely by ε. On the other side the slope is alive: an action that went the wrong
# way is pushed back.

# %%
claim(
    "clip.one_sided",
    "For each sign of the advantage the slope is zero outside the interval on one side only.",
    good_slopes == [1, 1, 1, 0] and bad_slopes == [0, -1, -1, -1],
    control=(
        "Outside the interval the slope is zero on both sides.",
        good_slopes[0] == 0 and bad_slopes[3] == 0,
    ),
)

# %% [markdown]
# So two numbers are worth watching, and they are not the same. `fraction_outside` counts ratios
# outside the interval. `fraction_zero_gradient` counts those that are outside *and* silent. Take
# three actions outside, two of which went the wrong way:

# %%
moved = torch.tensor([1.5, 1.5, 0.5, 1.0]).log()
outside, silent = clip_fractions(
    moved, torch.zeros(4), torch.tensor([1.0, -1.0, 1.0, 1.0]), clip_epsilon=0.2
)
claim(
    "clip.two_fractions",
    "Three of four ratios are outside, and one of four samples is silent.",
    outside == 0.75 and silent == 0.25,
    control=("As many samples are silent as are outside.", outside == silent),
)

# %% [markdown]
# ## No wall: three ways out
#
# It is tempting to read the clip as a wall: ratios stay between 0.8 and 1.2. They do not. Nothing
# holds them. The objective is flat out there, and a flat place neither pulls nor pushes.
#
# **One large step.** The action again has probability 0.2, as the softmax of two logits. Take one
# step of plain gradient descent with learning rate 1. What is the ratio after it?

# %%
predict("clip.one_step", None)

# %% [markdown]
# The loss is the package's own; `play` takes the steps and gives back ratio and slope after each.

# %%
start = torch.tensor([0.2, 0.8], dtype=torch.float64).log()


def loss_of(logits):
    new, old = logits.log_softmax(-1)[:1], start[:1]
    return clipped_surrogate_loss(new, old, torch.ones_like(new), clip_epsilon=0.2)


def play(logits, optimizer, num_steps):
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss_of(logits).backward()
        optimizer.step()
        yield logits.softmax(-1)[0].item() / 0.2, logits.grad.abs().max().item()


# %%
logits = start.clone().requires_grad_()
large = list(play(logits, torch.optim.SGD([logits], lr=1.0), 6))
compare("clip.one_step", large[0][0])

# %% [markdown]
# At ratio 1 the slope is the plain one: the clip has not begun. The step is as long as the learning
# rate makes it, and it ends where it ends.

# %%
claim(
    "clip.overshoot",
    "One step of size 1 takes the ratio from 1 to 2.77, and there it stays.",
    abs(large[0][0] - 2.766) < 1e-3 and large[-1][0] == large[0][0],
    control=("One step of size 1 ends at a ratio of at most 1.2.", large[0][0] <= 1.2),
)

# %% [markdown]
# **Momentum.** Now small steps, with Adam at 0.03. The ratio crosses 1.2 at the fourth step. From
# then on the gradient is zero, exactly. And yet:

# %%
logits = start.clone().requires_grad_()
small = list(play(logits, torch.optim.Adam([logits], lr=0.03), 60))
crossed = next(step for step, (ratio, _) in enumerate(small) if ratio > 1.2) + 1
claim(
    "clip.momentum",
    "The ratio crosses 1.2 at step 4; no gradient comes after that, and it still glides to 1.70.",
    crossed == 4 and not any(slope for _, slope in small[4:]) and abs(small[-1][0] - 1.70) < 0.01,
    control=(
        "Once the gradient is zero, the ratio stays where it is.",
        small[-1][0] == small[4][0],
    ),
)

# %% [markdown]
# Adam remembers. What it moves by is an average over past gradients, and that average fades slowly.
#
# **Shared parameters.** A network gives many states their probabilities with the same weights. Take
# two states and one weight that raises the good action in both: from 0.2 in the first, from 0.9 in
# the second. In the first, the ratio soon reaches 1.2, and that sample falls silent. But in the
# second it can never reach 1.2, since a probability cannot exceed 1. So that sample never falls
# silent, and it drags the first one along.

# %%
both = torch.tensor([0.2, 0.9], dtype=torch.float64)
weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
optimizer, dragged = torch.optim.SGD([weight], lr=0.3), []
for _ in range(120):
    new = (both.logit() + weight).sigmoid().log()
    dragged.append((new[0].exp() / 0.2).item())
    optimizer.zero_grad()
    clipped_surrogate_loss(new, both.log(), torch.ones_like(new), clip_epsilon=0.2).backward()
    optimizer.step()

# %% [markdown]
# 120 small steps later:

# %%
claim(
    "clip.shared",
    "The first sample has no gradient beyond 1.2, and its ratio ends above 2.",
    dragged[-1] > 2 and slopes(clipped, 1.0)[-1] == 0,
    control=("A sample without a gradient stays where it is.", dragged[-1] <= 1.25),
)

# %% [markdown]
# The three ways, side by side. A dot is a step whose sample still pushed, a cross one that was
# silent already.

# %%
ways = {"One large step": [1.0] + [ratio for ratio, _ in large]}
ways["Momentum"] = [1.0] + [ratio for ratio, _ in small[:30]]
ways["Shared parameters"] = dragged[::4]
show(
    figures.ways_out(ways, clip_epsilon=0.2),
    alt="Three curves of a ratio over steps, each leaving the shaded interval below 1.2: one jumps "
    "to 2.8, one glides to 1.7 after its gradient is gone, one keeps rising.",
)

# %% [markdown]
# ## The edge that is never reached
#
# You met it a moment ago: at probability 0.9 there is no ratio of 1.2. The upper edge exists only for
# actions with a probability of at most 1 / (1 + ε). And a rare action is stopped early: from 0.01 it
# may gain 0.002, and then it falls silent.

# %%
highest = 1 / torch.tensor([0.01, 0.5, 0.83, 0.84, 0.9])
claim(
    "clip.edge_never_binds",
    "The edge 1.2 is out of reach exactly for actions above 1 / 1.2 = 0.833.",
    (highest > 1.2).tolist() == [True, True, True, False, False],
    control=("Every action can reach the edge 1.2.", (highest > 1.2).all()),
)

# %% [markdown]
# ## What was not drawn
#
# Three actions had probabilities 0.495, 0.495 and 0.01. The batch holds the first two, many times;
# the third was not drawn. Now the policy is (0.4, 0.4, 0.2). The third action is twenty times as
# likely as it was. What does the clip see?

# %%
before = torch.tensor([0.495, 0.495, 0.01], dtype=torch.float64)
after = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
kl = (before * (before / after).log()).sum()
drawn, sign = before[:2].log(), torch.tensor([1.0, -1.0], dtype=torch.float64)
outside, _ = clip_fractions(after[:2].log(), drawn, sign, clip_epsilon=0.2)

# %%
show(
    figures.unseen(before.tolist(), after.tolist(), drawn=[True, True, False]),
    alt="Bars of three actions before and after. Two fall from 0.495 to 0.4, ratio 0.808. The third "
    "rises from 0.01 to 0.2, ratio 20, and nobody saw it.",
)

# %% [markdown]
# Nothing. All it has are the two ratios that shrank a little.

# %%
claim(
    "clip.unsampled",
    "Every ratio in the batch is 0.808, none is outside, and the KL is 0.18.",
    outside == 0 and abs(kl - 0.181) < 5e-4 and abs(after[0] / before[0] - 0.808) < 5e-4,
    control=("If no ratio is outside, the KL is below ε²/2 = 0.02.", kl < 0.02),
)

# %% [markdown]
# A batch of 64 draws misses that action more often than not: 0.99 to the power of 64 is 0.53. The clip
# looks at samples. It knows nothing of the rest of the policy.
#
# ## A lower bound, but of what?
#
# You will read that L_clip is a *pessimistic bound*. The first half of that is an identity: the
# minimum of two things is at most the first of them.

# %%
generator = torch.Generator().manual_seed(0)
random_ratios = (0.5 * torch.randn(10_000, generator=generator)).exp()
random_advantages = torch.randn(10_000, generator=generator)
plain = random_ratios * random_advantages
pessimistic = clipped(random_ratios, random_advantages)
claim(
    "clip.below_surrogate",
    "On 10,000 random samples the clipped objective is never above ratio times advantage.",
    (pessimistic <= plain).all(),
    control=("It is below ratio times advantage on all of them.", (pessimistic < plain).all()),
)

# %% [markdown]
# But ratio times advantage is itself no promise about the return J. Take the **fork**: at the door,
# *go* leads to a room, and in the room *right* pays 20. The old policy goes with probability 0.1 and
# is right half of the time, so J = 1. The new policy goes a little more, and is right a little less.
# Every ratio stays between 0.8 and 1.2.

# %%
old_policy = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
new_policy = torch.tensor([[0.88, 0.12], [0.59, 0.41]], dtype=torch.float64)
promised = expected_surrogate(fork(), new_policy, old_policy, clipped, gamma=1.0)
returns = [expected_return(fork(), policy, gamma=1.0) for policy in (old_policy, new_policy)]
gained = returns[1] - returns[0]

# %% [markdown]
# On two states all of this can be computed exactly, with every path and no sample:

# %%
claim(
    "clip.no_bound",
    "L_clip promises a gain of 0.020, and J falls by 0.016.",
    abs(promised - 0.02) < 1e-9 and abs(gained + 0.016) < 1e-9,
    control=("J gains at least what L_clip promises.", gained >= promised),
)

# %% [markdown]
# Being wrong in the room seemed cheap, since the old policy hardly ever went there. The new policy
# goes there more often. Ratios correct for actions, never for states, and the clip cannot mend that.
#
# ## A fence beside it: stop on KL
#
# So the clip is often given a companion: after each epoch, look at the KL, and leave the remaining
# epochs out when it is too large. In the loop that is a slot of its own. Here it holds even a loss
# that has no clip at all, with 32 epochs on one batch:


# %%
def ratio_without_clip(log_probs, log_probs_old, advantages):
    return -(importance_ratios(log_probs, log_probs_old) * advantages).mean()


def squeeze(parts):
    states, once = [], PPOConfig(num_epochs=32, total_steps=2048)
    train(once, parts=parts, on_iteration=states.append)
    return states[0].stats.kl_k3.mean(dim=1)


# %% [markdown]
# Once without the rule, once with it:

# %%
free = squeeze(Parts(policy_loss=ratio_without_clip))
fenced = squeeze(Parts(policy_loss=ratio_without_clip, stop_epochs=lambda kl_k1: kl_k1 > 0.02))
claim(
    "clip.early_stop",
    "With the rule the squeeze ends within 8 epochs and below 0.2 nats; without it, above 1 nat.",
    len(fenced) <= 8 and fenced[-1] < 0.2 and free[-1] > 1,
    control=(
        "The rule makes no difference to how far the policy goes.",
        fenced[-1] > 0.5 * free[-1],
    ),
)

# %% [markdown]
# It is a fence in time and not in space: it notices after the fact. Used together, the clip makes
# steps small and the rule ends the batch when they add up.
#
# ## What breaks it
#
# The line is short, and two ways of getting it wrong are in public code. The first drops the minimum
# and keeps the clipped term. The second takes the maximum for bad actions, since "for negative
# numbers everything turns round".


# %%
def without_minimum(ratios, advantages):
    return ratios.clamp(0.8, 1.2) * advantages


def maximum_for_bad_actions(ratios, advantages):
    plain, cut = ratios * advantages, ratios.clamp(0.8, 1.2) * advantages
    return torch.where(advantages >= 0, torch.minimum(plain, cut), torch.maximum(plain, cut))


# %%
lost, inverted = slopes(without_minimum, 1.0), slopes(maximum_for_bad_actions, -1.0)
print("ratio                              0.5  0.9  1.1  1.5")
print("no minimum, advantage +1          ", "  ".join(f"{slope:3}" for slope in lost))
print("maximum for bad, advantage -1     ", "  ".join(f"{slope:3}" for slope in inverted))

# %% [markdown]
# Without the minimum, a good action that fell to half of its probability has no slope: there is no way
# back. With the maximum, a bad action is pushed down even at 0.5, where it should fall silent, and is
# left alone at 1.5, where it should be corrected.

# %%
claim(
    "clip.needs_the_minimum",
    "Without the minimum the slope is zero at ratio 0.5 and advantage 1.",
    lost[0] == 0 and good_slopes[0] == 1,
    control=("Dropping the minimum changes no slope.", lost == good_slopes),
)

# %% [markdown]
# And the other:

# %%
claim(
    "clip.inverted",
    "With the maximum, bad actions are pushed at ratio 0.5 and left alone at 1.5.",
    inverted == [-1, -1, -1, 0],
    control=("With the maximum, bad actions fall silent at ratio 0.5.", inverted[0] == 0),
)

# %% [markdown]
# ## Try it with your hands
#
# 24 samples, each a point on its curve. First guess how many of them still push the policy. Then drag
# points, or move ε, and watch which fall silent. The buttons play two of the ways out, and the action
# that was not drawn.

# %%
region = ClipRegion()
region

# %% [markdown]
# The widget computes nothing of its own: its numbers are the package's. Check it, whatever you have
# dragged:

# %%
ratios = torch.tensor(region.ratios, dtype=torch.float64)
advantages = torch.tensor(region.advantages, dtype=torch.float64)
outside, silent = clip_fractions(
    ratios.log(), torch.zeros_like(ratios), advantages, clip_epsilon=region.clip_epsilon
)
assert abs(outside - region.fraction_outside) < 1e-6
assert abs(silent - region.fraction_zero_gradient) < 1e-6
print("the widget and the package agree")

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/04_clip.ipynb) wait for you: write the objective, count the two
# fractions, tell six signs, find the bug in a published-looking loss, and two for experts. Each
# check tells you which mistake it is. What passes is kept, and can train in lesson 08.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("clip.signs")

# %%
quiz("clip.wall")

# %% [markdown]
# On what it promises:

# %%
quiz("clip.bound")

# %%
quiz("clip.unseen")

# %% [markdown]
# And on the line itself:

# %%
quiz("clip.minimum")

# %% [markdown]
# ## The stair
#
# One environment, 16 seeds, eight epochs per batch, and one part more on each stair: using the batch
# again as if nothing had moved, with the ratio, and with the clip. The learning rate stays the same
# throughout. This was run once and recorded; the study names the command that runs it again.

# %%
study = recorded("stairs")
curves = {name: [run["episode_return"] for run in runs] for name, runs in study["runs"].items()}
show(
    figures.stair(curves, study["runs"]["clip"][0]["env_steps"]),
    alt="Learning curves of 16 seeds on three stairs. Reuse without a ratio never gets up. With the "
    "ratio about half of the seeds break down. With the clip all of them rise.",
)

# %% [markdown]
# Solved means a mean of 475 over 50 greedy episodes at the end.

# %%
solved = {
    name: sum(run["final_greedy"] >= 475 for run in runs) for name, runs in study["runs"].items()
}
print(solved)
claim(
    "clip.stair",
    "Of 16 seeds, none solves CartPole without a ratio, 8 with it, and all 16 with the clip.",
    list(solved.values()) == [0, 8, 16],
    control=("The ratio alone is enough for all 16.", solved["ratio"] == 16),
)

# %% [markdown]
# ## What you have now
#
# - Beyond 1 ± ε, on the side that the advantage asks for, the objective stops paying. On the other
#   side it pulls back.
# - It is no wall: a large step, momentum and shared weights all lead past it.
# - It sees ratios of drawn actions, and nothing else. Not other actions, not states.
# - L_clip ≤ L is an identity. It bounds no return.
#
# Next: who says what an advantage is? The critic does, in lesson 05. If you want to see the whole loop
# first, open [08 The training loop](08_training_loop.ipynb).
