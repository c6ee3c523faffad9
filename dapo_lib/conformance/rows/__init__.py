"""The rows of the suite as data: public fault reports made small, with right answers.

Every number was computed by hand from the paper's equations, not by our code.
Left out: rows that only a whole training run can answer, named in `OUTSIDE`; our own
tests run them (tests/conformance_rows).
"""

from __future__ import annotations

from dapo_lib.conformance.rows import (
    a_normalisation,
    b_advantages,
    c_clipping,
    d_kl,
    e_numerics,
    f_dynamic_sampling,
    g_length,
    h_verifier,
    i_metrics,
)
from dapo_lib.conformance.rows.row import RAISES, Between, Case, Convention, Row

__all__ = ["OUTSIDE", "RAISES", "ROWS", "Between", "Case", "Convention", "Row"]

_FAMILIES = (
    a_normalisation,
    b_advantages,
    c_clipping,
    d_kl,
    e_numerics,
    f_dynamic_sampling,
    g_length,
    h_verifier,
    i_metrics,
)
ROWS: tuple[Row, ...] = tuple(row for family in _FAMILIES for row in family.ROWS)
OUTSIDE = (
    *("A14", "C05", "E06", "E08", "F12", "F18", "G14", "G15", "G16"),
    *("I04", "I05", "I06", "I07", "I09", "I10", "I14", "I15"),
)
