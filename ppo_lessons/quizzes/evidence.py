"""Questions of lesson 17: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="evidence.review_score",
        question="In lesson 14, what does the score of an answer measure?",
        options={
            "a": (
                "What the reward model thinks of it",
                "Right. The task itself stands behind it, more or less.",
                True,
            ),
            "b": (
                "Whether it is right",
                "That is what the verifier says, and where there is one, nobody needs a score.",
                False,
            ),
            "c": (
                "How far it is from what the reference would say",
                "That is the KL. It is charged on top of the score.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.review_clip",
        question="The share outside of the clip stays near 0 through a whole run. What follows?",
        options={
            "a": (
                "The policy stays near the reference",
                "The clip compares with the policy of one iteration ago. Many small steps go far.",
                False,
            ),
            "b": (
                "Each iteration moved the policy little",
                "Right, and nothing about where forty of them have led.",
                True,
            ),
            "c": (
                "The answers are good",
                "No number of the squeeze knows the task.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.review_interval",
        question="Two intervals of 95 % overlap. What may you conclude about the two settings?",
        options={
            "a": (
                "They are equally good",
                "That is a claim too, and overlap does not show it.",
                False,
            ),
            "b": (
                "Not from this which is better; look at the interval of the difference",
                "Right: lesson 11. On the same prompts it may be far narrower.",
                True,
            ),
            "c": (
                "The one with the higher mean is better, with less certainty",
                "A higher mean is what one of two equal settings always has.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.none_of_ten",
        question="Ten answers were checked for a forbidden word, none has it. What do you report?",
        options={
            "a": (
                "0 %, plus or minus 0",
                "√(p(1 − p)/n) is 0 at p = 0. That is the fault of the formula, not a proof.",
                False,
            ),
            "b": (
                "Between 0 and 28 %",
                "Right: z²/(n + z²) with n = 10. Ten answers say little.",
                True,
            ),
            "c": (
                "Nothing, since none was found",
                "None of ten excludes that every second answer has it.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.same_prompts",
        question="Two models differ on 12 of 500 prompts: 10 gained, 2 lost. What decides?",
        options={
            "a": (
                "10 against 2: a coin is so uneven in 4 of 100 throws",
                "Right. The 488 others are equally hard for both and say nothing.",
                True,
            ),
            "b": (
                "The two shares, each with its interval",
                "Those intervals hold how prompts differ, which is the same for both models.",
                False,
            ),
            "c": (
                "8 of 500 is 1.6 %, too little to matter",
                "Whether it matters is your decision. Whether it is there is another question.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.fresh_labels",
        question="You keep that of 20 checkpoints whose 64 labels are best. How good is it?",
        options={
            "a": (
                "As good as its labels say",
                "Those labels chose it. Had all 20 been alike, the best would look better still.",
                False,
            ),
            "b": (
                "As good as 64 new labels say",
                "Right: new labels chose nothing, so their mean is the truth.",
                True,
            ),
            "c": (
                "As good as the mean over all 20",
                "That is honest for all of them together. This one may be better than the mean.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.verifier",
        question="Why does the gate get a small judge and not the verifier?",
        options={
            "a": (
                "The verifier is too slow",
                "Even a slow one could be asked now and then. What if there is none?",
                False,
            ),
            "b": (
                "With a verifier you would train on it, and need no gate",
                "Right: a gate is needed where truth is dear, and there it has few labels.",
                True,
            ),
            "c": (
                "The judge is more often right",
                "Here it errs in 15 of 100 labels.",
                False,
            ),
        },
    ),
    Quiz(
        id="evidence.second_set",
        question="Why a second held-out set for the report?",
        options={
            "a": (
                "The first one was trained on",
                "Nobody took a gradient on it. It was used in another way.",
                False,
            ),
            "b": (
                "The first one chose the checkpoint",
                "Right: the best of many looks better than it is on what chose it.",
                True,
            ),
            "c": (
                "More prompts give a narrower interval",
                "They do, and it would still be around a number that is too high.",
                False,
            ),
        },
    ),
)
