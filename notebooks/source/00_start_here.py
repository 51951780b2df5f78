# %% [markdown]
# # Start here
#
# **Is my set-up fine, and how does this course work?**
#
# This course takes you to PPO, the algorithm that taught robots to walk and language models to follow
# instructions. It goes piece by piece: each piece is the answer to a problem that you have seen
# happen a moment before. The map below says which lessons are there.
#
# You need Python, derivatives and expectations, and enough torch or NumPy to read `x.softmax(-1)`.
# You need no reinforcement learning.
#
# Run the cell below: click into it and press Shift + Enter. It ends with a green line if your
# set-up is fine. If not, it says what is wrong and what to type.

# %% tags=["nbval-ignore-output"]
from torch import Generator

from ppo_lessons import Watch, budget, compare, predict, quiz, setup, show
from ppo_lessons.envs import make_envs
from ppo_lessons.figures.training_loop import poles
from ppo_lessons.lessons import lesson_table, route_table
from ppo_lessons.networks import make_networks
from ppo_lessons.progress import summary
from ppo_lessons.training_loop import PPOConfig, record_episode, train
from ppo_lessons.widgets import ReturnHorizon

setup()

# %% [markdown]
# ## Something to move
#
# Widgets like this one stand in most lessons. Here an agent takes twelve steps: eleven cost 0.1 each,
# the last one pays 2. Seen from the start, each step of waiting makes a reward count 0.9 times as
# much; this factor is γ (gamma). Added up like that, what are all twelve rewards worth? That sum is
# G_0 in the picture; G_t is the same for those who begin at step t. Guess, reveal, then turn γ or
# drag a reward. Lesson 01 says more.

# %%
ReturnHorizon()

# %% [markdown]
# ## Watch one run
#
# A pole stands on a cart. At each step the agent pushes the cart left or right. It earns 1 for every
# step the pole stands, and the game ends when the pole falls, or after 500 steps. That is the
# environment **CartPole**.
#
# At first the agent pushes at random, and the pole stands for about 20 steps. Then PPO, short for
# *proximal policy optimization*, trains it for about 40,000 steps. How long does the pole stand in
# the last 100 games of that training, on average?
#
# Write your guess in place of `None`. A wrong guess is worth more than no guess: the surprise is
# what you will remember.

# %%
predict("start_here.steps", None, unit="steps")

# %% [markdown]
# Now train. It takes a few seconds. The line below the cell moves while the agent learns: `return` is
# the number of steps the pole stood, averaged over the last 100 games. (`kl_k3` says how far the last
# update moved the agent; you will meet it later. Of the two numbers in `budget` you get the first;
# the second is for quick tests of the course.)

# %% tags=["nbval-ignore-output"]
config = PPOConfig(env="CartPole-v1", total_steps=budget(40_960, 16_384))
history = train(config, on_iteration=Watch())

# %% tags=["nbval-ignore-output"]
compare("start_here.steps", history["episode_return"][-1], unit="steps")

# %% [markdown]
# The numbers differ a little from machine to machine. What must hold on every machine is written
# as a condition, and the cell fails if it does not:

# %%
first, last = history["episode_return"][0], history["episode_return"][-1]
assert last > 3 * first
print("learned: the pole stands more than three times as long")

# %% [markdown]
# Here is one game of an agent that pushes at random, and one of the agent that you trained.

# %%
envs = make_envs("CartPole-v1", num_envs=1)
fresh = make_networks((4,), 2, hidden_sizes=(64, 64), generator=Generator().manual_seed(1))
before = record_episode(fresh.policy, envs, seed=1, greedy=False)
after = record_episode(history.networks.policy, envs, seed=1)
show(
    poles({"before": before.numpy(), "after": after.numpy()}, at=(0, 10, 20, 30, 60, 100)),
    alt="Two strips of frames. Before training the pole tips over and the later frames say so; "
    "after training it still stands in the last frame.",
)

# %% [markdown]
# ## How the lessons work
#
# **Predictions.** Before an experiment you write down what you expect, as you did above. Your
# guess is kept, and shown beside what came out.
#
# **Claims.** When the text says that something holds, the cell below it checks it. Below the claim
# stands a changed claim, which must fail. You may change any number and look.
#
# **Questions.** A lesson begins with three and ends with five. Answer by giving the letter as a second argument:
# `quiz("start_here.claims", "a")`. You are told why your choice is right or wrong.

# %%
quiz("start_here.claims")

# %% [markdown]
# **Code.** The lessons call a small package, `ppo_lessons`, and show its source where it matters.
# What you read is what runs, and it is tested.
#
# ## How to stop a run, and how to start over
#
# - **Stop:** press the square ■ in the toolbar, or `I` twice outside a cell. Training ends a moment
#   later, and you keep what was learned. A claim about the full run may then fail below; run the
#   training cell again when you have the time.
# - **Run everything:** menu *Run*, *Run All Cells*. Every notebook runs from top to bottom.
# - **Start the kernel anew:** press `0` twice outside a cell. Your text and answers stay.
# - **After reloading the page during a run**, the moving line stands still. The run goes on.
# - **Get a fresh copy of a lesson:** in a terminal, `./course reset 08`. Your old copy is moved
#   to `my_work/.old`, never deleted.
# - **Find out what is broken:** `./course doctor`.
#
# You are working on your own copies, in the folder `my_work`. Your predictions and answers are in
# `my_work/progress.json`, on this machine only.

# %% [markdown]
# ## The map
#
# Two problems drive every part of PPO, and they are the thread of the course.
#
# 1. **Samples may be dear.** So you reuse them, correct for their age with ratios, and limit the
#    drift that reuse causes.
# 2. **The signal is noisy.** So you subtract what a critic expected, and choose how far to trust
#    it.
#
# The lessons, in order. Those marked *planned* are not written yet; their modules may be there.

# %%
lesson_table(folder="")

# %% [markdown]
# Three routes lead through them. The times are for reading and running; exercises come on top. The
# first route leaves sections out: they are named below the table.

# %%
route_table()

# %% [markdown]
# ## How far you are
#
# What you have predicted, answered and passed, by lesson. Run this cell again after a lesson. In a
# terminal, `./course check 04` goes through the exercises of a lesson and says which answers pass.

# %% tags=["nbval-ignore-output"]
summary()

# %% [markdown]
# ## Where to go now
#
# Open [01 REINFORCE](01_reinforce.ipynb). It begins with one choice and one reward, and asks for
# nothing that you have not seen here. Lessons 01 to 08 are one story; each starts from the problem that
# the one before has left.
#
# The words of the course, each with its symbol and unit, are in [the notation](../docs/notation.md).
# What is often said about PPO and only half true is in [a list of its own](../docs/half_truths.md),
# each item with the cell that shows it.
#
# Reading without a mouse: every picture has a sentence that says what it shows, no meaning is
# carried by colour alone, and the text grows with Ctrl and +.
