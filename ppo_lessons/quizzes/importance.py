"""Questions of lesson 02: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="importance.review_loss",
        question="Two policies have the same REINFORCE loss, 0.00, on batches of their own. Then",
        options={
            "a": (
                "they are equally good, as in supervised learning two models would be",
                "There the loss is a distance from the truth. Here a perfect and a useless policy "
                "may have the same.",
                False,
            ),
            "b": (
                "you know nothing about which is better",
                "Right. Only the gradient of that number means something. Watch the return.",
                True,
            ),
            "c": (
                "neither of them learns any more, since there is no loss left to reduce",
                "A loss of 0 may have a slope.",
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
        question="A batch was drawn by a policy that has moved on since. You average score times "
        "return over it. Of which policy can that be the gradient of J, on average?",
        options={
            "a": (
                "Of the one that drew it, if the scores are its own",
                "Right. One step on, the policy is another one, and the batch is not its own.",
                True,
            ),
            "b": (
                "Of any policy, if the scores are those of that policy",
                "The scores then fit, but how often each action was drawn does not.",
                False,
            ),
            "c": (
                "Of none, since one batch is too noisy for a gradient",
                "On average it is exact; a single batch is off by chance.",
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
        question="In a batch of 10,000 single draws the mean ratio is 0.6. What has happened?",
        options={
            "a": (
                "Nothing unusual: after a step most ratios are below 1",
                "Some are below and some above. Under the old policy their mean is 1, as long as "
                "it tries every action that the new one takes.",
                False,
            ),
            "b": (
                "The new policy prefers actions that are not in the batch",
                "Right: what the drawn actions lost has gone to some that were not drawn.",
                True,
            ),
            "c": (
                "The new policy is worse: it earns 60 % of what the old one earned",
                "Ratios know nothing of rewards.",
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
                "a bug in the log-probabilities, since the mean weight is 1 whatever the policies",
                "It is 1 over all episodes that could be drawn. A batch rarely holds those that "
                "carry it.",
                False,
            ),
            "b": (
                "that the new policy leaves these states early, so its episodes are shorter",
                "The weights count how actions were chosen, whatever they led to.",
                False,
            ),
            "c": (
                "that the episodes which weigh most are too rare for this batch",
                "Right: typical weights are far below 1, and a few huge ones make up for it.",
                True,
            ),
        },
    ),
    Quiz(
        id="importance.states",
        question="In the trap L is computed exactly and promises +0.36, while J falls by 2.07. "
        "What does L get wrong?",
        options={
            "a": (
                "How often each place is visited",
                "Right: L counts the pit as often as the old policy went there.",
                True,
            ),
            "b": (
                "The ratios, since the policy cannot tell the places apart",
                "They are exact, for each action in each place.",
                False,
            ),
            "c": (
                "The advantages, which are those of the old policy",
                "They are exact as well. With the visits of the new policy the same advantages "
                "give the true change.",
                False,
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
                "Nothing: the ratio corrects for any age, as long as log_probs_old is right",
                "It corrects how often an action is taken. Nothing else.",
                False,
            ),
            "b": (
                "Their states and advantages are those of policies that are gone",
                "Right: whether it is good to climb depends on what you do at the top.",
                True,
            ),
            "c": (
                "Their rewards were earned by another policy, so they are no longer true",
                "What an action led to stays true. This is what a replay buffer lives on.",
                False,
            ),
        },
    ),
)
