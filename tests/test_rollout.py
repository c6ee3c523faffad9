"""Rollouts: masks from tokens, selection, joining."""

import pytest
import torch

from dapo_lib.rollout import Rollout, concatenate, response_mask, rule_reward

EOS, PAD = 1, 0


def rollout(tokens: list[list[int]]) -> Rollout:
    tokens = torch.tensor(tokens)
    mask, length, truncated = response_mask(tokens, EOS, PAD)
    ids = torch.arange(len(tokens))
    return Rollout(
        ids, ids, ids * 0, tokens, mask, length, truncated, -mask.double()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "eos", "pad", "message"),
    [
        (torch.zeros(2, 3), 1, 0, r"tokens: got \(2, 3\) torch.float32"),
        (torch.zeros(3).long(), 1, 0, r"tokens: got \(3,\)"),
        (torch.zeros(1, 1).long(), [], 0, "eos_ids: got"),
        (torch.zeros(1, 1).long(), [5, 7], 7, r"pad_id: got 7.*\[5, 7\]"),
    ],
)
def test_bad_input_is_named(tokens, eos, pad, message):
    with pytest.raises(ValueError, match=message):
        response_mask(tokens, eos, pad)


def test_everything_after_the_first_eos_is_dropped():
    found = response_mask(torch.tensor([[4, 1, 5, 1, 6]]), EOS, PAD)
    assert found.mask.int().tolist() == [[1, 1, 0, 0, 0]]
    assert found.length.item() == 2 and not found.truncated.item()


def test_concatenate_pads_on_the_right():
    a, b = rollout([[4, 1]]), rollout([[4, 5, 6, 1], [4, 1, 0, 0]])
    joined = concatenate([a, b])
    assert joined.tokens.tolist() == [[4, 1, 0, 0], [4, 5, 6, 1], [4, 1, 0, 0]]
    assert joined.mask.sum(1).tolist() == joined.length.tolist() == [2, 4, 2]
    assert joined.mask.dtype is torch.bool and concatenate([a]) is a
    with pytest.raises(ValueError, match="parts"):
        concatenate([a, a.graded(torch.ones(1), torch.ones(1))])
    with pytest.raises(ValueError, match="parts"):
        concatenate([])


def test_rows_by_index_and_by_mask_agree():
    r = rollout([[4, 1], [5, 1], [6, 1]])
    by_index = r.rows(torch.tensor([0, 2]))
    by_mask = r.rows(torch.tensor([True, False, True]))
    assert torch.equal(by_index.tokens, by_mask.tokens) and len(by_mask) == 2


def test_tensors_are_the_whole_record():
    r = rollout([[4, 1]])
    assert "reward" not in r.tensors() and "correct" not in r.tensors()
    again = Rollout(**r.tensors())
    assert all(torch.equal(getattr(again, n), v) for n, v in r.tensors().items())


def test_rule_reward_is_exact():
    correct = torch.tensor([True, False])
    assert rule_reward(correct).tolist() == [1, -1]
    assert rule_reward(correct, right=0.7, wrong=0.0).tolist() == [0.7, 0]
