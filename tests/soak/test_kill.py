"""SIGKILL at random moments, then --resume: equal to the run that was never stopped."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch as st

RUN = (
    "train --setting lm --arm dapo --seed 3 --iterations 6 --prompts-per-step 8 "
    "--group-size 8 --out"
)


def start(folder: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "dapo_lib.cli", *RUN.split(), str(folder), *more]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(folder: Path, *more: str) -> None:
    process = start(folder, *more)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()[-500:]


def records(folder: Path) -> list[dict]:
    rows = [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("cpu_seconds", None)
    return rows


def weights(folder: Path) -> bytes:
    newest = max((folder / "checkpoints").glob("*.safetensors"))
    return st.save(st.load(newest.read_bytes()))


@pytest.mark.soak
def test_twenty_kills_change_nothing(tmp_path):
    began = time.monotonic()
    finish(tmp_path / "whole")
    took = time.monotonic() - began
    rng, kills = random.Random(0), 0
    folder = tmp_path / "killed"
    while kills < 20:
        process = start(folder, "--resume")
        time.sleep(rng.uniform(0.3, 0.6) * took)
        if process.poll() is not None:  # it came to its end: begin another run
            folder = tmp_path / f"killed-{kills}"
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        left = [p for p in folder.rglob("*") if p.is_file() and p.suffix == ".json"]
        for path in left:
            json.loads(path.read_text())  # never a part of a file
    finish(folder, "--resume")
    assert records(folder) == records(tmp_path / "whole")
    assert weights(folder) == weights(tmp_path / "whole")


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_resumable_run(tmp_path, number):
    finish(tmp_path / "whole")
    process = start(tmp_path / "cut")
    while not list((tmp_path / "cut").rglob("step-*2.json")):
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    finish(tmp_path / "cut", "--resume")
    assert records(tmp_path / "cut") == records(tmp_path / "whole")
