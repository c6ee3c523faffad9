"""A notebook as one text file for writing, and back: `%% name kind` starts each cell.

Kinds: `en`, `zh` (prose of a language), `both` (a formula on its own), `code` followed
by tags. The parameters cell is put first if the text has none. Left out: outputs;
sources carry none. jupytext works on the same notebooks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from dapo_lib.errors import BadInput
from dapo_lib.files import write_bytes
from dapo_lib.publish import prose
from dapo_lib.publish.twins import HASH

PARAMETERS = 'lang = "en"\nseed = 0\nprofile = "ci"'
_HEAD = re.compile(r"^%% ([a-z0-9][a-z0-9-]*) (en|zh|both|code)((?: [\w-]+)*)$")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def dump(notebook: prose.Notebook) -> str:
    """The text of a notebook.

    >>> cell = {"id": "a-en", "cell_type": "markdown", "source": "Hi"}
    >>> cell["metadata"] = {"tags": ["lang-en"]}
    >>> dump({"cells": [cell]})
    '%% a en\\nHi\\n'
    """
    parts = []
    for cell in notebook["cells"]:
        lang, name = prose.language(cell), cell["id"]
        if cell["cell_type"] == "code":
            kind = " ".join(["code", *prose.tags(cell)])
        else:
            kind = lang or "both"
            name = name.removesuffix(f"-{lang}")
        parts.append(f"%% {name} {kind}\n{prose.source(cell).strip()}\n")
    return "\n".join(parts)


def load(text: str, old: prose.Notebook | None = None) -> prose.Notebook:
    """The notebook of a text; hashes of twins are taken from `old` where it has them.

    Raises ``BadInput`` naming the line of a malformed cell head, or an id used twice.

    >>> notebook = load("%% a en\\nHi")
    >>> [(c["id"], c["source"]) for c in notebook["cells"]]
    [('parameters', 'lang = "en"\\nseed = 0\\nprofile = "ci"'), ('a-en', 'Hi')]
    """
    cells, lines = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("%% "):
            if not cells and line.strip():
                raise BadInput(f"line {number}: text before the first cell head")
            lines.append(line)
            continue
        head = _HEAD.match(line.rstrip())
        if head is None:
            wanted = "expected `%% name en|zh|both|code [tags]`"
            raise BadInput(f"line {number}: {line!r}, {wanted}")
        lines = []
        cells.append((_cell(head[1], head[2], head[3].split()), lines))
    made = [{**cell, "source": "\n".join(body).strip()} for cell, body in cells]
    if not any("parameters" in prose.tags(cell) for cell in made):
        first = _cell("parameters", "code", ["parameters"])
        made.insert(0, {**first, "source": PARAMETERS})
    _keep_hashes(made, old)
    names = [cell["id"] for cell in made]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadInput(f"cell {', '.join(twice)}: id used twice; rename one")
    return {"cells": made, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def write(path: Path, notebook: prose.Notebook) -> None:
    """Write a notebook in the one form that keeps differences small."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    write_bytes(path, text.encode() + b"\n")


def _cell(name: str, kind: str, tags: list[str]) -> prose.Cell:
    if kind == "code":
        empty = {"cell_type": "code", "execution_count": None, "outputs": []}
        return {**empty, "id": name, "metadata": {"tags": tags} if tags else {}}
    if kind == "both":
        return {"cell_type": "markdown", "id": name, "metadata": {}}
    metadata = {"tags": [f"lang-{kind}", *tags]}
    return {"cell_type": "markdown", "id": f"{name}-{kind}", "metadata": metadata}


def _keep_hashes(cells: list[prose.Cell], old: prose.Notebook | None) -> None:
    known = {c["id"]: c["metadata"].get(HASH) for c in (old or {"cells": []})["cells"]}
    for cell in cells:
        if known.get(cell["id"]):
            cell["metadata"][HASH] = known[cell["id"]]
