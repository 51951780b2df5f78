"""The policy and the critic of a language model, as the update of lesson 08 wants to see them."""

import inspect
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from ppo_lessons.shapes import at_hand, check_positive, check_same_shape
from ppo_lessons.tokens.generate import Responses, generate
from ppo_lessons.tokens.language import Prompts, check_left_padded
from ppo_lessons.tokens.model import (
    LanguageModel,
    before_each_token,
    token_entropies,
    token_log_probs,
)


def pack(prompts: Prompts, responses: Responses) -> Int[Tensor, "B 2 L"]:
    """Put prompt and answer into one observation, tokens above their mask.

    A row of it is all that policy and critic must know to rate every token of the answer. The mask
    travels along: nothing reads it off the tokens.

    Args:
        prompts: left-padded, P tokens.
        responses: right-padded, T tokens.

    Returns:
        Row 0 the P + T tokens, row 1 their mask as 0 and 1.

    Raises:
        ValueError: if there is not one answer for each prompt, or a prompt ends with padding.
    """
    if len(prompts.tokens) != len(responses.tokens):
        raise ValueError(
            f"there are {len(responses.tokens)} answers to {len(prompts.tokens)} prompts; expected "
            "as many. Repeat each prompt once per answer: prompts.repeated(times)."
        )
    check_left_padded(prompts)
    tokens = torch.cat([prompts.tokens, responses.tokens], dim=1)
    mask = torch.cat([prompts.mask, responses.mask], dim=1)
    return torch.stack([tokens, mask.long()], dim=1)


def unpack(observations: Int[Tensor, "B 2 L"]) -> tuple[Tensor, Tensor]:
    """Take tokens and mask out of packed observations.

    Args:
        observations: from `pack`.

    Returns:
        Tokens [B, L] and their boolean mask.

    Raises:
        ValueError: if the shape is another.
    """
    if observations.ndim != 3 or observations.shape[1] != 2:
        raise ValueError(
            f"observations has shape {tuple(observations.shape)}; expected (B, 2, L), tokens above "
            "their mask. Make them with pack(prompts, responses)."
        )
    return observations[:, 0], observations[:, 1].bool()


@runtime_checkable
class AnsweringPolicy(Protocol):
    """What `train_tokens` asks of a policy, and of a reference: draw answers, rate their tokens."""

    def respond(self, prompts: Any, *, max_new_tokens: int, generator: Generator) -> Responses:
        """Draw one answer for each prompt, with log π of each token."""
        ...

    def evaluate(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Give log π of each token of the answers, and the entropy before it."""
        ...


class TokenPolicy(nn.Module):
    """A language model as a policy: one token is one action.

    Args:
        model: tokens and mask to logits.
        temperature: at which answers are drawn **and** rated, above 0; rating at another one would
            compare two distributions.

    Raises:
        ValueError: if the temperature is not above 0.
    """

    def __init__(self, model: LanguageModel, *, temperature: int | float = 1.0):
        super().__init__()
        check_positive(temperature=float(temperature))
        self.model, self.temperature = model, temperature

    @torch.no_grad()
    def respond(self, prompts: Prompts, *, max_new_tokens: int, generator: Generator) -> Responses:
        """Draw one answer for each prompt, with log π of each token (nats)."""
        return generate(
            self.model, prompts, max_new_tokens=max_new_tokens,
            temperature=self.temperature, generator=generator,
        )  # fmt: skip

    def evaluate(
        self, observations: Int[Tensor, "B 2 L"], actions: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Give log π of each token of the answers, and the entropy before it (nats).

        Args:
            observations: prompts and answers, packed.
            actions: the answers.

        Returns:
            One number per token each, in padding too; the batch's mask says which count.

        Raises:
            ValueError: if the answers do not stand at the end of the observations.
        """
        tokens, mask = unpack(observations)
        answers = tokens[:, tokens.shape[1] - actions.shape[1] :]
        check_same_shape(actions=actions, answers=answers)
        other = (answers != actions) & mask[:, -actions.shape[1] :]
        if at_hand(other) and other.any():
            row, place = other.nonzero()[0].tolist()
            raise ValueError(
                f"actions holds {int(actions[row, place])} at index ({row}, {place}), and the "
                f"observations end otherwise there, with {int(answers[row, place])}; expected the "
                "answers that were packed. Pass responses.tokens as they are."
            )
        logits = self.model(tokens, mask)
        place = {"prompt_length": tokens.shape[1] - actions.shape[1]}
        at = {**place, "temperature": self.temperature}
        return token_log_probs(logits, actions, **at), token_entropies(logits, **at)


class TokenValues(nn.Module):
    """A critic over tokens as the update wants it: packed observations to V before each token.

    Args:
        critic: tokens and mask to one number per place, such as `TokenCritic`.
        max_new_tokens: T, the width of the answers.
    """

    def __init__(self, critic: nn.Module, *, max_new_tokens: int):
        super().__init__()
        self.critic, self.max_new_tokens = critic, max_new_tokens

    def forward(self, observations: Int[Tensor, "B 2 L"]) -> Float[Tensor, "B T"]:
        """Give V before each token of the answers (discounted reward)."""
        tokens, mask = unpack(observations)
        prompt_length = tokens.shape[1] - self.max_new_tokens
        return before_each_token(self.critic(tokens, mask), prompt_length=prompt_length)


class NoCritic(nn.Module):
    """What stands in the critic's place where there is none: 0 for every token, nothing to learn.

    Args:
        max_new_tokens: T, the width of the answers.
    """

    def __init__(self, *, max_new_tokens: int):
        super().__init__()
        self.max_new_tokens = max_new_tokens

    def forward(self, observations: Int[Tensor, "B 2 L"]) -> Float[Tensor, "B T"]:
        """Give zeros."""
        return torch.zeros(len(observations), self.max_new_tokens, device=observations.device)


class TokenNetworks(nn.Module):
    """Policy and critic of one run, under the names that `update` uses.

    Args:
        policy: rates the tokens of answers.
        critic: gives V before each of them.
    """

    def __init__(self, policy: nn.Module, critic: nn.Module):
        super().__init__()
        self.policy, self.critic = policy, critic


def as_policy(model: Any, name: str, *, temperature: int | float) -> Any:
    """Take a policy as it is, and put a language model into a `TokenPolicy`.

    Raises:
        TypeError: if it is neither.
        ValueError: if its temperature is not the one of the config.
    """
    if isinstance(model, AnsweringPolicy):
        if getattr(model, "temperature", temperature) != temperature:
            raise ValueError(
                f"{name} has temperature {getattr(model, 'temperature', None)}; expected "
                f"the config's {temperature}. Draw and rate at one temperature."
            )
        return model
    if isinstance(model, LanguageModel):
        return TokenPolicy(model, temperature=temperature)
    raise TypeError(
        f"{name} is a {type(model).__name__}; expected a LanguageModel, or an object with respond "
        "and evaluate. Give cached_reference(), or a copy of it."
    )


def as_values(critic: nn.Module | None, *, max_new_tokens: int) -> nn.Module:
    """Give a critic as the update wants it: packed observations to V before each token."""
    if critic is None:
        return NoCritic(max_new_tokens=max_new_tokens)
    if takes_tokens(critic):
        return TokenValues(critic, max_new_tokens=max_new_tokens)
    return critic


def takes_tokens(critic: nn.Module) -> bool:
    """Say whether a critic wants tokens and mask, two arguments, instead of packed observations."""
    wanted = [
        p
        for p in inspect.signature(critic.forward).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(wanted) >= 2


def check_apart(**models: Any) -> None:
    """Require that two models share no weight.

    Raises:
        ValueError: if they do.
    """
    (first, one), (second, other) = models.items()
    shared = {id(p) for p in one.parameters()} & {
        id(p) for p in getattr(other, "parameters", list)()
    }
    if shared:
        raise ValueError(
            f"{first} and {second} share {len(shared)} weight tensors; expected two models of "
            f"their own, since only one of them may move. Give {first} a copy: "
            "copy.deepcopy(model)."
        )
