"""The candidate setting's small suites as published results, with their provenance.

`publish("rare_gold")` runs a suite and writes published/suite_rare_gold.csv and .json.
Left out: the suites themselves, which are candidate/suites/.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dapo_lib.candidate.suites import (
    padded_pairs,
    rare_gold,
    real_solutions,
    solutions,
)
from dapo_lib.errors import expect
from dapo_lib.experiments.provenance import provenance
from dapo_lib.experiments.published import FOLDER, save
from dapo_lib.experiments.statistics import Interval, mean_interval
from dapo_lib.files import digest

SUITES: dict[str, Callable[..., pd.DataFrame]] = {
    "rare_gold": rare_gold.run,
    "padded_pairs": padded_pairs.run,
    "real_solutions": real_solutions.run,
}


def publish(
    name: str, seeds: Sequence[int] = range(20), folder: Path | str = FOLDER
) -> Path:
    """Run a suite on `seeds` and write suite_NAME.csv and .json; the CSV's path.

    Raises ``BadInput`` on an unknown name, or where a suite's data is not found.
    """
    expect(name in SUITES, "suite", repr(name), " | ".join(SUITES))
    began = time.perf_counter()
    frame = SUITES[name](seeds)
    facts = provenance(
        seeds=list(seeds),
        config=configuration(name),
        seconds=round(time.perf_counter() - began, 1),
        data=data_digest(name),
    )
    return save(f"suite_{name}", frame, facts, folder)


def configuration(name: str) -> dict[str, Any]:
    """The settings that a suite's numbers depend on, as plain JSON values."""
    if name == "rare_gold":
        algorithms = {"all": rare_gold.ALGORITHM}
        schedule = rare_gold.SCHEDULE
    else:
        suite = padded_pairs if name == "padded_pairs" else real_solutions
        algorithms, schedule = suite.ARMS, suite.SCHEDULE
    return {
        "schedule": schedule.model_dump(mode="json"),
        "algorithms": {k: a.model_dump(mode="json") for k, a in algorithms.items()},
    }


def data_digest(name: str) -> dict[str, str]:
    """SHA-256 of the data files that a suite reads, by file name."""
    if name != "real_solutions":
        return {}
    path = solutions.data_file()
    return {path.name: digest(path.read_bytes())}


def final(frame: pd.DataFrame, metric: str) -> dict[str, Interval]:
    """Mean and interval over seeds of a metric at each arm's last step.

    >>> rows = [("a", 0, 1, "x", 9.0), ("a", 0, 2, "x", 1.0), ("a", 1, 2, "x", 3.0)]
    >>> columns = ["arm", "seed", "step", "metric", "value"]
    >>> final(pd.DataFrame(rows, columns=columns), "x")["a"].mean
    2.0
    """
    rows = frame[frame.metric == metric]
    last = rows[rows.step == rows.groupby("arm").step.transform("max")]
    return {
        arm: mean_interval(group.sort_values("seed").value)
        for arm, group in last.groupby("arm", sort=False)
    }
