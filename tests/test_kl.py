"""KL: agreement with exact sums over random distributions, extremes, bad input."""

import pytest
import torch

from dapo_lib.kl import exact_kl, k1, k2, k3, straight_through


@pytest.mark.parametrize("seed", range(5))
def test_expectations_over_random_distributions(seed):
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 7, generator=g, dtype=torch.float64).requires_grad_()
    log_p, log_q = torch.log_softmax(logits, -1)
    exact = exact_kl(log_p, log_q)
    weight = log_p.exp().detach()
    for estimator in (k1, k3):
        torch.testing.assert_close((weight * estimator(log_p, log_q)).sum(), exact)
    # gradients with respect to p alone
    q = log_q.detach()
    k2_grad = torch.autograd.grad(
        (weight * k2(log_p, q)).sum(), logits, retain_graph=True
    )[0]
    forward = torch.autograd.grad(exact_kl(log_p, q), logits, retain_graph=True)[0]
    torch.testing.assert_close(k2_grad, forward)
    k3_grad = torch.autograd.grad(
        (weight * k3(log_p, q)).sum(), logits, retain_graph=True
    )[0]
    reverse = torch.autograd.grad(exact_kl(q, log_p), logits)[0]
    torch.testing.assert_close(k3_grad, reverse)


def test_k3_is_finite_at_the_ends():
    log_prob = torch.tensor([-80.0, -0.001], requires_grad=True)
    ours = k3(log_prob, torch.tensor([-0.001, -80.0]))
    ours.sum().backward()
    assert ours.isfinite().all() and (ours >= 0).all()
    assert ours[1].item() == pytest.approx(79.0, abs=0.01)
    assert log_prob.grad[0] == 0 and log_prob.grad[1].item() == pytest.approx(1)


def test_an_impossible_action_adds_nothing_and_no_nan():
    logits = torch.tensor([0.0, 1.0, -torch.inf], dtype=torch.float64)
    log_p = torch.log_softmax(logits, -1).requires_grad_()
    exact = exact_kl(log_p, torch.full((3,), 1 / 3, dtype=torch.float64).log())
    exact.backward()
    assert exact.isfinite() and log_p.grad.isfinite().all()


def test_shapes_must_match():
    for function in (k1, k2, k3):
        with pytest.raises(ValueError, match=r"log_prob_ref: got \(3,\)"):
            function(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match="log_q"):
        exact_kl(torch.zeros(2), torch.zeros(3))


def test_straight_through_takes_one_value_and_the_other_gradient():
    x = torch.tensor(2.0, requires_grad=True)
    out = straight_through(x**3, x**2)
    out.backward()
    assert out.item() == 8 and x.grad == 4
