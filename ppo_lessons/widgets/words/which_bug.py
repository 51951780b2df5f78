"""Words of WhichBug."""

WORDS = {
    "en": {
        "title": "Which bug",
        "question": "Which run is broken, and why?",
        "run": "run",
        "run_a": "A",
        "run_b": "B",
        "run_c": "C",
        "run_d": "D",
        "run_e": "E",
        "run_f": "F",
        "run_g": "G",
        "iteration": "iteration",
        "guess": "What is wrong with run {run}?",
        "guessed": "You said: {guess}. It is: {bug}.",
        "guessed_nothing": "It is: {bug}.",
        "tally": "Right so far: {right} of {asked}.",
        "bug_steps_too_long": "learning rate × 30",
        "bug_old_on_the_graph": "old log-probabilities not detached",
        "bug_values_broadcast": "a column of values against a row",
        "bug_probabilities_as_logits": "softmax twice",
        "bug_old_and_new_swapped": "old and new swapped in the ratio",
        "bug_normalized_too_early": "returns of normalised advantages",
        "bug_rewards_shifted": "rewards one step late",
        "bug_nothing": "nothing is wrong",
        "bug_critic_not_trained": "the critic is not trained",
        "bug_entropy_punished": "the entropy has the wrong sign",
        "what_steps_too_long": "each step is so long that the policy is another after it",
        "what_old_on_the_graph": "the policy gets no gradient, and stands still",
        "what_values_broadcast": "the critic says the same everywhere, and explains nothing",
        "what_probabilities_as_logits": "no action can be likelier than 0.73, so the entropy "
        "stops at 0.58",
        "what_old_and_new_swapped": "what is better than expected becomes rare, and few of those "
        "outside are silent",
        "what_normalized_too_early": "the critic learns numbers of size 1, so its loss stays near "
        "one half",
        "what_rewards_shifted": "each action is paid for the one before, and on CartPole all pay "
        "the same",
        "panel_episode_return": "return",
        "panel_kl_k3": "kl_k3 (nats)",
        "panel_silent_share": "silent of those outside",
        "panel_entropy": "entropy (nats)",
        "panel_value_loss": "value loss",
        "panel_ev_lambda": "ev_lambda",
        "here": "here",
        "marks": "○ {one} ● {two}",
        "line_right": "should be:",
        "line_wrong": "is:",
        "line_none": "(no such line)",
        "legend_healthy": "○ healthy, same seed",
        "legend_run": "● this run",
        "help": "Move the slider, or use the arrow keys, to read numbers off. Return: reward per "
        "episode. Silent: share of the samples outside 1 ± ε whose gradient is zero; 0 where "
        "hardly any is outside.",
        "sentence": "Run {run}: {bug}; {what}. It shows in {panel}: at iteration {iteration} "
        "{two}, and {one} in the healthy run.",
        "sentence_nowhere": "Run {run}: {bug}; {what}. It shows in no panel: at iteration "
        "{iteration} the return is {two}, and {one} in the healthy run.",
        "sentence_hidden": "Run {run} at iteration {iteration}: return {two}, and {one} in the "
        "healthy run. Look at the six panels, then say what is wrong.",
        "state_guess": "which bug?",
        "state_a": "learning rate × 30",
        "state_b": "not detached",
        "state_c": "a column against a row",
        "state_d": "softmax twice",
        "state_e": "old and new swapped",
        "state_f": "returns of normalised advantages",
        "state_g": "rewards one step late",
    }
}
