"""Clip-Higher where it acts: a right answer that the policy hardly ever gives.

One prompt, six answers; gold starts at p0. The old policy stays for 16 rollouts, and
in that time the clip lets gold grow by about a factor 1 + eps_high (form 10 of exact/).
From a uniform start the bound hardly matters: that is the control. Left out: length.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.suites.actions import ActionTask, Table, TabularPolicy
from dapo_lib.candidate.suites.tidy import tidy
from dapo_lib.errors import expect
from dapo_lib.train import Schedule, State, start, train

ANSWERS = 6
STARTS = (0.05, 0.01, 1 / ANSWERS)
UPPER_CLIPS = (0.2, 0.28, 0.5, inf)
SCHEDULE = Schedule(
    rollouts=160,
    prompts_per_rollout=1,
    group_size=8,
    minibatches=1,
    refresh_every=16,
    optimiser="sgd",
    lr=0.07,
    clip_norm=None,
)
ALGORITHM = Algorithm(overlong="none")


def run(
    seeds: Sequence[int] = range(20),
    *,
    starts: Sequence[float] = STARTS,
    upper_clips: Sequence[float] = UPPER_CLIPS,
    schedule: Schedule = SCHEDULE,
) -> pd.DataFrame:
    """Every start under every upper clip, the same seeds in each.

    Columns as :func:`tidy`; arms are named by :func:`arm_name`. Metrics: ``p_gold`` at
    every refresh and at the end. For all seeds together (seed -1), over the whole run:
    ``clip_high`` (up-clipped tokens a seed), ``p_up_clipped`` (their mean old
    probability, as in Figure 3a; NaN where there were none) and ``responses`` (sampled
    by a seed on average, dropped ones too).
    """
    frames = [
        _arm(seeds, p0, eps_high, schedule) for p0 in starts for eps_high in upper_clips
    ]
    return pd.concat(frames, ignore_index=True)


def arm_name(p0: float, eps_high: float) -> str:
    """How an arm is called.

    >>> arm_name(0.05, 0.28), arm_name(1 / 6, inf)
    ('p0=0.05 eps_high=0.28', 'p0=0.1667 eps_high=inf')
    """
    return f"p0={p0:.4g} eps_high={eps_high:g}"


def start_logits(p0: float) -> Tensor:
    """[1, 6] logits: gold in slot 0 with probability p0, the others share the rest.

    Raises ``ValueError`` unless 0 < p0 < 1.

    >>> start_logits(0.05).softmax(-1)[0, :2]
    tensor([0.0500, 0.1900], dtype=torch.float64)
    """
    expect(0 < p0 < 1, "p0", p0, "0 < p0 < 1")
    rest = (1 - p0) / (ANSWERS - 1)
    return torch.tensor([[p0] + [rest] * (ANSWERS - 1)], dtype=torch.float64).log()


class Start(NamedTuple):
    """A policy that gives gold with probability p0, its task, and a fresh state."""

    policy: TabularPolicy
    task: ActionTask
    state: State

    def p_gold(self) -> Tensor:
        """Every seed's probability of gold now: [S]."""
        lanes = torch.arange(self.state.sampler.lanes)
        return self.policy.probabilities(torch.zeros_like(lanes), lanes)[:, 0]


def begin(
    seeds: Sequence[int], p0: float, algorithm: Algorithm, schedule: Schedule
) -> Start:
    """One prompt, gold in slot 0; one lane a seed."""
    one = torch.ones(1, ANSWERS, dtype=torch.long)
    correct = torch.zeros_like(one)
    correct[0, 0] = 1
    policy = TabularPolicy(start_logits(p0), one, len(seeds))
    state = start(algorithm, schedule, policy, Lanes(seeds), lanes=len(seeds))
    return Start(policy, ActionTask(Table(correct, one)), state)


def _arm(seeds, p0: float, eps_high: float, schedule: Schedule) -> pd.DataFrame:
    lanes, name = len(seeds), arm_name(p0, eps_high)
    algorithm = ALGORITHM.model_copy(update={"eps_high": eps_high})
    run = begin(seeds, p0, algorithm, schedule)
    frames = [tidy(name, seeds, 0, p_gold=run.p_gold())]
    clipped = torch.zeros(2, dtype=torch.float64)
    for step in train(algorithm, schedule, *run):
        for update in step.updates:
            clipped += torch.stack([update["clip_high"], update["p_up_clipped"]])
        if step.rollout % schedule.refresh_every == 0:
            frames.append(tidy(name, seeds, step.rollout, p_gold=run.p_gold()))
    count, probability = clipped[:, None]
    together = {
        "clip_high": count / lanes,
        "p_up_clipped": probability / count,
        # one token a response: what the filter's refills cost
        "responses": torch.tensor([run.state.tokens / lanes], dtype=torch.float64),
    }
    frames.append(tidy(name, [-1], run.state.rollouts, **together))
    return pd.concat(frames, ignore_index=True)
