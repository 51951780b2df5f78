"""Collect, score, squeeze, renew: the four stages, until the steps are used up."""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from ppo_lessons.critic import explained_variance, known_returns
from ppo_lessons.envs import Envs, make_envs
from ppo_lessons.rollout import flatten, start_carry
from ppo_lessons.shapes import check_same_shape
from ppo_lessons.training_loop.checkpoint import as_checkpoint, check_same_run, read_checkpoint
from ppo_lessons.training_loop.config import PPOConfig
from ppo_lessons.training_loop.parts import Parts
from ppo_lessons.training_loop.update import update
from ppo_lessons.types import Batch, Carry, History, Rollout, UpdateStats


@dataclass
class TrainState:
    """Everything that a run is at the end of an iteration; `on_iteration` is given it.

    Attributes:
        config: the settings.
        envs: the environments; do not step or reset them, since the next rollout goes on in them.
            For a test make others: `evaluate(policy, make_envs(...), seed=...)`.
        networks: policy and critic.
        optimizer: over their parameters.
        generator: the only source of randomness from here on.
        carry: what the next rollout starts from.
        history: one row of metrics per finished iteration.
        recent_returns: of the last 100 finished episodes (reward).
        rollout: of this iteration; the next one overwrites it.
        batch: of this iteration; it looks into the rollout, so copy what you want to keep.
        stats: of this iteration.
        whole: false while an iteration is under way; its networks are then between two rows.
        resumed: a sentence on what could not be restored, or empty.
    """

    config: PPOConfig
    envs: Envs
    networks: Any
    optimizer: Optimizer
    generator: Generator
    carry: Carry
    history: History
    recent_returns: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    rollout: Rollout | None = None
    batch: Batch | None = None
    stats: UpdateStats | None = None
    whole: bool = True
    resumed: str = ""

    @property
    def iteration(self) -> int:
        """The number of finished iterations."""
        return len(self.history)

    @property
    def env_steps(self) -> int:
        """The number of rows collected so far (environment steps)."""
        return self.iteration * self.config.batch_size

    def checkpoint(self) -> dict[str, Any]:
        """Everything that `train(resume=...)` needs to go on exactly here."""
        return as_checkpoint(self)


OnIteration = Callable[[TrainState], object]


def train(
    config: PPOConfig,
    *,
    envs: Envs | None = None,
    parts: Parts = Parts(),  # noqa: B008  (frozen, so one instance may serve all calls)
    on_iteration: OnIteration | None = None,
    resume: str | Path | Mapping[str, Any] | None = None,
) -> History:
    """Train a policy and a critic with PPO.

    Ctrl-C, or the stop button of a notebook, ends the run after the iteration that is under way;
    a second one ends it at once. Torch runs on one thread meanwhile: on these small networks more
    threads only wait for each other.

    Args:
        config: every number of the run.
        envs: environments to train in; made from config.env if left out.
        parts: the functions that fill the loop's slots.
        on_iteration: called with the `TrainState` after each iteration; returns true to stop.
        resume: a checkpoint, or its path, to go on from. Classic-control environments and probes
            go on bit by bit; others begin new episodes.

    Returns:
        One row of metrics per iteration, and the trained networks.

    Raises:
        ValueError: if the environments, the parts or the checkpoint do not fit the config, or if
            numbers stop being finite.
        TypeError: if envs are no `Envs`, or on_iteration returns neither a truth nor None.
    """
    if torch.is_inference_mode_enabled():
        raise ValueError(
            "torch.inference_mode is on; expected it off, since training needs gradients. Call "
            "train outside of it."
        )
    with one_thread(), torch.enable_grad(), deferred_interrupt() as interrupted:
        state = start(config, envs, parts)
        if resume is not None:
            restore(state, read_checkpoint(resume))
        state.history.stopped = run(state, parts, on_iteration, interrupted)
    return state.history


def run(
    state: TrainState,
    parts: Parts,
    on_iteration: OnIteration | None,
    interrupted: threading.Event,
) -> str:
    """Iterate until the steps are used up or something says stop; say which."""
    try:
        while state.iteration < state.config.num_iterations:
            iterate(state, parts)
            if on_iteration is not None and wants_to_stop(on_iteration(state)):
                return "on_iteration"
            if interrupted.is_set() and state.iteration < state.config.num_iterations:
                return "interrupted"
    except KeyboardInterrupt:
        return "interrupted"
    return "finished"


def wants_to_stop(answer: object) -> bool:
    """Read what on_iteration returned: a truth of Python, numpy or torch, or None.

    Raises:
        TypeError: if it is something else.
    """
    item = getattr(answer, "item", None)
    value = item() if callable(item) else answer
    if value is None or isinstance(value, bool):
        return value is True
    raise TypeError(
        f"on_iteration returned {answer!r}; expected true to stop, or false or None to go on. "
        "Return a condition, or nothing."
    )


def check_networks(state: TrainState) -> None:
    """Require finite facts, gradients and weights after an iteration; waits for the device once.

    Raises:
        ValueError: with the iteration and what to look at.
    """
    assert state.stats is not None
    assert state.rollout is not None
    names = ("rewards", "observations", "next_observations")
    facts = {name: getattr(state.rollout, name) for name in names}
    learned = (state.stats.gradient_norm, *state.networks.parameters())
    looked_at = (facts["rewards"], facts["observations"], *learned)
    if bool(torch.stack([tensor.isfinite().all() for tensor in looked_at]).all()):
        return
    for name, tensor in facts.items():
        if not tensor.isfinite().all():
            step, env = (~tensor.isfinite()).nonzero()[0, :2].tolist()
            raise ValueError(
                f"iteration {state.iteration + 1}: environment {env} gave {name} that are not "
                f"finite at step {step} of the rollout; expected finite numbers. Look at the "
                "environment. Checkpoints of earlier iterations are as they were."
            )
    raise ValueError(
        f"iteration {state.iteration + 1} left gradients or weights that are not finite; expected "
        "finite numbers. Lower learning_rate, or look at what the losses and advantages in Parts "
        "give back."
    )


def start(config: PPOConfig, envs: Envs | None, parts: Parts) -> TrainState:
    """Make everything that a run needs, all of it from config.seed."""
    envs = make_envs(config.env, config.num_envs) if envs is None else envs
    if not isinstance(envs, Envs):
        raise TypeError(
            f"envs is a {type(envs).__name__}; expected environments that step together, `Envs`. "
            "Wrap a gymnasium vector environment: GymEnvs(envs)."
        )
    if envs.num_envs != config.num_envs:
        raise ValueError(
            f"envs holds {envs.num_envs} environments; expected config.num_envs = "
            f"{config.num_envs}. Make as many environments as the config says."
        )
    # Weights are drawn on the CPU, so that a seed means the same network on every device.
    seeds = Generator().manual_seed(config.seed)
    networks = parts.call(
        "networks", envs.single_observation_space.shape, envs.single_action_space,
        hidden_sizes=config.hidden_sizes, generator=seeds,
    ).to(envs.device)  # fmt: skip
    optimizer = parts.call("optimizer", networks, learning_rate=config.learning_rate)
    generator = Generator(envs.device)
    generator.manual_seed(int(torch.randint(2**62, (), generator=seeds)))
    return TrainState(
        config=config,
        envs=envs,
        networks=networks,
        optimizer=optimizer,
        generator=generator,
        carry=start_carry(envs, seed=config.seed),
        history=History(config=config, networks=networks),
    )


def iterate(state: TrainState, parts: Parts) -> None:
    """Go once through the four stages, and write down one row of metrics.

    Args:
        state: the run; moved on by one iteration.
        parts: the functions that fill the loop's slots.
    """
    began = time.perf_counter()
    state.whole = False
    config, networks, generator = state.config, state.networks, state.generator
    learning_rate = config.learning_rate_at(state.iteration)
    for group in state.optimizer.param_groups:
        group["lr"] = learning_rate

    # Collect: the policy acts.
    rollout, state.carry = parts.call(
        "collect", state.envs, networks.policy, state.carry,
        num_steps=config.num_steps, generator=generator, out=state.rollout,
    )  # fmt: skip
    # Score: the critic is asked once.
    state.rollout, state.batch = rollout, score(rollout, networks, config, parts)
    # Squeeze: K epochs of small steps.
    state.stats = update(
        networks, state.optimizer, state.batch, config, parts=parts, generator=generator
    )
    check_networks(state)
    # Renew: the policy that was just trained collects the next rollout.
    seconds = time.perf_counter() - began
    state.history.rows.append(metrics_row(state, learning_rate) | {"seconds": seconds})
    state.whole = True


def metrics_row(state: Any, learning_rate: float) -> dict[str, Any]:
    """What is worth keeping of an iteration, under the names of `docs/notation.md`."""
    config, rollout, stats = state.config, state.rollout, state.stats
    finished = rollout.episode_returns[rollout.ended & rollout.valid]
    state.recent_returns.extend(finished.tolist())
    return {
        "iteration": state.iteration + 1,
        "env_steps": state.env_steps + config.batch_size,
        "episode_return": mean_or_none(state.recent_returns),
        "num_episodes": len(finished),
        "learning_rate": learning_rate,
        "num_epochs": len(stats.kl_k1),
        **stats.last_epoch(),
        **explained(rollout, state.batch, config),
    }


@torch.no_grad()
def score(rollout: Rollout, networks: Any, config: PPOConfig, parts: Parts) -> Batch:
    """Ask the critic once, compute advantages once, and lay everything out flat.

    Args:
        rollout: what happened.
        networks: has `critic`.
        config: γ and λ.
        parts: the functions that fill the loop's slots.

    Returns:
        The batch that all K epochs learn from.

    Raises:
        ValueError: if Parts.advantages gives back another shape than [T, N].
    """
    values, next_values = parts.call("score", networks.critic, rollout)
    advantages = parts.call(
        "advantages", rollout.rewards, values, next_values, rollout.terminated, rollout.truncated,
        gamma=config.gamma, gae_lambda=config.gae_lambda,
    )  # fmt: skip
    check_same_shape(rewards=rollout.rewards, advantages=advantages)
    return flatten(rollout, values, advantages)


@torch.no_grad()
def explained(rollout: Rollout, batch: Batch, config: PPOConfig) -> dict[str, float | None]:
    """The critic's explained variance, against λ-returns and against what really came."""
    returns, known = known_returns(
        rollout.rewards, rollout.terminated, rollout.truncated, gamma=config.gamma
    )
    valid = rollout.valid.flatten() if batch.valid is None else batch.valid
    known = known.flatten() & valid
    return {
        "ev_lambda": number_or_none(
            explained_variance(batch.values_old[valid], batch.returns[valid])
        ),
        "ev_monte_carlo": number_or_none(
            explained_variance(batch.values_old[known], returns.flatten()[known])
        ),
    }


def number_or_none(tensor: Tensor) -> float | None:
    """A number, or None where there was nothing to compute it from."""
    number = tensor.item()
    return None if math.isnan(number) else number


def mean_or_none(numbers: deque[float]) -> float | None:
    """The mean, or None of nothing."""
    return sum(numbers) / len(numbers) if numbers else None


def restore(state: TrainState, saved: Mapping[str, Any]) -> None:
    """Put a fresh state where the checkpoint was taken.

    Raises:
        ValueError: if the checkpoint is that of other settings, networks or environments.
    """
    check_same_run(state.config, saved)
    try:
        state.networks.load_state_dict(saved["networks"])
    except RuntimeError as error:
        raise ValueError(
            f"the checkpoint is that of other networks ({error}); expected those of this run. "
            "Resume with the environments and the Parts.networks of the saved run."
        ) from None
    kind = type(state.optimizer).__name__
    if saved["optimizer_kind"] != kind:
        raise ValueError(
            f"the checkpoint is that of {saved['optimizer_kind']}, and Parts.optimizer makes "
            f"{kind}; expected the same optimiser. Resume with the parts of the saved run, or "
            "start anew."
        )
    state.optimizer.load_state_dict(deepcopy(saved["optimizer"]))  # Adam writes into it
    state.generator.set_state(saved["generator"])
    state.history.rows = [dict(row) for row in saved["rows"]]
    state.recent_returns.extend(saved["recent_returns"])
    if saved["envs"] is not None:
        state.envs.load_state_dict(saved["envs"])
    if episodes_go_on(saved["envs"]):
        state.carry = Carry(**saved["carry"])
    else:
        state.carry = start_carry(state.envs, seed=state.config.seed + state.iteration)
        state.resumed = "these environments cannot be saved, so new episodes begin here"


def episodes_go_on(saved: Mapping[str, Any] | None) -> bool:
    """Say whether the environments themselves were saved, below what was put around them."""
    while saved is not None and "envs" in saved and not isinstance(saved["envs"], list):
        saved = saved["envs"]
    return saved is not None


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, and put the number back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that an iteration ends whole; the second one raises.

    Only the main thread receives signals; elsewhere nothing is changed.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.getsignal(signal.SIGINT)

    def once(number: int, frame: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, once)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
