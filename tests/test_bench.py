import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ppo_lessons import cli
from ppo_lessons.bench import cli as bench
from ppo_lessons.bench import measure as measuring
from ppo_lessons.bench.measure import Failed, Missing, Run, core, measure
from ppo_lessons.bench.results import SCHEMA, Results, busy, medians, ratio
from ppo_lessons.bench.sections import (
    PEERS,
    Comparison,
    Contender,
    Places,
    Section,
    sections,
)
from ppo_lessons.bench.table import columns, tables, written

ROOT = Path(__file__).resolve().parents[1]
SPEED = Section(
    name="train",
    title="training",
    unit="steps per CPU second",
    contenders=(
        Contender("ours", Run("ours", "speed")),
        Contender("theirs", Run("sb3", "speed"), peer="sb3"),
        Contender("others", Run("cleanrl", "speed"), peer="cleanrl"),
    ),
    comparisons=(
        Comparison("ours", ("theirs",), target=4, floor=2),
        Comparison("ours", ("theirs", "others")),
        Comparison("ours", ("theirs",), "memory", target=0.9, floor=1.1),
    ),
)
RACE = Section(
    name="solve",
    title="race",
    unit="CPU seconds",
    contenders=(
        Contender("ours", Run("ours", "solve"), seeded=True),
        Contender("theirs", Run("sb3", "solve"), seeded=True),
        Contender("others", Run("cleanrl", "solve"), seeded=True),
    ),
    comparisons=(Comparison("ours", ("theirs", "others"), "seconds", target=3, floor=2),),
)


def took(env_steps, cpu, peak=300.0, wall=None, **more):
    wall = cpu if wall is None else wall
    return {
        "env_steps": env_steps, "cpu_seconds": cpu, "wall_seconds": wall, "peak_mib": peak,
        "core": 0, **more,
    }  # fmt: skip


def fake(run):
    """Ours is four times as fast as anybody; a race takes as many seconds as its seed says."""
    if run.function == "solve":
        return took(2048, float(run.options["seed"]), solved=True)
    return took(1000, 1.0 if run.module == "ours" else 4.0, versions={run.module: "1.0"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def peers(tmp_path):
    """Files where peers are looked for; nothing runs them."""
    for name in ("clean/cleanrl/ppo.py", "pure/purejaxrl/ppo.py", "env/bin/python"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("", encoding="utf-8")
    return [
        *("--cleanrl", str(tmp_path / "clean")),
        *("--purejaxrl", str(tmp_path / "pure"), "--python", str(tmp_path / "env")),
    ]


def read(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


# --- ratios --------------------------------------------------------------------------------


def test_a_speed_ratio_is_the_median_of_the_rounds_not_the_ratio_of_medians():
    ours = [took(100, 1), took(100, 10), took(100, 2)]  # 100, 10, 50 steps a second
    theirs = [took(100, 4), took(100, 20), took(100, 10)]  # 25, 5, 10: 4, 2, 5 times as slow
    row = ratio(SPEED, SPEED.comparisons[0], {"ours": ours, "theirs": theirs})
    assert (row["median"], row["lowest"], row["highest"]) == (4, 2, 5)
    assert row["reached"] == "target"


def test_ours_is_compared_with_the_best_peer_of_each_round():
    readings = {
        "ours": [took(60, 1), took(60, 1)],
        "theirs": [took(30, 1), took(10, 1)],
        "others": [took(20, 1), took(20, 1)],
    }
    row = ratio(SPEED, SPEED.comparisons[1], readings)
    assert (row["lowest"], row["highest"], row["reached"]) == (2, 3, None)


def test_a_peer_that_was_not_measured_does_not_count():
    readings = {"ours": [took(60, 1)], "others": [took(20, 1)]}
    assert ratio(SPEED, SPEED.comparisons[1], readings)["median"] == 3
    assert ratio(SPEED, SPEED.comparisons[0], readings) is None
    assert ratio(SPEED, SPEED.comparisons[0], {"theirs": [took(20, 1)]}) is None


@pytest.mark.parametrize(
    ("peak", "words"), [(250.0, "target"), (300.0, "floor"), (400.0, "below the floor")]
)
def test_of_memory_less_is_better(peak, words):
    readings = {"ours": [took(1, 1, peak)], "theirs": [took(1, 1, 300.0)]}
    row = ratio(SPEED, SPEED.comparisons[2], readings)
    assert row["median"] == pytest.approx(peak / 300, abs=5e-3)  # three digits
    assert row["reached"] == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(1.0, "target"), (1.6, "floor"), (2.5, "below the floor")]
)
def test_a_race_is_compared_by_medians_with_the_better_peer(seconds, words):
    readings = {
        "ours": [took(9, seconds, solved=True)] * 3,
        "theirs": [took(9, second, solved=True) for second in (2.0, 4.0, 90.0)],
        "others": [took(9, 5.0, solved=True)] * 3,
    }
    row = ratio(RACE, RACE.comparisons[0], readings)
    assert row["median"] == pytest.approx(4.0 / seconds, rel=1e-2)
    assert row["reached"] == words


def test_who_does_not_solve_every_seed_is_in_no_ratio():
    won, lost = took(9, 2.0, solved=True), took(9, 1.0, solved=False)
    readings = {"ours": [won, won], "theirs": [won, lost], "others": [took(9, 8.0, solved=True)]}
    assert ratio(RACE, RACE.comparisons[0], readings)["median"] == 4  # of the others
    assert ratio(RACE, RACE.comparisons[0], readings | {"ours": [won, lost]}) is None
    row = medians(RACE, readings["theirs"])
    assert (row["solved"], row["seeds"], row["median"]) == (1, 2, 2.0)
    assert medians(RACE, [lost])["median"] is None


def test_wall_seconds_count_where_a_device_works():
    gpu = sections(Places())[-1]
    row = medians(gpu, [took(100, cpu=1.0, wall=50.0)])
    assert (gpu.gpu, row["median"]) == (True, 2)


# --- what is compared ----------------------------------------------------------------------


def test_every_comparison_is_between_contenders_of_its_section():
    for section in sections(Places()):
        names = [contender.name for contender in section.contenders]
        assert len(set(names)) == len(names)
        for each in section.comparisons:
            assert {each.ours, *each.peers} <= set(names)
            assert each.ours.startswith(("ours", "compute_gae", "gae_by_scan"))
        assert {contender.peer for contender in section.contenders} <= {"", *PEERS}


def test_every_run_is_a_function_that_takes_its_options():
    import inspect
    from importlib import import_module

    for section in sections(Places(Path("a"), Path("b"), Path("c"))):
        for contender in section.contenders:
            run = bench.turn(contender, 1, quick=False)
            function = getattr(import_module(f"ppo_lessons.bench.{run.module}"), run.function)
            inspect.signature(function).bind(**run.options)
            assert set(contender.quick or {}) <= set(run.options)


def test_the_goals_are_those_that_were_set():
    goals = {
        (each.name, each.target, each.floor)
        for section in sections(Places())
        for each in section.comparisons
        if each.target is not None
    }
    assert {
        ("ours, 64 × 32 / SB3, 4 × 128", 7.5, 5),
        ("ours, 64 × 32 / CleanRL, 4 × 128", 8, 5),
        ("ours, 1,024 × 32 / CleanRL, 4 × 128", 15, 12),
        ("ours, 4 × 128 / CleanRL, 4 × 128", 1.3, 1.0),
        ("ours, 1,024 × 32 / PureJaxRL, 64 × 32", 0.6, 0.45),
        ("ours, torch, 256 / gymnasium SyncVectorEnv, 256", 14, 8),
        ("compute_gae, 128 × 64 / as the formula reads, 128 × 64", 6, 3),
    } <= goals


# --- a run of the verb, with a measure that is not real ------------------------------------


def test_contenders_take_turns_and_everything_is_in_the_json(folder, peers, capsys):
    order = []

    def watched(run):
        order.append((run.module, run.function, run.options.get("num_envs")))
        return fake(run)

    assert bench.main([*peers, "--only", "train", "--out", "x.json"], measure=watched) == 0
    assert len(order) == 3 * len(set(order)) == 21
    assert order[:7] == order[7:14] == order[14:]
    content = read("x.json")
    assert content["kind"] == "ppo-lessons bench"
    assert content["schema"] == SCHEMA
    assert content["complete"] is True
    assert content["peers"] == {
        "ours": "1.0", "sb3": "1.0", "cleanrl": "1.0", "purejaxrl": "1.0"
    }  # fmt: skip
    assert {"torch", "processor", "cores", "load_before", "load_after"} <= set(content["machine"])
    train = content["sections"]["train"]
    assert len(train["readings"]["SB3, 4 × 128"]) == 3
    assert train["medians"]["ours, 64 × 32"]["median"] == 1000
    assert {row["name"]: row["median"] for row in train["ratios"]}[
        "ours, 64 × 32 / SB3, 4 × 128"
    ] == 4
    assert train["not_measured"] == {}
    out = capsys.readouterr().out
    assert "below the floor" in out
    assert "PureJaxRL, 64 × 32" in out


def test_races_run_five_seeds_whatever_the_rounds(folder, peers):
    assert bench.main([*peers, "--only", "solve", "--rounds", "1"], measure=fake) == 0
    rows = read("bench.json")["sections"]["solve"]["readings"]["CleanRL"]
    assert [row["cpu_seconds"] for row in rows] == [1, 2, 3, 4, 5]


def test_the_json_tells_no_path_of_this_machine(folder, peers):
    bench.main([*peers, "--only", "train", "solve", "--out", "x.json"], measure=fake)
    assert str(folder) not in Path("x.json").read_text(encoding="utf-8")
    assert read("x.json")["command"].startswith("ppo-lessons bench --rounds 3 --cleanrl PATH")


def test_without_a_wish_no_earlier_result_is_overwritten(folder):
    bench.main(["--only", "gae", "--rounds", "1"], measure=fake)
    bench.main(["--only", "gae", "--rounds", "2"], measure=fake)
    assert read("bench.json")["rounds"] == 1
    assert read("bench-2.json")["rounds"] == 2


def test_peers_that_are_not_there_are_listed_with_how_to_get_them(folder, capsys):
    def no_sb3(run):
        if run.module == "sb3":
            raise Missing("stable_baselines3")
        return fake(run)

    assert bench.main(["--only", "train", "--out", "x.json"], measure=no_sb3) == 0
    left_out = read("x.json")["sections"]["train"]["not_measured"]
    assert set(left_out) == {
        *("SB3, 4 × 128", "SB3, 64 × 32", "CleanRL, 4 × 128", "PureJaxRL, 64 × 32")
    }
    assert "pip install -e '.[bench]'" in left_out["SB3, 4 × 128"]
    assert "--cleanrl PATH" in left_out["CleanRL, 4 × 128"]
    assert "--purejaxrl PATH --python" in left_out["PureJaxRL, 64 × 32"]
    assert "not measured: CleanRL, 4 × 128" in capsys.readouterr().out


def test_a_run_that_breaks_off_ends_neither_the_others_nor_what_it_had(folder, peers):
    turns = []

    def breaks(run):
        if run.module == "cleanrl":
            turns.append(run)
            if len(turns) == 2:
                raise Failed("it fell over")
        return fake(run)

    assert bench.main([*peers, "--only", "train", "--out", "x.json"], measure=breaks) == 1
    train = read("x.json")["sections"]["train"]
    assert len(turns) == 2
    assert len(train["readings"]["CleanRL, 4 × 128"]) == 1
    assert len(train["readings"]["SB3, 4 × 128"]) == 3
    assert train["not_measured"]["CleanRL, 4 × 128"] == "broke off in round 2: it fell over"


def test_ctrl_c_keeps_what_was_measured(folder, peers, capsys):
    turns = []

    def interrupted(run):
        turns.append(run)
        if len(turns) == 3:
            raise KeyboardInterrupt
        return fake(run)

    assert bench.main([*peers, "--only", "train", "--out", "x.json"], measure=interrupted) == 130
    content = read("x.json")
    assert content["complete"] is False
    assert "the run was not finished" in content["not_to_be_quoted_because"]
    assert len(content["sections"]["train"]["readings"]) == 2
    assert "stopped; what was measured is in x.json" in capsys.readouterr().out


def test_the_json_is_whole_after_every_reading(folder, peers):
    seen = []

    def reading(run):
        seen.append(read("x.json"))
        return fake(run)

    bench.main([*peers, "--only", "train", "--rounds", "1", "--out", "x.json"], measure=reading)
    counts = [len(each["sections"].get("train", {}).get("readings", {})) for each in seen]
    assert counts == [0, 1, 2, 3, 4, 5, 6]


def test_without_a_gpu_the_gpu_is_not_measured(folder, monkeypatch):
    monkeypatch.setattr(bench, "gpu_there", lambda: False)
    assert bench.main(["--only", "gpu", "--out", "x.json"], measure=fake) == 0
    gpu = read("x.json")["sections"]["gpu"]
    assert (gpu["not_measured"], gpu["readings"]) == ({"GPU": "no GPU here"}, {})


def test_a_quick_run_is_one_short_round_without_races_and_says_so(folder, peers, capsys):
    options = []

    def watched(run):
        options.append(run.options)
        return fake(run)

    assert bench.main([*peers, "--quick", "--out", "x.json"], measure=watched) == 0
    content = read("x.json")
    assert "solve" not in content["sections"]
    assert all(len(rows) == 1 for rows in content["sections"]["train"]["readings"].values())
    assert max(each.get("iterations", 0) for each in options) <= 32
    assert max(each.get("seconds", 0) for each in options) < 1
    assert "too short to quote" in capsys.readouterr().out
    assert "--quick runs are too short" in content["not_to_be_quoted_because"]


def test_fewer_than_three_rounds_are_not_to_be_quoted(folder, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    for rounds, count in ((2, 1), (3, 0)):
        results = Results(folder / "x.json", command="", quick=False, rounds=rounds)
        results.complete = True
        assert len(results.doubts()) == count


def test_a_busy_machine_is_warned_about(folder, monkeypatch, capsys):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    bench.main(["--only", "gae", "--out", "x.json"], measure=fake)
    assert "warning: the load was 1.5 on 2 cores" in capsys.readouterr().err
    assert any("load" in reason for reason in read("x.json")["not_to_be_quoted_because"])
    assert busy({"load_before": 1.0, "cores": 2}) == ""
    assert busy({"load_before": None, "cores": 2}) == ""


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.messages
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rounds", "0"], "--rounds is 0; expected at least 1"),
        (["--cleanrl", "nowhere"], "--cleanrl is nowhere, which is no file; expected a file"),
        (["--purejaxrl", "nowhere"], "--python is missing; expected both"),
        (["--python", "python"], "--purejaxrl is missing; expected both"),
        (["--purejaxrl", ".", "--python", "."], "a folder that holds purejaxrl/ppo.py"),
        (["--out", "nowhere/x.json"], "--out is nowhere/x.json; expected a file in a folder"),
        (["--out", "."], "--out is .; expected a file"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(folder, capsys, arguments, words):
    assert cli.main(["bench", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.messages
def test_an_unknown_section_is_answered_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["bench", "--only", "training"])
    assert stopped.value.code == 2
    assert "choose from" in capsys.readouterr().err


def test_a_file_or_its_repository_is_found(peers, tmp_path):
    file = tmp_path / "clean/cleanrl/ppo.py"
    for given in (file, file.parent, file.parent.parent):
        assert bench.find("--cleanrl", given, ("", "ppo.py", "cleanrl/ppo.py")) == file
    package = tmp_path / "pure/purejaxrl"
    for given in (package, package.parent, package / "ppo.py"):
        assert bench.find_package(given) == package.parent


# --- real runs, tiny -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "options", "steps"),
    [
        ("speed", {"num_envs": 8, "num_steps": 4, "iterations": 3, "batched": True}, 64),
        ("speed", {"num_envs": 2, "num_steps": 8, "iterations": 2, "batched": False}, 16),
        ("solve", {"preset": "quick", "batched": True, "seed": 1, "total_steps": 2048}, 2048),
        (
            "on_device",
            {"device": "cpu", "graphs": False, "num_envs": 8, "num_steps": 4, "iterations": 3},
            64,
        ),
        ("envs", {"num_envs": 4, "seconds": 0.001}, 40),
        ("gym_envs", {"num_envs": 2, "kind": "sync", "seconds": 0.001}, 20),
        ("gae", {"function": "compute_gae", "num_steps": 4, "num_envs": 2, "seconds": 0.001}, 80),
    ],
)
def test_a_run_of_ours_counts_its_steps(function, options, steps):
    from ppo_lessons.bench import ours

    reading = getattr(ours, function)(**options)
    short = function in ("envs", "gym_envs", "gae")  # these go on until their time is over
    assert reading["env_steps"] % steps == 0 if short else reading["env_steps"] == steps
    assert reading["cpu_seconds"] > 0
    assert reading.get("solved", False) is False


def test_a_run_of_ours_in_a_process_of_its_own_tells_memory_and_core():
    options = {"function": "compute_gae", "num_steps": 4, "num_envs": 2, "seconds": 0.001}
    reading = measure(Run("ours", "gae", options))
    assert reading["env_steps"] > 0
    assert 50 < reading["peak_mib"] < 1000
    assert reading["core"] == core()


def small(tmp_path, text):
    path = tmp_path / "small.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def run_small(tmp_path, monkeypatch):
    """Write a module, and run a function of it as a contender."""

    def run(text, **more):
        monkeypatch.setattr(measuring, "FOLDER", small(tmp_path, text).parent)
        return measure(Run("small", "speed", **more))

    return run


def test_a_run_sees_one_thread_one_core_and_no_gpu(run_small):
    reading = run_small(
        "import os\ndef speed():\n"
        "    print('what a peer prints is no reading')\n"
        "    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1\n"
        "    return {'threads': os.environ['OMP_NUM_THREADS'], 'cores': cores,\n"
        "            'gpu': os.environ['CUDA_VISIBLE_DEVICES']}\n"
    )
    assert (reading["threads"], reading["cores"], reading["gpu"]) == ("1", 1, "")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_peak_memory_is_that_of_the_run_alone(run_small):
    ballast = bytearray(200 * 2**20)  # what this process holds is not handed on
    reading = run_small("def speed():\n    return {}\n", python=sys.executable)
    assert len(ballast) / 2**20 > reading["peak_mib"]


def test_another_python_gets_nothing_of_ours(run_small, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    reading = run_small(
        "import os, sys\ndef speed():\n    return {'ours': 'ppo_lessons' in sys.modules,\n"
        "            'path': os.environ.get('PYTHONPATH')}\n",
        python=sys.executable,
    )
    assert (reading["ours"], reading["path"]) == (False, None)


def test_a_missing_module_is_named_and_any_other_error_is_told(run_small):
    with pytest.raises(Missing, match="not_there"):
        run_small("def speed():\n    import not_there\n")
    with pytest.raises(Failed, match="ended with status 1: ValueError: five"):
        run_small("def speed():\n    raise ValueError('five')\n")
    with pytest.raises(Failed, match="cannot be started"):
        run_small("def speed():\n    pass\n", python="/nowhere/python")


def test_a_run_that_never_ends_is_ended(run_small, monkeypatch):
    monkeypatch.setattr(measuring, "TIME_LIMIT", 0.5)
    with pytest.raises(Failed, match="longer than"):
        run_small("import time\ndef speed():\n    time.sleep(600)\n")


@pytest.mark.full
def test_ctrl_c_ends_the_run_and_keeps_the_json(folder):
    code = "import sys; from ppo_lessons.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "bench", "--only", "gae", "--out", "x.json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("gae"):  # the first reading
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "Traceback" not in out
    content = read("x.json")
    assert content["complete"] is False
    assert content["sections"]["gae"]["readings"]


# --- the clock -----------------------------------------------------------------------------


def test_the_first_iteration_and_what_is_stopped_do_not_count(monkeypatch):
    from ppo_lessons.bench.clock import Clock

    now = [0.0]
    monkeypatch.setattr(Clock, "_now", staticmethod(lambda: (now[0], 2 * now[0])))
    clock = Clock()
    clock.mark(0)
    now[0] = 5.0
    clock.mark(10)
    now[0] = 6.0
    with clock.stopped():
        now[0] = 16.0
    now[0] = 17.0
    clock.mark(30)
    assert clock.speed() == {"env_steps": 20, "cpu_seconds": 2.0, "wall_seconds": 4.0}


def test_one_iteration_is_none():
    from ppo_lessons.bench.clock import Clock

    clock = Clock()
    clock.mark(0)
    clock.mark(10)
    with pytest.raises(ValueError, match="expected at least 2"):
        clock.speed()


def test_a_race_ends_with_the_first_test_that_is_passed():
    import torch

    from ppo_lessons.bench.clock import EVERY, Race

    race = Race()

    def balanced(observations):
        return (observations[:, 2] + 0.3 * observations[:, 3] > 0).long()

    def falling(observations):
        return torch.zeros(len(observations), dtype=torch.int64)

    assert not race.passed(EVERY, falling)
    assert not race.passed(EVERY + 1, balanced)  # it is not time for a test
    assert race.passed(2 * EVERY, balanced)
    reading = race.reading()
    assert (reading["env_steps"], reading["solved"]) == (2 * EVERY, True)


# --- tables --------------------------------------------------------------------------------


def test_numbers_are_written_for_people():
    assert [written(x) for x in (None, 45123.4, 7.538, 0.012345)] == [
        "–",
        "45,123",
        "7.54",
        "0.0123",
    ]


def test_columns_are_aligned():
    assert columns(["a", "b"], [["long", "1"], ["x", "1,000"]]) == [
        "  a         b", "  long      1", "  x     1,000",
    ]  # fmt: skip


def test_the_table_says_what_was_not_measured_and_what_not_to_quote(folder):
    results = Results(folder / "x.json", command="", quick=True, rounds=1)
    results.begin(SPEED)
    results.add(SPEED, "ours", took(100, 1))
    results.leave_out(SPEED, "theirs", "not given: ask for it")
    text = tables(results.content())
    assert "not measured: theirs: not given: ask for it" in text
    assert "Do not quote these numbers: --quick runs are too short" in text
