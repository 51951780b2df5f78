"""Several processes, one policy: each has its own environments, all take the same steps.

gradient = mean over ranks of their gradients      one all-reduce of one flat tensor
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.optim import Optimizer

from ppo_lessons.training_loop import Parts


@dataclass(frozen=True)
class Ranks:
    """This process among its fellows.

    Attributes:
        rank: from 0 to world_size − 1.
        world_size: number of processes.
    """

    rank: int = 0
    world_size: int = 1


def one_process() -> Ranks:
    """What a run without torchrun is."""
    return Ranks()


def combine_moments(moments: Float[Tensor, "ranks 3"]) -> Float[Tensor, "3"]:
    """Give count, mean and sum of squared deviations of the union from those of each rank.

    mean = Σ n_i·mean_i / Σ n_i,     m2 = Σ ( m2_i + n_i·(mean_i − mean)² )
    """
    raise NotImplementedError


def normalize_over_ranks(
    advantages: Float[Tensor, "*batch"], *, mask: Bool[Tensor, "*batch"] | None = None
) -> Float[Tensor, "*batch"]:
    """Normalise by mean and deviation over the minibatches of all ranks (`Parts.normalize`)."""
    raise NotImplementedError


def reduced_gradient_step(
    loss: Float[Tensor, ""], networks: nn.Module, optimizer: Optimizer, *, max_grad_norm: float
) -> Float[Tensor, ""]:
    """Average the gradient over all ranks, then clip it, then step (`Parts.gradient_step`)."""
    raise NotImplementedError


def rank_parts(parts: Parts) -> Parts:
    """Put the two reductions into their slots."""
    raise NotImplementedError
