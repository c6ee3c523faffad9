"""Remove a leak from the seed recipe's features and watch the accuracy (chapter 9).

Left out: training in the browser. Every set of features was trained beforehand.
"""

from __future__ import annotations

import math

import traitlets

from dapo_lib.errors import expect
from dapo_lib.experiments.statistics import mean_interval
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget, compact, need


class LeakRemover(DapoWidget):
    """Accuracies per seed for each set of removed leaks: dots, mean, interval.

    `runs` is {"leaks": [{"key", "label": {en, zh}}], "sets": [{"removed": [keys],
    "values": [accuracy a seed]}], "chance": .., "leak_only": ..}; mean and 95 %
    interval are computed here. Raises ``BadInput`` on data that do not fit together.
    """

    name = "leak"
    removed = traitlets.List(traitlets.Unicode()).tag(sync=True)
    runs = traitlets.Dict().tag(sync=True)

    def __init__(self, lang: Lang = "en", *, runs: dict, **traits: object) -> None:
        need(runs, "runs", "leaks", "sets", "chance", "leak_only")
        known = {leak["key"] for leak in runs["leaks"]}
        sets = [_with_interval(one, known) for one in runs["sets"]]
        expect(len(sets) > 0, "runs.sets", "nothing", "at least one trained set")
        super().__init__(lang, runs=compact({**runs, "sets": sets}), **traits)

    def describe(self, lang: Lang | None = None) -> str:
        """Accuracy with all features and with most leaks removed, in a sentence."""
        sets = sorted(self.runs["sets"], key=lambda one: len(one["removed"]))
        return self.words(
            "describe",
            lang,
            with_leaks=f"{sets[0]['mean']:.3f}",
            without=f"{sets[-1]['mean']:.3f}",
            n=len(sets[-1]["values"]),
            chance=f"{self.runs['chance']:.3f}",
            leak=f"{self.runs['leak_only']:.3f}",
        )


def _with_interval(one: dict, known: set[str]) -> dict:
    need(one, "runs.sets", "removed", "values")
    unknown = sorted(set(one["removed"]) - known)
    expect(not unknown, "runs.sets.removed", unknown, f"of {sorted(known)}")
    interval = mean_interval(one["values"])
    finite = math.isfinite(interval.low)
    bounds = {"low": interval.low, "high": interval.high} if finite else {}
    values = list(one["values"])
    removed = list(one["removed"])
    return {"removed": removed, "values": values, "mean": interval.mean} | bounds
