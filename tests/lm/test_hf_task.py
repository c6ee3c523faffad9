"""Questions as a task, and how many responses fit: no model is needed here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from dapo_lib.data.questions import Question
from dapo_lib.errors import BadInput
from dapo_lib.lm.hf_memory import pass_bytes, split
from dapo_lib.lm.hf_task import QuestionTask
from dapo_lib.rollout import Rollout

QUESTIONS = [Question([{"role": "user", "content": str(i)}], str(i)) for i in range(5)]


def rollout(index, texts):
    width = max(map(len, texts))
    tokens = torch.tensor([[*map(ord, t.ljust(width))] for t in texts])
    length = torch.tensor([len(t) for t in texts])
    mask = torch.arange(width) < length[:, None]
    rows = torch.tensor(index)
    empty = torch.zeros(mask.shape)
    return Rollout(rows, rows, rows * 0, tokens, mask, length, length < 0, empty)


def task(**options):
    return QuestionTask(QUESTIONS, lambda ids: "".join(map(chr, ids)), **options)


def test_every_question_is_drawn_once_a_pass_in_another_order():
    one = task(seed=1)
    rows = torch.cat([one.draw(torch.tensor([n])).index for n in (3, 4, 3)])
    first, second = rows[:5].tolist(), rows[5:].tolist()
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4]
    assert first != second


def test_a_resumed_cursor_goes_on_as_before():
    one, two = task(seed=2), task(seed=2)
    one.draw(torch.tensor([3]))
    two.load_state_dict(one.state_dict())
    more = torch.tensor([4])
    assert torch.equal(one.draw(more).index, two.draw(more).index)
    assert int(one.draw(more).group_id[0]) == 7


def test_grading_reads_the_text_up_to_its_length():
    graded = task().grade(rollout([1, 2, 3], ["Answer: 1", "Answer: 3", "3"]))
    assert graded.correct.tolist() == [1, 0, 1]
    assert graded.reward.tolist() == [1.0, -1.0, 1.0]


def test_the_split_fits_and_is_the_smallest():
    for responses in (1, 7, 64):
        for budget in (10, 35, 170, 10_000):
            count = split(responses, 10, budget)
            assert -(-responses // count) * 10 <= budget
            assert count == 1 or -(-responses // (count - 1)) * 10 > budget
    with pytest.raises(BadInput, match="one response needs"):
        split(4, 10, 9)


def test_longer_and_wider_needs_more():
    small = dict(hidden_size=8, num_hidden_layers=2, vocab_size=16)
    base = pass_bytes(SimpleNamespace(**small), 10)
    assert pass_bytes(SimpleNamespace(**small), 11) > base
    for name in small:
        bigger = SimpleNamespace(**{**small, name: small[name] + 1})
        assert pass_bytes(bigger, 10) > base
