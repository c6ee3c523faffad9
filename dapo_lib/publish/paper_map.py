"""The map paper, code, test and the table of disagreements, as MyST from one YAML file.

Left out: option by option against verl and TRL (engines/map.yml, chapter 10), and the
page's prose (book/*/paper_map.md).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from dapo_lib.experiments import published
from dapo_lib.experiments.arms import LADDER
from dapo_lib.experiments.paper import TABLE_1
from dapo_lib.experiments.statistics import mean_interval
from dapo_lib.experiments.summary import at_rollout
from dapo_lib.files import write_bytes
from dapo_lib.labels import Lang, label
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.markdown import table

ROLLOUTS = (8, 16)  # of the ladder: in the middle of learning, and near its end
SIDES = ("paper", "code", "run", "ours")


def write(layout: Layout) -> None:
    """Write `_build/generated/paper-<part>.<lang>.md`."""
    for lang in LANGS:
        parts = {
            "map": rows(lang),
            "disagreements": disagreements(lang),
            "table": table_1(lang),
        }
        for name, text in parts.items():
            path = layout.generated / f"paper-{name}.{lang}.md"
            write_bytes(path, f"{text}\n".encode())


@cache
def content() -> dict[str, list[dict[str, Any]]]:
    """`rows` and `disagreements` of paper_map.yml."""
    text = (files(__package__) / "paper_map.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def place(words: str, lang: Lang) -> str:
    """A place of the paper as it is cited in a language.

    >>> place("eq 8, 10", "en"), place("eq 8, 10", "zh"), place("fig 3a", "zh")
    ('Eq 8, 10', '式 (8)、(10)', '图 3a')
    """
    kind, _, numbers = words.partition(" ")
    listed = numbers.split(", ")
    if kind == "sec":
        return f"§{numbers}"
    if lang == "zh" and kind == "eq":
        return f"式 {'、'.join(f'({n})' for n in listed)}"
    return f"{label(f'book.{kind}', lang)} {numbers}"


def rows(lang: Lang) -> str:
    """One definition a place of the paper: code, tests, experiments, options."""
    return "\n\n".join(_row(row, lang) for row in content()["rows"])


def _row(row: dict[str, Any], lang: Lang) -> str:
    colon, comma = (": ", ", ") if lang == "en" else ("：", "、")
    lines = [f"**{place(row['place'], lang)}** {row['what'][lang]}"]
    for name in ("code", "test", "experiment", "verl", "trl"):
        if row.get(name):
            words = comma.join(f"`{item}`" for item in row[name])
            lines.append(f": {label(f'book.map_{name}', lang)}{colon}{words}")
    chapter = f"{{doc}}`/notebooks/{row['chapter']}`"
    return "\n".join([*lines, f": {label('book.chapter', lang)}{colon}{chapter}"])


def disagreements(lang: Lang) -> str:
    """What the paper says, its public code does, was run, and is done here."""
    head = [label("book.question", lang)]
    head += [label(f"book.side_{side}", lang) for side in SIDES]
    lines = [
        [row["what"][lang], *(row[side][lang] for side in SIDES)]
        for row in content()["disagreements"]
    ]
    return table(head, lines)


def table_1(lang: Lang) -> str:
    """The paper's ladder, the public rerun, and ours with intervals over seeds."""
    frame = published.load("ladder")
    ours = [at_rollout(frame, rollout, "eval_accuracy") for rollout in ROLLOUTS]
    head = [label(f"assembled.{k}", lang) for k in ("rung", "paper", "rerun")]
    head += [label(f"assembled.{k}", lang) for k in ("at_128", "at_256")]
    lines = []
    for arm in LADDER:
        rung = TABLE_1[arm]
        told = ["–" if x is None else f"{x:.0f}" for x in (rung.paper, rung.rerun)]
        told += [_points(wide[arm]) for wide in ours]
        lines.append([label(f"assembled.{arm}", lang), *told])
    return table(head, lines)


def _points(values: Any) -> str:
    found = mean_interval(values)
    low, high = 100 * found.low, 100 * found.high
    return f"{100 * found.mean:.1f} [{low:.1f}, {high:.1f}]"
