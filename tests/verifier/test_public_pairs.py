"""Real labels and the peers' own cases: where we agree, and each exception by class.

Domain: both sides write one real number as an integer, a decimal with a point, a
fraction or a percentage; the answer stands in a box, on an answer line, in Minerva's
closing sentence, or alone.
"""

from __future__ import annotations

import json

import pytest

from dapo_lib.verifier import verify

# Math-Verify's cases whose gold is a number and where our verdict is another, by index.
EXCEPTIONS = {
    "no mark: a number somewhere in a sentence is not an answer": (
        *(7, 13, 14, 15, 16, 26, 27, 28, 29, 30, 33, 34, 35, 141, 142, 163),
    ),
    "a sentence on the answer line": (147, 156, 157, 159),
    "unit or currency beside the number": (11, 12, 45, 46, 48, 146, 153),
    "percent as a word, or outside the box": (49, 50, 53, 54, 55, 56, 57, 154),
    "a chain of equalities or ≈": (98, 100, 101, 103, 104),
    "a blank or a comma as separator": (2, 5, 61),
    "rounded: 0.0833… is not 1/12": (126,),
    "a list: the last answer wins": (182, 190, 217, 232, 265),
}
OUTSIDE = {index: why for why, indices in EXCEPTIONS.items() for index in indices}


@pytest.mark.data
def test_all_gsm8k_labels(solutions):
    right = total = 0
    for line in solutions.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for answer in (v for v in row.values() if isinstance(v, dict)):
            verdict = verify(answer["solution"], row["ground_truth"], mode="gsm8k")
            right += verdict.correct is answer["is_correct"]
            total += 1
    assert (right, total) == (5276, 5276)


@pytest.mark.data
def test_math_verify_numbers(pairs):
    text = (pairs / "math_verify_cases.json").read_text(encoding="utf-8")
    inside, agreed, differing = 0, 0, set()
    for index, case in enumerate(json.loads(text)["cases"]):
        verdict = verify(case["pred"], case["gold"])
        if not verdict.gradable:
            continue
        same = verdict.correct == bool(case.get("expected", case.get("result")))
        if index not in OUTSIDE:
            inside, agreed = inside + 1, agreed + same
        if not same:
            differing.add(index)
    assert agreed / inside >= 0.98 and inside >= 50
    assert differing == set(OUTSIDE), "each exception is listed, and each is real"


@pytest.mark.data
def test_math_verify_accepts_nothing_that_it_refuses(pairs):
    text = (pairs / "math_verify_cases.json").read_text(encoding="utf-8")
    for case in json.loads(text)["cases"]:
        if not case.get("expected", case.get("result")):
            assert verify(case["pred"], case["gold"]).correct is not True


HENDRYCKS_DIFFERS = {
    "test_units": "words_beside",  # the unit rule
    "test_dollars": "reference_unparsable",  # the unit rule, in the reference
    "test_percentage": "different",  # 10% is 0.1, not 10
}


@pytest.mark.data
def test_hendrycks_numbers(pairs):
    text = (pairs / "hendrycks_is_equiv_cases.json").read_text(encoding="utf-8")
    agreed = set()
    for case in json.loads(text)["cases"]:
        verdict = verify(case["a"], case["b"])
        if case["test"] in HENDRYCKS_DIFFERS:
            assert verdict.reason == HENDRYCKS_DIFFERS[case["test"]]
        elif verdict.gradable:
            assert verdict.correct == case["expected"], case
            agreed.add(case["test"])
    assert agreed == {"test_units2", "test_decimals2", "test_tfrac", "test_half"}


@pytest.mark.data
def test_verl_numeric(pairs):
    data = json.loads((pairs / "verl_numeric_cases.json").read_text(encoding="utf-8"))
    for spelled, canonical in (*data["canonical_int"], *data["boxed_equiv"]):
        assert verify(spelled, canonical).correct is True
    for text in data["unchanged"]:
        assert verify("33", text).correct is not True


@pytest.mark.data
def test_aime_2024(aime):
    for row in json.loads(aime.read_text(encoding="utf-8"))["rows"]:
        for spelled in (row["answer"], str(row["value"]), f"{row['value']:03d}"):
            verdict = verify(f"Answer: {spelled}", row["answer"], mode="aime")
            assert verdict.correct is True
        wrong = verify(f"Answer: {row['value'] + 1}", row["answer"], mode="aime")
        assert wrong.reason in ("different", "out_of_range")


# verl's `math_dapo`, by class: (solution as it starts, our reason) where we differ.
VERL_DIFFERS = {
    "another spelling of the same value": [
        ("\\boxed{ 42 }", "equal_value"),
        ("Answer: 42.", "equal_value"),
        ("Answer: 1/2", "equal_value"),
        ("Answer: 0.5", "equal_value"),
        ("Answer: +7", "equal_value"),
        ("Answer: 07", "equal_value"),
        ("Answer: 7.0", "equal_value"),
    ],
    "the whole text is read, not its last 300 or 100 characters": [
        ("\\boxed{42}" + " " * 100, "same"),
        ("Answer: 42\n" + "y" * 290, "same"),
        ("Answer: 42\n" + "y" * 300, "same"),
    ],
    "the last answer wins, also on one line": [
        ("Answer: 7 Answer: 8", "same"),
        ("Answer:42Answer:43", "same"),
        ("Answer: 41 \\boxed{42}", "same"),
    ],
    "a bare answer, special tokens, a full-width colon": [
        ("42", "same"),
        ("Answer: 42<eos>", "same"),
        ("Answer：42", "same"),
    ],
    "no words beside the number": [
        ("Answer: 42 dollars", "words_beside"),
        ("Answer: 42\\text{ cm}", "words_beside"),
        ("Answer: 90^\\circ", "words_beside"),
        ("Answer: a 42", "words_beside"),
        ("Answer: 42 units", "words_beside"),
    ],
    "a letter that touches `Answer` makes it another word": [
        ("MyAnswer: 7", "no_answer"),
        ("x" * 500 + "Answer: 42", "no_answer"),
    ],
    "a reference that is no number is not graded": [
        ("Answer: [INVALID]", "reference_unparsable"),
        ("no answer", "reference_unparsable"),
        ("Answer: (1, 2)", "reference_unparsable"),
    ],
}


@pytest.mark.data
def test_verl_math_dapo(oracles):
    """Sixty-four pairs: 38 verdicts agree, 26 differ, each for a reason above."""
    text = (oracles / "verl_math_dapo.json").read_text(encoding="utf-8")
    cases = [
        case
        for case in json.loads(text)["compute_score"]
        if not case["strict_box_verify"]
    ]
    differs = []
    for case in cases:
        verdict = verify(case["solution"], case["ground_truth"])
        if verdict.correct is not case["acc"]:
            differs.append((case["solution"], verdict.reason))
    listed = [pair for pairs in VERL_DIFFERS.values() for pair in pairs]
    assert (len(cases), len(differs)) == (64, 26)
    assert sorted(differs) == sorted(listed)
