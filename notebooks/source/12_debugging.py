# %% [markdown]
# # Debugging
#
# **Why does mine not learn?**
#
# You have written a PPO. It runs, it raises no error, and after a hundred thousand steps the pole falls as
# fast as at the start. Or worse: it learns, to four fifths of what others report, and you will never know
# why. In most programs a mistake stops the machine. Here it makes the curve a little flatter, and so does bad
# luck.
#
# This lesson has a **zoo**: nineteen bugs that people have really written, each of them one function, none of
# which raises an error. You search for them with four instruments: probes, the first minibatch, the metrics of
# a run, and the audit. You find out what each of them sees, what it does not see, and in which order to take
# them up. At the end two bugs are left that no curve shows. One page sums it up, to be printed:
# [My PPO does not learn](../docs/my_ppo_does_not_learn.md).
#
# The words that you need: an **iteration** is **collect**, **score**, **squeeze**, **renew**
# ([lesson 08](08_training_loop.ipynb)), and `Parts` says which function does what. The **ratio** is π / π_old
# of an action; a sample is **silent** if the clip has taken its gradient away. `kl_k3` says how far an
# iteration has moved the policy, `ev_lambda` which share of the spread of its own targets the critic explains,
# the **entropy** how undecided the policy is: ln 2 = 0.69 nats for a coin.

# %% tags=["nbval-ignore-output"]
from dataclasses import replace

import torch

from ppo_lessons import budget, claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.audit import audit
from ppo_lessons.debugging import BUGS, QUESTIONS, ZOO_CONFIG, metric_table, probe_passes
from ppo_lessons.diagnose import diagnose
from ppo_lessons.envs import PROBES, BatchedEnvs, CartPole
from ppo_lessons.figures import debugging as figures
from ppo_lessons.rollout import score_values
from ppo_lessons.training_loop import Parts, train
from ppo_lessons.widgets import WhichBug

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("debugging.review_ones")

# %%
quiz("debugging.review_masks")

# %% [markdown]
# And one on the critic:

# %%
quiz("debugging.review_explained")

# %% [markdown]
# ## A loop that runs
#
# Take one of the nineteen, without looking up which. It trains on CartPole beside a healthy loop, with the
# same seed and the same settings. (64 poles in one tensor program, an entropy bonus of 0.05.)


# %%
def cartpole(parts, num_iterations, time_limit=500, **settings):
    config = replace(ZOO_CONFIG, **settings)
    config = replace(config, total_steps=num_iterations * config.batch_size)
    states, envs = [], BatchedEnvs(CartPole(time_limit), config.num_envs)
    history = train(
        config, envs=envs, parts=parts, on_iteration=lambda s: states.append(s) and None
    )
    return history, states[-1]


# %%
healthy, sick = Parts(), [*BUGS.values()][10].parts
num_iterations = budget(48, 12)
well, _ = cartpole(healthy, num_iterations)
ill, last = cartpole(sick, num_iterations)

# %% [markdown]
# What you see first is what everybody sees first. (The same two runs as they were recorded, with all else of
# this lesson that takes long.)

# %%
study = recorded("debugging")
print(study["command"])
runs = study["runs"]
show(
    figures.opening(runs["healthy"], runs["old_on_the_graph"]),
    alt="Two panels over 48 iterations. The return of the healthy run rises to 500, that of the other "
    "stays near 20. The explained variance of the other rises to about 0.6 within ten iterations.",
)

# %% [markdown]
# No error, no warning, no number that is not finite. And something learns: its critic explains more and more
# of what it sees. Watch a loss, and all seems well.

# %%
claim(
    "debugging.something_learns",
    "The critic explains more than a third of its targets, and the return stays below 40.",
    ill["ev_lambda"][11] > 1 / 3 and max(ill["episode_return"]) < 40,
    control=(
        "The return stays below 40 in the healthy run, too.",
        max(well["episode_return"]) < 40,
    ),
)

# %% [markdown]
# What does the curve tell you? That it does not learn. Not why. Here is another of the nineteen. It is
# in another function, and has another cause; and its returns are the same.

# %%
other, _ = cartpole([*BUGS.values()][8].parts, 6)
claim(
    "debugging.one_curve",
    "Two different bugs give the same return in each iteration.",
    other["episode_return"] == ill["episode_return"][:6],
    control=(
        "They give the same policy loss, too.",
        other["policy_loss"] == ill["policy_loss"][:6],
    ),
)

# %% [markdown]
# So do not stare at the curve, and do not tune. No learning rate mends a sign.
#
# ## The order of suspicion
#
# Four instruments, and the order is that of their price and of how sure their answer is.
#
# | | instrument | takes | its answer |
# | --- | --- | --- | --- |
# | 1 | probes | seconds each | yes or no: you know beforehand what must be learned |
# | 2 | the first minibatch | one iteration | exact: before the first step some numbers can only be 1, 0 or ln A |
# | 3 | metrics, beside healthy runs | a run | a hint: healthy runs differ, too |
# | 4 | the audit | one rollout | exact for numbers, blind for gradients |
#
# The real task comes last. It is the dearest of all questions, and its answer is the least clear.
#
# ## First, the probes
#
# A **probe** is an environment so small that you know its values before you train. You met five in lesson 08.
# Each needs one part more than the one before. So the first that fails names the part. The package has two
# more by now:

# %%
for name, question in QUESTIONS.items():
    print(f"{name:22} {question.question}")

# %% [markdown]
# What must be learned is worked out by hand. With γ = 0.9: `two_step_discount` pays 1 in its second step, so
# the first observation is worth 0.9. In `endless` you walk from 0 to 2 and stand there, and each step at 2 pays
# 1 for ever; you stop watching after four steps. Standing there is worth 1 / (1 − 0.9) = 10, and two steps
# before it 0.9² · 10 = 8.1. (The first exercise has more of these.)

# %%
gamma = 0.9
rule = PROBES["two_step_discount"]
by_hand = {0.0: gamma * 1, 1.0: 1.0}
claim(
    "debugging.by_hand",
    "In two_step_discount the first observation is worth γ, the second 1.",
    all(abs(rule.values[place](gamma) - value) < 1e-12 for place, value in by_hand.items()),
    control=(
        "The first is worth γ², since there are two steps.",
        abs(rule.values[0.0](gamma) - gamma**2) < 1e-12,
    ),
)

# %% [markdown]
# Now your loop from above. The first three probes ask the critic alone, the fourth asks the policy to prefer
# an action. At the how-many-eth of the first five does it fail for the first time?

# %%
predict("debugging.first_failure", None, unit="of 5")

# %%
verdicts = {name: probe_passes(name, sick, seed=1) for name in PROBES}
failed = [name for name, passed in verdicts.items() if not passed]
print("fails:", ", ".join(failed))
compare("debugging.first_failure", 1 + list(PROBES).index(failed[0]), unit="of 5")

# %% [markdown]
# What could the critic alone, and what could the policy not?

# %%
claim(
    "debugging.first_that_fails",
    "The three probes of the critic pass, and both probes of the policy fail.",
    failed == ["reward_by_action", "both"],
    control=(
        "A healthy loop fails at one of the five, too.",
        not probe_passes(failed[0], healthy, seed=1),
    ),
)

# %% [markdown]
# Half of the program is out of suspicion after a few seconds: rewards, flags, discount, targets, the optimiser.
# What is left is the way from the advantages to the policy.
#
# ### The first that fails
#
# Try it with five others. `first_failure` goes through the five in their order, and stops where one fails.


# %%
def first_failure(bug):
    return next(
        (name for name in PROBES if not probe_passes(name, BUGS[bug].parts, seed=1)), "none"
    )


others = ("critic_not_trained", "values_broadcast", "rewards_shifted")
others += ("probabilities_as_logits", "flags_merged")
fails_first = {bug: first_failure(bug) for bug in others}
for bug, probe in fails_first.items():
    print(f"{BUGS[bug].title:30} {probe}")

# %% [markdown]
# A critic that is not trained cannot learn a number. One that is compared with all returns at once learns a
# number, and cannot tell two observations apart; nor can one whose rewards stand in the wrong row. A policy that is softened twice is well until somebody asks it
# to prefer something. And a time limit that is taken for the end does no harm where there is none.

# %%
claim(
    "debugging.names_the_part",
    "The untrained critic fails first on constant_reward, the column against a row on the next probe.",
    list(fails_first.values())[:2] == ["constant_reward", "reward_by_observation"],
    control=(
        "The column against a row fails on constant_reward already.",
        fails_first["values_broadcast"] == "constant_reward",
    ),
)

# %% [markdown]
# And all nineteen with all seven probes, from the record. Each was trained once, with seed 1, so a cell may be a matter
# of that seed.

# %%
titles = {name: bug.title for name, bug in BUGS.items()}
probed = {name: study["probes"][name] for name in BUGS}
marks = {name: {q: "fails" if n else "" for q, n in row.items()} for name, row in probed.items()}

# %%
show(
    figures.marked_table(
        list(BUGS),
        list(QUESTIONS),
        marks,
        row_labels=titles,
        column_labels={name: name.replace("_", " ") for name in QUESTIONS},
        title="Bug by probe: no column is full, and three rows are empty",
    ),
    alt="A table of nineteen bugs and seven probes, marked where a probe is not learned. No column is "
    "full; the rows of one minibatch, of recomputed log-probabilities and of zero_grad are empty.",
)

# %% [markdown]
# Read the table by columns: no probe finds all. Read it by rows: what fails, fails first where the part that
# it breaks is needed for the first time. And three bugs get past all seven.
#
# ### One probe for one fault
#
# The five old probes end by themselves. None of them has a time limit, so none can find out what a program
# does at one. That is what `endless` is for. And `no_difference` exists for one bug: the sign of the entropy,
# which no probe with a best action can see, since who is paid for being sure is sure sooner.

# %%
claim(
    "debugging.one_probe_one_fault",
    "Merged flags pass the first five probes, and fail on the one that has a time limit.",
    fails_first["flags_merged"] == "none"
    and not probe_passes("endless", BUGS["flags_merged"].parts, seed=1),
    control=("The healthy loop fails on it, too.", study["probes"]["healthy"]["endless"] > 0),
)

# %% [markdown]
# So when a fault has got through, build the probe that would have caught it. Name the fault in one sentence.
# Think of the smallest world in which right and wrong give different numbers. Work both out by hand. Then see
# it pass with the right program, **and fail with the wrong one**: a probe that cannot fail is no probe.
#
# ## Then the first minibatch
#
# Before the first step of the optimiser, the policy is the one that drew the actions. So on the first minibatch
# of each iteration some numbers are known to the last digit: all ratios are 1, `kl_k3` is 0, nobody is outside.
# The normalised advantages have mean 0, so the policy loss is 0. And on the second minibatch they must *not* be
# what they were.

# %%
_, state = cartpole(healthy, 1)
first = {name: getattr(state.stats, name)[0, 0].item() for name in ("kl_k3", "policy_loss")}
deviation = state.stats.max_ratio_deviation[0]
claim(
    "debugging.first_minibatch",
    "On the first minibatch all ratios are 1 and the policy loss is 0; on the second they are not 1.",
    deviation[0] < 1e-4 and max(map(abs, first.values())) < 1e-5 and deviation[1] > 0.01,
    control=(
        "The gradient is 0 there, too, as the loss is.",
        state.stats.gradient_norm[0, 0] < 1e-3,
    ),
)

# %% [markdown]
# (A loss of 0 with a gradient that is not: lesson 01 called it the loss that is none.)
#
# Go through the zoo with that. Two iterations each, with a time limit of 25 steps, and of the second iteration
# the farthest ratio on the first and on the second minibatch. On how many of the nineteen is a ratio on the
# *first* minibatch not 1?

# %%
predict("debugging.not_one", None, unit="of 19")

# %%
states = {"healthy": cartpole(healthy, 2, 25, num_envs=16)[1]}
states |= {name: cartpole(bug.parts, 2, 25, num_envs=16)[1] for name, bug in BUGS.items()}
moves = {name: state.stats.max_ratio_deviation[0, :2].tolist() for name, state in states.items()}
at_once = [name for name, (one, _) in moves.items() if one > 1e-3]
compare("debugging.not_one", len(at_once), unit="of 19")

# %% [markdown]
# Which one is it? And on which is no ratio different from 1 on the *second* minibatch?

# %%
stuck = [name for name, (_, two) in moves.items() if two < 2e-4]
print("not 1 at once:", ", ".join(at_once))
print("still 1 after a step:", ", ".join(stuck))

# %% [markdown]
# Four of nineteen, in less than a tenth of a second each. And the first line is worth a pause. In its *first*
# iteration that bug shows nothing: a fresh policy gives all actions nearly the same probability, whatever it
# sees, so the wrong observation does no harm yet. Look at a later iteration, too.

# %%
_, fresh = cartpole(BUGS["observations_late"].parts, 1, 25, num_envs=16)
early = fresh.stats.max_ratio_deviation[0, 0]
claim(
    "debugging.look_later",
    "Late observations show on the first minibatch of iteration 2, ten times as much as on that of 1.",
    moves["observations_late"][0] > 10 * early and at_once == ["observations_late"],
    control=("They show as much in iteration 1.", early > 0.5 * moves["observations_late"][0]),
)

# %% [markdown]
# Your loop from above is in the second line: after a step the ratios still stand where they stood, up to what
# the entropy bonus moves. **The policy gets no gradient from its loss.** Together with the
# probes that leaves a single line of the program:

# %%
show_source([*BUGS.values()][10].function)

# %% [markdown]
# The old log-probabilities are computed again, and hang on the graph. The ratio is 1, as it should be, and its
# slope is 1 − 1 = 0. What is missing is a `detach`, or rather: the old log-probabilities belong into the
# rollout.
#
# ## Then the metrics
#
# A metric by itself says little. Is an entropy of 0.6 high? It depends on the task, the iteration, the bonus.
# Put the run beside healthy ones of the same task, and the question has an answer. Four healthy seeds were
# recorded, and each bug once. The grey band is the range of the four, widened by its own width to both sides.
# Each panel shows the metric that betrays its bug best.

# %%
well_runs = [run for name, run in runs.items() if name.startswith("healthy")]
betrayed = {name: bug.betrayed_by.metric for name, bug in BUGS.items()}
betrayed["old_and_new_swapped"] = figures.SILENT_SHARE
show(
    figures.zoo(runs, well_runs, betrayed, titles),
    alt="Twenty small panels. In each a run with a bug is drawn over a grey band of healthy seeds: kl "
    "at the bottom where the policy stands still, a value loss that stays near one half or near 50, an "
    "entropy that stops at 0.6. In three panels nothing leaves the band.",
)

# %% [markdown]
# What each of these says, in words:

# %%
for bug in BUGS.values():
    metric, how = bug.betrayed_by
    print(f"{bug.title:36} {metric:22} {how}" if metric else f"{bug.title:36} {how}")

# %% [markdown]
# Some of these are laws, and no matter of bands. With the softmax applied twice, the larger logit can be 1 and
# the smaller 0 at most, so no action is likelier than e / (1 + e) = 0.731, and the entropy cannot fall below this
# floor:

# %%
surest = torch.tensor([1.0, 0.0], dtype=torch.float64).softmax(-1)
floor = -(surest * surest.log()).sum()
print(f"{floor:.3f} nats")
claim(
    "debugging.entropy_floor",
    "With two softmaxes the entropy never falls below 0.582 nats.",
    min(runs["probabilities_as_logits"]["entropy"]) > floor > 0.58,
    control=(
        "The healthy run never falls below it, either.",
        min(runs["healthy"]["entropy"]) > floor,
    ),
)

# %% [markdown]
# Another: what is outside and *silent* went where its advantage wanted it. If old and new are swapped in the
# ratio, the policy goes the other way, and those outside are mostly pulling back.

# %%
turned, right = (figures.scaled(runs[name], figures.SILENT_SHARE)[:10] for name in
                 ("old_and_new_swapped", "healthy"))  # fmt: skip
claim(
    "debugging.wrong_way",
    "With the ratio turned over less than a third of those outside is silent; in health over half.",
    (turned[3:] < 1 / 3).all() and (right[3:] > 1 / 3).all() and right.mean() > 0.5,
    control=("With the clip on the wrong side it is less than a third, too.", (
        figures.scaled(runs["clip_on_the_wrong_side"], figures.SILENT_SHARE)[:10] < 1 / 3).all()),
)  # fmt: skip

# %% [markdown]
# ### Bug by metric
#
# Now as a table. The package cuts each run into four quarters and asks how far the median of a metric lies
# outside of what the healthy seeds show, in widths of their interval. Above 1 is plainly outside; at 99 the
# counting ends.

# %%
metrics = (
    *("episode_return", "policy_loss", "value_loss", "entropy", "kl_k3", "fraction_outside"),
    *("gradient_norm", "ev_lambda"),
)
well_names = [name for name in runs if name.startswith("healthy")]
distances = metric_table(runs, healthy=well_names)
marks = {
    name: {metric: f"{row[metric]:.0f}" if row[metric] > 1 else "" for metric in metrics}
    for name, row in distances.items()
}

# %%
show(
    figures.marked_table(
        list(BUGS),
        metrics,
        marks,
        row_labels=titles,
        column_labels={name: name.replace("_", " ") for name in metrics} | {"kl_k3": "kl_k3"},
        title="Bug by metric: how far outside, in widths of the healthy interval",
    ),
    alt="A table of nineteen bugs and eight metrics. A cell holds how far a metric lies outside. The rows "
    "of rewards late, truncation, one minibatch and a few others are empty or nearly so.",
)

# %% [markdown]
# And when? Take the grey band from above, and the iteration from which on a metric is outside of it for five
# iterations in a row.

# %%
alarms = {
    name: {metric: figures.first_outside(runs[name], well_runs, metric) for metric in metrics}
    for name in BUGS
}

# %% [markdown]
# The return is one of eight, and seldom the first: often something else speaks twenty iterations before it.

# %%
never = len(metrics) * 48
earlier = sum(
    min(at or never for metric, at in row.items() if metric != "episode_return")
    < (row["episode_return"] or never)
    for row in alarms.values()
)
mute = [titles[name] for name, row in alarms.items() if not any(row.values())]
print(f"some metric speaks before the return: {earlier} of {len(BUGS)}")
print("nothing speaks:", "; ".join(mute))

# %%
claim(
    "debugging.before_the_return",
    "For more than half of the bugs some metric speaks before the return does.",
    earlier > len(BUGS) / 2,
    control=("For all of them it does.", earlier == len(BUGS)),
)

# %% [markdown]
# ### Alarms that are false
#
# Why wait for five iterations? Take each healthy seed in turn and hold it against the other three. What leaves
# their band is no bug. How many of the 4 · 8 = 32 pairs of a seed and a metric are outside for at least one
# iteration?

# %%
predict("debugging.false_alarms", None, unit="of 32")


# %%
def false_alarms(patience):
    pairs = [(run, [each for each in well_runs if each is not run]) for run in well_runs]
    found = [
        figures.first_outside(run, others, metric, patience=patience)
        for run, others in pairs
        for metric in metrics
    ]
    return sum(at is not None for at in found)


# %% [markdown]
# Count them, with no patience and with some:

# %%
compare("debugging.false_alarms", false_alarms(1), unit="of 32")
print("patience 1, 2, 3, 5:", [false_alarms(patience) for patience in (1, 2, 3, 5)])

# %% [markdown]
# Who looks at many numbers for long enough sees something strange in each. Waiting helps, and so do more
# healthy seeds. It never helps altogether: the second exercise is to write such an alarm.

# %%
claim(
    "debugging.patience",
    "With patience 1 more than 20 of 32 are false alarms, with patience 5 at most a quarter of that.",
    false_alarms(1) > 20 and false_alarms(5) <= false_alarms(1) / 4,
    control=("Patience 2 is enough for that.", false_alarms(2) <= false_alarms(1) / 4),
)

# %% [markdown]
# ### Let it be said in words
#
# `diagnose` reads the metrics of a run, and says which numbers are known from which bug. It takes a `History`, a
# folder, or the logs of two other libraries; in a shell it is `ppo-lessons diagnose RUN`. Of your loop from
# above it says:

# %%
print(diagnose(runs["old_on_the_graph"])[0])

# %% [markdown]
# The healthy run beside it, and one that it cannot know:

# %%
claim(
    "debugging.diagnose",
    "It raises an alarm on the sick run, and none on the healthy one.",
    any(finding.alarm for finding in diagnose(ill))
    and not any(finding.alarm for finding in diagnose(well)),
    control=(
        "It raises one where rewards come a step late.",
        any(finding.alarm for finding in diagnose(runs["rewards_shifted"])),
    ),
)

# %% [markdown]
# ## Bugs that still learn
#
# And now the question that should keep you awake. Nineteen wrong programs have been trained. How many of them
# end with a return above 400?

# %%
predict("debugging.still_learn", None, unit="of 19")

# %%
ends = {name: runs[name]["episode_return"][-1] for name in BUGS}
learned = [name for name, value in ends.items() if value >= 400]
compare("debugging.still_learn", len(learned), unit="of 19")

# %% [markdown]
# In order, beside the healthy seeds:

# %%
show(
    figures.still_learning(ends, titles, healthy=[run["episode_return"][-1] for run in well_runs]),
    alt="Nineteen bugs by their return at the end. Six lie above 400, four of them as high as healthy "
    "seeds; the others lie between 9 and 280.",
)

# %% [markdown]
# A program that learns nothing is found by its author, on the first evening. One that learns to 450 where 500 is
# possible goes into a paper, and into ten other programs. These are the worst.

# %%
claim(
    "debugging.worst",
    "At least six of nineteen wrong programs come past 400, and four of them as far as healthy ones.",
    len(learned) >= 6
    and sum(ends[name] >= min(run["episode_return"][-1] for run in well_runs) for name in BUGS)
    >= 4,
    control=("Most of the nineteen come past 400.", len(learned) > len(BUGS) / 2),
)

# %% [markdown]
# One of them shows in no curve of this task, at no seed, ever. Each action is paid for the step before it. But
# on CartPole each step pays 1, so it makes no difference which one is paid:


# %%
def metrics_of(parts):
    return [{**row, "seconds": None} for row in cartpole(parts, 3)[0]]


right_run, late, punished = (
    metrics_of(parts)
    for parts in (healthy, BUGS["rewards_shifted"].parts, BUGS["entropy_punished"].parts)
)
claim(
    "debugging.invisible",
    "With rewards one step late the run is the healthy run, in each metric, to the last bit.",
    late == right_run,
    control=("So it is with the sign of the entropy turned.", punished == right_run),
)

# %% [markdown]
# A probe that pays for an action finds it within a second, as the table above says. That is why the real task
# comes last: it may be unable to see what is wrong.
#
# ## Then the audit
#
# The last instrument asks no run at all. It takes the tensors of one rollout and one minibatch, computes each
# quantity again, and names the formula that gives your numbers. You have them: the states that you kept of each
# loop after two iterations, with a time limit of 25 steps, so that both kinds of end occur.


# %%
def of_a_rollout(state, parts):
    rollout, config = state.rollout, state.config
    values, next_values = score_values(state.networks.critic, rollout)
    facts = {"rewards": rollout.rewards, "values": values, "next_values": next_values}
    facts |= {"terminated": rollout.terminated, "truncated": rollout.truncated}
    settings = {"gamma": config.gamma, "gae_lambda": config.gae_lambda}
    advantages = parts.call("advantages", *facts.values(), **settings)
    return facts | settings | {"advantages": advantages, "returns": advantages + values}


# %% [markdown]
# And a minibatch, here the first 256 rows after the squeeze, with everything that a loss is made of:


# %%
@torch.no_grad()
def of_a_batch(state, parts):
    batch, config = state.batch.rows(torch.arange(256)), state.config
    log_probs, entropies = state.networks.policy.evaluate(batch.observations, batch.actions)
    values, clip = state.networks.critic(batch.observations), {"clip_epsilon": 0.2}
    wishes, old = parts.call("normalize", batch.advantages), batch.log_probs_old
    losses = {"policy_loss": parts.call("policy_loss", log_probs, old, wishes, **clip)}
    losses["value_loss"] = parts.call("value_loss", values, batch.returns)
    losses["entropy"] = entropies.mean()
    weights = {"value_coef": config.value_coef, "entropy_coef": config.entropy_coef}
    found = losses | {"total_loss": parts.call("total_loss", *losses.values(), **weights)}
    found |= {"log_probs": log_probs, "log_probs_old": old, "normalized_advantages": wishes}
    found |= {"advantages": batch.advantages, "new_values": values, "returns": batch.returns}
    return found | weights | clip


# %% [markdown]
# The whole zoo, one after the other:

# %%
named = {}
for name, state in states.items():
    parts = healthy if name == "healthy" else BUGS[name].parts
    tensors = of_a_rollout(state, parts), of_a_batch(state, parts)
    named[name] = [each for found in tensors for each in audit(found).mistakes]

# %%
for name, found in named.items():
    if found:
        print(f"{name:32} {', '.join(found)}")

# %% [markdown]
# The healthy loop is not in the list, and neither is your loop from above. All its numbers are right; what is
# wrong with it is a slope. **Gradients leave no trace in numbers**: that is for the second minibatch to find.

# %%
claim(
    "debugging.audit",
    "The audit names at least seven of the nineteen, and accuses no healthy loop.",
    sum(map(bool, named.values())) >= 7 and not named["healthy"],
    control=(
        "It names the missing detach.",
        bool(named["old_on_the_graph"]),
    ),
)

# %% [markdown]
# ## Who finds what
#
# All four side by side. For probes: the first that fails. For the first two minibatches: ratios that are not 1, or
# stuck there. For metrics: the first alarm of any but the return. For the audit: whether it names a mistake.

# %%
probe_of = {name: next((q for q, n in row.items() if n), "") for name, row in probed.items()}
ratio_of = {name: "not 1" for name in at_once} | {name: "stuck" for name in stuck}
spoken = {
    name: min((at for metric, at in row.items() if at and metric != "episode_return"), default="")
    for name, row in alarms.items()
}

# %%
found_by = {
    name: {
        "probe": probe_of[name].replace("_", " "),
        "first minibatches": ratio_of.get(name, ""),
        "metric": f"iteration {spoken[name]}" if spoken[name] else "",
        "audit": "named" if named[name] else "",
    }
    for name in BUGS
}
tools = ("probe", "first minibatches", "metric", "audit")

# %% [markdown]
# An empty cell is an instrument that said nothing:

# %%
show(
    figures.marked_table(
        list(BUGS), tools, found_by, row_labels=titles, title="Four instruments, nineteen bugs"
    ),
    alt="A table of nineteen bugs and four instruments. Each instrument has empty cells; only one row or "
    "two are empty in all four.",
)

# %%
counts = {tool: sum(bool(row[tool]) for row in found_by.values()) for tool in tools}
nowhere = [titles[name] for name, row in found_by.items() if not any(row.values())]
print(counts)
print("found by none:", "; ".join(nowhere) or "-")

# %% [markdown]
# None of the four would have been enough:

# %%
claim(
    "debugging.together",
    "Each instrument misses at least two bugs, and all four together miss at most two.",
    max(counts.values()) <= len(BUGS) - 2 and len(nowhere) <= 2,
    control=("One of them alone misses at most two.", max(counts.values()) >= len(BUGS) - 1),
)

# %% [markdown]
# ## What only a test shows
#
# Two rows of the table of metrics are empty. And one bug is seen by nothing but metrics, which stray a little, as
# another seed's might: *one minibatch, again and again*. Each epoch uses the same part of its rows as often as
# there are minibatches, and throws the others away unread. No probe fails, no ratio is wrong, and the audit agrees
# with every number. There are only fewer of them. For that you need a test: does each row come exactly once?

# %%
rows_dealt = [
    torch.cat(list(parts.minibatches(64, 8, generator=torch.Generator().manual_seed(1))))
    for parts in (healthy, BUGS["rows_repeated"].parts)
]
uses = [torch.bincount(dealt, minlength=64) for dealt in rows_dealt]
claim(
    "debugging.a_test",
    "The healthy loop deals every row once in an epoch; the other deals 8 of 64 rows, 8 times each.",
    (uses[0] == 1).all() and sorted(uses[1].unique().tolist()) == [0, 8],
    control=("It deals every row at least once.", (uses[1] > 0).all()),
)

# %% [markdown]
# Each bug of the zoo has such a test in the package, with the bug's name in it. And beyond all bugs lies what no
# instrument can know: whether the reward says what you want, whether the observation holds what is needed, and
# whether a healthy PPO solves this task in so many steps at all. Run somebody else's on it, before you doubt
# your own.
#
# ## What breaks it
#
# An instrument can be wrong, too. A probe that is not trained for long enough accuses a healthy loop.

# %%
probe = QUESTIONS["both"]
hasty = replace(ZOO_CONFIG, num_envs=8, num_steps=8, num_minibatches=2, total_steps=3 * 64)
learner = train(hasty, envs=probe.make(hasty.num_envs)).networks
claim(
    "debugging.too_short",
    "With three iterations the healthy loop does not pass `both`, with forty it does.",
    not probe.answered(learner) and probe_passes("both", healthy, seed=1),
    control=("Three are enough for it.", probe.answered(learner)),
)

# %% [markdown]
# So hold each probe to a loop that you trust, before you hold a loop to the probe. And change one thing at a
# time: who mends two lines at once, and sees it learn, knows of neither whether it was wrong.

# %% [markdown]
# And one instrument that many trust too far: the same seed. It repeats a run on your machine to the last bit. On
# another processor sums are added up in another order, and the last digit differs. You can have that at home: turn
# the rows of each minibatch round before its loss is averaged. The formula is the same.


# %%
def turned_round(log_probs, log_probs_old, advantages, *, clip_epsilon):
    rows = (each.flip(0) for each in (log_probs, log_probs_old, advantages))
    return healthy.policy_loss(*rows, clip_epsilon=clip_epsilon)


again, turned = metrics_of(healthy), metrics_of(Parts(policy_loss=turned_round))

# %%
claim(
    "debugging.same_seed",
    "The same seed gives the same run again, to the last bit.",
    again == right_run,
    control=("So it does if the rows are averaged in another order.", turned == right_run),
)

# %% [markdown]
# A few iterations later another action is drawn, and then the runs have nothing in common but their quality. So a
# mended program is compared by verdicts over seeds, and by tests that are exact; never by a curve, digit by digit.

# %% [markdown]
# ## Which bug?
#
# Seven runs without a name, each beside the healthy one of the same seed. Look at the six panels, choose what is
# wrong, then reveal: you see the line that was changed, and the panel that betrays it is framed. (Where no
# widget can run, you see a picture, and it shows the answer.)

# %%
game = WhichBug(keep_as="debugging.which_bug")
game

# %% [markdown]
# Look an entropy up in the record, whichever run and iteration you have chosen:

# %%
metric, at = "entropy", game.iteration - 1
assert list(game.pairs()[metric]) == [runs[name][metric][at] for name in ("healthy", game.bug)]
print("the widget and the record agree")

# %% [markdown]
# ## Exercises
#
# [Five exercises](../exercises/12_debugging.ipynb) wait for you: work out what a probe must teach, write an
# alarm with patience, write a metric that no library has, read eight runs, and find the bug in a whole
# iteration. Each check tells you which mistake it is. What passes is kept in `my_work/answers/`.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("debugging.order")

# %%
quiz("debugging.all_pass")

# %% [markdown]
# On what moves, and what does not:

# %%
quiz("debugging.silent_policy")

# %%
quiz("debugging.gradients")

# %% [markdown]
# And on the worst of them:

# %%
quiz("debugging.learned")

# %% [markdown]
# ## The stair
#
# This lesson adds no stair. It is what you do when a step of yours gives way. Keep the page
# [My PPO does not learn](../docs/my_ppo_does_not_learn.md) beside the keyboard.
#
# ## What you have now
#
# - A curve says that a program does not learn. It does not say why, and it may not even say that.
# - Cheap and exact before dear and noisy: probes, first minibatch, metrics beside healthy runs, audit. Each sees
#   what the others do not.
# - The first probe that fails names the part. Got through? Build the probe that would have caught it, and see it
#   fail.
# - A number outside the band is an alarm only if it stays there.
# - The worst bugs still learn. What asks the program finds them; what asks the task does not.
#
# The modules behind this page: [debugging](../ppo_lessons/debugging/__init__.py),
# [diagnose](../ppo_lessons/diagnose/__init__.py), [audit](../ppo_lessons/audit/__init__.py). Next:
# lesson 13 begins with language models.
