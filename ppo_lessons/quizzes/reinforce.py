"""Questions of lesson 01: three on the mathematics it needs, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="reinforce.warm_expectation",
        question="A draw pays 6 with probability 1/3 and 0 otherwise. Its expectation, the mean "
        "over many draws, is",
        options={
            "a": ("3", "That is the middle of 0 and 6; but 0 comes up twice as often.", False),
            "b": ("6", "That is the most it can pay, not what it pays on average.", False),
            "c": ("2", "Right: each payment counts by its probability, 6 · 1/3 + 0 · 2/3.", True),
        },
    ),
    Quiz(
        id="reinforce.warm_derivative",
        question="What is the derivative of log p with respect to p, at p = 0.2?",
        options={
            "a": ("5", "Right: it is 1/p, so the smaller p, the larger it is.", True),
            "b": ("0.2", "That is p; the derivative of the logarithm is one over it.", False),
            "c": ("−1.6", "That is log 0.2 itself, not its slope.", False),
        },
    ),
    Quiz(
        id="reinforce.warm_probability",
        question="Two independent things happen with probabilities 0.5 and 0.2. Both happen with "
        "probability p. Then log p is",
        options={
            "a": (
                "log 0.5 times log 0.2",
                "The probabilities are multiplied, not their logarithms.",
                False,
            ),
            "b": (
                "log 0.5 plus log 0.2",
                "Right: p = 0.5 · 0.2 = 0.1, and the logarithm turns products into sums.",
                True,
            ),
            "c": (
                "log 0.7",
                "0.5 + 0.2 would be the chance of one or the other, if both could not happen.",
                False,
            ),
        },
    ),
    Quiz(
        id="reinforce.luck",
        question="All rewards of a task are positive. You draw the worst action once and take one "
        "REINFORCE step, without a baseline. That action is now",
        options={
            "a": (
                "less likely, since others would have paid more",
                "The step knows nothing of the others. It sees one reward, and that is positive.",
                False,
            ),
            "b": (
                "more likely",
                "Right. Better actions are pushed harder, so the average over draws is right; a "
                "single draw need not be.",
                True,
            ),
            "c": (
                "as likely as before, since the mean of the score is zero",
                "The mean over draws is zero, and the score of one draw is not.",
                False,
            ),
        },
    ),
    Quiz(
        id="reinforce.constant",
        question="Somebody adds 100 to every reward of the two levers. What happens to the push?",
        options={
            "a": (
                "Its mean grows about a hundred times",
                "The mean of 100 · score is 100 · 0.",
                False,
            ),
            "b": (
                "Nothing: a constant cancels",
                "It cancels in the mean. Each single push is much longer than before.",
                False,
            ),
            "c": (
                "Its mean stays, and its noise grows",
                "Right: from a spread of 1 to a spread of 51.",
                True,
            ),
        },
    ),
    Quiz(
        id="reinforce.loss_value",
        question="In a run of REINFORCE the loss falls from 30 to 0. What do you know from these "
        "two numbers?",
        options={
            "a": (
                "Nothing about how good the policy is",
                "Right: it may be certain of its actions, and they may be the wrong ones. Look at "
                "the return.",
                True,
            ),
            "b": (
                "The policy has learned the task",
                "In a good run of this lesson the loss rises: returns grow, and they multiply it.",
                False,
            ),
            "c": (
                "The gradient is zero as well",
                "Value and slope are two things: with weights of mean zero the value can be 0 "
                "while the slope is not.",
                False,
            ),
        },
    ),
    Quiz(
        id="reinforce.three_vectors",
        question="A program multiplies each ∇log π by the discounted reward-to-go (γ = 0.9) and "
        "adds these up over all steps, with no further factor. In general it follows, on average,",
        options={
            "a": (
                "the gradient of the discounted J",
                "There the push at step t also carries a factor γᵗ, which the program leaves out.",
                False,
            ),
            "b": (
                "the gradient of the undiscounted J",
                "There the rewards that follow are not discounted.",
                False,
            ),
            "c": (
                "neither of the two",
                "Right: it discounts what follows, but not the step itself. Only at γ = 1 are all "
                "three the same.",
                True,
            ),
        },
    ),
    Quiz(
        id="reinforce.reuse",
        question="You have taken one step with a batch. Why not take the next with the same batch?",
        options={
            "a": (
                "The rewards in it are no longer true",
                "They happened, and they stay as they are.",
                False,
            ),
            "b": (
                "Its mean is over draws of the policy before the step",
                "Right: REINFORCE wants the mean over draws of the policy that it pushes, and "
                "that has moved.",
                True,
            ),
            "c": (
                "The gradient would be zero the second time",
                "It is not, and the policy would move on: to a wrong place.",
                False,
            ),
        },
    ),
)
