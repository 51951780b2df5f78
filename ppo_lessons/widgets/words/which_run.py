"""Words of WhichRun."""

WORDS = {
    "en": {
        "title": "Which run is failing",
        "question": "What is the matter with this run?",
        "run": "run",
        "run_a": "A",
        "run_b": "B",
        "run_c": "C",
        "run_d": "D",
        "run_e": "E",
        "run_f": "F",
        "look": "look",
        "guess": "What is the matter with run {run}?",
        "guessed": "You said: {guess}. The verdict: {verdict}.",
        "guessed_nothing": "The verdict: {verdict}.",
        "tally": "Right so far: {right} of {asked}.",
        "verdict_healthy": "nothing, it learns",
        "verdict_hacked": "the judge is being hacked",
        "verdict_too_far": "its steps are too large",
        "verdict_held_back": "it is held near its start",
        "setting_a": "no price on distance",
        "setting_b": "price 1",
        "setting_c": "price 0.3, no clip, 16 steps ten times as long",
        "setting_d": "price 3",
        "setting_e": "no price, clip at 0.05",
        "setting_f": "price 0.3, no clip, 4 steps on each batch",
        "panel_score": "score of the judge",
        "panel_kl_reference": "KL to reference (nats)",
        "panel_length": "length (tokens)",
        "panel_fraction_outside": "share outside of the clip",
        "panel_ev_monte_carlo": "explained variance",
        "panel_success": "right answers, held out",
        "here": "here",
        "closed": "closed until you have said it",
        "marks": "○ {one} ● {two}",
        "legend_healthy": "○ healthy: price 0.3, another seed",
        "legend_run": "● this run",
        "help": "Move the slider, or use the arrow keys, to read numbers off. Five panels are what "
        "a training run shows. The sixth needs held-out prompts and somebody who knows what is "
        "right.",
        "sentence": "Run {run} ({setting}): {verdict}. The dial that tells most is {panel}: {two} "
        "at iteration {iteration}, and {one} in the healthy run. Of 100 held-out answers {right} "
        "are right, there {before}.",
        "sentence_nowhere": "Run {run} ({setting}): {verdict}. At iteration {iteration} its score "
        "is {two}, and {one} in the other healthy run. Of 100 held-out answers {right} are right, "
        "there {before}.",
        "sentence_hidden": "Run {run} at iteration {iteration}: score {two}, and {one} in the "
        "healthy run. Look at the five open panels, then say what is the matter.",
        "state_guess": "what is the matter?",
        "state_a": "no price",
        "state_b": "price 1",
        "state_c": "16 long steps, no clip",
        "state_d": "price 3",
        "state_e": "no price, a narrow clip",
        "state_f": "price 0.3, no clip",
    }
}
