"""A transformer small enough to read, and the four rules by which its numbers become a policy's.

    state s_t    the tokens before token t          action a_t    token t
    log π(a_t | s_t) = log softmax(logits at the place before token t / temperature)[token t]

Positions are counted from the mask, so that padding on the left moves nothing.
"""

import copy
import math
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from ppo_lessons.shapes import at_hand, check_bool, check_positive, check_same_shape, masked_mean
from ppo_lessons.tokens.language import (
    PAD,
    PROMPT_LENGTH,
    RESPONSE_LENGTH,
    VOCABULARY_SIZE,
    check_tokens,
)

INITIAL_STD = 0.3  # of embeddings; with 0.02 or 1 the reference takes twice as long to learn


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The sizes of a language model.

    Attributes:
        vocabulary_size: V (tokens).
        context_length: longest sequence without its padding (tokens).
        width: D, numbers that stand for one token between the blocks.
        num_layers: blocks.
        num_heads: parts into which attention cuts the width.
    """

    vocabulary_size: int = VOCABULARY_SIZE
    context_length: int = PROMPT_LENGTH + RESPONSE_LENGTH
    width: int = 64
    num_layers: int = 2
    num_heads: int = 4

    def __post_init__(self) -> None:
        """Require sizes above 0, and heads that cut the width evenly.

        Raises:
            ValueError: otherwise.
        """
        check_positive(**{name: float(size) for name, size in vars(self).items()})
        if self.width % self.num_heads:
            raise ValueError(
                f"width is {self.width} and num_heads {self.num_heads}; expected a width that the "
                "heads divide. Choose another of the two."
            )


def positions(mask: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """Number the real tokens of each row from 0 on; padding on the left gets 0.

        position_i = max(0, Σ_{j ≤ i} mask_j − 1)

    Args:
        mask: false in padding.

    Returns:
        The position of each token.

    Raises:
        TypeError: if mask is not boolean.
    """
    check_bool(mask=mask)
    return (mask.cumsum(dim=-1) - 1).clamp(min=0)


def attention_mask(mask: Bool[Tensor, "B L"]) -> Bool[Tensor, "B 1 L L"]:
    """Say who may look at whom: real tokens at or before one's own place, and oneself.

    A token of padding sees itself, since a softmax over nothing is NaN; nobody else sees it.

    Args:
        mask: false in padding.

    Returns:
        True where the token of the third axis may look at the token of the fourth.
    """
    length = mask.shape[-1]
    causal = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=mask.device)
    return ((causal & mask[:, None, :]) | itself)[:, None]


class Cache:
    """Keys and values of all tokens so far, so that a new token costs one column and not all.

    Args:
        config: the sizes of the model.
        batch_size: B.
        length: columns that will be written.
        like: a tensor whose device and dtype the cache takes.
    """

    def __init__(self, config: ModelConfig, batch_size: int, length: int, like: Tensor):
        size = config.width // config.num_heads
        shape = (config.num_layers, 2, batch_size, config.num_heads, length, size)
        self.stored = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.mask = torch.zeros(batch_size, length, dtype=torch.bool, device=like.device)
        self.length = 0

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new columns of a layer; give those of all columns so far."""
        start, stop = self.length, self.length + keys.shape[2]
        self.stored[layer, 0, :, :, start:stop] = keys
        self.stored[layer, 1, :, :, start:stop] = values
        return self.stored[layer, 0, :, :, :stop], self.stored[layer, 1, :, :, :stop]


class Block(nn.Module):
    """Attention and a small network, each reading a normalised copy of the stream it adds to.

    Args:
        config: the sizes.
        generator: the only source of randomness.
    """

    def __init__(self, config: ModelConfig, generator: Generator):
        super().__init__()
        width = config.width
        self.num_heads = config.num_heads
        self.before_attention = layer_norm(width)
        self.attention_in = _linear(width, 3 * width, generator)
        self.attention_out = _linear(width, width, generator)
        self.before_network = layer_norm(width)
        self.network_in = _linear(width, 4 * width, generator)
        self.network_out = _linear(4 * width, width, generator)

    def forward(
        self, stream: Tensor, visible: Tensor | None, cache: Cache | None = None, layer: int = 0
    ) -> Tensor:
        """Add what the block has to say to the stream [B, L, D]."""
        parts = self.attention_in(self.before_attention(stream))
        parts = parts.unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts.unbind(0)
        if cache is not None:
            keys, values = cache.write(layer, keys, values)
        seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=visible)
        stream = stream + self.attention_out(seen.transpose(1, 2).flatten(2))
        inner = functional.gelu(self.network_in(self.before_network(stream)), approximate="tanh")
        return stream + self.network_out(inner)


class LanguageModel(nn.Module):
    """A pre-norm transformer: tokens and mask to logits.

    Args:
        config: its sizes.
        generator: the only source of randomness; torch's global one is left alone.

    Source: Vaswani et al. 2017 (the blocks); Xiong et al. 2020 (normalising before them).
    """

    def __init__(self, config: ModelConfig, generator: Generator):
        super().__init__()
        self.config = config
        self.tokens = _embedding(config.vocabulary_size, config.width, generator)
        self.places = _embedding(config.context_length, config.width, generator)
        self.blocks = nn.ModuleList(Block(config, generator) for _ in range(config.num_layers))
        self.last_norm = layer_norm(config.width)
        self.head = _linear(config.width, config.vocabulary_size, generator)

    def hidden(
        self,
        tokens: Int[Tensor, "B L"],
        mask: Bool[Tensor, "B L"],
        *,
        position_ids: Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B L D"]:
        """Give what the model has understood at each place, from the tokens up to there.

        Args:
            tokens: ids; what stands in padding has no effect.
            mask: false in padding.
            position_ids: place of each token; counted from the mask when left out.

        Returns:
            One vector for each place, normalised.

        Raises:
            ValueError: if shapes differ, a row is all padding, a row has more real tokens than
                the context, or an id is out of range.
            TypeError: if a dtype is wrong.
        """
        check_tokens(tokens, mask, self.config.vocabulary_size)
        places = positions(mask) if position_ids is None else position_ids
        check_context(mask.shape[1], places, self.config.context_length)
        return self.stream(tokens.masked_fill(~mask, PAD), places, attention_mask(mask))

    def stream(
        self, tokens: Tensor, places: Tensor, visible: Tensor | None, cache: Cache | None = None
    ) -> Tensor:
        """Run the blocks; nothing is checked, padding must hold PAD."""
        stream = self.tokens(tokens) + self.places(places)
        for layer, block in enumerate(self.blocks):
            stream = block(stream, visible, cache, layer)
        return self.last_norm(stream)

    def forward(
        self,
        tokens: Int[Tensor, "B L"],
        mask: Bool[Tensor, "B L"],
        *,
        position_ids: Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B L V"]:
        """Give the logits of the token that follows each place; arguments as in `hidden`."""
        return self.head(self.hidden(tokens, mask, position_ids=position_ids))


class TokenCritic(nn.Module):
    """A critic over tokens: a copy of a language model with one number in place of its logits.

    The new head is 0, so the first V is 0 everywhere.

    Args:
        model: whose weights are copied; it is left alone.
    """

    def __init__(self, model: LanguageModel):
        super().__init__()
        self.body = copy.deepcopy(model)
        self.body.head = _linear(model.config.width, 1, None).to(model.head.weight.device)

    def forward(
        self, tokens: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L"]:
        """Give V after each place: the value before token t stands at the place before it."""
        return self.body(tokens, mask).squeeze(-1)


def before_each_token(
    numbers: Shaped[Tensor, "B L *rest"], *, prompt_length: int
) -> Shaped[Tensor, "B T *rest"]:
    """Take what stands one place before each token of the response: its state's logits, its V.

        out_t = numbers[P − 1 + t],   t = 0 … T − 1,   T = L − P

    Args:
        numbers: one for each of the P + T places of prompt and response.
        prompt_length: P (tokens).

    Returns:
        One for each of the T tokens of the response.

    Raises:
        ValueError: if there is no place before the response, or no response.
    """
    length = numbers.shape[1]
    if not 1 <= prompt_length < length:
        raise ValueError(
            f"prompt_length is {prompt_length} for {length} places; expected 1 to {length - 1}: "
            "the first token of a response is read off the place before it, and there must be one. "
            "Give the length of the padded prompt."
        )
    return numbers[:, prompt_length - 1 : -1]


def scaled_log_probs(
    logits: Float[Tensor, "*batch V"], *, temperature: int | float = 1.0
) -> Float[Tensor, "*batch V"]:
    """Give log softmax(logits / temperature), in float32 or better whatever the logits are in.

    Args:
        logits: any floating-point dtype.
        temperature: 1 is the model's own distribution; below 1 sharper, above 1 flatter.

    Returns:
        Log-probabilities of all tokens (nats).

    Raises:
        ValueError: if temperature is not above 0.
    """
    check_positive(temperature=float(temperature))
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return (wide / temperature).log_softmax(dim=-1)


def token_log_probs(
    logits: Float[Tensor, "B L V"],
    tokens: Int[Tensor, "B T"],
    *,
    prompt_length: int,
    temperature: int | float = 1.0,
) -> Float[Tensor, "B T"]:
    """Give log π(a_t | s_t) of each token of the response.

        log softmax(logits[P − 1 + t] / temperature)[token t]

    Args:
        logits: at all P + T places of prompt and response.
        tokens: ids of the response.
        prompt_length: P (tokens).
        temperature: the one at which the tokens were drawn.

    Returns:
        One for each token, in padding too (nats); the caller masks.

    Raises:
        ValueError: if logits have not P + T places, there is no token, an id is out of range, or
            temperature is not above 0.
    """
    check_places(logits, tokens, prompt_length)
    table = scaled_log_probs(
        before_each_token(logits, prompt_length=prompt_length), temperature=temperature
    )
    return table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def token_entropies(
    logits: Float[Tensor, "B L V"], *, prompt_length: int, temperature: int | float = 1.0
) -> Float[Tensor, "B T"]:
    """Give the entropy of the distribution that each token of the response is drawn from.

        H_t = −Σ_a π(a | s_t)·log π(a | s_t)

    Args:
        logits: at all P + T places of prompt and response.
        prompt_length: P (tokens).
        temperature: the one at which the tokens were drawn.

    Returns:
        One for each token, in padding too (nats); the caller masks.

    Raises:
        ValueError: if there is no response, or temperature is not above 0.
    """
    table = scaled_log_probs(
        before_each_token(logits, prompt_length=prompt_length), temperature=temperature
    )
    probabilities = table.exp()
    return -(probabilities * table.masked_fill(probabilities == 0, 0)).sum(dim=-1)


def response_mask(tokens: Int[Tensor, "B T"], *, eos: int) -> Bool[Tensor, "B T"]:
    """Mark what the policy chose: everything up to and including the first end of sequence.

    The end is an action too: a policy that gets no credit for it never learns to stop.

    Args:
        tokens: ids of the responses.
        eos: the id that ends a response.

    Returns:
        True at the tokens that count; all of a row without an end.

    Raises:
        ValueError: if tokens is not [B, T] with at least one column.
    """
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ValueError(
            f"tokens has shape {tuple(tokens.shape)}; expected (B, T) with at least one token. "
            "Give the responses, one a row."
        )
    is_end = tokens == eos
    return (is_end.cumsum(dim=-1) - is_end.long()) == 0


def masked_whiten(
    values: Float[Tensor, "*batch"], mask: Bool[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """Shift and scale what counts to mean 0 and variance 1; set the rest to 0.

        x ← (x − mean) / √(variance + 10⁻⁸),   variance = Σ mask·(x − mean)² / (Σ mask − 1)

    Args:
        values: one number for each token, any unit.
        mask: true where one counts.

    Returns:
        The whitened numbers (no unit).

    Raises:
        ValueError: if the shapes differ, or fewer than two numbers count.
        TypeError: if mask is not boolean.
    """
    check_same_shape(values=values, mask=mask)
    check_bool(mask=mask)
    count = mask.sum()
    if at_hand(values) and count < 2:
        raise ValueError(
            f"mask is true at {int(count)} places; expected at least two, since one number alone "
            "has no variance. Collect more tokens, or leave the whitening out."
        )
    centred = (values - masked_mean(values, mask)).masked_fill(~mask, 0)
    variance = centred.square().sum() / (count - 1)
    return centred * (variance + 1e-8).rsqrt()


def check_places(logits: Tensor, tokens: Tensor, prompt_length: int) -> None:
    """Require logits at the places of the prompt and of all tokens of the response.

    Raises:
        ValueError: otherwise.
    """
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ValueError(
            f"tokens has shape {tuple(tokens.shape)}; expected (B, T) with at least one token. "
            "Give the responses, one a row; an empty one has no log-probability."
        )
    wanted = (tokens.shape[0], prompt_length + tokens.shape[1])
    if tuple(logits.shape[:2]) != wanted:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}; expected {(*wanted, 'V')}: {prompt_length} "
            f"places of the prompt and {tokens.shape[1]} of the response. Run the model over both."
        )
    if at_hand(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < logits.shape[-1]:
        row, column = ((tokens < 0) | (tokens >= logits.shape[-1])).nonzero()[0].tolist()
        raise ValueError(
            f"tokens holds {int(tokens[row, column])} at index ({row}, {column}); expected ids "
            f"from 0 to {logits.shape[-1] - 1}, in padding too. Write the id of padding where the "
            "mask is false."
        )


def check_context(length: int, places: Tensor, context_length: int) -> None:
    """Require that the model knows every place.

    Raises:
        ValueError: if a row is longer than the context.
    """
    if length <= context_length and not at_hand(places):
        return
    longest = int(places.max()) + 1
    if longest > context_length:
        raise ValueError(
            f"the longest row has {longest} real tokens; expected at most {context_length}, the "
            "model's context. Shorten the prompt, ask for fewer new tokens, or make a model with a "
            "larger context_length."
        )


def layer_norm(width: int) -> nn.LayerNorm:
    """Make a layer that normalises the last axis: gain 1, shift 0."""
    return nn.LayerNorm(width)


def _linear(inputs: int, outputs: int, generator: Generator | None) -> nn.Linear:
    """Make a linear layer: weights normal with std 1/√inputs, bias 0; all 0 without generator."""
    layer = cast(nn.Linear, skip_init(nn.Linear, inputs, outputs, dtype=torch.float32))
    if generator is None:
        nn.init.zeros_(layer.weight)
    else:
        nn.init.normal_(layer.weight, std=1 / math.sqrt(inputs), generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def _embedding(count: int, width: int, generator: Generator) -> nn.Embedding:
    layer = cast(nn.Embedding, skip_init(nn.Embedding, count, width, dtype=torch.float32))
    nn.init.normal_(layer.weight, std=INITIAL_STD, generator=generator)
    return layer
