"""A grid of candidate-setting arms: one cached job an arm, all its seeds side by side.

Left out: the published ablation, which tunes and reads test once (derivation.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dapo_lib.candidate.recipe import ARMS
from dapo_lib.data.gsm8k import resolve_data
from dapo_lib.errors import BadInput
from dapo_lib.experiments.derivation import run_derivation
from dapo_lib.experiments.sweep import Job, sweep

POINTS = 20  # evaluations along a run


def candidate_sweep(
    arms: Sequence[str],
    *,
    seeds: int,
    steps: int,
    data: Path | None = None,
    offline: bool = True,
    workers: int | None = None,
    backend: str = "loky",
    folder: Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Curves of every arm and seed, a row an evaluation, columns as summary.py reads.

    `eval_accuracy` is the expected accuracy on held-out problems. Raises ``BadInput``
    on an unknown arm.
    """
    for arm in arms:
        if arm not in ARMS:
            raise BadInput(f"--arms: got {arm!r}, expected some of {', '.join(ARMS)}")
    if data is not None:
        os.environ["DAPO_DATA"] = str(data)  # workers read the same folder
    digests = resolve_data(offline=offline).source.sha256
    common = {"seeds": seeds, "steps": steps, "offline": offline, "data": digests}
    jobs = [Job({"arm": arm, **common}, run_arm) for arm in arms]
    results = sweep(
        jobs, workers=workers, backend=backend, folder=folder, progress=progress
    )
    frames = [_frame(arm, r) for arm, r in zip(arms, results, strict=True)]
    return pd.concat(frames, ignore_index=True)


def run_arm(config: dict[str, Any]) -> dict[str, Any]:
    """One arm, all seeds; its curve as JSON lists [points][seeds]."""
    data = resolve_data(offline=config["offline"])
    result = run_derivation(
        data.train,
        data.test,
        algorithm=config["arm"],
        seeds=config["seeds"],
        steps=config["steps"],
        every=max(1, config["steps"] // POINTS),
    )
    curve = result.run.curve
    names = ("expected_accuracy", "expected_length", "entropy")
    return {
        "steps": curve.steps.tolist(),
        "seeds": list(result.run.seeds),
        "responses": curve.rollouts.tolist(),
        "tokens": float(result.run.tokens.mean()),
        "seconds": result.run.seconds / config["seeds"],
        **{name: getattr(curve.exact, name).tolist() for name in names},
    }


def _frame(arm: str, result: dict[str, Any]) -> pd.DataFrame:
    rows = []
    for i, step in enumerate(result["steps"]):
        for j, seed in enumerate(result["seeds"]):
            rows.append(
                {
                    "arm": arm,
                    "seed": seed,
                    "rollout": step,
                    "updates": step,
                    "responses": result["responses"][i][j],
                    "tokens": result["tokens"],
                    "cpu_seconds": result["seconds"],
                    "eval_accuracy": result["expected_accuracy"][i][j],
                    "eval_length": result["expected_length"][i][j],
                    "eval_entropy": result["entropy"][i][j],
                }
            )
    return pd.DataFrame(rows)
