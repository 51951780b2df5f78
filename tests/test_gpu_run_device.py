"""The loop on a device: the same run as `train`, captured or not, and errors that help."""

import importlib
import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial

import pytest
import torch
from tape import Tape, recording
from torch.optim import Adam
from waiting import NoWaiting, Waits

from ppo_lessons.envs import TASKS, BatchedEnvs, NormalizedEnvs
from ppo_lessons.envs.classic import CartPole
from ppo_lessons.gae import compute_gae
from ppo_lessons.gpu_run import captured, start_on_device, train_on_device
from ppo_lessons.gpu_run.device import device_envs, fitted
from ppo_lessons.gpu_run.graphs import WARM_UP
from ppo_lessons.gpu_run.pinned import Pinned
from ppo_lessons.networks import pixel_networks
from ppo_lessons.rollout import score_values
from ppo_lessons.training_loop import Parts, PPOConfig, score, train

SMALL = PPOConfig(
    num_envs=8, num_steps=16, num_epochs=2, num_minibatches=4, hidden_sizes=(16,), total_steps=640
)
RUNS = [("CartPole", False), ("Breakout", False), ("Pendulum", True)]


def config_of(task, **changes):
    return replace(SMALL, env=task, **changes)


def weights(history):
    return torch.cat([parameter.detach().flatten() for parameter in history.networks.parameters()])


def trained(task, normalize, config, **how):
    """By `train` itself, on the same environments."""
    envs = device_envs(config, task, device="cpu", normalize=normalize)
    return train(config, envs=envs, parts=fitted(Parts(), envs), **how)


@pytest.fixture
def accelerator(monkeypatch):
    """Take the branches of a device whose values are not at hand."""
    for module in ("shapes", "rollout.score", "training_loop.update"):
        found = importlib.import_module(f"ppo_lessons.{module}")
        monkeypatch.setattr(found, "at_hand", lambda tensor: False)
    monkeypatch.setattr(BatchedEnvs, "checks_values", False, raising=False)
    before = BatchedEnvs.__init__

    def unchecked(self, *args, **kwargs):
        before(self, *args, **kwargs)
        self.checks_values = False

    monkeypatch.setattr(BatchedEnvs, "__init__", unchecked)


@pytest.mark.parametrize(("task", "normalize"), RUNS)
@pytest.mark.parametrize("graphs", [False, True])
def test_five_iterations_are_those_of_train_bit_for_bit(task, normalize, graphs):
    config = config_of(task)
    expected = trained(task, normalize, config)
    got = train_on_device(config, task, graphs=graphs, normalize=normalize)
    assert len(got) == 5
    assert torch.equal(weights(got), weights(expected))
    for row, wanted in zip(got.rows, expected.rows, strict=True):
        assert list(row) == list(wanted)
        for name in wanted:
            if wanted[name] is None:
                assert row[name] is None, name
            elif name != "seconds":
                assert row[name] == pytest.approx(wanted[name], rel=1e-4, abs=1e-5), name


@pytest.mark.parametrize("task", TASKS)
def test_nothing_in_a_captured_iteration_waits(accelerator, task):
    state, parts = start_on_device(config_of(task), task)
    iteration = captured(state, parts)
    iteration.once()  # the optimiser makes its tensors
    with NoWaiting():
        iteration.once()
    tape = Tape()  # refuses more: numbers of Python that would be sent, foreign generators
    for generator in (state.generator, *iteration._pinned.generators):
        tape.register_generator_state(generator)
    with tape:
        iteration.once()
    assert len(tape.operations) > 100
    assert iteration.graph is None


def test_a_part_that_waits_is_found(accelerator):
    def curious(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
        assert rewards.mean().item() > 0
        return compute_gae(
            rewards, values, next_values, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda
        )

    state, parts = start_on_device(SMALL, "CartPole", parts=Parts(advantages=curious))
    with pytest.raises(Waits), NoWaiting():
        captured(state, parts).once()


def tensor_rate(networks, *, learning_rate):
    """Adam as it is on CUDA: the step size is a tensor, which a graph reads anew each time."""
    rate = torch.tensor(learning_rate)
    return Adam(networks.parameters(), lr=rate, eps=1e-5, fused=True)


def taped(state, parts, monkeypatch):
    """An iteration that is captured by a `Tape` instead of a CUDA graph."""
    iteration = captured(state, parts)

    def held():
        things = [*iteration._pinned.places.values(), *state.networks.parameters()]
        things += [kept for one in state.optimizer.state.values() for kept in one.values()]
        return [*things, state.generator, *iteration._pinned.generators]

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Tape)
    monkeypatch.setattr(torch.cuda, "graph", lambda tape, stream: recording(tape, held))
    iteration._stream = "side stream"
    monkeypatch.setattr(iteration, "_aside", iteration.once)
    return iteration


def played(task, normalize, parts, monkeypatch, iterations=WARM_UP + 4):
    """The weights after some iterations, by the eager twin and from the tape."""
    results = []
    for capture in (False, True):
        config = config_of(task, total_steps=128 * iterations)
        with monkeypatch.context() as patch:
            state, own = start_on_device(config, task, normalize=normalize, parts=parts)
            iteration = taped(state, own, patch) if capture else captured(state, own)
            for _ in range(iterations):
                iteration()
            assert (iteration.graph is not None) == capture
        results.append((weights(state.history), state))
    return results


@pytest.mark.parametrize(("task", "normalize"), RUNS)
def test_an_iteration_played_from_a_tape_is_the_eager_one(
    accelerator, monkeypatch, task, normalize
):
    """What a graph would repeat is all of the iteration: environments, learning rate, steps."""
    parts = Parts(optimizer=tensor_rate)
    (eager, state), (taped_weights, other) = played(task, normalize, parts, monkeypatch)
    assert torch.equal(taped_weights, eager)
    for name in ("kl_k3", "episode_return", "ev_lambda", "num_episodes"):
        assert other.history[name] == state.history[name]
    assert other.history["num_episodes"] != [0] * len(other.history) or task == "Pendulum"


@pytest.mark.parametrize(
    "mistake", ["learning rate as a number", "environments not pinned", "a generator forgotten"]
)
def test_the_tape_finds_what_stays_behind_in_python(accelerator, monkeypatch, mistake):
    parts = Parts(optimizer=tensor_rate)
    if mistake == "learning rate as a number":
        parts = Parts(optimizer=lambda networks, *, learning_rate: Adam(
            networks.parameters(), lr=learning_rate, eps=1e-5, fused=True
        ))  # fmt: skip
    if mistake == "environments not pinned":
        monkeypatch.setattr(Pinned, "settle", lambda self: None)
    if mistake == "a generator forgotten":
        before = Pinned.__init__

        def forgetful(self, *owners):
            before(self, *owners)
            self.generators = []

        monkeypatch.setattr(Pinned, "__init__", forgetful)
    try:
        (eager, _), (from_tape, _) = played("CartPole", False, parts, monkeypatch)
    except Waits:
        return
    assert not torch.equal(eager, from_tape)


def test_the_tensors_of_a_run_stay_where_they_are():
    state, parts = start_on_device(config_of("Breakout"), "Breakout")
    iteration = captured(state, parts)
    iteration()

    def places():
        held = [state.carry.observations, state.carry.episode_returns, *state.envs._state.values()]
        held += [state.rollout.observations, *state.networks.parameters()]
        return [tensor.data_ptr() for tensor in held]

    before, seen = places(), state.carry.observations.clone()
    iteration()
    assert places() == before
    assert not torch.equal(seen, state.carry.observations)


def test_places_that_share_memory_are_told_apart():
    """With one step a rollout, Breakout's old place of the ball is the tensor of its new one."""
    config = config_of("Breakout", num_steps=1, num_envs=128)
    expected = trained("Breakout", False, config)
    assert torch.equal(weights(train_on_device(config, "Breakout", graphs=True)), weights(expected))


@pytest.mark.messages
def test_a_task_whose_state_changes_shape_is_refused():
    class Growing(CartPole):
        def advance(self, state, actions, *, generator):
            reached, rewards, terminated = super().advance(state, actions, generator=generator)
            return {**reached, "angle": reached["angle"].half()}, rewards, terminated

        def observe(self, state):
            return super().observe({name: part.float() for name, part in state.items()})

    config = replace(SMALL, num_steps=1, num_envs=128)  # nothing ends meanwhile
    state, parts = start_on_device(config, Growing())
    with pytest.raises(ValueError, match=r"angle was .*float32.* and is .*float16.* after it"):
        captured(state, parts)()


@pytest.mark.parametrize(("task", "normalize"), RUNS)
@pytest.mark.parametrize("first", ["train", "graphs"])
def test_train_and_the_captured_loop_go_on_from_each_others_checkpoints(task, normalize, first):
    config = config_of(task)
    whole = trained(task, normalize, config)
    kept = []

    def two(state):
        kept.append(state.checkpoint())
        return len(kept) == 2

    loops = [
        partial(trained, task, normalize, config),
        partial(train_on_device, config, task, graphs=True, normalize=normalize),
    ]
    if first == "graphs":
        loops.reverse()
    assert loops[0](on_iteration=two).stopped == "on_iteration"
    resumed = loops[1](resume=kept[-1])
    assert len(resumed) == 5
    assert torch.equal(weights(resumed), weights(whole))


@pytest.mark.parametrize(("task", "normalize"), RUNS)
def test_a_run_of_another_device_goes_on_with_new_episodes(task, normalize):
    """A GPU's generator has 16 bytes: networks, optimiser, rows and statistics go on."""
    config, kept, notes = config_of(task), [], []
    trained(task, normalize, config, on_iteration=lambda state: kept.append(state.checkpoint()))
    saved = kept[1]
    saved["generator"] = torch.zeros(16, dtype=torch.uint8)
    for group in saved["optimizer"]["param_groups"]:
        group.update(capturable=True, lr=torch.tensor(group["lr"]))
    state, _ = start_on_device(config, task, normalize=normalize, resume=saved)
    assert torch.equal(weights(state.history), torch.cat(
        [saved["networks"][name].flatten() for name, _ in state.networks.named_parameters()]
    ))  # fmt: skip
    if normalize:
        # the statistics of before, and the first observations of the new episodes
        count = saved["envs"]["seen"]["count"]
        assert state.envs.state_dict()["seen"]["count"] == count + config.num_envs
    history = train_on_device(
        config, task, normalize=normalize, resume=saved,
        on_iteration=lambda state: notes.append(state.resumed),
    )  # fmt: skip
    assert len(history) == 5
    assert "that of another device, so new episodes begin here" in notes[0]


def test_ctrl_c_ends_the_run_after_its_iteration():
    def press(state):
        if state.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    history = train_on_device(SMALL, "CartPole", graphs=True, on_iteration=press)
    assert (history.stopped, len(history)) == ("interrupted", 2)


def test_boards_get_filters_and_others_their_own_networks():
    _, parts = start_on_device(config_of("Breakout"), "Breakout")
    assert parts.networks is pixel_networks
    own = lambda *shape, hidden_sizes, generator: pixel_networks(  # noqa: E731
        *shape, hidden_sizes=(4,), generator=generator
    )
    _, parts = start_on_device(config_of("Breakout"), "Breakout", parts=Parts(networks=own))
    assert parts.networks is own


def test_normalised_environments_are_made_when_asked_for():
    state, _ = start_on_device(config_of("Pendulum"), "Pendulum", normalize=True)
    assert isinstance(state.envs, NormalizedEnvs)


class Broken(CartPole):
    """A reward, or an observation, that is no number after some steps."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def advance(self, state, actions, *, generator):
        reached, rewards, terminated = super().advance(state, actions, generator=generator)
        if self.what == "rewards":
            rewards = torch.where(reached["turning"] > 1, torch.nan, rewards)
        else:
            reached["speed"] = torch.where(reached["turning"] > 1, torch.inf, reached["speed"])
        return reached, rewards, terminated


@pytest.mark.messages
@pytest.mark.parametrize("what", ["rewards", "observations"])
def test_numbers_that_are_none_are_found_on_the_cpu_at_their_step(what):
    with pytest.raises(
        ValueError, match=f"of Broken gave .*{what[:-1]}.*; expected finite numbers"
    ):
        train_on_device(SMALL, Broken(what), graphs=True)


@pytest.mark.messages
@pytest.mark.parametrize("what", ["rewards", "observations"])
def test_numbers_that_are_none_are_found_on_a_device_after_their_iteration(accelerator, what):
    with pytest.raises(ValueError, match="iteration 1 met rewards or observations that are not"):
        train_on_device(SMALL, Broken(what), graphs=True)


@pytest.mark.messages
def test_weights_that_are_no_numbers_end_the_run(accelerator):
    config = replace(SMALL, learning_rate=1e30)
    with pytest.raises(ValueError, match="left gradients or weights that are not finite"):
        train_on_device(config, "CartPole", graphs=True)


@pytest.mark.messages
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"device": "cuda:77"}, "device is 'cuda:77', which cannot be used here"),
        ({"device": "gpu"}, "device is 'gpu', which cannot be used here"),
        ({"task": "Cartpole"}, r"task is 'Cartpole'.*Did you mean 'CartPole'\?"),
        (
            {"parts": Parts(stop_epochs=lambda kl_k1: True), "graphs": True},
            "stop_epochs is a function of your own",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(given, sentence):
    given = {"task": "CartPole"} | given
    with pytest.raises(ValueError, match=sentence):
        train_on_device(SMALL, given.pop("task"), **given)


@pytest.mark.messages
@pytest.mark.parametrize("graphs", [False, True])
def test_minibatches_of_one_sample_are_refused(graphs):
    config = replace(SMALL, num_minibatches=128)
    with pytest.raises(ValueError, match="expected at least two samples per minibatch"):
        train_on_device(config, "CartPole", graphs=graphs)


@pytest.mark.parametrize("graphs", [False, True])
def test_rows_that_do_not_divide_evenly_are_all_learned_from(graphs):
    config = replace(SMALL, num_minibatches=5)  # 128 rows: 26, 26, 26, 25, 25
    got = train_on_device(config, "CartPole", graphs=graphs)
    assert torch.equal(weights(got), weights(trained("CartPole", False, config)))


@pytest.mark.messages
def test_graphs_on_other_accelerators_are_refused():
    from ppo_lessons.gpu_run.device import check_graphs

    with pytest.raises(ValueError, match=r"graphs is true on device 'mps'; expected 'cuda'"):
        check_graphs(torch.device("mps"), True)
    for device in ("cpu", "cuda"):
        check_graphs(torch.device(device), True)
    check_graphs(torch.device("mps"), False)


@pytest.mark.messages
def test_environments_that_are_no_tensor_programs_cannot_be_captured():
    from ppo_lessons.envs import make_envs
    from ppo_lessons.training_loop.train import start

    config = replace(SMALL, env="CartPole-v1")
    state = start(config, make_envs("CartPole-v1", 8), Parts())
    with pytest.raises(ValueError, match="the environments are GymEnvs; expected BatchedEnvs"):
        captured(state, Parts())


@pytest.mark.messages
def test_too_little_memory_is_said_before_the_run(monkeypatch):
    monkeypatch.setattr("ppo_lessons.gpu_run.device.free_memory", lambda device: 200_000)
    config = replace(SMALL, num_envs=512, total_steps=512 * 16)
    with pytest.raises(ValueError, match=r"needs about .* GB for num_envs=512.*num_envs=\d+ would"):
        train_on_device(config, "CartPole")


@pytest.mark.messages
def test_a_device_that_runs_out_of_memory_says_what_to_lower():
    def greedy(critic, rollout):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    with pytest.raises(ValueError, match=r"ran out of memory .*20.00 GiB.*num_envs=8"):
        train_on_device(SMALL, "CartPole", parts=Parts(score=greedy))


def test_both_ways_of_asking_the_critic_give_the_same_batch(accelerator, monkeypatch):
    """The eager twin on the CPU picks rows, a device asks for all: the batches agree."""
    state, parts = start_on_device(SMALL, "CartPole")
    iteration = captured(state, parts)
    iteration()
    everywhere = score(state.rollout, state.networks, state.config, parts)
    monkeypatch.undo()
    picked = score(state.rollout, state.networks, state.config, Parts(score=score_values))
    torch.testing.assert_close(everywhere.advantages, picked.advantages, rtol=1e-5, atol=1e-5)


def test_threads_that_are_not_the_main_one_may_train():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(train_on_device(SMALL, "CartPole", graphs=True))
    )
    thread.start()
    thread.join()
    assert len(found[0]) == 5
