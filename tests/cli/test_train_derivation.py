"""`dapo train --recipe derivation`: what its JSON says, on the embedded problems."""

import json

import pytest

from dapo_lib.cli import main

COMMAND = (
    "train --dataset gsm8k-candidate --recipe derivation --mix verify "
    "--prompts-per-step 2 --steps 6 --group-size 4 --seeds 3 --offline --out"
)


@pytest.fixture
def body(monkeypatch, tmp_path):
    monkeypatch.delenv("DAPO_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main([*COMMAND.split(), str(tmp_path / "run.json")]) == 0
    return json.loads((tmp_path / "run.json").read_text())


def test_the_json_has_interval_bounds_and_cost(body) -> None:
    metrics = body["metrics"]
    for name in ("greedy", "expected_accuracy"):
        found = metrics["test"][name]
        assert found["low"] <= found["mean"] <= found["high"] and found["sd"] >= 0
    assert 0 < metrics["leak_only"] < metrics["ceiling"] <= 1
    assert body["rollouts"] >= 6 * 2 * 4
    assert body["seconds"] > 0 and body["cpu_seconds"] > 0
    assert body["provenance"]["data"]["sha256"]
