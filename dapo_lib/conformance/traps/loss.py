"""Traps of the loss: clipping, ratios, masks, denominators, the KL term.

Left out: models. Every function takes numbers and lists, and gives numbers and lists.
"""

from __future__ import annotations

import torch

from dapo_lib.kl import k3
from dapo_lib.metrics import token_log_prob
from dapo_lib.objective import clipped_surrogate, importance_ratio, policy_loss
from dapo_lib.overlong import overlong_mask


def max_for_negative(ratio: float, advantage: float) -> float:
    """The pessimistic bound turned round: `max` where the advantage is negative."""
    clipped = min(max(ratio, 0.8), 1.28)
    choose = min if advantage > 0 else max
    return choose(ratio * advantage, clipped * advantage)


def min_for_both_signs(ratio: float, advantage: float) -> float:
    """The clipped surrogate is a minimum for either sign of the advantage (Eq 8)."""
    r, a = torch.tensor([ratio, advantage], dtype=torch.float64)
    return clipped_surrogate(r, a, eps_low=0.2, eps_high=0.28).item()


def falsy_eps_high(ratio: float, eps: float, eps_high: float | None) -> float:
    """`or` takes an upper bound of 0 for one that was not given."""
    eps_high = eps_high or eps
    return min(ratio, 1 + eps_high)


def zero_is_a_value(ratio: float, eps: float, eps_high: float | None) -> float:
    """Only None means "not given"; the library asks for both numbers."""
    r, a = torch.tensor([ratio, 1.0], dtype=torch.float64)
    return clipped_surrogate(r, a, eps, eps if eps_high is None else eps_high).item()


def mask_after_exp(log_ratio: list, mask: list) -> list[float]:
    """Loss and gradient for A = -1: the mask multiplies what exp has made."""
    x = torch.tensor(log_ratio, dtype=torch.float32, requires_grad=True)
    m = torch.tensor(mask, dtype=torch.float32)
    loss = (x.exp() * m).sum() / m.sum()
    loss.backward()
    return [loss.item(), *x.grad.tolist()]


def mask_before_exp(log_ratio: list, mask: list) -> list[float]:
    """Loss and gradient for A = -1: masked log-ratios are 0 before exp sees them."""
    old = torch.full((1, len(mask)), -200.0)
    new = (old + torch.tensor([log_ratio])).requires_grad_()
    loss, _ = policy_loss(new, old, torch.tensor([-1.0]), torch.tensor([mask]))
    loss.backward()
    return [loss.item(), *new.grad[0].tolist()]


def sequence_ratio(token_ratios: list) -> float:
    """One ratio for the response: exp of the summed log-ratios, clipped as a whole."""
    whole = torch.tensor(token_ratios, dtype=torch.float64).log().sum().exp()
    return whole.clamp(0.8, 1.28).item()


def token_ratios(token_ratios: list) -> float:
    """Every token has a ratio and a clip of its own; the mean comes last."""
    r = torch.tensor(token_ratios, dtype=torch.float64)
    return clipped_surrogate(r, torch.ones_like(r), 0.2, 0.28).mean().item()


def mean_of_micro_means(micro_batches: list) -> float:
    """Average every micro-batch, then average the averages."""
    means = [sum(tokens) / len(tokens) for tokens in micro_batches]
    return sum(means) / len(means)


def one_denominator(micro_batches: list) -> float:
    """Every micro-batch divides by the tokens of the whole mini-batch; the sum counts.

    The loss of a token with ratio 1 is minus its advantage.
    """
    tokens = sum(map(len, micro_batches))
    loss = 0.0
    for values in micro_batches:
        log_prob = torch.full((1, len(values)), -1.0, dtype=torch.float64)
        advantage = -torch.tensor([values], dtype=torch.float64)
        ones = torch.ones_like(log_prob)
        out = policy_loss(log_prob, log_prob, advantage, ones, denominator=tokens)
        loss += out.loss.item()
    return loss


def counted_before_the_mask(lengths: list, truncated: list) -> float:
    """Loss 1 a token: cut responses leave the sum, but were counted before."""
    tokens = sum(lengths)
    return sum(n for n, cut in zip(lengths, truncated, strict=True) if not cut) / tokens


def counted_after_the_mask(lengths: list, truncated: list) -> float:
    """Loss 1 a token: cut responses leave the sum and the denominator."""
    n = torch.tensor(lengths)
    mask = torch.arange(int(n.max()))[None] < n[:, None]
    mask = overlong_mask(mask, torch.tensor(truncated))
    log_prob = torch.full(mask.shape, -1.0, dtype=torch.float64)
    return policy_loss(log_prob, log_prob, -torch.ones(len(n)), mask).loss.item()


def inverted_k3(p: list, ref: list) -> float:
    """KL(p || ref) by k3 with the ratio upside down, exact expectation over p."""
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    q = p / ref
    return (p * (q - 1 - q.log())).sum().item()


def upright_k3(p: list, ref: list) -> float:
    """KL(p || ref) by k3 with q = ref / p: its expectation over p is the KL."""
    p, ref = torch.tensor([p, ref], dtype=torch.float64)
    return (p * k3(p.log(), ref.log())).sum().item()


def forgotten_temperature(logits: list, temperature: float) -> list[float]:
    """Ratios before any update: sampled at a temperature, scored without it."""
    z = torch.tensor(logits, dtype=torch.float64)
    return (z.log_softmax(-1) - (z / temperature).log_softmax(-1)).exp().tolist()


def one_temperature(logits: list, temperature: float) -> list[float]:
    """Ratios before any update, scored as the tokens were sampled: all 1."""
    z = torch.tensor([logits] * len(logits), dtype=torch.float64)
    sampled = (z / temperature).log_softmax(-1).diagonal()[None]
    scored = token_log_prob(z, torch.arange(len(logits)), temperature)[None]
    return importance_ratio(scored, sampled, sampled <= 0)[0].tolist()
