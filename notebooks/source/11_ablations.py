# %% [markdown]
# # Ablations
#
# **Which parts matter?**
#
# PPO has many parts, and each of them has a champion who says that nothing works without it. To find out, take a
# part away and train again: an **ablation**. That sounds like one line of code. Then you train the same thing twice with
# another seed, and the two runs differ more than your ablation did.
#
# So this lesson is about two things. First: what may you conclude from a few runs? You build the tools for that, and
# test the tools. Then you use them on PPO, on a table of twenty settings with 64 seeds each, and on a second task. Some
# parts turn out to matter. Of most, the table cannot tell, and it says so. And one thing PPO does not do at all,
# whatever you set.
#
# The words that you need. A **run** is one training from one **seed**, which draws the first weights, the games
# and the minibatches. A **setting** is everything else: the numbers in `PPOConfig`, the functions in `Parts`. The
# **score** of a run is its mean return over the last tenth of its steps.

# %% tags=["nbval-ignore-output"]
from dataclasses import replace

import torch

from ppo_lessons import budget, claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.ablations import Setting, Study, StudyResult, merge_studies, run_study
from ppo_lessons.ablations import statistics as stats
from ppo_lessons.envs import BatchedEnvs, MountainCar
from ppo_lessons.figures import ablations as figures
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.training_loop import Parts, PPOConfig
from ppo_lessons.widgets import SeedCount

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("ablations.review_clip")

# %%
quiz("ablations.review_reuse")

# %% [markdown]
# And one on seeds:

# %%
quiz("ablations.review_seed")

# %% [markdown]
# ## One setting, many seeds
#
# CartPole, 16 environments, large steps, and 12,288 environment steps: so few that no run is done. One setting, clip 0.2, was run
# with 64 seeds. Nothing differs between the runs but the seed. The largest possible score is 500. How far is the best
# run from the worst?

# %%
predict("ablations.best_to_worst", None, unit="reward")

# %%
six = recorded("seed_count")
scores = {name: torch.tensor(runs).double() for name, runs in six["scores"].items()}
clipped = scores["clip 0.2"]
compare("ablations.best_to_worst", round((clipped.max() - clipped.min()).item()), unit="reward")

# %% [markdown]
# Watch some of them learn. This cell trains: the same setting, a few seeds at once, in one batched run.

# %% tags=["nbval-ignore-output"]
short = PPOConfig(env="CartPole", num_envs=16, learning_rate=5e-3, total_steps=budget(12_288, 4096))
alike = Study(
    name="alike", question="How far apart are seeds?", expectation="Far.",
    settings=[Setting("clip 0.2", short)], seeds=range(budget(16, 2)),
)  # fmt: skip
result = run_study(alike, progress=False)

# %%
show(
    figures.runs_of_one_setting(*result.curves("clip 0.2")),
    alt="Learning curves of one setting, a thin line for each seed; the best and the worst are far "
    "apart. Beside them the scores in order, with their mean.",
)

# %% [markdown]
# Now the trap. The same study ran without the clip, too, and that is far worse on the whole. But whoever runs each
# once may draw a bad seed here and a good one there:

# %%
bare = scores["no clip"]
claim(
    "ablations.one_seed_lies",
    "The clip's mean is over 50 higher, and some run without a clip beats some run with it by 100.",
    clipped.mean() > bare.mean() + 50 and bare.max() > clipped.min() + 100,
    control=("Every run with the clip beats every run without it.", clipped.min() > bare.max()),
)

# %% [markdown]
# How likely is that? Let every run of the one meet every run of the other and count who wins. Half a point for a tie. The
# share is the **probability of improvement**: of one run of each, how often is the first better?

# %%
show_source(stats.probability_of_improvement)

# %%
wins = stats.probability_of_improvement(clipped, bare)
near = stats.probability_of_improvement(clipped, scores["clip 0.3"])
claim(
    "ablations.improvement",
    "One run each names the better of clip and no clip in over 3 of 4 cases, and not in all.",
    0.75 < wins < 1.0,
    control=("A better setting wins every time.", wins == 1.0),
)

# %% [markdown]
# ## A number for many runs
#
# What shall stand in the table for 64 runs? The **mean** takes all of them, also a run that broke down for a
# reason of its own. The **median**, the run in the middle, is moved by none of them, but looks at one run of
# all those you paid for. Between the two lies the **interquartile mean**, IQM: sort, leave out the lowest quarter and the
# highest quarter, average what is left.

# %%
show_source(stats.interquartile_mean)

# %% [markdown]
# Four sets of eight runs. In the second one run has broken down, in the third two, in the fourth three:

# %%
good = torch.tensor([455.0, 462, 470, 478, 484, 490, 495, 500])
eight = {"all is well": good}
for failed in (1, 2, 3):
    eight[f"{failed} broke down"] = good.clone().index_fill_(0, torch.arange(failed), 20.0)
middles = {
    name: [runs.mean().item(), stats.interquartile_mean(runs).item(), runs.quantile(0.5).item()]
    for name, runs in eight.items()
}

# %%
show(
    figures.three_middles(eight, middles),
    alt="Four rows of eight scores, with none, one, two and three broken runs. The mean moves left with "
    "each; the interquartile mean stays until a third one breaks; the median stays.",
)

# %% [markdown]
# The IQM does not see the first two at all. That is its strength, and its blind spot:

# %%
means, iqms, medians = zip(*middles.values(), strict=True)
claim(
    "ablations.middle_half",
    "Two broken runs of eight take over 100 from the mean, nothing from the IQM; a third takes over 90.",
    means[0] - means[2] > 100 and iqms[0] == iqms[2] and iqms[2] - iqms[3] > 90,
    control=("The first broken run moves the IQM, too.", iqms[1] != iqms[0]),
)

# %% [markdown]
# So never show it alone. Look at the runs, or at the share of them that end above each threshold, a **performance
# profile**:

# %%
levels = torch.arange(0.0, 500.0, 5.0).double()
profiles = {
    name: stats.performance_profile(scores[name], levels)
    for name in ("clip 0.2", "no clip", "λ = 1")
}
show(
    figures.profiles(levels, profiles, title="How many runs end above τ?"),
    alt="For three settings, the share of runs above each threshold, from 1 down to 0. The line of no clip "
    "falls earlier than the others.",
)

# %% [markdown]
# Why not take the median, then? Because it wastes runs. For scores that spread like a bell, 32 seeds with a median tell as much
# as some 20 with a mean. Draw 20,000 such studies and see how much each of the three numbers jumps about:

# %%
draw = torch.Generator().manual_seed(1)
bells = torch.randn(20_000, 32, generator=draw)
jumps = [
    middle.std().item()
    for middle in (bells.mean(-1), stats.interquartile_mean(bells), bells.quantile(0.5, dim=-1))
]
claim(
    "ablations.between_mean_and_median",
    "On bells the IQM jumps more than the mean, by under a sixth, and the median by over a sixth.",
    jumps[0] < jumps[1] < 7 / 6 * jumps[0] < jumps[2],
    control=("The median is the steadiest of the three.", jumps[2] < min(jumps[:2])),
)

# %% [markdown]
# ## Where would it have fallen?
#
# You have 64 runs. Run the study again, and you have 64 others, and another IQM. How far away? There is no money for
# a second study, let alone a thousand. The **bootstrap** takes the runs that you have for all runs that might have been:
# it draws 64 from your 64, with replacement, so that some come twice and some not at all. That is a **redraw**. A
# thousand redraws have a thousand IQMs, and the middle 95 % of these is the **interval**. If there are several tasks, each is redrawn by
# itself, **stratified**.

# %%
show_source(stats.stratified_bootstrap)

# %% [markdown]
# Is that right? With four runs you can write down all 256 redraws, and need no chance. The mean of 0, 1, 3 and 10:

# %%
four = torch.tensor([0.0, 1, 3, 10]).double()
every = torch.cartesian_prod(*[four] * 4).mean(dim=-1)
ends = torch.tensor([0.1, 0.9]).double()
settings = {"resamples": 20_000, "confidence": 0.8, "generator": draw.manual_seed(2)}
drawn = torch.tensor(stats.stratified_bootstrap(four, lambda runs: runs.mean(-1), **settings))

# %% [markdown]
# For a control, the quantiles of the runs themselves, which say where a *run* falls and not where a mean does:

# %%
claim(
    "ablations.all_redraws",
    "20,000 redraws give the interval that all 256 redraws give: 80 % lie from 1 to 6.",
    torch.equal(drawn, every.quantile(ends)) and drawn.tolist() == [1.0, 6.0],
    control=(
        "So do the quantiles of the four runs.",
        torch.equal(four.quantile(ends), every.quantile(ends)),
    ),
)

# %% [markdown]
# And why task by task? With an easy task and a hard one, throwing all runs together would let chance decide how many easy runs a
# redraw holds. You did not leave that to chance: each task has four.

# %%
easy, hard = torch.tensor([96.0, 97, 98, 99]), torch.tensor([1.0, 2, 3, 4])
by_task, thrown = (
    stats.stratified_bootstrap(runs, lambda runs: runs.mean(-1), **settings)
    for runs in ([easy, hard], torch.cat([easy, hard]))
)
claim(
    "ablations.stratified",
    "Redrawn task by task, the mean of both tasks varies by under 2; thrown together, by over 30.",
    by_task.high - by_task.low < 2 and thrown.high - thrown.low > 30,
    control=("It varies as much either way.", thrown.high - thrown.low < 2),
)

# %% [markdown]
# ### Does the interval keep its promise?
#
# "95 %" promises something about many studies: of a hundred intervals, 95 contain the number that you would find with
# endless seeds. Nobody can check that in life. Here you can: draw the runs from a distribution you know. Say that the scores of a
# setting lie around 480, and that a quarter of its runs breaks down. How many of a hundred intervals
# contain the true mean, if each study has three seeds?

# %%
predict("ablations.coverage_of_three", None, unit="of 100")


# %%
def scores_of(studies, seeds):
    fine = 480 + 20 * torch.randn(studies, seeds, generator=draw).clamp(-2, 1)
    broken = 20 + 380 * torch.rand(studies, seeds, generator=draw)
    return torch.where(torch.rand(studies, seeds, generator=draw) < 0.25, broken, fine)


def kept_promises(seeds, statistic, truth):
    runs = scores_of(600, seeds)
    places = torch.randint(seeds, (300, 600, seeds), generator=draw)
    found = statistic(runs.expand(300, -1, -1).gather(-1, places))
    low, high = torch.quantile(found, torch.tensor([0.025, 0.975]), dim=0)
    return ((low <= truth) & (truth <= high)).double().mean().item(), (high - low).mean().item()


# %% [markdown]
# The truth is that of a million runs:

# %%
endless = scores_of(1, 1_000_000)[0]
counts, kept, widths = (3, 4, 6, 8, 16, 32), {"mean": [], "IQM": []}, []
for seeds in counts:
    for name, statistic in (
        ("mean", lambda runs: runs.mean(-1)),
        ("IQM", stats.interquartile_mean),
    ):
        share, width = kept_promises(seeds, statistic, statistic(endless))
        kept[name].append(share)
    widths.append(width)
compare("ablations.coverage_of_three", round(100 * kept["mean"][0]), unit="of 100")

# %%
show(
    figures.coverage(counts, kept, promised=0.95),
    alt="Share of intervals that contain the truth, over the number of seeds, for mean and IQM. It is far "
    "below the promised 0.95 with three seeds and close to it with 32.",
)

# %% [markdown]
# With three seeds, the interval of the mean is right little more often than a coin. No wonder: in four studies of ten none of
# the three runs broke down, so no redraw has seen that such a thing exists.

# %%
claim(
    "ablations.promises",
    "Of the intervals that promise 95 %, under 65 % hold with 3 seeds and over 88 % with 32.",
    kept["mean"][0] < 0.65 and kept["mean"][-1] > 0.88 and kept["IQM"][-1] > 0.88,
    control=(
        "With three seeds over 88 % hold, since the interval is wider.",
        kept["mean"][0] > 0.88,
    ),
)

# %% [markdown]
# From there on an interval shrinks as every mean does, with the root of the number of seeds. Four times the seeds, half
# the width:

# %%
claim(
    "ablations.root_of_seeds",
    "From 8 to 32 seeds the interval of the IQM shrinks to between 0.3 and 0.65 of its width.",
    0.3 < widths[5] / widths[3] < 0.65,
    control=("Four times the seeds make it a quarter as wide.", widths[5] / widths[3] < 0.3),
)

# %% [markdown]
# ## Apart, or not
#
# Two settings, two intervals. If all of one lies above all of the other, call them **apart**. If they overlap or touch, the
# study is **inconclusive**. That is an answer. It says that these runs cannot tell, and it is what most
# ablations would say if they were asked.

# %%
print("Written down before:", six["expectation"])
usual = {"resamples": 2000, "confidence": 0.95, "generator": draw.manual_seed(3)}
table = stats.judge_settings(scores, base="clip 0.2", **usual)
show(
    figures.comparison(table, title="Six settings with 64 seeds: three lie below the base"),
    alt="Six settings below each other, with all runs, the IQM and its interval. The base is shaded; "
    "intervals outside of the shade are called above or below, the others inconclusive.",
)

# %%
verdicts = {row.name: row.verdict for row in table}
print(verdicts)
claim(
    "ablations.no_clip_is_below",
    "With batches used hard, no clip lies below clip 0.2 with its whole interval.",
    verdicts["no clip"] == "below",
    control=("So does clip 0.3.", verdicts["clip 0.3"] == "below"),
)

# %% [markdown]
# The expectation was half right. No clip is worst. But clip 0.1 and λ = 1 are told apart, too: with so few steps, whoever takes
# smaller ones gets less far. A sentence that was written down beforehand can be wrong; that is what it is for.
#
# Intervals that overlap do not prove that two settings are the same, and this rule is careful. An error in one direction here
# seldom meets an error in the other direction there. Redraw *both* settings, subtract, and look at where the difference falls:

# %%
first = torch.tensor([10.0, 11, 12, 13, 14, 15, 16, 17]).double()
second = first - 3.5
pair = [
    stats.stratified_bootstrap(runs, stats.interquartile_mean, **usual) for runs in (first, second)
]
gap = stats.bootstrap_difference(first, second, stats.interquartile_mean, **usual)

# %%
claim(
    "ablations.difference",
    "Two intervals overlap, and the interval of the difference leaves out 0.",
    stats.apart(*pair) == "inconclusive" and gap.low > 0,
    control=("Where intervals overlap, the difference may be 0.", gap.low <= 0 <= gap.high),
)

# %% [markdown]
# ### Twenty comparisons
#
# Now be more industrious: compare 20 changes with the base, each at 95 %. Suppose that none of them makes any difference. With which
# probability is at least one of them called apart, if each has a chance of 5 % and they are independent?

# %%
predict("ablations.one_of_twenty", None, unit="%")

# %%
by_luck = 1 - 0.95**20
compare("ablations.one_of_twenty", round(100 * by_luck, 1), unit="%")

# %% [markdown]
# Whoever tries twenty things and reports the one that worked, reports luck in two cases of three. Two cures: say how many
# things you tried, and run what looks good again with new seeds.
#
# ### Looking until it works
#
# A second way to be fooled costs even less. Start with three seeds. Not apart yet? Add one, look again. Stop when they are. Here two settings that *are*
# the same are compared 4,000 times: looked at once with 32 seeds, or after each seed from 3 to 32 until they seem to differ.

# %%
one, two = torch.randn(2, 4000, 32, generator=draw.manual_seed(4))
looks = []
for seeds in range(3, 33):
    mine, other = one[:, :seeds], two[:, :seeds]
    error = ((mine.var(-1) + other.var(-1)) / seeds).sqrt()
    looks.append((mine.mean(-1) - other.mean(-1)).abs() > 1.96 * error)
once, ever = looks[-1].double().mean(), torch.stack(looks).any(dim=0).double().mean()

# %%
claim(
    "ablations.looking_again",
    "Looked at once, under 8 % are called different; whoever looks after each seed finds over 25 %.",
    once < 0.08 and ever > 0.25,
    control=("Looking more often does no harm, since the last look decides.", ever < 0.08),
)

# %% [markdown]
# So the number of seeds is fixed before the first run. So is the sentence that you expect: whoever writes it down afterwards
# has always expected what came out. In this course a `Study` cannot be made without its expectation.
#
# ## How many seeds? With your own hands
#
# The six settings again. Choose two, choose how many seeds you can pay for, look at the runs, and say what their intervals
# will tell. Then reveal, and take other seeds with the second slider: does the verdict stay? At last choose the same
# setting on both sides.

# %%
board = SeedCount(keep_as="ablations.what_three_seeds_say")
board

# %% [markdown]
# Its numbers are those of the package:

# %%
mine, other = (torch.tensor(runs).double() for runs in (board.first_scores, board.second_scores))
redrawn = {"resamples": 1000, "confidence": 0.95, "generator": draw.manual_seed(board.draw)}
interval = stats.stratified_bootstrap(mine, stats.interquartile_mean, **redrawn)
assert max(abs(a - b) for a, b in zip(interval, board.first_interval, strict=True)) < 1e-3
assert abs(stats.probability_of_improvement(mine, other) - board.improvement) < 1e-12
print("the widget and the package agree")

# %% [markdown]
# ## Where the clip matters
#
# Now PPO. The first question is the oldest: what does the clip buy? [Lesson 04](04_clip.ipynb) found that it changes no gradient as
# long as ratios stay inside. So where steps are small and batches are used once it should be idle. Where they are large and batches
# are used hard, it should be all that holds. Draw a **map** of it: every learning rate with every
# number of epochs K, once with the clip and once without.
#
# It was run once and recorded, 16 seeds and 40,960 environment steps for each cell. This was written down before it
# ran:

# %%
studies = recorded("ablations")
print(studies["command"])
map_ = StudyResult.from_json(studies["studies"]["map"])
print(map_.expectation)

# %% [markdown]
# In how many of the nine cells will the clip's interval lie wholly above the other one?

# %%
predict("ablations.cells_where_it_matters", None, unit="cells")

# %%
cells = {
    (
        "policy_loss" in row["parts"],
        row["config"]["num_epochs"],
        row["config"]["learning_rate"],
    ): row
    for row in map_.rows
}
epochs, rates = (sorted({key[axis] for key in cells}) for axis in (1, 2))


def of_cells(measure):
    return [
        [[measure(cells[bare, k, rate]["name"]) for rate in rates] for k in epochs]
        for bare in (False, True)
    ]


# %% [markdown]
# An interval for each cell, and a verdict for each pair:


# %%
def interval_of(name):
    return stats.stratified_bootstrap(map_.scores(name), stats.interquartile_mean, **usual)


iqms = of_cells(lambda name: stats.interquartile_mean(map_.scores(name)).item())
verdicts = [
    [stats.apart(*pair) for pair in zip(*rows, strict=True)]
    for rows in zip(*of_cells(interval_of), strict=True)
]
said = [verdict for row in verdicts for verdict in row]
compare("ablations.cells_where_it_matters", said.count("above"), unit="cells")

# %%
show(
    figures.clip_map(rates, epochs, *iqms, verdicts),
    alt="Three maps over learning rate and epochs: the IQM with the clip, without it, and where the clip is "
    "above. It is above in the corner of large steps and many epochs, and open elsewhere.",
)

# %% [markdown]
# It came out as expected, cell by cell. Three cells in one corner speak for the clip, and the rest of the map is
# silent. How can that be, if the clip is the heart of PPO? Ask how many samples it touched: the share whose gradient
# it removed, in the gentle corner (bottom left) and in the hard one (top right).

# %%
touched = of_cells(lambda name: map_.metric(name, "fraction_zero_gradient").mean().item())[0]
gentle, hard = touched[0][0], touched[-1][-1]
claim(
    "ablations.where_the_clip_matters",
    "In the hard corner of the map the clip is above, in the gentle corner the map cannot tell.",
    verdicts[-1][-1] == "above" and verdicts[0][0] == "inconclusive",
    control=("The clip is above in every cell.", set(said) == {"above"}),
)

# %%
claim(
    "ablations.idle",
    "In the gentle corner the clip removes no gradient at all, in the hard one that of over 5 %.",
    gentle == 0 and hard > 0.05,
    control=("It removes as much in the gentle corner as in the hard one.", gentle > 0.5 * hard),
)

# %% [markdown]
# A clip that touches no sample cannot change a run. So in the gentle corner the map compares each run with itself:

# %%
corner = [of_cells(map_.scores)[bare][0][0] for bare in (0, 1)]
claim(
    "ablations.same_runs",
    "In the gentle corner each of the 16 seeds scores the same with the clip and without it.",
    torch.equal(*corner),
    control=(
        "So it does in the hard corner.",
        torch.equal(*(of_cells(map_.scores)[bare][-1][-1] for bare in (0, 1))),
    ),
)

# %% [markdown]
# So both sentences that one hears are half true. "Without the clip PPO collapses": in one corner. "The clip makes no
# difference": in the others. Whoever says either has looked at one cell. And look at the numbers once more: where the
# clip is idle, PPO is slow. Only the three cells in which it matters reach 500. The clip does not make a gentle run
# better; it lets you be hard on a batch.
#
# ## One change in each row
#
# Now the table that every paper has: a base, and one change in each row. This time with intervals, and with 64 seeds.
# The base uses each batch for 8 epochs at learning rate 0.002, so it stands between the map's middle row and its top
# row. What the rows change:
#
# | row | instead of |
# | --- | --- |
# | clip 0.1, clip 0.3, no clip | ε = 0.2 |
# | adaptive penalty, with the KL that it aims at; fixed penalty, with its β ([lesson 03](03_trust_region.ipynb)) | the clip |
# | lambda 0, lambda 1 ([lesson 06](06_gae.ipynb)) | λ = 0.95 |
# | advantages not normalised | mean 0 and spread 1 in each minibatch |
# | value clipping: the critic's step is clipped, too ([lesson 05](05_critic.ipynb)) | a square error |
# | entropy bonus 0.01 | no bonus |
# | no annealing: the learning rate stays | it falls to 0 |
# | decided start: the policy's last layer begins 100 times larger; uniform start: all layers begin as PyTorch makes them | a policy that begins almost as a coin |
# | flags merged: a mistake, see below | two masks |
#
# This was expected:

# %%
parts = StudyResult.from_json(studies["studies"]["parts"])
print(parts.expectation)

# %% [markdown]
# How many of the 19 changes will be told apart from the base, above or below?

# %%
predict("ablations.rows_apart", None, unit="rows of 19")

# %%
patient = usual | {"resamples": 10_000}  # so that another thousand redraws move no verdict


def judged(study, seeds=slice(None)):
    scores = {name: study.scores(name)[seeds] for name in study.settings}
    return stats.judge_settings(scores, base="clip 0.2", **patient)


table = judged(parts)
told = [row.name for row in table[1:] if row.verdict != "inconclusive"]
compare("ablations.rows_apart", len(told), unit="rows of 19")

# %% [markdown]
# All of them:

# %%
show(
    figures.comparison(table, title="One change in each row, 64 seeds: five lie below"),
    alt="Twenty settings below each other with runs, IQM and interval. The base is shaded; fourteen "
    "rows overlap it and are called inconclusive, five lie below, none lies above.",
)

# %% [markdown]
# Where the sentence said "lower", it was right: no clip and λ = 0 lie below. Where it said "overlap", it was wrong twice:
# value clipping lies far below, and merged flags lie below, too. And of the way the weights start (the row "uniform
# start") it had said nothing.
#
# No row lies above. Is the usual setting the best, then? Look at the right edge: 37 of its 64 runs end at 500, and more
# cannot be earned. **A table finds improvements only where there is room for them.**
#
# Read such a table as you would read a friend's. What is apart has something to explain. What is inconclusive may matter
# with more seeds, with fewer steps, on another task. It does not matter *here enough to be seen*. Among the six
# settings above, with 12,288 steps, clip 0.1 and λ = 1 lay below; here, with 40,960, both have caught up. And with 19
# comparisons expect about one that luck has told apart. The nearest of the five is "uniform start": its interval ends
# where the base's begins.

# %%
open_ = [row.name for row in table if row.verdict == "inconclusive"]
claim(
    "ablations.most_are_open",
    "No clip and λ = 0 are below the base, and at least 12 of the 19 changes cannot be told from it.",
    {"no clip", "lambda 0"} <= set(told) and len(open_) >= 12,
    control=("At most five of the 19 changes cannot be told from the base.", len(open_) <= 5),
)

# %% [markdown]
# ### What 64 seeds buy
#
# Suppose that you had paid for 16 seeds. That is soon done: eight of the settings with 16 seeds and 50,000 steps each
# took 83 s on two cores (`python -m benchmarks.ablations --time`). The 64 can be cut into four such
# studies, none of which shares a run with another. In how many of the four will no clip be told apart from clip 0.2?

# %%
predict("ablations.quarters", None, unit="of 4")

# %%
quarters = [judged(parts, slice(first, first + 16)) for first in (0, 16, 32, 48)]
below = [[row.name for row in quarter if row.verdict == "below"] for quarter in quarters]
compare("ablations.quarters", sum("no clip" in names for names in below), unit="of 4")

# %% [markdown]
# In none. Nineteen of its 64 runs end under 300, two of the base's do. It is no small difference, but runs that collapse
# make a wide interval. This is what each of the four would have published:

# %%
for names in below:
    print("below the base:", ", ".join(names))
claim(
    "ablations.quarters",
    "Of four studies with 16 seeds none tells no clip from the base; the one with 64 does.",
    not any("no clip" in names for names in below) and "no clip" in told,
    control=("None of the four tells λ = 0, either.", not any("lambda 0" in n for n in below)),
)

# %% [markdown]
# So "inconclusive" was right four times: the runs could not tell. Whoever had written "the clip makes no difference"
# would have been wrong four times.
#
# ### A mistake in the table
#
# The last row is no variant. It is the mistake of [lesson 07](07_rollout.ipynb), flags that are merged, and an hour of
# your life if it is in your code. Its interval:

# %%
by_name = {row.name: row for row in table}
wrong, right = by_name["flags merged"], by_name["clip 0.2"]
print(f"flags merged {wrong.interval.low:.0f} to {wrong.interval.high:.0f}", end=", ")
print(f"two masks {right.interval.low:.0f} to {right.interval.high:.0f}: {wrong.verdict}")

# %% [markdown]
# The 64 seeds tell, but of the four studies above only one does. And who is shown an IQM of 466 out of 500, without the
# 494 beside it, sees a program that works. A good score does not say that the code is right. For that there are tests.
#
# ### The same parts on another task
#
# Eight of the settings ran on Acrobot, too, with 64 seeds and 61,440 steps. Two links hang from a hinge; each step costs 1
# until the tip is swung up, and after 500 steps the episode is cut. So −500 is a run that has never learned it, and −80
# is good. The sentence written down before:

# %%
acrobot = StudyResult.from_json(studies["studies"]["parts_acrobot"])
print(acrobot.expectation)
there = judged(acrobot)
here = [by_name[row.name] for row in there]

# %%
show(
    figures.two_tasks(
        {"CartPole, 64 seeds": here, "Acrobot, 64 seeds": there},
        title="Only no clip and value clipping lie below on both tasks",
    ),
    alt="Eight settings with their runs and intervals, on CartPole to the left and on Acrobot to the right. "
    "No clip and value clipping are below on both. Lambda 0 is far below on CartPole and open on Acrobot, "
    "lambda 1 is open on CartPole and below on Acrobot.",
)

# %% [markdown]
# One part of three came true. No clip is below here, too. Value clipping is below, but by 7 where on CartPole it was 120.
# And λ = 0, which was to be the lowest since the goal is far away, has the highest number of all. A good reason is no
# result.

# %%
verdict_on = [{row.name: row.verdict for row in rows} for rows in (here, there)]
claim(
    "ablations.another_task",
    "λ = 0 is below on CartPole and not on Acrobot; λ = 1 is below on Acrobot and not on CartPole.",
    [on["lambda 0"] for on in verdict_on] == ["below", "inconclusive"]
    and [on["lambda 1"] for on in verdict_on] == ["inconclusive", "below"],
    control=("A part that hurts on one task hurts on the other.", verdict_on[0] == verdict_on[1]),
)

# %% [markdown]
# A verdict belongs to its task and its budget. Write both beside it.
#
# Then the blind spot of the middle half. The IQM of clip 0.2 on Acrobot is −87, and so is that of the adaptive penalty. Of
# the 64 runs with clip 0.2, how many end below −400, that is, have learned next to nothing?

# %%
predict("ablations.stuck", None, unit="of 64")

# %%
stuck = {name: int((acrobot.scores(name) < -400).sum()) for name in acrobot.settings}
compare("ablations.stuck", stuck["clip 0.2"], unit="of 64")

# %% [markdown]
# The performance profile shows them:

# %%
levels = torch.arange(-510.0, -70.0, 5.0).double()
profiles = {
    name: stats.performance_profile(acrobot.scores(name), levels)
    for name in ("clip 0.2", "no clip", "adaptive penalty 0.01", "lambda 0")
}
show(
    figures.profiles(levels, profiles, title="Acrobot: the runs that got stuck are what differs"),
    alt="The share of runs above each threshold from −510 to −70 for four settings. No clip loses over a "
    "quarter of its runs at −500, clip 0.2 a tenth; the two others lose none before −230.",
)

# %% [markdown]
# Six runs of 64 are fewer than a quarter, so the IQM leaves all of them out. The mean does not:

# %%
middles = {row.name: row.middle for row in there}
means = {name: acrobot.scores(name).mean().item() for name in acrobot.settings}
claim(
    "ablations.stuck",
    "The IQMs of clip 0.2 and of the adaptive penalty differ by under 1, their means by over 30.",
    abs(middles["clip 0.2"] - middles["adaptive penalty 0.01"]) < 1
    and means["adaptive penalty 0.01"] - means["clip 0.2"] > 30,
    control=(
        "As many runs get stuck with the one as with the other.",
        stuck["clip 0.2"] == stuck["adaptive penalty 0.01"],
    ),
)

# %% [markdown]
# Is the penalty better than the clip, then? This table was not made to ask that: eight settings were run, and you have
# looked for a difference until one was found. It is a good question for the next study, with new seeds and the sentence
# written down first.
#
# ### Beside the paper's
#
# The PPO paper has such a table, too, its Table 1: eleven ways to hold the policy back, on seven tasks, with three seeds
# each. Scores are scaled so that a random policy has 0 and the best result of all 1. The first eleven rows of ours are
# the same eleven, on one task, with intervals:

# %%
published = (0.82, 0.76, 0.70, -0.39, 0.68, 0.74, 0.71, 0.62, 0.71, 0.72, 0.69)
show(
    figures.papers_table(table[:11], published, runs_then=21),
    alt="Left, the scores of the PPO paper's Table 1 as points, no clip far below the others. Right, our "
    "scores of the same eleven rows with intervals and verdicts: only no clip is below.",
)

# %% [markdown]
# In the paper clip 0.2 has the largest number, 0.82, and no clip the smallest, −0.39. The second is far from all
# others. Is 0.82 more than 0.76? The paper shows no runs, so nobody can say. Here are ours; the largest number stands in
# another row, and means as little:

# %%
claim(
    "ablations.table_1",
    "Of the ten other rows ours tells one from clip 0.2: no clip.",
    [row.name for row in table[1:11] if row.verdict != "inconclusive"] == ["no clip"],
    control=(
        "Clip 0.2 has the largest IQM, so it is the best of the eleven.",
        max(table[:11], key=lambda row: row.middle).name == "clip 0.2",
    ),
)

# %% [markdown]
# ## What PPO cannot do
#
# A car stands in a valley, and its engine is too weak for the hill. It must swing: back, forth, back, and up to the flag at place
# 0.5. Each step costs 1, an episode ends after 200 steps, so whoever never arrives earns −200, whatever else
# happens. This is **MountainCar**, one of the smallest tasks there are. Two lines solve it: push where you are moving to.


# %%
def drive(copies, held):
    """Drive for an episode: held random pushes; with None, push where the car is moving to."""
    envs, chance = BatchedEnvs(MountainCar(), copies), torch.Generator().manual_seed(1)
    seen, there, places = envs.reset(seed=1), torch.zeros(copies, dtype=torch.bool), []
    for step in range(200):
        if held is None:
            pushes = torch.where(seen[:, 1] < 0, 0, 2)
        elif step % held == 0:
            pushes = torch.randint(3, (copies,), generator=chance)
        found = envs.step(pushes)
        seen, there = found.observations, there | found.terminated
        places.append(found.next_observations[:, 0])
    return there, torch.stack(places)


# %% [markdown]
# PPO learns from what its own policy happens to do. At the start that is a coin with three sides, thrown in each step. Of 1,000
# episodes, how many reach the flag?

# %%
predict("ablations.chance_at_the_flag", None, unit="of 1000")

# %%
held = (1, 5, 10, 20, 30, 40)
drives = {steps: drive(1000, steps) for steps in held}
shares = [there.double().mean().item() for there, _ in drives.values()]
compare("ablations.chance_at_the_flag", round(1000 * shares[0]), unit="of 1000")

# %% [markdown]
# None. All returns are −200, so all advantages are about 0, and there is nothing to learn from. The usual advice is an
# **entropy bonus**: pay the policy for staying undecided. But look at what it pays for. It is largest, ln 3 nats in each step, for
# exactly the policy that has failed. A policy that draws once in 30 steps and keeps its push has a thirtieth of that entropy:


# %%
def until_the_flag(places):
    there = (places >= 0.5).nonzero()
    return places[: int(there[0]) + 1] if len(there) else places


arrived, tracks = drives[30]
one_each = {
    "a random push in each step": drives[1][1][:, 0],
    "a random push, held for 30": until_the_flag(tracks[:, int(arrived.int().argmax())]),
    "push where you are moving to": until_the_flag(drive(1, None)[1][:, 0]),
}

# %%
show(
    figures.valley(one_each, held, shares, flag=0.5),
    alt="Left, the place of the car over an episode: random pushes stay at the bottom, held ones swing "
    "and reach the flag, so does pushing along. Right, how many episodes reach the flag when a push is held longer.",
)

# %% [markdown]
# Held pushes are less random, and get further:

# %%
claim(
    "ablations.entropy_is_not_exploration",
    "With the largest entropy none of 1,000 episodes reaches the flag; with a thirtieth over 100 do.",
    shares[0] == 0 and shares[4] > 0.1,
    control=("The more entropy in each step, the more episodes arrive.", shares[0] > shares[4]),
)

# %% [markdown]
# And PPO itself, with three sizes of the bonus, 16 seeds and 40,960 steps each, recorded:

# %%
sparse = StudyResult.from_json(studies["studies"]["sparse"])
print(sparse.expectation)
best = {name: sparse.scores(name).max().item() for name in sparse.settings}
print(best)
claim(
    "ablations.sparse",
    "With no bonus, a small or a large one, no run of PPO ever scores above −200.",
    max(best.values()) == -200,
    control=("The large bonus takes some seed to the flag.", best[sparse.settings[-1]] > -200),
)

# %% [markdown]
# The bonus keeps actions random *one by one*. Exploring means doing something odd *for a while*, in order to get somewhere.
# So it helps against a policy that decides too early, among actions that it has tried. It does not find what nobody has ever reached.

# %% [markdown]
# ## Change one setting
#
# Now you. Change one thing in the second setting below, write down what you expect, and run: 32 seeds of each, in about a
# minute on two cores. Whatever has been run before is read from your cache, so only what you changed is trained.

# %%
base = PPOConfig(env="CartPole", num_envs=16, total_steps=budget(16_384, 4096))
ideas = {
    "two epochs": Setting("changed", replace(base, num_epochs=2)),
    "small steps": Setting("changed", replace(base, learning_rate=5e-4)),
    "no clip": Setting("changed", base, Parts(policy_loss=surrogate_loss)),
}

# %%
mine = Study(
    name="mine",
    question="Do two epochs learn as much from a rollout as eight?",
    expectation="No: with two, the IQM is lower by more than the intervals are wide.",
    settings=[Setting("as it was", base), ideas["two epochs"]],
    seeds=range(budget(32, 2)),
)

# %% [markdown]
# Training, with what was trained before read from the cache:

# %% tags=["nbval-ignore-output"]
result = run_study(mine, progress=False)  # True shows how far it is

# %% [markdown]
# Every seed thin, the median thick, and both intervals:

# %%
found = {name: result.scores(name) for name in result.settings}
rows = stats.judge_settings(found, base="as it was", **usual)
show(
    figures.reader_study(
        result.curves("changed")[0], {name: result.curves(name)[1] for name in found}, rows
    ),
    alt="Learning curves of two settings, each seed thin and the median thick; beside them all scores "
    "and the interval of each.",
)

# %% tags=["nbval-ignore-output"]
gap = stats.bootstrap_difference(
    found["changed"], found["as it was"], stats.interquartile_mean, **usual
)
print(mine.expectation)
print(f"changed minus as it was: {gap.low:.0f} to {gap.high:.0f}; the intervals: {rows[1].verdict}")

# %% [markdown]
# Take another idea, or one of your own: `gae_lambda`, `clip_epsilon`, `entropy_coef`, any function in `Parts`. Change one thing at
# a time. If two differ, you do not know which it was.
#
# ## A class pools its seeds
#
# Thirty laptops with two seeds each are sixty seeds. Each runs the same study with seeds of its own and writes a file:
#
# ```
# ppo-lessons study run mine.py --seeds 1-2 --out ada.json
# ppo-lessons study merge ada.json max.json --out class.json
# ```
#
# What must not happen: a run that is counted twice, since two people took the same seeds, or a setting that somebody has changed. Both
# would look like more evidence. So `merge_studies` refuses them.

# %% tags=["nbval-ignore-output"]
tiny = replace(mine, settings=[Setting("as it was", replace(base, total_steps=2048))], seeds=(1, 2))
ada, max_ = (run_study(replace(tiny, seeds=seeds), progress=False) for seeds in ((1, 2), (3, 4)))
other = [Setting("as it was", replace(base, total_steps=2048, gamma=0.9))]
altered = run_study(replace(tiny, settings=other), progress=False)


# %%
def refused(files):
    try:
        merge_studies(files)
    except ValueError:
        return True
    return False


claim(
    "ablations.pooled",
    "Two files with other seeds become one study of four; the same seeds twice, or another γ, do not.",
    merge_studies([ada, max_]).seeds == (1, 2, 3, 4)
    and refused([ada, ada])
    and refused([max_, altered]),
    control=("The same file twice makes twice the seeds.", not refused([ada, ada])),
)

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/11_ablations.ipynb) wait for you: the mean of the middle half, an interval from redraws, how often a run is better,
# the verdicts of a table, a difference with a bug, and a study by hand.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("ablations.three_seeds")

# %%
quiz("ablations.middle_half")

# %% [markdown]
# On what two intervals say, and twenty:

# %%
quiz("ablations.overlap")

# %%
quiz("ablations.twenty")

# %% [markdown]
# And on what entropy does not do:

# %%
quiz("ablations.exploration")

# %% [markdown]
# ## What you have now
#
# - One run is one draw. Compare settings by many seeds of each, and show them all.
# - The IQM stands firm against wild runs, and is blind to them: look at the profile, too.
# - An interval from three seeds promises too much. Fix the number of seeds, and the sentence that you expect, before you run.
# - "Inconclusive" is a result. Here it is that of 14 changes out of 19. Sixteen seeds would have missed even the clip.
# - A verdict belongs to its task and its budget: λ = 0 is far below on CartPole, and not on Acrobot.
# - The clip matters where batches are used hard, and is idle where they are not. No bonus for entropy makes PPO find a
#   reward that nobody has reached.
#
# The modules behind this page: [statistics](../ppo_lessons/ablations/statistics.py), [ablations](../ppo_lessons/ablations/__init__.py).
# Next: your own PPO does not learn. Why? That is lesson 12.
