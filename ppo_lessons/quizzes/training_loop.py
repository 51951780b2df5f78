"""Questions of lesson 08: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="training_loop.review_ratio",
        question="An action had probability 0.2 when it was drawn and has 0.8 now. Its ratio is",
        options={
            "a": ("0.25", "That is old over new; the ratio is new over old, 0.8 / 0.2.", False),
            "b": ("0.6", "That is the difference; the ratio is the quotient, 0.8 / 0.2.", False),
            "c": ("4", "0.8 / 0.2 = 4: the action is four times as likely as it was.", True),
        },
    ),
    Quiz(
        id="training_loop.review_lambda",
        question="In GAE, λ = 0 makes the advantage of a step",
        options={
            "a": (
                "the return minus V",
                "That is λ = 1: it waits for everything that happened.",
                False,
            ),
            "b": (
                "the TD error: one reward, then the critic is believed",
                "With λ = 0 the sum has one term, δ.",
                True,
            ),
            "c": ("zero", "It is δ, which is zero only where the critic is exactly right.", False),
        },
    ),
    Quiz(
        id="training_loop.review_ends",
        question="CartPole stops at 500 steps, and the pole still stands. For that last step GAE",
        options={
            "a": (
                "counts 0 for what follows, and cuts the sum",
                "That is a step that terminated. Here only the watching ends: the next state has "
                "a value.",
                False,
            ),
            "b": (
                "counts V of the state that was reached, and cuts the sum",
                "Truncated: the future exists, so it is bootstrapped; the next row is another "
                "episode, so the sum ends.",
                True,
            ),
            "c": (
                "counts V of the next row, and lets the sum go on",
                "The next row is the start of another episode. What happens there says nothing "
                "about this one.",
                False,
            ),
        },
    ),
    Quiz(
        id="training_loop.first_minibatch",
        question="Where in an iteration are all ratios exactly 1?",
        options={
            "a": (
                "On the first epoch",
                "The first gradient step moves the policy, so its second minibatch already "
                "differs.",
                False,
            ),
            "b": (
                "On the first minibatch of the first epoch",
                "No step has been taken on this batch yet: π and π_old are one policy.",
                True,
            ),
            "c": (
                "Nowhere",
                "Before the first step both policies have the same weights, and exp(0) is 1.",
                False,
            ),
        },
    ),
    Quiz(
        id="training_loop.frozen",
        question="During the K epochs, what changes?",
        options={
            "a": (
                "Only the two networks and the optimiser's memory",
                "Advantages, returns and old log-probabilities were written down once. Each "
                "minibatch normalises these same advantages anew.",
                True,
            ),
            "b": (
                "The advantages too, since the critic learns",
                "Here they are computed once, before the first epoch. To score anew before each "
                "epoch needs no new rollout, and is a variant.",
                False,
            ),
            "c": (
                "The old log-probabilities, after each epoch",
                "Then every epoch would begin with ratios of 1, and the clip would measure the "
                "step of one epoch instead of the step away from the data.",
                False,
            ),
        },
    ),
    Quiz(
        id="training_loop.two_fractions",
        question="fraction_outside is 0.25 and fraction_zero_gradient is 0.15. The other 0.10",
        options={
            "a": (
                "went the wrong way: outside, but their gradient is alive and pulls back",
                "A ratio above 1 + ε with a negative advantage, or below 1 − ε with a positive "
                "one, is on the side that the minimum leaves open.",
                True,
            ),
            "b": (
                "were counted twice",
                "The second fraction counts a part of the samples of the first.",
                False,
            ),
            "c": (
                "have an advantage of zero",
                "Such a sample pushes nothing anyway; it hardly ever occurs.",
                False,
            ),
        },
    ),
    Quiz(
        id="training_loop.dear",
        question="Your environment becomes a hundred times slower. How many epochs per rollout?",
        options={
            "a": (
                "Fewer, since everything takes longer now",
                "The squeeze takes as long as before. Beside the dear samples it costs next to "
                "nothing, so it pays to squeeze more.",
                False,
            ),
            "b": (
                "More, as long as each further epoch still saves samples",
                "The time is computing plus price times steps. When the second part is most of it, "
                "what saves steps wins; where the policy has drifted too far, nothing is saved.",
                True,
            ),
            "c": (
                "As many as before: K is a matter of learning, not of time",
                "How much a sample teaches does not change. What it costs does, and the best K is "
                "a bargain between the two.",
                False,
            ),
        },
    ),
    Quiz(
        id="training_loop.probe",
        question="Your agent passes every probe but two_step_discount. Where do you look first?",
        options={
            "a": (
                "At the policy loss",
                "reward_by_action and both need it, and they pass.",
                False,
            ),
            "b": (
                "At what links a step to the next: gamma, next_values, the recursion",
                "It is the only probe whose episodes have two steps.",
                True,
            ),
            "c": (
                "At the learning rate",
                "A bad one would fail the easier probes too.",
                False,
            ),
        },
    ),
)
