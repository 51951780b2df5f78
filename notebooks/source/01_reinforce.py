# %% [markdown]
# # REINFORCE
#
# **How can a return push a probability?**
#
# You play a game of many moves, and at the end you are told one number: how well it went. Nobody says
# which move was good. From such numbers alone a program is to find out which moves to make more often.
#
# REINFORCE (Williams, 1992) does it in one line. You build that line from nothing, check it to ten digits
# on a game so small that it can be solved, and then measure what hurts. There are two wounds. What was
# played is good for one step of learning and then thrown away: **samples are dear**. And much of what was
# played is luck: **the signal is noisy**. The two large parts of PPO answer these two: the ratio with its
# clip, and the critic with GAE. Much of the rest of the course is what it takes to make them work.
#
# You need Python, derivatives and expectations, and enough torch (or NumPy) to read `x.softmax(-1)`. All
# words of reinforcement learning are explained where they come first.

# %% tags=["nbval-ignore-output"]
import math

import torch
from torch.nn.functional import cosine_similarity

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons import mdp as exact
from ppo_lessons.envs import make_envs
from ppo_lessons.figures import reinforce as figures
from ppo_lessons.mdp import gradient_estimates, mean_and_covariance, policy_gradient, score_table
from ppo_lessons.networks import make_networks
from ppo_lessons.reinforce import play_episodes, reinforce_loss, rewards_to_go
from ppo_lessons.widgets import GradientAgreement, ReturnHorizon

setup()

# %% [markdown]
# ## Three questions first
#
# On the mathematics that you bring along. Answer with a letter as the second argument, for instance
# `quiz("reinforce.warm_derivative", "a")`; you are told why it is right or wrong.

# %%
quiz("reinforce.warm_expectation")

# %%
quiz("reinforce.warm_derivative")

# %% [markdown]
# And on several things that happen one after the other:

# %%
quiz("reinforce.warm_probability")

# %% [markdown]
# ## One choice
#
# A machine has two levers. Lever 0 pays 1, lever 1 pays 3. You do not know that: all you can do is pull
# one and see.
#
# - What you do is an **action**. What you are paid for it is a **reward**.
# - A **policy** π gives each action a probability. You act by drawing from it.
# - The numbers that learning may change are the **parameters**. Here they are two, z_0 and z_1, one for
#   each lever, and they are called **logits**. They may be any numbers; the **softmax** makes
#   probabilities of them, π(a) = exp(z_a) / (exp(z_0) + exp(z_1)). Logits (0, 0) give (0.5, 0.5), and
#   (0, 1) gives (0.27, 0.73).
#
# The idea: pull a lever, then move the logits so that this lever becomes more likely, and move them the
# farther the more it paid:
#
# $$z \leftarrow z + \alpha \cdot \text{reward} \cdot \nabla\log\pi(a)$$
#
# Here log π(a) is the **log-probability** of the action you took; for a coin it is log 0.5 = −0.69. Its
# **gradient** ∇ is the list of its derivatives, one for each logit, and points to where it grows fastest.
# So this is **gradient ascent**: going uphill. The **learning rate** α sets the length of the step. (Why
# log π and not π, you find out in a moment.)
#
# Begin with logits (0, 0) and α = 0.5. You pull lever 0, the worse one, and it pays 1. What is the
# probability of lever 0 after the step? Write your guess in place of `None`.

# %%
predict("reinforce.one_draw", None)

# %% [markdown]
# torch finds the gradient by automatic differentiation:


# %%
def one_step(action, reward, logits):
    logits = logits.clone().requires_grad_()  # torch writes down what is computed from these
    weighted = reward * logits.log_softmax(-1)[action]
    (push,) = torch.autograd.grad(weighted, logits)  # and differentiates it
    return (logits + 0.5 * push).softmax(-1).detach()  # the numbers, without what was written down


# %%
start = torch.zeros(2, dtype=torch.float64)
unlucky, lucky = one_step(0, 1.0, start), one_step(1, 3.0, start)
compare("reinforce.one_draw", unlucky[0])

# %% [markdown]
# It became *more* likely. A reward of 1 is all that REINFORCE has seen, and 1 is more than nothing. Had
# you pulled lever 1, its probability would have gone from 0.5 to 0.818. Each of the two happens half of
# the time. So take the average of the two pushes. (A **bandit** is a machine with levers. `gamma` comes
# much later; at 1 it does nothing.)

# %%
levers = exact.bandit([1.0, 3.0])
average_push = policy_gradient(levers, start.reshape(1, 2), gamma=1.0)[0]
average = (start + 0.5 * average_push).softmax(-1)

# %%
ends = {"pulled 0, paid 1": unlucky[1].item(), "pulled 1, paid 3": lucky[1].item()}
ends["average push"] = average[1].item()
show(
    figures.pushes(0.5, ends),
    alt="Three arrows from probability 0.5 of the better lever. After pulling the worse lever it falls "
    "to 0.378, after pulling the better one it rises to 0.818, and the average push leads to 0.622.",
)

# %% [markdown]
# (That two arrows are equally long is chance. At the coin log π has the slope 1/2 in the logit of the
# lever that you pulled, and −1/2 in the other. So the reward 1 pushes by 1/2. The average push is half of
# 3/2 − 1/2, and that is 1/2 as well.)
#
# A sentence that matters is a **claim**. It is checked, and a changed sentence beside it is checked, too,
# which has to fail. If either goes the wrong way, the cell stops with an error. So a grey ✘ is good news.

# %%
claim(
    "reinforce.luck",
    "Pulling the worse lever makes it more likely; the average push makes it less likely.",
    unlucky[0] > 0.5 and average[0] < 0.5,
    control=(
        "Whichever lever you pull, the better one becomes more likely.",
        unlucky[1] > 0.5 and lucky[1] > 0.5,
    ),
)

# %% [markdown]
# That is REINFORCE in a nutshell: *right on average, wrong by the draw.*
#
# ## Why the logarithm
#
# The **objective** J is what you want to be large: the mean reward. With both levers written out it is J
# = π(0)·1 + π(1)·3, or Σ π(a)·r(a). To climb it you need its gradient. Four lines:
#
# $$\begin{aligned}
# \nabla J &= \textstyle\sum_a \nabla\pi(a)\,r(a) && \text{the rewards do not depend on the logits}\\
# &= \textstyle\sum_a \pi(a)\,\frac{\nabla\pi(a)}{\pi(a)}\,r(a) && \text{times and divided by } \pi(a)\\
# &= \textstyle\sum_a \pi(a)\,\nabla\log\pi(a)\,r(a) && \text{since } (\log p)' = 1/p\\
# &= \mathbb{E}\left[\nabla\log\pi(a)\,r(a)\right] && \text{a sum weighted by } \pi \text{ is a mean over draws}
# \end{aligned}$$
#
# This is the **log-derivative trick**. The first line asks you to know what *every* lever pays. The last
# one is a mean over draws, and a mean can be estimated by drawing. ∇log π(a) is called the **score** of
# the action.
#
# Now in numbers, at logits (0.3, −0.2). `score_table` lists the score of every action, `policy_gradient`
# differentiates J itself and knows nothing of the trick.

# %%
logits = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
policy = exact.softmax_policy(levers, logits)[0]
scores, rewards = score_table(levers, logits)[0], levers.rewards[0]
with_log = sum(policy[a] * scores[a] * rewards[a] for a in range(2))
without_log = sum(policy[a] * (policy[a] * scores[a]) * rewards[a] for a in range(2))

# %%
gradient = policy_gradient(levers, logits, gamma=1.0)[0]
claim(
    "reinforce.trick",
    "The mean over draws of score times reward is the gradient of J, to 12 digits.",
    (with_log - gradient).abs().max() < 1e-12,
    control=(
        "With ∇π in place of ∇log π it is the gradient, too.",
        (without_log - gradient).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# Now you can say what the logarithm is for. A likely action is drawn often, so it is pushed often.
# Division by π makes up for that, and the logarithm is that division: ∇log π = ∇π / π.
#
# ## Two facts about the score
#
# For logits the score can be written down. It is 1 at the logit of the drawn action and 0 elsewhere,
# minus π. With π = (0.2, 0.8), pulling lever 0 gives (1, 0) − (0.2, 0.8) = (0.8, −0.8), and pulling lever
# 1 gives (−0.2, 0.2).
#
# **Its mean is zero.** Here, 0.2·(0.8, −0.8) + 0.8·(−0.2, 0.2) = (0, 0). In general, Σ π·∇log π = Σ ∇π =
# ∇ Σ π = ∇ 1 = 0: what one probability gains, the others lose.

# %%
generator = torch.Generator().manual_seed(0)
five = exact.bandit([0.0] * 5)
many = [torch.randn(1, 5, generator=generator, dtype=torch.float64) for _ in range(100)]
tables = [(exact.softmax_policy(five, z)[0], score_table(five, z)[0]) for z in many]

# %%
claim(
    "reinforce.score_mean_zero",
    "In 100 random policies over five actions the score has mean zero.",
    all((policy @ scores).abs().max() < 1e-14 for policy, scores in tables),
    control=(
        "It has mean zero when every action counts the same, too.",
        all(scores.mean(0).abs().max() < 1e-14 for _, scores in tables),
    ),
)

# %% [markdown]
# This has a consequence. Add 100 to every reward. The mean push does not change, since 100 times zero is
# zero. But the single pushes do. Take two levers at (0.5, 0.5) and the push on the first logit. How much
# it differs from draw to draw is measured by its standard deviation, here called the **spread**. For the
# rewards 1 and 3 it is 1. What is it for 101 and 103?

# %%
predict("reinforce.spread", None)

# %% [markdown]
# With lever 0 the first logit is pushed by half of the reward, with lever 1 by minus half of it:


# %%
def mean_and_spread(rewards):
    pushes = torch.tensor([0.5 * rewards[0], -0.5 * rewards[1]], dtype=torch.float64)
    return pushes.mean().item(), pushes.std(correction=0).item()


# %%
for rewards in ((1, 3), (101, 103), (-1, 1)):
    mean, spread = mean_and_spread(rewards)
    print(f"rewards {rewards!s:11}  mean push {mean:5.2f}   spread {spread:5.2f}")
compare("reinforce.spread", mean_and_spread((101, 103))[1])

# %% [markdown]
# The same game three times: 1 against 3, both shifted up by 100, both shifted down by 2. The mean never
# moves. In the last one *every single draw* pushes the right way and equally far. Keep that in mind. A
# reward tells you little until you ask: better than *what*?

# %%
claim(
    "reinforce.constant",
    "Adding 100 to both rewards leaves the mean push as it is, and multiplies its spread by 51.",
    all(map(math.isclose, mean_and_spread((101, 103)), (-0.5, 51 * mean_and_spread((1, 3))[1]))),
    control=(
        "Subtracting 2 makes the spread larger, too.",
        mean_and_spread((-1, 1))[1] > mean_and_spread((1, 3))[1],
    ),
)

# %% [markdown]
# **The score is never longer than √2.** You may read that the push on a rare action is huge, since 1/π
# is. In logits a rare action is pushed farther than a likely one, but there is a limit: with two levers
# the length is √2·(1 − π). The *relative* change has a limit, too. One step with reward 1 and α = 0.5
# lifts an action at 0.2 to 0.36, a factor of 1.8; and one at 0.00000001 by a factor of 2.72, to
# 0.000000027.

# %%
rarity = torch.logspace(-8, -0.05, 60, dtype=torch.float64)
pairs = [torch.stack([p, 1 - p]).log() for p in rarity]
lengths = torch.stack([score_table(levers, z.reshape(1, 2))[0, 0].norm() for z in pairs])
growth = torch.stack([one_step(0, 1.0, z)[0] for z in pairs]) / rarity
show(
    figures.rare_actions(rarity.numpy(), lengths.numpy(), growth.numpy()),
    alt="Left: the length of the score over the probability of the drawn action, flat at the square "
    "root of 2 for rare actions and falling to 0 for certain ones. Right: the factor by which its probability "
    "grows in a step, 2.7 for rare actions and near 1 for likely ones.",
)

# %% [markdown]
# (This holds for logits. Other parameters, like the width of a Gaussian in lesson 09, know no such
# limit.)

# %%
longest = max(scores.norm(dim=-1).max() for _, scores in tables)
claim(
    "reinforce.score_length",
    "The score is never longer than √2, and one step makes no action three times as likely.",
    max(longest, lengths.max()) <= math.sqrt(2) and 2.7 < growth.max() < 3,
    control=(
        "At 0.00000001 the score is ten times as long as at 0.1.",
        lengths[0] > 10 * lengths[(rarity - 0.1).abs().argmin()],
    ),
)

# %% [markdown]
# ## Many steps
#
# A machine with levers is over after one pull. Here is a game of three steps, the **valley and the
# hill**:
#
# ```
#              --- move: -1 -->
#    valley                        hill
#    stay: 0   <-- move:  0 ---    stay: +2
#
#    a move works half of the time; if it fails you stay where you are, and earn the same
# ```
#
# - Where you are is the **state**. What you earn, and where you come to, depends on state and action. A
#   world that is given by such a table is a **Markov decision process**, or MDP.
# - The policy now gives probabilities in each state: π(a|s) is that of action a in state s. So there is a
#   row of two logits for the valley and one for the hill, four parameters in all, and a gradient has four
#   numbers.
# - An **episode** is one game from start to end. Yours begins in the valley and lasts three steps.
# - What happened in it, s₀, a₀, r₀, s₁, a₁, r₁, …, is its **trajectory** τ. The sum of its rewards is its
#   **return** R.
#
# An example: in the valley you move, which costs 1, and it works. On the hill you stay twice, for 2 each.
# The return is −1 + 2 + 2 = 3. If you choose every action by a coin, this trajectory has probability 1/2
# · 1/2 · 1/2 for your choices, times 1/2 for the move that worked: 1/16.
#
# The objective J is now the mean return over all trajectories. In each step one of three things happens
# (you stay, a move works, a move fails); where the last move leads counts for nothing. That makes
# 3 · 3 · 2 = 18, and they can be listed.

# %%
game = exact.two_state()
coin = torch.zeros(2, 2, dtype=torch.float64)  # logits: rows valley, hill; columns stay, move
policy = exact.softmax_policy(game, coin)
listed = exact.enumerate_trajectories(game, policy)
print(f"{len(listed.probabilities)} trajectories, mean return", end=" ")
print((listed.probabilities * listed.rewards.sum(0)).sum().item())

# %% [markdown]
# The trick works on trajectories as it does on levers: ∇J = E[∇log P(τ)·R]. And the logarithm does a
# second service. A trajectory's probability is a product, the policy's choices times what the world did.
# Its logarithm is a sum, and the world's terms do not contain your parameters:
#
# $$\begin{aligned}
# P(\tau) &= p(s_0)\,\pi(a_0|s_0)\,p(s_1|s_0,a_0)\,\pi(a_1|s_1)\,p(s_2|s_1,a_1)\cdots\\
# \log P(\tau) &= \log\pi(a_0|s_0) + \log\pi(a_1|s_1) + \dots\; + \;(\text{what the world did})\\
# \nabla\log P(\tau) &= \nabla\log\pi(a_0|s_0) + \nabla\log\pi(a_1|s_1) + \dots\; + \;0
# \end{aligned}$$
#
# So you need not know how the world works. You need to be able to play in it:
#
# $$\nabla J = \mathbb{E}\left[\textstyle\sum_t \nabla\log\pi(a_t|s_t)\,R(\tau)\right]$$
#
# `gradient_estimates` gives Σ_t score · weight for each trajectory, here with weight R at every step, and
# `mean_and_covariance` averages them with their probabilities. `policy_gradient` again differentiates J
# itself, through the table of the world.


# %%
def average_estimate(weights):
    estimates = gradient_estimates(game, coin, listed, weights)
    mean, covariance = mean_and_covariance(listed.probabilities, estimates)
    return mean, covariance.trace().item()


# %%
full_return = listed.rewards.sum(0).expand_as(listed.rewards)
gradient = policy_gradient(game, coin, gamma=1.0).flatten()

# %% [markdown]
# Are the two the same?

# %%
claim(
    "reinforce.enumerated",
    "The mean estimate over all 18 trajectories is the gradient of J, to 10 digits.",
    (average_estimate(full_return)[0] - gradient).abs().max() < 1e-10,
    control=(
        "So it is when each action is weighted by its own reward alone.",
        (average_estimate(listed.rewards)[0] - gradient).abs().max() < 1e-10,
    ),
)

# %% [markdown]
# In a real task nobody can list all trajectories; you play some. Then the mean is off by chance, and by
# how much can be told: the **standard error** of a mean of n draws is their spread divided by √n. Play
# 10,000 episodes. Episodes that one step of learning uses together are a **batch**.


# %%
def errors_off(sampled, weights):
    estimates = gradient_estimates(game, coin, sampled, weights)
    mean, covariance = mean_and_covariance(sampled.probabilities, estimates)
    return ((mean - gradient).abs() / (covariance.diagonal() / len(estimates)).sqrt()).max()


# %%
generator = torch.Generator().manual_seed(0)
played = exact.sample_trajectories(game, policy, num_trajectories=10_000, generator=generator)

# %% [markdown]
# Chance comes from a generator, and the **seed** is the number that it starts from. Here it is 0. With
# another one other numbers come out, and the sentence should still hold; try it.

# %%
claim(
    "reinforce.sampled",
    "All four numbers of the sampled gradient are within 4 standard errors of the exact ones.",
    errors_off(played, played.rewards.sum(0).expand_as(played.rewards)) < 4,
    control=(
        "With its own reward as the weight of each action they are, too.",
        errors_off(played, played.rewards) < 4,
    ),
)

# %% [markdown]
# ## What came before
#
# In the example the second action was weighted with 3, although the −1 was paid before it. That cannot be
# its merit or its fault. So weight each action by what came *after* it, its own reward included: the
# **reward-to-go** G_t. For the rewards −1, 2, 2 that is 3, 4, 2.
#
# Nothing is lost by that. Average in two rounds: first over action t with everything before it held
# fixed, then over all that may have come before. In the first round the past reward is a number, and a
# number times the score has mean zero. The second round is a mean of zeros:
#
# $$\mathbb{E}\left[r_\text{past}\,\nabla\log\pi(a_t|s_t)\right]
# = \mathbb{E}\left[r_\text{past}\;\mathbb{E}\left[\nabla\log\pi(a_t|s_t)\,\middle|\,\text{past}\right]\right]
# = \mathbb{E}\left[r_\text{past}\cdot 0\right] = 0$$
#
# Here is the function. Its last six lines do the work; above them stand what it promises and the checks
# of what it is given. `Float[Tensor, "T N"]` says: numbers in T rows, one for each step, and N columns,
# one for each of N games side by side. `ended` marks the last step of each episode. Think of `gamma` as 1
# for now.

# %%
show_source(rewards_to_go)

# %%
to_go = rewards_to_go(listed.rewards, listed.terminated, gamma=1.0)
mean, variance = average_estimate(to_go)
claim(
    "reinforce.to_go",
    "With reward-to-go the mean stays the gradient, and the variance falls from 3.6 to 2.7.",
    (mean - gradient).abs().max() < 1e-12
    and abs(average_estimate(full_return)[1] - 3.62) < 0.01
    and abs(variance - 2.745) < 0.01,
    control=(
        "With what came before the action the mean stays, too.",
        (average_estimate(listed.rewards.cumsum(0))[0] - gradient).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# (The variance of a vector is that of its entries, added up: the trace of its covariance.)
#
# Less noise, then, always? Usually. Here is a game in which the past is no noise, but *cancels* noise. A
# hidden coin X is +1 or −1. The first step pays 3·X, whatever you do. The second pays −3·X, and 1 more
# for action 1. The full return contains both, and X drops out of it; the reward-to-go keeps the second
# half alone.


# %%
def both_variances(game):
    even = torch.zeros(2, 2, dtype=torch.float64)
    episodes = exact.enumerate_trajectories(game, exact.softmax_policy(game, even))
    later = rewards_to_go(episodes.rewards, episodes.terminated, gamma=1.0)
    for weights in (later[0].expand_as(later), later):
        estimates = gradient_estimates(game, even, episodes, weights)
        yield mean_and_covariance(episodes.probabilities, estimates)[1].trace().item()


# %% [markdown]
# Beside it the same game with a second coin, so that the past says nothing of what follows:

# %%
paired = exact.control_variate()
redrawn = paired.transitions.clone()
redrawn[:2, :, 2:] = 0.5  # the second step draws its own X
two_coins = exact.MDP("two coins", redrawn, paired.rewards, paired.initial, paired.observation_of)
for name, world in (("one coin", paired), ("two coins", two_coins)):
    print("{}: full return {:.3f}, reward-to-go {:.3f}".format(name, *both_variances(world)))

# %%
(whole, later), (whole_of_two, later_of_two) = both_variances(paired), both_variances(two_coins)
claim(
    "reinforce.to_go_worse",
    "In this game reward-to-go has more than ten times the variance.",
    later > 10 * whole,
    control=(
        "So it has if the second step draws a coin of its own.",
        later_of_two > 10 * whole_of_two,
    ),
)

# %% [markdown]
# ## Better than what?
#
# With the levers, subtracting 2 from both rewards took all noise away. 2 was their mean: what the policy
# earned *on average*. In a game of many steps that average depends on where you are. Three names, which
# the whole course uses; "from s on" means until the end of the episode:
#
# - **V(s)**, the value of a state: the mean of what the policy earns from s on.
# - **Q(s, a)**, the value of an action: the same, if the first action is a.
# - **A(s, a) = Q(s, a) − V(s)**, the **advantage**: how much better a is than what the policy does there
#   on average.
#
# On the hill, with one step left, staying pays 2 and moving pays 0. So Q is 2 and 0, V is their mean 1
# under the coin, and the advantages are +1 and −1. All of them depend on how many steps are left. So the
# table has V and A in two places at three times, six states, while the policy knows the place only. It
# lists A of staying. Under the coin A of moving is minus that, since the two have mean zero; and Q is V +
# A.

# %%
values = exact.state_values(game, policy, gamma=1.0).reshape(3, 2)
advantages = exact.advantages(game, policy, gamma=1.0).reshape(3, 2, 2)
rows = {"V(valley)": values[:, 0], "V(hill)": values[:, 1]}
rows |= {"A(valley, stay)": advantages[:, 0, 0], "A(hill, stay)": advantages[:, 1, 0]}
print("steps left              3        2        1")
for name, row in rows.items():
    print(f"{name:16}", "".join(f"{number:9.4f}" for number in row.tolist()))

# %% [markdown]
# In the valley staying is *worse* than average while three steps are left, and better with two or one:
# early on, a move can still pay.
#
# Now subtract V from the reward-to-go. V(s) was fixed before the action was drawn, so it is with V as with
# the past: the mean push stays. A number with this property is a **baseline**.

# %%
expected = values.flatten()[listed.states]
action_dependent = exact.action_values(game, policy, gamma=1.0)[listed.states, listed.actions]
mean, variance = average_estimate(to_go - expected)
claim(
    "reinforce.baseline",
    "With V subtracted the mean stays the gradient, and the variance falls from 2.7 to 1.9.",
    (mean - gradient).abs().max() < 1e-12 and abs(variance - 1.89) < 0.01,
    control=(
        "With Q(s, a) subtracted, which knows the action, the mean stays, too.",
        (average_estimate(to_go - action_dependent)[0] - gradient).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# Is a baseline free? It never moves the mean push, but it may add noise. A bad guess does, such as 1 in
# every state. So does the mean return, −0.5625: where an episode starts that is V, but on the hill far
# more is to come.

# %%
claim(
    "reinforce.bad_baseline",
    "Subtract 1 in every state, and the mean stays while the variance rises from 2.7 to 4.3.",
    (average_estimate(to_go - 1)[0] - gradient).abs().max() < 1e-12
    and average_estimate(to_go - 1)[1] > 4.3,
    control=(
        "Subtract the mean return, and the variance falls.",
        average_estimate(to_go + 0.5625)[1] < average_estimate(to_go)[1],
    ),
)

# %% [markdown]
# Here are all estimates that one episode can give, for one of the four numbers: the logit of staying in
# the valley. The dashed line is the truth, and the shaded band is one spread to either side of the mean.
# The last panel uses the advantage itself as the weight, which takes the world's luck out, too.

# %%
known = advantages.flatten(0, 1)[listed.states, listed.actions]
kinds = {"full return": full_return, "reward-to-go": to_go, "minus V": to_go - expected}
kinds["advantage"] = known

# %% [markdown]
# Each bar is one possible estimate, as high as it is probable:

# %%
single = {
    name: gradient_estimates(game, coin, listed, weight)[:, 0].numpy()
    for name, weight in kinds.items()
}
show(
    figures.estimates(single, listed.probabilities.numpy(), gradient=gradient[0].item()),
    alt="Four panels with the estimates that one episode can give and their probabilities. The mean is "
    "0.17 in all of them; the spread shrinks from 1.12 with the full return over 0.88 and 0.83 to "
    "0.14 with the advantage.",
)

# %% [markdown]
# But nobody hands you V. It has to be learned while you play, by a **critic**. That is lesson 05.
#
# ## How far to look
#
# Rewards that come long after an action owe little to it; mostly they add noise. So let a reward k steps
# later count γᵏ, with the **discount** γ (gamma) between 0 and 1:
#
# $$G_t = r_t + \gamma\,r_{t+1} + \gamma^2\,r_{t+2} + \dots$$
#
# For the rewards −1, 2, 2 and γ = 0.5 that is 0.5, 3, 2. At γ = 1 you look to the end, at γ = 0 at the
# next reward alone. What do you pay for it? The mean is no longer the gradient of what you wanted; the
# distance is the **bias**. And what remains of the noise shrinks with the number n of episodes:
#
# squared error = bias² + variance / n

# %%
gammas = torch.linspace(0, 1, 21, dtype=torch.float64)
means, variance = torch.zeros(21, 4).double(), torch.zeros(21).double()
for i, gamma in enumerate(gammas.tolist()):
    weights = rewards_to_go(listed.rewards, listed.terminated, gamma=gamma)
    means[i], variance[i] = average_estimate(weights)
squared_bias = (means - gradient).square().sum(-1)

# %%
show(
    figures.gamma_knob(
        gammas.numpy(), squared_bias.numpy(), variance.numpy(), episodes=(3, 10, 1000)
    ),
    alt="Squared error over gamma for 3, 10 and 1,000 episodes. The lowest point moves from 0.4 over "
    "0.75 to 1 as episodes become more; the squared bias alone falls to zero at gamma 1.",
)

# %% [markdown]
# The dots are the lowest points. With few episodes it pays to be short-sighted:

# %%
best_of = {n: gammas[(squared_bias + variance / n).argmin()].item() for n in (3, 10, 1000)}
claim(
    "reinforce.gamma_knob",
    "The best γ grows with the batch: below 0.7 for 3 episodes, below 0.9 for 10, and 1 for 1,000.",
    best_of[3] < 0.7 and best_of[3] < best_of[10] < 0.9 and best_of[1000] == 1,
    control=("It is below 0.9 without any noise, too.", gammas[squared_bias.argmin()] < 0.9),
)

# %% [markdown]
# So γ is a knob: to the right less bias, to the left less noise. (A small γ also makes the push shorter,
# and where noise is large a shorter one errs less. Is that all it does? Multiply the push, at each γ, by
# the factor that makes its error smallest. What is left of the squared error is then |∇J|² minus
# `explained`, and the best γ are still apart.)

# %%
for n in (3, 10, 1000):
    explained = (means @ gradient) ** 2 / (means.square().sum(-1) + variance / n)
    print(f"{n:5,} episodes: best γ {gammas[explained.argmax()]:.2f}")

# %% [markdown]
#
# ### Try it with your hands
#
# One episode of twelve steps: eleven cost 0.1 each, and the last one pays 2. The sum is 0.9, so it is
# worth it. Seen from the first step at γ = 0.9, is it still? Guess, then drag a reward, move γ, or look
# from a later step. A reward counts for the steps before it, and for none after it. The dotted line is the
# **horizon** 1/(1 − γ), what 1 + γ + γ² + … adds up to: about so many steps you look ahead. (Where no
# widget can run, you see a picture of its answer.)

# %%
view = ReturnHorizon(keep_as="reinforce.first_return")
view

# %% [markdown]
# The widget computes nothing of its own: its numbers are the package's. Check it, whatever you have
# dragged:

# %%
dragged = torch.tensor(view.rewards, dtype=torch.float64).unsqueeze(-1)
last = torch.arange(len(dragged)).unsqueeze(-1) == len(dragged) - 1
seen = rewards_to_go(dragged, last, gamma=view.gamma).flatten().tolist()
assert all(map(math.isclose, seen, view.rewards_to_go))
print("the widget and the package agree")

# %% [markdown]
# ### Which gradient is that?
#
# You may leave this part out at first, and go on at "The loss that is none".
#
# With γ below 1 there are three vectors that people call *the* policy gradient. Say which you mean.
#
# | vector | weight of the push at step t |
# | --- | --- |
# | gradient of the undiscounted J, the mean of Σ rₜ | reward-to-go at γ = 1 |
# | gradient of the discounted J, the mean of Σ γᵗ·rₜ | γᵗ times the discounted reward-to-go |
# | the **usual update** | the discounted reward-to-go, without the γᵗ in front |
#
# Programs compute the third, PPO included. It is the gradient of neither. A two-step game shows how far
# apart they can be. Both steps look alike to the policy, so they share their logits. Action 1 pays +1 in
# the first step and −1.5 in the second; action 0 pays nothing. γ is 0.5, and the policy is the coin. Does
# the usual update make action 1 more likely, or less?

# %%
predict("reinforce.usual_sign", None)

# %% [markdown]
# The slopes in the logit of action 1:

# %%
flip, alike = exact.two_step_sign_flip(), torch.zeros(1, 2, dtype=torch.float64)
three = {f"J at γ = {gamma}": policy_gradient(flip, alike, gamma=gamma) for gamma in (1.0, 0.5)}
three["usual update"] = exact.usual_update(flip, alike, gamma=0.5)
for name, vector in three.items():
    print(f"{name:13} {vector[0, 1].item():+.4f}")
compare("reinforce.usual_sign", "more" if three["usual update"][0, 1] > 0 else "less")

# %% [markdown]
# By hand: one step's push on the logit of action 1 is π·(1 − π) = 1/4 times what action 1 gains.
# Discounted, that is 1/4·(1 − 0.5·1.5) = +0.0625: action 1 is worth its later cost, since later counts
# half. The usual update forgets that the second step is later: 1/4·(1 − 1.5) = −0.125. It teaches the
# opposite.

# %%
at_one = three["J at γ = 1.0"], exact.usual_update(flip, alike, gamma=1.0)
claim(
    "reinforce.sign_flip",
    "The gradient of the discounted J is +0.0625, and the usual update is −0.125.",
    abs(three["J at γ = 0.5"][0, 1] - 0.0625) < 1e-12
    and abs(three["usual update"][0, 1] + 0.125) < 1e-12,
    control=("At γ = 1 the two still have opposite signs.", at_one[0][0, 1] * at_one[1][0, 1] < 0),
)

# %% [markdown]
# Here the usual update happens to agree with the undiscounted J. In the valley and the hill all three
# differ. First, the table above, row by row, by listing all trajectories:

# %%
half = rewards_to_go(listed.rewards, listed.terminated, gamma=0.5)
late = 0.5 ** torch.arange(3, dtype=torch.float64).unsqueeze(-1)  # γᵗ
usual = exact.usual_update(game, coin, gamma=0.5).flatten()
discounted = policy_gradient(game, coin, gamma=0.5).flatten()
claim(
    "reinforce.three_weights",
    "γᵗ·G gives the gradient of the discounted J, and G alone gives the usual update, to 12 digits.",
    (average_estimate(late * half)[0] - discounted).abs().max() < 1e-12
    and (average_estimate(half)[0] - usual).abs().max() < 1e-12,
    control=(
        "G alone gives the gradient of the discounted J.",
        (average_estimate(half)[0] - discounted).abs().max() < 1e-12,
    ),
)

# %% [markdown]
# Then their directions. The **cosine** of two vectors is 1 if they have the same direction, 0 at a right
# angle, and −1 if they are opposed.

# %%
similar = [cosine_similarity(usual, other, dim=0) for other in (discounted, gradient)]
print("with the discounted gradient {:.3f}, with the undiscounted {:.3f}".format(*similar))

# %%
claim(
    "reinforce.three_vectors",
    "At γ = 0.5 the usual update points along neither gradient: both cosines are below 0.99.",
    max(similar) < 0.99,
    control=(
        "At γ = 1 it points elsewhere as well.",
        cosine_similarity(exact.usual_update(game, coin, gamma=1.0).flatten(), gradient, dim=0)
        < 0.99,
    ),
)

# %% [markdown]
# In practice γ is close to 1, and the γᵗ is left out on purpose (Sutton and Barto keep it, programs do not):
# with it, late steps would hardly be learned from. But that is a choice, and no theorem.
#
# ## The loss that is none
#
# An **optimiser** is the object that takes the steps for you, and torch's go downhill. So programs wrap the push into a function whose downhill direction it
# is, and call that a **loss**:

# %%
show_source(reinforce_loss)

# %% [markdown]
# Its gradient has the right direction, with the sign turned. (It is a mean over steps, while ∇J was a mean
# over episodes: all of it is divided by the mean length of an episode.) Its *value* means nothing. In supervised learning a loss is
# a distance from the truth, 0 is perfect, and a falling curve is good news. Not so here. Compare three
# policies on the levers: one that all but always pulls the better one, one that all but always pulls the
# worse one, and the coin.

# %%
losses = {}
for name, z in {"better": (0, 9), "worse": (9, 0), "coin": (0, 0)}.items():
    log_probs = torch.tensor(z, dtype=torch.float64).log_softmax(-1)
    losses[name] = -(log_probs.exp() * log_probs * levers.rewards[0]).sum().item()
    print(f"{name:7} mean loss {losses[name]:.3f}")

# %% [markdown]
# The best and the worst policy have a loss near 0, since both are certain of what they do and log 1 = 0.
# The coin between them has the largest of the three. A loss that falls to 0 may be the best news or the worst.

# %%
claim(
    "reinforce.loss_value",
    "The best and the worst policy both have a mean loss below 0.01, and the coin has 1.39.",
    losses["better"] < 0.01 and losses["worse"] < 0.01 and abs(losses["coin"] - 1.386) < 0.001,
    control=(
        "The coin plays better than the one and worse than the other, and so is its loss.",
        losses["better"] < losses["coin"] < losses["worse"],
    ),
)

# %% [markdown]
# So: watch the return, never this loss.
#
# ## The whole algorithm
#
# The world that a policy plays in is its **environment**. Here it is **CartPole**: a pole stands on a cart. At each step you push the cart left or right, and earn 1 as long
# as the pole stands, at most 500 times. What you see of the state is the **observation**, four numbers; a
# small **network** turns them into two logits, and the numbers in it are the parameters.
#
# `play_episodes` plays 32 episodes side by side to their end. Then one step of an optimiser (Adam, a
# gradient descent that gives each parameter a step length of its own), and the episodes are thrown away.
# That is all of REINFORCE:


# %%
def improve(policy, optimizer, envs, generator):
    episodes = play_episodes(envs, policy, generator=generator)
    weights = rewards_to_go(episodes.rewards, episodes.ended, gamma=0.99)
    valid = episodes.valid  # short episodes are padded to the length of the longest
    log_probs, _ = policy.evaluate(episodes.observations[valid], episodes.actions[valid])
    loss = reinforce_loss(log_probs, weights[valid])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_return = episodes.episode_returns[-1].mean().item()
    return int(valid.sum()), mean_return, loss.item(), loss.item() / weights[valid].mean().item()


# %% [markdown]
# One such turn, a batch and a step of the parameters, is an **update**. Make twelve. A guess before you
# run them: will the loss be higher or lower at the end?

# %%
predict("reinforce.loss_goes", None)

# %% tags=["nbval-ignore-output"]
generator = torch.Generator().manual_seed(1)
envs = make_envs("CartPole-v1", 32)
learner = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator).policy
optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
updates = [improve(learner, optimizer, envs, generator) for _ in range(12)]
moves, mean_returns, losses, scaled = (list(column) for column in zip(*updates, strict=True))
compare("reinforce.loss_goes", "higher" if losses[-1] > losses[0] else "lower")

# %% [markdown]
# Return and loss over the moves that were made:

# %%
show(
    figures.loss_and_return(torch.tensor(moves).cumsum(0).tolist(), mean_returns, losses),
    alt="Two curves over environment steps. The return rises, and the value of the loss rises with it.",
)

# %%
claim(
    "reinforce.loss_rises",
    "After twelve updates the return has more than doubled, and so the loss has grown by half or more.",
    mean_returns[-1] > 2 * mean_returns[0] and losses[-1] > 1.5 * losses[0],
    control=("It has done so when divided by the mean weight, too.", scaled[-1] > 1.5 * scaled[0]),
)

# %% [markdown]
# It learns. The weights are returns, so a policy that lasts longer multiplies its log-probabilities by
# larger numbers: the better it plays, the larger the "loss".
#
# ## The first wound: used once
#
# Count what those twelve updates cost: tens of thousands of moves on the cart, and each move had a say in
# *one* step of the parameters. Then it was thrown away. Why not use the batch again?
#
# Go back to the levers, and take noise out of the question: a batch so large that its means are exact.
# Step with it again and again, as if it were fresh: half of the draws in it are lever 0, and half are
# lever 1, for ever. Where does the probability of lever 1 come to rest? (With fresh draws after each step
# it goes to 1.)

# %%
predict("reinforce.reuse", None)

# %% [markdown]
# The only difference between the two is whose probabilities weigh the draws:


# %%
old, pay = torch.tensor([0.5, 0.5], dtype=torch.float64), levers.rewards[0]


def climb(fresh, num_steps=1000):
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    for _ in range(num_steps):
        draws = logits.softmax(-1).detach() if fresh else old
        (push,) = torch.autograd.grad((draws * pay * logits.log_softmax(-1)).sum(), logits)
        logits = (logits + 0.1 * push).detach().requires_grad_()
        yield logits.softmax(-1)[1].item()


# %%
curves = {"fresh draws": list(climb(True)), "old draws": list(climb(False))}
compare("reinforce.reuse", curves["old draws"][-1])

# %% [markdown]
# Step by step:

# %%
show(
    figures.reuse(curves, limit=0.75),
    alt="Probability of the better lever over 1,000 steps. With fresh draws it goes to 1; with the first "
    "draws used again it starts alike, then comes to rest at 0.75.",
)

# %% [markdown]
# It stops at 3 / (1 + 3) = 0.75. There the pushes on the logit of lever 1 cancel: half of the draws push
# it by 3 · (1 − 0.75), the other half by −1 · 0.75. The old batch has no more to say, although the policy
# is not yet good. Fresh draws would show lever 1 three times out of four, and push on. The mean in ∇J is
# over draws of the policy *as it is now*, and the first step has moved it. The batch is right for one
# step.

# %%
claim(
    "reinforce.reuse",
    "The first step is the same; after 1,000, old draws rest at 0.75, and fresh ones are above 0.99.",
    curves["old draws"][0] == curves["fresh draws"][0]
    and abs(curves["old draws"][-1] - 0.75) < 1e-6
    and curves["fresh draws"][-1] > 0.99,
    control=(
        "The second step is the same as well.",
        abs(curves["old draws"][1] - curves["fresh draws"][1]) < 1e-6,
    ),
)

# %% [markdown]
# This was the mild case: all rewards are positive, so each draw pushes its own lever up, and the policy
# comes to rest where the pushes are in balance. Subtract a mean from the rewards, and there is no such
# place any more. Lesson 02 begins there, asks whether old draws can be *corrected*, and ends with what
# their reuse does to CartPole.
#
# ## The second wound: noise
#
# Two people play 32 episodes each with the same policy, which nobody has trained. Each computes the
# gradient. If both are near the truth, they agree: the cosine of their two vectors is near 1. Do that with
# 24 policies. With the full return as weight, what is the typical cosine, the median of the 24?

# %%
predict("reinforce.agreement", None)


# %%
def batch_gradient(policy, episodes, weights):
    valid = episodes.valid
    log_probs, _ = policy.evaluate(episodes.observations[valid], episodes.actions[valid])
    loss = reinforce_loss(log_probs, weights[valid])
    parts = torch.autograd.grad(loss, list(policy.parameters()))
    return torch.cat([part.flatten() for part in parts])


# %% [markdown]
# Four weights on the same episodes: the full return and the reward-to-go, and each of them minus its mean
# over the batch, a rough baseline.


# %%
def gradients_of_one_batch(policy):
    episodes = play_episodes(envs, policy, generator=generator)
    to_go = rewards_to_go(episodes.rewards, episodes.ended, gamma=0.99)
    kinds = (to_go[0].expand_as(to_go), to_go)
    kinds += tuple(weights - weights[episodes.valid].mean() for weights in kinds)
    return torch.stack([batch_gradient(policy, episodes, weights) for weights in kinds])


def one_pair():
    policy = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator).policy
    pair = gradients_of_one_batch(policy), gradients_of_one_batch(policy)
    return cosine_similarity(*pair, dim=-1)


# %% tags=["nbval-ignore-output"]
generator = torch.Generator().manual_seed(0)
cosines = torch.stack([one_pair() for _ in range(24)]).T
compare("reinforce.agreement", cosines[0].quantile(0.5))

# %% [markdown]
# Each dot is one pair; the bar is the median.

# %%
names = ("full return", "reward-to-go", "full return, minus mean", "reward-to-go, minus mean")
dots = dict(zip(names, cosines.tolist(), strict=True))
show(
    figures.agreement(dots, title="Two batches of 32 episodes: do they agree?"),
    alt="Cosines of 24 pairs of batches. With the full return they scatter from opposed to aligned; with "
    "reward-to-go, and with either of them minus its mean, they lie near 1.",
)

# %%
claim(
    "reinforce.agreement",
    "With the full return some pairs are opposed; with reward-to-go the median is above 0.85.",
    cosines[0].min() < 0 and cosines[1].quantile(0.5) > 0.85,
    control=(
        "To forget the past is the only cure: minus its mean, the full return has a median below 0.85.",
        cosines[2].quantile(0.5) < 0.85,
    ),
)

# %% [markdown]
# The same episodes, weighted another way, and two strangers agree. There are two cures, and each is
# nearly enough here: forget what came before, or subtract what is usual. In the valley and the hill noise
# can be told exactly. How many episodes must you average, until the spread of the mean has come down to
# the length of the gradient? That is variance / |∇J|²:

# %%
size = gradient.square().sum().item()
needed = {name: average_estimate(weight)[1] / size for name, weight in kinds.items()}
for name, number in needed.items():
    print(f"{name:13} {number:5.1f} episodes")

# %%
mean, spread = mean_and_spread((-1, 1))
claim(
    "reinforce.noise",
    "One episode's noise is longer than the gradient with each of the weights, even with the advantage.",
    min(needed.values()) > 1,
    control=(
        "So it is with levers that pay −1 and 1, where luck plays no part.",
        spread > abs(mean),
    ),
)

# %% [markdown]
# Three steps, two states, and the advantage, a weight that nobody will hand you: still more noise than
# signal. Real tasks have thousands of steps.
#
# ## Two arrows, with your hands
#
# The valley and the hill once more: two independent batches, each with its own gradient, drawn as two
# arrows. (Only directions count; of the four numbers two are drawn, since the push on moving is minus
# that on staying. Arrow 2 is drawn shorter, so that you can see both.) On the right the lines are means
# over many pairs. Guess first how many episodes a batch needs until two of them agree with a cosine of
# 0.5. Then change the weight and the number of episodes, and draw other pairs.

# %%
arrows = GradientAgreement(keep_as="reinforce.enough_episodes")
arrows

# %% [markdown]
# Its **noise scale** is the number from above, variance / |∇J|². Check it, as long as the policy is the
# first one:

# %%
weight = {"full_return": full_return, "reward_to_go": to_go, "baseline": to_go - expected}
scale = average_estimate(weight[arrows.estimator])[1] / size
same = math.isclose(arrows.noise_scale, scale)
print("they agree" if arrows.situation != "first" or same else "they differ")

# %% [markdown]
# ## What breaks it
#
# Three mistakes that run without an error.
#
# - **The sign.** The push itself is called a loss, so the optimiser goes the wrong way.
# - **No logarithm.** π stands where log π belongs.
# - **Softmax twice.** Probabilities are handed to a function that takes logits.
#
# What do the first two do to the levers? With exact averages and 500 steps, from a policy that pulls
# lever 1 with probability 0.2:


# %%
def train_levers(log_of, sign=1.0, start=0.2):
    logits = torch.tensor([1 - start, start], dtype=torch.float64).log()
    for _ in range(500):
        logits.requires_grad_()
        draws = logits.softmax(-1).detach()
        (push,) = torch.autograd.grad((draws * pay * log_of(logits)).sum(), logits)
        logits = (logits + sign * 0.1 * push).detach()
    return logits.softmax(-1)[1].item()


# %%
right = train_levers(lambda logits: logits.log_softmax(-1))
wrong_sign = train_levers(lambda logits: logits.log_softmax(-1), sign=-1.0)
no_logarithm = train_levers(lambda logits: logits.softmax(-1))
from_coin = train_levers(lambda logits: logits.softmax(-1), start=0.5)

# %% [markdown]
# Without the logarithm, what is drawn often is pushed often *and* hard. Lever 0 pays a third, but it was
# drawn four times as often, so it wins. The policy learns to do what it did before. From the coin nobody would notice.

# %%
claim(
    "reinforce.mistakes",
    "Right, lever 1 ends above 0.99; with the wrong sign, and without the logarithm, below 0.05.",
    right > 0.99 and wrong_sign < 0.05 and no_logarithm < 0.05,
    control=("Without the logarithm it ends there from the coin as well.", from_coin < 0.05),
)

# %% [markdown]
# The second softmax is harder to see, since such a policy does learn a little. But probabilities lie
# between 0 and 1, so as logits they differ by at most 1, and the policy can never make up its mind:

# %%
certain = torch.tensor([-50.0, 50.0], dtype=torch.float64)
once, twice = certain.softmax(-1)[1], certain.softmax(-1).softmax(-1)[1]
print(f"one softmax {once:.3f}, two {twice:.3f}")

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/01_reinforce.ipynb) wait for you: the log-probability of an action, what
# came after it, the loss, seven numbers by hand, a bug to be found, and one for experts. Each check tells
# you which mistake it is. What passes is kept in `my_work/answers/`.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("reinforce.luck")

# %%
quiz("reinforce.constant")

# %% [markdown]
# On what a program computes:

# %%
quiz("reinforce.loss_value")

# %%
quiz("reinforce.three_vectors")

# %% [markdown]
# And on using a batch again:

# %%
quiz("reinforce.reuse")

# %% [markdown]
# ## The stair
#
# How far does this one line get? CartPole, ten seeds, two of the weights (the full return and the
# reward-to-go), and one learning rate. No new batch begins after 98,000 moves; the one that runs then is
# finished. This was run once and recorded.
#
# The curves show the mean return of the 32 episodes of each update. The dots at the right are the end: 50
# more episodes in which each policy takes its likeliest action, which is called **greedy**. A seed has
# solved CartPole if its dot is at 475 or above.

# %%
study = recorded("reinforce")
print(study["command"])
finals = {name: [run["final_greedy"] for run in runs] for name, runs in study["runs"].items()}

# %% [markdown]
# Every seed thin, their median thick:

# %%
curves = {
    name: [(run["env_steps"], run["episode_return"]) for run in runs]
    for name, runs in study["runs"].items()
}
show(
    figures.stair(curves, finals, goal=475),
    alt="Learning curves of ten seeds with each weight, and the final returns as dots. With the full return "
    "all stay below 300 and no dot reaches 475. With reward-to-go all curves rise, and eight dots are above 475.",
)

# %%
solved = {name: sum(value >= 475 for value in values) for name, values in finals.items()}
taken = {name: [len(run["env_steps"]) for run in runs] for name, runs in study["runs"].items()}
claim(
    "reinforce.stair",
    "Of ten seeds the full return solves none, and reward-to-go 8 with at most 19 updates each.",
    list(solved.values()) == [0, 8] and max(taken["reward-to-go"]) == 19,
    control=(
        "Some seed with the full return had no more than 19 either.",
        min(taken["full return"]) <= 19,
    ),
)

# %% [markdown]
# (The full return had more updates, 23 to 61, since its episodes stayed short.) What did one update with
# the reward-to-go cost?

# %%
spent = [run["env_steps"][-1] for run in study["runs"]["reward-to-go"]]
print(f"{sum(spent) / sum(taken['reward-to-go']):,.0f} moves for one step of the parameters")

# %% [markdown]
# Eight of ten: on this task REINFORCE is no bad algorithm. Moves on a simulated cart cost nothing. But
# look at the count: a hundred thousand moves paid for fewer than twenty steps of the parameters. Where a move is a second of a robot's time, or a page that a language model writes, that is
# the wound.
#
# ## What you have now
#
# - The push on a drawn action is its score, ∇log π, times what came after it. On average that is the
#   gradient of J; a single one may point anywhere.
# - What came before, and any number that depends on the state alone, may be left out or subtracted: the
#   mean stays. The noise usually shrinks, and not always.
# - Below γ = 1, programs follow the usual update, which is the gradient of neither J.
# - The value of the loss says nothing. Watch the return.
# - **Two wounds.** A batch is right for one step, and one episode holds more noise than signal.
#
# What is often said of REINFORCE and only half true stands in [a list](../docs/half_truths.md), each item
# with the cell of this lesson that shows it.
#
# Next: may you use a batch again after all, if you correct for the step that you took? That is the ratio,
# [lesson 02](02_importance.ipynb). And who says how good was expected? The critic,
# [lesson 05](05_critic.ipynb). The line that made PPO known is in [lesson 04](04_clip.ipynb).
