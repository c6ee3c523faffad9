"""This library's answers: each operation is a call of the function that trains.

Left out: optional arguments that no row asks for.
"""

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any

import torch
from torch import Tensor

from dapo_lib import kl as estimators
from dapo_lib import metrics
from dapo_lib.advantage import group_advantages
from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.candidate.exact.groups import dead_group_probability
from dapo_lib.objective import count_denominator, policy_loss
from dapo_lib.overlong import overlong_mask, soft_overlong
from dapo_lib.rollout import Prompts, Rollout, response_mask, rule_reward
from dapo_lib.sampling import DynamicSampler, has_signal
from dapo_lib.train import Schedule
from dapo_lib.train import advantages as train_advantages
from dapo_lib.train import shaped_reward as train_shaped_reward
from dapo_lib.verifier import verify

warnings.simplefilter("ignore")  # a group of one warns; the row is about its value


def versions() -> dict[str, str]:
    """Ours and torch's."""
    from importlib.metadata import version

    return {"dapo_lib": version("dapo-book"), "torch": torch.__version__}


def advantages(
    *,
    rewards,
    groups,
    scale="group",
    dtype="float64",
    lengths=None,
    truncated=None,
    exclude_truncated=False,
):
    r = torch.tensor(rewards, dtype=getattr(torch, dtype))
    ids = torch.tensor(groups)
    if lengths is None and truncated is None:
        return group_advantages(r, ids, scale=scale).tolist()
    filtering = {
        "overlong": "filter",
        "overlong_baseline": "exclude" if exclude_truncated else "include",
    }
    algorithm = ALGORITHMS["dapo"].model_copy(update=filtering)
    batch = _batch(lengths or [3] * len(r), truncated)
    batch = batch.graded(torch.zeros(len(r), dtype=torch.long), r.double())
    from dataclasses import replace

    batch = replace(batch, group_id=ids)
    return train_advantages(algorithm, Schedule(l_max=20), batch).tolist()


def loss(
    *,
    log_ratio,
    advantages,
    mask,
    eps_low=0.2,
    eps_high=0.28,
    reduction="token_mean",
    dual_clip=None,
    dtype="float64",
):
    ratio = torch.tensor(log_ratio, dtype=getattr(torch, dtype))
    old = torch.full_like(ratio, -1.0 - max(0.0, ratio.max().item()))
    new = (old + ratio).requires_grad_()
    weight = torch.tensor(advantages, dtype=ratio.dtype)
    out = policy_loss(
        new,
        old,
        weight,
        torch.tensor(mask),
        eps_low=eps_low,
        eps_high=eps_high,
        reduction=reduction,
        dual_clip=dual_clip,
    )
    out.loss.backward()
    return {"loss": out.loss.item(), "grad": new.grad.tolist()}


def reduce(
    *,
    micro_batches,
    masks=None,
    groups=None,
    truncated=None,
    reduction="token_mean",
    l_max=None,
    width=None,
    rollout_micro_batches=None,
):
    parts = [_padded(rows, width) for rows in micro_batches]
    if masks is not None:
        parts = [(v, torch.tensor(m)) for (v, _), m in zip(parts, masks, strict=True)]
    if truncated is not None:
        cut = [torch.tensor(t) for t in truncated]
        parts = [(v, overlong_mask(m, t)) for (v, m), t in zip(parts, cut, strict=True)]
    widest = max(v.shape[1] for v, _ in parts)
    whole = torch.cat([_widen(m.bool(), widest) for _, m in parts])
    ids = (
        torch.tensor(functools.reduce(operator.iadd, groups, []))
        if groups
        else torch.zeros(len(whole))
    )
    options = {"reduction": reduction, "l_max": l_max}
    count = count_denominator(whole, **options, group_ids=ids)
    total, first = 0.0, 0
    for values, mask in parts:
        rows = slice(first, first + len(values))
        first += len(values)
        log_prob = torch.full_like(values, -1.0)
        out = policy_loss(
            log_prob,
            log_prob,
            -values,
            mask,
            denominator=count[rows],
            group_ids=ids[rows],
            **options,
        )
        total += out.loss.item()
    return total


def clip_shares(*, log_ratio, advantages, eps_low=0.2, eps_high=0.28, dual_clip=None):
    ratio = torch.tensor(log_ratio, dtype=torch.float64)
    old = torch.full_like(ratio, -5.0)
    ones = torch.ones_like(ratio)
    options = {"eps_low": eps_low, "eps_high": eps_high, "dual_clip": dual_clip}
    out = policy_loss(old + ratio, old, torch.tensor(advantages), ones, **options)
    shares = metrics.clip_diagnostics([out.diagnostics])
    return {name: shares[f"clip_{name}"].value for name in ("low", "high", "dual")}


def mean_share(*, counts):
    return sum((metrics.Ratio(*c) for c in counts), metrics.Ratio(0, 0)).value


def kl(*, p, ref, estimator):
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    return (p * getattr(estimators, estimator)(p.log(), ref.log())).sum().item()


def kl_gradient(*, p, ref):
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    theta = p.log().requires_grad_()
    log_prob = theta.log_softmax(-1)
    value = estimators.k3(log_prob, ref.log())
    term = estimators.straight_through(value, estimators.k2(log_prob, ref.log()))
    (p * term).sum().backward()
    return theta.grad[0].item()


def log_prob(*, logits, tokens, temperature=1.0):
    z = torch.tensor(logits)
    return metrics.token_log_prob(z, torch.tensor(tokens), temperature).tolist()


def entropy(*, logits, temperature=1.0):
    z = torch.tensor(logits, dtype=torch.float64)
    return metrics.entropy(z, temperature).item()


def keep(*, correct, rule_rewards, rewards, default_metric=False):
    return bool(has_signal(torch.tensor(sum(correct)), torch.tensor(len(correct))))


def refill(*, n_correct, group_size, need, max_rounds=None, oversample=1.0):
    cursor = [0]

    def draw(missing: Tensor) -> Prompts:
        ids = torch.arange(cursor[0], cursor[0] + int(missing.sum()))
        ids = ids[ids < len(n_correct)]
        cursor[0] += len(ids)
        return Prompts(ids, ids, torch.zeros_like(ids))

    def generate(prompts: Prompts) -> Rollout:
        ids = prompts.group_id.repeat_interleave(group_size)
        place = torch.arange(group_size).repeat(len(prompts))
        right = (place < torch.tensor(n_correct)[ids]).long()
        batch = _batch([3] * len(ids), None, ids)
        return batch.graded(right, rule_reward(right))

    sampler = DynamicSampler(
        need, group_size, max_rounds=max_rounds or 1000, oversample=oversample
    )
    batch, ledger = sampler.fill(draw, generate)
    right = ledger.histogram[0] @ torch.arange(group_size + 1.0).double()
    after = None if batch is None else batch.correct.double().mean().item()
    return {
        "groups": [] if batch is None else batch.group_id.unique().tolist(),
        "rounds": int(ledger.rounds),
        "drawn": int(ledger.prompts_drawn),
        "surplus": int(ledger.surplus),
        "accuracy_before": (right / ledger.responses_all[0]).item(),
        "accuracy_after": after,
    }


def dead_share(*, p, group_size):
    return dead_group_probability(p, group_size).item()


def penalty(*, lengths, l_max, l_cache):
    return soft_overlong(torch.tensor(lengths), l_max=l_max, l_cache=l_cache).tolist()


def shaped_reward(*, correct, length, l_max, l_cache, truncated=False):
    algorithm = ALGORITHMS["dapo"].model_copy(update={"l_cache": l_cache})
    right = torch.tensor([int(correct)])
    batch = _batch([length], [truncated]).graded(right, rule_reward(right))
    return train_shaped_reward(algorithm, Schedule(l_max=l_max), batch).item()


def response(*, tokens, eos_ids, pad_id):
    found = response_mask(torch.tensor([tokens]), eos_ids, pad_id)
    mask = found.mask[0].int().tolist()
    return {"mask": mask, "truncated": bool(found.truncated[0])}


def grade(*, response, reference, prompt=""):
    return verify(response, reference).correct


def rewards(*, responses, reference):
    right = torch.tensor([verify(r, reference).correct for r in responses])
    return rule_reward(right).tolist()


def accuracy(*, correct, rewards):
    return metrics.avg_at_k(correct)


def pass_at_k(*, n, c, k):
    return metrics.pass_at_k(n, c, k)


def _padded(rows: list[list[float]], width: int | None) -> tuple[Tensor, Tensor]:
    """Token losses and mask, padded on the right."""
    longest = max([width or 0, *map(len, rows)])
    values = torch.zeros(len(rows), longest, dtype=torch.float64)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        values[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
        mask[i, : len(row)] = True
    return values, mask


def _widen(mask: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(mask, (0, width - mask.shape[1]))


def _batch(lengths: list[int], truncated: Any, ids: Tensor | None = None) -> Rollout:
    """A rollout of made-up tokens with given lengths."""
    length = torch.tensor(lengths)
    mask = torch.arange(max(int(length.max()), 1))[None] < length[:, None]
    ids = torch.zeros(len(length), dtype=torch.long) if ids is None else ids
    cut = torch.zeros(len(length)) if truncated is None else torch.tensor(truncated)
    return Rollout(
        index=ids,
        group_id=ids,
        lane=torch.zeros_like(ids),
        tokens=mask.long(),
        mask=mask,
        length=length,
        truncated=cut.bool(),
        log_prob_old=torch.zeros(mask.shape, dtype=torch.float64),
    )
