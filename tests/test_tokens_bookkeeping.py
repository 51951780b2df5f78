"""Eight ways to keep books about tokens: each wrong one is found by the test that is for it."""

import math

import pytest
import torch

from ppo_lessons.tokens import EOS, LanguageModel, ModelConfig, draw_prompts, join
from ppo_lessons.tokens.bookkeeping import FEW, SHARP, WAYS, Way

NUMBERS = [name for name in WAYS if WAYS[name].actions is Way().actions and name != "right"]
MASKS = ["eos_left_out", "padding_as_actions"]


@pytest.fixture(scope="module")
def model():
    """By chance, with large embeddings: it babbles, and minds what it reads."""
    made = LanguageModel(ModelConfig(width=32), torch.Generator().manual_seed(0))
    for weights in (made.tokens.weight, made.places.weight):
        weights.data.mul_(30)
    return made


@pytest.fixture(scope="module")
def prompts():
    return draw_prompts(48, generator=torch.Generator().manual_seed(1))


def books_of(name, model, prompts):
    way = WAYS[name]
    responses = way.draw(model, prompts, generator=torch.Generator().manual_seed(2))
    return way.books(model, prompts, responses), responses


def share_off(books):
    return ((books.ratios - 1).abs() > 1e-3).float().mean().item()


def test_what_is_right_has_ratios_of_one_and_the_mask_of_what_was_drawn(model, prompts):
    books, responses = books_of("right", model, prompts)
    assert (books.ratios - 1).abs().max() < 1e-5
    assert torch.equal(books.mask, responses.mask)


@pytest.mark.parametrize("name", NUMBERS)
def test_the_ratios_betray_a_wrong_number(model, prompts, name):
    books, responses = books_of(name, model, prompts)
    assert share_off(books) > 0.2
    assert torch.equal(books.mask, responses.mask)


@pytest.mark.parametrize("name", MASKS)
def test_the_ratios_pass_a_wrong_mask_and_the_mask_betrays_itself(model, prompts, name):
    books, responses = books_of(name, model, prompts)
    assert share_off(books) == 0
    assert not torch.equal(books.mask, responses.mask)


def test_all_wrong_ways_are_tried():
    assert sorted([*NUMBERS, *MASKS, "right"]) == sorted(WAYS)


def test_a_mask_without_eos_lacks_the_last_action_of_each_response_that_ended(model, prompts):
    books, responses = books_of("eos_left_out", model, prompts)
    for kept, drawn, ids in zip(books.mask, responses.mask, responses.tokens, strict=True):
        ended = EOS in ids[drawn].tolist()
        assert kept.sum() == drawn.sum() - int(ended)


def test_prompts_that_fill_all_columns_are_spared_by_counted_padding(model, prompts):
    books, _ = books_of("padding_in_positions", model, prompts)
    full = prompts.mask.all(dim=-1)
    off = (books.log_probs - books.log_probs_old).abs() > 1e-4
    assert not off[full].any()
    assert off[~full].any(dim=-1).float().mean() > 0.9


def by_hand(logits, temperature, count):
    """Probabilities of a sampler, word by word."""
    weights = [math.exp(z / temperature) for z in logits]
    least = sorted(weights)[-count]
    kept = [w if w >= least else 0.0 for w in weights]
    return [w / sum(kept) for w in kept]


@pytest.mark.parametrize(("temperature", "count"), [(1.0, 5), (SHARP, 5), (1.0, FEW), (0.5, 2)])
def test_a_sampler_draws_from_the_probabilities_made_by_hand(temperature, count):
    logits = torch.tensor([0.3, -1.0, 2.0, 1.2, 0.1], dtype=torch.float64)
    way = Way(temperature=temperature, count=count)
    wanted = by_hand(logits.tolist(), temperature, count)
    assert way.table(logits).exp().tolist() == pytest.approx(wanted, abs=1e-12)


def test_the_mean_ratio_is_one_with_a_forgotten_temperature_and_the_kept_mass_with_few_words():
    logits = torch.tensor([0.3, -1.0, 2.0, 1.2, 0.1], dtype=torch.float64)
    plain = logits.softmax(-1)
    for way, mean in ((Way(temperature=SHARP), 1.0), (Way(count=FEW), plain.topk(FEW)[0].sum())):
        sampler = way.table(logits).exp()
        ratios = torch.where(sampler > 0, plain / sampler, 0)
        assert (sampler * ratios).sum().item() == pytest.approx(float(mean), abs=1e-12)


def test_what_is_written_down_is_the_samplers_own(model, prompts):
    way = Way(temperature=0.7, count=4)
    responses = way.draw(model, prompts, generator=torch.Generator().manual_seed(3))
    sequence, whole = join(prompts, responses.tokens, responses.mask)
    with torch.no_grad():
        table = way.table(model(sequence, whole)[:, prompts.tokens.shape[1] - 1 : -1])
    log_probs = table.gather(-1, responses.tokens.unsqueeze(-1)).squeeze(-1)
    far = (log_probs - responses.log_probs)[responses.mask].abs().max()
    assert far < 1e-5
