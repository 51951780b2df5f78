"""Words of the index and of the pages around the widgets."""

WORDS = {
    "en": {
        "index_title": "PPO lessons: widgets",
        "index_intro": "Each page is one file and works without a network. A page with named "
        "states steps through them with Page Up and Page Down or the arrow keys; pages of "
        "questions scroll. Add #name to an address to open a state, #name?large for large "
        "text.",
        "lesson": "Lesson {number}: {title}",
        "quiz_page": "Questions",
        "states": "states",
        "back": "All widgets",
    }
}
