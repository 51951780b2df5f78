"""Words of Predict."""

WORDS = {
    "en": {
        "title": "Prediction",
        "guess": "Your guess",
        "guess_unit": "Your guess in {unit}",
        "keep": "Keep my guess",
        "none": "No guess yet.",
        "not_yet": "{id}: no guess yet. Run the cell to guess.",
        "kept": "Kept: {guess}.",
        "compared": "You said {guess}, measured {measured}.",
        "state_open": "prediction",
    }
}
