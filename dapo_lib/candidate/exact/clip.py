"""Where the upper clip can act at all, and how long a rare action needs: form 10.

Left out: the lower clip, which cannot block a rise; overshoot within one update, which
lets a real run pass the bound (the suite rare_gold measures by how much).
"""

from __future__ import annotations

from math import ceil, inf, log

from torch import Tensor

from dapo_lib.candidate.exact.groups import probability
from dapo_lib.errors import expect


def highest_bindable_probability(eps_high: float) -> float:
    """1 / (1 + eps_high): above it no probability can reach the upper bound.

    Raises ``ValueError`` on a negative eps_high. Source: paper section 3.1 (form 10).

    >>> [round(highest_bindable_probability(e), 3) for e in (0.2, 0.28)]
    [0.833, 0.781]
    """
    expect(eps_high >= 0, "eps_high", eps_high, "a number >= 0")
    return 1 / (1 + eps_high)


def clip_can_bind(p_old: Tensor | float, eps_high: float) -> Tensor:
    """Whether some new probability <= 1 exceeds (1 + eps_high) p_old.

    Shape: p_old [...] -> [...] bool.

    >>> import torch
    >>> clip_can_bind(torch.tensor([0.01, 0.8, 0.9]), 0.2)
    tensor([ True,  True, False])
    """
    return probability(p_old) < highest_bindable_probability(eps_high)


def refreshes_needed(start: float, target: float, eps_high: float) -> float:
    """Fewest refreshes of the old policy to lift a probability if the bound is kept.

    Each old policy allows a factor 1 + eps_high (form 10). inf at eps_high = 0. Raises
    ``ValueError`` unless 0 < start <= target <= 1.

    >>> [refreshes_needed(0.01, 0.5, e) for e in (0.2, 0.28)]
    [22, 16]
    """
    expect(
        0 < start <= target <= 1, "start", start, f"0 < start <= target={target} <= 1"
    )
    highest_bindable_probability(eps_high)
    if start == target:
        return 0
    if eps_high == 0:
        return inf
    # a hair less, so that an exact power is not rounded up
    return ceil(log(target / start) / log(1 + eps_high) - 1e-12)
