"""Shift, positions, masks and temperature, held against loops and a transformer without padding.

The oracle of the model is `slow_logits`: one row without padding, attention written out. Float32
through two blocks keeps 1e-5; algebra on tables in float64 keeps 1e-12.
"""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import examples
from torch import Generator
from torch.nn import functional
from torch.testing import assert_close

from ppo_lessons import tokens as lesson
from ppo_lessons.tokens import (
    BANG,
    BOS,
    EOS,
    PAD,
    SEP,
    ZERO,
    LanguageModel,
    ModelConfig,
    Prompts,
    Turn,
    as_text,
    encode_prompts,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}
SINGLE = {"rtol": 0, "atol": 1e-5}
SMALL = ModelConfig(width=16, num_heads=2, context_length=12)
SEEDS = st.integers(0, 10_000)

positions = under_test(lesson.positions)
attention_mask = under_test(lesson.attention_mask)
response_mask = under_test(lesson.response_mask)
before_each_token = under_test(lesson.before_each_token)
token_log_probs = under_test(lesson.token_log_probs)
token_entropies = under_test(lesson.token_entropies)
masked_whiten = under_test(lesson.masked_whiten)
assistant_mask = under_test(lesson.assistant_mask)
join_turns = under_test(lesson.join_turns)
is_correct = under_test(lesson.is_correct)
score_responses = under_test(lesson.score_responses)
generate = under_test(lesson.generate)


def bits(*rows: str):
    return torch.tensor([[letter == "1" for letter in row] for row in rows])


def drawn_bits(seed: int, rows: int, length: int):
    return torch.rand(rows, length, generator=Generator().manual_seed(seed)) < 0.6


def drawn_ids(seed: int, rows: int, length: int, below: int):
    return torch.randint(below, (rows, length), generator=Generator().manual_seed(seed))


def drawn_logits(seed: int, *shape: int):
    return 2 * torch.randn(shape, generator=Generator().manual_seed(seed), dtype=torch.float64)


# --- an oracle without padding, cache or mask ------------------------------------------------


def slow_logits(model, ids: list[int]):
    """Logits at each place of one row: attention as a loop over places and heads."""
    size = model.config.width // model.config.num_heads
    stream = model.tokens.weight[ids] + model.places.weight[: len(ids)]
    for block in model.blocks:
        queries, keys, values = block.attention_in(block.before_attention(stream)).chunk(3, dim=-1)
        places = []
        for i in range(len(ids)):
            heads = []
            for head in range(model.config.num_heads):
                part = slice(head * size, (head + 1) * size)
                agreement = keys[: i + 1, part] @ queries[i, part] / math.sqrt(size)
                heads.append(agreement.softmax(0) @ values[: i + 1, part])
            places.append(torch.cat(heads))
        stream = stream + block.attention_out(torch.stack(places))
        inner = functional.gelu(block.network_in(block.before_network(stream)), approximate="tanh")
        stream = stream + block.network_out(inner)
    return model.head(model.last_norm(stream))


def slow_scores(model, prompts, tokens, mask, temperature):
    """Log-probability and entropy of each token, row by row, from rows without padding."""
    log_probs, entropies = torch.zeros(tokens.shape), torch.zeros(tokens.shape)
    for row in range(len(tokens)):
        asked = prompts.tokens[row][prompts.mask[row]].tolist()
        said = tokens[row][mask[row]].tolist()
        tables = (slow_logits(model, asked + said) / temperature).softmax(-1)
        for t, token in enumerate(said):
            chances = tables[len(asked) - 1 + t]
            log_probs[row, t] = chances[token].log()
            entropies[row, t] = -(chances * chances.log()).sum()
    return log_probs, entropies


def small_model(seed: int = 0):
    """Untrained, but with opinions: its logits spread over a few nats."""
    model = LanguageModel(SMALL, Generator().manual_seed(seed)).requires_grad_(False)
    model.head.weight.mul_(2)
    return model


MODEL = small_model()
PROMPTS = encode_prompts([[3], [3, 1], [9, 0, 4]], prompt_length=6)
# the second response draws the id of padding, on purpose: an action is what the mask says
TOKENS = torch.tensor([[8, EOS, PAD, PAD], [6, PAD, 8, EOS], [5, 9, BANG, 14]])
MASK = bits("1100", "1111", "1111")


# --- positions -------------------------------------------------------------------------------


def test_padding_on_the_left_moves_no_position(positions):
    assert positions(bits("0011", "1111", "0001")).tolist() == [
        [0, 0, 0, 1],
        [0, 1, 2, 3],
        [0, 0, 0, 0],
    ]


@examples
@given(seed=SEEDS)
def test_a_position_is_the_number_of_real_tokens_before(positions, seed):
    mask = drawn_bits(seed, 3, 7)
    for row, found in zip(mask.tolist(), positions(mask).tolist(), strict=True):
        for i in range(7):
            assert found[i] == max(0, sum(row[: i + 1]) - 1)


# --- who may look at whom --------------------------------------------------------------------


def test_a_real_token_sees_itself_and_the_real_ones_before(attention_mask):
    mask = bits("00111", "11011", "11111")
    visible = attention_mask(mask)
    assert visible.shape == (3, 1, 5, 5)
    for row in range(3):
        for i in range(5):
            if mask[row, i]:
                wanted = [bool(mask[row, j]) and j <= i for j in range(5)]
                assert visible[row, 0, i].tolist() == wanted


def test_padding_has_something_to_look_at(attention_mask):
    assert attention_mask(bits("0011", "0001")).any(-1).all()


# --- which tokens are actions ----------------------------------------------------------------


def test_the_end_is_an_action_and_nothing_behind_it(response_mask):
    tokens = torch.tensor([[7, 8, 2, 0], [2, 2, 7, 2], [7, 7, 7, 7], [7, 7, 7, 2]])
    assert torch.equal(response_mask(tokens, eos=2), bits("1110", "1000", "1111", "1111"))


def test_padding_may_share_the_id_of_the_end(response_mask):
    tokens = torch.tensor([[7, 8, 2, 2, 2]])
    assert torch.equal(response_mask(tokens, eos=2), bits("11100"))


def test_what_stands_behind_the_end_changes_nothing(response_mask):
    for junk in range(15):
        tokens = torch.tensor([[7, 2, junk, junk]])
        assert torch.equal(response_mask(tokens, eos=2), bits("1100"))


def test_the_state_of_a_token_stands_one_place_before_it(before_each_token):
    places = torch.arange(7).expand(2, 7)
    assert before_each_token(places, prompt_length=3).tolist() == [[2, 3, 4, 5]] * 2
    assert before_each_token(places[..., None], prompt_length=6).tolist() == [[[5]]] * 2


# --- log-probabilities and entropies ---------------------------------------------------------


def test_a_token_is_scored_by_the_logits_before_it(token_log_probs):
    # P = 1: the first token is read off place 0, where the logits say (0, ln 3): 3 in 4
    logits = torch.tensor([[[0, math.log(3)], [math.log(9), 0], [50.0, -50.0]]])
    found = token_log_probs(logits, torch.tensor([[1, 1]]), prompt_length=1)
    assert found[0].tolist() == pytest.approx([math.log(3 / 4), math.log(1 / 10)], abs=1e-6)


def test_logits_are_divided_by_the_temperature(token_log_probs):
    # at temperature 1/2 odds of 3 become odds of 9
    logits = torch.tensor([[[0, math.log(3)], [7.0, 1.0]]], dtype=torch.float64)
    found = token_log_probs(logits, torch.tensor([[0]]), prompt_length=1, temperature=0.5)
    assert found.item() == pytest.approx(math.log(1 / 10), abs=1e-12)


@examples
@given(seed=SEEDS, temperature=st.sampled_from([0.5, 1.0, 1.7]))
def test_log_probs_are_those_of_the_shifted_cross_entropy(token_log_probs, seed, temperature):
    logits, tokens = drawn_logits(seed, 2, 7, 5), drawn_ids(seed, 2, 4, 5)
    found = token_log_probs(logits, tokens, prompt_length=3, temperature=temperature)
    labels = torch.cat([torch.full((2, 2), -100), tokens], dim=1)  # of places 0 to 5
    wanted = functional.cross_entropy(
        (logits[:, :-1] / temperature).transpose(1, 2), labels, reduction="none"
    )
    assert_close(found, -wanted[:, 2:], **EXACT)


def test_half_precision_is_widened_before_the_softmax_and_stays_finite(token_log_probs):
    for dtype in (torch.bfloat16, torch.float16):
        logits = torch.tensor([[[6e4, -6e4, 0.0], [0.3, 0.7, -0.2], [0, 0, 0]]], dtype=dtype)
        found = token_log_probs(logits, torch.tensor([[1, 0]]), prompt_length=1, temperature=0.5)
        assert found.isfinite().all()
        wide = (logits.double() / 0.5).log_softmax(-1)
        assert_close(found[0, 1].double(), wide[0, 1, 0], rtol=0, atol=1e-6)


def test_a_word_of_probability_zero_has_a_finite_log_prob(token_log_probs):
    logits = torch.tensor([[[0.0, 200.0], [0.0, 0.0]]])
    found = token_log_probs(logits, torch.tensor([[0]]), prompt_length=1)
    assert found.item() == pytest.approx(-200)


def test_the_entropy_of_a_token_is_that_of_its_state(token_entropies):
    # place 0 says 1 : 1, place 1 says 3 : 1; the last place is nobody's state
    logits = torch.tensor([[[0.0, 0.0], [math.log(3), 0], [9.0, -9.0]]], dtype=torch.float64)
    wanted = [math.log(2), math.log(4) - 0.75 * math.log(3)]
    found = token_entropies(logits, prompt_length=1)
    assert found[0].tolist() == pytest.approx(wanted, abs=1e-12)


def test_entropy_feels_the_temperature(token_entropies):
    logits = torch.tensor([[[math.log(3), 0], [0.0, 0.0]]], dtype=torch.float64)
    found = token_entropies(logits, prompt_length=1, temperature=0.5)  # odds of 9
    wanted = math.log(10) - 0.9 * math.log(9)
    assert found.item() == pytest.approx(wanted, abs=1e-12)


def test_a_word_that_is_ruled_out_adds_no_entropy(token_entropies):
    logits = torch.tensor([[[0.0, 0.0, -math.inf], [0.0, 0.0, 0.0]]])
    assert token_entropies(logits, prompt_length=1).item() == pytest.approx(math.log(2))


# --- whitening -------------------------------------------------------------------------------


def test_whitening_by_hand(masked_whiten):
    # 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, over n − 1 = 2: variance 7
    values = torch.tensor([[1.0, 2.0, 50.0], [6.0, -9.0, math.nan]], dtype=torch.float64)
    root = math.sqrt(7 + 1e-8)
    wanted = torch.tensor([[-2 / root, -1 / root, 0], [3 / root, 0, 0]], dtype=torch.float64)
    assert_close(masked_whiten(values, bits("110", "100")), wanted, **EXACT)


# --- several turns ---------------------------------------------------------------------------


def four_turns():
    """Two conversations: user, assistant, tool, assistant; the second is shorter everywhere."""
    return [
        Turn("user", torch.tensor([[1, 8, 3], [11, 1, 3]]), bits("111", "011")),
        Turn("assistant", torch.tensor([[8, 2], [2, 11]]), bits("11", "10")),
        Turn("tool", torch.tensor([[4], [4]]), bits("1", "1")),
        Turn("assistant", torch.tensor([[7, 2], [2, 11]]), bits("11", "10")),
    ]


def test_only_the_tokens_of_the_assistant_are_actions(assistant_mask):
    assert torch.equal(assistant_mask(four_turns()), bits("00011011", "00010010"))


def test_turns_stand_without_a_gap_behind_the_padding(join_turns):
    joined = join_turns(four_turns())
    assert joined.tokens.tolist() == [[1, 8, 3, 8, 2, 4, 7, 2], [PAD, PAD, PAD, 1, 3, 2, 4, 2]]
    assert torch.equal(joined.mask, bits("11111111", "00011111"))
    assert torch.equal(joined.actions, bits("00011011", "00000101"))


def test_a_second_answer_is_scored_behind_all_that_was_said(join_turns):
    joined = join_turns(four_turns())
    logits = MODEL(joined.tokens, joined.mask)
    found = lesson.token_log_probs(logits, joined.tokens[:, 1:], prompt_length=1)
    alone = slow_logits(MODEL, [1, 3, 2, 4, 2]).log_softmax(-1)
    wanted = [alone[1, 2].item(), alone[3, 2].item()]
    assert found[1][joined.actions[1, 1:]].tolist() == pytest.approx(wanted, abs=1e-5)


# --- the verifier ----------------------------------------------------------------------------

ANSWERS = {
    "124<eos>": True,
    "124!<eos>": True,
    "124!!<eos>": True,
    "124!!!<eos>": False,
    "124": False,
    "124!": False,
    "214<eos>": False,
    "421<eos>": False,
    "12<eos>": False,
    "1244<eos>": False,
    "1!24<eos>": False,
    "!124<eos>": False,
    "124=<eos>": False,
    "<eos>": False,
    "!<eos>": False,
    "124<eos><eos>": False,
}
IDS = {"<eos>": EOS, "!": BANG, "=": SEP, **{str(d): ZERO + d for d in range(10)}}


def written(text: str, length: int = 8):
    """Ids and mask of one answer, behind it junk that would make it right or wrong."""
    ids = [IDS[each] for each in re.findall("<eos>|.", text)]
    mask = [True] * len(ids) + [False] * (length - len(ids))
    return ids + [EOS] * (length - len(ids)), mask


def test_an_answer_is_ascending_digits_at_most_two_bangs_and_an_end(is_correct):
    for text, right in ANSWERS.items():
        ids, mask = written(text)
        prompts = encode_prompts([[4, 1, 2]])
        found = is_correct(prompts, torch.tensor([ids]), torch.tensor([mask]))
        assert found.tolist() == [right], text


def test_a_digit_that_comes_twice_must_be_given_twice(is_correct):
    prompts = encode_prompts([[7, 1, 7], [7, 1, 7], [7, 1, 1]])
    rows, masks = zip(*(written(text) for text in ("177<eos>", "17<eos>", "177<eos>")), strict=True)
    found = is_correct(prompts, torch.tensor(rows), torch.tensor(masks))
    assert found.tolist() == [True, False, False]


def test_the_verifier_agrees_with_a_comparison_of_texts(is_correct):
    generator = Generator().manual_seed(0)
    prompts = lesson.draw_prompts(200, generator=generator)
    tokens, mask = lesson.draw_demonstrations(
        200, lesson.ReferenceConfig(), generator=Generator().manual_seed(0)
    )[1:]
    flipped = torch.rand(tokens.shape, generator=generator) < 0.03
    tokens = torch.where(flipped, drawn_ids(1, 200, tokens.shape[1], 15), tokens)
    wanted = []
    for digits, text in zip(prompts.digits, as_text(tokens, mask), strict=True):
        digits = "".join(map(str, sorted(digits)))
        wanted.append(text in {digits + bangs + "<eos>" for bangs in ("", "!", "!!")})
    assert is_correct(prompts, tokens, mask).tolist() == wanted
    assert 0.1 < sum(wanted) / 200 < 0.5


# --- scoring a whole response ----------------------------------------------------------------


def test_scores_are_those_of_rows_without_padding(score_responses):
    for temperature in (1.0, 0.6):
        found = score_responses(MODEL, PROMPTS, TOKENS, MASK, temperature=temperature)
        wanted = slow_scores(MODEL, PROMPTS, TOKENS, MASK, temperature)
        assert_close(found[0], wanted[0], **SINGLE)
        assert_close(found[1], wanted[1], **SINGLE)


def test_three_pads_more_on_the_left_change_no_score(score_responses):
    plain, padded = (encode_prompts([[3, 1, 2]], prompt_length=length) for length in (5, 8))
    tokens = torch.tensor([[6, 7, 8, EOS]])
    mask = bits("1111")
    scores = [
        score_responses(MODEL, prompts, tokens, mask, temperature=1.0)
        for prompts in (plain, padded)
    ]
    assert_close(scores[0], scores[1], **SINGLE)


def test_junk_in_padding_changes_no_score(score_responses):
    junk = Prompts(PROMPTS.tokens.masked_fill(~PROMPTS.mask, 9), PROMPTS.mask)
    before = score_responses(MODEL, PROMPTS, TOKENS, MASK, temperature=1.0)
    after = score_responses(MODEL, junk, TOKENS.masked_fill(~MASK, 11), MASK, temperature=1.0)
    assert_close(before, after, rtol=0, atol=0)


# --- drawing ---------------------------------------------------------------------------------


def some_responses(generate, temperature=0.7):
    prompts = PROMPTS.repeated(30)
    drawn = generate(
        MODEL, prompts, max_new_tokens=5, temperature=temperature,
        generator=Generator().manual_seed(3),
    )  # fmt: skip
    assert drawn.mask.any(-1).all(), "each response has at least one token"
    return prompts, drawn


def test_the_ratio_before_the_first_update_is_one(generate):
    prompts, drawn = some_responses(generate)
    again, _ = lesson.score_responses(MODEL, prompts, drawn.tokens, drawn.mask, temperature=0.7)
    assert_close((again - drawn.log_probs).exp(), torch.ones(again.shape), **SINGLE)


def test_log_probs_of_the_cache_are_those_of_a_fresh_pass(generate):
    prompts, drawn = some_responses(generate)
    rows = torch.arange(0, 90, 9)
    few, some = prompts.rows(rows), (drawn.tokens[rows], drawn.mask[rows])
    wanted, _ = slow_scores(MODEL, few, *some, 0.7)
    assert_close(drawn.log_probs[rows], wanted, **SINGLE)


def test_a_response_ends_with_its_end_or_is_cut_off(generate):
    _, drawn = some_responses(generate, temperature=1.5)
    ended = set()
    for row, kept, numbers in zip(
        drawn.tokens.tolist(), drawn.mask.tolist(), drawn.log_probs.tolist(), strict=True
    ):
        length = row.index(EOS) + 1 if EOS in row[: sum(kept)] else 5
        assert kept == [True] * length + [False] * (5 - length)
        assert row[length:] == [PAD] * (5 - length)
        assert numbers[length:] == [0.0] * (5 - length)
        ended.add(EOS in row)
    assert ended == {True, False}, "both kinds must be among them"


def test_tokens_are_drawn_as_often_as_the_model_says(generate):
    prompts = encode_prompts([[3, 1]], prompt_length=6).repeated(4000)
    drawn = generate(
        MODEL, prompts, max_new_tokens=1, temperature=0.8, generator=Generator().manual_seed(1)
    )
    chances = (slow_logits(MODEL, [BOS, ZERO + 3, ZERO + 1, SEP])[-1] / 0.8).softmax(-1)
    shares = torch.bincount(drawn.tokens[:, 0], minlength=15) / 4000
    # four standard errors of the widest share, √(¼ / 4000) = .008
    assert_close(shares, chances, rtol=0, atol=0.032)


def test_a_cut_off_response_keeps_what_was_drawn(generate):
    never = small_model()
    never.head.bias[EOS] = -100
    drawn = generate(
        never, PROMPTS, max_new_tokens=6, temperature=1.0, generator=Generator().manual_seed(2)
    )
    assert drawn.mask.all()
    assert not (drawn.tokens == EOS).any()
    assert not drawn.finished.any()
