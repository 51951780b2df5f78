"""The process of one run: pin yourself to a core, run, and say what it took.

    python child.py '{"module": ..., "function": ..., "options": {...}, "core": 1, "root": ...}'

Only the standard library is imported here, and nothing of the course: PureJaxRL is run by the
Python of an environment of its own, which has neither torch nor this package.
"""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any


def pin(core: int | None) -> int | None:
    """Stay on one core, where the system can do that; say which."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        return None
    os.sched_setaffinity(0, {core})
    return core


def peak_mib() -> float | None:
    """The most memory that this process has held so far (MiB); None where nobody counts it.

    Linux hands `ru_maxrss` on from the process that started this one, so its own count comes first.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)


def load(module: str, root: str | None) -> Any:
    """Load the file that holds the run; with a root, the course's package is the one below it."""
    folder = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != folder]  # these are no names for `import`
    if root is not None:
        sys.path.insert(0, root)
        importlib.import_module("ppo_lessons")
        sys.path.remove(root)
    spec = importlib.util.spec_from_file_location(f"bench_{Path(module).stem}", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def main() -> None:
    """Run what the command line says; the reading is the only thing on standard output."""
    asked = json.loads(sys.argv[1])
    core = pin(asked["core"])
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a peer prints is no reading
    sys.argv[1:] = []
    try:
        function = getattr(load(asked["module"], asked["root"]), asked["function"])
        reading = function(**asked["options"])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ppo_lessons"):
            raise
        reading = {"missing": error.name}
    answer.write(json.dumps({**reading, "peak_mib": peak_mib(), "core": core}) + "\n")
    answer.flush()


if __name__ == "__main__":
    main()
