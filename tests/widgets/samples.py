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


def runs() -> dict:
    keys = ["clip_higher", "dynamic", "token", "overlong"]
    names = ["Clip-Higher", "dynamic sampling", "token-level loss", "soft overlong"]
    zh = ["Clip-Higher", "动态采样", "token 级损失", "超长软惩罚"]
    arms = [
        {"name": f"arm{n}", "label": both(f"first {n}", f"前 {n} 项"), "on": keys[:n]}
        for n in range(5)
    ]
    data = {}
    for n, arm in enumerate(arms):
        acc = wave(0.12, 0.6 + 0.05 * n)
        length = wave(5, 6 + n)
        data[arm["name"]] = {
            "x": {
                "updates": [16 * i for i in range(30)],
                "tokens": [5000.0 * i * (1 + 0.3 * n) for i in range(30)],
            },
            "accuracy": {
                "mean": acc,
                "low": [a - 0.05 for a in acc],
                "high": [a + 0.05 for a in acc],
            },
            "length": {"mean": length},
        }
    return {
        "seeds": 10,
        "mechanisms": [
            {"key": k, "label": both(e, z)}
            for k, e, z in zip(keys, names, zh, strict=True)
        ],
        "arms": arms,
        "metrics": [
            {"key": "accuracy", "label": both("Accuracy", "准确率"), "percent": True},
            {"key": "length", "label": both("Length (tokens)", "长度（token）")},
        ],
        "x_axes": [
            {"key": "updates", "label": both("updates", "更新次数")},
            {"key": "tokens", "label": both("tokens generated", "生成的 token")},
        ],
        "data": data,
    }


def leaks() -> dict:
    def seeds(centre: float) -> list[float]:
        return [centre + 0.02 * math.sin(3.1 * i) for i in range(20)]

    return {
        "leaks": [
            {"key": "integer", "label": both("“is an integer”", "“是整数”")},
            {"key": "self_check", "label": both("“self check”", "“自检”")},
        ],
        "sets": [
            {"removed": [], "values": seeds(0.77)},
            {"removed": ["integer"], "values": seeds(0.6)},
            {"removed": ["self_check"], "values": seeds(0.4)},
            {"removed": ["integer", "self_check"], "values": seeds(0.2)},
        ],
        "chance": 1 / 6,
        "leak_only": 0.8438,
    }


def traps() -> list[dict]:
    return [
        {
            "key": "from_data",
            "title": both("A fault from data", "来自数据的错误"),
            "symptom": both("Entropy falls.", "熵下降。"),
            "fix": both("Mend it.", "改好它。"),
            "right": 1.5,
            "wrong": "NaN",
            "curves": {
                "x": list(range(30)),
                "right": wave(1, 0.5),
                "wrong": [v if i < 20 else None for i, v in enumerate(wave(1, -0.5))],
                "x_label": both("update", "更新"),
                "y_label": both("Entropy (nats)", "熵（nat）"),
            },
        }
    ]


def make(name: str, lang: str = "en"):
    """A widget of each kind, with data where it takes some."""
    makers = {
        "epsilon": lambda: widgets.EpsilonExplorer(lang, grid=grid()),
        "config_form": lambda: widgets.ConfigForm(lang),
        "advantage": lambda: widgets.AdvantageExplorer(lang, penalty=[0, -0.5]),
        "leak": lambda: widgets.LeakRemover(lang, runs=leaks()),
        "mechanisms": lambda: widgets.MechanismToggles(lang, runs=runs()),
        "trap": lambda: widgets.TrapExplorer(lang, traps=traps()),
        "verifier": lambda: widgets.VerifierExplorer(lang),
        "group": lambda: widgets.GroupExplorer(lang),
        "reduction": lambda: widgets.ReductionExplorer(lang),
        "overlong": lambda: widgets.OverlongExplorer(
            lang, filtering=True, length=18000
        ),
    }
    return makers[name]()
