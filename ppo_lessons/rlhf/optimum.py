"""Where all answers can be listed, the policy that KL-regularised RLHF is after has a formula.

maximise Σ_y π(y)·r(y) − β·KL(π ‖ π_ref)        →        π*(y) = π_ref(y)·exp(r(y) / β) / Z
"""

from collections.abc import Callable
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from ppo_lessons.rlhf.checks import check_at_least_zero, check_whole
from ppo_lessons.shapes import (
    at_hand,
    check_finite,
    check_floating,
    check_positive,
    check_same_shape,
)
from ppo_lessons.tokens.generate import Responses
from ppo_lessons.tokens.language import BOS, EOS, Prompts


def tilted_log_probs(
    log_probs_reference: Float[Tensor, "*batch A"],
    rewards: Float[Tensor, "*batch A"],
    *,
    beta: float,
) -> Float[Tensor, "*batch A"]:
    """Give the best policy there is at price β: the reference, tilted towards reward.

        log π*(y) = log π_ref(y) + r(y) / β − log Z

    What the reference never says, the best policy never says either. β → ∞ gives the reference
    back, β → 0 leaves the answer with the largest reward alone.

    Args:
        log_probs_reference: log π_ref of each answer along the last axis (nats); −inf is allowed.
        rewards: r(y) of each answer (reward).
        beta: β, above 0 (reward per nat).

    Returns:
        log π* of each answer (nats).

    Raises:
        ValueError: if the shapes differ, a reward is not finite, the reference says nothing at all
            or β is not above 0.

    Source: known since Ziebart 2010 at the latest; as the start of DPO, Rafailov et al. 2023.
    """
    check_same_shape(log_probs_reference=log_probs_reference, rewards=rewards)
    check_floating(log_probs_reference=log_probs_reference, rewards=rewards)
    check_finite(rewards=rewards)
    check_positive(beta=beta)
    if at_hand(log_probs_reference) and (log_probs_reference == -torch.inf).all(dim=-1).any():
        raise ValueError(
            "log_probs_reference is −inf for all answers; expected one at least that the reference "
            "may say. Look at what it was made of."
        )
    return (log_probs_reference + rewards / beta).log_softmax(dim=-1)


def regularized_return(
    log_probs: Float[Tensor, "*batch A"],
    log_probs_reference: Float[Tensor, "*batch A"],
    rewards: Float[Tensor, "*batch A"],
    *,
    beta: float,
) -> Float[Tensor, "*batch"]:
    """Give what RLHF maximises, exactly: mean reward minus the price of the distance.

        J_β(π) = Σ_y π(y)·r(y) − β·KL(π ‖ π_ref)  =  β·log Z − β·KL(π ‖ π*)

    Args:
        log_probs: log π of each answer along the last axis (nats).
        log_probs_reference: log π_ref of each answer (nats).
        rewards: r(y) of each answer (reward).
        beta: β, at least 0 (reward per nat).

    Returns:
        J_β (reward).

    Raises:
        ValueError: if the shapes differ, a reward is not finite or β is below 0.
    """
    check_same_shape(log_probs=log_probs, log_probs_reference=log_probs_reference, rewards=rewards)
    check_finite(rewards=rewards)
    check_at_least_zero(beta=beta)
    probabilities = log_probs.exp()
    said = probabilities > 0  # 0·log 0 counts 0
    distance = torch.where(said, log_probs - log_probs_reference, 0)
    return (probabilities * (rewards - beta * distance)).sum(dim=-1)


class AnswerTree:
    """All answers of up to T tokens over a few words: small enough to list.

    A **prefix** is what has been said so far; each is a state, and the policy has logits of its own
    for each. Words are the token ids 0, 1, ..., the end-of-answer token's left out.

    Args:
        num_words: W, words beside the end-of-answer token, at least 1.
        num_tokens: T, tokens of the longest answer, at least 1.

    Raises:
        ValueError: if a number is too small, or there are more than 100,000 answers.
    """

    def __init__(self, num_words: int, num_tokens: int):
        check_whole(num_words=num_words, num_tokens=num_tokens)
        self.num_words, self.num_tokens = num_words, num_tokens
        answers = 0
        for length in range(num_tokens + 1):  # before anything is built
            answers += num_words**length
            if answers > 100_000:
                raise ValueError(
                    f"{num_words} words and {num_tokens} tokens make more than 100000 answers; "
                    "expected fewer, so that all can be listed. Choose a smaller tree."
                )
        self.words = torch.tensor([token for token in range(num_words + 1) if token != EOS])
        self.words = self.words[:num_words]
        self.vocabulary = max(int(self.words.max()), EOS) + 1
        sizes = [num_words**t for t in range(num_tokens)]
        self.num_prefixes = sum(sizes)
        self.offsets = torch.tensor([sum(sizes[:t]) for t in range(num_tokens)])
        self.tokens, self.mask = self._answers()

    def __len__(self) -> int:
        """The number of answers, A."""
        return len(self.tokens)

    def _answers(self) -> tuple[Int[Tensor, "A T"], Bool[Tensor, "A T"]]:
        rows = []
        for length in range(self.num_tokens + 1):
            for words in product(self.words.tolist(), repeat=length):
                said = list(words) + ([EOS] if length < self.num_tokens else [])
                rows.append((said, len(said)))
        tokens = torch.full((len(rows), self.num_tokens), EOS)
        mask = torch.zeros((len(rows), self.num_tokens), dtype=torch.bool)
        for row, (said, length) in enumerate(rows):
            tokens[row, :length] = torch.tensor(said)
            mask[row, :length] = True
        return tokens, mask

    def prefixes(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Number the prefix before each token.

        Args:
            tokens: of answers.

        Returns:
            From 0, the empty one, to num_prefixes − 1; after the end of an answer, any of them.
        """
        ranks = torch.zeros(self.vocabulary, dtype=torch.long)
        ranks[self.words] = torch.arange(self.num_words)
        code = torch.zeros(len(tokens), dtype=torch.long)
        codes = []
        for t in range(self.num_tokens):
            codes.append(code + self.offsets[t])
            code = code * self.num_words + ranks[tokens[:, t]]
        return torch.stack(codes, dim=1)

    def index(self, tokens: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
        """Find each answer among all of them.

        Args:
            tokens: of answers.
            mask: true at their tokens.

        Returns:
            The row of `tokens` and `mask` that it is.
        """
        given, known = torch.where(mask, tokens, -1), torch.where(self.mask, self.tokens, -1)
        there = given.unsqueeze(1) == known
        return there.all(dim=2).to(torch.uint8).argmax(dim=1)

    def prompts(self, count: int, *, generator: Generator | None = None) -> Prompts:
        """Ask the one question of this world so many times; nothing is random about it."""
        ones = torch.ones((count, 1), dtype=torch.bool)
        return Prompts(torch.full((count, 1), BOS), ones)

    def paying(self, rewards: Float[Tensor, " A"]) -> Callable[[Prompts, Responses], Tensor]:
        """Make the function that pays each answer what the table says.

        Args:
            rewards: r(y) of each answer, in the order of `tokens` (reward).

        Returns:
            (prompts, responses) → one score per answer.
        """

        def reward(prompts: Prompts, responses: Responses) -> Tensor:
            return rewards[self.index(responses.tokens, responses.mask)]

        return reward


class TreePolicy(nn.Module):
    """A policy over an `AnswerTree`: its own logits for each prefix.

    It offers what `train_tokens` asks of a policy, so that the loop is the one of the language
    model.

    Args:
        tree: all answers.
        logits: of each prefix; zeros if left out.
    """

    def __init__(self, tree: AnswerTree, logits: Float[Tensor, "prefixes V"] | None = None):
        super().__init__()
        self.tree = tree
        blank = torch.zeros(tree.num_prefixes, tree.vocabulary)
        self.logits = nn.Parameter(blank if logits is None else logits.clone())

    def all_log_probs(self) -> Float[Tensor, "prefixes V"]:
        """Give log π of each token after each prefix; −inf for ids that are no word."""
        allowed = torch.zeros(self.tree.vocabulary, dtype=torch.bool)
        allowed[self.tree.words] = True
        allowed[EOS] = True
        return self.logits.masked_fill(~allowed, -torch.inf).log_softmax(dim=1)

    def evaluate(
        self, observations: Int[Tensor, "B 2 L"], actions: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Give log π of each token and the entropy before it (nats)."""
        log_probs = self.all_log_probs()[self.tree.prefixes(actions)]
        chosen = log_probs.gather(2, actions.unsqueeze(2)).squeeze(2)
        finite = log_probs.masked_fill(log_probs.isinf(), 0)  # 0·log 0 counts 0
        return chosen, -(log_probs.exp() * finite).sum(dim=2)

    @torch.no_grad()
    def respond(self, prompts: Prompts, *, max_new_tokens: int, generator: Generator) -> Responses:
        """Draw one answer for each prompt."""
        table, count = self.all_log_probs(), len(prompts.tokens)
        tokens = torch.full((count, self.tree.num_tokens), EOS)
        going = torch.ones(count, dtype=torch.bool)
        mask = torch.zeros(tokens.shape, dtype=torch.bool)
        for t in range(self.tree.num_tokens):
            probabilities = table[self.tree.prefixes(tokens)[:, t]].exp()
            drawn = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
            tokens[:, t] = torch.where(going, drawn, EOS)
            mask[:, t] = going
            going = going & (drawn != EOS)
        log_probs = table[self.tree.prefixes(tokens)].gather(2, tokens.unsqueeze(2)).squeeze(2)
        return Responses(tokens, mask, log_probs.masked_fill(~mask, 0))

    def answer_log_probs(self) -> Float[Tensor, " A"]:
        """Give log π of every whole answer (nats): the sum over its tokens."""
        table = self.all_log_probs()[self.tree.prefixes(self.tree.tokens)]
        chosen = table.gather(2, self.tree.tokens.unsqueeze(2)).squeeze(2)
        return chosen.masked_fill(~self.tree.mask, 0).sum(dim=1)


class TreeCritic(nn.Module):
    """A critic over an `AnswerTree`: one number for each prefix, 0 at first.

    Args:
        tree: all answers.
    """

    def __init__(self, tree: AnswerTree):
        super().__init__()
        self.tree = tree
        self.table = nn.Parameter(torch.zeros(tree.num_prefixes))

    def forward(self, observations: Int[Tensor, "B 2 L"]) -> Float[Tensor, "B T"]:
        """Give V before each token of the answers."""
        answers = observations[:, 0, -self.tree.num_tokens :]
        return self.table[self.tree.prefixes(answers)]
