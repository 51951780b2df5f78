"""Questions of lesson 03: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="trust_region.review_surrogate",
        question="In the trap the surrogate was computed without noise and with right ratios. What "
        "was wrong with it?",
        options={
            "a": (
                "The advantages of the old policy were estimates",
                "They were exact, as was all else in it.",
                False,
            ),
            "b": (
                "It counted states as often as the old policy visits them",
                "Right: d_old in place of d_new is its one approximation, and a ratio corrects "
                "actions only.",
                True,
            ),
            "c": (
                "The ratios had become too large",
                "Large ratios make a sample mean noisy. Here nothing was sampled.",
                False,
            ),
        },
    ),
    Quiz(
        id="trust_region.review_logits",
        question="Two actions have probabilities 0.999 and 0.001. You draw the likely one and push "
        "it with ∇log π. How far do the logits move, compared with (0.5, 0.5)?",
        options={
            "a": (
                "Less: it is nearly certain already",
                "Right: the score is 1 − 0.999 for its logit and −0.001 for the other.",
                True,
            ),
            "b": (
                "More: it is the more probable action by far",
                "The score of a drawn action is 1 − π, so a likely one moves little.",
                False,
            ),
            "c": (
                "Equally: the score does not depend on π",
                "It is [a = b] − π(b): that depends on π.",
                False,
            ),
        },
    ),
    Quiz(
        id="trust_region.review_kl",
        question="You want to estimate KL(π_old ‖ π_new) as the mean of −log ratio. Over which "
        "actions do you take the mean?",
        options={
            "a": (
                "Over those that the new policy would draw",
                "That mean is minus the KL of the other order, KL(π_new ‖ π_old).",
                False,
            ),
            "b": (
                "Over all actions, each counted once",
                "An expectation weights each action by its probability.",
                False,
            ),
            "c": (
                "Over those that the old policy drew",
                "Right: the policy that stands first weights the mean, and its actions you have.",
                True,
            ),
        },
    ),
    Quiz(
        id="trust_region.ruler",
        question="Two updates both move one logit by 0.5. After the first the KL is 0.03, after "
        "the second 0.001. How can that be?",
        options={
            "a": (
                "One of the numbers is noise; equal steps have equal KL",
                "Equal steps in parameters are different steps in behaviour.",
                False,
            ),
            "b": (
                "The second began where an action was nearly certain",
                "Right: the KL of a small step x is p(1 − p)·x²/2, and near 1 p(1 − p) is small.",
                True,
            ),
            "c": (
                "The second had a smaller advantage",
                "The advantage may decide how far you step. Here both steps were 0.5.",
                False,
            ),
        },
    ),
    Quiz(
        id="trust_region.direction",
        question="The logits of the last layer are rescaled: each is now 5 times a parameter. The "
        "policies are the same. Which step leads to another policy than before?",
        options={
            "a": (
                "The plain gradient with the same learning rate",
                "Right: 5 times the slope, and each unit of it counts 5 times. It moves the "
                "policy 25 times as far.",
                True,
            ),
            "b": (
                "The natural gradient step with the same δ",
                "F is rescaled along with the gradient, and the two cancel.",
                False,
            ),
            "c": (
                "Neither: only the policies matter",
                "To the plain gradient the parameters matter, too.",
                False,
            ),
        },
    ),
    Quiz(
        id="trust_region.beta",
        question="You tune a fixed β on a task. Then somebody counts its rewards in cents instead "
        "of dollars, and advantages are not normalised. The steps become",
        options={
            "a": (
                "the same: a KL has no unit of reward",
                "The KL has none, but β turns it into one: reward per nat.",
                False,
            ),
            "b": (
                "far longer",
                "Right: L is 100 times as large, and the price is what it was.",
                True,
            ),
            "c": (
                "far shorter",
                "Larger advantages pull harder against the same price.",
                False,
            ),
        },
    ),
    Quiz(
        id="trust_region.bound",
        question="An article says: TRPO guarantees that every update improves the return. True?",
        options={
            "a": (
                "Yes, that is its theorem",
                "The theorem speaks of a price C that makes steps thousands of times too short. "
                "The algorithm does not use it.",
                False,
            ),
            "b": (
                "Yes, as long as the line search finds a step that it accepts",
                "It checks L and the mean KL on the batch. J it cannot see.",
                False,
            ),
            "c": (
                "No: δ is set by hand, and the mean stands for the maximum",
                "Right. In the trap L rose and J fell at a KL of 0.0014.",
                True,
            ),
        },
    ),
    Quiz(
        id="trust_region.early_stop",
        question="`stop_epochs` leaves out the remaining epochs of a batch when the KL of one is "
        "above 0.02. In the log you find a KL of 0.3. What happened?",
        options={
            "a": (
                "One epoch went that far, and the rule looked afterwards",
                "Right: it leaves later epochs out. It shortens no step and takes none back.",
                True,
            ),
            "b": (
                "The rule is broken, since after it no epoch's KL can be above 0.02",
                "It can, since the rule looks after the epoch and not during it.",
                False,
            ),
            "c": (
                "The rule went back to the policy before the epoch",
                "It keeps what it has. Going back would need a copy of the weights.",
                False,
            ),
        },
    ),
)
