"""The `seed` recipe: its published table, reproduced through the one training loop.

Left out: honesty. The table is reproduced as it was published; dissect.py says what it
is made of, and derivations.py is the version to believe.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from dapo_lib.algorithm import Algorithm
from dapo_lib.candidate.seed_policy import SeedPolicy, log_policy
from dapo_lib.candidate.seed_task import (
    SLOTS,
    SeedTable,
    SeedTask,
    candidate_table,
    stack,
)
from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import expect
from dapo_lib.overlong import linear_overlong
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, shaped_reward, start, train

CONSTANT = 1e-8  # a group whose shaped rewards deviate by no more carries no signal


@dataclass(frozen=True)
class Variant:
    """What is changed against the published recipe; the default changes nothing.

    `leaks` are features set to 0 in training and evaluation. `equal_lengths` gives
    every candidate one pseudo-token: no length penalty, equal token weights.
    """

    leaks: tuple[str, ...] = ()
    equal_lengths: bool = False

    def apply(self, table: SeedTable) -> SeedTable:
        """The table as this variant sees it."""
        table = table.without(self.leaks)
        if self.equal_lengths:
            ones = torch.ones_like(table.length)
            table = SeedTable(table.features, table.parts, table.correct, ones)
        return table


@dataclass(frozen=True)
class Scores:
    """One policy on one table; rewards before the length penalty, KL in nats.

    `accuracy` and `mean_reward` are of the greedy candidate (the first slot wins ties);
    the `expected_*` are the policy's expectations; `kl_reference` is KL(pi || uniform).
    """

    accuracy: float
    mean_reward: float
    kl_reference: float
    expected_accuracy: float
    expected_reward: float


@dataclass(frozen=True)
class SeedResult:
    """All that one run of the recipe reports; everything a plain number.

    `untrained`, `trained`: scores on the validation rows; `whole_test`: trained, on all
    of test. Diagnostics are of the last step where they are not counts. `curve` holds
    (step, validation scores) at every `curve_every`-th step, the start included.
    """

    untrained: Scores
    trained: Scores
    whole_test: Scores
    diagnostics: dict[str, float]
    config: dict
    weight: tuple[float, ...]
    curve: tuple[tuple[int, Scores], ...]
    seconds: float

    def as_dict(self) -> dict:
        """The parts of the command's JSON that the run itself knows."""
        return {
            "config": self.config,
            "metrics": {
                "untrained": asdict(self.untrained),
                "trained": asdict(self.trained),
                "trained_whole_test": asdict(self.whole_test),
            },
            "diagnostics": self.diagnostics,
            "seconds": self.seconds,
        }


def seed_algorithm(
    eps_low: float = 0.2, eps_high: float = 0.28, kl_coef: float = 0.02
) -> Algorithm:
    """The recipe's algorithm: a KL term and no filter, so not quite DAPO."""
    return Algorithm(
        ddof=0,
        eps_low=eps_low,
        eps_high=eps_high,
        dynamic_sampling=False,
        overlong="linear",
        kl_coef=kl_coef,
    )


def seed_schedule(steps: int = 300, group_size: int = 4, lr: float = 0.08) -> Schedule:
    """The recipe's schedule: one prompt and one SGD update a step, gradients in +-5."""
    return Schedule(
        rollouts=steps,
        prompts_per_rollout=1,
        group_size=group_size,
        l_max=4,
        minibatches=1,
        refresh_every=16,
        optimiser="sgd",
        lr=lr,
        clip_norm=None,
        clip_value=5,
    )


def run_seed(
    problems_train: Sequence[Problem],
    problems_test: Sequence[Problem],
    *,
    steps: int = 300,
    group_size: int = 4,
    seed: int = 42,
    maximum_examples: int = 512,
    eps_low: float = 0.2,
    eps_high: float = 0.28,
    kl_coef: float = 0.02,
    lr: float = 0.08,
    variant: Variant | None = None,
) -> SeedResult:
    """One run of the recipe: train on the first rows of train, score on test.

    Raises ``BadInput`` on an option out of range. See :func:`run_seeds`.
    """
    return run_seeds(
        problems_train,
        problems_test,
        seeds=[seed],
        steps=steps,
        group_size=group_size,
        maximum_examples=maximum_examples,
        algorithm=seed_algorithm(eps_low, eps_high, kl_coef),
        lr=lr,
        variant=variant,
    )[0]


def run_seeds(
    problems_train: Sequence[Problem],
    problems_test: Sequence[Problem],
    *,
    seeds: Sequence[int],
    steps: int = 300,
    group_size: int = 4,
    maximum_examples: int = 512,
    algorithm: Algorithm | None = None,
    lr: float = 0.08,
    variant: Variant | None = None,
    curve_every: int | None = None,
) -> list[SeedResult]:
    """Independent runs side by side, one lane a seed; each equals the run alone.

    A seed draws its own candidates: train from `default_rng(seed)`, test from
    `default_rng(seed + 1)`, the steps from another `default_rng(seed)`.
    `maximum_examples` bounds the train rows; validation takes a quarter as many rows of
    test. Raises ``BadInput`` on an option out of range.
    """
    _check(seeds, steps, group_size, maximum_examples)
    variant, algorithm = variant or Variant(), algorithm or seed_algorithm()
    began = time.perf_counter()
    table = variant.apply(_tables(problems_train[:maximum_examples], seeds, 0))
    test = variant.apply(_tables(problems_test, seeds, 1))
    validation = test.first(maximum_examples // 4)
    policy, schedule = SeedPolicy(table), seed_schedule(steps, group_size, lr)
    untrained = scores(validation, policy.weight.detach())
    watch = _Watch(validation, curve_every, [(0, untrained)])
    diagnostics = _train(algorithm, schedule, policy, seeds, watch)
    seconds = (time.perf_counter() - began) / len(seeds)
    weight = policy.weight.detach()
    config = {
        "algorithm": algorithm.model_dump(),
        "schedule": schedule.model_dump(),
        "variant": asdict(variant),
        "train_rows": len(table),
        "validation_rows": len(validation),
        "test_rows": len(test),
    }
    trained, whole = scores(validation, weight), scores(test, weight)
    return [
        SeedResult(
            untrained=untrained[lane],
            trained=trained[lane],
            whole_test=whole[lane],
            diagnostics=diagnostics[lane],
            config={"seed": seed, **config},
            weight=tuple(weight[lane].tolist()),
            curve=watch.of(lane),
            seconds=seconds,
        )
        for lane, seed in enumerate(seeds)
    ]


@dataclass
class _Watch:
    """Scores on the validation rows while the run goes on."""

    table: SeedTable
    every: int | None
    points: list[tuple[int, list[Scores]]]

    def look(self, step: int, policy: SeedPolicy) -> None:
        if self.every and step % self.every == 0:
            self.points.append((step, scores(self.table, policy.weight.detach())))

    def of(self, lane: int) -> tuple[tuple[int, Scores], ...]:
        return tuple((step, per_lane[lane]) for step, per_lane in self.points)


def _check(seeds, steps, group_size, maximum_examples) -> None:
    expect(len(seeds) >= 1, "seeds", len(seeds), "at least one seed")
    expect(min(seeds) >= 0, "seed", min(seeds), "a number >= 0")
    expect(steps >= 0, "steps", steps, "a number of steps >= 0")
    expect(2 <= group_size <= SLOTS, "group_size", group_size, f"2 to {SLOTS}")
    many = maximum_examples
    expect(many >= 4, "maximum_examples", many, "at least 4 examples")


def _tables(problems: Sequence[Problem], seeds: Sequence[int], shift: int) -> SeedTable:
    return stack(
        [candidate_table(problems, np.random.default_rng(s + shift)) for s in seeds]
    )


def _train(algorithm, schedule, policy, seeds, watch) -> list[dict[str, float]]:
    """Run the loop; the diagnostics of each lane."""
    task = SeedTask(policy.table)
    generators = [np.random.default_rng(seed) for seed in seeds]
    lanes = len(seeds)
    state = start(algorithm, schedule, policy, generators, lanes=lanes)
    signal = torch.zeros(3, lanes, dtype=torch.long)
    last: dict[str, Tensor] = {}
    before = policy.weight.detach().clone()
    for step in train(algorithm, schedule, policy, task, state):
        batch = step.batch
        reward = shaped_reward(algorithm, schedule, batch).view(lanes, -1)
        signal[0] += reward.std(1, correction=0) <= CONSTANT
        signal[1] += step.ledger.all_wrong.long()
        signal[2] += step.ledger.all_right.long()
        if step.rollout == schedule.rollouts:
            last = _last_step(algorithm, policy, batch, before, lanes)
        before = policy.weight.detach().clone()
        watch.look(step.rollout, policy)
    names = ("constant_groups", "all_wrong_groups", "all_right_groups")
    counts = {name: signal[i] for i, name in enumerate(names)}
    common = {
        "refreshes": max(policy.refreshes, 0),
        "eps_low": algorithm.eps_low,
        "eps_high": algorithm.eps_high,
    }
    return [
        common | {k: v[lane].item() for k, v in (counts | last).items()}
        for lane in range(lanes)
    ]


def _last_step(
    algorithm: Algorithm, policy: SeedPolicy, batch: Rollout, before: Tensor, lanes: int
) -> dict[str, Tensor]:
    """What the recipe prints of its last step, [S] each: means over the group.

    Its clip fraction counts candidates whose ratio lies outside the clip range,
    whatever the advantage's sign; the loop's own diagnostics are sign-aware.
    """
    log_ratio = policy.log_prob(batch, before)[:, 0] - batch.log_prob_old[:, 0]
    ratio = log_ratio.detach().exp()
    outside = (ratio < 1 - algorithm.eps_low) | (ratio > 1 + algorithm.eps_high)
    columns = {
        "clip_fraction": outside.double(),
        "mean_pseudo_tokens": batch.length.double(),
        "overlong_penalty": -linear_overlong(batch.length),
    }
    return {name: value.view(lanes, -1).mean(1) for name, value in columns.items()}


def scores(table: SeedTable, weight: Tensor) -> list[Scores]:
    """Score policies on a table: weight [S, 8] -> S :class:`Scores`.

    KL(pi || uniform) is computed as ln 6 - H(pi), which it equals exactly.
    """
    log_pi = log_policy(table.features, weight[:, None, None])
    pi = log_pi.exp()
    greedy = log_pi.argmax(-1, keepdim=True)
    correct, reward = table.correct.double(), table.reward
    columns = (
        correct.gather(-1, greedy)[..., 0],
        reward.gather(-1, greedy)[..., 0],
        math.log(SLOTS) + (pi * log_pi).sum(-1),
        (pi * correct).sum(-1),
        (pi * reward).sum(-1),
    )
    per_lane = torch.stack([column.mean(-1) for column in columns], -1)
    return [Scores(*row) for row in per_lane.tolist()]


ROWS = (
    ("accuracy", "accuracy"),
    ("mean reward", "mean_reward"),
    ("KL(reference)", "kl_reference"),
)


def format_table(result: SeedResult) -> str:
    """The published three-row table and the last step's diagnostics, as plain text."""
    lines = [f"{'':<15}{'untrained':>11}{'trained':>11}"]
    for name, field in ROWS:
        pair = getattr(result.untrained, field), getattr(result.trained, field)
        lines.append(f"{name:<15}{pair[0]:>11.4f}{pair[1]:>11.4f}")
    d = result.diagnostics
    lines.append(f"old policy refreshed {d['refreshes']} times")
    if "clip_fraction" in d:
        lines.append(
            f"last step: clip {d['eps_low']:.2f}/{d['eps_high']:.2f}, "
            f"clip fraction {d['clip_fraction']:.4g}, "
            f"mean pseudo-token count {d['mean_pseudo_tokens']:.4g}, "
            f"overlong penalty {d['overlong_penalty']:.4g}"
        )
    return "\n".join(lines)
