"""Small Markov decision processes (MDPs) solved exactly: what sampling can only estimate.

With states and actions in tables every expectation is one linear solve, in float64. A policy is a
tensor, so autograd goes *through* the solve and the exact policy gradient is one call.

    V = R_π + γ·P_π·V          values: what is still to come
    d = initial + γ·d·P_π      visits: where the policy goes
    J = initial·V = d·R_π      the same number, summed from either end

Source: Sutton & Barto 2018, chapters 3 and 13. We write r_t for the reward that a_t earns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from ppo_lessons.shapes import check_finite, check_unit_interval

ROUNDING = 1e-12  # a probability below this is zero
MAX_TRAJECTORIES = 1_000_000  # ten steps of so many take about half a gigabyte


@dataclass(frozen=True, eq=False)
class MDP:
    """States, actions, and what they lead to.

    A row of `transitions` may sum to less than 1: the missing mass ends the episode. The reward
    is fixed by state and action; a random reward is a random state that the policy cannot see,
    because it shares its observation with another.

    Args:
        name: for titles and errors.
        transitions: P(s'|s, a), the probability of each next state.
        rewards: R(s, a), in units of reward.
        initial: P(s_0 = s).
        observation_of: what the policy sees in s, that is, the row of its logits. States with the
            same number share parameters; `torch.arange(S)` gives every state its own.

    Raises:
        TypeError: if a tensor has another dtype.
        ValueError: if a tensor has another shape, or a row is no probability.
    """

    name: str
    transitions: Float64[Tensor, "S A S"]
    rewards: Float64[Tensor, "S A"]
    initial: Float64[Tensor, " S"]
    observation_of: Int64[Tensor, " S"]

    def __post_init__(self) -> None:
        S, A = self.initial.numel(), self.rewards.shape[-1] if self.rewards.ndim else 0
        _check_table("transitions", self.transitions, torch.float64, (S, A, S))
        _check_table("rewards", self.rewards, torch.float64, (S, A))
        _check_table("initial", self.initial, torch.float64, (S,))
        _check_table("observation_of", self.observation_of, torch.int64, (S,))
        check_finite(rewards=self.rewards)
        _check_rows("transitions", self.transitions, at_least=0.0)
        _check_rows("initial", self.initial, at_least=1.0)
        if (lowest := int(self.observation_of.min())) < 0:
            raise ValueError(
                f"observation_of holds {lowest}; expected 0 or more. Number observations from 0."
            )

    @property
    def num_observations(self) -> int:
        """Rows that the logits need: K in the shapes below."""
        return int(self.observation_of.max()) + 1


def unroll(mdp: MDP, horizon: int) -> MDP:
    """Make time part of the state, so that an episode ends after `horizon` steps at the latest.

    State t·S + s is s at time t. The policy still sees only s: its parameters are shared over
    time. (For a policy with a clock, replace `observation_of` by `torch.arange(S * horizon)`.)

    Raises:
        ValueError: if horizon is below 1.
    """
    _check_count("horizon", horizon)
    S, A = mdp.rewards.shape
    transitions = torch.zeros(horizon, S, A, horizon, S, dtype=torch.float64)
    for t in range(horizon - 1):
        transitions[t, :, :, t + 1] = mdp.transitions
    initial = torch.zeros(horizon * S, dtype=torch.float64)
    initial[:S] = mdp.initial
    return MDP(
        name=f"{mdp.name}, {horizon} steps",
        transitions=transitions.reshape(horizon * S, A, horizon * S),
        rewards=mdp.rewards.repeat(horizon, 1),
        initial=initial,
        observation_of=mdp.observation_of.repeat(horizon),
    )


def softmax_policy(
    mdp: MDP, logits: Float64[Tensor, "*batch K A"]
) -> Float64[Tensor, "*batch S A"]:
    """π(a|s) = exp(z_a) / Σ_b exp(z_b), where z is the row of logits of what s looks like.

    Logits have no unit; zeros are the uniform policy. Raises TypeError or ValueError if their
    dtype or shape does not fit the MDP.
    """
    shape = (*logits.shape[:-2], mdp.num_observations, mdp.rewards.shape[1])
    _check_table("logits", logits, torch.float64, shape)
    return logits.softmax(-1)[..., mdp.observation_of, :]


def state_values(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S"]:
    """V(s) = E[Σ_k γᵏ·r_{t+k} | s_t = s], solved from V = R_π + γ·P_π·V.

    Args:
        mdp: the model.
        policy: π(a|s), rows sum to 1; leading axes are a batch of policies.
        gamma: discount per step, in [0, 1].

    Returns:
        V, in units of discounted reward.

    Raises:
        ValueError: if the shape does not fit, a row of the policy is no distribution, or gamma is
            1 and from some state the policy never ends the episode.

    Source: Sutton & Barto 2018, eq. 3.14.
    """
    earned = (policy * mdp.rewards).sum(-1, keepdim=True)
    return torch.linalg.solve(_bellman_matrix(mdp, policy, gamma), earned).squeeze(-1)


def action_values(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S A"]:
    """Q(s, a) = R(s, a) + γ·Σ_s' P(s'|s, a)·V(s'): do a now, follow the policy afterwards."""
    values = state_values(mdp, policy, gamma=gamma)
    return mdp.rewards + gamma * torch.einsum("sat,...t->...sa", mdp.transitions, values)


def advantages(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S A"]:
    """A(s, a) = Q(s, a) − V(s): how much better a is than what the policy does on average."""
    values = action_values(mdp, policy, gamma=gamma)
    return values - (policy * values).sum(-1, keepdim=True)  # V = Σ_a π·Q


def state_visits(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch S"]:
    """d(s) = Σ_t γᵗ·P(s_t = s), solved from d = initial + γ·d·P_π.

    At gamma 1 these are visits per episode. It is no distribution: the sum is the (discounted)
    length of an episode. Arguments and errors are those of `state_values`.
    """
    matrix = _bellman_matrix(mdp, policy, gamma)
    return torch.linalg.solve(matrix, mdp.initial.unsqueeze(0), left=False).squeeze(-2)


def expected_return(
    mdp: MDP, policy: Float64[Tensor, "*batch S A"], *, gamma: float
) -> Float64[Tensor, "*batch"]:
    """J = E[Σ_t γᵗ·r_t] = Σ_s initial(s)·V(s); at gamma 1 the undiscounted J."""
    return (mdp.initial * state_values(mdp, policy, gamma=gamma)).sum(-1)


def policy_gradient(
    mdp: MDP, logits: Float64[Tensor, "*batch K A"], *, gamma: float
) -> Float64[Tensor, "*batch K A"]:
    """∇J of the softmax policy, by autograd through the solve; at gamma 1 of the undiscounted J.

    It equals Σ_s d_γ(s)·Σ_a ∇π(a|s)·A_γ(s, a), a theorem that is not used here.
    """
    with torch.enable_grad():
        logits = logits.detach().requires_grad_()
        total = expected_return(mdp, softmax_policy(mdp, logits), gamma=gamma).sum()
    return torch.autograd.grad(total, logits)[0]


def usual_update(
    mdp: MDP, logits: Float64[Tensor, "*batch K A"], *, gamma: float
) -> Float64[Tensor, "*batch K A"]:
    """Σ_s d_1(s)·Σ_a ∇π(a|s)·A_γ(s, a): what policy-gradient code follows on average.

    Advantages are discounted, visits are not: the weight γᵗ is forgotten. Below gamma 1 this is
    the gradient neither of the discounted nor of the undiscounted J, and it may point the other
    way (`two_step_sign_flip`). At every gamma the episode must end from every state.

    Source: Nota & Thomas 2020, "Is the policy gradient a gradient?"
    """
    with torch.enable_grad():
        logits = logits.detach().requires_grad_()
        policy = softmax_policy(mdp, logits)
        weights = state_visits(mdp, policy.detach(), gamma=1.0).unsqueeze(-1)
        total = (weights * policy * advantages(mdp, policy.detach(), gamma=gamma)).sum()
    return torch.autograd.grad(total, logits)[0]


def expected_surrogate(
    mdp: MDP,
    policy: Float64[Tensor, "S A"],
    policy_old: Float64[Tensor, "S A"],
    objective: Callable[[Tensor, Tensor], Tensor],
    *,
    gamma: float,
) -> Float64[Tensor, ""]:
    """L = Σ_s d_old(s)·Σ_a π_old(a|s)·f(π(a|s) / π_old(a|s), A_old(s, a)): a surrogate, exactly.

    States and advantages are those of the old policy; only the ratios know the new one.

    `policy_old` has collected the data; `objective` is f, of ratios and advantages: their product,
    or `clipped_surrogate`. Actions that the old policy never takes have weight 0.
    """
    weights = state_visits(mdp, policy_old, gamma=gamma).unsqueeze(-1) * policy_old
    advantages_old = advantages(mdp, policy_old, gamma=gamma)
    # an action that the old policy never takes has weight 0, whatever its ratio
    ratios = torch.where(policy_old > 0, policy / policy_old, 1.0)
    return (weights * objective(ratios, advantages_old)).sum()


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
    _bellman_matrix(mdp, policy, gamma=0.0)  # checks the policy
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
    _check_count("num_trajectories", num_trajectories)
    _bellman_matrix(mdp, policy, gamma=1.0)  # refuses episodes that never end
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


def bandit(rewards: Sequence[float]) -> MDP:
    """One state, one step: arm a pays rewards[a].

    (0) --a: rewards[a]--> end
    """
    table = torch.tensor([rewards], dtype=torch.float64)
    transitions = torch.zeros(1, len(rewards), 1, dtype=torch.float64)
    return MDP("bandit", transitions, table, _one_hot(0, 1), torch.arange(1))


def two_step_sign_flip() -> MDP:
    """Two steps that look alike: action 1 pays first and costs later, action 0 does nothing.

    (0) --1: +1--> (1) --1: -1.5--> end

    With logits 0 and gamma 0.5, π·(1 − π) = 1/4. In the direction of the logit of action 1,
    J has the slope 1/4·(1 − 0.5·1.5) = +0.0625; the usual update goes 1/4·(1 − 1.5) = −0.125.
    """
    transitions = torch.stack([_one_hot(1, 2).repeat(2, 1), torch.zeros(2, 2).double()])
    rewards = torch.tensor([[0, 1], [0, -1.5]], dtype=torch.float64)
    seen = torch.zeros(2, dtype=torch.int64)
    return MDP("two-step sign flip", transitions, rewards, _one_hot(0, 2), seen)


def two_state() -> MDP:
    """Three steps between a valley and a hill, from the valley; a move works half of the time.

                 --- 1 move: -1 -->
    0: +0 (valley)                 (hill) 0: +2 stay
                 <-- 1 move: +0 ---

    Time is part of the state (`unroll`); the policy sees valley 0 or hill 1, so logits are [2, 2].
    """
    transitions = torch.tensor([[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]], dtype=torch.float64)
    rewards = torch.tensor([[0, -1], [2, 0]], dtype=torch.float64)
    once = MDP("two-state", transitions, rewards, _one_hot(0, 2), torch.arange(2))
    return unroll(once, horizon=3)


def fork() -> MDP:
    """Stay, and the episode ends with nothing; or go on to a place where one action pays 20.

    (door) --- 1 go: +0 --> (room) --- 1 right: +20 --> end
       |                       |
       +-- 0 stay: +0 --> end  +------ 0 wrong: +0 --> end

    What a mistake in the room costs depends on how often the policy goes there.
    """
    transitions = torch.zeros(2, 2, 2, dtype=torch.float64)
    transitions[0, 1, 1] = 1
    rewards = torch.tensor([[0, 0], [0, 20]], dtype=torch.float64)
    return MDP("fork", transitions, rewards, _one_hot(0, 2), torch.arange(2))


def random_walk(num_states: int, *, noise: float) -> MDP:
    """Walk left (0) or right (1) over n = num_states places from the middle one to a goal.

    end <-- (0) <--> (1) <--> ... <--> (n-1) --> (n, the goal) --any: +1--> end

    At gamma 1 the uniform policy has V(s) = (s + 1)/(n + 1), whatever the noise.

    Args:
        num_states: places; the goal makes n + 1 states.
        noise: probability that a move goes the other way, in [0, 1].

    Source: Sutton & Barto 2018, example 6.2, to which we add actions and the goal.
    """
    _check_count("num_states", num_states)
    check_unit_interval(noise=noise)
    ones = torch.ones(num_states, dtype=torch.float64)
    right = torch.diag(ones, 1)
    left = torch.diag(ones, -1)
    left[-1] = 0  # the goal only ends
    moves = torch.stack([left, right], dim=1)
    transitions = (1 - noise) * moves + noise * moves.flip(1)
    rewards = _one_hot(num_states, num_states + 1).unsqueeze(-1).repeat(1, 2)
    initial = _one_hot(num_states // 2, num_states + 1)
    return MDP("random walk", transitions, rewards, initial, torch.arange(num_states + 1))


def _one_hot(index: int, size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)[index]


def _bellman_matrix(mdp: MDP, policy: Tensor, gamma: float) -> Tensor:
    """I − γ·P_π, the matrix of every solve, refused where no finite answer exists."""
    check_unit_interval(gamma=gamma)
    _check_table("policy", policy, torch.float64, (*policy.shape[:-2], *mdp.rewards.shape))
    _check_rows("policy", policy, at_least=1.0)
    moves = torch.einsum("...sa,sat->...st", policy, mdp.transitions)
    S = len(mdp.initial)
    if gamma == 1:
        # an episode that can end from everywhere can do so within S steps
        alive = torch.linalg.matrix_power(moves.detach(), S).sum(-1).reshape(-1, S).amax(0)
        if alive.max() > 1 - ROUNDING:
            raise ValueError(
                f"in {mdp.name} the policy never ends the episode from state {int(alive.argmax())}"
                "; expected that every state can end at gamma 1. Choose gamma below 1, or unroll."
            )
    return torch.eye(S, dtype=torch.float64) - gamma * moves


def _with_end(mdp: MDP, policy: Tensor) -> tuple[Tensor, Tensor]:
    """Policy and transitions with one more state, the end, where action 0 stays for ever."""
    S, A = mdp.rewards.shape
    transitions = torch.zeros(S + 1, A, S + 1, dtype=torch.float64)
    transitions[:S, :, :S] = mdp.transitions
    missing = 1 - mdp.transitions.sum(-1)
    transitions[:S, :, S] = missing.where(missing > ROUNDING, 0)
    transitions[S, 0, S] = 1
    return torch.cat([policy, _one_hot(0, A).unsqueeze(0)]), transitions


def _name_steps(mdp: MDP, steps: Tensor, probabilities: Tensor) -> Trajectories:
    """Turn steps [T, (state, action, next state), N] into Trajectories with blank padding."""
    end = len(mdp.initial)
    states, actions, next_states = steps.unbind(1)
    valid, terminated = states < end, next_states == end
    states, next_states = states * valid, next_states * ~terminated
    rewards = mdp.rewards[states, actions] * valid
    return Trajectories(probabilities, states, actions, rewards, next_states, terminated, valid)


def _check_table(name: str, table: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    if table.dtype != dtype:
        raise TypeError(
            f"{name} has dtype {table.dtype}; expected {dtype}. Convert it with {name}.to({dtype})."
        )
    if table.shape != shape:
        raise ValueError(
            f"{name} has shape {tuple(table.shape)}; expected {shape}. Give one entry for each "
            "state (or observation) and action of the MDP."
        )


def _check_rows(name: str, table: Tensor, *, at_least: float) -> None:
    """Require probabilities whose rows sum to between at_least and 1."""
    sums = table.sum(-1)
    right = (table >= 0).all(-1) & (sums >= at_least - ROUNDING) & (sums <= 1 + ROUNDING)
    if not right.all():
        place = tuple((~right).nonzero()[0].tolist())
        raise ValueError(
            f"{name} has the row {table[place].tolist()} at index {place}; expected probabilities "
            f"with sum {'1' if at_least else 'at most 1'}. Normalise the row, or start from "
            "softmax_policy."
        )


def _check_count(name: str, number: int) -> None:
    if number < 1:
        raise ValueError(f"{name} is {number}; expected 1 or more. Choose {name} above 0.")
