"""Words of BaselineVariance."""

WORDS = {
    "en": {
        "title": "Variance over the baseline",
        "question": "Which baseline leaves the least noise?",
        "baseline": "baseline b",
        "chance": "chance of lever 1",
        "levers": "levers",
        "two": "two levers",
        "three": "three levers",
        "list": "{levers}. Score of lever 1: {score}, of any other: {other}.",
        "listed": "lever {number} pays {pay}, pulled {chance}",
        "guess": "Lever 1 is pulled with probability {chance}; the levers pay {pays}. Which "
        "baseline leaves the least variance?",
        "guessed": "You said {guess}; it is b* = {best}, and V is {value}.",
        "guessed_nothing": "It is b* = {best}, and V is {value}.",
        "push_title": "what one pull pushes; mean {mean} at every b",
        "variance_title": "variance at b = {baseline}: {variance}",
        "baseline_axis": "baseline b (reward)",
        "push_axis": "score·(pay − b)",
        "variance_axis": "variance (reward²)",
        "value_mark": "V",
        "best_mark": "b*",
        "lever": "lever {number}, pulled {chance}",
        "legend_0": "lever 0",
        "legend_1": "lever 1",
        "legend_2": "lever 2",
        "legend_mean": "mean push",
        "without": "without baseline",
        "at_value": "with V",
        "at_best": "with b*",
        "variance": "variance with your b",
        "pay_group": "What the levers pay",
        "pay": "Lever {number} pays",
        "pay_value": "{pay}",
        "baseline_group": "Baseline",
        "help": "Drag 0 or 1 to change what a lever pays: there its line crosses zero. Drag the "
        "diamond to change b. Keys: left and right (with shift, faster), up and down choose.",
        "formula": "Var = Σ π·score²·(pay − b)² − mean². The mean push, Σ π·score·(pay − b), does "
        "not depend on b, since Σ π·score = 0.",
        "sentence": "The levers pay {pays}; lever 1 is pulled with probability {chance}. With "
        "b = {baseline} the variance of a push is {variance}; V = {value} leaves {at_value}, "
        "b* = {best} leaves {at_best}. The mean push is {mean} whatever b is.",
        "sentence_hidden": "The levers pay {pays}; lever 1 is pulled with probability {chance}. "
        "The mean push is {mean} whatever b is. Say which b leaves the least noise, then reveal.",
        "state_guess": "guess first",
        "state_none": "no baseline",
        "state_value": "V as the baseline",
        "state_best": "b*: no noise is left",
        "state_bad": "b = −20",
        "state_learned": "after learning, V hurts",
        "state_three": "three levers: noise stays",
    }
}
