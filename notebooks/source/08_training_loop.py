# %% [markdown]
# # The training loop
#
# **How do the parts fit?**
#
# A policy that acts. A critic that says what to expect. Advantages, ratios, the clip. Each of them
# answers one problem. Here you put them together into one loop, open the loop while it runs, and
# then break it on purpose to see which part holds what.
#
# The task is CartPole: a pole stands on a cart, the agent pushes left or right, and earns 1 for
# every step the pole stands, at most 500. The smallest task on which everything shows.

# %% tags=["nbval-ignore-output"]
from dataclasses import replace

import torch

from ppo_lessons import Watch, claim, compare, predict, quiz, setup, show, show_source
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.envs import PROBES, Probe, make_envs
from ppo_lessons.figures import training_loop as figures
from ppo_lessons.gae import compute_gae
from ppo_lessons.networks import make_networks
from ppo_lessons.reinforce import reinforce_loss
from ppo_lessons.rollout import collect_rollout, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, make_optimizer, record_episode
from ppo_lessons.training_loop.train import iterate, score, train
from ppo_lessons.training_loop.update import update

setup()

# %% [markdown]
# ## The words
#
# - A **state** is the situation the agent is in; what it sees of it is the **observation**. After each
#   action it earns a **reward**. An **episode** is one game from start to end, and its **return** is
#   the sum of its rewards.
# - The **policy** π gives every action a probability, and the agent draws its actions from it. π_old is
#   the policy that collected the data. A **log-probability** is the logarithm of such a probability.
# - The **critic** V says how much reward it expects from a state on. Later rewards count less: each
#   step multiplies them by γ.
# - The **advantage** of an action is what came of it, minus what the critic had expected. Over a single
#   step that is the **TD error**, δ = reward + γ·V(next state) − V(state). **GAE**, the usual estimate,
#   adds up the TD errors that follow, each weighted by one more factor γλ; so λ says how long to wait
#   before the critic is believed about the rest.
# - The **ratio** of an action is π(a | s) / π_old(a | s): how much more likely it is now than when it
#   was drawn.
# - The **clip** stops paying for an action once its ratio has moved by ε in the direction that its
#   advantage asks for.
#
# Each of these gets a lesson of its own. Three questions show whether they are clear; a wrong answer
# tells you why, and the list above has what you need. Answer with a letter as the second argument,
# for instance `quiz("training_loop.review_ratio", "a")`.

# %%
quiz("training_loop.review_ratio")

# %%
quiz("training_loop.review_clip")

# %% [markdown]
# And one on advantages:

# %%
quiz("training_loop.review_lambda")

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
# comes from generators that are passed in, so a seed fixes a run.

# %%
config = PPOConfig(num_envs=32, num_steps=64, num_epochs=8, num_minibatches=4, total_steps=100_000)
generator = torch.Generator().manual_seed(1)
envs = make_envs("CartPole-v1", config.num_envs)
networks = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator)

# %% [markdown]
# The policy now acts for 64 steps in each copy. What happened is kept in a **rollout**: time runs
# along the first axis, the copies along the second. It holds facts only, and no opinion of a
# critic.

# %%
carry = start_carry(envs, seed=1)
rollout, carry = collect_rollout(
    envs, networks.policy, carry, num_steps=config.num_steps, generator=generator
)
for name in ("observations", "next_observations", "actions", "rewards", "terminated", "truncated"):
    print(f"{name:18} {tuple(getattr(rollout, name).shape)}")

# %% [markdown]
# When a pole falls, that copy starts anew within the same step. So what follows an end belongs to
# another episode. The rollout therefore keeps two observations per step: the one the action was
# chosen on, and the one the step reached, *before* any reset.
#
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
# ## Stage two: score
#
# The critic says what it expected in each state, and in each state that a last step reached. GAE
# compares that with what came. Then time has done its work, and all samples go into one flat heap.
# In the code, `parts.call` calls the function that fills a slot of the loop; `compute_gae` is in the
# slot `advantages`.

# %%
show_source(score)

# %%
batch = score(rollout, networks, config, Parts())
assert torch.allclose(batch.returns, batch.advantages + batch.values_old)
print(f"a batch of {len(batch)} samples, each with its own advantage and its own target")

# %% [markdown]
# The target of the critic is the advantage plus what it had expected: what it should have said.
#
# From here on these numbers are **frozen**. The networks will move; the advantages, the targets
# and the old log-probabilities will not.
#
# ## Stage three: squeeze
#
# The batch is used for 8 **epochs**. In each, its 2,048 samples are shuffled and dealt into 4
# **minibatches**, and each minibatch makes one step of the optimiser: 32 steps in all.
#
# The loss of the policy is the clipped surrogate, for ratio r and advantage Â:
#
# $$-\text{mean}\left(\min\left(r\hat{A},\;\text{clip}(r, 1-\varepsilon, 1+\varepsilon)\,\hat{A}\right)\right)$$
#
# It stops paying once a ratio has moved by ε in the direction that the advantage asks for; lesson 04
# is about this line. Beside it stand half the squared error of the critic, and a bonus for entropy.
#
# Before each step, look at the ratios. On how many of the 32 minibatches will *all* of them be
# exactly 1?

# %%
predict("training_loop.all_ones", None, unit="of 32")

# %%
frozen = batch.advantages.clone(), batch.log_probs_old.clone()
optimizer = make_optimizer(networks, learning_rate=config.learning_rate)
stats = update(networks, optimizer, batch, config, parts=Parts(), generator=generator)
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
    seen = update(networks, optimizer, mistaken, one_epoch, parts=Parts(), generator=generator)
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
#
# ### What the 32 steps did
#
# Four numbers are taken before each step. The largest distance of a ratio from 1. An estimate of
# the **KL divergence** from the old policy to the new one, `kl_k3`: it is 0 while they are the same
# and grows as they part; its unit is the nat. And two fractions. **Outside**: the share of samples whose ratio left 1 ± 0.2. **Silent**: the
# share whose gradient is zero, since they went out on the side that their advantage asked for.

# %%
show(
    figures.one_squeeze(
        stats.max_ratio_deviation.numpy(),
        stats.kl_k3.numpy(),
        stats.fraction_outside.numpy(),
        stats.fraction_zero_gradient.numpy(),
    ),
    alt="Three curves over the 32 minibatches of one squeeze. The largest distance of a ratio from "
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
# ## How often can you squeeze?
#
# Data is dear, so use it for 32 epochs. What could go wrong? Try it with three policy losses. In
# this course a variant is a function, put into one of the loop's slots by `Parts`. Two of these you
# write yourself: the ratio without the clip, and no ratio at all. The latter is the loss of
# REINFORCE, log-probability times advantage, as if the data were fresh.


# %%
def ratio_without_clip(log_probs, log_probs_old, advantages):
    return -((log_probs - log_probs_old).exp() * advantages).mean()


def no_ratio(log_probs, log_probs_old, advantages):
    return reinforce_loss(log_probs, advantages)


# %% [markdown]
# Each starts from the same networks and the same first rollout. The only difference is the loss.

# %%
losses = {"clip": Parts(), "ratio, no clip": Parts(policy_loss=ratio_without_clip)}
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
    "a hundred times larger.",
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
# ## Stage four: renew
#
# The policy that was trained takes over, and the data is thrown away. It has to be: the next
# rollout is drawn by the new policy, and on it all ratios are 1 again.

# %%
rollout, carry = collect_rollout(envs, networks.policy, carry, num_steps=64, generator=generator)
log_probs, _ = networks.policy.evaluate(rollout.observations, rollout.actions)
claim(
    "training_loop.renew",
    "The new policy is the old policy of the next rollout.",
    torch.allclose(log_probs, rollout.log_probs_old, atol=1e-5),
    control=(
        "It differs from it after one squeeze.",
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
# ## A run, and how to read it
#
# Now let it run, for 100,000 steps, with new networks. The learning rate falls to zero on the way.

# %% tags=["nbval-ignore-output"]
history = train(config, on_iteration=Watch())

# %%
show(
    figures.diagnostics(history["env_steps"], {name: history[name] for name in history.rows[0]}),
    alt="Six panels over the environment steps: return, KL per iteration, the two clip fractions, "
    "entropy, the critic's error and its explained variance.",
)

# %% [markdown]
# | panel | what it measures | what to expect | what is alarming |
# | --- | --- | --- | --- |
# | return | reward per episode, mean of the last 100 | it rises, with setbacks | flat from the start |
# | `kl_k3` | how far one iteration moved the policy | 0.001 to 0.03 here, less as the learning rate falls | a jump to 0.1 and more |
# | outside, silent | samples that left 1 ± ε, and those of them that no longer push | a few percent, with peaks | none at all, or half of them, again and again |
# | entropy | how undecided the policy is: ln 2 = 0.69 for a coin, 0 for certainty | it falls, slowly | near 0 while the return is low |
# | value loss | squared error of the critic | it grows with the returns before it falls | growth without end |
# | explained variance | share of the returns' spread that the critic accounts for | it rises | far below 0 late in a run |
#
# Explained variance comes in two kinds. The line compares the critic with its *own targets*, and
# it had a hand in those. The points compare it with *what came*: returns of episodes whose end
# lies within the rollout, which no critic has touched. They are few, and they are the short ones,
# so the points jump; but they are not flattered. Once all episodes last 500 steps, no points are
# left, and the line falls to 0: when all returns are alike there is nothing to explain.
#
# The critic looks better by its own targets than by what came:

# %%
kinds = zip(history["ev_lambda"], history["ev_monte_carlo"], strict=True)
flattered = [own > came for own, came in kinds if own is not None and came is not None]
claim(
    "training_loop.flattered",
    "On most iterations the critic explains more of its own targets than of what came.",
    sum(flattered) > 0.6 * len(flattered),
    control=("It explains what came at least as well.", sum(flattered) <= 0.5 * len(flattered)),
)

# %% [markdown]
# And the policy, undecided at first, becomes less so in small steps:

# %%
entropy = history["entropy"]
claim(
    "training_loop.small_steps",
    "Entropy falls from ln 2 = 0.69, and no iteration moves the policy by 0.1 nats.",
    0.6 < entropy[0] < 0.6932 and entropy[-1] < 0.63 and max(history["kl_k3"]) < 0.1,
    control=("Entropy rises as the agent learns.", entropy[-1] > entropy[0]),
)

# %% [markdown]
# ## One run is no run
#
# The same program with another seed gives another curve. So a claim about learning needs several.
# Four more seeds follow, so that there are five. After training, each policy plays 100 whole
# episodes in which it takes its most likely action. How many steps does the *worst* of the five
# hold the pole, on average? (At most 500.)

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
tests = make_envs("CartPole-v1", num_envs=100)
returns = [evaluate(run.networks.policy, tests, seed=100).mean().item() for run in runs]
compare("training_loop.worst_of_five", min(returns), unit="steps")

# %%
show(
    figures.seeds([(run["env_steps"], run["episode_return"]) for run in runs], goal=475),
    alt="Training returns of five seeds over the environment steps, each thin, their median thick, "
    "with a dashed line at 475.",
)

# %% [markdown]
# CartPole counts as solved at a mean of 475. The curves lag behind that: they average over the last
# 100 episodes, old ones included, and in training the policy draws its actions instead of taking
# the most likely one.

# %%
fresh = make_networks((4,), 2, hidden_sizes=(64, 64), generator=torch.Generator().manual_seed(1))
untrained = evaluate(fresh.policy, tests, seed=100, greedy=False).mean()
claim(
    "training_loop.solved",
    "All five seeds solve CartPole: 475 or more over 100 greedy episodes.",
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
    all(passes(name, Parts()) for name in PROBES),
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
    return -clipped_surrogate_loss(log_probs, log_probs_old, advantages, clip_epsilon=clip_epsilon)


def no_discount(rewards, values, next_values, terminated, truncated, *, gae_lambda):
    flags = terminated, truncated
    return compute_gae(rewards, values, next_values, *flags, gamma=1.0, gae_lambda=gae_lambda)


# %%
mistakes = {"wrong sign": Parts(policy_loss=wrong_sign)}
mistakes["no discount"] = Parts(advantages=no_discount)
for label, parts in mistakes.items():
    failed = [name for name in PROBES if not passes(name, parts)]
    print(f"{label:12} fails: {', '.join(failed)}")

# %% [markdown]
# Each mistake fails exactly where the part it breaks is needed for the first time. That is how you
# find a bug without staring at curves: run the probes in order, and look at the first that fails.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("training_loop.first_minibatch")

# %%
quiz("training_loop.frozen")

# %% [markdown]
# On the clip, and on using data again:

# %%
quiz("training_loop.two_fractions")

# %%
quiz("training_loop.no_ratio")

# %% [markdown]
# And on finding a bug:

# %%
quiz("training_loop.probe")

# %% [markdown]
# ## What you have now
#
# - Four stages: collect, score, squeeze, renew. What is scored stays frozen while it is squeezed.
# - Ratios are 1 on the first minibatch only. The clip takes away the wish to go further; it is no
#   wall.
# - Every variant, and every mistake, is another function in `Parts`.
# - A claim about learning needs several seeds; a claim about a program needs a probe.
#
# The modules behind this page: [training_loop](../ppo_lessons/training_loop/__init__.py),
# [rollout](../ppo_lessons/rollout/__init__.py), [gae](../ppo_lessons/gae.py),
# [clip](../ppo_lessons/clip.py). From a shell, `./course train --help` trains on other
# environments, with a progress bar and checkpoints.
