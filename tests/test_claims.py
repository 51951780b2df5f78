from collections import Counter

import numpy as np
import pytest
import torch

from ppo_lessons import LESSONS
from ppo_lessons.claims import claim
from tools import list_claims

RIGHT = ("clip.capped", "At ratio 4 the objective is 1.2.")
CHANGED = "At ratio 4 the objective is 4."


@pytest.mark.parametrize("yes", [True, np.bool_(True), torch.tensor(True), torch.tensor([True])])
@pytest.mark.parametrize("no", [False, np.bool_(False), torch.tensor(False)])
def test_a_claim_that_holds_with_a_control_that_fails_is_shown(yes, no):
    shown = claim(*RIGHT, yes, control=(CHANGED, no))
    assert repr(shown).splitlines() == [
        "✔ At ratio 4 the objective is 1.2.",
        "✘ At ratio 4 the objective is 4.   (a changed claim; it fails, as it must)",
    ]
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == repr(shown)
    assert "At ratio 4 the objective is 4." in bundle["text/html"]


def test_a_claim_that_does_not_hold_fails_the_cell():
    with pytest.raises(AssertionError, match=r"claim clip.capped does not hold: At ratio 4"):
        claim(*RIGHT, False, control=(CHANGED, False))


def test_a_control_that_holds_fails_the_cell():
    with pytest.raises(AssertionError, match=r"the negative control of claim clip.capped holds"):
        claim(*RIGHT, True, control=(CHANGED, True))


@pytest.mark.parametrize("condition", [None, 1, "yes", torch.tensor([True, False]), 0.0])
def test_what_is_neither_true_nor_false_is_no_condition(condition):
    with pytest.raises(TypeError, match="expected true or false"):
        claim(*RIGHT, condition, control=(CHANGED, False))
    with pytest.raises(TypeError, match="expected true or false"):
        claim(*RIGHT, True, control=(CHANGED, condition))


@pytest.mark.parametrize("sentence", ["", "holds.", "No full stop at the end"])
def test_a_claim_is_a_sentence(sentence):
    with pytest.raises(ValueError, match="expected a sentence that ends in a full stop"):
        claim("clip.capped", sentence, True, control=(CHANGED, False))
    with pytest.raises(ValueError, match="expected a sentence that ends in a full stop"):
        claim(*RIGHT, True, control=(sentence, False))


@pytest.mark.messages
def test_a_control_is_another_sentence_with_its_condition():
    with pytest.raises(ValueError, match="is the sentence itself"):
        claim(*RIGHT, True, control=(RIGHT[1], False))
    for control in ("At ratio 4 it is 4.", (CHANGED,), (CHANGED, False, False)):
        with pytest.raises(TypeError, match="expected a pair"):
            claim(*RIGHT, True, control=control)


def test_an_id_names_a_lesson():
    with pytest.raises(ValueError, match="nolesson"):
        claim("nolesson.capped", RIGHT[1], True, control=(CHANGED, False))


# --- The list ----------------------------------------------------------------------------


def test_the_list_of_claims_is_current():
    assert list_claims.PAGE.read_text(encoding="utf-8") == list_claims.page(
        list_claims.all_claims()
    )


def test_every_claim_has_an_id_of_its_own_lesson_and_of_its_own():
    claims = list_claims.all_claims()
    assert [found.id for found in claims if found.id.split(".")[0] != found.stem[3:]] == []
    assert [id for id, count in Counter(found.id for found in claims).items() if count > 1] == []


def test_a_claim_is_found_wherever_it_stands_in_a_cell():
    source = """# %% [markdown]
# claim("clip.prose", "This is prose.", True, control=("No.", False))

# %%
value = 1
claim(
    "clip.one",
    "One is "
    "one.",
    value == 1,
    control=("One is two.", value == 2),
)
"""
    (found,) = list_claims.claims_of(source, "04_clip")
    assert found == ("04_clip", "clip.one", "One is one.", "One is two.")


@pytest.mark.parametrize("call", ["claim(name, 'It holds.', x, control=('No.', y))",
                                  "claim('clip.one', 'It holds.', x)"])  # fmt: skip
def test_a_claim_that_cannot_be_listed_is_refused(call):
    with pytest.raises(ValueError, match="expected all three"):
        list(list_claims.claims_of(f"# %%\n{call}\n", "04_clip"))


def test_a_lesson_in_the_full_pattern_has_claims():
    lessons = {found.stem[3:] for found in list_claims.all_claims()}
    finished = {lesson.name for lesson in LESSONS if lesson.notebook and lesson.checks}
    assert finished <= lessons
