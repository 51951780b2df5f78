"""Lesson 15. Which part did they replace?

    collect   fresh responses, groups of them, or pairs drawn once
    score     a critic, the mean of the group, the others of the group, the mean of the batch
    squeeze   the weight of a token, the ratio, the clip, the place of the KL

Each method of the list is PPO's loop with some functions exchanged. `board` asks the functions
themselves which.
"""

from ppo_lessons.variants.advantages import (
    dr_grpo_advantages,
    for_every_token,
    group_advantages,
    group_means,
    group_spreads,
    reinforce_pp_advantages,
    reinforce_pp_baseline_advantages,
    rloo_advantages,
    token_rewards_to_go,
)
from ppo_lessons.variants.board import STAGES, Row, board, changes, describe
from ppo_lessons.variants.losses import (
    MODES,
    aggregate,
    asymmetric_surrogate,
    cispo_objective,
    dual_clipped_surrogate,
    kl_loss,
    sequence_ratios,
    sequence_surrogate_loss,
    token_surrogate_loss,
    token_weights,
)
from ppo_lessons.variants.methods import (
    METHODS,
    Method,
    cispo_loss,
    dapo_loss,
    find_method,
    from_scores,
    plain_sequence_loss,
    plain_token_loss,
    reinforce_pp_baseline_slot,
    reinforce_pp_slot,
    scores_themselves,
    unchanged,
)
from ppo_lessons.variants.offline import train_accepted, train_dpo
from ppo_lessons.variants.optimizer import warm_adam
from ppo_lessons.variants.preference import (
    dpo_loss,
    implicit_rewards,
    make_pairs,
    sequence_log_probs,
    token_dpo_loss,
)
from ppo_lessons.variants.sampling import (
    accepted,
    best_of_n,
    best_of_n_kl,
    best_of_n_policy,
    informative_groups,
    overlong_penalty,
)

__all__ = [
    "METHODS",
    "MODES",
    "STAGES",
    "Method",
    "Row",
    "accepted",
    "aggregate",
    "asymmetric_surrogate",
    "best_of_n",
    "best_of_n_kl",
    "best_of_n_policy",
    "board",
    "changes",
    "cispo_loss",
    "cispo_objective",
    "dapo_loss",
    "describe",
    "dpo_loss",
    "dr_grpo_advantages",
    "dual_clipped_surrogate",
    "find_method",
    "for_every_token",
    "from_scores",
    "group_advantages",
    "group_means",
    "group_spreads",
    "implicit_rewards",
    "informative_groups",
    "kl_loss",
    "make_pairs",
    "overlong_penalty",
    "plain_sequence_loss",
    "plain_token_loss",
    "reinforce_pp_advantages",
    "reinforce_pp_baseline_advantages",
    "reinforce_pp_baseline_slot",
    "reinforce_pp_slot",
    "rloo_advantages",
    "scores_themselves",
    "sequence_log_probs",
    "sequence_ratios",
    "sequence_surrogate_loss",
    "token_dpo_loss",
    "token_rewards_to_go",
    "token_surrogate_loss",
    "token_weights",
    "train_accepted",
    "train_dpo",
    "unchanged",
    "warm_adam",
]
