"""The doctor's probes try to get out of the sandbox; where they can, it says so loudly."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("nbval", reason="needs nbval")

from test_grading_run import as_ordinary_user

from ppo_lessons.grading import doctor as module
from ppo_lessons.grading.doctor import Probe, doctor, examine, judged
from ppo_lessons.grading.run import PACKAGE, InfrastructureError
from ppo_lessons.grading.sandbox import IsolationMissing, choose
from ppo_lessons.grading.sandbox.bwrap import NAMESPACES, Bubblewrap
from ppo_lessons.grading.sandbox.none import NoIsolation
from ppo_lessons.grading.types import CellOutcome


@pytest.fixture(scope="module")
def sandbox():
    """A sandbox that works here; CI must have it."""
    try:
        return choose("bwrap")
    except IsolationMissing as missing:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"{missing}, and CI must have it")
        pytest.skip(f"needs bubblewrap: {missing}")


class Leaky(Bubblewrap):
    """Has holes: the network, a secret, a folder of the host, a variable, many processes."""

    def command(self, places, limits):
        words = super().command(places, limits)
        folder = places.secret[0].parent
        start = len(words) - 1 - words[::-1].index("--unshare-user") - 1  # of the inner one
        inner = [word for word in words[start:] if word != "--unshare-net"]
        holes = ["--setenv", "GRADER_TOKEN", "x"]
        for name, way in (("secret", "--ro-bind"), ("open", "--bind"), ("socket", "--bind")):
            holes += [way, str(folder / name), str(folder / name)]
        shown = len(inner) - 1 - inner[::-1].index("--remount-ro")  # the last: nothing covers it
        outer = words[:start]
        if outer:  # root's outer sandbox must show the holes to the inner one
            end = outer.index("--")
            outer[end:end] = [each for each in holes if each not in holes[:3]]
        return [*outer, *inner[:shown], *holes, *inner[shown:]]


def test_no_probe_gets_out_of_the_sandbox(sandbox):
    found = examine(sandbox)
    assert [each for each in found if not each.holds] == []
    assert len(found) >= 14


@pytest.mark.full
def test_each_hole_is_found(sandbox):
    broken = {each.name for each in examine(Leaky()) if not each.holds}
    assert broken == {"network", "reading the reference", "writing outside", "environment"}


@pytest.mark.full
def test_no_probe_gets_out_of_the_sandbox_of_an_ordinary_user(sandbox):
    code = "from ppo_lessons.grading.doctor import doctor; raise SystemExit(doctor('bwrap'))"
    words = as_ordinary_user([sys.executable, "-c", code])
    result = subprocess.run(words, cwd=PACKAGE, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        ([Probe("network", True, "refused")], 0, "All 1 attempts were stopped by bwrap."),
        (
            [Probe("network", True, "refused"), Probe("a full disk", False, "wrote 99 MiB")],
            1,
            "DO NOT GRADE HERE with --isolation bwrap.\nGot through: a full disk.",
        ),
        (InfrastructureError("no kernel"), 2, "Nothing can be graded here: no kernel"),
    ],
)
def test_the_doctor_is_loud_when_a_probe_gets_through(monkeypatch, capsys, found, status, said):
    def examined(isolation):
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(module, "choose", lambda name: Bubblewrap())
    monkeypatch.setattr(module, "examine", examined)
    assert doctor() == status
    assert said in capsys.readouterr().out


def test_without_isolation_no_probe_is_run(monkeypatch, capsys):
    monkeypatch.setattr(module, "examine", None)
    assert doctor(NoIsolation.name) == 1
    assert "keeps nothing apart" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcome", "holds"),
    [
        (CellOutcome(state="passed", said="[]\n"), True),
        (CellOutcome(state="passed", said='["reached it"]\n'), False),
        (CellOutcome(state="passed", said=""), False),
        (CellOutcome(state="failed", said="The kernel died."), False),
    ],
)
def test_a_probe_holds_only_if_it_said_that_it_managed_nothing(outcome, holds):
    assert judged("network", outcome).holds is holds


def test_the_sandbox_shuts_what_linux_can_shut():
    shut = {word for word in NAMESPACES if word.startswith("--unshare")}
    assert {f"--unshare-{each}" for each in ("user", "pid", "net", "ipc", "uts")} <= shut
