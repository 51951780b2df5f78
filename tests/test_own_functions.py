"""The training with one's own answers: whose function fills which slot, and does it train?"""

import pytest
import torch
from answers import right_answers, wrong_answers

from ppo_lessons.checks.answers import answer_path
from ppo_lessons.checks.desk import all_exercises
from ppo_lessons.checks.own import SLOTS, own_functions
from ppo_lessons.envs import make_envs
from ppo_lessons.lessons import LESSONS
from ppo_lessons.training_loop import Parts, PPOConfig, evaluate, train
from ppo_lessons.training_loop.parts import OFFERED

# An answer for each slot as somebody would write it who has not seen the package.
BY_HAND = {
    "gae.compute_gae": """
import torch

def compute_gae(rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda):
    advantages, later = [], 0.0
    for t in reversed(range(len(rewards))):
        future = gamma * next_values[t] * (~terminated[t])
        error = rewards[t] + future - values[t]
        later = error + gamma * gae_lambda * (~(terminated[t] | truncated[t])) * later
        advantages.insert(0, later)
    return torch.stack(advantages)
""",
    "gae.normalize_advantages": """
def normalize_advantages(advantages, *, mask=None):
    kept = advantages if mask is None else advantages[mask]
    deviation = ((kept - kept.mean()) ** 2).mean().sqrt()
    return (advantages - kept.mean()) / (deviation + 1e-8)
""",
    "training_loop.shuffled_minibatches": """
import torch

def shuffled_minibatches(num_rows, num_minibatches, *, generator):
    order = torch.randperm(num_rows, generator=generator)
    for start in range(num_minibatches):
        yield order[start::num_minibatches]
""",
    "clip.clipped_surrogate_loss": """
import torch

def clipped_surrogate_loss(log_probs, log_probs_old, advantages, *, clip_epsilon):
    ratios = torch.exp(log_probs - log_probs_old.detach())
    advantages = advantages.detach()
    high, low = 1 + clip_epsilon, 1 - clip_epsilon
    return -torch.min(ratios * advantages, torch.clamp(ratios, low, high) * advantages).mean()
""",
    "critic.value_loss": """
def value_loss(values, returns):
    return 0.5 * ((values - returns.detach()) ** 2).mean()
""",
    "training_loop.ppo_loss": """
def ppo_loss(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    return policy_loss + value_coef * value_loss - entropy_coef * entropy
""",
    "training_loop.clipped_gradient_step": """
import torch

def clipped_gradient_step(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm
""",
    "training_loop.stop_epochs": """
def stop_epochs(kl_k1, *, max_kl=0.03):
    return kl_k1 > max_kl
""",
}


def file_of(id):
    path = answer_path(id)
    assert path is not None
    return path


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder of kept answers, with one for each slot."""
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path))
    for id, text in BY_HAND.items():
        path = file_of(id)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# answer: {id}\n{text}", encoding="utf-8")
    return tmp_path


def words_for(own, slot):
    return next(words for each, _, words in own.rows if each == slot)


def trained(own, *, seed=1):
    history = train(PPOConfig(seed=seed), parts=Parts(**own.functions))
    tests = make_envs("CartPole-v1", num_envs=100)
    return evaluate(history.networks.policy, tests, seed=100).mean().item()


# --- the table -----------------------------------------------------------------------------


def test_seven_slots_or_more_have_an_exercise_and_each_is_one_of_the_loop():
    assert set(SLOTS) <= set(OFFERED)
    assert len(SLOTS) >= 7


@pytest.mark.parametrize("id", SLOTS.values())
def test_each_exercise_exists_where_its_lesson_has_checks(id):
    lesson = next(each for each in LESSONS if each.name == id.partition(".")[0])
    assert (id in all_exercises()) == lesson.checks


@pytest.mark.parametrize(("slot", "id"), SLOTS.items())
def test_every_right_answer_fits_its_slot(slot, id):
    lesson, _, name = id.partition(".")
    for answer in right_answers(lesson)[name].values():
        assert getattr(Parts(**{slot: answer}), slot) is answer


# --- whose function ------------------------------------------------------------------------


def test_without_answers_every_slot_is_the_packages_and_says_where_to_write(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path))
    own = own_functions()
    assert own.functions == {}
    assert words_for(own, "policy_loss") == (
        "the package's: no right answer yet, see exercises/04_clip.ipynb"
    )
    assert repr(own).startswith(f"0 of {len(SLOTS)} functions are your own\n")


def test_without_a_folder_nothing_is_kept_and_nothing_fails(monkeypatch):
    monkeypatch.delenv("PPO_LESSONS_HOME", raising=False)
    assert own_functions().functions == {}


def test_kept_answers_fill_all_slots(store):
    own = own_functions()
    assert set(own.functions) == set(SLOTS)
    assert words_for(own, "value_loss") == "yours, my_work/answers/critic.value_loss.py"


def test_an_answer_of_the_notebook_goes_before_the_kept_one(store):
    def value_loss(values, returns):
        return (values - returns.detach()).square().mean() / 2

    own = own_functions({"value_loss": value_loss})
    assert own.functions["value_loss"] is value_loss
    assert words_for(own, "value_loss") == "yours, from this notebook"


def test_what_was_imported_from_the_package_is_no_answer(tmp_path, monkeypatch):
    from ppo_lessons.critic import value_loss

    monkeypatch.setenv("PPO_LESSONS_HOME", str(tmp_path))
    assert "value_loss" not in own_functions({"value_loss": value_loss}).functions


def test_a_missing_one_is_named_and_the_others_stay(store):
    file_of("gae.compute_gae").unlink()
    own = own_functions()
    assert set(SLOTS) - set(own.functions) == {"advantages"}
    assert words_for(own, "advantages").endswith("see exercises/06_gae.ipynb")


def test_a_wrong_one_is_named_with_its_mistake_and_not_used(store):
    path = file_of("training_loop.ppo_loss")
    path.write_text(path.read_text("utf-8").replace("- entropy", "+ entropy"), encoding="utf-8")
    own = own_functions()
    assert set(SLOTS) - set(own.functions) == {"total_loss"}
    assert "does not pass any more (entropy_sign_turned)" in words_for(own, "total_loss")


def test_a_wrong_one_in_the_notebook_leaves_the_kept_one(store):
    own = own_functions({"value_loss": lambda values, returns: (values - returns).mean()})
    assert words_for(own, "value_loss").startswith("yours, my_work")


@pytest.mark.parametrize("text", ["def ppo_loss(:\n", "1 / 0\n", "", "raise SystemError\n"])
def test_a_file_that_cannot_be_imported_is_named_and_not_used(store, text):
    file_of("training_loop.ppo_loss").write_text(text, encoding="utf-8")
    own = own_functions()
    assert "total_loss" not in own.functions
    assert "training_loop.ppo_loss.py cannot be imported (" in words_for(own, "total_loss")


def test_the_table_is_shown_as_html_without_markup_of_the_learners():
    own = own_functions()
    html = own._repr_html_()
    assert html.count("<tr>") == 1 + len(SLOTS)
    assert "package&#x27;s" in html


# --- training ------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_own_functions_solve_cartpole(store, seed):
    own = own_functions()
    assert len(own.functions) == len(SLOTS)
    assert trained(own, seed=seed) >= 475


@pytest.mark.full
def test_with_one_missing_the_packages_function_solves_it_too(store):
    file_of("clip.clipped_surrogate_loss").unlink()
    assert trained(own_functions()) >= 475


def test_the_training_depends_on_the_own_functions(store):
    """A wrong one that got past the check would be seen: the pole falls."""
    own = own_functions()
    wrong = wrong_answers("clip")["clipped_surrogate_loss"]["objective_called_a_loss"]
    spoiled = {**own.functions, "policy_loss": wrong}
    history = train(PPOConfig(total_steps=16_384), parts=Parts(**spoiled))
    assert history["episode_return"][-1] < 40


@pytest.mark.full
@pytest.mark.parametrize("slot", SLOTS)
def test_the_loop_runs_with_every_style_of_a_right_answer(slot):
    lesson, _, name = SLOTS[slot].partition(".")
    for style, answer in right_answers(lesson)[name].items():
        history = train(PPOConfig(total_steps=4096), parts=Parts(**{slot: answer}))
        assert torch.isfinite(torch.tensor(history["value_loss"])).all(), style
