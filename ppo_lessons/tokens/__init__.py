"""Lesson 13. What is a state, an action for a language model?

    state s_t    prompt and response before token t        action a_t    token t
    log π(a_t | s_t) = log softmax(logits one place before token t / temperature)[token t]

One prompt with its response is one episode. The policy chose the tokens of the response, its end
included, and nothing else; a mask says which these are, and it is passed along, never guessed.

Read in this order: language (tokens, prompts, the verifier), model (the transformer, shift, masks,
temperature), generate (drawing and scoring), turns (conversations), reference (what training
starts from), cache, scale.
"""

from ppo_lessons.tokens.cache import cache_directory, cache_key, cached
from ppo_lessons.tokens.generate import (
    Responses,
    decode,
    draw_tokens,
    draw_top_tokens,
    generate,
    generate_greedy,
    join,
    most_likely_tokens,
    score_responses,
)
from ppo_lessons.tokens.language import (
    BANG,
    BOS,
    DIGITS,
    EOS,
    PAD,
    PROMPT_LENGTH,
    RESPONSE_LENGTH,
    SEP,
    VOCABULARY,
    VOCABULARY_SIZE,
    ZERO,
    Prompts,
    as_text,
    draw_prompts,
    encode_prompts,
    is_correct,
)
from ppo_lessons.tokens.model import (
    LanguageModel,
    ModelConfig,
    TokenCritic,
    attention_mask,
    before_each_token,
    masked_whiten,
    positions,
    response_mask,
    scaled_log_probs,
    token_entropies,
    token_log_probs,
)
from ppo_lessons.tokens.reference import (
    ReferenceConfig,
    cached_reference,
    draw_demonstrations,
    train_reference,
)
from ppo_lessons.tokens.scale import GPU, SMALL, Scale, choose_scale
from ppo_lessons.tokens.turns import Conversation, Turn, assistant_mask, join_turns

__all__ = [
    "BANG",
    "BOS",
    "DIGITS",
    "EOS",
    "GPU",
    "PAD",
    "PROMPT_LENGTH",
    "RESPONSE_LENGTH",
    "SEP",
    "SMALL",
    "VOCABULARY",
    "VOCABULARY_SIZE",
    "ZERO",
    "Conversation",
    "LanguageModel",
    "ModelConfig",
    "Prompts",
    "ReferenceConfig",
    "Responses",
    "Scale",
    "TokenCritic",
    "Turn",
    "as_text",
    "assistant_mask",
    "attention_mask",
    "before_each_token",
    "cache_directory",
    "cache_key",
    "cached",
    "cached_reference",
    "choose_scale",
    "decode",
    "draw_demonstrations",
    "draw_prompts",
    "draw_tokens",
    "draw_top_tokens",
    "encode_prompts",
    "generate",
    "generate_greedy",
    "is_correct",
    "join",
    "join_turns",
    "masked_whiten",
    "most_likely_tokens",
    "positions",
    "response_mask",
    "scaled_log_probs",
    "score_responses",
    "token_entropies",
    "token_log_probs",
    "train_reference",
]
