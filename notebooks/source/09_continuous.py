# %% [markdown]
# # Continuous actions
#
# **What if actions are real numbers?**
#
# Until now you could count the actions: left or right, one of three. A motor takes *any* torque between −2 and
# 2, and a robot takes many such numbers at once. There are no probabilities to list. What becomes of the ratio,
# of the clip, of the loop?
#
# Hardly anything, and that is the first half of this lesson. The second half is what does change, and bites:
# a score without bound, actions that the world does not carry out as they were drawn, and numbers in all sizes.
# At the end the loop of [lesson 08](08_training_loop.ipynb) swings up a pendulum, and not one line of it is new.
#
# The words that you need: the **score** of an action is ∇log π, the direction that makes it more likely. The
# **ratio** π / π_old says how much more likely it is now. The **KL** says how far two policies are apart, in nats.
# **Truncated** means that we stopped watching; **terminated**, that the task is over.

# %% tags=["nbval-ignore-output"]
import math
from dataclasses import replace

import torch

import ppo_lessons.continuous as lesson
from ppo_lessons import budget, claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.clip import clip_fractions, clipped_surrogate_loss
from ppo_lessons.envs import BatchedEnvs, NormalizedEnvs, Pendulum
from ppo_lessons.figures import continuous as figures
from ppo_lessons.importance import importance_ratios
from ppo_lessons.mdp import MDP, expected_return
from ppo_lessons.networks import gaussian_entropies, gaussian_log_probs
from ppo_lessons.notebook import Watch
from ppo_lessons.training_loop import PRESETS, Parts, evaluate, train
from ppo_lessons.widgets import GaussianPolicy

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("continuous.review_score")

# %%
quiz("continuous.review_first")

# %% [markdown]
# The third is on ends:

# %%
quiz("continuous.review_limit")

# %% [markdown]
# ## A bell curve
#
# The usual answer is a **Gaussian policy**: the network looks at the state and gives a mean μ, and the action is
# drawn around it with a spread σ. How likely is a torque of exactly 0? As likely as any single real number: not
# at all. What a policy over real numbers has is a **density**, probability per unit of the action. Only areas
# under it are probabilities.
#
# Take μ = 0 and σ = 0.1, a policy that is rather sure of itself. How large is its density at the mean?

# %%
predict("continuous.density", None, unit="per newton metre")

# %% [markdown]
# `gaussian_log_probs` gives the logarithm, for actions of shape [..., A]: here one action, of one number.


# %%
def row(*numbers):
    return torch.tensor([numbers], dtype=torch.float64)


def spread(*sigmas):
    return torch.tensor(sigmas, dtype=torch.float64).log()


# %%
at_the_mean = gaussian_log_probs(row(0), row(0), spread(0.1))
compare("continuous.density", at_the_mean.exp().item(), unit="per newton metre")

# %% [markdown]
# Almost 4. No probability could be that large, and a density may: near the mean, a strip of width w holds about
# 4·w of the draws.

# %%
line = torch.linspace(-3, 3, 1201, dtype=torch.float64).unsqueeze(-1)
curves = {
    f"σ = {sigma:g}": gaussian_log_probs(line, 0 * line, spread(sigma)).exp().numpy()
    for sigma in (1, 0.3, 0.1)
}
show(
    figures.bells(line.squeeze().numpy(), curves),
    alt="Three bell curves around 0. With sigma 1 the peak is at 0.4, with 0.3 at 1.3, with 0.1 at 4.",
)

# %%
strip = line.squeeze().abs() < 0.0101  # 2 hundredths wide
share = curves["σ = 0.1"][strip].mean() * 0.02
claim(
    "continuous.density",
    "At σ = 0.1 the log-density at the mean is above 1, and 8 % of the draws are within 0.01 of it.",
    at_the_mean > 1 and abs(share - 0.08) < 1e-3,
    control=("At σ = 1, too, the log-density is above 0 somewhere.", curves["σ = 1"].max() > 1),
)

# %% [markdown]
# So a log-probability above 0 in your logs is no bug here. The number depends on the unit: measure the same
# torque in millinewton metres, and each density is a thousandth of what it was.

# %%
in_milli = gaussian_log_probs(row(150), row(0), spread(100))
in_newton = gaussian_log_probs(row(0.15), row(0), spread(0.1))
moved = gaussian_log_probs(row(0.15), row(0.05), spread(0.1))
moved_in_milli = gaussian_log_probs(row(150), row(50), spread(100))

# %% [markdown]
# Ratios do not care, since the unit cancels. And it is ratios that PPO lives on.

# %%
claim(
    "continuous.units",
    "In another unit the log-density is ln 1000 lower, and the log-ratio of an action is the same.",
    torch.isclose(in_newton - in_milli, torch.tensor(math.log(1000), dtype=torch.float64))
    and torch.isclose(moved - in_newton, moved_in_milli - in_milli),
    control=(
        "The entropy is the same, too.",
        torch.isclose(gaussian_entropies(spread(100)), gaussian_entropies(spread(0.1))),
    ),
)

# %% [markdown]
# Entropy depends on the unit as well, and may be negative: below σ = 0.24 it is. It is no count of
# possibilities any more. All that it still says is how log σ moves.

# %%
claim(
    "continuous.entropy",
    "At σ = 0.1 the entropy is −0.88, and doubling σ adds ln 2 at any σ.",
    abs(gaussian_entropies(spread(0.1)) + 0.884) < 1e-3
    and torch.isclose(
        gaussian_entropies(spread(0.2)) - gaussian_entropies(spread(0.1)),
        gaussian_entropies(spread(2)) - gaussian_entropies(spread(1)),
    ),
    control=("It is 0 at the least, as that of a die.", gaussian_entropies(spread(0.1)) >= 0),
)

# %% [markdown]
# ## Several numbers at once
#
# A robot's action is a row of numbers, one per joint: its **dimensions**. The policy draws each on its own, so
# the density of the whole action is a product, and its logarithm a sum:
#
# $$\log\pi(a\mid s) = \sum_j\left[-\tfrac12\left(\frac{a_j-\mu_j(s)}{\sigma_j}\right)^2 - \log\sigma_j -
# \tfrac12\log 2\pi\right]$$
#
# The network gives the means; log σ is a parameter of its own, the same in all states. And as the code that the
# policy runs, where the last line is the one that is forgotten most often:

# %%
show_source(gaussian_log_probs)

# %% [markdown]
# One action, one log-probability, one ratio. What happens without the sum? Take two joints whose densities have
# both grown by 15 %.

# %%
joint = torch.tensor([1.15 * 1.15], dtype=torch.float64).log()
apart = torch.tensor([1.15, 1.15], dtype=torch.float64).log()
outside = [
    clip_fractions(each, 0 * each, torch.ones_like(each), clip_epsilon=0.2)[0]
    for each in (joint, apart)
]

# %%
claim(
    "continuous.joint",
    "Two joints at 1.15 make an action at 1.32: it is outside 1 ± 0.2, and joint by joint none is.",
    outside[0] == 1 and outside[1] == 0 and abs(joint.exp() - 1.3225) < 1e-9,
    control=("The action is outside only if one of its joints is.", outside[0] == outside[1]),
)

# %% [markdown]
# So the unsummed version runs a clip that sees too little, and the more joints, the less. (If the batch holds one
# advantage per action, shapes [B, A] and [B] do not fit, and the package says so. Where A is 1, as on Pendulum, other
# programs make a table of B × B out of [B, 1] and [B] and say nothing; nor do they where A equals B.)
#
# ## A score without bound
#
# The slopes of log π of one action, by hand:
#
# $$\frac{\partial\log\pi}{\partial\mu} = \frac{a-\mu}{\sigma^2}\qquad
# \frac{\partial\log\pi}{\partial\log\sigma} = \left(\frac{a-\mu}{\sigma}\right)^2 - 1$$
#
# Read them in words. A good action pulls the mean towards itself. It widens the policy if it lies farther out
# than one σ, and narrows it if it is nearer. Now let σ shrink from 1 to 0.1, as it does while the policy gets
# sure. Draws are then ten times as near to the mean. How many times as long is the typical score of the mean?

# %%
predict("continuous.score_growth", None, unit="times")

# %% [markdown]
# With 100,000 draws at each σ:


# %%
def score_sizes(sigma, num_draws=100_000):
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(num_draws, 1, generator=generator, dtype=torch.float64)
    scores = lesson.gaussian_scores(sigma * noise, 0 * noise, spread(sigma))
    return [score.square().mean().sqrt().item() for score in scores]


wide, narrow = score_sizes(1.0), score_sizes(0.1)
compare("continuous.score_growth", narrow[0] / wide[0], unit="times")

# %% [markdown]
# Ten times: the distance is a tenth, and it is divided by a hundredth. For a softmax no score in the logits is
# ever longer than √2. Here the typical one is 1 / σ, and nothing stops it.

# %%
claim(
    "continuous.score",
    "The root mean square of the mean's score is 1/σ: 1 at σ = 1, and 10 at σ = 0.1.",
    abs(wide[0] - 1) < 0.02 and abs(narrow[0] - 10) < 0.2,
    control=("That of log σ grows as much.", narrow[1] > 5 * wide[1]),
)

# %% [markdown]
# For log σ it is √2 at any σ. That is one reason why programs learn log σ and not σ. (Another is that e to
# the power of something is never negative.)
#
# ## One step, more and more nats
#
# A longer score is one half of it. The other half: at small σ one and the same step means more. Move the mean
# by 0.1, and look at the ratio of every action within 3 σ.

# %%
places, ratios = {}, {}
for sigma in (1, 0.3, 0.1):
    where = 3 * sigma * torch.linspace(-1, 1, 401, dtype=torch.float64).unsqueeze(-1)
    old, new = (gaussian_log_probs(where, 0 * where + mean, spread(sigma)) for mean in (0, 0.1))
    places[sigma], ratios[sigma] = where.squeeze().numpy(), importance_ratios(new, old).numpy()

# %%
show(
    figures.small_step(places, ratios, step=0.1, clip_epsilon=0.2),
    alt="Ratios of all actions after the mean moved by 0.1. With sigma 1 nearly all lie inside 1 plus or "
    "minus 0.2. With 0.3 a part does. With 0.1 the ratio runs from 0.03 to 12 and few actions are inside.",
)

# %% [markdown]
# The same step, and nearly every action stays within 1 ± 0.2, or one in seven does. On a logarithmic axis the ratio
# is a straight line: its logarithm grows with the action's distance from the mean, without end. Between Gaussians
# the KL can be written down, and `gaussian_kl` does. At equal σ it is
#
# $$\mathrm{KL} = \tfrac12\left(\frac{\text{step}}{\sigma}\right)^2$$

# %%
nats = {s: lesson.gaussian_kl(row(0.1), spread(s), row(0), spread(s)).item() for s in (1, 0.3, 0.1)}
for sigma, kl in nats.items():
    print(f"σ = {sigma:<4} a step of 0.1 costs {kl:.3f} nats")

# %%
inside = {
    s: torch.special.ndtr(torch.tensor((math.log(1.2) / 0.1 * s) + 0.05 / s))
    - torch.special.ndtr(torch.tensor((math.log(0.8) / 0.1 * s) + 0.05 / s))
    for s in (1, 0.1)
}
claim(
    "continuous.same_step",
    "At σ = 0.1 the step costs 100 times the nats of σ = 1, and leaves 14 % of the draws inside, not 95 %.",
    abs(nats[0.1] / nats[1] - 100) < 1e-6
    and abs(inside[1] - 0.955) < 0.005
    and abs(inside[0.1] - 0.143) < 0.005,
    control=("It costs 10 times the nats, since σ is a tenth.", nats[0.1] < 11 * nats[1]),
)

# %% [markdown]
# Both effects multiply. For the same advantage, the push of one action is ten times as long; and a step of the same
# length costs a hundred times the nats, so one that is ten times as long costs ten thousand times. A policy that is
# nearly sure is a nervous one. The natural gradient of [lesson 03](03_trust_region.ipynb) would undo both: it
# divides by the Fisher information, which is 1/σ² for the mean, and leaves a − μ. PPO has what it always has. Adam divides the length of the gradient away, a learning rate that
# falls helps with the rest, and the clip ends the push of a sample after a tiny step. A large step it cannot shorten
# ([lesson 04](04_clip.ipynb)).
#
# A sum over dimensions is also why many joints move little: with 16 of them, a step of 0.1 in each at σ = 1
# costs 16 times as much as in one.

# %%
many, one = torch.full((1, 16), 0.1, dtype=torch.float64), spread(*[1.0] * 16)
claim(
    "continuous.joints_add",
    "With 16 joints, the same step in each costs 16 times the nats of one joint.",
    abs(lesson.gaussian_kl(many, one, 0 * many, one).item() / nats[1] - 16) < 1e-9,
    control=(
        "It costs as many nats, since no joint went farther.",
        abs(lesson.gaussian_kl(many, one, 0 * many, one).item() - nats[1]) < 1e-9,
    ),
)

# %% [markdown]
# And σ itself? Add 0.1 to log σ, and the price is the same wherever you are. Add 0.1 to σ, and it is not. That is
# the third reason for log σ.

# %%
zero, steps = row(0), {}
for sigma in (1, 0.1):
    added_to_log = lesson.gaussian_kl(zero, spread(sigma) + 0.1, zero, spread(sigma)).item()
    steps[sigma] = (
        added_to_log,
        lesson.gaussian_kl(zero, spread(sigma + 0.1), zero, spread(sigma)).item(),
    )

# %%
claim(
    "continuous.log_sigma",
    "0.1 more of log σ costs 0.009 nats at σ = 1 and at σ = 0.1.",
    all(abs(each[0] - 0.0094) < 1e-4 for each in steps.values()),
    control=("So does 0.1 more of σ.", steps[0.1][1] < 2 * steps[1][1]),
)

# %% [markdown]
# Nor are the two directions alike. From σ = 1 to 0.5 is dearer than from σ = 1 to 2: draws of the wide policy
# look most unlikely to the narrow one.

# %%
halved = lesson.gaussian_kl(zero, spread(0.5), zero, spread(1)).item()
doubled = lesson.gaussian_kl(zero, spread(2), zero, spread(1)).item()
claim(
    "continuous.narrowing",
    "Halving σ costs 0.81 nats, doubling it 0.32.",
    abs(halved - 0.807) < 1e-3 and abs(doubled - 0.318) < 1e-3,
    control=("They cost the same: log σ has moved as far.", abs(halved - doubled) < 0.1),
)

# %% [markdown]
# ## Sent, and stored
#
# Pendulum's motor takes torques from −2 to 2. A Gaussian has no ends. So the environment cuts: if the policy
# draws 3, the motor does 2. Now there are two actions, the one **drawn** and the one **sent**. Which belongs into
# the batch?
#
# Say μ = 1.5 and σ = 1, and 3 was drawn. Somebody stores what was sent, 2, beside the log-probability of what was
# drawn. Nothing has been learned yet. What is the ratio of this sample?

# %%
predict("continuous.first_ratio", None)

# %%
drawn, sent, mean = row(3), row(2), row(1.5)
log_prob_old = gaussian_log_probs(drawn, mean, spread(1))
mixed = importance_ratios(gaussian_log_probs(sent, mean, spread(1)), log_prob_old)
compare("continuous.first_ratio", mixed.item())

# %% [markdown]
# The number e, 2.72, and the policy has not moved. If the action was good, the sample is silent from the start,
# and nobody will ever know why.

# %%
as_drawn = importance_ratios(gaussian_log_probs(drawn, mean, spread(1)), log_prob_old)
claim(
    "continuous.ratio_before_update",
    "Stored as sent, a draw of 3 has a ratio of 2.72 before any update.",
    abs(mixed - math.e) < 1e-9,
    control=("Stored as drawn it has one, too.", abs(as_drawn - 1) > 0.01),
)

# %% [markdown]
# So be consistent, and store log π(2) beside the 2? Then all ratios begin at 1, the alarm is silent, and the
# gradient is wrong. The score belongs to the action that was *drawn*: of the two, only its mean is 0. Put the same μ
# and σ on a fine grid and compare the two scores.

# %%
grid = torch.linspace(-6.5, 9.5, 16001, dtype=torch.float64).unsqueeze(-1)
density = gaussian_log_probs(grid, 0 * grid + 1.5, spread(1)).exp()
cut = grid.clamp(-2, 2)
score, cut_score = (
    lesson.gaussian_scores(a, 0 * a + 1.5, spread(1))[0].squeeze() for a in (grid, cut)
)

# %%
show(
    figures.sent_and_stored(
        grid.squeeze()[5000:12001].numpy(), density[5000:12001].numpy(),
        score[5000:12001].numpy(), cut_score[5000:12001].numpy(), limit=2,
    ),
    alt="Left, a bell curve around 1.5 whose part beyond 2 is hatched: all of it is sent as 2. Right, the "
    "score of the mean rises as a line with the action drawn; that of the action sent is flat beyond 2.",
)  # fmt: skip


# %% [markdown]
# Beyond the limit every draw pushes alike, as if 2 had been drawn. What does a batch learn in which *every*
# action earns 1?


# %%
def mean_push(score, reward):
    return (density * score * reward).sum().item() * 0.001


claim(
    "continuous.pulled_inwards",
    "Where all actions earn 1, the score of the sent action pulls the mean inwards, by 0.198.",
    abs(mean_push(cut_score, 1.0) + 0.198) < 1e-3,
    control=("So does that of the drawn action.", abs(mean_push(score, 1.0)) > 0.01),
)

# %% [markdown]
# A baseline would hide that, and not heal it. Let the reward be the torque that arrives. If the mean moves up a
# little, what arrives grows by the share of draws that are not cut: that is the true slope, 0.69. Beside it, what
# the two scores say, with the exact baseline subtracted:

# %%
arrives = cut.squeeze() - mean_push(torch.ones_like(score), cut.squeeze())
true_slope = mean_push(torch.ones_like(score), (cut.squeeze().abs() < 2).double())
by_drawn, by_sent = mean_push(score, arrives), mean_push(cut_score, arrives)
print(f"true slope {true_slope:.2f}, by the drawn {by_drawn:.2f}, by the sent {by_sent:.2f}")

# %%
claim(
    "continuous.stored_as_drawn",
    "The score of the drawn action gives the true slope, and that of the sent one a fifth less.",
    abs(by_drawn - true_slope) < 1e-3 and 0.78 < by_sent / true_slope < 0.82,
    control=("With the exact baseline the sent one is right.", abs(by_sent - true_slope) < 0.05),
)

# %% [markdown]
# To the policy, the cut is part of the world, like friction. Store what the policy chose. In this course the
# environment cuts, and the rollout never sees it. (One *can* do the sums with the heap at the limit as a
# probability of its own; Fujita and Maeda, 2018, do.)
#
# ## Squashed
#
# Others let no action leave: draw u from the Gaussian, and act with a = tanh(u), which lies between −1 and 1, scaled
# to the motor. Now each a has one u, and a density of its own. tanh crowds the draws where it is flat, so the
# density there grows by one over the slope:
#
# $$\log\pi(a\mid s) = \log N(u;\mu,\sigma) - \sum_j\log\left(1-\tanh^2u_j\right)$$

# %%
inner = torch.linspace(-0.995, 0.995, 399, dtype=torch.float64).unsqueeze(-1)
heaps = {
    f"σ = {s:g}": lesson.squashed_log_probs(inner.atanh(), 0 * inner, spread(s)).exp().numpy()
    for s in (0.3, 0.8, 2)
}
show(
    figures.squashed(inner.squeeze().numpy(), heaps),
    alt="Densities of squashed actions. With sigma 0.3 one hill in the middle, with 0.8 a flat top, with 2 "
    "a valley in the middle and two heaps at the edges.",
)

# %% [markdown]
# A wide squashed policy is no undecided one: a large part of its actions goes all out, to one side or the other.

# %%
edge = -torch.tensor(0.9, dtype=torch.float64).atanh()
all_out = {s: 2 * torch.special.ndtr(edge / s).item() for s in (0.3, 2, 5)}
claim(
    "continuous.all_out",
    "Squashed, 46 % of the actions are beyond ±0.9 at σ = 2, and 77 % at σ = 5.",
    abs(all_out[2] - 0.462) < 1e-3 and abs(all_out[5] - 0.768) < 1e-3,
    control=("At σ = 2, too, it is at least three in four.", all_out[2] >= 0.75),
)

# %% [markdown]
# Does the formula hold? The area must be 1.

# %%
u = torch.linspace(-9, 9, 18001, dtype=torch.float64).unsqueeze(-1)
widths = ((u + 0.0005).tanh() - (u - 0.0005).tanh()).squeeze()
with_it = (lesson.squashed_log_probs(u, 0 * u, spread(0.8)).exp() * widths).sum()
without = (gaussian_log_probs(u, 0 * u, spread(0.8)).exp() * widths).sum()
claim(
    "continuous.squashed",
    "With the correction the density of tanh(u) has area 1.",
    abs(with_it - 1) < 1e-4,
    control=("So it has without.", abs(without - 1) < 0.1),
)

# %% [markdown]
# Written as it stands, the formula breaks soon: at u = 10 tanh is 1 in a float32, and the logarithm of 0 is no
# number to learn from. `log_tanh_slopes` has the same thing in another order, 2·(log 2 − u − log(1 + e^(−2u))).

# %%
far = torch.tensor([10.0])
claim(
    "continuous.stable",
    "At u = 10 the plain formula gives −∞ in float32, and the other one −18.61.",
    (1 - far.tanh() ** 2).log() == -torch.inf and abs(lesson.log_tanh_slopes(far) + 18.614) < 1e-3,
    control=(
        "u can be had back from tanh(u) all the same.",
        torch.isclose(far.tanh().atanh(), far),
    ),
)

# %% [markdown]
# So store u, and not tanh(u). The rule is the one from above: what the policy drew.
#
# And now the surprise. The correction depends on u alone, and on no parameter. It stands in log π and in log π_old
# alike.

# %%
at_u, log_stds = row(0.7, -2.5), spread(0.5, 0.9)
new, old = row(0.2, -1.0), row(0.0, -0.8)
squashed, plain = (
    [log_probs(at_u, means, log_stds) for means in (new, old)]
    for log_probs in (lesson.squashed_log_probs, gaussian_log_probs)
)

# %%
claim(
    "continuous.cancels",
    "The correction cancels: squashed or not, the ratio of an action is the same.",
    torch.isclose(importance_ratios(*squashed), importance_ratios(*plain), atol=1e-12),
    control=("Its log-probability is the same.", torch.isclose(squashed[0], plain[0])),
)

# %% [markdown]
# To PPO, squashing is therefore one more thing that the world does with an action. Leave the correction out on both
# sides, and the policy loss is the same. The entropy is not: it has no closed form here, so an entropy bonus
# needs the correction, and so does every method that reads log π itself, like soft actor-critic. Leave it out on
# *one* side, and the ratios are nonsense.
#
# ## Too large for a float
#
# How large can a ratio get? If log-probabilities are right and σ stays, an action z σ from the old mean gives a
# log-ratio of at most z²/2, wherever the new mean goes. At four σ that is 8. So a log-ratio of 88 is hardly ever
# learned; it is a mistake of the kind that you saw, one side with a correction or in another unit, or a sum over
# many dimensions.

# %%
all_means = torch.linspace(-20, 20, 4001, dtype=torch.float64).unsqueeze(-1)
log_ratios = gaussian_log_probs(0 * all_means + 4, all_means, spread(1)) - gaussian_log_probs(
    row(4), row(0), spread(1)
)
claim(
    "continuous.largest",
    "Four σ out, no new mean gives a log-ratio above 8.",
    log_ratios.max() < 8 + 1e-9,
    control=("And none gives one below −8.", log_ratios.min() > -8),
)

# %% [markdown]
# Why 88? Above 88.7 e to that power is infinite in float32. See what the loss of lesson 04 makes of one such sample
# among four, and what the gradient is:


# %%
def slopes_of(loss, **settings):
    log_probs = torch.tensor([90.0, 0.0, 0.0, 0.0], requires_grad=True)
    value = loss(log_probs, torch.zeros(4), torch.ones(4), clip_epsilon=0.2, **settings)
    value.backward()
    return value.item(), log_probs.grad


value, slopes = slopes_of(clipped_surrogate_loss)
capped_value, capped_slopes = slopes_of(lesson.capped_surrogate_loss, max_log_ratio=20.0)
print(f"loss {value:.2f}, slopes {[round(s, 2) for s in slopes.tolist()]}")

# %% [markdown]
# The loss looks healthy, 1.2 for that sample and 1 for the others. But its slope is the 0 of the clip times the
# infinity of the exponential. One such sample, and after the next step every weight is NaN. To shorten the gradient
# is no help: its length is NaN, too.

# %%
claim(
    "continuous.overflow",
    "At a log-ratio of 90 the clipped loss is finite and its slope is NaN; with the cap it is 0.",
    math.isfinite(value) and slopes[0].isnan() and capped_slopes[0] == 0,
    control=("With the cap the loss is another one.", abs(capped_value - value) > 1e-6),
)

# %% [markdown]
# `capped_surrogate_loss` believes no log-ratio above 20: it cuts it *before* the exponential. As a slot of the loop
# it is `Parts(policy_loss=partial(capped_surrogate_loss, max_log_ratio=20.0))`. Mind the price. A bad action beyond
# the cap is silent too, so nothing pushes it back. Without a cap `train` stops with an error as soon as a gradient
# is not finite, which is the better guard while you develop: such a ratio is a message.
#
# ## Numbers in all sizes
#
# Pendulum shows three numbers: cosine and sine of the angle, within 1, and the turning, within 8. It pays
# between −16 and 0 per step. Other tasks pay 0.01, or look at millimetres. One learning rate cannot suit them all, so
# `NormalizedEnvs` stands between: it subtracts from each observation the **running mean** of all that were seen, and
# divides by their spread. Rewards are divided by the spread of the discounted return. What is then beyond ±10 is cut.

# %%
config = replace(PRESETS["pendulum"].config, total_steps=budget(122_880, 61_440))
envs = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma)
observations = envs.reset(seed=1)
torques = torch.randn(1000, config.num_envs, 1, generator=torch.Generator().manual_seed(1))
steps = [envs.step(torque) for torque in torques]

# %%
paid = torch.stack([step.unscaled_rewards for step in steps])
scaled = torch.stack([step.rewards for step in steps])
seen = torch.stack([step.observations for step in steps[500:]]).flatten(0, 1)
claim(
    "continuous.normalised",
    "All three numbers have a spread between 0.8 and 1.2, and after 200 steps no reward is below −1.",
    ((seen.std(dim=0) - 1).abs() < 0.2).all() and scaled[200:].min() >= -1,
    control=("Nor is any reward as the task paid it.", paid[200:].min() >= -1),
)

# %% [markdown]
# Why is no mean taken away from the rewards? Take one state and two actions. Going on costs 1 and the episode lasts
# five steps on average; giving up costs 2 and ends it. J is −5 or −2: give up. A policy that does each half of the
# time pays 1.5 on average whenever it acts. To take that mean away is to add 1.5 to every reward.

# %%
moves = torch.tensor([[[0.8], [0.0]]], dtype=torch.float64)  # go on: 0.8 to stay; give up: 0
costs = torch.tensor([[-1.0, -2.0]], dtype=torch.float64)
go_on, give_up = (torch.tensor([p], dtype=torch.float64) for p in ([1.0, 0.0], [0.0, 1.0]))


def value_of(policy, rewards):
    start_here, same = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    return expected_return(MDP("toll", moves, rewards, start_here, same), policy, gamma=1.0).item()


# %%
paid_as = costs, costs / 3, costs + 1.5
gains = [value_of(give_up, rewards) - value_of(go_on, rewards) for rewards in paid_as]
claim(
    "continuous.no_mean",
    "Divided by 3, giving up is still better; with 1.5 added to every reward it is worse.",
    gains[0] > 0 and gains[1] > 0 and gains[2] < 0,
    control=("Added or divided, the better policy stays the better one.", gains[2] > 0),
)

# %% [markdown]
# A constant per step is a wage for going on. Only where all episodes are equally long, as on Pendulum, would it
# change nothing.
#
# ### Statistics belong to the policy
#
# The policy has learned from numbers that were shifted and scaled. Show it the raw ones, or others, and it acts on
# a world that it has never seen. So the statistics go into the checkpoint, and a test looks through them without moving
# them: `frozen`.

# %%
saved = envs.state_dict()
copy = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma)
fresh = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma)
copy.load_state_dict(saved)
views = [each.frozen(BatchedEnvs(Pendulum(), 4)).reset(seed=5) for each in (envs, copy, fresh)]

# %%
claim(
    "continuous.checkpoint",
    "With the saved statistics the same states look the same.",
    torch.equal(views[0], views[1]),
    control=("So they do in new environments without.", torch.allclose(views[0], views[2])),
)

# %% [markdown]
# And what does a test do to them?

# %%
counts = [saved["seen"]["count"].item()]
tests = envs.frozen(BatchedEnvs(Pendulum(), 50))
draw = torch.Generator().manual_seed(1)
untrained = Parts().networks((3,), envs.single_action_space, hidden_sizes=(64, 64), generator=draw)
untrained = untrained.policy
envs.reset(seed=1)
counts.append(envs.state_dict()["seen"]["count"].item())
before = evaluate(untrained, tests, seed=100)
counts.append(envs.state_dict()["seen"]["count"].item())
claim(
    "continuous.frozen",
    "A test through frozen statistics counts no observation.",
    counts[1] == counts[2],
    control=("Nor does a reset of the environments that train.", counts[0] == counts[1]),
)

# %% [markdown]
# ## An end that is none
#
# Pendulum never terminates: it is stopped after 200 steps. So *every* end of an episode is a truncation.

# %%
flags = BatchedEnvs(Pendulum(), 4)
flags.reset(seed=1)
ends = [flags.step(torch.zeros(4, 1)) for _ in range(200)]
claim(
    "continuous.only_truncates",
    "In 200 steps nothing terminates, and step 200 is truncated in every copy.",
    not any(step.terminated.any() for step in ends) and bool(ends[-1].truncated.all()),
    control=("Some step before it is truncated.", any(s.truncated.any() for s in ends[:-1])),
)

# %% [markdown]
# Merge the flags, and the future of such a step counts 0. All rewards here are below 0, so 0 is the best future there
# is. Say the critic expects −40 before and after the step, and the step pays −2, at γ = 0.95:

# %%
one, yes = torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool)
numbers = -2 * one, -40 * one, -40 * one
right = Parts().advantages(*numbers, ~yes, yes, gamma=0.95, gae_lambda=0.95).item()
merged = Parts().advantages(*numbers, yes, yes, gamma=0.95, gae_lambda=0.95).item()
print(f"advantage of the last step: {right:.0f}, with merged flags {merged:.0f}")

# %%
claim(
    "continuous.a_gift",
    "With merged flags the last step, as good as expected, gets an advantage of +38.",
    abs(right) < 1e-4 and abs(merged - 38) < 1e-4,
    control=("An end that is taken for death looks like a punishment.", merged < 0),
)

# %% [markdown]
# On CartPole, where each step earns 1, a false death is a punishment; here it is a gift, whatever was done. The
# critic cannot see it coming, since the clock is in no observation: to it, some steps pay 38 more for no reason.
#
# ## A run
#
# The loop is that of lesson 08. `train` asks the environments what an action is, and makes a Gaussian policy where it is
# a row of numbers. Nothing else is new. γ is 0.95: it looks about 20 steps ahead, one second of the pendulum.

# %% tags=["nbval-ignore-output"]
envs = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma)
history = train(config, envs=envs, on_iteration=Watch())

# %% [markdown]
# A test takes the likeliest action, the mean, on 50 new episodes. What did each step pay?


# %%
def play(policy):
    tests = envs.frozen(BatchedEnvs(Pendulum(), 50))
    observations, paid = tests.reset(seed=100), []
    for _ in range(200):
        step = tests.step(policy.greedy(observations).detach())
        observations = step.observations
        paid.append(step.unscaled_rewards)
    return torch.stack(paid)


# %%
trained = play(history.networks.policy)
show(
    figures.episodes({"before training": play(untrained).numpy(), "after": trained.numpy()}),
    alt="Reward per step of 50 episodes. Before training it swings between −16 and 0 without end. After "
    "training it reaches 0 within some 60 steps in most episodes and stays there.",
)

# %% [markdown]
# A reward of 0 is a pendulum that stands upright. The motor is too weak to lift it at once, so it first swings the
# other way.

# %%
after = trained.sum(dim=0).mean()
claim(
    "continuous.swings_up",
    "After training the mean return of greedy episodes is above −600.",
    after > -600,
    control=("Before it, it is above −800.", before.mean() > -800),
)

# %% [markdown]
# And σ? It started at 1. The entropy says how log σ moved:

# %%
entropy = history["entropy"]
sigma = math.exp(entropy[-1] - gaussian_entropies(spread(1)).item())
claim(
    "continuous.gets_sure",
    "Its σ has fallen below 0.9.",
    sigma < 0.9,
    control=("It has fallen below 0.05: the policy is sure.", sigma < 0.05),
)

# %% [markdown]
# There is no entropy bonus in this run. It would act on σ alone: the entropy is Σ log σ_j and a constant, so the bonus
# pulls each log σ up with one and the same force, at any σ, for ever. For a die it ends once all faces are
# alike. Here there is no such place.

# %%
log_stds = torch.tensor([-3.0, 0.0, 3.0], requires_grad=True)
gaussian_entropies(log_stds).backward()
claim(
    "continuous.bonus",
    "The slope of the entropy by log σ is 1 at σ = 0.05, at 1 and at 20.",
    torch.equal(log_stds.grad, torch.ones(3)),
    control=("It fades as σ grows.", log_stds.grad[2] < log_stds.grad[0]),
)

# %% [markdown]
# ## Five seeds, raw rewards, and a wrong end
#
# One seed is no proof. So this was run once and recorded: five seeds of the run above; five whose rewards are not
# scaled; and five in which the flags are merged, so that every 200th step looks like the end of all things. After
# 122,880 steps each policy plays 100 episodes in which it takes its mean: a dot each. Here Pendulum counts as solved at
# −250; gymnasium names no number.

# %%
study = recorded("pendulum")
print(study["command"])
show(
    figures.variants(
        study,
        {"usual": "as above", "rewards as paid": "rewards as paid", "flags merged": "flags merged"},
    ),
    alt="Learning curves of five seeds each. As above they rise from −1,200 to −200 within 70,000 steps, "
    "with merged flags within 100,000, and all ten dots at the end are above −250. With rewards as "
    "paid they are slow, and all five dots are below −250.",
)

# %%
finals = {name: [run["final_greedy"] for run in runs] for name, runs in study["runs"].items()}
claim(
    "continuous.solved",
    "All five seeds solve it: −250 or better.",
    min(finals["usual"]) >= study["solved_at"],
    control=("All five reach −150.", min(finals["usual"]) >= -150),
)

# %% [markdown]
# With rewards as paid none does, in this time and with these settings.

# %%
claim(
    "continuous.as_paid",
    "With rewards as paid none of five seeds solves it.",
    max(finals["rewards as paid"]) < study["solved_at"],
    control=(
        "They end no better than a policy that was never trained.",
        min(finals["rewards as paid"]) < before.mean(),
    ),
)

# %% [markdown]
# Why? The policy never sees the size of a reward, since its advantages are normalised. The critic does. A new one
# says about 0. And what is the truth? Torques around 0 with σ = 1 are what a new policy draws; above they were drawn
# for 1,000 steps, five episodes of 16 copies.

# %%
first_steps = paid.unflatten(0, (5, 200))[:, :100]
discounted = (first_steps * config.gamma ** torch.arange(100).view(100, 1)).sum(dim=1)
claim(
    "continuous.far_away",
    "As paid, a new policy's discounted return is about −115, give or take 36 among episodes.",
    abs(discounted.mean() + 115) < 15 and abs(discounted.std() - 36) < 10,
    control=("It is near −6, as a single reward is.", abs(discounted.mean() + 6) < 15),
)

# %% [markdown]
# Even those 36 are far for a critic: Adam moves a weight by about the learning rate per step, however long the
# gradient. Look at both critics after four iterations, 320 steps of the optimiser. How much do they explain of
# the spread of their own targets?


# %%
def explained_after_four(rewards):
    few = replace(config, total_steps=20 * config.batch_size)  # the rate falls as in a longer run
    pendulums = BatchedEnvs(Pendulum(), few.num_envs)
    training = NormalizedEnvs(pendulums, rewards=rewards, gamma=few.gamma)
    run = train(few, envs=training, on_iteration=lambda state: state.iteration == 4)
    return run["ev_lambda"][-1]


# %% tags=["nbval-ignore-output"]
explained = {scaled: explained_after_four(rewards=scaled) for scaled in (True, False)}

# %% [markdown]
# With scaled rewards most of it, without nearly nothing:

# %%
claim(
    "continuous.critic_lags",
    "Of its targets the critic explains more than half with scaled rewards, less than 0.3 without.",
    explained[True] > 0.5 and explained[False] < 0.3,
    control=("Without, it explains as much: a scale is no information.", explained[False] > 0.5),
)

# %% [markdown]
# And the flags? All five seeds solve it in spite of the mistake. Are the usual ones better at the end? Deal the ten
# numbers into two groups of five in all 252 ways, and count the deals in which the means lie as far apart as they did.
# On the way there, take the mean return of the whole run, and count again.


# %%
def as_far_apart(ours, theirs):
    both = torch.tensor(ours + theirs, dtype=torch.float64)
    groups = torch.combinations(torch.arange(10), 5)
    gaps = 2 * both[groups].mean(dim=1) - 2 * both.mean()
    return int((gaps.abs() >= abs(gaps[0]) - 1e-9).sum())  # the first deal is the real one


def whole_run(name):
    curves = [run["episode_return"] for run in study["runs"][name]]
    return [sum(filter(None, curve)) / len(list(filter(None, curve))) for curve in curves]


# %%
at_the_end = as_far_apart(finals["usual"], finals["flags merged"])
on_the_way = as_far_apart(whole_run("usual"), whole_run("flags merged"))
print(f"as far apart: {at_the_end} of 252 deals at the end, {on_the_way} of 252 on the way")

# %% [markdown]
# Two is the least that can come out: the real deal and its mirror image.

# %%
claim(
    "continuous.merged",
    "Over the whole run every usual seed is ahead of every seed with merged flags.",
    min(whole_run("usual")) > max(whole_run("flags merged")) and on_the_way == 2,
    control=(
        "At the end, too, fewer than 1 in 20 deals lie as far apart.",
        at_the_end < 252 / 20,
    ),
)

# %% [markdown]
# So the false end costs steps on the way, and at the end the seeds cannot tell: *inconclusive*. That is how most such
# bugs live on. The task forgives, the curve rises, and nobody looks. (With γ = 0.95 the end is felt in the last 20 of 200
# steps or so. The nearer γ is to 1, the farther it reaches.)

# %% [markdown]
# ## What breaks it
#
# You have met the mistakes; here is what betrays each.
#
# | mistake | what you would see |
# | --- | --- |
# | log-probabilities not summed | an error on shapes, or ratios that are all too near to 1 |
# | the cut action stored, with the log-probability of the drawn one | ratios away from 1 on the first minibatch |
# | the cut action stored, with its own log-probability | nothing, but a policy that is pulled inwards |
# | squashed on one side only | ratios far from 1 on the first minibatch; NaN where a log-ratio passes 88 |
# | statistics that move in a test, or stay behind | a good training curve, and a bad test |
# | a mean taken away from rewards | episodes of the wrong length |
#
# The first number to look at is again the one of lesson 08: the largest distance of a ratio from 1 on the first
# minibatch. Put the second mistake into the loop, and read it off.


# %%
def networks_that_store_the_cut(observation_shape, action_space, **settings):
    networks = Parts().networks(observation_shape, action_space, **settings)
    sample = networks.policy.sample

    def cut_sample(observations, generator):
        actions, log_probs = sample(observations, generator)
        return actions.clamp(-2, 2), log_probs

    networks.policy.sample = cut_sample
    return networks


# %%
def first_deviation(parts):
    states, once = [], replace(config, total_steps=config.batch_size)
    training = NormalizedEnvs(BatchedEnvs(Pendulum(), config.num_envs), gamma=config.gamma)
    train(once, envs=training, parts=parts, on_iteration=states.append)
    return states[0].stats.max_ratio_deviation[0, 0].item()


cut_parts = Parts(networks=networks_that_store_the_cut)
claim(
    "continuous.betrayed",
    "With cut actions stored, some ratio of the first minibatch is off by more than 0.1.",
    first_deviation(cut_parts) > 0.1,
    control=("Stored as drawn, one is off as well.", first_deviation(Parts()) > 1e-3),
)

# %% [markdown]
# ## Try it with your hands
#
# Two bell curves, the old policy and the new one, and the ratio of every action. First say how many of 100 draws keep
# a ratio within 1 ± 0.2. Then move means and spreads, and watch which actions still push. The vertical lines at ±2
# are the limits of the motor. (Where no widget can run, you see a picture of its answer.)

# %%
bells = GaussianPolicy(keep_as="continuous.share_inside")
bells

# %% [markdown]
# Its ratio and its KL again, whatever you have moved:

# %%
new = row(bells.mean), torch.tensor([bells.log_std], dtype=torch.float64)
old = row(bells.mean_old), torch.tensor([bells.log_std_old], dtype=torch.float64)
ratio = importance_ratios(*(gaussian_log_probs(row(bells.action), *each) for each in (new, old)))
assert abs(ratio.item() - bells.ratio) < 1e-9 * max(1, bells.ratio)
assert abs(lesson.gaussian_kl(*new, *old).item() - bells.kl) < 1e-9
print("the widget and the package agree")

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/09_continuous.ipynb) wait for you: the log-probability of an action, its slopes by
# hand, squashed actions, a step that stores the wrong action, running moments, and scaled rewards. Each check tells you
# which mistake it is.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("continuous.positive")

# %%
quiz("continuous.narrow")

# %% [markdown]
# On what is stored:

# %%
quiz("continuous.stored")

# %%
quiz("continuous.squash")

# %% [markdown]
# And on rewards:

# %%
quiz("continuous.reward_mean")

# %% [markdown]
# ## The stair
#
# There is no new stair, and that is the news. Between lesson 08 and the run above no part of the algorithm was
# added: ratio, clip, critic, GAE and the flags are the same functions, and the policy's logarithm is a sum of
# squares instead of a softmax. What continuous control asks for on top are conditions, not parts: the right
# action in the batch, numbers of about unit size, an eye on σ.
#
# Be modest about the runs, too. They are five seeds of one small task, whose settings (the preset `pendulum`) were
# found by a handful of trials; they make more steps of the optimiser per sample than the CartPole runs, which is what this
# task needed. Robots in simulation take a million steps and more. With gymnasium's physics installed
# (`pip install "gymnasium[mujoco]"`), the same lines start one; we give them as they should work, and have *not*
# run them to the end:
#
# ```python
# from ppo_lessons.envs import make_envs
# from ppo_lessons.training_loop import PPOConfig
#
# config = PPOConfig(env="HalfCheetah-v5", total_steps=1_000_000, num_envs=8, num_steps=256,
#                    num_epochs=10, num_minibatches=32, learning_rate=3e-4)
# envs = NormalizedEnvs(make_envs(config.env, config.num_envs), gamma=config.gamma)
# history = train(config, envs=envs)
# ```
#
# The environments that `make_envs` gives cut each action to what the task takes, as Pendulum does here.
#
# ## What you have now
#
# - A policy over real numbers has a density. It may be above 1, it has a unit, and ratios know of neither.
# - One action, one log-probability: the sum over its dimensions. Its score grows like 1/σ, and a step of the mean
#   costs ½·(step/σ)² nats.
# - Store what the policy drew. Cutting and squashing are the world's affair, and the correction cancels in the ratio.
# - Scale observations and rewards, subtract nothing from rewards, and let the statistics travel with the policy.
#
# Next: the whole thing, fast, in [lesson 10](10_gpu_run.ipynb).
