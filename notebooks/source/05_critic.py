# %% [markdown]
# # The critic
#
# **Who tells me what to expect?**
#
# You pull a lever, and it pays 10. Is that good? If it usually pays 1, it is splendid. If it usually
# pays 20, it is a disappointment. REINFORCE does not ask. It pushes the action up by 10 either way, and
# leaves it to many other draws to set that right. This is where much of the noise comes from: the second
# wound of lesson 01.
#
# What is missing is somebody who knows what to *expect*, so that only the surprise counts. Here you find
# out what you may subtract without doing harm, why the natural choice is not the best one, how an
# expectation is learned from returns, three ways in which that goes wrong without an error, and a grade
# for critics that useless ones pass with honours.
#
# The words that you need: a **policy** π gives each action a probability. The **score** ∇log π of a
# drawn action is the direction that makes it more likely; on average it is zero. The **return** is what
# an episode earns, the **reward-to-go** G what it earns from one step on. Score times return is the
# **push**, and its mean over draws is the gradient of the mean return J. **V(s)** is the mean of what
# the policy earns from state s on, **Q(s, a)** the same if the first action is a, and the **advantage**
# is A = Q − V.

# %% tags=["nbval-ignore-output"]
import itertools
import math

import numpy as np
import torch

from ppo_lessons import claim, compare, critic, predict, quiz, recorded, setup, show, show_source
from ppo_lessons import mdp as exact
from ppo_lessons.envs import make_envs
from ppo_lessons.figures import critic as figures
from ppo_lessons.figures.staircase import staircase
from ppo_lessons.networks import make_networks, mlp
from ppo_lessons.reinforce import play_episodes, rewards_to_go
from ppo_lessons.widgets import BaselineVariance, ValueFit

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("critic.review_advantage")

# %%
quiz("critic.review_weights")

# %% [markdown]
# The third is on the clip:

# %%
quiz("critic.review_silent")

# %% [markdown]
# ## What to subtract
#
# Lever 0 pays 1, lever 1 pays 10. The policy has not found that out yet: it pulls lever 0 nine times of
# ten. It has one parameter, the logit of lever 1. (The other logit stays at 0.) So the score of lever 1
# is 1 − 0.1 = 0.9, and that of lever 0 is −0.1.
#
# One pull in ten pushes by 0.9·10 = 9, uphill. The other nine push by −0.1·1, the wrong way. On average
# that is 0.1·9 − 0.9·0.1 = 0.81.
#
# Now subtract a number b from what either lever pays. A number that is subtracted from every return, and
# was fixed before the action was drawn, is a **baseline**. In lesson 01 you saw that it leaves the mean
# push where it is. But which b leaves the least noise? The policy earns 0.9·1 + 0.1·10 = 1.9 on average,
# so V = 1.9. Your guess for the best b:

# %%
predict("critic.best_baseline", None, unit="reward")

# %% [markdown]
# With two draws that are possible, mean and variance of a push are two short sums:

# %%
pays, before, after = torch.tensor([[1, 10], [0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)


def scores_of(chances):
    return torch.stack([-chances[1], chances[0]])  # of lever 0: 0 - pi(1); of lever 1: 1 - pi(1)


def push(baseline, chances=before, pays=pays):
    estimates = (scores_of(chances) * (pays - baseline)).unsqueeze(-1)
    mean, covariance = exact.mean_and_covariance(chances, estimates)
    return mean.item(), covariance.item()


# %% [markdown]
# Four baselines: none, V, another one, and −20, which adds 20 to what you are paid.

# %%
for baseline in (0.0, 1.9, 9.1, -20.0):
    mean, variance = push(baseline)
    print(f"baseline {baseline:5.1f}   mean {mean:.2f}   variance {abs(variance):6.2f}")

# %%
best = critic.optimal_baseline(before, scores_of(before).unsqueeze(-1), pays)
compare("critic.best_baseline", best, unit="reward")

# %% [markdown]
# The mean never moves. The noise does. And V is not the best: 9.1 is, and leaves none at all. Each draw
# then pushes by 0.81: 0.9·(10 − 9.1), and −0.1·(1 − 9.1).

# %%
claim(
    "critic.mean_stays",
    "With 0, 1.9, 9.1 and −20 subtracted, the mean push is 0.81, to 12 digits.",
    all(abs(push(baseline)[0] - 0.81) < 1e-12 for baseline in (0.0, 1.9, 9.1, -20.0)),
    control=(
        "With them subtracted, its variance is the same, too.",
        abs(push(0.0)[1] - push(9.1)[1]) < 1e-6,
    ),
)

# %% [markdown]
# And the noise:

# %%
claim(
    "critic.not_v",
    "V leaves the variance 4.67, and 9.1 leaves none.",
    abs(push(1.9)[1] - 4.6656) < 1e-4 and push(9.1)[1] < 1e-12,
    control=("No other baseline leaves less variance than V.", push(9.1)[1] >= push(1.9)[1]),
)

# %% [markdown]
# The wrong one is costly:

# %%
claim(
    "critic.bad_baseline",
    "A baseline of −20 multiplies the variance by ten, from 7.5 to 76.",
    abs(push(0.0)[1] - 7.45) < 0.01 and abs(push(-20.0)[1] - 76.21) < 0.01,
    control=("Whatever you subtract, the variance does not rise.", push(-20.0)[1] <= push(0.0)[1]),
)

# %% [markdown]
# Why 9.1? Write the variance down, with R for the return:
#
# $$\text{Var} = \mathbb{E}\left[\,|\nabla\log\pi|^2\,(R - b)^2\,\right] - |\nabla J|^2$$
#
# The second term knows nothing of b. The first is a parabola in b. At its lowest point the slope is zero:
# the mean of |∇log π|²·(R − b) is 0. Solve that for b:
#
# $$b^* = \frac{\mathbb{E}\left[\,|\nabla\log\pi|^2\,R\,\right]}{\mathbb{E}\left[\,|\nabla\log\pi|^2\,\right]}$$
#
# So b* is a mean of the returns, too, like V. But a draw counts by the square of its score. Lever 1 is
# drawn a ninth as often as lever 0, with a score nine times as long. So it counts 0.1·0.81 = 0.081, and
# lever 0 counts 0.9·0.01 = 0.009: nine to one. V looks at what is *frequent*, b* at what *pushes*.

# %%
show_source(critic.optimal_baseline)

# %% [markdown]
# Now let the policy learn. Later it pulls lever 1 nine times of ten, and V is 9.1. The scores have
# changed places: 0.1 for lever 1, −0.9 for lever 0. So b* is 1.9 now. Draw the variance over b for both
# policies:

# %%
line = torch.linspace(-2, 13, 151, dtype=torch.float64)
curves = {
    "Before learning: V = 1.9 helps": np.array([push(b, before)[1] for b in line]),
    "After learning: V = 9.1 hurts": np.array([push(b, after)[1] for b in line]),
}
marks = {"none": 0.0, "V": 1.9, "least": 9.1}, {"none": 0.0, "V": 9.1, "least": 1.9}

# %%
show(
    figures.noise_over_baseline(line.numpy(), curves, dict(zip(curves, marks, strict=True))),
    alt="Two parabolas of the variance over the baseline. Before learning it is 7.45 with nothing "
    "subtracted, 4.67 with V, and 0 with 9.1. After learning it is 0.32, 4.67 with V, and 0 with 1.9.",
)

# %% [markdown]
# The exact V, the number that everybody strives to know, leaves *more* noise than subtracting nothing.
# ("V is the best baseline" is one of the [half truths](../docs/half_truths.md) that the course collects.)

# %%
claim(
    "critic.v_may_hurt",
    "After learning, the variance with the exact V is 14 times that with nothing subtracted.",
    14 < push(9.1, after)[1] / push(0.0, after)[1] < 15,
    control=(
        "Before learning and after, it is lower with the exact V than with nothing subtracted.",
        push(1.9, before)[1] < push(0.0, before)[1] and push(9.1, after)[1] < push(0.0, after)[1],
    ),
)

# %% [markdown]
# Why then does everybody subtract V? For three reasons.
#
# **It moves along.** To subtract nothing was lucky here: b* is 1.9, and zero happens to lie near it. Let both
# levers pay 100 more. V becomes 109.1, and the noise that it leaves is what it was.

# %%
richer = pays + 100
shifted = [push(b, after, richer)[1] for b in (0.0, 109.1)]

# %%
claim(
    "critic.shift",
    "If both levers pay 100 more, the variance with V is 4.67 as before, and without it more than 900.",
    abs(shifted[1] - 4.6656) < 1e-3 and shifted[0] > 900,
    control=("Without it the variance is what it was, too.", abs(shifted[0] - 0.3249) < 1e-3),
)

# %% [markdown]
# **It can be learned**, by one regression for all states, as you will see. b* is harder to have. It
# needs the square of every score, which in a network is a vector of thousands of numbers.
#
# **It has a second job.** V can stand in for a future that you have not seen. That is [lesson
# 06](06_gae.ipynb).
#
# ### Try it with your hands
#
# Two levers, and a slider for the baseline. On the left each lever is a line: what one pull of it
# pushes, for every b. It crosses zero where b is what the lever pays. Guess first where the noise is
# least. Then move the policy, or what the levers pay, and watch the variance change while the mean
# push, the black line, stays where it is. With a third lever no single number silences them all.
# (Where no widget can run, you see a picture.)

# %%
levers = BaselineVariance(keep_as="critic.moved_baseline")
levers

# %% [markdown]
# The widget's numbers are the package's. Check the variance, whatever you have moved:

# %%
now, paid = (torch.tensor(n, dtype=torch.float64) for n in (levers.probabilities, levers.paid))
is_one = (torch.arange(len(now)) == 1).double()
scores = is_one - now[1]  # of lever 1: 1 - pi(1); of any other: 0 - pi(1)
pushes = (scores * (paid - levers.baseline)).unsqueeze(-1)
_, covariance = exact.mean_and_covariance(now, pushes)
assert math.isclose(covariance.item(), levers.variance, abs_tol=1e-9)
print("the widget and the package agree")

# %% [markdown]
# ## What may it know?
#
# A baseline may know the state, the weather, all that was fixed *before* the action was drawn. Then the
# mean of score times b is b times the mean score, and that is b times zero. If b knows the action, it
# cannot be taken out of that mean. Subtract 0 when lever 0 was pulled, and 10 when lever 1 was:

# %%
by_action = torch.tensor([0.0, 10.0], dtype=torch.float64)
claim(
    "critic.knows_the_action",
    "A baseline of 0 for lever 0 and 10 for lever 1 turns the mean push from +0.81 to −0.09.",
    abs(push(0.0)[0] - 0.81) < 1e-6 and abs(push(by_action)[0] + 0.09) < 1e-6,
    control=("Whatever is subtracted, the mean push stays.", abs(push(by_action)[0] - 0.81) < 1e-6),
)

# %% [markdown]
# Now it is the worse lever that becomes more likely. You learn another game, in which the levers pay 1
# and 0.
#
# ## The mean of the batch
#
# Where does the number to subtract come from? Take the mean return of the batch: lesson 01 did that on
# CartPole. Is it a baseline? The return of each draw is a part of that mean, so the mean knows a little
# of the action.
#
# Say that one action has probability 0.3 and pays 1, and the other pays 0. With one logit as above, ∇J =
# 0.3·0.7 = 0.21. A batch has three draws, and you subtract their mean return. Average the gradient that
# you get over all batches that may come up. What is it?

# %%
predict("critic.own_mean", None)

# %% [markdown]
# There are eight batches. List them, with their probabilities. The score of a draw is 1 − 0.3 or 0 −
# 0.3, so it is its reward minus 0.3.

# %%
batches = torch.tensor(list(itertools.product((0.0, 1.0), repeat=3)), dtype=torch.float64)
chances = (0.3 * batches + 0.7 * (1 - batches)).prod(-1)


def mean_gradient(baselines):
    return (chances * ((batches - 0.3) * (batches - baselines)).mean(-1)).sum().item()


# %%
own_mean = batches.mean(-1, keepdim=True)
compare("critic.own_mean", mean_gradient(own_mean))

# %% [markdown]
# A third of each return is subtracted from itself, and a third of the gradient is gone. With k draws the
# factor is (k − 1)/k. The cure: compare each draw with the mean of the *others*, which is called
# **leave-one-out**. The others were drawn independently, so they know nothing of this action.

# %%
show_source(critic.leave_one_out_baseline)

# %%
others = critic.leave_one_out_baseline(batches)
claim(
    "critic.own_mean",
    "The mean of the others keeps the gradient at 0.21; the mean of all three shrinks it to 0.14.",
    abs(mean_gradient(others) - 0.21) < 1e-9 and abs(mean_gradient(own_mean) - 0.14) < 1e-9,
    control=(
        "The mean of all three keeps it at 0.21 as well.",
        abs(mean_gradient(own_mean) - 0.21) < 1e-9,
    ),
)

# %% [markdown]
# Does it matter? Hold the two side by side, batch by batch:

# %%
claim(
    "critic.same_direction",
    "In all eight batches, return minus the mean of the others is 3/2 of return minus the mean of all.",
    torch.allclose(batches - others, 1.5 * (batches - own_mean)),
    control=(
        "In all eight batches the two are equal.",
        torch.allclose(batches - others, batches - own_mean),
    ),
)

# %% [markdown]
# They differ in length alone, so the mean of all acts like a smaller learning rate. (Adam does not even
# notice a constant factor.) For 2,048 draws the factor (k − 1)/k is 0.9995, and nobody minds. For four, as
# language models often have for one question, it is 0.75.
#
# Many programs go further and divide by the standard deviation of the batch, so that the length of a
# step does not depend on the unit of the reward. That has a trap of its own: torch's `std` divides by k
# − 1, and with one draw that is 0 / 0.


# %%
def normalised(returns):
    distance = returns - returns.mean()
    spread = (distance.square().sum() / (len(returns) - 1)).sqrt()  # as torch's std
    return distance / (spread + 1e-8)


# %%
lone = normalised(torch.tensor([3.0]))
claim(
    "critic.lone_draw",
    "The weight of a lone draw is NaN, for all that 1e-8 is added.",
    lone.isnan().all(),
    control=("With two draws it is NaN, too.", normalised(torch.tensor([3.0, 5.0])).isnan().any()),
)

# %% [markdown]
# One such minibatch, and every weight of the network is NaN. It happens at the ragged end of a batch:
# cut 2,049 samples into minibatches of 64, and one is left over.
#
# What you may subtract:
#
# | subtracted | fixed before the draw? | mean push |
# | --- | --- | --- |
# | a number, V(s), any guess about the state | yes | stays |
# | mean of the other draws | yes: they are independent | stays |
# | mean of all k draws | no | times (k − 1)/k |
# | a critic that was fitted to these draws themselves | no: it has seen them | shrinks |
# | anything that depends on the action | no | is another one |
#
# ## In a game of many steps
#
# Back to the valley and the hill of lesson 01: three steps, beginning in the valley. A move works half
# of the time. Moving up costs 1, staying on the hill pays 2, and all else pays 0. An episode's gradient
# is the sum of its scores, each with a weight. Try three weights: the reward-to-go, the reward-to-go minus
# V, and the advantage. How much does the gradient scatter with each? With all 18 trajectories listed, its
# variance can be told exactly:


# %%
game, places = exact.two_state(), ("valley", "hill")


def variance_of(listed, logits, weights):
    estimates = exact.gradient_estimates(game, logits, listed, weights)
    mean, covariance = exact.mean_and_covariance(listed.probabilities, estimates)
    assert torch.allclose(mean, exact.policy_gradient(game, logits, gamma=1.0).flatten())
    return covariance.trace().item()


# %% [markdown]
# Now the three weights. `bonus` is added to every reward; then V grows by the bonus times the steps that
# are left.


# %%
def noise(logits, bonus=0.0):
    policy = exact.softmax_policy(game, logits)
    listed = exact.enumerate_trajectories(game, policy)
    to_go = rewards_to_go(listed.rewards + bonus, listed.terminated, gamma=1.0)
    steps_left = torch.tensor([3, 3, 2, 2, 1, 1])  # valley, hill with 3 left; with 2; with 1
    expected = exact.state_values(game, policy, gamma=1.0) + bonus * steps_left
    gains = exact.advantages(game, policy, gamma=1.0)[listed.states, listed.actions]
    weights = {"none": to_go, "minus V": to_go - expected[listed.states], "advantage": gains}
    return {name: variance_of(listed, logits, weight) for name, weight in weights.items()}


# %% [markdown]
# (The `assert` holds each time: none of the three moves the mean.) Once for a policy that tosses a coin,
# once for one that has learned to climb and to stay, and once more for that one when each step pays 1
# more.

# %%
coin = torch.zeros(2, 2, dtype=torch.float64)
climber = torch.tensor([[0.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
games = {"coin": noise(coin), "learned": noise(climber), "bonus": noise(climber, bonus=1.0)}
titles = ("coin: V helps", "after learning: V hurts", "1 more each step: V as before")

# %% [markdown]
# After learning, the bare reward-to-go leaves a variance of 0.97. The advantage knows all that there is to
# know of state and action. What does it leave?

# %%
predict("critic.advantage_noise", None)

# %%
compare("critic.advantage_noise", games["learned"]["advantage"])

# %% [markdown]
# All nine variances:

# %%
show(
    figures.noise_left(dict(zip(titles, games.values(), strict=True))),
    alt="Bars of the variance in three cases. Coin: none 2.75, minus V 1.89, advantage 0.46. After "
    "learning: 0.97, 1.76, 1.14. With 1 more a step: 3.37, 1.76, 1.14.",
)

# %% [markdown]
# The same story as with the levers. V helps or hurts, and it does not care where zero is. In the middle
# even the advantage leaves more noise than the bare reward-to-go, 1.14 against 0.97, for the reason of
# b*: it does not look at the length of the scores, either.

# %%
claim(
    "critic.many_steps",
    "V lowers the variance for the coin, raises it after learning, and there a bonus leaves it alone.",
    games["coin"]["minus V"] < 0.7 * games["coin"]["none"]
    and games["learned"]["minus V"] > 1.7 * games["learned"]["none"]
    and math.isclose(games["bonus"]["minus V"], games["learned"]["minus V"]),
    control=(
        "There the bonus leaves the noise without a baseline alone, too.",
        math.isclose(games["bonus"]["none"], games["learned"]["none"]),
    ),
)

# %% [markdown]
# V takes out the luck of *where you are*. What remains in G − V is the luck of *what comes after* the
# action. The advantage is the mean of G − V given state and action: that luck is gone, too.
#
# What is it worth? Ask as in lesson 01 whether two batches agree. Two independent batches of n episodes
# give the gradients g₁ and g₂. The mean of g₁·g₂ is |∇J|², since all they have in common is their mean.
# The mean of |g₁|² is |∇J|² + variance / n. Call the ratio of the two the share that they have in common.
# For the coin and n = 8:

# %%
signal = exact.policy_gradient(game, coin, gamma=1.0).square().sum().item()
agreed = {name: signal / (signal + number / 8) for name, number in games["coin"].items()}
for name, share in agreed.items():
    print(f"{name:10} {share:.2f}")

# %%
claim(
    "critic.agreement",
    "Two batches of 8 episodes have 48 % in common, with V 57 %, with the advantage 85 %.",
    [round(share, 2) for share in agreed.values()] == [0.48, 0.57, 0.85],
    control=("V gets more than half of the way to the advantage.", agreed["minus V"] > 0.665),
)

# %% [markdown]
# But where does V come from? You had the table of the game here. In a real task there is none.
#
# ## Learning what to expect
#
# A **critic** is a function that says a number for each state, its guess of V(s), and learns it from the
# returns that followed. It never acts. From here R is what it is asked to say: the reward-to-go, later
# another target. And V in a formula is what the critic says; where the truth is meant, it is the *exact*
# V. It is trained by **value regression**: change its numbers so that
# their squared distance to the returns becomes smaller.
#
# One state, five visits, and the returns that followed were 0, 0, 0, 0 and 10. Where does a critic come
# to rest?

# %%
predict("critic.rest", None, unit="reward")

# %% [markdown]
# The loss is half the mean squared distance. `mask`, as everywhere in the package, leaves samples out.

# %%
show_source(critic.value_loss)

# %% [markdown]
# Follow its slope downhill. `pick` says which of the critic's numbers belongs to each return.


# %%
def train_critic(values, targets, num_steps, pick=lambda values: values, loss_of=critic.value_loss):
    for _ in range(num_steps):
        values = values.detach().requires_grad_()
        loss = loss_of(pick(values), targets)
        values = values - torch.autograd.grad(loss, values)[0]
    return values.detach()


# %%
five = torch.tensor([0.0, 0.0, 0.0, 0.0, 10.0])
rest = train_critic(torch.zeros(1), five, 200, pick=lambda value: value.expand(5))
compare("critic.rest", rest)

# %% [markdown]
# At the mean. The slope of half the mean of (V − R)² is V minus the mean of R, and it is zero at the
# mean, however rare the 10 is. So the squared error asks for the right thing, since V is *defined* as a
# mean. The absolute error would ask for the median, 0. (Here it keeps stepping around it.)

# %%
absolute = train_critic(
    torch.zeros(1),
    five,
    200,
    pick=lambda value: value.expand(5),
    loss_of=lambda said, came: (said - came).abs().mean() / 10,  # / 10: smaller steps
)

# %%
claim(
    "critic.mean",
    "Regression on 0, 0, 0, 0, 10 comes to rest at 2, the mean.",
    abs(rest - 2) < 1e-4,
    control=("So does regression by the absolute error.", abs(absolute - 2) < 1),
)

# %% [markdown]
# What is the loss there? Not zero:

# %%
left_over = critic.value_loss(rest.expand(5), five)
claim(
    "critic.loss_floor",
    "A perfect critic has a loss of 8 here, half the variance of the returns.",
    abs(left_over - 8) < 1e-4 and math.isclose(left_over, five.var(correction=0) / 2, rel_tol=1e-5),
    control=("The loss of a perfect critic is 0.", abs(left_over) < 1e-4),
)

# %% [markdown]
# The luck of the world stays in the loss. A value loss that has stopped falling may mean that the critic
# is done, or that it is stuck. The loss does not tell.
#
# Now the valley and the hill. Under the coin every trajectory has a probability that is a multiple of
# 1/64, so 64 episodes can hold each of them exactly as often as it should come. A critic
# learns from their rewards-to-go. It has six numbers: what is still to come depends on the place, valley or
# hill, and on the steps that are left, 3, 2 or 1.

# %%
policy = exact.softmax_policy(game, coin)
listed = exact.enumerate_trajectories(game, policy)
copies = (64 * listed.probabilities).round().long()

# %%
each = torch.arange(len(copies)).repeat_interleave(copies)
states = listed.states[:, each]
to_go = rewards_to_go(listed.rewards[:, each], listed.terminated[:, each], gamma=1.0)

# %% [markdown]
# Every number starts at 0:

# %%
zeros = torch.zeros(6, dtype=torch.float64)
learned = train_critic(zeros, to_go, 600, pick=lambda values: values[states])
truth = exact.state_values(game, policy, gamma=1.0)

# %%
for state in range(6):
    name = f"{places[state % 2]}, {3 - state // 2} left"
    print(f"{name:15} learned {learned[state] + 0.0:7.4f}   exact V {truth[state]:7.4f}")

# %% [markdown]
# Five of six are the exact V, to the last digit printed. The sixth, the hill with three steps left, is never visited, since
# every episode begins in the valley. There the critic says what it said before it had learned anything.

# %%
visited = states.unique()
claim(
    "critic.regression",
    "In the five visited states regression finds the exact V, to 6 digits.",
    (learned - truth)[visited].abs().max() < 1e-6 and len(visited) == 5,
    control=("It finds the exact V in all six.", (learned - truth).abs().max() < 1e-6),
)

# %% [markdown]
# That was a sample without luck. From 20 episodes, drawn by chance, a critic finds roughly that:

# %%
generator = torch.Generator().manual_seed(0)
drawn = exact.sample_trajectories(game, policy, num_trajectories=20, generator=generator)
drawn_to_go = rewards_to_go(drawn.rewards, drawn.terminated, gamma=1.0)
sampled = train_critic(zeros, drawn_to_go, 600, pick=lambda values: values[drawn.states])

# %% [markdown]
# The grey dots are all returns that may follow a state, the larger the likelier.

# %%
names = [f"{places[state % 2]}\n{3 - state // 2} left" for state in visited]
mass = [to_go[states == state].unique(return_counts=True) for state in visited]
clouds = [dict(zip(g.tolist(), (n / n.sum()).tolist(), strict=True)) for g, n in mass]

# %%
show(
    figures.clouds(names, clouds, truth[visited].tolist(), sampled[visited].tolist()),
    alt="Five clouds of returns, one for each state that is visited. A line marks the exact V of each, "
    "and a diamond beside it what a critic has learned from 20 episodes.",
)

# %% [markdown]
# ### Must it be right?
#
# As a baseline, no. Whatever a critic says of a *state*, the mean push stays, as long as it was said
# before these episodes were drawn. A wrong critic costs noise, and no **bias**: the mean is not off. Take
# one that cannot see the time, so it has one number for the valley and one for the hill, and one that is
# 5 too high everywhere.

# %%
seen = game.observation_of
blind = train_critic(zeros[:2], to_go, 600, pick=lambda values: values[seen[states]])[seen]
listed_to_go = rewards_to_go(listed.rewards, listed.terminated, gamma=1.0)
critics = {"exact": truth, "blind to time": blind, "5 too high": truth + 5}

# %%
left = {
    name: variance_of(listed, coin, listed_to_go - guess[listed.states])
    for name, guess in critics.items()
}
for name, number in left.items():
    print(f"{name:14} variance {number:6.3f}")


# %% [markdown]
# Their means, against the exact gradient:


# %%
def is_right(expected):
    estimates = exact.gradient_estimates(game, coin, listed, listed_to_go - expected)
    mean, _ = exact.mean_and_covariance(listed.probabilities, estimates)
    return torch.allclose(mean, exact.policy_gradient(game, coin, gamma=1.0).flatten())


# %% [markdown]
# The blind one is nearly as good as the exact one. It has learned the mean of what follows *all that
# looks alike to it*.

# %%
claim(
    "critic.wrong_is_no_bias",
    "Exact, blind to time or 5 too high: the mean is ∇J, and the variances are 1.89, 1.93 and 36.9.",
    all(is_right(guess[listed.states]) for guess in critics.values())
    and [round(number, 2) for number in left.values()] == [1.89, 1.93, 36.89],
    control=(
        "If the 5 is added for one action alone, the mean is ∇J as well.",
        is_right(truth[listed.states] + 5 * (listed.actions == 1)),
    ),
)

# %% [markdown]
# But how do you come by a critic? The obvious way is to play some episodes, to fit it to them, and to
# subtract it from the same ones. That is the mean of the batch again, state by state. Take 4,000 batches
# of 8 episodes, and fit a table to each: the mean of what followed each state.

# %%
many = exact.sample_trajectories(game, policy, num_trajectories=32_000, generator=generator)
came = rewards_to_go(many.rewards, many.terminated, gamma=1.0)
here = torch.nn.functional.one_hot(many.states, 6).double().reshape(3, 4000, 8, 6)
visits = here.sum((0, 2)).clamp(min=1)
fitted = (here * came.reshape(3, 4000, 8, 1)).sum((0, 2)) / visits  # a table for each batch

# %% [markdown]
# To **score** a batch means here and in the code to turn it into weights, with what a critic says. (An
# unlucky word: it has nothing to do with the score of an action.) Score each batch with its own table, and
# then with the table of the batch before it. How much of ∇J is in the mean gradient?


# %%
def share_kept(tables):
    said = (here * tables.unsqueeze(1)).sum(-1).reshape(3, -1)
    estimates = exact.gradient_estimates(game, coin, many, came - said)
    target = exact.policy_gradient(game, coin, gamma=1.0).flatten()
    return (estimates.mean(0) @ target / target.square().sum()).item()


# %% [markdown]
# With the table of the batch before, all of it. And with its own table? Each batch has 8 episodes. Your
# guess for the share, between 0 and 1:

# %%
predict("critic.own_table", None)

# %%
own, before_it = share_kept(fitted), share_kept(fitted.roll(1, 0))
compare("critic.own_table", own, digits=2)

# %% [markdown]
# A third is gone. With 8 draws in each state it would be an eighth. But the 24 steps of a batch are spread
# over five states. The hill with two steps left comes up twice in a batch of 8, as a rule, so half of what
# is subtracted there is the return itself.

# %%
claim(
    "critic.fitted_first",
    "Scored with the table of the batch before, the mean gradient keeps its length, within 10 %.",
    abs(before_it - 1) < 0.1,
    control=("Scored with its own table it keeps 7/8 of it.", abs(own - 7 / 8) < 0.1),
)

# %% [markdown]
# So score first, and train the critic afterwards: the training loop of lesson 08 keeps this order. (All this is on V as a baseline. When it stands in for a
# future that nobody has seen, what is wrong with it is a bias: lesson 06.)
#
# ## What breaks it
#
# Three mistakes that run without an error.
#
# ### A column against a row
#
# A network gives its values as a column, of shape (4, 1). The returns come as a row, of shape (4,). Four
# samples have the returns 2, 4, 6, 8, and the critic says exactly that. What is the mean of (V − R)², as
# torch computes it?

# %%
predict("critic.column", None)

# %%
row = torch.tensor([2.0, 4.0, 6.0, 8.0])
column = row.unsqueeze(-1)
table = (column - row) ** 2
compare("critic.column", table.mean())

# %% [markdown]
# The difference has shape (4, 4): every value is held against every return. Values and returns have the
# same mean here. So its mean square is the variance of the values plus that of the returns, and that is
# 5 + 5 for a critic that makes no mistake. And its slope pulls each value to the mean of *all* returns.


# %%
def twenty_steps(as_column):
    steps = [row]
    for _ in range(20):
        values = steps[-1].clone().requires_grad_()
        said = values.unsqueeze(-1) if as_column else values
        (slope,) = torch.autograd.grad(((said - row) ** 2).mean() / 2, values)
        steps.append((values - slope).detach())
    return torch.stack(steps)


# %%
show(
    figures.pulled_together(twenty_steps(as_column=True).numpy(), row.tolist()),
    alt="Four values start at 2, 4, 6 and 8, where they should be, and all run to 5.",
)

# %% [markdown]
# In numbers:

# %%
claim(
    "critic.column",
    "The error of a perfect critic is 10, twice the variance, and training leads all values to 5.",
    table.mean() == 2 * row.var(correction=0) == 10
    and (twenty_steps(as_column=True)[-1] - 5).abs().max() < 0.05,
    control=(
        "With the values as a row they run to 5, too.",
        (twenty_steps(as_column=False)[-1] - 5).abs().max() < 0.05,
    ),
)

# %% [markdown]
# Nothing in a log looks broken. The loss even falls, down to half of where it began. So the package's
# function compares the shapes first:

# %%
try:
    critic.value_loss(column, row)
except ValueError as error:
    print(error)

# %% [markdown]
# ### The sum for the mean
#
# With the sum over the batch in place of the mean, a batch of twice the size has twice the gradient. PPO
# adds value loss and policy loss with fixed weights. Where the two share layers of a network, or a limit
# on the length of the gradient as in this course, their balance would depend on the size of the batch. A
# test finds it: feed every sample twice.

# %%
once = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 0.0])
twice = [numbers.repeat(2) for numbers in once]
sums = [((values - returns) ** 2).sum() for values, returns in (once, twice)]

# %%
claim(
    "critic.twice",
    "With every sample fed twice, the value loss stays the same.",
    critic.value_loss(*twice) == critic.value_loss(*once),
    control=("The sum of squared errors stays the same, too.", sums[0] == sums[1]),
)

# %% [markdown]
# ### The policy's gradient in the critic
#
# The weight of a push is R − V, and V comes out of a network. To the policy's loss it must be a
# *constant*. Forget that, and −log π · (R − V) has a slope in V as well: log π, which is negative. So
# the optimiser raises V, for no reason but that it makes a number smaller. Two levers pay 1 and 3 and
# the policy is a coin, so V = 2. Train a critic on both losses together, with the weight a constant or
# not:


# %%
def critic_beside_policy(constant):
    value = torch.zeros(1, requires_grad=True)
    for _ in range(300):
        returns = torch.tensor([1.0, 3.0])
        weights = returns - (value.detach() if constant else value)
        loss = -(math.log(0.5) * weights).mean() + critic.value_loss(value.expand(2), returns)
        value = (value - 0.1 * torch.autograd.grad(loss, value)[0]).detach().requires_grad_()
    return value.item()


# %%
clean, leaky = critic_beside_policy(constant=True), critic_beside_policy(constant=False)
claim(
    "critic.leak",
    "With the gradient through it the critic ends 0.69 too high, and else it ends at 2.",
    abs(clean - 2) < 1e-4 and abs(leaky - 2 - math.log(2)) < 1e-4,
    control=("The critic ends at 2 in either case.", abs(leaky - 2) < 1e-4),
)

# %% [markdown]
# 0.69 is ln 2, the mean of −log π: the **entropy** of the policy, which says how undecided it is. So the
# critic is too high wherever the policy is undecided, and as long as V is a baseline only, the mean push
# stays what it was: a silent mistake. (The weight of the value loss is 1 here; with half of it the
# critic ends twice as far off. In PPO's loss the ratio, about 1, stands in place of log π. Then the slope
# in V has the other sign, and the critic ends about 1 / weight too *low*.)
#
# The package's `reinforce_loss` cuts the path with `weights.detach()`, and `value_loss` does so for the
# returns.
#
# ## The clip of the value
#
# Some PPO programs clip the critic as well. That is not in the paper; programs brought it in. V_old is
# what the critic said when the batch was scored. A value that has moved from there by more than ε is
# stopped: it counts as if it had moved by ε. That gives two squared errors, one of the value and one of the
# stopped value, and the loss takes one of the two.
#
# Say V_old was 5, the return was 10, and other samples have dragged V to 1. With ε = 0.2 the two are
# (1 − 10)² = 81 and (4.8 − 10)² = 27.04. Which one must count, so that V is called back?

# %%
predict("critic.clip_choice", None)

# %% [markdown]
# The package's function takes the larger one:

# %%
show_source(critic.clipped_value_loss)

# %% [markdown]
# Here is the stray value:


# %%
def clipped(values, target=10.0, value_old=5.0, clip_epsilon=0.2):
    targets, olds = torch.full_like(values, target), torch.full_like(values, value_old)
    return critic.clipped_value_loss(values, targets, values_old=olds, clip_epsilon=clip_epsilon)


# %%
strayed = torch.tensor([1.0], dtype=torch.float64)
compare("critic.clip_choice", 2 * clipped(strayed), digits=4)

# %% [markdown]
# The 27.04 would be the same if V had strayed to 0 or to 2, so it has no slope. The 81 has one, and calls V
# back. Somebody who writes the minimum, since the policy's clip has one, loses it: there an objective is
# maximised, and here a loss is minimised.


# %%
def smaller(values):
    moved = 5 + (values - 5).clamp(-0.2, 0.2)
    return (torch.minimum((values - 10) ** 2, (moved - 10) ** 2) / 2).mean()


# %% [markdown]
# Both, and no clip at all, for every value that V may have now:

# %%
grid = torch.linspace(0, 16, 161, dtype=torch.float64)
rules = {"no clip": lambda v: ((v - 10) ** 2 / 2).mean(), "the larger error": clipped}
rules["the smaller error"] = smaller
errors = {name: np.array([rule(v.reshape(1)) for v in grid]) for name, rule in rules.items()}

# %%
show(
    figures.clipped_errors(grid.numpy(), errors, value_old=5.0, target=10.0),
    alt="Half the squared error over the value. Without a clip a parabola around the return 10. The "
    "larger error is flat from 5.2 to 14.8. The smaller one is flat below 4.8, where it should pull.",
)

# %% [markdown]
# Read the slopes off the picture, then check them:


# %%
def slope_at(loss, value):
    values = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(loss(values), values)[0].item()


# %%
claim(
    "critic.clip_pessimistic",
    "A value that strayed from 5 to 1 is pulled back by the larger error, and not by the smaller.",
    slope_at(clipped, 1.0) == -9 and slope_at(smaller, 1.0) == 0,
    control=(
        "One that went from 5 to 7, towards its return, is still pulled on by the larger error.",
        slope_at(clipped, 7.0) != 0,
    ),
)

# %% [markdown]
# The second sentence fails, and that is the idea of it: past ε on the way to the return, the slope is
# zero. But ε carries the unit of the reward. Multiply all rewards by 100, and it stays at 0.2. After
# what share of its way does a value fall silent then?


# %%
def silent_after(target):
    values = torch.linspace(0, target, 10_001, dtype=torch.float64)[1:-1].requires_grad_()
    (slopes,) = torch.autograd.grad(clipped(values, target, value_old=0.0), values)
    return (values[slopes == 0][0] / target).item()


# %%
claim(
    "critic.clip_scale",
    "On its way to a return of 1 a value falls silent after 20 %, and on its way to 100 after 0.2 %.",
    abs(silent_after(1.0) - 0.2) < 1e-3 and abs(silent_after(100.0) - 0.002) < 2e-4,
    control=(
        "The share of the way does not depend on the scale of the rewards.",
        abs(silent_after(100.0) - silent_after(1.0)) < 0.01,
    ),
)

# %% [markdown]
# A ratio has no unit, a value has one. So this clip asks for *returns* of about one unit. Rewards of 1 do
# not see to that: a hundred of them add up to 100. There a value falls silent after a fraction of a percent
# of its way, until the next batch is scored. Nor is it a wall: one large step crosses it, as in [lesson 04](04_clip.ipynb). A large
# comparison found that it hurts (Andrychowicz et al., 2021), and this course trains without it.
#
# ## A grade for critics
#
# The loss has a floor that nobody knows. So one asks something else: which share of the variance of the
# returns does the critic account for? This share is the **explained variance**:
#
# $$\text{EV} = 1 - \frac{\text{Var}(R - V)}{\text{Var}(R)}$$
#
# The returns are 2, 4, 6, 8, and the critic says 102, 104, 106, 108. What is its explained variance?

# %%
predict("critic.shifted", None)

# %%
guesses = {"right": row, "100 too high": row + 100, "always 5": torch.full((4,), 5.0)}
guesses |= {"twice too large": 2 * row, "reversed": row.flip(0)}
grades = {name: critic.explained_variance(guess, row).item() for name, guess in guesses.items()}

# %% [markdown]
# Five critics, their grades and their losses. The second row was the question:

# %%
for name, guess in guesses.items():
    print(f"{name:16} EV {grades[name] + 0.0:5.2f}   loss {critic.value_loss(guess, row):7.1f}")

# %%
compare("critic.shifted", grades["100 too high"])

# %% [markdown]
# A variance does not see a constant. The noise of the gradient does: a critic 5 too high left twenty times
# as much as the exact one. So look at the loss, too. A critic that says the same everywhere earns 0; with a
# grade below 0 it is worse than such a constant.

# %%
claim(
    "critic.grades",
    "100 too high has EV 1 and a loss of 5,000; a constant has 0, twice too large 0, reversed −3.",
    all(abs(grades[n] - g) < 1e-5 for n, g in zip(guesses, (1, 1, 0, 0, -3), strict=True))
    and critic.value_loss(row + 100, row) == 5000,
    control=(
        "An explained variance near 1 means a small loss.",
        critic.value_loss(guesses["100 too high"], row) < 1,
    ),
)

# %% [markdown]
# And where all returns are equal there is nothing to explain. Then the package says NaN. A 0 would read
# as a failure.

# %%
equal = torch.full((4,), 500.0)
claim(
    "critic.nothing_to_explain",
    "If all returns are equal, the explained variance is NaN, for a perfect critic as well.",
    critic.explained_variance(equal, equal).isnan()
    and critic.explained_variance(row, equal).isnan(),
    control=("For a perfect critic it is 1.", critic.explained_variance(equal, equal) == 1),
)

# %% [markdown]
# Which grade can be reached? Take the exact V, and the 64 episodes that hold each trajectory in the right
# number:

# %%
ceiling = critic.explained_variance(truth[states], to_go)
within = [to_go[states == state].var(correction=0) for state in visited]
weights = torch.stack([(states == state).double().mean() for state in visited])
luck = (torch.stack(within) * weights).sum() / to_go.var(correction=0)

# %%
claim(
    "critic.ceiling",
    "The exact V explains 31 %; the other 69 % is variance of the returns within the same state.",
    abs(ceiling - 0.3107) < 1e-4 and abs(1 - luck - ceiling) < 1e-9,
    control=(
        "The critic that is blind to time explains as much.",
        abs(critic.explained_variance(blind[states], to_go) - ceiling) < 1e-3,
    ),
)

# %% [markdown]
# The rest is luck that no function of the state can foresee: the mean of each state makes its part of the
# error as small as it can be. (Blind to time, it is 30 %.) So 0.31 is perfect here, and may be poor
# elsewhere. Compare two critics on the same returns, not one critic with 1.
#
# ### Try it with your hands
#
# A critic with three faults to set: a shift, a wrong scale, and noise. Guess which of them the explained
# variance forgives. Then watch it beside the loss. The blue bars are its errors, and the dashed ones
# those of the best constant. The grade compares how *wide* they are, the loss how far the blue ones lie
# from *zero*. (A second grade, against the critic's own targets, is for the section after next.)

# %%
fit = ValueFit(keep_as="critic.forgiven")
fit

# %% [markdown]
# Its two numbers, with the package's functions:

# %%
said, came = (torch.tensor(n, dtype=torch.float64) for n in (fit.values, fit.returns))
assert math.isclose(critic.explained_variance(said, came), fit.ev_monte_carlo, abs_tol=1e-9)
assert math.isclose(critic.value_loss(said, came), fit.loss_monte_carlo)
print("the widget and the package agree")

# %% [markdown]
# ## A critic for CartPole
#
# A state of CartPole is four real numbers, so no table can hold its values. The critic is a small
# network: observation in, one number out. In this course it shares nothing with the policy. Where the
# two share layers, the value loss also pulls at what the policy sees, and the weight between the losses
# matters a great deal.
#
# How do such networks begin? Their weights are **orthogonal** matrices, which keep the
# length of a vector where there are no fewer outputs than inputs, times a **gain**: √2 in the hidden layers, by convention, 1 at the end of the
# critic, and 0.01 at the end of the policy. The last makes all logits nearly equal, so the first policy
# tries everything.


# %%
def largest_bias(output_gain, seed):
    generator = torch.Generator().manual_seed(seed)
    body = mlp(4, (64, 64), 2, output_gain=output_gain, generator=generator)
    observations = torch.randn(1000, 4, generator=generator)
    return (body(observations).softmax(-1) - 0.5).abs().max().item()


# %%
claim(
    "critic.first_policy",
    "In ten fresh networks each action starts within 0.01 of probability 0.5, on 1,000 inputs.",
    max(largest_bias(0.01, seed) for seed in range(10)) < 0.01,
    control=(
        "With a gain of 1 at the end it does, too.",
        min(largest_bias(1.0, seed) for seed in range(10)) < 0.01,
    ),
)

# %% [markdown]
# Play 64 episodes with a policy that nobody has trained, and fit the critic to their rewards-to-go, with
# γ = 0.99. Grade it on 64 *other* episodes: on its own it may have learned the luck by heart.


# %%
def episodes_of(networks):
    episodes = play_episodes(envs, networks.policy, generator=generator)
    returns = rewards_to_go(episodes.rewards, episodes.ended, gamma=0.99)
    return episodes, returns[episodes.valid]


# %%
generator = torch.Generator().manual_seed(5)
envs = make_envs("CartPole-v1", 64)
networks = make_networks((4,), 2, hidden_sizes=(64, 64), generator=generator)
(episodes, returns), (fresh, fresh_returns) = episodes_of(networks), episodes_of(networks)

# %% [markdown]
# Before the training, keep what the untrained critic says; you will need it.

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    untrained = networks.critic(fresh.observations), networks.critic(fresh.next_observations)
optimizer = torch.optim.Adam(networks.critic.parameters(), lr=0.003)
for _ in range(300):
    loss = critic.value_loss(networks.critic(episodes.observations[episodes.valid]), returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    trained = networks.critic(fresh.observations)[fresh.valid]
honest = critic.explained_variance(trained, fresh_returns)
print(f"explained variance {honest:.2f}")

# %% [markdown]
# That was its grade on episodes that it has not seen. It differs a little from processor to processor:

# %%
claim(
    "critic.network",
    "After 300 steps it explains more than 10 % of the returns of fresh episodes.",
    honest > 0.1,
    control=(
        "So it does before the first step.",
        critic.explained_variance(untrained[0][fresh.valid], fresh_returns) > 0.1,
    ),
)

# %% [markdown]
# Typically it is 30 to 50 %. How long a pole stands is mostly luck when the policy is a coin.
#
# ## A grade that flatters
#
# You need not wait for the end of an episode to have a target. After one step you know one reward, and
# about the rest you may ask the critic itself:
#
# $$\text{target} = r_t + \gamma\,V(s_{t+1})$$
#
# (At the end of the task the second term is 0.) A target that contains the critic's own guess is a
# **bootstrapped target**. How much to trust it is lesson 06. But beware of grading with it. Take the
# *untrained* critic. Its values mean nothing. What is its explained variance against its own one-step
# targets?

# %%
predict("critic.flattered", None)

# %% tags=["nbval-ignore-output"]
garbage, next_garbage = untrained
bootstrapped = fresh.rewards + 0.99 * next_garbage * ~fresh.terminated
flattered = critic.explained_variance(garbage[fresh.valid], bootstrapped[fresh.valid])
compare("critic.flattered", flattered, digits=1)

# %% [markdown]
# Against its own targets, and against what came. For the picture the values are stretched until their
# standard deviation is 50, so that you see them. A factor hardly changes the grade on the left.

# %%
against_truth = critic.explained_variance(garbage[fresh.valid], fresh_returns)
stretch = 50 / garbage[fresh.valid].std()
wide_targets = fresh.rewards + 0.99 * stretch * next_garbage * ~fresh.terminated
held = {
    "Garbage agrees with itself": wide_targets[fresh.valid],
    "but not with what came": fresh_returns,
}
wide = (stretch * garbage[fresh.valid]).numpy()

# %%
show(
    figures.against({title: (wide, g.numpy()) for title, g in held.items()}, target="target"),
    alt="The same values twice. Against their own one-step targets most dots lie along the diagonal. "
    "Against the returns that came they form a flat band.",
)

# %% [markdown]
# Neighbouring states look alike to a network, whatever it says of them. So its guess for the next state
# agrees with its guess for this one: it confirms itself. (There are two bands on the left, since a push to
# the left and one to the right lead to different neighbours. The flat row is the last steps, after which
# nothing comes.)

# %%
claim(
    "critic.flattered",
    "Against its own targets garbage has above 0.5: more than the trained critic against what came.",
    flattered > 0.5 and flattered > honest,
    control=("Against what came, the same values have above 0.1, too.", against_truth > 0.1),
)

# %% [markdown]
# So garbage is graded higher than a critic that has learned something. There are two grades, and the
# training loop logs both by their names: `ev_lambda` against targets that hold the critic's own guesses (the
# lambda is that of lesson 06), and `ev_monte_carlo`, the honest one, against the rewards-to-go of episodes
# that were seen to their end. If you read "explained variance 0.9" in a log, ask: of what? (A critic need
# not be garbage for that. In the widget above, set the scale to 2. Held against what came, the critic is
# worse than a constant. Held against its own targets, it has 0.68.)
#
# ## Exercises
#
# [Eight exercises](../exercises/05_critic.ipynb) ask you to find the baseline with the least noise, to
# write the value loss, its clipped form and the explained variance, to predict some numbers, and to find
# the mistake in a loss that pulls everything to the mean.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("critic.best")

# %%
quiz("critic.allowed")

# %% [markdown]
# On learning it:

# %%
quiz("critic.loss")

# %%
quiz("critic.shape")

# %% [markdown]
# And on the grade:

# %%
quiz("critic.grade")

# %% [markdown]
# ## The stair
#
# What does a baseline buy in a real run? On CartPole REINFORCE did well without: each step pays 1, and
# to last longer is all there is to learn. **Acrobot** is less kind. Two rods hang from a pivot, and you
# push at the joint between them. Each step costs 1, until the tip swings above a line or 500 steps are
# over.
#
# A beginner hardly ever gets there. Episode after episode returns −500, whatever was done in it. Without
# a baseline every action that was drawn is pushed *down*, and hard. What moves the policy then is which
# actions happened to be drawn: noise without signal. Subtract what is to be
# expected, and about as much is pushed up as down: most of it cancels. And when an episode gets there at
# last, it stands out.
#
# That is the second stair. Sixteen seeds on each of the two, each stair with the best of three learning
# rates, were run once and recorded. Each batch is eight whole episodes, used for one step. The second stair
# subtracts what the critic says. Then, as most programs do, it subtracts the mean of the batch, and divides by
# the standard deviation. The first stair does none of this. (The critic has one step per batch, too: 33, if no
# episode gets there. Early on the mean does most.) The names of the later stairs wait for their lessons.

# %%
study = recorded("staircase")
print(study["command"])
show(
    staircase(study, upto="+ baseline"),
    alt="Two stairs with a dot per seed, and four names that wait. Return at the end: with REINFORCE most "
    "seeds are near −500 and a few above −200; with the baseline two thirds lie between −165 and −80. Three "
    "REINFORCE seeds and nine baseline seeds have solved the task.",
)

# %% [markdown]
# With the baseline the dots lie in two heaps: a seed that has found the way up stays there. REINFORCE finds
# it, too, on some seeds, and does not keep it. Count those that end above −200:

# %%
found = {
    name: sum(run["final_return"] > -200 for run in study["runs"][name])
    for name in ("REINFORCE", "+ baseline")
}
print(found)
claim(
    "critic.stair",
    "With the baseline at least four more of the sixteen seeds end above −200.",
    found["+ baseline"] >= found["REINFORCE"] + 4,
    control=(
        "Without it as many do, since a baseline leaves the mean push where it is.",
        found["REINFORCE"] >= found["+ baseline"],
    ),
)

# %% [markdown]
# Two things differ between the stairs: what is subtracted, and the division by the standard deviation. This
# study cannot part them. And five of the sixteen seeds still end at −500, and each batch is thrown away
# after one step. G − V still holds all the luck that comes after an action.
#
# ## What you have now
#
# - A baseline leaves the mean push where it is, as long as it was fixed before the action was drawn. The
#   noise may fall or rise. V is not the best one; it is the one that can be learned.
# - The mean of a batch holds the draw itself and shrinks the gradient by (k − 1)/k. The mean of the
#   others does not.
# - Squared error teaches a critic the mean of what follows all that looks alike to it. As a baseline it
#   may be wrong: that costs noise, and no bias, unless it was fitted to the draws that it scores.
# - Shapes must be equal, and to the policy's loss V is a constant. Clipping the value depends on the
#   scale of the reward.
# - Explained variance forgives a constant, and in a world with luck it never reaches 1. Against targets
#   that hold the critic's own guesses it flatters.
#
# Next: G − V still holds the luck of everything that comes after. You could look one step ahead and let
# the critic say the rest, if you trusted it. How much should you? That is [lesson 06](06_gae.ipynb).
