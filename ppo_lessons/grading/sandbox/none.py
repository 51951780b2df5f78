"""No sandbox: the code of students may do all that whoever grades may do."""

import os
import sys

from ppo_lessons.grading.sandbox import INSIDE, Limits, Places, kernel_environment


class NoIsolation:
    """For a machine that has nothing to lose, and for tests; it marks each row.

    Time, memory of each process, output and the student's build of the package hold here too.
    The number of processes does not: those of whoever grades would be counted with them.
    """

    name = "none"
    contains = False

    def available(self) -> str | None:
        """Say that it works wherever a kernel can inherit sockets."""
        return "a kernel cannot inherit sockets on Windows" if os.name == "nt" else None

    def command(self, places: Places, limits: Limits) -> list[str]:
        """Start Python in an empty folder of its own."""
        home = str(places.scratch)
        settings = [f"{name}={value}" for name, value in kernel_environment(home).items()]
        there = 'cd "$1" && shift && exec env -i "$@"'
        python = [sys.executable, "-s", "-P", str(INSIDE)]
        return ["sh", "-c", there, "sh", home, *settings, *python]

    def modules(self, places: Places) -> list[str]:
        """Give the student's build."""
        return [str(places.build)]
