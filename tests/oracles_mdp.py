"""Slow definitions for tests of exact MDPs: plain Python sums over trajectories and over time.

Nothing here calls the functions under test; an MDP is only read as its tables.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor

from ppo_lessons.mdp import MDP

Path = list[tuple[int, int, float]]  # (state, action, reward) for each step


def random_mdp(
    seed: int, *, num_states: int, num_actions: int, num_observations: int, finite: bool
) -> MDP:
    """Draw an MDP that ends with probability 0.1 to 0.4 after every step.

    finite: moves lead only to states of higher number, so that trajectories can be listed.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(
        num_states, num_actions, num_states, generator=generator, dtype=torch.float64
    )
    if finite:
        weights = weights.permute(1, 0, 2).triu(diagonal=1).permute(1, 0, 2)
    going_on = 0.9 - 0.3 * torch.rand(
        num_states, num_actions, 1, generator=generator, dtype=torch.float64
    )
    initial = torch.rand(num_states, generator=generator, dtype=torch.float64)
    return MDP(
        name="random",
        transitions=going_on * weights / weights.sum(-1, keepdim=True).clamp(min=1e-9),
        rewards=torch.randn(num_states, num_actions, generator=generator, dtype=torch.float64),
        initial=initial / initial.sum(),
        observation_of=torch.arange(num_states) % num_observations,
    )


def random_logits(mdp: MDP, seed: int) -> Tensor:
    shape = (int(mdp.observation_of.max()) + 1, mdp.rewards.shape[1])
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax_rows(mdp: MDP, logits: Tensor) -> list[list[float]]:
    """π(a|s) as nested lists, from the definition of the softmax."""
    rows = [[math.exp(z) for z in row] for row in logits.tolist()]
    return [[z / sum(rows[k]) for z in rows[k]] for k in mdp.observation_of.tolist()]


def paths_from(mdp: MDP, policy: list[list[float]], state: int) -> list[tuple[float, Path]]:
    """Every way on from a state until the end, with its probability."""
    found = []
    for action, chosen in enumerate(policy[state]):
        row = mdp.transitions[state, action].tolist()
        step = (state, action, float(mdp.rewards[state, action]))
        ends = 1 - math.fsum(row)
        if ends > 1e-12:
            found.append((chosen * ends, [step]))
        for following, moved in enumerate(row):
            if moved > 0:
                for probability, path in paths_from(mdp, policy, following):
                    found.append((chosen * moved * probability, [step, *path]))
    return found


def all_paths(mdp: MDP, policy: list[list[float]]) -> list[tuple[float, Path]]:
    return [
        (start * probability, path)
        for state, start in enumerate(mdp.initial.tolist())
        if start > 0
        for probability, path in paths_from(mdp, policy, state)
    ]


def path_return(path: Path, gamma: float) -> float:
    return math.fsum(gamma**t * reward for t, (_, _, reward) in enumerate(path))


def expected_return_by_paths(mdp: MDP, policy: list[list[float]], gamma: float) -> float:
    return math.fsum(p * path_return(path, gamma) for p, path in all_paths(mdp, policy))


def state_values_by_paths(mdp: MDP, policy: list[list[float]], gamma: float) -> Tensor:
    return torch.tensor(
        [
            math.fsum(p * path_return(path, gamma) for p, path in paths_from(mdp, policy, state))
            for state in range(len(policy))
        ],
        dtype=torch.float64,
    )


def action_values_by_paths(mdp: MDP, policy: list[list[float]], gamma: float) -> Tensor:
    """Q(s, a): paths from s that begin with a, under a policy that takes a there for certain.

    A finite MDP visits no state twice, so the change at s touches the first step only.
    """
    table = []
    for state in range(len(policy)):
        row = []
        for action in range(len(policy[state])):
            first = [float(action == other) for other in range(len(policy[state]))]
            forced = [first if s == state else policy[s] for s in range(len(policy))]
            row.append(
                math.fsum(
                    p * path_return(path, gamma) for p, path in paths_from(mdp, forced, state)
                )
            )
        table.append(row)
    return torch.tensor(table, dtype=torch.float64)


def state_visits_by_paths(mdp: MDP, policy: list[list[float]], gamma: float) -> Tensor:
    visits = [0.0] * len(policy)
    for probability, path in all_paths(mdp, policy):
        for t, (state, _, _) in enumerate(path):
            visits[state] += probability * gamma**t
    return torch.tensor(visits, dtype=torch.float64)


def score_update_by_paths(mdp: MDP, logits: Tensor, *, gamma: float, weight_gamma: float) -> Tensor:
    """E[Σ_t weight_gammaᵗ · ∇log π(a_t|s_t) · Σ_{k≥t} γ^{k−t}·r_k], one path after the other.

    weight_gamma = gamma is the gradient of the discounted J, weight_gamma = 1 the usual update.
    For a softmax, ∂log π(a|s)/∂z_b = [a = b] − π(b|s) in the row that s reads.
    """
    policy = softmax_rows(mdp, logits)
    seen = mdp.observation_of.tolist()
    total = [[0.0] * logits.shape[1] for _ in range(logits.shape[0])]
    for probability, path in all_paths(mdp, policy):
        for t, (state, action, _) in enumerate(path):
            weight = probability * weight_gamma**t * path_return(path[t:], gamma)
            for other, chance in enumerate(policy[state]):
                total[seen[state]][other] += weight * (float(action == other) - chance)
    return torch.tensor(total, dtype=torch.float64)


def series(mdp: MDP, policy: Tensor, gamma: float, num_steps: int) -> tuple[Tensor, Tensor]:
    """Values and visits as sums over time, Σ_{t < num_steps} γᵗ·P_πᵗ·R_π and Σ γᵗ·P(s_t = s)."""
    moves = torch.stack([row @ table for row, table in zip(policy, mdp.transitions, strict=True)])
    reward = (policy * mdp.rewards).sum(-1)
    here = mdp.initial
    values, visits = torch.zeros_like(reward), torch.zeros_like(reward)
    for t in range(num_steps):
        values = values + gamma**t * reward
        visits = visits + gamma**t * here
        reward, here = moves @ reward, here @ moves
    return values, visits


def finite_differences(function, logits: Tensor, step: float = 1e-5) -> Tensor:
    """Derivative of a function of logits (scalar or tensor) by central differences.

    Returns:
        One row per logit. The error is about step² times a third derivative, plus 1e-16/step.
    """
    rows = []
    for index in range(logits.numel()):
        shift = torch.zeros(logits.numel(), dtype=torch.float64)
        shift[index] = step
        shift = shift.reshape(logits.shape)
        rows.append((function(logits + shift) - function(logits - shift)).flatten() / (2 * step))
    return torch.stack(rows)


def gamblers_ruin(num_places: int, right: float) -> list[float]:
    """P(reach place n before leaving at −1), for each place, by the classical formula."""
    if right == 0.5:
        return [(place + 1) / (num_places + 1) for place in range(num_places + 1)]
    odds = (1 - right) / right
    total = 1 - odds ** (num_places + 1)
    return [(1 - odds ** (place + 1)) / total for place in range(num_places + 1)]


def is_connected(path: Path, transitions: Tensor) -> bool:
    """Whether each move of a path is possible."""
    return all(transitions[s, a, following] > 0 for (s, a, _), (following, _, _) in pairwise(path))


def gae_along(path: Path, critic: list[float], gamma: float, gae_lambda: float) -> list[float]:
    """Σ_k (γλ)ᵏ·δ_{t+k} for each step of a whole episode: the double sum, no recursion."""
    after = [critic[state] for state, _, _ in path[1:]] + [0.0]
    errors = [
        reward + gamma * later - critic[state]
        for (state, _, reward), later in zip(path, after, strict=True)
    ]
    return [
        math.fsum((gamma * gae_lambda) ** k * error for k, error in enumerate(errors[t:]))
        for t in range(len(path))
    ]


def score_by_logits(mdp: MDP, policy: list[list[float]], state: int, action: int) -> Tensor:
    """[a = b] − π(b|s) in the row that s reads, 0 in the others; flat."""
    rows = torch.zeros(max(mdp.observation_of.tolist()) + 1, len(policy[0]), dtype=torch.float64)
    row = int(mdp.observation_of[state])
    rows[row] = -torch.tensor(policy[state], dtype=torch.float64)
    rows[row, action] += 1
    return rows.flatten()


def gradient_moments_by_paths(
    mdp: MDP, policy: list[list[float]], critic: list[float], gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Mean and covariance of Σ_t ∇log π(a_t|s_t)·GAE_t, one path after the other."""
    chances, sums = [], []
    for probability, path in all_paths(mdp, policy):
        weights = gae_along(path, critic, gamma, gae_lambda)
        steps = zip(path, weights, strict=True)
        sums.append(sum(w * score_by_logits(mdp, policy, s, a) for (s, a, _), w in steps))
        chances.append(probability)
    weights = torch.tensor(chances, dtype=torch.float64)
    table = torch.stack(sums)  # pyright: ignore[reportArgumentType]
    mean = (weights[:, None] * table).sum(0)
    squares = (table - mean).unsqueeze(-1) * (table - mean).unsqueeze(-2)
    return mean, (weights[:, None, None] * squares).sum(0)


def advantage_moments_by_paths(
    mdp: MDP, policy: list[list[float]], critic: list[float], gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of GAE given s and a: paths from s that begin with a (finite MDPs)."""
    means, variances = [], []
    for state in range(len(policy)):
        for action in range(len(policy[state])):
            first = [float(action == other) for other in range(len(policy[state]))]
            forced = [first if s == state else policy[s] for s in range(len(policy))]
            found = [
                (probability, gae_along(path, critic, gamma, gae_lambda)[0])
                for probability, path in paths_from(mdp, forced, state)
            ]
            mean = math.fsum(p * z for p, z in found)
            means.append(mean)
            variances.append(math.fsum(p * (z - mean) ** 2 for p, z in found))
    shape = (len(policy), len(policy[0]))
    tables = [torch.tensor(table, dtype=torch.float64) for table in (means, variances)]
    return tables[0].reshape(shape), tables[1].reshape(shape)
