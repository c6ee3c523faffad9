"""From lanes to a tidy table: one row a seed, step and metric.

Left out: averages. A mean over seeds is taken by whoever shows it, with its interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

COLUMNS = ("arm", "seed", "step", "metric", "value")


def tidy(arm: str, seeds: Sequence[int], step: int, **metrics: Tensor) -> pd.DataFrame:
    """A table of `metrics`, each [lanes], in the order of `seeds`.

    Shape: len(seeds) rows a metric; columns arm, seed, step (rollouts done), metric,
    value.

    >>> tidy("soft", [7], 16, accuracy=torch.tensor([0.5])).values.tolist()
    [['soft', 7, 16, 'accuracy', 0.5]]
    """
    rows = [
        (arm, seed, step, name, value)
        for name, values in metrics.items()
        for seed, value in zip(seeds, values.tolist(), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def every_lane(n_prompts: int, lanes: int) -> tuple[Tensor, Tensor]:
    """Index and lane of every prompt in every lane, lane after lane: two [lanes * N].

    >>> every_lane(2, 2)
    (tensor([0, 1, 0, 1]), tensor([0, 0, 1, 1]))
    """
    index = torch.arange(n_prompts).repeat(lanes)
    return index, torch.arange(lanes).repeat_interleave(n_prompts)
