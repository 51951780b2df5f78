# %% [markdown]
# # A full run
#
# **How do I run the whole thing, fast?**
#
# You have the loop of [lesson 08](08_training_loop.ipynb). Nothing in it will change. The same `update` that you
# put together there trains four thousand environments at once, on a processor core, on a GPU, on several of
# them. What changes is how often Python has to speak. Here you find out what a call costs, why a million
# environment steps a second are not a million *training* steps, what keeps a fast machine waiting, and what
# several machines must tell each other. At the end you see an agent play Breakout that learned it from bits,
# on one core, in a quarter of an hour.
#
# All of it runs without a GPU: the same code, smaller. What only a GPU could show is marked **not yet
# measured**. No speed stands here as measured that nobody has measured; published peaks and assumptions are called
# so.
#
# The words that you need. An **iteration** is **collect**, **score**, **squeeze**, **renew**: N environments make
# T steps, the critic and GAE say what was good, the batch of N·T samples is used for K epochs of M minibatches, and is
# thrown away. The **observation** that a step reached, before any **reset**, is kept, since the critic must see
# it. A step **terminated** if the task is over, and was **truncated** if a time limit cut it.

# %% tags=["nbval-ignore-output"]
from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import torch

from ppo_lessons import claim, compare, gpu_run, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.envs import BatchedEnvs, CartPole
from ppo_lessons.envs.equality import compare_steps
from ppo_lessons.figures import gpu_run as figures
from ppo_lessons.gae import gae_by_scan, gae_by_the_book, normalize_advantages
from ppo_lessons.rollout import collect_rollout, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, score, squeeze
from ppo_lessons.training_loop.update import minibatch_loss
from ppo_lessons.widgets import ThroughputLedger

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("gpu_run.review_stages")

# %%
quiz("gpu_run.review_ends")

# %% [markdown]
# And one on the price of a sample:

# %%
quiz("gpu_run.review_price")

# %% [markdown]
# ## One call, many games
#
# gymnasium's CartPole is a Python object: one pole, one call for each step, a few microseconds of arithmetic
# and more for Python itself. N of them make N calls. Look at what the arithmetic is, though: a few sums and
# products of four numbers. Written with tensors of N rows, the same formulas move N poles in one call.
#
# Such a **batched** environment is made from three pure functions: how an episode starts, what an action does,
# what is seen. No copy waits for another, so no row may need an `if` of its own: `torch.where` takes its
# place. That is all you need to write a task of your own. Here is one in 15 lines, a walk to a door:


# %%
class Walk:
    """Stand between two walls; the door, which pays 1, is on the right."""

    observation_space, time_limit = gymnasium.spaces.Box(0, 5, (1,)), 30
    action_space = gymnasium.spaces.Discrete(2)

    def start(self, num_envs, *, generator, dtype):
        place = torch.randint(4, (num_envs,), generator=generator, device=generator.device)
        return {"place": place.to(dtype)}

    def advance(self, state, actions, *, generator):
        place = (state["place"] + 2 * actions - 1).clamp(min=0)
        return {"place": place}, (place == 5).to(place.dtype), place == 5

    def observe(self, state):
        return state["place"].unsqueeze(-1)


# %% [markdown]
# `BatchedEnvs(Walk(), 4096)` makes 4,096 of them, with clocks, time limits and new episodes, on any device.
#
# Is such a rewriting right? If gymnasium has the task too, ask it. `compare_steps` sets both to the same state,
# takes one step on each side, and reports the largest difference. One step at a time: whole episodes
# would drift apart from rounding alone, since a pole that falls doubles every error. Two small functions tell
# it how gymnasium's environment is set and read.


# %%
def put(env, state):
    env.state, env.steps_beyond_terminated = np.array(list(state.values())), None


# %%
original = gymnasium.make("CartPole-v1", disable_env_checker=True).unwrapped
against = partial(compare_steps, env=original, put=put, seen=lambda env: np.array(env.state))
same = against(CartPole(), steps=3200)

# %% [markdown]
# For a control, a pole that is one per cent heavier:

# %%
heavier = CartPole()
heavier.POLE = 1.01 * CartPole.POLE
other = against(heavier, steps=640)
claim(
    "gpu_run.same_step",
    "Step by step the batched CartPole is gymnasium's: no flag differs, no number by 10⁻¹².",
    same.observations < 1e-12 and same.flags == 0 and same.rewards == 0,
    control=(
        "A pole one per cent heavier cannot be told from it either.",
        other.observations < 1e-12,
    ),
)

# %% [markdown]
# The other batched tasks of the course are held to gymnasium's in the same way, and Breakout to that of the
# package `minatar`, through every branch of its rules (`tests/test_envs_classic.py`, `tests/test_parity.py`).
#
# ## A step that starts anew
#
# Copies end at different times. Whoever ends starts a new episode within the same step, so that no row of
# the batch is wasted. What the episode had reached is kept beside it: two observations for each step, as in
# [lesson 07](07_rollout.ipynb).

# %%
envs = BatchedEnvs(CartPole(), 512)
envs.reset(seed=1)
for _ in range(40):  # a pole that is always pushed to the right
    step = envs.step(torch.ones(512, dtype=torch.int64))
    ended = step.terminated | step.truncated
    if ended.any():
        break

# %%
changed = (step.observations != step.next_observations).any(dim=1)
tipped = step.next_observations[ended, 2].abs()
claim(
    "gpu_run.both_kept",
    "Where an episode ended, the step has the tipped pole and the new one; elsewhere both are one.",
    (tipped > 0.2095).all()
    and (step.observations[ended, 2].abs() <= 0.05).all()
    and torch.equal(changed, ended),
    control=("When one copy ends, all copies start anew.", changed.all()),
)

# %% [markdown]
# ## What a call costs
#
# Stepping one pole takes a batched environment some fifty operations on tensors, and so does stepping a
# thousand. How much longer is a call for 1,024 copies than for one?

# %%
predict("gpu_run.call_of_many", None, unit="times as long")

# %% [markdown]
# Measured, the best of 40 tries; the numbers depend on your machine.


# %%
def seconds_of(call):
    cpu = torch.device("cpu")
    return min(gpu_run.timing.time_of(call, cpu) for _ in range(40))


# %% tags=["nbval-ignore-output"]
copies, cost = [4**power for power in range(8)], []
for count in copies:
    envs, pushes = BatchedEnvs(CartPole(), count), torch.ones(count, dtype=torch.int64)
    envs.reset(seed=1)
    cost.append(seconds_of(lambda envs=envs, pushes=pushes: envs.step(pushes)))
compare("gpu_run.call_of_many", cost[5] / cost[0], unit="times as long")

# %% [markdown]
# From one copy to 16,384:

# %%
show(
    figures.call_cost(copies, cost),
    alt="Time of a call over the number of copies, flat at first and rising later, far below a dashed "
    "line of one call for each. Beside it the steps a second, rising nearly in proportion.",
)

# %% [markdown]
# The flat part is the price of *asking*: Python calls torch, torch looks up which routine to run, checks shapes,
# makes room for a result. It is paid once for each operation, however many rows there are. So the first thing
# that makes a run fast is no better code for one pole. It is more poles.

# %%
claim(
    "gpu_run.price_of_asking",
    "A call for 1,024 copies takes less than 50 times as long as a call for one.",
    cost[5] < 50 * cost[0],
    control=(
        "It takes more than 500 times as long, since there is 1,024 times as much to do.",
        cost[5] > 500 * cost[0],
    ),
)

# %% [markdown]
# And the number of operations is the same. To count them, put a **dispatch mode** around the code: torch shows
# it every operation before it runs. It tells you on a laptop what a GPU would be asked for.


# %%
class Asked(torch.utils._python_dispatch.TorchDispatchMode):
    """Count the operations by name."""

    def __init__(self):
        super().__init__()
        self.names = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        self.names[name] = self.names.get(name, 0) + 1
        return function(*args, **(kwargs or {}))


# %%
def asked_by(call):
    with Asked() as asked:
        call()
    return asked.names


def one_step(count):
    envs, pushes = BatchedEnvs(CartPole(), count), torch.ones(count, dtype=torch.int64)
    envs.reset(seed=1)
    return asked_by(lambda: envs.step(pushes))


# %% [markdown]
# For 4,096 copies and for one:

# %%
claim(
    "gpu_run.same_operations",
    "Stepping 4,096 copies asks for exactly the operations that stepping one asks for.",
    one_step(4096) == one_step(1),
    control=(
        "4,096 copies ask for more operations than one.",
        sum(one_step(4096).values()) > sum(one_step(1).values()),
    ),
)

# %% [markdown]
# ## A million steps are not a million steps
#
# You will read of environments with a million steps a second, on one core. That is true: where this
# page was made, the right panel above passes a million. Now train with them, 1,024 copies. What share of the time
# does the environment take?

# %%
predict("gpu_run.share_of_environment", None, unit="%")

# %% [markdown]
# One iteration of 32 steps, and the same 32 steps without anybody who learns. Of each, the median of five:

# %%
config = PPOConfig(
    env="CartPole", num_envs=1024, num_steps=32, num_epochs=4, num_minibatches=4,
    learning_rate=2.5e-3, total_steps=10 * 32 * 1024,
)  # fmt: skip
state, parts = gpu_run.start_on_device(config, "CartPole")
stages = gpu_run.time_stages(state, parts, 5)
pushes = torch.ones(1024, dtype=torch.int64)
alone = np.median([
    gpu_run.timing.time_of(lambda: [state.envs.step(pushes) for _ in range(32)], state.envs.device)
    for _ in range(5)
])  # fmt: skip

# %% tags=["nbval-ignore-output"]
iteration = sum(stages.values())
compare("gpu_run.share_of_environment", 100 * alone / iteration, unit="%")

# %% [markdown]
# The share itself is a matter of the machine. That it is small is not:

# %%
claim(
    "gpu_run.not_the_environment",
    "The environment takes less than a quarter of an iteration: without it, at most 4/3 as fast.",
    alone < iteration / 4,
    control=(
        "It takes more than half, so twice the speed is to be had there.",
        alone > iteration / 2,
    ),
)

# %% [markdown]
# Times add up, speeds do not. Whoever makes a part ten times as fast gains nine tenths of what
# that part took, and no more.
# So where does the time go?
#
# ## The ledger
#
# Three things cost time, on any machine. **Arithmetic**: multiplications and additions, counted as **FLOPs**.
# **Memory**: bytes that are read and written. **Launches**: each operation has to be asked for. A machine has a
# speed for each of them, and no run is faster than the slowest of the three allows:
#
# $$\text{seconds} \;\ge\; \max\left(\frac{\text{FLOPs}}{\text{FLOPs a second}},\;
# \frac{\text{bytes}}{\text{bytes a second}},\; \text{launches}\cdot\text{seconds a launch}\right)$$
#
# The first follows from the sizes of the networks. A layer from m to n numbers makes m·n multiplications and as
# many additions. Policy and critic have 64 by 64 hidden units here. How many FLOPs does one environment step
# cost, with K = 4 epochs?

# %%
predict("gpu_run.flops", None, unit="thousand FLOPs")

# %%
cost_of = partial(gpu_run.iteration_cost, observation_size=4, num_actions=2, task=CartPole())
work = cost_of(config)
compare("gpu_run.flops", round(work.flops / work.env_steps / 1000), unit="thousand FLOPs")

# %% [markdown]
# By hand, as in exercise 2: both networks forwards, and backwards twice that, but for the first layers, since
# nobody needs the slope of an observation.

# %%
policy, critic = 2 * (4 * 64 + 64 * 64 + 64 * 2), 2 * (4 * 64 + 64 * 64 + 64 * 1)
backwards = 2 * (policy + critic) - 2 * (2 * 4 * 64)
by_hand = policy + 2 * critic + 4 * (policy + critic + backwards)
claim(
    "gpu_run.by_hand",
    "An environment step costs what you count by hand, and nine tenths of it in the squeeze.",
    work.flops == by_hand * work.env_steps and work.stages["squeeze"].flops > 0.88 * work.flops,
    control=(
        "Collecting is most of it, since the environment is in there.",
        work.stages["collect"].flops > 0.5 * work.flops,
    ),
)

# %% [markdown]
# What happens to the three if there are twice as many copies?

# %%
twice = cost_of(replace(config, num_envs=2048, total_steps=10 * 32 * 2048))
claim(
    "gpu_run.launches_stay",
    "Twice the copies make twice the FLOPs, and not one launch more.",
    twice.flops == 2 * work.flops and twice.launches == work.launches,
    control=("They make twice the launches.", twice.launches == 2 * work.launches),
)

# %% [markdown]
# That is the whole secret of many copies, on a GPU even more than here: a launch there costs some microseconds, so we
# assume. In one and a half of them an H200 could do a hundred million FLOPs, by its published peak.
#
# Now measure this machine, and lay cost, limits and time side by side. First 8 copies, then 4,096:

# %% tags=["nbval-ignore-output"]
machine = gpu_run.limits("cpu", seconds=1.0)
entries = {}
for count in (8, 4096):
    sized = replace(config, num_envs=count, total_steps=10 * 32 * count)
    run, its_parts = gpu_run.start_on_device(sized, "CartPole")
    entries[count] = gpu_run.ledger(cost_of(sized), machine, gpu_run.time_stages(run, its_parts, 1))

# %% [markdown]
# With 8 copies:

# %%
show(
    figures.ledger(entries[8], copies=8, num_steps=32),
    alt="With 8 copies: a row for each stage with marks for the three limits and the measured time. "
    "The launches lie furthest to the right among the limits in each row.",
)

# %% [markdown]
# And with 4,096:

# %%
show(
    figures.ledger(entries[4096], copies=4096, num_steps=32),
    alt="With 4,096 copies the launches lie far to the left of the other two limits, in each row.",
)

# %% [markdown]
# The black line is what it took. The mark furthest to the right is the limit that **binds**. It changes with the
# number of copies:

# %%
few, many = entries[8][-1], entries[4096][-1]
claim(
    "gpu_run.what_binds",
    "With 8 copies the launches bind; with 4,096 they are the least of the three.",
    few.binds == "launches" and many.launches < min(many.arithmetic, many.memory),
    control=("With 8 copies it is the arithmetic that binds.", few.binds == "arithmetic"),
)

# %% [markdown]
# And how near to its limit is the best case, many copies on one core?

# %%
claim(
    "gpu_run.room_is_left",
    "Even with 4,096 copies the core spends more than 1.2 times what the arithmetic needs.",
    many.seconds > 1.2 * many.arithmetic,
    control=(
        "It spends less than that, for torch is as fast as the core.",
        many.seconds < many.arithmetic,
    ),
)

# %% [markdown]
# What is between the two: tanh, whose price is not in the FLOPs of the products, copies of rows for the
# minibatches, memory that is written by one operation and read by the next.
#
# ## Do not ask
#
# A GPU works behind your back. Python asks for an operation and goes on at once, while the device works
# through a queue. As long as the queue is not empty, the device never waits for Python. Two things empty it. One
# you have met: operations so small that the device is done before Python has asked for the next. The other is a
# *question*. `loss.item()`, `if ended.any():`, `print(loss)`, a mask that picks rows: each needs a value, so Python
# stops until all work before it is done, and the device then stops until Python has asked for more.
#
# The squeeze of the course asks nothing. The losses and the measures of all its steps are tensors, and are
# read once, after the iteration. Count the questions in one squeeze of 4 epochs: without a rule for
# stopping early, and with the one of lesson 03, which needs the KL after each epoch. The count sees `.item()`, `bool()`
# and `float()`. A mask would escape it, since that is an `index` like any other; here is none, for all rows are valid.

# %%
state, parts = gpu_run.start_on_device(
    replace(config, num_envs=64, total_steps=32 * 64), "CartPole"
)
rollout, _ = collect_rollout(
    state.envs, state.networks.policy, state.carry, num_steps=32, generator=state.generator
)
batch = replace(score(rollout, state.networks, config, parts), valid=None)


# %%
def questions(parts):
    tools = {"parts": parts, "generator": state.generator}
    asked = asked_by(lambda: squeeze(state.networks, state.optimizer, batch, config, **tools))
    return asked.get(
        "_local_scalar_dense", 0
    )  # what .item(), bool() and float() of a tensor come to


# %% [markdown]
# A rule that looks at the KL and never stops asks its question all the same:

# %%
early = Parts(stop_epochs=lambda kl_k1: kl_k1 > 100.0)  # so large that it never stops
claim(
    "gpu_run.asks_nothing",
    "The squeeze asks for no value; with a rule that may stop it, once in each of 4 epochs.",
    questions(parts) == 0 and questions(early) == 4,
    control=("With the rule it asks before each of the 16 steps.", questions(early) == 16),
)

# %% [markdown]
# On a CPU a question costs nothing much, so the course asks there where it makes things clearer: values are
# checked, and an environment looks whether anybody ended. On a device the same code takes the other branch.
#
# ## A graph: ask once
#
# With no question inside, an iteration is always the same list of operations on the same memory. Then why ask for
# each of them again? A **CUDA graph** writes the list down once, with the addresses of all tensors, and
# replays it with a single launch. What remains for each operation is what the device itself needs to start it.
#
# Because addresses are written down, whatever goes from one iteration to the next must stay in its place: weights,
# the optimiser's memory, the states of the environments, the learning rate, which becomes a tensor. `captured`
# gives such an iteration. On a CPU nothing can be recorded, and the same function runs **eagerly**, operation by operation. So it can
# be held to the usual loop, which is what makes it trustworthy on a GPU.

# %%
small = replace(config, num_envs=32, total_steps=3 * 32 * 32)
usual = gpu_run.train_on_device(small, "CartPole")
state, parts = gpu_run.start_on_device(small, "CartPole")
once = gpu_run.captured(state, parts)
for _ in range(3):
    once()


# %%
def laid_flat(networks):
    return torch.cat([tensor.detach().flatten() for tensor in networks.parameters()])


# %% [markdown]
# Three iterations each, from the same seed. For a control, another seed:

# %%
elsewhere = gpu_run.train_on_device(replace(small, seed=2), "CartPole")
apart = (laid_flat(state.networks) - laid_flat(usual.networks)).abs().max()
claim(
    "gpu_run.twin",
    "After three iterations, the function that a graph is made of has the weights of the usual loop.",
    apart < 1e-6,
    control=(
        "So has a run with another seed.",
        (laid_flat(elsewhere.networks) - laid_flat(usual.networks)).abs().max() < 1e-6,
    ),
)

# %% [markdown]
# How much a graph gains on a GPU: **not yet measured**. One command measures it, and all else that this lesson says
# of GPUs. It limits itself to eight minutes: `python -m benchmarks.gpu`.
#
# ## A recurrence in seven passes
#
# GAE walks backwards, row by row: 128 rows are 128 times some sixteen small operations, each row waiting for the one
# before. On a core that is little: 4 ms for 128 rows of 1,024 copies, where the whole iteration takes over a second
# (`python -m benchmarks.speed`). On a device that could do all rows at once it would be a long wait.
#
# The trick is old (Hillis and Steele, 1986). Write each row as a pair: what it adds, and how much of what
# follows it keeps. Two neighbours can be joined to one pair: (s, w) and (s', w') make (s + w·s', w·w'). In the
# first pass every row is joined with the next, in the second with what begins two rows on, then four. After 7
# passes each row holds 128. This is a **scan**. Where an episode ends nothing of what follows is kept: w is 0,
# and no more is to be done about an end. (Whether V of what a step reached counts was settled in its TD error.)

# %%
show_source(gae_by_scan)

# %%
draw = torch.Generator().manual_seed(1)
rewards, values, reached = torch.randn(3, 128, 8, generator=draw, dtype=torch.float64)
terminated, truncated = torch.rand(2, 128, 8, generator=draw) < 0.02
table = rewards, values, reached, terminated, truncated
settings = {"gamma": 0.99, "gae_lambda": 0.95}
row_by_row, scanned = (gae(*table, **settings) for gae in (gae_by_the_book, gae_by_scan))

# %% [markdown]
# Half of the ends in this table are time limits. For a control, leave those out:

# %%
endless = gae_by_scan(*table[:4], torch.zeros_like(truncated), **settings)
claim(
    "gpu_run.scan",
    "The scan gives the advantages of the walk backwards to 10⁻¹², ends included.",
    (scanned - row_by_row).abs().max() < 1e-12,
    control=(
        "It does so if the ends by a time limit are left out.",
        (endless - row_by_row).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# Seven passes instead of 128 steps. With torch 2.13 that is 90 operations instead of 2,051:

# %%
asked = [
    sum(asked_by(lambda gae=gae: gae(*table, **settings)).values())
    for gae in (gae_by_the_book, gae_by_scan)
]
claim(
    "gpu_run.scan_asks_less",
    "The scan asks for less than a tenth of the operations.",
    10 * asked[1] < asked[0],
    control=(
        "It asks for less than a thirtieth.",
        30 * asked[1] < asked[0],
    ),
)

# %% [markdown]
# On one core the rival is `compute_gae`, the walk with one operation a row. With 64 copies the scan wins, 0.34 against
# 0.57 ms. With 1,024 they are even at 1.3 ms (`python -m benchmarks.speed`). With 16,384 it takes over twice as long,
# since it reads all the tables seven times. Exercise 5 has one with a bug.
#
# ## More copies, more steps. And sooner done?
#
# Many copies make steps cheap. Do they make *learning* cheap? Here is CartPole on one core with 8 to 2,048 copies,
# the same T, K and M for all. A run is done when its likeliest actions pass three tests in a row. Which N is done
# first, in seconds?

# %%
predict("gpu_run.first_done", None, unit="copies")

# %% [markdown]
# Five seeds for each N, run once and recorded:

# %%
study = recorded("environments")
print(study["command"])
show(
    figures.environments(study),
    alt="Three panels over the number of copies, with a dot per seed. Environment steps until solved rise in "
    "proportion to the number of copies; the iterations stay near 35; CPU seconds rise.",
)

# %%
counts = [int(name) for name in study["runs"]]
steps, iterations, seconds = (
    np.array([np.median([run[key] for run in runs]) for runs in study["runs"].values()])
    for key in ("env_steps", "iterations", "cpu_seconds")
)
compare("gpu_run.first_done", counts[int(seconds.argmin())], unit="copies")

# %% [markdown]
# The fewest, though 8 and 32 cannot be told apart: of the 252 ways to deal their ten runs into two groups, 222 lie at
# least as far apart. From 512 on every seed is later than any with 8.
#
# Look at the middle panel: whatever N is, it takes some thirty-five iterations of 16 steps of the optimiser. CartPole
# needs these steps, and a minibatch of 64 is enough to tell each of them where to go. With 2,048 copies it holds
# 16,384, and the step goes hardly further.

# %%
claim(
    "gpu_run.optimiser_steps",
    "From 8 to 2,048 copies the iterations stay within a factor of 2.5; the steps grow over 100-fold.",
    iterations.max() < 2.5 * iterations.min() and steps[-1] > 100 * steps[0],
    control=(
        "Each needs about as many environment steps, since a sample is a sample.",
        steps.max() < 2.5 * steps.min(),
    ),
)

# %% [markdown]
# And so the number that programs are praised for is not the one that you wait for:

# %%
claim(
    "gpu_run.faster_and_later",
    "2,048 copies make over 8 times as many steps a second as 8, and are done over 4 times as late.",
    steps[-1] / seconds[-1] > 8 * steps[0] / seconds[0] and seconds[-1] > 4 * seconds[0],
    control=("Who makes more steps a second is done sooner.", seconds[-1] < seconds[0]),
)

# %% [markdown]
# When do many copies pay, then? Where an iteration takes no longer with them: as long as launches bind, on a GPU presumably
# up to thousands of copies. And where a step of the optimiser needs many samples to know where to go: in games longer
# and noisier than CartPole. You may also spend the samples otherwise, on more minibatches or longer steps. (Nothing was tuned
# for each N here, and the first panel might look kinder if it were.)
#
# ## Move the ledger yourself
#
# The core was measured once. For the two GPUs there are only published peak speeds, and what a launch costs
# there is your assumption: a slider. First guess which of the three binds. Then look for the number of copies at which
# that changes. (Where no widget can run, you see a picture of its answer.)
#
# The recorded core does a hundred thousand million FLOPs a second. A core that other programs share may do a third of
# that: arithmetic may bind in the ledger of your machine where memory binds here.

# %%
board = ThroughputLedger(keep_as="gpu_run.what_binds_here")
board

# %% [markdown]
# Its numbers are those of the package, whatever you have set:

# %%
sized = PPOConfig(
    num_envs=board.num_envs, num_steps=board.num_steps, num_epochs=board.num_epochs,
    num_minibatches=board.num_minibatches, hidden_sizes=(board.hidden, board.hidden),
    total_steps=board.num_envs * board.num_steps,
)  # fmt: skip
needed = gpu_run.memory_needed(sized, (4,), torch.float32)["total"] / 1e6
assert cost_of(sized).flops == board.flops and abs(needed - board.megabytes) < 1e-9
print("the widget and the package agree")

# %% [markdown]
# ## From the board
#
# CartPole has four numbers. Breakout has a board: 10 rows, 10 columns, and four channels that say where the paddle
# is, the ball, where the ball came from, the bricks. 400 bits. It is the small Breakout of MinAtar (Young and
# Tian, 2019): a brick pays 1, a lost ball ends the game. In one step of ten the last action is taken once more, whatever was chosen.
#
# A bit is kept as a bool, in one byte. That sounds like a detail. How many megabytes (millions of bytes) do the boards of one
# rollout take, 128 copies and 64 steps, as bools?

# %%
predict("gpu_run.boards", None, unit="MB")

# %%
breakout = PPOConfig(
    env="Breakout", num_envs=128, num_steps=64, num_epochs=4, num_minibatches=8,
    hidden_sizes=(64,), total_steps=64 * 128,
)  # fmt: skip
state, parts = gpu_run.start_on_device(breakout, "Breakout")
rollout, _ = collect_rollout(
    state.envs, state.networks.policy, state.carry, num_steps=64, generator=state.generator
)
boards = rollout.observations.nbytes + rollout.next_observations.nbytes
compare("gpu_run.boards", round(boards / 1e6, 2), unit="MB")

# %% [markdown]
# And how much more as real numbers?

# %%
as_bool, as_float = (
    gpu_run.memory_needed(breakout, (10, 10, 4), dtype)["rollout"]
    for dtype in (torch.bool, torch.float32)
)
claim(
    "gpu_run.bools",
    "The boards take 2·64·128·400 bytes, and as real numbers the rollout is over 3.5 times as large.",
    boards == 2 * 64 * 128 * 400 and as_float > 3.5 * as_bool,
    control=(
        "Eight bits share a byte: the boards take an eighth of that.",
        boards == 64 * 128 * 100,
    ),
)

# %% [markdown]
# They become real numbers where a network looks at them, one minibatch at a time. On a GPU with 4,096 copies that
# is the difference between 105 MB and 419 MB for a rollout of 32 steps; both fit. With larger pictures it decides.
#
# Two kinds of networks look at the board. `pixel_networks` has 16 **filters** of 3 × 3 cells that slide over it, a
# small **convolutional** network. The other lays the board **flat** and takes each of its 400 cells for a number
# of its own, with two layers of 128. Three seeds of the flat one had 15 minutes of CPU time each, on one core.
# One seed of the filters had 5 minutes, to compare. Run once and recorded:

# %%
study = recorded("breakout")
print(study["command"])
show(
    figures.learning(study),
    alt="Learning curves on Breakout, over CPU minutes and over environment steps. The three flat ones "
    "rise from below 1 at random to over fifty bricks, with plateaus and falls. The filters rise more slowly in minutes.",
)

# %% [markdown]
# The filters are the right idea for large pictures: what a ball looks like in one corner, it looks like in all of
# them. On 10 by 10 cells their arithmetic costs more time per step: about half as many steps a second, and
# this seed stays at six bricks. (It had three epochs, 64 hidden units and a learning rate that falls over five million
# steps, so this is no test of filters alone.) Look at both panels before you say which network is better, and
# remember that one seed proves nothing: the flat ones have long plateaus, too.

# %%
finals = [run["final_sampled"] for run in study["flat"]["runs"]]
print("bricks per game, 256 games each:", [round(value) for value in finals])
claim(
    "gpu_run.breakout",
    "In 15 minutes on one core each of three seeds comes to over 40 bricks a game, from under 1.",
    min(finals) > 40
    and study["random_return"] < 1
    and all(run["cpu_seconds"] < 901 for run in study["flat"]["runs"]),
    control=(
        "The filters come to over 40 in their 5.",
        study["filters"]["median_final_sampled"] > 40,
    ),
)

# %% [markdown]
# One of their games, neither the best nor the worst of 15. No network was stored with the course; the game
# was, bit by bit. The filled circle is the ball, the open one is where it came from.
# (MinAtar starts it in the lowest row of bricks.)

# %%
played = figures.unpack_boards(study["flat"]["game"]["boards"])
frames = [0, 6, len(played) // 8, len(played) // 4, len(played) // 2, len(played) - 1]
show(
    figures.game(played, at=frames),
    alt="Six boards of one game of Breakout, from the first step to the last. The paddle is where the "
    "ball comes down, and bricks disappear one after the other, until at last it is too far away.",
)

# %%
struck = figures.bricks_struck(played)
stands = played[:, 9, :, 0].argmax(axis=1)
claim(
    "gpu_run.it_moves",
    "The recorded agent visits at least 8 of the 10 places of its row, and breaks over 10 bricks.",
    len(set(stands.tolist())) >= 8 and struck[-1] > 10,
    control=("It has found a place where it can stand still.", len(set(stands.tolist())) == 1),
)

# %% [markdown]
# ## The whole thing, here
#
# The same call for every device: `device="cuda"` where there is one, and `graphs=True` to replay iterations. The
# settings are those of lesson 08, 32 copies and 100,000 steps: as you saw, CartPole has no use for more.

# %% tags=["nbval-ignore-output"]
device = "cuda" if torch.cuda.is_available() else "cpu"
run = PPOConfig(env="CartPole", total_steps=100_000)
history = gpu_run.train_on_device(run, "CartPole", device=device, graphs=True)

# %%
tests = BatchedEnvs(CartPole(), 100, device=device)
earned = evaluate(history.networks.policy, tests, seed=7, greedy=False).mean()
fresh = gpu_run.start_on_device(run, "CartPole", device=device)[0].networks.policy
claim(
    "gpu_run.solved",
    "It solves CartPole: at least 475 on average over 100 games of drawn actions.",
    earned >= 475,
    control=(
        "A policy that was never trained earns that, too.",
        evaluate(fresh, tests, seed=7, greedy=False).mean() >= 475,
    ),
)

# %% [markdown]
# From a shell it is one line, with checkpoints as it goes:
#
# ```
# python -m ppo_lessons.gpu_run --task Breakout --device cuda --graphs
# ```
#
# ## Nothing is lost
#
# A long run is stopped some day: by you, by a power cut, by whoever owns the machine. `kill -9` gives it no time
# for a last word. So a **checkpoint** is written while it runs, into a new file that takes the old one's place only when
# it is whole. And it must hold more than the weights: the optimiser's memory, the generator of random
# numbers, the states of all environments in the middle of their episodes.

# %%
kept = []


def after_one(state):
    kept.append(state.checkpoint())
    return True


gpu_run.train_on_device(small, "CartPole", on_iteration=after_one)
resumed = gpu_run.train_on_device(small, "CartPole", resume=kept[0])

# %% [markdown]
# For a control, a run that goes on with the right weights and nothing else:

# %%
state, parts = gpu_run.start_on_device(small, "CartPole", resume=kept[0])
forgetful, its_parts = gpu_run.start_on_device(small, "CartPole")
forgetful.networks.load_state_dict(state.networks.state_dict())
goes_on = gpu_run.captured(forgetful, its_parts)
goes_on()
goes_on()

# %%
claim(
    "gpu_run.resumed",
    "A run that was cut off after one iteration and resumed ends with the weights of one that was not.",
    torch.equal(laid_flat(resumed.networks), laid_flat(usual.networks)),
    control=(
        "The weights alone are enough to go on from.",
        torch.allclose(laid_flat(forgetful.networks), laid_flat(usual.networks), atol=1e-6),
    ),
)

# %% [markdown]
# ## Several GPUs
#
# Give each GPU a process of its own, a **rank**, with its own environments and its own copy of the networks. They must
# stay *one* policy. So before each step of the optimiser the ranks average their gradients: all of them laid out as one
# flat tensor, in one message, an **all-reduce**. Each message costs a wait, so one large one is better than twelve small ones.
#
# ```
# torchrun --nproc-per-node 2 -m ppo_lessons.gpu_run --task CartPole --device cuda
# ```
#
# The average of the gradients is the gradient of the average loss, so two ranks with half of a minibatch each do
# what one process does with all of it. With one catch: advantages are normalised by mean and deviation *of the
# minibatch*. Each rank alone has those of its half. Simulate two ranks here, on one fixed batch in float64:

# %%
state, parts = gpu_run.start_on_device(small, "CartPole")
rollout, _ = collect_rollout(
    state.envs, state.networks.policy, state.carry, num_steps=32, generator=state.generator
)
batch = replace(score(rollout, state.networks, small, parts), valid=None)
networks = state.networks.double()
columns = {name: column for name, column in vars(batch).items() if column is not None}
exact = {name: x.double() if x.is_floating_point() else x for name, x in columns.items()}
batch = replace(batch, **exact)
halves = [batch.rows(rows) for rows in torch.arange(len(batch)).chunk(2)]


# %%
def gradient(part, normalize):
    networks.zero_grad()
    loss, _ = minibatch_loss(networks, part, small, Parts(normalize=normalize))
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in networks.parameters()])


# %% [markdown]
# What the ranks tell each other about their advantages are three numbers: how many, their mean, the sum of their
# squared deviations. From these `combine_moments` makes those of all:

# %%
show_source(gpu_run.combine_moments)


# %%
def three(advantages):
    spread = (advantages - advantages.mean()).square().sum()
    return torch.stack([torch.tensor(float(len(advantages))), advantages.mean(), spread])


_, mean, spread = gpu_run.combine_moments(torch.stack([three(half.advantages) for half in halves]))
deviation = (spread / len(batch)).sqrt()


# %% [markdown]
# One process, two ranks that share these statistics, and two that do not:


# %%
def of_all(advantages):
    return (advantages - mean) / (deviation + 1e-8)


one = gradient(batch, normalize_advantages)
together = torch.stack([gradient(half, of_all) for half in halves]).mean(dim=0)
each = torch.stack([gradient(half, normalize_advantages) for half in halves]).mean(dim=0)

# %% [markdown]
# The ranks' gradients are averaged. Is it the gradient of the one?

# %%
claim(
    "gpu_run.two_ranks",
    "Two ranks that share their statistics have the gradient of one process, to 10⁻¹².",
    (together - one).abs().max() < 1e-12,
    control=(
        "So they do if each normalises its own half.",
        (each - one).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# ## What breaks it
#
# There is a mistake that no test of gradients sees. All ranks start from the same weights, as they must. Give them
# the same *seed* as well, and they play the same games. Every message is right, every gradient is averaged,
# two GPUs are busy, and the average of two equal gradients is that gradient.


# %%
def games(seed):
    envs = BatchedEnvs(CartPole(), 16)
    draw = torch.Generator().manual_seed(seed)
    carry = start_carry(envs, seed=seed)
    policy = state.networks.float().policy
    return collect_rollout(envs, policy, carry, num_steps=16, generator=draw)[0].observations


# %%
doubled = torch.cat([games(1), games(1)], dim=1).flatten(0, 1)
different = torch.cat([games(1), games(2)], dim=1).flatten(0, 1)
claim(
    "gpu_run.seeds",
    "Two ranks with one seed collect every sample twice; with two seeds no sample twice.",
    len(doubled.unique(dim=0)) == len(doubled) // 2
    and len(different.unique(dim=0)) == len(different),
    control=(
        "With one seed the samples differ, since the processes do.",
        len(doubled.unique(dim=0)) == len(doubled),
    ),
)

# %% [markdown]
# So the seed of a rank is drawn from that of the job and its number, and rank 0 sends its weights to all. When a rank dies, the others must
# not wait for ever: the job ends with a sentence, and resumes from the last checkpoint.
#
# How much a second GPU brings: **not yet measured**. What is tested, with two processes on a CPU: gradients equal
# those of one process to 10⁻¹², weights are the same on all ranks after ten iterations, a killed rank ends the
# job, and the job resumes.
#
# ## Exercises
#
# [Six exercises](../exercises/10_gpu_run.ipynb) wait for you: a step that starts anew, the arithmetic of a step,
# statistics and a gradient for several ranks, a scan with a bug, and a ledger by hand.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("gpu_run.many_copies")

# %%
quiz("gpu_run.million")

# %% [markdown]
# On waiting, and on what a graph may hold:

# %%
quiz("gpu_run.item")

# %%
quiz("gpu_run.graph")

# %% [markdown]
# And on several GPUs:

# %%
quiz("gpu_run.ranks")

# %% [markdown]
# ## What you have now
#
# - A batched environment is three functions over N rows. It is held to the original one step at a time.
# - A call costs what asking costs, until there is enough to do in it. More copies make steps cheap;
#   learning then makes less of each step. On this core the fewest were done first; on a device where launches bind,
#   it may be more.
# - Time is bound by arithmetic, memory or launches. Count all three before you make anything faster.
# - On a device, ask for nothing inside an iteration. Then it can be written down once and replayed.
# - Several processes are one policy if they share gradients and statistics, start from the same weights, and never from the same seed.
#
# The modules behind this page: [envs](../ppo_lessons/envs/batched.py), [gpu_run](../ppo_lessons/gpu_run/__init__.py).
# Next: which of all these parts matter? That is lesson 11.
