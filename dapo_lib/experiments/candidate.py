"""What `dapo train` and `dapo sweep` run in the candidate setting, as plain payloads.

Left out: parsing and printing (cli/), and the recipes themselves (candidate/).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dapo_lib.candidate.recipe import ARMS
from dapo_lib.candidate.seed import format_table, run_seed
from dapo_lib.data.gsm8k import Data
from dapo_lib.experiments.arms import changed
from dapo_lib.experiments.derivation import METRICS, Result, run_derivation
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


def train_derivation(
    data: Data,
    *,
    algorithm: str,
    seeds: Sequence[int],
    eps_low: float | None = None,
    eps_high: float | None = None,
    **options: Any,
) -> tuple[dict[str, Any], str]:
    """The `derivation` recipe over seeds: its JSON payload, and the table to print.

    An eps that is None keeps the algorithm's own. Other `options` are those of
    :func:`dapo_lib.experiments.derivation.run_derivation`.
    """
    clip = {"eps_low": eps_low, "eps_high": eps_high}
    clip = {name: value for name, value in clip.items() if value is not None}
    chosen = changed(ARMS[algorithm][0], **clip) if clip else algorithm
    result = run_derivation(
        data.train, data.test, algorithm=chosen, seeds=seeds, **options
    )
    payload = finite(result.as_dict())
    payload["config"] = {"setting": "candidate", **payload["config"]}
    facts = {"seconds": result.run.seconds, "data": data.source.as_dict()}
    payload["provenance"] = provenance(seeds=list(seeds), **facts)
    return payload, derivation_table(result)


def derivation_table(result: Result) -> str:
    """Untrained -> trained on held-out problems, mean [95 % interval] over seeds."""
    metrics, n = result.metrics(), len(result.run.seeds)
    lines = [f"held-out, {n} seed(s){'untrained':>17}{'trained':>11}"]
    for name in METRICS:
        before, after = metrics["untrained"][name], metrics["test"][name]
        interval = f" [{after['low']:.4f}, {after['high']:.4f}]" if n > 1 else ""
        row = f"{name:<20}{before['mean']:>17.4f}{after['mean']:>11.4f}{interval}"
        lines.append(row)
    lines.append(f"supervised ceiling {metrics['ceiling']:.4f}, leak-only score ")
    lines[-1] += f"{metrics['leak_only']:.4f}"
    if result.run.exhausted:
        short, steps = result.run.exhausted, int(result.run.curve.steps[-1])
        lines.append(f"{short} of {steps} steps found too few groups with a signal: ")
        lines[-1] += "lower --lr, or raise --group-size"
    done = result.run
    lines.append(f"rollouts {float(done.rollouts.mean()):.0f} responses a seed, ")
    lines[-1] += f"{done.seconds:.2f} s for all seeds"
    return "\n".join(lines)


def finite(node: Any) -> Any:
    """A JSON value in which a number that is not finite is None.

    >>> finite({"low": float("-inf"), "mean": [0.5]})
    {'low': None, 'mean': [0.5]}
    """
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [finite(value) for value in node]
    if isinstance(node, float) and not math.isfinite(node):
        return None
    return node
