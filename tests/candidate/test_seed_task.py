"""Candidates, features and rewards of the `seed` recipe, slot by slot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dapo_lib.candidate.seed_task import (
    FEATURES,
    SeedTask,
    candidate_table,
    stack,
)
from dapo_lib.data.gsm8k import problem

PROBLEMS = [problem("q?", f"#### {n}") for n in (5, 100, 37, 2500, -40)]


@pytest.fixture
def table():
    return candidate_table(PROBLEMS, np.random.default_rng(0))


def column(table, name):
    return table.features[0, :, :, FEATURES.index(name)]


def test_one_gold_a_problem_and_its_value_is_the_answer(table):
    assert (table.correct.sum(-1) == 1).all()
    gold = column(table, "tanh_value")[table.correct[0].bool()]
    wanted = np.tanh([float(p.answer) / 100 for p in PROBLEMS])
    assert gold.tolist() == pytest.approx(wanted.tolist())


def test_gold_is_always_an_integer_and_distractors_of_37_never(table):
    integer = column(table, "integer")
    assert (integer[table.correct[0].bool()] == 1).all()
    assert integer[1].sum() == 6  # 0.06 * 100 is an integer: no leak there
    assert integer[2].sum() == 1  # 0.06 * 37 is not: the feature names gold


def test_length_and_steps_depend_on_the_slot_alone(table):
    assert (table.length == torch.tensor([1, 2, 3, 4, 1, 2])).all()
    assert (column(table, "brevity") * table.length[0] == 1).all()
    assert (column(table, "several_steps") == (table.length[0] > 1)).all()


def test_rewards_are_the_weighted_parts(table):
    parts = table.parts
    wanted = 0.7 * parts[..., 0] + 0.05 * parts[..., 1] + 0.2 * parts[..., 2]
    assert torch.allclose(
        table.reward, wanted + 0.05 * parts[..., 3], rtol=0, atol=1e-15
    )
    assert (parts[..., 0] == table.correct).all()
    assert 0 <= table.reward.min() and table.reward.max() <= 1


def test_a_prefix_of_the_problems_gives_a_prefix_of_the_table(table):
    short = candidate_table(PROBLEMS[:2], np.random.default_rng(0))
    assert torch.equal(short.features, table.first(2).features)


def test_without_sets_only_the_named_features_to_zero(table):
    bare = table.without(("integer", "self_check"))
    changed = (bare.features != table.features).any(0).any(0).any(0)
    assert [n for n, c in zip(FEATURES, changed, strict=True) if c] == [
        "integer",
        "self_check",
    ]
    assert torch.equal(bare.reward, table.reward)


def test_lanes_draw_from_their_own_generators(table):
    task = SeedTask(stack([table, table]))
    generators = [np.random.default_rng(1), np.random.default_rng(2)]
    prompts = task.draw(torch.tensor([2, 3]), generators)
    wanted = np.random.default_rng(1).integers(0, 5, 2).tolist()
    assert prompts.index[:2].tolist() == wanted
    assert prompts.lane.tolist() == [0, 0, 1, 1, 1]
    later = task.draw(torch.tensor([1, 0]), generators)
    assert later.group_id.tolist() == [5] and prompts.group_id.tolist() == [*range(5)]
