# %% [markdown]
# # The training loop
#
# **How do the parts fit?**
#
# You have all the parts now, and each answers a problem that you have seen. Samples may be dear: so use
# them again, correct by **ratios**, and end the incentive to drift with the **clip**. The signal is noisy:
# so subtract what a **critic** expected, and choose with λ how far to trust it. Here you put the parts
# together into one loop. You follow a single sample through it from birth to death, find out what a
# sample costs, and then break the loop on purpose to see which part holds what.
#
# The task is CartPole: a pole stands on a cart, the agent pushes left or right, and earns 1 for
# every step the pole stands, at most 500. The smallest task on which everything shows.

# %% tags=["nbval-ignore-output"]
import time
from dataclasses import replace

import torch

from ppo_lessons import Watch, claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.critic import td_errors
from ppo_lessons.envs import PROBES, Probe, make_envs
from ppo_lessons.figures import training_loop as figures
from ppo_lessons.figures.staircase import staircase
from ppo_lessons.importance import importance_ratios, surrogate_loss
from ppo_lessons.rollout import collect_rollout, score_values, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, record_episode
from ppo_lessons.training_loop.train import iterate, score, start, train
from ppo_lessons.training_loop.update import update
from ppo_lessons.widgets import BatchLedger, LifeOfATransition, LiveDashboard, RunScrubber

setup()

# %% [markdown]
# ## The words, once more
#
# - [01](01_reinforce.ipynb): the **policy** π gives every action a probability, and the agent draws. The
#   **return** is what an episode earns.
# - [02](02_importance.ipynb): the **ratio** π / π_old says how much more likely an action is now than when
#   the old policy drew it. [03](03_trust_region.ipynb): the **KL** says how far the two are apart, in nats.
# - [04](04_clip.ipynb): the **clip** stops paying for an action once its ratio has moved by ε in the
#   direction that its advantage asks for.
# - [05](05_critic.ipynb): the **critic** V says how much discounted reward to expect from a state on.
#   [06](06_gae.ipynb): the **TD error** of a step is δ = reward + γ·V(next state) − V(state); **GAE** adds
#   up that of the step and those that follow, each with one more factor γλ. The sum is the **advantage**.
# - [07](07_rollout.ipynb): a step **terminated** if the task is over, and was **truncated** if we stopped
#   watching. A **rollout** holds what happened, T steps of N environments.
#
# Three questions show whether they are clear; a wrong answer tells you why. Answer with a letter as the
# second argument, for instance `quiz("training_loop.review_ratio", "a")`.

# %%
quiz("training_loop.review_ratio")

# %%
quiz("training_loop.review_lambda")

# %% [markdown]
# And one on ends:

# %%
quiz("training_loop.review_ends")

# %% [markdown]
# ## The loop in one picture
#
# One turn of the loop is an **iteration**. It has four stages, and they always come in this order.

# %%
show(
    figures.four_stages(),
    alt="Four boxes in a row, collect, score, squeeze, renew, with an arrow from each to the next "
    "and one from renew back to collect.",
)

# %% [markdown]
# Collecting is the part that may be dear: a robot moves, or a language model writes. So what was
# collected is squeezed more than once. Half of what is odd about PPO follows from that. The other
# half, critic and GAE, follows from the noise in what was collected.
#
# ## Stage one: collect
#
# You need environments and two networks. 32 copies of CartPole run side by side. All randomness
# comes from generators that are passed in, so a seed fixes a run. The loop is made of slots, and `Parts`
# says which function is in each; `usual` has the package's own.

# %%
config = PPOConfig(num_envs=32, num_steps=64, num_epochs=8, num_minibatches=4, total_steps=100_000)
generator = torch.Generator().manual_seed(1)
envs = make_envs("CartPole-v1", config.num_envs)
usual = Parts()
networks = usual.networks((4,), 2, hidden_sizes=(64, 64), generator=generator)

# %% [markdown]
# The policy now acts for 64 steps in each copy. The rollout holds facts only, and no opinion of a critic.

# %%
carry = start_carry(envs, seed=1)
rollout, carry = collect_rollout(
    envs, networks.policy, carry, num_steps=config.num_steps, generator=generator
)
for name in ("observations", "next_observations", "actions", "rewards", "terminated", "truncated"):
    print(f"{name:18} {tuple(getattr(rollout, name).shape)}")

# %% [markdown]
# When a pole falls, that copy starts anew within the same step. So the rollout keeps two observations
# per step: the one the action was chosen on, and the one the step reached, *before* any reset (lesson 07).
# Look at the first pole that fell. Entry 2 of an observation is the pole's angle in radians; an
# episode ends beyond 0.2095.

# %%
t, n = rollout.ended.nonzero()[0]
reached = rollout.next_observations[t, n, 2].abs()
restarted = rollout.observations[t + 1, n, 2].abs()
claim(
    "training_loop.before_reset",
    "The step reached a pole that had tipped over, and the next row starts with an upright one.",
    reached > 0.2095 and restarted < 0.05,
    control=("What a step reached is what the next row starts with.", reached == restarted),
)

# %% [markdown]
# ### A sample is born
#
# 64·32 = 2,048 samples were collected. Choose one and follow it to its end: step 17 of copy 20. The action
# was 1, a push to the right, drawn like the toss of a coin, for the policy has learned nothing yet. The pole
# leans to the left and turns further to the left, so a push to the right takes the cart from under it. Two
# steps later it has fallen.

# %%
t, n = 17, 20
place, speed, angle, turning = rollout.observations[t, n].tolist()
print(f"angle {angle:.3f} rad, turning {turning:.2f} rad/s, action {rollout.actions[t, n]}")
print(f"log-probability {rollout.log_probs_old[t, n]:.2f}, reward {rollout.rewards[t, n]:.0f}")
print("terminated in steps 17, 18, 19:", rollout.terminated[t : t + 3, n].tolist())

# %% [markdown]
# That is all that is known of it: what was seen, what was done, how likely that was, what it earned. The
# log-probability is written down now, since soon nobody can say any more how likely it was.
#
# ## Stage two: score
#
# The critic says what it expects: in the states where actions were chosen, and in those that the steps
# reached. GAE compares that with what came. Then time has done its work, and all samples go into one flat heap.
# In the code, `parts.call` calls the function that fills a slot; `compute_gae` is in the slot `advantages`.

# %%
show_source(score)

# %%
batch = score(rollout, networks, config, usual)
assert torch.allclose(batch.returns, batch.advantages + batch.values_old)
print(f"a batch of {len(batch)} samples, each with its own advantage and its own target")

# %% [markdown]
# For our sample, by hand. Three TD errors are left until the fall, and each later one counts with one more
# factor γλ = 0.99·0.95.

# %%
values, next_values = score_values(networks.critic, rollout)
errors = td_errors(rollout.rewards, values, next_values, rollout.terminated, gamma=0.99)
weights = (0.99 * 0.95) ** torch.arange(4)
print("TD errors", [round(error, 2) for error in errors[t : t + 3, n].tolist()])
by_hand = (weights[:3] * errors[t : t + 3, n]).sum()
one_more = (weights * errors[t : t + 4, n]).sum()

# %%
mine = t * config.num_envs + n  # its row in the heap
claim(
    "training_loop.advantage",
    "Its advantage is the sum of the three TD errors up to the fall, each with its weight.",
    torch.isclose(by_hand, batch.advantages[mine], atol=1e-4),
    control=(
        "It is the sum of the four that follow in its copy.",
        torch.isclose(one_more, batch.advantages[mine], atol=0.1),
    ),
)

# %% [markdown]
# 1 + 0.94 + 0.88, and a little for what the critic said: it is new and expects next to nothing, so all that
# comes is a pleasant surprise. Was the action good, then? In other samples the pole stood much longer, and
# they were surprised even more. Before each step of the optimiser, the advantages of a minibatch are
# normalised to mean 0 and deviation 1. Do it with the whole batch, which gives nearly the same. What becomes
# of ours?

# %%
predict("training_loop.normalised", None)

# %%
normalised = usual.normalize(batch.advantages)
compare("training_loop.normalised", normalised[mine].item())

# %% [markdown]
# An advantage above 0, and the action is to become rarer: beside the others it was a bad one. While the
# critic knows nothing, the mean of the batch stands in for it.

# %%
claim(
    "training_loop.beside_the_others",
    "Its advantage is above 2.5, and below −0.9 beside the others.",
    batch.advantages[mine] > 2.5 and normalised[mine] < -0.9,
    control=(
        "Normalising changes the sign of no advantage.",
        (normalised.sign() == batch.advantages.sign()).all(),
    ),
)

# %% [markdown]
# The target of the critic is the advantage, *before* it is normalised, plus what the critic had expected:
# what it should have said.
#
# From here on these numbers are **frozen**. The networks will move; the advantages, the targets
# and the old log-probabilities will not.
#
# ## Stage three: squeeze
#
# The batch is used for K = 8 **epochs**. In each, its 2,048 samples are shuffled and dealt into 4
# **minibatches**, and each minibatch makes one step of the optimiser: 32 steps in all.
#
# What is minimised is a sum: the clipped surrogate of lesson 04 with its sign turned, half the squared
# error of the critic, and minus the **entropy** of the policy, which says how undecided it is. To be undecided
# lowers the loss, so this is called a bonus. The last two have weights, `value_coef` and `entropy_coef`: in this run 0.5, and 0, so there is no bonus. The gradient of both networks together
# is shortened if it is longer than 0.5.
#
# Before each step, look at the ratios. On how many of the 32 minibatches will *all* of them be
# exactly 1?

# %%
predict("training_loop.all_ones", None, unit="of 32")

# %% [markdown]
# Before you run it, put two functions into slots that do what the usual ones do, and take notes: which rows
# each minibatch holds, and the ratio of every sample of the batch before every step.

# %%
dealt, ratios = [], []


def noting_minibatches(num_rows, num_minibatches, *, generator):
    for rows in usual.minibatches(num_rows, num_minibatches, generator=generator):
        dealt.append(rows)
        yield rows


def noting_step(loss, networks, optimizer, *, max_grad_norm):
    log_probs, _ = networks.policy.evaluate(batch.observations, batch.actions)
    ratios.append(importance_ratios(log_probs.detach(), batch.log_probs_old))
    return usual.gradient_step(loss, networks, optimizer, max_grad_norm=max_grad_norm)


# %%
frozen = batch.advantages.clone(), batch.log_probs_old.clone()
optimizer = usual.optimizer(networks, learning_rate=config.learning_rate)
notes = Parts(minibatches=noting_minibatches, gradient_step=noting_step)
stats = update(networks, optimizer, batch, config, parts=notes, generator=generator)
all_ones = stats.max_ratio_deviation < 1e-5
compare("training_loop.all_ones", int(all_ones.sum()), unit="of 32")

# %% [markdown]
# It is the first one, and no other. Before the first step the policy *is* the old policy. After
# it, it never is again. And nothing that was frozen has moved:

# %%
assert torch.equal(frozen[0], batch.advantages) and torch.equal(frozen[1], batch.log_probs_old)
claim(
    "training_loop.first_minibatch",
    "All ratios are 1 on the first minibatch of the first epoch, and on no other.",
    all_ones[0, 0] and all_ones.sum() == 1,
    control=("All ratios are 1 during the first epoch.", all_ones[0].all()),
)

# %% [markdown]
# A claim is worth something if a changed claim fails. So make the mistake that many programs make:
# write the old log-probabilities down anew before every epoch. Then each epoch begins with ratios
# of 1, and the clip measures the way from the last epoch instead of the way from the data.

# %%
one_epoch, count = replace(config, num_epochs=1), 0
for _ in range(8):
    log_probs, _ = networks.policy.evaluate(batch.observations, batch.actions)
    mistaken = replace(batch, log_probs_old=log_probs.detach())
    seen = update(networks, optimizer, mistaken, one_epoch, parts=usual, generator=generator)
    count += int((seen.max_ratio_deviation < 1e-5).sum())
claim(
    "training_loop.recomputed",
    "With that mistake, all ratios are 1 on 8 of 32 minibatches.",
    count == 8,
    control=("With that mistake, too, it is one minibatch.", count == 1),
)

# %% [markdown]
# This is the first thing to look at in a PPO program of your own: one minibatch of ones, the first,
# and then never again.

# %% [markdown]
# ### What the 32 steps did
#
# Four numbers are taken before each step. The largest distance of a ratio from 1. An estimate of
# the KL from the old policy to the new one, `kl_k3`, in nats. And two fractions. **Outside**: the share
# of samples whose ratio left 1 ± 0.2. **Silent**: the share whose gradient is zero, since they went out
# on the side that their advantage asked for.

# %%
show(
    figures.one_squeeze(
        stats.max_ratio_deviation.numpy(),
        stats.kl_k3.numpy(),
        stats.fraction_outside.numpy(),
        stats.fraction_zero_gradient.numpy(),
    ),
    alt="Three panels over the 32 minibatches of one squeeze. The largest distance of a ratio from "
    "1 starts at zero, rises beyond 0.2 and falls back a little; kl_k3 does the same; more samples "
    "are outside than silent.",
)

# %% [markdown]
# Three things are worth a pause. The ratios go far beyond 1 ± 0.2: the clip is no wall. Fewer samples
# are silent than outside: those on the other side still have a gradient. And the curves overshoot in
# the second and third epoch, then return part of the way: going back is not forbidden either.

# %%
outside, silent = stats.fraction_outside, stats.fraction_zero_gradient
claim(
    "training_loop.no_wall",
    "Ratios leave the interval, and at least a tenth of those outside still push.",
    outside.max() > 0 and (silent <= outside).all() and silent.sum() < 0.9 * outside.sum(),
    control=("The clip keeps all ratios within the interval.", outside.max() == 0),
)

# %% [markdown]
# ### How often is a sample used?
#
# See it on a batch that fits the screen. The ledger has a square for each sample, and a number in it: how
# often that sample has been used. First say how many steps the optimiser will make in all. Then go through
# them one by one, change the epochs and the minibatches, and watch the ratios spread. (Where no widget can
# run, you see a picture.)

# %%
ledger = BatchLedger(keep_as="training_loop.how_many_steps")
ledger

# %% [markdown]
# Deal the same batch yourself, for as many epochs, and count the steps and the uses:

# %%
dealer, uses, steps = torch.Generator().manual_seed(1), torch.zeros(ledger.samples), 0
for _ in range(ledger.num_epochs):
    for rows in usual.minibatches(ledger.samples, ledger.num_minibatches, generator=dealer):
        uses[rows] += 1
        steps += 1
assert (uses == ledger.num_epochs).all() and steps == ledger.updates
print("each sample is used once per epoch, in the widget and here")

# %% [markdown]
# ### The life of our sample
#
# The notes tell what became of the one that you follow. In each epoch it has one turn: the minibatch that
# it was dealt into.

# %%
turns = torch.tensor([step for step, rows in enumerate(dealt) if (rows == mine).any()])
path = torch.stack(ratios)[:, mine]  # its ratio before each of the 32 steps
silent = path[turns] < 0.8  # it is to become rarer, so the lower edge is its end
show(
    figures.life(path.numpy(), turns.numpy(), silent.numpy(), num_epochs=8, epsilon=0.2),
    alt="The ratio of one sample over 32 optimiser steps. It starts at 1, has fallen below 0.9 at its "
    "first turn, is below 0.8 from the second turn on, falls to about 0.63 and comes back part of the "
    "way. Circles mark turns at which it pushes, crosses those at which it is silent.",
)

# %% [markdown]
# Look at its first turn: the ratio is no longer 1. Other samples, in states much like its own, have pushed
# the shared weights before it could. From its second turn on it is silent, and its ratio moves all the
# same, down at first and then up again. It has no say in that.

# %%
moved = path.diff().abs() > 0.002
claim(
    "training_loop.life",
    "It is silent at most of its eight turns, and its ratio moves at nearly every step.",
    silent.sum() >= 4 and moved.sum() > 24,
    control=("Its ratio moves at its own eight turns only.", moved.sum() <= 8),
)

# %% [markdown]
# And the first turn:

# %%
uses = torch.bincount(torch.cat(dealt), minlength=len(batch))
claim(
    "training_loop.first_turn",
    "Every sample has 8 turns, and at the first of ours its ratio has left 1 by more than 0.05.",
    (uses == 8).all() and (path[turns[0]] - 1).abs() > 0.05,
    control=(
        "At its first turn the ratio of every sample is 1.",
        torch.isclose(path[turns[0]], torch.tensor(1.0)),
    ),
)

# %% [markdown]
# So a batch is used K times, and yet not each sample pushes K times. Of all 8·2,048 turns, a share is
# silent, none of them at the start:

# %%
quiet = stats.fraction_zero_gradient.mean(dim=1)
claim(
    "training_loop.turns",
    "No turn of the first minibatch is silent, and of all turns less than a quarter is.",
    stats.fraction_zero_gradient[0, 0] == 0 and 0.01 < quiet.mean() < 0.25,
    control=("In the last epoch most turns are silent.", quiet[-1] > 0.5),
)

# %% [markdown]
# ### Four more lives
#
# Four samples of another iteration, recorded: one went a little better than expected, one worse, one much
# better, and one is the last of its episode. The clip silences one of them for a while. Begin with the one
# that went much better: in how many of the eight epochs does it push? Say it first, then walk through its
# stages.

# %%
life = LifeOfATransition(keep_as="training_loop.still_pushes")
life

# %% [markdown]
# Its advantage once more, by hand:

# %%
later = torch.arange(len(life.td_errors), dtype=torch.float64)
by_weights = ((0.99 * 0.95) ** later * torch.tensor(life.td_errors, dtype=torch.float64)).sum()
assert abs(by_weights.item() - life.advantage) < 1e-9
print("the widget and the sum of the TD errors agree")

# %% [markdown]
# The last of its episode is worth a look, too. It went badly, so it pushes its action down, eight times. What
# does its ratio do?

# %%
last = LifeOfATransition(sample="last")
claim(
    "training_loop.against_its_push",
    "A sample can push down at all of its eight turns, and its action be more likely in the end.",
    last.advantage < 0 and all(last.pushes) and last.ratios[-1] > 1.03,
    control=(
        "Whatever pushes down eight times ends with a ratio below 1.",
        last.ratios[-1] < 1,
    ),
)

# %% [markdown]
# The weights are shared, and it is outvoted. A sample has a push, and no say in what becomes of its ratio.

# %% [markdown]
# ## How often can you squeeze?
#
# Data is dear, so use it for 32 epochs. What could go wrong? Try it with three policy losses: the clipped
# one, the plain surrogate of lesson 02, and no ratio at all. The last pretends that the policy of the moment
# drew the batch: then each ratio is 1, and what is left has the gradient of REINFORCE. A variant is a
# function in a slot.


# %%
def no_ratio(log_probs, log_probs_old, advantages):
    return surrogate_loss(log_probs, log_probs.detach(), advantages)


# %% [markdown]
# Each starts from the same networks and the same first rollout. The only difference is the loss.

# %%
losses = {"clip": usual, "ratio, no clip": Parts(policy_loss=surrogate_loss)}
losses["no ratio"] = Parts(policy_loss=no_ratio)
drift = {}
for label, parts in losses.items():
    states = []
    once = replace(config, num_epochs=32, total_steps=config.batch_size)
    train(once, parts=parts, on_iteration=states.append)
    drift[label] = states[0].stats.kl_k3.mean(dim=1).tolist()

# %% [markdown]
# The axis is logarithmic: each line of the grid is ten times as far.

# %%
show(
    figures.many_epochs(drift),
    alt="KL from the old policy over 32 epochs, on a logarithmic axis. With the clip it rises for a "
    "few epochs and then stays near one hundredth; without the clip or without a ratio it grows "
    "hundreds of times larger.",
)

# %% [markdown]
# With the clip, the drift levels off. Each sample stops asking once it has been granted 20 %, so
# after a few epochs little is left to ask for. It still creeps, and nothing guarantees that it
# stays small. Without the clip no sample ever has enough.

# %%
ends = {label: values[-1] for label, values in drift.items()}
claim(
    "training_loop.drift",
    "Without the clip, the policy ends more than 50 times as far from its data.",
    min(ends["ratio, no clip"], ends["no ratio"]) > 50 * ends["clip"],
    control=("The ratio alone keeps the policy near its data.", ends["ratio, no clip"] < 1),
)

# %% [markdown]
# ## Frozen, or computed anew?
#
# The critic has learned meanwhile (for twice eight epochs, with those of the mistake). So the advantages that
# it gave are out of date already. You may have read that they must stay, since computing them anew would
# need a new rollout. It does not: the facts have not changed, and the critic can be asked again about the
# same states. Ask it.

# %%
anew = score(rollout, networks, config, usual)
show(
    figures.scored_again(frozen[0].numpy(), anew.advantages.numpy()),
    alt="Advantages computed after the squeeze over those computed before it. Nearly all points lie below "
    "the diagonal, farthest below it where the frozen advantage is small.",
)

# %% [markdown]
# The critic now expects more, so what came looks worse beside it, worst where it was bad already. The
# policy's loss looks at the *normalised* advantages. Those are alike, and not the same: about one sample in
# eight now pushes the other way. And the old log-probabilities are facts. They stay.

# %%
both = torch.stack([frozen[0], anew.advantages])
pushes = [usual.normalize(advantages).sign() for advantages in both]
turned = (pushes[0] != pushes[1]).double().mean()
claim(
    "training_loop.scored_again",
    "Scored again, advantages are lower, yet alike, and 5 to 30 % of the samples push the other way.",
    both[1].mean() < both[0].mean() - 0.5
    and torch.corrcoef(both)[0, 1] > 0.85
    and 0.05 < turned < 0.3,
    control=(
        "It gives other old log-probabilities, too, so that all ratios start at 1 again.",
        not torch.equal(anew.log_probs_old, frozen[1]),
    ),
)

# %% [markdown]
# So to score anew before each epoch is a variant, not a mistake, and some programs do it. It costs K
# passes of the critic instead of one. Do not confuse it with the mistake above: what is renewed
# there is π_old.
#
# ## Stage four: renew
#
# The policy that was trained takes over, and the data is thrown away, our sample with it. It has to be:
# the next rollout is drawn by the new policy, and on it all ratios are 1 again.

# %%
rollout, carry = collect_rollout(envs, networks.policy, carry, num_steps=64, generator=generator)
log_probs, _ = networks.policy.evaluate(rollout.observations, rollout.actions)
claim(
    "training_loop.renew",
    "The new policy is the old policy of the next rollout.",
    torch.allclose(log_probs, rollout.log_probs_old, atol=1e-5),
    control=(
        "On the next rollout some ratio starts above 1.1.",
        (log_probs - rollout.log_probs_old).max() > 0.1,
    ),
)

# %% [markdown]
# ## The whole loop
#
# That is all there is. `train` repeats this function until the steps are used up:

# %%
show_source(iterate)

# %% [markdown]
# Do you believe it? Then write it once without `train`. `start` makes networks, optimiser, generator and
# environments from the seed. The function `before_epoch` is there for the variant that scores anew.


# %%
def loop_by_hand(config, before_epoch):
    state, once = start(config, None, usual), replace(config, num_epochs=1)
    networks, draw = state.networks, {"generator": state.generator}
    for iteration in range(config.num_iterations):
        state.optimizer.param_groups[0]["lr"] = config.learning_rate_at(iteration)
        rollout, state.carry = collect_rollout(
            state.envs, networks.policy, state.carry, num_steps=config.num_steps, **draw
        )
        batch = score(rollout, networks, config, usual)
        for _ in range(config.num_epochs):
            batch = before_epoch(batch, rollout, networks)
            update(networks, state.optimizer, batch, once, parts=usual, **draw)
    return networks


# %% [markdown]
# The two ways to treat the advantages:


# %%
def keep_frozen(batch, rollout, networks):
    return batch


def score_anew(batch, rollout, networks):
    return score(rollout, networks, config, usual)


# %% [markdown]
# Five iterations by hand, five by `train`, and the weights are the same to the last bit:

# %%
short = replace(config, total_steps=5 * config.batch_size)
by_train = train(short).networks
by_hand, other_way = (loop_by_hand(short, way) for way in (keep_frozen, score_anew))


def same_weights(some, others):
    pairs = zip(some.parameters(), others.parameters(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


# %%
claim(
    "training_loop.by_hand",
    "Twelve lines by hand leave the same weights as train does, bit for bit.",
    same_weights(by_hand, by_train),
    control=("So they do when they score anew.", same_weights(other_way, by_train)),
)

# %% [markdown]
# And does the variant learn? 30 iterations each, two seeds. After training, each policy plays 100 whole
# episodes in which it takes its most likely action, and you count the steps that the pole stands.

# %% tags=["nbval-ignore-output"]
tests = make_envs("CartPole-v1", num_envs=100)
held = {}
for way in (keep_frozen, score_anew):
    for seed in (1, 3):
        longer = replace(config, seed=seed, total_steps=30 * config.batch_size)
        policy = loop_by_hand(longer, way).policy
        held[way.__name__, seed] = evaluate(policy, tests, seed=100).mean().item()

# %%
claim(
    "training_loop.both_learn",
    "Frozen or scored anew, the policy holds the pole for more than 80 steps on both seeds.",
    min(held.values()) > 80,
    control=(
        "A policy that was never trained does so, too.",
        evaluate(start(config, None, usual).networks.policy, tests, seed=100).mean() > 80,
    ),
)

# %% [markdown]
# Which of the two is better? Two seeds cannot tell. A large comparison recommends to score anew
# (Andrychowicz et al., 2021). This course freezes: most programs do, and their settings were tuned with it.
#
# ## A run, and how to read it
#
# Now let it run, with new networks. 100,000 steps are 48 iterations; an incomplete one is left out. The
# learning rate falls to zero on the way. The board below the cell fills while the run goes on. You may stop
# it with the stop button: what has been recorded up to then stays. The cells after it need a run that went
# to its end, though.

# %% tags=["nbval-ignore-output"]
board = LiveDashboard(config)
history = train(config, on_iteration=board)

# %% [markdown]
# Six panels. All but the first and the last show means over the last epoch of each iteration.
#
# | panel | what it measures | what to expect | what is alarming |
# | --- | --- | --- | --- |
# | return | reward per episode, mean of the last 100 | it rises, with setbacks | flat from the start |
# | `kl_k3` | how far the policy has moved away from its data | 0.001 to 0.03 here, less as the learning rate falls | a jump to 0.1 and more |
# | outside, silent | samples that left 1 ± ε, and those of them that no longer push | a few percent, with peaks | none at all, or half of them, again and again |
# | entropy | how undecided the policy is: ln 2 = 0.69 for a coin, 0 for certainty | it falls, slowly | near 0 while the return is low |
# | value loss | squared error of the critic | it grows with the returns before it falls | growth without end |
# | explained variance | share of the returns' spread that the critic accounts for | it rises | far below 0 late in a run |
#
# Explained variance comes in two kinds. One compares the critic with its *own targets*, and it had a hand
# in those. The other compares it with *what came*: returns of episodes whose end lies within the rollout,
# which no critic has touched. They are few, and they are the short ones, so it jumps; but it is not
# flattered. Once all episodes last 500 steps it cannot be computed any more, and the first falls to 0:
# when all returns are alike there is nothing to explain.
#
# The critic looks better by its own targets than by what came:

# %%
kinds = zip(history["ev_lambda"], history["ev_monte_carlo"], strict=True)
flattered = [own > came for own, came in kinds if own is not None and came is not None]
claim(
    "training_loop.flattered",
    "On most iterations the critic explains more of its own targets than of what came.",
    sum(flattered) > 0.6 * len(flattered),
    control=(
        "On most iterations it explains more than half of what came.",
        sum((came or 0) > 0.5 for came in history["ev_monte_carlo"]) > 0.5 * len(flattered),
    ),
)

# %% [markdown]
# And the policy, undecided at first, becomes less so in small steps:

# %%
entropy = history["entropy"]
claim(
    "training_loop.small_steps",
    "Entropy falls from ln 2 = 0.69, and no iteration moves the policy by 0.1 nats.",
    0.6 < entropy[0] < 0.6932 and entropy[-1] < 0.63 and max(history["kl_k3"]) < 0.1,
    control=("At the end the policy is sure: its entropy is below 0.2.", entropy[-1] < 0.2),
)

# %% [markdown]
# ### Which number warns you first?
#
# A healthy run beside a sick one, recorded once: the second has the learning rate 0.05, twenty-five times
# that of the first. Its return rises as well, for a while even faster. Then it falls to about a third,
# and recovers late. At which iteration could you have known? Say when its `kl_k3` first exceeds 0.05, then move along the
# runs. The maps show what each policy prefers, and what each critic expects, as the pole leans and turns.

# %%
scrubber = RunScrubber(keep_as="training_loop.first_jump")
scrubber

# %% [markdown]
# Look it up in the record, with iterations counted from 1:

# %%
sick, well = (recorded("runs")["runs"][name] for name in ("large_rate", "seed_1"))
jump = next(i for i, kl in enumerate(sick["kl_k3"], 1) if kl > 0.05)
lowest = min(range(jump, 49), key=lambda i: sick["episode_return"][i - 1])
highest = max(range(1, lowest), key=lambda i: sick["episode_return"][i - 1])
print(f"kl_k3 exceeds 0.05 at iteration {jump}; the return falls from {highest} to {lowest}")

# %%
claim(
    "training_loop.kl_warns_first",
    "In a run with too large a rate the KL jumps five iterations before the return begins to fall.",
    jump + 5 == highest < lowest,
    control=("It jumps like this in the healthy run, too.", max(well["kl_k3"]) > 0.05),
)

# %% [markdown]
# The return is a mean over the last 100 episodes, so it looks back. The KL looks at this one iteration. When a
# run of yours falls, look at the KL of the iterations before. It is a warning and no verdict: choose *no clip*
# in the widget. There the KL is above 0.05 in each of the first six iterations, and the return climbs above
# 350 all the same, before it falls.
#
# ## One run is no run
#
# The same program with another seed gives another curve. So a claim about learning needs several.
# Four more seeds follow, so that there are five. After training, each policy plays 100 whole
# episodes in which it draws its actions, as it did in training. How many steps does the *worst* of the
# five hold the pole, on average? (At most 500.)

# %%
predict("training_loop.worst_of_five", None, unit="steps")

# %% tags=["nbval-ignore-output"]
runs = [history]
for seed in (2, 3, 4, 5):
    runs.append(train(replace(config, seed=seed), on_iteration=Watch()))
    if runs[-1].stopped == "interrupted":
        break

# %% [markdown]
# Training is over; now each policy is tested.

# %% tags=["nbval-ignore-output"]
returns = [
    evaluate(run.networks.policy, tests, seed=100, greedy=False).mean().item() for run in runs
]
compare("training_loop.worst_of_five", min(returns), unit="steps")

# %%
show(
    figures.seeds([(run["env_steps"], run["episode_return"]) for run in runs], goal=475),
    alt="Training returns of five seeds over the environment steps, each thin, their median thick, "
    "with a dashed line at 475.",
)

# %% [markdown]
# CartPole counts as solved at a mean of 475. The curves lag behind the test: they average over the last
# 100 episodes, old ones included. Why did the test draw actions? The policy was trained as one that
# draws. Its most likely action alone is another policy, and usually as good: of 24 seeds of this program
# on one machine 23 passed with it and one fell short by five steps, while with drawn actions all 24 held
# the pole for 493 steps and more.

# %%
fresh = start(config, None, usual).networks
untrained = evaluate(fresh.policy, tests, seed=100, greedy=False).mean()
claim(
    "training_loop.solved",
    "All five seeds solve CartPole: 475 or more over 100 episodes of drawn actions.",
    min(returns) >= 475,
    control=("A policy that was never trained solves it, too.", untrained >= 475),
)

# %% [markdown]
# And this is what it looks like, before and after. The first row is a policy that was never
# trained.

# %%
alone = make_envs("CartPole-v1", num_envs=1)
before = record_episode(fresh.policy, alone, seed=1, greedy=False)
after = record_episode(runs[0].networks.policy, alone, seed=1)
show(
    figures.poles({"before": before.numpy(), "after": after.numpy()}, at=(0, 10, 20, 30, 150, 450)),
    alt="Two strips of frames. Before training the pole tips over and the later frames say so; "
    "after training it still stands upright at step 450.",
)

# %% [markdown]
# ## The price of a sample
#
# K epochs get more out of a rollout, and cost K times the squeeze. Is that a good bargain? It depends on
# what a sample costs. CartPole's steps are computed in microseconds; a robot's step takes as long as it
# takes, and a language model's answer costs seconds of a large machine.
#
# Look first at where the time goes. A function in the slot `collect` that holds a stopwatch, and three
# iterations each with K = 1, 4 and 16:

# %%
spent = []


def timed_collect(envs, policy, carry, *, num_steps, generator, out):
    began = time.process_time()
    settings = {"num_steps": num_steps, "generator": generator, "out": out}
    collected = collect_rollout(envs, policy, carry, **settings)
    spent.append(time.process_time() - began)
    return collected


# %%
shares = {}
for num_epochs in (1, 4, 16):
    spent.clear()
    few = replace(config, num_epochs=num_epochs, total_steps=3 * config.batch_size)
    began = time.process_time()
    train(few, parts=Parts(collect=timed_collect))
    shares[num_epochs] = sum(spent) / (time.process_time() - began)

# %% [markdown]
# How many per cent it is depends on your machine. That it falls does not:

# %%
claim(
    "training_loop.shares",
    "Collecting takes more than 40 % of the time at K = 1, and less than a third at K = 16.",
    shares[1] > 0.4 and shares[1] > shares[4] > shares[16] and shares[16] < 1 / 3,
    control=(
        "Its share is the same at all K, since a rollout is a rollout.",
        shares[16] > 0.8 * shares[1],
    ),
)

# %% [markdown]
# Suppose each step of the environment had a price c, in time, on top of what CartPole's own takes. The time
# until a task is solved would be
#
# $$\text{time}(c) = \text{time for computing} + c\cdot\text{environment steps}$$
#
# Few epochs need little computing per step, and many steps. Which of 1, 2, 4, 8 and 16 epochs is best if a
# step is free?

# %%
predict("training_loop.free_steps", None, unit="epochs")

# %% [markdown]
# A study of it was run once and recorded: CartPole, 16 seeds for each K. Each K got the same tuning, four
# learning rates on four seeds of their own, which is a rough choice; within a run the rate is constant. A run
# is over when its likeliest actions first pass a test, 475 on average over 20 episodes. The tests are not
# counted.

# %%
study = recorded("price")
print(study["command"])
prices = torch.logspace(-3, 1, 200, dtype=torch.float64).numpy()
show(
    figures.price(study, prices),
    alt="Three panels for K from 1 to 16. Environment steps until solved fall with K, with much scatter "
    "between the seeds. CPU seconds rise, and the share of collecting falls. Over the price of a step, "
    "small K are best at the left, large K at the right.",
)

# %% [markdown]
# A dot is a seed, a blue line the median. In the right panel each line is the time of one K, divided by that
# of the best; the words at the bottom name the best. Three dots lie at 2,048 steps: those runs passed after a
# single rollout. Such a policy is nearly a coin still; its likeliest actions happen to be right, and the next
# iterations may spoil them. Who stops at the first pass collects some luck.

# %%
epochs, steps, seconds, _ = figures.price_table(study)
compare("training_loop.free_steps", epochs[seconds.argmin()], unit="epochs")

# %% [markdown]
# One epoch takes 5 % longer than two, which is nothing beside the scatter: take both as right. Sixteen
# save samples, and cost time:

# %%
claim(
    "training_loop.saves_samples",
    "16 epochs need less than 85 % of the steps of one epoch, and more than 1.5 times its seconds.",
    steps[-1] < 0.85 * steps[0] and seconds[-1] > 1.5 * seconds[0],
    control=(
        "16 epochs take less time than one, since fewer samples are needed.",
        seconds[-1] < seconds[0],
    ),
)

# %% [markdown]
# And as steps become dear, the best K moves. How much of that is luck of the seeds? Draw 16 of the 16
# seeds, with repetition, and compare the medians of two K; do it a thousand times.


# %%
def quicker(one, other, price):  # ms; in which share of the draws `one` is quicker
    draw, medians = torch.Generator().manual_seed(1), []
    for num_epochs in (one, other):
        runs = study["runs"][str(num_epochs)]
        times = [run["cpu_seconds"] + price / 1000 * run["env_steps"] for run in runs]
        rows = torch.randint(len(runs), (1000, len(runs)), generator=draw)
        medians.append(torch.tensor(times)[rows].quantile(0.5, dim=1))
    return (medians[0] < medians[1]).double().mean()


# %%
claim(
    "training_loop.best_moves",
    "If a step is free 1 epoch is quicker than 16, and at 10 ms it is slower: in 95 % of the draws.",
    quicker(1, 16, 0.0) > 0.95 and quicker(16, 1, 10.0) > 0.95,
    control=("At 10 ms 16 epochs are as surely quicker than 2.", quicker(16, 2, 10.0) > 0.95),
)

# %% [markdown]
# So read the picture as a trend: epochs buy samples with computing, and the dearer a sample, the more epochs
# are worth it. Between neighbours these seeds decide nothing. Nor do they show where the bargain ends, since
# 16 is the largest K that was tried. End it must: the clip lets the policy go only so far, and epochs that
# move nothing save nothing. For the large models of lesson 14 collecting is most of the work.

# %% [markdown]
# ## What breaks it
#
# Reinforcement learning fails silently: a wrong program still runs, and often still learns a
# little. **Probes** are environments so small that you know the answer before training: episodes of
# one or two steps, and a true value for every observation. Each asks one question.

# %%
print(f"{'probe':22} {'observation':>11}  true value  best action")
for name, rule in PROBES.items():
    for place, value in rule.values.items():
        best = rule.actions.get(place, "any")
        print(f"{name:22} {place:11g}  {value(0.5):10g}  {best:>11}")

# %% [markdown]
# Values are for γ = 0.5. After a short training, compare what was learned with what is known. The
# critic must be within 0.15 of the true value at every observation, and the policy must prefer the
# best action.


# %%
def passes(name, parts):
    small = replace(config, total_steps=10 * config.batch_size, gamma=0.5)
    networks = train(small, envs=Probe(name, small.num_envs), parts=parts).networks
    for place, value in PROBES[name].values.items():
        if abs(networks.critic(torch.tensor([place])).item() - value(small.gamma)) > 0.15:
            return False
    best = PROBES[name].actions.items()
    return all(networks.policy.greedy(torch.tensor([place])) == action for place, action in best)


# %%
claim(
    "training_loop.probes",
    "All five probes pass.",
    all(passes(name, usual) for name in PROBES),
    control=(
        "A policy loss that is zero passes them, too.",
        passes("both", Parts(policy_loss=lambda log_probs, *rest: 0 * log_probs.sum())),
    ),
)

# %% [markdown]
# A test that cannot fail tells you nothing. So put a mistake into a slot: a sign the wrong way
# round in the policy's loss, or a discount that was forgotten. Which probes will notice? Think
# before you run the cell.


# %%
def wrong_sign(log_probs, log_probs_old, advantages, *, clip_epsilon):
    return -usual.policy_loss(log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon)


def no_discount(rewards, values, next_values, terminated, truncated, *, gae_lambda):
    flags = terminated, truncated
    return usual.advantages(rewards, values, next_values, *flags, gamma=1.0, gae_lambda=gae_lambda)


# %%
mistakes = {"wrong sign": Parts(policy_loss=wrong_sign)}
mistakes["no discount"] = Parts(advantages=no_discount)
for label, parts in mistakes.items():
    failed = [name for name in PROBES if not passes(name, parts)]
    print(f"{label:12} fails: {', '.join(failed)}")

# %% [markdown]
# Each mistake fails first where the part it breaks is needed for the first time. That is how you
# find a bug without staring at curves: run the probes in order, and look at the first that fails.
#
# ## Exercises
#
# [Six exercises](../exercises/08_training_loop.ipynb) wait for you: deal the batch, add up what is
# minimised, take one step of the optimiser, say when to stop, mend a squeeze whose clip does nothing, and
# predict the numbers of a run. And then the end of the first half of this course: the functions that you
# have written since lesson 04 train CartPole together. What is still missing is named, and the package's
# takes its place.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("training_loop.first_minibatch")

# %%
quiz("training_loop.frozen")

# %% [markdown]
# On the clip, and on what a sample costs:

# %%
quiz("training_loop.two_fractions")

# %%
quiz("training_loop.dear")

# %% [markdown]
# And on finding a bug:

# %%
quiz("training_loop.probe")

# %% [markdown]
# ## The stair
#
# Every part has its stair by now. Here are two of them live, on CartPole and with one seed each: the batch
# is used eight times without a ratio, and with ratio and clip. The learning rate stays as it is, since a
# falling one would hide what is missing.

# %% tags=["nbval-ignore-output"]
constant = replace(config, final_learning_rate=1.0, total_steps=30 * config.batch_size)
stairs = {"reuse without ratio": Parts(policy_loss=no_ratio), "+ clip": usual}
live = {name: train(constant, parts=parts, on_iteration=Watch()) for name, parts in stairs.items()}

# %%
show(
    figures.two_stairs(
        {name: (run["env_steps"], run["episode_return"]) for name, run in live.items()}, goal=475
    ),
    alt="Training returns of two runs. With the clip the return rises; without a ratio it stays low.",
)

# %% [markdown]
# One seed is no proof, so the claim is modest:

# %%
last = {name: run["episode_return"][-1] for name, run in live.items()}
claim(
    "training_loop.two_stairs",
    "With ratio and clip the last return in training is more than twice that of reuse alone.",
    last["+ clip"] > 2 * last["reuse without ratio"],
    control=(
        "Without a ratio it is nearly as high, since a good action stays a good action.",
        last["reuse without ratio"] > 0.9 * last["+ clip"],
    ),
)

# %% [markdown]
# And here is the whole staircase, from the first lesson to this one. The task is Acrobot: two rods hang from
# a pivot, you push at the joint between them, and each step costs 1 until the tip swings above a line. There
# are 16 seeds on each stair. Every stair had the same tuning, three learning rates on seeds of their own, and
# then 131,072 steps at its best one. The first three stairs take one optimiser step per batch, the last three
# 32. From the second stair on, the advantages are normalised. This was run once and recorded.

# %%
study = recorded("staircase")
print(study["command"])
show(
    staircase(study, upto="+ clip"),
    alt="Six stairs, one row each, with a dot per seed. Return at the end: REINFORCE mostly at −500, the "
    "baseline with a third there, GAE mostly near −90, reuse without ratio nearly all at −500 again, "
    "ratio and clip all near −85. 3, 9, 12, 4, 16 and 15 of 16 seeds solve it; with the clip the median needs "
    "the fewest steps.",
)

# %% [markdown]
# A seed has solved the task if its mean return in training reached −100. Read each row against the one above.
# How many seeds of each stair got there?

# %%
solved = {
    name: sum(run["steps_to_solve"] is not None for run in runs)
    for name, runs in study["runs"].items()
}
print(solved)

# %%
claim(
    "training_loop.staircase",
    "With GAE at least 8 seeds more get there than with REINFORCE, with the ratio 8 more than without.",
    solved["+ GAE"] >= solved["REINFORCE"] + 8
    and solved["+ ratio"] >= solved["+ reuse without ratio"] + 8,
    control=(
        "Reuse without the ratio brings more than GAE, since each sample is used 8 times.",
        solved["+ reuse without ratio"] > solved["+ GAE"],
    ),
)

# %% [markdown]
# From one stair to the next these seeds do not always decide: chance alone splits 9 and 12 of 16 as far apart
# nearly every second time.

# %% [markdown]
# And the clip? At its best learning rate the ratio alone does as well. At that rate both have the same mean in
# the tuning, to the tenth: the clip had next to nothing to do. Look at the tuning, where both were tried at
# rates that lie 20-fold apart. Each number is the mean return over a whole run:

# %%
for name in ("+ ratio", "+ clip"):
    tried = "   ".join(f"{rate}: {mean:.0f}" for rate, mean in study["tuning"][name].items())
    print(f"{name:8} {tried}")

# %%
spread = {
    name: max(tried.values()) - min(tried.values()) for name, tried in study["tuning"].items()
}
claim(
    "training_loop.clip_forgives",
    "Between the best and the worst rate the ratio alone loses over 200, the clip less than 20.",
    spread["+ ratio"] > 200 and spread["+ clip"] < 20,
    control=("Without the clip it forgives as much.", spread["+ ratio"] < 2 * spread["+ clip"]),
)

# %% [markdown]
# So the last stair is not a higher one. It is a handrail: from a quarter of its best rate to five times that,
# it hardly matters here which one you take. Farther out it does: the sick run above had the clip, too. Who has
# ever tuned a learning rate knows what that
# is worth. (Two seeds per rate are few. Lesson 11 will ask the same with many more.)

# %% [markdown]
# ## What you have now
#
# - Four stages: collect, score, squeeze, renew. What is scored stays frozen while it is squeezed; to score
#   anew is a variant that needs no new rollout.
# - Ratios are 1 on the first minibatch only. A sample has one turn per epoch; its ratio moves at every step,
#   and it may be silent at most of its turns.
# - Reuse buys samples with computing. What a sample costs decides how many epochs are worth it.
# - Every variant, and every mistake, is another function in `Parts`.
# - A claim about learning needs several seeds; a claim about a program needs a probe.
#
# The modules behind this page: [training_loop](../ppo_lessons/training_loop/__init__.py),
# [rollout](../ppo_lessons/rollout/__init__.py), [gae](../ppo_lessons/gae.py),
# [clip](../ppo_lessons/clip.py). From a shell, `./course train --help` trains on other
# environments, with a progress bar and checkpoints.
