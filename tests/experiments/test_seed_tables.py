"""The seed recipe's published tables: made by its code, and what they must say."""

import pytest

from dapo_lib.candidate import dissect
from dapo_lib.candidate.seed import run_seed
from dapo_lib.data.embedded import load_embedded
from dapo_lib.data.gsm8k import Data
from dapo_lib.experiments import published, seed_tables


@pytest.fixture(scope="module")
def small():
    data = load_embedded()
    return Data(data.train[:60], data.test[:60], data.source)


def test_publish_writes_tables_and_where_they_come_from(small, tmp_path):
    written = seed_tables.publish(small, seeds=[0, 1], steps=4, folder=tmp_path)
    assert [p.stem for p in written] == ["seed_table", "seed_arms", "seed_leaks"]
    arms = published.load("seed_arms", tmp_path)
    assert set(arms.arm) == set(seed_tables.ARMS)
    assert arms.attrs["data"]["rows"] == small.source.rows
    one = run_seed(small.train, small.test, seed=1, steps=4)
    row = arms[(arms.arm == "published") & (arms.seed == 1)].iloc[0]
    assert row.accuracy == pytest.approx(one.trained.accuracy)
    facts = published.load("seed_table", tmp_path).set_index("fact").value
    table = dissect.validation_table(small.test)
    assert facts["rule.right"] == dissect.leak_rule(table).right
    assert facts[[f"slot.{i}" for i in range(6)]].sum() == 60


def test_the_published_table_is_the_published_one():
    facts = published.load("seed_table").set_index("fact").value
    assert facts["untrained.accuracy"] == 0.1640625
    assert facts["trained.accuracy"] == 0.7578125
    assert facts["trained.kl_reference"] == pytest.approx(1.0870484, abs=1e-6)
    assert facts["rule.right"] > facts["trained_hits.right"]


def test_published_leaks_and_filter_point_the_way_the_page_says():
    arms = published.load("seed_arms").set_index("arm")
    assert arms.constant.max() == 0
    assert arms.all_wrong["published"].min() >= 20
    whole = arms.accuracy_whole_test
    assert whole["leaks removed"].max() < whole["published"].min() / 2
    gain = whole["no length"].to_numpy() - whole["published"].to_numpy()
    assert gain.mean() > 0.02 and len(gain) >= 20
