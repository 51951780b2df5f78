"""Rollouts against scripts and against a slow loop over single environments."""

import sys
from dataclasses import fields, replace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from mistakes import claims_about, gae, mistakes_of, refuses, under_test
from mistakes.rollout import MISTAKES
from torch import nn
from torch.testing import assert_close
from toy_envs import MODES, SCRIPTS, Coordinate, FixedPolicy, by_parity, episode, scripted, vector

from ppo_lessons.envs import Lighthouse, Probe, make_envs
from ppo_lessons.envs.protocol import EnvStep
from ppo_lessons.gae import compute_gae
from ppo_lessons.mdp import MDP, state_values
from ppo_lessons.networks import make_networks
from ppo_lessons.rollout import (
    ENDINGS,
    collect_rollout,
    fit_table,
    flatten,
    score_values,
    start_carry,
)
from ppo_lessons.training_loop import Parts, PPOConfig, make_optimizer, update
from ppo_lessons.types import Rollout

# Claims take these as fixtures, so that they can be tried on mistakes as well.
right_collect = under_test(collect_rollout)
right_score = under_test(score_values)
right_make = under_test(make_envs)
right_fit = under_test(fit_table)
right_lighthouse = under_test(Lighthouse)

PARITY = FixedPolicy(by_parity)
# V = 100·episode + step: every observation of a scripted environment has a value of its own.
READABLE = Coordinate(100.0, 1.0)
GAMMA, LAMBDA = 0.9, 0.8


def generator(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def collect_script(*scripts, num_steps, mode=AutoresetMode.SAME_STEP, collect=collect_rollout):
    envs = scripted(*(scripts or SCRIPTS), mode=mode)
    carry = start_carry(envs, seed=0)
    return collect(envs, PARITY, carry, num_steps=num_steps, generator=generator())[0]


ALWAYS_CLIMB = FixedPolicy(lambda observations: torch.zeros(len(observations), dtype=torch.int64))
HEIGHTS = torch.arange(3)  # a table with an entry for each height
SETTINGS = {"gamma": GAMMA, "gae_lambda": LAMBDA, "num_rounds": 120}


def lighthouse(num_steps: int, *, limit: int = 6, mode: AutoresetMode = AutoresetMode.SAME_STEP):
    envs = vector(lambda: TimeLimit(Lighthouse(), limit), mode=mode)
    carry = start_carry(envs, seed=0)
    return collect_rollout(envs, ALWAYS_CLIMB, carry, num_steps=num_steps, generator=generator())[0]


def cartpole(num_steps: int, seed: int = 4, collect=collect_rollout, num_envs: int = 3):
    envs = make_envs("CartPole-v1", num_envs)
    networks = make_networks((4,), 2, hidden_sizes=(8,), generator=generator(seed))
    carry = start_carry(envs, seed=seed)
    rollout, carry = collect(
        envs, networks.policy, carry, num_steps=num_steps, generator=generator()
    )
    return rollout, networks, carry


# --- Claims, each also tried on the named mistakes -----------------------------------------------


def test_facts_are_those_of_single_environments(collect_rollout):
    """Replay the stored actions in N single environments, one slow step after the other."""
    rollout, _, _ = cartpole(num_steps=80, collect=collect_rollout)
    seeds = np.random.SeedSequence(4).generate_state(3).tolist()
    assert rollout.ended.sum() >= 6
    for n, seed in enumerate(seeds):
        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=seed)
        total, length = 0.0, 0
        for t in range(80):
            assert rollout.observations[t, n].tolist() == observation.tolist()
            reached, reward, terminated, truncated, _ = env.step(rollout.actions[t, n].item())
            total, length = total + float(reward), length + 1
            assert rollout.next_observations[t, n].tolist() == reached.tolist()
            assert rollout.rewards[t, n] == reward
            assert rollout.terminated[t, n] == terminated
            assert rollout.truncated[t, n] == truncated
            assert rollout.episode_returns[t, n] == total
            assert rollout.episode_lengths[t, n] == length
            observation = reached
            if terminated or truncated:
                observation, _ = env.reset()
                total, length = 0.0, 0


def test_observations_are_those_acted_on(collect_rollout):
    rollout = collect_script(num_steps=5, collect=collect_rollout)
    # Environment 0 plays episodes of 3 and 2 steps, environment 1 of 1 and 4.
    assert rollout.observations[:, 0].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    assert rollout.observations[:, 1].tolist() == [[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]]


def test_next_observations_are_those_before_the_reset(collect_rollout):
    for mode in MODES:
        rollout = collect_script(num_steps=5, mode=mode, collect=collect_rollout)
        assert rollout.next_observations[:3, 0].tolist() == [[0, 1], [0, 2], [0, 3]]
        assert rollout.next_observations[0, 1].tolist() == [0, 1]


def test_rewards_belong_to_the_action_that_earned_them(collect_rollout):
    envs = scripted([episode(0.0, 0.0, 0.0, 0.0, end="terminated")], action_bonus=5.0)
    rollout, _ = collect_rollout(
        envs, PARITY, start_carry(envs, seed=0), num_steps=4, generator=generator()
    )
    # The policy chooses action 1 on odd steps, and action 1 earns 5.
    assert rollout.actions[:, 0].tolist() == [0, 1, 0, 1]
    assert rollout.rewards[:, 0].tolist() == [0.0, 5.0, 0.0, 5.0]


def test_as_many_rows_are_valid_as_steps_were_made(collect_rollout):
    rollout = collect_script(num_steps=9, mode=AutoresetMode.NEXT_STEP, collect=collect_rollout)
    # Episodes of 3, 2, 3 steps with a reset between them: 3 + reset + 2 + reset + 2 of 9 rows.
    assert rollout.valid[:, 0].tolist() == [True] * 3 + [False] + [True] * 2 + [False] + [True] * 2
    # 1 + reset + 4 + reset + 1 + reset
    assert rollout.valid[:, 1].tolist() == [True, False, *[True] * 4, False, True, False]


def test_log_probs_old_rate_the_actions_stored(collect_rollout):
    rollout, networks, _ = cartpole(num_steps=32, collect=collect_rollout)
    observations, actions = rollout.observations.flatten(0, 1), rollout.actions.flatten()
    log_probs, _ = networks.policy.evaluate(observations, actions)
    assert torch.equal(log_probs.detach(), rollout.log_probs_old.flatten())


def test_an_end_is_valued_by_what_it_reached(score_values):
    # Observations (0,0) (0,1) (0,2)→(0,3) end; (1,0) (1,1)→(1,2) end; (2,0) (2,1)→(2,2) cut.
    values, next_values = score_values(READABLE, collect_script(SCRIPTS[0], num_steps=7))
    assert values[:, 0].tolist() == [0, 1, 2, 100, 101, 200, 201]
    assert next_values[:, 0].tolist() == [1, 2, 3, 101, 102, 201, 202]


def test_environments_start_differently(make_envs):
    rows = make_envs("CartPole-v1", 8).reset(3)
    assert len(torch.unique(rows, dim=0)) == 8


def test_a_flag_stands_in_the_row_of_the_step_that_it_describes(collect_rollout):
    rollout = collect_script(num_steps=5, collect=collect_rollout)
    assert rollout.terminated.int().T.tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert rollout.truncated.int().T.tolist() == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


def test_the_next_rollout_goes_on_where_the_last_one_stopped(collect_rollout):
    envs = scripted([episode(1.0, 1.0, 1.0, 1.0, end="terminated")])
    carry, rows = start_carry(envs, seed=0), []
    for _ in range(2):
        rollout, carry = collect_rollout(envs, PARITY, carry, num_steps=2, generator=generator())
        rows += rollout.observations[:, 0].tolist()
    assert rows == [[0, 0], [0, 1], [0, 2], [0, 3]]


def test_the_state_that_an_end_reached_is_another_than_the_one_before(score_values):
    values, next_values = score_values(READABLE, collect_script(SCRIPTS[0], num_steps=5))
    assert (next_values - values)[:, 0].tolist() == [1.0] * 5


def test_a_table_learns_the_values_that_the_equations_give(fit_table):
    # Climbing earns nothing twice, then 1 for ever: states in a table, solved as one linear system.
    transitions = torch.zeros(3, 1, 3, dtype=torch.float64)
    transitions[[0, 1, 2], 0, [1, 2, 2]] = 1.0
    rewards = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)
    initial = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    model = MDP("a lighthouse", transitions, rewards, initial, torch.arange(3))
    exact = state_values(model, torch.ones(3, 1, dtype=torch.float64), gamma=GAMMA)
    learned = fit_table(lighthouse(22), HEIGHTS, **SETTINGS)
    assert_close(learned[-1], exact, rtol=0, atol=1e-9)


def test_a_row_that_is_no_step_teaches_a_table_nothing(fit_table):
    junk = lighthouse(25, mode=AutoresetMode.NEXT_STEP)
    assert junk.valid.sum() == 22
    learned = fit_table(junk, HEIGHTS, **SETTINGS)
    assert_close(learned, fit_table(lighthouse(22), HEIGHTS, **SETTINGS), rtol=0, atol=1e-9)
    assert learned[-1, 2] == pytest.approx(10.0, abs=1e-9)


def test_states_that_look_alike_share_a_value(fit_table):
    # Rows 0 to 5 of each episode; λ = 1 and no bootstrap: the mean of what came until the limit.
    rollout, alike = lighthouse(24), torch.tensor([0, 0, 1])
    settings = {"gamma": GAMMA, "gae_lambda": 1.0, "num_rounds": 3}
    learned = fit_table(rollout, alike, advantages_of=ENDINGS["flags merged"], **settings)
    at_lamp = [sum(GAMMA**k for k in range(left)) for left in (1, 2, 3, 4)]
    on_the_way = [GAMMA * at_lamp[-1], GAMMA**2 * at_lamp[-1]]
    expected = [sum(on_the_way) / 2, sum(at_lamp) / 4]
    assert learned[-1].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_limit_taken_for_the_end_is_a_death_at_every_step(fit_table):
    # At λ = 0 and four steps at the lamp: V = 1 + γ·(3/4)·V.
    learned = fit_table(
        lighthouse(24), HEIGHTS, advantages_of=ENDINGS["flags merged"],
        gamma=GAMMA, gae_lambda=0.0, num_rounds=120,
    )  # fmt: skip
    assert learned[-1, 2] == pytest.approx(1 / (1 - GAMMA * 3 / 4), abs=1e-9)


def test_the_first_round_starts_from_nothing(fit_table):
    # V = 0 everywhere, so the four steps at the lamp see 1 + γλ + (γλ)² + (γλ)³ and less.
    learned = fit_table(lighthouse(6), HEIGHTS, gamma=GAMMA, gae_lambda=LAMBDA, num_rounds=1)
    trace = GAMMA * LAMBDA
    sums = [sum(trace**k for k in range(left)) for left in (4, 3, 2, 1)]
    expected = [trace**2 * sums[0], trace * sums[0], sum(sums) / 4]
    assert learned[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_keeper_who_climbs_earns_nothing_twice_and_then_one_for_ever(Lighthouse):
    env = Lighthouse()
    observation, _ = env.reset(seed=0)
    heights, rewards, ended = [observation.tolist()], [], False
    for _ in range(50):
        observation, reward, terminated, truncated, _ = env.step(0)
        heights, rewards = [*heights, observation.tolist()], [*rewards, reward]
        ended = ended or terminated or truncated
    assert heights == [[0.0], [1.0], *[[2.0]] * 49]
    assert rewards == [0.0, 0.0, *[1.0] * 48]
    assert not ended


def test_the_offer_stands_at_the_foot_only(Lighthouse):
    env = Lighthouse(offer=3)
    env.reset(seed=0)
    assert env.step(1)[1:4] == (3.0, True, False)
    env.reset()
    env.step(0)
    assert env.step(1)[1:4] == (0.0, False, False)
    assert env.step(1)[1:4] == (1.0, False, False)


CAUGHT_BY = {
    "stale_observations": test_observations_are_those_acted_on,
    "next_observations_after_the_reset": test_next_observations_are_those_before_the_reset,
    "rewards_shifted_by_one": test_rewards_belong_to_the_action_that_earned_them,
    "rows_of_the_reset_are_valid": test_as_many_rows_are_valid_as_steps_were_made,
    "actions_that_were_not_taken": test_log_probs_old_rate_the_actions_stored,
    "next_values_from_the_next_row": test_an_end_is_valued_by_what_it_reached,
    "next_values_never_beyond_the_rollout": test_an_end_is_valued_by_what_it_reached,
    "same_seed_everywhere": test_environments_start_differently,
    "flags_in_the_row_after": test_a_flag_stands_in_the_row_of_the_step_that_it_describes,
    "rollouts_start_afresh": test_the_next_rollout_goes_on_where_the_last_one_stopped,
    "next_values_of_the_state_before": (
        test_the_state_that_an_end_reached_is_another_than_the_one_before
    ),
    "advantages_for_returns": test_a_table_learns_the_values_that_the_equations_give,
    "rows_of_the_reset_are_learned": test_a_row_that_is_no_step_teaches_a_table_nothing,
    "one_value_for_all": test_a_table_learns_the_values_that_the_equations_give,
    "ends_always_right": test_a_limit_taken_for_the_end_is_a_death_at_every_step,
    "lambda_left_out": test_the_first_round_starts_from_nothing,
    "OfferOnEveryFloor": test_the_offer_stands_at_the_foot_only,
    "LampGoesOut": test_a_keeper_who_climbs_earns_nothing_twice_and_then_one_for_ever,
}


@pytest.mark.parametrize("mistake", mistakes_of("rollout"), ids=lambda mistake: mistake.name)
def test_mistake_is_caught(mistake):
    assert refuses(CAUGHT_BY[mistake.name], mistake.breaks, mistake.function)


@pytest.mark.parametrize("target", sorted({m.breaks for m in mistakes_of("rollout")}))
def test_each_claim_refuses_a_mistake(target):
    functions = [m.function for m in mistakes_of("rollout") if m.breaks == target]
    for name, claim in claims_about(target, sys.modules[__name__]).items():
        assert any(refuses(claim, target, function) for function in functions), name


@pytest.mark.parametrize("name", ["stale_observations", "next_observations_after_the_reset"])
def test_the_slow_loop_catches_it_too(name):
    assert refuses(test_facts_are_those_of_single_environments, "collect_rollout", MISTAKES[name])


def test_an_environment_that_always_pays_the_same_hides_a_shifted_reward():
    # Which is why the check above is run on rewards that depend on the action.
    test_facts_are_those_of_single_environments(MISTAKES["rewards_shifted_by_one"])


# --- Collect -------------------------------------------------------------------------------------


def test_ended_is_either_flag():
    rollout = collect_script(num_steps=5)
    assert rollout.ended.int().T.tolist() == [[0, 0, 1, 0, 1], [1, 0, 0, 0, 1]]


def test_episode_returns_and_lengths_run_until_the_end():
    rollout = collect_script(num_steps=6)
    assert rollout.episode_returns[:, 0].tolist() == [1, 3, 6, 4, 9, 1]
    assert rollout.episode_lengths[:, 0].tolist() == [1, 2, 3, 1, 2, 1]
    assert rollout.episode_returns[:, 1].tolist() == [-1, 7, 15, 24, 34, -1]


class Scaled:
    """Shows the learner a tenth of each reward, and says what the task itself paid."""

    def __init__(self, envs):
        self.envs = envs

    def __getattr__(self, name):
        return getattr(self.envs, name)

    def step(self, actions):
        step = self.envs.step(actions)
        return step._replace(rewards=step.rewards / 10, unscaled_rewards=step.rewards)


def test_episode_returns_add_up_what_the_task_paid_however_rewards_are_scaled():
    plain = collect_script(num_steps=6)
    envs = Scaled(scripted(*SCRIPTS))
    scaled, carry = collect_rollout(
        envs, PARITY, start_carry(envs, seed=0), num_steps=6, generator=generator()
    )
    assert_close(scaled.rewards, plain.rewards / 10)
    assert torch.equal(scaled.episode_returns, plain.episode_returns)
    assert carry.episode_returns.tolist() == [1, 0]


class Boards:
    """Observations that are boards of true and false; actions are two real numbers."""

    num_envs, device = 3, torch.device("cpu")
    single_observation_space = single_action_space = None

    def state_dict(self):
        return None

    def load_state_dict(self, state):
        raise AssertionError("there is nothing to load")

    def reset(self, seed):
        return torch.arange(12).view(3, 2, 2) % 5 == 0

    def step(self, actions):
        board, no = self.reset(0) ^ (actions[:, :1, None] > 0), torch.zeros(3, dtype=torch.bool)
        return EnvStep(board, board, actions.sum(-1), no, no, ~no)


def test_observations_keep_their_dtype_and_actions_their_shape():
    class TwoNumbers(FixedPolicy):
        def sample(self, boards, generator):
            return boards.flatten(1)[:, :2].float() - 0.25, torch.zeros(len(boards))

    policy, envs = TwoNumbers(rule=None), Boards()
    rollout, _ = collect_rollout(
        envs, policy, start_carry(envs, seed=0), num_steps=2, generator=generator()
    )
    assert rollout.observations.dtype == rollout.next_observations.dtype == torch.bool
    assert rollout.observations.shape == (2, 3, 2, 2)
    assert torch.equal(rollout.observations[0], envs.reset(0))
    assert rollout.actions.shape == (2, 3, 2)
    assert_close(rollout.rewards, rollout.actions.sum(-1))


@pytest.mark.parametrize("mode", MODES)
def test_an_episode_may_span_several_rollouts(mode):
    whole = collect_script(num_steps=9, mode=mode)
    envs = scripted(*SCRIPTS, mode=mode)
    carry, pieces = start_carry(envs, seed=0), []
    for num_steps in (2, 1, 4, 2):
        piece, carry = collect_rollout(
            envs, PARITY, carry, num_steps=num_steps, generator=generator()
        )
        pieces.append(piece)
    for field in fields(Rollout):
        joined = torch.cat([getattr(piece, field.name) for piece in pieces])
        assert torch.equal(joined, getattr(whole, field.name)), field.name


@pytest.mark.parametrize("mode", MODES)
def test_finished_returns_do_not_depend_on_the_mode(mode):
    rollout = collect_script(num_steps=14, mode=mode)
    finished = rollout.episode_returns[:, 0][rollout.ended[:, 0] & rollout.valid[:, 0]]
    assert finished[:4].tolist() == [6.0, 9.0, 6.0, 9.0]


def test_a_reused_rollout_holds_the_same_numbers():
    envs = Probe("both", 3)
    networks = make_networks((1,), 2, hidden_sizes=(4,), generator=generator())
    fresh_carry = start_carry(envs, seed=1)
    arguments = {"num_steps": 5, "generator": generator(2)}
    first, _ = collect_rollout(envs, networks.policy, fresh_carry, **arguments)
    kept = replace(first, **{f.name: getattr(first, f.name).clone() for f in fields(Rollout)})
    for name in ("observations", "rewards", "log_probs_old", "episode_returns"):
        getattr(first, name).fill_(torch.nan)
    carry = start_carry(envs, seed=1)
    arguments = {"num_steps": 5, "generator": generator(2)}
    second, _ = collect_rollout(envs, networks.policy, carry, out=first, **arguments)
    assert second is first
    assert all(torch.equal(getattr(second, f.name), getattr(kept, f.name)) for f in fields(Rollout))


def test_a_reused_rollout_does_not_change_the_carry():
    envs = scripted(*SCRIPTS)
    rollout, carry = collect_rollout(
        envs, PARITY, start_carry(envs, seed=0), num_steps=4, generator=generator()
    )
    before = carry.observations.clone(), carry.episode_returns.clone()
    collect_rollout(envs, PARITY, carry, num_steps=4, generator=generator(), out=rollout)
    assert torch.equal(carry.observations, before[0])
    assert torch.equal(carry.episode_returns, before[1])


def test_collecting_needs_no_gradient_and_touches_no_global_randomness():
    before = torch.get_rng_state()
    rollout, _, _ = cartpole(num_steps=5)
    assert not rollout.log_probs_old.requires_grad
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_generator_gives_the_same_rollout():
    first, second = cartpole(num_steps=20)[0], cartpole(num_steps=20)[0]
    assert torch.equal(first.actions, second.actions)
    assert torch.equal(first.observations, second.observations)


@pytest.mark.messages
def test_a_rollout_of_no_steps_is_refused():
    for num_steps in (0, -1):
        with pytest.raises(ValueError, match="expected at least 1") as raised:
            collect_script(num_steps=num_steps)
        assert str(raised.value) == (
            f"num_steps is {num_steps}; expected at least 1. Choose num_steps=64."
        )


@pytest.mark.messages
def test_a_rollout_of_another_length_is_not_overwritten():
    envs, out = scripted(*SCRIPTS), collect_script(num_steps=3)
    with pytest.raises(ValueError, match="expected num_steps=4") as raised:
        collect_rollout(
            envs, PARITY, start_carry(envs, seed=0), num_steps=4, generator=generator(), out=out
        )
    assert str(raised.value) == (
        "out holds 3 steps; expected num_steps=4. Leave out= away, or pass the rollout of an "
        "earlier call with the same num_steps."
    )


# --- Score ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_next_values_are_the_next_row_or_the_true_next_observation(mode):
    rollout = collect_script(num_steps=12, mode=mode)
    values, next_values = score_values(READABLE, rollout)
    true_next = 100 * rollout.next_observations[..., 0] + rollout.next_observations[..., 1]
    inside = ~rollout.ended
    inside[-1] = False
    assert torch.equal(next_values[:-1][inside[:-1]], values[1:][inside[:-1]])
    assert torch.equal(next_values[rollout.valid], true_next[rollout.valid])


def test_the_critic_is_asked_without_gradient():
    values, next_values = score_values(READABLE, collect_script(num_steps=3))
    assert not values.requires_grad
    assert not next_values.requires_grad


def test_scoring_changes_no_fact():
    rollout = collect_script(num_steps=7)
    before = {f.name: getattr(rollout, f.name).clone() for f in fields(Rollout)}
    score_values(READABLE, rollout)
    assert all(torch.equal(before[name], getattr(rollout, name)) for name in before)


@pytest.mark.messages
def test_a_critic_with_an_axis_too_many_is_refused():
    with pytest.raises(ValueError, match="values has shape") as raised:
        score_values(nn.Linear(2, 1), collect_script(num_steps=3))
    assert str(raised.value) == (
        "values has shape (3, 2, 1); expected (3, 2) like rewards. Reshape values so that both "
        "describe the same samples."
    )


class Table(nn.Module):
    """V of each observation, looked up in a dictionary."""

    def __init__(self, known: dict[tuple[float, float], float]):
        super().__init__()
        self.known = known

    def forward(self, observations):
        rows = observations.reshape(-1, 2).tolist()
        flat = torch.tensor([float(self.known[row[0], row[1]]) for row in rows])
        return flat.reshape(observations.shape[:-1])


def test_the_worked_case():
    # Rewards 1; V = 5, 6 | 1, 2; a truncation after step 1 whose last observation is worth 7, and
    # 3 after the last row; gamma 0.9, lambda 0.8. By hand:
    #   Â_3 = 1 + 0.9·3 − 2 = 1.7         Â_2 = 1 + 0.9·2 − 1 + 0.72·1.7 = 3.024
    #   Â_1 = 1 + 0.9·7 − 6 = 1.3         Â_0 = 1 + 0.9·6 − 5 + 0.72·1.3 = 2.336
    script = [episode(1.0, 1.0, end="truncated"), episode(1.0, 1.0, 1.0, end="terminated")]
    critic = Table({(0, 0): 5, (0, 1): 6, (0, 2): 7, (1, 0): 1, (1, 1): 2, (1, 2): 3})
    rollout = collect_script(script, num_steps=4)
    advantages = gae_of(rollout, critic)
    expected = torch.tensor([2.336, 1.300, 3.024, 1.700])
    assert_close(advantages[:, 0], expected, rtol=1e-5, atol=1e-6)


def gae_of(rollout: Rollout, critic: nn.Module, values_too: bool = False):
    values, next_values = score_values(critic, rollout)
    advantages = compute_gae(
        rollout.rewards,
        values,
        next_values,
        rollout.terminated,
        rollout.truncated,
        gamma=GAMMA,
        gae_lambda=LAMBDA,
    )
    return (advantages, values) if values_too else advantages


@pytest.mark.parametrize("mode", MODES)
def test_nothing_after_a_reset_matters(mode):
    rollout = collect_script(SCRIPTS[0], num_steps=9, mode=mode)
    before = gae_of(rollout, READABLE)
    for end in (2, 4) if mode is not AutoresetMode.NEXT_STEP else (2, 5):
        assert rollout.ended[end, 0]
        changed = {
            name: getattr(rollout, name).clone()
            for name in ("observations", "next_observations", "rewards")
        }
        for tensor in changed.values():
            tensor[end + 1 :] = 12345.0
        after = gae_of(replace(rollout, **changed), READABLE)
        assert torch.equal(after[: end + 1], before[: end + 1])
        assert not torch.equal(after[end + 1 :], before[end + 1 :])


def test_cutting_a_rollout_in_two_takes_away_only_the_sum_beyond_the_cut():
    script = [episode(*range(1, 11), end="terminated")]
    whole = collect_script(script, num_steps=10)
    envs = scripted(script)
    carry = start_carry(envs, seed=0)
    first, carry = collect_rollout(envs, PARITY, carry, num_steps=6, generator=generator())
    second, _ = collect_rollout(envs, PARITY, carry, num_steps=4, generator=generator())
    together, early, late = (gae_of(rollout, READABLE)[:, 0] for rollout in (whole, first, second))
    assert torch.equal(late, together[6:])
    # What is missing at step t is (gamma·lambda)^(6 − t) times the advantage at step 6.
    missing = (GAMMA * LAMBDA) ** torch.arange(6, 0, -1) * together[6]
    assert_close(early + missing, together[:6], rtol=1e-5, atol=1e-5)  # float32


# --- Ends ----------------------------------------------------------------------------------------

# Rewards 1, V = 5, 6 | 1, 2, the truncated step reached 7, after the last row comes 3.
WORKED = {
    "two masks": [2.336, 1.300, 3.024, 1.700],
    "flags merged": [-2.200, -5.000, 3.024, 1.700],
    "truncated ignored": [3.9036416, 3.47728, 3.024, 1.700],
    "truncated ignored, next value after the reset": [0.0156416, -1.92272, 3.024, 1.700],
    "trace cut, next value after the reset": [-1.552, -4.100, 3.024, 1.700],
    "nothing after the last row": [2.336, 1.300, 1.080, -1.000],
}
# The same mistakes, written a second time without `compute_gae`.
WRITTEN_TWICE = {
    "flags merged": gae.flags_merged,
    "truncated ignored": gae.truncated_ignored,
    "truncated ignored, next value after the reset": gae.truncated_ignored_after_the_reset,
    "trace cut, next value after the reset": gae.next_value_after_the_reset,
    "nothing after the last row": gae.no_bootstrap_at_the_last_row,
}


def column(*numbers: float):
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize("name", ENDINGS)
def test_each_way_to_end_has_its_row_in_the_worked_case(name):
    truncated = column(0, 1, 0, 0).bool()
    advantages = ENDINGS[name](
        torch.ones(4, 1, dtype=torch.float64), column(5, 6, 1, 2), column(6, 7, 2, 3),
        torch.zeros_like(truncated), truncated, gamma=0.9, gae_lambda=0.8,
    )  # fmt: skip
    assert_close(advantages, column(*WORKED[name]), rtol=0, atol=1e-12)


def test_each_wrong_way_to_end_is_the_mistake_of_that_name():
    random = generator(3)
    rewards, values, next_values = torch.randn(3, 40, 5, generator=random, dtype=torch.float64)
    terminated, truncated = torch.rand(2, 40, 5, generator=random) < 0.15
    facts = (rewards, values, next_values, terminated, truncated)
    assert (terminated & truncated).any()
    for name, mistake in WRITTEN_TWICE.items():
        ours = ENDINGS[name](*facts, gamma=0.97, gae_lambda=0.9)
        assert_close(ours, mistake(*facts, gamma=0.97, gae_lambda=0.9), rtol=0, atol=1e-12)


def test_one_way_to_end_is_right_and_is_compute_gae():
    assert ENDINGS["two masks"] is compute_gae
    assert set(ENDINGS) - set(WRITTEN_TWICE) == {"two masks"}


def test_every_way_to_end_fits_the_training_loop():
    assert all(Parts(advantages=function) for function in ENDINGS.values())


def learned_at(*, alike: bool) -> dict[str, list[float]]:
    entries = torch.tensor([0, 0, 1]) if alike else HEIGHTS
    rollout = lighthouse(22)
    return {
        name: fit_table(rollout, entries, advantages_of=function, **SETTINGS)[-1].tolist()
        for name, function in ENDINGS.items()
    }


def test_a_trace_that_runs_on_does_no_harm_to_a_critic_without_error():
    lamp = {name: values[-1] for name, values in learned_at(alike=False).items()}
    right = [name for name, value in lamp.items() if abs(value - 10) < 1e-9]
    assert right == ["two masks", "truncated ignored"]
    assert all(value < 7.5 for name, value in lamp.items() if name not in right)


def test_a_trace_that_runs_on_harms_a_critic_that_errs_elsewhere():
    lamp = {name: values[-1] for name, values in learned_at(alike=True).items()}
    assert lamp["two masks"] == pytest.approx(10, abs=1e-9)
    assert max(value for name, value in lamp.items() if name != "two masks") < 9.1


def test_an_entry_that_no_row_has_stays_at_zero():
    learned = fit_table(lighthouse(1), torch.tensor([0, 1, 3]), **SETTINGS)
    assert learned.shape == (120, 4)
    assert learned[-1].tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.messages
def test_a_table_needs_rounds_and_numbered_states():
    with pytest.raises(ValueError, match="expected at least 1") as raised:
        fit_table(lighthouse(3), HEIGHTS, gamma=GAMMA, gae_lambda=LAMBDA, num_rounds=0)
    assert str(raised.value) == "num_rounds is 0; expected at least 1. Choose num_rounds=100."
    with pytest.raises(ValueError, match="expected") as raised:
        fit_table(collect_script(num_steps=3), HEIGHTS, **SETTINGS)
    assert str(raised.value) == (
        "an observation has shape (2,); expected (1,), the number of a state. Number the states of "
        "your environment."
    )


# --- Flatten -------------------------------------------------------------------------------------


def test_row_i_of_a_batch_is_step_i_div_n_of_environment_i_mod_n():
    rollout = collect_script(num_steps=4)
    values = torch.arange(8.0).reshape(4, 2)
    batch = flatten(rollout, values, values * 10)
    assert len(batch) == 8
    for i in range(8):
        t, n = divmod(i, 2)
        assert torch.equal(batch.observations[i], rollout.observations[t, n])
        assert batch.actions[i] == rollout.actions[t, n]
        assert batch.log_probs_old[i] == rollout.log_probs_old[t, n]
        assert batch.valid[i] == rollout.valid[t, n]
        assert batch.values_old[i] == i
        assert batch.advantages[i] == 10 * i
        assert batch.returns[i] == 11 * i


@pytest.mark.messages
def test_advantages_of_another_shape_are_refused():
    rollout = collect_script(num_steps=4)
    with pytest.raises(ValueError, match="advantages has shape"):
        flatten(rollout, torch.zeros(4, 2), torch.zeros(4, 1))


# --- The row that is no step ---------------------------------------------------------------------


def perturbed(rollout: Rollout) -> Rollout:
    """Other actions, rewards, log-probabilities and places in the rows that are no real step."""
    changed = {
        name: getattr(rollout, name).clone()
        for name in ("observations", "actions", "rewards", "log_probs_old")
    }
    junk = ~rollout.valid
    assert junk.any()
    changed["actions"][junk] = 1 - changed["actions"][junk]
    changed["rewards"][junk] = 1e6
    changed["log_probs_old"][junk] = -30.0
    changed["observations"][junk] = -77.0
    return replace(rollout, **changed)


def test_the_row_that_is_no_step_moves_no_advantage_and_no_parameter():
    rollout = collect_script(num_steps=12, mode=AutoresetMode.NEXT_STEP)
    results = []
    for version in (rollout, perturbed(rollout)):
        networks = make_networks((2,), 2, hidden_sizes=(8,), generator=generator())
        optimizer = make_optimizer(networks, learning_rate=1e-2)
        advantages, values = gae_of(version, networks.critic, values_too=True)
        batch = flatten(version, values, advantages)
        config = PPOConfig(
            total_steps=24, num_envs=2, num_steps=12, num_epochs=3, num_minibatches=2
        )
        stats = update(networks, optimizer, batch, config, parts=Parts(), generator=generator())
        weights = nn.utils.parameters_to_vector(networks.parameters()).detach()
        results.append((advantages[rollout.valid], weights, stats))
    (advantages, weights, stats), (advantages_2, weights_2, stats_2) = results
    assert torch.equal(advantages, advantages_2)
    assert torch.equal(weights, weights_2)
    for field in fields(stats):
        assert torch.equal(getattr(stats, field.name), getattr(stats_2, field.name)), field.name
