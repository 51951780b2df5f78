"""Draw responses token by token, and score them again in one pass.

collect    generate: one token a step, keys and values of earlier ones cached
squeeze    score_responses: all tokens at once, the same numbers to 10⁻⁵
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor
from torch.nn import functional

from ppo_lessons.shapes import at_hand
from ppo_lessons.tokens.language import (
    EOS,
    PAD,
    Prompts,
    check_left_padded,
    check_responses,
    check_tokens,
)
from ppo_lessons.tokens.model import (
    Cache,
    LanguageModel,
    attention_mask,
    positions,
    scaled_log_probs,
)

Choose = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Responses:
    """B responses, right-padded, as they were drawn.

    Attributes:
        tokens: ids; PAD in padding.
        mask: true at the tokens that were drawn, the end of sequence included.
        log_probs: log π(a_t | s_t) when the token was drawn (nats); 0 in padding.
    """

    tokens: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    log_probs: Float[Tensor, "B T"]

    def __len__(self) -> int:
        """The number of responses, B."""
        return len(self.tokens)

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """Tokens of each response, its end included."""
        return self.mask.sum(dim=-1)

    @property
    def finished(self) -> Bool[Tensor, " B"]:
        """Whether each response came to its end of sequence, and was not cut off."""
        return ((self.tokens == EOS) & self.mask).any(dim=-1)

    def rows(self, indices: Int[Tensor, " M"]) -> "Responses":
        """Take some responses, in that order."""
        return Responses(self.tokens[indices], self.mask[indices], self.log_probs[indices])


def generate(
    model: LanguageModel,
    prompts: Prompts,
    *,
    max_new_tokens: int,
    temperature: int | float,
    generator: Generator,
) -> Responses:
    """Draw a response to each prompt: token by token, until its end or max_new_tokens.

    Args:
        model: the policy.
        prompts: left-padded, on the model's device.
        max_new_tokens: T (tokens).
        temperature: 1 draws from the model's own distribution.
        generator: the only source of randomness.

    Returns:
        The responses, all T columns wide, with the log-probability of each token as drawn.

    Raises:
        ValueError: if temperature is not above 0, T is below 1, prompts are padded on the right,
            or prompt and response do not fit into the context.
    """
    choose = partial(draw_tokens, temperature=temperature, generator=generator)
    return decode(model, prompts, choose, max_new_tokens=max_new_tokens)


def generate_greedy(model: LanguageModel, prompts: Prompts, *, max_new_tokens: int) -> Responses:
    """Take the most likely token each time; the log-probabilities are those at temperature 1.

    Args:
        model: the policy.
        prompts: left-padded, on the model's device.
        max_new_tokens: T (tokens).

    Returns:
        The responses; the same for the same prompts.

    Raises:
        ValueError: as `generate`.
    """
    return decode(model, prompts, most_likely_tokens, max_new_tokens=max_new_tokens)


def draw_tokens(
    logits: Float[Tensor, "B V"], *, temperature: int | float, generator: Generator
) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"]]:
    """Draw one token from each softmax(logits / temperature).

    Args:
        logits: of the next token.
        temperature: above 0.
        generator: the only source of randomness.

    Returns:
        The tokens, and the log-probability of each under what it was drawn from (nats).

    Raises:
        ValueError: if temperature is not above 0.
    """
    log_probs = scaled_log_probs(logits, temperature=temperature)
    # a race of exponential clocks, as in CategoricalPolicy
    clocks = torch.empty_like(log_probs).exponential_(generator=generator)
    tokens = (log_probs - clocks.log()).argmax(dim=-1)
    return tokens, log_probs.gather(-1, tokens[:, None]).squeeze(-1)


def draw_top_tokens(
    logits: Float[Tensor, "B V"], *, count: int, generator: Generator
) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"]]:
    """Draw among the most likely tokens only, and say the log-probability of the whole softmax.

    That is how a sampler with top-k and a trainer without it disagree: the true log-probability is
    larger by −log(mass of the tokens that were kept).

    Args:
        logits: of the next token.
        count: k, how many tokens may be drawn.
        generator: the only source of randomness.

    Returns:
        The tokens, and their log-probability under the whole softmax (nats).

    Raises:
        ValueError: if count is not from 1 to V.
    """
    if not 1 <= count <= logits.shape[-1]:
        raise ValueError(
            f"count is {count}; expected 1 to {logits.shape[-1]} tokens. Choose one of these."
        )
    log_probs = scaled_log_probs(logits)
    kept, ids = log_probs.topk(count, dim=-1)
    clocks = torch.empty_like(kept).exponential_(generator=generator)
    tokens = ids.gather(-1, (kept - clocks.log()).argmax(dim=-1, keepdim=True))
    return tokens.squeeze(-1), log_probs.gather(-1, tokens).squeeze(-1)


def most_likely_tokens(
    logits: Float[Tensor, "B V"],
) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"]]:
    """Give the most likely token of each row.

    Args:
        logits: of the next token.

    Returns:
        The tokens, and the log-probability of each at temperature 1 (nats).
    """
    log_probs, tokens = scaled_log_probs(logits).max(dim=-1)
    return tokens, log_probs


@torch.no_grad()
def decode(
    model: LanguageModel, prompts: Prompts, choose: Choose, *, max_new_tokens: int
) -> Responses:
    """Build responses with whatever chooses the next token.

    Args:
        model: the policy.
        prompts: left-padded, on the model's device.
        choose: logits [B, V] → tokens [B] and log-probabilities [B].
        max_new_tokens: T (tokens).

    Returns:
        The responses, all T columns wide.

    Raises:
        ValueError: if T is below 1, prompts are padded on the right, or prompt and response do not
            fit into the context.
    """
    check_prompts(model, prompts, max_new_tokens)
    num_rows, prompt_length = prompts.tokens.shape
    device = prompts.tokens.device
    places = positions(prompts.mask)
    cache = Cache(model.config, num_rows, prompt_length + max_new_tokens, model.head.weight)
    tokens = torch.full((num_rows, max_new_tokens), PAD, device=device)
    mask = torch.zeros(num_rows, max_new_tokens, dtype=torch.bool, device=device)
    log_probs = torch.zeros(num_rows, max_new_tokens, device=device)

    # the whole prompt once; then one column a step
    column, place = prompts.tokens.masked_fill(~prompts.mask, PAD), places
    visible = attention_mask(prompts.mask)
    running = torch.ones(num_rows, dtype=torch.bool, device=device)
    keys = torch.cat([prompts.mask, torch.ones_like(mask)], dim=1)
    for t in range(max_new_tokens):
        last = model.stream(column, place, visible, cache)[:, -1]
        cache.length += column.shape[1]
        chosen, chosen_log_probs = choose(model.head(last))
        tokens[:, t] = chosen.masked_fill(~running, PAD)
        log_probs[:, t] = chosen_log_probs.masked_fill(~running, 0)
        mask[:, t] = running
        running = running & (chosen != EOS)
        if at_hand(running) and not running.any():
            break  # on an accelerator this look would wait for it
        column, place = tokens[:, t : t + 1], places[:, -1:] + t + 1
        visible = keys[:, None, None, : prompt_length + t + 1]
    return Responses(tokens, mask, log_probs)


def check_prompts(model: LanguageModel, prompts: Prompts, max_new_tokens: int) -> None:
    """Require left-padded prompts that leave room for the response.

    Raises:
        ValueError: otherwise.
    """
    if max_new_tokens < 1:
        raise ValueError(
            f"max_new_tokens is {max_new_tokens}; expected at least 1. Ask for one token or more."
        )
    check_tokens(prompts.tokens, prompts.mask, model.config.vocabulary_size)
    check_left_padded(prompts)
    most, room = prompts.tokens.shape[1], model.config.context_length - max_new_tokens
    if at_hand(prompts.mask) or most > room:  # on an accelerator only if padding may save it
        most = int(prompts.mask.sum(dim=1).max())
    if most > room:
        raise ValueError(
            f"the longest prompt has {most} tokens, and {max_new_tokens} new ones may follow; "
            f"expected at most {model.config.context_length} together, the model's context. "
            "Shorten the prompt, or ask for fewer new tokens."
        )


def join(
    prompts: Prompts, tokens: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """Put prompt and response side by side, L = P + T; what stands in padding becomes PAD.

    Args:
        prompts: left-padded.
        tokens: ids of the responses.
        mask: true at the tokens of the responses, the end included.

    Returns:
        Tokens and mask of the whole sequence.

    Raises:
        ValueError: if the shapes do not fit, a prompt ends with padding, or a response is empty.
        TypeError: if mask is not boolean.
    """
    check_responses(prompts, tokens, mask)
    check_left_padded(prompts)
    if at_hand(mask) and not mask.any(dim=1).all():
        raise ValueError(
            f"response {int((~mask.any(dim=1)).nonzero()[0])} has no token that counts; expected "
            "at least one, its end. Leave empty responses out, or keep the end in the mask."
        )
    whole = torch.cat([prompts.mask, mask], dim=1)
    return torch.cat([prompts.tokens, tokens], dim=1).masked_fill(~whole, PAD), whole


def score_responses(
    model: LanguageModel,
    prompts: Prompts,
    tokens: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    temperature: int | float = 1.0,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Give log-probability and entropy of every token of the responses, in one pass.

    Args:
        model: the policy, or the reference.
        prompts: left-padded.
        tokens: ids of the responses.
        mask: true at the tokens of the responses, the end included.
        temperature: the one at which they were drawn.

    Returns:
        log π(a_t | s_t) and the entropy of π(· | s_t), both in nats and 0 in padding.

    Raises:
        ValueError: if shapes do not fit, a row is longer than the context, an id is out of range,
            or temperature is not above 0.
        TypeError: if mask is not boolean.
    """
    sequence, whole = join(prompts, tokens, mask)
    prompt_length, num_tokens = prompts.tokens.shape[1], tokens.shape[1]
    # columns that are padding in every row are left out, and so is the place after the last token
    used = int(mask.any(dim=0).nonzero().max()) + 1 if at_hand(mask) else num_tokens
    places = slice(0, prompt_length + used - 1)
    states = model.hidden(sequence[:, places], whole[:, places])[:, prompt_length - 1 :]
    table = scaled_log_probs(model.head(states), temperature=temperature)
    chosen = sequence[:, prompt_length : prompt_length + used]
    log_probs = table.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    entropies = -(table.exp() * table).sum(dim=-1)
    unused = (0, num_tokens - used)
    log_probs, entropies = (functional.pad(each, unused) for each in (log_probs, entropies))
    return log_probs.masked_fill(~mask, 0), entropies.masked_fill(~mask, 0)
