"""What an advantage is made of, row by row, and what may be otherwise in it.

    Â_t = scale·(r_t + discount·V'_t − baseline·V_t) + carried·Â_next

`V'` is cut where `cut_future` is true, Â_next where `cut_trace` is. Each row is judged by itself,
with the Â of the row after it taken as given: a mistake then shows where it acts, and not where
the sum has carried it to.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ppo_lessons.audit.explain import Prediction
from ppo_lessons.critic import td_errors


@dataclass(frozen=True)
class Scan:
    """One way to compute advantages.

    Attributes:
        rewards: r_t (reward).
        values: V(s_t) (discounted reward).
        next_values: V' of each row (discounted reward).
        terminated: fact: the task ended with this step.
        truncated: fact: a time limit ended the episode with this step.
        cut_future: where V' counts 0.
        cut_trace: where the sum stops.
        known: false where the facts do not say what V' is.
        gamma: γ.
        gae_lambda: λ.
        rounding: relative error of the given numbers.
        discount: what V' is multiplied by.
        carried: what the Â of the row after is multiplied by.
        scale: what the TD error is multiplied by.
        baseline: what V(s_t) is multiplied by, before it is subtracted.
        after: index of the row after, in the flattened table; its size where there is none.
        written: false where a loop never wrote a number.
        last_known: whether V of what came after the last row was given.
    """

    rewards: Tensor
    values: Tensor
    next_values: Tensor
    terminated: Tensor
    truncated: Tensor
    cut_future: Tensor
    cut_trace: Tensor
    known: Tensor
    gamma: float
    gae_lambda: float
    rounding: float
    discount: float
    carried: float
    after: Tensor
    written: Tensor
    scale: float = 1.0
    baseline: float | Tensor = 1.0
    last_known: bool = True

    @property
    def following(self) -> Tensor:
        """V of the row after, whose episode it may not be; V' at the last row."""
        return self.row_after(self.values, self.next_values)

    @property
    def errors(self) -> Tensor:
        """The TD error of each row, as the stage makes it."""
        usual = isinstance(self.baseline, float) and self.baseline == self.scale == 1.0
        if usual and self.discount == self.gamma:
            return td_errors(
                self.rewards, self.values, self.futures, self.cut_future, gamma=self.gamma
            )
        future = self.discount * self.futures
        return self.scale * (self.rewards + future - self.baseline * self.values)

    @property
    def futures(self) -> Tensor:
        """V', and 0 where it is cut."""
        return self.next_values.masked_fill(self.cut_future | ~self.known, 0)

    def row_after(self, table: Tensor, at_the_end: Tensor) -> Tensor:
        """What a table holds in the row after, or something else where there is none."""
        padded = torch.cat([table.flatten(), table.new_zeros(1)])
        return torch.where(self.after < table.numel(), padded[self.after], at_the_end)

    def predict(self, advantages: Tensor) -> Prediction:
        """Predict each Â from the given one of the row after."""
        later = self.row_after(advantages, torch.zeros_like(advantages))
        later = later.masked_fill(self.cut_trace, 0)
        numbers = (self.errors + self.carried * later).masked_fill(~self.written, 0)
        terms = self.rewards.abs() + self.futures.abs() + self.values.abs() + later.abs()
        return Prediction(numbers, self.rounding * (terms + numbers.abs()), self.known)

    def may_reproduce(self, advantages: Tensor, at: Tensor) -> bool:
        """Look at some places only, which is quick: false if already these are others.

        Args:
            advantages: the given Â.
            at: indices of the places in the flattened table.

        Returns:
            Whether it is worth looking at all places.
        """

        def pick(table: Tensor) -> Tensor:
            return table.flatten()[at]

        padded = torch.cat([advantages.flatten(), advantages.new_zeros(1)])
        later = padded[pick(self.after)].masked_fill(pick(self.cut_trace), 0)
        future = pick(self.next_values).masked_fill(pick(self.cut_future), 0)
        baseline = pick(self.baseline) if isinstance(self.baseline, Tensor) else self.baseline
        rewards, values, given = pick(self.rewards), pick(self.values), pick(advantages)
        errors = self.scale * (rewards + self.discount * future - baseline * values)
        numbers = (errors + self.carried * later).masked_fill(~pick(self.written), 0)
        terms = rewards.abs() + future.abs() + values.abs() + later.abs() + numbers.abs()
        apart = (given - numbers).abs() > 2 * self.rounding * terms
        return not bool((apart & pick(self.known)).any())

    def predict_errors(self, errors: Tensor) -> Prediction:
        """Predict the TD errors alone."""
        return replace(self, carried=0.0).predict(errors)

    def advantages(self) -> Tensor:
        """Run the whole recursion."""
        errors = self.errors
        # in the dtype of the errors: a number times a mask would be float32
        carried = torch.full_like(errors, self.carried).masked_fill(self.cut_trace, 0)
        advantages, following = torch.zeros_like(errors), torch.zeros_like(errors[0])
        for t in reversed(range(len(errors))):  # backwards: Â_t needs Â_{t+1}
            following = (errors[t] + carried[t] * following) * self.written[t]
            advantages[t] = following
        return advantages


def rows_below(shape: torch.Size) -> Tensor:
    """The index of (t + 1, n) for each (t, n), and the size of the table for the last row."""
    size, columns = shape.numel(), shape[-1]
    return (torch.arange(size) + columns).clamp(max=size).reshape(shape)
