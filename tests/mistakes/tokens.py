"""Classic mistakes with tokens: a shift by one, padding that counts, a temperature forgotten."""

import torch

from mistakes import new_catalogue
from ppo_lessons.tokens import (
    BANG,
    EOS,
    PAD,
    VOCABULARY_SIZE,
    ZERO,
    Conversation,
    Responses,
    join,
    token_log_probs,
)

MISTAKES, breaks = new_catalogue()


# --- positions and attention ----------------------------------------------------------------


@breaks("positions")
def counted_from_the_left_edge(mask):
    """Counts padding as well: the same prompt behind three pads is another prompt."""
    return torch.arange(mask.shape[-1]).expand_as(mask)


@breaks("positions")
def counted_from_one(mask):
    """Begins at 1, where the model has learned to begin at 0."""
    return mask.cumsum(dim=-1)


@breaks("positions")
def below_zero_in_padding(mask):
    """Gives padding −1, which looks up the last position or none."""
    return mask.cumsum(dim=-1) - 1


@breaks("positions")
def counted_down(mask):
    """Counts from the right, so that every new token renames all earlier ones."""
    return (mask.flip(-1).cumsum(-1).flip(-1) - 1).clamp(min=0)


def causal(length):
    """Who stands at or before whom."""
    return torch.ones(length, length, dtype=torch.bool).tril()


@breaks("attention_mask")
def future_seen(mask):
    """Lets a token look at those after it, one of which is the answer."""
    itself = torch.eye(mask.shape[-1], dtype=torch.bool)
    return (mask[:, None, :] | itself)[:, None]


@breaks("attention_mask")
def padding_seen(mask):
    """Forgets the mask: what stands in padding takes part."""
    return causal(mask.shape[-1]).expand(len(mask), 1, -1, -1)


@breaks("attention_mask")
def padding_sees_nothing(mask):
    """Leaves padding nothing to look at: a softmax over nothing is NaN."""
    return (causal(mask.shape[-1]) & mask[:, None, :])[:, None]


@breaks("attention_mask")
def itself_unseen(mask):
    """Hides each token from itself."""
    length = mask.shape[-1]
    return (causal(length) & mask[:, None, :] & ~torch.eye(length, dtype=torch.bool))[:, None]


# --- masks of responses ---------------------------------------------------------------------


@breaks("response_mask")
def end_left_out(tokens, *, eos):
    """Stops one token short: nobody is paid for stopping."""
    return (tokens == eos).cumsum(-1) == 0


@breaks("response_mask")
def one_too_many(tokens, *, eos):
    """Takes the first token of padding for an action as well."""
    ends = (tokens == eos).cumsum(-1)
    return (ends - (tokens == eos).long()).roll(1, -1).index_fill(-1, torch.tensor([0]), 0) == 0


@breaks("response_mask")
def whatever_is_no_padding(tokens, *, eos):
    """Guesses from ids, where padding is written with the id of the end: the real end is lost."""
    return tokens != eos


@breaks("response_mask")
def up_to_the_last_end(tokens, *, eos):
    """Goes on to the last end in the row, through what stands behind the first."""
    return (tokens == eos).flip(-1).cumsum(-1).flip(-1) > 0


@breaks("response_mask")
def nothing_without_an_end(tokens, *, eos):
    """Throws away responses that were cut off."""
    is_end = tokens == eos
    return (is_end.cumsum(-1) - is_end.long() == 0) & is_end.any(-1, keepdim=True)


# --- log-probabilities and entropies --------------------------------------------------------


@breaks("before_each_token")
def read_off_its_own_place(numbers, *, prompt_length):
    """Reads a token's state off its own place, which has seen it."""
    return numbers[:, prompt_length:]


@breaks("before_each_token")
def read_two_places_before(numbers, *, prompt_length):
    """Shifts twice, in the logits and in the labels."""
    return numbers[:, max(0, prompt_length - 2) : numbers.shape[1] - 2]


def gathered(table, tokens):
    """One number for each token."""
    return table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


@breaks("token_log_probs")
def one_place_late(logits, tokens, *, prompt_length, temperature=1.0):
    """Reads each token off its own place, whose logits guess the token after it."""
    return gathered((logits[:, prompt_length:] / temperature).log_softmax(-1), tokens)


@breaks("token_log_probs")
def temperature_forgotten(logits, tokens, *, prompt_length, temperature=1.0):
    """Divides by the temperature when drawing only: the ratio is not 1 before the first update."""
    return gathered(logits[:, prompt_length - 1 : -1].float().log_softmax(-1), tokens)


@breaks("token_log_probs")
def temperature_upside_down(logits, tokens, *, prompt_length, temperature=1.0):
    """Multiplies by the temperature."""
    table = (logits[:, prompt_length - 1 : -1].double() * temperature).log_softmax(-1)
    return gathered(table, tokens)


@breaks("token_log_probs")
def divided_after_the_softmax(logits, tokens, *, prompt_length, temperature=1.0):
    """Divides log-probabilities by the temperature: they no longer add up to 1."""
    table = logits[:, prompt_length - 1 : -1].double().log_softmax(-1) / temperature
    return gathered(table, tokens)


@breaks("token_log_probs")
def logits_themselves(logits, tokens, *, prompt_length, temperature=1.0):
    """Leaves the softmax out."""
    return gathered(logits[:, prompt_length - 1 : -1] / temperature, tokens)


@breaks("token_log_probs")
def logarithm_of_a_softmax(logits, tokens, *, prompt_length, temperature=1.0):
    """Takes the logarithm of a probability that has become 0."""
    table = (logits[:, prompt_length - 1 : -1].float() / temperature).softmax(-1).log()
    return gathered(table, tokens)


@breaks("token_log_probs")
def softmax_in_half_precision(logits, tokens, *, prompt_length, temperature=1.0):
    """Stays in the dtype of the logits: three digits are left, and large ones overflow."""
    return gathered((logits[:, prompt_length - 1 : -1] / temperature).log_softmax(-1), tokens)


def entropy(table):
    """−Σ p·log p."""
    return -(table.exp() * table).sum(-1)


@breaks("token_entropies")
def sign_turned(logits, *, prompt_length, temperature=1.0):
    """Gives Σ p·log p: a bonus for it makes the policy narrower."""
    return -entropy((logits[:, prompt_length - 1 : -1] / temperature).log_softmax(-1))


@breaks("token_entropies")
def entropy_one_place_late(logits, *, prompt_length, temperature=1.0):
    """Reads the entropy after the token was chosen."""
    return entropy((logits[:, prompt_length:] / temperature).log_softmax(-1))


@breaks("token_entropies")
def entropy_at_temperature_one(logits, *, prompt_length, temperature=1.0):
    """Forgets the temperature at which tokens are drawn."""
    return entropy(logits[:, prompt_length - 1 : -1].log_softmax(-1))


@breaks("token_entropies")
def nothing_times_infinity(logits, *, prompt_length, temperature=1.0):
    """Multiplies the probability 0 of a word that is ruled out by −∞."""
    return entropy((logits[:, prompt_length - 1 : -1] / temperature).log_softmax(-1))


# --- whitening ------------------------------------------------------------------------------


@breaks("masked_whiten")
def padding_counted(values, mask):
    """Takes mean and variance over padding as well."""
    white = (values - values.mean()) / (values.var() + 1e-8).sqrt()
    return white.masked_fill(~mask, 0)


@breaks("masked_whiten")
def padding_shifted(values, mask):
    """Leaves in padding what the shift has made of it."""
    counted = values[mask]
    return (values - counted.mean()) / (counted.var() + 1e-8).sqrt()


@breaks("masked_whiten")
def divided_by_the_variance(values, mask):
    """Forgets the square root."""
    counted = values[mask]
    return ((values - counted.mean()) / (counted.var() + 1e-8)).masked_fill(~mask, 0)


@breaks("masked_whiten")
def variance_of_a_population(values, mask):
    """Divides the squares by n, where libraries divide by n − 1."""
    counted = values[mask]
    white = (values - counted.mean()) / (counted.var(correction=0) + 1e-8).sqrt()
    return white.masked_fill(~mask, 0)


@breaks("masked_whiten")
def row_by_row(values, mask):
    """Whitens each response by itself, so that a good one is no better than a bad one."""
    rows = [padding_shifted(row, kept) for row, kept in zip(values, mask, strict=True)]
    return torch.stack(rows).masked_fill(~mask, 0)


# --- several turns --------------------------------------------------------------------------


@breaks("assistant_mask")
def everything_said(turns):
    """Takes what the user said for actions."""
    return torch.cat([turn.mask for turn in turns], dim=1)


@breaks("assistant_mask")
def everything_after_the_first_prompt(turns):
    """Takes all that follows the first prompt for actions, other people's turns included."""
    first, *others = turns
    parts = [torch.zeros_like(first.mask), *(turn.mask for turn in others)]
    return torch.cat(parts, dim=1)


@breaks("assistant_mask")
def last_turn_only(turns):
    """Learns from the last answer only."""
    *others, last = turns
    parts = [*(torch.zeros_like(turn.mask) for turn in others), last.mask]
    return torch.cat(parts, dim=1)


@breaks("assistant_mask")
def padding_of_the_assistant(turns):
    """Takes the padding behind an answer for actions."""
    parts = [torch.full_like(turn.mask, turn.role == "assistant") for turn in turns]
    return torch.cat(parts, dim=1)


@breaks("assistant_mask")
def tools_as_well(turns):
    """Takes what a tool answered for the assistant's own words."""
    return torch.cat([turn.mask & (turn.role != "user") for turn in turns], dim=1)


def side_by_side(turns):
    """Tokens, mask and actions of all turns, as they stand."""
    tokens = torch.cat([turn.tokens for turn in turns], dim=1)
    mask = torch.cat([turn.mask for turn in turns], dim=1)
    actions = torch.cat([turn.mask & (turn.role == "assistant") for turn in turns], dim=1)
    return tokens, mask, actions


@breaks("join_turns")
def gaps_left(turns):
    """Leaves padding between turns: a token behind a gap is read off padding."""
    tokens, mask, actions = side_by_side(turns)
    return Conversation(tokens.masked_fill(~mask, PAD), mask, actions)


@breaks("join_turns")
def actions_left_behind(turns):
    """Moves tokens and forgets to move the mask of actions along."""
    tokens, mask, actions = side_by_side(turns)
    order = mask.long().argsort(dim=1, stable=True)
    mask = mask.gather(1, order)
    return Conversation(tokens.gather(1, order).masked_fill(~mask, PAD), mask, actions)


@breaks("join_turns")
def padding_to_the_right(turns):
    """Moves padding behind the last turn: the next token is not read off the last column."""
    tokens, mask, actions = side_by_side(turns)
    order = (~mask).long().argsort(dim=1, stable=True)
    mask = mask.gather(1, order)
    tokens = tokens.gather(1, order).masked_fill(~mask, PAD)
    return Conversation(tokens, mask, actions.gather(1, order))


@breaks("join_turns")
def junk_kept(turns):
    """Keeps whatever stood in padding."""
    tokens, mask, actions = side_by_side(turns)
    order = mask.long().argsort(dim=1, stable=True)
    return Conversation(tokens.gather(1, order), mask.gather(1, order), actions.gather(1, order))


# --- the verifier ---------------------------------------------------------------------------


def verdicts(prompts, responses, mask, judge):
    """Ask for each row what a judge thinks of its digits, its answer and whether it was cut off."""
    rows = []
    for digits, row, kept in zip(prompts.digits, responses.tolist(), mask.tolist(), strict=True):
        wanted = [ZERO + digit for digit in digits]
        said = [token for token, real in zip(row, kept, strict=True) if real]
        rows.append(judge(wanted, said))
    return torch.tensor(rows)


@breaks("is_correct")
def end_not_needed(prompts, responses, mask):
    """Accepts an answer that was cut off behind its last digit."""

    def judge(wanted, said):
        tail = said[len(wanted) :]
        return said[: len(wanted)] == sorted(wanted) and set(tail) <= {BANG, EOS}

    return verdicts(prompts, responses, mask, judge)


@breaks("is_correct")
def any_number_of_bangs(prompts, responses, mask):
    """Lets an answer shout as long as it likes."""

    def judge(wanted, said):
        tail = said[len(wanted) :]
        return said[: len(wanted)] == sorted(wanted) and tail == [BANG] * (len(tail) - 1) + [EOS]

    return verdicts(prompts, responses, mask, judge)


@breaks("is_correct")
def digits_as_a_set(prompts, responses, mask):
    """Forgets that a digit may come twice."""

    def judge(wanted, said):
        digits = [token for token in said if token >= ZERO]
        tail = said[len(digits) :]
        ordered = digits == sorted(digits) and set(digits) == set(wanted)
        return ordered and tail in ([EOS], [BANG, EOS], [BANG, BANG, EOS])

    return verdicts(prompts, responses, mask, judge)


@breaks("is_correct")
def bangs_anywhere(prompts, responses, mask):
    """Takes a "!" between two digits for good."""

    def judge(wanted, said):
        digits = [token for token in said if token not in (BANG, EOS)]
        ends = said.count(EOS) == 1 and said[-1] == EOS
        return digits == sorted(wanted) and ends and said.count(BANG) <= 2

    return verdicts(prompts, responses, mask, judge)


@breaks("is_correct")
def same_order_as_asked(prompts, responses, mask):
    """Wants the digits back as they were."""

    def judge(wanted, said):
        return said in [wanted + [BANG] * count + [EOS] for count in range(3)]

    return verdicts(prompts, responses, mask, judge)


@breaks("is_correct")
def padding_read(prompts, responses, mask):
    """Reads on behind the mask."""
    return verdicts(
        prompts,
        responses,
        torch.ones_like(mask),
        lambda wanted, said: (
            said[: said.index(EOS) + 1 if EOS in said else None]
            in [sorted(wanted) + [BANG] * count + [EOS] for count in range(3)]
        ),
    )


# --- scoring a whole response ---------------------------------------------------------------


def scored(logits, prompts, tokens, mask, temperature):
    """Log-probabilities and entropies of logits over the whole sequence."""
    start = prompts.tokens.shape[1]
    log_probs = token_log_probs(
        logits, tokens.clamp(0, VOCABULARY_SIZE - 1), prompt_length=start, temperature=temperature
    )
    entropies = entropy((logits[:, start - 1 : -1] / temperature).log_softmax(-1))
    return log_probs.masked_fill(~mask, 0), entropies.masked_fill(~mask, 0)


@breaks("score_responses")
def without_positions(model, prompts, tokens, mask, *, temperature=1.0):
    """Gives the model no positions: it counts from the left edge, padding included."""
    sequence, whole = join(prompts, tokens, mask)
    places = torch.arange(sequence.shape[1]).expand_as(sequence)
    logits = model(sequence, whole, position_ids=places)
    return scored(logits, prompts, tokens, mask, temperature)


@breaks("score_responses")
def without_a_mask(model, prompts, tokens, mask, *, temperature=1.0):
    """Gives the model no mask: padding is looked at."""
    sequence, whole = join(prompts, tokens, mask)
    logits = model(sequence, torch.ones_like(whole))
    return scored(logits, prompts, tokens, mask, temperature)


@breaks("score_responses")
def junk_looked_at(model, prompts, tokens, mask, *, temperature=1.0):
    """Hands padding to the model as it is: whatever lies there changes the scores."""
    sequence = torch.cat([prompts.tokens, tokens], dim=1)
    logits = model(sequence, torch.ones_like(sequence, dtype=torch.bool))
    return scored(logits, prompts, tokens, mask, temperature)


@breaks("score_responses")
def mask_from_ids(model, prompts, tokens, mask, *, temperature=1.0):
    """Guesses the mask from ids: a policy that draws the id of padding is not believed."""
    sequence, _ = join(prompts, tokens, mask)
    logits = model(sequence, sequence != PAD)
    return scored(logits, prompts, tokens, mask & (tokens != PAD), temperature)


@breaks("score_responses")
def temperature_in_the_rollout_only(model, prompts, tokens, mask, *, temperature=1.0):
    """Scores at temperature 1 what was drawn at another."""
    sequence, whole = join(prompts, tokens, mask)
    return scored(model(sequence, whole), prompts, tokens, mask, 1.0)


@breaks("score_responses")
def labels_shifted_the_wrong_way(model, prompts, tokens, mask, *, temperature=1.0):
    """Reads each token off its own place."""
    sequence, whole = join(prompts, tokens, mask)
    logits = model(sequence, whole).roll(-1, dims=1)
    return scored(logits, prompts, tokens, mask, temperature)


@breaks("score_responses")
def end_masked_out(model, prompts, tokens, mask, *, temperature=1.0):
    """Leaves the last token of each response out: its mask is one short."""
    short = mask & mask.roll(-1, dims=1).index_fill(1, torch.tensor([mask.shape[1] - 1]), False)
    sequence, whole = join(prompts, tokens, mask)
    return scored(model(sequence, whole), prompts, tokens, short, temperature)


@breaks("score_responses")
def dropout_left_on(model, prompts, tokens, mask, *, temperature=1.0):
    """Drops a tenth of what the head reads, as a network in training mode does."""
    sequence, whole = join(prompts, tokens, mask)
    hidden = model.hidden(sequence, whole)
    chance = torch.Generator().manual_seed(0)
    kept = torch.rand(hidden.shape, generator=chance) >= 0.1
    return scored(model.head(hidden * kept / 0.9), prompts, tokens, mask, temperature)


@breaks("score_responses")
def prompt_padded_on_the_right(model, prompts, tokens, mask, *, temperature=1.0):
    """Moves the padding of prompts to their right: the first token is read off padding."""
    sequence, whole = join(prompts, tokens, mask)
    start = prompts.tokens.shape[1]
    order = (~prompts.mask).long().argsort(dim=1, stable=True)
    sequence = torch.cat([sequence[:, :start].gather(1, order), sequence[:, start:]], dim=1)
    whole = torch.cat([whole[:, :start].gather(1, order), whole[:, start:]], dim=1)
    return scored(model(sequence, whole), prompts, tokens, mask, temperature)


# --- drawing --------------------------------------------------------------------------------


def drawn(model, prompts, max_new_tokens, temperature, generator, places_of=None):
    """Draw without a cache: the whole sequence again for each token; give all columns."""
    tokens = prompts.tokens.masked_fill(~prompts.mask, PAD)
    mask, columns = prompts.mask, []
    for _ in range(max_new_tokens):
        places = None if places_of is None else places_of(mask)
        logits = model(tokens, mask, position_ids=places)[:, -1]
        table = (logits / temperature).log_softmax(-1)
        chosen = torch.multinomial(table.exp(), 1, generator=generator)
        columns.append((chosen, table.gather(-1, chosen)))
        tokens = torch.cat([tokens, chosen], dim=1)
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
    chosen, log_probs = (torch.cat(parts, dim=1) for parts in zip(*columns, strict=True))
    return chosen, log_probs


def until_the_end(tokens):
    """True up to and including the first end."""
    is_end = tokens == EOS
    return is_end.cumsum(-1) - is_end.long() == 0


def as_responses(tokens, log_probs, mask):
    """What `generate` gives back."""
    return Responses(tokens.masked_fill(~mask, PAD), mask, log_probs.masked_fill(~mask, 0))


@breaks("generate")
@torch.no_grad()
def goes_on_after_the_end(model, prompts, *, max_new_tokens, temperature, generator):
    """Draws on behind the end, and takes that for actions."""
    tokens, log_probs = drawn(model, prompts, max_new_tokens, temperature, generator)
    return as_responses(tokens, log_probs, torch.ones_like(tokens, dtype=torch.bool))


@breaks("generate")
@torch.no_grad()
def end_not_in_the_mask(model, prompts, *, max_new_tokens, temperature, generator):
    """Leaves the end out of the mask."""
    tokens, log_probs = drawn(model, prompts, max_new_tokens, temperature, generator)
    return as_responses(tokens, log_probs, until_the_end(tokens) & (tokens != EOS))


@breaks("generate")
@torch.no_grad()
def last_token_overwritten(model, prompts, *, max_new_tokens, temperature, generator):
    """Writes an end over the last token of a response that was cut off: nobody drew it."""
    tokens, log_probs = drawn(model, prompts, max_new_tokens, temperature, generator)
    mask = until_the_end(tokens)
    tokens[:, -1] = torch.where(mask[:, -1], EOS, tokens[:, -1])
    return as_responses(tokens, log_probs, mask)


@breaks("generate")
@torch.no_grad()
def log_probs_at_temperature_one(model, prompts, *, max_new_tokens, temperature, generator):
    """Draws at a temperature and writes down the log-probability at 1."""
    tokens, _ = drawn(model, prompts, max_new_tokens, temperature, generator)
    mask = until_the_end(tokens)
    sequence, whole = join(prompts, tokens, mask)
    log_probs, _ = scored(model(sequence, whole), prompts, tokens, mask, 1.0)
    return as_responses(tokens, log_probs, mask)


@breaks("generate")
@torch.no_grad()
def new_tokens_share_a_position(model, prompts, *, max_new_tokens, temperature, generator):
    """Gives every new token the position of the prompt's last one, as a cache easily does."""
    longest = prompts.mask.sum(-1, keepdim=True) - 1

    def places_of(mask):
        return torch.minimum((mask.cumsum(-1) - 1).clamp(min=0), longest)

    tokens, log_probs = drawn(model, prompts, max_new_tokens, temperature, generator, places_of)
    return as_responses(tokens, log_probs, until_the_end(tokens))


@breaks("generate")
@torch.no_grad()
def most_likely_taken(model, prompts, *, max_new_tokens, temperature, generator):
    """Takes the most likely token each time: nothing is explored."""
    tokens, log_probs = drawn(model, prompts, max_new_tokens, 1e-3, generator)
    return as_responses(tokens, log_probs, until_the_end(tokens))
