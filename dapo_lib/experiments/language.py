"""One run of the language-model setting as a job: a configuration in, records out.

Left out: the grid (sweep.py) and the choice of arms (catalogue.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from dapo_lib.algorithm import ALGORITHMS, Algorithm
from dapo_lib.errors import BadInput
from dapo_lib.experiments.arms import ARMS, changed
from dapo_lib.experiments.session import Session
from dapo_lib.experiments.sweep import Job
from dapo_lib.lm.run import SCHEDULES, evaluation, records, run_lm, setting
from dapo_lib.lm.warm_start import named
from dapo_lib.train import Schedule

UPDATES_SHOWN = (1, 2, 4, 8, 16)  # clip fractions are kept for these update indices


class LanguageRun(BaseModel):
    """An arm: everything about a run but its seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm
    schedule: Schedule = SCHEDULES["digit_sum"]
    warm_start: str = "digit_sum"
    warm_seed: int = Field(0, ge=0)
    coin_flip: bool = False
    evaluate_every: int = Field(2, ge=0)

    def job(self, seed: int) -> Job:
        """The job of one seed."""
        return Job({**self.model_dump(mode="json"), "seed": seed}, run_language)


def language_run(options: dict[str, Any]) -> LanguageRun:
    """An arm from command-line options; an option that is None keeps its default.

    Raises ``BadInput`` on an unknown arm.
    """
    name = options["arm"] or options["algorithm"]
    known = ARMS | ALGORITHMS
    if name not in known:
        raise BadInput(f"--arm: got {name!r}, expected one of {', '.join(known)}")
    clip = {k: options[k] for k in ("eps_low", "eps_high") if options[k] is not None}
    base = SCHEDULES[named(options["warm_start"]).task]
    given = {
        "rollouts": options["iterations"],
        "prompts_per_rollout": options["prompts_per_step"],
        "l_max": options["l_max"],
        "group_size": options["group_size"],
        "lr": options["lr"],
    }
    fields = {k: v for k, v in given.items() if v is not None}
    return LanguageRun(
        algorithm=changed(known[name], **clip),
        schedule=Schedule(**{**base.model_dump(), **fields}),
        warm_start=options["warm_start"],
        warm_seed=options["warm_seed"],
    )


def run_language(config: dict[str, Any]) -> dict[str, Any]:
    """Train one arm with one seed; the records as JSON (not a number: None)."""
    seed = config["seed"]
    arm = LanguageRun(**{k: v for k, v in config.items() if k != "seed"})
    records = run_lm(
        arm.algorithm,
        arm.schedule,
        warm_start=named(arm.warm_start, arm.warm_seed),
        seed=seed,
        coin_flip=arm.coin_flip,
        evaluate_every=arm.evaluate_every,
    )
    return {"records": [flat(r) for r in records]}


def flat(record: dict[str, Any]) -> dict[str, float | None]:
    """One record as scalars; lists by update index keep a few indices.

    >>> flat({"a": True, "b": float("nan"), "c_by_update": [0.0, 0.5]})
    {'a': 1.0, 'b': None, 'c_u1': 0.0, 'c_u2': 0.5}
    """
    row: dict[str, float | None] = {}
    for name, value in record.items():
        if isinstance(value, str):
            continue  # a note is for the reader of one run
        if isinstance(value, list):
            stem = name.removesuffix("_by_update")
            shown = [u for u in UPDATES_SHOWN if u <= len(value)]
            row |= {f"{stem}_u{u}": _number(value[u - 1]) for u in shown}
        else:
            row[name] = _number(value)
    return row


def _number(value: float | bool) -> float | None:
    return float(value) if math.isfinite(value) else None


def table(arm: str, seed: int, result: dict[str, Any]) -> pd.DataFrame:
    """The records of one run as rows, with responses and tokens counted from the start.

    `responses` become cumulative here; `tokens` and `cpu_seconds` are already.
    """
    frame = pd.DataFrame(result["records"])
    frame["responses"] = frame["responses"].fillna(0).cumsum()
    frame[["tokens", "cpu_seconds"]] = frame[["tokens", "cpu_seconds"]].fillna(0)
    frame.insert(0, "arm", arm)
    frame.insert(1, "seed", seed)
    return frame


def session(arm: LanguageRun, seed: int, folder: Path) -> Session:
    """A resumable run of one arm in a folder; see session.py."""
    run = setting(
        arm.algorithm,
        arm.schedule,
        warm_start=named(arm.warm_start, arm.warm_seed),
        seed=seed,
        coin_flip=arm.coin_flip,
    )

    def rows(first: bool) -> Iterator[dict[str, Any]]:
        if first and arm.evaluate_every:
            yield flat({"rollout": 0, "updates": 0, **evaluation(run, 0)})
        every = arm.evaluate_every
        for record in records(arm.algorithm, arm.schedule, run, evaluate_every=every):
            note = {"note": record["note"]} if "note" in record else {}
            yield flat(record) | note

    config = {"setting": "lm", **arm.model_dump(mode="json"), "seed": seed}
    return Session(folder, config, run, rows)
