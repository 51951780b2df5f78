# %% [markdown]
# # Variants
#
# **Which part did they replace?**
#
# GRPO, RLOO, Dr. GRPO, DAPO, REINFORCE++, GSPO, CISPO, DPO: every few months there is a new name. A paper shows a loss
# in one line, and it looks as if all had to be learned anew. It need not be. Each of these is the loop of lesson 08, with a few
# functions exchanged. Here you ask each method which ones, and for every exchange you work out, with numbers that fit
# on a page, what it changes. At the end there are runs, with the same number of answers for each.
#
# The words that you need. A **group** is the answers to one prompt. The **score** of an answer is what it is paid, here 1
# if it is right and 0 if not. A **baseline** is what a score is compared with; the critic was one. The **weight** of a token
# is what its term counts in the loss of a batch. The **push** of a token is minus the gradient of the loss by its
# log-probability: above 0 it becomes more likely.

# %% tags=["nbval-ignore-output"]
from functools import partial
from math import exp, log

import torch

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source, variants
from ppo_lessons.clip import clipped_surrogate, clipped_surrogate_loss
from ppo_lessons.figures import variants as figures
from ppo_lessons.figures.rlhf import ends_by_setting
from ppo_lessons.rlhf import kl_terms, tilted_log_probs
from ppo_lessons.widgets import PartSwap

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("variants.review_baseline")

# %%
quiz("variants.review_price")

# %% [markdown]
# And one from lesson 04:

# %%
quiz("variants.review_clip")

# %% [markdown]
# ## The board
#
# People say: GRPO replaces the critic by the mean of a group. The board has seven places: what is collected, the baseline, the
# scale, where the KL is charged, how tokens are weighed, the ratio, the clip. In how many of them does GRPO, as it was
# published, differ from PPO?

# %% tags=["nbval-ignore-output"]
predict("variants.places_of_grpo", None, unit="places")

# %% [markdown]
# Nobody wrote this table. `board` puts questions to the functions that run: if all scores of a group rise by 1, do the advantages
# stay? If a ratio moves, where does the push end?

# %%
places = {place: place for place in variants.STAGES} | {"kl": "KL", "aggregation": "weight"}
rows = {row.name: [getattr(row, place) for place in places] for row in variants.board()}
show(
    figures.board_table(rows, list(places.values())),
    alt="A table of eleven methods and seven places. Cells that differ from PPO are shaded. GRPO differs in the "
    "baseline, the scale, the KL and the weight; DPO in all places.",
)

# %%
of_grpo = variants.changes("GRPO")
compare("variants.places_of_grpo", len(of_grpo), unit="places")
print(of_grpo)

# %% [markdown]
# Each place with what stands there now and what stood there before. So:

# %%
claim(
    "variants.grpo_changes",
    "GRPO as published differs from PPO in baseline, scale, place of the KL and weight of a token.",
    set(of_grpo) == {"baseline", "scale", "kl", "aggregation"},
    control=("It differs in the baseline alone.", set(of_grpo) == {"baseline"}),
)

# %% [markdown]
# And RLOO, of which one reads that it replaces GAE?

# %%
of_rloo = set(variants.changes("RLOO"))
claim(
    "variants.rloo_changes",
    "RLOO as published also gives up ratio and clip: a whole answer is one action.",
    {"ratio", "clip", "aggregation"} <= of_rloo,
    control=("It changes only how advantages are made.", of_rloo <= {"baseline", "scale"}),
)

# %% [markdown]
# "As published" matters. Libraries mix: their GRPO often has no KL, or weighs tokens as DAPO does; their RLOO clips. So ask what the functions do. Now
# through the places, one by one.
#
# ## A group in place of a critic
#
# Draw G answers to the same prompt. What the critic had to learn, how much to expect of this prompt, can then be
# *counted*: it is the mean of their scores. Three methods do this:
#
# $$\text{GRPO: } \hat A_i = \frac{r_i - \bar r}{s + 10^{-4}}\qquad \text{Dr. GRPO: } \hat A_i = r_i - \bar r\qquad
# \text{RLOO: } \hat A_i = r_i - \frac{1}{G-1}\sum_{j\ne i} r_j$$
#
# with $\bar r$ and s the mean and the spread of the group. Eight answers, one of them right. What is the advantage of the
# right one in GRPO?

# %% tags=["nbval-ignore-output"]
predict("variants.one_of_eight", None, unit="")


# %%
def group_of(right, size=8):
    return (torch.arange(size) < right).double(), torch.zeros(size, dtype=torch.long)


ways = {
    "GRPO": variants.group_advantages,
    "RLOO": variants.rloo_advantages,
    "Dr. GRPO": variants.dr_grpo_advantages,
}
compare("variants.one_of_eight", round(variants.group_advantages(*group_of(1))[0].item(), 3))

# %% [markdown]
# All three, with one, four and seven right answers:

# %%
panels = {}
for right in (1, 4, 7):
    worth = {name: way(*group_of(right))[[0, -1]].tolist() for name, way in ways.items()}
    panels[f"{right} of 8 right"] = {name: tuple(pair) for name, pair in worth.items()}
    print(right, {name: [round(each, 3) for each in pair] for name, pair in worth.items()})

# %%
show(
    figures.advantage_bars(panels),
    alt="Advantages of a right and a wrong answer in three groups. With one right of eight the right one is "
    "worth most, with seven the wrong one costs most. GRPO's bars are one and a half to two and a half times as long as RLOO's.",
)

# %% [markdown]
# Two of the three are nearly the same:

# %%
show_source(variants.rloo_advantages)


# %%
def gap(factor):
    drawn = [torch.randn(size, generator=torch.Generator().manual_seed(size)) for size in (2, 5, 8)]
    pairs = [(scores.double(), torch.zeros(len(scores), dtype=torch.long)) for scores in drawn]
    return max(
        (ways["RLOO"](*pair) - factor(len(pair[0])) * ways["Dr. GRPO"](*pair)).abs().max()
        for pair in pairs
    )


# %% [markdown]
# The largest difference, with a factor that you name:

# %%
claim(
    "variants.rloo_is_dr_grpo",
    "RLOO's advantages are G / (G − 1) times those of Dr. GRPO, for groups of 2, 5 and 8.",
    gap(lambda size: size / (size - 1)) < 1e-12,
    control=("They are the same: a mean is a mean.", gap(lambda size: 1.0) < 1e-12),
)

# %% [markdown]
# Which of them is right on average? A prompt is answered rightly with probability p, and one logit decides. Then the true gradient is
# p(1 − p), and a right answer's ∇log π is 1 − p, a wrong one's −p. Sum over all that a group of 8 may be:


# %%
def mean_gradient(way, share, size=8):
    chance = torch.distributions.Binomial(size, torch.tensor(share, dtype=torch.float64))
    weights = chance.log_prob(torch.arange(size + 1, dtype=torch.float64)).exp()
    groups = [group_of(right, size) for right in range(size + 1)]
    found = [(way(*group) * (group[0] - share)).mean() for group in groups]
    return (weights @ torch.stack(found)).item() / (share * (1 - share))


# %%
factors = {name: [mean_gradient(way, p) for p in (0.1, 0.5, 0.9)] for name, way in ways.items()}
for name, found in factors.items():
    print(f"{name:9}", [round(each, 3) for each in found])

# %% [markdown]
# In units of the true gradient, at p = 0.1, 0.5 and 0.9:

# %%
off = {name: torch.tensor(found) - 1 for name, found in factors.items()}
claim(
    "variants.shrunk",
    "RLOO's mean gradient is the true one; that of Dr. GRPO is 7/8 of it in groups of 8, at every p.",
    off["RLOO"].abs().max() < 1e-6 and (off["Dr. GRPO"] + 1 / 8).abs().max() < 1e-6,
    control=("Both are the true one.", off["Dr. GRPO"].abs().max() < 1e-6),
)

# %% [markdown]
# A mean that holds the own score knows the action: that is the eighth which is lost. It is the same for all prompts, so it acts like a smaller step.
# What GRPO's spread does is not the same for all prompts:

# %%
shares = [number / 40 for number in range(1, 40)]
curves = {name: [mean_gradient(way, p) for p in shares] for name, way in ways.items()}
show(
    figures.mean_gradients(shares, curves),
    alt="Mean gradient over true gradient, over p. RLOO is flat at 1, Dr. GRPO flat at 0.875. GRPO has its "
    "lowest point, about 1.7, at one half and rises above 2 to both sides.",
)

# %%
(hard, middle, easy), others = factors["GRPO"], factors["Dr. GRPO"]
claim(
    "variants.spread_weighs",
    "In GRPO a prompt at p = 0.1 counts at least 1.2 times as much as one at 0.5, and as much as one at 0.9.",
    easy > 1.2 * middle and abs(easy - hard) < 1e-9,
    control=("In Dr. GRPO it does as well.", others[0] > 1.2 * others[1]),
)

# %% [markdown]
# In large groups the factor is 1/√(p(1 − p)): 3.3 at 0.1 and at 0.9 against 2 at 0.5. Whether that is a fault or a help depends on whether you want hard
# and nearly solved prompts to count more. It is a choice, and Dr. GRPO takes the other one.
#
# ## Groups that teach nothing
#
# If all scores of a group are equal, each advantage is 0. The 10⁻⁴ in the denominator is there for this case:

# %%
equal = torch.full((8,), 0.1, dtype=torch.float64), torch.zeros(8, dtype=torch.long)
claim(
    "variants.equal_scores",
    "Eight equal scores give eight advantages of exactly 0.",
    (variants.group_advantages(*equal) == 0).all(),
    control=("So does 0 / 0, without the small number.", (torch.zeros(8) / 0 == 0).all()),
)

# %% [markdown]
# How often does it happen? At p = 0.9, which share of groups of 8 has equal scores?

# %% tags=["nbval-ignore-output"]
predict("variants.equal_share", None, unit="%")

# %%
compare("variants.equal_share", round(100 * (0.9**8 + 0.1**8)), unit="%")
study = recorded("variants")["runs"]
chances = {f"groups of {size}": [p**size + (1 - p) ** size for p in shares] for size in (4, 8, 16)}

# %% [markdown]
# As a formula, pᴳ + (1 − p)ᴳ. Beside it, what was recorded in the runs of this lesson:


# %%
def runs_of(name):
    return [study[key] for seed in range(3) if (key := f"{name}/{seed}") in study]


counted = {
    name: (runs_of(key)[0]["num_answers"], [run["equal_groups"] for run in runs_of(key)])
    for name, key in (("GRPO", "GRPO/0.0004"), ("RLOO", "RLOO/0.0004"))
}

# %%
show(
    figures.silent_groups(shares, chances, counted),
    alt="Left, the chance of equal scores over p: near 0 in the middle, 1 at both ends, lower for larger "
    "groups. Right, the share of such groups in recorded runs rises from about 0.4 to more than a half.",
)

# %% [markdown]
# The mean of the last three looks, beside the first look:

# %%
looks = [run for _, found in counted.values() for run in found]
late = [sum(run[-3:]) / 3 for run in looks]
claim(
    "variants.groups_fall_silent",
    "Late, at least four of ten groups have equal scores in each recorded run, and on average more than at first.",
    min(late) >= 0.4 and sum(late) > sum(run[0] for run in looks),
    control=("At first four of ten have them, too.", min(run[0] for run in looks) >= 0.4),
)

# %% [markdown]
# DAPO throws such groups away and draws others until the batch is full. At p = 0.9 a group that is kept costs
# 1 / (1 − 0.43) = 1.76 groups that are drawn. So compare it by what it drew, not by what it kept.

# %%
scores = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
groups = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
informative = variants.informative_groups(scores, groups)
print(informative.tolist())

# %%
claim(
    "variants.dynamic_sampling",
    "Only the group with two different scores is kept; one that is always right goes as one never right does.",
    torch.equal(informative, groups == 1),
    control=("The group that is always right is kept.", informative[groups == 0].all()),
)

# %% [markdown]
# ## One baseline for all
#
# REINFORCE++ needs no groups. What was earned from each token on is compared with the mean over the *whole batch*, and
# divided by the spread of the whole batch. An easy prompt, 7 of 8 right, and a hard one, 1 of 8. One token per answer:

# %%
scores = torch.cat([group_of(7)[0], group_of(1)[0]])
groups = torch.arange(2).repeat_interleave(8)
mask = torch.ones(16, 1, dtype=torch.bool)
for_batch = variants.reinforce_pp_advantages(scores[:, None], mask, gamma=1.0)[:, 0]
for_group = variants.group_advantages(scores, groups)
for name, found in (("REINFORCE++", for_batch), ("GRPO", for_group)):
    print(f"{name:11} right answer: easy {found[0]:.3f}, hard {found[8]:.3f}")

# %%
claim(
    "variants.one_mean",
    "In REINFORCE++ a right answer to the easy prompt is worth what one to the hard prompt is.",
    for_batch[0] == for_batch[8],
    control=("In GRPO it is, too.", torch.isclose(for_group[0], for_group[8])),
)

# %% [markdown]
# With groups, a right answer to the hard prompt is worth seven times as much. Without them, easy prompts are praised for being easy. That
# adds noise and hardly any bias, since the mean of a large batch does not depend on one answer. REINFORCE++ with a baseline subtracts the group's mean first and
# keeps the one spread for all.
#
# ## What a token weighs
#
# Each answer has its advantage. It is now given to each of its tokens, and these are added up, in one of four ways:

# %%
show_source(variants.token_weights)

# %% [markdown]
# Two wrong answers, one of 3 tokens, one of 30, both with advantage −1. If means are taken within each answer first, how many times
# less is a token of the long one punished?

# %% tags=["nbval-ignore-output"]
predict("variants.times_less", None, unit="times")

# %%
lengths = torch.tensor([[3], [30]])
mask = torch.arange(30).expand(2, 30) < lengths
weigh = partial(variants.token_weights, mask, max_length=30, dtype=torch.float64)
weights = {mode: tuple(weigh(mode=mode)[:, 0].tolist()) for mode in variants.MODES}
times_less = {mode: short / long for mode, (short, long) in weights.items()}
compare("variants.times_less", round(times_less["sequence_mean"]), unit="times")

# %% [markdown]
# All four modes, with 30 for the longest length allowed:

# %%
show(
    figures.token_weights(weights, (3, 30)),
    alt="Weights of one token in a short and in a long answer, for four modes. Equal in three of the modes; in "
    "sequence_mean 0.167 against 0.0167.",
)

# %% [markdown]
# The picture in one sentence:

# %%
claim(
    "variants.length_bias",
    "In the mean of means a token of the long wrong answer is punished ten times less.",
    abs(times_less["sequence_mean"] - 10) < 1e-9,
    control=("In the mean over all tokens, too.", abs(times_less["token_mean"] - 10) < 1e-9),
)

# %% [markdown]
# So a policy that is wrong anyway is punished least for being wrong at length. Answers grow, and it looks like thinking. (In lesson 13's
# language answers have five or six tokens, and no run can show it. The numbers do.)
#
# Which mode is right depends on what an action is. If a whole answer is one, tokens are added up: `sequence_sum`. The mode `constant`
# is the same, divided by the longest length. The mean over tokens divides by how many there happen to be in the batch, and that has a catch. A large batch is
# worked on in pieces, and their gradients are added up. Cut these two answers into two pieces, and average the two means:

# %%
terms = torch.tensor([[-1.0], [2.0]], dtype=torch.float64).expand(2, 30)
whole = variants.aggregate(terms, mask, mode="token_mean")
pieces = [variants.aggregate(terms[[i]], mask[[i]], mode="token_mean") for i in (0, 1)]
cut = [(terms[i] * weigh(mode="token_mean")[i]).sum() for i in (0, 1)]
print(f"whole {whole:.4f}, mean of pieces {sum(pieces) / 2:.4f}, weights cut {sum(cut):.4f}")

# %%
claim(
    "variants.pieces",
    "Weights of the whole batch, cut along with the losses, give the number of the whole batch.",
    abs(sum(cut) - whole) < 1e-12,
    control=("So does the mean of the two pieces' means.", abs(sum(pieces) / 2 - whole) < 1e-12),
)

# %% [markdown]
# ### Swap the parts
#
# Five places of the board are now yours to fill: the baseline, what is done with the spread, what a token weighs, where the KL is charged, and what is done
# with the ratio. Four answers to one prompt, two short and two long. The first question has a catch: answer 3 is half right. Say it, reveal, then drag
# scores and swap parts, and see the loss below being written. Which combinations have a name? The other clips come in the next section; move the ratio
# once more when you have read it. (Where no widget can run, you see a picture, and it shows the answer.)

# %%
swap = PartSwap(keep_as="variants.short_over_long")
swap

# %% [markdown]
# With one part exchanged the factor is gone. Ask the widget itself:

# %%
factors = {mode: PartSwap(mode=mode, scores=[1.0, 1.0, 0.0, 0.0]).factor for mode in variants.MODES}
claim(
    "variants.one_part",
    "Of the four ways to weigh a token only the mean of means pushes the short wrong answer harder.",
    [mode for mode, factor in factors.items() if factor > 1.001] == ["sequence_mean"],
    control=("Dividing by the spread alone does so, too.", factors["token_mean"] > 1.001),
)

# %% [markdown]
# ## Other clips
#
# DAPO moves the upper edge to 1.28, so that rare good tokens may grow faster. **Dual clip** limits the punishment: where a bad token has become
# three times as likely, it is not pulled back any more. CISPO cuts the weight and keeps the gradient. What each does to one
# token, over its ratio:


# %%
def push(objective, advantage, ratios):
    ratios = ratios.clone().requires_grad_()
    terms = objective(ratios, torch.full_like(ratios, advantage))
    return (torch.autograd.grad(terms.sum(), ratios)[0] * ratios).detach()


# %%
clips = {
    "PPO": partial(clipped_surrogate, clip_epsilon=0.2),
    "DAPO": partial(variants.asymmetric_surrogate, clip_low=0.2, clip_high=0.28),
    "dual clip": partial(variants.dual_clipped_surrogate, clip_epsilon=0.2, most_punished=3.0),
    "CISPO": lambda ratios, advantages: variants.cispo_objective(
        ratios.log(), torch.zeros_like(ratios), advantages, clip_high=0.2
    ),
}

# %% [markdown]
# Ratio times slope is the push on log π:

# %%
ratios = torch.arange(0.505, 4, 0.01, dtype=torch.float64)
good, bad = (
    {name: push(clip, advantage, ratios).tolist() for name, clip in clips.items()}
    for advantage in (1.0, -1.0)
)

# %%
show(
    figures.pushes(ratios.tolist(), good, bad),
    alt="Push over ratio. A good token: PPO's ends at 1.2, DAPO's at 1.28, CISPO's stays at 1.2. A bad one: PPO's "
    "begins at 0.8 and grows without limit, dual clip's ends at 3, CISPO's stays at minus 1.2.",
)

# %% [markdown]
# Where the edges differ:


# %%
def at(name, advantage, ratio):
    return push(clips[name], advantage, torch.tensor([ratio], dtype=torch.float64)).item()


# %%
claim(
    "variants.wider_above",
    "At ratio 1.25 a good token is still pushed by DAPO, and by PPO no more.",
    at("DAPO", 1.0, 1.25) > 0 and at("PPO", 1.0, 1.25) == 0,
    control=("At ratio 0.75 the same holds of a bad one.", at("DAPO", -1.0, 0.75) != 0),
)

# %% [markdown]
# And where a bad token has become likely:

# %%
claim(
    "variants.dual_clip",
    "At ratio 4 PPO pushes a bad token down four times as hard as at ratio 1, the dual clip not at all.",
    abs(at("PPO", -1.0, 4.0) + 4) < 1e-9 and at("dual clip", -1.0, 4.0) == 0,
    control=("The dual clip pushes it with 3 there.", abs(at("dual clip", -1.0, 4.0) + 3) < 1e-9),
)

# %%
claim(
    "variants.cispo",
    "At ratio 4 a good token is pushed by CISPO with 1.2, however large its ratio.",
    abs(at("CISPO", 1.0, 4.0) - 1.2) < 1e-9 and at("PPO", 1.0, 4.0) == 0,
    control=("By CISPO it is pushed with 4.", abs(at("CISPO", 1.0, 4.0) - 4) < 1e-9),
)

# %% [markdown]
# GSPO takes one ratio for a whole answer: the geometric mean of those of its tokens. Two tokens with ratios 2 and ½, and a hundred
# with a ratio of 1.012 each:

# %%
moved = torch.tensor([[2.0, 0.5]], dtype=torch.float64).log()
drift = torch.full((1, 100), 1.012, dtype=torch.float64).log()


# %%
def of_answer(log_ratios):
    everywhere = torch.ones(log_ratios.shape, dtype=torch.bool)
    return variants.sequence_ratios(log_ratios, torch.zeros_like(log_ratios), everywhere).item()


# %% [markdown]
# The first, the second, and what the second would be without the division by the length:

# %%
print(f"{of_answer(moved):.4f} {of_answer(drift):.4f} {drift.sum().exp():.4f}")

# %%
claim(
    "variants.sequence_ratio",
    "An answer whose tokens moved by 2 and ½ has ratio 1: inside of the clip, though both tokens are outside.",
    abs(of_answer(moved) - 1) < 1e-12,
    control=("Its ratio is 1.25, the mean of the two.", abs(of_answer(moved) - 1.25) < 1e-12),
)

# %% [markdown]
# A drift of 1.2 in 100 per token, as two programs may have that round differently, is a ratio of 3.3 after a hundred tokens. Without the division long
# answers would leave every interval.
#
# ## A loss of zero
#
# First step of a batch: π is π_old, each ratio is 1. A group of eight, four of them right, three tokens each. The loss of GRPO:

# %%
scores, groups = group_of(4)
mask = torch.ones(8, 3, dtype=torch.bool)
advantages = variants.for_every_token(variants.group_advantages(scores, groups), mask)
log_probs = torch.full((8, 3), -1.0, dtype=torch.float64, requires_grad=True)
old = log_probs.detach()

# %%
loss = clipped_surrogate_loss(log_probs, old, advantages, clip_epsilon=0.2, mask=mask)
slope = torch.autograd.grad(loss, log_probs)[0]
print(f"loss {abs(loss):.4f}; slope {slope[0, 0]:.4f} if right, {slope[-1, 0]:.4f} if wrong")

# %% [markdown]
# A loss without value:

# %%
claim(
    "variants.zero_loss",
    "The loss is 0 and its gradient is not: each token is pushed by its advantage.",
    abs(loss) < 1e-12 and torch.allclose(slope, -advantages / 24),
    control=("The loss is 0, so nothing is learned in this step.", (slope.abs() < 1e-12).all()),
)

# %% [markdown]
# The ratio exp(log π − log π_old) is 1 as a number. As a function of π it has a slope.
#
# ## KL as a loss
#
# Published GRPO charges for distance in the loss, not in the reward. The terms k1, k2 and k3, which you know from lessons 02 and 03, estimate the same
# number. (There, draws came from π_old; here they come from π.) As losses they are three different things, for the mean is over draws from π, and a loss does not see that the draws change along with π. Five
# answers, and the exact mean of each gradient:

# %%
draw = torch.Generator().manual_seed(1)
logits, logits_reference = torch.randn(2, 5, generator=draw, dtype=torch.float64)
log_reference = logits_reference.log_softmax(0)
logits.requires_grad_()


def slope_of(number):
    return torch.autograd.grad(number(logits.log_softmax(0)), logits)[0]


# %%
def as_loss(name):
    def mean_over_draws(policy):  # the draws' probabilities are constants for a loss
        return policy.exp().detach() @ kl_terms(policy, log_reference, estimator=name)

    return slope_of(mean_over_draws)


# %% [markdown]
# The two directions of the KL, differentiated as they are:

# %%
outwards = slope_of(lambda policy: policy.exp() @ (policy - log_reference))  # KL(π ‖ π_ref)
inwards = slope_of(lambda policy: log_reference.exp() @ (log_reference - policy))  # KL(π_ref ‖ π)
slopes = {name: as_loss(name) for name in ("k1", "k2", "k3")}

# %% [markdown]
# How far each is from 0, from the one direction, and from the other:

# %%
for name, found in slopes.items():
    apart = [(found - direction).abs().max().item() for direction in (0, outwards, inwards)]
    print(name, [round(each, 4) for each in apart])

# %%
claim(
    "variants.k1_teaches_nothing",
    "As a loss, k1 has a mean gradient of 0.",
    slopes["k1"].abs().max() < 1e-12,
    control=("It has that of KL(π ‖ π_ref).", (slopes["k1"] - outwards).abs().max() < 1e-3),
)

# %% [markdown]
# GRPO uses k3:

# %%
claim(
    "variants.k3_other_way",
    "As a loss, k3 has the gradient of KL(π_ref ‖ π), the other direction; k2 has that of KL(π ‖ π_ref).",
    (slopes["k3"] - inwards).abs().max() < 1e-12 and (slopes["k2"] - outwards).abs().max() < 1e-12,
    control=("k3 has that of KL(π ‖ π_ref).", (slopes["k3"] - outwards).abs().max() < 1e-3),
)

# %% [markdown]
# ## No draws at all: DPO
#
# Lesson 14 gave the best policy at price β: $\pi^* = \pi_{\text{ref}}\, e^{r/\beta} / Z$. Read it the other way round. If π is the best policy for
# some reward, then for which?
#
# $$r(y) = \beta \log \frac{\pi^*(y)}{\pi_{\text{ref}}(y)} + \beta \log Z$$
#
# Z is the same for all answers to a prompt. In a *difference* of two rewards it cancels, and differences are all that the loss of Bradley and Terry
# sees. Put the right side where the score of the reward model stood, and there is no reward model any more. That is DPO:

# %%
show_source(variants.dpo_loss)

# %% [markdown]
# On the five answers, with a reward for each:

# %%
worth = torch.randn(5, generator=draw, dtype=torch.float64)
best = tilted_log_probs(log_reference, worth, beta=0.5)
off = variants.implicit_rewards(best, log_reference, beta=0.5) - worth

# %%
claim(
    "variants.dpo_reward",
    "β·(log π* − log π_ref) is the reward, up to one number for all answers.",
    off.max() - off.min() < 1e-12,
    control=("It is the reward itself.", off.abs().max() < 1e-6),
)

# %% [markdown]
# At the start π is π_ref. What is the loss of DPO then, whatever the pairs and whatever β?

# %% tags=["nbval-ignore-output"]
predict("variants.dpo_start", None, unit="")

# %%
chosen = torch.tensor([-3.0], dtype=torch.float64, requires_grad=True)
rejected = torch.tensor([-5.0], dtype=torch.float64, requires_grad=True)
start = variants.dpo_loss(chosen, rejected, chosen.detach(), rejected.detach(), beta=0.1)
up, down = torch.autograd.grad(start, (chosen, rejected))
compare("variants.dpo_start", round(start.item(), 4))
print(f"slopes {up.item():.4f} and {down.item():.4f}")

# %% [markdown]
# Both sides of the pair are moved:

# %%
claim(
    "variants.dpo_slopes",
    "At the start the loss is log 2, and its slopes are −β/2 for the chosen and β/2 for the rejected.",
    abs(start - log(2)) < 1e-12 and abs(up + 0.05) < 1e-12 and abs(down - 0.05) < 1e-12,
    control=("Only the chosen is pushed.", abs(down).item() < 1e-12),
)

# %% [markdown]
# Only the margin counts. If both answers become less likely by the same factor, the loss does not notice:

# %%
at_start = chosen.detach(), rejected.detach()
both_less = variants.dpo_loss(chosen - 9, rejected - 9, *at_start, beta=0.1)
one_less = variants.dpo_loss(chosen - 9, rejected, *at_start, beta=0.1)

# %%
claim(
    "variants.dpo_margin",
    "Both log-probabilities 9 nats lower: the loss stays.",
    abs(both_less - start) < 1e-12,
    control=("The chosen one alone 9 nats lower: the loss stays.", abs(one_less - start) < 1e-12),
)

# %% [markdown]
# Do the two share their goal? Take *all* pairs of the five answers, each preferred as often as Bradley and Terry say, and
# the slope of DPO's loss at a policy:

# %%
first, second = torch.combinations(torch.arange(5)).T
prefer = torch.sigmoid(worth[first] - worth[second])


def steepness(start):
    policy = start.clone().requires_grad_()
    margins = variants.implicit_rewards(policy.log_softmax(0), log_reference, beta=0.5)
    margin = margins[first] - margins[second]
    loss = -(prefer * margin.sigmoid().log() + (1 - prefer) * (-margin).sigmoid().log()).mean()
    return torch.autograd.grad(loss, policy)[0].abs().max()


# %%
claim(
    "variants.dpo_same_goal",
    "With all pairs, preferred as the model says, DPO's loss is flat at the best policy of RLHF.",
    steepness(best) < 1e-12,
    control=("It is flat at the reference.", steepness(log_reference) < 1e-12),
)

# %% [markdown]
# That holds where preferences are complete and uncertain. With a verifier they are certain: the right answer always wins. Then no margin is
# large enough, and the loss can only be made smaller. A loss of 0.1 needs a margin of log(1/(e⁰·¹ − 1)) = 2.25, and so a
# difference of log-ratios of 2.25/β: 2.25 nats at β = 1, and 22.5 nats at β = 0.1. Here is what was recorded, from pairs of right and
# wrong answers that the reference had drawn:

# %%
small, large = runs_of("DPO, beta 0.1, 4 epochs"), runs_of("DPO, beta 1")


def by_epoch(run):
    sides = ("chosen_log_ratio", "rejected_log_ratio")
    return tuple([epoch[side] for epoch in run["epochs"]] for side in sides)


# %%
betas, goal = [0.1, 0.3, 1.0, 3.0], -log(exp(0.1) - 1)
went = {"β = 1": [by_epoch(run) for run in large], "β = 0.1": [by_epoch(run) for run in small]}
show(
    figures.two_ways(betas, [goal / beta for beta in betas], went),
    alt="Left, the distance needed falls in a line as β grows. Right, log-ratios by epoch: at β = 1 the chosen rise "
    "a little; at 0.1 the rejected fall by tens of nats, and the chosen sink below 0.",
)

# %% [markdown]
# Compare the two after the same number of epochs:

# %%
second_small, second_large = ([run["epochs"][1] for run in found] for found in (small, large))
claim(
    "variants.dpo_small_beta",
    "At β = 0.1, after two epochs, more than 9 of 10 pairs are told apart; the chosen are less likely than at first.",
    all(row["accuracy"] > 0.9 and row["chosen_log_ratio"] < 0 for row in second_small),
    control=(
        "At β = 1, after two epochs, they are less likely, too.",
        all(row["chosen_log_ratio"] < 0 for row in second_large),
    ),
)

# %% [markdown]
# And what the policies then answer:

# %%
once = {
    f"DPO, β = {words}": [run["final"]["success"] for run in runs_of(name)]
    for words, name in (
        ("1", "DPO, beta 1"),
        ("0.1, 1 epoch", "DPO, beta 0.1"),
        ("0.1, 4 epochs", "DPO, beta 0.1, 4 epochs"),
    )
}
two_epochs, one_epoch, four_epochs = once.values()

# %%
claim(
    "variants.dpo_worse",
    "At β = 0.1, after one epoch as after four, fewer answers are right than at β = 1, by more than 10 of 100.",
    max(one_epoch + four_epochs) + 0.1 < min(two_epochs),
    control=("After one epoch more are right.", min(one_epoch) > max(two_epochs)),
)

# %% [markdown]
# ## Baselines that nobody names
#
# **Best of n** trains nothing: draw n answers, keep the best. How far from the reference is that? Its distribution can be
# written down, and its distance from the reference has a bound: log n − (n − 1)/n.

# %%
kept = variants.best_of_n_policy(log_reference.exp(), worth, num_draws=4)
distance = (kept * (kept.log() - log_reference)).sum().item()
bound = variants.best_of_n_kl(4)
print(f"best of 4: {distance:.4f} nats from the reference, bound {bound:.4f}")

# %%
claim(
    "variants.best_of_n",
    "Best of 4 stays within 0.64 nats of the reference, and earns more than it.",
    distance <= bound < 0.64 and kept @ worth > log_reference.exp() @ worth,
    control=("It is log 4 = 1.39 nats away.", abs(distance - log(4)) < 0.1),
)

# %% [markdown]
# In use nobody knows which of n answers is right. If the verifier did the choosing, the references of lesson 14 would look like this:

# %%
covered = [run["coverage"] for run in runs_of("best of n")]

# %%
claim(
    "variants.coverage",
    "Of a reference that is right in 4 of 10 answers or fewer, the best of 8 is right in more than 9 of 10.",
    all(run["1"] <= 0.4 and run["8"] > 0.9 for run in covered),
    control=("So is the best of 2.", all(run["2"] > 0.9 for run in covered)),
)

# %% [markdown]
# The right answers are there; training moves probability to them. That is also what **rejection sampling** does: keep the right ones, imitate
# them. It looks like no reinforcement learning at all. Compare its gradient with that of REINFORCE with the score for an advantage:

# %%
mask = torch.arange(4) < torch.tensor([[2], [4], [3], [1]])
paid = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)
log_probs = torch.randn(4, 4, generator=draw, dtype=torch.float64).requires_grad_()
right = paid == 1


# %%
def reinforce(scores):
    advantages = variants.for_every_token(scores, mask)
    loss = variants.plain_token_loss(log_probs, log_probs, advantages, mask=mask)
    return torch.autograd.grad(loss, log_probs)[0]


# %% [markdown]
# The mean over accepted tokens and the mean over all differ by a factor, which is a matter of the step size:

# %%
loss = -variants.aggregate(log_probs[right], mask[right], mode="token_mean")
imitate = torch.autograd.grad(loss, log_probs)[0]
scale = mask.sum() / mask[right].sum()

# %%
claim(
    "variants.imitation",
    "Imitating right answers is REINFORCE with scores 0 and 1 and no baseline, up to the step size.",
    torch.allclose(imitate, scale * reinforce(paid)),
    control=(
        "It is REINFORCE with the mean for a baseline.",
        torch.allclose(imitate, scale * reinforce(paid - paid.mean())),
    ),
)

# %% [markdown]
# What is rejected is not pushed down. It sinks only because probabilities add up to 1.
#
# ## The same number of answers
#
# Now the runs: lesson 13's language, the verifier's reward, no price, three seeds. Each method sees 7,680 answers and starts from the same
# reference. They are tested on 1,024 prompts of the release split. First the four that draw anew, all at the same learning rate, 0.0004, which was
# chosen for none of them. They differ in their advantages alone: ratio, clip and mean over tokens are PPO's in all four, and there is no KL. (So these are
# GRPO and RLOO as libraries have them, not as published.) Beside them DPO, and rejection sampling; both learn from 7,680 answers of the reference, 960
# prompts with eight each, drawn once and read two or three times.

# %%
four = ("PPO", "GRPO", "RLOO", "REINFORCE++")
online = {name: runs_of(f"{name}/0.0004") for name in four}
once["rejection sampling"] = [run["final"]["success"] for run in runs_of("Rejection sampling/1")]
paths = {
    name: (found[0]["num_answers"], [run["success"] for run in found])
    for name, found in online.items()
}
ends = {name: [run["final"]["success"] for run in found] for name, found in online.items()}

# %%
show(
    figures.equal_samples(paths, once, before=[run["1"] for run in covered]),
    alt="Right answers over answers drawn: four methods rise together from 0.35 to above 0.9, their lines crossing. "
    "Beside it DPO, lower: at β = 1 between 0.7 and 0.85, at 0.1 far below; and rejection sampling, above all, at 0.97.",
)

# %% [markdown]
# How far apart are they, and is one of them ahead in all of its runs?

# %%
lowest, highest = min(map(min, ends.values())), max(map(max, ends.values()))
ahead = [
    min(ends[name]) > max(max(ends[other]) for other in four if other != name) for name in four
]

# %%
claim(
    "variants.not_separable",
    "All recorded runs of PPO, GRPO, RLOO and REINFORCE++ end within 5 points of each other, above 0.9.",
    highest - lowest < 0.05 and lowest > 0.9,
    control=("The worst run of one beats the best of all others.", sum(ahead) > 0),
)

# %% [markdown]
# With 1,024 prompts a share of 0.93 has a standard error of 0.008, and seeds differ by about as much again. So these runs do not say which of the four is best.
#
# ### A rate for each
#
# But was one rate for all fair? So each method was given the same chance: one run at each of three rates, 0.0002, 0.0004 and 0.0008, on a fourth seed.
# The rate that was best there, on 256 prompts of the gate split, was then run on the three seeds:

# %%
rates = {}
for name in four:
    tried = {
        rate: study[f"{name}/{rate}/3"]["success"][-1] for rate in recorded("variants")["rates"]
    }
    rates[name] = max(tried, key=tried.get)
tuned = {
    name: [run["final"]["success"] for run in runs_of(f"{name}/{rate}")]
    for name, rate in rates.items()
}

# %%
for name in four:
    shared, own = (sum(each[name]) / 3 for each in (ends, tuned))
    print(f"{name:11} at 0.0004 {shared:.3f}   at its own rate, {rates[name]}, {own:.3f}")

# %% [markdown]
# Two of the four chose the largest rate. What did it bring them?

# %%
claim(
    "variants.tuned_by_one_run",
    "PPO and REINFORCE++ end lower at the rate that they chose than at 0.0004, on each of the three seeds.",
    all(
        own < shared
        for name in ("PPO", "REINFORCE++")
        for own, shared in zip(tuned[name], ends[name], strict=True)
    ),
    control=(
        "No method ends lower at its own rate, on average: that is what tuning is for.",
        all(sum(tuned[name]) >= sum(ends[name]) for name in four),
    ),
)

# %% [markdown]
# One run and 256 prompts are too few to choose by. And see what became of the order: REINFORCE++ is first of four in one column and last in the
# other. Whoever wants a ranking finds the column for it. (DPO and rejection sampling, too, chose among three settings by one run each.)
#
# ### Relatives
#
# Six relatives of GRPO and one of RLOO, each with one or two places of the board changed, at the rate of the method that it comes from:

# %%
changed = {
    "GRPO": ("Dr. GRPO", "GSPO", "CISPO", "GRPO, mean of means", "GRPO, wide upper edge",
             "GRPO, groups of 4"),
    "RLOO": ("RLOO, whole answers",),
}  # fmt: skip
single = {}
for base, names in changed.items():
    for name in (base, *names):
        runs = runs_of(f"{name}/{rates[base]}")
        single[name] = [run["final"]["success"] for run in runs]

# %%
start = sum(run["1"] for run in covered) / 3
show(
    ends_by_setting(
        [*single.items()], before=start, title="Seven relatives end where their base ends"
    ),
    alt="Right answers at the end for GRPO, six changes of it, RLOO and one change of it, a dot for each seed. All lie "
    "between 0.89 and 0.94.",
)


# %% [markdown]
# How far is the mean of a relative from that of its base?


# %%
def moved(name):
    base = "RLOO" if name.startswith("RLOO") else "GRPO"
    return abs(sum(single[name]) - sum(single[base])) / 3


claim(
    "variants.relatives",
    "The mean of three seeds of each of the seven is within 2 points of that of its base.",
    max(map(moved, single)) < 0.02,
    control=("One of them is more than 5 points away.", max(map(moved, single)) > 0.05),
)

# %% [markdown]
# Answers have five or six tokens here, and prompts are alike: what most of these changes were made for cannot show. That is all that the rows say.
#
# ### What can be told apart
#
# DPO, below:

# %%
of_dpo = two_epochs + [run["final"]["success"] for run in runs_of("DPO/0")]  # as it chose
claim(
    "variants.dpo_below",
    "Each run of the four ends above each run of DPO, at β = 1 and as it chose, by more than 3 points.",
    lowest > max(of_dpo) + 0.03,
    control=("DPO ends within 3 points of them.", min(of_dpo) > lowest - 0.03),
)

# %% [markdown]
# Is it because DPO learns from what the reference said, and never sees what it would say itself? Then rejection sampling, which learns from the same
# answers, ought to end as low:

# %%
imitated = once["rejection sampling"]
claim(
    "variants.imitation_ahead",
    "Rejection sampling ends above each run of the four, at their common rate and at their own.",
    min(imitated) > max(highest, max(map(max, tuned.values()))),
    control=(
        "It ends where DPO does, which saw the same answers.",
        min(imitated) < max(two_epochs),
    ),
)

# %% [markdown]
# It ends highest. So it is not the old answers. What is left is what DPO asks of them, a margin to a wrong answer, and not that the right one be likely. And why
# does plain imitation beat the loop of this course here? Look at the likeliest tokens:

# %%
greedy = {
    name: [run["final"]["greedy_success"] for run in runs]
    for name, runs in (("PPO", online["PPO"]), ("imitation", runs_of("Rejection sampling/1")))
}
at_one = zip(imitated, ends["PPO"], strict=True)
claim(
    "variants.greedy_alike",
    "With the likeliest tokens, PPO and rejection sampling are within 2 points of each other on each seed.",
    all(abs(a - b) < 0.02 for a, b in zip(*greedy.values(), strict=True)),
    control=("With drawn tokens they are, too.", all(abs(a - b) < 0.02 for a, b in at_one)),
)

# %% [markdown]
# Both know what is right, in 98 of 100 and more. They differ in how sure they are. Where all eight answers to a prompt are right, a baseline takes the push
# away. Imitation goes on until the right answer is certain. If that is the reason, the loop itself must gain when its baseline is taken out, and nothing else.
# Two more sets of runs, at the same rate, with ratio and clip, and no spread: score − mean, and the score itself.

# %%
with_mean, bare = (
    [run["final"]["success"] for run in runs_of(f"{name}/0.0002")]
    for name in ("GRPO, no spread", "GRPO, no spread, no baseline")
)
for words, some in {"score − mean": with_mean, "score": bare}.items():
    print(f"{words:13}", " ".join(f"{each:.3f}" for each in some))

# %%
claim(
    "variants.without_a_baseline",
    "Without the baseline the same loop ends higher on each of the three seeds, by more than 2 points.",
    all(x > y + 0.02 for x, y in zip(bare, with_mean, strict=True)),
    control=(
        "It ends lower, for without a baseline the gradient is noisier.",
        all(x < y for x, y in zip(bare, with_mean, strict=True)),
    ),
)

# %% [markdown]
# Do not carry that away as a rule. All is at hand here that imitation needs: a verifier without errors, and a reference that finds a right answer in nearly
# all groups of eight. Where right answers are rare, or the score has errors to be found, there is nothing good to imitate. But it is the simplest and the
# cheapest of these runs. Whoever reports a gain owes the reader this row.
#
# And the price of a critic:

# %%
seconds = {name: [run["cpu_seconds"] for run in found] for name, found in online.items()}
most = max(max(seconds[name]) for name in four[1:])
claim(
    "variants.price_of_a_critic",
    "PPO took more than 1.5 times the CPU time of any run without a critic.",
    min(seconds["PPO"]) > 1.5 * most,
    control=("It took more than 3 times as much.", min(seconds["PPO"]) > 3 * most),
)

# %% [markdown]
# What did it buy? A critic here sees a reward of 0 or 1 at the last token, after five tokens. How much of what was earned does it explain, beside lesson 14's
# critic at β = 0.3, whose judge adds up something at every token?

# %%
of_verifier = [number for run in online["PPO"] for number in run["ev_monte_carlo"]]
judged = recorded("rlhf")["runs"]["beta 0.3"].values()
of_judge = [run["curves"]["ev_monte_carlo"][-1] for run in judged]

# %%
claim(
    "variants.critic_is_blind",
    "On the verifier's reward the critic's explained variance stays below 0.3 at each look.",
    max(of_verifier) < 0.3,
    control=("On the judge's score of lesson 14 it ends below 0.3, too.", max(of_judge) < 0.3),
)

# %% [markdown]
# So this is the place where a critic has the least to offer: one reward at the end, short answers, several answers to each prompt at hand.
#
# ## Where a critic wins
#
# Take the other side, then. What was expected, and written down before the first run: a critic wins where rewards arrive token by token, since it can
# say which part of the return a token is not responsible for. Three designs:
#
# - **dense**: each token that stands in its right place is paid when it is written, the end included; all of them make 1.
# - **shaped**: 0 or 1 at the end as before, and at each token the change of a potential, the share of the answer that is right so far. These changes
#   add up to 0, so a method that looks at sums alone does not see them.
# - **long**: 24 tokens, from a model that was never trained, and 1/24 for each that is the one wanted: digits in turn, the same for every prompt.
#
# Each method sees 5,120 answers and has the better of two learning rates, by these same runs; five seeds, 90 runs in all. What counts is success in the last
# four iterations, on the prompts of training. In how many of the three designs does PPO
# end above both methods without a critic in *each* of the five seeds?

# %% tags=["nbval-ignore-output"]
predict("variants.critic_wins", None, unit="designs")

# %% [markdown]
# Here are the runs, each method at the better of its two rates:

# %%
study = recorded("critic_wins")


def runs_in(design, method):
    tried = [
        [study["runs"][f"{design}/{method}/{rate}/{seed}"] for seed in study["seeds"]]
        for rate in study["rates"]
    ]
    return max(tried, key=lambda runs: sum(sum(run["final"].values()) for run in runs))


# %%
methods = ("PPO", "REINFORCE++", "GRPO")
found = {name: {each: runs_in(name, each) for each in methods} for name in study["designs"]}
at_end = {
    name: {each: [sum(run["final"].values()) for run in runs] for each, runs in some.items()}
    for name, some in found.items()
}

# %% [markdown]
# A line joins the runs of one seed, which start from the same model:

# %%
show(
    figures.by_seed(at_end, ylabel="end: right answers, or score (long)"),
    alt="Three panels with five seeds for each method. dense: PPO a little above both others. shaped: all three alike. "
    "long: PPO between 0.48 and 0.90, the others between 0.33 and 0.49.",
)

# %% [markdown]
# In how many of the five seeds is PPO above both?

# %%
above = {
    name: sum(ppo > max(others) for ppo, *others in zip(*some.values(), strict=True))
    for name, some in at_end.items()
}
above

# %% tags=["nbval-ignore-output"]
compare("variants.critic_wins", sum(seeds == 5 for seeds in above.values()), unit="designs")

# %% [markdown]
# One design of the three:

# %%
claim(
    "variants.critic_on_long_answers",
    "With 24 tokens paid one by one, PPO ends above both other methods in each of the five seeds.",
    above["long"] == 5,
    control=("It does with a shaped score on five tokens, too.", above["shaped"] == 5),
)

# %% [markdown]
# With *dense* PPO is ahead in four seeds of five at the end, and in all five over the whole training. With *shaped* PPO has no lead at the end. But look at
# the whole training: GRPO, which sees sums alone, has the fewest right answers there in each seed, if by little. REINFORCE++ has no critic either, and adds up what
# comes *after* each token, so it sees the potential. The expectation held for the long answers, nearly held for dense rewards, and failed for the potential: to
# see it takes no critic.

# %%
all_along = {
    name: sum(
        ppo["mean"] > max(run["mean"] for run in others)
        for ppo, *others in zip(*some.values(), strict=True)
    )
    for name, some in found.items()
}
claim(
    "variants.dense_over_training",
    "With dense rewards PPO has more right answers over the whole training in each of the five seeds.",
    all_along["dense"] == 5,
    control=("With a shaped score it has, too.", all_along["shaped"] == 5),
)

# %%
fewest = {
    name: sum(
        grpo["mean"] < min(ppo["mean"], plus["mean"])
        for ppo, plus, grpo in zip(*some.values(), strict=True)
    )
    for name, some in found.items()
}
claim(
    "variants.potential_needs_no_critic",
    "With a shaped score GRPO has the fewest right answers over the training in each of the five seeds.",
    fewest["shaped"] == 5,
    control=("With dense rewards it has, too.", fewest["dense"] == 5),
)

# %% [markdown]
# Three reservations. First, the critic came with GAE at λ = 0.95, and these runs do not part the two. Second, *long* differs from the others in more than its
# length: it starts from nothing, and has one target for all prompts. Third, *equal answers* is one budget. Here a token costs next to nothing to draw, and the
# critic nearly doubles the time of an iteration. After 24 of 40 iterations, where GRPO has used up as much time, PPO's lead on long answers is small, and
# no longer there in each seed:

# %%
at_equal_time = [run["score"][5] for run in found["long"]["PPO"]]  # iteration 24
claim(
    "variants.equal_time",
    "In the time of GRPO's 40 iterations on long answers, PPO is above GRPO's end in some seeds only.",
    0 < sum(x > y for x, y in zip(at_equal_time, at_end["long"]["GRPO"], strict=True)) < 5,
    control=("At equal numbers of answers, too.", above["long"] < 5),
)

# %% [markdown]
# So ask what is dear. If it is the answers, a critic pays where rewards come on the way and answers are long. If it is the time of your machine, count it.
# The result says nothing about horizons of hundreds of steps, or about an environment that cannot be put back to draw a group; lesson 06 has shown
# what a critic is for there.
#
# ## What breaks it
#
# - **The group taken from the order of rows.** The batch was shuffled, and answers are compared with strangers.
# - **The spread of the whole batch called GRPO**, or that of a group called REINFORCE++.
# - **Groups of one.** The mean is the own score, each advantage is 0. Some libraries then skip the baseline in silence.
# - **KL in the reward and in the loss.** Two switches, both on: it is charged twice.
# - **k1 in the loss.** It costs time and does nothing.
# - **Means per piece of a batch.** The gradient then depends on how much memory you have.
# - **A switch for tokens after the sum over tokens.** It has no effect, and no error says so.
# - **DPO over padding.** The log-probability of an answer is the sum over *its* tokens, of both answers of the pair.
# - **Equal numbers of updates in place of equal numbers of answers.** DAPO draws more than it keeps.
#
# ## Exercises
#
# [Six exercises](../exercises/15_variants.ipynb) wait for you: advantages of GRPO and of RLOO for groups in any order, a mean over
# tokens with a bug, the loss of DPO, a method that nobody has named, and numbers by hand.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("variants.equal_group")

# %%
quiz("variants.long_answers")

# %% [markdown]
# On losses and what they say:

# %%
quiz("variants.zero_loss")

# %%
quiz("variants.small_beta")

# %% [markdown]
# And on the comparison:

# %%
quiz("variants.not_separable")

# %% [markdown]
# ## What you have now
#
# - A new method is a row of seven places. Ask its functions what stands in each.
# - A group's mean stands in for the critic. RLOO keeps the mean gradient; a spread that divides chooses which prompts count.
# - Weights of tokens decide what length costs. Means of means make long wrong answers cheap.
# - As a loss, k1 teaches nothing and k3 pulls in the other direction.
# - DPO shares the goal of RLHF where preferences are complete. It sees margins only, and at a small β these are far.
# - At equal numbers of answers four methods could not be told apart, nor seven relatives of theirs. Imitating the right answers, which nobody names,
#   ended above them all.
# - Pay each of 24 tokens, and the critic wins at equal numbers of answers; at equal time it does not.
#
# The module behind this page: [variants](../ppo_lessons/variants/__init__.py). Next: what if the answers were drawn by an older policy?
