"""DynamicSampler: options refused, bad rollouts refused, its cost."""

import pytest
import torch

from dapo_lib.rollout import Prompts, Rollout, rule_reward
from dapo_lib.sampling import DynamicSampler, groups_of


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_groups": 0}, "n_groups: got 0"),
        ({"group_size": 0}, "group_size: got 0"),
        ({"max_rounds": 0}, "max_rounds: got 0, expected a whole number >= 1"),
        ({"max_rounds": -1}, "max_rounds: got -1"),
        ({"max_rounds": 2.5}, "max_rounds: got 2.5"),
        ({"lanes": 0}, "lanes: got 0"),
        ({"oversample": 0.5}, "oversample: got 0.5"),
        ({"on_exhausted": "ignore"}, r"on_exhausted: got 'ignore', expected error \|"),
        ({"surplus": "keep"}, "surplus: got 'keep'"),
    ],
)
def test_bad_options_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        DynamicSampler(**({"n_groups": 2, "group_size": 4} | change))


def made(correct, ids, lanes=None, width=4) -> Rollout:
    ids, correct = torch.as_tensor(ids), torch.as_tensor(correct)
    length = torch.full_like(ids, width)
    mask = torch.ones(len(ids), width, dtype=torch.bool)
    lane = torch.zeros_like(ids) if lanes is None else lanes
    plain = Rollout(
        ids, ids, lane, mask.long(), mask, length, length < 0, -mask.double()
    )  # fmt: skip
    return plain.graded(correct, rule_reward(correct == 1))


def test_ungraded_or_shaped_verdicts_are_refused():
    rollout = made([1, 0], [0, 0])
    with pytest.raises(ValueError, match="rollout: got no verdicts"):
        groups_of(Rollout(**{**rollout.tensors(), "correct": None, "reward": None}))
    for wrong in ([1.0, -1.0], [0.5, 0.0]):
        with pytest.raises(ValueError, match="correct: got a value besides 0 and 1"):
            groups_of(rollout.graded(torch.tensor(wrong), rollout.reward))


def test_ids_must_grow():
    """A reused id would merge two draws into one group of twice the size."""
    prompts = Prompts(*[torch.tensor([7, 7])] * 2, torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match="group_id: got ids that do not grow"):
        DynamicSampler(2, 1).fill(lambda need: prompts, lambda p: made([1], [7]))
    again = Prompts(*[torch.tensor([3])] * 2, torch.zeros(1, dtype=torch.long))
    with pytest.raises(ValueError, match="group_id"):
        DynamicSampler(1, 2).fill(lambda need: again, lambda p: made([1, 1], [3, 3]))


def test_groups_of_unequal_size():
    g = groups_of(made([1, 0, 1, 1, 0], [4, 9, 4, 9, 9]))
    assert g.group_id.tolist() == [4, 9] and g.size.tolist() == [2, 3]
    assert g.n_correct.tolist() == [2, 1] and g.tokens.tolist() == [8, 12]
    assert g.reward.tolist() == [2, -1]


def test_lanes_fill_each_on_its_own():
    """Lane 0 is lucky, lane 1 needs a second round and draws alone then."""
    asked = []

    def draw(need):
        asked.append(need.tolist())
        lane = torch.arange(2).repeat_interleave(need)
        start = 10 * len(asked)
        ids = torch.arange(start, start + len(lane))
        return Prompts(ids, ids, lane)

    def generate(prompts):
        ids = prompts.group_id.repeat_interleave(2)
        lanes = prompts.lane.repeat_interleave(2)
        right = torch.tensor([1, 0]).repeat(len(prompts))
        right[(lanes == 1) & (ids < 20)] = 0
        return made(right, ids, lanes)

    batch, ledger = DynamicSampler(2, 2, lanes=2).fill(draw, generate)
    assert asked == [[2, 2], [0, 2]]
    assert ledger.rounds.tolist() == [1, 2]
    assert ledger.kept.tolist() == [2, 2] and ledger.all_wrong.tolist() == [0, 2]
    assert torch.bincount(batch.lane).tolist() == [4, 4]
