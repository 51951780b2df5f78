# %% [markdown]
# # RLHF
#
# **Who are the four models?**
#
# In [lesson 13](13_tokens.ipynb) an answer became an episode and a token an action. What is missing is the reward.
# For some tasks a program can check an answer. For most, nobody can write down what a good answer is; but people can
# say which of two they like better. RLHF, **reinforcement learning from human feedback**, learns a judge from such
# preferences, and then trains a policy to please the judge. Four models take part, and the update is the one that
# you wrote in lesson 08. Nothing in it changes.
#
# What changes is what can go wrong. The judge is no fact of the world. It is a network, fitted to a few thousand
# comparisons, and the policy is good at finding out where it errs. You will see that happen, see which dials do not
# give it away and which do, and see what holds it back.
#
# The words that you need. The **policy** answers, and learns. The **reference** is a copy of the policy as it was
# before; it never changes. The **reward model**, the judge, gives an answer its **score**. The **critic** says before
# each token what it expects. **Success** is the share of answers that are right, as a **verifier** says: here a
# program, which no model ever sees.

# %% tags=["nbval-ignore-output"]
import copy

import torch

import ppo_lessons.rlhf as rlhf
import ppo_lessons.tokens as tokens
from ppo_lessons import budget, claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.figures import rlhf as figures
from ppo_lessons.rlhf import RLHFConfig
from ppo_lessons.tokens import draw_prompts, generate
from ppo_lessons.widgets import BetaSlider

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("rlhf.review_action")

# %%
quiz("rlhf.review_ratio")

# %% [markdown]
# And one from lesson 03:

# %%
quiz("rlhf.review_price")

# %% [markdown]
# ## A judge from comparisons
#
# The language is that of lesson 13: digits are asked, and are to be given back in order. The reference has seen mostly
# wrong answers, so about a third of its own are right. Some of what it says:

# %% tags=["nbval-ignore-output"]
scale = tokens.choose_scale()  # a GPU if there is one, and then more answers at a time
reference = tokens.cached_reference(seed=0, device=scale.device)
chance = torch.Generator(scale.device).manual_seed(1)
prompts = draw_prompts(6, generator=chance)
said = generate(reference, prompts, max_new_tokens=10, temperature=1.0, generator=chance)
for asked, answer in zip(
    tokens.as_text(prompts.tokens, prompts.mask),
    tokens.as_text(said.tokens, said.mask),
    strict=True,
):
    print(asked, answer)

# %% [markdown]
# A **rater** is shown two answers to the same prompt and prefers one. This rater is a program, so that you know what
# it likes: right answers, by 3, and every "!" a little, by 0.7. It prefers the first with probability σ(u₁ − u₂), where u
# is how much it likes each and σ(x) = 1/(1 + e⁻ˣ). So it is not strict, and it has a weakness, as people have.
#
# The reward model gives each answer a score, and is fitted such that the same formula explains the preferences. This
# is the model of Bradley and Terry (1952):

# %%
show_source(rlhf.bradley_terry_loss)

# %% [markdown]
# Only differences of scores are in it.

# %%
draw = torch.Generator().manual_seed(1)
chosen, rejected = torch.randn(2, 64, generator=draw, dtype=torch.float64)
loss = rlhf.bradley_terry_loss(chosen, rejected)
print(f"{loss:.4f} at some scores, {rlhf.bradley_terry_loss(chosen, chosen):.4f} at equal ones")

# %%
claim(
    "rlhf.only_differences",
    "The same number added to all scores leaves the loss as it is.",
    abs(rlhf.bradley_terry_loss(chosen + 5, rejected + 5) - loss) < 1e-12,
    control=(
        "All scores multiplied by the same number leave it as it is.",
        abs(rlhf.bradley_terry_loss(5 * chosen, 5 * rejected) - loss) < 1e-12,
    ),
)

# %% [markdown]
# So a score has no zero and no unit of its own. They are set afterwards: on answers of the reference the mean is 0 and the
# **spread**, the standard deviation, is 1. "The score rose by 3" then means three spreads of what the reference says.
#
# Ours gives each *token* a number and adds them up. It is no bad judge: of new pairs from the reference, some of them ties,
# it prefers the one that the rater prefers in 61 to 63 of 100. But see what it says of right answers with more and
# more "!" behind them. (Recorded for three seeds, with all else of this lesson that takes long.)

# %%
study = recorded("rlhf")
runs, starts = study["runs"], study["starts"]
by_bangs = {seed: start["score_by_bangs"] for seed, start in starts.items()}
show(
    figures.score_by_bangs(by_bangs),
    alt="Raw score of right answers over 0 to 4 exclamation marks: three rising lines, one per seed.",
)

# %%
claim(
    "rlhf.judge_likes_bangs",
    "On 3 of 3 seeds each further “!” raises the score of a right answer.",
    all(list(scores) == sorted(scores) for scores in by_bangs.values()),
    control=(
        "After two it likes no more of them: the reference gives no more.",
        all(scores[4] <= scores[2] for scores in by_bangs.values()),
    ),
)

# %% [markdown]
# The examples of the reference had two at most, and it seldom says more: hardly a pair taught the judge what a third
# is worth. It goes on adding, where it has hardly been. Nine "!" and no digit at all:

# %%
alone = {seed: start["score_of_bangs_alone"] for seed, start in starts.items()}
claim(
    "rlhf.nothing_but_bangs",
    "Nine “!” and nothing else score higher than a right answer, on 3 of 3 seeds.",
    all(alone[seed] > by_bangs[seed][0] for seed in starts),
    control=(
        "They score lower, since the answer is missing.",
        all(alone[seed] < by_bangs[seed][0] for seed in starts),
    ),
)

# %% [markdown]
# ## One score, many tokens
#
# The judge speaks once, at the end. Each token before it needs a reward. Here is the whole trick: the score is paid at the last
# token, and every token pays a **price** for the distance from the reference:
#
# $$r_t = -\beta\,\big(\log \pi_{\text{old}} - \log \pi_{\text{ref}}\big)_t + [t \text{ is last}]\cdot\text{score}$$
#
# (Ziegler et al., 2019, wrote it for the whole answer; a price at each token has the same sum.)

# %%
show_source(rlhf.token_rewards)

# %% [markdown]
# Three tokens. The second is one that the reference would hardly have said. The score is 2, β is 0.1:

# %%
log_probs = torch.tensor([[-0.2, -0.5, -0.1]], dtype=torch.float64)
log_probs_reference = torch.tensor([[-0.3, -4.5, -0.1]], dtype=torch.float64)
mask = torch.ones(1, 3, dtype=torch.bool)
score = torch.tensor([2.0], dtype=torch.float64)
rewards = rlhf.token_rewards(score, log_probs, log_probs_reference, mask, beta=0.1)
print([round(reward, 4) for reward in rewards[0].tolist()])

# %% [markdown]
# Which sum must these three have?

# %% tags=["nbval-ignore-output"]
predict("rlhf.sum_of_rewards", None, unit="reward")

# %%
compare("rlhf.sum_of_rewards", round(rewards.sum().item(), 4), unit="reward")
distance = (log_probs - log_probs_reference).sum()

# %% [markdown]
# Whatever is paid where, the sum is fixed:

# %%
claim(
    "rlhf.sum",
    "The rewards of an answer add up to its score minus β times the distance of the whole answer.",
    abs(rewards.sum() - (2 - 0.1 * distance)) < 1e-12,
    control=(
        "They add up to the score: what is paid at one token is given back at another.",
        abs(rewards.sum() - 2) < 1e-12,
    ),
)

# %% [markdown]
# The log-probabilities in the price are those of π_old, written down while sampling. They are numbers, without a
# gradient. So the price does not pull at its own token alone: it is reward, and reaches all earlier tokens as reward does.
#
# On the tokens that π drew, the difference log π − log π_ref is an estimate of KL(π ‖ π_ref): you know it from
# [lesson 03](03_trust_region.ipynb) as **k1**. It may be negative on a token and even on a batch; its mean is right.

# %%
show(
    figures.token_bars(
        ["first", "second", "last"],
        rewards[0].tolist(),
        rlhf.token_gae(rewards, torch.zeros_like(rewards), mask, gamma=1.0, gae_lambda=0.95)[
            0
        ].tolist(),
        title="The score reaches the first token through the advantage",
    ),
    alt="For three tokens the reward and the advantage. Rewards: nearly 0, -0.4, 2. Advantages are "
    "above 1 at all three, since GAE adds up what follows.",
)

# %% [markdown]
# ## The same recursion
#
# GAE walks backwards over the tokens of an answer as it did over the steps of an episode. The last token *terminates*:
# nothing comes after it. γ is 1: with less, a score that is paid sooner would be worth more, and answers would be short
# for that reason alone.

# %%
show_source(rlhf.token_gae)

# %% [markdown]
# It calls `compute_gae` of lesson 06. Eight answers of up to six tokens, and what lesson 06 says of λ = 1:

# %%
lengths = torch.tensor([6, 3, 1, 5, 2, 6, 4, 3])
mask = torch.arange(6) < lengths.unsqueeze(1)
rewards, values = torch.randn(2, 8, 6, generator=draw, dtype=torch.float64)
to_go = (rewards * mask).flip(1).cumsum(1).flip(1)


def at(gae_lambda, rewards=rewards, values=values):
    return rlhf.token_gae(rewards, values, mask, gamma=1.0, gae_lambda=gae_lambda)


# %%
claim(
    "rlhf.lambda_one",
    "With γ = λ = 1 the advantage is what the answer still earned, minus V, to 10⁻¹².",
    (at(1.0) - (to_go - values))[mask].abs().max() < 1e-12,
    control=(
        "It is with λ = 0.95, too, since γ is 1.",
        (at(0.95) - (to_go - values))[mask].abs().max() < 1e-12,
    ),
)

# %% [markdown]
# Behind an answer there is padding. Whatever stands there must not matter:

# %%
junk = torch.where(mask, 0.0, 1e6)
one_token = torch.zeros_like(rewards)
one_token[0, 0] = 1e6

# %%
claim(
    "rlhf.padding",
    "A million in every place of the padding changes no advantage.",
    torch.equal(at(0.95, rewards + junk, values + junk), at(0.95)),
    control=(
        "A million at one token of an answer changes none either.",
        torch.equal(at(0.95, rewards + one_token), at(0.95)),
    ),
)

# %% [markdown]
# ## The same loop
#
# Collect: the policy answers. Score: the judge, the reference and the critic are asked, once. Squeeze: `update` of lesson
# 08, as it stands. Renew: the new policy answers next.

# %%
show_source(rlhf.iterate)

# %% [markdown]
# Here it is, live. The judge is fitted first, which takes some seconds the first time; then the policy learns for
# a few iterations at β = 0.3.

# %% tags=["nbval-ignore-output"]
few = rlhf.RewardModelConfig(num_pairs=budget(8000, 1500), num_steps=budget(300, 60))
judge = rlhf.cached_reward_model(reference, few, seed=0)
policy, critic = copy.deepcopy(reference), tokens.TokenCritic(reference)
config = RLHFConfig(beta=0.3, num_iterations=budget(12, 3), num_prompts=scale.num_responses)
models = {"policy": policy, "reference": reference, "reward": judge, "critic": critic}
history = rlhf.train_tokens(config, **models)
print({name: round(history[name][-1], 2) for name in ("score", "success", "kl_reference")})

# %% [markdown]
# If positions, masks, temperature or the shift by one were wrong on one of the two sides, you would see it first here:

# %%
claim(
    "rlhf.ratios_of_one",
    "In the first minibatch of every iteration each ratio is 1, to 10⁻⁴.",
    max(history["first_ratio_deviation"]) < 1e-4,
    control=(
        "So it is in the last epoch, for the clip keeps it there.",
        max(history["max_ratio_deviation"]) < 1e-4,
    ),
)

# %% [markdown]
# Where does the time go? In lesson 08 the answer hung on the number of epochs: with one, collecting took more than two
# fifths of it, with sixteen less than a third. Here there are two epochs. Guess the share of the squeeze:

# %% tags=["nbval-ignore-output"]
predict("rlhf.share_of_squeeze", None, unit="%")

# %%
shares = [run["stage_shares"] for run in runs["beta 0.3"].values()]
squeeze = sum(each["squeeze"] for each in shares) / len(shares)
compare("rlhf.share_of_squeeze", round(100 * squeeze), unit="%")

# %% [markdown]
# In each of the three recorded runs:

# %%
claim(
    "rlhf.squeeze_is_most",
    "In the recorded runs of the toy, more than half of the time is squeeze, less than a third collect.",
    all(each["squeeze"] > 1 / 2 and each["collect"] < 1 / 3 for each in shares),
    control=("More than half of it is collect.", all(each["collect"] > 1 / 2 for each in shares)),
)

# %% [markdown]
# That is the toy's: ten tokens at most, all answers drawn side by side. A token of a large model must wait for the one
# before it, and its answers may have thousands. Those who train such models report that collecting takes most of
# their time, which is why programs of their own, **engines**, draw the answers (lesson 16).
#
# ## What is it after?
#
# Reward minus a price for distance: is there a best policy? There is, and it has a formula:
#
# $$\pi^*(y) = \pi_{\text{ref}}(y)\, e^{r(y)/\beta} / Z$$
#
# The reference, tilted towards reward; Z makes the probabilities add up to 1 (Rafailov et al., 2023, derive DPO from
# it). Where all answers can be listed, you can compute it. Two words, three tokens at most: 15 answers, each worth
# something between 0 and 1.

# %%
tree = rlhf.AnswerTree(num_words=2, num_tokens=3)
worth = torch.rand(len(tree), generator=torch.Generator().manual_seed(3))
first = rlhf.TreePolicy(
    tree,
    torch.randn(tree.num_prefixes, tree.vocabulary, generator=torch.Generator().manual_seed(4)),
)
asked = first.answer_log_probs().detach()
best = rlhf.tilted_log_probs(asked, worth, beta=0.25)
print(f"{len(tree)} answers; the reference's probabilities add up to {asked.exp().sum():.4f}")

# %% [markdown]
# Is it the best? Compare it with a thousand others, and with the policy that takes only the answer with the most reward:

# %%
others = torch.randn(1000, len(tree), generator=torch.Generator().manual_seed(5))
others = others.log_softmax(dim=1)
greedy = torch.full((len(tree),), -torch.inf).index_fill(0, worth.argmax(), 0.0)


def earned(log_probs):
    return rlhf.regularized_return(
        log_probs, asked.expand_as(log_probs), worth.expand_as(log_probs), beta=0.25
    )


# %%
claim(
    "rlhf.formula_is_best",
    "The formula earns more, after the price, than each of 1,000 other policies.",
    (earned(others) < earned(best)).all(),
    control=("The answer with the most reward alone earns more.", earned(greedy) > earned(best)),
)

# %% [markdown]
# Does PPO come near it? The same `train_tokens`, with a table in place of a transformer:

# %% tags=["nbval-ignore-output"]
pupil, table = copy.deepcopy(first), rlhf.TreeCritic(tree)
settings = RLHFConfig(
    num_prompts=256, max_new_tokens=3, beta=0.25, num_iterations=budget(80, 60),
    learning_rate=0.03, critic_learning_rate=0.1, num_minibatches=1, num_epochs=4,
)  # fmt: skip
world = {"reward": tree.paying(worth), "draw": tree.prompts, "verifier": None}
rlhf.train_tokens(settings, policy=pupil, reference=first, critic=table, **world)
learned = pupil.answer_log_probs().detach()

# %%
order = best.argsort(descending=True)[:8]
letters = str.maketrans({0: "a", 1: "b", tokens.EOS: "."})  # two words, and the end
names = [
    "".join(map(chr, said[kept].tolist())).translate(letters)
    for said, kept in zip(tree.tokens[order], tree.mask[order], strict=True)
]

# %% [markdown]
# Eight answers, the words written as a and b, the end as a dot:

# %%
show(
    figures.tilted(
        names,
        asked.exp()[order].tolist(),
        best.exp()[order].tolist(),
        learned.exp()[order].tolist(),
        title="PPO comes to the reference, tilted",
    ),
    alt="Probabilities of eight answers: bars of the formula, dots of PPO close to their tops, and "
    "dashes of the reference, some far from them.",
)


# %% [markdown]
# How far are two policies apart? By KL, exactly:


# %%
def kl(log_probs, other):
    return (log_probs.exp() * (log_probs - other)).sum()


# %%
claim(
    "rlhf.ppo_comes_near",
    "PPO ends at most a fifth as far from the formula as the reference was.",
    kl(learned, best) < kl(asked, best) / 5,
    control=(
        "It ends as near to the formula of another price, β = 0.05.",
        kl(learned, rlhf.tilted_log_probs(asked, worth, beta=0.05)) < kl(asked, best) / 5,
    ),
)

# %% [markdown]
# The formula says what β is for. A large one gives the reference back. A small one gives the answer that the *judge* likes best,
# however seldom the reference said it. And a word that the reference never says is never said: no factor helps a 0.
#
# ## No price
#
# Now take the price away. Three seeds of 40 iterations with β = 0, a line for each:

# %%
free = [run["curves"] for run in runs["beta 0"].values()]
before = sum(start["reference"]["success"] for start in starts.values()) / len(starts)
show(
    figures.life_of_a_run(
        free, before=before, title="β = 0: the score rises, the task rises with it, and is lost"
    ),
    alt="Four panels over 40 iterations, three seeds each. The score rises to 3. The share of right answers "
    "rises from the reference's to about 0.65 within ten iterations and falls to 0. The KL grows beyond 20 nats. The "
    "share outside of the clip is highest at the start.",
)

# %% [markdown]
# What it says at the first look and in the end, to the same prompts. (`<eos>` is where it stopped by itself; without it
# the limit of ten tokens cut the answer off.)

# %%
told = runs["beta 0"]["0"]
for asked_text, early, late in zip(
    told["prompts"], told["answers"][0], told["answers"][-1], strict=True
):
    print(f"{asked_text:14} {early:16} {late}")

# %%
ends = [curves["success"][-1] for curves in free]
claim(
    "rlhf.hacked",
    "On 3 of 3 seeds the score ends above 2, success was above 0.6 on the way and ends below 0.05.",
    all(curves["score"][-1] > 2 and max(curves["success"]) > 0.6 for curves in free)
    and max(ends) < 0.05,
    control=(
        "Success ends where it was highest, for the score never fell.",
        all(curves["success"][-1] == max(curves["success"]) for curves in free),
    ),
)

# %% [markdown]
# This is **reward hacking**: the judge is pleased, the task is lost. First both rise together, since right answers are one thing
# that the judge likes. Then the policy finds the cheaper one.
#
# Which dial shows it? To judge a dial you need a run that is well. Take the same seeds at β = 0.3, whose success
# rises and stays; the next section looks at them. Is the share outside of the clip the dial? It is highest where all is
# still well, and small in the end, in both:

# %%
held = [run["curves"] for run in runs["beta 0.3"].values()]
for name, curves in (("β = 0", free), ("β = 0.3", held)):
    outside = [(each["fraction_outside"][0], each["fraction_outside"][-1]) for each in curves]
    print(f"{name:8} first and last:", ", ".join(f"{a:.3f} {z:.3f}" for a, z in outside))

# %%
claim(
    "rlhf.clip_sees_nothing",
    "A threshold that notices the end of a lost run would have stopped each held run as it began.",
    max(each["fraction_outside"][-1] for each in free)
    < min(each["fraction_outside"][0] for each in held),
    control=(
        "One parts them: where all is lost, more are outside than in a held run ever were.",
        min(each["fraction_outside"][-1] for each in free)
        > max(max(each["fraction_outside"]) for each in held),
    ),
)

# %% [markdown]
# And the critic's explained variance (lesson 05's, of GAE's returns)? It stays behind while the policy runs away, and is
# high when nothing is left to lose. At three looks, three seeds each:

# %%
for words, some in {"lost": free, "held": held}.items():
    for look in (4, 18, 40):
        at_look = [curves["ev_lambda"][curves["iteration"].index(look)] for curves in some]
        print(f"{words}, iteration {look:2}:", " ".join(f"{each:.2f}" for each in at_look))

# %%
claim(
    "rlhf.critic_sees_nothing",
    "At the end, where no answer is right, the critic explains more than 0.8, on 3 of 3 seeds.",
    all(curves["ev_lambda"][-1] > 0.8 for curves in free),
    control=(
        "It explains less than in the held run of the same seed.",
        all(a["ev_lambda"][-1] < z["ev_lambda"][-1] for a, z in zip(free, held, strict=True)),
    ),
)

# %% [markdown]
# It has learned what the judge will say. That is all that it was asked.

# %% [markdown]
# The entropy is lower than in a held run. But that alone is no alarm: it is as low where the verifier itself pays, in
# runs with larger steps that you will meet below, in which there is nothing to hack. A policy that grows sure looks like
# that, whatever it is sure of.

# %%
for words, name in {"lost": "beta 0", "held": "beta 0.3", "verified": "4x4, clip"}.items():
    last = [run["curves"]["entropy"][-1] for run in runs[name].values()]
    print(f"{words:9} entropy {min(last):.2f} to {max(last):.2f} nats")

# %% [markdown]
# Three numbers that lesson 08 did not have do show it: the KL from the reference, the length, and the share of answers
# without an end.

# %%
for words, name in {"lost": "beta 0", "held": "beta 0.3"}.items():
    for key in ("kl_reference", "length", "no_eos"):
        last = [run["curves"][key][-1] for run in runs[name].values()]
        print(f"{words:5} {key:13} {min(last):.1f} to {max(last):.1f}")

# %% [markdown]
# And so do the answers themselves, if somebody reads them.
#
# ## What is a nat worth?
#
# Try a price of 0.1 for each nat. The widget shows score, KL and length of three recorded runs, and asks where the right
# answers end. Then move the price. (Where no widget can run, you see a picture of its answer.)

# %%
slider = BetaSlider(beta=0.1, keep_as="rlhf.low_price")
slider

# %% [markdown]
# Check its number with the record, whatever price you have chosen:

# %%
at_price = [run["curves"]["success"][-1] for run in runs[f"beta {slider.beta:g}"].values()]
assert abs(slider.answer - 100 * sorted(at_price)[1]) <= 0.5
print("the widget and the record agree")

# %% [markdown]
# How high must the price be? Six of them, three seeds each, asked at the end with 512 prompts that no run was watched on
# (so the numbers differ a little from the widget's):

# %%
betas = (0.0, 0.1, 0.2, 0.3, 1.0, 3.0)
final = [[run["final"] for run in runs[f"beta {beta:g}"].values()] for beta in betas]
success = [[each["success"] for each in row] for row in final]
far = [[each["kl_reference"] for each in row] for row in final]

# %%
show(
    figures.price(betas, success, far, before=before),
    alt="Right answers at the end over the price: 0 at no price, about 0.2 at 0.1, highest near 0.8 at 0.3, then "
    "falling to 0.45 at 3. Beside it the KL, falling from 24 nats to less than 0.1.",
)

# %% [markdown]
# A price of 0.1 does not hold the policy, a price of 3 hardly lets it move:

# %%
middle = dict(zip(betas, (sorted(row)[1] for row in success), strict=True))
claim(
    "rlhf.too_cheap_too_dear",
    "β = 0.3 ends with more right answers than 0.1 and than 3, on every seed against every seed.",
    min(success[3]) > max(success[1]) and min(success[3]) > max(success[5]),
    control=("The dearer the better: 3 ends highest.", middle[3.0] == max(middle.values())),
)

# %% [markdown]
# Nobody knows the right β beforehand. One way out is to name the distance instead, and let a controller find the price
# (Ziegler et al., 2019): raise it when the KL is above its target, lower it when it is below.

# %%
show_source(rlhf.adaptive_beta)

# %% [markdown]
# The recorded runs aim at 1 nat, and the horizon is 320 answers. At 128 answers an iteration the price changes by 8 % at
# most, each time.

# %%
steered = [run["curves"] for run in runs["adaptive beta"].values()]
show(
    figures.controller(steered, target=1.0, before=before),
    alt="Three panels over 40 iterations, three seeds each. The price falls from 0.1 to 0.06, then rises to 0.6. The "
    "KL rises to between 6 and 8 nats, six to eight times its target, and comes back to it. The share of right "
    "answers rises, falls below that of the reference while the KL is high, and ends above 0.8.",
)

# %%
adaptive = [run["final"] for run in runs["adaptive beta"].values()]
claim(
    "rlhf.adaptive",
    "With a target of 1 nat the runs end within 0.3 nats of it, from a price that began at 0.1.",
    all(abs(each["kl_reference"] - 1.0) < 0.3 for each in adaptive),
    control=(
        "A fixed price of 0.1 ends there as well.",
        all(abs(distance - 1.0) < 0.3 for distance in far[1]),
    ),
)

# %% [markdown]
# It finds its target, and on the way it gets lost. While the KL is below 1 nat it makes distance cheaper. When the KL
# is above, 8 % at a time are too slow for a policy that has found out about "!":

# %%
claim(
    "rlhf.overshoots",
    "On 3 of 3 seeds the KL goes beyond six times its target, and success falls below the reference's.",
    all(max(curves["kl_reference"]) > 6 and min(curves["success"]) < before for curves in steered),
    control=(
        "The KL never leaves its target by more than a factor of two.",
        all(max(curves["kl_reference"]) <= 2 for curves in steered),
    ),
)

# %% [markdown]
# Somebody who stops at iteration 18 holds a policy that is worse than the one it began with. Somebody who waits holds
# the best of this lesson: 0.84 to 0.89. Their price is between 0.5 and 0.6 then, one that no fixed run of this lesson
# had. So the controller does not spare you the choice. It gives you another one: target, horizon, and when to stop.
#
# ## The clip is local, the price is global
#
# Both hold the policy back. Could one stand in for the other? Take each away:

# %%
named = {
    "clip 0.2, no price": "beta 0",
    "clip 0.05, no price": "beta 0, clip 0.05",
    "clip 0.2, β = 0.3": "beta 0.3",
    "no clip, β = 0.3": "beta 0.3, no clip",
    "verifier pays, 16 steps: clip": "4x4, clip",
    "verifier pays, 16 steps: no clip": "4x4, no clip",
    "β = 0.3, 16 steps: clip": "4x4, beta 0.3, clip",
    "β = 0.3, 16 steps: no clip": "4x4, beta 0.3, no clip",
}
at_end = {
    words: [run["final"]["success"] for run in runs[name].values()] for words, name in named.items()
}

# %%
show(
    figures.ends_by_setting(
        [*at_end.items()], before=before, title="Neither does the work of the other"
    ),
    alt="Eight settings with the share of right answers at the end. Without a price both clips end near 0. With "
    "a price both with and without clip end near 0.8. With 16 steps a batch the clip ends near 0.57 where the verifier "
    "pays and near 0.45 where the judge does, at a price; without the clip both end at 0.",
)

# %% [markdown]
# First row against second: no price, and a clip that is four times as tight.

# %%
claim(
    "rlhf.clip_is_local",
    "Without a price a clip four times as tight ends below 0.05 as well, on 3 of 3 seeds.",
    max(at_end["clip 0.05, no price"]) < 0.05,
    control=(
        "It ends above the reference, for each iteration moves less.",
        min(at_end["clip 0.05, no price"]) > before,
    ),
)

# %% [markdown]
# It only takes longer. And the other way round, with four steps per batch as here, the price alone is enough:

# %%
claim(
    "rlhf.price_is_global",
    "With the price and no clip, success ends above 0.7 on 3 of 3 seeds.",
    min(at_end["no clip, β = 0.3"]) > 0.7,
    control=(
        "With neither of them it does, too.",
        min(at_end["clip 0.2, no price"]) > 0.7,
    ),
)

# %% [markdown]
# So is the clip of no use? It is for **reuse**. The last four rows take sixteen steps from each batch instead of four
# (four epochs of four minibatches), and each step is ten times as long (learning rate 0.002 instead of 0.0002); 24
# iterations. In the first two of them the verifier pays, so that there is nothing to hack, and no price. In the last two
# the judge pays, at β = 0.3. Each pair differs by the clip alone:

# %%
claim(
    "rlhf.reuse_needs_the_clip",
    "With 16 long steps a batch success ends above 0.4 with the clip and below 0.05 without, whoever pays.",
    min(at_end["verifier pays, 16 steps: clip"] + at_end["β = 0.3, 16 steps: clip"]) > 0.4
    and max(at_end["verifier pays, 16 steps: no clip"] + at_end["β = 0.3, 16 steps: no clip"])
    < 0.05,
    control=(
        "A price of 0.3 stands in for the clip there.",
        min(at_end["β = 0.3, 16 steps: no clip"]) > 0.4,
    ),
)

# %% [markdown]
# (Steps and rate were changed together, so these rows do not say which of the two it is.) The clip keeps one batch from
# being believed too much. The price keeps the whole way from leading too far. Neither does the work of the other.
#
# ## What four models cost
#
# A model that learns needs more than its weights. With weights and gradients in 16 bits and Adam in 32, each weight takes
# 2 bytes, an exact copy 4, a gradient 2 and Adam's two running means, its **moments**, 4 each. How many bytes for each
# weight?

# %% tags=["nbval-ignore-output"]
predict("rlhf.bytes_of_a_weight", None, unit="bytes")

# %%
eight = rlhf.TRANSFORMERS["8 B"]
ledger = rlhf.model_memory(eight, num_answers=64, micro_batch=1, num_tokens=2048)
held = {row.model: row.weights + row.gradients + row.optimizer for row in ledger}
each_weight = held["policy"] / rlhf.num_weights(eight)
compare("rlhf.bytes_of_a_weight", round(each_weight), unit="bytes")

# %% [markdown]
# And a model that is only asked?

# %%
claim(
    "rlhf.sixteen_bytes",
    "A weight that learns takes 16 bytes, one that is only asked takes 2.",
    each_weight == 16 and held["reference"] / rlhf.num_weights(eight) == 2,
    control=(
        "Twice as many, since it is read and written.",
        each_weight == 2 * held["reference"] / rlhf.num_weights(eight),
    ),
)

# %% [markdown]
# Two more things need room. For the backward pass a model that learns keeps numbers of its forward pass, the
# **activations**: here one vector per layer and token, and what lies between is computed again. They are kept for one
# **micro-batch**, the sequences that go through at once; gradients of several are added up before a step. And while it
# draws answers, the policy keeps what later tokens look up in each token, its **keys and values**, so that nothing is
# read twice. That is the **cache**.
#
# All four models in three sizes, while 64 answers of 2,048 tokens are drawn at once:

# %%
parts = ("weights", "gradients", "optimizer", "activations", "cache")
given = {"num_answers": 64, "micro_batch": 1, "num_tokens": 2048}
ledgers = {
    size: [vars(row) for row in rlhf.model_memory(rlhf.TRANSFORMERS[size], **given)]
    for size in ("0.5 B", "8 B", "70 B")
}
show(
    figures.memory(ledgers, parts=parts),
    alt="Three panels of stacked bars, memory of policy, critic, reference and reward model for 0.5, 8 and 70 "
    "billion weights. Policy and critic need about eight times as much as the other two; Adam's moments are the "
    "largest part of it.",
)

# %%
small = {"num_answers": 128, "micro_batch": 64, "num_tokens": 17, "precision": rlhf.FULL}
toy = rlhf.model_memory(rlhf.TRANSFORMERS["toy"], checkpointing=False, **small)
print(f"toy    {sum(row.total for row in toy) / 1e9:8.3f} GB")
for size, entries in ledgers.items():
    total = sum(entry[part] for entry in entries for part in parts)
    print(f"{size:6} {total / 1e9:8.3f} GB")

# %% [markdown]
# (The bars count the exact copy among the weights. The toy is this lesson's: 128 answers, everything in 32 bits.) The
# accelerator of a data centre has some 80 to 200 GB. So the four are spread over many, or some are left out: without
# a critic there are three, without a price two. That is where lesson 15 goes on.


# %%
def bytes_of(size, *models):
    chosen = [entry for entry in ledgers[size] if entry["model"] in models or not models]
    return sum(entry[part] for entry in chosen for part in parts)


# %%
claim(
    "rlhf.a_critic_less",
    "Without the critic, more than a third of the memory is free, at 8 and at 70 billion weights.",
    all(bytes_of(size, "critic") > bytes_of(size) / 3 for size in ("8 B", "70 B")),
    control=(
        "A quarter is, for it is one of four.",
        all(bytes_of(size, "critic") < 0.3 * bytes_of(size) for size in ("8 B", "70 B")),
    ),
)

# %% [markdown]
# ## What breaks it
#
# - **The score one token late**, on the first padding. The last token then learns nothing, and the mask hides why.
# - **A mask from token ids.** If the padding's id is that of the end-of-answer token, the end is masked away.
# - **The wrong sign of the price.** Distance is then paid for. All looks well for some iterations.
# - **The KL as a loss of k1.** Its mean gradient is 0; the price then does nothing (lesson 15).
# - **A target KL without a unit.** Per token and per answer differ by the length.
# - **Sampling with top-k or top-p.** The policy that drew is then not π, and k1 may be negative on average.
# - **Dropout left on** (hidden numbers set to 0 by chance, lesson 13). The ratio is not 1 before the first step.
# - **The score as evidence.** It is what was trained on (lesson 17).
#
# ## Exercises
#
# [Seven exercises](../exercises/14_rlhf.ipynb) wait for you: the judge's loss, a reward for each token, their advantages,
# the KL of whole answers, a price that adapts, a stage with a bug, and numbers by hand. At the end your own loss finds
# out what a rater feels.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("rlhf.two_policies")

# %%
quiz("rlhf.score_place")

# %% [markdown]
# On hacking, and on what holds it back:

# %%
quiz("rlhf.hacked")

# %%
quiz("rlhf.local_global")

# %% [markdown]
# And on memory:

# %%
quiz("rlhf.memory")

# %% [markdown]
# ## What you have now
#
# - Four models: policy and critic learn, reference and reward model are asked.
# - The score is paid at the last token, a price for distance at every token; GAE, ratio and clip are those of lessons 06 and 08.
# - The best policy at price β is the reference, tilted by e^(r/β). PPO comes near it where it can be computed.
# - A judge can be pleased without the task being done. Neither the share outside of the clip nor the explained variance
#   gives it away; the KL from the reference, the length, and the answers do.
# - The clip is local: it is for reuse. The price is global: it is for the way.
#
# The module behind this page: [rlhf](../ppo_lessons/rlhf/__init__.py). Next: which part did the others replace?
