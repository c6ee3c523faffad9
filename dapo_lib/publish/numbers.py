"""Numbers in prose: `{result}`name format`` and `{interval}`name format`` from records.

They are filled from `_build/results` on the page, from the committed reference in a
clean copy of a notebook. Left out: typing a number by hand; a test looks for such.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dapo_lib.errors import BadInput, DapoError
from dapo_lib.experiments.records import Record, load_records
from dapo_lib.publish import reference
from dapo_lib.publish.layout import Layout

_ROLE = re.compile(r"\{(result|interval)\}`([^`]+)`")


def render(layout: Layout, text: str, lang: str, *, full: bool) -> str:
    """The words for `notebook:name format`; with `full`, interval and seeds too.

    The format is Python's, default ``.3f``. Raises ``BadInput`` on an unknown name.
    """
    where, name, spec = parse(text)
    path = layout.results / f"{where}.{lang}.json"
    records = _records(path, path.stat().st_mtime_ns) if path.exists() else {}
    if name not in records:
        known = ", ".join(sorted(records)) or "none"
        raise BadInput(f"{where}: no record {name!r}; recorded: {known}")
    return words(records[name], spec, lang, full=full)


def parse(text: str) -> tuple[str, str, str]:
    """Notebook, name and format of a role's text.

    >>> parse("03_clip_higher:gain .1%")
    ('03_clip_higher', 'gain', '.1%')
    """
    target, _, spec = text.strip().partition(" ")
    where, _, name = target.rpartition(":")
    return where, name, spec.strip() or ".3f"


def words(record: Record, spec: str, lang: str, *, full: bool) -> str:
    """A record in words.

    >>> r = Record(name="gain", value=0.05, low=0.012, high=0.088, seeds=5)
    >>> words(r, ".1%", "en", full=True)
    '5.0% (95% CI [1.2%, 8.8%], 5 seeds)'
    >>> words(r, ".1%", "zh", full=True)
    '5.0%（95% 置信区间 [1.2%, 8.8%]，5 个种子）'
    """
    value = number(record.value, spec)
    if not full:
        return value
    if record.low is None or record.high is None:
        raise BadInput(f"record {record.name!r} has no interval; use {{result}}")
    low, high = number(record.low, spec), number(record.high, spec)
    if lang == "zh":
        return f"{value}（95% 置信区间 [{low}, {high}]，{record.seeds} 个种子）"
    return f"{value} (95% CI [{low}, {high}], {record.seeds} seeds)"


def number(value: float, spec: str) -> str:
    """A formatted number with a true minus sign; `pp` means percentage points.

    >>> number(-0.0512, ".1%"), number(0.0512, "+.1pp")
    ('−5.1%', '+5.1')
    """
    try:
        if spec.endswith("pp"):
            text = format(100 * value, spec[:-2] + "f")
        else:
            text = format(int(value) if spec.endswith("d") else value, spec)
    except ValueError as error:
        raise BadInput(f"format {spec!r}: not one of Python's, like .2f") from error
    return text.replace("-", "\N{MINUS SIGN}")


def qualify(text: str, notebook: str) -> str:
    """Name the notebook in roles that leave it out.

    >>> qualify("{result}`gain .2f`", "03_clip_higher")
    '{result}`03_clip_higher:gain .2f`'
    """

    def name(match: re.Match[str]) -> str:
        body = match[2] if ":" in match[2] else f"{notebook}:{match[2]}"
        return f"{{{match[1]}}}`{body}`"

    return _ROLE.sub(name, text)


def substitute(layout: Layout, text: str, lang: str) -> str:
    """The text with roles replaced by the committed reference's numbers."""
    known = reference.load(layout)

    def value(match: re.Match[str]) -> str:
        _, name, spec = parse(match[2])
        if name not in known:
            return match[0]
        try:
            return words(known[name], spec, lang, full=match[1] == "interval")
        except DapoError:
            return match[0]

    return _ROLE.sub(value, text)


@cache
def _records(path: Path, _changed: int) -> dict[str, Record]:
    return load_records(path)
