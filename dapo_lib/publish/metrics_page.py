"""The metrics page of each language: every recorded number, and where it comes from.

Left out: the page's prose, which includes what is written here (book/*/metrics.md).
"""

from __future__ import annotations

import re
from html import escape

from dapo_lib.errors import DapoError
from dapo_lib.experiments import published
from dapo_lib.experiments.provenance import provenance
from dapo_lib.files import write_bytes
from dapo_lib.labels import Lang, label, table
from dapo_lib.publish import around, markdown, prose
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.reference import Row, collect, faults, is_time

COLUMNS = ("metric", "value", "interval", "seeds", "paper", "drift", "tolerance")


def write(layout: Layout) -> list[str]:
    """Write `_build/generated/metrics.<lang>.md`; the faults found, for the caller.

    Raises ``DapoError`` where the two executions disagree.
    """
    rows = collect(layout)
    for lang in LANGS:
        path = layout.generated / f"metrics.{lang}.md"
        write_bytes(path, page(rows, lang, layout).encode())
    write_bytes(layout.generated / "metrics.csv", around.numbers_csv(rows).encode())
    return faults(rows, layout)


def check(layout: Layout) -> None:
    """Write the pages. Raises ``DapoError`` listing what left its tolerance."""
    found = write(layout)
    if found:
        raise DapoError(f"metrics: {len(found)} fault(s): " + "; ".join(found))


def page(rows: list[Row], lang: Lang, layout: Layout) -> str:
    """The tables of all notebooks, the experiments and the provenance, as MyST."""
    parts = [data_link("metrics", label("book.all_metrics", lang))]
    for notebook in dict.fromkeys(row.notebook for row in rows):
        own = [row for row in rows if row.notebook == notebook]
        own.sort(key=lambda row: row.record.name)
        head = f"## {chapter_link(layout, notebook, lang)}"
        anchor = f"(metrics-{notebook.replace('_', '-')})="
        parts.append(f"{anchor}\n{head}\n\n{_table(own, lang)}")
    notebooks = list(dict.fromkeys(row.notebook for row in rows))
    parts += [experiments(lang), seed_table(lang)]
    parts += [_times(layout, notebooks, lang), _provenance(lang)]
    return "\n\n".join(parts) + "\n"


def chapter_link(layout: Layout, notebook: str, lang: Lang) -> str:
    """A link that names its chapter, so that a page's contents can show the name."""
    path = layout.notebooks / f"{notebook}.ipynb"
    target = f"/notebooks/{notebook}"
    cells = prose.read(path)["cells"] if path.is_file() else []
    for cell in cells:
        if prose.language(cell) == lang:
            title = re.search(r"^# (.+)$", prose.source(cell), re.M)
            if title:
                return f"{{doc}}`{title[1].strip()} <{target}>`"
    return f"{{doc}}`{target}`"


def data_link(name: str, words: str) -> str:
    """A link to a table of the site's data folder, which both languages share."""
    return f'<a href="../../../data/{name}.csv" download>{words}</a>'


def experiments(lang: Lang) -> str:
    """Every published experiment: seeds, rows, seconds, commit, its table."""
    head = [label("book.experiment", lang), label("book.seeds", lang)]
    head += [label(f"book.{key}", lang) for key in ("rows", "cpu_seconds", "commit")]
    lines = []
    for name in published.names():
        frame = published.load(name)
        facts = frame.attrs
        seeds = frame["seed"].nunique() if "seed" in frame else 0
        seconds = facts.get("seconds")
        lines.append(
            [
                data_link(name, f"{name}.csv"),
                str(seeds or "–"),
                f"{len(frame):,}",
                "–" if seconds is None else f"{seconds:,.0f}",
                f"`{str(facts.get('commit', ''))[:7]}`",
            ]
        )
    title = label("book.experiments_title", lang)
    return f"(metrics-experiments)=\n## {title}\n\n{markdown.table(head, lines)}"


SEED_ROWS = ("accuracy", "mean_reward", "kl_reference")


def seed_table(lang: Lang) -> str:
    """The `seed` recipe's three published rows, as this library reproduces them."""
    fact = published.load("seed_table").set_index("fact")["value"]
    head = [label(f"seed.{key}", lang) for key in ("row", "before", "after")]
    lines = []
    names = ("row_accuracy", "row_reward", "row_kl")
    for name, key in zip(names, SEED_ROWS, strict=True):
        values = [f"{fact[f'{side}.{key}']:.4f}" for side in ("untrained", "trained")]
        lines.append([label(f"seed.{name}", lang), *values])
    title = label("book.seed_title", lang)
    return f"(metrics-seed)=\n## {title}\n\n{markdown.table(head, lines)}"


def _times(layout: Layout, notebooks: list[str], lang: Lang) -> str:
    """How long each page ran in this language, where it is known."""
    head = [label("book.chapter", lang), label("book.run_time", lang)]
    lines = []
    for name in notebooks:
        took = around.seconds(layout, name, lang) or "–"
        lines.append([f"{{doc}}`/notebooks/{name}`", took])
    title = label("book.times_title", lang)
    return f"(metrics-times)=\n## {title}\n\n{markdown.table(head, lines)}"


def _table(rows: list[Row], lang: Lang) -> str:
    head = [label(f"book.{name}", lang) for name in COLUMNS]
    return markdown.table(head, [_cells(row, lang) for row in rows])


def _cells(row: Row, lang: Lang) -> list[str]:
    entry = row.record
    unit = f" {_plain(unit_words(entry.unit, lang))}" if entry.unit else ""
    interval = ""
    if entry.low is not None and entry.high is not None:
        interval = f"[{_digits(entry.low)}, {_digits(entry.high)}]"
    if row.drift is None:
        drift = label("book.new", lang)
    else:
        drift = "0" if abs(row.drift) < 1e-12 else f"{row.drift:+.2g}"
    if is_time(entry):
        interval = interval or "–"
    paper = (
        "" if entry.paper is None else f"{_digits(entry.paper)} {_plain(entry.source)}"
    )
    return [
        metric_words(entry.name, lang),
        f"{_digits(entry.value)}{unit}",
        interval,
        str(entry.seeds),
        paper,
        drift.replace("-", "−"),
        f"{entry.tolerance:g}",
    ]


def _plain(text: str) -> str:
    """Text of a record in a cell: no tag, no new cell, no new line."""
    return escape(" ".join(text.split())).replace("|", "&#124;")


def metric_words(name: str, lang: Lang) -> str:
    """What a metric is called: the label `metrics.<name>`, with its code name.

    Raises ``DapoError`` where the label table lacks it.
    """
    if f"metrics.{name}" not in table():
        raise DapoError(f"labels/metrics.yml: no words for the metric {name!r}")
    return f"{label(f'metrics.{name}', lang)} (`{name}`)".replace(
        " (", " (" if lang == "en" else "（"
    ).replace("`)", "`)" if lang == "en" else "`）")


def unit_words(unit: str, lang: Lang) -> str:
    """A unit in the reader's language; a symbol stays as it is."""
    key = f"metrics.unit_{unit}"
    return label(key, lang) if key in table() else unit


def _provenance(lang: Lang) -> str:
    facts = provenance()
    versions = ", ".join(f"{k} {v}" for k, v in sorted(facts["versions"].items()))
    lines = [
        "(metrics-provenance)=",
        f"## {label('book.provenance', lang)}",
        "",
        f"* {label('book.commit', lang)}: `{facts['commit'][:12]}`",
        f"* {label('book.code', lang)}: `{facts['code'][:16]}`",
        f"* {label('book.versions', lang)}: {versions}",
    ]
    return "\n".join(lines).replace(": ", "：" if lang == "zh" else ": ")


def _digits(value: float) -> str:
    text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return text.replace("-", "−")
