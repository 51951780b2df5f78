"""Is my answer right, and if not, which mistake is it?

    from ppo_lessons import check

    check.clipped_surrogate(clipped_surrogate)     # your function
    hint("clip.clipped_surrogate")                 # three of them, one at a time
    reveal("clip.clipped_surrogate")               # where the solution is, after an attempt

One module per lesson holds its exercises: what an answer must satisfy, the usual mistakes in
words, hints. The numbers lie in `data/<lesson>.json`, written by `tools/build_checks.py`; no
right answer is imported here.
"""

from ppo_lessons.checks.desk import check, find_exercise, hint, reveal
from ppo_lessons.checks.exercises import CheckResult

__all__ = ["CheckResult", "check", "find_exercise", "hint", "reveal"]
