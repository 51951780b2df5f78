"""Which widgets are there? The class by its name, and the module that holds it.

One line for each. A notebook that imports one widget does not depend on the list.
"""

HOME = {
    "ClipRegion": "clip_region",
    "Predict": "predict",
    "Quiz": "quiz",
}
# They ask a question and have no picture, no named states and no claims of their own to compute.
QUESTIONS = ("predict", "quiz")
