"""`ppo-lessons grade <verb>`: from the hand-out to the marks."""

from collections.abc import Sequence


def main(rest: Sequence[str]) -> int:
    """Run one verb: build, bake, run, merge, preview, doctor or report.

    Args:
        rest: the command line behind `grade`.

    Returns:
        0 if all went well, 1 if some student has no verdict, 2 if the input was wrong.
    """
    raise NotImplementedError
