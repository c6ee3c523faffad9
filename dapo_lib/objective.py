"""The clipped surrogate with two clip bounds (Eq 8, 10) and its reductions (Eq 5, 12).

Left out: the KL term (kl.py) and the length penalty (overlong.py). The objective is
maximised, the loss is its negative.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from dapo_lib.errors import expect

Reduction = Literal[
    "token_mean", "group_token_mean", "micro_token_mean", "seq_mean", "seq_sum_const"
]
REDUCTIONS: tuple[str, ...] = Reduction.__args__
LOG_RATIO_CLAMP = 20.0  # exp(20) = 4.9e8 is still finite in float32; verl's bound


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
) -> Loss:
    """The DAPO loss of a (micro-)batch: clip each token's ratio, then reduce.

    Shape: log_prob, log_prob_old, mask [B, T]; advantage [B] or [B, T]; group_ids [B].
    Log-probabilities are in nats at the sampling temperature. `denominator` is the count
    of the whole mini-batch after all masks (see :func:`weights`); None counts this call's
    tensors. `dual_clip` c > 1 bounds the loss of negative advantages (verl; not in the
    paper). Diagnostics are sums and counts over unmasked tokens. Raises ``ValueError`` on
    shapes that do not match, log-probabilities above 0 or NaN, a mask that is not 0/1,
    and options out of range. All tokens masked: loss 0, gradient 0. Source: Eq 8, 10, 12.

    >>> old = torch.full((1, 2), -1.0); new = torch.tensor([[-0.5, -1.0]])
    >>> out = policy_loss(new, old, torch.ones(1), torch.ones(1, 2))
    >>> out.loss, out.diagnostics["clip_high"]
    (tensor(-1.1400), tensor(1.))
    """
    mask, advantage = _checked(log_prob, log_prob_old, advantage, mask)
    _check_options(eps_low, eps_high, dual_clip)
    ratio = importance_ratio(log_prob, log_prob_old, mask)
    objective = clipped_surrogate(ratio, advantage, eps_low, eps_high, dual_clip)
    weight = weights(
        mask, reduction, denominator=denominator, group_ids=group_ids, l_max=l_max
    )
    # where, not a product: 0 * inf would be NaN
    loss = -torch.where(mask, objective * weight.to(objective.dtype), 0.0).sum()
    with torch.no_grad():
        diagnostics = clip_diagnostics(
            ratio, advantage, mask, log_prob_old, eps_low, eps_high, dual_clip
        )
    return Loss(loss, diagnostics)


def importance_ratio(log_prob: Tensor, log_prob_old: Tensor, mask: Tensor) -> Tensor:
    """pi / pi_old of every token: mask the log-ratio, clamp it to +-20, then exp.

    Shape: three [B, T] -> [B, T], no unit; 1 where masked. The order matters: exp before
    the mask turns padding into inf and its gradient into NaN. Source: paper Eq 6.

    >>> far = torch.tensor([[0.0, -100.0]])
    >>> importance_ratio(far, torch.tensor([[0.0, -1.0]]), torch.tensor([[1, 0]]).bool())
    tensor([[1., 1.]])
    """
    log_ratio = torch.where(mask, log_prob - log_prob_old, 0.0)
    return log_ratio.clamp(-LOG_RATIO_CLAMP, LOG_RATIO_CLAMP).exp()


def clipped_surrogate(
    ratio: Tensor,
    advantage: Tensor,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
) -> Tensor:
    """min(r A, clip(r, 1 - eps_low, 1 + eps_high) A), for both signs of A.

    Shape: ratio [B, T], advantage broadcastable to it -> [B, T]. Source: paper Eq 8, 10.

    >>> r = torch.tensor([1.5, 1.5, 0.5, 0.5]); a = torch.tensor([1.0, -1, 1, -1])
    >>> clipped_surrogate(r, a, 0.2, 0.28)
    tensor([ 1.2800, -1.5000,  0.5000, -0.8000])
    """
    clipped = ratio.clamp(1 - eps_low, 1 + eps_high)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    if dual_clip is None:
        return objective
    return torch.where(
        advantage < 0, torch.maximum(objective, dual_clip * advantage), objective
    )


def weights(
    mask: Tensor,
    reduction: Reduction,
    *,
    denominator: Tensor | float | None = None,
    group_ids: Tensor | None = None,
    l_max: int | None = None,
) -> Tensor:
    """The weight of every token in the sum that a reduction is: 1 / its denominators.

    Shape: mask [B, T] bool -> [B, T] or [B, 1]. `denominator` (a number, or [B] where
    rows belong to independent runs) is counted over the whole mini-batch:

    ==================  ===========================================================
    token_mean          tokens of the mini-batch
    group_token_mean    groups with a token; group_ids needed, groups must be whole
    micro_token_mean    tokens of this micro-batch times the number of micro-batches
    seq_mean            rows with a token
    seq_sum_const       rows with a token; each row's sum is divided by l_max
    ==================  ===========================================================

    Raises ``ValueError`` where group_ids or l_max is missing. Source: paper Eq 5, 12;
    Dr.GRPO (arXiv 2503.20783).

    >>> weights(torch.tensor([[1, 1], [1, 0]]).bool(), "seq_mean")
    tensor([[0.2500],
            [0.5000]])
    """
    expect(
        reduction in REDUCTIONS, "reduction", repr(reduction), " | ".join(REDUCTIONS)
    )
    tokens = mask.sum(1, dtype=torch.get_default_dtype())
    rows = tokens > 0
    if reduction in ("token_mean", "micro_token_mean"):
        inner, count = torch.ones_like(tokens), tokens.sum()
        if reduction == "micro_token_mean":  # denominator = number of micro-batches
            inner, count = inner / count.clamp(min=1), torch.ones(())
    elif reduction == "group_token_mean":
        expect(
            group_ids is not None, "group_ids", None, "a tensor [B] for this reduction"
        )
        group = torch.unique(group_ids, return_inverse=True)[1]
        per_group = torch.zeros(int(group.max()) + 1).index_add_(0, group, tokens)
        inner, count = 1 / per_group.clamp(min=1)[group], (per_group > 0).sum()
    elif reduction == "seq_mean":
        inner, count = 1 / tokens.clamp(min=1), rows.sum()
    else:
        expect(l_max is not None and l_max >= 1, "l_max", l_max, "the length cap, >= 1")
        inner, count = torch.full_like(tokens, 1 / l_max), rows.sum()
    if denominator is not None:
        count = torch.as_tensor(denominator)
        expect(bool((count >= 0).all()), "denominator", denominator, "a count >= 0")
    return (inner / count.clamp(min=1))[:, None]


def count_denominator(
    mask: Tensor,
    reduction: Reduction,
    *,
    group_ids: Tensor | None = None,
    lanes: Tensor | None = None,
) -> Tensor:
    """What :func:`policy_loss` needs as `denominator`, counted over a whole mini-batch.

    Shape: mask [B, T] after all masks, group_ids [B] -> a scalar count >= 1: tokens for
    ``token_mean``, groups for ``group_token_mean``, rows for the sequence reductions.
    With `lanes` [B] (independent runs side by side), [B]: the count of each row's run.
    Raises ``ValueError`` for ``micro_token_mean``, which has no such count.

    >>> count_denominator(torch.tensor([[1, 1], [1, 0]]).bool(), "token_mean")
    tensor(3)
    """
    expect(
        reduction in REDUCTIONS, "reduction", repr(reduction), " | ".join(REDUCTIONS)
    )
    wanted = "a reduction over the mini-batch"
    expect(reduction != "micro_token_mean", "reduction", reduction, wanted)
    tokens = mask.bool().sum(1)
    if reduction == "token_mean":
        amount = tokens
    elif reduction == "group_token_mean":
        expect(
            group_ids is not None, "group_ids", None, "a tensor [B] for this reduction"
        )
        amount = _first_of_group(group_ids, tokens > 0)
    else:
        amount = (tokens > 0).long()
    if lanes is None or len(lanes) == 0 or bool((lanes == lanes[0]).all()):
        return amount.sum().clamp(min=1)
    lane = torch.unique(lanes, return_inverse=True)[1]
    per_lane = torch.zeros(int(lane.max()) + 1, dtype=amount.dtype)
    return per_lane.index_add_(0, lane, amount).clamp(min=1)[lane]


def _first_of_group(group_ids: Tensor, alive: Tensor) -> Tensor:
    """1 on the first row with a token of each group, else 0: [B]."""
    rows = torch.arange(len(group_ids))
    group = torch.unique(group_ids, return_inverse=True)[1]
    first = torch.full((int(group.max()) + 1,), len(rows))
    first.scatter_reduce_(0, group, torch.where(alive, rows, len(rows)), "amin")
    return (first[group] == rows).long()


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

    Shape: [B, T] tensors -> scalars. ``clip_low``: tokens with A < 0, r < 1 - eps_low;
    ``clip_high``: A > 0, r > 1 + eps_high; ``clip_dual``: A < 0, r > c; ``p_up_clipped``:
    sum of the old probability of up-clipped tokens (its count is clip_high, Fig 3a);
    ``tokens``: the count; ``log_ratio``: sum of log r in nats.

    >>> r = torch.tensor([[0.7, 0.7, 1.5, 1.5]]); a = torch.tensor([[1.0, -1, 1, -1]])
    >>> d = clip_diagnostics(r, a, r > 0, r.log(), 0.2, 0.28)
    >>> d["clip_low"], d["clip_high"], d["tokens"]
    (tensor(1.), tensor(1.), tensor(4.))
    """
    advantage = advantage.expand_as(ratio)
    high = mask & (advantage > 0) & (ratio > 1 + eps_high)
    low = mask & (advantage < 0) & (ratio < 1 - eps_low)
    dual = mask & (advantage < 0) & (ratio > (dual_clip or torch.inf))
    total = {"tokens": mask, "clip_low": low, "clip_high": high, "clip_dual": dual}
    sums = {name: which.sum().to(ratio.dtype) for name, which in total.items()}
    sums["p_up_clipped"] = torch.where(high, log_prob_old.exp(), 0.0).sum()
    sums["log_ratio"] = ratio.log().sum()  # masked entries hold ratio 1
    return sums


def _check_options(eps_low: float, eps_high: float, dual_clip: float | None) -> None:
    expect(0 <= eps_low <= 1, "eps_low", eps_low, "0 <= eps_low <= 1")
    expect(eps_high >= 0, "eps_high", eps_high, "a number >= 0 (inf = no upper clip)")
    off = dual_clip is None or dual_clip > 1
    expect(off, "dual_clip", dual_clip, "None or a number > 1")


def _checked(log_prob, log_prob_old, advantage, mask) -> tuple[Tensor, Tensor]:
    shape = tuple(log_prob.shape)
    expect(
        log_prob.ndim == 2 and len(log_prob) > 0, "log_prob", shape, "[B, T], B >= 1"
    )
    same = log_prob_old.shape == log_prob.shape
    expect(same, "log_prob_old", tuple(log_prob_old.shape), f"{shape}")
    expect(mask.shape == log_prob.shape, "mask", tuple(mask.shape), f"{shape}")
    if mask.dtype is not torch.bool:
        binary = bool(((mask == 0) | (mask == 1)).all())
        expect(binary, "mask", "values besides 0 and 1", "0 or 1")
        mask = mask.bool()
    for name, value in (("log_prob", log_prob), ("log_prob_old", log_prob_old)):
        fine = ~mask | (value.detach() <= 1e-4)  # False for NaN; rounding may pass 0
        expect(
            bool(fine.all()), name, "a value above 0 or NaN", "log-probabilities <= 0"
        )
    if advantage.ndim == 1:
        advantage = advantage[:, None]
    good = advantage.shape in (log_prob.shape, (len(log_prob), 1))
    expect(good, "advantage", tuple(advantage.shape), f"[{shape[0]}] or {shape}")
    finite = bool((advantage.isfinite() | ~mask).all())
    expect(finite, "advantage", "NaN or inf", "finite numbers")
    return mask, torch.nan_to_num(advantage.detach()).to(log_prob.dtype)
