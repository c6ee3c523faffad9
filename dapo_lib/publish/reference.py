"""The committed metrics: what the last accepted run measured, and drift against it.

Left out: pages. metrics_page.py writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dapo_lib.errors import DapoError
from dapo_lib.experiments.records import Record, load_records
from dapo_lib.files import read_json, write_json
from dapo_lib.publish.layout import LANGS, Layout

SCHEMA = "dapo-book/reference/1"
WITHIN = 1e-9  # two executions on one machine


@dataclass(frozen=True)
class Row:
    """A record of this run, the notebook it is from, and the accepted value."""

    notebook: str
    record: Record
    accepted: Record | None

    @property
    def drift(self) -> float | None:
        """This run minus the reference; None for a new name."""
        return (
            None if self.accepted is None else self.record.value - self.accepted.value
        )

    @property
    def fault(self) -> str | None:
        """Why this row fails the check, or None."""
        name = f"{self.notebook}: {self.record.name}"
        if self.drift is None:
            return f"{name}: not in the reference; `dapo metrics --accept` takes it in"
        room = self.record.tolerance + 1e-12
        if abs(self.drift) > room:
            now, then = self.record.value, self.accepted.value
            return f"{name}: {now:.6g}, reference {then:.6g}, tolerance {room:.2g}"
        return None


def load(layout: Layout) -> dict[str, Record]:
    """The committed records by name; empty before the first acceptance."""
    if not layout.reference.exists():
        return {}
    body = read_json(layout.reference, SCHEMA)
    return {row["name"]: Record(**row) for row in body["records"]}


def accept(layout: Layout, rows: list[Row]) -> None:
    """Make this run the reference. Raises ``DapoError`` on a name used twice."""
    names = [row.record.name for row in rows]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DapoError(f"records in two notebooks: {', '.join(twice)}; rename one")
    ordered = sorted(rows, key=lambda row: row.record.name)
    records = [row.record.model_dump() for row in ordered]
    write_json(layout.reference, SCHEMA, {"records": records})


def collect(layout: Layout, langs: tuple[str, ...] = LANGS) -> list[Row]:
    """Every record of the executed notebooks, once.

    Raises ``DapoError`` where a notebook has no results or the languages disagree: they
    ran the same code with the same seed, so a difference is a fault.
    """
    known, rows = load(layout), []
    for path in layout.chapters():
        sides = {lang: _records(layout, path.stem, lang) for lang in langs}
        first, *others = langs
        for other in others:
            _agree(path.stem, sides[first], sides[other])
        rows += [
            Row(path.stem, entry, known.get(name))
            for name, entry in sides[first].items()
        ]
    return rows


def _records(layout: Layout, name: str, lang: str) -> dict[str, Record]:
    path = layout.results / f"{name}.{lang}.json"
    if not path.exists():
        raise DapoError(f"{name} [{lang}]: recorded nothing; run `dapo book execute`")
    return load_records(path)


def _agree(name: str, a: Mapping[str, Record], b: Mapping[str, Record]) -> None:
    odd = sorted(a.keys() ^ b.keys())
    if odd:
        raise DapoError(f"{name}: recorded in one language only: {', '.join(odd)}")
    for key, entry in a.items():
        if is_time(entry):
            continue
        for side in ("value", "low", "high"):
            x, y = getattr(entry, side), getattr(b[key], side)
            if x != y and (x is None or y is None or abs(x - y) > WITHIN):
                raise DapoError(f"{name}: {key} differs by language: {x} and {y}")


def is_time(record: Record) -> bool:
    """Seconds measure the machine; they may differ between the two languages."""
    return record.unit in ("s", "ms", "1/s", "tokens/s")


def faults(rows: list[Row], layout: Layout) -> list[str]:
    """Rows out of tolerance and accepted names that are gone."""
    found = [row.fault for row in rows if row.fault]
    gone = sorted(load(layout).keys() - {row.record.name for row in rows})
    return found + [f"{name}: in the reference, but not recorded" for name in gone]


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    """The rows as plain data, sorted by name."""
    return [
        {"notebook": row.notebook, **row.record.model_dump(), "drift": row.drift}
        for row in sorted(rows, key=lambda row: row.record.name)
    ]
