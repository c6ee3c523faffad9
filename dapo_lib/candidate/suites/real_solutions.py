"""The filter where it acts: four real solutions to each of 1,319 GSM8K test problems.

Texts, labels and lengths are real (example_model_solutions.jsonl of GSM8K); the policy
picks one of the four by features of each text alone. Two arms differ in one line: what
the filter reads. In a third of the problems all four are wrong; once rewards are shaped
by length, such a group looks alive, and dividing by its tiny standard deviation turns
"wrong but short" into advantage +1 (fault F07). Left out: which model wrote a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from dapo_lib.advantage import TOLERANCE
from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.suites.actions import ActionTask, LinearPolicy, Table
from dapo_lib.candidate.suites.solutions import (
    TRAIN,
    VALIDATION,
    Solutions,
    baselines,
    data_file,
    load,
)
from dapo_lib.candidate.suites.tidy import every_lane, tidy
from dapo_lib.errors import expect
from dapo_lib.rollout import Rollout
from dapo_lib.sampling import DynamicSampler
from dapo_lib.train import Schedule, shaped_reward, start, train

L_MAX = 400  # tokens; the longest text has 395, so none is cut
SCHEDULE = Schedule(
    rollouts=200,
    prompts_per_rollout=8,
    group_size=4,
    l_max=L_MAX,
    minibatches=1,
    refresh_every=16,
    optimiser="sgd",
    lr=0.03,
    clip_norm=None,
)
WIDE = Algorithm(l_cache=360)  # the penalty starts at 40 tokens
NARROW = Algorithm(l_cache=80)  # a fifth of the cap, as in the paper: it starts at 320
ARMS: dict[str, Algorithm] = {
    "filter on correctness": WIDE,
    "filter on shaped reward": WIDE,
    "no filter": WIDE.model_copy(update={"dynamic_sampling": False}),
    "filter on correctness, narrow cache": NARROW,
    "filter on shaped reward, narrow cache": NARROW,
}


@dataclass
class FilterOnShapedReward(DynamicSampler):
    """Fault F07 on purpose: keeps a group wherever its *shaped* reward varies.

    Everything else is the library's sampler. Never use it to train; it exists so that
    the damage can be measured.
    """

    shape: Callable[[Rollout], Tensor] | None = None

    def fill(self, draw, generate):
        """As the base class, but the filter looks at rewards after shaping."""

        def watched(prompts):
            rollout = generate(prompts)
            alive = varies(self.shape(rollout), rollout.group_id)
            self.keep = lambda n_correct, size: alive
            return rollout

        return super().fill(draw, watched)


def varies(reward: Tensor, group_id: Tensor) -> Tensor:
    """Which groups, in the order of their ids, have rewards that are not all equal.

    Shape: reward, group_id [B] -> [groups] bool.

    >>> varies(torch.tensor([-1.0, -1.5, -1.0, -1.0]), torch.tensor([0, 0, 1, 1]))
    tensor([ True, False])
    """
    group = torch.unique(group_id, return_inverse=True)[1]
    span = torch.full((2, int(group.max()) + 1), torch.inf, dtype=reward.dtype)
    span[0].scatter_reduce_(0, group, reward, "amin")
    span[1].scatter_reduce_(0, group, -reward, "amin")
    return -span[1] - span[0] > TOLERANCE


def run(
    seeds: Sequence[int] = range(20),
    *,
    data: Path | str | None = None,
    arms: Sequence[str] = tuple(ARMS),
    schedule: Schedule = SCHEDULE,
    evaluate_on: slice = slice(TRAIN + VALIDATION, None),
) -> pd.DataFrame:
    """Each arm's run and what its policy then picks on problems it never saw.

    Columns as :func:`tidy`. Metrics: ``greedy`` (share of problems whose preferred
    solution is right), ``accuracy`` (its expectation under the policy), ``length``
    (expected tokens), ``dead_share`` (of the groups trained on, how many were all right
    or all wrong). The arm ``baselines`` has one row a rule, seed -1: see
    `solutions.baselines`. Hyper-parameters were chosen on the validation problems.
    """
    solutions = load(data_file(data))
    frames = [_arm(solutions, seeds, arm, schedule, evaluate_on) for arm in arms]
    rules = baselines(solutions, evaluate_on)
    rules = {name: torch.tensor([value]) for name, value in rules.items()}
    return pd.concat([*frames, tidy("baselines", [-1], 0, **rules)], ignore_index=True)


def measure(
    solutions: Solutions, policy: LinearPolicy, lanes: int, where: slice
) -> dict[str, Tensor]:
    """greedy, accuracy and length on the problems `where`: [lanes] each."""
    rows = torch.arange(len(solutions.correct))[where]
    index, lane = every_lane(len(rows), lanes)
    shape = (lanes, len(rows), -1)
    pi = policy.probabilities(rows[index], lane).reshape(shape)
    correct, length = solutions.correct[rows].double(), solutions.length[rows]
    best = pi.argmax(-1, keepdim=True)
    greedy = correct.expand_as(pi).gather(-1, best)
    return {
        "greedy": greedy.mean((1, 2)),
        "accuracy": (pi * correct).sum(-1).mean(1),
        "length": (pi * length).sum(-1).mean(1),
    }


def _arm(solutions, seeds, arm: str, schedule, where: slice) -> pd.DataFrame:
    expect(arm in ARMS, "arm", repr(arm), " | ".join(ARMS))
    algorithm, lanes = ARMS[arm], len(seeds)
    policy = LinearPolicy(solutions.features, solutions.length, lanes)
    table = Table(solutions.correct, solutions.length, torch.arange(TRAIN))
    state = start(algorithm, schedule, policy, Lanes(seeds), lanes=lanes)
    if "shaped" in arm:
        shape = partial(shaped_reward, algorithm, schedule)
        state.sampler = FilterOnShapedReward(**vars(state.sampler), shape=shape)
    dead = torch.zeros(2, lanes, dtype=torch.float64)
    for step in train(algorithm, schedule, policy, ActionTask(table), state):
        if step.batch is not None:
            dead += _dead_groups(step.batch, lanes)
    metrics = measure(solutions, policy, lanes, where)
    metrics["dead_share"] = dead[0] / dead[1]
    return tidy(arm, seeds, state.rollouts, **metrics)


def _dead_groups(batch: Rollout, lanes: int) -> Tensor:
    """Per lane, how many groups of a batch are all right or all wrong, and how many."""
    alive = varies(batch.correct.double(), batch.group_id)
    ids, row = torch.unique(batch.group_id, return_inverse=True)
    lane = torch.zeros_like(ids).index_copy_(0, row, batch.lane)
    counts = torch.zeros(2, lanes, dtype=torch.float64)
    counts[0].index_add_(0, lane, (~alive).double())
    counts[1].index_add_(0, lane, torch.ones_like(alive, dtype=torch.float64))
    return counts
