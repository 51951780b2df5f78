"""Words of RatioFromLogits."""

WORDS = {
    "en": {
        "title": "Ratio from logits",
        "question": "One logit moves: which ratios move?",
        "chosen": "look at action",
        "guess": "How many of the four ratios differ from 1?",
        "guessed": "You said {guess}; {moved} of 4 differ from 1.",
        "guessed_nothing": "{moved} of 4 ratios differ from 1.",
        "logits_title": "logits: drag a bar",
        "probabilities_title": "probabilities, and their ratio",
        "action_axis": "action",
        "logit_axis": "logit",
        "probability_axis": "probability",
        "group_old": "Logits of the old policy",
        "group_new": "Logits of the new policy",
        "logit_old": "Old logit of {action}",
        "logit_new": "New logit of {action}",
        "logit_value": "{logit}",
        "legend_old": "old policy π_old, drew the data",
        "legend_new": "new policy π",
        "help": "Drag a bar up or down. Keys: up and down move it (with shift, faster), left "
        "and right choose another, Esc leaves.",
        "formula": "π(a) = exp(logit_a) / Σ exp(logit), ratio = π / π_old = exp(log π − log π_old)",
        "sentence": "Action {action}: π_old {old}, π {new}, ratio {ratio}. {moved} of 4 ratios "
        "differ from 1; Σ π_old·ratio = {mean}. KL(π_old ‖ π) {kl} nats; 100 old samples are worth "
        "{worth}.",
        "sentence_hidden": "Action {action}: logit {before} before, {after} now. Say how many "
        "ratios differ from 1, then reveal.",
        "picture_title": "Probabilities, and the ratio of each action",
        "state_guess": "guess first",
        "state_one_logit": "one logit went up by 1",
        "state_shift": "every logit went up by 1",
        "state_small_step": "a small step",
        "state_rare": "a rare action becomes likely",
        "state_opposite": "the policy turns around",
    }
}
