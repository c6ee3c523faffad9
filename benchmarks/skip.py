"""What it saves to leave groups without signal out of the forward pass (beta = 0).

Their tokens stay in the denominator, so the gradient is the same. Half of the groups
are given one reward for all. Left out: the loop, which does not do this: with dynamic
sampling there is no such group.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from torch import Tensor

from benchmarks.ours import ALGORITHM, Ours, timed
from dapo_lib.objective import count_denominator, policy_loss
from dapo_lib.rollout import Rollout
from dapo_lib.train import advantages, minibatches


def measure(ours: Ours, repeats: int = 5) -> dict[str, Any]:
    """One row: updates without the skip over updates with it."""
    rollout = ours.rollout
    silent = rollout.group_id % 2 == 0
    reward = torch.where(silent, 1.0, (rollout.length % 2).double())
    rollout = rollout.graded(rollout.correct, reward)
    ratios, gap = [], 0.0
    for _ in range(repeats + 1):
        plain, whole = timed(lambda: gradients(ours, rollout, skip=False))
        quick, part = timed(lambda: gradients(ours, rollout, skip=True))
        ratios.append(plain / quick)
        gap = max(gap, float((whole - part).norm() / whole.norm()))
    kept = ratios[1:]
    return {
        "work": f"{ours.work.name}: half of the groups without signal",
        "part": "skip",
        "lengths": "realistic",
        "peer": "ours without the skip",
        "ratio_peer_ours": statistics.median(kept),
        "ratio_ours_floor": None,
        "low": min(kept),
        "high": max(kept),
        "pairs": repeats,
        "gradient_gap": gap,
    }


def gradients(ours: Ours, rollout: Rollout, *, skip: bool) -> Tensor:
    """The summed gradient of all mini-batches at the current weights, flat."""
    advantage = advantages(ALGORITHM, ours.schedule, rollout)
    parameters = list(ours.policy.parameters())
    total = torch.zeros(sum(p.numel() for p in parameters))
    generator = torch.Generator().manual_seed(3)
    for rows in minibatches(ours.schedule, rollout, generator):
        whole = count_denominator(rollout.mask[rows], ALGORITHM.reduction)
        kept = (advantage[rows] != 0).nonzero()[:, 0] if skip else slice(None)
        part = rollout.rows(rows[kept])
        if not len(part):
            continue
        loss = policy_loss(
            ours.policy.log_prob(part),
            part.log_prob_old,
            advantage[rows[kept]],
            part.mask,
            eps_low=ALGORITHM.eps_low,
            eps_high=ALGORITHM.eps_high,
            reduction=ALGORITHM.reduction,
            denominator=whole[kept],
        ).loss
        found = torch.autograd.grad(loss, parameters)
        total += torch.cat([g.flatten() for g in found])
    return total
