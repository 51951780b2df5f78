"""Questions of lesson 02: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="importance.review_loss",
        question="REINFORCE's loss falls from 3 to −1 while you train. What does that tell you?",
        options={
            "a": (
                "The policy has become better",
                "The loss of a perfect and of a useless policy may be equal.",
                False,
            ),
            "b": (
                "Nothing about quality: only the gradient of that number means something",
                "Right. Watch the return instead.",
                True,
            ),
            "c": (
                "The critic has learned to predict the return",
                "REINFORCE has no critic.",
                False,
            ),
        },
    ),
    Quiz(
        id="importance.review_constant",
        question="You add 100 to every return. On average, the push on the policy",
        options={
            "a": (
                "grows, since every action is now rewarded",
                "Every action is pushed up, but probabilities sum to 1: on average it cancels.",
                False,
            ),
            "b": (
                "turns round for actions whose return was negative",
                "It does in a single batch. The mean over batches does not move.",
                False,
            ),
            "c": (
                "stays the same, since the mean of ∇log π is 0",
                "Right. Only the noise changes.",
                True,
            ),
        },
    ),
    Quiz(
        id="importance.review_wound",
        question="Why does REINFORCE throw a batch away after one step?",
        options={
            "a": (
                "Its push is a mean over actions of the policy as it is, and that has changed",
                "Right. This lesson is about what to do instead.",
                True,
            ),
            "b": (
                "A second step would see the same rewards, so it would add nothing",
                "The rewards are as informative as before. What no longer fits is how often each "
                "action was drawn.",
                False,
            ),
            "c": (
                "To save memory",
                "A batch is small beside the network that learns from it.",
                False,
            ),
        },
    ),
    Quiz(
        id="importance.weight",
        question="An action pays 6. It had probability 0.8 when it was drawn and has 0.4 now. In "
        "an average for the new policy this draw counts as",
        options={
            "a": (
                "12",
                "That is the ratio upside down, 0.8 / 0.4. The new policy draws it less often.",
                False,
            ),
            "b": (
                "6",
                "That is what it paid. It was drawn twice as often as the new policy would.",
                False,
            ),
            "c": (
                "3",
                "Right: 0.4 / 0.8 · 6.",
                True,
            ),
        },
    ),
    Quiz(
        id="importance.mean_ratio",
        question="In a batch of 10,000 draws the mean ratio is 0.6. What has happened?",
        options={
            "a": (
                "The new policy has moved much of its probability to actions not in the batch",
                "Right: what the drawn actions lost has gone to some that were not drawn.",
                True,
            ),
            "b": (
                "The new policy is worse than the old one",
                "Ratios know nothing of rewards.",
                False,
            ),
            "c": (
                "Nothing: ratios are below 1 whenever a policy has changed",
                "Some are below and some above. Under the old policy their mean is 1, as long as "
                "it tries every action that the new one takes.",
                False,
            ),
        },
    ),
    Quiz(
        id="importance.long",
        question="Sixty-four episodes of 200 steps are weighted by the product of their ratios. "
        "The mean weight is 0.3. The likely reason is",
        options={
            "a": (
                "a bug: the mean weight is 1",
                "It is 1 over all episodes that could be drawn. A batch rarely holds those that "
                "carry it.",
                False,
            ),
            "b": (
                "that half of the weight belongs to episodes too rare for this batch",
                "Right: typical weights are far below 1, and a few huge ones make up for it.",
                True,
            ),
            "c": (
                "that the new policy leaves these states early",
                "The weights count how actions were chosen, whatever they led to.",
                False,
            ),
        },
    ),
    Quiz(
        id="importance.states",
        question="In the trap L is computed exactly and promises +0.36, while J falls by 2.07. "
        "What does L get wrong?",
        options={
            "a": (
                "The ratios",
                "They are exact, for each action in each place.",
                False,
            ),
            "b": (
                "The old policy's advantages",
                "They are exact as well. With the visits of the new policy the same advantages "
                "give the true change.",
                False,
            ),
            "c": (
                "How often each place is visited",
                "Right: L counts the second place as often as the old policy went there.",
                True,
            ),
        },
    ),
    Quiz(
        id="importance.buffer",
        question="You keep the batches of the last 40 updates, with the right log-probabilities, "
        "and use the surrogate on all of them. What is wrong with the old ones, even "
        "without noise?",
        options={
            "a": (
                "Nothing: the ratio corrects for any age",
                "It corrects how often an action is taken. Nothing else.",
                False,
            ),
            "b": (
                "Their advantages and their states belong to policies that are gone",
                "Right: whether it is good to climb depends on what you do at the top.",
                True,
            ),
            "c": (
                "Their rewards are no longer true",
                "What an action led to stays true. This is what a replay buffer lives on.",
                False,
            ),
        },
    ),
)
