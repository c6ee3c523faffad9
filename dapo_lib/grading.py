"""Grading a JSONL file of responses: verdicts, counts by reason, rates over problems.

The unit of every interval is the problem, never the sample. A broken line is counted
with its number and reason and the rest is graded; a group whose reference cannot be
read is removed whole, it is not wrong.
Left out: other formats, and metrics that need the tokens.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from dapo_lib import metrics
from dapo_lib.errors import BadInput, expect
from dapo_lib.experiments.statistics import mean_interval, wilson
from dapo_lib.verifier import REASONS, Verdict, verify
from dapo_lib.verifier.rules import UNPARSABLE

OTHER_ENCODINGS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "gzip",
    b"PK": "zip",
}
CSV_COLUMNS = ("line", "sample", "group", "correct", "reason", "extracted")


@dataclass(frozen=True)
class Columns:
    """Where a row keeps its response, reference and group; dots reach into objects."""

    response: str
    reference: str
    group: str | None = None


@dataclass(frozen=True)
class Row:
    """One readable line: a problem's name, its reference, one response or several."""

    line: int
    group: str | int
    reference: str | int
    responses: tuple[str, ...]


@dataclass(frozen=True)
class Broken:
    """A line that cannot be graded, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class Missing(Broken):
    """A row without a column; `columns` are the ones it has."""

    column: str
    columns: str


@dataclass(frozen=True)
class Graded:
    """One response and its verdict."""

    line: int
    sample: int
    group: str | int
    verdict: Verdict


@dataclass
class Report:
    """Everything that was graded, and every line that was not."""

    mode: str
    graded: list[Graded] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)

    def groups(self) -> dict[str | int, list[Verdict]]:
        """Verdicts by problem in file order, without the removed groups."""
        by: dict[str | int, list[Verdict]] = {}
        for one in self.graded:
            by.setdefault(one.group, []).append(one.verdict)
        return {g: vs for g, vs in by.items() if all(v.gradable for v in vs)}

    def reasons(self) -> dict[str, int]:
        """How many responses met each reason, in the verifier's order."""
        counts = Counter(one.verdict.reason for one in self.graded)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}


def read_rows(
    path: Path, columns: Columns, progress: Callable[[int], Any] | None = None
) -> Iterator[Row | Broken]:
    """The rows of a UTF-8 JSONL file, blank lines apart; `progress` gets bytes read.

    Raises ``BadInput`` on a file that cannot be read, is empty or not UTF-8, and where
    no row at all has a column.
    """
    good, first = 0, None  # first: a missing column says most
    for number, raw in enumerate(_lines(path), start=1):
        if progress:
            progress(len(raw))
        text = _decoded(raw, path, number).strip()
        if not text:
            continue
        row = _row(text, number, columns)
        good += isinstance(row, Row)
        if isinstance(row, Missing) or first is None:
            first = row
        yield row
    if good == 0:
        raise BadInput(f"{path}: {_nothing(first)}")


def _nothing(first: Broken | None) -> str:
    """Why a file without one usable row has none."""
    if first is None:
        return "no rows, expected one JSON object a line"
    if isinstance(first, Missing):
        return f"no row has the column {first.column!r}; columns: {first.columns}"
    return f"no row can be graded; line {first.line}: {first.reason}"


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error


def _decoded(raw: bytes, path: Path, number: int) -> str:
    if number == 1:
        for start, name in OTHER_ENCODINGS.items():
            if raw.startswith(start):
                raise BadInput(f"{path}: this is {name}, expected JSON lines in UTF-8")
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise BadInput(
            f"{path}, line {number}: byte 0x{byte:02x} at {error.start} is not UTF-8; "
            "convert the file to UTF-8"
        ) from error


def _row(text: str, number: int, columns: Columns) -> Row | Broken:
    try:
        # a decimal stays text, so a reference of 0.1 is read exactly
        row = json.loads(text, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        return Broken(number, f"not JSON: {_short(error)}")
    if not isinstance(row, dict):
        return Broken(number, f"not an object but {_kind(row)}")
    found: dict[str, Any] = {"group": number}
    for name in ("response", "reference", "group"):
        column = getattr(columns, name)
        if column is None:
            continue
        value = _look_up(row, column)
        if value is _ABSENT:
            has = ", ".join(sorted(row)[:12])[:200] or "none"
            return Missing(number, f"no column {column}", column, has)
        found[name] = value
    return _typed(number, found, columns)


_ABSENT = object()


def _look_up(row: dict[str, Any], column: str) -> Any:
    """`row[column]`, or the value at a dotted path; the whole name goes first."""
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _typed(number: int, found: dict[str, Any], columns: Columns) -> Row | Broken:
    response, reference, group = found["response"], found["reference"], found["group"]
    responses = response if isinstance(response, list) else [response]
    if not responses or not all(isinstance(r, str) for r in responses):
        return Broken(number, f"{columns.response} is {_kind(response)}, expected text")
    for name, value in ((columns.reference, reference), (columns.group, group)):
        if isinstance(value, bool) or not isinstance(value, str | int):
            return Broken(number, f"{name} is {_kind(value)}, expected text or integer")
    return Row(number, group, reference, tuple(responses))


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def _short(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)[:80]


def grade(rows: Iterator[Row | Broken], mode: str = "auto") -> Report:
    """Verdicts of all rows. Raises ``ValueError`` on an unknown mode.

    >>> rows = [Row(1, "a", "34", ("Answer: 34", "Answer: 12")), Broken(2, "not JSON")]
    >>> report = grade(iter(rows))
    >>> report.reasons(), len(report.broken)
    ({'same': 1, 'different': 1}, 1)
    """
    report = Report(mode)
    for row in rows:
        if isinstance(row, Broken):
            report.broken.append(row)
            continue
        for sample, response in enumerate(row.responses):
            verdict = verify(response, row.reference, mode=mode)
            report.graded.append(Graded(row.line, sample, row.group, verdict))
    return report


def rates(report: Report, ks: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """avg@k, pass@k and maj@k with 95 % intervals; the unit is the problem.

    `ks` defaults to 1 and the smallest group. A problem with fewer than k samples
    leaves pass@k and maj@k (`problems` says how many stay); maj@k reads the first k.
    Student intervals, cut at 0 and 1; Wilson's where all problems are alike.
    Raises ``ValueError`` on k < 1 or k above every group.
    """
    groups = list(report.groups().values())
    if not groups:
        return []
    sizes = [len(g) for g in groups]
    ks = sorted(set(ks or (1, min(sizes))))
    for k in ks:
        expect(1 <= k <= max(sizes), "k", k, f"1 to {max(sizes)}, the largest group")
    average = [metrics.avg_at_k([bool(v.correct) for v in g]) for g in groups]
    name = f"avg@{sizes[0]}" if len(set(sizes)) == 1 else "avg"
    rows = [_rate(name, average)]
    for k in ks:
        enough = [g for g in groups if len(g) >= k]
        rows.append(_rate(f"pass@{k}", [_pass(g, k) for g in enough]))
        rows.append(_rate(f"maj@{k}", [_majority(g[:k]) for g in enough]))
    return rows


def _pass(group: list[Verdict], k: int) -> float:
    return metrics.pass_at_k(len(group), sum(bool(v.correct) for v in group), k)


def _majority(group: list[Verdict]) -> float:
    answers: list[int | Fraction | None] = [v.value for v in group]
    return metrics.maj_at_k(answers, [bool(v.correct) for v in group])


def _rate(name: str, values: list[float]) -> dict[str, Any]:
    interval = mean_interval(values)
    low, high = interval.low, interval.high
    if len(values) == 1:
        low, high = 0.0, 1.0
    elif interval.sd == 0 and interval.mean in (0.0, 1.0):
        low, high = wilson(round(interval.mean * len(values)), len(values))
    return {
        "metric": name,
        "mean": interval.mean,
        "low": max(low, 0.0),
        "high": min(high, 1.0),
        "problems": len(values),
    }


def summary(report: Report, ks: Sequence[int] | None = None) -> dict[str, Any]:
    """The report as plain numbers for JSON."""
    groups = report.groups()
    removed = {o.group for o in report.graded} - set(groups)
    return {
        "schema": "dapo.verify/1",
        "mode": report.mode,
        "responses": len(report.graded),
        "correct": sum(o.verdict.correct is True for o in report.graded),
        "wrong": sum(o.verdict.correct is False for o in report.graded),
        UNPARSABLE: sum(o.verdict.correct is None for o in report.graded),
        "problems": len(groups),
        "groups_removed": len(removed),
        "reasons": report.reasons(),
        "metrics": rates(report, ks),
        "broken_lines": len(report.broken),
        "broken": [{"line": b.line, "reason": b.reason} for b in report.broken],
    }


def as_csv(report: Report) -> bytes:
    """One row a response: line, sample, group, correct, reason, extracted text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for one in report.graded:
        v = one.verdict
        correct = "" if v.correct is None else int(v.correct)
        row = (one.line, one.sample, one.group, correct, v.reason, v.extracted or "")
        writer.writerow(row)
    for one in report.broken:
        writer.writerow((one.line, "", "", "", "broken_line", one.reason))
    return text.getvalue().encode("utf-8", "backslashreplace")
