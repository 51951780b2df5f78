"""What is known of each bug: what it does, the number that betrays it, the test that holds it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ppo_lessons.debugging import zoo
from ppo_lessons.rollout import flags_merged, truncated_ignored_after_the_reset
from ppo_lessons.training_loop import PRESETS, Parts, PPOConfig

Stage = Literal["collect", "score", "squeeze"]

# The settings in which the bugs are shown: CartPole as one tensor program, and an entropy bonus.
ZOO_CONFIG: PPOConfig = replace(PRESETS["batched"].config, entropy_coef=0.05)


class Trace(NamedTuple):
    """Where a bug shows in the metrics of a run.

    Attributes:
        metric: a name of `docs/notation.md`; empty if no metric of a run shows it.
        how: what that number does, in words.
    """

    metric: str
    how: str


@dataclass(frozen=True)
class Bug:
    """One wrong function in one slot of the loop, and all that is known about it.

    Attributes:
        name: identifier.
        title: heading for people.
        sentence: what is wrong.
        stage: collect, score or squeeze.
        slot: where its function stands in `Parts`.
        function: the wrong function.
        betrayed_by: the metric of a run in which it shows, and how.
        lesson: name of the lesson that explains the right way.
        test: the test that refuses it, as `tests/test_<lesson>.py::<name>`.
    """

    name: str
    title: str
    sentence: str
    stage: Stage
    slot: str
    function: Callable[..., Any]
    betrayed_by: Trace
    lesson: str
    test: str

    @property
    def parts(self) -> Parts:
        """The loop with this one function replaced."""
        return Parts(**{self.slot: self.function})

    @property
    def source(self) -> str:
        """The code of the wrong function."""
        return inspect.getsource(self.function)


_ALL = (
    Bug(
        name="probabilities_as_logits",
        title="Softmax twice",
        sentence="Probabilities are handed over as logits, so a second softmax flattens them: of "
        "two actions none can be likelier than 0.731.",
        stage="collect",
        slot="networks",
        function=zoo.probabilities_as_logits,
        betrayed_by=Trace("entropy", "never falls below 0.582 nats (two actions)"),
        lesson="reinforce",
        test="tests/test_training_loop.py::test_a_policy_can_be_certain",
    ),
    Bug(
        name="observations_late",
        title="Observations one step late",
        sentence="Each row holds the observation after the step, beside an action that was chosen "
        "before it.",
        stage="collect",
        slot="collect",
        function=zoo.observations_late,
        betrayed_by=Trace("kl_k1", "is far from kl_k3: the mean ratio is not 1"),
        lesson="rollout",
        test="tests/test_rollout.py::test_observations_are_those_acted_on",
    ),
    Bug(
        name="flags_merged",
        title="A time limit counts as the end",
        sentence="`terminated` and `truncated` are merged, so the future that a time limit hides "
        "counts 0.",
        stage="score",
        slot="advantages",
        function=flags_merged,
        betrayed_by=Trace("value_loss", "stays large where all episodes reach the time limit"),
        lesson="rollout",
        test="tests/test_gae.py::test_truncation_keeps_the_bootstrap",
    ),
    Bug(
        name="truncation_dropped",
        title="Truncation is not looked at",
        sentence="`truncated` is ignored: where a time limit cuts an episode, value and sum come "
        "from the next one.",
        stage="score",
        slot="advantages",
        function=truncated_ignored_after_the_reset,
        betrayed_by=Trace("", "shows in no metric of these runs"),
        lesson="rollout",
        test="tests/test_gae.py::test_nothing_after_a_truncation_matters",
    ),
    Bug(
        name="termination_ignored",
        title="No end ends anything",
        sentence="The bootstrap is not cut at a termination: a task that is over counts as if it "
        "went on.",
        stage="score",
        slot="advantages",
        function=zoo.termination_ignored,
        betrayed_by=Trace(
            "ev_monte_carlo", "is 0 while value_loss vanishes and episodes still end"
        ),
        lesson="gae",
        test="tests/test_gae.py::test_termination_ends_bootstrap_and_sum",
    ),
    Bug(
        name="rewards_shifted",
        title="Rewards one step late",
        sentence="Each action is paid for the step before it.",
        stage="score",
        slot="advantages",
        function=zoo.rewards_shifted,
        betrayed_by=Trace("", "shows in no metric where every step pays the same"),
        lesson="rollout",
        test="tests/test_gae.py::test_lambda_zero_is_the_td_error",
    ),
    Bug(
        name="normalized_too_early",
        title="Returns of normalised advantages",
        sentence="Advantages are normalised before the returns are made of them, so the critic's "
        "target is its own guess plus noise of size 1.",
        stage="score",
        slot="advantages",
        function=zoo.normalized_too_early,
        betrayed_by=Trace("value_loss", "stays near ½, whatever the returns do"),
        lesson="gae",
        test="tests/test_training_loop.py::"
        "test_returns_are_advantages_plus_values_before_any_normalising",
    ),
    Bug(
        name="rows_repeated",
        title="One minibatch, again and again",
        sentence="Each epoch deals its first minibatch M times; the other rows are thrown away "
        "unread.",
        stage="squeeze",
        slot="minibatches",
        function=zoo.rows_repeated,
        betrayed_by=Trace("kl_k1", "differs from kl_k3 by more than so many samples allow"),
        lesson="training_loop",
        test="tests/test_training_loop.py::test_the_minibatches_of_an_epoch_are_a_partition",
    ),
    Bug(
        name="normalized_over_the_wrong_axis",
        title="Normalised over the wrong axis",
        sentence="A column of advantages is normalised along its rows, so each sample is compared "
        "with itself, and every advantage is 0.",
        stage="squeeze",
        slot="normalize",
        function=zoo.normalized_over_the_wrong_axis,
        betrayed_by=Trace("policy_loss", "is exactly 0"),
        lesson="gae",
        test="tests/test_gae.py::test_normalised_advantages_have_mean_zero_and_deviation_one",
    ),
    Bug(
        name="old_recomputed",
        title="Old log-probabilities recomputed",
        sentence="The policy of this moment is asked for the old log-probabilities: the ratio is "
        "always 1, and the clip never acts.",
        stage="squeeze",
        slot="policy_loss",
        function=zoo.old_recomputed,
        betrayed_by=Trace("policy_loss", "stays at 0 while the policy moves"),
        lesson="importance",
        test="tests/test_clip.py::test_the_loss_is_minus_the_mean_objective",
    ),
    Bug(
        name="old_on_the_graph",
        title="Old log-probabilities not detached",
        sentence="The old log-probabilities are recomputed and not detached: the two slopes cancel "
        "and the policy gets no gradient.",
        stage="squeeze",
        slot="policy_loss",
        function=zoo.old_on_the_graph,
        betrayed_by=Trace("policy_loss", "stays at 0, and the policy does not move"),
        lesson="importance",
        test="tests/test_clip.py::test_old_log_probs_that_still_hang_on_the_graph_are_constants",
    ),
    Bug(
        name="old_and_new_swapped",
        title="Old and new swapped",
        sentence="The ratio is old over new, so what is better than expected becomes rare.",
        stage="squeeze",
        slot="policy_loss",
        function=zoo.old_and_new_swapped,
        betrayed_by=Trace(
            "fraction_zero_gradient", "is a fifth of fraction_outside, where half and more is usual"
        ),
        lesson="importance",
        test="tests/test_clip.py::test_a_step_down_the_loss_makes_the_good_arm_likelier",
    ),
    Bug(
        name="clip_on_the_wrong_side",
        title="Maximum instead of minimum",
        sentence="The larger of the two terms is taken: the clip ends the pull back, and nothing "
        "ends the push away.",
        stage="squeeze",
        slot="policy_loss",
        function=zoo.clip_on_the_wrong_side,
        betrayed_by=Trace("policy_loss", "falls below −ε, which no clip at ε can pay"),
        lesson="clip",
        test="tests/test_clip.py::test_the_loss_is_minus_the_mean_objective",
    ),
    Bug(
        name="values_broadcast",
        title="A column against a row",
        sentence="Values [N, 1] are compared with returns [N], which gives N × N errors: every "
        "value learns the mean of all returns.",
        stage="squeeze",
        slot="value_loss",
        function=zoo.values_broadcast,
        betrayed_by=Trace("ev_lambda", "stays at 0: the critic says the same everywhere"),
        lesson="critic",
        test="tests/test_critic.py::test_a_column_against_a_row_is_refused",
    ),
    Bug(
        name="critic_not_trained",
        title="The critic is not trained",
        sentence="The value loss is missing in the sum, so the critic stays what it was drawn as.",
        stage="squeeze",
        slot="total_loss",
        function=zoo.critic_not_trained,
        betrayed_by=Trace("value_loss", "grows with the returns, and nothing lowers it"),
        lesson="critic",
        test="tests/test_training_loop.py::test_a_step_brings_the_critic_nearer_to_the_returns",
    ),
    Bug(
        name="entropy_punished",
        title="The sign of the entropy",
        sentence="The entropy is added to what is minimised, so the policy is paid for being sure.",
        stage="squeeze",
        slot="total_loss",
        function=zoo.entropy_punished,
        betrayed_by=Trace("entropy", "ends far below that of the right loop with the same bonus"),
        lesson="training_loop",
        test="tests/test_training_loop.py::test_a_step_on_the_entropy_alone_raises_it",
    ),
    Bug(
        name="steps_too_long",
        title="Learning rate × 30",
        sentence="The learning rate is thirty times what it should be.",
        stage="squeeze",
        slot="gradient_step",
        function=zoo.steps_too_long,
        betrayed_by=Trace("kl_k3", "is large from the first iteration on"),
        lesson="training_loop",
        test="tests/test_training_loop.py::"
        "test_a_long_gradient_is_shortened_and_a_short_one_is_not",
    ),
    Bug(
        name="gradients_never_cleared",
        title="No zero_grad",
        sentence="Gradients are added to those of all steps before.",
        stage="squeeze",
        slot="gradient_step",
        function=zoo.gradients_never_cleared,
        betrayed_by=Trace("", "shows in no metric clearly: the steps gain momentum"),
        lesson="training_loop",
        test="tests/test_training_loop.py::test_a_step_forgets_the_gradient_of_the_step_before",
    ),
    Bug(
        name="gradients_cut_to_nothing",
        title="Gradients shortened to nothing",
        sentence="The longest gradient that is allowed is so short that Adam's ε outweighs it.",
        stage="squeeze",
        slot="gradient_step",
        function=zoo.gradients_cut_to_nothing,
        betrayed_by=Trace("kl_k3", "is near 0, while gradient_norm is large"),
        lesson="training_loop",
        test="tests/test_training_loop.py::"
        "test_a_long_gradient_is_shortened_and_a_short_one_is_not",
    ),
)

BUGS: Mapping[str, Bug] = MappingProxyType({bug.name: bug for bug in _ALL})
