"""Questions of lesson 15: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="variants.review_baseline",
        question="What may a baseline depend on, if the mean gradient is to stay what it is?",
        options={
            "a": (
                "On the state, and on nothing that was drawn after it",
                "Right: lesson 05. It then has nothing to do with which action was taken.",
                True,
            ),
            "b": (
                "On anything, since it is subtracted everywhere",
                "One that knows the action takes part of its merit away.",
                False,
            ),
            "c": (
                "On nothing: it must be a constant",
                "A constant will do. A critic, which depends on the state, is usually better.",
                False,
            ),
        },
    ),
    Quiz(
        id="variants.review_price",
        question="Where did lesson 14 charge for the distance from the reference?",
        options={
            "a": (
                "In the loss, as a term beside the surrogate",
                "Other methods do. There it was part of the reward.",
                False,
            ),
            "b": (
                "In the reward of each token, with the log-probabilities of π_old",
                "Right: a number without gradient, which earlier tokens hear of, too.",
                True,
            ),
            "c": (
                "In the clip, which holds the policy near the reference",
                "The clip is centred on π_old, the policy that drew the batch.",
                False,
            ),
        },
    ),
    Quiz(
        id="variants.review_clip",
        question="A token's advantage is positive and its ratio is 1.3, with ε = 0.2. What now?",
        options={
            "a": (
                "It is pulled back to 1.2",
                "Nothing pulls. The incentive to go further is gone, that is all.",
                False,
            ),
            "b": (
                "It is pushed with 1.2 in place of 1.3",
                "The clipped term is a constant. It has no gradient.",
                False,
            ),
            "c": (
                "It is pushed no further",
                "Right: lesson 04. Beyond the edge its gradient is 0.",
                True,
            ),
        },
    ),
    Quiz(
        id="variants.equal_group",
        question="All eight answers to a prompt are right. What does GRPO learn from them?",
        options={
            "a": (
                "That all eight are good",
                "Good is measured against their own mean. None is above it.",
                False,
            ),
            "b": (
                "Nothing: each advantage is 0",
                "Right. They were drawn and paid for. DAPO leaves such groups out.",
                True,
            ),
            "c": (
                "Something without limit, since the spread is 0",
                "0 is divided by a little more than 0. Without that little it would be NaN.",
                False,
            ),
        },
    ),
    Quiz(
        id="variants.long_answers",
        question="Each answer's mean is taken first, then the mean of those. What follows?",
        options={
            "a": (
                "Long wrong ones are punished less for each token",
                "Right: each token's share is 1 / length. Rambling becomes cheap.",
                True,
            ),
            "b": (
                "Long wrong ones are punished more, since they have more tokens",
                "So it is where tokens are added up. Here the length is divided out.",
                False,
            ),
            "c": (
                "Nothing of the kind, since advantages are the same",
                "Advantages are. What each of them weighs is not.",
                False,
            ),
        },
    ),
    Quiz(
        id="variants.zero_loss",
        question="GRPO's loss is 0.0000 in the first step. What does this say?",
        options={
            "a": (
                "That nothing is learned",
                "The value says nothing about the slope. A group's advantages add up to 0.",
                False,
            ),
            "b": (
                "That old and new log-probabilities were mixed up",
                "They are equal in the first step, and should be.",
                False,
            ),
            "c": (
                "That ratios are 1 and advantages of a group add up to 0",
                "Right. The gradient is Â·∇log π at each token, and that is not 0.",
                True,
            ),
        },
    ),
    Quiz(
        id="variants.small_beta",
        question="DPO at β = 0.1, several epochs. The loss falls. And the answers?",
        options={
            "a": (
                "Get better along with the loss",
                "The loss sees a difference. It does not see whether either is likely.",
                False,
            ),
            "b": (
                "May get worse: the chosen ones become less likely, too",
                "Right. A margin of 22 nats is found by pushing rejected answers far down.",
                True,
            ),
            "c": (
                "Stay near the reference, since β is the price of distance",
                "A small β is a low price. At β = 0.1 the goal is ten times as far as at 1.",
                False,
            ),
        },
    ),
    Quiz(
        id="variants.not_separable",
        question="After 7,680 answers each, four methods are right in 9 of 10. Which is best?",
        options={
            "a": (
                "The one with the highest mean",
                "One of four equal ones always has it. Another seed, another winner.",
                False,
            ),
            "b": (
                "They are proven equal",
                "A small difference may be there. These runs cannot show it.",
                False,
            ),
            "c": (
                "These runs do not say; take what is cheaper and simpler",
                "Right. Without a critic it is one network less.",
                True,
            ),
        },
    ),
)
