"""Pick a fault and see the curve bend (chapter 8).

Left out: faults whose curve needs training; those come as data, from real runs.
"""

from __future__ import annotations

import traitlets

from dapo_lib.errors import expect
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget, compact, in_language, need

BUILT_IN = (
    "max_negative",
    "mask_after_exp",
    "mean_of_means",
    "filter_shaped",
    "no_lower_clamp",
)


class TrapExplorer(DapoWidget):
    """A fault's curve beside the right one: five computed live, others from data.

    `traps` is a list of {"key", "title", "symptom", "fix", "right", "wrong", "curves":
    {"x", "right", "wrong", "x_label", "y_label"}} with texts {en, zh}. Raises
    ``BadInput`` on curves of unequal length or a key used twice.

    >>> TrapExplorer(trap="no_lower_clamp").describe("en")[:40]
    'The penalty without its lower clamp: Ver'
    """

    name = "trap"
    trap = traitlets.Unicode(BUILT_IN[0]).tag(sync=True)
    traps = traitlets.List(traitlets.Dict()).tag(sync=True)
    dose_max_negative = traitlets.Float(0.2, min=0.05, max=0.6).tag(sync=True)
    dose_mask_after_exp = traitlets.Float(100.0, min=0.0, max=200.0).tag(sync=True)
    dose_mean_of_means = traitlets.Float(32.0, min=1.0, max=64.0).tag(sync=True)
    dose_filter_shaped = traitlets.Float(4.0, min=1.0, max=10.0).tag(sync=True)
    dose_no_lower_clamp = traitlets.Float(4.0, min=1.0, max=20.0).tag(sync=True)

    @traitlets.validate("traps")
    def _traps(self, proposal: dict) -> list:
        seen = set(BUILT_IN)
        for trap in proposal["value"]:
            need(trap, "traps", "key", "title", "symptom", "fix", "curves")
            curves = trap["curves"]
            need(curves, f"traps.{trap['key']}", "x", "right", "wrong")
            lengths = {len(curves[name]) for name in ("x", "right", "wrong")}
            expect(len(lengths) == 1, f"traps.{trap['key']}", lengths, "one length")
            expect(trap["key"] not in seen, "traps", trap["key"], "a key of its own")
            seen.add(trap["key"])
        return compact(proposal["value"])

    def describe(self, lang: Lang | None = None) -> str:
        """The chosen fault's name and symptom."""
        lang = lang or self.lang
        given = {trap["key"]: trap for trap in self.traps}
        if self.trap in given:
            trap = given[self.trap]
            title = in_language(trap["title"], lang)
            symptom = in_language(trap["symptom"], lang)
        else:
            expect(self.trap in BUILT_IN, "trap", repr(self.trap), ", ".join(BUILT_IN))
            title = self.words(f"{self.trap}_title", lang)
            symptom = self.words(f"{self.trap}_symptom", lang)
        return self.words("describe", lang, title=title, symptom=symptom)
