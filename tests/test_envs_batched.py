"""`BatchedEnvs`: resets within the step, nothing lost at an end, exact resume, clear errors."""

from dataclasses import replace

import pytest
import torch
from toy_envs import same_step

from ppo_lessons.envs import TASKS, BatchedEnvs, Envs, make_envs
from ppo_lessons.envs.batched import checked_dtype
from ppo_lessons.envs.breakout import Breakout
from ppo_lessons.envs.classic import Acrobot, CartPole, MountainCarContinuous, Pendulum
from ppo_lessons.training_loop import PRESETS, PPOConfig, evaluate, train


def rollouts(envs, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        envs.step(torch.randint(2, (envs.num_envs,), generator=generator)) for _ in range(steps)
    ]


def test_it_is_what_the_loop_needs():
    assert isinstance(BatchedEnvs(CartPole(), 4), Envs)


def test_the_same_seed_gives_the_same_episodes_and_another_seed_others():
    envs = BatchedEnvs(CartPole(), 4)
    starts = [envs.reset(seed) for seed in (1, 1, 2)]
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


def test_a_copy_starts_anew_within_the_step_and_what_it_reached_is_kept():
    envs = BatchedEnvs(CartPole(), 16)
    envs.reset(seed=1)
    fallen = 0
    for step in rollouts(envs, 100):
        ended = step.terminated | step.truncated
        fallen += int(ended.sum())
        assert (step.next_observations[ended, 2].abs() > 0.2).all(), "a pole that has tipped over"
        assert (step.observations[ended].abs() <= 0.05).all(), "a fresh start"
        assert torch.equal(step.observations[~ended], step.next_observations[~ended])
        assert step.valid.all()
    assert fallen > 16


def test_a_time_limit_truncates_and_its_clock_starts_again():
    envs = BatchedEnvs(Pendulum(time_limit=7), 3)
    envs.reset(seed=0)
    cuts = [envs.step(torch.zeros(3, 1)).truncated.all().item() for _ in range(21)]
    assert cuts == ([False] * 6 + [True]) * 3


def test_clocks_of_copies_run_apart():
    envs = BatchedEnvs(CartPole(time_limit=30), 8)
    envs.reset(seed=0)
    alone = []
    for _ in range(60):
        step = envs.step(torch.ones(8, dtype=torch.int64))  # always right: each falls soon
        assert not step.truncated.any(), "no copy stands for 30 steps"
        alone.append(0 < int(step.terminated.sum()) < 8)
    assert any(alone), "they do not all fall at once"


@pytest.mark.parametrize("task", [CartPole(), Breakout()])
def test_it_goes_on_exactly_where_it_was_saved(task):
    envs = BatchedEnvs(task, 8)
    envs.reset(seed=1)
    rollouts(envs, 30)
    saved = envs.state_dict()
    first = rollouts(envs, 60, seed=5)
    other = BatchedEnvs(task, 8)
    other.load_state_dict(saved)
    again = rollouts(other, 60, seed=5)
    assert all(same_step(one, two) for one, two in zip(first, again, strict=True))


@pytest.mark.messages
def test_the_state_of_other_environments_is_refused():
    saved = BatchedEnvs(CartPole(), 8).state_dict()
    with pytest.raises(ValueError, match=r"8 copies of CartPole; expected that of 4 copies of"):
        BatchedEnvs(CartPole(), 4).load_state_dict(saved)
    with pytest.raises(ValueError, match="8 copies of Pendulum"):
        BatchedEnvs(Pendulum(), 8).load_state_dict(saved)


@pytest.mark.messages
def test_what_cannot_be_made_is_refused():
    with pytest.raises(ValueError, match="num_envs is 0; expected at least 1"):
        BatchedEnvs(CartPole(), 0)
    with pytest.raises(ValueError, match="device is 'nowhere'"):
        BatchedEnvs(CartPole(), 1, device="nowhere")
    with pytest.raises(ValueError, match="before the first step"):
        BatchedEnvs(CartPole(), 1).step(torch.zeros(1, dtype=torch.int64))
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="expected a device that torch finds"):
            BatchedEnvs(CartPole(), 1, device="cuda")


class Recorder(MountainCarContinuous):
    """Writes down what it is given."""

    given: torch.Tensor

    def advance(self, state, actions, *, generator):
        self.given = actions
        return super().advance(state, actions, generator=generator)


def test_real_actions_are_cut_to_the_box():
    task = Recorder()
    envs = BatchedEnvs(task, 4)
    envs.reset(0)
    drawn = torch.tensor([[-3.0], [-0.5], [0.5], [3.0]])
    step = envs.step(drawn)
    assert task.given.tolist() == [[-1.0], [-0.5], [0.5], [1.0]]
    assert drawn.abs().max() == 3, "what was drawn is left alone"
    # a throttle costs 0.1 times its square
    assert step.rewards.tolist() == pytest.approx([-0.1, -0.025, -0.025, -0.1])


class Spoilt(CartPole):
    """Breaks at its third step: the reward of copy 1, or the place of copy 2."""

    def __init__(self, what):
        super().__init__()
        self.what, self.steps = what, 0

    def advance(self, state, actions, *, generator):
        state, rewards, terminated = super().advance(state, actions, generator=generator)
        self.steps += 1
        if self.steps == 3 and self.what == "rewards":
            rewards[1] = torch.nan
        if self.steps == 3 and self.what == "observations":
            state["speed"][2] = torch.inf
        return state, rewards, terminated


@pytest.mark.messages
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("rewards", "environment 1 of Spoilt gave the reward nan; expected finite numbers"),
        ("observations", "environment 2 of Spoilt gave an observation with inf; expected finite"),
    ],
)
def test_numbers_that_are_none_are_found_at_once_on_the_cpu(what, message):
    config = PPOConfig(num_envs=4, num_steps=8, total_steps=64, hidden_sizes=(8,))
    with pytest.raises(ValueError, match=message):
        train(config, envs=BatchedEnvs(Spoilt(what), 4))


@pytest.mark.messages
@pytest.mark.parametrize(("what", "env"), [("rewards", 1), ("observations", 2)])
def test_numbers_that_are_none_are_found_once_per_iteration_on_a_device(monkeypatch, what, env):
    from ppo_lessons import shapes

    envs = BatchedEnvs(Spoilt(what), 4)
    envs.checks_values = False
    monkeypatch.setattr(shapes, "at_hand", lambda tensor: False)
    config = PPOConfig(num_envs=4, num_steps=8, total_steps=64, hidden_sizes=(8,))
    kept = []
    with pytest.raises(
        ValueError,
        match=f"iteration 1: environment {env} gave {what} that are not finite at step",
    ):
        train(config, envs=envs, on_iteration=lambda state: kept.append(state.iteration))
    assert kept == []


def test_an_apple_gpu_has_no_float64():
    assert checked_dtype(torch.float32, torch.device("mps")) == torch.float32
    assert checked_dtype(torch.float64, torch.device("cuda")) == torch.float64
    with pytest.raises(ValueError, match=r"dtype is torch.float64 on device 'mps', which has no"):
        checked_dtype(torch.float64, torch.device("mps"))


def test_every_task_has_a_name():
    for name, task in TASKS.items():
        assert task.__name__ == name
        assert isinstance(BatchedEnvs(task(), 2).reset(0), torch.Tensor)


@pytest.mark.parametrize(
    ("num_envs", "num_steps", "num_minibatches"), [(1, 16, 3), (7, 5, 4), (3, 1, 1), (5, 7, 17)]
)
@pytest.mark.parametrize("task", [Pendulum, CartPole])
def test_odd_sizes_train(task, num_envs, num_steps, num_minibatches):
    config = PPOConfig(
        num_envs=num_envs,
        num_steps=num_steps,
        num_minibatches=num_minibatches,
        total_steps=3 * num_envs * num_steps + 1,
        num_epochs=2,
        hidden_sizes=(8,),
    )
    history = train(config, envs=BatchedEnvs(task(time_limit=6), num_envs))
    assert len(history) == 3
    assert all(torch.isfinite(p).all() for p in history.networks.parameters())


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    envs = BatchedEnvs(Breakout(), 4)
    envs.reset(seed=0)
    rollouts(envs, 20)
    assert torch.equal(before, torch.get_rng_state())


def test_the_loop_trains_on_batched_cart_poles():
    config = PPOConfig(
        num_envs=64, num_steps=32, num_epochs=8, num_minibatches=4, total_steps=61_440, seed=1
    )
    history = train(config, envs=BatchedEnvs(CartPole(), 64))
    tests = BatchedEnvs(CartPole(), 50)
    assert evaluate(history.networks.policy, tests, seed=7).mean() > 195  # an untrained one: 9


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("task", "env", "total_steps", "goal"),
    [(CartPole, "CartPole-v1", 100_000, 475), (Acrobot, "Acrobot-v1", 200_000, -90)],
)
def test_what_is_learned_in_batched_environments_holds_in_gymnasiums(
    task, env, total_steps, goal, seed
):
    config = replace(PRESETS["batched"].config, env=env, total_steps=total_steps, seed=seed)
    history = train(config, envs=BatchedEnvs(task(), config.num_envs))
    returns = evaluate(history.networks.policy, make_envs(env, 100), seed=10_000 + seed)
    assert returns.mean() >= goal
