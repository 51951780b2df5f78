"""Every word that a widget says, one table per language.

Both sides read it: Python formats `{name}` with `str.format`, the script with its `say`. A new
language is a new table with the same keys; a test holds them equal.
"""

from typing import Any

Words = dict[str, str]

WORDS: dict[str, dict[str, Words]] = {
    "en": {
        "base": {
            "large": "Large text",
            "full": "Full screen",
            "leave_full": "Leave full screen",
            "previous": "Previous state",
            "next": "Next state",
            "where": "{number} of {total}: {title}",
            "play": "Play",
            "stop": "Stop",
            "failed": "Something went wrong: {reason}. Run the cell again.",
        },
        "clip_region": {
            "title": "Clip region",
            "question": "Which samples still push the policy?",
            "views": "What to look at",
            "view_samples": "Samples",
            "view_one_step": "One big step",
            "view_momentum": "Momentum",
            "view_unsampled": "Unsampled action",
            "epsilon": "clip_epsilon ε",
            "formula": "L_clip = mean of min( ratio·Â, clip(ratio, 1 − ε, 1 + ε)·Â )",
            "guess": "How many of the {total} samples still push?",
            "reveal": "Reveal",
            "guess_range": "Give a whole number between 0 and {total}.",
            "guess_again": "Guess again",
            "guessed": "You said {guess}; {pushing} of {total} still push.",
            "guessed_nothing": "{pushing} of {total} still push.",
            "hidden": "?",
            "better": "better than expected: flat to the right",
            "worse": "worse than expected: flat to the left",
            "ratio": "ratio π / π_old",
            "objective": "L_clip / |advantage|",
            "band": "1 ± ε",
            "dashed": "ratio·Â",
            "flat": "no gradient",
            "group_better": "Samples with advantage above 0",
            "group_worse": "Samples with advantage below 0",
            "help": "Drag a sample. Keys: left and right move it (with shift, faster), up and "
            "down choose another, Esc leaves.",
            "sample": "Sample {number}, advantage {advantage}",
            "sample_hidden": "ratio {ratio}",
            "sample_pushes": "ratio {ratio}, pushes",
            "sample_back": "ratio {ratio}, pushes back",
            "sample_silent": "ratio {ratio}, no gradient",
            "legend_pushes": "pushes",
            "legend_back": "outside, pushes back",
            "legend_silent": "no gradient",
            "legend_hidden": "not revealed",
            "outside": "fraction_outside",
            "zero_gradient": "fraction_zero_gradient",
            "mean_objective": "mean objective L_clip",
            "count": "{count} / {total} = {fraction}",
            "sentence": "ε = {epsilon}: {outside} of {total} samples left {low} to {high}; "
            "{silent} of these no longer push. {pushing} of {total} still push, {back} of them "
            "back. Mean objective {objective}.",
            "sentence_hidden": "ε = {epsilon}, {total} samples: state how many still push, then "
            "reveal.",
            "step": "step",
            "fixed_epsilon": "ε = 0.2",
            "gradient_on": "gradient {gradient}",
            "gradient_off": "gradient 0",
            "path_title": "where the steps land",
            "path_right": "ratio after each step",
            "step_axis": "optimiser steps",
            "ratio_axis": "ratio",
            "objective_axis": "objective",
            "one_step_intro": "One step of plain gradient ascent, learning rate 1, from "
            "probability 0.2. At ratio 1 the clip removes nothing, so nothing shortens the step.",
            "momentum_intro": "Adam, learning rate 0.03, from probability 0.2. Past 1.2 the "
            "gradient is 0; what Adam remembers carries the ratio on.",
            "unsampled_intro": "The batch holds actions a and b. Action c was never drawn, so no "
            "ratio of the batch shows how its probability grows.",
            "path_sentence": "Step {step}: probability {probability}, ratio {ratio}, {gradient}.",
            "unsampled_sentence": "Probability of c {probability}: sampled ratios {ratio} and "
            "{ratio}, fraction_outside {outside}, KL {kl} nats. A batch of 64 misses c with "
            "probability {miss}.",
            "one_step_picture": "One step of size 1 lands far outside the band",
            "momentum_picture": "Momentum carries the ratio past the edge",
            "bars_title": "policy: old dashed, new filled",
            "kl_title": "KL rises, the clip sees nothing",
            "action_axis": "action",
            "kl_axis": "KL (nats), share",
            "rare_axis": "probability of c",
            "kl": "KL",
            "fraction_of_sampled": "fraction_outside",
            "sampled_mark": "ratio {ratio}",
            "unseen_mark": "not sampled",
            "state_guess": "guess first",
            "state_samples": "which samples push",
            "state_narrow": "a narrow clip",
            "state_wide": "a wide clip",
            "state_one_step": "one big step",
            "state_momentum_edge": "momentum: the edge",
            "state_momentum": "momentum: the end",
            "state_unsampled": "an action nobody drew",
        },
        "quiz": {
            "title": "Question",
            "answer": "Answer",
            "again": "Answer again",
            "choose": "Choose an option, then press Answer.",
            "right": "✔ right",
            "wrong": "✘ not yet",
            "verdict": "{verdict}: {letter}) {text}. {why}",
            "state_open": "question",
        },
        "predict": {
            "title": "Prediction",
            "guess": "Your guess",
            "guess_unit": "Your guess in {unit}",
            "keep": "Keep my guess",
            "none": "No guess yet.",
            "not_yet": "{id}: no guess yet. Run the cell to guess.",
            "kept": "Kept: {guess}.",
            "compared": "You said {guess}, measured {measured}.",
            "choose": "choose one",
            "state_open": "prediction",
        },
        "html": {
            "index_title": "PPO lessons: widgets",
            "index_intro": "Each page is one file and works without a network. A page with named "
            "states steps through them with Page Up and Page Down or the arrow keys; pages of "
            "questions scroll. Add #name to an address to open a state, #name?large for large "
            "text.",
            "lesson": "Lesson {number}: {title}",
            "quiz_page": "Questions",
            "states": "states",
            "back": "All widgets",
        },
    }
}


def words_of(name: str) -> dict[str, Words]:
    """Give what one widget's script needs: its words in each language.

    Args:
        name: of the widget, as in "clip_region".

    Returns:
        The words by language and key.
    """
    return {language: {**table["base"], **table[name]} for language, table in WORDS.items()}


def say(name: str, key: str, *, language: str = "en", **values: Any) -> str:
    """Fill one sentence.

    Args:
        name: of the widget, or "html".
        key: of the sentence.
        language: one of the tables.
        values: what stands in braces, as text or numbers.

    Returns:
        The sentence.
    """
    return WORDS[language][name][key].format(**values)
