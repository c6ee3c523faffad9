"""Interactive explorers, one a chapter: an anywidget class and its module each.

Left out: anything that needs a kernel to react.
"""

from dapo_lib.widgets.advantage import AdvantageExplorer
from dapo_lib.widgets.epsilon import EpsilonExplorer
from dapo_lib.widgets.group import GroupExplorer
from dapo_lib.widgets.overlong import OverlongExplorer
from dapo_lib.widgets.reduction import ReductionExplorer

__all__ = [
    "AdvantageExplorer",
    "EpsilonExplorer",
    "GroupExplorer",
    "OverlongExplorer",
    "ReductionExplorer",
]
