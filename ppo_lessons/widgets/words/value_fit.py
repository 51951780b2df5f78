"""Words of ValueFit."""

WORDS = {
    "en": {
        "title": "Fit of a critic",
        "question": "What does a critic's grade say?",
        "shift": "shift",
        "scale": "scale",
        "noise": "noise",
        "target": "held against",
        "target_returns": "what came",
        "target_own": "its own targets",
        "guess": "Shift, scale, noise: which of these faults does the explained variance forgive?",
        "guessed": "You said {guess}; it is the shift: a variance does not see a constant.",
        "guessed_nothing": "It is the shift: a variance does not see a constant.",
        "scatter_title": "160 samples, and a perfect critic",
        "value_axis": "what the critic says (reward)",
        "returns_axis": "return that came",
        "own_axis": "reward + own next V",
        "error_title": "explained variance {ev}, loss {loss}",
        "error_axis": "target − what the critic says (reward)",
        "count_axis": "samples",
        "legend_diagonal": "a perfect critic",
        "legend_errors": "errors of this critic",
        "legend_constant": "errors of the best constant",
        "legend_mean": "mean error",
        "ev_monte_carlo": "explained variance, what came",
        "loss_monte_carlo": "loss, what came",
        "ev_own": "explained variance, own targets",
        "loss_own": "loss, own targets",
        "mean_error": "mean error, as drawn",
        "formula": "explained variance = 1 − Var(error)/Var(target): bars as wide as the dashed "
        "ones give 0. loss = ½·mean(error²): how far the bars lie from zero. What lies beyond the "
        "panel is drawn at its edge.",
        "about": "16 episodes of ten steps, in a high place that pays 2 or a low one that pays 0; "
        "it changes after one step of ten, and luck (standard deviation 1) comes on top. V is "
        "exact.",
        "sentence": "Shift {shift}, scale {scale}, noise {noise}. Against what came the explained "
        "variance is {ev} and the loss {loss}; against its own targets {ev_own} and {loss_own}. "
        "Drawn: {drawn}.",
        "sentence_hidden": "Shift {shift}, scale {scale}, noise {noise}. Move them and watch the "
        "dots; then say which of them the explained variance forgives.",
        "drawn_returns": "what came",
        "drawn_own": "its own targets",
        "state_guess": "guess first",
        "state_exact": "the exact V",
        "state_shifted": "5 too high",
        "state_scaled": "twice the spread",
        "state_noisy": "noise",
        "state_constant": "one number for all",
        "state_flattered": "twice the spread, own targets",
    }
}
