"""Batched environments for other libraries: a gymnasium `VectorEnv` with numpy arrays."""

from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ppo_lessons.envs.batched import BatchedEnvs


def as_vector_env(envs: BatchedEnvs) -> "BatchedVectorEnv":
    """Offer batched environments as a gymnasium vector environment.

    Args:
        envs: what is wrapped; its episodes start anew within the same step.

    Returns:
        A vector environment in the mode SAME_STEP: what an ended episode had reached is in
        `infos["final_obs"]`.
    """
    return BatchedVectorEnv(envs)


class BatchedVectorEnv(VectorEnv[Any, Any, Any]):
    """A gymnasium vector environment around `BatchedEnvs`.

    Args:
        envs: what is wrapped.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  theirs: gymnasium

    def __init__(self, envs: BatchedEnvs):
        self.batched = envs
        self.num_envs = envs.num_envs
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start all copies afresh.

        Raises:
            ValueError: if there is a seed for each copy; one seed serves all.
        """
        if isinstance(seed, list):
            raise ValueError(
                f"seed is a list of {len(seed)}; expected one seed for all copies. Give an integer."
            )
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        return self.batched.reset(seed).cpu().numpy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take one action in each copy."""
        given = torch.as_tensor(np.asarray(actions), device=self.batched.device)
        step = self.batched.step(given)
        terminated, truncated = step.terminated.cpu().numpy(), step.truncated.cpu().numpy()
        ended = terminated | truncated
        infos: dict[str, Any] = {}
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            reached = step.next_observations.cpu().numpy()
            for n in np.flatnonzero(ended):
                final[n] = reached[n]
            infos = {"final_obs": final, "_final_obs": ended}
        rewards = step.rewards.cpu().numpy().astype(np.float64)
        return step.observations.cpu().numpy(), rewards, terminated, truncated, infos
