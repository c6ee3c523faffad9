"""Click the answers of one group and watch its advantages (chapter 2).

Left out: groups of different sizes. The rest of the batch, which only `scale="batch"`
sees, is one fixed group with three right answers of four.
"""

from __future__ import annotations

import torch
import traitlets

from dapo_lib.advantage import group_advantages
from dapo_lib.labels import Lang
from dapo_lib.widgets.base import DapoWidget


class AdvantageExplorer(DapoWidget):
    """Rewards of one group -> advantages, with ddof, scale, baseline and shaping.

    `correct` holds 0 or 1 an answer, `penalty` its length penalty in [-1, 0] (used when
    `shaping` is on). Source: paper Eq 9, 11.

    >>> AdvantageExplorer(correct=[1, 0, 0, 0], group_size=4).describe("en")
    'With 1 of 4 answers right, a right one gets 1.50 and a wrong one −0.50.'
    """

    name = "advantage"
    group_size = traitlets.Int(8, min=1, max=16).tag(sync=True)
    correct = traitlets.List(traitlets.Int(min=0, max=1), [1, 0, 0, 1, 0, 0, 0, 0])
    correct.tag(sync=True)
    penalty = traitlets.List(traitlets.Float(min=-1.0, max=0.0)).tag(sync=True)
    ddof = traitlets.Enum((1, 0), 1).tag(sync=True)
    eps = traitlets.Float(1e-6, min=0.0, max=1.0).tag(sync=True)
    scale = traitlets.Enum(("group", "batch", "none"), "group").tag(sync=True)
    baseline = traitlets.Enum(("mean", "leave_one_out"), "mean").tag(sync=True)
    shaping = traitlets.Bool(False).tag(sync=True)

    def describe(self, lang: Lang | None = None) -> str:
        """What a right and a wrong answer of this group get, in a sentence."""
        marks = (self.correct + [0] * self.group_size)[: self.group_size]
        right = torch.tensor(marks, dtype=torch.float64)
        k = int(right.sum())
        if not 0 < k < self.group_size:
            return self.words("describe_dead", lang, k=k, G=self.group_size)
        value = group_advantages(
            2 * right - 1, torch.zeros(len(right)), ddof=self.ddof, eps=self.eps
        )
        up, down = f"{value.max():.2f}", f"{-value.min():.2f}"
        down = f"\N{MINUS SIGN}{down}"  # as the drawing writes it
        return self.words("describe", lang, k=k, G=len(marks), up=up, down=down)
