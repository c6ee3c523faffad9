"""Group size × pass rate: dead groups, and the ledger of a full batch (chapter 4).

Left out: a mix of pass rates. Every prompt has the same one, so all is closed form.
"""

from __future__ import annotations

import traitlets

from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget


class GroupExplorer(DapoWidget):
    """How many groups carry no signal, and what a full batch then costs.

    Draws only the missing groups again, at most `max_rounds` rounds. Source: paper
    Eq 11; P(dead) = p^G + (1 - p)^G.

    >>> GroupExplorer(group_size=8, pass_rate=0.05).describe("en")[:62]
    'At pass rate 0.05 and group size 8, 66.3% of the groups are de'
    """

    name = "group"
    group_size = traitlets.Int(8, min=2, max=32).tag(sync=True)
    pass_rate = traitlets.Float(0.1, min=0.01, max=0.99).tag(sync=True)
    n_groups = traitlets.Int(32, min=1, max=1024).tag(sync=True)
    max_rounds = traitlets.Int(10, min=1, max=20).tag(sync=True)
    tokens = traitlets.Int(12, min=1, max=20480).tag(sync=True)

    def describe(self, lang: Lang | None = None) -> str:
        """The dead share and the draws a kept group costs, in a sentence."""
        p, size = self.pass_rate, self.group_size
        dead = p**size + (1 - p) ** size
        return self.words(
            "describe",
            lang,
            p=f"{p:g}",
            G=size,
            dead=f"{100 * dead:.1f}",
            draws=f"{1 / (1 - dead):.2f}",
        )
