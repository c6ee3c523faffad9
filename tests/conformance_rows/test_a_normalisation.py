"""Rows A: what is divided by what. Per-token losses are given at ratio 1."""

import pytest
import torch

from dapo_lib.objective import REDUCTIONS, count_denominator, divisor, policy_loss
from dapo_lib.overlong import overlong_mask

NEVER_SPLIT = [r for r in REDUCTIONS if r != "micro_token_mean"]
# two prompts, one response each: 4 tokens of loss 1 and 12 tokens of loss 0
TWO_GROUPS = ([[1.0] * 4 + [0.0] * 8, [0.0] * 12], [[1] * 4 + [0] * 8, [1] * 12])


def test_A01_micro_batches_share_one_denominator(reduce):
    parts = [1.0] * 2, [0.0] * 8
    assert sum(reduce([p], denominator=10) for p in parts) == pytest.approx(0.2)
    options = {"reduction": "micro_token_mean", "denominator": 2}
    assert sum(reduce([p], **options) for p in parts) == pytest.approx(0.5)


@pytest.mark.parametrize("splits", [1, 2, 3, 6])
@pytest.mark.parametrize("reduction", NEVER_SPLIT)
def test_A01_no_split_changes_any_reduction(reduction, splits):
    generator = torch.Generator().manual_seed(1)
    rows, width = 6, 7
    old = -torch.rand(rows, width, generator=generator, dtype=torch.float64)
    new = old - 0.3 * torch.rand(rows, width, generator=generator, dtype=torch.float64)
    advantage = torch.randn(rows, generator=generator, dtype=torch.float64)
    mask = torch.arange(width)[None] < torch.tensor([7, 3, 0, 1, 5, 2])[:, None]
    ids = torch.tensor([4, 9, 4, 9, 2, 2])
    options = {"reduction": reduction, "l_max": width}
    whole, _ = policy_loss(new, old, advantage, mask, group_ids=ids, **options)
    count = count_denominator(mask, reduction, group_ids=ids, l_max=width)
    parts = [
        policy_loss(
            new[r],
            old[r],
            advantage[r],
            mask[r],
            denominator=count[r],
            group_ids=ids[r],
            **options,
        ).loss
        for r in torch.arange(rows).tensor_split(splits)
    ]
    torch.testing.assert_close(sum(parts), whole, rtol=1e-12, atol=1e-12)


def test_A02_the_global_count_is_an_argument(reduce):
    parts = [0.5] * 100, [0.3] * 900
    total = sum(reduce([part], denominator=1000) for part in parts)
    assert total == pytest.approx(0.32)
    alone = [reduce([part]) for part in parts]  # each its own mean: what .40 came from
    assert sum(alone) / 2 == pytest.approx(0.40)


@pytest.mark.parametrize("accumulation", [1, 2, 32])
def test_A03_the_window_of_the_count_is_that_of_the_sum(reduce, accumulation):
    window = accumulation * 10
    losses = [reduce([[1.0] * 10], denominator=window) for _ in range(accumulation)]
    assert sum(losses) == pytest.approx(1.0)


def test_A04_a_masked_row_leaves_the_denominator(reduce):
    mask = torch.zeros(3, 15, dtype=torch.bool)
    mask[0, :15] = mask[1, :10] = mask[2, :5] = True
    kept = overlong_mask(mask, torch.tensor([False, False, True]))
    assert kept.sum() == 25
    assert reduce([[1.0] * 15] * 3, kept.int().tolist()) == pytest.approx(1.0)
    options = {"reduction": "seq_mean"}
    assert reduce([[1.0] * 15] * 3, kept.int().tolist(), **options) == pytest.approx(1)


@pytest.mark.parametrize("value", [50.0, 1e30])
def test_A06_padding_does_not_leak(reduce, value):
    assert reduce([[1.0, 1.0, value]], [[1, 1, 0]]) == pytest.approx(1.0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_A07_all_masked_is_zero_with_zero_gradient(reduction):
    new = torch.full((2, 3), -1.0, requires_grad=True)
    out = policy_loss(
        new,
        torch.full((2, 3), -2.0),
        torch.ones(2),
        torch.zeros(2, 3),
        reduction=reduction,
        group_ids=torch.tensor([0, 1]),
        l_max=3,
    )
    out.loss.backward()
    assert out.loss.item() == 0 and (new.grad == 0).all()
    assert out.diagnostics["tokens"] == 0


@pytest.mark.parametrize("padded", [4, 8, 50])
def test_A08_dr_grpo_divides_by_a_constant(reduce, padded):
    losses = [[1.0] * 4 + [9.0] * (padded - 4)]
    mask = [[1] * 4 + [0] * (padded - 4)]
    assert reduce(losses, mask, reduction="seq_sum_const", l_max=8) == 0.5


def test_A09_two_readings_of_token_level_have_two_names(reduce):
    ids = {"group_ids": torch.tensor([7, 3])}
    assert reduce(*TWO_GROUPS, **ids) == pytest.approx(0.25)
    per_group = reduce(*TWO_GROUPS, reduction="group_token_mean", **ids)
    assert per_group == pytest.approx(0.5)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_A11_any_chunk_size_gives_the_same(reduce, chunk):
    lengths = [2, 4, 4, 10]
    mask = [[1] * n + [0] * (10 - n) for n in lengths]
    pieces = [mask[i : i + chunk] for i in range(0, 4, chunk)]
    total = sum(reduce([[1.0] * 10] * len(m), m, denominator=20) for m in pieces)
    assert total == pytest.approx(1.0)


def test_A13_the_ratio_is_per_token():
    ratios = torch.tensor([[1.1, 0.9, 1.5]], dtype=torch.float64)
    old = torch.full_like(ratios, -3.0)
    out = policy_loss(old + ratios.log(), old, torch.ones(1), torch.ones(1, 3))
    assert -out.loss.item() == pytest.approx((1.1 + 0.9 + 1.28) / 3)


def test_A14_names_say_what_is_in_the_denominator(reduce):
    expected = {
        "token_mean": 4 / 16,
        "group_token_mean": (4 / 4 + 0 / 12) / 2,
        "micro_token_mean": 4 / 16,
        "seq_mean": (4 / 4 + 0 / 12) / 2,
        "seq_sum_const": (4 / 12 + 0 / 12) / 2,
    }
    assert set(expected) == set(REDUCTIONS)
    ids = torch.tensor([0, 1])
    for name, value in expected.items():
        ours = reduce(*TWO_GROUPS, reduction=name, group_ids=ids, l_max=12)
        assert ours == pytest.approx(value), name
        assert name in divisor.__doc__


def test_A15_per_prompt_is_not_per_sample(reduce):
    losses, mask = [[1.0, 0.0, 0.0], [0.0] * 3], [[1, 0, 0], [1, 1, 1]]
    ids = torch.tensor([5, 5])
    per_prompt = reduce(losses, mask, reduction="group_token_mean", group_ids=ids)
    assert per_prompt == pytest.approx(0.25)
    assert reduce(losses, mask, reduction="seq_mean") == pytest.approx(0.5)


def test_A_denominators_of_independent_runs_stay_apart():
    """Two lanes in one batch: each loss and gradient as if it were alone."""
    old = torch.full((3, 4), -1.0, dtype=torch.float64)
    new = (old - 0.1).requires_grad_()
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    advantage, lanes = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0, 1, 1])
    for reduction in ("token_mean", "seq_mean", "micro_token_mean"):
        options = {"reduction": reduction}
        both, _ = policy_loss(new, old, advantage, mask, lanes=lanes, **options)
        alone = [
            policy_loss(new[r], old[r], advantage[r], mask[r], **options).loss
            for r in (lanes == 0, lanes == 1)
        ]
        torch.testing.assert_close(both, sum(alone))
