"""Wrong instruments: numbers that look like a measure and are none."""

from math import e, log

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


@breaks("mean_ratio_surprise")
def first_moment_only(kl_k1, kl_k3, *, batch_size):
    """Takes the mean before the square, so that noise of both signs cancels."""
    return ((kl_k3 - kl_k1) / (2 * kl_k3 / batch_size).sqrt()).mean().abs()


@breaks("mean_ratio_surprise")
def in_no_unit(kl_k1, kl_k3, *, batch_size):
    """Forgets the samples: a small batch looks as bad as a wrong loop."""
    return ((kl_k3 - kl_k1).square() / (2 * kl_k3)).mean().sqrt()


@breaks("mean_ratio_surprise")
def spread_without_the_two(kl_k1, kl_k3, *, batch_size):
    """Takes the KL for the variance of the ratio, which is twice as large."""
    return ((kl_k3 - kl_k1).square() / (kl_k3 / batch_size)).mean().sqrt()


@breaks("mean_ratio_surprise")
def root_forgotten(kl_k1, kl_k3, *, batch_size):
    """Leaves out the root, so that 2 stands where the standard errors are 1.4."""
    return ((kl_k3 - kl_k1).square() / (2 * kl_k3 / batch_size)).mean()


@breaks("mean_ratio_surprise")
def sum_of_both(kl_k1, kl_k3, *, batch_size):
    """Adds the two estimators, whose sum is about twice the KL and no error of anything."""
    return ((kl_k3 + kl_k1).square() / (2 * kl_k3 / batch_size)).mean().sqrt()


@breaks("lowest_entropy_of_two_softmaxes")
def entropy_of_one_softmax(num_actions):
    """Says 0: one softmax can be certain, two cannot."""
    return 0.0


@breaks("lowest_entropy_of_two_softmaxes")
def always_two_actions(num_actions):
    """Takes the floor of two actions for that of any number."""
    top = e / (e + 1)
    return -top * log(top) - (1 - top) * log(1 - top)


@breaks("lowest_entropy_of_two_softmaxes")
def in_bits(num_actions):
    """Takes the logarithm to base 2."""
    top, rest = e / (e + num_actions - 1), 1 / (e + num_actions - 1)
    return (-top * log(top) - (num_actions - 1) * rest * log(rest)) / log(2)


@breaks("lowest_entropy_of_two_softmaxes")
def only_the_likeliest(num_actions):
    """Leaves out what the other actions add."""
    top = e / (e + num_actions - 1)
    return -top * log(top)
