"""Data for the test pages, made by formula: shapes as real experiments have them.

Not results: no test compares these numbers with anything but themselves.
"""

from __future__ import annotations

import math

from dapo_lib import widgets


def wave(a: float, b: float, n: int = 30) -> list[float]:
    return [a + b * (1 - math.exp(-i / 8)) + 0.01 * math.sin(i * 1.7) for i in range(n)]


def both(en: str, zh: str) -> dict[str, str]:
    return {"en": en, "zh": zh}


def grid(n_metrics: int = 3, steps: int = 60) -> dict:
    lows, highs = [0.1, 0.2, 0.28, 0.4, 0.6], [0.1, 0.2, 0.28, 0.5, 0.8]
    labels = [
        both("Accuracy", "准确率"),
        both("Entropy (nats)", "熵（nat）"),
        both("Length (tokens)", "长度（token）"),
    ]
    metrics = [
        {
            "label": labels[k],
            "values": [
                [
                    None if (i, j) == (4, 4) else wave(k + l, h * (k - 1.2), steps)
                    for j, h in enumerate(highs)
                ]
                for i, l in enumerate(lows)
            ],
        }
        for k in range(n_metrics)
    ]
    return {
        "eps_low": lows,
        "eps_high": highs,
        "x": list(range(steps)),
        "x_label": both("update", "更新"),
        "metrics": metrics,
    }


def make(name: str, lang: str = "en"):
    """A widget of each kind, with data where it takes some."""
    makers = {
        "epsilon": lambda: widgets.EpsilonExplorer(lang, grid=grid()),
        "advantage": lambda: widgets.AdvantageExplorer(lang),
        "group": lambda: widgets.GroupExplorer(lang),
        "reduction": lambda: widgets.ReductionExplorer(lang),
        "overlong": lambda: widgets.OverlongExplorer(lang),
    }
    return makers[name]()


NAMES = ("epsilon",)
