"""R replicas in one batch are R lone runs. The oracle is `train`, run by run."""

from dataclasses import dataclass, fields, replace
from functools import partial

import pytest
import torch
from gymnasium.spaces import Box, Discrete
from mistakes import under_test
from torch import nn
from torch.optim import ASGD, SGD, AdamW

from ppo_lessons import ablations
from ppo_lessons.ablations.networks import stack_networks
from ppo_lessons.ablations.replicas import Actor, Replicas
from ppo_lessons.ablations.statistics import bootstrap_difference
from ppo_lessons.critic import clipped_value_loss
from ppo_lessons.envs import Acrobot, BatchedEnvs, CartPole, Pendulum
from ppo_lessons.gae import compute_gae
from ppo_lessons.importance import surrogate_loss
from ppo_lessons.networks import CategoricalPolicy, Critic, Networks, make_networks, mlp
from ppo_lessons.rollout import flags_merged, score_values
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.trust_region import AdaptivePenalty, penalty_loss

run_replicas = under_test(ablations.run_replicas)

SHORT = CartPole(time_limit=20)  # so that episodes are also cut
CONFIG = PPOConfig(
    num_envs=3, num_steps=16, total_steps=3 * 48, num_epochs=2, num_minibatches=3,
    hidden_sizes=(32,), max_grad_norm=2.0,
)  # fmt: skip


def in_doubles(make):
    """Networks in float64, so that two ways to the same number differ by rounding alone."""

    def made(observation_shape, action_space, *, hidden_sizes, generator):
        return make(
            observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
        ).double()

    return made


DOUBLES = Parts(networks=in_doubles(make_networks))


def lone_run(config, parts, task):
    """The oracle: one run by `train`, with its own environments and generators."""
    told = [
        slot for slot in (parts.policy_loss, parts.total_loss) if hasattr(slot, "after_iteration")
    ]
    after = told[0].after_iteration if told else None
    envs = BatchedEnvs(task, config.num_envs, dtype=torch.float64)
    return train(config, envs=envs, parts=parts, on_iteration=after)


def assert_same_run(found, lone):
    assert found.stopped == lone.stopped
    assert len(found) == len(lone) > 0
    for row, expected in zip(found, lone, strict=True):
        assert list(row) == list(expected)
        for name in set(row) - {"seconds"}:
            if expected[name] is None:
                assert row[name] is None, name
            else:  # losses keep their sign
                assert row[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
    pairs = zip(found.networks.parameters(), lone.networks.parameters(), strict=True)
    for ours, expected in pairs:
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-9)


def assert_all_lone(run_replicas, configs, each, task):
    # a part that remembers something is made anew for each side
    fresh = [make() for make in each]
    found = run_replicas(configs, task=task, parts=fresh, dtype=torch.float64)
    assert len(found) == len(configs)
    for history, config, make in zip(found, configs, each, strict=True):
        assert history.config is config
        assert_same_run(history, lone_run(config, make(), task))


def test_each_replica_is_its_lone_run(run_replicas):
    configs = [
        replace(CONFIG, seed=1),
        replace(CONFIG, seed=2, learning_rate=8e-3, clip_epsilon=0.01, gamma=0.9),
        replace(CONFIG, seed=3, final_learning_rate=1.0, entropy_coef=0.1, gae_lambda=0.5),
        replace(CONFIG, seed=4, max_grad_norm=0.3, value_coef=2.0),
    ]
    each = [lambda: DOUBLES] * len(configs)
    assert_all_lone(run_replicas, configs, each, SHORT)


VARIANTS = {
    "usual": lambda: DOUBLES,
    "no clip": lambda: replace(DOUBLES, policy_loss=surrogate_loss),
    "penalty": lambda: replace(DOUBLES, policy_loss=partial(penalty_loss, beta=3.0)),
    # a target so near and so far that β moves in opposite directions
    "adaptive, near": lambda: replace(DOUBLES, policy_loss=AdaptivePenalty(1.0, 1e-7)),
    "adaptive, far": lambda: replace(DOUBLES, policy_loss=AdaptivePenalty(1.0, 1e3)),
    "value clip": lambda: replace(DOUBLES, value_loss=clipped_value_loss),
    "not normalised": lambda: replace(DOUBLES, normalize=lambda advantages: advantages),
    "flags merged": lambda: replace(DOUBLES, advantages=flags_merged),
    "another start": lambda: replace(DOUBLES, networks=in_doubles(other_start)),
    "SGD": lambda: replace(DOUBLES, optimizer=sgd),
    "looks at numbers": lambda: replace(DOUBLES, policy_loss=loss_that_looks),
    "mixes columns": lambda: replace(DOUBLES, advantages=centred_over_the_rollout),
    "own score": lambda: replace(DOUBLES, score=doubled_values),
    "in order": lambda: replace(DOUBLES, minibatches=in_order),
    "own sum": lambda: replace(DOUBLES, total_loss=lambda policy, value, entropy: policy + value),
}


def other_start(observation_shape, action_space, *, hidden_sizes, generator):
    networks = make_networks(
        observation_shape, action_space, hidden_sizes=hidden_sizes, generator=generator
    )
    for parameter in networks.parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)
    return networks


def sgd(networks, *, learning_rate):
    groups = [{"params": networks.policy.parameters()}, {"params": networks.critic.parameters()}]
    return SGD(groups, lr=learning_rate, momentum=0.9)


def loss_that_looks(log_probs, log_probs_old, advantages):
    """A loss that vmap cannot take: what it does depends on a number."""
    loss = surrogate_loss(log_probs, log_probs_old, advantages)
    return loss if loss.item() > 0 else 2 * loss


def centred_over_the_rollout(
    rewards, values, next_values, terminated, truncated, *, gamma, gae_lambda
):
    found = compute_gae(
        rewards, values, next_values, terminated, truncated, gamma=gamma, gae_lambda=gae_lambda
    )
    return found - found.mean()


def doubled_values(critic, rollout):
    values, next_values = score_values(critic, rollout)
    return 2 * values, next_values


def in_order(num_rows, num_minibatches):
    return iter(torch.arange(num_rows).tensor_split(num_minibatches))


FULL = pytest.mark.full
TASKS = [SHORT, *(pytest.param(kind(20), marks=FULL) for kind in (Acrobot, Pendulum))]
TWICE = ("looks at numbers", "mixes columns", "adaptive, near")  # what goes wrong only in company


@pytest.mark.parametrize("task", TASKS)
def test_variants_of_parts_in_one_batch_are_lone_runs(task):
    each = [*VARIANTS.values(), *(VARIANTS[name] for name in TWICE)]
    configs = [replace(CONFIG, seed=seed) for seed in range(len(each))]
    assert_all_lone(ablations.run_replicas, configs, each, task)


def test_settings_in_any_order_are_lone_runs():
    names = ("no clip", "usual", "no clip", "penalty", "usual")
    configs = [replace(CONFIG, seed=seed) for seed in range(len(names))]
    assert_all_lone(ablations.run_replicas, configs, [VARIANTS[name] for name in names], SHORT)


def test_layers_that_are_shared_stay_shared():
    def shared(observation_shape, action_space, *, hidden_sizes, generator):
        trunk = mlp(observation_shape[0], (8,), 8, output_gain=1.0, generator=generator)
        heads = [mlp(8, (), n, output_gain=1.0, generator=generator) for n in (2, 1)]
        bodies = [nn.Sequential(trunk, head) for head in heads]
        return Networks(CategoricalPolicy(bodies[0]), Critic(bodies[1]))

    each = [lambda: Parts(networks=in_doubles(shared))] * 3
    assert_all_lone(
        ablations.run_replicas, [replace(CONFIG, seed=s) for s in range(3)], each, SHORT
    )


def policy_alone(policy_loss, value_loss, entropy):
    return policy_loss


def shrinking(networks, *, learning_rate):
    return AdamW(networks.parameters(), lr=learning_rate, weight_decay=0.5)


@dataclass
class CriticForOneIteration:
    """A sum that leaves the critic alone after its first iteration."""

    iteration: int = 0

    def __call__(self, policy_loss, value_loss, entropy):
        return policy_loss + value_loss if self.iteration == 0 else policy_loss

    def after_iteration(self, state):
        self.iteration += 1


LEAVES_OUT = {
    "critic": lambda: replace(DOUBLES, total_loss=policy_alone),
    "policy": lambda: replace(DOUBLES, total_loss=lambda policy, value, entropy: value),
    # no gradient: a gradient of 0 would let decay and momentum go on
    "critic, and decays": lambda: replace(DOUBLES, total_loss=policy_alone, optimizer=shrinking),
    "critic later": lambda: replace(DOUBLES, total_loss=CriticForOneIteration()),
    "nothing, and decays": lambda: replace(DOUBLES, optimizer=shrinking),
    "nothing": lambda: DOUBLES,
}


@pytest.mark.parametrize("names", [["critic"], ["critic, and decays"], ["policy"], LEAVES_OUT])
def test_what_a_loss_leaves_out_stays_as_it_is_in_a_lone_run(names):
    # twice each, the second ones apart from the first
    each = [*(LEAVES_OUT[name] for name in names)] * 2
    configs = [replace(CONFIG, seed=seed) for seed in range(len(each))]
    assert_all_lone(ablations.run_replicas, configs, each, SHORT)


def test_a_critic_that_is_left_out_is_the_critic_of_the_start(run_replicas):
    parts = LEAVES_OUT["critic, and decays"]()
    found = run_replicas([CONFIG], task=SHORT, parts=parts, dtype=torch.float64)
    generator = seeded(CONFIG.seed)
    start = parts.networks((4,), Discrete(2), hidden_sizes=(32,), generator=generator)
    for name in ("critic", "policy"):
        pairs = zip(
            getattr(found[0].networks, name).parameters(),
            getattr(start, name).parameters(),
            strict=True,
        )
        assert all(torch.equal(*pair) for pair in pairs) == (name == "critic")


def test_a_run_that_was_saved_goes_on_bit_by_bit(tmp_path):
    configs = [replace(CONFIG, seed=seed, total_steps=5 * 48) for seed in range(4)]
    each = [Parts(), Parts(), *(Parts(policy_loss=AdaptivePenalty(1.0, 0.01)) for _ in range(2))]

    def fresh():
        return Replicas(configs, task=SHORT, parts=each)

    whole, first, second = fresh(), fresh(), fresh()
    for _ in range(2):
        first.iterate()
    torch.save(first.state_dict(), tmp_path / "half.pt")
    second.load_state_dict(torch.load(tmp_path / "half.pt", weights_only=True))
    while not whole.finished:
        whole.iterate()
    while not second.finished:
        second.iterate()
    pairs = zip(whole.networks.parameters(), second.networks.parameters(), strict=True)
    assert all(torch.equal(ours, expected) for ours, expected in pairs)
    for ours, expected in zip(second.learners, whole.learners, strict=True):
        assert ours.returns == expected.returns
        assert ours.state.recent_returns == expected.state.recent_returns
    assert not any(
        torch.equal(a, b)
        for a, b in zip(first.networks.parameters(), whole.networks.parameters(), strict=True)
    )


def test_a_replica_that_breaks_harms_no_other():
    def breaks_off(log_probs, log_probs_old, advantages):
        return surrogate_loss(log_probs, log_probs_old, advantages) / 0

    configs = [replace(CONFIG, seed=seed) for seed in range(3)]
    each = [DOUBLES, replace(DOUBLES, policy_loss=breaks_off), DOUBLES]
    found = ablations.run_replicas(configs, task=SHORT, parts=each, dtype=torch.float64)
    with pytest.raises(ValueError, match="not finite"):
        lone_run(configs[1], each[1], SHORT)
    assert (found[1].stopped, len(found[1])) == ("not finite", 0)
    for index in (0, 2):
        assert_same_run(found[index], lone_run(configs[index], each[index], SHORT))


def test_the_parts_that_were_given_are_left_alone():
    penalty = AdaptivePenalty(1.0, 1e3)
    ablations.run_replicas([CONFIG], task=SHORT, parts=Parts(policy_loss=penalty))
    assert penalty.beta == 1.0


def test_the_global_generator_is_not_touched():
    before = torch.get_rng_state()
    ablations.run_replicas([CONFIG], task=SHORT)
    assert torch.equal(torch.get_rng_state(), before)


def test_on_iteration_may_stop_all():
    found = ablations.run_replicas([CONFIG], task=SHORT, on_iteration=lambda _: True)
    assert (found[0].stopped, len(found[0])) == ("on_iteration", 1)


def test_stacked_networks_are_the_networks_side_by_side():
    make = partial(make_networks, (4,), 2, hidden_sizes=(5, 6))
    each = [make(generator=torch.Generator().manual_seed(seed)).double() for seed in range(3)]
    seen = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    stacked = stack_networks(each)
    for index, networks in enumerate(each):
        torch.testing.assert_close(stacked.critic(seen)[index], networks.critic(seen[index]))
        ours = stacked.policy.all_log_probs(seen)[index]
        torch.testing.assert_close(ours, networks.policy.all_log_probs(seen[index]))


# --- what is refused -----------------------------------------------------------------------


class Windy(CartPole):
    """A task whose steps draw random numbers."""

    def advance(self, state, actions, *, generator):
        torch.rand((), generator=generator)
        return super().advance(state, actions, generator=generator)


def step_of_its_own(loss, networks, optimizer):
    return loss


def averaging(networks, *, learning_rate):
    return ASGD(networks.parameters(), lr=learning_rate)


@pytest.mark.parametrize(
    ("configs", "given", "sentence"),
    [
        ([], {}, "0 configs"),
        ([CONFIG, CONFIG], {"parts": [Parts()]}, "2 configs and 1 parts"),
        ([CONFIG, replace(CONFIG, num_epochs=7)], {}, r"differ in num_epochs: \[2, 7\]"),
        ([CONFIG], {"parts": Parts(gradient_step=step_of_its_own)}, "step_of_its_own, and only"),
        ([CONFIG], {"parts": Parts(stop_epochs=lambda kl_k1: False)}, "Parts.stop_epochs"),
        ([CONFIG], {"parts": Parts(optimizer=averaging)}, "makes ASGD; expected one of Adam"),
        ([CONFIG], {"task": Windy()}, "draws random numbers within its steps"),
        ([replace(CONFIG, num_minibatches=48)], {}, "one alone is normalised|at least two samples"),
    ],
)
def test_what_does_not_fit_into_one_batch_is_refused(configs, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        ablations.run_replicas(configs, **{"task": SHORT, **given})


def test_networks_without_a_batched_form_are_refused():
    class Odd(nn.Linear):
        pass

    def odd(observation_shape, action_space, *, hidden_sizes, generator):
        bodies = [nn.Sequential(Odd(observation_shape[0], n)) for n in (2, 1)]
        return Networks(CategoricalPolicy(bodies[0]), Critic(bodies[1]))

    with pytest.raises(ValueError, match=r"policy\.body\.0 is a Odd"):
        ablations.run_replicas([CONFIG], task=SHORT, parts=Parts(networks=odd))


@pytest.mark.messages
def test_a_loss_per_sample_is_refused():
    def forgot_the_mean(log_probs, log_probs_old, advantages):
        return -(log_probs - log_probs_old).exp() * advantages

    with pytest.raises(TypeError, match=r"Parts\.policy_loss gave a Tensor of shape"):
        ablations.run_replicas([CONFIG], task=SHORT, parts=Parts(policy_loss=forgot_the_mean))


def test_every_slot_of_parts_is_thought_of():
    """A new slot must get a batched form, or be refused; then it is added here."""
    assert {slot.name for slot in fields(Parts)} == {
        *("networks", "optimizer", "collect", "score", "advantages", "minibatches", "normalize"),
        *("policy_loss", "value_loss", "total_loss", "gradient_step", "stop_epochs"),
    }


# --- long runs -----------------------------------------------------------------------------


LONG = PPOConfig(num_envs=8, num_steps=32, total_steps=12_288, num_epochs=4)
SEEDS = 32
TWINS = {  # replicas with a fault, which must be told from lone runs
    "a fifth of the learning rate": lambda seed: replace(
        LONG, seed=seed, learning_rate=LONG.learning_rate / 5
    ),
    "one seed for all": lambda seed: replace(LONG, seed=0),
}


def ends_of(configs):
    """The return at the end of each replica (reward)."""
    found = ablations.run_replicas(configs, task=CartPole())
    return torch.tensor([history["episode_return"][-1] for history in found]).double()


def largest_gap(first, second):
    """Kolmogorov and Smirnov: by how much two shares of runs below a level differ at most."""
    levels = torch.cat([first, second]).unsqueeze(1)
    return ((first <= levels).double().mean(1) - (second <= levels).double().mean(1)).abs().max()


def test_the_largest_gap_by_hand():
    first, second = torch.tensor([1.0, 2, 3, 4]), torch.tensor([3.0, 4, 5, 6])
    assert largest_gap(first, second) == 0.5
    assert largest_gap(second, first) == 0.5
    assert largest_gap(first, first) == 0


@pytest.mark.full
def test_long_runs_have_the_distribution_of_lone_ones():
    # other seeds than those of the replicas: the two sides share no random number
    lone = torch.tensor(
        [
            train(replace(LONG, seed=seed), envs=BatchedEnvs(CartPole(), 8))["episode_return"][-1]
            for seed in range(SEEDS, 2 * SEEDS)
        ]
    ).double()
    # 32 against 32 of one distribution are farther apart in 1 of 100 cases
    limit = 1.63 * (2 / SEEDS) ** 0.5
    replicas = ends_of([replace(LONG, seed=seed) for seed in range(SEEDS)])
    assert largest_gap(replicas, lone) < limit
    settings = {"resamples": 2000, "confidence": 0.99, "generator": seeded(1)}
    low, high = bootstrap_difference(replicas, lone, lambda runs: runs.mean(-1), **settings)
    assert low < 0 < high
    for fault, config_of in TWINS.items():
        twin = ends_of([config_of(seed) for seed in range(SEEDS)])
        assert largest_gap(twin, lone) > limit, fault


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("action_space", [3, Box(-1, 1, (2,))], ids=["discrete", "real"])
def test_an_actor_rates_and_chooses_as_each_replica_alone(action_space):
    each = [
        make_networks((4,), action_space, hidden_sizes=(8,), generator=seeded(seed))
        for seed in (1, 2, 3)
    ]
    actor = Actor(stack_networks(each).policy, [seeded(seed) for seed in (4, 5, 6)])
    seen = torch.randn(15, 4, generator=seeded(7))
    actions, log_probs = actor.sample(seen, seeded(8))
    rated, entropies = actor.evaluate(seen, actions)
    assert torch.allclose(rated, log_probs, atol=1e-6)
    for number, networks in enumerate(each):
        rows = slice(5 * number, 5 * number + 5)
        alone = networks.policy.evaluate(seen[rows], actions[rows])
        assert torch.allclose(rated[rows], alone[0], atol=1e-5)
        assert torch.allclose(entropies[rows], alone[1].expand(5), atol=1e-5)
        assert torch.allclose(
            actor.greedy(seen)[rows].double(),
            networks.policy.greedy(seen[rows]).double(),
            atol=1e-5,
        )
