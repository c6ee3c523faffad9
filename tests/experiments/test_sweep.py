"""The cached grid: nothing finished is lost, nothing damaged is used."""

import pytest

from dapo_lib.experiments import sweep as sweep_module
from dapo_lib.experiments.sweep import Job, run_cached, sweep

CALLS: list[int] = []


def square(config):
    CALLS.append(config["x"])
    return {"y": config["x"] ** 2}


def failing(config):
    if config["x"] == 2:
        raise RuntimeError("killed")
    return square(config)


@pytest.fixture(autouse=True)
def _forget():
    CALLS.clear()


def test_results_come_in_job_order_and_from_the_cache_next_time(tmp_path):
    jobs = [Job({"x": x}, square) for x in (3, 1, 2, 1)]
    for _ in range(2):
        done = sweep(jobs, workers=1, folder=tmp_path, progress=False)
        assert [r["y"] for r in done] == [9, 1, 4, 1]
    assert sorted(CALLS) == [1, 2, 3]


def test_processes_agree_with_one_worker(tmp_path):
    jobs = [Job({"x": x}, square) for x in range(4)]
    one = sweep(jobs, workers=1, folder=tmp_path / "one", progress=False)
    two = sweep(jobs, workers=2, folder=tmp_path / "two", progress=False)
    assert one == two


def test_a_failed_sweep_keeps_what_was_finished(tmp_path):
    jobs = [Job({"x": x}, failing) for x in range(4)]
    with pytest.raises(RuntimeError, match="killed"):
        sweep(jobs, workers=1, folder=tmp_path, progress=False)
    assert CALLS == [0, 1]
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_damaged_entry_is_recomputed(tmp_path):
    job = Job({"x": 5}, square)
    run_cached(job, tmp_path)
    path = tmp_path / f"{job.key}.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert run_cached(job, tmp_path) == {"y": 25}
    assert CALLS == [5, 5]


def test_other_code_is_another_key(monkeypatch):
    before = Job({"x": 5}, square).key
    monkeypatch.setattr(sweep_module, "code_hash", lambda: "other")
    assert Job({"x": 5}, square).key != before
    assert Job({"x": 6}, square).key != Job({"x": 5}, square).key
