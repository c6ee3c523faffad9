"""DAPO with its sampler elsewhere: what lag and rounding cost, arm by arm.

The arms differ from DAPO of the ladder in where the samples come from and in nothing
else; `on_time` is that run. Left out: what lag buys, which is time; engines/cost.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dapo_lib.experiments.arms import DAPO
from dapo_lib.experiments.language import flat
from dapo_lib.experiments.provenance import provenance
from dapo_lib.experiments.published import FOLDER, save
from dapo_lib.experiments.sweep import Job, sweep
from dapo_lib.lm.detached import DetachedPolicy
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.run import DIGIT_SUM, evaluation, records, setting
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, train

ARMS: dict[str, dict[str, Any]] = {
    "on_time": {},
    **{f"lag_{n}": {"lag": n} for n in (1, 2, 4, 8)},
    **{f"lag_{n}_recomputed": {"lag": n, "old": "trainer"} for n in (4, 8)},
    **{f"{w}": {"weights": w} for w in ("bfloat16", "int8", "int4")},
    "int4_recomputed": {"weights": "int4", "old": "trainer"},
}
KEPT = (
    "rollout",
    "updates",
    "responses",
    "train_accuracy",
    "kept",
    "clip_low",
    "clip_high",
    "clip_low_u1",
    "clip_high_u1",
    "entropy",
    "length",
    "truncated",
    "eval_accuracy",
    "eval_entropy",
    "eval_length",
    "eval_truncated",
    "cpu_seconds",
)


def job(arm: str, seed: int, schedule: Schedule = DIGIT_SUM) -> Job:
    """The job of one arm and seed."""
    how = {"arm": arm, **ARMS[arm], "seed": seed}
    return Job({**how, "schedule": schedule.model_dump(mode="json")}, run_detached)


def run_detached(config: dict[str, Any]) -> dict[str, Any]:
    """Train one arm with one seed; its records, evaluated every second rollout."""
    fields = dict(config)
    fields.pop("arm")
    seed, schedule = fields.pop("seed"), Schedule(**fields.pop("schedule"))
    return {"records": list(_records(schedule, seed, fields))}


def _records(
    schedule: Schedule, seed: int, apart: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    run = setting(DAPO, schedule, seed=seed)
    elsewhere = run._replace(policy=DetachedPolicy(run.policy, **apart))
    yield flat({"rollout": 0, "updates": 0, **evaluation(run, 0)})
    for record in records(DAPO, schedule, elsewhere, evaluate_every=0):
        # the trainer's weights are what is evaluated, not the sampler's
        due = record["rollout"] % 2 == 0
        seen = evaluation(run, record["rollout"]) if due else {}
        yield flat(record | seen)


def table(
    seeds: Sequence[int],
    arms: Sequence[str] = tuple(ARMS),
    schedule: Schedule = DIGIT_SUM,
    **options: Any,
) -> pd.DataFrame:
    """All arms and seeds, from the cache where they are; a row a rollout.

    `options` go to :func:`dapo_lib.experiments.sweep.sweep`. `responses` are counted
    from the start of a run.
    """
    pairs = [(arm, seed) for seed in seeds for arm in arms]
    results = sweep([job(*pair, schedule) for pair in pairs], **options)
    frames = []
    for (arm, seed), result in zip(pairs, results, strict=True):
        frame = pd.DataFrame(result["records"]).reindex(columns=list(KEPT))
        frame["responses"] = frame["responses"].fillna(0).cumsum()
        frame.insert(0, "arm", arm)
        frame.insert(1, "seed", seed)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


class Watched(LMPolicy):
    """A policy that keeps, of every update, how far its tokens had moved before it."""

    def __init__(self, policy: LMPolicy) -> None:
        super().__init__(policy.model, policy.task, temperature=policy.temperature)
        self.seen: list[Tensor] = []

    def log_prob(self, rollout: Rollout) -> Tensor:
        """As ever; the log-ratios of the unmasked tokens, in nats, are noted."""
        scored = super().log_prob(rollout)
        moved = scored.detach() - rollout.log_prob_old
        self.seen.append(moved[rollout.mask])
        return scored


def drift(
    seed: int, *, rollouts: int = 4, schedule: Schedule = DIGIT_SUM
) -> list[Tensor]:
    """Log-ratios [tokens] of each update of the last of `rollouts` rollouts of DAPO.

    What 16 updates on one rollout do to Eq 8, with the sampler on time: at the first
    update every ratio is 1 but for rounding.
    """
    schedule = Schedule(**{**schedule.model_dump(), "rollouts": rollouts})
    run = setting(DAPO, schedule, seed=seed)
    watched = Watched(run.policy)
    for step in train(DAPO, schedule, watched, run.task, run.state):
        if step.rollout < rollouts:
            watched.seen.clear()
    return watched.seen


def mismatch(
    seed: int, *, prompts: int = 32, group_size: int = 16, **apart: Any
) -> Tensor:
    """Log-ratios [tokens] trainer / sampler of one batch at the warm start, in nats.

    `apart` as in :class:`dapo_lib.lm.detached.DetachedPolicy`. No update was made: what
    is not 0 is error.
    """
    run = setting(DAPO, DIGIT_SUM, seed=seed)
    policy = DetachedPolicy(run.policy, **apart)
    policy.refresh()
    drawn = run.task.draw(torch.tensor([prompts]), run.state.generator)
    rollout = policy.sample(drawn, group_size, run.state.generator)
    return (policy.scored(rollout) - rollout.log_prob_old)[rollout.mask]


def publish(seeds: Sequence[int], folder: Path | str = FOLDER, **options: Any) -> Path:
    """Run every arm and write detached.csv and .json; `options` as :func:`table`."""
    frame = table(seeds, **options)
    seconds = frame.groupby(["arm", "seed"]).cpu_seconds.max().sum()
    facts = provenance(
        seeds=list(seeds),
        arms=ARMS,
        schedule=DIGIT_SUM.model_dump(mode="json"),
        seconds=round(float(seconds), 1),
    )
    return save("detached", frame, facts, folder, digits=5)
