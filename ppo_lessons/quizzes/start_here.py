"""The one question of the start page: it shows how questions work."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="start_here.claims",
        question="A cell of this course prints a verdict such as “learned: yes”. What stands "
        "behind it?",
        options={
            "a": (
                "The author's experience",
                "No: a sentence that no cell computes is not left standing here.",
                False,
            ),
            "b": (
                "A condition in that cell, which raises an error when it does not hold",
                "Right. Change the condition and run the cell: it can fail.",
                True,
            ),
        },
    ),
)
