"""Several processes with gloo on this machine, and the command line."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from test_gpu_run import EXACT, squeezed_alone, squeezed_on_a_rank
from torch.testing import assert_close

from ppo_lessons.envs import TASKS
from ppo_lessons.gpu_run import Keeper, Ranks, start_on_device, train_on_device, train_ranks
from ppo_lessons.gpu_run.command import main, parse
from ppo_lessons.gpu_run.device import DEFAULTS
from ppo_lessons.gpu_run.job import resume_job
from ppo_lessons.training_loop import PPOConfig, read_checkpoint

ROOT = Path(__file__).resolve().parent.parent
CONFIG = PPOConfig(
    env="CartPole", num_envs=8, num_steps=16, num_epochs=1, num_minibatches=2, hidden_sizes=(8,),
    total_steps=128 * 10,
)  # fmt: skip


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def weights(networks):
    return torch.cat([parameter.detach().flatten() for parameter in networks.parameters()])


def as_rank(rank, size, port, folder, work):
    """One process of a job: meet the others, work, leave what came out in a file."""
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
    torch.save(work(Ranks(rank, size), folder), folder / f"{rank}.pt")
    dist.destroy_process_group()


def job(work, folder, size=2):
    """Run `work(ranks, folder)` on some processes; give what each returned."""
    multiprocessing.spawn(as_rank, (size, free_port(), folder, work), nprocs=size)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def train_and_stop_and_go_on(ranks, folder):
    """Two squeezes of a fixed batch; runs: a whole one, one that stops, one that goes on there."""
    kept = []
    keeper = Keeper(lambda: False, lambda checkpoint, state: kept.append(checkpoint))
    whole = train_ranks(CONFIG, "CartPole", ranks)
    stopped = train_ranks(
        CONFIG, "CartPole", ranks,
        on_iteration=lambda state: state.iteration == 4, keeper=keeper,
    )  # fmt: skip
    if ranks.rank == 0:
        torch.save(kept[-1], folder / "checkpoint.pt")
    dist.barrier()
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    resumed = train_ranks(CONFIG, "CartPole", ranks, resume=saved)
    return {
        "weights": [weights(each.networks) for each in (whole, stopped, resumed)],
        "rows": [each.rows for each in (whole, stopped, resumed)],
        "stopped": stopped.stopped,
        "squeezed": [squeezed_on_a_rank(ranks.rank, number) for number in (1, 4)],
        "carry": [part["carry"]["observations"] for part in saved["ranks"]],
    }


def test_two_processes_share_a_policy_and_go_on_bit_by_bit(tmp_path):
    ours, theirs = job(train_and_stop_and_go_on, tmp_path)
    # one fixed batch, split in halves: what one process makes of both
    for result in (ours, theirs):
        assert_close(result["squeezed"], [squeezed_alone(number) for number in (1, 4)], **EXACT)
    for mine, other in zip(ours["weights"], theirs["weights"], strict=True):
        assert torch.equal(mine, other)  # on all ranks, after 10, 4 and 4 + 6 iterations
    whole, stopped, resumed = ours["weights"]
    assert not torch.equal(whole, stopped)
    assert torch.equal(whole, resumed)
    assert (ours["stopped"], theirs["stopped"]) == ("on_iteration", "on_iteration")
    # rows are those of the job, on both
    rows = ours["rows"][0]
    assert [row["env_steps"] for row in rows] == [128 * (k + 1) for k in range(10)]
    timeless = [[{**row, "seconds": 0} for row in each["rows"][0]] for each in (ours, theirs)]
    assert timeless[0] == timeless[1]
    # each rank plays other episodes
    assert ours["carry"][0].shape == (4, 4)
    assert not torch.equal(*ours["carry"])
    check_resumed_by_one_process(read_checkpoint(tmp_path / "checkpoint.pt"))


def check_resumed_by_one_process(saved):
    """Another number of ranks begins new episodes, and says so."""
    notes = []
    history = train_on_device(
        CONFIG, "CartPole", resume=saved, on_iteration=lambda state: notes.append(state.resumed)
    )
    assert len(history) == 10
    assert "new episodes begin here" in notes[0]
    drawn = []
    for rank in range(4):
        ranks = Ranks(rank, 4)
        state, _ = start_on_device(ranks.share(CONFIG), "CartPole")
        resume_job(state, CONFIG, saved, ranks)
        assert "that of 2 ranks and this job has 4, so new episodes begin here" in state.resumed
        assert state.iteration == 4
        drawn.append(tuple(torch.rand(3, generator=state.generator).tolist()))
    assert len(set(drawn)) == 4  # no two ranks go on with the same random numbers
    with pytest.raises(ValueError, match=r"gamma is 0\.5"):
        resume_job(state, replace(CONFIG, gamma=0.5), saved, ranks)


def launched(*arguments, folder, ranks=2, **how):
    """A job under torchrun, as a learner would start it."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
        "--master-addr", "127.0.0.1", "--master-port", str(free_port()),
        "-m", "ppo_lessons.gpu_run", "--task", "CartPole", "--hidden-sizes", "8",
        "--checkpoint", str(folder), *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **how
    )


def children_of(pid):
    """The processes that a process has started, by their ids."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def rank_of(pid):
    environment = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.partition("=")[::2] for line in environment if line).get("RANK")


def wait_for(condition, seconds=90):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.1)


SIZES = ("--num-envs", "16", "--num-steps", "8", "--num-epochs", "1", "--num-minibatches", "2")


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux' /proc")
def test_a_job_whose_rank_is_killed_ends_says_so_and_goes_on(tmp_path):
    folder = tmp_path / "run"
    running = launched(*SIZES, "--total-steps", "100000000", folder=folder)
    try:
        wait_for((folder / "checkpoint.pt").exists)
        victim = next(pid for pid in children_of(running.pid) if rank_of(pid) == "1")
        os.kill(victim, signal.SIGKILL)
        output, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode != 0
    assert "another rank does not answer any more" in output
    assert f"go on with --checkpoint {folder} --resume" in re.sub(r"\s+", " ", output)
    saved = read_checkpoint(folder / "checkpoint.pt")
    assert len(saved["ranks"]) == 2
    steps = saved["rows"][-1]["env_steps"]
    more = launched(*SIZES, "--resume", "--total-steps", str(steps + 256), folder=folder)
    output, _ = more.communicate(timeout=120)
    assert more.returncode == 0, output
    assert "note:" not in output  # the same number of ranks: nothing begins anew
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows[-3:]] == [steps, steps + 128, steps + 256]


@pytest.mark.full
def test_ctrl_c_ends_a_job_with_a_checkpoint_of_its_last_iteration(tmp_path):
    folder = tmp_path / "run"
    running = launched(*SIZES, "--total-steps", "100000000", folder=folder, start_new_session=True)
    try:
        wait_for((folder / "metrics.jsonl").exists)
        os.killpg(running.pid, signal.SIGINT)  # a terminal sends it to all of them
        output, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert read_checkpoint(folder / "checkpoint.pt")["rows"][-1] == rows[-1], output


@pytest.mark.full
def test_kill_9_loses_nothing_before_the_last_checkpoint(tmp_path):
    folder = tmp_path / "run"
    command = [
        sys.executable, "-m", "ppo_lessons.gpu_run", "--task", "CartPole", "--graphs", *SIZES,
        "--hidden-sizes", "8", "--checkpoint", str(folder), "--total-steps", "100000000",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for((folder / "checkpoint.pt").exists)
    finally:
        running.kill()
        running.wait()
    steps = read_checkpoint(folder / "checkpoint.pt")["rows"][-1]["env_steps"]
    assert main(["--checkpoint", str(folder), "--resume", "--total-steps", str(steps + 128)]) == 0
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows[-2:]] == [steps, steps + 128]


SHORT = ["--num-envs", "8", "--num-steps", "16", "--hidden-sizes", "8", "--total-steps", "640"]


@pytest.mark.parametrize("task", ["CartPole", "Breakout", "Pendulum"])
def test_the_command_trains_and_goes_on(task, tmp_path, capsys):
    folder = tmp_path / "run"
    extra = ["--normalize"] if task == "Pendulum" else []
    assert main(["--task", task, "--graphs", *SHORT, *extra, "--checkpoint", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "versions.json", "metrics.jsonl", "checkpoint.pt",
    }  # fmt: skip
    again = ["--checkpoint", str(folder), "--resume", "--total-steps", "1280"]
    assert main(again) == 0  # the rest, task and scaling too, is that of the run
    printed = capsys.readouterr().out
    assert f"{task}, seed 1, on cpu" in printed
    assert "steps/s" in printed
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows] == [128 * (k + 1) for k in range(10)]


@pytest.mark.messages
def test_the_command_refuses_with_a_sentence(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    assert main([*SHORT, "--checkpoint", str(folder)]) == 0
    for arguments, sentence in [
        ([*SHORT, "--checkpoint", str(folder)], "already holds a run; expected a new folder"),
        (["--resume"], "--resume is given without --checkpoint"),
        (["--checkpoint", str(tmp_path / "none"), "--resume"], "does not exist; expected a check"),
        ([*SHORT, "--device", "cuda:99", "--checkpoint", str(tmp_path / "a")], "cannot be used"),
        ([*SHORT, "--seed", "2", "--checkpoint", str(folder), "--resume"], "seed is 2 (saved: 1)"),
    ]:
        capsys.readouterr()
        assert main(arguments) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "a").exists()  # settings that were refused leave no trace


@pytest.mark.messages
def test_what_several_ranks_cannot_share_is_refused(tmp_path):
    from ppo_lessons.gpu_run.command import check_together

    for flag in ("--graphs", "--normalize"):
        settings = parse([*SHORT, flag, "--checkpoint", str(tmp_path / "run")])
        check_together(settings, Ranks())
        with pytest.raises(ValueError, match=f"{flag} is on for 2 ranks"):
            check_together(settings, Ranks(0, 2))


def test_each_task_has_settings_of_its_own():
    assert DEFAULTS.keys() == TASKS.keys()
    for task, config in DEFAULTS.items():
        assert config.env == task
        assert replace(config).batch_size % config.num_minibatches == 0
