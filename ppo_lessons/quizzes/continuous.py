"""Questions of lesson 09: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="continuous.review_score",
        question="An action has probability 0.001 under a softmax. In the logits, ∇log π of it is",
        options={
            "a": (
                "about 1000 long, since 1 / 0.001 is 1000",
                "That is the slope of the logarithm alone. The slope of the probability is as "
                "small as that is large.",
                False,
            ),
            "b": (
                "never longer than √2",
                "Right, for every action. Today you meet a score that knows no such bound.",
                True,
            ),
            "c": (
                "nearly 0, since rare actions hardly count",
                "It is at least 0.999 long; the action is only drawn seldom.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.review_first",
        question="On the first minibatch of an iteration the ratios are",
        options={
            "a": (
                "exactly 1",
                "Right: the policy is still the one that drew. Anything else is a bug.",
                True,
            ),
            "b": (
                "between 0.8 and 1.2",
                "Nothing has moved yet, so nothing can be at the edges.",
                False,
            ),
            "c": (
                "1 on average",
                "Over all actions of π_old the expected ratio is 1 for any two policies. Here each "
                "single one is.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.review_limit",
        question="An episode was cut after 200 steps; the task itself never ends. The last step is",
        options={
            "a": (
                "terminated: nothing comes after it",
                "The task would go on; we stopped watching.",
                False,
            ),
            "b": (
                "truncated: its future counts, as the critic expects it",
                "Right: the bootstrap stays, only the sum of GAE is cut.",
                True,
            ),
            "c": (
                "neither: the rollout goes on",
                "The next row belongs to another episode, and the sum must not run into it.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.positive",
        question="In the log of a run the log-probability of an action is 1.4. That is",
        options={
            "a": (
                "a bug: a probability is never above 1",
                "It is no probability. A density has a unit, and may be as large as it likes.",
                False,
            ),
            "b": (
                "a density of about 4 per unit of the action",
                "Right: the policy has become narrow. In another unit the number is another one.",
                True,
            ),
            "c": (
                "a sign that the ratio is above 1",
                "The ratio compares two densities; one alone says nothing about it.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.narrow",
        question="σ has shrunk to a tenth. The same step of the mean now costs",
        options={
            "a": (
                "as many nats as before: the mean has moved as far",
                "Distance is measured in σ, and it is ten times as many σ.",
                False,
            ),
            "b": ("ten times as many nats", "KL goes with the square of the distance.", False),
            "c": (
                "a hundred times as many nats",
                "Right: half the square of step / σ. And the score has grown meanwhile.",
                True,
            ),
        },
    ),
    Quiz(
        id="continuous.stored",
        question="The policy draws 3, the motor takes at most 2. What belongs into the batch?",
        options={
            "a": (
                "3, with log π(3)",
                "Right: what the policy chose. That the world makes 2 of it is the world's affair.",
                True,
            ),
            "b": (
                "2, with log π(3)",
                "Two different actions: the ratio is not 1 before anything has moved.",
                False,
            ),
            "c": (
                "2, with log π(2)",
                "The ratios are 1, and the score is that of an action that nobody drew: it pulls "
                "the mean inwards, whatever was earned.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.reward_mean",
        question="Why are rewards divided by a spread, and no mean subtracted?",
        options={
            "a": (
                "Since the mean is hard to estimate",
                "It is no harder than the spread.",
                False,
            ),
            "b": (
                "Since a constant per step pays or punishes long episodes",
                "Right: it may turn round which policy is better. A positive factor never does.",
                True,
            ),
            "c": (
                "Since normalised advantages have mean 0 anyway",
                "They would hide a shift in episodes of equal length only; elsewhere the shift "
                "is already in the returns.",
                False,
            ),
        },
    ),
    Quiz(
        id="continuous.squash",
        question="You squash by tanh and leave log(1 − tanh²u) out, everywhere alike. Ratios",
        options={
            "a": (
                "are wrong, and more so near the edges",
                "The correction depends on u alone. It stands in both log-probabilities.",
                False,
            ),
            "b": (
                "are right; entropies and logged log-probabilities are not",
                "Right: it cancels. A method that reads log π itself would be wrong.",
                True,
            ),
            "c": (
                "are right as long as no action is at the edge",
                "They are right there, too, if u is stored and not tanh(u).",
                False,
            ),
        },
    ),
)
