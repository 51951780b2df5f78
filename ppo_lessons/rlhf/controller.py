"""What sets the price β from one iteration to the next."""

import math

from ppo_lessons.rlhf.checks import check_whole
from ppo_lessons.shapes import check_positive


def keep_beta(beta: float, kl: float, *, num_samples: int) -> float:
    """Leave the price as it is: today's usual choice.

    Args:
        beta: β of the iteration that is over.
        kl: its KL from the reference (nats per answer); not used.
        num_samples: its answers; not used.

    Returns:
        β.
    """
    return beta


def adaptive_beta(
    beta: float, kl: float, *, target_kl: float, num_samples: int, kl_horizon: int | float
) -> float:
    """Raise the price a little when the policy is too far from its reference, lower it otherwise.

        error = clip(KL / target − 1, −0.2, 0.2)
        β ← β·(1 + error·num_samples / horizon)

    After about `kl_horizon` answers with the largest error β has changed by a fifth. Lesson 03's
    controller doubles and halves, and looks at the KL of one iteration from π_old; this one looks
    at the whole way from π_ref.

    As a slot of the loop: `train_tokens(..., next_beta=partial(adaptive_beta, target_kl=2.0,
    kl_horizon=1000))`.

    Args:
        beta: β of the iteration that is over, above 0 (reward per nat).
        kl: KL(π ‖ π_ref) that was measured, summed over the tokens of an answer (nats per answer);
            estimated, it may be below 0.
        target_kl: the KL that is wanted, above 0, in the same unit.
        num_samples: answers since the last change, at least 1.
        kl_horizon: how slow the controller is, above 0 (answers).

    Returns:
        β of the next iteration.

    Raises:
        ValueError: if a number is out of range, or the step is so large that β could fall below 0.

    Source: Ziegler et al. 2019, "Fine-tuning language models from human preferences"; there the
    factor is 0.1 per batch, in its published code num_samples / horizon.
    """
    check_positive(beta=beta, target_kl=target_kl, kl_horizon=float(kl_horizon))
    check_whole(num_samples=num_samples)
    if not math.isfinite(kl):
        raise ValueError(
            f"kl is {kl}; expected a finite number, or β would be lost for good. Look at the "
            "log-probabilities that it was made of."
        )
    if num_samples >= 5 * kl_horizon:
        raise ValueError(
            f"kl_horizon is {kl_horizon} for {num_samples} answers; expected more than a fifth of "
            "them, or one step could make β negative. Choose a larger kl_horizon."
        )
    error = min(max(kl / target_kl - 1, -0.2), 0.2)
    return beta * (1 + error * num_samples / kl_horizon)
