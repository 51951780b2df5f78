# %% [markdown]
# # 13 Exercises: tokens
#
# You write the bookkeeping that turns a language model into a policy: where a token stands, what it was
# worth to the model, which tokens are actions, and how to average over them. The lesson is
# [lesson 13](../notebooks/13_tokens.ipynb). Each answer is checked as soon as you run the cell below it: you
# see the smallest input on which it differs, and the name of the mistake if it is one of the usual ones.
#
# | exercise | difficulty | importance | minutes |
# | --- | :---: | :---: | ---: |
# | 1. positions under padding | 2 of 5 | 5 of 5 | 8 |
# | 2. log-probabilities of tokens | 3 of 5 | 5 of 5 | 12 |
# | 3. where a response ends | 2 of 5 | 5 of 5 | 8 |
# | 4. a mean over tokens | 2 of 5 | 5 of 5 | 8 |
# | 5. several turns | 3 of 5 | 4 of 5 | 12 |
# | 6. ratios by hand | 3 of 5 | 4 of 5 | 15 |
#
# Three rules. Leave the lines that begin with `# answer:` as they are: the checks find your
# answers by them. Let each answer cell hold all that it needs, imports included. Do not import
# the answer from `ppo_lessons`: the point is to write it a second time, without looking.
#
# While your function is checked, what it prints is not shown. To look inside, call it yourself with
# the input that the check names.
#
# Stuck? Remove the `#` in front of a `hint` line and run the cell. Run it again for the next
# hint; there are three. `./course check 13`, typed in a terminal in the folder of the course, checks
# all six. A function that passes is kept in `my_work/answers/`.

# %% tags=["nbval-ignore-output"]
import torch

from ppo_lessons import check, hint, reveal, setup  # noqa: F401  hint waits in comments
from ppo_lessons import tokens as package

setup()

# %% [markdown]
# ## 1. Positions under padding
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# A model adds to each token a vector for its position in the row. Prompts of different lengths are padded in
# front, and padding is nothing that anybody said. So the first real token of each row stands at position 0,
# wherever the row begins.
#
# - `mask` is boolean, `[B, L]`: False in padding. Padding may stand anywhere, also inside a row, as behind a
#   prompt that was padded at its end.
# - The result holds whole numbers, `[B, L]`: how many real tokens stand before each real token. In padding any
#   position from 0 to L − 1 will do.
#
# For the row `0 0 1 1 0 1`, what are the positions of the three real tokens?

# %%
# answer: tokens.positions
import torch


def positions(mask):
    """Give each real token its position in the row."""
    ### BEGIN SOLUTION: a running count, from 0 on
    return (mask.cumsum(dim=-1) - 1).clamp(min=0)
    ### END SOLUTION


# %%
# hint("tokens.positions")
check.positions(positions)

# %% [markdown]
# ## 2. Log-probabilities of tokens
#
# *Difficulty 3 of 5, importance 5 of 5, 12 minutes.*
#
# The model has read prompt and response in one pass, and gives a row of logits at each place: its guess at the
# token that *follows*. What log-probability did each token of the response have?
#
# - `logits` has shape `[B, P + T, V]`: P columns of the prompt, T of the response, V words.
# - `tokens` has shape `[B, T]`: the ids of the response.
# - `prompt_length` is P, the padding in front included.
# - `temperature` is the one at which the response was drawn.
# - The result has shape `[B, T]`. It carries gradients to the logits.
#
# Before you write: the last row of logits, at place P + T − 1, scores which token of the response?

# %%
# answer: tokens.token_log_probs
import torch


def token_log_probs(logits, tokens, *, prompt_length, temperature):
    """Give log π of each token of the response."""
    ### BEGIN SOLUTION: one place earlier, then a softmax, then the token's own number
    before = logits[:, prompt_length - 1 : -1]
    table = (before / temperature).log_softmax(dim=-1)
    return table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    ### END SOLUTION


# %%
# hint("tokens.token_log_probs")
check.token_log_probs(token_log_probs)

# %% [markdown]
# ## 3. Where a response ends
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Which tokens of a response did the policy choose? All up to the first EOS, and EOS itself: to stop was a
# choice, too. Of a response that was cut off by the limit, all.
#
# - `tokens` has shape `[B, T]`.
# - `eos` is the id that ends a response. Behind the first one may stand anything: padding, words, another EOS.
#   No other id has a meaning, and the padding may have the same id as EOS.
# - The result is boolean, `[B, T]`.
#
# A response is `EOS pad pad`. How many actions has it?

# %%
# answer: tokens.response_mask
import torch


def response_mask(tokens, *, eos):
    """Mark the tokens that the policy chose."""
    ### BEGIN SOLUTION: no EOS stands before it
    is_end = (tokens == eos).long()
    return is_end.cumsum(dim=-1) - is_end == 0
    ### END SOLUTION


# %%
# hint("tokens.response_mask")
check.response_mask(response_mask)

# %% [markdown]
# ## 4. A mean over tokens
#
# *Difficulty 2 of 5, importance 5 of 5, 8 minutes.*
#
# Losses, entropies and KLs are averaged over the tokens that count. What stands in the padding must not
# matter, whatever it is.
#
# - `values` has shape `[B, T]`, `mask` is boolean and has the same shape.
# - The result is one number: the mean of all values that count, over all rows together. It is 0 if none counts.
# - Gradients reach the values that count, and no others.
#
# In the padding stands an infinity, since somebody took the logarithm of 0 there. What is infinity times 0?

# %%
# answer: tokens.masked_mean
import torch


def masked_mean(values, mask):
    """Average over the tokens that count."""
    ### BEGIN SOLUTION: replace, add up, divide by the count
    return values.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)
    ### END SOLUTION


# %%
# hint("tokens.masked_mean")
check.masked_mean(masked_mean)

# %% [markdown]
# ## 5. Several turns
#
# *Difficulty 3 of 5, importance 4 of 5, 12 minutes.*
#
# A conversation goes back and forth: the user asks, the assistant calls a tool, the tool answers, the assistant
# replies. All of it stands in one row. The policy chose the tokens of the assistant's turns, and no others.
#
# - `lengths` has shape `[B, K]`, whole numbers: tokens of each of K turns. 0 stands for a turn that is not there.
# - `own` is boolean, `[B, K]`: whether the assistant wrote the turn.
# - `total_length` is L, at least as long as the longest conversation. What is left is padding, in front.
# - The result is boolean, `[B, L]`: True at the assistant's tokens.
#
# Turns of 1, 2, 4 and 1 tokens, the second and the fourth by the assistant. How many actions are that?

# %%
# answer: tokens.actions_of_turns
import torch


def actions_of_turns(lengths, own, *, total_length):
    """Mark the tokens that the assistant wrote."""
    ### BEGIN SOLUTION: where each turn ends, where it begins, which places lie inside
    ends = total_length - lengths.sum(-1, keepdim=True) + lengths.cumsum(-1)
    starts = ends - lengths
    places = torch.arange(total_length)
    inside = (places >= starts[..., None]) & (places < ends[..., None])
    return (inside & own[..., None]).any(dim=1)
    ### END SOLUTION


# %%
# hint("tokens.actions_of_turns")
check.actions_of_turns(actions_of_turns)

# %% [markdown]
# ## 6. Ratios by hand
#
# *Difficulty 3 of 5, importance 4 of 5, 15 minutes.*
#
# Nothing to program. Numbers may be off by 0.002.
#
# **A place.** A prompt takes 7 columns, padding included, and its response follows. Places are counted from 0.
#
# - **a**: What is the index of the place whose logits score the *third* token of the response?
#
# **A temperature.** At some place the model gives three words the probabilities 0.4, 0.4 and 0.2. The sampler
# draws at temperature 0.5. Whoever scores has forgotten the temperature. The ratio is that of the scorer to the
# sampler.
#
# - **b**: With what probability does the sampler draw the first word?
# - **c**: What is the ratio of the first word?
# - **d**: And of the third?
# - **e**: What is the mean of the ratio, over draws of the sampler?
#
# **A cut.** Another sampler works at temperature 1, and draws among the first two words only, the likeliest.
#
# - **f**: What is the ratio of a word that it draws?
# - **g**: What is the mean of the logarithm of the ratio, in nats?
#
# **A mean.** Four responses of 3, 5, 10 and 2 tokens, EOS included, lie in ten columns. At each token the entropy
# is 1.4 nats. In the padding stands 0.
#
# - **h**: What comes out, in nats, if somebody averages over all 40 places?

# %%
# answer: tokens.ratios_by_hand
### BEGIN SOLUTION stub: ratios_by_hand = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
answers = (8, 4 / 9, 0.9, 1.8, 1.0, 0.8, -0.22314, 0.7)
ratios_by_hand = dict(zip("abcdefgh", answers, strict=True))
### END SOLUTION

# %%
# hint("tokens.ratios_by_hand")
check.ratios_by_hand(ratios_by_hand)

# %% [markdown]
# ## Play with your own bookkeeping
#
# Once exercises 1 to 4 pass, let them score what a model has drawn. It is a new model with weights by chance, so
# it babbles; for bookkeeping that is as good. The package generates token by token, with a cache. You score all
# of it in one pass. Every ratio must be 1.

# %%
generator = torch.Generator().manual_seed(3)
model = package.LanguageModel(package.ModelConfig(), generator)
prompts = package.encode_prompts([[3, 1, 2], [4, 4, 0, 9, 7], [8, 5, 6, 1]])
responses = package.generate(
    model, prompts, max_new_tokens=10, temperature=0.7, generator=generator
)

# %%
mask = response_mask(responses.tokens, eos=package.EOS)
row = torch.cat([prompts.tokens, responses.tokens], dim=1)
whole = torch.cat([prompts.mask, mask], dim=1)
logits = model(row, whole, position_ids=positions(whole))
mine = token_log_probs(logits, responses.tokens, prompt_length=7, temperature=0.7)

# %%
off = ((mine - responses.log_probs).exp() - 1).abs()
assert torch.equal(mask, responses.mask), "another mask: does exercise 3 pass?"
assert masked_mean(off, mask) < 1e-4, "a ratio is not 1: do exercises 1 and 2 pass?"
print("every ratio is 1: yours and the package's agree")

# %% [markdown]
# ## All at once, and the solutions
#
# `check.all` runs every check on what this notebook holds.

# %% tags=["nbval-ignore-output"]
check.all(lesson="tokens")

# %% [markdown]
# The solutions are in `solutions/13_tokens.ipynb`. Each is one way among several; yours need not look
# like it. `reveal` says where, after you have tried.

# %%
reveal("tokens.ratios_by_hand")
