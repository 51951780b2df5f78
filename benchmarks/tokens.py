"""What the widget TokenStrip shows: one response and many, with the books kept in each way.

    python -m benchmarks.tokens

A reference is trained (10 s), one response is scored in every way of
`ppo_lessons.tokens.bookkeeping`, and so are the responses to 1,000 prompts, whose ratios are
counted. The result is `token_strip.json` in `ppo_lessons/recorded`.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from benchmarks.record import RECORDED, write_result
from ppo_lessons.tokens import (
    BANG,
    EOS,
    PAD,
    VOCABULARY,
    ZERO,
    LanguageModel,
    Prompts,
    ReferenceConfig,
    Responses,
    cached_reference,
    draw_prompts,
    encode_prompts,
    join,
    positions,
)
from ppo_lessons.tokens.bookkeeping import WAYS, Way

DIGITS, ANSWER, WIDTH = (4, 9, 2), (2, 4, 9), 8  # asked, given before "!", columns
NUM_PROMPTS = 1000
BINS, REACH = 33, 2.0  # of the histogram of log-ratios; what lies farther is in the last bin
NUMBER_DIGITS = 6


def the_response(prompts: Prompts) -> tuple[Tensor, Tensor]:
    """Write the response as tokens and mask."""
    ids = [*(ZERO + digit for digit in ANSWER), BANG, EOS]
    tokens = torch.tensor([ids + [PAD] * (WIDTH - len(ids))])
    return tokens, (torch.arange(WIDTH) < len(ids)).expand(len(prompts), -1)


@torch.no_grad()
def as_drawn(model: LanguageModel, prompts: Prompts, tokens: Tensor, mask: Tensor, way: Way):
    """Give the response as if the sampler of this way had drawn it."""
    sequence, whole = join(prompts, tokens, mask)
    start = prompts.tokens.shape[1]
    table = way.table(model(sequence, whole)[:, start - 1 : -1])
    log_probs = table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).masked_fill(~mask, 0)
    if not log_probs.isfinite().all():
        raise ValueError("the sampler could not have drawn this response; choose another")
    return Responses(tokens, mask, log_probs)


def strip(model: LanguageModel, ways: Mapping[str, Way] = WAYS) -> dict[str, Any]:
    """Score the response in every way."""
    prompts = encode_prompts([DIGITS])
    tokens, mask = the_response(prompts)
    _, whole = join(prompts, tokens, mask)
    right, counted = positions(whole)[0].tolist(), list(range(whole.shape[1]))
    found = {}
    for name, way in ways.items():
        books = way.books(model, prompts, as_drawn(model, prompts, tokens, mask, way))
        found[name] = {
            "positions": counted if name == "padding_in_positions" else right,
            "mask": books.mask[0].tolist(),
            "log_probs_old": rounded(books.log_probs_old[0]),
            "log_probs": rounded(books.log_probs[0]),
        }
    return {
        "prompt": [VOCABULARY[token] for token in prompts.tokens[0].tolist()],
        "response": [VOCABULARY[token] for token in tokens[0].tolist()],
        "ways": found,
    }


def histogram(ratios: Tensor) -> list[float]:
    """Give the share of ratios in each bin of their logarithm."""
    step = 2 * REACH / (BINS - 1)
    places = ((ratios.log() + REACH) / step).round().clamp(0, BINS - 1).long()
    return rounded(torch.bincount(places, minlength=BINS) / len(places))


def many(model: LanguageModel) -> dict[str, list[float]]:
    """Let each way draw responses of its own, and count its ratios."""
    found = {}
    for name, way in WAYS.items():
        generator = Generator().manual_seed(1)
        prompts = draw_prompts(NUM_PROMPTS, generator=generator)
        responses = way.draw(model, prompts, generator=generator)
        found[name] = histogram(way.books(model, prompts, responses).ratios)
    return found


def rounded(numbers: Tensor) -> list[float]:
    """Keep few digits: they are shown with fewer."""
    return [round(number, NUMBER_DIGITS) + 0.0 for number in numbers.tolist()]


def main() -> None:
    """Train, score, write JSON."""
    torch.set_num_threads(1)
    model = cached_reference(ReferenceConfig())
    content = strip(model) | {"reach": REACH, "shares": many(model)}
    for name, way in content["ways"].items():
        pairs = zip(way["log_probs"], way["log_probs_old"], strict=True)
        print(name, [round(math.exp(new - old), 3) for new, old in pairs])
    write_result("token_strip", "python -m benchmarks.tokens", content, folder=RECORDED)


if __name__ == "__main__":
    main()
