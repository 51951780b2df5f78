"""Conversations: several turns in one row, in which only the assistant's own tokens are actions."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ppo_lessons.shapes import check_bool, check_same_shape
from ppo_lessons.tokens.language import PAD

ROLES = ("user", "assistant", "tool")


@dataclass(frozen=True)
class Turn:
    """What one side says in each of B conversations.

    Attributes:
        role: "user", "assistant" or "tool".
        tokens: ids.
        mask: false in padding, wherever that stands.
    """

    role: str
    tokens: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]

    def __post_init__(self) -> None:
        """Require a known role and a mask like the tokens.

        Raises:
            ValueError: if the role is unknown or shapes differ.
            TypeError: if mask is not boolean.
        """
        if self.role not in ROLES:
            raise ValueError(f"role is {self.role!r}; expected one of {', '.join(ROLES)}.")
        check_same_shape(tokens=self.tokens, mask=self.mask)
        check_bool(mask=self.mask)


@dataclass(frozen=True)
class Conversation:
    """B conversations, left-padded, all turns of a row without a gap.

    Attributes:
        tokens: ids; PAD in padding.
        mask: false in padding.
        actions: true at the tokens that the assistant chose.
    """

    tokens: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]
    actions: Bool[Tensor, "B L"]


def assistant_mask(turns: Sequence[Turn]) -> Bool[Tensor, "B L"]:
    """Mark the assistant's own tokens in turns that stand side by side.

    What the user said and what a tool answered were not drawn from the policy: they are states.

    Args:
        turns: in the order in which they were said.

    Returns:
        True at the tokens that are actions; L is the sum of the turns' widths.

    Raises:
        ValueError: if there is no turn, or they hold different numbers of conversations.
    """
    check_turns(turns)
    return torch.cat([turn.mask & (turn.role == "assistant") for turn in turns], dim=1)


def join_turns(turns: Sequence[Turn]) -> Conversation:
    """Write turns one after the other, and move all padding to the left.

    A gap between two turns would tear apart what belongs together: the token after it is scored at
    the place before it, and that place must hold the last word that was said.

    Args:
        turns: in the order in which they were said.

    Returns:
        The conversations. Score them with `token_log_probs(logits, tokens[:, 1:],
        prompt_length=1)`, and mask with `actions[:, 1:]`.

    Raises:
        ValueError: if there is no turn, or they hold different numbers of conversations.
    """
    check_turns(turns)
    tokens = torch.cat([turn.tokens for turn in turns], dim=1)
    mask = torch.cat([turn.mask for turn in turns], dim=1)
    actions = assistant_mask(turns)
    order = mask.long().argsort(dim=1, stable=True)  # padding first, the rest as it was
    mask = mask.gather(1, order)
    tokens = tokens.gather(1, order).masked_fill(~mask, PAD)
    return Conversation(tokens, mask, actions.gather(1, order))


def check_turns(turns: Sequence[Turn]) -> None:
    """Require at least one turn, and the same conversations in all.

    Raises:
        ValueError: otherwise.
    """
    if not turns:
        raise ValueError("turns is empty; expected at least one Turn. Give what was said.")
    sizes = [len(turn.tokens) for turn in turns]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"the turns hold {sizes} conversations; expected the same number in each. Give every "
            "turn one row for each conversation, with a false mask where nothing was said."
        )
