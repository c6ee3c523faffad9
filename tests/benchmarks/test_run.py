"""`make bench` without TRL says so in one line and measures the rest."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import ratios, run
from benchmarks.ours import BOOK, QWEN2, Work
from dapo_lib.lm.model import ModelConfig

TINY = ModelConfig(**QWEN2, width=16, layers=1, hidden=32, heads=2)
KEYS = {"work", "lengths", "peer", "ratio_peer_ours", "ratio_ours_floor", "low", "high"}


def test_a_missing_environment_is_said_and_the_rest_runs(monkeypatch, capsys, tmp_path):
    calls = []

    def call(command, **options):
        calls.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setenv("DAPO_BENCH_ENV", str(tmp_path / "nowhere"))
    monkeypatch.setattr(run.subprocess, "run", call)
    monkeypatch.setattr(run.sys, "argv", ["run", "--only", "B"])
    assert run.main() == 0
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "trl==1.16.0" in said[0]
    assert calls[0][-2:] == ["--only", "B"] and calls[0][0].name.startswith("python")


@pytest.fixture
def tiny(monkeypatch):
    """The bench with one tiny work and no TRL."""
    work = Work("T 8x2 G4 L6", TINY, 8, 2, 4, 6, goal=1.0, goals=(2.0, None))
    monkeypatch.setattr(ratios, "WORKS", (work,))
    monkeypatch.setattr(ratios, "find_spec", lambda name: None)
    monkeypatch.setattr(
        ratios, "fitted", lambda config, l_max: ratios.checkpoint(config, l_max, 1)
    )


def test_rows_have_what_a_reader_of_the_file_expects(tiny, monkeypatch, tmp_path):
    out = tmp_path / "bench.json"
    other = {"job": BOOK.name, "work": "kept"}
    out.write_text(json.dumps([other, {"job": "T 8x2 G4 L6", "work": "replaced"}]))
    arguments = ["ratios", "--only", "T 8", "--cycles", "3", "--out", str(out)]
    monkeypatch.setattr("sys.argv", arguments)
    ratios.main()
    *rows, kept = json.loads(out.read_text())
    assert kept == other
    assert [(r["part"], r["peer"]) for r in rows] == [
        ("cycle", "plain torch"),
        ("sampling", "matrix products"),
        ("training", "matrix products"),
    ]
    for row in rows:
        assert row.keys() >= KEYS and row["pairs"] == 3
        median = "ratio_peer_ours" if row["part"] == "cycle" else "ratio_ours_floor"
        assert 0 < row["low"] <= row[median] <= row["high"]
    assert rows[1]["goal"] == 2.0 and rows[2]["goal"] is None
