"""Interactive explorers, one a chapter: an anywidget class and its module each.

Left out: anything that needs a kernel to react.
"""

from dapo_lib.widgets.epsilon import EpsilonExplorer

__all__ = ["EpsilonExplorer"]
