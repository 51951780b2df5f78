"""The script that measures everything on a GPU runs whole where there is none, only smaller."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu import SECTIONS, Bench, main, run_all

QUICK = [section.name for section in SECTIONS if section.name != "peers"]


def test_every_section_runs_on_the_cpu(tmp_path):
    assert main(["--dry", "--only", ",".join(QUICK), "--out", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "gpu.json").read_text())
    assert list(content["sections"]) == QUICK
    found = {name: section["result"] for name, section in content["sections"].items()}
    assert all(task["equal"] for task in found["equal"].values())
    for name in ("speed", "breakout_speed", "environments"):
        assert [row["graphs"] for row in found[name][:2]] == [False, True]
        assert all(row["steps_per_second"] > 0 for row in found[name])
    assert [entry["stage"] for entry in found["ledger"]["Breakout"]["ledger"]] == [
        "collect", "score", "squeeze", "iteration",
    ]  # fmt: skip
    assert content["summary"]["cart_pole_graphs"] > 0
    rows, apart = (found["tokens"][name] for name in ("rows", "largest_log_prob_difference"))
    assert all(row["answers_per_second"] > 0 for row in rows)
    assert all(row["largest_first_ratio_deviation"] < 1e-4 for row in rows)
    assert apart < 1e-4
    assert content["dry"]  # nobody takes these numbers for a GPU's


@pytest.mark.full
def test_peers_are_measured_in_processes_of_their_own():
    pytest.importorskip("stable_baselines3")
    found = gpu.peers(Bench(torch.device("cpu"), True, None))
    assert all(reading["env_steps"] > 0 for reading in found.values())


def test_a_section_that_fails_costs_the_others_nothing(monkeypatch):
    def broken(bench):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    first, second = SECTIONS[0], SECTIONS[5]
    monkeypatch.setattr(gpu, "SECTIONS", (replace(first, measure=broken), second))
    written = []
    bench = Bench(torch.device("cpu"), True, None)
    content = run_all(bench, [], lambda content: written.append(json.dumps(content)))
    assert "illegal memory access" in content["sections"][first.name]["error"]
    assert "result" in content["sections"][second.name]
    assert len(written) == 2  # what is known is written after each


def test_a_section_that_would_come_too_late_is_left_out(monkeypatch):
    monkeypatch.setattr(gpu, "ALLOWED", 0)
    content = run_all(Bench(torch.device("cpu"), True, None), [], lambda content: None)
    assert all("left_out" in section for section in content["sections"].values())


def test_all_sections_fit_into_one_call():
    assert sum(section.seconds for section in SECTIONS) <= gpu.ALLOWED < 540


@pytest.mark.messages
def test_a_machine_without_a_gpu_is_told_so(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([]) == 2
    assert "there is no CUDA device here; try --dry" in capsys.readouterr().err
    assert main(["--dry", "--only", "sped"]) == 2
    assert "--only names sped" in capsys.readouterr().err
