"""Overlong shaping: shape, type, bounds, bad input."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dapo_lib.overlong import linear_overlong, overlong_mask, soft_overlong


@settings(max_examples=50, deadline=None, derandomize=True)
@given(l_max=st.integers(1, 60), data=st.data())
def test_it_is_eq_13_bounded_monotone_and_continuous(l_max, data):
    l_cache = data.draw(st.integers(0, l_max))
    lengths = torch.arange(2 * l_max + 2)
    ours = soft_overlong(lengths, l_max=l_max, l_cache=l_cache)
    for length, value in zip(lengths.tolist(), ours.tolist(), strict=True):
        if length <= l_max - l_cache:
            assert value == 0
        elif length <= l_max:
            assert value == pytest.approx(((l_max - l_cache) - length) / l_cache)
        else:
            assert value == -1
    steps = ours.diff()
    assert (steps <= 0).all()
    assert steps.min().item() >= -1 / max(l_cache, 1) - 1e-12


def test_shape_and_type():
    ours = soft_overlong(torch.tensor([[1, 20], [18, 16]]), l_max=20, l_cache=4)
    assert ours.dtype is torch.float64 and ours.tolist() == [[0, -1], [-0.5, 0]]


@pytest.mark.parametrize(
    ("length", "l_max", "l_cache", "message"),
    [
        (1, 20, 24, "l_cache: got 24, expected 0 <= l_cache <= l_max=20"),
        (1, 20, -1, "l_cache: got -1"),
        (1, 0, 0, "l_max: got 0"),
        (-1, 20, 4, "length: got a negative value or NaN"),
        (float("nan"), 20, 4, "length: got a negative value or NaN"),
    ],
)
def test_bad_input_is_named(length, l_max, l_cache, message):
    with pytest.raises(ValueError, match=message):
        soft_overlong(torch.tensor([length]), l_max=l_max, l_cache=l_cache)


def test_linear_is_unbounded():
    assert linear_overlong(torch.tensor([3, 4, 103])).tolist() == [0, -0.05, -5.0]


def test_mask_drops_whole_rows_only():
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    ours = overlong_mask(mask, torch.tensor([0, 1, 0]))
    assert ours.int().tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match=r"truncated: got \(2,\)"):
        overlong_mask(mask, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"mask: got \(3,\)"):
        overlong_mask(mask[0], torch.tensor([0]))
