"""The shape of the tree: which files there are, who imports whom, what a docstring holds."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ppo_lessons import LESSONS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ppo_lessons"
LESSON_MODULES = tuple(lesson.name for lesson in LESSONS if lesson.name != "start_here")

# Imports run one way: a module imports from the layers above its own, and from its own layer
# and package as long as there is no cycle.
SUPPORT = ("__init__", "lessons", "quizzes", "claims", "progress", "notebook")
AFTER = {"training_loop": ("runs",)}  # usable by the lessons that follow
LAYERS: tuple[tuple[str, ...], ...] = (
    SUPPORT,
    ("types", "shapes", "activations", "mdp"),
    ("envs", "networks"),
    *(layer for name in LESSON_MODULES for layer in ((name,), AFTER.get(name, ())) if layer),
    ("figures", "checks", "audit", "diagnose"),
    ("widgets", "grading", "bench"),
    ("cli",),
)
# What the course's mechanism offers, only these may use: a lesson's maths knows of no notebook.
USERS_OF_SUPPORT = {*SUPPORT, "checks", "audit", "diagnose", "widgets", "grading", "cli"}
# library -> who may import it
HOMES = {
    "matplotlib": {"figures"},
    "anywidget": {"widgets"},
    "traitlets": {"widgets", "grading"},
    "gymnasium": {"envs", "networks", "cli", "bench"},
    "IPython": {"notebook", "widgets", "grading"},
    "packaging": {"notebook"},
    "tqdm": {"ablations", "cli", "grading"},
    "tyro": {"cli", "gpu_run"},
}
# library that pyproject.toml does not declare -> why it is there all the same
COMES_ALONG = {
    "IPython": "imported only inside a kernel, which brings it",
    "packaging": "matplotlib and ipykernel need it",
    "anywidget": "the extra `course` brings it; without, importing widgets says what to install",
    "traitlets": "anywidget needs it",
    "jupytext": "the extra `test` brings it; building and baking assignments need it",
    "nbformat": "the extra `test` brings it; building and baking assignments need it",
    "pytest": "the extra `test` brings it; `grade` says what to install",
    "nbval": "the same",
    "ipykernel": "the kernel of a graded notebook; the extra `course` brings it",
    "jupyter_client": "nbval and ipykernel need it",
    "zmq": "jupyter_client needs it",
    "stable_baselines3": "the extra `bench` brings it; without, `bench` says what to install",
    "jax": "only PureJaxRL's own Python imports it, in a process of its own",
    "msvcrt": "standard library on Windows",
    "fcntl": "standard library elsewhere",
}
HEAVY = ("torch", "numpy", "gymnasium", "matplotlib", "IPython", "jaxtyping", "tyro", "tqdm")
# Modules of a folder that belong to no single lesson.
SHARED = {
    "figures": {"__init__", "style", "staircase", "grading"},
    "checks": {
        *("__init__", "answers", "compare", "desk", "exercises", "guard", "hashed", "judge"),
        *("own", "run", "words"),
    },
    "widgets": {
        *("__init__", "base", "html", "messages", "page", "predict", "quiz", "registry", "traits"),
        "live_dashboard",
    },
}
# lesson module -> why no function of it names a source
WITHOUT_SOURCE = {"rollout": "it collects and stores; it computes no formula"}


# --- reading the tree ----------------------------------------------------------------------


def read_package() -> dict[str, str]:
    """Source text by module, as in `gae` or `figures/gae`."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): path.read_text("utf-8")
        for path in files
    }


SOURCES = read_package()


def top(module: str) -> str:
    return module.partition("/")[0]


def folder(module: str) -> str:
    return module.rpartition("/")[0]


@cache
def imports(text: str) -> tuple[str, ...]:
    """Every module imported anywhere, also inside functions; relative ones keep their dots."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return tuple(found)


def edges(sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of modules of the package: importer, imported."""
    known = set(sources)
    for importer, text in sources.items():
        found = {name.removeprefix("ppo_lessons") for name in imports(text) if is_ours(name)}
        for name in found:
            module = name.strip(".").replace(".", "/") or "__init__"
            for spelling in (module, f"{module}/__init__"):
                if spelling in known and spelling != importer:
                    yield importer, spelling


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == "ppo_lessons"


# --- the order of imports ------------------------------------------------------------------


def layer_of(module: str) -> int | None:
    return next((n for n, layer in enumerate(LAYERS) if top(module) in layer), None)


def layer_problems(sources: Mapping[str, str]) -> list[str]:
    problems = [f"{module} has no layer" for module in sources if layer_of(module) is None]
    for importer, imported in edges(sources):
        low, high = layer_of(imported), layer_of(importer)
        if low is None or high is None or top(importer) == top(imported):
            continue
        if low > high:
            problems.append(f"{importer} imports {imported}, which comes later")
        if top(imported) in SUPPORT and top(importer) not in USERS_OF_SUPPORT:
            problems.append(f"{importer} imports {imported}, the mechanism of the notebooks")
    return problems


def cycle(sources: Mapping[str, str]) -> list[str]:
    graph: dict[str, set[str]] = {module: set() for module in sources}
    for importer, imported in edges(sources):
        # A package's __init__ gathers its modules: their import of each other passes by it.
        if imported not in (f"{top(importer)}/__init__", f"{folder(importer)}/__init__"):
            graph[importer].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def library_problems(sources: Mapping[str, str]) -> list[str]:
    declared = declared_libraries() | set(COMES_ALONG) | sys.stdlib_module_names
    problems = []
    for module, text in sources.items():
        libraries = {name.partition(".")[0] for name in imports(text)}
        if "" in libraries:
            problems.append(f"{module} imports by dots; write ppo_lessons.<module>")
        for library in sorted(libraries - {"", "ppo_lessons"}):
            if top(module) not in HOMES.get(library, {top(module)}):
                problems.append(f"{module} imports {library}; only {HOMES[library]} may")
            if library not in declared:
                problems.append(f"{module} imports {library}, which pyproject.toml lacks")
    return problems


def declared_libraries() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in project["dependencies"]}


def test_imports_run_one_way():
    assert layer_problems(SOURCES) == []


def test_no_import_runs_in_a_circle():
    assert cycle(SOURCES) == []


def test_libraries_stay_in_their_folder_and_are_declared():
    assert library_problems(SOURCES) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("shapes", "from ppo_lessons.gae import compute_gae"),
        ("gae", "from ppo_lessons.rollout import flatten"),
        ("gae", "def f():\n    import ppo_lessons.rollout"),
        ("gae", "from ppo_lessons import rollout"),
        ("critic", "from ppo_lessons.figures.training_loop import draw"),
        ("rollout", "from ppo_lessons.runs import RunFolder"),
        ("gae", "from ppo_lessons.progress import predict"),
        ("gae", "from ppo_lessons import LESSONS"),
        ("progress", "from ppo_lessons.shapes import masked_mean"),
        ("figures/training_loop", "from ppo_lessons.cli import main"),
        ("helpers", "x = 1"),
    ],
)
def test_an_import_against_the_order_is_found(module, text):
    modules = dict.fromkeys(["figures/training_loop", "runs", "cli", "rollout"], "")
    assert layer_problems(modules | SOURCES | {module: text})


def test_a_circle_within_a_layer_is_found():
    circle = {
        "types": "from ppo_lessons.shapes import masked_mean",
        "shapes": "from ppo_lessons.types import Batch",
    }
    assert layer_problems(SOURCES | circle) == []
    assert cycle(SOURCES | circle)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("gae", "import matplotlib.pyplot as plt"),
        ("notebook", "def f():\n    from matplotlib.figure import Figure"),
        ("rollout", "from gymnasium import Env"),
        ("figures/gae", "import anywidget"),
        ("gae", "import pandas"),
        ("gae", "from .critic import td_errors"),
    ],
)
def test_a_library_away_from_its_folder_is_found(module, text):
    assert library_problems({module: text})


# --- importing costs nothing ---------------------------------------------------------------


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    return set(run_python(code).split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import ppo_lessons") == set()
    assert loaded_by("from ppo_lessons import predict, quiz, budget, show") == set()
    assert "torch" in loaded_by("import ppo_lessons.shapes")


def test_importing_the_package_takes_less_than_a_tenth_of_a_second():
    code = (
        "import time; start = time.process_time(); import ppo_lessons; "
        "print(time.process_time() - start)"
    )
    # Processor time, the best of three: another process on the machine must not fail this.
    assert min(float(run_python(code)) for _ in range(3)) < 0.1


# --- LESSONS against the files -------------------------------------------------------------


def lesson_files(root: Path) -> set[str]:
    """Files that belong to one lesson each, found in the tree."""
    found = {
        path.relative_to(root).as_posix()
        for folder in ("notebooks", "exercises", "solutions")
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".ipynb") and ".ipynb_checkpoints" not in path.parts
    }
    for folder, shared in SHARED.items():
        paths = (root / "ppo_lessons" / folder).glob("*.py")
        found |= {f"ppo_lessons/{folder}/{path.name}" for path in paths if path.stem not in shared}
    return found | {f"ppo_lessons/{name}.py" for name in own_modules(root / "ppo_lessons")}


def own_modules(package: Path) -> set[str]:
    """Modules and packages that are no support: the lessons."""
    names = {path.stem for path in package.glob("*.py")}
    names |= {path.parent.name for path in package.glob("*/__init__.py")}
    lessons = set(LESSON_MODULES)
    return names - {name for layer in LAYERS for name in layer if name not in lessons}


def promised_files() -> set[str]:
    return {path for lesson in LESSONS for path in lesson.files()}


def test_each_lesson_has_exactly_the_files_that_it_names():
    promised, found = promised_files(), lesson_files(ROOT)
    assert {"missing": promised - found, "not in LESSONS": found - promised} == {
        "missing": set(),
        "not in LESSONS": set(),
    }


@pytest.mark.parametrize(
    "path",
    [
        "ppo_lessons/gae.py",
        "ppo_lessons/gae/__init__.py",
        "ppo_lessons/figures/gae.py",
        "ppo_lessons/widgets/dial.py",
        "ppo_lessons/checks/gae.py",
        "notebooks/06_gae.ipynb",
        "notebooks/source/06_gae.py",
        "exercises/source/06_gae.py",
        "solutions/06_gae.ipynb",
    ],
)
def test_a_file_of_a_lesson_is_seen(tmp_path, path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.touch()
    assert lesson_files(tmp_path) == {path.replace("/gae/__init__.py", "/gae.py")}


def test_support_modules_belong_to_no_lesson(tmp_path):
    for path in ("types.py", "runs.py", "envs/__init__.py", "figures/style.py"):
        file = tmp_path / "ppo_lessons" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert lesson_files(tmp_path) == set()


def test_quizzes_belong_to_lessons_with_a_notebook():
    ready = {lesson.name for lesson in LESSONS if lesson.notebook}
    assert {path.stem for path in (PACKAGE / "quizzes").glob("*.py")} - {"__init__"} <= ready


# --- docstrings of the lessons -------------------------------------------------------------


def public_nodes(name: str, sources: Mapping[str, str]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """What a lesson offers: all public names of a page, or those in `__all__` of a package."""
    modules = [module for module in sources if module == name or module.startswith(f"{name}/")]
    offered = offers(sources.get(f"{name}/__init__", ""))
    for module in modules:
        for node in ast.parse(sources[module]).body:
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            if node.name in offered if offered else not node.name.startswith("_"):
                yield node


def offers(text: str) -> set[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def docstring_problems(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    text = ast.get_docstring(node) or ""
    if not text:
        yield f"{node.name} has no docstring"
    if isinstance(node, ast.ClassDef) or is_one_line(node, text):
        return
    if takes_arguments(node) and "Args:" not in text:
        yield f"{node.name} explains no argument: Args:"
    if returns_something(node) and not re.search(r"^(Returns|Yields):", text, re.MULTILINE):
        yield f"{node.name} does not say what comes back: Returns:"
    for line in re.findall(r"Source:(.*)", text):
        if not re.search(r"\b(?:19|20)\d\d\b", line):
            yield f"{node.name} names a source without a year: {line.strip()}"


def is_one_line(node: ast.FunctionDef, text: str) -> bool:
    """A sentence explains a single statement; more would repeat it."""
    return bool(text) and "\n" not in text and len(node.body) == 2


def takes_arguments(node: ast.FunctionDef) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return any(not argument.arg.startswith("_") for argument in arguments)


def returns_something(node: ast.FunctionDef) -> bool:
    return node.returns is not None and ast.unparse(node.returns) != "None"


def lessons_with_module() -> list[str]:
    return [lesson.name for lesson in LESSONS if lesson.module]


@pytest.mark.parametrize("name", lessons_with_module())
def test_what_a_lesson_offers_is_explained(name):
    nodes = list(public_nodes(name, SOURCES))
    assert nodes
    assert [problem for node in nodes for problem in docstring_problems(node)] == []


@pytest.mark.parametrize("name", lessons_with_module())
def test_a_lesson_names_a_source_or_the_reason_why_not(name):
    texts = [ast.get_docstring(node) or "" for node in public_nodes(name, SOURCES)]
    assert any("Source:" in text for text in texts) != (name in WITHOUT_SOURCE)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x",
        "class A: pass",
        'def f(x):\n    """Do."""\n    x += 1\n    return x',
        'def f() -> int:\n    """Do."""\n    x = 1\n    return x',
        'def f():\n    """Do.\n\n    Source: somebody, eq. 3.\n    """',
    ],
)
def test_a_poor_docstring_is_found(text):
    (node,) = public_nodes("gae", {"gae": text})
    assert list(docstring_problems(node))


def test_one_sentence_is_enough_for_one_statement():
    (node,) = public_nodes("gae", {"gae": 'def f(x) -> int:\n    """Double."""\n    return 2 * x'})
    assert list(docstring_problems(node)) == []


def test_a_package_answers_for_what_it_offers():
    sources = {"gae/__init__": '__all__ = ["f"]', "gae/a": "def f(): pass\n\ndef g(): pass"}
    assert [node.name for node in public_nodes("gae", sources)] == ["f"]


# --- no path of a machine ------------------------------------------------------------------

MACHINE_PATH = re.compile(
    r"(?<![\w.)\]}-])(?:/(?:home|Users|opt)/[\w.-]+|/(?:root|work|workspace)/)"
    r"|\b[A-Z]:\\+Users\\+\w+"
)
# Names that stand for anybody, and folders that are the same on every machine of a kind.
PLACEHOLDERS = re.compile(
    r"/home/(?:ada|somebody|you|x)$|/Users/you$|[A-Z]:\\+Users\\+(?:somebody|you)$|/opt/homebrew$"
)
PICTURE = re.compile(r'"image/png": "[^"]*"')


def machine_paths(text: str) -> list[str]:
    found = MACHINE_PATH.findall(PICTURE.sub("", text))
    return [path for path in found if not PLACEHOLDERS.match(path)]


def tracked_files() -> Iterable[Path]:
    """Files under version control; in an unpacked archive, all that are not hidden."""
    command = ["git", "ls-files", "-z"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return [ROOT / name for name in run.stdout.split("\0") if name]
    return [path for path in ROOT.rglob("*") if not any(p.startswith(".") for p in path.parts)]


def test_no_file_holds_a_path_of_a_machine():
    found = {}
    for path in tracked_files():
        if path.is_file() and path != Path(__file__).resolve():
            text = path.read_bytes().decode("utf-8", errors="ignore")
            if paths := machine_paths(text):
                found[path.relative_to(ROOT).as_posix()] = paths
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "see /home/carol/x",
        # put together here, so that this file holds no such path itself
        f'open("/{"root"}/x")',
        f"in /{'work'}/x",
        "/opt/dev/bin/python",
        r"C:\Users\carol",
        r"C:\\Users\\carol",
        "/Users/carol/x",
    ],
)
def test_a_path_of_a_machine_is_found(text):
    assert machine_paths(text)


@pytest.mark.parametrize(
    "text",
    [
        "saved in /home/ada/runs",
        "https://example.org/home/x",
        "my/home/folder",
        r"(?:/home/|/Users/|/root\b)",
        '"image/png": "AAAA /home/carol"',
    ],
)
def test_a_placeholder_or_an_address_passes(text):
    assert machine_paths(text) == []
