"""The transformer's own promises, and what everything around it refuses."""

import importlib

import pytest
import torch
from test_tokens import MASK, MODEL, PROMPTS, SMALL, TOKENS, bits, small_model
from torch import Generator
from torch.testing import assert_close
from waiting import NoWaiting

from ppo_lessons.tokens import (
    BANG,
    EOS,
    PAD,
    VOCABULARY,
    Conversation,
    LanguageModel,
    ModelConfig,
    Prompts,
    TokenCritic,
    Turn,
    as_text,
    assistant_mask,
    before_each_token,
    choose_scale,
    decode,
    draw_prompts,
    draw_tokens,
    draw_top_tokens,
    encode_prompts,
    generate,
    generate_greedy,
    is_correct,
    join,
    join_turns,
    masked_whiten,
    positions,
    response_mask,
    scaled_log_probs,
    score_responses,
    token_entropies,
    token_log_probs,
)
from ppo_lessons.tokens.language import MAX_DIGITS, MIN_DIGITS, SPLITS, bucket

SINGLE = {"rtol": 0, "atol": 1e-5}


def seeded(number: int = 0):
    return Generator().manual_seed(number)


# --- the model -------------------------------------------------------------------------------


def test_weights_come_from_the_generator_alone():
    before = torch.get_rng_state()
    first, second, other = (LanguageModel(SMALL, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
    assert not torch.equal(first.head.weight, other.head.weight)


def test_the_models_of_the_course_have_103_119_parameters():
    model = LanguageModel(ModelConfig(), seeded())
    # (15 + 17)·64, two blocks of 49,984, the last norm 128, a head of 64·15 + 15
    assert sum(each.numel() for each in model.parameters()) == 103_119


def test_drawing_and_scoring_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    drawn = generate(MODEL, PROMPTS, max_new_tokens=3, temperature=1.0, generator=seeded())
    score_responses(MODEL, PROMPTS, drawn.tokens, drawn.mask)
    draw_prompts(3, generator=seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_junk_in_padding_changes_no_number_anywhere():
    tokens, mask = join(PROMPTS, TOKENS, MASK)
    junk = torch.where(mask, tokens, -100)  # not even an id
    critic = TokenCritic(MODEL)
    torch.nn.init.ones_(critic.body.head.weight)
    for network in (MODEL, critic):
        assert torch.equal(network(tokens, mask), network(junk, mask))


def test_the_first_column_of_padding_is_finite():
    tokens, mask = join(PROMPTS, TOKENS, MASK)
    assert MODEL(tokens, mask).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_stays_finite_and_near(dtype):
    half = small_model().to(dtype)
    with torch.no_grad():
        found, entropies = score_responses(half, PROMPTS, TOKENS, MASK, temperature=0.7)
        wanted, _ = score_responses(MODEL, PROMPTS, TOKENS, MASK, temperature=0.7)
    assert found.dtype == entropies.dtype == torch.float32
    assert found.isfinite().all()
    # two or three digits: weights of 8 and of 11 bits
    assert_close(found, wanted, rtol=0, atol=0.3 if dtype == torch.bfloat16 else 0.03)


def test_half_precision_is_drawn_and_scored_alike():
    half = small_model().to(torch.bfloat16)
    drawn = generate(half, PROMPTS, max_new_tokens=5, temperature=1.0, generator=seeded())
    with torch.no_grad():
        again, _ = score_responses(half, PROMPTS, drawn.tokens, drawn.mask)
    assert drawn.log_probs.dtype == torch.float32
    assert_close(again, drawn.log_probs, rtol=0, atol=0.1)  # 8 bits of each activation


def test_a_gradient_reaches_every_weight_that_took_part():
    model = LanguageModel(SMALL, seeded())
    log_probs, _ = score_responses(model, PROMPTS, TOKENS, MASK)
    log_probs.sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name
    # longest sequence: five tokens asked, four said; the last is never read
    assert model.places.weight.grad[:8].abs().sum(-1).gt(0).all()
    assert not model.places.weight.grad[8:].any()


def test_the_scores_of_one_row_have_no_gradient_from_another():
    model = LanguageModel(SMALL, seeded())
    stored = {}

    def keep(module, inputs, output):
        output.retain_grad()
        stored["stream"] = output

    handle = model.tokens.register_forward_hook(keep)
    log_probs, _ = score_responses(model, PROMPTS, TOKENS, MASK)
    log_probs[1].sum().backward()
    handle.remove()
    reached = stored["stream"].grad.abs().sum(-1).gt(0)
    assert reached.any(-1).tolist() == [False, True, False]


def test_a_critic_begins_at_zero_and_leaves_the_model_alone():
    before = {name: weight.clone() for name, weight in MODEL.state_dict().items()}
    critic = TokenCritic(MODEL)
    tokens, mask = join(PROMPTS, TOKENS, MASK)
    assert not critic(tokens, mask).any()
    torch.nn.init.ones_(critic.body.blocks[0].network_in.weight)
    torch.nn.init.ones_(critic.body.head.weight)
    assert critic(tokens, mask).shape == tokens.shape
    for name, weight in MODEL.state_dict().items():
        assert torch.equal(weight, before[name])


def test_two_functions_give_what_one_pass_gives():
    tokens, mask = join(PROMPTS, TOKENS, MASK)
    logits, length = MODEL(tokens, mask), PROMPTS.tokens.shape[1]
    log_probs = token_log_probs(logits, tokens[:, length:], prompt_length=length, temperature=0.8)
    entropies = token_entropies(logits, prompt_length=length, temperature=0.8)
    found = score_responses(MODEL, PROMPTS, TOKENS, MASK, temperature=0.8)
    assert_close(log_probs.masked_fill(~MASK, 0), found[0], **SINGLE)
    assert_close(entropies.masked_fill(~MASK, 0), found[1], **SINGLE)


def test_a_column_that_no_row_uses_may_stand_between_two_that_are_used():
    mask = bits("1001", "1011", "1001")
    found = score_responses(MODEL, PROMPTS, TOKENS, mask)
    for row in range(3):
        alone = score_responses(
            MODEL, PROMPTS.rows(torch.tensor([row])), TOKENS[row : row + 1], mask[row : row + 1]
        )
        assert_close(found[0][row], alone[0][0], **SINGLE)
        assert found[0][row, 3] != 0


def test_columns_that_no_row_uses_cost_nothing_and_change_nothing():
    wide = torch.nn.functional.pad(TOKENS, (0, 20), value=BANG)
    mask = torch.nn.functional.pad(MASK, (0, 20))
    found = score_responses(MODEL, PROMPTS, wide, mask)
    plain = score_responses(MODEL, PROMPTS, TOKENS, MASK)
    for narrow, each in zip(plain, found, strict=True):
        assert_close(each[:, :4], narrow, **SINGLE)
        assert not each[:, 4:].any()


# --- drawing ---------------------------------------------------------------------------------


def test_greedy_takes_the_most_likely_token_each_time():
    drawn = generate_greedy(MODEL, PROMPTS, max_new_tokens=3)
    for row in range(3):
        ids = PROMPTS.tokens[row][PROMPTS.mask[row]].tolist()
        for t in range(int(drawn.lengths[row])):
            one = torch.tensor([ids])
            table = MODEL(one, torch.ones_like(one, dtype=torch.bool))[0, -1].log_softmax(-1)
            assert drawn.tokens[row, t] == table.argmax()
            assert_close(drawn.log_probs[row, t], table.max(), **SINGLE)
            ids.append(int(table.argmax()))


def test_the_same_generator_draws_the_same_responses():
    first, second, other = (
        generate(MODEL, PROMPTS, max_new_tokens=4, temperature=1.0, generator=seeded(seed))
        for seed in (5, 5, 6)
    )
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.log_probs, second.log_probs)
    assert not torch.equal(first.tokens, other.tokens)


def test_top_tokens_are_drawn_alone_and_scored_by_the_whole_softmax():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).expand(2000, -1)
    tokens, log_probs = draw_top_tokens(logits, count=2, generator=seeded())
    whole = logits[0].log_softmax(-1)
    assert_close(log_probs, whole[tokens])
    shares = torch.bincount(tokens, minlength=4) / 2000
    kept = whole.exp() * torch.tensor([1.0, 1, 0, 0]) / whole[:2].exp().sum()
    assert_close(shares, kept, rtol=0, atol=0.045)  # four standard errors of ½


def test_a_sampler_that_keeps_few_tokens_measures_the_kept_mass_and_no_kl():
    logits = torch.tensor([2.0, 1.0, 0.5, -1.0])
    whole = logits.log_softmax(-1)
    # what it draws has log π_kept − log π = −ln(kept mass), whatever is drawn
    kept = logits.topk(2).values.log_softmax(-1)
    assert_close(kept - whole[:2], -whole[:2].exp().sum().log().expand(2))


def test_whatever_chooses_may_be_used_to_decode():
    def always_five(logits):
        return torch.full((len(logits),), 5), torch.zeros(len(logits))

    drawn = decode(MODEL, PROMPTS, always_five, max_new_tokens=2)
    assert drawn.tokens.tolist() == [[5, 5]] * 3


def test_rows_of_responses_stay_together():
    drawn = generate(MODEL, PROMPTS, max_new_tokens=4, temperature=1.0, generator=seeded())
    some = drawn.rows(torch.tensor([2, 0]))
    assert len(some) == 2
    assert torch.equal(some.tokens, drawn.tokens[[2, 0]])
    assert torch.equal(some.log_probs, drawn.log_probs[[2, 0]])
    assert torch.equal(some.mask, drawn.mask[[2, 0]])


@pytest.fixture
def accelerator(monkeypatch):
    """Take the branches of a device whose values are not at hand."""
    for module in ("shapes", "tokens.language", "tokens.model", "tokens.generate"):
        found = importlib.import_module(f"ppo_lessons.{module}")
        monkeypatch.setattr(found, "at_hand", lambda tensor: False)


def test_drawing_and_scoring_never_wait_for_a_device(accelerator):
    with NoWaiting():
        drawn = generate(MODEL, PROMPTS, max_new_tokens=4, temperature=0.7, generator=seeded())
        log_probs, _ = score_responses(MODEL, PROMPTS, drawn.tokens, drawn.mask, temperature=0.7)
        is_correct(PROMPTS, drawn.tokens, drawn.mask)
    assert_close(log_probs, drawn.log_probs, **SINGLE)


def test_what_a_device_draws_is_what_a_cpu_draws(accelerator, monkeypatch):
    there = generate(MODEL, PROMPTS, max_new_tokens=4, temperature=1.0, generator=seeded())
    monkeypatch.undo()
    here = generate(MODEL, PROMPTS, max_new_tokens=4, temperature=1.0, generator=seeded())
    assert torch.equal(there.tokens, here.tokens)
    assert torch.equal(there.mask, here.mask)


def test_a_prompt_that_is_too_long_is_refused_on_a_device_too(accelerator):
    with pytest.raises(ValueError, match="longest prompt has 5 tokens, and 8 new ones"):
        generate(MODEL, PROMPTS, max_new_tokens=8, temperature=1.0, generator=seeded())
    wide = encode_prompts([[1, 2]], prompt_length=11)  # four real tokens, and four may follow
    assert len(generate(MODEL, wide, max_new_tokens=4, temperature=1.0, generator=seeded())) == 1


# --- prompts ---------------------------------------------------------------------------------


def test_a_prompt_is_written_behind_its_padding():
    prompts = encode_prompts([[3, 1, 2], [9]], prompt_length=6)
    assert as_text(prompts.tokens, torch.ones_like(prompts.mask)) == [
        "<pad><bos>312=",
        "<pad><pad><pad><bos>9=",
    ]
    assert torch.equal(prompts.mask, bits("011111", "000111"))
    assert prompts.digits == [(3, 1, 2), (9,)]


def test_drawn_prompts_are_those_that_would_be_written():
    prompts = draw_prompts(300, generator=seeded(), prompt_length=8)
    written = encode_prompts(prompts.digits, prompt_length=8)
    assert torch.equal(prompts.tokens, written.tokens)
    assert torch.equal(prompts.mask, written.mask)


def test_a_group_is_one_prompt_several_times_in_a_row():
    groups = PROMPTS.repeated(2)
    assert groups.digits == [each for each in PROMPTS.digits for _ in range(2)]


def slow_bucket(digits) -> int:
    number = 0
    for digit in sorted(digits, reverse=True):
        number = number * 11 + digit + 1
    number *= 11 ** (MAX_DIGITS - len(digits))
    return (number * 2654435761 % 2**32 >> 16) % 10


def test_the_bucket_is_the_same_in_any_order_and_on_any_machine():
    rows = torch.tensor([[3, 1, 2, -1, -1], [2, 3, 1, -1, -1], [9, 9, 0, 5, 1]])
    assert bucket(rows).tolist() == [
        slow_bucket(each) for each in ((1, 2, 3), (3, 2, 1), (9, 9, 0, 5, 1))
    ]
    assert bucket(rows)[:2].tolist() == [2, 2]  # counted once; it must never change


@pytest.mark.parametrize("split", SPLITS)
def test_a_drawn_prompt_belongs_to_its_split(split):
    prompts = draw_prompts(500, generator=seeded(), split=split)
    assert len(prompts) == 500
    assert all(slow_bucket(digits) in SPLITS[split] for digits in prompts.digits)


def test_no_answer_of_one_split_is_an_answer_of_another():
    answers = {
        split: {
            tuple(sorted(digits))
            for digits in draw_prompts(3000, generator=seeded(), split=split).digits
        }
        for split in SPLITS
    }
    assert not answers["train"] & answers["gate"]
    assert not answers["train"] & answers["release"]
    assert not answers["gate"] & answers["release"]


def test_splits_hold_eight_one_and_one_tenths():
    digits = torch.randint(10, (20_000, MAX_DIGITS), generator=seeded())
    shares = torch.bincount(bucket(digits), minlength=10) / 20_000
    # digits of one answer share a bucket, so the shares of 2,002 answers are less even
    assert shares[:8].sum().item() == pytest.approx(0.8, abs=0.03)
    assert shares[8].item() == pytest.approx(0.1, abs=0.02)


def test_lengths_come_equally_often():
    lengths = [len(digits) for digits in draw_prompts(3000, generator=seeded()).digits]
    assert set(lengths) == set(range(MIN_DIGITS, MAX_DIGITS + 1))
    for length in set(lengths):
        # the split moves the shares by a little, four standard errors are .034
        assert lengths.count(length) / 3000 == pytest.approx(1 / 3, abs=0.06)


# --- what is refused -------------------------------------------------------------------------

ALL = torch.ones(1, 3, dtype=torch.bool)
LOGITS = torch.zeros(1, 4, 15)


def model_on(tokens, mask):
    return MODEL(torch.tensor(tokens), mask)


REFUSED = {
    "no prompt": (lambda: encode_prompts([]), "digits is empty"),
    "a prompt without digits": (lambda: encode_prompts([[]]), "prompt 0 has 0 digits"),
    "a prompt that is too long": (lambda: encode_prompts([[1] * 6]), "has 6 digits; expected 1 to"),
    "a number that is no digit": (lambda: encode_prompts([[1, 10]]), "expected digits from 0 to 9"),
    "no prompt drawn": (lambda: draw_prompts(0, generator=seeded()), "count is 0"),
    "an unknown split": (
        lambda: draw_prompts(1, generator=seeded(), split="test"),
        "expected one of train, gate, release",
    ),
    "an id out of range": (lambda: model_on([[1, 15, 3]], ALL), "holds 15 at index \\(0, 1\\)"),
    "an id below 0": (lambda: model_on([[1, 2, -1]], ALL), "holds -1 at index"),
    "all masked": (lambda: model_on([[1, 2, 3]], ~ALL), "row 0 of mask is all false"),
    "no token": (
        lambda: MODEL(torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 0, dtype=torch.bool)),
        "at least one row and one column",
    ),
    "another shape of mask": (lambda: model_on([[1, 2]], ALL), "mask has shape"),
    "a row longer than the context": (
        lambda: MODEL(torch.ones(1, 13, dtype=torch.long), torch.ones(1, 13, dtype=torch.bool)),
        "13 real tokens; expected at most 12",
    ),
    "no room for the response": (
        lambda: generate(MODEL, PROMPTS, max_new_tokens=8, temperature=1.0, generator=seeded()),
        "longest prompt has 5 tokens, and 8 new ones",
    ),
    "no new token": (
        lambda: generate(MODEL, PROMPTS, max_new_tokens=0, temperature=1.0, generator=seeded()),
        "max_new_tokens is 0",
    ),
    "prompts that are all padding": (
        lambda: generate_greedy(
            MODEL, Prompts(PROMPTS.tokens, torch.zeros_like(PROMPTS.mask)), max_new_tokens=1
        ),
        "all false",
    ),
    "padding on the right": (
        lambda: generate_greedy(
            MODEL, Prompts(torch.tensor([[1, 3, 0]]), bits("110")), max_new_tokens=1
        ),
        "prompt 0 ends with padding",
    ),
    "temperature 0": (
        lambda: generate(MODEL, PROMPTS, max_new_tokens=1, temperature=0, generator=seeded()),
        "temperature is 0",
    ),
    "temperature below 0 in scoring": (lambda: scaled_log_probs(LOGITS, temperature=-1.0), "is -1"),
    "an empty response": (
        lambda: token_log_probs(LOGITS, torch.zeros(1, 0, dtype=torch.long), prompt_length=4),
        "an empty one has no log-probability",
    ),
    "an empty response to score": (
        lambda: score_responses(MODEL, PROMPTS, TOKENS[:, :0], MASK[:, :0]),
        "expected at least one token for each",
    ),
    "an empty response to mask": (
        lambda: response_mask(torch.zeros(2, 0, dtype=torch.long), eos=EOS),
        "at least one token",
    ),
    "responses without a real token": (
        lambda: score_responses(MODEL, PROMPTS, TOKENS, torch.zeros_like(MASK)),
        "response 0 has no token that counts",
    ),
    "logits of the response only": (
        lambda: token_log_probs(LOGITS, torch.zeros(1, 4, dtype=torch.long), prompt_length=2),
        "Run the model over both",
    ),
    "a response id out of range": (
        lambda: token_log_probs(LOGITS, torch.tensor([[1, -100]]), prompt_length=2),
        "-100 at index \\(0, 1\\)",
    ),
    "no prompt before the response": (
        lambda: before_each_token(LOGITS, prompt_length=0),
        "prompt_length is 0",
    ),
    "nothing behind the prompt": (lambda: token_entropies(LOGITS, prompt_length=4), "for 4 places"),
    "too little to whiten": (
        lambda: masked_whiten(torch.ones(1, 3), bits("010")),
        "true at 1 places",
    ),
    "answers to other prompts": (lambda: is_correct(PROMPTS, TOKENS[:2], MASK[:2]), "\\(3, T\\)"),
    "an unknown role": (lambda: Turn("system", TOKENS, MASK), "expected one of user"),
    "no turn": (lambda: assistant_mask([]), "turns is empty"),
    "turns of other conversations": (
        lambda: join_turns([Turn("user", TOKENS, MASK), Turn("user", TOKENS[:1], MASK[:1])]),
        "\\[3, 1\\] conversations",
    ),
    "heads that do not divide": (lambda: ModelConfig(width=10, num_heads=4), "heads divide"),
    "a size of 0": (lambda: ModelConfig(num_layers=0), "num_layers is 0"),
    "too many words to keep": (
        lambda: draw_top_tokens(LOGITS[0], count=16, generator=seeded()),
        "count is 16",
    ),
}


@pytest.mark.messages
@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_in_words(name):
    call, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.messages
def test_masks_are_boolean_and_ids_whole():
    with pytest.raises(TypeError, match=r"expected torch.bool"):
        positions(torch.ones(1, 3))
    with pytest.raises(TypeError, match=r"expected torch.int64"):
        MODEL(torch.ones(1, 3), ALL)


def test_a_prompt_of_one_row_and_a_response_of_one_token_are_enough():
    prompts = encode_prompts([[7]], prompt_length=3)
    drawn = generate(MODEL, prompts, max_new_tokens=1, temperature=1.0, generator=seeded())
    again, entropies = score_responses(MODEL, prompts, drawn.tokens, drawn.mask)
    assert_close(again, drawn.log_probs, **SINGLE)
    assert entropies.item() > 0


def test_the_vocabulary_and_its_ids_agree():
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 15
    assert VOCABULARY[EOS] == "<eos>"
    assert VOCABULARY[PAD] == "<pad>"
    assert VOCABULARY[BANG] == "!"


def test_a_conversation_can_be_scored_at_its_actions_only():
    turns = [
        Turn("user", torch.tensor([[1, 8, 3]]), bits("111")),
        Turn("assistant", torch.tensor([[8, 2]]), bits("11")),
    ]
    joined = join_turns(turns)
    assert isinstance(joined, Conversation)
    logits = MODEL(joined.tokens, joined.mask)
    found = token_log_probs(logits, joined.tokens[:, 1:], prompt_length=1)
    as_response, _ = score_responses(
        MODEL, Prompts(turns[0].tokens, turns[0].mask), turns[1].tokens, turns[1].mask
    )
    assert_close(found[joined.actions[:, 1:]], as_response[0], **SINGLE)


def test_the_scale_is_chosen_from_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_scale().name == choose_scale("cpu").name == "small"
    with pytest.raises(ValueError, match="no CUDA device is there"):
        choose_scale("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_scale().name == choose_scale("cuda").name == "gpu"
    assert choose_scale("cuda").num_responses >= 1024
    assert choose_scale("cpu").name == "small"


def test_draws_at_a_temperature_follow_the_scaled_softmax():
    logits = torch.tensor([[0.0, 1.0]]).expand(4000, -1)
    tokens, log_probs = draw_tokens(logits, temperature=0.5, generator=seeded())
    chance = torch.tensor(2.0).sigmoid()
    assert tokens.float().mean().item() == pytest.approx(chance.item(), abs=0.022)  # 4 errors
    assert_close(log_probs[tokens == 1], chance.log().expand(int(tokens.sum())))
