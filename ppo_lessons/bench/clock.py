"""What the seconds of a run count, for ours and for every peer alike.

Speed: from the end of the first iteration to the end of the last. Imports, environments, networks
and the first iteration, in which libraries still load and allocate, are left out.

Time to solve: from the first environment step to the first test that is passed. The tests, the same
for all, are left out.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

GOAL = 475.0  # mean return of the test; what gymnasium calls solved
EVERY = 2_048  # environment steps from one test to the next
EPISODES = 100  # of a test, greedy
TEST_SEED = 10_000


class Clock:
    """CPU and wall seconds of this process, written down at environment steps.

    Attributes:
        marks: environment steps so far, CPU seconds, wall seconds.
    """

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []
        self._left_out = [0.0, 0.0]

    def mark(self, env_steps: int) -> None:
        """Write down where the clock stands after so many steps."""
        cpu, wall = self._now()
        self.marks.append((env_steps, cpu - self._left_out[0], wall - self._left_out[1]))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Leave out what happens in here."""
        before = self._now()
        try:
            yield
        finally:
            for kind, (after, start) in enumerate(zip(self._now(), before, strict=True)):
                self._left_out[kind] += after - start

    def speed(self) -> dict[str, Any]:
        """What came after the first iteration.

        Raises:
            ValueError: if there are fewer than two iterations.
        """
        later = [mark for mark in self.marks if mark[0] > 0]
        if len(later) < 2:
            raise ValueError(
                f"{len(later)} iterations were measured; expected at least 2, since the first is "
                "left out. Run longer."
            )
        return between(later[0], later[-1])

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()


def between(first: tuple[int, float, float], last: tuple[int, float, float]) -> dict[str, Any]:
    """Give steps and seconds from one mark to another."""
    steps, cpu, wall = (end - start for end, start in zip(last, first, strict=True))
    return {"env_steps": steps, "cpu_seconds": cpu, "wall_seconds": wall}


class Race:
    """A run until its test is passed: every 2,048 steps, 100 greedy episodes, mean at least 475.

    The tests of all contenders are played on the same batched CartPole from the same first states.
    """

    def __init__(self) -> None:
        from ppo_lessons.envs import BatchedEnvs
        from ppo_lessons.envs.classic import CartPole

        self.clock = Clock()
        self.tests = BatchedEnvs(CartPole(), EPISODES)
        self.solved = False
        warm_up()
        self.clock.mark(0)

    def passed(self, env_steps: int, greedy: Callable[[Tensor], Tensor]) -> bool:
        """Test now, if it is time to; say whether the race is over.

        Args:
            env_steps: so far.
            greedy: observations [100, 4] to the most likely actions [100].

        Returns:
            True once a test is passed.
        """
        from ppo_lessons.networks import CategoricalPolicy
        from ppo_lessons.training_loop import evaluate

        if env_steps == 0 or env_steps % EVERY:
            return False
        self.clock.mark(env_steps)
        with self.clock.stopped():
            policy = CategoricalPolicy(Chosen(greedy))
            mean = evaluate(policy, self.tests, seed=TEST_SEED).mean().item()
        self.solved = mean >= GOAL
        return self.solved

    def reading(self) -> dict[str, Any]:
        """Steps and seconds until the last test, and whether it was passed."""
        return {**between(self.clock.marks[0], self.clock.marks[-1]), "solved": self.solved}


class Chosen(torch.nn.Module):
    """The logits of a policy that always takes the action which a function names.

    Args:
        function: observations [N, 4] to actions [N], of which there are two.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, observations: Tensor) -> Tensor:
        """Give 0 to the action, −∞ to the other."""
        return torch.nn.functional.one_hot(self.function(observations).long(), 2).log()


def warm_up() -> None:
    """Take one step of Adam with what stands for nothing: the first one loads half of torch."""
    weight = torch.nn.Parameter(torch.ones(2, 2))
    optimizer = torch.optim.Adam([weight], lr=1e-3)
    (torch.ones(2, 2) @ weight).tanh().sum().backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    optimizer.step()


def repeated(call: Callable[[], object], *, seconds: float, env_steps: int) -> dict[str, Any]:
    """Call something again and again for so many CPU seconds, after a few calls that do not count.

    Args:
        call: what is measured.
        seconds: how long (CPU seconds).
        env_steps: of one call.

    Returns:
        Steps and seconds in all.
    """
    for _ in range(5):
        call()
    clock = Clock()
    clock.mark(0)
    calls, until = 0, time.process_time() + seconds
    while time.process_time() < until:
        for _ in range(10):
            call()
        calls += 10
    clock.mark(calls * env_steps)
    return between(*clock.marks)
