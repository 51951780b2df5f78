"""One right way to keep books about tokens, and seven wrong ones that programs have really gone.

    ratio of a token = exp(log π as it is computed again − log π as it was written down)

Nothing was updated in between, so every ratio should be 1. What a wrong way does to the ratios, or
to the mask alone, is what gives it away.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ppo_lessons.importance import importance_ratios
from ppo_lessons.tokens.generate import Responses, decode, join, score_responses
from ppo_lessons.tokens.language import EOS, RESPONSE_LENGTH, VOCABULARY_SIZE, Prompts
from ppo_lessons.tokens.model import LanguageModel, scaled_log_probs, token_log_probs

SHARP, FEW, DROPPED = 0.7, 3, 0.1  # temperature, words that may be drawn, share of dropped numbers


@dataclass(frozen=True)
class Books:
    """What a program knows about B responses.

    Attributes:
        mask: true where it sees an action.
        log_probs_old: written down when the token was drawn (nats).
        log_probs: computed again, before any update (nats).
    """

    mask: Bool[Tensor, "B T"]
    log_probs_old: Float[Tensor, "B T"]
    log_probs: Float[Tensor, "B T"]

    @property
    def ratios(self) -> Float[Tensor, " N"]:
        """Ratio of each of the N tokens that it takes for actions."""
        return importance_ratios(self.log_probs, self.log_probs_old)[self.mask]


Again = Callable[[LanguageModel, Prompts, Responses], Float[Tensor, "B T"]]


def score_again(
    model: LanguageModel, prompts: Prompts, responses: Responses
) -> Float[Tensor, "B T"]:
    """Right at temperature 1: the package's own function."""
    return score_responses(model, prompts, responses.tokens, responses.mask)[0]


def one_place_late(
    model: LanguageModel, prompts: Prompts, responses: Responses
) -> Float[Tensor, "B T"]:
    """Read each token off its own place, whose logits guess the token after it."""
    sequence, mask = join(prompts, responses.tokens, responses.mask)
    start = prompts.tokens.shape[1]
    table = scaled_log_probs(model(sequence, mask)[:, start:])
    found = table.gather(-1, sequence[:, start:, None]).squeeze(-1)
    return found.masked_fill(~responses.mask, 0)


def padding_in_positions(
    model: LanguageModel, prompts: Prompts, responses: Responses
) -> Float[Tensor, "B T"]:
    """Count positions from the left edge, padding included."""
    sequence, mask = join(prompts, responses.tokens, responses.mask)
    places = torch.arange(sequence.shape[1], device=sequence.device).expand_as(sequence)
    logits = model(sequence, mask, position_ids=places)
    start = prompts.tokens.shape[1]
    found = token_log_probs(logits, sequence[:, start:], prompt_length=start)
    return found.masked_fill(~responses.mask, 0)


def with_dropout(
    model: LanguageModel, prompts: Prompts, responses: Responses
) -> Float[Tensor, "B T"]:
    """Leave out a tenth of the last layer's inputs, as a network in training mode may."""
    sequence, mask = join(prompts, responses.tokens, responses.mask)
    hidden = model.hidden(sequence, mask)
    chance = Generator(hidden.device).manual_seed(0)
    kept = torch.rand(hidden.shape, generator=chance, device=hidden.device) >= DROPPED
    start = prompts.tokens.shape[1]
    logits = model.head(hidden * kept / (1 - DROPPED))
    found = token_log_probs(logits, sequence[:, start:], prompt_length=start)
    return found.masked_fill(~responses.mask, 0)


def drawn(responses: Responses) -> Bool[Tensor, "B T"]:
    """Right: every token that was drawn, EOS included."""
    return responses.mask


def without_eos(responses: Responses) -> Bool[Tensor, "B T"]:
    """Leave EOS out, as a mask does that is guessed from ids where padding and EOS share one."""
    return responses.mask & (responses.tokens != EOS)


def everything(responses: Responses) -> Bool[Tensor, "B T"]:
    """Take every column for an action, whatever stands in it."""
    return torch.ones_like(responses.mask)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to draw, to write down, to score again and to mask.

    Attributes:
        again: computes log-probabilities a second time.
        actions: which columns it takes for actions.
        temperature: at which it draws.
        count: how many of the likeliest words it may draw.
    """

    again: Again = score_again
    actions: Callable[[Responses], Bool[Tensor, "B T"]] = drawn
    temperature: float = 1.0
    count: int = VOCABULARY_SIZE

    def table(self, logits: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
        """Give the log-probabilities of the sampler; −∞ for words that it may not draw."""
        log_probs = scaled_log_probs(logits, temperature=self.temperature)
        most = min(self.count, log_probs.shape[-1])
        least = log_probs.topk(most, dim=-1).values[..., -1:]
        return log_probs.masked_fill(log_probs < least, -torch.inf).log_softmax(dim=-1)

    def draw(self, model: LanguageModel, prompts: Prompts, *, generator: Generator) -> Responses:
        """Draw a response to each prompt, and write the sampler's log-probabilities down."""
        choose = partial(self._choose, generator=generator)
        return decode(model, prompts, choose, max_new_tokens=RESPONSE_LENGTH)

    def _choose(
        self, logits: Float[Tensor, "B V"], *, generator: Generator
    ) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"]]:
        log_probs = self.table(logits)
        clocks = torch.empty_like(log_probs).exponential_(generator=generator)
        tokens = (log_probs - clocks.log()).argmax(dim=-1)
        return tokens, log_probs.gather(-1, tokens[:, None]).squeeze(-1)

    @torch.no_grad()
    def books(self, model: LanguageModel, prompts: Prompts, responses: Responses) -> Books:
        """Score responses again in this way.

        Args:
            model: the policy that drew them; nothing was updated since.
            prompts: what was asked.
            responses: with the log-probabilities that were written down.

        Returns:
            What this way knows about them.
        """
        again = self.again(model, prompts, responses)
        return Books(self.actions(responses), responses.log_probs, again)


# The first is right. Where the sampler differs, whoever scores again does not know of it.
WAYS = {
    "right": Way(),
    "one_place_late": Way(again=one_place_late),
    "padding_in_positions": Way(again=padding_in_positions),
    "dropout_left_on": Way(again=with_dropout),
    "temperature_forgotten": Way(temperature=SHARP),
    "few_words_only": Way(count=FEW),
    "eos_left_out": Way(actions=without_eos),
    "padding_as_actions": Way(actions=everything),
}
