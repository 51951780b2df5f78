# %% [markdown]
# # The clip
#
# **What does one line buy?**
#
# You have a batch, drawn by the old policy, and you want to use it more than once. Ratios make that
# legal for a while ([lesson 02](02_importance.ipynb)). But every pass pushes the same good actions
# again, and nothing in the ratio ever says *enough* to a good action, while the batch is to be trusted
# only near the policy that drew it. [Lesson 03](03_trust_region.ipynb) stayed near in three ways: by a
# fence, which costs products with a matrix and a critic of its own; by a price, which has to be tuned
# or to follow the KL; and by a rule that stops, which ends the work on all samples because of a few.
# PPO's way is one line. It needs no matrix, takes any optimiser and shared networks, and silences each
# sample by itself. Here you find out what that line buys, and what it does not.
#
# The words that you need: a **policy** π gives each action a probability. The **ratio** of an action is
# π / π_old, new over old. Its **advantage** says how much better it is than what the policy does on
# average; with a hat, Â, it is an estimate of that from what happened. Ratio times advantage, averaged
# over the batch, is the **surrogate** L: what you climb instead of the return. The **KL** from the old
# policy to the new one says how far apart they are, 0 when they are the same. One pass over the batch
# is an **epoch**.

# %% tags=["nbval-ignore-output"]
import math
from functools import partial

import torch

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.clip import clip_fractions, clipped_surrogate, clipped_surrogate_loss
from ppo_lessons.figures import clip as figures
from ppo_lessons.importance import importance_ratios, surrogate_loss
from ppo_lessons.mdp import expected_return, expected_surrogate, fork
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.trust_region import stop_on_kl
from ppo_lessons.widgets import ClipRegion

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("clip.review_push")

# %%
quiz("clip.review_ratio")

# %% [markdown]
# The third is on distance:

# %%
quiz("clip.review_kl")

# %% [markdown]
# ## One action
#
# An action had probability 0.2 when it was drawn. It turned out better than expected, with advantage
# 1, and after some epochs its probability is 0.8. The plain surrogate, ratio times advantage, now
# counts it with 0.8 / 0.2 = 4.
#
# PPO counts a good action as if its ratio were at most 1 + ε, with ε = 0.2; the ratio itself may be
# anything. So this one counts 1.2. Now take a *bad* action, with advantage −1, that other samples have
# carried from 0.2 to 0.8. What number does PPO count it with?

# %%
predict("clip.worth", None)

# %%
old, new = torch.tensor([0.2]).log(), torch.tensor([0.8]).log()
good, bad = torch.ones(1), -torch.ones(1)
ratios = importance_ratios(new, old)
worth, worth_of_bad = (clipped_surrogate(ratios, sign, clip_epsilon=0.2) for sign in (good, bad))
compare("clip.worth", worth_of_bad.item())

# %% [markdown]
# In full, −4: a bad action that has become likely is to be pushed back, and nothing is taken off. (In the
# next cell a claim is checked, and a changed sentence, which has to fail.)

# %%
claim(
    "clip.capped",
    "At ratio 4 and advantage 1 the objective is 1.2.",
    math.isclose(worth.item(), 1.2, rel_tol=1e-6),
    control=(
        "At ratio 4 and advantage −1 it is −1.2.",
        math.isclose(worth_of_bad.item(), -1.2, rel_tol=1e-6),
    ),
)

# %% [markdown]
# At ratio 1.2 the action counts 1.2, and at ratio 4 it still counts 1.2. Pushing it further gains
# nothing. That is the whole idea: *beyond the edge, the objective stops paying.* (How the ratio came
# to 4 all the same, you will see soon.)
#
# As an equation, with Â the advantage and E the mean over the batch:
#
# $$L_{\text{clip}} = \mathbb{E}\left[\min\left(\text{ratio}\cdot\hat{A},\;\;
# \text{clip}(\text{ratio},\,1-\varepsilon,\,1+\varepsilon)\cdot\hat{A}\right)\right]$$
#
# Without the clip it would be the surrogate, L = E[ratio·Â]. And as the code that the training loop
# runs; `*batch` stands for any shape:

# %%
show_source(clipped_surrogate)

# %% [markdown]
# ## Eight places
#
# An objective moves a policy through its slope. So ask for the slope at the ratios 0.5, 0.9, 1.1 and 1.5,
# for a good and for a bad action. Before you run the cell: at how many of the eight places is it zero?

# %%
predict("clip.flat_places", None, unit="of 8")

# %% [markdown]
# The slope comes from automatic differentiation, as it does in training:


# %%
def slopes(objective, advantage, ratios=(0.5, 0.9, 1.1, 1.5)):
    places = torch.tensor(ratios, dtype=torch.float64, requires_grad=True)
    objective(places, torch.full_like(places, advantage)).sum().backward()
    return [round(slope.item()) for slope in places.grad]


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
# Two of eight. Here are the curves that these slopes belong to. The interval 1 ± ε is shaded.

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
# A sample with slope zero is **silent**: it no longer moves the policy. A good action falls silent when
# its probability has grown by the factor 1 + ε, from 0.2 to 0.24, say. A bad one falls silent when it
# has shrunk by the factor 1 − ε. On the other side the slope is alive. An action that other samples
# have carried the wrong way is pushed back.

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
# And exactly on the edges? There the objective has a kink and no slope. torch takes that of the inside.

# %%
claim(
    "clip.edges",
    "Exactly at 0.8 and at 1.2 torch takes the slope of the inside.",
    slopes(clipped, 1.0, [0.8, 1.2]) == [1, 1] and slopes(clipped, -1.0, [0.8, 1.2]) == [-1, -1],
    control=("At 1.2 a good action is silent already.", slopes(clipped, 1.0, [1.2]) == [0]),
)

# %% [markdown]
# So two numbers are worth watching, and they are not the same. `fraction_outside` counts ratios
# outside the interval. `fraction_zero_gradient` counts those that are outside *and* silent. Take four
# samples: a good action at 1.5, silent; a bad one at 1.5 and a good one at 0.5, which both went the
# wrong way; and one at 1.

# %%
moved = torch.tensor([1.5, 1.5, 0.5, 1.0]).log()
outside, silent = clip_fractions(
    moved, torch.zeros(4), torch.tensor([1.0, -1.0, 1.0, 1.0]), clip_epsilon=0.2
)

# %%
claim(
    "clip.two_fractions",
    "Three of four ratios are outside, and one of four samples is silent.",
    outside == 0.75 and silent == 0.25,
    control=("As many samples are silent as are outside.", outside == silent),
)

# %% [markdown]
# ## What it buys on a real batch
#
# Take one batch of CartPole, 2,048 samples of a fresh policy, and use it for 32 epochs: once with the
# clip, once with the ratio alone, which is the `surrogate_loss` of lesson 02. In the training loop a loss
# is a function that you hand to `Parts`; hand it none, and the loop takes the one with the clip.


# %%
def kl_per_epoch(**parts):
    states, once = [], PPOConfig(num_epochs=32, total_steps=2048)
    train(once, parts=Parts(**parts), on_iteration=states.append)
    return states[0].stats.kl_k3.mean(dim=1)


# %% [markdown]
# `kl_per_epoch` estimates for each epoch how far the policy is from the one that drew the batch: its KL,
# in **nats**. (One seed here; three others gave the same picture.)

# %%
kept, free = kl_per_epoch(), kl_per_epoch(policy_loss=surrogate_loss)
claim(
    "clip.drift",
    "After 32 epochs the policy is within 0.05 nats of its data with the clip, and not within 1 without.",
    kept[-1] < 0.05 and free[-1] > 1,
    control=("The ratio alone keeps it within 0.1 nats.", free[-1] < 0.1),
)

# %% [markdown]
# That is what the line buys: you may use the batch again and again, and the policy stays near it. Now
# for what it does not buy.
#
# ## No wall: three ways out
#
# It is tempting to read the clip as a wall: ratios stay between 0.8 and 1.2. They do not. On the side
# where it was heading the objective is flat, and a flat place stops pushing, but it holds nothing.
#
# **One large step.** The action again has probability 0.2, as the softmax of two logits, and advantage
# 1. The loss is minus the clipped objective. Take one step of plain gradient descent with learning
# rate 1: the two logits move by 0.8, one up, one down. What is the ratio after it?

# %%
predict("clip.one_step", None)

# %% [markdown]
# The loss is the package's own; `play` takes the steps and gives back ratio and slope after each.

# %%
start = torch.tensor([0.2, 0.8], dtype=torch.float64).log()


def loss_with(logits, clip_epsilon):
    new, old = logits.log_softmax(-1)[:1], start[:1]
    return clipped_surrogate_loss(new, old, torch.ones_like(new), clip_epsilon=clip_epsilon)


def play(logits, optimizer, num_steps, clip_epsilon=0.2):
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss_with(logits, clip_epsilon).backward()
        optimizer.step()
        yield logits.softmax(-1)[0].item() / 0.2, logits.grad.abs().max().item()


# %%
logits = start.clone().requires_grad_()
large = list(play(logits, torch.optim.SGD([logits], lr=1.0), 6))
compare("clip.one_step", large[0][0])

# %% [markdown]
# The step is taken at ratio 1, where clip and no clip have the same slope. So the clip cannot shorten
# it. All it does is to make the *next* slope zero.

# %%
logits = start.clone().requires_grad_()
unclipped = next(play(logits, torch.optim.SGD([logits], lr=1.0), 1, clip_epsilon=1000.0))[0]
claim(
    "clip.overshoot",
    "One plain step at learning rate 1 takes the ratio from 1 to 2.77, with the clip as without it.",
    abs(large[0][0] - 2.766) < 1e-3 and large[0][0] == unclipped,
    control=("With the clip the step is shorter.", large[0][0] < unclipped),
)

# %% [markdown]
# **Momentum.** Now small steps, with Adam at 0.03. The fourth step carries the ratio across 1.2. From
# the fifth on the gradient is zero, exactly. And yet:


# %%
def adam(learning_rate=0.03, num_steps=60, **settings):
    logits = start.clone().requires_grad_()
    return list(play(logits, torch.optim.Adam([logits], lr=learning_rate, **settings), num_steps))


# %%
small, without_momentum = adam(), adam(betas=(0.0, 0.999))
claim(
    "clip.momentum",
    "The ratio crosses 1.2 at step 4; no gradient comes after that, and it still glides to 1.70.",
    small[3][0] > 1.2 and not any(slope for _, slope in small[4:]) and small[-1][0] > 1.69,
    control=("Without momentum it glides as far.", without_momentum[-1][0] > 1.69),
)

# %% [markdown]
# Adam moves by a running average of past gradients. Once they stop, that average fades over some ten
# steps, and each step in between still moves. Smaller steps glide less far:

# %%
glides = adam(learning_rate=0.001, num_steps=600)[-1][0]
print(f"at a learning rate of 0.001 the ratio glides to {glides:.2f}")

# %% [markdown]
# **Shared parameters.** A network gives many states their probabilities with the same weights. Take
# two states and one weight, added to the logit of the good action in both. It starts from 0.2 in the
# first state, from 0.9 in the second, and has advantage 1 in both. In the first, the ratio soon
# reaches 1.2, and that sample falls silent. In the second it is at most 1 / 0.9 = 1.11. So that
# sample never falls silent, and it drags the first one along.


# %%
def drag(*starts):
    starts = torch.tensor(starts, dtype=torch.float64)
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1 * len(starts))
    for _ in range(200):
        new = (starts.logit() + weight).sigmoid().log()
        yield (new[0].exp() / starts[0]).item()
        optimizer.zero_grad()
        clipped_surrogate_loss(new, starts.log(), torch.ones_like(new), clip_epsilon=0.2).backward()
        optimizer.step()


# %% [markdown]
# Ask for the slope at the first sample's own ratio, 200 steps later, and run it alone for comparison:

# %%
dragged, alone = list(drag(0.2, 0.9)), list(drag(0.2))
claim(
    "clip.shared",
    "The first sample is silent, and its ratio ends above 2.",
    dragged[-1] > 2 and slopes(clipped, 1.0, [dragged[-1]]) == [0],
    control=("Alone it ends above 2, too.", alone[-1] > 2),
)

# %% [markdown]
# The three ways, side by side. At a dot the sample still pushes, at a cross it is silent.

# %%
ways = {"One large step": [1.0] + [ratio for ratio, _ in large]}
ways["Momentum"] = [1.0] + [ratio for ratio, _ in small]
ways["Shared parameters"] = dragged
show(
    figures.ways_out(ways, clip_epsilon=0.2),
    alt="Three curves of a ratio over steps, each leaving the shaded interval below 1.2: one jumps "
    "to 2.8, one glides to 1.7 after its gradient is gone, one keeps rising.",
)

# %% [markdown]
# ## The edge that is never reached
#
# You met it a moment ago: at probability 0.9 there is no ratio of 1.2. The upper edge exists only for
# actions with a probability of at most 1 / (1 + ε) = 0.833. A good action above that is pushed for ever.
# And a rare action falls silent early: one at 0.01
# does so at 0.012, after a gain of 0.002.

# %%
probabilities = torch.tensor([0.01, 0.5, 0.83, 0.84, 0.9])
claim(
    "clip.edge_never_binds",
    "Of actions at 0.01, 0.5, 0.83, 0.84 and 0.9, the last two can never reach a ratio of 1.2.",
    (1.2 * probabilities > 1).tolist() == [False, False, False, True, True],
    control=("They can never reach the lower edge, 0.8, either.", (0.8 * probabilities > 1).any()),
)

# %% [markdown]
# ## What was not drawn
#
# Three actions had probabilities 0.495, 0.495 and 0.01. The batch holds the first two, many times, and
# both turned out bad; the third was not drawn. Probabilities sum to 1, so what two bad actions lose
# must go somewhere. Say that the policy is now (0.4, 0.4, 0.2). The third action, of which nobody
# knows anything, is twenty times as likely as it was. What does the clip see?

# %%
before = torch.tensor([0.495, 0.495, 0.01], dtype=torch.float64)
after = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
kl = (before * (before / after).log()).sum()
drawn, bad = before[:2].log(), -torch.ones(2, dtype=torch.float64)
outside, _ = clip_fractions(after[:2].log(), drawn, bad, clip_epsilon=0.2)

# %%
show(
    figures.unseen(before.tolist(), after.tolist(), drawn=[True, True, False]),
    alt="Bars of three actions before and after. Two fall from 0.495 to 0.4, ratio 0.808. The third "
    "rises from 0.01 to 0.2, ratio 20, and nobody saw it.",
)

# %% [markdown]
# Nothing. All it has are two ratios that shrank a little. There is a trace, if you look for it: the mean
# ratio should be 1, and here it is 0.81, so probability must have gone somewhere.

# %%
claim(
    "clip.unsampled",
    "Every ratio in the batch is 0.808, none is outside, and the KL is 0.18.",
    outside == 0 and abs(kl - 0.181) < 5e-4 and abs(after[0] / before[0] - 0.808) < 5e-4,
    control=("If no ratio in the batch is outside, the KL is below 0.02.", kl < 0.02),
)

# %% [markdown]
# A batch of 64 draws misses that action more often than not: 0.99 to the power of 64 is 0.53. The clip
# looks at samples. It knows nothing of the rest of the policy. (If *all* ratios moved by at most 20 %,
# the KL would be about 0.02 at most: half of ε squared.)
#
# ## A lower bound, but of what?
#
# You will read that L_clip is a *pessimistic bound*. That is one of the
# [half truths](../docs/half_truths.md) about PPO. On the surrogate it is such a bound, always: the
# minimum of two things is at most either of them.

# %%
generator = torch.Generator().manual_seed(0)
random_ratios = (0.5 * torch.randn(10_000, generator=generator)).exp()
random_advantages = torch.randn(10_000, generator=generator)
plain = random_ratios * random_advantages
pessimistic = clipped(random_ratios, random_advantages)

# %%
claim(
    "clip.below_surrogate",
    "On 10,000 random samples the clipped objective is never above ratio times advantage.",
    (pessimistic <= plain).all(),
    control=(
        "The clipped term alone is never above it, either.",
        (random_ratios.clamp(0.8, 1.2) * random_advantages <= plain).all(),
    ),
)

# %% [markdown]
# But the surrogate is itself no promise about the return J. Take the **fork** of lesson 03: at the door
# you go or stay, in the room you are right or wrong, and all but being right pays 0.
#
# ```
# (door) --- go ---> (room) --- right: +20 ---> end
#    |                  |
#    +--- stay ---> end +--- wrong ---> end
# ```
#
# The old policy goes with probability 0.1 and is right half of the time, so J = 0.1 · 0.5 · 20 = 1. The
# new policy goes a little more, 0.12, and is right a little less, 0.41. Every ratio stays between 0.8
# and 1.2. L_clip is 0 at the old policy, so what it says of the new one is the gain that it promises.
# With two states nothing needs to be sampled; the code computes both exactly.

# %%
old_policy = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
new_policy = torch.tensor([[0.88, 0.12], [0.59, 0.41]], dtype=torch.float64)
promised = expected_surrogate(fork(), new_policy, old_policy, clipped, gamma=1.0)
returns = [expected_return(fork(), policy, gamma=1.0) for policy in (old_policy, new_policy)]
gained = returns[1] - returns[0]

# %% [markdown]
# The true gain can be checked by hand: 0.12 · 0.41 · 20 = 0.984. Beside it, a new policy that changes in
# the room alone:

# %%
door_kept = torch.stack([old_policy[0], new_policy[1]])
promised_there = expected_surrogate(fork(), door_kept, old_policy, clipped, gamma=1.0)
gained_there = expected_return(fork(), door_kept, gamma=1.0) - returns[0]

# %%
claim(
    "clip.no_bound",
    "L_clip promises a gain of 0.020, and J falls by 0.016.",
    abs(promised - 0.02) < 1e-9 and abs(gained + 0.016) < 1e-9,
    control=(
        "So it is when only the room changes: J falls short of the promise.",
        gained_there < promised_there - 1e-9,
    ),
)

# %% [markdown]
# Being wrong in the room seemed cheap, since the old policy hardly ever went there. The new policy
# goes there more often. The ratio of an action corrects for that action, not for the states, and the
# clip cannot mend that. (Nobody would get to this policy by climbing L_clip. The point is that its
# value is no guarantee. The bound of lesson 03 is one, since it subtracts a price for the distance in
# the worst state, and that price makes it useless.)
#
# ## A fence beside it: stop on KL
#
# So the clip is often given a companion, the rule of lesson 03: after each epoch, look at the KL, and
# leave the remaining epochs out when it is above a limit. In the training loop it has a place of its
# own, `stop_epochs`. Here it reins in even the loss without a clip, with up to 32 epochs on the batch
# from above.


# %%
def fenced(max_kl):
    rule = partial(stop_on_kl, max_kl=max_kl)
    return kl_per_epoch(policy_loss=surrogate_loss, stop_epochs=rule)


# %% [markdown]
# With a limit of 0.02 nats. The last epoch overshoots it, since the rule looks only when an epoch is
# over.

# %%
stopped, loose = fenced(0.02), fenced(10.0)
claim(
    "clip.early_stop",
    "With the rule the work on the batch ends within 8 epochs and within 0.2 nats.",
    len(stopped) <= 8 and stopped[-1] < 0.2,
    control=("A limit of 10 nats ends it within 8 epochs, too.", len(loose) <= 8),
)

# %% [markdown]
# The two act differently. The clip takes away the reason to go on, sample by sample; the rule ends the
# whole batch, one epoch late. Neither shortens a step. On this batch the clip alone stayed near, and
# the rule would have had nothing to do.
#
# ## What breaks it
#
# The line is short, and there are two ways of getting it wrong that look right. The first drops the
# minimum and keeps the clipped term. The second takes the maximum for bad actions, since "for
# negative numbers everything turns round".


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
# Without the minimum, a good action that fell to half of its probability has no slope: it can no longer
# push itself back. With the maximum, a bad action is pushed down even at 0.5, where it should fall silent, and is
# left alone at 1.5, where it should be corrected.

# %%
claim(
    "clip.needs_the_minimum",
    "Without the minimum the slope is zero at ratio 0.5 and advantage 1.",
    lost[0] == 0 and good_slopes[0] == 1,
    control=("It is treated differently at ratio 1.5, too.", lost[3] != good_slopes[3]),
)

# %% [markdown]
# And the other:

# %%
claim(
    "clip.inverted",
    "With the maximum, bad actions are pushed at ratio 0.5 and left alone at 1.5.",
    inverted == [-1, -1, -1, 0],
    control=(
        "Good actions are treated differently, too.",
        slopes(maximum_for_bad_actions, 1.0) != good_slopes,
    ),
)

# %% [markdown]
# ## Try it with your hands
#
# 24 samples, each a point on its curve. The widget asks first how many of them still push the policy.
# Then drag points, or move ε, and watch which fall silent. The buttons play two of the ways out, and
# the action that was not drawn. (Where no widget can run, you see a picture of its answer.)

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
# [Six exercises](../exercises/04_clip.ipynb) wait for you: write the objective and the loss, count the
# two fractions, tell six signs, mend a loss that looks right, and one for experts. Each check tells
# you which mistake it is. What passes is kept in `my_work/answers/`. But read on first: the answer to
# the question at the top stands at the end.
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
# What does the line buy? CartPole, at most 500 steps per episode, 16 seeds, eight epochs per batch. Each
# stair has one part more: first the batch is used again as if nothing had moved, with REINFORCE's
# loss; then with the ratio; then with the clip. This was run once and recorded.
#
# The curves show the return while training, with actions drawn at random. The dots at the right are the
# end: 50 more episodes in which each policy takes its likeliest action. The two may differ a lot.

# %%
study = recorded("stairs")
print(study["command"])
curves = {name: [run["episode_return"] for run in runs] for name, runs in study["runs"].items()}
finals = {name: [run["final_greedy"] for run in runs] for name, runs in study["runs"].items()}

# %%
show(
    figures.stair(curves, finals, study["runs"]["clip"][0]["env_steps"], goal=475),
    alt="Learning curves of 16 seeds on three stairs, with the final returns as dots. Without a ratio "
    "all fall back to the floor after a start. With the ratio they scatter, and 8 dots are above 475. With the clip "
    "all curves rise, and all 16 dots are at 500.",
)

# %% [markdown]
# A seed has solved CartPole if its dot is at 475 or above.

# %%
solved = {name: sum(value >= 475 for value in values) for name, values in finals.items()}
claim(
    "clip.stair",
    "Of 16 seeds, reuse alone ends with none solved, the ratio with 8, the clip with all 16.",
    list(solved.values()) == [0, 8, 16],
    control=("The ratio alone is enough for all 16.", solved["ratio"] == 16),
)

# %% [markdown]
# This holds for these settings, eight epochs at a constant learning rate of 0.002, which were tuned with
# the clip. A smaller or falling learning rate helps the other two, and other parts of a PPO program
# matter as well: Engstrom et al. (2020) found that much of its gain comes from them.
#
# ## What you have now
#
# - With the clip you may use a batch many times, and the policy stays near it.
# - Beyond 1 ± ε, on the side that the advantage asks for, the objective stops paying. On the other
#   side it pulls back.
# - It is no wall: a large step, momentum and shared weights all lead past it.
# - It sees ratios of drawn actions, and nothing else. Not other actions, not states. And what it silences
#   is the policy's own loss: where policy and critic share weights, the critic's loss still moves them.
# - L_clip ≤ L holds always. By itself, neither of them bounds the return.
#
# Next: who says how good was expected? The critic does, in [lesson 05](05_critic.ipynb). How the clip
# fits into a whole run, [lesson 08](08_training_loop.ipynb) shows.
