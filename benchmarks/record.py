"""Write a measurement with everything that is needed to judge it."""

import json
import os
import time
from pathlib import Path
from typing import Any

from ppo_lessons.runs import versions

RESULTS = Path(__file__).resolve().parent / "results"
# What notebooks show without running it; it travels with the package.
RECORDED = Path(__file__).resolve().parent.parent / "ppo_lessons" / "recorded"


def write_result(
    name: str, command: str, content: dict[str, Any], *, folder: Path = RESULTS
) -> Path:
    """Write one result as JSON, with date, command, machine, versions and load.

    Args:
        name: of the file, without its ending.
        command: what makes it again.
        content: the numbers.
        folder: where it goes.

    Returns:
        The path.
    """
    folder.mkdir(exist_ok=True)
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "machine": {**versions(), "cores": os.cpu_count(), "load_average": os.getloadavg()[0]},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**about, **content}, indent=2) + "\n", encoding="utf-8")
    return path
