"""R learners at once: one batched run with a leading replica axis (seeds × settings).

    collect   R·N environments step as one batch
    score     the critics of all replicas in one batched product
    squeeze   Σ_r loss_r: the gradient of the sum is, for each replica, the gradient of its own loss

Each replica is the lone run of `train` with its own generators: in float64 the two differ by
rounding alone.
"""

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Generator, Tensor

from ppo_lessons.ablations.envs import ReplicaEnvs
from ppo_lessons.ablations.networks import (
    ReplicaCategorical,
    ReplicaGaussian,
    stack_networks,
    unstack_networks,
)
from ppo_lessons.ablations.optimizers import ReplicaOptimizer, without_gradient
from ppo_lessons.ablations.slots import (
    ByColumns,
    ForEach,
    Rows,
    first_of,
    gathered,
    groups,
    key_of,
    side_by_side,
)
from ppo_lessons.critic import explained_variance, known_returns
from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.envs.batched import Task
from ppo_lessons.rollout import collect_rollout, score_values
from ppo_lessons.shapes import check_same_shape
from ppo_lessons.training_loop import (
    Parts,
    PPOConfig,
    TrainState,
    clipped_gradient_step,
    use_all_epochs,
)
from ppo_lessons.training_loop.train import (
    deferred_interrupt,
    mean_or_none,
    number_or_none,
    one_thread,
    start,
)
from ppo_lessons.training_loop.update import check_minibatch_size, minibatch_loss
from ppo_lessons.types import Batch, Carry, History, Rollout, UpdateStats

SHARED = ("num_envs", "num_steps", "num_epochs", "num_minibatches", "hidden_sizes", "total_steps")
NOT_FINITE = "not finite"
Columns = dict[str, Tensor]


def run_replicas(
    configs: Sequence[PPOConfig],
    *,
    task: Task,
    parts: Parts | Sequence[Parts] = Parts(),  # noqa: B008  (frozen)
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    on_iteration: "Callable[[Replicas], object] | None" = None,
) -> list[History]:
    """Train R learners in one batched run; each has its own networks, environments, generators.

    Args:
        configs: of each replica, with its seed. Numbers may differ; num_envs, num_steps,
            num_epochs, num_minibatches, hidden_sizes and total_steps must be the same.
        task: the rules of the environments; their steps draw no random numbers.
        parts: one for all, or one for each. A part that remembers something (`AdaptivePenalty`) is
            copied for each replica, and its `after_iteration` is called.
        device: where everything lives.
        dtype: of the states of the environments.
        on_iteration: called with the `Replicas` after each iteration; returns true to stop.

    Returns:
        For each replica what `train(config, envs=BatchedEnvs(task, num_envs), parts=parts)` gives;
        `seconds` are those of the whole batched iteration. Where `train` would raise since numbers
        are not finite any more, the rows end, and `stopped` says "not finite". Parameters that a
        loss leaves out stay as they are, as in `train`.

    Raises:
        ValueError: if replicas differ in what must be the same, or a part has no batched form.
    """
    with one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:
        replicas = Replicas(configs, task=task, parts=parts, device=device, dtype=dtype)
        while not replicas.finished:
            replicas.iterate()
            if on_iteration is not None and on_iteration(replicas) is True:
                replicas.stopped = "on_iteration"
                break
            if interrupted.is_set() and not replicas.finished:
                replicas.stopped = "interrupted"
                break
        return replicas.histories()


@dataclass
class Learner:
    """What belongs to one replica alone.

    Attributes:
        state: its lone run as `train` starts it; its networks are brought up to date at the end.
        parts: its functions; those that remember something are its own.
        returns: for each iteration the sum of the returns of the episodes that ended, and their
            number (reward, episodes).
        alive: false once its numbers were not finite any more.
    """

    state: TrainState
    parts: Parts
    returns: list[tuple[float, int]] = field(default_factory=list)
    alive: bool = True


class Replicas:
    """A batched run that can be moved on by one iteration, saved, and gone on with.

    Attributes:
        learners: what belongs to each replica alone.
        iteration: finished iterations.
        stopped: why it ended, as in `History`.

    Args:
        configs: as for `run_replicas`, and so are the others.
        task: the rules of the environments.
        parts: one for all, or one for each.
        device: where everything lives.
        dtype: of the states of the environments.
    """

    def __init__(
        self,
        configs: Sequence[PPOConfig],
        *,
        task: Task,
        parts: Parts | Sequence[Parts] = Parts(),  # noqa: B008  (frozen)
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ):
        each = [parts] * len(configs) if isinstance(parts, Parts) else list(parts)
        check_alike(configs, each)
        each = [own_copy(own) for own in each]
        self.config = configs[0]  # for the numbers that all share
        envs = [BatchedEnvs(task, self.config.num_envs, device=device, dtype=dtype) for _ in each]
        states = [start(*given) for given in zip(configs, envs, each, strict=True)]
        self.learners = [Learner(*pair) for pair in zip(states, each, strict=True)]
        self.networks = stack_networks([state.networks for state in states])
        self.optimizer = ReplicaOptimizer(self.networks, configs, each)
        self.envs = ReplicaEnvs(task, envs)
        self.generators = [state.generator for state in states]
        self.carry = joined([state.carry for state in states])
        self.rollout: Rollout | None = None
        self.iteration = 0
        self.stopped = "finished"
        self._for_each, self._by_columns = ForEach(), ByColumns()
        self._regroup()

    def __len__(self) -> int:
        """The number of replicas, R."""
        return len(self.learners)

    @property
    def finished(self) -> bool:
        """Whether all steps are used up."""
        return self.iteration >= self.config.num_iterations

    def iterate(self) -> None:
        """Go once through the four stages, and write down one row of metrics for each replica."""
        began = time.perf_counter()
        self.optimizer.set_learning_rates(self.iteration)
        # Collect: R policies act in R·N environments.
        actor = Actor(self.networks.policy, self.generators)
        self.rollout, self.carry = collect_rollout(
            self.envs, actor, self.carry, num_steps=self.config.num_steps,
            generator=self.generators[0], out=self.rollout,
        )  # fmt: skip
        self.envs.check_unused()
        # Score: all critics are asked once.
        rollout = self._by_replica(self.rollout)
        batch = self._score(rollout)
        # Squeeze: K epochs of small steps.
        stats = self._squeeze(batch)
        self._write_rows(rollout, batch, stats, began)
        self.iteration += 1

    def histories(self) -> list[History]:
        """Give each replica's rows and networks, as `train` gives them."""
        unstack_networks(self.networks, [learner.state.networks for learner in self.learners])
        for learner in self.learners:
            learner.state.history.stopped = self.stopped if learner.alive else NOT_FINITE
        return [learner.state.history for learner in self.learners]

    # --- save and go on --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly here."""
        return deepcopy(
            {
                "iteration": self.iteration,
                "networks": self.networks.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "envs": self.envs.state_dict(),
                "carry": {part.name: getattr(self.carry, part.name) for part in fields(Carry)},
                "generators": [generator.get_state() for generator in self.generators],
                "learners": [saved_learner(learner) for learner in self.learners],
            }
        )

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, by replicas of the same configs and parts."""
        self.iteration = saved["iteration"]
        self.networks.load_state_dict(saved["networks"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.envs.load_state_dict(saved["envs"])
        self.carry = Carry(**saved["carry"])
        for generator, state in zip(self.generators, saved["generators"], strict=True):
            generator.set_state(state)
        for learner, state in zip(self.learners, saved["learners"], strict=True):
            load_learner(learner, state)
        self._regroup()

    # --- the stages ------------------------------------------------------------------------

    def _regroup(self) -> None:
        """Form the groups of replicas that share a call; functions that remember may have moved."""

        def grouped(slots: str, numbers: str) -> list[tuple[Hashable, Rows, PPOConfig, Parts]]:
            pairs = [(learner.state.config, learner.parts) for learner in self.learners]
            keys = [key_of(*pair, slots, numbers) for pair in pairs]
            found = groups(keys)
            return [(keys[first_of(rows)], rows, *pairs[first_of(rows)]) for rows in found]

        self._by_loss = grouped(
            "normalize policy_loss value_loss total_loss", "clip_epsilon value_coef entropy_coef"
        )
        self._by_advantages = grouped("advantages", "gamma gae_lambda")
        self._by_gamma = grouped("", "gamma")

    def _by_replica(self, rollout: Rollout) -> Columns:
        """[T, R·N, ...] → [R, T, N, ...], without a copy."""
        return {
            part.name: getattr(rollout, part.name).unflatten(1, (len(self), -1)).movedim(1, 0)
            for part in fields(Rollout)
        }

    @torch.no_grad()
    def _score(self, rollout: Columns) -> Columns:
        """Ask the critics once, compute advantages once, lay time and environments out as one."""
        alike = all(learner.parts.score is score_values for learner in self.learners)
        values, next_values = (self._values if alike else self._values_one_by_one)(rollout)
        given = (
            rollout["rewards"],
            values,
            next_values,
            rollout["terminated"],
            rollout["truncated"],
        )
        found = []
        for key, rows, config, parts in self._by_advantages:
            numbers = {"gamma": config.gamma, "gae_lambda": config.gae_lambda}
            function = partial(parts.call, "advantages", **numbers)
            found.append(self._by_columns(key, function, *(tensor[rows] for tensor in given)))
        advantages = gathered([rows for _, rows, _, _ in self._by_advantages], found)
        check_same_shape(rewards=rollout["rewards"], advantages=advantages)
        columns = {name: rollout[name] for name in ("observations", "actions", "log_probs_old")}
        columns |= {"values_old": values, "advantages": advantages, "returns": advantages + values}
        return {name: tensor.flatten(1, 2) for name, tensor in columns.items()}

    def _values(self, rollout: Columns) -> tuple[Tensor, Tensor]:
        """What `score_values` gives to each replica: V at each state and at the one reached."""
        seen, critic = rollout["observations"], self.networks.critic
        T, N = seen.shape[1:3]
        values = critic(seen.flatten(1, 2)).unflatten(1, (T, N))
        elsewhere = rollout["terminated"] | rollout["truncated"]
        elsewhere[:, -1] = True
        places = elsewhere.nonzero(as_tuple=True)  # replica by replica
        counts = torch.bincount(places[0], minlength=len(self))
        # as many rows for each replica as the one with the most rows needs; the rest is unused
        row = (
            torch.arange(len(places[0]), device=seen.device)
            - (counts.cumsum(0) - counts)[places[0]]
        )
        asked = seen.new_zeros(len(self), int(counts.max()), *seen.shape[3:])
        asked[places[0], row] = rollout["next_observations"][places]
        next_values = values.roll(-1, dims=1)
        next_values[places] = critic(asked)[places[0], row]
        return values, next_values

    def _values_one_by_one(self, rollout: Columns) -> tuple[Tensor, Tensor]:
        """Call a score of one's own for each replica, with a critic of its own."""
        unstack_networks(self.networks, [learner.state.networks for learner in self.learners])
        pairs = []
        for index, learner in enumerate(self.learners):
            own = Rollout(**{name: tensor[index] for name, tensor in rollout.items()})
            pairs.append(learner.parts.call("score", learner.state.networks.critic, own))
        values, next_values = zip(*pairs, strict=True)
        return torch.stack(values), torch.stack(next_values)

    def _squeeze(self, batch: Columns) -> dict[str, Shaped[Tensor, "K M R"]]:
        """Go K times over all batches, each replica in an order of its own."""
        epochs, left_out = [], None
        for _ in range(self.config.num_epochs):
            indices, sizes = self._orders()
            shuffled = {name: taken(column, indices) for name, column in batch.items()}
            pieces = {name: column.split(sizes, dim=1) for name, column in shuffled.items()}
            steps = []
            for m in range(len(sizes)):
                minibatch = {name: columns[m] for name, columns in pieces.items()}
                by_group, measured = self._losses(minibatch)
                if left_out is None:  # the same for all minibatches of an iteration
                    left_out = without_gradient(by_group, self.optimizer.parameters)
                losses = gathered([rows for rows, _ in by_group], [each for _, each in by_group])
                measured["gradient_norm"] = self.optimizer.step(losses, left_out)
                steps.append(measured)
            epochs.append({name: torch.stack([step[name] for step in steps]) for name in steps[0]})
        return {name: torch.stack([epoch[name] for epoch in epochs]) for name in epochs[0]}

    def _orders(self) -> tuple[Tensor, list[int]]:
        """The rows of all minibatches of an epoch, [R, rows], and how many each has."""
        rows, M = self.config.batch_size, self.config.num_minibatches
        orders, sizes = [], set()
        for learner, generator in zip(self.learners, self.generators, strict=True):
            dealt = list(learner.parts.call("minibatches", rows, M, generator=generator))
            sizes.add(tuple(map(len, dealt)))
            orders.append(torch.cat(dealt))
        if len(sizes) != 1 or not sizes <= {found for found in sizes if found}:
            raise ValueError(
                f"Parts.minibatches deals minibatches of sizes {sorted(sizes)}; expected the same "
                "sizes for all replicas, and at least one minibatch. Train such a setting alone."
            )
        return torch.stack(orders), list(sizes.pop())

    def _losses(self, minibatch: Columns) -> tuple[list[tuple[Rows, Tensor]], Columns]:
        """Give the losses of each group, with gradient, and what is worth knowing about all."""
        seen, actions = minibatch["observations"], minibatch["actions"]
        log_probs, entropies = self.networks.policy.evaluate(seen, actions)
        given = (log_probs, entropies, self.networks.critic(seen), *minibatch.values())
        found = []
        for key, rows, config, parts in self._by_loss:
            function = partial(loss_of, config, parts, list(minibatch))
            found.append(self._for_each(key, function, *(tensor[rows] for tensor in given)))
        members = [rows for _, rows, _, _ in self._by_loss]
        measured = {name: gathered(members, [group[name] for group in found]) for name in found[0]}
        del measured["loss"]
        return [(rows, group["loss"]) for rows, group in zip(members, found, strict=True)], measured

    # --- one row of metrics for each replica -----------------------------------------------

    @torch.no_grad()
    def _write_rows(self, rollout: Columns, batch: Columns, stats: Columns, began: float) -> None:
        self._silence_broken(rollout, stats)
        explained = self._explained(rollout, batch)
        last = {name: values[-1].mean(dim=0).tolist() for name, values in stats.items()}
        ended = rollout["terminated"] | rollout["truncated"]
        counts = ended.flatten(1).sum(dim=1).tolist()
        finished = rollout["episode_returns"][ended].split(counts)  # replica by replica
        seconds = time.perf_counter() - began
        for index, learner in enumerate(self.learners):
            if not learner.alive:
                continue
            state = learner.state
            returns = finished[index].tolist()
            state.recent_returns.extend(returns)
            learner.returns.append((sum(returns), counts[index]))
            row = {
                "iteration": self.iteration + 1,
                "env_steps": (self.iteration + 1) * self.config.batch_size,
                "episode_return": mean_or_none(state.recent_returns),
                "num_episodes": counts[index],
                "learning_rate": state.config.learning_rate_at(self.iteration),
                "num_epochs": self.config.num_epochs,
                **{name: last[name][index] for name in ROW_ORDER},
                **{name: values[index] for name, values in explained.items()},
                "seconds": seconds,
            }
            state.history.rows.append(row)
            self._tell(learner, stats, index)
        self._regroup()

    def _tell(self, learner: Learner, stats: Columns, index: int) -> None:
        """Let the parts that remember something look at the iteration."""
        for slot in remembered(learner.parts):
            learner.state.stats = UpdateStats(
                **{name: stats[name][..., index] for name in ROW_ORDER}
            )
            getattr(learner.parts, slot).after_iteration(learner.state)

    def _silence_broken(self, rollout: Columns, stats: Columns) -> None:
        """Take replicas whose numbers are not finite any more out of the run."""
        for name in ("rewards", "observations"):
            if not rollout[name].isfinite().all():
                raise ValueError(
                    f"iteration {self.iteration + 1}: the environments gave {name} that are not "
                    "finite; expected finite numbers. Look at the task."
                )
        parameters = self.optimizer.parameters
        whole = torch.stack([tensor.flatten(1).isfinite().all(dim=1) for tensor in parameters])
        whole = whole.all(dim=0) & stats["gradient_norm"].isfinite().all(dim=0).all(dim=0)
        if whole.all():
            return
        broken = (~whole).nonzero().squeeze(-1).tolist()
        self.optimizer.silence(broken)
        for index in broken:
            self.learners[index].alive = False

    def _explained(self, rollout: Columns, batch: Columns) -> dict[str, list[float | None]]:
        """Explained variance of each replica, against λ-returns and against what really came."""
        values = batch["values_old"]
        against_lambda = torch.vmap(explained_variance)(values, batch["returns"])
        came, reaches_end = self._known_returns(rollout)
        honest = [
            number_or_none(explained_variance(expected[known], returns[known]))
            for expected, returns, known in zip(values, came, reaches_end, strict=True)
        ]
        return {
            "ev_lambda": [None if math.isnan(ev) else ev for ev in against_lambda.tolist()],
            "ev_monte_carlo": honest,
        }

    def _known_returns(self, rollout: Columns) -> tuple[Tensor, Tensor]:
        facts = [rollout[name] for name in ("rewards", "terminated", "truncated")]
        pairs = []
        for _, rows, config, _ in self._by_gamma:
            function = partial(known_returns, gamma=config.gamma)
            pairs.append(side_by_side(function, *(tensor[rows] for tensor in facts)))
        members = [rows for _, rows, _, _ in self._by_gamma]
        returns, known = (gathered(members, found) for found in zip(*pairs, strict=True))
        return returns.flatten(1, 2), known.flatten(1, 2)


ROW_ORDER = tuple(part.name for part in fields(UpdateStats))


class Actor:
    """The policies of all replicas as one, for `collect_rollout`; each draws from its generator."""

    def __init__(
        self, policy: ReplicaCategorical | ReplicaGaussian, generators: Sequence[Generator]
    ):
        self._policy, self._generators = policy, generators

    def sample(
        self, observations: Shaped[Tensor, " RN *observation"], generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """Draw for the rows of each replica from its own generator; the one given is not used."""
        actions, log_probs = self._policy.sample_each(self._apart(observations), self._generators)
        return actions.flatten(0, 1), log_probs.flatten()

    def evaluate(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Give log π(a | s) and the entropy of each row, by the policy of its replica (nats)."""
        log_probs, entropies = self._policy.evaluate(
            self._apart(observations), self._apart(actions)
        )
        return log_probs.flatten(), entropies.flatten()

    def greedy(self, observations: Tensor) -> Tensor:
        """The most likely action of each row, by the policy of its replica."""
        return self._policy.greedy(self._apart(observations)).flatten(0, 1)

    def _apart(self, rows: Tensor) -> Tensor:
        """Lay the rows of each replica along an axis of their own."""
        return rows.unflatten(0, (len(self._generators), -1))


class Given:
    """Stands for the networks of one replica, whose answers are there already."""

    def __init__(self, log_probs: Tensor, entropies: Tensor, values: Tensor):
        self._rated, self._values = (log_probs, entropies), values

    @property
    def policy(self) -> "Given":
        """Itself: it has `evaluate`."""
        return self

    def evaluate(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies that were computed for all replicas at once."""
        return self._rated

    def critic(self, observations: Tensor) -> Tensor:
        """Values that were computed for all replicas at once."""
        return self._values


def loss_of(
    config: PPOConfig, parts: Parts, names: Sequence[str], *tensors: Tensor
) -> dict[str, Tensor]:
    """Give what `minibatch_loss` gives for one replica, from what its networks have answered.

    Args:
        config: ε and the coefficients.
        parts: the functions that fill the loop's slots.
        names: of the columns of a batch.
        *tensors: log-probabilities, entropies, values; then the columns.
    """
    minibatch = Batch(**dict(zip(names, tensors[3:], strict=True)), valid=None)
    loss, measured = minibatch_loss(Given(*tensors[:3]), minibatch, config, parts)
    return {"loss": loss, **measured}


# --- helpers -------------------------------------------------------------------------------


def taken(column: Shaped[Tensor, "R B ..."], indices: Tensor) -> Shaped[Tensor, "R rows ..."]:
    """Take from each replica the rows that its own order names."""
    R, B = column.shape[:2]
    places = indices + B * torch.arange(R, device=indices.device).unsqueeze(1)
    return column.flatten(0, 1).index_select(0, places.flatten()).unflatten(0, (R, -1))


def joined(carries: Sequence[Carry]) -> Carry:
    """Lay what the replicas start from one after the other."""
    return Carry(
        **{
            part.name: torch.cat([getattr(carry, part.name) for carry in carries])
            for part in fields(Carry)
        }
    )


def remembered(parts: Parts) -> list[str]:
    """The slots whose function wants to be told after each iteration."""
    return [s.name for s in fields(Parts) if hasattr(getattr(parts, s.name), "after_iteration")]


def own_copy(parts: Parts) -> Parts:
    """Parts whose functions that remember something belong to nobody else."""
    own = {slot: deepcopy(getattr(parts, slot)) for slot in remembered(parts)}
    return replace(parts, **own) if own else parts


def saved_learner(learner: Learner) -> dict[str, Any]:
    """What belongs to one replica alone, as plain numbers."""
    return {
        "rows": learner.state.history.rows,
        "recent_returns": list(learner.state.recent_returns),
        "returns": [list(pair) for pair in learner.returns],
        "alive": learner.alive,
        "remembered": {s: vars(getattr(learner.parts, s)) for s in remembered(learner.parts)},
    }


def load_learner(learner: Learner, saved: Mapping[str, Any]) -> None:
    """Put back what `saved_learner` gave."""
    learner.state.history.rows = [dict(row) for row in saved["rows"]]
    learner.state.recent_returns.extend(saved["recent_returns"])
    learner.returns = [(total, count) for total, count in saved["returns"]]
    learner.alive = saved["alive"]
    for slot, values in saved["remembered"].items():
        vars(getattr(learner.parts, slot)).update(values)


# --- what can be batched -------------------------------------------------------------------


def why_not_batched(parts: Parts) -> str | None:
    """Say which part has no batched form, or None if all have one.

    Args:
        parts: of a setting.
    """
    only = {
        "collect": collect_rollout,
        "gradient_step": clipped_gradient_step,
        "stop_epochs": use_all_epochs,
    }
    for slot, function in only.items():
        given = getattr(parts, slot)
        if given is not function:
            label = getattr(given, "__name__", type(given).__name__)
            return f"Parts.{slot} is {label}, and only {function.__name__} has a batched form"
    return None


def check_alike(configs: Sequence[PPOConfig], parts: Sequence[Parts]) -> None:
    """Require replicas that fit into one batch.

    Raises:
        ValueError: with what differs or has no batched form.
    """
    if not configs or len(configs) != len(parts):
        raise ValueError(
            f"there are {len(configs)} configs and {len(parts)} parts; expected at least one "
            "config, and one Parts for all or for each. Give as many of both."
        )
    for name in SHARED:
        values = {getattr(config, name) for config in configs}
        if len(values) > 1:
            raise ValueError(
                f"the replicas differ in {name}: {sorted(values)}; expected the same, since they "
                "run in one batch. Run them in batches of their own; run_study does."
            )
    for own in parts:
        reason = why_not_batched(own)
        if reason is not None:
            raise ValueError(
                f"{reason}; expected parts that do not look across replicas. Train such a setting "
                "alone; run_study does."
            )
        check_minibatch_size(configs[0].batch_size, configs[0].num_minibatches, own)
