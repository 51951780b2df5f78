"""Normalised environments: statistics of all rows, rewards that keep their sign, nothing moved."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from toy_envs import SCRIPTS, FixedPolicy, endless, same_step, scripted
from waiting import NoWaiting

from ppo_lessons.envs import BatchedEnvs, Envs, NormalizedEnvs, RunningMoments, make_envs
from ppo_lessons.envs.breakout import Breakout
from ppo_lessons.envs.classic import CartPole, MountainCarContinuous, Pendulum
from ppo_lessons.envs.normalized import Moments, add_rows
from ppo_lessons.training_loop import PPOConfig, evaluate, train

CPU = torch.device("cpu")
TINY = PPOConfig(
    total_steps=4 * 8 * 6, num_envs=4, num_steps=8, num_epochs=2, hidden_sizes=(8,), gamma=0.9
)


def pieces(*sizes, shape=(3,), shift=0.0, seed=0):
    generator = np.random.default_rng(seed)
    return [shift + 5 * generator.standard_normal((size, *shape)) for size in sizes]


def moments_after(add_rows, rows, shape=(3,)):
    zero = torch.zeros(shape, dtype=torch.float64)
    moments = Moments(torch.zeros((), dtype=torch.float64), zero, zero.clone())
    for piece in rows:
        moments = add_rows(moments, torch.as_tensor(piece))
    return moments


# --- Moments: the named mistakes, and the claims that refuse them -------------------------------


def means_averaged(moments, rows, valid=None):
    """Averages the mean of each piece with the mean so far: late pieces weigh most."""
    new = add_rows(moments, rows, valid)
    return replace(new, mean=(moments.mean + rows.mean(0)) / 2)


def between_pieces_left_out(moments, rows, valid=None):
    """Adds the spreads of the pieces and forgets the distance between their means."""
    new = add_rows(moments, rows, valid)
    return replace(new, m2=moments.m2 + (rows - rows.mean(0)).square().sum(0))


def old_mean_for_both(moments, rows, valid=None):
    """Takes distances from the old mean only, not from the old and the new one."""
    new = add_rows(moments, rows, valid)
    return replace(new, m2=moments.m2 + (rows - moments.mean).square().sum(0))


def squares_less_square(moments, rows, valid=None):
    """Subtracts the square of the mean from the mean square: a large mean takes all digits."""
    rows = rows.float()
    count = moments.count + len(rows)
    total = (moments.mean * moments.count).float() + rows.sum(0)
    squares = (moments.m2 + moments.count * moments.mean**2).float() + rows.square().sum(0)
    mean = total / count.float()
    return Moments(count, mean.double(), (squares - count.float() * mean**2).double())


def one_piece_counts_once(moments, rows, valid=None):
    """Counts pieces instead of rows."""
    return replace(add_rows(moments, rows, valid), count=moments.count + 1)


MOMENT_MISTAKES = (
    means_averaged,
    between_pieces_left_out,
    old_mean_for_both,
    squares_less_square,
    one_piece_counts_once,
)


def moments_are_those_of_all_rows_at_once(add_rows):
    for shift in (0.0, 1e4):
        rows = pieces(1, 7, 64, 2, 300, shift=shift)
        together = np.concatenate(rows)
        found = moments_after(add_rows, rows)
        assert found.count.item() == len(together)
        assert np.allclose(found.mean, together.mean(0), rtol=1e-12, atol=0)
        # float64 keeps 16 digits; a mean of 1e4 takes four of them, squared eight
        assert np.allclose(found.m2 / found.count, together.var(0), rtol=1e-9, atol=0)


def test_moments_are_those_of_numpy_on_all_rows_at_once():
    moments_are_those_of_all_rows_at_once(add_rows)


@pytest.mark.parametrize("mistake", MOMENT_MISTAKES, ids=lambda mistake: mistake.__name__)
def test_the_mistake_is_refused(mistake):
    with pytest.raises(AssertionError):
        moments_are_those_of_all_rows_at_once(mistake)


@pytest.mark.parametrize("shape", [(), (3,), (4, 2)])
def test_rows_of_any_shape(shape):
    rows = pieces(5, 9, shape=shape)
    found = moments_after(add_rows, rows, shape)
    assert np.allclose(found.m2 / found.count, np.concatenate(rows).var(0), rtol=1e-12)
    assert found.mean.shape == shape


def test_rows_that_do_not_count_change_nothing_whatever_they_hold():
    rows = torch.as_tensor(pieces(6)[0])
    valid = torch.tensor([True, False, True, True, False, True])
    spoilt = rows.masked_fill(~valid.unsqueeze(-1), torch.nan)
    found, expected = RunningMoments((3,), CPU), RunningMoments((3,), CPU)
    found.update(spoilt, valid)
    expected.update(rows[valid])
    assert torch.equal(found.count, expected.count)
    assert torch.allclose(found.variance, expected.variance, rtol=1e-12)
    found.update(spoilt, torch.zeros(6, dtype=torch.bool))
    assert found.count.item() == 4
    assert found.mean.isfinite().all()


def test_numbers_that_are_all_equal_are_left_as_they_are():
    moments = RunningMoments((2,), CPU)
    assert moments.spread.tolist() == [1, 1]
    moments.update(torch.tensor([[0.1, 3.0]] * 7))
    assert moments.spread.tolist() == [1, 1]
    moments.update(torch.tensor([[0.1, 5.0]] * 7))
    assert moments.spread.tolist() == [1, 1]  # the second coordinate: 3 and 5, σ = 1
    moments.update(torch.tensor([[0.1, 104.0]] * 14))
    assert moments.spread[0] == 1
    assert moments.spread[1].item() == pytest.approx((50**2 + 0.5) ** 0.5, rel=1e-3)


def test_statistics_stay_the_same_tensors():
    moments = RunningMoments((3,), CPU)
    before = moments.count, moments.mean, moments.m2
    moments.update(torch.ones(4, 3))
    moments.load_state_dict(moments.state_dict())
    assert all(
        a is b for a, b in zip(before, (moments.count, moments.mean, moments.m2), strict=True)
    )
    assert moments.count.item() == 4


def test_an_apple_gpu_keeps_statistics_in_float32():
    made = []

    class FakeTorch:
        """torch, with the device written down instead of used."""

        float32, float64 = torch.float32, torch.float64

        def zeros(self, shape, *, dtype, device):
            made.append((dtype, device.type))
            return torch.zeros(shape, dtype=dtype)

    module = __import__("ppo_lessons.envs.normalized", fromlist=["torch"])
    real = module.torch
    try:
        module.torch = FakeTorch()
        RunningMoments((3,), torch.device("mps"))
        RunningMoments((3,), torch.device("cuda"))
    finally:
        module.torch = real
    assert made == [(torch.float32, "mps")] * 3 + [(torch.float64, "cuda")] * 3


# --- Environments --------------------------------------------------------------------------------


def normalized(envs, **settings):
    return NormalizedEnvs(envs, **{"gamma": 0.9, **settings})


def play(envs, steps, seed=1):
    """First observations, and what each step of a random player gave."""
    generator = torch.Generator().manual_seed(seed)
    first = envs.reset(seed)
    space = envs.single_action_space
    played = []
    for _ in range(steps):
        if space.shape:
            actions = 3 * torch.randn(envs.num_envs, *space.shape, generator=generator)
        else:
            actions = torch.randint(int(space.n), (envs.num_envs,), generator=generator)
        played.append(envs.step(actions))
    return first, played


MAKERS = {
    "gymnasium": lambda: make_envs("Pendulum-v1", 3),
    "batched": lambda: BatchedEnvs(Pendulum(time_limit=15), 3),
    "boards": lambda: BatchedEnvs(Breakout(), 3),
    "next-step resets": lambda: scripted(*SCRIPTS, mode=AutoresetMode.NEXT_STEP),
}


@pytest.mark.parametrize("name", MAKERS)
def test_observations_are_shown_by_the_statistics_of_all_seen_so_far(name):
    raw_first, raw = play(MAKERS[name](), 40)
    envs = normalized(MAKERS[name]())
    assert isinstance(envs, Envs)
    first, steps = play(envs, 40)
    seen = [raw_first.double().numpy()]
    shown = [(first, None, raw_first, None)] + [
        (step.observations, step.next_observations, plain.observations, plain.next_observations)
        for step, plain in zip(steps, raw, strict=True)
    ]
    for t, (observations, reached, plain, plain_reached) in enumerate(shown):
        if t:
            seen.append(plain.double().numpy())
        rows = np.concatenate(seen)
        spread = np.where(rows.std(0) > 1e-4, rows.std(0), 1)
        for ours, theirs in ((observations, plain), (reached, plain_reached)):
            if ours is not None:
                expected = np.clip((theirs.double().numpy() - rows.mean(0)) / spread, -10, 10)
                assert np.allclose(ours, expected, atol=1e-5)
                assert ours.dtype == torch.float32


def rewards_are_right(maker, name):
    _, raw = play(MAKERS[name](), 40)
    _, steps = play(maker(MAKERS[name](), gamma=0.9), 40)
    returns, seen = np.zeros(len(raw[0].rewards)), []
    for step, plain in zip(steps, raw, strict=True):
        returns = 0.9 * returns + plain.rewards.double().numpy()
        seen.extend(returns[plain.valid.numpy()])
        spread = np.std(seen) if np.std(seen) > 1e-4 else 1.0
        expected = np.clip(plain.rewards.double().numpy() / spread, -10, 10)
        assert np.allclose(step.rewards, expected, rtol=1e-4)
        assert torch.equal(step.unscaled_rewards, plain.rewards)
        assert torch.equal(step.paid, plain.rewards)
        returns = returns * ~(plain.terminated | plain.truncated).numpy()


@pytest.mark.parametrize("name", ["gymnasium", "batched", "next-step resets"])
def test_rewards_are_divided_by_the_spread_of_the_discounted_return(name):
    rewards_are_right(NormalizedEnvs, name)


class ReturnsNeverReset(NormalizedEnvs):
    """Lets the discounted return run on into the next episode."""

    def step(self, actions):
        step = super().step(actions)
        self._returns.copy_(self._before * self.gamma + step.paid)
        self._before = self._returns.clone()
        return step

    def reset(self, seed):
        self._before = torch.zeros(self.num_envs)
        return super().reset(seed)


class MeanTakenAway(NormalizedEnvs):
    """Takes the mean return from each reward: what paid nothing now costs something."""

    def _scaled(self, step):
        scaled = super()._scaled(step)
        return (scaled - self._earned.mean / self._earned.spread).float()


class ByTheSpreadOfRewards(NormalizedEnvs):
    """Divides by the spread of single rewards instead of returns."""

    def _scaled(self, step):
        gamma, self.gamma = self.gamma, 0.0
        scaled = super()._scaled(step)
        self.gamma = gamma
        return scaled


class ScaledReturnsShown(NormalizedEnvs):
    """Forgets what the task paid: learning curves are in no unit."""

    def step(self, actions):
        return super().step(actions)._replace(unscaled_rewards=None)


@pytest.mark.parametrize(
    "mistake", [ReturnsNeverReset, MeanTakenAway, ByTheSpreadOfRewards, ScaledReturnsShown]
)
def test_a_wrong_scale_is_refused(mistake):
    with pytest.raises((AssertionError, TypeError)):
        rewards_are_right(mistake, "batched")


def test_a_reward_keeps_its_sign():
    _, raw = play(BatchedEnvs(MountainCarContinuous(), 3), 30)
    _, steps = play(normalized(BatchedEnvs(MountainCarContinuous(), 3)), 30)
    for step, plain in zip(steps, raw, strict=True):
        assert torch.equal(step.rewards.sign(), plain.rewards.sign())


def test_what_was_not_to_be_scaled_is_as_it_was():
    plain_first, raw = play(BatchedEnvs(CartPole(), 3), 30)
    first, steps = play(normalized(BatchedEnvs(CartPole(), 3), observations=False), 30)
    assert torch.equal(first, plain_first)
    assert torch.equal(steps[-1].next_observations, raw[-1].next_observations)
    assert not torch.equal(steps[-1].rewards, raw[-1].rewards)
    first, steps = play(normalized(BatchedEnvs(CartPole(), 3), rewards=False), 30)
    assert not torch.equal(first, plain_first)
    assert torch.equal(steps[-1].rewards, raw[-1].rewards)


def test_nothing_is_larger_than_the_limit():
    envs = normalized(BatchedEnvs(Pendulum(), 8), limit=0.5)
    _, steps = play(envs, 50)
    largest = max(step.observations.abs().max().item() for step in steps)
    assert largest == 0.5 == envs.single_observation_space.high.max()
    assert max(step.rewards.abs().max().item() for step in steps) == 0.5


def test_episodes_of_the_task_are_the_same():
    raw = play(BatchedEnvs(CartPole(), 4), 60)[1]
    steps = play(normalized(BatchedEnvs(CartPole(), 4)), 60)[1]
    for step, plain in zip(steps, raw, strict=True):
        assert torch.equal(step.terminated, plain.terminated)
        assert torch.equal(step.valid, plain.valid)


# --- Evaluation ----------------------------------------------------------------------------------


def test_frozen_environments_show_through_the_same_statistics_and_move_nothing():
    envs = normalized(BatchedEnvs(Pendulum(), 4))
    play(envs, 50)
    saved = envs.state_dict()
    tests = envs.frozen(BatchedEnvs(Pendulum(), 9))
    raw = BatchedEnvs(Pendulum(), 9)
    for (ours, steps), (theirs, plain) in [(play(tests, 20, seed=5), play(raw, 20, seed=5))]:
        mean, spread = saved["seen"]["mean"], (saved["seen"]["m2"] / saved["seen"]["count"]).sqrt()
        for shown, real in [(ours, theirs)] + [
            (a.next_observations, b.next_observations) for a, b in zip(steps, plain, strict=True)
        ]:
            expected = ((real.double() - mean) / spread).clamp(-10, 10)
            assert torch.allclose(shown.double(), expected, atol=1e-6)
    after = envs.state_dict()
    for part in ("seen", "earned"):
        assert all(torch.equal(saved[part][name], after[part][name]) for name in saved[part])
    assert torch.equal(saved["returns"], after["returns"])


def test_an_evaluation_counts_what_the_task_paid():
    envs = normalized(BatchedEnvs(Pendulum(), 4))
    play(envs, 50)
    hanging = FixedPolicy(lambda observations: torch.zeros(len(observations), 1))
    scaled = evaluate(hanging, envs.frozen(BatchedEnvs(Pendulum(), 5)), seed=3)
    assert torch.equal(scaled, evaluate(hanging, BatchedEnvs(Pendulum(), 5), seed=3))


def test_a_learning_curve_is_in_the_unit_of_the_task():
    """Each of its steps pays 1 and an episode has 5: an episode's return is 5, however scaled."""
    history = train(TINY, envs=normalized(endless(4, limit=5)))
    assert history["episode_return"] == [5.0] * 6


# --- Saving --------------------------------------------------------------------------------------


def plain_numbers(history):
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in history]
    return rows, [tensor.tolist() for tensor in history.networks.parameters()]


@pytest.mark.parametrize(
    "make", [lambda: make_envs("Pendulum-v1", 4), lambda: BatchedEnvs(Pendulum(time_limit=30), 4)]
)
def test_a_resumed_run_is_the_run_that_was_never_interrupted(make):
    taken = []

    def keep_the_third(state):
        if state.iteration == 3:
            taken.append(state.checkpoint())

    whole = train(TINY, envs=normalized(make()), on_iteration=keep_the_third)
    resumed = train(TINY, envs=normalized(make()), resume=taken[0])
    assert plain_numbers(whole) == plain_numbers(resumed)


def test_statistics_are_resumed_where_the_episodes_cannot_be():
    def make():
        return normalized(endless(4, limit=7))

    taken = []
    train(TINY, envs=make(), on_iteration=lambda state: taken.append(state.checkpoint()))
    assert taken[2]["envs"]["envs"] is None
    counts = []

    def look(state):
        counts.append((state.envs.state_dict()["seen"]["count"].item(), bool(state.resumed)))

    train(TINY, envs=make(), resume=taken[2], on_iteration=look)
    # three iterations of 8 steps and one reset, then another reset
    assert counts[0] == (4 * (3 * 8 + 1 + 1 + 8), True)


def test_what_was_saved_is_not_reached_by_later_steps():
    envs = normalized(BatchedEnvs(Pendulum(), 4))
    play(envs, 10)
    saved = envs.state_dict()
    actions = torch.ones(4, 1)
    first = envs.step(actions)
    other = normalized(BatchedEnvs(Pendulum(), 4))
    other.load_state_dict(saved)
    assert same_step(other.step(actions), first)


# --- The device ----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [Pendulum(time_limit=5), CartPole()])
def test_a_step_never_waits_for_the_device(task):
    inner = BatchedEnvs(task, 4)
    inner.checks_values = False  # as on an accelerator
    envs = normalized(inner)
    real = bool(task.action_space.shape)
    actions = torch.zeros(4, 1) if real else torch.zeros(4, dtype=torch.int64)
    with NoWaiting():
        envs.reset(1)
        for _ in range(12):
            envs.step(actions)


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.messages
def test_bad_settings_are_refused():
    envs = BatchedEnvs(CartPole(), 4)
    with pytest.raises(TypeError, match="envs is a str; expected environments that step together"):
        normalized("CartPole-v1")
    with pytest.raises(ValueError, match=r"gamma is 1.5; expected a number in \[0, 1\]"):
        normalized(envs, gamma=1.5)
    with pytest.raises(ValueError, match="limit is 0; expected a finite number above 0"):
        normalized(envs, limit=0)


@pytest.mark.messages
def test_statistics_of_other_environments_are_refused():
    envs = normalized(BatchedEnvs(CartPole(), 4))
    with pytest.raises(ValueError, match=r"shape \(3,\) on cpu; expected \(4,\) on cpu"):
        envs.frozen(BatchedEnvs(Pendulum(), 4))
    envs.reset(0)
    with pytest.raises(ValueError, match=r"other statistics; expected those .* rewards=False"):
        normalized(BatchedEnvs(CartPole(), 4), rewards=False).load_state_dict(envs.state_dict())
    moments = RunningMoments((3,), CPU)
    with pytest.raises(ValueError, match=r"rows of shape \(4,\); expected \(3,\)"):
        moments.load_state_dict(envs.state_dict()["seen"])
    bare = BatchedEnvs(CartPole(), 4)
    with pytest.raises(ValueError, match="the saved state is that of"):
        bare.load_state_dict(envs.state_dict())
    with pytest.raises(ValueError, match="other statistics"):
        envs.load_state_dict(bare.state_dict())


@pytest.mark.messages
def test_a_checkpoint_of_bare_environments_is_refused():
    taken = []
    config = replace(TINY, total_steps=64)
    train(
        config, envs=BatchedEnvs(CartPole(), 4), on_iteration=lambda s: taken.append(s.checkpoint())
    )
    with pytest.raises(ValueError, match="other statistics"):
        train(config, envs=normalized(BatchedEnvs(CartPole(), 4)), resume=taken[0])
