"""List the implementation details of PPO, and where the course has them: `docs/details.md`.

python tools/list_details.py build | check
"""

import sys
from pathlib import Path
from typing import NamedTuple

from ppo_lessons.lessons import find_lesson

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "details.md"
HEAD = """# The 37 details, and where they are

PPO is one line in the paper and a few hundred in a program that works. What stands in those other
lines was counted by Huang, Dossa, Raffin, Kanervisto and Wang in *The 37 Implementation Details of
Proximal Policy Optimization* ([ICLR blog track, 2022][source]): 13 that every PPO has, 9 for
Atari, 9 for continuous actions, 5 for networks with a memory, and one for actions of several parts.
The order is theirs, the words are ours.

Each row says to which lesson a detail belongs, which function has it and which test holds it there.
*Planned* means that the lesson is not written yet. *Not covered* means that the course does not go
there, and you should know that it does not. Of the 37, {covered} are covered, {planned} planned
and {missing} not covered.

This page is made by `python tools/list_details.py build`.

[source]: https://iclr-blog-track.github.io/2022/03/25/ppo-implementation-details/
"""


class Detail(NamedTuple):
    """One detail.

    Args:
        title: a few words.
        what: what a program does there, and where ours differs.
        lesson: name of the lesson that explains it, "" if none will.
        functions: with their modules, as in "gae.compute_gae".
        tests: as in "test_gae.test_lambda_zero_is_the_td_error".
    """

    title: str
    what: str
    lesson: str = ""
    functions: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Say "covered", "planned" or "not covered"."""
        if self.tests:
            return "covered"
        return "planned" if self.lesson else "not covered"


CORE = (
    Detail(
        "Many environments at once",
        "N copies take T steps each; the next rollout goes on where this one stopped, "
        "so long episodes may span several.",
        "rollout",
        ("rollout.collect_rollout", "envs.GymEnvs"),
        ("test_rollout.test_the_next_rollout_goes_on_where_the_last_one_stopped",),
    ),
    Detail(
        "Orthogonal weights, zero biases",
        "Gain √2 in hidden layers, 1 for the value, 0.01 for the policy, whose first actions "
        "are thus nearly equally likely.",
        "critic",
        ("networks.linear", "networks.mlp"),
        (
            "test_networks.test_initial_weights_are_orthogonal_times_the_gain",
            "test_networks.test_biases_are_zero",
            "test_networks.test_the_first_policy_is_nearly_uniform",
        ),
    ),
    Detail(
        "Adam's small constant",
        "10⁻⁵, and not the 10⁻⁸ or 10⁻⁷ that libraries take.",
        "training_loop",
        ("training_loop.make_optimizer",),
        ("test_parts.test_the_optimizer_is_adam_with_the_epsilon_of_ppo_code",),
    ),
    Detail(
        "A learning rate that falls",
        "Linearly over the iterations, to 0 or to a fraction of where it began.",
        "training_loop",
        ("training_loop.PPOConfig.learning_rate_at",),
        ("test_training_loop.test_the_learning_rate_falls_linearly",),
    ),
    Detail(
        "GAE",
        "Advantages by one backward pass, targets as advantages plus values. Where a time limit "
        "cuts an episode the original counts the future as 0; ours asks the critic.",
        "gae",
        ("gae.compute_gae",),
        (
            "test_gae.test_the_recursion_is_the_double_sum",
            "test_gae.test_truncation_keeps_the_bootstrap",
        ),
    ),
    Detail(
        "Shuffled minibatches",
        "Each epoch deals the whole batch anew, and every row comes once.",
        "training_loop",
        ("training_loop.shuffled_minibatches",),
        (
            "test_training_loop.test_the_minibatches_of_an_epoch_are_a_partition",
            "test_training_loop.test_every_epoch_deals_anew",
        ),
    ),
    Detail(
        "Normalised advantages",
        "Within each minibatch, after the targets have been built. Ours divides by the "
        "population's deviation, so that one sample gives 0 and not NaN.",
        "gae",
        ("gae.normalize_advantages",),
        (
            "test_gae.test_a_minibatch_may_turn_the_sign",
            "test_gae.test_normalising_leaves_the_advantages_from_which_returns_are_built",
        ),
    ),
    Detail(
        "The clipped surrogate",
        "The one line of the paper.",
        "clip",
        ("clip.clipped_surrogate", "clip.clipped_surrogate_loss"),
        ("test_clip.test_the_gradient_ends_only_where_the_action_has_moved_far_enough",),
    ),
    Detail(
        "A clipped value loss",
        "The value, too, may only move by ε. The preset `classic` has it; by default ours does "
        "not, since that ε has the unit of the rewards.",
        "critic",
        ("critic.clipped_value_loss",),
        (
            "test_critic.test_the_clipped_loss_takes_the_larger_error",
            "test_presets.test_classic_clips_its_value_loss_and_changes_nothing_else",
        ),
    ),
    Detail(
        "One loss with an entropy bonus",
        "Policy loss, plus a share of the value loss, minus a share of the entropy.",
        "training_loop",
        ("training_loop.ppo_loss",),
        (
            "test_training_loop.test_the_loss_is_the_three_terms_by_hand",
            "test_training_loop.test_a_step_on_the_entropy_alone_raises_it",
        ),
    ),
    Detail(
        "One limit for the whole gradient",
        "If the gradient of all parameters together is longer than 0.5, it is shortened to that.",
        "training_loop",
        ("training_loop.clipped_gradient_step",),
        (
            "test_training_loop.test_a_long_gradient_is_shortened_and_a_short_one_is_not",
            "test_training_loop.test_policy_and_critic_are_shortened_together",
        ),
    ),
    Detail(
        "Numbers to watch",
        "Losses, entropy, clip fraction and an estimate of the KL. Ours adds the share of samples "
        "without a gradient, and explained variance of two kinds.",
        "training_loop",
        ("clip.clip_fractions", "importance.approximate_kl", "critic.explained_variance"),
        (
            "test_training_loop.test_what_is_measured_is_measured_before_the_step",
            "test_clip.test_outside_is_not_without_gradient",
        ),
    ),
    Detail(
        "Shared or separate networks",
        "One network with two heads, or two networks. Ours has two; what sharing costs a trust "
        "region is shown in lesson 03.",
        "training_loop",
        ("networks.make_networks",),
        ("test_networks.test_policy_and_critic_share_nothing",),
    ),
)

ATARI = (
    Detail("Idle steps at the start", "Up to 30 of them, so that episodes begin differently."),
    Detail(
        "Repeated actions",
        "Each action is held for four frames; the maximum of the last two is kept, "
        "since sprites flicker.",
    ),
    Detail("A lost life ends the episode", "For the learner, while the game goes on."),
    Detail("Fire to begin", "The button is pressed after a reset, in games that wait for it."),
    Detail("Small grey frames", "84 × 84 pixels, one channel."),
    Detail("Signs for rewards", "Only −1, 0 and +1 are kept, so that games are alike."),
    Detail("Stacked frames", "The last four together, so that speed can be seen."),
    Detail(
        "One convolutional network",
        "Three convolutions, shared by policy and critic. Ours has one, for boards of 10 × 10, and "
        "policy and critic share nothing.",
        "gpu_run",
        ("networks.pixel_networks",),
        ("test_networks.test_each_filter_sees_three_by_three_cells_of_all_channels",),
    ),
    Detail(
        "Pixels from 0 to 1",
        "Divided by 255. Our boards are kept as bools, one byte a cell, and become 0 and 1 where a "
        "network looks.",
        "gpu_run",
        ("networks.pixel_networks", "rollout.collect_rollout"),
        ("test_rollout.test_observations_keep_their_dtype_and_actions_their_shape",),
    ),
)

CONTINUOUS = (
    Detail(
        "Normal distributions",
        "The network gives their means.",
        "continuous",
        ("networks.GaussianPolicy", "networks.gaussian_log_probs"),
        (
            "test_networks.test_gaussian_log_probs_are_those_of_torch",
            "test_networks.test_draws_have_the_mean_and_the_spread_they_should_have",
        ),
    ),
    Detail(
        "Spread without state",
        "The logarithm of σ is a parameter of its own, 0 at first, the same in all states.",
        "continuous",
        ("networks.GaussianPolicy",),
        ("test_networks.test_mean_and_spread_are_learned",),
    ),
    Detail(
        "Independent dimensions",
        "The log-probability of an action is the sum over its dimensions, and so is the entropy.",
        "continuous",
        ("networks.gaussian_log_probs", "networks.gaussian_entropies"),
        (
            "test_networks.test_a_density_adds_up_to_one",
            "test_networks.test_gaussian_entropies_are_those_of_torch",
        ),
    ),
    Detail(
        "Separate networks",
        "Policy and critic share nothing, with two layers of 64 each.",
        "continuous",
        ("networks.make_networks",),
        ("test_networks.test_policy_and_critic_share_nothing",),
    ),
    Detail(
        "Two actions, one stored",
        "The batch keeps the action as it was drawn, and the environment cuts it to its range.",
        "continuous",
        ("envs.GymEnvs", "envs.BatchedEnvs"),
        ("test_envs.test_actions_are_cut_to_the_box_and_arrive_in_its_dtype",),
    ),
    Detail(
        "Normalised observations",
        "By a running mean and variance, frozen in a test and kept in the checkpoint.",
        "continuous",
        ("envs.NormalizedEnvs", "envs.RunningMoments"),
        (
            "test_envs_normalized.test_observations_are_shown_by_the_statistics_of_all_seen_so_far",
            "test_envs_normalized.test_frozen_environments_show_through_the_same_statistics_and_move_nothing",
        ),
    ),
    Detail(
        "Clipped observations",
        "To ±10, after that.",
        "continuous",
        ("envs.NormalizedEnvs",),
        ("test_envs_normalized.test_nothing_is_larger_than_the_limit",),
    ),
    Detail(
        "Scaled rewards",
        "Divided by the deviation of a running discounted sum; no mean is subtracted.",
        "continuous",
        ("envs.NormalizedEnvs",),
        (
            "test_envs_normalized.test_rewards_are_divided_by_the_spread_of_the_discounted_return",
            "test_envs_normalized.test_a_reward_keeps_its_sign",
        ),
    ),
    Detail(
        "Clipped rewards",
        "To ±10, after that.",
        "continuous",
        ("envs.NormalizedEnvs",),
        ("test_envs_normalized.test_nothing_is_larger_than_the_limit",),
    ),
)

MEMORY = (
    Detail("Initial weights", "Orthogonal with gain 1, biases 0."),
    Detail("A first memory of zeros", "Before the first step of a run."),
    Detail("Forget at an end", "The memory is set to zero where an episode ended."),
    Detail(
        "Minibatches of environments",
        "Steps of one environment stay together and in order; whole environments are dealt.",
    ),
    Detail(
        "The memory is rebuilt",
        "In each epoch from its value at the start of the rollout, with the new weights.",
    ),
)

PARTS = (
    Detail(
        "Independent parts",
        "A draw for each part of the action; their log-probabilities are added.",
    ),
)

BESIDE = (
    Detail(
        "Actions that are ruled out",
        "Invalid-action masking: the logit of a move that is not allowed becomes −∞, when drawing "
        "and when learning. Our policy bears such logits, with a finite entropy and gradient; "
        "no environment of the course gives a mask.",
        "",
        ("networks.CategoricalPolicy",),
        ("test_networks.test_an_action_that_is_ruled_out_adds_nothing_to_the_entropy",),
    ),
    Detail(
        "Stop on KL",
        "The remaining epochs are left out once the policy has moved too far.",
        "trust_region",
        ("trust_region.stop_on_kl",),
        ("test_training_loop.test_stopping_leaves_the_remaining_epochs_out",),
    ),
    Detail("A clip that narrows", "ε falls over the run, like the learning rate."),
    Detail(
        "Several processes",
        "Each has its environments; gradients are averaged. So are the statistics of the "
        "advantages, which the post leaves to each process.",
        "gpu_run",
        ("gpu_run.reduced_gradient_step", "gpu_run.normalize_over_ranks"),
        ("test_gpu_run_ranks.test_two_processes_share_a_policy_and_go_on_bit_by_bit",),
    ),
)

GROUPS = {
    "Core": CORE,
    "Atari": ATARI,
    "Continuous actions": CONTINUOUS,
    "Networks with a memory (LSTM)": MEMORY,
    "Actions of several parts (MultiDiscrete)": PARTS,
}
EXTRA = "Beside the 37"


def page() -> str:
    """Write the list as Markdown, a table per group; the numbers run from 1 to 37."""
    details = [detail for group in GROUPS.values() for detail in group]
    states = [detail.state for detail in details]
    counts = {
        "covered": states.count("covered"),
        "planned": states.count("planned"),
        "missing": states.count("not covered"),
    }
    lines, number = [HEAD.format(**counts)], 0
    for title, group in {**GROUPS, EXTRA: BESIDE}.items():
        lines += [f"## {title}", ""]
        lines += ["| | detail | lesson | where | held by |", "| ---: | --- | --- | --- | --- |"]
        for detail in group:
            number += 1
            label = "" if title == EXTRA else str(number)
            lines.append(row(label, detail))
        lines.append("")
    return "\n".join(lines)


def row(label: str, detail: Detail) -> str:
    """Write one row."""
    where = "<br>".join(f"`{function}`" for function in detail.functions)
    held = "<br>".join(f"`{test.replace('.', '.py::')}`" for test in detail.tests)
    words = f"**{detail.title}.** {detail.what}"
    return f"| {label} | {words} | {lesson_cell(detail)} | {where} | {held or detail.state} |"


def lesson_cell(detail: Detail) -> str:
    """Name the lesson, with a link if there is a notebook to open."""
    if not detail.lesson:
        return ""
    lesson = find_lesson(detail.lesson)
    title = f"{lesson.number:02d} {lesson.title}"
    return f"[{title}](../notebooks/{lesson.stem}.ipynb)" if lesson.notebook else title


def main() -> int:
    """Build the page, or say whether it is current."""
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in ("build", "check"):
        print("usage: python tools/list_details.py build | check", file=sys.stderr)
        return 2
    text = page()
    if verb == "build":
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/details.md is not current: python tools/list_details.py build", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
