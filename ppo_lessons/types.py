"""The data that flows through the loop: what happened, what is learned from it, what was seen.

    Rollout [T, N]  facts only: no values, no advantages
    Batch [B]       what the squeeze stage learns from
    UpdateStats     what the squeeze stage measured, by epoch and minibatch
    History         what `train` gives back

`T` is time, `N` the environment, `B` a flat batch. Flags at index t describe the step t → t+1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class Rollout:
    """T steps of N environments: only what happened.

    Attributes:
        observations: s_t, on which a_t was chosen.
        next_observations: s_{t+1} before any reset: at the end of an episode its last observation,
            not the first one of the next.
        actions: a_t, as the policy drew them.
        rewards: what the step t → t+1 earned (reward).
        terminated: the step reached a state after which nothing follows.
        truncated: we stopped watching after this step; the world would have gone on.
        log_probs_old: log π_old(a_t | s_t), written down while sampling (nats).
        valid: false for rows that are no real step (gymnasium's next-step autoreset makes them).
        episode_returns: rewards of the running episode, summed up to and including this step; in
            the task's own unit where `rewards` are scaled.
        episode_lengths: its number of steps so far (steps).
    """

    observations: Shaped[Tensor, "T N *observation"]
    next_observations: Shaped[Tensor, "T N *observation"]
    actions: Shaped[Tensor, "T N *action"]
    rewards: Float[Tensor, "T N"]
    terminated: Bool[Tensor, "T N"]
    truncated: Bool[Tensor, "T N"]
    log_probs_old: Float[Tensor, "T N"]
    valid: Bool[Tensor, "T N"]
    episode_returns: Float[Tensor, "T N"]
    episode_lengths: Int[Tensor, "T N"]

    @property
    def ended(self) -> Bool[Tensor, "T N"]:
        """Terminated or truncated: the next row belongs to another episode."""
        return self.terminated | self.truncated

    def write(self, t: int, **row: Tensor) -> None:
        """Copy one time step of every environment into row t."""
        for name, values in row.items():
            getattr(self, name)[t].copy_(values)


@dataclass(frozen=True)
class Carry:
    """What one rollout hands to the next, so that episodes may span several rollouts.

    Attributes:
        observations: on which the next actions will be chosen.
        episode_returns: rewards of the running episodes so far (reward).
        episode_lengths: their number of steps so far (steps).
    """

    observations: Shaped[Tensor, " N *observation"]
    episode_returns: Float[Tensor, " N"]
    episode_lengths: Int[Tensor, " N"]


@dataclass(frozen=True)
class Batch:
    """What one iteration learns from; every row is one sample.

    Attributes:
        observations: s.
        actions: a, drawn by π_old.
        log_probs_old: log π_old(a | s) (nats); never recomputed.
        values_old: the critic's V(s) when the rollout was scored (discounted reward).
        advantages: Â, not normalised (discounted reward).
        returns: Â + V, the critic's target (discounted reward).
        valid: false for rows that must not be learned from; None if all rows are real steps.
    """

    observations: Shaped[Tensor, " B *observation"]
    actions: Shaped[Tensor, " B *action"]
    log_probs_old: Float[Tensor, " B *tokens"]
    values_old: Float[Tensor, " B *tokens"]
    advantages: Float[Tensor, " B *tokens"]
    returns: Float[Tensor, " B *tokens"]
    valid: Bool[Tensor, " B *tokens"] | None

    def __len__(self) -> int:
        """The number of rows, B."""
        return len(self.observations)

    def rows(self, indices: Int[Tensor, " M"]) -> "Batch":
        """Take some rows, as a batch of their own."""

        def part(column: Tensor | None) -> Any:
            return None if column is None else column[indices]

        return Batch(**{f.name: part(getattr(self, f.name)) for f in fields(self)})


@dataclass(frozen=True)
class UpdateStats:
    """What the squeeze stage saw: one number per epoch (first axis) and minibatch (second axis).

    Every number is taken before that minibatch's own gradient step. `kl_k1` and `kl_k3` estimate
    KL(π_old ‖ π), in nats; the two fractions are those of `clip_fractions`.
    """

    policy_loss: Float[Tensor, "K M"]
    value_loss: Float[Tensor, "K M"]
    entropy: Float[Tensor, "K M"]
    kl_k1: Float[Tensor, "K M"]
    kl_k3: Float[Tensor, "K M"]
    fraction_outside: Float[Tensor, "K M"]
    fraction_zero_gradient: Float[Tensor, "K M"]
    max_ratio_deviation: Float[Tensor, "K M"]
    gradient_norm: Float[Tensor, "K M"]

    def last_epoch(self) -> dict[str, float]:
        """Each measure averaged over the minibatches of the last epoch."""
        return {f.name: getattr(self, f.name)[-1].mean().item() for f in fields(self)}


@dataclass
class History:
    """What `train` gives back: one row of metrics per iteration, and the trained networks.

    Attributes:
        config: the settings of the run.
        rows: a dictionary of metrics per finished iteration; the names are those of
            `docs/notation.md`. A metric that could not be computed is None.
        networks: policy and critic after the last finished iteration; a second Ctrl-C may have
            broken into the next one.
        stopped: why it ended: "finished", "on_iteration" or "interrupted".
    """

    config: Any
    networks: Any
    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = "finished"

    def __len__(self) -> int:
        """The number of finished iterations."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, in the order of the iterations."""
        return iter(self.rows)

    def __getitem__(self, metric: str) -> list[Any]:
        """One metric over all iterations.

        Raises:
            KeyError: if there is no such metric, with the names that exist.
        """
        if self.rows and metric not in self.rows[0]:
            known = ", ".join(sorted(self.rows[0]))
            raise KeyError(f"no metric {metric!r}; there are: {known}")
        return [row[metric] for row in self.rows]

    def __repr__(self) -> str:
        """One sentence, the same on every machine as long as the run is."""
        return f"History of {len(self)} iterations ({self.stopped})"
