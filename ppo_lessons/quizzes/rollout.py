"""Questions of lesson 07: three that look back, five flag patterns that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="rollout.review_value",
        question="V(s) = 6, and from s you once earn a discounted return of 4. So the critic",
        options={
            "a": (
                "is wrong about s by 2",
                "One return is one draw. V says what is earned on average.",
                False,
            ),
            "b": (
                "may be right: V is the mean of many returns",
                "Right. Some are above, some are below.",
                True,
            ),
            "c": (
                "must be lowered to 4 before it may be used",
                "Then it would repeat the last draw, and the next one would move it again.",
                False,
            ),
        },
    ),
    Quiz(
        id="rollout.review_td",
        question="World and policy leave nothing to chance, and the critic is right. A TD error is",
        options={
            "a": (
                "the reward of that step",
                "That is what V(s) − γ·V(next state) comes to. δ is the reward minus that.",
                False,
            ),
            "b": (
                "positive where the policy acts well",
                "The critic expects this policy, so it is not surprised by it.",
                False,
            ),
            "c": (
                "0, at every step",
                "Right: nothing happens that was not expected.",
                True,
            ),
        },
    ),
    Quiz(
        id="rollout.review_trace",
        question="γ = 0.9 and λ = 0.8. With which weight does δ_{t+2} enter Â_t?",
        options={
            "a": ("0.72² = 0.52", "Right: one factor γλ per step.", True),
            "b": (
                "0.9 · 0.8² = 0.58",
                "That is the missing parenthesis: γ·λ² in place of (γλ)².",
                False,
            ),
            "c": (
                "0.8² = 0.64",
                "γ counts as well: δ_{t+2} lies two steps in the future.",
                False,
            ),
        },
    ),
    Quiz(
        id="rollout.truncated_row",
        question="Row 9: terminated false, truncated true. What does Â_9 hold?",
        options={
            "a": (
                "Reward − V(s_9)",
                "That would be a terminated row. The future exists, nobody watches it.",
                False,
            ),
            "b": (
                "Reward + γ·V(state that was reached) − V(s_9)",
                "Right: δ keeps its bootstrap, and the sum stops.",
                True,
            ),
            "c": (
                "Reward + γ·V(state that was reached) − V(s_9) + γλ·Â_10",
                "Row 10 is another episode. What happens there is no news of this one.",
                False,
            ),
            "d": (
                "Reward + γ·V(s_10) − V(s_9)",
                "s_10 is where the next episode starts, not where row 9 led.",
                False,
            ),
        },
    ),
    Quiz(
        id="rollout.both_flags",
        question="Row 9: terminated true, truncated true. The future of row 9 counts",
        options={
            "a": (
                "0: the task is over, whoever watches",
                "Right: truncated adds nothing, since there is nothing to hide.",
                True,
            ),
            "b": (
                "γ·V of the state that was reached, because of truncated",
                "That V is a guess about a future that does not exist.",
                False,
            ),
            "c": (
                "what you like: two flags in one row are a bug of the environment",
                "A limit may strike at the very step that ends the task. TimeLimit then sets both.",
                False,
            ),
        },
    ),
    Quiz(
        id="rollout.last_row",
        question="Row T − 1, the last of the rollout: both flags false. Which rule gets its "
        "advantage right, and the return of its episode as well?",
        options={
            "a": (
                "Its future counts 0, since the data ends here",
                "Then each rollout teaches the critic that the world ends after T steps.",
                False,
            ),
            "b": (
                "Set truncated to true, and handle it like a limit",
                "The advantage would survive it. But the episode goes on in the "
                "next rollout: its length and its return would be cut in two.",
                False,
            ),
            "c": (
                "It bootstraps like any other; the sum ends there",
                "Right. The next rollout begins in the state that it reached.",
                True,
            ),
        },
    ),
    Quiz(
        id="rollout.reset_row",
        question="NEXT_STEP. Row 9 is truncated. Row 10: both flags false, reward 0. Row 10",
        options={
            "a": (
                "is the first step of the next episode",
                "The first step is row 11. Row 10 only went back to the start.",
                False,
            ),
            "b": (
                "is no step, and no loss may see it",
                "Right: its action was ignored, and `valid` is false there.",
                True,
            ),
            "c": (
                "may be learned: a reward of 0 does no harm",
                "It says that the last state leads to the first one for 0. That lowers the "
                "value of the last state: 7.84 in place of 10 at the lamp.",
                False,
            ),
        },
    ),
    Quiz(
        id="rollout.shaken",
        question="Row 9 is truncated. You add 100 to all rewards from row 10 on, and Â_9 changes. "
        "Which mistake can it not be?",
        options={
            "a": (
                "truncated was ignored",
                "It can: then the sum runs on into row 10.",
                False,
            ),
            "b": (
                "the flags stand one row too late",
                "It can: row 9 has no flag then, so its sum runs on as well.",
                False,
            ),
            "c": (
                "the flags were merged",
                "Right: merged flags let nothing in, not even what should be counted. You find "
                "them by shaking the value of the state that the limit hid.",
                True,
            ),
        },
    ),
)
