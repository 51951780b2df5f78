"""What importing the package costs beyond importing torch.

python -m benchmarks.import_time
"""

import statistics
import subprocess
import sys

from benchmarks.record import write_result

MODULES = ("ppo_lessons", "ppo_lessons.training_loop")
CODE = (
    "import time; import torch; began = time.perf_counter(); import {module}; "
    "print(time.perf_counter() - began)"
)


def main() -> None:
    """Measure each import in fresh processes, print and write the medians."""
    seconds = {}
    for module in MODULES:
        command = [sys.executable, "-c", CODE.format(module=module)]
        taken = [float(subprocess.check_output(command, text=True)) for _ in range(7)]
        seconds[module] = round(statistics.median(taken), 4)
        print(module, seconds[module])
    content = {"seconds_over_import_torch": seconds, "processes": 7}
    print(write_result("import_time", "python -m benchmarks.import_time", content))


if __name__ == "__main__":
    main()
