"""Lesson 14. Who are the four models?

    policy        answers, and learns               critic        says what it expected, and learns
    reference     says how far the policy has gone  reward model  says how good an answer is

    r_t = −β·(log π_old − log π_ref)_t + score on the last token;    then GAE, ratio, clip

The clip is local: it limits one iteration. The price β is global: it limits the whole way.

The modules in the order in which they are best read: rewards, advantages, controller, config,
models, stages, evaluate, loop, reward_model, optimum, memory.
"""

from ppo_lessons.rlhf.advantages import critic_advantages, token_gae
from ppo_lessons.rlhf.config import RLHFConfig
from ppo_lessons.rlhf.controller import adaptive_beta, keep_beta
from ppo_lessons.rlhf.evaluate import evaluate_answers
from ppo_lessons.rlhf.loop import Slots, TokenState, iterate, start, train_tokens
from ppo_lessons.rlhf.memory import (
    FULL,
    MIXED,
    TRANSFORMERS,
    ModelMemory,
    Precision,
    Transformer,
    activation_bytes,
    cache_bytes,
    model_memory,
    num_weights,
    saved_bytes,
    tensor_bytes,
    transformer_of,
)
from ppo_lessons.rlhf.models import (
    AnsweringPolicy,
    NoCritic,
    TokenNetworks,
    TokenPolicy,
    TokenValues,
    pack,
    unpack,
)
from ppo_lessons.rlhf.optimum import (
    AnswerTree,
    TreeCritic,
    TreePolicy,
    regularized_return,
    tilted_log_probs,
)
from ppo_lessons.rlhf.reward_model import (
    Pairs,
    RewardModel,
    RewardModelConfig,
    cached_reward_model,
    count_bangs,
    draw_pairs,
    rater_utility,
    train_reward_model,
)
from ppo_lessons.rlhf.rewards import (
    answer_kl,
    bradley_terry_loss,
    kl_terms,
    last_tokens,
    token_rewards,
)
from ppo_lessons.rlhf.stages import Answers, Scored, collect, score

__all__ = [
    "FULL",
    "MIXED",
    "TRANSFORMERS",
    "AnswerTree",
    "AnsweringPolicy",
    "Answers",
    "ModelMemory",
    "NoCritic",
    "Pairs",
    "Precision",
    "RLHFConfig",
    "RewardModel",
    "RewardModelConfig",
    "Scored",
    "Slots",
    "TokenNetworks",
    "TokenPolicy",
    "TokenState",
    "TokenValues",
    "Transformer",
    "TreeCritic",
    "TreePolicy",
    "activation_bytes",
    "adaptive_beta",
    "answer_kl",
    "bradley_terry_loss",
    "cache_bytes",
    "cached_reward_model",
    "collect",
    "count_bangs",
    "critic_advantages",
    "draw_pairs",
    "evaluate_answers",
    "iterate",
    "keep_beta",
    "kl_terms",
    "last_tokens",
    "model_memory",
    "num_weights",
    "pack",
    "rater_utility",
    "regularized_return",
    "saved_bytes",
    "score",
    "start",
    "tensor_bytes",
    "tilted_log_probs",
    "token_gae",
    "token_rewards",
    "train_reward_model",
    "train_tokens",
    "transformer_of",
    "unpack",
]
