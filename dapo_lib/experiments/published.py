"""Results that took long: a small CSV and its provenance, committed with the library.

Left out: judgement. What is a claim, and whether it holds, is said by the pages.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.files import digest, inside, read_json, write_bytes, write_json

FOLDER = Path(__file__).resolve().parents[1] / "published"
SCHEMA = "dapo-book/published/1"


def save(
    name: str,
    frame: pd.DataFrame,
    provenance: dict[str, Any],
    folder: Path | str = FOLDER,
    *,
    digits: int = 10,
) -> Path:
    """Write `name`.csv (`digits` significant digits) and `name`.json, the CSV first.

    `provenance` says seeds, configuration, versions, seconds, data; see provenance.py.
    """
    text = frame.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    path = inside(folder, f"{name}.csv")
    write_bytes(path, text.encode())
    facts = {"csv_sha256": digest(text.encode()), "rows": len(frame)}
    write_json(path.with_suffix(".json"), SCHEMA, {**facts, "provenance": provenance})
    return path


def load(name: str, folder: Path | str = FOLDER) -> pd.DataFrame:
    """The table of a published result; its provenance is in ``frame.attrs``.

    Raises ``BadInput`` for an unknown name, ``DamagedFile`` where CSV and JSON differ.
    """
    path = inside(folder, f"{name}.csv")
    if not path.exists():
        known = ", ".join(names(folder)) or "none"
        raise BadInput(f"published result {name!r} does not exist; known: {known}")
    facts = read_json(path.with_suffix(".json"), SCHEMA)
    data = path.read_bytes()
    if digest(data) != facts["csv_sha256"]:
        raise DamagedFile(f"{path}: checksum does not match; restore or regenerate it")
    frame = pd.read_csv(io.BytesIO(data))
    frame.attrs = facts["provenance"]
    return frame


def names(folder: Path | str = FOLDER) -> list[str]:
    """Every published result, by name."""
    return sorted(p.stem for p in Path(folder).glob("*.csv"))
