"""The matrix system x row: as a table, as what is printed, as JSON.

Left out: pages (publish/conformance_page.py draws the published matrix).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dapo_lib.conformance.rows import OUTSIDE, Between
from dapo_lib.conformance.run import Answer, Report

COLUMNS = (
    *("row", "case", "system", "verdict", "convention"),
    *("input", "value", "right", "report", "note"),
)
SCHEMA = "dapo-book/conformance/1"


def frame(reports: Iterable[Report]) -> pd.DataFrame:
    """One line a case and system; a row's verdict is that of its worst case."""
    lines = [
        [
            result.row.id,
            number,
            report.system,
            answer.verdict,
            answer.convention,
            question(answer),
            "" if answer.verdict == "not_offered" else _cell(answer.value),
            _cell(answer.case.right),
            result.row.report,
            answer.note,
        ]
        for report in reports
        for result in report.results
        for number, answer in enumerate(result.answers, 1)
    ]
    return pd.DataFrame(lines, columns=list(COLUMNS))


def payload(report: Report) -> dict[str, Any]:
    """A report as plain data; every row that is not right with its details."""
    rows = {
        result.row.id: {
            "verdict": result.verdict,
            "report": result.row.report,
            "cases": [
                {
                    "input": question(a),
                    "verdict": a.verdict,
                    "convention": a.convention or None,
                    "value": shown(a.value),
                    "right": shown(a.case.right),
                    "note": a.note or None,
                }
                for a in result.answers
            ],
        }
        for result in report.results
    }
    return {
        "system": report.system,
        "versions": report.versions,
        "counts": report.counts(),
        "rows": rows,
        "outside": list(OUTSIDE),
    }


def text(report: Report) -> str:
    """What the terminal shows: counts, then every wrong row and every convention."""
    versions = ", ".join(f"{k} {v}" for k, v in report.versions.items())
    counts = report.counts()
    lines = [f"{report.system} ({versions or 'no versions said'})"]
    lines.append("  " + "   ".join(f"{n} {v}" for v, n in counts.items()))
    for result in report.results:
        if result.verdict == "convention":
            names = ", ".join(result.conventions)
            lines.append(f"  {result.row.id}  convention: {names}")
    for result in report.results:
        wrong = [a for a in result.answers if a.verdict == "wrong"]
        for a in wrong:
            lines.append(f"  {result.row.id}  WRONG  {question(a)}")
            note = f" ({a.note})" if a.note else ""
            lines.append(f"        got {shown(a.value)}{note}")
            lines.append(f"        right {shown(a.case.right)}")
            lines.append(f"        reported: {result.row.report}")
    return "\n".join(lines)


def question(answer: Answer) -> str:
    """A case's call in one line.

    >>> from dapo_lib.conformance.rows import ROWS
    >>> from dapo_lib.conformance.ask import Reply
    >>> from dapo_lib.conformance.run import judge
    >>> question(judge(ROWS[0].cases[0], Reply("missing")))
    'reduce(micro_batches=[[[1]*2], [[0]*8]])'
    """
    given = ", ".join(f"{k}={shown(v)}" for k, v in answer.case.given.items())
    return f"{answer.case.operation}({given})"


def shown(value: Any) -> str:
    """A value in few characters: four digits, runs of equal items as ``[x]*n``.

    >>> shown([0.0] + [0.95] * 7), shown({"loss": float("nan")}), shown(1 / 3)
    ('[0]+[0.95]*7', '{loss: nan}', '0.3333')
    """
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return f"{value:.4g}" if not _whole(value) else str(int(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return _runs([shown(v) for v in value])
    if isinstance(value, Between):
        return str(value)
    long = f"{value[:40]} … ({len(value)} characters)" if len(value) > 72 else value
    return repr(long)


def _cell(value: Any) -> str:
    """As `shown`; alone in a cell of a CSV, nan and None would be read as nothing."""
    words = {"nan": "nan (not a number)", "None": "None (no verdict)"}
    return words.get(shown(value), shown(value))


def _whole(value: float) -> bool:
    return math.isfinite(value) and value == int(value) and abs(value) < 1e6


def _runs(items: list[str]) -> str:
    """Items in brackets, equal neighbours counted where there are many."""
    if len(items) < 5:
        whole = len(items) > 1 and len(set(items)) == 1
        return f"[{items[0]}]*{len(items)}" if whole else f"[{', '.join(items)}]"
    parts: list[tuple[str, int]] = []
    for item in items:
        if parts and parts[-1][0] == item:
            parts[-1] = (item, parts[-1][1] + 1)
        else:
            parts.append((item, 1))
    if len(parts) > 4:
        return f"[{', '.join(items)}]"
    return "+".join(f"[{x}]*{n}" if n > 1 else f"[{x}]" for x, n in parts)
