"""KL divergence: exact, and the three estimators k1, k2, k3. DAPO itself uses none.

Left out: a KL term in the loss by default. A value estimator is not a gradient
estimator: differentiated as it stands on samples of pi, k1 gives 0 in expectation, k2
the gradient of KL(pi || ref), k3 that of KL(ref || pi).
"""

from __future__ import annotations

import torch
from torch import Tensor

from dapo_lib.errors import expect

LOG_RATIO_CLAMP = 20.0  # exp(20) is finite in float32 and far beyond any sane ratio


def k1(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Unbiased value estimate of KL(pi || ref) in nats: log pi - log ref.

    Shape: two [...] of log-probabilities of samples from pi -> [...]. Its gradient
    estimates nothing (0 in expectation). Raises ``ValueError`` on different shapes.

    >>> k1(torch.tensor(-1.0), torch.tensor(-1.5))
    tensor(0.5000)
    """
    return _difference(log_prob, log_prob_ref)


def k2(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Half the squared log-ratio, in nats: biased in value, right in gradient.

    Shape: two [...] -> [...]. The gradient is that of KL(pi || ref) in expectation.
    Raises ``ValueError`` on different shapes.

    >>> k2(torch.tensor(-1.0), torch.tensor(-1.5))
    tensor(0.1250)
    """
    return _difference(log_prob, log_prob_ref).square() / 2


def k3(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    """Unbiased, never negative value estimate: (q - 1) - log q with q = ref / pi.

    Shape: two [...] -> [...] in nats. The gradient is that of KL(ref || pi), not of
    KL(pi || ref): use it to report, not to train. log q is clamped at 20, where value
    and gradient stop. Raises ``ValueError`` on different shapes.

    >>> round(float(k3(torch.tensor(-1.0), torch.tensor(-1.5))), 4)
    0.1065
    """
    log_q = (-_difference(log_prob, log_prob_ref)).clamp(max=LOG_RATIO_CLAMP)
    return torch.expm1(log_q) - log_q


def straight_through(value: Tensor, gradient: Tensor) -> Tensor:
    """The number of one estimator with the gradient of another, for a KL loss term.

    Shape: two [...] -> [...]. ``straight_through(k3(...), k2(...))`` reports k3 and
    descends on KL(pi || ref), as verl's ``k3+`` does.

    >>> theta = torch.tensor(-1.0, requires_grad=True); ref = torch.tensor(-1.5)
    >>> term = straight_through(k3(theta, ref), k2(theta, ref)); term.backward()
    >>> round(term.item(), 4), round(theta.grad.item(), 4)
    (0.1065, 0.5)
    """
    return gradient + (value - gradient).detach()


def exact_kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) in nats by summing over the last axis.

    Shape: log-probabilities [..., K] and [..., K] -> [...]; an action with p = 0 adds
    nothing. Raises ``ValueError`` on different shapes.

    >>> u = torch.full((2,), 0.5).log(); p = torch.tensor([0.9, 0.1]).log()
    >>> round(float(exact_kl(p, u)), 4)
    0.3681
    """
    same = log_p.shape == log_q.shape
    expect(same, "log_q", tuple(log_q.shape), f"shape {tuple(log_p.shape)}")
    possible = log_p > -torch.inf
    # where on both factors: 0 * inf in the backward pass would be NaN
    log_ratio = torch.where(possible, log_p - log_q, 0.0)
    return (torch.where(possible, log_p, -torch.inf).exp() * log_ratio).sum(-1)


def _difference(log_prob: Tensor, log_prob_ref: Tensor) -> Tensor:
    same = log_prob.shape == log_prob_ref.shape
    got, wanted = tuple(log_prob_ref.shape), tuple(log_prob.shape)
    expect(same, "log_prob_ref", got, f"shape {wanted}")
    return log_prob - log_prob_ref
