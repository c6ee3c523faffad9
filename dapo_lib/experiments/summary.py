"""An experiment in a few numbers: arms, intervals, paired differences, two budgets.

Left out: curves; plots read the published table itself.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from dapo_lib.errors import expect
from dapo_lib.experiments.statistics import mean_interval, paired

METRICS = {
    "accuracy": "eval_accuracy",
    "length": "eval_length",
    "truncation": "eval_truncated",
    "entropy": "eval_entropy",
}


def at_rollout(frame: pd.DataFrame, rollout: int, column: str) -> pd.DataFrame:
    """One column at one iteration: a row a seed, a column an arm.

    Raises ``ValueError`` where nothing was evaluated there.
    """
    rows = frame[(frame.rollout == rollout) & frame[column].notna()]
    known = sorted(frame.rollout[frame[column].notna()].unique().astype(int).tolist())
    expect(len(rows) > 0, "rollout", rollout, f"one of {known} for {column}")
    wide = rows.pivot(index="seed", columns="arm", values=column)
    return wide[list(dict.fromkeys(frame.arm))]


def at_budget(
    frame: pd.DataFrame, budget: float, column: str, cost: str = "responses"
) -> pd.DataFrame:
    """A column where each run has spent `budget` of `cost`, between its evaluations.

    Linear between the evaluations on either side; a run that spent less gives its last
    value. Shape as :func:`at_rollout`.
    """
    import numpy as np

    rows = frame[frame[column].notna()]
    values = {
        (seed, arm): float(np.interp(budget, run[cost], run[column]))
        for (seed, arm), run in rows.groupby(["seed", "arm"])
    }
    wide = pd.Series(values).unstack()
    return wide[list(dict.fromkeys(frame.arm))]


def compare(wide: pd.DataFrame, baseline: str) -> dict[str, dict[str, Any]]:
    """Mean and interval of every arm, and its paired difference from `baseline`."""
    expect(baseline in wide, "baseline", repr(baseline), f"one of {list(wide)}")
    out: dict[str, dict[str, Any]] = {}
    for arm in wide:
        out[arm] = {"n": len(wide), **mean_interval(wide[arm]).as_dict()}
        if arm != baseline:
            p = paired(wide[baseline], wide[arm])
            out[arm]["difference"] = {
                **p.interval.as_dict(),
                "t": p.t,
                "same_sign": p.same_sign,
            }
    return out


def summary(frame: pd.DataFrame, baseline: str | None = None) -> dict[str, Any]:
    """Every metric at the middle and the last evaluation, per arm and paired.

    Keys are ``acc@8``-like for accuracy, else ``length@8``; `responses` and
    `cpu_seconds` are what an arm spent by the end (mean over seeds).
    """
    baseline = baseline or frame.arm.iloc[0]
    last = int(frame.rollout.max())
    seen = frame.rollout[frame.eval_accuracy.notna()].unique()
    middle = int(min(seen, key=lambda r: abs(r - last / 2)))
    values = {
        f"{'acc' if name == 'accuracy' else name}@{at}": compare(
            at_rollout(frame, at, column), baseline
        )
        for name, column in METRICS.items()
        if column in frame
        for at in (middle, last)
    }
    ends = frame[frame.rollout == last].groupby("arm", sort=False)
    spent = ends[["responses", "tokens", "updates", "cpu_seconds"]].mean()
    least = float(frame[frame.rollout == last].groupby("arm").responses.mean().min())
    equal = compare(at_budget(frame, least, "eval_accuracy"), baseline)
    return {
        "experiment": frame.attrs.get("experiment", "custom"),
        "baseline": baseline,
        "arms": list(dict.fromkeys(frame.arm)),
        "seeds": sorted({int(s) for s in frame.seed}),
        "metrics": values,
        "spent": spent.to_dict("index"),
        "equal_rollouts": {"responses": least, "accuracy": equal},
    }


def as_text(found: dict[str, Any]) -> str:
    """The summary as plain lines for a terminal."""
    lines = [f"{len(found['seeds'])} seeds, paired against {found['baseline']}"]
    groups = {**found["metrics"]}
    budget = found["equal_rollouts"]
    groups[f"accuracy at {budget['responses']:.0f} rollouts"] = budget["accuracy"]
    for name, arms in groups.items():
        lines.append(f"\n{name}")
        for arm, v in arms.items():
            line = f"  {arm:22}{v['mean']:8.3f} [{v['low']:.3f}, {v['high']:.3f}]"
            if "difference" in v:
                d = v["difference"]
                line += f"  {d['mean']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]"
                line += f" t {d['t']:.1f}, {d['same_sign']}/{v['n']}"
            lines.append(line)
    return "\n".join(lines)
