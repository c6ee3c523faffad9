"""Entropy and KL of a softmax policy in closed form: forms 1, 12 and 13.

Left out: the sampled estimators k1, k2, k3, which are in dapo_lib/kl.py.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from dapo_lib.errors import expect


def kl_to_uniform(logits: Tensor) -> Tensor:
    """KL(pi || uniform) = ln K - H(pi), in nats (form 1).

    Shape: logits [..., K] -> [...] float64.

    >>> kl_to_uniform(torch.zeros(6))
    tensor(0., dtype=torch.float64)
    """
    log_p = torch.log_softmax(torch.as_tensor(logits, dtype=torch.float64), -1)
    # -inf logits are actions of probability 0; 0 log 0 = 0
    plogp = torch.where(log_p.isfinite(), log_p.exp() * log_p, 0.0)
    return log(log_p.shape[-1]) + plogp.sum(-1)


def entropy_change(logits: Tensor, change: Tensor) -> Tensor:
    """First-order change of entropy, -Cov_pi(log pi, dz), when logits move by dz.

    Shape: logits, change [..., K] -> [...] float64, nats. Negative where likely actions
    are reinforced (form 12). Raises ``ValueError`` on shapes that do not match.

    >>> likely_up = entropy_change(torch.tensor([1.0, 0.0]), torch.tensor([0.1, 0.0]))
    >>> round(float(likely_up), 6)
    -0.019661
    """
    logits, change = _same(logits, change, "change")
    log_p = torch.log_softmax(logits, -1)
    p = log_p.exp()
    centred = log_p - (p * log_p).sum(-1, keepdim=True)
    return -(p * centred * change).sum(-1)


def grad_kl_reference_policy(logits: Tensor, reference: Tensor) -> Tensor:
    """Gradient of KL(ref || pi) with respect to the logits of pi: pi - ref (form 13).

    Shape: logits of pi and of the reference, [..., K] -> [..., K] float64.

    >>> grad_kl_reference_policy(torch.zeros(2), torch.zeros(2))
    tensor([0., 0.], dtype=torch.float64)
    """
    logits, reference = _same(logits, reference, "reference")
    return torch.softmax(logits, -1) - torch.softmax(reference, -1)


def grad_kl_policy_reference(logits: Tensor, reference: Tensor) -> Tensor:
    """Gradient of KL(pi || ref) with respect to the logits of pi (form 13).

    It is pi (log(pi / ref) - KL). Shape: two [..., K] -> [..., K] float64. Not
    the gradient above: the two agree to first order at pi = ref only.

    >>> grad_kl_policy_reference(torch.zeros(2), torch.zeros(2))
    tensor([0., 0.], dtype=torch.float64)
    """
    logits, reference = _same(logits, reference, "reference")
    log_p = torch.log_softmax(logits, -1)
    log_ratio = log_p - torch.log_softmax(reference, -1)
    p = log_p.exp()
    return p * (log_ratio - (p * log_ratio).sum(-1, keepdim=True))


def _same(logits, other, name: str) -> tuple[Tensor, Tensor]:
    logits = torch.as_tensor(logits, dtype=torch.float64)
    other = torch.as_tensor(other, dtype=torch.float64)
    shape = tuple(logits.shape)
    expect(other.shape == logits.shape, name, tuple(other.shape), f"shape {shape}")
    return logits, other
