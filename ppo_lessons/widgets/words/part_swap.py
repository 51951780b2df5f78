"""Words of PartSwap."""

WORDS = {
    "en": {
        "title": "Part-swap board",
        "question": "Which part did they replace, and what does it do?",
        "baseline": "baseline",
        "baseline_none": "none",
        "baseline_mean": "group mean",
        "baseline_others": "mean of others",
        "spread": "its spread",
        "spread_kept": "stays",
        "spread_divided": "divides",
        "mode": "a token weighs",
        "mode_token_mean": "1 / tokens",
        "mode_sequence_mean": "1 / answers · length",
        "mode_sequence_sum": "1 / answers",
        "mode_constant": "1 / answers · 40",
        "answer_0": "3 tokens",
        "answer_1": "30 tokens",
        "answer_2": "3 tokens",
        "answer_3": "30 tokens",
        "guess": "How many times as hard as a token of answer 4 is a token of answer 3 pushed?",
        "guessed": "You said {guess}; it is {factor}.",
        "guessed_nothing": "It is {factor}.",
        "scores_title": "scores, and the advantage Â",
        "pushes_title": "push of one token (weight · Â)",
        "scores_axis": "reward, Â",
        "answers_axis": "answers 1 to 4",
        "pushes_axis": "of the largest",
        "legend_score": "score",
        "legend_advantage": "advantage Â",
        "group": "Scores",
        "score": "Score of answer {number}",
        "score_value": "{score}",
        "formula": "loss = − Σ weight · ratio · Â over all tokens; at ratio 1 the push of a token "
        "is weight · Â. Only their proportions matter: the step size sets the rest.",
        "help": "Drag a score, or move it with the keys up and down; left and right choose "
        "another.",
        "whose": "Parts of {method}",
        "nobody": "Parts that no method of this lesson has together",
        "sentence": "{whose}. A token of answer 3 gets {short}, one of answer 4 {long}: "
        "{factor} times as hard.",
        "sentence_still": "{whose}. A token of answer 3 gets {short}, one of answer 4 {long}: at "
        "least one of them is not pushed.",
        "sentence_hidden": "{whose}. Say how many times as hard a token of answer 3 is pushed as "
        "one of answer 4, then reveal.",
        "state_guess": "guess first",
        "state_grpo": "GRPO",
        "state_dr_grpo": "Dr. GRPO",
        "state_rloo": "RLOO",
        "state_dapo": "DAPO",
        "state_no_baseline": "no baseline",
        "state_rare": "GRPO, one of four right",
        "state_equal": "all right: nothing to learn",
    }
}
