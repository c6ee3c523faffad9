"""What a group of G samples looks like, each right with probability p: forms 2, 3.

Left out: groups whose members have different chances; a group is one prompt.
"""

from __future__ import annotations

from math import comb, sqrt

import torch
from torch import Tensor

from dapo_lib.errors import expect


def binomial(p: Tensor | float, group_size: int) -> Tensor:
    """Chance that k of a group's samples are right, for k = 0..G.

    Shape: p [...] -> [..., G + 1] float64. Raises ``ValueError`` unless 0 <= p <= 1.

    >>> binomial(0.5, 2)
    tensor([0.2500, 0.5000, 0.2500], dtype=torch.float64)
    """
    p = probability(p)[..., None]
    expect(group_size >= 1, "group_size", group_size, "at least 1")
    k = torch.arange(group_size + 1, dtype=torch.float64)
    ways = torch.tensor([comb(group_size, int(j)) for j in k], dtype=torch.float64)
    return ways * p**k * (1 - p) ** (group_size - k)


def dead_group_probability(p: Tensor | float, group_size: int) -> Tensor:
    """Chance that a group has no signal, p^G + (1 - p)^G (form 2).

    Shape: p [...] -> [...] float64. This is the share of groups Eq 11 throws away.

    >>> [round(float(dead_group_probability(1 / 6, g)), 4) for g in (4, 8, 16)]
    [0.483, 0.2326, 0.0541]
    """
    p = probability(p)
    expect(group_size >= 1, "group_size", group_size, "at least 1")
    return p**group_size + (1 - p) ** group_size


def draws_per_kept_group(p: Tensor | float, group_size: int) -> Tensor:
    """Expected prompts drawn for each group kept, 1 / (1 - dead); inf at p = 0 and 1.

    Shape: p [...] -> [...] float64, prompts (form 2).

    >>> round(float(draws_per_kept_group(1 / 6, 4)), 3)
    1.934
    """
    return 1 / (1 - dead_group_probability(p, group_size))


def binary_advantages(n_correct: int, group_size: int) -> tuple[float, float]:
    """Advantages of a right and of a wrong sample: sqrt((G-k)/k), -sqrt(k/(G-k)).

    With population std (ddof=0, eps=0), whatever the scale and shift of the two reward
    values (form 3); with ddof=1 both shrink by sqrt((G-1)/G). Raises ``ValueError``
    unless 0 < n_correct < group_size.

    >>> binary_advantages(1, 5)
    (2.0, -0.5)
    """
    k, g = n_correct, group_size
    expect(0 < k < g, "n_correct", k, f"0 < n_correct < group_size={g}")
    return sqrt((g - k) / k), -sqrt(k / (g - k))


def probability(p: Tensor | float) -> Tensor:
    """`p` as float64. Raises ``ValueError`` outside [0, 1].

    >>> probability(0.5)
    tensor(0.5000, dtype=torch.float64)
    """
    p = torch.as_tensor(p, dtype=torch.float64)
    expect(
        bool(((p >= 0) & (p <= 1)).all()), "p", p.tolist(), "a probability in [0, 1]"
    )
    return p
