# %% [markdown]
# # Tokens
#
# **What is a state, an action for a language model?**
#
# You have a loop that learns to balance a pole. Somebody hands you a language model and says: use the same
# loop. Nothing in the loop knows of poles. It wants states, actions, their log-probabilities, and to be told
# where an episode ends. So the question is what these are when a model writes. The answer fits into a
# table, and you will have it in five minutes.
#
# The rest of the lesson is bookkeeping. Prompts are long and short, answers too, and all of them lie in one
# tensor. Nearly every line that handles them can be off by one, and then nothing crashes: the program trains,
# and what it learns is a little beside the point. It has happened to good people (OpenRLHF's issue 217, TRL's 469
# and 6800 are about one of the lines below). You meet seven wrong programs here. One number finds five of them, before
# anything is trained, and you find out which two it passes, and what finds those.
#
# The words that you need: a **policy** π gives each action a probability, made from its **logits** by a
# softmax. The **ratio** of an action is π / π_old, new over old. An episode is **terminated** where the task
# ended, and **truncated** where you stopped watching.

# %% tags=["nbval-ignore-output"]
import copy

import torch

from ppo_lessons import budget, claim, compare, predict, quiz, setup, show, show_source
from ppo_lessons import tokens as lm
from ppo_lessons.clip import clipped_surrogate_loss
from ppo_lessons.figures import tokens as figures
from ppo_lessons.importance import importance_ratios
from ppo_lessons.shapes import masked_mean
from ppo_lessons.tokens.bookkeeping import WAYS
from ppo_lessons.widgets import TokenStrip

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("tokens.review_ratio")

# %%
quiz("tokens.review_clip")

# %% [markdown]
# The third is on ends:

# %%
quiz("tokens.review_cut")

# %% [markdown]
# ## The same loop
#
# A language model reads text cut into **tokens**, pieces from a fixed list, its **vocabulary**. Each token has a
# number there, its id. What the model is asked is the **prompt**, what it writes is the **response**. It writes
# one token at a time, and reads all that stands there so far before each. One token of the list means "that was
# all": the end of sequence, **EOS**.
#
# | in the loop | on CartPole | for a language model |
# | --- | --- | --- |
# | state s_t | cart and pole | the prompt, and the response up to token t, without it |
# | action a_t | left or right | token t |
# | policy | logits of two actions | logits of all tokens of the vocabulary |
# | what the world does | physics | appends the token; no chance in it |
# | episode | until the pole falls | one response |
# | terminated | the pole fell | the token was EOS |
# | truncated | 500 steps are over | T tokens are written, and no EOS among them |
# | reward | 1 a step | often one number, at the last token |
# | rollout | [T, N], steps by environments | [B, T], responses by tokens |
#
# Two things are new. The world adds no chance of its own: the next state is the old one and the token. And
# the action is one of many; here of fifteen, in practice of a hundred thousand.
#
# ## A language of fifteen tokens
#
# Here is a language so small that a model of it trains in seconds. A prompt holds a few digits, between a
# token that says "begin" and one that says "now you". The right response is the same digits in ascending
# order, then EOS.

# %%
print(lm.VOCABULARY)
prompts = lm.encode_prompts([[3, 1, 2], [5, 5, 0, 9, 8]])
print(prompts.tokens.tolist())
print(lm.as_text(prompts.tokens, prompts.mask))

# %% [markdown]
# The first prompt is shorter. A tensor has rows of one length, so two places in front of it hold `<pad>`, id 0.
# Such filling is called **padding**: nobody said it. It stands in front, so that all responses begin in
# the same column. `prompts.mask` is False there.
#
# A response to the first prompt, `123<eos>`, lies in a row of six columns; the last two are padding. How many
# actions has this episode?

# %%
predict("tokens.actions", None, unit="actions")

# %%
answer = torch.tensor([[lm.ZERO + 1, lm.ZERO + 2, lm.ZERO + 3, lm.EOS, lm.PAD, lm.PAD]])
own = lm.response_mask(answer, eos=lm.EOS)
compare("tokens.actions", own.sum().item(), unit="actions")

# %% [markdown]
# Four. To stop is something that the model does: it drew EOS from all fifteen, as it drew the digits. What
# comes behind was drawn by nobody. And a response that is cut off by the limit has no EOS; all its tokens were
# drawn.

# %%
cut_off = lm.response_mask(torch.full((1, 10), lm.ZERO), eos=lm.EOS)
claim(
    "tokens.eos_is_an_action",
    "Of `123<eos>` four tokens are actions, and of ten digits that were cut off all ten.",
    own.sum() == 4 and cut_off.sum() == 10,
    control=("Of `123<eos>` three tokens are actions.", own.sum() == 3),
)

# %% [markdown]
# ## Somebody to listen to
#
# The policy is a **transformer** of 100,000 parameters: a network that gives logits at each place of a row, made from
# all tokens up to that place. More of it you need not know here. It was shown answers, most of them wrong on purpose:
# 35 % in ascending order, 40 % in descending order, the others with two digits exchanged. Such a model, from which
# the learning by reward will start, is called the **reference**. (Trained on first use, in about 10 s; then it lies in
# your cache.)

# %% tags=["nbval-ignore-output"]
config = lm.ReferenceConfig(num_steps=budget(800, 160))
reference = lm.cached_reference(config)

# %% [markdown]
# Let it answer 512 prompts. They are of the **split** "gate": a fifth of all prompts is kept apart, in two halves named
# "gate" and "release", and never shown in training. At each step `generate` draws one token from the softmax of the last
# logits, appends it, and goes on; it writes down the log-probability of what it drew. What it computed of earlier
# places it keeps, in a **cache**.

# %%
generator = torch.Generator().manual_seed(1)
asked = lm.draw_prompts(512, generator=generator, split="gate")
drawn = lm.generate(reference, asked, max_new_tokens=10, temperature=1.0, generator=generator)
right = lm.is_correct(asked, drawn.tokens, drawn.mask)

# %% [markdown]
# Read some. A verifier says which are right:

# %% tags=["nbval-ignore-output"]
questions = lm.as_text(asked.tokens, asked.mask)[:10]
for question, said, good in zip(
    questions, lm.as_text(drawn.tokens, drawn.mask), right, strict=False
):
    print(f"{question:>12} {said:<14} {'✔' if good else '✘'}")

# %% [markdown]
# It knows how an answer looks. The "!" is a habit from its examples; up to two of them are allowed, and in the
# next lesson somebody will come to like them too much.

# %%
share = right.float().mean()
claim(
    "tokens.mediocre",
    "Some of 512 answers are right, and fewer than half.",
    0 < share < 0.5,
    control=("At least half are right.", share >= 0.5),
)

# %% [markdown]
# ## Off by one
#
# Now to what can go wrong. You want log π of each token of a response. The model reads the whole row, prompt and
# response, in one pass, and gives logits at each place: its guess at the token that *follows*. So the
# token in column 7 is scored by the logits in column 6.

# %%
texts = [[lm.VOCABULARY[token] for token in row] for row in (prompts.tokens[0], answer[0])]
show(
    figures.shift(*texts),
    alt="A row of thirteen tokens, seven of a padded prompt and six of a response. From each place an "
    "arrow leads to the next token that it scores; the first starts at the last place of the prompt.",
)

# %% [markdown]
# With P columns of prompt and z the logits:
#
# $$\log \pi(a_t \mid s_t) = \log \text{softmax}(z_{P-1+t} / \tau)\,[a_t]$$
#
# τ is a temperature, and for now it is 1. In the package:

# %%
show_source(lm.token_log_probs)

# %% [markdown]
# Ask automatic differentiation which places were used, for a prompt of 7 columns and a response of 10:

# %%
logits = torch.randn(1, 17, 15, generator=generator, requires_grad=True)
lm.token_log_probs(logits, drawn.tokens[:1], prompt_length=7).sum().backward()
used = logits.grad.abs().sum(dim=-1)[0].nonzero().flatten().tolist()
print(used)

# %%
claim(
    "tokens.shift",
    "A response in columns 7 to 16 is scored by the logits of columns 6 to 15.",
    used == list(range(6, 16)),
    control=("It is scored by the logits of columns 7 to 16.", used == list(range(7, 17))),
)

# %% [markdown]
# Why can one pass give what was drawn token by token? Because no place looks ahead. Exchange a token,
# here the one in column 9, and see from where on the logits move:

# %%
sequence, whole = lm.join(prompts.rows(torch.tensor([0])), answer, own)
exchanged = sequence.clone()
exchanged[0, 9] = lm.BANG
with torch.no_grad():
    change = (reference(exchanged, whole) - reference(sequence, whole)).abs().amax(dim=-1)[0]

# %%
claim(
    "tokens.no_look_ahead",
    "Another token in column 9 changes logits from column 9 on, and none before it.",
    (change[:9] < 1e-5).all() and change[9] > 1e-3,
    control=("It changes those of column 8, too.", change[8] > 1e-3),
)

# %% [markdown]
# A critic over tokens is read in the same column: V(s_t) is what it says at place P − 1 + t, before token t. One
# place later it has seen the action, and what it says there is a value of the next state.
#
# ## One number that should be 1
#
# The responses were drawn one token at a time, and each log-probability was written down. Now score
# all of them again, in one pass, through all that you have read. No parameter has moved in between. What
# must the ratios be?

# %%
with torch.no_grad():
    again, entropies = lm.score_responses(reference, asked, drawn.tokens, drawn.mask)


# %%
def largest_deviation(log_probs):
    ratios = importance_ratios(log_probs, drawn.log_probs)[drawn.mask]
    return (ratios - 1).abs().max()


# %% [markdown]
# And for comparison, a copy of the model that has made a single step of its optimiser:

# %%
moved = copy.deepcopy(reference)
optimizer = torch.optim.Adam(moved.parameters(), lr=1e-3)
log_probs, _ = lm.score_responses(moved, asked, drawn.tokens, drawn.mask)
masked_mean(log_probs, drawn.mask).backward()
optimizer.step()

# %%
after_a_step, _ = lm.score_responses(moved, asked, drawn.tokens, drawn.mask)
claim(
    "tokens.ratio_is_one",
    "Before an update every ratio is 1, to within 0.0001.",
    largest_deviation(again) < 1e-4,
    control=("So it is after one step of the optimiser.", largest_deviation(after_a_step) < 1e-4),
)

# %% [markdown]
# That is the number. Two programs compute the same thing in two ways: one a token at a time with a cache, the
# other all at once. Positions, shift, masks and temperature must agree in both, or some ratio is not 1. It
# costs one line, and belongs at the start of every run. (Not *exactly* 1: sums in another order round
# differently. In half precision, or with another program for drawing, allow more.)
#
# One more thing that surprises people here: the loss before the first update is 0, and it learns all the same.
# With advantages of mean 0 and ratios of 1 the surrogate is their mean. Its slope is not 0: each
# action has −Â, divided by the number of actions. (`masked_whiten` moves and scales the tokens that count to mean 0 and
# spread 1.)

# %%
scores = right.float().unsqueeze(-1).expand_as(drawn.log_probs)
advantages = lm.masked_whiten(scores, drawn.mask)
leaf = again.clone().requires_grad_()
loss = clipped_surrogate_loss(leaf, drawn.log_probs, advantages, clip_epsilon=0.2, mask=drawn.mask)
loss.backward()

# %%
slope_by_hand = -advantages / drawn.mask.sum()
claim(
    "tokens.loss_zero",
    "The first loss is 0, and the slope at each action is −Â divided by the number of actions.",
    loss.abs() < 1e-3 and torch.allclose(leaf.grad, slope_by_hand, atol=1e-6),
    control=("The slopes are 0 as well.", (leaf.grad.abs() < 1e-6).all()),
)

# %% [markdown]
# (Every token of a response got the same advantage here, whether its response was right. The next lesson
# has better ones.)
#
# ## Padding moves nothing
#
# The model adds to each token a vector for its position. At which position stands the first real
# token of a row that begins with two places of padding?

# %%
predict("tokens.first_position", None)

# %%
places = lm.positions(prompts.mask)
print(places.tolist())
compare("tokens.first_position", places[0, 2].item())

# %% [markdown]
# At 0. A prompt is the same prompt, however much filling stands in front of it. `positions` counts what is
# real:

# %%
show_source(lm.positions)

# %% [markdown]
# Test it. Score one response behind the same prompt, once without padding and once with three places of it:


# %%
def replayed(prompt_length, **changed):
    prompt = lm.encode_prompts([[3, 1, 2]], prompt_length=prompt_length)
    row, real = lm.join(prompt, answer, own)
    with torch.no_grad():
        logits = reference(row, real, **changed)
    return lm.token_log_probs(logits, answer, prompt_length=prompt_length)[own]


# %%
bare, padded = replayed(5), replayed(8)
from_the_edge = replayed(8, position_ids=torch.arange(14).unsqueeze(0))
claim(
    "tokens.padding_moves_nothing",
    "Three places of padding change no log-probability.",
    (padded - bare).abs().max() < 1e-4,
    control=(
        "Nor do they if positions are counted from the left edge.",
        (from_the_edge - bare).abs().max() < 1e-4,
    ),
)

# %% [markdown]
# Nor does it matter *which* token the padding holds. What makes it padding is the mask:

# %%
filled = prompts.tokens.masked_fill(~prompts.mask, lm.BANG)
with torch.no_grad():
    clean, junk = (reference(row, prompts.mask) for row in (prompts.tokens, filled))
    believed = reference(filled, torch.ones_like(prompts.mask))

# %%
claim(
    "tokens.junk",
    "What stands in the padding changes the logits of no real token.",
    (junk - clean)[prompts.mask].abs().max() < 1e-5,
    control=(
        "Nor does it if the mask calls it real.",
        (believed - clean)[prompts.mask].abs().max() < 1e-5,
    ),
)

# %% [markdown]
# ## Which tokens count
#
# A token that does not count has no slope. So look at what happens to EOS. Make its response more likely, once
# with the right mask and once with one that leaves EOS out, and ask whether the place that scores EOS is
# pushed. That is column 9: the prompt has 7 columns, and EOS is the fourth token.


# %%
def pushed(mask):
    flat = torch.zeros(1, 13, 15, requires_grad=True)
    log_probs = lm.token_log_probs(flat, answer, prompt_length=7)
    masked_mean(log_probs, mask).backward()
    return (flat.grad[0, 9].abs() > 0).any()


# %%
claim(
    "tokens.stopping_is_learned",
    "The place that scores EOS is pushed.",
    pushed(own),
    control=(
        "It is pushed as well if EOS is left out of the mask.",
        pushed(own & (answer != lm.EOS)),
    ),
)

# %% [markdown]
# A policy whose EOS never counts is never told that stopping was good, or bad. How does
# somebody come to leave it out? Many models have no token for padding and take EOS for it. Then
# "all that is no padding", asked of the ids, is "all that is no EOS":

# %%
with_eos_as_padding = answer.masked_fill(~own, lm.EOS)
claim(
    "tokens.ids_do_not_tell",
    "Where EOS is the padding, up to the first EOS there are still four actions.",
    torch.equal(lm.response_mask(with_eos_as_padding, eos=lm.EOS), own),
    control=(
        "They are those tokens whose id is not that of the padding.",
        torch.equal(with_eos_as_padding != lm.EOS, own),
    ),
)

# %% [markdown]
# So in this course a mask is always passed along, and never guessed from ids.
#
# The other mistake is to count too much. In the padding of `entropies` stands 0. Average over all columns, and
# what you get shrinks with the share of padding. The metric then moves whenever lengths do:

# %%
share_that_counts = drawn.mask.float().mean()
entropy, over_all = masked_mean(entropies, drawn.mask), entropies.mean()
claim(
    "tokens.diluted",
    "The mean over all columns is the mean over the actions, times the share of columns that count.",
    (over_all - share_that_counts * entropy).abs() < 1e-4 and share_that_counts < 0.8,
    control=("Both means are the same.", (over_all - entropy).abs() < 1e-2),
)

# %% [markdown]
# ## Several turns
#
# A conversation goes back and forth. The user asks, the model answers, the user (or a tool that the model called)
# says something, the model goes on. All of it stands in one row, since the model reads all of it. But it wrote
# only its own turns.

# %%
follow_up = lm.encode_prompts([[9, 4]], prompt_length=5)
reply = torch.tensor([[lm.ZERO + 4, lm.ZERO + 9, lm.EOS]])
talk = lm.join_turns(
    [
        lm.Turn("user", prompts.tokens[:1], prompts.mask[:1]),
        lm.Turn("assistant", answer, own),
        lm.Turn("user", follow_up.tokens, follow_up.mask),
        lm.Turn("assistant", reply, torch.ones_like(reply, dtype=torch.bool)),
    ]
)
print(lm.as_text(talk.tokens, talk.actions))

# %%
real = talk.mask[0]
texts = [lm.VOCABULARY[token] for token in talk.tokens[0][real]]
speakers = ["user"] * 5 + ["assistant"] * 4 + ["user"] * 4 + ["assistant"] * 3
show(
    figures.turns(texts, speakers, talk.actions[0][real].tolist()),
    alt="Sixteen tokens in four turns, user, assistant, user, assistant. Under the nine tokens of "
    "the user stands 0, under the seven of the assistant stands 1.",
)

# %% [markdown]
# What others said is part of the state. `join_turns` also moves all padding to the front, so that no gap is left
# between what was said and the answer to it.

# %%
behind_the_prompt = int(talk.mask.sum()) - 5
claim(
    "tokens.own_words_only",
    "In this conversation seven tokens are actions.",
    talk.actions.sum() == 7,
    control=("All that follow the first prompt are.", talk.actions.sum() == behind_the_prompt),
)

# %% [markdown]
# The number from above does not help here. Whoever scores the whole row gets log-probabilities of the user's tokens as
# well, the same ones each time, and their ratios are 1. A program that takes them for actions looks healthy. But it moves
# the user's words. Make all that it takes for actions likelier, and see where a place is pushed that scores the user:


# %%
def user_is_pushed(actions):
    flat = torch.zeros(1, talk.tokens.shape[1], 15, requires_grad=True)
    log_probs = lm.token_log_probs(flat, talk.tokens[:, 1:], prompt_length=1)
    masked_mean(log_probs, actions[:, 1:]).backward()
    scores_user = (talk.mask & ~talk.actions)[:, 1:]
    return (flat.grad.abs().sum(dim=-1)[:, :-1][scores_user] > 0).any()


# %%
claim(
    "tokens.user_not_pushed",
    "With the right mask no place that scores a token of the user is pushed.",
    not user_is_pushed(talk.actions),
    control=("Nor is one if all real tokens count.", not user_is_pushed(talk.mask)),
)

# %% [markdown]
# So a model learns to write what the user would say.
#
# ## Temperature
#
# Samplers have knobs of their own. The **temperature** τ divides the logits before the softmax: below 1 the
# likely tokens become likelier still. Say that three words have probabilities 0.6, 0.3 and 0.1. The sampler
# draws at τ = 0.5. Whoever scores does not know of it, and takes τ = 1. What is the ratio of the third word?

# %%
predict("tokens.rare_ratio", None)

# %%
plain = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
sharp = (plain.log() / 0.5).softmax(dim=-1)
ratios = plain / sharp
print([round(ratio, 3) for ratio in ratios.tolist()])
compare("tokens.rare_ratio", ratios[2].item())

# %% [markdown]
# Dividing log-probabilities by ½ squares the probabilities: 0.36, 0.09 and 0.01, over their sum 0.46. The third word
# is drawn 2 % of the time, and then it counts 4.6 times. Nothing is learned yet, and the clip already finds
# ratios far outside. And look at the mean:

# %%
mean_log = (sharp * ratios.log()).sum()
claim(
    "tokens.mean_ratio",
    "Over draws of this sampler the mean ratio is exactly 1, though no ratio is.",
    abs((sharp * ratios).sum() - 1) < 1e-12 and (ratios - 1).abs().min() > 0.2,
    control=("The mean of the log-ratio is 0, too.", mean_log.abs() < 1e-3),
)

# %% [markdown]
# So a mean ratio of 1 proves nothing. (You know why from [lesson 02](02_importance.ipynb): weights that correct one
# distribution into another have mean 1.) Look at each.
#
# Other knobs leave words out. A sampler that draws among the two likeliest (*top-k*, *top-p* and the like are
# of this kind) spreads what is left over them:

# %%
cut = plain[:2] / plain[:2].sum()
kept = plain[:2] / cut
claim(
    "tokens.kept_mass",
    "If only the two likeliest words may be drawn, each ratio is 0.9, the probability of both.",
    torch.allclose(kept, torch.full_like(kept, 0.9)),
    control=("The mean ratio is 1 here as well.", abs((cut * kept).sum() - 1) < 1e-6),
)

# %% [markdown]
# A mean of log-ratios taken over such draws is no KL. It can be below 0, and a KL cannot. Here it is log 0.9, about
# −0.1. TRL once had to add a warning that "KL is negative" (its issue 235), and knobs of the sampler are what it names
# as the cause.
#
# ## Eight programs
#
# Here they are together: one right way to keep books, and seven wrong ones. Each draws responses from the reference and
# scores them again. Nothing is trained in between. (**Dropout** sets a part of a network's hidden numbers to 0 by chance.
# It helps in some kinds of training, and is switched off when a network is asked.)
#
# | program | what it does |
# | --- | --- |
# | one place late | reads each token off its own place |
# | padding in positions | counts positions from the left edge |
# | dropout left on | leaves out a tenth of the last layer's inputs while scoring |
# | temperature forgotten | draws at 0.7, scores at 1 |
# | few words only | draws among three words, scores over all |
# | EOS left out | masks EOS away |
# | padding as actions | masks nothing |
#
# Which of them will the ratios not betray?

# %%
books, draws = {}, {}
for name, way in WAYS.items():
    generator.manual_seed(2)
    draws[name] = way.draw(reference, asked, generator=generator)
    books[name] = way.books(reference, asked, draws[name])

# %%
show(
    figures.ratio_histograms({name: book.ratios.numpy() for name, book in books.items()}),
    alt="Eight histograms of ratios on a logarithmic axis. Right, EOS left out and padding as actions "
    "show a single bar at 1; the other five spread out, each in a way of its own.",
)

# %% [markdown]
# (Both axes are logarithmic. What lies beyond ⅛ or 8 stands in the last bar on its side.)

# %% [markdown]
# A program is caught if more than one ratio in twenty is off by more than 0.001.

# %%
caught = [
    name for name, book in books.items() if ((book.ratios - 1).abs() > 1e-3).float().mean() > 0.05
]
print(caught)

# %%
masks_only = ["eos_left_out", "padding_as_actions"]
claim(
    "tokens.five_of_seven",
    "Of seven wrong programs the ratios betray five; EOS left out and padding as actions pass.",
    [name for name in WAYS if name not in caught] == ["right", *masks_only],
    control=("They betray all seven.", len(caught) == 7),
)

# %% [markdown]
# Learn to read the pictures. *One place late* is wild, since the numbers belong to other tokens. *Dropout* is noise on
# both sides of 1. A forgotten *temperature* leaves likely words a little below 1 and rare ones far above. With
# *few words* nothing is above 1.
#
# A mask changes no number, it only leaves some out or lets some in; and in the padding both log-probabilities are 0, a
# ratio of 1. So it needs a test of its own: the actions must be those tokens that were drawn.

# %%
other_mask = [name for name in WAYS if not torch.equal(books[name].mask, draws[name].mask)]
claim(
    "tokens.test_of_the_mask",
    "The comparison of masks finds the two that the ratios pass, and none of the other five.",
    other_mask == masks_only,
    control=("It finds padding in positions as well.", "padding_in_positions" in other_mask),
)

# %% [markdown]
# And one of the five can hide. In the picture, *padding in positions* has a tall bar at 1. Those are the prompts
# that fill all columns:

# %%
book, full = books["padding_in_positions"], asked.mask.all(dim=-1)
off = (importance_ratios(book.log_probs, book.log_probs_old) - 1).abs() > 1e-3
spared, hit = ((off & book.mask)[rows].any(dim=-1).float().mean() for rows in (full, ~full))

# %%
claim(
    "tokens.hides_without_padding",
    "Counting the padding does no harm to prompts that have none.",
    spared == 0,
    control=("It does none to the others, either.", hit < 0.5),
)

# %% [markdown]
# Test with prompts of different lengths, or you test nothing.
#
# ## The same loss
#
# What comes next is the loop that you know. The loss is the one of [lesson 04](04_clip.ipynb), from the same module, on
# [B, T] numbers instead of [B]; the mask goes with it. What stands in the padding must not matter:


# %%
def loss_with(padding, **options):
    filled = advantages.masked_fill(~drawn.mask, padding)
    return clipped_surrogate_loss(
        after_a_step, drawn.log_probs, filled, clip_epsilon=0.2, **options
    )


# %%
masked = [loss_with(padding, mask=drawn.mask).item() for padding in (0.0, 1e6)]
unmasked = [loss_with(padding).item() for padding in (0.0, 1e6)]
claim(
    "tokens.padding_in_the_loss",
    "With the mask, a million in the padding leaves the loss as it was.",
    masked[0] == masked[1],
    control=("Without the mask it does so as well.", abs(unmasked[0] - unmasked[1]) < 1),
)

# %% [markdown]
# ## Try it with your hands
#
# One response, token by token, as a program sees it: position, mask, what was written down, what is computed
# again, the ratio. The fuller a box, the likelier its token was. The widget asks first which program
# this is. Then choose another, and see what changes. (Where no widget can run, you see a picture of its answer.)

# %%
strip = TokenStrip(keep_as="tokens.which_books")
strip

# %% [markdown]
# Check its numbers with the package, whatever you have chosen:

# %%
seen = {name: torch.tensor(numbers) for name, numbers in strip.books.items()}
ratios = importance_ratios(seen["log_probs"], seen["log_probs_old"])
assert abs(masked_mean(ratios, seen["mask"]) - strip.mean_ratio) < 1e-5
print("the widget and the package agree")

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/13_tokens.ipynb) wait for you: positions, log-probabilities, two masks, a mean, and
# ratios by hand. Each check tells you which mistake it is. At the end your own functions score what a model has
# drawn, and every ratio must be 1.
#
# ## Questions
#
# Five, and each wrong option says why it is wrong.

# %%
quiz("tokens.state")

# %%
quiz("tokens.eos")

# %% [markdown]
# On the number that should be 1:

# %%
quiz("tokens.mean_ratio")

# %%
quiz("tokens.turns")

# %% [markdown]
# And on padding:

# %%
quiz("tokens.padding")

# %% [markdown]
# ## What you have now
#
# - A state is all tokens so far, an action is the next one, an episode is a response. EOS terminates, the limit
#   truncates. EOS is an action.
# - Token t is scored one place before it. Padding moves no position, and what it holds has no effect.
# - Before the first update each ratio is 1. Look at each one, since their mean may be 1 in a wrong program. Test
#   on prompts of different lengths.
# - Masks change no ratio. They need a test of their own, and only the assistant's own tokens are actions.
#
# Next: where does the reward come from, and what keeps a model from fooling it?
# Lesson 14 has four models and one loop.
