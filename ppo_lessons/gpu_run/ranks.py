"""Several processes, one policy: each has its own environments, all take the same steps.

    gradient = mean over ranks of their gradients          one all-reduce of one flat tensor
    Â ← (Â − mean) / (std + 10⁻⁸)                          mean and std of all ranks' minibatches

Each rank draws other episodes and other actions, or it would only do the same work twice. All
ranks begin with the same weights and take the same steps, so their weights stay the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from ppo_lessons.gae import normalize_advantages
from ppo_lessons.training_loop import Parts, PPOConfig, clipped_gradient_step

PATIENCE = timedelta(minutes=5)  # how long a rank waits for the others


class RankLost(RuntimeError):
    """Another rank does not answer any more."""


@dataclass(frozen=True)
class Ranks:
    """This process among its fellows.

    Attributes:
        rank: from 0 to world_size − 1.
        world_size: number of processes.
        device: where this one trains.
    """

    rank: int = 0
    world_size: int = 1
    device: str = "cpu"

    def share(self, config: PPOConfig) -> PPOConfig:
        """Give the settings of this rank: its part of the environments, and a seed of its own.

        Raises:
            ValueError: if the environments cannot be shared out evenly, or a rank would get more
                minibatches than samples.
        """
        if config.num_envs % self.world_size:
            fitting = config.num_envs - config.num_envs % self.world_size or self.world_size
            raise ValueError(
                f"num_envs is {config.num_envs} for {self.world_size} ranks; expected a multiple "
                f"of {self.world_size}, since num_envs counts the whole job and each rank gets as "
                f"many. Choose num_envs={fitting}."
            )
        num_envs = config.num_envs // self.world_size
        samples = num_envs * config.num_steps
        if config.num_minibatches > samples:
            raise ValueError(
                f"num_minibatches is {config.num_minibatches} for {samples} samples on each of "
                f"{self.world_size} ranks; expected at most {samples}. Choose fewer minibatches."
            )
        return replace(
            config, num_envs=num_envs, total_steps=config.num_iterations * samples,
            seed=rank_seed(config.seed, self.rank),
        )  # fmt: skip


def one_process() -> Ranks:
    """What a run without torchrun is."""
    return Ranks()


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Meet the other processes that torchrun has started; one process alone meets nobody.

    Args:
        device: "cpu" (gloo), or "cuda" (NCCL, one GPU for each rank).

    Yields:
        This process among its fellows.

    Raises:
        ValueError: if there are fewer GPUs than ranks.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks(device=device)
        return
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if device.startswith("cuda"):
        if local_rank >= torch.cuda.device_count():
            raise ValueError(
                f"rank {rank} is number {local_rank} on this machine, which has "
                f"{torch.cuda.device_count()} GPUs; expected a GPU for each rank. Start fewer: "
                f"torchrun --nproc-per-node {max(1, torch.cuda.device_count())}."
            )
        device = f"cuda:{local_rank}"
        torch.cuda.set_device(local_rank)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(rank, size, device)
    finally:
        dist.destroy_process_group()


def rank_seed(seed: int, rank: int) -> int:
    """Give each rank a seed of its own; rank 0 has that of the job.

    Args:
        seed: of the job.
        rank: from 0 on.

    Returns:
        The seed, at least 0 and below 2⁶³.
    """
    if rank == 0:
        return seed
    drawn = torch.randint(2**62, (rank,), generator=Generator().manual_seed(seed))
    return int(drawn[-1])


def rank_parts(parts: Parts) -> Parts:
    """Put the two reductions into their slots.

    Args:
        parts: the functions of the run.

    Returns:
        The same with `reduced_gradient_step` and `normalize_over_ranks`.

    Raises:
        ValueError: if other functions stand there, or the squeeze stage may end early: each rank
            would then take steps of its own.
    """
    standard = Parts()
    for slot in ("gradient_step", "normalize", "stop_epochs"):
        if getattr(parts, slot) is not getattr(standard, slot):
            raise ValueError(
                f"Parts.{slot} is a function of your own; expected the standard one with several "
                "ranks, which must take the same steps. Leave it out, or train in one process."
            )
    return replace(parts, gradient_step=reduced_gradient_step, normalize=normalize_over_ranks)


def reduced_gradient_step(
    loss: Float[Tensor, ""], networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Float[Tensor, ""]:
    """Average the gradient over all ranks, then clip it, then step (`Parts.gradient_step`).

    The loss is a mean over a minibatch, and all ranks' minibatches are equally large: the mean of
    the gradients is that of the union. Clipping comes after, or the steps would depend on how the
    samples were shared out.

    Args:
        loss: of this rank's minibatch; minimised.
        networks: the same on all ranks.
        optimizer: takes the step.
        max_grad_norm: longest gradient that is applied as it is.

    Returns:
        The norm of the mean gradient before it was shortened; the same on all ranks.
    """
    if world_size() == 1:
        return clipped_gradient_step(loss, networks, optimizer, max_grad_norm=max_grad_norm)
    optimizer.zero_grad()
    loss.backward()
    average_gradients(networks)
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


@torch.no_grad()
def average_gradients(networks: nn.Module) -> None:
    """Replace each gradient by its mean over the ranks: one message, since each costs a wait."""
    for parameter in networks.parameters():
        if parameter.grad is None:  # every rank must send the same places
            parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in networks.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients if gradient is not None])
    flat = summed(flat) / world_size()
    pieces = flat.split([parameter.numel() for parameter in networks.parameters()])
    for parameter, piece in zip(networks.parameters(), pieces, strict=True):
        parameter.grad = piece.view_as(parameter)


@torch.no_grad()
def normalize_over_ranks(
    advantages: Float[Tensor, "*batch"], *, mask: Bool[Tensor, "*batch"] | None = None
) -> Float[Tensor, "*batch"]:
    """Normalise by mean and deviation over the minibatches of all ranks (`Parts.normalize`).

        Â ← (Â − mean) / (std + 10⁻⁸)

    Args:
        advantages: Â of this rank's minibatch (discounted reward).
        mask: true where a sample counts; all count when it is left out.

    Returns:
        The normalised advantages (no unit).
    """
    if world_size() == 1:
        return normalize_advantages(advantages, mask=mask)
    counts = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    count = counts.sum()
    mean = (advantages * counts).sum() / count.clamp(min=1)
    mean = mean + ((advantages - mean) * counts).sum() / count.clamp(min=1)  # rounding, for equal Â
    m2 = ((advantages - mean).square() * counts).sum()
    count, mean, m2 = combine_moments(gathered(torch.stack([count, mean, m2]))).unbind()
    return (advantages - mean) / ((m2 / count.clamp(min=1)).sqrt() + 1e-8)


def combine_moments(moments: Float[Tensor, "ranks 3"]) -> Float[Tensor, "3"]:
    """Give count, mean and sum of squared deviations of the union from those of each rank.

        mean = Σ n_i·mean_i / n,     n = Σ n_i,     m2 = Σ ( m2_i + n_i·(mean_i − mean)² )

    Nothing is squared before its mean is taken away: the mean of squares minus the square of the
    mean would lose its digits where the mean is large.

    Args:
        moments: one row for each rank: count, mean, m2.

    Returns:
        Count, mean and m2 of all.

    Source: Chan, Golub and LeVeque 1979 (updating formulae for sample variances).
    """
    counts, means, deviations = moments.unbind(dim=-1)
    count = counts.sum()
    # from the first one on: equal means then give exactly that mean
    mean = means[0] + (counts * (means - means[0])).sum() / count.clamp(min=1)
    m2 = (deviations + counts * (means - mean).square()).sum()
    return torch.stack([count, mean, m2])


@torch.no_grad()
def send_weights(networks: nn.Module) -> None:
    """Give all ranks the weights of rank 0."""
    for tensor in networks.state_dict().values():
        with answered():
            dist.broadcast(tensor, src=0)


def world_size() -> int:
    """The number of ranks; 1 where none were started."""
    return dist.get_world_size() if dist.is_initialized() else 1


def summed(numbers: Tensor) -> Tensor:
    """Add up what all ranks hold; the argument is overwritten."""
    with answered():
        dist.all_reduce(numbers)
    return numbers


def gathered(numbers: Float[Tensor, " n"]) -> Float[Tensor, "ranks n"]:
    """Give the rows of all ranks to each."""
    rows = [torch.empty_like(numbers) for _ in range(world_size())]
    with answered():
        dist.all_gather(rows, numbers)
    return torch.stack(rows)


def gathered_objects(thing: Any) -> list[Any] | None:
    """Give the things of all ranks to rank 0; None to the others."""
    rank, size = dist.get_rank(), dist.get_world_size()
    things: list[Any] | None = [None] * size if rank == 0 else None
    with answered():
        dist.gather_object(thing, things, dst=0)
    return things


@contextmanager
def answered() -> Iterator[None]:
    """Turn a failed message into the sentence that the job ends.

    Raises:
        RankLost: if another rank does not answer.
    """
    try:
        yield
    except RuntimeError as error:  # gloo raises no class of its own
        reason = str(error).splitlines()[0]
        raise RankLost(f"another rank does not answer any more ({reason})") from error
