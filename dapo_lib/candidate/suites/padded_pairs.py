"""The overlong penalty where it acts: every answer exists short and padded.

Three contents a prompt, one of them right, each short or padded by the same number
of tokens; padding says nothing about being right. A policy that pads 35 % of its
answers can stop at no cost, and only the penalty tells it to. Left out: answers that
are cut; the longest padded one ends exactly at the cap.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.suites.actions import ActionTask, Table, TabularPolicy
from dapo_lib.candidate.suites.tidy import every_lane, tidy
from dapo_lib.train import Schedule, start, train

PROMPTS = 16
CONTENTS = 3
SHORT = (20, 32)  # tokens, both ends included
PADDING = 46  # tokens
P_PADDED = 0.35
SCHEDULE = Schedule(
    rollouts=300,
    prompts_per_rollout=4,
    group_size=8,
    l_max=SHORT[1] + PADDING,
    minibatches=1,
    refresh_every=16,
    optimiser="sgd",
    lr=0.6,
    clip_norm=None,
)
ARMS: dict[str, Algorithm] = {
    f"{overlong} {reduction}": Algorithm(
        overlong=overlong, l_cache=24, reduction=reduction
    )
    for overlong in ("none", "soft")
    for reduction in ("token_mean", "seq_mean")
}


def run(
    seeds: Sequence[int] = range(20),
    *,
    arms: Sequence[str] = tuple(ARMS),
    schedule: Schedule = SCHEDULE,
    every: int = 50,
) -> pd.DataFrame:
    """With and without the soft penalty, under token-level and sample-level loss.

    Columns as :func:`tidy`. Metrics, exact and averaged over prompts, every `every`
    rollouts: ``accuracy`` (probability of a right answer), ``padded_if_right``
    P(padded | right), ``length`` (expected tokens).
    """
    return pd.concat(
        [_arm(seeds, arm, schedule, every) for arm in arms], ignore_index=True
    )


def table() -> Table:
    """The prompts: column 2c is content c short, 2c + 1 padded; content 0 is right.

    Shape: correct, length [16, 6]. The lengths are the same in every run.
    """
    generator = torch.Generator().manual_seed(0)
    low, high = SHORT
    short = torch.randint(low, high + 1, (PROMPTS, CONTENTS), generator=generator)
    length = torch.stack([short, short + PADDING], -1).reshape(PROMPTS, -1)
    correct = torch.zeros_like(length)
    correct[:, :2] = 1
    return Table(correct, length)


def measure(policy: TabularPolicy, world: Table, lanes: int) -> dict[str, Tensor]:
    """The three metrics of :func:`run`, each [lanes]."""
    index, lane = every_lane(len(world.length), lanes)
    pi = policy.probabilities(index, lane).reshape(lanes, *world.length.shape)
    right = pi[..., 0] + pi[..., 1]
    return {
        "accuracy": right.mean(1),
        "padded_if_right": (pi[..., 1] / right).mean(1),
        "length": (pi * world.length).sum(-1).mean(1),
    }


def _arm(seeds, arm: str, schedule: Schedule, every: int) -> pd.DataFrame:
    world, lanes = table(), len(seeds)
    odds = torch.tensor([1 - P_PADDED, P_PADDED] * CONTENTS, dtype=torch.float64)
    policy = TabularPolicy(odds.log().expand(PROMPTS, -1), world.length, lanes)
    task = ActionTask(world)
    state = start(ARMS[arm], schedule, policy, Lanes(seeds), lanes=lanes)
    frames = [tidy(arm, seeds, 0, **measure(policy, world, lanes))]
    for step in train(ARMS[arm], schedule, policy, task, state):
        if step.rollout % every == 0 or step.rollout == schedule.rollouts:
            metrics = measure(policy, world, lanes)
            frames.append(tidy(arm, seeds, step.rollout, **metrics))
    return pd.concat(frames, ignore_index=True)
