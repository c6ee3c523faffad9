"""Rows D: KL. pi = (.9, .1) against a uniform reference, expectations exact."""

import pytest
import torch

from dapo_lib.kl import exact_kl, k1, k2, k3, straight_through

REF = torch.tensor([0.5, 0.5], dtype=torch.float64).log()


def policy(theta: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(theta, -1)


@pytest.fixture
def theta():
    return torch.tensor([9.0, 1.0], dtype=torch.float64).log().requires_grad_()


def expectation(estimator, theta):
    log_p = policy(theta)
    return (log_p.exp().detach() * estimator(log_p, REF)).sum()


def test_D01_k3_uses_ref_over_pi(theta):
    exact = exact_kl(policy(theta), REF).item()
    assert exact == pytest.approx(0.3681, abs=1e-4)
    assert expectation(k3, theta).item() == pytest.approx(exact)
    assert expectation(k2, theta).item() == pytest.approx(0.2850, abs=1e-4)
    sample = torch.tensor([-0.1, -3.0], dtype=torch.float64)
    assert (k3(sample, REF) >= 0).all()


def test_D02_k1_is_log_pi_minus_log_ref(theta):
    assert expectation(k1, theta).item() == pytest.approx(0.3681, abs=1e-4)


@pytest.mark.parametrize(
    ("estimator", "gradient"),
    [
        (k1, 0.0),
        (k2, 0.1978),
        (k3, 0.4),
        (lambda p, q: straight_through(k3(p, q), k2(p, q)), 0.1978),
    ],
)
def test_D03_gradient_of_an_estimator(theta, estimator, gradient):
    expectation(estimator, theta).backward()
    assert theta.grad[0].item() == pytest.approx(gradient, abs=1e-4)


def test_D03_which_divergence_each_gradient_belongs_to(theta):
    forward = torch.autograd.grad(exact_kl(policy(theta), REF), theta)[0]
    reverse = torch.autograd.grad(exact_kl(REF, policy(theta)), theta)[0]
    for estimator, right in ((k2, forward), (k3, reverse)):
        ours = torch.autograd.grad(expectation(estimator, theta), theta)[0]
        torch.testing.assert_close(ours, right)
