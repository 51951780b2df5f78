"""The table of stages behind `./course test`: all run, all are counted, the last line is exact."""

import importlib.util
import re
import sys

import pytest
from launcher.toy import REPOSITORY

NAME = "run_tests"


@pytest.fixture
def stages(monkeypatch, tmp_path):
    """The module, looking at a temporary folder and with stages of our own."""
    spec = importlib.util.spec_from_file_location(NAME, REPOSITORY / "tools/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, NAME, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "good.py").write_text("import os; assert os.environ['OMP_NUM_THREADS'] == '1'")
    (tmp_path / "bad.py").write_text("raise SystemExit(3)")
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    return module


def last_line(capfd) -> str:
    return capfd.readouterr().out.splitlines()[-1]


def test_all_stages_run_and_the_last_line_adds_them_up(stages, monkeypatch, capfd):
    table = (
        stages.Stage("first", "python bad.py"),
        stages.Stage("second", "python good.py"),
        stages.Stage("third", "pytest test_it.py -q -p no:cacheprovider"),
        stages.Stage("fourth", "python good.py", needs="not_there"),
        stages.Stage("fifth", "python bad.py", full=True),
    )
    monkeypatch.setattr(stages, "STAGES", table)
    assert stages.main([]) == 1
    assert last_line(capfd) == "2 passed, 2 failed, 2 skipped"


def test_success_is_exit_code_zero(stages, monkeypatch, capfd):
    monkeypatch.setattr(stages, "STAGES", (stages.Stage("only", "python good.py"),))
    assert stages.main([]) == 0
    assert last_line(capfd) == "1 passed, 0 failed, 0 skipped"


def test_full_adds_stages_and_only_selects_them(stages):
    fast, full = stages.chosen(False, []), stages.chosen(True, [])
    assert set(fast) < set(full)
    assert [stage.name for stage in stages.chosen(False, ["types", "lint"])] == ["lint", "types"]


def test_a_pytest_that_breaks_without_a_report_is_a_failure(stages, tmp_path):
    stage = stages.Stage("broken", "pytest --no-such-option")
    assert stages.run_stage(stage) == stages.Counts(failed=1)


def test_a_pytest_that_collects_nothing_is_a_skip(stages):
    stage = stages.Stage("nothing", "pytest test_it.py -q -k nothing -p no:cacheprovider")
    assert stages.run_stage(stage) == stages.Counts(skipped=1)


def test_a_stage_past_its_time_fails_and_is_ended(stages):
    stage = stages.Stage("slow", "python slow.py", minutes=0.01)
    assert stages.run_stage(stage) == stages.Counts(failed=1)


def test_the_environment_of_a_stage_is_its_own(stages, tmp_path, monkeypatch):
    monkeypatch.delenv("PPO_LESSONS_FAST", raising=False)
    (tmp_path / "fast.py").write_text("import os; assert os.environ['PPO_LESSONS_FAST'] == '1'")
    assert stages.run_stage(stages.Stage("a", "python fast.py")).failed
    assert stages.run_stage(stages.Stage("b", "python fast.py", environment=stages.FAST)).passed


def test_every_stage_has_its_own_name(stages):
    names = [stage.name for stage in stages.STAGES]
    assert len(names) == len(set(names))


def test_every_list_of_files_is_known(stages):
    for stage in stages.STAGES:
        words = re.findall(r"@\w+", f"{stage.command} {stage.needs}")
        assert set(words) <= set(stages.FILES)
