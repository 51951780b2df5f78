"""Environments against scripts: what a step reached, before any reset, in every autoreset mode."""

import re
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeReward
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from toy_envs import (
    MODES,
    SCRIPTS,
    BrokenReward,
    EndlessReward,
    ScriptedEnv,
    Spaces,
    same_step,
    scripted,
    vector,
)

from ppo_lessons.envs import PROBES, BatchedEnvs, Envs, EnvStep, GymEnvs, Probe, make_envs
from ppo_lessons.envs.classic import CartPole, Pendulum
from ppo_lessons.envs.gym import load_env, save_env
from ppo_lessons.envs.protocol import check_numbers

CLASSIC = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"]
CONTINUOUS = ["MountainCarContinuous-v0", "Pendulum-v1"]
NOTHING = torch.zeros(2, dtype=torch.int64)

# What the scripts say, written out by hand: (observation, reward, terminated, truncated,
# next observation) of the first seven steps of each environment.
STORY = (
    [
        ((0, 0), 1.0, False, False, (0, 1)),
        ((0, 1), 2.0, False, False, (0, 2)),
        ((0, 2), 3.0, True, False, (0, 3)),
        ((1, 0), 4.0, False, False, (1, 1)),
        ((1, 1), 5.0, False, True, (1, 2)),
        ((2, 0), 1.0, False, False, (2, 1)),
        ((2, 1), 2.0, False, False, (2, 2)),
    ],
    [
        ((0, 0), -1.0, False, True, (0, 1)),
        ((1, 0), 7.0, False, False, (1, 1)),
        ((1, 1), 8.0, False, False, (1, 2)),
        ((1, 2), 9.0, False, False, (1, 3)),
        ((1, 3), 10.0, True, False, (1, 4)),
        ((2, 0), -1.0, False, True, (2, 1)),
        ((3, 0), 7.0, False, False, (3, 1)),
    ],
)


def play(envs: Envs, num_steps: int, seed: int = 0, actions=None):
    """Observations on which each step was taken, and what each step gave."""
    observations, steps = [envs.reset(seed)], []
    for t in range(num_steps):
        row = torch.zeros(envs.num_envs, dtype=torch.int64) if actions is None else actions[t]
        steps.append(envs.step(row))
        observations.append(steps[-1].observations)
    return observations[:-1], steps


def valid_rows(envs: Envs, column: int, num_steps: int):
    """The valid rows of one environment, as tuples like those of the story."""
    observations, steps = play(envs, num_steps)
    return [
        (
            tuple(observation[column].int().tolist()),
            step.rewards[column].item(),
            step.terminated[column].item(),
            step.truncated[column].item(),
            tuple(step.next_observations[column].int().tolist()),
        )
        for observation, step in zip(observations, steps, strict=True)
        if step.valid[column]
    ]


# --- Autoreset modes -----------------------------------------------------------------------------


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_tells_the_same_story(mode, column):
    rows = valid_rows(scripted(*SCRIPTS, mode=mode), column, num_steps=10)
    assert rows[:7] == STORY[column]


@pytest.mark.parametrize("mode", MODES)
def test_only_the_next_step_mode_has_rows_that_are_no_step(mode):
    _, steps = play(scripted(*SCRIPTS, mode=mode), num_steps=10)
    valid = torch.stack([step.valid for step in steps])
    ended = torch.stack([step.terminated | step.truncated for step in steps])
    if mode is AutoresetMode.NEXT_STEP:
        assert torch.equal(~valid[1:], ended[:-1])
        assert valid[0].all()
    else:
        assert valid.all()


def test_the_row_that_resets_ignores_its_action_and_earns_nothing():
    envs = scripted(*SCRIPTS, mode=AutoresetMode.NEXT_STEP, action_bonus=100.0)
    actions = torch.ones(3, 2, dtype=torch.int64)
    _, steps = play(envs, num_steps=3, actions=actions)
    # The second environment ended at step 0, so its step 1 is the reset.
    assert [step.rewards[1].item() for step in steps] == [99.0, 0.0, 107.0]
    assert [step.valid[1].item() for step in steps] == [True, False, True]
    assert steps[1].observations[1].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("mode", MODES)
def test_gymnasium_gives_final_observations_only_under_same_step(mode):
    # It is gymnasium's behaviour that GymEnvs rests on; a release that changes it must be noticed.
    envs = SyncVectorEnv([lambda: ScriptedEnv(SCRIPTS[1])], autoreset_mode=mode)
    envs.reset(seed=0)
    observations, _, _, truncated, extra = envs.step(np.zeros(1, dtype=np.int64))
    assert truncated.all()
    assert ("final_obs" in extra) == (mode is AutoresetMode.SAME_STEP)
    reset_already = mode is AutoresetMode.SAME_STEP
    assert observations[0].tolist() == ([1.0, 0.0] if reset_already else [0.0, 1.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_forgets_that_an_episode_had_just_ended(mode):
    envs = scripted(*SCRIPTS, mode=mode)
    play(envs, num_steps=1)  # the second environment ends here
    assert envs.reset(0).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert envs.step(NOTHING).valid.all()


@pytest.mark.parametrize("mode", MODES)
def test_observations_are_copies(mode):
    envs = scripted(*SCRIPTS, mode=mode)
    observations, steps = play(envs, num_steps=6)
    seen = [row.clone() for row in observations]
    reached = [step.next_observations.clone() for step in steps]
    for _ in range(5):
        envs.step(NOTHING)
    assert all(torch.equal(a, b) for a, b in zip(seen, observations, strict=True))
    pairs = zip(reached, (step.next_observations for step in steps), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(observations[0], observations[-1])


def test_valid_rows_of_gymnasiums_own_batched_environment_are_the_steps_of_its_episodes():
    # Its mode is NEXT_STEP unless one says otherwise, and it has no environments inside.
    inner = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    envs = GymEnvs(inner)
    assert envs.autoreset_mode is AutoresetMode.NEXT_STEP
    observations, steps = play(envs, num_steps=60)
    for n in range(3):
        ends = [t for t, step in enumerate(steps) if (step.terminated | step.truncated)[n]]
        assert len(ends) >= 3
        for end, next_end in pairwise(ends):
            assert not steps[end + 1].valid[n]
            # A new episode begins within 0.05 of the origin, and every step of it earns 1.
            assert observations[end + 2][n].abs().max() <= 0.05
            rows = steps[end + 1 : next_end + 1]
            assert sum(step.rewards[n].item() for step in rows if step.valid[n]) == len(rows) - 1


@pytest.mark.full
def test_environments_in_processes_of_their_own_tell_the_same_story():
    makers = [lambda: gymnasium.make("CartPole-v1")] * 2
    here = GymEnvs(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))
    there = GymEnvs(AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))
    first, second = play(here, 40, seed=3), play(there, 40, seed=3)
    there.envs.close()
    for a, b in zip(first[1], second[1], strict=True):
        assert same_step(a, b)


def test_dtypes_are_those_of_the_protocol():
    step = play(make_envs("CartPole-v1", 2), num_steps=1)[1][0]
    assert step.observations.dtype == step.next_observations.dtype == torch.float32
    assert step.rewards.dtype == torch.float32
    assert {step.terminated.dtype, step.truncated.dtype, step.valid.dtype} == {torch.bool}


# --- Seeds ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_episodes():
    actions = torch.randint(2, (60, 3), generator=torch.Generator().manual_seed(0))
    first, second = (
        play(make_envs("CartPole-v1", 3), 60, seed=5, actions=actions) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True))


def test_neighbouring_seeds_share_no_initial_state():
    envs = make_envs("CartPole-v1", 8)
    rows = torch.cat([envs.reset(seed) for seed in range(20)])
    assert len(torch.unique(rows, dim=0)) == 8 * 20


def test_environments_are_independent_of_the_global_random_state():
    envs = make_envs("CartPole-v1", 2)
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 (the global state is what is tested)
    play(envs, num_steps=40)
    Probe("both", 3).reset(1)
    assert torch.equal(torch.get_rng_state(), before_torch)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002 (same)


# --- Saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIC + CONTINUOUS)
def test_a_saved_environment_goes_on_bit_by_bit(name):
    original, restored = gymnasium.make(name), gymnasium.make(name)
    original.reset(seed=3)
    restored.reset(seed=99)
    original.action_space.seed(0)
    for _ in range(11):
        original.step(original.action_space.sample())
    load_env(restored, save_env(original))
    resets = 0
    for _ in range(1100):  # longer than the longest time limit, 999 steps
        action = original.action_space.sample()
        a, b = original.step(action), restored.step(action)
        assert np.array_equal(a[0], b[0])
        assert a[1:4] == b[1:4]
        if a[2] or a[3]:
            resets += 1
            assert np.array_equal(original.reset()[0], restored.reset()[0])
    assert resets > 0


@pytest.mark.parametrize("name", [*CLASSIC, "Pendulum-v1"])
def test_saved_environments_go_on_bit_by_bit(name):
    original, restored = make_envs(name, 3), make_envs(name, 3)
    actions = torch.randint(2, (530, 3), generator=torch.Generator().manual_seed(1))
    if original.single_action_space.shape:
        actions = 3 * torch.randn(530, 3, 1, generator=torch.Generator().manual_seed(1))
    play(original, 30, seed=7, actions=actions)
    restored.load_state_dict(original.state_dict())
    ends = 0
    for row in actions[30:]:
        a, b = original.step(row), restored.step(row)
        assert same_step(a, b)
        ends += int((a.terminated | a.truncated).sum())
    assert ends > 0


def test_saving_changes_nothing():
    envs, other = make_envs("CartPole-v1", 2), make_envs("CartPole-v1", 2)
    play(envs, 5)
    play(other, 5)
    envs.state_dict()
    assert torch.equal(envs.step(NOTHING).observations, other.step(NOTHING).observations)


@pytest.mark.parametrize(
    "envs",
    [
        scripted(*SCRIPTS),
        vector(lambda: gymnasium.make("CartPole-v1"), mode=AutoresetMode.NEXT_STEP),
        vector(lambda: NormalizeReward(gymnasium.make("CartPole-v1"))),
    ],
    ids=["unknown kind", "next-step mode", "wrapper with a state of its own"],
)
def test_what_cannot_be_saved_exactly_is_not_saved(envs):
    envs.reset(0)
    assert envs.state_dict() is None


@pytest.mark.parametrize(
    ("name", "num_envs"), [("CartPole-v1", 3), ("Acrobot-v1", 2), ("MountainCar-v0", 2)]
)
def test_a_foreign_state_is_refused(name, num_envs):
    # CartPole and Acrobot both have four numbers as their state, so counting is not enough.
    saved = make_envs("CartPole-v1", 2)
    saved.reset(0)
    with pytest.raises(ValueError, match="the saved state is that of 2 environments"):
        make_envs(name, num_envs).load_state_dict(saved.state_dict())


@pytest.mark.messages
def test_the_message_about_a_foreign_state_names_both():
    saved = make_envs("CartPole-v1", 2)
    saved.reset(0)
    with pytest.raises(ValueError, match="expected") as raised:
        make_envs("Acrobot-v1", 3).load_state_dict(saved.state_dict())
    assert str(raised.value) == (
        "the saved state is that of 2 environments (CartPoleEnv); expected that of "
        "3 environments (AcrobotEnv). Make the same environments as in the saved run."
    )


# --- Refusals ------------------------------------------------------------------------------------


def refusal(call, *arguments) -> str:
    with pytest.raises(ValueError, match="expected") as raised:
        call(*arguments)
    return str(raised.value)


@pytest.mark.messages
def test_a_reward_that_is_no_number_is_refused_with_its_environment():
    envs = vector(lambda: EndlessReward(5), lambda: BrokenReward(2))
    envs.reset(0)
    envs.step(NOTHING)
    assert refusal(envs.step, NOTHING) == (
        "environment 1 of SyncVectorEnv gave the reward nan; expected finite numbers. "
        "Look at the environment's reward function for that step."
    )


@pytest.mark.messages
@pytest.mark.parametrize("make", [lambda: make_envs("CartPole-v1", 0), lambda: Probe("both", 0)])
def test_zero_environments_are_refused(make):
    assert refusal(make) == "num_envs is 0; expected at least 1. Choose num_envs=8."


@pytest.mark.messages
def test_an_unknown_environment_is_refused_with_a_suggestion():
    message = refusal(make_envs, "Cartpol-v1", 1)
    assert message.startswith("env is 'Cartpol-v1'; expected an id that gymnasium knows (")
    assert "Did you mean CartPole-v1" in message
    assert refusal(make_envs, "qqqq", 1).endswith("List them: gymnasium.registry.")


@pytest.mark.messages
def test_unsupported_spaces_are_refused():
    box, two = Box(-1, 1, (2,), np.float32), Discrete(2)
    for space in (Dict({"a": box}), Discrete(3)):
        message = refusal(vector, lambda space=space: Spaces(space, two))
        assert message.startswith(f"the observation space is {space}; expected a Box.")
        assert message.endswith("for instance with gymnasium.wrappers.FlattenObservation.")
    table, whole = Box(-1, 1, (2, 3), np.float32), Box(0, 5, (2,), np.int64)
    for space in (table, whole, MultiDiscrete([2, 2]), Dict({"a": two}), Discrete(2, start=1)):
        message = refusal(vector, lambda space=space: Spaces(box, space))
        assert message == (
            f"the action space is {space}; expected Discrete actions counted from 0, or real "
            "numbers in a Box with one axis. Choose an environment like CartPole-v1 or "
            "Pendulum-v1, or wrap this one so that its actions are a short list or a vector."
        )


# --- Actions that are real numbers ---------------------------------------------------------------


class Echo(gymnasium.Env):
    """Pays what the first dimension of the action is, and shows what it was given."""

    def __init__(self, low=-1.0, high=1.0, dtype=np.float32):
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Box(low, high, (2,), dtype)
        self.given = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.given.append(action)
        return action.astype(np.float32), float(action[0]), False, False, {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_are_cut_to_the_box_and_arrive_in_its_dtype(dtype):
    envs = vector(lambda: Echo(-0.3, 0.7, dtype))
    envs.reset(0)
    drawn = torch.tensor([[5.0, 0.1]])
    step = envs.step(drawn)
    assert drawn.tolist() == [[5.0, pytest.approx(0.1)]], "what was drawn is left alone"
    assert step.rewards.item() == pytest.approx(0.7)
    (given,) = envs.envs.envs[0].given
    assert given.dtype == dtype
    assert envs.single_action_space.contains(given)
    assert given.tolist() == pytest.approx([0.7, 0.1])
    assert envs.step(torch.tensor([[-5.0, -0.1]])).rewards.item() == pytest.approx(-0.3)


def test_a_box_without_limits_cuts_nothing():
    envs = vector(lambda: Echo(-np.inf, np.inf))
    envs.reset(0)
    assert envs.step(torch.tensor([[1e6, 0.0]])).rewards.item() == 1e6


BATCHED = {
    "Discrete": lambda: BatchedEnvs(CartPole(), 2),
    "Box": lambda: BatchedEnvs(Pendulum(), 2),
}
GYM = {"Discrete": lambda: make_envs("CartPole-v1", 2), "Box": lambda: make_envs("Pendulum-v1", 2)}


@pytest.mark.messages
@pytest.mark.parametrize("makers", [GYM, BATCHED], ids=["gymnasium", "batched"])
@pytest.mark.parametrize(
    ("kind", "actions", "expected"),
    [
        (
            "Discrete",
            torch.zeros(2, 1),
            r"\(2, 1\) and dtype torch.float32; expected \(2,\) and int",
        ),
        (
            "Discrete",
            torch.zeros(2),
            r"\(2,\) and dtype torch.float32; expected \(2,\) and integers",
        ),
        ("Discrete", torch.zeros(3, dtype=torch.int64), r"\(3,\) and dtype torch.int64; expected"),
        ("Box", torch.zeros(2), r"\(2,\) and dtype torch.float32; expected \(2, 1\) and real"),
        (
            "Box",
            torch.zeros(2, 1, dtype=torch.int64),
            r"torch.int64; expected \(2, 1\) and real num",
        ),
        (
            "Discrete",
            torch.tensor([0, 2]),
            "of environment 1 is 2; expected 0 to 1, for the action",
        ),
        ("Discrete", torch.tensor([-1, 0]), "of environment 0 is -1; expected 0 to 1"),
        (
            "Box",
            torch.tensor([[0.0], [torch.nan]]),
            "of environment 1 is nan; expected a finite num",
        ),
        (
            "Box",
            torch.tensor([[torch.inf], [0.0]]),
            "of environment 0 is inf; expected a finite num",
        ),
    ],
)
def test_actions_that_do_not_fit_are_refused(makers, kind, actions, expected):
    envs = makers[kind]()
    envs.reset(0)
    with pytest.raises(ValueError, match=expected) as raised:
        envs.step(actions)
    assert str(raised.value).endswith("Parts(networks=...).")


class BrokenObservation(EndlessReward):
    """Sees infinity at step `limit`."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation + (np.inf if self.elapsed == self.limit else 0), reward, *rest


@pytest.mark.messages
def test_an_observation_that_is_no_number_is_refused_with_its_environment():
    envs = vector(lambda: EndlessReward(5), lambda: BrokenObservation(2))
    envs.reset(0)
    envs.step(NOTHING)
    assert refusal(envs.step, NOTHING) == (
        "environment 1 of SyncVectorEnv gave an observation with inf; expected finite numbers. "
        "Look at the environment's observation for that step."
    )


def test_large_finite_numbers_are_let_through():
    """Their sum is infinite in float32, and they are not."""
    check_numbers("a test", rewards=torch.full((3,), 3e38), observations=torch.full((3, 2), 3e38))


@pytest.mark.messages
def test_an_unknown_probe_is_refused():
    assert refusal(Probe, "nonsense", 1) == (
        "name is 'nonsense'; expected one of constant_reward, reward_by_observation, "
        "two_step_discount, reward_by_action, both. Choose one."
    )


# --- Probes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "envs", [Probe("both", 2), make_envs("CartPole-v1", 2), scripted(*SCRIPTS)]
)
def test_environments_are_envs(envs):
    assert isinstance(envs, Envs)
    assert isinstance(envs, Probe | GymEnvs)
    observations = envs.reset(0)
    step = envs.step(NOTHING)
    assert isinstance(step, EnvStep)
    assert step.observations.shape == step.next_observations.shape == observations.shape
    assert observations.shape == (2, *envs.single_observation_space.shape)


def best_return(name: str, prefix: list[int], gamma: float) -> tuple[float, float, int]:
    """The best discounted return after some actions, by trying all; from where; the best action."""
    found = []
    for action in (0, 1):
        envs = Probe(name, 1)
        observation = envs.reset(prefix[0])
        for taken in prefix[1:]:
            observation = envs.step(torch.tensor([taken])).observations
        step = envs.step(torch.tensor([action]))
        total = step.rewards.item()
        if not step.terminated:
            total += gamma * best_return(name, [*prefix, action], gamma)[1]
        found.append((observation.item(), total, action))
    return max(found, key=lambda row: row[1])


@pytest.mark.parametrize("gamma", [0.5, 0.99])
@pytest.mark.parametrize("name", PROBES)
def test_the_known_values_of_a_probe_are_those_of_trying_everything(name, gamma):
    values, actions = {}, {}
    for seed in range(8):  # the first entry of a prefix is the seed: it chooses the start
        for prefix in [[seed], [seed, 0]][: PROBES[name].length]:
            observation, value, action = best_return(name, prefix, gamma)
            values[observation], actions[observation] = value, action
    known = {place: value(gamma) for place, value in PROBES[name].values.items()}
    assert values == pytest.approx(known)
    for place, action in PROBES[name].actions.items():
        assert actions[place] == action


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_ends_by_termination_after_its_length(name):
    _, steps = play(Probe(name, 2), num_steps=6)
    length = {"two_step_discount": 2}.get(name, 1)
    assert [bool(step.terminated.all()) for step in steps] == [
        (t + 1) % length == 0 for t in range(6)
    ]
    assert not any(step.truncated.any() for step in steps)


@pytest.mark.parametrize("name", ["reward_by_observation", "both"])
def test_a_probe_starts_equally_often_at_each_start(name):
    starts = Probe(name, 10_000).reset(3)
    # Four standard errors of a fair coin thrown 10 000 times: 4·0.5/100.
    assert (starts > 0).float().mean().item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("name", PROBES)
def test_a_saved_probe_goes_on_bit_by_bit(name):
    original, restored = Probe(name, 4), Probe(name, 4)
    actions = torch.randint(2, (20, 4), generator=torch.Generator().manual_seed(0))
    play(original, 5, seed=2, actions=actions)
    saved = original.state_dict()
    original.step(actions[0])  # must not reach into what was saved
    original.load_state_dict(saved)
    restored.load_state_dict(saved)
    for row in actions:
        assert same_step(original.step(row), restored.step(row))


@pytest.mark.messages
def test_the_state_of_another_probe_is_refused():
    saved, cartpoles = Probe("both", 4).state_dict(), make_envs("CartPole-v1", 2)
    expected = "Make the same environments as in the saved run."
    assert refusal(Probe("two_step_discount", 2).load_state_dict, saved) == (
        "the saved state is that of 4 environments (both); expected that of 2 environments "
        f"(two_step_discount). {expected}"
    )
    cartpoles.reset(0)
    assert refusal(Probe("both", 2).load_state_dict, cartpoles.state_dict()).endswith(expected)
    assert refusal(cartpoles.load_state_dict, saved).startswith("the saved state is that of 0")


def test_the_questions_of_the_probes_are_questions():
    assert all(re.fullmatch(r"[A-Z].*\?", rule.question) for rule in PROBES.values())


@pytest.mark.messages
def test_a_module_before_the_id_is_imported_or_named():
    with pytest.raises(ValueError, match="no_such_module cannot be imported"):
        make_envs("no_such_module:Mine-v0", 2)
    assert make_envs("gymnasium:CartPole-v1", 2).num_envs == 2


@pytest.mark.messages
def test_an_environment_that_needs_what_is_not_installed_is_refused(monkeypatch):
    def missing(*arguments, **options):
        raise gymnasium.error.DependencyNotInstalled("box2d is not installed")

    monkeypatch.setattr(gymnasium, "make", missing)
    with pytest.raises(ValueError, match=r"needs something that is not installed \(box2d"):
        make_envs("CartPole-v1", 1)


def test_a_wrapper_does_not_make_neighbouring_seeds_share_episodes():
    makers = [lambda: gymnasium.make("CartPole-v1")] * 4
    envs = GymEnvs(RecordEpisodeStatistics(SyncVectorEnv(makers)))
    first, second = envs.reset(1), envs.reset(2)
    shared = (first.unsqueeze(0) == second.unsqueeze(1)).all(-1)
    assert not shared.any()
