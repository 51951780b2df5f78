"""The sorting language: fifteen tokens, prompts that are digits, and a verifier that cannot err.

prompt    <bos> 3 1 2 =          left-padded to P tokens
answer    1 2 3 <eos>            right-padded to T tokens; up to two "!" may stand before <eos>
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from ppo_lessons.shapes import at_hand, check_bool, check_same_shape, check_tensor

VOCABULARY = ("<pad>", "<bos>", "<eos>", "=", "!", *"0123456789")
PAD, BOS, EOS, SEP, BANG = range(5)
ZERO = 5  # the token of digit d is ZERO + d
DIGITS = tuple(range(ZERO, ZERO + 10))
VOCABULARY_SIZE = len(VOCABULARY)

MIN_DIGITS, MAX_DIGITS = 3, 5
PROMPT_LENGTH = MAX_DIGITS + 2
RESPONSE_LENGTH = 10
MAX_BANGS = 2

# Which of ten buckets belong to which split: no answer of one is an answer of another.
SPLITS = {"train": range(0, 8), "gate": range(8, 9), "release": range(9, 10)}


@dataclass(frozen=True)
class Prompts:
    """B prompts, left-padded, so that every next token is drawn in the same column.

    Attributes:
        tokens: ids; what stands in padding has no meaning.
        mask: false in padding.
    """

    tokens: Int[Tensor, "B P"]
    mask: Bool[Tensor, "B P"]

    def __len__(self) -> int:
        """The number of prompts, B."""
        return len(self.tokens)

    @property
    def digits(self) -> list[tuple[int, ...]]:
        """The digits of each prompt, in the order in which they stand there."""
        rows = zip(self.tokens.tolist(), self.mask.tolist(), strict=True)
        return [
            tuple(token - ZERO for token, real in zip(*row, strict=True) if real and token >= ZERO)
            for row in rows
        ]

    def rows(self, indices: Int[Tensor, " M"]) -> "Prompts":
        """Take some prompts, in that order; one may come several times."""
        return Prompts(self.tokens[indices], self.mask[indices])

    def repeated(self, times: int) -> "Prompts":
        """Each prompt so many times in a row: groups, as GRPO wants them."""
        return Prompts(
            self.tokens.repeat_interleave(times, 0), self.mask.repeat_interleave(times, 0)
        )

    def to(self, device: str | torch.device) -> "Prompts":
        """The same prompts on a device."""
        return Prompts(self.tokens.to(device), self.mask.to(device))


def encode_prompts(
    digits: Sequence[Sequence[int]], *, prompt_length: int = PROMPT_LENGTH
) -> Prompts:
    """Write digits as prompts: padding, <bos>, the digits, "=".

    Args:
        digits: one sequence of digits for each prompt.
        prompt_length: P (tokens).

    Returns:
        The prompts.

    Raises:
        ValueError: if there is no prompt, one has no digit or too many, or a digit is none.
    """
    if len(digits) == 0:
        raise ValueError("digits is empty; expected at least one prompt. Give [[3, 1, 2]].")
    tokens = torch.full((len(digits), prompt_length), PAD)
    for row, each in enumerate(digits):
        if not 0 < len(each) <= prompt_length - 2:
            raise ValueError(
                f"prompt {row} has {len(each)} digits; expected 1 to {prompt_length - 2}, since "
                f"<bos> and '=' take two of prompt_length={prompt_length} tokens. Give fewer "
                "digits, or a larger prompt_length."
            )
        if not all(0 <= digit <= 9 and digit == int(digit) for digit in each):
            raise ValueError(
                f"prompt {row} is {list(each)}; expected digits from 0 to 9. Split larger numbers "
                "into digits."
            )
        ids = [BOS, *(ZERO + digit for digit in each), SEP]
        tokens[row, prompt_length - len(ids) :] = torch.tensor(ids)
    lengths = torch.tensor([len(each) + 2 for each in digits])
    return Prompts(tokens, left_padded(lengths, prompt_length))


def check_left_padded(prompts: Prompts) -> None:
    """Require a real token in the last column of each prompt; an accelerator is not asked.

    Raises:
        ValueError: with the first prompt that ends with padding.
    """
    if at_hand(prompts.mask) and not prompts.mask[:, -1].all():
        row = int((~prompts.mask[:, -1]).nonzero()[0])
        raise ValueError(
            f"prompt {row} ends with padding; expected padding on the left, since the next token "
            "is read off the last column. Move the padding to the front of each row."
        )


def left_padded(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B L"]:
    """The mask of rows whose last so many columns are real."""
    return torch.arange(width, device=lengths.device) >= width - lengths[:, None]


def draw_prompts(
    count: int,
    *,
    generator: Generator,
    split: str = "train",
    prompt_length: int = PROMPT_LENGTH,
) -> Prompts:
    """Draw prompts of three to five digits, all lengths equally often, from one split.

    Args:
        count: B.
        generator: the only source of randomness; the prompts live on its device.
        split: "train", "gate" (for looking while training) or "release" (for the last word).
        prompt_length: P (tokens).

    Returns:
        The prompts. One may come twice.

    Raises:
        ValueError: if count is below 1, or there is no such split.
    """
    if count < 1:
        raise ValueError(f"count is {count}; expected at least 1 prompt. Ask for more.")
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}; expected one of {', '.join(SPLITS)}. Choose one.")
    buckets, device = SPLITS[split], generator.device
    tries = 64 + 13 * count // len(buckets)  # 10 / buckets are needed on average
    found: list[Tensor] = []
    while sum(len(rows) for rows in found) < count:
        digits = torch.randint(10, (tries, MAX_DIGITS), generator=generator, device=device)
        lengths = torch.randint(
            MIN_DIGITS, MAX_DIGITS + 1, (tries,), generator=generator, device=device
        )
        unused = torch.arange(MAX_DIGITS, device=device) >= lengths[:, None]
        digits = digits.masked_fill(unused, -1)
        drawn = bucket(digits)
        found.append(digits[(drawn >= buckets.start) & (drawn < buckets.stop)])
    digits = torch.cat(found)[:count]
    return _as_prompts(digits, prompt_length)


def _as_prompts(digits: Int[Tensor, "B K"], prompt_length: int) -> Prompts:
    """Write rows of digits, −1 behind them, as prompts; the plain twin is `encode_prompts`."""
    count, most = digits.shape
    lengths = (digits >= 0).sum(-1)
    tokens = digits.new_full((count, prompt_length + most), PAD)
    starts = (prompt_length - 2 - lengths)[:, None]
    columns = torch.arange(most, device=digits.device)
    # what lies behind the last digit goes beyond the last column, and is cut off
    places = torch.where(digits >= 0, starts + 1 + columns, prompt_length + columns)
    tokens.scatter_(1, places, digits + ZERO)
    tokens = tokens[:, :prompt_length]
    tokens.scatter_(1, starts, BOS)
    tokens[:, -1] = SEP
    return Prompts(tokens.contiguous(), left_padded(lengths + 2, prompt_length))


def bucket(digits: Int[Tensor, "B K"]) -> Int[Tensor, " B"]:
    """Give the bucket, 0 to 9, of each row of digits; their order does not matter.

    Two prompts with the same answer share a bucket, so no held-out answer was ever trained on.

    Args:
        digits: 0 to 9, and −1 where a row has no more.

    Returns:
        The bucket: a multiplicative hash of the sorted digits, the same on every machine.
    """
    ordered = digits.sort(dim=-1, descending=True).values + 1
    number = torch.zeros_like(ordered[:, 0])
    for column in ordered.unbind(-1):
        number = number * 11 + column
    return (number * 2654435761 % 2**32 >> 16) % 10


def is_correct(
    prompts: Prompts, responses: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Bool[Tensor, " B"]:
    """Verify answers: the digits in ascending order, at most two "!", then <eos>.

    Args:
        prompts: what was asked.
        responses: ids of the answers.
        mask: true at the tokens of an answer, <eos> included.

    Returns:
        Whether each answer is right. One that was cut off before its <eos> is not.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if mask is not boolean.
    """
    check_responses(prompts, responses, mask)
    is_digit = prompts.mask & (prompts.tokens >= ZERO)
    beyond = VOCABULARY_SIZE
    wanted = prompts.tokens.masked_fill(~is_digit, beyond).sort(dim=-1).values
    width = max(wanted.shape[1], responses.shape[1])
    wanted = _widened(wanted, width, beyond)
    given = _widened(responses.masked_fill(~mask, PAD), width, PAD)

    columns = torch.arange(width, device=given.device)
    num_digits, length = is_digit.sum(-1, keepdim=True), mask.sum(-1, keepdim=True)
    bangs = length - 1 - num_digits
    is_last = columns == length - 1
    wanted = torch.where(columns >= num_digits, BANG, wanted)
    wanted = torch.where(is_last, EOS, wanted)
    agrees = (given == wanted) | (columns >= length)
    return agrees.all(-1) & ((bangs >= 0) & (bangs <= MAX_BANGS)).squeeze(-1)


def _widened(tokens: Int[Tensor, "B L"], width: int, fill: int) -> Int[Tensor, "B W"]:
    return torch.nn.functional.pad(tokens, (0, width - tokens.shape[1]), value=fill)


def check_responses(prompts: Prompts, responses: Tensor, mask: Tensor) -> None:
    """Require one answer for each prompt, of at least one column.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if mask is not boolean.
    """
    check_same_shape(responses=responses, mask=mask)
    check_bool(mask=mask)
    if responses.ndim != 2 or len(responses) != len(prompts):
        raise ValueError(
            f"responses has shape {tuple(responses.shape)}; expected ({len(prompts)}, T), one row "
            "for each prompt. Give the answers of these prompts."
        )
    if responses.shape[1] == 0:
        raise ValueError(
            f"responses has shape {tuple(responses.shape)}; expected at least one token for each "
            "prompt. Generate with max_new_tokens of 1 or more."
        )


def check_tokens(tokens: Tensor, mask: Tensor, vocabulary_size: int = VOCABULARY_SIZE) -> None:
    """Require [B, L] whole numbers, a mask like them, and ids of the vocabulary where it is true.

    On an accelerator the ids are not looked at, since that would wait for it.

    Raises:
        ValueError: if shapes differ, there is no row or no column, a row is all padding, or an id
            is out of range.
        TypeError: if a dtype is wrong.
    """
    check_tensor("tokens", tokens)
    if tokens.dtype != torch.long:
        raise TypeError(
            f"tokens has dtype {tokens.dtype}; expected torch.int64. Convert it with tokens.long()."
        )
    check_same_shape(tokens=tokens, mask=mask)
    check_bool(mask=mask)
    if tokens.ndim != 2 or tokens.numel() == 0:
        raise ValueError(
            f"tokens has shape {tuple(tokens.shape)}; expected (B, L) with at least one row and "
            "one column. Give at least one prompt of at least one token."
        )
    if not at_hand(tokens):
        return
    empty = ~mask.any(dim=1)
    if empty.any():
        raise ValueError(
            f"row {int(empty.nonzero()[0])} of mask is all false; expected at least one real token "
            "in each row. Leave rows without a token out."
        )
    outside = mask & ((tokens < 0) | (tokens >= vocabulary_size))
    if outside.any():
        row, column = outside.nonzero()[0].tolist()
        raise ValueError(
            f"tokens holds {int(tokens[row, column])} at index ({row}, {column}); expected ids "
            f"from 0 to {vocabulary_size - 1}. Use the vocabulary that the model was made for."
        )


def as_text(tokens: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> list[str]:
    """Write rows of tokens for people; padding is left out.

    Args:
        tokens: ids.
        mask: false in padding.

    Returns:
        One text for each row, such as "123!<eos>".

    Raises:
        ValueError: if the shapes differ.
    """
    check_same_shape(tokens=tokens, mask=mask)
    rows = zip(tokens.tolist(), mask.tolist(), strict=True)
    return [
        "".join(VOCABULARY[token] for token, real in zip(*row, strict=True) if real) for row in rows
    ]
