"""What does a method change? The functions are asked, so the answer cannot be out of date.

    baseline      add 1 to the scores of one group, or of all: do the advantages stay?
    scale         multiply the scores of one group, or of all: do they stay?
    aggregation   responses of 2 and 6 tokens: how strongly does each token push?
    clip          move one ratio: where does its push stay the same, where does it end?

A function that nobody has seen before is classified by the same questions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ppo_lessons.variants.methods import METHODS, Method, find_method

NOTHING = "–"
STAGES = ("collect", "baseline", "scale", "kl", "aggregation", "ratio", "clip")


@dataclass(frozen=True)
class Row:
    """One line of the board: what a method does in each place.

    Attributes:
        name: of the method.
        collect: where its responses come from.
        baseline: what a score is compared with.
        scale: what advantages are divided by.
        kl: where the distance from the reference is charged.
        aggregation: how much a token weighs.
        ratio: what is corrected for having been drawn by an older policy.
        clip: up to which ratio a good sample pushes, down to which a bad one.
    """

    name: str
    collect: str
    baseline: str
    scale: str
    kl: str
    aggregation: str
    ratio: str
    clip: str


def board() -> tuple[Row, ...]:
    """Ask each method of `METHODS` what it does."""
    return tuple(describe(method) for method in METHODS)


def changes(name: str, *, against: str = "PPO") -> dict[str, tuple[str, str]]:
    """List the places in which one method differs from another.

    Args:
        name: the method.
        against: the one it is compared with.

    Returns:
        For each place that differs: what stands there, and what stood there before.

    Raises:
        ValueError: if there is no such method.
    """
    new, old = describe(find_method(name)), describe(find_method(against))
    return {
        stage: (getattr(new, stage), getattr(old, stage))
        for stage in STAGES
        if getattr(new, stage) != getattr(old, stage)
    }


def describe(method: Method) -> Row:
    """Find out what a method does, by asking its functions.

    Args:
        method: any, also one that is not in `METHODS`.

    Returns:
        Its line of the board.
    """
    if method.advantages is None or method.policy_loss is None:
        return Row(
            method.name, method.collect, "the other of the pair", NOTHING, method.kl,
            "sequence_sum", NOTHING, NOTHING,
        )  # fmt: skip
    scored = scorer(method)
    return Row(
        name=method.name,
        collect=method.collect,
        baseline=baseline_of(scored, method.critic),
        scale=scale_of(scored),
        kl=method.kl,
        aggregation=aggregation_of(method.policy_loss),
        ratio=ratio_of(method.policy_loss),
        clip=clip_of(method.policy_loss),
    )


# --- asking the advantages -----------------------------------------------------------------------

SCORES = (0.3, 1.1, -0.4, 2.0, 0.7, 0.9, -1.3, 0.2)
GROUPS = (0, 0, 0, 0, 1, 1, 1, 1)


def scorer(method: Method) -> Callable[[Tensor], Tensor]:
    """Make the function scores [8] → Â [8] of a method, for two groups of four short responses.

    A critic answers 0 throughout: what it expects is no matter of the scores.
    """
    mask = torch.ones(len(SCORES), 3, dtype=torch.bool)
    groups = torch.tensor(GROUPS)

    def scored(scores: Tensor) -> Tensor:
        rewards = torch.zeros(mask.shape, dtype=scores.dtype)
        rewards[:, -1] = scores
        assert method.advantages is not None
        advantages, _ = method.advantages(rewards, torch.zeros_like(rewards), mask, groups)
        return method.normalize(advantages, mask=mask)[:, -1]

    return scored


def baseline_of(scored: Callable[[Tensor], Tensor], critic: bool) -> str:
    """Say what a score is compared with: more for all, or for one group, should change nothing."""
    scores = torch.tensor(SCORES, dtype=torch.float64)
    first = torch.tensor(GROUPS) == 0
    own = scored(scores)
    if stays(scored(scores + first), own):
        slopes = torch.autograd.functional.jacobian(scored, scores)
        assert isinstance(slopes, Tensor)
        # with the others' mean alone, a point more for me is a point more of advantage
        return "mean of the others" if abs(slopes[0, 0] - 1) < 1e-6 else "mean of the group"
    if critic:
        return "critic"
    return "mean of the batch" if stays(scored(scores + 1), own) else "none"


def scale_of(scored: Callable[[Tensor], Tensor]) -> str:
    """Say what advantages are divided by: larger scores, of all or of one group, change nothing."""
    scores = torch.tensor(SCORES, dtype=torch.float64)
    first = torch.tensor(GROUPS) == 0
    own = scored(scores)
    if stays(scored(torch.where(first, 1000 * scores, scores)), own):
        return "spread of the group"
    return "spread of the batch" if stays(scored(1000 * scores), own) else "none"


def stays(advantages: Tensor, own: Tensor) -> bool:
    """Whether two answers are one, up to what a small number in a denominator does."""
    return torch.allclose(advantages, own, rtol=1e-3, atol=1e-3)


# --- asking the loss -----------------------------------------------------------------------------

EPSILON = 0.2
MOST = 8.0  # beyond this ratio nobody looks


def pushes(
    policy_loss: Callable[..., Tensor], ratios: Tensor, advantages: Tensor, mask: Tensor
) -> Tensor:
    """Give −∂loss / ∂log π of each token: how strongly it is pushed up."""
    log_probs_old = torch.full(mask.shape, -3.0, dtype=torch.float64)
    log_probs = (log_probs_old + ratios.log()).requires_grad_()
    keywords = {"clip_epsilon": EPSILON} if takes_epsilon(policy_loss) else {}
    loss = policy_loss(log_probs, log_probs_old, advantages, mask=mask, **keywords)
    return -torch.autograd.grad(loss, log_probs)[0]


def takes_epsilon(policy_loss: Callable[..., Tensor]) -> bool:
    """Whether a loss asks for clip_epsilon, as the slot of `Parts` would find out."""
    from ppo_lessons.training_loop.parts import given_keywords

    return "clip_epsilon" in given_keywords("policy_loss", policy_loss)


def aggregation_of(policy_loss: Callable[..., Tensor]) -> str:
    """Say how much a token weighs, from the pushes in responses of 2 and 6 tokens."""
    mask = torch.arange(6).expand(2, 6) < torch.tensor([[2], [6]])
    ones = torch.ones(mask.shape, dtype=torch.float64)
    pushed = pushes(policy_loss, ones, ones, mask)
    short, long = pushed[0, 0].item(), pushed[1, 0].item()
    if abs(short / long - 3) < 1e-6:
        return "sequence_mean"
    known = {"token_mean": 1 / 8, "sequence_sum": 1 / 2}
    return next((mode for mode, weight in known.items() if abs(short - weight) < 1e-6), "constant")


def ratio_of(policy_loss: Callable[..., Tensor]) -> str:
    """Say what is corrected: does a token's push grow with its own ratio, or its neighbour's?"""
    mask = torch.ones(1, 2, dtype=torch.bool)
    ones = torch.ones(1, 2, dtype=torch.float64)
    still = pushes(policy_loss, ones, ones, mask)[0, 0]
    own = pushes(policy_loss, torch.tensor([[1.1, 1.0]], dtype=torch.float64), ones, mask)[0, 0]
    other = pushes(policy_loss, torch.tensor([[1.0, 1.1]], dtype=torch.float64), ones, mask)[0, 0]
    if not torch.isclose(other, still):
        return "of the response"
    return NOTHING if torch.isclose(own, still) else "of the token"


def clip_of(policy_loss: Callable[..., Tensor]) -> str:
    """Say how far a good token pushes upwards and a bad one downwards, by moving its ratio."""
    # between round numbers, where the edges lie
    ratios = torch.cat([torch.arange(0.01, 2, 0.02), torch.arange(2.25, MOST, 0.5)]).double()
    good, bad = (
        torch.stack([one_push(policy_loss, ratio, advantage) for ratio in ratios])
        for advantage in (1.0, -1.0)
    )
    if ratio_of(policy_loss) == NOTHING:
        return NOTHING
    parts = [f"good: {edge_above(ratios, good)}", f"bad: {edge_below(ratios, bad)}"]
    if bad[-1] == 0:
        parts.append(f"bad: silent above {last_above(ratios, bad):.3g}")
    return "; ".join(parts)


def one_push(policy_loss: Callable[..., Tensor], ratio: Tensor, advantage: float) -> Tensor:
    """Give the push of a response of one token."""
    mask = torch.ones(1, 1, dtype=torch.bool)
    return pushes(policy_loss, ratio.reshape(1, 1), torch.full((1, 1), advantage).double(), mask)[
        0, 0
    ]


def edge_above(ratios: Tensor, pushed: Tensor) -> str:
    """Say where a good token's push ends, or stops growing."""
    if pushed[-1] == 0:
        return f"silent above {last_above(ratios, pushed):.3g}"
    if pushed[-1] < ratios[-1] - 1e-6:
        return f"limited to {pushed[-1].item():.3g}"
    return "no edge"


def edge_below(ratios: Tensor, pushed: Tensor) -> str:
    """Say where a bad token's push ends."""
    if pushed[0] == 0:
        first = int((pushed != 0).nonzero()[0])
        return f"silent below {(ratios[first - 1] + ratios[first]).item() / 2:.3g}"
    return "no edge"


def last_above(ratios: Tensor, pushed: Tensor) -> float:
    """Find the edge between the last ratio that pushes and the first that does not."""
    last = int((pushed != 0).nonzero()[-1])
    return (ratios[last] + ratios[last + 1]).item() / 2
