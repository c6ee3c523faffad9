"""Group-relative advantages (Eq 9): how much better a response did than its group.

Left out: per-token credit. Every token of a response gets the response's advantage.
"""

from __future__ import annotations

import warnings
from typing import Literal

import torch
from torch import Tensor

from dapo_lib.errors import expect

Scale = Literal["group", "batch", "none"]
Baseline = Literal["mean", "leave_one_out", "batch", "none"]
SCALES: tuple[str, ...] = Scale.__args__
BASELINES: tuple[str, ...] = Baseline.__args__
TOLERANCE = 1e-8  # rewards that differ by no more are equal; float noise is not signal


def group_advantages(
    rewards: Tensor,
    group_ids: Tensor,
    *,
    ddof: int = 1,
    eps: float = 1e-6,
    scale: Scale = "group",
    baseline: Baseline = "mean",
    include: Tensor | None = None,
    lanes: Tensor | None = None,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """Reward minus a baseline, divided by a standard deviation.

    Shape: rewards [B], group_ids [B] of any integers -> [B] float64, no unit.

    The baseline is the group's ``mean``, its mean without the row itself
    (``leave_one_out``), the mean of the ``batch``, or ``none``. The divisor is the
    standard deviation of the ``group``, of the ``batch``, or 1 (``none``), plus `eps`.
    Where a set that a row is compared with or divided by is constant (max - min <=
    tolerance) or has one member, the advantage is exactly 0; a group of one also warns.
    With ``baseline="none"`` and ``scale="none"`` nothing is compared: it is the reward.

    `include` [B] (bool) takes rows out of every mean and deviation: overlong filtering
    with ``baseline="exclude"``, and empty responses; such a row gets 0. `lanes` [B]
    keeps the batch statistics of independent runs apart; group ids differ between
    lanes. Raises ``ValueError`` on shapes that do not match, rewards that are not
    finite and unknown options. Source: paper Eq 9; ddof and eps, where it is silent, as
    verl.

    >>> group_advantages(torch.tensor([1.0, -1, -1, -1]), torch.zeros(4), eps=0)
    tensor([ 1.5000, -0.5000, -0.5000, -0.5000], dtype=torch.float64)
    """
    rewards, group_ids = torch.as_tensor(rewards), torch.as_tensor(group_ids)
    rewards = _checked(rewards, group_ids, include, lanes)
    _check_options(ddof, eps, scale, baseline, tolerance)
    groups, batch = _Sets(rewards, group_ids, include), None
    if "batch" in (scale, baseline):
        one = torch.zeros_like(group_ids) if lanes is None else lanes
        batch = _Sets(rewards, one, include)
    compared = batch if baseline == "batch" else groups if baseline != "none" else None
    divided = {"group": groups, "batch": batch, "none": None}[scale]
    if groups in (compared, divided) and bool((groups.count == 1).any()):
        warnings.warn("a group of one response has advantage 0", stacklevel=2)
    advantage = rewards
    if compared is not None:
        advantage = compared.centred
        if baseline == "leave_one_out":
            others = (groups.count - 1).clamp(min=1)
            advantage = advantage * (groups.count / others)[groups.member]
    if divided is not None:
        advantage = advantage / (divided.deviation(ddof) + eps)[divided.member]
    for used in {compared, divided} - {None}:
        advantage = torch.where(used.differs(tolerance), advantage, 0.0)
    return advantage if include is None else torch.where(include, advantage, 0.0)


class _Sets:
    """The rewards split into sets: groups, or one batch a lane."""

    def __init__(self, rewards: Tensor, ids: Tensor, include: Tensor | None) -> None:
        names, self.member = torch.unique(ids, return_inverse=True)
        self.n, self.rewards, self.include = len(names), rewards, include
        ones = torch.ones_like(rewards) if include is None else include.to(rewards)
        self.count = self._sum(ones)
        mean = self._sum(rewards * ones) / self.count.clamp(min=1)
        self.centred = rewards - mean[self.member]
        if include is not None:
            self.centred = torch.where(include, self.centred, 0.0)

    def _sum(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.n).index_add_(0, self.member, values)

    def deviation(self, ddof: int) -> Tensor:
        """Two passes: E[x^2] - E[x]^2 loses every digit of a nearly constant set."""
        return (
            self._sum(self.centred.square()) / (self.count - ddof).clamp(min=1)
        ).sqrt()

    def differs(self, tolerance: float) -> Tensor:
        """Rows whose set holds two rewards further apart than the tolerance: [B]."""
        low = high = self.rewards
        if self.include is not None:
            low = torch.where(self.include, low, torch.inf)
            high = torch.where(self.include, high, -torch.inf)
        ends = torch.stack([-low, high])
        most = torch.full_like(ends[:, : self.n], -torch.inf)
        most.scatter_reduce_(1, self.member.expand(2, -1), ends, "amax")
        return (most.sum(0) > tolerance)[self.member]


def _checked(rewards, group_ids, include, lanes) -> Tensor:
    shape = tuple(rewards.shape)
    filled = len(shape) == 1 and shape[0] > 0
    expect(filled, "rewards", shape, "shape [B] with B >= 1")
    for name, value in (("group_ids", group_ids), ("lanes", lanes)):
        same = value is None or tuple(value.shape) == shape
        expect(same, name, None if same else tuple(value.shape), f"shape {shape}")
    if include is not None:
        same = tuple(include.shape) == shape and include.dtype is torch.bool
        got = f"{tuple(include.shape)} {include.dtype}"
        expect(same, "include", got, f"a bool tensor of shape {shape}")
    rewards = rewards.detach().to(torch.float64)
    if not bool(rewards.isfinite().all()):
        row = int((~rewards.isfinite()).nonzero()[0])
        expect(False, "rewards", f"{rewards[row]} in row {row}", "finite numbers")
    return rewards


def _check_options(ddof, eps, scale, baseline, tolerance) -> None:
    expect(ddof in (0, 1), "ddof", repr(ddof), "0 or 1")
    expect(eps >= 0, "eps", eps, "a number >= 0")
    expect(tolerance >= 0, "tolerance", tolerance, "a number >= 0")
    expect(scale in SCALES, "scale", repr(scale), " | ".join(SCALES))
    expect(baseline in BASELINES, "baseline", repr(baseline), " | ".join(BASELINES))
