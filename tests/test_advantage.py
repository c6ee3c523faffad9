"""group_advantages: options, and every bad input named."""

import warnings

import pytest
import torch

from dapo_lib.advantage import BASELINES, SCALES, group_advantages

REWARDS = torch.tensor([1.0, -1.0, -1.0, -1.0, 1.0, 1.0])
IDS = torch.tensor([3, 3, 3, 3, 8, 8])


def test_batch_and_no_baseline_do_not_know_groups():
    """PPO with a batch baseline, and plain REINFORCE: a constant group still learns."""
    batch = group_advantages(REWARDS, IDS, scale="none", baseline="batch")
    assert torch.equal(batch, REWARDS.double())  # the mean of the batch is 0
    plain = group_advantages(REWARDS + 1, IDS, scale="none", baseline="none")
    assert torch.equal(plain, REWARDS.double() + 1)
    ppo = group_advantages(REWARDS, IDS, scale="batch", baseline="batch", eps=0)
    deviation = REWARDS.double().std()
    torch.testing.assert_close(ppo, REWARDS.double() / deviation)


def test_a_constant_batch_is_zero_when_it_is_the_baseline_or_the_divisor():
    same = torch.full((4,), 0.1)
    ids = torch.tensor([0, 0, 1, 1])
    for scale, baseline in (("none", "batch"), ("batch", "batch"), ("batch", "none")):
        assert (group_advantages(same, ids, scale=scale, baseline=baseline) == 0).all()
    assert (group_advantages(same, ids, scale="none", baseline="none") != 0).all()


def test_batch_statistics_stay_in_their_lane():
    lanes = torch.tensor([0, 0, 0, 0, 1, 1])
    ours = group_advantages(REWARDS, IDS, scale="none", baseline="batch", lanes=lanes)
    assert ours.tolist() == [1.5, -0.5, -0.5, -0.5, 0, 0]


def test_leave_one_out_is_the_mean_of_the_others():
    ours = group_advantages(REWARDS, IDS, scale="none", baseline="leave_one_out")
    assert ours.tolist() == pytest.approx([2, -2 / 3, -2 / 3, -2 / 3, 0, 0])


def test_no_warning_where_no_group_is_used():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = torch.tensor([0.5])
        assert group_advantages(one, one, scale="none", baseline="none") == 0.5


def test_float64_and_detached():
    rewards = REWARDS.clone().requires_grad_()
    ours = group_advantages(rewards, IDS)
    assert ours.dtype is torch.float64 and not ours.requires_grad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": torch.ones(2, 2)}, r"rewards: got \(2, 2\)"),
        ({"rewards": torch.ones(0)}, r"rewards: got \(0,\)"),
        ({"group_ids": torch.ones(5)}, r"group_ids: got \(5,\), expected shape \(6,\)"),
        ({"lanes": torch.ones(2)}, r"lanes: got \(2,\)"),
        ({"include": torch.ones(6)}, r"include: got \(6,\) torch.float32"),
        ({"include": torch.ones(1) > 0}, r"include: got \(1,\)"),
        ({"rewards": torch.tensor([1.0] * 5 + [torch.nan])}, "rewards: got nan in row"),
        ({"rewards": torch.tensor([-torch.inf] + [1.0] * 5)}, "rewards: got -inf in"),
        ({"ddof": 2}, "ddof: got 2"),
        ({"eps": -1e-6}, "eps: got -1e-06"),
        ({"eps": float("nan")}, "eps: got nan"),
        ({"tolerance": -1.0}, "tolerance: got -1"),
        ({"scale": "std"}, r"scale: got 'std', expected group \| batch \| none"),
        ({"baseline": None}, "baseline: got None"),
    ],
)
def test_bad_input_is_named(change, message):
    options = {"rewards": REWARDS, "group_ids": IDS} | change
    with pytest.raises(ValueError, match=message):
        group_advantages(options.pop("rewards"), options.pop("group_ids"), **options)


def test_choices_are_the_documented_ones():
    assert SCALES == ("group", "batch", "none")
    assert BASELINES == ("mean", "leave_one_out", "batch", "none")
