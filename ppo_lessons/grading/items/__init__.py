"""Which questions does only one student get?

Two of each lesson: `own_function`, with constants of the student's own inside, and `own_numbers`,
predictions about an MDP or a trajectory of their own. All constants are derived from a secret, the
assignment and the student's id; `questions.py` alone is there while answers are graded.
"""
