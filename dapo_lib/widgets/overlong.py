"""L_max × L_cache × overlong filtering, and two readings of 16,384 (chapter 6).

Left out: a distribution of lengths. Four answers of one group stand for it.
"""

from __future__ import annotations

import traitlets

from dapo_lib.errors import expect
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget


class OverlongExplorer(DapoWidget):
    """The soft penalty over length, and the rewards, masks and advantages it makes.

    `cap` is what the generator stops at, `l_max` the L_max of Eq 13; lengths in tokens,
    EOS counted. Raises ``BadInput`` unless l_cache <= l_max. Source: Eq 13, sec. 3.4.

    >>> OverlongExplorer().describe("en")[:56]
    'The penalty starts after 16,384 tokens and reaches −1 at'
    """

    name = "overlong"
    cap = traitlets.Int(20480, min=8, max=40960).tag(sync=True)
    l_max = traitlets.Int(20480, min=1, max=49152).tag(sync=True)
    l_cache = traitlets.Int(4096, min=0, max=49152).tag(sync=True)
    length = traitlets.Int(18432, min=0, max=49152).tag(sync=True)
    filtering = traitlets.Bool(False).tag(sync=True)
    baseline = traitlets.Enum(("include", "exclude"), "include").tag(sync=True)

    def __init__(self, lang: Lang = "en", **traits: object) -> None:
        super().__init__(lang, **traits)
        wanted = f"0 <= l_cache <= l_max={self.l_max}"
        expect(self.l_cache <= self.l_max, "l_cache", self.l_cache, wanted)

    def describe(self, lang: Lang | None = None) -> str:
        """Where the slope starts and ends, in a sentence."""
        start = f"{self.l_max - self.l_cache:,}"
        return self.words("describe", lang, start=start, end=f"{self.l_max:,}")
