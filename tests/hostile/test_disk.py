"""A disk that is full, a folder that is read-only, two sweeps at once.

The full disk is a limit on the size of a file, which the system enforces as it enforces
the disk's; tests/soak fills a real one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dapo_lib import checkpoint
from dapo_lib.errors import BadInput
from dapo_lib.experiments.arms import ARMS
from dapo_lib.experiments.language import LanguageRun, session
from dapo_lib.experiments.sweep import Job, cached, sweep
from dapo_lib.files import check_writable, write_bytes, write_json
from dapo_lib.train import Schedule

resource = pytest.importorskip("resource", reason="limits of files are POSIX")
SMALL = Schedule(
    rollouts=3, prompts_per_rollout=4, group_size=4, minibatches=2, l_max=12
)
ARM = LanguageRun(algorithm=ARMS["dapo"], schedule=SMALL, evaluate_every=0)
NOBODY = 65534


@contextlib.contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes, as on a disk with so much left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def locked() -> Iterator[Path]:
    """A read-only folder with a finished cache entry; root puts its rights aside."""
    folder = Path(tempfile.mkdtemp())
    sweep([Job({"x": 3}, square)], workers=1, folder=folder, progress=False)
    was_root = os.geteuid() == 0
    folder.chmod(0o555)
    try:
        if was_root:
            os.seteuid(NOBODY)
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def square(config):
    return {"y": config["x"] ** 2}


def padded(config):
    return {"text": "x" * config["size"]}


def test_a_full_disk_leaves_the_old_file_and_no_part_of_the_new(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, b"old")
    with full_after(1000), pytest.raises(BadInput, match=r"a\.bin: .*free space"):
        write_bytes(path, b"n" * 1001)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_sweep_on_a_full_disk_keeps_what_was_finished(tmp_path):
    jobs = [Job({"size": s}, padded) for s in (10, 20, 5000, 30)]
    with full_after(2000), pytest.raises(BadInput, match=r"cannot write .*\.json"):
        sweep(jobs, workers=1, folder=tmp_path, progress=False)
    kept = [cached(job.key, tmp_path) is not None for job in jobs]
    assert kept == [True, True, False, False]
    assert len(os.listdir(tmp_path)) == 2
    done = sweep(jobs, workers=1, folder=tmp_path, progress=False)
    assert [len(r["text"]) for r in done] == [10, 20, 5000, 30]


def test_a_run_on_a_full_disk_stops_resumable(tmp_path):
    whole = run_in(tmp_path / "whole")
    one = session(ARM, 0, tmp_path / "cut")
    steps = one.steps(one.prepare(resume=False))
    next(steps)
    size = sum(1 for _ in (tmp_path / "cut" / "checkpoints").iterdir())
    with full_after(1000), pytest.raises(BadInput, match="cannot write"):
        next(steps)
    folder = tmp_path / "cut" / "checkpoints"
    assert len(list(folder.iterdir())) == size  # the old ones, and no part of a new
    assert checkpoint.latest(folder).stem == "step-00000001"
    again = run_in(tmp_path / "cut")
    for a, b in zip(tensors(whole), tensors(again), strict=True):
        assert a.equal(b)


def run_in(folder: Path):
    one = session(ARM, 0, folder)
    for _ in one.steps(one.prepare(resume=True)):
        pass
    return one


def tensors(one):
    policy, _, state = one.run
    moments = state.optimiser.state_dict()["state"].values()
    return [*policy.state_dict().values(), *(v for m in moments for v in m.values())]


def test_a_read_only_folder_is_named_before_and_while_writing(locked):
    for path in (locked / "a.json", locked / "deep" / "er" / "a.json"):
        with pytest.raises(BadInput, match="not a writable folder"):
            check_writable(path)
        with pytest.raises(BadInput, match="cannot write"):
            write_json(path, "s/1", {"x": 1})
    with pytest.raises(BadInput, match="cannot write"):
        session(ARM, 0, locked / "run").prepare(resume=False)
    assert len(list(locked.iterdir())) == 1


def test_a_read_only_cache_still_serves_what_it_has(locked):
    done = sweep([Job({"x": 3}, square)], workers=1, folder=locked, progress=False)
    assert done == [{"y": 9}]
    with pytest.raises(BadInput, match="cannot write"):
        sweep([Job({"x": 4}, square)], workers=1, folder=locked, progress=False)


TWO = """
import sys
from pathlib import Path
from dapo_lib.experiments import sweep as module

module.code_hash = lambda: "fixed"

def square(config):
    return {"y": config["x"] ** 2, "pad": "x" * 2000}

jobs = [module.Job({"x": x}, square) for x in range(150)]
order = jobs if sys.argv[2] == "up" else jobs[::-1]
done = module.sweep(order, workers=1, folder=Path(sys.argv[1]), progress=False)
assert sorted(r["y"] for r in done) == [x * x for x in range(150)]
"""


def test_two_sweeps_share_a_cache_folder(tmp_path):
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, str(tmp_path), way],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for way in ("up", "down")
    ]
    for process in both:
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()[-500:]
    names = [p.name for p in tmp_path.iterdir()]
    assert len(names) == 150 and all(n.endswith(".json") for n in names)
    assert all(n[0] != "." and cached(n[:-5], tmp_path) for n in names)
