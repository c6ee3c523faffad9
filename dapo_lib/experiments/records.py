"""What a notebook measured: `_build/results`, one file a notebook and language.

Left out: presentation. publish/metrics_page.py compares and prints what is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dapo_lib.errors import BadInput
from dapo_lib.experiments.provenance import provenance
from dapo_lib.experiments.statistics import Interval
from dapo_lib.files import inside, read_json, write_json

SCHEMA = "dapo-book/records/1"


class Record(BaseModel):
    """One measured number with its population, interval and tolerance for drift."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9_.]+$")
    value: float
    low: float | None = None
    high: float | None = None
    seeds: int = Field(1, ge=1)
    unit: str = ""
    tolerance: float = Field(0.0, ge=0)
    paper: float | None = None
    source: str = ""


class Recorder:
    """Collects the records of one notebook execution; `save` writes them whole.

    >>> import tempfile
    >>> r = Recorder("03_clip_higher", "en", folder=tempfile.mkdtemp())
    >>> r.record("clip.gain", 0.2, low=0.1, high=0.3, seeds=20, unit="accuracy").value
    0.2
    """

    def __init__(
        self, notebook: str, lang: str, folder: Path | str | None = None
    ) -> None:
        self.notebook, self.lang = notebook, lang
        default = os.environ.get("DAPO_RESULTS", "_build/results")
        self.folder = Path(folder or default)
        self.records: dict[str, Record] = {}

    def record(self, name: str, value: float | Interval, **facts: Any) -> Record:
        """Enter one number (or an :class:`Interval`) and write the file anew.

        Raises ``BadInput`` on a name used twice or a value that is not finite.
        """
        if isinstance(value, Interval):
            bounds = {"low": value.low, "high": value.high, "seeds": value.n}
            facts, value = bounds | facts, value.mean
        try:
            entry = Record(name=name, value=float(value), **facts)
        except ValueError as error:
            reason = "; ".join(str(error).splitlines()[1:3])
            raise BadInput(f"record {name!r}: {reason}") from error
        if name in self.records and self.records[name] != entry:
            raise BadInput(f"record {name!r}: recorded twice with different values")
        self.records[name] = entry
        self.save()
        return entry

    def save(self) -> Path:
        """Write `<notebook>.<lang>.json`; sorted, and without a time stamp."""
        path = inside(self.folder, f"{self.notebook}.{self.lang}.json")
        rows = [self.records[k].model_dump() for k in sorted(self.records)]
        facts = {"notebook": self.notebook, "lang": self.lang}
        write_json(path, SCHEMA, {**facts, "records": rows, "provenance": provenance()})
        return path


def load_records(path: Path | str) -> dict[str, Record]:
    """The records of a file that :class:`Recorder` wrote, by name."""
    body = read_json(path, SCHEMA)
    return {row["name"]: Record(**row) for row in body["records"]}


def merge(paths: Sequence[Path]) -> dict[str, Record]:
    """The records of several notebooks. Raises ``BadInput`` on a name used twice."""
    merged: dict[str, Record] = {}
    for path in paths:
        for name, entry in load_records(path).items():
            if name in merged:
                raise BadInput(
                    f"{path}: record {name!r} is already in another notebook"
                )
            merged[name] = entry
    return merged
