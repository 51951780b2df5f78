"""Words of BatchLedger."""

WORDS = {
    "en": {
        "title": "Ledger of a batch",
        "question": "How often is each sample used?",
        "num_envs": "environments N",
        "num_steps": "steps T",
        "num_epochs": "epochs K",
        "num_minibatches": "minibatches M",
        "step": "optimiser steps done",
        "guess": "{num_envs} environments × {num_steps} steps, K = {num_epochs} epochs, M = "
        "{num_minibatches} minibatches: how many steps does the optimiser make on this batch?",
        "guessed": "You said {guess}; it makes K·M = {updates}, and each sample is used {times}.",
        "guessed_nothing": "It makes K·M = {updates}, and each sample is used {times}.",
        "once": "once",
        "often": "{number} times",
        "ledger_title": "uses of each sample so far",
        "time_axis": "step t",
        "env_axis": "environment",
        "ratio_title": "ratios of the whole batch",
        "step_axis": "optimiser steps (a line for each epoch)",
        "ratio_axis": "ratio",
        "legend_latest": "in the latest minibatch",
        "legend_all": "lowest and highest ratio",
        "legend_most": "80 of 100 ratios between",
        "legend_edge": "1 ± ε",
        "legend_here": "now",
        "samples": "samples N·T",
        "minibatch_size": "in each minibatch",
        "updates": "optimiser steps K·M",
        "uses": "uses of each sample, in the end",
        "about": "Recorded from squeeze stages on CartPole, the first of a fresh policy. Every "
        "epoch deals all samples anew, so each comes once in an epoch.",
        "used_all": "each sample has been used {times}×",
        "used_some": "{ahead} samples have been used {times}×, {others} {less}×",
        "sentence": "{num_envs} × {num_steps} = {samples} samples; {num_epochs} epochs of "
        "{num_minibatches} × {minibatch_size} make {updates} optimiser steps. After {made} of them "
        "{used}; the ratios lie between {low} and {high}.",
        "sentence_hidden": "{num_envs} × {num_steps} samples wait to be used in {num_epochs} "
        "epochs of {num_minibatches} minibatches. Say how many steps the optimiser makes, then "
        "reveal.",
        "state_guess": "guess first",
        "state_untouched": "before the first step",
        "state_first": "after one step",
        "state_middle": "in the second epoch",
        "state_all": "used up",
        "state_large": "one minibatch for all",
        "state_small": "eight small ones",
    }
}
