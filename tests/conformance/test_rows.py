"""The rows as data: asked of functions that exist, worded, and able to fail."""

import inspect
import math

import pytest

from dapo_lib.conformance.protocol import OPERATIONS, System
from dapo_lib.conformance.rows import OUTSIDE, RAISES, ROWS
from dapo_lib.labels import LANGS, label

CASES = [(row, case) for row in ROWS for case in row.cases]
NAN = math.nan
WRONG = {  # what the reports saw, one value a row
    "A01": 0.5,
    "A02": 0.40,
    "A03": 0.5,
    "A04": 25 / 30,
    "A06": 26.0,
    "A07": {"loss": NAN, "grad": [[NAN, NAN]]},
    "A08": 1.0,
    "A11": 4.0,
    "A13": {"loss": -1.28},
    "A15": 0.5,
    "B01": [0.056] * 8,
    "B03": [-2075.0] + [0.378] * 7,
    "B04": [NAN],
    "B06": [1.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -1.5],
    "B08": [-49.5, 49.5],
    "B11": [1.0954, 1.0954, -0.7303, -0.7303, -0.7303],
    "B14": [-1.0, 0.0],
    "B15": False,
    "C01": {"loss": 0.5, "grad": [[0.5]]},
    "C02": {"loss": -5.0},
    "C03": {"loss": -1.1},
    "C04": {"loss": -1.2},
    "C06": {"low": 0.5, "high": 0.5},
    "D01": 0.2719,
    "D02": -0.3681,
    "D03": 0.0,
    "E01": {"loss": NAN, "grad": [[1.0, NAN]]},
    "E02": {"loss": math.inf, "grad": [[math.inf]]},
    "E03": [math.log(0.5)],
    "E04": [-0.1269, -2.1269],
    "E09": NAN,
    "E10": 0.0,
    "F03": {"rounds": 4},
    "F04": {"groups": [1]},
    "F05": False,
    "F07": True,
    "F08": True,
    "F10": {"groups": []},
    "F11": {"accuracy_before": 0.5, "accuracy_after": 0.5},
    "G01": [-0.1667],
    "G03": [-3.0],
    "G07": -1.0,
    "G09": {"truncated": True},
    "G11": {"mask": [1, 1, 0, 0]},
    "H12": True,
    "H20": True,
    "H23": -0.5,
    "I01": 0.4375,
    "I11": 0.25,
}


def test_ids_are_unique_and_none_is_in_both_lists():
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids)) >= 80
    assert not set(ids) & set(OUTSIDE)
    assert ids == sorted(ids)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_is_worded_reported_and_askable(row):
    assert row.report and row.cases
    for lang in LANGS:
        assert label(f"conformance.row_{row.id}", lang)
    for case in row.cases:
        assert case.operation in OPERATIONS
        known = inspect.signature(getattr(System, case.operation)).parameters
        assert case.given.keys() <= known.keys()
        for convention in case.conventions:
            for lang in LANGS:
                assert label(f"conformance.convention_{convention.name}", lang)
            if convention.tolerance is None:
                found = case.verdict(convention.value)
                assert found == ("convention", convention.name)


@pytest.mark.parametrize("name", WRONG)
def test_the_reported_value_is_wrong(name):
    (row,) = (r for r in ROWS if r.id == name)
    assert row.cases[0].verdict(WRONG[name])[0] == "wrong"


def test_small_rounding_is_a_convention_and_large_is_wrong():
    (row,) = (r for r in ROWS if r.id == "B01")
    (case,) = row.cases
    assert case.verdict([0.0] * 8)[0] == "right"
    assert case.verdict([-5.6e-4] * 8) == ("convention", "rounding_damped_by_eps")
    assert case.verdict([0.056] * 8)[0] == "wrong"


@pytest.mark.parametrize("case", [c for _, c in CASES], ids=lambda c: c.operation)
def test_nothing_passes_by_accident(case):
    for value in (NAN, None, [], {}, "", RAISES):
        verdict = case.verdict(value)[0]
        same = value is None and case.right is None
        refused = value == RAISES and (
            case.right == RAISES or any(c.value == RAISES for c in case.conventions)
        )
        assert verdict == "wrong" or same or refused
