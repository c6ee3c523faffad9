"""Chinese search: the glossary teaches the segmenter, the browser segments the query.

Sphinx's index holds the words that jieba cuts; a query arrives whole, so it must be cut
into words of that index in the browser. Left out: English, where Sphinx needs no help.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dapo_lib.files import write_bytes


def write_dictionary(entries: Sequence[dict[str, Any]], path: Path) -> None:
    """Write jieba's user dictionary: every Chinese term of the glossary."""
    terms = {part for e in entries for part in str(e["zh"]).split()}
    chinese = sorted(t for t in terms if any("\u4e00" <= c <= "\u9fff" for c in t))
    write_bytes(path, "".join(f"{t} 1000000 n\n" for t in chinese).encode())


def install_splitter(script: Path) -> None:
    """Make Sphinx's Chinese search ship our `splitQuery`."""
    import logging

    import jieba
    from sphinx.search.zh import SearchChinese

    jieba.setLogLevel(logging.WARNING)
    SearchChinese.js_splitter_code = script.read_text(encoding="utf-8")
