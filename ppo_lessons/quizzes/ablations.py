"""Questions of lesson 11: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="ablations.review_clip",
        question="A good action's ratio has gone beyond 1 + ε. What does the clip do to it?",
        options={
            "a": (
                "It pulls the ratio back to 1 + ε",
                "Nothing pulls. The gradient of that sample is 0, and momentum may carry on.",
                False,
            ),
            "b": (
                "It takes the reason away to push it further",
                "Right: the sample's gradient is 0 from there on.",
                True,
            ),
            "c": (
                "It keeps the step so small that this cannot happen",
                "At ratio 1 the clip changes no gradient, so the first step may go as far as it "
                "likes.",
                False,
            ),
        },
    ),
    Quiz(
        id="ablations.review_reuse",
        question="What do more epochs K buy, and what do they cost?",
        options={
            "a": (
                "They save environment steps, and cost computing and drift from π_old",
                "Right: each further pass moves away from the policy that collected the batch.",
                True,
            ),
            "b": (
                "They save computing, and cost environment steps",
                "The other way round: each pass is computing, on samples that are there already.",
                False,
            ),
            "c": (
                "They average out the noise of a batch, and cost nothing else",
                "It is the same noise in every pass. What they learn of it, they learn better and "
                "better.",
                False,
            ),
        },
    ),
    Quiz(
        id="ablations.review_seed",
        question="Two runs differ in their seed only. What is the same in both?",
        options={
            "a": (
                "The weights they start from, not their games",
                "The seed also draws the first weights.",
                False,
            ),
            "b": (
                "Everything but the noise at the end of training",
                "A run feeds on itself: other games give another policy, and that gives other "
                "games.",
                False,
            ),
            "c": (
                "The settings and the code, and nothing that was drawn",
                "Right: weights, actions, starts and minibatches all come from the seed.",
                True,
            ),
        },
    ),
    Quiz(
        id="ablations.three_seeds",
        question="Means of three seeds in a paper: 482 with its trick, 441 without. What follows?",
        options={
            "a": (
                "The trick helps, by about 41",
                "How far are three runs without the trick from three others without it? Until "
                "that is known, 41 may be nothing.",
                False,
            ),
            "b": (
                "Nothing yet: show the runs, add seeds, give an interval of the difference",
                "Right: with three seeds even the interval promises too much.",
                True,
            ),
            "c": (
                "The trick does not help, since three seeds are too few",
                "Too few to tell. That it makes no difference is not shown either.",
                False,
            ),
        },
    ),
    Quiz(
        id="ablations.middle_half",
        question="A setting fails in one run of five. What does its interquartile mean say?",
        options={
            "a": (
                "Nothing: the failures lie in the quarter that is left out",
                "Right. So look at all runs as well, or at the share above a threshold.",
                True,
            ),
            "b": (
                "It falls by a fifth",
                "That is the plain mean. The worst quarter does not enter the interquartile mean.",
                False,
            ),
            "c": (
                "It falls, but less than the mean does",
                "One run of five is less than a quarter: all failures are left out.",
                False,
            ),
        },
    ),
    Quiz(
        id="ablations.overlap",
        question="The intervals of two settings overlap a little. What may you say?",
        options={
            "a": (
                "They are equally good",
                "An interval that overlaps is no proof of equality. More seeds may part them.",
                False,
            ),
            "b": (
                "The one with the larger mean is better",
                "That holds for these runs. The question is what others would have been.",
                False,
            ),
            "c": (
                "By these intervals nothing: look at the interval of the difference, or add seeds",
                "Right: it is narrower than the two intervals suggest, and may leave out 0.",
                True,
            ),
        },
    ),
    Quiz(
        id="ablations.twenty",
        question="You compare 20 changes with a base, each at 95 %. Two are apart. What now?",
        options={
            "a": (
                "Both are real: each had only a chance of 5 % to come about by luck",
                "Each had. Of 20 such chances one comes true on average.",
                False,
            ),
            "b": (
                "Run these two again, with new seeds, before you believe them",
                "Right: the second time there are two comparisons and not 20.",
                True,
            ),
            "c": (
                "Neither is real, since luck explains two of 20",
                "It may explain them. It need not, and new seeds will tell.",
                False,
            ),
        },
    ),
    Quiz(
        id="ablations.exploration",
        question="Nobody has ever reached the reward. Why does an entropy bonus not help?",
        options={
            "a": (
                "It keeps actions random one by one, and chance one by one does not get there",
                "Right: it is at its best with a policy that tosses a coin in each step, and that "
                "is what has failed.",
                True,
            ),
            "b": (
                "It is too small; with a larger one the reward is found",
                "The largest one gives a policy that is random for ever.",
                False,
            ),
            "c": (
                "It makes the policy certain too early",
                "It does the opposite.",
                False,
            ),
        },
    ),
)
