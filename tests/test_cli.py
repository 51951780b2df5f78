import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import fields
from pathlib import Path

import pytest

from ppo_lessons import cli, runs
from ppo_lessons.training_loop import PPOConfig, config_of, read_checkpoint

# Small and quick: three iterations of 64 steps.
SMALL = ["--num-envs", "2", "--num-steps", "32", "--num-epochs", "1", "--total-steps", "192"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(run: Path) -> list[dict]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        del row["seconds"]  # the only entry that two equal runs do not share
    return rows


def test_a_run_leaves_config_versions_metrics_and_a_checkpoint(folder, capsys):
    assert cli.main(["train", *SMALL, "--seed", "3"]) == 0
    run = folder / "runs/CartPole-v1-seed3"
    settings = json.loads((run / "config.json").read_text(encoding="utf-8"))
    assert settings["seed"] == 3
    assert settings["preset"] == "quick"
    assert {"python", "torch", "gymnasium"} <= json.loads(
        (run / "versions.json").read_text(encoding="utf-8")
    ).keys()
    assert [row["env_steps"] for row in rows_of(run)] == [64, 128, 192]
    assert config_of(read_checkpoint(run / "checkpoint.pt")).seed == 3
    out = capsys.readouterr().out
    assert "one torch thread" in out
    assert re.search(r"192 steps   return [\d.]+   kl_k3 [\d.]+   [\d,]+ steps/s", out)


def test_a_second_run_takes_a_new_folder(folder):
    cli.main(["train", *SMALL])
    first = (folder / "runs/CartPole-v1-seed1/metrics.jsonl").read_bytes()
    assert cli.main(["train", *SMALL]) == 0
    assert (folder / "runs/CartPole-v1-seed1/metrics.jsonl").read_bytes() == first
    assert (folder / "runs/CartPole-v1-seed1-2/metrics.jsonl").exists()


def test_a_folder_that_holds_a_run_is_refused(folder, capsys):
    cli.main(["train", *SMALL, "--run-dir", "mine"])
    before = (folder / "mine/metrics.jsonl").read_bytes()
    assert cli.main(["train", *SMALL, "--run-dir", "mine"]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (folder / "mine/metrics.jsonl").read_bytes() == before


def test_a_resumed_run_measures_what_one_run_measures(folder):
    longer = [*SMALL, "--final-learning-rate", "1", "--total-steps", "384"]
    cli.main(["train", *longer, "--run-dir", "whole"])
    cli.main(["train", *longer, "--total-steps", "192", "--run-dir", "parts"])
    assert cli.main(["train", "--resume", "parts", "--total-steps", "384"]) == 0
    assert rows_of(folder / "parts") == rows_of(folder / "whole")
    other = [*longer, "--seed", "2", "--run-dir", "other"]
    cli.main(["train", *other])
    assert rows_of(folder / "other") != rows_of(folder / "whole")


def test_lines_past_the_checkpoint_are_kept_beside_the_new_ones(folder):
    cli.main(["train", *SMALL, "--run-dir", "mine"])
    metrics = folder / "mine/metrics.jsonl"
    longer = metrics.read_text(encoding="utf-8") + '{"iteration": 4}\n'
    metrics.write_text(longer, encoding="utf-8")  # as after a crash between two checkpoints
    cli.main(["train", "--resume", "mine", "--total-steps", "256"])
    assert len(rows_of(folder / "mine")) == 4
    aside = folder / "mine/metrics.before_resume.jsonl"
    assert aside.read_text(encoding="utf-8") == longer


@pytest.mark.messages
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "CartPool-v1"], "Did you mean CartPole-v1"),
        (["--env", "Blackjack-v1"], "expected a Box"),
        (["--resume", "nowhere"], "nowhere does not exist; expected a checkpoint"),
    ],
)
def test_what_is_refused_says_why_and_leaves_no_trace(folder, capsys, arguments, words):
    assert cli.main(["train", *SMALL, *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(folder.rglob("*")) == []


@pytest.mark.messages
def test_a_number_out_of_range_is_refused_by_its_name(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", "--gamma", "1.5"])
    assert stopped.value.code == 2
    words = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "gamma is 1.5; expected in [0, 1]" in words


@pytest.mark.messages
def test_other_settings_are_refused_on_resume_and_the_run_stays_as_it_was(folder, capsys):
    cli.main(["train", *SMALL, "--run-dir", "mine"])
    before = {path.name: path.read_bytes() for path in (folder / "mine").iterdir()}
    assert cli.main(["train", "--resume", "mine", "--gamma", "0.9"]) == 2
    assert "gamma is 0.9 (saved: 0.99)" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (folder / "mine").iterdir()} == before


@pytest.mark.messages
def test_a_damaged_checkpoint_is_refused_and_kept(folder, capsys):
    cli.main(["train", *SMALL, "--run-dir", "mine"])
    checkpoint = folder / "mine/checkpoint.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-200])
    damaged = checkpoint.read_bytes()
    assert cli.main(["train", "--resume", "mine"]) == 2
    assert "cannot be read as a checkpoint" in capsys.readouterr().err
    assert checkpoint.read_bytes() == damaged


def test_the_preset_gives_the_defaults(folder):
    arguments, config = cli.parse_train(["--preset", "classic", "--gamma", "0.9"])
    assert arguments.preset == "classic"
    assert (config.num_envs, config.gamma) == (4, 0.9)


def test_every_setting_is_in_the_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    out = capsys.readouterr().out
    for setting in fields(PPOConfig):
        assert f"--{setting.name.replace('_', '-')} " in out
    assert "--preset" in out
    assert "--resume" in out


@pytest.mark.messages
def test_an_unknown_verb_is_answered_with_the_known_ones(capsys):
    assert cli.main(["learn"]) == 2
    said = capsys.readouterr().err
    assert "there is no verb 'learn'; expected one of train, check, html, grade, bench, " in said
    assert "lab, test" in said


def start_training(folder: Path, *arguments: str, **options) -> subprocess.Popen:
    command = [
        sys.executable,
        "-c",
        "import sys; from ppo_lessons.cli import main; sys.exit(main())",
    ]
    long = ["--total-steps", "10000000", "--run-dir", str(folder / "run")]
    return subprocess.Popen([*command, "train", *SMALL, *long, *arguments], **options)


def wait_for_rows(run: Path, process: subprocess.Popen) -> None:
    for _ in range(600):
        if (run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size > 0:
            return
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("no metrics after a minute")


def test_ctrl_c_leaves_a_run_that_can_go_on(folder):
    process = start_training(folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for_rows(folder / "run", process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "stopped; go on with: ppo-lessons train --resume" in out
    assert "Traceback" not in out
    finished = len(rows_of(folder / "run"))
    steps = str(64 * (finished + 2))
    assert cli.main(["train", "--resume", str(folder / "run"), "--total-steps", steps]) == 0
    assert len(rows_of(folder / "run")) == finished + 2


def test_on_a_terminal_a_bar_shows_return_kl_speed_and_time_left(folder):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    process = start_training(folder, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    wait_for_rows(folder / "run", process)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # Linux: the other side has closed
        pass
    process.wait(60)
    text = seen.decode()
    assert re.search(r"<\d+.*steps/s.*return [\d.]+, kl_k3 [\d.]+", text), text[-500:]


def test_a_resumed_run_does_not_write_into_the_folder_of_another(folder, capsys):
    cli.main(["train", *SMALL, "--run-dir", "one"])
    cli.main(["train", *SMALL, "--seed", "7", "--run-dir", "two"])
    before = {path.name: path.read_bytes() for path in (folder / "two").iterdir()}
    assert cli.main(["train", "--resume", "one", "--run-dir", "two"]) == 2
    assert "two already holds a run" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (folder / "two").iterdir()} == before


def test_two_runs_that_start_together_take_two_folders(folder):
    config = PPOConfig()
    taken = [runs.new_run_folder(config, folder / "runs") for _ in range(3)]
    assert len(set(taken)) == 3
    assert all(path.is_dir() for path in taken)


def test_a_run_without_a_finished_episode_ends_well(folder, capsys):
    assert cli.main(["train", *SMALL, "--env", "Acrobot-v1"]) == 0
    assert "no episode has ended yet" in capsys.readouterr().out


@pytest.mark.messages
def test_a_folder_that_cannot_be_made_is_refused_in_words(folder, capsys):
    (folder / "in_the_way").write_text("mine", encoding="utf-8")
    assert cli.main(["train", *SMALL, "--run-dir", "in_the_way/run"]) == 2
    assert "in_the_way" in capsys.readouterr().err
    assert (folder / "in_the_way").read_text(encoding="utf-8") == "mine"


def test_ctrl_c_before_training_leaves_no_traceback_and_no_folder(folder, capsys, monkeypatch):
    def interrupted(rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse_train", interrupted)
    assert cli.main(["train", *SMALL]) == 130
    assert "stopped" in capsys.readouterr().err
    assert list(folder.rglob("*")) == []


def test_a_terminal_without_unicode_trains_all_the_same(folder):
    code = "import sys; from ppo_lessons.cli import main; sys.exit(main())"
    finished = subprocess.run(
        [sys.executable, "-c", code, "train", *SMALL],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert "? runs" in finished.stdout
