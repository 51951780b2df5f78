"""Small Markov decision processes (MDPs) solved exactly: what sampling can only estimate.

With states and actions in tables every expectation is one linear solve, in float64. A policy is a
tensor, so autograd goes *through* the solve and the exact policy gradient is one call.

    V = R_π + γ·P_π·V          values: what is still to come
    d = initial + γ·d·P_π      visits: where the policy goes
    J = initial·V = d·R_π      the same number, summed from either end

Read in this order: model (the tables), solve (V, Q, A, d, J), gradients, compare (two policies),
trajectories (whole episodes), estimates (what each of them says of the gradient), moments (bias
and variance of GAE), zoo (named MDPs); tables holds the checks.

Source: Sutton & Barto 2018, chapters 3 and 13. We write r_t for the reward that a_t earns.
"""

from ppo_lessons.mdp.compare import expected_surrogate, mean_kl, performance_difference, state_kl
from ppo_lessons.mdp.estimates import gradient_estimates, mean_and_covariance
from ppo_lessons.mdp.gradients import fisher_matrix, policy_gradient, score_table, usual_update
from ppo_lessons.mdp.model import MDP, softmax_policy, unroll
from ppo_lessons.mdp.moments import Moments, gae_moments, mean_squared_error
from ppo_lessons.mdp.solve import (
    action_values,
    advantages,
    expected_return,
    state_values,
    state_visits,
)
from ppo_lessons.mdp.trajectories import (
    MAX_TRAJECTORIES,
    Trajectories,
    enumerate_trajectories,
    sample_trajectories,
)
from ppo_lessons.mdp.zoo import (
    bandit,
    control_variate,
    ergodic,
    fork,
    random_walk,
    surrogate_trap,
    two_state,
    two_step_sign_flip,
)

__all__ = [
    "MAX_TRAJECTORIES",
    "MDP",
    "Moments",
    "Trajectories",
    "action_values",
    "advantages",
    "bandit",
    "control_variate",
    "enumerate_trajectories",
    "ergodic",
    "expected_return",
    "expected_surrogate",
    "fisher_matrix",
    "fork",
    "gae_moments",
    "gradient_estimates",
    "mean_and_covariance",
    "mean_kl",
    "mean_squared_error",
    "performance_difference",
    "policy_gradient",
    "random_walk",
    "sample_trajectories",
    "score_table",
    "softmax_policy",
    "state_kl",
    "state_values",
    "state_visits",
    "surrogate_trap",
    "two_state",
    "two_step_sign_flip",
    "unroll",
    "usual_update",
]
