"""What `dapo train` and `dapo sweep` run in the candidate setting, as plain payloads.

Left out: parsing and printing (cli/), and the recipes themselves (candidate/).
"""

from __future__ import annotations

from typing import Any

from dapo_lib.candidate.seed import format_table, run_seed
from dapo_lib.data.gsm8k import Data
from dapo_lib.experiments.provenance import provenance

SCHEMA = "dapo-book/train/1"


def train_seed(
    data: Data,
    *,
    steps: int,
    group_size: int,
    seed: int,
    maximum_examples: int,
    eps_low: float,
    eps_high: float,
) -> tuple[dict[str, Any], str]:
    """One run of the `seed` recipe: its JSON payload, and the table to print."""
    result = run_seed(
        data.train,
        data.test,
        steps=steps,
        group_size=group_size,
        seed=seed,
        maximum_examples=maximum_examples,
        eps_low=eps_low,
        eps_high=eps_high,
    )
    payload = result.as_dict()
    seconds = payload.pop("seconds")
    payload["config"] = {"setting": "candidate", "recipe": "seed", **payload["config"]}
    payload["provenance"] = provenance(
        seed=seed, seconds=seconds, data=data.source.as_dict()
    )
    return payload, format_table(result)
