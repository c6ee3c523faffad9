"""verl 0.9.1 ``kl_penalty``: values and gradients of k1, k2, k3 and their "+" forms.

Side taken: k3 has no cap of 10 on its value, and clamps log q at 20 only from above,
where exp would overflow (verl: at +-20, and the value to +-10).
"""

import pytest
import torch

from dapo_lib.kl import k1, k2, k3, straight_through

OURS = {
    "kl": k1,
    "k1": k1,
    "abs": lambda p, q: k1(p, q).abs(),
    "mse": k2,
    "k2": k2,
    "low_var_kl": k3,
    "k3": k3,
}


@pytest.mark.oracle("verl_kl", "cases")
def test_kl_penalty(case, oracle, close):
    data = oracle("verl_kl")
    log_prob = torch.tensor(data["logprob"], dtype=torch.float64, requires_grad=True)
    ref = torch.tensor(data["ref_logprob"], dtype=torch.float64)
    name = case["kl_penalty"]
    value = OURS[name.removesuffix("+")](log_prob, ref)
    if name.endswith("+"):
        value = straight_through(value, k2(log_prob, ref))
    value.sum().backward()
    theirs = torch.tensor(case["value"], dtype=torch.float64)
    grad = torch.tensor(case["grad_logprob"], dtype=torch.float64)
    capped = (theirs == 10.0) & (name.strip("+") in ("k3", "low_var_kl"))
    assert (value[capped] > 10).all()
    close(value[~capped], theirs[~capped], 1e-9)
    close(log_prob.grad[~capped], grad[~capped], 1e-9)
    if capped.any() and not name.endswith("+"):
        assert (grad[capped] == 0).all()  # verl's cap stops the gradient
