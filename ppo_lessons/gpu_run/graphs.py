"""One iteration as one function over tensors that stay where they are, and its CUDA graph."""

import time
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.envs import BatchedEnvs
from ppo_lessons.gpu_run.optimizer import place_optimizer, set_learning_rate
from ppo_lessons.gpu_run.pinned import Pinned
from ppo_lessons.gpu_run.rows import as_row, check_row, summary
from ppo_lessons.training_loop import Parts, TrainState, score, squeeze, use_all_epochs
from ppo_lessons.training_loop.train import mean_or_none
from ppo_lessons.training_loop.update import check_minibatch_size

MOST_RETURNS = 100  # `TrainState.recent_returns` keeps no more
WARM_UP = 3  # iterations before the capture: they fill caches and make the optimiser's tensors


class Iteration:
    """Collect, score, squeeze, and one row of metrics: `iteration()` moves the run on by one.

    Attributes:
        graph: the `torch.cuda.CUDAGraph` once it is captured; None on the CPU, where the same
            function runs eagerly.
        summary: the numbers of the row, on the device; the next iteration overwrites them.
        capture_seconds: what the capture took; 0 before, and without a graph.
    """

    def __init__(self, state: TrainState, parts: Parts):
        self.state = state
        self.parts = parts
        self.graph: Any = None
        self.summary: Tensor | None = None
        self.capture_seconds = 0.0
        self._carried = {"carry": state.carry}
        self._pinned = Pinned(state.envs, self._carried)
        self._calls = 0
        on_cuda = state.envs.device.type == "cuda"
        self._stream: Any = torch.cuda.Stream(state.envs.device) if on_cuda else None
        if on_cuda:
            place_optimizer(state.optimizer, for_a_graph=True)

    def __call__(self) -> None:
        """Move the run on by one iteration, and write down its row.

        Raises:
            ValueError: if numbers are not finite any more, or the iteration cannot be captured.
        """
        began = time.perf_counter()
        learning_rate = self.state.config.learning_rate_at(self.state.iteration)
        self.advance()
        row = fetched_row(self.state, self.summary, learning_rate)
        self.state.history.rows.append(row | {"seconds": time.perf_counter() - began})
        self.state.whole = True

    def advance(self) -> None:
        """Move the run on by one iteration without asking for anything: no row, no wait.

        The learning rate is that of the next row, so calls in a row share it.
        """
        self.state.whole = False
        set_learning_rate(
            self.state.optimizer, self.state.config.learning_rate_at(self.state.iteration)
        )
        if self._stream is None:
            self.once()
        elif self.graph is not None:
            self.graph.replay()
        elif self._calls < WARM_UP:
            self._aside()
        else:
            began = time.perf_counter()
            self.graph = self._capture()
            self.capture_seconds = time.perf_counter() - began
            self.graph.replay()  # a capture only writes down what is to be done
        self._calls += 1

    def once(self) -> None:
        """Run the iteration: the function that the graph is made of."""
        state, parts, config = self.state, self.parts, self.state.config
        rollout, self._carried["carry"] = parts.call(
            "collect", state.envs, state.networks.policy, state.carry,
            num_steps=config.num_steps, generator=state.generator, out=state.rollout,
        )  # fmt: skip
        batch = score(rollout, state.networks, config, parts)
        batch = replace(batch, valid=None)  # batched environments make real steps only
        stats = squeeze(
            state.networks, state.optimizer, batch, config, parts=parts, generator=state.generator
        )
        self.summary = summary(rollout, batch, stats, state.networks, config)
        self._pinned.settle()
        state.carry, state.rollout = self._carried["carry"], rollout
        state.batch, state.stats = batch, stats

    def _aside(self) -> None:
        """Run it on the stream that will be captured, in order with the current one."""
        current = torch.cuda.current_stream(self.state.envs.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream), warnings.catch_warnings():
            # the optimiser says that it is made for a graph, and is not in one yet
            warnings.filterwarnings("ignore", message=".*capturable=True")
            self.once()
        current.wait_stream(self._stream)

    def _capture(self) -> Any:
        graph = torch.cuda.CUDAGraph()
        for generator in [self.state.generator, *self._pinned.generators]:
            graph.register_generator_state(generator)
        # Gradients then come from the graph's own memory, as PyTorch's notes on CUDA graphs ask.
        self.state.optimizer.zero_grad(set_to_none=True)
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self.once()
        except RuntimeError as error:
            raise ValueError(
                f"this iteration cannot be captured ({str(error).splitlines()[0]}); expected that "
                "nothing in it waits for the device. Train without graphs, or look for what waits: "
                "torch.cuda.set_sync_debug_mode('error')."
            ) from error
        return graph


def captured(state: TrainState, parts: Parts) -> Iteration:
    """Give one iteration of a run as one function; on CUDA it is replayed as a graph.

    Args:
        state: the run; its tensors stay the same objects from now on.
        parts: the functions that fill the loop's slots. A compiled function is one of them:
            `Parts(policy_loss=torch.compile(clipped_surrogate_loss))`.

    Returns:
        The function. On CUDA the first calls run eagerly, then one captures, the others replay.
        Each call is an iteration of the run, warm-up or not.

    Raises:
        ValueError: if a part must ask the device for a value (a stop_epochs of one's own), a
            minibatch would hold one sample only, or the environments cannot be captured.
    """
    check_minibatch_size(state.config.batch_size, state.config.num_minibatches, parts)
    if parts.stop_epochs is not use_all_epochs:
        raise ValueError(
            "Parts.stop_epochs is a function of your own; expected use_all_epochs, since it would "
            "wait for the device after each epoch. Leave it out, or train without graphs."
        )
    inner = state.envs
    while not isinstance(inner, BatchedEnvs):
        inner = getattr(inner, "envs", None)
        if inner is None:
            raise ValueError(
                f"the environments are {type(state.envs).__name__}; expected BatchedEnvs, whose "
                "steps are tensor programs. Make BatchedEnvs(task, num_envs, device=...)."
            )
    return Iteration(state, parts)


def fetched_row(state: TrainState, numbers: Any, learning_rate: float) -> dict[str, Any]:
    """Fetch what the device has computed, and write it under the names of `docs/notation.md`.

    Raises:
        ValueError: if numbers are not finite.
    """
    rollout: Any = state.rollout
    finished = rollout.episode_returns[rollout.ended]  # waits for the device: the one place
    row = as_row(numbers.tolist())
    check_row(row, state.iteration + 1)
    state.recent_returns.extend(finished[-MOST_RETURNS:].tolist())
    return {
        "iteration": state.iteration + 1,
        "env_steps": state.env_steps + state.config.batch_size,
        "episode_return": mean_or_none(state.recent_returns),
        "num_episodes": len(finished),
        "learning_rate": learning_rate,
        "num_epochs": state.config.num_epochs,
        **row,
    }
