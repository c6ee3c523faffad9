"""Evaluation of a policy whose action probabilities are known: form 15.

Left out: estimates from n samples, which are in dapo_lib/metrics.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.candidate.exact.covariance import enumerate_groups
from dapo_lib.candidate.exact.groups import probability
from dapo_lib.errors import expect


def pass_at_k_exact(p: Tensor | float, k: int) -> Tensor:
    """Chance that one of k independent samples is right: 1 - (1-p)^k.

    Shape: p [...] -> [...] float64. Raises ``ValueError`` on k < 1.

    >>> pass_at_k_exact(0.5, 2)
    tensor(0.7500, dtype=torch.float64)
    """
    expect(k >= 1, "k", k, "at least 1")
    return 1 - (1 - probability(p)) ** k


def avg_at_n_variance(p: Tensor | float, n: int) -> Tensor:
    """Variance of avg@n on one problem: p (1-p) / n.

    Shape: p [...] -> [...] float64. Raises ``ValueError`` on n < 1.

    >>> avg_at_n_variance(0.5, 25)
    tensor(0.0100, dtype=torch.float64)
    """
    expect(n >= 1, "n", n, "at least 1")
    p = probability(p)
    return p * (1 - p) / n


def maj_at_k_exact(probabilities: Tensor, correct: Tensor, k: int) -> Tensor:
    """Chance that a majority vote over k samples is right, by enumeration.

    Shape: probabilities [K] of distinct answers, correct [K] of 0/1 -> a scalar.
    A tie counts as its expected value, as in :func:`dapo_lib.metrics.maj_at_k`.

    >>> maj_at_k_exact(torch.tensor([0.6, 0.4]), torch.tensor([1, 0]), 1)
    tensor(0.6000, dtype=torch.float64)
    >>> vote = maj_at_k_exact(torch.tensor([0.6, 0.4]), torch.tensor([1, 0]), 3)
    >>> round(float(vote), 4)
    0.648
    """
    counts, chance = enumerate_groups(torch.as_tensor(probabilities).double(), k)
    winner = (counts == counts.max(1, keepdim=True).values).double()
    right = torch.as_tensor(correct, dtype=torch.float64)
    return chance @ ((winner * right).sum(1) / winner.sum(1))
