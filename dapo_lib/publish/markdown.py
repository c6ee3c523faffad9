"""Tables of the generated pages, as MyST.

Left out: escaping; a page knows what its cells hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(
    head: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: bool = False
) -> str:
    """A head and lines of cells; with `numbers` all columns but the first go right.

    >>> print(table(["a", "b"], [["x", "1"]], numbers=True))
    | a | b |
    | --- | ---: |
    | x | 1 |
    """
    side = "---:" if numbers else "---"
    rule = ["---", *[side] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))
