"""The closed forms of groups, clip, divergence and evaluation against brute force."""

from itertools import product
from math import log

import pytest
import torch

from dapo_lib import metrics
from dapo_lib.advantage import group_advantages
from dapo_lib.candidate import exact
from dapo_lib.kl import exact_kl
from dapo_lib.metrics import entropy
from dapo_lib.objective import policy_loss
from dapo_lib.overlong import soft_overlong

torch.manual_seed(0)
LOGITS = torch.randn(6, dtype=torch.float64)
OTHER = torch.randn(6, dtype=torch.float64)


def test_form_1_kl_to_uniform_is_the_deficit_of_entropy():
    uniform = torch.full((6,), -log(6), dtype=torch.float64)
    by_sum = exact_kl(LOGITS.log_softmax(-1), uniform)
    assert torch.isclose(exact.kl_to_uniform(LOGITS), by_sum, atol=1e-14)
    assert torch.isclose(exact.kl_to_uniform(LOGITS), log(6) - entropy(LOGITS))


def test_form_1_allows_impossible_actions():
    logits = torch.tensor([0.0, 0.0, -torch.inf])
    assert float(exact.kl_to_uniform(logits)) == pytest.approx(log(1.5))


@pytest.mark.parametrize("group_size, dead", [(4, 0.4830), (8, 0.2326), (16, 0.0541)])
def test_form_2_dead_groups_at_one_in_six(group_size, dead):
    assert float(exact.dead_group_probability(1 / 6, group_size)) == pytest.approx(
        dead, abs=5e-5
    )


@pytest.mark.parametrize("p", [0.05, 1 / 6, 0.5, 0.9])
def test_form_2_against_all_outcomes_of_a_group(p):
    outcomes = list(product([0, 1], repeat=5))
    chance = [p ** sum(o) * (1 - p) ** (5 - sum(o)) for o in outcomes]
    dead = sum(c for o, c in zip(outcomes, chance, strict=True) if len(set(o)) == 1)
    assert float(exact.dead_group_probability(p, 5)) == pytest.approx(dead)
    assert float(exact.draws_per_kept_group(p, 5)) == pytest.approx(1 / (1 - dead))


def test_form_2_draws_per_kept_group_are_endless_at_the_ends():
    assert exact.draws_per_kept_group(torch.tensor([0.0, 1.0]), 4).isinf().all()


@pytest.mark.parametrize("right, wrong", [(1.0, 0.0), (1.0, -1.0), (7.5, 7.0)])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_form_3_whatever_the_scale_of_the_reward(right, wrong, k):
    rewards = torch.tensor([right] * k + [wrong] * (8 - k))
    advantage = group_advantages(rewards, torch.zeros(8), ddof=0, eps=0)
    up, down = exact.binary_advantages(k, 8)
    assert float(advantage[0]) == pytest.approx(up)
    assert float(advantage[-1]) == pytest.approx(down)


@pytest.mark.parametrize("k", [0, 8])
def test_form_3_has_no_value_for_a_dead_group(k):
    with pytest.raises(ValueError, match="n_correct: got"):
        exact.binary_advantages(k, 8)


def test_form_10_where_the_upper_clip_can_bind():
    p = torch.linspace(0, 1, 1001, dtype=torch.float64)
    for eps, bound in ((0.2, 0.833), (0.28, 0.781)):
        assert exact.highest_bindable_probability(eps) == pytest.approx(bound, abs=5e-4)
        reachable = 1 > (1 + eps) * p  # the largest new probability is 1
        assert torch.equal(exact.clip_can_bind(p, eps), reachable)


@pytest.mark.parametrize("eps, wanted", [(0.2, 22), (0.28, 16)])
def test_form_10_refreshes_by_walking(eps, wanted):
    p, walked = 0.01, 0
    while p < 0.5:
        p, walked = p * (1 + eps), walked + 1
    assert exact.refreshes_needed(0.01, 0.5, eps) == walked == wanted


def test_form_11_is_what_the_loss_computes_at_ratio_1():
    length = torch.tensor([3, 5, 1, 7])
    advantage = group_advantages(torch.tensor([1.0, -1, -1, 1]), torch.zeros(4))
    mask = torch.arange(7) < length[:, None]
    log_prob = torch.full((4, 7), -1.0, dtype=torch.float64)
    losses = {
        name: policy_loss(log_prob, log_prob, advantage, mask, reduction=name).loss
        for name in ("token_mean", "seq_mean")
    }
    token = exact.token_level_objective(length, advantage)
    sample = exact.sample_level_objective(length, advantage)
    assert float(-losses["token_mean"]) == pytest.approx(float(token), abs=1e-7)
    assert float(-losses["seq_mean"]) == pytest.approx(float(sample), abs=1e-7)
    assert abs(float(token)) > 0.1 and float(sample) == pytest.approx(0, abs=1e-12)


def test_form_12_matches_the_exact_change_to_first_order():
    change = OTHER
    predicted = exact.entropy_change(LOGITS, change)
    step = 1e-5
    exactly = (entropy(LOGITS + step * change) - entropy(LOGITS - step * change)) / (
        2 * step
    )
    assert torch.isclose(predicted, exactly, atol=1e-9)


def test_form_12_entropy_falls_when_the_likeliest_is_reinforced():
    best = torch.nn.functional.one_hot(LOGITS.argmax(), 6).double()
    worst = torch.nn.functional.one_hot(LOGITS.argmin(), 6).double()
    assert exact.entropy_change(LOGITS, best) < 0 < exact.entropy_change(LOGITS, worst)


@pytest.mark.parametrize("reverse", [False, True])
def test_form_13_kl_gradients_are_autograds(reverse):
    logits = LOGITS.clone().requires_grad_()
    log_p, log_ref = logits.log_softmax(-1), OTHER.log_softmax(-1)
    (exact_kl(log_ref, log_p) if reverse else exact_kl(log_p, log_ref)).backward()
    ours = exact.grad_kl_reference_policy if reverse else exact.grad_kl_policy_reference
    assert torch.allclose(ours(LOGITS, OTHER), logits.grad, atol=1e-14)


def test_form_14_corners_slope_and_monotony():
    corners = exact.penalty_corners(60, 16)
    assert corners == {
        "free_until": (44, 0),
        "midway": (52, -0.5),
        "full_from": (60, -1),
        "beyond": (120, -1),
    }
    penalty = soft_overlong(torch.arange(0, 80), l_max=60, l_cache=16)
    steps = penalty.diff()
    assert (steps <= 0).all() and steps.abs().max() == pytest.approx(1 / 16)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_form_15_pass_and_avg_over_all_outcomes(p):
    outcomes = torch.tensor(list(product([0, 1], repeat=4)), dtype=torch.float64)
    k = outcomes.sum(1)
    chance = p**k * (1 - p) ** (4 - k)
    mean = outcomes.mean(1)
    variance = chance @ (mean - chance @ mean) ** 2
    assert float(exact.pass_at_k_exact(p, 4)) == pytest.approx(
        float(chance @ (k > 0).double())
    )
    assert float(exact.avg_at_n_variance(p, 4)) == pytest.approx(float(variance))


def test_form_15_pass_at_k_is_what_the_sample_estimate_expects():
    n, k, p = 6, 3, 0.3
    chance = exact.binomial(p, n)
    estimate = sum(chance[c] * metrics.pass_at_k(n, c, k) for c in range(n + 1))
    assert torch.isclose(estimate, exact.pass_at_k_exact(p, k))


def test_form_15_majority_over_all_ordered_samples():
    p, correct = [0.4, 0.35, 0.25], [0, 1, 0]
    expected = 0.0
    for votes in product(range(3), repeat=5):
        chance = p[votes[0]] * p[votes[1]] * p[votes[2]] * p[votes[3]] * p[votes[4]]
        right = [bool(correct[v]) for v in votes]
        expected += chance * metrics.maj_at_k(votes, right)
    ours = exact.maj_at_k_exact(
        torch.tensor(p, dtype=torch.float64), torch.tensor(correct), 5
    )
    assert float(ours) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: exact.binomial(1.2, 4), "p: got 1.2"),
        (lambda: exact.gradient_scale(0.0, 4), "p: got 0.0"),
        (lambda: exact.gradient_scale(0.5, 1), "group_size: got 1"),
        (lambda: exact.gradient_scale(0.5, 4, "ppo"), "method: got 'ppo'"),
        (lambda: exact.refreshes_needed(0.5, 0.1, 0.2), "start: got 0.5"),
        (lambda: exact.highest_bindable_probability(-0.1), "eps_high: got -0.1"),
        (lambda: exact.entropy_change(LOGITS, OTHER[:3]), "change: got"),
        (lambda: exact.penalty_corners(4, 5), "l_cache: got 5"),
        (lambda: exact.pass_at_k_exact(0.5, 0), "k: got 0"),
        (lambda: exact.enumerate_groups(torch.ones(40) / 40, 20), "group_size: got"),
        (
            lambda: exact.token_level_objective(torch.ones(2), torch.ones(2)),
            "advantage: got",
        ),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
