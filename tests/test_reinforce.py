"""Returns against a double sum; the loss by its gradient, since its value means nothing.

The gradient is compared with an enumeration of all trajectories in plain Python. Algebra in
float64 keeps 1e-12.
"""

import math

import oracles
import oracles_mdp
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mistakes import under_test
from oracles import column, examples, flags, float64, gradient
from torch.testing import assert_close
from toy_envs import MODES, SCRIPTS, FixedPolicy, by_parity, endless, episode, scripted

from ppo_lessons import reinforce
from ppo_lessons.envs import make_envs
from ppo_lessons.mdp import enumerate_trajectories, softmax_policy, two_state
from ppo_lessons.networks import make_networks

EXACT = {"rtol": 1e-12, "atol": 1e-12}
GAMMAS = st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0])
SEEDS, SIZES, WIDTHS = st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 3)

rewards_to_go = under_test(reinforce.rewards_to_go)
reinforce_loss = under_test(reinforce.reinforce_loss)
play_episodes = under_test(reinforce.play_episodes)


# --- Returns -------------------------------------------------------------------------------------


def test_returns_match_the_hand(rewards_to_go):
    # Two episodes, gamma 1/2: 1 + 2/2 + 4/4 = 3, 2 + 4/2 = 4, 4;   8 + 16/2 = 16, 16
    ended = flags(0, 0, 1, 0, 1).unsqueeze(-1)
    returns = rewards_to_go(column(1, 2, 4, 8, 16), ended, gamma=0.5)
    assert_close(returns, column(3, 4, 4, 16, 16), **EXACT)


def test_an_action_gets_no_credit_for_what_came_before_it(rewards_to_go):
    ended = flags(0, 0, 1).unsqueeze(-1)
    plain = rewards_to_go(column(0, 1, 2), ended, gamma=0.9)
    changed = rewards_to_go(column(7, 1, 2), ended, gamma=0.9)
    assert_close(plain[1:], changed[1:], **EXACT)


def test_a_reward_at_the_first_step_belongs_to_the_first_action(rewards_to_go):
    returns = rewards_to_go(column(1, 0), flags(0, 1).unsqueeze(-1), gamma=0.9)
    assert_close(returns, column(1, 0), **EXACT)


def test_nothing_after_an_end_changes_a_return_before_it(rewards_to_go):
    ended = flags(0, 1, 0, 1).unsqueeze(-1)
    plain = rewards_to_go(column(1, 2, 3, 4), ended, gamma=0.9)
    changed = rewards_to_go(column(1, 2, -100, 1000), ended, gamma=0.9)
    assert_close(plain[:2], changed[:2], **EXACT)


def test_gamma_zero_leaves_the_reward(rewards_to_go):
    rewards = column(3, -1, 2)
    assert_close(rewards_to_go(rewards, flags(0, 0, 1).unsqueeze(-1), gamma=0.0), rewards, **EXACT)


def test_an_episode_that_still_runs_is_refused(rewards_to_go):
    rewards = torch.ones(3, 2, dtype=torch.float64)
    ended = flags(0, 0, 1, 0, 1, 0).reshape(3, 2)  # the second column runs on
    with pytest.raises(ValueError, match=r"columns \[1\]|still runs"):
        rewards_to_go(rewards, ended, gamma=0.9)


@examples
@given(seed=SEEDS, num_steps=SIZES, num_envs=WIDTHS, gamma=GAMMAS)
def test_the_recursion_is_the_double_sum(seed, num_steps, num_envs, gamma, rewards_to_go):
    rollout = oracles.draw_rollout(seed, num_steps, num_envs)
    ended = rollout["terminated"] | rollout["truncated"]
    ended[-1] = True
    expected = oracles.rewards_to_go(rollout["rewards"], ended, gamma)
    assert_close(rewards_to_go(rollout["rewards"], ended, gamma=gamma), expected, **EXACT)


@examples
@given(seed=SEEDS, gamma=GAMMAS)
def test_float32_agrees_to_five_digits(seed, gamma, rewards_to_go):
    rollout = oracles.draw_rollout(seed, 6, 2)
    ended = rollout["terminated"]
    ended[-1] = True
    returns = rewards_to_go(rollout["rewards"].float(), ended, gamma=gamma)
    expected = oracles.rewards_to_go(rollout["rewards"], ended, gamma).float()
    assert_close(returns, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.messages
def test_the_message_about_running_episodes_says_which_and_what_to_do(rewards_to_go):
    with pytest.raises(ValueError, match="columns") as caught:
        rewards_to_go(torch.ones(2, 3), flags(0, 0, 0, 0, 1, 0).reshape(2, 3), gamma=0.9)
    assert str(caught.value) == (
        "the episodes in columns [0, 2] still run at the last row; expected complete episodes, "
        "since their returns are not known yet. Cut the rows after each last end, or use "
        "compute_gae, which puts the critic's estimate in place of what is missing."
    )


@pytest.mark.messages
def test_bad_input_to_the_return_is_refused(rewards_to_go):
    rewards, ended = torch.ones(2, 1), flags(0, 1).unsqueeze(-1)
    with pytest.raises(ValueError, match=r"ended has shape \(2,\); expected \(2, 1\)"):
        rewards_to_go(rewards, flags(0, 1), gamma=0.9)
    with pytest.raises(TypeError, match=r"ended has dtype torch.float32; expected torch.bool"):
        rewards_to_go(rewards, ended.float(), gamma=0.9)
    with pytest.raises(TypeError, match=r"rewards has dtype torch.int64"):
        rewards_to_go(rewards.long(), ended, gamma=0.9)
    with pytest.raises(ValueError, match=r"rewards holds nan at index \(0, 0\)"):
        rewards_to_go(rewards * float("nan"), ended, gamma=0.9)
    with pytest.raises(ValueError, match=r"gamma is 1.5; expected a number in \[0, 1\]"):
        rewards_to_go(rewards, ended, gamma=1.5)


# --- The loss ------------------------------------------------------------------------------------


def update_by_loss(loss_function, logits, *, gamma, weight_gamma):
    """Minus the gradient of the loss over all trajectories, each weighted by its probability."""
    mdp = two_state()
    paths = enumerate_trajectories(mdp, softmax_policy(mdp, logits.detach()))
    T, N = paths.rewards.shape
    returns = oracles.rewards_to_go(paths.rewards, paths.terminated, gamma)
    discounts = weight_gamma ** torch.arange(T, dtype=torch.float64).unsqueeze(-1)
    weights = paths.probabilities * returns * discounts * paths.valid * (T * N)  # undo the mean
    log_policy = softmax_policy(mdp, logits).log()
    return -gradient(loss_function(log_policy[paths.states, paths.actions], weights), logits)


def logits_of_two_states(seed: int = 0):
    return oracles_mdp.random_logits(two_state(), seed).requires_grad_()


def test_the_loss_matches_the_hand(reinforce_loss):
    # −(log 1/2 · 4 + log 1/4 · (−2)) / 2 = −(−4 log 2 + 4 log 2) / 2 = 0, with the slopes −2 and 1
    log_probs = float64(math.log(1 / 2), math.log(1 / 4)).requires_grad_()
    loss = reinforce_loss(log_probs, float64(4, -2))
    assert_close(loss, float64(0)[0], **EXACT)
    assert_close(gradient(loss, log_probs), float64(-2, 1), **EXACT)


def test_a_step_down_the_loss_makes_the_good_arm_likelier(reinforce_loss):
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    loss = reinforce_loss(logits.log_softmax(0), float64(1, 0))
    moved = logits - 0.1 * gradient(loss, logits)
    assert moved.softmax(0)[0] > 0.5


def test_a_rare_good_action_is_pushed_as_hard_as_a_common_one(reinforce_loss):
    # Per sample the slope by log π is −weight, whatever π is.
    log_probs = float64(math.log(0.999), math.log(0.001)).requires_grad_()
    slope = gradient(reinforce_loss(log_probs, float64(1, 1)), log_probs)
    assert_close(slope[0], slope[1], **EXACT)


def test_a_batch_twice_over_has_the_same_loss(reinforce_loss):
    log_probs, weights = float64(-0.1, -2, -0.7), float64(1, -3, 0.5)
    once, twice = (reinforce_loss(log_probs.repeat(n), weights.repeat(n)) for n in (1, 2))
    assert_close(once, twice, **EXACT)


def test_no_gradient_flows_through_the_weights(reinforce_loss):
    log_probs = float64(-0.1, -2).requires_grad_()
    weights = float64(1, -3).requires_grad_()
    assert gradient(reinforce_loss(log_probs, weights), weights).count_nonzero() == 0


def test_the_expected_gradient_is_the_usual_update(reinforce_loss):
    logits = logits_of_two_states()
    ours = update_by_loss(reinforce_loss, logits, gamma=0.5, weight_gamma=1.0)
    expected = oracles_mdp.score_update_by_paths(
        two_state(), logits.detach(), gamma=0.5, weight_gamma=1.0
    )
    assert_close(ours, expected, **EXACT)


def test_with_the_weights_that_ppo_drops_it_is_the_gradient_of_the_discounted_return(
    reinforce_loss,
):
    mdp, logits = two_state(), logits_of_two_states()
    ours = update_by_loss(reinforce_loss, logits, gamma=0.5, weight_gamma=0.5)

    def discounted_return(logits):
        policy = oracles_mdp.softmax_rows(mdp, logits)
        return float64(oracles_mdp.expected_return_by_paths(mdp, policy, 0.5))

    slopes = oracles_mdp.finite_differences(discounted_return, logits.detach())
    # central differences of step 1e-5: about 1e-10 from the third derivative, 1e-11 from rounding
    assert_close(ours.flatten(), slopes.flatten(), rtol=1e-7, atol=1e-8)


def test_the_usual_update_is_not_that_gradient():
    # The negative control of the two claims above: below gamma 1 the two vectors differ.
    logits = logits_of_two_states()
    usual, discounted = (
        update_by_loss(reinforce.reinforce_loss, logits, gamma=0.5, weight_gamma=weight_gamma)
        for weight_gamma in (1.0, 0.5)
    )
    assert (usual - discounted).abs().max() > 0.01


def test_the_score_has_mean_zero(reinforce_loss):
    # E[∇log π] = Σ_a π(a)·∇log π(a) = ∇ Σ_a π(a) = 0: equal weights push nothing on average
    logits = float64(0.3, -1, 2).requires_grad_()
    policy = logits.detach().softmax(0)

    def push(*weights):
        return gradient(reinforce_loss(logits.log_softmax(0), policy * float64(*weights)), logits)

    assert_close(push(1, 1, 1), float64(0, 0, 0), rtol=0, atol=1e-14)
    assert_close(push(-7, -7, -7), float64(0, 0, 0), rtol=0, atol=1e-14)
    assert push(1, 0, 0).abs().max() > 0.01


def test_the_value_of_the_loss_says_nothing_about_the_policy(reinforce_loss):
    # Uniform policy, weights of mean 0: whichever arm is good, the loss is 0; yet it pushes
    for weights in (float64(1, -1), float64(-1, 1), float64(100, -100)):
        logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        loss = reinforce_loss(logits.log_softmax(0), weights)
        assert_close(loss, float64(0)[0], rtol=0, atol=1e-14)
        assert gradient(loss, logits).abs().min() >= 0.5


@pytest.mark.messages
def test_weights_of_another_shape_are_refused(reinforce_loss):
    with pytest.raises(ValueError, match=r"weights has shape \(3, 1\); expected \(3,\)"):
        reinforce_loss(torch.zeros(3), torch.zeros(3, 1))


# --- Whole episodes ------------------------------------------------------------------------------

PARITY = FixedPolicy(by_parity)


def generator(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def play_script(play, *scripts, **settings):
    envs = scripted(*(scripts or SCRIPTS), **settings)
    return play(envs, PARITY, generator=generator())


def test_each_environment_plays_its_first_episode_to_the_end(play_episodes):
    # 1 + 2 + 3 until it is terminated; -1, truncated at once, and then padding
    episodes = play_script(play_episodes)
    assert_close(episodes.rewards, torch.tensor([[1.0, -1.0], [2.0, 0.0], [3.0, 0.0]]))
    assert episodes.valid.tolist() == [[True, True], [True, False], [True, False]]
    assert_close(episodes.episode_returns[-1], torch.tensor([6.0, -1.0]))
    assert episodes.episode_lengths[-1].tolist() == [3, 1]


def test_the_long_episode_is_not_left_out(play_episodes):
    long, short = episode(*[1.0] * 9, end="terminated"), episode(1.0, end="terminated")
    episodes = play_script(play_episodes, [short], [long])
    assert episodes.valid.sum(0).tolist() == [1, 9]


def test_padded_rows_say_that_the_episode_is_over(play_episodes):
    episodes = play_script(play_episodes)
    assert episodes.terminated[~episodes.valid].all()
    assert not episodes.truncated[~episodes.valid].any()
    assert episodes.truncated[0, 1]
    assert not episodes.terminated[0, 1]


def test_what_is_played_can_be_summed_as_it_is(play_episodes):
    # gamma 1/2: 1 + 2/2 + 3/4 = 2.75, 2 + 3/2 = 3.5, 3;   -1 and nothing
    episodes = play_script(play_episodes)
    summed = oracles.rewards_to_go(episodes.rewards, episodes.ended, 0.5).float()
    assert_close(summed, torch.tensor([[2.75, -1.0], [3.5, 0.0], [3.0, 0.0]]))


def test_actions_were_chosen_on_the_observations_that_stand_beside_them(play_episodes):
    episodes = play_script(play_episodes, action_bonus=100.0)
    valid = episodes.valid
    assert torch.equal(episodes.actions[valid], by_parity(episodes.observations)[valid])
    # odd steps take action 1, which adds 100
    assert_close(episodes.rewards[:, 0], torch.tensor([1.0, 102.0, 3.0]))


@pytest.mark.parametrize("mode", MODES)
def test_how_the_environments_restart_makes_no_difference(mode):
    episodes = play_script(reinforce.play_episodes, mode=mode)
    assert_close(episodes.rewards, torch.tensor([[1.0, -1.0], [2.0, 0.0], [3.0, 0.0]]))
    assert episodes.valid.sum(0).tolist() == [3, 1]


def test_the_generator_alone_decides_what_is_played():
    envs = make_envs("CartPole-v1", 4)
    policy = make_networks((4,), 2, hidden_sizes=(8,), generator=generator()).policy
    first, again, other = (
        reinforce.play_episodes(envs, policy, generator=generator(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first.observations, again.observations)
    assert not torch.equal(first.observations[0], other.observations[0])


def test_one_generator_gives_new_episodes_each_time():
    envs, source = make_envs("CartPole-v1", 2), generator()
    policy = make_networks((4,), 2, hidden_sizes=(8,), generator=source).policy
    first, second = (reinforce.play_episodes(envs, policy, generator=source) for _ in range(2))
    assert not torch.equal(first.observations[0], second.observations[0])


@pytest.mark.messages
def test_an_episode_that_does_not_end_is_refused():
    still = FixedPolicy(lambda observations: observations[..., 0].long())
    with pytest.raises(ValueError, match=r"2 of 2 episodes had not ended after max_steps=5"):
        reinforce.play_episodes(endless(2, 10), still, generator=generator(), max_steps=5)
