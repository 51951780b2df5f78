"""Words that every widget shares."""

WORDS = {
    "en": {
        "large": "Large text",
        "full": "Full screen",
        "leave_full": "Leave full screen",
        "previous": "Previous state",
        "next": "Next state",
        "where": "{number} of {total}: {title}",
        "play": "Play",
        "stop": "Stop",
        "failed": "Something went wrong: {reason}. Run the cell again.",
        "reveal": "Reveal",
        "guess_again": "Guess again",
        "hidden": "?",
        "guess_range": "Give a whole number between {low} and {high}.",
        "guess_number": "Give a number between {low} and {high}.",
        "choose": "choose one",
        "step": "step",
    }
}
