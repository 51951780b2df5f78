"""Questions of lesson 05: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="critic.review_advantage",
        question="The policy has a logit for each action of each state. In one state V is 5, and "
        "one action has Q = 3. A step along the exact gradient moves the logit of this action",
        options={
            "a": (
                "up, since it earns 3, and 3 is more than nothing",
                "So do its own draws, if nothing is subtracted. But the draws of the others push "
                "it down, and harder: they earn more.",
                False,
            ),
            "b": (
                "not at all, since pushes cancel on average",
                "Scores cancel on average; scores times advantages do not.",
                False,
            ),
            "c": (
                "down: its advantage is −2",
                "Right: it is worse than what the policy does there on average.",
                True,
            ),
        },
    ),
    Quiz(
        id="critic.review_weights",
        question="Four draws have the ratios 2, 2, 0 and 0. Their effective sample size is",
        options={
            "a": ("2", "Right: 4² / (4 + 4) = 2. Two draws count, and the others do not.", True),
            "b": ("4", "That would be four equal ratios.", False),
            "c": ("8", "It is never more than the number of draws.", False),
        },
    ),
    Quiz(
        id="critic.review_silent",
        question="ε is 0.2. A good action stands at ratio 1.5, another good one at 0.5. "
        "Which of the two still moves the policy?",
        options={
            "a": ("Neither: both are outside the interval", "Only one side is flat.", False),
            "b": (
                "The one at 0.5",
                "Right: it fell although it was good, and the minimum keeps its slope alive.",
                True,
            ),
            "c": (
                "The one at 1.5",
                "A good action falls silent above 1.2.",
                False,
            ),
        },
    ),
    Quiz(
        id="critic.best",
        question="A critic has learned V exactly. Is V the baseline with the least noise?",
        options={
            "a": (
                "Yes: the mean is the best guess, so it leaves the least",
                "It is the best guess of the return. Noise also depends on how long the scores "
                "are, and V does not look at them.",
                False,
            ),
            "b": (
                "Not in general: subtracting nothing may even be better",
                "Right: after learning, V left 14 times as much with the two levers.",
                True,
            ),
            "c": (
                "No, and it moves the mean push",
                "It depends on the state alone, so the mean stays.",
                False,
            ),
        },
    ),
    Quiz(
        id="critic.allowed",
        question="Which of these, subtracted from each return, changes the mean of the gradient?",
        options={
            "a": (
                "The mean return of the batch, each draw's own included",
                "Right: it contains a part of the draw's own return, and the gradient shrinks "
                "by (k − 1)/k.",
                True,
            ),
            "b": (
                "The value that a network says which nobody has trained",
                "It is a guess about the state, fixed before the action was drawn.",
                False,
            ),
            "c": (
                "The mean return of last week's episodes",
                "They know nothing of today's draw.",
                False,
            ),
        },
    ),
    Quiz(
        id="critic.loss",
        question="The value loss has stopped falling at 40. What do you know?",
        options={
            "a": (
                "The critic is too small",
                "Perhaps. But a perfect critic has a loss, too: half the variance that is left.",
                False,
            ),
            "b": (
                "Learning has gone wrong: a good loss is 0",
                "It is 0 only in a world without luck.",
                False,
            ),
            "c": (
                "Nothing yet: it may be the floor",
                "Right: what the state does not tell stays in the loss.",
                True,
            ),
        },
    ),
    Quiz(
        id="critic.shape",
        question="After training, a critic says 21.3 in every state, and its loss is far from 0. "
        "What do you look at first?",
        options={
            "a": (
                "The shapes of values and returns",
                "Right: (N, 1) against (N,) pulls every value to the mean of all returns.",
                True,
            ),
            "b": (
                "The learning rate of the policy",
                "The critic learns from returns, whoever collected them.",
                False,
            ),
            "c": (
                "The discount γ",
                "A wrong γ gives wrong values, and not the same one everywhere.",
                False,
            ),
        },
    ),
    Quiz(
        id="critic.grade",
        question="A log says explained_variance = 0.95 from the first iteration on. You think:",
        options={
            "a": (
                "the critic is excellent",
                "In the first iteration? It has hardly been trained.",
                False,
            ),
            "b": (
                "the values are all too high, by a constant",
                "That would not change it, and would not explain it.",
                False,
            ),
            "c": (
                "the targets may hold its own values",
                "Right: then it confirms itself. Ask for the grade against whole returns.",
                True,
            ),
        },
    ),
)
