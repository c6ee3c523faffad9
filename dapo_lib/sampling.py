"""Dynamic sampling (Eq 11, Alg 1): draw prompts until enough groups carry a signal.

Left out: advantages and shaping. The filter reads how many answers of a group are
right, before any shaping: a penalty must not make a dead group look alive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import accumulate
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from dapo_lib.errors import Starved, expect
from dapo_lib.rollout import Prompts, Rollout, concatenate

OnExhausted = Literal["error", "partial", "skip"]
Surplus = Literal["drop", "carry"]
Draw = Callable[[Tensor], Prompts]
Generate = Callable[[Prompts], Rollout]


@dataclass
class Ledger:
    """What a batch cost, per lane (independent run); all are counts or sums, [lanes].

    ``rounds`` of drawing; groups: ``prompts_drawn``, of them ``all_right``,
    ``all_wrong``, ``invalid`` (reference answer unreadable); ``carried`` in from the
    batch before; ``kept`` for this batch, ``surplus`` that passed the filter without
    being needed. Tokens: generated, and used for this batch. ``reward_all`` and
    ``reward_kept`` are sums of the rule reward before and after the filter, over
    ``responses_all`` and ``responses_kept`` responses of readable problems.
    ``histogram`` [lanes, G + 1] counts readable groups by their number right.
    ``exhausted``: a lane got fewer groups than asked for.
    """

    rounds: Tensor
    prompts_drawn: Tensor
    all_right: Tensor
    all_wrong: Tensor
    invalid: Tensor
    carried: Tensor
    kept: Tensor
    surplus: Tensor
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
        names = [
            f.name for f in fields(cls) if f.name not in ("histogram", "exhausted")
        ]
        table = torch.zeros(len(names), lanes, dtype=torch.float64)
        histogram = torch.zeros(lanes, group_size + 1, dtype=torch.float64)
        return cls(**dict(zip(names, table, strict=True)), histogram=histogram)

    def __add__(self, other: Ledger) -> Ledger:
        """Two batches taken together."""
        names = [f.name for f in fields(self) if f.name != "exhausted"]
        sums = {n: getattr(self, n) + getattr(other, n) for n in names}
        return Ledger(**sums, exhausted=self.exhausted or other.exhausted)

    def enter(self, lane: Tensor, **columns: Tensor) -> None:
        """Add amounts [groups], each to the lane of its group."""
        amounts = torch.stack([c.to(torch.float64) for c in columns.values()])
        sums = amounts.new_zeros(len(columns), len(self.rounds))
        sums.index_add_(1, lane, amounts)
        for name, amount in zip(columns, sums, strict=True):
            getattr(self, name).add_(amount)


@dataclass(frozen=True)
class Groups:
    """The groups of a rollout by ascending id; `row_group` [B] says which a row is in.

    Shape: group_id, n_correct, size, lane, valid: [groups]; of the responses
    themselves, length in tokens and reward: [B].
    """

    row_group: Tensor
    group_id: Tensor
    n_correct: Tensor
    size: Tensor
    lane: Tensor
    valid: Tensor
    length: Tensor
    response_reward: Tensor

    def __len__(self) -> int:
        return len(self.group_id)

    @property
    def tokens(self) -> Tensor:
        """Tokens of each group: [groups]."""
        return self._sum(self.length)

    @property
    def reward(self) -> Tensor:
        """The sum of each group's rewards: [groups] float64."""
        return self._sum(self.response_reward.to(torch.float64))

    def _sum(self, amount: Tensor) -> Tensor:
        return amount.new_zeros(len(self)).index_add_(0, self.row_group, amount)


def groups_of(rollout: Rollout) -> Groups:
    """Collect a graded rollout by its group ids.

    Raises ``ValueError`` if it is not graded, or `correct` is not 0/1.
    """
    graded = rollout.correct is not None and rollout.reward is not None
    expect(graded, "rollout", "no verdicts", "a graded rollout (correct and reward)")
    # the books are kept on the CPU, wherever the rollout lives
    correct = rollout.correct.cpu()
    right = correct.to(torch.long)
    binary = torch.equal(right.bool().to(correct.dtype), correct)
    expect(binary, "correct", "a value besides 0 and 1", "0 or 1, never a reward")
    ids, row, size = torch.unique(
        rollout.group_id.cpu(), return_inverse=True, return_counts=True
    )
    n_correct = torch.zeros_like(ids).index_add_(0, row, right)
    lane = torch.zeros_like(ids).index_copy_(0, row, rollout.lane.to(ids))
    valid = torch.ones_like(ids, dtype=torch.bool)
    if rollout.valid is not None:
        valid[row[~rollout.valid.cpu()]] = False
    length, reward = rollout.length.cpu(), rollout.reward.cpu()
    return Groups(row, ids, n_correct, size, lane, valid, length, reward)


def _joined(parts: list[Groups]) -> Groups:
    """The groups of several rollouts, whose ids grow from part to part, as one."""
    columns = {
        f.name: torch.cat([getattr(g, f.name) for g in parts])
        for f in fields(Groups)[1:]
    }
    start = accumulate((len(g) for g in parts[:-1]), initial=0)
    rows = [g.row_group + n for g, n in zip(parts, start, strict=True)]
    return Groups(torch.cat(rows), **columns)


def has_signal(n_correct: Tensor, size: Tensor) -> Tensor:
    """Which groups Eq 11 keeps: 0 < number of right answers < group size, in integers.

    Shape: n_correct [groups], size [groups] -> [groups] bool.

    >>> has_signal(torch.tensor([0, 1, 4]), torch.tensor([4, 4, 4]))
    tensor([False,  True, False])
    """
    return (n_correct > 0) & (n_correct < size)


def keep_everything(n_correct: Tensor, size: Tensor) -> Tensor:
    """The filter switched off: every group is kept. Shape: as :func:`has_signal`."""
    return torch.ones_like(n_correct, dtype=torch.bool)


@dataclass
class _Pool:
    """Rollouts of which some group lives, in draw order, and which groups those are.

    Rows are picked once, at the end: a round costs no copy of its tokens.
    """

    parts: list[Rollout]
    groups: list[Groups]
    alive: list[Tensor]

    @classmethod
    def of(cls, buffer: Rollout | None) -> _Pool:
        """What waits from the batch before; all of it lives."""
        if buffer is None:
            return cls([], [], [])
        g = groups_of(buffer)
        return cls([buffer], [g], [torch.ones_like(g.lane, dtype=torch.bool)])

    def add(self, rollout: Rollout, groups: Groups, alive: Tensor) -> None:
        """Another round; one without a living group is forgotten."""
        if alive.any():
            self.parts.append(rollout)
            self.groups.append(groups)
            self.alive.append(alive)

    def joined(self) -> tuple[Rollout, Groups, Tensor]:
        """All rounds as one."""
        return concatenate(self.parts), _joined(self.groups), torch.cat(self.alive)


@dataclass
class DynamicSampler:
    """Fills a batch of `n_groups` groups a lane, in at most `max_rounds` rounds.

    `draw(need)` takes how many prompts each lane still needs, [lanes], and returns them
    in draw order, with ids that grow from draw to draw; fewer than asked for means that
    the data run out, none at all that they are over. `generate(prompts)` returns the
    graded responses, in any order: groups are accepted in draw order, not in the order
    in which they finish. `oversample` draws that many times the missing number; what
    passes the filter and is not needed is surplus: dropped, or carried into the next
    batch.

    When rounds or data are used up, `on_exhausted` decides: ``partial`` returns what
    was kept (None if nothing), ``skip`` returns None and keeps the groups for the next
    batch, ``error`` raises :class:`Starved`, whose ``ledger`` says what happened, and
    keeps them too. `buffer` holds the groups that wait and is the sampler's whole
    state; `fill` changes it only at its end, so an interrupted one leaves it as it was.
    Raises ``ValueError`` on options out of range. Source: paper Eq 11, Alg 1.
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
        for name in ("n_groups", "group_size", "max_rounds", "lanes"):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and value >= 1
            expect(whole, name, repr(value), "a whole number >= 1")
        expect(self.oversample >= 1, "oversample", self.oversample, "a factor >= 1")
        for name, choices in (("on_exhausted", OnExhausted), ("surplus", Surplus)):
            value = getattr(self, name)
            wanted = " | ".join(choices.__args__)
            expect(value in choices.__args__, name, repr(value), wanted)

    def fill(self, draw: Draw, generate: Generate) -> tuple[Rollout | None, Ledger]:
        """One batch and what it cost; see the class."""
        ledger = Ledger.empty(self.lanes, self.group_size)
        pool = _Pool.of(self.buffer)
        missing = self.n_groups - self._carried(pool, ledger)
        drawn: list[Groups] = []
        asked: list[Prompts] = []
        for _ in range(self.max_rounds):
            need = missing.clamp(min=0)
            if not need.any():
                break
            prompts = draw(self._oversampled(need))
            if not len(prompts):
                break
            rollout = generate(prompts)
            g = groups_of(rollout)
            alive = g.valid & self.keep(g.n_correct, g.size)
            missing = missing.index_add(0, g.lane, alive.long(), alpha=-1)
            pool.add(rollout, g, alive)
            drawn.append(g)
            asked.append(prompts)
            ledger.rounds += need > 0
        _check_draw_order(asked)
        self._account(drawn, ledger)
        ledger.exhausted = bool((missing > 0).any())
        return self._settle(pool, ledger), ledger

    def _oversampled(self, need: Tensor) -> Tensor:
        """How many prompts to draw for the groups that each lane lacks: [lanes]."""
        if self.oversample == 1:
            return need
        return torch.ceil(need * self.oversample).long()

    def _carried(self, pool: _Pool, ledger: Ledger) -> Tensor:
        """How many groups of each lane wait from the batch before: [lanes]."""
        have = torch.zeros(self.lanes, dtype=torch.long)
        for g in pool.groups:
            ledger.enter(g.lane, carried=torch.ones_like(g.lane))
            have.index_add_(0, g.lane, torch.ones_like(g.lane))
        return have

    def _account(self, drawn: list[Groups], ledger: Ledger) -> None:
        """Enter the groups of all rounds into the ledger."""
        if not drawn:
            return
        g = _joined(drawn)
        ledger.enter(
            g.lane,
            prompts_drawn=torch.ones_like(g.size),
            all_right=g.valid & (g.n_correct == g.size),
            all_wrong=g.valid & (g.n_correct == 0),
            invalid=~g.valid,
            tokens_generated=g.tokens,
            responses_all=g.size * g.valid,
            reward_all=g.reward * g.valid,
        )
        cell = g.lane * (self.group_size + 1) + g.n_correct.clamp(max=self.group_size)
        ledger.histogram.view(-1).index_add_(0, cell, g.valid.to(torch.float64))

    def _settle(self, pool: _Pool, ledger: Ledger) -> Rollout | None:
        """Take the first n_groups of every lane in draw order; settle the rest."""
        if not pool.parts:
            self.buffer = None
            return self._starve(ledger) if ledger.exhausted else None
        rollout, g, alive = pool.joined()
        used = _rank_within(g.lane[alive], self.lanes) < self.n_groups
        postponed = ledger.exhausted and self.on_exhausted != "partial"
        if postponed:
            used = torch.zeros_like(used)
        kept = torch.zeros_like(alive).masked_scatter_(alive, used)
        spare = alive & ~kept
        ledger.enter(
            g.lane,
            kept=kept,
            surplus=spare,
            tokens_used=g.tokens * kept,
            responses_kept=g.size * kept,
            reward_kept=g.reward * kept,
        )
        waits = (self.surplus == "carry" or postponed) and bool(spare.any())
        self.buffer = rollout.rows(spare[g.row_group]) if waits else None
        if postponed:
            return self._starve(ledger)
        return rollout.rows(kept[g.row_group])

    def _starve(self, ledger: Ledger) -> None:
        """Raise, where that is the policy: how many groups, why, what to do."""
        if self.on_exhausted != "error":
            return
        got = int((ledger.kept + ledger.surplus).min())
        rounds = int(ledger.rounds.max())
        why = "the data are over" if rounds < self.max_rounds else "no rounds are left"
        error = Starved(
            f"dynamic sampling: {got} of {self.n_groups} groups after {rounds} of "
            f"max_rounds={self.max_rounds} rounds, {why}; raise max_rounds or "
            "group_size, use easier prompts, or set on_exhausted to partial or skip"
        )
        error.ledger = ledger
        raise error


def _check_draw_order(asked: list[Prompts]) -> None:
    """Check that ids grow: a reused id would merge two draws into one group."""
    ids = torch.cat([p.group_id for p in asked]) if asked else torch.arange(0)
    grow = bool((ids.diff() > 0).all())
    expect(grow, "group_id", "ids that do not grow", "a new, larger id for every draw")


def _rank_within(lane: Tensor, lanes: int) -> Tensor:
    """The position of each group among those of its lane, in draw order: [groups]."""
    if lanes == 1:
        return torch.arange(len(lane))
    order = torch.argsort(lane, stable=True)
    size = torch.bincount(lane, minlength=lanes)
    rank = torch.empty_like(lane)
    rank[order] = torch.arange(len(lane)) - (size.cumsum(0) - size)[lane[order]]
    return rank
