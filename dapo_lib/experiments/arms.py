"""The arms of the paper's table and figures in the language-model setting, by name.

Left out: how they are run (language.py) and which are compared (catalogue.py).
"""

from __future__ import annotations

from typing import Any

from dapo_lib.algorithm import ALGORITHMS, Algorithm

NAIVE = ALGORITHMS["grpo"]
DAPO = ALGORITHMS["dapo"]


def changed(base: Algorithm, **fields: Any) -> Algorithm:
    """A validated copy with some fields replaced.

    >>> changed(DAPO, eps_high=0.5).eps_high
    0.5
    """
    return Algorithm(**{**base.model_dump(), **fields})


# Table 1 of the paper: every row adds to the one before; soft replaces filtering
LADDER: dict[str, Algorithm] = {"naive": NAIVE}
LADDER["filtering"] = changed(LADDER["naive"], overlong="filter")
LADDER["clip_higher"] = changed(LADDER["filtering"], eps_high=0.28)
LADDER["soft"] = changed(LADDER["clip_higher"], overlong="soft")
LADDER["token_level"] = changed(LADDER["soft"], reduction="token_mean")
LADDER["dapo"] = changed(LADDER["token_level"], dynamic_sampling=True)

WITHOUT: dict[str, Algorithm] = {
    "without_clip_higher": changed(DAPO, eps_high=0.2),
    "without_dynamic": changed(DAPO, dynamic_sampling=False),
    "without_token_level": changed(DAPO, reduction="seq_mean"),
    "without_soft": changed(DAPO, overlong="none"),
}
ONLY: dict[str, Algorithm] = {
    "only_filtering": changed(NAIVE, overlong="filter"),
    "only_clip_higher": changed(NAIVE, eps_high=0.28),
    "only_clip_50": changed(NAIVE, eps_high=0.5),
    "only_soft": changed(NAIVE, overlong="soft"),
    "only_token_level": changed(NAIVE, reduction="token_mean"),
    "only_dynamic": changed(NAIVE, dynamic_sampling=True),
}
BEST = {"best_found": changed(DAPO, overlong="none", eps_high=0.5)}
ARMS: dict[str, Algorithm] = LADDER | WITHOUT | ONLY | BEST
