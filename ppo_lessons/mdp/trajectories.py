"""Whole episodes: all that an MDP allows, with their probabilities, or drawn from a generator."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from ppo_lessons.mdp.model import MDP
from ppo_lessons.mdp.solve import bellman_matrix
from ppo_lessons.mdp.tables import ROUNDING, check_count, one_hot

MAX_TRAJECTORIES = 1_000_000  # ten steps of so many take about half a gigabyte


@dataclass(frozen=True, eq=False)
class Trajectories:
    """N whole episodes side by side, time first, like a rollout of N environments.

    An expectation is one line: `(trajectories.probabilities * x).sum(-1)`. Rows after the end are
    padding: `valid` is False, `terminated` True, the reward and all numbers 0.

    Args:
        probabilities: of each trajectory; they sum to 1 (1/N each if sampled).
        next_states: reached by step t; 0 where `terminated`.
    """

    probabilities: Float64[Tensor, " N"]
    states: Int64[Tensor, "T N"]
    actions: Int64[Tensor, "T N"]
    rewards: Float64[Tensor, "T N"]
    next_states: Int64[Tensor, "T N"]
    terminated: Bool[Tensor, "T N"]
    valid: Bool[Tensor, "T N"]


def enumerate_trajectories(mdp: MDP, policy: Float64[Tensor, "S A"]) -> Trajectories:
    """List all trajectories that the MDP allows.

    P(τ) = initial(s_0)·Π_t π(a_t|s_t)·P(s_{t+1}|s_t, a_t)

    Which they are, and their order, does not depend on the policy: the lists of two policies match
    entry by entry. `probabilities` can be differentiated with respect to the policy.

    Raises:
        ValueError: if a state can be visited twice (`unroll` first), or if there are more than
            `MAX_TRAJECTORIES`.
    """
    bellman_matrix(mdp, policy, gamma=0.0)  # checks the policy
    policy, transitions = _with_end(mdp, policy)
    end = len(mdp.initial)
    current = mdp.initial.nonzero().squeeze(-1)
    probabilities = mdp.initial[current]
    steps = current.new_empty(0, 3, len(current))
    while (current < end).any():
        parent, action, following = (transitions > 0)[current].nonzero(as_tuple=True)
        if len(steps) == end or len(parent) > MAX_TRAJECTORIES:
            raise ValueError(
                f"{mdp.name} has endless or more than {MAX_TRAJECTORIES} trajectories; expected "
                "few and finite ones. Call unroll with a short horizon, or sample_trajectories."
            )
        current = current[parent]
        chances = policy[current, action] * transitions[current, action, following]
        probabilities = probabilities[parent] * chances
        step = torch.stack([current, action, following])
        steps = torch.cat([steps[:, :, parent], step.unsqueeze(0)])
        current = following
    return _name_steps(mdp, steps, probabilities)


def sample_trajectories(
    mdp: MDP, policy: Float64[Tensor, "S A"], *, num_trajectories: int, generator: torch.Generator
) -> Trajectories:
    """Draw whole episodes from the generator; T is the length of the longest.

    Raises:
        ValueError: if num_trajectories is below 1, or as `state_values` at gamma 1.
    """
    check_count("num_trajectories", num_trajectories)
    bellman_matrix(mdp, policy, gamma=1.0)  # refuses episodes that never end
    policy, transitions = _with_end(mdp, policy)
    draw, steps = torch.multinomial, []
    current = draw(mdp.initial, num_trajectories, replacement=True, generator=generator)
    while (current < len(mdp.initial)).any():
        action = draw(policy[current], 1, generator=generator).squeeze(-1)
        following = draw(transitions[current, action], 1, generator=generator).squeeze(-1)
        steps.append(torch.stack([current, action, following]))
        current = following
    equal = torch.full((num_trajectories,), 1 / num_trajectories, dtype=torch.float64)
    return _name_steps(mdp, torch.stack(steps), equal)


def _with_end(mdp: MDP, policy: Tensor) -> tuple[Tensor, Tensor]:
    """Policy and transitions with one more state, the end, where action 0 stays for ever."""
    S, A = mdp.rewards.shape
    transitions = torch.zeros(S + 1, A, S + 1, dtype=torch.float64)
    transitions[:S, :, :S] = mdp.transitions
    missing = 1 - mdp.transitions.sum(-1)
    transitions[:S, :, S] = missing.where(missing > ROUNDING, 0)
    transitions[S, 0, S] = 1
    return torch.cat([policy, one_hot(0, A).unsqueeze(0)]), transitions


def _name_steps(mdp: MDP, steps: Tensor, probabilities: Tensor) -> Trajectories:
    """Turn steps [T, (state, action, next state), N] into Trajectories with blank padding."""
    end = len(mdp.initial)
    states, actions, next_states = steps.unbind(1)
    valid, terminated = states < end, next_states == end
    states, next_states = states * valid, next_states * ~terminated
    rewards = mdp.rewards[states, actions] * valid
    return Trajectories(probabilities, states, actions, rewards, next_states, terminated, valid)
