"""The cache key of an executed notebook: source, parameters, language and code.

The code is what the notebook can reach: its `dapo_lib` imports, followed statically,
with the data files beside them. Left out: imports by a computed name; none of the
chapters' modules uses one.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dapo_lib.files import canonical, digest
from dapo_lib.publish.prose import Notebook, source

PACKAGE = Path(__file__).resolve().parents[1]
_DATA = {".yml", ".mjs", ".js", ".css", ".csv", ".json", ".jsonl"}
_ALWAYS = ("labels", "published")  # read by name at run time
_VERSIONS = ("numpy", "torch", "pandas", "matplotlib", "anywidget", "papermill")


def key(notebook: Notebook, values: dict[str, Any]) -> str:
    """SHA-256 over everything that an execution of `notebook` depends on."""
    code = [source(c) for c in notebook["cells"] if c["cell_type"] == "code"]
    facts = {
        "cells": [[c["cell_type"], source(c)] for c in notebook["cells"]],
        "tags": [c.get("metadata", {}).get("tags", []) for c in notebook["cells"]],
        "parameters": values,
        "files": {str(p.relative_to(PACKAGE)): _sum(p) for p in reachable(code)},
        "versions": {name: version(name) for name in _VERSIONS},
        "python": platform.python_version(),
    }
    return digest(canonical(facts))


def reachable(code: list[str]) -> list[Path]:
    """The files of the library that some cells can reach, sorted."""
    todo = [name for text in code for name in imported(text)]
    modules: set[Path] = {PACKAGE / "__init__.py"}
    while todo:
        for path in _files(todo.pop()):
            if path not in modules:
                modules.add(path)
                todo.extend(imported(path.read_text(encoding="utf-8")))
    folders = {m.parent for m in modules} - {PACKAGE}
    folders |= {PACKAGE / name for name in _ALWAYS}
    data = {p for f in folders for p in f.glob("*") if p.suffix in _DATA}
    return sorted(modules | data)


def imported(text: str) -> Iterator[str]:
    """Dotted names of ours that a text imports, anywhere in it.

    >>> list(imported("from dapo_lib.kl import k1\\nimport numpy"))
    ['dapo_lib.kl', 'dapo_lib.kl.k1']
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a magic; the cell itself is in the key
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [node.module, *inner]
        else:
            continue
        yield from (n for n in names if n.split(".")[0] == PACKAGE.name)


def _files(name: str) -> list[Path]:
    """The module of a dotted name and the packages around it; empty for a function."""
    parts = name.split(".")[1:]
    found = [PACKAGE.joinpath(*parts[:i], "__init__.py") for i in range(len(parts) + 1)]
    if parts:
        found.append(PACKAGE.joinpath(*parts).with_suffix(".py"))
    return [path for path in found if path.is_file()]


@cache
def _sum(path: Path) -> str:
    return digest(path.read_bytes())
