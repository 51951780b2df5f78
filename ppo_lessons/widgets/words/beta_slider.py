"""Words of BetaSlider."""

WORDS = {
    "en": {
        "title": "What is a nat worth?",
        "question": "What does a price on distance from the reference do to a run?",
        "beta": "β, reward per nat",
        "iteration": "iteration",
        "guess": "The score, the KL and the length you see. With β = {beta}: how many of 100 "
        "answers are right at the end?",
        "guessed": "You said {guess}; it is {answer}.",
        "guessed_nothing": "It is {answer}.",
        "strip_score": "score of the judge (spreads)",
        "strip_success": "share of right answers",
        "strip_kl_reference": "KL from the reference (nats per answer)",
        "strip_length": "length (tokens)",
        "hidden": "hidden until you have guessed",
        "legend_0": "seed 0",
        "legend_1": "seed 1",
        "legend_2": "seed 2",
        "score": "score at the end",
        "success": "right at the end",
        "kl_reference": "KL at the end (nats)",
        "length": "tokens at the end",
        "picture_title": "β = {beta}: three runs of 40 iterations",
        "about": "Three seeds of 40 iterations at each of six prices, run once. The judge was "
        "fitted to comparisons; the share of right answers is what no model ever sees.",
        "sentence": "β = {beta}: at the end the score is {score}, {answer} of 100 answers are "
        "right, at best {best} on the way; KL {kl} nats, {length} tokens (middle of three seeds).",
        "sentence_hidden": "β = {beta}: at the end the score is {score}, KL {kl} nats, {length} "
        "tokens (middle of three seeds). State your guess, then reveal.",
        "state_guess": "guess first",
        "state_free": "no price",
        "state_cheap": "a low price",
        "state_better": "a higher one",
        "state_held": "held",
        "state_dear": "too dear",
    }
}
