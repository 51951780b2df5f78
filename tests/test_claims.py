import numpy as np
import pytest
import torch

from ppo_lessons.claims import claim

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


def test_an_id_names_a_lesson():
    with pytest.raises(ValueError, match="nolesson"):
        claim("nolesson.capped", RIGHT[1], True, control=(CHANGED, False))
