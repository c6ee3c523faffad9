"""What a cut hides: would the answers that L_max cuts have been right?

A run is trained under its own cap; at times the policy answers fixed prompts under a
far longer one. An answer that needs more than L_max tokens is what the run sees as cut
and scores -1. Left out: the training curves; those are the `ladder` experiment.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from dapo_lib.experiments.arms import LADDER
from dapo_lib.experiments.provenance import provenance
from dapo_lib.experiments.published import FOLDER, save
from dapo_lib.lm.evaluate import FIXED_SEED, PROMPTS, SAMPLES
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.run import DIGIT_SUM, setting
from dapo_lib.metrics import Ratio
from dapo_lib.train import Schedule, train

ARMS = ("naive", "filtering")
WIDE = 96  # tokens, four times the cap of the runs


def uncut(
    policy: LMPolicy,
    *,
    l_max: int,
    wide: int = WIDE,
    seed: int = 0,
    prompts: int = PROMPTS,
    samples: int = SAMPLES,
) -> dict[str, float]:
    """Sample under the cap `wide`; what a cap of `l_max` would have made of it.

    `cut`: share of responses longer than `l_max` tokens; `right_if_cut`: share of those
    that end in the right answer all the same (NaN if none is cut); `lost`: the share of
    the right responses that the cap scores as wrong.
    """
    training = policy.task
    fixed = type(training)(FIXED_SEED, l_max=wide, size=prompts)
    generator = torch.Generator().manual_seed(seed)
    policy.task = fixed
    try:
        drawn = fixed.draw(torch.tensor([prompts]))
        rollout = fixed.grade(policy.sample(drawn, samples, generator))
    finally:
        policy.task = training
    cut, right = rollout.length > l_max, rollout.correct == 1
    both = (cut & right).sum().item()
    return {
        "cut": cut.double().mean().item(),
        "right_if_cut": Ratio(both, cut.sum().item()).value,
        "lost": Ratio(both, right.sum().item()).value,
    }


def run(
    seeds: Sequence[int],
    *,
    arms: Sequence[str] = ARMS,
    schedule: Schedule = DIGIT_SUM,
    every: int = 2,
) -> pd.DataFrame:
    """Train each arm of the ladder and look past its cap every `every` rollouts.

    Columns: arm, seed, rollout, updates, and those of :func:`uncut`.
    """
    rows = [
        {"arm": arm, "seed": seed, **row}
        for arm in arms
        for seed in seeds
        for row in _one(arm, seed, schedule, every)
    ]
    return pd.DataFrame(rows)


def _one(arm: str, seed: int, schedule: Schedule, every: int) -> list[dict[str, Any]]:
    where = setting(LADDER[arm], schedule, seed=seed)

    def look(rollout: int) -> dict[str, Any]:
        own = 1_000_000 * (seed + 1) + rollout
        seen = uncut(where.policy, l_max=schedule.l_max, seed=own)
        return {"rollout": rollout, "updates": where.state.updates, **seen}

    rows = [look(0)]
    for step in train(LADDER[arm], schedule, *where):
        if step.rollout % every == 0:
            rows.append(look(step.rollout))
    return rows


def publish(seeds: Sequence[int], folder: Path | str = FOLDER) -> Path:
    """Run both arms on `seeds` and write truncation_noise.csv and .json."""
    began = time.process_time()
    frame = run(seeds)
    facts = provenance(
        seeds=list(seeds),
        arms=list(ARMS),
        wide=WIDE,
        schedule=DIGIT_SUM.model_dump(mode="json"),
        seconds=round(time.process_time() - began, 1),
    )
    return save("truncation_noise", frame, facts, folder, digits=5)
