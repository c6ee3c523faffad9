"""SIGKILL at random moments, then --resume: equal to the run that was never stopped."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import safetensors.torch as st

from dapo_lib.errors import DamagedFile
from dapo_lib.experiments import candidate
from dapo_lib.files import read_json

pytestmark = pytest.mark.soak


@dataclass(frozen=True)
class Setting:
    """One of the two settings as a command; `out` takes a name under a folder."""

    arguments: str
    name: str
    moment: str  # a file that appears in the middle of the run

    def start(self, folder: Path, *more: str) -> subprocess.Popen:
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "dapo_lib.cli", *self.arguments.split()]
        return subprocess.Popen(
            [*command, "--out", str(folder / self.name), *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def finish(self, folder: Path) -> None:
        process = self.start(folder, "--resume")
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()[-500:]


LANGUAGE = Setting(
    "train --setting lm --arm dapo --seed 3 --iterations 30 --prompts-per-step 8 "
    "--group-size 8",
    "run",
    "step-*02.json",
)
CANDIDATE = Setting(
    "train --recipe derivation --steps 1500 --seeds 8 --prompts-per-step 4 --offline",
    "run.json",
    "step-*0200.json",
)
SETTINGS = pytest.mark.parametrize(
    "setting", [LANGUAGE, CANDIDATE], ids=["lm", "candidate"]
)


def result(setting: Setting, folder: Path) -> tuple[object, bytes]:
    """The final metrics without the clock, and every tensor of the last checkpoint."""
    if setting is LANGUAGE:
        lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
        rows = [{**json.loads(line), "cpu_seconds": 0} for line in lines]
    else:
        rows = read_json(folder / "run.json", candidate.SCHEMA)
        rows = {k: rows[k] for k in ("metrics", "per_seed", "rollouts", "tokens")}
    newest = max(folder.rglob("step-*.safetensors"))
    return rows, st.save(st.load(newest.read_bytes()))


def whole_or_absent(folder: Path) -> int:
    """Every JSON that is there can be read whole; returns how many."""
    paths = [p for p in folder.rglob("*.json") if p.is_file() and p.name[0] != "."]
    for path in paths:
        schema = json.loads(path.read_bytes())["schema"]
        read_json(path, schema)
    return len(paths)


@SETTINGS
def test_twenty_kills_change_nothing(tmp_path, setting):
    began = time.monotonic()
    setting.finish(tmp_path / "whole")
    took = time.monotonic() - began
    rng, kills, seen = random.Random(0), 0, 0
    folder = tmp_path / "killed-0"
    while kills < 20:
        process = setting.start(folder, "--resume")
        try:  # anywhere between the imports and the end of the run
            process.wait(rng.uniform(0.3, 1.0) * took)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        seen += whole_or_absent(folder)
        if process.returncode == 0:  # it came to its end: begin another run
            assert result(setting, folder) == result(setting, tmp_path / "whole")
            folder = tmp_path / f"killed-{kills}"
    setting.finish(folder)
    assert result(setting, folder) == result(setting, tmp_path / "whole")
    assert seen > 0  # some were killed after a checkpoint


@SETTINGS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_resumable_run(tmp_path, setting, number):
    setting.finish(tmp_path / "whole")
    cut = tmp_path / "cut"
    process = setting.start(cut, "--resume")
    while not list(cut.rglob(setting.moment)):
        select.select([], [], [], 0.02)
        assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"interrupted" in err and b"Traceback" not in err
    assert not [p for p in cut.rglob(".*") if p.is_file()]  # no part of a file
    setting.finish(cut)
    assert result(setting, cut) == result(setting, tmp_path / "whole")


def test_the_check_of_wholeness_can_fail(tmp_path):
    (tmp_path / "a.json").write_text('{"schema": "s"}')
    with pytest.raises(DamagedFile):
        whole_or_absent(tmp_path)
