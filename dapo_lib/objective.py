"""The clipped surrogate with two clip bounds (Eq 8, 10) and its reductions (Eq 5, 12).

Left out: the KL term (kl.py) and the length penalty (overlong.py). The objective is
maximised, the loss is its negative.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from dapo_lib.errors import ImpossibleLogProb, expect

Reduction = Literal[
    "token_mean", "group_token_mean", "micro_token_mean", "seq_mean", "seq_sum_const"
]
REDUCTIONS: tuple[str, ...] = Reduction.__args__
LOG_RATIO_CLAMP = 20.0  # exp(20) = 4.9e8 is still finite in float32; verl's bound
ROUNDING = 1e-4  # a log-probability may pass 0 by this much, float32 rounding of logits


class Loss(NamedTuple):
    """A scalar loss and the sums and counts behind its clip diagnostics."""

    loss: Tensor
    diagnostics: dict[str, Tensor]


def policy_loss(
    log_prob: Tensor,
    log_prob_old: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    eps_low: float = 0.2,
    eps_high: float = 0.28,
    reduction: Reduction = "token_mean",
    denominator: Tensor | float | None = None,
    group_ids: Tensor | None = None,
    l_max: int | None = None,
    dual_clip: float | None = None,
    lanes: Tensor | None = None,
) -> Loss:
    """The DAPO loss of a (micro-)batch: clip each token's ratio, then reduce.

    Shape: log_prob, log_prob_old, mask [B, T]; advantage [B] or [B, T]; group_ids,
    lanes [B] -> a scalar and scalar diagnostics (:func:`clip_diagnostics`).

    Log-probabilities are in nats at the sampling temperature; the gradient flows into
    `log_prob` alone. `denominator` is counted over the whole mini-batch, after all
    masks (:func:`divisor`); None counts these tensors. `dual_clip` c > 1 bounds the
    loss of negative advantages (verl; not in the paper). Losses of independent runs
    (`lanes`) are each divided by their own count, and summed.

    Raises ``ValueError`` on shapes that do not match, an empty batch, unmasked
    log-probabilities that are NaN, infinite or above 0, a mask that is not 0/1, an
    advantage that is not finite (on masked-out rows too) and options out of range. A
    masked token has no influence at all, whatever it holds. All tokens masked: loss 0,
    gradient 0. Source: Eq 8, 10, 12.

    >>> old = torch.full((1, 2), -1.0); new = torch.tensor([[-0.5, -1.0]])
    >>> out = policy_loss(new, old, torch.ones(1), torch.ones(1, 2))
    >>> out.loss, out.diagnostics["clip_high"]
    (tensor(-1.1400), tensor(1.))
    """
    _check_options(eps_low, eps_high, dual_clip)
    mask, advantage = _checked(log_prob, log_prob_old, advantage, mask)
    ratio = importance_ratio(log_prob, log_prob_old, mask)
    advantage = advantage.to(ratio.dtype)
    objective = clipped_surrogate(ratio, advantage, eps_low, eps_high, dual_clip)
    divide = divisor(
        mask,
        reduction,
        denominator=denominator,
        group_ids=group_ids,
        l_max=l_max,
        lanes=lanes,
    )
    # masked ratios are 1, not 0: where removes them, and an inf times 0 cannot arise
    per_row = torch.where(mask, objective, 0.0).sum(1)
    loss = -(per_row / divide.to(per_row.dtype)).sum()
    with torch.no_grad():
        diagnostics = clip_diagnostics(
            ratio, advantage, mask, log_prob_old, eps_low, eps_high, dual_clip
        )
    return Loss(loss, diagnostics)


def importance_ratio(log_prob: Tensor, log_prob_old: Tensor, mask: Tensor) -> Tensor:
    """pi / pi_old of every token: mask the log-ratio, clamp it to +-20, then exp.

    Shape: three [B, T] -> [B, T], no unit, float32 or wider; 1 where masked. The order
    matters: exp before the mask turns padding into inf, its gradient into NaN. Source:
    paper Eq 6.

    >>> new, old = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, -999.0]])
    >>> importance_ratio(new, old, torch.tensor([[True, False]]))
    tensor([[1., 1.]])
    """
    log_ratio = torch.where(mask, _wide(log_prob) - _wide(log_prob_old).detach(), 0.0)
    return log_ratio.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp()


def clipped_surrogate(
    ratio: Tensor,
    advantage: Tensor,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> Tensor:
    """min(r A, clip(r, 1 - eps_low, 1 + eps_high) A), for both signs of A.

    Shape: ratio [B, T], advantage broadcastable to it -> [B, T]. With `dual_clip` c the
    objective of a negative advantage is at least c A. Source: paper Eq 8, 10.

    >>> r = torch.tensor([1.5, 1.5, 0.5, 0.5]); a = torch.tensor([1.0, -1, 1, -1])
    >>> clipped_surrogate(r, a, 0.2, 0.28)
    tensor([ 1.2800, -1.5000,  0.5000, -0.8000])
    """
    free = ratio * advantage
    # constant: no slope where the clip binds; at a tie the slope is the free side's
    clipped = ratio.detach().clamp(1 - eps_low, 1 + eps_high) * advantage
    objective = torch.where(clipped < free, clipped, free)
    if dual_clip is None:
        return objective
    bounded = torch.maximum(objective, dual_clip * advantage)
    return torch.where(advantage < 0, bounded, objective)


def divisor(
    mask: Tensor,
    reduction: Reduction,
    *,
    denominator: Tensor | float | None = None,
    group_ids: Tensor | None = None,
    l_max: int | None = None,
    lanes: Tensor | None = None,
) -> Tensor:
    """What each row's tokens are divided by: the reduction is the sum of these shares.

    Shape: mask [B, T] bool, after all masks -> [B] float64, at least 1. It is the
    product of what a row has of its own and of a count over the mini-batch:

    ================  =====================  =====================================
    reduction         own                    count (`denominator`, a number)
    ================  =====================  =====================================
    token_mean        1                      tokens of the mini-batch
    group_token_mean  tokens of its group    groups with a token
    micro_token_mean  tokens of this call    micro-batches (1 if None)
    seq_mean          tokens of the row      rows with a token
    seq_sum_const     l_max                  rows with a token
    ================  =====================  =====================================

    A `denominator` of shape [B] is the whole product, taken as it is: compute it once
    for a mini-batch (:func:`count_denominator`), slice it for each micro-batch, and the
    split changes nothing. With `lanes` [B] every count is of the row's own run. Raises
    ``ValueError`` where group_ids or l_max is missing. Source: paper Eq 5, 12; Dr.GRPO
    (arXiv 2503.20783).

    >>> divisor(torch.tensor([[1, 1], [1, 0]]).bool(), "seq_mean")
    tensor([4., 2.], dtype=torch.float64)
    """
    _check_reduction(reduction, mask, group_ids, l_max, lanes)
    if isinstance(denominator, Tensor) and denominator.ndim:
        got, shape = tuple(denominator.shape), (len(mask),)
        expect(got == shape, "denominator", got, f"a number or shape {shape}")
        return denominator.to(torch.float64).clamp(min=1)
    if denominator is not None:
        wanted = "a finite count >= 0"
        expect(0 <= denominator < torch.inf, "denominator", denominator, wanted)
    tokens = mask.sum(1).to(torch.float64)
    own, counted = torch.ones_like(tokens), (tokens > 0).to(tokens)
    if reduction == "token_mean":
        counted = tokens
    elif reduction == "micro_token_mean":
        own = _per_lane(tokens, lanes)
        denominator = 1.0 if denominator is None else denominator
    elif reduction == "group_token_mean":
        own, counted = _group_tokens(tokens, group_ids)
    elif reduction == "seq_mean":
        own = tokens
    else:
        own = torch.full_like(tokens, l_max)
    count = _per_lane(counted, lanes) if denominator is None else denominator
    return own.clamp(min=1) * torch.as_tensor(count).to(own).clamp(min=1)


def count_denominator(
    mask: Tensor,
    reduction: Reduction,
    *,
    group_ids: Tensor | None = None,
    l_max: int | None = None,
    lanes: Tensor | None = None,
) -> Tensor:
    """The `denominator` of a whole mini-batch, to be sliced for its micro-batches: [B].

    Shape: mask [B, T] after all masks; see :func:`divisor`. Raises ``ValueError`` for
    ``micro_token_mean``, which by its nature has no count of the mini-batch.

    >>> count_denominator(torch.tensor([[1, 1], [1, 0]]).bool(), "token_mean")
    tensor([3., 3.], dtype=torch.float64)
    """
    wanted = "a reduction over the mini-batch"
    expect(reduction != "micro_token_mean", "reduction", repr(reduction), wanted)
    return divisor(
        mask.bool(), reduction, group_ids=group_ids, l_max=l_max, lanes=lanes
    )


def _per_lane(amount: Tensor, lanes: Tensor | None) -> Tensor:
    """The sum of an amount [B] over all rows, or over each row's lane: [B]."""
    if lanes is None:
        return amount.sum().expand_as(amount)
    names, lane = torch.unique(lanes, return_inverse=True)
    return amount.new_zeros(len(names)).index_add_(0, lane, amount)[lane]


def _group_tokens(tokens: Tensor, group_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens of each row's group [B]; and shares [B], 1 a group with a token."""
    names, group = torch.unique(group_ids, return_inverse=True)
    total = tokens.new_zeros(len(names)).index_add_(0, group, tokens)[group]
    return total, tokens / total.clamp(min=1)


def clip_diagnostics(
    ratio: Tensor,
    advantage: Tensor,
    mask: Tensor,
    log_prob_old: Tensor,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> dict[str, Tensor]:
    """Sums and counts, over unmasked tokens, of what the clip did; sign-aware.

    Shape: [B, T] tensors -> scalars; `ratio` must be 1 where masked, which no clip
    touches. ``clip_low``: tokens with A < 0, r < 1 - eps_low; ``clip_high``: A > 0, r >
    1 + eps_high; ``clip_dual``: A < 0, r > c; ``p_up_clipped``: sum of the old
    probability of up-clipped tokens (its count is clip_high, Fig 3a); ``tokens``: the
    count; ``log_ratio``: sum of log r in nats. Merged and divided in metrics.py.

    >>> r = torch.tensor([[0.7, 0.7, 1.5, 1.5]]); a = torch.tensor([[1.0, -1, 1, -1]])
    >>> d = clip_diagnostics(r, a, r > 0, r.log(), 0.2, 0.28)
    >>> d["clip_low"], d["clip_high"], d["tokens"]
    (tensor(1.), tensor(1.), tensor(4.))
    """
    down = advantage < 0
    high = (advantage > 0) & (ratio > 1 + eps_high)
    which = {"tokens": mask, "clip_low": down & (ratio < 1 - eps_low)}
    which |= {"clip_high": high}
    if dual_clip is not None:
        which["clip_dual"] = down & (ratio > dual_clip)
    sums = {name: of.count_nonzero().to(ratio.dtype) for name, of in which.items()}
    sums.setdefault("clip_dual", ratio.new_zeros(()))
    sums["p_up_clipped"] = torch.where(high, _wide(log_prob_old).exp(), 0.0).sum()
    sums["log_ratio"] = ratio.log().sum()  # 0 where masked
    return sums


def _wide(values: Tensor) -> Tensor:
    """At least float32: a bfloat16 log-probability has two or three digits."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _check_options(eps_low, eps_high, dual_clip) -> None:
    def number(value: object) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool)

    fine = number(eps_low) and 0 <= eps_low <= 1
    expect(fine, "eps_low", eps_low, "a number, 0 <= eps_low <= 1")
    fine = number(eps_high) and eps_high >= 0
    expect(fine, "eps_high", eps_high, "a number >= 0 (inf = no upper clip)")
    fine = dual_clip is None or (number(dual_clip) and dual_clip > 1)
    expect(fine, "dual_clip", dual_clip, "None or a number > 1")


def _check_reduction(reduction, mask, group_ids, l_max, lanes) -> None:
    expect(
        reduction in REDUCTIONS, "reduction", repr(reduction), " | ".join(REDUCTIONS)
    )
    wanted = f"shape {(len(mask),)}"
    if reduction == "group_token_mean":
        expect(group_ids is not None, "group_ids", None, f"{wanted} for {reduction}")
    for name, value in (("group_ids", group_ids), ("lanes", lanes)):
        same = value is None or tuple(value.shape) == (len(mask),)
        expect(same, name, None if same else tuple(value.shape), wanted)
    if reduction == "seq_sum_const":
        fine = l_max is not None and l_max >= 1
        expect(fine, "l_max", l_max, f"a number of tokens >= 1 for {reduction}")


def _checked(log_prob, log_prob_old, advantage, mask) -> tuple[Tensor, Tensor]:
    """Validate, with one look at the values where all is well."""
    shape = tuple(log_prob.shape)
    filled = len(shape) == 2 and shape[0] > 0
    expect(filled, "log_prob", f"shape {shape}", "shape [B, T] with B >= 1")
    for name, value in (("log_prob_old", log_prob_old), ("mask", mask)):
        same = tuple(value.shape) == shape
        expect(same, name, f"shape {tuple(value.shape)}", f"shape {shape}")
    got = tuple(advantage.shape)
    good = got in (shape, shape[:1], (shape[0], 1))
    expect(good, "advantage", f"shape {got}", f"shape {shape[:1]} or {shape}")
    advantage = advantage.detach()
    advantage = advantage[:, None] if advantage.ndim == 1 else advantage
    binary = mask if mask.dtype is torch.bool else mask == 1
    values = {"log_prob": log_prob.detach(), "log_prob_old": log_prob_old.detach()}
    fine = {n: _possible(v) for n, v in values.items()}
    fine |= {"advantage": advantage.isfinite().all()}
    if binary is not mask:
        fine |= {"mask": (binary | (mask == 0)).all()}
    if not bool(torch.stack(list(fine.values())).all()):
        # padding may hold anything: look again, under the mask
        fine |= {n: _possible(torch.where(binary, v, 0.0)) for n, v in values.items()}
        _complain({n: bool(v) for n, v in fine.items()}, values, binary, mask)
    return binary, advantage


def _possible(log_prob: Tensor) -> Tensor:
    """Whether all values are finite and not above 0; NaN compares False."""
    if not log_prob.numel():
        return torch.ones((), dtype=torch.bool, device=log_prob.device)
    low, high = log_prob.aminmax()
    return (low > -torch.inf) & (high <= ROUNDING)


def _complain(fine, values, binary, mask) -> None:
    """Name the first argument at fault, and a value that shows it."""
    if not fine.get("mask", True):
        odd = mask[(mask != 0) & (mask != 1)][0].item()
        expect(False, "mask", f"the value {odd}", "0 or 1, or a bool tensor")
    for name, value in values.items():
        if not fine[name]:
            seen = value[binary]
            odd = seen[~(seen.isfinite() & (seen <= ROUNDING))][0].item()
            wanted = "finite log-probabilities <= 0 wherever the mask is 1"
            expect(False, name, f"the value {odd}", wanted, ImpossibleLogProb)
    expect(fine["advantage"], "advantage", "NaN or inf", "finite numbers in every row")
