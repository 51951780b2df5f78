"""Questions of lesson 12: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="debugging.review_ones",
        question="On the first minibatch of an iteration some ratios are 1.3. What does that say?",
        options={
            "a": (
                "Nothing: ratios differ from 1, that is what the clip is for",
                "They differ after the first step of the optimiser. Here none has been taken.",
                False,
            ),
            "b": (
                "The policy that is asked now is not the one that drew the actions, or not about "
                "the same observations",
                "No step has been taken, so π and π_old are one policy: what was written down does "
                "not belong to what is asked.",
                True,
            ),
            "c": (
                "The learning rate is too large",
                "It has not been used yet on this batch.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.review_masks",
        question="Which flag ends the bootstrap, and which the sum of GAE?",
        options={
            "a": (
                "`terminated` ends both, and `truncated` nothing",
                "Then the sum runs through a time limit into the next episode.",
                False,
            ),
            "b": (
                "`terminated` ends the bootstrap, either of them ends the sum",
                "Behind a time limit the future counts, and the next row is another episode.",
                True,
            ),
            "c": (
                "Either of them ends both",
                "Then a time limit counts as the end of the task: merged flags.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.review_explained",
        question="A critic says the same number everywhere. Its explained variance is",
        options={
            "a": ("1", "That is a critic that is right everywhere.", False),
            "b": ("0", "It explains nothing of how returns differ; a constant cannot.", True),
            "c": (
                "as large as the number is near to the mean return",
                "The explained variance does not see a constant: shift it, and nothing changes.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.order",
        question="Your own PPO does not learn. What first?",
        options={
            "a": (
                "A search over the learning rate",
                "No rate mends a sign. And a search answers slowly, with noise.",
                False,
            ),
            "b": (
                "The probes, in order",
                "Seconds, and you know beforehand what must come out. The first that fails names "
                "the part.",
                True,
            ),
            "c": (
                "A longer run on the real task",
                "If the program is wrong, you wait longer for the same news.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.all_pass",
        question="All probes pass, and a metric has left the healthy band for one iteration. So",
        options={
            "a": (
                "there is a bug: healthy runs stay in the band",
                "Each healthy run leaves the band of the others somewhere, for a while.",
                False,
            ),
            "b": (
                "there is no bug: all probes pass",
                "Probes find what they ask for. A new kind of fault needs a new probe.",
                False,
            ),
            "c": (
                "neither is shown; look whether it stays outside, and on other seeds",
                "An alarm that waits for a few iterations in a row is seldom false.",
                True,
            ),
        },
    ),
    Quiz(
        id="debugging.silent_policy",
        question="kl_k3 is 0 all along, ev_lambda rises to 0.6, gradient_norm is 3. Look at",
        options={
            "a": (
                "the way from the advantages to the policy's gradient",
                "The critic learns, so data, targets and optimiser work. The policy alone gets "
                "nothing.",
                True,
            ),
            "b": (
                "the optimiser: nothing moves",
                "The critic moves: it explains 0.6 of its targets.",
                False,
            ),
            "c": (
                "the learning rate, which is too small",
                "Both networks share it, and one of them learns.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.gradients",
        question="The audit says that all numbers agree. The policy stands still. How can that be?",
        options={
            "a": (
                "The audit is wrong",
                "It computed each number again. They are right; what is wrong is no number.",
                False,
            ),
            "b": (
                "A gradient is missing: the loss has the right value and the wrong slope",
                "detach in the wrong place, or missing, leaves no trace in values. Ask whether a "
                "step moves the ratios.",
                True,
            ),
            "c": (
                "The batch is too small",
                "A small batch makes noise; the policy would move, in some direction.",
                False,
            ),
        },
    ),
    Quiz(
        id="debugging.learned",
        question="The return reaches the goal. Is the program right?",
        options={
            "a": (
                "Yes: what is wrong cannot learn",
                "Six of the nineteen bugs of this lesson come past 400.",
                False,
            ),
            "b": (
                "Yes, if it does so on five seeds",
                "Seeds tell luck from skill. A bug that does little harm here does it on each of "
                "them.",
                False,
            ),
            "c": (
                "Not known: probes, first minibatch and audit ask the program, the return asks the "
                "task",
                "On another task the same bug may cost everything: a late reward costs nothing "
                "only where all rewards are alike.",
                True,
            ),
        },
    ),
)
