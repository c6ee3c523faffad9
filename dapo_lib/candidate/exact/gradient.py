"""Expected policy gradients: each is a multiple of grad p; forms 4, 5, 7, 8, 9.

Right and wrong are all that the reward says, so E[g] = c(p) grad p and a method is
known by its scale c(p). Left out: clipping (ratio 1 throughout) and length (all equal).
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import torch
from torch import Tensor

from dapo_lib.candidate.exact.groups import (
    binomial,
    dead_group_probability,
    probability,
)
from dapo_lib.errors import expect

Method = Literal["grpo", "dr_grpo", "rloo", "reinforce"]


def gradient_of_p(logits: Tensor, correct: Tensor) -> Tensor:
    """Gradient of p = pi(correct) with respect to the logits: pi (correct - p).

    Shape: logits [..., K], correct [..., K] of 0/1 -> [..., K] float64.

    >>> gradient_of_p(torch.zeros(2), torch.tensor([1, 0]))
    tensor([ 0.2500, -0.2500], dtype=torch.float64)
    """
    pi = torch.softmax(torch.as_tensor(logits, dtype=torch.float64), -1)
    correct = torch.as_tensor(correct, dtype=torch.float64)
    return pi * (correct - (pi * correct).sum(-1, keepdim=True))


def gradient_scale(
    p: Tensor | float, group_size: int, method: Method = "grpo"
) -> Tensor:
    """c(p) in E[gradient] = c(p) grad p, rewards 0/1, population std (forms 4 and 5).

    GRPO: E[sqrt(k (G-k))] / (G p (1-p)) with k ~ Bin(G, p). Dr.GRPO (no std): (G-1)/G.
    RLOO and REINFORCE: 1. Shape: p [...] -> [...] float64. Raises ``ValueError`` on p
    outside (0, 1), group_size < 2 and an unknown method.

    >>> round(float(gradient_scale(0.5, 4)), 4), gradient_scale(0.5, 4, "dr_grpo")
    (1.616, tensor(0.7500, dtype=torch.float64))
    """
    p = _inside(p, group_size)
    if method == "grpo":
        k = torch.arange(group_size + 1, dtype=torch.float64)
        expected = (binomial(p, group_size) * (k * (group_size - k)).sqrt()).sum(-1)
        return expected / (group_size * p * (1 - p))
    scales = {"dr_grpo": (group_size - 1) / group_size, "rloo": 1.0, "reinforce": 1.0}
    expect(method in scales, "method", repr(method), "grpo or " + ", ".join(scales))
    return torch.full_like(p, scales[method])


def gradient_scale_large_group(p: Tensor | float) -> Tensor:
    """Limit of GRPO's scale as G grows: 1 / sqrt(p (1-p)) (form 4).

    Shape: p [...] -> [...] float64.

    >>> gradient_scale_large_group(0.5)
    tensor(2., dtype=torch.float64)
    """
    p = _inside(p, 2)
    return 1 / (p * (1 - p)).sqrt()


def dynamic_scale(p: Tensor | float, group_size: int) -> Tensor:
    """Scale of an update made of kept groups only: c_G / (1 - p^G - (1-p)^G) (form 7).

    Shape: p [...] -> [...] float64.

    >>> round(float(dynamic_scale(0.5, 4)), 4)
    1.8469
    """
    p = _inside(p, group_size)
    return gradient_scale(p, group_size) / (1 - dead_group_probability(p, group_size))


def gradient_per_rollout(p: Tensor | float, group_size: int) -> tuple[Tensor, Tensor]:
    """Scales per drawn group, without and with the filter; they are equal (form 8).

    E[g | kept] P(kept) = E[g]: a rollout gains nothing, an update gains signal.
    Shape: p [...] -> two [...] float64.

    >>> plain, filtered = gradient_per_rollout(0.1, 8)
    >>> bool(torch.isclose(plain, filtered))
    True
    """
    kept = 1 - dead_group_probability(_inside(p, group_size), group_size)
    return gradient_scale(p, group_size), dynamic_scale(p, group_size) * kept


def gradient_scale_rare(group_size: int) -> float:
    """Limit of GRPO's scale as p -> 0: sqrt(G-1) (form 9).

    >>> gradient_scale_rare(5)
    2.0
    """
    expect(group_size >= 2, "group_size", group_size, "at least 2")
    return sqrt(group_size - 1)


def dynamic_scale_rare(p: Tensor | float, group_size: int) -> Tensor:
    """The filter's scale for small p: sqrt(G-1) / (G p), without bound (form 9).

    Shape: p [...] -> [...] float64.

    >>> dynamic_scale_rare(0.01, 5)
    tensor(40., dtype=torch.float64)
    """
    return gradient_scale_rare(group_size) / (group_size * _inside(p, group_size))


def _inside(p: Tensor | float, group_size: int) -> Tensor:
    p = probability(p)
    inside = bool(((p > 0) & (p < 1)).all())
    expect(inside, "p", p.tolist(), "0 < p < 1 (no gradient at either end)")
    expect(group_size >= 2, "group_size", group_size, "at least 2")
    return p
