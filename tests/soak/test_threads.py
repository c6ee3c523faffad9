"""Same seed: bit-equal at the same number of threads, within tolerance at another."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.soak
THREADS = """
import json, sys, torch
from dapo_lib.algorithm import Algorithm
from dapo_lib.lm.run import run_lm
from dapo_lib.train import Schedule

torch.set_num_threads(int(sys.argv[1]))
schedule = Schedule(rollouts=4)
rows = list(run_lm(Algorithm(), schedule, seed=3, evaluate_every=4))
print(json.dumps(rows))
"""


def rows_with(threads: int) -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(threads)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    for row in rows:
        row.pop("cpu_seconds", None)
    return rows


# as the metrics page: figures of one seed may move by so much from machine to machine
TOLERANCE = {"eval_accuracy": 0.02, "entropy": 0.02, "length": 0.3, "clip_high": 0.01}


def test_threads_change_nothing_beyond_the_tolerance():
    one, again, two = rows_with(1), rows_with(1), rows_with(2)
    assert one == again  # bit-equal at the same number
    worst = {}
    for a, b in zip(one, two, strict=True):
        assert a.keys() == b.keys()
        for name, room in TOLERANCE.items():
            with contextlib.suppress(KeyError):
                gap = abs(a[name] - b[name])
                worst[name] = max(worst.get(name, 0.0), gap)
                assert gap <= room, (name, a[name], b[name])
    print(worst, "bit-equal" if one == two else "")
    assert worst.keys() == TOLERANCE.keys()
