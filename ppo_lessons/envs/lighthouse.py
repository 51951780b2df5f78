"""A lighthouse: a task that never ends by itself, and whose value is known.

At the foot (height 0) the keeper climbs, or takes an offer, and then the task is over. The stairs
(height 1) only lead up. At the lamp (height 2) each step earns 1, for ever. A keeper who climbs has

    V(lamp) = 1 / (1 − γ),     V(height) = γ^(2 − height)·V(lamp)
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

CLIMB, TAKE = 0, 1  # the two actions; above the foot both climb, and keep the lamp lit
LAMP = 2  # its height


class Lighthouse(gymnasium.Env[np.ndarray, np.int64]):
    """A keeper climbs to a lamp that pays 1 per step for ever, or takes an offer at the foot.

    It sets no time limit. Put one around it, with `gymnasium.wrappers.TimeLimit`.

    Args:
        offer: what leaving at the foot earns (reward).
    """

    def __init__(self, offer: int | float = 7.0):
        self.observation_space = Box(0, LAMP, (1,), np.float32)
        self.action_space = Discrete(2)
        self.offer = float(offer)
        self.height = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Go back to the foot."""
        super().reset(seed=seed)
        self.height = 0
        return self._observe(), {}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Climb, keep the lamp lit, or take the offer."""
        if self.height == 0 and action == TAKE:
            return self._observe(), self.offer, True, False, {}
        reward = float(self.height == LAMP)
        self.height = min(self.height + 1, LAMP)
        return self._observe(), reward, False, False, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.height], dtype=np.float32)
