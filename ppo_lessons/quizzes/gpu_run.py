"""Questions of lesson 10: three that look back, five that close the lesson."""

from ppo_lessons.quizzes import Quiz

QUIZZES = (
    Quiz(
        id="gpu_run.review_stages",
        question="In which of the stages do the networks change?",
        options={
            "a": (
                "Collect: the agent learns while it plays",
                "It plays T steps with one and the same policy, or the ratios would have no π_old.",
                False,
            ),
            "b": (
                "Score: the critic finds out what was good",
                "The critic is asked there, and not changed. Its parameters move later.",
                False,
            ),
            "c": (
                "Squeeze: K epochs of minibatches",
                "Right, and in no other stage.",
                True,
            ),
        },
    ),
    Quiz(
        id="gpu_run.review_ends",
        question="A time limit cut the episode at step t. What stands behind the advantage there?",
        options={
            "a": (
                "V of the observation that step t reached, before the reset",
                "Right: the world would have gone on from there.",
                True,
            ),
            "b": (
                "V of the first observation of the next episode",
                "That is another game. Its value would leak into this one.",
                False,
            ),
            "c": (
                "0, since nothing comes after an end",
                "That holds where the task ended. A time limit is only where we stopped watching.",
                False,
            ),
        },
    ),
    Quiz(
        id="gpu_run.review_price",
        question="Collecting has become nearly free, squeezing has not. What do you change?",
        options={
            "a": (
                "More epochs, to get more out of each sample",
                "Epochs save samples and cost time. It is time that is dear now.",
                False,
            ),
            "b": (
                "Fewer epochs, and more fresh samples",
                "Right: reuse buys samples with computing, and samples have become cheap.",
                True,
            ),
            "c": (
                "Nothing: the best K belongs to the task",
                "It moves with what a step costs: lesson 08 showed it.",
                False,
            ),
        },
    ),
    Quiz(
        id="gpu_run.many_copies",
        question="Why do 1,024 copies in one call cost little more than one copy?",
        options={
            "a": (
                "The processor works on all of them at the same time",
                "A core works on a few numbers at a time. Most of the time of a small call goes "
                "elsewhere.",
                False,
            ),
            "b": (
                "What a call costs is mostly asking for its operations, and they are as many",
                "Right: the rows themselves are a small part until there are thousands.",
                True,
            ),
            "c": (
                "Most copies have ended and need no work",
                "Who ends starts anew within the same step: all rows are always at work.",
                False,
            ),
        },
    ),
    Quiz(
        id="gpu_run.million",
        question="An environment takes 1 µs a step, learning 9 µs. You make the environment ten "
        "times as fast. The whole becomes",
        options={
            "a": (
                "ten times as fast",
                "Only a tenth of the time was in the environment.",
                False,
            ),
            "b": (
                "5.5 times as fast, the mean of 10 and 1",
                "Speeds are not averaged. Add the times: 0.1 + 9 µs.",
                False,
            ),
            "c": (
                "a tenth faster",
                "Right: 10 µs become 9.1 µs.",
                True,
            ),
        },
    ),
    Quiz(
        id="gpu_run.item",
        question="What is wrong with printing the loss of every minibatch on a GPU?",
        options={
            "a": (
                "The number has to travel from the device",
                "Four bytes are nothing. It is what has to be finished before.",
                False,
            ),
            "b": (
                "Python waits until all queued work is done, and then the device waits for Python",
                "Right: each printed loss empties the queue. Keep the tensors, and read them once.",
                True,
            ),
            "c": (
                "Nothing, if the loss was detached before",
                "Detaching cuts the gradient. Reading the value waits all the same.",
                False,
            ),
        },
    ),
    Quiz(
        id="gpu_run.graph",
        question="Which of these keeps an iteration from being replayed as a CUDA graph?",
        options={
            "a": (
                "Actions that are drawn at random",
                "A generator on the device can be a part of the graph, and gives other numbers at "
                "each replay.",
                False,
            ),
            "b": (
                "A learning rate that falls from one iteration to the next",
                "Not if it is a tensor in a fixed place: what is written into it changes, the list "
                "of operations does not.",
                False,
            ),
            "c": (
                "A rule that ends the epochs as soon as the KL is too large",
                "Right: how many operations follow depends on a value, and the list is fixed.",
                True,
            ),
        },
    ),
    Quiz(
        id="gpu_run.ranks",
        question="Two ranks train one policy. What must differ between them?",
        options={
            "a": (
                "Their weights, so that they explore different things",
                "Then they would be two policies, and the gradient of one says nothing of the "
                "other.",
                False,
            ),
            "b": (
                "Their games: other seeds for environments and actions",
                "Right: with the same ones the second rank repeats the work of the first.",
                True,
            ),
            "c": (
                "The mean by which they normalise advantages",
                "That must be the same for both, or their average is another gradient.",
                False,
            ),
        },
    ),
)
