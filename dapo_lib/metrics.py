"""What is measured, as sums and counts that merge; and closed-form evaluation.

Left out: means of means. Two records of a metric are added, and divided once at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import torch
from torch import Tensor

from dapo_lib.errors import expect


@dataclass(frozen=True)
class Ratio:
    """A sum and the count it is over; adding two merges their populations.

    >>> Ratio(1, 2) + Ratio(0, 98)
    Ratio(total=1, count=100)
    >>> (Ratio(1, 2) + Ratio(0, 98)).value
    0.01
    """

    total: float
    count: float

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.total + other.total, self.count + other.count)

    @property
    def value(self) -> float:
        """The mean; NaN where nothing was counted."""
        return self.total / self.count if self.count else float("nan")


def entropy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Exact entropy over the last axis, in nats, at the sampling temperature.

    Shape: logits [..., V] -> [...]. Raises ``ValueError`` unless temperature > 0.

    >>> logits = torch.tensor([2.0, 0.0])
    >>> round(float(entropy(logits)), 4), round(float(entropy(logits, 0.5)), 4)
    (0.3653, 0.0901)
    """
    expect(temperature > 0, "temperature", temperature, "a number > 0")
    log_p = torch.log_softmax(logits / temperature, -1)
    return -torch.where(log_p.isfinite(), log_p.exp() * log_p, 0.0).sum(-1)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k answers drawn from n, c of them right, is right.

    Closed form 1 - C(n-c, k) / C(n, k); unbiased, unlike a bootstrap with replacement.
    Raises ``ValueError`` unless 0 <= c <= n and 1 <= k <= n.

    >>> round(pass_at_k(10, 3, 5), 4), pass_at_k(4, 1, 2), pass_at_k(32, 1, 32)
    (0.9167, 0.5, 1.0)
    """
    expect(0 <= c <= n, "c", c, f"0 <= c <= n={n}")
    expect(1 <= k <= n, "k", k, f"1 <= k <= n={n}")
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def avg_at_k(correct: Sequence[bool]) -> float:
    """Share of right answers among the k samples of one problem.

    >>> avg_at_k([True, False, False, False])
    0.25
    """
    expect(len(correct) > 0, "correct", "an empty sequence", "at least one sample")
    return sum(map(bool, correct)) / len(correct)


def maj_at_k(answers: Sequence[Hashable], correct: Sequence[bool]) -> float:
    """Whether the most frequent answer is right; a tie counts as its expected value.

    `answers` are the extracted answers (None = no answer, which never wins), `correct`
    says which are right. Raises ``ValueError`` on different lengths.

    >>> maj_at_k(["3", "3", "4"], [False, False, True])
    0.0
    >>> maj_at_k(["3", "4"], [False, True])
    0.5
    """
    same = len(answers) == len(correct) > 0
    expect(same, "correct", len(correct), f"{len(answers)} >= 1 values, one an answer")
    votes = Counter(a for a in answers if a is not None)
    if not votes:
        return 0.0
    right = {a for a, c in zip(answers, correct, strict=True) if c}
    top = max(votes.values())
    winners = [a for a, v in votes.items() if v == top]
    return sum(a in right for a in winners) / len(winners)
