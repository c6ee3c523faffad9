"""Properties of the advantages that hold for all rewards and groups."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.advantage import BASELINES, SCALES, group_advantages

EVERY = settings(max_examples=40, deadline=None, derandomize=True)
INVARIANT = ("mean", "leave_one_out", "batch")  # to a shift of all rewards


SHAPED = st.sampled_from([-1.0, 1.0, 0.5, -1.5])


@st.composite
def grouped(draw, values=SHAPED):
    rows = draw(st.integers(1, 14))
    rewards = draw(st.lists(values, min_size=rows, max_size=rows))
    names = st.integers(0, max(rows // 3, 1))
    ids = draw(st.lists(names, min_size=rows, max_size=rows))
    return torch.tensor(rewards, dtype=torch.float64), torch.tensor(ids)


def advantages(rewards, ids, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # groups of one
        return group_advantages(rewards, ids, **({"eps": 0} | options))


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def scalar(rewards, ids, ddof, scale, baseline):
    """Python floats, one row at a time."""
    rewards, ids = rewards.tolist(), ids.tolist()

    def deviation(values):
        mean = sum(values) / len(values)
        square = sum((v - mean) ** 2 for v in values)
        return (square / max(len(values) - ddof, 1)) ** 0.5

    result = []
    for r, name in zip(rewards, ids, strict=True):
        group = [v for v, g in zip(rewards, ids, strict=True) if g == name]
        n = len(group)
        others = (sum(group) - r) / (n - 1) if n > 1 else r
        mean = sum(rewards) / len(rewards)
        base = {"mean": sum(group) / n, "leave_one_out": others, "batch": mean}
        a = r - base.get(baseline, 0.0)
        used = {"group": group, "batch": rewards}.get(scale)
        sets = [] if baseline == "none" else [rewards if baseline == "batch" else group]
        sets += [used] if used else []
        if any(max(s) - min(s) <= 1e-8 for s in sets):
            a = 0.0
        elif used:
            a /= deviation(used)
        result.append(a)
    return torch.tensor(result, dtype=torch.float64)


@EVERY
@given(
    data=grouped(),
    ddof=st.sampled_from([0, 1]),
    scale=st.sampled_from(SCALES),
    baseline=st.sampled_from(BASELINES),
)
def test_equals_the_scalar_reference(data, ddof, scale, baseline):
    options = {"ddof": ddof, "scale": scale, "baseline": baseline}
    same(advantages(*data, **options), scalar(*data, **options))


@EVERY
@given(
    data=grouped(),
    scale=st.sampled_from(SCALES),
    baseline=st.sampled_from(INVARIANT),
    shift=st.floats(-100, 100),
    factor=st.floats(0.01, 100),
)
def test_shift_and_scale_of_rewards(data, scale, baseline, shift, factor):
    rewards, ids = data
    options = {"scale": scale, "baseline": baseline}
    plain = advantages(rewards, ids, **options)
    moved = advantages(factor * rewards + shift, ids, **options)
    same(moved, plain * (factor if scale == "none" else 1.0))


@EVERY
@given(data=grouped(), seed=st.integers(0, 999), baseline=st.sampled_from(BASELINES))
def test_order_and_names_change_nothing(data, seed, baseline):
    rewards, ids = data
    plain = advantages(rewards, ids, baseline=baseline)
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))
    same(advantages(rewards[order], ids[order], baseline=baseline), plain[order])
    same(advantages(rewards, -3 * ids + 17, baseline=baseline), plain)


@EVERY
@given(data=grouped(st.floats(-1e3, 1e3)), scale=st.sampled_from(SCALES))
def test_a_group_sums_to_zero_and_one_of_one_is_zero(data, scale):
    rewards, ids = data
    ours = advantages(rewards, ids, scale=scale)
    for name in ids.unique():
        mine = ours[ids == name]
        scope = rewards.abs().max().item() + 1
        assert mine.sum().item() == pytest.approx(0, abs=1e-9 * scope * len(ids))
        if len(mine) == 1 or (rewards[ids == name].diff() == 0).all():
            assert (mine == 0).all()


@EVERY
@given(data=grouped(), seed=st.integers(0, 999), baseline=st.sampled_from(BASELINES))
def test_rows_left_out_are_as_if_they_had_not_been(data, seed, baseline):
    rewards, ids = data
    g = torch.Generator().manual_seed(seed)
    include = torch.rand(len(ids), generator=g) < 0.7
    for scale in SCALES:
        options = {"scale": scale, "baseline": baseline}
        ours = advantages(rewards, ids, include=include, **options)
        assert (ours[~include] == 0).all()
        if include.any():
            alone = advantages(rewards[include], ids[include], **options)
            same(ours[include], alone)


@EVERY
@given(data=grouped(), cut=st.integers(1, 13), baseline=st.sampled_from(BASELINES))
def test_lanes_are_as_if_run_alone(data, cut, baseline):
    rewards, ids = data
    lanes = (torch.arange(len(ids)) >= cut).long()
    ids = 2 * ids + lanes  # no group lies in two lanes
    for scale in SCALES:
        options = {"scale": scale, "baseline": baseline}
        ours = advantages(rewards, ids, lanes=lanes, **options)
        for lane in lanes.unique():
            mine = lanes == lane
            same(ours[mine], advantages(rewards[mine], ids[mine], **options))


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_closed_form_of_binary_rewards(size):
    for k in range(1, size):
        rewards = torch.tensor([1.0] * k + [-1.0] * (size - k))
        ours = advantages(rewards, torch.zeros(size), ddof=0)
        assert ours[0].item() == pytest.approx(((size - k) / k) ** 0.5)
        assert ours[-1].item() == pytest.approx(-((k / (size - k)) ** 0.5))
