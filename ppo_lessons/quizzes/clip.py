"""Questions of lesson 04: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="clip.review_push",
        question="In REINFORCE, ∇log π of a drawn action is multiplied by",
        options={
            "a": (
                "the action's probability",
                "That factor belongs to ∇π, and the drawing of actions has put it in already.",
                False,
            ),
            "b": (
                "the ratio of new to old probability",
                "REINFORCE knows nothing of that; it assumes that the policy has not moved.",
                False,
            ),
            "c": (
                "what was earned from there on",
                "Right: the reward-to-go; minus a baseline it is an estimate of the advantage.",
                True,
            ),
        },
    ),
    Quiz(
        id="clip.review_ratio",
        question="What does weighting a sample by its ratio correct for?",
        options={
            "a": (
                "For the states that the new policy would visit",
                "The states are still those of the old policy; no ratio of actions changes that.",
                False,
            ),
            "b": (
                "For changed probabilities of the actions",
                "Right, in the states that are in the batch.",
                True,
            ),
            "c": (
                "For errors of the critic",
                "The advantage is multiplied as it is, right or wrong.",
                False,
            ),
        },
    ),
    Quiz(
        id="clip.review_kl",
        question="KL(π_old ‖ π) is 0. What do you know that you did not know before?",
        options={
            "a": (
                "The mean ratio over draws of π_old is 1",
                "True, but nothing new: it is 1 for any π, as long as π_old tries all actions.",
                False,
            ),
            "b": (
                "The two policies act alike",
                "Right, wherever π_old ever acts.",
                True,
            ),
            "c": (
                "Learning has finished, and nothing is left to gain",
                "It says that nothing has moved, for whatever reason.",
                False,
            ),
        },
    ),
    Quiz(
        id="clip.signs",
        question="ε is 0.2, the advantage is negative, the ratio is 1.5. The sample's gradient",
        options={
            "a": (
                "pushes the ratio down",
                "Right: the action is worse than expected and has become more likely. The minimum "
                "keeps the correction alive.",
                True,
            ),
            "b": (
                "is zero: the ratio is outside the interval",
                "Only one side is flat, and for a bad action that is the side below 0.8.",
                False,
            ),
            "c": (
                "pushes the ratio up",
                "A negative advantage never pushes an action up.",
                False,
            ),
        },
    ),
    Quiz(
        id="clip.wall",
        question="After an update with ε = 0.2 you find a ratio of 1.6. This is",
        options={
            "a": (
                "a bug: the clip holds all ratios of a batch between 0.8 and 1.2",
                "It holds nothing. It takes away the reason to go further.",
                False,
            ),
            "b": (
                "possible: a large step, momentum or other samples did it",
                "Right, and you have seen each of the three.",
                True,
            ),
            "c": (
                "possible only with a negative advantage",
                "The sign decides which side is flat, not which side can be reached.",
                False,
            ),
        },
    ),
    Quiz(
        id="clip.bound",
        question="L_clip ≤ L holds for every sample. So L_clip is a lower bound on",
        options={
            "a": (
                "the improvement of the return",
                "A bound would have to hold at every policy. In the fork L_clip "
                "says +0.02 while the "
                "return falls by 0.016.",
                False,
            ),
            "b": (
                "the KL divergence",
                "The two are not even in the same unit.",
                False,
            ),
            "c": (
                "the surrogate L",
                "Right. What L has to do with the return is another question.",
                True,
            ),
        },
    ),
    Quiz(
        id="clip.unseen",
        question="Every ratio in the batch is between 0.8 and 1.2. Then the policy",
        options={
            "a": (
                "may have moved far on actions that were not drawn",
                "Right: watch the KL, or better the policy itself.",
                True,
            ),
            "b": (
                "has moved little in every state",
                "Only actions that were drawn have a ratio in the batch.",
                False,
            ),
            "c": (
                "has a KL of at most 0.02",
                "That would need the ratios of all actions. In the lesson's example "
                "the KL is 0.18.",
                False,
            ),
        },
    ),
    Quiz(
        id="clip.minimum",
        question="Somebody drops the minimum and keeps only the clipped term. What is lost?",
        options={
            "a": (
                "Nothing: the clip does the work",
                "At ratio 0.5 and a good action the clipped term is flat.",
                False,
            ),
            "b": (
                "The limit above 1 + ε",
                "That limit is the clipped term's, and it stays.",
                False,
            ),
            "c": (
                "The way back: samples that went the wrong way no longer push",
                "Right: the clipped term is flat on both sides.",
                True,
            ),
        },
    ),
)
