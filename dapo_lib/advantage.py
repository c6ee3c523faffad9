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
TOLERANCE = 1e-8  # a group whose rewards differ by no more is constant


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
) -> Tensor:
    """Reward minus its group's baseline, divided by a standard deviation.

    Shape: rewards [B], group_ids [B] of any integers -> [B] float64, no unit.
    ``include`` [B] (bool) takes rows out of mean and std, for overlong filtering with
    ``baseline="exclude"`` and for empty responses; such a row gets 0. ``lanes`` [B]
    keeps the batch statistics of independent runs apart. A constant group, and a group
    of one (with a warning), get exactly 0. Raises ``ValueError`` on shapes that do not
    match, rewards that are not finite and unknown options. Source: paper Eq 9; ddof and
    eps as verl has them, where the paper is silent.

    >>> group_advantages(torch.tensor([1.0, -1, -1, -1]), torch.zeros(4), eps=0)
    tensor([ 1.5000, -0.5000, -0.5000, -0.5000], dtype=torch.float64)
    """
    rewards, include = _checked(rewards, group_ids, ddof, eps, scale, baseline, include)
    group = torch.unique(group_ids, return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    used = torch.where(include, rewards, 0.0)
    count = _sum_by(group, include.to(rewards.dtype), n_groups)
    mean = _sum_by(group, used, n_groups) / count.clamp(min=1)
    centred = torch.where(include, rewards - mean[group], 0.0)
    if baseline == "leave_one_out":
        centred = centred * (count / (count - 1).clamp(min=1))[group]
    alive = include & (_range(group, rewards, include, n_groups) > TOLERANCE)[group]
    if bool((count == 1).any()):
        warnings.warn("a group of one response has advantage 0", stacklevel=2)
    if scale == "none":
        return torch.where(alive, centred, 0.0)
    if scale == "group":
        deviation = _std(rewards - mean[group], include, group, n_groups, ddof)[group]
    else:
        deviation = _batch_std(rewards, include, lanes, ddof)
    return torch.where(alive, centred / (deviation + eps), 0.0)


def _sum_by(group: Tensor, values: Tensor, n: int) -> Tensor:
    return torch.zeros(n, dtype=values.dtype).index_add_(0, group, values)


def _range(group: Tensor, rewards: Tensor, include: Tensor, n: int) -> Tensor:
    """Largest minus smallest included reward of each group, [n]; -inf where none."""
    low = torch.where(include, rewards, torch.inf)
    high = torch.where(include, rewards, -torch.inf)
    fold = torch.full((2, n), torch.inf, dtype=rewards.dtype)
    fold[0].scatter_reduce_(0, group, low, "amin")
    fold[1].scatter_reduce_(0, group, -high, "amin")
    return -fold[1] - fold[0]


def _std(centred: Tensor, include: Tensor, group: Tensor, n: int, ddof: int) -> Tensor:
    square = torch.where(include, centred.square(), 0.0)
    count = _sum_by(group, include.to(square.dtype), n)
    return (_sum_by(group, square, n) / (count - ddof).clamp(min=1)).sqrt()


def _batch_std(rewards: Tensor, include: Tensor, lanes: Tensor | None, ddof: int):
    lane = torch.zeros_like(rewards, dtype=torch.long) if lanes is None else lanes
    lane = torch.unique(lane, return_inverse=True)[1]
    n = int(lane.max()) + 1
    count = _sum_by(lane, include.to(rewards.dtype), n).clamp(min=1)
    mean = _sum_by(lane, torch.where(include, rewards, 0.0), n) / count
    return _std(rewards - mean[lane], include, lane, n, ddof)[lane]


def _checked(rewards, group_ids, ddof, eps, scale, baseline, include):
    shape = tuple(rewards.shape)
    expect(
        rewards.ndim == 1 and len(rewards) > 0, "rewards", shape, "shape [B], B >= 1"
    )
    expect(
        group_ids.shape == rewards.shape,
        "group_ids",
        tuple(group_ids.shape),
        f"{shape}",
    )
    rewards = rewards.to(torch.float64)
    expect(bool(rewards.isfinite().all()), "rewards", "NaN or inf", "finite numbers")
    expect(ddof in (0, 1), "ddof", ddof, "0 or 1")
    expect(eps >= 0, "eps", eps, "a number >= 0")
    expect(
        scale in ("group", "batch", "none"),
        "scale",
        repr(scale),
        "group, batch or none",
    )
    expect(
        baseline in ("mean", "leave_one_out"),
        "baseline",
        repr(baseline),
        "mean or leave_one_out",
    )
    if include is None:
        include = torch.ones_like(rewards, dtype=torch.bool)
    expect(include.shape == rewards.shape, "include", tuple(include.shape), f"{shape}")
    return rewards, include.bool()
