"""A toy clone for the launcher's tests: the real `course`, everything else small and offline.

Its wheels are written by hand and its build backend needs nothing, so an installation takes seconds
and asks no network. The toy JupyterLab writes down how it was started and answers one address.
"""

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

PYPROJECT = """
[build-system]
requires = []
build-backend = "toy_backend"
backend-path = ["backend"]

[project]
name = "ppo-lessons"
version = "0.1.0"
requires-python = ">=3.11,<3.14"
"""

CONSTRAINTS = """# toy
ipykernel==7.4.0
jupyterlab==4.6.6
pytest==9.2.0
torch==2.13.0
"""

BACKEND = """
import base64, hashlib, pathlib, zipfile

METADATA = '''Metadata-Version: 2.1
Name: ppo-lessons
Version: 0.1.0
Requires-Dist: torch>=2.11,<3
Provides-Extra: course
Requires-Dist: jupyterlab>=4.4,<5; extra == "course"
Requires-Dist: ipykernel>=6; extra == "course"
Provides-Extra: test
Requires-Dist: pytest>=8; extra == "test"
'''

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "ppo_lessons-0.1.0-py3-none-any.whl"
    info = "ppo_lessons-0.1.0.dist-info/"
    files = {
        "_ppo_lessons.pth": str(pathlib.Path.cwd()) + "\\n",
        info + "METADATA": METADATA,
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: toy\\nRoot-Is-Purelib: true\\n"
                        "Tag: py3-none-any\\n",
    }
    record = "".join(f"{path},,\\n" for path in files) + info + "RECORD,,\\n"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as wheel:
        for path, text in {**files, info + "RECORD": record}.items():
            wheel.writestr(path, text)
    return name
"""

CLI = """
import json, os, sys

def main():
    settings = {name: os.environ.get("PPO_LESSONS_" + name.upper()) for name in ("home", "call")}
    print(json.dumps({"argv": sys.argv, **settings}))
    return 7
"""

RUN_TESTS = """
import importlib.metadata, os, sys
print("toy tests", sys.argv[1:], importlib.metadata.version("pytest"))
print("settings", {name for name in os.environ} & {"PPO_LESSONS_HOME", "PPO_LESSONS_CALL"})
"""

JUPYTERLAB = """
import http.server, json, os, pathlib, signal, sys

notes = pathlib.Path(".course/toy-jupyter.json")

def note(**more):
    kept = {"argv": sys.argv[1:], "environment": dict(os.environ), "pid": os.getpid()}
    kept["launcher"] = os.getppid()
    notes.write_text(json.dumps({**kept, **more}))

def end(*_):
    note(ended=True)
    sys.exit(0)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        right = self.headers.get("Authorization") == "token " + os.environ["JUPYTER_TOKEN"]
        self.send_response(200 if right else 403)
        self.end_headers()

    def log_message(self, *_):
        pass

signal.signal(signal.SIGTERM, end)
if os.environ.get("TOY_JUPYTER_FAILS"):
    sys.exit("Error: the toy was told to fail")
note()
port = next(int(word.split("=")[1]) for word in sys.argv if word.startswith("--ServerApp.port="))
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""

TORCH = """
import types
__version__ = "2.13.0"
version = types.SimpleNamespace(cuda=None)
cuda = types.SimpleNamespace(is_available=lambda: False)
def get_num_threads(): return 1
"""

WHEELS = {
    ("torch", "2.13.0"): {"torch/__init__.py": TORCH},
    ("pytest", "9.2.0"): {"pytest/__init__.py": ""},
    ("jupyterlab", "4.6.6"): {"jupyterlab/__init__.py": "", "jupyterlab/__main__.py": JUPYTERLAB},
    ("ipykernel", "7.4.0"): {
        "ipykernel/__init__.py": "",
        "ipykernel-7.4.0.data/data/share/jupyter/kernels/python3/kernel.json": "{}",
    },
}


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a wheel by hand."""
    info = f"{name}-{version}.dist-info"
    everything = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{path},{hashed(text)}\n" for path, text in everything.items())
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in everything.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")


def hashed(text: str) -> str:
    """Return hash and size as a wheel's RECORD writes them."""
    code = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    return f"sha256={code.decode()},{len(text.encode())}"


def write_wheels(folder: Path) -> Path:
    """Write all toy wheels into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for (name, version), files in WHEELS.items():
        write_wheel(folder, name, version, files)
    return folder


def write_notebook(path: Path, markdown: str, *, output: str = "") -> None:
    """Write a notebook with one cell of markdown and, with an output, a code cell that was run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": [markdown]}]
    if output:
        outputs = [{"output_type": "stream", "name": "stdout", "text": [output]}]
        code = {"cell_type": "code", "id": "b", "metadata": {"tags": ["kept"]}, "source": ["1 + 1"]}
        cells.append({**code, "execution_count": 3, "outputs": outputs})
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")


def write_clone(root: Path) -> Path:
    """Write a toy clone around the real launcher."""
    files = {
        "pyproject.toml": PYPROJECT,
        "constraints.txt": CONSTRAINTS,
        "backend/toy_backend.py": BACKEND,
        "ppo_lessons/__init__.py": "",
        "ppo_lessons/cli.py": CLI,
        "tools/run_tests.py": RUN_TESTS,
        "docs/notation.md": "words",
        "docs/a picture.png": "",
        "notebooks/source/00_start_here.py": "",
        ".gitignore": "/.venv/\n/my_work/\n/.course/\n__pycache__/\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(REPOSITORY / "course", root / "course")
    write_notebook(
        root / "notebooks/00_start_here.ipynb",
        "[words](../docs/notation.md#clip) [next](03_clip.ipynb) [me](source/00_start_here.py)",
    )
    write_notebook(root / "notebooks/03_clip.ipynb", "[task](../exercises/03_clip.ipynb)")
    write_notebook(root / "exercises/03_clip.ipynb", "[lesson](../notebooks/03_clip.ipynb)")
    return root


def environment(wheels: Path, home: Path, **more: str) -> dict[str, str]:
    """Return a small environment: no index, no configuration of pip, no probe of torch's index."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_FIND_LINKS": wheels.as_uri(),
        "PPO_LESSONS_TORCH_INDEX": "none",
        **more,
    }


class Lab:
    """A running `./course --no-browser`."""

    def __init__(self, root: Path, env: dict[str, str], command: list[str], **options):
        self.root = root
        self.process = subprocess.Popen(
            [*command, str(root / "course"), "--no-browser"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,
        )
        self.output = ""
        for line in self.process.stdout:
            self.output += line
            if line.startswith("Ctrl-C"):
                break

    @property
    def url(self) -> str:
        """The address that was printed."""
        return next((w for w in self.output.split() if w.startswith("http://127.0.0.1:")), "")

    def interrupt(self) -> int:
        """Press Ctrl-C: the signal goes to the whole group, as a terminal sends it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        self.output += self.process.stdout.read()
        return self.process.wait(30)


def course(root: Path, env: dict[str, str], *words: str, python: str = sys.executable, **options):
    """Run the launcher to its end."""
    return subprocess.run(
        [python, str(root / "course"), *words],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
