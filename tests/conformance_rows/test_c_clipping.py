"""Rows C: clipping. Values are objectives (maximised) of one token."""

import math

import pytest
import torch

from dapo_lib.metrics import by_update_index, clip_diagnostics, entropy
from dapo_lib.objective import policy_loss


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "gradient"),
    [
        (0.5, -1.0, -0.8, 0.0),
        (1.5, -1.0, -1.5, -1.5),
        (1.5, 1.0, 1.28, 0.0),
        (0.5, 1.0, 0.5, 0.5),
        (1.1, 2.0, 2.2, 2.2),
        (0.9, -2.0, -1.8, -1.8),
    ],
)
def test_C01_min_for_both_signs(surrogate, ratio, advantage, value, gradient):
    ours, slope, _ = surrogate(ratio, advantage)
    assert ours == pytest.approx(value) and slope == pytest.approx(gradient)


@pytest.mark.parametrize("ratio", [1.3, 3.0, 5.0])
def test_C02_C04_eps_high_is_the_clip_bound_and_nothing_else(surrogate, ratio):
    assert surrogate(ratio, 1.0)[0] == pytest.approx(1.28)


def test_C03_zero_is_a_value():
    old = torch.full((1, 1), -1.0, dtype=torch.float64)
    new = old + math.log(1.1)
    out = policy_loss(new, old, torch.ones(1), torch.ones(1, 1), eps_high=0.0)
    assert out.loss.item() == pytest.approx(-1.0)
    out = policy_loss(new, old, -torch.ones(1), torch.ones(1, 1), eps_low=0.0)
    assert out.loss.item() == pytest.approx(1.1)


def test_C05_the_first_update_cannot_clip_and_the_others_can(run):
    made = run(problems=16, rollouts=6, minibatches=4, lr=3.0)
    merged = by_update_index(step.updates for step in made.steps)
    assert len(merged) == 4
    first = merged[0]
    assert first["clip_low"].total == first["clip_high"].total == 0
    assert first["log_ratio"].total == pytest.approx(0, abs=1e-12)
    later = sum(d[name].total for d in merged[1:] for name in ("clip_low", "clip_high"))
    assert later > 0


def test_C05_one_update_per_rollout_never_clips(run):
    made = run(rollouts=3, minibatches=1, lr=3.0)
    for (record,) in (step.updates for step in made.steps):
        assert record["clip_low"] == record["clip_high"] == 0


def test_C06_clip_shares_are_sign_aware():
    ratio = torch.tensor([[0.7, 0.7, 1.5, 1.5]], dtype=torch.float64)
    advantage = torch.tensor([[1.0, -1.0, 1.0, -1.0]], dtype=torch.float64)
    old = torch.full_like(ratio, -3.0)
    out = policy_loss(old + ratio.log(), old, advantage, torch.ones(1, 4))
    shares = clip_diagnostics([out.diagnostics])
    assert shares["clip_low"].value == shares["clip_high"].value == 0.25
    assert shares["p_up_clipped"].value == pytest.approx(math.exp(-3))


def test_C08_the_lower_clip_is_not_the_dual_clip(surrogate):
    *_, sums = surrogate(0.5, -1.0, dual_clip=3.0)
    assert sums["clip_low"] == 1 and sums["clip_dual"] == 0
    *_, sums = surrogate(5.0, -1.0, dual_clip=3.0)
    assert sums["clip_low"] == 0 and sums["clip_dual"] == 1


@pytest.mark.parametrize(
    ("ratio", "dual_clip", "value"),
    [(5.0, None, -5.0), (5.0, 10.0, -5.0), (5.0, 3.0, -3.0), (50.0, 10.0, -10.0)],
)
def test_C09_dual_clip_is_off_unless_asked_for(surrogate, ratio, dual_clip, value):
    assert surrogate(ratio, -1.0, dual_clip=dual_clip)[0] == pytest.approx(value)
    assert surrogate(ratio, 1.0, dual_clip=dual_clip)[0] == pytest.approx(1.28)


@pytest.mark.parametrize("size", [2, 16, 1000])
def test_C11_entropy_is_bounded_by_the_vocabulary(size):
    bound = math.log(size)
    assert entropy(torch.zeros(size).double()).item() == pytest.approx(bound)
    peaked = torch.randn(size, generator=torch.Generator().manual_seed(0)).double()
    assert entropy(peaked).item() < bound
