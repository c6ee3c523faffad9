"""The paper's Table 1 and a public rerun of it, to set beside our runs.

Left out: our numbers (published/ladder.csv) and any number read off a figure.
"""

from __future__ import annotations

from typing import NamedTuple


class Rung(NamedTuple):
    """AIME 2024 accuracy in points (avg@32), one run each, no interval.

    `rerun` is what the public recipe's README reports for the same rung, where it does.
    """

    paper: float
    rerun: float | None


# Table 1 of arXiv 2503.14476v1, cumulative; names as in arms.LADDER. The rerun is the
# recipe's README (verl-recipe, dapo): 44 without token-level loss and dynamic sampling
# (another image and other hardware), 50 without dynamic sampling, 52 in full.
TABLE_1: dict[str, Rung] = {
    "naive": Rung(30, None),
    "filtering": Rung(36, None),
    "clip_higher": Rung(38, None),
    "soft": Rung(41, 44),
    "token_level": Rung(42, 50),
    "dapo": Rung(50, 52),
}
R1_ZERO = 47.0  # points, DeepSeek-R1-Zero-Qwen-32B: the table's reference line
PROBLEMS, SAMPLES = 30, 32  # of one evaluation in Table 1


def resolution(problems: int = PROBLEMS, samples: int = SAMPLES) -> float:
    """What one response is worth in an average over problems and samples, in points.

    >>> round(resolution(), 3)
    0.104
    """
    return 100 / (problems * samples)
