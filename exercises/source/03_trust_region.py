# %% [markdown]
# # 03 Exercises: the trust region
#
# How far has a policy moved, how far may it move, and what does it cost? You write the distance, the best
# step inside a fence, and the loss with a price; you compute what the theorem of
# [lesson 03](../notebooks/03_trust_region.ipynb) guarantees, and mend a search that runs the wrong way. Each
# answer is checked as soon as you run the cell below it: you see the smallest input on which it
# differs, and the name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. the KL of two policies | 2 of 5 | 5 of 5 | 8 |
# | 2. the natural step | 3 of 5 | 4 of 5 | 12 |
# | 3. a loss with a price | 2 of 5 | 5 of 5 | 8 |
# | 4. a price that follows | 1 of 5 | 3 of 5 | 5 |
# | 5. seven numbers about fence and price | 3 of 5 | 4 of 5 | 15 |
# | 6. a search with a bug | 2 of 5 | 3 of 5 | 8 |
# | 7. the Fisher matrix that nobody builds (for experts) | 4 of 5 | 3 of 5 | 20 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 03`, typed in a terminal in the folder of the course, checks
# all seven. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons.training_loop import Parts, PPOConfig, train

setup()

# %% [markdown]
# ## 1. The KL of two policies
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Lesson 02 estimated a KL from draws. Here you have both policies as tables, so no draw is needed. Write,
# for each state, KL(π_old ‖ π): the mean of log π_old − log π over what the *old* policy does, in nats.
#
# - `policy_old` and `policy` have shape `[S, A]`: S states, A actions. Each row holds probabilities and
#   sums to 1.
# - The result has shape `[S]`: one KL for each state.
# - Probabilities may be 0. An action that the old policy never takes counts 0, whatever the new one does
#   with it. One that the old policy takes and the new one never does makes the KL infinite, and ∞ is what
#   must come out.
#
# From (0.5, 0.5) to (0.8, 0.2): is it more or less than the way back? Guess first. (Exercise 5 asks for both.)

# %%
# answer: trust_region.state_kl
import torch


def state_kl(policy_old, policy):
    """Give the KL of the old and the new policy, in every state."""
    ### BEGIN SOLUTION: old minus new, weighted with the old
    terms = policy_old * (policy_old.log() - policy.log())
    return torch.where(policy_old > 0, terms, 0.0).sum(-1)
    ### END SOLUTION


# %%
# hint("trust_region.state_kl")
check.state_kl(state_kl)

# %% [markdown]
# ## 2. The natural step
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# Near the old policy the surrogate is a line, g·x, and the mean KL a parabola, ½·x·F·x, where x is the step
# in the parameters. Write the step that climbs highest on the line while the parabola is at most δ.
#
# - `gradient` is g, of shape `[P]`: the slope of what you want to maximise.
# - `fisher` is F, of shape `[P, P]`: symmetric, and here it has an inverse.
# - `max_kl` is δ, above 0, in nats.
# - The result has shape `[P]`; it will be added to the parameters. If the gradient is zero, so is the step.
#
# Two things to settle: the direction, and its length. What should happen to the step if all rewards, and so
# the gradient, become three times as large?

# %%
# answer: trust_region.natural_gradient_step
import torch


def natural_gradient_step(gradient, fisher, *, max_kl):
    """Find the step that climbs most for its KL, as long as the KL allows."""
    ### BEGIN SOLUTION: direction, then length
    direction = torch.linalg.solve(fisher, gradient)
    form = direction @ fisher @ direction
    if form == 0:
        return torch.zeros_like(gradient)
    return direction * (2 * max_kl / form).sqrt()
    ### END SOLUTION


# %%
# hint("trust_region.natural_gradient_step")
check.natural_gradient_step(natural_gradient_step)

# %% [markdown]
# ## 3. A loss with a price
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# A fence is no loss, a price is. Write the loss whose minimum is sought when distance costs β per nat: minus
# the surrogate, plus β times an estimate of KL(π_old ‖ π). With ρ for the ratio, new over old, and Â for the
# advantage (the hat says that it is estimated), the surrogate is the mean of ρ·Â, and the estimate is k3 of
# lesson 02: the mean of ρ − 1 − log ρ.
#
# - `log_probs` are the log-probabilities of the actions now. The gradient flows through them, in both terms.
# - `log_probs_old` were written down while sampling. They are constants, and so are the
#   `advantages`: no gradient may flow into either.
# - All three have the same shape, whatever it is; the means go over every sample.
# - `beta` is β, above 0.
# - What comes back is a tensor without dimensions that has a gradient (not a float).
# - Probabilities may be as small as e⁻⁸⁰⁰, which a float holds as 0. The loss must still be right.
#
# Why k3 and not k1, which is shorter? Look at what each of them does to a sample that has not moved.

# %%
# answer: trust_region.penalty_loss
import torch


def penalty_loss(log_probs, log_probs_old, advantages, *, beta):
    """Turn the surrogate with a price on distance into a loss."""
    ### BEGIN SOLUTION: what is promised, and what it costs
    log_ratios = log_probs - log_probs_old.detach()
    ratios = log_ratios.exp()
    surrogate = (ratios * advantages.detach()).mean()
    distance = (ratios - 1 - log_ratios).mean()
    return beta * distance - surrogate
    ### END SOLUTION


# %%
# hint("trust_region.penalty_loss")
check.penalty_loss(penalty_loss)

# %% [markdown]
# ## 4. A price that follows
#
# *Difficulty 1 of 5, importance 3 of 5, 5 minutes.*
#
# No β fits a whole run, so PPO's first variant lets it follow the KL. Write the rule that is applied after
# each iteration:
#
# - if the KL is **more** than 1.5 times the target, the next β is twice as high;
# - if it is **less** than the target divided by 1.5, the next β is half as high;
# - otherwise, the edges included, β stays what it is.
#
# All three arguments are Python numbers, and so is what comes back. `kl` is an estimate from samples: it may lie
# below 0. Is the policy then near or far?

# %%
# answer: trust_region.adapt_beta


def adapt_beta(beta, kl, *, target_kl):
    """Raise the price after a step that went too far, lower it after one that stayed too near."""
    ### BEGIN SOLUTION: two edges, three answers
    if kl > 1.5 * target_kl:
        return 2 * beta
    if kl < target_kl / 1.5:
        return beta / 2
    return beta
    ### END SOLUTION


# %%
# hint("trust_region.adapt_beta")
check.adapt_beta(adapt_beta)

# %% [markdown]
# ## 5. Seven numbers about fence and price
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program; a pocket calculator helps. Numbers may be off by 0.001.
#
# **Two distances.** The old policy is a fair coin, (0.5, 0.5). The new one has (0.8, 0.2).
#
# - **a**: KL(π_old ‖ π_new), in nats;
# - **b**: KL(π_new ‖ π_old), in nats.
#
# **Two arms.** The good one pays 10, the other 0. The policy has one parameter, a logit z, and takes the good
# arm with probability p = 1 / (1 + e⁻ᶻ); at the moment p = 0.2. So the slope of the mean pay, by z, is
# g = 10·p·(1 − p) = 1.6. Replace the surrogate by the line g·x and the KL by the parabola ½·F·x², where x is
# the step in z.
#
# - **c**: F, in nats per squared unit of z;
# - **d**: the step x that is best inside the fence δ = 0.02 nats;
# - **e**: the price β at which the best step of g·x − β·½·F·x² is the same as in d.
#
# **The promise.** TRPO's theorem names a price at which the return cannot fall, C = 4·γ·max|A| / (1 − γ)². Take
# γ = 0.9, and the two advantages that the arms have at p = 0.2.
#
# - **f**: C;
# - **g**: how many times shorter is the best step of line and parabola at the price C than the one in d?
#
# Before you compute: is the step that is guaranteed half as long, a tenth, or less?

# %%
# answer: trust_region.fence_and_price
### BEGIN SOLUTION stub: fence_and_price = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None}
fence_and_price = {"a": 0.2231, "b": 0.1927, "c": 0.16, "d": 0.5, "e": 20, "f": 2880, "g": 144}
### END SOLUTION

# %%
# hint("trust_region.fence_and_price")
check.fence_and_price(fence_and_price)

# %% [markdown]
# ## 6. A search with a bug
#
# *Difficulty 2 of 5, importance 3 of 5, 8 minutes.*
#
# Line and parabola are true near the old policy only, so TRPO looks before it leaps: it tries the full step,
# then shorter ones, and takes the first that keeps both promises. This search runs, and it never leaves the
# region. But once the full step is refused, it nearly always ends where it began. Mend it. One line is wrong,
# the rest is right.
#
# - `parameters` are those of the old policy, `step` is the full step, of the same shape.
# - `improvement` and `kl` are functions: of parameters, to one number. The first says by how much the surrogate
#   has risen since the old policy, the second how far the new policy is from it.
# - A try is taken if the surrogate has risen and the KL is at most `max_kl`. Each try is shorter than the one
#   before, by the factor `shrink`; there are at most `max_tries`, the full step included.
# - If no try passes, the old parameters come back.

# %%
# answer: trust_region.mended_line_search


def mended_line_search(parameters, step, *, improvement, kl, max_kl, shrink, max_tries):
    """Shorten a step until it keeps its promises; one line is wrong."""
    tried = parameters
    for k in range(max_tries):
        ### BEGIN SOLUTION stub: tried = tried + shrink**k * step
        tried = parameters + shrink**k * step
        ### END SOLUTION
        if improvement(tried) > 0 and kl(tried) <= max_kl:
            return tried
    return parameters


# %%
# hint("trust_region.mended_line_search")
check.mended_line_search(mended_line_search)

# %% [markdown]
# ## 7. The Fisher matrix that nobody builds (for experts)
#
# *Difficulty 4 of 5, importance 3 of 5, 20 minutes.*
#
# With a million parameters F has 10¹² entries. TRPO never builds it: all that it needs are products F·v. Write
# such a product for a policy that is a table of logits.
#
# - `logits` has shape `[S, A]`: S states, A actions. The softmax of a row gives its probabilities.
# - `state_visits` has shape `[S]`: how often an episode visits each state. F belongs to the *mean* KL, so a state
#   counts by its share of all visits.
# - `vector` is v, of shape `[S, A]` like the logits. So is the result, F·v.
# - F is the mean of score times score, over states and actions of the policy; the score is ∇log π(a|s), by all
#   logits. It is also the matrix of second derivatives of the mean KL. Either leads to the result: in three
#   lines by hand, or by two backward passes.
# - Logits may be as large as 1000, whose exponential is infinite in a float.
#
# What must come out if v has the same number for all actions of a state? Ask what such a step does to the policy.

# %%
# answer: trust_region.fisher_vector_product
import torch


def fisher_vector_product(logits, state_visits, vector):
    """Multiply the Fisher matrix of a softmax policy with a vector, without building it."""
    ### BEGIN SOLUTION: the score along v, times the score, on average
    policy = torch.softmax(logits, dim=-1)
    along = vector - (policy * vector).sum(-1, keepdim=True)
    shares = state_visits / state_visits.sum()
    return shares.unsqueeze(-1) * policy * along
    ### END SOLUTION


# %%
# hint("trust_region.fisher_vector_product")
check.fisher_vector_product(fisher_vector_product)

# %% [markdown]
# ## Train with your own loss
#
# Once exercises 3 and 4 pass, put both into the training loop: your loss decides what distance costs, and after
# each iteration your rule sets the price. The task is CartPole: a cart must keep a pole upright, and the return
# counts the steps until the pole falls. The cells run for a few seconds.

# %%
price = {"beta": 1.0}


def policy_loss(log_probs, log_probs_old, advantages):
    return penalty_loss(log_probs, log_probs_old, advantages, beta=price["beta"])


def after_iteration(state):
    kl = state.stats.kl_k3[-1].mean().item()
    price["beta"] = adapt_beta(price["beta"], kl, target_kl=0.02)


# %% tags=["nbval-ignore-output"]
parts = Parts(policy_loss=policy_loss)
history = train(PPOConfig(total_steps=16_384), parts=parts, on_iteration=after_iteration)
first, last = history["episode_return"][0], history["episode_return"][-1]

# %%
assert last > 2 * first, "no progress: do exercises 3 and 4 pass?"
print("your loss trains: CartPole's pole stands more than twice as long")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="trust_region")

# %% [markdown]
# The solutions are in `solutions/03_trust_region.ipynb`. Each is one way among several; yours need not
# look like it. `reveal` says where, after you have tried.

# %%
reveal("trust_region.fisher_vector_product")
