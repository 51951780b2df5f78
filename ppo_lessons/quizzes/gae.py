"""Questions of lesson 06: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="gae.review_baseline",
        question="REINFORCE weights each push by the reward-to-go. You subtract a number b(s) "
        "from it. The mean push",
        options={
            "a": (
                "moves, unless b(s) is the true V(s)",
                "Any b(s) will do: it is fixed before the action is drawn, and the score has "
                "mean zero.",
                False,
            ),
            "b": (
                "stays as it is, however wrong b(s) is",
                "Right. A bad b(s) costs noise, not direction. Remember this one for today.",
                True,
            ),
            "c": (
                "becomes 0, and only the noise is left",
                "The score has mean zero, but score times reward-to-go does not.",
                False,
            ),
        },
    ),
    Quiz(
        id="gae.review_surrogate",
        question="An advantage has the wrong sign. What do ratio and clip do about it?",
        options={
            "a": (
                "Nothing: the push has the wrong sign, until it falls silent",
                "Right. Both take the advantage as given. So it had better be good.",
                True,
            ),
            "b": (
                "The ratio corrects it, since it reweights the sample",
                "The ratio corrects for how often the action is drawn now, not for what it was "
                "worth.",
                False,
            ),
            "c": (
                "The clip turns the push round once the ratio leaves the interval",
                "The clip makes the push end there. It never turns it.",
                False,
            ),
        },
    ),
    Quiz(
        id="gae.review_critic",
        question="From some state the return is 0 half of the time and 10 otherwise. A critic is "
        "fitted there by squared error. It learns to say",
        options={
            "a": (
                "0 or 10, whichever came last",
                "One step of learning moves it a little towards what came last; it comes to rest "
                "in between.",
                False,
            ),
            "b": (
                "10, since that is what can be reached",
                "A critic tells what the policy gets, not what would be possible.",
                False,
            ),
            "c": (
                "5, the mean",
                "Right: the mean makes the squared error smallest. No game has to end there.",
                True,
            ),
        },
    ),
    Quiz(
        id="gae.long_view",
        question="γ is 1. The TD errors of a finished game are −2, 4 and 2. What is the "
        "advantage of the first move at λ = 1?",
        options={
            "a": (
                "−2",
                "That is λ = 0: the first surprise alone.",
                False,
            ),
            "b": (
                "1.33, their mean",
                "The weights (γλ)ˡ are 1, 1, 1 here. They are not divided by three.",
                False,
            ),
            "c": (
                "4",
                "Right: −2 + 4 + 2, the return minus what was expected at the start.",
                True,
            ),
        },
    ),
    Quiz(
        id="gae.which_error",
        question="λ is 0. The critic is wrong in the state s that you are in, and right in all "
        "states that may follow. The mean of the pushes on the actions in s is",
        options={
            "a": (
                "right: the error is the same for each action",
                "Right. In s the critic is a baseline, and a baseline's error cancels.",
                True,
            ),
            "b": (
                "wrong, since λ = 0 trusts the critic completely",
                "It trusts it as a forecast, in the *next* state. There it is right.",
                False,
            ),
            "c": (
                "right only if the critic is wrong by a constant, the same in all states",
                "The error of this one state is enough of a constant: its actions share it.",
                False,
            ),
        },
    ),
    Quiz(
        id="gae.advantage_bias",
        question="A critic says half of V. Whole episodes, γ = 1, λ = 1. Then on average",
        options={
            "a": (
                "advantages and gradient are both right",
                "Each advantage is off by what the critic misses in that state.",
                False,
            ),
            "b": (
                "the gradient is right, and each advantage is wrong",
                "Right. The error of V(s) is in every advantage, and cancels in the gradient.",
                True,
            ),
            "c": (
                "the advantages are right, and the gradient is wrong",
                "The other way round: errors of advantages can cancel when they are summed.",
                False,
            ),
            "d": (
                "both are wrong, since the critic is",
                "At λ = 1 it is a baseline and nothing else.",
                False,
            ),
        },
    ),
    Quiz(
        id="gae.ten_times",
        question="On the walk, the critic says half of V and stays like that. You can afford ten "
        "times as many episodes. The λ with the least error of the gradient is now",
        options={
            "a": (
                "smaller: more data make the critic's word more reliable",
                "The critic stays the same by assumption. Only the luck of the episodes is "
                "averaged out.",
                False,
            ),
            "b": (
                "the same: it is a property of the task",
                "Bias does not shrink with n, variance does. So the balance between them moves.",
                False,
            ),
            "c": (
                "larger or the same: there is less noise to buy off with bias",
                "Right. From 1 episode to 10 it went from 0.57 to 0.87.",
                True,
            ),
        },
    ),
    Quiz(
        id="gae.targets",
        question="The critic says 100 in all states, and everything that follows is worth about "
        "150. A program adds V to advantages that it has normalised, and trains the critic on "
        "that. What does the critic do?",
        options={
            "a": (
                "It comes to say 150, only more slowly than with raw advantages",
                "The targets lie around what it says already. The 50 that it misses is the mean "
                "of the advantages, and that was taken off.",
                False,
            ),
            "b": (
                "It goes on saying about 100: its targets lie around that",
                "Right. Build the targets from raw advantages, then normalise.",
                True,
            ),
            "c": (
                "It runs to 0, the mean of normalised advantages",
                "The targets are V plus a number around 0, so they lie around V, and not around 0.",
                False,
            ),
            "d": (
                "It comes to say 150, since normalising leaves the order as it is",
                "The order stays. But the critic needs the size, and the size is gone.",
                False,
            ),
        },
    ),
)
