"""Reading a bilingual notebook: which cell belongs to which language.

A prose cell tagged `lang-en` is directly followed by its `lang-zh` twin; cells without
such a tag (code, a formula on its own) belong to both. Left out: judgement (twins.py).
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from dapo_lib.errors import BadInput, DamagedFile

Cell = dict[str, Any]
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """The notebook as plain JSON. Raises ``DamagedFile`` where it is not one."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedFile(f"{path.name}: not a notebook; restore it") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise DamagedFile(f"{path.name}: not a notebook; restore it")
    for number, cell in enumerate(cells, start=1):
        if not _is_cell(cell):
            raise DamagedFile(f"{path.name}, cell {number}: not a cell; restore it")
    return notebook


def _is_cell(cell: Any) -> bool:
    """Whether all that we read of a cell is there, and of its kind."""
    if not isinstance(cell, dict):
        return False
    text, about = cell.get("source"), cell.get("metadata", {})
    lines = text if isinstance(text, list) else [text]
    marks = about.get("tags", []) if isinstance(about, dict) else None
    return (
        cell.get("cell_type") in ("code", "markdown", "raw")
        and all(isinstance(line, str) for line in lines)
        and isinstance(marks, list)
        and all(isinstance(mark, str) for mark in marks)
    )


def source(cell: Cell) -> str:
    """The text of a cell, whichever of its two forms the file uses."""
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def tags(cell: Cell) -> list[str]:
    """The tags of a cell."""
    return cell.get("metadata", {}).get("tags", [])


def language(cell: Cell) -> str | None:
    """`en` or `zh`, or None for a cell of both.

    >>> language({"metadata": {"tags": ["lang-zh"]}})
    'zh'
    """
    found = [t.removeprefix("lang-") for t in tags(cell) if t.startswith("lang-")]
    return found[0] if found else None


def one_language(notebook: Notebook, lang: str, drop: tuple[str, ...] = ()) -> Notebook:
    """A copy that keeps the cells of `lang` and of both, minus cells tagged in `drop`.

    >>> nb = {"cells": [{"metadata": {"tags": ["lang-en"]}, "source": "Hi"}]}
    >>> one_language(nb, "zh")["cells"]
    []
    """
    kept = copy.deepcopy(notebook)
    kept["cells"] = [
        cell
        for cell in kept["cells"]
        if language(cell) in (None, lang) and not set(drop) & set(tags(cell))
    ]
    return kept


def parameters(notebook: Notebook, name: str) -> dict[str, Any]:
    """The names that the one `parameters` cell declares, with their defaults.

    Raises ``BadInput`` unless there is exactly one such cell, one assignment a line.
    """
    import ast

    cells = [c for c in notebook["cells"] if "parameters" in tags(c)]
    if len(cells) != 1:
        raise BadInput(f"{name}: needs one cell tagged parameters, found {len(cells)}")
    declared: dict[str, Any] = {}
    for line in ast.parse(source(cells[0])).body:
        plain = isinstance(line, ast.Assign) and len(line.targets) == 1
        if not plain or not isinstance(line.targets[0], ast.Name):
            wanted = "one `name = literal` a line"
            raise BadInput(f"{name}: parameters cell, line {line.lineno}: {wanted}")
        declared[line.targets[0].id] = ast.literal_eval(line.value)
    return declared
