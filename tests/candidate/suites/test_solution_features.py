"""Features of a model-written solution: of one text alone, finite, and meaningful."""

from math import isfinite

import pytest

from dapo_lib.candidate.suites.solution_features import features, read

QUESTION = (
    "Tom has 5 red and 6 blue pens. He buys twice as many. How many pens in total?"
)
GOOD = "He has 5+6=<<5+6=11>>11 pens.\nSo 11*2=<<11*2=22>>22 pens in total.\nA: 22"
BAD = "He has 5*9=<<5*9=45>>45 pens.\nA: 44"


def test_what_a_careful_reader_sees():
    good, bad = features(QUESTION, GOOD), features(QUESTION, BAD)
    assert good["all_grounded"] == 1 and bad["all_grounded"] == 0
    assert bad["any_ungrounded"] == 1 and good["ungrounded"] == 0
    assert good["covered"] == 1 and bad["covered"] == 0.5
    assert good["answer_is_last_result"] == 1 and bad["answer_is_last_result"] == 0
    assert good["last_uses_previous"] == 1
    assert good["asked_in_last_line"] > bad["asked_in_last_line"]


@pytest.mark.parametrize(
    "solution", ["", "A:", "A: no", "<<=>>", "<<a=b>>\nA: 1,2", "."]
)
def test_anything_can_be_read(solution):
    found = features(QUESTION, solution)
    assert found.keys() == features(QUESTION, GOOD).keys()
    assert all(isfinite(value) for value in found.values())


def test_the_answer_is_what_follows_the_last_mark():
    assert read("", "A: 3 is wrong\nA: $1,250").answer == 1250
    assert read("", "no mark 7").answer is None
