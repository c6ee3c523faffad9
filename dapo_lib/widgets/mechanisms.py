"""Toggle the mechanisms over real runs with bands (chapter 7).

Left out: combinations that were not run. The widget shows the nearest arm and says so.
"""

from __future__ import annotations

import traitlets

from dapo_lib.errors import expect
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget, compact, in_language, need


class MechanismToggles(DapoWidget):
    """Curves of the arm with the chosen mechanisms, beside another arm.

    `runs` is {"seeds": n, "mechanisms": [{"key", "label"}], "arms": [{"name", "label",
    "on": [keys]}], "metrics": [{"key", "label", "percent"?}], "x_axes": [{"key",
    "label"}], "data": {arm: {"x": {axis: [..]}, metric: {"mean", "low", "high"}}}},
    labels {en, zh}. Raises ``BadInput`` on data that do not fit together.
    """

    name = "mechanisms"
    on = traitlets.List(traitlets.Unicode()).tag(sync=True)
    metric = traitlets.Unicode("").tag(sync=True)
    x_axis = traitlets.Unicode("").tag(sync=True)
    compare = traitlets.Unicode("").tag(sync=True)
    runs = traitlets.Dict().tag(sync=True)

    def __init__(self, lang: Lang = "en", *, runs: dict, **traits: object) -> None:
        _check(runs)
        first = {
            "metric": runs["metrics"][0]["key"],
            "x_axis": runs["x_axes"][0]["key"],
            "compare": runs["arms"][0]["name"],
            "on": runs["arms"][-1]["on"],
        }
        super().__init__(lang, runs=compact(runs), **(first | traits))

    def describe(self, lang: Lang | None = None) -> str:
        """The last value of the first and the last arm, in a sentence."""
        lang = lang or self.lang
        metric = self.runs["metrics"][0]
        first, last = self.runs["arms"][0], self.runs["arms"][-1]

        def end(arm: dict) -> str:
            value = self.runs["data"][arm["name"]][metric["key"]]["mean"][-1]
            return f"{100 * value:.1f}%" if metric.get("percent") else f"{value:.3g}"

        return self.words(
            "describe",
            lang,
            metric=in_language(metric["label"], lang),
            first=in_language(first["label"], lang),
            last=in_language(last["label"], lang),
            a=end(first),
            b=end(last),
            seeds=self.runs["seeds"],
        )


def _check(runs: dict) -> None:
    parts = ("mechanisms", "arms", "metrics", "x_axes")
    need(runs, "runs", *parts, "data", "seeds")
    for part in parts:
        expect(len(runs[part]) > 0, f"runs.{part}", "nothing", "at least one")
    keys = {m["key"] for m in runs["mechanisms"]}
    for arm in runs["arms"]:
        need(arm, "runs.arms", "name", "label", "on")
        unknown = sorted(set(arm["on"]) - keys)
        expect(not unknown, f"runs.arms.{arm['name']}", unknown, f"of {sorted(keys)}")
        need(runs["data"], "runs.data", arm["name"])
        data = runs["data"][arm["name"]]
        where = f"runs.data.{arm['name']}"
        need(data, where, "x", *(m["key"] for m in runs["metrics"]))
        need(data["x"], f"{where}.x", *(a["key"] for a in runs["x_axes"]))
        _same_lengths(data, runs, where)


def _same_lengths(data: dict, runs: dict, where: str) -> None:
    lengths = {len(data["x"][a["key"]]) for a in runs["x_axes"]}
    for metric in runs["metrics"]:
        need(data[metric["key"]], f"{where}.{metric['key']}", "mean")
        lengths |= {len(curve) for curve in data[metric["key"]].values()}
    expect(len(lengths) == 1, where, f"lengths {sorted(lengths)}", "one length")
