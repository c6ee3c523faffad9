"""SIGKILL at random moments, Ctrl-C and SIGTERM, then --resume: as if never stopped."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import safetensors.torch as st

from dapo_lib.errors import DamagedFile
from dapo_lib.experiments import candidate
from dapo_lib.files import read_json

pytestmark = pytest.mark.soak
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
KILLS = 20


def heed_interrupts() -> None:
    """As at a terminal: below `nohup` or `&` a process is born deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Setting:
    """One of the two settings as a command; `name` is what --out is called."""

    arguments: str
    name: str
    moment: str  # a file that appears in the middle of the run

    def command(self, folder: Path) -> list[str]:
        return [*self.arguments.split(), "--out", str(folder / self.name), "--resume"]

    def start(self, folder: Path) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "dapo_lib.cli", *self.command(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            preexec_fn=heed_interrupts,
        )

    def finish(self, folder: Path) -> None:
        process = self.start(folder)
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()[-500:]


LANGUAGE = Setting(
    "train --setting lm --arm dapo --seed 3 --iterations 12 --prompts-per-step 8 "
    "--group-size 8",
    "run",
    "step-*02.json",
)
CANDIDATE = Setting(
    "train --recipe derivation --steps 400 --seeds 2 --prompts-per-step 4 --offline",
    "run.json",
    "step-*0050.json",
)


@pytest.fixture(scope="module", params=[LANGUAGE, CANDIDATE], ids=["lm", "candidate"])
def setting(request) -> Setting:
    """Both settings, one after the other."""
    return request.param


@pytest.fixture(scope="module")
def whole(setting, tmp_path_factory):
    """What a run that nothing interrupts leaves."""
    folder = tmp_path_factory.mktemp("whole")
    setting.finish(folder)
    return result(setting, folder)


def result(setting: Setting, folder: Path) -> tuple[object, bytes]:
    """The final metrics without the clock, and every tensor of the last checkpoint."""
    if setting is LANGUAGE:
        lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
        rows = [{**json.loads(line), "cpu_seconds": 0} for line in lines]
        assert len(rows) == 13  # the warm start's evaluation, and twelve rollouts
    else:
        rows = read_json(folder / "run.json", candidate.SCHEMA)
        rows = {k: rows[k] for k in ("metrics", "per_seed", "rollouts", "tokens")}
    newest = max(folder.rglob("step-*.safetensors"))
    return rows, st.save(st.load(newest.read_bytes()))


def whole_or_absent(folder: Path) -> int:
    """Every JSON that is there can be read whole; returns how many."""
    paths = [p for p in folder.rglob("*.json") if p.is_file() and p.name[0] != "."]
    for path in paths:
        read_json(path, json.loads(path.read_bytes())["schema"])
    return len(paths)


def test_twenty_kills_change_nothing(tmp_path, setting, whole):
    script = str(Path(__file__).with_name("kills.py"))
    command = [sys.executable, script, "10", str(KILLS // 10), "0"]
    done = subprocess.run(
        [*command, *setting.command(tmp_path / "{}")],
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["killed"] >= KILLS
    folders = [tmp_path / "whole"]
    folders += [tmp_path / f"run-{n}" for n in range(found["runs"])]
    for folder in folders:
        assert whole_or_absent(folder) >= 2
        assert result(setting, folder) == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_resumable_run(tmp_path, setting, whole, number):
    process = setting.start(tmp_path)
    while not list(tmp_path.rglob(setting.moment)):
        select.select([], [], [], 0.01)
        assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"interrupted" in err and b"Traceback" not in err
    assert not [p for p in tmp_path.rglob(".*") if p.is_file()]  # no part of a file
    setting.finish(tmp_path)
    assert result(setting, tmp_path) == whole


def test_the_check_of_wholeness_can_fail(tmp_path):
    (tmp_path / "a.json").write_text('{"schema": "s"}')
    with pytest.raises(DamagedFile):
        whole_or_absent(tmp_path)
