"""What a verifier accepts is what a policy learns: nine written answers, three graders.

One problem whose answer is 34, and nine ways to end a response to it. The three arms
differ in who grades: this library's verifier, one that keeps the digits and drops the
rest (so that "3 4" and "3,4" pass), and one that compares texts. Whether an answer is
right is written down here by hand and is not asked of any grader. Left out: reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from dapo_lib.algorithm import ALGORITHMS, Algorithm
from dapo_lib.candidate.lanes import Lanes
from dapo_lib.candidate.suites.actions import ActionTask, Table, TabularPolicy
from dapo_lib.candidate.suites.tidy import tidy
from dapo_lib.errors import expect
from dapo_lib.train import Schedule, start, train
from dapo_lib.verifier import verify

REFERENCE = "34"


class Written(NamedTuple):
    """The end of a response, whether it is right, its share at the start."""

    text: str
    right: bool
    share: float


ANSWERS = (
    Written("Answer: 34", True, 0.08),
    Written("**Answer:** 34.", True, 0.07),
    Written("答案：34", True, 0.05),
    Written("\\boxed{34}", True, 0.05),
    Written("Answer: 3 4", False, 0.15),
    Written("Answer: 3,4", False, 0.10),
    Written("Answer: 43", False, 0.20),
    Written("Answer: 3", False, 0.15),
    Written("34 or 43", False, 0.15),
)
SCHEDULE = Schedule(
    rollouts=96,
    prompts_per_rollout=1,
    group_size=8,
    minibatches=1,
    refresh_every=4,
    optimiser="sgd",
    lr=0.4,
    clip_norm=None,
)
ALGORITHM: Algorithm = ALGORITHMS["grpo"]


def by_value(text: str) -> bool:
    """This library's verifier.

    >>> by_value("**Answer:** 34."), by_value("Answer: 3 4")
    (True, False)
    """
    return bool(verify(text, REFERENCE).correct)


def by_digits(text: str) -> bool:
    """Only the digits count: commas and blanks are dropped, as a public checker does.

    >>> by_digits("**Answer:** 34."), by_digits("Answer: 3 4"), by_digits("34 or 43")
    (True, True, False)
    """
    return "".join(c for c in text if c.isdecimal()) == REFERENCE


def by_text(text: str) -> bool:
    """The text after ``Answer: `` has to be the reference, character by character.

    >>> by_text("Answer: 34"), by_text("**Answer:** 34.")
    (True, False)
    """
    return text.removeprefix("Answer: ") == REFERENCE


GRADERS: dict[str, Callable[[str], bool]] = {
    "value": by_value,
    "digits": by_digits,
    "text": by_text,
}


def run(
    seeds: Sequence[int] = range(20),
    *,
    graders: Sequence[str] = tuple(GRADERS),
    schedule: Schedule = SCHEDULE,
    every: int = 8,
) -> pd.DataFrame:
    """Train under every grader from one start, the same seeds in each.

    Columns as :func:`tidy`, arms named as in :data:`GRADERS`. Metrics, exact, every
    `every` rollouts (one group and one update each): ``right`` (probability of a right
    answer), ``accepted`` (of one that the grader accepts, what its log would show).
    Raises ``ValueError`` on an unknown grader.
    """
    return pd.concat([_arm(seeds, g, schedule, every) for g in graders])


def table(grader: str) -> Table:
    """The nine answers, all one token long, `correct` as the grader says."""
    expect(grader in GRADERS, "grader", repr(grader), " | ".join(GRADERS))
    accepted = torch.tensor([[int(GRADERS[grader](w.text)) for w in ANSWERS]])
    return Table(accepted, torch.ones_like(accepted))


def _arm(seeds, grader: str, schedule: Schedule, every: int) -> pd.DataFrame:
    world, lanes = table(grader), len(seeds)
    odds = torch.tensor([[w.share for w in ANSWERS]], dtype=torch.float64).log()
    right = torch.tensor([w.right for w in ANSWERS])
    policy = TabularPolicy(odds, world.length, lanes)
    task = ActionTask(world)
    state = start(ALGORITHM, schedule, policy, Lanes(seeds), lanes=lanes)

    def measure() -> dict[str, Tensor]:
        index = torch.zeros(lanes, dtype=torch.long)
        pi = policy.probabilities(index, torch.arange(lanes))
        accepted = pi[:, world.correct[0].bool()]
        return {"right": pi[:, right].sum(1), "accepted": accepted.sum(1)}

    frames = [tidy(grader, seeds, 0, **measure())]
    for step in train(ALGORITHM, schedule, policy, task, state):
        if step.rollout % every == 0:
            frames.append(tidy(grader, seeds, step.rollout, **measure()))
    return pd.concat(frames)
