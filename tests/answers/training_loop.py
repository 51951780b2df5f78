"""Answers to the exercises of lesson 08."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from answers import new_catalogue
from ppo_lessons import training_loop
from ppo_lessons.trust_region import stop_on_kl

EXERCISES = (
    "shuffled_minibatches",
    "ppo_loss",
    "clipped_gradient_step",
    "stop_epochs",
    "mended_epochs",
    "numbers_of_a_run",
)
RIGHT, passes = new_catalogue(*EXERCISES)
WRONG, breaks = new_catalogue(*EXERCISES)
for name in ("shuffled_minibatches", "ppo_loss", "clipped_gradient_step"):
    RIGHT[name]["package"] = getattr(training_loop, name)
RIGHT["stop_epochs"]["package"] = partial(stop_on_kl, max_kl=0.03)


# --- minibatches ---------------------------------------------------------------------------


@passes("shuffled_minibatches")
def every_so_many(num_rows, num_minibatches, *, generator):
    order = torch.randperm(num_rows, generator=generator)
    return [order[start::num_minibatches] for start in range(num_minibatches)]


@passes("shuffled_minibatches")
def by_sorting_noise(num_rows, num_minibatches, *, generator):
    order = torch.rand(num_rows, generator=generator).argsort()
    yield from torch.tensor_split(order, num_minibatches)


@passes("shuffled_minibatches")
def lists_of_integers(num_rows, num_minibatches, generator, **ignored):
    order = torch.randperm(num_rows, generator=generator).tolist()
    edges = [round(each * num_rows / num_minibatches) for each in range(num_minibatches + 1)]
    return [order[low:high] for low, high in pairwise(edges)]


@passes("shuffled_minibatches")
def numpy_with_a_drawn_seed(num_rows, num_minibatches, *, generator):
    seed = int(torch.randint(2**31, (), generator=generator))
    order = np.random.default_rng(seed).permutation(num_rows)
    return iter(np.array_split(order, num_minibatches))


@passes("shuffled_minibatches")
def swapped_one_by_one(num_rows, num_minibatches, *, generator):
    order = list(range(num_rows))
    for place in range(num_rows - 1, 0, -1):
        other = int(torch.randint(place + 1, (), generator=generator))
        order[place], order[other] = order[other], order[place]
    small, more = divmod(num_rows, num_minibatches)
    start = 0
    for number in range(num_minibatches):
        end = start + small + (number < more)
        yield torch.tensor(order[start:end])
        start = end


@passes("shuffled_minibatches")
def marked_rows(num_rows, num_minibatches, *, generator):
    places = torch.randperm(num_rows, generator=generator) % num_minibatches
    for number in range(num_minibatches):
        yield places == number


def permuted(num_rows, generator):
    return torch.randperm(num_rows, generator=generator)


@breaks("shuffled_minibatches")
def not_shuffled(num_rows, num_minibatches, *, generator):
    return torch.arange(num_rows).tensor_split(num_minibatches)


@breaks("shuffled_minibatches")
def global_randomness(num_rows, num_minibatches, *, generator):
    return torch.randperm(num_rows).tensor_split(num_minibatches)


@breaks("shuffled_minibatches")
def same_order_every_time(num_rows, num_minibatches, *, generator):
    generator = torch.Generator().manual_seed(3)
    return permuted(num_rows, generator).tensor_split(num_minibatches)


def _copied_generator(num_rows, num_minibatches, *, generator):
    own = torch.Generator()
    own.set_state(generator.get_state())
    return permuted(num_rows, own).tensor_split(num_minibatches)


WRONG["shuffled_minibatches"]["same_order_every_time#copied"] = _copied_generator


@breaks("shuffled_minibatches")
def drawn_with_replacement(num_rows, num_minibatches, *, generator):
    size = num_rows // num_minibatches
    sizes = [size + (each < num_rows % num_minibatches) for each in range(num_minibatches)]
    return [torch.randint(num_rows, (each,), generator=generator) for each in sizes]


@breaks("shuffled_minibatches")
def last_rows_dropped(num_rows, num_minibatches, *, generator):
    order, size = permuted(num_rows, generator), num_rows // num_minibatches
    return [order[each * size : (each + 1) * size] for each in range(num_minibatches)]


@breaks("shuffled_minibatches")
def one_minibatch_too_many(num_rows, num_minibatches, *, generator):
    return permuted(num_rows, generator).split(num_rows // num_minibatches)


@breaks("shuffled_minibatches")
def blocks_shuffled(num_rows, num_minibatches, *, generator):
    blocks = torch.arange(num_rows).tensor_split(num_minibatches)
    return [blocks[place] for place in permuted(num_minibatches, generator)]


@breaks("shuffled_minibatches")
def shuffled_inside_the_blocks(num_rows, num_minibatches, *, generator):
    blocks = torch.arange(num_rows).tensor_split(num_minibatches)
    return [block[permuted(len(block), generator)] for block in blocks]


@breaks("shuffled_minibatches")
def number_taken_for_size(num_rows, num_minibatches, *, generator):
    return permuted(num_rows, generator).split(num_minibatches)


@breaks("shuffled_minibatches")
def counted_from_one(num_rows, num_minibatches, *, generator):
    return (permuted(num_rows, generator) + 1).tensor_split(num_minibatches)


@breaks("shuffled_minibatches")
def sizes_uneven(num_rows, num_minibatches, *, generator):
    order, size = permuted(num_rows, generator), num_rows // num_minibatches
    cuts = [size * each for each in range(1, num_minibatches)]
    return order.tensor_split(cuts)


def _in_chunks(num_rows, num_minibatches, *, generator):
    return permuted(num_rows, generator).chunk(num_minibatches)


WRONG["shuffled_minibatches"]["sizes_uneven#chunks"] = _in_chunks


@breaks("shuffled_minibatches")
def last_row_missing(num_rows, num_minibatches, *, generator):
    return permuted(num_rows - 1, generator).tensor_split(num_minibatches)


@breaks("shuffled_minibatches")
def minibatches_overlap(num_rows, num_minibatches, *, generator):
    order = permuted(num_rows, generator)
    edges = [0, *(each[-1] for each in torch.arange(num_rows).tensor_split(num_minibatches))]
    pairs = pairwise(edges)
    return [order[max(int(low), 0) : int(high) + 1] for low, high in pairs]


@breaks("shuffled_minibatches")
def one_minibatch_only(num_rows, num_minibatches, *, generator):
    yield permuted(num_rows, generator).tensor_split(num_minibatches)[0]


@breaks("shuffled_minibatches")
def one_row_each(num_rows, num_minibatches, *, generator):
    return permuted(num_rows, generator).split(1)


@breaks("shuffled_minibatches")
def whole_batch_each_time(num_rows, num_minibatches, *, generator):
    return [permuted(num_rows, generator) for _ in range(num_minibatches)]


@breaks("shuffled_minibatches")
def batch_not_dealt(num_rows, num_minibatches, *, generator):
    return [permuted(num_rows, generator)]


# --- the sum of the losses -----------------------------------------------------------------


@passes("ppo_loss")
def added_one_by_one(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    total = policy_loss.clone()
    total = total + value_loss * value_coef
    return total - entropy * entropy_coef


@passes("ppo_loss")
def as_a_dot_product(policy_loss, value_loss, entropy, value_coef, entropy_coef):
    weights = torch.tensor([1.0, value_coef, -entropy_coef], dtype=policy_loss.dtype)
    return torch.stack([policy_loss, value_loss, entropy]) @ weights


@passes("ppo_loss")
def minus_an_objective(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    return -(-policy_loss - value_coef * value_loss + entropy_coef * entropy)


@passes("ppo_loss")
def in_float32(policy_loss, value_loss, entropy, *, value_coef=0.5, entropy_coef=0.0):
    bonus = -entropy_coef * entropy.float()
    return sum([policy_loss.float(), value_coef * value_loss.float(), bonus])


def total(formula):
    def loss(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
        return formula(policy_loss, value_loss, entropy, value_coef, entropy_coef)

    return loss


WRONG["ppo_loss"] |= {
    name: total(formula)
    for name, formula in {
        "entropy_sign_turned": lambda p, v, h, c, b: p + c * v + b * h,
        "value_sign_turned": lambda p, v, h, c, b: p - c * v - b * h,
        "policy_sign_turned": lambda p, v, h, c, b: -p + c * v - b * h,
        "objective_for_the_loss": lambda p, v, h, c, b: -(p + c * v - b * h),
        "value_coef_missing": lambda p, v, h, c, b: p + v - b * h,
        "entropy_coef_missing": lambda p, v, h, c, b: p + c * v - h,
        "coefficients_exchanged": lambda p, v, h, c, b: p + b * v - c * h,
        "coefficients_missing": lambda p, v, h, c, b: p + v - h,
        "halved_again": lambda p, v, h, c, b: p + c * v / 2 - b * h,
        "value_forgotten": lambda p, v, h, c, b: p - b * h + 0 * v,
        "entropy_forgotten": lambda p, v, h, c, b: p + c * v + 0 * h,
        "policy_forgotten": lambda p, v, h, c, b: 0 * p + c * v - b * h,
        "mean_of_three": lambda p, v, h, c, b: (p + c * v - b * h) / 3,
        "coefficients_fixed": lambda p, v, h, c, b: p + 0.5 * v - 0.01 * h,
        "entropy_without_gradient": lambda p, v, h, c, b: p + c * v - b * h.detach(),
        "value_without_gradient": lambda p, v, h, c, b: p + c * v.detach() - b * h,
        "absolute_value": lambda p, v, h, c, b: p.abs() + c * v - b * h,
        "coefficient_on_the_policy": lambda p, v, h, c, b: (1 - c) * p + c * v - b * h,
        "weights_made_to_sum_to_one": lambda p, v, h, c, b: (p + c * v - b * h) / (1 + c + b),
    }.items()
}

# --- one gradient step ---------------------------------------------------------------------


@passes("clipped_gradient_step")
def cleared_in_the_module(loss, networks, optimizer, *, max_grad_norm):
    networks.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(list(networks.parameters()), max_norm=max_grad_norm)
    optimizer.step()
    return norm


@passes("clipped_gradient_step")
def shortened_by_hand(loss, networks, optimizer, max_grad_norm):
    for weights in networks.parameters():
        weights.grad = None
    loss.backward()
    squares = [(weights.grad**2).sum() for weights in networks.parameters()]
    norm = torch.stack(squares).sum().sqrt()
    if norm > max_grad_norm:
        for weights in networks.parameters():
            weights.grad *= max_grad_norm / norm
    optimizer.step()
    return norm


@passes("clipped_gradient_step")
def with_autograd(loss, networks, optimizer, *, max_grad_norm):
    weights = list(networks.parameters())
    found = torch.autograd.grad(loss, weights)
    norm = torch.cat([each.flatten() for each in found]).norm()
    scale = (max_grad_norm / norm.clamp(min=1e-12)).clamp(max=1.0)
    for each, gradient in zip(weights, found, strict=True):
        each.grad = gradient * scale
    optimizer.step()
    return norm


@passes("clipped_gradient_step")
def cleared_before_and_after(loss, networks, optimizer, *, max_grad_norm=0.5):
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm).clone()
    optimizer.step()
    optimizer.zero_grad()
    return norm.float()


def shorten(networks, limit):
    return nn.utils.clip_grad_norm_(networks.parameters(), limit)


def length(networks):
    return nn.utils.get_total_norm([each.grad for each in networks.parameters()])


@breaks("clipped_gradient_step")
def clipped_before_backward(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    norm = shorten(networks, max_grad_norm)
    loss.backward()
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def gradients_added_up(loss, networks, optimizer, *, max_grad_norm):
    loss.backward()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def cleared_after_backward(loss, networks, optimizer, *, max_grad_norm):
    loss.backward()
    optimizer.zero_grad()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    return norm


def _cleared_after_the_norm(loss, networks, optimizer, *, max_grad_norm):
    loss.backward()
    norm = shorten(networks, max_grad_norm)
    optimizer.zero_grad()
    optimizer.step()
    return norm


WRONG["clipped_gradient_step"]["cleared_after_backward#late"] = _cleared_after_the_norm


@breaks("clipped_gradient_step")
def cleared_at_the_end(loss, networks, optimizer, *, max_grad_norm):
    loss.backward()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    optimizer.zero_grad()
    return norm


@breaks("clipped_gradient_step")
def not_clipped_in_time(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return shorten(networks, max_grad_norm)


@breaks("clipped_gradient_step")
def each_number_clipped(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = length(networks)
    nn.utils.clip_grad_value_(networks.parameters(), max_grad_norm)
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def each_tensor_by_itself(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = length(networks)
    for weights in networks.parameters():
        nn.utils.clip_grad_norm_([weights], max_grad_norm)
    optimizer.step()
    return norm


def scaled_step(scale):
    def step(loss, networks, optimizer, *, max_grad_norm):
        optimizer.zero_grad()
        loss.backward()
        norm = length(networks)
        for weights in networks.parameters():
            weights.grad *= scale(norm, max_grad_norm)
        optimizer.step()
        return norm

    return step


WRONG["clipped_gradient_step"] |= {
    "always_brought_to_the_limit": scaled_step(lambda norm, limit: limit / norm),
    "always_of_length_one": scaled_step(lambda norm, limit: 1 / norm),
    "limit_ignored": scaled_step(lambda norm, limit: min(1.0, 0.5 / norm)),
}


@breaks("clipped_gradient_step")
def norm_after_clipping(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    shorten(networks, max_grad_norm)
    optimizer.step()
    return length(networks)


def returning(change):
    def step(loss, networks, optimizer, *, max_grad_norm):
        norm = training_loop.clipped_gradient_step(
            loss, networks, optimizer, max_grad_norm=max_grad_norm
        )
        return change(norm, loss, networks)

    return step


def weight_norm(norm, loss, networks):
    return nn.utils.get_total_norm(list(networks.parameters()))


def largest(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(networks.parameters(), max_grad_norm, norm_type=math.inf)
    optimizer.step()
    return norm


WRONG["clipped_gradient_step"] |= {
    "loss_returned": returning(lambda norm, loss, networks: loss),
    "squared_norm": returning(lambda norm, loss, networks: norm**2),
    "norm_of_the_weights": returning(weight_norm),
    "largest_number": largest,
}


@breaks("clipped_gradient_step")
def step_forgotten(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    return shorten(networks, max_grad_norm)


@breaks("clipped_gradient_step")
def backward_forgotten(loss, networks, optimizer, *, max_grad_norm):
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    return norm


def _cleared_and_no_backward(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def uphill(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    (-loss).backward()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def one_step_late(loss, networks, optimizer, *, max_grad_norm):
    optimizer.step()
    optimizer.zero_grad()
    loss.backward()
    return shorten(networks, max_grad_norm)


@breaks("clipped_gradient_step")
def two_steps_for_one(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = shorten(networks, max_grad_norm)
    optimizer.step()
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def loss_clipped(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.clamp(-max_grad_norm, max_grad_norm).backward()
    norm = length(networks)
    optimizer.step()
    return norm


@breaks("clipped_gradient_step")
def weights_clipped(loss, networks, optimizer, *, max_grad_norm):
    optimizer.zero_grad()
    loss.backward()
    norm = length(networks)
    optimizer.step()
    with torch.no_grad():
        size = nn.utils.get_total_norm(list(networks.parameters()))
        for weights in networks.parameters():
            weights *= (max_grad_norm / (size + 1e-6)).clamp(max=1.0)
    return norm


# --- when to stop --------------------------------------------------------------------------


@passes("stop_epochs")
def with_an_if(kl_k1, *, max_kl=0.03):
    stop = False
    if kl_k1 > max_kl:
        stop = True
    return stop


@passes("stop_epochs")
def in_numpy(kl_k1, max_kl=0.03):
    return np.greater(kl_k1, max_kl)


@passes("stop_epochs")
def as_a_tensor(kl_k1, *, max_kl=0.03):
    return torch.as_tensor(kl_k1 - max_kl) > 0


@passes("stop_epochs")
def not_while_it_is_near(kl_k1, *, max_kl=0.03):
    return not kl_k1 <= max_kl


@passes("stop_epochs")
def one_or_zero(kl_k1, **options):
    return int(options.get("max_kl", 0.03) < kl_k1)


def rule(decide):
    def stop(kl_k1, *, max_kl=0.03):
        return bool(decide(kl_k1, max_kl))

    return stop


WRONG["stop_epochs"] |= {
    name: rule(decide)
    for name, decide in {
        "stops_when_near": lambda kl, limit: kl < limit,
        "absolute_value": lambda kl, limit: abs(kl) > limit,
        "stops_at_the_limit": lambda kl, limit: kl >= limit,
        "limit_ignored": lambda kl, limit: kl > 0.03,
        "limit_ignored#0.01": lambda kl, limit: kl > 0.01,
        "limit_ignored#0.015": lambda kl, limit: kl > 0.015,
        "one_and_a_half_times": lambda kl, limit: kl > 1.5 * limit,
        "half_the_limit": lambda kl, limit: kl > limit / 2,
        "never": lambda kl, limit: False,
        "always": lambda kl, limit: True,
        "sign_turned_before": lambda kl, limit: -kl > limit,
        "any_move": lambda kl, limit: kl > 0,
        "squared": lambda kl, limit: kl**2 > limit,
        "in_bits": lambda kl, limit: kl / math.log(2) > limit,
        "root_taken": lambda kl, limit: kl > 0 and math.sqrt(kl) > limit,
    }.items()
}

# --- the loop with a bug -------------------------------------------------------------------


def squeeze(
    old=lambda step: step["old"],
    loss=None,
    *,
    parts=2,
    reduce=torch.mean,
    sign=-1,
    epochs=lambda count: range(count),
    only=None,
):
    """The loop, with one part replaced; `old` is asked at every step."""

    def run(logits, actions, log_probs_old, advantages, *, num_epochs, clip_epsilon, learning_rate):
        first = logits.detach()
        logits = first.clone().requires_grad_()
        step = {"old": log_probs_old, "start": first.log_softmax(-1)[actions], "behind": None}
        for _ in epochs(num_epochs):
            step["epoch"] = logits.detach().log_softmax(-1)[actions]
            for rows in torch.arange(len(actions)).tensor_split(parts)[:only]:
                log_probs = logits.log_softmax(-1)[actions[rows]]
                step["now"] = logits.detach().log_softmax(-1)[actions]
                step["rows"] = rows
                ratios = (log_probs - old(step)[rows]).exp()
                edges = 1 - clip_epsilon, 1 + clip_epsilon
                terms = (loss or clipped)(ratios, advantages[rows], edges, log_probs)
                (gradient,) = torch.autograd.grad(sign * reduce(terms), logits)
                logits = (logits - learning_rate * gradient).detach().requires_grad_()
            step["behind"] = step["epoch"]
        return logits.detach()

    return run


def clipped(ratios, advantages, edges, log_probs):
    return torch.minimum(ratios * advantages, ratios.clamp(*edges) * advantages)


def first_rows(step):
    shifted = step["old"].clone()
    shifted[step["rows"]] = step["old"][: len(step["rows"])]
    return shifted


RIGHT["mended_epochs"]["one_line_less"] = squeeze()


@passes("mended_epochs")
def gradient_by_hand(
    logits, actions, log_probs_old, advantages, *, num_epochs, clip_epsilon, learning_rate
):
    logits = logits.detach().clone()
    chosen = nn.functional.one_hot(actions, len(logits)).to(logits.dtype)
    for _ in range(num_epochs):
        for rows in torch.arange(len(actions)).tensor_split(2):
            ratios = (logits.log_softmax(-1)[actions[rows]] - log_probs_old[rows]).exp()
            good = advantages[rows] > 0
            silent = torch.where(good, ratios > 1 + clip_epsilon, ratios < 1 - clip_epsilon)
            push = ratios * advantages[rows] * ~silent
            scores = chosen[rows] - logits.softmax(-1)
            logits = logits + learning_rate * (push.unsqueeze(-1) * scores).mean(0)
    return logits


@passes("mended_epochs")
def with_an_optimizer(
    logits, actions, log_probs_old, advantages, num_epochs, clip_epsilon, learning_rate
):
    weights = nn.Parameter(logits.detach().clone())
    optimizer = torch.optim.SGD([weights], lr=learning_rate)
    for _ in range(num_epochs):
        for rows in torch.arange(len(actions)).tensor_split(2):
            optimizer.zero_grad()
            ratios = torch.exp(weights.log_softmax(-1)[actions[rows]] - log_probs_old[rows])
            edges = 1 - clip_epsilon, 1 + clip_epsilon
            (-clipped(ratios, advantages[rows], edges, None).mean()).backward()
            optimizer.step()
    return weights.detach()


@passes("mended_epochs")
def old_ones_kept_aside(
    logits, actions, log_probs_old, advantages, *, num_epochs, clip_epsilon, learning_rate
):
    kept = log_probs_old.detach().clone()
    return squeeze(lambda step: kept)(
        logits, actions, log_probs_old, advantages,
        num_epochs=num_epochs, clip_epsilon=clip_epsilon, learning_rate=learning_rate,
    )  # fmt: skip


def no_minimum(ratios, advantages, edges, log_probs):
    return ratios.clamp(*edges) * advantages


def plain(ratios, advantages, edges, log_probs):
    return ratios * advantages


WRONG["mended_epochs"] |= {
    "old_policy_renewed_each_epoch": squeeze(lambda step: step["epoch"]),
    "old_policy_renewed_each_step": squeeze(lambda step: step["now"]),
    "old_policy_renewed_at_the_start": squeeze(lambda step: step["start"]),
    "not_clipped": squeeze(loss=plain),
    "minimum_forgotten": squeeze(loss=no_minimum),
    "climbs_down": squeeze(sign=1),
    "summed": squeeze(reduce=torch.sum),
    "one_epoch_only": squeeze(epochs=lambda count: range(min(count, 1))),
    "first_minibatch_only": squeeze(only=1),
    "whole_batch_at_once": squeeze(parts=1),
    "rows_of_the_wrong_minibatch": squeeze(first_rows),
    "old_policy_is_uniform": squeeze(lambda step: torch.full_like(step["old"], math.log(1 / 3))),
    "one_epoch_behind": squeeze(
        lambda step: step["old"] if step["behind"] is None else step["behind"]
    ),
}

# --- the numbers of a run -------------------------------------------------------------------------

LETTERS = "abcdefgh"
N, T, K, M, SIZE, BUDGET = 16, 128, 10, 8, 256, 1_000_000
B = T * N
ITERATIONS = BUDGET // B
PRICE, OPTIMISER = 2.0, 10.0  # ms
FEW, MANY = (2, 61_440), (10, 20_480)  # epochs, and the steps that they need


def squeeze_per_sample(epochs):
    return epochs * M * OPTIMISER / B


def even_price(few=None):
    few = squeeze_per_sample(2) if few is None else few
    return (MANY[1] * squeeze_per_sample(10) - FEW[1] * few) / (FEW[1] - MANY[1])


COLLECT, SQUEEZE = B * PRICE, K * M * OPTIMISER
SOLVED = {
    "a": B,
    "b": ITERATIONS,
    "c": ITERATIONS * B,
    "d": ITERATIONS * K * M,
    "e": K,
    "f": ITERATIONS,
    "g": COLLECT / (COLLECT + SQUEEZE),
    "h": even_price(),
}
RIGHT["numbers_of_a_run"] = {
    "by_hand": SOLVED,
    "a_list": list(SOLVED.values()),
    "rounded": {**SOLVED, "g": 0.837, "h": 0.078},
    "capital_letters": {letter.upper(): number for letter, number in SOLVED.items()},
    "a_tensor": torch.tensor(list(SOLVED.values()), dtype=torch.float64),
}
few_iterations = BUDGET // T
one_environment = T * PRICE
WRONG["numbers_of_a_run"] = {
    "environments_forgotten": SOLVED
    | {"a": T, "b": few_iterations, "c": few_iterations * T, "d": few_iterations * K * M}
    | {"f": few_iterations},
    "rounded_up": SOLVED
    | {"b": ITERATIONS + 1, "c": (ITERATIONS + 1) * B, "d": (ITERATIONS + 1) * K * M}
    | {"f": ITERATIONS + 1},
    "budget_taken_as_used": SOLVED | {"c": BUDGET},
    "epochs_forgotten": SOLVED | {"d": ITERATIONS * M},
    "size_taken_for_number": SOLVED | {"d": ITERATIONS * K * SIZE},
    "minibatches_counted": SOLVED | {"e": K * M},
    "each_epoch_starts_at_one": SOLVED | {"f": ITERATIONS * K},
    "first_epoch_all_ones": SOLVED | {"f": ITERATIONS * M},
    "step_priced_once_for_all": SOLVED | {"g": one_environment / (one_environment + SQUEEZE)},
    "share_of_the_squeeze": SOLVED | {"g": SQUEEZE / (COLLECT + SQUEEZE)},
    "ratio_of_the_two": SOLVED | {"g": COLLECT / SQUEEZE},
    "squeeze_forgotten_for_few_epochs": SOLVED | {"h": even_price(few=0.0)},
    "per_iteration": SOLVED | {"h": squeeze_per_sample(10) - squeeze_per_sample(2)},
    "in_seconds": SOLVED | {"h": even_price() / 1000},
}


# --- slow definitions ----------------------------------------------------------------------


def slow_deal(num_rows, num_minibatches, *, generator):
    sizes = [0] * num_minibatches
    for row in range(num_rows):
        sizes[row % num_minibatches] += 1
    return sizes, [0, num_rows, 0], 0, 1, 1, 1, 1


def slow_total(policy_loss, value_loss, entropy, *, value_coef, entropy_coef):
    return policy_loss + value_coef * value_loss - entropy_coef * entropy


def slow_step(loss, networks, optimizer, *, max_grad_norm):
    slopes = [number for row in loss.slopes for number in row]
    weights = [number for row in networks.start for number in row]
    norm = math.sqrt(sum(number**2 for number in slopes))
    scale = min(1, max_grad_norm / norm)
    speed, found = [0.0] * len(weights), []
    for _ in range(2):
        pairs = zip(speed, slopes, strict=True)
        speed = [optimizer.momentum * each + scale * slope for each, slope in pairs]
        pairs = zip(weights, speed, strict=True)
        weights = [each - optimizer.learning_rate * move for each, move in pairs]
        found += [norm, weights]
    return tuple(found)


def slow_stop(kl_k1, *, max_kl=0.03):
    return 1 if kl_k1 > max_kl else 0


def slow_loop(
    logits, actions, log_probs_old, advantages, *, num_epochs, clip_epsilon, learning_rate
):
    logits, half = list(logits), -(-len(actions) // 2)
    for _ in range(num_epochs):
        for rows in (range(half), range(half, len(actions))):
            total = sum(math.exp(each) for each in logits)
            policy = [math.exp(each) / total for each in logits]
            climb = [0.0] * len(logits)
            for row in rows:
                action, advantage = actions[row], advantages[row]
                ratio = policy[action] / math.exp(log_probs_old[row])
                if advantage > 0 and ratio > 1 + clip_epsilon:
                    continue
                if advantage < 0 and ratio < 1 - clip_epsilon:
                    continue
                for other in range(len(logits)):
                    score = (other == action) - policy[other]
                    climb[other] += ratio * advantage * score / len(rows)
            logits = [each + learning_rate * up for each, up in zip(logits, climb, strict=True)]
    return logits


ORACLES = {
    "shuffled_minibatches": slow_deal,
    "ppo_loss": slow_total,
    "clipped_gradient_step": slow_step,
    "stop_epochs": slow_stop,
    "mended_epochs": slow_loop,
}
