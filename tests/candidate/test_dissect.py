"""The seed recipe taken apart: exact figures of one run, directions of six seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dapo_lib.candidate import dissect
from dapo_lib.candidate.seed import run_seed, run_seeds
from dapo_lib.data.embedded import load_embedded
from dapo_lib.errors import BadInput

SEEDS = range(6)


@pytest.fixture(scope="module")
def facts(gsm8k):
    return dissect.dissect(gsm8k.train, gsm8k.test, seeds=SEEDS)


@pytest.fixture(scope="module")
def table():
    return dissect.validation_table(load_embedded().test, rows=128)


@pytest.mark.data
def test_untrained_accuracy_is_where_gold_happens_to_lie(facts):
    assert facts["gold_slots"][0] / 128 == 0.1640625
    assert sum(facts["gold_slots"]) == 128
    assert 0.1640625 != dissect.CHANCE == 1 / 6


@pytest.mark.data
def test_the_untrained_rule_beats_the_trained_policy(facts):
    assert facts["trained"] == {"right": 97, "rows": 128}
    rule = dissect.Hits(**facts["leak_rule"])
    assert rule.accuracy == pytest.approx(0.8438, abs=5e-5)
    assert rule.right > facts["trained"]["right"]
    assert dissect.Hits(**facts["leak_rule_whole_test"]).accuracy > 0.7028


@pytest.mark.data
def test_without_the_leaks_little_more_than_chance_remains(facts):
    bare = np.array(facts["leaks_removed_whole_test"])
    assert abs(bare.mean() - dissect.CHANCE) < 0.05
    assert bare.max() < min(facts["published_whole_test"]) / 2


@pytest.mark.data
def test_the_recipes_filter_never_fires_while_dapos_would(facts):
    counts = facts["filter"]
    assert counts["constant"] == [0] * len(SEEDS)
    assert counts["steps"] == [300] * len(SEEDS)
    assert min(counts["all_wrong"]) > 10
    assert counts["all_right"] == [0] * len(SEEDS)  # only one of six is right


@pytest.mark.data
def test_length_is_noise_and_removing_it_helps(facts):
    pairs = zip(
        facts["published_whole_test"], facts["equal_lengths_whole_test"], strict=True
    )
    gain = np.array([b - a for a, b in pairs])
    assert gain.mean() > 0.02 and (gain > 0).sum() >= len(SEEDS) - 1


@pytest.mark.data
def test_the_term_trains_one_kl_and_the_table_reports_the_other(facts):
    kl = facts["kl"]
    assert kl["kl_pi_ref"] == pytest.approx(1.0870484, abs=1e-7)
    assert kl["kl_ref_pi"] > kl["kl_pi_ref"] + 0.5
    assert 0 < kl["cosine"] < 1


def test_kl_gradients_equal_finite_differences(table):
    weight = torch.linspace(-0.5, 2, 8, dtype=torch.float64)
    facts = dissect.kl_directions(table, weight.tolist())
    for key in ("ref_pi", "pi_ref"):
        numeric = []
        for i in range(8):
            step = torch.zeros(8, dtype=torch.float64)
            step[i] = 1e-6
            up, down = (
                dissect.kl_directions(table, (weight + s * step).tolist())[f"kl_{key}"]
                for s in (1, -1)
            )
            numeric.append((up - down) / 2e-6)
        assert facts[f"norm_{key}"] == pytest.approx(np.linalg.norm(numeric), rel=1e-6)


def test_at_the_reference_both_kls_and_gradients_vanish(table):
    facts = dissect.kl_directions(table, [0.0] * 8)
    assert list(facts.values()) == pytest.approx([0] * 5, abs=1e-12)


def test_one_leak_alone_says_less_than_both(table):
    both = dissect.leak_rule(table)
    alone = [dissect.leak_rule(table, [name]) for name in dissect.LEAKS]
    assert both.right > max(a.right for a in alone)
    assert min(a.accuracy for a in alone) > 1.5 * dissect.CHANCE
    none = dissect.leak_rule(table, [])
    assert none.right == dissect.gold_slots(table)[0]


def test_a_feature_that_is_no_leak_is_refused(table):
    with pytest.raises(BadInput, match="leaks: got one"):
        dissect.leak_rule(table, ["one"])


def test_the_grid_holds_the_runs_it_names():
    data = load_embedded()
    train, test = data.train[:100], data.test[:100]
    grid = dissect.leak_grid(train, test, seeds=[1, 2], steps=30, curve_every=10)
    assert len(grid) == 4 * 2 * 2
    assert {(tuple(r["removed"]), r["equal_lengths"]) for r in grid} == {
        (leaks, equal)
        for leaks in [(), ("integer",), ("self_check",), dissect.LEAKS]
        for equal in (False, True)
    }
    alone = run_seed(train, test, seed=2, steps=30)
    (row,) = (
        r
        for r in grid
        if (r["removed"], r["equal_lengths"], r["seed"]) == ([], False, 2)
    )
    assert row["accuracy"] == alone.trained.accuracy
    assert row["accuracy_whole_test"] == alone.whole_test.accuracy
    assert [point[0] for point in row["curve"]] == [0, 10, 20, 30]
    assert row["curve"][0][1] == alone.untrained.accuracy
    assert row["curve"][-1][1] == row["accuracy"]
    bare = [r for r in grid if r["removed"] == list(dissect.LEAKS)]
    assert all(r["rule"] < 0.3 for r in bare)
    assert max(r["kl_reference"] for r in grid) < math.log(6)


def test_filter_counts_are_one_entry_a_run():
    data = load_embedded()
    results = run_seeds(data.train[:50], data.test[:50], seeds=[0, 1, 2], steps=20)
    counts = dissect.filter_counts(results)
    assert counts["steps"] == (20, 20, 20)
    assert all(0 <= n <= 20 for n in counts["all_wrong"])
