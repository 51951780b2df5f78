"""Questions of lesson 14: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="rlhf.review_action",
        question="In lesson 13, what is an action, and what is an episode?",
        options={
            "a": (
                "An action is an answer, an episode is a batch of them",
                "Then a whole answer would have one ratio. Some methods do that; PPO does not.",
                False,
            ),
            "b": (
                "An action is a token, an episode is an answer",
                "Right. The end-of-answer token is an action, too.",
                True,
            ),
            "c": (
                "An action is a logit, an episode is a token",
                "A logit is a number of the policy. What is chosen is a token.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.review_ratio",
        question="What are the ratios in the first minibatch of an iteration?",
        options={
            "a": (
                "1, for the policy that learns is still the one that drew",
                "Right, up to rounding. If they are not, something is counted differently twice.",
                True,
            ),
            "b": (
                "Between 1 − ε and 1 + ε, because of the clip",
                "The clip moves no ratio. And here nothing has moved at all.",
                False,
            ),
            "c": (
                "π / π_ref, the distance from the reference",
                "The ratio has π_old below the line. The reference is another model.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.review_price",
        question="Lesson 03 knew a fence and a price for the KL. What did the price do?",
        options={
            "a": (
                "It forbade steps beyond a KL of δ",
                "That is the fence.",
                False,
            ),
            "b": (
                "It took β·KL off the objective, so that distance has to be worth it",
                "Right: any distance may be bought.",
                True,
            ),
            "c": (
                "It made the learning rate smaller",
                "The learning rate stayed. What changed is what is climbed.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.two_policies",
        question="Which policy stands in the ratio, which one in the price?",
        options={
            "a": (
                "π_old in the ratio, the reference in the price",
                "Right: one is an iteration old, the other as old as the run.",
                True,
            ),
            "b": (
                "The reference in both",
                "Then every ratio would start far from 1, and the clip would stop learning.",
                False,
            ),
            "c": (
                "π_old in both",
                "Then nothing would hold the policy back: each iteration starts anew.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.score_place",
        question="A score is paid at the last token. How does the first token learn of it?",
        options={
            "a": (
                "It does not; only the last token is pushed",
                "Its advantage holds all that follows.",
                False,
            ),
            "b": (
                "Through the advantage, which adds up what follows",
                "Right: GAE walks backwards, as in lesson 06.",
                True,
            ),
            "c": (
                "The score is divided among the tokens first",
                "That would be another reward, and longer answers would get less for each token.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.hacked",
        question="β is 0. The score rises, the critic explains 0.9 of the variance. What follows?",
        options={
            "a": (
                "The answers get better",
                "The critic explains the score. The score is not the task.",
                False,
            ),
            "b": (
                "Nothing about the task",
                "Right: look at answers.",
                True,
            ),
            "c": (
                "The clip is too wide",
                "With one four times as tight the same happened, later.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.local_global",
        question="Why does a tight clip not prevent what a price on the KL prevents?",
        options={
            "a": (
                "The clip looks one iteration back: many small steps go any distance",
                "Right. It is local, the price is global.",
                True,
            ),
            "b": (
                "The clip only acts on good tokens",
                "It acts on both kinds, each on its side.",
                False,
            ),
            "c": (
                "The price acts on the critic as well",
                "It is in the rewards, so the critic learns it. That is not what holds the policy.",
                False,
            ),
        },
    ),
    Quiz(
        id="rlhf.memory",
        question="Four models of one size in 16 bits, Adam in 32. Which of them need the most?",
        options={
            "a": (
                "All four alike, for they have as many weights",
                "Two of them learn. Learning needs more than weights.",
                False,
            ),
            "b": (
                "Policy and critic: 16 bytes for each weight against 2",
                "Right: weights, an exact copy, gradients and two moments.",
                True,
            ),
            "c": (
                "Reference and reward model, for they are asked in every iteration",
                "To be asked, a model needs its weights, and nothing else stays.",
                False,
            ),
        },
    ),
)
