"""Small MDPs with a name, each for one point."""

from collections.abc import Sequence

import torch

from ppo_lessons.mdp.model import MDP, unroll
from ppo_lessons.mdp.tables import check_count, one_hot
from ppo_lessons.shapes import check_unit_interval


def bandit(rewards: Sequence[float]) -> MDP:
    """One state, one step: arm a pays rewards[a].

    (0) --a: rewards[a]--> end
    """
    table = torch.tensor([rewards], dtype=torch.float64)
    transitions = torch.zeros(1, len(rewards), 1, dtype=torch.float64)
    return MDP("bandit", transitions, table, one_hot(0, 1), torch.arange(1))


def two_step_sign_flip() -> MDP:
    """Two steps that look alike: action 1 pays first and costs later, action 0 does nothing.

    (0) --1: +1--> (1) --1: -1.5--> end

    With logits 0 and gamma 0.5, π·(1 − π) = 1/4. In the direction of the logit of action 1,
    J has the slope 1/4·(1 − 0.5·1.5) = +0.0625; the usual update goes 1/4·(1 − 1.5) = −0.125.
    """
    transitions = torch.stack([one_hot(1, 2).repeat(2, 1), torch.zeros(2, 2).double()])
    rewards = torch.tensor([[0, 1], [0, -1.5]], dtype=torch.float64)
    seen = torch.zeros(2, dtype=torch.int64)
    return MDP("two-step sign flip", transitions, rewards, one_hot(0, 2), seen)


def two_state() -> MDP:
    """Three steps between a valley and a hill, from the valley; a move works half of the time.

                 --- 1 move: -1 -->
    0: +0 (valley)                 (hill) 0: +2 stay
                 <-- 1 move: +0 ---

    Time is part of the state (`unroll`); the policy sees valley 0 or hill 1, so logits are [2, 2].
    """
    transitions = torch.tensor([[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]], dtype=torch.float64)
    rewards = torch.tensor([[0, -1], [2, 0]], dtype=torch.float64)
    once = MDP("two-state", transitions, rewards, one_hot(0, 2), torch.arange(2))
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
    return MDP("fork", transitions, rewards, one_hot(0, 2), torch.arange(2))


def random_walk(num_states: int, *, noise: float) -> MDP:
    """Walk left (0) or right (1) over n = num_states places from the middle one to a goal.

    end <-- (0) <--> (1) <--> ... <--> (n-1) --> (n, the goal) --any: +1--> end

    At gamma 1 the uniform policy has V(s) = (s + 1)/(n + 1), whatever the noise.

    Args:
        num_states: places; the goal makes n + 1 states.
        noise: probability that a move goes the other way, in [0, 1].

    Source: Sutton & Barto 2018, example 6.2, to which we add actions and the goal.
    """
    check_count("num_states", num_states)
    check_unit_interval(noise=noise)
    ones = torch.ones(num_states, dtype=torch.float64)
    right = torch.diag(ones, 1)
    left = torch.diag(ones, -1)
    left[-1] = 0  # the goal only ends
    moves = torch.stack([left, right], dim=1)
    transitions = (1 - noise) * moves + noise * moves.flip(1)
    rewards = one_hot(num_states, num_states + 1).unsqueeze(-1).repeat(1, 2)
    initial = one_hot(num_states // 2, num_states + 1)
    return MDP("random walk", transitions, rewards, initial, torch.arange(num_states + 1))


def ergodic(num_states: int, *, ending: float) -> MDP:
    """Stay (0) or go on (1) around a ring of n = num_states places; place 0 pays 1 each step.

    +--> (0: +1) --1--> (1) --1--> ... --1--> (n-1) --+
    |                                                 |
    +-----------------------1-------------------------+      each step: end with prob. `ending`

    The start is anywhere, and how long an episode lasts is no news about what was done. The
    uniform policy visits each place 1/(n·ending) times: with n = 4 and ending 0.1, J = 2.5 at
    gamma 1. There a critic that is 1 too high everywhere biases every advantage, by −0.1 at
    λ = 0 and by −1 at λ = 1, and the gradient at no λ.

    Args:
        num_states: places on the ring.
        ending: probability that a step is the last, in [0, 1]; at 0 episodes never end.
    """
    check_count("num_states", num_states)
    check_unit_interval(ending=ending)
    stay = torch.eye(num_states, dtype=torch.float64)
    transitions = (1 - ending) * torch.stack([stay, stay.roll(1, 1)], dim=1)
    rewards = one_hot(0, num_states).unsqueeze(-1).repeat(1, 2)
    initial = torch.full((num_states,), 1 / num_states, dtype=torch.float64)
    return MDP("ergodic", transitions, rewards, initial, torch.arange(num_states))


def surrogate_trap() -> MDP:
    """Two places that look alike: action 1 pays in the first and ruins in the second.

    (A) --- 1: +1 --> (B) --- 1: -3 --> end
     |                 |
     +-- 0: +0 --> end +-- 0: +0 --> end

    With p = π(1), J = p·(1 − 3p). From p_old = 0.1 the surrogate sees B only a tenth of the time:
    dL/dp = (1 − 0.3) − 0.1·3 = 0.4 for every p, so it rises all the way to p = 1. But J goes from
    0.07 over its best at p = 1/6 down to −2.
    """
    transitions = torch.zeros(2, 2, 2, dtype=torch.float64)
    transitions[0, 1, 1] = 1
    rewards = torch.tensor([[0, 1], [0, -3]], dtype=torch.float64)
    seen = torch.zeros(2, dtype=torch.int64)
    return MDP("surrogate trap", transitions, rewards, one_hot(0, 2), seen)


def control_variate() -> MDP:
    """Two steps with a hidden coin X = ±1; what the first step paid tells what the second costs.

    (X = +1) --any: +3--> (X = +1) --0: -3, 1: -2--> end
    (X = -1) --any: -3--> (X = -1) --0: +3, 1: +4--> end

    So r_0 = 3X and r_1 = −3X + a_1. The policy sees the time, not X: logits are [2, 2]. Uniform
    policy, gamma 1, slopes in the logit of action 1: ∇J = [0, 1/4]. Weighted by the full return
    R = a_1 the estimate has the variances 1/8 + 1/16 = 0.1875; by the reward-to-go
    1/8 + (9 + 1/2)/4 − 1/16 = 2.4375. Here the past reward is no noise, it cancels noise.
    (Action 0 has the same slopes with the other sign, so over all four logits variances double.)
    """
    transitions = torch.zeros(4, 2, 4, dtype=torch.float64)
    transitions[0, :, 2] = transitions[1, :, 3] = 1
    rewards = torch.tensor([[3, 3], [-3, -3], [-3, -2], [3, 4]], dtype=torch.float64)
    initial = torch.tensor([0.5, 0.5, 0, 0], dtype=torch.float64)
    return MDP("control variate", transitions, rewards, initial, torch.tensor([0, 0, 1, 1]))
