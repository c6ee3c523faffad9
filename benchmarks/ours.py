"""The bench's works, and the project's own loop on one of them, a cycle at a time.

A cycle is one rollout and its updates. Left out: the peers; see plain.py, trl_peer.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from benchmarks.floor import sampling_floor, training_floor
from dapo_lib.algorithm import Algorithm
from dapo_lib.lm.model import Decoder, ModelConfig
from dapo_lib.lm.policy import LMPolicy
from dapo_lib.lm.tasks import TokenTask
from dapo_lib.rollout import Rollout
from dapo_lib.train import Schedule, advantages, minibatches, start, update

QWEN2 = dict(
    vocabulary=64,
    mlp="swiglu",
    norm="rms",
    norm_eps=1e-6,
    rope_base=10_000.0,
    qkv_bias=True,
    tied=True,
)
BIG = ModelConfig(**QWEN2, width=128, layers=4, hidden=512)  # 1.06 M parameters
SMALL = ModelConfig(**QWEN2, width=64, layers=2, hidden=256)  # 0.14 M parameters
ALGORITHM = Algorithm(dynamic_sampling=False, overlong="none")


class Work(NamedTuple):
    """`batch` completions an update, `updates` a rollout; goals are ratios.

    `goal` is TRL / ours; `goals` are ours / matrix products, sampling and training.
    """

    name: str
    config: ModelConfig
    batch: int
    updates: int
    group_size: int
    l_max: int
    full: bool = False
    goal: float | None = None
    goals: tuple[float | None, float | None] = (None, None)


A64 = Work("A 64x4 G8 L48", BIG, 64, 4, 8, 48, False, 3.9, (2.2, 1.85))
A128 = Work("A 128x4 G16 L64", BIG, 128, 4, 16, 64, False, 5.5, (2.2, 1.85))
WORKS = (
    A64,
    A128,
    Work("B 32x16 G16 L24", SMALL, 32, 16, 16, 24, False, 3.3),
    A64._replace(name="A 64x4 G8 L48 full", full=True, goal=1.6),
    A128._replace(name="A 128x4 G16 L64 full", full=True, goal=1.6),
)
# the book's own model on its own task; TRL is not asked
BOOK = Work("book 32x16 G16 L24", ModelConfig(), 32, 16, 16, 24, goals=(5.0, 2.0))


class FullLength(LMPolicy):
    """Never ends early: the EOS logit is out of reach, as TRL's `suppress_tokens`."""

    def sample(self, prompts, group_size, generator) -> Rollout:
        """As the parent, with EOS suppressed while sampling."""
        vocabulary = self.task.vocabulary
        bias = torch.zeros(len(vocabulary))
        bias[vocabulary.eos_id] = -torch.inf
        plain = self.model.logits
        self.model.logits = lambda x: plain(x) + bias
        try:
            return super().sample(prompts, group_size, generator)
        finally:
            del self.model.logits


class Ours:
    """The project's own loop on a work; one list of CPU seconds a part."""

    def __init__(self, work: Work, model: Decoder, task: TokenTask) -> None:
        self.work, self.task = work, task
        self.schedule = Schedule(
            prompts_per_rollout=work.batch * work.updates // work.group_size,
            group_size=work.group_size,
            l_max=work.l_max,
            minibatches=work.updates,
            lr=1e-6,
        )
        self.policy = (FullLength if work.full else LMPolicy)(model, task)
        generator = torch.Generator().manual_seed(2)
        self.state = start(ALGORITHM, self.schedule, self.policy, generator)
        self.sampling: list[float] = []
        self.training: list[float] = []
        self.rollout: Rollout | None = None

    def cycle(self) -> None:
        """One rollout and its updates, on the clock."""
        spent, rollout = timed(self.sample)
        self.sampling.append(spent)
        # the reward that TRL is given
        reward = (rollout.length % 2).double()
        self.rollout = rollout.graded(rollout.correct, reward)
        self.training.append(timed(lambda: self.train(self.rollout))[0])

    @property
    def seconds(self) -> list[float]:
        """CPU seconds of every cycle."""
        return [s + t for s, t in zip(self.sampling, self.training, strict=True)]

    def sample(self) -> Rollout:
        """One rollout, graded."""
        prompts = self.task.draw(torch.tensor([self.schedule.prompts_per_rollout]))
        size, generator = self.schedule.group_size, self.state.generator
        return self.task.grade(self.policy.sample(prompts, size, generator))

    def train(self, rollout: Rollout) -> None:
        """The updates of one rollout."""
        advantage = advantages(ALGORITHM, self.schedule, rollout)
        update(ALGORITHM, self.schedule, self.policy, self.state, rollout, advantage)


class Products:
    """The matrix products of the rollouts that `ours` has made, on the clock."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.sampling: list[float] = []
        self.training: list[float] = []

    def cycle(self) -> None:
        """Those of the last rollout and of its updates."""
        ours, rollout = self.ours, self.ours.rollout
        config, n = ours.policy.model.config, ours.schedule.prompts_per_rollout
        width = ours.task.prompt_length
        least = sampling_floor(config, rollout.length, n, width)
        self.sampling.append(timed(least)[0])
        self.training.append(timed(training_floor(config, self._shapes()))[0])

    def _shapes(self) -> list[tuple[int, int]]:
        """Packed and predicted tokens of mini-batches cut as the loop cuts them."""
        ours, shapes = self.ours, []
        for rows in minibatches(ours.schedule, ours.rollout, torch.Generator()):
            part = ours.rollout.rows(rows)
            prompts, fed = len(part.index.unique()), int((part.length - 1).sum())
            shapes.append((prompts * ours.task.prompt_length + fed, prompts + fed))
        return shapes

    seconds = Ours.seconds


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Process CPU seconds of a call, and its result."""
    began = time.process_time()
    result = function()
    return time.process_time() - began, result
