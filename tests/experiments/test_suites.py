"""Publishing the small suites: a table, its provenance, and the committed ones."""

import pytest

from dapo_lib.candidate.suites import rare_gold
from dapo_lib.experiments import published, suites


@pytest.fixture
def quick(monkeypatch):
    schedule = rare_gold.SCHEDULE.model_copy(update={"rollouts": 16})

    def run(seeds):
        return rare_gold.run(
            seeds, starts=(0.05,), upper_clips=(0.2,), schedule=schedule
        )

    monkeypatch.setitem(suites.SUITES, "rare_gold", run)


def test_publish_writes_a_table_and_where_it_comes_from(quick, tmp_path):
    suites.publish("rare_gold", range(2), tmp_path)
    frame = published.load("suite_rare_gold", tmp_path)
    assert list(frame.columns) == ["arm", "seed", "step", "metric", "value"]
    assert frame.attrs["seeds"] == [0, 1]
    assert frame.attrs["config"]["schedule"]["group_size"] == 8


def test_an_unknown_suite_is_named(tmp_path):
    with pytest.raises(ValueError, match="suite: got 'gold'"):
        suites.publish("gold", range(2), tmp_path)
    assert not list(tmp_path.iterdir())


def finals(name, metric):
    return suites.final(published.load(f"suite_{name}"), metric)


def test_published_rare_gold_orders_the_upper_clips():
    end = finals("rare_gold", "p_gold")
    for p0 in (0.05, 0.01):
        means = [end[rare_gold.arm_name(p0, e)].mean for e in rare_gold.UPPER_CLIPS]
        assert means == sorted(means)
        low, high = (end[rare_gold.arm_name(p0, e)] for e in (0.2, 0.28))
        assert high.low > low.high and low.n >= 10


def test_published_rare_gold_gains_little_from_a_uniform_start():
    end = finals("rare_gold", "p_gold")
    gain = {
        p0: end[rare_gold.arm_name(p0, 0.28)].mean
        - end[rare_gold.arm_name(p0, 0.2)].mean
        for p0 in (0.05, 1 / 6)
    }
    assert gain[1 / 6] < 0.03 and gain[0.05] > 0.15


def test_published_padding_falls_and_accuracy_stays():
    padded, right = (finals("padded_pairs", m) for m in ("padded_if_right", "accuracy"))
    assert padded["soft token_mean"].high < 0.1 < padded["none token_mean"].low
    assert right["soft token_mean"].low > right["none token_mean"].mean - 0.02


def test_published_fault_costs_accuracy():
    greedy = finals("real_solutions", "greedy")
    fault, right = greedy["filter on shaped reward"], greedy["filter on correctness"]
    assert fault.high < right.low - 0.05 and right.n >= 20
