"""The one table of words that a reader sees in figures, widgets and metrics.

One YAML file a topic in this folder; every entry is `key: {en: ..., zh: ...}`.
Left out: prose. Paragraphs belong to the notebooks and to book/.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from dapo_lib.errors import BadInput, expect

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


@cache
def table() -> dict[str, dict[str, str]]:
    """All labels, `topic.key` -> {en, zh}. ``BadInput`` on a missing language."""
    entries: dict[str, dict[str, str]] = {}
    for path in sorted(files(__name__).iterdir(), key=lambda p: p.name):
        if not path.name.endswith(".yml"):
            continue
        topic = path.name.removesuffix(".yml")
        loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for key, words in loaded.items():
            if set(words) != set(LANGS):
                raise BadInput(f"labels/{path.name}: {key} needs exactly en and zh")
            entries[f"{topic}.{key}"] = words
    return entries


def label(key: str, lang: Lang) -> str:
    """The words for `topic.key` in a language.

    >>> label("figures.entropy", "en"), label("figures.entropy", "zh")
    ('Entropy (nats)', '熵（nat）')
    """
    expect(lang in LANGS, "lang", repr(lang), "en or zh")
    expect(key in table(), "label", repr(key), "a key of dapo_lib/labels/*.yml")
    return table()[key][lang]
