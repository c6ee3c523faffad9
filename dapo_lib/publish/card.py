"""The picture that a shared link shows: title and the four mechanisms, per language.

Drawn at build by the library's own curves. Left out: results.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from dapo_lib import diagrams, plots
from dapo_lib.labels import Lang, label

INCHES, DPI = (12.0, 6.3), 100  # 1200 x 630, what the networks ask for


def draw(lang: Lang) -> Figure:
    """The card as a figure. Raises ``ValueError`` on another language.

    >>> len(draw("en").axes)
    4
    """
    plots.style(lang)
    fig = Figure(figsize=INCHES, dpi=DPI, facecolor=plots.PAPER, layout="none")
    plots.FigureCanvasAgg(fig)
    title = {"fontsize": 46, "color": plots.INK, "va": "top"}
    fig.text(0.06, 0.90, label("book.card_title", lang), **title)
    line = {"fontsize": 22, "color": plots.MUTED, "va": "top", "linespacing": 1.5}
    fig.text(0.06, 0.73, label("book.card_line", lang), **line)
    for i, (number, (x, without, with_it)) in enumerate(diagrams.panels().items()):
        ax = fig.add_axes((0.06 + 0.2275 * i, 0.14, 0.195, 0.26))
        ax.plot(x, without, color=plots.MUTED, ls="--", lw=2.5)
        ax.plot(x, with_it, color=diagrams.COLOURS[number], lw=4)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        name = label(f"start.mechanism_{number}", lang)
        ax.set_title(name, color=diagrams.COLOURS[number], fontsize=18, pad=10)
    return fig


def write(path: Path, lang: Lang) -> None:
    """Write the card of a language as a PNG; the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(lang).savefig(path, dpi=DPI, metadata={"Software": None})
