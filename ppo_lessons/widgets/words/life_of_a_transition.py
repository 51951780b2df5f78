"""Words of LifeOfATransition."""

WORDS = {
    "en": {
        "title": "Life of a transition",
        "question": "What happens to one sample?",
        "sample": "sample",
        "sample_good": "a little better",
        "sample_bad": "worse",
        "sample_clipped": "much better",
        "sample_last": "last of its episode",
        "stage": "stage",
        "collect": "collect",
        "score": "score",
        "squeeze": "squeeze",
        "renew": "renew",
        "epoch": "epoch",
        "left": "left",
        "right": "right",
        "guess": "It went better or worse than expected, and it is used in 8 epochs. In how many "
        "of them will it still push the policy?",
        "guessed": "You said {guess}; it pushes in {total} of 8 epochs.",
        "guessed_nothing": "It pushes in {total} of 8 epochs.",
        "card_title": "step {t} of environment {n}",
        "angle": "pole at {angle} rad",
        "row_collect": "{action}, log π_old {log_prob_old}, reward {reward}",
        "row_score": "V {value} → {following}, δ {td_error}, Â {advantage}",
        "row_squeeze": "epoch {epoch}: ratio {ratio}, {did}",
        "row_renew": "thrown away; π({action}) is {after}",
        "later": "…",
        "title_collect": "probability of each action",
        "title_score": "Â = {advantage}: sum of the full bars",
        "title_squeeze": "ratio each time it is used",
        "title_renew": "probability before and after",
        "action_axis": "action",
        "probability_axis": "probability",
        "later_axis": "steps later",
        "error_axis": "TD error (reward)",
        "epoch_axis": "epoch",
        "ratio_axis": "ratio π / π_old",
        "legend_push": "pushes",
        "legend_silent": "silent: no gradient",
        "legend_error": "TD error",
        "legend_weighted": "(γλ)ˡ·TD error, l steps later",
        "legend_old": "under π_old",
        "legend_chosen": "chosen action",
        "legend_edge": "1 ± ε",
        "fell": "the pole fell, so nothing follows",
        "goes_on": "the episode goes on",
        "did_up": "pushes up",
        "did_down": "pushes down",
        "did_silent": "silent",
        "about": "Recorded in the 13th iteration of a run on CartPole: 16 environments × 16 steps, "
        "8 epochs of 4 minibatches, γ = 0.99, λ = 0.95, ε = 0.2. "
        "Dotted beside the pole: 0.2095 rad, where an episode ends.",
        "sentence_collect": "Collect: in step {t} of environment {n} the pole stood at {angle} "
        "rad, and the policy pushed {action}, which had the probability {before} (log "
        "{log_prob_old}). Reward {reward}; {ending}.",
        "sentence_score": "Score: the critic said {value}, then {following}, so the TD error is "
        "{td_error}. Together with {count} that follow, each weighted, the advantage is "
        "{advantage}; {target} is the critic's target.",
        "sentence_score_last": "Score: the critic said {value}, and nothing follows, so the TD "
        "error is {td_error}. It is the whole advantage, {advantage}; {target} is the critic's "
        "target.",
        "sentence_squeeze": "Squeeze, epoch {epoch} of 8: ratio {ratio}, normalised advantage "
        "{normalized}: {did}. So far it has pushed in {pushed} of {epoch}.",
        "sentence_renew": "Renew: the probability of {action} went from {before} to {after}, and "
        "the sample is thrown away. In the next rollout π is π_old again, and all ratios begin "
        "at 1.",
        "sentence_hidden": "Step {t} of environment {n}: Â = {advantage}. Look at collect and "
        "score; then say in how many of 8 epochs it pushes.",
        "state_guess": "guess first",
        "state_collect": "collect: facts",
        "state_score": "score: what they are worth",
        "state_squeeze": "squeeze: silent in epoch 5",
        "state_renew": "renew: thrown away",
        "state_good": "a sample that always pushes",
        "state_bad": "a bad action",
        "state_last": "the pole falls",
    }
}
