"""Expected gradients and covariance against enumeration, autograd, sampling."""

from itertools import product
from math import sqrt

import pytest
import torch

from dapo_lib.candidate import exact

LOGITS = torch.tensor([-0.3, 0.2, 0.9, -1.1, 0.4, 0.0], dtype=torch.float64)
REWARD = torch.tensor([1.0, 0, 0, 0, 0, 0], dtype=torch.float64)
PI = LOGITS.softmax(-1)
P = PI[0]
GRAD_P = exact.gradient_of_p(LOGITS, REWARD)
OPTIONS = {
    "grpo": {},
    "dr_grpo": {"scale": "none"},
    "rloo": {"scale": "none", "baseline": "leave_one_out"},
}


def test_the_gradient_of_p_is_autograds():
    logits = LOGITS.clone().requires_grad_()
    logits.softmax(-1)[0].backward()
    assert torch.allclose(GRAD_P, logits.grad, atol=1e-15)


def test_there_are_126_groups_of_4_from_6_and_they_are_all():
    counts, chance = exact.enumerate_groups(PI, 4)
    assert counts.shape == (126, 6) and float(chance.sum()) == pytest.approx(1)
    ordered = {}
    for group in product(range(6), repeat=4):
        key = tuple(group.count(a) for a in range(6))
        ordered[key] = ordered.get(key, 0.0) + float(PI[list(group)].prod())
    listed = dict(zip(map(tuple, counts.tolist()), chance.tolist(), strict=True))
    assert listed.keys() == ordered.keys()
    assert all(listed[k] == pytest.approx(ordered[k]) for k in ordered)


@pytest.mark.parametrize("group_size", [2, 4, 7])
@pytest.mark.parametrize("method", ["grpo", "dr_grpo", "rloo"])
def test_forms_4_and_5_enumerated_expectation_is_scale_times_grad_p(method, group_size):
    mean, _ = exact.gradient_moments(LOGITS, REWARD, group_size, **OPTIONS[method])
    wanted = exact.gradient_scale(P, group_size, method) * GRAD_P
    assert torch.allclose(mean, wanted, atol=1e-14)


def test_form_5_reinforce_has_no_baseline_and_scale_1():
    score = torch.eye(6, dtype=torch.float64) - PI
    mean = (PI * REWARD) @ score
    assert torch.allclose(mean, exact.gradient_scale(P, 4, "reinforce") * GRAD_P)


def test_form_4_limit_of_a_large_group():
    p = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    near = exact.gradient_scale(p, 170)
    limit = exact.gradient_scale_large_group(p)
    assert torch.allclose(near, limit, rtol=0.02)
    assert (exact.gradient_scale(p, 16) < limit).all()


def test_form_7_scale_of_kept_groups_by_enumeration():
    counts, chance = exact.enumerate_groups(PI, 4)
    kept = (counts[:, 0] > 0) & (counts[:, 0] < 4)
    gradient = exact.group_gradient(counts, LOGITS, REWARD)
    mean = chance[kept] @ gradient[kept] / chance[kept].sum()
    assert torch.allclose(mean, exact.dynamic_scale(P, 4) * GRAD_P, atol=1e-14)
    assert float(chance[~kept].sum()) == pytest.approx(
        float(exact.dead_group_probability(P, 4))
    )


def test_form_8_nothing_gained_per_rollout():
    p = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    plain, filtered = exact.gradient_per_rollout(p, 8)
    assert torch.allclose(plain, filtered, rtol=1e-12)
    assert (exact.dynamic_scale(p, 8) > plain).all()


def test_form_9_limits_for_a_rare_answer():
    for group_size in (4, 8, 16):
        p = 1e-7
        scale = exact.gradient_scale(p, group_size)
        assert float(scale) == pytest.approx(sqrt(group_size - 1), rel=1e-5)
        dynamic = exact.dynamic_scale(p, group_size)
        rare = exact.dynamic_scale_rare(p, group_size)
        assert float(dynamic) == pytest.approx(float(rare), rel=1e-5)


def test_form_6_covariance_over_all_ordered_groups():
    logits, reward = LOGITS[:3], REWARD[:3]
    mean, covariance = exact.gradient_moments(logits, reward, 3)
    pi = logits.softmax(-1)
    second = torch.zeros(3, 3, dtype=torch.float64)
    for group in product(range(3), repeat=3):
        k = sum(a == 0 for a in group)
        gradient = torch.zeros(3, dtype=torch.float64)
        if 0 < k < 3:
            up, down = exact.binary_advantages(k, 3)
            for a in group:
                score = torch.eye(3, dtype=torch.float64)[a] - pi
                gradient += (up if a == 0 else down) * score / 3
        second += pi[list(group)].prod() * torch.outer(gradient, gradient)
    assert torch.allclose(covariance, second - torch.outer(mean, mean), atol=1e-14)


def test_form_6_against_sampled_groups():
    generator = torch.Generator().manual_seed(3)
    n = 40_000
    drawn = torch.multinomial(PI, 4 * n, replacement=True, generator=generator)
    counts = torch.nn.functional.one_hot(drawn.reshape(n, 4), 6).sum(1)
    sampled = exact.group_gradient(counts, LOGITS, REWARD)
    mean, covariance = exact.gradient_moments(LOGITS, REWARD, 4)
    error = (sampled.mean(0) - mean) / (covariance.diagonal() / n).sqrt()
    assert error.abs().max() < 4
    assert torch.allclose(torch.cov(sampled.T), covariance, atol=6e-3)
