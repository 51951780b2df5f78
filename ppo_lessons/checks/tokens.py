"""Lesson 13: what the answers to its exercises must satisfy, and the usual mistakes in words."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

from ppo_lessons.checks.exercises import (
    EDGES,
    GRADIENTS,
    SEEDED,
    SMALLEST,
    Case,
    FunctionExercise,
    NumbersExercise,
    draw,
)

LEFT, HOLES, ROWS = "padding in front", "padding inside", "rows that differ"
WINDOW, HEAT = "where the logits stand", "temperature"
NO_END, JUNK = "responses without an end", "what stands behind the end"
TURNS, JUNK_PADDING = "several turns", "what stands in the padding"


def bits(*rows: str) -> list[list[bool]]:
    """Read rows of 1 and 0, as in "0011"."""
    return [[letter == "1" for letter in row] for row in rows]


# --- positions -----------------------------------------------------------------------------


def where_it_counts(answer: Callable[..., Any], mask: Tensor) -> Any:
    """Call an answer; in the padding any position from 0 to L − 1 is as good as 0."""
    found = answer(mask)
    if not isinstance(found, Tensor) or found.shape != mask.shape:
        return found
    usable = (found >= 0) & (found < mask.shape[-1])
    return torch.where(mask | ~usable, found, torch.zeros_like(found))


def position_case(stage: str, name: str, *rows: str) -> Case:
    """One mask."""
    return Case(stage=stage, name=name, inputs={"mask": bits(*rows)})


def drawn_mask(seed: int | str, rows: int, length: int) -> list[list[bool]]:
    """Draw rows with padding in front, and some inside; the last place of each counts."""
    random, found = Random(seed), []
    for row in range(rows):
        front = random.randint(1, length // 2) if row else 0
        inside = [random.random() < 0.75 for _ in range(length - front - 2)]
        found.append([False] * front + [True] + inside + [True])
    return found


POSITION_CASES = (
    position_case(SMALLEST, "three tokens, no padding", "111"),
    position_case(LEFT, "two places of padding in front", "00111"),
    position_case(LEFT, "one token behind four places of padding", "00001"),
    position_case(ROWS, "rows of one, three and four tokens", "0001", "0111", "1111"),
    position_case(ROWS, "all rows are padded", "00111", "00011"),
    position_case(ROWS, "the longest row comes last", "000011", "000111", "011111"),
    position_case(HOLES, "a prompt padded at its end, then a response", "11001110", "11110111"),
    position_case(HOLES, "padding in front, inside and behind", "01101100", "00110111"),
    Case(stage=SEEDED, name="4 rows of 9", inputs={"mask": drawn_mask(1, 4, 9)}),
    Case(stage=SEEDED, name="3 rows of 12", inputs={"mask": drawn_mask(2, 3, 12)}),
)

# --- log-probabilities of tokens -----------------------------------------------------------


def scoring_case(
    stage: str,
    name: str,
    *,
    seed: int,
    shape: tuple[int, int, int, int],
    temperature: float = 1.0,
    gradients: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Logits of some rows, and a response that is scored; `shape` is rows, P, T, words."""
    random = Random(seed)
    rows, prompt, response, words = shape
    tokens = [[random.randrange(words) for _ in range(response)] for _ in range(rows)]
    return Case(
        stage=stage,
        name=name,
        inputs={"logits": draw(random, rows, prompt + response, words), "tokens": tokens},
        options={"prompt_length": prompt, "temperature": temperature},
        integers=("tokens",),
        gradients=gradients,
        dtype=dtype,
    )


def plain_logits(*rows: list[list[float]]) -> list[list[list[float]]]:
    """Name the rows of a batch, one list of places each."""
    return list(rows)


SCORING_CASES = (
    Case(
        stage=SMALLEST,
        name="a prompt of one token, a response of two, two words",
        inputs={
            "logits": plain_logits([[0.0, 1.0], [2.0, 0.0], [0.0, 4.0]]),
            "tokens": [[1, 1]],
        },
        options={"prompt_length": 1, "temperature": 1.0},
        integers=("tokens",),
    ),
    Case(
        stage=WINDOW,
        name="a prompt of two tokens, a response of one, three words",
        inputs={
            "logits": plain_logits([[3.0, 0.0, 1.0], [0.0, 2.0, 0.5], [1.0, 0.0, 5.0]]),
            "tokens": [[1]],
        },
        options={"prompt_length": 2, "temperature": 1.0},
        integers=("tokens",),
    ),
    scoring_case(WINDOW, "a prompt of four, a response of two", seed=3, shape=(2, 4, 2, 3)),
    scoring_case(WINDOW, "a prompt of two, a response of four", seed=4, shape=(2, 2, 4, 3)),
    Case(
        stage=HEAT,
        name="one token at temperature 0.5",
        inputs={"logits": plain_logits([[1.0, 0.0, 0.5], [0.0, 3.0, 1.0]]), "tokens": [[2]]},
        options={"prompt_length": 1, "temperature": 0.5},
        integers=("tokens",),
    ),
    scoring_case(HEAT, "temperature 0.7", seed=5, shape=(2, 2, 3, 4), temperature=0.7),
    scoring_case(HEAT, "temperature 2", seed=6, shape=(2, 3, 2, 4), temperature=2.0),
    scoring_case(
        GRADIENTS, "gradients", seed=7, shape=(2, 2, 3, 4), temperature=0.8, gradients=True
    ),
    scoring_case(
        SEEDED, "3 rows, P = 4, T = 5, 6 words", seed=8, shape=(3, 4, 5, 6), temperature=0.9
    ),
    scoring_case(
        SEEDED,
        "4 rows, P = 3, T = 6, 5 words",
        seed=9,
        shape=(4, 3, 6, 5),
        temperature=1.3,
        dtype=torch.float32,
    ),
)

# --- the mask of a response ----------------------------------------------------------------

END = 2  # the id of EOS in these cases; 0 is the padding


def response_case(stage: str, name: str, *tokens: list[int], eos: int = END) -> Case:
    """Some responses."""
    return Case(
        stage=stage,
        name=name,
        inputs={"tokens": list(tokens)},
        options={"eos": eos},
        integers=("tokens",),
    )


def drawn_responses(seed: int | str, rows: int, length: int, *, often: float) -> list[list[int]]:
    """Draw tokens among which EOS is so frequent; what stands behind the first may be anything."""
    random = Random(seed)
    return [
        [END if random.random() < often else random.choice((0, 3, 4, 5)) for _ in range(length)]
        for _ in range(rows)
    ]


RESPONSE_CASES = (
    response_case(SMALLEST, "a word, then EOS", [5, 2]),
    response_case(JUNK, "EOS, then padding", [5, 6, 2, 0, 0]),
    response_case(JUNK, "EOS at once", [2, 0, 0]),
    response_case(JUNK, "EOS is the padding, too", [7, 0, 0, 0], eos=0),
    response_case(JUNK, "words and another EOS behind the end", [5, 2, 6, 2, 7]),
    response_case(JUNK, "a word with the id 0 inside", [5, 0, 6, 2, 0]),
    response_case(NO_END, "cut off by the limit", [5, 6, 7]),
    response_case(NO_END, "one ended, one cut off", [5, 2, 0, 0], [5, 6, 7, 8]),
    response_case(EDGES, "EOS in the last place", [5, 6, 2], [5, 2, 0]),
    response_case(EDGES, "three lengths", [2, 0, 0, 0], [5, 2, 0, 0], [5, 6, 7, 2]),
    response_case(SEEDED, "5 responses of 8", *drawn_responses(1, 5, 8, often=0.2)),
    response_case(SEEDED, "6 responses of 5", *drawn_responses(2, 6, 5, often=0.25)),
)

# --- several turns -------------------------------------------------------------------------


def turn_case(
    stage: str, name: str, lengths: list[list[int]], own: list[list[bool]], total: int
) -> Case:
    """Some conversations."""
    return Case(
        stage=stage,
        name=name,
        inputs={"lengths": lengths, "own": own},
        options={"total_length": total},
        integers=("lengths",),
    )


def drawn_turns(
    seed: int | str, rows: int, turns: int, longest: int
) -> tuple[list[list[int]], list[list[bool]], int]:
    """Draw lengths, who wrote each turn, and a total that leaves room for padding."""
    random = Random(seed)
    lengths = [[random.randint(1, longest) for _ in range(turns)] for _ in range(rows)]
    own = [[False] + [random.random() < 0.6 for _ in range(turns - 1)] for _ in range(rows)]
    return lengths, own, max(map(sum, lengths)) + 2


TURN_CASES = (
    turn_case(SMALLEST, "a prompt of 2, an answer of 3", [[2, 3]], [[False, True]], 5),
    turn_case(
        TURNS, "user, assistant, user, assistant", [[2, 1, 3, 2]], [[False, True, False, True]], 8
    ),
    turn_case(TURNS, "a tool answers in between", [[1, 2, 4, 1]], [[False, True, False, True]], 8),
    turn_case(TURNS, "the last word is the user's", [[2, 2, 1]], [[False, True, False]], 5),
    turn_case(TURNS, "two turns of the assistant in a row", [[1, 1, 2]], [[False, True, True]], 4),
    turn_case(LEFT, "two places of padding in front", [[1, 2]], [[False, True]], 5),
    turn_case(
        LEFT,
        "one place of padding, four turns",
        [[2, 1, 1, 2]],
        [[False, True, False, True]],
        7,
    ),
    turn_case(
        ROWS,
        "two conversations of other lengths",
        [[1, 2, 1], [2, 3, 2]],
        [[False, True, False], [False, True, True]],
        7,
    ),
    turn_case(
        EDGES,
        "a turn without tokens, which stands for a shorter conversation",
        [[2, 3, 0, 0], [1, 1, 1, 2]],
        [[False, True, False, True], [False, True, False, True]],
        6,
    ),
    turn_case(SEEDED, "4 conversations of 5 turns", *drawn_turns(1, 4, 5, 4)),
    turn_case(SEEDED, "3 conversations of 6 turns", *drawn_turns(2, 3, 6, 3)),
)

# --- a mean over tokens --------------------------------------------------------------------


def mean_case(
    stage: str,
    name: str,
    values: list[list[float]],
    *rows: str,
    gradients: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Numbers of tokens, and which of them count."""
    return Case(
        stage=stage,
        name=name,
        inputs={"values": values, "mask": bits(*rows)},
        gradients=gradients,
        dtype=dtype,
    )


INFINITE = float("inf")
MEAN_CASES = (
    mean_case(SMALLEST, "two of three count", [[2.0, 4.0, 9.0]], "110"),
    mean_case(ROWS, "one token against three", [[6.0, 5.0, 5.0], [2.0, 1.0, 3.0]], "100", "111"),
    mean_case(
        ROWS,
        "three responses",
        [[1.0, 2.0, 7.0, 7.0], [4.0, -8.0, 8.0, 8.0], [3.0, 5.0, -1.0, 2.0]],
        *("1100", "1000", "1110"),
    ),
    mean_case(
        ROWS, "the last token counts most", [[1.0, 9.0, 5.0], [2.0, 3.0, 20.0]], "110", "111"
    ),
    mean_case(
        JUNK_PADDING, "an infinity in the padding", [[2.0, 4.0, INFINITE], [3.0, 1.0, 5.0]],
        "110", "111",
    ),
    mean_case(
        JUNK_PADDING, "a million in the padding", [[1.0, 3.0, 1e6], [5.0, 1e6, 1e6]], "110", "100"
    ),
    mean_case(EDGES, "a row that counts nowhere", [[4.0, 7.0], [2.0, 6.0]], "00", "11"),
    mean_case(EDGES, "nothing counts", [[4.0, 7.0], [2.0, 6.0]], "00", "00"),
    mean_case(EDGES, "holes inside", [[4.0, 7.0, 1.0, 3.0]], "1011"),
    mean_case(
        GRADIENTS, "gradients", [[1.0, 2.0, 5.0], [4.0, -3.0, 2.5]], "110", "111", gradients=True
    ),
    mean_case(
        SEEDED, "4 rows of 6", draw(Random(5), 4, 6), "111000", "100000", "111111", "111100",
        gradients=True,
    ),
    mean_case(
        SEEDED, "3 rows of 8", draw(Random(6), 3, 8), "11111000", "11111111", "11000000",
        dtype=torch.float32,
    ),
)  # fmt: skip

# --- mistakes in words ---------------------------------------------------------------------

POSITION_MISTAKES = {
    "counted_from_the_left_edge": "Padding moves the tokens to other positions: the first real "
    "token of each row stands at 0, wherever the row begins.",
    "starts_at_one": "The first real token stands at 1. It stands at 0.",
    "negative_in_the_padding": "In the padding stand positions below 0. Nobody reads them, and a "
    "table of embeddings stops with an error all the same.",
    "padding_counted": "You counted the padding. Count what is real.",
    "counted_from_the_end": "You counted from the last token backwards.",
    "first_row_for_all": "All rows are moved by the padding of the first one. Each has its own.",
    "least_padding_for_all": "All rows are moved by the padding of the longest one. Each has its "
    "own.",
    "counted_along_the_batch": "You counted down the rows. Positions run along a row.",
    "holes_counted": "Padding in front is left out, and padding inside is counted.",
    "all_at_zero": "All tokens stand at 0. Then order is lost: the model sees a bag of words.",
    "counted_in_twos": "Each token advances the position by two.",
    "starts_anew_behind_holes": "Behind a hole you count from 0 again. The row goes on.",
}
SCORING_MISTAKES = {
    "not_shifted": "Your logits stand one place too late: those that have seen a token already. "
    "Which ones were there before it was drawn?",
    "shifted_twice": "Your logits stand one place too early.",
    "prompt_length_ignored": "You scored against the first logits of the row. Where does the "
    "response begin?",
    "temperature_forgotten": "The temperature has no effect. The sampler divided its logits by it, "
    "so whoever scores must do so as well.",
    "temperature_multiplied": "You multiplied by the temperature. A small one makes a policy more "
    "decided.",
    "temperature_after_the_softmax": "You divided log-probabilities by the temperature: they are "
    "normalised no more. Which comes first?",
    "not_normalised": "These are logits, not log-probabilities. What is missing makes the "
    "probabilities of all words sum to 1.",
    "probabilities": "You gave probabilities. Asked for are their logarithms.",
    "likeliest_token": "You scored the likeliest token of each place, not the one that stands in "
    "the response.",
    "normalised_over_places": "Your softmax runs over the places. It runs over the words.",
    "normalised_over_rows": "Your softmax runs over the rows of the batch. It runs over the words.",
    "added_up_so_far": "You added up along the response. Asked for is one number for each token.",
    "tokens_of_the_next_place": "You scored the token of the next place. Logits and tokens are "
    "moved against each other once, not twice.",
    "averaged_over_words": "You averaged over all words. Asked for is the one that was drawn.",
}
RESPONSE_MISTAKES = {
    "eos_left_out": "EOS is left out. To stop was a choice of the model, and it must be able to "
    "learn it.",
    "one_too_many": "One place behind EOS counts, too.",
    "everything_but_eos": "All that is not EOS counts, the padding behind it as well.",
    "everything_but_padding": "You asked which id a token has. Behind the end may stand anything, "
    "and the padding's id may stand for a word.",
    "up_to_the_last_eos": "You went up to the last EOS. The response ends at the first.",
    "all_of_it": "Everything counts. What stands behind EOS was never drawn.",
    "nothing_without_an_end": "A response without EOS counts nowhere. It was cut off, and all of "
    "its tokens were drawn.",
    "first_token_without_an_end": "Of a response without EOS only the first token counts. `argmax` "
    "gives 0 where it finds nothing.",
    "longest_for_all": "All rows count as far as the longest.",
    "first_row_for_all_rows": "All rows count as far as the first.",
    "eos_only": "Only EOS counts. The words before it were drawn as well.",
    "turned": "What counts and what does not are exchanged.",
    "first_token_left_out": "The first token is left out. It is the first action.",
    "behind_the_end": "You kept what stands behind the end.",
}
TURN_MISTAKES = {
    "everything_after_the_prompt": "All that follows the first turn counts, with what the user and "
    "the tools wrote. The policy chose none of that.",
    "last_turn_only": "Only the last turn of the assistant counts. Each of them was chosen.",
    "first_turn_only": "Only the first turn of the assistant counts. Each of them was chosen.",
    "all_real_tokens": "All tokens count that are no padding.",
    "the_others": "The turns of all others count, and the assistant's do not.",
    "padded_behind": "You put the padding behind the conversation. Here it stands in front.",
    "first_token_of_each_turn_left_out": "The first token of each turn is left out. It was drawn "
    "like the others.",
    "last_token_of_each_turn_left_out": "The last token of each turn is left out. It is EOS, and "
    "to stop was a choice, too.",
    "one_too_many_in_each_turn": "One token behind each turn counts as well.",
    "every_other_turn": "You counted every second turn. Who wrote it says `own`.",
    "turns_of_the_first_row": "All conversations are cut as the first one.",
    "shifted_to_the_left": "The whole mask stands one place too early.",
    "padding_counts": "The padding in front counts as well. Nobody wrote it.",
}
MEAN_MISTAKES = {
    "divided_by_all": "You divided by all places. Divide by those that count.",
    "padding_counts_too": "The padding is averaged with the rest.",
    "mean_of_row_means": "You averaged each row, then the rows. Then a token of a short response "
    "weighs more than one of a long response.",
    "multiplied_by_the_mask": "An infinity times 0 is no number. Put a 0 in its place instead.",
    "nothing_over_nothing": "Where nothing counts you divided by 0. Asked for is 0 then.",
    "only_added_up": "You added up and did not divide.",
    "divided_by_rows": "You divided by the number of rows. Divide by the number of tokens.",
    "divided_by_the_longest": "You divided as if all rows were as long as the longest.",
    "mask_turned": "You averaged the padding, and left out what counts.",
    "last_token_left_out": "The last token that counts is left out in each row.",
    "one_added_to_the_count": "You added 1 to the count, so as not to divide by 0. That changes "
    "all means.",
    "median_of_tokens": "This is a middle one, not the mean.",
}
BY_HAND_MISTAKES = {
    "logits_of_the_token_itself": "You took the logits behind the token. Those in front of it were "
    "there when it was drawn.",
    "counted_from_one": "You counted places from 1. Their indices begin at 0.",
    "temperature_as_a_factor": "You multiplied the logits by the temperature.",
    "probability_halved": "You divided the probability by the temperature. Logits are divided: "
    "probabilities are raised to a power, then made to sum to 1 again.",
    "ratio_turned": "Your ratios stand upside down: above stands who scores, below who drew.",
    "not_normalised_anew": "You raised probabilities to a power, and left it there. They must sum "
    "to 1.",
    "mean_of_three_ratios": "You averaged the ratios of the three words as if all were drawn as "
    "often.",
    "all_ratios_one": "You took the ratio for 1. The sampler left a word out, so the others were "
    "more likely than the scorer says.",
    "kept_mass_turned": "Your ratio stands upside down: the sampler had the larger probability.",
    "logarithm_of_ten": "This is the logarithm to base 10. A nat has base e.",
    "sign_of_the_logarithm": "The sign is turned. The ratio is below 1.",
    "mean_over_tokens_only": "You averaged over what counts. Asked is what comes out if padding "
    "is averaged as well.",
    "lengths_averaged": "You averaged the four shares as if T were the longest response.",
}

# --- exercises -----------------------------------------------------------------------------

EXERCISES = (
    FunctionExercise(
        id="tokens.positions",
        cases=POSITION_CASES,
        gives="tensor",
        returns="a torch.Tensor of whole numbers, of the shape of mask",
        kind="integers",
        through=where_it_counts,
        mistakes=POSITION_MISTAKES,
        hints=(
            "Write one row with padding, and under each real token how many real tokens stand "
            "before it.",
            "A running count along the row, of what is real. Then look at two things: what the "
            "first real token gets, and what the padding in front gets.",
            "position of place l = max(0, Σ mask[0 … l] − 1)",
        ),
    ),
    FunctionExercise(
        id="tokens.token_log_probs",
        cases=SCORING_CASES,
        gives="tensor",
        returns="a torch.Tensor of the shape of tokens",
        learns=("logits",),
        mistakes=SCORING_MISTAKES,
        hints=(
            "Logits at a place are made of all tokens up to that place. So which place knew all "
            "that came before token t of the response, and nothing more?",
            "Three steps: cut out the places that score the response, make log-probabilities "
            "of the divided logits, pick one number from each row of words.",
            "log π(token t) = z/τ − log Σ exp(z/τ), with z of place P − 1 + t",
        ),
    ),
    FunctionExercise(
        id="tokens.response_mask",
        cases=RESPONSE_CASES,
        gives="tensor",
        returns="a boolean torch.Tensor of the shape of tokens",
        kind="yes or no",
        mistakes=RESPONSE_MISTAKES,
        hints=(
            "A token counts if the response had not ended before it. Say that for EOS itself: had "
            "it ended before?",
            "Count how many EOS stand in front of each place, the place itself left out.",
            "mask[t] ⇔ number of EOS among tokens 0 … t − 1 = 0",
        ),
    ),
    FunctionExercise(
        id="tokens.actions_of_turns",
        cases=TURN_CASES,
        gives="tensor",
        returns="a boolean torch.Tensor with total_length places for each row of lengths",
        kind="yes or no",
        mistakes=TURN_MISTAKES,
        hints=(
            "Where does each turn begin and where does it end, if the padding in front is counted "
            "as well? A loop over rows and turns is fine.",
            "The padding of a row is what its turns leave of the total length. Each turn begins "
            "where the one before it ended.",
            "start of turn k = total − Σ lengths + Σ lengths[0 … k−1]",
        ),
    ),
    FunctionExercise(
        id="tokens.masked_mean",
        cases=MEAN_CASES,
        gives="scalar",
        learns=("values",),
        mistakes=MEAN_MISTAKES,
        hints=(
            "A sum over what counts, divided by how many count. What may stand in the padding, and "
            "what if nothing counts?",
            "Put a zero wherever the mask is False, before you add. And let the divisor be at "
            "least 1.",
            "mean = Σ mask·values / max(1, Σ mask)",
        ),
    ),
    NumbersExercise(
        id="tokens.ratios_by_hand",
        questions={
            "a": (
                "index of the place whose logits score the third token",
                "Place 0 is the first of the row. What had the model read when it drew the token?",
            ),
            "b": (
                "probability of the first word at temperature 0.5",
                "Halving the temperature doubles the logits. What does that do to probabilities?",
            ),
            "c": ("ratio of the first word", "Who scores stands above, who drew below."),
            "d": ("ratio of the third word", "As before. It is drawn rarely now."),
            "e": (
                "mean ratio over draws of the sampler",
                "Weigh each ratio with the probability that its word is drawn.",
            ),
            "f": (
                "ratio of a word that the cut sampler draws",
                "What was left is made to sum to 1 again, by whoever draws.",
            ),
            "g": ("mean log-ratio of the cut sampler, in nats", "All ratios are the same number."),
            "h": (
                "mean entropy if the padding is averaged as well, in nats",
                "How many of the 40 places count?",
            ),
        },
        tolerance=0.002,
        mistakes=BY_HAND_MISTAKES,
        hints=(
            "Write the three probabilities of the sampler next to those of the scorer, word by "
            "word.",
            "Logits that are doubled square the probabilities, up to a factor that makes them sum "
            "to 1.",
            "μ(w) = π(w)² / Σ π²;  ratio = π / μ;  E_μ[ratio] = Σ μ·π/μ;  cut: μ = π / Σ kept π",
        ),
    ),
)
