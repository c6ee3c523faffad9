"""Dynamic sampling (Eq 11, Alg 1): draw prompts until enough groups carry a signal.

Left out: advantages and shaping. The filter reads how many answers of a group are right,
before any shaping: a penalty must not make a dead group look alive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from dapo_lib.errors import BadInput, Starved, expect
from dapo_lib.rollout import Prompts, Rollout, concatenate

OnExhausted = Literal["error", "partial", "skip"]
Surplus = Literal["drop", "carry"]
Draw = Callable[[Tensor], Prompts]
Generate = Callable[[Prompts], Rollout]


@dataclass
class Ledger:
    """What a batch cost, per lane (independent run); all are counts or sums, [lanes].

    ``reward_all`` and ``reward_kept`` are sums of the rule reward before and after the
    filter, over ``responses_all`` and ``responses_kept`` responses. ``histogram``
    [lanes, G + 1] counts the drawn groups by their number of right answers.
    """

    rounds: Tensor
    prompts_drawn: Tensor
    all_right: Tensor
    all_wrong: Tensor
    kept: Tensor
    surplus: Tensor
    invalid: Tensor
    tokens_generated: Tensor
    tokens_used: Tensor
    responses_all: Tensor
    responses_kept: Tensor
    reward_all: Tensor
    reward_kept: Tensor
    histogram: Tensor
    exhausted: bool = False

    @classmethod
    def empty(cls, lanes: int, group_size: int) -> Ledger:
        """A ledger of zeros."""
        names = [n for n in cls.__dataclass_fields__ if n not in _NOT_COUNTS]
        zeros = {n: torch.zeros(lanes, dtype=torch.float64) for n in names}
        shape = (lanes, group_size + 1)
        return cls(**zeros, histogram=torch.zeros(shape, dtype=torch.float64))


_NOT_COUNTS = ("histogram", "exhausted")


@dataclass(frozen=True)
class Groups:
    """The groups of a rollout in draw order; `row_group` [B] says which a row is in.

    Shape: n_correct, size, lane, tokens, reward, group_id, valid: [groups].
    """

    row_group: Tensor
    group_id: Tensor
    n_correct: Tensor
    size: Tensor
    lane: Tensor
    tokens: Tensor
    reward: Tensor
    valid: Tensor


def groups_of(rollout: Rollout) -> Groups:
    """Collect a graded rollout by its group ids. Raises ``ValueError`` if not graded."""
    graded = rollout.correct is not None and rollout.reward is not None
    expect(graded, "rollout", "no verdicts", "a graded rollout (correct and reward)")
    ids, row = torch.unique(rollout.group_id, return_inverse=True)

    def total(values: Tensor) -> Tensor:
        return torch.zeros(len(ids), dtype=values.dtype).index_add_(0, row, values)

    lane = torch.zeros(len(ids), dtype=torch.long).index_copy_(0, row, rollout.lane)
    bad = torch.zeros_like(row) if rollout.valid is None else (~rollout.valid).long()
    return Groups(
        row,
        ids,
        total(rollout.correct.long()),
        total(torch.ones_like(row)),
        lane,
        total(rollout.length.long()),
        total(rollout.reward.to(torch.float64)),
        total(bad) == 0,
    )


def has_signal(n_correct: Tensor, size: Tensor) -> Tensor:
    """Which groups Eq 11 keeps: 0 < number of right answers < group size, in integers.

    Shape: n_correct [groups], size [groups] -> [groups] bool.

    >>> has_signal(torch.tensor([0, 1, 4]), torch.tensor([4, 4, 4]))
    tensor([False,  True, False])
    """
    return (0 < n_correct) & (n_correct < size)


def keep_everything(n_correct: Tensor, size: Tensor) -> Tensor:
    """The filter switched off: every group is kept. Shape: as :func:`has_signal`."""
    return torch.ones_like(n_correct, dtype=torch.bool)


@dataclass
class DynamicSampler:
    """Fills a batch of `n_groups` groups a lane, at most `max_rounds` rounds of draws.

    `draw(need)` takes how many prompts each lane still needs, [lanes], and returns them
    in draw order; `generate(prompts)` returns their graded responses. Groups are accepted
    in draw order. When `max_rounds` are used up: ``error`` raises :class:`Starved`,
    ``partial`` returns what was kept, ``skip`` returns None (no update; the groups are
    counted, and carried if `surplus` is ``carry``). `oversample` draws that many times
    the missing number; what is more than needed is surplus: dropped, or carried into the
    next batch. Raises ``ValueError`` on options out of range. Source: paper Eq 11, Alg 1.
    """

    n_groups: int
    group_size: int
    keep: Callable[[Tensor, Tensor], Tensor] = has_signal
    max_rounds: int = 10
    on_exhausted: OnExhausted = "partial"
    surplus: Surplus = "drop"
    oversample: float = 1.0
    lanes: int = 1
    buffer: Rollout | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        expect(
            self.n_groups >= 1, "n_groups", self.n_groups, "at least 1 group a batch"
        )
        expect(self.group_size >= 1, "group_size", self.group_size, "at least 1")
        expect(self.max_rounds >= 1, "max_rounds", self.max_rounds, "at least 1 round")
        expect(self.oversample >= 1, "oversample", self.oversample, "a factor >= 1")
        if self.on_exhausted not in ("error", "partial", "skip"):
            raise BadInput(
                f"on_exhausted: got {self.on_exhausted!r}, expected error, partial or skip"
            )
        if self.surplus not in ("drop", "carry"):
            raise BadInput(f"surplus: got {self.surplus!r}, expected drop or carry")

    def fill(self, draw: Draw, generate: Generate) -> tuple[Rollout | None, Ledger]:
        """One batch and what it cost; see the class. The ledger is filled in any case."""
        ledger = Ledger.empty(self.lanes, self.group_size)
        parts = [] if self.buffer is None else [self.buffer]
        have = self._kept_per_lane(parts)
        self.buffer = None
        for _ in range(self.max_rounds):
            missing = (self.n_groups - have).clamp(min=0)
            if not missing.any():
                break
            need = torch.ceil(missing * self.oversample).long()
            rollout = generate(draw(need))
            ledger.rounds += missing > 0
            kept = self._account(rollout, ledger)
            if len(kept):
                parts.append(kept)
            have = self._kept_per_lane(parts)
        return self._accept(parts, have, ledger)

    def _kept_per_lane(self, parts: list[Rollout]) -> Tensor:
        have = torch.zeros(self.lanes, dtype=torch.long)
        for part in parts:
            groups = groups_of(part)
            have += torch.bincount(groups.lane, minlength=self.lanes)
        return have

    def _account(self, rollout: Rollout, ledger: Ledger) -> Rollout:
        """Enter a round's groups into the ledger; return the rows of those to keep."""
        g = groups_of(rollout)
        alive = g.valid & self.keep(g.n_correct, g.size)

        def add(column: Tensor, which: Tensor, values: Tensor | None = None) -> None:
            values = torch.ones_like(g.lane) if values is None else values
            column.index_add_(0, g.lane[which], values[which].to(column.dtype))

        everything = torch.ones_like(alive)
        add(ledger.prompts_drawn, everything)
        add(ledger.tokens_generated, everything, g.tokens)
        add(ledger.responses_all, everything, g.size)
        add(ledger.reward_all, everything, g.reward)
        add(ledger.invalid, ~g.valid)
        add(ledger.all_wrong, g.valid & (g.n_correct == 0))
        add(ledger.all_right, g.valid & (g.n_correct == g.size))
        ones = torch.ones(len(g.lane), dtype=torch.float64)
        where = (g.lane, g.n_correct.clamp(max=self.group_size))
        ledger.histogram.index_put_(where, ones, accumulate=True)
        return rollout if alive.all() else rollout.rows(alive[g.row_group])

    def _accept(self, parts, have, ledger) -> tuple[Rollout | None, Ledger]:
        """Take the first n_groups of every lane in draw order; settle the rest."""
        short = bool((have < self.n_groups).any())
        ledger.exhausted = short
        if short and self.on_exhausted == "error":
            raise Starved(
                f"dynamic sampling: {int(have.min())} of {self.n_groups} groups kept after "
                f"max_rounds={self.max_rounds}; raise max_rounds or group_size, use easier "
                "prompts, or set on_exhausted to partial or skip"
            )
        if not parts:
            return None, ledger
        pool = concatenate(parts)
        g = groups_of(pool)
        # rank of each group within its lane; ids grow in draw order
        order = torch.argsort(g.lane, stable=True)
        first = torch.cumsum(torch.bincount(g.lane, minlength=self.lanes), 0)
        start = torch.cat([torch.zeros(1, dtype=torch.long), first[:-1]])
        rank = torch.empty_like(g.lane)
        rank[order] = torch.arange(len(order)) - start[g.lane[order]]
        skipped = short and self.on_exhausted == "skip"
        taken = (rank < self.n_groups) & (not skipped)
        for column, values, which in (
            (ledger.kept, torch.ones_like(g.size), taken),
            (ledger.surplus, torch.ones_like(g.size), ~taken),
            (ledger.tokens_used, g.tokens, taken),
            (ledger.responses_kept, g.size, taken),
            (ledger.reward_kept, g.reward, taken),
        ):
            column.index_add_(0, g.lane[which], values[which].to(column.dtype))
        if self.surplus == "carry" and not taken.all():
            self.buffer = pool.rows(~taken[g.row_group])
        if skipped:
            return None, ledger
        return (pool if taken.all() else pool.rows(taken[g.row_group])), ledger
