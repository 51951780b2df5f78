"""Words of Quiz."""

WORDS = {
    "en": {
        "title": "Question",
        "answer": "Answer",
        "again": "Answer again",
        "choose": "Choose an option, then press Answer.",
        "right": "✔ right",
        "wrong": "✘ not yet",
        "verdict": "{verdict}: {letter}) {text}. {why}",
        "state_open": "question",
    }
}
