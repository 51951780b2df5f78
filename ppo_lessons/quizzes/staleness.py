"""Questions of lesson 16: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="staleness.review_ratio",
        question="In lesson 02, what does the ratio π / π_old correct?",
        options={
            "a": (
                "How often an action would be chosen in the state where it was drawn",
                "Right. Which states come up at all is another matter.",
                True,
            ),
            "b": (
                "How often the new policy would come to that state",
                "For that you would need the product of all ratios before it.",
                False,
            ),
            "c": (
                "How good the action was",
                "That is the advantage, and it is of the old policy.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.review_clip",
        question="A sample has Â below 0, and its ratio is 0.5 at ε = 0.2. What does it push?",
        options={
            "a": (
                "Nothing",
                "Right: below 1 − ε nothing more is paid for making it rarer.",
                True,
            ),
            "b": (
                "It makes the action rarer, half as strongly",
                "That is the ratio alone. The clip ends the push at 0.8.",
                False,
            ),
            "c": (
                "It makes the action more frequent again",
                "The clip takes an incentive away. It puts none in its place.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.review_renew",
        question="In lesson 08, how old are the data of the last minibatch of an iteration?",
        options={
            "a": (
                "Of age 0, for the batch is fresh",
                "The first minibatch is. Each step since then has made it older.",
                False,
            ),
            "b": (
                "All steps of the iteration but one",
                "Right: the policy has moved by each of them, and the data have not.",
                True,
            ),
            "c": (
                "One iteration",
                "At the end of the iteration they are thrown away.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.three_policies",
        question="A batch is 4 versions old, and its first minibatch comes. What is π / π_prox?",
        options={
            "a": (
                "1",
                "Right: π_prox is the policy of this moment, whoever drew the data.",
                True,
            ),
            "b": (
                "What four updates have made of it",
                "That is π_prox / μ. It stands in the weight, not in the clip.",
                False,
            ),
            "c": (
                "Within 1 ± ε, for the clip keeps it there",
                "The clip keeps nothing anywhere. Here nothing has moved yet.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.cap",
        question="What does min(π_prox / μ, 2) cost, compared with π_prox / μ?",
        options={
            "a": (
                "Noise",
                "It takes noise away: no sample weighs more than 2.",
                False,
            ),
            "b": (
                "A bias, towards what the old policy does more often",
                "Right. What only the new policy likes is weighed too low.",
                True,
            ),
            "c": (
                "Nothing, as long as the mean of the weights is 1",
                "Cut from above, their mean is below 1.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.level",
        question="Each ratio of a token is within a few per cent of 1. Answers have 100 tokens. "
        "Where are the ratios of whole answers?",
        options={
            "a": (
                "Within a few per cent, too",
                "A hundred factors of 1.02 are 7.",
                False,
            ),
            "b": (
                "Anything from near 0 to far above 1",
                "Right: they are products. A few answers may decide the whole batch.",
                True,
            ),
            "c": (
                "Nearer to 1, for deviations cancel",
                "In a mean they would. In a product their variances add up.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.alarm",
        question="The share outside of the clip jumps from 0.02 to 0.3 between two releases. Where "
        "do you look first?",
        options={
            "a": (
                "At how old the data are, and whether two programs agree on log-probabilities",
                "Right: it compares the policy that learns with the one that drew.",
                True,
            ),
            "b": (
                "At the reward model: the policy is being hacked",
                "A hacked run moves little in each iteration, and the clip sees nothing of it.",
                False,
            ),
            "c": (
                "At ε: it should be larger",
                "A wider clip is outside less often, and the data stay as old as they are.",
                False,
            ),
        },
    ),
    Quiz(
        id="staleness.dropping",
        question="What is older than 4 versions is dropped. What is wrong with that?",
        options={
            "a": (
                "Samples are lost",
                "They are, and that costs time. Something else goes wrong unseen.",
                False,
            ),
            "b": (
                "Long answers take long, so mostly long ones are dropped",
                "Right. Let the generator wait instead: that bounds the age of all alike.",
                True,
            ),
            "c": (
                "Nothing: old data are bad data",
                "A weight makes them useful. Without long answers the policy learns to be short.",
                False,
            ),
        },
    ),
)
