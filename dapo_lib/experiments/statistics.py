"""Means with intervals over seeds, and paired differences between arms.

Left out: corrections for many comparisons. A page that shows sixty contrasts says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy import special

from dapo_lib.errors import expect


@dataclass(frozen=True)
class Interval:
    """A mean over `n` seeds and its two-sided 95 % Student interval [low, high].

    >>> i = mean_interval([1.0, 2.0, 3.0])
    >>> round(i.mean, 2), round(i.low, 2), round(i.high, 2), i.n
    (2.0, -0.48, 4.48, 3)
    """

    mean: float
    low: float
    high: float
    sd: float
    n: int

    def excludes(self, value: float = 0.0) -> bool:
        """Whether `value` lies outside the interval."""
        return not self.low <= value <= self.high

    def as_dict(self) -> dict[str, float]:
        """Plain numbers for JSON."""
        return {"mean": self.mean, "sd": self.sd, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Paired:
    """A paired difference b - a over seeds: interval, t, and seeds with its sign."""

    interval: Interval
    t: float
    positive: int
    negative: int

    @property
    def same_sign(self) -> int:
        """Seeds whose difference has the sign of the mean."""
        return self.positive if self.interval.mean >= 0 else self.negative


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Mean, SD (ddof 1) and Student interval; with one seed the interval is infinite.

    Raises ``ValueError`` on no values or a level outside (0, 1).
    """
    x = np.asarray(values, dtype=float)
    expect(x.ndim == 1 and x.size > 0, "values", x.shape, "at least one seed")
    expect(0 < level < 1, "level", level, "0 < level < 1")
    mean = float(x.mean())
    if x.size == 1:
        return Interval(mean, -np.inf, np.inf, float("nan"), 1)
    sd = float(x.std(ddof=1))
    half = student_quantile((1 + level) / 2, x.size - 1) * sd / sqrt(x.size)
    return Interval(mean, mean - half, mean + half, sd, int(x.size))


def paired(a: Sequence[float], b: Sequence[float]) -> Paired:
    """The difference b - a, seed by seed. Raises ``ValueError`` on unequal lengths.

    >>> p = paired([0.5, 0.6, 0.7], [0.6, 0.8, 0.8])
    >>> round(p.interval.mean, 4), p.positive, round(p.t, 2)
    (0.1333, 3, 4.0)
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    expect(x.shape == y.shape, "b", y.shape, f"the seeds of a, {x.shape}")
    d = y - x
    interval = mean_interval(d)
    spread = interval.sd / sqrt(len(d))
    t = interval.mean / spread if spread > 0 else float("inf") * np.sign(interval.mean)
    return Paired(interval, float(t), int((d > 0).sum()), int((d < 0).sum()))


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion, no unit.

    >>> tuple(round(v, 3) for v in wilson(97, 128))
    (0.677, 0.824)
    """
    expect(n > 0 and 0 <= successes <= n, "successes", successes, f"0 to n={n} > 0")
    z = student_quantile((1 + level) / 2, inf)
    p, scale = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def student_quantile(q: float, df: float) -> float:
    """Quantile of Student's t with `df` degrees of freedom (inf: the normal one).

    >>> round(student_quantile(0.975, 9), 4), round(student_quantile(0.975, inf), 4)
    (2.2622, 1.96)
    """
    expect(0 < q < 1, "q", q, "0 < q < 1")
    return float(special.stdtrit(df, q) if df < inf else special.ndtri(q))
