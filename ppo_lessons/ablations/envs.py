"""R times N environments that step as one batch; each replica keeps its own generator."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Shaped
from torch import Generator, Tensor

from ppo_lessons.envs import BatchedEnvs, EnvStep
from ppo_lessons.envs.actions import cut
from ppo_lessons.envs.batched import State, Task, where


class ReplicaEnvs(BatchedEnvs):
    """The environments of R replicas, one after the other: rows r·N to (r + 1)·N are those of r.

    What a replica draws when one of its episodes ends is what its lone `BatchedEnvs` would draw.

    Args:
        task: the rules; steps must draw nothing, since they are taken by all at once.
        each: the environments of the replicas, reset; they are left as they are.

    Raises:
        ValueError: if the replicas have different numbers of environments.
    """

    def __init__(self, task: Task, each: Sequence[BatchedEnvs]):
        first = each[0]
        super().__init__(task, len(each) * first.num_envs, device=first.device, dtype=first.dtype)
        self.num_replicas, self.envs_each = len(each), first.num_envs
        saved = [envs.state_dict() for envs in each]
        self.generators = [Generator(self.device) for _ in each]
        for generator, own in zip(self.generators, saved, strict=True):
            generator.set_state(own["generator"])
        names = saved[0]["state"]
        self._state = {name: torch.cat([own["state"][name] for own in saved]) for name in names}
        self._elapsed = torch.cat([own["elapsed"] for own in saved])
        # nobody's: a task that draws from it in a step would not do what a lone run does
        self._unused = self._generator.get_state()
        self._rows = torch.arange(self.num_envs, device=self.device).view(self.num_replicas, -1)

    def step(self, actions: Shaped[Tensor, " RN *action"]) -> EnvStep:
        """Take one action in each environment; actions are those of policies, and not looked at."""
        state, rewards, terminated = self.task.advance(
            self._state, cut(actions, self._limits), generator=self._generator
        )
        elapsed = self._elapsed + 1
        truncated = elapsed >= self.task.time_limit
        reached = self.task.observe(state)
        ended = terminated | truncated
        observations = reached
        if ended.any():
            state = self._begin_anew(state, ended)
            elapsed = elapsed.masked_fill(ended, 0)
            observations = self.task.observe(state)
        self._state, self._elapsed = state, elapsed
        return EnvStep(observations, reached, rewards, terminated, truncated, self._valid)

    def check_unused(self) -> None:
        """Require that no step has drawn from the one generator that belongs to nobody.

        Raises:
            ValueError: otherwise.
        """
        if not torch.equal(self._generator.get_state(), self._unused):
            raise ValueError(
                f"{type(self.task).__name__} draws random numbers within its steps; expected a "
                "task whose steps draw nothing, since all replicas step at once. Train such a task "
                "alone, run by run."
            )

    def state_dict(self) -> dict[str, Any]:
        """Save states, clocks and the generator of each replica."""
        generators = [generator.get_state() for generator in self.generators]
        return {**super().state_dict(), "generators": generators}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: if the state is that of another task or another number of environments.
        """
        super().load_state_dict(state)
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.set_state(saved.cpu())

    def _begin_anew(self, state: State, ended: Bool[Tensor, " RN"]) -> State:
        """Draw first states for the replicas in which something ended, and put them there."""
        concerned = ended.view(self.num_replicas, -1).any(dim=1).nonzero().squeeze(-1)
        drawn = [
            self.task.start(self.envs_each, generator=self.generators[index], dtype=self.dtype)
            for index in concerned.tolist()
        ]
        rows = self._rows[concerned].flatten()
        fresh = {name: torch.cat([own[name] for own in drawn]) for name in drawn[0]}
        kept = {name: tensor[rows] for name, tensor in state.items()}
        chosen = where(ended[rows], fresh, kept)
        return {name: tensor.index_copy(0, rows, chosen[name]) for name, tensor in state.items()}
