"""ThroughputLedger: counts against the package's, limits by hand, what the hand moves."""

from itertools import pairwise

import pytest
import torch
from browsing import disagreements, random_widgets

from ppo_lessons.envs import CartPole
from ppo_lessons.gpu_run import iteration_cost, memory_needed
from ppo_lessons.training_loop import PPOConfig
from ppo_lessons.widgets import ThroughputLedger
from ppo_lessons.widgets.throughput_ledger import LIMITS, NUM_ENVS, PEAKS, recording


def config_of(shown):
    return PPOConfig(
        num_envs=shown.num_envs,
        num_steps=shown.num_steps,
        num_epochs=shown.num_epochs,
        num_minibatches=shown.num_minibatches,
        hidden_sizes=(shown.hidden, shown.hidden),
        total_steps=shown.num_envs * shown.num_steps,
    )


# --- counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["few", "wide", "gpu_many"])
def test_the_recorded_counts_are_those_of_the_package(state):
    shown = ThroughputLedger.at(state, num_steps=16, num_epochs=2, num_minibatches=8)
    cost = iteration_cost(config_of(shown), 4, 2, CartPole())
    work = shown._work(shown.num_envs)
    stages = list(cost.stages.values())
    assert work["flops"] == [stage.flops for stage in stages]
    # bytes of the environment and launches are counted, and another torch counts a little otherwise
    assert work["bytes"] == pytest.approx([stage.bytes for stage in stages], rel=0.1)
    assert work["launches"] == pytest.approx([stage.launches for stage in stages], rel=0.25)


def test_memory_is_that_of_the_package():
    for shown in random_widgets("throughput_ledger", 20):
        needed = memory_needed(config_of(shown), (4,), torch.float32)["total"]
        assert shown.megabytes == pytest.approx(needed / 1e6, rel=1e-12)


def test_the_flops_of_a_step_by_hand():
    # policy 4-64-64-2 and critic 4-64-64-1, forwards: 2·(256 + 4096 + 128), 2·(256 + 4096 + 64)
    policy, critic = 8960, 8832
    backwards = 2 * (policy + critic) - 2 * 2 * 256
    by_hand = policy + 2 * critic + 4 * (policy + critic + backwards)
    assert ThroughputLedger().flops_per_step == by_hand == 236_032


# --- limits ----------------------------------------------------------------------------------


def test_a_limit_by_hand():
    shown = ThroughputLedger(num_envs=4096, device="h200", launch_us=5.0)
    seconds = shown.launches * 5e-6
    assert shown.binds == "launches"
    assert shown.steps_per_second == pytest.approx(32 * 4096 / seconds)
    arithmetic = 236_032 / 67e12
    assert shown.micros[-1][0] == pytest.approx(1e6 * arithmetic)


def test_rows_of_the_stages_add_up():
    for shown in random_widgets("throughput_ledger", 10):
        *stages, together = shown.micros
        assert together == pytest.approx([sum(column) for column in zip(*stages, strict=True)])


def test_twice_the_copies_allow_twice_the_steps_where_launches_bind_and_no_more_elsewhere():
    curve = ThroughputLedger(device="h200").curve
    for before, after in pairwise(curve):
        arithmetic, memory, launches = (b / a for a, b in zip(before, after, strict=True))
        assert launches == pytest.approx(2)
        assert arithmetic == pytest.approx(1)
        assert 1 <= memory < 2


def test_cheaper_launches_count_on_a_gpu_and_not_on_the_core():
    for device, gain in (("h200", 5 / 1.5), ("core", 1.0)):
        dear, cheap = (
            ThroughputLedger(num_envs=8, device=device, launch_us=cost) for cost in (5.0, 1.5)
        )
        assert cheap.steps_per_second / dear.steps_per_second == pytest.approx(gain)


def test_only_the_core_was_measured():
    machines = recording()["machines"]
    assert set(machines) == {"core", *PEAKS}
    assert "seconds_per_launch" in machines["core"]
    assert all("seconds_per_launch" not in machines[name] for name in PEAKS)


def test_what_binds_changes_with_the_number_of_copies():
    on_the_core = [ThroughputLedger(num_envs=num_envs).binds for num_envs in NUM_ENVS]
    assert on_the_core[0] == "launches"
    assert on_the_core[-1] != "launches"
    assert set(on_the_core) <= set(LIMITS)


def test_the_sentence_of_the_default():
    said = repr(ThroughputLedger())
    assert said.startswith("64 × 32 steps on one core, as measured: ")
    assert said.endswith("at 236.0 thousand FLOPs each; the run takes 1.2 MB.")


@pytest.mark.messages
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"num_envs": 100}, "num_envs is 100; expected one of 8, 16"),
        ({"num_epochs": 9}, "num_epochs is 9; expected a whole number from 1 to 8"),
        ({"device": "a100"}, "device is 'a100'; expected one of core, t4, h200"),
        ({"guess": "python"}, "guess is 'python'; expected one of arithmetic, memory, launches"),
    ],
)
def test_a_state_that_was_not_counted_is_refused(state, words):
    with pytest.raises(ValueError, match=words):
        ThroughputLedger(**state)


# --- in a browser ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("samples * num_epochs]", "samples]"),
        ("num_epochs * num_minibatches]", "num_minibatches]"),
        ("machine.seconds_per_launch ?? ", ""),
        ("Math.ceil(samples / num_minibatches)", "samples"),
        ("micros[3].indexOf(most)", "micros[2].indexOf(Math.max(...micros[2]))"),
    ],
)
def test_a_wrong_formula_in_the_script_is_found(browser, right, wrong):
    shown = random_widgets("throughput_ledger", 30)
    assert right in shown[0]._esm
    assert disagreements(browser, shown) == []
    assert disagreements(browser, shown, script=shown[0]._esm.replace(right, wrong))


def test_a_machine_and_its_launches_are_chosen(visit):
    with visit(ThroughputLedger(), state="many") as seen:
        assert seen.button("1.5").is_disabled()
        seen.button("H200 (published peak)").click()
        assert seen.status() == repr(ThroughputLedger.at("many", device="h200"))
        seen.button("1.5").click()
        assert seen.status() == repr(ThroughputLedger.at("many", device="h200", launch_us=1.5))


def test_nothing_is_told_before_the_guess(visit):
    with visit(ThroughputLedger()) as seen:
        assert "Say what binds" in seen.status()
        seen.page.get_by_role("combobox").select_option("memory")
        seen.button("Reveal").click()
        assert seen.page.get_by_text("You said: memory. On this machine").is_visible()
        assert seen.status() == repr(ThroughputLedger(revealed=True))


def test_a_slider_moves_from_one_number_of_copies_to_the_next(visit):
    with visit(ThroughputLedger(), state="few") as seen:
        slider = seen.page.get_by_role("slider", name="copies N")
        slider.focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.status() == repr(ThroughputLedger.at("few", num_envs=16))
