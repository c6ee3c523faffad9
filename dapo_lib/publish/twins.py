"""Whether the Chinese side still says what the English side says.

Each `lang-zh` cell carries the hash of the English cell before it; headings, maths,
roles, labels, citations and directives of the two must be the same. Pages in book/en
and book/zh are compared the same way, the hash in the front matter. Left out: meaning;
a reader stamps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from dapo_lib.files import digest, write_bytes
from dapo_lib.publish import prose
from dapo_lib.publish.layout import Layout

HASH = "source_hash"
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.S)
_STAMP = re.compile(rf"^{HASH}: *(\w+) *$", re.M)


def source_hash(text: str) -> str:
    """A short hash of an English text, blind to trailing space.

    >>> source_hash("a  \\nb") == source_hash("a\\nb\\n")
    True
    """
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return digest("\n".join(lines).encode())[:12]


def skeleton(text: str) -> dict[str, object]:
    """What must be equal in both languages: a name -> what was found.

    >>> skeleton("# A $x$ {cite}`dapo`")["roles"]
    Counter({'cite:dapo': 1})
    """
    code = re.compile(r"^(`{3,}|~{3,})(?!\{).*?^\1\s*$", re.S | re.M)
    text = code.sub("", text)
    maths = [" ".join(m.split()) for m in re.findall(r"\$\$(.+?)\$\$", text, re.S)]
    rest = re.sub(r"\$\$.+?\$\$", "", text, flags=re.S)
    maths += re.findall(r"(?<![\\$])\$([^$\n]+)\$", rest)
    roles = re.findall(r"\{([\w:-]+)\}`([^`]*)`", rest)
    targets = Counter(f"{name}:{_target(name, body)}" for name, body in roles)
    options = re.findall(r"^:(label|name|figclass|class):\s*(.+)$", rest, re.M)
    return {
        "headings": [len(h) for h in re.findall(r"^(#{1,6}) ", rest, re.M)],
        "maths": Counter(maths),
        "roles": targets,
        "labels": Counter(re.findall(r"^\(([\w-]+)\)=", rest, re.M)),
        "directives": Counter(re.findall(r"^[`:]{3,}\{([\w:-]+)\}", rest, re.M)),
        "links": Counter(re.findall(r"\]\(([^)\s]+)\)", rest)),
        "options": Counter(f"{k} {v.strip()}" for k, v in options),
    }


def faults(layout: Layout) -> list[str]:
    """Every fault of the sources, one line each: file, cell or page, remedy."""
    found: list[str] = []
    for path in layout.chapters():
        found.extend(f"{path.name}: {fault}" for fault in notebook_faults(path))
    found.extend(page_faults(layout))
    return found


def notebook_faults(path: Path) -> Iterator[str]:
    """Stale, missing or unequal twins of one notebook."""
    cells = prose.read(path)["cells"]
    for i, cell in enumerate(cells):
        side, name = prose.language(cell), cell.get("id")
        if side is None:
            if cell["cell_type"] == "markdown" and not _formula_only(cell):
                yield f"cell {name}: prose needs the tag lang-en or lang-zh"
        elif side == "en":
            after = cells[i + 1] if i + 1 < len(cells) else None
            if after is None or prose.language(after) != "zh":
                yield f"cell {name}: no lang-zh twin directly after it"
            else:
                yield from _pair(cell, after)
        elif i == 0 or prose.language(cells[i - 1]) != "en":
            yield f"cell {name}: no lang-en twin directly before it"


def _pair(english: prose.Cell, chinese: prose.Cell) -> Iterator[str]:
    name = chinese.get("id")
    text, twin = prose.source(english), prose.source(chinese)
    if chinese["metadata"].get(HASH) != source_hash(text):
        yield f"cell {name}: stale; re-read it, then `dapo book stamp`"
    yield from (f"cell {name}: {d}" for d in differences(text, twin))
    for heading in re.finditer(r"^(.*)\n(#{2,6}) ", "\n" + text, re.M):
        if not heading[1].startswith("("):
            yield f"cell {english.get('id')}: a heading needs a (label)= line above it"


def differences(english: str, chinese: str) -> Iterator[str]:
    """What the skeletons of two texts do not share, in words."""
    a, b = skeleton(english), skeleton(chinese)
    for kind in a:
        if a[kind] == b[kind]:
            continue
        if isinstance(a[kind], Counter):
            only = (
                f"only en {sorted(a[kind] - b[kind])}, zh {sorted(b[kind] - a[kind])}"
            )
        else:
            only = f"en {a[kind]}, zh {b[kind]}"
        yield f"{kind} differ: {only}"


def page_faults(layout: Layout) -> Iterator[str]:
    """The same for the pages without code, book/en/*.md against book/zh/*.md."""
    english = {p.name: p for p in (layout.root / "book/en").glob("*.md")}
    chinese = {p.name: p for p in (layout.root / "book/zh").glob("*.md")}
    for name in sorted(english.keys() ^ chinese.keys()):
        yield f"book/*/{name}: exists in one language only"
    for name in sorted(english.keys() & chinese.keys()):
        text, twin = english[name].read_text("utf-8"), chinese[name].read_text("utf-8")
        stamp = _STAMP.search(twin)
        if stamp is None or stamp[1] != source_hash(text):
            yield f"book/zh/{name}: stale; re-read it, then `dapo book stamp`"
        for difference in differences(_body(text), _body(twin)):
            yield f"book/zh/{name}: {difference}"


def stamp(layout: Layout, only: list[str] | None = None) -> list[str]:
    """Write the English hashes into the Chinese side; says what was stamped."""
    stamped: list[str] = []
    for path in layout.select(only):
        notebook = prose.read(path)
        cells = notebook["cells"]
        for english, chinese in pairwise(cells):
            if (prose.language(english), prose.language(chinese)) != ("en", "zh"):
                continue
            fresh = source_hash(prose.source(english))
            if chinese["metadata"].get(HASH) != fresh:
                chinese["metadata"][HASH] = fresh
                stamped.append(f"{path.name} {chinese.get('id')}")
        form = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
        write_bytes(path, form.encode() + b"\n")
    if not only:
        stamped.extend(_stamp_pages(layout))
    return stamped


def _stamp_pages(layout: Layout) -> Iterator[str]:
    for page in sorted((layout.root / "book/zh").glob("*.md")):
        twin = layout.root / "book/en" / page.name
        if not twin.exists():
            continue
        text, fresh = page.read_text("utf-8"), source_hash(twin.read_text("utf-8"))
        line = f"{HASH}: {fresh}"
        if _STAMP.search(text):
            new = _STAMP.sub(line, text, count=1)
        elif _FRONT.match(text):
            new = text.replace("---\n", f"---\n{line}\n", 1)
        else:
            new = f"---\n{line}\n---\n{text}"
        if new != text:
            write_bytes(page, new.encode())
            yield f"book/zh/{page.name}"


def _body(text: str) -> str:
    return _FRONT.sub("", text)


def _formula_only(cell: prose.Cell) -> bool:
    text = prose.source(cell).strip()
    return text.startswith("$$") and "\n\n" not in text


def _target(role: str, body: str) -> str:
    """A role's target; the words before <target> and terms are the language's own."""
    if role == "term":
        return ""
    match = re.search(r"<([^>]+)>\s*$", body)
    return match[1] if match else body
