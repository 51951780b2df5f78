"""The judge that is learned: what it adds up, what it was told, what it costs to keep.

Models are a quarter of the lesson's width; that training them leads anywhere is a `full` test.
"""

import math

import pytest
import torch
from torch import Generator
from torch.testing import assert_close

from ppo_lessons.rlhf import (
    RewardModel,
    RewardModelConfig,
    cached_reward_model,
    count_bangs,
    draw_pairs,
    rater_utility,
    reward_model,
    train_reward_model,
)
from ppo_lessons.tokens import (
    BANG,
    EOS,
    PAD,
    ZERO,
    LanguageModel,
    ModelConfig,
    Responses,
    draw_prompts,
    encode_prompts,
    generate,
    is_correct,
)

QUICK = RewardModelConfig(num_pairs=64, num_steps=3, batch_size=16, num_samples=64)


def reference(seed: int = 0):
    config = ModelConfig(width=16, num_heads=2, num_layers=1)
    return LanguageModel(config, Generator().manual_seed(seed))


def answers(*texts: str, width: int = 10):
    """Write answers with "." for their end."""
    ids = {"!": BANG, ".": EOS, **{str(digit): ZERO + digit for digit in range(10)}}
    tokens = torch.full((len(texts), width), PAD)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = torch.tensor([ids[letter] for letter in text])
    lengths = torch.tensor([len(text) for text in texts])
    mask = torch.arange(width) < lengths.unsqueeze(1)
    return Responses(tokens, mask, torch.zeros(tokens.shape))


def judged(seed: int = 0):
    """A judge whose head is not 0."""
    judge = RewardModel(reference(seed))
    head = judge.body.body.head
    head.weight.data = torch.randn(head.weight.shape, generator=Generator().manual_seed(seed))
    return judge


def test_the_rater_likes_right_answers_and_exclamation_marks():
    prompts = encode_prompts([[3, 1, 2]] * 4)
    given = answers("123.", "123!.", "321.", "!!!!!!!!!!")
    assert rater_utility(prompts, given, RewardModelConfig()).tolist() == pytest.approx(
        [3, 3.7, 0, 7]
    )
    assert count_bangs(given).tolist() == [0, 1, 0, 10]


def test_a_score_is_the_sum_of_its_tokens():
    judge, prompts = judged(), encode_prompts([[3, 1, 2]])
    short, long = (judge.token_scores(prompts, answers(text)) for text in ("123!.", "123!!!!!!!"))
    # the tokens that both share, seen from the left, score the same in both
    assert_close(short[0, :4], long[0, :4])
    assert (short[0, 5:] == 0).all()
    assert_close(judge(prompts, answers("123!.")), short.sum(dim=1))


def test_a_new_judge_likes_everything_alike():
    prompts = encode_prompts([[3, 1, 2]])
    assert RewardModel(reference())(prompts, answers("123.")).item() == 0


def test_what_stands_in_padding_scores_nothing():
    judge, prompts = judged(), encode_prompts([[3, 1, 2]])
    given = answers("123.")
    junk = Responses(given.tokens.masked_fill(~given.mask, 9), given.mask, given.log_probs)
    assert_close(judge(prompts, junk), judge(prompts, given), rtol=0, atol=0)


def test_scores_have_mean_0_and_spread_1_where_they_were_normalised():
    model, judge = reference(), judged()
    generator = Generator().manual_seed(0)
    prompts = draw_prompts(200, generator=generator)
    drawn = generate(model, prompts, max_new_tokens=10, temperature=1, generator=generator)
    before = judge(prompts, drawn)
    judge.normalize_on(prompts, drawn)
    after = judge(prompts, drawn)
    assert after.mean().item() == pytest.approx(0, abs=1e-5)
    assert after.std(correction=0).item() == pytest.approx(1, rel=1e-5)
    assert (before.argsort() == after.argsort()).float().mean() > 0.95  # ties of float32 may swap


def test_the_preferred_answer_is_as_often_the_better_one_as_the_formula_says():
    config = RewardModelConfig(num_pairs=4000)
    pairs = draw_pairs(reference(), config, generator=Generator().manual_seed(0))
    better = rater_utility(pairs.prompts, pairs.chosen, config)
    worse = rater_utility(pairs.prompts, pairs.rejected, config)
    apart = (better - worse).abs()
    one_bang = (apart - config.bang).abs() < 1e-6
    share = (better > worse)[one_bang].float().mean().item()
    expected = 1 / (1 + math.exp(-config.bang))
    spread = math.sqrt(expected * (1 - expected) / int(one_bang.sum()))
    assert abs(share - expected) < 4 * spread
    assert int(one_bang.sum()) > 500


def test_training_leaves_the_reference_alone_and_repeats_itself():
    model = reference()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    one, other = (train_reward_model(model, QUICK, seed=4) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
    assert not any(parameter.requires_grad for parameter in one.parameters())


def test_a_judge_is_kept_for_its_reference_and_rebuilt_when_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_CACHE", str(tmp_path))
    made = []
    train = reward_model.train_reward_model

    def counting(*arguments, **settings):
        made.append(1)
        return train(*arguments, **settings)

    monkeypatch.setattr(reward_model, "train_reward_model", counting)
    first = cached_reward_model(reference(), QUICK, seed=1)
    again = cached_reward_model(reference(), QUICK, seed=1)
    assert len(made) == 1
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    cached_reward_model(reference(seed=9), QUICK, seed=1)
    assert len(made) == 2  # another reference, another judge
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    cached_reward_model(reference(), QUICK, seed=1)
    assert len(made) == 3


def test_the_rate_rises_and_falls():
    config = RewardModelConfig(num_steps=100, num_warmup=10, learning_rate=1.0)
    assert config.learning_rate_at(0) == pytest.approx(0.1)
    assert config.learning_rate_at(50) == pytest.approx(0.5)
    assert config.learning_rate_at(99) < 1e-3


@pytest.mark.messages
def test_a_judge_without_pairs_is_refused():
    with pytest.raises(ValueError, match="num_pairs is 0"):
        RewardModelConfig(num_pairs=0)


@pytest.mark.full
def test_a_judge_prefers_right_answers_and_can_be_fooled():
    from ppo_lessons.tokens import cached_reference

    model = cached_reference(seed=0)
    judge = cached_reward_model(model, seed=0)
    generator = Generator().manual_seed(5)
    prompts = draw_prompts(1000, generator=generator, split="gate")
    drawn = generate(model, prompts, max_new_tokens=10, temperature=1, generator=generator)
    right = is_correct(prompts, drawn.tokens, drawn.mask)
    scores = judge(prompts, drawn)
    assert scores[right].mean() > scores[~right].mean() + 0.8
    nothing = answers(*["!!!!!!!!!!"] * len(prompts))
    assert judge(prompts, nothing).mean() > scores[right].mean() + 0.8
