"""Properties of the loss that hold for every batch: value, gradient, diagnostics."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.objective import REDUCTIONS, count_denominator, policy_loss

EVERY = settings(max_examples=25, deadline=None, derandomize=True)
NEVER_SPLIT = [r for r in REDUCTIONS if r != "micro_token_mean"]
L_MAX = 8


@st.composite
def batches(draw):
    """Ratios on both sides of both bounds, empty rows, groups of unequal size."""
    rows, width = draw(st.integers(1, 9)), draw(st.integers(1, L_MAX))
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    uniform = torch.rand(2, rows, width, generator=g, dtype=torch.float64)
    old = -3 - uniform[0]
    length = torch.randint(0, width + 1, (rows,), generator=g)
    return SimpleNamespace(
        new=old + (uniform[1] - 0.5) * 1.2,
        old=old,
        advantage=torch.randn(rows, generator=g, dtype=torch.float64),
        mask=torch.arange(width)[None] < length[:, None],
        ids=torch.randint(0, max(rows // 2, 1), (rows,), generator=g),
        order=torch.randperm(rows, generator=g),
    )


def loss_and_grad(b, reduction="token_mean", *, rows=None, **options):
    """Loss, gradient [B, T] and diagnostics, of some rows or of all."""
    rows = torch.arange(len(b.new)) if rows is None else rows
    new = b.new.clone().requires_grad_()
    out = policy_loss(
        new[rows],
        b.old[rows],
        b.advantage[rows],
        b.mask[rows],
        reduction=reduction,
        group_ids=b.ids[rows],
        l_max=L_MAX,
        **options,
    )
    out.loss.backward()
    return out.loss.detach(), new.grad, out.diagnostics


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


def scalar_loss(b, reduction, eps_low, eps_high, dual_clip) -> float:
    """Eq 5, 8, 10, 12 with Python floats and three loops; no vector operation."""
    total, tokens = [], []
    for i in range(len(b.new)):
        row, a = 0.0, float(b.advantage[i])
        for t in range(b.new.shape[1]):
            if not bool(b.mask[i, t]):
                continue
            r = math.exp(float(b.new[i, t]) - float(b.old[i, t]))
            value = min(r * a, min(max(r, 1 - eps_low), 1 + eps_high) * a)
            if dual_clip is not None and a < 0:
                value = max(value, dual_clip * a)
            row += value
        total.append(row)
        tokens.append(int(b.mask[i].sum()))
    if reduction in ("token_mean", "micro_token_mean"):
        return -sum(total) / max(sum(tokens), 1)
    if reduction == "group_token_mean":
        means = []
        for name in set(b.ids.tolist()):
            rows = [i for i, g in enumerate(b.ids.tolist()) if g == name]
            if count := sum(tokens[i] for i in rows):
                means.append(sum(total[i] for i in rows) / count)
        return -sum(means) / max(len(means), 1)
    divide = tokens if reduction == "seq_mean" else [L_MAX] * len(tokens)
    rows = [v / d for v, d, n in zip(total, divide, tokens, strict=True) if n]
    return -sum(rows) / max(len(rows), 1)


@EVERY
@given(
    b=batches(),
    reduction=st.sampled_from(REDUCTIONS),
    bounds=st.sampled_from([(0.2, 0.28), (0.2, 0.2), (0.0, 0.0), (0.5, math.inf)]),
    dual_clip=st.sampled_from([None, 1.1, 3.0]),
)
def test_equals_the_scalar_triple_loop(b, reduction, bounds, dual_clip):
    low, high = bounds
    options = {"eps_low": low, "eps_high": high, "dual_clip": dual_clip}
    loss, _, _ = loss_and_grad(b, reduction, **options)
    assert loss.item() == pytest.approx(
        scalar_loss(b, reduction, **options), rel=1e-10, abs=1e-12
    )


@EVERY
@given(b=batches(), reduction=st.sampled_from(REDUCTIONS))
def test_gradient_equals_finite_differences(b, reduction):
    ratio = (b.new - b.old).exp()
    near_a_kink = (ratio - 0.8).abs().min(), (ratio - 1.28).abs().min()
    if min(near_a_kink) < 1e-4:
        return
    _, grad, _ = loss_and_grad(b, reduction)
    step = 1e-6
    for i, t in [(0, 0), (len(b.new) - 1, b.new.shape[1] - 1)]:
        ends = []
        for sign in (1, -1):
            moved = SimpleNamespace(**vars(b) | {"new": b.new.clone()})
            moved.new[i, t] += sign * step
            ends.append(loss_and_grad(moved, reduction)[0].item())
        slope = (ends[0] - ends[1]) / (2 * step)
        assert grad[i, t].item() == pytest.approx(slope, rel=1e-6, abs=1e-8)


@EVERY
@given(b=batches(), reduction=st.sampled_from(NEVER_SPLIT), splits=st.integers(1, 9))
def test_no_micro_batch_split_changes_value_or_gradient(b, reduction, splits):
    whole, grad, sums = loss_and_grad(b, reduction)
    count = count_denominator(b.mask, reduction, group_ids=b.ids, l_max=L_MAX)
    pieces = b.order.tensor_split(min(splits, len(b.order)))
    parts = [loss_and_grad(b, reduction, rows=r, denominator=count[r]) for r in pieces]
    same(sum(p[0] for p in parts), whole)
    same(sum(p[1] for p in parts), grad)
    for name, value in sums.items():
        same(sum(p[2][name] for p in parts), value)


def test_micro_token_mean_depends_on_the_split():
    old = torch.full((2, 8), -1.0, dtype=torch.float64)
    mask = torch.arange(8)[None] < torch.tensor([[2], [8]])
    b = SimpleNamespace(
        new=old, old=old, advantage=torch.tensor([-1.0, 0.0]), mask=mask
    )
    b.ids = torch.tensor([0, 1])
    whole, _, _ = loss_and_grad(b, "micro_token_mean")
    halves = [
        loss_and_grad(b, "micro_token_mean", rows=torch.tensor([i]), denominator=2)[0]
        for i in (0, 1)
    ]
    assert whole.item() == pytest.approx(0.2)
    assert sum(halves).item() == pytest.approx(0.5)


@EVERY
@given(b=batches(), reduction=st.sampled_from(REDUCTIONS))
def test_order_and_names_of_groups_change_nothing(b, reduction):
    whole, grad, _ = loss_and_grad(b, reduction)
    permuted, moved, _ = loss_and_grad(b, reduction, rows=b.order)
    same(permuted, whole)
    same(moved, grad)
    renamed = SimpleNamespace(**vars(b) | {"ids": 1_000 - 7 * b.ids})
    same(loss_and_grad(renamed, reduction)[0], whole)


@EVERY
@given(
    b=batches(),
    reduction=st.sampled_from(REDUCTIONS),
    left=st.integers(0, 3),
    right=st.integers(0, 3),
    junk=st.sampled_from([0.0, -50.0, 7.0, math.inf, math.nan]),
)
def test_padding_width_side_and_content_change_nothing(b, reduction, left, right, junk):
    def padded(values, fill):
        return torch.nn.functional.pad(values, (left, right), value=fill)

    wide = SimpleNamespace(
        **vars(b)
        | {
            "new": padded(torch.where(b.mask, b.new, junk), junk),
            "old": padded(torch.where(b.mask, b.old, -junk), -junk),
            "mask": padded(b.mask, False),
        }
    )
    loss, grad, sums = loss_and_grad(b, reduction)
    loss_wide, grad_wide, sums_wide = loss_and_grad(wide, reduction)
    same(loss_wide, loss)
    width = b.new.shape[1]
    same(grad_wide[:, left : left + width], grad)
    assert (grad_wide[~wide.mask] == 0).all()
    for name, value in sums.items():
        same(sums_wide[name], value)


@EVERY
@given(b=batches(), reduction=st.sampled_from(REDUCTIONS), eps=st.floats(0, 0.9))
def test_equal_bounds_are_ppo(b, reduction, eps):
    """PPO's own form: -max(-A r, -A clip(r, 1 - eps, 1 + eps))."""
    loss, grad, _ = loss_and_grad(b, reduction, eps_low=eps, eps_high=eps)
    new = b.new.clone().requires_grad_()
    ratio, a = (new - b.old).exp(), b.advantage[:, None]
    ppo = torch.maximum(-a * ratio, -a * torch.clamp(ratio, 1 - eps, 1 + eps))
    count = count_denominator(b.mask, "seq_mean") if reduction == "seq_mean" else None
    if reduction == "seq_mean":
        value = ((ppo * b.mask).sum(1) / count).sum()
    elif reduction in ("token_mean", "micro_token_mean"):
        value = (ppo * b.mask).sum() / b.mask.sum().clamp(min=1)
    else:
        return
    value.backward()
    same(loss, value.detach())
    same(grad, new.grad)


@EVERY
@given(b=batches(), reduction=st.sampled_from(REDUCTIONS))
def test_gradient_is_zero_exactly_where_it_must_be(b, reduction):
    b.advantage[0] = 0.0  # what a constant group gets
    _, grad, _ = loss_and_grad(b, reduction)
    ratio, a = (b.new - b.old).exp(), b.advantage[:, None]
    clipped = ((a > 0) & (ratio > 1.28)) | ((a < 0) & (ratio < 0.8))
    zero = clipped | ~b.mask | (a == 0)
    assert (grad[zero] == 0).all() and (grad[~zero] != 0).all()


@EVERY
@given(b=batches(), reduction=st.sampled_from(REDUCTIONS), factor=st.floats(0.1, 10))
def test_loss_is_linear_in_the_scale_of_the_advantage(b, reduction, factor):
    scaled = SimpleNamespace(**vars(b) | {"advantage": factor * b.advantage})
    loss, grad, _ = loss_and_grad(b, reduction)
    loss_scaled, grad_scaled, _ = loss_and_grad(scaled, reduction)
    torch.testing.assert_close(loss_scaled, factor * loss, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(grad_scaled, factor * grad, rtol=1e-9, atol=1e-10)


@EVERY
@given(b=batches())
def test_clip_counts_equal_a_count_by_hand(b):
    _, _, sums = loss_and_grad(b, dual_clip=1.3)
    low = high = dual = 0
    p_old = 0.0
    for i, t in b.mask.nonzero().tolist():
        r, a = math.exp(b.new[i, t] - b.old[i, t]), b.advantage[i].item()
        low += a < 0 and r < 0.8
        high += a > 0 and r > 1.28
        dual += a < 0 and r > 1.3
        p_old += math.exp(b.old[i, t]) if a > 0 and r > 1.28 else 0
    found = [sums[n].item() for n in ("clip_low", "clip_high", "clip_dual")]
    assert found == [low, high, dual] and sums["tokens"] == b.mask.sum()
    assert sums["p_up_clipped"].item() == pytest.approx(p_old)
