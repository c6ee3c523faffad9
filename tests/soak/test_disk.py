"""A real disk that fills up, a worker that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from dapo_lib.errors import BadInput, LostWorker
from dapo_lib.experiments.arms import ARMS
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.experiments.sweep import Job, cached, sweep
from dapo_lib.train import Schedule

pytestmark = pytest.mark.soak
SMALL = Schedule(
    rollouts=6, prompts_per_rollout=4, group_size=4, minibatches=2, l_max=12
)
ARM = LanguageRun(algorithm=ARMS["dapo"], schedule=SMALL, evaluate_every=0)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own: a tmpfs that holds one checkpoint, not three."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = ["-o", "size=1500k"]
    made = subprocess.run(
        ["mount", "-t", "tmpfs", *size, "tmpfs", str(folder)], capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def run_in(folder: Path):
    one = session(ARM, 0, folder)
    done = one.prepare(resume=True)
    done = [*done, *one.steps(done)]
    return one, [{**row, "cpu_seconds": 0} for row in done]


def test_a_disk_that_fills_up_stops_a_run_resumable(small_disk, tmp_path):
    whole, rows = run_in(tmp_path / "whole")
    folder = small_disk / "run"
    with pytest.raises(BadInput, match=r"No space left on device.*free space"):
        run_in(folder)
    files = [p for p in small_disk.rglob("*") if p.is_file()]
    assert files and not [p for p in files if p.name.startswith(".")]
    bigger = ["mount", "-o", "remount,size=30m", str(small_disk)]
    subprocess.run(bigger, check=True)
    again, same_rows = run_in(folder)
    assert rows == same_rows
    pairs = zip(
        whole.run.policy.state_dict().values(),
        again.run.policy.state_dict().values(),
        strict=True,
    )
    assert all(a.equal(b) for a, b in pairs)


def work(config):
    if config["x"] == config["victim"] and not Path(config["mark"]).exists():
        Path(config["mark"]).write_text("killed once")
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": config["x"] ** 2}


@pytest.mark.filterwarnings("ignore::UserWarning")  # loky says that a worker stopped
def test_a_killed_worker_costs_its_own_run_only(tmp_path):
    mark, cache = str(tmp_path / "mark"), tmp_path / "cache"
    jobs = [Job({"x": x, "victim": 7, "mark": mark}, work) for x in range(8)]
    with pytest.raises(LostWorker, match=r"finished runs are kept .* run again"):
        sweep(jobs, workers=2, folder=cache, progress=False)
    kept = [job for job in jobs if cached(job.key, cache) is not None]
    assert len(kept) >= 3 and jobs[7] not in kept
    stamps = {job.key: (cache / f"{job.key}.json").stat().st_mtime_ns for job in kept}
    done = sweep(jobs, workers=2, folder=cache, progress=False)
    assert [r["y"] for r in done] == [x * x for x in range(8)]
    for key, stamp in stamps.items():  # not made again
        assert (cache / f"{key}.json").stat().st_mtime_ns == stamp
