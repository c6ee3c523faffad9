"""The `seed` recipe's task: six candidate answers to a problem, features and rewards.

The numbers are drawn in exactly the order that its published table needs. Left out:
candidates a reader would call honest; derivations.py has those. Here two features leak
the gold answer, and `Variant` takes them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from dapo_lib.data.gsm8k import Problem
from dapo_lib.errors import expect
from dapo_lib.rollout import Prompts, Rollout

OFFSETS = (0, -3, -1, 1, 2, 5)  # in units of the scale; 0 is gold
SLOTS = len(OFFSETS)
FEATURES = (
    "one",
    "tanh_value",
    "tanh_size",
    "integer",
    "brevity",
    "several_steps",
    "step_share",
    "self_check",
)
LEAKS = ("integer", "self_check")
PARTS = ("outcome", "integer", "process", "brevity")
WEIGHTS = (0.7, 0.05, 0.2, 0.05)  # of the parts, in reward units


@dataclass(frozen=True)
class SeedTable:
    """N problems with six candidates each, for S independent runs; float64.

    Shape:
        features: [S, N, 6, 8]; parts: [S, N, 6, 4] reward parts in [0, 1], unweighted.
        correct: [S, N, 6] 0/1 (int64); length: [S, N, 6] pseudo-tokens 1..4 (int64).
    """

    features: Tensor
    parts: Tensor
    correct: Tensor
    length: Tensor

    def __len__(self) -> int:
        return self.correct.shape[1]

    @property
    def lanes(self) -> int:
        """S, the number of independent runs."""
        return self.correct.shape[0]

    @property
    def reward(self) -> Tensor:
        """[S, N, 6] the weighted parts, before the length penalty, in [0, 1]."""
        return self.parts @ torch.tensor(WEIGHTS, dtype=torch.float64)

    def first(self, rows: int) -> SeedTable:
        """The same table with only its first problems."""
        return SeedTable(*(getattr(self, f.name)[:, :rows] for f in fields(self)))

    def without(self, leaks: Sequence[str]) -> SeedTable:
        """The table with the named features set to 0. Raises ``BadInput`` on a name.

        >>> stack([candidate_table([], np.random.default_rng(0))]).without(["gold"])
        Traceback (most recent call last):
        dapo_lib.errors.BadInput: leaks: got gold, expected names of FEATURES
        """
        unknown = [name for name in leaks if name not in FEATURES]
        expect(not unknown, "leaks", ", ".join(unknown), "names of FEATURES")
        keep = torch.tensor([name not in leaks for name in FEATURES])
        return replace(self, features=torch.where(keep, self.features, 0.0))


def candidate_table(
    problems: Sequence[Problem], generator: np.random.Generator
) -> SeedTable:
    """Candidates of every problem, one run (S = 1); one generator serves all rows.

    Shape: see :class:`SeedTable`. Per row, in this order: a shuffle, six normals for
    the process score, six for the self-check. Source: the `seed` recipe.
    """
    n = len(problems)
    gold = np.array([float(p.answer) for p in problems])
    scale = np.maximum(1.0, 0.06 * np.abs(gold))
    offset = np.empty((n, SLOTS))
    noise = np.empty((n, 2, SLOTS))
    for row in range(n):
        offset[row] = np.array(OFFSETS) * scale[row]
        generator.shuffle(offset[row])
        noise[row] = generator.normal(0.0, [[0.18], [0.12]], (2, SLOTS))
    process = np.clip(1 - np.abs(offset) / (5 * scale[:, None]) + noise[:, 0], 0, 1)
    self_check = np.clip(process + noise[:, 1], 0, 1)
    return _assemble(gold[:, None] + offset, offset == 0, process, self_check)


def _assemble(value, correct, process, self_check) -> SeedTable:
    steps = np.broadcast_to(np.arange(SLOTS) % 4 + 1.0, value.shape)
    integer = (value == np.round(value)).astype(float)
    share = np.minimum(steps / 4, 1)
    features = [
        np.ones_like(value),
        np.tanh(value / 100),
        np.tanh(np.abs(value) / 100),
        integer,
        1 / steps,
        (steps > 1).astype(float),
        share,
        self_check,
    ]
    parts = [correct.astype(float), integer, process, 1 / steps]
    length = np.maximum(1, np.rint(4 * share)).astype(np.int64)
    arrays = (
        np.stack(features, -1),
        np.stack(parts, -1),
        correct.astype(np.int64),
        length,
    )
    return SeedTable(*(torch.from_numpy(a)[None] for a in arrays))


def stack(tables: Sequence[SeedTable]) -> SeedTable:
    """Tables of independent runs side by side: S of [1, N, ...] -> [S, N, ...]."""
    return SeedTable(
        *(torch.cat([getattr(t, f.name) for t in tables]) for f in fields(SeedTable))
    )


class SeedTask:
    """Draws rows uniformly with replacement, and grades from the table.

    `draws` counts prompts so far over all lanes: the next group id.
    """

    def __init__(self, table: SeedTable) -> None:
        self.table = table
        self.reward = table.reward
        self.draws = 0

    def draw(self, need: Tensor, generator: Sequence[np.random.Generator]) -> Prompts:
        """need [S] prompts, each lane from its own generator. Shape: [sum of need]."""
        rows = [
            g.integers(0, len(self.table), size=n)
            for g, n in zip(generator, need.tolist(), strict=True)
        ]
        lane = torch.arange(len(rows)).repeat_interleave(need)
        group_id = torch.arange(self.draws, self.draws + len(lane))
        self.draws += len(lane)
        return Prompts(torch.from_numpy(np.concatenate(rows)), group_id, lane)

    def grade(self, rollout: Rollout) -> Rollout:
        """Look up `correct` and `reward` of the chosen candidates, [B] each."""
        chosen = (rollout.lane, rollout.index, rollout.tokens[:, 0])
        return rollout.graded(self.table.correct[chosen], self.reward[chosen])
