"""What the audit can be given, under which name; and what two libraries call it."""

from collections.abc import Mapping
from types import MappingProxyType

# By time and environment: [T, N], or [T] for one environment.
ROWS = {
    "rewards": "r_t, as the environment paid them",
    "bootstrapped_rewards": "r_t, plus γ·V(last observation) where a time limit ended the episode",
    "values": "V(s_t) when the rollout was scored",
    "next_values": "V(s_{t+1}) before any reset",
    "td_errors": "δ_t",
    "advantages": "Â_t, before they are normalised",
    "returns": "the critic's target",
}
FLAGS = {
    "terminated": "the task ended with this step",
    "truncated": "a time limit ended the episode with this step",
    "ended": "one of the two, where a program has one flag only",
    "starts": "this row is the first of an episode",
    "valid": "this row is a real step",
}
# One number for each environment: [N].
COLUMNS = {
    "last_values": "V of what came after the last row",
    "last_ended": "the last row ended an episode; it completes `starts`",
}
# By sample, in the order of the rows or of `indices`: [B], or [B, A] before summing over A.
SAMPLES = {
    "log_probs": "log π of the actions now",
    "log_probs_old": "log π_old of the actions",
    "ratios": "π / π_old",
    "entropies": "H of the policy at each sample",
    "normalized_advantages": "Â as the policy loss sees it",
    "new_values": "V(s) now, as the value loss sees it",
}
RESULTS = {
    "policy_loss": "what is minimised for the policy",
    "value_loss": "what is minimised for the critic",
    "entropy": "mean entropy",
    "total_loss": "the sum that is minimised",
}
SETTINGS = {
    "gamma": "γ",
    "gae_lambda": "λ",
    "clip_epsilon": "ε",
    "value_clip_epsilon": "ε of the value loss, where it is meant to be clipped",
    "value_coef": "c₁",
    "entropy_coef": "c₂",
}
INDICES = {"indices": "which rows of the batch these samples are"}
# An older name of the notation: the values of the scoring, where `values` are those of the loss.
SCORED_VALUES = "values_old"

MEANINGS: Mapping[str, str] = MappingProxyType(
    {**ROWS, **FLAGS, **COLUMNS, **SAMPLES, **RESULTS, **SETTINGS, **INDICES}
)

# Ours → theirs, for `names=`.
SB3: Mapping[str, str] = MappingProxyType(
    {"bootstrapped_rewards": "rewards", "starts": "episode_starts", "log_probs_old": "log_probs"}
)
CLEANRL: Mapping[str, str] = MappingProxyType(
    {
        "starts": "dones",
        "last_ended": "next_done",
        "last_values": "next_value",
        "log_probs_old": "logprobs",
        "indices": "mb_inds",
        "log_probs": "newlogprob",
        "ratios": "ratio",
        "normalized_advantages": "mb_advantages",
        "new_values": "newvalue",
        "entropies": "entropy",
        "entropy": "entropy_loss",
        "policy_loss": "pg_loss",
        "value_loss": "v_loss",
        "total_loss": "loss",
        "clip_epsilon": "clip_coef",
        "value_coef": "vf_coef",
        "entropy_coef": "ent_coef",
    }
)
LIBRARIES: Mapping[str, Mapping[str, str]] = MappingProxyType({"sb3": SB3, "cleanrl": CLEANRL})
