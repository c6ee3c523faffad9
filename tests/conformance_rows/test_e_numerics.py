"""Rows E: numerics and log-probabilities."""

import math

import pytest
import torch

from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.metrics import token_log_prob
from dapo_lib.objective import importance_ratio, policy_loss
from dapo_lib.train import Schedule, shaped_reward


@pytest.mark.parametrize("padding", [100.0, 1e4, math.inf, math.nan])
def test_E01_the_mask_comes_before_exp(padding):
    old = torch.tensor([[-1.0, -1.0]])
    new = torch.tensor([[-1.0, -1.0 + padding]], requires_grad=True)
    mask = torch.tensor([[1, 0]])
    out = policy_loss(new, old, -torch.ones(1), mask)
    out.loss.backward()
    assert out.loss.item() == pytest.approx(1.0)
    assert new.grad.tolist() == [[1.0, 0.0]]
    assert importance_ratio(new, old, mask.bool()).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("log_ratio", [21.0, 88.0, 89.0, 500.0])
def test_E02_the_log_ratio_is_clamped(log_ratio):
    old = torch.tensor([[-600.0]])
    new = old + log_ratio
    ratio = importance_ratio(new, old, torch.tensor([[True]]))
    assert ratio.item() == pytest.approx(math.exp(20), rel=1e-5) and ratio <= 4.86e8
    loss, _ = policy_loss(new, old, -torch.ones(1), torch.ones(1, 1), dual_clip=3.0)
    assert loss.item() == pytest.approx(3.0)


def test_E03_log_probs_are_float32_or_wider():
    logits = torch.tensor([[10.03, 9.97]])
    log_prob = token_log_prob(logits, torch.tensor([0]))
    assert log_prob.dtype is torch.float32
    assert log_prob.exp().item() == pytest.approx(0.5150, abs=1e-4)
    coarse = token_log_prob(logits.bfloat16(), torch.tensor([0]))
    assert coarse.dtype is torch.float32  # the softmax at least is not bfloat16
    mask = torch.ones(1, 1, dtype=torch.bool)
    same = importance_ratio(log_prob[None], log_prob[None], mask)
    assert same.item() == 1
    assert importance_ratio(log_prob[None].bfloat16(), log_prob[None], mask).dtype is (
        torch.float32
    )


@pytest.mark.parametrize("temperature", [0.5, 0.7, 1.0, 2.0])
def test_E04_score_at_the_temperature_of_sampling(temperature):
    logits, tokens = torch.tensor([[2.0, 0.0]] * 2).double(), torch.tensor([0, 1])
    sampled = (logits / temperature).softmax(-1).gather(-1, tokens[:, None])[:, 0].log()
    mask = torch.ones(1, 2, dtype=torch.bool)
    scored = token_log_prob(logits, tokens, temperature)
    ratio = importance_ratio(scored[None], sampled[None], mask)
    torch.testing.assert_close(ratio, torch.ones(1, 2, dtype=torch.float64))
    if temperature == 0.5:  # what forgetting it gives
        wrong = importance_ratio(
            token_log_prob(logits, tokens)[None], sampled[None], mask
        )
        assert wrong[0].tolist() == pytest.approx([0.8969, 6.6275], abs=1e-3)


def test_E06_dropout_is_off_while_scoring(run):
    """The loop's own check: log r of the first update is 0 unless scoring is noisy."""
    quiet = run(rollouts=1, minibatches=1)
    (record,) = next(iter(quiet.steps)).updates
    assert abs(record["log_ratio"].item()) < 1e-12
    noisy = run(rollouts=1, minibatches=1, logits=torch.ones(8, 4, 5))
    clean = noisy.policy.log_prob

    def with_dropout(rollout):
        kept = noisy.policy.logits
        noisy.policy.logits = torch.nn.functional.dropout(kept, 0.5, training=True)
        try:
            return clean(rollout)
        finally:
            noisy.policy.logits = kept

    noisy.policy.log_prob = with_dropout
    torch.manual_seed(0)
    (record,) = next(iter(noisy.steps)).updates
    assert abs(record["log_ratio"].item()) > 0.1
    p = torch.tensor([0.0, 2.0, 4.0]).sigmoid()  # dropped, eval, kept
    assert (p / p[1]).tolist() == pytest.approx([0.568, 1, 1.115], abs=1e-3)


def test_E08_no_kept_row_is_no_update(run):
    made = run(answers=[4] * 4, rollouts=2, options={"max_rounds": 3})
    made.policy.logits.data[:, 0, 4] = -1e9  # the right token never comes
    for step in made.steps:
        assert step.batch is None and step.advantage is None and step.updates == []
        assert step.ledger.exhausted and step.ledger.kept == 0
    assert made.state.updates == 0 and made.state.rollouts == 2


def test_E09_a_mean_over_nothing_is_zero(reduce):
    assert reduce([[3.0, 4.0]], [[0, 0]]) == 0
    assert reduce([[3.0, 4.0]], [[0, 0]], denominator=0) == 0


def test_E10_the_reward_is_a_scalar_of_the_response(graded):
    batch = graded([1, 0], [0, 0], length=[5, 0])
    shaped = shaped_reward(ALGORITHMS["dapo"], Schedule(l_max=20), batch)
    assert shaped.tolist() == [1, -1]
