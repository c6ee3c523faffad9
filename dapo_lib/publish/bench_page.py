"""The bench page of each language: published ratios as tables, the scaling plot.

Left out: the page's prose, which includes what is written here (book/*/bench.md), and
measuring, which is the bench's (benchmarks/).
"""

from __future__ import annotations

import re

import pandas as pd

from dapo_lib import plots
from dapo_lib.experiments import published
from dapo_lib.files import write_bytes
from dapo_lib.labels import Lang, label
from dapo_lib.publish.layout import LANGS, Layout
from dapo_lib.publish.markdown import table

PARTS = ("sampling", "training")
MEMORY_GOAL = 1.3


def write(layout: Layout) -> None:
    """Write `_build/generated/bench-*` from the published table."""
    frame = published.load("bench")
    for lang in LANGS:
        for name, text in {**tables(frame, lang), **scale(frame, lang)}.items():
            dot = "" if name.endswith(".svg") else f".{lang}.md"
            path = layout.generated / f"bench-{name.format(lang=lang)}{dot}"
            write_bytes(path, f"{text}\n".encode())


def tables(frame: pd.DataFrame, lang: Lang) -> dict[str, str]:
    """The page's tables and sentences, by the name of their file."""
    return {
        "peers": peers(frame, lang),
        "floor": floor(frame, lang),
        "goals": goals(frame, lang),
        "skip": skip(frame, lang),
        "made": made(frame, lang),
    }


def peers(frame: pd.DataFrame, lang: Lang) -> str:
    """TRL and plain torch over ours."""
    head = [words(f"col_{c}", lang) for c in ("work", "trl", "plain")]
    lines = []
    for name, part in works(frame):
        rows = {r.peer.split()[0]: r for r in part[part.part == "cycle"].itertuples()}
        trl, plain = rows.get("TRL"), rows["plain"]
        lengths = said(plain.lengths, lang)
        name = title(name.removesuffix(" full"), lang)
        asked = "–" if trl is None else goal(trl, lang)
        cells = [f"{name}<br>{lengths}", asked, ratio(plain, "ratio_peer_ours")]
        lines.append(cells)
    return table(head, lines, numbers=True)


def floor(frame: pd.DataFrame, lang: Lang) -> str:
    """Ours over matrix products of the same shapes, sampling and training."""
    head = [words(f"col_{c}", lang) for c in ("work", *PARTS)]
    lines = []
    for name, part in works(frame):
        rows = (part[part.part == p].iloc[0] for p in PARTS)
        lines.append([title(name, lang), *(goal(row, lang) for row in rows)])
    return table(head, lines, numbers=True)


def goals(frame: pd.DataFrame, lang: Lang) -> str:
    """How many goals are met, and every one that is not."""
    rows = [r for r in frame.itertuples() if not pd.isna(r.goal)]
    missed = [r for r in rows if not met(r)]
    said = words("goals", lang).format(met=len(rows) - len(missed), all=len(rows))
    if not missed:
        return said
    lines = [
        words("missed", lang).format(
            work=title(r.work, lang),
            part=words(f"part_{r.part}", lang),
            value=f"{value(r):.2f}",
            goal=r.goal,
        )
        for r in missed
    ]
    listed = "\n".join(f"* {line}" for line in lines)
    space = " " if lang == "en" else ""
    return f"{said}{space}{words('missed_title', lang)}\n\n{listed}"


def skip(frame: pd.DataFrame, lang: Lang) -> str:
    """What leaving silent groups out saves."""
    row = frame[frame.part == "skip"].iloc[0]
    digits, power = f"{row.gradient_gap:.0e}".split("e")
    gap = f"{digits} × 10<sup>{int(power)}</sup>".replace("-", "−")
    said = ratio(row, "ratio_peer_ours")
    return words("skip", lang).format(ratio=said, gap=gap)


def made(frame: pd.DataFrame, lang: Lang) -> str:
    """Where the numbers come from."""
    facts = frame.attrs
    comma = ", " if lang == "en" else "、"
    return words("made", lang).format(
        commit=f"`{facts['commit'][:7]}`",
        minutes=f"{facts['seconds'] / 60:.0f}",
        packages=comma.join(p.replace("==", " ") for p in facts["packages"]),
    )


def scale(frame: pd.DataFrame, lang: Lang) -> dict[str, str]:
    """The scaling plot as two drawings, and the text that shows them."""
    by = {axis: frame[frame.part == axis] for axis in ("responses", "length")}
    count, length = map(int, re.findall(r"\d+", by["length"].peer.iloc[0]))
    where = words("scale_reference", lang).format(responses=count, length=length)
    ends = {f"{end}": f"{at:.1f}" for end, at in extremes(by).items()}
    pairs = int(by["length"].pairs.iloc[0])
    caption = words("scale_caption", lang).format(reference=where, pairs=pairs)
    alt = words("scale_alt", lang).format(**ends)
    drawn = plots.bundle(draw(by, lang), alt=alt)[plots.FIGURE_MIME]
    images = "\n".join(
        f"```{{image}} /_build/generated/bench-scale.{lang}.{theme}.svg\n"
        f":class: only-{theme}\n:alt: {alt}\n```"
        for theme in ("light", "dark")
    )
    peak = memory(frame.dropna(subset="memory"), lang)
    texts = {f"scale.{{lang}}.{t}.svg": drawn[t] for t in ("light", "dark")}
    figure = f":::{{container}} dapo-figure\n{images}\n:::"
    return texts | {"scale": f"{figure}\n\n{caption}\n\n{peak}"}


def memory(points: pd.DataFrame, lang: Lang) -> str:
    """Peak memory over the cache's own size."""
    largest = (points.responses * points.length).idxmax()
    found = {"low": points.memory.min(), "high": points.memory.max()}
    found["last"] = points.memory[largest]
    said = {name: f"{x:.2f}" for name, x in found.items()}
    return words("memory", lang).format(**said, points=len(points), goal=MEMORY_GOAL)


def extremes(by: dict[str, pd.DataFrame]) -> dict[str, float]:
    """First and last relative costs of both axes, for the words about the plot."""
    count, length = by["responses"], by["length"]
    return {
        "first": count.ratio_ours_floor.iloc[0],
        "last": count.ratio_ours_floor.iloc[-1],
        "short": length.ratio_ours_floor.iloc[0],
        "long": length.ratio_ours_floor.iloc[-1],
        "trained": length.training.iloc[-1],
    }


def draw(by: dict[str, pd.DataFrame], lang: Lang):
    """Cost per token against responses and against length, sampling and training."""
    fig, axes = plots.figure(lang, 1, 2, sharey=True, size=(6.4, 3.4))
    columns = (
        ("sampling", "ratio_ours_floor", "low", "high"),
        ("training", "training", "training_low", "training_high"),
    )
    for ax, (axis, points) in zip(axes, by.items(), strict=True):
        for i, (name, *found) in enumerate(columns):
            middle, low, high = (points[c].to_numpy() for c in found)
            ax.errorbar(
                points[axis],
                middle,
                [middle - low, high - middle],
                color=plots.COLOURS[i],
                ls=plots.LINES[i],
                marker=plots.MARKERS[i],
                label=words(f"scale_{name}", lang),
            )
        ax.set_xscale("log", base=2)
        ax.set_xticks(points[axis], [f"{int(x):,}" for x in points[axis]], rotation=45)
        ax.set_xlabel(words(f"scale_{axis}", lang))
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel(words("scale_cost", lang))
    axes[1].legend()
    return fig


def works(frame: pd.DataFrame):
    """Names and rows of the works, in the bench's order; the scale is none."""
    kept = frame[frame.part.isin(["cycle", *PARTS])]
    return kept.groupby("work", sort=False)


def title(name: str, lang: Lang) -> str:
    """``A 64x4 G8 L48 full`` as a reader's words."""
    kind, size, group, limit, *_ = name.split()
    full = f", {words('full', lang).format(limit=limit[1:])}" if "full" in name else ""
    size = size.replace("x", "×")
    start = f"{words(f'work_{kind}', lang)} {size}, G {group[1:]}, L {limit[1:]}{full}"
    return start if lang == "en" else start.replace(", ", "，")


def said(lengths: str, lang: Lang) -> str:
    """The distribution of lengths."""
    mean, limit, cut = re.findall(r"[\d.]+", lengths)
    kind = lengths.split(":")[0]
    return words(kind, lang).format(mean=mean, limit=limit, cut=f"{cut}%")


def goal(row, lang: Lang) -> str:
    """The ratio that the row is about, its goal, and whether it is met."""
    at_least = row.part == "cycle"
    said = ratio(row, "ratio_peer_ours" if at_least else "ratio_ours_floor")
    if pd.isna(row.goal):
        return said
    key = "at_least" if at_least else "at_most"
    mark = "✓" if met(row) else "✗"
    return f"{said}<br>{words(key, lang).format(goal=row.goal)} {mark}"


def value(row) -> float:
    """The ratio that the row's goal is about."""
    return row.ratio_peer_ours if row.part == "cycle" else row.ratio_ours_floor


def met(row) -> bool:
    """Whether the median meets the goal."""
    return value(row) >= row.goal if row.part == "cycle" else value(row) <= row.goal


def ratio(row, name: str) -> str:
    """A median and the range of the paired ratios."""
    return f"{getattr(row, name):.2f} [{row.low:.2f}, {row.high:.2f}]"


def words(key: str, lang: Lang) -> str:
    """Words of labels/bench.yml."""
    return label(f"bench.{key}", lang)
