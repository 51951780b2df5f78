"""Words of SeedCount."""

WORDS = {
    "en": {
        "title": "How many seeds?",
        "question": "Which setting is better, and how many seeds say so?",
        "first": "first",
        "second": "second",
        "num_seeds": "seeds of each",
        "draw": "other seeds",
        "above": "the first is above",
        "below": "the first is below",
        "inconclusive": "they cannot be told apart",
        "verdict_above": "the first is above",
        "verdict_below": "the first is below",
        "verdict_inconclusive": "inconclusive",
        "guess": "{num_seeds} runs of each, as you see them. {first} against {second}: what will "
        "the intervals say?",
        "guessed": "You said: {guess}. The intervals: {verdict}.",
        "guessed_nothing": "The intervals: {verdict}.",
        "scores_title": "the runs that were drawn",
        "score_axis": "score (reward)",
        "side_first": "first: {setting}",
        "side_second": "second: {setting}",
        "curve_title": "95 % intervals of the IQM",
        "count_axis": "seeds of each",
        "legend_now": "seeds now",
        "legend_first": "first",
        "legend_second": "second",
        "first_iqm": "IQM of the first",
        "second_iqm": "IQM of the second",
        "improvement": "a first beats a second",
        "tally": "8 draws: above / below / open",
        "three_numbers": "{above} / {below} / {open}",
        "between": "{low} to {high}",
        "about": "CartPole, 64 seeds of each setting, run once. Each draw takes other seeds. The "
        "second setting takes them in reverse order, so a setting can be compared with itself.",
        "sentence": "{num_seeds} seeds each. {first}: {first_interval}; {second}: "
        "{second_interval}: {verdict}. Of 8 draws {above} say above, {below} below, {open} cannot "
        "tell.",
        "sentence_hidden": "{num_seeds} runs of {first} and of {second}. Say what their intervals "
        "will tell, then reveal.",
        "state_guess": "guess first",
        "state_three": "three seeds",
        "state_sixteen": "sixteen seeds",
        "state_all": "all 64 seeds",
        "state_near": "two that are near, 16 seeds",
        "state_near_all": "two that are near, 64 seeds",
        "state_same": "a setting against itself",
    }
}
