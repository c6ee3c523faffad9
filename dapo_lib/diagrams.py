"""The four mechanisms on one page: the loop, and what each of them changes in it.

Drawn by matplotlib in the reader's language, so that fonts and dark mode are those of
every other figure; the four curves are computed by the library's own functions.
Left out: results. Nothing here was trained.
"""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from dapo_lib import plots
from dapo_lib.candidate.exact import dead_group_probability
from dapo_lib.labels import Lang, label
from dapo_lib.objective import clipped_surrogate, divisor
from dapo_lib.overlong import soft_overlong

L_MAX, L_CACHE, GROUP_SIZE = 24, 8, 16
HALF = np.array([0.4, 0.31])  # of a box, in the loop's own units
GAP = np.array([0.025, 0.05])  # between a box and an arrow
# place of a box in the loop (column, row) and the mechanisms that act there; the
# filter reads correctness, before the reward is shaped by length
BOXES = {
    "sample": (0, 1, ""),
    "verify": (1, 1, ""),
    "filter": (2, 1, "2"),
    "reward": (2, 0, "4"),
    "advantage": (1, 0, ""),
    "update": (0, 0, "13"),
}
COLOURS = {
    "1": plots.BLUE,
    "2": plots.ORANGE,
    "3": plots.GREEN,
    "4": plots.PURPLE,
}
Lines = tuple[np.ndarray, np.ndarray, np.ndarray]


def mechanisms(lang: Lang) -> Figure:
    """The training loop with four numbered places, and a panel for each of them.

    Grey dashes are without the mechanism, colour is with it. Raises ``ValueError`` on
    another language.

    >>> len(mechanisms("en").axes)
    5
    """
    plots.style(lang)
    fig = Figure(figsize=(6.4, 7.6), layout="constrained")
    plots.FigureCanvasAgg(fig)
    fig.dapo_lang = lang
    fig.get_layout_engine().set(h_pad=0.09, w_pad=0.09)
    grid = fig.add_gridspec(3, 2, height_ratios=[1.15, 1, 1])
    draw_loop(fig.add_subplot(grid[0, :]), lang)
    for number, curves in panels().items():
        row, column = divmod(int(number) - 1, 2)
        draw_panel(fig.add_subplot(grid[row + 1, column]), number, curves, lang)
    return fig


def panels() -> dict[str, Lines]:
    """x, the curve without and the curve with each mechanism, by its number.

    1 objective of a good token against its ratio; 2 share of groups with signal against
    the pass rate; 3 weight of one token, relative to the mean, against its response's
    length; 4 reward of a right answer against its length, cut at L_max.

    >>> x, without, with_it = panels()["1"]
    >>> round(float(without.max()), 2), round(float(with_it.max()), 2)
    (1.2, 1.28)
    """
    ratio, one = torch.linspace(0.6, 1.6, 101), torch.ones(101)
    clip = [clipped_surrogate(ratio, one, 0.2, high).numpy() for high in (0.2, 0.28)]
    rate = torch.linspace(0, 1, 101)
    alive = 1 - dead_group_probability(rate, GROUP_SIZE).numpy()
    length = torch.arange(1, 31)
    mask = torch.arange(30) < length[:, None]
    weight = [1 / divisor(mask, how).numpy() for how in ("seq_mean", "token_mean")]
    # shares of the batch's tokens that add up to one; here relative to an equal share
    weight = [w * float(mask.sum()) for w in weight]
    cut = torch.where(length > L_MAX, -1.0, 1.0).double()
    soft = cut + soft_overlong(length, l_max=L_MAX, l_cache=L_CACHE)
    return {
        "1": (ratio.numpy(), *clip),
        "2": (rate.numpy(), alive, np.ones(101)),
        "3": (length.numpy(), *weight),
        "4": (length.numpy(), cut.numpy(), soft.numpy()),
    }


def draw_panel(ax: Axes, number: str, curves: Lines, lang: Lang) -> None:
    """One mechanism's two curves with its number, name and axes."""
    x, without, with_it = curves
    ax.plot(x, without, color=plots.MUTED, ls="--", label=label("start.without", lang))
    ax.plot(x, with_it, color=COLOURS[number], label=label("start.with", lang))
    name = label(f"start.mechanism_{number}", lang)
    ax.set_title(f"{number}  {name}", color=COLOURS[number])
    plots.axis_labels(ax, f"start.x_{number}", f"start.y_{number}", lang)
    ax.legend(fontsize=10)


def draw_loop(ax: Axes, lang: Lang) -> None:
    """The six stations of one iteration, clockwise, with the mechanisms' numbers."""
    ax.set(xlim=(-0.55, 2.55), ylim=(-0.4, 1.5))
    ax.set_axis_off()
    places = [place[:2] for place in BOXES.values()]
    for here, there in zip(places, places[1:] + places[:1], strict=True):
        arrow(ax, here, there)
    for name, (x, y, numbers) in BOXES.items():
        ax.add_patch(station(x, y))
        words = label(f"start.box_{name}", lang)
        ax.text(x, y, words, ha="center", va="center", linespacing=1.3)
        for place, number in enumerate(numbers):
            badge(ax, x - HALF[0] + 0.03 + 0.15 * place, y + HALF[1] + 0.03, number)


def station(x: float, y: float) -> FancyBboxPatch:
    """A box of the loop around its middle; all of them are alike."""
    (across, up), look = HALF, {"fc": plots.PAPER, "ec": plots.MUTED, "lw": 1.2}
    corner = "round,pad=0,rounding_size=0.07"
    place, shape = (x - across, y - up), (2 * across, 2 * up)
    return FancyBboxPatch(place, *shape, boxstyle=corner, mutation_aspect=1.7, **look)


def arrow(ax: Axes, here: tuple[int, int], there: tuple[int, int]) -> None:
    """From the edge of one box to the edge of the next."""
    way = np.subtract(there, here)
    edge, gap = way * HALF, way * GAP
    style = {"arrowstyle": "-|>", "color": plots.MUTED, "lw": 1.6}
    ends = {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
    start, end = here + edge + gap, there - edge - gap
    ax.annotate("", xy=end, xytext=start, arrowprops={**style, **ends})


def badge(ax: Axes, x: float, y: float, number: str) -> None:
    """The number of a mechanism on its colour."""
    round_box = {"boxstyle": "circle,pad=0.25", "fc": COLOURS[number], "ec": "none"}
    style = {"ha": "center", "va": "center", "fontsize": 11}
    ax.text(x, y, number, color=plots.PAPER, bbox=round_box, **style)
