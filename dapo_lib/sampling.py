"""Dynamic sampling (Eq 11, Alg 1): draw prompts until enough groups carry a signal.

Left out: advantages and shaping. The filter reads how many answers of a group are
right, before any shaping: a penalty must not make a dead group look alive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
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

    Shape: group_id, n_correct, size, lane, tokens, reward, valid: [groups].
    """

    row_group: Tensor
    group_id: Tensor
    n_correct: Tensor
    size: Tensor
    lane: Tensor
    tokens: Tensor
    reward: Tensor
    valid: Tensor

    def __len__(self) -> int:
        return len(self.group_id)


def groups_of(rollout: Rollout) -> Groups:
    """Collect a graded rollout by its group ids.

    Raises ``ValueError`` if it is not graded, or `correct` is not 0/1.
    """
    graded = rollout.correct is not None and rollout.reward is not None
    expect(graded, "rollout", "no verdicts", "a graded rollout (correct and reward)")
    right = rollout.correct == 1
    binary = bool((right | (rollout.correct == 0)).all())
    expect(binary, "correct", "a value besides 0 and 1", "0 or 1, never a reward")
    # the books are kept on the CPU, wherever the rollout lives
    ids, row, size = torch.unique(
        rollout.group_id.cpu(), return_inverse=True, return_counts=True
    )
    columns = [right, rollout.length, rollout.reward]
    if rollout.valid is not None:
        columns.append(~rollout.valid)
    amounts = torch.stack([c.to("cpu", torch.float64) for c in columns])
    sums = amounts.new_zeros(len(columns), len(ids)).index_add_(1, row, amounts)
    valid = sums[3] == 0 if len(columns) == 4 else torch.ones_like(ids).bool()
    lane = torch.zeros_like(ids).index_copy_(0, row, rollout.lane.to(ids))
    n_correct, tokens = sums[:2].round().long()
    return Groups(row, ids, n_correct, size, lane, tokens, sums[2], valid)


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
        parts, have = self._carried(ledger)
        drawn: list[Groups] = []
        last_id = None
        for _ in range(self.max_rounds):
            missing = (self.n_groups - have).clamp(min=0)
            if not missing.any():
                break
            prompts = draw(torch.ceil(missing * self.oversample).long())
            if not len(prompts):
                break
            last_id = _in_draw_order(prompts, last_id)
            ledger.rounds += missing > 0
            rollout = generate(prompts)
            g = groups_of(rollout)
            alive = g.valid & self.keep(g.n_correct, g.size)
            parts += _living(rollout, g, alive)
            have = have + torch.bincount(g.lane[alive], minlength=self.lanes)
            drawn.append(g)
        self._account(drawn, ledger)
        ledger.exhausted = bool((have < self.n_groups).any())
        return self._settle(parts, ledger), ledger

    def _carried(self, ledger: Ledger) -> tuple[list[Rollout], Tensor]:
        """What waits from the batch before, and how many groups of each lane it is."""
        if self.buffer is None:
            return [], torch.zeros(self.lanes, dtype=torch.long)
        lane = groups_of(self.buffer).lane
        ledger.enter(lane, carried=torch.ones_like(lane))
        return [self.buffer], torch.bincount(lane, minlength=self.lanes)

    def _account(self, drawn: list[Groups], ledger: Ledger) -> None:
        """Enter the groups of all rounds into the ledger."""
        if not drawn:
            return
        names = ("n_correct", "size", "lane", "tokens", "reward", "valid")
        n_correct, size, lane, tokens, reward, valid = (
            torch.cat([getattr(g, name) for g in drawn]) for name in names
        )
        ledger.enter(
            lane,
            prompts_drawn=torch.ones_like(size),
            all_right=valid & (n_correct == size),
            all_wrong=valid & (n_correct == 0),
            invalid=~valid,
            tokens_generated=tokens,
            responses_all=size * valid,
            reward_all=reward * valid,
        )
        cell = lane * (self.group_size + 1) + n_correct.clamp(max=self.group_size)
        ledger.histogram.view(-1).index_add_(0, cell, valid.to(torch.float64))

    def _settle(self, parts: list[Rollout], ledger: Ledger) -> Rollout | None:
        """Take the first n_groups of every lane in draw order; settle the rest."""
        if not parts:
            self.buffer = None
            return self._starve(ledger) if ledger.exhausted else None
        pool = concatenate(parts)
        g = groups_of(pool)
        used = _rank_within(g.lane, self.lanes) < self.n_groups
        postponed = ledger.exhausted and self.on_exhausted != "partial"
        if postponed:
            used = torch.zeros_like(used)
        ledger.enter(
            g.lane,
            kept=used,
            surplus=~used,
            tokens_used=g.tokens * used,
            responses_kept=g.size * used,
            reward_kept=g.reward * used,
        )
        everything = bool(used.all())
        waits = (self.surplus == "carry" or postponed) and not everything
        self.buffer = pool.rows(~used[g.row_group]) if waits else None
        if postponed:
            return self._starve(ledger)
        return pool if everything else pool.rows(used[g.row_group])

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


def _living(rollout: Rollout, groups: Groups, alive: Tensor) -> list[Rollout]:
    """The rows of the groups to keep, as a list of one rollout or none."""
    if not alive.any():
        return []
    whole = bool(alive.all())
    return [rollout if whole else rollout.rows(alive[groups.row_group])]


def _in_draw_order(prompts: Prompts, last_id: Tensor | None) -> Tensor:
    """Check that ids grow: a reused id would merge two draws into one group."""
    ids = prompts.group_id
    before = ids if last_id is None else torch.cat([last_id, ids])
    grow = bool((before.diff() > 0).all())
    expect(grow, "group_id", "ids that do not grow", "a new, larger id for every draw")
    return ids[-1:]


def _rank_within(lane: Tensor, lanes: int) -> Tensor:
    """The position of each group among those of its lane, in draw order: [groups]."""
    if lanes == 1:
        return torch.arange(len(lane))
    order = torch.argsort(lane, stable=True)
    size = torch.bincount(lane, minlength=lanes)
    rank = torch.empty_like(lane)
    rank[order] = torch.arange(len(lane)) - (size.cumsum(0) - size)[lane[order]]
    return rank
