"""Build the notebooks from their sources, and check that the built ones are current.

    python tools/build_notebooks.py build [08 | training_loop ...] [--stale] [--no-execute]
    python tools/build_notebooks.py check

A source is a `py:percent` file. `notebooks/source/NN_name.py` becomes `notebooks/NN_name.ipynb`,
executed. `exercises/source/NN_name.py` becomes `exercises/NN_name.ipynb`, blank, and
`solutions/NN_name.ipynb`, executed; what a learner writes stands between two comment lines:

    ### BEGIN SOLUTION                 -> raise NotImplementedError("exercise 5.1")
    ### BEGIN SOLUTION: the two masks  -> raise NotImplementedError("exercise 5.1: the two masks")
    ### BEGIN SOLUTION stub: x = None  -> x = None
    ### END SOLUTION

Building twice gives the same bytes. Nothing of the machine stays in the file: no timings, no
addresses, no paths, no state of widgets.
"""

import argparse
import ast
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from ppo_lessons.grading.sources import (
    KERNELSPEC,
    LANGUAGE_INFO,
    BuildError,
    assign_ids,
    read_cells,
    split_solution,
)

ROOT = Path(__file__).resolve().parent.parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
NAME_PATTERN = re.compile(r"(?P<number>\d\d)_(?P<name>[a-z][a-z0-9_]*)")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
MACHINE_PATH = re.compile(
    r"(?<![\w.:/-])/(?:home|root|Users|opt|tmp|usr|var|work|mnt|private)/|\b[A-Z]:\\(?:Users|Windows|Program)"
)
# The mechanism of the notebooks: a change there alters no lesson's text.
MECHANISM = frozenset({"__init__", "notebook", "progress", "quizzes"})
# Folders with one module per lesson: importing from one does not mean depending on all.
PER_LESSON = frozenset({"figures", "checks", "widgets", "quizzes"})
# Names that `ppo_lessons/__init__.py` takes from its lessons module.
LESSON_TABLE_NAMES = frozenset(
    {"LESSONS", "ROUTES", "Lesson", "Route", "find_lesson", "lesson_table", "route_table"}
)


@dataclass(frozen=True)
class Target:
    """One notebook to build.

    Args:
        source: the py:percent file, relative to the root, with forward slashes.
        path: the notebook, relative to the root.
        kind: what is made of the source.
    """

    source: str
    path: str
    kind: Literal["lesson", "blank", "solution"]

    @property
    def stem(self) -> str:
        """File name without its ending, as in `08_training_loop`."""
        return Path(self.source).stem

    @property
    def number(self) -> int:
        """Number of the lesson."""
        return int(self.stem[:2])

    @property
    def name(self) -> str:
        """Name of the lesson."""
        return self.stem[3:]

    @property
    def executed(self) -> bool:
        """Whether the notebook is stored with outputs."""
        return self.kind != "blank"


# --- which notebooks -----------------------------------------------------------------------


def find_targets(root: Path) -> list[Target]:
    """List what the sources under a root become.

    Args:
        root: the project's root.

    Returns:
        The targets, lessons first.

    Raises:
        BuildError: if there is no source, or one is named otherwise than `NN_name.py`.
    """
    targets = []
    for source in sorted((root / "notebooks/source").glob("*.py")):
        targets.append(_target(source, "notebooks", "lesson"))
    for source in sorted((root / "exercises/source").glob("*.py")):
        targets.append(_target(source, "exercises", "blank"))
        targets.append(_target(source, "solutions", "solution"))
    if not any(target.kind == "lesson" for target in targets):
        raise BuildError("no source found: expected notebooks/source/NN_name.py")
    return targets


def _target(source: Path, folder: str, kind: Literal["lesson", "blank", "solution"]) -> Target:
    if not NAME_PATTERN.fullmatch(source.stem):
        raise BuildError(f"{source.name}: expected a name like 08_training_loop.py")
    parent = "notebooks" if kind == "lesson" else "exercises"
    return Target(f"{parent}/source/{source.name}", f"{folder}/{source.stem}.ipynb", kind)


def select(targets: Sequence[Target], wanted: Sequence[str]) -> list[Target]:
    """Keep the targets that a number or a name asks for.

    Args:
        targets: all targets.
        wanted: "8", "08", "training_loop" or "08_training_loop"; none means all.

    Returns:
        The targets asked for.

    Raises:
        BuildError: if a word names no target.
    """
    if not wanted:
        return list(targets)
    spellings = {
        target: {str(target.number), target.stem[:2], target.name, target.stem}
        for target in targets
    }
    for word in wanted:
        if not any(word in spelling for spelling in spellings.values()):
            stems = sorted({target.stem for target in targets})
            raise BuildError(f"no source for {word!r}; sources are {', '.join(stems)}")
    return [target for target in targets if spellings[target] & set(wanted)]


# --- from source to cells ------------------------------------------------------------------


def compose(target: Target, root: Path) -> NotebookNode:
    """Turn a source into an unexecuted notebook with fixed ids and metadata.

    Args:
        target: what to build.
        root: the project's root.

    Returns:
        The notebook.

    Raises:
        BuildError: if the source breaks a rule of the builder.
    """
    cells = read_cells((root / target.source).read_text(encoding="utf-8"), name=target.source)
    cells[0].source = f"<!-- built from {target.source}: edit that file -->\n{cells[0].source}"
    if target.kind != "lesson":
        _apply_solutions(cells, target)
    assign_ids(cells, name=target.source)
    about = {"source": target.source, "source_sha256": fingerprint(target, root)}
    metadata = {"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO, "ppo_lessons": about}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    notebook.nbformat_minor = 5
    return notebook


# --- exercises -----------------------------------------------------------------------------


def _apply_solutions(cells: Sequence[NotebookNode], target: Target) -> None:
    """Take the answers out of a blank, or the markers out of a solution."""
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            cell.source, count = split_solution(
                cell.source, number=target.number, count=count, blank=target.kind == "blank"
            )
    if count == 0:
        raise BuildError(f"{target.source}: no ### BEGIN SOLUTION found; an exercise needs one")


# --- what a notebook was built from --------------------------------------------------------


def fingerprint(target: Target, root: Path) -> str:
    """Hash what a notebook's stored outputs depend on.

    Args:
        target: the notebook.
        root: the project's root.

    Returns:
        SHA-256 over the source, the lesson's module, figures, checks and quizzes, and each
        module of `ppo_lessons` that the source imports by name.
    """
    digest = hashlib.sha256()
    for path in dependencies(target, root):
        # Line endings may differ between checkouts; paths are part of what is hashed.
        content = path.read_bytes().replace(b"\r\n", b"\n")
        name = path.relative_to(root).as_posix().encode()
        digest.update(b"%d %s %d\n" % (len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()


def dependencies(target: Target, root: Path) -> list[Path]:
    """List the files that `fingerprint` hashes.

    Args:
        target: the notebook.
        root: the project's root.

    Returns:
        Existing files, the source first.
    """
    package = root / "ppo_lessons"
    source = root / target.source
    modules = {
        *(f"{part}{target.name}" for part in ("", "figures/", "checks/", "quizzes/")),
        *_imported_modules(source.read_text(encoding="utf-8"), package),
    }
    files = {file for module in modules for file in _module_files(package, module)}
    return [source, *sorted(files)]


def _imported_modules(text: str, package: Path) -> Iterator[str]:
    """Yield the modules of the package that a source imports, as paths without ending."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BuildError(f"line {error.lineno} is no Python: {error.msg}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from _inside([alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = list(_inside([node.module, *names]))
            yield from (module for module in found if _module_files(package, module))
            if any(module in LESSON_TABLE_NAMES for module in found):
                yield "lessons"


def _inside(modules: Sequence[str]) -> Iterator[str]:
    for module in modules:
        head, _, rest = module.partition(".")
        if head == "ppo_lessons" and rest and rest.partition(".")[0] not in MECHANISM:
            yield rest.replace(".", "/")


def _module_files(package: Path, module: str) -> list[Path]:
    if (package / f"{module}.py").is_file():
        return [package / f"{module}.py"]
    pattern = "__init__.py" if module in PER_LESSON else "*.py"
    return sorted((package / module).glob(pattern))


# --- executing -----------------------------------------------------------------------------


def execute(notebook: NotebookNode, *, folder: Path, root: Path, timeout: int) -> None:
    """Run a notebook in place, in a kernel that sees this project and no one's settings.

    Args:
        notebook: the notebook; gets its outputs.
        folder: working folder of the kernel.
        root: the project's root, from which the kernel imports.
        timeout: seconds that one cell may take.

    Raises:
        BuildError: if a cell fails or takes too long.
    """
    manager = AsyncKernelManager(kernel_name="python3")
    # Not the kernelspec's interpreter, which a user's own kernelspec may set: this one.
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv = [
        *(sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"),
        "--IPKernelApp.log_level=ERROR",
    ]
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=timeout,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    with tempfile.TemporaryDirectory() as settings:
        # An empty file here keeps matplotlib from reading the user's.
        Path(settings, "matplotlibrc").touch()
        try:
            client.execute(env=_environment(root, Path(settings)))
        except CellExecutionError as error:
            raise BuildError(f"a cell failed:\n{error}") from error
        except (CellTimeoutError, DeadKernelError) as error:
            raise BuildError(f"{type(error).__name__}: {error}") from error


def _environment(root: Path, settings: Path) -> dict[str, str]:
    """Full budgets, no store of progress, no start-up files, no colours, one thread."""
    left_out = ("PPO_LESSONS_HOME", "PPO_LESSONS_FAST", "MPLBACKEND", "PYTHONSTARTUP")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    search = [str(root), os.environ.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, search)),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "IPYTHONDIR": str(settings),
        "MATPLOTLIBRC": str(settings),
        "NO_COLOR": "1",
    }


def clean_outputs(notebook: NotebookNode) -> None:
    """Take out what belongs to one run: views of widgets, metadata, timings.

    Args:
        notebook: an executed notebook; changed in place.
    """
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = LANGUAGE_INFO
    for cell in _code_cells(notebook):
        cell.metadata = {key: cell.metadata[key] for key in ("tags",) if key in cell.metadata}
        cell.outputs = [output for output in map(_clean_output, cell.outputs) if output]


def _clean_output(output: NotebookNode) -> NotebookNode | None:
    if "data" not in output:
        return output
    output.data.pop(WIDGET_VIEW, None)
    alt = output.metadata.get("image/png", {}).get("alt")
    output.metadata = {"image/png": {"alt": alt}} if alt else {}
    return output if output.data else None


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# --- rules for outputs ---------------------------------------------------------------------


def output_problems(notebook: NotebookNode) -> list[str]:
    """Say what must not be stored.

    Args:
        notebook: an executed notebook.

    Returns:
        One sentence per problem, starting with the id of the cell.
    """
    problems = []
    if "widgets" in notebook.metadata:
        problems.append("metadata.widgets is stored")
    cells = _code_cells(notebook)
    if skipped := [cell.id for cell in cells if cell.execution_count is None]:
        problems.append(f"{len(skipped)} of {len(cells)} code cells were not executed")
    for cell in cells:
        for output in cell.outputs:
            problems += [f"{cell.id}: {words}" for words in _problems_of_output(output)]
    return problems


def _problems_of_output(output: NotebookNode) -> Iterator[str]:
    if output.output_type == "error":
        yield f"ends in {output.ename}: catch the error and print its sentence"
    elif output.output_type == "stream":
        if output.name == "stderr":
            yield f"writes to stderr: {output.text.strip()[:200]!r}"
        yield from _problems_of_text(output.text)
    else:
        yield from _problems_of_data(output)


def _problems_of_data(output: NotebookNode) -> Iterator[str]:
    if WIDGET_VIEW in output.data:
        yield "stores the view of a widget"
    plain = output.data.get("text/plain", "")
    alt = output.metadata.get("image/png", {}).get("alt") or plain
    if "image/png" in output.data and not _is_sentence(alt):
        yield f"shows a picture without alternative text ({alt!r}): use show(figure, alt=...)"
    for kind, text in output.data.items():
        if kind.startswith("text/"):
            yield from _problems_of_text(text)


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= 4 and not text.lstrip().startswith("<")


def _problems_of_text(text: str) -> Iterator[str]:
    if match := ADDRESS.search(text):
        yield f"prints an address ({match.group()})"
    if match := MACHINE_PATH.search(text):
        yield f"prints a path of this machine ({text[match.start() :][:40]!r})"
    if text.startswith("✘ not ready"):
        yield f"was built in an environment that is not ready: {text}"


# --- build ---------------------------------------------------------------------------------


def build(target: Target, root: Path, *, run: bool, timeout: int) -> str:
    """Build one notebook.

    Args:
        target: what to build.
        root: the project's root.
        run: whether to execute it; without, it holds no outputs and `check` asks for them.
        timeout: seconds that one cell may take.

    Returns:
        What happened, in one line.

    Raises:
        BuildError: if the source or an output breaks a rule; the file is then left as it was.
    """
    start = time.monotonic()
    notebook = compose(target, root)
    path = root / target.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if target.executed and run:
        execute(notebook, folder=path.parent, root=root, timeout=timeout)
        clean_outputs(notebook)
        if problems := output_problems(notebook):
            raise BuildError("\n  ".join([f"{target.path} was not written:", *problems]))
    nbformat.validate(notebook)
    changed = _replace(path, nbformat.writes(notebook) + "\n")
    return f"{target.path}: {changed} in {time.monotonic() - start:.0f} s"


def _replace(path: Path, text: str) -> str:
    content = text.encode("utf-8")
    if path.exists() and path.read_bytes() == content:
        return "unchanged"
    partial = path.with_suffix(".ipynb.tmp")
    partial.write_bytes(content)
    partial.replace(path)
    return "written"


# --- check ---------------------------------------------------------------------------------


def target_problems(target: Target, root: Path) -> list[str]:
    """Compare a built notebook with its source; executes nothing.

    Args:
        target: the notebook.
        root: the project's root.

    Returns:
        One sentence per problem; none if the notebook is current.
    """
    path = root / target.path
    if not path.exists():
        return ["does not exist"]
    stored = nbformat.read(path, as_version=4)
    expected = compose(target, root)
    problems = _cell_problems(stored, expected)
    problems += _metadata_problems(stored, expected)
    if target.executed:
        return problems + output_problems(stored)
    if any(cell.outputs or cell.execution_count for cell in _code_cells(stored)):
        problems.append("holds outputs, which a blank must not")
    return problems


def _cell_problems(stored: NotebookNode, expected: NotebookNode) -> list[str]:
    problems = []
    if len(stored.cells) != len(expected.cells):
        problems.append(f"has {len(stored.cells)} cells; the source has {len(expected.cells)}")
    for have, want in zip(stored.cells, expected.cells, strict=False):
        parts = ("id", "cell_type", "source", "metadata")
        if wrong := [part for part in parts if have.get(part) != want.get(part)]:
            return [*problems, f"{want.id}: {', '.join(wrong)} differ from the source"]
    return problems


def _metadata_problems(stored: NotebookNode, expected: NotebookNode) -> list[str]:
    have = dict(stored.metadata)
    hashes = [
        dict(about.pop("ppo_lessons", {})).get("source_sha256")
        for about in (dict(have), dict(expected.metadata))
    ]
    problems = []
    if hashes[0] != hashes[1]:
        problems.append("is stale: its source, lesson module, figures or quizzes changed")
    have.pop("ppo_lessons", None)
    if have != {"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO}:
        problems.append(f"has other metadata than the builder writes: {sorted(have)}")
    if stored.metadata.get("ppo_lessons", {}).get("source") != expected.metadata.ppo_lessons.source:
        problems.append("does not name its source in metadata.ppo_lessons")
    return problems


def orphans(targets: Sequence[Target], root: Path) -> list[str]:
    """List notebooks that no source builds.

    Args:
        targets: all targets.
        root: the project's root.

    Returns:
        Paths relative to the root.
    """
    known = {target.path for target in targets}
    found = [
        path.relative_to(root).as_posix()
        for folder in ("notebooks", "exercises", "solutions")
        for path in sorted((root / folder).glob("*.ipynb"))
    ]
    return [path for path in found if path not in known]


def check(root: Path) -> list[str]:
    """Check every notebook under a root; executes nothing.

    Args:
        root: the project's root.

    Returns:
        One line per problem, each with what to run.

    Raises:
        BuildError: if there is no source, or one breaks a rule of the builder.
    """
    targets = find_targets(root)
    lines = []
    for target in targets:
        problems = target_problems(target, root)
        command = f"python tools/build_notebooks.py build {target.stem}"
        lines += [f"{target.path} {problem}" for problem in problems]
        lines += [f"  run: {command}"] if problems else []
    lines += [f"{path} has no source: delete it or add one" for path in orphans(targets, root)]
    return lines


# --- command line --------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the program's name; by default those of the process.

    Returns:
        0 if all went well, else 1.
    """
    options = _parser().parse_args(arguments)
    root = options.root.resolve()
    try:
        if options.verb == "check":
            return _report(check(root))
        targets = select(find_targets(root), options.wanted)
        if options.stale:
            targets = [target for target in targets if target_problems(target, root)]
    except BuildError as error:
        return _report([str(error)])
    return _build_all(targets, root, run=not options.no_execute, timeout=options.timeout)


def _build_all(targets: Sequence[Target], root: Path, *, run: bool, timeout: int) -> int:
    failed = 0
    for target in targets:
        try:
            print(build(target, root, run=run, timeout=timeout), flush=True)
        except BuildError as error:
            failed += 1
            print(f"✘ {target.source}: {error}", flush=True)
    if not targets:
        print("nothing to build: every notebook is current")
    return 1 if failed else 0


def _report(lines: Sequence[str]) -> int:
    for line in lines:
        print(line)
    print("✘ notebooks are not current" if lines else "✔ notebooks are current")
    return 1 if lines else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Build the notebooks, or check the built ones.")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check", help="compare notebooks with their sources; executes nothing")
    verb = verbs.add_parser("build", help="build all notebooks, or those named")
    verb.add_argument("wanted", nargs="*", metavar="NN|name", help="which ones; all by default")
    verb.add_argument("--stale", action="store_true", help="only those that are not current")
    verb.add_argument("--no-execute", action="store_true", help="write cells without outputs")
    verb.add_argument("--timeout", type=int, default=900, help="seconds for one cell")
    return parser


if __name__ == "__main__":
    sys.exit(main())
