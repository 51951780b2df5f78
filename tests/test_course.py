"""The launcher, run as a user runs it, on a toy clone that needs no network: launcher/toy.py."""

import ast
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from launcher import toy

from ppo_lessons import cli

NOBODY = 65534


def need_tool(name: str) -> str:
    """Skip by name without a system tool; where the tests run automatically, fail instead."""
    path = shutil.which(name)
    if not path and os.environ.get("CI") == "true":
        pytest.fail(f"{name} is not installed")
    if not path:
        pytest.skip(f"needs {name}")
    return path


def load_launcher():
    loader = importlib.machinery.SourceFileLoader("course", str(toy.REPOSITORY / "course"))
    spec = importlib.util.spec_from_loader("course", loader)
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


@pytest.fixture(scope="module")
def launcher():
    return load_launcher()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    return toy.write_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def env(wheels, tmp_path):
    return toy.environment(wheels, tmp_path)


@pytest.fixture(scope="module")
def with_virtualenv(tmp_path_factory):
    """What makes the launcher fall back on virtualenv, which is also quicker than venv."""
    tool = Path(sys.executable).parent / "virtualenv"
    if not tool.exists():
        return {}
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    return {**broken_venv(tmp_path_factory.mktemp("shim")), "PATH": path}


def broken_venv(folder: Path) -> dict[str, str]:
    """A Python as Debian splits it: without ensurepip."""
    (folder / "ensurepip.py").write_text("raise ImportError('split off')")
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def first_start(wheels, tmp_path_factory):
    """The first start in a fresh clone whose path has a space, ended with Ctrl-C."""
    root = toy.write_clone(tmp_path_factory.mktemp("with a space") / "my clone")
    env = toy.environment(wheels, root.parent)
    lab = toy.Lab(root, env, [sys.executable])
    lab.seen = json.loads((root / ".course/toy-jupyter.json").read_text()) if lab.url else {}
    lab.code = lab.interrupt()
    lab.env = env
    assert lab.url, lab.output
    return lab


@pytest.fixture
def clone(first_start):
    """The installed clone, with fresh copies and no wheels: whoever installs here fails."""
    shutil.rmtree(first_start.root / "my_work", ignore_errors=True)
    env = dict(first_start.env, PIP_FIND_LINKS="")
    notebooks = {
        path: path.read_bytes()
        for folder in ("notebooks", "exercises")
        for path in (first_start.root / folder).glob("*.ipynb")
    }
    copied = toy.course(first_start.root, env, "refresh")
    assert copied.returncode == 0, copied.stdout
    first_start.offline = env
    yield first_start
    for path, data in notebooks.items():
        path.write_bytes(data)


def fails_with(outcome, *words: str) -> None:
    """An expected failure: three sentences, no traceback, an exit code."""
    assert outcome.returncode == 1, outcome.stdout
    assert "Traceback" not in outcome.stdout
    assert re.search(r"^course: .+\n   why: .+\n   try: .+$", outcome.stdout, re.MULTILINE), (
        outcome.stdout
    )
    for word in words:
        assert word in outcome.stdout


# --------------------------------------------------------------------------- the file and its words


def test_it_parses_on_python_3_8():
    ast.parse((toy.REPOSITORY / "course").read_text(), feature_version=(3, 8))


def test_it_is_executable():
    assert os.access(toy.REPOSITORY / "course", os.X_OK)
    assert os.access(toy.REPOSITORY / ".ci/run", os.X_OK)


def test_it_imports_the_standard_library_alone():
    tree = ast.parse((toy.REPOSITORY / "course").read_text())
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= set(sys.stdlib_module_names)


def test_it_never_runs_sudo_and_names_one_index():
    text = (toy.REPOSITORY / "course").read_text()
    assert '"sudo"' not in text
    assert set(re.findall(r"https?://[^/\"{]+", text)) == {
        "https://download.pytorch.org",
        "http://127.0.0.1:",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "there is no verb 'nonsense'"),
        (["tset"], "did you mean test?\n   try: ./course test\n"),
        (["doctr"], "did you mean doctor?\n   try: ./course doctor\n"),
        (["tain", "--env", "X"], "did you mean train?\n   try: ./course train --env X\n"),
        (["--no-brwser"], "did you mean --no-browser?\n   try: ./course --no-browser\n"),
        (["lab", "--prt=9"], "did you mean --port=9?\n   try: ./course lab --port=9\n"),
        (["--port", "many"], "ports go from 1 to 65535"),
        (["lab", "--browser"], "unrecognized arguments: --browser\n   try: ./course --help\n"),
        (["reset", "99"], "give one of 00, 03\n   try: ./course reset --help\n"),
        (["reset", "8x"], "give one of 00, 03\n   try: ./course reset --help\n"),
        (["reset"], "give one of 00, 03\n   try: ./course reset --help\n"),
    ],
)
def test_a_wrong_command_installs_nothing_and_says_what_exists(words, said, env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    fails_with(toy.course(root, env, *words), said)
    assert not (root / ".venv").exists()


def test_launcher_and_package_offer_the_same_verbs(launcher):
    assert {*launcher.OWN_VERBS} - {"refresh"} == {*cli.COURSE_VERBS}
    for verb in launcher.PASSED_VERBS:
        assert re.search(rf"^  {verb}\b", cli.USAGE, re.MULTILINE)


def test_only_a_teachers_verbs_of_grade_install_the_tools_of_the_tests(launcher):
    for words in ([], ["--help"], ["preview", "04_clip.ipynb"]):
        assert launcher.extras_for("grade", words) == ["course"]
    assert launcher.extras_for("check", ["04"]) == ["course"]
    assert launcher.extras_for("grade", ["run", "files"]) == ["course", "test"]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"], ["reset", "--help"]])
def test_help_installs_nothing(words, env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    outcome = toy.course(root, env, *words)
    assert outcome.returncode == 0
    assert "./course reset NN" in outcome.stdout
    assert not (root / ".venv").exists()
    assert not (root / "my_work").exists()


def test_options_stand_before_or_after_the_verb(launcher):
    for argv in (["--port", "9000", "lab", "--gpu"], ["--gpu", "--port", "9000"]):
        verb, options = launcher.parse(argv)
        assert (verb, options.port, options.gpu) == ("lab", 9000, True)


def test_a_passed_verb_keeps_all_its_words(launcher):
    verb, options = launcher.parse(["train", "--env", "CartPole-v1", "--gpu"])
    assert (verb, options.rest) == ("train", ["--env", "CartPole-v1", "--gpu"])
    assert not options.gpu


# ---------------------------------------------------------------------------------- the first start


def test_the_first_start_says_what_will_come(first_start):
    before_work, _, _ = first_start.output.partition("the environment ...")
    assert "1.3 GB" in before_work
    assert "2-5 minutes" in before_work


def test_the_first_start_opens_the_start_page_with_a_token(first_start):
    page = r"http://127\.0\.0\.1:\d+/lab/tree/my_work/notebooks/00_start_here\.ipynb\?token=\w{48}"
    assert re.fullmatch(page, first_start.url)


def test_the_token_is_not_on_the_command_line(first_start):
    token = first_start.url.partition("token=")[2]
    assert first_start.seen["environment"]["JUPYTER_TOKEN"] == token
    assert not any(token in word for word in first_start.seen["argv"])


def test_jupyterlab_stays_on_this_machine_and_asks_nobody(first_start):
    assert {
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={first_start.root}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--no-browser",
    } <= set(first_start.seen["argv"])


def test_the_kernel_gets_the_courses_settings(first_start):
    seen = first_start.seen["environment"]
    assert seen["OMP_WAIT_POLICY"] == "PASSIVE"
    assert seen["GOMP_SPINCOUNT"] == "0"
    assert seen["PPO_LESSONS_HOME"] == str(first_start.root / "my_work")
    assert "PYTHONPATH" not in seen


def test_after_the_start_it_says_where_lessons_and_exercises_lie(first_start):
    where = "lessons are in my_work/notebooks, exercises in my_work/exercises"
    assert where in first_start.output
    outcome = toy.course(first_start.root, first_start.env, "doctor")
    assert where in outcome.stdout


def test_jupyterlab_does_not_ask_about_news(first_start):
    file = first_start.root / ".venv/etc/jupyter/labconfig/default_setting_overrides.json"
    settings = json.loads(file.read_text())
    assert settings == {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}


def test_settings_of_jupyterlab_are_written_into_our_environment_only(launcher, tmp_path):
    launcher.silence_news(launcher.Place(tmp_path, tmp_path, True))
    assert not list(tmp_path.iterdir())
    launcher.silence_news(launcher.Place(tmp_path, tmp_path, False))
    assert [path.name for path in tmp_path.iterdir()] == [".venv"]


def test_the_test_tools_are_not_installed_for_a_learner(first_start):
    assert not list((first_start.root / ".venv").glob("lib/*/site-packages/pytest"))


def test_ctrl_c_ends_the_server_cleanly(first_start):
    assert first_start.code == 0
    assert first_start.output.rstrip().endswith("stopped")
    assert "Traceback" not in first_start.output
    ended = json.loads((first_start.root / ".course/toy-jupyter.json").read_text())
    assert ended.get("ended")
    with pytest.raises(ProcessLookupError):
        os.kill(ended["pid"], 0)


def test_nothing_is_written_beside_the_ignored_folders(first_start):
    made = {path.name for path in first_start.root.iterdir()}
    original = {path.name for path in toy.write_clone(first_start.root.parent / "other").iterdir()}
    assert made - original <= {".venv", "my_work", ".course"}


# ------------------------------------------------------------------------------------- later starts


def test_a_second_start_installs_nothing(clone):
    log = clone.root / ".course/install.log"
    before = (log.read_text(), (clone.root / ".venv/.course-stamp.json").stat().st_mtime_ns)
    lab = toy.Lab(clone.root, clone.offline, [sys.executable])
    assert lab.interrupt() == 0
    assert "Installing" not in lab.output
    assert lab.url
    after = (log.read_text(), (clone.root / ".venv/.course-stamp.json").stat().st_mtime_ns)
    assert before == after


def test_a_closed_terminal_ends_the_server_too(clone):
    lab = toy.Lab(clone.root, clone.offline, [sys.executable])
    lab.process.send_signal(signal.SIGTERM)
    assert lab.process.wait(30) == 0
    assert json.loads((clone.root / ".course/toy-jupyter.json").read_text()).get("ended")


def test_a_background_job_of_a_script_can_be_interrupted(clone):
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a shell does to such a job
    try:
        lab = toy.Lab(clone.root, clone.offline, [sys.executable])
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert lab.interrupt() == 0


def test_a_port_in_use_is_refused_before_anything_else(clone):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = str(server.server_address[1])
        fails_with(toy.course(clone.root, clone.offline, "--port", port), f"port {port}")


def test_a_server_that_fails_is_quoted(clone):
    env = dict(clone.offline, TOY_JUPYTER_FAILS="1")
    fails_with(toy.course(clone.root, env), "the toy was told to fail", "./course doctor")


def test_the_courses_own_environment_may_be_active(clone):
    python = str(clone.root / ".venv/bin/python")
    outcome = toy.course(clone.root, clone.offline, "refresh", python=python)
    assert outcome.returncode == 0, outcome.stdout


def test_a_passed_verb_reaches_the_package_and_returns_its_code(clone):
    outcome = toy.course(clone.root, clone.offline, "train", "--env", "CartPole-v1", "--gpu")
    assert outcome.returncode == 7
    said = json.loads(outcome.stdout)
    assert said["argv"] == ["course", "train", "--env", "CartPole-v1", "--gpu"]
    assert said["home"] == str(clone.root / "my_work")


def test_the_package_learns_how_the_reader_calls_it(clone, launcher, monkeypatch):
    outcome = toy.course(clone.root, clone.offline, "train")
    assert json.loads(outcome.stdout)["call"] == "./course"
    monkeypatch.setattr(launcher, "WINDOWS", True)
    place = launcher.Place(clone.root, clone.root, False)
    assert launcher.course_environment(place)["PPO_LESSONS_CALL"] == "py course"


def test_doctor_finds_nothing_wrong(clone):
    outcome = toy.course(clone.root, clone.offline, "doctor")
    assert outcome.returncode == 0, outcome.stdout
    assert outcome.stdout.rstrip().endswith("All is well.")
    assert "versions: as tested" in outcome.stdout
    assert "torch: 2.13.0, CPU build" in outcome.stdout


def test_doctor_names_a_version_that_was_not_tested(clone):
    constraints = clone.root / "constraints.txt"
    kept = constraints.read_text()
    constraints.write_text(kept.replace("torch==2.13.0", "torch==2.12.0"))
    outcome = toy.course(clone.root, clone.offline, "doctor")
    constraints.write_text(kept)
    assert outcome.returncode == 1
    assert "torch 2.13.0 (tested: 2.12.0)" in outcome.stdout
    assert "incomplete or older than the course" in outcome.stdout


def test_doctor_without_an_environment_says_how_to_make_one(env, tmp_path):
    outcome = toy.course(toy.write_clone(tmp_path / "clone"), env, "doctor")
    assert outcome.returncode == 1
    assert re.search(r"problem environment: there is none .*\n +try: ./course", outcome.stdout)


# ----------------------------------------------------------------------------- the learner's copies


def test_copies_mirror_the_tree(clone):
    copied = {str(path.relative_to(clone.root)) for path in clone.root.glob("my_work/*/*.ipynb")}
    assert copied == {
        "my_work/notebooks/00_start_here.ipynb",
        "my_work/notebooks/03_clip.ipynb",
        "my_work/exercises/03_clip.ipynb",
    }


def test_links_that_leave_the_copied_tree_are_rewritten(clone):
    text = (clone.root / "my_work/notebooks/00_start_here.ipynb").read_text()
    assert "](../../docs/notation.md#clip)" in text
    assert "](../../notebooks/source/00_start_here.py)" in text
    assert "](03_clip.ipynb)" in text


def code_cells(text: bytes):
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def test_a_copy_is_unrun_and_the_original_keeps_its_outputs(clone):
    original = clone.root / "notebooks/03_clip.ipynb"
    toy.write_notebook(original, "What will it print?", output="the answer is 2")
    before = original.read_bytes()
    assert toy.course(clone.root, clone.offline, "refresh").returncode == 0
    (cell,) = code_cells((clone.root / "my_work/notebooks/03_clip.ipynb").read_bytes())
    assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert (cell["source"], cell["metadata"]) == (["1 + 1"], {"tags": ["kept"]})
    assert original.read_bytes() == before


def test_no_copy_of_the_real_notebooks_gives_an_answer_away(launcher):
    root = toy.REPOSITORY
    place = launcher.Place(root, root, False)
    names = launcher.originals(place)
    if not names:
        pytest.skip("there are no notebooks yet")
    for name in names:
        original, copy = (root / name).read_bytes(), launcher.copy_text(place, name)
        assert all(not cell["outputs"] for cell in code_cells(copy)), name
        assert all(cell["execution_count"] is None for cell in code_cells(copy)), name
        sources = [cell["source"] for cell in code_cells(original)]
        assert [cell["source"] for cell in code_cells(copy)] == sources


def test_a_rerun_original_brings_no_newer_version(clone):
    original = clone.root / "notebooks/03_clip.ipynb"
    toy.write_notebook(original, "words", output="2")
    toy.course(clone.root, clone.offline, "refresh")
    (clone.root / "my_work/notebooks/03_clip.ipynb").write_text("my answer")
    toy.write_notebook(original, "words", output="3")
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert outcome.stdout == "The course is up to date.\n"


def test_an_untouched_copy_that_an_older_launcher_made_with_outputs_is_refreshed(clone, launcher):
    original, copy = (clone.root / f"{f}notebooks/03_clip.ipynb" for f in ("", "my_work/"))
    toy.write_notebook(original, "words", output="the answer is 2")
    shutil.copy(original, copy)
    manifest = clone.root / "my_work/.course.json"
    listed = json.loads(manifest.read_text())
    known = launcher.digest(copy.read_bytes())
    listed["copies"]["notebooks/03_clip.ipynb"] = {"fresh": known, "copy": known}
    manifest.write_text(json.dumps(listed))
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert re.search(r"^refreshed +my_work/notebooks/03_clip.ipynb$", outcome.stdout, re.MULTILINE)
    assert "the answer is 2" not in copy.read_text()


def test_a_notebook_without_links_and_outputs_is_copied_byte_by_byte(clone):
    original = (clone.root / "notebooks/03_clip.ipynb").read_bytes()
    assert (clone.root / "my_work/notebooks/03_clip.ipynb").read_bytes() == original


@pytest.mark.parametrize(
    ("written", "copied"),
    [
        ("![p](<../docs/notation.md>)", "![p](<../../docs/notation.md>)"),
        ('<img src="../docs/notation.md">', '<img src="../../docs/notation.md">'),
        ("[`code`](../docs/notation.md)", "[`code`](../../docs/notation.md)"),
        ("![p](../docs/a%20picture.png)", "![p](../../docs/a%20picture.png)"),
        ("[a]: ../docs/notation.md", "[a]: ../../docs/notation.md"),
        ("`[x](../docs/notation.md)`", "`[x](../docs/notation.md)`"),
        ("```\n[x](../docs/notation.md)\n```", "```\n[x](../docs/notation.md)\n```"),
        ("[x](https://example.org/docs)", "[x](https://example.org/docs)"),
        ("[x](#part) [y](attachment:p.png)", "[x](#part) [y](attachment:p.png)"),
        (r"$\pi[a](s)$", r"$\pi[a](s)$"),
        ("[x](../../elsewhere.md)", "[x](../../elsewhere.md)"),
    ],
)
def test_only_links_to_our_files_are_rewritten(written, copied, launcher, tmp_path):
    root = toy.write_clone(tmp_path)
    place = launcher.Place(root, root, False)
    assert launcher.rewrite_links(place, "notebooks/00_start_here.ipynb", written) == copied


def test_every_link_of_the_real_notebooks_resolves_in_original_and_copy(launcher, tmp_path):
    root = toy.REPOSITORY
    place = launcher.Place(root, root, False)
    names = launcher.originals(place)
    if not names:
        pytest.skip("there are no notebooks yet")
    copies = {f"my_work/{name}" for name in names}
    for name in names:
        original = json.loads((root / name).read_bytes())
        copy = json.loads(launcher.copy_text(place, name))
        for notebook, folder in ((original, root / name), (copy, root / "my_work" / name)):
            for target in file_links(launcher, notebook):
                full = Path(os.path.normpath(folder.parent / target))
                there = full.exists() or str(full.relative_to(root)) in copies
                assert there, f"{name}: {target} does not resolve from {folder.parent}"


def file_links(launcher, notebook):
    """Relative links in the markdown cells of a notebook, without fragments."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = launcher.CODE.sub("", "".join(cell["source"]))
            for match in re.finditer(r"\]\(<?([^\s<>)]+)|<img[^>]+src=[\"']([^\"']+)", text):
                target = (match[1] or match[2]).split("#")[0]
                if target and not re.match(r"[a-z]+:|/", target):
                    yield target.replace("%20", " ")


def test_a_copy_that_the_learner_changed_is_never_overwritten(clone):
    mine = clone.root / "my_work/notebooks/03_clip.ipynb"
    mine.write_text("my answer")
    toy.write_notebook(clone.root / "notebooks/03_clip.ipynb", "newer text")
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert mine.read_text() == "my answer"
    assert re.search(r"^kept +my_work/notebooks/03_clip.ipynb +you changed it; ", outcome.stdout)
    assert "./course reset 03" in outcome.stdout


def test_the_start_names_a_changed_copy_that_has_fallen_behind(clone):
    mine = clone.root / "my_work/notebooks/03_clip.ipynb"
    mine.write_text("my answer")
    toy.write_notebook(clone.root / "notebooks/03_clip.ipynb", "newer text")
    lab = toy.Lab(clone.root, clone.offline, [sys.executable])
    assert lab.interrupt() == 0
    assert mine.read_text() == "my answer"
    assert "A newer version exists of notebooks/03_clip.ipynb" in lab.output


def test_a_changed_copy_of_the_same_version_is_not_mentioned(clone):
    (clone.root / "my_work/notebooks/03_clip.ipynb").write_text("my answer")
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert outcome.stdout == "The course is up to date.\n"


def test_an_untouched_copy_is_refreshed(clone):
    toy.write_notebook(clone.root / "notebooks/03_clip.ipynb", "newer text")
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert "newer text" in (clone.root / "my_work/notebooks/03_clip.ipynb").read_text()
    assert outcome.stdout == (
        "refreshed  my_work/notebooks/03_clip.ipynb\nThe course is up to date.\n"
    )


def save_like_jupyterlab(path: Path, **cell) -> bytes:
    """JupyterLab writes its kernel's version into a notebook that is opened and saved."""
    notebook = json.loads(path.read_text())
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    notebook["cells"][-1].update(cell)
    path.write_text(json.dumps(notebook))
    return path.read_bytes()


def test_a_copy_that_was_only_opened_is_refreshed_when_there_is_a_newer_one(clone):
    mine = clone.root / "my_work/notebooks/03_clip.ipynb"
    saved = save_like_jupyterlab(mine)
    outcome = toy.course(clone.root, clone.offline, "refresh")
    assert (mine.read_bytes(), outcome.stdout) == (saved, "The course is up to date.\n")
    toy.write_notebook(clone.root / "notebooks/03_clip.ipynb", "newer text")
    toy.course(clone.root, clone.offline, "refresh")
    assert "newer text" in mine.read_text()


def test_a_copy_that_was_run_is_kept(clone):
    original, mine = (clone.root / f"{f}notebooks/03_clip.ipynb" for f in ("", "my_work/"))
    toy.write_notebook(original, "words", output="2")
    toy.course(clone.root, clone.offline, "refresh")
    saved = save_like_jupyterlab(mine, execution_count=1)
    toy.write_notebook(original, "newer text", output="2")
    assert "kept " in toy.course(clone.root, clone.offline, "refresh").stdout
    assert mine.read_bytes() == saved


def test_without_the_list_of_copies_every_copy_counts_as_changed(clone):
    mine = clone.root / "my_work/notebooks/03_clip.ipynb"
    mine.write_text("my answer")
    (clone.root / "my_work/.course.json").write_text("damaged")
    assert toy.course(clone.root, clone.offline, "refresh").returncode == 0
    assert mine.read_text() == "my answer"


def test_reset_keeps_the_old_copies(clone):
    for folder in ("notebooks", "exercises"):
        (clone.root / f"my_work/{folder}/03_clip.ipynb").write_text(f"my {folder}")
    for _ in range(2):  # twice in one second must not collide
        outcome = toy.course(clone.root, clone.offline, "reset", "3")
        assert outcome.returncode == 0, outcome.stdout
    old = sorted(clone.root.glob("my_work/.old/03-*/*/*.ipynb"))
    assert len(old) == 4
    assert {path.read_text() for path in old} >= {"my notebooks", "my exercises"}
    fresh = (clone.root / "my_work/exercises/03_clip.ipynb").read_bytes()
    assert fresh == (clone.root / "exercises/03_clip.ipynb").read_bytes()
    assert not list(clone.root.glob("my_work/.old/00-*"))


# ----------------------------------------------------------------- interrupted and damaged installs


@pytest.mark.full
def test_a_killed_install_is_repaired_by_the_next_start(env, with_virtualenv, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    started = subprocess.Popen(
        [sys.executable, str(root / "course"), "refresh"],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for line in started.stdout:
        if "the environment" in line:
            break
    wait_for(lambda: list((root / ".venv").glob("lib/*/site-packages/pip")))
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate()
    assert not (root / ".venv/.course-stamp.json").exists()
    outcome = toy.course(root, {**env, **with_virtualenv}, "refresh")
    assert outcome.returncode == 0, outcome.stdout
    assert (root / "my_work/notebooks/03_clip.ipynb").exists()


def wait_for(condition, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_while_installing_is_no_traceback(env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    lab = subprocess.Popen(
        [sys.executable, str(root / "course"), "refresh"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = ""
    for line in lab.stdout:
        output += line
        if "the environment" in line:
            break
    os.killpg(lab.pid, signal.SIGINT)
    output += lab.communicate()[0]
    assert lab.returncode == 130
    assert "Traceback" not in output
    assert "stopped" in output


@pytest.fixture(scope="module")
def moved_clone(first_start, with_virtualenv):
    """The installed clone, copied to another path and with a damaged pip, then tested there."""
    root = first_start.root.parent / "moved"
    shutil.copytree(first_start.root, root, symlinks=True)
    for pip in (root / ".venv").glob("lib/*/site-packages/pip"):
        shutil.rmtree(pip)
    env = {**first_start.env, **with_virtualenv}
    before = toy.course(root, env, "doctor")
    tested = toy.course(root, env, "test", "--full", "--only", "lint")
    return root, before, tested


def test_doctor_sees_a_moved_or_damaged_environment(moved_clone):
    _, before, _ = moved_clone
    assert before.returncode == 1
    assert "problem environment" in before.stdout


def test_a_moved_or_damaged_environment_is_made_again(moved_clone, first_start):
    root, _, tested = moved_clone
    assert "the environment is damaged or was moved; making it again" in tested.stdout
    assert str(root) in toy.course(root, first_start.env, "train").stdout


def test_the_test_verb_adds_the_test_tools_and_passes_its_words_on(moved_clone):
    _, _, tested = moved_clone
    assert tested.returncode == 0, tested.stdout
    assert "toy tests ['--full', '--only', 'lint'] 9.2.0" in tested.stdout


def test_tests_see_no_settings_of_the_learner(moved_clone):
    _, _, tested = moved_clone
    assert "settings set()" in tested.stdout


def test_after_a_test_neither_verb_installs_again(moved_clone, first_start):
    root, _, _ = moved_clone
    for verb in ("test", "refresh"):
        outcome = toy.course(root, dict(first_start.env, PIP_FIND_LINKS=""), verb)
        assert outcome.returncode == 0, outcome.stdout
        assert "Installing" not in outcome.stdout


def test_a_package_cut_off_while_unpacking_is_not_taken_for_whole(launcher, clone):
    place = launcher.Place(clone.root, clone.root, False)
    assert launcher.is_whole(place)
    (record,) = place.venv.glob("lib/*/site-packages/torch-*.dist-info/RECORD")
    kept = record.read_text()
    record.unlink()
    try:
        assert not launcher.is_whole(place)
    finally:
        record.write_text(kept)


def test_an_environment_made_by_someone_else_is_put_aside(launcher, tmp_path):
    root = toy.write_clone(tmp_path)
    place = launcher.Place(root, root, False)
    place.logs.mkdir()
    (place.venv / "bin").mkdir(parents=True)
    (place.venv / "bin/theirs").write_text("keep me")
    launcher.put_aside(place)
    assert not place.venv.exists()
    assert [p.read_text() for p in place.logs.glob("venv-*/bin/theirs")] == ["keep me"]


def test_two_starts_do_not_install_at_once(launcher, tmp_path):
    place = launcher.Place(tmp_path, tmp_path, False)
    with launcher.only_one(place), pytest.raises(launcher.Stop) as stop, launcher.only_one(place):
        pass
    assert "another ./course is installing here" in str(stop.value)


def test_without_a_network_it_says_so(clone):
    constraints, stamp = clone.root / "constraints.txt", clone.root / ".venv/.course-stamp.json"
    kept = constraints.read_text(), stamp.read_text()
    constraints.write_text(kept[0].replace("torch==2.13.0", "torch==2.12.0"))
    outcome = toy.course(clone.root, clone.offline, "refresh")
    constraints.write_text(kept[0])
    stamp.write_text(kept[1])
    fails_with(
        outcome, "installing torch==2.12.0 failed", "No matching distribution", "the network"
    )


def test_an_unreachable_index_is_named_as_the_reason(launcher):
    tail = ["WARNING: Retrying after NewConnectionError(...)", "ERROR: ResolutionImpossible"]
    assert "index could not be reached" in launcher.pip_reason(tail)
    assert "check the network" in launcher.pip_hint(tail)
    assert "disk space" in launcher.pip_hint(["OSError: No space left on device"])


# ------------------------------------------------------------------------- Pythons and environments


def path_without(*names: str) -> str:
    """PATH without the folders that hold one of these programs."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(f for f in folders if not any((Path(f) / n).exists() for n in names))


def test_without_venv_it_names_the_package_to_install(env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    env = {**env, **broken_venv(tmp_path), "PATH": path_without("virtualenv", "uv")}
    outcome = toy.course(root, env, "refresh")
    fails_with(outcome, "no venv or ensurepip")
    assert re.search(
        r"try: (sudo apt install python3\.1\d-venv|.* --user virtualenv)", outcome.stdout
    )


def test_without_venv_it_uses_virtualenv(launcher, monkeypatch, tmp_path):
    place = launcher.Place(tmp_path, tmp_path, False)
    monkeypatch.setattr(launcher, "quiet", lambda *_, **__: "")
    monkeypatch.setattr(launcher.shutil, "which", lambda name: f"/bin/{name}")
    command = launcher.venv_command(place, "python3.11")
    assert command == ["virtualenv", "-p", "python3.11", str(place.venv)]
    monkeypatch.setattr(launcher.shutil, "which", lambda name: name == "uv")
    assert launcher.venv_command(place, "python3.11")[:3] == ["uv", "venv", "--seed"]


def old_python() -> str:
    """A Python older than the course supports, on PATH or kept by pyenv."""
    kept = Path.home().glob(".pyenv/versions/3.[89].*/bin/python3")
    for path in [*filter(None, map(shutil.which, ("python3.8", "python3.9"))), *map(str, kept)]:
        probe = [path, "-c", "import sys; print(sys.executable)"]
        found = subprocess.run(probe, capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    pytest.skip("needs python3.8 or python3.9")


def test_an_old_python_finds_a_newer_one(env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    shim = tmp_path / "bin"
    shim.mkdir()
    (shim / "python3.13").write_text("#!/bin/sh\nexit 127\n")  # a version manager's stand-in
    (shim / "python3.12").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (shim / "python3.11").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for path in shim.iterdir():
        path.chmod(0o755)
    env["PATH"] = f"{shim}{os.pathsep}/usr/bin{os.pathsep}/bin"
    outcome = toy.course(root, env, "doctor", python=old_python())
    assert "Traceback" not in outcome.stdout
    assert re.match(r"ok      python: /", outcome.stdout)


def test_without_a_fitting_python_it_names_one_command(launcher, monkeypatch):
    monkeypatch.setattr(launcher, "PYTHONS", ((3, 99),))
    with pytest.raises(launcher.Stop) as stop:
        launcher.find_python()
    assert "no Python 3.11, 3.12 or 3.13 was found" in str(stop.value)
    assert "try: " in str(stop.value)


# ---------------------------------------------------------------------------------- builds of torch


@pytest.fixture
def cpu_index():
    """A local stand-in for torch's index of CPU builds."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/cpu/torch/" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/cpu"
        server.shutdown()


@pytest.fixture
def linux_without_gpu(launcher, monkeypatch):
    monkeypatch.setattr(launcher.sys, "platform", "linux")
    monkeypatch.setattr(launcher, "has_gpu", lambda: False)


@pytest.mark.usefixtures("linux_without_gpu")
def test_the_cpu_build_is_taken_where_it_can_be_had(launcher, cpu_index, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_TORCH_INDEX", cpu_index)
    plan = launcher.plan_torch(gpu=False)
    assert (plan.cpu_index, plan.size) == (cpu_index, "about 1.3 GB, 2-5 minutes")
    assert launcher.plan_torch(gpu=True).cpu_index == ""


@pytest.mark.usefixtures("linux_without_gpu")
def test_without_that_index_both_sizes_are_named(launcher, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_TORCH_INDEX", "none")
    plan = launcher.plan_torch(gpu=False)
    assert plan.cpu_index == ""
    assert plan.size.startswith("about 1.3 GB with a CPU build of torch, 4.9 GB if your index only")
    assert plan.gigabytes < 4.9  # a disk that holds the small build is no reason to stop


def test_a_silent_index_is_given_up_after_five_seconds(launcher):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent:
        start = time.monotonic()  # it accepts the connection and never answers
        assert not launcher.answers(f"http://127.0.0.1:{silent.server_address[1]}")
        assert time.monotonic() - start < 6


def test_torch_comes_first_and_nothing_later_names_another_index(launcher, monkeypatch, tmp_path):
    root = toy.write_clone(tmp_path)
    calls = []
    monkeypatch.setattr(launcher, "pip", lambda place, log, title, *words: calls.append(words))
    plan = launcher.TorchPlan("http://127.0.0.1:1/cpu", "", 0, "")
    place = launcher.Place(root, root, False)
    assert launcher.install_torch(place, plan, tmp_path / "log", force=False) == "cpu"
    assert calls == [("torch==2.13.0", "--no-deps", "--index-url", "http://127.0.0.1:1/cpu")]


def test_an_index_without_the_build_falls_back_to_the_configured_one(
    launcher, monkeypatch, tmp_path
):
    root = toy.write_clone(tmp_path)
    calls = []

    def pip(place, log, title, *words):
        calls.append(words)
        if "--index-url" in words:
            raise launcher.Stop("no", "such", "wheel")

    monkeypatch.setattr(launcher, "pip", pip)
    plan = launcher.TorchPlan("http://127.0.0.1:1/cpu", "", 0, "")
    place = launcher.Place(root, root, False)
    assert launcher.install_torch(place, plan, tmp_path / "log", force=False) == "default"
    assert calls[-1] == ("torch==2.13.0", "--no-deps")


def test_a_full_disk_stops_before_the_work(launcher, monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)._replace(free=int(1e9))
    monkeypatch.setattr(launcher.shutil, "disk_usage", lambda _: usage)
    place = launcher.Place(tmp_path, tmp_path, False)
    with pytest.raises(launcher.Stop) as stop:
        launcher.check_disk(place, launcher.TorchPlan("", "about 1.3 GB", 2, ""))
    assert "1.0 GB are free" in str(stop.value)


# ------------------------------------------------------------------------------ read-only checkouts


@pytest.fixture
def shared_folder():
    """A folder that every user of this machine can read; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="read only "))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def python_for(user: int) -> str:
    """A fitting Python with venv that another user can run too."""
    question = "import ensurepip, sys, venv; print((3, 11) <= sys.version_info[:2] <= (3, 13))"
    for path in (sys.executable, *map("/usr/bin/python3.{}".format, (13, 12, 11))):
        try:
            command = [path, "-c", question]
            asked = subprocess.run(command, user=user, group=user, capture_output=True, text=True)
        except OSError:
            continue
        if asked.stdout.strip() == "True":
            return path
    pytest.skip("needs a Python 3.11-3.13 with venv that an unprivileged user can run")


def read_only_clone(folder: Path) -> tuple[Path, dict[str, str]]:
    """A clone that only its owner may write, wheels, and a home for another user."""
    root = toy.write_clone(folder / "checkout")
    home = folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY) if os.geteuid() == 0 else None
    env = toy.environment(toy.write_wheels(folder / "wheels"), home, USER="nobody")
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))
    return root, env


def check_read_only(lab, home: Path, before: set) -> None:
    """Everything lies in the user's data folder, the links reach the checkout."""
    assert lab.url, lab.output
    (data,) = (home / ".local/share/ppo-lessons").iterdir()
    # Not to the group: the sandbox's own process would end before the launcher.
    os.kill(json.loads((data / ".course/toy-jupyter.json").read_text())["launcher"], signal.SIGINT)
    assert lab.process.wait(30) == 0
    assert {".venv", "my_work", ".course", "checkout"} == {path.name for path in data.iterdir()}
    text = (data / "my_work/notebooks/00_start_here.ipynb").read_text()
    assert "](../../checkout/docs/notation.md#clip)" in text
    assert (data / "my_work/notebooks/../../checkout/docs/notation.md").exists()
    assert before == set(lab.root.rglob("*"))


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_a_checkout_of_another_user_is_left_alone(shared_folder):
    python = python_for(NOBODY)
    root, env = read_only_clone(shared_folder)
    before = set(root.rglob("*"))
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    lab = toy.Lab(root, env, [python], **other)
    check_read_only(lab, shared_folder / "home", before)


@pytest.mark.full
def test_a_read_only_file_system_is_left_alone(shared_folder, with_virtualenv):
    bwrap = need_tool("bwrap")
    root, env = read_only_clone(shared_folder)
    env.update(with_virtualenv)
    before = set(root.rglob("*"))
    command = [bwrap, "--dev-bind", "/", "/", "--ro-bind", str(root), str(root), sys.executable]
    check_read_only(toy.Lab(root, env, command), shared_folder / "home", before)


# ---------------------------------------------------------------------------------- update and test


def run_git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def followed(tmp_path):
    """A toy origin and a clone that follows it."""
    need_tool("git")
    origin = toy.write_clone(tmp_path / "origin")
    run_git(origin, "init", "-b", "main")
    run_git(origin, "add", ".")
    run_git(origin, "commit", "-m", "one")
    run_git(tmp_path, "clone", "origin", "followed")
    return origin, tmp_path / "followed"


def test_update_fetches_and_refreshes_the_copies(followed, env):
    origin, follower = followed
    toy.write_notebook(origin / "notebooks/05_critic.ipynb", "new lesson")
    run_git(origin, "add", ".")
    run_git(origin, "commit", "-m", "two")
    outcome = toy.course(follower, env, "update", "--here")  # --here: nothing to install
    assert outcome.returncode == 0, outcome.stdout
    assert "new lesson" in (follower / "my_work/notebooks/05_critic.ipynb").read_text()


def test_update_has_one_line_for_each_copy_that_it_touches_and_no_word_of_git(followed, env):
    origin, follower = followed
    toy.course(follower, env, "refresh", "--here")
    (follower / "my_work/notebooks/03_clip.ipynb").write_text("my answer")
    toy.write_notebook(origin / "notebooks/00_start_here.ipynb", "newer")
    toy.write_notebook(origin / "notebooks/03_clip.ipynb", "newer")
    toy.write_notebook(origin / "exercises/05_critic.ipynb", "new")
    run_git(origin, "add", ".")
    run_git(origin, "commit", "-m", "two")
    assert toy.course(follower, env, "update", "--here").stdout.splitlines() == [
        "refreshed  my_work/notebooks/00_start_here.ipynb",
        "kept       my_work/notebooks/03_clip.ipynb   you changed it; `./course reset 03` puts "
        "yours aside and takes the new one",
        "new        my_work/exercises/05_critic.ipynb",
        "The course is up to date.",
    ]


def test_update_refuses_to_mix_with_local_changes(followed, env):
    _, follower = followed
    (follower / "docs/notation.md").write_text("mine")
    fails_with(toy.course(follower, env, "update"), "docs/notation.md", "git stash")


def test_update_says_why_git_failed(followed, env):
    origin, follower = followed
    shutil.rmtree(origin)
    fails_with(toy.course(follower, env, "update"), "git could not fetch", "git pull --ff-only")


def test_update_of_an_unpacked_archive_says_what_it_is(env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    env = dict(env, GIT_CEILING_DIRECTORIES=str(tmp_path))
    fails_with(toy.course(root, env, "update"), "no git checkout")


def test_update_without_git_says_so(env, tmp_path):
    root = toy.write_clone(tmp_path / "clone")
    env = dict(env, PATH=str(tmp_path))
    fails_with(toy.course(root, env, "update"), "git is not installed")


# ----------------------------------------------------------------------------------- the real thing


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_real_clone_installs_and_opens_jupyterlab(tmp_path):
    need_tool("git")
    root = tmp_path / "a real clone"
    subprocess.run(["git", "clone", "-q", str(toy.REPOSITORY), str(root)], check=True)
    env = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    lab = toy.Lab(root, env, [sys.executable])
    assert lab.url, lab.output
    base, _, query = lab.url.partition("/lab/tree/")
    name = "@jupyterlab/apputils-extension:notification"
    question = f"{base}/lab/api/settings/{name}?{query.partition('?')[2]}"
    with urllib.request.urlopen(question, timeout=30) as reply:
        news = json.load(reply)["schema"]["properties"]["fetchNews"]
    assert news["default"] == "false"  # so that nothing asks over the first cells
    assert lab.interrupt() == 0
    outcome = toy.course(root, env, "doctor")
    assert outcome.returncode == 0, outcome.stdout
    again = toy.Lab(root, env, [sys.executable])
    assert again.interrupt() == 0
    assert "Installing" not in again.output
