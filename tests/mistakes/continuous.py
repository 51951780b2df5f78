"""Classic mistakes with real-valued actions: a sum left out, a sign turned, a tanh of 1."""

import math

import torch

from mistakes import new_catalogue

MISTAKES, breaks = new_catalogue()


def log_density(actions, means, log_stds):
    """The logarithm of a Gaussian's density in each dimension."""
    return -0.5 * ((actions - means) / log_stds.exp()) ** 2 - log_stds - 0.5 * math.log(2 * math.pi)


def surrogate(ratios, advantages, clip_epsilon):
    """The clipped surrogate of each sample."""
    clipped = ratios.clamp(1 - clip_epsilon, 1 + clip_epsilon)
    return torch.minimum(ratios * advantages, clipped * advantages)


def averaged(terms, mask):
    """The mean over what counts."""
    return terms.mean() if mask is None else terms[mask].sum() / mask.sum().clamp(min=1)


@breaks("gaussian_scores")
def divided_by_sigma_once(actions, means, log_stds):
    """Divides the distance by σ where σ² belongs: the score no longer grows as it should."""
    distances = (actions - means) / log_stds.exp()
    return distances, distances.square() - 1


@breaks("gaussian_scores")
def sign_of_the_mean_turned(actions, means, log_stds):
    """Pushes the mean away from the action that was drawn."""
    distances = (actions - means) / log_stds.exp()
    return -distances / log_stds.exp(), distances.square() - 1


@breaks("gaussian_scores")
def slope_by_sigma(actions, means, log_stds):
    """Gives the slope by σ, and the parameter is log σ."""
    stds = log_stds.exp()
    distances = (actions - means) / stds
    return distances / stds, (distances.square() - 1) / stds


@breaks("gaussian_scores")
def normaliser_forgotten(actions, means, log_stds):
    """Leaves out the −1 of −log σ: every draw widens the policy."""
    distances = (actions - means) / log_stds.exp()
    return distances / log_stds.exp(), distances.square()


@breaks("gaussian_scores")
def dimensions_summed(actions, means, log_stds):
    """Adds the dimensions up, as if they shared one mean and one σ."""
    distances = (actions - means) / log_stds.exp()
    by_means, by_log_stds = distances / log_stds.exp(), distances.square() - 1
    return tuple(x.sum(-1, keepdim=True).expand_as(actions) for x in (by_means, by_log_stds))


@breaks("gaussian_kl")
def the_two_exchanged(means, log_stds, means_old, log_stds_old):
    """Gives KL(π ‖ π_old), which differs as soon as σ has moved."""
    ratio = (2 * (log_stds - log_stds_old)).exp()
    moved = ((means - means_old) / log_stds_old.exp()).square()
    return (0.5 * (ratio + moved - 1) + log_stds_old - log_stds).sum(-1)


@breaks("gaussian_kl")
def moved_in_old_sigmas(means, log_stds, means_old, log_stds_old):
    """Measures the way of the mean in σ_old where the new σ belongs."""
    ratio = (2 * (log_stds_old - log_stds)).exp()
    moved = ((means - means_old) / log_stds_old.exp()).square()
    return (0.5 * (ratio + moved - 1) + log_stds - log_stds_old).sum(-1)


@breaks("gaussian_kl")
def mean_over_the_dimensions(means, log_stds, means_old, log_stds_old):
    """Averages over the dimensions: a robot with more joints looks nearer."""
    ratio = (2 * (log_stds_old - log_stds)).exp()
    moved = ((means - means_old) / log_stds.exp()).square()
    return (0.5 * (ratio + moved - 1) + log_stds - log_stds_old).mean(-1)


@breaks("gaussian_kl")
def half_forgotten(means, log_stds, means_old, log_stds_old):
    """Counts the squared distance whole."""
    ratio = (2 * (log_stds_old - log_stds)).exp()
    moved = ((means - means_old) / log_stds.exp()).square()
    return (0.5 * (ratio - 1) + moved + log_stds - log_stds_old).sum(-1)


@breaks("gaussian_kl")
def one_half_not_subtracted(means, log_stds, means_old, log_stds_old):
    """Is half a nat per dimension where nothing has moved."""
    ratio = (2 * (log_stds_old - log_stds)).exp()
    moved = ((means - means_old) / log_stds.exp()).square()
    return (0.5 * (ratio + moved) + log_stds - log_stds_old).sum(-1)


@breaks("gaussian_kl")
def means_alone(means, log_stds, means_old, log_stds_old):
    """Forgets that σ moves too."""
    return (0.5 * ((means - means_old) / log_stds.exp()).square()).sum(-1)


@breaks("log_tanh_slopes")
def plain_formula(drawn):
    """Takes the logarithm of 1 − tanh², which is 0 in a float where |u| is above 19."""
    return (1 - drawn.tanh() ** 2).log()


@breaks("log_tanh_slopes")
def saved_by_a_small_constant(drawn):
    """Adds 10⁻⁶ inside the logarithm: finite, and wrong from |u| = 6 on."""
    return (1 - drawn.tanh() ** 2 + 1e-6).log()


@breaks("log_tanh_slopes")
def the_other_exponent(drawn):
    """Has e^(2u) where e^(−2u) belongs: right at 0 only."""
    return 2 * (math.log(2) - drawn - torch.nn.functional.softplus(2 * drawn))


@breaks("log_tanh_slopes")
def slope_without_the_square(drawn):
    """Takes the slope of tanh for 1 − |tanh u|."""
    return torch.log1p(-drawn.tanh().abs())


@breaks("squashed_log_probs")
def correction_forgotten(drawn, means, log_stds):
    """Takes the density of u for that of tanh(u)."""
    return log_density(drawn, means, log_stds).sum(-1)


@breaks("squashed_log_probs")
def correction_added(drawn, means, log_stds):
    """Adds the correction: a crowded edge would look thin."""
    slopes = 2 * (math.log(2) - drawn - torch.nn.functional.softplus(-2 * drawn))
    return (log_density(drawn, means, log_stds) + slopes).sum(-1)


@breaks("squashed_log_probs")
def correction_of_one_dimension(drawn, means, log_stds):
    """Corrects by the mean over the dimensions instead of their sum."""
    slopes = 2 * (math.log(2) - drawn - torch.nn.functional.softplus(-2 * drawn))
    return log_density(drawn, means, log_stds).sum(-1) - slopes.mean(-1)


@breaks("squashed_log_probs")
def density_at_the_squashed_action(drawn, means, log_stds):
    """Asks the Gaussian about tanh(u), and it was u that came from it."""
    slopes = 2 * (math.log(2) - drawn - torch.nn.functional.softplus(-2 * drawn))
    return (log_density(drawn.tanh(), means, log_stds) - slopes).sum(-1)


@breaks("squashed_log_probs")
def drawn_had_back_from_the_action(drawn, means, log_stds):
    """Squashes and unsquashes first: infinite where the tanh rounds to 1."""
    again = drawn.tanh().atanh()
    slopes = (1 - drawn.tanh() ** 2).log()
    return (log_density(again, means, log_stds) - slopes).sum(-1)


@breaks("squashed_log_probs")
def dimensions_left_apart(drawn, means, log_stds):
    """Gives the sum divided by A, a mean per dimension."""
    slopes = 2 * (math.log(2) - drawn - torch.nn.functional.softplus(-2 * drawn))
    return (log_density(drawn, means, log_stds) - slopes).mean(-1)


@breaks("capped_surrogate_loss")
def no_cap(log_probs, log_probs_old, advantages, *, clip_epsilon, max_log_ratio, mask=None):
    """Is the plain loss: its gradient is NaN once a ratio is infinite."""
    ratios = (log_probs - log_probs_old.detach()).exp()
    return -averaged(surrogate(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("capped_surrogate_loss")
def ratio_capped_afterwards(
    log_probs, log_probs_old, advantages, *, clip_epsilon, max_log_ratio, mask=None
):
    """Cuts the ratio after the exponential: the loss is finite, its gradient is not."""
    ratios = (log_probs - log_probs_old.detach()).exp().clamp(max=math.exp(max_log_ratio))
    return -averaged(surrogate(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("capped_surrogate_loss")
def capped_below_as_well(
    log_probs, log_probs_old, advantages, *, clip_epsilon, max_log_ratio, mask=None
):
    """Cuts on both sides: a good action that has become rare no longer pushes itself back."""
    ratios = (log_probs - log_probs_old.detach()).clamp(-max_log_ratio, max_log_ratio).exp()
    return -averaged(surrogate(ratios, advantages.detach(), clip_epsilon), mask)


@breaks("capped_surrogate_loss")
def cap_taken_for_the_ratio(
    log_probs, log_probs_old, advantages, *, clip_epsilon, max_log_ratio, mask=None
):
    """Takes the cap for one of the ratio: it binds far too early."""
    log_ratios = (log_probs - log_probs_old.detach()).clamp(max=math.log(max_log_ratio))
    return -averaged(surrogate(log_ratios.exp(), advantages.detach(), clip_epsilon), mask)


@breaks("capped_surrogate_loss")
def objective_called_a_loss(
    log_probs, log_probs_old, advantages, *, clip_epsilon, max_log_ratio, mask=None
):
    """Has its sign turned."""
    ratios = (log_probs - log_probs_old.detach()).clamp(max=max_log_ratio).exp()
    return averaged(surrogate(ratios, advantages.detach(), clip_epsilon), mask)
