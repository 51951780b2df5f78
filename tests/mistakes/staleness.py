"""Classic mistakes around old rollouts: weights, clip centres, buffers."""

import torch

from mistakes import new_catalogue
from ppo_lessons.staleness import VersionedBuffer

MISTAKES, breaks = new_catalogue()


def averaged(terms, mask):
    return terms.mean() if mask is None else torch.where(mask, terms, 0).sum() / mask.sum()


def surrogate(log_probs, centre, advantages, epsilon):
    ratios, advantages = (log_probs - centre.detach()).exp(), advantages.detach()
    return torch.minimum(ratios * advantages, ratios.clamp(1 - epsilon, 1 + epsilon) * advantages)


# --- Weights -------------------------------------------------------------------------------------


@breaks("truncated_weights")
def never_truncated(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Leaves the weights as they are: one sample may decide a batch."""
    return (log_probs_proximal - log_probs_behaviour).detach().exp()


@breaks("truncated_weights")
def turned_over(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Divides μ by π_prox: what was drawn too often counts even more."""
    return (log_probs_behaviour - log_probs_proximal).detach().exp().clamp(max=largest_weight)


@breaks("truncated_weights")
def thrown_away_beyond_the_cap(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Gives samples beyond C the weight 0, where C was meant."""
    ratios = (log_probs_proximal - log_probs_behaviour).detach().exp()
    return torch.where(ratios > largest_weight, 0, ratios)


@breaks("truncated_weights")
def cut_below_too(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Raises small weights to 1 / C: what π would not do counts all the same."""
    ratios = (log_probs_proximal - log_probs_behaviour).detach().exp()
    return ratios.clamp(1 / largest_weight, largest_weight)


@breaks("truncated_weights")
def weights_that_learn(log_probs_proximal, log_probs_behaviour, *, largest_weight):
    """Lets the gradient into the weights."""
    return (log_probs_proximal - log_probs_behaviour).exp().clamp(max=largest_weight)


# --- The decoupled loss --------------------------------------------------------------------------


def weight(log_probs_proximal, log_probs_behaviour, largest_weight):
    return (log_probs_proximal - log_probs_behaviour).detach().exp().clamp(max=largest_weight)


@breaks("decoupled_loss")
def clip_around_the_behaviour(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Clips around μ: with old data most ratios start outside."""
    return -averaged(surrogate(log_probs, log_probs_behaviour, advantages, clip_epsilon), mask)


@breaks("decoupled_loss")
def weight_left_out(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Clips around π_prox and forgets who drew the data."""
    return -averaged(surrogate(log_probs, log_probs_proximal, advantages, clip_epsilon), mask)


@breaks("decoupled_loss")
def corrected_twice(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Uses π / μ as the ratio and weighs by π_prox / μ as well."""
    weights = weight(log_probs_proximal, log_probs_behaviour, largest_weight)
    terms = weights * surrogate(log_probs, log_probs_behaviour, advantages, clip_epsilon)
    return -averaged(terms, mask)


@breaks("decoupled_loss")
def gradient_into_the_proximal_policy(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Lets the gradient into π_prox, which is the same network: it cancels."""
    ratios = (log_probs - log_probs_proximal).exp()
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    weights = weight(log_probs_proximal, log_probs_behaviour, largest_weight)
    return -averaged(weights * torch.minimum(ratios * advantages, clipped * advantages), mask)


@breaks("decoupled_loss")
def objective_for_loss(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Has its sign turned."""
    weights = weight(log_probs_proximal, log_probs_behaviour, largest_weight)
    return averaged(
        weights * surrogate(log_probs, log_probs_proximal, advantages, clip_epsilon), mask
    )


@breaks("decoupled_loss")
def divided_by_the_weights(
    log_probs,
    log_probs_proximal,
    log_probs_behaviour,
    advantages,
    *,
    clip_epsilon,
    largest_weight,
    mask=None,
):
    """Divides by the sum of the weights: a batch of improbable data gets a full step."""
    weights = weight(log_probs_proximal, log_probs_behaviour, largest_weight)
    terms = weights * surrogate(log_probs, log_probs_proximal, advantages, clip_epsilon)
    return -averaged(terms, mask) / averaged(weights, mask)


# --- The effective share -------------------------------------------------------------------------


def share_of(weights):
    return weights.sum() ** 2 / (weights**2).sum() / len(weights)


@breaks("effective_share")
def mean_for_product(log_ratios, mask, *, level):
    """Averages the log-ratios of a response: it looks far fresher than it is."""
    if level == "token":
        return share_of(log_ratios[mask].exp())
    return share_of((torch.where(mask, log_ratios, 0).sum(1) / mask.sum(1)).exp())


@breaks("effective_share")
def padding_counted(log_ratios, mask, *, level):
    """Counts padding as tokens of weight 1."""
    counted = torch.where(mask, log_ratios, 0)
    return share_of(counted.flatten().exp() if level == "token" else counted.sum(1).exp())


@breaks("effective_share")
def size_and_not_share(log_ratios, mask, *, level):
    """Gives the effective sample size, not its share."""
    counted = torch.where(mask, log_ratios, 0)
    weights = log_ratios[mask].exp() if level == "token" else counted.sum(1)[mask.any(1)].exp()
    return share_of(weights) * len(weights)


@breaks("effective_share")
def overflow_of_the_product(log_ratios, mask, *, level):
    """Leaves log space before it divides: long responses overflow to NaN."""
    counted = torch.where(mask, log_ratios, 0)
    weights = log_ratios[mask].exp() if level == "token" else counted.sum(1)[mask.any(1)].exp()
    return share_of(weights)


# --- The buffer ----------------------------------------------------------------------------------


class _Buffer(VersionedBuffer):
    """What the mistakes change."""

    def take(self, version, max_age, *, newest):
        while self._waiting:
            drawn_by, batch = self._waiting.pop() if newest else self._waiting.popleft()
            if version - drawn_by <= max_age:
                return batch, version - drawn_by
            self.dropped += 1
        return None


@breaks("VersionedBuffer")
def newest_first(capacity):
    """Is a stack: under load old batches are never used."""

    class Stack(_Buffer):
        def pop(self, *, version, max_age):
            return self.take(version, max_age, newest=True)

    return Stack(capacity)


@breaks("VersionedBuffer")
def age_never_looked_at(capacity):
    """Hands out whatever waits longest, however old."""

    class Patient(_Buffer):
        def pop(self, *, version, max_age):
            return self.take(version, 10**9, newest=False)

    return Patient(capacity)


@breaks("VersionedBuffer")
def one_version_too_strict(capacity):
    """Drops what has exactly the largest age."""

    class Strict(_Buffer):
        def pop(self, *, version, max_age):
            return self.take(version, max_age - 1, newest=False)

    return Strict(capacity)


@breaks("VersionedBuffer")
def dropped_in_silence(capacity):
    """Does not count what it drops: nobody sees that short responses are favoured."""

    class Silent(_Buffer):
        def pop(self, *, version, max_age):
            found = self.take(version, max_age, newest=False)
            self.dropped = 0
            return found

    return Silent(capacity)


@breaks("VersionedBuffer")
def version_for_age(capacity):
    """Gives the version that drew the batch where its age was asked for."""

    class Absolute(_Buffer):
        def pop(self, *, version, max_age):
            found = self.take(version, max_age, newest=False)
            return found and (found[0], version - found[1])

    return Absolute(capacity)


@breaks("VersionedBuffer")
def room_without_end(capacity):
    """Is never full: the generator runs away from the trainer."""
    return _Buffer(10**9)
