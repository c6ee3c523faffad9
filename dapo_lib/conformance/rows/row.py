"""What a row is: a fault class, inputs, right answers, and other stated conventions.

Left out: words. A row's title is `conformance.row_<id>`, a convention's `convention_*`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

RAISES = "raises"  # the right answer to an impossible setting is an error


@dataclass(frozen=True)
class Between:
    """Any finite number from `low` to `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g} … {self.high:g}"


@dataclass(frozen=True)
class Convention:
    """Another answer that is a stated choice, not a fault; named in the label table."""

    name: str
    value: Any
    tolerance: float | None = None


@dataclass(frozen=True)
class Case:
    """One question: an operation of the protocol, its arguments, the right answer."""

    operation: str
    given: dict[str, Any]
    right: Any
    tolerance: float = 1e-4
    conventions: tuple[Convention, ...] = ()

    def verdict(self, value: Any) -> tuple[str, str]:
        """("right" | "convention" | "wrong", name of the convention or "")."""
        if same(value, self.right, self.tolerance):
            return "right", ""
        for other in self.conventions:
            tolerance = other.tolerance or self.tolerance
            if same(value, other.value, tolerance):
                return "convention", other.name
        return "wrong", ""


@dataclass(frozen=True)
class Row:
    """One row of the suite; `report` is where the fault was reported or read."""

    id: str
    report: str
    cases: tuple[Case, ...] = field(default=())


def same(value: Any, wanted: Any, tolerance: float) -> bool:
    """Equal to a tolerance, absolute and relative; a dict is compared by wanted keys.

    >>> same({"low": 0.25, "more": 1}, {"low": 0.25}, 0), same(float("nan"), 0.0, 1)
    (True, False)
    """
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            key in value and same(value[key], w, tolerance) for key, w in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(same(v, w, tolerance) for v, w in zip(value, wanted, strict=True))
        )
    if isinstance(wanted, Between):
        return _number(value) and wanted.low <= value <= wanted.high
    if _number(wanted):
        return _number(value) and math.isclose(
            value, wanted, rel_tol=tolerance, abs_tol=tolerance
        )
    return type(value) is type(wanted) and value == wanted


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def logs(*ratios: float) -> list[list[float]]:
    """One response of log-ratios from ratios."""
    return [[math.log(r) for r in ratios]]
