"""No attack earns a point that its answers do not, and no honest student loses one.

Every submission of `tests/submissions` goes the whole way: file, transplant, sandbox, nbval,
verdict. A few always; all of them, and classes of a hundred, in the full run.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from submissions import (
    EXERCISES,
    FIRST,
    OF,
    ROOT,
    STEM,
    TRACE,
    Odd,
    answer_of,
    put_answer,
    solved,
    text,
)
from submissions import host as host_attacks

pytest.importorskip("nbval")
from ppo_lessons.grading.bake import bake
from ppo_lessons.grading.batch import Batch, grade
from ppo_lessons.grading.intake import read_submissions
from ppo_lessons.grading.report import gradebook, write_reports
from ppo_lessons.grading.sandbox import choose
from ppo_lessons.grading.types import Rejected, Result, Submission

SEED = 20_261_130
ALWAYS = (  # ten attacks, and those beside them who must not notice
    "shell_does_nothing",
    "messages_forged",
    "messages_nested_deeply",
    "public_values_by_heart",
    "checks_skipped",
    "solutions_read_from_disk",
    "solved_functions_imported",
    "prints_60_MB",
    "parent_killed",
    "ends_the_process_after_its_answer",
    "solved",
    "prints_everywhere",
    "metadata_stripped",
    "half_a_file",
)
SCORED = ("graded", "timeout")
OTHERS = tuple(name for name in OF if name not in ALWAYS)

pytestmark = pytest.mark.timeout(1800)


# --- one class for the short run, one for the full one -------------------------------------


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> None:
    """Skip where there is none; in CI there is one."""
    from ppo_lessons.grading.sandbox import IsolationMissing

    try:
        choose("auto")
    except IsolationMissing as missing:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI must have a sandbox: {missing}")
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    return bake(STEM, tmp_path_factory.mktemp("private") / "reference", seed=SEED)


class Class:
    """Grades submissions once, however many tests look at the results.

    Args:
        place: an empty folder.
        reference: the one that is graded by.
    """

    def __init__(self, place: Path, reference: Path):
        self.place, self.reference = place, reference
        self.graded: dict[tuple[str, ...], dict[str, Result]] = {}
        self.before = self.after = ""
        self.calls: list[bytes] = []

    def results(self, names: Sequence[str]) -> dict[str, Result]:
        if tuple(names) not in self.graded:
            folder = self.place / f"handed-in-{len(self.graded)}"
            folder.mkdir()
            with Listener(self.calls) as port:
                for name in names:
                    path = OF[name].write(folder)
                    path.write_bytes(host_attacks.network_code(port, path.read_bytes()))
                self.before = tree_hash([folder, self.reference])
                found = grade(self.batch([folder], f"out-{len(self.graded)}"))
                self.after = tree_hash([folder, self.reference])
            # members of a zip file come after a `!`
            by_file = {Path(result.source.partition("!")[0]).name: result for result in found}
            self.graded[tuple(names)] = {name: by_file[OF[name].file] for name in names}
        return self.graded[tuple(names)]

    def batch(self, submissions: Sequence[Path], out: str, **settings) -> Batch:
        settings = {"workers": 2, "chunk": 7} | settings
        place = self.place / out
        return Batch(submissions=submissions, reference=self.reference, out=place, **settings)


class Listener:
    """Listens on the host, so that an attack has something to reach."""

    def __init__(self, calls: list[bytes]):
        self.calls = calls

    def __enter__(self) -> int:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + TRACE)
        self.abstract.listen()
        for each in (self.socket, self.abstract):
            threading.Thread(target=self.answer, args=(each,), daemon=True).start()
        return self.socket.getsockname()[1]

    def answer(self, each: socket.socket) -> None:
        while True:
            try:
                each.accept()[0].close()
            except OSError:
                return
            self.calls.append(b"somebody called")

    def __exit__(self, *error: object) -> None:
        for each in (self.socket, self.abstract):
            each.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for a call
            each.close()


@pytest.fixture(scope="module")
def everybody(tmp_path_factory, reference) -> Class:
    return Class(tmp_path_factory.mktemp("class"), reference)


def tree_hash(folders: Iterable[Path]) -> str:
    files = sorted(path for folder in folders for path in folder.rglob("*"))
    whole = hashlib.sha256()
    for path in files:
        whole.update(str(path).encode())
        whole.update(path.read_bytes() if path.is_file() else b"")
    return whole.hexdigest()


def share(result: Result, exercise: str) -> float:
    question = next(each for each in result.questions if each.id.endswith(f".{exercise}"))
    return question.points / question.max_points


def words_of(result: Result) -> str:
    notes = [note for question in result.questions for note in question.notes]
    return "\n".join([result.reason, *result.notes, *notes])


def in_words(result: Result) -> str:
    shares = {each.id: (each.points, each.error[-200:]) for each in result.questions}
    return f"{result.student}: {result.status} {result.points} {shares}\n{words_of(result)}"


def normal_or_full(names: Iterable[str]) -> list:
    return [
        pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.full], id=name)
        for name in names
    ]


# --- each of them --------------------------------------------------------------------------


@pytest.mark.parametrize("name", normal_or_full(OF))
def test_a_submission_earns_what_its_answers_are_worth(everybody, name):
    odd = OF[name]
    result = everybody.results(ALWAYS if name in ALWAYS else OTHERS)[name]
    assert result.status in odd.statuses, in_words(result)
    if result.status in SCORED:
        for exercise in EXERCISES:
            least, most = odd.share(exercise)
            assert least - 1e-9 <= share(result, exercise) <= most + 1e-9, in_words(result)
    else:
        assert result.points == 0
        assert result.reason
    assert not any("Escaped" in each.error for each in result.questions), in_words(result)
    assert re.search(odd.says, words_of(result), re.IGNORECASE), in_words(result)


@pytest.mark.parametrize(
    "name", normal_or_full(name for name, odd in OF.items() if odd.hostile and odd.runs)
)
def test_an_attack_does_not_fail_by_a_slip_of_its_own(everybody, name):
    result = everybody.results(ALWAYS if name in ALWAYS else OTHERS)[name]
    errors = [question.error for question in result.questions if question.error]
    assert not errors, in_words(result)


@pytest.mark.parametrize("names", normal_or_full(["always"]) + normal_or_full(["others"]))
def test_nothing_outside_of_the_results_changes(everybody, names):
    names = ALWAYS if names == "always" else OTHERS
    everybody.results(names)
    assert everybody.before == everybody.after
    places = [ROOT, ROOT.parent, Path("/"), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]
    places += [Path.home(), everybody.place, Path(tempfile.gettempdir())]
    assert not host_attacks.traces(*places)
    assert not everybody.calls, "the network of the host was reached"
    assert not left_running()


def left_running() -> list[str]:
    """List processes of attacks that outlived their kernel."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if TRACE in words and "pytest" not in words:
            found.append(words)
    return found


def test_the_traces_of_an_attack_would_be_found(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / f"{TRACE}_1").touch()
    before = tree_hash([tmp_path])
    assert host_attacks.traces(tmp_path)
    (tmp_path / "below" / f"{TRACE}_1").write_text("x")
    assert tree_hash([tmp_path]) != before
    code = "import time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, TRACE])
    until = time.monotonic() + 10
    try:
        while not left_running():  # its words are there a moment after its start
            assert time.monotonic() < until
    finally:
        process.kill()
        process.wait()


# --- the oracle ----------------------------------------------------------------------------


def with_other_outputs(reference: Path, copy: Path) -> Path:
    """Copy a reference, and let it expect other text in every check cell."""
    shutil.copytree(reference, copy)
    for file in copy.rglob("manifest.json"):
        manifest = json.loads(file.read_text(encoding="utf-8"))
        for part in manifest["parts"]:
            path = file.with_name(f"{part}.ipynb")
            notebook = json.loads(path.read_text(encoding="utf-8"))
            for cell in notebook["cells"]:
                for output in cell.get("outputs", ()):
                    output["text"] = [f"7 {line}" for line in output["text"]]
            path.write_text(json.dumps(notebook), encoding="utf-8")
            manifest["parts"][part] = hashlib.sha256(path.read_bytes()).hexdigest()
        file.write_text(json.dumps(manifest), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("solved",), id="the solution"),
        pytest.param(
            tuple(
                name
                for name, odd in OF.items()
                if odd.hostile and not odd.slow and odd.statuses == ("graded",)
            ),
            marks=pytest.mark.full,
            id="every quick attack",
        ),
    ],
)
def test_nobody_scores_where_other_text_is_expected(tmp_path, reference, names, monkeypatch):
    # which would find out that the solution, too, fails
    monkeypatch.setattr("ppo_lessons.grading.batch.Session.prove", lambda session: None)
    other = with_other_outputs(reference, tmp_path / "other")
    files = [OF[name].write(tmp_path) for name in names]
    batch = Batch(submissions=files, reference=other, out=tmp_path / "out", workers=2, chunk=10)
    for result in grade(batch):
        assert result.status in SCORED, in_words(result)
        assert result.points == 0, in_words(result)


def test_pages_show_nothing_that_runs_and_nothing_that_is_hidden(tmp_path, everybody, reference):
    results = [*everybody.results(ALWAYS).values()]
    check_pages(results, tmp_path, reference)


@pytest.mark.full
def test_pages_of_all_show_nothing_that_runs_and_nothing_that_is_hidden(
    tmp_path, everybody, reference
):
    results = [*everybody.results(OTHERS).values()]
    check_pages(results, tmp_path, reference)


def check_pages(results: Sequence[Result], folder: Path, reference: Path) -> None:
    hostile = replace(results[0], student="x' onclick='alert(1)", name="=cmd|' /C calc'!A0")
    written = write_reports([*results, hostile], folder)
    secrets = hidden_texts(reference)
    assert secrets
    for path in written:
        page = path.read_text(encoding="utf-8-sig")
        for secret in secrets:
            assert secret not in page, f"{path.name} tells {secret!r}"
        if path.suffix == ".html":
            assert not re.search(
                r"<script|<img src=x|href=.javascript:|[^-]onclick\s*=\s*'", page, re.I
            )
            assert "\x1b" not in page
            assert "\u202e" not in page
        if path.suffix == ".csv":
            cells = re.split(r"[,;\n]", page.replace('"', ""))
            assert not [cell for cell in cells if re.match(r"[=+@]|-\D", cell)]


def hidden_texts(reference: Path) -> set[str]:
    """List lines that hidden checks print, and their seeds."""
    found: set[str] = set()
    for file in reference.rglob("*.ipynb"):
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if seed := re.search(r"seed=(\d+)", source):
                found.add(seed[1])
                words = "".join(line for each in cell["outputs"] for line in each["text"])
                found |= {line for line in words.splitlines() if len(line) > 30}
    return found


# --- files that are none -------------------------------------------------------------------


def test_things_that_are_no_files_are_rows_or_refused_and_none_is_waited_for(tmp_path):
    folder = tmp_path / "handed-in"
    folder.mkdir()
    OF["solved"].write(folder)
    (tmp_path / "secret.ipynb").write_bytes(OF["solved"].make())
    (folder / "link.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (folder / "dangling.ipynb").symlink_to(tmp_path / "nothing.ipynb")
    (folder / "a_folder.ipynb").mkdir()
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "loop").symlink_to(folder)
    ids = [f"clip.{exercise}" for exercise in EXERCISES]
    rows = {
        row.student: row for row in read_submissions([folder], assignment=STEM, question_ids=ids)
    }
    assert isinstance(rows.pop("solved"), Submission)
    assert {"link", "pipe"} <= set(rows)
    assert all(isinstance(row, Rejected) and row.reason for row in rows.values())


@pytest.mark.full
def test_names_made_to_harm_stay_names(tmp_path, reference):
    folder = tmp_path / "handed-in"
    folder.mkdir()
    names = ["=HYPERLINK(1)", "<script>alert(1)<_script>", "-rf", "x\ny", "x;y,z", "\u202ename"]
    names += ["con", "long" * 40, "'quoted\"", "%s{0}", "~", "nul\u00a0"]
    alike = ["a b", "a_b", "A B"]  # one id for three: nobody's work may be lost unnoticed
    for number, name in enumerate([*names, *alike]):
        notebook = solved()
        notebook["cells"][0]["source"] = f"# {number}"
        put_answer(notebook, FIRST, f"# {number}\n" + answer_of(notebook, FIRST))
        (folder / f"{name}.ipynb").write_bytes(json.dumps(notebook).encode())
    batch = Batch(submissions=[folder], reference=reference, out=tmp_path / "out", workers=2)
    results = grade(batch)
    rejected = [result for result in results if result.status == "rejected"]
    assert len(rejected) == 1, [*map(in_words, results)]
    assert all(name in rejected[0].reason for name in alike), rejected[0].reason
    assert len(results) == len(names) + 1, [*map(in_words, results)]
    assert all(each.points == each.max_points for each in results if each not in rejected)
    assert len([*(tmp_path / "out" / "results").iterdir()]) == len(results)
    outside = {path.name for path in tmp_path.iterdir()} - {"handed-in", "out"}
    assert not outside
    check_pages(results, tmp_path / "pages", reference)


# --- a class -------------------------------------------------------------------------------


def handed_in_by(student: str, odd: Odd) -> bytes:
    """Let two students' equal answers differ, so that each is really run."""
    return re.sub(rb"import torch(?=\\[nr])", b"import torch  # " + student.encode(), odd.make())


def graded_by_name(batch: Batch) -> dict[str, Result]:
    return {result.student: replace(result, seconds=0.0) for result in grade(batch)}


def points_of(result: Result) -> list[tuple[str, float]]:
    return [(question.id, question.points) for question in result.questions]


HONEST = [name for name, odd in OF.items() if not odd.hostile and odd.ending == ".ipynb"]
HOSTILE = [name for name, odd in OF.items() if odd.hostile and odd.ending == ".ipynb"]


@pytest.mark.full
def test_seventy_honest_students_do_not_notice_thirty_hostile_ones(tmp_path, reference):
    mixed, alone = tmp_path / "mixed", tmp_path / "alone"
    for folder in (mixed, alone):
        folder.mkdir()
    honest = [(f"s{number:03d}", HONEST[number % len(HONEST)]) for number in range(70)]
    hostile = [(f"s{70 + place:03d}", HOSTILE[place * len(HOSTILE) // 30]) for place in range(30)]
    for student, name in honest:
        (mixed / f"{student}.ipynb").write_bytes(handed_in_by(student, OF[name]))
        OF[name].write(alone)
    for student, name in hostile:
        (mixed / f"{student}{OF[name].ending}").write_bytes(OF[name].make())
    # neighbours in one process: every third is hostile
    before = tree_hash([mixed, reference])
    settings = {"reference": reference, "workers": 2, "chunk": 10}
    among = graded_by_name(Batch(submissions=[mixed], out=tmp_path / "out-1", **settings))
    assert tree_hash([mixed, reference]) == before
    assert not left_running()
    by_themselves = graded_by_name(Batch(submissions=[alone], out=tmp_path / "out-2", **settings))
    assert len(among) == 100
    for student, name in honest:
        mine, other = among[student], by_themselves[OF[name].student]
        assert (mine.status, points_of(mine)) == (other.status, points_of(other)), name
        assert mine.status in OF[name].statuses, (name, in_words(mine))


@pytest.mark.full
def test_workers_and_shards_change_nothing_in_the_gradebook(tmp_path, reference):
    names = [*ALWAYS, "endless_inside", "helper_cell", "reordered"]
    folder = tmp_path / "handed-in"
    folder.mkdir()
    for name in names:
        OF[name].write(folder)
    common = {"submissions": [folder], "reference": reference}
    books = {}
    for workers in (1, 2):
        found = graded_by_name(
            Batch(out=tmp_path / f"workers-{workers}", workers=workers, chunk=4, **common)
        )
        books[f"{workers} workers"] = gradebook([*found.values()])
    found = {}
    for shard in (1, 2, 3):
        found |= graded_by_name(Batch(out=tmp_path / "shards", shard=(shard, 3), **common))
    books["3 shards"] = gradebook([found[name] for name in sorted(found)])
    assert len(found) == len(names)
    assert len(set(books.values())) == 1, books


@pytest.mark.full
def test_a_grader_that_is_killed_goes_on_where_it_stood(tmp_path, reference):
    names = ["solved", "helper_cell", "prints_everywhere", "untouched", "as_a_lambda", "reordered"]
    names += ["daemon", "endless_inside"]
    folder, out = tmp_path / "handed-in", tmp_path / "out"
    folder.mkdir()
    for name in names:
        OF[name].write(folder)
    code = (
        "import sys; from pathlib import Path; from ppo_lessons.grading.batch import Batch, grade;"
        "grade(Batch(submissions=[Path(sys.argv[1])], reference=Path(sys.argv[2]),"
        " out=Path(sys.argv[3]), workers=1, chunk=2))"
    )
    words = [sys.executable, "-c", code, str(folder), str(reference), str(out)]
    process = subprocess.Popen(words, cwd=ROOT)
    kept = wait_for_results(out / "results", 2, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in kept}
    time.sleep(3)  # what it had started ends by itself
    assert not left_running()
    batch = Batch(submissions=[folder], reference=reference, out=out, workers=1, chunk=2)
    resumed = graded_by_name(batch)
    assert set(resumed) == {OF[name].student for name in names}
    at_once = graded_by_name(replace(batch, out=tmp_path / "at-once", workers=2))
    assert gradebook([*resumed.values()]) == gradebook([*at_once.values()])
    cached = {path.name for path in (out / "cache").iterdir()}
    assert len(cached) >= len(before)


def wait_for_results(folder: Path, count: int, process: subprocess.Popen) -> list[Path]:
    over = time.time() + 120
    while time.time() < over and process.poll() is None:
        found = [path for path in folder.glob("*.json")] if folder.is_dir() else []
        if len(found) >= count:
            return found
        time.sleep(0.1)
    pytest.fail("no results came")


# --- personal questions --------------------------------------------------------------------


def with_answers_of(reference: Path, handout: Path, student: str) -> dict:
    """Fill a student's own copy with the reference's solutions."""
    folder = reference / "students" / student
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    notebook = json.loads((handout / student / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    sources = {}
    for part in manifest["parts"]:
        for cell in json.loads((folder / f"{part}.ipynb").read_text(encoding="utf-8"))["cells"]:
            sources.setdefault(cell["id"], "".join(cell["source"]))
    for question in manifest["questions"]:
        for cell in notebook["cells"]:
            if "".join(cell["source"]).startswith(f"# answer: {question['id']}\n"):
                cell["source"] = sources[question["answer"]]
    return notebook


@pytest.mark.full
def test_a_neighbours_answers_fit_all_questions_but_the_personal_ones(tmp_path):
    from ppo_lessons.grading.build import build_assignment

    roster, secret = ["ada", "ben"], b"only for tests, thirty-two bytes"
    build_assignment(STEM, tmp_path / "handout", roster, secret)
    reference = bake(STEM, tmp_path / "private", SEED, roster, secret)
    folder = tmp_path / "handed-in"
    folder.mkdir()
    notebook = with_answers_of(reference, tmp_path / "handout", "ada")
    (folder / "ada.ipynb").write_bytes(json.dumps(notebook).encode())
    (folder / "ben.ipynb").write_bytes(json.dumps(notebook).encode())
    table = tmp_path / "roster.csv"
    table.write_text("id,name\nada,Ada\nben,Ben\n", encoding="utf-8")
    results = graded_by_name(
        Batch(submissions=[folder], reference=reference, out=tmp_path / "out", roster=table)
    )
    assert results["ada"].points == results["ada"].max_points, in_words(results["ada"])
    common = {f"clip.{exercise}" for exercise in EXERCISES}
    for question in results["ben"].questions:
        whole = question.points == question.max_points
        assert whole == (question.id in common), in_words(results["ben"])
        if question.id not in common:
            assert question.points <= 0.2 * question.max_points
    assert "made for ada" in words_of(results["ben"])
    assert "made for" not in words_of(results["ada"])


# --- the list itself -----------------------------------------------------------------------


def test_ten_attacks_are_among_those_that_always_run():
    assert sum(OF[name].hostile for name in ALWAYS) == 10
    assert not any(OF[name].slow for name in ALWAYS)


def test_code_of_submissions_is_what_it_was_meant_to_be():
    assert text("\n    a = 'TRACE'\n") == f"a = '{TRACE}'\n"
    honest = [odd for odd in OF.values() if not odd.hostile]
    assert len(honest) > 40
    assert len(OF) - len(honest) > 70
    assert OF["solved"].share(FIRST) == (1, 1)
