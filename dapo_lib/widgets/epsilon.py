"""ε_low × ε_high over objective and gradient, with a grid of real runs (chapter 3).

Left out: interpolation. The sliders snap to runs that exist and say so.
"""

from __future__ import annotations

import math

import traitlets

from dapo_lib.errors import expect
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget, compact, need


class EpsilonExplorer(DapoWidget):
    """Clip bounds against objective, gradient, and the room of a rare token.

    `grid` is empty or {"eps_low": [..], "eps_high": [..], "x": [..],
    "x_label": {en, zh}, "metrics": [{"label": {en, zh}, "values": V}]}, where
    V[i][j] is the curve over x of a run, or None where there was none.
    Raises ``BadInput`` on a grid of another shape. Source: paper Eq 8, 10, section 3.1.

    >>> EpsilonExplorer(eps_high=0.28).describe("en")[:41]
    'With ε_low = 0.20 and ε_high = 0.28, a to'
    """

    name = "epsilon"
    eps_low = traitlets.Float(0.2, min=0.0, max=1.0).tag(sync=True)
    eps_high = traitlets.Float(0.28, min=0.0, max=1.0).tag(sync=True)
    ratio = traitlets.Float(1.4, min=0.0, max=2.0).tag(sync=True)
    p_rare = traitlets.Float(0.01, min=0.001, max=0.1).tag(sync=True)
    grid = traitlets.Dict().tag(sync=True)

    @traitlets.validate("grid")
    def _grid(self, proposal: dict) -> dict:
        grid = proposal["value"]
        if not grid:
            return {}
        need(grid, "grid", "eps_low", "eps_high", "x", "x_label", "metrics")
        n, m, steps = len(grid["eps_low"]), len(grid["eps_high"]), len(grid["x"])
        for metric in grid["metrics"]:
            need(metric, "grid.metrics", "label", "values")
            rows = metric["values"]
            good = len(rows) == n and all(len(row) == m for row in rows)
            curves = [run for row in rows for run in row if run is not None]
            good = good and all(len(run) == steps for run in curves) and bool(curves)
            expect(good, "grid.values", "another shape", f"{n} x {m} runs of {steps}")
        return compact(grid)

    def describe(self, lang: Lang | None = None) -> str:
        """What the two bounds do to a rare and to a common token, in a sentence."""
        growth = math.log1p(self.eps_high)
        rounds = math.ceil(math.log(0.5 / self.p_rare) / growth) if growth else math.inf
        return self.words(
            "describe",
            lang,
            low=f"{self.eps_low:.2f}",
            high=f"{self.eps_high:.2f}",
            p=f"{self.p_rare:g}",
            q=f"{self.p_rare * (1 + self.eps_high):.3g}",
            n=rounds if growth else "∞",
            limit=f"{1 / (1 + self.eps_high):.3f}",
        )
