"""Recompute a fixed sample of a published experiment and compare (the ci profile).

Left out: exactness. Another processor adds in another order, and sampling amplifies
it; early iterations are compared, within a stated tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator

from dapo_lib.errors import Drift
from dapo_lib.experiments import published
from dapo_lib.experiments.catalogue import Experiment
from dapo_lib.experiments.language import run_language, table

ROLLOUTS = 4
TOLERANCE = {"eval_accuracy": 0.06, "eval_length": 0.8, "eval_truncated": 0.05}


def recheck(chosen: Experiment, rollouts: int = ROLLOUTS) -> Iterator[str]:
    """First and last arm, first seed, `rollouts` iterations; a line for each.

    Raises ``Drift`` naming experiment, arm, metric and both values.
    """
    known = published.load(chosen.name)
    for arm in dict.fromkeys([next(iter(chosen.arms)), list(chosen.arms)[-1]]):
        seed = chosen.seeds[0]
        config = {**chosen.arms[arm].model_dump(mode="json"), "seed": seed}
        config["schedule"] = {**config["schedule"], "rollouts": rollouts}
        found = table(arm, seed, run_language(config)).set_index("rollout")
        said = known[(known.arm == arm) & (known.seed == seed)].set_index("rollout")
        at = max(r for r in found.index if said.eval_accuracy.notna().get(r, False))
        for metric, tolerance in TOLERANCE.items():
            now, then = found.at[at, metric], said.at[at, metric]
            if abs(now - then) > tolerance:
                raise Drift(
                    f"{chosen.name}: {arm}, seed {seed}, {metric} at {at:.0f}: "
                    f"{now:.3f}, published {then:.3f}, tolerance {tolerance}; "
                    "look for what changed, or publish again with --profile full"
                )
        yield f"  {arm}: within tolerance at iteration {at:.0f}"
