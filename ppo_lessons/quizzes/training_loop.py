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
        id="training_loop.review_clip",
        question="ε is 0.2, the advantage is positive and the ratio is 1.5. What does the clip do?",
        options={
            "a": (
                "It pulls the ratio back to 1.2",
                "Nothing is pulled: the objective is flat there, and a flat place has no slope.",
                False,
            ),
            "b": (
                "It stops paying for more: this sample's gradient is zero",
                "The minimum takes the clipped term, which is a constant.",
                True,
            ),
            "c": (
                "It forbids ratios above 1.2",
                "Other samples, or momentum, may carry the ratio further at any time.",
                False,
            ),
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
                "Advantages, returns and old log-probabilities were written down once.",
                True,
            ),
            "b": (
                "The advantages too, since the critic learns",
                "They were computed once, before the first epoch. Computing them anew each epoch "
                "needs no new rollout and is a variant of its own, but not this loop.",
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
        id="training_loop.no_ratio",
        question="You use a batch for 32 epochs with REINFORCE's loss and no ratio. What happens?",
        options={
            "a": (
                "Nothing special: the advantages stay right",
                "They were right for the policy that drew the actions. Each epoch pushes the same "
                "actions again, however likely they have become.",
                False,
            ),
            "b": (
                "The policy runs away from its data, since no step ever asks for less",
                "The slope in log π is the same at every probability, so the loss always pays for "
                "more. With the clip it is zero once the ratio has moved by ε.",
                True,
            ),
            "c": (
                "The loss rises, so you would see it",
                "The loss falls happily. It is kl_k3 that tells.",
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
