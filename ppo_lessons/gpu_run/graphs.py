"""One iteration as one function over tensors that stay where they are, and its CUDA graph."""

from typing import Any

from ppo_lessons.training_loop import Parts, TrainState


class Iteration:
    """Collect, score, squeeze, and one row of metrics: `iteration()` moves the run on by one.

    Attributes:
        graph: the `torch.cuda.CUDAGraph` once it is captured; None on the CPU, where the same
            function runs eagerly.
    """

    graph: Any

    def __call__(self) -> None:
        """Move the run on by one iteration, and write down its row."""
        raise NotImplementedError

    def advance(self) -> None:
        """Move the run on by one iteration without asking for anything: no row, no wait."""
        raise NotImplementedError


def captured(state: TrainState, parts: Parts) -> Iteration:
    """Give one iteration of a run as one function; on CUDA it is replayed as a graph.

    Args:
        state: the run; its tensors stay the same objects from now on.
        parts: the functions that fill the loop's slots.

    Returns:
        The function. The first calls run eagerly, then one captures, the others replay.

    Raises:
        ValueError: if a part must ask the device for a value (a stop_epochs of one's own), or the
            environments cannot be captured.
    """
    raise NotImplementedError
