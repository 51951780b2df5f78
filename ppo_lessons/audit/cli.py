"""`ppo-lessons audit FILE.npz`: the report of one file, from a shell."""

import argparse
from collections.abc import Sequence

from ppo_lessons.audit import LIBRARIES, audit


def main(rest: Sequence[str], program: str = "ppo-lessons") -> int:
    """Audit one file and print the report.

    Args:
        rest: the command line behind `audit`.
        program: what the reader typed before it.

    Returns:
        0 if nothing is wrong, 1 if something is.

    Raises:
        ValueError: if the file or a name cannot be used, with what to do.
    """
    parser = argparse.ArgumentParser(
        prog=f"{program} audit",
        description="Say whether the tensors of a PPO agree, or which mistake gives their numbers.",
    )
    parser.add_argument("file", help=".npz file, as np.savez writes it")
    parser.add_argument("--like", choices=list(LIBRARIES), help="the file has this library's names")
    parser.add_argument(
        "--names",
        nargs="+",
        default=[],
        metavar="OURS=THEIRS",
        help="what an entry is called there",
    )
    options = parser.parse_args(list(rest))
    names = dict(LIBRARIES[options.like]) if options.like else {}
    for pair in options.names:
        ours, equals, theirs = pair.partition("=")
        if not equals:
            raise ValueError(f"--names has {pair!r}; expected OURS=THEIRS, as ended=dones.")
        names[ours] = theirs
    report = audit(options.file, names=names or None)
    print(report)
    return 1 if report.alarms else 0
