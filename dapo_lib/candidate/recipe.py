"""The `derivation` recipe: data, arms and one training run of many seeds side by side.

Every arm runs the same loop (train.py); an arm is DAPO with one mechanism off, or a
neighbour of DAPO. Left out: statistics over seeds and the tables of the ablation, which
are experiments/derivation.py's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from dapo_lib.algorithm import ALGORITHMS, Algorithm
from dapo_lib.candidate.ceiling import greedy_accuracy, leak_only, supervised
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.policy import CandidatePolicy, Exact, evaluate
from dapo_lib.candidate.table import Scaling, Table, build
from dapo_lib.candidate.task import CandidateTask
from dapo_lib.checkpoint import Keeper
from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import BadInput, expect
from dapo_lib.train import Schedule, Step, start, train

L_MAX, L_CACHE = 60, 16  # tokens
REFRESH_EVERY = 16  # rollouts between old policies


def _arms() -> dict[str, tuple[Algorithm, dict[str, int]]]:
    """Name -> algorithm, and what it changes in the schedule."""
    dapo = Algorithm(l_cache=L_CACHE)
    without = {
        "without_clip_higher": {"eps_high": dapo.eps_low},
        "without_dynamic": {"dynamic_sampling": False},
        "without_token_level": {"reduction": "seq_mean"},
        "without_soft": {"overlong": "none"},
    }
    arms = {"dapo": (dapo, {})}
    for name, change in without.items():
        arms[name] = (Algorithm(**{**dapo.model_dump(), **change}), {})
    for name in ("grpo", "dr_grpo", "rloo", "reinforce", "ppo"):
        arms[name] = (ALGORITHMS[name], {})
    arms["on_policy"] = (dapo, {"refresh_every": 1})
    return arms


ARMS = _arms()


@dataclass(frozen=True)
class Bench:
    """Train and held-out tables with features standardised by train; what bounds them.

    `ceiling` is the supervised linear accuracy on `test`, `leak_only` the accuracy of
    comparing candidates there.
    """

    train: Table
    test: Table
    ceiling: float
    leak_only: float


def prepare(train: Sequence[Problem], test: Sequence[Problem], mix: str) -> Bench:
    """Build both tables. The last mixes are kept in memory.

    Raises ``BadInput`` on an unknown mix or no usable problem.
    """
    return _prepare(tuple(train), tuple(test), mix)


@lru_cache(maxsize=8)
def _prepare(train: tuple[Problem, ...], test: tuple[Problem, ...], mix: str) -> Bench:
    return bench(build(train, mix), build(test, mix))


def bench(train: Table, test: Table) -> Bench:
    """A bench from two raw tables."""
    scaling = Scaling.of(train.features)
    train, test = train.scaled(scaling), test.scaled(scaling)
    best = supervised(train.features, train.gold)
    ceiling = greedy_accuracy(test.features @ best, test.gold)
    return Bench(train, test, ceiling, leak_only(test))


@dataclass(frozen=True)
class Curve:
    """Held-out quantities along a run.

    Shape: steps [P]; rollouts (responses sampled so far) [P, lanes]; each field of
    `exact` [P, lanes].
    """

    steps: Tensor
    rollouts: Tensor
    exact: Exact


@dataclass(frozen=True)
class Run:
    """What a run of many seeds leaves; every tensor is [lanes], one entry a seed.

    `rollouts` counts sampled responses, `prompts` drawn problems, `tokens` generated
    tokens; `exhausted` the steps in which refilling ran out of rounds. `weight` [lanes,
    F] is the trained policy. `seconds` is the loop alone, without data, by the clock;
    `cpu_seconds` is what it cost, whatever else the machine was doing.
    """

    seeds: tuple[int, ...]
    weight: Tensor
    untrained: Exact
    test: Exact
    curve: Curve
    rollouts: Tensor
    prompts: Tensor
    tokens: Tensor
    kept: Tensor
    exhausted: int
    seconds: float
    cpu_seconds: float


@dataclass
class Tally:
    """What a run has counted and measured so far: all that :class:`Run` needs beside
    the state of the loop. Points are (step, responses [lanes], weight [lanes, F]).
    """

    counts: Tensor
    points: list[tuple[int, Tensor, Tensor]]
    exhausted: int = 0

    def enter(self, step: Step, policy: CandidatePolicy, point: bool) -> None:
        """Add one iteration; `point` says whether it is measured."""
        ledger = step.ledger
        self.counts += torch.stack(
            [
                ledger.responses_all,
                ledger.prompts_drawn,
                ledger.tokens_generated,
                ledger.kept,
            ]
        )
        self.exhausted += ledger.exhausted
        if point:
            weight = policy.weight.detach().clone()
            self.points.append((step.rollout, self.counts[0].clone(), weight))

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint; JSON keeps every bit of a float64."""
        points = [[step, r.tolist(), w.tolist()] for step, r, w in self.points]
        counts = self.counts.tolist()
        return {"counts": counts, "points": points, "exhausted": self.exhausted}

    @classmethod
    def of_json(cls, saved: dict[str, Any]) -> Tally:
        """The inverse of `as_json`."""

        def exact(values: list) -> Tensor:
            return torch.tensor(values, dtype=torch.float64)

        points = [(step, exact(r), exact(w)) for step, r, w in saved["points"]]
        return cls(exact(saved["counts"]), points, saved["exhausted"])


def run(
    bench: Bench,
    algorithm: Algorithm,
    schedule: Schedule,
    seeds: Sequence[int],
    *,
    every: int | None = None,
    keeper: Keeper | None = None,
) -> Run:
    """Train one lane a seed; `every` steps a point of the curve (None: the ends only).

    Deterministic: lane s equals the run of seed s alone. With a `keeper` the run goes
    on from its last checkpoint, to the same end. Raises what the loop raises.
    """
    expect(every is None or every >= 1, "every", every, "a number of steps >= 1")
    lanes = len(seeds)
    generator = Lanes(seeds)
    policy = CandidatePolicy(
        bench.train.features, bench.train.length, l_max=schedule.l_max, lanes=lanes
    )
    state = start(algorithm, schedule, policy, generator, lanes=lanes)
    task = CandidateTask(bench.train.gold)
    saved = keeper.restore(policy, state, task) if keeper is not None else None
    if saved is None:
        counts = torch.zeros(4, lanes, dtype=torch.float64)
        tally = Tally(counts, [(0, counts[0].clone(), policy.old.clone())])
    else:
        tally = Tally.of_json(saved)
    began, cpu_began = time.perf_counter(), time.process_time()
    for step in train(algorithm, schedule, policy, task, state):
        last = step.rollout == schedule.rollouts
        due = every is not None and step.rollout % every == 0
        tally.enter(step, policy, last or due)
        if keeper is not None and keeper.due(step.rollout, last):
            keeper.save(policy, state, task, tally.as_json())
    took = time.perf_counter() - began, time.process_time() - cpu_began
    points = tally.points
    curve = _curve(points, bench.test)
    ends = [
        Exact(*(getattr(curve.exact, f.name)[i] for f in fields(Exact)))
        for i in (0, -1)
    ]
    counted = (*tally.counts, tally.exhausted)
    return Run(tuple(seeds), points[-1][2], *ends, curve, *counted, *took)


def _curve(points: list[tuple[int, Tensor, Tensor]], table: Table) -> Curve:
    rows = [evaluate(w, table.features, table.gold, table.length) for _, _, w in points]
    exact = {
        f.name: torch.stack([getattr(r, f.name) for r in rows]) for f in fields(Exact)
    }
    steps = torch.tensor([step for step, _, _ in points])
    return Curve(steps, torch.stack([r for _, r, _ in points]), Exact(**exact))


def schedule_of(
    arm: str, *, steps: int, prompts_per_step: int, group_size: int, lr: float
) -> Schedule:
    """The recipe's schedule: SGD from zero, one update a step, L_max 60, refresh 16."""
    if arm not in ARMS:
        raise BadInput(f"algorithm: got {arm!r}, expected {' | '.join(ARMS)}")
    return Schedule(
        rollouts=steps,
        prompts_per_rollout=prompts_per_step,
        group_size=group_size,
        l_max=L_MAX,
        minibatches=1,
        refresh_every=ARMS[arm][1].get("refresh_every", REFRESH_EVERY),
        optimiser="sgd",
        lr=lr,
        clip_norm=None,  # a norm over all lanes would tie them together
    )
