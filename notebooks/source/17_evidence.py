# %% [markdown]
# # Evidence
#
# **May it ship?**
#
# A run has ended. Its score went up, few ratios were outside of the clip, its critic explains most of the variance. In
# lesson 14 you have seen such a run: it gave no right answer any more. So somebody has to decide,
# from less than they would like to have, whether this model may replace the one in use. Here you build what
# they need: a number with an interval, a comparison on the same prompts, a judge whose errors are known, a gate
# that stops a run, and a report that refuses to be written when something is missing.
#
# The words that you need. The **score** is what the reward model gives an answer. An answer is **right** if a
# **verifier** says so: a program that knows. The **success** of a model is the share of its answers that are right.
# The **baseline** of this lesson is the unmodified model, the reference of lesson 14; the **candidate** is what a
# run made of it. **Held-out** prompts are those that nothing was trained on.

# %% tags=["nbval-ignore-output"]
import copy
from dataclasses import replace
from math import sqrt

import torch

from ppo_lessons import claim, compare, evidence, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.evidence import Count, GateConfig, RecordedRun
from ppo_lessons.figures import evidence as figures
from ppo_lessons.rlhf import RLHFConfig, evaluate_answers, train_tokens
from ppo_lessons.tokens import TokenCritic, cached_reference, choose_scale
from ppo_lessons.tokens.generate import generate
from ppo_lessons.tokens.language import VOCABULARY, draw_prompts, is_correct
from ppo_lessons.widgets import WhichRun

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("evidence.review_score")

# %%
quiz("evidence.review_clip")

# %% [markdown]
# And one from lesson 11:

# %%
quiz("evidence.review_interval")

# %% [markdown]
# ## A run that reports success
#
# Three seeds of lesson 14's run without a price on distance (β = 0) were recorded, with a look at 512 held-out prompts
# every second iteration. Here is the first of them, as it reports of itself, and beside it what it cannot see.

# %%
runs, starts = recorded("rlhf")["runs"], recorded("rlhf")["starts"]
curves, start = runs["beta 0"]["0"]["curves"], starts["0"]["reference"]
show(
    figures.hacked_run(curves, baseline=start["success"]),
    alt="Three panels over 40 iterations. The score rises throughout. Explained variance is high and the "
    "share outside of the clip low. The share of right answers rises at first and then falls to 0.",
)


# %%
def of_each(name, number):
    return [number(run["curves"]) for run in runs[name].values()]


gained = of_each("beta 0", lambda run: run["score"][-1] - run["score"][0])
ended = of_each("beta 0", lambda run: run["success"][-1])
outside = of_each("beta 0", lambda run: max(run["fraction_outside"]))

# %% [markdown]
# On all three seeds:

# %%
claim(
    "evidence.score_and_task",
    "The score ends 2 spreads higher on 3 of 3 seeds, and at most 5 of 100 answers are right.",
    all(gain > 2 for gain in gained) and all(share <= 0.05 for share in ended),
    control=(
        "The score ends 2 spreads higher, and so at least half of the answers are right.",
        all(gain > 2 for gain in gained) and all(share >= 0.5 for share in ended),
    ),
)

# %% [markdown]
# The two dials that one looks at first do not give it away. The explained variance is high. And the share of tokens outside
# of the clip is largest where a run moves fast, and a healthy one may:

# %%
healthy = of_each("4x4, clip", lambda run: max(run["fraction_outside"]))
claim(
    "evidence.clip_is_no_alarm",
    "At its highest, the share outside of the clip is lower in each hacked run than in a run that learns.",
    max(outside) < min(healthy),
    control=(
        "At its highest it is twice as high in a hacked run.",
        min(outside) > 2 * max(healthy),
    ),
)

# %% [markdown]
# ### Which run is failing?
#
# Six runs of lesson 14 without a name, each beside a healthy one. Five panels show what a run shows while it trains. The
# sixth, right answers on held-out prompts, stays closed until you have said what is the matter. Take all six in turn, and
# notice which dial you trusted. (Where no widget can run, you see a picture, and it shows the answer.)

# %%
game = WhichRun(keep_as="evidence.which_run")
game

# %% [markdown]
# One dial parts the hacked runs from the healthy ones here: the KL to the reference. But it
# is no proof. A run may be far away because it has learned a lot. How far did lesson 14's run with the price of 0.1 go,
# and one that learned from the verifier itself, beside the reference's share of right answers?

# %%
far = [(run["kl_reference"][-1], run["success"][-1]) for run in (
    runs["beta 0.1"]["1"]["curves"], runs["4x4, clip"]["1"]["curves"],
)]  # fmt: skip
claim(
    "evidence.far_is_no_verdict",
    "Both end over 5 nats away; one has fewer right answers than before its training, the other more.",
    min(distance for distance, _ in far) > 5
    and far[0][1] < starts["1"]["reference"]["success"] < far[1][1],
    control=(
        "Both have fewer.",
        max(share for _, share in far) < starts["1"]["reference"]["success"],
    ),
)

# %% [markdown]
# ## What a count says
#
# So look at answers. You check ten, and none of them is wrong in a certain way. How often does it happen?
#
# The usual formula, p ± z·√(p(1 − p)/n), says: between 0 and 0. It puts the *observed* share under the root. Turn the
# question around: which true shares p would make this count no surprise?
#
# $$\left|\frac{k}{n} - p\right| \le z\sqrt{\frac{p(1-p)}{n}}$$
#
# Solved for p, this is **Wilson's interval**. What is its upper end for 0 of 10, at 95 % (z = 1.96)?

# %% tags=["nbval-ignore-output"]
predict("evidence.none_of_ten", None, unit="%")

# %%
none_of_ten = evidence.wilson(Count(0, 10), confidence=0.95)
compare("evidence.none_of_ten", round(100 * none_of_ten.high, 1), unit="%")

# %% [markdown]
# As a function:

# %%
show_source(evidence.wilson)

# %% [markdown]
# The interval never leaves what is possible, and it narrows with the square root of the number of answers:

# %%
checked = [Count(0, 10), Count(5, 10), Count(32, 64), Count(256, 512)]
rows = [
    (f"{count.hits} of {count.total}", count.share, evidence.wilson(count, confidence=0.95))
    for count in checked
]
show(
    figures.intervals(rows, unit="share", title="What a count does not contradict"),
    alt="Four intervals: 0 of 10 reaches from 0 to 0.28; 5 of 10 from 0.24 to 0.76; 32 of 64 from 0.38 to "
    "0.62; 256 of 512 from 0.46 to 0.54.",
)

# %% [markdown]
# An interval of 95 % must hold the truth in about 95 of 100 cases. For a share of 2 in 100 and 64 answers, add up the
# probability of every count whose interval does:

# %%
share, total = 0.02, 64
chance = torch.distributions.Binomial(total, torch.tensor(share, dtype=torch.float64))
weight = chance.log_prob(torch.arange(total + 1, dtype=torch.float64)).exp()


def held_by(interval):
    ends = [interval(hits) for hits in range(total + 1)]
    return sum(w for w, (low, high) in zip(weight, ends, strict=True) if low <= share <= high)


def usual(hits):
    p = hits / total
    half = 1.96 * sqrt(p * (1 - p) / total)
    return p - half, p + half


# %% [markdown]
# Both formulas, by the same sum:

# %%
wilsons = held_by(lambda hits: evidence.wilson(Count(hits, total), confidence=0.95))
claim(
    "evidence.wilson_covers",
    "At a share of 2 in 100 and 64 answers, Wilson's interval holds the truth in 92 to 98.5 of 100 cases.",
    0.92 < wilsons < 0.985,
    control=("So does p ± 1.96·√(p(1 − p)/n).", 0.92 < held_by(usual) < 0.985),
)

# %% [markdown]
# ## The same prompts
#
# Some prompts are hard, for both models. If each model answers prompts of its own, the luck of the draw is in the
# difference. If both answer the *same* prompts, it cancels. What remains are the prompts on which they differ: those
# that the candidate **gained**, and those that it **lost**.
#
# If training changed nothing but luck, each of these would have been gained or lost by the throw of a coin. How
# often is a coin as uneven as that? This is **McNemar's test**, and its p-value. Here are two models who agree on most of
# 500 prompts:

# %%
generator = torch.Generator().manual_seed(1)
old = torch.rand(500, generator=generator) < 0.6
new = old.clone()
new[torch.nonzero(~old).flatten()[:20]] = True  # gained
new[torch.nonzero(old).flatten()[:4]] = False  # lost
found = evidence.compare_on_same_prompts(old, new, confidence=0.95)
print(f"gained {found.gained}, lost {found.lost}, of {found.total}; p = {found.p_value:.4f}")

# %% [markdown]
# And by two intervals, as if the prompts had been others:

# %%
apart = [evidence.wilson(evidence.count_right(each), confidence=0.95) for each in (old, new)]
claim(
    "evidence.paired",
    "On the same prompts the gain is sure (p below 0.01), while the two intervals overlap.",
    found.p_value < 0.01 and apart[0].high > apart[1].low,
    control=(
        "The two intervals lie apart, so the test only repeats them.",
        apart[0].high < apart[1].low,
    ),
)

# %% [markdown]
# The p-value forgets the prompts on which they agree, so it says nothing about size. The interval of the
# difference does: it counts them all.

# %%
low, high = found.difference
print(f"the candidate solves {100 * low:.1f} to {100 * high:.1f} of 100 prompts more")

# %% [markdown]
# Add 4,500 prompts that both solve:

# %%
agreeing = torch.ones(4500, dtype=torch.bool)
diluted = evidence.compare_on_same_prompts(
    torch.cat([old, agreeing]), torch.cat([new, agreeing]), confidence=0.95
)
claim(
    "evidence.p_is_no_size",
    "4,500 further prompts that both solve leave p as it is, and make the gain ten times smaller.",
    diluted.p_value == found.p_value
    and abs(sum(diluted.difference) * 10 - sum(found.difference)) < 1e-12,
    control=("They make p ten times smaller, too.", diluted.p_value < found.p_value / 5),
)

# %% [markdown]
# ## More than one answer
#
# A user may ask twice. **pass@k** is the probability that at least one of k answers is right. You have n answers to a
# prompt, c of them right, n larger than k. Then average over all ways to take k of the n:
#
# $$\text{pass@}k = 1 - \binom{n-c}{k} \Big/ \binom{n}{k}$$

# %%
show_source(evidence.pass_at_k)

# %% [markdown]
# The plain way, 1 − (1 − c/n)ᵏ, puts each answer back before it takes the next. On average over what n draws may
# give, only one of the two is right. Take a true share of 0.3, 8 answers, and k = 4:

# %%
outcomes = torch.distributions.Binomial(8, torch.tensor(0.3, dtype=torch.float64))
counts = range(9)
probability = outcomes.log_prob(torch.arange(9, dtype=torch.float64)).exp().tolist()
truth = 1 - 0.7**4
without = sum(p * evidence.pass_at_k(c, 8, 4) for p, c in zip(probability, counts, strict=True))
with_return = sum(p * (1 - (1 - c / 8) ** 4) for p, c in zip(probability, counts, strict=True))
print(f"truth {truth:.4f}, without putting back {without:.4f}, with {with_return:.4f}")

# %%
claim(
    "evidence.pass_at_k",
    "Averaged over all that 8 draws may give, pass@4 is the truth to 10⁻¹².",
    abs(without - truth) < 1e-12,
    control=("So is 1 − (1 − c/n)⁴.", abs(with_return - truth) < 1e-12),
)

# %% [markdown]
# ## A judge who errs
#
# Where a verifier exists, you would train on it, and this lesson would end here. Usually there is none. There are people,
# or another model, who look at a few answers and are not always right. Say a judge's **accuracy** a is the
# probability that a label is correct, for right and for wrong answers alike. If p of the answers are right, it calls a share
#
# $$q = p\,a + (1-p)(1-a)$$
#
# of them right. At a = 0.85 and no right answer at all, what share does it call right?

# %% tags=["nbval-ignore-output"]
predict("evidence.nothing_right", None, unit="%")

# %%
compare("evidence.nothing_right", 100 * (1 - 0.85), unit="%")

# %% [markdown]
# Since a is known, q can be turned back into p: p̂ = (q̂ − (1 − a)) / (2a − 1). On average over everything that 64 labels
# may say, this is exact. The raw share is pulled towards one half:


# %%
def average(number, success, accuracy=0.85, labels=64):
    called = success * accuracy + (1 - success) * (1 - accuracy)
    chance = torch.distributions.Binomial(labels, torch.tensor(called, dtype=torch.float64))
    weights = chance.log_prob(torch.arange(labels + 1, dtype=torch.float64)).exp().tolist()
    return sum(w * number(Count(hits, labels)) for hits, w in enumerate(weights))


def mended(count):
    return evidence.estimate_success(count, accuracy=0.85).success


# %% [markdown]
# With no right answer at all, half of them, and nine of ten:

# %%
raw = [average(lambda count: count.share, p) for p in (0.0, 0.5, 0.9)]
turned_back = [round(average(mended, p), 9) + 0.0 for p in (0.0, 0.5, 0.9)]  # no −0
print("raw        ", " ".join(f"{number:.3f}" for number in raw))
print("turned back", " ".join(f"{number:.3f}" for number in turned_back))

# %%
claim(
    "evidence.judge_mended",
    "Turned back, 64 labels of a judge of accuracy 0.85 are right on average, to 10⁻¹².",
    all(abs(a - b) < 1e-12 for a, b in zip(turned_back, (0.0, 0.5, 0.9), strict=True)),
    control=(
        "Their raw share is.",
        all(abs(a - b) < 1e-12 for a, b in zip(raw, (0.0, 0.5, 0.9), strict=True)),
    ),
)

# %% [markdown]
# What errors cost is not the mean but the noise: the standard error grows by 1/(2a − 1). At a = 0.85 that is 1.43, so it
# takes 1.43² = 2.04 times as many labels as a judge who is never wrong.

# %%
num_labels = [16, 64, 256, 1024]
noise = {
    accuracy: [
        evidence.estimate_success(Count(count // 2, count), accuracy=accuracy).standard_error
        for count in num_labels
    ]
    for accuracy in (1.0, 0.85, 0.7, 0.6)
}
show(
    figures.labels_needed(num_labels, noise),
    alt="Standard error over the number of labels, falling in parallel lines: lowest for a judge of "
    "accuracy 1, a little higher at 0.85, more than twice as high at 0.7, five times at 0.6.",
)

# %%
claim(
    "evidence.price_of_errors",
    "64 labels at accuracy 0.7 are as noisy as fewer than 16 of a judge who is never wrong.",
    noise[0.7][1] > noise[1.0][0],
    control=("64 labels at 0.85 are as noisy as fewer than 16.", noise[0.85][1] > noise[1.0][0]),
)

# %% [markdown]
# How do you know a? Hold the judge against a verifier, or against people who took their time, on a few hundred answers. If it is
# stricter with right answers than with wrong ones, `calibrate` shows it, and one accuracy will not do.

# %%
answers = torch.rand(400, generator=generator) < 0.4
said = evidence.judge_labels(answers, accuracy=0.85, generator=generator)
said[answers & (torch.rand(400, generator=generator) < 0.3)] = False  # it overlooks right ones
seen = evidence.calibrate(said, answers)

# %%
claim(
    "evidence.one_accuracy_hides",
    "This judge finds fewer of the right answers than of the wrong ones; its accuracy lies between.",
    seen.sensitivity < seen.accuracy < seen.specificity,
    control=(
        "Its accuracy says how many of the right answers it finds.",
        seen.accuracy <= seen.sensitivity,
    ),
)

# %% [markdown]
# ## The best of many
#
# During a run you look again and again, and keep the best checkpoint so far. Suppose that nothing changes: every checkpoint is
# right in 65 of 100 answers. Twenty evaluations of 64 labels scatter around 0.65, and you keep the *largest*.
# How good does it look, on average?

# %% tags=["nbval-ignore-output"]
predict("evidence.best_of_twenty", None, unit="%")


# %%
def best_of(many, trials=2000):
    drawn = torch.Generator().manual_seed(many)
    called = 0.65 * 0.85 + 0.35 * 0.15
    hits = (torch.rand(trials, many + 1, 64, generator=drawn) < called).sum(dim=2)
    success = (hits / 64 - 0.15) / 0.7
    return success[:, :many].max(dim=1).values.mean().item(), success[:, many].mean().item()


evaluations = [1, 2, 5, 10, 20]
believed, fresh = zip(*(best_of(many) for many in evaluations), strict=True)
compare("evidence.best_of_twenty", round(100 * believed[-1]), unit="%")

# %% [markdown]
# What chose it, and what fresh labels say of the one that was chosen:

# %%
show(
    figures.best_of_many(evaluations, believed, fresh, truth=0.65),
    alt="Judged success over the number of evaluations of which the best is kept. The labels that chose "
    "it climb from 0.65 to about 0.8. Fresh labels stay at 0.65, the truth.",
)

# %%
claim(
    "evidence.best_of_many",
    "With 20 evaluations the best looks more than 0.1 too good; fresh labels of it are right within 0.01.",
    believed[-1] > 0.75 and abs(fresh[-1] - 0.65) < 0.01,
    control=(
        "Fresh labels of it are too good as well, since it was the best.",
        fresh[-1] > 0.75,
    ),
)

# %% [markdown]
# Whoever compares the next checkpoint with such a best sees a loss where there is none.
#
# ## A gate
#
# Now put it together. A **gate** watches a run. At each evaluation it sees the score and 64 labels of a judge of accuracy
# 0.85, nothing else of the task. It stops the run and rolls back to the best checkpoint
#
# - if the score rises while the judged success falls below that of the best checkpoint, by two standard errors;
# - if it falls below that of the unmodified model, in the same way;
# - at once, if a number that needs no judge leaves its limits: here, more than 20 of 100 answers without an end.
#
# The first two rest on noise, and twenty evaluations give noise twenty chances. So the gate looks twice. A checkpoint
# that looks best is labelled again before it is believed, and before a run is stopped, both checkpoints get
# fresh labels. Only a loss that is seen again counts.

# %%
show_source(evidence.Gate.update)

# %% [markdown]
# The recorded runs hold the *true* success at each evaluation. So they can be **replayed**: each replay draws other labels, as
# many as you like. First two hundred replays of each of the three runs without a price, by labels alone, without the limit:


# %%
def as_recorded(name, seed):
    seen, start = runs[name][seed]["curves"], starts[seed]["reference"]
    columns = seen["iteration"], seen["score"], seen["success"], {"no_eos": seen["no_eos"]}
    return RecordedRun(*columns, start["score"], start["success"])


def replays(name, config, count=200, gate=evidence.Gate):
    drawn = torch.Generator().manual_seed(17)
    tools = {"baseline_labels": 256, "generator": drawn, "gate": gate}
    seen = [as_recorded(name, seed) for seed in runs[name]]
    return [evidence.replay(run, config, **tools) for run in seen for _ in range(count)]


# %% [markdown]
# And as many of each of the three with β = 0.3, which are healthy:

# %%
judge_only = GateConfig(limits={})
watched = {name: replays(name, judge_only) for name in ("beta 0", "beta 0.3")}
caught = [each for each in watched["beta 0"] if each is not None]
false_alarms = Count(sum(each is not None for each in watched["beta 0.3"]), 600)
print(f"hacked: {len(caught)} of 600 stopped; healthy: {false_alarms.hits} of 600")

# %%
false_rate = evidence.wilson(false_alarms, confidence=0.95)
claim(
    "evidence.gate",
    "The gate stops every hacked replay; its false alarms are surely below 6 of 100 healthy runs.",
    len(caught) == 600 and false_rate.high < 0.06,
    control=(
        "It never stops a healthy run.",
        len(caught) == 600 and false_alarms.hits == 0,
    ),
)


# %% [markdown]
# When does it act? Here is where the replays of the first seed were stopped:


# %%
def stopped_at(name):
    found = watched[name][:200]
    return [each and each.iteration for each in found]


paths = {
    words: (runs[name]["0"]["curves"]["iteration"], runs[name]["0"]["curves"]["success"])
    for words, name in (("no price", "beta 0"), ("β = 0.3", "beta 0.3"))
}
show(
    figures.stops(paths, {"no price": stopped_at("beta 0"), "β = 0.3": stopped_at("beta 0.3")}),
    alt="Two panels with the share of right answers over iterations. Without a price it rises, then "
    "falls to 0, and bars show that replays were stopped during the fall. At 0.3 it stays high, with hardly a bar.",
)

# %% [markdown]
# What is rolled back to was chosen by noisy labels. Its true success is known here:


# %%
def success_at(name, seed, iteration):
    seen = runs[name][seed]["curves"]
    if iteration == 0:
        return starts[seed]["reference"]["success"]
    return seen["success"][seen["iteration"].index(iteration)]


# %%
kept = [
    success_at("beta 0", str(place // 200), each.best)
    for place, each in enumerate(watched["beta 0"])
]
mean_kept, mean_end = sum(kept) / len(kept), sum(ended) / len(ended)
mean_start = sum(start["reference"]["success"] for start in starts.values()) / len(starts)

# %% [markdown]
# Averaged over all 600 replays:

# %%
claim(
    "evidence.rolled_back",
    "What the gate rolls back to is on average better than the unmodified model by more than 0.05.",
    mean_kept > mean_start + 0.05,
    control=("So is what the run would have ended with.", mean_end > mean_start + 0.05),
)

# %% [markdown]
# Is the second look worth its labels? A gate without it keeps the labels that chose the best, and stops at the first loss:


# %%
class OneLook(evidence.Gate):
    """Takes the labels of an evaluation for the fresh ones."""

    def update(self, evaluation, relabel):
        self.kept = {**getattr(self, "kept", {}), evaluation.iteration: evaluation.labels}
        return super().update(evaluation, lambda step: self.kept.get(step) or relabel(step))


once = replays("beta 0.3", judge_only, gate=OneLook)
one_look = Count(sum(each is not None for each in once), 600)
print(f"healthy runs stopped by one look: {one_look.hits} of 600")

# %%
claim(
    "evidence.second_look",
    "One look stops at least three times as many healthy runs, and their intervals lie apart.",
    one_look.hits > 3 * false_alarms.hits
    and evidence.wilson(one_look, confidence=0.95).low > false_rate.high,
    control=("One look stops no more of them.", one_look.hits <= false_alarms.hits),
)

# %% [markdown]
# ## The report
#
# The run is over, a checkpoint is chosen. It was chosen on the gate's prompts, so its success *there* is too high once more. The
# language of lesson 13 keeps a second held-out set, the split "release", which nothing has seen.
#
# Here is a candidate of your own: ten iterations on the verifier, from the reference. Then both models give four
# answers to each of 400 prompts of the release split.

# %% tags=["nbval-ignore-output"]
scale = choose_scale()  # a GPU if there is one, and then more answers at a time
reference = cached_reference(seed=0, device=scale.device)
policy, critic = copy.deepcopy(reference), TokenCritic(reference)
config = RLHFConfig(
    beta=0.0, num_iterations=10, learning_rate=5e-4, num_prompts=scale.num_responses
)


def verifier(prompts, responses):
    return is_correct(prompts, responses.tokens, responses.mask).float()


history = train_tokens(config, policy=policy, reference=reference, reward=verifier, critic=critic)
prompts = draw_prompts(400, generator=generator, split="release").to(scale.device)

# %% [markdown]
# A model's answers, as the report wants them:


# %%
def asked(model, samples=4):
    draw = torch.Generator(scale.device).manual_seed(3)
    seen = [
        generate(model, prompts, max_new_tokens=10, temperature=1.0, generator=draw)
        for _ in range(samples)
    ]
    right = torch.stack([verifier(prompts, each) > 0 for each in seen], dim=1).cpu()
    tokens = torch.stack([each.tokens.masked_fill(~each.mask, 0) for each in seen], dim=1).cpu()
    facts = evaluate_answers(
        model, prompts, config=config, generator=draw, reference=reference, reward=verifier
    )
    named = {name: facts[name] for name in ("score", "kl_reference", "length", "no_eos")}
    return evidence.Answered(right, tokens, **named)


before, after = asked(reference), asked(policy)

# %% [markdown]
# What was used, and the parts of the prompts that shall be looked at one by one:

# %%
versions = {
    "actor": "lesson 17, iteration 10",
    "rollout": "lesson 17, iteration 9",
    "reference": "reference 0",
    "reward": "verifier",
    "tokenizer_sha256": evidence.vocabulary_sha256(VOCABULARY),
    "seed": 0,
}
by_length = {
    f"{count} digits": torch.tensor([len(each) == count for each in prompts.digits])
    for count in (3, 4, 5)
}

# %% [markdown]
# The report:

# %% tags=["nbval-ignore-output"]
seen_before = draw_prompts(400, generator=generator, split="gate").digits
told = {"prompts": prompts.digits, "used_before": seen_before, "slices": by_length}
report = evidence.release_report(before, after, versions=evidence.Versions(**versions), **told)
print(report.to_markdown())

# %%
claim(
    "evidence.report_ships",
    "The candidate gains on unseen prompts, surely, and no length of prompt surely loses: ship.",
    report.verdict == "ship" and report.comparison.difference.low > 0.1,
    control=(
        "The difference might be 0, so the verdict is open.",
        report.comparison.difference.low <= 0,
    ),
)

# %% [markdown]
# Look at the last rows of its table. The candidate gives fewer *different* answers to a prompt, and so a second, third and
# fourth try help it less:


# %%
def of_tries(answers, k):
    return evidence.mean_pass_at_k(answers.right, k)


def gain(k):
    return of_tries(after, k) - of_tries(before, k)


# %%
claim(
    "evidence.sharper",
    "The candidate gains less in four tries than in one, and gives fewer different answers.",
    gain(4) < gain(1)
    and evidence.distinct_share(after.answers) < evidence.distinct_share(before.answers),
    control=(
        "Four tries gain at least as much as one, for each try has become better.",
        gain(4) >= gain(1),
    ),
)

# %% [markdown]
# Part of what training does is to say more often what the reference said sometimes. Whoever reports pass@1 alone does
# not see it.
#
# Now leave something out. Six things must be named: which **actor** it is, which **rollout** policy made its data, from which
# **reference** distance was measured, which **reward**, which **tokenizer**, which **seed**. And prompts that were used before are no
# held-out prompts:


# %%
def refused(make):
    try:
        make()
    except ValueError as error:
        return str(error).split(";")[0]
    return None


def without_reward():
    return evidence.Versions(**{**versions, "reward": ""})


def on_the_gates_prompts():
    given = {**told, "used_before": prompts.digits[:5]}
    return evidence.release_report(before, after, versions=evidence.Versions(**versions), **given)


reasons = [refused(make) for make in (without_reward, on_the_gates_prompts)]
print(*reasons, sep="\n")

# %%
claim(
    "evidence.report_refused",
    "Without the version of the reward there is no report, nor on prompts that chose the checkpoint.",
    all(reasons),
    control=(
        "A report on prompts that were used before is written, with a warning.",
        reasons[1] is None,
    ),
)

# %% [markdown]
# ## Two models, two temperatures
#
# A gain can be had without training anything. Draw the reference's answers at temperature 0.3 in place of 1, so that its
# most likely tokens win more often, and compare:

# %% tags=["nbval-ignore-output"]
draw = torch.Generator(scale.device).manual_seed(4)
cold = generate(reference, prompts, max_new_tokens=10, temperature=0.3, generator=draw)
right_when_cold = (verifier(prompts, cold) > 0).cpu()
colder = evidence.compare_on_same_prompts(before.right[:, 0], right_when_cold, confidence=0.95)

# %%
claim(
    "evidence.temperature",
    "The reference at temperature 0.3 surely beats itself at 1, although not one weight has changed.",
    colder.difference.low > 0,
    control=("It surely loses, for it dares less.", colder.difference.high < 0),
)

# %% [markdown]
# So a comparison holds everything but the weights alike: prompts, temperature, length limit, verifier. A report that does
# not say so compares two settings, not two models.
#
# ## Reading the real thing
#
# verl trains models of many billions of parameters on many machines. Its `fit()` is some four hundred lines, of which each
# part is wrapped in a timer with a name. These are the timers in their order. Which of your four stages is each?

# %%
for stage in ("collect", "score", "squeeze", "renew"):
    timers = [name for name in evidence.STAGES["verl"] if evidence.stage_of(name, "verl") == stage]
    print(f"{stage:8}", ", ".join(timers))

# %% [markdown]
# `gen` lets the policy answer. `reward`, `old_log_prob`, `ref` and `values` ask the four models, and `adv` puts what they say
# together. The optimiser steps are `update_critic` and `update_actor`, and `update_weights` sends the new weights to the engine that
# answers. One thing is new: the log-probabilities are computed a *second* time in `old_log_prob`, for the engine that drew
# the answers rounds differently from the one that learns.
#
# The settings have names there, too. Here is your candidate's run, with 128 prompts an iteration, in verl's words, and what
# these words cannot say:

# %%
config = replace(config, num_prompts=128)  # on a GPU it had more
there = evidence.to_verl(config)
for name in ("algorithm.lam", "actor_rollout_ref.actor.ppo_mini_batch_size", "critic.optim.lr"):
    print(name, "=", there.settings[name])
print(*there.lost, sep="\n")

# %%
back, _ = evidence.from_verl(there.settings)
claim(
    "evidence.verl_and_back",
    "In verl's words and back again it is the same run.",
    replace(back, seed=config.seed) == config,
    control=(
        "It is the same run if ppo_mini_batch_size is read as a number of minibatches.",
        there.settings["actor_rollout_ref.actor.ppo_mini_batch_size"] == config.num_minibatches,
    ),
)

# %% [markdown]
# TRL's PPO trainer has no timers. The steps of its loop, in the same four stages:

# %%
for stage in ("collect", "score", "squeeze", "renew"):
    steps = [name for name in evidence.STAGES["TRL"] if evidence.stage_of(name, "TRL") == stage]
    print(f"{stage:8}", ", ".join(steps))

# %% [markdown]
# In its words the same run loses more: TRL has one learning rate for both networks, and no groups.

# %%
grouped = replace(config, group_size=4, critic_learning_rate=1e-3)
print(*evidence.to_trl(grouped).lost, sep="\n")

# %%
claim(
    "evidence.trl_loses",
    "TRL's PPO has no word for the group size, nor for a learning rate of the critic's own.",
    not {"group_size", "critic_learning_rate"} & set(evidence.to_trl(grouped).settings)
    and evidence.from_trl(evidence.to_trl(grouped).settings)[0].group_size == 1,
    control=(
        "It carries both over.",
        evidence.from_trl(evidence.to_trl(grouped).settings)[0] == grouped,
    ),
)

# %% [markdown]
# ## What breaks it
#
# - **The score as evidence.** It is what was optimised. A gain in it is what training does, whatever became of the task.
# - **Standard error at the observed share.** It is 0 at none of n.
# - **Two models on two sets of prompts**, or at two temperatures, or with two limits of length.
# - **The labels that chose.** The best of many, the checkpoint that a gate kept, the prompts that a person looked at first.
# - **One accuracy for a judge who errs on one side.** Its errors then cancel for one model and not for the other.
# - **A gate that asks the verifier.** Train on it instead.
# - **A mean that hides a slice.** Long prompts may lose while the mean gains.
# - **No versions.** Nobody can say afterwards what was compared with what.
#
# ## Exercises
#
# [Six exercises](../exercises/17_evidence.ipynb) wait for you: the interval of a count, several tries, a judge who errs, the same
# prompts twice, a gate with a bug, and numbers by hand.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("evidence.none_of_ten")

# %%
quiz("evidence.same_prompts")

# %% [markdown]
# On choosing, and on judging:

# %%
quiz("evidence.fresh_labels")

# %%
quiz("evidence.verifier")

# %% [markdown]
# And on the report:

# %%
quiz("evidence.second_set")

# %% [markdown]
# ## What you have now
#
# - No number of the training says whether the task is done. Held-out answers do, with an interval.
# - Two models are compared on the same prompts, under the same settings; only where they differ tells them apart.
# - A judge who errs can be turned back on average. Its errors cost labels.
# - What was chosen by noisy labels is labelled again, before it is believed and before it is thrown away.
# - A report is made on prompts that chose nothing, and names every version.
#
# The module behind this page: [evidence](../ppo_lessons/evidence/__init__.py). This was the last lesson. The staircase that began
# with one return pushing one probability ends here, with the question that each run ends on: is it better, and how do you know?
