"""The ledger: counts against PyTorch's own counter, a formula worked by hand, limits that bind."""

from dataclasses import replace
from math import prod

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ppo_lessons.envs import TASKS
from ppo_lessons.gpu_run import (
    DEFAULTS,
    Cost,
    Limits,
    StageCost,
    check_memory,
    count_launches,
    count_stages,
    counted,
    iteration_cost,
    ledger,
    limits,
    memory_needed,
    start_on_device,
    time_stages,
)
from ppo_lessons.gpu_run.counting import stage_functions
from ppo_lessons.training_loop import Parts, PPOConfig, squeeze

CONFIG = PPOConfig(
    num_envs=64, num_steps=16, num_epochs=2, num_minibatches=2, hidden_sizes=(32, 16),
    total_steps=64 * 16 * 10,
)  # fmt: skip
KINDS = ["CartPole", "Pendulum", "Breakout"]


def sizes(task):
    rules = TASKS[task]()
    space = rules.action_space
    actions = space.shape[0] if space.shape else int(space.n)
    return prod(rules.observation_space.shape), actions, rules


def flops_of(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


@pytest.mark.parametrize("task", KINDS)
def test_flops_are_those_that_torch_counts_in_a_real_iteration(task):
    cost = iteration_cost(replace(CONFIG, env=task), *sizes(task))
    state, parts = start_on_device(replace(CONFIG, env=task), task)
    seen = {name: flops_of(stage) for name, stage in stage_functions(state, parts).items()}
    assert seen["collect"] == cost.stages["collect"].flops
    assert seen["squeeze"] == cost.stages["squeeze"].flops
    # the CPU asks the critic only for those next states that are nobody's next row
    once = cost.stages["score"].flops // 2
    assert once < seen["score"] < 1.5 * once


def test_flops_of_a_small_network_by_hand():
    # 4 → 2 → 2 and 4 → 2 → 1; T·N = 8, K = 3
    config = PPOConfig(
        num_envs=4, num_steps=2, num_epochs=3, num_minibatches=2, hidden_sizes=(2,), total_steps=80
    )
    cost = iteration_cost(config, *sizes("CartPole"))
    policy, critic = 2 * (4 * 2 + 2 * 2), 2 * (4 * 2 + 2 * 1)
    assert cost.stages["collect"].flops == 8 * policy
    assert cost.stages["score"].flops == 2 * 8 * critic
    # forwards 1, weights 1, inputs 1, but nobody asks for the observations' gradient
    both = 3 * (policy + critic) - 2 * (2 * 4 * 2)
    assert cost.stages["squeeze"].flops == 3 * 8 * both
    assert cost.env_steps == 8


@pytest.mark.parametrize("task", KINDS)
def test_bytes_are_about_those_that_operations_read_and_write(task):
    """An estimate from the sizes of layers, against every operation of a real iteration."""
    config = replace(CONFIG, env=task, num_envs=256, total_steps=256 * 16 * 10)
    cost = iteration_cost(config, *sizes(task))
    state, parts = start_on_device(config, task)
    state.envs.checks_values = False
    count_stages(state, parts)
    seen = count_stages(state, parts)
    for stage in ("collect", "squeeze"):
        assert cost.stages[stage].bytes == pytest.approx(seen[stage].bytes, rel=0.45), stage
    assert sum(s.bytes for s in cost.stages.values()) == cost.bytes


def test_launches_do_not_depend_on_the_number_of_environments():
    """That is why many environments are fast: a call costs the same for one and for thousands."""
    seen = []
    for num_envs in (8, 64):
        config = replace(CONFIG, num_envs=num_envs, total_steps=num_envs * 16 * 10)
        state, parts = start_on_device(config, "CartPole")
        state.envs.checks_values = False
        count_launches(state, parts)  # the first iteration also makes the optimiser's tensors
        seen.append(count_launches(state, parts))
    assert seen[0] == seen[1]
    assert iteration_cost(CONFIG, *sizes("CartPole")).launches == sum(seen[0].values())


def test_launches_grow_with_steps_and_with_minibatches():
    cost = iteration_cost(CONFIG, *sizes("CartPole"))
    longer = iteration_cost(replace(CONFIG, num_steps=32), *sizes("CartPole"))
    assert longer.stages["collect"].launches > 1.9 * cost.stages["collect"].launches
    more = iteration_cost(replace(CONFIG, num_minibatches=8), *sizes("CartPole"))
    assert more.stages["squeeze"].launches > 3 * cost.stages["squeeze"].launches
    assert more.stages["collect"].launches == cost.stages["collect"].launches


def test_operations_are_counted_by_hand():
    x = torch.ones(10)
    seen = counted(lambda: (x + 1).mul_(2).view(2, 5).t())
    assert seen.launches == 2  # views are none
    assert seen.bytes == 40 + 40 + 40 + 40
    assert seen.by_name == {"aten.add": 1, "aten.mul_": 1}
    product = counted(lambda: torch.ones(3, 4) @ torch.ones(4, 5))
    assert product.flops == 2 * 3 * 4 * 5
    picked = counted(lambda: torch.ones(1000)[torch.tensor([1, 2])])
    assert picked.bytes == 4000 + 8 + 16 + 8  # ones written; two picked, written; two indices read


def test_an_env_step_costs_less_than_a_training_step():
    """A million environment steps a second are no million training steps."""
    cost = iteration_cost(DEFAULTS["CartPole"], *sizes("CartPole"))
    assert cost.stages["squeeze"].flops > 10 * cost.stages["collect"].flops
    assert cost.flops / cost.env_steps > 200_000
    assert 30_000 < cost.bytes / cost.env_steps < 70_000


def test_the_ledger_by_hand():
    cost = Cost(
        {
            "collect": StageCost(flops=10, bytes=400, launches=3),
            "score": StageCost(flops=1000, bytes=100, launches=1),
            "squeeze": StageCost(flops=100, bytes=100, launches=100),
        },
        env_steps=5,
    )
    machine = Limits(flops_per_second=100.0, bytes_per_second=100.0, seconds_per_launch=0.5)
    measured = {"collect": 5.0, "score": 11.0, "squeeze": 60.0}
    entries = {entry.stage: entry for entry in ledger(cost, machine, measured)}
    assert [entries[name].binds for name in measured] == ["memory", "arithmetic", "launches"]
    assert [entries[name].least for name in measured] == [4.0, 10.0, 50.0]
    whole = entries["iteration"]
    assert (whole.seconds, whole.arithmetic, whole.memory) == pytest.approx((76.0, 11.1, 6.0))
    assert whole.launches == pytest.approx(52.0)
    assert [entry.seconds for entry in ledger(cost, machine)] == [None] * 4
    assert (cost.flops, cost.bytes, cost.launches) == (1110, 600, 104)


def test_a_machine_has_limits():
    machine = limits(seconds=0.2)
    assert machine.flops_per_second > 1e8
    assert machine.bytes_per_second > 1e7
    assert 1e-8 < machine.seconds_per_launch < 1e-2
    assert machine.device


def test_stages_take_time_and_move_the_run_on():
    state, parts = start_on_device(CONFIG, "CartPole")
    seen = state.carry.observations.clone()
    seconds = time_stages(state, parts, 2)
    assert list(seconds) == ["collect", "score", "squeeze"]
    assert min(seconds.values()) > 0
    assert not torch.equal(seen, state.carry.observations)


@pytest.mark.messages
def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="observation_size is 5; expected 4"):
        iteration_cost(CONFIG, 5, 2, TASKS["CartPole"]())
    state, parts = start_on_device(CONFIG, "CartPole")
    with pytest.raises(ValueError, match="repeats is 0; expected at least 1"):
        time_stages(state, parts, 0)
    with pytest.raises(ValueError, match="device is 'nowhere'"):
        limits("nowhere")


def bytes_of(*things):
    return sum(tensor.nbytes for thing in things for tensor in vars(thing).values())


@pytest.mark.parametrize("task", KINDS)
def test_memory_of_a_rollout_is_exact_and_of_a_squeeze_is_enough(task):
    dtype = torch.bool if task == "Breakout" else torch.float32
    config = replace(CONFIG, env=task)
    state, parts = start_on_device(config, task)
    stages = stage_functions(state, parts)
    shape = state.envs.single_observation_space.shape
    action_size = 1 if task == "Pendulum" else 0
    needed = memory_needed(config, shape, dtype, action_size=action_size)
    stages["collect"]()
    assert bytes_of(state.rollout) == needed["rollout"]
    stages["score"]()
    values = [state.batch.values_old, state.batch.advantages, state.batch.returns]
    order = 8 * config.batch_size
    assert needed["batch"] == sum(each.nbytes for each in values) + order

    kept = {}

    weights = {parameter.untyped_storage().data_ptr() for parameter in state.networks.parameters()}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    one_minibatch = replace(config, num_epochs=1, num_minibatches=1)
    rows = config.batch_size // config.num_minibatches
    state.batch = state.batch.rows(torch.arange(rows))
    own = Parts(networks=parts.networks)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        squeeze(
            state.networks, state.optimizer, state.batch, one_minibatch,
            parts=own, generator=state.generator,
        )  # fmt: skip
    assert 0.4 * needed["squeeze"] < sum(kept.values()) < needed["squeeze"]


def test_more_minibatches_and_fewer_environments_need_less():
    shape = (10, 10, 4)

    def total(**changes):
        config = replace(DEFAULTS["Breakout"], **changes)
        return memory_needed(config, shape, torch.bool)["total"]

    assert total(num_envs=2048) == pytest.approx(total() / 2, rel=0.01)
    assert total(num_steps=16) == pytest.approx(total() / 2, rel=0.01)
    assert total(num_minibatches=2) > total()
    floats = memory_needed(DEFAULTS["Breakout"], shape, torch.float32)
    assert floats["rollout"] > 3 * memory_needed(DEFAULTS["Breakout"], shape, torch.bool)["rollout"]


def test_the_goals_of_memory_hold_by_the_estimate():
    """CartPole with 65,536 environments in 2 GB; Breakout with 4,096 in 4 GB."""
    many = replace(DEFAULTS["CartPole"], num_envs=65_536, num_steps=16)
    assert memory_needed(many, (4,), torch.float32)["total"] < 2e9
    assert memory_needed(DEFAULTS["Breakout"], (10, 10, 4), torch.bool)["total"] < 4e9


@pytest.mark.messages
def test_what_does_not_fit_names_what_would():
    config = DEFAULTS["Breakout"]
    needed = memory_needed(config, (10, 10, 4), torch.bool)["total"]
    check_memory(config, (10, 10, 4), torch.bool, needed)
    check_memory(config, (10, 10, 4), torch.bool, None)
    with pytest.raises(ValueError, match=r"num_envs=4096.*num_envs=2048 would fit"):
        check_memory(config, (10, 10, 4), torch.bool, needed - 1)
