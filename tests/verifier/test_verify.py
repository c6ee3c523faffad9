"""Every rule of the verifier as a case, and the public faults (H rows) by their id."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dapo_lib import labels, metrics
from dapo_lib.errors import BadInput
from dapo_lib.verifier import REASONS, verify

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['mode']}-{c['reason']}")
def test_case(case):
    verdict = verify(case["response"], case["reference"], mode=case["mode"])
    assert (verdict.correct, verdict.reason) == (case["correct"], case["reason"])


def test_every_reason_has_a_case_and_words_in_both_languages():
    assert {case["reason"] for case in CASES} == set(REASONS)
    for code in REASONS:
        for lang in labels.LANGS:
            assert labels.label(f"verifier.{code}", lang)


LONG = "x" * 120
H_ROWS = [
    ("H01", r"\boxed{34}" + LONG, "34", True),
    ("H02", "Answer: 34\n" + "y" * 400, "34", True),
    ("H04", r"\boxed{12} or \boxed{34}", "34", True),
    ("H06", r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", True),
    ("H07", "Answer: 34.", "34", True),
    ("H08", "**Answer:** 34", "34", True),
    ("H09", "答案：34", "34", True),
    ("H09", "Answer：34", "34", True),
    ("H10", "-1,234", "-1234", True),
    ("H12", "3 4", "34", False),
    ("H12", "Answer: 3 4", "34", False),
    ("H13", "−5", "-5", True),
    ("H14", "034", "34", True),
    ("H14", "34.0", "34", True),
    ("H14", "+34", "34", True),
    ("H14", "(34)", "34", True),
    ("H14", "３４", "34", True),
    ("H15", "0.5", "1/2", True),
    ("H15", r"\dfrac{1}{2}", "1/2", True),
    ("H17", "3:00", "3", False),
    ("H17", "1e3", "1000", True),
    ("H19", "Answer: 34<|im_end|>", "34", True),
    ("H20", "", "4", False),
    ("H21", "Answer: 34", "34", True),
    ("H21", r"\boxed{34}", "34", True),
    ("H24", "Answer: 34\n…\nAnswer: 12", "34", False),
    ("H24", "Answer: 12\n…\nAnswer: 34", "34", True),
    ("H25", r"\dfrac{9}{7}", "9/7", True),
]


@pytest.mark.parametrize(
    ("row", "response", "reference", "right"),
    H_ROWS,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(H_ROWS)],
)
def test_conformance(row, response, reference, right):
    assert verify(response, reference).correct is right, row


def test_h06_extracts_the_whole_nested_answer():
    assert verify(r"\boxed{\frac{1}{2}}", "1/2").extracted == r"\frac{1}{2}"


def test_h20_the_prompt_is_never_read():
    assert verify("", "4").reason == "empty_response"


def test_h23_accuracy_counts_correct_not_rewards():
    right = [verify(f"Answer: {a}", "34").correct for a in (34, 1, 2, 3)]
    rewards = [1.0 if c else -1.0 for c in right]
    assert metrics.avg_at_k(right) == 0.25
    assert sum(rewards) / 4 == -0.5


def test_values_are_exact():
    assert verify("0.1", "1/10").value == Fraction(1, 10)
    assert verify("9007199254740993", "9007199254740992").correct is False
    assert verify("0.30000000000000004", "0.3").correct is False


def test_a_unit_is_refused_whatever_it_is():
    spelled = ("34 cm", "34 apples", "34元", r"34\text{ m}", "$34", "34°", "34 percent")
    assert {verify(f"Answer: {s}", "34").reason for s in spelled} == {"words_beside"}


def test_an_unparsable_reference_is_not_a_wrong_answer():
    verdict = verify("Answer: 34", "x + 1")
    assert verdict.correct is None and not verdict.gradable
    assert verify("Answer: 34", 34).correct is True


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("34", "34", "math"), "mode: got 'math'"),
        ((None, "34", "auto"), "response: got NoneType"),
        (("34", 34.0, "auto"), "reference: got float"),
        (("34", True, "auto"), "reference: got bool"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    response, reference, mode = arguments
    with pytest.raises(BadInput, match=named):
        verify(response, reference, mode=mode)
