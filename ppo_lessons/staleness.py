"""Lesson 16. What if rollouts are old?

    μ        behaviour: the policy that drew the data, some updates ago
    π_prox   proximal: the policy at the start of the update, around which the clip draws its edges
    π        current: the policy that learns

    w = min( π_prox / μ, C ),    ratio = π / π_prox
    objective = w · min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â )

While the trainer waits for nobody, data are some versions old. One ratio per reason keeps two
things apart: the weight π_prox / μ repairs the age, the clip limits what this update may do.
"""

import copy
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from ppo_lessons.clip import clipped_surrogate
from ppo_lessons.importance import effective_sample_size, importance_ratios
from ppo_lessons.rlhf import TokenPolicy, pack
from ppo_lessons.shapes import (
    check_bool,
    check_finite,
    check_positive,
    check_same_shape,
    masked_mean,
    stop_masked,
)
from ppo_lessons.tokens import Prompts, Responses
from ppo_lessons.variants.sampling import check_at_least_one

Data = TypeVar("Data")


class VersionedBuffer(Generic[Data]):
    """A queue between generator and trainer in which each batch knows the policy that drew it.

    First in, first out: the oldest batch that is still allowed comes next. What has become too old
    is dropped and counted. Dropping is no free choice: long responses take longest to draw, so they
    are the ones that are too old, and the trainer sees more short ones than the policy writes.

    Args:
        capacity: batches that it holds at most, at least 1. A generator that finds it full has to
            wait: that bounds the age without dropping anything.

    Raises:
        ValueError: if capacity is below 1.
    """

    def __init__(self, capacity: int):
        check_at_least_one(capacity=capacity)
        self.capacity = capacity
        self.dropped = 0
        self._waiting: deque[tuple[int, Data]] = deque()

    def __len__(self) -> int:
        """How many batches wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether the generator has to wait."""
        return len(self._waiting) >= self.capacity

    def push(self, batch: Data, *, version: int) -> None:
        """Add a batch.

        Args:
            batch: whatever was drawn.
            version: updates that the policy which drew it had seen.

        Raises:
            ValueError: if version is below 0, the buffer is full, or a newer batch already waits.
        """
        if version < 0:
            raise ValueError(
                f"version is {version}; expected at least 0, the updates that the policy had seen. "
                "Count from 0."
            )
        if self.full:
            raise ValueError(
                f"the buffer holds {len(self)} of {self.capacity} batches; expected room for one "
                "more. Pop one first, or choose a larger capacity."
            )
        if self._waiting and version < self._waiting[-1][0]:
            raise ValueError(
                f"version is {version}; expected at least {self._waiting[-1][0]}, the newest that "
                "waits, since versions only grow. Push batches in the order of their versions."
            )
        self._waiting.append((version, batch))

    def pop(self, *, version: int, max_age: int) -> tuple[Data, int] | None:
        """Take the oldest batch that is not too old.

        Args:
            version: updates that the trainer's policy has seen by now.
            max_age: the largest age that is used, at least 0 (versions).

        Returns:
            The batch and its age, version − version of the batch; None if there is none.

        Raises:
            ValueError: if max_age is negative, or a batch comes from a later version.
        """
        if max_age < 0:
            raise ValueError(f"max_age is {max_age}; expected at least 0 versions. Raise it.")
        while self._waiting:
            drawn_by, batch = self._waiting[0]
            age = version - drawn_by
            if age < 0:  # it stays where it is
                raise ValueError(
                    f"version is {version}, and a batch of version {drawn_by} waits; expected no "
                    "data from the future. Pass the trainer's own version."
                )
            self._waiting.popleft()
            if age <= max_age:
                return batch, age
            self.dropped += 1
        return None

    def ages(self, *, version: int) -> dict[int, int]:
        """Count what waits, by age.

        Args:
            version: updates that the trainer's policy has seen by now.

        Returns:
            Age (versions) → number of batches, youngest first.
        """
        counts = Counter(version - drawn_by for drawn_by, _ in self._waiting)
        return dict(sorted(counts.items()))


def truncated_weights(
    log_probs_proximal: Float[Tensor, "*batch"],
    log_probs_behaviour: Float[Tensor, "*batch"],
    *,
    largest_weight: float,
) -> Float[Tensor, "*batch"]:
    """Correct for who drew the data, and cut what one sample may weigh.

        w = min( π_prox / μ, C )

    A constant: no gradient flows through it. C = ∞ is unbiased and may be dominated by one sample;
    a finite C is biased, towards what μ does more often.

    Args:
        log_probs_proximal: log π_prox of each action (nats).
        log_probs_behaviour: log μ of the same, written down while sampling (nats).
        largest_weight: C, above 0; 2 is common.

    Returns:
        The weights, in [0, C].

    Raises:
        ValueError: if the shapes differ or C is not above 0 (∞ is allowed).

    Source: Espeholt et al. 2018 (IMPALA) truncate so; for language models, verl and TRL.
    """
    if largest_weight != float("inf"):
        check_positive(largest_weight=largest_weight)
    ratios = importance_ratios(log_probs_proximal.detach(), log_probs_behaviour.detach())
    return ratios.clamp(max=largest_weight)


def decoupled_loss(
    log_probs: Float[Tensor, "*batch"],
    log_probs_proximal: Float[Tensor, "*batch"],
    log_probs_behaviour: Float[Tensor, "*batch"],
    advantages: Float[Tensor, "*batch"],
    *,
    clip_epsilon: float,
    largest_weight: float,
    mask: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    """Clip around the policy at the start of the update, and weigh by who drew the data.

        loss = −mean( w · min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â ) )
        ratio = π / π_prox,    w = min( π_prox / μ, C )

    w is above 0, so the loss is `clipped_surrogate_loss` with the advantages w·Â. With one update
    per batch the ratio is 1, and the clip never acts: what is left is the weight alone.

    Args:
        log_probs: log π(a | s), with gradient (nats).
        log_probs_proximal: log π_prox of the same (nats); a constant.
        log_probs_behaviour: log μ of the same (nats); a constant.
        advantages: Â; constants.
        clip_epsilon: ε, above 0 (as a change of π / π_prox).
        largest_weight: C, above 0; ∞ cuts nothing.
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The loss, to be minimised. Where μ is π_prox it is `clipped_surrogate_loss`.

    Raises:
        ValueError: if the shapes differ, or ε or C is not above 0.

    Source: Hilton et al. 2021, "Batch size-invariance for policy optimization"; the truncation is
        not theirs.
    """
    check_same_shape(
        log_probs=log_probs,
        log_probs_proximal=log_probs_proximal,
        log_probs_behaviour=log_probs_behaviour,
        advantages=advantages,
    )
    ratios = importance_ratios(stop_masked(log_probs, mask), log_probs_proximal.detach())
    surrogate = clipped_surrogate(ratios, advantages, clip_epsilon=clip_epsilon)
    weights = truncated_weights(
        log_probs_proximal, log_probs_behaviour, largest_weight=largest_weight
    )
    return -masked_mean(weights * surrogate, mask)


def effective_share(
    log_ratios: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    level: Literal["token", "response"],
) -> Float[Tensor, ""]:
    """Say which share of the data is left after weighing, token by token or response by response.

        share = (Σ w)² / (n·Σ w²)
        token     w = π / μ of each token              n = tokens
        response  w = π / μ of each whole response     n = responses

    The ratio of a response is the product of those of its tokens: 0.012 nats a token are a factor
    of 3.3 after 100 tokens. That is why the one is usable where the other is not. The token's
    weight is the biased one: it leaves out that the tokens before it were drawn by μ, too.

    Args:
        log_ratios: log π − log μ of each token (nats).
        mask: true at the tokens that the policy chose.
        level: "token" or "response".

    Returns:
        A share in (0, 1]; 1 when all weights are equal.

    Raises:
        ValueError: if the shapes differ, no token counts, one that counts is not finite, or the
            level is unknown.
        TypeError: if the mask is not boolean.

    Source: Kong 1992, for the sample size.
    """
    check_same_shape(log_ratios=log_ratios, mask=mask)
    check_bool(mask=mask)
    if level not in ("token", "response"):
        raise ValueError(f"level is {level!r}; expected 'token' or 'response'. Choose one.")
    if not mask.any():
        raise ValueError("mask is false everywhere; expected a token that counts. Draw some.")
    counted = log_ratios.masked_fill(~mask, 0)
    check_finite(log_ratios=counted)
    chosen = counted[mask] if level == "token" else counted.sum(1)[mask.any(1)]
    # a common factor changes nothing, and the largest weight is then 1
    weights = (chosen - chosen.max()).exp()
    return effective_sample_size(weights) / len(weights)


class AgedPolicy(nn.Module):
    """A policy that learns today and answers as it was some iterations ago.

    It fits where `train_tokens` expects a policy, and turns its loop into one with old rollouts:
    what trainer and generator of an asynchronous system do at once happens here in turn. In the
    first iterations there is nothing older than the start, so the age grows from 0.

    Args:
        policy: the one that learns.
        age: how many updates behind the generator is, at least 0 (iterations).

    Attributes:
        behaviour: log μ of the last answers (nats).

    Raises:
        ValueError: if age is negative.
    """

    def __init__(self, policy: TokenPolicy, *, age: int):
        super().__init__()
        if age < 0:
            raise ValueError(f"age is {age}; expected at least 0 iterations. Choose one.")
        self.policy, self.age = policy, age
        self.behaviour: Tensor | None = None
        self._versions: deque[dict[str, Tensor]] = deque(maxlen=age + 1)
        # in a list, so that its weights are not among the parameters that learn
        self._generator = [copy.deepcopy(policy)]

    @property
    def model(self) -> nn.Module:
        """The model that learns."""
        return self.policy.model

    def respond(self, prompts: Prompts, *, max_new_tokens: int, generator: Generator) -> Responses:
        """Answer as the oldest version that is kept, and write down its own log-probabilities.

        Args:
            prompts: left-padded.
            max_new_tokens: T (tokens).
            generator: the only source of randomness.

        Returns:
            The answers, with log μ of each token (nats).
        """
        weights = {name: w.detach().clone() for name, w in self.policy.state_dict().items()}
        self._versions.append(weights)
        self._generator[0].load_state_dict(self._versions[0])
        responses = self._generator[0].respond(
            prompts, max_new_tokens=max_new_tokens, generator=generator
        )
        self.behaviour = responses.log_probs
        return responses

    def evaluate(
        self, observations: Int[Tensor, "B 2 L"], actions: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Rate answers as the policy is today."""
        return self.policy.evaluate(observations, actions)


class DecoupledPolicy(AgedPolicy):
    """An aged policy whose ratio starts at 1: the clip's centre is π_prox, not μ.

    The answers come with log π_prox in place of log μ, and `weighing` puts min(π_prox / μ, C) into
    the advantages. The loss of the loop, unchanged, is then `decoupled_loss`.

    Args:
        policy: the one that learns.
        age: how many updates behind the generator is (iterations).
        largest_weight: C, above 0.

    Attributes:
        weights: w of each token of the last answers.
    """

    def __init__(self, policy: TokenPolicy, *, age: int, largest_weight: float):
        super().__init__(policy, age=age)
        self.largest_weight = largest_weight
        self.weights: Tensor | None = None

    @torch.no_grad()
    def respond(self, prompts: Prompts, *, max_new_tokens: int, generator: Generator) -> Responses:
        """Answer as an old version; rate as the one of today.

        Args:
            prompts: left-padded.
            max_new_tokens: T (tokens).
            generator: the only source of randomness.

        Returns:
            The answers, with log π_prox of each token (nats).
        """
        drawn = super().respond(prompts, max_new_tokens=max_new_tokens, generator=generator)
        proximal, _ = self.evaluate(pack(prompts, drawn), drawn.tokens)
        self.weights = truncated_weights(
            proximal, drawn.log_probs, largest_weight=self.largest_weight
        )
        return Responses(drawn.tokens, drawn.mask, proximal.masked_fill(~drawn.mask, 0))

    def weighing(self, advantages: Callable[..., Any]) -> Callable[..., Any]:
        """Make an advantage function that weighs each token by who drew it.

        Args:
            advantages: any function for that slot of `train_tokens`.

        Returns:
            The same, with w·Â in place of Â; what it takes and what else it gives stays.
        """

        def weighed(
            rewards: Tensor, values: Tensor | None, mask: Tensor, groups: Tensor
        ) -> tuple[Tensor, Tensor | None]:
            found, returns = advantages(rewards, values, mask, groups)
            assert self.weights is not None
            return (found * self.weights).masked_fill(~mask, 0), returns

        return weighed
