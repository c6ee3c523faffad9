"""Interactive explorers, one a chapter: an anywidget class and its module each.

Left out: anything that needs a kernel to react.
"""

from dapo_lib.widgets.advantage import AdvantageExplorer
from dapo_lib.widgets.config_form import ConfigForm
from dapo_lib.widgets.epsilon import EpsilonExplorer
from dapo_lib.widgets.group import GroupExplorer
from dapo_lib.widgets.leak import LeakRemover
from dapo_lib.widgets.mechanisms import MechanismToggles
from dapo_lib.widgets.overlong import OverlongExplorer
from dapo_lib.widgets.reduction import ReductionExplorer
from dapo_lib.widgets.trap import TrapExplorer
from dapo_lib.widgets.verifier import VerifierExplorer

__all__ = [
    "AdvantageExplorer",
    "ConfigForm",
    "EpsilonExplorer",
    "GroupExplorer",
    "LeakRemover",
    "MechanismToggles",
    "OverlongExplorer",
    "ReductionExplorer",
    "TrapExplorer",
    "VerifierExplorer",
]
