# %% [markdown]
# # Stale rollouts
#
# **What if rollouts are old?**
#
# A large language model writes slowly. While it writes, whoever trains it has nothing to do; so both are made to work at
# the same time. But then the answers that the trainer gets were written by a policy of some updates ago. How old may
# they be? What does the ratio repair, what the clip, and what neither? This is the question of lesson 02 once
# more, with a clock.
#
# The words that you need. The **version** of a policy is how many updates it has seen. The **age** of a batch is how
# many versions lie between the policy that drew it and the one that learns from it. There are three policies now: μ,
# the **behaviour**, drew the data; π_prox, the **proximal** policy, is the one at the start of an update; π is the one that
# learns. As long as the trainer waits for fresh data, the first two are the same, and were called π_old.

# %% tags=["nbval-ignore-output"]
import copy
from functools import partial
from math import inf

import torch

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source, staleness
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.figures import staleness as figures
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.rlhf import RLHFConfig, TokenPolicy, train_tokens
from ppo_lessons.tokens import cached_reference
from ppo_lessons.variants import plain_token_loss, reinforce_pp_slot
from ppo_lessons.widgets import StalenessTimeline

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("staleness.review_ratio")

# %%
quiz("staleness.review_clip")

# %% [markdown]
# And one from lesson 08:

# %%
quiz("staleness.review_renew")

# %% [markdown]
# ## Who waits for whom
#
# Generator and trainer meet at a queue. The generator puts batches in, each with the version that drew it. The trainer
# takes out the one that waits longest. A queue with an end has a use: when it is full, the generator must wait.

# %%
show_source(staleness.VersionedBuffer.pop)

# %% [markdown]
# Let the generator be fast: before each update it fills the buffer. There is room for four batches. After a few updates,
# how old is each batch that the trainer takes?

# %% tags=["nbval-ignore-output"]
predict("staleness.age_of_four", None, unit="versions")


# %%
def meetings(capacity, updates=12):
    buffer, used = staleness.VersionedBuffer(capacity), []
    for version in range(updates):
        while not buffer.full:
            buffer.push("a batch", version=version)
        _, age = buffer.pop(version=version, max_age=updates)
        used.append((version - age, version))
    return used


# %% [markdown]
# The last batch of twelve:

# %%
drawn_by, learned_by = meetings(4)[-1]
compare("staleness.age_of_four", learned_by - drawn_by, unit="versions")

# %% [markdown]
# Each arrow is a batch:

# %%
show(
    figures.timeline(meetings(4), title="Room for four: each batch is three versions old"),
    alt="Two lanes over updates. Version 0 draws four batches, each later version one. From update 3 on "
    "every arrow leads from a version to the one three updates later.",
)

# %% [markdown]
# The age of the oldest batch, by room and by the length of the run:


# %%
def oldest(capacity, updates):
    return max(new - old for old, new in meetings(capacity, updates))


# %%
claim(
    "staleness.room_bounds_age",
    "With room for C batches none is older than C − 1 versions, however long the run is.",
    all(oldest(c, updates) == c - 1 for c in (1, 2, 4, 8) for updates in (20, 80)),
    control=(
        "In a run that is four times as long the oldest batch is older.",
        all(oldest(c, 80) > oldest(c, 20) for c in (1, 2, 4, 8)),
    ),
)

# %% [markdown]
# The other way to bound the age is to throw away what is too old. Take answers of 1 to 8 tokens, all equally frequent,
# and let each token take the time of one update. What is older than 4 versions is dropped:


# %%
def used_up_to(max_age, lengths=range(1, 9)):
    used = []
    for length in lengths:
        begun = staleness.VersionedBuffer(1)
        begun.push(length, version=0)
        found = begun.pop(version=length, max_age=max_age)  # it is finished `length` updates later
        used += [] if found is None else [found[0]]
    return used


mean_length = sum(used_up_to(4)) / len(used_up_to(4))
print(f"drawn: mean length 4.5; used: mean length {mean_length}")

# %%
claim(
    "staleness.dropping_shortens",
    "Dropping what is older than 4 versions leaves answers that are 2 tokens shorter on average.",
    mean_length == 4.5 - 2,
    control=("It leaves fewer answers of the same mean length.", mean_length == 4.5),
)

# %% [markdown]
# Nobody asked for short answers. So let the generator wait, rather than drop.
#
# ## Old data as they stand
#
# Now to what old data do. The language of lesson 13, paid by the verifier, 128 answers in each iteration, one update for each
# batch, on three seeds. At age 0 about nine of ten answers come out right. The same with batches that are 4 versions old, by a
# loss that knows nothing of it, −log π·Â: how many of 100 answers are right in the end?

# %% tags=["nbval-ignore-output"]
predict("staleness.nothing_at_four", None, unit="%")

# %%
study = recorded("staleness")
seeds, runs = study["seeds"], study["runs"]


def at_end(run):
    return run["final"]["success"]


def of_each(design, correction, age, number=at_end):
    return [number(runs[f"{design}/{correction}/{age}/{seed}"]) for seed in seeds]


untouched = of_each("one update", "nothing", 4)
compare("staleness.nothing_at_four", round(100 * sum(untouched) / len(untouched)), unit="%")

# %% [markdown]
# Beside them the runs of age 0:

# %%
fresh = of_each("one update", "clip", 0)
claim(
    "staleness.four_versions",
    "On each seed, data 4 versions old cost more than half of the right answers, if used as they stand.",
    all(old < new / 2 for old, new in zip(untouched, fresh, strict=True)),
    control=(
        "They cost at most a tenth: four updates change little.",
        all(old > 0.9 * new for old, new in zip(untouched, fresh, strict=True)),
    ),
)

# %% [markdown]
# Four updates, and training destroys what the reference could do. Why so much? Look at one bad action, Â = −1, which μ took
# with probability one half. While π makes it rarer, how hard does each loss go on pushing?


# %%
def push(loss, now):
    logit = torch.tensor(now, dtype=torch.float64).logit().requires_grad_()
    log_prob = torch.nn.functional.logsigmoid(logit).reshape(1, 1)
    old, advantage = torch.full_like(log_prob, 0.5).log().detach(), -torch.ones_like(log_prob)
    return torch.autograd.grad(loss(log_prob, old, advantage, mask=old < 0), logit)[0].item()


clip = partial(clipped_surrogate_loss, clip_epsilon=0.2)
losses = {"nothing": plain_token_loss, "ratio": surrogate_loss, "clip": clip}
for name, loss in losses.items():
    print(f"{name:8}", " ".join(f"{push(loss, now):6.3f}" for now in (0.5, 0.1, 0.01, 0.001)))

# %% [markdown]
# From left to right the action becomes rarer: 0.5, 0.1, 0.01, 0.001.

# %%
claim(
    "staleness.no_end",
    "Without a ratio the push on a bad action doubles while its probability falls from 1/2 to 1/1000.",
    1.99 < push(plain_token_loss, 0.001) / push(plain_token_loss, 0.5) < 2,
    control=(
        "So it does with the ratio.",
        1.99 < push(surrogate_loss, 0.001) / push(surrogate_loss, 0.5) < 2,
    ),
)

# %% [markdown]
# On fresh data a policy that has left an action does not draw it any more, and the push ends of itself. Old data go on showing
# it. The ratio makes the push fade, the clip ends it. And here is what that is worth:


# %%
def curves(age, corrections):
    def seen(name, what):
        return of_each("one update", name, age, lambda run: run[what])

    return {name: (seen(name, "num_answers")[0], seen(name, "success")) for name in corrections}


# %%
panels = {"age 0": curves(0, ["clip"])}
panels |= {f"age {age}": curves(age, ["nothing", "ratio", "clip"]) for age in (1, 4, 16)}
show(
    figures.by_age(panels),
    alt="Four panels of success over answers. At age 0 it rises to 0.9. At age 1 the line without correction ends near "
    "0.75, the other two above 0.9. At age 4 and 16 it rises first and falls near 0; with ratio, and with ratio and "
    "clip, success stays above 0.6.",
)

# %% [markdown]
# A single version of age is not free:

# %%
one = {name: of_each("one update", name, 1) for name in ("nothing", "ratio", "clip")}
claim(
    "staleness.one_version",
    "At age 1, on each seed, the ratio saves more than 10 of 100 right answers.",
    all(low + 0.1 < high for low, high in zip(one["nothing"], one["ratio"], strict=True)),
    control=(
        "The clip saves as many more.",
        all(low + 0.1 < high for low, high in zip(one["ratio"], one["clip"], strict=True)),
    ),
)

# %% [markdown]
# And at age 4, seed by seed:


# %%
def in_order(age, corrections):
    columns = [of_each("one update", name, age) for name in corrections]
    return all(list(ends) == sorted(ends) for ends in zip(*columns, strict=True))


# %%
claim(
    "staleness.order",
    "At age 4, on each seed: nothing is worst, the ratio is better, ratio and clip are best.",
    in_order(4, ("nothing", "ratio", "clip")),
    control=(
        "The ratio alone is best, for it is unbiased and the clip is not.",
        in_order(4, ("nothing", "clip", "ratio")),
    ),
)

# %% [markdown]
# At age 16 both are far above nothing. Which of the two is better there, three seeds do not say:

# %%
claim(
    "staleness.not_separable",
    "At age 16 ratio and clip both beat nothing on each seed, and each beats the other somewhere.",
    all(in_order(16, ("nothing", name)) for name in ("ratio", "clip"))
    and not in_order(16, ("ratio", "clip"))
    and not in_order(16, ("clip", "ratio")),
    control=(
        "The clip beats the ratio on each seed there, too: the older the data, the more it helps.",
        in_order(16, ("ratio", "clip")),
    ),
)

# %% [markdown]
# ## It is not about clocks
#
# Is that a matter of slow generators? In lesson 08 each batch serves for several updates. The first of them sees fresh
# data, the second data of one update ago. Here are four updates for each batch, two epochs of two minibatches, at half the
# learning rate. All batches are drawn at age 0. What does it cost to do nothing?

# %%
bare, clipped = (of_each("four updates", name, 0) for name in ("nothing", "clip"))
costs = [high - low for low, high in zip(bare, clipped, strict=True)]
claim(
    "staleness.mild_reuse",
    "With four updates on each fresh batch, doing nothing costs less than 0.1 on each seed.",
    max(costs) < 0.1,
    control=("It costs more than half of the right answers, as at age 4.", min(costs) > 0.4),
)

# %% [markdown]
# Little. These four steps are small, and the last of them is three steps away from its data. Lesson 14 recorded sixteen
# updates for each batch, four epochs of four minibatches, with the ratio, and with ratio and clip:

# %%
reused = recorded("rlhf")["runs"]
with_clip, ratio_alone = (
    [run["curves"]["success"][-1] for run in reused[name].values()]
    for name in ("4x4, clip", "4x4, no clip")
)

# %%
claim(
    "staleness.heavy_reuse",
    "With sixteen updates, at most 5 of 100 are right by the ratio alone, with the clip more than 40.",
    max(ratio_alone) < 0.05 and min(with_clip) > 0.4,
    control=("The ratio alone does it, since each batch was fresh.", min(ratio_alone) > 0.4),
)

# %% [markdown]
# So PPO's loss was made for data that grow old, from the first day on. And age in updates is not what hurts. A policy of two
# words with logit θ climbs on p, from one half: five times by a small step, or once by a large one. Which share of the
# old data is left?


# %%
def share_left(steps, learning_rate):
    logit = torch.zeros((), dtype=torch.float64)
    for _ in range(steps):
        logit = logit + learning_rate * logit.sigmoid() * (1 - logit.sigmoid())
    now = torch.stack([logit.sigmoid(), 1 - logit.sigmoid()])
    return 1 / (now**2 / 0.5).sum().item()


print(f"five small updates {share_left(5, 0.2):.3f}, one large {share_left(1, 8.0):.3f}")

# %% [markdown]
# It is the way that the policy went:

# %%
claim(
    "staleness.age_is_not_harm",
    "Data five small updates old are worth more than data one large update old: 0.95 against 0.7.",
    share_left(5, 0.2) > 0.95 and share_left(1, 8.0) < 0.7,
    control=(
        "Data of age 1 are worth more than data of age 5, whatever the updates are.",
        share_left(1, 8.0) > share_left(5, 0.2),
    ),
)

# %% [markdown]
# ## Weights, exactly
#
# The ratio of old data has a plainer use than in a surrogate: as a weight. Two tokens of two words each give four
# answers, so nothing need be sampled. μ and π differ at the first token, and at the second behind word 1:


# %%
def answer_log_probs(first, after_0, after_1):
    second = torch.tensor([1 - after_0, after_0, 1 - after_1, after_1], dtype=torch.float64)
    begun = torch.tensor([1 - first, 1 - first, first, first], dtype=torch.float64)
    return torch.stack([begun, second], dim=1).log()


behaviour = answer_log_probs(0.7, 0.4, 0.4)
proximal = answer_log_probs(0.4, 0.4, 0.8)
reward = torch.tensor([0.0, 1.0, -2.0, 5.0], dtype=torch.float64)
truth = (proximal.sum(1).exp() * reward).sum()

# %% [markdown]
# The package's function, and what it says on average over answers of μ:

# %%
show_source(staleness.truncated_weights)


# %%
def average(new, old):
    weights = staleness.truncated_weights(new, old, largest_weight=inf)
    return (behaviour.sum(1).exp() * weights * reward).sum().item()


whole = average(proximal.sum(1), behaviour.sum(1))
last_token = average(proximal[:, 1], behaviour[:, 1])
print(f"truth {truth:.2f}; whole answers {whole:.2f}; last token {last_token:.2f}")

# %% [markdown]
# Once with weights of whole answers, once with the ratio of the last token alone, behind which the reward is paid:

# %%
claim(
    "staleness.unbiased",
    "Weighed by whole answers, answers of μ have the mean reward of π, to 10⁻¹².",
    abs(whole - truth) < 1e-12,
    control=(
        "The ratio of the token that is paid does as well.",
        abs(last_token - truth) < 1e-12,
    ),
)

# %% [markdown]
# The token's own ratio leaves out that another first token would have been chosen, too. It is biased. Why does everybody use
# it? Let each of T tokens have two words, one half each for μ, 0.6 and 0.4 for π. A token then has weight 1.2 or 0.8, and
# an answer the product of T of them. The effective share of many samples is 1/E_μ[w²]: for tokens 1/1.04. For whole
# answers of 100 tokens, guess:

# %% tags=["nbval-ignore-output"]
predict("staleness.share_of_answers", None, unit="%")

# %%
per_token = 1 / (0.6**2 / 0.5 + 0.4**2 / 0.5)
compare("staleness.share_of_answers", round(100 * per_token**100, 1), unit="%")

# %% [markdown]
# And at each length:

# %%
lengths = list(range(1, 101))
show(
    figures.shares(lengths, [per_token] * 100, [per_token**length for length in lengths]),
    alt="Effective share over the length of answers: a level line at 0.96 for tokens, and a line for "
    "whole answers that falls to one half at 18 tokens and to 0.02 at 100.",
)

# %%
claim(
    "staleness.level",
    "At 100 tokens more than 95 of 100 tokens are left, and fewer than 3 of 100 answers.",
    per_token > 0.95 and per_token**100 < 0.03,
    control=(
        "Of answers as many are left as of tokens, for deviations cancel.",
        per_token > 0.95 and per_token**100 > 0.95,
    ),
)

# %% [markdown]
# Where the probabilities cannot be listed, `effective_share` measures it. 4,000 answers of 10 tokens, drawn by μ:

# %%
draw = torch.Generator().manual_seed(1)
said = torch.rand(4000, 10, generator=draw) < 0.5
log_ratios = torch.where(said, 1.2, 0.8).double().log()
everywhere = torch.ones_like(said)
measured = staleness.effective_share(log_ratios, everywhere, level="response")
averaged = staleness.effective_share(
    log_ratios.mean(1, keepdim=True), everywhere[:, :1], level="response"
)

# %%
claim(
    "staleness.measured",
    "On 4,000 answers of 10 tokens the measured share of answers is the exact one within 0.03.",
    abs(measured - per_token**10) < 0.03,
    control=(
        "It is if the log-ratio of an answer is the mean over its tokens.",
        abs(averaged - per_token**10) < 0.03,
    ),
)

# %% [markdown]
# ## What a cap costs
#
# Twenty tokens of the same kind, and a reward of 1 if at least 14 of them are word 1. All depends on how many there are, so it
# can be added up exactly. What does a cap C on the weight of an answer do?

# %%
count = torch.arange(21, dtype=torch.float64)
by_old, by_new = (
    torch.distributions.Binomial(20, torch.tensor(p, dtype=torch.float64)).log_prob(count)
    for p in (0.5, 0.6)
)
rare = (count >= 14).double()


# %% [markdown]
# Mean and standard deviation of weight times reward, for an answer that μ draws:


# %%
def moments(cap):
    weights = staleness.truncated_weights(by_new, by_old, largest_weight=cap)
    mean = (by_old.exp() * weights * rare).sum()
    square = (by_old.exp() * (weights * rare) ** 2).sum()
    return mean.item(), (square - mean**2).sqrt().item()


# %%
sizes = [1.0, 2.0, 4.0, 8.0, 16.0, 40.0]
means, deviations = zip(*(moments(cap) for cap in sizes), strict=True)
wanted, old_mean = ((which.exp() * rare).sum().item() for which in (by_new, by_old))
show(
    figures.caps(sizes, means, deviations, truth=wanted, uncorrected=old_mean),
    alt="Two panels over the cap. The mean rises from that of the old policy at 1 to that of the new one "
    "near 8. The standard deviation rises with it and levels off.",
)

# %% [markdown]
# First the mean, then the noise:

# %%
claim(
    "staleness.cap_is_biased",
    "Each smaller cap moves the mean further from π's, and towards μ's.",
    means[0] < means[1] < means[2] < means[3] and abs(means[-1] - wanted) < 1e-12,
    control=("A cap of 2 leaves the mean within 1 % of π's.", abs(means[1] / wanted - 1) < 0.01),
)

# %%
claim(
    "staleness.cap_is_quiet",
    "A cap of 2 more than halves the standard deviation of a weighted sample.",
    deviations[1] < deviations[-1] / 2,
    control=("A cap of 16 does.", deviations[4] < deviations[-1] / 2),
)

# %% [markdown]
# ## One ratio for each reason
#
# PPO's ratio compares with whoever drew the data. If the data are old, it is outside of the clip before the first step,
# and what is outside on the paid side has no gradient. The **decoupled** loss keeps two reasons apart: a
# weight, π_prox / μ, repairs the age. The clip goes around π_prox, and limits what *this* update may do.

# %%
show_source(staleness.decoupled_loss)

# %% [markdown]
# A thousand samples of an old policy, at the first step of an update, so π = π_prox:

# %%
old = -1 - torch.rand(1000, generator=draw, dtype=torch.float64)
now = old + 0.3 * torch.randn(1000, generator=draw, dtype=torch.float64)
advantages = torch.randn(1000, generator=draw, dtype=torch.float64)
decoupled = partial(staleness.decoupled_loss, largest_weight=2.0)


def slopes(loss, **settings):
    log_probs = now.clone().requires_grad_()
    return torch.autograd.grad(loss(log_probs, **settings), log_probs)[0]


# %% [markdown]
# The same samples, with the clip around μ and around π_prox:

# %%
coupled = slopes(clip, log_probs_old=old, advantages=advantages)
three = {"log_probs_proximal": now, "log_probs_behaviour": old, "advantages": advantages}
apart = slopes(decoupled, clip_epsilon=0.2, **three)

# %%
claim(
    "staleness.dead_samples",
    "Around μ, more than 15 of 100 samples have no gradient from the start; around π_prox, none.",
    (coupled == 0).float().mean() > 0.15 and (apart != 0).all(),
    control=(
        "Around μ all have one as well: nothing has been clipped before the first step.",
        (coupled != 0).all(),
    ),
)

# %% [markdown]
# At age 0, μ is π_prox:

# %%
fresh_apart = slopes(decoupled, clip_epsilon=0.2, **three | {"log_probs_behaviour": now})
fresh_coupled = slopes(clip, log_probs_old=now, advantages=advantages)

# %%
claim(
    "staleness.age_zero",
    "At age 0 the decoupled gradient is that of the clipped surrogate, to 10⁻¹².",
    (fresh_apart - fresh_coupled).abs().max() < 1e-12,
    control=("It is on old data, too.", (apart - coupled).abs().max() < 1e-12),
)

# %% [markdown]
# With one update for each batch, that first step is the only one. Then the clip around π_prox never acts:

# %%
pair = {"log_probs_old": old, "advantages": advantages}
narrow, wide = (slopes(decoupled, clip_epsilon=epsilon, **three) for epsilon in (0.01, 10.0))
narrow_behaviour, wide_behaviour = (slopes(clip, clip_epsilon=e, **pair) for e in (0.01, 10.0))

# %%
claim(
    "staleness.one_update",
    "With one update per batch the decoupled loss has the same gradient at ε = 0.01 and at ε = 10.",
    torch.equal(narrow, wide),
    control=("So has the clip around μ.", torch.equal(narrow_behaviour, wide_behaviour)),
)

# %% [markdown]
# ## Where in time each policy lives
#
# Two lanes: the generator draws, the trainer learns. Three marks: μ, where this batch was drawn; π_prox, where the update on
# it began; π, which learns now. Below stands what the loss compares. You have seen the runs at age 4 with the ratio, and with ratio
# and clip. Decoupled, with C = 2 and one update for each batch: how many of 100 answers are right in the end? Say so, then reveal.
#
# Then take hold of the room: which mark moves? Set four updates for each batch and move the updates one by one: which
# one now? (Where no widget can run, you see a picture of its answer.)

# %%
lanes = StalenessTimeline(keep_as="staleness.decoupled_at_four")
lanes

# %% [markdown]
# Its generator and its trainer meet at the queue from above, whatever you have set:

# %%
waited = meetings(lanes.capacity, updates=len(lanes.drawn))
assert lanes.drawn == [lanes.updates * drawn_by for drawn_by, _ in waited]
print("the widget and the queue agree")

# %% [markdown]
# Room for 1, 5 or 17 batches, four updates for each. What lies between μ and π_prox, and between π_prox and π, at each of the
# four?


# %%
def distances(room):
    marks = [StalenessTimeline(capacity=room, updates=4, version=at) for at in range(68, 72)]
    return [(each.proximal - each.behaviour, each.now - each.proximal) for each in marks]


among = {room: distances(room) for room in (1, 5, 17)}

# %%
claim(
    "staleness.two_distances",
    "The weight spans 4 versions for each batch that waits; the clip's ratio 0 to 3, whatever the room.",
    all(
        between == [(4 * (room - 1), number) for number in range(4)]
        for room, between in among.items()
    ),
    control=(
        "The clip's ratio spans more versions where there is more room.",
        max(clipped for _, clipped in among[1]) < max(clipped for _, clipped in among[17]),
    ),
)

# %% [markdown]
# The buffer makes the one distance, the epochs on a batch the other. With room for 1 the first is gone, with one update the
# second. So do not expect a cure of decoupling by itself. The recorded runs, with one update for each batch and C = 2:

# %%
show(
    figures.by_age({f"age {age}": curves(age, ["clip", "decoupled"]) for age in (4, 16)}),
    alt="Two panels of success over answers, at age 4 and 16: the clip around the behaviour policy rises "
    "and stays, the decoupled weights rise at first and end lower.",
)

# %%
claim(
    "staleness.no_cure_by_itself",
    "At age 4 and 16 with one update each, decoupled weights end below the clip around μ, on each seed.",
    all(in_order(age, ("decoupled", "clip")) for age in (4, 16)),
    control=(
        "They end above it: they throw no sample away.",
        all(in_order(age, ("clip", "decoupled")) for age in (4, 16)),
    ),
)

# %% [markdown]
# Its weights repair what is drawn too often. Nothing in it keeps the policy near the data, and the clip around μ does:
# what is too far away pushes no further. Where a batch serves for several updates, both fences have something to do.
#
# ## In the loop
#
# All that it takes is a policy that answers as it was: `AgedPolicy` keeps its last versions. Everything else is the loop of
# lesson 14. Its first alarm was: in the first minibatch each ratio is 1. And now?

# %% tags=["nbval-ignore-output"]
reference = cached_reference(seed=0)
config = RLHFConfig(
    beta=0.0, num_prompts=32, num_iterations=4, num_epochs=1, num_minibatches=1,
    learning_rate=1e-3,
)  # fmt: skip
scored = partial(reinforce_pp_slot, gamma=1.0)


def paid_for_order(prompts, responses):
    return (responses.tokens.diff(dim=1) >= 0).float().mean(dim=1)


# %% [markdown]
# One update for each batch, four iterations. The reward does not matter here; it pays for digits in order.


# %% tags=["nbval-ignore-output"]
def first_ratios(policy, advantages):
    world = {"reference": reference, "reward": paid_for_order, "advantages": advantages}
    return train_tokens(config, policy=policy, **world)["first_ratio_deviation"]


aged = staleness.AgedPolicy(TokenPolicy(copy.deepcopy(reference)), age=1)
ratios_of_aged = first_ratios(aged, scored)

# %%
claim(
    "staleness.first_ratio",
    "At age 1 the first ratios are 1 in the first iteration, to 10⁻⁴, and in no later one.",
    ratios_of_aged[0] < 1e-4 and min(ratios_of_aged[1:]) > 1e-3,
    control=(
        "They are 1 in each iteration, as in lesson 14.",
        max(ratios_of_aged) < 1e-4,
    ),
)

# %% [markdown]
# `DecoupledPolicy` rates the old answers once more before the update, and keeps the weights. In verl this is the timer
# `old_log_prob`:

# %% tags=["nbval-ignore-output"]
two = staleness.DecoupledPolicy(TokenPolicy(copy.deepcopy(reference)), age=1, largest_weight=2.0)
ratios_of_two = first_ratios(two, two.weighing(scored))

# %%
claim(
    "staleness.ratio_around_proximal",
    "Decoupled, the first ratios are 1 again in each iteration, to 10⁻⁴, though the data are old.",
    max(ratios_of_two) < 1e-4,
    control=(
        "And so are the weights π_prox / μ.",
        max(ratios_of_two) < 1e-4 and (two.weights - 1).abs().max() < 1e-4,
    ),
)

# %% [markdown]
# ## An alarm, and where it is silent
#
# The share outside of the clip compares the policy that learns with the one that drew. So it should tell age:


# %%
def mean_outside(run):
    return sum(run["fraction_outside"]) / len(run["fraction_outside"])


shares = {age: of_each("one update", "clip", age, mean_outside) for age in (0, 4, 16)}
largest = {
    age: of_each("one update", "clip", age, lambda run: max(run["max_ratio_deviation"]))
    for age in (4, 16)
}


# %% [markdown]
# Around μ, with one update for each batch:


# %%
def grows(numbers):
    return all(young < old for young, old in zip(numbers[4], numbers[16], strict=True))


# %%
claim(
    "staleness.alarm",
    "On each seed the share outside of the clip is 0 at age 0, and larger at age 16 than at age 4.",
    max(shares[0]) == 0 and grows(shares),
    control=(
        "So is the largest deviation of a ratio from 1: larger at age 16 than at age 4.",
        grows(largest),
    ),
)

# %% [markdown]
# The extreme of a batch is one token of thousands, and says little. Now the decoupled runs, whose clip goes around π_prox:

# %%
claim(
    "staleness.alarm_off",
    "Decoupled, with one update each, the share outside is 0 on each seed, although the age is 16.",
    max(of_each("one update", "decoupled", 16, mean_outside)) == 0,
    control=(
        "It is as large as around μ: the data are as old.",
        min(of_each("one update", "decoupled", 16, mean_outside)) > min(shares[16]) / 2,
    ),
)

# %% [markdown]
# Whoever decouples takes the alarm out as well, and watches the weights instead: their effective share.
#
# The reward model of lesson 14 was hacked without a price on distance, and no right answer was left. Put those runs beside
# these:

# %%
hacked = [run["curves"] for run in reused["beta 0"].values()]
rows = {
    f"age {age}, clip": list(zip(shares[age], of_each("one update", "clip", age), strict=True))
    for age in shares
}
bare = [of_each("one update", "nothing", 16, number) for number in (mean_outside, at_end)]
rows["age 16, nothing"] = list(zip(*bare, strict=True))
rows["lesson 14, hacked"] = [(mean_outside(run), run["success"][-1]) for run in hacked]

# %%
show(
    figures.alarms(rows),
    alt="Success at the end over the mean share outside of the clip. Runs at age 0, 4 and 16 with the clip "
    "are high, further right with age; without correction low and far right; hacked runs low and far left.",
)

# %% [markdown]
# The hacked ones lie at the lower left.

# %%
claim(
    "staleness.no_alarm",
    "Each hacked run is less outside than each run at age 16 with the clip, and ends worse.",
    max(mean_outside(run) for run in hacked) < min(shares[16])
    and max(run["success"][-1] for run in hacked) < min(of_each("one update", "clip", 16)),
    control=(
        "Each hacked run is more outside, since it ends worse.",
        min(mean_outside(run) for run in hacked) > max(shares[16]),
    ),
)

# %% [markdown]
# One number, two questions. "Have the data become old?" it answers. "Is the policy still doing the task?" it does not.
#
# ## What breaks it
#
# - **No log-probabilities of the generator.** μ must be written down while sampling; later nobody knows it.
# - **A generator that computes otherwise.** Another precision or temperature is an age of its own, even at version 0.
# - **Weights of whole answers.** Unbiased, and a few of them decide everything.
# - **A lower edge on the weights.** What π has left must weigh next to nothing: cut above only.
# - **A gradient through the weights.** They say who drew the data. They are constants.
# - **Corrected twice**: π / μ in the clip and π_prox / μ in front of it.
# - **Dropping what is old.** Long answers are old answers.
#
# ## Exercises
#
# [Five exercises](../exercises/16_staleness.ipynb) wait for you: a weight with a cap, the decoupled loss, what is left of the
# data at two levels, a loss that corrects twice, and old data by hand.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("staleness.three_policies")

# %%
quiz("staleness.cap")

# %% [markdown]
# On levels and alarms:

# %%
quiz("staleness.level")

# %%
quiz("staleness.alarm")

# %% [markdown]
# And on the queue:

# %%
quiz("staleness.dropping")

# %% [markdown]
# ## What you have now
#
# - A buffer with an end bounds the age. Dropping bounds it too, and makes answers short.
# - Old data need the ratio, or a bad action is pushed down without end. Far from the data they need the clip.
# - A weight is exact for whole answers and useless there; for tokens it is biased and usable. A cap trades once more.
# - Three policies: who drew, where the update began, who learns. Decoupled, each ratio has one reason.
# - The share outside of the clip is the alarm for age. For a hacked reward it is none.
#
# The module behind this page: [staleness](../ppo_lessons/staleness.py). Next: [lesson 17](17_evidence.ipynb) asks whether what came
# out may ship.
