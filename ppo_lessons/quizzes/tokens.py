"""Questions of lesson 13: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="tokens.review_ratio",
        question="A batch was drawn a moment ago, and no parameter has moved since. Its ratios are",
        options={
            "a": (
                "scattered around 1, since each action was drawn by chance",
                "Which action was drawn is chance. How likely it was is not: both times the same "
                "policy is asked about the same action.",
                False,
            ),
            "b": (
                "all exactly 1, up to rounding",
                "Right: above and below stands the same probability.",
                True,
            ),
            "c": (
                "between 1 − ε and 1 + ε, since the clip holds them there",
                "The clip holds nothing, and here there is nothing to hold.",
                False,
            ),
        },
    ),
    Quiz(
        id="tokens.review_clip",
        question="A sample's ratio is 1.3, ε is 0.2, its advantage is positive. It",
        options={
            "a": (
                "is silent: the objective pays for no more",
                "Right: above 1 + ε a good action has no gradient.",
                True,
            ),
            "b": (
                "is pulled back to 1.2",
                "A flat place pushes in no direction. Other samples may carry it anywhere.",
                False,
            ),
            "c": (
                "is thrown out of the batch",
                "It still counts in the mean. Its slope is zero.",
                False,
            ),
        },
    ),
    Quiz(
        id="tokens.review_cut",
        question="A game is cut off unfinished. In GAE, what stands for all that was not seen?",
        options={
            "a": (
                "0",
                "That is right where the game is over, and here it is not.",
                False,
            ),
            "b": (
                "the mean reward so far, for each step that is missing",
                "No estimate of this course does that. There is somebody whom you can ask.",
                False,
            ),
            "c": (
                "what the critic expected when you stopped",
                "Right: at every λ, at λ = 1 as well.",
                True,
            ),
        },
    ),
    Quiz(
        id="tokens.state",
        question="What is the state in which the model chose the third token of its response?",
        options={
            "a": (
                "the prompt",
                "It has also read what it has said itself.",
                False,
            ),
            "b": (
                "the prompt and the first two tokens of the response",
                "Right: all that stands in front of the token.",
                True,
            ),
            "c": (
                "the prompt and the first three tokens of the response",
                "The third token is the action. In its own state it is not known yet.",
                False,
            ),
        },
    ),
    Quiz(
        id="tokens.eos",
        question="Somebody leaves EOS out of the mask. What do you see?",
        options={
            "a": (
                "ratios that are not 1, before the first update",
                "Masking changes no number, it only leaves some out. Those that are left are "
                "right.",
                False,
            ),
            "b": (
                "an error, since shapes no longer fit",
                "A mask has the same shape, whatever it says.",
                False,
            ),
            "c": (
                "nothing at first; then responses that do not learn to stop",
                "Right: a token that counts nowhere has no gradient.",
                True,
            ),
        },
    ),
    Quiz(
        id="tokens.mean_ratio",
        question="Before the first update the mean ratio is 1.00. Then the bookkeeping",
        options={
            "a": (
                "may still be wrong: single ratios may be far from 1",
                "Right: with a forgotten temperature the mean is exactly 1. Look at each ratio.",
                True,
            ),
            "b": (
                "is right: a wrong one would show in the mean",
                "Over draws of the sampler the mean of π/μ is 1 for any π, as long as μ draws "
                "every word.",
                False,
            ),
            "c": (
                "is wrong: by chance alone the mean would be off",
                "Where each ratio is 1, so is the mean, whatever was drawn.",
                False,
            ),
        },
    ),
    Quiz(
        id="tokens.turns",
        question="In a conversation with a tool, which tokens are actions?",
        options={
            "a": (
                "all behind the first prompt",
                "What the tool answers stands there, too. The policy did not choose it.",
                False,
            ),
            "b": (
                "those that the assistant wrote, in all its turns",
                "Right, each EOS with them. What others said is part of the state.",
                True,
            ),
            "c": (
                "those of the assistant's last turn",
                "The call of the tool was chosen as well, and may have decided everything.",
                False,
            ),
        },
    ),
    Quiz(
        id="tokens.padding",
        question="Positions count the padding. On which prompts does nobody notice?",
        options={
            "a": (
                "on those that fill all columns",
                "Right: without padding both ways of counting agree. A test with prompts of one "
                "length finds nothing.",
                True,
            ),
            "b": (
                "on the shortest ones",
                "They have most padding, and their tokens are moved farthest.",
                False,
            ),
            "c": (
                "on all: the model attends to real tokens only",
                "Attention leaves the padding out. The positions of the real tokens are moved all "
                "the same.",
                False,
            ),
        },
    ),
)
