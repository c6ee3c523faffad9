"""The conformance page of each language: the published matrix as MyST tables.

Left out: the page's prose, which includes what is written here (book/*/conformance.md).
"""

from __future__ import annotations

import pandas as pd

from dapo_lib.experiments import published
from dapo_lib.files import write_bytes
from dapo_lib.labels import Lang, label
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.markdown import table

SYSTEMS = {"dapo_lib": "`dapo_lib`", "verl": "verl", "trl": "TRL"}
SYSTEMS |= {"openrlhf": "OpenRLHF"}
MARKS = {"right": "✓", "convention": "≈", "wrong": "✗", "not_offered": "·"}
ORDER = ("wrong", "convention", "right", "not_offered")  # a row is as its worst case


def write(layout: Layout) -> None:
    """Write `_build/generated/conformance-*.<lang>.md` from the published matrix."""
    frame = published.load("conformance")
    for lang in LANGS:
        for name, part in parts(frame, lang).items():
            path = layout.generated / f"conformance-{name}.{lang}.md"
            write_bytes(path, f"{part}\n".encode())


def parts(frame: pd.DataFrame, lang: Lang) -> dict[str, str]:
    """The page's tables: counts, matrix, conventions and wrong rows."""
    versions = frame.attrs["systems"]
    frame = frame.fillna("")
    return {
        "counts": _counts(frame, versions, lang),
        "matrix": _matrix(frame, lang),
        "conventions": _conventions(frame, lang),
        "wrong": _wrong(frame, lang),
    }


def row_verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows x systems: the verdict of each row's worst case that was offered."""
    rank = frame.assign(rank=frame["verdict"].map(ORDER.index))
    worst = rank.groupby(["row", "system"], sort=False)["rank"].min().unstack()
    return worst.map(ORDER.__getitem__)[[s for s in SYSTEMS if s in worst]]


def _counts(frame: pd.DataFrame, versions: dict[str, dict], lang: Lang) -> str:
    """The number of rows by verdict, and below it the versions that answered."""
    verdicts = row_verdicts(frame)
    head = [_words("col_system", lang)]
    head += [f"{_words(f'verdict_{v}', lang)} {MARKS[v]}" for v in MARKS]
    lines, said = [], []
    colon = ": " if lang == "en" else "："
    for system in verdicts:
        found = verdicts[system].value_counts()
        lines.append([SYSTEMS[system], *(str(found.get(v, 0)) for v in MARKS)])
        names = ", ".join(f"{k} {v}" for k, v in versions[system].items())
        said.append(f"* {SYSTEMS[system]}{colon}{names}")
    listed = "\n".join(said)
    return f"{table(head, lines)}\n\n{_words('col_versions', lang)}{colon}\n\n{listed}"


def _matrix(frame: pd.DataFrame, lang: Lang) -> str:
    """Number and fault share a column: six columns would not fit a phone."""
    verdicts = row_verdicts(frame)
    head = [_words("col_row", lang), *(SYSTEMS[s] for s in verdicts)]
    lines = [
        [f"**{row}** {_words(f'row_{row}', lang)}", *map(MARKS.get, verdicts.loc[row])]
        for row in verdicts.index
    ]
    return table(head, lines)


def _conventions(frame: pd.DataFrame, lang: Lang) -> str:
    chosen = frame[frame["verdict"] == "convention"]
    chosen = chosen.drop_duplicates(["row", "system", "convention"])
    head = [_words(f"col_{c}", lang) for c in ("row", "system", "choice")]
    lines = [
        [line.row, SYSTEMS[line.system], _words(f"convention_{line.convention}", lang)]
        for line in chosen.itertuples()
    ]
    return table(head, lines)


def _wrong(frame: pd.DataFrame, lang: Lang) -> str:
    """A folded box a system; lists in it, as tables would run off a phone."""
    boxes = []
    for system in SYSTEMS:
        wrong = frame[(frame["verdict"] == "wrong") & (frame["system"] == system)]
        if not len(wrong):
            continue
        title = (
            f"{SYSTEMS[system]}{': ' if lang == 'en' else '：'}{wrong.row.nunique()}"
        )
        blocks = [_details(row, part, lang) for row, part in wrong.groupby("row")]
        body = "\n\n".join(blocks)
        boxes.append(f"::::{{admonition}} {title}\n:class: dropdown\n\n{body}\n::::")
    return "\n\n".join(boxes)


def _details(row: str, part: pd.DataFrame, lang: Lang) -> str:
    colon, comma = (": ", ", ") if lang == "en" else ("：", "，")
    got, right = _words("col_value", lang), _words("col_right", lang)
    lines = [f"**{row}** {_words(f'row_{row}', lang)}", ""]
    for line in part.itertuples():
        lines.append(f"* {_code(line.input)}  ")
        lines.append(
            f"  {got}{colon}{_code(line.value)}{comma}{right}{colon}{_code(line.right)}"
        )
    lines += ["", f"{_words('col_report', lang)}{colon}{part.report.iloc[0]}"]
    return "\n".join(lines)


def _code(text: object) -> str:
    """Code on a line: a bar would end the cell, a backtick or a new line the code."""
    line = " ".join(str(text).splitlines())
    safe = line.replace("|", "¦").replace("`", "ˋ").replace("\\\\", "\\")
    return f"`{safe}`" if safe else ""


def _words(key: str, lang: Lang) -> str:
    return label(f"conformance.{key}", lang)
