"""What `diagnose` says of runs whose bug is known, and what it does with files."""

import csv
import json
import math
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ppo_lessons import cli, recorded
from ppo_lessons.debugging import BUGS, ZOO_CONFIG
from ppo_lessons.diagnose import CLEANRL, SB3, diagnose, read_run
from ppo_lessons.diagnose.events import masked_crc, read_scalars
from ppo_lessons.envs import Probe
from ppo_lessons.runs import RunFolder
from ppo_lessons.training_loop import PPOConfig, train

RUNS = recorded("debugging")["runs"]
RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
HEALTHY = [name for name in RUNS if name.startswith("healthy")]
# No metric of a run tells these from a right loop; the entropy alone is no proof of anything.
UNSEEN = {"truncation_dropped", "rewards_shifted", "gradients_never_cleared", "entropy_punished"}
NAMED = [name for name in BUGS if name not in UNSEEN]


def alarms(source, **settings):
    return [finding.name for finding in diagnose(source, **settings) if finding.alarm]


def rows_of(name):
    columns = RUNS[name]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- Runs whose bug is known ---------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_a_bug_is_named_by_its_metrics(name):
    (finding,) = diagnose(RUNS[name])
    assert finding.name == name
    assert finding.suspects[0] == name
    assert finding.metric == BUGS[name].betrayed_by.metric
    assert finding.lesson == BUGS[name].lesson


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_run(name):
    assert diagnose(RUNS[name]) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_the_beginning_of_a_healthy_run(name):
    for length in range(10, len(RUNS[name]["entropy"])):
        assert diagnose({metric: column[:length] for metric, column in RUNS[name].items()}) == []


@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_a_bug_without_a_trace_is_not_called_something_else(name):
    assert alarms(RUNS[name]) == []


def test_at_least_three_quarters_of_the_zoo_are_named():
    assert len(NAMED) >= 0.75 * len(BUGS)


def test_on_seeds_it_never_saw_it_names_bugs_and_raises_no_false_alarm():
    found = json.loads((RESULTS / "diagnose.json").read_text("utf-8"))["summary"]
    assert found["healthy_runs"] >= 20
    assert found["false_alarms"] == 0
    assert found["bugs"] == len(BUGS)
    assert found["bugs_named_on_most_seeds"] >= 14


def test_a_finding_says_the_number_and_where_to_read():
    (finding,) = diagnose(RUNS["clip_on_the_wrong_side"])
    assert f"{min(RUNS['clip_on_the_wrong_side']['policy_loss']):.2g}" in finding.sentence
    assert finding.where_to_read == "lesson 04, The clip"
    assert "lesson 04, The clip" in str(finding)


# --- Single rules --------------------------------------------------------------------------------


def flat(count=30, **metrics):
    """A run in which every metric stays as it is, unless a list is given."""
    usual = {
        "env_steps": [1000 * (step + 1) for step in range(count)],
        "episode_return": [10.0 + step for step in range(count)],
        "policy_loss": [-0.01] * count,
        "value_loss": [10 / (1 + step) for step in range(count)],
        "entropy": [0.69 - 0.015 * step for step in range(count)],
        "kl_k1": [0.005] * count,
        "kl_k3": [0.005] * count,
        "fraction_outside": [0.1] * count,
        "ev_lambda": [0.5] * count,
    }
    return usual | {
        name: value if isinstance(value, list) else [value] * count
        for name, value in metrics.items()
    }


def test_a_run_in_which_all_is_usual_has_no_finding():
    assert diagnose(flat()) == []


def test_a_number_that_is_none_is_said_with_its_iteration():
    losses = [1.0] * 5 + [math.nan] * 25
    found = diagnose(flat(value_loss=losses))
    assert found[0].name == "not_finite"
    assert "value_loss is nan from iteration 6 on" in found[0].sentence


@pytest.mark.parametrize(("epsilon", "named"), [(0.2, True), (0.3, False)])
def test_how_much_a_clip_can_pay_depends_on_it(epsilon, named):
    run = flat(policy_loss=-0.25, fraction_outside=0.8)
    assert ("clip_on_the_wrong_side" in alarms(run, clip_epsilon=epsilon)) == named


def test_a_large_loss_where_the_clip_acts_is_that_of_other_advantages():
    assert alarms(flat(policy_loss=-3.0, fraction_outside=0.1)) == []


def test_equal_returns_are_a_remark_and_no_alarm():
    (finding,) = diagnose(flat(episode_return=-200.0))
    assert (finding.name, finding.alarm) == ("all_returns_alike", False)


def test_a_return_that_falls_and_stays_low_is_pushed_the_wrong_way():
    assert alarms(flat(episode_return=[20, 19, 15] + [9.0] * 27)) == ["old_and_new_swapped"]
    # one that rose first has learned something, whatever happened then
    assert alarms(flat(episode_return=[20, 60, 100] + [9.0] * 27)) == []


def test_negative_returns_fall_downwards():
    assert alarms(flat(episode_return=[-100, -100, -100] + [-150.0] * 27)) == [
        "old_and_new_swapped"
    ]
    assert alarms(flat(episode_return=[-150, -150, -150] + [-100.0] * 27)) == []


def test_a_density_has_no_floor_of_entropy():
    late = [1.42 - 0.05 * step for step in range(30)]
    assert alarms(flat(entropy=late)) == []


def test_a_policy_that_never_moves_and_has_a_loss_gets_too_short_steps():
    still = flat(kl_k1=0.0, kl_k3=1e-9, entropy=0.693, fraction_outside=0.0)
    assert alarms(still) == ["gradients_cut_to_nothing"]


def test_a_ratio_of_one_all_along_is_recomputed_if_the_policy_moves():
    one = {"policy_loss": 1e-9, "kl_k1": 0.0, "kl_k3": 0.0, "fraction_outside": 0.0}
    assert alarms(flat(**one)) == ["old_recomputed"]
    assert alarms(flat(**one, entropy=0.693)) == ["old_on_the_graph"]


# --- Logs of other libraries ---------------------------------------------------------------------


def theirs(run, names):
    """A run of ours as another library would have logged it."""
    written = {}
    for tag, meaning in names.items():
        if meaning.metric in run and tag != "time/total_timesteps":
            column = run[meaning.metric]
            written[tag] = [None if n is None else n / meaning.factor for n in column]
    return written


def write_events(folder, columns, steps):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(folder) as writer:
        writer.add_text("hyperparameters", "|param|value|")
        for place, step in enumerate(steps):
            for tag, column in columns.items():
                if column[place] is not None:
                    writer.add_scalar(tag, column[place], step)
    return folder


IN_THEIR_LOGS = [
    *("probabilities_as_logits", "normalized_too_early", "normalized_over_the_wrong_axis"),
    *("old_recomputed", "old_on_the_graph", "clip_on_the_wrong_side", "values_broadcast"),
    *("steps_too_long", "gradients_cut_to_nothing", "old_and_new_swapped"),
]


@pytest.mark.parity
@pytest.mark.parametrize("names", [SB3, CLEANRL], ids=["sb3", "cleanrl"])
def test_event_files_with_the_names_of_other_libraries_are_read(tmp_path, names):
    for bug in IN_THEIR_LOGS:
        steps = RUNS[bug]["env_steps"]
        folder = write_events(tmp_path / bug, theirs(RUNS[bug], names), steps)
        assert alarms(folder) == [bug]
    healthy = write_events(
        tmp_path / "healthy", theirs(RUNS["healthy"], names), RUNS["healthy"]["env_steps"]
    )
    assert alarms(healthy) == []


@pytest.mark.parity
def test_returns_of_single_episodes_are_averaged_up_to_the_next_update(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(tmp_path) as writer:
        for step in range(1, 121):
            writer.add_scalar("charts/episodic_return", float(step), step)
            if step % 10 == 0:
                writer.add_scalar("losses/value_loss", 1.0, step)
    run = read_run(tmp_path)
    assert run.table["episode_return"] == [5.5 + 10 * row for row in range(12)]


@pytest.mark.parity
def test_our_reader_agrees_with_tensorboards(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write_events(tmp_path, theirs(RUNS["steps_too_long"], SB3), RUNS["healthy"]["env_steps"])
    (file,) = tmp_path.glob("*tfevents*")
    reference = accumulator.EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
    ours = read_scalars(file)
    assert set(ours) == set(reference.Tags()["scalars"])
    for tag, points in ours.items():
        assert points == [(event.step, event.value) for event in reference.Scalars(tag)]


def test_the_checksum_is_crc_32c():
    # the check value of CRC-32C is E3069283; turned by 15 bits, plus a constant
    crc = 0xE3069283
    expected = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked_crc(b"123456789") == expected


@pytest.mark.parity
def test_an_event_file_that_is_under_way_is_read_up_to_there(tmp_path):
    write_events(tmp_path, theirs(RUNS["healthy"], SB3), RUNS["healthy"]["env_steps"])
    (file,) = tmp_path.glob("*tfevents*")
    file.write_bytes(file.read_bytes()[:-7])
    assert len(read_run(tmp_path)) >= len(RUNS["healthy"]["env_steps"]) - 1


def test_a_progress_table_is_read(tmp_path):
    columns = theirs(RUNS["normalized_too_early"], SB3)
    columns["time/total_timesteps"] = RUNS["normalized_too_early"]["env_steps"]
    columns["time/fps"] = [1234] * len(columns["time/total_timesteps"])
    with (tmp_path / "progress.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    run = read_run(tmp_path)
    assert run.passed_over == ("time/fps",)
    assert alarms(tmp_path) == ["normalized_too_early"]


@pytest.mark.full
@pytest.mark.parity
def test_a_run_of_stable_baselines_is_read_and_found_healthy(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    pytest.importorskip("tensorboard")
    from stable_baselines3.common.logger import configure

    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["csv", "tensorboard"]))
    model.learn(256 * 24)
    for source in (tmp_path / "progress.csv", *tmp_path.glob("*tfevents*")):
        run = read_run(source)
        assert run.clip_epsilon == pytest.approx(0.2)
        assert {"kl_k3", "entropy", "value_loss", "ev_lambda", "policy_loss"} <= run.table.keys()
        assert alarms(source) == []


# --- Our own files -------------------------------------------------------------------------------

SHORT = PPOConfig(
    total_steps=64 * 12,
    num_envs=4,
    num_steps=16,
    num_epochs=2,
    num_minibatches=2,
    clip_epsilon=0.3,
    hidden_sizes=(8,),
)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("run"), SHORT, "quick")
    train(SHORT, envs=Probe("both", 4), on_iteration=folder.on_iteration)
    folder.finish()
    return folder.path


def test_folder_metrics_and_checkpoint_of_a_run_say_the_same(run_folder):
    runs = [read_run(run_folder / name) for name in ("", "metrics.jsonl", "checkpoint.pt")]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0].clip_epsilon == 0.3
    assert len(runs[0]) == 12


def test_a_history_its_rows_and_its_columns_say_the_same(run_folder):
    history = train(SHORT, envs=Probe("both", 4))
    columns = {metric: history[metric] for metric in history.rows[0]}
    runs = [read_run(source) for source in (history, history.rows, columns)]
    assert runs[0].table == runs[1].table == runs[2].table
    assert [run.clip_epsilon for run in runs] == [0.3, None, None]


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path, run_folder):
    text = (run_folder / "metrics.jsonl").read_text("utf-8")
    (tmp_path / "metrics.jsonl").write_text(text[:-20], encoding="utf-8")
    assert len(read_run(tmp_path)) == 11


def test_rows_in_a_json_file_are_read(tmp_path):
    for number, content in enumerate((rows_of("healthy"), {"rows": rows_of("healthy")})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        assert len(read_run(path)) == len(rows_of("healthy"))


# --- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([], r"the run has 0 iterations; expected at least 10"),
        (rows_of("healthy")[:9], r"the run has 9 iterations; expected at least 10"),
        ({"entropy": [0.1] * 20, "kl_k3": [0.1] * 19}, r"kl_k3 has 19, others up to 20"),
        ({"score": 3}, r"a dictionary with score holds no lists"),
        ([{"score": 1.0}] * 20, r"none of the metrics .* It has: score"),
    ],
)
def test_too_little_is_refused(source, words):
    with pytest.raises(ValueError, match=words):
        diagnose(source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (3, r"the run is a int; expected a History"),
        (["entropy"] * 20, r"row 0 is a str; expected a dictionary"),
        ([{"entropy": "much"}] * 20, r"entropy in row 0 is no number"),
        ([{"entropy": True}] * 20, r"entropy in row 0 is no number"),
    ],
)
def test_what_is_no_run_is_refused(source, words):
    with pytest.raises(TypeError, match=words):
        diagnose(source)


def test_files_that_are_no_run_are_refused_with_what_to_do(tmp_path):
    two = tmp_path / "two"
    for name in ("a", "b"):
        (two / name).mkdir(parents=True)
        (two / name / "progress.csv").write_text("x\n1\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "number.json").write_text("3")
    (tmp_path / "several.json").write_text(json.dumps({"runs": {"a": {}}}))
    (tmp_path / "metrics.jsonl").write_text("{\n{}\n")
    (tmp_path / "events.out.tfevents.1").write_bytes(struct.pack("<QI", 3, 1) + bytes(20))
    for name, words in {
        "nowhere": "does not exist",
        "empty": "holds no run; expected metrics.jsonl",
        "two": r"holds 2 runs \(a, b\)",
        "notes.txt": r"has the ending \.txt",
        "broken.json": "is no JSON",
        "number.json": "holds a int",
        "several.json": "holds several runs",
        "metrics.jsonl": "line 1 of .* is no JSON",
        "events.out.tfevents.1": "cannot be read as an event file",
    }.items():
        with pytest.raises(ValueError, match=words):
            diagnose(tmp_path / name)


# --- The verb ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("healthy", 0, "Nothing looks wrong in these numbers"),
        ("steps_too_long", 1, "One thing looks wrong."),
    ],
)
def test_the_verb_prints_the_findings_and_answers_by_its_status(
    tmp_path, capsys, name, status, words
):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUNS[name]), encoding="utf-8")
    assert cli.main(["diagnose", str(path)]) == status
    printed = capsys.readouterr().out
    assert words in printed
    assert (name in printed) == (status == 1)


def test_the_verb_refuses_what_is_no_run(tmp_path, capsys):
    assert cli.main(["diagnose", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


# --- Controls ------------------------------------------------------------------------------------


def test_each_bug_is_told_from_the_healthy_run_by_the_metrics_and_not_by_its_name():
    for name in NAMED:
        with_healthy_numbers = dict(RUNS[name]) | {
            metric: RUNS["healthy"][metric] for metric in RUNS["healthy"]
        }
        assert diagnose(with_healthy_numbers) == []


def test_another_seed_of_the_zoo_has_the_settings_that_are_on_record():
    assert recorded("debugging")["config"] == json.loads(json.dumps(replace(ZOO_CONFIG).__dict__))
