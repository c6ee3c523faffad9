"""Rows G: length, EOS, truncation."""

import pytest
import torch

from dapo_lib.algorithm import ALGORITHMS
from dapo_lib.objective import policy_loss
from dapo_lib.overlong import overlong_mask, soft_overlong
from dapo_lib.rollout import response_mask
from dapo_lib.train import Schedule, shaped_reward


def penalty(lengths, l_max, l_cache):
    return soft_overlong(torch.tensor(lengths), l_max=l_max, l_cache=l_cache).tolist()


@pytest.mark.parametrize(("l_max", "l_cache"), [(20, 24), (20, 21), (10, -1)])
def test_G01_a_cache_longer_than_the_limit_is_an_error(l_max, l_cache):
    with pytest.raises(ValueError, match=f"l_cache: got {l_cache}"):
        penalty([0], l_max, l_cache)


def test_G02_where_the_slope_starts():
    ours = penalty([16384, 16385, 20480, 20481], 20480, 4096)
    assert ours == pytest.approx([0, -0.000244, -1, -1], abs=1e-6)
    assert penalty([16, 17, 18, 19, 20], 20, 4) == [0, -0.25, -0.5, -0.75, -1]
    assert penalty([0, 24, 48], 48, 48) == [0, -0.5, -1]


@pytest.mark.parametrize(
    ("length", "l_max", "l_cache"), [(140, 100, 20), (24576, 20480, 4096)]
)
def test_G03_never_below_minus_one(length, l_max, l_cache):
    assert penalty([length], l_max, l_cache) == [-1]


def test_G04_l_max_is_the_hard_cap():
    assert penalty([14336], 20480, 4096) == [0]
    assert penalty([14336], 16384, 4096) == [-0.5]  # the other reading


def test_G06_no_cache_is_a_step():
    assert penalty([0, 20, 21], 20, 0) == [0, 0, -1]


@pytest.mark.parametrize(("correct", "total"), [(0, -1.5), (1, 0.5)])
def test_G07_shaping_is_part_of_the_loop(graded, correct, total):
    batch = graded([correct], [0], length=[18])
    assert shaped_reward(ALGORITHMS["dapo"], Schedule(l_max=20), batch).item() == total


def test_G07_in_the_loop(run):
    made = run(rollouts=1, options={"l_cache": 4})
    (step,) = made.steps
    long = step.batch.length == 4
    assert long.any()
    shaped = shaped_reward(made.algorithm, made.schedule, step.batch)
    assert (shaped[long] == step.batch.reward[long] - 1).all()


def test_G09_several_eos_ids():
    found = response_mask(torch.tensor([[5, 3, 0, 0], [5, 2, 3, 0]]), [2, 3], 0)
    assert not found.truncated.any() and found.length.tolist() == [2, 2]
    assert response_mask(torch.tensor([[5, 3, 0, 0]]), 2, 0).truncated.all()


def test_G10_eos_exactly_at_the_limit_is_complete():
    found = response_mask(torch.tensor([[5, 6, 7, 1], [5, 6, 7, 8]]), 1, 0)
    assert found.truncated.tolist() == [False, True]
    assert found.mask.all() and found.length.tolist() == [4, 4]


def test_G11_the_first_eos_is_trained():
    found = response_mask(torch.tensor([[5, 6, 1, 0], [5, 1, 6, 1]]), 1, 0)
    assert found.mask.int().tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]
    with pytest.raises(ValueError, match="pad_id: got 1"):
        response_mask(torch.tensor([[5, 6, 1, 1]]), 1, 1)
    with pytest.raises(ValueError, match="pad_id"):
        response_mask(torch.tensor([[5, 6, 1, 1]]), [2, 1], 1)


def test_G11_padding_on_either_side_and_of_any_width():
    right = response_mask(torch.tensor([[5, 6, 1, 0, 0]]), 1, 0)
    left = response_mask(torch.tensor([[0, 0, 0, 5, 6, 1]]), 1, 0)
    assert right.length == left.length == 3
    empty = response_mask(torch.tensor([[0, 0]]), 1, 0)
    assert empty.length == 0 and empty.truncated.all()


def test_G12_right_but_cut(graded):
    batch = graded([1], [0], length=[20], truncated=[True])
    assert shaped_reward(ALGORITHMS["dapo"], Schedule(l_max=20), batch).item() == 0
    mask = overlong_mask(batch.mask, batch.truncated)
    new = torch.full(mask.shape, -1.0, requires_grad=True)
    loss, _ = policy_loss(new, new.detach(), torch.ones(1), mask)
    loss.backward()
    assert loss.item() == 0 and (new.grad == 0).all()


def test_G14_length_is_in_tokens(graded):
    tokens = torch.tensor([[7, 1, 0, 0, 0]])  # "ab cd": two tokens, five characters
    length = response_mask(tokens, 1, 0).length
    assert penalty(length.tolist(), 4, 2) == [0]
    assert penalty([5], 4, 2) == [-1]


def test_G15_every_answer_cut(run):
    made = run(width=1, rollouts=3, options={"overlong": "filter"}, optimiser="adamw")
    made.policy.logits.data[..., 1] = -1e9
    before = made.policy.logits.detach().clone()
    with pytest.warns(UserWarning, match=r"every response is masked.*raise l_max"):
        steps = list(made.steps)
    assert all(s.batch.truncated.all() for s in steps)
    assert torch.equal(before, made.policy.logits) and made.state.updates == 0


def test_G16_overlong_filtering_is_off_in_dapo():
    assert ALGORITHMS["dapo"].overlong == "soft"
    assert all(a.overlong != "filter" for a in ALGORITHMS.values())
