"""What is measured, as sums and counts that merge; and closed-form evaluation.

Left out: means of means. Two records of a metric are added, and divided once, at the
end. Intervals over problems and seeds: experiments/statistics.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
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


def merge(records: Iterable[Mapping[str, Tensor | float]]) -> dict[str, float]:
    """Add up records of sums and counts, name by name; an absent name adds nothing.

    >>> merge([{"clip_low": 1, "tokens": 2}, {"clip_low": 0, "tokens": 98}])
    {'clip_low': 1.0, 'tokens': 100.0}
    """
    total: dict[str, float] = {}
    for record in records:
        for name, value in record.items():
            total[name] = total.get(name, 0.0) + float(value)
    return total


def clip_diagnostics(
    records: Iterable[Mapping[str, Tensor | float]],
) -> dict[str, Ratio]:
    """What the clip did over many updates: shares of tokens, and two means.

    `records` are the diagnostics that ``objective.policy_loss`` returns, of one update
    index or of all. ``clip_low``, ``clip_high``, ``clip_dual``: share of unmasked
    tokens; ``p_up_clipped``: mean old probability of the up-clipped tokens (Fig 3a);
    ``log_ratio``: mean of log r over unmasked tokens, in nats.

    >>> one = {"tokens": 4, "clip_low": 1, "clip_high": 1, "clip_dual": 0}
    >>> one |= {"p_up_clipped": 0.1, "log_ratio": 0.4}
    >>> merged = clip_diagnostics([one, one])
    >>> merged["clip_low"].value, merged["p_up_clipped"]
    (0.25, Ratio(total=0.2, count=2.0))
    """
    sums = merge(records)
    tokens = sums.get("tokens", 0.0)
    counts = dict.fromkeys(("clip_low", "clip_high", "clip_dual", "log_ratio"), tokens)
    counts["p_up_clipped"] = sums.get("clip_high", 0.0)
    return {name: Ratio(sums.get(name, 0.0), n) for name, n in counts.items()}


def by_update_index(
    rollouts: Iterable[Sequence[Mapping[str, Tensor | float]]],
) -> list[dict[str, Ratio]]:
    """The diagnostics of each update index 1..mu, merged over rollouts.

    The first update of a fresh rollout cannot clip (its ratio is 1); a mean over all mu
    would hide that. A rollout that made fewer updates adds to the first ones only.

    >>> record = {"tokens": 2.0, "clip_high": 0.0}
    >>> [d["clip_high"].count for d in by_update_index([[record, record], [record]])]
    [4.0, 2.0]
    """
    columns: list[list[Mapping]] = []
    for updates in rollouts:
        columns.extend([] for _ in range(len(updates) - len(columns)))
        for column, record in zip(columns, updates, strict=False):
            column.append(record)
    return [clip_diagnostics(column) for column in columns]


def entropy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Exact entropy over the last axis, in nats, at the sampling temperature.

    Shape: logits [..., V] -> [...], at least float32; at most ln V. A logit of -inf is
    an impossible token. Raises ``ValueError`` unless temperature > 0.

    >>> logits = torch.tensor([2.0, 0.0])
    >>> round(float(entropy(logits)), 4), round(float(entropy(logits, 0.5)), 4)
    (0.3653, 0.0901)
    """
    log_p = _log_softmax(logits, temperature)
    possible = torch.where(log_p > -torch.inf, log_p, 0.0)
    return -(log_p.exp() * possible).sum(-1)


def token_log_prob(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token under the distribution it was sampled from.

    Shape: logits [..., V], tokens [...] of integers < V -> [...] in nats, at least
    float32. Score with the temperature of sampling and dropout off, or the ratio of an
    unchanged policy is not 1. Raises ``ValueError`` on shapes that do not match, or
    unless temperature > 0.

    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    >>> token_log_prob(logits, torch.tensor([0, 1]), temperature=0.5)
    tensor([-0.0181, -4.0181])
    """
    same = logits.shape[:-1] == tokens.shape
    expect(same, "tokens", tuple(tokens.shape), f"shape {tuple(logits.shape[:-1])}")
    log_p = _log_softmax(logits, temperature)
    return log_p.gather(-1, tokens[..., None])[..., 0]


def _log_softmax(logits: Tensor, temperature: float) -> Tensor:
    expect(temperature > 0, "temperature", temperature, "a number > 0")
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.log_softmax(logits.to(wide) / temperature, -1)


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

    `answers` are the extracted answers in one canonical form (None = no answer, which
    never wins), `correct` says which are right. Deterministic: of m tied winners of
    which r are right it is r / m. Raises ``ValueError`` on different lengths.

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
