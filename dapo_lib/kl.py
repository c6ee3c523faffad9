"""KL divergence: exact, and the three estimators k1, k2, k3. DAPO itself uses none.

Left out: a KL term in the loss by default. A value estimator is not a gradient
estimator: differentiated as it stands, k1 gives 0 in expectation, k2 gives the gradient
of KL(pi || ref), k3 that of KL(ref || pi).
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.errors import expect


def k1(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Unbiased value estimate of KL(pi || ref) in nats: log pi - log ref.

    Shape: two [...] of log-probabilities of samples from pi -> [...]. Its gradient
    estimates nothing (0 in expectation). Source: Schulman 2020; semantics "KL".

    >>> k1(torch.tensor(-1.0), torch.tensor(-1.5))
    tensor(0.5000)
    """
    return _difference(log_prob, log_prob_ref)


def k2(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Half the squared log-ratio, in nats: biased in value, right in gradient.

    Shape: two [...] -> [...]. The gradient is that of KL(pi || ref) in expectation.

    >>> k2(torch.tensor(-1.0), torch.tensor(-1.5))
    tensor(0.1250)
    """
    return _difference(log_prob, log_prob_ref).square() / 2


def k3(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Unbiased, never negative value estimate: (q - 1) - log q with q = ref / pi.

    Shape: two [...] -> [...] in nats. The gradient is that of KL(ref || pi) near
    pi = ref, not of KL(pi || ref): use it to report, not to train.

    >>> round(float(k3(torch.tensor(-1.0), torch.tensor(-1.5))), 4)
    0.1065
    """
    log_q = -_difference(log_prob, log_prob_ref)
    return torch.expm1(log_q.clamp(-20, 20)) - log_q


def exact_kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) in nats by summing over the last axis.

    Shape: log-probabilities [..., K] and [..., K] -> [...].

    >>> u = torch.full((2,), 0.5).log(); p = torch.tensor([0.9, 0.1]).log()
    >>> round(float(exact_kl(p, u)), 4)
    0.3681
    """
    expect(
        log_p.shape == log_q.shape, "log_q", tuple(log_q.shape), f"{tuple(log_p.shape)}"
    )
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum(-1)


def _difference(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    same = log_prob.shape == log_prob_ref.shape
    expect(same, "log_prob_ref", tuple(log_prob_ref.shape), f"{tuple(log_prob.shape)}")
    return log_prob - log_prob_ref
