"""Answers to the exercises of lesson 13."""

import math

import numpy as np
import torch
from torch.nn import functional

from answers import new_catalogue
from ppo_lessons import shapes, tokens

EXERCISES = (
    "positions",
    "token_log_probs",
    "response_mask",
    "actions_of_turns",
    "masked_mean",
    "ratios_by_hand",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
RIGHT["positions"]["package"] = tokens.positions
RIGHT["token_log_probs"]["package"] = tokens.token_log_probs
RIGHT["response_mask"]["package"] = tokens.response_mask
RIGHT["masked_mean"]["package"] = shapes.masked_mean


# --- positions -----------------------------------------------------------------------------


@passes("positions")
def counted_before_each(mask):
    return mask.long().cumsum(-1) - mask.long()


@passes("positions")
def row_by_row(mask):
    found = torch.zeros(mask.shape, dtype=torch.int64)
    for row in range(len(mask)):
        seen = 0
        for place in range(mask.shape[1]):
            if mask[row, place]:
                found[row, place] = seen
                seen += 1
    return found


@passes("positions")
def one_in_the_padding(mask):
    """As many libraries do it."""
    found = mask.long().cumsum(-1) - 1
    found.masked_fill_(mask == 0, 1)
    return found


@passes("positions")
def by_a_triangle(mask):
    length = mask.shape[1]
    before = torch.ones(length, length).triu(1)
    return (mask.float() @ before).round().long().clamp(max=length - 1)


@passes("positions")
def with_numpy(mask):
    found = np.maximum(np.cumsum(mask.numpy(), axis=1) - 1, 0)
    return torch.from_numpy(found.astype(np.int32))


@breaks("positions")
def counted_from_the_left_edge(mask):
    return torch.arange(mask.shape[1]).expand(mask.shape).clone()


@breaks("positions")
def starts_at_one(mask):
    return mask.cumsum(-1)


@breaks("positions")
def negative_in_the_padding(mask):
    return mask.cumsum(-1) - 1


@breaks("positions")
def padding_counted(mask):
    return (~mask).cumsum(-1)


@breaks("positions")
def counted_from_the_end(mask):
    return (mask.flip(-1).cumsum(-1) - 1).clamp(min=0).flip(-1)


@breaks("positions")
def first_row_for_all(mask):
    front = int(mask[0].long().argmax())
    return (torch.arange(mask.shape[1]) - front).clamp(min=0).expand(mask.shape).clone()


@breaks("positions")
def least_padding_for_all(mask):
    front = int(mask.long().argmax(-1).min())
    return (torch.arange(mask.shape[1]) - front).clamp(min=0).expand(mask.shape).clone()


@breaks("positions")
def counted_along_the_batch(mask):
    return (mask.cumsum(0) - 1).clamp(min=0)


@breaks("positions")
def holes_counted(mask):
    front = mask.long().argmax(-1, keepdim=True)
    return (torch.arange(mask.shape[1]) - front).clamp(min=0)


@breaks("positions")
def all_at_zero(mask):
    return torch.zeros_like(mask, dtype=torch.int64)


@breaks("positions")
def counted_in_twos(mask):
    return (2 * (mask.cumsum(-1) - 1)).clamp(min=0)


@breaks("positions")
def starts_anew_behind_holes(mask):
    found = row_by_row(mask)
    for row in range(len(mask)):
        seen = 0
        for place in range(mask.shape[1]):
            seen = seen + 1 if mask[row, place] else 0
            found[row, place] = max(seen - 1, 0)
    return found


# --- log-probabilities of tokens -----------------------------------------------------------


@passes("token_log_probs")
def with_cross_entropy(logits, tokens, *, prompt_length, temperature):
    places = logits[:, prompt_length - 1 : -1] / temperature
    losses = functional.cross_entropy(places.flatten(0, 1), tokens.flatten(), reduction="none")
    return -losses.view(tokens.shape)


@passes("token_log_probs")
def gathered(logits, tokens, *, prompt_length, temperature):
    start = prompt_length - 1
    places = logits[:, start : start + tokens.shape[1]].div(temperature)
    chosen = places.gather(-1, tokens[..., None])[..., 0]
    return chosen - places.logsumexp(-1)


@passes("token_log_probs")
def whole_row_first(logits, tokens, prompt_length, temperature=1.0):
    table = torch.log_softmax(logits / temperature, -1)
    one_hot = functional.one_hot(tokens, logits.shape[-1]).to(table.dtype)
    return (table[:, prompt_length - 1 : -1] * one_hot).sum(-1)


@passes("token_log_probs")
def with_a_distribution(logits, tokens, *, prompt_length, temperature):
    places = logits[:, prompt_length - 1 : -1] / temperature
    return torch.distributions.Categorical(logits=places).log_prob(tokens)


@passes("token_log_probs")
def token_by_token(logits, tokens, *, prompt_length, temperature):
    rows = []
    for row in range(len(tokens)):
        found = []
        for t, token in enumerate(tokens[row].tolist()):
            place = logits[row, prompt_length - 1 + t] / temperature
            found.append(place[token] - place.exp().sum().log())
        rows.append(torch.stack(found))
    return torch.stack(rows)


def scored(
    *,
    window=lambda logits, prompt, length: logits[:, prompt - 1 : prompt - 1 + length],
    heat=lambda places, temperature: (places / temperature).log_softmax(-1),
    choose=lambda table, tokens: table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1),
):
    """Right but for one thing."""

    def function(logits, tokens, *, prompt_length, temperature):
        places = window(logits, prompt_length, tokens.shape[1])
        return choose(heat(places, temperature), tokens)

    return function


def _picked(table, tokens):
    return table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def _too_early(logits, prompt, length):
    start = max(prompt - 2, 0)
    return logits[:, start : start + length]


WRONG["token_log_probs"] |= {
    "not_shifted": scored(window=lambda logits, prompt, length: logits[:, prompt:]),
    "shifted_twice": scored(window=_too_early),
    "prompt_length_ignored": scored(window=lambda logits, prompt, length: logits[:, :length]),
    "temperature_forgotten": scored(heat=lambda places, heat: places.log_softmax(-1)),
    "temperature_multiplied": scored(heat=lambda places, heat: (places * heat).log_softmax(-1)),
    "temperature_after_the_softmax": scored(
        heat=lambda places, heat: places.log_softmax(-1) / heat
    ),
    "not_normalised": scored(heat=lambda places, heat: places / heat),
    "probabilities": scored(heat=lambda places, heat: (places / heat).softmax(-1)),
    "likeliest_token": scored(choose=lambda table, tokens: table.max(-1).values),
    "normalised_over_places": scored(heat=lambda places, heat: (places / heat).log_softmax(1)),
    "normalised_over_rows": scored(heat=lambda places, heat: (places / heat).log_softmax(0)),
    "added_up_so_far": scored(choose=lambda table, tokens: _picked(table, tokens).cumsum(-1)),
    "tokens_of_the_next_place": scored(
        choose=lambda table, tokens: _picked(table, tokens.roll(-1, 1))
    ),
    "averaged_over_words": scored(choose=lambda table, tokens: table.mean(-1)),
}

# --- the mask of a response ----------------------------------------------------------------


@passes("response_mask")
def nothing_ended_before(tokens, *, eos):
    ends = (tokens == eos).long()
    return (ends.cumsum(-1) - ends) == 0


@passes("response_mask")
def by_lengths(tokens, *, eos):
    ends = tokens == eos
    first = ends.long().argmax(-1)
    last = torch.where(ends.any(-1), first, torch.full_like(first, tokens.shape[1] - 1))
    return torch.arange(tokens.shape[1]) <= last[:, None]


@passes("response_mask")
def row_by_row_until_eos(tokens, eos):
    found = torch.zeros(tokens.shape, dtype=torch.bool)
    for row, words in enumerate(tokens.tolist()):
        for place, word in enumerate(words):
            found[row, place] = True
            if word == eos:
                break
    return found


@passes("response_mask")
def by_a_running_product(tokens, *, eos):
    alive = (tokens != eos).long().cumprod(-1)
    first = torch.ones_like(alive[:, :1])
    return torch.cat([first, alive[:, :-1]], dim=-1).bool()


@passes("response_mask")
def the_prefix_and_eos(tokens, *, eos):
    ends = tokens == eos
    before = ends.cumsum(-1) == 0
    return before | (ends & (ends.cumsum(-1) == 1))


@breaks("response_mask")
def eos_left_out(tokens, *, eos):
    return (tokens == eos).cumsum(-1) == 0


@breaks("response_mask")
def one_too_many(tokens, *, eos):
    ends = (tokens == eos).long().cumsum(-1)
    return functional.pad(ends, (2, 0))[:, :-2] == 0


@breaks("response_mask")
def everything_but_eos(tokens, *, eos):
    return tokens != eos


@breaks("response_mask")
def everything_but_padding(tokens, *, eos):
    return tokens != 0


@breaks("response_mask")
def up_to_the_last_eos(tokens, *, eos):
    ends = tokens == eos
    behind = ends.flip(-1).cumsum(-1).flip(-1) > 0
    return behind | ~ends.any(-1, keepdim=True)


@breaks("response_mask")
def all_of_it(tokens, *, eos):
    return torch.ones_like(tokens, dtype=torch.bool)


@breaks("response_mask")
def nothing_without_an_end(tokens, *, eos):
    return nothing_ended_before(tokens, eos=eos) & (tokens == eos).any(-1, keepdim=True)


@breaks("response_mask")
def first_token_without_an_end(tokens, *, eos):
    first = (tokens == eos).long().argmax(-1)
    return torch.arange(tokens.shape[1]) <= first[:, None]


@breaks("response_mask")
def longest_for_all(tokens, *, eos):
    return nothing_ended_before(tokens, eos=eos).any(0).expand(tokens.shape).clone()


@breaks("response_mask")
def first_row_for_all_rows(tokens, *, eos):
    return nothing_ended_before(tokens, eos=eos)[:1].expand(tokens.shape).clone()


@breaks("response_mask")
def eos_only(tokens, *, eos):
    return tokens == eos


@breaks("response_mask")
def turned(tokens, *, eos):
    return ~nothing_ended_before(tokens, eos=eos)


@breaks("response_mask")
def first_token_left_out(tokens, *, eos):
    found = nothing_ended_before(tokens, eos=eos)
    found[:, 0] = False
    return found


@breaks("response_mask")
def behind_the_end(tokens, *, eos):
    return (tokens == eos).cumsum(-1) > 0


# --- several turns -------------------------------------------------------------------------


@passes("actions_of_turns")
def turn_by_turn(lengths, own, *, total_length):
    found = torch.zeros(len(lengths), total_length, dtype=torch.bool)
    for row in range(len(lengths)):
        place = total_length - int(lengths[row].sum())
        for length, mine in zip(lengths[row].tolist(), own[row].tolist(), strict=True):
            found[row, place : place + length] = mine
            place += length
    return found


@passes("actions_of_turns")
def by_repeating(lengths, own, *, total_length):
    rows = []
    for sizes, mine in zip(lengths, own, strict=True):
        written = mine.repeat_interleave(sizes)
        rows.append(functional.pad(written, (total_length - len(written), 0), value=False))
    return torch.stack(rows)


@passes("actions_of_turns")
def by_comparing_places(lengths, own, total_length):
    ends = total_length - lengths.sum(-1, keepdim=True) + lengths.cumsum(-1)
    starts = ends - lengths
    places = torch.arange(total_length)
    inside = (places >= starts[..., None]) & (places < ends[..., None])
    return (inside & own[..., None]).any(1)


@passes("actions_of_turns")
def by_looking_up_the_turn(lengths, own, *, total_length):
    padding = total_length - lengths.sum(-1, keepdim=True)
    borders = torch.cat([padding, lengths], dim=-1).cumsum(-1)
    places = torch.arange(total_length).expand(len(lengths), -1).contiguous()
    turn = torch.searchsorted(borders.contiguous(), places, right=True)
    with_padding = functional.pad(own, (1, 0), value=False)
    return with_padding.gather(1, turn)


def turns(
    *,
    mine=lambda own: own,
    start=lambda lengths, row, total: total - int(lengths[row].sum()),
    span=lambda place, length: (place, place + length),
    sizes=lambda lengths, row: lengths[row].tolist(),
    after=lambda found, lengths: found,
):
    """Right but for one thing."""

    def function(lengths, own, *, total_length):
        found = torch.zeros(len(lengths), total_length, dtype=torch.bool)
        own = mine(own)
        for row in range(len(lengths)):
            place = start(lengths, row, total_length)
            for turn, length in enumerate(sizes(lengths, row)):
                if own[row, turn] and length:
                    first, last = span(place, length)
                    found[row, max(first, 0) : max(last, 0)] = True
                place += length
        return after(found, lengths)

    return function


def _only(which):
    def choose(own):
        kept = torch.zeros_like(own)
        for row in range(len(own)):
            places = own[row].nonzero().flatten().tolist()
            if places:
                kept[row, places[which]] = True
        return kept

    return choose


def _not_the_first(own):
    kept = torch.ones_like(own)
    kept[:, 0] = False
    return kept


def _every_other(own):
    return (torch.arange(own.shape[1]) % 2 == 1).expand(own.shape)


def _with_padding(found, lengths):
    places = torch.arange(found.shape[1])
    return found | (places < found.shape[1] - lengths.sum(-1, keepdim=True))


def _to_the_left(found, lengths):
    return functional.pad(found, (0, 1), value=False)[:, 1:]


WRONG["actions_of_turns"] |= {
    "everything_after_the_prompt": turns(mine=_not_the_first),
    "last_turn_only": turns(mine=_only(-1)),
    "first_turn_only": turns(mine=_only(0)),
    "all_real_tokens": turns(mine=torch.ones_like),
    "the_others": turns(mine=lambda own: ~own),
    "padded_behind": turns(start=lambda lengths, row, total: 0),
    "first_token_of_each_turn_left_out": turns(span=lambda at, length: (at + 1, at + length)),
    "last_token_of_each_turn_left_out": turns(span=lambda at, length: (at, at + length - 1)),
    "one_too_many_in_each_turn": turns(span=lambda at, length: (at, at + length + 1)),
    "every_other_turn": turns(mine=_every_other),
    "turns_of_the_first_row": turns(
        sizes=lambda lengths, row: lengths[0].tolist(),
        start=lambda lengths, row, total: total - int(lengths[0].sum()),
    ),
    "shifted_to_the_left": turns(after=_to_the_left),
    "padding_counts": turns(after=_with_padding),
}

# --- a mean over tokens --------------------------------------------------------------------


@passes("masked_mean")
def chosen_by_the_mask(values, mask):
    kept = values[mask]
    return kept.mean() if kept.numel() else values.new_zeros(())


@passes("masked_mean")
def where_and_sum(values, mask):
    kept = torch.where(mask, values, torch.zeros_like(values))
    return kept.sum() / mask.sum().clamp(min=1)


@passes("masked_mean")
def added_one_by_one(values, mask):
    total, count = values.new_zeros(()), 0
    for row in range(len(values)):
        for place in range(values.shape[1]):
            if mask[row, place]:
                total = total + values[row, place]
                count += 1
    return total / max(count, 1)


@passes("masked_mean")
def filled_in_place_on_a_copy(values, mask, dim=None):
    kept = values.clone()
    kept[~mask] = 0.0
    return kept.sum() / max(int(mask.sum()), 1)


def averaged(
    *,
    kept=lambda values, mask: values.masked_fill(~mask, 0),
    result=lambda kept, mask: kept.sum() / mask.sum().clamp(min=1),
):
    """Right but for one thing."""
    return lambda values, mask: result(kept(values, mask), mask)


def _row_means(kept, mask):
    rows = kept.sum(-1) / mask.sum(-1).clamp(min=1)
    filled = mask.any(-1)
    return (rows * filled).sum() / filled.sum().clamp(min=1)


def _without_the_last_mean(values, mask):
    last = mask & (mask.flip(-1).cumsum(-1).flip(-1) == 1)
    kept = mask & ~last
    return values.masked_fill(~kept, 0).sum() / kept.sum().clamp(min=1)


def _median(values, mask):
    kept = values[mask]
    return kept.median() if kept.numel() else values.new_zeros(())


WRONG["masked_mean"] |= {
    "divided_by_all": averaged(result=lambda kept, mask: kept.mean()),
    "padding_counts_too": averaged(
        kept=lambda values, mask: values, result=lambda kept, mask: kept.mean()
    ),
    "mean_of_row_means": averaged(result=_row_means),
    "multiplied_by_the_mask": averaged(kept=lambda values, mask: values * mask),
    "nothing_over_nothing": averaged(result=lambda kept, mask: kept.sum() / mask.sum()),
    "only_added_up": averaged(result=lambda kept, mask: kept.sum()),
    "divided_by_rows": averaged(result=lambda kept, mask: kept.sum() / len(kept)),
    "divided_by_the_longest": averaged(
        result=lambda kept, mask: kept.sum() / (len(kept) * mask.sum(-1).max().clamp(min=1))
    ),
    "mask_turned": lambda values, mask: averaged()(values, ~mask),
    "last_token_left_out": _without_the_last_mean,
    "one_added_to_the_count": averaged(result=lambda kept, mask: kept.sum() / (mask.sum() + 1)),
    "median_of_tokens": _median,
}

# --- numbers by hand -----------------------------------------------------------------------

PLAIN = (0.4, 0.4, 0.2)
SQUARES = [each**2 for each in PLAIN]
SHARP = [each / sum(SQUARES) for each in SQUARES]  # logits doubled, then a softmax
RATIOS = [one / other for one, other in zip(PLAIN, SHARP, strict=True)]
KEPT = PLAIN[0] + PLAIN[1]
COUNTED, PLACES, NATS = 3 + 5 + 10 + 2, 40, 1.4

SOLVED = {
    "a": 7 - 1 + 2,
    "b": SHARP[0],
    "c": RATIOS[0],
    "d": RATIOS[2],
    "e": math.fsum(a * b for a, b in zip(SHARP, RATIOS, strict=True)),
    "f": KEPT,
    "g": math.log(KEPT),
    "h": NATS * COUNTED / PLACES,
}
RIGHT["ratios_by_hand"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {letter: round(number, 3) for letter, number in SOLVED.items()},
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
ROOTS = [each**0.5 for each in PLAIN]
FLAT = [each / sum(ROOTS) for each in ROOTS]
WRONG["ratios_by_hand"] = {
    "logits_of_the_token_itself": SOLVED | {"a": 9},
    "counted_from_one": SOLVED | {"a": 10},
    "temperature_as_a_factor": SOLVED
    | {"b": FLAT[0], "c": PLAIN[0] / FLAT[0], "d": PLAIN[2] / FLAT[2]},
    "probability_halved": SOLVED | {"b": PLAIN[0] / 2},
    "ratio_turned": SOLVED | {"c": 1 / RATIOS[0], "d": 1 / RATIOS[2]},
    "not_normalised_anew": SOLVED | {"b": SQUARES[0], "c": 1 / PLAIN[0], "d": 1 / PLAIN[2]},
    "mean_of_three_ratios": SOLVED | {"e": sum(RATIOS) / 3},
    "all_ratios_one": SOLVED | {"f": 1.0, "g": 0.0},
    "kept_mass_turned": SOLVED | {"f": 1 / KEPT, "g": -math.log(KEPT)},
    "logarithm_of_ten": SOLVED | {"g": math.log10(KEPT)},
    "sign_of_the_logarithm": SOLVED | {"g": -math.log(KEPT)},
    "mean_over_tokens_only": SOLVED | {"h": NATS},
    "lengths_averaged": SOLVED | {"h": NATS * (1 - COUNTED / PLACES / 2)},
}


# --- slow definitions ----------------------------------------------------------------------


def slow_positions(mask):
    return [
        [sum(row[:place]) if real else 0 for place, real in enumerate(row)]
        for row in [[int(each) for each in row] for row in mask]
    ]


def slow_scores(logits, tokens, *, prompt_length, temperature):
    found = []
    for row, words in enumerate(tokens):
        numbers = []
        for t, word in enumerate(words):
            weights = [math.exp(z / temperature) for z in logits[row][prompt_length + t - 1]]
            numbers.append(math.log(weights[word] / math.fsum(weights)))
        found.append(numbers)
    return found


def slow_response_mask(tokens, *, eos):
    return [[eos not in row[:place] for place in range(len(row))] for row in tokens]


def slow_actions_of_turns(lengths, own, *, total_length):
    found = []
    for sizes, mine in zip(lengths, own, strict=True):
        row = []
        for length, written in zip(sizes, mine, strict=True):
            row += [written] * length
        found.append([False] * (total_length - len(row)) + row)
    return found


def slow_masked_mean(values, mask):
    kept = [
        value
        for row, counts in zip(values, mask, strict=True)
        for value, count in zip(row, counts, strict=True)
        if count
    ]
    return math.fsum(kept) / len(kept) if kept else 0.0


ORACLES = {
    "positions": slow_positions,
    "token_log_probs": slow_scores,
    "response_mask": slow_response_mask,
    "actions_of_turns": slow_actions_of_turns,
    "masked_mean": slow_masked_mean,
}
