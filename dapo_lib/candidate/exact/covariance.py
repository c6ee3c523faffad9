"""Exact mean and covariance of a group's gradient, by enumerating groups: form 6.

A group is a multiset of G of the K actions: 126 of them for K = 6, G = 4. Left out:
large K and G; C(K+G-1, G) multisets must fit in memory.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial

import torch
from torch import Tensor

from dapo_lib.advantage import Baseline, Scale, group_advantages
from dapo_lib.errors import expect

LIMIT = 1_000_000


def enumerate_groups(probabilities: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """All multisets of `group_size` actions as counts, and the chance of each.

    Shape: probabilities [K] -> counts [M, K] int64, chance [M] float64 that sums to 1.
    Raises ``ValueError`` where there are more than a million multisets.

    >>> counts, chance = enumerate_groups(torch.tensor([0.5, 0.5]), 2)
    >>> counts.tolist(), chance.tolist()
    ([[2, 0], [1, 1], [0, 2]], [0.25, 0.5, 0.25])
    """
    p = torch.as_tensor(probabilities, dtype=torch.float64)
    n, g = len(p), group_size
    expect(g >= 1, "group_size", g, "at least 1")
    many = comb(n + g - 1, g)
    expect(many <= LIMIT, "group_size", f"{g} ({many} multisets)", f"at most {LIMIT}")
    actions = torch.tensor(list(combinations_with_replacement(range(n), g)))
    counts = torch.nn.functional.one_hot(actions, n).sum(1)
    factorials = torch.tensor([factorial(j) for j in range(g + 1)], dtype=torch.float64)
    ways = factorial(g) / factorials[counts].prod(1)
    return counts, ways * (p**counts).prod(1)


def group_gradient(
    counts: Tensor,
    logits: Tensor,
    reward: Tensor,
    *,
    ddof: int = 0,
    eps: float = 0.0,
    scale: Scale = "group",
    baseline: Baseline = "mean",
) -> Tensor:
    """Gradient of the surrogate at ratio 1 for each group: mean of A grad log pi.

    Shape: counts [M, K], logits [K], reward [K] of each action -> [M, K] float64, with
    respect to the logits. Advantages are the library's own (:func:`group_advantages`).

    >>> group_gradient(torch.tensor([[1, 1]]), torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor([[ 0.5000, -0.5000]], dtype=torch.float64)
    """
    many, n = counts.shape
    group_size = int(counts[0].sum())
    action = torch.arange(n).repeat(many).repeat_interleave(counts.reshape(-1))
    group = torch.arange(many).repeat_interleave(group_size)
    rewards = torch.as_tensor(reward, dtype=torch.float64)[action]
    advantage = group_advantages(
        rewards, group, ddof=ddof, eps=eps, scale=scale, baseline=baseline
    )
    pi = torch.softmax(torch.as_tensor(logits, dtype=torch.float64), -1)
    score = torch.eye(n, dtype=torch.float64)[action] - pi
    each = advantage[:, None] * score / group_size
    return torch.zeros(many, n, dtype=torch.float64).index_add_(0, group, each)


def gradient_moments(
    logits: Tensor, reward: Tensor, group_size: int, **options
) -> tuple[Tensor, Tensor]:
    """Exact expectation and covariance of one group's gradient (form 6).

    Shape: logits [K], reward [K] -> mean [K], covariance [K, K], float64. `options` are
    those of :func:`group_gradient`.

    >>> mean, covariance = gradient_moments(torch.zeros(6), torch.eye(6)[0], 4)
    >>> round(float(mean[0]), 4), round(float(covariance.trace()), 4)
    (0.2316, 0.0938)
    """
    pi = torch.softmax(torch.as_tensor(logits, dtype=torch.float64), -1)
    counts, chance = enumerate_groups(pi, group_size)
    gradient = group_gradient(counts, logits, reward, **options)
    mean = chance @ gradient
    centred = gradient - mean
    return mean, centred.T @ (chance[:, None] * centred)
