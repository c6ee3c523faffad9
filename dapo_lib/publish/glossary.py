"""book/glossary.yml read once for the page, the hover terms and the search dictionary.

Left out: enforcement in prose; tests/notebooks does that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from dapo_lib.errors import BadInput
from dapo_lib.publish.layout import Layout

_KEYS = {"id", "en", "zh", "abbr", "code", "def_en", "def_zh", "avoid_zh"}
_NEEDED = {"id", "en", "zh", "def_en", "def_zh"}


@cache
def load(layout: Layout) -> tuple[dict[str, Any], ...]:
    """All entries. Raises ``BadInput`` on an odd or missing key, or a repeated id."""
    path = layout.root / "book" / "glossary.yml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    seen: set[str] = set()
    for entry in entries:
        name = entry.get("id")
        odd = (entry.keys() - _KEYS) | (_NEEDED - entry.keys())
        if odd or name in seen:
            what = f"keys {sorted(odd)}" if odd else "repeated"
            raise BadInput(f"glossary.yml: entry {name!r}: {what}; mend the entry")
        seen.add(name)
    return tuple(entries)


def page(layout: Layout, lang: str) -> list[str]:
    """The glossary as MyST lines: the term in both languages, then its definition."""
    other = "zh" if lang == "en" else "en"
    lines = [":::{glossary}"]
    for entry in sorted(load(layout), key=lambda e: str(e[lang]).casefold()):
        names = [str(entry[lang])]
        if entry.get("abbr"):
            names.append(str(entry["abbr"]))
        foreign = str(entry[other])
        tail = f"*{foreign}*. " if lang == "en" else f"{foreign}。"
        code = f" `{entry['code']}`" if entry.get("code") else ""
        said = "" if foreign == names[0] else tail
        lines += [*dict.fromkeys(names), f"  {said}{entry[f'def_{lang}']}{code}", ""]
    return [*lines, ":::"]


@cache
def definitions(layout: Layout, lang: str) -> dict[str, str]:
    """Lower-case term, abbreviation or id -> its definition in `lang`."""
    found = {}
    for entry in load(layout):
        for key in ("id", "en", "zh", "abbr"):
            if entry.get(key):
                found[str(entry[key]).lower()] = entry[f"def_{lang}"]
    return found


@cache
def _names(layout: Layout) -> dict[str, dict[str, Any]]:
    return {
        str(entry[key]).lower(): entry
        for entry in load(layout)
        for key in ("id", "en", "zh", "abbr")
        if entry.get(key)
    }


def canonical(layout: Layout, term: str, lang: str) -> str | None:
    """The heading under which a page of `lang` lists a term given in any form."""
    entry = _names(layout).get(term.lower())
    return None if entry is None else str(entry[lang])
