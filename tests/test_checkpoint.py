"""Checkpoints: a resumed run is the run itself, and what is no checkpoint is refused unharmed."""

import dataclasses
import json
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from torch import nn
from toy_envs import SCRIPTS, endless, scripted

from ppo_lessons.envs import Probe, make_envs
from ppo_lessons.training_loop import PPOConfig, read_checkpoint, train, write_checkpoint
from ppo_lessons.training_loop.checkpoint import config_of

CONFIG = PPOConfig(
    total_steps=64 * 6,
    num_envs=4,
    num_steps=16,
    num_epochs=2,
    num_minibatches=2,
    learning_rate=1e-2,
    hidden_sizes=(8,),
)
NAMES = ["CartPole-v1", "Acrobot-v1", "two_step_discount", "both"]


def make(name: str, num_envs: int = 4):
    return make_envs(name, num_envs) if "-v" in name else Probe(name, num_envs)


def save_at(path: Path, iteration: int, config: PPOConfig = CONFIG, envs=None):
    """Train, write a checkpoint after that iteration, and stop there."""

    def save(state):
        if state.iteration == iteration:
            write_checkpoint(state.checkpoint(), path)
            return True
        return False

    return train(config, envs=envs or Probe("both", config.num_envs), on_iteration=save)


def last_state(config: PPOConfig = CONFIG, **arguments):
    """Train, and give the state at the end as well."""
    states = []
    history = train(config, on_iteration=states.append, **arguments)
    return history, states[-1]


def rows_of(history) -> list[dict]:
    """The rows without their clock."""
    return [{name: row[name] for name in row if name != "seconds"} for row in history]


def same_tensors(first, second) -> bool:
    """Whether two nests of dictionaries, lists and tensors are equal to the last bit."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            same_tensors(first[k], second[k]) for k in first
        )
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same_tensors, first, second))
    return first == second


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "checkpoint.pt"


def refusal(source) -> str:
    with pytest.raises(ValueError, match="expected") as raised:
        read_checkpoint(source)
    return str(raised.value)


# --- Going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_is_the_run_itself(name, path):
    config = replace(CONFIG, env=name if "-v" in name else CONFIG.env)
    straight, end = last_state(config, envs=make(name))
    assert len(save_at(path, 3, config, make(name))) == 3
    resumed, resumed_end = last_state(config, envs=make(name), resume=path)
    assert len(resumed) == 6
    assert same_tensors(end.networks.state_dict(), resumed_end.networks.state_dict())
    assert same_tensors(end.optimizer.state_dict(), resumed_end.optimizer.state_dict())
    assert torch.equal(end.generator.get_state(), resumed_end.generator.get_state())
    assert torch.equal(end.carry.observations, resumed_end.carry.observations)
    assert torch.equal(end.carry.episode_returns, resumed_end.carry.episode_returns)
    assert torch.equal(end.rollout.observations, resumed_end.rollout.observations)
    assert rows_of(straight) == rows_of(resumed)
    assert resumed_end.resumed == ""


def test_a_path_may_be_text(path):
    save_at(path, 3)
    assert len(train(CONFIG, envs=Probe("both", 4), resume=str(path))) == 6


def test_a_checkpoint_in_memory_is_a_snapshot():
    # The run goes on after it was taken, and must not reach into it.
    kept = []

    def keep(state):
        if state.iteration == 3:
            kept.append(state.checkpoint())

    straight = train(CONFIG, envs=Probe("both", 4), on_iteration=keep)
    for _ in range(2):  # and a run that starts from it must not either
        resumed = train(CONFIG, envs=Probe("both", 4), resume=kept[0])
        assert rows_of(resumed) == rows_of(straight)
        assert same_tensors(straight.networks.state_dict(), resumed.networks.state_dict())


def test_a_finished_run_has_nothing_left_to_do(path):
    finished = save_at(path, 6)
    again = train(CONFIG, envs=Probe("both", 4), resume=path)
    assert again.stopped == "finished"
    assert rows_of(again) == rows_of(finished)
    assert same_tensors(again.networks.state_dict(), finished.networks.state_dict())


def test_a_run_may_go_on_for_longer(path):
    save_at(path, 6)
    longer = replace(CONFIG, total_steps=64 * 9)
    history = train(longer, envs=Probe("both", 4), resume=path)
    assert history["iteration"] == list(range(1, 10))
    # The straight line to the end is the longer run's: 1 − 6/9 of the first rate.
    assert history["learning_rate"][6] == pytest.approx(1e-2 * (1 - 6 / 9))


@pytest.mark.parametrize(
    "envs",
    [lambda: endless(4, 5), lambda: scripted(*SCRIPTS * 2, mode=AutoresetMode.NEXT_STEP)],
    ids=["unknown environment", "next-step mode"],
)
def test_environments_that_cannot_be_saved_begin_new_episodes(envs, path):
    saved = save_at(path, 3, envs=envs())
    resumed, state = last_state(envs=envs(), resume=path)
    assert state.resumed == "these environments cannot be saved, so new episodes begin here"
    assert rows_of(resumed)[:3] == rows_of(saved)
    assert len(resumed) == 6
    # The first new row begins an episode.
    first = []
    train(
        CONFIG,
        envs=envs(),
        resume=path,
        on_iteration=lambda state: first.append(state.rollout.episode_lengths[0].clone()),
    )
    assert first[0].tolist() == [1, 1, 1, 1]


def test_the_settings_come_back(path):
    save_at(path, 1)
    assert config_of(read_checkpoint(path)) == CONFIG


@pytest.mark.messages
def test_other_settings_are_refused_with_every_difference(path):
    save_at(path, 3)
    other = replace(CONFIG, gamma=0.5, hidden_sizes=(16,), total_steps=64 * 7)
    with pytest.raises(ValueError, match="expected the same") as raised:
        train(other, envs=Probe("both", 4), resume=path)
    assert str(raised.value) == (
        "the checkpoint is that of other settings: gamma is 0.5 (saved: 0.99); hidden_sizes is "
        "(16,) (saved: (8,)); expected the same, except total_steps. Resume with the saved "
        "settings, or start anew."
    )


@pytest.mark.parametrize(
    "name", sorted({f.name for f in dataclasses.fields(PPOConfig)} - {"total_steps"})
)
def test_no_setting_may_differ(name, path):
    save_at(path, 1)
    different = {"env": "Acrobot-v1", "hidden_sizes": (9,), "seed": 2, "num_envs": 5}
    different |= {"num_steps": 20, "num_epochs": 3, "num_minibatches": 3}
    changed = replace(CONFIG, **{name: different.get(name, 0.123)})
    with pytest.raises(ValueError, match=f"other settings: {name} is "):
        train(changed, envs=Probe("both", changed.num_envs), resume=path)


# --- Writing -------------------------------------------------------------------------------------


def test_a_checkpoint_holds_plain_data_only(path):
    save_at(path, 2)
    # Read with torch's own reader of plain data, which runs no code.
    saved = torch.load(path, weights_only=True)
    assert saved["config"]["gamma"] == 0.99
    assert [row["iteration"] for row in saved["rows"]] == [1, 2]


def test_folders_on_the_way_are_made(tmp_path):
    path = tmp_path / "runs" / "first" / "checkpoint.pt"
    save_at(path, 1)
    assert [file.name for file in path.parent.iterdir()] == ["checkpoint.pt"]


def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch):
    save_at(path, 2)
    before = path.read_bytes()

    def crash(checkpoint, file):
        file.write(b"half a checkpoint")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", crash)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint({"format": "new"}, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["checkpoint.pt"]


def test_the_file_is_never_seen_half_written(path, monkeypatch):
    save_at(path, 2)
    seen, write = [], torch.save

    def look(checkpoint, file):
        write(checkpoint, file)
        seen.append(read_checkpoint(path)["rows"][-1]["iteration"])

    monkeypatch.setattr(torch, "save", look)
    save_at(path, 4)
    assert seen == [2]
    assert read_checkpoint(path)["rows"][-1]["iteration"] == 4


# --- Refusing ------------------------------------------------------------------------------------


class Bomb:
    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def damaged(kind: str, path: Path) -> None:
    """Put something at `path` that cannot be read as a checkpoint."""
    save_at(path, 1)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    if kind == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "one byte changed":
        with zipfile.ZipFile(path) as archive:
            largest = max(archive.infolist(), key=lambda member: member.file_size)
        middle = whole.index(largest.filename.encode()) + 200
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    elif kind == "random":
        path.write_bytes(random.bytes(5000))
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "json":
        path.write_text(json.dumps({"format": "ppo-lessons checkpoint 1"}), encoding="utf-8")
    elif kind == "pickle":
        path.write_bytes(pickle.dumps({"format": "ppo-lessons checkpoint 1"}))
    elif kind == "torch's old format":
        torch.save({"a": 1}, path, _use_new_zipfile_serialization=False)


DAMAGES = ["cut", "one byte changed", "random", "empty", "json", "pickle", "torch's old format"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_damaged_is_refused_and_left_as_it_is(kind, path):
    damaged(kind, path)
    before = path.read_bytes()
    message = refusal(path)
    assert message.startswith(f"{path} cannot be read as a checkpoint (")
    assert message.endswith(
        "); expected a whole file that `ppo-lessons train` wrote. It was left as it is. Give "
        "another checkpoint, or start anew without it."
    )
    assert path.read_bytes() == before


@pytest.mark.messages
def test_the_message_about_an_empty_file_is_literal(path):
    damaged("empty", path)
    assert refusal(path) == (
        f"{path} cannot be read as a checkpoint (File is not a zip file); expected a whole file "
        "that `ppo-lessons train` wrote. It was left as it is. Give another checkpoint, or start "
        "anew without it."
    )


def test_no_damage_of_a_few_bytes_is_ever_taken_for_other_numbers(path):
    # Bytes between the members of the archive mean nothing, so some damages change nothing.
    save_at(path, 1)
    good, original = path.read_bytes(), read_checkpoint(path)
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        data = bytearray(good)
        for place in random.integers(len(data), size=2):
            data[place] = int(random.integers(256))
        path.write_bytes(data)
        try:
            found = read_checkpoint(path)
        except ValueError:
            refused += 1
        else:
            assert same_tensors(dict(original), dict(found))
    assert refused > 20


def test_code_in_a_file_is_not_run(path, tmp_path):
    target = tmp_path / "was_run"
    torch.save({"format": "ppo-lessons checkpoint 1", "rows": Bomb(target)}, path)
    before = path.read_bytes()
    assert "cannot be read as a checkpoint (" in refusal(path)
    assert not target.exists()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [nn.Linear(2, 1).state_dict(), torch.zeros(3), {"format": "another 1"}, [1, 2]]
)
def test_what_is_foreign_is_refused_and_left_as_it_is(content, path):
    torch.save(content, path)
    before = path.read_bytes()
    assert refusal(path) == (
        f"{path} is no checkpoint of ppo-lessons; expected a file that `ppo-lessons train` wrote. "
        "It was left as it is. Give the path of a checkpoint.pt, or start anew without it."
    )
    assert path.read_bytes() == before


@pytest.mark.messages
def test_a_dictionary_that_is_no_checkpoint_is_refused():
    assert refusal({"rows": []}).startswith("resume is no checkpoint of ppo-lessons; expected")


@pytest.mark.messages
def test_a_missing_file_is_refused(path):
    assert refusal(path) == (
        f"{path} does not exist; expected a checkpoint. Give the path of a checkpoint.pt."
    )


@pytest.mark.messages
def test_a_folder_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "kept").touch()
    assert refusal(tmp_path).startswith(f"{tmp_path} cannot be read as a checkpoint (")
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("saved", "resumed", "problem"),
    [
        ("CartPole-v1", "Acrobot-v1", "that of other networks"),
        ("MountainCar-v0", "Acrobot-v1", "that of other networks"),
        ("both", "two_step_discount", "the saved state is that of 4 environments"),
    ],
)
def test_a_checkpoint_of_other_environments_is_refused(saved, resumed, problem, path):
    # The config names another environment than the one that is passed in, so it cannot tell.
    save_at(path, 1, envs=make(saved))
    with pytest.raises(ValueError, match=problem):
        train(CONFIG, envs=make(resumed), resume=path)


@pytest.mark.messages
def test_a_checkpoint_that_lacks_a_part_is_refused():
    with pytest.raises(ValueError, match="resume is no checkpoint of ppo-lessons"):
        read_checkpoint({"format": "ppo-lessons checkpoint 1", "config": {}})
