"""Ways in which replicas that run in one batch are no longer lone runs."""

from dataclasses import replace

import torch
from torch import nn

from mistakes import new_catalogue
from ppo_lessons.ablations.replicas import Replicas
from ppo_lessons.training_loop import Parts

MISTAKES, breaks = new_catalogue()
USUAL = Parts()


def in_a_run(change):
    """Make a `run_replicas` in which something is changed before the first iteration."""

    def mistaken(
        configs, *, task, parts=USUAL, device="cpu", dtype=torch.float32, on_iteration=None
    ):
        replicas = Replicas(configs, task=task, parts=parts, device=device, dtype=dtype)
        change(replicas)
        while not replicas.finished:
            replicas.iterate()
        return replicas.histories()

    mistaken.__name__, mistaken.__doc__ = change.__name__, change.__doc__
    return mistaken


def wrap(owner, name, around):
    """Put a function around a method of one object."""
    inner = getattr(owner, name)
    setattr(owner, name, lambda *given: around(inner, *given))


@breaks("run_replicas")
@in_a_run
def one_generator_for_all(replicas):
    """Lets all replicas draw their actions from the generator of the first."""
    replicas.generators[1:] = [replicas.generators[0]] * (len(replicas) - 1)


@breaks("run_replicas")
@in_a_run
def one_order_for_all(replicas):
    """Deals the minibatches of all replicas in the order of the first."""

    def around(inner):
        indices, sizes = inner()
        return indices[:1].expand_as(indices), sizes

    wrap(replicas, "_orders", around)


@breaks("run_replicas")
@in_a_run
def all_draw_when_one_ends(replicas):
    """Draws first states for every replica as soon as an episode ends in one of them."""
    envs = replicas.envs

    def around(inner, state, ended):
        for index, own in enumerate(ended.view(len(replicas), -1)):
            if not own.any():
                envs.task.start(envs.envs_each, generator=envs.generators[index], dtype=envs.dtype)
        return inner(state, ended)

    wrap(envs, "_begin_anew", around)


@breaks("run_replicas")
@in_a_run
def gradients_shortened_together(replicas):
    """Measures one gradient norm over all replicas, and shortens all by the same factor."""
    optimizer = replicas.optimizer

    def around(inner, losses, left_out):
        gradients = torch.autograd.grad(
            losses.sum(), optimizer.parameters, retain_graph=True, materialize_grads=True
        )
        for parameter, gradient in zip(optimizer.parameters, gradients, strict=True):
            parameter.grad = gradient
        length = nn.utils.get_total_norm(gradients)
        # what is left for each to shorten: nothing
        factor = (optimizer._longest / (length + 1e-6)).clamp(max=1)
        longest, optimizer._longest = optimizer._longest, torch.full_like(factor, torch.inf)
        inner(losses * factor, left_out)
        optimizer._longest = longest
        return length.expand(len(replicas))

    wrap(optimizer, "step", around)


@breaks("run_replicas")
@in_a_run
def losses_averaged(replicas):
    """Takes the mean of the losses over the replicas: each gradient shrinks by their number."""
    wrap(
        replicas.optimizer, "step", lambda inner, losses, *rest: inner(losses / len(losses), *rest)
    )


@breaks("run_replicas")
@in_a_run
def left_out_is_a_gradient_of_zero(replicas):
    """Gives a gradient of 0 to what a loss leaves out: weight decay and momentum move it on."""
    wrap(replicas.optimizer, "step", lambda inner, losses, left_out: inner(losses))


@breaks("run_replicas")
@in_a_run
def one_learning_rate_for_all(replicas):
    """Moves all replicas by the step size of the first."""

    def around(inner, iteration):
        for optimizer, _, _ in replicas.optimizer._segments:
            for group in optimizer.param_groups:
                group["lr"] = replicas.config.learning_rate_at(iteration)

    wrap(replicas.optimizer, "set_learning_rates", around)


@breaks("run_replicas")
@in_a_run
def adam_counts_every_replica(replicas):
    """Counts a step of Adam for each replica, so that its corrections fade too early."""

    def around(inner, *given):
        lengths = inner(*given)
        for optimizer, _, _ in replicas.optimizer._segments:
            for kept in optimizer.state.values():
                kept["step"] += len(replicas) - 1
        return lengths

    wrap(replicas.optimizer, "step", around)


def first_for_all(replicas, name):
    """Let what the first replica has in common with its group hold for all."""

    def around(inner):
        inner()
        key, _, *first = getattr(replicas, name)[0]
        setattr(replicas, name, [(key, slice(0, len(replicas)), *first)])

    wrap(replicas, "_regroup", around)
    replicas._regroup()


@breaks("run_replicas")
@in_a_run
def numbers_of_the_first_for_all(replicas):
    """Uses clip range, coefficients and functions of the first replica in all losses."""
    first_for_all(replicas, "_by_loss")


@breaks("run_replicas")
@in_a_run
def discount_of_the_first_for_all(replicas):
    """Scores all replicas with γ and λ of the first."""
    first_for_all(replicas, "_by_advantages")


@breaks("run_replicas")
@in_a_run
def advantages_normalised_together(replicas):
    """Shifts and scales the advantages of all replicas by one mean and one deviation."""

    def around(inner, minibatch):
        together = minibatch["advantages"]
        scaled = (together - together.mean()) / (together.std(correction=0) + 1e-8)
        return inner({**minibatch, "advantages": scaled})

    wrap(replicas, "_losses", around)
    for learner in replicas.learners:
        learner.parts = replace(learner.parts, normalize=lambda advantages: advantages)
    replicas._regroup()


@breaks("run_replicas")
@in_a_run
def bootstrap_from_the_neighbour(replicas):
    """Gives each replica the values that the next one's critic found where an episode ended."""

    def around(inner, rollout):
        values, next_values = inner(rollout)
        ended = rollout["terminated"] | rollout["truncated"]
        return values, torch.where(ended, next_values.roll(1, dims=0), next_values)

    wrap(replicas, "_values", around)
