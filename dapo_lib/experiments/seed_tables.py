"""The `seed` recipe's table, its dissection and its leaks, as published results.

`publish()` runs everything on GSM8K and writes published/seed_table,
seed_arms and seed_leaks. Left out: the embedded problems; `resolve_data` would take
them, but the table that is dissected is GSM8K's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.dissect import (
    CHANCE,
    LEAKS,
    TWENTY,
    dissect,
    leak_grid,
    leak_rule,
    validation_table,
)
from dapo_lib.candidate.seed import (
    SeedResult,
    Variant,
    run_seeds,
    seed_algorithm,
    seed_schedule,
)
from dapo_lib.data.gsm8k import Data, resolve_data
from dapo_lib.experiments.provenance import provenance
from dapo_lib.experiments.published import FOLDER, save

PUBLISHED_SEED = 42
LINE = seed_algorithm()
ARMS: dict[str, tuple[Algorithm, Variant]] = {
    "published": (LINE, Variant()),
    "no KL": (seed_algorithm(kl_coef=0.0), Variant()),
    "symmetric clip": (seed_algorithm(eps_high=0.2), Variant()),
    "filter on correctness": (
        LINE.model_copy(update={"dynamic_sampling": True}),
        Variant(),
    ),
    "no length": (LINE, Variant(equal_lengths=True)),
    "leaks removed": (LINE, Variant(leaks=LEAKS)),
}


def publish(
    data: Data | None = None,
    *,
    seeds: Sequence[int] = TWENTY,
    steps: int = 300,
    folder: Path | str = FOLDER,
) -> list[Path]:
    """Run all and write the tables with their provenance; the CSVs' paths.

    Raises ``BadInput`` where the data are not found.
    """
    data = data or resolve_data(offline=True)
    frames: dict[str, Callable[..., pd.DataFrame]] = {
        "seed_table": table_frame,
        "seed_arms": arms_frame,
        "seed_leaks": leaks_frame,
    }
    written = []
    for name, make in frames.items():
        began = time.perf_counter()
        frame = make(data, seeds=seeds, steps=steps)
        facts = provenance(
            seeds=[PUBLISHED_SEED] if name == "seed_table" else list(seeds),
            config=_configuration(steps),
            seconds=round(time.perf_counter() - began, 1),
            data=data.source.as_dict(),
        )
        written.append(save(name, frame, facts, folder))
    return written


def table_frame(data: Data, *, seeds: Sequence[int], steps: int) -> pd.DataFrame:
    """The published run (seed 42) and what it is made of: columns `fact`, `value`.

    `untrained.*`, `trained.*` and `whole_test.*` are :class:`Scores`, `last.*` the last
    step's diagnostics, `rule.*` counts of the untrained leak-only rule, `slot.N` how
    many of the validation rows hold gold in slot N, `kl.*` both KL directions.
    """
    (run,) = run_seeds(data.train, data.test, seeds=[PUBLISHED_SEED], steps=steps)
    facts = dissect(data.train, data.test, seeds=[PUBLISHED_SEED], steps=steps)
    whole = validation_table(data.test, rows=None)
    table = validation_table(data.test)
    groups: dict[str, dict[str, float]] = {
        "untrained": asdict(run.untrained),
        "trained": asdict(run.trained),
        "whole_test": asdict(run.whole_test),
        "last": run.diagnostics,
        "trained_hits": facts["trained"],
        "rule": _hits(table),
        "rule_whole_test": _hits(whole),
        "slot": dict(enumerate(facts["gold_slots"])),
        "kl": facts["kl"],
    }
    rows = [(f"{g}.{k}", float(v)) for g, d in groups.items() for k, v in d.items()]
    return pd.DataFrame(rows, columns=["fact", "value"])


def arms_frame(data: Data, *, seeds: Sequence[int], steps: int) -> pd.DataFrame:
    """One row an arm of ARMS and seed: accuracies, KL, and what each filter would do.

    `constant`, `all_wrong`, `all_right` count the groups of `steps` that the recipe's
    test and DAPO's would drop. Accuracies are greedy.
    """
    rows = []
    for arm, (algorithm, variant) in ARMS.items():
        results = run_seeds(
            data.train,
            data.test,
            seeds=seeds,
            steps=steps,
            algorithm=algorithm,
            variant=variant,
        )
        rows += [{"arm": arm} | _row(r) for r in results]
    return pd.DataFrame(rows)


def leaks_frame(data: Data, *, seeds: Sequence[int], steps: int) -> pd.DataFrame:
    """One row a choice of leaks and lengths, seed and point of the curve.

    `removed` joins names with +; `accuracy` is greedy, on the validation rows, at
    `step`; `rule` and `accuracy_whole_test` belong to the whole run.
    """
    rows = []
    for run in leak_grid(data.train, data.test, seeds=seeds, steps=steps):
        same = {
            "removed": "+".join(run["removed"]) or "none",
            "equal_lengths": run["equal_lengths"],
            "seed": run["seed"],
            "rule": run["rule"],
            "accuracy_whole_test": run["accuracy_whole_test"],
        }
        rows += [same | {"step": s, "accuracy": a} for s, a in run["curve"]]
    return pd.DataFrame(rows)


def _row(result: SeedResult) -> dict[str, Any]:
    found = result.diagnostics
    return {
        "seed": result.config["seed"],
        "untrained": result.untrained.accuracy,
        "accuracy": result.trained.accuracy,
        "accuracy_whole_test": result.whole_test.accuracy,
        "expected_accuracy": result.trained.expected_accuracy,
        "kl_reference": result.trained.kl_reference,
        "constant": found["constant_groups"],
        "all_wrong": found["all_wrong_groups"],
        "all_right": found["all_right_groups"],
        "steps": result.config["schedule"]["rollouts"],
    }


def _hits(table: Any) -> dict[str, float]:
    both = leak_rule(table)
    alone = {name: leak_rule(table, [name]).right for name in LEAKS}
    return {"right": both.right, "rows": both.rows, "chance": CHANCE} | alone


def _configuration(steps: int) -> dict[str, Any]:
    return {
        "schedule": seed_schedule(steps).model_dump(mode="json"),
        "algorithms": {k: a.model_dump(mode="json") for k, (a, _) in ARMS.items()},
        "variants": {k: asdict(v) for k, (_, v) in ARMS.items()},
    }
