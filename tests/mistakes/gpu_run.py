"""Ways in which several ranks learn something else than one process would."""

import torch
from torch import nn

from mistakes import new_catalogue
from ppo_lessons.gae import normalize_advantages
from ppo_lessons.gpu_run import ranks

MISTAKES, breaks = new_catalogue()


@breaks("reduced_gradient_step")
def gradients_summed(loss, networks, optimizer, *, max_grad_norm):
    """Adds the gradients of the ranks up: every further rank makes the step longer."""
    optimizer.zero_grad()
    loss.backward()
    for parameter in networks.parameters():
        parameter.grad = ranks.summed(parameter.grad)
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


@breaks("reduced_gradient_step")
def clipped_before_the_mean(loss, networks, optimizer, *, max_grad_norm):
    """Shortens each rank's own gradient: how the samples were shared out decides the step."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    ranks.average_gradients(networks)
    optimizer.step()
    return norm


@breaks("reduced_gradient_step")
def each_rank_steps_alone(loss, networks, optimizer, *, max_grad_norm):
    """Forgets to speak to the others: as many policies as ranks."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


@breaks("reduced_gradient_step")
def weights_averaged_afterwards(loss, networks, optimizer, *, max_grad_norm):
    """Averages weights after each rank's own step: Adam has then scaled other gradients."""
    norm = each_rank_steps_alone(loss, networks, optimizer, max_grad_norm=max_grad_norm)
    with torch.no_grad():
        for parameter in networks.parameters():
            parameter.copy_(ranks.summed(parameter.clone()) / ranks.world_size())
    return norm


@breaks("normalize_over_ranks")
def normalized_on_each_rank(advantages, *, mask=None):
    """Takes mean and deviation of the rank's own samples: a rank of bad episodes looks average."""
    return normalize_advantages(advantages, mask=mask)


@breaks("normalize_over_ranks")
def mean_of_the_deviations(advantages, *, mask=None):
    """Averages the ranks' deviations: what lies between their means is lost."""
    counts = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    mean = (advantages * counts).sum() / counts.sum()
    spread = ((advantages - mean).square() * counts).sum().div(counts.sum()).sqrt()
    mean, spread = ranks.gathered(torch.stack([mean, spread])).mean(dim=0)
    return (advantages - mean) / (spread + 1e-8)


@breaks("normalize_over_ranks")
def squares_of_large_numbers(advantages, *, mask=None):
    """Takes the mean of squares less the square of the mean, and loses the digits between."""
    counts = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    own = torch.stack([counts.sum(), (advantages * counts).sum(), (advantages**2 * counts).sum()])
    count, total, squares = ranks.summed(own)
    mean = total / count
    spread = (squares / count - mean.square()).clamp(min=0).sqrt()
    return (advantages - mean) / (spread + 1e-8)


@breaks("normalize_over_ranks")
def mean_of_means(advantages, *, mask=None):
    """Averages the ranks' means, however many samples of each count."""
    counts = torch.ones_like(advantages) if mask is None else mask.to(advantages.dtype)
    mean = (advantages * counts).sum() / counts.sum()
    mean = ranks.gathered(mean.reshape(1)).mean()
    total = torch.stack([((advantages - mean).square() * counts).sum(), counts.sum()])
    m2, count = ranks.summed(total)
    return (advantages - mean) / ((m2 / count).sqrt() + 1e-8)


@breaks("rank_seed")
def same_seed_everywhere(seed, rank):
    """Gives all ranks one seed: they play the same episodes, and learn nothing from each other."""
    return seed


@breaks("rank_seed")
def next_seed(seed, rank):
    """Counts on from the seed: rank 1 of seed 1 plays the episodes of rank 0 of seed 2."""
    return seed + rank


@breaks("rank_seed")
def rank_alone(seed, rank):
    """Forgets the seed of the job: ranks other than 0 play the same in every run."""
    return seed if rank == 0 else rank
