"""Short/long mix × five reductions × micro-batch split (chapter 5).

Left out: more than eight responses; two groups of four show every difference.
"""

from __future__ import annotations

import traitlets

from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget


class ReductionExplorer(DapoWidget):
    """The weight of one token under each reduction, and what a split changes.

    Tokens of short responses lose 1, those of long ones 0, so the value shown is the
    share of the loss that short responses carry. Source: paper Eq 5, 12.

    >>> ReductionExplorer(short=10, long=80).describe("en")[:59]
    'With the mean per response, a token of a 10-token answer we'
    """

    name = "reduction"
    short = traitlets.Int(10, min=1, max=100).tag(sync=True)
    long = traitlets.Int(80, min=1, max=200).tag(sync=True)
    n_long = traitlets.Int(3, min=0, max=8).tag(sync=True)
    micro_batches = traitlets.Enum((1, 2, 4, 8), 1).tag(sync=True)
    order = traitlets.Enum(("grouped", "mixed"), "grouped").tag(sync=True)
    l_max = traitlets.Int(200, min=1, max=1000).tag(sync=True)

    def describe(self, lang: Lang | None = None) -> str:
        """How much more a short response's token weighs, in a sentence."""
        ratio = f"{self.long / self.short:.3g}"
        return self.words(
            "describe", lang, short=self.short, long=self.long, ratio=ratio
        )
