"""One look for every figure: English and Chinese, light and dark, colour-blind safe.

`figure(lang)` opens a figure, the helpers draw with intervals, `show` displays it: a
PNG for Jupyter, and a light and a dark SVG of the same drawing for the book.
Left out: anything that is computed. Data come from experiments/.
"""

from __future__ import annotations

import base64
import io
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dapo_lib.errors import expect
from dapo_lib.experiments.statistics import mean_interval
from dapo_lib.labels import LANGS, Lang, label

FIGURE_MIME = "application/vnd.dapo.figure+json"

# light -> dark. Okabe-Ito hues, lightened on dark ground; a drawing uses the left side
INK, MUTED, GRID = "#1f2328", "#59636e", "#d1d9e0"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#007e5e", "#b0568f"
GOLD, SKY, PAPER = "#b07d00", "#2b8cbe", "#ffffff"
SYSTEM_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
)
DARK = {
    INK: "#e6edf3",
    MUTED: "#9ba6b2",
    GRID: "#3d444d",
    BLUE: "#58b0e8",
    ORANGE: "#ff8f4a",
    GREEN: "#35d0a5",
    PURPLE: "#e79bcb",
    GOLD: "#f0c04a",
    SKY: "#8fd3f4",
    PAPER: "#14181e",
}
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, GOLD, SKY)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")

STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 3.8),
    "figure.constrained_layout.use": True,
    "font.size": 12.0,
    "axes.titlesize": 12.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 11.0,
    "lines.linewidth": 2.0,
    "patch.edgecolor": INK,
    "hatch.color": INK,
    "axes.unicode_minus": True,
    "svg.fonttype": "path",  # an SVG in an <img> cannot load a font
    "svg.hashsalt": "dapo",
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
}


def figure(lang: Lang, rows: int = 1, columns: int = 1, **options: Any):
    """A figure and its axes in the book's style, with the fonts of `lang`.

    `options` go to ``Figure.subplots`` (sharex, ...) but for `size`, (width, height) in
    inches; 6.4 wide fills the column. Raises ``ValueError`` on another language.

    >>> fig, ax = figure("en")
    >>> ax.get_facecolor()
    (0.0, 0.0, 0.0, 0.0)
    """
    size = options.pop("size", (6.4, 3.8 * max(1.0, 0.75 * rows)))
    style(lang)
    fig = Figure(figsize=size)
    FigureCanvasAgg(fig)
    fig.dapo_lang = lang
    return fig, fig.subplots(rows, columns, **options)


def style(lang: Lang) -> None:
    """Set matplotlib up for `lang`; it stays so, since a legend comes later."""
    expect(lang in LANGS, "lang", repr(lang), "en or zh")
    families = ["DejaVu Sans"] if lang == "en" else [_chinese_font(), "DejaVu Sans"]
    mpl.rcParams.update({**STYLE, "font.family": families})


def curves(
    ax: Axes,
    x: Sequence[float],
    arms: Mapping[str, Any],
    *,
    each_seed: bool = False,
) -> None:
    """One line an arm: the mean over seeds, with a band for its 95 % interval.

    Shape: x [T], every arm [seeds, T]; keys are the words of the legend. `each_seed`
    also draws every run as a thin line. Raises ``ValueError`` on other shapes.

    >>> fig, ax = figure("en")
    >>> curves(ax, [0, 1], {"DAPO": [[0.1, 0.5], [0.3, 0.7]]})
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    for i, (name, runs) in enumerate(arms.items()):
        runs = np.asarray(runs, dtype=float)
        fine = runs.ndim == 2 and runs.shape[1] == len(x)
        expect(fine, name, runs.shape, f"[seeds, {len(x)}]")
        colour, line = COLOURS[i % 6], LINES[i % 6]
        band = [mean_interval(column) for column in runs.T]
        ax.plot(x, [b.mean for b in band], color=colour, ls=line, label=name)
        if len(runs) > 1:
            low, high = [b.low for b in band], [b.high for b in band]
            ax.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
        if each_seed:
            ax.plot(x, runs.T, color=colour, lw=0.6, alpha=0.5)


def bars(ax: Axes, arms: Mapping[str, Any]) -> None:
    """One horizontal bar an arm: the mean of its seeds with the 95 % interval.

    Shape: every arm [seeds] with two or more seeds; the first arm is on top.

    >>> fig, ax = figure("en")
    >>> bars(ax, {"GRPO": [0.1, 0.2, 0.3], "DAPO": [0.4, 0.5, 0.6]})
    >>> [round(float(p.get_width()), 2) for p in ax.patches]
    [0.2, 0.5]
    """
    for i, values in enumerate(arms.values()):
        band = mean_interval(values)
        error = [[band.mean - band.low], [band.high - band.mean]]
        ax.barh(i, band.mean, color=COLOURS[i % 6], height=0.62, alpha=0.85)
        ax.errorbar(band.mean, i, xerr=error, color=INK, capsize=4, lw=1.4)
    ax.set_yticks(range(len(arms)), list(arms))
    ax.invert_yaxis()
    ax.grid(False, axis="y")


def contrasts(ax: Axes, arms: Mapping[str, Any]) -> None:
    """Dots with intervals of differences about zero, one row an arm.

    Shape: every arm [seeds] of paired differences; the first arm is on top.
    """
    ax.axvline(0, color=MUTED, lw=1, ls="--")
    for i, values in enumerate(arms.values()):
        band = mean_interval(values)
        error = [[band.mean - band.low], [band.high - band.mean]]
        style = {"color": COLOURS[i % 6], "capsize": 4, "lw": 1.6}
        ax.errorbar(band.mean, i, xerr=error, marker=MARKERS[i % 6], **style)
    ax.set_yticks(range(len(arms)), list(arms))
    ax.set_ylim(len(arms) - 0.5, -0.5)
    ax.grid(False, axis="y")


def axis_labels(ax: Axes, x: str, y: str, lang: Lang) -> None:
    """Name both axes with words from the label table (`topic.key`)."""
    ax.set_xlabel(label(x, lang))
    ax.set_ylabel(label(y, lang))


def show(fig: Figure, words: str = "", *, alt: str = "", caption: str = "") -> None:
    """Display a figure: PNG in Jupyter; two SVGs, alt text and caption in the book.

    `words` names labels: with "clip.hook", `clip.hook_alt` and `clip.hook_caption` are
    taken in the figure's language; or give `alt` (what is to be seen, in one or two
    sentences) and `caption` themselves. Raises ``ValueError`` where alt is no sentence.
    """
    from IPython.display import display

    if words:
        alt = label(f"{words}_alt", fig.dapo_lang)
        caption = label(f"{words}_caption", fig.dapo_lang)
    display(bundle(fig, alt=alt, caption=caption), raw=True)


def bundle(
    fig: Figure, *, alt: str, caption: str = "", lang: Lang | None = None
) -> dict[str, Any]:
    """The mime bundle that :func:`show` displays."""
    plain = bool(alt.strip()) and not re.search(r"\.(png|svg|pdf)\b|/\w+/", alt)
    expect(plain, "alt", repr(alt), "a sentence that says what is to be seen")
    lang = lang or getattr(fig, "dapo_lang", "en")
    style(lang)
    _ink_black(fig)
    light = _svg(fig)
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=120, facecolor=PAPER, metadata={})
    dark = re.sub(r"#[0-9a-f]{6}", lambda m: DARK.get(m[0], m[0]), light)
    drawing = {"light": light, "dark": dark, "alt": alt, "caption": caption}
    return {
        "image/png": base64.b64encode(png.getvalue()).decode(),
        "text/plain": alt,
        FIGURE_MIME: drawing,
    }


def _svg(fig: Figure) -> str:
    text = io.StringIO()
    metadata = {"Date": None, "Creator": None}
    fig.savefig(text, format="svg", transparent=True, metadata=metadata)
    svg = re.sub(r"<\?xml.*?\?>\s*<!DOCTYPE.*?>\s*", "", text.getvalue(), flags=re.S)
    return re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.S)


def _ink_black(fig: Figure) -> None:
    """Pure black has no place in an SVG's style, so dark mode could not find it."""
    for artist in fig.findobj():
        for name in ("color", "edgecolor", "facecolor"):
            getter = getattr(artist, f"get_{name}", None)
            setter = getattr(artist, f"set_{name}", None)
            if getter is None or setter is None:
                continue
            try:
                colour = mpl.colors.to_rgba(getter())
            except ValueError:  # several colours; ours are from the palette
                continue
            if colour[:3] == (0, 0, 0) and colour[3] > 0:
                setter((*mpl.colors.to_rgb(INK), colour[3]))


@cache
def _chinese_font() -> str:
    """Register the font that the build takes from npm; its family name.

    Away from the project (Colab, a wheel) a font of the system serves.
    """
    path = Path(os.environ.get("DAPO_FONT") or _built_font())
    if not path.exists():
        installed = {font.name for font in font_manager.fontManager.ttflist}
        known = [name for name in SYSTEM_FONTS if name in installed]
        if known:
            return known[0]
        warnings.warn(
            "no Chinese font yet: run `dapo book frontend` once in the project",
            stacklevel=2,
        )
        return "DejaVu Sans"
    font_manager.fontManager.addfont(path)
    return font_manager.FontProperties(fname=path).get_name()


def _built_font() -> Path:
    return Path(__file__).resolve().parents[1] / "_build/frontend/NotoSansSC.ttf"
