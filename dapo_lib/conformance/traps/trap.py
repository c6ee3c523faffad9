"""What a trap is: two functions of one signature and the input that tells them apart.

Left out: words. Titles and symptoms are `conformance.trap_*` in the label table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dapo_lib.labels import Lang, label


@dataclass(frozen=True)
class Trap:
    """A published fault: `broken` as people write it, `fixed` by the library.

    `failing` are arguments on which the two differ; on `innocent` they agree, which is
    why a fault of this kind passes for years. `row` is the conformance row that tests
    a system for it and names the report.

    >>> from dapo_lib.conformance.traps import TRAPS
    >>> trap = TRAPS["no_lower_clamp"]
    >>> trap.run()
    Outcome(given=(140, 100, 20), wrong=-3.0, right=-1.0)
    """

    name: str
    row: str
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    failing: tuple[Any, ...]
    innocent: tuple[Any, ...]

    def run(self) -> Outcome:
        """Execute both functions on the failing input."""
        given = self.failing
        return Outcome(given, self.broken(*given), self.fixed(*given))

    def hides(self) -> Outcome:
        """Execute both on the input where nobody sees a difference."""
        given = self.innocent
        return Outcome(given, self.broken(*given), self.fixed(*given))

    def title(self, lang: Lang) -> str:
        """What the fault is called."""
        return label(f"conformance.trap_{self.name}", lang)

    def symptom(self, lang: Lang) -> str:
        """What one sees in training when it is there."""
        return label(f"conformance.trap_{self.name}_symptom", lang)


@dataclass(frozen=True)
class Outcome:
    """What the broken and the fixed function made of one input."""

    given: tuple[Any, ...]
    wrong: Any
    right: Any

    @property
    def equal(self) -> bool:
        """Whether both agree to 1e-6 (NaN agrees with nothing)."""
        return _equal(self.wrong, self.right)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
    return a == b
